//! The statuses of group objects: which there are, and which of them are not what they should be.
//!
//! Group objects and pods enter as the watches tell of them, and how a gang stands from the driver. What a
//! dialect says of that is settled in [`words`]; where the object says something else, a [`Write`] leaves
//! to the lane in [`write`]. Only groups with a pod that is ours are written, since other schedulers
//! have theirs; a group of Volcano's without pods is ours when we answer to `volcano`, because its Jobs get
//! their pods only after their group was let in.
//!
//! A status is written again only when what there is to say has changed, or when the object changed before
//! our write came: never because somebody else wants to say something else.

use std::collections::{BTreeMap, BTreeSet};

use gangline::{engine::GangView, explain::Reason, units::Uid};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc::UnboundedSender;

use super::events::Regarding;
use crate::{
    api,
    intake::{native, scheduler_plugins, volcano},
    load::Document,
    member::DEFAULT_SCHEDULER,
};

mod words;
mod write;

use words::{Words, words};
pub(super) use write::{Told, Write, work};

/// So often a status is written over an object that changed meanwhile.
const SENDS: u8 = 5;

/// Which kind of group object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Native,
    Composite,
    Volcano,
    SchedulerPlugins,
}

impl Kind {
    const ALL: [Self; 4] = [
        Self::Native,
        Self::Composite,
        Self::Volcano,
        Self::SchedulerPlugins,
    ];

    /// What gangs of these objects are called after.
    const fn source(self) -> &'static str {
        match self {
            Self::Native => native::SOURCE,
            Self::Composite => native::COMPOSITE_SOURCE,
            Self::Volcano => volcano::SOURCE,
            Self::SchedulerPlugins => scheduler_plugins::SOURCE,
        }
    }

    const fn group(self) -> &'static str {
        match self {
            Self::Native | Self::Composite => "scheduling.k8s.io",
            Self::Volcano => "scheduling.volcano.sh",
            Self::SchedulerPlugins => "scheduling.x-k8s.io",
        }
    }

    const fn kind(self) -> &'static str {
        match self {
            Self::Composite => "CompositePodGroup",
            _ => "PodGroup",
        }
    }

    fn of(group: &str, kind: &str) -> Option<Self> {
        let mut kinds = Self::ALL.into_iter();
        kinds.find(|known| (known.group(), known.kind()) == (group, kind))
    }

    fn of_source(source: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.source() == source)
    }
}

/// A group object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) kind: Kind,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// See the module's head.
#[derive(Debug)]
pub(super) struct Groups {
    scheduler_names: BTreeSet<String>,
    /// Pods that are ours, whether they wait or not.
    ours: BTreeSet<Uid>,
    objects: BTreeMap<Key, Object>,
    told: UnboundedSender<Told>,
}

/// A group object as it was seen last.
#[derive(Debug)]
struct Object {
    /// Group and version.
    api_version: String,
    uid: String,
    version: String,
    status: Map<String, Value>,
    /// What it was to say last.
    wanted: Option<Words>,
    /// How often that was sent, while it does not say so.
    sends: Option<u8>,
}

/// What is read of a group object.
#[derive(Deserialize)]
struct Read {
    metadata: Metadata,
    #[serde(default, deserialize_with = "api::or_default")]
    status: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    resource_version: String,
}

impl Groups {
    pub(super) fn new(scheduler_names: BTreeSet<String>, told: UnboundedSender<Told>) -> Self {
        Self {
            scheduler_names,
            ours: BTreeSet::new(),
            objects: BTreeMap::new(),
            told,
        }
    }

    /// A pod appeared or changed.
    pub(super) fn see_pod(&mut self, pod: &api::Pod) {
        let name = match &*pod.spec.scheduler_name {
            "" => DEFAULT_SCHEDULER,
            name => name,
        };
        if self.scheduler_names.contains(name) {
            self.ours.insert(Uid::from_text(&pod.metadata.uid));
        }
    }

    /// A pod is gone.
    pub(super) fn forget_pod(&mut self, uid: Uid) {
        self.ours.remove(&uid);
    }

    /// An object appeared or changed; those that are no groups are passed over.
    pub(super) fn see(&mut self, document: &Document<'static>) {
        let Some(kind) = Kind::of(document.group(), &document.kind) else {
            return;
        };
        // What is wrong with it is told elsewhere.
        let Ok(read) = document.decode::<Read>() else {
            return;
        };
        let key = Key {
            kind,
            namespace: document.namespace.clone(),
            name: document.name.clone(),
        };
        let before = self.objects.remove(&key);
        let before = before.filter(|before| before.uid == read.metadata.uid);
        let (wanted, sends) = before.map_or((None, None), |before| (before.wanted, before.sends));
        let mut object = Object {
            api_version: document.api_version.clone(),
            uid: read.metadata.uid,
            version: read.metadata.resource_version,
            status: read.status,
            wanted,
            sends,
        };
        object.offer(&key, &self.told);
        self.objects.insert(key, object);
    }

    /// An object is gone.
    pub(super) fn forget(&mut self, group: &str, kind: &str, namespace: &str, name: &str) {
        let Some(kind) = Kind::of(group, kind) else {
            return;
        };
        let key = Key {
            kind,
            namespace: namespace.into(),
            name: name.into(),
        };
        if self.objects.remove(&key).is_some() {
            self.send(Told::Gone(key));
        }
    }

    /// How a gang stands now, and why it waits if it does.
    pub(super) fn tell(&mut self, gang: &GangView<'_>, reason: Option<&Reason>) {
        let Some(kind) = Kind::of_source(gang.source).filter(|_| !gang.single) else {
            return;
        };
        let is_ours = if gang.members.is_empty() {
            kind == Kind::Volcano && self.scheduler_names.contains(volcano::SCHEDULER)
        } else {
            let mut members = gang.members.iter();
            members.any(|member| self.ours.contains(&member.uid))
        };
        if !is_ours {
            return;
        }
        let key = |kind, name: &str| Key {
            kind,
            namespace: gang.namespace.into(),
            name: name.into(),
        };
        let mut keys = vec![(key(kind, gang.name), None)];
        if kind == Kind::Composite {
            // Its leaves are objects of their own, and roles of the gang.
            let roles: BTreeSet<&str> = gang.members.iter().map(|member| member.role).collect();
            let leaves = roles.into_iter();
            keys.extend(leaves.map(|role| (key(Kind::Native, role), Some(role))));
        }
        for (key, role) in keys {
            let Some(object) = self.objects.get_mut(&key) else {
                continue;
            };
            let Some(words) = words(key.kind, gang, role, reason, &object.status) else {
                continue;
            };
            if object.wanted.as_ref() != Some(&words) {
                object.wanted = Some(words);
                object.sends = Some(0);
                object.offer(&key, &self.told);
            }
        }
    }

    /// The object of a gang, if it has one that is known.
    pub(super) fn regarding(&self, gang: &GangView<'_>) -> Option<Regarding> {
        let kind = Kind::of_source(gang.source).filter(|_| !gang.single)?;
        let key = Key {
            kind,
            namespace: gang.namespace.into(),
            name: gang.name.into(),
        };
        let object = self.objects.get(&key)?;
        Some(Regarding {
            api_version: object.api_version.clone(),
            kind: kind.kind(),
            namespace: key.namespace,
            name: key.name,
            uid: Uid::from_text(&object.uid),
        })
    }

    fn send(&self, told: Told) {
        // Without the lane the process is about to end.
        let _ = self.told.send(told);
    }
}

impl Object {
    /// Sends what the object shall say, until it says so once.
    fn offer(&mut self, key: &Key, told: &UnboundedSender<Told>) {
        let (Some(wanted), Some(sends)) = (&self.wanted, self.sends) else {
            return;
        };
        let Some(status) = wanted.change(&self.status) else {
            self.sends = None;
            return;
        };
        if sends < SENDS {
            // Without the lane the process is about to end.
            let _ = told.send(Told::Status(Write {
                key: key.clone(),
                api_version: self.api_version.clone(),
                uid: self.uid.clone(),
                version: self.version.clone(),
                status,
            }));
        }
        self.sends = Some(sends.saturating_add(1));
    }
}
