//! The objects of one kind, by namespace and name, decoded to what decides something.
//!
//! An object that cannot be decoded is kept as the problem that it is, so that its pods can say why
//! they wait.

use std::collections::{BTreeMap, BTreeSet};

use gangline::{
    gang::{
        GangKey, GangSpec, Group, GroupKind, LossMode, Problem, Role, TimeoutPolicy,
        spec::Disruption,
    },
    units::{Nanos, Uid},
};
use serde::{Deserialize, de::DeserializeOwned};

use super::{Member, Roster, Said, Surroundings, koordinator, roles};
use crate::{
    api::{Condition, ObjectMeta, or_default},
    load::{Complaint, Document, Source},
    member::uid,
    problem::problem,
};

/// One object.
#[derive(Debug)]
pub(super) struct Stored<S> {
    /// Where it came from.
    pub(super) source: Source,
    /// Kind and name, for people.
    pub(super) object: String,
    /// Identity.
    pub(super) uid: Uid,
    /// When it was created.
    pub(super) created: Nanos,
    /// Its status says that its minimum was met before.
    pub(super) started: bool,
    /// What Koordinator's annotations on it say.
    pub(super) said: Said,
    /// What it says, or what is wrong with it.
    pub(super) spec: Result<S, Problem>,
}

/// Namespace and name.
pub(super) type Name = (String, String);

/// All objects of one kind.
#[derive(Debug)]
pub(super) struct Store<S>(BTreeMap<Name, Stored<S>>);

impl<S> Default for Store<S> {
    fn default() -> Self {
        Store(BTreeMap::new())
    }
}

#[derive(Deserialize)]
#[serde(bound = "S: Deserialize<'de> + Default")]
struct Object<S> {
    metadata: ObjectMeta,
    #[serde(default, deserialize_with = "or_default")]
    spec: S,
    // A status that cannot be read says nothing; it must not cost the object.
    #[serde(default, deserialize_with = "lenient")]
    status: Status,
}

/// What the statuses of all dialects have to say about the past.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    /// Of Volcano and scheduler-plugins.
    phase: Option<String>,
    /// Of the native groups.
    conditions: Vec<Condition>,
}

impl Status {
    /// Whether the minimum was met once. The native conditions never revert; the phases of the
    /// others say so while the group runs, is short of what ran, and after.
    fn says_started(&self) -> bool {
        const PHASES: [&str; 4] = ["Running", "Unknown", "Completed", "Finished"];
        const CONDITIONS: [&str; 2] = [
            "PodGroupInitiallyScheduled",
            "CompositePodGroupInitiallyScheduled",
        ];
        self.phase
            .as_deref()
            .is_some_and(|phase| PHASES.contains(&phase))
            || self.conditions.iter().any(|condition| {
                &*condition.status == "True" && CONDITIONS.contains(&&*condition.kind)
            })
    }
}

fn lenient<'de, D: serde::Deserializer<'de>>(decoder: D) -> Result<Status, D::Error> {
    let value = serde_json::Value::deserialize(decoder)?;
    Ok(Status::deserialize(value).unwrap_or_default())
}

impl<S: DeserializeOwned + Default> Store<S> {
    /// Takes an object in, in place of an older one of its name; it keeps that one's identity and age
    /// where it does not bring its own.
    pub(super) fn take(
        &mut self,
        document: &Document<'_>,
        namespaced: bool,
        arrival: Nanos,
    ) -> Result<(), Box<Complaint>> {
        let namespace = match document.namespace.as_str() {
            _ if !namespaced => String::new(),
            "" => "default".to_owned(),
            namespace => namespace.to_owned(),
        };
        let (metadata, spec, started, outcome) = match document.decode::<Object<S>>() {
            Ok(object) => {
                let started = object.status.says_started();
                (object.metadata, Ok(object.spec), started, Ok(()))
            }
            Err(complaint) => {
                let problem = unreadable(&complaint);
                (ObjectMeta::default(), Err(problem), false, Err(complaint))
            }
        };
        let name = (namespace, document.name.clone());
        let object = match name.0.as_str() {
            "" => format!("{} {}", document.kind, name.1),
            namespace => format!("{} {namespace}/{}", document.kind, name.1),
        };
        let older = self.0.get(&name);
        // It has no status of its own. Of what is in a cluster the status tells, also that it ran no more.
        let is_manifest = metadata.uid.is_empty();
        let uid = match older {
            Some(older) if is_manifest => older.uid,
            _ => uid(&metadata.uid, &document.kind, &name.0, &name.1),
        };
        let own = metadata.creation_timestamp.map(|time| time.0);
        // What would be applied comes after all that is there, whatever was copied with it.
        let own = own.filter(|_| arrival == Nanos::ZERO);
        let stored = Stored {
            source: document.source.clone(),
            object,
            uid,
            created: own.or(older.map(|older| older.created)).unwrap_or(arrival),
            said: Said::of_object(&metadata, koordinator::OF_GROUPS),
            started: started || is_manifest && older.is_some_and(|older| older.started),
            spec,
        };
        self.0.insert(name, stored);
        outcome
    }
}

impl<S> Store<S> {
    /// An object is gone.
    pub(super) fn forget(&mut self, namespace: &str, name: &str) {
        self.0.remove(&(namespace.to_owned(), name.to_owned()));
    }

    /// The object of this name.
    pub(super) fn get(&self, name: &Name) -> Option<&Stored<S>> {
        self.0.get(name)
    }

    /// The objects of the groups that are asked for, by namespace and name.
    pub(super) fn asked<'a>(
        &'a self,
        source: &str,
        only: Option<&BTreeSet<GangKey>>,
    ) -> Vec<(&'a Name, &'a Stored<S>)> {
        let Some(only) = only else {
            return self.iter().collect();
        };
        let only = only.iter().filter(|key| key.source == source);
        let names = only.map(|key| (key.namespace.clone(), key.name.clone()));
        names
            .filter_map(|name| self.0.get_key_value(&name))
            .collect()
    }

    /// All objects, by namespace and name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Name, &Stored<S>)> {
        self.0.iter()
    }
}

impl<S> Store<S> {
    /// The gangs of objects whose kind is not there for groups: those that have members, since such an
    /// object may outlive its pods. `tree` makes the root, or says that the pods stand alone. Members
    /// whose object is not there stay linked: it may come after them.
    pub(super) fn gangs_with_members(
        &self,
        source: &str,
        roster: &mut Roster<'_>,
        around: &mut Surroundings<'_>,
        tree: impl Fn(&str, &S, &mut [&mut Member]) -> Result<Option<Group>, Problem>,
    ) -> Vec<GangSpec> {
        let mut gangs = Vec::new();
        let groups = roster.iter_mut().filter(|(key, _)| key.source == source);
        for (key, members) in groups {
            let name = (key.namespace.clone(), key.name.clone());
            let Some(stored) = self.get(&name) else {
                continue;
            };
            let root = stored.spec.as_ref().map_err(Clone::clone).and_then(|spec| {
                let root = tree(&name.1, spec, members);
                root.inspect_err(|problem| around.refuse(stored, problem))
            });
            match root {
                Ok(Some(root)) => gangs.push(GangSpec {
                    priority: around.priority(None, "", members, stored),
                    ..stored.gang(&name, source, root)
                }),
                Ok(None) => roles::leave_alone(members),
                Err(problem) => gangs.push(stored.invalid(&name, source, problem)),
            }
        }
        gangs
    }
}

/// A group that no object describes, which is as old as its oldest member; `None` without members.
pub(super) fn unwritten(kind: &str, name: &Name, members: &[&mut Member]) -> Option<Stored<()>> {
    let first = members.first()?;
    let object = format!("{kind} {}/{}", name.0, name.1);
    Some(Stored {
        source: first.source.clone(),
        uid: Uid::from_text(&object),
        object,
        created: first.spec.created,
        started: false,
        said: Said::default(),
        spec: Ok(()),
    })
}

fn unreadable(complaint: &Complaint) -> Problem {
    let message = format!("{}; accepted: {}", complaint.value, complaint.accepted);
    problem("InvalidObject", complaint.field.clone(), message)
}

impl<S> Stored<S> {
    /// A gang for the object, with everything that it does not say left at its default.
    pub(super) fn gang(&self, name: &Name, source: &str, root: Group) -> GangSpec {
        GangSpec {
            uid: self.uid,
            key: key(name, source),
            created: self.created,
            priority: 0,
            queue: String::new(),
            root,
            schedule_timeout: None,
            on_timeout: TimeoutPolicy::default(),
            on_loss: LossMode::default(),
            started: self.started,
            disruption: Disruption::default(),
            scoring: None,
            problem: None,
        }
    }

    /// A gang that waits for ever, because the object cannot be honoured.
    pub(super) fn invalid(&self, name: &Name, source: &str, problem: Problem) -> GangSpec {
        GangSpec {
            problem: Some(problem),
            ..self.gang(name, source, role(&name.1, 1))
        }
    }
}

/// The key of the group that a `PodGroup` makes; `None`: it is another kind of object.
pub(super) fn of_pod_group(
    kind: &str,
    namespace: &str,
    name: &str,
    source: &str,
) -> Option<GangKey> {
    let is_group = kind == "PodGroup";
    is_group.then(|| key(&(namespace.to_owned(), name.to_owned()), source))
}

/// The key of a group.
pub(super) fn key((namespace, name): &Name, source: &str) -> GangKey {
    GangKey {
        namespace: namespace.clone(),
        name: name.clone(),
        source: source.into(),
    }
}

/// A leaf for as many members as there are, of which at least `min` must run.
pub(super) fn role(name: &str, min: u32) -> Group {
    Group {
        name: name.into(),
        kind: GroupKind::Role(Role {
            min,
            ..Role::default()
        }),
        ..Group::default()
    }
}
