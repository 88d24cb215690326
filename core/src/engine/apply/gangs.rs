//! Groups that come, change and go, and the seats of their members.

use alloc::{boxed::Box, sync::Arc};

use smallvec::SmallVec;

use super::super::{
    GangId, Scheduler, Verdict,
    store::{Gang, GangIx, Pod, PodIx, Tally},
};
use crate::{
    gang::{
        GangKey, GangSpec,
        life::{self},
    },
    place::tree::Tree,
    units::{Nanos, Uid},
};

impl Scheduler {
    pub(super) fn apply_gang(&mut self, mut spec: GangSpec) {
        if spec.problem.is_none() {
            spec.problem = spec.check().err();
        }
        let gang = self.gang_slot(&spec.key);
        let Some(entry) = self.gangs.get(gang.0) else {
            return;
        };
        if entry.spec.as_deref() == Some(&spec) {
            return;
        }
        let reborn = entry.spec.as_ref().is_some_and(|old| old.uid != spec.uid);
        let same_tree = !reborn
            && spec.problem.is_none()
            && entry
                .spec
                .as_ref()
                .is_some_and(|old| old.root == spec.root && old.problem.is_none());
        if reborn {
            self.forget_life(gang);
        }
        let tree = if same_tree {
            None
        } else if spec.problem.is_some() {
            Some(self.single_tree.clone())
        } else {
            Some(Arc::new(Tree::new(&spec.root, &mut self.cluster)))
        };
        let Some(entry) = self.gangs.get_mut(gang.0) else {
            return;
        };
        entry.uid = spec.uid;
        entry.priority = spec.priority;
        entry.created = spec.created;
        entry.spec = Some(Box::new(spec));
        if let Some(tree) = tree {
            entry.tree = tree;
            self.seat_members(gang);
        }
        self.queue_stale = true;
        self.touch(gang);
    }

    /// Finds every member's leaf anew and counts them.
    pub(super) fn seat_members(&mut self, gang: GangIx) {
        let Some(entry) = self.gangs.get_mut(gang.0) else {
            return;
        };
        let tree = entry.tree.clone();
        entry.tally.clear();
        entry.tally.resize(tree.nodes.len(), Tally::default());
        let mut members = core::mem::take(&mut entry.members);
        for &ix in &members {
            let Some(pod) = self.pods.get_mut(ix.0) else {
                continue;
            };
            pod.leaf = tree.leaf(&pod.spec.role);
            if let (Some(leaf), Some(entry)) = (pod.leaf, self.gangs.get_mut(gang.0)) {
                entry.tally[leaf as usize].count(pod, true);
            }
        }
        // What has no place in the new tree is nobody's plan any more.
        for &ix in &members {
            let unseated = self.pods.get(ix.0).is_some_and(|pod| pod.leaf.is_none());
            if unseated && self.is_held(ix) {
                self.drop_charge(ix);
            }
        }
        members.sort_by(|&a, &b| self.compare_members(a, b));
        if let Some(entry) = self.gangs.get_mut(gang.0) {
            entry.members = members;
        }
    }

    pub(in crate::engine) fn compare_members(&self, a: PodIx, b: PodIx) -> core::cmp::Ordering {
        let (Some(a), Some(b)) = (self.pods.get(a.0), self.pods.get(b.0)) else {
            return a.cmp(&b);
        };
        let leaf = |pod: &Pod| pod.leaf.unwrap_or(u32::MAX);
        leaf(a)
            .cmp(&leaf(b))
            .then_with(|| crate::cluster::natural(&a.spec.name, &b.spec.name))
            .then_with(|| a.spec.uid.cmp(&b.spec.uid))
    }

    pub(super) fn apply_gang_gone(&mut self, key: &GangKey, uid: Uid) {
        let Some(&gang) = self.gang_by_key.get(key) else {
            return;
        };
        let Some(entry) = self.gangs.get(gang.0) else {
            return;
        };
        if entry.spec.as_ref().is_none_or(|spec| spec.uid != uid) {
            return;
        }
        self.forget_life(gang);
        // From here on as a group that nobody has described yet.
        if let Some(entry) = self.gangs.get_mut(gang.0) {
            entry.spec = None;
            (entry.uid, entry.priority, entry.created) = (Uid::default(), 0, Nanos::ZERO);
            entry.tree = self.single_tree.clone();
        }
        self.seat_members(gang);
        self.touch(gang);
        self.drop_gang_if_empty(gang);
    }

    /// Ends a generation of a group: what it holds is given back, what runs stays.
    pub(super) fn forget_life(&mut self, gang: GangIx) {
        self.drive(gang, life::Event::Deleted);
        if let Some(entry) = self.gangs.get_mut(gang.0) {
            entry.life = life::Life::default();
            entry.verdict = Verdict::Waiting;
            entry.tried = None;
            entry.ready_since = None;
            entry.clock_fed = None;
            entry.told = false;
            entry.unreservable = None;
        }
    }

    /// The gang of a key, made without a description if new.
    pub(super) fn gang_slot(&mut self, key: &GangKey) -> GangIx {
        if let Some(&gang) = self.gang_by_key.get(key) {
            return gang;
        }
        let gang = GangId(self.gangs.insert(self.blank_gang(Some(key.clone()))));
        self.gang_by_key.insert(key.clone(), gang);
        gang
    }

    pub(super) fn blank_gang(&self, key: Option<GangKey>) -> Gang {
        Gang {
            key: key.map(Box::new),
            spec: None,
            tree: self.single_tree.clone(),
            tally: SmallVec::from_elem(Tally::default(), 1),
            members: SmallVec::new(),
            life: life::Life::default(),
            uid: Uid::default(),
            priority: 0,
            created: Nanos::ZERO,
            requeued: 0,
            verdict: Verdict::Waiting,
            tried: None,
            revision: 0,
            ready_since: None,
            clock_fed: None,
            in_queue: false,
            clocked: false,
            told: false,
            unreservable: None,
            listed: false,
        }
    }

    pub(super) fn drop_gang_if_empty(&mut self, gang: GangIx) {
        let Some(entry) = self.gangs.get(gang.0) else {
            return;
        };
        if entry.spec.is_some() || !entry.members.is_empty() {
            return;
        }
        if let Some(key) = &entry.key {
            self.gang_by_key.remove(&**key);
        }
        let (listed, clocked) = (entry.listed, entry.clocked);
        self.leave_queue(gang);
        if self
            .reservation
            .as_ref()
            .is_some_and(|reservation| reservation.holder == gang)
        {
            self.reservation = None;
            self.loosened += 1;
        }
        // The slot may be another gang's soon; most gangs that end are on no list.
        if listed {
            self.queue.retain(|&other| other != gang);
        }
        if clocked {
            self.clocks.retain(|&other| other != gang);
        }
        self.releases.retain(|&other| other != gang);
        self.gangs.remove(gang.0);
    }
}
