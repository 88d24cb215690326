//! Scenarios: a cluster, a timeline of events, and what must hold. A YAML file that a person can
//! read, write and run; `docs/scenarios.md` is its reference.
//!
//! Data enters as text ([`Scenario::parse`]), runs against a fresh engine ([`run`]) and leaves as an
//! [`Outcome`]. A scenario plays the outside of the engine (objects, binds, time) and never reaches
//! inside it: what it expects, it reads through the engine's face like everybody else.

use std::collections::BTreeMap;

use gangline::{
    Config, Rejection,
    engine::{Snapshot, UsualWork},
    gang::ScoringRule,
};
use serde::Deserialize;

mod build;
pub mod devices;
pub mod event;
pub mod expect;
mod known;
mod outside;
mod run;
pub mod shape;
pub mod value;

use event::Entry;
use expect::Expect;
pub use run::{DecisionLine, Moment, Outcome, play, run};
use shape::{NodeShape, UsualShape, WorkShape};
use value::Span;

use crate::problem::one_line;

/// A scenario as it is written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// Its name.
    pub scenario: String,
    /// What it shows, for people.
    pub about: String,
    /// Node labels that make up the topology, coarse to fine, without the node itself.
    pub levels: Vec<String>,
    /// How the engine decides.
    pub config: ConfigShape,
    /// Whether each placed member is bound at once; `false` leaves that to `confirm` events.
    pub confirm: Option<bool>,
    /// Decide also at each multiple of this.
    pub tick: Option<Span>,
    /// The state to start from, in the engine's own form, under everything else that is given. Its
    /// configuration counts, and the scenario's clock starts at its time.
    pub snapshot: Option<Box<Snapshot>>,
    /// Labels of namespaces.
    pub namespaces: BTreeMap<String, BTreeMap<String, String>>,
    /// Nodes that are there from the start.
    pub nodes: Vec<NodeShape>,
    /// Gangs and pods that are there from the start.
    pub work: Vec<WorkShape>,
    /// What happens.
    pub events: Vec<Entry>,
    /// What must hold.
    pub expect: Vec<Expect>,
    /// The hash of all decisions, when it must not change.
    pub decision_hash: Option<String>,
}

/// The engine's [`Config`] with spans as people write them; what is absent keeps its default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConfigShape {
    /// Where members go when their gang does not say.
    pub scoring: Option<ScoringRule>,
    /// A gang that has waited this long gets a reservation.
    pub reserve_after: Option<Span>,
    /// Steps that one search may take.
    pub search_steps: Option<u64>,
    /// Pause after the first failed bind.
    pub bind_backoff: Option<Span>,
    /// How long a degraded gang may stay so.
    pub degraded_deadline: Option<Span>,
    /// The work that is usually asked for; learnt from the pods that come when absent.
    pub usual: Vec<UsualShape>,
}

/// Reads a usual mix by itself: a list as in a scenario's `config.usual`.
pub fn usual_mix(text: &str) -> Result<Vec<UsualWork>, ScenarioError> {
    usual(&read::<Vec<UsualShape>>(text)?, "")
}

fn usual(shapes: &[UsualShape], place: &str) -> Result<Vec<UsualWork>, ScenarioError> {
    let shapes = shapes.iter().enumerate();
    let works = shapes.map(|(at, shape)| {
        build::usual(shape).map_err(|wrong| ScenarioError::invalid(format!("{place}[{at}]"), wrong))
    });
    works.collect()
}

fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, ScenarioError> {
    let options = serde_saphyr::options! { with_snippet: false };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let message = error.to_string();
        let place = error.location().filter(|_| is_about_a_value(&message));
        let entry =
            place.and_then(|place| entry_at(text, place.line() as usize, place.column() as usize));
        let is_count = ["out of range integral", "invalid u"]
            .iter()
            .any(|start| message.starts_with(start));
        let numbers = if is_count {
            "; accepted: a whole number, at most 4294967295 and not negative where things are counted"
        } else {
            ""
        };
        ScenarioError::Format(match entry {
            Some(entry) => format!("`{entry}`: {message}{numbers}"),
            None => message,
        })
    })
}

/// What serde says of these names neither the field nor the value.
fn is_about_a_value(message: &str) -> bool {
    ["out of range", "invalid ", "accepted: a port"]
        .iter()
        .any(|start| message.starts_with(start))
}

/// The entry of a mapping around a place, or all of a list; lines and columns count from 1.
fn entry_at(text: &str, line: usize, column: usize) -> Option<&str> {
    let line = text.lines().nth(line.checked_sub(1)?)?;
    let at = line.char_indices().nth(column.checked_sub(1)?)?.0;
    let (before, after) = line.split_at(at);
    let list = before
        .rfind('[')
        .filter(|&list| !before[list..].contains([']', '{', '}']));
    let from = before[..list.unwrap_or(at)].rfind(['{', ',']);
    let to = match list {
        Some(_) => after.find(']').map(|end| end + 1),
        None => after.find(['}', ']', ',']),
    };
    let to = to.map_or(line.len(), |end| at + end);
    let entry = line[from.map_or(0, |from| from + 1)..to].trim();
    let entry = entry.trim_start_matches("- ");
    Some(entry).filter(|entry| !entry.is_empty())
}

/// Why a scenario cannot be run. One line each.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// It is not YAML, or a field is not known or holds the wrong kind of value.
    #[error("{}", one_line(.0))]
    Format(String),
    /// A value makes no sense.
    #[error("{}: {}", one_line(place), one_line(message))]
    Invalid {
        /// Which entry.
        place: String,
        /// What is wrong, and what would be accepted.
        message: String,
    },
    /// There is nothing in it.
    #[error("nothing happens in it; accepted: nodes or work, and what is expected of them")]
    Empty,
    /// The engine refused an event that was not marked `refused`.
    #[error("{}: {}", one_line(place), one_line(&rejection.to_string()))]
    Refused {
        /// Which entry.
        place: String,
        /// What the engine says.
        rejection: Rejection,
    },
}

impl ScenarioError {
    fn invalid(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid {
            place: place.into(),
            message: message.into(),
        }
    }
}

impl Scenario {
    /// Reads a scenario.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = read(text)?;
        // A test that tests nothing must not pass.
        let starts = !(scenario.nodes.is_empty() && scenario.work.is_empty());
        if starts || !scenario.events.is_empty() || scenario.snapshot.is_some() {
            Ok(scenario)
        } else {
            Err(ScenarioError::Empty)
        }
    }

    fn engine_config(&self) -> Result<Config, ScenarioError> {
        let given = &self.config;
        let default = Config::default();
        let nanos = |span: Option<Span>, default| span.map_or(default, |span| span.0);
        Ok(Config {
            levels: self.levels.clone(),
            scoring: given.scoring.unwrap_or(crate::DEFAULT_SCORING),
            usual: usual(&given.usual, "config.usual")?,
            reserve_after: nanos(given.reserve_after, default.reserve_after),
            search_steps: given.search_steps.unwrap_or(default.search_steps),
            bind_backoff: nanos(given.bind_backoff, default.bind_backoff),
            degraded_deadline: nanos(given.degraded_deadline, default.degraded_deadline),
        })
    }
}

#[cfg(test)]
mod tests;
