//! The annotation in which somebody describes a node's cards.
//!
//! Its text enters as YAML or JSON and leaves as a [`Declared`]. A part that cannot be read is noted
//! and left out. Whether it goes with the rest of the node is not asked here.

use gangline::{
    bits::CardSet,
    cluster::spec::{CardMode, MigInstance},
};
use serde_json::Value;

use super::{ANNOTATIONS, mib};
use crate::{
    load::parse_text,
    problem::{FieldPath, Problems},
    quantity::excerpt,
};

/// The annotation.
pub(super) const CARDS: &str = "gangline.io/cards";

/// What is said of a node's cards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Declared {
    /// How many there are.
    pub(super) count: Option<u32>,
    /// One for all, or one for each; empty when nothing is said.
    pub(super) modes: Vec<CardMode>,
    /// Memory of each in MiB.
    pub(super) memory_mib: Option<u32>,
    /// Those that must not be used.
    pub(super) unhealthy: Option<CardSet>,
}

const MODE: &str = "whole, shared, mig-dynamic, {replicas: N} with N from 2, or {mig-static: \
                    [PROFILE@START, ...]} such as {mig-static: [1g.10gb@6]}";

/// Reads the annotation.
pub(super) fn declared(text: &str, problems: &mut Problems) -> Declared {
    let path = ANNOTATIONS.key(CARDS);
    let mut declared = Declared::default();
    let value = match parse_text(text) {
        Ok(value) => value,
        Err(message) => {
            let accepted = "YAML or JSON such as {mode: shared}";
            problems.note(
                "InvalidAnnotation",
                &path,
                format_args!("{message}; accepted: {accepted}"),
            );
            return declared;
        }
    };
    let Value::Object(fields) = value else {
        // Short for all that most nodes need.
        declared.modes = modes(&value, &path, problems);
        return declared;
    };
    for (name, value) in &fields {
        let path = path.name(name);
        match name.as_str() {
            "mode" => declared.modes.extend(mode(value, &path, problems)),
            "modes" => declared.modes = modes(value, &path, problems),
            "replicas" | "mig-static" => {
                let path = ANNOTATIONS.key(CARDS);
                let one = Value::Object([(name.clone(), value.clone())].into_iter().collect());
                declared.modes.extend(mode(&one, &path, problems));
            }
            "count" => {
                let count = value.as_u64().and_then(|count| u32::try_from(count).ok());
                let count = count.filter(|count| (1..=CardSet::CAPACITY).contains(count));
                expect(count.is_some(), value, "1 to 64", &path, problems);
                declared.count = count;
            }
            "memory" => {
                let memory = match value {
                    Value::String(text) => mib(text),
                    Value::Number(bytes) => mib(&bytes.to_string()),
                    _ => None,
                };
                let accepted = "an amount above 0 such as 80Gi";
                expect(memory.is_some(), value, accepted, &path, problems);
                declared.memory_mib = memory;
            }
            "unhealthy" => {
                let cards = numbers(value);
                let accepted = "a list of numbers of cards from 0 to 63";
                expect(cards.is_some(), value, accepted, &path, problems);
                declared.unhealthy = cards;
            }
            _ => {
                let accepted = "count, memory, mode, modes, unhealthy";
                expect(
                    false,
                    &Value::from(name.as_str()),
                    accepted,
                    &path,
                    problems,
                );
            }
        }
    }
    declared
}

fn expect(met: bool, value: &Value, accepted: &str, path: &FieldPath<'_>, problems: &mut Problems) {
    if !met {
        let value = value.to_string();
        problems.note(
            "InvalidAnnotation",
            path,
            format_args!("{}; accepted: {accepted}", excerpt(&value)),
        );
    }
}

fn numbers(value: &Value) -> Option<CardSet> {
    let mut cards = CardSet::EMPTY;
    for number in value.as_array()? {
        let number = u32::try_from(number.as_u64()?).ok()?;
        cards = cards.union(CardSet(1_u64.checked_shl(number)?));
    }
    Some(cards)
}

/// One mode, or a list of one for each card. Of a list with a wrong entry nothing is left: the others
/// would be taken for other cards'.
fn modes(value: &Value, path: &FieldPath<'_>, problems: &mut Problems) -> Vec<CardMode> {
    let Value::Array(entries) = value else {
        return mode(value, path, problems).into_iter().collect();
    };
    let mut modes = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        modes.extend(mode(entry, &path.index(index), problems));
    }
    if modes.len() < entries.len() {
        modes.clear();
    }
    if modes.windows(2).all(|pair| pair[0] == pair[1]) {
        modes.truncate(1);
    }
    modes
}

fn mode(value: &Value, path: &FieldPath<'_>, problems: &mut Problems) -> Option<CardMode> {
    let mode = match value {
        Value::String(word) => match word.as_str() {
            "whole" => Some(CardMode::Whole),
            "shared" => Some(CardMode::Shared),
            "mig-dynamic" => Some(CardMode::MigDynamic),
            _ => None,
        },
        Value::Object(fields) if fields.len() == 1 => {
            let replicas = fields.get("replicas").and_then(|replicas| {
                let replicas = u32::try_from(replicas.as_u64()?).ok()?;
                (replicas >= 2).then_some(CardMode::Replicas(replicas))
            });
            let instances = fields.get("mig-static").and_then(Value::as_array);
            replicas.or_else(|| {
                let instances = instances?.iter().map(|instance| {
                    let (profile, start) = instance.as_str()?.split_once('@')?;
                    Some(MigInstance {
                        profile: profile.trim().into(),
                        start: start.trim().parse().ok()?,
                    })
                });
                Some(CardMode::MigStatic(instances.collect::<Option<_>>()?))
            })
        }
        _ => None,
    };
    expect(mode.is_some(), value, MODE, path, problems);
    mode
}
