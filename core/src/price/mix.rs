//! The usual mix: which kinds of work ask for room, and how often. Integers only.

use alloc::vec::Vec;

use super::kind::{CARD_MILLI, Catalogue, KindSet, NodeKindIx};

/// What one member of a gang asks of a node's cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Demand {
    /// No card.
    None,
    /// Part of one card, in thousandths; 1000 is a whole one.
    Share {
        /// Thousandths of a card.
        milli: u16,
    },
    /// Whole cards of one node.
    Whole {
        /// How many.
        count: u16,
    },
    /// One slice of a card that can be cut.
    Slice {
        /// The profile, as [`Geometry::placements`](super::Geometry::placements) numbers them.
        profile: u16,
    },
}

/// Work that is alike for a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WorkType {
    /// What it asks of the cards.
    pub demand: Demand,
    /// Processor time it asks for.
    pub milli_cpu: i64,
    /// The kinds of nodes it may use; `None` is every kind.
    pub allowed: Option<KindSet>,
}

impl WorkType {
    /// Whether it may use nodes of a kind, whatever is left on them.
    pub fn may_use(&self, kind: NodeKindIx) -> bool {
        self.allowed
            .as_ref()
            .is_none_or(|allowed| allowed.contains(kind))
    }

    /// Thousandths of cards that it takes; for a slice, of the first geometry that has its
    /// profile.
    pub fn size_milli(&self, catalogue: &Catalogue) -> i64 {
        let card = i64::from(CARD_MILLI);
        match self.demand {
            Demand::None => 0,
            Demand::Share { milli } => i64::from(milli.min(CARD_MILLI)),
            Demand::Whole { count } => i64::from(count) * card,
            Demand::Slice { profile } => catalogue
                .geometries
                .iter()
                .find_map(|geometry| {
                    let (_, mask) = geometry.legal().find(|&(of, _)| of == profile)?;
                    let units = i64::from(geometry.full().count_ones()).max(1);
                    Some(card * i64::from(mask.count_ones()) / units)
                })
                .unwrap_or(0),
        }
    }
}

/// Weight of one arrival, so that forgetting is smooth.
pub const ARRIVAL: u64 = 1 << 20;

/// How often each type of work is asked for. Only the ratios of the weights count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Mix {
    /// Ascending by type, each once, weights above zero.
    types: Vec<(WorkType, u64)>,
}

impl Mix {
    /// Nothing is known.
    pub const fn new() -> Self {
        Self { types: Vec::new() }
    }

    /// The types and their weights, ascending.
    pub fn types(&self) -> &[(WorkType, u64)] {
        &self.types
    }

    /// Notes `count` arrivals of a type. O(log n) when the type is known.
    pub fn add(&mut self, work: &WorkType, count: u64) {
        self.add_weight(work, count.saturating_mul(ARRIVAL));
    }

    /// Adds to the weight of a type; [`ARRIVAL`] is one arrival. O(log n) when the type is known.
    pub fn add_weight(&mut self, work: &WorkType, weight: u64) {
        if weight == 0 {
            return;
        }
        match self.types.binary_search_by(|(known, _)| known.cmp(work)) {
            Ok(index) => {
                if let Some((_, sum)) = self.types.get_mut(index) {
                    *sum = sum.saturating_add(weight);
                }
            }
            Err(index) => self.types.insert(index, (work.clone(), weight)),
        }
    }

    /// Forgets the share `1 / 2^shift` of what was seen; a type whose weight falls below a
    /// thousandth of an arrival is dropped. O(n).
    pub fn forget(&mut self, shift: u32) {
        for (_, weight) in &mut self.types {
            *weight -= weight.checked_shr(shift).unwrap_or(0);
        }
        self.types.retain(|&(_, weight)| weight >= ARRIVAL >> 10);
    }
}
