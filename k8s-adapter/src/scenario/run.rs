//! Plays a scenario against a fresh engine.
//!
//! Data enters as a [`Scenario`] and leaves as an [`Outcome`]: the timeline of what happened and what
//! was decided, and every expectation that did not hold. At each moment: pods whose time is over end,
//! the entries of that moment happen in order, the engine decides until it has nothing more to say
//! (placed members are bound at once), then the expectations are checked.

use std::collections::{BTreeMap, BTreeSet};

use gangline::{
    Event, Scheduler, Verdict,
    engine::{MemberState, Snapshot},
    units::{Nanos, Uid},
};
use serde::Serialize;

use super::{
    Scenario, ScenarioError,
    event::Action,
    expect::{Expect, Seen},
    known::Known,
    outside::Outside,
};
use crate::output::{GangReport, MemberReport, Nodes, ReasonReport, hash_text, text, verdict_word};

/// More rounds of decisions than this at one moment mean that the engine and the outside chase each
/// other for ever.
const ROUNDS: u32 = 1000;

/// More moments than this are refused: a tick of a millisecond over a year is a typo.
const MOMENTS: usize = 1_000_000;

/// What a scenario came to.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// Version of this form; see `docs/output.md`.
    pub schema_version: u32,
    /// The scenario's name.
    pub scenario: String,
    /// Whether every expectation held.
    pub passed: bool,
    /// How many expectations were checked, each moment of a range counted once.
    pub checked: u32,
    /// What happened, moment by moment.
    pub timeline: Vec<Moment>,
    /// Each expectation that did not hold, one line each.
    pub failures: Vec<String>,
    /// Hash of every decision, 16 hexadecimal digits.
    pub decision_hash: String,
}

/// A moment in which something happened.
#[derive(Debug, Serialize)]
pub struct Moment {
    /// When, in nanoseconds since the start.
    pub at_nanos: u64,
    /// When, for people.
    pub at: String,
    /// What happened outside.
    pub events: Vec<String>,
    /// What was decided.
    pub decisions: Vec<DecisionLine>,
    /// What did not hold.
    pub failures: Vec<String>,
}

/// A decision.
#[derive(Debug, Serialize)]
pub struct DecisionLine {
    /// The gang, as `namespace/name`.
    pub gang: String,
    /// What was decided.
    pub verdict: Verdict,
    /// Its places after the decision, for people.
    pub places: String,
    /// Its members that have a place after the decision.
    pub members: Vec<MemberReport>,
    /// Why it waits.
    pub reason: Option<ReasonReport>,
}

/// Plays a scenario up to a moment, or to its end. `progress` is told how many moments are
/// done, and how many there are to do.
pub fn run(
    scenario: &Scenario,
    until: Option<Nanos>,
    progress: impl FnMut(u64, u64),
) -> Result<Outcome, ScenarioError> {
    play(scenario, until, progress).map(|(outcome, _)| outcome)
}

/// The same as [`run`], and the engine as it is at the end.
pub fn play(
    scenario: &Scenario,
    until: Option<Nanos>,
    mut progress: impl FnMut(u64, u64),
) -> Result<(Outcome, Scheduler), ScenarioError> {
    let mut play = Play::new(scenario)?;
    let known = Known::new(scenario, &play.scheduler.config().levels);
    let placed = known.has_nodes_of_work(scenario);
    placed.map_err(|wrong| ScenarioError::invalid("work", wrong))?;
    for (index, expect) in scenario.expect.iter().enumerate() {
        let checked = expect.check_names(&known);
        checked.map_err(|wrong| ScenarioError::invalid(format!("expect[{index}]"), wrong))?;
    }
    play.set_up(scenario)?;
    let mut agenda = agenda(scenario)?;
    let mut timeline = Vec::new();
    let mut failures = Vec::new();
    let mut checked = 0;
    let last = agenda.last_key_value().map_or(Nanos::ZERO, |(at, _)| *at);
    let mut done = 0;
    loop {
        // Running pods that end make moments of their own, up to the last written one.
        let planned = agenda.first_key_value().map(|(at, _)| *at);
        let ends = play
            .outside
            .next_end()
            .map(|end| end.saturating_sub(play.start));
        let ends = ends.filter(|at| *at <= last);
        let Some(now) = planned.into_iter().chain(ends).min() else {
            break;
        };
        if until.is_some_and(|until| now > until) {
            break;
        }
        let entries = agenda.remove(&now).unwrap_or_default();
        let mut moment = play.moment(now, entries)?;
        let due = scenario
            .expect
            .iter()
            .filter(|expect| (expect.at.from..=expect.at.to).contains(&now));
        let due: Vec<&Expect> = due.collect();
        if !due.is_empty() {
            let seen = Seen::new(&play.scheduler);
            checked += due.len() as u32;
            moment.failures = due.iter().flat_map(|expect| expect.check(&seen)).collect();
            failures.extend(
                moment
                    .failures
                    .iter()
                    .map(|line| format!("{}: {line}", moment.at)),
            );
        }
        if moment.has_news() {
            timeline.push(moment);
        }
        done += 1;
        progress(done, done + agenda.len() as u64);
    }
    let decision_hash = hash_text(play.scheduler.decision_hash());
    if let Some(expected) = scenario.decision_hash.as_ref().filter(|_| until.is_none()) {
        checked += 1;
        if *expected != decision_hash {
            failures.push(format!(
                "decision hash: expected {expected}, is {decision_hash}"
            ));
        }
    }
    let outcome = Outcome {
        schema_version: crate::output::SCHEMA_VERSION,
        scenario: scenario.scenario.clone(),
        passed: failures.is_empty(),
        checked,
        timeline,
        failures,
        decision_hash,
    };
    Ok((outcome, play.scheduler))
}

/// An entry that is due: where it is written, its action, and the refusal that it wants.
type Due = (String, Action, Option<String>);

/// Everything that is written, by moment.
fn agenda(scenario: &Scenario) -> Result<BTreeMap<Nanos, Vec<Due>>, ScenarioError> {
    let mut agenda: BTreeMap<Nanos, Vec<Due>> = BTreeMap::new();
    for (index, entry) in scenario.events.iter().enumerate() {
        let place = format!("events[{index}]");
        let action = entry.action(&place)?;
        let (every, times) = match entry.repeat {
            Some(repeat) => (repeat.every.0, repeat.times),
            None => (Nanos::ZERO, 1),
        };
        if times as usize > MOMENTS {
            return Err(ScenarioError::invalid(
                place,
                format!("at most {MOMENTS} repetitions"),
            ));
        }
        for turn in 0..times {
            let later = every.checked_mul(u64::from(turn));
            let at = later.and_then(|later| entry.at.0.checked_add(later));
            let at = at.ok_or_else(|| ScenarioError::invalid(&place, "repeats for too long"))?;
            let action = if entry.repeat.is_some() {
                action.in_turn(turn)
            } else {
                action.clone()
            };
            agenda
                .entry(at)
                .or_default()
                .push((place.clone(), action, entry.refused.clone()));
        }
    }
    for expect in &scenario.expect {
        agenda.entry(expect.at.from).or_default();
        agenda.entry(expect.at.to).or_default();
    }
    if let (Some(tick), Some((&last, _))) = (scenario.tick, agenda.last_key_value()) {
        let moments = last.0.checked_div(tick.0.0);
        let moments = moments.filter(|moments| *moments <= MOMENTS as u64);
        let moments = moments.ok_or_else(|| {
            ScenarioError::invalid("tick", format!("makes more than {MOMENTS} moments"))
        })?;
        for number in 0..=moments {
            agenda.entry(Nanos(tick.0.0 * number)).or_default();
        }
    }
    // The start is a moment, even when nothing is written there.
    agenda.entry(Nanos::ZERO).or_default();
    Ok(agenda)
}

/// The engine and the world outside it.
struct Play {
    scheduler: Scheduler,
    outside: Outside,
    confirm: bool,
    /// The engine's time at the start of the scenario.
    start: Nanos,
}

impl Play {
    fn new(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let confirm = scenario.confirm.unwrap_or(true);
        let Some(snapshot) = &scenario.snapshot else {
            return Ok(Self {
                scheduler: Scheduler::new(scenario.engine_config()?),
                outside: Outside::default(),
                confirm,
                start: Nanos::ZERO,
            });
        };
        let scheduler = Scheduler::restore(Snapshot::clone(snapshot));
        let scheduler = scheduler.map_err(|rejection| ScenarioError::Refused {
            place: "snapshot".to_owned(),
            rejection,
        })?;
        Ok(Self {
            scheduler,
            outside: Outside::from_snapshot(snapshot),
            confirm,
            start: snapshot.now,
        })
    }

    /// What is there from the start.
    fn set_up(&mut self, scenario: &Scenario) -> Result<(), ScenarioError> {
        for (name, labels) in &scenario.namespaces {
            let event = Event::Namespace {
                name: name.clone(),
                labels: labels.clone(),
            };
            self.apply(&format!("namespaces.{name}"), vec![event], None)?;
        }
        for (index, node) in scenario.nodes.iter().enumerate() {
            let place = format!("nodes[{index}]");
            self.act(
                &place,
                Action::Node(Box::new(node.clone())),
                Nanos::ZERO,
                None,
            )?;
        }
        for (index, work) in scenario.work.iter().enumerate() {
            let place = format!("work[{index}]");
            self.act(
                &place,
                Action::Submit(Box::new(work.clone())),
                Nanos::ZERO,
                None,
            )?;
        }
        Ok(())
    }

    fn act(
        &mut self,
        place: &str,
        action: Action,
        now: Nanos,
        refused: Option<&str>,
    ) -> Result<(), ScenarioError> {
        let events = self.outside.act(action, self.start.saturating_add(now));
        let events = events.map_err(|wrong| ScenarioError::invalid(place, wrong))?;
        self.apply(place, events, refused)
    }

    fn apply(
        &mut self,
        place: &str,
        events: Vec<Event>,
        refused: Option<&str>,
    ) -> Result<(), ScenarioError> {
        let mut answer = None;
        for event in events {
            match (self.scheduler.apply(event), refused) {
                (Ok(()), _) => {}
                (Err(rejection), Some(_)) => answer = Some(rejection.to_string()),
                (Err(rejection), None) => {
                    let place = place.to_owned();
                    return Err(ScenarioError::Refused { place, rejection });
                }
            }
        }
        match (refused, answer) {
            (Some(part), Some(answer)) if !answer.contains(part) => Err(ScenarioError::invalid(
                place,
                format!("expected a refusal that says {part:?}, it says {answer:?}"),
            )),
            (Some(_), None) => Err(ScenarioError::invalid(
                place,
                "expected a refusal, but it was accepted",
            )),
            _ => Ok(()),
        }
    }

    /// One moment, up to where the engine has nothing more to say.
    fn moment(&mut self, now: Nanos, entries: Vec<Due>) -> Result<Moment, ScenarioError> {
        let at = if now == Nanos::ZERO {
            "0s".to_owned()
        } else {
            now.to_string()
        };
        let mut events = Vec::new();
        let time = self.start.saturating_add(now);
        let (ended, ends) = self.outside.due(time);
        if !ended.is_empty() {
            events.push(format!("{} ended", ended.join(", ")));
        }
        self.apply(&at, ends, None)?;
        for (place, action, refused) in entries {
            let line = action.describe();
            if !line.is_empty() {
                events.push(line);
            }
            self.act(&place, action, now, refused.as_deref())?;
        }
        let mut decisions: Vec<DecisionLine> = Vec::new();
        for round in 0.. {
            let decided = self.decide(time)?;
            if decided.is_empty() {
                break;
            }
            decisions.extend(decided);
            if round == ROUNDS {
                let message = format!("still deciding after {ROUNDS} rounds");
                return Err(ScenarioError::invalid(at, message));
            }
        }
        Ok(Moment {
            at_nanos: now.0,
            at,
            events,
            decisions,
            failures: Vec::new(),
        })
    }

    /// One round of decisions, carried out.
    fn decide(&mut self, now: Nanos) -> Result<Vec<DecisionLine>, ScenarioError> {
        self.scheduler.price_if_due();
        let decisions = self.scheduler.decide(now).to_vec();
        let mut lines = Vec::new();
        let mut placed: Vec<Uid> = Vec::new();
        let mut released: Vec<Uid> = Vec::new();
        // Written down before any of it is carried out: the buffers live until the next event.
        for decision in &decisions {
            let placements = self.scheduler.placements(decision);
            if decision.verdict == Verdict::Release {
                released.extend(placements.iter().map(|placement| placement.pod));
                continue;
            }
            for placement in placements {
                let node = self.scheduler.node_name(placement.node);
                self.outside.placed(placement, node);
                placed.push(placement.pod);
            }
        }
        let views = self.scheduler.nodes();
        let nodes = Nodes::new(&self.scheduler.config().levels, &views);
        let mut explainer = None;
        for decision in &decisions {
            let Some(gang) = self.scheduler.gang(decision.gang) else {
                continue;
            };
            let reason = match decision.verdict {
                Verdict::Placed => None,
                _ => explainer
                    .get_or_insert_with(|| self.scheduler.explainer())
                    .reason(decision.gang),
            };
            let mut report = GangReport::new(&gang, &nodes, None);
            report
                .members
                .retain(|member| matches!(member.state, MemberState::Bound | MemberState::Planned));
            lines.push(DecisionLine {
                gang: report.full_name(),
                verdict: decision.verdict,
                places: text::places_text(&report.members),
                members: report.members,
                reason: reason.map(Into::into),
            });
        }
        // They are evicted.
        let gone = |uid| self.outside.gone(uid);
        let events: Vec<Event> = released.into_iter().filter_map(gone).collect();
        self.apply("release", events, None)?;
        if self.confirm {
            let confirm = |uid| self.outside.confirm(uid, now);
            let events: Vec<Event> = placed.into_iter().filter_map(confirm).collect();
            self.apply("bind", events, None)?;
        }
        Ok(lines)
    }
}

impl Moment {
    fn has_news(&self) -> bool {
        !(self.events.is_empty() && self.decisions.is_empty() && self.failures.is_empty())
    }
}

impl Outcome {
    /// The timeline and what did not hold, for people.
    pub fn to_text(&self) -> String {
        let mut lines = Vec::new();
        let width = self
            .timeline
            .iter()
            .map(|moment| moment.at.len())
            .max()
            .unwrap_or(0);
        for moment in &self.timeline {
            let mut at = moment.at.as_str();
            let mut push = |line: String| {
                lines.push(format!("{at:>width$}  {line}"));
                at = "";
            };
            for event in &moment.events {
                push(event.clone());
            }
            for decision in &moment.decisions {
                let verdict = verdict_word(decision.verdict);
                let reason = decision
                    .reason
                    .as_ref()
                    .map(|reason| reason.message.as_str());
                let detail = reason.unwrap_or(&decision.places);
                let colon = if detail.is_empty() { "" } else { ": " };
                push(format!("=> {} {verdict}{colon}{detail}", decision.gang));
            }
            for failure in &moment.failures {
                push(format!("FAILED {failure}"));
            }
        }
        let said: BTreeSet<String> = self
            .timeline
            .iter()
            .flat_map(|moment| {
                moment
                    .failures
                    .iter()
                    .map(|line| format!("{}: {line}", moment.at))
            })
            .collect();
        // Failures that belong to no moment, such as the hash.
        for failure in self
            .failures
            .iter()
            .filter(|failure| !said.contains(*failure))
        {
            lines.push(format!("FAILED {failure}"));
        }
        lines.push(String::new());
        let failed = self.failures.len();
        lines.push(match (self.checked, failed) {
            (0, _) => "Nothing was expected.".to_owned(),
            (1, 0) => "The one expectation holds.".to_owned(),
            (checked, 0) => format!("All {checked} expectations hold."),
            (checked, failed) => {
                let failures = if failed == 1 { "failure" } else { "failures" };
                let noun = if checked == 1 {
                    "expectation"
                } else {
                    "expectations"
                };
                format!("{failed} {failures} in {checked} {noun}.")
            }
        });
        lines.push(format!("decision hash {}", self.decision_hash));
        lines.push(String::new());
        lines.join("\n")
    }
}
