//! Any bytes as a file: YAML, JSON, gzip of these, or nothing of the kind.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use gangline_k8s::{
    api,
    load::{self, Complaint, Document, Sink},
    world::{Builder, Options},
};
use serde_json::Value;

use crate::plan::plan;

/// A workload of more pods than this is only slow.
const MOST_PODS: f64 = 32.0;

/// The same bytes as gzip are the same file, and both a dump and a manifest can be planned for.
pub fn documents(data: &[u8]) {
    let found = found(data);
    if !data.starts_with(&[0x1f, 0x8b]) {
        assert_eq!(found, self::found(&packed(data)), "plain and as gzip");
    }
    let options = Options::default();
    let mut progress = |_, _| ();
    let mut dump = Builder::new(&options, &mut progress);
    dump.read(|builder| load::load_bytes("dump", data, builder));
    plan(dump.finish(), |_| false);

    let mut manifest = Builder::new(&options, &mut progress);
    manifest.apply(|builder| load::load_bytes("manifest", data, &mut Small(builder)));
    plan(manifest.finish(), |_| false);
}

fn packed(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).expect("memory takes all bytes");
    encoder.finish().expect("memory takes all bytes")
}

/// One line for each document and complaint.
fn found(data: &[u8]) -> Vec<String> {
    let mut lines = Lines::default();
    load::load_bytes("file", data, &mut lines);
    lines.0
}

#[derive(Default)]
struct Lines(Vec<String>);

impl Sink for Lines {
    fn document(&mut self, document: Document<'_>) {
        let decoded = [
            document.decode::<api::Pod>().err(),
            document.decode::<api::Node>().err(),
            document.decode::<Value>().err(),
        ];
        let source = &document.source;
        self.0.push(format!("{source}: {}", document.object()));
        let complaints = decoded.into_iter().flatten();
        complaints.for_each(|complaint| self.complaint(*complaint));
    }

    fn complaint(&mut self, complaint: Complaint) {
        self.0.push(complaint.to_string());
    }
}

/// Leaves out workloads of many pods.
struct Small<'a, S>(&'a mut S);

impl<S: Sink> Sink for Small<'_, S> {
    fn document(&mut self, document: Document<'_>) {
        let object: Value = document.decode().unwrap_or_default();
        let many = |field: &str| {
            let count = &object["spec"][field];
            count.as_f64().is_some_and(|count| count > MOST_PODS)
        };
        if !["replicas", "parallelism", "completions"]
            .into_iter()
            .any(many)
        {
            self.0.document(document);
        }
    }

    fn complaint(&mut self, complaint: Complaint) {
        self.0.complaint(complaint);
    }
}
