//! What must hold of the devices that members have, and of the cards of a node.
//!
//! Data enters as [`Expect`] and as what the engine shows; differences leave as lines.

use gangline::{
    bits::CardSet,
    engine::{CardsView, MemberView, NodeView},
};

use super::{Differences, Expect, Seen};
use crate::output::{devices::Held, held_cards};

impl Expect {
    /// Whatever is said about the devices of members that have a place.
    pub(super) fn check_devices(
        &self,
        seen: &Seen<'_>,
        placed: &[&MemberView<'_>],
        differences: &mut Differences,
    ) {
        if let Some(cards) = &self.cards {
            let held = placed.iter().fold(CardSet::EMPTY, |set, member| {
                set.union(member.devices.cards)
            });
            if held.iter().ne(cards.iter().copied()) {
                differences
                    .0
                    .push(format!("cards: expected {cards:?}, is [{held}]"));
            }
        }
        let held = |member: &&MemberView<'_>| {
            let node = seen.nodes.iter().find(|node| Some(node.ix) == member.node);
            node.map(|node| Held::new(member, node)).unwrap_or_default()
        };
        if let Some(parts) = &self.parts {
            let is: Vec<Held> = placed.iter().map(held).collect();
            let mut is: Vec<String> = is
                .iter()
                .flat_map(|held| held.parts.iter().map(ToString::to_string))
                .collect();
            let mut expected = parts.clone();
            expected.sort_unstable();
            is.sort_unstable();
            if is != expected {
                differences
                    .0
                    .push(format!("parts: expected {expected:?}, is {is:?}"));
            }
        }
        if (self.link.is_some() || self.numa_node.is_some()) && placed.is_empty() {
            differences
                .0
                .push("link, numa_node: nobody has cards".to_owned());
        }
        for member in placed {
            let links = held(member).links;
            let shown = |shown: Option<String>| shown.unwrap_or_else(|| "not known".to_owned());
            if let Some(expected) = self.link {
                let is = links.as_ref().and_then(|links| links.bottleneck);
                let is = shown(is.map(|link| link.to_string()));
                let what = format!("link of {}", member.name);
                differences.equal(&what, Some(&expected.to_string()), &is);
            }
            if let Some(expected) = self.numa_node {
                let is = shown(
                    links
                        .and_then(|links| links.numa_node)
                        .map(|n| n.to_string()),
                );
                let what = format!("NUMA node of {}", member.name);
                differences.equal(&what, Some(&expected.to_string()), &is);
            }
        }
    }

    /// Whatever is said about the cards of a node.
    pub(super) fn check_cards(&self, node: &NodeView<'_>, differences: &mut Differences) {
        if let Some(expected) = &self.untouched {
            let free = |cards: &CardsView<'_>| cards.all.difference(held_cards(cards));
            let is = node.cards.first().map_or(CardSet::EMPTY, free);
            if is.iter().ne(expected.iter().copied()) {
                differences
                    .0
                    .push(format!("untouched: expected {expected:?}, is [{is}]"));
            }
        }
        for (card, count) in &self.parts_on {
            let cards = node.cards.first().filter(|cards| cards.all.contains(*card));
            let Some(cards) = cards else {
                differences.0.push(format!("there is no card {card}"));
                continue;
            };
            let held = cards.parts.iter().filter(|part| part.card == *card).count();
            differences.count(&format!("parts on card {card}"), Some(count), held as i64);
        }
    }
}
