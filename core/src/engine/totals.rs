//! Numbers about the engine's state as a whole, for gauges. Changes nothing.

use alloc::{collections::BTreeMap, vec::Vec};

use super::{GangId, Scheduler};
use crate::{cluster::NodeSpec, gang::life::Phase};

/// Numbers about the state as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals<'a> {
    /// How many groups are in each phase; pods without a group and groups that ended are not counted.
    pub groups: Vec<(Phase, u32)>,
    /// Groups that neither run nor ended and of which at least one member is bound.
    pub half_bound: u32,
    /// Groups for which room is held back.
    pub reservations: u32,
    /// Cards by the kind's name.
    pub cards: Vec<(&'a str, CardTotals)>,
}

/// How many cards of a kind are in which state. Each is in one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CardTotals {
    /// Nobody has anything of them, and they may be given.
    pub free: u64,
    /// One pod has all of it.
    pub held: u64,
    /// Somebody has a part of it.
    pub in_parts: u64,
    /// Nobody has anything of them, but they are out of order or in doubt, or on a node that takes nobody.
    pub unusable: u64,
}

impl Scheduler {
    /// Numbers about the state as a whole; `is_closed` says which nodes take nobody, cordoned ones apart.
    /// Cost: gangs and nodes, a few steps each.
    pub fn totals(&self, is_closed: impl Fn(&NodeSpec) -> bool) -> Totals<'_> {
        let phases = [
            Phase::Gathering,
            Phase::Queued,
            Phase::Planned,
            Phase::Binding,
            Phase::Running,
            Phase::Degraded,
        ];
        let mut groups: Vec<(Phase, u32)> = phases.map(|phase| (phase, 0)).into();
        let mut half_bound = 0;
        for (_, gang) in self.gangs.iter().filter(|(_, gang)| !gang.single()) {
            let phase = gang.life.phase();
            let slot = groups.iter_mut().find(|(known, _)| *known == phase);
            if let Some((_, count)) = slot {
                *count += 1;
                let has_bound = gang.tally.iter().any(|tally| tally.bound > 0);
                half_bound += u32::from(phase != Phase::Running && has_bound);
            }
        }
        Totals {
            groups,
            half_bound,
            reservations: self.reservation.is_some().into(),
            cards: self.card_totals(is_closed),
        }
    }

    fn card_totals(&self, is_closed: impl Fn(&NodeSpec) -> bool) -> Vec<(&str, CardTotals)> {
        let cluster = &self.cluster;
        let mut totals: BTreeMap<&str, CardTotals> = BTreeMap::new();
        let nodes = (0..cluster.node_count() as u32).map(|ix| cluster.node(super::NodeIx(ix)));
        for node in nodes {
            // Pods may say that they run on a node that nobody has described.
            let Some(spec) = node.spec.as_deref() else {
                continue;
            };
            let takes_nobody = spec.unschedulable || is_closed(spec);
            for pool in node.cards.pools() {
                let kind = totals.entry(cluster.kind_name(pool.kind)).or_default();
                let held = pool.used.intersection(pool.all);
                let parted = pool.parted.intersection(pool.all).difference(held);
                let rest = pool.all.difference(held).difference(parted);
                let out = rest.intersection(pool.unhealthy.union(pool.in_doubt));
                let rest = rest.difference(out);
                kind.held += u64::from(held.len());
                kind.in_parts += u64::from(parted.len());
                kind.unusable += u64::from(out.len());
                let slot = if takes_nobody {
                    &mut kind.unusable
                } else {
                    &mut kind.free
                };
                *slot += u64::from(rest.len());
            }
            // Of cards without identity only the number is known.
            for counted in node.cards.counted() {
                let kind = totals.entry(cluster.kind_name(counted.kind)).or_default();
                let all = u64::from(counted.all);
                let used = counted.used.min(all);
                kind.held += used;
                let slot = if takes_nobody {
                    &mut kind.unusable
                } else {
                    &mut kind.free
                };
                *slot += all - used;
            }
        }
        totals.into_iter().collect()
    }

    /// Where a group is in its life; `None` when it is gone, or is a pod without a group.
    pub fn group_phase(&self, gang: GangId) -> Option<Phase> {
        let gang = self.gangs.get(gang.0).filter(|gang| !gang.single())?;
        Some(gang.life.phase())
    }
}
