//! What is wrong with an object, gathered while it is read.
//!
//! A reader notes every problem it meets and goes on with what is left, so that one bad field costs
//! one line and not the object. Nothing here prints or decides.

use std::fmt;

use gangline::gang::Problem;

/// Problems of one object, in the order in which they were met, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Notes a problem: a stable word in `CamelCase`, the field at fault, and for people the value
    /// and what would be accepted.
    pub fn note(&mut self, code: &str, field: &FieldPath<'_>, message: impl fmt::Display) {
        let problem = problem(code, field, message);
        if !self.0.contains(&problem) {
            self.0.push(problem);
        }
    }

    /// The first problem.
    pub fn first(&self) -> Option<&Problem> {
        self.0.first()
    }

    /// All problems.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Problem> {
        self.0.iter()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A problem from its parts.
pub fn problem(code: &str, field: impl fmt::Display, message: impl fmt::Display) -> Problem {
    Problem {
        code: code.into(),
        field: field.to_string(),
        message: message.to_string(),
    }
}

/// Where a value stands in its object, such as `spec.containers[0].resources.limits[cpu]`. Costs
/// nothing until it is shown.
#[derive(Clone, Copy, Debug)]
pub struct FieldPath<'a> {
    parent: Option<&'a FieldPath<'a>>,
    part: Part<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Part<'a> {
    Name(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> FieldPath<'a> {
    /// A field of the object itself.
    pub const fn root(name: &'a str) -> Self {
        FieldPath {
            parent: None,
            part: Part::Name(name),
        }
    }

    /// A field of the value here.
    #[must_use]
    pub const fn name(&'a self, name: &'a str) -> Self {
        self.with(Part::Name(name))
    }

    /// An element of the list here, from 0.
    #[must_use]
    pub const fn index(&'a self, index: usize) -> Self {
        self.with(Part::Index(index))
    }

    /// An entry of the map here.
    #[must_use]
    pub const fn key(&'a self, key: &'a str) -> Self {
        self.with(Part::Key(key))
    }

    const fn with(&'a self, part: Part<'a>) -> Self {
        FieldPath {
            parent: Some(self),
            part,
        }
    }
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(formatter)?;
        }
        match self.part {
            Part::Name(name) if self.parent.is_none() => formatter.write_str(name),
            Part::Name(name) => write!(formatter, ".{name}"),
            Part::Index(index) => write!(formatter, "[{index}]"),
            Part::Key(key) => write!(formatter, "[{key}]"),
        }
    }
}

/// The text in one line, whatever the input held: each control character becomes a space.
pub(crate) fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_like_the_field_and_a_problem_is_noted_once() {
        let spec = FieldPath::root("spec");
        let ports = spec.name("ports");
        let mut problems = Problems::default();
        problems.note("Bad", &ports.index(2).key("a/b"), "no");
        problems.note("Bad", &ports.index(2).key("a/b"), "no");
        assert_eq!(problems.iter().len(), 1);
        assert_eq!(problems.first().unwrap().field, "spec.ports[2][a/b]");
    }
}
