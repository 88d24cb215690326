//! Files in, Kubernetes objects out, one [`Document`] at a time.
//!
//! Reads what people have: `kubectl get ... -o yaml|json` output (a list), YAML with many documents,
//! JSON, gzip of any of these, directories, standard input. A [`Sink`] gets each object as soon as it
//! is found and decodes it into the type that it is; a large JSON dump is never turned into a tree.
//! What cannot be read becomes a [`Complaint`] and costs only itself, with one exception: a file that
//! is cut off in the middle is not used at all, since half a list of nodes or pods would give
//! confident, wrong answers.
//!
//! Nothing here knows what a kind means.

use std::{path::PathBuf, sync::Arc};

use gangline::gang::Problem;
use serde::de::DeserializeOwned;
use serde_json::{Value, value::RawValue};

mod complaint;
mod files;
mod json;
mod reader;
mod split;
#[cfg(test)]
mod tests;
mod yaml;

pub use complaint::{Complaint, Severity, Source};
pub use files::LoadError;
pub(crate) use yaml::parse_text;

/// Takes what is found, in the order of the input.
pub trait Sink {
    /// An object.
    fn document(&mut self, document: Document<'_>);
    /// Something that could not be read.
    fn complaint(&mut self, complaint: Complaint);
    /// How far it is: bytes of input, roughly.
    fn progress(&mut self, done: u64, total: u64) {
        let _ = (done, total);
    }
}

/// Reads files, directories (all files named like YAML, JSON or gzip of these, sorted by path) and
/// `-` for standard input. Only a path that cannot be opened at all is an error.
pub fn load(paths: &[PathBuf], sink: &mut dyn Sink) -> Result<(), LoadError> {
    let found = files::find(paths, sink)?;
    let total = found.iter().map(|file| file.size).sum();
    let mut done = 0;
    for file in found {
        sink.progress(done, total);
        match file.read()? {
            Ok(bytes) => reader::read(&file.name, &bytes, (done, file.size, total), sink),
            Err(message) => sink.complaint(reader::file_complaint(&file.name, message)),
        }
        done += file.size;
    }
    sink.progress(done, total);
    Ok(())
}

/// Reads one file that is in memory already; `name` is what complaints call it.
pub fn load_bytes(name: &str, bytes: &[u8], sink: &mut dyn Sink) {
    let name = Arc::from(name);
    let size = bytes.len() as u64;
    match files::unpack(bytes.into()) {
        Ok(bytes) => reader::read(&name, &bytes, (0, size, size), sink),
        Err(message) => sink.complaint(reader::file_complaint(&name, message)),
    }
}

/// One Kubernetes object, not decoded yet.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    /// Where it is.
    pub source: Source,
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty when not given.
    pub namespace: String,
    /// Name; empty when not given.
    pub name: String,
    body: Body<'a>,
}

#[derive(Clone, Debug)]
enum Body<'a> {
    Json(&'a RawValue),
    Tree(Value),
}

impl Document<'static> {
    /// An object that is in memory already; `None` without kind or version.
    pub fn from_value(source: Source, object: Value) -> Option<Self> {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let metadata = |field: &str| {
            let metadata = object.get("metadata");
            text(metadata.and_then(|metadata| metadata.get(field))).unwrap_or_default()
        };
        Some(Document {
            source,
            api_version: text(object.get("apiVersion"))?,
            kind: text(object.get("kind"))?,
            namespace: metadata("namespace"),
            name: metadata("name"),
            body: Body::Tree(object),
        })
    }
}

impl Document<'_> {
    /// The group of its `apiVersion`; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
    }

    /// The version of its `apiVersion`.
    pub fn version(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or(self.api_version.as_str(), |(_, version)| version)
    }

    /// Kind and name, for people: `Pod default/a-0`.
    pub fn object(&self) -> String {
        let Document {
            kind,
            namespace,
            name,
            ..
        } = self;
        match (namespace.is_empty(), name.is_empty()) {
            (_, true) => kind.clone(),
            (true, false) => format!("{kind} {name}"),
            (false, false) => format!("{kind} {namespace}/{name}"),
        }
    }

    /// The object as the type that it is. The complaint of a failure names the field at fault.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, Box<Complaint>> {
        let decoded = match &self.body {
            Body::Json(raw) => serde_json::from_str(raw.get()),
            Body::Tree(tree) => T::deserialize(tree),
        };
        // Following the path to a field costs time, so it is done once something is known to be
        // wrong.
        decoded.map_err(|error| Box::new(self.fault::<T>(&error)))
    }

    fn fault<T: DeserializeOwned>(&self, error: &serde_json::Error) -> Complaint {
        let followed = match &self.body {
            Body::Json(raw) => {
                let mut deserializer = serde_json::Deserializer::from_str(raw.get());
                serde_path_to_error::deserialize::<_, T>(&mut deserializer).err()
            }
            Body::Tree(tree) => serde_path_to_error::deserialize::<_, T>(tree).err(),
        };
        let path = followed
            .map(|error| error.path().to_string())
            .unwrap_or_default();
        let message = json::without_place(error);
        let (value, accepted) = message.split_once(", expected ").unwrap_or((&message, ""));
        let field = if path == "." { "" } else { path.as_str() };
        // YAML takes true, 5 and 1e3 for other things than text.
        let unquoted = accepted == "a string"
            && ["boolean", "integer", "floating point"]
                .iter()
                .any(|kind| value.starts_with(&format!("invalid type: {kind}")));
        let accepted = if unquoted {
            "a string, in quotes"
        } else {
            accepted
        };
        self.complaint(Severity::Refused, field, value, accepted)
    }

    /// That this object is refused for something that an adapter function found.
    pub(crate) fn refusal(&self, problem: &Problem) -> Box<Complaint> {
        let object = self.object();
        Box::new(Complaint::from_problem(&self.source, &object, problem))
    }

    /// A complaint about this object.
    pub fn complaint(
        &self,
        severity: Severity,
        field: impl Into<String>,
        value: impl Into<String>,
        accepted: impl Into<String>,
    ) -> Complaint {
        Complaint {
            source: self.source.clone(),
            object: self.object(),
            field: field.into(),
            value: value.into(),
            accepted: accepted.into(),
            severity,
        }
    }
}
