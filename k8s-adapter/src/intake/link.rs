//! How a pod comes to its group: it names it, or the group follows from what made the pod.
//!
//! A pod enters; the one [`Link`] that counts leaves. A group that a pod names goes before any that
//! only follows from its labels or owners, and of these the first dialect's goes first. Nothing here
//! knows whether the group is there.

use std::collections::BTreeMap;

use gangline::gang::{GangKey, Problem};

use super::Dialect;
use crate::{
    api::{ObjectMeta, OwnerReference, Pod},
    problem::problem,
};

/// How a pod names its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The group.
    pub key: GangKey,
    /// Where the pod says so, such as `metadata.labels[...]`.
    pub field: &'static str,
    /// What the pod says about its place in the group; the dialect's own word.
    pub task: Box<str>,
    /// The pod names the group; otherwise the group follows from what made the pod.
    pub explicit: bool,
    /// What the pod says that makes its group, where no object does.
    pub said: Option<Box<Said>>,
}

/// What a pod says that makes its group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Kind and name of the owners whose annotations count, nearest first.
    pub owners: Vec<(Box<str>, Box<str>)>,
    /// The pod's own annotations (and labels) that count.
    pub words: BTreeMap<&'static str, Box<str>>,
}

/// Of a word that is longer only the start is kept, which nothing reads then: each member of a group
/// may bring one.
const LONGEST_WORD: usize = 32 << 10;

impl Link {
    /// A pod that names the group `name` of this source in `field`.
    pub(super) fn named(pod: &Pod, source: &str, name: &str, field: &'static str) -> Self {
        Self {
            key: GangKey {
                namespace: pod.metadata.namespace_or_default().into(),
                name: name.into(),
                source: source.into(),
            },
            field,
            task: "".into(),
            explicit: true,
            said: None,
        }
    }

    /// The same where the group only follows from what made the pod.
    pub(super) fn inferred(pod: &Pod, source: &str, name: &str, field: &'static str) -> Self {
        Self {
            explicit: false,
            ..Self::named(pod, source, name, field)
        }
    }
}

impl Said {
    /// What the annotations of a pod say under these keys.
    pub(super) fn of(pod: &Pod, keys: impl IntoIterator<Item = &'static str>) -> Self {
        Self::of_object(&pod.metadata, keys)
    }

    /// What those of any object say.
    pub(super) fn of_object(
        metadata: &ObjectMeta,
        keys: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        let mut said = Self::default();
        for key in keys {
            if let Some(word) = metadata.annotations.get(key) {
                said.keep(key, word);
            }
        }
        said
    }

    /// Keeps a word.
    pub(super) fn keep(&mut self, key: &'static str, word: &str) {
        let mut end = word.len().min(LONGEST_WORD);
        while !word.is_char_boundary(end) {
            end -= 1;
        }
        self.words
            .insert(key, word.get(..end).unwrap_or_default().into());
    }

    /// The word under this key.
    pub(super) fn word(&self, key: &str) -> Option<&str> {
        self.words.get(key).map(|word| &**word)
    }
}

/// Kind and name of an owner.
pub(super) fn kind_and_name(owner: &OwnerReference) -> (Box<str>, Box<str>) {
    (owner.kind.clone(), owner.name.clone())
}

/// The one group of a pod. A pod that names two is refused: either choice would be a guess.
pub fn link(dialects: &[Box<dyn Dialect>], pod: &Pod) -> Result<Option<Link>, Problem> {
    let links: Vec<_> = dialects
        .iter()
        .filter_map(|dialect| dialect.link(pod))
        .collect();
    // To pass it over would place the pod on its own, and its group in part.
    if let Some(reference) = &pod.spec.workload_ref {
        return Err(problem(
            "UnsupportedGroup",
            "spec.workloadRef",
            format!(
                "{}, as Kubernetes 1.35 wrote it; accepted: spec.schedulingGroup.podGroupName",
                reference.name
            ),
        ));
    }
    let explicit = || links.iter().filter(|link| link.explicit);
    if explicit().count() > 1 {
        let named: Vec<_> = explicit()
            .map(|link| {
                format!(
                    "{} group {} ({})",
                    link.key.source, link.key.name, link.field
                )
            })
            .collect();
        return Err(problem(
            "AmbiguousGroup",
            "metadata",
            format!("the pod names {}; accepted: one group", named.join(" and ")),
        ));
    }
    let explicit = explicit().next().cloned();
    Ok(explicit.or_else(|| links.into_iter().next()))
}
