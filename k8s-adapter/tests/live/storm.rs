//! Objects come and go in any order while connections break: what the scheduler knows in the end is what
//! there is.
//!
//! It cannot be asked, so its decisions show it: of what each node has free, by the API server's list, pods
//! get exactly as much, and not one GPU more.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{Cluster, group};

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
