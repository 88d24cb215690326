//! Writes a large cluster dump, as `kubectl get nodes,pods,podgroups -A -o json` would, and reads
//! one. For the figures in `docs/performance.md`:
//!
//! ```text
//! cargo run --release -p gangline-k8s --example large_dump -- write /tmp/large.json 5000 140000
//! /usr/bin/time -v cargo run --release -p gangline-k8s --example large_dump -- read /tmp/large.json
//! ```

use std::{
    error::Error,
    fs::File,
    io::{BufWriter, Write},
    path::PathBuf,
    time::Instant,
};

use gangline_k8s::world::{self, Options};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["write", path, nodes, pods] => write(path, nodes.parse()?, pods.parse()?),
        ["read", path] => read(path),
        _ => Err("usage: large_dump write FILE NODES PODS | large_dump read FILE".into()),
    }
}

fn read(path: &str) -> Result<(), Box<dyn Error>> {
    let started = Instant::now();
    let world = world::read(
        &[PathBuf::from(path)],
        &[],
        &Options::default(),
        &mut |_, _| {},
    )?;
    let seconds = started.elapsed().as_secs_f64();
    let counts = &world.counts;
    println!(
        "{} nodes, {} pods, {} groups, {} complaints, levels {:?}: {seconds:.2} s",
        counts.nodes,
        counts.pods,
        counts.groups,
        world.complaints.len(),
        world.levels,
    );
    for complaint in world.complaints.iter().take(5) {
        println!("{complaint}");
    }
    Ok(())
}

/// Every group has eight pods.
const GROUP_SIZE: u64 = 8;

fn write(path: &str, nodes: u64, pods: u64) -> Result<(), Box<dyn Error>> {
    let mut file = BufWriter::new(File::create(path)?);
    file.write_all(b"{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n")?;
    let groups = pods / GROUP_SIZE;
    let items = (0..nodes)
        .map(node)
        .chain((0..pods).map(|number| pod(number, nodes)))
        .chain((0..groups).map(group));
    for (index, item) in items.enumerate() {
        if index > 0 {
            file.write_all(b",\n")?;
        }
        let mut text = Vec::new();
        let indent = serde_json::ser::PrettyFormatter::with_indent(b"    ");
        let mut serializer = serde_json::Serializer::with_formatter(&mut text, indent);
        serde::Serialize::serialize(&item, &mut serializer)?;
        file.write_all(&text)?;
    }
    file.write_all(b"\n    ],\n    \"kind\": \"List\",\n    \"metadata\": {}\n}\n")?;
    file.flush()?;
    Ok(())
}

fn uid(kind: u64, number: u64) -> String {
    format!("{kind:08x}-0000-4000-8000-{number:012x}")
}

fn node(number: u64) -> Value {
    let (rack, block) = (number / 16, number / 256);
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "annotations": {
                "csi.volume.kubernetes.io/nodeid": "{\"csi.example.com\":\"node\"}",
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": format!("node-{number}"),
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": "gpu-8x",
                "nvidia.com/gpu.count": "8",
                "nvidia.com/gpu.product": "NVIDIA-H200",
                "topology.gangline.io/block": format!("block-{block}"),
                "topology.gangline.io/rack": format!("rack-{rack}"),
                "topology.kubernetes.io/region": "region-1",
                "topology.kubernetes.io/zone": format!("zone-{}", block / 4),
            },
            "name": format!("node-{number}"),
            "resourceVersion": "123456",
            "uid": uid(1, number),
        },
        "spec": {
            "podCIDR": "10.0.0.0/24",
            "providerID": format!("example:///node-{number}"),
            "taints": [{"effect": "NoSchedule", "key": "nvidia.com/gpu", "value": "present"}],
        },
        "status": {
            "addresses": [{"address": "10.0.0.1", "type": "InternalIP"}],
            "allocatable": amounts(),
            "capacity": amounts(),
            "conditions": (0..5).map(|_| condition("Ready")).collect::<Vec<_>>(),
            "images": (0..20).map(|image| json!({
                "names": [format!("registry.example.com/team/image-{image}@sha256:{image:064x}")],
                "sizeBytes": 1_234_567_890,
            })).collect::<Vec<_>>(),
            "nodeInfo": {"kubeletVersion": "v1.37.2", "osImage": "Example Linux"},
        },
    })
}

fn amounts() -> Value {
    json!({
        "cpu": "192",
        "ephemeral-storage": "3600000000Ki",
        "hugepages-2Mi": "0",
        "memory": "2000000000Ki",
        "nvidia.com/gpu": "8",
        "pods": "250",
    })
}

fn condition(kind: &str) -> Value {
    json!({
        "lastProbeTime": null,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "status": "True",
        "type": kind,
    })
}

fn pod(number: u64, nodes: u64) -> Value {
    let (group, ordinal) = (number / GROUP_SIZE, number % GROUP_SIZE);
    let resources = json!({
        "limits": {"cpu": "2", "memory": "8Gi"},
        "requests": {"cpu": "1", "memory": "4Gi"},
    });
    let conditions = ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map(condition);
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "annotations": {
                "prometheus.io/scrape": "true",
                "scheduling.k8s.io/group-name": format!("job-{group}"),
            },
            "creationTimestamp": "2026-02-01T00:00:00Z",
            "generateName": format!("job-{group}-"),
            "labels": {
                "app": format!("job-{group}"),
                "apps.kubernetes.io/pod-index": ordinal.to_string(),
                "controller-revision-hash": format!("job-{group}-7d9c5b6f8"),
                "statefulset.kubernetes.io/pod-name": format!("job-{group}-{ordinal}"),
                "team": "research",
            },
            "name": format!("job-{group}-{ordinal}"),
            "namespace": format!("team-{}", group % 40),
            "ownerReferences": [{
                "apiVersion": "apps/v1",
                "blockOwnerDeletion": true,
                "controller": true,
                "kind": "StatefulSet",
                "name": format!("job-{group}"),
                "uid": uid(2, group),
            }],
            "resourceVersion": "1234567",
            "uid": uid(3, number),
        },
        "spec": {
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
                "podAffinityTerm": {
                    "labelSelector": {"matchLabels": {"team": "research"}},
                    "topologyKey": "kubernetes.io/hostname",
                },
                "weight": 10,
            }]}},
            "containers": [{
                "args": ["--config", "/etc/service/config.yaml", "--port", "8080"],
                "env": (0..6).map(|variable| json!({
                    "name": format!("SETTING_{variable}"),
                    "value": "a value of usual length",
                })).collect::<Vec<_>>(),
                "image": "registry.example.com/team/service:v1.2.3",
                "imagePullPolicy": "IfNotPresent",
                "name": "service",
                "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
                "resources": resources,
                "terminationMessagePath": "/dev/termination-log",
                "volumeMounts": [{"mountPath": "/scratch", "name": "scratch"}],
            }],
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": true,
            "nodeName": format!("node-{}", number % nodes),
            "preemptionPolicy": "PreemptLowerPriority",
            "priority": 0,
            "restartPolicy": "Always",
            "schedulerName": "volcano",
            "serviceAccountName": "default",
            "terminationGracePeriodSeconds": 30,
            "tolerations": [
                {"effect": "NoExecute", "key": "node.kubernetes.io/not-ready",
                 "operator": "Exists", "tolerationSeconds": 300},
                {"effect": "NoExecute", "key": "node.kubernetes.io/unreachable",
                 "operator": "Exists", "tolerationSeconds": 300},
            ],
            "volumes": [{"emptyDir": {}, "name": "scratch"}],
        },
        "status": {
            "conditions": conditions,
            "containerStatuses": [{
                "allocatedResources": {"cpu": "1", "memory": "4Gi"},
                "containerID": format!("containerd://{number:064x}"),
                "image": "registry.example.com/team/service:v1.2.3",
                "name": "service",
                "ready": true,
                "resources": resources,
                "restartCount": 0,
                "state": {"running": {"startedAt": "2026-02-01T00:00:10Z"}},
            }],
            "hostIP": "10.0.0.1",
            "phase": "Running",
            "podIP": "10.1.0.1",
            "qosClass": "Burstable",
            "startTime": "2026-02-01T00:00:05Z",
        },
    })
}

fn group(number: u64) -> Value {
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "creationTimestamp": "2026-02-01T00:00:00Z",
            "name": format!("job-{number}"),
            "namespace": format!("team-{}", number % 40),
            "uid": uid(4, number),
        },
        "spec": {"minMember": GROUP_SIZE, "queue": "default"},
        "status": {"phase": "Running"},
    })
}
