//! Every state that a gang of up to two roles with up to three members can reach, under all rules
//! and everything that can happen outside, is visited; in each the promises are checked that belong
//! to the life cycle: members run at or above the minimum or under a deadline, waiting holds
//! nothing, a policy fires once, ends are final, clocks count time and nothing else.

use std::collections::HashSet;

use gangline::{
    gang::{
        LossMode, TimeoutPolicy,
        life::{Census, Command, Commands, End, Event, Life, Phase, Rules, step},
    },
    units::Nanos,
};

mod model;
mod promises;

use model::{Counted, Model, Ranks, Seen, Shape, Step, all_rules, shapes};

fn enumerate(step: Step, shapes: &[Shape]) -> Result<Seen, String> {
    let ranks = Ranks::new();
    let mut seen = Seen::default();
    for shape in shapes {
        let counted = Counted::new(*shape, &ranks);
        for rules in all_rules() {
            let model = Model {
                counted: &counted,
                rules,
                step,
            };
            (model.enumerate(&mut seen)).map_err(|what| format!("{shape:?}: {what}"))?;
        }
    }
    Ok(seen)
}

#[test]
fn every_reachable_state_keeps_the_promises() {
    let seen = enumerate(step, &shapes()).unwrap_or_else(|broken| panic!("{broken}"));
    println!(
        "visited {} states by {} transitions; the machine itself was in {}",
        seen.worlds,
        seen.transitions,
        seen.lives.len()
    );
    let phases = HashSet::from([
        Phase::Gathering,
        Phase::Queued,
        Phase::Planned,
        Phase::Binding,
        Phase::Running,
        Phase::Degraded,
        Phase::Ended(End::Completed),
        Phase::Ended(End::Failed),
        Phase::Ended(End::Deleted),
    ]);
    assert_eq!(seen.phases, phases);
}

fn every_census() -> impl Iterator<Item = Census> {
    (0_u32..1 << 8).map(|bits| {
        let bit = |index: u32| bits >> index & 1 == 1;
        Census {
            is_ready: bit(0),
            is_ready_anew: bit(1),
            is_covered: bit(2),
            is_satisfied: bit(3),
            is_finished: bit(4),
            has_waiting: bit(5),
            has_held: bit(6),
            has_bound: bit(7),
        }
    })
}

fn every_event() -> impl Iterator<Item = Event> {
    [
        Event::Changed,
        Event::PlanFound,
        Event::PlanLost,
        Event::BindStarted,
        Event::Deleted,
    ]
    .into_iter()
    .chain([0, 1, 2, u64::MAX].map(|span| Event::Elapsed(Nanos(span))))
}

/// Facts that contradict each other, events that nobody expects, rules that changed or make no
/// sense: the machine still answers, ends stay ends, and what holds nothing gives holds back.
#[test]
fn every_pair_of_state_and_event_is_defined() {
    let shape = Shape {
        counts: [2, 1],
        minima: [1, 0],
        total: 2,
    };
    let seen = enumerate(step, &[shape]).unwrap_or_else(|broken| panic!("{broken}"));
    let lives: Vec<Life> = seen.lives.into_iter().collect();
    let mut rules = all_rules();
    rules.extend(all_rules().into_iter().map(|rules| Rules {
        schedule_timeout: rules.schedule_timeout.map(|_| Nanos::ZERO),
        degraded_deadline: Nanos::ZERO,
        ..rules
    }));
    rules.extend(all_rules().into_iter().map(|rules| Rules {
        schedule_timeout: rules.schedule_timeout.map(|_| Nanos::MAX),
        degraded_deadline: Nanos::MAX,
        ..rules
    }));
    for life in &lives {
        for rules in &rules {
            for census in every_census() {
                for event in every_event() {
                    let (next, commands) = step(*life, rules, census, event);
                    let context = format!("{life:?} {rules:?} {census:?} {event:?}");
                    if let Phase::Ended(_) = life.phase() {
                        assert_eq!((next, commands), (*life, Commands::NONE), "{context}");
                        continue;
                    }
                    let holds_nothing = matches!(
                        next.phase(),
                        Phase::Gathering | Phase::Queued | Phase::Ended(_)
                    );
                    let facts_were_heard = !matches!(event, Event::Elapsed(_));
                    if holds_nothing && facts_were_heard && census.has_held {
                        assert!(commands.contains(Command::ReleaseHolds), "{context}");
                    }
                    if commands.contains(Command::Unwind) {
                        assert!(census.has_bound && !census.is_satisfied, "{context}");
                        assert!(matches!(event, Event::Elapsed(_)), "{context}");
                    }
                    if commands.contains(Command::Hold) {
                        let is_asked = life.in_queue() && event == Event::PlanFound;
                        assert!(is_asked && !census.is_finished, "{context}");
                    }
                    let put = commands.contains(Command::Enqueue);
                    let taken = commands.contains(Command::Dequeue);
                    assert!(!(put && taken), "{context}");
                    assert_eq!(
                        next.in_queue(),
                        (life.in_queue() || put) && !taken,
                        "{context}"
                    );
                }
            }
        }
    }
}

/// The checks bite: each of these machines breaks one promise, and is caught.
#[test]
fn a_broken_machine_is_caught() {
    let shape = Shape {
        counts: [3, 1],
        minima: [2, 0],
        total: 3,
    };
    let broken: [(&str, Step); 9] = [
        ("takes no notice of a loss", |life, rules, census, event| {
            let rules = Rules {
                on_loss: LossMode::Once,
                ..*rules
            };
            step(life, &rules, census, event)
        }),
        (
            "takes a hold for a member that runs",
            |life, rules, mut census, event| {
                census.is_satisfied |= census.is_covered;
                step(life, rules, census, event)
            },
        ),
        ("starts with too few", |life, rules, mut census, event| {
            census.is_ready |= census.has_waiting;
            step(life, rules, census, event)
        }),
        (
            "does not say what is to be done",
            |life, rules, census, event| (step(life, rules, census, event).0, Commands::NONE),
        ),
        (
            "forgets time while it is degraded",
            |life, rules, census, event| match (life.phase(), event) {
                (Phase::Degraded, Event::Elapsed(_)) => (life, Commands::NONE),
                _ => step(life, rules, census, event),
            },
        ),
        (
            "counts time twice",
            |life, rules, census, event| match event {
                Event::Elapsed(span) => step(
                    life,
                    rules,
                    census,
                    Event::Elapsed(span.saturating_add(span)),
                ),
                _ => step(life, rules, census, event),
            },
        ),
        (
            "fails where it should wait on",
            |life, rules, census, event| {
                let rules = Rules {
                    on_timeout: TimeoutPolicy::Fail,
                    ..*rules
                };
                step(life, &rules, census, event)
            },
        ),
        (
            "keeps a plan that is lost",
            |life, rules, census, event| match event {
                Event::PlanLost => (life, Commands::NONE),
                _ => step(life, rules, census, event),
            },
        ),
        (
            "lives on after its end",
            |life, rules, census, event| match life.phase() {
                Phase::Ended(_) => (Life::default(), Commands::NONE),
                _ => step(life, rules, census, event),
            },
        ),
    ];
    for (what, broken) in broken {
        assert!(enumerate(broken, &[shape]).is_err(), "not caught: {what}");
    }
}
