//! Several instances, of which one schedules.

use std::time::Duration;

use gangline_controlplane::{ControlPlane, Program};

use crate::{
    proxy::{Fate, Write},
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

/// The first one's binds are answered later than its lease lasts, and it cannot renew that.
#[test]
fn who_loses_the_lease_has_stopped_writing_when_the_next_one_begins() {
    let mut cluster = Cluster::share("fenced");
    cluster.create_node("n1", 8);
    let late = Duration::from_secs(20);
    let first = cluster.proxy(move |writes| {
        let write = writes.last()?;
        match write.bind() {
            Some("a-0") => Some(Fate::AnsweredLate(late)),
            Some(_) => Some(Fate::Late(late)),
            None => {
                let has_begun = writes.iter().any(|write| write.bind().is_some());
                (has_begun && write.is_renewal()).then_some(Fate::Silent)
            }
        }
    });
    let second = cluster.proxy(|_| None);
    let lease = ["--lease-duration", "6s", "--kubeconfig"];
    cluster.run_elected(&[&lease[..], &[first.kubeconfig()]].concat());
    cluster.wait_until("the first has the lease", || {
        !cluster.lease_holder().is_empty()
    });
    cluster.run_elected(&[&lease[..], &[second.kubeconfig()]].concat());
    cluster.apply(&group("a", 4, 4, 1));
    cluster.wait_until("all are bound", || cluster.placed("a-") == (4, 4));
    assert_eq!(cluster.wait_for_scheduler(), Some(1));

    assert_eq!(first.bound(), ["a-0"]);
    let mut rest = second.bound();
    rest.sort();
    assert_eq!(rest, ["a-1", "a-2", "a-3"]);
    let writes = first.writes();
    let has_tried_again = |pod| {
        writes
            .iter()
            .filter(|write| write.bind() == Some(pod))
            .count()
            > 1
    };
    assert!(has_tried_again("a-1"), "it went on as long as it could");
    let is_work = |write: &&Write| !write.path.contains("/leases");
    let last = writes.iter().filter(is_work).map(|write| write.at).max();
    let next = second.writes();
    let next = next.iter().find(|write| write.is_renewal());
    let next = next.expect("it took the lease").at;
    assert!(last.is_some_and(|last| last < next), "{last:?}, {next:?}");
}
