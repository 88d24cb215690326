//! Small worlds that read like sentences.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses its own part"
)]

pub mod cards;
pub mod random;
pub mod shrink;

use std::{collections::BTreeMap, sync::Arc};

use gangline::{
    cluster::{NodeCards, NodeSpec},
    engine::{Event, Scheduler, Verdict},
    gang::{
        Disruption, GangKey, GangSpec, Group, GroupKind, LossMode, PodPhase, PodSpec, Role,
        TimeoutPolicy, TopologyRule,
    },
    request::{CardRequest, Template},
    units::{Nanos, Uid},
};

pub const GPU: &str = "nvidia.com/gpu";

/// A node with cards, 64 cores, 512 GiB and labels written `key=value`.
pub fn node(name: &str, cards: u32, labels: &[&str]) -> NodeSpec {
    let labels = labels.iter().filter_map(|label| label.split_once('='));
    NodeSpec {
        name: name.into(),
        labels: labels
            .map(|(key, value)| (key.into(), value.into()))
            .collect(),
        resources: BTreeMap::from([("cpu".into(), 64_000), ("memory".into(), 512 << 30)]),
        cards: if cards == 0 {
            vec![]
        } else {
            vec![NodeCards {
                kind: GPU.into(),
                count: cards,
                ..NodeCards::default()
            }]
        },
        ..NodeSpec::default()
    }
}

/// A template that wants cards and thousandths of a core.
pub fn template(cards: u32, milli_cpu: i64) -> Template {
    Template {
        namespace: "default".into(),
        resources: BTreeMap::from([("cpu".into(), milli_cpu)]),
        cards: (cards > 0).then(|| CardRequest::whole(GPU, cards)),
        ..Template::default()
    }
}

pub fn key(name: &str) -> GangKey {
    GangKey {
        namespace: "default".into(),
        name: name.into(),
        source: "test".into(),
    }
}

pub fn role(name: &str, count: u32, min: u32) -> Group {
    Group {
        name: name.into(),
        kind: GroupKind::Role(Role {
            count,
            min,
            template: None,
        }),
        ..Group::default()
    }
}

/// A group with one role.
pub fn gang(name: &str, min: u32) -> GangSpec {
    gang_of(name, role("members", 0, min))
}

pub fn gang_of(name: &str, root: Group) -> GangSpec {
    GangSpec {
        uid: Uid::from_text(&format!("gang/{name}")),
        key: key(name),
        created: Nanos::ZERO,
        priority: 0,
        queue: String::new(),
        root,
        schedule_timeout: None,
        on_timeout: TimeoutPolicy::default(),
        on_loss: LossMode::default(),
        started: false,
        disruption: Disruption::default(),
        scoring: None,
        problem: None,
    }
}

pub fn required(mut group: Group, level: &str) -> Group {
    group.topology = TopologyRule {
        required: Some(level.into()),
        ..group.topology
    };
    group
}

pub fn preferred(mut group: Group, level: &str) -> Group {
    group.topology = TopologyRule {
        preferred: Some(level.into()),
        ..group.topology
    };
    group
}

/// A pod without a group.
pub fn pod(name: &str, template: &Arc<Template>) -> PodSpec {
    PodSpec {
        uid: Uid::from_text(&format!("pod/{name}")),
        namespace: "default".into(),
        name: name.into(),
        gang: None,
        role: String::new(),
        template: template.clone(),
        node: None,
        devices: None,
        phase: PodPhase::Pending,
        created: Nanos::ZERO,
        started: None,
        priority: 0,
        gated: false,
        terminating: false,
        foreign: false,
        nominated: None,
        images: [].into(),
        problem: None,
    }
}

pub fn member(gang: &str, name: &str, template: &Arc<Template>) -> PodSpec {
    PodSpec {
        gang: Some(key(gang)),
        ..pod(name, template)
    }
}

pub fn apply(engine: &mut Scheduler, events: impl IntoIterator<Item = Event>) {
    for event in events {
        engine.apply(event).expect("a legal event");
    }
    engine.check().expect("a consistent engine");
}

/// Submits a group and its members `name-0..`.
pub fn submit(engine: &mut Scheduler, spec: GangSpec, count: u32, template: &Arc<Template>) {
    let name = spec.key.name.clone();
    apply(engine, [Event::Gang(spec)]);
    let pods = (0..count).map(|i| Event::Pod(member(&name, &format!("{name}-{i}"), template)));
    apply(engine, pods.collect::<Vec<_>>());
}

/// Decides and confirms every bind; gives (pod uid, node name) of what was placed.
pub fn cycle(engine: &mut Scheduler, now: Nanos) -> Vec<(Uid, String)> {
    let placed = decide(engine, now);
    confirm(engine, &placed);
    placed
}

/// Decides without confirming.
pub fn decide(engine: &mut Scheduler, now: Nanos) -> Vec<(Uid, String)> {
    let decisions = engine.decide(now).to_vec();
    engine.check().expect("a consistent engine");
    let placed = decisions
        .iter()
        .filter(|decision| decision.verdict == Verdict::Placed);
    placed
        .flat_map(|decision| engine.placements(decision))
        .map(|place| (place.pod, engine.node_name(place.node).to_owned()))
        .collect()
}

/// Reports binds as done.
pub fn confirm(engine: &mut Scheduler, placed: &[(Uid, String)]) {
    let mut bound = Vec::new();
    for pod in engine.snapshot().pods {
        if let Some((_, node)) = placed.iter().find(|(uid, _)| *uid == pod.spec.uid) {
            let spec = PodSpec {
                node: Some(node.clone()),
                phase: PodPhase::Running,
                ..pod.spec
            };
            bound.push(Event::Pod(spec));
        }
    }
    apply(engine, bound);
}

pub fn verdict(engine: &Scheduler, name: &str) -> Verdict {
    let id = engine.find("default", name).expect("a gang of that name");
    engine.gang(id).expect("a gang").verdict
}

/// How many members of a gang have a node, planned or bound.
pub fn placed_count(engine: &Scheduler, name: &str) -> usize {
    let id = engine.find("default", name).expect("a gang of that name");
    engine
        .gang(id)
        .expect("a gang")
        .members
        .iter()
        .filter(|member| member.node.is_some())
        .count()
}

/// The nodes of a gang's members, sorted.
pub fn nodes_of(engine: &Scheduler, name: &str) -> Vec<String> {
    let id = engine.find("default", name).expect("a gang of that name");
    let view = engine.gang(id).expect("a gang");
    let nodes = view.members.iter().filter_map(|member| member.node);
    let mut nodes: Vec<String> = nodes
        .map(|node| engine.node_name(node).to_owned())
        .collect();
    nodes.sort();
    nodes
}

pub fn secs(seconds: u64) -> Nanos {
    Nanos::from_secs(seconds)
}
