//! The file of `gangline run --config`: the same settings as the flags, and a few more.
//!
//! Text enters and leaves as a [`File`]; what is wrong with it leaves as one line that names the file, the
//! place, the field and what would be accepted. Flags go before the file, the file before what is usual.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use gangline::{gang::ScoringRule, units::Nanos};
use serde::{
    Deserialize,
    de::{Deserializer, Error},
};
use serde_json::Value;

use super::{
    super::{CliError, cluster::Scoring},
    LogFormat, lease_span, own_address, span,
};
use crate::load::parse_text;

/// The only version that is read.
const API_VERSION: &str = "gangline.io/v1alpha1";
const KIND: &str = "Configuration";

/// Which version a file is of, whatever else it says.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
}

/// What a file says. docs/running.md describes the fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct File {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    pub(super) kubeconfig: Option<PathBuf>,
    pub(super) context: Option<String>,
    pub(super) scheduler_names: Option<Vec<String>>,
    pub(super) leader_election: LeaderElection,
    #[serde(deserialize_with = "any_address")]
    pub(super) listen: Option<SocketAddr>,
    #[serde(deserialize_with = "address_of_our_own")]
    pub(super) answer: Option<SocketAddr>,
    pub(super) log: Log,
    pub(super) scheduling: Scheduling,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct LeaderElection {
    pub(super) enabled: Option<bool>,
    pub(super) lease: Option<String>,
    #[serde(deserialize_with = "lease_duration")]
    pub(super) duration: Option<Duration>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Log {
    pub(super) levels: Option<String>,
    #[serde(deserialize_with = "log_format")]
    pub(super) format: Option<LogFormat>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Scheduling {
    #[serde(deserialize_with = "time")]
    pub(super) degraded_deadline: Option<Nanos>,
    #[serde(deserialize_with = "time")]
    pub(super) reserve_after: Option<Nanos>,
    #[serde(deserialize_with = "scoring_rule")]
    pub(super) scoring: Option<ScoringRule>,
    pub(super) search_steps: Option<u64>,
}

impl File {
    /// Reads a file; without one nothing is said.
    pub(super) fn read(path: Option<&Path>) -> Result<Self, CliError> {
        let Some(path) = path else {
            return Ok(Self::default());
        };
        let shown = || path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| CliError::File {
            path: shown(),
            error,
        })?;
        Self::parse(&text).map_err(|message| CliError::Config {
            path: shown(),
            message,
        })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let value = parse_text(text)?;
        let version: Version = decoded(&value)?;
        for (field, found, accepted) in [
            ("apiVersion", version.api_version, API_VERSION),
            ("kind", version.kind, KIND),
        ] {
            if found != accepted {
                return Err(format!("{field} is `{found}`; accepted: {accepted}"));
            }
        }
        let file: Self = decoded(&value)?;
        match &file.scheduler_names {
            Some(names) if names.is_empty() || names.iter().any(String::is_empty) => {
                let names = names.join(", ");
                Err(format!(
                    "schedulerNames is [{names}]; accepted: one or more names"
                ))
            }
            _ => Ok(file),
        }
    }
}

/// What a value says; an error names the field.
fn decoded<'v, T: Deserialize<'v>>(value: &'v Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| match error.path().to_string() {
        path if path == "." => error.inner().to_string(),
        path => format!("{path}: {}", error.inner()),
    })
}

/// A text that means something; what is accepted otherwise.
fn parsed<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    let parsed = text.map(|text| {
        parse(&text).map_err(|accepted| D::Error::custom(format!("`{text}`: {accepted}")))
    });
    parsed.transpose()
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Nanos>, D::Error> {
    parsed(deserializer, span)
}

fn lease_duration<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    parsed(deserializer, lease_span)
}

fn any_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    parsed(deserializer, |text| {
        let address = text.parse();
        address.map_err(|_| "accepted: an address and a port, such as 0.0.0.0:8080".to_owned())
    })
}

fn address_of_our_own<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SocketAddr>, D::Error> {
    parsed(deserializer, own_address)
}

fn log_format<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<LogFormat>, D::Error> {
    parsed(deserializer, one_of)
}

fn scoring_rule<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ScoringRule>, D::Error> {
    let scoring = parsed(deserializer, one_of::<Scoring>)?;
    Ok(scoring.map(Scoring::rule))
}

/// A choice that a flag has as well.
fn one_of<T: clap::ValueEnum>(text: &str) -> Result<T, String> {
    T::from_str(text, false).map_err(|_| {
        let choices = T::value_variants().iter();
        let choices = choices.filter_map(clap::ValueEnum::to_possible_value);
        let names: Vec<String> = choices.map(|choice| choice.get_name().to_owned()).collect();
        format!("accepted: {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the document.
    fn example() -> String {
        let document = include_str!("../../../../docs/running.md");
        let from = document
            .find("```yaml\napiVersion: gangline.io")
            .expect("is there");
        let text = &document[from + "```yaml\n".len()..];
        text[..text.find("```").expect("ends")].to_owned()
    }

    #[test]
    fn the_document_shows_every_field() {
        let file = File::parse(&example()).unwrap();
        let shown = format!("{file:?}");
        assert!(!shown.contains("None"), "{shown}");
        assert_eq!(file.scheduling.reserve_after, Some(Nanos::from_secs(300)));
    }

    #[test]
    fn what_is_wrong_is_named_with_what_would_be_right() {
        let error = |change: &str| {
            let text = format!("apiVersion: gangline.io/v1alpha1\nkind: Configuration\n{change}");
            File::parse(&text).unwrap_err()
        };
        for (change, named, accepted) in [
            ("schedulerName: a", "schedulerName", "schedulerNames"),
            ("log: {level: info}", "level", "levels"),
            ("schedulerNames: []", "schedulerNames", "one or more"),
            ("leaderElection: {duration: 1ms}", "1ms", "3s to 1h"),
            ("answer: 0.0.0.0:1", "0.0.0.0:1", "loopback"),
            ("scheduling: {scoring: best}", "best", "best-fit"),
            ("log: {format: xml}", "xml", "json"),
            ("listen: here", "here", "0.0.0.0:8080"),
        ] {
            let error = error(change);
            assert!(error.contains(named) && error.contains(accepted), "{error}");
        }
        let other = File::parse("apiVersion: gangline.io/v9\nkind: Configuration\nnew: 1");
        assert_eq!(
            other.unwrap_err(),
            "apiVersion is `gangline.io/v9`; accepted: gangline.io/v1alpha1"
        );
    }
}
