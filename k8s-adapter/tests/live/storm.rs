//! Objects come and go in any order while connections break: what the scheduler knows in the end is what
//! there is.
//!
//! It cannot be asked, so its decisions show it: of what each node has free, by the API server's list, pods
//! get exactly as much, and not one GPU more.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use gangline_controlplane::ControlPlane;
use serde_json::{Value, json};

use crate::support::{Cluster, Listener, VOLCANO, group};

const NODES: u32 = 4;
const GPUS: u32 = 8;
const STEPS: u32 = 150;

/// Numbers without a pattern, the same in each run.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    /// One below `limit`.
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u32::try_from(self.0 % u64::from(limit)).unwrap()
    }
}

/// GPUs that are free on each node, by what is bound there.
fn free(cluster: &Cluster) -> BTreeMap<String, i64> {
    let names = (0..NODES).map(|node| cluster.node_name(&format!("n{node}")));
    let mut free: BTreeMap<String, i64> = names.map(|name| (name, GPUS.into())).collect();
    let pods = cluster.read(&cluster.path("/api/v1", "pods"));
    for pod in pods["items"].as_array().into_iter().flatten() {
        let limits = &pod["spec"]["containers"][0]["resources"]["limits"];
        let gpus: i64 = limits["nvidia.com/gpu"].as_str().unwrap().parse().unwrap();
        if let Some(free) = pod["spec"]["nodeName"]
            .as_str()
            .and_then(|node| free.get_mut(node))
        {
            *free -= gpus;
        }
    }
    free
}

/// Cases C017 and C092: what is there is what counts, in whatever order it came.
#[test]
fn after_a_storm_the_books_are_right() {
    let mut cluster = Cluster::share("storm");
    let node = |node: u32| format!("n{node}");
    for number in 0..NODES {
        cluster.create_node(&node(number), GPUS);
    }
    let proxy = cluster.proxy(|_| None);
    cluster.run(&["--kubeconfig", proxy.kubeconfig()]);
    let mut numbers = Numbers(5);
    for step in 0..STEPS {
        let name = format!("g{}", numbers.below(8));
        match numbers.below(10) {
            0 => proxy.break_connections(),
            // Its pods may be there already, with another number of GPUs: then nothing changes of them.
            1..=4 => offer(
                &cluster,
                &group(&name, 2, 2, 1 + numbers.below(3)),
                &mut numbers,
            ),
            5..=7 => remove(
                &cluster,
                "/api/v1",
                "pods",
                &format!("{name}-{}", numbers.below(2)),
            ),
            8 => remove(&cluster, VOLCANO_API, "podgroups", &name),
            _ => {
                let cordon = json!({ "spec": { "unschedulable": step % 3 == 0 } });
                cluster.patch(&cluster.node_path(&node(numbers.below(NODES))), &cordon);
            }
        }
    }
    for number in 0..NODES {
        let open = json!({ "spec": { "unschedulable": false } });
        cluster.patch(&cluster.node_path(&node(number)), &open);
    }
    // Who waits for a partner or for room would take what is counted.
    for (pod, place) in cluster.places("g") {
        if place.is_empty() {
            remove(&cluster, "/api/v1", "pods", &pod);
        }
    }
    cluster.wait_until("what goes is gone, and who stays has a place", || {
        let pods = cluster.read(&cluster.path("/api/v1", "pods"));
        let pods = pods["items"].as_array().unwrap();
        pods.iter().all(|pod| {
            let goes = pod["metadata"]["deletionTimestamp"].is_string();
            !goes && pod["spec"]["nodeName"].is_string()
        })
    });
    for (name, gpus) in free(&cluster) {
        assert!(gpus >= 0, "{name}: {gpus}");
        let pinned = |pod: &str, gpus: i64| {
            let spec = json!({
                "schedulerName": cluster.scheduler_name(),
                "nodeSelector": { "kubernetes.io/hostname": name },
                "containers": [{ "name": "main", "image": "none",
                    "resources": { "limits": { "nvidia.com/gpu": gpus.to_string() } } }],
            });
            let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": pod },
                "spec": spec });
            cluster.apply(&pod.to_string());
        };
        let (fits, waits) = (format!("fits-{name}"), format!("waits-{name}"));
        if gpus > 0 {
            pinned(&fits, gpus);
            cluster.wait_until("what is free is given", || cluster.placed(&fits) == (1, 1));
        }
        pinned(&waits, 1);
        cluster.wait_until("no more is given", || {
            cluster.why(&waits).1.ends_with("needs 1 GPU, 0 free")
        });
    }
}

/// So many threads change nodes as fast as the API server takes it.
const CHANGERS: usize = 8;
const CHANGING_NODES: usize = 200;

/// Nodes change all the time: groups are placed meanwhile, who waits says why, the lease is kept, and what
/// waits for the driver is bounded.
#[test]
fn decisions_go_on_while_nodes_change_all_the_time() {
    let mut cluster = Cluster::start(&ControlPlane::builder()).unwrap();
    cluster.control_plane.apply(VOLCANO).unwrap();
    for number in 0..CHANGING_NODES {
        cluster.create_node(&format!("n{number}"), 2);
    }
    let listener = Listener::free();
    cluster.run_elected(&["--lease-duration", "6s", "--listen", &listener.address]);
    cluster.wait_until("it decides", || {
        listener.metric("gangline_decision_seconds_count") > Some(0.0)
    });
    let holder = cluster.lease_holder();
    let (changes, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..CHANGERS {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let number = changes.fetch_add(1, Ordering::Relaxed);
                    let node = format!("/api/v1/nodes/n{}", number % CHANGING_NODES);
                    // Of two changes one decides something.
                    let labels = json!({ "a": number.to_string(), "b": (number % 3).to_string() });
                    cluster.patch(&node, &json!({ "metadata": { "labels": labels } }));
                }
            });
        }
        // Also when the test fails.
        let _end = End(&is_over);
        let mut most = 0.0_f64;
        let since = Instant::now();
        let mut groups = 0;
        while since.elapsed() < Duration::from_secs(10) || groups < 5 {
            let name = format!("g{groups}");
            groups += 1;
            cluster.apply(&group(&name, 4, 4, 1));
            cluster.wait_until("a group is whole meanwhile", || {
                cluster.placed(&format!("{name}-")) == (4, 4)
            });
            let backlog = listener.metric("gangline_watch_backlog_changes");
            most = most.max(backlog.expect("it answers meanwhile"));
        }
        cluster.apply(&group("large", 1, 1, 9));
        cluster.wait_until("who waits says why meanwhile", || {
            cluster.why("large-0").0 == "Unschedulable"
        });
        let seconds = since.elapsed().as_secs_f64();
        let each = changes.load(Ordering::Relaxed) as f64 / seconds;
        eprintln!("{each:.0} changes a second, {groups} groups, at most {most} changes waited");
        assert!(most < 16_384.0, "{most}");
    });
    assert_eq!(cluster.lease_holder(), holder);
    assert!(!cluster.has_ended());
}

/// Ends the storm.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

const VOLCANO_API: &str = "/apis/scheduling.volcano.sh/v1beta1";

/// Creates the objects in one of two orders; those that are there already stay what they are.
fn offer(cluster: &Cluster, yaml: &str, numbers: &mut Numbers) {
    let mut parts: Vec<&str> = yaml.split("---\n").collect();
    if numbers.below(2) == 0 {
        parts.reverse();
    }
    for part in parts {
        let object: Value = serde_saphyr::from_str(part).unwrap();
        let name = object["metadata"]["name"].as_str().unwrap();
        let (api, plural) = if object["kind"] == "Pod" {
            ("/api/v1", "pods")
        } else {
            (VOLCANO_API, "podgroups")
        };
        let path = cluster.path(api, &format!("{plural}/{name}"));
        if cluster.control_plane.get(&path).unwrap().status == 404 {
            cluster.apply(part);
        }
    }
}

/// Deletes an object, if it is there.
pub(crate) fn remove(cluster: &Cluster, api: &str, plural: &str, name: &str) {
    remove_at(cluster, &cluster.path(api, &format!("{plural}/{name}")));
}

/// The same by its path.
pub(crate) fn remove_at(cluster: &Cluster, path: &str) {
    let path = format!("{path}?gracePeriodSeconds=0");
    let status = cluster.control_plane.delete(&path).unwrap().status;
    assert!(matches!(status, 200 | 202 | 404), "{path}: {status}");
}
