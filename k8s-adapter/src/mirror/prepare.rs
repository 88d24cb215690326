//! The volumes of pods that are about to be bound.
//!
//! While a pod is being prepared and bound, what its claims mean stays what it was when its node was
//! decided: its claims are bound meanwhile, and told of each step the engine would take its room back.

use std::collections::BTreeMap;

use super::Mirror;
use crate::volumes::{
    assign::{Member, Unmet},
    prepare::{Preparation, Progress, Write},
};

/// A pod and its node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) node: &'a str,
}

static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();

impl Mirror {
    /// What has to be done before these pods are bound, in their order. Until it is said to be over
    /// ([`prepared`](Self::prepared)) their volumes are kept for them.
    pub(crate) fn prepare(&mut self, plan: &[Place<'_>]) -> Result<Vec<Preparation>, Unmet> {
        let members = plan.iter().map(|place| {
            let namespace = self.namespaces.get(place.namespace);
            let pod = namespace.and_then(|namespace| namespace.pods.get(place.name));
            Member {
                namespace: place.namespace,
                volumes: pod.map_or(&[], |pod| &pod.member.volumes),
                node: place.node,
                labels: self.labels(place.node),
            }
        });
        let members: Vec<Member<'_>> = members.collect();
        if members.iter().all(|member| member.volumes.is_empty()) {
            return Ok(vec![Preparation::default(); plan.len()]);
        }
        let preparations = self.volumes.assign(&members)?;
        for (place, preparation) in plan.iter().zip(&preparations) {
            if !preparation.is_empty() {
                self.volumes.promise(preparation);
                self.keep(place.namespace, place.name, true);
            }
        }
        Ok(preparations)
    }

    /// How far a preparation is; what is to be written now is added to `writes`.
    pub(crate) fn look_at(
        &self,
        preparation: &mut Preparation,
        node: &str,
        writes: &mut Vec<Write>,
    ) -> Progress {
        let labels = self.labels(node);
        self.volumes.look_at(preparation, node, labels, writes)
    }

    /// The pod is bound, or will not be.
    pub(crate) fn prepared(&mut self, namespace: &str, name: &str, preparation: &Preparation) {
        self.volumes.take_back(preparation);
        self.keep(namespace, name, false);
    }

    fn labels(&self, node: &str) -> &BTreeMap<String, String> {
        let node = self.nodes.get(node).and_then(|node| node.told.as_ref());
        node.map_or(&NO_LABELS, |node| &node.labels)
    }

    fn keep(&mut self, namespace: &str, name: &str, keeps: bool) {
        let Some(known) = self.namespaces.get_mut(namespace) else {
            return;
        };
        let Some(pod) = known.pods.get_mut(name) else {
            return;
        };
        pod.keeps_judged = keeps;
        known.touch(name);
        self.changed_namespaces.insert(namespace.to_owned());
    }
}
