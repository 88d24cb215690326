//! `JobSet`s and `LeaderWorkerSet`s by their own controllers.
//!
//! `.ci/owners` builds the controllers, which takes minutes, so `make test` passes these tests over and
//! `make owners` runs them. The controllers run with their webhooks, as in any cluster: a
//! `LeaderWorkerSet`'s pods get the number of their group from one, and a `JobSet`'s followers their place.
//! The API server reaches them on loopback, where they show its own certificate.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::{self, File},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::support::{Cluster, Listener, node};

/// A project, the kind of its configuration, and the label that all pods have which its webhooks are for:
/// what its own manifests select them by.
const PROJECTS: [(&str, &str, &str); 2] = [
    (
        "jobset",
        "config.jobset.x-k8s.io",
        "jobset.sigs.k8s.io/jobset-name",
    ),
    (
        "lws",
        "config.lws.x-k8s.io",
        "leaderworkerset.sigs.k8s.io/name",
    ),
];

/// Where the controllers, their definitions and their webhooks are.
fn programs() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.ci/owners");
    let mut command = Command::new(script);
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = output.output().expect("the script is there");
    assert!(output.status.success(), "the controllers cannot be built");
    String::from_utf8_lossy(&output.stdout).trim_end().into()
}

/// A part of the shared control plane, where the controllers run.
fn share(name: &str) -> Cluster {
    static STARTED: OnceLock<()> = OnceLock::new();
    let cluster = Cluster::share(name);
    STARTED.get_or_init(|| {
        let programs = programs();
        for (project, configuration, label) in PROJECTS {
            start(
                &cluster,
                &programs.join(project),
                project,
                configuration,
                label,
            );
        }
    });
    cluster
}

/// Defines a project's kinds, starts its controller, and then makes the API server ask its webhooks.
fn start(cluster: &Cluster, files: &Path, project: &str, configuration: &str, label: &str) {
    let control_plane = &cluster.control_plane;
    for file in fs::read_dir(files.join("definitions")).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        control_plane.apply(&text).unwrap();
    }

    let directory = control_plane.directory().join(project);
    fs::create_dir(&directory).unwrap();
    let certificates = control_plane.certificates();
    fs::copy(&certificates, directory.join("tls.crt")).unwrap();
    fs::copy(
        certificates.with_extension("key"),
        directory.join("tls.key"),
    )
    .unwrap();
    let (webhooks, health) = (Listener::free().address, Listener::free().address);
    let (host, port) = webhooks.split_once(':').unwrap();
    let port: u16 = port.parse().unwrap();
    let settings = json!({
        "apiVersion": format!("{configuration}/v1alpha1"),
        "kind": "Configuration",
        "webhook": { "host": host, "port": port, "certDir": directory },
        "health": { "healthProbeBindAddress": health },
        "metrics": { "bindAddress": "0" },
        "leaderElection": { "leaderElect": false },
        "internalCertManagement": { "enable": false },
    });
    let file = directory.join("configuration.json");
    fs::write(&file, settings.to_string()).unwrap();
    let log = File::create(directory.join("log")).unwrap();
    let mut command = Command::new(files.join("controller"));
    command
        .arg("--leader-elect=false")
        .arg(format!("--config={}", file.display()))
        .stdout(log.try_clone().unwrap())
        .stderr(log);
    control_plane.attach(&mut command);
    let mut controller = command.spawn().unwrap();
    cluster.wait_until("the controller's webhooks are there", || {
        let ended = controller.try_wait().unwrap();
        let log = || fs::read_to_string(directory.join("log")).unwrap();
        assert!(ended.is_none(), "{project}: {ended:?}\n{}", log());
        TcpStream::connect(&webhooks).is_ok()
    });

    let trusted = BASE64_STANDARD.encode(fs::read(&certificates).unwrap());
    let manifests = fs::read_to_string(files.join("webhooks.yaml")).unwrap();
    let mut manifests: Vec<Value> = serde_saphyr::from_multiple(&manifests).unwrap();
    for manifest in &mut manifests {
        let name = manifest["metadata"]["name"].as_str().unwrap();
        manifest["metadata"]["name"] = format!("{project}-{name}").into();
        for webhook in manifest["webhooks"].as_array_mut().unwrap() {
            let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap();
            let url = format!("https://{webhooks}{path}");
            webhook["clientConfig"] = json!({ "url": url, "caBundle": trusted });
            if webhook["rules"][0]["resources"][0] == "pods" {
                let of_ours = json!([{ "key": label, "operator": "Exists" }]);
                webhook["objectSelector"]["matchExpressions"] = of_ours;
            }
        }
        control_plane.apply(&manifest.to_string()).unwrap();
    }
}

/// A pod with one GPU, as a field of a template.
const POD: &str = "spec: {schedulerName: gangline, containers: [{name: main, image: none, resources: \
                   {limits: {nvidia.com/gpu: 1}}}]";

/// A set of a driver and two Jobs of two workers, five pods with a GPU each.
fn job_set(name: &str, annotations: &str, spec: &str) -> String {
    let mut yaml = format!(
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {{name: {name}, annotations: \
         {{{annotations}}}}}\nspec:\n  {spec}\n  replicatedJobs:\n"
    );
    for (job, replicas, pods) in [("driver", 1, 1), ("workers", 2, 2)] {
        let _ = writeln!(
            yaml,
            "  - name: {job}\n    replicas: {replicas}\n    template: {{spec: {{parallelism: {pods}, \
             completions: {pods}, template: {{{POD}, restartPolicy: Never}}}}}}}}"
        );
    }
    yaml
}

/// A set of two groups of a leader and two workers, with a GPU each.
fn leader_worker_set(annotations: &str, policy: &str) -> String {
    format!(
        "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {{name: vllm, \
         annotations: {{{annotations}}}}}\nspec:\n  replicas: 2\n  startupPolicy: {policy}\n  \
         leaderWorkerTemplate: {{size: 3, workerTemplate: {{{POD}}}}}}}\n"
    )
}

/// Whether a condition of an object is true.
fn is(object: &Value, condition: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| one["type"] == condition && one["status"] == "True")
}

fn wait_for_job_set(cluster: &Cluster, name: &str) {
    let path = cluster.path("/apis/jobset.x-k8s.io/v1alpha2", &format!("jobsets/{name}"));
    cluster.wait_until("the set has ended well", || {
        is(&cluster.read(&path), "Completed")
    });
}

/// The set says that it is available as soon as all its pods are made, so that alone would prove little.
fn wait_for_leader_worker_set(cluster: &Cluster) {
    cluster.wait_until("both groups run", || groups(cluster) == [(3, 3), (3, 3)]);
    let path = cluster.path("/apis/leaderworkerset.x-k8s.io/v1", "leaderworkersets/vllm");
    cluster.wait_until("the set is available", || {
        is(&cluster.read(&path), "Available")
    });
}

/// How many pods of each of the two groups are there, and how many of them have a node; the fewest first.
fn groups(cluster: &Cluster) -> [(usize, usize); 2] {
    let mut groups = [cluster.placed("vllm-0"), cluster.placed("vllm-1")];
    groups.sort_by_key(|&(_, placed)| placed);
    groups
}

/// The pods that have no node, and say that there is no room.
fn without_room(cluster: &Cluster, prefix: &str) -> usize {
    let places = cluster.places(prefix);
    let waiting = places
        .iter()
        .filter(|(pod, node)| node.is_empty() && cluster.why(pod).0 == "Unschedulable");
    waiting.count()
}

#[test]
#[ignore = "make owners builds the controllers and runs it"]
fn a_job_set_starts_whole_or_waits_whole() {
    let mut cluster = share("jobset");
    cluster.create_node("n1", 4);
    cluster.run(&[]);
    cluster.apply(&job_set("train", "", "suspend: false"));
    cluster.wait_until("all pods wait for room", || {
        without_room(&cluster, "train-") == 5
    });
    cluster.create_node("n2", 1);
    wait_for_job_set(&cluster, "train");
    assert_eq!(cluster.placed("train-"), (5, 5));
    // What it had is free again.
    cluster.apply(&job_set("next", "", "suspend: false"));
    wait_for_job_set(&cluster, "next");
    assert_eq!(cluster.placed("next-"), (5, 5));
}

#[test]
#[ignore = "make owners builds the controllers and runs it"]
fn jobs_of_a_set_that_are_made_later_are_not_waited_for_and_start_whole() {
    for (name, spec) in [
        (
            "jobset-order",
            "startupPolicy: {startupPolicyOrder: InOrder}",
        ),
        ("jobset-depends", "suspend: false"),
    ] {
        let mut cluster = share(name);
        cluster.create_node("n1", 3);
        cluster.run(&[]);
        let mut set = job_set("train", "", spec);
        if name == "jobset-depends" {
            let later = "name: workers\n    dependsOn: [{name: driver, status: Ready}]";
            set = set.replace("name: workers", later);
        }
        cluster.apply(&set);
        cluster.wait_until("the workers wait for room", || {
            without_room(&cluster, "train-workers-") == 4
        });
        assert_eq!(cluster.placed("train-driver-"), (1, 1));
        cluster.create_node("n2", 1);
        wait_for_job_set(&cluster, "train");
        assert_eq!(cluster.placed("train-"), (5, 5));
    }
}

#[test]
#[ignore = "make owners builds the controllers and runs it"]
fn jobs_of_a_set_with_a_rack_each_start_by_their_first_pods() {
    let mut cluster = share("jobset-racks");
    let rack_of = |cluster: &Cluster| {
        let nodes = (1..=3).map(|number| {
            let name = cluster.node_name(&format!("n{number}"));
            (name, format!("{}-r{number}", cluster.scheduler_name()))
        });
        nodes.collect::<BTreeMap<_, _>>()
    };
    for (name, rack) in rack_of(&cluster).iter().take(2) {
        cluster.create(node(name, 2).label("rack", rack));
    }
    cluster.run(&[]);
    let exclusive = "alpha.jobset.sigs.k8s.io/exclusive-topology: rack";
    cluster.apply(&job_set("train", exclusive, "suspend: false"));
    cluster.wait_until("the first pods wait for a third rack", || {
        without_room(&cluster, "train-") == 3
    });
    for (name, rack) in rack_of(&cluster).iter().skip(2) {
        cluster.create(node(name, 2).label("rack", rack));
    }
    wait_for_job_set(&cluster, "train");
    for job in ["train-workers-0-", "train-workers-1-"] {
        let places = cluster.places(job);
        let mut nodes: Vec<_> = places.values().collect();
        nodes.dedup();
        assert_eq!((places.len(), nodes.len()), (2, 1), "{places:?}");
    }
}

#[test]
#[ignore = "make owners builds the controllers and runs it"]
fn each_group_of_a_leader_and_its_workers_starts_whole() {
    let mut cluster = share("lws");
    cluster.create_node("n1", 4);
    cluster.run(&[]);
    cluster.apply(&leader_worker_set("", "LeaderCreated"));
    cluster.wait_until("one group runs and the other waits for room", || {
        groups(&cluster) == [(3, 0), (3, 3)] && without_room(&cluster, "vllm-") == 3
    });
    cluster.create_node("n2", 2);
    wait_for_leader_worker_set(&cluster);
}

#[test]
#[ignore = "make owners builds the controllers and runs it"]
fn workers_that_are_made_when_their_leader_runs_start_whole() {
    let mut cluster = share("lws-ready");
    cluster.create_node("n1", 4);
    cluster.run(&[]);
    cluster.apply(&leader_worker_set("", "LeaderReady"));
    cluster.wait_until("both leaders run and the workers of one", || {
        groups(&cluster) == [(3, 1), (3, 3)] && without_room(&cluster, "vllm-") == 2
    });
    cluster.create_node("n2", 2);
    wait_for_leader_worker_set(&cluster);
}

/// Workers are made when their leader has a node, whose rack is then in their selector.
#[test]
#[ignore = "make owners builds the controllers and runs it"]
fn workers_that_follow_their_leader_to_its_rack_start_whole() {
    let mut cluster = share("lws-racks");
    for (name, rack, gpus) in [("n1", "r1", 2), ("n2", "r1", 1), ("n3", "r2", 2)] {
        let rack = format!("{}-{rack}", cluster.scheduler_name());
        cluster.create(node(&cluster.node_name(name), gpus).label("rack", rack));
    }
    cluster.run(&[]);
    let exclusive = "leaderworkerset.sigs.k8s.io/exclusive-topology: rack";
    cluster.apply(&leader_worker_set(exclusive, "LeaderCreated"));
    cluster.wait_until("one group runs, and of the other the leader", || {
        groups(&cluster) == [(3, 1), (3, 3)] && without_room(&cluster, "vllm-") == 2
    });
    let rack = format!("{}-r2", cluster.scheduler_name());
    cluster.create(node(&cluster.node_name("n4"), 1).label("rack", rack));
    wait_for_leader_worker_set(&cluster);
}
