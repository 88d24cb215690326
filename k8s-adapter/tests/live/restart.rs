//! What a scheduler does with what it finds when it starts.

use std::{thread, time::Duration};

use gangline_controlplane::{ControlPlane, Program};

use crate::support::{Cluster, VOLCANO, group, node};

#[test]
fn a_gang_that_is_half_bound_is_finished_or_released_whole() {
    let mut cluster = Cluster::start(&ControlPlane::builder().kwok()).unwrap();
    cluster.control_plane.apply(VOLCANO).unwrap();
    cluster.control_plane.create_node(&node("n1", 8)).unwrap();
    // As a scheduler leaves them that dies between two binds.
    cluster
        .control_plane
        .apply(&group("fits", 4, 4, 1))
        .unwrap();
    cluster
        .control_plane
        .apply(&group("too-large", 4, 4, 2))
        .unwrap();
    for pod in ["fits-0", "fits-1", "too-large-0"] {
        cluster.bind(pod, "n1");
    }
    cluster.run(&["--degraded-deadline", "3s"]);
    cluster.wait_until("the gang that fits is whole", || {
        cluster.placed("fits") == (4, 4)
    });
    cluster.wait_until("nothing is left of the one that does not", || {
        cluster.placed("too-large") == (3, 0)
    });
    assert_eq!(cluster.placed("fits"), (4, 4));
    cluster.wait_until("its pods say why they wait", || {
        let (reason, message) = cluster.why("too-large-3");
        reason == "WaitingForMembers" && message.contains("3 of 4")
    });
}

#[test]
fn a_scheduler_goes_on_when_the_api_server_or_it_itself_starts_again() {
    let mut cluster = Cluster::start(&ControlPlane::builder().kwok()).unwrap();
    for name in ["n1", "n2"] {
        cluster.control_plane.create_node(&node(name, 4)).unwrap();
    }
    cluster.run(&[]);
    // Its kind of group comes later than the scheduler.
    cluster.control_plane.apply(VOLCANO).unwrap();
    cluster.control_plane.apply(&group("a", 3, 3, 1)).unwrap();
    cluster.wait_until("the first gang is whole", || cluster.placed("a") == (3, 3));

    cluster.own().restart(Program::ApiServer).unwrap();
    cluster.control_plane.apply(&group("b", 2, 2, 2)).unwrap();
    cluster.wait_until("the second gang is whole", || cluster.placed("b") == (2, 2));

    cluster.kill_scheduler();
    cluster.control_plane.apply(&group("c", 2, 2, 1)).unwrap();
    cluster.run(&[]);
    // One GPU is left: what runs counts, though nobody but the API server remembers it.
    cluster.wait_until("the third gang says why it waits", || {
        cluster.why("c-0").1.ends_with("needs 2 GPUs, 1 free")
    });
    assert_eq!(cluster.placed("c"), (2, 0));
    cluster.control_plane.create_node(&node("n3", 1)).unwrap();
    cluster.wait_until("the third gang is whole", || cluster.placed("c") == (2, 2));
}

/// A gang that cannot be whole is released although no scheduler lives as long as its deadline.
#[test]
fn a_deadline_does_not_begin_anew_with_each_start() {
    let mut cluster = Cluster::share("remainder");
    cluster.create_node("n1", 1);
    cluster.apply(&group("g", 2, 2, 1));
    cluster.bind("g-0", &cluster.node_name("n1"));
    for starts in 1..20 {
        cluster.run_elected(&["--lease-duration", "3s", "--degraded-deadline", "12s"]);
        let known = |cluster: &Cluster| cluster.log().matches("the cluster is known").count();
        cluster.wait_until("it decides", || known(&cluster) == starts);
        thread::sleep(Duration::from_secs(5));
        cluster.kill_scheduler();
        if cluster.placed("g-") == (1, 0) {
            assert!(starts > 1, "its deadline was longer");
            return;
        }
    }
    panic!("it is never released");
}
