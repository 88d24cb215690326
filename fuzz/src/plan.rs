//! What `gangline plan` does with a world, for every target that makes one.

use gangline::{Config, Event, Scheduler};
use gangline_k8s::{
    output::{Report, text},
    world::World,
};

/// A large search is only slow, not wrong.
const SEARCH_STEPS: u64 = 500;
/// The engine has said everything long before; each round places or refuses something.
const ROUNDS: u32 = 1000;

/// Tells the engine of a world, lets it decide, and shows all of it. `must_take` names the events
/// that the engine must not refuse.
pub(crate) fn plan(world: World, must_take: impl Fn(&Event) -> bool) -> Scheduler {
    let mut scheduler = Scheduler::new(Config {
        levels: world.levels,
        search_steps: SEARCH_STEPS,
        ..Config::default()
    });
    for event in world.events {
        let needed = must_take(&event);
        let taken = scheduler.apply(event);
        assert!(!needed || taken.is_ok(), "{taken:?}");
    }
    let silent = (0..ROUNDS).any(|_| scheduler.decide(world.now).is_empty());
    assert!(silent, "decides for ever");
    scheduler.check().expect("the engine agrees with itself");

    for complaint in &world.complaints {
        let line = complaint.to_string();
        assert!(!line.contains('\n'), "more than one line: {line:?}");
    }
    let gangs = scheduler.gangs();
    let report = Report::new(&scheduler, gangs, world.complaints, || ());
    text::plan(&report, true, true);
    for gang in &report.gangs {
        text::why(gang);
    }
    serde_json::to_string(&report).expect("every report can be written");
    scheduler
}
