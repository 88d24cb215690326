//! `best_node` against two other ways to the same answer: an engine built anew from what is there,
//! and a template whose rules make the search look at every node instead of at classes.

use std::{collections::BTreeMap, sync::Arc};

use gangline::{
    Event, Scheduler,
    cluster::{NodeCards, NodeSpec},
    engine::Config,
    gang::{PodPhase, PodSpec, ScoringRule},
    request::{CPU, CardRequest, HostPort, MEMORY, Protocol, Template},
    units::{Nanos, Uid},
};

const NODES: u64 = 12;
const PODS: u64 = 40;

/// A small generator of numbers that look random, the same on every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn node(index: u64, kind: u64, unschedulable: bool) -> NodeSpec {
    NodeSpec {
        name: format!("node-{index}"),
        labels: [("rack".to_owned(), format!("rack-{}", index % 3))].into(),
        unschedulable,
        resources: [
            (CPU.to_owned(), 16_000 + 8_000 * (kind as i64)),
            (MEMORY.to_owned(), 1 << 36),
        ]
        .into(),
        cards: vec![NodeCards {
            kind: "gpu".into(),
            count: 4 + 2 * (kind as u32),
            ..NodeCards::default()
        }],
        ..NodeSpec::default()
    }
}

fn template(cards: u32, cpu: i64) -> Template {
    Template {
        namespace: "team".into(),
        resources: BTreeMap::from([(CPU.to_owned(), cpu)]),
        cards: (cards > 0).then(|| CardRequest::whole("gpu", cards)),
        ..Template::default()
    }
}

fn pod(index: u64, template: &Arc<Template>, node: Option<String>) -> PodSpec {
    PodSpec {
        uid: Uid(u128::from(index) + 1),
        namespace: "team".into(),
        name: format!("pod-{index}"),
        gang: None,
        role: String::new(),
        template: template.clone(),
        phase: if node.is_some() {
            PodPhase::Running
        } else {
            PodPhase::Pending
        },
        node,
        devices: None,
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

fn engine(scoring: ScoringRule) -> Scheduler {
    Scheduler::new(Config {
        levels: vec!["rack".into()],
        scoring,
        ..Config::default()
    })
}

fn apply(engine: &mut Scheduler, event: Event) {
    assert_eq!(engine.apply(event), Ok(()));
}

/// Where a lone pod of this template goes, by a whole cycle.
fn decided(engine: &mut Scheduler, template: &Arc<Template>) -> Option<String> {
    apply(engine, Event::Pod(pod(PODS + 1, template, None)));
    let decision = *engine.decide(Nanos::ZERO).first()?;
    let placement = *engine.placements(&decision).first()?;
    Some(engine.node_name(placement.node).to_owned())
}

#[test]
fn the_best_node_is_the_one_that_a_cycle_and_a_look_at_every_node_find() {
    let shapes = [
        (0, 1_000),
        (1, 2_000),
        (2, 500),
        (4, 4_000),
        (7, 100),
        (0, 0),
    ];
    let asked: Vec<Arc<Template>> = shapes.iter().map(|&(c, m)| template(c, m).into()).collect();
    // The port is nobody else's, so it changes nothing but the way to the answer.
    let by_node: Vec<Arc<Template>> = shapes
        .iter()
        .map(|&(cards, cpu)| {
            let mut template = template(cards, cpu);
            template.host_ports.push(HostPort {
                port: 4_711,
                protocol: Protocol::Tcp,
                address: String::new(),
            });
            template.into()
        })
        .collect();
    let mut found = 0;
    for (seed, rule) in [
        (1, ScoringRule::Binpack),
        (2, ScoringRule::Spread),
        (3, ScoringRule::Binpack),
    ] {
        let mut numbers = Numbers(seed);
        let mut live = engine(rule);
        let mut nodes: BTreeMap<u64, NodeSpec> = BTreeMap::new();
        let mut pods: BTreeMap<u64, PodSpec> = BTreeMap::new();
        for _ in 0..400 {
            match numbers.below(8) {
                0 | 1 => {
                    let index = numbers.below(NODES);
                    let spec = node(index, numbers.below(2), numbers.below(4) == 0);
                    nodes.insert(index, spec.clone());
                    apply(&mut live, Event::Node(spec));
                }
                2 if numbers.below(4) == 0 => {
                    let index = numbers.below(NODES);
                    nodes.remove(&index);
                    let name = format!("node-{index}");
                    apply(&mut live, Event::NodeGone { name });
                }
                2..=5 => {
                    let (index, on) = (numbers.below(PODS), numbers.below(NODES));
                    let template = &asked[numbers.below(4) as usize];
                    let spec = pod(index, template, Some(format!("node-{on}")));
                    pods.insert(index, spec.clone());
                    apply(&mut live, Event::Pod(spec));
                }
                _ => {
                    let index = numbers.below(PODS);
                    if let Some(spec) = pods.remove(&index) {
                        apply(&mut live, Event::PodGone { uid: spec.uid });
                    }
                }
            }
            let kind = numbers.below(shapes.len() as u64) as usize;
            let name = |engine: &Scheduler, node| Some(engine.node_name(node?).to_owned());
            let node = live.best_node(&asked[kind]);
            let best = name(&live, node);
            let node = live.best_node(&by_node[kind]);
            assert_eq!(best, name(&live, node), "by classes, by nodes");
            let mut anew = engine(rule);
            for spec in nodes.values() {
                apply(&mut anew, Event::Node(spec.clone()));
            }
            for spec in pods.values() {
                apply(&mut anew, Event::Pod(spec.clone()));
            }
            assert_eq!(
                best,
                decided(&mut anew, &asked[kind]),
                "now, from the start"
            );
            found += u32::from(best.is_some());
        }
    }
    assert!(
        (400..1_200).contains(&found),
        "{found} of 1200 found a node: the worlds test little"
    );
}
