//! The names that a scenario knows, so that an expectation about a misspelt one is an error instead of
//! something that holds by accident.
//!
//! Data enters as the [`Scenario`] before it is played and leaves as sets of names.

use std::collections::BTreeSet;

use gangline::{
    Event,
    gang::{Group, GroupKind},
};

use super::{
    Scenario,
    shape::{GroupShape, WorkShape},
};

/// Names that exist at some time.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Levels of the topology, by node label.
    pub(super) levels: BTreeSet<String>,
    /// Nodes.
    pub(super) nodes: BTreeSet<String>,
    /// Roles of gangs.
    pub(super) roles: BTreeSet<String>,
}

impl Known {
    /// All names of a scenario; `levels` are those that the engine was made with.
    pub(super) fn new(scenario: &Scenario, levels: &[String]) -> Self {
        let mut known = Self {
            levels: levels.iter().cloned().collect(),
            ..Self::default()
        };
        let entries = scenario.events.iter();
        let nodes = entries.clone().filter_map(|entry| entry.node.as_deref());
        for node in scenario.nodes.iter().chain(nodes) {
            known.nodes.extend(node.name.0.iter().cloned());
        }
        let submitted = entries.clone().filter_map(|entry| entry.submit.as_deref());
        for work in scenario.work.iter().chain(submitted) {
            known.add_work(work);
        }
        if let Some(snapshot) = &scenario.snapshot {
            let nodes = snapshot.nodes.iter().map(|node| node.name.clone());
            known.nodes.extend(nodes);
            let specs = snapshot.gangs.iter().filter_map(|gang| gang.spec.as_ref());
            specs.for_each(|spec| known.add_group(&spec.root));
        }
        for entry in entries {
            known
                .roles
                .extend(entry.join.iter().map(|join| join.role.clone()));
            match entry.apply.as_deref() {
                Some(Event::Node(node)) => {
                    known.nodes.insert(node.name.clone());
                }
                Some(Event::Gang(gang)) => known.add_group(&gang.root),
                _ => {}
            }
        }
        known
    }

    fn add_work(&mut self, work: &WorkShape) {
        let mut shapes: Vec<&GroupShape> = work.roles.iter().collect();
        while let Some(shape) = shapes.pop() {
            self.roles.insert(shape.name.clone());
            shapes.extend(&shape.roles);
        }
    }

    fn add_group(&mut self, root: &Group) {
        let mut groups = vec![root];
        while let Some(group) = groups.pop() {
            self.roles.insert(group.name.clone());
            if let GroupKind::Group { children, .. } = &group.kind {
                groups.extend(children);
            }
        }
    }
}
