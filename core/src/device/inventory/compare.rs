//! Comparing inventories: which are alike for every ask, and hashes that say so.

use alloc::sync::Arc;
use core::hash::Hasher;

use smallvec::SmallVec;

use super::{CardState, Inventory, Pool};
use crate::{device::hardware::Mode, hash::WordHasher};

impl Inventory {
    /// Whether exactly the same is in use.
    pub(crate) fn same_use(&self, other: &Inventory) -> bool {
        let pools = self.pools.iter().zip(&other.pools);
        self.states == other.states
            && self.loose == other.loose
            && self.groups == other.groups
            && self.counted == other.counted
            && pools
                .into_iter()
                .all(|(a, b)| (a.used, a.parted, a.in_doubt) == (b.used, b.parted, b.in_doubt))
    }

    /// Whether no ask can tell the two apart.
    pub(crate) fn same_state(&self, other: &Inventory) -> bool {
        self.counted == other.counted
            && self.loose == other.loose
            && self.groups == other.groups
            && self.pools.len() == other.pools.len()
            && self.pools.iter().zip(&other.pools).all(|(a, b)| {
                a.kind == b.kind
                    && Arc::ptr_eq(&a.hardware, &b.hardware)
                    && free_key(a) == free_key(b)
                    && a.in_doubt.is_empty() == b.in_doubt.is_empty()
                    && (a.hardware.modes.is_empty()
                        || self.usable(a).eq(other.usable(b))
                            && self.card_states(a) == other.card_states(b))
            })
    }

    /// Whether the cards of a pool are told apart by their numbers.
    fn are_numbered(&self, pool: &Pool) -> bool {
        let links = pool.hardware.links.as_ref();
        !self.groups.is_empty() || links.is_some_and(|links| !links.is_uniform())
    }

    /// The cards of a pool of which parts can be taken, as far as they are told apart: which of each
    /// mode, or how many.
    fn usable(&self, pool: &Pool) -> impl Iterator<Item = u64> {
        let (partable, numbered) = (pool.partable(), self.are_numbered(pool));
        pool.hardware.alike.iter().map(move |&alike| {
            let cards = partable.intersection(alike);
            if numbered {
                cards.0
            } else {
                cards.len().into()
            }
        })
    }

    /// What the cards in parts of a pool are like, and which those are as far as they are told apart:
    /// by number, or by mode and then sorted.
    fn card_states(&self, pool: &Pool) -> SmallVec<[(u32, CardState); 8]> {
        let numbered = self.are_numbered(pool);
        let states = self.states(pool);
        let mut found: SmallVec<[(u32, CardState); 8]> = pool
            .partable()
            .intersection(pool.parted)
            .iter()
            .filter_map(|card| Some((card, *states.get(card as usize)?)))
            .map(|(card, state)| {
                let name = if numbered {
                    card
                } else {
                    pool.hardware.alike_of(card)
                };
                (name, state)
            })
            .collect();
        if !numbered {
            found.sort_unstable();
        }
        found
    }

    /// A hash of what is in use, the same for states from which the same can follow. `by_name`: somebody
    /// names cards, so that no two are alike.
    pub(crate) fn hash_use(&self, by_name: bool, hasher: &mut WordHasher) {
        for pool in &self.pools {
            hasher.write_u64(pool.used.0);
            let hardware = &pool.hardware;
            let by_name = by_name || self.are_numbered(pool);
            let mut sum = 0_u64;
            for (card, state) in (0_u32..).zip(self.states(pool)) {
                let mut one = WordHasher::default();
                one.write_u32(if by_name { card } else { u32::MAX });
                one.write_u32(hardware.alike_of(card));
                one.write_u8(u8::from(pool.partable().contains(card)));
                match hardware
                    .geometry()
                    .filter(|_| *hardware.mode(card) == Mode::MigDynamic)
                {
                    // Where instances are matters only for what still fits.
                    Some(geometry) => {
                        one.write_u128(geometry.reach(state.mig));
                        one.write_u8(u8::from(state.parts > 0));
                        core::hash::Hash::hash(&state.exclusive, &mut one);
                    }
                    None => core::hash::Hash::hash(state, &mut one),
                }
                sum = sum.wrapping_add(one.finish());
            }
            hasher.write_u64(sum);
        }
        for counted in &self.counted {
            hasher.write_u64(counted.used);
        }
        for loose in &self.loose {
            hasher.write_u32(loose.used);
        }
        for usage in &self.groups {
            core::hash::Hash::hash(usage, hasher);
        }
    }

    /// A hash of what [`same_state`](Self::same_state) compares.
    pub(crate) fn hash_state(&self, hasher: &mut WordHasher) {
        for pool in &self.pools {
            hasher.write_u64(u64::from(pool.kind) << 32 | u64::from(pool.hardware.id));
            hasher.write_u64(free_key(pool));
            hasher.write_u8(u8::from(pool.in_doubt.is_empty()));
            for usable in self.usable(pool) {
                hasher.write_u64(usable);
            }
            for state in self.card_states(pool) {
                core::hash::Hash::hash(&state, hasher);
            }
        }
        for counted in &self.counted {
            hasher.write_u64(u64::from(counted.kind) << 32 | u64::from(counted.hardware.id));
            hasher.write_u64(counted.used);
        }
        for loose in &self.loose {
            hasher.write_u64(u64::from(loose.all) << 32 | u64::from(loose.used));
        }
        for usage in &self.groups {
            core::hash::Hash::hash(usage, hasher);
        }
    }
}

/// Free cards as far as an ask can tell: how many, or which when links tell them apart.
fn free_key(pool: &Pool) -> u64 {
    match &pool.hardware.links {
        Some(links) if !links.is_uniform() => links.canonical(pool.free()).0,
        _ => pool.free().len().into(),
    }
}
