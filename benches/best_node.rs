//! The best node for k cards, once warm: by distinct states, not by nodes.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use gangline::{
    Event,
    gang::{PodPhase, PodSpec},
};
use gangline_benches::{apply, cluster, node_name, pod, template};

fn best_node(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("best_node");
    for nodes in [1_000, 10_000, 100_000] {
        let mut engine = cluster(nodes);
        for cards in [1, 8] {
            let asked = template(cards);
            let name = format!("{cards}_cards");
            group.bench_function(BenchmarkId::new(name, nodes), |bencher| {
                bencher.iter(|| engine.best_node(black_box(&asked)));
            });
        }
        // Each time the answer is used and given back: two pod events and two questions.
        let asked = template(1);
        let mut turn = 0;
        let events: Vec<[Event; 2]> = (0..64)
            .map(|index| {
                let waiting = pod(&format!("turn-{index}"), &asked);
                let gone = Event::PodGone { uid: waiting.uid };
                let running = PodSpec {
                    node: Some(node_name(index * 13 % nodes)),
                    phase: PodPhase::Running,
                    ..waiting
                };
                [Event::Pod(running), gone]
            })
            .collect();
        group.bench_function(
            BenchmarkId::new("after_each_of_2_pod_events", nodes),
            |bencher| {
                bencher.iter_batched(
                    || {
                        turn = (turn + 1) % events.len();
                        events[turn].clone()
                    },
                    |[come, go]| {
                        apply(&mut engine, come);
                        let first = engine.best_node(black_box(&asked));
                        apply(&mut engine, go);
                        (first, engine.best_node(black_box(&asked)))
                    },
                    criterion::BatchSize::SmallInput,
                );
            },
        );
    }
    group.finish();
}

criterion_group!(benches, best_node);
criterion_main!(benches);
