//! What `/metrics` tells: numbers that the tasks count as they go, and numbers about the cluster that the
//! driver is asked for when somebody reads.
//!
//! Each task holds the same [`Metrics`] and counts in it; nothing here waits or decides. [`Metrics::write`]
//! gives the text. No label holds the name of an object, so the number of series is bounded by the program.
//! docs/metrics.md is the reference, and a test holds both against each other.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use gangline::Verdict;
use prometheus_client::{
    encoding::prometheus_text,
    metrics::{
        counter::Counter,
        family::{Family, MetricConstructor},
        gauge::Gauge,
        histogram::Histogram,
        info::Info,
    },
    registry::Registry,
};
use tokio::sync::mpsc::WeakSender;

mod figures;
mod process;
mod requests;
#[cfg(test)]
mod tests;

pub(super) use figures::{Figures, Pending};
pub(super) use prometheus_text::CONTENT_TYPE;
pub(super) use requests::Counting;

use super::{bind::Outcome, watch::Change};
use crate::output::verdict_word;

type Labels<const N: usize> = [(&'static str, String); N];
type Counters<const N: usize> = Family<Labels<N>, Counter>;
type Gauges<const N: usize> = Family<Labels<N>, Gauge>;
type Histograms<const N: usize> = Family<Labels<N>, Histogram, Buckets>;

/// The upper ends of a histogram's buckets, in seconds.
#[derive(Clone, Copy)]
struct Buckets(&'static [f64]);

/// Requests, decisions and binds: from a tenth of a millisecond on.
const SHORT: Buckets = Buckets(&[
    0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0,
]);
/// How long groups wait: up to days.
const LONG: Buckets = Buckets(&[
    0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0, 28_800.0, 86_400.0,
    604_800.0,
]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The API server took it.
    Taken,
    /// It was not sent, since there were too many.
    Dropped,
    /// The API server did not take it.
    Failed,
}

impl Fate {
    const ALL: [Self; 3] = [Self::Taken, Self::Dropped, Self::Failed];

    fn labels(self) -> Labels<1> {
        let outcome = match self {
            Self::Taken => "sent",
            Self::Dropped => "dropped",
            Self::Failed => "failed",
        };
        [("outcome", outcome.to_owned())]
    }
}

/// All numbers. Cheap to share, and to count in.
pub(super) struct Metrics {
    /// About this process, whether it schedules or not.
    own: Registry,
    /// About the cluster, from the one that schedules.
    cluster: Registry,
    leader: Gauge,
    requests: Counters<2>,
    request_seconds: Histograms<1>,
    groups: Gauges<1>,
    pending_groups: Gauges<1>,
    pending_pods: Gauges<1>,
    half_bound_groups: Gauge,
    reservations: Gauge,
    cards: Gauges<2>,
    fragmentation: Gauge<f64, AtomicU64>,
    pub(super) ready_to_bound_seconds: Histogram,
    pub(super) group_bind_seconds: Histogram,
    pub(super) decision_seconds: Histogram,
    decisions: Counters<1>,
    bind_seconds: Histograms<1>,
    pub(super) bind_retries: Counter,
    pub(super) binds_in_flight: Gauge,
    pub(super) evictions: Counter,
    events: Counters<1>,
    watch_restarts: Counters<1>,
    watch_lag: Gauges<1>,
    watch_backlog: Gauge,
    since: Instant,
    /// By kind: when it was last heard of, in milliseconds since `since`.
    heard: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    backlog: Mutex<Option<WeakSender<Change>>>,
    /// The gauges are set and written by one at a time.
    writing: RwLock<()>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Metrics")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What it guards is whole at any time.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Everything at zero.
    pub(super) fn new() -> Self {
        let metrics = Self {
            own: Registry::default(),
            cluster: Registry::default(),
            leader: Gauge::default(),
            requests: Counters::default(),
            request_seconds: Histograms::new_with_constructor(SHORT),
            groups: Gauges::default(),
            pending_groups: Gauges::default(),
            pending_pods: Gauges::default(),
            half_bound_groups: Gauge::default(),
            reservations: Gauge::default(),
            cards: Gauges::default(),
            fragmentation: Gauge::default(),
            ready_to_bound_seconds: LONG.new_metric(),
            group_bind_seconds: SHORT.new_metric(),
            decision_seconds: SHORT.new_metric(),
            decisions: Counters::default(),
            bind_seconds: Histograms::new_with_constructor(SHORT),
            bind_retries: Counter::default(),
            binds_in_flight: Gauge::default(),
            evictions: Counter::default(),
            events: Counters::default(),
            watch_restarts: Counters::default(),
            watch_lag: Gauges::default(),
            watch_backlog: Gauge::default(),
            since: Instant::now(),
            heard: Mutex::default(),
            backlog: Mutex::default(),
            writing: RwLock::default(),
        };
        for fate in Fate::ALL {
            metrics.events.get_or_create_owned(&fate.labels());
        }
        metrics.registered()
    }

    fn registered(mut self) -> Self {
        let own = &mut self.own;
        own.register(
            "gangline_leader",
            "1 on the replica that schedules, 0 on others",
            self.leader.clone(),
        );
        own.register_collector(Box::new(process::Process::new()));
        own.register(
            "gangline_build",
            "The version of the program",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        own.register(
            "gangline_api_requests",
            "Requests to the API server",
            self.requests.clone(),
        );
        own.register(
            "gangline_api_request_seconds",
            "Until the answer; of a watch, until it began",
            self.request_seconds.clone(),
        );
        let cluster = &mut self.cluster;
        cluster.register("gangline_groups", "Groups by state", self.groups.clone());
        cluster.register(
            "gangline_pending_groups",
            "Groups of which a member waits, by reason",
            self.pending_groups.clone(),
        );
        cluster.register(
            "gangline_pending_pods",
            "Pods that wait, by reason",
            self.pending_pods.clone(),
        );
        cluster.register(
            "gangline_half_bound_groups",
            "Groups below their minimum of which a member is bound",
            self.half_bound_groups.clone(),
        );
        cluster.register(
            "gangline_group_ready_to_bound_seconds",
            "From when enough members were there until the minimum was bound",
            self.ready_to_bound_seconds.clone(),
        );
        cluster.register(
            "gangline_group_bind_seconds",
            "From the plan until the minimum was bound",
            self.group_bind_seconds.clone(),
        );
        cluster.register(
            "gangline_decision_seconds",
            "From the first change that is taken in until the plans are handed out",
            self.decision_seconds.clone(),
        );
        cluster.register(
            "gangline_decisions",
            "Decisions about groups and single pods",
            self.decisions.clone(),
        );
        cluster.register(
            "gangline_reservations",
            "Groups for which nodes are held back",
            self.reservations.clone(),
        );
        cluster.register(
            "gangline_bind_seconds",
            "One member, from its first request until its end",
            self.bind_seconds.clone(),
        );
        cluster.register(
            "gangline_bind_retries",
            "Requests to bind that failed for now and are made again",
            self.bind_retries.clone(),
        );
        cluster.register(
            "gangline_binds_in_flight",
            "Members that are being bound",
            self.binds_in_flight.clone(),
        );
        cluster.register(
            "gangline_evictions",
            "Pods that the API server agreed to evict",
            self.evictions.clone(),
        );
        cluster.register(
            "gangline_events",
            "Events about pods and groups",
            self.events.clone(),
        );
        cluster.register(
            "gangline_watch_lag_seconds",
            "How long ago the API server last said anything about this kind",
            self.watch_lag.clone(),
        );
        cluster.register(
            "gangline_watch_restarts",
            "How often a watch had to list everything anew",
            self.watch_restarts.clone(),
        );
        cluster.register(
            "gangline_watch_backlog_changes",
            "Changes that were heard and not taken in yet",
            self.watch_backlog.clone(),
        );
        cluster.register(
            "gangline_cards",
            "Cards by kind and state",
            self.cards.clone(),
        );
        cluster.register(
            "gangline_fragmentation_ratio",
            "Which part of what is free the usual mix of work cannot use where it lies",
            self.fragmentation.clone(),
        );
        self
    }

    /// The text of all numbers; `figures` are those about the cluster, of one that schedules. Without
    /// them what is counted is told, and the gauges are those of the last time.
    pub(super) fn write(&self, leads: bool, figures: Option<&Figures>) -> String {
        let _one_at_a_time = self.writing.write().unwrap_or_else(PoisonError::into_inner);
        self.leader.set(leads.into());
        let mut text = String::new();
        // A string takes all that is written to it.
        let _ = prometheus_text::encode(&mut text, &self.own);
        if leads {
            if let Some(figures) = figures {
                self.set(figures);
            }
            self.set_watches();
            let _ = prometheus_text::encode(&mut text, &self.cluster);
        }
        text
    }

    fn set(&self, figures: &Figures) {
        for (state, count) in &figures.groups {
            let gauge = self
                .groups
                .get_or_create_owned(&[("state", (*state).into())]);
            gauge.set(i64::from(*count));
        }
        self.half_bound_groups.set(figures.half_bound.into());
        self.reservations.set(figures.reservations.into());
        for (gauges, counts) in [
            (&self.pending_groups, &figures.pending.groups),
            (&self.pending_pods, &figures.pending.pods),
        ] {
            gauges.clear();
            for (reason, count) in counts {
                let gauge = gauges.get_or_create_owned(&[("reason", reason.clone())]);
                gauge.set(i64::try_from(*count).unwrap_or(i64::MAX));
            }
        }
        self.cards.clear();
        for (kind, totals) in &figures.cards {
            for (state, count) in [
                ("free", totals.free),
                ("held", totals.held),
                ("held-in-parts", totals.in_parts),
                ("unusable", totals.unusable),
            ] {
                let labels = [("kind", kind.clone()), ("state", state.to_owned())];
                let gauge = self.cards.get_or_create_owned(&labels);
                gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
            }
        }
        self.fragmentation.set(figures.fragmentation);
    }

    fn set_watches(&self) {
        let backlog = lock(&self.backlog).as_ref().and_then(WeakSender::upgrade);
        let backlog = backlog.map_or(0, |sender| sender.max_capacity() - sender.capacity());
        self.watch_backlog
            .set(i64::try_from(backlog).unwrap_or(i64::MAX));
        let now = self.milliseconds();
        self.watch_lag.clear();
        for (kind, heard) in lock(&self.heard).iter() {
            let lag = now.saturating_sub(heard.load(Ordering::Relaxed)) / 1000;
            let gauge = self
                .watch_lag
                .get_or_create_owned(&[("kind", kind.clone())]);
            gauge.set(i64::try_from(lag).unwrap_or(i64::MAX));
        }
    }

    fn milliseconds(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Something was decided about a gang.
    pub(super) fn decided(&self, verdict: Verdict) {
        let labels = [("verdict", verdict_word(verdict).to_owned())];
        self.decisions.get_or_create(&labels).inc();
    }

    /// A bind ended.
    pub(super) fn bound(&self, outcome: &Outcome, lasted: Duration) {
        let outcome = match outcome {
            Outcome::Bound => "bound",
            Outcome::BoundElsewhere { .. } => "bound-elsewhere",
            Outcome::Gone => "gone",
            Outcome::Refused { .. } => "refused",
            Outcome::Abandoned => "abandoned",
            // That is no end.
            Outcome::Retrying { .. } => return,
        };
        let labels = [("outcome", outcome.to_owned())];
        let histogram = self.bind_seconds.get_or_create(&labels);
        histogram.observe(lasted.as_secs_f64());
    }

    /// An event was sent, or not.
    pub(super) fn told(&self, fate: Fate) {
        self.events.get_or_create(&fate.labels()).inc();
    }

    /// A request was answered, or given up without an answer.
    fn asked(&self, verb: &'static str, code: Option<u16>, lasted: Duration) {
        let code = code.map_or_else(|| "error".to_owned(), |code| code.to_string());
        let labels = [("verb", verb.to_owned()), ("code", code)];
        self.requests.get_or_create(&labels).inc();
        let histogram = self
            .request_seconds
            .get_or_create(&[("verb", verb.to_owned())]);
        histogram.observe(lasted.as_secs_f64());
    }

    /// Where changes wait for the driver.
    pub(super) fn count_backlog_of(&self, changes: WeakSender<Change>) {
        *lock(&self.backlog) = Some(changes);
    }

    /// A watch of this kind begins.
    pub(super) fn watch(self: &Arc<Self>, group: &str, kind: &str) -> Heard {
        let kind = match group {
            "" => kind.to_owned(),
            group => format!("{kind}.{group}"),
        };
        let last = Arc::new(AtomicU64::new(self.milliseconds()));
        lock(&self.heard).insert(kind.clone(), Arc::clone(&last));
        let metrics = Arc::clone(self);
        Heard {
            metrics,
            kind,
            last,
        }
    }
}

/// What one watch counts.
#[derive(Debug)]
pub(super) struct Heard {
    metrics: Arc<Metrics>,
    kind: String,
    last: Arc<AtomicU64>,
}

impl Heard {
    /// The API server said something.
    pub(super) fn note(&self) {
        self.last
            .store(self.metrics.milliseconds(), Ordering::Relaxed);
    }

    /// Everything has to be listed anew.
    pub(super) fn restarts(&self) {
        let labels = [("kind", self.kind.clone())];
        self.metrics.watch_restarts.get_or_create(&labels).inc();
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        lock(&self.metrics.heard).remove(&self.kind);
    }
}
