//! Reasons and counterfactuals on small worlds: the facts, not the wording.

mod support;

use std::sync::Arc;

use gangline::{
    cluster::CardMode,
    engine::{Config, Event, Explanation, Scheduler},
    explain::{Cause, Counterfactual, Reason},
    gang::{GangSpec, PodPhase},
    request::{Apart, CardWant, NODE_LEVEL, SliceChoice, SliceRequest},
};
use support::*;

fn engine(levels: &[&str]) -> Scheduler {
    let levels = levels.iter().map(|&level| level.into()).collect();
    Scheduler::new(Config {
        levels,
        ..Config::default()
    })
}

fn why(engine: &Scheduler, name: &str) -> Explanation {
    engine
        .why(engine.find("default", name).expect("a gang"))
        .expect("an explanation")
}

#[test]
fn a_gang_that_is_three_cards_short_says_so_and_what_would_help() {
    let mut engine = engine(&[]);
    apply(&mut engine, [Event::Node(node("n1", 5, &[]))]);
    let one = Arc::new(template(1, 1000));
    submit(&mut engine, gang("a", 4), 4, &one);
    let later = GangSpec {
        created: secs(1),
        ..gang("b", 4)
    };
    submit(&mut engine, later, 4, &one);
    cycle(&mut engine, secs(0));
    let story = why(&engine, "b");
    let Some(Reason::DoesNotFit {
        shortfall: Some(shortfall),
        members: 4,
        ..
    }) = &story.reason
    else {
        panic!("{:?}", story.reason)
    };
    assert_eq!(
        (
            shortfall.resource.as_str(),
            shortfall.needed,
            shortfall.free
        ),
        (GPU, 4, 1)
    );
    assert!(story.counterfactuals.contains(&Counterfactual::MoreCards {
        kind: GPU.into(),
        model: String::new(),
        count: 3,
        domain: Some(format!("{NODE_LEVEL}=n1")),
        nodes: 0,
        mode: CardMode::Whole,
        near: String::new(),
    }));
    let departs = story
        .counterfactuals
        .iter()
        .find_map(|change| match change {
            Counterfactual::Departure { gangs, pods } => Some((gangs.clone(), pods.len())),
            _ => None,
        });
    assert_eq!(departs, Some((vec!["default/a".into()], 3)));
    assert!(
        story
            .counterfactuals
            .contains(&Counterfactual::FewerMembers { fewer: 3, min: 1 })
    );
    assert_eq!(story.members.len(), 4);
    assert!(
        matches!(story.members[0].1, Reason::WaitsForSibling { .. }),
        "{:?}",
        story.members
    );
}

#[test]
fn scattered_cards_do_not_count_and_the_pods_to_go_are_on_one_node() {
    let mut engine = engine(&[]);
    let one = Arc::new(template(1, 1000));
    for n in 0..5 {
        apply(&mut engine, [Event::Node(node(&format!("n{n}"), 4, &[]))]);
        for i in 0..3 {
            let mut pod = pod(&format!("busy-{n}-{i}"), &one);
            pod.node = Some(format!("n{n}"));
            pod.phase = PodPhase::Running;
            apply(&mut engine, [Event::Pod(pod)]);
        }
    }
    let root = required(role("m", 0, 4), NODE_LEVEL);
    submit(&mut engine, gang_of("g", root), 4, &one);
    cycle(&mut engine, secs(0));
    let story = why(&engine, "g");
    let Some(Reason::DoesNotFit {
        level,
        best_domain: Some(best),
        ..
    }) = &story.reason
    else {
        panic!("{:?}", story.reason)
    };
    assert_eq!(level.as_deref(), Some(NODE_LEVEL));
    assert_eq!((best.fits, best.needed), (1, 4));
    let pods = story
        .counterfactuals
        .iter()
        .find_map(|change| match change {
            Counterfactual::Departure { gangs, pods } => Some((gangs.len(), pods.len())),
            _ => None,
        });
    // Three pods of one node, each a gang of one that goes whole.
    assert_eq!(pods, Some((3, 0)));
    assert!(
        story
            .counterfactuals
            .iter()
            .any(|change| matches!(change, Counterfactual::RelaxLevel { to: None, .. }))
    );
}

#[test]
fn a_sibling_that_fits_names_the_one_that_does_not() {
    let mut engine = engine(&[]);
    let mut spec = node("n1", 0, &[]);
    spec.resources.insert("cpu".into(), 4_000);
    apply(&mut engine, [Event::Node(spec), Event::Gang(gang("g", 2))]);
    apply(
        &mut engine,
        [
            Event::Pod(member("g", "t0", &Arc::new(template(0, 2_000)))),
            Event::Pod(member("g", "t1", &Arc::new(template(0, 16_000)))),
        ],
    );
    cycle(&mut engine, secs(0));
    let story = why(&engine, "g");
    let reason = |name: &str| {
        story
            .members
            .iter()
            .find(|(pod, _)| pod == name)
            .map(|(_, r)| r)
    };
    let Some(Reason::WaitsForSibling {
        fits,
        sibling,
        because,
    }) = reason("t0")
    else {
        panic!("{:?}", reason("t0"))
    };
    assert_eq!((fits.as_str(), sibling.as_str()), ("n1", "t1"));
    let Reason::DoesNotFit {
        shortfall: Some(shortfall),
        causes,
        ..
    } = &**because
    else {
        panic!("{because:?}")
    };
    assert_eq!((shortfall.needed, shortfall.free), (16_000, 4_000));
    assert_eq!((causes[0].cause, causes[0].nodes), (Cause::Resource, 1));
    assert_eq!(reason("t1"), Some(&**because));
}

#[test]
fn missing_groups_members_and_levels_have_reasons_of_their_own() {
    let mut engine = engine(&["rack"]);
    apply(&mut engine, [Event::Node(node("n1", 8, &[]))]);
    let one = Arc::new(template(1, 1000));
    apply(&mut engine, [Event::Pod(member("nobody", "p", &one))]);
    submit(&mut engine, gang("few", 3), 2, &one);
    submit(
        &mut engine,
        gang_of("typo", required(role("m", 0, 1), "rakc")),
        1,
        &one,
    );
    cycle(&mut engine, secs(0));
    assert!(matches!(
        why(&engine, "p").reason,
        Some(Reason::GroupNotFound { .. })
    ));
    assert_eq!(
        why(&engine, "few").reason,
        Some(Reason::WaitingForMembers {
            present: 2,
            needed: 3,
            gated: 0,
            group: String::new()
        })
    );
    assert_eq!(
        why(&engine, "typo").reason,
        Some(Reason::UnknownLevel {
            level: "rakc".into()
        })
    );
}

#[test]
fn a_cordoned_node_that_would_do_is_named() {
    let mut engine = engine(&[]);
    let mut spec = node("n1", 8, &[]);
    spec.unschedulable = true;
    apply(&mut engine, [Event::Node(spec)]);
    submit(&mut engine, gang("g", 2), 2, &Arc::new(template(4, 1000)));
    cycle(&mut engine, secs(0));
    let story = why(&engine, "g");
    assert!(
        story
            .counterfactuals
            .contains(&Counterfactual::Uncordon { node: "n1".into() }),
        "{story:?}"
    );
}

#[test]
fn a_plan_for_a_gang_without_pods_changes_nothing() {
    let mut engine = engine(&[]);
    apply(&mut engine, [Event::Node(node("n1", 8, &[]))]);
    let mut spec = gang("g", 2);
    let gangline::gang::GroupKind::Role(role) = &mut spec.root.kind else {
        panic!()
    };
    role.template = Some(Arc::new(template(4, 1000)));
    let before = engine.fingerprint();
    let plan = engine.plan(&spec).expect("a plan");
    assert_eq!(plan.places.len(), 2);
    assert_eq!(engine.fingerprint(), before);
    let gangline::gang::GroupKind::Role(role) = &mut spec.root.kind else {
        panic!()
    };
    role.min = 3;
    assert!(matches!(engine.plan(&spec), Err(Reason::DoesNotFit { .. })));
}

#[test]
fn instances_that_count_as_cards_are_not_offered_in_other_instances() {
    for (model, is_offered) in [
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", false),
        ("NVIDIA-A100-SXM4-40GB", true),
    ] {
        let mut engine = engine(&[]);
        let mut g1 = node("g1", 2, &[]);
        g1.cards[0].model = model.into();
        apply(&mut engine, [Event::Node(g1)]);
        let mut slices = template(1, 1000);
        let cards = slices.cards.as_mut().expect("cards");
        cards.want = CardWant::Slices {
            slices: vec![SliceRequest {
                slice: SliceChoice::Profile("3g.20gb".into()),
                count: 2,
            }],
            cards: Apart::Distinct,
        };
        submit(&mut engine, gang("a", 1), 1, &Arc::new(slices));
        cycle(&mut engine, secs(0));
        let changes = why(&engine, "a").counterfactuals;
        let offers = |change: &Counterfactual| matches!(change, Counterfactual::CardMode { .. });
        assert_eq!(changes.iter().any(offers), is_offered, "{model}");
    }
}
