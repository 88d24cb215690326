//! Volcano's groups as small clusters.

use gangline::{Config, Scheduler, Verdict, units::Nanos};

use crate::{
    intake::testing::{world, world_with},
    world::{Options, World},
};

fn group(spec: &str) -> String {
    format!(
        "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\n\
         metadata: {{name: g, namespace: ml}}\nspec: {{{spec}}}\n---\n"
    )
}

fn pod(name: &str, annotations: &str, labels: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  namespace: ml\n  \
         annotations: {{scheduling.k8s.io/group-name: g, {annotations}}}\n  \
         labels: {{{labels}}}\nspec: {{priority: 3}}\n---\n"
    )
}

fn hypernode(name: &str, tier: i32, members: &str) -> String {
    format!(
        "apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {{name: {name}}}\n\
         spec: {{tier: {tier}, tierName: t{tier}, members: [{members}]}}\n---\n"
    )
}

fn node(name: &str) -> String {
    format!("apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{n: {name}}}}}\n---\n")
}

fn exact(kind: &str, name: &str) -> String {
    format!("{{type: {kind}, selector: {{exactMatch: {{name: {name}}}}}}}")
}

/// Nodes a, b under rack r1; c under r2; r1 and r2 under spine s; d under nothing.
fn racks() -> String {
    [
        node("a"),
        node("b"),
        node("c"),
        node("d"),
        hypernode(
            "r1",
            1,
            "{type: Node, selector: {regexMatch: {pattern: '^[ab]$'}}}",
        ),
        hypernode(
            "r2",
            1,
            "{type: Node, selector: {labelMatch: {matchLabels: {n: c}}}}",
        ),
        hypernode(
            "s",
            2,
            &[exact("HyperNode", "r1"), exact("HyperNode", "r2")].join(", "),
        ),
    ]
    .concat()
}

fn labels(world: &World) -> Vec<String> {
    let tier = |node: &gangline::cluster::NodeSpec, tier: u32| {
        let label = format!("gangline.io/hypernode-tier-{tier}/t{tier}");
        node.labels.get(&label).cloned().unwrap_or("-".into())
    };
    world
        .nodes()
        .map(|node| format!("{} {} {}", node.name, tier(node, 2), tier(node, 1)))
        .collect()
}

#[test]
fn the_plain_group_is_one_leaf() {
    let text = group("minMember: 4, queue: research, minResources: {cpu: 4, nvidia.com/gpu: '4'}");
    let world = world(&[text, pod("p", "", "")].concat());
    assert_eq!(world.trees(), ["volcano/g: g>=4"]);
    assert_eq!(world.links(), ["p: volcano/g "]);
    assert_eq!(world.gang("g").queue, "research");
    assert_eq!(world.gang("g").priority, 3);
    assert_eq!(world.gang("g").schedule_timeout, None);
    assert!(world.complaints.is_empty());
}

#[test]
fn zero_and_absent_mean_no_minimum() {
    for spec in ["", "minMember: 0"] {
        assert_eq!(world(&group(spec)).trees(), ["volcano/g: g>=0"]);
    }
    assert_eq!(
        world(&group("minMember: -1")).trees(),
        ["volcano/g: g>=1 !InvalidMinimum"]
    );
}

#[test]
fn tasks_are_roles_that_all_need_their_minimum() {
    let pods = [
        pod("ps-0", "volcano.sh/task-spec: ps", ""),
        pod("w-0", "volcano.sh/task-spec: worker", ""),
        pod("x-0", "", "volcano.sh/task-spec: extra"),
        pod("y-0", "", ""),
    ]
    .concat();
    let tasks = "minTaskMember: {ps: 1, worker: 2}";
    let exact = world(&[group(&format!("minMember: 3, {tasks}")), pods.clone()].concat());
    assert_eq!(
        exact.trees(),
        ["volcano/g: podgroup/g[>=3: (no task)>=0, extra>=0, ps>=1, worker>=2]"]
    );
    assert_eq!(
        exact.links(),
        [
            "ps-0: volcano/g ps",
            "w-0: volcano/g worker",
            "x-0: volcano/g extra",
            "y-0: volcano/g (no task)",
        ]
    );
    let more = world(&[group(&format!("minMember: 5, {tasks}")), pods.clone()].concat());
    assert_eq!(
        more.trees(),
        ["volcano/g: podgroup/g[>=5: (no task)>=0, extra>=0, ps>=1, worker>=2]"]
    );
    let fewer = world(&[group(&format!("minMember: 2, {tasks}")), pods].concat());
    assert_eq!(fewer.trees(), ["volcano/g: g>=2"]);
    assert_eq!(fewer.complaint_lines().len(), 1);
    let negative = world(&group("minMember: 2, minTaskMember: {ps: -1}"));
    assert_eq!(
        negative.gang("g").problem.as_ref().unwrap().field,
        "spec.minTaskMember.ps"
    );
}

#[test]
fn tasks_without_a_minimum_may_stay_empty() {
    let member = |name: &str, task: &str| pod(name, &format!("volcano.sh/task-spec: {task}"), "");
    let verdict = |spec: &str, pods: &[String]| {
        let node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n\
                    status: {allocatable: {cpu: 2, pods: 2}}\n---\n";
        let mut engine = Scheduler::new(Config::default());
        for event in world(&[node.to_owned(), group(spec), pods.concat()].concat()).events {
            engine.apply(event).unwrap();
        }
        engine.decide(Nanos::ZERO);
        engine
            .gang(engine.find("ml", "g").unwrap())
            .unwrap()
            .verdict
    };
    let (a0, a1, b0) = (member("a-0", "a"), member("a-1", "a"), member("b-0", "b"));
    // Two places for three: the task without a minimum does without.
    let tasks = "minMember: 2, minTaskMember: {a: 2}";
    assert_eq!(
        verdict(tasks, &[a0.clone(), a1.clone(), b0]),
        Verdict::Placed
    );
    let tasks = "minMember: 2, minTaskMember: {a: 2, b: 0}";
    assert_eq!(verdict(tasks, &[a0, a1]), Verdict::Placed);
}

#[test]
fn sub_groups_are_roles_by_label_values_with_their_own_topology() {
    let policy = "minMember: 4, subGroupPolicy: [{name: stage, labelSelector: {matchLabels: \
                  {kind: w}}, matchLabelKeys: [stage], subGroupSize: 2, minSubGroups: 2, \
                  networkTopology: {highestTierAllowed: 1}}]";
    let member = |name: &str, stage: &str| pod(name, "", &format!("kind: w, stage: {stage}"));
    let pods = [
        member("w0", "a"),
        member("w1", "a"),
        member("w2", "b"),
        pod("driver", "", "kind: d"),
        pod("lost", "", "kind: w"),
    ]
    .concat();
    let world_of = |policy: &str| world(&[racks(), group(policy), pods.clone()].concat());
    let world = world_of(policy);
    let tier = "@gangline.io/hypernode-tier-1/t1";
    assert_eq!(
        world.trees(),
        [format!(
            "volcano/g: podgroup/g[>=4: policy/stage[2 of stage/a>=2{tier}, stage/b>=2{tier}], \
         (no sub-group)>=0]"
        )]
    );
    assert_eq!(
        world.links(),
        [
            "driver: volcano/g (no sub-group)",
            "lost: volcano/g (no sub-group)",
            "w0: volcano/g stage/a",
            "w1: volcano/g stage/a",
            "w2: volcano/g stage/b",
        ]
    );
    // A sub-group that has no pods yet is waited for.
    let third = world_of(&policy.replace("minSubGroups: 2", "minSubGroups: 3"));
    assert!(
        third.trees()[0].contains("stage[3 of"),
        "{:?}",
        third.trees()
    );
    assert!(
        third.trees()[0].contains("stage/(missing)>=2"),
        "{:?}",
        third.trees()
    );
    let absurd = world_of(&policy.replace("minSubGroups: 2", "minSubGroups: 2147483647"));
    assert!(
        absurd.trees()[0].contains("stage/(missing)>="),
        "{:?}",
        absurd.trees()
    );
    let bad = world_of(&policy.replace("subGroupSize: 2", "subGroupSize: 0"));
    assert_eq!(
        bad.gang("g").problem.as_ref().unwrap().code,
        "InvalidMinimum"
    );
}

#[test]
fn hypernodes_become_levels_from_coarse_to_fine() {
    let world = world(&racks());
    assert_eq!(labels(&world), ["a s r1", "b s r1", "c s r2", "d - -"]);
    assert_eq!(
        world.levels,
        [
            "gangline.io/hypernode-tier-2/t2",
            "gangline.io/hypernode-tier-1/t1"
        ]
    );
    assert!(world.complaints.is_empty(), "{:?}", world.complaint_lines());
}

#[test]
fn a_missing_tier_is_filled_from_below() {
    let text = racks().replace("exactMatch: {name: r2}", "exactMatch: {name: elsewhere}");
    assert_eq!(
        labels(&world(&text)),
        ["a s r1", "b s r1", "c r2 r2", "d - -"]
    );
}

#[test]
fn bad_hypernodes_are_left_out() {
    let circle = [
        hypernode(
            "x",
            1,
            &[exact("HyperNode", "y"), exact("Node", "a")].join(", "),
        ),
        hypernode("y", 2, &exact("HyperNode", "x")),
        hypernode("z", 3, &exact("HyperNode", "z")),
    ]
    .concat();
    let with_circle = world(&[racks(), circle].concat());
    assert_eq!(labels(&with_circle), labels(&world(&racks())));
    let lines = with_circle.complaint_lines();
    assert_eq!(lines.len(), 3);
    assert!(
        lines[0].starts_with("dump, document 8: HyperNode x: spec.members: "),
        "{lines:?}"
    );

    for (members, said) in [
        ("{type: Node, selector: {}}", "exactly one of"),
        (
            "{type: Node, selector: {regexMatch: {pattern: '('}}}",
            "regular expression",
        ),
        (
            "{type: Rack, selector: {exactMatch: {name: a}}}",
            "accepted: Node, HyperNode",
        ),
    ] {
        let world = world(&hypernode("h", 1, members));
        assert_eq!(world.levels, [""; 0]);
        let lines = world.complaint_lines();
        assert!(lines.len() == 1 && lines[0].contains(said), "{lines:?}");
    }
    let shared = [racks(), hypernode("r3", 1, &exact("Node", "a"))].concat();
    let shared = world(&shared);
    assert_eq!(labels(&shared)[0], "a s r1");
    assert!(shared.complaint_lines()[0].contains("shares a node with r1"));
    let negative = world(&hypernode("h", -1, ""));
    assert!(negative.complaint_lines()[0].contains("spec.tier: -1"));
}

#[test]
fn tiers_are_found_by_number_and_name_and_unknown_ones_are_named() {
    let rule = |topology: &str| {
        let text = [racks(), group(&format!("networkTopology: {{{topology}}}"))].concat();
        let world = world(&text);
        match &world.gang("g").problem {
            Some(problem) => format!("{}: {}: {}", problem.code, problem.field, problem.message),
            None => world.trees()[0].clone(),
        }
    };
    let required = |tier: u32| format!("volcano/g: g>=0@gangline.io/hypernode-tier-{tier}/t{tier}");
    let preferred =
        |tier: u32| format!("volcano/g: g>=0~gangline.io/hypernode-tier-{tier}/t{tier}");
    assert_eq!(rule("highestTierAllowed: 1"), required(1));
    assert_eq!(rule("mode: hard, highestTierAllowed: 2"), required(2));
    assert_eq!(rule("highestTierName: t2"), required(2));
    assert_eq!(rule("mode: soft, highestTierAllowed: 2"), preferred(2));
    assert_eq!(rule("mode: soft"), preferred(1));
    // Above all tiers there is nothing to cross; without a tier there is no limit.
    assert_eq!(rule("highestTierAllowed: 3"), "volcano/g: g>=0");
    assert_eq!(rule("mode: hard"), "volcano/g: g>=0");
    let unknown = "UnknownTier: spec.networkTopology.";
    assert_eq!(
        rule("highestTierAllowed: 0"),
        format!("{unknown}highestTierAllowed: 0; known tiers: 1 (t1), 2 (t2)")
    );
    assert_eq!(
        rule("highestTierName: Rack"),
        format!("{unknown}highestTierName: Rack; known tiers: 1 (t1), 2 (t2)")
    );
    assert!(rule("highestTierAllowed: 1, highestTierName: t1").starts_with("InvalidTopology"));
    assert!(rule("mode: strict").starts_with("InvalidTopology: spec.networkTopology.mode: strict"));
    let none = world(&group("networkTopology: {highestTierAllowed: 1}"));
    assert!(
        none.gang("g")
            .problem
            .as_ref()
            .unwrap()
            .message
            .contains("no HyperNode")
    );
}

#[test]
fn pods_without_a_group_get_the_one_of_their_owner() {
    let owned = |name: &str, annotations: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  namespace: ml\n  \
             annotations: {{{annotations}}}\n  ownerReferences: [{{apiVersion: apps/v1, kind: \
             StatefulSet, name: s, uid: U-1, controller: true}}]\n\
             spec: {{priority: 1, schedulerName: volcano}}\n---\n"
        )
    };
    let set = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s, namespace: ml, \
               annotations: {scheduling.volcano.sh/group-min-member: '2'}}\n---\n";
    let pods = [
        owned("s-0", ""),
        owned("s-1", "scheduling.volcano.sh/queue-name: q"),
    ]
    .concat();
    let plain = world(&pods);
    assert_eq!(plain.links(), ["s-0: alone", "s-1: alone"]);
    assert_eq!(plain.gangs().count(), 0);
    let grouped = world(&[&pods, set].concat());
    assert_eq!(grouped.trees(), ["volcano/podgroup-u-1: podgroup-u-1>=2"]);
    assert_eq!(
        grouped.links(),
        ["s-0: volcano/podgroup-u-1 ", "s-1: volcano/podgroup-u-1 "]
    );
    let near = owned("s-0", "volcano.sh/network-topology-highest-tier: '1'");
    let near = world(&[racks(), near].concat());
    assert_eq!(
        near.trees(),
        ["volcano/podgroup-u-1: podgroup-u-1>=1@gangline.io/hypernode-tier-1/t1"]
    );
    let bare = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {schedulerName: volcano}\n";
    assert_eq!(world(bare).links(), ["p: alone"]);
}

#[test]
fn a_group_that_is_not_there_stays_named() {
    let world = world(&pod("p", "", ""));
    assert_eq!(world.links(), ["p: volcano/g "]);
    assert_eq!(world.gangs().count(), 0);
}

#[test]
fn a_pod_that_names_two_groups_is_refused_and_told_both() {
    let text = pod("p", "", "scheduling.x-k8s.io/pod-group: other");
    let world = world(&[group("minMember: 1"), text].concat());
    let problem = world.pod("p").problem.as_ref().expect("a problem");
    assert_eq!(problem.code, "AmbiguousGroup");
    assert!(
        problem
            .message
            .contains("volcano group g (metadata.annotations[")
    );
    assert!(
        problem
            .message
            .contains("scheduler-plugins group other (metadata.labels[")
    );
    assert_eq!(world.links(), ["p: alone"]);
    assert_eq!(world.complaint_lines().len(), 1);
}

#[test]
fn a_manifest_changes_a_group_but_not_its_age() {
    let dump = group("minMember: 4").replace(
        "namespace: ml}",
        "namespace: ml, uid: u-9, creationTimestamp: 2026-01-01T00:00:00Z}",
    );
    let world = world_with(&dump, &group("minMember: 2"), &Options::default());
    let before = world_with(&dump, "", &Options::default());
    assert_eq!(world.trees(), ["volcano/g: g>=2"]);
    assert_eq!(world.gang("g").uid, before.gang("g").uid);
    assert_eq!(world.gang("g").created, before.gang("g").created);
    assert!(world.gang("g").created.0 > 0);
}
