//! How long a decision takes.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use gangline::{Event, Verdict, gang::TopologyRule, units::Nanos};
use gangline_benches::{Arrival, RACK, ZONE, apply, cluster, pod, preferred, required, template};

const NODES: u32 = 5_000;
const MEMBERS: u32 = 1_000;
/// More than any zone has free nodes for.
const TOO_MANY: u32 = 1_800;

/// Measures `decide` alone, holds included, for a gang that comes and goes.
fn time_decide(arrival: &mut Arrival, times: u64, expected: (Verdict, usize)) -> Duration {
    let mut spent = Duration::ZERO;
    for _ in 0..times {
        arrival.arrive();
        let start = Instant::now();
        let decided = black_box(arrival.decide());
        spent += start.elapsed();
        assert_eq!(decided, Some(expected));
        arrival.leave();
    }
    spent
}

fn gang(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("gang_of_1000x8_on_5000");
    let engine = cluster(NODES);
    let rules = [
        ("unconstrained", TopologyRule::default()),
        ("required_zone", required(ZONE)),
        ("preferred_rack", preferred(RACK)),
        (
            "required_zone_preferred_rack",
            TopologyRule {
                preferred: Some(RACK.into()),
                ..required(ZONE)
            },
        ),
    ];
    for (name, rule) in rules {
        let mut arrival = Arrival::new(engine.clone(), MEMBERS, rule);
        let expected = (Verdict::Placed, MEMBERS as usize);
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|times| time_decide(&mut arrival, times, expected));
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("infeasible_gang_on_5000");
    let mut arrival = Arrival::new(engine, TOO_MANY, required(ZONE));
    group.bench_function("required_zone", |bencher| {
        bencher.iter_custom(|times| time_decide(&mut arrival, times, (Verdict::Infeasible, 0)));
    });
    arrival.arrive();
    let decided = arrival.decide();
    assert_eq!(decided, Some((Verdict::Infeasible, 0)));
    group.sample_size(10);
    group.bench_function("why", |bencher| {
        bencher.iter(|| {
            let gang = arrival.gang();
            gang.and_then(|gang| arrival.engine.why(gang))
        });
    });
    group.finish();
}

/// One cycle over many pods without a group, of four sizes.
fn pending_pods(criterion: &mut Criterion) {
    const PODS: u32 = 10_000;
    let mut group = criterion.benchmark_group("pending_pods_10000_on_5000");
    group.sample_size(20);
    let engine = cluster(NODES);
    let sizes = [1, 0, 2, 4].map(template);
    let pods: Vec<_> = (0..PODS)
        .map(|index| {
            pod(
                &format!("single-{index}"),
                &sizes[index as usize % sizes.len()],
            )
        })
        .collect();
    // All fit; or nothing is free for any of them.
    let mut full = engine.clone();
    for index in 0..NODES {
        let mut spec = gangline_benches::node(index);
        spec.unschedulable = true;
        apply(&mut full, Event::Node(spec));
    }
    for (name, engine, placed) in [("all_fit", engine, PODS as usize), ("none_fits", full, 0)] {
        let mut engine = engine;
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter_custom(|times| {
                let mut spent = Duration::ZERO;
                for _ in 0..times {
                    for pod in &pods {
                        apply(&mut engine, Event::Pod(pod.clone()));
                    }
                    let start = Instant::now();
                    let decisions = black_box(engine.decide(Nanos::ZERO));
                    spent += start.elapsed();
                    let found = decisions.iter().filter(|it| it.verdict == Verdict::Placed);
                    assert_eq!(found.count(), placed);
                    for pod in &pods {
                        apply(&mut engine, Event::PodGone { uid: pod.uid });
                    }
                }
                spent
            });
        });
    }
    group.finish();
}

criterion_group!(benches, gang, pending_pods);
criterion_main!(benches);
