//! The device layer: what a node's cards can give, and what is left.
//!
//! The search asks an [`Inventory`] three things and nothing else: how many members with this ask
//! fit, which cards one of them would get, and how two inventories compare. Today a card is whole
//! or taken; card models, MIG, shares and links go behind the same questions.

use smallvec::SmallVec;

use crate::bits::CardSet;

/// Index of a kind of card (a resource name such as `nvidia.com/gpu`) in its cluster.
pub(crate) type KindIx = u16;

/// What one member asks of the device layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CardAsk {
    /// The kind of card.
    pub(crate) kind: KindIx,
    /// How many whole cards, at least 1.
    pub(crate) count: u32,
}

/// Cards of one kind on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pool {
    pub(crate) kind: KindIx,
    pub(crate) all: CardSet,
    pub(crate) unhealthy: CardSet,
    pub(crate) used: CardSet,
}

impl Pool {
    pub(crate) fn free(&self) -> CardSet {
        self.all.difference(self.unhealthy).difference(self.used)
    }
}

/// The cards of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inventory {
    pools: SmallVec<[Pool; 1]>,
}

impl Inventory {
    pub(crate) fn new(pools: impl IntoIterator<Item = Pool>) -> Self {
        Self {
            pools: pools.into_iter().collect(),
        }
    }

    pub(crate) fn pools(&self) -> &[Pool] {
        &self.pools
    }

    fn pool(&self, kind: KindIx) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.kind == kind)
    }

    /// How many members with this ask fit at once.
    pub(crate) fn capacity(&self, ask: CardAsk) -> u32 {
        self.free(ask.kind).len() / ask.count.max(1)
    }

    /// The cards that the next member with this ask would get: the lowest free ones, which is also
    /// the order in which a device plugin's kubelet tends to hand them out.
    pub(crate) fn choose(&self, ask: CardAsk) -> Option<CardSet> {
        self.free(ask.kind).lowest(ask.count)
    }

    /// Free cards of a kind.
    pub(crate) fn free(&self, kind: KindIx) -> CardSet {
        self.pool(kind).map_or(CardSet::EMPTY, Pool::free)
    }

    /// Marks cards as used. Cards that the node does not have are ignored.
    pub(crate) fn take(&mut self, kind: KindIx, cards: CardSet) {
        if let Some(pool) = self.pools.iter_mut().find(|pool| pool.kind == kind) {
            debug_assert!(
                pool.used.intersection(cards).is_empty(),
                "a card is given twice"
            );
            pool.used = pool.used.union(cards);
        }
    }

    /// Marks cards as free again.
    pub(crate) fn give_back(&mut self, kind: KindIx, cards: CardSet) {
        if let Some(pool) = self.pools.iter_mut().find(|pool| pool.kind == kind) {
            pool.used = pool.used.difference(cards);
        }
    }

    /// Whether no ask can tell the two apart: same kinds with as many free cards.
    pub(crate) fn same_state(&self, other: &Inventory) -> bool {
        self.signature().eq(other.signature())
    }

    /// What [`same_state`](Self::same_state) compares.
    pub(crate) fn signature(&self) -> impl Iterator<Item = (KindIx, u32, u32)> + '_ {
        self.pools
            .iter()
            .map(|pool| (pool.kind, pool.free().len(), pool.all.len()))
    }
}
