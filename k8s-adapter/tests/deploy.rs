//! What is installed holds what the documents promise.
//!
//! The plain manifests, which `.ci/deploy` renders from the Helm chart, and the dashboard are read and
//! held against the program, the documents and a real API server. Nothing here renders the chart.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use regex::Regex;
use serde_json::{Value, json};

/// All that may be changed: API group, resource, verb. Whoever adds a line says in docs/install.md why.
const WRITES: [(&str, &str, &str); 12] = [
    ("", "persistentvolumeclaims", "patch"),
    ("", "persistentvolumes", "patch"),
    ("", "pods/binding", "create"),
    ("", "pods/eviction", "create"),
    ("", "pods/status", "patch"),
    ("events.k8s.io", "events", "create"),
    ("events.k8s.io", "events", "patch"),
    ("scheduling.k8s.io", "compositepodgroups/status", "patch"),
    ("scheduling.k8s.io", "podgroups/status", "patch"),
    ("scheduling.run.ai", "podgroups/status", "patch"),
    ("scheduling.volcano.sh", "podgroups", "patch"),
    ("scheduling.x-k8s.io", "podgroups/status", "patch"),
];

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let path = root.expect("the crate is in the repository").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn manifest() -> String {
    read("k8s-adapter/deploy/manifests/gangline.yaml")
}

fn objects() -> Vec<Value> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(&manifest()).expect("is YAML");
    objects
        .into_iter()
        .filter(|object| !object.is_null())
        .collect()
}

/// The only object of this kind.
fn object(kind: &str) -> Value {
    let mut found = objects()
        .into_iter()
        .filter(|object| object["kind"] == kind);
    let object = found.next().unwrap_or_else(|| panic!("there is no {kind}"));
    assert!(found.next().is_none(), "there is one {kind}");
    object
}

fn texts(value: &Value) -> Vec<String> {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .map(|text| text.as_str().expect("is text").to_owned())
        .collect()
}

/// The rules of a role as group, resource, verbs; which are all that a rule of ours has.
fn rules(kind: &str) -> Vec<(String, String, BTreeSet<String>)> {
    let role = object(kind);
    let mut all = Vec::new();
    for rule in role["rules"].as_array().expect("has rules") {
        assert_eq!(rule["nonResourceURLs"], Value::Null);
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                let verbs = texts(&rule["verbs"]).into_iter().collect();
                all.push((group.clone(), resource, verbs));
            }
        }
    }
    all
}

/// A pod template and its only container.
fn pod_and_container() -> (Value, Value) {
    let pod = object("Deployment")["spec"]["template"]["spec"].take();
    assert_eq!(pod["initContainers"], Value::Null);
    let containers = pod["containers"].as_array().expect("has containers");
    assert_eq!(containers.len(), 1);
    (pod.clone(), containers[0].clone())
}

#[test]
fn the_scheduler_may_read_what_it_needs_and_write_what_is_listed() {
    let mut writes = BTreeSet::new();
    for (group, resource, verbs) in rules("ClusterRole") {
        for word in verbs.iter().chain([&group, &resource]) {
            assert!(
                !word.contains('*'),
                "no wildcards: {group} {resource} {verbs:?}"
            );
        }
        for verb in verbs {
            match verb.as_str() {
                "list" | "watch" => assert_ne!(resource, "secrets"),
                // Only what became of a bind is asked of a single object.
                "get" => assert_eq!((group.as_str(), resource.as_str()), ("", "pods")),
                verb => {
                    writes.insert((group.clone(), resource.clone(), verb.to_owned()));
                }
            }
        }
    }
    for (group, resource, verbs) in rules("Role") {
        assert_eq!(
            (group.as_str(), resource.as_str()),
            ("coordination.k8s.io", "leases")
        );
        for verb in verbs {
            assert!(
                ["create", "get", "update"].contains(&verb.as_str()),
                "{verb}"
            );
        }
    }
    let listed = WRITES.map(|(group, resource, verb)| (group.into(), resource.into(), verb.into()));
    assert_eq!(writes, BTreeSet::from(listed));
}

#[test]
fn a_lease_is_changed_by_its_name_in_its_own_namespace() {
    let role = object("Role");
    assert_eq!(
        role["metadata"]["namespace"],
        object("Namespace")["metadata"]["name"]
    );
    for rule in role["rules"].as_array().expect("has rules") {
        if texts(&rule["verbs"]) != ["create"] {
            assert_eq!(texts(&rule["resourceNames"]), ["gangline"]);
        }
    }
    let (_, container) = pod_and_container();
    let arguments = texts(&container["args"]);
    assert!(
        arguments.contains(&"--lease=gangline-system/gangline".into()),
        "{arguments:?}"
    );
}

#[test]
fn roles_are_bound_to_the_account_of_the_pods() {
    let account = object("ServiceAccount");
    let (pod, _) = pod_and_container();
    assert_eq!(pod["serviceAccountName"], account["metadata"]["name"]);
    assert_eq!(account["automountServiceAccountToken"], false);
    for kind in ["ClusterRole", "Role"] {
        let binding = object(&format!("{kind}Binding"));
        assert_eq!(binding["roleRef"]["kind"], kind);
        assert_eq!(binding["roleRef"]["name"], object(kind)["metadata"]["name"]);
        let subject = json!([{
            "kind": "ServiceAccount",
            "name": account["metadata"]["name"],
            "namespace": account["metadata"]["namespace"],
        }]);
        assert_eq!(binding["subjects"], subject);
    }
}

#[test]
fn the_document_says_of_each_rule_why_it_is_there() {
    let document = read("docs/install.md");
    for kind in ["ClusterRole", "Role"] {
        for (group, resource, verbs) in rules(kind) {
            let group = if group.is_empty() { "core" } else { &group };
            let line = document.lines().find(|line| {
                let cells: Vec<_> = line.split('|').map(str::trim).collect();
                let [_, of, what, verb, ..] = cells[..] else {
                    return false;
                };
                let named = format!("`{resource}`");
                of == format!("`{group}`")
                    && what.split(", ").any(|name| name == named)
                    && verbs
                        .iter()
                        .all(|wanted| verb.split(", ").any(|verb| verb == wanted))
            });
            assert!(
                line.is_some(),
                "docs/install.md has no line for {group} {resource} {verbs:?}"
            );
        }
    }
}

#[test]
fn the_container_is_nobody_and_can_change_nothing() {
    let (pod, container) = pod_and_container();
    for field in ["hostNetwork", "hostPID", "hostIPC", "volumes"] {
        assert_eq!(pod[field], Value::Null, "{field}");
    }
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_ne!(pod["securityContext"]["runAsUser"], 0);
    assert_eq!(
        pod["securityContext"]["seccompProfile"]["type"],
        "RuntimeDefault"
    );
    let context = &container["securityContext"];
    assert_eq!(context["allowPrivilegeEscalation"], false);
    assert_eq!(context["readOnlyRootFilesystem"], true);
    assert_eq!(context["capabilities"], json!({ "drop": ["ALL"] }));
    assert_eq!(context["privileged"], Value::Null);
    assert!(container["resources"]["requests"]["memory"].is_string());
    assert!(container["resources"]["limits"]["memory"].is_string());
}

#[test]
fn probes_ask_what_is_answered_where_it_is_answered() {
    let (_, container) = pod_and_container();
    let port = container["ports"][0]["containerPort"]
        .as_u64()
        .expect("has a port");
    let arguments = texts(&container["args"]);
    assert!(
        arguments.contains(&format!("--listen=0.0.0.0:{port}")),
        "{arguments:?}"
    );
    for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
        let get = json!({ "path": path, "port": container["ports"][0]["name"] });
        assert_eq!(container[probe]["httpGet"], get, "{probe}");
    }
    let service = object("Service");
    assert_eq!(
        service["spec"]["ports"][0]["targetPort"],
        container["ports"][0]["name"]
    );
}

#[test]
fn replicas_are_two_and_one_stays() {
    let deployment = object("Deployment");
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    assert_eq!(deployment["spec"]["replicas"], 2);
    assert_eq!(object("PodDisruptionBudget")["spec"]["minAvailable"], 1);
    let selectors = [
        &deployment["spec"]["selector"]["matchLabels"],
        &object("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        &object("Service")["spec"]["selector"],
    ];
    for selector in selectors {
        for (key, value) in selector.as_object().expect("has labels") {
            assert_eq!(&labels[key], value, "{key}");
        }
    }
    let (pod, _) = pod_and_container();
    assert_eq!(
        pod["priorityClassName"],
        object("PriorityClass")["metadata"]["name"]
    );
}

#[test]
fn all_versions_are_that_of_the_crate() {
    let version = env!("CARGO_PKG_VERSION");
    let (_, container) = pod_and_container();
    let image = container["image"].as_str().expect("is text");
    assert_eq!(
        image.rsplit_once(':'),
        Some(("registry.example.com/gangline", version))
    );
    let chart: Value =
        serde_saphyr::from_str(&read("k8s-adapter/deploy/chart/Chart.yaml")).expect("is YAML");
    assert_eq!(chart["version"], version);
    assert_eq!(chart["appVersion"], version);
    let images = Regex::new(r"/gangline:([0-9.]+)").expect("is valid");
    for path in ["k8s-adapter/deploy/Containerfile", "docs/install.md"] {
        let text = read(path);
        let tags: Vec<_> = images
            .captures_iter(&text)
            .map(|found| found[1].to_owned())
            .collect();
        assert!(!tags.is_empty(), "{path} names the image");
        assert!(tags.iter().all(|tag| tag == version), "{path}: {tags:?}");
    }
}

/// The metrics that docs/metrics.md describes, with their types.
fn metrics() -> BTreeMap<String, String> {
    let row = Regex::new(r"(?m)^\| `(gangline_[a-z_]+)` \| (gauge|counter|histogram) \|");
    let document = read("docs/metrics.md");
    let rows = row.expect("is valid");
    let found = rows.captures_iter(&document);
    found
        .map(|row| (row[1].to_owned(), row[2].to_owned()))
        .collect()
}

#[test]
fn metrics_are_named_as_prometheus_wants_it() {
    let metrics = metrics();
    assert!(metrics.len() > 20, "{metrics:?}");
    for (name, kind) in metrics {
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
        assert!(kind != "histogram" || name.ends_with("_seconds"), "{name}");
    }
}

#[test]
fn the_dashboard_shows_metrics_that_there_are() {
    let text = read("k8s-adapter/deploy/grafana/gangline.json");
    let dashboard: Value = serde_json::from_str(&text).expect("is JSON");
    let metrics = metrics();
    let names = Regex::new("gangline_[a-z_]+").expect("is valid");
    let mut shown = BTreeSet::new();
    for panel in dashboard["panels"].as_array().expect("has panels") {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expression = target["expr"].as_str().expect("asks for something");
            for name in names.find_iter(expression) {
                let of_histogram = ["_bucket", "_count", "_sum"];
                let base = of_histogram
                    .iter()
                    .find_map(|suffix| name.as_str().strip_suffix(suffix))
                    .filter(|base| metrics.get(*base).is_some_and(|kind| kind == "histogram"));
                let base = base.unwrap_or(name.as_str());
                assert!(metrics.contains_key(base), "{} in {}", base, panel["title"]);
                shown.insert(base.to_owned());
            }
        }
    }
    let all = metrics
        .into_keys()
        .filter(|name| name != "gangline_build_info");
    assert_eq!(shown, all.collect::<BTreeSet<_>>());
}

/// What needs the program with `gangline run` in it.
#[cfg(feature = "live-tests")]
mod live {
    use std::{
        collections::BTreeSet,
        fmt::Write as _,
        fs::{self, File},
        process::Command,
        thread,
        time::{Duration, Instant},
    };

    use gangline_controlplane::ControlPlane;
    use regex::Regex;

    use super::{manifest, pod_and_container, texts};

    /// When to stop waiting for what will not come.
    const PATIENCE: Duration = Duration::from_mins(3);
    const VOLCANO: &str = include_str!("live/volcano.yaml");
    const NODE: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}
status:
  allocatable: {cpu: "64", memory: 512Gi, pods: "110", nvidia.com/gpu: "4"}
  conditions: [{type: Ready, status: "True"}]
"#;

    fn flag(argument: &str) -> &str {
        argument.split('=').next().unwrap_or_default()
    }

    fn arguments() -> Vec<String> {
        texts(&pod_and_container().1["args"])
    }

    #[test]
    fn each_argument_is_one_that_the_program_knows() {
        let help = Command::new(env!("CARGO_BIN_EXE_gangline"))
            .args(["run", "--help"])
            .output()
            .expect("the command starts");
        let help = String::from_utf8(help.stdout).expect("is text");
        let flags = Regex::new("--[a-z-]+").expect("is valid");
        let known: BTreeSet<_> = flags.find_iter(&help).map(|flag| flag.as_str()).collect();
        let arguments = arguments();
        assert_eq!(arguments.first().map(String::as_str), Some("run"));
        for flag in arguments[1..].iter().map(|argument| flag(argument)) {
            assert!(known.contains(flag), "{flag}");
        }
    }

    /// The definition of a group, a group of two that fits, and one of two that does not.
    fn groups() -> String {
        let mut text = VOLCANO.to_owned();
        for (group, cards) in [("small", 2), ("large", 3)] {
            let _ = write!(
                text,
                r"
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {{name: {group}, namespace: default}}
spec: {{minMember: 2}}
"
            );
            for number in 0..2 {
                let _ = write!(
                    text,
                    r"---
apiVersion: v1
kind: Pod
metadata:
  name: {group}-{number}
  namespace: default
  annotations: {{scheduling.k8s.io/group-name: {group}}}
spec:
  schedulerName: gangline
  containers:
  - {{name: main, image: none, resources: {{limits: {{nvidia.com/gpu: {cards}}}}}}}
"
                );
            }
        }
        text
    }

    #[test]
    fn the_manifest_is_taken_and_its_role_is_enough() {
        let control_plane = ControlPlane::builder().start().unwrap();
        control_plane.apply(&manifest()).unwrap();

        // The scheduler is who it will be.
        let token = control_plane.service_account_token("gangline-system", "gangline");
        let kubeconfig = control_plane
            .write_kubeconfig("of-the-scheduler", &control_plane.url(), &token.unwrap())
            .unwrap();
        let log_path = control_plane.directory().join("gangline.log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_gangline"));
        // Two tests on one machine would listen on one port.
        let is_kept = |argument: &String| flag(argument) != "--listen";
        command
            .args(arguments().into_iter().filter(is_kept))
            .stderr(File::create(&log_path).unwrap());
        control_plane.attach(&mut command);
        command.env("KUBECONFIG", kubeconfig);
        let mut scheduler = command.spawn().expect("the scheduler starts");

        control_plane.apply(NODE).unwrap();
        control_plane.apply(&groups()).unwrap();
        let pod = |name: &str| {
            let pod = control_plane.get(&format!("/api/v1/namespaces/default/pods/{name}"));
            pod.unwrap().json().unwrap()
        };
        let is_bound = |name: &str| pod(name)["spec"]["nodeName"] == "n1";
        let says_why = |name: &str| {
            let conditions = pod(name)["status"]["conditions"].take();
            let conditions = conditions.as_array().map(Vec::as_slice).unwrap_or_default();
            let scheduled = conditions
                .iter()
                .find(|condition| condition["type"] == "PodScheduled");
            scheduled.is_some_and(|condition| condition["status"] == "False")
        };
        let is_done = || {
            ["small-0", "small-1"].into_iter().all(is_bound)
                && ["large-0", "large-1"].into_iter().all(says_why)
        };
        let since = Instant::now();
        while !is_done() && since.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(50));
        }
        let is_done = is_done();
        scheduler.kill().unwrap();
        scheduler.wait().unwrap();
        let log = fs::read_to_string(&log_path).unwrap();
        assert!(is_done, "{log}");
        assert!(!log.contains("forbidden"), "{log}");
        control_plane.passed();
    }
}
