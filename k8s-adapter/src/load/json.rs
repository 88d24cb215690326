//! JSON text to slices, one for each object, without building trees.
//!
//! The text is gone over once to find the objects (and the items of lists); each is decoded later,
//! straight into the type that it is.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::split::Chunk;
use super::yaml::Broken;

/// What every object starts with; of lists also the items.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Envelope<'a> {
    #[serde(borrow)]
    pub(super) api_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    metadata: Option<EnvelopeMeta<'a>>,
    #[serde(borrow)]
    pub(super) items: Option<Vec<&'a RawValue>>,
}

/// The names of an object.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EnvelopeMeta<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    generate_name: Option<Cow<'a, str>>,
}

impl Envelope<'_> {
    /// Name (or the start of a name that the API server completes) and namespace.
    pub(super) fn names(&self) -> (&str, &str) {
        let Some(metadata) = &self.metadata else {
            return ("", "");
        };
        let name = metadata
            .name
            .as_deref()
            .or(metadata.generate_name.as_deref());
        (
            name.unwrap_or_default(),
            metadata.namespace.as_deref().unwrap_or_default(),
        )
    }
}

/// The values that a piece of text holds, one after the other. The first that cannot be read ends
/// the walk.
pub(super) fn values<'a>(chunk: &Chunk<'a>) -> impl Iterator<Item = Result<&'a RawValue, Broken>> {
    let first_line = chunk.line;
    let mut broken = false;
    serde_json::Deserializer::from_str(chunk.text)
        .into_iter::<&RawValue>()
        .map(move |value| {
            value.map_err(|error| Broken {
                line: first_line + (error.line() as u64).saturating_sub(1),
                message: without_place(&error),
            })
        })
        .take_while(move |value| {
            let go_on = !broken;
            broken = value.is_err();
            go_on
        })
}

/// Whether a text that starts with `{` is meant to be JSON: YAML's flow mappings need no quotes.
pub(super) fn is_json(text: &str) -> bool {
    let inside = text.trim_start().strip_prefix('{').map(str::trim_start);
    inside.is_some_and(|inside| inside.starts_with(['"', '}']) || inside.is_empty())
}

/// What `serde_json` says, without its own count of lines.
pub(super) fn without_place(error: &serde_json::Error) -> String {
    let shown = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    shown.strip_suffix(&place).unwrap_or(&shown).to_owned()
}
