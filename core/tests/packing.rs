//! Gangs that fill cards to the last slice: what fits by construction is placed, one slice more is
//! refused, and nothing is left open.

#![allow(unreachable_pub, reason = "nothing reaches into a test")]

mod support;

use std::{collections::BTreeMap, sync::Arc};

use gangline::{
    Scheduler, Verdict,
    cluster::{NodeSpec, spec::CardMode},
    device::{
        mig::{Geometry, MigState},
        model,
    },
    engine::{Config, Event},
    gang::{Group, GroupKind, Minimum},
    request::{Apart, CardRequest, CardWant, SliceChoice, SliceRequest, Template},
    units::Nanos,
};
use support::{GPU, gang_of, member, node, random::Random, role};

const MODELS: [&str; 4] = [
    "NVIDIA-A100-SXM4-80GB",
    "NVIDIA-A30",
    "NVIDIA-H100-80GB-HBM3",
    "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
];

fn geometry(product: &str) -> &'static Geometry {
    model::find(product)
        .and_then(|model| model.mig)
        .expect("a card with MIG")
}

/// Nodes with cards that are cut when needed.
fn nodes(product: &str, nodes: u32, cards: u32) -> Vec<NodeSpec> {
    let one = |ordinal| {
        let mut spec = node(&format!("n{ordinal}"), cards, &[]);
        spec.cards[0].model = product.into();
        spec.cards[0].modes = vec![CardMode::MigDynamic];
        spec
    };
    (0..nodes).map(one).collect()
}

/// Members with one slice each, a role for each profile.
fn verdict(nodes: &[NodeSpec], slices: &BTreeMap<&str, u32>) -> Verdict {
    let mut engine = Scheduler::new(Config::default());
    let mut roles: Vec<Group> = Vec::new();
    let mut pods = Vec::new();
    for (&profile, &count) in slices.iter().filter(|(_, count)| **count > 0) {
        roles.push(role(profile, count, count));
        let template = Arc::new(Template {
            cards: Some(CardRequest {
                want: CardWant::Slices {
                    slices: vec![SliceRequest {
                        slice: SliceChoice::Profile(profile.into()),
                        count: 1,
                    }],
                    cards: Apart::Distinct,
                },
                ..CardRequest::whole(GPU, 1)
            }),
            ..support::template(0, 0)
        });
        for ordinal in 0..count {
            let mut pod = member("g", &format!("{profile}-{ordinal}"), &template);
            pod.role = profile.into();
            pods.push(Event::Pod(pod));
        }
    }
    let spec = gang_of(
        "g",
        Group {
            name: "all".into(),
            kind: GroupKind::Group {
                min: Minimum::Members(slices.values().sum()),
                children: roles,
            },
            ..Group::default()
        },
    );
    let nodes = nodes.iter().cloned().map(Event::Node);
    support::apply(&mut engine, nodes.chain([Event::Gang(spec)]).chain(pods));
    engine.decide(Nanos::ZERO);
    engine.check().expect("a consistent engine");
    support::verdict(&engine, "g")
}

/// A full layout of a card by chance.
fn fill(random: &mut Random, geometry: &Geometry, slices: &mut BTreeMap<&'static str, u32>) {
    let mut state = MigState::EMPTY;
    loop {
        let fits: Vec<_> = geometry
            .placements()
            .filter_map(|(ix, start)| Some((ix, geometry.put(state, ix, start)?)))
            .collect();
        if fits.is_empty() {
            return;
        }
        let (ix, after) = *random.pick(&fits);
        state = after;
        *slices
            .entry(geometry.get(ix).expect("a profile").name)
            .or_default() += 1;
    }
}

#[test]
fn what_fills_every_card_is_placed_and_one_more_is_refused() {
    let mut wrong = Vec::new();
    for seed in 0..400 {
        let random = &mut Random::new(seed);
        let product = *random.pick(&MODELS);
        let geometry = geometry(product);
        let (count, cards) = *random.pick(&[(1, 16), (1, 8), (2, 8), (4, 4)]);
        let mut slices = BTreeMap::new();
        for _ in 0..count * cards {
            fill(random, geometry, &mut slices);
        }
        let nodes = nodes(product, count, cards);
        let since = std::time::Instant::now();
        let fits = verdict(&nodes, &slices);
        let first = since.elapsed();
        // No full layout has room for one more of the largest.
        let largest = geometry.profiles.iter().max_by_key(|profile| profile.units);
        *slices.entry(largest.expect("a profile").name).or_default() += 1;
        let since = std::time::Instant::now();
        let over = verdict(&nodes, &slices);
        let second = since.elapsed();
        let units: u32 = slices
            .iter()
            .map(|(name, count)| {
                let ix = geometry.profile(name).expect("a profile");
                count * u32::from(geometry.get(ix).expect("a profile").units)
            })
            .sum();
        let is_over = units > count * cards * u32::from(geometry.units);
        let right = match over {
            Verdict::Infeasible => true,
            Verdict::Placed => !is_over,
            _ => false,
        };
        if fits != Verdict::Placed || !right {
            wrong.push(format!(
                "{seed} {product} {count}x{cards} {fits:?} {first:?} {over:?} {second:?} {slices:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}
