//! Instructions of the three figures that matter most, counted under valgrind.
//!
//! Counts do not depend on the load of the machine, so that they can be compared with the committed
//! baseline: `make bench-gate`.

use std::hint::black_box;
use std::sync::Arc;

use gangline::gang::TopologyRule;
use gangline::request::Template;
use gangline::{Event, NodeIx, Scheduler, Verdict};
use gangline_benches::{Arrival, RACK, apply, cluster, node_name, pod, preferred, template};
use gungraun::{library_benchmark, library_benchmark_group, main};

/// A gang that waits, after one that came and went: everything is warm.
fn waiting(topology: TopologyRule) -> Arrival {
    let mut arrival = Arrival::new(cluster(5_000), 1_000, topology);
    arrival.arrive();
    arrival.decide();
    arrival.leave();
    arrival.arrive();
    arrival
}

/// Valgrind counts whole functions: what is dropped afterwards is handed out.
#[library_benchmark]
#[bench::unconstrained(setup = waiting, args = (TopologyRule::default()))]
#[bench::preferred_rack(setup = waiting, args = (preferred(RACK)))]
fn decide_gang(mut arrival: Arrival) -> (Arrival, Option<(Verdict, usize)>) {
    let decided = black_box(arrival.decide());
    (arrival, decided)
}

fn warm() -> (Scheduler, Arc<Template>) {
    let mut engine = cluster(5_000);
    let asked = template(1);
    engine.best_node(&asked);
    (engine, asked)
}

#[library_benchmark]
#[bench::one_card(setup = warm)]
fn best_node((mut engine, asked): (Scheduler, Arc<Template>)) -> (Scheduler, Option<NodeIx>) {
    let node = engine.best_node(black_box(&asked));
    (engine, node)
}

fn before_bind() -> (Scheduler, Event) {
    let mut engine = cluster(5_000);
    let mut spec = pod("new", &template(1));
    apply(&mut engine, Event::Pod(spec.clone()));
    spec.node = Some(node_name(4_321));
    (engine, Event::Pod(spec))
}

#[library_benchmark]
#[bench::bound(setup = before_bind)]
fn apply_pod((mut engine, event): (Scheduler, Event)) -> Scheduler {
    apply(&mut engine, black_box(event));
    engine
}

library_benchmark_group!(
    name = figures,
    benchmarks = [decide_gang, best_node, apply_pod]
);
main!(library_benchmark_groups = figures);
