//! Terms about other pods, counted per domain as pods come and go.
//!
//! Equal terms of different templates share one counter. A term counts two things: pods that match
//! it, and pods that carry it as required anti-affinity (which binds those who come later).

use alloc::vec::Vec;

use super::domain::KeyIx;
use crate::request::{LabelSelector, NamespaceScope};

/// Index of a distinct term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TermIx(pub(crate) u32);

/// What makes two terms the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TermIdentity {
    pub(crate) key: KeyIx,
    pub(crate) selector: LabelSelector,
    /// Resolved: never all empty.
    pub(crate) namespaces: NamespaceScope,
}

#[derive(Clone, Debug)]
pub(crate) struct Term {
    pub(crate) identity: TermIdentity,
    /// Matching pods by domain of the key; for the node level by node.
    pub(crate) matching: Vec<u32>,
    /// Pods that carry the term as required anti-affinity, by domain.
    pub(crate) carriers: Vec<u32>,
    /// Matching pods anywhere, on nodes outside every domain too.
    pub(crate) total: u32,
}

impl Term {
    pub(crate) fn new(identity: TermIdentity) -> Self {
        Self {
            identity,
            matching: Vec::new(),
            carriers: Vec::new(),
            total: 0,
        }
    }

    pub(crate) fn matching_in(&self, domain: u32) -> u32 {
        self.matching.get(domain as usize).copied().unwrap_or(0)
    }

    pub(crate) fn carriers_in(&self, domain: u32) -> u32 {
        self.carriers.get(domain as usize).copied().unwrap_or(0)
    }
}

/// Adds or takes one in a table that grows with its domains.
pub(crate) fn bump(table: &mut Vec<u32>, domain: u32, add: bool) {
    let index = domain as usize;
    if table.len() <= index {
        table.resize(index + 1, 0);
    }
    let slot = &mut table[index];
    *slot = if add {
        *slot + 1
    } else {
        slot.saturating_sub(1)
    };
}
