//! Every kind of answer to a bind: in the end the gang is whole, and no pod was bound twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    proxy::{Fate, Write},
    support::{Cluster, group},
};

/// What happens to the bind of a gang's second member: at the first, second, ... attempt.
fn fates() -> BTreeMap<&'static str, Vec<Fate>> {
    BTreeMap::from([
        ("conflict", vec![Fate::Answered(409); 2]),
        // More often than such a bind is tried in one go: the member is placed anew after a pause.
        ("conflicts", vec![Fate::Answered(409); 5]),
        ("throttled", vec![Fate::Throttled(2)]),
        ("forbidden", vec![Fate::Answered(403); 2]),
        ("failed", vec![Fate::Answered(500), Fate::Answered(503)]),
        ("misreported", vec![Fate::Misreported(500)]),
        ("expired", vec![Fate::Misreported(504)]),
        ("broken", vec![Fate::Unsent; 2]),
        ("lost", vec![Fate::Lost]),
        ("silent", vec![Fate::Silent]),
        ("late", vec![Fate::Late(Duration::from_millis(700))]),
    ])
}

/// The attempts to bind this pod.
fn attempts(writes: &[Write], pod: &str) -> Vec<Write> {
    let binds = writes.iter().filter(|write| write.bind() == Some(pod));
    binds.cloned().collect()
}

/// Cases C005 and C007 of the collection, and all their kin.
#[test]
fn whatever_is_answered_to_a_bind_its_gang_ends_whole_and_nothing_is_bound_twice() {
    let mut cluster = Cluster::share("answers");
    let gangs: Vec<&str> = fates().into_keys().collect();
    for gang in &gangs {
        cluster.create_node(gang, 3);
    }
    let proxy = cluster.proxy(|writes| {
        let pod = writes.last()?.bind()?;
        let gang = pod.strip_suffix("-1")?;
        let number = attempts(writes, pod).len() - 1;
        fates().get(gang)?.get(number).cloned()
    });
    // The shorter the lease, the shorter the patience with an answer that does not come.
    cluster.run_elected(&["--kubeconfig", proxy.kubeconfig(), "--lease-duration", "3s"]);
    for gang in &gangs {
        cluster.apply(&group(gang, 3, 3, 1));
    }
    for gang in &gangs {
        cluster.wait_until(&format!("{gang} is whole"), || {
            cluster.placed(&format!("{gang}-")) == (3, 3)
        });
    }
    let bound = proxy.bound();
    let different: BTreeSet<&String> = bound.iter().collect();
    assert_eq!(bound.len(), 3 * gangs.len());
    assert_eq!(bound.len(), different.len(), "{bound:?}");

    let writes = proxy.writes();
    let times = |gang: &str| attempts(&writes, &format!("{gang}-1"));
    // What was carried out is not tried again: the pod is read.
    for gang in ["misreported", "expired", "lost", "late"] {
        assert_eq!(times(gang).len(), 1, "{gang}");
    }
    let [first, second] = &times("throttled")[..] else {
        panic!("{:?}", times("throttled"));
    };
    let pause = second.at - first.at;
    assert!(pause >= Duration::from_secs(2), "it waited for {pause:?}");
}
