//! How the commands end, and what goes to which stream.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
};

const CLUSTER: &str = "docs/examples/five-free-gpus/cluster.yaml";
const SERVICES: &str = "docs/examples/five-free-gpus/services.yaml";

fn gangline(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gangline"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    command
        .current_dir(root.expect("the crate is in the repository"))
        .args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    gangline(arguments).output().expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn exit_codes_are_those_of_the_documents() {
    let code = |arguments: &[&str]| run(arguments).status.code();
    assert_eq!(code(&["--help"]), Some(0));
    assert_eq!(
        code(&["plan"]),
        Some(1),
        "wrong usage is an error, not something that waits"
    );
    assert_eq!(code(&["plan", "--cluster", CLUSTER]), Some(0));
    assert_eq!(code(&["plan", "--cluster", CLUSTER, SERVICES]), Some(2));
    assert_eq!(code(&["why", "--cluster", CLUSTER, "batch-17"]), Some(0));
    assert_eq!(code(&["why", "--cluster", CLUSTER, "nobody"]), Some(1));
    assert_eq!(code(&["plan", "--cluster", "no/such/file"]), Some(1));
    assert_eq!(
        code(&["simulate", CLUSTER]),
        Some(1),
        "a dump is no scenario"
    );
    assert_eq!(code(&["simulate", "docs/examples/scenario.yaml"]), Some(0));
    assert_eq!(code(&["cards"]), Some(0));
    assert_eq!(code(&["cards", "A30", "--occupied", "4g.24gb@0"]), Some(0));
    assert_eq!(code(&["cards", "no-such-card"]), Some(1));
}

#[test]
fn json_and_yaml_hold_the_same() {
    let json = run(&["plan", "--cluster", CLUSTER, SERVICES, "-o", "json"]);
    let yaml = run(&["plan", "--cluster", CLUSTER, SERVICES, "-o", "yaml"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("is JSON");
    let yaml: serde_json::Value = serde_saphyr::from_str(&text(&yaml.stdout)).expect("is YAML");
    assert_eq!(json, yaml);
    let gangs = json["gangs"].as_array().expect("is a list");
    let verdicts: Vec<_> = gangs.iter().map(|gang| gang["verdict"].as_str()).collect();
    assert_eq!(
        verdicts,
        [
            Some("placed"),
            Some("placed"),
            Some("placed"),
            Some("infeasible")
        ]
    );
}

#[test]
fn a_bad_document_costs_a_line_and_with_strict_the_command() {
    let bad = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bad.yaml");
    let document = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  \
                    - name: c\n    resources: {requests: {cpu: -1}}\n";
    std::fs::write(&bad, document).expect("the file can be written");
    let bad = bad.to_str().expect("the path is text");
    let lenient = run(&["plan", "--cluster", CLUSTER, bad]);
    assert!(
        text(&lenient.stderr).contains("bad.yaml"),
        "{}",
        text(&lenient.stderr)
    );
    assert!(
        text(&lenient.stdout).contains("default/batch-17"),
        "the rest is still used"
    );
    let strict = run(&["plan", "--strict", "--cluster", CLUSTER, bad]);
    assert_eq!(strict.status.code(), Some(1));
    assert!(strict.stdout.is_empty(), "nothing is planned");
    assert!(text(&strict.stderr).contains("error: problems in the input: 1"));
}

#[test]
fn a_manifest_of_which_nothing_can_be_used_is_an_error() {
    for (name, manifest) in [
        ("junk.yaml", "this is: [no manifest\n"),
        (
            "types.yaml",
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {a/b: true}}\n",
        ),
    ] {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, manifest).expect("the file can be written");
        let path = path.to_str().expect("the path is text");
        let output = run(&["plan", "--cluster", CLUSTER, path]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(output.stdout.is_empty(), "nothing is planned");
        let errors = text(&output.stderr);
        assert!(errors.contains("not used: "), "{errors}");
        assert!(errors.contains("no object in it can be used"), "{errors}");
    }
}

#[test]
fn nothing_is_coloured_and_no_bar_is_drawn_off_a_terminal() {
    let output = run(&["plan", "--cluster", CLUSTER, SERVICES]);
    assert!(!text(&output.stdout).contains('\u{1b}'));
    assert!(output.stderr.is_empty());
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let mut command = gangline(&["plan", "--cluster", CLUSTER, SERVICES, "-o", "json"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the command ends");
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
}

#[test]
fn completions_and_man_pages_come_from_the_same_source() {
    let script = run(&["completions", "bash"]);
    assert!(text(&script.stdout).contains("--picture"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("man");
    let folder = folder.to_str().expect("the path is text");
    assert_eq!(run(&["man", "--dir", folder]).status.code(), Some(0));
    let page = Path::new(folder).join("gangline-plan.1");
    assert!(
        std::fs::read_to_string(page)
            .expect("the page is there")
            .contains("picture")
    );
}
