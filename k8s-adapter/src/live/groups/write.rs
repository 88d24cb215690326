//! The lane for statuses of groups: one write at a time, at most fifty a second, and at most one a second of
//! each group. Of several for one group the latest is written.
//!
//! A write carries the version of the object that it is about. Where that is not the latest any more, it is
//! dropped: who sent it learns of the newer object and sends another. What the API server refuses is said
//! once in the log and harms nothing else.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use http::Request;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc::UnboundedReceiver,
    time::{self, Instant},
};
use tracing::{debug, warn};

use super::{Key, Kind};
use crate::live::request::Requests;

/// Between two writes.
const PAUSE: Duration = Duration::from_millis(20);
/// Between two writes of one group.
const OF_ONE: Duration = Duration::from_secs(1);
/// After the API server did not take one for now.
const LONG_PAUSE: Duration = Duration::from_secs(1);
/// So often a write is tried that is not taken for now.
const ATTEMPTS: u32 = 5;

/// Something about a group object.
#[derive(Debug)]
pub(in crate::live) enum Told {
    /// Its status shall change.
    Status(Write),
    /// It is gone.
    Gone(Key),
}

/// A change of a status.
#[derive(Debug)]
pub(in crate::live) struct Write {
    /// The object.
    pub(in crate::live) key: Key,
    /// Its group and version.
    pub(in crate::live) api_version: String,
    /// Its identity.
    pub(in crate::live) uid: String,
    /// Its version.
    pub(in crate::live) version: String,
    /// A merge patch of its status.
    pub(in crate::live) status: Value,
}

#[derive(Default)]
struct Lane {
    due: BTreeMap<Key, (Write, u32)>,
    turns: BTreeSet<(Instant, Key)>,
    /// When the status of a group was written last.
    last: BTreeMap<Key, Instant>,
}

/// Writes statuses until there will be no more.
pub(in crate::live) async fn work(requests: Requests, mut told: UnboundedReceiver<Told>) {
    let mut lane = Lane::default();
    let mut next_write = Instant::now();
    loop {
        let turn = lane.turns.first().map(|(turn, _)| (*turn).max(next_write));
        tokio::select! {
            biased;
            next = told.recv() => match next {
                Some(Told::Status(write)) => lane.take(write, 0, Instant::now()),
                Some(Told::Gone(key)) => {
                    lane.due.remove(&key);
                    lane.last.remove(&key);
                }
                None => return,
            },
            () = time::sleep_until(turn.unwrap_or(next_write)), if turn.is_some() => {
                next_write = lane.write_next(&requests).await;
            }
        }
    }
}

impl Lane {
    fn take(&mut self, write: Write, attempts: u32, from: Instant) {
        let key = write.key.clone();
        if self.due.insert(key.clone(), (write, attempts)).is_none() {
            let after_last = self.last.get(&key).map(|last| *last + OF_ONE);
            let turn = after_last.map_or(from, |turn| turn.max(from));
            self.turns.insert((turn, key));
        }
    }

    /// Writes what is next; returns when the one after may be written.
    async fn write_next(&mut self, requests: &Requests) -> Instant {
        let Some((_, key)) = self.turns.pop_first() else {
            return Instant::now();
        };
        let Some((write, attempts)) = self.due.remove(&key) else {
            return Instant::now();
        };
        let answer = requests.write(write.request()).await;
        self.last.insert(key, Instant::now());
        let Key {
            namespace, name, ..
        } = &write.key;
        let Err(error) = answer else {
            return Instant::now() + PAUSE;
        };
        match &error {
            kube::Error::Api(status) if matches!(status.code, 404 | 409) => {
                debug!(
                    namespace,
                    group = name,
                    "its status is not written: {error}"
                );
                Instant::now() + PAUSE
            }
            kube::Error::Api(status) if matches!(status.code, 400..=428 | 430..=499) => {
                warn!(namespace, group = name, "its status is refused: {error}");
                Instant::now() + PAUSE
            }
            _ if attempts + 1 == ATTEMPTS => {
                warn!(
                    namespace,
                    group = name,
                    "its status cannot be written: {error}"
                );
                Instant::now() + LONG_PAUSE
            }
            _ => {
                self.take(write, attempts + 1, Instant::now() + LONG_PAUSE);
                Instant::now() + LONG_PAUSE
            }
        }
    }
}

impl Write {
    fn request(&self) -> Result<Request<Vec<u8>>, kube::core::request::Error> {
        let patch = json!({
            "metadata": { "uid": self.uid, "resourceVersion": self.version },
            "status": self.status,
        });
        let Key {
            kind,
            namespace,
            name,
        } = &self.key;
        let plural = match kind {
            Kind::Composite => "compositepodgroups",
            Kind::Native | Kind::Volcano | Kind::SchedulerPlugins | Kind::Kai => "podgroups",
        };
        let path = format!("/apis/{}/namespaces/{namespace}/{plural}", self.api_version);
        let request = kube::core::Request::new(path);
        let (settings, patch) = (PatchParams::default(), Patch::Merge(patch));
        match kind {
            // Its status is no subresource.
            Kind::Volcano => request.patch(name, &settings, &patch),
            _ => request.patch_subresource("status", name, &settings, &patch),
        }
    }
}
