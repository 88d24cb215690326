//! The engine decides by bid prices exactly as the price module prices node states.

#![allow(unreachable_pub, reason = "nothing reaches into a test")]

mod support;

use std::{collections::BTreeMap, sync::Arc};

use gangline::{
    Config, Event, Scheduler, Verdict,
    cluster::{CardMode, NodeCards, NodeSpec},
    engine::UsualWork,
    gang::{PodSpec, ScoringRule},
    price::{CardState, Effort, NodeState},
    request::{Apart, CPU, CardRequest, CardWant, ShareMemory, Template},
    units::{Nanos, Uid},
};

const GPU: &str = "nvidia.com/gpu";

fn node(name: &str, model: &str, cards: u32, milli_cpu: i64) -> NodeSpec {
    NodeSpec {
        name: name.into(),
        resources: BTreeMap::from([(CPU.into(), milli_cpu)]),
        cards: vec![NodeCards {
            kind: GPU.into(),
            count: cards,
            model: model.into(),
            modes: vec![CardMode::Shared],
            ..NodeCards::default()
        }],
        ..NodeSpec::default()
    }
}

fn share(milli_cpu: i64, compute_milli: u32) -> Arc<Template> {
    Arc::new(Template {
        resources: BTreeMap::from([(CPU.into(), milli_cpu)]),
        cards: Some(CardRequest {
            kind: GPU.into(),
            want: CardWant::Shares {
                count: 1,
                memory: ShareMemory::Mib(0),
                compute_milli,
                cards: Apart::Distinct,
            },
            ..CardRequest::default()
        }),
        ..Template::default()
    })
}

fn whole(milli_cpu: i64, count: u32, models: &[&str]) -> Arc<Template> {
    Arc::new(Template {
        resources: BTreeMap::from([(CPU.into(), milli_cpu)]),
        cards: Some(CardRequest {
            models: models.iter().map(|&model| model.into()).collect(),
            ..CardRequest::whole(GPU, count)
        }),
        ..Template::default()
    })
}

#[test]
fn the_engine_takes_the_place_that_costs_least() {
    let mut engine = Scheduler::new(Config {
        scoring: ScoringRule::BidPrice,
        usual: Vec::new(),
        ..Config::default()
    });
    let nodes = [
        node("n1", "A", 4, 32_000),
        node("n2", "A", 4, 32_000),
        node("n3", "B", 2, 64_000),
        node("n4", "B", 2, 64_000),
        node("n5", "A", 8, 96_000),
    ];
    let mut free: Vec<(i64, Vec<u16>)> = Vec::new();
    for node in &nodes {
        engine.apply(Event::Node(node.clone())).unwrap();
        let cards = vec![1000; node.cards[0].count as usize];
        free.push((node.resources[CPU], cards));
    }
    let kinds = [
        share(4_000, 250),
        share(8_000, 500),
        share(2_000, 810),
        whole(8_000, 1, &[]),
        whole(16_000, 2, &["B"]),
        whole(24_000, 4, &["A"]),
        whole(64_000, 8, &[]),
    ];
    let usual = kinds.iter().zip([30, 20, 10, 20, 4, 2, 1]);
    let mut config = engine.config().clone();
    config.usual = usual
        .map(|(template, weight)| UsualWork {
            template: template.clone(),
            weight,
        })
        .collect();
    let mut snapshot = engine.snapshot();
    snapshot.config = config;
    let mut engine = Scheduler::restore(snapshot).unwrap();
    let market = engine.market();
    let list = market.solve(None, Effort { rounds: 50 });
    engine.apply(Event::Prices(list.clone())).unwrap();
    let prices = list.prices();
    // The kinds of nodes in order of first node: A with 4, B with 2, A with 8.
    let kind_of = [0, 0, 1, 1, 2];
    let state = |at: usize, cpu: i64, cards: &[u16]| {
        NodeState::new(
            kind_of[at],
            cpu,
            cards.iter().map(|&milli| CardState::left(milli)),
        )
    };
    let mut random = 7_u64;
    let mut placed = 0;
    for number in 0..60 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let which = (random >> 33) as usize % 12;
        let template = &kinds[if which < 7 { which } else { which % 4 }];
        let uid = Uid(number + 1);
        let pod = PodSpec {
            uid,
            name: format!("p{number}"),
            template: template.clone(),
            ..support::member("", "", template)
        };
        engine
            .apply(Event::Pod(PodSpec { gang: None, ..pod }))
            .unwrap();
        // Every way to place it, as the module prices it; of equal costs the first.
        let work = &market.mix().types();
        let request = template.cards.as_ref().unwrap();
        let cpu = template.resources[CPU];
        let mut best: Option<(i64, usize)> = None;
        for (at, (free_cpu, cards)) in free.iter().enumerate() {
            let allowed =
                request.models.is_empty() || request.models.contains(&nodes[at].cards[0].model);
            if !allowed || *free_cpu < cpu {
                continue;
            }
            let before = state(at, *free_cpu, cards);
            let mut consider = |after: Vec<u16>| {
                let cost = prices.cost(&before, &state(at, free_cpu - cpu, &after));
                if best.is_none_or(|(least, _)| cost < least) {
                    best = Some((cost, at));
                }
            };
            match request.want {
                CardWant::Shares { compute_milli, .. } => {
                    for (card, &left) in cards.iter().enumerate() {
                        if u32::from(left) >= compute_milli {
                            let mut after = cards.clone();
                            after[card] -= compute_milli as u16;
                            consider(after);
                        }
                    }
                }
                CardWant::Whole(count) => {
                    let whole = (0..cards.len()).filter(|&card| cards[card] == 1000);
                    let whole: Vec<usize> = whole.take(count as usize).collect();
                    if whole.len() == count as usize {
                        let mut after = cards.clone();
                        for card in whole {
                            after[card] = 0;
                        }
                        consider(after);
                    }
                }
                _ => unreachable!("no other kind here"),
            }
        }
        assert!(!work.is_empty());
        let decisions = engine.decide(Nanos::from_secs(number as u64)).to_vec();
        let decision = decisions.iter().find(|decision| {
            engine
                .placements(decision)
                .iter()
                .any(|place| place.pod == uid)
        });
        let Some((cost, at)) = best else {
            assert!(decision.is_none(), "p{number} fits nowhere");
            engine.apply(Event::PodGone { uid }).unwrap();
            continue;
        };
        let decision = decision.unwrap_or_else(|| panic!("p{number} has room"));
        assert_eq!(decision.verdict, Verdict::Placed);
        let place = engine.placements(decision)[0];
        assert_eq!(engine.node_name(place.node), nodes[at].name, "p{number}");
        let (free_cpu, cards) = &mut free[at];
        let before = state(at, *free_cpu, cards);
        *free_cpu -= cpu;
        for card in place.devices.cards {
            let taken = match request.want {
                CardWant::Shares { compute_milli, .. } => compute_milli as u16,
                _ => 1000,
            };
            cards[card as usize] -= taken;
        }
        // The very card matters too, not only the node.
        assert_eq!(
            prices.cost(&before, &state(at, *free_cpu, cards)),
            cost,
            "p{number}"
        );
        placed += 1;
    }
    assert!(placed > 10, "only {placed} were placed");
}
