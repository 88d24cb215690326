//! KAI's `PodGroup`s (`scheduling.run.ai/v2alpha2`, also Run:ai's).
//!
//! Pods name their group by the annotation `pod-group-name`, which KAI's pod grouper writes, and their
//! sub-group by a label. A group is one leaf with `minMember`, or a tree: `subGroups` name their parent,
//! leaves have `minMember`, inner ones may say by `minSubGroup` how many of their children are enough.
//! Topology levels are taken as node labels: a level's alias, which only KAI's `Topology` knows, is none.
//! What KAI would change about the object by a webhook or a status is not looked at.

use std::collections::BTreeMap;

use gangline::{
    gang::{GangKey, GangSpec, Group, Problem, TopologyRule},
    units::Nanos,
};
use serde::Deserialize;

use super::{
    Dialect, Field, GroupKey, Kind, Link, Member, Roster, Surroundings, count, roles,
    store::{self, Store},
};
use crate::{
    api::{Pod, or_default, whole_number},
    load::{Complaint, Document},
    problem::problem,
};

const SOURCE: &str = "kai";
const API_GROUP: &str = "scheduling.run.ai";
const GROUP_NAME: &str = "pod-group-name";
const SUB_GROUP: &str = "kai.scheduler/subgroup-name";
/// The leaf of pods of no sub-group that is there.
const NO_SUB_GROUP: &str = "(no sub-group)";

/// All fields of a `PodGroup`'s spec.
const FIELDS: &[Field] = &[
    Field::any("minMember"),
    Field::any("minSubGroup"),
    Field::any("queue"),
    Field::any("priorityClassName"),
    Field::any("preemptibility"),
    TOPOLOGY,
    Field::of(
        "subGroups",
        &[
            Field::any("name"),
            Field::any("parent"),
            Field::any("minMember"),
            Field::any("minSubGroup"),
            TOPOLOGY,
        ],
    ),
    Field::any("markUnschedulable"),
    Field::any("schedulingBackoff"),
    Field::any("preemptionDelay"),
    Field::any("stalenessGracePeriod"),
];
const TOPOLOGY: Field = Field::of(
    "topologyConstraint",
    &[
        Field::any("topology"),
        Field::any("requiredTopologyLevel"),
        Field::any("preferredTopologyLevel"),
    ],
);

/// The dialect.
#[derive(Debug, Default)]
pub(super) struct Kai {
    groups: Store<GroupSpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct GroupSpec {
    #[serde(deserialize_with = "whole_number")]
    min_member: Option<i64>,
    #[serde(deserialize_with = "whole_number")]
    min_sub_group: Option<i64>,
    #[serde(deserialize_with = "or_default")]
    queue: String,
    #[serde(deserialize_with = "or_default")]
    priority_class_name: Box<str>,
    #[serde(deserialize_with = "or_default")]
    topology_constraint: Constraint,
    #[serde(deserialize_with = "or_default")]
    sub_groups: Vec<SubGroupSpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SubGroupSpec {
    #[serde(deserialize_with = "or_default")]
    name: String,
    #[serde(deserialize_with = "or_default")]
    parent: String,
    #[serde(deserialize_with = "whole_number")]
    min_member: Option<i64>,
    #[serde(deserialize_with = "whole_number")]
    min_sub_group: Option<i64>,
    #[serde(deserialize_with = "or_default")]
    topology_constraint: Constraint,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Constraint {
    #[serde(deserialize_with = "or_default")]
    required_topology_level: String,
    #[serde(deserialize_with = "or_default")]
    preferred_topology_level: String,
}

impl Constraint {
    fn rule(&self) -> TopologyRule {
        let level = |level: &String| Some(level.clone()).filter(|level| !level.is_empty());
        TopologyRule {
            required: level(&self.required_topology_level),
            preferred: level(&self.preferred_topology_level),
        }
    }
}

impl Dialect for Kai {
    fn kinds(&self) -> &'static [Kind] {
        &[Kind {
            group: API_GROUP,
            versions: &["v2alpha2"],
            kind: "PodGroup",
            spec: FIELDS,
        }]
    }

    fn take(&mut self, document: &Document<'_>, arrival: Nanos) -> Result<(), Box<Complaint>> {
        self.groups.take(document, true, arrival)
    }

    fn group_keys(&self) -> &'static [GroupKey] {
        &[GroupKey::Annotation(GROUP_NAME)]
    }

    fn forget(&mut self, group: &str, kind: &str, namespace: &str, name: &str) {
        if (group, kind) == (API_GROUP, "PodGroup") {
            self.groups.forget(namespace, name);
        }
    }

    fn link(&self, pod: &Pod) -> Option<Link> {
        let name = pod.metadata.annotations.get(GROUP_NAME);
        let name = name.filter(|name| !name.is_empty())?;
        let task = pod.metadata.labels.get(SUB_GROUP);
        Some(Link {
            task: task.cloned().unwrap_or_default(),
            ..Link::named(pod, SOURCE, name, "metadata.annotations[pod-group-name]")
        })
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
                let root = tree(&name.1, spec, members);
                Ok((
                    spec,
                    root.inspect_err(|problem| around.refuse(stored, problem))?,
                ))
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
        gangs
    }
}

fn tree(name: &str, spec: &GroupSpec, members: &mut [&mut Member]) -> Result<Group, Problem> {
    one_minimum("spec", spec.min_member, spec.min_sub_group)?;
    if spec.sub_groups.is_empty() {
        let min = count(spec.min_member, 1, 0, "spec.minMember")?;
        return Ok(Group {
            topology: spec.topology_constraint.rule(),
            ..store::role(name, min)
        });
    }
    let tree = Tree::of(&spec.sub_groups)?;
    let mut children = tree.children("", 1)?;
    let mut others = false;
    for member in members {
        let link = member.link.as_ref();
        let task = link.map_or("", |link| &*link.task);
        let is_leaf = tree.position.contains_key(task) && !tree.below.contains_key(task);
        others |= !is_leaf;
        let role = if is_leaf { task } else { NO_SUB_GROUP };
        role.clone_into(&mut member.spec.role);
    }
    if others {
        children.push((store::role(NO_SUB_GROUP, 0), 0));
    }
    let min = count(spec.min_member, 0, 0, "spec.minMember")?;
    let enough = minimum_of_groups(spec.min_sub_group, "spec.minSubGroup")?;
    let (root, _) = node(format!("podgroup/{name}"), children, enough, min);
    Ok(Group {
        topology: spec.topology_constraint.rule(),
        ..root
    })
}

/// A part of a tree, and the fewest members that it needs.
type Part = (Group, u64);

/// A node that needs so many of its children, or all of them and `min` members in all.
fn node(name: String, children: Vec<Part>, enough: Option<u32>, min: u32) -> Part {
    let mut needs: Vec<u64> = children.iter().map(|(_, least)| *least).collect();
    let groups = children.into_iter().map(|(group, _)| group).collect();
    if let Some(enough) = enough {
        for least in &mut needs {
            *least = (*least).max(1);
        }
        needs.sort_unstable();
        let least = needs.iter().take(enough as usize).sum();
        return (roles::enough_of(name, groups, enough), least);
    }
    let least = needs.iter().sum::<u64>().max(min.into());
    (roles::all_of(name, groups, least), least)
}

fn minimum_of_groups(said: Option<i64>, field: &str) -> Result<Option<u32>, Problem> {
    let min = said.map(|min| count(Some(min), 0, 0, field));
    min.transpose()
}

fn one_minimum(path: &str, members: Option<i64>, groups: Option<i64>) -> Result<(), Problem> {
    if members.is_none() || groups.is_none() {
        return Ok(());
    }
    let message = "beside minMember; accepted: one of them";
    Err(problem(
        "InvalidMinimum",
        format!("{path}.minSubGroup"),
        message,
    ))
}

/// The sub-groups by their parents.
struct Tree<'a> {
    groups: &'a [SubGroupSpec],
    position: BTreeMap<&'a str, usize>,
    /// The children of each, those of the group itself under the empty name.
    below: BTreeMap<&'a str, Vec<usize>>,
}

impl<'a> Tree<'a> {
    /// The tree, if it is one.
    fn of(groups: &'a [SubGroupSpec]) -> Result<Self, Problem> {
        let mut tree = Tree {
            groups,
            position: BTreeMap::new(),
            below: BTreeMap::new(),
        };
        for (index, group) in groups.iter().enumerate() {
            let is_new = tree.position.insert(&group.name, index).is_none();
            if group.name.is_empty() || !is_new {
                let field = format!("spec.subGroups[{index}].name");
                let message = format!("{:?}; accepted: a name of its own", group.name);
                return Err(problem("InvalidSubGroup", field, message));
            }
            tree.below.entry(&group.parent).or_default().push(index);
        }
        for (index, group) in groups.iter().enumerate() {
            let field = format!("spec.subGroups[{index}].parent");
            let mut at = group;
            let mut steps = 0;
            while !at.parent.is_empty() {
                let Some(parent) = tree.position.get(&*at.parent) else {
                    let message = format!("{}; accepted: a sub-group that is there", at.parent);
                    return Err(problem("ParentNotFound", field, message));
                };
                let Some(above) = groups.get(*parent) else {
                    break;
                };
                at = above;
                steps += 1;
                if at.name == group.name {
                    let message = format!("{} is its own ancestor; accepted: a tree", group.name);
                    return Err(problem("CyclicParents", field, message));
                }
                if steps > GangSpec::DEEPEST {
                    let message = format!("too deep; accepted: {} levels", GangSpec::DEEPEST);
                    return Err(problem("TooDeep", field, message));
                }
            }
        }
        Ok(tree)
    }

    fn children(&self, parent: &str, depth: usize) -> Result<Vec<Part>, Problem> {
        let below = self.below.get(parent).into_iter().flatten();
        let groups = below.filter_map(|index| Some((*index, self.groups.get(*index)?)));
        groups
            .filter(|_| depth <= GangSpec::DEEPEST)
            .map(|(index, group)| self.part(index, group, depth))
            .collect()
    }

    fn part(&self, index: usize, group: &SubGroupSpec, depth: usize) -> Result<Part, Problem> {
        let path = format!("spec.subGroups[{index}]");
        one_minimum(&path, group.min_member, group.min_sub_group)?;
        let (members, groups) = (format!("{path}.minMember"), format!("{path}.minSubGroup"));
        let refuse = |field: &str, of: &str| {
            let message = format!("of a sub-group with{of} sub-groups below; accepted: none");
            Err(problem("InvalidMinimum", field, message))
        };
        let (part, least) = if self.below.contains_key(&*group.name) {
            if group.min_member.is_some() {
                return refuse(&members, "");
            }
            let enough = minimum_of_groups(group.min_sub_group, &groups)?;
            let children = self.children(&group.name, depth + 1)?;
            node(format!("subgroup/{}", group.name), children, enough, 0)
        } else {
            if group.min_sub_group.is_some() {
                return refuse(&groups, "out");
            }
            let min = count(group.min_member, 1, 0, &members)?;
            (store::role(&group.name, min), min.into())
        };
        let topology = group.topology_constraint.rule();
        Ok((Group { topology, ..part }, least))
    }
}

#[cfg(test)]
mod tests {
    use crate::intake::testing::{pod, world};

    fn group(spec: &str) -> String {
        format!(
            "apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\n\
             metadata: {{name: pg-train-1, namespace: ml}}\nspec: {{{spec}}}\n---\n"
        )
    }

    fn member(name: &str, sub_group: &str) -> String {
        pod(
            name,
            &format!(
                "labels: {{kai.scheduler/subgroup-name: '{sub_group}'}}, \
                 annotations: {{pod-group-name: pg-train-1}}"
            ),
        )
    }

    const TREE: &str = "subGroups: [{name: leader, minMember: 1}, {name: workers, minSubGroup: 1}, \
                        {name: a, parent: workers, minMember: 2, topologyConstraint: {topology: t, \
                        requiredTopologyLevel: rack}}, {name: b, parent: workers, minMember: 3}]";

    #[test]
    fn a_group_is_one_leaf_with_a_queue_and_topology() {
        let spec = "minMember: 3, queue: team-a, topologyConstraint: {topology: t, \
                    requiredTopologyLevel: block, preferredTopologyLevel: rack}";
        let world = world(&[group(spec), member("a", "")].concat());
        assert_eq!(world.trees(), ["kai/pg-train-1: pg-train-1>=3@block~rack"]);
        assert_eq!(world.links(), ["a: kai/pg-train-1 "]);
        assert_eq!(world.gang("pg-train-1").queue, "team-a");
        assert_eq!(world.gang("pg-train-1").priority, 5);
        assert!(world.complaints.is_empty(), "{:?}", world.complaint_lines());
    }

    #[test]
    fn sub_groups_are_a_tree_and_pods_of_none_may_be_more() {
        let world = world(&[group(TREE), member("x", "a"), member("y", "zzz")].concat());
        assert_eq!(
            world.trees(),
            ["kai/pg-train-1: podgroup/pg-train-1[>=3: leader>=1, \
              subgroup/workers[1 of a>=2@rack, b>=3], (no sub-group)>=0]"]
        );
        assert_eq!(
            world.links(),
            ["x: kai/pg-train-1 a", "y: kai/pg-train-1 (no sub-group)"]
        );
    }

    #[test]
    fn a_minimum_over_all_counts_beside_those_of_the_sub_groups() {
        let tree = |min: &str| world(&group(&format!("{min}, {TREE}"))).trees().concat();
        assert!(tree("minMember: 7").contains("pg-train-1[>=7: "));
        assert!(tree("minMember: 2").contains("pg-train-1[>=3: "));
        assert!(tree("minSubGroup: 1").contains("pg-train-1[1 of "));
    }

    #[test]
    fn zero_is_none_and_absent_is_one() {
        assert_eq!(world(&group("")).trees(), ["kai/pg-train-1: pg-train-1>=1"]);
        assert_eq!(
            world(&group("minMember: 0")).trees(),
            ["kai/pg-train-1: pg-train-1>=0"]
        );
    }

    #[test]
    fn what_is_no_tree_or_no_minimum_is_named_by_its_field() {
        for (spec, code, field) in [
            ("minMember: -1", "InvalidMinimum", "spec.minMember"),
            (
                "minMember: 1, minSubGroup: 1",
                "InvalidMinimum",
                "spec.minSubGroup",
            ),
            (
                "subGroups: [{}]",
                "InvalidSubGroup",
                "spec.subGroups[0].name",
            ),
            (
                "subGroups: [{name: a}, {name: a}]",
                "InvalidSubGroup",
                "spec.subGroups[1].name",
            ),
            (
                "subGroups: [{name: a, parent: b}]",
                "ParentNotFound",
                "spec.subGroups[0].parent",
            ),
            (
                "subGroups: [{name: a, parent: b}, {name: b, parent: a}]",
                "CyclicParents",
                "spec.subGroups[0].parent",
            ),
            (
                "subGroups: [{name: a, minSubGroup: 1}]",
                "InvalidMinimum",
                "spec.subGroups[0].minSubGroup",
            ),
            (
                "subGroups: [{name: a, minMember: 1}, {name: b, parent: a}]",
                "InvalidMinimum",
                "spec.subGroups[0].minMember",
            ),
        ] {
            let world = world(&group(spec));
            let problem = world.gang("pg-train-1").problem.clone().unwrap();
            assert_eq!((&*problem.code, &*problem.field), (code, field), "{spec}");
            assert_eq!(world.complaint_lines().len(), 1, "{spec}");
        }
        let more = world(&group("minSubGroup: 3, subGroups: [{name: a}]"));
        let problem = more.gang("pg-train-1").problem.clone().unwrap();
        assert_eq!(problem.code, "MinExceedsMembers");
    }

    #[test]
    fn a_chain_that_is_too_deep_costs_only_itself() {
        let chain = (0..40_000).map(|at| format!("{{name: s{}, parent: s{at}}}", at + 1));
        let chain: Vec<_> = [String::from("{name: s0}")]
            .into_iter()
            .chain(chain)
            .collect();
        let world = world(&group(&format!("subGroups: [{}]", chain.join(", "))));
        let problem = world.gang("pg-train-1").problem.clone().unwrap();
        assert_eq!(problem.code, "TooDeep");
    }

    #[test]
    fn pods_of_a_group_that_is_gone_wait_and_two_groups_are_one_too_many() {
        assert_eq!(world(&member("a", "")).links(), ["a: kai/pg-train-1 "]);
        let two = member("a", "").replace(
            "annotations: {",
            "annotations: {scheduling.k8s.io/group-name: v, ",
        );
        let two = world(&two);
        assert_eq!(two.pod("a").problem.clone().unwrap().code, "AmbiguousGroup");
    }
}
