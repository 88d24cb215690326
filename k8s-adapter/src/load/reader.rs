//! The bytes of one file to documents: text or not, JSON or YAML, list or object.

use std::sync::Arc;

use serde_json::{Value, value::RawValue};

use super::{
    Body, Complaint, Document, Severity, Sink, Source,
    json::{self, Envelope},
    split::{self, Chunk},
    yaml::{self, Broken},
};

const ACCEPTED: &str = "Kubernetes objects as YAML or JSON in UTF-8, also as gzip";

/// Reads one unpacked file. `(done, size, total)` say how far the whole input is: bytes before this
/// file, bytes of this file, bytes of all.
pub(super) fn read(
    name: &Arc<str>,
    bytes: &[u8],
    (done, size, total): (u64, u64, u64),
    sink: &mut dyn Sink,
) {
    let text = match text(bytes) {
        Ok(text) => text,
        Err(message) => return sink.complaint(file_complaint(name, message)),
    };
    let mut reader = Reader {
        file: name,
        document: 0,
        sink,
        text_done: 0,
        text_shown: 0,
        text_total: text.len().max(1) as u64,
        progress: (done, size, total),
    };
    for chunk in split::documents(text) {
        if json::is_json(chunk.text) {
            reader.json(&chunk);
        } else {
            reader.yaml(&chunk);
        }
    }
}

/// A complaint about a file as a whole.
pub(super) fn file_complaint(name: &Arc<str>, message: String) -> Complaint {
    Complaint {
        source: Source::file(name),
        object: String::new(),
        field: String::new(),
        value: message,
        accepted: ACCEPTED.into(),
        severity: Severity::Refused,
    }
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err("the file is UTF-16 (in PowerShell, write it with -Encoding utf8)".into());
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes)
        .map_err(|error| format!("not text: byte {} is not UTF-8", error.valid_up_to()))?;
    match text.find('\0') {
        Some(at) => Err(format!("not text: byte {at} is 0")),
        None => Ok(text),
    }
}

/// Bytes of text between two reports of progress.
const PROGRESS_STEP: u64 = 4 << 20;

struct Reader<'s> {
    file: &'s Arc<str>,
    document: u32,
    sink: &'s mut dyn Sink,
    text_done: u64,
    text_shown: u64,
    text_total: u64,
    progress: (u64, u64, u64),
}

impl Reader<'_> {
    fn json(&mut self, chunk: &Chunk<'_>) {
        for value in json::values(chunk) {
            self.document += 1;
            match value {
                Ok(raw) => self.json_document(raw),
                Err(broken) => self.broken(0, broken),
            }
        }
    }

    fn json_document(&mut self, raw: &RawValue) {
        let envelope: Envelope<'_> = match serde_json::from_str(raw.get()) {
            Ok(envelope) => envelope,
            Err(error) => return self.malformed(0, json::without_place(&error)),
        };
        let kind = envelope.kind.as_deref().unwrap_or_default();
        let Some(items) = envelope.items.as_ref().filter(|_| kind.ends_with("List")) else {
            return self.json_object(0, raw, &envelope, ("", ""));
        };
        let defaults = item_defaults(envelope.api_version.as_deref().unwrap_or_default(), kind);
        for (item, raw) in (1..).zip(items) {
            match json::item_envelope(raw) {
                Ok(inner) => self.json_object(item, raw, &inner, defaults),
                Err(error) => self.malformed(item, json::without_place(&error)),
            }
        }
    }

    fn json_object(
        &mut self,
        item: u32,
        raw: &RawValue,
        envelope: &Envelope<'_>,
        defaults: (&str, &str),
    ) {
        let (name, namespace) = envelope.names();
        let object = [
            envelope.api_version.as_deref().unwrap_or(defaults.0),
            envelope.kind.as_deref().unwrap_or(defaults.1),
            namespace,
            name,
        ];
        let length = raw.get().len();
        self.object(item, object, Body::Json(raw));
        self.advance(length);
    }

    fn yaml(&mut self, chunk: &Chunk<'_>) {
        self.document += 1;
        if let Some(items) = split::list_items(chunk) {
            for (item, chunk) in (1..).zip(&items) {
                match yaml::parse_item(chunk) {
                    Ok(tree) => self.tree_object(item, tree, ("", "")),
                    Err(broken) => self.broken(item, broken),
                }
                self.advance(chunk.text.len());
            }
            return;
        }
        match yaml::parse(chunk) {
            // Nothing but a comment after the marker, say.
            Ok(Value::Null) => self.document -= 1,
            Ok(tree) => self.tree(tree),
            Err(broken) => self.broken(0, broken),
        }
        self.advance(chunk.text.len());
    }

    fn tree(&mut self, mut tree: Value) {
        let word = |key: &str| {
            tree.get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let (api_version, kind) = (word("apiVersion"), word("kind"));
        let items = tree.get_mut("items").filter(|_| kind.ends_with("List"));
        let Some(Value::Array(items)) = items.map(Value::take) else {
            return self.tree_object(0, tree, ("", ""));
        };
        let defaults = item_defaults(&api_version, &kind);
        for (item, tree) in (1..).zip(items) {
            self.tree_object(item, tree, defaults);
        }
    }

    fn tree_object(&mut self, item: u32, tree: Value, defaults: (&str, &str)) {
        if !tree.is_object() {
            return self.malformed(item, "not an object".into());
        }
        let word = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let metadata = |key| word(tree.get("metadata").and_then(|metadata| metadata.get(key)));
        let object = [
            word(tree.get("apiVersion")).unwrap_or_else(|| defaults.0.into()),
            word(tree.get("kind")).unwrap_or_else(|| defaults.1.into()),
            metadata("namespace").unwrap_or_default(),
            metadata("name")
                .or_else(|| metadata("generateName"))
                .unwrap_or_default(),
        ];
        self.object(
            item,
            object.each_ref().map(String::as_str),
            Body::Tree(tree),
        );
    }

    fn object(&mut self, item: u32, object: [&str; 4], body: Body<'_>) {
        let [api_version, kind, namespace, name] = object.map(str::to_owned);
        let document = Document {
            source: self.source(item, 0),
            api_version,
            kind,
            namespace,
            name,
            body,
        };
        for (field, value) in [
            ("apiVersion", &document.api_version),
            ("kind", &document.kind),
        ] {
            if value.is_empty() {
                let complaint = document.complaint(Severity::Refused, field, "missing", ACCEPTED);
                return self.sink.complaint(complaint);
            }
        }
        self.sink.document(document);
    }

    fn malformed(&mut self, item: u32, message: String) {
        self.broken(item, Broken { line: 0, message });
    }

    fn broken(&mut self, item: u32, broken: Broken) {
        self.sink.complaint(Complaint {
            source: self.source(item, broken.line),
            object: String::new(),
            field: String::new(),
            value: broken.message,
            accepted: String::new(),
            severity: Severity::Refused,
        });
    }

    fn source(&self, item: u32, line: u64) -> Source {
        Source {
            file: self.file.clone(),
            document: self.document,
            item,
            line,
        }
    }

    fn advance(&mut self, bytes: usize) {
        self.text_done = (self.text_done + bytes as u64).min(self.text_total);
        if self.text_done - self.text_shown >= PROGRESS_STEP {
            self.text_shown = self.text_done;
            let (before, size, total) = self.progress;
            let share = u128::from(size) * u128::from(self.text_done) / u128::from(self.text_total);
            self.sink.progress(before + share as u64, total);
        }
    }
}

/// What the items of a typed list, such as `PodList`, are when they do not say so themselves.
fn item_defaults<'a>(api_version: &'a str, kind: &'a str) -> (&'a str, &'a str) {
    match kind.strip_suffix("List") {
        Some(kind) if !kind.is_empty() => (api_version, kind),
        _ => ("", ""),
    }
}
