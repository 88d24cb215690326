//! The queue: who waits ahead of a gang, and would take what a change frees before it is its turn.
//!
//! A changed state enters; whether the gang finds a place there leaves, after those ahead of it have
//! taken theirs. Nothing of that is kept.

use alloc::{collections::BTreeSet, vec::Vec};

use super::{Explainer, Members};
use crate::{
    cluster::template::TemplateIx,
    engine::{GangId, store::Gang},
};

/// Gangs ahead that are tried at most for one change; those further back count as if they were not there.
pub(super) const AHEAD: usize = 256;
/// Searches for gangs ahead that one kind of change may cost.
pub(super) const SEARCHES: usize = 512;

impl Explainer {
    /// The gangs that are tried before this one, in their order.
    pub(super) fn ahead_of(&self, id: GangId) -> Vec<GangId> {
        let gangs = &self.engine.gangs;
        let Some(own) = gangs.get(id.0).map(Gang::turn) else {
            return Vec::new();
        };
        let queued = gangs.iter().filter(|(_, gang)| gang.in_queue);
        let mut ahead: Vec<_> = queued
            .map(|(ix, gang)| (gang.turn(), GangId(ix)))
            .filter(|(turn, gang)| *turn < own && *gang != id)
            .collect();
        ahead.sort_unstable();
        ahead.into_iter().map(|(_, gang)| gang).collect()
    }

    /// Whether a gang has a place: now, or, if that is asked for, at its turn, when those ahead of it have
    /// taken theirs. Changes that were journaled before stay journaled.
    pub(super) fn fits(&mut self, id: GangId, members: &Members) -> bool {
        let mark = self.engine.cluster.begin();
        // Most changes give no room at all, and that costs one search.
        let mut fits = self.engine.charge_place(id, members, true);
        if fits && self.in_turn {
            self.engine.cluster.undo_to(mark);
            fits = self.fits_after_those_ahead(id, members);
        }
        self.engine.cluster.undo_to(mark);
        fits
    }

    fn fits_after_those_ahead(&mut self, id: GangId, members: &Members) -> bool {
        // Of gangs of one that are alike one answer is enough.
        let mut refused: BTreeSet<TemplateIx> = BTreeSet::new();
        let holder = self.engine.reservation.as_ref().map(|held| held.holder);
        let mut is_reserved = true;
        let mut others = Members::default();
        for at in 0..self.ahead.len().min(AHEAD) {
            let other = self.ahead[at];
            self.engine.sort_members(other, &mut others);
            if others.batches.is_empty() || others.not_before > self.engine.now {
                continue;
            }
            let gang = self.engine.gangs.get(other.0);
            let single = gang.is_some_and(Gang::single) && !others.related;
            let alike = single.then(|| others.batches[0].template);
            if alike.is_some_and(|template| refused.contains(&template)) {
                continue;
            }
            if self.searches_ahead == 0 || self.searches_in_all == 0 {
                return false;
            }
            self.searches_ahead -= 1;
            self.searches_in_all -= 1;
            if self.engine.charge_place(other, &others, is_reserved) {
                is_reserved &= holder != Some(other);
            } else {
                refused.extend(alike);
            }
        }
        self.engine.charge_place(id, members, is_reserved)
    }
}
