//! The device layer: what a node's cards can give, and what is left.
//!
//! The search asks an [`Inventory`] three things and nothing else: how many members with this ask
//! fit, which cards one of them would get, and how two inventories compare. Today a card is whole
//! or taken; card models, MIG, shares and links go behind the same questions.

pub mod links;

use alloc::vec::Vec;

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

/// Cards of one kind that have no identity, because there are more than a [`CardSet`] holds: shares
/// under the cards' own name, as time slicing makes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) kind: KindIx,
    pub(crate) all: u32,
    pub(crate) used: u32,
}

/// The cards of one node. Each kind is either a pool or counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inventory {
    pools: SmallVec<[Pool; 1]>,
    counted: Vec<Counted>,
}

impl Inventory {
    /// An inventory with nothing used, of kinds with a count and unhealthy cards.
    pub(crate) fn new(kinds: impl IntoIterator<Item = (KindIx, u32, CardSet)>) -> Self {
        let mut inventory = Self::default();
        for (kind, count, unhealthy) in kinds {
            match CardSet::first(count) {
                Some(all) => {
                    inventory.pools.push(Pool {
                        kind,
                        all,
                        unhealthy,
                        used: CardSet::EMPTY,
                    });
                }
                None => inventory.counted.push(Counted {
                    kind,
                    all: count,
                    used: 0,
                }),
            }
        }
        inventory
    }

    /// Cards that have an identity, by kind.
    pub(crate) fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// Cards that have none, by kind.
    pub(crate) fn counted(&self) -> &[Counted] {
        &self.counted
    }

    fn pool(&self, kind: KindIx) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.kind == kind)
    }

    /// How many members with this ask fit at once.
    pub(crate) fn capacity(&self, ask: CardAsk) -> u32 {
        self.free(ask.kind) / ask.count.max(1)
    }

    /// The cards that the next member with this ask would get: the lowest free ones, which is also
    /// the order in which a device plugin's kubelet tends to hand them out. Counted cards are
    /// given without saying which.
    pub(crate) fn choose(&self, ask: CardAsk) -> Option<CardSet> {
        match self.pool(ask.kind) {
            Some(pool) => pool.free().lowest(ask.count),
            None => (self.capacity(ask) > 0).then_some(CardSet::EMPTY),
        }
    }

    /// How many cards of a kind are free.
    pub(crate) fn free(&self, kind: KindIx) -> u32 {
        let counted = || self.counted.iter().find(|counted| counted.kind == kind);
        match self.pool(kind) {
            Some(pool) => pool.free().len(),
            None => counted().map_or(0, |counted| counted.all.saturating_sub(counted.used)),
        }
    }

    /// How many cards of any kind are free.
    pub(crate) fn free_in_all(&self) -> u32 {
        self.signature()
            .fold(0, |sum, (_, free, _)| sum.saturating_add(free))
    }

    /// Takes the cards of an ask. Cards that the node does not have are ignored.
    pub(crate) fn take(&mut self, ask: CardAsk, cards: CardSet) {
        if let Some(pool) = self.pools.iter_mut().find(|pool| pool.kind == ask.kind) {
            debug_assert!(
                pool.used.intersection(cards).is_empty(),
                "a card is given twice"
            );
            pool.used = pool.used.union(cards);
        } else if let Some(counted) = self.counted.iter_mut().find(|c| c.kind == ask.kind) {
            counted.used = counted.used.saturating_add(ask.count);
        }
    }

    /// Gives back what an ask took.
    pub(crate) fn give_back(&mut self, ask: CardAsk, cards: CardSet) {
        if let Some(pool) = self.pools.iter_mut().find(|pool| pool.kind == ask.kind) {
            pool.used = pool.used.difference(cards);
        } else if let Some(counted) = self.counted.iter_mut().find(|c| c.kind == ask.kind) {
            counted.used = counted.used.saturating_sub(ask.count);
        }
    }

    /// Whether no ask can tell the two apart: same kinds with as many free cards.
    pub(crate) fn same_state(&self, other: &Inventory) -> bool {
        self.signature().eq(other.signature())
    }

    /// What [`same_state`](Self::same_state) compares: kind, free, all.
    pub(crate) fn signature(&self) -> impl Iterator<Item = (KindIx, u32, u32)> + '_ {
        let pools = self
            .pools
            .iter()
            .map(|pool| (pool.kind, pool.free().len(), pool.all.len()));
        pools.chain(self.counted.iter().map(|counted| {
            (
                counted.kind,
                counted.all.saturating_sub(counted.used),
                counted.all,
            )
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_without_identity_are_counted_and_may_be_overcommitted() {
        let ask = CardAsk { kind: 0, count: 30 };
        let mut cards = Inventory::new([(0, 80, CardSet::EMPTY)]);
        assert_eq!(
            (cards.capacity(ask), cards.choose(ask)),
            (2, Some(CardSet::EMPTY))
        );
        for _ in 0..3 {
            cards.take(ask, CardSet::EMPTY);
        }
        assert_eq!((cards.free(0), cards.choose(ask)), (0, None));
        cards.give_back(ask, CardSet::EMPTY);
        assert_eq!((cards.free(0), cards.free_in_all()), (20, 20));
    }

    #[test]
    fn unhealthy_and_used_cards_are_not_chosen() {
        let ask = CardAsk { kind: 3, count: 2 };
        let mut cards = Inventory::new([(3, 4, CardSet(0b0001))]);
        assert_eq!(cards.choose(ask), Some(CardSet(0b0110)));
        cards.take(ask, CardSet(0b0110));
        assert_eq!(
            (cards.free(3), cards.capacity(ask), cards.choose(ask)),
            (1, 0, None)
        );
        assert_eq!(cards.capacity(CardAsk { kind: 4, count: 1 }), 0);
    }
}
