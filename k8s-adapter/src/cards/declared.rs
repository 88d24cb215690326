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
    annotations::{CARDS, nearest},
    load::parse_text,
    problem::{FieldPath, Problems},
    quantity::excerpt,
};

/// What is said of a node's cards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Declared {
    /// How many there are.
    pub(super) count: Option<u32>,
    /// One for all, or one for each; empty when nothing is said.
    pub(super) modes: Vec<CardMode>,
    /// How many cards have a mode of their own in the list, if there is a list.
    pub(super) listed: Option<u32>,
    /// Memory of each in MiB.
    pub(super) memory_mib: Option<u32>,
    /// Those that must not be used.
    pub(super) unhealthy: Option<CardSet>,
    /// Those that are said to have instances which cannot be read; their mode is `whole`.
    pub(super) unreadable: CardSet,
}

/// Fields of the map.
const FIELDS: [&str; 7] = [
    "mode",
    "modes",
    "replicas",
    "mig-static",
    "count",
    "memory",
    "unhealthy",
];

/// Modes that are a word.
const WORDS: [(&str, CardMode); 3] = [
    ("whole", CardMode::Whole),
    ("shared", CardMode::Shared),
    ("mig-dynamic", CardMode::MigDynamic),
];

const MODE: &str = "whole, shared, mig-dynamic, {replicas: N} with N from 2, or {mig-static: \
                    [PROFILE@START, ...]} such as {mig-static: [1g.10gb@6]}";

/// The same for a card that is said to have instances.
const INSTANCES: &str = "{mig-static: [PROFILE@START, ...]} such as {mig-static: [1g.10gb@6]}; until it can \
                         be read the card is not used";

/// All cards, whichever there are.
const ALL: CardSet = CardSet(u64::MAX);

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
        modes(&value, &path, &mut declared, problems);
        return declared;
    };
    let ways = ["mode", "modes", "replicas", "mig-static"];
    let ways: Vec<&str> = ways
        .into_iter()
        .filter(|way| fields.contains_key(*way))
        .collect();
    for (name, value) in &fields {
        let path = path.name(name);
        match name.as_str() {
            "mode" => one_mode(value, &path, &mut declared, problems),
            "modes" => modes(value, &path, &mut declared, problems),
            "replicas" | "mig-static" => {
                let path = ANNOTATIONS.key(CARDS);
                let one = Value::Object([(name.clone(), value.clone())].into_iter().collect());
                one_mode(&one, &path, &mut declared, problems);
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
                let accepted = "an amount with its unit such as 80Gi";
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
                let near = nearest(name, &FIELDS);
                let near = near.map(|near| format!("; did you mean {near}?"));
                problems.note(
                    "UnknownAnnotation",
                    &path,
                    format_args!(
                        "no such field; accepted: {}{}",
                        FIELDS.join(", "),
                        near.unwrap_or_default()
                    ),
                );
            }
        }
    }
    if ways.len() > 1 {
        problems.note(
            "InvalidAnnotation",
            &path,
            format_args!("{}; accepted: one of them", ways.join(" and ")),
        );
        (declared.modes, declared.listed) = (Vec::new(), None);
        declared.unreadable = CardSet::EMPTY;
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

/// The mode of all cards.
fn one_mode(value: &Value, path: &FieldPath<'_>, into: &mut Declared, problems: &mut Problems) {
    match mode(value, path, problems) {
        Some(mode) => into.modes.push(mode),
        None if speaks_of_instances(value) => {
            into.modes.push(CardMode::Whole);
            into.unreadable = ALL;
        }
        None => {}
    }
}

/// One mode, or a list of one for each card. Of a list with a wrong entry nothing is left: the others
/// would be taken for other cards'; only instances that cannot be read leave the other cards what they
/// are. Of a list with the same mode for all there is one left.
fn modes(value: &Value, path: &FieldPath<'_>, into: &mut Declared, problems: &mut Problems) {
    let Value::Array(entries) = value else {
        one_mode(value, path, into, problems);
        return;
    };
    if entries.is_empty() {
        let accepted = "a mode for all, or a list with one for each card";
        problems.note(
            "InvalidAnnotation",
            path,
            format_args!("[]; accepted: {accepted}"),
        );
    }
    let mut modes = Vec::new();
    let mut unreadable = CardSet::EMPTY;
    for (index, entry) in (0..).zip(entries) {
        match mode(entry, &path.index(index), problems) {
            Some(mode) => modes.push(mode),
            None if speaks_of_instances(entry) => {
                let card = 1_u64.checked_shl(index as u32).unwrap_or(0);
                unreadable = unreadable.union(CardSet(card));
                modes.push(CardMode::Whole);
            }
            None => {}
        }
    }
    if modes.len() < entries.len() {
        return;
    }
    into.listed = u32::try_from(modes.len()).ok().filter(|listed| *listed > 0);
    if modes.windows(2).all(|pair| pair[0] == pair[1]) {
        modes.truncate(1);
    }
    (into.modes, into.unreadable) = (modes, unreadable);
}

/// Whether it means instances that exist, readable or not: such a card is no whole one.
fn speaks_of_instances(mode: &Value) -> bool {
    let fields = mode.as_object();
    fields.is_some_and(|fields| fields.contains_key("mig-static"))
}

fn mode(value: &Value, path: &FieldPath<'_>, problems: &mut Problems) -> Option<CardMode> {
    let mode = match value {
        Value::String(word) => {
            let mut known = WORDS.iter();
            let known = known.find(|(known, _)| known == word);
            known.map(|(_, mode)| mode.clone())
        }
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
    let mut accepted = if speaks_of_instances(value) {
        INSTANCES.to_owned()
    } else {
        MODE.to_owned()
    };
    let near = value
        .as_str()
        .and_then(|word| nearest(word, &WORDS.map(|(word, _)| word)));
    if let Some(near) = near {
        accepted.push_str("; did you mean ");
        accepted.push_str(near);
        accepted.push('?');
    }
    expect(mode.is_some(), value, &accepted, path, problems);
    mode
}
