//! Whatever stands in a field, reading an object ends with a value or an error, never with a panic,
//! and a second reading gives the same.

use gangline::{
    Config, Event, Scheduler,
    device::{check_cards, check_request},
    gang::Problem,
    units::Nanos,
};
use gangline_k8s::{
    api,
    expand::{self, ExistingPods},
    member::PodReader,
    node::node_spec,
    priority::PriorityClasses,
    problem::Problems,
    rules::parse_duration,
};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A pod that uses every field that is read.
fn full_pod() -> Value {
    let selector = json!({"matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a"]}]});
    let node_term = json!({"matchExpressions": [{"key": "n", "operator": "Gt", "values": ["3"]}],
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]});
    let pod_term = json!({"topologyKey": "rack", "labelSelector": selector, "namespaces": ["a"],
        "namespaceSelector": selector, "matchLabelKeys": ["app"], "mismatchLabelKeys": ["x"]});
    let pod_rules = json!({
        "requiredDuringSchedulingIgnoredDuringExecution": [pod_term],
        "preferredDuringSchedulingIgnoredDuringExecution":
            [{"weight": 1, "podAffinityTerm": pod_term}]});
    let container = json!({"name": "main", "restartPolicy": "Always",
        "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "1"},
            "limits": {"memory": "1Gi", "nvidia.com/gpu": "1"}},
        "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP", "hostIP": ""}]});
    let status = json!([{"name": "main", "allocatedResources": {"cpu": "1"},
        "resources": {"requests": {"cpu": "1"}}}]);
    json!({
        "metadata": {"name": "p", "namespace": "prod", "uid": "u", "generateName": "p-",
            "labels": {"app": "web"}, "annotations": {"gangline.io/max-runtime": "10m",
                "gangline.io/card-near": "numa-node", "gangline.io/card-memory": "20Gi",
                "gangline.io/card-ids": "0,4-7", "gangline.io/card-overhead": "framework,nccl"},
            "creationTimestamp": "2026-01-31T12:00:00Z", "deletionTimestamp": null,
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "p", "uid": "o",
                "controller": true}]},
        "spec": {"nodeName": "n1", "schedulerName": "gangline", "priority": 1,
            "priorityClassName": "high", "schedulingGates": [{"name": "g"}],
            "schedulingGroup": {"podGroupName": "g"}, "containers": [container],
            "initContainers": [container], "overhead": {"cpu": "1"},
            "resources": {"requests": {"cpu": "4"}, "limits": {"memory": "4Gi"}},
            "nodeSelector": {"disk": "ssd"},
            "affinity": {"nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution":
                        {"nodeSelectorTerms": [node_term]},
                    "preferredDuringSchedulingIgnoredDuringExecution":
                        [{"weight": 1, "preference": node_term}]},
                "podAffinity": pod_rules, "podAntiAffinity": pod_rules},
            "tolerations": [{"key": "k", "operator": "Equal", "value": "v",
                "effect": "NoSchedule"}],
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "rack",
                "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector, "minDomains": 2,
                "nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Honor",
                "matchLabelKeys": ["app"]}],
            "hostNetwork": true, "activeDeadlineSeconds": 60, "resourceClaims": [{"name": "c"}]},
        "status": {"phase": "Running", "startTime": "2026-01-31T12:00:00Z",
            "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
            "containerStatuses": status, "initContainerStatuses": status,
            "allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "1"}}},
    })
}

fn full_node() -> Value {
    json!({
        "metadata": {"name": "n1",
            "labels": {"nvidia.com/gpu.product": "H200", "nvidia.com/gpu.count": "8"},
            "annotations": {"gangline.io/cards": "{mode: shared, memory: 80Gi, unhealthy: [1]}",
                "gangline.io/links": "hgx-h100-8"}},
        "spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
            "unschedulable": false},
        "status": {"allocatable": {"cpu": "1", "nvidia.com/gpu": "8", "nvidia.com/mig-1g.5gb": "7",
                "nvidia.com/gpu.shared": "4"}, "capacity": {"cpu": "2", "nvidia.com/gpu": "8"},
            "conditions": [{"type": "Ready", "status": "False"}]},
    })
}

fn full_workload() -> Value {
    let mut template = full_pod();
    if let Some(fields) = template.as_object_mut() {
        fields.remove("status");
    }
    json!({
        "metadata": {"name": "w", "namespace": "prod", "creationTimestamp": null},
        "spec": {"replicas": 2, "parallelism": 2, "completions": 3, "completionMode": "Indexed",
            "suspend": false, "ordinals": {"start": 1},
            "selector": {"matchLabels": {"app": "web"}}, "template": template},
    })
}

const POD_AMOUNTS: [&str; 9] = [
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    "nvidia.com/mig-1g.5gb",
    "nvidia.com/mig-3g.20gb",
    "nvidia.com/mig-0g.0gb",
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
    "amd.com/gpu",
];

const POD_ANNOTATIONS: [&str; 15] = [
    "gangline.io/card-near",
    "gangline.io/card-models",
    "gangline.io/card-memory",
    "gangline.io/cards",
    "gangline.io/card-ids",
    "gangline.io/slice",
    "gangline.io/share-memory",
    "gangline.io/share-compute",
    "gangline.io/share-group",
    "gangline.io/exclusive-cards",
    "gangline.io/card-overhead",
    "gangline.io/no-peer-to-peer",
    "gpu-fraction",
    "gpu-memory",
    "gpu-fraction-num-devices",
];

const NODE_MARKS: [&str; 9] = [
    "gangline.io/cards",
    "gangline.io/links",
    "hami.io/node-nvidia-register",
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.memory",
    "nvidia.com/gpu.count",
    "nvidia.com/gpu.replicas",
    "nvidia.com/mig.config.state",
    "kai.scheduler/node-pool",
];

/// What may stand in a label or an annotation about cards: right for some, wrong for the others.
fn card_text() -> impl Strategy<Value = String> {
    const WORDS: [&str; 38] = [
        "",
        "0",
        "1",
        "2",
        "4",
        "8",
        "-1",
        "17",
        "81559",
        "4294967296",
        "0.5",
        "50%",
        "1e30",
        "20Gi",
        "20Gi,2c",
        "9E",
        "true",
        "0,4-7",
        "nvlink-island",
        "numa-node",
        "distinct",
        "same",
        "any",
        "off",
        "processes=65535,framework,nccl=nodes,communicators=65535,engine",
        "H100-80GB,A100-40GB",
        "NVIDIA-A100-SXM4-40GB",
        "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",
        "pending",
        "shared",
        "mig-dynamic",
        "{replicas: 4294967295}",
        "[whole, shared, {replicas: 2}, mig-dynamic]",
        "{count: 1, mig-static: [3g.20gb@0, 1g.5gb@6, 1g.5gb@6]}",
        "{count: 64, mig-static: [1g.5gb@6, 3g.20gb@0]}",
        "{unhealthy: [0, 63, 64], memory: -1, mode: 3, count: 99}",
        "[{\"devmem\": 4294967295, \"health\": true, \"index\": 7}]",
        "X NV4 @0; NV4 X @0",
    ];
    prop_oneof![
        8 => prop::sample::select(&WORDS[..]).prop_map(String::from),
        1 => any::<String>(),
        1 => "[-+]?[0-9.]{0,20}[a-zA-Z%]{0,2}",
        1 => (0..20_usize).prop_map(|cards| {
            let row = |at| (0..cards).map(move |other| if at == other { "X" } else { "NV18" });
            let rows = (0..cards).map(|at| row(at).collect::<Vec<_>>().join(" "));
            rows.collect::<Vec<_>>().join("; ")
        }),
    ]
}

/// A pod and a node whose cards are described by whatever may stand there.
fn pod_and_node() -> impl Strategy<Value = (Value, Value)> {
    let texts = |keys: &'static [&'static str], most| {
        let entry = (prop::sample::select(keys), card_text());
        prop::collection::btree_map(entry.0, entry.1, 0..most)
    };
    (
        texts(&POD_AMOUNTS, 3),
        texts(&POD_ANNOTATIONS, 4),
        texts(&POD_AMOUNTS, 4),
        texts(&NODE_MARKS, 4),
        prop::option::of(Just("n1")),
    )
        .prop_map(|(limits, annotations, offered, marks, node_name)| {
            let pod = json!({
                "metadata": {"name": "p", "annotations": annotations},
                "spec": {"nodeName": node_name,
                    "containers": [{"name": "main", "resources": {"limits": limits}}]},
            });
            let node = json!({
                "metadata": {"name": "n1", "labels": marks, "annotations": marks},
                "status": {"allocatable": offered},
            });
            (pod, node)
        })
}

/// How many values there are in a document, itself and those inside others included.
fn size(value: &Value) -> usize {
    1 + match value {
        Value::Array(values) => values.iter().map(size).sum(),
        Value::Object(fields) => fields.values().map(size).sum(),
        _ => 0,
    }
}

/// Replaces the value that stands at `position` in the order in which [`size`] counts.
fn replace(value: &mut Value, position: &mut usize, replacement: &Value) {
    if *position == 0 {
        *value = replacement.clone();
    }
    *position = position.wrapping_sub(1);
    match value {
        Value::Array(values) => {
            for value in values {
                replace(value, position, replacement);
            }
        }
        Value::Object(fields) => {
            for value in fields.values_mut() {
                replace(value, position, replacement);
            }
        }
        _ => {}
    }
}

fn strange_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3_i64..3).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(json!(1e30)),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{}, null])),
        any::<String>().prop_map(Value::from),
        "[-+]?[0-9.]{0,20}[a-zA-Z]{0,2}".prop_map(Value::from),
        Just(json!("Exists")),
        Just(json!("")),
    ]
}

/// A document with up to three strange values in it.
fn spoiled(whole: Value) -> impl Strategy<Value = Value> {
    let size = size(&whole);
    prop::collection::vec((0..size, strange_value()), 0..=3).prop_map(move |changes| {
        let mut document = whole.clone();
        for (mut position, replacement) in changes {
            replace(&mut document, &mut position, &replacement);
        }
        document
    })
}

/// The pods of a workload have names of their own, and once they are there none is made again.
fn made_once<T: DeserializeOwned>(
    document: &Value,
    expand: impl Fn(&T, &ExistingPods, api::Timestamp) -> Result<Vec<api::Pod>, Problem>,
) -> Result<(), TestCaseError> {
    let Ok(workload) = serde_json::from_value(document.clone()) else {
        return Ok(());
    };
    let mut existing = ExistingPods::default();
    let Ok(pods) = expand(&workload, &existing, api::Timestamp::default()) else {
        return Ok(());
    };
    for pod in &pods {
        let meta = &pod.metadata;
        prop_assert!(!existing.contains(meta.namespace_or_default(), &meta.name));
        existing.add(pod);
    }
    let again = expand(&workload, &existing, api::Timestamp::default());
    prop_assert_eq!(again, Ok(Vec::new()));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_pod(document in spoiled(full_pod())) {
        let Ok(pod) = serde_json::from_value::<api::Pod>(document) else {
            return Ok(());
        };
        let read = || {
            let mut reader = PodReader::default();
            let mut problems = Problems::default();
            reader.templates.learn(&pod.spec);
            (reader.read(&pod, &mut problems), problems)
        };
        let (spec, problems) = read();
        prop_assert!(spec.template.resources.values().all(|amount| *amount > 0));
        prop_assert!(spec.template.cards.iter().all(|cards| check_request(cards).is_ok()));
        prop_assert_eq!(spec.node.is_none() && !problems.is_empty(), spec.problem.is_some());
        prop_assert_eq!((spec, problems), read());

        let mut existing = ExistingPods::default();
        let _ = expand::pod(&pod, &existing, api::Timestamp::default());
        existing.add(&pod);
        prop_assert!(existing.contains(pod.metadata.namespace_or_default(), &pod.metadata.name));
    }

    #[test]
    fn a_node(document in spoiled(full_node())) {
        let Ok(node) = serde_json::from_value::<api::Node>(document) else {
            return Ok(());
        };
        let mut problems = Problems::default();
        let spec = node_spec(&node, &mut problems);
        prop_assert!(spec.resources.values().all(|amount| *amount >= 0));
        prop_assert!(spec.cards.iter().all(|cards| check_cards(cards).is_ok()));
        prop_assert!(spec.cards.iter().all(|cards| cards.count > 0 || !cards.slices.is_empty()));
    }

    /// What is read of cards is what the engine takes, whatever stood there.
    #[test]
    fn cards((pod, node) in pod_and_node()) {
        let pod: api::Pod = serde_json::from_value(pod).unwrap();
        let node: api::Node = serde_json::from_value(node).unwrap();
        let mut problems = Problems::default();
        let node = node_spec(&node, &mut problems);
        let pod = PodReader::default().read(&pod, &mut problems);
        prop_assert!(problems.iter().all(|problem| !problem.field.is_empty()));

        let mut scheduler = Scheduler::new(Config::default());
        prop_assert_eq!(scheduler.apply(Event::Node(node)), Ok(()));
        prop_assert_eq!(scheduler.apply(Event::Pod(pod)), Ok(()));
        scheduler.decide(Nanos::ZERO);
        prop_assert_eq!(scheduler.check(), Ok(()));
    }

    #[test]
    fn a_workload(document in spoiled(full_workload())) {
        made_once(&document, expand::stateful_set)?;
        made_once(&document, expand::replica_set)?;
        made_once(&document, expand::deployment)?;
        made_once(&document, expand::job)?;
    }

    #[test]
    fn a_priority_class(value in strange_value(), default in strange_value()) {
        let document = json!({"metadata": {"name": "x"}, "value": value, "globalDefault": default});
        if let Ok(class) = serde_json::from_value(document) {
            let inserted = PriorityClasses::default().insert(&class);
            prop_assert_eq!(inserted.is_ok(), class.value.is_some_and(|value| {
                i32::try_from(value).is_ok()
            }));
        }
    }

    #[test]
    fn a_duration(text in any::<String>(), words in "[-+0-9.]{0,12}[a-zµ ]{0,4}[0-9]{0,3}[hms]?") {
        for text in [text, words] {
            if let Some(duration) = parse_duration(&text) {
                prop_assert!(duration.0 > 0);
            }
        }
    }
}
