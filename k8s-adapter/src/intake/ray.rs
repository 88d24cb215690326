//! Clusters of `KubeRay` (`ray.io`): `RayCluster`, also those of `RayJob` and `RayService`.
//!
//! A cluster is one gang: its head and of each worker group `replicas` times `numOfHosts` pods, or
//! `minReplicas` times so many where its own autoscaler runs and will ask for the others. Pods name their
//! cluster and worker group by labels; of other pods of a cluster, such as the one that cleans Redis up,
//! none is a member. Pods whose cluster is not there wait for it: a watch may tell of them first.

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
    api::{Pod, or_default, whole_number},
    load::{Complaint, Document},
};

const SOURCE: &str = "ray";
const API_GROUP: &str = "ray.io";
const KIND: &str = "RayCluster";
const CLUSTER: &str = "ray.io/cluster";
const CLUSTER_FIELD: &str = "metadata.labels[ray.io/cluster]";
const NODE_TYPE: &str = "ray.io/node-type";
const GROUP: &str = "ray.io/group";
/// The name that the operator gives the head's group.
const HEAD: &str = "headgroup";

/// The dialect.
#[derive(Debug, Default)]
pub(super) struct Ray {
    clusters: Store<ClusterSpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClusterSpec {
    enable_in_tree_autoscaling: Option<bool>,
    #[serde(deserialize_with = "or_default")]
    worker_group_specs: Vec<WorkerGroup>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WorkerGroup {
    #[serde(deserialize_with = "or_default")]
    group_name: String,
    #[serde(deserialize_with = "whole_number")]
    replicas: Option<i64>,
    #[serde(deserialize_with = "whole_number")]
    min_replicas: Option<i64>,
    #[serde(deserialize_with = "whole_number")]
    num_of_hosts: Option<i64>,
    suspend: Option<bool>,
}

impl ClusterSpec {
    fn minima(&self) -> Result<Minima, Problem> {
        let mut minima = Minima::from([(HEAD.to_owned(), 1)]);
        for (index, group) in self.worker_group_specs.iter().enumerate() {
            let field = format!("spec.workerGroupSpecs[{index}]");
            let least = count(group.min_replicas, 0, 0, &format!("{field}.minReplicas"))?;
            let replicas = count(group.replicas, 0, 0, &format!("{field}.replicas"))?;
            let hosts = count(group.num_of_hosts, 1, 1, &format!("{field}.numOfHosts"))?;
            let replicas = match (group.suspend, self.enable_in_tree_autoscaling) {
                (Some(true), _) => 0,
                (_, Some(true)) => least,
                // As there: fewer than the least are made up to it.
                _ => replicas.max(least),
            };
            minima.insert(group.group_name.clone(), roles::times(replicas, hosts));
        }
        Ok(minima)
    }
}

impl Dialect for Ray {
    fn kinds(&self) -> &'static [Kind] {
        &[Kind {
            group: API_GROUP,
            versions: &["v1", "v1alpha1"],
            kind: KIND,
            spec: &[],
        }]
    }

    fn take(&mut self, document: &Document<'_>, arrival: Nanos) -> Result<(), Box<Complaint>> {
        self.clusters.take(document, true, arrival)
    }

    fn forget(&mut self, group: &str, kind: &str, namespace: &str, name: &str) {
        if (group, kind) == (API_GROUP, KIND) {
            self.clusters.forget(namespace, name);
        }
    }

    fn link(&self, pod: &Pod) -> Option<Link> {
        let label = |key| pod.metadata.labels.get(key).filter(|text| !text.is_empty());
        let name = label(CLUSTER)?;
        let is_node = matches!(
            label(NODE_TYPE).map(|kind| &**kind),
            Some("head" | "worker")
        );
        is_node.then(|| Link {
            task: label(GROUP).cloned().unwrap_or_default(),
            ..Link::inferred(pod, SOURCE, name, CLUSTER_FIELD)
        })
    }

    fn gangs(&self, roster: &mut Roster<'_>, around: &mut Surroundings<'_>) -> Vec<GangSpec> {
        self.clusters
            .gangs_with_members(SOURCE, roster, around, tree)
    }
}

fn tree(
    name: &str,
    spec: &ClusterSpec,
    members: &mut [&mut Member],
) -> Result<Option<Group>, Problem> {
    let minima = spec.minima()?;
    let least = roles::sum(&minima);
    if least <= 1 {
        return Ok(None);
    }
    let leaves = roles::leaves(&minima, members);
    Ok(Some(roles::all_of(
        format!("raycluster/{name}"),
        leaves,
        least,
    )))
}

#[cfg(test)]
mod tests {
    use crate::intake::testing::{pod, world};

    fn cluster(spec: &str) -> String {
        format!(
            "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {{name: llm, namespace: ml}}\n\
             spec: {{headGroupSpec: {{template: {{}}}}, {spec}}}\n---\n"
        )
    }

    fn member(name: &str, kind: &str, group: &str) -> String {
        pod(
            name,
            &format!(
                "labels: {{ray.io/cluster: llm, ray.io/node-type: {kind}, ray.io/group: {group}}}"
            ),
        )
    }

    fn tree(spec: &str) -> String {
        world(&[cluster(spec), member("h", "head", "headgroup")].concat())
            .trees()
            .concat()
    }

    /// Case C024: two replicas of three hosts and a head are seven pods.
    #[test]
    fn a_cluster_is_its_head_and_all_hosts_of_its_workers() {
        let spec = cluster("workerGroupSpecs: [{groupName: gpu, replicas: 2, numOfHosts: 3}]");
        let pods = [
            member("h", "head", "headgroup"),
            member("w", "worker", "gpu"),
            member("r", "redis-cleanup", "headgroup"),
        ];
        let world = world(&[spec, pods.concat()].concat());
        assert_eq!(
            world.trees(),
            ["ray/llm: raycluster/llm[>=7: gpu>=6, headgroup>=1]"]
        );
        assert_eq!(
            world.links(),
            ["h: ray/llm headgroup", "r: alone", "w: ray/llm gpu"]
        );
    }

    #[test]
    fn what_an_autoscaler_will_ask_for_later_is_not_waited_for() {
        let groups = "workerGroupSpecs: [{groupName: gpu, replicas: 4, minReplicas: 2}, \
                      {groupName: off, replicas: 3, suspend: true}, {groupName: few, minReplicas: 1}]";
        assert_eq!(
            tree(groups),
            "ray/llm: raycluster/llm[>=6: few>=1, gpu>=4, headgroup>=1, off>=0]"
        );
        assert_eq!(
            tree(&format!("enableInTreeAutoscaling: true, {groups}")),
            "ray/llm: raycluster/llm[>=4: few>=1, gpu>=2, headgroup>=1, off>=0]"
        );
    }

    #[test]
    fn a_head_alone_is_no_gang_and_a_senseless_number_is_named() {
        let head = [cluster(""), member("h", "head", "headgroup")];
        assert_eq!(world(&head.concat()).links(), ["h: alone"]);
        for (group, field) in [
            ("numOfHosts: 0", "numOfHosts"),
            ("replicas: -1", "replicas"),
            ("minReplicas: 9000000000", "minReplicas"),
        ] {
            let spec = cluster(&format!("workerGroupSpecs: [{{groupName: gpu, {group}}}]"));
            let world = world(&[spec, member("h", "head", "headgroup")].concat());
            let problem = world.gang("llm").problem.clone().unwrap();
            let field = format!("spec.workerGroupSpecs[0].{field}");
            assert_eq!((&*problem.code, problem.field), ("InvalidMinimum", field));
        }
    }

    #[test]
    fn pods_of_a_cluster_that_is_gone_wait_and_a_named_group_goes_first() {
        let gone = world(&member("h", "head", "headgroup"));
        assert_eq!(gone.links(), ["h: ray/llm "]);
        let named = member("h", "head", "headgroup, scheduling.x-k8s.io/pod-group: g");
        assert_eq!(world(&named).links(), ["h: scheduler-plugins/g "]);
    }
}
