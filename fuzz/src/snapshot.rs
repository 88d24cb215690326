//! Snapshots as JSON, whatever they say: refused, or restored to an engine that agrees with itself.

use gangline::{
    engine::{Scheduler, Snapshot},
    units::Nanos,
};

/// What can be restored can decide, and its own snapshot restores to the same again.
pub fn snapshot(data: &[u8]) {
    let Ok(snapshot) = serde_json::from_slice::<Snapshot>(data) else {
        return;
    };
    // A budget of steps is the owner's own business; a huge one is only slow.
    let steps = snapshot.config.search_steps.min(2_000);
    let config = gangline::Config {
        search_steps: steps,
        ..snapshot.config.clone()
    };
    let Ok(mut engine) = Scheduler::restore(Snapshot { config, ..snapshot }) else {
        return;
    };
    engine
        .check()
        .expect("a restored engine agrees with itself");
    let now = engine.now();
    engine.decide(now);
    engine.decide(now.saturating_add(Nanos::from_secs(1000)));
    engine
        .check()
        .expect("a restored engine agrees with itself");
    let written = engine.snapshot();
    let again = Scheduler::restore(written.clone()).expect("our own snapshots are legal");
    assert_eq!(again.snapshot(), written);
}
