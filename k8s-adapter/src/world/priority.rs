//! Priority classes by name.

use std::collections::BTreeMap;

use crate::api::PriorityClass;

/// Kubernetes' two classes that exist without an object.
const BUILT_IN: [(&str, i32); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

/// The classes of a cluster.
#[derive(Debug)]
pub(super) struct PriorityClasses {
    /// Value, and whether pods without a class get it.
    classes: BTreeMap<String, (i32, bool)>,
}

impl Default for PriorityClasses {
    fn default() -> Self {
        let built_in = BUILT_IN.map(|(name, value)| (name.to_owned(), (value, false)));
        Self {
            classes: built_in.into(),
        }
    }
}

impl PriorityClasses {
    /// Takes a class in. Gives back the value when it cannot be counted with.
    pub(super) fn take(&mut self, name: &str, class: &PriorityClass) -> Result<(), i64> {
        let value = class.value.unwrap_or(0);
        let counted = i32::try_from(value).map_err(|_| value)?;
        let default = class.global_default.unwrap_or(false);
        self.classes.insert(name.to_owned(), (counted, default));
        Ok(())
    }

    /// The value of a class.
    pub(super) fn get(&self, name: &str) -> Option<i32> {
        self.classes.get(name).map(|&(value, _)| value)
    }

    /// What a pod without a class gets. Of several defaults Kubernetes takes the smallest.
    pub(super) fn default_value(&self) -> i32 {
        let defaults = self.classes.values().filter(|(_, default)| *default);
        defaults.map(|&(value, _)| value).min().unwrap_or(0)
    }
}
