//! The objects that own pods, as far as they decide something: annotations that make a group of
//! their pods, and how many pods they have already.

use std::collections::BTreeMap;

use crate::api::{ObjectMeta, Pod};

use super::kinds::Workload;

/// Annotations of owners that dialects may ask for start with one of these.
const KEPT: [&str; 1] = ["scheduling.volcano.sh/"];

/// Namespace, kind and name.
type Owner = (Box<str>, Box<str>, Box<str>);

/// Owners by namespace, kind and name.
#[derive(Debug, Default)]
pub(super) struct Owners {
    annotations: BTreeMap<Owner, BTreeMap<String, String>>,
    /// Pods that have not failed, by the owner that controls them.
    pods: BTreeMap<Owner, usize>,
    /// The deployment that controls a replica set.
    deployments: BTreeMap<Owner, Box<str>>,
}

impl Owners {
    /// Takes note of an owner.
    pub(super) fn take(&mut self, kind: &str, metadata: &ObjectMeta) {
        let owner = owner(metadata.namespace_or_default(), kind, &metadata.name);
        if let Some(controller) = metadata.controller() {
            self.deployments
                .insert(owner.clone(), controller.name.clone());
        }
        let kept = metadata
            .annotations
            .iter()
            .filter(|(key, _)| KEPT.iter().any(|prefix| key.starts_with(prefix)))
            .map(|(key, value)| (key.to_owned(), value.to_string()));
        let kept: BTreeMap<_, _> = kept.collect();
        if !kept.is_empty() {
            self.annotations.insert(owner, kept);
        }
    }

    /// Takes note of a pod of an owner.
    pub(super) fn count(&mut self, pod: &Pod) {
        let metadata = &pod.metadata;
        let gone = &*pod.status.phase == "Failed" || metadata.deletion_timestamp.is_some();
        if let Some(controller) = metadata.controller().filter(|_| !gone) {
            let owner = owner(
                metadata.namespace_or_default(),
                &controller.kind,
                &controller.name,
            );
            *self.pods.entry(owner).or_default() += 1;
        }
    }

    /// How many pods a workload has already that its controller would count. Those of stateful sets
    /// have names by which they are known; none are counted.
    pub(super) fn pods_of(&self, kind: Workload, metadata: &ObjectMeta) -> usize {
        let namespace = metadata.namespace_or_default();
        let name = &metadata.name;
        match kind {
            Workload::StatefulSet | Workload::DaemonSet => 0,
            Workload::Job => self.pods_under(namespace, "Job", name),
            Workload::ReplicaSet => self.pods_under(namespace, "ReplicaSet", name),
            Workload::Deployment => {
                let first = owner(namespace, "ReplicaSet", "");
                let sets = self
                    .pods
                    .range(first..)
                    .take_while(|((space, kind, _), _)| {
                        &**space == namespace && &**kind == "ReplicaSet"
                    });
                sets.filter(|(set, _)| self.is_set_of(set, name))
                    .map(|(_, pods)| pods)
                    .sum()
            }
        }
    }

    fn pods_under(&self, namespace: &str, kind: &str, name: &str) -> usize {
        self.pods
            .get(&owner(namespace, kind, name))
            .copied()
            .unwrap_or(0)
    }

    /// Whether a deployment made a replica set: by its word or, where the dump lacks it, by its name.
    fn is_set_of(&self, set: &Owner, deployment: &str) -> bool {
        match self.deployments.get(set) {
            Some(controller) => &**controller == deployment,
            None => set
                .2
                .strip_prefix(deployment)
                .and_then(|rest| rest.strip_prefix('-'))
                .is_some_and(|hash| !hash.is_empty() && !hash.contains('-')),
        }
    }

    /// An annotation of an owner.
    pub(super) fn annotation(
        &self,
        namespace: &str,
        kind: &str,
        name: &str,
        annotation: &str,
    ) -> Option<String> {
        self.annotations
            .get(&owner(namespace, kind, name))?
            .get(annotation)
            .cloned()
    }
}

fn owner(namespace: &str, kind: &str, name: &str) -> Owner {
    (namespace.into(), kind.into(), name.into())
}
