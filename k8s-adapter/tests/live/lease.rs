//! Several instances, of which one schedules.

use std::time::Duration;

use gangline_controlplane::{ControlPlane, Program};

use crate::{
    proxy::Fate,
    support::{Cluster, VOLCANO, group, node},
};

#[test]
fn the_next_instance_takes_over_after_a_crash_and_at_once_after_a_stop() {
    let mut cluster = Cluster::start(&ControlPlane::builder().kwok()).unwrap();
    cluster.control_plane.apply(VOLCANO).unwrap();
    cluster.control_plane.create_node(&node("n1", 8)).unwrap();
    let duration = ["--lease-duration", "4s"];
    cluster.run_elected(&duration);
    cluster.wait_until("the first has the lease", || {
        !cluster.lease_holder().is_empty()
    });
    let first = cluster.lease_holder();
    cluster.run_elected(&duration);
    cluster.control_plane.apply(&group("a", 2, 2, 1)).unwrap();
    cluster.wait_until("the first gang is whole", || cluster.placed("a") == (2, 2));
    assert_eq!(cluster.lease_holder(), first);

    cluster.kill_scheduler();
    cluster.control_plane.apply(&group("b", 2, 2, 1)).unwrap();
    cluster.wait_until("the second gang is whole", || cluster.placed("b") == (2, 2));
    assert_ne!(cluster.lease_holder(), first);

    let long = ["--lease-duration", "1h"];
    cluster.run_elected(&long);
    assert_eq!(cluster.stop_scheduler(), Some(0));
    cluster.control_plane.apply(&group("c", 2, 2, 1)).unwrap();
    cluster.wait_until("the third gang is whole", || cluster.placed("c") == (2, 2));

    // Who cannot renew its lease ends by itself.
    cluster.stop_scheduler();
    cluster.run_elected(&duration);
    cluster.wait_until("the last has the lease", || {
        !cluster.lease_holder().is_empty()
    });
    cluster.own().pause(Program::ApiServer).unwrap();
    assert_eq!(cluster.wait_for_scheduler(), Some(1));
    assert!(
        cluster
            .log()
            .contains("the lease could not be renewed in time")
    );
    cluster.own().resume(Program::ApiServer).unwrap();
}

/// Who is told to stop binds what it has begun, decides nothing new, and gives its lease back.
#[test]
fn a_stop_finishes_the_gang_that_is_being_bound() {
    let mut cluster = Cluster::share("stopped");
    cluster.create_node("n1", 8);
    let proxy = cluster.proxy(|writes| {
        let bind = writes.last()?.bind()?;
        // Those after the first one take a while.
        (bind.starts_with("a-") && bind != "a-0").then_some(Fate::Late(Duration::from_millis(700)))
    });
    cluster.apply(&group("a", 4, 4, 1));
    cluster.run_elected(&["--kubeconfig", proxy.kubeconfig()]);
    cluster.wait_until("the first member is bound", || cluster.placed("a-").1 > 0);
    assert_eq!(cluster.stop_scheduler(), Some(0));
    assert_eq!(cluster.placed("a-"), (4, 4));
    assert_eq!(cluster.lease_holder(), "");
}
