//! Sets of small integers in machine words: cards of a node, nodes of a cluster.
//!
//! Plain words beat the general libraries here by an order of magnitude and need no heap (a card
//! set) or one allocation (a node set). `bitvec` is the model that tests compare with and, behind a
//! feature, a borrowed view for embedders.

use core::fmt;

#[cfg(feature = "alloc")]
mod node_set;
#[cfg(all(feature = "bitvec", target_pointer_width = "64"))]
mod view;

#[cfg(feature = "alloc")]
pub use node_set::{NodeIter, NodeSet};

/// Cards of one node: card `i` is bit `i`. At most [`CardSet::CAPACITY`] cards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct CardSet(pub u64);

impl CardSet {
    /// Cards are numbered below this.
    pub const CAPACITY: u32 = u64::BITS;
    /// No card.
    pub const EMPTY: Self = Self(0);

    /// Cards `0..count`; `None` above the capacity.
    pub const fn first(count: u32) -> Option<Self> {
        match count {
            0..64 => Some(Self((1 << count) - 1)),
            64 => Some(Self(u64::MAX)),
            _ => None,
        }
    }

    /// How many cards are in the set.
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether no card is in the set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether card `index` is in the set; `false` beyond the capacity.
    pub const fn contains(self, index: u32) -> bool {
        index < Self::CAPACITY && self.0 >> index & 1 == 1
    }

    /// Whether every card of `other` is in this set.
    pub const fn contains_all(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// Cards in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Cards in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Cards in this set and not in `other`.
    #[must_use]
    pub const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The `count` lowest cards of the set, or `None` when it has fewer. At most `count` steps.
    pub const fn lowest(self, count: u32) -> Option<Self> {
        if self.len() < count {
            return None;
        }
        let mut rest = self.0;
        let mut taken = 0;
        while taken < count {
            rest &= rest - 1;
            taken += 1;
        }
        Some(Self(self.0 & !rest))
    }

    /// The cards in ascending order.
    pub const fn iter(self) -> CardIter {
        CardIter(self.0)
    }
}

impl IntoIterator for CardSet {
    type Item = u32;
    type IntoIter = CardIter;

    fn into_iter(self) -> CardIter {
        self.iter()
    }
}

/// Ascending card numbers of a [`CardSet`].
#[derive(Clone, Debug)]
pub struct CardIter(u64);

impl Iterator for CardIter {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.0 == 0 {
            return None;
        }
        let index = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(index)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.0.count_ones() as usize;
        (len, Some(len))
    }
}

impl ExactSizeIterator for CardIter {}

/// Shows runs: `0-3,6`.
impl fmt::Display for CardSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut index = 0;
        let mut first = true;
        while index < Self::CAPACITY {
            if !self.contains(index) {
                index += 1;
                continue;
            }
            let start = index;
            while self.contains(index + 1) {
                index += 1;
            }
            if !first {
                formatter.write_str(",")?;
            }
            first = false;
            if start == index {
                write!(formatter, "{start}")?;
            } else {
                write!(formatter, "{start}-{index}")?;
            }
            index += 1;
        }
        Ok(())
    }
}
