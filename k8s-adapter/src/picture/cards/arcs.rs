//! Arcs between the cards of a node that are joined best.
//!
//! Data enters as the links of the cards and leaves as SVG.

use std::fmt::Write as _;

use gangline::{
    bits::CardSet,
    device::links::{Link, LinkTable},
    engine::{CardsView, NodeView},
};

use super::{super::Picture, Shape};
use crate::output::GangReport;

/// More arcs than this are a tangle.
const MOST_ARCS: usize = 12;

/// Pairs of cards worth an arc: those with the best direct link, when not all pairs have it and they
/// are few.
pub(super) fn arcs(cards: &CardsView<'_>) -> Vec<(u32, u32, Link)> {
    let Some(matrix) = cards.links.map(LinkTable::matrix) else {
        return Vec::new();
    };
    let pairs = (0..matrix.cards()).flat_map(|b| (0..b).map(move |a| (a, b)));
    let linked = |(a, b)| matrix.link(a, b).map(|link| (a, b, link));
    let all: Vec<(u32, u32, Link)> = pairs.filter_map(linked).collect();
    let best = all.iter().map(|(_, _, link)| *link).max();
    let mut chosen = all.clone();
    chosen.retain(|(_, _, link)| Some(*link) == best && link.is_fabric());
    if chosen.len() == all.len() || chosen.len() > MOST_ARCS {
        chosen.clear();
    }
    chosen
}

/// How far an arc over so many cards reaches down.
pub(super) fn arc_depth(span: u32) -> f32 {
    5.0 + 2.5 * span as f32
}

impl Picture<'_> {
    /// Arcs between the cards that are joined best; those between cards of one member are strong.
    pub(super) fn push_arcs(
        &self,
        svg: &mut String,
        node: &NodeView<'_>,
        cards: &CardsView<'_>,
        shape: &Shape,
        (at, below): ((f32, f32), f32),
    ) {
        let bit = |card: u32| CardSet(1_u64.checked_shl(card).unwrap_or(0));
        for (a, b, link) in arcs(cards) {
            let both = bit(a).union(bit(b));
            let holds_both = |gang: &&&GangReport| {
                gang.members.iter().any(|member| {
                    member.node.as_deref() == Some(node.name) && member.cards.contains_all(both)
                })
            };
            let holders = cards
                .held
                .iter()
                .filter_map(|(_, gang)| self.gangs.get(gang));
            let style = match holders.clone().find(holds_both) {
                Some(gang) => {
                    let colour = self.holder(gang.id).0.base;
                    format!("class=\"arc\" stroke=\"{colour}\" stroke-width=\"2.6\"")
                }
                None => "class=\"arc\" stroke=\"#a5afbb\" stroke-width=\"1\"".to_owned(),
            };
            let middle = |card| shape.corner(card, at).0 + shape.card.0 / 2.0;
            let (from, to) = (middle(a), middle(b));
            let depth = arc_depth(b - a);
            let y = below + 1.5;
            // The lowest point of a cubic curve lies at three quarters of its control points.
            let control = y + depth / 0.75;
            let _ = write!(
                svg,
                "<path {style} d=\"M{from:.1} {y:.1}C{from:.1} {control:.1} {to:.1} {control:.1} \
                 {to:.1} {y:.1}\"><title>cards {a} and {b}: {link}</title></path>"
            );
        }
    }
}
