//! One kind of object, followed: what comes, changes and goes, in the order in which it does.
//!
//! Data enters as kube-rs's watcher delivers it and leaves as [`Change`]s on a bounded channel: who
//! reads slowly slows the watch down, and nothing grows. Objects are decoded here, so that many watches
//! share the processors. When a watch has to start over, what is not listed any more is told as gone.
//! A watch goes on for ever, with pauses where the API server does not answer, and ends only when the
//! kind itself is gone.

use std::{
    collections::BTreeMap,
    fmt, mem,
    pin::pin,
    time::Duration,
};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use futures::StreamExt as _;
use gangline::units::Uid;
use kube::{
    Api, Client, Resource,
    api::ApiResource,
    runtime::watcher::{self, Event, watcher},
};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::Sender;
use tracing::{debug, warn};

use super::line::{Line, Watched};
use crate::{api, load::Document};

/// The pauses between attempts to reach an API server that does not answer.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Something about the cluster changed.
#[derive(Debug)]
pub(super) enum Change {
    /// So many watches have to have listed what there is before anything is decided.
    Awaited(usize),
    /// One of these watches has.
    Listed,
    /// A pod appeared or changed.
    Pod(Box<api::Pod>),
    /// A pod is gone.
    PodGone {
        namespace: Box<str>,
        name: Box<str>,
        uid: Uid,
    },
    /// A node appeared or changed.
    Node(Box<api::Node>),
    /// A node is gone.
    NodeGone { name: Box<str> },
    /// An object of another kind appeared or changed.
    Object(Document<'static>),
    /// An object of another kind is gone.
    ObjectGone {
        group: String,
        kind: String,
        namespace: Box<str>,
        name: Box<str>,
    },
    /// An object that nobody can read: kind and name, and what is wrong.
    Unreadable { object: String, fault: String },
}

/// What of its objects a watch wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Pods,
    Nodes,
    /// Objects as they are.
    Objects,
    /// Labels and annotations alone.
    Metadata,
}

/// A watch over all objects of a kind.
#[derive(Debug)]
pub(super) struct Watch {
    resource: ApiResource,
    wanted: Wanted,
    changes: Sender<Change>,
    /// What is there, as far as it was told.
    known: BTreeMap<Name, Uid>,
    /// While everything is listed anew: what is left of the list before.
    missing: BTreeMap<Name, Uid>,
    has_listed: bool,
}

/// Namespace and name.
type Name = (Box<str>, Box<str>);

/// Why a watch stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// The API server has no such kind (any more).
    Absent,
    /// The API server cannot stream a list.
    CannotStream,
    /// Nobody listens any more.
    Unheard,
}

/// Nobody listens any more.
struct Unheard;

impl Watch {
    pub(super) fn new(resource: ApiResource, wanted: Wanted, changes: Sender<Change>) -> Self {
        Self {
            resource,
            wanted,
            changes,
            known: BTreeMap::new(),
            missing: BTreeMap::new(),
            has_listed: false,
        }
    }

    /// Follows the kind until it is gone or nobody listens any more.
    pub(super) async fn follow(mut self, client: Client) {
        let stop = self.stream(&client).await;
        if stop == Stop::Absent {
            debug!(kind = self.resource.kind, "the kind is gone");
            self.missing.append(&mut self.known);
            // When nobody listens, nobody misses it.
            let _ = self.end_list().await;
        }
    }

    async fn stream(&mut self, client: &Client) -> Stop {
        let stop = match self.wanted {
            Wanted::Metadata => self.receive::<Watched<true, false>>(client, true).await,
            _ => self.receive::<Watched<false, false>>(client, true).await,
        };
        if stop != Stop::CannotStream {
            return stop;
        }
        debug!(kind = self.resource.kind, "no streaming lists: taking pages");
        match self.wanted {
            Wanted::Metadata => self.receive::<Watched<true, true>>(client, false).await,
            _ => self.receive::<Watched<false, true>>(client, false).await,
        }
    }

    async fn receive<K>(&mut self, client: &Client, streams: bool) -> Stop
    where
        K: Resource<DynamicType = ApiResource> + DeserializeOwned + Clone + fmt::Debug,
        K: Into<Line> + Send + 'static,
    {
        let pauses = || {
            let pauses = ExponentialBuilder::default()
                .with_min_delay(FIRST_PAUSE)
                .with_max_delay(LONGEST_PAUSE)
                .with_jitter()
                .without_max_times();
            pauses.build()
        };
        let api: Api<K> = Api::all_with(client.clone(), &self.resource);
        let settings = watcher::Config::default();
        let settings = if streams {
            settings.streaming_lists()
        } else {
            settings
        };
        let mut events = pin!(watcher(api, settings));
        let mut pause: Option<backon::ExponentialBackoff> = None;
        while let Some(event) = events.next().await {
            let told = match event {
                Ok(event) => {
                    pause = None;
                    self.take(event).await
                }
                Err(error) => {
                    if let Some(stop) = stops(&error, streams) {
                        return stop;
                    }
                    let kind = &self.resource.kind;
                    if pause.is_none() {
                        warn!(kind, "a watch is interrupted and will be resumed: {error}");
                    } else {
                        debug!(kind, "a watch is still interrupted: {error}");
                    }
                    let length = pause.get_or_insert_with(pauses).next();
                    tokio::time::sleep(length.unwrap_or(LONGEST_PAUSE)).await;
                    Ok(())
                }
            };
            if told.is_err() {
                return Stop::Unheard;
            }
        }
        // The stream has no end; if it had one, nobody would hear it.
        Stop::Unheard
    }

    async fn take<K: Into<Line>>(&mut self, event: Event<K>) -> Result<(), Unheard> {
        match event {
            Event::Init => {
                // A list that broke off half-way has told of some objects and of no departures.
                self.missing.append(&mut self.known);
                Ok(())
            }
            Event::InitApply(object) | Event::Apply(object) => {
                let line = object.into();
                let name = (line.namespace.clone(), line.name.clone());
                self.missing.remove(&name);
                self.known.insert(name, line.uid(&self.resource.kind));
                self.tell(self.read(&line)).await
            }
            Event::InitDone => self.end_list().await,
            Event::Delete(object) => {
                let line = object.into();
                let uid = line.uid(&self.resource.kind);
                let name = (line.namespace, line.name);
                self.known.remove(&name);
                self.missing.remove(&name);
                self.tell(self.gone(name, uid)).await
            }
        }
    }

    /// Tells of what is not there any more, and of the list's end.
    async fn end_list(&mut self) -> Result<(), Unheard> {
        for (name, uid) in mem::take(&mut self.missing) {
            self.tell(self.gone(name, uid)).await?;
        }
        if !mem::replace(&mut self.has_listed, true) {
            self.tell(Change::Listed).await?;
        }
        Ok(())
    }

    async fn tell(&self, change: Change) -> Result<(), Unheard> {
        self.changes.send(change).await.map_err(|_| Unheard)
    }

    fn read(&self, line: &Line) -> Change {
        let read = match self.wanted {
            Wanted::Pods => line.decode().map(Change::Pod),
            Wanted::Nodes => line.decode().map(Change::Node),
            Wanted::Objects | Wanted::Metadata => {
                line.document(&self.resource).map(Change::Object)
            }
        };
        read.unwrap_or_else(|error| {
            let kind = &self.resource.kind;
            let (namespace, name) = (&line.namespace, &line.name);
            let slash = if namespace.is_empty() { "" } else { "/" };
            Change::Unreadable {
                object: format!("{kind} {namespace}{slash}{name}"),
                fault: error.to_string(),
            }
        })
    }

    fn gone(&self, (namespace, name): Name, uid: Uid) -> Change {
        match self.wanted {
            Wanted::Pods => Change::PodGone {
                namespace,
                name,
                uid,
            },
            Wanted::Nodes => Change::NodeGone { name },
            Wanted::Objects | Wanted::Metadata => Change::ObjectGone {
                group: self.resource.group.clone(),
                kind: self.resource.kind.clone(),
                namespace,
                name,
            },
        }
    }
}

/// Whether an error is the end of a watch that wants to stream its first list or not.
fn stops(error: &watcher::Error, streams: bool) -> Option<Stop> {
    let status = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status,
        _ => return None,
    };
    match status.code {
        404 => Some(Stop::Absent),
        // How an API server says that it does not know `sendInitialEvents`.
        400 | 422 if streams => Some(Stop::CannotStream),
        _ => None,
    }
}

impl<const METADATA_ONLY: bool, const LISTED: bool> From<Watched<METADATA_ONLY, LISTED>> for Line {
    fn from(watched: Watched<METADATA_ONLY, LISTED>) -> Self {
        watched.0
    }
}
