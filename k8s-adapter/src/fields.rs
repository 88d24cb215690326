//! The fields that objects of people have, so that a misspelt one gets a word.
//!
//! A value and the [`Field`]s that it may have enter; a warning for each other field leaves. Kubernetes
//! passes such a field over, and the object means something else than was written: a minimum that is
//! misspelt is none. The object is used all the same. No value is read here.

use serde_json::Value;

use crate::{
    annotations::nearest,
    load::{Complaint, Document, Severity},
    problem::FieldPath,
};

pub(crate) mod pod;

/// More names than this are no help.
const MOST_NAMES: usize = 16;

/// A field of a spec, or of a map or of a list of maps below it.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    name: &'static str,
    /// What it may hold; empty where that is free or of no matter here.
    below: &'static [Field],
}

impl Field {
    /// A field of which what it holds is not looked at.
    pub(crate) const fn any(name: &'static str) -> Self {
        Self::of(name, &[])
    }

    /// A field with fields of its own.
    pub(crate) const fn of(name: &'static str, below: &'static [Field]) -> Self {
        Self { name, below }
    }
}

/// Complains about fields below `path` that are none of these.
pub(crate) fn complain_of_unknown(
    value: &Value,
    known: &[Field],
    path: &FieldPath<'_>,
    document: &Document<'_>,
    complaints: &mut Vec<Complaint>,
) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                complain_of_unknown(item, known, &path.index(index), document, complaints);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = path.name(name);
                match known.iter().find(|field| field.name == name) {
                    Some(field) if field.below.is_empty() => {}
                    Some(field) => {
                        complain_of_unknown(value, field.below, &path, document, complaints);
                    }
                    None => complaints.push(unknown(name, known, &path, document)),
                }
            }
        }
        _ => {}
    }
}

fn unknown(
    name: &str,
    known: &[Field],
    path: &FieldPath<'_>,
    document: &Document<'_>,
) -> Complaint {
    let names: Vec<&str> = known.iter().map(|field| field.name).collect();
    let near = nearest(name, &names).map(|near| format!("did you mean {near}?"));
    let all = if names.len() > MOST_NAMES {
        "a field that Kubernetes knows here".into()
    } else {
        names.join(", ")
    };
    let accepted = [Some(all), near].into_iter().flatten();
    document.complaint(
        Severity::Warning,
        path.to_string(),
        "no such field, so it decides nothing",
        accepted.collect::<Vec<_>>().join("; "),
    )
}
