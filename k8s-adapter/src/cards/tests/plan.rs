//! Nodes and pods together: what is asked for meets what there is.

use std::fmt::Write as _;

use crate::{
    intake::testing::world,
    output::{Report, text},
};

/// Names of the pods that get a place, in the order of their names. They come one after the other.
fn placed(node: &str, pods: &[(&str, &str, &str)]) -> Vec<String> {
    let mut yaml = format!("apiVersion: v1\nkind: Node\n{node}\n");
    for (second, (name, limits, annotations)) in pods.iter().enumerate() {
        write!(
            yaml,
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name},
               creationTimestamp: '2026-01-01T00:00:{second:02}Z', annotations: {{{annotations}}}}}\n\
             spec: {{containers: [{{name: m, resources: {{limits: {{{limits}}}}}}}]}}\n"
        )
        .unwrap();
    }
    let world = world(&yaml);
    assert_eq!(world.complaints, [], "{yaml}");
    let mut scheduler = world.engine();
    while !scheduler.decide(world.now).is_empty() {}
    scheduler.check().unwrap();
    let report = Report::new(&scheduler, scheduler.gangs(), Vec::new(), || ());
    text::plan(&report, false, false);
    let mut placed = Vec::new();
    for gang in scheduler.gangs() {
        let members = scheduler.gang(gang).unwrap().members;
        let members = members.iter().filter(|member| member.node.is_some());
        placed.extend(members.map(|member| member.name.to_owned()));
    }
    placed.sort();
    placed
}

#[test]
fn slices_of_unknown_cards_are_given_out_by_their_number() {
    let node = "
metadata: {name: n, labels: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB}}
status: {allocatable: {nvidia.com/gpu: 0, nvidia.com/mig-1g.5gb: 2}}";
    let one = "nvidia.com/mig-1g.5gb: 1";
    let pods = [
        ("a", one, ""),
        ("b", one, ""),
        ("c", one, ""),
        ("d", "nvidia.com/gpu: 1", ""),
    ];
    assert_eq!(placed(node, &pods), ["a", "b"]);
    // An unknown product has slices all the same.
    let unknown = node.replace("NVIDIA-A100-SXM4-40GB", "NVIDIA-Z900");
    assert_eq!(placed(&unknown, &pods), ["a", "b"]);
    // 4 GiB and a context fit in them.
    let pods = [
        ("a", "", "gangline.io/slice: 4Gi"),
        ("b", "", "gangline.io/slice: 5Gi"),
    ];
    assert_eq!(placed(node, &pods), ["a"]);
}

#[test]
fn halves_of_four_cards_are_eight() {
    let node = "
metadata: {name: n, labels: {kai.scheduler/node-pool: a, nvidia.com/gpu.memory: '40960'}}
status: {allocatable: {nvidia.com/gpu: 4}}";
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    let pods = names.map(|name| (name, "", "gpu-fraction: '0.5'"));
    assert_eq!(placed(node, &pods).len(), 8);
}

#[test]
fn hami_shares_fill_cards_by_memory() {
    let node = "
metadata: {name: n, annotations: {hami.io/node-nvidia-register: '[{\"devmem\": 24576, \"type\": \"A10\",
  \"health\": true}]'}}
status: {allocatable: {nvidia.com/gpu: 10}}";
    let half = "nvidia.com/gpu: 1, nvidia.com/gpumem: 12288";
    let pods = [("a", half, ""), ("b", half, ""), ("c", half, "")];
    assert_eq!(placed(node, &pods), ["a", "b"]);
}

#[test]
fn replicas_of_two_cards_are_told_apart() {
    let node = "
metadata: {name: n, labels: {nvidia.com/gpu.count: '2', nvidia.com/gpu.replicas: '2'}}
status: {allocatable: {nvidia.com/gpu.shared: 4}}";
    let two = "nvidia.com/gpu.shared: 2";
    let distinct = "gangline.io/cards: distinct";
    let pods = [
        ("a", two, distinct),
        ("b", two, distinct),
        ("c", "nvidia.com/gpu.shared: 1", ""),
    ];
    assert_eq!(placed(node, &pods), ["a", "b"]);
}

#[test]
fn neighbours_on_a_chain_of_pairs_are_found() {
    let node = "
metadata: {name: n, annotations: {gangline.io/links: 'X NV4 SYS SYS; NV4 X SYS SYS; SYS SYS X NV4; SYS
  SYS NV4 X'}}
status: {allocatable: {nvidia.com/gpu: 4}}";
    let near = "gangline.io/card-near: nvlink-island";
    let pods = [
        ("a", "nvidia.com/gpu: 2", near),
        ("b", "nvidia.com/gpu: 3", near),
    ];
    assert_eq!(placed(node, &pods), ["a"]);
}

/// Why a pod with these limits waits on a cluster of this node, and what would help.
fn why(node: &str, limits: &str) -> (String, Vec<String>) {
    let world = world(&format!(
        "apiVersion: v1\nkind: Node\n{node}\n---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\n\
         spec: {{containers: [{{name: m, resources: {{limits: {{{limits}}}}}}}]}}\n"
    ));
    let mut scheduler = world.engine();
    while !scheduler.decide(world.now).is_empty() {}
    let report = Report::new(&scheduler, scheduler.gangs(), Vec::new(), || ());
    text::plan(&report, false, false);
    let gang = &report.gangs[0];
    let reason = gang.reason.as_ref().map(|reason| reason.message.clone());
    let helps = gang.counterfactuals.iter();
    let helps = helps.map(|change| change.message.clone());
    (reason.unwrap_or_default(), helps.collect())
}

#[test]
fn cards_of_which_none_is_offered_are_a_reason() {
    let node = |label: &str| {
        format!(
            "metadata: {{name: n, labels: {{{label}}}}}\n\
             status: {{capacity: {{nvidia.com/gpu: 8}}, allocatable: {{nvidia.com/gpu: 0}}}}"
        )
    };
    let (reason, helps) = why(&node(""), "nvidia.com/gpu: 1");
    assert!(reason.contains("(8 of 8 are not allocatable)"), "{reason}");
    assert_eq!(
        helps,
        [
            "1 more GPU of node n becomes allocatable",
            "1 more GPU appears on a new node"
        ]
    );
    let changing = node("nvidia.com/mig.config.state: pending");
    for limits in ["nvidia.com/gpu: 1", "nvidia.com/mig-1g.10gb: 1"] {
        let (reason, helps) = why(&changing, limits);
        assert!(reason.contains("MIG layout is being changed"), "{reason}");
        let elsewhere = |help: &String| help.ends_with("on a new node");
        assert!(helps.iter().all(elsewhere), "{helps:?}");
    }
}

#[test]
fn a_card_that_is_not_like_the_others_needs_no_repair() {
    let node = "
metadata: {name: n, annotations: {hami.io/node-nvidia-register: '[
  {\"devmem\": 24576, \"type\": \"A10\", \"health\": true, \"count\": 2},
  {\"devmem\": 16384, \"type\": \"T4\", \"health\": true, \"count\": 1}]'}}
status: {allocatable: {nvidia.com/gpu: 3}}";
    let (reason, helps) = why(node, "nvidia.com/gpu: 2");
    assert!(
        reason.contains("not used as they are described"),
        "{reason}"
    );
    assert!(
        helps.iter().all(|help| !help.contains("healthy")),
        "{helps:?}"
    );
}

/// Number and kind of pods do not matter for how many cards there can be.
#[test]
fn four_thousand_million_cards_are_no_panic() {
    let node = "metadata: {name: n}\nstatus: {allocatable: {nvidia.com/gpu: 4294967295}}\n---\n\
                apiVersion: v1\nkind: Node\nmetadata: {name: m}\n\
                status: {allocatable: {nvidia.com/gpu: 4294967295}}";
    assert_eq!(why(node, "nvidia.com/gpu: 1").0, "");
}
