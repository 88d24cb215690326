//! What can go wrong while a control plane starts or is meddled with.

use std::{io, path::PathBuf, process::ExitStatus, time::Duration};

use crate::Program;

/// Why a control plane does not do what it was told. Each text can stand alone in a test's output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// `.ci/controlplane` did not say where the programs are; its own words are on standard error.
    #[error("{script} failed with {status}; its messages are above", script = script.display())]
    Build {
        /// The script that builds the programs.
        script: PathBuf,
        /// How it ended.
        status: ExitStatus,
    },
    /// A file, directory or port of ours cannot be used.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried, with the path.
        action: String,
        /// What the system said.
        source: io::Error,
    },
    /// A program ended by itself.
    #[error("{program} ended with {status}; the end of its log:\n{log}")]
    Ended {
        /// Which one.
        program: Program,
        /// How it ended.
        status: ExitStatus,
        /// The last lines that it wrote.
        log: String,
    },
    /// A program runs but does not become ready.
    #[error(
        "{program} is not ready after {} s ({answer}); the end of its log:\n{log}",
        waited.as_secs()
    )]
    NotReady {
        /// Which one.
        program: Program,
        /// How long we waited.
        waited: Duration,
        /// What it said when it was last asked.
        answer: String,
        /// The last lines that it wrote.
        log: String,
    },
    /// A program is named that was not asked for when the control plane was built, or that was killed.
    #[error("{program} does not run in this control plane")]
    NotRunning {
        /// Which one.
        program: Program,
    },
    /// What a test wants to put into a control plane makes no sense.
    #[error("{what}: {reason}")]
    Input {
        /// The text, field or kind.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The API server says no.
    #[error("{path}: status {status}: {body}")]
    Refused {
        /// The request's path.
        path: String,
        /// The answer's HTTP status.
        status: u16,
        /// The answer's body.
        body: String,
    },
    /// No answer to a request.
    #[error("{method} {url}: {reason}")]
    Http {
        /// The request's method.
        method: &'static str,
        /// The request's URL.
        url: String,
        /// Why there is no answer.
        reason: String,
    },
}

impl Error {
    /// For `map_err` on whatever returns an I/O error.
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::Io { action, source }
    }

    /// Somebody else took a port between our choice and the program's own attempt.
    pub(crate) fn is_lost_port(&self) -> bool {
        matches!(self, Self::Ended { log, .. } if log.contains("address already in use"))
    }
}
