//! JSON text to slices, one for each object, without building trees.
//!
//! The text is gone over once to find the objects (and the items of lists); each is decoded later,
//! straight into the type that it is.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{split::Chunk, yaml::Broken};

/// What every object starts with; of lists also the items.
#[derive(Default, Deserialize)]
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
    /// Whether all is known that names an object.
    fn is_named(&self) -> bool {
        self.api_version.is_some() && self.kind.is_some() && self.metadata.is_some()
    }

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

/// The envelope of an item of a list, read only as far as its names go, which is a small part of it:
/// the whole item is read when it is decoded.
pub(super) fn item_envelope(raw: &RawValue) -> Result<Envelope<'_>, serde_json::Error> {
    let mut envelope = Envelope::default();
    let mut deserializer = serde_json::Deserializer::from_str(raw.get());
    let outcome = Head(&mut envelope).deserialize(&mut deserializer);
    match outcome {
        // Stopped half-way on purpose.
        Err(_) if envelope.is_named() => Ok(envelope),
        outcome => outcome.map(|()| envelope),
    }
}

struct Head<'e, 'a>(&'e mut Envelope<'a>);

impl<'de> DeserializeSeed<'de> for Head<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Head<'_, 'de> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let envelope = self.0;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match &*key {
                "apiVersion" => envelope.api_version = map.next_value()?,
                "kind" => envelope.kind = map.next_value()?,
                "metadata" => envelope.metadata = map.next_value()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            if envelope.is_named() {
                return Err(A::Error::custom("enough"));
            }
        }
        Ok(())
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
