//! Asking for reasons in place changes nothing.
#![allow(unreachable_pub, reason = "modules that several tests share")]

#[path = "support/events.rs"]
mod events;

use events::{Step, snapshot_after};
use gangline::{Scheduler, units::Nanos};
use proptest::{prelude::*, test_runner::RngSeed};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn who_is_asked_for_reasons_decides_as_if_nobody_had_asked(
        steps in prop::collection::vec(any::<Step>(), 1..60),
    ) {
        let snapshot = snapshot_after(&steps);
        let mut asked = Scheduler::restore(snapshot.clone()).unwrap();
        let mut quiet = Scheduler::restore(snapshot).unwrap();
        for gang in asked.gangs() {
            let reasons = asked.reasons(gang);
            let copied = quiet.explainer().why(gang);
            prop_assert_eq!(
                reasons.map(|it| (it.reason, it.members)),
                copied.map(|it| (it.reason, it.members))
            );
        }
        asked.check().unwrap();
        prop_assert_eq!(asked.snapshot(), quiet.snapshot());
        let now = asked.now().saturating_add(Nanos(1));
        prop_assert_eq!(asked.decide(now).to_vec(), quiet.decide(now).to_vec());
        prop_assert_eq!(asked.decision_hash(), quiet.decision_hash());
        prop_assert_eq!(asked.snapshot(), quiet.snapshot());
    }
}
