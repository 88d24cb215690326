//! Instructions of the three figures that matter most, counted under valgrind.
//!
//! Counts do not depend on the load of the machine, so that they can be held against the committed
//! limits below: `make bench-gate`. A limit is what was counted plus a tenth; a change that needs
//! more must say why, and one that needs much less should lower it.
#![allow(missing_docs, reason = "the harness makes modules")]

use std::{hint::black_box, sync::Arc};

use gangline::{Event, NodeIx, Scheduler, Verdict, gang::TopologyRule, request::Template};
use gangline_benches::{Arrival, RACK, apply, cluster, node_name, pod, preferred, template};
use gungraun::{
    Callgrind, EventKind, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main,
};

/// A gang that waits, after one that came and went: everything is warm.
fn waiting(topology: TopologyRule) -> Arrival {
    let mut arrival = Arrival::new(cluster(5_000), 1_000, topology);
    arrival.arrive();
    arrival.decide();
    arrival.leave();
    arrival.arrive();
    arrival
}

/// Fails the run above this many instructions.
fn at_most(instructions: u64) -> LibraryBenchmarkConfig {
    let mut callgrind = Callgrind::default();
    callgrind.hard_limits([(EventKind::Ir, instructions)]);
    LibraryBenchmarkConfig::default().tool(callgrind).to_owned()
}

// Valgrind counts whole functions: what is dropped afterwards is handed out.
#[library_benchmark]
#[bench::unconstrained(
    setup = waiting, args = (TopologyRule::default()), config = at_most(2_740_000)
)]
#[bench::preferred_rack(
    setup = waiting, args = (preferred(RACK)), config = at_most(6_130_000)
)]
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
#[bench::one_card(setup = warm, config = at_most(1_000))]
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
#[bench::bound(setup = before_bind, config = at_most(5_960))]
fn apply_pod((mut engine, event): (Scheduler, Event)) -> Scheduler {
    apply(&mut engine, black_box(event));
    engine
}

library_benchmark_group!(
    name = figures,
    benchmarks = [decide_gang, best_node, apply_pod]
);
main!(library_benchmark_groups = figures);
