//! One YAML document to a tree.
//!
//! The tree is the JSON kind, which is all that Kubernetes accepts; duplicate keys are refused,
//! anchors and aliases work, and a document whose aliases unfold to much more than was written
//! ("alias bomb") is refused.

use serde_json::Value;
use serde_saphyr::{DefaultMessageFormatter, Error, MessageFormatter as _, Options};

use super::split::Chunk;
use crate::problem::one_line;

/// Deepest nesting of a document. A pod needs about 20.
const MAX_DEPTH: usize = 100;
/// Nodes that aliases may unfold to in one document, on top of what is written.
const MAX_UNFOLDED: usize = 100_000;

/// Why a document is not a tree.
#[derive(Debug)]
pub(super) struct Broken {
    /// Line of the file, from 1; 0 when unknown.
    pub(super) line: u64,
    /// What the parser says.
    pub(super) message: String,
}

/// Reads one document.
pub(super) fn parse(chunk: &Chunk<'_>) -> Result<Value, Broken> {
    serde_saphyr::from_str_with_options(chunk.text, options(chunk.text.len()))
        .map_err(|error| broken(chunk, &error))
}

/// Reads one item of a block list, `- ` and all.
pub(super) fn parse_item(chunk: &Chunk<'_>) -> Result<Value, Broken> {
    let items: Vec<Value> =
        serde_saphyr::from_str_with_options(chunk.text, options(chunk.text.len()))
            .map_err(|error| broken(chunk, &error))?;
    Ok(items.into_iter().next().unwrap_or(Value::Null))
}

/// Reads a text within an object, such as an annotation; what is wrong with it comes in one line.
pub(crate) fn parse_text(text: &str) -> Result<Value, String> {
    serde_saphyr::from_str_with_options(text, options(text.len()))
        .map_err(|error: Error| one_line(&words(&error)))
}

/// Limits in proportion to what is written, so that only unfolded aliases can exceed them.
fn options(written: usize) -> Options {
    let nodes = written.saturating_add(MAX_UNFOLDED);
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_events: nodes.saturating_mul(2),
            max_nodes: nodes,
            max_total_scalar_bytes: written.saturating_mul(8).saturating_add(1 << 20),
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_UNFOLDED,
        },
        // A name such as `n` or `off` is a name. kubectl quotes it, other tools do not.
        strict_booleans: true,
        with_snippet: false,
    }
}

/// What the parser says, without its advice to programmers.
fn words(error: &Error) -> String {
    let message = DefaultMessageFormatter.format_message(error.without_snippet());
    let advice = message.find(", set DuplicateKeyPolicy");
    message
        .get(..advice.unwrap_or(message.len()))
        .unwrap_or_default()
        .to_owned()
}

fn broken(chunk: &Chunk<'_>, error: &Error) -> Broken {
    // The parser counts lines from the start of the piece that it was given.
    let line = error.location().map_or(0, |location| location.line());
    Broken {
        line: if line == 0 { 0 } else { chunk.line + line - 1 },
        message: words(error),
    }
}
