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
    cluster::spec::{CardMode, MigInstance},
    device::links::{Link, LinkMatrix},
    engine::{Config, Event, Scheduler, Verdict},
    gang::{GangSpec, Group, GroupKind, Minimum, PodPhase, PodSpec},
    request::{
        Apart, CardRequest, CardWant, LabelSelector, NODE_LEVEL, PodTerm, ShareMemory, SliceChoice,
        SliceRequest, SpreadRule, Template,
    },
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
        if ordinal % 2 == 1 {
            let (name, images) = (format!("n{ordinal}"), vec![(IMAGE, 1000)]);
            apply(&mut engine, [Event::NodeImages { name, images }]);
        }
    }
    engine
}

/// Every second node has it, so that plans move to these.
const IMAGE: u64 = 7;

/// A gang's objects: the group and its members by role.
fn objects(spec: &GangSpec, members: &[(&str, u32, Arc<Template>)]) -> Vec<Event> {
    let name = &spec.key.name;
    let pods = members.iter().flat_map(|(role, count, template)| {
        (0..*count).map(move |ordinal| {
            Event::Pod(PodSpec {
                role: (*role).into(),
                images: [IMAGE].into(),
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
    for round in 0..30 {
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

/// Cards in parts: decides, confirms and deletes the same pods again and again, and gives how often
/// the last round asked for memory: while deciding, and while events about them were taken in.
fn warm_parts(mode: &CardMode, want: CardWant, members: u32, linked: bool) -> (u64, u64) {
    let mut engine = Scheduler::new(Config::default());
    for ordinal in 0..16 {
        let links = |count: u32| {
            let link = |a: u32, b: u32| {
                if a / 2 == b / 2 {
                    Link::Nvlink(4)
                } else {
                    Link::System
                }
            };
            let row = |a: u32| (0..count).map(|b| (a != b).then(|| link(a, b))).collect();
            let rows: Vec<Vec<Option<Link>>> = (0..count).map(row).collect();
            LinkMatrix::new(&rows, &vec![None; count as usize], vec![]).expect("symmetric")
        };
        let mut spec = node(&format!("n{ordinal}"), 8, &[]);
        for cards in &mut spec.cards {
            cards.model = "NVIDIA-A100-SXM4-40GB".into();
            cards.modes = vec![mode.clone()];
            cards.links = linked.then(|| links(8));
        }
        apply(&mut engine, [Event::Node(spec)]);
    }
    let template = Arc::new(Template {
        cards: Some(CardRequest {
            kind: GPU.into(),
            want,
            ..CardRequest::default()
        }),
        ..template(0, 100)
    });
    let pods: Vec<PodSpec> = (0..members)
        .map(|ordinal| member("g", &format!("g-{ordinal}"), &template))
        .collect();
    let (mut decided, mut told) = (u64::MAX, u64::MAX);
    for round in 0..60 {
        apply(&mut engine, [Event::Gang(gang("g", members))]);
        apply(&mut engine, pods.iter().cloned().map(Event::Pod));
        decided = allocations(|| {
            let decisions = engine.decide(Nanos::from_secs(round));
            assert_eq!(decisions.len(), 1);
            assert_eq!(decisions[0].verdict, Verdict::Placed);
        });
        let lines = engine.ledger();
        let bound: Vec<Event> = lines
            .iter()
            .filter_map(|line| {
                let pod = pods.iter().find(|pod| pod.uid == line.owner)?;
                Some(Event::Pod(PodSpec {
                    node: Some(line.node.into()),
                    devices: Some(line.devices),
                    phase: PodPhase::Running,
                    ..pod.clone()
                }))
            })
            .collect();
        let gone: Vec<Event> = pods
            .iter()
            .map(|pod| Event::PodGone { uid: pod.uid })
            .collect();
        told = allocations(|| {
            for event in bound.into_iter().chain(gone) {
                engine.apply(event).expect("a legal event");
            }
        });
        engine.check().expect("a consistent engine");
        let spec = gang("g", members);
        let (key, uid) = (spec.key.clone(), spec.uid);
        apply(&mut engine, [Event::GangGone { key, uid }]);
    }
    (decided, told)
}

fn slices(list: &[(u32, SliceChoice)]) -> CardWant {
    let slices = list.iter().map(|(count, slice)| SliceRequest {
        count: *count,
        slice: slice.clone(),
    });
    CardWant::Slices {
        slices: slices.collect(),
        cards: Apart::Distinct,
    }
}

#[test]
fn a_warm_cycle_of_slices_allocates_nothing() {
    let profile = |name: &str| SliceChoice::Profile(name.into());
    let least = SliceChoice::AtLeast {
        memory_mib: 9000,
        compute_slices: 0,
    };
    for list in [
        vec![(1, profile("1g.5gb"))],
        vec![(1, profile("3g.20gb"))],
        vec![(2, profile("2g.10gb"))],
        vec![(1, profile("2g.10gb")), (1, profile("1g.5gb"))],
        vec![(1, least)],
    ] {
        let made = warm_parts(&CardMode::MigDynamic, slices(&list), 20, false);
        assert_eq!(made, (0, 0), "{list:?}");
    }
}

#[test]
fn a_warm_cycle_of_existing_slices_allocates_nothing() {
    let instances = (0..7).map(|start| MigInstance {
        profile: "1g.5gb".into(),
        start,
    });
    let want = slices(&[(1, SliceChoice::Profile("1g.5gb".into()))]);
    let made = warm_parts(&CardMode::MigStatic(instances.collect()), want, 20, false);
    assert_eq!(made, (0, 0));
}

#[test]
fn a_warm_cycle_of_shares_and_replicas_allocates_nothing() {
    let shares = CardWant::Shares {
        count: 1,
        memory: ShareMemory::Mib(9000),
        compute_milli: 200,
        cards: Apart::Any,
    };
    let replicas = CardWant::Replicas {
        count: 2,
        cards: Apart::Distinct,
    };
    assert_eq!(warm_parts(&CardMode::Shared, shares, 20, false), (0, 0));
    assert_eq!(
        warm_parts(&CardMode::Replicas(4), replicas, 20, false),
        (0, 0)
    );
}

#[test]
fn a_warm_cycle_of_linked_cards_allocates_nothing() {
    let pairs = CardWant::Whole(2);
    assert_eq!(warm_parts(&CardMode::Whole, pairs, 20, true), (0, 0));
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
