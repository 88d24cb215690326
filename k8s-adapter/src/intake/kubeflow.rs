//! Kubeflow's jobs (`kubeflow.org`): `PyTorchJob`, `TFJob`, `XGBoostJob`, `PaddleJob`, `JAXJob`, `MPIJob`.
//!
//! A job is one gang with a role for each type of replica, all needed, unless its
//! `runPolicy.schedulingPolicy.minAvailable` says how many of all are enough. Elastic jobs need
//! `elasticPolicy.minReplicas` workers. The launcher of an `MPIJob` may be made when its workers run, and
//! counts only where `launcherCreationPolicy` says that it is made at the start. Jobs of different kinds may have one
//! name, so the kind is the source: that of the owner, or `MPIJob` for a launcher, whose owner is a Job.
//! Pods whose job is not there wait for it: a watch may tell of them first.

use std::collections::BTreeMap;

use gangline::{
    gang::{GangSpec, Group, Problem},
    units::Nanos,
};
use serde::Deserialize;

use super::{
    Dialect, Kind, Link, Member, Roster, Surroundings, count,
    roles::{self, Minima},
    store::Store,
};
use crate::{
    api::{ObjectMeta, Pod, StringMap, or_default, whole_number},
    load::{Complaint, Document},
};

const API_GROUP: &str = "kubeflow.org";
const JOB_NAME: &str = "training.kubeflow.org/job-name";
const JOB_NAME_FIELD: &str = "metadata.labels[training.kubeflow.org/job-name]";
const REPLICA_TYPE: &str = "training.kubeflow.org/replica-type";
const MPI: &str = "MPIJob";
const LAUNCHER: &str = "launcher";
const WORKER: &str = "worker";

const KINDS: &[Kind] = &[
    kind("JAXJob", &["v1"]),
    kind(MPI, &["v2beta1", "v1"]),
    kind("PaddleJob", &["v1"]),
    kind("PyTorchJob", &["v1"]),
    kind("TFJob", &["v1"]),
    kind("XGBoostJob", &["v1"]),
];

const fn kind(kind: &'static str, versions: &'static [&'static str]) -> Kind {
    Kind {
        group: API_GROUP,
        versions,
        kind,
        spec: &[],
    }
}

/// The field in which jobs of this kind have their replicas.
fn specs_of(kind: &str) -> String {
    let start = match kind {
        "XGBoostJob" => "xgb".to_owned(),
        kind => kind.trim_end_matches("Job").to_lowercase(),
    };
    format!("{start}ReplicaSpecs")
}

/// The dialect.
#[derive(Debug, Default)]
pub(super) struct Kubeflow {
    /// Jobs by their kind.
    jobs: BTreeMap<String, Store<JobSpec>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct JobSpec {
    #[serde(
        alias = "jaxReplicaSpecs",
        alias = "mpiReplicaSpecs",
        alias = "paddleReplicaSpecs",
        alias = "pytorchReplicaSpecs",
        alias = "tfReplicaSpecs",
        alias = "xgbReplicaSpecs"
    )]
    replica_specs: StringMap<ReplicaSpec>,
    #[serde(deserialize_with = "or_default")]
    run_policy: RunPolicy,
    #[serde(deserialize_with = "or_default")]
    elastic_policy: ElasticPolicy,
    #[serde(deserialize_with = "or_default")]
    launcher_creation_policy: Box<str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReplicaSpec {
    #[serde(deserialize_with = "whole_number")]
    replicas: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RunPolicy {
    #[serde(deserialize_with = "or_default")]
    scheduling_policy: SchedulingPolicy,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SchedulingPolicy {
    #[serde(deserialize_with = "whole_number")]
    min_available: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ElasticPolicy {
    #[serde(deserialize_with = "whole_number")]
    min_replicas: Option<i64>,
}

impl Dialect for Kubeflow {
    fn kinds(&self) -> &'static [Kind] {
        KINDS
    }

    fn take(&mut self, document: &Document<'_>, arrival: Nanos) -> Result<(), Box<Complaint>> {
        let jobs = self.jobs.entry(document.kind.clone()).or_default();
        jobs.take(document, true, arrival)
    }

    fn forget(&mut self, group: &str, kind: &str, namespace: &str, name: &str) {
        if group == API_GROUP
            && let Some(jobs) = self.jobs.get_mut(kind)
        {
            jobs.forget(namespace, name);
        }
    }

    fn link(&self, pod: &Pod) -> Option<Link> {
        let label = |key| pod.metadata.labels.get(key).filter(|text| !text.is_empty());
        let name = label(JOB_NAME)?;
        let role = label(REPLICA_TYPE).map(|role| role.to_lowercase());
        let role = role.unwrap_or_default();
        let kind = kind_of_owner(&pod.metadata).or((role == LAUNCHER).then_some(MPI))?;
        Some(Link {
            task: role.into(),
            ..Link::inferred(pod, &kind.to_lowercase(), name, JOB_NAME_FIELD)
        })
    }

    fn gangs(&self, roster: &mut Roster<'_>, around: &mut Surroundings<'_>) -> Vec<GangSpec> {
        let gangs = self.jobs.iter().flat_map(|(kind, jobs)| {
            let source = kind.to_lowercase();
            jobs.gangs_with_members(&source, roster, around, |name, spec, members| {
                tree(kind, name, spec, members)
            })
        });
        gangs.collect()
    }
}

/// The kind of the job that controls a pod.
fn kind_of_owner(pod: &ObjectMeta) -> Option<&'static str> {
    let owner = pod.controller()?;
    let (group, _) = owner.api_version.split_once('/')?;
    let mut kinds = KINDS.iter().filter(|kind| kind.group == group);
    let kind = kinds.find(|kind| kind.kind == &*owner.kind)?;
    Some(kind.kind)
}

impl JobSpec {
    fn minima(&self, kind: &str) -> Result<Minima, Problem> {
        let mut minima = Minima::new();
        for (role, spec) in self.replica_specs.iter() {
            let field = format!("spec.{}[{role}].replicas", specs_of(kind));
            let replicas = count(spec.replicas, 1, 0, &field)?;
            let role = role.to_lowercase();
            let field = "spec.elasticPolicy.minReplicas";
            let min = match self.elastic_policy.min_replicas {
                elastic @ Some(_) if role == WORKER => count(elastic, replicas, 0, field)?,
                _ => replicas,
            };
            let is_late =
                kind == MPI && role == LAUNCHER && &*self.launcher_creation_policy != "AtStartup";
            minima.insert(role, if is_late { 0 } else { min });
        }
        Ok(minima)
    }
}

fn tree(
    kind: &str,
    name: &str,
    spec: &JobSpec,
    members: &mut [&mut Member],
) -> Result<Option<Group>, Problem> {
    let mut minima = spec.minima(kind)?;
    let available = spec.run_policy.scheduling_policy.min_available;
    let mut least = roles::sum(&minima);
    if available.is_some() {
        let field = "spec.runPolicy.schedulingPolicy.minAvailable";
        least = count(available, 1, 0, field)?.into();
        for min in minima.values_mut() {
            *min = 0;
        }
    }
    if least <= 1 {
        return Ok(None);
    }
    let leaves = roles::leaves(&minima, members);
    Ok(Some(roles::all_of(format!("job/{name}"), leaves, least)))
}

#[cfg(test)]
mod tests {
    use crate::intake::testing::{pod, world};

    fn job(kind: &str, spec: &str) -> String {
        format!(
            "apiVersion: kubeflow.org/v1\nkind: {kind}\nmetadata: {{name: bert, namespace: ml}}\n\
             spec: {{{spec}}}\n---\n"
        )
    }

    fn member(name: &str, kind: &str, role: &str) -> String {
        let api_version = if kind == "Job" {
            "batch/v1"
        } else {
            "kubeflow.org/v1"
        };
        pod(
            name,
            &format!(
                "labels: {{training.kubeflow.org/job-name: bert, \
                 training.kubeflow.org/replica-type: {role}}}, ownerReferences: [{{apiVersion: \
                 {api_version}, kind: {kind}, name: bert, controller: true}}]"
            ),
        )
    }

    const MASTER: &str =
        "pytorchReplicaSpecs: {Master: {replicas: 1, template: {spec: {}}}, Worker: {replicas: 3}}";

    fn tree(kind: &str, spec: &str) -> String {
        world(&[job(kind, spec), member("a", kind, "worker")].concat())
            .trees()
            .concat()
    }

    #[test]
    fn a_job_is_one_gang_with_a_role_for_each_type_of_replica() {
        let pods = [
            member("m", "PyTorchJob", "master"),
            member("w", "PyTorchJob", "worker"),
        ];
        let world = world(&[job("PyTorchJob", MASTER), pods.concat()].concat());
        assert_eq!(
            world.trees(),
            ["pytorchjob/bert: job/bert[>=4: master>=1, worker>=3]"]
        );
        assert_eq!(world.links()[0], "m: pytorchjob/bert master");
        assert_eq!(
            tree("TFJob", "tfReplicaSpecs: {PS: {replicas: 2}, Worker: {}}"),
            "tfjob/bert: job/bert[>=3: ps>=2, worker>=1]"
        );
    }

    #[test]
    fn what_the_job_says_of_its_minimum_counts() {
        let some = format!("{MASTER}, runPolicy: {{schedulingPolicy: {{minAvailable: 2}}}}");
        assert_eq!(
            tree("PyTorchJob", &some),
            "pytorchjob/bert: job/bert[>=2: master>=0, worker>=0]"
        );
        let elastic = "elasticPolicy: {minReplicas: 2, maxReplicas: 8}, \
                       pytorchReplicaSpecs: {Worker: {replicas: 4}}";
        assert_eq!(
            tree("PyTorchJob", elastic),
            "pytorchjob/bert: job/bert[>=2: worker>=2]"
        );
    }

    #[test]
    fn a_launcher_that_is_made_late_is_not_waited_for() {
        let mpi = "mpiReplicaSpecs: {Launcher: {replicas: 1}, Worker: {replicas: 4}}";
        let late = world(
            &[
                job("MPIJob", mpi),
                member("l", "Job", "launcher"),
                member("w", "MPIJob", "worker"),
            ]
            .concat(),
        );
        assert_eq!(
            late.trees(),
            ["mpijob/bert: job/bert[>=4: launcher>=0, worker>=4]"]
        );
        assert_eq!(late.links()[0], "l: mpijob/bert launcher");
        let early = format!("launcherCreationPolicy: AtStartup, {mpi}");
        assert!(tree("MPIJob", &early).contains("[>=5: launcher>=1"));
    }

    #[test]
    fn jobs_of_two_kinds_may_have_one_name() {
        let dump = [
            job("PyTorchJob", MASTER),
            job("XGBoostJob", "xgbReplicaSpecs: {Worker: {replicas: 2}}"),
            member("a", "PyTorchJob", "worker"),
            member("b", "XGBoostJob", "worker"),
        ];
        assert_eq!(
            world(&dump.concat()).links(),
            ["a: pytorchjob/bert worker", "b: xgboostjob/bert worker"]
        );
    }

    #[test]
    fn single_pods_stand_alone_senseless_numbers_are_named_and_absent_jobs_awaited() {
        let one = [
            job("JAXJob", "jaxReplicaSpecs: {Worker: {}}"),
            member("a", "JAXJob", "worker"),
        ];
        assert_eq!(world(&one.concat()).links(), ["a: alone"]);
        let wrong = MASTER.replace('3', "-3");
        let wrong = world(
            &[
                job("PyTorchJob", &wrong),
                member("a", "PyTorchJob", "worker"),
            ]
            .concat(),
        );
        let problem = wrong.gang("bert").problem.clone().unwrap();
        let field = "spec.pytorchReplicaSpecs[Worker].replicas";
        assert_eq!((&*problem.code, &*problem.field), ("InvalidMinimum", field));
        let absent = world(&member("a", "PaddleJob", "worker"));
        assert_eq!(absent.links(), ["a: paddlejob/bert "]);
        let foreign = world(&member("a", "Job", "worker"));
        assert_eq!(
            foreign.links(),
            ["a: alone"],
            "only the label is Kubeflow's"
        );
    }
}
