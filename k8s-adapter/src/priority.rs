//! Priorities by the name of their class.
//!
//! Data enters as `PriorityClass` objects and leaves as numbers; the rules are those of the API
//! server's admission.

use std::collections::BTreeMap;

use gangline::gang::Problem;

use crate::{api, problem::problem};

/// The priority classes of a cluster.
#[derive(Clone, Debug)]
pub struct PriorityClasses {
    classes: BTreeMap<Box<str>, Class>,
}

#[derive(Clone, Copy, Debug)]
struct Class {
    value: i32,
    is_default: bool,
}

const BUILT_IN: [(&str, i32); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

/// Those that every cluster has.
impl Default for PriorityClasses {
    fn default() -> Self {
        let built_in = BUILT_IN.map(|(name, value)| {
            let is_default = false;
            (name.into(), Class { value, is_default })
        });
        PriorityClasses {
            classes: built_in.into(),
        }
    }
}

impl PriorityClasses {
    /// Adds a class, or replaces the one of its name.
    pub fn insert(&mut self, class: &api::PriorityClass) -> Result<(), Problem> {
        let value = class
            .value
            .and_then(|value| i32::try_from(value).ok())
            .ok_or_else(|| {
                let value = class
                    .value
                    .map_or_else(|| "absent".into(), |value| value.to_string());
                let message = format_args!("{value}; accepted: {} to {}", i32::MIN, i32::MAX);
                problem("InvalidPriority", "value", message)
            })?;
        let is_default = class.global_default == Some(true);
        let name = class.metadata.name.clone();
        self.classes.insert(name, Class { value, is_default });
        Ok(())
    }

    /// A class is gone; returns whether it was there.
    pub fn remove(&mut self, name: &str) -> bool {
        let is_built_in = BUILT_IN.iter().any(|(built_in, _)| *built_in == name);
        !is_built_in && self.classes.remove(name).is_some()
    }

    /// The priority that a class name stands for; an empty name stands for the cluster's default.
    pub fn value(&self, name: &str) -> Option<i32> {
        if name.is_empty() {
            let defaults = self.classes.values().filter(|class| class.is_default);
            // Of several the API server takes the lowest.
            return Some(defaults.map(|class| class.value).min().unwrap_or(0));
        }
        self.classes.get(name).map(|class| class.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(yaml: &str) -> api::PriorityClass {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn names_stand_for_numbers_and_no_name_for_the_lowest_default() {
        let mut classes = PriorityClasses::default();
        assert_eq!(classes.value(""), Some(0));
        for yaml in [
            "{metadata: {name: high}, value: 1000}",
            "{metadata: {name: normal}, value: 10, globalDefault: true}",
            "{metadata: {name: other}, value: 20, globalDefault: true}",
        ] {
            classes.insert(&class(yaml)).unwrap();
        }
        assert_eq!(classes.value("high"), Some(1000));
        assert_eq!(classes.value(""), Some(10));
        assert_eq!(classes.value("system-node-critical"), Some(2_000_001_000));
        assert_eq!(classes.value("missing"), None);
        assert!(classes.remove("normal"));
        assert_eq!(classes.value("normal"), None);
        assert_eq!(classes.value(""), Some(20));
        assert!(!classes.remove("missing") && !classes.remove("system-node-critical"));
    }

    #[test]
    fn a_class_without_a_countable_value_is_refused() {
        let mut classes = PriorityClasses::default();
        let refused = classes.insert(&class("{metadata: {name: x}, value: 3000000000}"));
        assert_eq!(
            refused.unwrap_err().to_string(),
            "InvalidPriority: value: 3000000000; accepted: -2147483648 to 2147483647"
        );
        assert!(classes.insert(&class("metadata: {name: x}")).is_err());
        assert_eq!(classes.value("x"), None);
    }
}
