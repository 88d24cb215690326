//! Events (`events.k8s.io`) about pods and groups: what happened to them, for `kubectl describe`.
//!
//! What happened enters as [`Event`]s from whoever saw it, and leaves as requests, one at a time and at most
//! ten a second: beside the binds and never before them. Those about groups and those that say that something
//! is wrong go first. Of two about one object with one reason that wait, the later is sent. More than
//! [`WAITING`] do not wait: what comes then is dropped and counted. The same said again within some minutes
//! is not a new event but a larger number on the one that there is.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    env,
    sync::Arc,
    time::Duration,
};

use gangline::units::Uid;
use http::Request;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender},
    time::{self, Instant},
};
use tracing::{debug, warn};

use super::{
    metrics::{Fate, Metrics},
    request::Requests,
};

#[cfg(test)]
mod tests;

/// Between two events.
const PAUSE: Duration = Duration::from_millis(100);
/// After the API server did not take one for now.
const LONG_PAUSE: Duration = Duration::from_secs(1);
/// So many wait.
const WAITING: usize = 1000;
/// So long the same counts as a repetition; the API server keeps events for an hour.
const SERIES: Duration = Duration::from_mins(10);
/// So many events are remembered, to count repetitions.
const REMEMBERED: usize = 4096;
/// What the API server takes, in bytes.
const LONGEST_NOTE: usize = 1024;
/// Who says it.
const CONTROLLER: &str = "gangline";

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Regarding {
    /// Group and version.
    pub(super) api_version: String,
    /// Its kind.
    pub(super) kind: &'static str,
    /// Its namespace.
    pub(super) namespace: String,
    /// Its name.
    pub(super) name: String,
    /// Its identity.
    pub(super) uid: Uid,
}

impl Regarding {
    /// A pod.
    pub(super) fn pod(namespace: &str, name: &str, uid: Uid) -> Self {
        Self {
            api_version: "v1".into(),
            kind: "Pod",
            namespace: namespace.into(),
            name: name.into(),
            uid,
        }
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    /// It has a place: a pod is bound, a group is planned.
    Scheduled,
    /// It waits.
    FailedScheduling,
    /// It must go, since its group cannot keep its minimum.
    Evicted,
}

impl Reason {
    const fn word(self) -> &'static str {
        match self {
            Self::Scheduled => "Scheduled",
            Self::FailedScheduling => "FailedScheduling",
            Self::Evicted => "Evicted",
        }
    }

    const fn action(self) -> &'static str {
        match self {
            Self::Scheduled => "Binding",
            Self::FailedScheduling => "Scheduling",
            Self::Evicted => "Evicting",
        }
    }

    const fn kind(self) -> &'static str {
        match self {
            Self::Scheduled => "Normal",
            Self::FailedScheduling | Self::Evicted => "Warning",
        }
    }
}

/// Something to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// What it is about.
    pub(super) regarding: Regarding,
    /// What happened.
    pub(super) reason: Reason,
    /// The same for people.
    pub(super) note: String,
}

/// Where events are told; never waits.
#[derive(Clone, Debug)]
pub(super) struct Events(UnboundedSender<Event>);

impl Events {
    pub(super) const fn new(events: UnboundedSender<Event>) -> Self {
        Self(events)
    }

    pub(super) fn tell(&self, regarding: Regarding, reason: Reason, note: impl Into<String>) {
        // Without the lane the process is about to end.
        let _ = self.0.send(Event {
            regarding,
            reason,
            note: note.into(),
        });
    }
}

/// Sends events until there will be no more.
pub(super) async fn work(
    requests: Requests,
    mut events: UnboundedReceiver<Event>,
    metrics: Arc<Metrics>,
) {
    let mut lane = Lane::new(metrics);
    let mut next = Instant::now();
    loop {
        tokio::select! {
            biased;
            event = events.recv() => match event {
                Some(event) => lane.take(event),
                None => return,
            },
            () = time::sleep_until(next), if lane.has_more() => {
                next = lane.send_next(&requests).await;
            }
        }
    }
}

/// An event about one object with one reason.
type Key = (Uid, Reason);

struct Lane {
    metrics: Arc<Metrics>,
    instance: String,
    due: BTreeMap<Key, Event>,
    first: VecDeque<Key>,
    then: VecDeque<Key>,
    /// What was sent lately, and in which order.
    sent: BTreeMap<Key, SentEvent>,
    oldest: BTreeSet<(Instant, Key)>,
    number: u64,
}

/// An event that the API server has.
struct SentEvent {
    name: String,
    note: String,
    count: u32,
    at: Instant,
}

impl Lane {
    fn new(metrics: Arc<Metrics>) -> Self {
        let instance = env::var("POD_NAME").or_else(|_| env::var("HOSTNAME"));
        Self {
            metrics,
            instance: instance.unwrap_or_else(|_| CONTROLLER.into()),
            due: BTreeMap::new(),
            first: VecDeque::new(),
            then: VecDeque::new(),
            sent: BTreeMap::new(),
            oldest: BTreeSet::new(),
            number: 0,
        }
    }

    fn has_more(&self) -> bool {
        !self.due.is_empty()
    }

    fn take(&mut self, event: Event) {
        let key = (event.regarding.uid, event.reason);
        if let Some(waiting) = self.due.get_mut(&key) {
            *waiting = event;
            return;
        }
        if self.due.len() >= WAITING {
            self.metrics.told(Fate::Dropped);
            return;
        }
        let goes_first = event.regarding.kind != "Pod" || event.reason == Reason::Evicted;
        let turns = if goes_first {
            &mut self.first
        } else {
            &mut self.then
        };
        turns.push_back(key);
        self.due.insert(key, event);
    }

    /// Sends what is next; returns when the one after may be sent.
    async fn send_next(&mut self, requests: &Requests) -> Instant {
        let next = self.first.pop_front().or_else(|| self.then.pop_front());
        let Some((key, event)) = next.and_then(|key| Some((key, self.due.remove(&key)?))) else {
            return Instant::now();
        };
        let known = self.sent.remove(&key).filter(|known| {
            self.oldest.remove(&(known.at, key));
            known.note == event.note && known.at.elapsed() < SERIES
        });
        let (request, mut sent) = match known {
            Some(known) => {
                let count = known.count.saturating_add(1);
                let request = again(&event, &known.name, count);
                (request, SentEvent { count, ..known })
            }
            None => self.anew(&event),
        };
        let answer = requests.write(request).await;
        let Regarding {
            namespace, name, ..
        } = &event.regarding;
        match answer {
            Ok(_) => {
                self.metrics.told(Fate::Taken);
                sent.at = Instant::now();
                self.remember(key, sent);
                Instant::now() + PAUSE
            }
            Err(error) => {
                self.metrics.told(Fate::Failed);
                let is_refused = matches!(&error, kube::Error::Api(status)
                    if matches!(status.code, 400..=428 | 430..=499));
                if is_refused {
                    // Its namespace goes, or the event that is counted is gone.
                    debug!(namespace, name, "an event is refused: {error}");
                    Instant::now() + PAUSE
                } else {
                    warn!(namespace, name, "an event cannot be sent: {error}");
                    Instant::now() + LONG_PAUSE
                }
            }
        }
    }

    fn remember(&mut self, key: Key, sent: SentEvent) {
        if self.oldest.len() >= REMEMBERED
            && let Some((_, oldest)) = self.oldest.pop_first()
        {
            self.sent.remove(&oldest);
        }
        self.oldest.insert((sent.at, key));
        self.sent.insert(key, sent);
    }

    /// A new event.
    fn anew(&mut self, event: &Event) -> (Made, SentEvent) {
        self.number += 1;
        let Event {
            regarding,
            reason,
            note,
        } = event;
        let now = jiff::Timestamp::now();
        // As unique as it has to be: two instances do not send at the same nanosecond.
        let mark = format!(".{:x}", now.as_nanosecond() as u64 ^ self.number);
        // Names have at most 253 characters.
        let stem = shortened(&regarding.name, 253 - mark.len()).trim_end_matches(['.', '-']);
        let name = format!("{stem}{mark}");
        let object = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": { "name": name, "namespace": regarding.namespace },
            "eventTime": micro_time(now),
            "reportingController": CONTROLLER,
            "reportingInstance": shortened(&self.instance, 128),
            "action": reason.action(),
            "reason": reason.word(),
            "type": reason.kind(),
            "note": shortened(note, LONGEST_NOTE),
            "regarding": {
                "apiVersion": regarding.api_version,
                "kind": regarding.kind,
                "namespace": regarding.namespace,
                "name": regarding.name,
                "uid": regarding.uid,
            },
        });
        let request = events(&regarding.namespace);
        let request = request.create(&PostParams::default(), object.to_string().into_bytes());
        let sent = SentEvent {
            name,
            note: note.clone(),
            count: 1,
            at: Instant::now(),
        };
        (request, sent)
    }
}

type Made = Result<Request<Vec<u8>>, kube::core::request::Error>;

fn events(namespace: &str) -> kube::core::Request {
    kube::core::Request::new(format!(
        "/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    ))
}

/// The same once more.
fn again(event: &Event, name: &str, count: u32) -> Made {
    let series = json!({
        "count": count,
        "lastObservedTime": micro_time(jiff::Timestamp::now()),
    });
    let patch: Patch<Value> = Patch::Merge(json!({ "series": series }));
    events(&event.regarding.namespace).patch(name, &PatchParams::default(), &patch)
}

fn micro_time(time: jiff::Timestamp) -> String {
    time.strftime("%FT%T%.6fZ").to_string()
}

/// At most so many bytes of a text, whole characters.
fn shortened(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev();
    let mut end = end.filter(|end| text.is_char_boundary(*end));
    text.get(..end.next().unwrap_or(0)).unwrap_or_default()
}
