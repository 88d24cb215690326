//! What is wrong with an object, gathered while it is read.
//!
//! A reader notes every problem it meets and goes on with what is left, so that one bad field costs
//! one line and not the object. Nothing here prints or decides.

use std::fmt;

use gangline::gang::Problem;

/// Problems of one object, in the order of its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Notes a problem, once. `code` is a word from the list in the module's users, `field` a path such as
    /// `spec.containers[0].ports[1].hostPort`, `message` the value and what would be accepted.
    pub fn note(&mut self, code: &str, field: impl Into<String>, message: impl fmt::Display) {
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
pub(crate) fn problem(code: &str, field: impl Into<String>, message: impl fmt::Display) -> Problem {
    Problem {
        code: code.into(),
        field: field.into(),
        message: message.to_string(),
    }
}
