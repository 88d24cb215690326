//! Any order of changes ends in what a fresh list gives.

use std::sync::Arc;

use proptest::{prelude::*, sample::Index};
use serde_json::{Value, json};

use super::*;
use crate::{
    load,
    world::{Builder, Options},
};

/// What the cluster's objects are made from: small, so that they meet.
#[derive(Clone, Debug)]
enum Step {
    Node {
        node: u8,
        cards: u8,
    },
    NodeGone(u8),
    Group {
        group: u8,
        dialect: u8,
        min: u8,
    },
    GroupGone {
        group: u8,
        dialect: u8,
    },
    Owner {
        owner: u8,
        min: u8,
    },
    OwnerGone(u8),
    Pod {
        pod: u8,
        group: u8,
        node: u8,
        shape: u8,
        claims: u8,
    },
    PodGone(u8),
    Claim {
        claim: u8,
        shape: u8,
    },
    Volume {
        volume: u8,
        shape: u8,
    },
    StorageClass {
        class: u8,
        shape: u8,
    },
    Limit {
        node: u8,
        count: u8,
    },
    StorageGone {
        kind: u8,
        number: u8,
    },
    Class {
        value: i32,
    },
    ClassGone,
    /// Hand over what there is so far.
    Settle,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..3_u8, 0..4_u8).prop_map(|(node, cards)| Step::Node { node, cards }),
        (0..3_u8).prop_map(Step::NodeGone),
        (0..3_u8, 0..5_u8, 0..4_u8).prop_map(|(group, dialect, min)| Step::Group {
            group,
            dialect,
            min
        }),
        (0..3_u8, 0..5_u8).prop_map(|(group, dialect)| Step::GroupGone { group, dialect }),
        (0..3_u8, 0..4_u8).prop_map(|(owner, min)| Step::Owner { owner, min }),
        (0..3_u8).prop_map(Step::OwnerGone),
        (0..6_u8, 0..25_u8, 0..6_u8, 0..7_u8, 0..5_u8).prop_map(
            |(pod, group, node, shape, claims)| Step::Pod {
                pod,
                group,
                node,
                shape,
                claims
            }
        ),
        (0..3_u8, 0..8_u8).prop_map(|(claim, shape)| Step::Claim { claim, shape }),
        (0..3_u8, 0..6_u8).prop_map(|(volume, shape)| Step::Volume { volume, shape }),
        (0..2_u8, 0..2_u8).prop_map(|(class, shape)| Step::StorageClass { class, shape }),
        (0..3_u8, 0..3_u8).prop_map(|(node, count)| Step::Limit { node, count }),
        (0..4_u8, 0..3_u8).prop_map(|(kind, number)| Step::StorageGone { kind, number }),
        (0..6_u8).prop_map(Step::PodGone),
        (0..3_i32).prop_map(|value| Step::Class { value }),
        Just(Step::ClassGone),
        Just(Step::Settle),
    ];
    prop::collection::vec(step, 1..50)
}

/// Kinds of storage, with their API version.
const STORAGE: [(&str, &str, &str); 4] = [
    ("", "v1", "PersistentVolumeClaim"),
    ("", "v1", "PersistentVolume"),
    ("storage.k8s.io", "storage.k8s.io/v1", "StorageClass"),
    ("storage.k8s.io", "storage.k8s.io/v1", "CSINode"),
];

fn storage_name(kind: u8, number: u8) -> String {
    match kind {
        0 => format!("c{number}"),
        1 => format!("v{number}"),
        2 => ["local", "fast", "none"][usize::from(number)].to_owned(),
        _ => format!("n{number}"),
    }
}

fn storage(kind: u8, number: u8) -> Value {
    let (_, version, word) = STORAGE[usize::from(kind)];
    let name = storage_name(kind, number);
    json!({"apiVersion": version, "kind": word, "metadata": {"name": name}})
}

fn claim(number: u8, shape: u8) -> Value {
    let mut claim = storage(0, number);
    claim["metadata"]["namespace"] = json!("default");
    let size = if shape == 1 { "2Gi" } else { "1Gi" };
    let mode = if shape == 5 {
        "ReadWriteOncePod"
    } else {
        "ReadWriteOnce"
    };
    let class = if shape == 2 || shape == 6 {
        "fast"
    } else {
        "local"
    };
    claim["spec"] = json!({"accessModes": [mode], "storageClassName": class,
                           "resources": {"requests": {"storage": size}}});
    match shape {
        3..=5 => {
            claim["metadata"]["annotations"] = json!({"pv.kubernetes.io/bind-completed": "yes"});
            claim["spec"]["volumeName"] = json!(format!("v{}", shape % 3));
        }
        6 => {
            claim["metadata"]["annotations"] = json!({"volume.kubernetes.io/selected-node": "n1"});
        }
        7 => claim["status"] = json!({"phase": "Lost"}),
        _ => {}
    }
    claim
}

fn volume(number: u8, shape: u8) -> Value {
    let mut volume = storage(1, number);
    let size = if shape == 1 { "2Gi" } else { "1Gi" };
    let class = if shape == 5 { "fast" } else { "local" };
    let host = format!("n{}", number % 2);
    volume["spec"] = json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": class, "capacity": {"storage": size},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}]}]}}});
    volume["status"] = json!({"phase": "Available"});
    match shape {
        2 => volume["spec"]["claimRef"] = json!({"namespace": "default", "name": "c0"}),
        3 => volume["spec"]["csi"] = json!({"driver": "d", "volumeHandle": "h"}),
        4 => volume["spec"]["nodeAffinity"] = json!(null),
        _ => {}
    }
    volume
}

fn storage_class(number: u8, shape: u8) -> Value {
    let mut class = storage(2, number);
    class["provisioner"] = json!(["kubernetes.io/no-provisioner", "d"][usize::from(number)]);
    class["volumeBindingMode"] = json!(["WaitForFirstConsumer", "Immediate"][usize::from(shape)]);
    class
}

fn limit(node: u8, count: u8) -> Value {
    let mut limit = storage(3, node);
    let allocatable = if count == 2 {
        json!({})
    } else {
        json!({"count": count})
    };
    limit["spec"] = json!({"drivers": [{"name": "d", "allocatable": allocatable}]});
    limit
}

const GROUPS: [(&str, &str); 5] = [
    ("scheduling.k8s.io/v1beta1", "PodGroup"),
    ("scheduling.volcano.sh/v1beta1", "PodGroup"),
    ("scheduling.x-k8s.io/v1alpha1", "PodGroup"),
    ("jobset.x-k8s.io/v1alpha2", "JobSet"),
    ("scheduling.k8s.io/v1alpha3", "CompositePodGroup"),
];

fn node(node: u8, cards: u8) -> Value {
    let mut annotations = json!({});
    // With three cards it is a node of HAMi, with two the ids of its cards are the other way round.
    if let 2 | 3 = cards {
        let card = |id: u8| format!("GPU-{id},10,1000,100,A,0,true:");
        annotations["hami.io/node-nvidia-register"] = json!(card(3 - cards) + &card(cards - 2));
    }
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": format!("n{node}"), "annotations": annotations,
                     "labels": {"kubernetes.io/hostname": format!("n{node}")}},
        "status": {
            "allocatable": {"cpu": "8", "pods": "20", "nvidia.com/gpu": cards.to_string()},
            "images": (1..u64::from(cards)).map(|image| json!({
                "names": [format!("a:{image}")], "sizeBytes": image << 30,
            })).collect::<Vec<_>>(),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

fn group(group: u8, dialect: u8, min: u8) -> Value {
    let spec = match dialect {
        // One that needs nobody hangs in a tree.
        0 if min == 0 => json!({"schedulingPolicy": {"basic": {}},
                                "parentCompositePodGroupName": format!("g{}", group / 2)}),
        0 => json!({"schedulingPolicy": {"gang": {"minCount": min}}, "priorityClassName": "c"}),
        4 => json!({"schedulingPolicy": {"gang": {"minGroupCount": min}},
                    "parentCompositePodGroupName": if min == 1 { "g0" } else { "" }}),
        1 => json!({"minMember": min, "priorityClassName": "c"}),
        2 => json!({"minMember": min}),
        _ => json!({"replicatedJobs": [{"name": "w", "replicas": min}]}),
    };
    let (version, kind) = GROUPS[usize::from(dialect)];
    let status = if min == 3 {
        json!({"phase": "Running"})
    } else {
        json!({"phase": "Pending"})
    };
    let annotations = if dialect == 2 && min == 1 {
        json!({"gang.scheduling.koordinator.sh/min-available": "2"})
    } else {
        json!({})
    };
    json!({
        "apiVersion": version, "kind": kind, "status": status,
        "metadata": {
            "annotations": annotations,
            "name": format!("g{group}"), "namespace": "default", "uid": format!("g{group}-{dialect}"),
            "creationTimestamp": "2026-01-31T12:00:00Z",
        },
        "spec": spec,
    })
}

fn pod(pod: u8, group: u8, node: u8, shape: u8, claims: u8) -> Value {
    let mut labels = json!({"app": "a"});
    let mut annotations = json!({});
    let mut owners = json!([]);
    let mut spec = json!({
        "schedulerName": if shape == 5 { "volcano" } else { "gangline" },
        "priority": 0,
        "containers": [{"name": "c", "image": "a", "resources": {"limits": {"cpu": "1"}}}],
    });
    let name = format!("g{}", group % 3);
    match group / 3 {
        0 => spec["schedulingGroup"] = json!({"podGroupName": name}),
        1 => annotations["scheduling.k8s.io/group-name"] = json!(name),
        2 => labels["scheduling.x-k8s.io/pod-group"] = json!(name),
        3 => labels["jobset.sigs.k8s.io/jobset-name"] = json!(name),
        4 => {
            labels["kueue.x-k8s.io/pod-group-name"] = json!(name);
            annotations["kueue.x-k8s.io/pod-group-total-count"] = json!(shape.to_string());
            if shape == 2 || shape == 4 {
                labels["kueue.x-k8s.io/pod-group-pod-index"] = json!(pod.to_string());
                annotations["kueue.x-k8s.io/podset-slice-required-topology"] = json!("rack");
                annotations["kueue.x-k8s.io/podset-slice-size"] = json!("2");
            }
        }
        5 => owners = json!([{"kind": "Job", "name": name, "controller": true}]),
        6 => {
            annotations["gang.scheduling.koordinator.sh/name"] = json!(name);
            annotations["gang.scheduling.koordinator.sh/min-available"] = json!("2");
            let groups = ["", "[\"default/g0\", \"default/g1\"]"][usize::from(shape % 2)];
            annotations["gang.scheduling.koordinator.sh/groups"] = json!(groups);
        }
        7 => {
            annotations["yunikorn.apache.org/task-group-name"] = json!(name);
            labels["spark-app-selector"] = json!("app");
            if shape == 0 {
                annotations["yunikorn.apache.org/task-groups"] =
                    json!(r#"[{"name": "g0", "minMember": 2}, {"name": "g1", "minMember": 1}]"#);
            }
        }
        _ => {}
    }
    match shape {
        1 => spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = json!("1"),
        2 => annotations["gangline.io/share-memory"] = json!("1Gi"),
        3 => {
            spec["affinity"] = json!({"podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname",
                     "labelSelector": {"matchLabels": {"app": "a"}}}]}});
        }
        4 => {
            annotations["gpu-fraction"] = json!("0.5");
            labels["runai-gpu-group"] = json!("shared");
        }
        6 => {
            let limits = &mut spec["containers"][0]["resources"]["limits"];
            limits["nvidia.com/gpu"] = json!("1");
            limits["nvidia.com/gpumem"] = json!("100");
            annotations["hami.io/vgpu-devices-allocated"] = json!("GPU-0,NVIDIA,100,0:;");
        }
        _ => {}
    }
    let used: &[&str] = [&[][..], &[], &["c0"], &["c1", "c0"], &["c2"]][usize::from(claims)];
    let volumes = used
        .iter()
        .map(|claim| json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}}));
    spec["volumes"] = volumes.collect();
    if node < 3 {
        spec["nodeName"] = json!(format!("n{node}"));
    }
    // Ours or not, as the name of its scheduler says.
    let nominated = ["", "", "", "", "n1", "n2"][usize::from(node.min(5))];
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("p{pod}"), "namespace": "default",
            "uid": format!("p{pod}-{shape}-{claims}"),
            "creationTimestamp": format!("2026-01-31T12:00:0{pod}Z"),
            "labels": labels, "annotations": annotations, "ownerReferences": owners,
        },
        "spec": spec,
        "status": {
            "phase": if node < 3 { "Running" } else { "Pending" },
            "nominatedNodeName": nominated,
        },
    })
}

/// A Job; with a minimum of 0 it says none.
fn owner(owner: u8, min: u8) -> Value {
    let annotations = match min {
        0 => json!({}),
        min => json!({"gangline.io/min-member": min.to_string()}),
    };
    let name = format!("g{owner}");
    json!({"apiVersion": "batch/v1", "kind": "Job",
           "metadata": {"name": name, "namespace": "default", "annotations": annotations}})
}

fn class(value: i32) -> Value {
    json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
           "metadata": {"name": "c"}, "value": value})
}

/// The cluster's objects by kind and name.
type Objects = BTreeMap<(String, String), Value>;

fn key(object: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let kind = format!("{} {}", text(&object["apiVersion"]), text(&object["kind"]));
    (kind, text(&object["metadata"]["name"]))
}

fn document(object: &Value) -> Document<'static> {
    Document::from_value(Source::file("the cluster"), object.clone()).unwrap()
}

/// Plays a step on the objects, and tells the mirror as a watch would.
fn play(step: &Step, objects: &mut Objects, mirror: &mut Mirror, told: &mut Vec<Event>) {
    let uid_of = |object: &Value| Uid::from_text(object["metadata"]["uid"].as_str().unwrap());
    let object = match *step {
        Step::Node {
            node: number,
            cards,
        } => node(number, cards),
        Step::Group {
            group: number,
            dialect,
            min,
        } => group(number, dialect, min),
        Step::Pod {
            pod: number,
            group,
            node,
            shape,
            claims,
        } => pod(number, group, node, shape, claims),
        Step::Claim {
            claim: number,
            shape,
        } => claim(number, shape),
        Step::Volume {
            volume: number,
            shape,
        } => volume(number, shape),
        Step::StorageClass { class, shape } => storage_class(class, shape),
        Step::Limit { node, count } => limit(node, count),
        Step::StorageGone { kind, number } => {
            let (group, version, word) = STORAGE[usize::from(kind)];
            let name = storage_name(kind, number);
            let namespace = if kind == 0 { "default" } else { "" };
            objects.remove(&(format!("{version} {word}"), name.clone()));
            return mirror.object_gone(group, word, namespace, &name);
        }
        Step::Owner { owner: number, min } => owner(number, min),
        Step::OwnerGone(number) => {
            let name = format!("g{number}");
            objects.remove(&("batch/v1 Job".into(), name.clone()));
            return mirror.object_gone("batch", "Job", "default", &name);
        }
        Step::Class { value } => class(value),
        Step::ClassGone => {
            objects.remove(&("scheduling.k8s.io/v1 PriorityClass".into(), "c".into()));
            return mirror.object_gone("scheduling.k8s.io", "PriorityClass", "", "c");
        }
        Step::NodeGone(number) => {
            let name = format!("n{number}");
            objects.remove(&("v1 Node".into(), name.clone()));
            return mirror.node_gone(&name);
        }
        Step::GroupGone { group, dialect } => {
            let (version, kind) = GROUPS[usize::from(dialect)];
            let name = format!("g{group}");
            objects.remove(&(format!("{version} {kind}"), name.clone()));
            let (api_group, _) = version.split_once('/').unwrap();
            return mirror.object_gone(api_group, kind, "default", &name);
        }
        Step::PodGone(number) => {
            let name = format!("p{number}");
            if let Some(gone) = objects.remove(&("v1 Pod".into(), name.clone())) {
                mirror.pod_gone("default", &name, uid_of(&gone));
            }
            return;
        }
        Step::Settle => return told.extend(mirror.settle()),
    };
    match object["kind"].as_str().unwrap() {
        "Node" => mirror.node(&serde_json::from_value(object.clone()).unwrap()),
        "Pod" => mirror.pod(&serde_json::from_value(object.clone()).unwrap()),
        _ => mirror.object(document(&object)),
    }
    objects.insert(key(&object), object);
}

/// What an engine knows that was told all this: the last word about each object.
fn known(events: impl IntoIterator<Item = Event>) -> BTreeMap<String, Event> {
    let mut known = BTreeMap::new();
    for event in events {
        match &event {
            Event::Node(node) => known.insert(format!("node {}", node.name), event),
            Event::NodeGone { name } => {
                known.remove(&format!("images of {name}"));
                known.remove(&format!("node {name}"))
            }
            Event::NodeImages { name, images } if images.is_empty() => {
                known.remove(&format!("images of {name}"))
            }
            Event::NodeImages { name, .. } => known.insert(format!("images of {name}"), event),
            Event::Gang(gang) => known.insert(format!("gang {:?}", gang.key), event),
            Event::GangGone { key, uid } => {
                let name = format!("gang {key:?}");
                let is_it = matches!(known.get(&name), Some(Event::Gang(gang)) if gang.uid == *uid);
                assert!(is_it, "{name} goes and was not there");
                known.remove(&name)
            }
            Event::Pod(pod) => known.insert(format!("pod {:?}", pod.uid), event),
            Event::PodGone { uid } => known.remove(&format!("pod {uid:?}")),
            Event::Namespace { name, .. } => known.insert(format!("namespace {name}"), event),
            other => panic!("{other:?}"),
        };
    }
    known
}

/// The same without labels that no rule of these pods names: templates made while one did keep them, and
/// nobody can tell.
fn without_unnamed(
    mut known: BTreeMap<String, Event>,
    objects: &Objects,
) -> BTreeMap<String, Event> {
    let mut pods = objects.values();
    let is_named = pods.any(|object| object["spec"]["affinity"].is_object());
    for event in known.values_mut() {
        if let Event::Pod(pod) = event
            && !is_named
        {
            Arc::make_mut(&mut pod.template).labels.clear();
        }
    }
    known
}

fn fresh(objects: &Objects) -> BTreeMap<String, Event> {
    let options = Options {
        levels: None,
        scheduler_names: vec!["gangline".into()],
        is_complete: true,
    };
    let mut progress = |_, _| {};
    let mut builder = Builder::new(&options, &mut progress);
    let list = json!({"apiVersion": "v1", "kind": "List",
                      "items": objects.values().collect::<Vec<_>>()});
    let text = list.to_string();
    builder.read(|builder| load::load_bytes("list", text.as_bytes(), builder));
    known(builder.finish().events)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_order_of_changes_ends_in_what_a_fresh_list_gives(steps in steps(), cut in any::<Index>()) {
        let cut = cut.index(steps.len());
        compare(&steps, cut)?;
    }
}

/// Plays the steps, and compares with a fresh list of what is there then; also when that is told anew, from
/// its object number `cut` on.
fn compare(steps: &[Step], cut: usize) -> Result<(), TestCaseError> {
    let mut mirror = Mirror::new(["gangline".to_owned()]);
    let mut objects = Objects::new();
    let mut told = Vec::new();
    for step in steps {
        play(step, &mut objects, &mut mirror, &mut told);
    }
    told.extend(mirror.settle());
    prop_assert_eq!(without_unnamed(known(told), &objects), fresh(&objects));
    // The same objects in another order, from the start.
    let mut again = Mirror::new(["gangline".to_owned()]);
    let mut all: Vec<&Value> = objects.values().collect();
    let cut = cut % all.len().max(1);
    all.rotate_left(cut);
    for object in all {
        match object["kind"].as_str().unwrap() {
            "Node" => again.node(&serde_json::from_value(object.clone()).unwrap()),
            "Pod" => again.pod(&serde_json::from_value(object.clone()).unwrap()),
            _ => again.object(document(object)),
        }
    }
    prop_assert_eq!(known(again.settle()), fresh(&objects));
    Ok(())
}

#[test]
fn a_volume_that_goes_changes_what_its_claim_means() {
    let steps = [
        Step::Volume {
            volume: 0,
            shape: 2,
        },
        Step::StorageClass { class: 0, shape: 0 },
        Step::Claim { claim: 0, shape: 0 },
        Step::Pod {
            pod: 0,
            group: 0,
            node: 3,
            shape: 0,
            claims: 2,
        },
        Step::Settle,
        Step::StorageGone { kind: 1, number: 0 },
    ];
    compare(&steps, 0).unwrap();
}

#[test]
fn a_quiet_cluster_tells_nothing() {
    let mut mirror = Mirror::new(["gangline".to_owned()]);
    for object in [node(0, 2), group(0, 1, 2), pod(0, 3, 9, 1, 0)] {
        for _ in 0..2 {
            match object["kind"].as_str().unwrap() {
                "Node" => mirror.node(&serde_json::from_value(object.clone()).unwrap()),
                "Pod" => mirror.pod(&serde_json::from_value(object.clone()).unwrap()),
                _ => mirror.object(document(&object)),
            }
        }
    }
    // One more: the node has images.
    assert_eq!(mirror.settle().len(), 4);
    mirror.pod(&serde_json::from_value(pod(0, 3, 9, 1, 0)).unwrap());
    mirror.node(&serde_json::from_value(node(0, 2)).unwrap());
    mirror.object(document(&group(0, 1, 2)));
    assert_eq!(mirror.settle(), []);
}
