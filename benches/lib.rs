//! Worlds that the benchmarks share: clusters of any size in a steady, busy state.
//!
//! Everything is a plain function of an index, so that each run measures the same work. A node has
//! 8 cards; racks of 25 nodes make blocks of 5 racks, blocks make zones of 20. Four nodes of ten
//! already run something, in patterns that leave a few dozen distinct states, as live clusters do.

use std::{collections::BTreeMap, sync::Arc};

use gangline::{
    Event, GangId, Scheduler, Verdict,
    cluster::{NodeCards, NodeSpec},
    engine::Config,
    gang::{
        Disruption, GangKey, GangSpec, Group, GroupKind, LossMode, PodPhase, PodSpec, Role,
        TimeoutPolicy, TopologyRule,
    },
    request::{CPU, CardRequest, MEMORY, Template},
    units::{Nanos, Uid},
};

pub mod replay;

/// Label of a zone: 2,500 nodes.
pub const ZONE: &str = "topology/zone";
/// Label of a block: 125 nodes.
pub const BLOCK: &str = "topology/block";
/// Label of a rack: 25 nodes.
pub const RACK: &str = "topology/rack";
/// The resource that counts cards.
pub const CARDS: &str = "nvidia.com/gpu";
/// Cards of a node.
pub const CARDS_A_NODE: u32 = 8;

const GIB: i64 = 1 << 30;

/// A node by its number.
pub fn node(index: u32) -> NodeSpec {
    let label = |key: &str, size: u32| (key.to_owned(), format!("{key}-{}", index / size));
    NodeSpec {
        name: node_name(index),
        labels: BTreeMap::from([
            label(ZONE, 2_500),
            label(BLOCK, 125),
            label(RACK, 25),
            ("kubernetes.io/hostname".into(), node_name(index)),
            ("kubernetes.io/arch".into(), "amd64".into()),
            ("node.kubernetes.io/instance-type".into(), "gpu-8".into()),
        ]),
        resources: BTreeMap::from([
            (CPU.into(), 192_000),
            (MEMORY.into(), 2_048 * GIB),
            ("ephemeral-storage".into(), 4_096 * GIB),
        ]),
        cards: vec![NodeCards {
            kind: CARDS.into(),
            count: CARDS_A_NODE,
            ..NodeCards::default()
        }],
        ..NodeSpec::default()
    }
}

/// Name of a node by its number.
pub fn node_name(index: u32) -> String {
    format!("node-{index:05}")
}

/// What a member asks for when it wants this many cards and its fair share of the rest.
pub fn template(cards: u32) -> Arc<Template> {
    let share = i64::from(cards.max(1));
    Arc::new(Template {
        namespace: "team".into(),
        resources: BTreeMap::from([
            (CPU.into(), 8_000 * share),
            (MEMORY.into(), 64 * GIB * share),
        ]),
        cards: (cards > 0).then(|| CardRequest::whole(CARDS, cards)),
        ..Template::default()
    })
}

/// A pod that waits, without a group.
pub fn pod(name: &str, template: &Arc<Template>) -> PodSpec {
    PodSpec {
        uid: Uid::from_text(name),
        namespace: template.namespace.clone(),
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

/// An engine that knows this many nodes, four of ten in use.
pub fn cluster(nodes: u32) -> Scheduler {
    let mut engine = Scheduler::new(Config {
        levels: vec![ZONE.into(), BLOCK.into(), RACK.into()],
        ..Config::default()
    });
    for index in 0..nodes {
        apply(&mut engine, Event::Node(node(index)));
    }
    let templates = [0, 1, 2, 4].map(template);
    for index in 0..nodes {
        for (place, kind) in usage(index).iter().enumerate() {
            let name = format!("running-{index}-{place}");
            apply(
                &mut engine,
                Event::Pod(PodSpec {
                    node: Some(node_name(index)),
                    phase: PodPhase::Running,
                    ..pod(&name, &templates[*kind])
                }),
            );
        }
    }
    engine
}

/// What runs on a node, as indexes of the templates for 0, 1, 2 and 4 cards.
fn usage(index: u32) -> &'static [usize] {
    // Multiplying spreads neighbours over the patterns; any odd constant would do.
    match (index.wrapping_mul(2_654_435_761) >> 16) % 20 {
        0 => &[1],
        1 => &[2],
        2 => &[3],
        3 => &[1, 1, 1],
        4 => &[2, 2, 2],
        5 => &[3, 2, 1, 1],
        6 => &[3, 0, 0],
        7 => &[1, 2, 0, 0, 0],
        _ => &[],
    }
}

/// Tells the engine something that it must accept.
///
/// # Panics
/// If the event is refused: the benchmark's world would not be what it says.
pub fn apply(engine: &mut Scheduler, event: Event) {
    let accepted = engine.apply(event);
    assert!(accepted.is_ok(), "{accepted:?}");
}

/// A gang that comes, is decided and goes again, against the same cluster each time.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The engine; public for what a benchmark wants to see of it.
    pub engine: Scheduler,
    gang: GangSpec,
    members: Vec<PodSpec>,
}

impl Arrival {
    /// A gang of `members` with 8 cards each, all needed, under this topology rule.
    pub fn new(engine: Scheduler, members: u32, topology: TopologyRule) -> Self {
        let (gang, members) = gang("train", members, topology);
        Self {
            engine,
            gang,
            members,
        }
    }

    /// The gang and its members appear.
    pub fn arrive(&mut self) {
        apply(&mut self.engine, Event::Gang(self.gang.clone()));
        for member in &self.members {
            apply(&mut self.engine, Event::Pod(member.clone()));
        }
    }

    /// One cycle. Returns what was decided about the gang and how many members it placed.
    pub fn decide(&mut self) -> Option<(Verdict, usize)> {
        let decision = self.engine.decide(Nanos::ZERO).first().copied()?;
        Some((decision.verdict, self.engine.placements(&decision).len()))
    }

    /// The gang and its members go, and what they held is free again.
    pub fn leave(&mut self) {
        for member in &self.members {
            apply(&mut self.engine, Event::PodGone { uid: member.uid });
        }
        let (key, uid) = (self.gang.key.clone(), self.gang.uid);
        apply(&mut self.engine, Event::GangGone { key, uid });
    }

    /// The gang, while it is there.
    pub fn gang(&self) -> Option<GangId> {
        self.engine.find("team", "train")
    }
}

/// A gang of `members` with 8 cards each, all needed, and its pods.
pub fn gang(name: &str, members: u32, topology: TopologyRule) -> (GangSpec, Vec<PodSpec>) {
    let key = GangKey {
        namespace: "team".into(),
        name: name.into(),
        source: "bench".into(),
    };
    let template = template(CARDS_A_NODE);
    let pods = (0..members).map(|index| PodSpec {
        gang: Some(key.clone()),
        ..pod(&format!("{name}-{index}"), &template)
    });
    let pods = pods.collect();
    let spec = GangSpec {
        uid: Uid::from_text(name),
        key,
        created: Nanos::ZERO,
        priority: 0,
        queue: String::new(),
        root: Group {
            name: "worker".into(),
            topology,
            kind: GroupKind::Role(Role {
                count: members,
                min: members,
                template: None,
            }),
        },
        schedule_timeout: None,
        on_timeout: TimeoutPolicy::default(),
        on_loss: LossMode::default(),
        started: false,
        disruption: Disruption::default(),
        scoring: None,
        problem: None,
    };
    (spec, pods)
}

/// "All in one domain of this level."
pub fn required(level: &str) -> TopologyRule {
    TopologyRule {
        required: Some(level.into()),
        preferred: None,
    }
}

/// "In as few domains of this level as possible."
pub fn preferred(level: &str) -> TopologyRule {
    TopologyRule {
        required: None,
        preferred: Some(level.into()),
    }
}
