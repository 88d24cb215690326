//! What is known once all objects are.

use std::fmt::Write as _;

use gangline::{
    Event,
    bits::CardSet,
    cluster::spec::CardMode,
    gang::PodSpec,
    request::{CardWant, ShareMemory},
};

use crate::{cards::given::written, intake::testing::world as read, world::World};

fn world(yaml: &str) -> World {
    let world = read(yaml);
    assert_eq!(world.complaints, [], "{yaml}");
    world
}

fn modes(world: &World) -> Vec<CardMode> {
    let nodes = world.events.iter().filter_map(|event| match event {
        Event::Node(node) => Some(node),
        _ => None,
    });
    let cards = nodes.flat_map(|node| &node.cards);
    cards.flat_map(|cards| cards.modes.clone()).collect()
}

fn pod<'a>(world: &'a World, name: &str) -> &'a PodSpec {
    let mut pods = world.events.iter().filter_map(|event| match event {
        Event::Pod(pod) => Some(pod),
        _ => None,
    });
    pods.find(|pod| pod.name == name).unwrap()
}

const NODE: &str = "
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {nvidia.com/gpu: 4}}
---
";

#[test]
fn a_node_on_which_a_share_runs_shares_its_cards() {
    let pod = |fields: &str| {
        format!(
            "{NODE}\napiVersion: v1\nkind: Pod\nmetadata: {{name: p, annotations: {{gpu-fraction: \
             '0.5'}}}}\n{fields}\n"
        )
    };
    let shared = |fields: &str| modes(&world(&pod(fields)));
    assert_eq!(shared("spec: {nodeName: n1}"), [CardMode::Shared]);
    assert_eq!(shared("spec: {}"), []);
    assert_eq!(
        shared("spec: {nodeName: n1}\nstatus: {phase: Succeeded}"),
        []
    );
}

/// Two cards of HAMi with these ids.
fn hami_node(ids: [&str; 2]) -> String {
    let [a, b] = ids;
    format!(
        "
apiVersion: v1
kind: Node
metadata:
  name: n1
  annotations:
    hami.io/node-nvidia-register: '{a},10,32768,100,NVIDIA-A100,0,true,0,hami-core:{b},10,32768,100,NVIDIA-A100,0,true,1,hami-core:'
status: {{allocatable: {{nvidia.com/gpu: 20}}}}
---
"
    )
}

/// A pod of HAMi that runs on these cards; with an amount of memory it has shares of them.
fn hami_pod(name: &str, memory: &str, allocated: &str) -> String {
    let cards = allocated.matches(':').count().max(1);
    format!(
        "
apiVersion: v1
kind: Pod
metadata: {{name: {name}, annotations: {{hami.io/vgpu-devices-allocated: '{allocated}'}}}}
spec: {{nodeName: n1, containers: [{{name: a, resources: {{limits: {{nvidia.com/gpu: {cards}{memory}}}}}}}]}}
---
"
    )
}

#[test]
fn hami_tells_by_id_which_cards_its_pods_have() {
    let share = ", nvidia.com/gpumem: 3000";
    let yaml = [
        hami_node(["GPU-a", "GPU-b"]),
        hami_pod("second", share, "GPU-b,NVIDIA,3000,0:;"),
        hami_pod("both", share, "GPU-b,NVIDIA,3000,0:GPU-a,NVIDIA,3000,0:;"),
        hami_pod("whole", "", "GPU-a,NVIDIA,32768,100:;"),
        hami_pod("filled", "", "GPU-a,NVIDIA,3000,30:;"),
        hami_pod(
            "unlike",
            share,
            "GPU-a,NVIDIA,1000,0:;GPU-b,NVIDIA,9000,0:;",
        )
        .replace("containers: [", "containers: [{name: b}, "),
        hami_pod(
            "started",
            share,
            "GPU-b,NVIDIA,60000,0:;GPU-b,NVIDIA,60000,0:;",
        )
        .replace(
            "containers: [",
            "initContainers: [{name: i}], containers: [",
        ),
        hami_pod("instance", share, "GPU-b[0-1],NVIDIA,9000,0:;"),
        hami_pod("elsewhere", share, "GPU-c,NVIDIA,3000,0:;"),
        hami_pod("silent", share, ";"),
    ];
    let told = |yaml: &str, name: &str| {
        let devices = pod(&world(yaml), name).devices;
        devices.and_then(|devices| written(&devices))
    };
    let had = |yaml: &str, name: &str| {
        let cards = pod(&world(yaml), name).template.cards.clone();
        match cards.unwrap().want {
            CardWant::Shares {
                count,
                memory,
                compute_milli,
                ..
            } => (count, memory, compute_milli),
            other => panic!("{other:?}"),
        }
    };
    let yaml = yaml.concat();
    assert_eq!(told(&yaml, "second").as_deref(), Some("1:share"));
    assert_eq!(told(&yaml, "both").as_deref(), Some("1:share,0:share"));
    assert_eq!(told(&yaml, "whole").as_deref(), Some("0"));
    // HAMi fills in what a pod leaves out: it has a share, whatever it asked for.
    assert_eq!(told(&yaml, "filled").as_deref(), Some("0:share"));
    assert_eq!(had(&yaml, "filled"), (1, ShareMemory::Mib(3000), 300));
    // Of two containers with unlike shares the largest counts for both; one that starts them is over.
    assert_eq!(told(&yaml, "unlike").as_deref(), Some("0:share,1:share"));
    assert_eq!(had(&yaml, "unlike"), (2, ShareMemory::Mib(9000), 0));
    assert_eq!(told(&yaml, "started").as_deref(), Some("1:share"));
    // An instance names its card.
    assert_eq!(told(&yaml, "instance").as_deref(), Some("1:share"));
    assert_eq!(told(&yaml, "elsewhere"), None);
    assert_eq!(told(&yaml, "silent"), None);
    // Ids that are not one each tell nothing.
    let twice = hami_node(["GPU-a", "GPU-a"]);
    let yaml = twice + &hami_pod("p", share, "GPU-a,NVIDIA,3000,0:;");
    assert_eq!(told(&yaml, "p"), None);
}

#[test]
fn a_whole_card_is_not_the_one_on_which_hami_runs_a_share() {
    let yaml = [
        hami_node(["GPU-a", "GPU-b"]),
        hami_pod("share", ", nvidia.com/gpumem: 3000", "GPU-b,NVIDIA,3000,0:;"),
        "apiVersion: v1\nkind: Pod\nmetadata: {name: new}\nspec: {containers: [{name: a, resources: \
         {limits: {nvidia.com/gpu: 1}}}]}\n"
            .to_owned(),
    ];
    let world = world(&yaml.concat());
    let mut scheduler = world.engine();
    scheduler.decide(world.now);
    let ledger = scheduler.ledger();
    let uid = pod(&world, "new").uid;
    let line = ledger.iter().find(|line| line.owner == uid).unwrap();
    assert_eq!(line.devices.cards, CardSet(0b01));
}

#[test]
fn shares_of_one_group_of_kai_are_on_one_card() {
    let mut yaml = NODE.to_owned();
    for (name, group) in [("a", "x"), ("b", "y"), ("c", "x"), ("d", "")] {
        let label = if group.is_empty() {
            String::new()
        } else {
            format!("runai-gpu-group: {group}")
        };
        write!(
            yaml,
            "\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{{label}}}, annotations: \
             {{gpu-fraction: '0.5'}}}}\nspec: {{nodeName: n1}}\n---\n"
        )
        .unwrap();
    }
    let world = world(&yaml);
    let told = |name: &str| pod(&world, name).devices;
    assert_eq!([told("a"), told("b")], [None, None], "KAI tells no numbers");
    let scheduler = world.engine();
    let card = |name: &str| {
        let ledger = scheduler.ledger();
        let uid = pod(&world, name).uid;
        let line = ledger.iter().find(|line| line.owner == uid).unwrap();
        line.devices.cards
    };
    assert_eq!(card("a"), card("c"));
    assert_ne!(card("a"), card("b"));
}

#[test]
fn exclusive_cards_are_the_gangs_or_the_single_pods() {
    let mut yaml = String::from(
        "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: g, namespace: \
         prod}\nspec: {minMember: 2}\n---\n",
    );
    let group = "labels: {scheduling.x-k8s.io/pod-group: g}, ";
    for (name, label) in [("a", group), ("b", group), ("c", "")] {
        write!(
            yaml,
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: prod, {label}annotations: \
             {{gangline.io/exclusive-cards: 'true'}}}}\nspec: {{containers: [{{name: m, resources: \
             {{limits: {{nvidia.com/gpu: 1}}}}}}]}}\n---\n"
        )
        .unwrap();
    }
    let world = world(&yaml);
    let word = |name: &str| pod(&world, name).template.cards.clone().unwrap().exclusive;
    assert_eq!(word("a"), "scheduler-plugins prod/g");
    assert_eq!(word("b"), word("a"));
    assert_eq!(word("c"), "pod prod/c");
}

/// A waiting pod with these labels and annotations that asks for a card.
fn waiting(name: &str, metadata: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, {metadata}}}\nspec: {{containers: \
         [{{name: m, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]}}\n---\n"
    )
}

#[test]
fn a_card_for_one_pod_only_cannot_be_a_share_groups() {
    let group = "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: g}\nspec: \
                 {minMember: 1}\n---\n";
    let annotations = "annotations: {gangline.io/exclusive-cards: 'true', gangline.io/share-group: s, \
                       gangline.io/share-memory: 1Gi}";
    let grouped = format!("labels: {{scheduling.x-k8s.io/pod-group: g}}, {annotations}");
    let world = read(&[group, &waiting("a", annotations), &waiting("b", &grouped)].concat());
    let complaints: Vec<String> = world.complaints.iter().map(ToString::to_string).collect();
    assert_eq!(
        complaints,
        [
            "dump, document 2: Pod default/a: metadata.annotations[gangline.io/exclusive-cards]: \
             true, with a share-group, on a pod without a gang; accepted: share-group without it, or \
             pods of one gang"
        ]
    );
    let problem = |name: &str| {
        pod(&world, name)
            .problem
            .as_ref()
            .map(|problem| &*problem.code)
    };
    assert_eq!((problem("a"), problem("b")), (Some("InvalidCards"), None));
}

#[test]
fn a_model_that_no_node_has_is_warned_of_once() {
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {nvidia.com/gpu.product: \
                NVIDIA-H100-80GB-HBM3}}\nstatus: {allocatable: {nvidia.com/gpu: 4}}\n---\n";
    let pods = [
        waiting(
            "a",
            "annotations: {gangline.io/card-models: 'H1000, h100-80gb'}",
        ),
        waiting("b", "annotations: {gangline.io/card-models: H1000}"),
        waiting(
            "c",
            "annotations: {gangline.io/card-models: NVIDIA-H100-80GB-HBM3}",
        ),
    ];
    let world = read(&[node, &pods.concat()].concat());
    let complaints: Vec<String> = world.complaints.iter().map(ToString::to_string).collect();
    assert_eq!(
        complaints,
        [
            "dump, document 2: Pod default/a: metadata.annotations[gangline.io/card-models]: no \
             node has cards of \"H1000\"; accepted: H100-80GB, NVIDIA-H100-80GB-HBM3"
        ]
    );
    assert!(pod(&world, "a").problem.is_none());
}

#[test]
fn a_profile_of_which_no_node_has_instances_is_warned_of_once() {
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {nvidia.com/gpu.product: \
                NVIDIA-A30}}\nstatus: {allocatable: {nvidia.com/gpu: 4, nvidia.com/mig-7g.7gb: 1}}\n\
                ---\n";
    let pod = |name: &str, profile: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{{name: m, \
             resources: {{limits: {{nvidia.com/mig-{profile}: 1}}}}}}]}}\n---\n"
        )
    };
    let pods = [
        pod("a", "9g.999gb"),
        pod("b", "9g.999gb"),
        pod("c", "1g.6gb"),
        pod("d", "7g.7gb"),
    ];
    let world = read(&[node, &pods.concat()].concat());
    let complaints: Vec<String> = world.complaints.iter().map(ToString::to_string).collect();
    assert_eq!(
        complaints,
        [
            "dump, document 2: Pod default/a: spec: no node has MIG instances of \"9g.999gb\"; accepted: \
             7g.7gb",
            "dump, document 4: Pod default/c: spec: no node has MIG instances of \"1g.6gb\"; accepted: \
             7g.7gb",
        ]
    );
}

#[test]
fn a_device_that_no_node_lists_is_warned_of_with_what_its_vendor_has() {
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: \
                {nvidia.com/gpu: 4, rdma/hca: 1}}\n---\n";
    let pod = |name: &str, limits: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{{name: m, \
             resources: {{limits: {{{limits}}}}}}}]}}\n---\n"
        )
    };
    let pods = [
        pod("a", "nvidia.com/gpus: 1"),
        pod("b", "amd.com/gpu: 1"),
        // A word of HAMi's that counts nothing.
        pod("c", "nvidia.com/gpu: 1, nvidia.com/priority: 1"),
    ];
    let world = read(&[node, &pods.concat()].concat());
    let complaints: Vec<String> = world.complaints.iter().map(ToString::to_string).collect();
    assert_eq!(
        complaints,
        [
            "dump, document 2: Pod default/a: spec: no node has nvidia.com/gpus; did you mean \
             nvidia.com/gpu?; accepted: nvidia.com/gpu, rdma/hca",
            "dump, document 3: Pod default/b: spec: no node has amd.com/gpu; accepted: \
             nvidia.com/gpu, rdma/hca",
        ]
    );
}
