//! What never changes by placing: labels that somebody asks about, taints, cordon, allocatable.
//!
//! Nodes with equal shapes answer every static question alike, so each question is asked once a
//! shape. Labels that no rule names are left out, otherwise every node would be its own shape.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    string::String,
    vec::Vec,
};

use smallvec::SmallVec;

use super::{NodeSpec, template::Compiled};
use crate::{
    explain::Cause,
    hash::Map,
    request::{NODE_LEVEL, NodeRules, Taint, TaintEffect},
};

/// Index of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ShapeIx(pub(crate) u32);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) taints: Vec<Taint>,
    pub(crate) unschedulable: bool,
    pub(crate) allocatable: Vec<i64>,
}

#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_field_names, reason = "the table and its index")]
pub(crate) struct Shapes {
    shapes: Vec<Shape>,
    by_shape: Map<Shape, ShapeIx>,
    interesting: BTreeSet<String>,
}

/// Whether a node could ever take a member, apart from what is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StaticFit {
    /// It could; higher is liked better.
    Fits { preference: i32 },
    /// It could not.
    Fails(Cause),
}

impl Shapes {
    /// The shape of a node, made if new. `allocatable` is its amounts in cluster order.
    pub(crate) fn of(&mut self, spec: &NodeSpec, allocatable: &[i64]) -> ShapeIx {
        let interesting = &self.interesting;
        let labels = spec
            .labels
            .iter()
            .filter(|(key, _)| interesting.contains(*key));
        let mut taints = spec.taints.clone();
        taints.sort_unstable();
        let shape = Shape {
            labels: labels
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            taints,
            unschedulable: spec.unschedulable,
            allocatable: allocatable.into(),
        };
        let next = ShapeIx(self.shapes.len() as u32);
        *self.by_shape.entry(shape).or_insert_with_key(|shape| {
            self.shapes.push(shape.clone());
            next
        })
    }

    /// The shape of a node with new marks and labels that offers what a shape says.
    pub(crate) fn remark(&mut self, shape: ShapeIx, spec: &NodeSpec) -> ShapeIx {
        let allocatable: SmallVec<[i64; 16]> = self.get(shape).allocatable.as_slice().into();
        self.of(spec, &allocatable)
    }

    pub(crate) fn get(&self, shape: ShapeIx) -> &Shape {
        &self.shapes[shape.0 as usize]
    }

    /// Notes the labels that a template asks about; true when one is new, so that every node's
    /// shape must be made again.
    pub(crate) fn take_interest<'a>(&mut self, keys: impl IntoIterator<Item = &'a str>) -> bool {
        let mut grew = false;
        for key in keys {
            if key != NODE_LEVEL && !self.interesting.contains(key) {
                grew |= self.interesting.insert(key.into());
            }
        }
        grew
    }
}

impl Shape {
    /// The static answer of nodes of this shape to a template that names no node.
    pub(crate) fn judge(&self, template: &Compiled) -> StaticFit {
        static_fit(template, self.unschedulable, &self.taints, "", &self.labels)
    }
}

/// The static answer of one node. `name` is only read by templates that name nodes.
pub(crate) fn static_fit(
    template: &Compiled,
    unschedulable: bool,
    taints: &[Taint],
    name: &str,
    labels: &BTreeMap<String, String>,
) -> StaticFit {
    let rules = &template.source.nodes;
    if let Some(cause) = repelled_by(rules, unschedulable, taints) {
        return StaticFit::Fails(cause);
    }
    if !selects(rules, name, labels) {
        return StaticFit::Fails(Cause::NodeSelector);
    }
    let mut preference: i32 = 0;
    for taint in taints {
        if taint.effect == TaintEffect::PreferNoSchedule && !tolerates(rules, taint) {
            preference -= 100;
        }
    }
    for (weight, term) in &rules.preferred {
        if term.matches(name, labels) {
            preference = preference.saturating_add(*weight);
        }
    }
    StaticFit::Fits { preference }
}

fn tolerates(rules: &NodeRules, taint: &Taint) -> bool {
    rules
        .tolerations
        .iter()
        .any(|toleration| toleration.covers(taint))
}

/// What about a node's marks keeps a member away that it does not tolerate.
pub(crate) fn repelled_by(
    rules: &NodeRules,
    unschedulable: bool,
    taints: &[Taint],
) -> Option<Cause> {
    // Kubernetes treats a cordon as a taint of this name, so that a toleration can cover it.
    let cordon = || Taint {
        key: "node.kubernetes.io/unschedulable".into(),
        value: String::new(),
        effect: TaintEffect::NoSchedule,
    };
    if unschedulable && !tolerates(rules, &cordon()) {
        return Some(Cause::Unschedulable);
    }
    let repels =
        |taint: &Taint| taint.effect != TaintEffect::PreferNoSchedule && !tolerates(rules, taint);
    taints.iter().any(repels).then_some(Cause::Taint)
}

/// Whether a node has what a member selects it by.
pub(crate) fn selects(rules: &NodeRules, name: &str, labels: &BTreeMap<String, String>) -> bool {
    let host = |key: &str| if key == NODE_LEVEL { Some(name) } else { None };
    let selected = rules.selector.iter().all(|(key, value)| {
        labels.get(key).map(String::as_str).or_else(|| host(key)) == Some(value.as_str())
    });
    let required = rules.required.as_ref();
    selected && required.is_none_or(|terms| terms.iter().any(|term| term.matches(name, labels)))
}
