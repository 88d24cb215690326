//! A cluster dump (and manifests on top of it) to the events that tell the engine of it.
//!
//! Documents enter as [`load`](crate::load) finds them and are cut down to what decides something at
//! once. When all are there, groups meet their pods, topology levels are chosen, and everything
//! leaves as one [`World`]: the engine's levels, events in a canonical order that does not depend on
//! the order of the input, and every complaint on the way.
//!
//! **Manifests** answer "what if I applied this file?". Their objects count as created after
//! everything in the dump, in the order of the documents; of workloads in one call the first pods come
//! first, then all second ones, as controllers that work side by side would make them. A manifest
//! object that is in the dump replaces what the dump says, but running pods stay as they are.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use gangline::Event;
use gangline::cluster::NodeSpec;
use gangline::gang::GangKey;
use gangline::units::{Nanos, Uid};
use serde::Serialize;

use crate::api;
use crate::intake::{self, Dialect, Member, Roster, Surroundings};
use crate::load::{self, Complaint, Document, LoadError, Severity, Sink};

mod kinds;
mod levels;
mod owners;
mod priority;
#[cfg(test)]
mod tests;

use kinds::Target;
use owners::Owners;
use priority::PriorityClasses;

/// What the caller may choose.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Topology levels, coarse to fine; `None` chooses them from the nodes' labels.
    pub levels: Option<Vec<String>>,
    /// Only waiting pods with these `schedulerName`s are ours; empty means all of them.
    pub scheduler_names: Vec<String>,
}

/// What the engine is to be told.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// Topology levels, coarse to fine.
    pub levels: Vec<String>,
    /// Namespaces, nodes, groups, pods; the pods in the order in which they were created.
    pub events: Vec<Event>,
    /// Everything that is wrong with the input, in its order.
    pub complaints: Vec<Complaint>,
    /// What there was.
    pub counts: Counts,
    /// The latest time that any object mentions: "now" for a decision about this state.
    pub now: Nanos,
}

/// What there was in the input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Nodes.
    pub nodes: usize,
    /// Groups of pods.
    pub groups: usize,
    /// Pods, those of manifests' workloads included.
    pub pods: usize,
    /// Objects of kinds that decide nothing here, by kind and group.
    pub skipped: BTreeMap<String, u64>,
}

/// Gathers objects until they make a world.
pub struct Builder<'p> {
    progress: &'p mut dyn FnMut(u64, u64),
    namespaces: BTreeMap<String, BTreeMap<String, String>>,
    nodes: BTreeMap<String, NodeSpec>,
    dialects: Vec<Box<dyn Dialect>>,
    classes: PriorityClasses,
    owners: Owners,
    pods: Vec<Waiting>,
    /// Where in `pods` the pod of a namespace and name is.
    index: HashMap<(String, String), usize>,
    complaints: Vec<Complaint>,
    skipped: BTreeMap<String, u64>,
    latest: Nanos,
    /// Set while manifests are read: when the next object counts as created.
    arrival: Option<Nanos>,
}
