//! Kueue's groups of plain pods, and its annotations on topology.
//!
//! Pods with the same label `kueue.x-k8s.io/pod-group-name` are one gang of as many members as the
//! annotation `kueue.x-k8s.io/pod-group-total-count` says; no object tells of it. Kueue gives no pod of
//! the group free before all are there, and where it is installed it has decided by then, which
//! shows as node selectors that count by themselves.
//!
//! Slices (`podset-slice-required-topology`, `podset-slice-size`) are sub-groups, each in a domain of its own
//! level; which pod is in which follows from its number. Slices in slices are refused.
//!
//! Not every such group is a gang: one that is served (`pod-group-serving`, of a `StatefulSet`) or
//! admitted while it grows (`pod-group-fast-admission`) may get its next pod only when the last one
//! runs; its pods stand alone. And Kueue queues what others group: a group that pods name otherwise, or
//! that of their `LeaderWorkerSet`, goes before.

use std::collections::{BTreeMap, BTreeSet};

use gangline::gang::{GangSpec, Group, Problem, TopologyRule};

use super::{
    Dialect, GroupKey, Link, Member, Roster, Said, Surroundings, roles, said_count,
    store::{self, Name},
};
use crate::{api::Pod, problem::problem};

const SOURCE: &str = "kueue";
const GROUP_NAME: &str = "kueue.x-k8s.io/pod-group-name";
const TOTAL: &str = "kueue.x-k8s.io/pod-group-total-count";
/// With one of these as `true` pods may come one after the other.
const GROWS: [&str; 2] = [
    "kueue.x-k8s.io/pod-group-fast-admission",
    "kueue.x-k8s.io/pod-group-serving",
];
const REQUIRED: &str = "kueue.x-k8s.io/podset-required-topology";
const PREFERRED: &str = "kueue.x-k8s.io/podset-preferred-topology";
const SLICE: &str = "kueue.x-k8s.io/podset-slice-required-topology";
const SLICE_SIZE: &str = "kueue.x-k8s.io/podset-slice-size";
const SLICES_IN_SLICES: &str = "kueue.x-k8s.io/podset-slice-required-topology-constraints";
/// The annotations that say how close pods must be; node labels.
pub(super) const TOPOLOGY: [&str; 5] = [REQUIRED, PREFERRED, SLICE, SLICE_SIZE, SLICES_IN_SLICES];
/// The labels that tell a pod's number, and so its slice.
const INDEXES: [&str; 2] = [
    "kueue.x-k8s.io/pod-group-pod-index",
    "batch.kubernetes.io/job-completion-index",
];

/// A leaf of `min` members as slices, where members say so: each of them in one domain of its own level.
/// Pods of one slice follow each other by number. Gives members their roles then.
pub(super) fn sliced(leaf: Group, min: u32, members: &mut [&mut Member]) -> Result<Group, Problem> {
    let word = |key| {
        let mut words = members.iter().filter_map(|member| word_of(member, key));
        words.next().map(str::to_owned)
    };
    let refuse = |key: &str, message: String| {
        let field = format!("metadata.annotations[{key}]");
        Err(problem("InvalidTopology", field, message))
    };
    if let Some(layers) = word(SLICES_IN_SLICES) {
        let shown: String = layers.chars().take(100).collect();
        let accepted = format!("accepted: one level of slices, as {SLICE} and {SLICE_SIZE}");
        return refuse(SLICES_IN_SLICES, format!("{shown}; {accepted}"));
    }
    let (level, size) = match (word(SLICE), word(SLICE_SIZE)) {
        (None, None) => return Ok(leaf),
        (None, Some(size)) => {
            return refuse(
                SLICE_SIZE,
                format!("{size} without {SLICE}; accepted: both"),
            );
        }
        (Some(level), size) => (level, said_count(size.as_deref(), SLICE_SIZE)?),
    };
    let count = min / size;
    if !min.is_multiple_of(size) || count as usize >= GangSpec::MOST_GROUPS {
        let most = GangSpec::MOST_GROUPS - 1;
        let message =
            format!("{size} for {min} members; accepted: a divisor, and {most} slices at most");
        return refuse(SLICE_SIZE, message);
    }
    let slice = |index: u32, min: u32| Group {
        topology: TopologyRule {
            required: Some(level.clone()),
            preferred: None,
        },
        ..store::role(&format!("slice-{index}"), min)
    };
    let mut slices: BTreeMap<u32, Group> = (0..count)
        .map(|index| (index, slice(index, size)))
        .collect();
    for member in members {
        let known = INDEXES.iter().find_map(|&key| member.labels.get(key));
        let Some(index) = known.and_then(|index| index.parse::<u32>().ok()) else {
            let found = known.map_or("missing", |index| index);
            let message = format!(
                "{found} on pod {}; accepted: the pod's number, which tells its slice",
                member.spec.name
            );
            return Err(problem(
                "InvalidTopology",
                format!("metadata.labels[{}]", INDEXES[0]),
                message,
            ));
        };
        let index = index / size;
        // What is beyond the minimum may stay away.
        let slice = slices.entry(index).or_insert_with(|| slice(index, 0));
        slice.name.clone_into(&mut member.spec.role);
    }
    let slices = slices.into_values().collect();
    Ok(Group {
        topology: leaf.topology,
        ..roles::all_of(format!("slices/{}", leaf.name), slices, min.into())
    })
}

fn word_of<'a>(member: &'a Member, key: &str) -> Option<&'a str> {
    let said = member.link.as_ref()?.said.as_deref()?;
    said.word(key).filter(|word| !word.is_empty())
}

/// What members say of topology: the oldest that says anything.
pub(super) fn topology(members: &[&mut Member]) -> Result<TopologyRule, Problem> {
    let mut said = members.iter().filter_map(|member| rule_of(member));
    let rule = said.find(|rule| *rule != TopologyRule::default());
    match rule.unwrap_or_default() {
        TopologyRule {
            required: Some(_),
            preferred: Some(_),
        } => Err(problem(
            "InvalidTopology",
            format!("metadata.annotations[{PREFERRED}]"),
            format!("beside {REQUIRED}; accepted: one of them"),
        )),
        rule => Ok(rule),
    }
}

fn rule_of(member: &Member) -> Option<TopologyRule> {
    member.link.as_ref()?.said.as_deref()?;
    Some(TopologyRule {
        required: word_of(member, REQUIRED).map(str::to_owned),
        preferred: word_of(member, PREFERRED).map(str::to_owned),
    })
}

/// The dialect.
#[derive(Debug, Default)]
pub(super) struct Kueue;

impl Dialect for Kueue {
    fn group_keys(&self) -> &'static [GroupKey] {
        &[GroupKey::Label(GROUP_NAME)]
    }

    fn link(&self, pod: &Pod) -> Option<Link> {
        let name = pod.metadata.labels.get(GROUP_NAME);
        let name = name.filter(|name| !name.is_empty())?;
        let said = Said::of(pod, [TOTAL].into_iter().chain(GROWS).chain(TOPOLOGY));
        let field = "metadata.labels[kueue.x-k8s.io/pod-group-name]";
        Some(Link {
            said: Some(Box::new(said)),
            ..Link::inferred(pod, SOURCE, name, field)
        })
    }

    fn gangs(&self, roster: &mut Roster<'_>, around: &mut Surroundings<'_>) -> Vec<GangSpec> {
        let groups = roster.iter_mut().filter(|(key, _)| key.source == SOURCE);
        let gangs = groups.filter_map(|(key, members)| {
            let name = (key.namespace.clone(), key.name.clone());
            gang(&name, members, around)
        });
        gangs.collect()
    }
}

fn gang(
    name: &Name,
    members: &mut [&mut Member],
    around: &mut Surroundings<'_>,
) -> Option<GangSpec> {
    let stored = store::unwritten("Kueue group", name, members)?;
    let grows = GROWS.into_iter().any(|key| {
        let word = around.agreed(members, key, &stored);
        word.as_deref() == Some("true")
    });
    if grows {
        roles::leave_alone(members);
        return None;
    }
    let total = around.agreed(members, TOTAL, &stored);
    let built = said_count(total.as_deref(), TOTAL).and_then(|min| tree(name, min, members));
    Some(match built {
        Ok(root) => GangSpec {
            priority: around.priority(None, "", members, &stored),
            ..stored.gang(name, SOURCE, root)
        },
        Err(problem) => {
            around.refuse(&stored, &problem);
            stored.invalid(name, SOURCE, problem)
        }
    })
}

/// One leaf; where pods of the group have rules of their own on topology, one for each of these.
fn tree(name: &Name, min: u32, members: &mut [&mut Member]) -> Result<Group, Problem> {
    let shown = |rule: &TopologyRule| format!("{:?}", (&rule.required, &rule.preferred));
    let rules: BTreeSet<String> = members
        .iter()
        .filter_map(|member| Some(shown(&rule_of(member)?)))
        .collect();
    if rules.len() <= 1 {
        let leaf = Group {
            topology: topology(members)?,
            ..store::role(&name.1, min)
        };
        return sliced(leaf, min, members);
    }
    let sliced = members.iter().find_map(|member| word_of(member, SLICE));
    if let Some(level) = sliced {
        let field = format!("metadata.annotations[{SLICE}]");
        let message =
            format!("{level}, where pods differ in {REQUIRED} or {PREFERRED}; accepted: one rule");
        return Err(problem("InvalidTopology", field, message));
    }
    let mut leaves: Vec<Group> = Vec::new();
    for member in members {
        let rule = rule_of(member).unwrap_or_default();
        member.spec.role = match (&rule.required, &rule.preferred) {
            (Some(level), _) => format!("within {level}"),
            (None, Some(level)) => format!("near in {level}"),
            (None, None) => "anywhere".into(),
        };
        if !leaves.iter().any(|leaf| leaf.name == member.spec.role) {
            leaves.push(Group {
                topology: topology(&[&mut **member])?,
                ..store::role(&member.spec.role, 0)
            });
        }
    }
    leaves.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(roles::all_of(
        format!("{SOURCE}/{}", name.1),
        leaves,
        min.into(),
    ))
}

#[cfg(test)]
mod tests {
    use crate::intake::testing::{pod, world};

    fn member(name: &str, annotations: &str) -> String {
        pod(
            name,
            &format!(
                "labels: {{kueue.x-k8s.io/pod-group-name: g}}, annotations: {{{annotations}}}"
            ),
        )
    }

    const THREE: &str = "kueue.x-k8s.io/pod-group-total-count: '3'";

    #[test]
    fn pods_of_one_name_are_a_gang_of_their_total() {
        let rack = format!("{THREE}, kueue.x-k8s.io/podset-required-topology: rack");
        let group = world(&[member("a", &rack), member("b", &rack)].concat());
        assert_eq!(group.trees(), ["kueue/g: g>=3@rack"]);
        assert_eq!(group.links(), ["a: kueue/g ", "b: kueue/g "]);
        assert_eq!(group.gang("g").priority, 5);
        assert!(group.complaints.is_empty(), "{:?}", group.complaint_lines());
        let near = format!("{THREE}, kueue.x-k8s.io/podset-preferred-topology: rack");
        assert_eq!(world(&member("a", &near)).trees(), ["kueue/g: g>=3~rack"]);
    }

    #[test]
    fn pods_with_rules_of_their_own_are_a_role_each() {
        let near = format!("{THREE}, kueue.x-k8s.io/podset-preferred-topology: rack");
        let group = world(&[member("a", THREE), member("b", &near)].concat());
        assert_eq!(
            group.trees(),
            ["kueue/g: kueue/g[>=3: anywhere>=0, near in rack>=0~rack]"]
        );
        assert_eq!(group.links()[1], "b: kueue/g near in rack");
    }

    const SLICES: &str = "kueue.x-k8s.io/pod-group-total-count: '4', \
                          kueue.x-k8s.io/podset-required-topology: block, \
                          kueue.x-k8s.io/podset-slice-required-topology: rack, \
                          kueue.x-k8s.io/podset-slice-size: '2'";

    fn numbered(name: &str, number: &str, annotations: &str) -> String {
        let label = format!("labels: {{kueue.x-k8s.io/pod-group-pod-index: '{number}', ");
        member(name, annotations).replace("labels: {", &label)
    }

    #[test]
    fn slices_are_sub_groups_by_the_numbers_of_pods() {
        let group = world(&[numbered("a", "3", SLICES), numbered("b", "0", SLICES)].concat());
        assert_eq!(
            group.trees(),
            ["kueue/g: slices/g[>=4: slice-0>=2@rack, slice-1>=2@rack]@block"]
        );
        assert_eq!(group.links(), ["a: kueue/g slice-1", "b: kueue/g slice-0"]);
        assert!(group.complaints.is_empty(), "{:?}", group.complaint_lines());
        // Beyond the minimum.
        let more = world(&numbered("a", "5", SLICES));
        assert_eq!(more.links(), ["a: kueue/g slice-2"]);
        assert!(more.trees().concat().contains("slice-2>=0@rack"));
    }

    #[test]
    fn slices_that_cannot_be_are_named() {
        let problem = |pod: &str| {
            let world = world(pod);
            assert_eq!(world.trees(), ["kueue/g: g>=1 !InvalidTopology"]);
            world.complaint_lines().concat()
        };
        let wrong = |from: &str, to: &str| problem(&numbered("a", "0", &SLICES.replace(from, to)));
        assert_eq!(
            wrong("size: '2'", "size: '3'"),
            "dump, document 1: Kueue group ml/g: metadata.annotations[kueue.x-k8s.io/podset-slice-size]: \
             3 for 4 members; accepted: a divisor, and 4095 slices at most"
        );
        let huge = wrong("count: '4'", "count: '2000000000'");
        assert!(huge.contains("at most"), "{huge}");
        let layers = "podset-slice-required-topology-constraints: '[]', \
                      kueue.x-k8s.io/podset-slice-size";
        assert!(wrong("podset-slice-size", layers).contains("one level of slices"));
        assert!(wrong("podset-slice-required-topology", "other").contains("without"));
        assert!(problem(&member("a", SLICES)).contains("missing on pod a"));
        assert!(problem(&numbered("a", "x", SLICES)).contains("x on pod a"));
    }

    #[test]
    fn a_group_that_grows_and_one_of_a_set_are_no_gang_here() {
        for grows in ["fast-admission", "serving"] {
            let grows = format!("{THREE}, kueue.x-k8s.io/pod-group-{grows}: 'true'");
            assert_eq!(world(&member("a", &grows)).links(), ["a: alone"]);
        }
        let set = "labels: {leaderworkerset.sigs.k8s.io/name: s, \
                   leaderworkerset.sigs.k8s.io/group-index: '0', ";
        let pod = member("a", THREE).replace("labels: {", set);
        assert_eq!(world(&pod).links(), ["a: leaderworkerset/s-0 "]);
    }

    #[test]
    fn a_total_that_is_absent_or_senseless_is_named_and_the_oldest_pods_counts() {
        for total in ["", "'0'", "three"] {
            let key = "kueue.x-k8s.io/pod-group-total-count";
            let total = if total.is_empty() {
                String::new()
            } else {
                format!("{key}: {total}")
            };
            let world = world(&member("a", &total));
            assert_eq!(world.trees(), ["kueue/g: g>=1 !InvalidMinimum"], "{total}");
            assert_eq!(world.complaint_lines().len(), 1, "{total}");
        }
        let four = THREE.replace('3', "4");
        let differ = world(&[member("a", THREE), member("b", &four)].concat());
        assert_eq!(differ.trees(), ["kueue/g: g>=3"]);
        assert_eq!(
            differ.complaint_lines(),
            ["dump, document 1: Kueue group ml/g: \
              metadata.annotations[kueue.x-k8s.io/pod-group-total-count]: 4 on pod b; accepted: what \
              the oldest pod of the group says, which counts: 3"]
        );
        let both = format!(
            "{THREE}, kueue.x-k8s.io/podset-preferred-topology: rack, \
             kueue.x-k8s.io/podset-required-topology: rack"
        );
        assert_eq!(
            world(&member("a", &both)).trees(),
            ["kueue/g: g>=1 !InvalidTopology"]
        );
    }

    #[test]
    fn a_group_that_pods_name_otherwise_goes_before() {
        let two = world(&member(
            "a",
            &format!("{THREE}, scheduling.k8s.io/group-name: v"),
        ));
        assert_eq!(two.links(), ["a: volcano/v "]);
    }
}
