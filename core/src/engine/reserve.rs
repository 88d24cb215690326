//! A reservation: room kept for a gang that has waited long enough, so that it does not starve.
//!
//! At most one exists at a time, for the first gang in the queue that does not fit and has been
//! ready for `reserve_after`. Its nodes are those where the gang fits soonest: at the time when
//! enough of the members that told their longest run time have ended, or, when that never suffices
//! because some did not tell, on the nodes that are least in use. Gangs behind it may use these
//! nodes only if all their members end before the gang's start; when nobody told durations the start
//! is unknown, and they may not use them at all.

use alloc::{vec, vec::Vec};

use super::{NodeIx, Reservation, Scheduler, cycle::Members, store::GangIx};
use crate::{
    gang::life::Phase,
    place::{Outcome, Request},
    units::Nanos,
};

impl Scheduler {
    /// Whether a gang must keep off the reserved nodes.
    pub(super) fn respects_reservation(&self, ix: GangIx, members: &Members) -> bool {
        let Some(reservation) = self.reservation.as_ref().filter(|it| it.holder != ix) else {
            return false;
        };
        let turn = |ix: GangIx| self.gangs.get(ix.0).map(super::Gang::turn);
        let ends = members
            .longest
            .map(|longest| self.now.saturating_add(longest));
        turn(ix) > turn(reservation.holder) && reservation.bars(ends)
    }

    /// Searches for a gang on the state as it is now and takes everything back.
    pub(crate) fn would_fit(&mut self, ix: GangIx, members: &Members) -> bool {
        let fits = self.search_unreserved(ix, members) == Outcome::Found;
        self.cluster.commit();
        fits
    }

    /// Searches for a gang, takes back its charges, and leaves its placements in the search. Changes
    /// that were journaled before stay journaled.
    fn search_unreserved(&mut self, ix: GangIx, members: &Members) -> Outcome {
        let mark = self.cluster.begin();
        let outcome = self.search_journaled(ix, members, &[]);
        self.cluster.undo_to(mark);
        outcome
    }

    /// Searches for a gang; what it takes stays in the cluster's journal.
    fn search_journaled(&mut self, ix: GangIx, members: &Members, forbidden: &[bool]) -> Outcome {
        let Some(gang) = self.gangs.get(ix.0) else {
            return Outcome::Infeasible;
        };
        let tree = gang.tree.clone();
        let (rule, started) = self.manner(ix);
        let request = Request {
            forbidden,
            ..members.request(&tree, rule, started, self.config.search_steps)
        };
        self.search.run(&mut self.cluster, &request)
    }

    /// Whether a gang has a place, as it would be tried at its turn: off what is reserved, if that is
    /// still so. What it takes stays in the cluster's journal.
    pub(crate) fn charge_place(
        &mut self,
        ix: GangIx,
        members: &Members,
        is_reserved: bool,
    ) -> bool {
        let held_back = is_reserved && self.respects_reservation(ix, members);
        let reservation = self.reservation.take();
        let forbidden = match &reservation {
            Some(reservation) if held_back => reservation.nodes.as_slice(),
            _ => &[],
        };
        let outcome = self.search_journaled(ix, members, forbidden);
        self.reservation = reservation;
        outcome == Outcome::Found
    }

    pub(super) fn drop_stale_reservation(&mut self) {
        let Some(reservation) = &self.reservation else {
            return;
        };
        let holder = self.gangs.get(reservation.holder.0);
        let waits = |gang: &&super::Gang| gang.in_queue && gang.life.phase() != Phase::Running;
        if !holder.as_ref().is_some_and(waits) {
            self.reservation = None;
            self.loosened += 1;
        }
    }

    /// Makes a reservation for a gang that does not fit, if it is its turn.
    pub(super) fn consider_reservation(&mut self, ix: GangIx) {
        let Some(gang) = self.gangs.get(ix.0) else {
            return;
        };
        let waited = gang
            .ready_since
            .is_some_and(|since| self.now.saturating_sub(since) >= self.config.reserve_after);
        let overdue = self
            .reservation
            .as_ref()
            .is_some_and(|it| it.holder == ix && it.is_overdue(self.now));
        let taken = self.reservation.is_some() && !overdue;
        let hopeless = gang.unreservable == Some(self.loosened);
        if !waited || taken || hopeless || gang.life.phase() == Phase::Running {
            return;
        }
        let mut members = core::mem::take(&mut self.cycle.spare);
        self.sort_members(ix, &mut members);
        let made = self.plan_reservation(ix, &members);
        self.cycle.spare = members;
        if made.is_none()
            && let Some(gang) = self.gangs.get_mut(ix.0)
        {
            gang.unreservable = Some(self.loosened);
        }
        if self.reservation.is_some() && made.is_none() {
            self.loosened += 1;
        }
        self.reservation = made;
    }

    fn plan_reservation(&mut self, ix: GangIx, members: &Members) -> Option<Reservation> {
        // Every charged pod, by when it ends if it said; those past their time may end any moment.
        let mut ends: Vec<(Nanos, u32)> = Vec::new();
        for (pod_ix, pod) in self.pods.iter() {
            if pod.charge.is_none() || pod.gang == ix {
                continue;
            }
            let runtime = pod.spec.template.max_runtime;
            let started = pod.spec.started.unwrap_or(self.now);
            if let Some(runtime) = runtime {
                ends.push((started.saturating_add(runtime).max(self.now), pod_ix));
            }
        }
        ends.sort_unstable();
        let mut times: Vec<Nanos> = ends.iter().map(|&(end, _)| end).collect();
        times.dedup();
        let gone_by = |time: Nanos| -> Vec<u32> {
            let until = ends.partition_point(|&(end, _)| end <= time);
            ends[..until].iter().map(|&(_, pod)| pod).collect()
        };
        if let Some(nodes) = times
            .last()
            .and_then(|&last| self.fits_without(ix, members, &gone_by(last)))
        {
            // More ends only make more room: find the first time that suffices.
            let mut best = (times.len() - 1, nodes);
            let mut low = 0;
            while low < best.0 {
                let middle = usize::midpoint(low, best.0);
                match self.fits_without(ix, members, &gone_by(times[middle])) {
                    Some(nodes) => best = (middle, nodes),
                    None => low = middle + 1,
                }
            }
            return Some(Reservation {
                holder: ix,
                nodes: best.1,
                starts: Some(times[best.0]),
            });
        }
        // Nobody knows when: take the nodes that are least in use, as few as will do.
        let mut by_use: Vec<(usize, u32, NodeIx)> = Vec::new();
        for &node in self.cluster.ordered() {
            let used: u32 = self
                .cluster
                .node(node)
                .cards
                .pools()
                .iter()
                .map(|p| p.used.len())
                .sum();
            by_use.push((
                used as usize + self.pods_on(node).len(),
                self.cluster.node(node).rank,
                node,
            ));
        }
        by_use.sort_unstable();
        let gone_from = |engine: &Self, count: usize| -> Vec<u32> {
            let nodes = by_use[..count]
                .iter()
                .flat_map(|&(.., node)| engine.pods_on(node));
            let others = |pod: &&super::PodIx| engine.pods.get(pod.0).is_some_and(|p| p.gang != ix);
            nodes.filter(others).map(|pod| pod.0).collect()
        };
        let all = gone_from(self, by_use.len());
        let mut best = (by_use.len(), self.fits_without(ix, members, &all)?);
        let mut low = 0;
        while low < best.0 {
            let middle = usize::midpoint(low, best.0);
            let gone = gone_from(self, middle);
            match self.fits_without(ix, members, &gone) {
                Some(nodes) => best = (middle, nodes),
                None => low = middle + 1,
            }
        }
        Some(Reservation {
            holder: ix,
            nodes: best.1,
            starts: None,
        })
    }

    /// The nodes where the gang would go if these pods were gone.
    pub(crate) fn fits_without(
        &mut self,
        ix: GangIx,
        members: &Members,
        gone: &[u32],
    ) -> Option<Vec<bool>> {
        self.cluster.settle_order();
        let mark = self.cluster.begin();
        self.release_pods(gone);
        let outcome = self.search_unreserved(ix, members);
        self.cluster.undo_to(mark);
        self.cluster.commit();
        if outcome != Outcome::Found {
            return None;
        }
        let mut nodes = vec![false; self.cluster.node_count()];
        for placed in &self.search.placed {
            nodes[placed.node.0 as usize] = true;
        }
        Some(nodes)
    }

    /// Gives back what these pods have; noted in the cluster's journal.
    pub(crate) fn release_pods(&mut self, gone: &[u32]) {
        for &pod in gone {
            let Some(pod) = self.pods.get(pod) else {
                continue;
            };
            if let Some(charge) = pod.charge {
                self.cluster
                    .release(charge.node, pod.template, &charge.devices);
            }
        }
    }
}
