//! A cluster dump (and manifests on top of it) to the events that tell the engine of it.
//!
//! Documents enter as [`load`] finds them and are cut down to what decides something at
//! once. When all are there, groups meet their pods, topology levels are chosen, and everything
//! leaves as one [`World`]: the engine's levels, events in a canonical order that does not depend on
//! the order of the input, and every complaint on the way.
//!
//! **Manifests** answer "what if I applied this file?". Their objects count as created after
//! everything in the dump, in the order of the documents; of workloads in one call the first pods come
//! first, then all second ones, as controllers that work side by side would make them. A manifest
//! object that is in the dump replaces what the dump says, but running pods stay as they are.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use gangline::{Event, cluster::NodeSpec, units::Nanos};
use serde::{Deserialize, Serialize};

use crate::{
    annotations, api,
    cards::{self, CardIds},
    expand::{self, ExistingPods},
    fields,
    intake::{self, Dialect, Member, Roster, Surroundings},
    load::{self, Complaint, Document, LoadError, Severity, Sink},
    member::PodReader,
    node::{node_images, node_spec},
    problem::Problems,
    volumes::Volumes,
};

pub(crate) mod kinds;
pub(crate) mod levels;
mod manifest;
pub(crate) mod owners;
mod pods;
#[cfg(test)]
mod tests;

use kinds::{Target, Workload};
use manifest::Manifest;
use owners::Owners;
use pods::Pods;

/// What the caller may choose.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Topology levels, coarse to fine; `None` chooses them from the nodes' labels.
    pub levels: Option<Vec<String>>,
    /// Only waiting pods with these `schedulerName`s are ours; empty means all of them.
    pub scheduler_names: Vec<String>,
    /// The input holds all objects of all kinds that are read: what is not in it does not exist, not even
    /// where there is none of its kind.
    pub is_complete: bool,
}

/// What the engine is to be told.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// Topology levels, coarse to fine.
    pub levels: Vec<String>,
    /// Namespaces, nodes, groups, pods; the pods in the order in which they were created.
    pub events: Vec<Event>,
    /// Everything that is wrong with the input, in its order.
    pub complaints: Vec<Complaint>,
    /// Files of manifests of which nothing can be used.
    pub useless: BTreeSet<Arc<str>>,
    /// What there was.
    pub counts: Counts,
    /// The latest time that any object mentions: "now" for a decision about this state.
    pub now: Nanos,
}

/// What there was in the input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Nodes.
    pub nodes: usize,
    /// Groups of pods.
    pub groups: usize,
    /// Pods, those of manifests' workloads included.
    pub pods: usize,
    /// Objects of kinds that decide nothing here, by kind and group.
    pub skipped: BTreeMap<String, u64>,
}

/// A dump and what would be applied on top, as a world. `progress` is told bytes read and bytes in
/// all.
pub fn read(
    dump: &[PathBuf],
    manifests: &[PathBuf],
    options: &Options,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<World, LoadError> {
    read_from(|sink| load::load(dump, sink), manifests, options, progress)
}

/// The same, with a dump that comes from elsewhere than from files.
pub(crate) fn read_from(
    dump: impl FnOnce(&mut dyn Sink) -> Result<(), LoadError>,
    manifests: &[PathBuf],
    options: &Options,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<World, LoadError> {
    let mut builder = Builder::new(options, progress);
    builder.read(|builder| dump(builder))?;
    builder.apply(|builder| load::load(manifests, builder))?;
    let files = [&builder.used, &builder.passed_over, &builder.refused];
    let nothing = files.into_iter().all(BTreeSet::is_empty);
    let mut world = builder.finish();
    if nothing {
        let names = manifests.iter().map(|path| path.display().to_string());
        world.useless.extend(names.map(Arc::from));
    }
    Ok(world)
}

/// API groups whose objects make pods or group them.
const MAKES_PODS: [&str; 13] = [
    "apps",
    "batch",
    "batch.volcano.sh",
    "grove.io",
    "jobset.x-k8s.io",
    "kubeflow.org",
    "leaderworkerset.x-k8s.io",
    "ray.io",
    "scheduling.k8s.io",
    "scheduling.run.ai",
    "scheduling.volcano.sh",
    "scheduling.x-k8s.io",
    "trainer.kubeflow.org",
];

/// Of the kinds of these groups, those that certainly make pods: a file with nothing else is of no use.
const MAKERS: [&str; 16] = [
    "CronJob",
    "JAXJob",
    "Job",
    "JobSet",
    "LeaderWorkerSet",
    "MPIJob",
    "PaddleJob",
    "PodCliqueSet",
    "PyTorchJob",
    "RayCluster",
    "RayJob",
    "RayService",
    "ReplicationController",
    "TFJob",
    "TrainJob",
    "XGBoostJob",
];

/// Any object that owns pods.
#[derive(Deserialize)]
struct Owner {
    metadata: api::ObjectMeta,
}

/// Gathers objects until they make a world. It is a [`Sink`] for whatever reads them.
pub struct Builder<'p> {
    options: &'p Options,
    progress: &'p mut dyn FnMut(u64, u64),
    namespaces: BTreeMap<String, BTreeMap<String, String>>,
    nodes: BTreeMap<String, NodeSpec>,
    images: BTreeMap<String, Vec<(u64, u32)>>,
    card_ids: CardIds,
    dialects: Vec<Box<dyn Dialect>>,
    owners: Owners,
    existing: ExistingPods,
    reader: PodReader,
    volumes: Volumes,
    /// Pods that would be made, whose claims would be made with them.
    made: Vec<api::Pod>,
    /// Pods without a priority number, until all priority classes are known. The API server gives every
    /// pod its number, so these are few.
    deferred: Vec<(api::Pod, load::Source)>,
    pods: Pods,
    complaints: Vec<Complaint>,
    skipped: BTreeMap<String, u64>,
    latest: Nanos,
    /// Set while manifests are read.
    manifest: Option<Manifest>,
    /// Files of manifests of which something can be used, and such of which something cannot.
    used: BTreeSet<Arc<str>>,
    passed_over: BTreeSet<Arc<str>>,
    refused: BTreeSet<Arc<str>>,
}

impl<'p> Builder<'p> {
    /// Nothing yet. `progress` is told bytes read and bytes in all.
    pub fn new(options: &'p Options, progress: &'p mut dyn FnMut(u64, u64)) -> Self {
        let names = &options.scheduler_names;
        let scheduler_names = (!names.is_empty()).then(|| names.iter().cloned().collect());
        Self {
            options,
            progress,
            namespaces: BTreeMap::new(),
            nodes: BTreeMap::new(),
            images: BTreeMap::new(),
            card_ids: CardIds::default(),
            dialects: intake::dialects(),
            owners: Owners::default(),
            existing: ExistingPods::default(),
            reader: PodReader {
                scheduler_names,
                ..PodReader::default()
            },
            volumes: if options.is_complete {
                Volumes::default()
            } else {
                Volumes::of_a_dump()
            },
            made: Vec::new(),
            deferred: Vec::new(),
            pods: Pods::default(),
            complaints: Vec::new(),
            skipped: BTreeMap::new(),
            latest: Nanos::ZERO,
            manifest: None,
            used: BTreeSet::new(),
            passed_over: BTreeSet::new(),
            refused: BTreeSet::new(),
        }
    }

    /// Lets `read` hand over what is there.
    pub fn read<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let outcome = read(self);
        for (pod, source) in std::mem::take(&mut self.deferred) {
            self.pod(&pod, &source, None);
        }
        outcome
    }

    /// Lets `read` hand over what would be applied on top.
    pub fn apply<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        self.manifest = Some(Manifest::after(self.latest));
        let outcome = read(self);
        if let Some(manifest) = self.manifest.take() {
            for made in manifest.pods() {
                self.pod(&made.pod, &made.source, Some(made.created));
            }
        }
        outcome
    }

    /// Groups meet their pods, levels are chosen, everything is put in order.
    pub fn finish(mut self) -> World {
        let mut members = self.members();
        for member in &mut members {
            intake::follow_owner(member, &self.owners);
        }
        self.place_volumes(&mut members);
        let mut nodes = self.nodes;
        for node in nodes.values_mut() {
            self.volumes.offer(node);
        }
        let mut implied_levels = Vec::new();
        for dialect in &mut self.dialects {
            implied_levels.extend(dialect.levels(&mut nodes, &mut self.complaints));
        }
        let gangs = {
            let mut roster = Roster::new();
            for member in &mut members {
                if let Some(link) = &member.link {
                    roster.entry(link.key.clone()).or_default().push(member);
                }
            }
            let mut around = Surroundings {
                only: None,
                priority_class: &|name| self.reader.priorities.value(name),
                owner_annotation: &|namespace, kind, name, annotation| {
                    self.owners.annotation(namespace, kind, name, annotation)
                },
                complaints: &mut self.complaints,
            };
            let dialects = self.dialects.iter();
            let mut gangs: Vec<_> = dialects
                .flat_map(|dialect| dialect.gangs(&mut roster, &mut around))
                .collect();
            gangs.sort_by(|one, other| one.key.cmp(&other.key));
            for gang in &mut gangs {
                gang.problem = gang.problem.take().or_else(|| gang.check().err());
            }
            gangs
        };
        cards::share_where_shared(&mut nodes, &members);
        cards::complain_of_absent(&nodes, &members, &mut self.complaints);
        levels::complain_of_absent_selectors(&nodes, &members, &mut self.complaints);
        let templates = &mut self.reader.templates;
        cards::exclude_others(&mut members, templates, &mut self.complaints);
        self.card_ids.tell(&mut members, templates);
        let levels = match &self.options.levels {
            Some(levels) => {
                levels::complain_of_absent(levels, &nodes, &mut self.complaints);
                levels.clone()
            }
            None => levels::choose(&nodes, &implied_levels, &gangs),
        };
        let counts = Counts {
            nodes: nodes.len(),
            groups: gangs.len(),
            pods: members.len(),
            skipped: self.skipped,
        };
        let namespaces = self
            .namespaces
            .into_iter()
            .map(|(name, labels)| Event::Namespace { name, labels });
        let images = self.images.into_iter();
        let images = images.filter(|(_, images)| !images.is_empty());
        let events = namespaces
            .chain(nodes.into_values().map(Event::Node))
            .chain(images.map(|(name, images)| Event::NodeImages { name, images }))
            .chain(gangs.into_iter().map(Event::Gang))
            .chain(members.into_iter().map(|member| Event::Pod(member.spec)));
        World {
            levels,
            events: events.collect(),
            complaints: self.complaints,
            useless: self.refused.difference(&self.used).cloned().collect(),
            counts,
            now: self.latest,
        }
    }

    /// The pods in the order of their creation, with the labels that rules name by now.
    fn members(&mut self) -> Vec<Member> {
        let mut members = std::mem::take(&mut self.pods).into_vec();
        for member in &mut members {
            let template = &mut member.spec.template;
            *template = self.reader.templates.relabel(template, &member.labels);
        }
        members
    }

    /// Claims meet their volumes, and pods their claims.
    fn place_volumes(&mut self, members: &mut [Member]) {
        for pod in std::mem::take(&mut self.made) {
            self.volumes.expect(&pod);
        }
        for Member { spec, volumes, .. } in members.iter() {
            let (namespace, name) = (&spec.namespace, &spec.name);
            self.volumes.note_pod(namespace, name, volumes, Some(spec));
        }
        self.volumes.settle();
        let unknown = self.volumes.unknown();
        if !unknown.is_empty() {
            self.complaints.push(Complaint {
                source: load::Source::file("the input"),
                object: String::new(),
                field: String::new(),
                value: format!("no {}, though pods use claims", unknown.join(" and no ")),
                accepted: "those of the cluster; without them pods are placed as if their volumes \
                           could be reached from every node"
                    .into(),
                severity: Severity::Warning,
            });
        }
        for Member { spec, volumes, .. } in members {
            if !volumes.is_empty() {
                let judged = self.volumes.judge(spec, volumes);
                judged.apply(spec, &mut self.reader.templates);
            }
        }
    }

    fn take(&mut self, target: Target, document: &Document<'_>) -> Result<(), Box<Complaint>> {
        let refuse = |field, value, accepted| {
            Err(Box::new(document.complaint(
                Severity::Refused,
                field,
                value,
                accepted,
            )))
        };
        if target != Target::Nobody && document.name.is_empty() {
            return refuse("metadata.name", "missing", "a name");
        }
        match target {
            Target::Namespace => {
                let namespace: api::Namespace = document.decode()?;
                let labels = namespace.metadata.labels.iter();
                let labels = labels.map(|(key, value)| (key.to_owned(), value.to_string()));
                self.namespaces
                    .insert(document.name.clone(), labels.collect());
            }
            Target::Node => {
                let node: api::Node = document.decode()?;
                self.card_ids.take(&node);
                let images = node_images(&node);
                let mut problems = Problems::default();
                let node = node_spec(&node, &mut problems);
                // Whatever cannot be read, the node is used.
                let complaints = problems.iter().map(|problem| Complaint {
                    severity: Severity::Warning,
                    ..*document.refusal(problem)
                });
                self.complaints.extend(complaints);
                self.images.insert(node.name.clone(), images);
                self.nodes.insert(node.name.clone(), node);
            }
            Target::Pod => {
                let pod: api::Pod = document.decode()?;
                if self.manifest.is_some() {
                    fields::pod::complain_of_unknown_fields(document, &mut self.complaints);
                    self.manifest_pod(pod, document)?;
                } else if pod.metadata.name.is_empty() {
                    return refuse("metadata.name", "missing", "a name");
                } else {
                    self.existing.add(&pod);
                    if pod.spec.priority.is_none() {
                        self.deferred.push((pod, document.source.clone()));
                    } else {
                        self.pod(&pod, &document.source, None);
                    }
                }
            }
            Target::PriorityClass => {
                let class: api::PriorityClass = document.decode()?;
                let inserted = self.reader.priorities.insert(&class);
                inserted.map_err(|problem| document.refusal(&problem))?;
            }
            Target::Volumes(kind) => {
                let complaints = self.volumes.take(kind, document)?;
                self.complaints.extend(complaints);
            }
            Target::Workload(workload) => self.workload(workload, document)?,
            Target::Group(number) => {
                let arrival = self.arrival();
                if let Some(dialect) = self.dialects.get_mut(number) {
                    dialect.take(document, arrival)?;
                    let complaints = &mut self.complaints;
                    intake::complain_of_unknown_fields(dialect.as_ref(), document, complaints);
                }
                let Owner { metadata } = document.decode()?;
                self.complain_of_misplaced(&metadata, document, &[], "on its pods");
                self.complain_of_maker(document, true)?;
            }
            Target::Nobody => {
                *self.skipped.entry(full_kind(document)).or_default() += 1;
                self.complain_of_maker(document, false)?;
            }
        }
        Ok(())
    }

    /// A dump is full of kinds that make no pods, or whose pods are there. Who plans a manifest of a
    /// kind that makes pods must not read "nothing waits".
    fn complain_of_maker(
        &mut self,
        document: &Document<'_>,
        is_read: bool,
    ) -> Result<(), Box<Complaint>> {
        let is_maker = MAKERS.contains(&document.kind.as_str());
        let may_make =
            document.kind == "ReplicationController" || MAKES_PODS.contains(&document.group());
        if self.manifest.is_none() || !may_make || is_read && !is_maker {
            return Ok(());
        }
        let file = Arc::clone(&document.source.file);
        if is_maker {
            self.refused.insert(file);
        } else {
            self.passed_over.insert(file);
        }
        let accepted = "a kind that is read: Pod, Job, StatefulSet, Deployment, ReplicaSet and \
                        groups of pods; its pods are not planned";
        let kind = full_kind(document);
        Err(Box::new(document.complaint(
            Severity::Warning,
            "kind",
            &kind,
            accepted,
        )))
    }

    /// Names annotations of ours on an object whose pods do not get them.
    fn complain_of_misplaced(
        &mut self,
        metadata: &api::ObjectMeta,
        document: &Document<'_>,
        known: &[&str],
        accepted: &str,
    ) {
        for key in annotations::misplaced(&metadata.annotations, known) {
            let field = format!("metadata.annotations[{key}]");
            let value = "its pods do not get it";
            let complaint = document.complaint(Severity::Warning, field, value, accepted);
            self.complaints.push(complaint);
        }
    }

    /// When an object counts as created that does not say so itself.
    fn arrival(&mut self) -> Nanos {
        self.manifest.as_mut().map_or(Nanos::ZERO, Manifest::next)
    }

    /// Takes note of a workload; of one in a manifest also the pods that it would get.
    fn workload(&mut self, kind: Workload, document: &Document<'_>) -> Result<(), Box<Complaint>> {
        let Owner { metadata } = document.decode()?;
        self.owners.take(&document.kind, &metadata.name, &metadata);
        if self.manifest.is_some() {
            let place = "in spec.template.metadata.annotations";
            let known = &annotations::OF_A_WORKLOAD;
            self.complain_of_misplaced(&metadata, document, known, place);
            fields::pod::complain_of_unknown_fields(document, &mut self.complaints);
        }
        let Some(manifest) = &mut self.manifest else {
            return Ok(());
        };
        let existing = &self.existing;
        let created = api::Timestamp(manifest.next());
        let pods = match kind {
            Workload::StatefulSet => expand::stateful_set(&document.decode()?, existing, created),
            Workload::ReplicaSet => expand::replica_set(&document.decode()?, existing, created),
            Workload::Deployment => expand::deployment(&document.decode()?, existing, created),
            Workload::Job => expand::job(&document.decode()?, existing, created),
            Workload::DaemonSet => {
                self.refused.insert(Arc::clone(&document.source.file));
                let accepted =
                    "Deployment, Job, Pod, ReplicaSet, StatefulSet; its pods are left out";
                return Err(Box::new(document.complaint(
                    Severity::Warning,
                    "kind",
                    "DaemonSet",
                    accepted,
                )));
            }
        };
        let pods = pods.map_err(|problem| document.refusal(&problem))?;
        // A deployment's pods belong to a replica set, which has the deployment's annotations.
        if let Some(owner) = pods.first().and_then(|pod| pod.metadata.controller()) {
            self.owners.take(&owner.kind, &owner.name, &metadata);
        }
        let alone = |pod: &api::Pod| matches!(intake::link(&self.dialects, pod), Ok(None));
        if pods.first().is_some_and(alone)
            && let Some(field) = intake::group_on_owner(&self.dialects, &metadata)
        {
            let accepted = "in spec.template.metadata";
            let value = "its pods do not get it, so they have no group";
            let complaint = document.complaint(Severity::Warning, field, value, accepted);
            self.complaints.push(complaint);
        }
        for pod in &pods {
            self.existing.add(pod);
        }
        manifest.add(pods, document);
        Ok(())
    }

    /// Takes a pod of a manifest in. One that is there already is only changed.
    fn manifest_pod(
        &mut self,
        pod: api::Pod,
        document: &Document<'_>,
    ) -> Result<(), Box<Complaint>> {
        let Some(manifest) = &mut self.manifest else {
            return Ok(());
        };
        let metadata = &pod.metadata;
        let pod = if self
            .existing
            .contains(metadata.namespace_or_default(), &metadata.name)
        {
            Some(pod)
        } else {
            let created = api::Timestamp(manifest.next());
            let made = expand::pod(&pod, &self.existing, created);
            made.map_err(|problem| document.refusal(&problem))?
        };
        if let Some(pod) = pod {
            self.existing.add(&pod);
            manifest.add([pod], document);
        }
        Ok(())
    }

    /// Takes a pod in. `created` is set for pods that would be made.
    fn pod(&mut self, pod: &api::Pod, source: &load::Source, created: Option<Nanos>) {
        self.reader.templates.learn(&pod.spec);
        let (reader, complaints) = (&mut self.reader, &mut self.complaints);
        let mut member = Member::read(pod, reader, &self.dialects, source, complaints);
        let spec = &mut member.spec;
        let group = |metadata| intake::misplaced_group(&self.dialects, metadata);
        if let Some((field, accepted)) = group(&pod.metadata).filter(|_| member.link.is_none()) {
            self.complaints.push(Complaint {
                source: source.clone(),
                object: format!("Pod {}/{}", spec.namespace, spec.name),
                field,
                value: "names no group here".into(),
                accepted,
                severity: Severity::Warning,
            });
        }
        if let Some(created) = created {
            spec.created = created;
        }
        let times = [Some(spec.created), spec.started];
        self.latest = times.into_iter().flatten().fold(self.latest, Nanos::max);
        if created.is_some() && !member.volumes.is_empty() {
            self.made.push(pod.clone());
        }
        self.pods.take(member, created.is_some());
    }
}

/// Kind and group, as `kubectl` names them.
fn full_kind(document: &Document<'_>) -> String {
    match document.group() {
        "" => document.kind.clone(),
        group => format!("{}.{group}", document.kind),
    }
}

impl Sink for Builder<'_> {
    fn document(&mut self, document: Document<'_>) {
        let outcome = match kinds::target(&document, &self.dialects) {
            Ok(target) => self.take(target, &document).map(|()| target),
            Err(accepted) => {
                let value = document.api_version.as_str();
                let field = "apiVersion";
                Err(Box::new(document.complaint(
                    Severity::Refused,
                    field,
                    value,
                    accepted,
                )))
            }
        };
        match outcome {
            Err(complaint) => self.complaint(*complaint),
            Ok(target) if self.manifest.is_some() => {
                let files = if target == Target::Nobody {
                    &mut self.passed_over
                } else {
                    &mut self.used
                };
                files.insert(document.source.file);
            }
            Ok(_) => {}
        }
    }

    fn complaint(&mut self, complaint: Complaint) {
        if self.manifest.is_some() && complaint.severity == Severity::Refused {
            self.refused.insert(Arc::clone(&complaint.source.file));
        }
        self.complaints.push(complaint);
    }

    fn progress(&mut self, done: u64, total: u64) {
        (self.progress)(done, total);
    }
}
