//! `YuniKorn`'s gangs: the task groups of an application.
//!
//! Pods say their application (`yunikorn.apache.org/app-id` and its older names) and their task group.
//! What task groups there are, and the fewest pods of each, stands as JSON on the pod that was there
//! first, and on others as it may be. An application is one gang with a role for each task group,
//! all needed. Not so for Spark: its executors are made by the running driver, so each task group is a
//! gang of its own. `YuniKorn` holds room with placeholder pods; here nothing is held, and members
//! that are there are counted. `minResource`, selectors and tolerations are those of the pods themselves.

use std::collections::BTreeMap;

use gangline::{
    gang::{GangKey, GangSpec, Problem, TimeoutPolicy},
    units::Nanos,
};
use serde::Deserialize;

use super::{
    Dialect, GroupKey, Link, Member, Roster, Said, Surroundings, count,
    roles::{self, Minima},
    store::{self, Name},
};
use crate::{
    api::{Pod, whole_number},
    problem::problem,
};

const SOURCE: &str = "yunikorn";
const APP_ID: &str = "yunikorn.apache.org/app-id";
const TASK_GROUP: &str = "yunikorn.apache.org/task-group-name";
const TASK_GROUPS: &str = "yunikorn.apache.org/task-groups";
const PARAMETERS: &str = "yunikorn.apache.org/schedulingPolicyParameters";
const SPARK_ROLE: &str = "spark-role";
const SPARK_APP: &str = "spark-app-selector";
/// Labels that name the application where `app-id` does not.
const OLDER_NAMES: [&str; 2] = ["applicationId", SPARK_APP];
const DEFAULT_WAIT: Nanos = Nanos::from_secs(900);

/// The dialect.
#[derive(Debug, Default)]
pub(super) struct YuniKorn;

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TaskGroup {
    name: String,
    #[serde(deserialize_with = "whole_number")]
    min_member: Option<i64>,
}

impl Dialect for YuniKorn {
    fn group_keys(&self) -> &'static [GroupKey] {
        &[GroupKey::Annotation(TASK_GROUP)]
    }

    fn link(&self, pod: &Pod) -> Option<Link> {
        let metadata = &pod.metadata;
        let task = metadata.annotations.get(TASK_GROUP);
        let task = task.filter(|task| !task.is_empty())?;
        let maps = [&metadata.labels, &metadata.annotations];
        let named = maps.into_iter().find_map(|map| map.get(APP_ID));
        let older = || OLDER_NAMES.iter().find_map(|key| metadata.labels.get(key));
        let app = named.or_else(older).filter(|app| !app.is_empty());
        // Pods that name none are all of one application there.
        let app = app.map_or_else(
            || format!("yunikorn-{}-autogen", metadata.namespace_or_default()),
            ToString::to_string,
        );
        let spark = [SPARK_ROLE, SPARK_APP];
        let is_spark = spark.iter().any(|key| metadata.labels.contains_key(key));
        let name = if is_spark {
            format!("{app}-{task}")
        } else {
            app.clone()
        };
        let mut said = Said::of(pod, [TASK_GROUPS, PARAMETERS]);
        said.keep(APP_ID, &app);
        if is_spark {
            said.keep(SPARK_ROLE, task);
        }
        Some(Link {
            task: task.clone(),
            said: Some(Box::new(said)),
            ..Link::named(
                pod,
                SOURCE,
                &name,
                "metadata.annotations[yunikorn.apache.org/task-group-name]",
            )
        })
    }

    fn depends_on_others(&self, group: &GangKey) -> bool {
        // One pod of an application says what its task groups are.
        group.source == SOURCE
    }

    fn gangs(&self, roster: &mut Roster<'_>, around: &mut Surroundings<'_>) -> Vec<GangSpec> {
        let is_its = |key: &GangKey| key.source == SOURCE;
        let mut definitions: BTreeMap<Name, Definition> = BTreeMap::new();
        for (_, members) in roster.iter().filter(|(key, _)| is_its(key)) {
            for member in members {
                if let Some((app, found)) = Definition::of(member) {
                    let known = definitions.entry(app).or_insert_with(|| found.clone());
                    if found.age < known.age {
                        *known = found;
                    }
                }
            }
        }
        let groups = roster.iter_mut().filter(|(key, _)| is_its(key));
        let gangs = groups.filter_map(|(key, members)| {
            let name = (key.namespace.clone(), key.name.clone());
            gang(&name, members, &definitions, around)
        });
        gangs.collect()
    }
}

/// What the oldest pod of an application that says it says of its task groups.
#[derive(Clone)]
struct Definition {
    age: (Nanos, String),
    groups: Box<str>,
    parameters: Box<str>,
}

impl Definition {
    fn of(member: &Member) -> Option<(Name, Self)> {
        let said = member.link.as_ref()?.said.as_deref()?;
        let app = (member.spec.namespace.clone(), said.word(APP_ID)?.to_owned());
        Some((
            app,
            Self {
                age: (member.spec.created, member.spec.name.clone()),
                groups: said.word(TASK_GROUPS)?.into(),
                parameters: said.word(PARAMETERS).unwrap_or_default().into(),
            },
        ))
    }

    fn minima(&self) -> Result<Minima, Problem> {
        let field = format!("metadata.annotations[{TASK_GROUPS}]");
        let groups: Vec<TaskGroup> = serde_json::from_str(&self.groups).map_err(|error| {
            let accepted = "accepted: a list in JSON of task groups with name and minMember";
            problem("InvalidTaskGroups", &field, format!("{error}; {accepted}"))
        })?;
        let minima = groups.into_iter().enumerate().map(|(index, group)| {
            let min = count(
                group.min_member,
                0,
                0,
                &format!("{field}[{index}].minMember"),
            )?;
            Ok((group.name, min))
        });
        minima.collect()
    }
}

fn gang(
    name: &Name,
    members: &mut [&mut Member],
    definitions: &BTreeMap<Name, Definition>,
    around: &mut Surroundings<'_>,
) -> Option<GangSpec> {
    let stored = store::unwritten("YuniKorn application", name, members)?;
    let said = members.first()?.link.as_ref()?.said.as_deref()?;
    let app = said.word(APP_ID).unwrap_or_default().to_owned();
    let only = said.word(SPARK_ROLE).map(str::to_owned);
    let Some(definition) = definitions.get(&(name.0.clone(), app)) else {
        // As there: without task groups it is an application like any other.
        roles::leave_alone(members);
        return None;
    };
    let mut minima = match definition.minima() {
        Ok(minima) => minima,
        Err(problem) => {
            around.refuse(&stored, &problem);
            return Some(stored.invalid(name, SOURCE, problem));
        }
    };
    if let Some(only) = only {
        minima.retain(|task, _| *task == only);
    }
    let least = roles::sum(&minima);
    if least <= 1 {
        roles::leave_alone(members);
        return None;
    }
    let leaves = roles::leaves(&minima, members);
    let root = roles::all_of(format!("application/{}", name.1), leaves, least);
    let mut spec = GangSpec {
        priority: around.priority(None, "", members, &stored),
        schedule_timeout: Some(DEFAULT_WAIT),
        ..stored.gang(name, SOURCE, root)
    };
    for parameter in definition.parameters.split_whitespace() {
        let known = match parameter.split_once('=') {
            Some(("placeholderTimeoutInSeconds", seconds)) => {
                let seconds = seconds.parse().ok().filter(|seconds| *seconds > 0);
                seconds.map(|seconds| spec.schedule_timeout = Some(Nanos::from_secs(seconds)))
            }
            Some(("gangSchedulingStyle", "Hard")) => {
                spec.on_timeout = TimeoutPolicy::Fail;
                Some(())
            }
            Some(("gangSchedulingStyle", "Soft")) => Some(()),
            _ => None,
        };
        if known.is_none() {
            let accepted = "placeholderTimeoutInSeconds=900, gangSchedulingStyle=Soft or Hard; the \
                            first of each counts where this is wrong";
            let field = format!("metadata.annotations[{PARAMETERS}]");
            around.warn(&stored, &field, parameter, accepted);
        }
    }
    Some(spec)
}

#[cfg(test)]
mod tests {
    use gangline::{gang::TimeoutPolicy, units::Nanos};

    use crate::intake::testing::{pod, world};

    const GROUPS: &str = "yunikorn.apache.org/task-groups: '[{\"name\": \"ps\", \"minMember\": 1, \
                          \"minResource\": {\"cpu\": \"1\"}}, {\"name\": \"worker\", \
                          \"minMember\": 3, \"nodeSelector\": {}}]'";

    fn member(name: &str, labels: &str, task: &str, more: &str) -> String {
        pod(
            name,
            &format!(
                "labels: {{{labels}}}, annotations: {{yunikorn.apache.org/task-group-name: \
                 {task}{}{more}}}",
                if more.is_empty() { "" } else { ", " }
            ),
        )
    }

    #[test]
    fn an_application_is_a_gang_with_a_role_for_each_task_group() {
        for label in ["yunikorn.apache.org/app-id: app-1", "applicationId: app-1"] {
            let pods = [
                member("a", label, "ps", GROUPS),
                member("b", label, "worker", ""),
            ];
            let world = world(&pods.concat());
            assert_eq!(
                world.trees(),
                ["yunikorn/app-1: application/app-1[>=4: ps>=1, worker>=3]"]
            );
            assert_eq!(world.links()[1], "b: yunikorn/app-1 worker");
            let gang = world.gang("app-1");
            assert_eq!(gang.schedule_timeout, Some(Nanos::from_secs(900)));
            assert_eq!(gang.on_timeout, TimeoutPolicy::Requeue);
            assert!(world.complaints.is_empty(), "{:?}", world.complaint_lines());
        }
        let unnamed = world(&member("a", "", "ps", GROUPS));
        assert_eq!(
            unnamed.gangs().next().unwrap().key.name,
            "yunikorn-ml-autogen"
        );
    }

    #[test]
    fn task_groups_of_spark_start_one_after_the_other() {
        let groups = GROUPS.replace("\"ps\"", "\"spark-driver\"");
        let groups = groups.replace("\"worker\"", "\"spark-executor\"");
        let driver = "spark-role: driver, spark-app-selector: s";
        let executor = "spark-role: executor, spark-app-selector: s";
        let pods = [
            member("a", driver, "spark-driver", &groups),
            member("b", executor, "spark-executor", ""),
        ];
        let world = world(&pods.concat());
        assert_eq!(
            world.trees(),
            ["yunikorn/s-spark-executor: application/s-spark-executor[>=3: spark-executor>=3]"]
        );
        assert_eq!(world.links()[0], "a: alone");
    }

    #[test]
    fn parameters_are_taken_over_and_unknown_ones_named() {
        let of = |parameters: &str| {
            let key = "yunikorn.apache.org/schedulingPolicyParameters";
            let more = format!("{GROUPS}, {key}: '{parameters}'");
            world(&member("a", "applicationId: app", "ps", &more))
        };
        let hard = of("placeholderTimeoutInSeconds=30 gangSchedulingStyle=Hard");
        assert_eq!(
            hard.gang("app").schedule_timeout,
            Some(Nanos::from_secs(30))
        );
        assert_eq!(hard.gang("app").on_timeout, TimeoutPolicy::Fail);
        let wrong = of("placeholderTimeoutInSeconds=-1 gangSchedulingStyle=hard x");
        assert_eq!(
            wrong.gang("app").schedule_timeout,
            Some(Nanos::from_secs(900))
        );
        assert_eq!(wrong.complaint_lines().len(), 3);
    }

    #[test]
    fn without_task_groups_pods_stand_alone_and_broken_ones_are_named() {
        assert_eq!(
            world(&member("a", "applicationId: app", "ps", "")).links(),
            ["a: alone"]
        );
        for (groups, code) in [
            ("[{", "InvalidTaskGroups"),
            ("{}", "InvalidTaskGroups"),
            ("[{\"name\": \"ps\", \"minMember\": -1}]", "InvalidMinimum"),
        ] {
            let groups = format!("yunikorn.apache.org/task-groups: '{groups}'");
            let world = world(&member("a", "applicationId: app", "ps", &groups));
            let problem = world.gang("app").problem.clone().unwrap();
            assert_eq!(problem.code, code, "{groups}");
            assert_eq!(world.complaint_lines().len(), 1, "{groups}");
        }
    }

    #[test]
    fn the_oldest_pods_word_counts_and_a_second_group_is_refused() {
        let fewer = GROUPS.replace("\"minMember\": 3", "\"minMember\": 2");
        let pods = [
            member("a", "applicationId: app", "ps", GROUPS),
            member("b", "applicationId: app", "worker", &fewer),
        ];
        assert!(world(&pods.concat()).trees().concat().contains("worker>=3"));
        let two = member("a", "applicationId: app", "ps", "pod-group-name: k");
        let problem = world(&two).pod("a").problem.clone().unwrap();
        assert_eq!(problem.code, "AmbiguousGroup");
    }
}
