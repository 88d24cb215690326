//! Groups of a `LeaderWorkerSet` (`leaderworkerset.x-k8s.io`): a leader and its workers.
//!
//! Each group is a gang of its own, of the leader and `size - 1` workers, called like its leader:
//! `NAME-INDEX`. A surge replica during a rollout is one more of them. Pods carry the set's name and their
//! group's number as labels and the size as an annotation, so the set itself only tells the
//! `startupPolicy`. With `LeaderReady` the workers are made after the leader runs, and with the annotation
//! `exclusive-topology` after it has a node, which their selector is made from: to wait for them would be
//! to wait for ever, so the leader starts alone and the workers then start whole. The affinity that
//! `exclusive-topology` and `subgroup-exclusive-topology` give to pods counts by itself. Workers in sub-groups
//! (`subgroup-size`) have a role for each.

use gangline::{
    gang::{GangSpec, Group, Problem},
    units::Nanos,
};
use serde::Deserialize;

use super::{
    Dialect, Kind, Link, Member, Roster, Said, Surroundings, count,
    roles::{self, Minima},
    said_count,
    store::{self, Store},
};
use crate::{
    api::{Pod, or_default, whole_number},
    load::{Complaint, Document},
    problem::problem,
};

const SOURCE: &str = "leaderworkerset";
const API_GROUP: &str = "leaderworkerset.x-k8s.io";
const KIND: &str = "LeaderWorkerSet";
const NAME: &str = "leaderworkerset.sigs.k8s.io/name";
const NAME_FIELD: &str = "metadata.labels[leaderworkerset.sigs.k8s.io/name]";
const GROUP_INDEX: &str = "leaderworkerset.sigs.k8s.io/group-index";
const WORKER_INDEX: &str = "leaderworkerset.sigs.k8s.io/worker-index";
const SIZE: &str = "leaderworkerset.sigs.k8s.io/size";
const EXCLUSIVE: &str = "leaderworkerset.sigs.k8s.io/exclusive-topology";
const SUB_GROUP_SIZE: &str = "leaderworkerset.sigs.k8s.io/subgroup-size";
const SUB_GROUP_POLICY: &str = "leaderworkerset.sigs.k8s.io/subgroup-policy-type";
const LEADER: &str = "leader";
const WORKER: &str = "worker";

const SAID: [&str; 4] = [SIZE, EXCLUSIVE, SUB_GROUP_SIZE, SUB_GROUP_POLICY];

/// The dialect.
#[derive(Debug, Default)]
pub(super) struct LeaderWorkerSets {
    sets: Store<SetSpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SetSpec {
    #[serde(deserialize_with = "or_default")]
    leader_worker_template: Template,
    #[serde(deserialize_with = "or_default")]
    startup_policy: Box<str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Template {
    #[serde(deserialize_with = "whole_number")]
    size: Option<i64>,
}

impl Dialect for LeaderWorkerSets {
    fn kinds(&self) -> &'static [Kind] {
        &[Kind {
            group: API_GROUP,
            versions: &["v1"],
            kind: KIND,
            spec: &[],
        }]
    }

    fn take(&mut self, document: &Document<'_>, arrival: Nanos) -> Result<(), Box<Complaint>> {
        self.sets.take(document, true, arrival)
    }

    fn forget(&mut self, group: &str, kind: &str, namespace: &str, name: &str) {
        if (group, kind) == (API_GROUP, KIND) {
            self.sets.forget(namespace, name);
        }
    }

    fn link(&self, pod: &Pod) -> Option<Link> {
        let label = |key| pod.metadata.labels.get(key).filter(|text| !text.is_empty());
        let (name, index) = (label(NAME)?, label(GROUP_INDEX)?);
        let group = format!("{name}-{index}");
        let is_leader = label(WORKER_INDEX).is_none_or(|index| &**index == "0");
        Some(Link {
            task: if is_leader { LEADER } else { WORKER }.into(),
            said: Some(Box::new(Said::of(pod, SAID))),
            ..Link::inferred(pod, SOURCE, &group, NAME_FIELD)
        })
    }

    fn gangs(&self, roster: &mut Roster<'_>, around: &mut Surroundings<'_>) -> Vec<GangSpec> {
        let groups = roster.iter_mut().filter(|(key, _)| key.source == SOURCE);
        let gangs = groups.filter_map(|(key, members)| {
            let name = (key.namespace.clone(), key.name.clone());
            self.gang(&name, members, around)
        });
        gangs.collect()
    }
}

impl LeaderWorkerSets {
    /// The gang of a group. Pods that do not say how many they are wait for their set.
    fn gang(
        &self,
        name: &store::Name,
        members: &mut [&mut Member],
        around: &mut Surroundings<'_>,
    ) -> Option<GangSpec> {
        let stored = store::unwritten(KIND, name, members)?;
        let (set, _) = name.1.rsplit_once('-')?;
        let set = self.sets.get(&(name.0.clone(), set.to_owned()));
        let spec = match set.map(|set| &set.spec) {
            Some(Ok(spec)) => Some(spec),
            Some(Err(problem)) => return Some(stored.invalid(name, SOURCE, problem.clone())),
            None => None,
        };
        // What was true when the pods were made goes first: the set may have another size by now.
        let size = if let Some(size) = around.agreed(members, SIZE, &stored) {
            said_count(Some(&size), SIZE)
        } else {
            let size = spec?.leader_worker_template.size;
            count(size, 1, 1, "spec.leaderWorkerTemplate.size")
        };
        let size = match size {
            Ok(size) => size,
            Err(problem) => {
                around.refuse(&stored, &problem);
                return Some(stored.invalid(name, SOURCE, problem));
            }
        };
        if size == 1 {
            roles::leave_alone(members);
            return None;
        }
        let sub_groups = sub_groups(size, members, around, &stored);
        let sub_groups = match sub_groups {
            Ok(sub_groups) => sub_groups,
            Err(problem) => {
                around.refuse(&stored, &problem);
                return Some(stored.invalid(name, SOURCE, problem));
            }
        };
        let minima = [(LEADER, 1), (WORKER, size - 1)];
        let minima = Minima::from(minima.map(|(role, min)| (role.to_owned(), min)));
        let mut leaves = roles::leaves(&minima, members);
        if let Some(sub_groups) = sub_groups {
            let workers = leaves.iter_mut().find(|leaf| leaf.name == WORKER);
            if let Some(workers) = workers {
                *workers = sub_groups.tree(&name.1, members);
            }
        }
        let root = format!("{SOURCE}/{}", name.1);
        let is_exclusive = members.iter().any(|member| {
            let said = member.link.as_ref().and_then(|link| link.said.as_deref());
            said.is_some_and(|said| said.word(EXCLUSIVE).is_some())
        });
        let is_late = spec.is_some_and(|spec| &*spec.startup_policy == "LeaderReady");
        let root = if is_exclusive || is_late {
            roles::enough_of(root, leaves, 1)
        } else {
            roles::all_of(root, leaves, roles::sum(&minima))
        };
        Some(GangSpec {
            priority: around.priority(None, "", members, &stored),
            ..stored.gang(name, SOURCE, root)
        })
    }
}

/// How the workers of a group are parted.
struct SubGroups {
    /// Pods in each, but for the leader where that is one too many.
    size: u32,
    /// How many workers there are.
    workers: u32,
    /// The number that the first worker has among those that are parted.
    first: u32,
}

/// What the pods say of sub-groups; `None`: nothing.
fn sub_groups(
    size: u32,
    members: &[&mut Member],
    around: &mut Surroundings<'_>,
    stored: &store::Stored<()>,
) -> Result<Option<SubGroups>, Problem> {
    let Some(word) = around.agreed(members, SUB_GROUP_SIZE, stored) else {
        return Ok(None);
    };
    let each = said_count(Some(&word), SUB_GROUP_SIZE)?;
    let policy = around.agreed(members, SUB_GROUP_POLICY, stored);
    let is_excluded = match policy.as_deref() {
        None | Some("" | "LeaderWorker") => false,
        Some("LeaderExcluded") => true,
        Some(other) => {
            let field = format!("metadata.annotations[{SUB_GROUP_POLICY}]");
            let message = format!("{other}; accepted: LeaderWorker, LeaderExcluded");
            return Err(problem("InvalidSubGroup", field, message));
        }
    };
    let workers = size - 1;
    // A leader that is one too many is beside the workers of the first sub-group.
    let first = u32::from(!is_excluded && !workers.is_multiple_of(each));
    if !(workers + first).is_multiple_of(each)
        || (workers / each) as usize >= GangSpec::MOST_GROUPS / 2
    {
        let most = GangSpec::MOST_GROUPS / 2;
        let message = format!(
            "{each} of {size} pods; accepted: a divisor of them, or of those without the leader, \
             for {most} sub-groups at most"
        );
        let field = format!("metadata.annotations[{SUB_GROUP_SIZE}]");
        return Err(problem("InvalidSubGroup", field, message));
    }
    Ok(Some(SubGroups {
        size: each,
        workers,
        first,
    }))
}

impl SubGroups {
    /// The workers, a leaf for each sub-group; gives them their roles. Those without a number that can be
    /// are in the first one.
    fn tree(&self, name: &str, members: &mut [&mut Member]) -> Group {
        let of = |worker: u32| (worker - 1 + self.first) / self.size;
        let leaf = |number: u32| format!("{WORKER}/{number}");
        let workers = members.iter_mut().filter(|it| it.spec.role == WORKER);
        for member in workers {
            let index = member.labels.get(WORKER_INDEX);
            let index = index.and_then(|index| index.parse().ok());
            let worker = index.filter(|index| (1..=self.workers).contains(index));
            member.spec.role = leaf(of(worker.unwrap_or(1)));
        }
        let leaves = (of(1)..=of(self.workers)).map(|number| {
            // The leader has the first place of the first one, where it is not one too many.
            let min = self.size - if number == 0 { self.first } else { 0 };
            store::role(&leaf(number), min)
        });
        let root = format!("{SOURCE}/{name}/{WORKER}s");
        roles::all_of(root, leaves.collect(), self.workers.into())
    }
}

#[cfg(test)]
mod tests {
    use crate::intake::testing::{pod, world};

    fn set(spec: &str) -> String {
        format!(
            "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\n\
             metadata: {{name: vllm, namespace: ml}}\nspec: {{replicas: 2, {spec}}}\n---\n"
        )
    }

    fn member(group: u32, worker: u32, size: &str) -> String {
        let name = match worker {
            0 => format!("vllm-{group}"),
            worker => format!("vllm-{group}-{worker}"),
        };
        pod(
            &name,
            &format!(
                "labels: {{leaderworkerset.sigs.k8s.io/name: vllm, \
                 leaderworkerset.sigs.k8s.io/group-index: '{group}', \
                 leaderworkerset.sigs.k8s.io/worker-index: '{worker}'}}, annotations: {{{size}}}"
            ),
        )
    }

    const THREE: &str = "leaderworkerset.sigs.k8s.io/size: '3'";

    #[test]
    fn each_replica_is_a_gang_of_its_leader_and_workers() {
        let pods = [
            member(0, 0, THREE),
            member(0, 1, THREE),
            member(1, 0, THREE),
        ];
        let world = world(&[set("leaderWorkerTemplate: {size: 3}"), pods.concat()].concat());
        assert_eq!(
            world.trees(),
            [
                "leaderworkerset/vllm-0: leaderworkerset/vllm-0[>=3: leader>=1, worker>=2]",
                "leaderworkerset/vllm-1: leaderworkerset/vllm-1[>=3: leader>=1, worker>=2]",
            ]
        );
        assert_eq!(
            world.links(),
            [
                "vllm-0: leaderworkerset/vllm-0 leader",
                "vllm-0-1: leaderworkerset/vllm-0 worker",
                "vllm-1: leaderworkerset/vllm-1 leader",
            ]
        );
        assert_eq!(world.gang("vllm-0").priority, 5);
        assert!(world.complaints.is_empty(), "{:?}", world.complaint_lines());
    }

    #[test]
    fn workers_that_are_made_late_are_not_waited_for() {
        let late = set("startupPolicy: LeaderReady, leaderWorkerTemplate: {size: 3}");
        let world = world(&[late, member(0, 0, THREE)].concat());
        assert_eq!(
            world.trees(),
            ["leaderworkerset/vllm-0: leaderworkerset/vllm-0[1 of leader>=1, worker>=2]"]
        );
        let exclusive = format!("{THREE}, leaderworkerset.sigs.k8s.io/exclusive-topology: rack");
        let created = set("startupPolicy: LeaderCreated, leaderWorkerTemplate: {size: 3}");
        let other = self::world(&[created, member(0, 0, &exclusive)].concat());
        assert_eq!(other.trees(), world.trees());
    }

    fn parted(size: &str, worker: u32, policy: &str) -> String {
        let key = "leaderworkerset.sigs.k8s.io";
        let said = format!("{key}/size: '{size}', {key}/subgroup-size: '2', {policy}");
        member(0, worker, &said)
    }

    #[test]
    fn sub_groups_of_workers_are_a_role_each() {
        let tree = |pods: &str| world(pods).trees().concat();
        // The leader is one too many, and beside the first sub-group.
        let beside = [parted("5", 0, ""), parted("5", 4, ""), parted("5", 1, "")];
        let beside = world(&beside.concat());
        assert_eq!(
            beside.trees(),
            [
                "leaderworkerset/vllm-0: leaderworkerset/vllm-0[>=5: leader>=1, \
              leaderworkerset/vllm-0/workers[>=4: worker/0>=2, worker/1>=2]]"
            ]
        );
        assert_eq!(
            beside.links(),
            [
                "vllm-0: leaderworkerset/vllm-0 leader",
                "vllm-0-1: leaderworkerset/vllm-0 worker/0",
                "vllm-0-4: leaderworkerset/vllm-0 worker/1",
            ]
        );
        // The leader is the first of the first sub-group.
        assert!(tree(&parted("4", 0, "")).contains("[>=3: worker/0>=1, worker/1>=2]"));
        let excluded = "leaderworkerset.sigs.k8s.io/subgroup-policy-type: LeaderExcluded";
        assert!(tree(&parted("5", 0, excluded)).contains("worker/0>=2, worker/1>=2"));
        for wrong in [
            parted("4", 0, excluded),
            parted("2000000001", 0, ""),
            parted(
                "5",
                0,
                "leaderworkerset.sigs.k8s.io/subgroup-policy-type: Other",
            ),
            parted("5", 0, "").replace("subgroup-size: '2'", "subgroup-size: '3'"),
        ] {
            let world = world(&wrong);
            assert!(
                world.trees().concat().ends_with("!InvalidSubGroup"),
                "{wrong}"
            );
            assert_eq!(world.complaint_lines().len(), 1, "{wrong}");
        }
    }

    #[test]
    fn the_size_is_that_of_the_pods_or_of_the_set_and_without_both_they_wait() {
        let size = |set: &str, pods: &str| world(&[set, pods].concat()).trees().concat();
        let two = set("leaderWorkerTemplate: {size: 2}");
        assert!(size("", &member(0, 0, THREE)).contains("worker>=2"));
        assert!(size(&two, &member(0, 0, THREE)).contains("worker>=2"));
        assert!(size(&two, &member(0, 0, "")).contains("worker>=1"));
        let nothing = world(&member(0, 0, ""));
        assert_eq!(nothing.trees(), [""; 0]);
        assert_eq!(nothing.links(), ["vllm-0: leaderworkerset/vllm-0 "]);
    }

    #[test]
    fn a_set_of_size_one_is_of_single_pods_and_a_senseless_size_is_named() {
        let one = world(&member(0, 0, "leaderworkerset.sigs.k8s.io/size: '1'"));
        assert_eq!(one.links(), ["vllm-0: alone"]);
        for senseless in ["'0'", "many", "'-3'"] {
            let size = format!("leaderworkerset.sigs.k8s.io/size: {senseless}");
            let world = world(&member(0, 0, &size));
            let problem = world.gang("vllm-0").problem.clone();
            let code = problem.map(|problem| problem.code);
            assert_eq!(code.as_deref(), Some("InvalidMinimum"), "{senseless}");
            assert_eq!(world.complaint_lines().len(), 1, "{senseless}");
        }
    }

    #[test]
    fn a_group_that_a_pod_names_goes_before_its_set() {
        let pods = member(0, 0, &format!("{THREE}, scheduling.k8s.io/group-name: g"));
        assert_eq!(world(&pods).links(), ["vllm-0: volcano/g "]);
    }
}
