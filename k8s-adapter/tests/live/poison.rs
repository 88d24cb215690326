//! Case C159: objects that make no sense, beside a healthy group.

use serde_json::{Value, json};

use crate::support::{Cluster, group};

const VOLCANO: &str = "/apis/scheduling.volcano.sh/v1beta1";
const NATIVE: &str = "/apis/scheduling.k8s.io/v1beta1";

/// Creates an object; the API server may refuse it, which is as good.
fn offer(cluster: &Cluster, api: &str, plural: &str, object: &Value) {
    let path = cluster.path(api, plural);
    let answer = cluster.control_plane.post(&path, &object.to_string());
    let status = answer.unwrap().status;
    assert!((200..500).contains(&status), "{object}: {status}");
}

/// A pod of a group with these annotations and this request.
fn pod(cluster: &Cluster, name: &str, annotations: &Value, requests: &Value) -> Value {
    json!({
        "metadata": { "name": name, "annotations": annotations },
        "spec": {
            "schedulerName": cluster.scheduler_name(),
            "containers": [{ "name": "main", "image": "none",
                "resources": { "requests": requests, "limits": requests } }],
        },
    })
}

#[test]
fn objects_that_make_no_sense_harm_nobody_else() {
    let mut cluster = Cluster::share("poison");
    cluster.create_node("n1", 8);
    cluster.run(&[]);
    let group_of = |name: &str| json!({ "scheduling.k8s.io/group-name": name });
    let one = json!({ "nvidia.com/gpu": "1" });
    let long = "x".repeat(253);
    let specs = [
        ("zero", json!({ "minMember": 0 })),
        ("negative", json!({ "minMember": -1 })),
        ("largest", json!({ "minMember": i32::MAX })),
        ("empty", json!({})),
        (
            "no-queue",
            json!({ "minMember": 1, "queue": "there-is-none" }),
        ),
        (
            "absurd",
            json!({ "minMember": 1, "minResources": { "nvidia.com/gpu": "9E" } }),
        ),
        (
            "tiers",
            json!({ "minMember": 1,
                "networkTopology": { "mode": "hard", "highestTierAllowed": i32::MAX } }),
        ),
        (
            "tasks",
            json!({ "minMember": 2, "minTaskMember": { "a": i32::MAX, "b": i32::MAX } }),
        ),
        (long.as_str(), json!({ "minMember": 2 })),
    ];
    for (name, spec) in &specs {
        let object = json!({ "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "metadata": { "name": name }, "spec": spec });
        offer(&cluster, VOLCANO, "podgroups", &object);
        // The pods are of another node's: what is wrong is the group alone.
        let short = name.get(..20).unwrap_or(name);
        let mut member = pod(&cluster, &format!("bad-{short}"), &group_of(name), &one);
        member["spec"]["nodeSelector"] = json!({ "no": "node" });
        offer(&cluster, "/api/v1", "pods", &member);
    }
    let huge = "y".repeat(200_000);
    let pods = [
        (
            "cards",
            json!({ "gangline.io/card-ids": "7-0,zero" }),
            one.clone(),
        ),
        (
            "huge",
            json!({ "gangline.io/card-near": huge }),
            one.clone(),
        ),
        (
            "most",
            json!({}),
            json!({ "nvidia.com/gpu": "9223372036854775807" }),
        ),
        ("tiny", json!({}), json!({ "cpu": "1n", "memory": "1m" })),
        ("less", json!({}), json!({ "nvidia.com/gpu": "-1" })),
        ("lost", group_of("there-is-none"), one.clone()),
    ];
    for (name, annotations, requests) in &pods {
        let mut object = pod(&cluster, &format!("bad-{name}"), annotations, requests);
        object["spec"]["nodeSelector"] = json!({ "no": "node" });
        offer(&cluster, "/api/v1", "pods", &object);
    }
    // A circle of groups, and a group in a namespace where its pods are not.
    for (name, parent) in [("one", "two"), ("two", "one"), ("self", "self")] {
        let spec = json!({ "parentCompositePodGroupName": parent,
            "workloadRef": { "workloadName": "w", "templateName": "t" },
            "schedulingPolicy": { "gang": { "minGroupCount": 1 } } });
        let object = json!({ "apiVersion": "scheduling.k8s.io/v1alpha3",
            "kind": "CompositePodGroup", "metadata": { "name": name }, "spec": spec });
        let api = NATIVE.replace("v1beta1", "v1alpha3");
        offer(&cluster, &api, "compositepodgroups", &object);
    }
    let spec = json!({ "parentCompositePodGroupName": "one",
        "schedulingPolicy": { "gang": { "minCount": 1 } } });
    let object = json!({ "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
        "metadata": { "name": "in-circle" }, "spec": spec });
    offer(&cluster, NATIVE, "podgroups", &object);

    cluster.apply(&group("healthy", 4, 4, 1));
    cluster.wait_until("the healthy group is whole", || {
        cluster.placed("healthy-") == (4, 4)
    });
    // Each says what is wrong with it.
    let says = |pod: &str, word: &str| cluster.why(pod).0 == word;
    cluster.wait_until("its pod has no group", || says("bad-lost", "GroupNotFound"));
    cluster.wait_until("its group is far too large", || {
        says("bad-largest", "WaitingForMembers")
    });
    cluster.wait_until("its cards are no cards", || {
        cluster.why("bad-cards").1.contains("gangline.io/card-ids")
    });
    assert_eq!(cluster.placed("bad-").1, 0);
    cluster.apply(&group("later", 4, 4, 1));
    cluster.wait_until("another healthy group is whole", || {
        cluster.placed("later-") == (4, 4)
    });
}

/// Case C018: a group counts only in its own namespace.
#[test]
fn a_group_of_another_namespace_is_no_group() {
    let mut cluster = Cluster::share("namespace-a");
    let mut other = Cluster::share("namespace-b");
    cluster.create_node("n1", 2);
    other.create_node("n1", 2);
    let pod_group_and_pod = group("g", 1, 1, 1);
    let (pod_group, pod) = pod_group_and_pod.split_once("---\n").unwrap();
    cluster.apply(pod_group);
    other.run(&[]);
    other.apply(pod);
    other.wait_until("it says so", || {
        let (reason, message) = other.why("g-0");
        reason == "GroupNotFound" && message.contains("namespace-b/g")
    });
    // Whoever has the group is not helped by pods that are elsewhere.
    cluster.run(&[]);
    other.apply(pod_group);
    other.wait_until("its own group helps", || other.placed("g-") == (1, 1));
    assert_eq!(cluster.placed("g-"), (0, 0));
}
