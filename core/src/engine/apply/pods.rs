//! Pods that come, change and go, their lines in the ledger, and binds that fail.

use alloc::{boxed::Box, format, string::String, vec::Vec};

use super::{
    super::{
        GangId, Rejection, Scheduler,
        store::{BindFailures, Charge, GangIx, Pod, PodIx, Purpose},
    },
    MOST, hash_name, invalid,
};
use crate::{
    device::{Devices, check_request},
    gang::{PodPhase, PodSpec},
    units::{Nanos, Uid},
};

impl Scheduler {
    pub(super) fn apply_pod(&mut self, spec: PodSpec) -> Result<(), Rejection> {
        if !self.cluster.knows(&spec.template) {
            check_template(&spec)?;
        }
        if let Some(&ix) = self.pod_by_uid.get(&spec.uid) {
            let unmoved = self.pods.get(ix.0).is_some_and(|pod| {
                pod.spec.namespace == spec.namespace
                    && pod.spec.name == spec.name
                    && pod.spec.gang == spec.gang
                    && pod.spec.role == spec.role
            });
            if unmoved {
                self.update_pod(ix, spec);
                return Ok(());
            }
            self.remove_pod(ix);
        }
        // A name can stand for one pod only: whoever had it before is gone.
        if let Some(old) = self.pod_named(&spec.namespace, &spec.name) {
            self.remove_pod(old);
        }
        self.add_pod(spec);
        Ok(())
    }

    pub(super) fn add_pod(&mut self, spec: PodSpec) {
        let template = self.compile(&spec.template);
        let gang = if let Some(key) = &spec.gang {
            self.gang_slot(key)
        } else {
            let mut gang = self.blank_gang(None);
            gang.uid = spec.uid;
            gang.priority = spec.priority;
            gang.created = spec.created;
            GangId(self.gangs.insert(gang))
        };
        let uid = spec.uid;
        let hash = hash_name(&spec.namespace, &spec.name);
        let leaf = self
            .gangs
            .get(gang.0)
            .and_then(|gang| gang.tree.leaf(&spec.role));
        let pod = Pod {
            spec,
            gang,
            leaf,
            template,
            charge: None,
            released: false,
            failures: None,
        };
        self.note_arrival(pod.template);
        let ix = PodIx(self.pods.insert(pod));
        self.pod_by_uid.insert(uid, ix);
        let pods = &self.pods;
        self.pod_by_name.insert_unique(hash, ix, |ix| {
            pods.get(ix.0)
                .map_or(0, |pod| hash_name(&pod.spec.namespace, &pod.spec.name))
        });
        self.join(gang, ix);
        self.note_nominated(ix);
        self.charge_if_due(ix);
        self.count(ix, true);
        self.touch(gang);
    }

    pub(super) fn join(&mut self, gang: GangIx, pod: PodIx) {
        let Some(entry) = self.gangs.get(gang.0) else {
            return;
        };
        let at = entry.members.partition_point(|&other| {
            self.compare_members(other, pod) == core::cmp::Ordering::Less
        });
        if let Some(entry) = self.gangs.get_mut(gang.0) {
            entry.members.insert(at, pod);
        }
    }

    pub(super) fn part(&mut self, gang: GangIx, pod: PodIx) {
        let Some(entry) = self.gangs.get(gang.0) else {
            return;
        };
        let at = entry.members.partition_point(|&other| {
            self.compare_members(other, pod) == core::cmp::Ordering::Less
        });
        if let Some(entry) = self.gangs.get_mut(gang.0)
            && entry.members.get(at) == Some(&pod)
        {
            entry.members.remove(at);
        }
    }

    pub(super) fn update_pod(&mut self, ix: PodIx, spec: PodSpec) {
        let Some(pod) = self.pods.get(ix.0) else {
            return;
        };
        if pod.spec == spec {
            return;
        }
        let gang = pod.gang;
        self.count(ix, false);
        let template = self.compile(&spec.template);
        let Some(pod) = self.pods.get(ix.0) else {
            return;
        };
        let node = spec
            .node
            .as_deref()
            .map(|name| self.cluster.node_slot(name));
        // Confirmed where we planned it: the devices stay those of the plan unless it says otherwise.
        let confirmed = pod
            .charge
            .filter(|charge| charge.purpose == Purpose::Held && node == Some(charge.node));
        let mut spec = spec;
        let planned = confirmed.and_then(|charge| charge.told);
        if let Some(devices) = planned.filter(|devices| !devices.is_empty()) {
            spec.devices = spec.devices.or(Some(devices));
        } else if spec.devices.is_none() && spec.node == pod.spec.node && pod.spec.node.is_some() {
            spec.devices = pod.spec.devices;
        }
        let ended = matches!(spec.phase, PodPhase::Succeeded | PodPhase::Failed);
        let gone = spec.terminating && pod.charge.is_some() && node.is_none();
        let keeps = !ended
            && !gone
            && template == pod.template
            && match (node, &pod.charge) {
                (Some(node), Some(charge)) => {
                    charge.purpose != Purpose::Nominated
                        && charge.node == node
                        && (spec.devices == pod.spec.devices
                            || confirmed.is_some() && spec.devices == planned)
                }
                // Room that was kept for a nominated pod is given back first: others may get it.
                (None, Some(charge)) => charge.purpose == Purpose::Held,
                (None, None) => true,
                (Some(_), None) => false,
            };
        if !keeps {
            self.drop_charge(ix);
        }
        if let Some(pod) = self.pods.get_mut(ix.0) {
            pod.template = template;
            pod.spec = spec;
            if let Some(charge) = pod.charge.as_mut().filter(|_| pod.spec.node.is_some()) {
                charge.purpose = Purpose::Bound;
                charge.told = pod.spec.devices;
            }
            if pod.spec.node.is_some() {
                pod.failures = None;
            }
            let (priority, created) = (pod.spec.priority, pod.spec.created);
            if let Some(entry) = self.gangs.get_mut(gang.0).filter(|entry| entry.single()) {
                self.queue_stale |= (entry.priority, entry.created) != (priority, created);
                (entry.priority, entry.created) = (priority, created);
            }
        }
        self.note_nominated(ix);
        self.charge_if_due(ix);
        self.count(ix, true);
        self.touch(gang);
    }

    /// Charges a pod that is not charged yet and that is bound and has not ended, or nominated.
    pub(in crate::engine) fn charge_if_due(&mut self, ix: PodIx) {
        let Some(pod) = self.pods.get(ix.0).filter(|pod| pod.charge.is_none()) else {
            return;
        };
        let ended = matches!(pod.spec.phase, PodPhase::Succeeded | PodPhase::Failed);
        let (name, purpose, told) = match (&pod.spec.node, pod.nominated()) {
            (Some(name), _) if !ended => (name.as_str(), Purpose::Bound, pod.spec.devices),
            (None, Some(name)) => (name, Purpose::Nominated, None),
            _ => return,
        };
        let template = pod.template;
        let node = self.cluster.node_slot(name);
        let charge = Charge {
            node,
            devices: Devices::NONE,
            told,
            purpose,
        };
        self.note_charge(ix, charge);
        if self.cluster.template(template).cards.is_some() {
            self.settle_devices(node, Some(ix));
        } else {
            self.cluster.charge(node, template, &Devices::NONE);
        }
    }

    /// Writes a charge that the cluster has already into the ledger.
    pub(in crate::engine) fn note_charge(&mut self, ix: PodIx, charge: Charge) {
        self.changed += 1;
        let index = charge.node.0 as usize;
        if self.node_pods.len() <= index {
            self.node_pods.resize_with(index + 1, Vec::new);
        }
        self.node_pods[index].push(ix);
        if let Some(pod) = self.pods.get_mut(ix.0) {
            pod.charge = Some(charge);
        }
    }

    /// Takes a pod's charge back, if it has one.
    pub(in crate::engine) fn drop_charge(&mut self, ix: PodIx) {
        let Some((template, charge)) = self.charge_of(ix) else {
            return;
        };
        self.loosened += 1;
        self.changed += 1;
        self.cluster.release(charge.node, template, &charge.devices);
        if let Some(pod) = self.pods.get_mut(ix.0) {
            pod.charge = None;
            if let Some(failures) = &mut pod.failures {
                failures.is_retried = false;
            }
        }
        if let Some(pods) = self.node_pods.get_mut(charge.node.0 as usize)
            && let Some(at) = pods.iter().position(|&other| other == ix)
        {
            pods.swap_remove(at);
        }
        if self.cluster.template(template).cards.is_some() {
            self.settle_devices(charge.node, None);
        }
    }

    pub(super) fn remove_pod(&mut self, ix: PodIx) {
        let Some(pod) = self.pods.get(ix.0) else {
            return;
        };
        let (gang, uid) = (pod.gang, pod.spec.uid);
        let hash = hash_name(&pod.spec.namespace, &pod.spec.name);
        self.count(ix, false);
        self.drop_charge(ix);
        self.pod_by_uid.remove(&uid);
        if let Ok(entry) = self.pod_by_name.find_entry(hash, |&other| other == ix) {
            entry.remove();
        }
        self.part(gang, ix);
        self.pods.remove(ix.0);
        self.note_nominated(ix);
        self.touch(gang);
        self.drop_gang_if_empty(gang);
    }

    pub(super) fn apply_bind_failed(&mut self, uid: Uid, permanent: bool, message: String) {
        if let Some(ix) = self.held_pod(uid) {
            self.note_failure(ix, Some(message));
            if permanent {
                self.give_back(ix);
            } else if let Some(pod) = self.pods.get_mut(ix.0)
                && let Some(failures) = &mut pod.failures
            {
                failures.is_retried = true;
            }
        }
    }

    pub(super) fn apply_bind_withdrawn(&mut self, uid: Uid) {
        if let Some(ix) = self.held_pod(uid) {
            self.give_back(ix);
        }
    }

    fn held_pod(&self, uid: Uid) -> Option<PodIx> {
        let ix = self.pod_by_uid.get(&uid).copied();
        ix.filter(|ix| self.is_held(*ix))
    }

    /// Gives back the room that is held for a pod.
    fn give_back(&mut self, ix: PodIx) {
        self.count(ix, false);
        self.drop_charge(ix);
        self.count(ix, true);
        if let Some(gang) = self.pods.get(ix.0).map(|pod| pod.gang) {
            self.touch(gang);
        }
    }

    /// Notes a bind that failed, or without a message one that was not confirmed in time. The pause
    /// doubles with each failure, up to 64 times the first one.
    pub(super) fn note_failure(&mut self, ix: PodIx, message: Option<String>) {
        let (now, first) = (self.now, self.config.bind_backoff);
        let Some(pod) = self.pods.get_mut(ix.0) else {
            return;
        };
        let failures = pod
            .failures
            .get_or_insert_with(Box::<BindFailures>::default);
        failures.attempts = failures.attempts.saturating_add(1);
        if let Some(message) = message {
            failures.message = message;
        } else if failures.message.is_empty() {
            failures.message = "not confirmed in time".into();
        }
        let pause = first.0.saturating_mul(1 << (failures.attempts - 1).min(6));
        failures.not_before = now.saturating_add(Nanos(pause));
    }
}

fn check_template(spec: &PodSpec) -> Result<(), Rejection> {
    let object = || format!("pod {}/{}", spec.namespace, spec.name);
    for (name, &amount) in &spec.template.resources {
        if !(0..=MOST).contains(&amount) {
            let field = format!("template.resources.{name}");
            return Err(invalid(object(), &field, &amount, "0 to 2^60"));
        }
    }
    match spec.template.cards.as_ref().map(check_request) {
        Some(Err(error)) => Err(Rejection::Cards {
            object: object(),
            error,
        }),
        _ => Ok(()),
    }
}
