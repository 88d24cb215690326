//! A cluster as its watches tell of it, one change at a time, to the events that tell the engine.
//!
//! Whole objects enter through [`Mirror::pod`], [`Mirror::node`] and [`Mirror::object`], and go through
//! their `_gone` twins; [`Mirror::settle`] hands over the [`Event`]s that bring an engine up to date. What
//! a change touches is worked out anew with the functions that read a dump, and compared with what the
//! engine was told: so any order of changes ends in what [`world`](crate::world) makes of a fresh list.
//! A pod's change touches its group, that of an object all groups of its namespace, since no group spans
//! two. Nothing here waits, talks to anybody or decides.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use gangline::{
    Event,
    cluster::NodeSpec,
    gang::{GangKey, GangSpec, PodSpec},
    request::CardWant,
    units::{Nanos, Uid},
};

use crate::{
    api,
    cards::{self, CardIds},
    intake::{self, Dialect, Member, Roster, Surroundings},
    load::{Complaint, Document, Severity, Source},
    member::PodReader,
    node::{node_images, node_spec},
    problem::Problems,
    volumes::{Judged, Volumes},
    world::{
        kinds::{self, Target, target},
        levels,
        owners::Owners,
    },
};

#[cfg(feature = "live")]
pub(crate) mod prepare;
#[cfg(test)]
mod tests;

/// A cluster that is watched.
pub struct Mirror {
    reader: PodReader,
    owners: Owners,
    volumes: Volumes,
    nodes: BTreeMap<String, Told<NodeSpec>>,
    /// What nodes have of images.
    images: BTreeMap<String, Told<Vec<(u64, u32)>>>,
    /// Shares that run on a node: it shares its cards then, whatever it says.
    shares_on: BTreeMap<String, BTreeSet<PodName>>,
    changed_nodes: BTreeSet<String>,
    card_ids: CardIds,
    namespaces: BTreeMap<String, Namespace>,
    changed_namespaces: BTreeSet<String>,
    /// Objects of dialects that are in no namespace, by kind and name.
    clusterwide: BTreeMap<(String, String), Document<'static>>,
    events: Vec<Event>,
    complaints: Vec<Complaint>,
}

/// Namespace and name.
type PodName = (String, String);

/// What an object says, and what the engine was told of it last.
#[derive(Debug, Default)]
struct Told<T> {
    said: T,
    told: Option<T>,
}

/// One namespace.
struct Namespace {
    dialects: Vec<Box<dyn Dialect>>,
    pods: BTreeMap<String, Pod>,
    /// Groups as the engine was told of them.
    told: BTreeMap<GangKey, GangSpec>,
    /// Pods by the group that they name.
    linked: BTreeMap<GangKey, BTreeSet<String>>,
    /// An object that makes groups is not what it was.
    groups_changed: bool,
    /// Groups of which some pod is not what it was.
    changed_links: BTreeSet<GangKey>,
    /// Pods without a group that are not what they were.
    changed_pods: BTreeSet<String>,
}

struct Pod {
    member: Member,
    told: Option<PodSpec>,
    /// What its claims mean, as the engine was told, as long as it is not bound.
    judged: Option<Box<Judged>>,
    /// It is being bound: that stays so.
    keeps_judged: bool,
}

impl Mirror {
    /// A mirror of nothing yet. Waiting pods of other `schedulerName`s than these are somebody else's.
    pub fn new(scheduler_names: impl IntoIterator<Item = String>) -> Self {
        Self {
            reader: PodReader {
                scheduler_names: Some(scheduler_names.into_iter().collect()),
                ..PodReader::default()
            },
            owners: Owners::default(),
            volumes: Volumes::default(),
            nodes: BTreeMap::new(),
            images: BTreeMap::new(),
            shares_on: BTreeMap::new(),
            changed_nodes: BTreeSet::new(),
            card_ids: CardIds::default(),
            namespaces: BTreeMap::new(),
            changed_namespaces: BTreeSet::new(),
            clusterwide: BTreeMap::new(),
            events: Vec::new(),
            complaints: Vec::new(),
        }
    }

    /// A pod appeared or changed.
    pub fn pod(&mut self, pod: &api::Pod) {
        let name = (
            pod.metadata.namespace_or_default().to_owned(),
            String::from(&*pod.metadata.name),
        );
        if self.reader.templates.learn(&pod.spec) {
            // Templates made before lack labels that rules name now.
            for (name, namespace) in &mut self.namespaces {
                namespace.touch_all();
                self.changed_namespaces.insert(name.clone());
            }
        }
        let namespace = namespace_of(&mut self.namespaces, &self.clusterwide, &name.0);
        let source = Source::file("the cluster");
        let (reader, complaints) = (&mut self.reader, &mut self.complaints);
        let mut member = Member::read(pod, reader, &namespace.dialects, &source, complaints);
        intake::follow_owner(&mut member, &self.owners);
        let before = namespace.pods.get(&name.1);
        if let Some(before) = before.filter(|before| before.member.spec.uid != member.spec.uid) {
            // Another pod of that name: the one before went unseen.
            let uid = before.member.spec.uid;
            self.pod_gone(&name.0, &name.1, uid);
        }
        self.note_share(&name, Some(&member));
        let spec = &member.spec;
        self.volumes
            .note_pod(&name.0, &name.1, &member.volumes, Some(spec));
        let namespace = namespace_of(&mut self.namespaces, &self.clusterwide, &name.0);
        let after = link_of(&member);
        let before = if let Some(known) = namespace.pods.get_mut(&name.1) {
            link_of(&mem::replace(&mut known.member, member))
        } else {
            let pod = Pod {
                member,
                told: None,
                judged: None,
                keeps_judged: false,
            };
            namespace.pods.insert(name.1.clone(), pod);
            None
        };
        namespace.relink(&name.1, before, after);
        namespace.touch(&name.1);
        self.changed_namespaces.insert(name.0);
    }

    /// A pod is gone. One that has another identity by now stays.
    pub fn pod_gone(&mut self, namespace: &str, name: &str, uid: Uid) {
        let known = self.namespaces.get(namespace);
        let known = known.and_then(|known| known.pods.get(name));
        if known.is_none_or(|pod| pod.member.spec.uid != uid) {
            return;
        }
        self.note_share(&(namespace.to_owned(), name.to_owned()), None);
        let Some(known) = self.namespaces.get_mut(namespace) else {
            return;
        };
        let Some(pod) = known.pods.remove(name) else {
            return;
        };
        let volumes = &pod.member.volumes;
        self.volumes.note_pod(namespace, name, volumes, None);
        known.relink(name, link_of(&pod.member), None);
        known.changed_pods.remove(name);
        if pod.told.is_some() {
            self.events.push(Event::PodGone { uid });
        }
        self.changed_namespaces.insert(namespace.to_owned());
    }

    /// A node appeared or changed.
    pub fn node(&mut self, node: &api::Node) {
        if self.card_ids.take(node) {
            self.touch_told_by_id(&node.metadata.name);
        }
        let mut problems = Problems::default();
        let spec = node_spec(node, &mut problems);
        let source = Source::file("the cluster");
        let object = format!("Node {}", spec.name);
        let complaints = problems.iter().map(|problem| Complaint {
            severity: Severity::Warning,
            ..Complaint::from_problem(&source, &object, problem)
        });
        self.complaints.extend(complaints);
        let name = spec.name.clone();
        self.changed_nodes.insert(name.clone());
        self.nodes.entry(name.clone()).or_default().said = spec;
        self.images.entry(name).or_default().said = node_images(node);
    }

    /// A node is gone.
    pub fn node_gone(&mut self, name: &str) {
        if self.card_ids.forget(name) {
            self.touch_told_by_id(name);
        }
        self.images.remove(name);
        if self
            .nodes
            .remove(name)
            .is_some_and(|node| node.told.is_some())
        {
            let name = name.to_owned();
            self.events.push(Event::NodeGone { name });
        }
        self.changed_nodes.insert(name.to_owned());
    }

    /// The cards of a node have other ids than before: pods on it are told other ones.
    fn touch_told_by_id(&mut self, node: &str) {
        for (name, namespace) in &mut self.namespaces {
            let members = namespace.pods.values().map(|pod| &pod.member);
            let touched = members.filter(|member| {
                !member.given.is_empty() && member.spec.node.as_deref() == Some(node)
            });
            let touched = touched.map(|member| member.spec.name.clone());
            for pod in touched.collect::<Vec<_>>() {
                namespace.touch(&pod);
                self.changed_namespaces.insert(name.clone());
            }
        }
    }

    /// An object of any other kind that is read appeared or changed. What is wrong with it is its own
    /// matter; it is told with the complaints.
    pub fn object(&mut self, document: Document<'static>) {
        let outcome = self.take(document);
        self.complaints
            .extend(outcome.err().map(|complaint| *complaint));
    }

    fn take(&mut self, document: Document<'static>) -> Result<(), Box<Complaint>> {
        let dialects = intake::dialects();
        match target(&document, &dialects) {
            Ok(Target::Namespace) => {
                let decoded: api::Namespace = document.decode()?;
                let labels = decoded.metadata.labels.iter();
                let labels = labels.map(|(key, value)| (key.to_owned(), value.to_string()));
                self.events.push(Event::Namespace {
                    name: document.name.clone(),
                    labels: labels.collect(),
                });
            }
            Ok(Target::PriorityClass) => {
                let class: api::PriorityClass = document.decode()?;
                let inserted = self.reader.priorities.insert(&class);
                inserted.map_err(|problem| document.refusal(&problem))?;
                self.touch_groups();
            }
            Ok(Target::Volumes(kind)) => {
                let complaints = self.volumes.take(kind, &document)?;
                self.complaints.extend(complaints);
            }
            Ok(Target::Workload(_)) => {
                #[derive(serde::Deserialize)]
                struct Owner {
                    metadata: api::ObjectMeta,
                }
                let Owner { metadata } = document.decode()?;
                if self.owners.take(&document.kind, &metadata.name, &metadata) {
                    let namespace = metadata.namespace_or_default();
                    self.touch_pods_of(namespace, &document.kind, &metadata.name);
                }
            }
            Ok(Target::Group(number)) if document.namespace.is_empty() => {
                let name = (document.kind.clone(), document.name.clone());
                let mut outcome = Ok(());
                for namespace in self.namespaces.values_mut() {
                    if let Some(dialect) = namespace.dialects.get_mut(number) {
                        outcome = dialect.take(&document, Nanos::ZERO);
                    }
                }
                self.clusterwide.insert(name, document);
                self.changed_nodes.extend(self.nodes.keys().cloned());
                self.touch_groups();
                outcome?;
            }
            Ok(Target::Group(number)) => {
                let name = document.namespace.clone();
                let namespace = namespace_of(&mut self.namespaces, &self.clusterwide, &name);
                if let Some(dialect) = namespace.dialects.get_mut(number) {
                    let alone = |dialect: &dyn Dialect| {
                        let group = dialect.group_of(&document.kind, &name, &document.name);
                        group.filter(|group| !dialect.depends_on_others(group))
                    };
                    let before = alone(&**dialect);
                    let outcome = dialect.take(&document, Nanos::ZERO);
                    match before.and(alone(&**dialect)) {
                        Some(group) => {
                            namespace.changed_links.insert(group);
                        }
                        None => namespace.groups_changed = true,
                    }
                    self.changed_namespaces.insert(name);
                    outcome?;
                }
            }
            Ok(Target::Node | Target::Pod | Target::Nobody) => {}
            Err(accepted) => {
                let value = document.api_version.as_str();
                let refused = Severity::Refused;
                let complaint = document.complaint(refused, "apiVersion", value, accepted);
                return Err(Box::new(complaint));
            }
        }
        Ok(())
    }

    /// An object of such a kind is gone.
    pub fn object_gone(&mut self, group: &str, kind: &str, namespace: &str, name: &str) {
        if let Some(kind) = kinds::of_volumes(group, kind) {
            self.volumes.forget(kind, namespace, name);
            return;
        }
        if kinds::is_priority_class(group, kind) {
            if self.reader.priorities.remove(name) {
                self.touch_groups();
            }
            return;
        }
        if namespace.is_empty() {
            let key = (kind.to_owned(), name.to_owned());
            if self.clusterwide.remove(&key).is_some() {
                for namespace in self.namespaces.values_mut() {
                    for dialect in &mut namespace.dialects {
                        dialect.forget(group, kind, "", name);
                    }
                }
                self.changed_nodes.extend(self.nodes.keys().cloned());
                self.touch_groups();
            }
            return;
        }
        if self.owners.forget(namespace, kind, name) {
            self.touch_pods_of(namespace, kind, name);
        }
        if let Some(known) = self.namespaces.get_mut(namespace) {
            for dialect in &mut known.dialects {
                dialect.forget(group, kind, namespace, name);
            }
            self.touch_groups_of(namespace);
        }
    }

    /// The topology levels that nodes and groups speak of, coarse to fine.
    pub fn levels(&mut self) -> Vec<String> {
        let mut nodes = self.said_nodes();
        let implied = self.imply(&mut nodes);
        let gangs: Vec<GangSpec> = self
            .namespaces
            .values()
            .flat_map(|namespace| namespace.told.values().cloned())
            .collect();
        levels::choose(&nodes, &implied, &gangs)
    }

    /// The node labels that groups name as levels.
    #[cfg(feature = "live")]
    pub(crate) fn named_levels(&self) -> BTreeSet<String> {
        let gangs = self.namespaces.values();
        let gangs = gangs.flat_map(|namespace| namespace.told.values());
        gangs.flat_map(levels::named).collect()
    }

    fn said_nodes(&self) -> BTreeMap<String, NodeSpec> {
        let nodes = self.nodes.iter();
        nodes
            .map(|(name, node)| (name.clone(), node.said.clone()))
            .collect()
    }

    /// Adds the labels that objects imply to nodes; returns them, coarse to fine.
    fn imply(&mut self, nodes: &mut BTreeMap<String, NodeSpec>) -> Vec<String> {
        let mut implied = Vec::new();
        if self.clusterwide.is_empty() {
            return implied;
        }
        for namespace in self.namespaces.values_mut() {
            let mut complaints = Vec::new();
            let levels = namespace.dialects.iter_mut();
            implied = levels
                .flat_map(|dialect| dialect.levels(nodes, &mut complaints))
                .collect();
        }
        implied
    }

    fn touch_groups(&mut self) {
        for (name, namespace) in &mut self.namespaces {
            namespace.groups_changed = true;
            self.changed_namespaces.insert(name.clone());
        }
    }

    fn touch_groups_of(&mut self, name: &str) {
        if let Some(namespace) = self.namespaces.get_mut(name) {
            namespace.groups_changed = true;
            self.changed_namespaces.insert(name.to_owned());
        }
    }

    /// What an owner says of its pods is not what it was: it may make a group of them, or none any more.
    fn touch_pods_of(&mut self, namespace: &str, kind: &str, name: &str) {
        self.touch_groups_of(namespace);
        let Some(known) = self.namespaces.get_mut(namespace) else {
            return;
        };
        let is_its = |member: &Member| {
            let owner = member.controller.as_deref();
            owner.is_some_and(|owner| (&*owner.0, &*owner.1) == (kind, name))
        };
        let pods = known.pods.iter_mut();
        let mut followed = Vec::new();
        for (pod, Pod { member, .. }) in pods.filter(|(_, pod)| is_its(&pod.member)) {
            let before = link_of(member);
            if intake::follow_owner(member, &self.owners) {
                followed.push((pod.clone(), before, link_of(member)));
            }
        }
        for (pod, before, after) in followed {
            known.relink(&pod, before, after);
            known.touch(&pod);
        }
    }

    /// Keeps the list of shares that run, by node.
    fn note_share(&mut self, name: &PodName, member: Option<&Member>) {
        let known = self.namespaces.get(&name.0);
        let known = known.and_then(|namespace| namespace.pods.get(&name.1));
        let before = known
            .and_then(|pod| share_on(&pod.member))
            .map(str::to_owned);
        let after = member.and_then(share_on).map(str::to_owned);
        if before == after && after.is_none() {
            return;
        }
        for node in before.iter().chain(&after) {
            self.changed_nodes.insert(node.clone());
        }
        if let Some(node) = before
            && let Some(shares) = self.shares_on.get_mut(&node)
        {
            shares.remove(name);
        }
        if let Some(node) = after {
            self.shares_on.entry(node).or_default().insert(name.clone());
        }
    }

    /// What the engine has to be told to be up to date. Cost: what changed, the members of the groups of
    /// which a pod changed, and all groups of the namespaces where an object did that makes some.
    pub fn settle(&mut self) -> Vec<Event> {
        self.settle_volumes();
        self.settle_nodes();
        for name in mem::take(&mut self.changed_namespaces) {
            self.settle_namespace(&name);
        }
        mem::take(&mut self.events)
    }

    /// What is wrong with objects, since this was asked last.
    pub fn complaints(&mut self) -> Vec<Complaint> {
        mem::take(&mut self.complaints)
    }

    /// Whom a change of volumes touches is worked out anew with the rest.
    fn settle_volumes(&mut self) {
        let touched = self.volumes.settle();
        for (namespace, name) in touched.pods {
            let Some(known) = self.namespaces.get_mut(&namespace) else {
                continue;
            };
            if known.touch(&name) {
                self.changed_namespaces.insert(namespace);
            }
        }
        self.changed_nodes.extend(touched.nodes);
        if touched.all_nodes {
            self.changed_nodes.extend(self.nodes.keys().cloned());
        } else if !touched.hosts.is_empty() {
            let on_host = self.nodes.iter().filter(|(_, node)| {
                let host = node.said.labels.get(gangline::request::NODE_LEVEL);
                host.is_some_and(|host| touched.hosts.contains(host))
            });
            let names = on_host.map(|(name, _)| name.clone());
            self.changed_nodes.extend(names);
        }
    }

    fn settle_nodes(&mut self) {
        let changed = mem::take(&mut self.changed_nodes);
        if changed.is_empty() {
            return;
        }
        let mut nodes: BTreeMap<String, NodeSpec> = if self.clusterwide.is_empty() {
            let known = changed.iter().filter_map(|name| {
                let node = self.nodes.get(name)?;
                Some((name.clone(), node.said.clone()))
            });
            known.collect()
        } else {
            let mut all = self.said_nodes();
            self.imply(&mut all);
            all
        };
        for node in nodes.values_mut() {
            self.volumes.offer(node);
        }
        let mut shares = Vec::new();
        let touched: BTreeSet<&String> = changed.iter().chain(nodes.keys()).collect();
        let names = touched.iter().filter_map(|node| self.shares_on.get(*node));
        for name in names.flatten() {
            let namespace = self.namespaces.get(&name.0);
            let pod = namespace.and_then(|namespace| namespace.pods.get(&name.1));
            shares.extend(pod.map(|pod| pod.member.clone()));
        }
        cards::share_where_shared(&mut nodes, &shares);
        for (name, spec) in nodes {
            let Some(node) = self.nodes.get_mut(&name) else {
                continue;
            };
            if node.told.as_ref() != Some(&spec) {
                node.told = Some(spec.clone());
                self.events.push(Event::Node(spec));
            }
        }
        for name in changed {
            let Some(Told { said, told }) = self.images.get_mut(&name) else {
                continue;
            };
            if told.as_ref().map_or(&[][..], Vec::as_slice) != said.as_slice() {
                *told = Some(said.clone());
                let images = said.clone();
                self.events.push(Event::NodeImages { name, images });
            }
        }
    }

    fn settle_namespace(&mut self, name: &str) {
        let Some(namespace) = self.namespaces.get_mut(name) else {
            return;
        };
        let mut members: Vec<Member> = mem::take(&mut namespace.changed_pods)
            .iter()
            .filter_map(|pod| Some(namespace.pods.get(pod)?.member.clone()))
            .filter(|member| member.link.is_none())
            .collect();
        let links = mem::take(&mut namespace.changed_links);
        let depends = |key: &GangKey| {
            let mut dialects = namespace.dialects.iter();
            dialects.any(|dialect| dialect.depends_on_others(key))
        };
        let all = mem::take(&mut namespace.groups_changed) || links.iter().any(depends);
        let settles_groups = all || !links.is_empty();
        let linked: Vec<&BTreeSet<String>> = if all {
            namespace.linked.values().collect()
        } else {
            links
                .iter()
                .filter_map(|key| namespace.linked.get(key))
                .collect()
        };
        let linked = linked.into_iter().flatten();
        let linked = linked.filter_map(|pod| namespace.pods.get(pod));
        members.extend(linked.map(|pod| pod.member.clone()));
        for member in &mut members {
            let template = &mut member.spec.template;
            *template = self.reader.templates.relabel(template, &member.labels);
            if member.volumes.is_empty() {
                continue;
            }
            let spec = &mut member.spec;
            let Some(pod) = namespace.pods.get_mut(&spec.name) else {
                continue;
            };
            if spec.node.is_some() || !pod.keeps_judged {
                pod.judged = None;
            }
            let judged = pod.judged.take();
            let judged =
                judged.unwrap_or_else(|| Box::new(self.volumes.judge(spec, &member.volumes)));
            judged.apply(spec, &mut self.reader.templates);
            pod.judged = Some(judged).filter(|_| spec.node.is_none());
        }
        members.sort_by(|one, other| {
            let order = |member: &Member| member.spec.created;
            (order(one), &one.spec.name).cmp(&(order(other), &other.spec.name))
        });
        if settles_groups {
            let mut roster = Roster::new();
            for member in &mut members {
                if let Some(link) = &member.link {
                    roster.entry(link.key.clone()).or_default().push(member);
                }
            }
            let mut complaints = Vec::new();
            let mut around = Surroundings {
                priority_class: &|name| self.reader.priorities.value(name),
                owner_annotation: &|namespace, kind, name, annotation| {
                    self.owners.annotation(namespace, kind, name, annotation)
                },
                only: (!all).then_some(&links),
                complaints: &mut complaints,
            };
            let mut gone = if all {
                mem::take(&mut namespace.told)
            } else {
                let told = links.iter();
                told.filter_map(|key| namespace.told.remove_entry(key))
                    .collect()
            };
            for dialect in &namespace.dialects {
                for mut gang in dialect.gangs(&mut roster, &mut around) {
                    gang.problem = gang.problem.take().or_else(|| gang.check().err());
                    if gone.remove(&gang.key).as_ref() != Some(&gang) {
                        self.events.push(Event::Gang(gang.clone()));
                    }
                    namespace.told.insert(gang.key.clone(), gang);
                }
            }
            for (key, gang) in gone {
                let uid = gang.uid;
                self.events.push(Event::GangGone { key, uid });
            }
            self.complaints.append(&mut complaints);
        }
        let templates = &mut self.reader.templates;
        cards::exclude_others(&mut members, templates, &mut self.complaints);
        self.card_ids.tell(&mut members, templates);
        for member in members {
            let Some(pod) = namespace.pods.get_mut(&member.spec.name) else {
                continue;
            };
            if pod.told.as_ref() != Some(&member.spec) {
                pod.told = Some(member.spec.clone());
                self.events.push(Event::Pod(member.spec));
            }
        }
    }
}

/// The group that a pod names.
fn link_of(member: &Member) -> Option<GangKey> {
    member.link.as_ref().map(|link| link.key.clone())
}

/// The node of a share that takes room on it.
fn share_on(member: &Member) -> Option<&str> {
    let cards = member.spec.template.cards.as_ref()?;
    let is_share = matches!(cards.want, CardWant::Shares { .. });
    member.spec.node.as_deref().filter(|_| is_share)
}

/// A namespace, with what is in no namespace if it is new.
fn namespace_of<'a>(
    namespaces: &'a mut BTreeMap<String, Namespace>,
    clusterwide: &BTreeMap<(String, String), Document<'static>>,
    name: &str,
) -> &'a mut Namespace {
    namespaces.entry(name.to_owned()).or_insert_with(|| {
        let mut namespace = Namespace::default();
        for document in clusterwide.values() {
            if let Ok(Target::Group(number)) = target(document, &namespace.dialects)
                && let Some(dialect) = namespace.dialects.get_mut(number)
            {
                // What is wrong with it was said when it came.
                let _ = dialect.take(document, Nanos::ZERO);
            }
        }
        namespace
    })
}

impl Default for Namespace {
    fn default() -> Self {
        Self {
            dialects: intake::dialects(),
            pods: BTreeMap::new(),
            told: BTreeMap::new(),
            linked: BTreeMap::new(),
            groups_changed: false,
            changed_links: BTreeSet::new(),
            changed_pods: BTreeSet::new(),
        }
    }
}

impl Namespace {
    /// A pod is to be told anew, with its group if it has one; false: there is no such pod.
    fn touch(&mut self, name: &str) -> bool {
        let Some(pod) = self.pods.get(name) else {
            return false;
        };
        match link_of(&pod.member) {
            Some(link) => self.changed_links.insert(link),
            None => self.changed_pods.insert(name.to_owned()),
        };
        true
    }

    /// A pod names another group than before, or the same anew.
    fn relink(&mut self, name: &str, before: Option<GangKey>, after: Option<GangKey>) {
        if let Some(before) = &before
            && let Some(pods) = self.linked.get_mut(before)
        {
            pods.remove(name);
            if pods.is_empty() {
                self.linked.remove(before);
            }
        }
        if let Some(after) = &after {
            let pods = self.linked.entry(after.clone()).or_default();
            pods.insert(name.to_owned());
        }
        self.changed_links.extend(before.into_iter().chain(after));
    }

    fn touch_all(&mut self) {
        self.groups_changed = true;
        self.changed_pods.extend(self.pods.keys().cloned());
    }
}
