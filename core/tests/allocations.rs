//! Once warm, `decide` allocates nothing: counted by an allocator of our own.

#![allow(unsafe_code, reason = "a global allocator cannot be written without")]

mod support;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    hint::black_box,
    sync::Arc,
};

use gangline::{
    engine::{Config, Event, Scheduler, Verdict},
    gang::{GangSpec, Group, GroupKind, Minimum, PodSpec},
    request::{LabelSelector, NODE_LEVEL, PodTerm, SpreadRule, Template},
    units::Nanos,
};
use support::*;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counting what each thread asks of it.
struct Counting;

// SAFETY: every call is handed to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above; the pointer came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often memory was asked for while `work` ran.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
}

fn cluster(nodes: u32) -> Scheduler {
    let mut engine = Scheduler::new(Config {
        levels: vec!["block".into(), "rack".into()],
        ..Config::default()
    });
    for ordinal in 0..nodes {
        let labels = [
            format!("rack=r{}", ordinal / 4),
            format!("block=b{}", ordinal / 16),
        ];
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let spec = node(&format!("n{ordinal}"), 8, &labels);
        apply(&mut engine, [Event::Node(spec)]);
    }
    engine
}

/// A gang's objects: the group and its members by role.
fn objects(spec: &GangSpec, members: &[(&str, u32, Arc<Template>)]) -> Vec<Event> {
    let name = &spec.key.name;
    let pods = members.iter().flat_map(|(role, count, template)| {
        (0..*count).map(move |ordinal| {
            Event::Pod(PodSpec {
                role: (*role).into(),
                ..member(name, &format!("{name}-{role}-{ordinal}"), template)
            })
        })
    });
    [Event::Gang(spec.clone())]
        .into_iter()
        .chain(pods)
        .collect()
}

/// Decides for the same gang again and again, taking it away in between, and gives how often the
/// last decision asked for memory.
fn warm_decision(
    expected: Verdict,
    spec: &GangSpec,
    members: &[(&str, u32, Arc<Template>)],
) -> u64 {
    let mut engine = cluster(64);
    let mut last = u64::MAX;
    for round in 0..20 {
        apply(&mut engine, objects(spec, members));
        last = allocations(|| {
            let decisions = engine.decide(Nanos::from_secs(round));
            assert_eq!(decisions.len(), 1);
            assert_eq!(decisions[0].verdict, expected);
        });
        let pods: Vec<_> = engine.snapshot().pods;
        let gone = pods.iter().map(|pod| Event::PodGone { uid: pod.spec.uid });
        apply(&mut engine, gone.collect::<Vec<_>>());
        let (key, uid) = (spec.key.clone(), spec.uid);
        apply(&mut engine, [Event::GangGone { key, uid }]);
    }
    last
}

fn tree(children: Vec<Group>) -> Group {
    Group {
        name: "root".into(),
        kind: GroupKind::Group {
            min: Minimum::Children(children.len() as u32),
            children,
        },
        ..Group::default()
    }
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(black_box(Box::new(1_u64)))), 1);
    assert_eq!(allocations(|| ()), 0);
}

#[test]
fn a_warm_decision_for_a_gang_of_alike_members_allocates_nothing() {
    let eight = Arc::new(template(8, 1000));
    let spec = gang("g", 48);
    assert_eq!(warm_decision(Verdict::Placed, &spec, &[("", 48, eight)]), 0);
}

#[test]
fn a_warm_decision_for_a_gang_of_several_roles_allocates_nothing() {
    let (one, four) = (Arc::new(template(1, 2000)), Arc::new(template(4, 1000)));
    let driver = Arc::new(template(0, 4000));
    let spec = gang_of(
        "g",
        tree(vec![
            role("driver", 1, 1),
            role("small", 12, 8),
            role("large", 20, 16),
        ]),
    );
    let members = [
        ("driver", 1, driver),
        ("small", 12, one),
        ("large", 20, four),
    ];
    assert_eq!(warm_decision(Verdict::Placed, &spec, &members), 0);
}

#[test]
fn a_warm_decision_within_a_required_level_allocates_nothing() {
    let eight = Arc::new(template(8, 1000));
    let spec = gang_of(
        "g",
        required(preferred(role("all", 0, 12), "rack"), "block"),
    );
    assert_eq!(warm_decision(Verdict::Placed, &spec, &[("", 12, eight)]), 0);
}

#[test]
fn a_warm_refusal_allocates_nothing() {
    let eight = Arc::new(template(8, 1000));
    let spec = gang_of("g", required(role("all", 0, 5), "rack"));
    assert_eq!(
        warm_decision(Verdict::Infeasible, &spec, &[("", 5, eight)]),
        0
    );
}

#[test]
fn a_warm_refusal_of_all_together_by_their_sum_allocates_nothing() {
    let (five, three) = (Arc::new(template(5, 1000)), Arc::new(template(3, 1000)));
    let roles = vec![role("five", 4, 4), role("three", 5, 5)];
    let spec = gang_of("g", required(tree(roles), "rack"));
    let members = [("five", 4, five), ("three", 5, three)];
    assert_eq!(warm_decision(Verdict::Infeasible, &spec, &members), 0);
}

#[test]
fn a_warm_refusal_by_trying_everything_allocates_nothing() {
    // A node takes one of either kind, which no sum over nodes shows.
    let (five, three) = (Arc::new(template(5, 30_000)), Arc::new(template(3, 40_000)));
    let roles = vec![role("five", 2, 2), role("three", 3, 3)];
    let spec = gang_of("g", required(tree(roles), "rack"));
    let members = [("five", 2, five), ("three", 3, three)];
    assert_eq!(warm_decision(Verdict::Infeasible, &spec, &members), 0);
}

#[test]
fn a_warm_decision_with_rules_about_other_pods_allocates_nothing() {
    let selector = LabelSelector::from_labels([("app", "a")]);
    let mut apart = template(1, 1000);
    apart.labels.insert("app".into(), "a".into());
    let term = |level: &str| PodTerm {
        topology_key: level.into(),
        selector: selector.clone(),
        ..PodTerm::default()
    };
    apart.relations.anti_affinity.push(term(NODE_LEVEL));
    apart.relations.affinity.push(term("block"));
    apart.relations.spread.push(SpreadRule {
        topology_key: "rack".into(),
        max_skew: 2,
        selector: selector.clone(),
        min_domains: 0,
        required: true,
        honor_node_affinity: true,
        honor_taints: true,
    });
    let apart = Arc::new(apart);
    let fits = warm_decision(Verdict::Placed, &gang("g", 8), &[("", 8, apart.clone())]);
    // One a node, and there are 64 nodes.
    let refused = warm_decision(Verdict::Infeasible, &gang("g", 65), &[("", 65, apart)]);
    assert_eq!((fits, refused), (0, 0));
}
