//! The objects that own pods, as far as their pods' groups depend on them.

use std::collections::BTreeMap;

use crate::api::ObjectMeta;

/// Annotations of owners that dialects may ask for start with one of these.
const KEPT: [&str; 1] = ["scheduling.volcano.sh/"];

/// Owners by namespace, kind and name.
#[derive(Debug, Default)]
pub(super) struct Owners {
    annotations: BTreeMap<(String, String, String), BTreeMap<String, String>>,
}

impl Owners {
    /// Takes note of an owner.
    pub(super) fn take(&mut self, namespace: &str, kind: &str, name: &str, metadata: &ObjectMeta) {
        let kept = metadata
            .annotations
            .iter()
            .filter(|(key, _)| KEPT.iter().any(|prefix| key.starts_with(prefix)))
            .map(|(key, value)| (key.to_owned(), value.to_string()));
        let kept: BTreeMap<_, _> = kept.collect();
        if !kept.is_empty() {
            let owner = (namespace.to_owned(), kind.to_owned(), name.to_owned());
            self.annotations.insert(owner, kept);
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
        let owner = (namespace.to_owned(), kind.to_owned(), name.to_owned());
        self.annotations.get(&owner)?.get(annotation).cloned()
    }
}
