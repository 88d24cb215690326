//! `JobSet`s (`jobset.x-k8s.io`): several Jobs that are one piece of work.
//!
//! The whole set is one gang with a role for each `replicatedJob`, of `replicas` times as many pods as
//! each Job runs at a time. With `startupPolicyOrder: InOrder` or `dependsOn` later Jobs are
//! made when earlier ones run or ended: then one role is enough to start, and each later one starts
//! whole. With the annotation `alpha.jobset.sigs.k8s.io/exclusive-topology` (and no
//! `.../node-selector`) only the first pod of each Job is made before that pod has a node: more are not
//! waited for. Pods whose set is not there wait for it: a watch may tell of them first.

use gangline::{
    gang::{GangSpec, Group, Problem},
    units::Nanos,
};
use serde::{Deserialize, de::IgnoredAny};

use super::{
    Dialect, Kind, Link, Member, Roster, Said, Surroundings, count,
    roles::{self, Minima},
    store::Store,
};
use crate::{
    api::{Pod, or_default, whole_number},
    load::{Complaint, Document},
};

const SOURCE: &str = "jobset";
const API_GROUP: &str = "jobset.x-k8s.io";
const KIND: &str = "JobSet";
const NAME: &str = "jobset.sigs.k8s.io/jobset-name";
const NAME_FIELD: &str = "metadata.labels[jobset.sigs.k8s.io/jobset-name]";
const ROLE: &str = "jobset.sigs.k8s.io/replicatedjob-name";
const EXCLUSIVE: &str = "alpha.jobset.sigs.k8s.io/exclusive-topology";
const NODE_SELECTOR: &str = "alpha.jobset.sigs.k8s.io/node-selector";

/// The dialect.
#[derive(Debug, Default)]
pub(super) struct JobSets {
    sets: Store<SetSpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SetSpec {
    #[serde(deserialize_with = "or_default")]
    replicated_jobs: Vec<ReplicatedJob>,
    #[serde(deserialize_with = "or_default")]
    startup_policy: StartupPolicy,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct StartupPolicy {
    #[serde(deserialize_with = "or_default")]
    startup_policy_order: Box<str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ReplicatedJob {
    #[serde(deserialize_with = "or_default")]
    name: String,
    #[serde(deserialize_with = "whole_number")]
    replicas: Option<i64>,
    #[serde(deserialize_with = "or_default")]
    template: JobTemplate,
    #[serde(deserialize_with = "or_default")]
    depends_on: Vec<IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct JobTemplate {
    #[serde(deserialize_with = "or_default")]
    spec: JobSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct JobSpec {
    #[serde(deserialize_with = "whole_number")]
    parallelism: Option<i64>,
    #[serde(deserialize_with = "whole_number")]
    completions: Option<i64>,
}

impl SetSpec {
    /// The roles; `pods` says whether all pods of a Job are made at once or only its first.
    fn minima(&self, pods: bool) -> Result<Minima, Problem> {
        let mut minima = Minima::new();
        for (index, job) in self.replicated_jobs.iter().enumerate() {
            let field = format!("spec.replicatedJobs[{index}]");
            let replicas = count(job.replicas, 1, 0, &format!("{field}.replicas"))?;
            let spec = &job.template.spec;
            let field = format!("{field}.template.spec");
            let parallelism = count(spec.parallelism, 1, 0, &format!("{field}.parallelism"))?;
            let completions = format!("{field}.completions");
            let at_once = count(spec.completions, parallelism, 0, &completions)?.min(parallelism);
            let at_once = if pods { at_once } else { at_once.min(1) };
            minima.insert(job.name.clone(), roles::times(replicas, at_once));
        }
        Ok(minima)
    }

    fn is_ordered(&self) -> bool {
        &*self.startup_policy.startup_policy_order == "InOrder"
            || self
                .replicated_jobs
                .iter()
                .any(|job| !job.depends_on.is_empty())
    }
}

impl Dialect for JobSets {
    fn kinds(&self) -> &'static [Kind] {
        &[Kind {
            group: API_GROUP,
            versions: &["v1alpha2"],
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
        let name = label(NAME)?;
        let said = Said::of(pod, [EXCLUSIVE, NODE_SELECTOR]);
        Some(Link {
            task: label(ROLE).cloned().unwrap_or_default(),
            said: (!said.words.is_empty()).then(|| Box::new(said)),
            ..Link::inferred(pod, SOURCE, name, NAME_FIELD)
        })
    }

    fn gangs(&self, roster: &mut Roster<'_>, around: &mut Surroundings<'_>) -> Vec<GangSpec> {
        self.sets.gangs_with_members(SOURCE, roster, around, tree)
    }
}

fn tree(name: &str, spec: &SetSpec, members: &mut [&mut Member]) -> Result<Option<Group>, Problem> {
    let one_by_one = members.iter().any(|member| {
        let said = member.link.as_ref().and_then(|link| link.said.as_deref());
        said.is_some_and(|said| {
            said.word(EXCLUSIVE).is_some() && said.word(NODE_SELECTOR).is_none()
        })
    });
    let minima = spec.minima(!one_by_one)?;
    let least = roles::sum(&minima);
    if least <= 1 {
        return Ok(None);
    }
    let leaves = roles::leaves(&minima, members);
    let root = format!("{SOURCE}/{name}");
    Ok(Some(if spec.is_ordered() {
        roles::enough_of(root, leaves, 1)
    } else {
        roles::all_of(root, leaves, least)
    }))
}

#[cfg(test)]
mod tests {
    use crate::intake::testing::{pod, world};

    const JOBS: &str = "replicatedJobs: [{name: driver, template: {spec: {template: {}}}}, \
                        {name: workers, replicas: 2, template: {spec: {parallelism: 4, completions: \
                        3}}}]";

    fn set(spec: &str) -> String {
        format!(
            "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n\
             metadata: {{name: train, namespace: ml, uid: u}}\nspec: {{{spec}}}\n---\n"
        )
    }

    fn member(name: &str, role: &str, annotations: &str) -> String {
        pod(
            name,
            &format!(
                "labels: {{jobset.sigs.k8s.io/jobset-name: train, \
                 jobset.sigs.k8s.io/replicatedjob-name: {role}}}, annotations: {{{annotations}}}"
            ),
        )
    }

    #[test]
    fn a_set_is_one_gang_with_a_role_for_each_job() {
        let pods = [
            member("d", "driver", ""),
            member("w", "workers", ""),
            member("x", "extra", ""),
        ];
        let world = world(&[pods.concat(), set(JOBS)].concat());
        assert_eq!(
            world.trees(),
            ["jobset/train: jobset/train[>=7: driver>=1, extra>=0, workers>=6]"]
        );
        assert_eq!(world.links()[1], "w: jobset/train workers");
    }

    #[test]
    fn jobs_that_follow_each_other_start_one_by_one_each_whole() {
        let ordered = [
            format!("{JOBS}, startupPolicy: {{startupPolicyOrder: InOrder}}"),
            JOBS.replace(
                "replicas: 2",
                "replicas: 2, dependsOn: [{name: driver, status: Ready}]",
            ),
        ];
        for spec in ordered {
            assert_eq!(
                world(&[set(&spec), member("d", "driver", "")].concat()).trees(),
                ["jobset/train: jobset/train[1 of driver>=1, workers>=6]"],
                "{spec}"
            );
        }
    }

    #[test]
    fn followers_that_wait_for_their_leaders_node_are_not_waited_for() {
        let exclusive = "alpha.jobset.sigs.k8s.io/exclusive-topology: rack";
        let tree = |annotations: &str| {
            world(&[set(JOBS), member("d", "driver", annotations)].concat())
                .trees()
                .concat()
        };
        assert!(tree(exclusive).contains("workers>=2"));
        let selected = format!("{exclusive}, alpha.jobset.sigs.k8s.io/node-selector: 'true'");
        assert!(tree(&selected).contains("workers>=6"));
    }

    #[test]
    fn a_set_without_pods_is_no_gang_and_pods_without_their_set_wait() {
        assert_eq!(world(&set(JOBS)).trees(), [""; 0]);
        let gone = world(&member("d", "driver", ""));
        assert_eq!(gone.trees(), [""; 0]);
        assert_eq!(gone.links(), ["d: jobset/train "]);
    }

    #[test]
    fn one_pod_stands_alone_and_a_senseless_number_is_named() {
        let one = set("replicatedJobs: [{name: driver}]");
        let one = world(&[one, member("d", "driver", "")].concat());
        assert_eq!(one.links(), ["d: alone"]);
        let spec = JOBS.replace("parallelism: 4", "parallelism: -4");
        let world = world(&[set(&spec), member("d", "driver", "")].concat());
        let problem = world.gang("train").problem.clone().unwrap();
        let field = "spec.replicatedJobs[1].template.spec.parallelism";
        assert_eq!((&*problem.code, &*problem.field), ("InvalidMinimum", field));
        assert_eq!(world.complaint_lines().len(), 1);
    }
}
