//! Group objects in, gangs out: one file for each system that has groups of pods ("dialect").
//!
//! A [`Dialect`] is given its objects one by one, says of each pod which of its groups the pod names,
//! and at the end turns its groups into [`GangSpec`]s, each with the members at hand, because in some
//! systems the pods decide which roles there are. Offline everything is known by then; a live
//! scheduler calls [`Dialect::gangs`] again with the members of the group that an event touched. An
//! object that cannot be honoured becomes a gang with a [`Problem`]: its pods wait with that reason,
//! nobody else is harmed. Pods whose group has no object yet stay linked to it and wait.
//!
//! To add a dialect: write its file, add it to [`dialects`].

use std::collections::{BTreeMap, BTreeSet};

use gangline::{
    cluster::NodeSpec,
    gang::{GangKey, GangSpec, PodSpec, Problem},
    request::LabelSelector,
    units::Nanos,
};

use crate::{
    annotations,
    api::{self, Labels, Pod, ResourceList},
    cards,
    fields::Field,
    load::{Complaint, Document, Severity, Source},
    member::{PodReader, pod_complaint},
    problem::{FieldPath, Problems, problem},
    rules,
    volumes::{self, PodVolume},
};

mod fields;
mod grove;
mod jobset;
mod kai;
mod koordinator;
mod kubeflow;
mod kueue;
mod leaderworkerset;
mod link;
pub(crate) mod native;
mod owner;
mod ray;
mod roles;
pub(crate) mod scheduler_plugins;
mod store;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod volcano;
mod yunikorn;

pub(crate) use fields::complain_of_unknown_fields;
pub use link::{Link, Said, link};
pub(crate) use owner::{Controller, follow as follow_owner};
use store::Stored;

/// All dialects. Where the groups of several follow from what made a pod, the first one's counts.
pub fn dialects() -> Vec<Box<dyn Dialect>> {
    vec![
        Box::new(native::Native::default()),
        Box::new(scheduler_plugins::SchedulerPlugins::default()),
        Box::new(kai::Kai::default()),
        Box::new(koordinator::Koordinator),
        Box::new(yunikorn::YuniKorn),
        Box::new(grove::Grove::default()),
        Box::new(leaderworkerset::LeaderWorkerSets::default()),
        Box::new(jobset::JobSets::default()),
        Box::new(kubeflow::Kubeflow::default()),
        Box::new(ray::Ray::default()),
        Box::new(kueue::Kueue),
        Box::new(owner::OwnersPods),
        Box::new(volcano::Volcano::default()),
    ]
}

/// A system that has groups of pods.
pub trait Dialect: Send {
    /// The objects that it reads, if its groups have any.
    fn kinds(&self) -> &'static [Kind] {
        &[]
    }

    /// Takes note of one of its objects; one of the same name replaces what was there. `arrival` is
    /// when an object counts as created that does not say so itself.
    fn take(&mut self, document: &Document<'_>, arrival: Nanos) -> Result<(), Box<Complaint>> {
        let _ = (document, arrival);
        Ok(())
    }

    /// The labels and annotations by which pods name their group.
    fn group_keys(&self) -> &'static [GroupKey] {
        &[]
    }

    /// An object is gone; of kinds that are not its own it knows nothing.
    fn forget(&mut self, group: &str, kind: &str, namespace: &str, name: &str) {
        let _ = (group, kind, namespace, name);
    }

    /// The group that a pod names, if it names one of this dialect.
    fn link(&self, pod: &Pod) -> Option<Link>;

    /// Node labels that its objects imply are added to the nodes; returns these labels, coarse to
    /// fine. Called once, before [`gangs`](Self::gangs).
    fn levels(
        &mut self,
        nodes: &mut BTreeMap<String, NodeSpec>,
        complaints: &mut Vec<Complaint>,
    ) -> Vec<String> {
        let _ = (nodes, complaints);
        Vec::new()
    }

    /// The group that an object of one of its kinds makes, where it is about no other group.
    fn group_of(&self, kind: &str, namespace: &str, name: &str) -> Option<GangKey> {
        let _ = (kind, namespace, name);
        None
    }

    /// Whether what becomes of a group that pods name depends on other groups too.
    fn depends_on_others(&self, group: &GangKey) -> bool {
        let _ = group;
        false
    }

    /// Its groups as gangs, those that are [asked for](Surroundings::only), ordered by key. Sets the role
    /// of each member, and its gang where that is another than the one that the pod names.
    fn gangs(&self, roster: &mut Roster<'_>, around: &mut Surroundings<'_>) -> Vec<GangSpec>;
}

/// A kind of object and the versions of it that are read.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// API group.
    pub group: &'static str,
    /// Versions.
    pub versions: &'static [&'static str],
    /// Kind.
    pub kind: &'static str,
    /// The fields of its spec; empty where they are not looked at.
    pub spec: &'static [Field],
}

/// A label or an annotation that names a pod's group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKey {
    /// `metadata.labels[...]`
    Label(&'static str),
    /// `metadata.annotations[...]`
    Annotation(&'static str),
}

impl GroupKey {
    /// The field that has it in the wrong place, and the one that should.
    fn misplaced(self, metadata: &api::ObjectMeta) -> Option<(String, String)> {
        let label = |key| format!("metadata.labels[{key}]");
        let annotation = |key| format!("metadata.annotations[{key}]");
        match self {
            Self::Label(key) => {
                let is_there = metadata.annotations.get(key).is_some();
                is_there.then(|| (annotation(key), label(key)))
            }
            Self::Annotation(key) => {
                let is_there = metadata.labels.get(key).is_some();
                is_there.then(|| (label(key), annotation(key)))
            }
        }
    }

    /// The field that an object has it in, in the right place or not.
    fn anywhere(self, metadata: &api::ObjectMeta) -> Option<String> {
        let (Self::Label(key) | Self::Annotation(key)) = self;
        let maps = [
            (&metadata.labels, "labels"),
            (&metadata.annotations, "annotations"),
        ];
        let found = maps.into_iter().find(|(map, _)| map.get(key).is_some());
        found.map(|(_, map)| format!("metadata.{map}[{key}]"))
    }
}

/// Whether a node label is one that objects of some dialect imply.
#[cfg(feature = "live")]
pub(crate) fn implies(label: &str) -> bool {
    volcano::implies(label)
}

fn group_keys(dialects: &[Box<dyn Dialect>]) -> impl Iterator<Item = GroupKey> {
    let keys = dialects.iter().flat_map(|dialect| dialect.group_keys());
    keys.copied()
}

/// What names a group in the wrong place of a pod that has none: the field, and the right one.
pub(crate) fn misplaced_group(
    dialects: &[Box<dyn Dialect>],
    pod: &api::ObjectMeta,
) -> Option<(String, String)> {
    group_keys(dialects).find_map(|key| key.misplaced(pod))
}

/// What names a group on an object that makes pods, where nobody reads it.
pub(crate) fn group_on_owner(
    dialects: &[Box<dyn Dialect>],
    owner: &api::ObjectMeta,
) -> Option<String> {
    group_keys(dialects).find_map(|key| key.anywhere(owner))
}

/// A pod and the group that it names.
#[derive(Clone, Debug)]
pub struct Member {
    /// Where it was read.
    pub source: Source,
    /// The pod.
    pub spec: PodSpec,
    /// The group that it names.
    pub link: Option<Link>,
    /// What controls it: a word on that makes a group too.
    pub(crate) controller: Option<Box<Controller>>,
    /// All its labels; its template keeps only those that some rule names.
    pub labels: Labels,
    /// The claims that it uses.
    pub(crate) volumes: Vec<PodVolume>,
    /// What somebody else gave it of cards.
    pub(crate) given: Vec<cards::Given>,
}

impl Member {
    /// Reads a pod and the group that it names. What is wrong with it is told.
    pub(crate) fn read(
        pod: &api::Pod,
        reader: &mut PodReader,
        dialects: &[Box<dyn Dialect>],
        source: &Source,
        complaints: &mut Vec<Complaint>,
    ) -> Self {
        let mut problems = Problems::default();
        let mut spec = reader.read(pod, &mut problems);
        let told = problems.iter();
        complaints.extend(told.map(|problem| pod_complaint(source, &spec, problem)));
        let link = link(dialects, pod).unwrap_or_else(|problem| {
            complaints.push(pod_complaint(source, &spec, &problem));
            spec.problem = Some(problem).filter(|_| spec.node.is_none());
            None
        });
        spec.gang = link.as_ref().map(|link| link.key.clone());
        if spec.template.cards.is_none() && spec.node.is_none() {
            for key in annotations::about_cards(&pod.metadata.annotations) {
                complaints.push(Complaint {
                    source: source.clone(),
                    object: format!("Pod {}/{}", spec.namespace, spec.name),
                    field: format!("metadata.annotations[{key}]"),
                    value: "decides nothing, since the pod asks for no card".into(),
                    accepted: "on a pod that asks for cards, such as nvidia.com/gpu: 1".into(),
                    severity: Severity::Warning,
                });
            }
        }
        Self {
            source: source.clone(),
            spec,
            link,
            controller: owner::controller(&pod.metadata),
            labels: pod.metadata.labels.clone(),
            volumes: volumes::of_pod(pod),
            given: cards::given_to(pod),
        }
    }
}

/// The members of each group, oldest first, by the key that they name.
pub type Roster<'a> = BTreeMap<GangKey, Vec<&'a mut Member>>;

/// What a dialect may need besides its own objects.
pub struct Surroundings<'a> {
    /// The value of a priority class, by its name.
    pub priority_class: &'a dyn Fn(&str) -> Option<i32>,
    /// An annotation of an owner: namespace, kind, name, annotation.
    pub owner_annotation: &'a dyn Fn(&str, &str, &str, &str) -> Option<String>,
    /// The groups that are asked for, which are all that the roster has; `None`: all that there are. None
    /// of them [depends on others](Dialect::depends_on_others).
    pub only: Option<&'a BTreeSet<GangKey>>,
    /// Complaints go here.
    pub complaints: &'a mut Vec<Complaint>,
}

/// A selector over labels; what is wrong with it first is the problem of the object that has it.
fn label_selector(
    selector: &api::LabelSelector,
    path: &FieldPath<'_>,
) -> Result<LabelSelector, Problem> {
    let mut problems = Problems::default();
    let selector = rules::label_selector(selector, path, &mut problems);
    match problems.first() {
        Some(problem) => Err(problem.clone()),
        None => Ok(selector),
    }
}

/// A whole number of members or groups: absent means `absent`, and less than `least` is refused.
fn count(value: Option<i64>, absent: u32, least: u32, field: &str) -> Result<u32, Problem> {
    let Some(value) = value else {
        return Ok(absent);
    };
    let accepted = u32::try_from(value)
        .ok()
        .filter(|&value| value >= least && value <= MOST);
    accepted.ok_or_else(|| {
        let message = format!("{value}; accepted: {least} to {MOST}");
        problem("InvalidMinimum", field, message)
    })
}

/// A whole number of members, from 1, that pods say in an annotation.
fn said_count(word: Option<&str>, key: &str) -> Result<u32, Problem> {
    let field = format!("metadata.annotations[{key}]");
    let refuse = |said: &str| {
        let message = format!("{said}; accepted: 1 to {MOST}");
        problem("InvalidMinimum", &field, message)
    };
    let word = word.ok_or_else(|| refuse("missing"))?;
    let number = word.parse().map_err(|_| refuse(&format!("{word:?}")))?;
    count(Some(number), 1, 1, &field)
}

/// What fits the `int32` of all these APIs.
const MOST: u32 = i32::MAX as u32;

impl Surroundings<'_> {
    /// The priority of a group: its own number, that of its class, or the highest of its members'.
    fn priority<S>(
        &mut self,
        number: Option<i64>,
        class: &str,
        members: &[&mut Member],
        stored: &Stored<S>,
    ) -> i32 {
        if let Some(number) = number {
            return number.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
        }
        if !class.is_empty() {
            if let Some(priority) = (self.priority_class)(class) {
                return priority;
            }
            let accepted =
                "the name of a PriorityClass that is there; its members' priority is used";
            self.warn(stored, "spec.priorityClassName", class, accepted);
        }
        members
            .iter()
            .map(|member| member.spec.priority)
            .max()
            .unwrap_or(0)
    }

    /// What pods of a group say in an annotation that should be alike on all: the oldest one's counts,
    /// and another one's gets a word.
    fn agreed<S>(
        &mut self,
        members: &[&mut Member],
        key: &str,
        stored: &Stored<S>,
    ) -> Option<Box<str>> {
        let word = |member: &Member| {
            let said = member.link.as_ref()?.said.as_deref()?;
            said.word(key).map(Box::from)
        };
        let agreed: Box<str> = members.iter().find_map(|member| word(member))?;
        let others = members
            .iter()
            .filter_map(|member| Some((word(member)?, member)));
        let other = others.into_iter().find(|(word, _)| *word != agreed);
        if let Some((word, member)) = other {
            let value = format!("{word} on pod {}", member.spec.name);
            let accepted = format!("what the oldest pod of the group says, which counts: {agreed}");
            let field = format!("metadata.annotations[{key}]");
            self.warn(stored, &field, &value, &accepted);
        }
        Some(agreed)
    }

    /// Checks amounts that decide nothing here: the search counts the members themselves.
    fn check_amounts<S>(&mut self, amounts: &ResourceList, field: &str, stored: &Stored<S>) {
        for (resource, amount) in amounts.iter() {
            if let Err(error) = amount.units() {
                self.warn(
                    stored,
                    &format!("{field}.{resource}"),
                    &error.to_string(),
                    "",
                );
            }
        }
    }

    fn warn<S>(&mut self, stored: &Stored<S>, field: &str, value: &str, accepted: &str) {
        self.complaints.push(Complaint {
            source: stored.source.clone(),
            object: stored.object.clone(),
            field: field.into(),
            value: value.into(),
            accepted: accepted.into(),
            severity: Severity::Warning,
        });
    }

    fn refuse<S>(&mut self, stored: &Stored<S>, problem: &Problem) {
        let complaint = Complaint::from_problem(&stored.source, &stored.object, problem);
        self.complaints.push(complaint);
    }
}
