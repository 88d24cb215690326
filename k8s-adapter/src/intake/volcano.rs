//! Volcano's groups (`scheduling.volcano.sh`) and its network topology (`topology.volcano.sh`).
//!
//! Pods name their group by annotation. A `PodGroup` has a minimum over all its pods and may have one
//! for each task (a pod's `volcano.sh/task-spec`) or for sub-groups of pods with equal labels, so its
//! tree depends on its pods. Pods that name no group but have `schedulerName: volcano` get the group
//! that Volcano's own controller would make for their owner. `HyperNode`s become node labels (see
//! [`hypernode`]). `minResources` is checked but decides nothing: there it keeps pods from being made
//! too early, here the members themselves are counted.

use std::collections::BTreeMap;

use gangline::{
    cluster::NodeSpec,
    gang::{GangKey, GangSpec, Group, Problem},
    units::Nanos,
};
use serde::Deserialize;

use super::{
    Dialect, Field, GroupKey, Kind, Link, Member, Roster, Said, Surroundings,
    link::kind_and_name,
    roles,
    store::{self, Store},
};
use crate::{
    api::{LabelSelector, Pod, ResourceList, StringMap, or_default, whole_number},
    load::{Complaint, Document},
    problem::problem,
};

mod hypernode;
#[cfg(test)]
mod tests;
mod tree;

#[cfg(feature = "live")]
pub(super) use hypernode::implies;
use hypernode::{HyperNodeSpec, Tiers};

pub(crate) const SOURCE: &str = "volcano";
/// The `schedulerName` that pods of its Jobs have.
pub(crate) const SCHEDULER: &str = "volcano";
/// The annotation that its scheduler reads, and the one that is also defined.
const GROUP_NAME: [(&str, &str); 2] = [
    (
        "scheduling.k8s.io/group-name",
        "metadata.annotations[scheduling.k8s.io/group-name]",
    ),
    (
        "scheduling.volcano.sh/group-name",
        "metadata.annotations[scheduling.volcano.sh/group-name]",
    ),
];
const TASK: &str = "volcano.sh/task-spec";
const QUEUE_NAME: &str = "scheduling.volcano.sh/queue-name";
const GROUP_MIN_MEMBER: &str = "scheduling.volcano.sh/group-min-member";
const TOPOLOGY_MODE: &str = "volcano.sh/network-topology-mode";
const TOPOLOGY_TIER: &str = "volcano.sh/network-topology-highest-tier";

/// All fields of a `PodGroup`'s spec.
const FIELDS: &[Field] = &[
    Field::any("minMember"),
    Field::any("minTaskMember"),
    Field::any("minResources"),
    Field::any("queue"),
    Field::any("priorityClassName"),
    NETWORK_TOPOLOGY,
    Field::of(
        "subGroupPolicy",
        &[
            Field::any("name"),
            Field::any("labelSelector"),
            Field::any("matchLabelKeys"),
            Field::any("subGroupSize"),
            Field::any("minSubGroups"),
            NETWORK_TOPOLOGY,
        ],
    ),
];
const NETWORK_TOPOLOGY: Field = Field::of(
    "networkTopology",
    &[
        Field::any("mode"),
        Field::any("highestTierAllowed"),
        Field::any("highestTierName"),
    ],
);

/// The dialect.
#[derive(Debug, Default)]
pub(super) struct Volcano {
    groups: Store<PodGroupSpec>,
    hypernodes: Store<HyperNodeSpec>,
    tiers: Tiers,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodGroupSpec {
    #[serde(deserialize_with = "whole_number")]
    min_member: Option<i64>,
    min_task_member: StringMap<i64>,
    min_resources: ResourceList,
    #[serde(deserialize_with = "or_default")]
    queue: String,
    #[serde(deserialize_with = "or_default")]
    priority_class_name: Box<str>,
    network_topology: Option<NetworkTopology>,
    #[serde(deserialize_with = "or_default")]
    sub_group_policy: Vec<SubGroupPolicy>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct NetworkTopology {
    #[serde(deserialize_with = "or_default")]
    mode: Box<str>,
    #[serde(deserialize_with = "whole_number")]
    highest_tier_allowed: Option<i64>,
    #[serde(deserialize_with = "or_default")]
    highest_tier_name: Box<str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SubGroupPolicy {
    #[serde(deserialize_with = "or_default")]
    name: Box<str>,
    label_selector: Option<LabelSelector>,
    #[serde(deserialize_with = "or_default")]
    match_label_keys: Vec<Box<str>>,
    #[serde(deserialize_with = "whole_number")]
    sub_group_size: Option<i64>,
    #[serde(deserialize_with = "whole_number")]
    min_sub_groups: Option<i64>,
    network_topology: Option<NetworkTopology>,
}

impl Dialect for Volcano {
    fn kinds(&self) -> &'static [Kind] {
        &[
            Kind {
                group: "scheduling.volcano.sh",
                versions: &["v1beta1"],
                kind: "PodGroup",
                spec: FIELDS,
            },
            Kind {
                group: "topology.volcano.sh",
                versions: &["v1alpha1"],
                kind: "HyperNode",
                spec: hypernode::FIELDS,
            },
        ]
    }

    fn take(&mut self, document: &Document<'_>, arrival: Nanos) -> Result<(), Box<Complaint>> {
        match document.kind.as_str() {
            "HyperNode" => self.hypernodes.take(document, false, arrival),
            _ => self.groups.take(document, true, arrival),
        }
    }

    fn group_keys(&self) -> &'static [GroupKey] {
        const KEYS: [GroupKey; 2] = [
            GroupKey::Annotation(GROUP_NAME[0].0),
            GroupKey::Annotation(GROUP_NAME[1].0),
        ];
        &KEYS
    }

    fn forget(&mut self, group: &str, kind: &str, namespace: &str, name: &str) {
        match (group, kind) {
            ("scheduling.volcano.sh", "PodGroup") => self.groups.forget(namespace, name),
            ("topology.volcano.sh", "HyperNode") => self.hypernodes.forget(namespace, name),
            _ => {}
        }
    }

    fn link(&self, pod: &Pod) -> Option<Link> {
        let annotations = &pod.metadata.annotations;
        let said = |key: &str| annotations.get(key).filter(|value| !value.is_empty());
        let named = GROUP_NAME
            .iter()
            .find_map(|&(key, field)| Some((said(key)?.clone(), field)));
        let link = match named {
            Some((name, field)) => Link::named(pod, SOURCE, &name, field),
            None if &*pod.spec.scheduler_name == SCHEDULER => implied(pod)?,
            None => return None,
        };
        // Volcano reads the annotation; its job controller sets annotation and label alike.
        let task = said(TASK).or_else(|| pod.metadata.labels.get(TASK));
        Some(Link {
            task: task.cloned().unwrap_or_default(),
            ..link
        })
    }

    fn levels(
        &mut self,
        nodes: &mut BTreeMap<String, NodeSpec>,
        complaints: &mut Vec<Complaint>,
    ) -> Vec<String> {
        self.tiers = hypernode::label(&self.hypernodes, nodes, complaints);
        self.tiers.levels()
    }

    fn group_of(&self, kind: &str, namespace: &str, name: &str) -> Option<GangKey> {
        store::of_pod_group(kind, namespace, name, SOURCE)
    }

    fn gangs(&self, roster: &mut Roster<'_>, around: &mut Surroundings<'_>) -> Vec<GangSpec> {
        let mut gangs = Vec::new();
        for (name, stored) in self.groups.asked(SOURCE, around.only) {
            let mut nobody = Vec::new();
            let members = roster
                .get_mut(&store::key(name, SOURCE))
                .unwrap_or(&mut nobody);
            let built = stored.spec.as_ref().map_err(Clone::clone).and_then(|spec| {
                let root = tree::build(&name.1, spec, stored, members, &self.tiers, around);
                let root = root.inspect_err(|problem| around.refuse(stored, problem))?;
                Ok((spec, root))
            });
            gangs.push(match built {
                Ok((spec, root)) => GangSpec {
                    priority: around.priority(None, &spec.priority_class_name, members, stored),
                    queue: spec.queue.clone(),
                    ..stored.gang(name, SOURCE, root)
                },
                Err(problem) => stored.invalid(name, SOURCE, problem),
            });
        }
        for (key, members) in roster.iter_mut() {
            let name = (key.namespace.clone(), key.name.clone());
            if key.source == SOURCE && self.groups.get(&name).is_none() {
                gangs.extend(self.implied_gang(&name, members, around));
            }
        }
        gangs.sort_by(|one, other| one.key.cmp(&other.key));
        gangs
    }
}

/// The group that the controller makes for a pod without one, from its owner.
fn implied(pod: &Pod) -> Option<Link> {
    let owner = pod.metadata.controller();
    let identity = match owner {
        Some(owner) if owner.uid.is_empty() => format!("{}-{}", owner.kind, owner.name),
        Some(owner) => owner.uid.to_string(),
        // A pod of its own: a group of one.
        None => return None,
    };
    let owners = pod.metadata.owner_references.iter();
    let said = Said {
        owners: owners.map(kind_and_name).collect(),
        ..Said::of(pod, [QUEUE_NAME, TOPOLOGY_MODE, TOPOLOGY_TIER])
    };
    let name = format!("podgroup-{}", identity.to_lowercase());
    Some(Link {
        said: Some(Box::new(said)),
        ..Link::inferred(pod, SOURCE, &name, "spec.schedulerName")
    })
}

impl Volcano {
    /// The gang of pods whose group nobody wrote down. A minimum of 1 without a topology rule says
    /// nothing about the group: then each pod stands alone.
    fn implied_gang(
        &self,
        name: &store::Name,
        members: &mut [&mut Member],
        around: &mut Surroundings<'_>,
    ) -> Option<GangSpec> {
        // Pods that name a group which is not there stay linked: they wait for it.
        let link = members.first()?.link.as_ref()?;
        let implied = link.said.as_deref().filter(|_| !link.explicit)?;
        let said = implied.owners.iter().find_map(|(kind, owner)| {
            (around.owner_annotation)(&name.0, kind, owner, GROUP_MIN_MEMBER)
        });
        // As there: what is no number of 0 or more counts as 1.
        let min = said
            .and_then(|said| said.parse::<i32>().ok())
            .filter(|&min| min >= 0);
        let min = min.map_or(1, i32::unsigned_abs);
        let annotation = |key: &str| implied.word(key);
        let topology = [TOPOLOGY_MODE, TOPOLOGY_TIER]
            .iter()
            .any(|key| annotation(key).is_some());
        let topology = topology.then(|| NetworkTopology {
            mode: annotation(TOPOLOGY_MODE)
                .map(|mode| mode.to_lowercase().into())
                .unwrap_or_default(),
            highest_tier_allowed: annotation(TOPOLOGY_TIER).and_then(|tier| tier.parse().ok()),
            highest_tier_name: "".into(),
        });
        if min <= 1 && topology.is_none() {
            roles::leave_alone(members);
            return None;
        }
        let queue = annotation(QUEUE_NAME)
            .map(ToString::to_string)
            .unwrap_or_default();
        let stored = store::unwritten("PodGroup", name, members)?;
        let rule = self.tiers.rule(topology.as_ref(), "metadata.annotations");
        Some(match rule {
            Ok(topology) => GangSpec {
                priority: around.priority(None, "", members, &stored),
                queue,
                ..stored.gang(
                    name,
                    SOURCE,
                    Group {
                        topology,
                        ..store::role(&name.1, min)
                    },
                )
            },
            Err(problem) => stored.invalid(name, SOURCE, problem),
        })
    }
}

fn mode_problem(mode: &str, field: &str) -> Problem {
    let message = format!("{mode}; accepted: hard, soft");
    problem("InvalidTopology", format!("{field}.mode"), message)
}
