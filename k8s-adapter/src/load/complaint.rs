//! What is wrong with an input, in one line.
//!
//! A [`Complaint`] says where (file, document, item), what (kind and name), which field, which value
//! and what would be accepted. Making one never stops anything: the rest of the input is still used,
//! and the caller decides whether a complaint is an error.

use std::{fmt, sync::Arc};

use gangline::gang::Problem;
use serde::Serialize;

use crate::problem::one_line;

/// Where a document came from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Source {
    /// The file as the caller named it; `-` is standard input.
    pub file: Arc<str>,
    /// Document in the file, from 1; 0 is the file as a whole.
    pub document: u32,
    /// Item of the document when that is a list, from 1; 0 is the document as a whole.
    pub item: u32,
    /// Line of the file, from 1, where it is known; 0 where not.
    pub line: u64,
}

impl Source {
    /// The file as a whole.
    pub fn file(name: &str) -> Self {
        Self {
            file: name.into(),
            document: 0,
            item: 0,
            line: 0,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.file)?;
        if self.document > 0 {
            write!(formatter, ", document {}", self.document)?;
        }
        if self.item > 0 {
            write!(formatter, ", item {}", self.item)?;
        }
        if self.line > 0 {
            write!(formatter, ", line {}", self.line)?;
        }
        Ok(())
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The object is used; something about it is odd.
    Warning,
    /// The object, or what the field says, is not used.
    Refused,
}

/// One thing that is wrong with the input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Complaint {
    /// Where.
    pub source: Source,
    /// Kind and name, such as `Pod default/a-0`; empty when unknown.
    pub object: String,
    /// The field at fault; empty when it is the object as a whole.
    pub field: String,
    /// What is there.
    pub value: String,
    /// What would be accepted; empty when there is nothing to say.
    pub accepted: String,
    /// How bad it is.
    pub severity: Severity,
}

impl Complaint {
    /// A refusal of an object for something that an adapter function found.
    pub fn from_problem(source: &Source, object: &str, problem: &Problem) -> Self {
        // The last one: what is accepted is our own words, the value may be anybody's.
        let parts = problem.message.rsplit_once("; accepted: ");
        let (value, accepted) = parts.unwrap_or((&problem.message, ""));
        Self {
            source: source.clone(),
            object: object.into(),
            field: problem.field.clone(),
            value: value.into(),
            accepted: accepted.into(),
            severity: Severity::Refused,
        }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.source)?;
        for part in [&self.object, &self.field, &self.value] {
            if !part.is_empty() {
                write!(formatter, ": {}", one_line(part))?;
            }
        }
        if !self.accepted.is_empty() {
            write!(formatter, "; accepted: {}", one_line(&self.accepted))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::problem;

    #[test]
    fn what_would_be_accepted_is_apart_from_the_value() {
        let message = "\"x; accepted: y\" of z; accepted: a, b";
        let problem = problem("Bad", "spec", message);
        let complaint = Complaint::from_problem(&Source::file("f"), "Pod p", &problem);
        assert_eq!(complaint.value, "\"x; accepted: y\" of z");
        assert_eq!(complaint.accepted, "a, b");
        assert_eq!(complaint.to_string(), format!("f: Pod p: spec: {message}"));
    }
}
