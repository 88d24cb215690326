//! What a person's files do to the loader, good and bad.

use std::{collections::BTreeMap, fmt::Write as _, fs, io::Write as _};

use serde::Deserialize;

use super::*;

/// Decodes every object into what most objects have and remembers what it saw.
#[derive(Default)]
struct Seen {
    objects: Vec<String>,
    complaints: Vec<String>,
    progress: Vec<(u64, u64)>,
}

#[derive(Deserialize)]
struct Sample {
    #[serde(default)]
    spec: Spec,
}

#[derive(Default, Deserialize)]
struct Spec {
    replicas: Option<i32>,
    #[serde(default)]
    ports: Vec<u16>,
    #[serde(default)]
    words: BTreeMap<String, String>,
}

impl Sink for Seen {
    fn document(&mut self, document: Document<'_>) {
        match document.decode::<Sample>() {
            Ok(sample) => {
                let extra = sample.spec.ports.len() + sample.spec.words.len();
                let replicas = sample.spec.replicas.unwrap_or(0);
                self.objects
                    .push(format!("{} {replicas} {extra}", document.object()));
            }
            Err(complaint) => self.complaint(*complaint),
        }
    }

    fn complaint(&mut self, complaint: Complaint) {
        self.complaints.push(complaint.to_string());
    }

    fn progress(&mut self, done: u64, total: u64) {
        self.progress.push((done, total));
    }
}

fn read(bytes: impl AsRef<[u8]>) -> Seen {
    let mut seen = Seen::default();
    load_bytes("dump", bytes.as_ref(), &mut seen);
    seen
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

const JSON_LIST: &str = r#"{
  "apiVersion": "v1", "kind": "List",
  "items": [
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "x"}},
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}, "spec": {"replicas": 1e30}},
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "c"}, "spec": {"replicas": 3}}
  ]
}"#;

const YAML_LIST: &str = "\
apiVersion: v1
items:
- apiVersion: v1
  kind: Pod
  metadata:
    name: a
    namespace: x
- apiVersion: v1
  kind: Pod
  metadata:
    name: b
  spec:
    replicas: 1e30
- apiVersion: v1
  kind: Pod
  metadata:
    name: c
  spec:
    replicas: 3
kind: List
metadata:
  resourceVersion: \"\"
";

#[test]
fn a_list_is_read_item_by_item_in_json_and_yaml_and_a_bad_item_costs_only_itself() {
    for text in [JSON_LIST, YAML_LIST] {
        let seen = read(text);
        assert_eq!(seen.objects, ["Pod x/a 0 0", "Pod c 3 0"]);
        let [complaint] = &seen.complaints[..] else {
            panic!("{:?}", seen.complaints);
        };
        let place = "dump, document 1, item 2: Pod b: spec.replicas: ";
        assert!(complaint.starts_with(place), "{complaint}");
        assert!(complaint.ends_with("`; accepted: i32"), "{complaint}");
    }
}

#[test]
fn yaml_of_any_shape_gives_the_same_objects_as_json() {
    let (head, items) = YAML_LIST.split_once("items:\n").unwrap();
    let (items, tail) = items.split_once("kind: List").unwrap();
    let items = items.trim_end().replace('\n', "\n    ");
    let indented = format!("{head}items:\n    {items}\nkind: List{tail}");
    assert_eq!(read(indented).objects.len(), 2);
    assert_eq!(
        read("{apiVersion: v1, kind: Pod, metadata: {name: a}}").objects,
        ["Pod a 0 0"]
    );
    let lines =
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}\n{\"apiVersion\":\"v1\",\"kind\":\"Node\"}\n";
    assert_eq!(read(lines).objects, ["Pod 0 0", "Node 0 0"]);
    let typed = r#"{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a"}}]}"#;
    assert_eq!(read(typed).objects, ["Pod a 0 0"]);
    assert_eq!(
        read("apiVersion: v1\nkind: PodList\nitems: [{metadata: {name: a}}]").objects,
        ["Pod a 0 0"]
    );
    assert!(
        read("apiVersion: v1\nkind: List\nitems: []")
            .objects
            .is_empty()
    );
}

#[test]
fn a_broken_document_costs_only_itself_and_its_line_is_true() {
    let text = "\
apiVersion: v1
kind: Pod
metadata: {name: a}
---
apiVersion: v1
kind: Pod
metadata: {name: b
spec: {}
---
apiVersion: v1
kind: Pod
metadata: {name: c}
";
    let seen = read(text);
    assert_eq!(seen.objects, ["Pod a 0 0", "Pod c 0 0"]);
    assert_eq!(seen.complaints.len(), 1);
    assert!(
        seen.complaints[0].starts_with("dump, document 2, line 8: "),
        "{:?}",
        seen.complaints
    );

    let broken_item = YAML_LIST.replace("    name: b", "    name: \"b");
    let seen = read(broken_item);
    assert_eq!(seen.objects.len(), 2);
    assert!(seen.complaints[0].starts_with("dump, document 1, item 2, line "));
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_change_nothing() {
    for text in [
        JSON_LIST,
        YAML_LIST,
        "apiVersion: v1\nkind: Pod\n---\n\n---\nkind: Pod\n",
    ] {
        let plain = read(text);
        let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        let windows = read(windows);
        assert_eq!(windows.objects, plain.objects);
        assert_eq!(windows.complaints.len(), plain.complaints.len());
    }
    let utf16: Vec<u8> = "\u{feff}kind: Pod"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert!(read(utf16).complaints[0].contains("UTF-16"));
}

#[test]
fn duplicate_keys_are_an_error_of_their_document() {
    let text = "\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  words:
    x: one
    x: two
---
apiVersion: v1
kind: Pod
metadata: {name: b}
";
    let seen = read(text);
    assert_eq!(seen.objects, ["Pod b 0 0"]);
    assert_eq!(seen.complaints.len(), 1);
    assert!(
        seen.complaints[0].starts_with("dump, document 1, line 7: "),
        "{:?}",
        seen.complaints
    );
    assert!(
        seen.complaints[0].contains("duplicate") && !seen.complaints[0].contains("Options"),
        "{:?}",
        seen.complaints
    );

    let json = r#"{"apiVersion":"v1","kind":"Pod","spec":{"replicas":1,"replicas":2}}"#;
    let seen = read(json);
    assert!(seen.objects.is_empty());
    assert_eq!(
        seen.complaints,
        ["dump, document 1: Pod: spec: duplicate field `replicas`"]
    );
    assert_eq!(
        read(r#"{"kind":"Pod","kind":"Node"}"#).complaints,
        ["dump, document 1: duplicate field `kind`"]
    );
}

#[test]
fn anchors_work_and_bombs_do_not() {
    let text = "apiVersion: v1\nkind: Pod\nspec: {ports: [&p 80, *p, *p]}\n";
    assert_eq!(read(text).objects, ["Pod 0 3"]);
    let merged = "apiVersion: v1\nkind: Pod\nx: &x {replicas: 2}\nspec:\n  <<: *x\n  ports: [1]\n";
    assert_eq!(read(merged).objects, ["Pod 2 1"]);

    let mut bomb = "apiVersion: v1\nkind: Pod\na0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned();
    for level in 1..9 {
        let alias = format!("*a{}", level - 1);
        let list = [alias.as_str(); 10].join(", ");
        writeln!(bomb, "a{level}: &a{level} [{list}]").unwrap();
    }
    let seen = read(bomb);
    assert!(seen.objects.is_empty());
    assert_eq!(seen.complaints.len(), 1);

    let deep = format!("apiVersion: v1\nkind: Pod\nx: {}", "[".repeat(100_000));
    assert_eq!(read(deep).complaints.len(), 1);
    let deep = format!("{{\"kind\": {}", "[".repeat(100_000));
    assert_eq!(read(deep).complaints.len(), 1);
}

#[test]
fn what_is_no_object_gets_one_line() {
    for (text, said) in [
        ("- a\n- b\n", "dump, document 1: not an object"),
        ("hello\n", "dump, document 1: not an object"),
        ("kind: Pod\n", "dump, document 1: Pod: apiVersion: missing"),
        ("apiVersion: v1\n", "dump, document 1: kind: missing"),
        (
            "{\"apiVersion\": 5, \"kind\": \"Pod\"}",
            "dump, document 1: invalid type: integer `5`",
        ),
        ("[1, 2]", "dump, document 1: not an object"),
    ] {
        let seen = read(text);
        assert!(seen.objects.is_empty(), "{text}");
        assert_eq!(seen.complaints.len(), 1, "{text}: {:?}", seen.complaints);
        assert!(
            seen.complaints[0].starts_with(said),
            "{text}: {:?}",
            seen.complaints
        );
        assert!(!seen.complaints[0].contains('\n'));
    }
}

#[test]
fn empty_input_is_fine_and_junk_is_one_complaint() {
    for empty in [
        "",
        "\n\n",
        "---\n---\n",
        "# only a comment\n",
        "--- # nothing\n",
    ] {
        let seen = read(empty);
        assert!(
            seen.objects.is_empty() && seen.complaints.is_empty(),
            "{empty:?}"
        );
    }
    for junk in [
        &b"\x7fELF\x02\x01\x01\0\0"[..],
        b"\x89PNG\r\n\x1a\n",
        b"kind: P\0d",
    ] {
        let seen = read(junk);
        assert_eq!(seen.complaints.len(), 1);
        assert!(
            seen.complaints[0].starts_with("dump: not text"),
            "{:?}",
            seen.complaints
        );
    }
}

#[test]
fn gzip_is_known_by_its_bytes_and_a_cut_file_is_not_used_at_all() {
    let packed = gzip(YAML_LIST);
    assert_eq!(read(&packed).objects.len(), 2);
    let twice = [packed.clone(), gzip("---\napiVersion: v1\nkind: Node\n")].concat();
    assert_eq!(read(twice).objects.len(), 3);
    for cut in [2, 11, packed.len() / 2, packed.len() - 1] {
        let seen = read(&packed[..cut]);
        assert!(seen.objects.is_empty());
        assert_eq!(seen.complaints.len(), 1);
        assert!(
            seen.complaints[0].contains("broken gzip"),
            "{:?}",
            seen.complaints
        );
    }
    let seen = read(&JSON_LIST[..JSON_LIST.len() - 20]);
    assert!(seen.objects.is_empty());
    assert!(seen.complaints[0].starts_with("dump, document 1, line 6: EOF"));
}

#[test]
fn a_directory_is_read_in_order_and_a_bad_file_costs_only_itself() {
    let root = std::env::temp_dir().join(format!("gangline-load-{}", std::process::id()));
    let inner = root.join("b-inner");
    fs::create_dir_all(&inner).unwrap();
    let pod = |name: &str| format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\n");
    fs::write(root.join("c.yml"), pod("last")).unwrap();
    fs::write(root.join("a.yaml"), pod("first")).unwrap();
    fs::write(root.join("a.yaml.bad.json"), b"\xff\xff\xff").unwrap();
    fs::write(root.join("README.md"), "not read").unwrap();
    fs::write(root.join(".hidden.yaml"), pod("hidden")).unwrap();
    fs::write(
        inner.join("x.json.gz"),
        gzip(&JSON_LIST.replace("1e30", "1")),
    )
    .unwrap();

    let mut seen = Seen::default();
    let outcome = load(std::slice::from_ref(&root), &mut seen);
    let missing = load(&[root.join("absent.yaml")], &mut Seen::default());
    fs::remove_dir_all(&root).unwrap();

    outcome.unwrap();
    assert_eq!(
        seen.objects,
        [
            "Pod first 0 0",
            "Pod x/a 0 0",
            "Pod b 1 0",
            "Pod c 3 0",
            "Pod last 0 0"
        ]
    );
    assert_eq!(seen.complaints.len(), 1);
    assert!(seen.complaints[0].contains("a.yaml.bad.json: not text"));
    assert!(missing.unwrap_err().to_string().contains("absent.yaml"));
    let (done, total) = *seen.progress.last().unwrap();
    assert_eq!(done, total);
    assert!(seen.progress.is_sorted());
}

#[test]
fn words_that_old_yaml_takes_for_booleans_are_words() {
    let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: off}\nspec: {words: {no: y}}\n";
    assert_eq!(read(text).objects, ["Pod off 0 1"]);
}
