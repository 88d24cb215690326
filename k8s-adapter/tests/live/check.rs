//! `gangline check --live`: what the scheduler knows is what there is, after a storm and in the midst of it.

use std::{
    fmt::Write as _,
    process::{Child, Command, Output, Stdio},
};

use gangline_controlplane::{ControlPlane, Project};
use serde_json::{Value, json};

use crate::{
    storm::{Numbers, remove, remove_at},
    support::{Cluster, Listener, node},
};

const STEPS: u32 = 300;
const NODES: u32 = 4;

/// Starts the command.
fn check(cluster: &Cluster, answers: &Listener) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gangline"));
    command.args([
        "check",
        "--live",
        "--at",
        &answers.address,
        "--output",
        "json",
    ]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    cluster.control_plane.attach(&mut command);
    command.spawn().expect("it starts")
}

/// What the command says, and its exit code.
fn outcome(check: Child) -> (Value, Option<i32>) {
    let Output {
        status,
        stdout,
        stderr,
    } = check.wait_with_output().expect("it ends");
    let warnings = String::from_utf8_lossy(&stderr);
    let said = serde_json::from_slice(&stdout).unwrap_or_else(|_| panic!("{warnings}"));
    (said, status.code())
}

/// A group of one of three dialects, and what its pods say of it.
fn group(dialect: u32, name: &str, min: u32) -> (String, String) {
    match dialect {
        0 => (
            format!(
                "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {{name: {name}}}\n\
                 spec: {{minMember: {min}, priorityClassName: high}}\n"
            ),
            format!(
                "metadata: {{name: NAME, annotations: {{scheduling.k8s.io/group-name: {name}}}}}"
            ),
        ),
        1 => (
            format!(
                "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {{name: {name}}}\n\
                 spec: {{minMember: {min}}}\n"
            ),
            format!("metadata: {{name: NAME, labels: {{scheduling.x-k8s.io/pod-group: {name}}}}}"),
        ),
        _ => (
            format!(
                "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {{name: {name}}}\nspec:\n  \
                 replicatedJobs:\n  - {{name: w, replicas: {min}, template: {{spec: {{template: {{spec: \
                 {{restartPolicy: Never, containers: [{{name: c, image: none}}]}}}}}}}}}}\n"
            ),
            format!("metadata: {{name: NAME, labels: {{jobset.sigs.k8s.io/jobset-name: {name}}}}}"),
        ),
    }
}

const GROUPS: [(&str, &str); 3] = [
    ("/apis/scheduling.volcano.sh/v1beta1", "podgroups"),
    ("/apis/scheduling.x-k8s.io/v1alpha1", "podgroups"),
    ("/apis/jobset.x-k8s.io/v1alpha2", "jobsets"),
];

/// A pod, with a claim or with a rule that names a label, or with neither.
fn pod(metadata: &str, name: &str, shape: u32) -> String {
    let mut yaml = format!(
        "apiVersion: v1\nkind: Pod\n{}\nspec:\n  schedulerName: gangline\n  containers:\n  - name: c\n    \
         image: none\n    resources: {{limits: {{nvidia.com/gpu: 1}}}}\n",
        metadata.replace("NAME", name)
    );
    match shape {
        0 => {
            let _ = writeln!(
                yaml,
                "  volumes: [{{name: data, persistentVolumeClaim: {{claimName: claim}}}}]"
            );
        }
        1 => {
            let _ = writeln!(
                yaml,
                "  affinity: {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: \
                 [{{topologyKey: kubernetes.io/hostname, labelSelector: {{matchLabels: \
                 {{scheduling.x-k8s.io/pod-group: g1}}}}}}]}}}}"
            );
        }
        _ => {}
    }
    yaml
}

const CLASS: &str = "/apis/scheduling.k8s.io/v1/priorityclasses/high";
const STORAGE: &str = "
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: disks}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: claim}
spec:
  storageClassName: disks
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
";

/// One change.
fn change(cluster: &Cluster, step: u32, numbers: &mut Numbers) {
    let name = format!("g{}", numbers.below(4));
    let dialect = numbers.below(3);
    let (object, metadata) = group(dialect, &name, 1 + numbers.below(3));
    let pod_name = format!("{name}-{}", numbers.below(4));
    let number = numbers.below(NODES);
    let node_name = format!("n{number}");
    let (api, plural) = GROUPS[dialect as usize];
    let path = cluster.path(api, &format!("{plural}/{name}"));
    let exists = |path: &str| cluster.control_plane.get(path).unwrap().status == 200;
    match numbers.below(12) {
        // What a JobSet is made of stays what it is.
        0 | 1 if dialect < 2 || !exists(&path) => cluster.apply(&object),
        2 => remove_at(cluster, &path),
        3..=5 if !exists(&cluster.pod_path(&pod_name)) => {
            cluster.apply(&pod(&metadata, &pod_name, numbers.below(4)));
        }
        6 => remove(cluster, "/api/v1", "pods", &pod_name),
        7 => remove_at(cluster, &cluster.node_path(&node_name)),
        8 if !exists(&cluster.node_path(&node_name)) => {
            cluster.create(node(&node_name, 2).label("topology.gangline.io/rack", "r1"));
        }
        9 if exists(&cluster.node_path(&node_name)) => {
            let rack = json!({ "topology.gangline.io/rack": format!("r{}", step % 3) });
            let fields = json!({
                "spec": { "unschedulable": step.is_multiple_of(2) },
                "metadata": { "labels": rack },
            });
            cluster.patch(&cluster.node_path(&node_name), &fields);
        }
        10 if exists(CLASS) => remove_at(cluster, CLASS),
        10 => cluster.apply(&format!(
            "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: high}}\nvalue: {step}\n"
        )),
        11 if step.is_multiple_of(2) => cluster.apply(STORAGE),
        11 => remove(cluster, "/api/v1", "persistentvolumeclaims", "claim"),
        _ => {}
    }
}

#[test]
fn what_the_scheduler_knows_is_what_there_is_in_a_storm_and_after_it() {
    let builder = ControlPlane::builder().controller_manager().kwok();
    let mut cluster = Cluster::start(&builder).unwrap();
    for project in [Project::Volcano, Project::SchedulerPlugins, Project::JobSet] {
        cluster.control_plane.define(project).unwrap();
    }
    let proxy = cluster.proxy(|_| None);
    let answers = Listener::free();
    let reach = [
        "--kubeconfig",
        proxy.kubeconfig(),
        "--answer",
        &answers.address,
    ];
    cluster.run(&reach);
    for number in 0..NODES {
        cluster.create_node(&format!("n{number}"), 2);
    }
    cluster.wait_until("the scheduler answers", || {
        outcome(check(&cluster, &answers)).1 == Some(0)
    });
    let mut numbers = Numbers(7);
    let mut meanwhile = Vec::new();
    for step in 0..STEPS {
        if step % 100 == 50 {
            meanwhile.push(check(&cluster, &answers));
            proxy.break_connections();
        }
        change(&cluster, step, &mut numbers);
    }
    meanwhile.push(check(&cluster, &answers));
    for check in meanwhile {
        let (said, code) = outcome(check);
        assert_eq!(code, Some(0), "{said:#}");
    }

    // One that hears nothing any more is found out.
    proxy.cut();
    cluster.create_node("late", 2);
    let (said, code) = outcome(check(&cluster, &answers));
    assert_eq!(code, Some(1), "{said:#}");
    let differences = said["differences"].as_array().unwrap();
    let of_node = |line: &&Value| line["object"] == "Node late";
    let late = differences.iter().find(of_node);
    let late = late.unwrap_or_else(|| panic!("{said:#}"));
    assert_eq!(late["known"], Value::Null);
    assert_eq!(late["listed"]["name"], "late");
}
