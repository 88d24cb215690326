//! Kubernetes' own groups (`scheduling.k8s.io`): `PodGroup`, `CompositePodGroup`, `Workload`.
//!
//! A pod names its `PodGroup` in `spec.schedulingGroup`. A `PodGroup` has one minimum over pods of any
//! shape (`gang`) or none at all (`basic`). `PodGroup`s with a parent hang in a tree of
//! `CompositePodGroup`s; then the root of the tree is the gang and each `PodGroup` a role of it (see
//! [`tree`]). A `Workload` is what controllers make both from; only its absence is worth a word.

use gangline::{
    gang::{GangKey, GangSpec, Group, Problem, TopologyRule, spec::Disruption},
    units::Nanos,
};
use serde::Deserialize;

use super::{
    Dialect, Field, Kind, Link, Roster, Surroundings, count,
    store::{self, Name, Store},
};
use crate::{
    api::{Pod, or_default, whole_number},
    load::{Complaint, Document},
    problem::problem,
};

#[cfg(test)]
mod tests;
mod tree;

#[cfg(feature = "live")]
pub(crate) use tree::COMPOSITE_SOURCE;

pub(crate) const SOURCE: &str = "native";
const API_GROUP: &str = "scheduling.k8s.io";

/// All fields of a `PodGroup`'s spec.
const GROUP_FIELDS: &[Field] = &[
    Field::any("parentCompositePodGroupName"),
    Field::any("workloadRef"),
    Field::of(
        "schedulingPolicy",
        &[
            Field::any("basic"),
            Field::of("gang", &[Field::any("minCount")]),
        ],
    ),
    CONSTRAINTS,
    Field::any("resourceClaims"),
    DISRUPTION,
    Field::any("priorityClassName"),
    Field::any("priority"),
    Field::any("preemptionPolicy"),
];
/// All fields of a `CompositePodGroup`'s spec.
const COMPOSITE_FIELDS: &[Field] = &[
    Field::any("parentCompositePodGroupName"),
    Field::any("workloadRef"),
    Field::of(
        "schedulingPolicy",
        &[
            Field::any("basic"),
            Field::of("gang", &[Field::any("minGroupCount")]),
        ],
    ),
    CONSTRAINTS,
    DISRUPTION,
    Field::any("priorityClassName"),
    Field::any("priority"),
    Field::any("preemptionPolicy"),
];
const CONSTRAINTS: Field = Field::of(
    "schedulingConstraints",
    &[Field::of("topology", &[Field::any("key")])],
);
const DISRUPTION: Field = Field::of("disruptionMode", &[Field::any("single"), Field::any("all")]);
/// All fields of a `Workload`'s spec.
const WORKLOAD_FIELDS: &[Field] = &[
    Field::any("controllerRef"),
    Field::any("podGroupTemplates"),
    Field::any("compositePodGroupTemplates"),
];

/// The dialect.
#[derive(Debug, Default)]
pub(super) struct Native {
    groups: Store<GroupSpec>,
    composites: Store<GroupSpec>,
    workloads: Store<WorkloadSpec>,
}

/// What a `PodGroup` or a `CompositePodGroup` says; they differ in the name of the minimum.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct GroupSpec {
    #[serde(deserialize_with = "or_default")]
    parent_composite_pod_group_name: Box<str>,
    workload_ref: Option<WorkloadReference>,
    #[serde(deserialize_with = "or_default")]
    scheduling_policy: Policy,
    #[serde(deserialize_with = "or_default")]
    scheduling_constraints: Constraints,
    #[serde(deserialize_with = "or_default")]
    disruption_mode: DisruptionMode,
    #[serde(deserialize_with = "whole_number")]
    priority: Option<i64>,
    #[serde(deserialize_with = "or_default")]
    priority_class_name: Box<str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WorkloadReference {
    #[serde(deserialize_with = "or_default")]
    workload_name: Box<str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Policy {
    basic: Option<Empty>,
    gang: Option<GangPolicy>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct GangPolicy {
    #[serde(deserialize_with = "whole_number")]
    min_count: Option<i64>,
    #[serde(deserialize_with = "whole_number")]
    min_group_count: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Constraints {
    #[serde(deserialize_with = "or_default")]
    topology: Vec<TopologyConstraint>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TopologyConstraint {
    #[serde(deserialize_with = "or_default")]
    key: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DisruptionMode {
    single: Option<Empty>,
    all: Option<Empty>,
}

/// A choice that has no settings.
#[derive(Debug, Default, Deserialize)]
struct Empty {}

#[derive(Debug, Default, Deserialize)]
struct WorkloadSpec {}

/// A `PodGroup`, or one level up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Pods,
    Groups,
}

impl GroupSpec {
    /// The minimum: `None` for `basic`.
    fn minimum(&self, level: Level) -> Result<Option<u32>, Problem> {
        const FIELD: &str = "spec.schedulingPolicy";
        let gang = match (&self.scheduling_policy.basic, &self.scheduling_policy.gang) {
            (Some(Empty {}), None) => return Ok(None),
            (None, Some(gang)) => gang,
            (basic, _) => {
                let given = if basic.is_some() {
                    "basic and gang"
                } else {
                    "neither basic nor gang"
                };
                let message = format!("{given}; accepted: exactly one of basic and gang");
                return Err(problem("InvalidPolicy", FIELD, message));
            }
        };
        let (value, name) = match level {
            Level::Pods => (gang.min_count, "minCount"),
            Level::Groups => (gang.min_group_count, "minGroupCount"),
        };
        let field = format!("{FIELD}.gang.{name}");
        if value.is_none() {
            return Err(problem(
                "InvalidMinimum",
                field,
                "missing; accepted: 1 or more",
            ));
        }
        count(value, 1, 1, &field).map(Some)
    }

    fn topology(&self) -> Result<TopologyRule, Problem> {
        let field = "spec.schedulingConstraints.topology";
        let required = match &self.scheduling_constraints.topology[..] {
            [] => None,
            [constraint] if !constraint.key.is_empty() => Some(constraint.key.clone()),
            [_] => {
                return Err(problem(
                    "InvalidTopology",
                    field,
                    "no key; accepted: a node label",
                ));
            }
            more => {
                let message = format!("{} constraints; accepted: at most one", more.len());
                return Err(problem("InvalidTopology", field, message));
            }
        };
        Ok(TopologyRule {
            required,
            preferred: None,
        })
    }

    fn disruption(&self) -> Result<Disruption, Problem> {
        let mode = &self.disruption_mode;
        let refuse = |message| {
            Err(problem(
                "InvalidDisruptionMode",
                "spec.disruptionMode",
                message,
            ))
        };
        match (&mode.single, &mode.all) {
            (Some(_), Some(_)) => refuse("single and all; accepted: at most one of them"),
            (_, None) => Ok(Disruption::Single),
            (None, Some(_)) if self.scheduling_policy.basic.is_some() => {
                refuse("all with the basic policy; accepted: single")
            }
            (None, Some(_)) => Ok(Disruption::All),
        }
    }

    /// The name of its parent in its namespace, if it has one.
    fn parent(&self, namespace: &str) -> Option<Name> {
        let parent = &self.parent_composite_pod_group_name;
        (!parent.is_empty()).then(|| (namespace.to_owned(), parent.to_string()))
    }
}

impl Dialect for Native {
    fn kinds(&self) -> &'static [Kind] {
        const VERSIONS: &[&str] = &["v1beta1", "v1alpha3"];
        &[
            Kind {
                group: API_GROUP,
                versions: VERSIONS,
                kind: "PodGroup",
                spec: GROUP_FIELDS,
            },
            Kind {
                group: API_GROUP,
                versions: &["v1alpha3"],
                kind: "CompositePodGroup",
                spec: COMPOSITE_FIELDS,
            },
            Kind {
                group: API_GROUP,
                versions: VERSIONS,
                kind: "Workload",
                spec: WORKLOAD_FIELDS,
            },
        ]
    }

    fn take(&mut self, document: &Document<'_>, arrival: Nanos) -> Result<(), Box<Complaint>> {
        match document.kind.as_str() {
            "CompositePodGroup" => self.composites.take(document, true, arrival),
            "Workload" => self.workloads.take(document, true, arrival),
            _ => self.groups.take(document, true, arrival),
        }
    }

    fn forget(&mut self, group: &str, kind: &str, namespace: &str, name: &str) {
        match kind {
            _ if group != API_GROUP => {}
            "PodGroup" => self.groups.forget(namespace, name),
            "CompositePodGroup" => self.composites.forget(namespace, name),
            "Workload" => self.workloads.forget(namespace, name),
            _ => {}
        }
    }

    fn link(&self, pod: &Pod) -> Option<Link> {
        let group = pod.spec.scheduling_group.as_ref()?;
        let name = Some(&group.pod_group_name).filter(|name| !name.is_empty())?;
        Some(Link::named(
            pod,
            SOURCE,
            name,
            "spec.schedulingGroup.podGroupName",
        ))
    }

    fn group_of(&self, kind: &str, namespace: &str, name: &str) -> Option<GangKey> {
        store::of_pod_group(kind, namespace, name, SOURCE)
    }

    fn depends_on_others(&self, group: &GangKey) -> bool {
        // A tree is one gang.
        let name = (group.namespace.clone(), group.name.clone());
        let stored = self.groups.get(&name).filter(|_| group.source == SOURCE);
        let spec = stored.and_then(|stored| stored.spec.as_ref().ok());
        spec.is_some_and(|spec| spec.parent(&name.0).is_some())
    }

    fn gangs(&self, roster: &mut Roster<'_>, around: &mut Surroundings<'_>) -> Vec<GangSpec> {
        if around.only.is_none() {
            self.check_workloads(around);
        }
        let mut gangs = Vec::new();
        for (name, stored) in self.groups.asked(SOURCE, around.only) {
            let spec = match &stored.spec {
                Ok(spec) if spec.parent(&name.0).is_none() => spec,
                Ok(_) => continue,
                Err(problem) => {
                    gangs.push(stored.invalid(name, SOURCE, problem.clone()));
                    continue;
                }
            };
            let members = roster
                .get(&store::key(name, SOURCE))
                .map_or(&[][..], Vec::as_slice);
            let priority =
                around.priority(spec.priority, &spec.priority_class_name, members, stored);
            gangs.push(
                match leaf(name, spec).and_then(|leaf| Ok((leaf, spec.disruption()?))) {
                    Ok((leaf, disruption)) => GangSpec {
                        priority,
                        disruption,
                        ..stored.gang(name, SOURCE, leaf)
                    },
                    Err(problem) => {
                        around.refuse(stored, &problem);
                        stored.invalid(name, SOURCE, problem)
                    }
                },
            );
        }
        if around.only.is_none() {
            gangs.extend(self.trees(roster, around));
        }
        gangs.sort_by(|one, other| one.key.cmp(&other.key));
        gangs
    }
}

/// A `PodGroup` as a role.
fn leaf(name: &Name, spec: &GroupSpec) -> Result<Group, Problem> {
    let min = spec.minimum(Level::Pods)?.unwrap_or(0);
    Ok(Group {
        topology: spec.topology()?,
        ..store::role(&name.1, min)
    })
}

impl Native {
    fn check_workloads(&self, around: &mut Surroundings<'_>) {
        let all = self.groups.iter().chain(self.composites.iter());
        for ((namespace, _), stored) in all {
            let reference = stored
                .spec
                .as_ref()
                .ok()
                .and_then(|spec| spec.workload_ref.as_ref());
            let Some(name) = reference.map(|reference| reference.workload_name.to_string()) else {
                continue;
            };
            if self
                .workloads
                .get(&(namespace.clone(), name.clone()))
                .is_none()
            {
                let accepted = "a Workload that is there; the group counts as it stands";
                around.warn(stored, "spec.workloadRef.workloadName", &name, accepted);
            }
        }
    }
}
