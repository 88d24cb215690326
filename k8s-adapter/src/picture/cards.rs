//! The cards of one kind on a node: whole ones as squares, cards that are used in parts as bars of
//! segments, and arcs between those that are joined best.
//!
//! Data enters as a [`CardsView`] and leaves as SVG. A MIG instance is a segment where it starts, as
//! wide as its memory; shares are as wide as what they take, replicas are equal; what exists and is
//! free is only outlined. How large everything is follows from the [`Scale`] and from the cards alone,
//! so that neighbours with equal cards are drawn alike.

use std::{collections::BTreeMap, fmt::Write as _};

use gangline::{
    GangId,
    bits::CardSet,
    cluster::spec::CardMode,
    engine::{CardsView, NodeView},
};

use super::{
    Escaped, Picture,
    look::{self, Look},
    node::Scale,
};
use crate::output::{held_cards, parted_cards};

mod arcs;
mod parts;

use arcs::{arc_depth, arcs};
use parts::push_outlines;

/// Squares in one row.
const ROW: u32 = 8;
/// Width of a bar in squares: each of eight memory slices gets room for two letters.
const BAR_SQUARES: f32 = 6.0;

/// Sizes of the cards of one kind on one node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Width and height of one card.
    card: (f32, f32),
    /// From one card to the next.
    pitch: (f32, f32),
    /// Room for a card's number on its left; 0 for no numbers.
    gutter: f32,
    per_row: u32,
    rows: u32,
    /// Room for arcs below.
    arcs: f32,
    /// Room for lines about instances of unknown cards below.
    lines: f32,
}

impl Shape {
    /// The sizes for some cards.
    pub(super) fn of(scale: &Scale, cards: &CardsView<'_>) -> Self {
        let count = cards.all.len();
        let large = scale.name_font > 10.0;
        let parted =
            !cards.parts.is_empty() || cards.modes.iter().any(|mode| *mode != CardMode::Whole);
        let bars = large && parted;
        let (width, gutter, per_row) = match (bars, count) {
            (true, 0..=4) => (scale.square * BAR_SQUARES, scale.name_font, 1),
            (true, _) => (scale.square * BAR_SQUARES, scale.name_font, 2),
            (false, _) => (scale.square, 0.0, ROW),
        };
        let widest = arcs(cards).iter().map(|arc| arc.1 - arc.0).max();
        let arcs = match widest {
            Some(span) if large && !bars && count <= ROW => arc_depth(span) + 3.0,
            _ => 0.0,
        };
        let lines = if large {
            cards.loose.len() as f32 * (scale.name_font + 2.0)
        } else {
            0.0
        };
        Self {
            card: (width, scale.square),
            pitch: (gutter + width + scale.gap, scale.square + scale.gap),
            gutter,
            per_row,
            rows: count.div_ceil(per_row),
            arcs,
            lines,
        }
    }

    /// Width and height of all of them, without the space to what follows.
    pub(super) fn size(&self, scale: &Scale, cards: &CardsView<'_>) -> (f32, f32) {
        let columns = cards.all.len().min(self.per_row);
        let width = (columns as f32 * self.pitch.0 - scale.gap).max(0.0);
        let height = (self.rows as f32 * self.pitch.1 - scale.gap).max(0.0);
        (width, height + self.arcs + self.lines)
    }

    /// Upper left corner of a card.
    fn corner(&self, card: u32, (x, y): (f32, f32)) -> (f32, f32) {
        let (row, column) = (card / self.per_row, card % self.per_row);
        (
            x + self.gutter + column as f32 * self.pitch.0,
            y + row as f32 * self.pitch.1,
        )
    }
}

/// Whether arcs are drawn for these cards.
pub(super) fn has_arcs(scale: &Scale, cards: &CardsView<'_>) -> bool {
    Shape::of(scale, cards).arcs > 0.0
}

impl Picture<'_> {
    /// Draws the cards of one kind with their upper left corner at `at`.
    pub(super) fn push_cards(
        &self,
        svg: &mut String,
        node: &NodeView<'_>,
        cards: &CardsView<'_>,
        at: (f32, f32),
    ) {
        let shape = Shape::of(&self.scale, cards);
        let kind = cards.kind;
        let parted = parted_cards(cards);
        let mut by_holder: BTreeMap<GangId, CardSet> = BTreeMap::new();
        for &(held, gang) in &cards.held {
            let all = by_holder.entry(gang).or_default();
            *all = all.union(held.difference(parted));
        }
        let free = cards.all.difference(held_cards(cards));
        let closed = cards.closed();
        let usable = free.difference(closed);
        let title = format!("free {kind} {usable}");
        push_boxes(svg, usable, &shape, at, "class=\"free\"", &title);
        let broken = free.intersection(closed);
        let title = format!("unhealthy {kind} {broken}");
        push_boxes(svg, broken, &shape, at, "class=\"bad\"", &title);
        for (gang, held) in by_holder {
            let (look, style, name) = self.holder(gang);
            let title = format!("{name}: {kind} {held}");
            push_boxes(svg, held, &shape, at, &style, &title);
            if self.scale.square > 10.0 && !look.letter.is_empty() {
                push_letters(svg, held, &shape, at, &look);
            }
        }
        push_boxes(svg, parted, &shape, at, "class=\"free\"", "");
        for card in cards.all.difference(closed.difference(parted)) {
            if !held_cards(cards).contains(card) || parted.contains(card) {
                push_outlines(svg, cards.mode(card), cards, &shape, shape.corner(card, at));
            }
        }
        for card in parted {
            self.push_parts(svg, cards, card, &shape, shape.corner(card, at));
        }
        push_crosses(svg, closed, &shape, at);
        if shape.gutter > 0.0 {
            push_numbers(svg, cards.all, &shape, at);
        }
        let below = at.1 + shape.rows as f32 * shape.pitch.1 - self.scale.gap;
        if shape.arcs > 0.0 {
            self.push_arcs(svg, node, cards, &shape, (at, below));
        }
        if shape.lines > 0.0 {
            self.push_loose(svg, cards, (at.0, below + shape.arcs));
        }
    }

    /// How a holder looks, the attributes of what it holds, and its name.
    fn holder(&self, gang: GangId) -> (Look, String, String) {
        let look = self.looks.get(&gang).cloned().unwrap_or_else(look::single);
        let (name, new) = match self.gangs.get(&gang) {
            Some(gang) => (gang.full_name(), gang.word() == "placed"),
            None => ("a pod that is over".to_owned(), false),
        };
        let mut style = format!("fill=\"{}\"", look.fill);
        if new {
            let width = self.scale.square / 15.0;
            let _ = write!(style, " class=\"new\" stroke-width=\"{width:.1}\"");
        }
        (look, style, name)
    }

    /// Instances of which nobody knows the card: a line each.
    fn push_loose(&self, svg: &mut String, cards: &CardsView<'_>, (x, y): (f32, f32)) {
        let font = self.scale.name_font - 1.0;
        let mut line = y + self.scale.name_font + 1.0;
        for loose in &cards.loose {
            let text = format!("{} of {} {} held", loose.used, loose.all, loose.profile);
            let _ = write!(
                svg,
                "<text class=\"node-name\" x=\"{x:.1}\" y=\"{line:.1}\" font-size=\"{font}\">{}</text>",
                Escaped(&text)
            );
            line += self.scale.name_font + 2.0;
        }
    }
}

/// Boxes of cards as one path with one tooltip.
fn push_boxes(
    svg: &mut String,
    cards: CardSet,
    shape: &Shape,
    at: (f32, f32),
    style: &str,
    title: &str,
) {
    if cards.is_empty() {
        return;
    }
    let _ = write!(svg, "<path {style} d=\"");
    let (width, height) = shape.card;
    for card in cards {
        let (x, y) = shape.corner(card, at);
        let _ = write!(svg, "M{x:.1} {y:.1}h{width}v{height}h-{width}z");
    }
    if title.is_empty() {
        svg.push_str("\"/>");
    } else {
        let _ = write!(svg, "\"><title>{}</title></path>", Escaped(title));
    }
}

fn push_letters(svg: &mut String, cards: CardSet, shape: &Shape, at: (f32, f32), look: &Look) {
    for card in cards {
        push_label(svg, &look.letter, look, shape.corner(card, at), shape.card);
    }
}

/// A letter or a few in the middle of a box.
fn push_label(
    svg: &mut String,
    text: &str,
    look: &Look,
    (x, y): (f32, f32),
    (width, height): (f32, f32),
) {
    if text.is_empty() {
        return;
    }
    // Two letters are narrower than a square is wide; more need a smaller font.
    let letters = text.chars().count();
    let font = height * if letters > 2 { 0.41 } else { 0.6 };
    let font = font.min(width / letters as f32 * 1.55);
    let _ = write!(
        svg,
        "<text class=\"letter\" x=\"{:.1}\" y=\"{:.1}\" font-size=\"{font:.1}\" \
         style=\"fill:{};stroke:{}\" pointer-events=\"none\">{}</text>",
        x + width / 2.0,
        y + height / 2.0 + font * 0.36,
        look.ink,
        look.base,
        Escaped(text)
    );
}

fn push_crosses(svg: &mut String, cards: CardSet, shape: &Shape, at: (f32, f32)) {
    if cards.is_empty() {
        return;
    }
    let (width, height) = shape.card;
    let stroke = (height / 9.0).max(1.0);
    let _ = write!(
        svg,
        "<path class=\"cross\" stroke-width=\"{stroke:.1}\" d=\""
    );
    for card in cards {
        let (x, y) = shape.corner(card, at);
        let _ = write!(
            svg,
            "M{x:.1} {y:.1}l{width} {height}m0-{height}l-{width} {height}"
        );
    }
    svg.push_str("\"/>");
}

/// The numbers of cards that are drawn as bars.
fn push_numbers(svg: &mut String, cards: CardSet, shape: &Shape, at: (f32, f32)) {
    let font = shape.gutter - 2.0;
    for card in cards {
        let (x, y) = shape.corner(card, at);
        let _ = write!(
            svg,
            "<text class=\"number\" x=\"{:.1}\" y=\"{:.1}\" font-size=\"{font:.1}\">{card}</text>",
            x - 3.0,
            y + shape.card.1 / 2.0 + font * 0.36
        );
    }
}
