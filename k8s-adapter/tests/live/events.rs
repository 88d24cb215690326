//! What happened to pods and groups, as events.

use gangline_controlplane::{ControlPlane, Project};
use serde_json::Value;

use crate::support::{Cluster, Listener, group, node};

/// The events about an object of `default`: reason and note.
fn events(cluster: &Cluster, kind: &str, name: &str) -> Vec<(String, String)> {
    let events = cluster.read("/apis/events.k8s.io/v1/namespaces/default/events");
    let events = events["items"].as_array().expect("a list").iter();
    let about = events.filter(|event| {
        let regarding = &event["regarding"];
        event["reportingController"] == "gangline"
            && regarding["kind"] == kind
            && regarding["name"] == name
    });
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    about
        .map(|event| (text(&event["reason"]), text(&event["note"])))
        .collect()
}

#[test]
fn what_happens_to_pods_and_groups_is_told() {
    let mut cluster = Cluster::start(&ControlPlane::builder().kwok()).unwrap();
    cluster.control_plane.define(Project::Volcano).unwrap();
    cluster.control_plane.create_node(&node("n1", 4)).unwrap();
    let listener = Listener::free();
    cluster.run(&["--listen", &listener.address]);
    cluster.control_plane.apply(&group("a", 2, 2, 1)).unwrap();
    let has = |cluster: &Cluster, kind: &str, name: &str, reason: &str, note: &str| {
        let events = events(cluster, kind, name);
        events
            .iter()
            .any(|(known, said)| known == reason && said.contains(note))
    };
    cluster.wait_until("its start is told", || {
        has(
            &cluster,
            "PodGroup",
            "a",
            "Scheduled",
            "2 members on 1 nodes",
        ) && has(&cluster, "Pod", "a-1", "Scheduled", "bound to n1")
    });
    cluster.control_plane.apply(&group("b", 2, 2, 3)).unwrap();
    cluster.wait_until("that it waits is told", || {
        has(&cluster, "PodGroup", "b", "FailedScheduling", "DoesNotFit")
            && has(&cluster, "Pod", "b-0", "FailedScheduling", "DoesNotFit")
    });
    let sent = "gangline_events_total{outcome=\"sent\"}";
    cluster.wait_until("they are counted", || listener.metric(sent) >= Some(6.0));
    assert_eq!(
        listener.metric("gangline_events_total{outcome=\"failed\"}"),
        Some(0.0)
    );
}
