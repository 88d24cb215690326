//! What members hold of the cards of their nodes: as data, and as short text.
//!
//! Data enters as the engine's views and leaves as [`Held`]. The text of a part is its card, a colon
//! and what it is: `0:1g.5gb@6` (a MIG profile and where it starts), `0:12288MiB/500m` (memory and
//! thousandths of the card's time), `0:1/4` (one replica of four). Nothing here decides anything.

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
};

use gangline::{
    bits::CardSet,
    device::{
        Slice,
        links::{Description, Link},
    },
    engine::{CardsView, LooseView, MemberView, NodeView, Part},
};
use serde::Serialize;

use super::MemberReport;

/// What a member holds of its node's cards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Parts of cards, by card.
    pub parts: Vec<PartReport>,
    /// How its cards reach each other, when it has several whole ones and that is known.
    pub links: Option<LinksReport>,
}

/// A part of a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartReport {
    /// The card; absent when the node does not tell which.
    pub card: Option<u32>,
    /// What it is.
    #[serde(flatten)]
    pub part: PartFacts,
}

/// What a part is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum PartFacts {
    /// A part of a card that is known.
    OfCard(Part),
    /// A MIG instance on some card.
    Somewhere {
        /// Which.
        slice: LooseSlice,
    },
}

/// A MIG instance of which nobody knows the card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LooseSlice {
    /// Its profile.
    pub profile: String,
}

/// How several cards reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LinksReport {
    /// The slowest hop of the best ring over the cards: what a collective operation waits for.
    pub bottleneck: Option<Link>,
    /// The slowest link of any pair.
    pub slowest_pair: Option<Link>,
    /// The NUMA node of all of them; `null` when they have several or it is not known.
    pub numa_node: Option<u8>,
}

impl From<Description> for LinksReport {
    fn from(description: Description) -> Self {
        Self {
            bottleneck: description.bottleneck,
            slowest_pair: description.slowest_pair,
            numa_node: description.numa_node,
        }
    }
}

impl Display for LinksReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Some(bottleneck) = self.bottleneck else {
            return Ok(());
        };
        write!(formatter, "{bottleneck}")?;
        if let Some(slowest) = self.slowest_pair.filter(|link| *link != bottleneck) {
            write!(formatter, ", some pairs {slowest}")?;
        }
        match self.numa_node {
            Some(node) => write!(formatter, ", NUMA node {node}"),
            None => Ok(()),
        }
    }
}

impl Held {
    /// What a member holds on its node.
    pub fn new(member: &MemberView<'_>, node: &NodeView<'_>) -> Self {
        let kind = member.wants_cards.map(|wants| wants.kind.as_str());
        let cards = node.cards.iter().find(|cards| Some(cards.kind) == kind);
        let Some(cards) = cards else {
            return Self::default();
        };
        let own = cards.parts.iter().filter(|part| part.pod == member.uid);
        let own = own.map(|part| PartReport {
            card: Some(part.card),
            part: PartFacts::OfCard(part.part),
        });
        let loose = member.devices.slices().filter_map(|slice| {
            let is_it = |loose: &&LooseView<'_>| loose.code == Some(slice.profile);
            let mut loose = cards.loose.iter().filter(|_| slice.card == Slice::NO_CARD);
            let loose = loose.find(is_it)?;
            let profile = loose.profile.to_owned();
            Some(PartReport {
                card: None,
                part: PartFacts::Somewhere {
                    slice: LooseSlice { profile },
                },
            })
        });
        let parts: Vec<PartReport> = own.chain(loose).collect();
        let links = if parts.is_empty() {
            links(cards, member.devices.cards)
        } else {
            None
        };
        Self { parts, links }
    }
}

/// How several cards of a node reach each other, where that is known.
pub fn links(cards: &CardsView<'_>, set: CardSet) -> Option<LinksReport> {
    let table = cards.links.filter(|_| set.len() > 1)?;
    Some(table.describe(set).into())
}

/// What a part is, without its card.
pub struct PartText<'a>(pub &'a Part);

impl Display for PartText<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match *self.0 {
            Part::Slice { start, profile, .. } => write!(formatter, "{profile}@{start}"),
            Part::Share {
                memory_mib,
                compute_milli: 0,
            } => write!(formatter, "{memory_mib}MiB"),
            Part::Share {
                memory_mib: 0,
                compute_milli,
            } => write!(formatter, "{compute_milli}m"),
            Part::Share {
                memory_mib,
                compute_milli,
            } => write!(formatter, "{memory_mib}MiB/{compute_milli}m"),
            Part::Replica { of } => write!(formatter, "1/{of}"),
        }
    }
}

impl Display for PartReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if let Some(card) = self.card {
            write!(formatter, "{card}:")?;
        }
        match &self.part {
            PartFacts::OfCard(part) => PartText(part).fmt(formatter),
            PartFacts::Somewhere { slice } => formatter.write_str(&slice.profile),
        }
    }
}

/// Alike parts on one card: which MIG instances of a profile, or how many of anything else.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Alike {
    Slices(&'static str),
    Replicas(u32),
    Others(String),
}

/// Whole cards and parts of some members on one node, for people: `0-3 4:1g.5gb@0-2,3g.20gb@4`.
/// Empty when they have no devices that can be told apart.
pub fn devices_text<'a>(members: impl IntoIterator<Item = &'a MemberReport>) -> String {
    let mut whole = CardSet::EMPTY;
    let mut by_card: BTreeMap<u32, BTreeMap<Alike, CardSet>> = BTreeMap::new();
    let mut counts: BTreeMap<(u32, Alike), u32> = BTreeMap::new();
    let mut loose: BTreeMap<&str, u32> = BTreeMap::new();
    for member in members {
        if member.parts.is_empty() {
            whole = whole.union(member.cards);
        }
        for part in &member.parts {
            let (card, facts) = match (part.card, &part.part) {
                (Some(card), PartFacts::OfCard(facts)) => (card, facts),
                (_, PartFacts::Somewhere { slice }) => {
                    *loose.entry(slice.profile.as_str()).or_default() += 1;
                    continue;
                }
                (None, PartFacts::OfCard(_)) => continue,
            };
            let (alike, start) = match *facts {
                Part::Slice { profile, start, .. } => (Alike::Slices(profile), start),
                Part::Replica { of } => (Alike::Replicas(of), 0),
                Part::Share { .. } => (Alike::Others(PartText(facts).to_string()), 0),
            };
            *counts.entry((card, alike.clone())).or_default() += 1;
            let starts = by_card.entry(card).or_default().entry(alike).or_default();
            *starts = starts.union(CardSet(1_u64.checked_shl(start.into()).unwrap_or(0)));
        }
    }
    let text_of = |card: u32, alike: &Alike, starts: CardSet| {
        let count = counts.get(&(card, alike.clone())).copied().unwrap_or(0);
        match alike {
            Alike::Slices(profile) => format!("{profile}@{starts}"),
            Alike::Replicas(of) => format!("{count}/{of}"),
            Alike::Others(text) if count == 1 => text.clone(),
            Alike::Others(text) => format!("{count}x{text}"),
        }
    };
    // Cards that are used alike stand together, in the order of the first of them.
    let mut alike_cards: Vec<(String, CardSet)> = Vec::new();
    for (card, parts) in by_card {
        let texts = parts
            .iter()
            .map(|(alike, starts)| text_of(card, alike, *starts));
        let text = texts.collect::<Vec<_>>().join("+");
        let card = CardSet(1_u64.checked_shl(card).unwrap_or(0));
        match alike_cards.iter_mut().find(|(known, _)| *known == text) {
            Some((_, cards)) => *cards = cards.union(card),
            None => alike_cards.push((text, card)),
        }
    }
    let whole = (!whole.is_empty()).then(|| whole.to_string());
    let parts = alike_cards
        .into_iter()
        .map(|(text, cards)| format!("{cards}:{text}"));
    let loose = loose
        .into_iter()
        .map(|(profile, count)| format!("{count}x{profile}"));
    let all: Vec<String> = whole.into_iter().chain(parts).chain(loose).collect();
    all.join(" ")
}

#[cfg(test)]
mod tests;
