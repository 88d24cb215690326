//! Room that other schedulers make: a nominated pod counts on its node for whoever does not go before it.
//!
//! A pod enters the list when its spec says where it is nominated, and is charged there like one that
//! runs. While a gang of a higher priority is judged, its room counts as free, which is what the other
//! scheduler would hold too; nothing here evicts anybody or moves a nomination.

use alloc::vec::Vec;

use super::{
    Scheduler,
    store::{GangIx, PodIx, Purpose},
};

impl Scheduler {
    /// Puts a pod on the list of nominated ones, or takes it off, by what it says now.
    pub(super) fn note_nominated(&mut self, ix: PodIx) {
        let pod = self.pods.get(ix.0);
        let is_nominated = pod.is_some_and(|pod| pod.nominated().is_some());
        match self.nominated.iter().position(|&other| other == ix) {
            Some(at) if !is_nominated => {
                self.nominated.swap_remove(at);
            }
            None if is_nominated => self.nominated.push(ix),
            _ => {}
        }
    }

    /// The nominated pods whose room a gang must leave alone, by uid: those of at least its priority.
    pub(crate) fn nominated_before(&self, gang: GangIx) -> Vec<PodIx> {
        let Some(priority) = self.gangs.get(gang.0).map(|gang| gang.priority) else {
            return Vec::new();
        };
        let goes_before = |ix: &PodIx| {
            let pod = self.pods.get(ix.0);
            pod.is_some_and(|pod| pod.spec.priority >= priority)
        };
        let mut pods: Vec<PodIx> = self.nominated.iter().copied().filter(goes_before).collect();
        pods.sort_unstable_by_key(|ix| self.pods.get(ix.0).map(|pod| pod.spec.uid));
        pods
    }

    /// Charges the nominated pods that count for a gang, and no others; for nobody in particular all do.
    /// It is a view: what waits is not tried anew for it.
    pub(crate) fn see_nominated(&mut self, gang: Option<GangIx>) {
        let gang = gang.and_then(|gang| self.gangs.get(gang.0));
        let priority = gang.map(|gang| gang.priority);
        for at in 0..self.nominated.len() {
            let ix = self.nominated[at];
            let Some(pod) = self.pods.get(ix.0) else {
                continue;
            };
            let counts = priority.is_none_or(|priority| pod.spec.priority >= priority);
            if counts != pod.charge.is_some() {
                self.set_nominated(ix, counts);
            }
        }
    }

    /// Charges a nominated pod, or takes its charge back.
    pub(crate) fn set_nominated(&mut self, ix: PodIx, counts: bool) {
        let counters = (self.loosened, self.changed);
        let purpose = self.charge_of(ix).map(|(_, charge)| charge.purpose);
        match purpose {
            None if counts => self.charge_if_due(ix),
            Some(Purpose::Nominated) if !counts => self.drop_charge(ix),
            _ => {}
        }
        (self.loosened, self.changed) = counters;
    }
}
