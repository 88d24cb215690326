//! Whole worlds from small dumps and manifests.

use std::fmt::Write as _;

use gangline::{Event, Scheduler, explain::Reason, units::Nanos};

use super::{Options, World};
use crate::{
    intake::testing::{world, world_with},
    load::Severity,
};

fn node(name: &str, labels: &str) -> String {
    format!("apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{{labels}}}}}\n---\n")
}

fn pod(name: &str, spec: &str) -> String {
    format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n---\n")
}

fn stateful_set(name: &str, replicas: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {{name: {name}}}\nspec:\n  \
         replicas: {replicas}\n  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    \
         metadata: {{labels: {{app: {name}}}, annotations: {{scheduling.k8s.io/group-name: \
         {name}}}}}\n    spec: {{containers: [{{name: c}}]}}\n---\n"
    )
}

fn names(world: &World) -> Vec<&str> {
    world.pods().map(|pod| pod.name.as_str()).collect()
}

#[test]
fn the_order_of_the_input_changes_nothing() {
    let parts = [
        node("n2", "topology.kubernetes.io/zone: z"),
        node("n1", ""),
        pod("q", "priority: 1"),
        pod("p", "priorityClassName: high"),
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 9\n---\n"
            .into(),
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: ml, labels: {a: b}}\n---\n".into(),
        "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g}\n---\n".into(),
    ];
    let forward = world(&parts.concat());
    let backward = world(&parts.iter().rev().cloned().collect::<String>());
    assert_eq!(forward.events, backward.events);
    let kinds: Vec<_> = forward
        .events
        .iter()
        .map(|event| match event {
            Event::Namespace { name, .. } => name.clone(),
            Event::Node(node) => node.name.clone(),
            Event::Gang(gang) => gang.key.name.clone(),
            Event::Pod(pod) => pod.name.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, ["ml", "n1", "n2", "g", "p", "q"]);
    assert_eq!(forward.pod("p").priority, 9);
    assert!(
        forward.complaints.is_empty(),
        "{:?}",
        forward.complaint_lines()
    );
}

#[test]
fn kinds_that_decide_nothing_are_counted_and_wrong_versions_are_named() {
    let text = "\
apiVersion: v1
kind: ConfigMap
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
---
apiVersion: v2
kind: Pod
metadata: {name: p}
---
apiVersion: apps/v1beta1
kind: Deployment
metadata: {name: d}
---
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: g, namespace: ml}
---
apiVersion: v1
kind: Node
metadata: {labels: {a: b}}
";
    let world = world(text);
    let skipped: Vec<_> = world
        .counts
        .skipped
        .iter()
        .map(|(kind, count)| (kind.as_str(), *count))
        .collect();
    assert_eq!(skipped, [("ConfigMap", 1), ("Workload.kueue.x-k8s.io", 1)]);
    assert_eq!(
        world.complaint_lines(),
        [
            "dump, document 3: Pod p: apiVersion: v2; accepted: v1",
            "dump, document 4: Deployment d: apiVersion: apps/v1beta1; accepted: apps/v1",
            "dump, document 5: PodGroup ml/g: apiVersion: scheduling.run.ai/v2alpha2; accepted: \
         scheduling.k8s.io/v1beta1, scheduling.k8s.io/v1alpha3, scheduling.volcano.sh/v1beta1, \
         scheduling.x-k8s.io/v1alpha1",
            "dump, document 6: Node: metadata.name: missing; accepted: a name",
        ]
    );
}

#[test]
fn absurd_numbers_cost_only_their_object() {
    let container = |amount: &str| {
        format!("priority: 0, containers: [{{resources: {{requests: {{cpu: {amount}}}}}}}]")
    };
    let text = [
        pod("negative", &container("-1")),
        pod("absurd", &container("1e30")),
        pod("word", &container("many")),
        pod("list", &container("[1]")),
        pod("fine", &container("2")),
    ]
    .concat();
    let world = world(&text);
    let lines = world.complaint_lines();
    assert_eq!(lines.len(), 4, "{lines:?}");
    for line in &lines {
        assert!(
            line.contains("spec.containers[0].resources.requests"),
            "{line}"
        );
    }
    assert!(world.pod("fine").problem.is_none());
    assert_eq!(world.pod("fine").template.resources["cpu"], 2000);
    assert!(
        world
            .pods()
            .filter(|pod| pod.name != "fine")
            .all(|pod| pod.problem.is_some())
    );
    let world = world_with("", &stateful_set("s", "1e30"), &Options::default());
    assert_eq!(world.pods().count(), 0);
    assert!(world.complaint_lines()[0].contains("StatefulSet s: spec.replicas: "));
    let world = world_with("", &stateful_set("s", "-1"), &Options::default());
    assert!(world.complaint_lines()[0].contains("StatefulSet s: spec.replicas: -1"));
}

#[test]
fn levels_come_from_well_known_labels_and_from_rules() {
    let mut text = String::new();
    for (number, (zone, rack)) in [("z1", "r1"), ("z1", "r2"), ("z2", "r3")]
        .iter()
        .enumerate()
    {
        let labels = format!(
            "topology.kubernetes.io/zone: {zone}, example.com/rack: {rack}, example.com/hall: h, \
             nvidia.com/gpu.clique: c{number}, kubernetes.io/hostname: n{number}, unused: x"
        );
        text += &node(&format!("n{number}"), &labels);
    }
    for key in [
        "example.com/rack",
        "example.com/hall",
        "kubernetes.io/hostname",
        "absent",
    ] {
        let name = key.replace('/', "-");
        let _ = write!(
            text,
            "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {{name: {name}}}\n\
             spec: {{schedulingPolicy: {{basic: {{}}}}, schedulingConstraints: {{topology: \
             [{{key: {key}}}]}}}}\n---\n"
        );
    }
    let chosen = world(&text);
    assert_eq!(
        chosen.levels,
        [
            "example.com/hall",
            "topology.kubernetes.io/zone",
            "nvidia.com/gpu.clique",
            "example.com/rack",
        ]
    );
    let options = Options {
        levels: Some(vec!["unused".into()]),
        ..Options::default()
    };
    assert_eq!(world_with(&text, "", &options).levels, ["unused"]);
}

#[test]
fn scheduler_names_narrow_what_is_ours() {
    let text = [pod("a", "schedulerName: volcano"), pod("b", "priority: 1")].concat();
    assert!(world(&text).pods().all(|pod| !pod.foreign));
    let options = Options {
        scheduler_names: vec!["volcano".into()],
        ..Options::default()
    };
    let narrowed = world_with(&text, "", &options);
    assert!(!narrowed.pod("a").foreign && narrowed.pod("b").foreign);
}

#[test]
fn labels_count_for_rules_that_are_read_later() {
    let labelled = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {app: a, other: b}}\n\
                    spec: {priority: 0}\n---\n";
    let rule = "apiVersion: v1\nkind: Pod\nmetadata: {name: q}\nspec: {priority: 0, affinity: \
                {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: \
                kubernetes.io/hostname, labelSelector: {matchLabels: {app: a}}}]}}}\n---\n";
    for text in [[labelled, rule].concat(), [rule, labelled].concat()] {
        let world = world(&text);
        let labels: Vec<_> = world.pod("p").template.labels.keys().collect();
        assert_eq!(labels, ["app"]);
    }
}

#[test]
fn pods_of_a_manifest_come_last_and_side_by_side() {
    let dump = pod("old", "priority: 0").replace(
        "name: old}",
        "name: old, creationTimestamp: 2026-01-01T00:00:00Z}",
    );
    let group = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: a}\n\
                 spec: {minMember: 2}\n---\n";
    let manifest = [
        group,
        &stateful_set("a", "3"),
        &stateful_set("b", "2"),
        &pod("x", ""),
    ]
    .concat();
    let world = world_with(&dump, &manifest, &Options::default());
    assert_eq!(
        names(&world),
        ["old", "a-0", "b-0", "x", "a-1", "b-1", "a-2"]
    );
    assert_eq!(world.links()[1..3], ["a-0: volcano/a ", "b-0: volcano/b "]);
    let old = world.pod("old").created;
    assert!(old > Nanos::ZERO && old < world.gang("a").created);
    assert!(world.gang("a").created < world.pod("a-0").created);
    assert_eq!(
        world.now,
        world.pods().map(|pod| pod.created).max().unwrap()
    );
    assert!(world.complaints.is_empty(), "{:?}", world.complaint_lines());
}

#[test]
fn what_is_there_already_is_not_made_again() {
    let dump = [
        pod("a-0", "priority: 4, nodeName: n1"),
        pod("x", "priority: 4, nodeName: n1"),
        pod("y", "priority: 4"),
    ]
    .concat();
    let manifest = [
        stateful_set("a", "2"),
        stateful_set("a", "2"),
        pod("x", "priority: 5"),
        pod("y", "priority: 5"),
    ]
    .concat();
    let world = world_with(&dump, &manifest, &Options::default());
    assert_eq!(names(&world), ["a-0", "x", "y", "a-1"]);
    // What runs stays as it is; what waits is changed and keeps its place.
    assert_eq!(world.pod("x").priority, 4);
    assert_eq!(world.pod("x").node.as_deref(), Some("n1"));
    assert_eq!(world.pod("y").priority, 5);
    assert_eq!(world.counts.pods, 4);
}

#[test]
fn a_manifest_changes_nodes_and_its_deployments_owner_annotations_count() {
    let dump = node("n1", "a: b");
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, annotations: \
                      {scheduling.volcano.sh/group-min-member: '2'}}\nspec:\n  replicas: 2\n  \
                      selector: {matchLabels: {app: d}}\n  template:\n    metadata: {labels: {app: \
                      d}}\n    spec: {schedulerName: volcano}\n---\n";
    let manifest = [&node("n1", "a: c"), deployment].concat();
    let world = world_with(&dump, &manifest, &Options::default());
    assert_eq!(world.nodes().next().unwrap().labels["a"], "c");
    assert_eq!(world.gangs().count(), 1);
    assert!(world.pods().all(|pod| pod.gang.is_some()));
    let daemon = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d}\n";
    let world = world_with("", daemon, &Options::default());
    assert_eq!(world.complaint_lines().len(), 1);
}

#[test]
fn a_pod_of_the_dump_without_a_name_is_refused() {
    let text = "apiVersion: v1\nkind: Pod\nmetadata: {generateName: p-}\nspec: {}\n";
    let world = world(text);
    assert_eq!(world.counts.pods, 0);
    assert!(world.complaint_lines()[0].contains("metadata.name: missing"));
}

/// The engine after one decision about the world.
fn decided(world: &World) -> Scheduler {
    let mut scheduler = world.engine();
    scheduler.decide(world.now);
    scheduler
}

/// Each gang as `name: verdict reason`.
fn verdicts(world: &World) -> Vec<String> {
    let scheduler = decided(world);
    let shown = |gang| {
        let view = scheduler.gang(gang)?;
        let reason = scheduler.why(gang).and_then(|why| why.reason);
        let code = reason.as_ref().map_or("", |reason| reason.code());
        Some(
            format!("{}: {:?} {code}", view.name, view.verdict)
                .trim_end()
                .to_owned(),
        )
    };
    let mut lines: Vec<_> = scheduler.gangs().into_iter().filter_map(shown).collect();
    lines.sort();
    lines
}

fn gpu_node(name: &str, gpus: u32, labels: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{{labels}}}}}\nstatus: \
         {{allocatable: {{cpu: 64, memory: 256Gi, pods: 110, nvidia.com/gpu: {gpus}}}}}\n---\n"
    )
}

const ONE_GPU: &str = "containers: [{resources: {limits: {nvidia.com/gpu: 1}}}]";

#[test]
fn two_services_that_do_not_both_fit_are_decided_whole() {
    let group = |name: &str| {
        format!(
            "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {{name: \
             {name}}}\nspec: {{minMember: 4}}\n---\n"
        )
    };
    let service = |name: &str| {
        stateful_set(name, "4").replace("containers: [{name: c}]", ONE_GPU) + &group(name)
    };
    let dump = gpu_node("n1", 3, "") + &gpu_node("n2", 2, "");
    let manifest = service("a") + &service("b");
    let world = world_with(&dump, &manifest, &Options::default());
    assert!(world.complaints.is_empty(), "{:?}", world.complaint_lines());
    assert_eq!(verdicts(&world), ["a: Placed", "b: Infeasible DoesNotFit"]);
}

#[test]
fn a_group_in_another_namespace_or_nowhere_is_not_found() {
    let group = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g, \
                 namespace: elsewhere}\nspec: {minMember: 1}\n---\n";
    let named = |pod: &str, group: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {pod}, annotations: \
             {{scheduling.k8s.io/group-name: {group}}}}}\nspec: {{priority: 0}}\n---\n"
        )
    };
    let text = [
        &gpu_node("n", 1, ""),
        group,
        &named("p", "g"),
        &named("q", "h"),
    ]
    .concat();
    let world = world(&text);
    let scheduler = decided(&world);
    let reason = |name: &str| {
        let gang = scheduler.find("default", name).expect("the gang");
        scheduler.why(gang).expect("a reason").members[0].1.clone()
    };
    let found_elsewhere = |reason: Reason| match reason {
        Reason::GroupNotFound { elsewhere, .. } => elsewhere,
        other => panic!("{other:?}"),
    };
    assert_eq!(found_elsewhere(reason("g")).as_deref(), Some("elsewhere"));
    assert_eq!(found_elsewhere(reason("h")), None);
}

#[test]
fn objects_that_cannot_be_honoured_wait_with_their_problem_and_others_run() {
    let text = [
        gpu_node("n", 4, "rack: r"),
        pod("fine", &format!("priority: 0, {ONE_GPU}")),
        pod(
            "grouped",
            &format!("priority: 0, {ONE_GPU}, schedulingGroup: {{podGroupName: g}}"),
        ),
        pod(
            "basic",
            &format!("priority: 0, {ONE_GPU}, schedulingGroup: {{podGroupName: b}}"),
        ),
        "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: g}\nspec: \
         {schedulingPolicy: {gang: {minCount: 1e30}}}\n---\n"
            .into(),
        "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: b}\nspec: \
         {schedulingPolicy: {basic: {}}, schedulingConstraints: {topology: [{key: rack}]}}\n---\n"
            .into(),
    ];
    let world = world(&text.concat());
    assert_eq!(world.levels, ["rack"]);
    assert_eq!(
        verdicts(&world),
        ["b: Placed", "fine: Placed", "g: Waiting InvalidObject"]
    );
}

/// One object of each kind that is read.
const ALL_KINDS: &str = "\
apiVersion: v1
kind: Node
metadata: {name: n, labels: {rack: r}}
status: {allocatable: {cpu: 64, pods: 110, nvidia.com/gpu: 8}}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: h}
spec: {tier: 1, members: [{type: Node, selector: {regexMatch: {pattern: '^n'}}}]}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: v}
spec:
  minMember: 2
  networkTopology: {highestTierAllowed: 1}
  subGroupPolicy: [{name: s, matchLabelKeys: [app], subGroupSize: 1, minSubGroups: 1}]
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: x}
spec: {minMember: 1, scheduleTimeoutSeconds: 5, minResources: {cpu: 1}}
---
apiVersion: scheduling.k8s.io/v1alpha3
kind: CompositePodGroup
metadata: {name: c}
spec: {schedulingPolicy: {gang: {minGroupCount: 1}}}
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: k}
spec: {parentCompositePodGroupName: c, schedulingPolicy: {gang: {minCount: 1}}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {app: a}, annotations: {scheduling.k8s.io/group-name: v}}
spec: {priority: 1, containers: [{resources: {requests: {cpu: 500m}}}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: s}
spec:
  replicas: 2
  selector: {matchLabels: {app: s}}
  template: {metadata: {labels: {app: s}}, spec: {schedulerName: volcano}}
---
apiVersion: v1
kind: Pod
metadata: {name: q}
spec: {priority: 1, schedulingGroup: {podGroupName: k}}
";

proptest::proptest! {
    /// Whatever is cut out or put in anywhere: no panic, and nothing that the engine refuses.
    #[test]
    fn damaged_input_never_stops_anything(
        at in 0..ALL_KINDS.len(),
        cut in 0_usize..12,
        put in "[-0-9a-z:{}'\\n ]{0,8}",
        as_manifest: bool,
    ) {
        let mut text = ALL_KINDS.to_owned();
        text.replace_range(at..(at + cut).min(ALL_KINDS.len()), &put);
        let (dump, manifest) = if as_manifest { ("", &*text) } else { (&*text, "") };
        let world = world_with(dump, manifest, &Options::default());
        decided(&world);
    }
}

#[test]
fn every_kind_is_read_without_complaint() {
    let world = world(ALL_KINDS);
    assert!(world.complaints.is_empty(), "{:?}", world.complaint_lines());
    assert!(world.gangs().all(|gang| gang.problem.is_none()));
    assert_eq!(world.trees().len(), 3);
}

#[test]
fn an_annotation_on_a_workload_instead_of_its_template_is_warned_of() {
    let annotated = "metadata: {annotations: {gangline.io/slice: 20Gi, other: x}, name: s}";
    let manifest = stateful_set("s", "1").replacen("metadata: {name: s}", annotated, 1);
    let world = world_with("", &manifest, &Options::default());
    let complaints: Vec<String> = world.complaints.iter().map(ToString::to_string).collect();
    assert_eq!(
        complaints,
        [
            "manifest, document 1: StatefulSet s: metadata.annotations[gangline.io/slice]: its \
             pods do not get it; accepted: in spec.template.metadata.annotations"
        ]
    );
    assert!(world.useless.is_empty(), "a warning is no refusal");
}

#[test]
fn an_annotation_on_a_group_instead_of_its_pods_is_warned_of() {
    let group = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g, \
                 annotations: {gangline.io/card-near: nvlink-island}}\nspec: {minMember: 1}\n";
    assert_eq!(
        world(group).complaint_lines(),
        [
            "dump, document 1: PodGroup g: metadata.annotations[gangline.io/card-near]: its pods do not \
             get it; accepted: on its pods"
        ]
    );
}

#[test]
fn conditions_of_cards_on_a_pod_that_asks_for_none_are_warned_of() {
    let pod = |limits: &str, spec: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: p, annotations: {{gangline.io/card-memory: \
             79Gi}}}}\nspec: {{containers: [{{name: a, resources: {{limits: {{{limits}}}}}}}]{spec}}}\n"
        )
    };
    assert_eq!(
        world(&pod("cpu: 1", "")).complaint_lines(),
        [
            "dump, document 1: Pod default/p: metadata.annotations[gangline.io/card-memory]: decides \
             nothing, since the pod asks for no card; accepted: on a pod that asks for cards, such as \
             nvidia.com/gpu: 1"
        ]
    );
    assert_eq!(
        world(&pod("nvidia.com/gpu: 1", "")).complaint_lines(),
        [""; 0]
    );
    assert_eq!(
        world(&pod("cpu: 1", ", nodeName: n1")).complaint_lines(),
        [""; 0]
    );
}

#[test]
fn a_label_that_a_pod_selects_and_no_node_has_is_named_once() {
    let pod = |name: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{nodeSelector: \
             {{nvidia.com/gpu.produkt: A}}}}\n---\n"
        )
    };
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {nvidia.com/gpu.product: A}}\n---\n";
    let dump = [node, &pod("a"), &pod("b")].concat();
    assert_eq!(
        world(&dump).complaint_lines(),
        [
            "dump, document 2: Pod default/a: spec.nodeSelector[nvidia.com/gpu.produkt]: no node has this \
             label; did you mean nvidia.com/gpu.product?; accepted: a label that nodes have"
        ]
    );
}

#[test]
fn what_is_wrong_with_a_pod_that_runs_is_a_warning() {
    let pod = |name: &str, spec: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{gangline.io/slice: 20Gi}}}}\n\
             spec: {spec}\n---\n"
        )
    };
    let dump = [pod("waits", "{}"), pod("runs", "{nodeName: n1}")].concat();
    let world = world(&dump);
    let severities: Vec<_> = world.complaints.iter().map(|one| one.severity).collect();
    assert_eq!(severities, [Severity::Refused, Severity::Warning]);
}
