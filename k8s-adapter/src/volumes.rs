//! Volumes: from claims and what they are bound to, to what the engine understands already.
//!
//! Objects enter one by one as [`Document`]s, pods as the claims that they use ([`PodVolume`]s). What
//! leaves is, of each pod, a [`Judged`]: node selector terms for its required rules, amounts of the
//! resources below, and the reason why it has to wait; of each node, how much of these resources it
//! has; and of a pod that is about to be bound, what has to be written and awaited first ([`prepare`]).
//! The rules are those of kube-scheduler's plugins `VolumeBinding`, `VolumeRestrictions`,
//! `NodeVolumeLimits` and `VolumeZone`. Nothing here waits or talks to anybody.
//!
//! Two things are counted as resources of nodes:
//!
//! - `attachable-volumes-csi-DRIVER`, where some node has a limit for the driver: a pod asks for as many as
//!   it has volumes of the driver. A volume that several pods of a node share is counted once for each:
//!   more than there is, so a node is never overloaded.
//! - `local-volumes/CLASS/SIZE`, for claims on volumes that are there and can be reached from one node
//!   each: so two claims are never promised one disk. Of claims of different sizes that could have the same
//!   disk this does not tell who gets it; that is settled when the claims are prepared, and who is left
//!   without waits.
//!
//! Cost: a change touches the pods that use what changed, and, where claims can be met by volumes that are
//! there, those that wait for one of the same class.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use gangline::{
    gang::{PodPhase, PodSpec},
    units::{Nanos, Uid},
};

use crate::{
    api,
    load::{Complaint, Document},
    problem::Problems,
};

#[cfg(feature = "live")]
pub(crate) mod assign;
mod count;
mod judge;
mod objects;
#[cfg(feature = "live")]
pub(crate) mod prepare;
mod terms;
#[cfg(test)]
mod tests;

use count::Counted;
pub(crate) use judge::Judged;
#[cfg(feature = "live")]
pub(crate) use objects::SELECTED_NODE;
use objects::{Claim, Class, Key, Left, Volume};

/// Kinds that are read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Claim,
    Volume,
    Class,
    Node,
    Driver,
    Capacity,
}

/// The start of the resource's name that counts the volumes of a driver.
const ATTACHABLE: &str = "attachable-volumes-csi-";
/// A node without a limit has so many; far below what the engine can add up.
const UNLIMITED: i64 = 1 << 40;
/// A claim that a pod uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodVolume {
    /// The volume in the pod.
    name: Box<str>,
    /// The claim.
    claim: Box<str>,
    /// The claim lives and dies with the pod.
    is_ephemeral: bool,
}

/// The claims that a pod uses, each once.
pub(crate) fn of_pod(pod: &api::Pod) -> Vec<PodVolume> {
    let mut volumes: Vec<PodVolume> = Vec::new();
    for volume in &pod.spec.volumes {
        let (claim, is_ephemeral) = match (&volume.persistent_volume_claim, &volume.ephemeral) {
            (Some(source), _) => (source.claim_name.clone(), false),
            (None, Some(_)) => (ephemeral_claim(pod, volume), true),
            (None, None) => continue,
        };
        if volumes.iter().all(|known| known.claim != claim) {
            volumes.push(PodVolume {
                name: volume.name.clone(),
                claim,
                is_ephemeral,
            });
        }
    }
    volumes
}

fn ephemeral_claim(pod: &api::Pod, volume: &api::Volume) -> Box<str> {
    format!("{}-{}", pod.metadata.name, volume.name).into()
}

/// What of a pod matters for the claims that it uses.
#[derive(Clone, Debug, PartialEq, Eq)]
struct User {
    uid: Uid,
    is_bound: bool,
    is_foreign: bool,
    is_terminating: bool,
    created: Nanos,
}

/// What changed for whom, since it was asked last.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// Pods, by namespace and name.
    pub(crate) pods: BTreeSet<Key>,
    /// Nodes by their name.
    pub(crate) nodes: BTreeSet<String>,
    /// Nodes by their host's label.
    pub(crate) hosts: BTreeSet<String>,
    /// Every node.
    pub(crate) all_nodes: bool,
}

/// All of a cluster's volumes.
#[derive(Debug, Default)]
pub(crate) struct Volumes {
    claims: BTreeMap<Key, Claim>,
    /// Volumes.
    by_name: BTreeMap<String, Volume>,
    classes: BTreeMap<String, Class>,
    /// Limits by node and driver.
    limits: BTreeMap<String, BTreeMap<String, i64>>,
    /// How many nodes limit a driver.
    limited: BTreeMap<String, usize>,
    /// Drivers that tell how much storage is left.
    tells_left: BTreeSet<String>,
    left: BTreeMap<Key, Left>,
    /// The API server's words for the state of claims and of volumes.
    claim_versions: BTreeMap<Key, Box<str>>,
    volume_versions: BTreeMap<String, Box<str>>,
    /// Pods by the claims that they use.
    users: BTreeMap<Key, BTreeMap<String, User>>,
    /// Claims that wait, by class.
    waiting: BTreeMap<String, BTreeSet<Key>>,
    of_class: BTreeMap<String, BTreeSet<String>>,
    /// Claims by the volume that they name.
    claims_of: BTreeMap<String, BTreeSet<Key>>,
    /// Volumes by the claim that they name.
    kept_for: BTreeMap<Key, BTreeSet<String>>,
    /// Volumes that claims of pods that are being bound will get.
    promised: BTreeMap<String, Key>,
    counted: BTreeMap<String, BTreeMap<String, Counted>>,
    changed_classes: BTreeSet<String>,
    touched: Touched,
    /// Objects of these kinds were seen.
    seen: BTreeSet<&'static str>,
    /// What the input has none of at all is not known, and decides nothing.
    is_partial: bool,
}

impl Volumes {
    /// Those of a dump, which may have been taken without them.
    pub(crate) fn of_a_dump() -> Self {
        Self {
            is_partial: true,
            ..Self::default()
        }
    }

    /// An object appeared or changed.
    pub(crate) fn take(
        &mut self,
        kind: Kind,
        document: &Document<'_>,
    ) -> Result<Vec<Complaint>, Box<Complaint>> {
        let mut problems = Problems::default();
        match kind {
            Kind::Claim => {
                let claim: api::PersistentVolumeClaim = document.decode()?;
                let namespace = claim.metadata.namespace_or_default().to_owned();
                let key = (namespace, document.name.clone());
                let read = Claim::read(&claim, &mut problems);
                self.claim_versions
                    .insert(key.clone(), claim.metadata.resource_version.clone());
                self.set_claim(key, Some(read));
            }
            Kind::Volume => {
                let volume: api::PersistentVolume = document.decode()?;
                let read = Volume::read(&volume, &mut problems);
                let version = volume.metadata.resource_version;
                self.volume_versions.insert(document.name.clone(), version);
                self.set_volume(&document.name, Some(read));
            }
            Kind::Class => {
                let class = Class::read(&document.decode()?);
                self.set_class(&document.name, Some(class));
            }
            Kind::Node => {
                let node: api::CsiNode = document.decode()?;
                let drivers = node.spec.drivers.iter();
                let limits = drivers.filter_map(|driver| {
                    let count = driver.allocatable.count?;
                    Some((String::from(&*driver.name), count.clamp(0, UNLIMITED)))
                });
                self.set_limits(&document.name, limits.collect());
            }
            Kind::Driver => {
                let driver: api::CsiDriver = document.decode()?;
                let tells = driver.spec.storage_capacity == Some(true);
                self.set_tells_left(&document.name, tells);
            }
            Kind::Capacity => {
                let capacity: api::CsiStorageCapacity = document.decode()?;
                let namespace = capacity.metadata.namespace_or_default().to_owned();
                let left = Left::read(&capacity, &mut problems);
                self.set_left((namespace, document.name.clone()), Some(left));
            }
        }
        self.seen.insert(word(kind));
        let object = document.object();
        let complaints = problems
            .iter()
            .map(|problem| Complaint::from_problem(&document.source, &object, problem));
        Ok(complaints.collect())
    }

    /// An object of such a kind is gone.
    pub(crate) fn forget(&mut self, kind: Kind, namespace: &str, name: &str) {
        let key = || (namespace.to_owned(), name.to_owned());
        match kind {
            Kind::Claim => {
                self.claim_versions.remove(&key());
                self.set_claim(key(), None);
            }
            Kind::Volume => {
                self.volume_versions.remove(name);
                self.set_volume(name, None);
            }
            Kind::Class => self.set_class(name, None),
            Kind::Node => self.set_limits(name, BTreeMap::new()),
            Kind::Driver => self.set_tells_left(name, false),
            Kind::Capacity => self.set_left(key(), None),
        }
    }

    /// A claim that would be made together with its pod, unless there is one of its name.
    pub(crate) fn expect(&mut self, pod: &api::Pod) {
        for volume in &pod.spec.volumes {
            let template = volume.ephemeral.as_ref();
            let template = template.and_then(|source| source.volume_claim_template.as_ref());
            let Some(template) = template else {
                continue;
            };
            let (name, owner) = match &volume.persistent_volume_claim {
                Some(source) => (source.claim_name.clone(), None),
                None => (ephemeral_claim(pod, volume), Some(&pod.metadata)),
            };
            let key = (pod.metadata.namespace_or_default().to_owned(), name.into());
            if self.claims.contains_key(&key) {
                continue;
            }
            let mut claim = Claim::read(template, &mut Problems::default());
            claim.owner = owner.map(|meta| {
                crate::member::uid(&meta.uid, "Pod", meta.namespace_or_default(), &meta.name)
            });
            if !claim.has_class
                && let Some((class, _)) = self.classes.iter().find(|(_, class)| class.is_default)
            {
                (claim.shape.class, claim.has_class) = (class.clone(), true);
            }
            self.set_claim(key, Some(claim));
        }
    }

    fn set_claim(&mut self, key: Key, claim: Option<Claim>) {
        let before = self.claims.get(&key);
        if before == claim.as_ref() {
            return;
        }
        self.touch_users(&key);
        let waits = |claim: &Claim| claim.volume.is_empty().then(|| claim.shape.class.clone());
        if let Some(before) = self.claims.remove(&key) {
            unlink(&mut self.claims_of, &before.volume, &key);
            if let Some(class) = waits(&before) {
                unlink(&mut self.waiting, &class, &key);
                self.changed_classes.insert(class);
            }
        }
        if let Some(claim) = claim {
            if let Some(class) = waits(&claim) {
                link(&mut self.waiting, &class, &key);
                self.changed_classes.insert(class);
            } else {
                link(&mut self.claims_of, &claim.volume, &key);
            }
            self.claims.insert(key, claim);
        }
    }

    fn set_volume(&mut self, name: &str, volume: Option<Volume>) {
        let before = self.by_name.get(name);
        if before == volume.as_ref() {
            return;
        }
        let name = name.to_owned();
        let before = self.by_name.remove(&name);
        // Most are made for a claim, and nobody else waits for them.
        let is_free = |volume: &&Volume| volume.claim.is_none();
        for one in before.iter().chain(&volume).filter(is_free) {
            self.changed_classes.insert(one.class.clone());
        }
        if let Some(before) = before {
            unlink(&mut self.of_class, &before.class, &name);
            if let Some(claim) = &before.claim {
                let key = key_of(claim);
                unlink(&mut self.kept_for, &key, &name);
                self.touch_kept_for(&key);
            }
        }
        for claim in self.claims_of.get(&name).cloned().unwrap_or_default() {
            self.touch_users(&claim);
        }
        if let Some(volume) = volume {
            link(&mut self.of_class, &volume.class, &name);
            if let Some(claim) = &volume.claim {
                let key = key_of(claim);
                link(&mut self.kept_for, &key, &name);
                self.touch_kept_for(&key);
            }
            self.by_name.insert(name, volume);
        }
    }

    /// A volume is kept for this claim, or no longer: if the claim waits, it is counted with its class
    /// only while none is.
    fn touch_kept_for(&mut self, claim: &Key) {
        self.touch_users(claim);
        let waits = self
            .claims
            .get(claim)
            .filter(|claim| claim.volume.is_empty());
        let class = waits.map(|claim| claim.shape.class.clone());
        self.changed_classes.extend(class);
    }

    fn set_class(&mut self, name: &str, class: Option<Class>) {
        if self.classes.get(name) == class.as_ref() {
            return;
        }
        self.changed_classes.insert(name.to_owned());
        match class {
            Some(class) => self.classes.insert(name.to_owned(), class),
            None => self.classes.remove(name),
        };
    }

    fn set_limits(&mut self, node: &str, limits: BTreeMap<String, i64>) {
        let before = self.limits.remove(node).unwrap_or_default();
        if before == limits {
            if !limits.is_empty() {
                self.limits.insert(node.to_owned(), limits);
            }
            return;
        }
        self.touched.nodes.insert(node.to_owned());
        let known: BTreeSet<String> = self.limited.keys().cloned().collect();
        for driver in before.keys() {
            if let Some(count) = self.limited.get_mut(driver) {
                *count -= 1;
                if *count == 0 {
                    self.limited.remove(driver);
                }
            }
        }
        for driver in limits.keys() {
            *self.limited.entry(driver.clone()).or_default() += 1;
        }
        if !known.iter().eq(self.limited.keys()) {
            // Whether a driver is counted at all changes: seldom, and then for everybody.
            self.touched.all_nodes = true;
            let users = self.users.iter();
            let pods = users.flat_map(|((namespace, _), pods)| {
                pods.keys().map(|pod| (namespace.clone(), pod.clone()))
            });
            self.touched.pods.extend(pods);
        }
        if !limits.is_empty() {
            self.limits.insert(node.to_owned(), limits);
        }
    }

    fn set_tells_left(&mut self, driver: &str, tells: bool) {
        let changes = if tells {
            self.tells_left.insert(driver.to_owned())
        } else {
            self.tells_left.remove(driver)
        };
        if changes {
            let classes = self.classes.iter();
            let classes = classes.filter(|(_, class)| *class.provisioner == *driver);
            self.changed_classes
                .extend(classes.map(|(name, _)| name.clone()));
        }
    }

    fn set_left(&mut self, key: Key, left: Option<Left>) {
        let before = self.left.get(&key);
        if before == left.as_ref() {
            return;
        }
        let classes = before.into_iter().chain(&left);
        self.changed_classes
            .extend(classes.map(|left| left.class.clone()));
        match left {
            Some(left) => self.left.insert(key, left),
            None => self.left.remove(&key),
        };
    }

    /// A pod uses these claims; without a pod it uses them no longer.
    pub(crate) fn note_pod(
        &mut self,
        namespace: &str,
        pod: &str,
        volumes: &[PodVolume],
        spec: Option<&PodSpec>,
    ) {
        for volume in volumes {
            let key = (namespace.to_owned(), String::from(&*volume.claim));
            let has_ended =
                |spec: &&PodSpec| matches!(spec.phase, PodPhase::Succeeded | PodPhase::Failed);
            let user = spec.filter(|spec| !has_ended(spec)).map(|spec| User {
                uid: spec.uid,
                is_bound: spec.node.is_some(),
                is_foreign: spec.foreign,
                is_terminating: spec.terminating,
                created: spec.created,
            });
            let users = self.users.entry(key.clone()).or_default();
            let before = match user.clone() {
                Some(user) => users.insert(pod.to_owned(), user),
                None => users.remove(pod),
            };
            if before == user {
                continue;
            }
            let is_new = before.is_none() || user.is_none();
            if users.is_empty() {
                self.users.remove(&key);
            }
            let Some(claim) = self.claims.get(&key) else {
                continue;
            };
            if claim.is_for_one_pod() {
                self.touch_users(&key);
            }
            // Whether anybody waits for a volume of this kind.
            if is_new && let Some(claim) = self.claims.get(&key) {
                let class = claim.shape.class.clone();
                if claim.volume.is_empty() && self.is_static(&class) {
                    self.changed_classes.insert(class);
                }
            }
        }
    }

    fn is_static(&self, class: &str) -> bool {
        let class = self.classes.get(class);
        class.is_some_and(|class| class.waits && class.provisioner.is_empty())
    }

    fn touch_users(&mut self, claim: &Key) {
        let pods = self.users.get(claim).into_iter().flat_map(BTreeMap::keys);
        let pods = pods.map(|pod| (claim.0.clone(), pod.clone()));
        self.touched.pods.extend(pods);
    }

    /// Counts anew what has changed, and tells whom it touches.
    pub(crate) fn settle(&mut self) -> Touched {
        for class in mem::take(&mut self.changed_classes) {
            for claim in self.waiting.get(&class).cloned().unwrap_or_default() {
                self.touch_users(&claim);
            }
            let counted = self.count(&class);
            let before = self.counted.remove(&class).unwrap_or_default();
            if counted != before {
                let both = before.values().chain(counted.values());
                let hosts = both.flat_map(|counted| counted.volumes.keys().cloned());
                self.touched.hosts.extend(hosts);
            }
            if !counted.is_empty() {
                self.counted.insert(class, counted);
            }
        }
        mem::take(&mut self.touched)
    }

    /// Of which kinds the input has no object at all, although pods need some.
    pub(crate) fn unknown(&self) -> Vec<&'static str> {
        let missing = |kind, needed: bool| (needed && !self.knows(kind)).then(|| word(kind));
        let claims = missing(Kind::Claim, !self.users.is_empty());
        if claims.is_some() {
            return claims.into_iter().collect();
        }
        let mut used = self.users.keys().filter_map(|key| self.claims.get(key));
        let is_bound = used.clone().any(|claim| claim.is_bound);
        let waits = used.any(|claim| claim.volume.is_empty());
        let volumes = missing(Kind::Volume, is_bound);
        volumes
            .into_iter()
            .chain(missing(Kind::Class, waits))
            .collect()
    }

    /// Whether what is not there is known not to be.
    fn knows(&self, kind: Kind) -> bool {
        !self.is_partial || self.seen.contains(word(kind))
    }
}

const fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Claim => "PersistentVolumeClaim",
        Kind::Volume => "PersistentVolume",
        Kind::Class => "StorageClass",
        Kind::Node => "CSINode",
        Kind::Driver => "CSIDriver",
        Kind::Capacity => "CSIStorageCapacity",
    }
}

fn key_of(claim: &api::ClaimReference) -> Key {
    ((&*claim.namespace).into(), (&*claim.name).into())
}

fn link<K: Ord + Clone, V: Ord + Clone>(map: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: &V) {
    map.entry(key.clone()).or_default().insert(value.clone());
}

fn unlink<K: Ord, V: Ord>(map: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: &V) {
    if let Some(values) = map.get_mut(key) {
        values.remove(value);
        if values.is_empty() {
            map.remove(key);
        }
    }
}
