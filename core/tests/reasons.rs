//! Asking for reasons in place changes nothing, and neither does counting.
#![allow(unreachable_pub, reason = "modules that several tests share")]

#[path = "support/events.rs"]
mod events;

use events::{Step, snapshot_after};
use gangline::{Scheduler, gang::life::Phase, units::Nanos};
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
        let totals = asked.totals(|_| false);
        let groups: u32 = totals.groups.iter().map(|(_, count)| count).sum();
        let views = asked.gangs().into_iter().filter_map(|gang| asked.gang(gang));
        let alive = views.filter(|gang| !gang.single && !matches!(gang.phase, Phase::Ended(_)));
        prop_assert_eq!(groups as usize, alive.count());
        let cards = totals.cards.iter().map(|(_, cards)| {
            cards.free + cards.held + cards.in_parts + cards.unusable
        });
        let known = asked.nodes().into_iter().flat_map(|node| node.cards);
        let known: u64 = known.map(|cards| u64::from(cards.all.len())).sum();
        prop_assert!(cards.sum::<u64>() >= known);
        let (fragment, idle) = asked.market().fragmentation();
        prop_assert!(fragment <= idle);
        asked.check().unwrap();
        prop_assert_eq!(asked.snapshot(), quiet.snapshot());
        let now = asked.now().saturating_add(Nanos(1));
        prop_assert_eq!(asked.decide(now).to_vec(), quiet.decide(now).to_vec());
        prop_assert_eq!(asked.decision_hash(), quiet.decision_hash());
        prop_assert_eq!(asked.snapshot(), quiet.snapshot());
    }
}
