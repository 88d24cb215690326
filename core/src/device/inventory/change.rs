//! Taking devices, and giving them back exactly.

use super::{CardState, GroupUse, Inventory, KindIx};
use crate::{
    bits::CardSet,
    device::{
        Devices, Slice,
        ask::CardAsk,
        hardware::{Hardware, Share},
    },
    symbols::Symbol,
};

impl Inventory {
    /// Takes the devices of an ask. Devices that the node does not have are ignored.
    pub(crate) fn take(&mut self, ask: &CardAsk, devices: &Devices) {
        self.change(ask, devices, true);
    }

    /// Gives back what an ask took.
    pub(crate) fn give_back(&mut self, ask: &CardAsk, devices: &Devices) {
        self.change(ask, devices, false);
    }

    fn change(&mut self, ask: &CardAsk, devices: &Devices, taken: bool) {
        let Some(at) = self.pools.iter().position(|pool| pool.kind == ask.kind) else {
            if let Some(counted) = self.counted.iter_mut().find(|c| c.kind == ask.kind) {
                let count = u64::from(ask.count());
                counted.used = if taken {
                    counted.used.saturating_add(count)
                } else {
                    counted.used.saturating_sub(count)
                };
            }
            return;
        };
        if ask.whole() > 0 {
            let pool = &mut self.pools[at];
            if taken {
                debug_assert!(
                    pool.used.intersection(devices.cards).is_empty(),
                    "a card is given twice"
                );
                pool.used = pool.used.union(devices.cards);
            } else {
                pool.used = pool.used.difference(devices.cards);
            }
            return;
        }
        self.change_parts(at, ask, devices, taken);
    }

    fn change_parts(&mut self, at: usize, ask: &CardAsk, devices: &Devices, taken: bool) {
        let pool = &self.pools[at];
        let (kind, first) = (pool.kind, pool.first as usize);
        let hardware = pool.hardware.clone();
        let share = hardware.share(ask);
        for slice in devices.slices() {
            if slice.card == Slice::NO_CARD {
                let mut loose = self.loose.iter_mut().filter(|loose| loose.kind == kind);
                let entry = hardware.loose_at(slice.profile);
                if let Some(loose) = entry.and_then(|at| loose.nth(at)) {
                    loose.used = step(loose.used, 1, taken);
                }
                continue;
            }
            let card = usize::from(slice.card);
            let state = self
                .states
                .get_mut(first + card)
                .filter(|_| card < hardware.modes.len());
            let Some(state) = state else { continue };
            if !change_state(state, &hardware, ask, share, slice, taken) {
                continue;
            }
            let set = CardSet(1 << card);
            let pool = &mut self.pools[at];
            pool.parted = if state.parts > 0 {
                pool.parted.union(set)
            } else {
                pool.parted.difference(set)
            };
            if let Some(group) = ask.group {
                self.count_group(kind, group, slice.card.into(), taken);
            }
        }
    }

    fn count_group(&mut self, kind: KindIx, group: Symbol, card: u32, taken: bool) {
        let card = card as u8;
        let same = |usage: &GroupUse| (usage.kind, usage.group, usage.card) == (kind, group, card);
        if let Some(at) = self.groups.iter().position(same) {
            let members = step(self.groups[at].members, 1, taken);
            self.groups[at].members = members;
            if members == 0 {
                self.groups.remove(at);
            }
        } else if taken {
            let usage = GroupUse {
                kind,
                group,
                card,
                members: 1,
            };
            let at = self.groups.partition_point(|other| *other < usage);
            self.groups.insert(at, usage);
        }
    }
}

/// Puts one part on a card or takes it off; false when the card does not know such parts.
pub(super) fn change_state(
    state: &mut CardState,
    hardware: &Hardware,
    ask: &CardAsk,
    share: Option<Share>,
    slice: Slice,
    taken: bool,
) -> bool {
    match slice.profile {
        Slice::REPLICA => state.replicas = step(state.replicas, 1, taken),
        Slice::SHARE => {
            let Some(share) = share else {
                return false;
            };
            let memory = u64::from(share.memory_mib);
            state.memory_mib = if taken {
                state.memory_mib.saturating_add(memory)
            } else {
                state.memory_mib.saturating_sub(memory)
            };
            state.compute_milli = step(state.compute_milli, share.compute_milli, taken);
            state.reserving = step(state.reserving, share.reserving, taken);
        }
        id => {
            let Some((geometry, ix)) = hardware.instance(id) else {
                return false;
            };
            let after = if taken {
                geometry.put(state.mig, ix, slice.start)
            } else {
                geometry.take_out(state.mig, ix, slice.start)
            };
            debug_assert!(after.is_some(), "a slice is given twice");
            state.mig = after.unwrap_or(state.mig);
        }
    }
    state.parts = step(state.parts, 1, taken);
    state.exclusive = match (taken, ask.exclusive) {
        _ if state.parts == 0 => None,
        (true, Some(owner)) => Some(owner),
        _ => state.exclusive,
    };
    true
}

fn step(value: u32, by: u32, up: bool) -> u32 {
    if up {
        value.saturating_add(by)
    } else {
        value.saturating_sub(by)
    }
}
