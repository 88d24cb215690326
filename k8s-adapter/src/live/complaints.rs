//! What is wrong with objects, logged once for each object and fault.
//!
//! Objects are read anew whenever they or their surroundings change, and complained about each time;
//! what was said of an object is kept until it is gone, so that it is not said again. Memory is bounded:
//! when too many objects have faults, those of further ones are not logged, which is said once.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use tracing::{debug, warn};

use crate::load::{Complaint, Severity};

/// So many objects with faults are known.
const MOST: usize = 4096;
/// So many faults of one object are.
const MOST_OF_ONE: usize = 64;

/// What was said.
#[derive(Debug, Default)]
pub(super) struct Complaints {
    /// By object: hashes of its faults.
    said: BTreeMap<String, BTreeSet<u64>>,
    is_full: bool,
}

impl Complaints {
    /// Logs what is wrong with an object, unless that was said.
    pub(super) fn say(&mut self, complaint: &Complaint) {
        let fault = complaint.to_string();
        if !self.is_new(&complaint.object, &fault) {
            return;
        }
        match complaint.severity {
            Severity::Refused => warn!("{fault}"),
            Severity::Warning => debug!("{fault}"),
        }
    }

    /// Logs that an object counts for nothing, unless that was said.
    pub(super) fn refuse(&mut self, object: &str, fault: &str) {
        if self.is_new(object, fault) {
            warn!(
                object,
                "an object cannot be used and counts for nothing: {fault}"
            );
        }
    }

    /// An object is gone; another one of its name is judged anew.
    pub(super) fn forget(&mut self, kind: &str, namespace: &str, name: &str) {
        if self.said.is_empty() {
            return;
        }
        self.said.remove(&object_name(kind, namespace, name));
        // As the engine names it.
        let kind = kind.to_ascii_lowercase();
        self.said.remove(&object_name(&kind, namespace, name));
        self.is_full &= self.said.len() >= MOST;
    }

    /// Takes note of a fault; whether it is to be logged.
    fn is_new(&mut self, object: &str, fault: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        fault.hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(said) = self.said.get_mut(object) {
            return said.len() < MOST_OF_ONE && said.insert(hash);
        }
        if self.said.len() >= MOST {
            if !std::mem::replace(&mut self.is_full, true) {
                warn!("{MOST} objects have faults; those of further ones are not logged");
            }
            return false;
        }
        self.said.insert(object.to_owned(), BTreeSet::from([hash]));
        true
    }
}

/// An object as complaints name it.
pub(super) fn object_name(kind: &str, namespace: &str, name: &str) -> String {
    let slash = if namespace.is_empty() { "" } else { "/" };
    format!("{kind} {namespace}{slash}{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_said_once_until_it_changes_or_its_object_is_gone() {
        let mut complaints = Complaints::default();
        let pod = object_name("Pod", "n", "a");
        assert_eq!(pod, "Pod n/a");
        assert_eq!(object_name("Node", "", "n1"), "Node n1");
        assert!(complaints.is_new(&pod, "cards: none"));
        assert!(!complaints.is_new(&pod, "cards: none"));
        assert!(complaints.is_new("Pod n/b", "cards: none"));
        assert!(complaints.is_new(&pod, "cards: 7"));
        // Two faults of one field do not take turns.
        assert!(!complaints.is_new(&pod, "cards: none"));
        complaints.forget("Pod", "n", "a");
        assert!(complaints.is_new(&pod, "cards: none"));
    }

    #[test]
    fn memory_is_bounded_whatever_people_write() {
        let mut complaints = Complaints::default();
        for fault in 0..2 * MOST_OF_ONE {
            complaints.is_new("Pod n/a", &fault.to_string());
        }
        for pod in 0..2 * MOST {
            complaints.is_new(&object_name("Pod", "n", &pod.to_string()), "bad");
        }
        assert_eq!(complaints.said.len(), MOST);
        assert_eq!(complaints.said["Pod n/a"].len(), MOST_OF_ONE);
        assert!(!complaints.is_new("Pod n/new", "bad"));
        complaints.forget("Pod", "n", "0");
        assert!(complaints.is_new("Pod n/new", "bad"));
    }
}
