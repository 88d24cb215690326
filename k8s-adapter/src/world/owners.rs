//! The objects that own pods, as far as they decide something: annotations that make a group of
//! their pods.

use std::collections::BTreeMap;

use crate::api::ObjectMeta;

/// Annotations of owners that dialects may ask for start with one of these.
const KEPT: [&str; 3] = ["gangline.io/", "kai.scheduler/", "scheduling.volcano.sh/"];

/// Namespace, kind and name.
type Owner = (Box<str>, Box<str>, Box<str>);

/// The annotations of owners.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    annotations: BTreeMap<Owner, BTreeMap<String, String>>,
}

impl Owners {
    /// Takes note of the annotations of an owner. Returns whether they are others than before.
    pub(crate) fn take(&mut self, kind: &str, name: &str, metadata: &ObjectMeta) -> bool {
        let kept = metadata
            .annotations
            .iter()
            .filter(|(key, _)| KEPT.iter().any(|prefix| key.starts_with(prefix)))
            .map(|(key, value)| (key.to_owned(), value.to_string()));
        let kept: BTreeMap<_, _> = kept.collect();
        let owner = owner(metadata.namespace_or_default(), kind, name);
        if kept.is_empty() {
            self.annotations.remove(&owner).is_some()
        } else {
            let before = self.annotations.insert(owner, kept.clone());
            before.as_ref() != Some(&kept)
        }
    }

    /// An owner is gone. Returns whether it had annotations.
    pub(crate) fn forget(&mut self, namespace: &str, kind: &str, name: &str) -> bool {
        self.annotations
            .remove(&owner(namespace, kind, name))
            .is_some()
    }

    /// An annotation of an owner.
    pub(crate) fn annotation(
        &self,
        namespace: &str,
        kind: &str,
        name: &str,
        annotation: &str,
    ) -> Option<String> {
        let annotations = self.annotations.get(&owner(namespace, kind, name))?;
        annotations.get(annotation).cloned()
    }
}

fn owner(namespace: &str, kind: &str, name: &str) -> Owner {
    (namespace.into(), kind.into(), name.into())
}
