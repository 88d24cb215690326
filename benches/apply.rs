//! How long it takes to note one event, and to note a whole cluster.

use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use gangline::{
    Event, Scheduler,
    engine::Config,
    gang::{PodPhase, PodSpec},
    request::Template,
    units::Nanos,
};
use gangline_benches::{apply, cluster, node, node_name, pod, template};

const NODES: u32 = 5_000;
/// Events measured in one go: few enough to be warm, as an event is that was just read.
const CHUNK: u32 = 100;

/// Measures `apply` alone, per event: `make` gives the events of a chunk, `reset` undoes them.
fn time_events(
    times: u64,
    engine: &mut Scheduler,
    before: impl Fn(&mut Scheduler),
    make: impl Fn(u32) -> Event,
    after: impl Fn(&mut Scheduler),
) -> Duration {
    let mut spent = Duration::ZERO;
    let mut left = times;
    while left > 0 {
        let count = u32::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        left -= u64::from(count);
        before(engine);
        let events: Vec<Event> = (0..count).map(&make).collect();
        let start = Instant::now();
        for event in events {
            apply(engine, event);
        }
        spent += start.elapsed();
        after(engine);
    }
    spent
}

/// A node in the cluster that an event of a chunk is about; neighbours are far apart.
fn spot(index: u32) -> u32 {
    index * 37 % NODES
}

fn events(criterion: &mut Criterion) {
    let mut engine = cluster(NODES);
    engine.decide(Nanos::ZERO);

    let mut group = criterion.benchmark_group("node_event");
    let cordoned = |index: u32, unschedulable: bool| {
        let mut spec = node(spot(index));
        spec.unschedulable = unschedulable;
        Event::Node(spec)
    };
    let all = |engine: &mut Scheduler, unschedulable: bool| {
        for index in 0..CHUNK {
            apply(engine, cordoned(index, unschedulable));
        }
    };
    group.bench_function("cordon", |bencher| {
        bencher.iter_custom(|times| {
            time_events(
                times,
                &mut engine,
                |_| {},
                |index| cordoned(index, true),
                |engine| all(engine, false),
            )
        });
    });
    group.bench_function("unchanged", |bencher| {
        bencher.iter_custom(|times| {
            time_events(
                times,
                &mut engine,
                |_| {},
                |index| cordoned(index, false),
                |_| {},
            )
        });
    });
    group.finish();

    let mut group = criterion.benchmark_group("pod_event");
    let template = template(1);
    let waiting = |index: u32| pod(&format!("pod-{index}"), &template);
    let come = |engine: &mut Scheduler| {
        for index in 0..CHUNK {
            apply(engine, Event::Pod(waiting(index)));
        }
    };
    let go = |engine: &mut Scheduler| {
        for index in 0..CHUNK {
            let uid = waiting(index).uid;
            apply(engine, Event::PodGone { uid });
        }
    };
    let bound = |index: u32| {
        Event::Pod(PodSpec {
            node: Some(node_name(spot(index))),
            ..waiting(index)
        })
    };
    let bind = |engine: &mut Scheduler| {
        come(engine);
        for index in 0..CHUNK {
            apply(engine, bound(index));
        }
    };
    let gone = |index: u32| Event::PodGone {
        uid: waiting(index).uid,
    };
    group.bench_function("appears", |bencher| {
        bencher.iter_custom(|times| {
            time_events(
                times,
                &mut engine,
                |_| {},
                |index| Event::Pod(waiting(index)),
                go,
            )
        });
    });
    group.bench_function("bound", |bencher| {
        bencher.iter_custom(|times| time_events(times, &mut engine, come, bound, go));
    });
    group.bench_function("runs", |bencher| {
        let runs = |index: u32| match bound(index) {
            Event::Pod(spec) => Event::Pod(PodSpec {
                phase: PodPhase::Running,
                ..spec
            }),
            other => other,
        };
        bencher.iter_custom(|times| time_events(times, &mut engine, bind, runs, go));
    });
    group.bench_function("gone", |bencher| {
        bencher.iter_custom(|times| time_events(times, &mut engine, bind, gone, go));
    });
    group.finish();
}

/// A whole cluster told anew: 5,000 nodes with 28 pods each, 8 of them with a card.
fn rebuild(criterion: &mut Criterion) {
    const PODS_A_NODE: u32 = 28;
    let mut group = criterion.benchmark_group("rebuild_5000_nodes_140000_pods");
    group.sample_size(10);
    let world = |shared: bool| {
        let small = std::sync::Arc::new(Template {
            namespace: "team".into(),
            resources: [("cpu".into(), 1_000), ("memory".into(), 1 << 30)].into(),
            ..Template::default()
        });
        let large = template(1);
        let mut events: Vec<Event> = (0..NODES).map(|index| Event::Node(node(index))).collect();
        for index in 0..NODES * PODS_A_NODE {
            let template = if index % PODS_A_NODE < 8 {
                &large
            } else {
                &small
            };
            let mut spec = pod(&format!("app-{}-{index}", index / 10), template);
            if !shared {
                // As adapters see it: an object each, with labels of its own.
                let mut own = Template::clone(template);
                own.labels
                    .insert("app".into(), format!("app-{}", index / 10));
                own.labels.insert("pod-index".into(), format!("{index}"));
                spec.template = own.into();
            }
            spec.node = Some(node_name(index / PODS_A_NODE));
            spec.phase = PodPhase::Running;
            events.push(Event::Pod(spec));
        }
        events
    };
    for (name, shared) in [("shared_templates", true), ("own_templates", false)] {
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || world(shared),
                |events| {
                    let mut engine = Scheduler::new(Config {
                        levels: vec![
                            gangline_benches::ZONE.into(),
                            gangline_benches::BLOCK.into(),
                            gangline_benches::RACK.into(),
                        ],
                        ..Config::default()
                    });
                    for event in events {
                        apply(&mut engine, event);
                    }
                    engine.decide(Nanos::ZERO);
                    engine
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, events, rebuild);
criterion_main!(benches);
