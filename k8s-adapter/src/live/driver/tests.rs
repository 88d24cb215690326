//! The driver without an API server: changes in, plans out.

use std::time::{Duration, UNIX_EPOCH};

use tokio::sync::mpsc::error::TryRecvError;

use super::{super::clock::Clock, *};
use crate::load::{Document, Source};

mod volumes;

struct Harness {
    driver: Driver,
    lines: Lines,
    plans: UnboundedReceiver<Plan>,
    evictions: UnboundedReceiver<Eviction>,
    news: UnboundedReceiver<News>,
    orders: UnboundedReceiver<Order>,
    statuses: UnboundedReceiver<Told>,
}

impl Harness {
    fn new() -> Self {
        Self::at(Clock::start())
    }

    fn at(clock: Clock) -> Self {
        let (lines, ends) = Lines::open(1);
        let names = BTreeSet::from(["gangline".to_owned()]);
        let health = Arc::default();
        let (config, clocks) = (Config::default(), Clocks::new(clock));
        let driver = Driver::new(names, config, clocks, &lines, health, Arc::default());
        Self {
            driver,
            lines,
            plans: ends.plans,
            evictions: ends.evictions,
            news: ends.news,
            orders: ends.volumes,
            statuses: ends.statuses,
        }
    }

    /// One whose watches have all listed what there is.
    fn started() -> Self {
        let mut harness = Self::new();
        harness.driver.take(Change::Awaited(0));
        harness
    }

    fn node(&mut self, name: &str, spec: &str) {
        self.described_node(name, "", spec);
    }

    fn labelled_node(&mut self, name: &str, labels: &str) {
        self.described_node(name, labels, "");
    }

    fn described_node(&mut self, name: &str, labels: &str, spec: &str) {
        let yaml = format!(
            "metadata: {{name: {name}, labels: {{{labels}}}}}\nspec: {{{spec}}}\nstatus: {{allocatable: {{cpu: 8, pods: 9, \
             nvidia.com/gpu: 2}}}}"
        );
        let node = Box::new(serde_saphyr::from_str(&yaml).unwrap());
        self.driver.take(Change::Node(node));
    }

    fn pod(&mut self, name: &str, spec: &str) {
        self.annotated_pod(name, spec, "");
    }

    fn annotated_pod(&mut self, name: &str, spec: &str, annotations: &str) {
        self.pod_in_phase(name, spec, annotations, "Pending");
    }

    fn pod_in_phase(&mut self, name: &str, spec: &str, annotations: &str, phase: &str) {
        let yaml = format!(
            "metadata: {{name: {name}, namespace: default, uid: {}, annotations: {{{annotations}}}}}\n\
             spec: {{schedulerName: gangline, {spec} containers: [{{resources: {{limits: \
             {{nvidia.com/gpu: 1}}}}}}]}}\nstatus: {{phase: {phase}}}",
            uid(name)
        );
        let pod = Box::new(serde_saphyr::from_str(&yaml).unwrap());
        self.driver.take(Change::Pod(pod, "1".into()));
    }

    /// A group of Volcano.
    fn group(&mut self, name: &str, spec: &str) {
        self.group_at(name, spec, 1, "");
    }

    /// A group of Volcano with a version and a status.
    fn group_at(&mut self, name: &str, spec: &str, version: u32, status: &str) {
        let yaml = format!(
            "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\n\
             metadata: {{name: {name}, namespace: default, uid: {}, resourceVersion: '{version}'}}\n\
             spec: {{{spec}}}\nstatus: {{{status}}}",
            uid(name)
        );
        let object = serde_saphyr::from_str(&yaml).unwrap();
        let document = Document::from_value(Source::file("the cluster"), object).unwrap();
        self.driver.take(Change::Object(document));
    }

    /// Decides; the plans that are handed out: members and their nodes.
    fn turn(&mut self) -> Vec<Vec<(String, String)>> {
        self.turn_with([]).into_iter().map(places).collect()
    }

    fn turn_with(&mut self, reports: impl IntoIterator<Item = Report>) -> Vec<Plan> {
        self.driver.turn(reports.into_iter());
        let mut plans = Vec::new();
        while let Ok(plan) = self.plans.try_recv() {
            plans.push(plan);
        }
        plans
    }

    /// What is written on groups now: versions and phases.
    fn statuses(&mut self) -> Vec<(String, String)> {
        self.turn();
        self.told();
        let mut writes = Vec::new();
        while let Ok(told) = self.statuses.try_recv() {
            if let Told::Status(write) = told {
                let phase = write.status["phase"].as_str().unwrap_or_default();
                writes.push((write.version, phase.to_owned()));
            }
        }
        writes
    }

    /// All that is said now: pods and reasons.
    fn told(&mut self) -> Vec<(String, String)> {
        while self.driver.storyteller.has_more() {
            let Driver {
                storyteller,
                scheduler,
                groups,
                ..
            } = &mut self.driver;
            storyteller.tell_next(scheduler, groups);
        }
        let mut told = Vec::new();
        while let Ok(news) = self.news.try_recv() {
            if let News::Waits(waits) = news {
                told.push((waits.name, waits.message));
            }
        }
        told
    }
}

fn uid(name: &str) -> Uid {
    Uid::from_text(name)
}

fn places(plan: Plan) -> Vec<(String, String)> {
    let binds = plan.binds.into_iter();
    binds.map(|bind| (bind.name, bind.node)).collect()
}

fn place(pod: &str, node: &str) -> (String, String) {
    (pod.to_owned(), node.to_owned())
}

#[test]
fn nothing_is_decided_before_everything_is_known() {
    let mut harness = Harness::new();
    harness.node("n1", "");
    harness.pod("a", "");
    assert!(harness.turn().is_empty());
    harness.driver.take(Change::Awaited(2));
    harness.driver.take(Change::Listed);
    assert!(harness.turn().is_empty());
    // What the second list brings takes the room.
    harness.pod("b", "nodeName: n1,");
    harness.pod("c", "nodeName: n1,");
    harness.driver.take(Change::Listed);
    assert!(harness.turn().is_empty());
    let told = harness.told();
    assert_eq!(told, [place("a", "DoesNotFit: needs 1 GPU, 0 free")]);
    assert!(harness.told().is_empty(), "it is said once");
}

#[test]
fn a_plan_names_the_devices_and_what_it_named_counts_after_a_restart() {
    let mut harness = Harness::started();
    harness.node("n1", "");
    harness.annotated_pod("b", "nodeName: n1,", "gangline.io/devices: '0'");
    harness.pod("a", "");
    let plans = harness.turn_with([]);
    let binds: Vec<_> = plans.into_iter().flat_map(|plan| plan.binds).collect();
    assert_eq!(binds.len(), 1);
    assert_eq!(
        binds[0].annotations.get(DEVICES).map(String::as_str),
        Some("1")
    );
    assert_eq!(binds[0].annotations.get(RANK), None, "it is in no gang");
}

#[test]
fn a_plan_that_nobody_started_follows_what_changes() {
    let mut harness = Harness::started();
    harness.node("n1", "");
    harness.pod("a", "");
    let plan = harness.turn_with([]).pop().expect("a plan");
    harness.node("n1", "unschedulable: true");
    harness.node("n2", "");
    assert_eq!(harness.turn(), [[place("a", "n2")]]);
    assert!(
        !plan.ticket.waits() && !plan.ticket.withdraw(),
        "it is withdrawn"
    );
    // Somebody else takes the room of the new plan.
    harness.pod("b", "nodeName: n2,");
    harness.pod("c", "nodeName: n2,");
    assert!(harness.turn().is_empty());
    assert_eq!(
        harness.told(),
        [place("a", "DoesNotFit: needs 1 GPU, 0 free")]
    );
}

#[test]
fn a_plan_that_was_started_is_carried_through() {
    let mut harness = Harness::started();
    harness.node("n1", "");
    harness.node("n2", "");
    harness.pod("a", "");
    let plan = harness.turn_with([]).pop().expect("a plan");
    assert!(plan.ticket.start());
    let node = plan.binds[0].node.clone();
    harness.labelled_node(&node, "new: label");
    harness.pod("b", &format!("nodeName: {node},"));
    harness.pod("c", &format!("nodeName: {node},"));
    assert!(harness.turn().is_empty());
    assert!(plan.binds[0].held.load(Ordering::Acquire));
    // The pod goes: nobody shall try again to bind it.
    let name: Box<str> = "a".into();
    let namespace: Box<str> = "default".into();
    harness.driver.take(Change::PodGone {
        namespace,
        name,
        uid: uid("a"),
    });
    assert!(harness.turn().is_empty());
    assert!(!plan.binds[0].held.load(Ordering::Acquire));
}

/// Cases C006 and C097: what was tried on the first node is not tried again.
#[test]
fn a_member_whose_node_went_or_was_cordoned_before_its_bind_goes_elsewhere() {
    for cordon in [true, false] {
        let mut harness = Harness::started();
        harness.node("n1", "");
        harness.pod("a", "");
        let plan = harness.turn_with([]).pop().expect("a plan");
        assert!(plan.ticket.start());
        harness.node("n2", "");
        assert!(harness.turn().is_empty());
        if cordon {
            harness.node("n1", "unschedulable: true");
        } else {
            let name = "n1".into();
            harness.driver.take(Change::NodeGone { name });
        }
        assert_eq!(harness.turn(), [[place("a", "n2")]]);
        assert!(!plan.binds[0].held.load(Ordering::Acquire));
    }
}

#[test]
fn a_bind_that_is_refused_pauses_and_says_so() {
    let mut harness = Harness::started();
    harness.node("n1", "");
    harness.pod("a", "");
    let plan = harness.turn_with([]).pop().expect("a plan");
    assert!(plan.ticket.start());
    let refused = |plan| Report {
        plan,
        pod: uid("a"),
        outcome: Outcome::Refused {
            message: "not before noon".into(),
        },
    };
    // The end of a plan that is not the latest one says nothing about it.
    assert!(harness.turn_with([refused(0)]).is_empty());
    assert!(plan.binds[0].held.load(Ordering::Acquire));
    let number = plan.binds[0].plan;
    assert!(harness.turn_with([refused(number)]).is_empty());
    let state = harness.driver.scheduler.state_of(uid("a"));
    assert_eq!(state, Some(MemberState::Waiting));
    let told = harness.told();
    assert!(
        told.iter().any(|(_, why)| why.contains("not before noon")),
        "{told:?}"
    );
    let deadline = harness.driver.scheduler.next_deadline();
    assert!(deadline.is_some_and(|deadline| deadline > harness.driver.scheduler.now()));
}

#[test]
fn a_bind_that_is_tried_again_says_so_once_for_each_answer() {
    let mut harness = Harness::started();
    harness.node("n1", "");
    harness.group("g", "minMember: 2");
    for pod in ["g-0", "g-1"] {
        harness.annotated_pod(pod, "", "scheduling.k8s.io/group-name: g");
    }
    let plan = harness.turn_with([]).pop().expect("a plan");
    assert!(plan.ticket.start());
    assert_eq!(harness.told(), []);
    let number = plan.binds[0].plan;
    let retrying = |message: &str| Report {
        plan: number,
        pod: uid("g-1"),
        outcome: Outcome::Retrying {
            message: message.into(),
        },
    };
    let says = |message: &str| {
        let message = format!("BindRetrying: binding to n1 is tried again: {message}");
        vec![("g-1".to_owned(), message)]
    };
    assert!(harness.turn_with([retrying("no leader")]).is_empty());
    assert_eq!(harness.told(), says("no leader"));
    let mut status = String::new();
    while let Ok(told) = harness.statuses.try_recv() {
        if let Told::Status(write) = told {
            status = write.status.to_string();
        }
    }
    assert!(status.contains("BindRetrying"), "{status}");
    // Nothing new is nothing to say, also when something else changes.
    assert!(harness.turn_with([retrying("no leader")]).is_empty());
    assert_eq!(harness.told(), []);
    harness.annotated_pod("g-0", "nodeName: n1,", "scheduling.k8s.io/group-name: g");
    assert!(harness.turn().is_empty());
    assert_eq!(harness.told(), []);
    assert!(harness.turn_with([retrying("too many")]).is_empty());
    assert_eq!(harness.told(), says("too many"));
    let pending = harness.driver.storyteller.pending();
    assert_eq!(pending.pods.get("BindRetrying"), Some(&1));
    assert_eq!(pending.groups.get("BindRetrying"), Some(&1));
    harness.annotated_pod("g-1", "nodeName: n1,", "scheduling.k8s.io/group-name: g");
    assert!(harness.turn().is_empty());
    assert_eq!(harness.told(), []);
    let pending = harness.driver.storyteller.pending();
    assert_eq!(pending.pods.get("BindRetrying"), Some(&0));
    assert_eq!(pending.groups.get("BindRetrying"), Some(&0));
}

/// Whoever starts finishes the time that the one before had left, whatever the wall clock says by then.
#[test]
fn a_deadline_goes_on_after_a_restart_and_a_step_of_the_wall_clock_changes_nothing() {
    const HOUR: Duration = Duration::from_hours(1);
    let noon = UNIX_EPOCH + Duration::from_secs(1_796_000_000);
    let degraded = |harness: &mut Harness| {
        harness.driver.take(Change::Awaited(0));
        harness.node("n1", "");
        harness.pod("x", "nodeName: n1,");
        harness.group("g", "minMember: 2");
        harness.annotated_pod("g-0", "nodeName: n1,", "scheduling.k8s.io/group-name: g");
        harness.annotated_pod("g-1", "", "scheduling.k8s.io/group-name: g");
    };
    let left = |harness: &mut Harness| {
        let deadline = harness.driver.turn([].into_iter()).expect("a deadline");
        let left = deadline.saturating_sub(harness.driver.clocks.clock().now());
        Duration::from_nanos(left.0)
    };
    let mut first = Harness::at(Clock::start_at(noon));
    degraded(&mut first);
    assert!(left(&mut first) > Duration::from_secs(40));
    // Its clock runs on while nothing is decided.
    first.driver.clocks.pass(Duration::from_secs(40));
    let mut annotations = None;
    first.driver.clocks.annotate(&mut annotations);
    for wall in [noon, noon - HOUR, noon + HOUR] {
        let mut next = Harness::at(Clock::start_at(wall));
        next.driver.clocks.read(annotations.as_ref());
        let mut kept = annotations.clone();
        next.driver.clocks.annotate(&mut kept);
        assert_eq!(kept, annotations, "nothing was decided yet");
        degraded(&mut next);
        assert!(left(&mut next) <= Duration::from_secs(20));
        assert!(next.evictions.try_recv().is_err());
        next.driver.clocks.pass(Duration::from_secs(20));
        next.turn();
        let evicted = next.evictions.try_recv().map(|eviction| eviction.uid);
        assert_eq!(evicted, Ok(uid("g-0")));
        next.driver.clocks.annotate(&mut kept);
        assert_eq!(kept, Some(BTreeMap::new()), "no clock runs any more");
    }
    // What was read before is forgotten with the annotation.
    let mut later = Harness::at(Clock::start_at(noon));
    later.driver.clocks.read(annotations.as_ref());
    later.driver.clocks.read(None);
    degraded(&mut later);
    assert!(left(&mut later) > Duration::from_secs(40));
    // Another group of that name has all its time.
    let mut other = Harness::at(Clock::start_at(noon));
    let text = annotations.unwrap().into_iter().map(|(key, value)| {
        let value = value.replace(&uid("g").to_string(), &uid("h").to_string());
        (key, value)
    });
    other.driver.clocks.read(Some(&text.collect()));
    degraded(&mut other);
    assert!(left(&mut other) > Duration::from_secs(40));
}

#[test]
fn levels_follow_what_nodes_and_groups_speak_of() {
    let mut harness = Harness::started();
    let levels = |harness: &Harness| harness.driver.scheduler.config().levels.join(" ");
    harness.labelled_node("n1", "rack: r1");
    harness.turn();
    assert_eq!(levels(&harness), "", "nobody speaks of racks");
    harness.pod("a", "");
    assert_eq!(harness.turn(), [[place("a", "n1")]]);
    harness.labelled_node("n2", "rack: r2, topology.kubernetes.io/zone: z");
    harness.turn();
    assert_eq!(levels(&harness), "topology.kubernetes.io/zone");
    let group = serde_json::json!({
        "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
        "metadata": { "name": "g", "namespace": "default" },
        "spec": { "schedulingPolicy": { "gang": { "minCount": 1 } },
            "schedulingConstraints": { "topology": [{ "key": "room" }] } },
    });
    let source = crate::load::Source::file("the cluster");
    let group = crate::load::Document::from_value(source, group).unwrap();
    harness.driver.take(Change::Object(group));
    harness.turn();
    assert_eq!(
        levels(&harness),
        "topology.kubernetes.io/zone",
        "no node has a room"
    );
    harness.labelled_node("n3", "room: x");
    harness.turn();
    assert_eq!(
        levels(&harness).split(' ').count(),
        2,
        "{}",
        levels(&harness)
    );
    // What was held before is held still.
    assert_eq!(
        harness.driver.scheduler.state_of(uid("a")),
        Some(MemberState::Planned)
    );
    assert!(harness.driver.binding.contains_key(&uid("a")));
}

/// Case C159: it says what is wrong with it.
#[test]
fn a_pod_that_makes_no_sense_says_so() {
    let mut harness = Harness::started();
    harness.node("n1", "");
    harness.annotated_pod("a", "", "gangline.io/card-ids: none");
    assert!(harness.turn().is_empty());
    let told = harness.told();
    assert!(
        told.len() == 1 && told[0].1.contains("gangline.io/card-ids"),
        "{told:?}"
    );
}

#[test]
fn pods_of_others_are_neither_bound_nor_spoken_of() {
    let mut harness = Harness::started();
    let yaml = format!(
        "metadata: {{name: x, namespace: default, uid: {}}}\nspec: {{containers: [{{resources: \
         {{limits: {{nvidia.com/gpu: 1}}}}}}]}}",
        uid("x")
    );
    let pod = Box::new(serde_saphyr::from_str(&yaml).unwrap());
    harness.driver.take(Change::Pod(pod, "1".into()));
    harness.node("n1", "");
    assert!(harness.turn().is_empty());
    assert!(harness.told().is_empty());
    assert_eq!(
        harness.evictions.try_recv().unwrap_err(),
        TryRecvError::Empty
    );
    assert!(harness.lines.changes.is_empty());
}

#[test]
fn who_waits_is_counted_by_reason_until_it_waits_no_more() {
    let mut harness = Harness::started();
    let pending = |harness: &mut Harness| {
        harness.turn();
        harness.told();
        let pending = harness.driver.storyteller.pending();
        let text = |counts: BTreeMap<String, u64>| {
            let counts = counts.into_iter().filter(|(_, count)| *count > 0);
            let counts = counts.map(|(code, count)| format!("{code} {count}"));
            counts.collect::<Vec<_>>().join(", ")
        };
        (text(pending.groups), text(pending.pods))
    };
    let counts = |groups: &str, pods: &str| (groups.to_owned(), pods.to_owned());
    harness.group("g", "minMember: 2");
    harness.annotated_pod("g-0", "", "scheduling.k8s.io/group-name: g");
    harness.pod("a", "");
    let missing = "WaitingForMembers 1";
    let with_a = "DoesNotFit 1, WaitingForMembers 1";
    assert_eq!(pending(&mut harness), counts(missing, with_a));
    harness.annotated_pod("g-1", "", "scheduling.k8s.io/group-name: g");
    assert_eq!(
        pending(&mut harness),
        counts("DoesNotFit 1", "DoesNotFit 3")
    );
    harness.node("n1", "");
    let placed = pending(&mut harness);
    assert_eq!(placed.0.is_empty(), placed.1 == "DoesNotFit 1");
    harness.node("n2", "");
    assert_eq!(pending(&mut harness), counts("", ""));
}

#[test]
fn the_start_of_a_group_is_measured_once() {
    let mut harness = Harness::started();
    harness.node("n1", "");
    harness.group("g", "minMember: 1");
    harness.annotated_pod("g-0", "", "scheduling.k8s.io/group-name: g");
    let counts = |harness: &Harness, count: u32| {
        let text = harness.driver.metrics.write(true, None);
        let names = [
            "gangline_group_ready_to_bound_seconds",
            "gangline_group_bind_seconds",
        ];
        for name in names {
            assert!(text.contains(&format!("{name}_count {count}\n")), "{text}");
        }
    };
    assert_eq!(harness.turn().len(), 1);
    counts(&harness, 0);
    for _ in 0..2 {
        harness.annotated_pod("g-0", "nodeName: n1,", "scheduling.k8s.io/group-name: g");
        harness.turn();
        counts(&harness, 1);
    }
}

#[test]
fn a_status_is_written_on_change_and_over_a_newer_object_but_not_against_others() {
    let mut harness = Harness::started();
    let link = "scheduling.k8s.io/group-name: g";
    harness.group("g", "minMember: 1");
    assert!(harness.statuses().is_empty(), "nobody says whose it is");
    harness.annotated_pod("g-0", "nodeName: n1,", link);
    assert_eq!(harness.statuses(), [place("1", "Running")]);
    harness.annotated_pod("g-0", "nodeName: n1,", link);
    assert!(harness.statuses().is_empty(), "it is said once");
    // The object changed before the write came.
    harness.group_at("g", "minMember: 1", 2, "");
    assert_eq!(harness.statuses(), [place("2", "Running")]);
    let condition =
        "type: Scheduled, status: 'True', reason: tasks in gang are ready to be scheduled";
    let status = format!("phase: Running, conditions: [{{{condition}}}]");
    harness.group_at("g", "minMember: 1", 3, &status);
    assert!(harness.statuses().is_empty());
    // Somebody else thinks otherwise.
    harness.group_at("g", "minMember: 1", 4, "phase: Pending");
    assert!(harness.statuses().is_empty());
    harness.annotated_pod("g-1", "nodeName: n1,", link);
    assert!(harness.statuses().is_empty());
    // There is something new to say.
    harness.pod_in_phase("g-1", "nodeName: n1,", link, "Running");
    assert_eq!(harness.statuses(), [place("4", "Running")]);
}

#[test]
fn groups_of_other_schedulers_are_left_alone() {
    let mut harness = Harness::started();
    harness.group("g", "minMember: 1");
    let yaml = format!(
        "metadata: {{name: g-0, namespace: default, uid: {}, annotations: \
         {{scheduling.k8s.io/group-name: g}}}}\nspec: {{schedulerName: volcano, nodeName: n1, \
         containers: [{{}}]}}",
        uid("g-0")
    );
    let pod = Box::new(serde_saphyr::from_str(&yaml).unwrap());
    harness.driver.take(Change::Pod(pod, "1".into()));
    assert!(harness.statuses().is_empty());
}

#[tokio::test]
async fn prices_are_made_beside_the_decisions_but_for_the_first() {
    let mut harness = Harness::started();
    harness.driver.scheduler = Scheduler::new(Config {
        scoring: gangline::gang::ScoringRule::BidPrice,
        ..Config::default()
    });
    let version = |harness: &Harness| {
        let prices = harness.driver.scheduler.prices();
        prices.map(|list| list.prices().version())
    };
    for at in 0..20 {
        harness.node(&format!("n{at}"), "");
    }
    for at in 0..12 {
        harness.pod(&format!("p{at}"), "");
    }
    assert_eq!(harness.turn().len(), 12);
    assert_eq!(
        version(&harness),
        Some(1),
        "nothing is placed without prices"
    );
    assert!(harness.driver.scheduler.prices_due());
    harness.pod("next", "");
    assert_eq!(harness.turn().len(), 1);
    assert_eq!(version(&harness), Some(1), "the old ones decide meanwhile");
    let Driver {
        pricing, scheduler, ..
    } = &mut harness.driver;
    let list = pricing.solved().await;
    pricing.take(list, scheduler);
    assert_eq!(version(&harness), Some(2));
    assert!(!harness.driver.scheduler.prices_due());
}
