//! Grove's `PodGang`s (`scheduler.grove.io`).
//!
//! Pods carry the name of their gang and of their clique as labels; a clique is a role. All cliques need
//! their minimum. A gang, a set of its cliques and each clique may say how near its pods must be, as node
//! labels. Grove may have another scheduler's group made from a `PodGang`, which pods then name as well;
//! that one goes first, as it says the same. Its gates keep pods back until the gang is complete.

use std::collections::BTreeMap;

use gangline::{
    gang::{GangSpec, Group, Problem, TopologyRule},
    units::Nanos,
};
use serde::Deserialize;

use super::{
    Dialect, Field, Kind, Link, Member, Roster, Surroundings, count, roles,
    store::{self, Store},
};
use crate::{
    api::{Pod, or_default, whole_number},
    load::{Complaint, Document},
    problem::problem,
};

const SOURCE: &str = "grove";
const API_GROUP: &str = "scheduler.grove.io";
const KIND: &str = "PodGang";
const GANG: &str = "grove.io/podgang";
const GANG_FIELD: &str = "metadata.labels[grove.io/podgang]";
const CLIQUE: &str = "grove.io/podclique";

/// All fields of a `PodGang`'s spec.
const FIELDS: &[Field] = &[
    Field::of(
        "podgroups",
        &[
            Field::any("name"),
            Field::any("podReferences"),
            Field::any("minReplicas"),
            TOPOLOGY,
        ],
    ),
    TOPOLOGY,
    Field::of(
        "topologyConstraintGroupConfigs",
        &[Field::any("name"), Field::any("podGroupNames"), TOPOLOGY],
    ),
    Field::any("priorityClassName"),
    Field::any("reuseReservationRef"),
];
const TOPOLOGY: Field = Field::of(
    "topologyConstraint",
    &[Field::of(
        "packConstraint",
        &[Field::any("required"), Field::any("preferred")],
    )],
);

/// The dialect.
#[derive(Debug, Default)]
pub(super) struct Grove {
    gangs: Store<PodGangSpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodGangSpec {
    #[serde(deserialize_with = "or_default")]
    podgroups: Vec<Clique>,
    #[serde(deserialize_with = "or_default")]
    topology_constraint: Constraint,
    #[serde(deserialize_with = "or_default")]
    topology_constraint_group_configs: Vec<Set>,
    #[serde(deserialize_with = "or_default")]
    priority_class_name: Box<str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Clique {
    #[serde(deserialize_with = "or_default")]
    name: String,
    #[serde(deserialize_with = "whole_number")]
    min_replicas: Option<i64>,
    #[serde(deserialize_with = "or_default")]
    topology_constraint: Constraint,
}

/// Cliques with a rule of their own.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Set {
    #[serde(deserialize_with = "or_default")]
    name: String,
    #[serde(deserialize_with = "or_default")]
    pod_group_names: Vec<Box<str>>,
    #[serde(deserialize_with = "or_default")]
    topology_constraint: Constraint,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Constraint {
    #[serde(deserialize_with = "or_default")]
    pack_constraint: Pack,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Pack {
    #[serde(deserialize_with = "or_default")]
    required: String,
    #[serde(deserialize_with = "or_default")]
    preferred: String,
}

impl Constraint {
    fn rule(&self) -> TopologyRule {
        let level = |level: &String| Some(level.clone()).filter(|level| !level.is_empty());
        TopologyRule {
            required: level(&self.pack_constraint.required),
            preferred: level(&self.pack_constraint.preferred),
        }
    }
}

impl Dialect for Grove {
    fn kinds(&self) -> &'static [Kind] {
        &[Kind {
            group: API_GROUP,
            versions: &["v1alpha1"],
            kind: KIND,
            spec: FIELDS,
        }]
    }

    fn take(&mut self, document: &Document<'_>, arrival: Nanos) -> Result<(), Box<Complaint>> {
        self.gangs.take(document, true, arrival)
    }

    fn forget(&mut self, group: &str, kind: &str, namespace: &str, name: &str) {
        if (group, kind) == (API_GROUP, KIND) {
            self.gangs.forget(namespace, name);
        }
    }

    fn link(&self, pod: &Pod) -> Option<Link> {
        let label = |key| pod.metadata.labels.get(key).filter(|text| !text.is_empty());
        let name = label(GANG)?;
        Some(Link {
            task: label(CLIQUE).cloned().unwrap_or_default(),
            ..Link::inferred(pod, SOURCE, name, GANG_FIELD)
        })
    }

    fn gangs(&self, roster: &mut Roster<'_>, around: &mut Surroundings<'_>) -> Vec<GangSpec> {
        let mut gangs = Vec::new();
        for (name, stored) in self.gangs.asked(SOURCE, around.only) {
            let Some(members) = roster.get_mut(&store::key(name, SOURCE)) else {
                continue;
            };
            let built = stored.spec.as_ref().map_err(Clone::clone).and_then(|spec| {
                let root = tree(&name.1, spec, members);
                Ok((
                    spec,
                    root.inspect_err(|problem| around.refuse(stored, problem))?,
                ))
            });
            gangs.push(match built {
                Ok((spec, root)) => GangSpec {
                    priority: around.priority(None, &spec.priority_class_name, members, stored),
                    ..stored.gang(name, SOURCE, root)
                },
                Err(problem) => stored.invalid(name, SOURCE, problem),
            });
        }
        gangs
    }
}

fn tree(name: &str, spec: &PodGangSpec, members: &mut [&mut Member]) -> Result<Group, Problem> {
    let mut minima = roles::Minima::new();
    for (index, clique) in spec.podgroups.iter().enumerate() {
        let field = format!("spec.podgroups[{index}].minReplicas");
        minima.insert(
            clique.name.clone(),
            count(clique.min_replicas, 1, 0, &field)?,
        );
    }
    let mut leaves: BTreeMap<String, Group> = roles::leaves(&minima, members)
        .into_iter()
        .map(|leaf| (leaf.name.clone(), leaf))
        .collect();
    for clique in &spec.podgroups {
        if let Some(leaf) = leaves.get_mut(&clique.name) {
            leaf.topology = clique.topology_constraint.rule();
        }
    }
    let mut sets = Vec::new();
    for (index, set) in spec.topology_constraint_group_configs.iter().enumerate() {
        let mut children = Vec::new();
        let mut least = 0;
        for clique in &set.pod_group_names {
            let leaf = leaves.remove(&**clique).ok_or_else(|| {
                let field = format!("spec.topologyConstraintGroupConfigs[{index}].podGroupNames");
                let message = format!("{clique}; accepted: one of podgroups, and each in one set");
                problem("InvalidSubGroup", field, message)
            })?;
            least += u64::from(minima.get(&**clique).copied().unwrap_or(0));
            children.push(leaf);
        }
        if !children.is_empty() {
            let set_name = format!("set/{}", set.name);
            sets.push(Group {
                topology: set.topology_constraint.rule(),
                ..roles::all_of(set_name, children, least)
            });
        }
    }
    sets.extend(leaves.into_values());
    Ok(Group {
        topology: spec.topology_constraint.rule(),
        ..roles::all_of(format!("podgang/{name}"), sets, roles::sum(&minima))
    })
}

#[cfg(test)]
mod tests {
    use crate::intake::testing::{pod, world};

    fn gang(spec: &str) -> String {
        format!(
            "apiVersion: scheduler.grove.io/v1alpha1\nkind: PodGang\n\
             metadata: {{name: serve-0, namespace: ml}}\nspec: {{{spec}}}\n---\n"
        )
    }

    fn member(name: &str, clique: &str) -> String {
        pod(
            name,
            &format!("labels: {{grove.io/podgang: serve-0, grove.io/podclique: {clique}}}"),
        )
    }

    const CLIQUES: &str = "podgroups: [{name: prefill, minReplicas: 2, podReferences: [{namespace: \
                           ml, name: a}]}, {name: decode, minReplicas: 3, topologyConstraint: \
                           {packConstraint: {preferred: rack}}}]";

    #[test]
    fn cliques_are_roles_that_are_all_needed() {
        let world = world(&[gang(CLIQUES), member("a", "prefill"), member("b", "decode")].concat());
        assert_eq!(
            world.trees(),
            ["grove/serve-0: podgang/serve-0[>=5: decode>=3~rack, prefill>=2]"]
        );
        assert_eq!(world.links()[0], "a: grove/serve-0 prefill");
        assert!(world.complaints.is_empty(), "{:?}", world.complaint_lines());
    }

    #[test]
    fn a_gang_and_sets_of_its_cliques_have_topology() {
        let spec = format!(
            "{CLIQUES}, topologyConstraint: {{packConstraint: {{required: block}}}}, \
             topologyConstraintGroupConfigs: [{{name: s, podGroupNames: [prefill], \
             topologyConstraint: {{packConstraint: {{required: rack}}}}}}]"
        );
        assert_eq!(
            world(&[gang(&spec), member("a", "prefill")].concat()).trees(),
            [
                "grove/serve-0: podgang/serve-0[>=5: set/s[>=2: prefill>=2]@rack, \
              decode>=3~rack]@block"
            ]
        );
    }

    #[test]
    fn what_cannot_be_honoured_is_named_by_its_field() {
        let config = |names: &str| {
            format!("{CLIQUES}, topologyConstraintGroupConfigs: [{{podGroupNames: [{names}]}}]")
        };
        for (spec, code) in [
            (CLIQUES.replace('3', "-3"), "InvalidMinimum"),
            (config("zzz"), "InvalidSubGroup"),
            (config("decode, decode"), "InvalidSubGroup"),
        ] {
            let world = world(&[gang(&spec), member("a", "prefill")].concat());
            let problem = world.gang("serve-0").problem.clone().unwrap();
            assert_eq!(problem.code, code, "{spec}");
            assert_eq!(world.complaint_lines().len(), 1, "{spec}");
        }
    }

    #[test]
    fn a_gang_that_is_gone_is_awaited_and_the_group_of_its_backend_goes_first() {
        assert_eq!(
            world(&member("a", "prefill")).links(),
            ["a: grove/serve-0 "]
        );
        assert_eq!(world(&gang(CLIQUES)).trees(), [""; 0]);
        let backend = pod(
            "a",
            "labels: {grove.io/podgang: serve-0}, annotations: {pod-group-name: pg}",
        );
        assert_eq!(
            world(&[gang(CLIQUES), backend].concat()).links(),
            ["a: kai/pg "]
        );
    }
}
