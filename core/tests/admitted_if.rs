//! What is offered as "admitted if" holds, and what would not help is not offered.

mod support;

use std::{collections::BTreeMap, sync::Arc};

use gangline::{
    bits::CardSet,
    cluster::{CardMode, MigInstance, NodeSpec},
    device::{
        Devices,
        links::{LinkMatrix, Nearness},
    },
    engine::{Config, Event, Scheduler},
    gang::{GangSpec, PodPhase, PodSpec},
    request::{Apart, CardWant, NODE_LEVEL, SliceChoice, SliceRequest, Template},
};
use support::*;

fn engine(nodes: impl IntoIterator<Item = NodeSpec>) -> Scheduler {
    let mut engine = Scheduler::new(Config::default());
    apply(&mut engine, nodes.into_iter().map(Event::Node));
    engine
}

/// A pod that runs on certain cards.
fn running(name: &str, node: &str, cards: u32, of: CardSet) -> Event {
    let mut pod = pod(name, &Arc::new(template(cards, 0)));
    pod.node = Some(node.into());
    pod.phase = PodPhase::Running;
    pod.devices = Some(Devices::of_cards(of));
    Event::Pod(pod)
}

/// A pod that came so many seconds after the start.
fn waiting(name: &str, after: u64, template: Template) -> Event {
    Event::Pod(PodSpec {
        created: secs(after),
        ..pod(name, &Arc::new(template))
    })
}

/// What would admit a gang, in words.
fn offers(engine: &Scheduler, name: &str) -> Vec<String> {
    let gang = engine.find("default", name).expect("a gang");
    let story = engine.why(gang).expect("an explanation");
    let offers = story.counterfactuals.iter();
    offers.map(ToString::to_string).collect()
}

#[test]
fn who_waits_ahead_takes_what_becomes_free() {
    let mut engine = engine([node("n", 4, &[])]);
    apply(
        &mut engine,
        [
            running("r", "n", 4, CardSet(0b1111)),
            waiting("a", 1, template(4, 0)),
            waiting("b", 2, template(4, 0)),
            waiting("c", 3, template(2, 0)),
        ],
    );
    cycle(&mut engine, secs(9));
    assert_eq!(
        offers(&engine, "a"),
        ["4 more GPUs appear on node n", "default/r ends"]
    );
    assert_eq!(offers(&engine, "b"), ["8 more GPUs appear on node n",]);
    let b = engine.find("default", "b").expect("a gang");
    let story = engine.why(b).expect("an explanation");
    let if_first: Vec<String> = story.if_first.iter().map(ToString::to_string).collect();
    assert_eq!(story.ahead, 1);
    assert_eq!(if_first, ["4 more GPUs appear on node n", "default/r ends"]);
    // Those ahead do not fit on two cards.
    assert_eq!(
        offers(&engine, "c")[0],
        "2 more GPUs appear on node n",
        "{:?}",
        offers(&engine, "c")
    );
}

#[test]
fn as_many_become_allocatable_as_running_pods_leave_over() {
    let mut all_out = node("z", 8, &[]);
    all_out.cards[0].closed = CardSet(0xff);
    all_out.cards[0].withheld = 8;
    let mut engine = engine([all_out]);
    apply(
        &mut engine,
        [
            running("r", "z", 2, CardSet(0b1100)),
            waiting("g", 1, template(1, 0)),
        ],
    );
    cycle(&mut engine, secs(9));
    assert_eq!(
        offers(&engine, "g"),
        [
            "3 more GPUs of node z become allocatable",
            "1 more GPU appears on a new node"
        ]
    );
}

#[test]
fn another_node_has_another_name() {
    let mut changing = node("p1", 8, &[]);
    changing.labels = BTreeMap::from([(NODE_LEVEL.into(), "p1".into())]);
    changing.cards[0].is_changing = true;
    let mut engine = engine([changing]);
    let mut there = template(1, 0);
    there.nodes.selector = BTreeMap::from([(NODE_LEVEL.into(), "p1".into())]);
    apply(&mut engine, [waiting("s", 1, there)]);
    cycle(&mut engine, secs(9));
    assert_eq!(
        offers(&engine, "s"),
        ["the MIG layout of node p1 is no longer being changed"]
    );
}

#[test]
fn cards_of_an_island_come_with_their_links() {
    let near = || {
        let mut near = template(8, 0);
        let cards = near.cards.as_mut().expect("cards");
        cards.near = Nearness::NvlinkIsland;
        near
    };
    let unlinked = node("x7", 8, &[]);
    let mut linked = node("x1", 8, &[]);
    let switched = LinkMatrix::from_text("hgx-h100-8").expect("a matrix");
    linked.cards[0].links = Some(switched);
    linked.cards[0].unhealthy = CardSet(0b111);
    for (nodes, expected) in [
        (vec![unlinked.clone()], None),
        (
            vec![unlinked, linked],
            Some("8 more GPUs near each other (nvlink-island) appear on a new node"),
        ),
    ] {
        let mut engine = engine(nodes);
        apply(&mut engine, [waiting("nv", 1, near())]);
        cycle(&mut engine, secs(9));
        let offers = offers(&engine, "nv");
        let found = offers.iter().find(|offer| offer.contains("more GPU"));
        assert_eq!(found.map(String::as_str), expected);
    }
}

#[test]
fn cards_with_certain_numbers_are_on_a_node_for_each_member() {
    let mut engine = engine([node("q1", 8, &[])]);
    let mut ids = template(4, 0);
    let cards = ids.cards.as_mut().expect("cards");
    cards.only = Some(CardSet(0b1111));
    let mut none = ids.clone();
    none.cards.as_mut().expect("cards").only = Some(CardSet(0b1111 << 8));
    apply(&mut engine, [running("r", "q1", 3, CardSet(0b111))]);
    let later = GangSpec {
        created: secs(1),
        ..gang("k", 2)
    };
    submit(&mut engine, later, 2, &Arc::new(ids));
    apply(&mut engine, [waiting("none", 2, none)]);
    cycle(&mut engine, secs(9));
    assert_eq!(offers(&engine, "k"), ["8 more GPUs appear on 2 new nodes"]);
    // No node has so many cards.
    assert_eq!(offers(&engine, "none"), ["it takes cards other than 8-11"]);
}

#[test]
fn members_of_three_need_more_nodes_than_their_cards_fill() {
    let mut engine = engine([node("n", 8, &[])]);
    apply(&mut engine, [running("r", "n", 8, CardSet(0xff))]);
    submit(&mut engine, gang("g", 4), 4, &Arc::new(template(3, 0)));
    cycle(&mut engine, secs(9));
    // Two on each node of eight.
    assert_eq!(
        offers(&engine, "g")[0],
        "14 more GPUs appear on 2 new nodes"
    );
}

#[test]
fn a_card_in_fixed_instances_comes_with_those_that_are_asked_for() {
    let instance = |profile: &str, start| MigInstance {
        profile: profile.into(),
        start,
    };
    let small = (0..7).map(|start| instance("1g.10gb", start)).collect();
    let large = vec![instance("3g.40gb", 0), instance("3g.40gb", 4)];
    let mut h1 = node("h1", 2, &[]);
    h1.cards[0].model = "NVIDIA-H100-80GB-HBM3".into();
    h1.cards[0].modes = vec![CardMode::MigStatic(small), CardMode::MigStatic(large)];
    let mut engine = engine([h1]);
    let mut slices = template(1, 0);
    slices.cards.as_mut().expect("cards").want = CardWant::Slices {
        slices: vec![SliceRequest {
            slice: SliceChoice::Profile("3g.40gb".into()),
            count: 2,
        }],
        cards: Apart::Distinct,
    };
    apply(&mut engine, [waiting("dist", 1, slices)]);
    cycle(&mut engine, secs(9));
    assert_eq!(
        offers(&engine, "dist"),
        [
            "1 more H100-80GB in MIG instances (2 3g.40gb) appears on node h1",
            "its parts may lie on any cards, not only on distinct cards"
        ]
    );
}
