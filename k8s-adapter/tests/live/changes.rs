//! What changes while a gang gathers, is decided, is bound or runs.

use serde_json::json;

use crate::{
    proxy::{Fate, Write},
    support::{Cluster, group},
};

/// A gang of three, each of which needs a node for itself, on three of these nodes. The bind of its last
/// member fails as long as it goes to the node that was chosen first.
fn stuck(cluster: &mut Cluster, nodes: &[&str]) -> (crate::proxy::Proxy, String) {
    for name in nodes {
        cluster.create_node(name, 8);
    }
    let proxy = cluster.proxy(|writes| {
        let goes_to = |write: &Write| {
            let is_it = write.bind() == Some("g-2");
            write.node.clone().filter(|_| is_it)
        };
        let last = goes_to(writes.last()?)?;
        let first = writes.iter().find_map(goes_to)?;
        (last == first).then_some(Fate::Answered(503))
    });
    cluster.run(&[
        "--kubeconfig",
        proxy.kubeconfig(),
        "--degraded-deadline",
        "4s",
    ]);
    cluster.apply(&group("g", 3, 3, 8));
    cluster.wait_until("two are bound", || cluster.placed("g-").1 == 2);
    let tried = |write: &Write| (write.bind() == Some("g-2")).then(|| write.node.clone());
    cluster.wait_until("the third is tried", || {
        proxy.writes().iter().any(|write| tried(write).is_some())
    });
    let node = proxy.writes().iter().find_map(tried).unwrap().unwrap();
    (proxy, node)
}

/// Case C006, variant b.
#[test]
fn a_member_whose_node_goes_before_its_bind_goes_to_another_one() {
    let mut cluster = Cluster::share("node-gone");
    let (_proxy, node) = stuck(&mut cluster, &["n1", "n2", "n3", "n4"]);
    cluster.delete(&format!("/api/v1/nodes/{node}"));
    cluster.wait_until("the gang is whole", || cluster.placed("g-") == (3, 3));
    assert_ne!(cluster.places("g-")["g-2"], node);
}

/// Case C097.
#[test]
fn a_member_whose_node_is_tainted_before_its_bind_goes_to_another_one() {
    let mut cluster = Cluster::share("node-tainted");
    let (_proxy, node) = stuck(&mut cluster, &["n1", "n2", "n3", "n4"]);
    let taints = json!([{ "key": "broken", "effect": "NoSchedule" }]);
    let path = format!("/api/v1/nodes/{node}");
    cluster.patch(&path, &json!({ "spec": { "taints": taints } }));
    cluster.wait_until("the gang is whole", || cluster.placed("g-") == (3, 3));
    assert_ne!(cluster.places("g-")["g-2"], node);
}

/// Case C006, variant a.
#[test]
fn a_gang_that_cannot_be_made_whole_gives_everything_back() {
    let mut cluster = Cluster::share("no-spare");
    let (_proxy, node) = stuck(&mut cluster, &["n1", "n2", "n3"]);
    cluster.delete(&format!("/api/v1/nodes/{node}"));
    cluster.wait_until("what was bound is gone", || cluster.placed("g-") == (1, 0));
    // Its room is free again.
    cluster.apply(&group("other", 2, 2, 8));
    cluster.wait_until("another gang is whole", || {
        cluster.placed("other-") == (2, 2)
    });
}

/// Case C016: the group comes after its pods; and one of them goes again before all are there.
#[test]
fn a_gang_gathers_in_any_order_and_in_spite_of_losses() {
    let mut cluster = Cluster::share("gathering");
    cluster.create_node("n1", 8);
    cluster.run(&[]);
    let all = group("g", 3, 3, 1);
    let parts: Vec<&str> = all.split("---\n").collect();
    let [pod_group, pods @ ..] = &parts[..] else {
        panic!("{all}");
    };
    cluster.apply(pods[0]);
    cluster.apply(pods[1]);
    cluster.wait_until("the pods say that there is no such group", || {
        cluster.why("g-1").0 == "GroupNotFound"
    });
    cluster.apply(pod_group);
    let says = |pod: &str, words: &str| {
        let (reason, message) = cluster.why(pod);
        reason == "WaitingForMembers" && message.contains(words)
    };
    cluster.wait_until("they wait for the third", || says("g-1", "2 of 3"));
    cluster.delete(&cluster.pod_path("g-0"));
    cluster.wait_until("one waits for two", || says("g-1", "1 of 3"));
    cluster.apply(pods[2]);
    cluster.wait_until("they wait for the first", || says("g-2", "2 of 3"));
    assert_eq!(cluster.placed("g-"), (2, 0));
    cluster.apply(pods[0]);
    cluster.wait_until("the gang is whole", || cluster.placed("g-") == (3, 3));
}

/// Its controller makes another pod, which belongs to the gang like the first one.
#[test]
fn a_pod_that_the_kubelet_rejects_is_replaced() {
    let mut cluster = Cluster::share("rejected");
    cluster.create_node("n1", 2);
    cluster.run(&[]);
    cluster.apply(
        "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: web}\n\
         spec: {minMember: 2}\n---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: web}\n\
         spec:\n  replicas: 2\n  podManagementPolicy: Parallel\n  selector: {matchLabels: {app: web}}\n  \
         template:\n    metadata:\n      labels: {app: web}\n      annotations: \
         {scheduling.k8s.io/group-name: web}\n    spec:\n      schedulerName: gangline\n      \
         containers:\n      - name: main\n        image: none\n        resources: {limits: \
         {nvidia.com/gpu: 1}}\n",
    );
    cluster.wait_until("both run", || cluster.placed("web-") == (2, 2));
    let first = cluster.pod("web-1")["metadata"]["uid"].clone();
    let status = json!({ "phase": "Failed", "reason": "UnexpectedAdmissionError" });
    let path = cluster.pod_path("web-1") + "/status";
    cluster.patch(&path, &json!({ "status": status }));
    cluster.wait_until("another pod has its name and runs", || {
        let pods = cluster.read(&cluster.path("/api/v1", "pods"));
        let mut pods = pods["items"].as_array().into_iter().flatten();
        pods.any(|pod| {
            let metadata = &pod["metadata"];
            metadata["name"] == "web-1"
                && metadata["uid"] != first
                && pod["spec"]["nodeName"].is_string()
        })
    });
}

/// kube-scheduler runs beside us, on the same nodes.
#[test]
fn what_another_scheduler_takes_is_taken_and_what_we_take_is_taken_for_it() {
    let mut cluster = Cluster::share("beside");
    cluster.create_node("n1", 4);
    cluster.run(&[]);
    let foreign = |name: &str, gpus: u32| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  containers:\n  - name: \
             main\n    image: none\n    resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}\n"
        )
    };
    cluster.apply(&foreign("theirs", 2));
    cluster.wait_until("kube-scheduler places its pod", || {
        cluster.placed("theirs") == (1, 1)
    });
    cluster.apply(&group("ours", 4, 4, 1));
    cluster.wait_until("the gang waits", || {
        cluster.why("ours-3").1.ends_with("needs 4 GPUs, 2 free")
    });
    cluster.delete(&cluster.pod_path("theirs"));
    cluster.wait_until("the gang is whole", || cluster.placed("ours-") == (4, 4));
    cluster.apply(&foreign("late", 1));
    cluster.wait_until("kube-scheduler sees that all is taken", || {
        let (reason, message) = cluster.why("late");
        reason == "Unschedulable" && message.contains("Insufficient nvidia.com/gpu")
    });
    assert_eq!(cluster.placed("ours-"), (4, 4));
}

/// As kube-scheduler writes it while those that have to go for its pod take their time.
#[test]
fn room_that_another_scheduler_makes_for_its_pod_is_left_to_it() {
    let mut cluster = Cluster::share("nominated");
    cluster.create_node("n1", 3);
    cluster.run(&[]);
    cluster.apply(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: theirs}\nspec:\n  schedulerName: another\n  \
         containers:\n  - name: main\n    image: none\n    resources: {limits: {nvidia.com/gpu: 2}}\n",
    );
    let nominate = |node: Option<String>| {
        let status = format!("{}/status", cluster.pod_path("theirs"));
        cluster.patch(&status, &json!({ "status": { "nominatedNodeName": node } }));
    };
    nominate(Some(cluster.node_name("n1")));
    cluster.apply(&group("ours", 2, 2, 1));
    cluster.wait_until("ours leaves the room alone", || {
        let (reason, message) = cluster.why("ours-0");
        reason == "Unschedulable" && message.contains("nominated/theirs on nominated-n1")
    });
    nominate(None);
    cluster.wait_until("ours is whole", || cluster.placed("ours-") == (2, 2));
}

/// Case C094: a node that was not ready is used as soon as it is.
#[test]
fn a_node_that_becomes_ready_is_used_at_once() {
    let mut cluster = Cluster::share("ready");
    cluster.create_node("n1", 2);
    let taints = json!([{ "key": "example.com/not-ready", "effect": "NoSchedule" }]);
    let path = cluster.node_path("n1");
    cluster.patch(&path, &json!({ "spec": { "taints": taints } }));
    cluster.run(&[]);
    cluster.apply(&group("g", 2, 2, 1));
    cluster.wait_until("the gang waits", || cluster.why("g-1").0 == "Unschedulable");
    cluster.patch(&path, &json!({ "spec": { "taints": null } }));
    cluster.wait_until("the gang is whole", || cluster.placed("g-") == (2, 2));
}

/// Case C102: an instance that stood by knows the devices that the one before chose.
#[test]
fn devices_that_another_instance_chose_are_taken() {
    let mut cluster = Cluster::share("devices");
    cluster.create_node("n1", 4);
    let lease = ["--lease-duration", "3s"];
    cluster.run_elected(&lease);
    cluster.wait_until("it has the lease", || !cluster.lease_holder().is_empty());
    cluster.run_elected(&lease);
    cluster.apply(&group("a", 1, 1, 2));
    cluster.wait_until("the first is placed", || cluster.placed("a-") == (1, 1));
    cluster.kill_scheduler();
    cluster.apply(&group("b", 1, 1, 2));
    cluster.wait_until("the second is placed", || cluster.placed("b-") == (1, 1));
    let devices = |pod: &str| {
        let devices = &cluster.pod(pod)["metadata"]["annotations"]["gangline.io/devices"];
        devices.as_str().unwrap().to_owned()
    };
    let (first, second) = (devices("a-0"), devices("b-0"));
    let all = [first.as_str(), second.as_str()];
    assert!(all == ["0,1", "2,3"] || all == ["0-1", "2-3"], "{all:?}");
}
