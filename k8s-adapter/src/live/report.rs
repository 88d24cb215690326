//! What is said about pods that wait: the condition `PodScheduled=False` with the reason.
//!
//! [`News`] enters from the driver, which sends only what changed; writes leave, one at a time and at
//! most a hundred a second, beside the binds and never before them. Of several pieces of news about one
//! pod the latest is written, and none about a pod that is placed meanwhile: a write carries the version
//! of the pod that it is about, so that the API server refuses it for one that is bound by then.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use gangline::units::Uid;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{GetParams, Patch, PatchParams};
use serde_json::json;
use tokio::{
    sync::mpsc::UnboundedReceiver,
    time::{self, Instant},
};
use tracing::{debug, warn};

use super::request::{Requests, pods};

/// Between two writes.
const PAUSE: Duration = Duration::from_millis(10);
/// After the API server did not take one.
const LONG_PAUSE: Duration = Duration::from_secs(1);
/// So often a write is tried that is not taken.
const ATTEMPTS: u32 = 5;
/// The reason where more room would help: the one that cluster autoscalers look for.
pub(super) const UNSCHEDULABLE: &str = "Unschedulable";

/// Something to be said.
#[derive(Debug)]
pub(super) enum News {
    /// A pod waits.
    Waits(Waits),
    /// It does so no more: it is placed or gone.
    Over(Uid),
}

/// Why a pod waits.
#[derive(Debug)]
pub(super) struct Waits {
    /// Its identity.
    pub(super) uid: Uid,
    /// Its namespace.
    pub(super) namespace: String,
    /// Its name.
    pub(super) name: String,
    /// The version that was seen last.
    pub(super) version: Box<str>,
    /// The reason, in a word.
    pub(super) reason: String,
    /// The reason, for people.
    pub(super) message: String,
}

/// Writes conditions until there is no more news.
pub(super) async fn work(requests: Requests, mut news: UnboundedReceiver<News>) {
    let mut reporter = Reporter {
        requests,
        due: BTreeMap::new(),
        turns: VecDeque::new(),
    };
    let mut next_write = Instant::now();
    loop {
        tokio::select! {
            biased;
            next = news.recv() => match next {
                Some(news) => reporter.take(news),
                None => return,
            },
            () = time::sleep_until(next_write), if !reporter.due.is_empty() => {
                let pause = reporter.write_next().await;
                next_write = Instant::now() + pause;
            }
        }
    }
}

struct Reporter {
    requests: Requests,
    /// What is to be written, and how often it was tried.
    due: BTreeMap<Uid, (Waits, u32)>,
    /// Whose turn it is; may hold pods about which there is nothing to write any more.
    turns: VecDeque<Uid>,
}

/// How the API server takes a write.
enum Taken {
    Yes,
    /// The pod is not what it was.
    Changed,
    /// It is bound, gone, or the write is not allowed.
    Pointless(String),
    /// Not now.
    No(String),
}

impl Reporter {
    fn take(&mut self, news: News) {
        match news {
            News::Waits(waits) => {
                let uid = waits.uid;
                if self.due.insert(uid, (waits, 0)).is_none() {
                    self.turns.push_back(uid);
                }
            }
            News::Over(uid) => {
                self.due.remove(&uid);
            }
        }
    }

    /// Writes what is next; returns how long to wait before the one after.
    async fn write_next(&mut self) -> Duration {
        let next = loop {
            let Some(uid) = self.turns.pop_front() else {
                self.due.clear();
                return PAUSE;
            };
            if let Some(next) = self.due.remove(&uid) {
                break next;
            }
        };
        let (mut waits, attempts) = next;
        let mut taken = self.write(&waits).await;
        if matches!(taken, Taken::Changed) {
            taken = match self.refresh(&mut waits).await {
                Taken::Yes => self.write(&waits).await,
                other => other,
            };
        }
        let (namespace, pod) = (&waits.namespace, &waits.name);
        match taken {
            Taken::Yes => PAUSE,
            Taken::Pointless(message) => {
                debug!(namespace, pod, "no condition is written: {message}");
                PAUSE
            }
            Taken::Changed => self.put_off(waits, attempts),
            Taken::No(message) => {
                if attempts + 1 == ATTEMPTS {
                    warn!(namespace, pod, "its condition cannot be written: {message}");
                    return PAUSE;
                }
                self.put_off(waits, attempts);
                LONG_PAUSE
            }
        }
    }

    fn put_off(&mut self, waits: Waits, attempts: u32) -> Duration {
        let uid = waits.uid;
        self.due.insert(uid, (waits, attempts + 1));
        self.turns.push_back(uid);
        PAUSE
    }

    async fn write(&self, waits: &Waits) -> Taken {
        let patch = json!({
            "metadata": { "uid": waits.uid, "resourceVersion": waits.version },
            "status": { "conditions": [{
                "type": "PodScheduled",
                "status": "False",
                "reason": waits.reason,
                "message": waits.message,
                "lastTransitionTime": timestamp(),
            }] },
        });
        let settings = PatchParams::default();
        let patch = Patch::Strategic(patch);
        let request = pods(&waits.namespace);
        let request = request.patch_subresource("status", &waits.name, &settings, &patch);
        match self.requests.write(request).await {
            Ok(_) => Taken::Yes,
            Err(error) => taken(error),
        }
    }

    /// Looks what version the pod has now, if it still waits.
    async fn refresh(&self, waits: &mut Waits) -> Taken {
        let request = pods(&waits.namespace).get(&waits.name, &GetParams::default());
        let text = match self.requests.read(request).await {
            Ok(text) => text,
            Err(error) => return taken(error),
        };
        let pod: Pod = match serde_json::from_str(&text) {
            Ok(pod) => pod,
            Err(error) => return Taken::Pointless(error.to_string()),
        };
        let uid = pod.metadata.uid.as_deref().map(Uid::from_text);
        let node = pod.spec.and_then(|spec| spec.node_name);
        match pod.metadata.resource_version {
            Some(version) if uid == Some(waits.uid) && node.is_none() => {
                waits.version = version.into();
                Taken::Yes
            }
            _ => Taken::Pointless("it does not wait any more".into()),
        }
    }
}

/// The time of the machine, as Kubernetes writes it.
pub(super) fn timestamp() -> String {
    jiff::Timestamp::now().strftime("%FT%TZ").to_string()
}

fn taken(error: kube::Error) -> Taken {
    match error {
        kube::Error::Api(status) if status.code == 409 => Taken::Changed,
        kube::Error::Api(status) if matches!(status.code, 400..=428 | 430..=499) => {
            Taken::Pointless(status.message.clone())
        }
        error => Taken::No(error.to_string()),
    }
}
