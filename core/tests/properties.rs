//! Promises of the engine under random sequences of outside events; see `support/events.rs`.
//!
//! A sequence that fails is shrunk to its shortest part; put it into `fuzz/seeds/engine`
//! once mended.
#![allow(unreachable_pub, reason = "modules that several tests share")]

#[path = "support/events.rs"]
mod events;
#[path = "support/random.rs"]
mod random;

use events::{PARTS, Step, outcome, parts_after, run, run_aloud};
use proptest::{prelude::*, test_runner::RngSeed};

fn setting<T: std::str::FromStr>(name: &str, default: T) -> T {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is {text:?}; accepted: a number"))
    })
}

/// How many sequences: as proptest has it.
fn cases() -> u32 {
    setting("PROPTEST_CASES", 2000)
}

/// Which: the same each time, unless another seed is asked for.
fn seed() -> u64 {
    setting("PROPTEST_RNG_SEED", 1)
}

/// Prints what happens in one sequence, given as proptest prints it:
/// `GANGLINE_STEPS='[[55, 12, 0, 0]]' cargo test --test properties aloud -- --nocapture`
#[test]
fn aloud() {
    let text = std::env::var("GANGLINE_STEPS").unwrap_or_default();
    let bytes: Vec<u8> = text
        .split(|letter: char| !letter.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .collect();
    run_aloud(bytes.as_chunks().0);
}

/// Sequences about parts of cards lead to pods that hold some, or they would show nothing.
#[test]
fn random_sequences_hold_parts_of_cards() {
    let mut random = random::Random::new(3);
    let mut holding = 0;
    for _ in 0..200 {
        let steps: Vec<Step> = (0..60)
            .map(|_| {
                let [_, who, how, more, ..] = random.next().to_le_bytes();
                let what = PARTS + random.below(16) as u8;
                [what, who, how, more]
            })
            .collect();
        holding += usize::from(parts_after(&steps) > 2);
    }
    assert!(holding > 50, "{holding} of 200");
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let parts = (PARTS..=u8::MAX, any::<[u8; 3]>())
        .prop_map(|(what, [who, how, more])| [what, who, how, more]);
    let step = prop_oneof![3 => any::<Step>(), 2 => parts];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed()),
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_sequence_of_events_keeps_the_promises(steps in steps()) {
        run(&steps);
    }

    #[test]
    fn equal_events_give_equal_decisions(steps in steps()) {
        prop_assert_eq!(outcome(&steps), outcome(&steps));
    }
}
