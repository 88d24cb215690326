//! The names that a scenario knows, so that an expectation about a misspelt one is an error instead of
//! something that holds by accident.
//!
//! Data enters as the [`Scenario`] before it is played and leaves as sets of names.

use std::collections::BTreeSet;

use gangline::{
    Event,
    device::model,
    gang::{Group, GroupKind},
};

use super::{
    Scenario,
    build::Wrong,
    shape::{GroupShape, PodShape, WorkShape},
};
use crate::annotations::nearest;

impl Scenario {
    /// Models of cards that pods name and that no node has at any time: each as a sentence. A scenario
    /// may be about just that, so it is played all the same.
    pub fn absent_models(&self) -> Vec<String> {
        let entries = self.events.iter();
        let shapes = entries.clone().filter_map(|entry| entry.node.as_deref());
        let shapes = self.nodes.iter().chain(shapes);
        let mut there: BTreeSet<&str> = shapes.filter_map(|node| node.model.as_deref()).collect();
        let applied = entries
            .clone()
            .filter_map(|entry| match entry.apply.as_deref() {
                Some(Event::Node(node)) => Some(node),
                _ => None,
            });
        let kept = self.snapshot.iter().flat_map(|snapshot| &snapshot.nodes);
        for node in kept.chain(applied) {
            there.extend(node.cards.iter().map(|cards| cards.model.as_str()));
        }
        let models = there.iter().filter_map(|name| model::find(name));
        let models: Vec<&str> = models.map(|model| model.name).collect();
        there.extend(models);
        let known: Vec<&str> = there.into_iter().filter(|name| !name.is_empty()).collect();

        let mut pods: Vec<&PodShape> = Vec::new();
        let submitted = entries.clone().filter_map(|entry| entry.submit.as_deref());
        for work in self.work.iter().chain(submitted) {
            pods.push(&work.pod);
            let mut roles: Vec<&GroupShape> = work.roles.iter().collect();
            while let Some(role) = roles.pop() {
                pods.extend(&role.pod);
                roles.extend(&role.roles);
            }
        }
        let joins = entries.filter_map(|entry| entry.join.as_ref());
        pods.extend(joins.filter_map(|join| join.pod.as_ref()));
        let named: BTreeSet<&str> = pods
            .iter()
            .flat_map(|pod| pod.models.iter().map(String::as_str))
            .collect();
        let absent = named.into_iter().filter(|name| !known.contains(name));
        let sentence = |name: &str| {
            let near = nearest(name, &known).map(|near| format!("; did you mean {near}?"));
            let near = near.unwrap_or_default();
            format!("models: no node has cards of {name:?}{near}")
        };
        absent.map(sentence).collect()
    }
}

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

    /// Refuses work that runs on a node which there never is: it would take no room, and so test nothing.
    pub(super) fn has_nodes_of_work(&self, scenario: &Scenario) -> Result<(), Wrong> {
        let submitted = scenario.events.iter();
        let submitted = submitted.filter_map(|entry| entry.submit.as_deref());
        let mut names = scenario.work.iter().chain(submitted).flat_map(|work| {
            let names = work.node.iter();
            names.flat_map(|names| &names.0)
        });
        match names.find(|name| !self.nodes.contains(*name)) {
            None => Ok(()),
            Some(name) => {
                let known: Vec<&str> = self.nodes.iter().map(String::as_str).collect();
                let near = nearest(name, &known).map(|near| format!("; did you mean {near}?"));
                let near = near.unwrap_or_default();
                Err(format!("node: no node is ever called {name:?}{near}"))
            }
        }
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
