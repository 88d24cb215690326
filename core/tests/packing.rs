//! Gangs that fill cards to the last slice, or to the last MiB: what fits by construction is never
//! refused. With one slice a member it is placed, one slice more than there is is refused, and nothing
//! is left open.

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
    request::{Apart, CardRequest, CardWant, ShareMemory, SliceChoice, SliceRequest, Template},
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

/// Steps for gangs that may stay undecided.
const FEW_STEPS: u64 = 500;
const STEPS: u64 = 200_000;

/// What is said of a gang with a role for each request, and so many members in it.
fn verdict(nodes: &[NodeSpec], wants: &[(CardRequest, u32)], search_steps: u64) -> Verdict {
    let mut engine = Scheduler::new(Config {
        search_steps,
        ..Config::default()
    });
    let mut roles: Vec<Group> = Vec::new();
    let mut pods = Vec::new();
    let mut members = 0;
    for (ordinal, (cards, count)) in wants.iter().enumerate() {
        let name = format!("r{ordinal}");
        roles.push(role(&name, *count, *count));
        members += count;
        let template = Arc::new(Template {
            cards: Some(cards.clone()),
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

fn slices((slices, cards): &Want) -> CardRequest {
    let slices = slices.iter().map(|(&profile, &count)| SliceRequest {
        slice: SliceChoice::Profile(profile.into()),
        count,
    });
    CardRequest {
        want: CardWant::Slices {
            slices: slices.collect(),
            cards: *cards,
        },
        ..CardRequest::whole(GPU, 1)
    }
}

/// Members with one slice each, a role for each profile.
fn one_each(profiles: &BTreeMap<&'static str, u32>) -> Vec<(CardRequest, u32)> {
    let one = |profile| slices(&(BTreeMap::from([(profile, 1)]), Apart::Distinct));
    let wants = profiles.iter();
    wants
        .map(|(&profile, &count)| (one(profile), count))
        .collect()
}

/// Equal requests once, with their number.
fn counted(requests: impl IntoIterator<Item = CardRequest>) -> Vec<(CardRequest, u32)> {
    let mut counted: Vec<(CardRequest, u32)> = Vec::new();
    for request in requests {
        match counted.iter_mut().find(|(known, _)| *known == request) {
            Some((_, count)) => *count += 1,
            None => counted.push((request, 1)),
        }
    }
    counted
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
    let kinds: Vec<usize> = (0..random.between(1, 3))
        .map(|_| random.between(1, 4) as usize)
        .collect();
    while cards.iter().any(|card| !card.is_empty()) {
        let apart = *random.pick(&[Apart::Any, Apart::Distinct, Apart::Distinct, Apart::Same]);
        let most = *random.pick(&kinds);
        let mut slices = BTreeMap::new();
        let mut order: Vec<usize> = (0..cards.len())
            .filter(|&card| !cards[card].is_empty())
            .collect();
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
        let fits = verdict(&nodes, &one_each(&slices), STEPS);
        let largest = geometry.profiles.iter().max_by_key(|profile| profile.units);
        *slices.entry(largest.expect("a profile").name).or_default() += 1;
        let over = verdict(&nodes, &one_each(&slices), STEPS);
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
            let world = format!("{count} nodes with {cards} cards {product}");
            wrong.push(format!(
                "seed {seed}, {world}: {fits:?}, {over:?} {slices:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

/// Members with several slices, on distinct cards, one card, or any, beside whole cards.
#[test]
fn members_that_take_cards_apart_are_never_refused() {
    let (mut placed, worlds) = (0, 1000);
    for seed in 0..worlds {
        let random = &mut Random::new(seed);
        let product = *random.pick(&MODELS);
        let geometry = geometry(product);
        let (count, cards) = *random.pick(&[(1, 16), (1, 8), (2, 4), (1, 4), (1, 2), (2, 2)]);
        let mut requests = Vec::new();
        for _ in 0..count {
            let whole = random.below(u64::from(cards) / 2) as u32;
            if whole > 0 {
                requests.push(CardRequest::whole(GPU, whole));
            }
            let layouts = (whole..cards).map(|_| layout(random, geometry)).collect();
            requests.extend(members(random, layouts).iter().map(slices));
        }
        let nodes = nodes(product, count, cards);
        let said = verdict(&nodes, &counted(requests), FEW_STEPS);
        assert_ne!(said, Verdict::Infeasible, "seed {seed}");
        placed += u64::from(said == Verdict::Placed);
    }
    assert!(placed > worlds / 3, "{placed} of {worlds}");
}

/// Cards that are given away in shares to the last MiB, or the last thousandth of their time.
#[test]
fn shares_that_fill_cards_are_never_refused() {
    let (mut placed, worlds) = (0, 1000);
    for seed in 0..worlds {
        let random = &mut Random::new(seed);
        let mut nodes = nodes("NVIDIA-A100-SXM4-80GB", 2, 4);
        let mut requests = Vec::new();
        for node in &mut nodes {
            let cards = &mut node.cards[0];
            cards.modes = vec![CardMode::Shared];
            cards.memory_mib = *random.pick(&[80_000, 81_920]);
            for _ in 0..cards.count {
                if random.chance(20) {
                    requests.push(CardRequest::whole(GPU, 1));
                    continue;
                }
                let parts = random.between(1, 6) as u32;
                let share = match random.below(3) {
                    0 => (ShareMemory::Mib(cards.memory_mib / parts), 0),
                    1 => (ShareMemory::Milli(1000 / parts), 0),
                    _ => (ShareMemory::Mib(1), 1000 / parts),
                };
                for _ in 0..parts {
                    requests.push(CardRequest {
                        want: CardWant::Shares {
                            count: 1,
                            memory: share.0,
                            compute_milli: share.1,
                            cards: Apart::Distinct,
                        },
                        ..CardRequest::whole(GPU, 1)
                    });
                }
            }
        }
        let said = verdict(&nodes, &counted(requests), FEW_STEPS);
        assert_ne!(said, Verdict::Infeasible, "seed {seed}");
        placed += u64::from(said == Verdict::Placed);
    }
    assert!(placed > worlds / 3, "{placed} of {worlds}");
}
