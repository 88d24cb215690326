//! One node: its name, its cards, or a modest bar when it has none.
//!
//! Data enters as a [`NodeView`] and leaves as SVG. The [`Scale`] follows from the number of nodes:
//! large squares with letters for a few, small ones without names for a thousand.

use std::fmt::Write as _;

use gangline::{engine::NodeView, request::CPU};

use super::{Escaped, Keep, Picture, cards::Shape, shortened};
use crate::{
    node::is_away,
    output::{counted_cards, held_cards},
};

/// Sizes in pixels that go together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// Edge of a card's square.
    pub(super) square: f32,
    /// Space between squares.
    pub(super) gap: f32,
    /// Font of node names; 0 for no names.
    pub(super) name_font: f32,
    /// Inner margin of a node.
    node_pad: f32,
    /// Space between nodes.
    pub(super) node_gap: f32,
    /// Inner margin of a domain's box, and the space between boxes.
    pub(super) pad: f32,
    /// Room for a domain's name at the top of its box.
    pub(super) title: f32,
    /// Font of a domain's name.
    pub(super) title_font: f32,
    /// A box is at least this wide.
    pub(super) title_width: f32,
}

/// Height of the bar of a node without cards.
const BAR: f32 = 4.0;

impl Scale {
    /// The scale for so many nodes.
    pub(super) fn for_nodes(nodes: usize) -> Self {
        match nodes {
            0..=24 => Self {
                square: 22.0,
                gap: 3.0,
                name_font: 12.0,
                node_pad: 6.0,
                node_gap: 8.0,
                pad: 10.0,
                title: 24.0,
                title_font: 13.0,
                title_width: 90.0,
            },
            25..=160 => Self {
                square: 13.0,
                gap: 2.0,
                name_font: 9.0,
                node_pad: 4.0,
                node_gap: 5.0,
                pad: 8.0,
                title: 20.0,
                title_font: 11.0,
                title_width: 70.0,
            },
            _ => Self {
                square: 6.0,
                gap: 1.0,
                name_font: 0.0,
                node_pad: 2.0,
                node_gap: 2.0,
                pad: 6.0,
                title: 15.0,
                title_font: 9.0,
                title_width: 40.0,
            },
        }
    }

    /// Width and height of a node.
    pub(super) fn node_size(&self, node: &NodeView<'_>) -> (f32, f32) {
        let sizes = node
            .cards
            .iter()
            .map(|cards| Shape::of(self, cards).size(self, cards));
        let (width, cards) = sizes.fold((0.0, 0.0), |(width, height): (f32, f32), size| {
            let gap = if height > 0.0 { self.gap } else { 0.0 };
            (width.max(size.0), height + gap + size.1)
        });
        let width = width.max(2.0 * self.square + self.gap);
        let cards = cards.max(BAR);
        // A name needs some room, even on a node with one card.
        let name = if self.name_font > 0.0 {
            self.name_font * 4.6
        } else {
            0.0
        };
        (
            width.max(name) + 2.0 * self.node_pad,
            cards + 2.0 * self.node_pad + self.name_height(),
        )
    }

    fn name_height(&self) -> f32 {
        if self.name_font > 0.0 {
            self.name_font + 4.0
        } else {
            0.0
        }
    }
}

impl Picture<'_> {
    /// Draws a node with its upper left corner at (`x`, `y`) and this `width` and `height`.
    pub(super) fn push_node(
        &self,
        svg: &mut String,
        node: &NodeView<'_>,
        (x, y): (f32, f32),
        (width, height): (f32, f32),
    ) {
        let scale = &self.scale;
        let class = if node.unschedulable || is_away(node.taints) {
            "node cordoned"
        } else {
            "node"
        };
        let _ = write!(
            svg,
            "<g><title>{}</title><rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" \
             width=\"{width:.1}\" height=\"{height:.1}\" rx=\"2\"/>",
            Escaped(&tooltip(node))
        );
        let left = x + scale.node_pad;
        let mut top = y + scale.node_pad;
        if scale.name_font > 0.0 {
            let room = width - 2.0 * scale.node_pad;
            let name = shortened(host(node.name), room, scale.name_font, Keep::End);
            let _ = write!(
                svg,
                "<text class=\"node-name\" x=\"{left:.1}\" y=\"{:.1}\" font-size=\"{}\">{}</text>",
                top + scale.name_font - 1.5,
                scale.name_font,
                Escaped(&name)
            );
            top += scale.name_height();
        }
        if node.cards.is_empty() {
            push_bar(svg, node, (left, top), width - 2.0 * scale.node_pad);
        }
        for cards in &node.cards {
            self.push_cards(svg, node, cards, (left, top));
            top += Shape::of(scale, cards).size(scale, cards).1 + scale.gap;
        }
        svg.push_str("</g>\n");
    }
}

/// A node without cards of which each could be drawn: how much of its cards, or of its processor time, is
/// in use.
fn push_bar(svg: &mut String, node: &NodeView<'_>, (x, y): (f32, f32), width: f32) {
    let cpu = || node.resources.iter().find(|(name, _, _)| *name == CPU);
    let share = match counted_cards(node).next().or_else(cpu) {
        Some(&(_, free, all)) if all > 0 => 1.0 - (free as f32 / all as f32).clamp(0.0, 1.0),
        _ => 0.0,
    };
    let _ = write!(
        svg,
        "<rect class=\"bar\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\" \
         rx=\"2\"/><rect class=\"bar-used\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" \
         height=\"{BAR}\" rx=\"2\"/>",
        width * share
    );
}

/// What tells a node from others: clouds put a domain behind the host's name, alike for all of them.
fn host(node: &str) -> &str {
    match node.split_once('.') {
        Some((host, _)) if !host.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => node,
    }
}

/// What a pointer over a node shows.
fn tooltip(node: &NodeView<'_>) -> String {
    let mut text = format!("node {}", node.name);
    if node.unschedulable {
        text.push_str(" (cordoned)");
    }
    if is_away(node.taints) {
        text.push_str(" (not ready)");
    }
    for cards in &node.cards {
        let free = cards.all.difference(held_cards(cards));
        let usable = free.difference(cards.closed()).len();
        let all = cards.all.len();
        let _ = write!(text, ", {usable} of {all} {} free", cards.kind);
        if !cards.model.is_empty() {
            let _ = write!(text, " ({})", cards.model);
        }
        for loose in &cards.loose {
            let free = loose.all.saturating_sub(loose.used);
            let _ = write!(text, ", {free} of {} {} free", loose.all, loose.profile);
        }
    }
    for (kind, free, all) in counted_cards(node) {
        let _ = write!(text, ", {free} of {all} {kind} free");
    }
    if let Some((name, free, all)) = node.resources.iter().find(|(name, _, _)| *name == CPU) {
        let free = gangline::explain::Amount {
            resource: name,
            amount: *free,
        };
        let _ = write!(text, ", {free} of {} free", all / 1000);
    }
    text
}
