//! The pods while they are gathered: one for each namespace and name.

use std::collections::HashMap;

use crate::intake::Member;

/// All pods.
#[derive(Debug, Default)]
pub(super) struct Pods {
    pods: Vec<Member>,
    // Only ever asked for single entries: its order never shows.
    index: HashMap<(String, String), usize>,
}

impl Pods {
    /// Takes a pod in; the same pod again replaces what was there. One that `would_be_made` leaves a
    /// pod that is there where it is: it keeps its identity, its age and its node.
    pub(super) fn take(&mut self, mut pod: Member, would_be_made: bool) {
        let spec = &mut pod.spec;
        let key = (spec.namespace.clone(), spec.name.clone());
        let Some(&index) = self.index.get(&key) else {
            self.index.insert(key, self.pods.len());
            self.pods.push(pod);
            return;
        };
        let Some(there) = self.pods.get_mut(index) else {
            return;
        };
        if would_be_made {
            let old = &there.spec;
            spec.uid = old.uid;
            spec.created = old.created;
            spec.started = old.started;
            spec.phase = old.phase;
            spec.terminating = old.terminating;
            spec.devices = old.devices;
            if old.node.is_some() {
                // A pod that is bound stays what it is until it is deleted.
                return;
            }
        }
        *there = pod;
    }

    /// The pods in the order of their creation; those of one moment by namespace and name.
    pub(super) fn into_vec(self) -> Vec<Member> {
        let mut pods = self.pods;
        pods.sort_by(|one, other| {
            let order = |pod: &Member| pod.spec.created;
            let name = |pod: &Member| (pod.spec.namespace.clone(), pod.spec.name.clone());
            order(one)
                .cmp(&order(other))
                .then_with(|| name(one).cmp(&name(other)))
        });
        pods
    }
}
