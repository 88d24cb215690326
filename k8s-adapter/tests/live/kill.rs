//! The scheduler is killed before and after every write of two gangs with eight members, and before and
//! after every eviction of one that cannot be whole.
//!
//! There is room for one gang and a half, so that a scheduler which knows nothing could begin the other
//! one; a second node comes when one gang runs and the other says why it waits. Each run is one write and
//! one side of it, in a part of the control plane of its own. The proxy is frozen at that write, so it is
//! the last thing that the killed scheduler did. Renewals of the lease do not count, as they come when time
//! passes, nor do events, which nobody reads to decide.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::{
    proxy::{Fate, Proxy, Write},
    support::{Cluster, group},
};

/// So many runs go on at a time: most of each is waiting.
const SIDE_BY_SIDE: usize = 4;
const GANGS: [&str; 2] = ["a", "b"];
/// Members of a gang.
const MEMBERS: usize = 4;

/// What follows on the scheduler that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// It starts anew.
    Restart,
    /// Another instance, which stood by, takes over; the first one is killed.
    HandOver,
    /// The same, while the first one lives on and cannot reach the API server.
    CutOff,
}

/// One run.
struct Run {
    cluster: Cluster,
    next: Next,
    /// What is in front of the first scheduler, and of the next one.
    first: Proxy,
    second: Proxy,
    has_grown: bool,
    /// Who was half bound when the first scheduler ended, once it has.
    half: Option<Vec<&'static str>>,
}

/// The members of a gang that have a node, and those that say why they have none.
#[derive(Clone, Copy, Debug, Default)]
struct Members {
    bound: usize,
    told: usize,
}

impl Run {
    /// Freezes at the write of this number. `Some(false)`: there are fewer. `None`: the first scheduler lost
    /// its lease before that, on a machine that is too busy to renew it in time.
    fn play(name: &str, number: usize, fate: &Fate, next: Next) -> Option<bool> {
        let mut cluster = Cluster::share(name);
        cluster.create_node("n1", 6);
        for gang in GANGS {
            cluster.apply(&group(gang, 4, 4, 1));
        }
        let fate = fate.clone();
        let first = cluster.proxy(move |writes| {
            let counts = |write: &&Write| !write.is_renewal() && !write.is_event();
            let is_it = writes.iter().filter(counts).count() == number;
            (is_it && writes.last().is_some_and(|write| counts(&write))).then(|| fate.clone())
        });
        let second = cluster.proxy(|_| None);
        let lease = ["--lease-duration", "4s", "--kubeconfig"];
        if next == Next::Restart {
            cluster.run(&["--kubeconfig", first.kubeconfig()]);
        } else {
            cluster.run_elected(&[&lease[..], &[first.kubeconfig()]].concat());
            cluster.wait_until("the first asks for the lease", || {
                !first.writes().is_empty()
            });
            cluster.run_elected(&[&lease[..], &[second.kubeconfig()]].concat());
        }
        let mut run = Self {
            cluster,
            next,
            first,
            second,
            has_grown: false,
            half: None,
        };
        run.go_on()?;
        Some(run.half.is_some())
    }

    /// Waits until both gangs are whole.
    fn go_on(&mut self) -> Option<()> {
        let mut last = GANGS.map(|_| Members::default());
        for _ in 0..PATIENCE {
            if self.half.is_none() && self.first.is_frozen() {
                self.end_the_first();
            }
            if self.half.is_none() && self.cluster.has_ended() {
                return None;
            }
            self.cluster.keep_the_last();
            last = self.members();
            if last.iter().all(|gang| gang.bound == MEMBERS) {
                self.look_back();
                return Some(());
            }
            let is_settled = |gang: &Members| gang.bound == MEMBERS || gang.told == MEMBERS;
            let one_is_whole = last.iter().any(|gang| gang.bound == MEMBERS);
            if !self.has_grown && one_is_whole && last.iter().all(is_settled) {
                self.cluster.create_node("n2", 2);
                self.has_grown = true;
            }
            thread::sleep(PAUSE);
        }
        panic!("half for ever: {last:?}\n{}", self.cluster.log());
    }

    fn end_the_first(&mut self) {
        if self.next != Next::CutOff {
            self.cluster.kill_scheduler();
        }
        let is_half = |members: &Members| (1..MEMBERS).contains(&members.bound);
        let gangs = GANGS.into_iter().zip(self.members());
        let half = gangs.filter(|(_, members)| is_half(members));
        self.half = Some(half.map(|(gang, _)| gang).collect());
        if self.next == Next::Restart {
            self.cluster
                .run(&["--kubeconfig", self.second.kubeconfig()]);
        }
    }

    /// What was half bound was finished before anything new, and who lost the lease has ended.
    fn look_back(&mut self) {
        let Some(half) = &self.half else {
            return;
        };
        let bound = self.second.bound();
        for gang in half {
            let before = MEMBERS - bound.iter().filter(|pod| pod.starts_with(gang)).count();
            assert!(before > 0);
            let next = &bound[..MEMBERS - before];
            let is_of_it = |pod: &String| pod.starts_with(gang);
            assert!(
                next.iter().all(is_of_it),
                "{gang} was half bound, then: {bound:?}"
            );
        }
        if self.next == Next::CutOff {
            assert_eq!(self.cluster.wait_for_scheduler(), Some(1));
        }
    }

    fn members(&self) -> [Members; 2] {
        let pods = self.cluster.read(&self.cluster.path("/api/v1", "pods"));
        let pods = pods["items"].as_array().expect("a list");
        GANGS.map(|gang| {
            let mut members = Members::default();
            let is_of_it =
                |pod: &&Value| pod["metadata"]["name"].as_str().unwrap().starts_with(gang);
            for pod in pods.iter().filter(is_of_it) {
                let is_bound = pod["spec"]["nodeName"].is_string();
                members.bound += usize::from(is_bound);
                members.told += usize::from(!is_bound && pod["status"]["conditions"].is_array());
            }
            members
        })
    }
}

const PAUSE: Duration = Duration::from_millis(100);
/// Three minutes.
const PATIENCE: usize = 1800;

/// One run for each write and each side of it. `play` gets a name, the number of the write, and what happens
/// there; `Some(false)`: there are fewer; `None`: again.
fn matrix(name: &str, writes: usize, play: impl Fn(&str, usize, &Fate) -> Option<bool> + Sync) {
    let runs = AtomicUsize::new(0);
    let reached = AtomicUsize::new(0);
    let work = || {
        loop {
            let run = runs.fetch_add(1, Ordering::Relaxed);
            let number = run / 2 + 1;
            let (side, fate) = if run.is_multiple_of(2) {
                ("before", Fate::FreezeBefore)
            } else {
                ("after", Fate::FreezeAfter)
            };
            let mut names = (0..).map(|again| format!("{name}-{side}-{number}-{again}"));
            let is_reached = names.find_map(|name| play(&name, number, &fate));
            if is_reached != Some(true) {
                return;
            }
            reached.fetch_max(number, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(work);
        }
    });
    let reached = reached.into_inner();
    assert!(reached >= writes, "only {reached} writes were seen");
}

/// Eight binds, and four pods that say why they wait.
#[test]
fn no_gang_stays_half_when_the_scheduler_is_killed_at_any_write_and_starts_again() {
    matrix("kill", 12, |name, number, fate| {
        Run::play(name, number, fate, Next::Restart)
    });
}

/// The same, and the lease.
#[test]
fn no_gang_stays_half_when_another_instance_takes_over_at_any_write() {
    matrix("take-over", 13, |name, number, fate| {
        // Who never had the lease does not end without it.
        let is_cut_off = number > 1 && matches!(fate, Fate::FreezeBefore) == (number % 2 == 0);
        let next = if is_cut_off {
            Next::CutOff
        } else {
            Next::HandOver
        };
        Run::play(name, number, fate, next)
    });
}

/// Three members are bound and there is no room for the fourth: three evictions.
#[test]
fn no_gang_stays_half_when_the_scheduler_is_killed_while_it_gives_one_back() {
    matrix("give-back", 3, |name, number, fate| {
        let mut cluster = Cluster::share(name);
        cluster.create_node("n1", 3);
        cluster.apply(&group("a", 4, 4, 1));
        for pod in ["a-0", "a-1", "a-2"] {
            cluster.bind(pod, &cluster.node_name("n1"));
        }
        let fate = fate.clone();
        let proxy = cluster.proxy(move |writes| {
            let evictions = writes.iter().filter(|write| write.eviction().is_some());
            let is_it = evictions.count() == number && writes.last()?.eviction().is_some();
            is_it.then(|| fate.clone())
        });
        let deadline = ["--degraded-deadline", "1s"];
        cluster.run(&[&deadline[..], &["--kubeconfig", proxy.kubeconfig()]].concat());
        cluster.wait_until("it gives back what it has, or is stopped in that", || {
            proxy.is_frozen() || cluster.placed("a-").1 == 0
        });
        if proxy.is_frozen() {
            cluster.kill_scheduler();
            cluster.run(&deadline);
        }
        cluster.wait_until("nothing is bound", || cluster.placed("a-").1 == 0);
        Some(proxy.is_frozen())
    });
}
