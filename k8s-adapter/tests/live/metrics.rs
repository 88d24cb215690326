//! What `/metrics` tells of a cluster, on the one that schedules and on one that stands by.

use gangline_controlplane::ControlPlane;

use crate::support::{Cluster, Listener, VOLCANO, group, node};

#[test]
fn numbers_are_those_of_the_cluster() {
    let mut cluster = Cluster::start(&ControlPlane::builder().kwok()).unwrap();
    cluster.control_plane.apply(VOLCANO).unwrap();
    cluster.control_plane.create_node(&node("n1", 4)).unwrap();
    let (leader, other) = (Listener::free(), Listener::free());
    cluster.run_elected(&["--listen", &leader.address]);
    cluster.wait_until("it leads", || leader.metric("gangline_leader") == Some(1.0));
    cluster.run_elected(&["--listen", &other.address]);
    cluster.control_plane.apply(&group("a", 2, 2, 1)).unwrap();
    cluster.wait_until("one is whole", || cluster.placed("a") == (2, 2));
    cluster.control_plane.apply(&group("b", 2, 2, 4)).unwrap();
    cluster.wait_until("the other says why it waits", || {
        leader.metric("gangline_pending_pods{reason=\"WaitsForSibling\"}") == Some(2.0)
            || leader.metric("gangline_pending_pods{reason=\"DoesNotFit\"}") == Some(2.0)
    });
    for (metric, value) in [
        ("gangline_groups{state=\"running\"}", 1.0),
        ("gangline_groups{state=\"queued\"}", 1.0),
        ("gangline_groups{state=\"gathering\"}", 0.0),
        ("gangline_pending_groups{reason=\"DoesNotFit\"}", 1.0),
        ("gangline_half_bound_groups", 0.0),
        ("gangline_group_ready_to_bound_seconds_count", 1.0),
        ("gangline_group_bind_seconds_count", 1.0),
        ("gangline_decisions_total{verdict=\"placed\"}", 1.0),
        ("gangline_bind_seconds_count{outcome=\"bound\"}", 2.0),
        ("gangline_binds_in_flight", 0.0),
        (
            "gangline_cards{kind=\"nvidia.com/gpu\",state=\"held\"}",
            2.0,
        ),
        (
            "gangline_cards{kind=\"nvidia.com/gpu\",state=\"free\"}",
            2.0,
        ),
    ] {
        assert_eq!(leader.metric(metric), Some(value), "{metric}");
    }
    for metric in [
        "gangline_watch_lag_seconds{kind=\"Pod\"}",
        "gangline_watch_lag_seconds{kind=\"PodGroup.scheduling.volcano.sh\"}",
        "gangline_decision_seconds_count",
        "gangline_api_requests_total{verb=\"create\",code=\"201\"}",
        "process_resident_memory_bytes",
    ] {
        assert!(leader.metric(metric).is_some(), "{metric}");
    }
    // A fragment is what the usual pods, of one and of four cards, cannot use of the two that are free.
    let fragment = leader.metric("gangline_fragmentation_ratio");
    assert!(
        fragment.is_some_and(|ratio| ratio > 0.0 && ratio < 1.0),
        "{fragment:?}"
    );

    assert_eq!(other.metric("gangline_leader"), Some(0.0));
    assert_eq!(other.metric("gangline_half_bound_groups"), None);
    assert!(other.metric("process_cpu_seconds_total") > Some(0.0));
}
