//! How many bytes a node, a pod and a member of a gang keep, by a counting allocator.
//!
//! Prints and measures no time. What an object brings along in its own strings is part of it.

use std::alloc::System;

use gangline::{Event, gang::TopologyRule, units::Nanos};
use gangline_benches::{apply, cluster, gang, node_name, pod, template};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const GANGS: u32 = 100;
const MEMBERS: u32 = 1_000;
const PODS: u32 = 140_000;

/// Bytes that are kept since the region began.
fn kept(region: &Region<'_, System>) -> usize {
    let stats = region.change();
    stats
        .bytes_allocated
        .saturating_sub(stats.bytes_deallocated)
}

fn report(what: &str, bytes: usize, count: u32) {
    println!("{what:<48} {:>6} bytes", bytes / count as usize);
}

fn main() {
    for nodes in [5_000, 100_000] {
        let region = Region::new(ALLOCATOR);
        let mut engine = cluster(nodes);
        engine.decide(Nanos::ZERO);
        let name = format!("node of {nodes}, with 0.8 running pods each");
        report(&name, kept(&region), nodes);
    }

    let mut engine = cluster(5_000);
    engine.decide(Nanos::ZERO);
    let region = Region::new(ALLOCATOR);
    let template = template(0);
    for index in 0..PODS {
        let mut spec = pod(&format!("pod-{index}"), &template);
        spec.node = Some(node_name(index % 5_000));
        apply(&mut engine, Event::Pod(spec));
    }
    report(
        "running pod without a group, of 140000",
        kept(&region),
        PODS,
    );

    let mut engine = cluster(5_000);
    engine.decide(Nanos::ZERO);
    let region = Region::new(ALLOCATOR);
    for number in 0..GANGS {
        let (spec, pods) = gang(&format!("gang-{number}"), MEMBERS, TopologyRule::default());
        apply(&mut engine, Event::Gang(spec));
        for pod in pods {
            apply(&mut engine, Event::Pod(pod));
        }
    }
    report(
        "member of a waiting gang of 1000",
        kept(&region),
        GANGS * MEMBERS,
    );
    engine.decide(Nanos::ZERO);
    report(
        "the same, once decided (3 gangs fit)",
        kept(&region),
        GANGS * MEMBERS,
    );
}
