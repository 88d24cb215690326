//! One kind of object, followed: what comes, changes and goes, in the order in which it does.
//!
//! Data enters as the API server's stream and leaves as [`Change`]s on a bounded channel: who reads
//! slowly slows the watch down, and nothing grows. Objects are decoded here, so that many watches share
//! the processors. When a watch has to start over, what is not listed any more is told as gone. A
//! watch goes on for ever, with pauses where the API server does not answer, and ends only when the kind
//! itself is gone.
//!
//! Why not the watcher of kube-runtime: it asks for its first list at version 0, which an API server
//! may answer with a state from before our lease, or from before what we wrote ourselves.

use std::{collections::BTreeMap, mem, time::Duration};

use gangline::units::Uid;
use kube::{Client, api::ApiResource};
use tokio::{
    sync::mpsc::Sender,
    time::{self, Instant},
};
use tracing::{debug, warn};

mod session;

use session::Fault;

use super::{complaints::object_name, line::Line, metrics::Heard, pauses::Pauses};
use crate::{api, load::Document};

/// The pauses between attempts to reach an API server that does not answer.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Something about the cluster changed.
#[derive(Debug)]
pub(super) enum Change {
    /// So many watches have to have listed what there is before anything is decided.
    Awaited(usize),
    /// One of these watches has.
    Listed,
    /// A pod appeared or changed; and its version.
    Pod(Box<api::Pod>, Box<str>),
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
    heard: Option<Heard>,
    /// What is there, as far as it was told.
    known: BTreeMap<Name, Uid>,
    /// While everything is listed anew: what is left of the list before.
    missing: BTreeMap<Name, Uid>,
    has_listed: bool,
    /// Up to which version of the cluster's state everything is known; without one all is listed anew.
    version: Option<String>,
    /// Whether the API server can stream a list.
    streams: bool,
}

/// Namespace and name.
type Name = (Box<str>, Box<str>);

impl Watch {
    pub(super) fn new(
        resource: ApiResource,
        wanted: Wanted,
        changes: Sender<Change>,
        heard: Option<Heard>,
    ) -> Self {
        Self {
            resource,
            wanted,
            changes,
            heard,
            known: BTreeMap::new(),
            missing: BTreeMap::new(),
            has_listed: false,
            version: None,
            streams: true,
        }
    }

    /// Follows the kind until it is gone or nobody listens any more.
    pub(super) async fn follow(mut self, client: Client) {
        let mut pauses: Option<Pauses> = None;
        loop {
            let (before, since) = (self.version.clone(), Instant::now());
            let message = match self.session(&client).await {
                Ok(()) if since.elapsed() > LONGEST_PAUSE => {
                    pauses = None;
                    continue;
                }
                Ok(()) => "the connection ended early".to_owned(),
                Err(Fault::CannotStream) => {
                    self.streams = false;
                    continue;
                }
                Err(Fault::Unheard) => return,
                Err(Fault::Absent) => break,
                Err(Fault::Expired) => {
                    self.version = None;
                    "what changed since is not known any more".to_owned()
                }
                Err(Fault::Failed(message)) => message,
            };
            if self.version != before {
                pauses = None;
            }
            let kind = &self.resource.kind;
            if pauses.is_none() {
                warn!(
                    kind,
                    "a watch is interrupted and will be resumed: {message}"
                );
            } else {
                debug!(kind, "a watch is still interrupted: {message}");
            }
            let pauses = pauses.get_or_insert_with(|| Pauses::new(FIRST_PAUSE, LONGEST_PAUSE));
            time::sleep(pauses.next()).await;
        }
        debug!(kind = self.resource.kind, "the kind is gone");
        self.begin_list();
        // When nobody listens, nobody misses it.
        let _ = self.end_list().await;
    }

    /// Everything is about to be listed. A list that broke off has told of some objects and of no
    /// departures.
    fn begin_list(&mut self) {
        self.missing.append(&mut self.known);
        if self.has_listed
            && let Some(heard) = &self.heard
        {
            heard.restarts();
        }
    }

    /// The API server said something.
    fn hear(&self) {
        self.heard.iter().for_each(Heard::note);
    }

    /// An object is there.
    async fn take(&mut self, line: &Line) -> Result<(), Fault> {
        let name = line.name();
        self.missing.remove(&name);
        self.known.insert(name, line.uid(&self.resource.kind));
        self.tell(self.read(line)).await
    }

    /// An object is gone.
    async fn lose(&mut self, line: &Line) -> Result<(), Fault> {
        let name = line.name();
        self.known.remove(&name);
        self.missing.remove(&name);
        let uid = line.uid(&self.resource.kind);
        self.tell(self.gone(name, uid)).await
    }

    /// Tells of what is not there any more, and of the list's end.
    async fn end_list(&mut self) -> Result<(), Fault> {
        for (name, uid) in mem::take(&mut self.missing) {
            self.tell(self.gone(name, uid)).await?;
        }
        if !mem::replace(&mut self.has_listed, true) {
            self.tell(Change::Listed).await?;
        }
        Ok(())
    }

    async fn tell(&self, change: Change) -> Result<(), Fault> {
        let sent = self.changes.send(change).await;
        sent.map_err(|_| Fault::Unheard)
    }

    fn read(&self, line: &Line) -> Change {
        let read = match self.wanted {
            Wanted::Pods => {
                let pod = line.decode();
                pod.map(|pod| Change::Pod(pod, line.version().into()))
            }
            Wanted::Nodes => line.decode().map(Change::Node),
            Wanted::Objects | Wanted::Metadata => line.document(&self.resource).map(Change::Object),
        };
        read.unwrap_or_else(|error| {
            let kind = &self.resource.kind;
            let (namespace, name) = line.name();
            Change::Unreadable {
                object: object_name(kind, &namespace, &name),
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
