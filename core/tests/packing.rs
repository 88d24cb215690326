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
use support::{GPU, gang_of, node, random::Random, role};

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

/// What one member wants: slices by profile, and on which cards.
type Want = (BTreeMap<&'static str, u32>, Apart);

/// A role for each want, with so many members.
fn verdict(nodes: &[NodeSpec], wants: &[(Want, u32)]) -> Verdict {
    let mut engine = Scheduler::new(Config::default());
    let mut roles: Vec<Group> = Vec::new();
    let mut pods = Vec::new();
    let mut members = 0;
    for (ordinal, ((slices, cards), count)) in wants.iter().enumerate() {
        let name = format!("r{ordinal}");
        roles.push(role(&name, *count, *count));
        members += count;
        let slices = slices.iter().map(|(&profile, &count)| SliceRequest {
            slice: SliceChoice::Profile(profile.into()),
            count,
        });
        let template = Arc::new(Template {
            cards: Some(CardRequest {
                want: CardWant::Slices {
                    slices: slices.collect(),
                    cards: *cards,
                },
                ..CardRequest::whole(GPU, 1)
            }),
            ..support::template(0, 0)
        });
        for member in 0..*count {
            let mut pod = support::member("g", &format!("{name}-{member}"), &template);
            pod.role.clone_from(&name);
            pods.push(Event::Pod(pod));
        }
    }
    let all = Group {
        name: "all".into(),
        kind: GroupKind::Group {
            min: Minimum::Members(members),
            children: roles,
        },
        ..Group::default()
    };
    let spec = gang_of("g", all);
    let nodes = nodes.iter().cloned().map(Event::Node);
    support::apply(&mut engine, nodes.chain([Event::Gang(spec)]).chain(pods));
    engine.decide(Nanos::ZERO);
    engine.check().expect("a consistent engine");
    support::verdict(&engine, "g")
}

/// Members with one slice each, a role for each profile.
fn one_each(slices: &BTreeMap<&'static str, u32>) -> Vec<(Want, u32)> {
    let wants = slices.iter();
    wants
        .map(|(&profile, &count)| ((BTreeMap::from([(profile, 1)]), Apart::Distinct), count))
        .collect()
}

/// A full layout of a card by chance.
fn layout(random: &mut Random, geometry: &Geometry) -> Vec<&'static str> {
    let mut state = MigState::EMPTY;
    let mut layout = Vec::new();
    loop {
        let fits: Vec<_> = geometry
            .placements()
            .filter_map(|(ix, start)| Some((ix, geometry.put(state, ix, start)?)))
            .collect();
        if fits.is_empty() {
            return layout;
        }
        let (ix, after) = *random.pick(&fits);
        state = after;
        layout.push(geometry.get(ix).expect("a profile").name);
    }
}

/// Members that take apart the layouts of one node's cards, each with some slices.
fn members(random: &mut Random, mut cards: Vec<Vec<&'static str>>) -> Vec<Want> {
    let mut members = Vec::new();
    let kinds: Vec<usize> = (0..random.between(1, 3)).map(|_| random.between(1, 4) as usize).collect();
    while cards.iter().any(|card| !card.is_empty()) {
        let apart = *random.pick(&[Apart::Any, Apart::Distinct, Apart::Distinct, Apart::Same]);
        let most = *random.pick(&kinds);
        let mut slices = BTreeMap::new();
        let mut order: Vec<usize> = (0..cards.len()).filter(|&card| !cards[card].is_empty()).collect();
        random.shuffle(&mut order);
        let mut taken = 0;
        for &card in &order {
            let of_card = match apart {
                Apart::Distinct => 1,
                Apart::Same if taken > 0 => 0,
                _ => most - taken,
            };
            for _ in 0..of_card.min(most - taken).min(cards[card].len()) {
                let profile = cards[card].pop().expect("a slice");
                *slices.entry(profile).or_default() += 1;
                taken += 1;
            }
        }
        while slices.len() > 4 {
            let (last, count) = slices.pop_last().expect("a profile");
            cards[0].extend((0..count).map(|_: u32| last));
        }
        members.push((slices, apart));
    }
    members
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
            for profile in layout(random, geometry) {
                *slices.entry(profile).or_default() += 1;
            }
        }
        let nodes = nodes(product, count, cards);
        let since = std::time::Instant::now();
        let fits = verdict(&nodes, &one_each(&slices));
        let first = since.elapsed();
        // No full layout has room for one more of the largest.
        let largest = geometry.profiles.iter().max_by_key(|profile| profile.units);
        *slices.entry(largest.expect("a profile").name).or_default() += 1;
        let since = std::time::Instant::now();
        let over = verdict(&nodes, &one_each(&slices));
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

#[test]
fn members_with_many_slices() {
    let mut wrong = Vec::new();
    for seed in 0..300 {
        let random = &mut Random::new(seed);
        let product = *random.pick(&MODELS);
        let geometry = geometry(product);
        let (count, cards) = *random.pick(&[(1, 16), (1, 8), (2, 4), (1, 4)]);
        let mut wants: Vec<(Want, u32)> = Vec::new();
        for _ in 0..count {
            let layouts = (0..cards).map(|_| layout(random, geometry)).collect();
            for want in members(random, layouts) {
                match wants.iter_mut().find(|(known, _)| *known == want) {
                    Some((_, count)) => *count += 1,
                    None => wants.push((want, 1)),
                }
            }
        }
        let nodes = nodes(product, count, cards);
        let since = std::time::Instant::now();
        let fits = verdict(&nodes, &wants);
        wrong.push(format!("{fits:?} {:?} {seed} {product} {count}x{cards} {}", since.elapsed(), wants.len()));
    }
    wrong.sort();
    panic!("{}\n{}", wrong.iter().filter(|w| w.starts_with('P')).count(), wrong.join("\n"));
}
