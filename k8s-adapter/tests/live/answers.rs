//! Every kind of answer to a bind: in the end the gang is whole, and no pod was bound twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    proxy::{Fate, Write},
    support::{Cluster, VOLCANO, group},
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

/// Its room is held meanwhile, so nothing else would tell.
#[test]
fn a_bind_that_always_fails_for_now_says_so_once() {
    let mut cluster = Cluster::share("retried");
    cluster.apply(VOLCANO);
    let fates = BTreeMap::from([
        ("failed", (Fate::Answered(500), "the test says 500")),
        ("throttled", (Fate::Throttled(1), "Too many requests")),
        ("broken", (Fate::Unsent, "")),
        ("silent", (Fate::Silent, "no answer in time")),
    ]);
    let by_gang = fates.clone();
    let proxy = cluster.proxy(move |writes| {
        let gang = writes.last()?.bind()?.strip_suffix("-1")?;
        by_gang.get(gang).map(|(fate, _)| fate.clone())
    });
    cluster.run_elected(&["--kubeconfig", proxy.kubeconfig(), "--lease-duration", "3s"]);
    for gang in fates.keys() {
        cluster.create_node(gang, 2);
    }
    for gang in fates.keys() {
        cluster.apply(&group(gang, 2, 2, 1));
    }
    for (gang, (_, words)) in &fates {
        cluster.wait_until(&format!("{gang} says so"), || {
            let (reason, message) = cluster.why(&format!("{gang}-1"));
            reason == "BindRetrying" && message.contains(words)
        });
        cluster.wait_until(&format!("the group of {gang} says so"), || {
            let path = cluster.path(
                "/apis/scheduling.volcano.sh/v1beta1",
                &format!("podgroups/{gang}"),
            );
            let conditions = cluster.read(&path)["status"]["conditions"].to_string();
            conditions.contains("BindRetrying")
        });
    }
    cluster.wait_until("each was tried some more times", || {
        let writes = proxy.writes();
        let times = |gang: &&str| attempts(&writes, &format!("{gang}-1")).len();
        fates.keys().all(|gang| times(gang) > 4)
    });
    let writes = proxy.writes();
    let conditions = |pod: &str| {
        let taken = writes.iter().filter(|write| write.status == Some(200));
        taken.filter(|write| write.condition() == Some(pod)).count()
    };
    for gang in ["failed", "throttled", "silent"] {
        assert_eq!(conditions(&format!("{gang}-1")), 1, "{gang}");
    }
}

/// Also what pods say about why they wait, and evictions, come through in the end.
#[test]
fn whatever_is_answered_to_a_condition_it_is_told() {
    let mut cluster = Cluster::share("told");
    cluster.create_node("n1", 1);
    let fates = [
        Fate::Answered(409),
        Fate::Answered(500),
        Fate::Throttled(1),
        Fate::Unsent,
        Fate::Lost,
    ];
    let proxy = cluster.proxy(move |writes| {
        let pod = writes.last()?.condition()?;
        let is_of_it = |write: &&Write| write.condition() == Some(pod);
        let ordinal: usize = pod.strip_prefix("g-")?.parse().ok()?;
        // Each pod has its own fate, once.
        let is_first = writes.iter().filter(is_of_it).count() == 1;
        fates.get(ordinal).filter(|_| is_first).cloned()
    });
    cluster.run(&["--kubeconfig", proxy.kubeconfig()]);
    cluster.apply(&group("g", 5, 5, 1));
    cluster.wait_until("all members say what is missing", || {
        (0..5).all(|pod| {
            cluster
                .why(&format!("g-{pod}"))
                .1
                .ends_with("needs 5 GPUs, 1 free")
        })
    });
}

/// A gang that cannot be made whole, and a budget of disruptions that forbids to evict what is bound.
#[test]
fn whatever_is_answered_to_an_eviction_a_gang_that_cannot_be_whole_goes() {
    let mut cluster = Cluster::share("evicted");
    cluster.create_node("n1", 3);
    cluster.apply(
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: all}\n\
         spec: {minAvailable: 100%, selector: {matchLabels: {budget: 'yes'}}}\n",
    );
    let yaml = group("g", 4, 4, 1).replace("annotations", "labels: {budget: 'yes'}\n  annotations");
    cluster.apply(&yaml);
    for pod in ["g-0", "g-1", "g-2"] {
        cluster.bind(pod, &cluster.node_name("n1"));
    }
    cluster.wait_until("the budget counts them", || {
        let budget = cluster.path("/apis/policy/v1", "poddisruptionbudgets/all");
        cluster.read(&budget)["status"]["currentHealthy"] == 3
    });
    let proxy = cluster.proxy(|writes| {
        let pod = writes.last()?.eviction()?;
        let is_of_it = |write: &&Write| write.eviction() == Some(pod);
        match (pod, writes.iter().filter(is_of_it).count()) {
            ("g-0", 1) => Some(Fate::Answered(500)),
            ("g-1", 1) => Some(Fate::Unsent),
            _ => None,
        }
    });
    cluster.run(&[
        "--kubeconfig",
        proxy.kubeconfig(),
        "--degraded-deadline",
        "1s",
    ]);
    cluster.wait_until(
        "each eviction was refused for the sake of the budget",
        || {
            let writes = proxy.writes();
            let refused = |pod: &str| {
                let mut writes = writes.iter().filter(|write| write.eviction() == Some(pod));
                writes.any(|write| write.status == Some(429))
            };
            ["g-0", "g-1", "g-2"].into_iter().all(refused)
        },
    );
    assert_eq!(cluster.placed("g-"), (4, 3));
    cluster.delete(&cluster.path("/apis/policy/v1", "poddisruptionbudgets/all"));
    cluster.wait_until("what was bound is gone", || cluster.placed("g-") == (1, 0));
}
