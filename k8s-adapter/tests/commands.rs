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

/// A file under the target folder with this text.
fn file(name: &str, text: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("the file can be written");
    path.to_str().expect("the path is text").to_owned()
}

#[test]
fn a_scenario_with_nothing_in_it_is_an_error() {
    for (name, scenario) in [
        ("empty.yaml", ""),
        ("about.yaml", "scenario: x\nabout: nothing\n"),
    ] {
        let output = run(&["simulate", &file(name, scenario)]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        let errors = text(&output.stderr);
        assert!(
            errors.contains("nothing happens in it; accepted: "),
            "{errors}"
        );
    }
}

#[test]
fn a_manifest_with_no_object_is_an_error() {
    let nothing = file("nothing.yaml", "# a note\n---\n");
    let output = run(&["plan", "--cluster", CLUSTER, &nothing]);
    assert_eq!(output.status.code(), Some(1));
    let errors = text(&output.stderr);
    assert!(errors.contains("no object in it can be used"), "{errors}");
    // What makes no pods is an object all the same.
    let other = file(
        "map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
    );
    let output = run(&["plan", "--cluster", CLUSTER, &nothing, &other]);
    assert_eq!(output.status.code(), Some(0));
    let queue = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\n";
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n";
    let files = [file("queue.yaml", queue), file("beside.yaml", pod)];
    let output = run(&["plan", "--cluster", CLUSTER, &files[0], &files[1]]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    // What makes pods that nobody plans is no plan for them, whatever else is in the file.
    for (name, pods) in [
        (
            "jobset.yaml",
            "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet",
        ),
        ("core.yaml", "apiVersion: v1\nkind: Deployment"),
        (
            "controller.yaml",
            "apiVersion: v1\nkind: ReplicationController",
        ),
    ] {
        let text_of = format!(
            "{pods}\nmetadata: {{name: x}}\n---\napiVersion: v1\nkind: Service\nmetadata: {{name: x}}\n"
        );
        let output = run(&["plan", "--cluster", CLUSTER, &file(name, &text_of)]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        let errors = text(&output.stderr);
        assert!(errors.contains("no object in it can be used"), "{errors}");
    }
}

#[test]
fn a_cluster_that_cannot_be_read_is_no_proof() {
    let cluster = file(
        "cut.yaml",
        "apiVersion: v1\nkind: Node\nmetadata: {name: n1\n",
    );
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n";
    let output = run(&["plan", "--cluster", &cluster, &file("pod.yaml", pod)]);
    assert_eq!(output.status.code(), Some(1));
    let errors = text(&output.stderr);
    assert!(errors.contains("no node, group or pod in it"), "{errors}");
}

#[test]
fn a_group_that_is_named_in_the_wrong_place_is_pointed_out() {
    let spec = "spec: {containers: [{name: c}]}";
    let label = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p, labels: {{scheduling.k8s.io/group-name: g}}}}\n\
         {spec}\n"
    );
    let owner = format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: j, labels: \
         {{scheduling.x-k8s.io/pod-group: g}}}}\nspec: {{template: {{{spec}}}}}\n"
    );
    for (name, manifest, said) in [
        (
            "label.yaml",
            &label,
            "metadata.labels[scheduling.k8s.io/group-name]: names no group here; accepted: \
             metadata.annotations[scheduling.k8s.io/group-name]",
        ),
        (
            "owner.yaml",
            &owner,
            "metadata.labels[scheduling.x-k8s.io/pod-group]: its pods do not get it, so they have no \
             group; accepted: in spec.template.metadata",
        ),
    ] {
        let output = run(&["plan", "--cluster", CLUSTER, &file(name, manifest)]);
        let errors = text(&output.stderr);
        assert!(errors.contains(said), "{name}: {errors}");
    }
}

#[test]
fn a_misspelt_device_is_named() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, \
               resources: {limits: {nvidia.com/gpus: 1}}}]}\n";
    let output = run(&["plan", "--cluster", CLUSTER, &file("gpus.yaml", pod)]);
    let errors = text(&output.stderr);
    let named = "spec: no node has nvidia.com/gpus; did you mean nvidia.com/gpu?";
    assert!(errors.contains(named), "{errors}");
}

#[test]
fn pods_that_run_with_too_few_cards_are_noted() {
    let cluster = file(
        "lost.yaml",
        "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 8, pods: 9, \
         nvidia.com/gpu: 1}}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {nodeName: n1, \
         priority: 0, containers: [{name: c, resources: {limits: {nvidia.com/gpu: 2}}}]}\nstatus: \
         {phase: Running}\n",
    );
    let output = run(&["plan", "--cluster", &cluster]);
    let printed = text(&output.stdout);
    let note = "pod p runs on node n1, which has 1 of the 2 cards it needs";
    assert!(printed.contains(note), "{printed}");
}

#[test]
fn a_misspelt_mig_device_is_named() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, \
               resources: {limits: {nvidia.com/mig-1g5gb: 1}}}]}\n";
    let output = run(&["plan", "--cluster", CLUSTER, &file("mig.yaml", pod)]);
    let errors = text(&output.stderr);
    let named = "spec: nvidia.com/mig-1g5gb; accepted: nvidia.com/mig-PROFILE";
    assert!(errors.contains(named), "{errors}");
}

#[test]
fn a_level_that_no_node_has_is_named() {
    let output = run(&["plan", "--cluster", CLUSTER, "--levels", "rack"]);
    assert_eq!(output.status.code(), Some(0));
    let errors = text(&output.stderr);
    assert!(
        errors.contains("--levels: no node has the label \"rack\""),
        "{errors}"
    );
    let strict = run(&["plan", "--strict", "--cluster", CLUSTER, "--levels", "rack"]);
    assert_eq!(strict.status.code(), Some(1));
}

/// Each wrong value of the cards of a node or a pod is one line that names the object, the field, the
/// value and what is accepted; a pod that is right is placed all the same.
#[test]
fn bad_cards_are_named_and_the_rest_works_on() {
    let node = |name: &str, product: &str, annotations: &str, gpus: u32| {
        format!(
            "---\napiVersion: v1\nkind: Node\nmetadata:\n  name: {name}\n  labels: \
             {{nvidia.com/gpu.product: {product}, nvidia.com/gpu.memory: '81559'}}\n  annotations: \
             {{{annotations}}}\nstatus: {{allocatable: {{cpu: 64, memory: 512Gi, pods: 110, \
             nvidia.com/gpu: {gpus}}}}}\n"
        )
    };
    let pod = |name: &str, annotations: &str, limits: &str| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, annotations: {{{annotations}}}}}\n\
             spec: {{containers: [{{name: c, resources: {{limits: {{{limits}}}}}}}]}}\n"
        )
    };
    let a100 = "NVIDIA-A100-SXM4-80GB";
    let names: Vec<String> = (0..17).map(|card| format!("GPU{card}")).collect();
    let rows = (0..17).map(|row| {
        let cells: Vec<_> = (0..17)
            .map(|column| if row == column { "X" } else { "NV4" })
            .collect();
        format!("GPU{row} {}", cells.join(" "))
    });
    let seventeen = format!(
        "{}\\n{}",
        names.join(" "),
        rows.collect::<Vec<_>>().join("\\n")
    );
    let good =
        node("good", a100, "gangline.io/cards: shared", 1) + &pod("fine", "", "nvidia.com/gpu: 1");
    let cards = |value: &str| format!("gangline.io/cards: '{value}'");
    let links = |value: &str| format!("gangline.io/links: \"{value}\"");
    let share = |value: &str| format!("gangline.io/share-memory: '{value}'");
    let bad_nodes = [
        (
            cards("{mig-static: [2g.11gb@0]}"),
            "gangline.io/cards]: these cards are not used: cards.modes[0]: MIG profile \"2g.11gb\" of",
            "accepted: 1g.10gb, ",
        ),
        (
            cards("{mig-static: [3g.40gb@0, 1g.10gb@2]}"),
            "gangline.io/cards]: these cards are not used: cards.modes[0]: 1g.10gb@2 is not legal or overlaps",
            "accepted: a free start of the profile: 4, 5, 6",
        ),
        (
            cards("{replicas: 70000}"),
            "gangline.io/cards]: cards.modes[0]: 70000 replicas",
            "accepted: 2 to 1000",
        ),
        (links("X NV4; NV2 X"), "gangline.io/links]: ", "NV2"),
        (links("X NV4"), "gangline.io/links]: ", "accepted"),
        (
            links(&seventeen),
            "gangline.io/links]: ",
            "17 cards; 1 to 16 are accepted",
        ),
    ];
    for (annotation, field, says) in bad_nodes {
        let dump = good.clone() + &node("bad", a100, &annotation, 2);
        let output = run(&["plan", "--cluster", &file("bad-node.yaml", &dump)]);
        let errors = text(&output.stderr);
        assert_eq!(errors.lines().count(), 1, "{errors}");
        for part in ["warning: ", "Node bad: metadata.annotations[", field, says] {
            assert!(errors.contains(part), "{annotation}: {part}: {errors}");
        }
        assert!(
            text(&output.stdout).contains("default/fine  placed"),
            "{}",
            text(&output.stdout)
        );
    }
    let bad_pods = [
        (
            share("0"),
            "",
            "gangline.io/share-memory]: \"0\"",
            "accepted: an amount with its unit",
        ),
        (
            share("-5Gi"),
            "",
            "gangline.io/share-memory]: \"-5Gi\"",
            "accepted: an amount with its unit",
        ),
        (
            share("5Gi"),
            "nvidia.com/gpu: 9",
            "spec: 9 shares in a pod",
            "accepted: 1 to 8",
        ),
        (
            "gangline.io/share-compute: '0'".into(),
            "",
            "gangline.io/share-compute]: \"0\"",
            "above 0 and at most 1",
        ),
        (
            "gangline.io/card-near: numa-node".into(),
            "nvidia.com/mig-1g.10gb: 2",
            "gangline.io/card-near]: numa-node of MIG slices",
            "accepted: whole cards only",
        ),
    ];
    for (annotation, limits, field, says) in bad_pods {
        let dump = good.clone() + &pod("bad", &annotation, limits);
        let output = run(&["plan", "--cluster", &file("bad-pod.yaml", &dump)]);
        let errors = text(&output.stderr);
        assert_eq!(errors.lines().count(), 1, "{errors}");
        for part in ["not used: ", "Pod default/bad: ", field, says] {
            assert!(errors.contains(part), "{annotation}: {part}: {errors}");
        }
        assert!(
            text(&output.stdout).contains("default/fine  placed"),
            "{}",
            text(&output.stdout)
        );
    }
    // Right as such, and more than any card has: the reason says what there is.
    let dump =
        good + &pod("large", &share("90Gi"), "") + &pod("odd", "", "nvidia.com/mig-1g.5gb: 1");
    let path = file("large.yaml", &dump);
    let output = run(&["why", "--cluster", &path, "large"]);
    let story = text(&output.stdout);
    for part in [
        "1 with too little memory on a card (NVIDIA-A100-SXM4-80GB, 80743 MiB for shares)",
        "92160 declared + 420 context = 92580  (large)",
    ] {
        assert!(story.contains(part), "{part}: {story}");
    }
    let errors = text(&output.stderr);
    assert!(
        errors.contains("no node has MIG instances of \"1g.5gb\""),
        "{errors}"
    );
}

#[test]
fn cards_of_an_unknown_model_are_counted_and_why_says_so() {
    let dump = "apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {nvidia.com/gpu.product: \
                NVIDIA-X9000}}\nstatus: {allocatable: {cpu: 8, pods: 110, nvidia.com/gpu: 4}}\n---\n\
                apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, resources: \
                {limits: {nvidia.com/gpu: 1}}}]}\n";
    let output = run(&["why", "--cluster", &file("unknown.yaml", dump), "p"]);
    let story = text(&output.stdout);
    let note = "Note: cards of node n1 are of a model that is not known (NVIDIA-X9000)";
    assert!(story.contains(note), "{story}");
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

#[test]
fn a_picture_in_another_format_is_refused_before_anything_is_done() {
    let output = run(&["plan", "--cluster", CLUSTER, "--picture", "x.png"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("pictures are SVG; accepted: a name that ends in .svg"));
}

#[test]
fn why_suggests_the_name_that_is_meant() {
    let output = run(&["why", "--cluster", CLUSTER, "batch-71"]);
    assert_eq!(output.status.code(), Some(1));
    let errors = text(&output.stderr);
    assert!(
        errors.contains("did you mean default/batch-17?"),
        "{errors}"
    );
}

#[test]
fn a_misspelt_minimum_is_an_error_where_every_problem_is_one() {
    let group = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g}\n\
                 spec: {minMemer: 4}\n";
    let group = file("misspelt.yaml", group);
    let output = run(&["plan", "--strict", "--cluster", CLUSTER, &group]);
    assert_eq!(output.status.code(), Some(1));
    let errors = text(&output.stderr);
    assert!(errors.contains("spec.minMemer: no such field"), "{errors}");
}

#[test]
fn a_scenario_about_a_model_that_no_node_has_is_played_with_a_warning() {
    let scenario = "nodes: [{name: n1, cards: 2, model: A100-40GB}]\n\
                    work: [{single: a, pod: {cards: 1, models: [A100-4OGB]}}]\n\
                    expect: [{at: 0s, gang: a, placed: 0}]\n";
    let output = run(&["simulate", &file("model.yaml", scenario)]);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(
        errors.contains("no node has cards of \"A100-4OGB\"; did you mean A100-40GB?"),
        "{errors}"
    );
}

#[test]
fn what_is_told_of_a_pod_and_cannot_be_is_named_and_a_note_on_several_is_said_once() {
    let pod = |name: &str, cards: u32, told: &str| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, annotations: \
             {{gangline.io/devices: '{told}'}}}}\nspec: {{nodeName: n1, containers: [{{name: m, \
             resources: {{limits: {{nvidia.com/gpu: {cards}}}}}}}]}}\nstatus: {{phase: Running}}\n"
        )
    };
    let mut cluster = String::from(
        "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {nvidia.com/gpu: 4}}\n",
    );
    cluster.push_str(&pod("fewer", 2, "0-2"));
    let one = run(&["plan", "--cluster", &file("told.yaml", &cluster)]);
    let shown = text(&one.stdout);
    let note = "default/fewer: what is told of pod fewer, cards 0-2, cannot be what it has there";
    assert!(shown.contains(note), "{shown}");
    cluster.push_str(&pod("a", 2, "0-1"));
    cluster.push_str(&pod("b", 2, "0-1"));
    let output = run(&["plan", "--cluster", &file("told-twice.yaml", &cluster)]);
    let shown = text(&output.stdout);
    assert_eq!(shown.matches("nobody knows").count(), 1, "{shown}");
}

fn h100_node(name: &str, allocatable: u32) -> String {
    format!(
        "---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{nvidia.com/gpu.product: \
         NVIDIA-H100-80GB-HBM3}}}}\nstatus: {{allocatable: {{nvidia.com/gpu: {allocatable}}}, capacity: \
         {{nvidia.com/gpu: 8}}}}\n"
    )
}

fn waiting_pod(name: &str, metadata: &str, cards: u32) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, {metadata}}}\nspec: {{containers: \
         [{{name: m, resources: {{limits: {{nvidia.com/gpu: {cards}}}}}}}]}}\n"
    )
}

#[test]
fn what_is_offered_goes_by_the_links_and_the_memory_that_cards_need() {
    let withheld = [h100_node("h1", 7), waiting_pod("all", "", 8)].concat();
    let output = run(&["plan", "--cluster", &file("withheld.yaml", &withheld)]);
    let shown = text(&output.stdout);
    let offer = "admitted if 1 more GPU of node h1 becomes allocatable";
    assert!(shown.contains(offer), "{shown}");
    let memory = "annotations: {gangline.io/card-memory: 79Gi}";
    let large = [
        h100_node("h1", 8),
        waiting_pod("a", "", 8),
        waiting_pod("large", memory, 4),
    ];
    let output = run(&["plan", "--cluster", &file("memory.yaml", &large.concat())]);
    let shown = text(&output.stdout);
    assert!(
        shown.contains("4 more H100-80GB appear"),
        "any card would not do: {shown}"
    );
}

#[test]
fn what_would_be_applied_is_tried_in_the_order_of_the_documents() {
    let group = "---\napiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: z, \
                 creationTimestamp: '2026-11-30T12:00:00Z'}\nspec: {minMember: 2}\n";
    let label = "labels: {scheduling.x-k8s.io/pod-group: z}";
    let objects = [
        group.to_owned(),
        waiting_pod("z-0", label, 4),
        waiting_pod("z-1", label, 4),
        waiting_pod("a", "", 4),
    ];
    let cluster = file("order-cluster.yaml", &h100_node("h1", 8));
    let manifest = file("order-manifest.yaml", &objects.concat());
    let output = run(&["plan", "--cluster", &cluster, &manifest]);
    let shown = text(&output.stdout);
    let placed = |line: &str| line.starts_with("default/z") && line.contains("placed");
    assert!(shown.lines().any(placed), "{shown}");
}
