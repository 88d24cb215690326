//! What of a node's cards is in use, and how many asks still fit.
//!
//! Data enters as compiled [`Hardware`] and as what members take and give back; [`choose`] picks the
//! devices. An inventory can be wrong in the sense that more is taken than there is (somebody else
//! placed a pod): then nothing more fits, and giving back what was taken is still exact.
//!
//! [`choose`]: super::choose

use alloc::{sync::Arc, vec::Vec};

use smallvec::SmallVec;

use super::{
    Devices, Slice,
    ask::CardAsk,
    hardware::{Hardware, Mode},
    links::Nearness,
    mig::MigState,
    parts,
};
use crate::{bits::CardSet, symbols::Symbol};

mod change;
mod compare;

use change::change_state;

/// Index of a kind of card (a resource name such as `nvidia.com/gpu`) in its cluster.
pub(crate) type KindIx = u16;

/// Cards of one kind on one node.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub(crate) kind: KindIx,
    pub(crate) hardware: Arc<Hardware>,
    pub(crate) all: CardSet,
    /// Those that must not be used, the closed ones among them.
    pub(crate) unhealthy: CardSet,
    /// Those that stay out whatever their health.
    pub(crate) closed: CardSet,
    /// Taken as a whole.
    pub(crate) used: CardSet,
    /// Taken in part.
    pub(crate) parted: CardSet,
    /// Nobody knows what members that are there use of these: nothing more is given.
    pub(crate) in_doubt: CardSet,
    /// Where its cards' states start, if they can be parted.
    first: u32,
}

impl Pool {
    /// Cards that can be taken as a whole.
    pub(crate) fn free(&self) -> CardSet {
        self.healthy().intersection(self.hardware.whole)
    }

    /// Cards that nobody has anything of, whether they may be given as a whole or not.
    fn healthy(&self) -> CardSet {
        self.partable().difference(self.parted)
    }

    /// Cards of which parts can be taken.
    pub(crate) fn partable(&self) -> CardSet {
        let out = self.unhealthy.union(self.in_doubt);
        self.all.difference(out).difference(self.used)
    }
}

/// Cards of one kind that have no identity, because there are more than a [`CardSet`] holds: shares
/// under the cards' own name, as time slicing makes them.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    pub(crate) kind: KindIx,
    pub(crate) hardware: Arc<Hardware>,
    pub(crate) all: u32,
    /// Wide enough for all that pods can ask for, or giving back would not be exact.
    pub(crate) used: u64,
}

impl Counted {
    fn free(&self) -> u32 {
        u64::from(self.all).saturating_sub(self.used) as u32
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, self.all, self.used) == (other.kind, other.all, other.used)
            && Arc::ptr_eq(&self.hardware, &other.hardware)
    }
}

/// MIG instances of which only the number is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loose {
    pub(crate) kind: KindIx,
    pub(crate) all: u32,
    pub(crate) used: u32,
}

/// What is taken of one card that is used in parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CardState {
    pub(crate) mig: MigState,
    pub(crate) memory_mib: u64,
    /// Shares that count overheads: as long as there are some, the card's reserve is nobody's.
    pub(crate) reserving: u32,
    pub(crate) compute_milli: u32,
    pub(crate) replicas: u32,
    /// Slices, shares and replicas taken.
    pub(crate) parts: u32,
    /// Who has it for himself, as long as parts are taken.
    pub(crate) exclusive: Option<Symbol>,
}

/// What is left of a card, for prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CardUse {
    /// All of it, as a whole only.
    Whole,
    /// All of it.
    Free,
    /// So many thousandths of it.
    Left(u16),
    /// It is cut, and these units are taken.
    Sliced(u16),
    /// Nothing that can be given.
    Gone,
}

/// What is left of a node's cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    /// Cards of any kind that can be taken as a whole.
    pub(crate) free: u32,
    /// Of cards that are used in parts, in thousandths of a card.
    pub(crate) milli: u32,
}

/// Members of a share group on a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GroupUse {
    pub(crate) kind: KindIx,
    pub(crate) group: Symbol,
    pub(crate) card: u8,
    pub(crate) members: u32,
}

/// The cards of one node. Each kind is either a pool or counted.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    pools: SmallVec<[Pool; 1]>,
    counted: Vec<Counted>,
    states: Vec<CardState>,
    loose: Vec<Loose>,
    groups: Vec<GroupUse>,
}

impl Clone for Inventory {
    fn clone(&self) -> Self {
        Self {
            pools: self.pools.clone(),
            counted: self.counted.clone(),
            states: self.states.clone(),
            loose: self.loose.clone(),
            groups: self.groups.clone(),
        }
    }

    // Classes are made again and again from the same memory.
    fn clone_from(&mut self, source: &Self) {
        self.pools.clone_from(&source.pools);
        self.counted.clone_from(&source.counted);
        self.states.clone_from(&source.states);
        self.loose.clone_from(&source.loose);
        self.groups.clone_from(&source.groups);
    }
}

impl Inventory {
    /// An inventory with nothing used: by kind the hardware, how many, those unhealthy and those closed,
    /// and loose slices in the hardware's order.
    pub(crate) fn new<'a>(
        kinds: impl IntoIterator<Item = (KindIx, Arc<Hardware>, u32, (CardSet, CardSet), &'a [u32])>,
    ) -> Self {
        let mut inventory = Self::default();
        for (kind, hardware, count, (unhealthy, closed), loose) in kinds {
            let is_given = !hardware.is_changing;
            let loose = loose.iter().map(|&all| Loose {
                kind,
                all: if is_given { all } else { 0 },
                used: 0,
            });
            inventory.loose.extend(loose);
            let Some(all) = CardSet::first(count) else {
                inventory.counted.push(Counted {
                    kind,
                    hardware,
                    all: if is_given { count } else { 0 },
                    used: 0,
                });
                continue;
            };
            let closed = if is_given { closed } else { all };
            let first = inventory.states.len() as u32;
            let parted = hardware.modes.len();
            inventory
                .states
                .resize(first as usize + parted, CardState::default());
            inventory.pools.push(Pool {
                kind,
                hardware,
                all,
                unhealthy: unhealthy.union(closed),
                closed,
                used: CardSet::EMPTY,
                parted: CardSet::EMPTY,
                in_doubt: CardSet::EMPTY,
                first,
            });
        }
        inventory
    }

    /// Gives everything back.
    pub(crate) fn empty(&mut self) {
        for pool in &mut self.pools {
            (pool.used, pool.parted) = (CardSet::EMPTY, CardSet::EMPTY);
            pool.in_doubt = CardSet::EMPTY;
        }
        self.counted.iter_mut().for_each(|counted| counted.used = 0);
        self.states.fill(CardState::default());
        self.loose.iter_mut().for_each(|loose| loose.used = 0);
        self.groups.clear();
    }

    /// Replaces the unhealthy cards of a kind; returns which they were.
    pub(super) fn set_unhealthy(&mut self, kind: KindIx, cards: CardSet) -> CardSet {
        let pool = self.pools.iter_mut().find(|pool| pool.kind == kind);
        pool.map_or(CardSet::EMPTY, |pool| {
            core::mem::replace(&mut pool.unhealthy, cards)
        })
    }

    /// The same cards, where those in use have the owner that an ask wants, or none like it.
    pub(super) fn owned_by(&self, owner: Option<Symbol>) -> Self {
        let mut other = self.clone();
        for state in &mut other.states {
            state.exclusive = owner;
        }
        other
    }

    /// By kind the cards of which more is taken than they have: somebody else placed a pod there, or a
    /// card was lost.
    pub(crate) fn overfull(&self) -> impl Iterator<Item = (KindIx, CardSet)> + '_ {
        self.pools.iter().map(|pool| {
            let states = (0..).zip(self.states(pool));
            let overfull =
                states.filter(|(card, state)| parts::is_overfull(&pool.hardware, *card, state));
            let cards = overfull.fold(CardSet::EMPTY, |set, (card, _)| {
                set.union(CardSet(1 << card))
            });
            (pool.kind, cards)
        })
    }

    /// Whether more is taken of some card than it has.
    pub(crate) fn is_overfull(&self) -> bool {
        self.overfull().any(|(_, cards)| !cards.is_empty())
    }

    /// Whether nobody knows what is used of some cards.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.pools.iter().any(|pool| !pool.in_doubt.is_empty())
    }

    /// Says of which cards nobody knows what is used, by kind; true if that is news.
    pub(crate) fn set_in_doubt(&mut self, in_doubt: &[(KindIx, CardSet)]) -> bool {
        let mut is_news = false;
        for pool in &mut self.pools {
            let cards = in_doubt.iter().find(|(kind, _)| *kind == pool.kind);
            let cards = cards.map_or(CardSet::EMPTY, |(_, cards)| *cards);
            is_news |= core::mem::replace(&mut pool.in_doubt, cards) != cards;
        }
        is_news
    }

    /// Cards that have an identity, by kind.
    pub(crate) fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// Cards that have none, by kind.
    pub(crate) fn counted(&self) -> &[Counted] {
        &self.counted
    }

    /// Slices whose card nobody told, by kind, in the order of the hardware's list.
    pub(crate) fn loose(&self, kind: KindIx) -> impl Iterator<Item = &Loose> + Clone {
        self.loose.iter().filter(move |loose| loose.kind == kind)
    }

    pub(crate) fn pool(&self, kind: KindIx) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.kind == kind)
    }

    /// What is taken of the cards of a pool; nothing when they are only used whole.
    pub(crate) fn states(&self, pool: &Pool) -> &[CardState] {
        let first = pool.first as usize;
        let end = first + pool.hardware.modes.len();
        self.states.get(first..end).unwrap_or_default()
    }

    /// The card that has members of a share group.
    pub(crate) fn card_of_group(&self, kind: KindIx, group: Symbol) -> Option<u32> {
        let mut uses = self.groups.iter();
        let found = uses.find(|usage| (usage.kind, usage.group) == (kind, group));
        found.map(|usage| usage.card.into())
    }

    /// Cards of a kind that have members of some share group.
    pub(super) fn grouped(&self, kind: KindIx) -> CardSet {
        let uses = self.groups.iter().filter(|usage| usage.kind == kind);
        uses.fold(CardSet::EMPTY, |set, usage| {
            set.union(CardSet(1 << usage.card))
        })
    }

    /// How many of these cards can be given in parts too.
    pub(crate) fn partable_among(&self, kind: KindIx, cards: CardSet) -> u32 {
        let pool = self.pool(kind);
        pool.map_or(0, |pool| {
            cards.len() - pool.hardware.whole_only_among(cards)
        })
    }

    /// How many of these cards nobody has anything of.
    pub(crate) fn idle_among(&self, kind: KindIx, cards: CardSet) -> u32 {
        let pool = self.pool(kind);
        pool.map_or(0, |pool| cards.difference(pool.parted).len())
    }

    /// How many members with this ask fit at once, judged by these cards alone. Exact.
    pub(crate) fn capacity(&self, ask: &CardAsk) -> u32 {
        if ask.plain {
            return self.free(ask.kind) / ask.whole().max(1);
        }
        let Some(pool) = self.pool(ask.kind) else {
            let counted = self.counted.iter().find(|counted| counted.kind == ask.kind);
            let near = ask.source.near == Nearness::Any || ask.whole() == 1;
            let fitting = counted.filter(|counted| {
                near && ask.source.only.is_none() && counted.hardware.passes(ask)
            });
            return fitting.map_or(0, |counted| {
                counted.free().checked_div(ask.whole()).unwrap_or(0)
            });
        };
        if !pool.hardware.passes(ask) {
            return 0;
        }
        if ask.whole() == 0 {
            return parts::capacity(self, pool, ask);
        }
        let free = pool.free();
        let free = ask.source.only.map_or(free, |only| free.intersection(only));
        match &pool.hardware.links {
            Some(links) if ask.source.near != Nearness::Any => {
                links.capacity(free, ask.whole(), ask.source.near)
            }
            None if ask.source.near != Nearness::Any && ask.whole() > 1 => 0,
            _ => free.len() / ask.whole(),
        }
    }

    /// Whether it matters which of the free cards of a kind are taken.
    pub(crate) fn is_linked(&self, kind: KindIx) -> bool {
        self.pool(kind).is_some_and(|pool| {
            let links = pool.hardware.links.as_ref();
            !pool.hardware.modes.is_empty() || links.is_some_and(|links| !links.is_uniform())
        })
    }

    /// Whether some kind's cards are told apart: by links, by modes, or by what is taken of them.
    pub(crate) fn are_told_apart(&self) -> bool {
        self.pools.iter().any(|pool| self.is_linked(pool.kind)) || !self.loose.is_empty()
    }

    /// How much better than cards without links these are for an ask, in the unit of prices. Cards
    /// joined directly come before any packing where a node has such cards: they are ten times as
    /// fast together. Other differences only break ties.
    pub(crate) fn joined(&self, ask: &CardAsk, devices: &Devices) -> i64 {
        let links = self
            .pool(ask.kind)
            .and_then(|pool| pool.hardware.links.as_ref());
        let Some(links) = links.filter(|_| ask.whole() > 1) else {
            return 0;
        };
        let direct = links.is_fabric(devices.cards);
        let pairs = i64::from(ask.whole() * (ask.whole() - 1) / 2);
        i64::from(links.worth(devices.cards)) / pairs.max(1) / 1024 + (i64::from(direct) << 31)
    }

    /// How well whole cards of two members are joined, where links tell cards apart.
    pub(crate) fn pair_worth(&self, one: &Devices, other: &Devices) -> i32 {
        let both = one.cards.union(other.cards);
        let parts = one.slices().next().is_some();
        let pools = self.pools.iter().filter(|_| !parts && !both.is_empty());
        // Cards of two kinds have no links between them.
        let mut links = pools.filter_map(|pool| pool.hardware.links.as_ref());
        let links = links.next().filter(|links| !links.is_uniform());
        links.map_or(0, |links| links.worth(both))
    }

    /// What is left of one card of a pool.
    pub(crate) fn card_use(&self, pool: &Pool, card: u32) -> CardUse {
        if !pool.partable().contains(card) {
            return CardUse::Gone;
        }
        let hardware = &pool.hardware;
        let state = self.states(pool).get(card as usize).copied();
        let state = state.unwrap_or_default();
        if state.exclusive.is_some() {
            // What is left serves its owner only: it is paid for with the first part.
            return CardUse::Gone;
        }
        match hardware.mode(card) {
            Mode::MigStatic(starts) => {
                let profiles = hardware.geometry().map(|geometry| (geometry, starts));
                let there = profiles.map_or(0, |(geometry, starts)| {
                    let places = geometry.placements().filter(|&(ix, start)| {
                        let starts = starts.get(usize::from(ix.0)).copied().unwrap_or(0);
                        starts >> start & 1 == 1
                    });
                    places.fold(0, |mask, (ix, start)| mask | geometry.units_of(ix, start))
                });
                CardUse::Sliced(state.mig.mask | !there & hardware.all_units())
            }
            Mode::MigDynamic if state.parts > 0 => CardUse::Sliced(state.mig.mask),
            Mode::Shared | Mode::Replicas(_) if state.parts > 0 => {
                CardUse::Left(parts::left_milli(hardware, card, &state) as u16)
            }
            Mode::Whole => CardUse::Whole,
            _ => CardUse::Free,
        }
    }

    /// How many cards of a kind can be taken as a whole.
    pub(crate) fn free(&self, kind: KindIx) -> u32 {
        let counted = || self.counted.iter().find(|counted| counted.kind == kind);
        match self.pool(kind) {
            Some(pool) => pool.free().len(),
            None => counted().map_or(0, Counted::free),
        }
    }

    /// How many cards of each kind can be taken as a whole.
    pub(crate) fn free_by_kind(&self) -> impl Iterator<Item = (KindIx, u32)> + '_ {
        let pools = self.pools.iter().map(|pool| (pool.kind, pool.free().len()));
        pools.chain(
            self.counted
                .iter()
                .map(|counted| (counted.kind, counted.free())),
        )
    }

    /// What is left of all cards.
    pub(crate) fn left(&self) -> Left {
        let free = self.free_by_kind();
        let pools = self.pools.iter();
        let milli = pools.flat_map(|pool| {
            let states = self.states(pool);
            pool.partable()
                .intersection(pool.parted)
                .iter()
                .filter_map(move |card| Some((card, states.get(card as usize)?)))
                .map(|(card, state)| parts::left_milli(&pool.hardware, card, state))
        });
        Left {
            free: free.fold(0, |sum, (_, free)| sum.saturating_add(free)),
            milli: milli.fold(0, u32::saturating_add),
        }
    }

    /// What would be left if these devices, which are free, were taken.
    pub(crate) fn left_after(&self, ask: &CardAsk, devices: &Devices) -> Left {
        let mut left = self.left();
        let Some(pool) = self.pool(ask.kind) else {
            left.free = left.free.saturating_sub(ask.count());
            return left;
        };
        if ask.whole() > 0 {
            let free = devices.cards.intersection(pool.free());
            left.free = left.free.saturating_sub(free.len());
            return left;
        }
        let hardware = &*pool.hardware;
        let share = hardware.share(ask);
        let opened = devices.cards.intersection(pool.free());
        left.free = left.free.saturating_sub(opened.len());
        for card in devices.cards.intersection(pool.partable()) {
            let Some(before) = self.states(pool).get(card as usize) else {
                continue;
            };
            let mut after = *before;
            for slice in devices
                .slices()
                .filter(|slice| u32::from(slice.card) == card)
            {
                change_state(&mut after, hardware, ask, share, slice, true);
            }
            if before.parts > 0 {
                left.milli = left
                    .milli
                    .saturating_sub(parts::left_milli(hardware, card, before));
            }
            left.milli = left
                .milli
                .saturating_add(parts::left_milli(hardware, card, &after));
        }
        left
    }

    /// Whether some of these devices are taken already: a card, or an instance's room on it.
    pub(crate) fn conflict(&self, devices: &Devices, kind: KindIx) -> bool {
        let Some(pool) = self.pool(kind) else {
            return false;
        };
        let parts = devices.slices().next().is_some();
        let taken = if parts {
            pool.used
        } else {
            pool.used.union(pool.parted)
        };
        let mut states: SmallVec<[CardState; 16]> = self.states(pool).into();
        let mut overlaps = |slice: Slice| {
            let state = states.get_mut(usize::from(slice.card));
            let instance = pool.hardware.instance(slice.profile);
            let (Some(state), Some((geometry, ix))) = (state, instance) else {
                return false;
            };
            let after = geometry.put(state.mig, ix, slice.start);
            state.mig = after.unwrap_or(state.mig);
            after.is_none()
        };
        !taken.intersection(devices.cards).is_empty() || devices.slices().any(&mut overlaps)
    }
}
