//! Events into state: one function per kind, each in proportion to the change.
//!
//! Everything is checked before anything changes. What is free is never set by hand: a pod's charge
//! is made when it is bound or held and taken back when it is gone, ended or moved.

use alloc::{
    string::{String, ToString},
    sync::Arc,
};
use core::hash::Hasher;

use super::{
    Event, NodeIx, Rejection, Scheduler,
    store::{Charge, PodIx, Purpose},
};
use crate::{hash::WordHasher, request::Template};

mod gangs;
mod lives;
mod nodes;
mod pods;

/// Largest amount of a resource that one object may state: sums over a node's pods still fit.
const MOST: i64 = 1 << 60;

impl Scheduler {
    /// Takes note of something that happened. Cost proportional to the change.
    pub fn apply(&mut self, event: Event) -> Result<(), Rejection> {
        match event {
            Event::Node(spec) => self.apply_node(spec)?,
            Event::NodeGone { name } => self.apply_node_gone(&name),
            Event::NodeImages { name, images } => {
                let node = self.cluster.node_slot(&name);
                self.images.set(node, images);
            }
            Event::Namespace { name, labels } => {
                if self.cluster.set_namespace(&name, labels) {
                    self.recount();
                }
                self.loosened += 1;
            }
            Event::Gang(spec) => self.apply_gang(spec),
            Event::GangGone { key, uid } => self.apply_gang_gone(&key, uid),
            Event::Pod(spec) => self.apply_pod(spec)?,
            Event::PodGone { uid } => {
                if let Some(&pod) = self.pod_by_uid.get(&uid) {
                    self.remove_pod(pod);
                }
            }
            Event::Prices(list) => self.take_prices(list),
            Event::BindFailed {
                pod,
                permanent,
                message,
            } => {
                self.apply_bind_failed(pod, permanent, message);
            }
            Event::BindWithdrawn { pod } => self.apply_bind_withdrawn(pod),
            Event::ClockLeft(left) => self.apply_clock_left(&left),
        }
        Ok(())
    }

    // ---- nodes -------------------------------------------------------------------------------

    pub(super) fn charge_of(
        &self,
        pod: PodIx,
    ) -> Option<(crate::cluster::template::TemplateIx, Charge)> {
        let pod = self.pods.get(pod.0)?;
        Some((pod.template, pod.charge?))
    }

    fn is_held(&self, pod: PodIx) -> bool {
        let charge = self.pods.get(pod.0).and_then(|pod| pod.charge);
        charge.is_some_and(|charge| charge.purpose == Purpose::Held)
    }

    pub(crate) fn pods_on(&self, node: NodeIx) -> &[PodIx] {
        self.node_pods.get(node.0 as usize).map_or(&[], |pods| pods)
    }

    // ---- gangs -------------------------------------------------------------------------------

    // ---- pods --------------------------------------------------------------------------------

    // ---- bookkeeping -------------------------------------------------------------------------

    /// Counts a pod into or out of its leaf's tally, by its present state.
    pub(super) fn count(&mut self, ix: PodIx, add: bool) {
        let Some(pod) = self.pods.get(ix.0) else {
            return;
        };
        let Some(leaf) = pod.leaf else { return };
        if let Some(gang) = self.gangs.get_mut(pod.gang.0) {
            gang.tally[leaf as usize].count(pod, add);
        }
    }

    pub(super) fn compile(
        &mut self,
        template: &Arc<Template>,
    ) -> crate::cluster::template::TemplateIx {
        let (ix, grew) = self.cluster.compile(template);
        if grew {
            self.recount();
        }
        ix
    }

    /// Compiles every pod again and counts the charged ones into the terms anew.
    fn recount(&mut self) {
        self.cluster.forget_counts();
        for ix in self.pods.indexes() {
            let Some(source) = self.pods.get(ix).map(|pod| pod.spec.template.clone()) else {
                continue;
            };
            let (template, _) = self.cluster.compile(&source);
            let Some(pod) = self.pods.get_mut(ix) else {
                continue;
            };
            pod.template = template;
            if let Some(charge) = pod.charge {
                self.cluster.count_in(charge.node, template, true);
            }
        }
    }

    pub(super) fn pod_named(&self, namespace: &str, name: &str) -> Option<PodIx> {
        let same = |ix: &PodIx| {
            let pod = self.pods.get(ix.0);
            pod.is_some_and(|pod| pod.spec.namespace == namespace && pod.spec.name == name)
        };
        self.pod_by_name
            .find(hash_name(namespace, name), same)
            .copied()
    }
}

fn hash_name(namespace: &str, name: &str) -> u64 {
    let mut hasher = WordHasher::default();
    hasher.write(namespace.as_bytes());
    hasher.write(name.as_bytes());
    hasher.finish()
}

fn invalid(object: String, field: &str, value: &dyn ToString, accepted: &str) -> Rejection {
    Rejection::Invalid {
        object,
        field: field.into(),
        value: value.to_string(),
        accepted: accepted.into(),
    }
}
