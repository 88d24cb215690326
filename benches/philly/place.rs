//! Where the members of a job go: rules to compare with, and the engine.

use std::sync::Arc;

use gangline::{
    Event, Scheduler,
    engine::{Config, UsualWork},
    gang::{PodPhase, PodSpec, ScoringRule},
    request::Template,
};
use gangline_benches::{CARDS_A_NODE, apply, node, node_name, pod, template};

/// How a node is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// The emptiest node.
    Spread,
    /// The first node.
    FirstFit,
    /// The fullest node.
    BestFit,
    /// The engine's choice by its usual rule.
    Engine,
    /// The engine's choice by bid prices for the members of all jobs of the trace.
    Priced,
    /// Cards have no place: any free ones will do. A reference that no placement can keep to.
    Pool,
}

pub(crate) const POLICIES: [Policy; 6] = [
    Policy::Spread,
    Policy::FirstFit,
    Policy::BestFit,
    Policy::Engine,
    Policy::Priced,
    Policy::Pool,
];

impl Policy {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Spread => "spread",
            Self::FirstFit => "first-fit",
            Self::BestFit => "best-fit",
            Self::Engine => "ours",
            Self::Priced => "ours, bid prices",
            Self::Pool => "pool (reference)",
        }
    }
}

/// Parts of a job: so many cards on that node.
pub(crate) type Parts = Vec<(usize, u32)>;

/// Free cards of each node.
#[derive(Clone, Debug)]
pub(crate) struct Free {
    pub(crate) nodes: Vec<u32>,
    pub(crate) cards: u32,
    /// By number of free cards: how many nodes have so many.
    counts: [u32; CARDS_A_NODE as usize + 1],
    /// Cards are one pool.
    pool: bool,
}

impl Free {
    pub(crate) fn new(nodes: u32, pool: bool) -> Self {
        let mut counts = [0; CARDS_A_NODE as usize + 1];
        counts[CARDS_A_NODE as usize] = nodes;
        Self {
            nodes: vec![CARDS_A_NODE; nodes as usize],
            cards: nodes * CARDS_A_NODE,
            counts,
            pool,
        }
    }

    /// Whether a job fits: whole nodes, and one node for what is left.
    pub(crate) fn fits(&self, size: u32) -> bool {
        if self.pool {
            return self.cards >= size;
        }
        let (whole, rest) = (size / CARDS_A_NODE, size % CARDS_A_NODE);
        let idle = self.counts[CARDS_A_NODE as usize];
        let partly = rest > 0
            && self.counts[rest as usize..CARDS_A_NODE as usize]
                .iter()
                .any(|&n| n > 0);
        idle >= whole + u32::from(rest > 0 && !partly)
    }

    pub(crate) fn change(&mut self, parts: &Parts, taken: bool) {
        for &(node, cards) in parts {
            if self.pool {
                self.cards = if taken {
                    self.cards - cards
                } else {
                    self.cards + cards
                };
                continue;
            }
            let free = &mut self.nodes[node];
            self.counts[*free as usize] -= 1;
            if taken {
                *free -= cards;
                self.cards -= cards;
            } else {
                *free += cards;
                self.cards += cards;
            }
            self.counts[*free as usize] += 1;
        }
    }
}

/// Chooses places and keeps what the engine knows up to date.
pub(crate) struct Placer {
    policy: Policy,
    engine: Option<Engine>,
}

struct Engine {
    scheduler: Scheduler,
    templates: Vec<Arc<Template>>,
}

impl Placer {
    /// `members`: by number of cards, how many members of jobs there are.
    pub(crate) fn new(
        policy: Policy,
        nodes: u32,
        members: &[u32; CARDS_A_NODE as usize + 1],
    ) -> Self {
        let scoring = match policy {
            Policy::Engine => Some(ScoringRule::Binpack),
            Policy::Priced => Some(ScoringRule::BidPrice),
            _ => None,
        };
        let usual = (1_u32..)
            .zip(&members[1..])
            .filter(|(_, weight)| **weight > 0);
        let usual = usual.map(|(cards, &weight)| UsualWork {
            template: template(cards),
            weight,
        });
        let engine = scoring.map(|scoring| {
            let mut scheduler = Scheduler::new(Config {
                scoring,
                usual: usual.collect(),
                ..Config::default()
            });
            (0..nodes).for_each(|index| apply(&mut scheduler, Event::Node(node(index))));
            Engine {
                scheduler,
                templates: (0..=CARDS_A_NODE).map(template).collect(),
            }
        });
        Self { policy, engine }
    }

    /// Places for a job that fits. Whole nodes first, then what is left.
    pub(crate) fn place(&mut self, job: usize, size: u32, free: &Free) -> Parts {
        if self.policy == Policy::Pool {
            return vec![(0, size)];
        }
        let (whole, rest) = (size / CARDS_A_NODE, size % CARDS_A_NODE);
        let cards = (0..whole)
            .map(|_| CARDS_A_NODE)
            .chain((rest > 0).then_some(rest));
        let mut parts: Parts = Vec::new();
        for cards in cards {
            let node = match &mut self.engine {
                Some(engine) => engine.place(job, parts.len(), cards),
                None => self.policy.choose(cards, &parts, free),
            };
            parts.push((node.expect("it fits"), cards));
        }
        parts
    }

    /// A job is over.
    pub(crate) fn end(&mut self, job: usize, parts: &Parts) {
        if let Some(engine) = &mut self.engine {
            for part in 0..parts.len() {
                let uid = engine.pod(job, part, 0).uid;
                apply(&mut engine.scheduler, Event::PodGone { uid });
            }
        }
    }
}

impl Policy {
    fn choose(self, cards: u32, parts: &Parts, free: &Free) -> Option<usize> {
        let nodes = free.nodes.iter().enumerate();
        let fitting = nodes.filter(|&(node, &free)| {
            free >= cards && parts.iter().all(|&(taken, _)| taken != node)
        });
        let key = |&(node, &free): &(usize, &u32)| match self {
            Self::Spread => (CARDS_A_NODE - free, node),
            Self::BestFit => (free, node),
            _ => (0, node),
        };
        fitting.min_by_key(key).map(|(node, _)| node)
    }
}

impl Engine {
    fn pod(&self, job: usize, part: usize, cards: u32) -> PodSpec {
        pod(
            &format!("job-{job}-{part}"),
            &self.templates[cards as usize],
        )
    }

    /// Asks for the best node and takes it.
    fn place(&mut self, job: usize, part: usize, cards: u32) -> Option<usize> {
        self.scheduler.price_if_due();
        let template = self.templates[cards as usize].clone();
        let found = self.scheduler.best_node(&template)?;
        let node = found.0 as usize;
        let spec = PodSpec {
            node: Some(node_name(found.0)),
            phase: PodPhase::Running,
            ..self.pod(job, part, cards)
        };
        apply(&mut self.scheduler, Event::Pod(spec));
        Some(node)
    }
}
