//! The pods that are already there, by name and by controller.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::Pod;

/// The label by which pods of a deployment's generations are told apart.
pub(super) const TEMPLATE_HASH: &str = "pod-template-hash";
/// The label, and annotation, that numbers the pods of an indexed job.
pub(super) const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// The pods that are already there. What a controller has made is not made again.
#[derive(Clone, Debug, Default)]
pub struct ExistingPods {
    names: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
    by_controller: BTreeMap<Controller, Vec<ExistingPod>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Controller {
    namespace: Box<str>,
    kind: Box<str>,
    name: Box<str>,
}

/// What a controller would want to know of a pod of its own.
#[derive(Clone, Debug)]
pub(super) struct ExistingPod {
    /// Neither over nor on its way out.
    pub(super) active: bool,
    pub(super) succeeded: bool,
    pub(super) completion_index: Option<u32>,
    template_hash: Option<Box<str>>,
}

impl ExistingPods {
    /// Takes note of a pod.
    pub fn add(&mut self, pod: &Pod) {
        let meta = &pod.metadata;
        let namespace = meta.namespace_or_default();
        if !self.names.contains_key(namespace) {
            self.names.insert(namespace.into(), BTreeSet::new());
        }
        if let Some(names) = self.names.get_mut(namespace) {
            names.insert(meta.name.clone());
        }
        let Some(controller) = meta.controller() else {
            return;
        };
        let key = Controller {
            namespace: namespace.into(),
            kind: controller.kind.clone(),
            name: controller.name.clone(),
        };
        let succeeded = &*pod.status.phase == "Succeeded";
        let over = succeeded || &*pod.status.phase == "Failed";
        let index = meta
            .annotations
            .get(COMPLETION_INDEX)
            .or(meta.labels.get(COMPLETION_INDEX));
        self.by_controller
            .entry(key)
            .or_default()
            .push(ExistingPod {
                active: !over && meta.deletion_timestamp.is_none(),
                succeeded,
                completion_index: index.and_then(|index| index.parse().ok()),
                template_hash: meta.labels.get(TEMPLATE_HASH).cloned(),
            });
    }

    /// Whether there is a pod of this name.
    pub fn contains(&self, namespace: &str, name: &str) -> bool {
        self.names
            .get(namespace)
            .is_some_and(|names| names.contains(name))
    }

    /// The pods that a controller has made.
    pub(super) fn controlled(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> impl Iterator<Item = &ExistingPod> {
        let key = Controller {
            namespace: namespace.into(),
            kind: kind.into(),
            name: name.into(),
        };
        self.by_controller.get(&key).into_iter().flatten()
    }

    /// The pods of a deployment's replica sets, which are named after it and a hash that their pods
    /// carry as a label.
    pub(super) fn of_deployment(
        &self,
        namespace: &str,
        name: &str,
    ) -> impl Iterator<Item = &ExistingPod> {
        let prefix = format!("{name}-");
        let from = Controller {
            namespace: namespace.into(),
            kind: "ReplicaSet".into(),
            name: prefix.as_str().into(),
        };
        let (until_namespace, until_kind) = (from.namespace.clone(), from.kind.clone());
        let until_prefix = prefix.clone();
        let candidates = self
            .by_controller
            .range(from..)
            .take_while(move |(key, _)| {
                key.namespace == until_namespace
                    && key.kind == until_kind
                    && key.name.starts_with(&until_prefix)
            });
        candidates.flat_map(move |(key, pods)| {
            let hash = &key.name[prefix.len()..];
            pods.iter()
                .filter(move |pod| pod.template_hash.as_deref() == Some(hash))
        })
    }
}

/// How many of these pods are active.
pub(super) fn active<'a>(pods: impl Iterator<Item = &'a ExistingPod>) -> u32 {
    pods.filter(|pod| pod.active).count() as u32
}
