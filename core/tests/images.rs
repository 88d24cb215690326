//! Images that are there break ties between nodes that are equal in everything else, and nothing else.
#![allow(unreachable_pub, reason = "modules that several tests share")]

#[path = "support/mod.rs"]
mod support;

use std::{collections::BTreeMap, sync::Arc};

use gangline::{
    Config,
    engine::{Event, Scheduler},
    gang::PodSpec,
    request::Template,
    units::Nanos,
};
use support::{apply, gang, member, node, pod, preferred, role, template};

const IMAGE: u64 = 7;
const OTHER: u64 = 8;

fn with_image(pod: PodSpec) -> PodSpec {
    PodSpec {
        images: [IMAGE].into(),
        ..pod
    }
}

fn has(name: &str, images: &[(u64, u32)]) -> Event {
    Event::NodeImages {
        name: name.into(),
        images: images.to_vec(),
    }
}

/// Three nodes in a rack and one in another, all alike.
fn engine() -> Scheduler {
    let mut engine = Scheduler::new(Config {
        levels: vec!["rack".into()],
        ..Config::default()
    });
    let racks = [
        ("n1", "rack=a"),
        ("n2", "rack=a"),
        ("n3", "rack=a"),
        ("n4", "rack=b"),
    ];
    apply(
        &mut engine,
        racks.map(|(name, rack)| Event::Node(node(name, 4, &[rack]))),
    );
    engine
}

fn places(engine: &mut Scheduler) -> BTreeMap<String, String> {
    let now = engine.now().saturating_add(Nanos(1));
    let decisions = engine.decide(now).to_vec();
    let placements = decisions.iter().flat_map(|it| engine.placements(it));
    let placed: Vec<_> = placements.map(|it| (it.pod, it.node)).collect();
    engine.check().unwrap();
    let snapshot = engine.snapshot();
    let name = |uid| snapshot.pods.iter().find(|pod| pod.spec.uid == uid);
    let named = placed.into_iter().map(|(uid, node)| {
        let pod = name(uid).unwrap().spec.name.clone();
        (pod, engine.node_name(node).to_owned())
    });
    named.collect()
}

fn place_one(engine: &mut Scheduler, template: &Arc<Template>) -> String {
    apply(engine, [Event::Pod(with_image(pod("p", template)))]);
    places(engine).remove("p").unwrap()
}

#[test]
fn of_equal_nodes_one_that_has_the_image_is_taken() {
    let one = Arc::new(template(1, 1000));
    assert_eq!(place_one(&mut engine(), &one), "n1");
    let mut engine = engine();
    apply(
        &mut engine,
        [
            has("n1", &[(OTHER, 9000)]),
            has("n2", &[(IMAGE, 500), (OTHER, 1)]),
            has("n3", &[(IMAGE, 500)]),
        ],
    );
    assert_eq!(place_one(&mut engine, &one), "n2");
}

#[test]
fn state_and_topology_come_first() {
    let one = Arc::new(template(1, 1000));
    // Another rack.
    let mut there = engine();
    apply(&mut there, [has("n4", &[(IMAGE, 9000)])]);
    assert_eq!(place_one(&mut there, &one), "n1");
    // A node that is in use is filled first, and one that has more free is not taken for its image.
    let mut used = engine();
    let running = PodSpec {
        node: Some("n3".into()),
        ..pod("running", &one)
    };
    apply(
        &mut used,
        [Event::Pod(running), has("n2", &[(IMAGE, 9000)])],
    );
    assert_eq!(place_one(&mut used, &one), "n3");
}

#[test]
fn what_a_gang_has_on_a_node_moves_together() {
    let two = Arc::new(template(2, 1000));
    let mut engine = engine();
    let mut spec = gang("g", 4);
    spec.root = preferred(role("members", 0, 4), "rack");
    apply(&mut engine, [Event::Gang(spec), has("n3", &[(IMAGE, 500)])]);
    let members = ["a", "b", "c", "d"].map(|name| with_image(member("g", name, &two)));
    apply(&mut engine, members.map(Event::Pod));
    let placed = places(&mut engine);
    let on = |node: &str| placed.values().filter(|it| *it == node).count();
    assert_eq!(
        (on("n1"), on("n2"), on("n3"), on("n4")),
        (0, 2, 2, 0),
        "{placed:?}"
    );
}

#[test]
fn a_node_that_went_has_no_images_when_it_comes_again() {
    let one = Arc::new(template(1, 1000));
    let mut engine = engine();
    let name = "n2".to_owned();
    apply(
        &mut engine,
        [
            has("n2", &[(IMAGE, 500)]),
            Event::NodeGone { name },
            Event::Node(node("n2", 4, &["rack=a"])),
        ],
    );
    assert_eq!(place_one(&mut engine, &one), "n1");
}
