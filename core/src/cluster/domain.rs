//! Topology: for each node label that somebody uses as a level, which nodes share a value.
//!
//! A partition is one such label; its domains are the label's values. Configured levels also keep
//! per-domain capacity, so that a search can skip domains that cannot do without touching a node.
//! Key 0 is the node itself.

use alloc::{boxed::Box, vec::Vec};

use super::NodeIx;
use crate::{device::Inventory, hash::Map, symbols::Symbol};

/// Index of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct KeyIx(pub(crate) u16);

/// The partition whose domains are single nodes.
pub(crate) const NODE_KEY: KeyIx = KeyIx(0);
/// "This node lacks the label."
pub(crate) const NO_DOMAIN: u32 = u32::MAX;
/// Nodes are told apart by free cards up to here; beyond, free cards are only added up.
const MOST_CARDS: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct Domain {
    pub(crate) name: Box<str>,
    /// Present nodes in node order (valid after `Cluster::settle_order`).
    pub(crate) nodes: Vec<NodeIx>,
    /// By kind: how many nodes have this many free cards.
    by_free_cards: Vec<[u32; MOST_CARDS + 1]>,
    /// By kind: free cards of nodes that have more than [`MOST_CARDS`] free.
    counted_free: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(crate) struct Partition {
    pub(crate) key: Symbol,
    /// Domain of each node, [`NO_DOMAIN`] without the label.
    pub(crate) domain_of: Vec<u32>,
    pub(crate) domains: Vec<Domain>,
    by_name: Map<Box<str>, u32>,
}

impl Partition {
    pub(crate) fn new(key: Symbol) -> Self {
        Self {
            key,
            domain_of: Vec::new(),
            domains: Vec::new(),
            by_name: Map::default(),
        }
    }

    pub(crate) fn domain_of(&self, node: NodeIx) -> u32 {
        self.domain_of
            .get(node.0 as usize)
            .copied()
            .unwrap_or(NO_DOMAIN)
    }

    /// The domain with this name, if there is or was one.
    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// The domain with this name, made if new.
    pub(crate) fn domain(&mut self, name: &str) -> u32 {
        if let Some(found) = self.find(name) {
            return found;
        }
        self.by_name.insert(name.into(), self.domains.len() as u32);
        self.domains.push(Domain {
            name: name.into(),
            nodes: Vec::new(),
            by_free_cards: Vec::new(),
            counted_free: Vec::new(),
        });
        (self.domains.len() - 1) as u32
    }

    pub(crate) fn set(&mut self, node: NodeIx, domain: u32) {
        let index = node.0 as usize;
        if self.domain_of.len() <= index {
            self.domain_of.resize(index + 1, NO_DOMAIN);
        }
        self.domain_of[index] = domain;
    }

    /// Notes that the free cards of one kind on a node changed.
    pub(crate) fn recount(&mut self, node: NodeIx, kind: u16, before: u32, after: u32) {
        let domain = self.domain_of(node);
        let Some(domain) = self.domains.get_mut(domain as usize) else {
            return;
        };
        domain.shift(kind, before, false);
        domain.shift(kind, after, true);
    }

    /// Adds or takes a node's free cards to or from its domain's capacity.
    pub(crate) fn count(&mut self, node: NodeIx, cards: &Inventory, add: bool) {
        let domain = self.domain_of(node);
        let Some(domain) = self.domains.get_mut(domain as usize) else {
            return;
        };
        for (kind, free) in cards.free_by_kind() {
            domain.shift(kind, free, add);
        }
    }
}

impl Domain {
    /// Adds or takes a node with so many free cards of a kind.
    fn shift(&mut self, kind: u16, free: u32, add: bool) {
        let change = |slot: &mut u32, by: u32| {
            *slot = if add {
                slot.saturating_add(by)
            } else {
                slot.saturating_sub(by)
            };
        };
        let kind = usize::from(kind);
        if self.by_free_cards.len() <= kind {
            self.by_free_cards.resize(kind + 1, [0; MOST_CARDS + 1]);
            self.counted_free.resize(kind + 1, 0);
        }
        match self.by_free_cards[kind].get_mut(free as usize) {
            Some(slot) => change(slot, 1),
            None => change(&mut self.counted_free[kind], free),
        }
    }

    /// At most this many members with `count` cards each fit here: exact for cards alone, as long
    /// as no node has more than [`MOST_CARDS`].
    pub(crate) fn card_capacity(&self, kind: u16, count: u32) -> u32 {
        let Some(nodes) = self.by_free_cards.get(usize::from(kind)) else {
            return 0;
        };
        let count = count.max(1);
        let fits = nodes
            .iter()
            .zip(0..)
            .map(|(&nodes, free): (&u32, u32)| free / count * nodes);
        fits.sum::<u32>()
            .saturating_add(self.counted_free[usize::from(kind)] / count)
    }

    /// Free cards of a kind.
    pub(crate) fn free_cards(&self, kind: u16) -> u32 {
        self.card_capacity(kind, 1)
    }
}
