//! Kubernetes' own groups, as the API server of this version takes them.

use std::fmt::Write as _;

use serde_json::json;

use crate::support::{Cluster, node};

const CLUSTER: &str = include_str!("../../../docs/examples/greedy-fails/cluster.yaml");
const TRIO: &str = include_str!("../../../docs/examples/greedy-fails/gang.yaml");
const BETA: &str = "/apis/scheduling.k8s.io/v1beta1";

/// A group with these fields in its spec.
fn pod_group(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {{name: {name}}}\n\
         spec: {{{spec}}}\n---\n"
    )
}

/// Pods of a group with one GPU each.
fn pods(group: &str, count: u32) -> String {
    (0..count).fold(String::new(), |mut yaml, pod| {
        let _ = write!(
            yaml,
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {group}-{pod}}}\nspec:\n  schedulerName: \
             gangline\n  schedulingGroup: {{podGroupName: {group}}}\n  containers:\n  - name: main\n    \
             image: none\n    resources: {{limits: {{nvidia.com/gpu: 1}}}}\n---\n"
        );
        yaml
    })
}

/// kube-scheduler 1.37.2 leaves this one waiting for ever.
#[test]
fn a_group_that_a_greedy_choice_fails_is_placed() {
    let mut cluster = Cluster::share("greedy");
    cluster.apply(CLUSTER);
    cluster.run(&[]);
    let ours = "  schedulerName: gangline\n  schedulingGroup:";
    cluster.apply(&TRIO.replace("  schedulingGroup:", ours));
    cluster.wait_until("the group is whole", || cluster.placed("p") == (3, 3));
    let places = cluster.places("p");
    assert_eq!(places["p1"], places["p2"]);
    assert_ne!(places["p1"], places["p3"]);
}

/// Case C020: the minimum is changed while the group waits.
#[test]
fn a_minimum_that_changes_counts_at_once() {
    let mut cluster = Cluster::share("minimum");
    cluster.create_node("n1", 4);
    cluster.run(&[]);
    cluster.apply(&pod_group("g", "schedulingPolicy: {gang: {minCount: 3}}"));
    cluster.apply(&pods("g", 2));
    cluster.wait_until("the group says that a member is missing", || {
        let (reason, message) = cluster.why("g-1");
        reason == "WaitingForMembers" && message.contains("2 of 3")
    });
    let minimum = json!({ "spec": { "schedulingPolicy": { "gang": { "minCount": 2 } } } });
    cluster.patch(&cluster.path(BETA, "podgroups/g"), &minimum);
    cluster.wait_until("the group is whole", || cluster.placed("g-") == (2, 2));
}

#[test]
fn groups_of_groups_start_together_and_each_in_its_rack() {
    let mut cluster = Cluster::share("composite");
    for (name, gpus, rack) in [("n1", 2, "r1"), ("n2", 2, "r2"), ("n3", 1, "r2")] {
        cluster.create(node(&cluster.node_name(name), gpus).label("rack", rack));
    }
    cluster.run(&[]);
    cluster.apply(
        "apiVersion: scheduling.k8s.io/v1alpha3\nkind: CompositePodGroup\nmetadata: {name: job}\n\
         spec:\n  workloadRef: {workloadName: job, templateName: job}\n  schedulingPolicy: {gang: \
         {minGroupCount: 2}}\n",
    );
    let under = |spec: &str| {
        let workload = "workloadRef: {workloadName: job, templateName: job}";
        format!("parentCompositePodGroupName: job, {workload}, {spec}")
    };
    let gang = |min| format!("schedulingPolicy: {{gang: {{minCount: {min}}}}}");
    let rack = "schedulingConstraints: {topology: [{key: rack}]}";
    cluster.apply(&pod_group("leader", &under(&gang(1))));
    cluster.apply(&pod_group(
        "worker",
        &under(&format!("{}, {rack}", gang(3))),
    ));
    cluster.apply(&pods("worker", 3));
    cluster.wait_until("the workers wait for their leader", || {
        cluster.why("worker-2").0 == "WaitingForMembers"
    });
    assert_eq!(cluster.placed("worker"), (3, 0));
    cluster.apply(&pods("leader", 1));
    cluster.wait_until("all have started", || {
        cluster.placed("worker") == (3, 3) && cluster.placed("leader") == (1, 1)
    });
    let workers = cluster.places("worker");
    let in_r1 = workers.values().filter(|node| node.ends_with("-n1"));
    assert_eq!(in_r1.count(), 0, "{workers:?}");
}
