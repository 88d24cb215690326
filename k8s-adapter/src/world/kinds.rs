//! Which kinds of objects decide something, and who reads them.

use crate::{
    intake::{Dialect, Kind},
    load::Document,
    volumes,
};

/// Kinds whose controllers make pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workload {
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
}

/// Who reads an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Namespace,
    Node,
    Pod,
    PriorityClass,
    /// Claims, volumes, and what says where volumes can be.
    Volumes(volumes::Kind),
    Workload(Workload),
    /// The dialect of this number.
    Group(usize),
    /// Nobody: the kind decides nothing here.
    Nobody,
}

const fn kind(group: &'static str, kind: &'static str) -> Kind {
    Kind {
        group,
        versions: &["v1"],
        kind,
        spec: &[],
    }
}

/// Kubernetes' own kinds that are no groups.
const KINDS: [(Kind, Target); 15] = [
    (kind("", "Namespace"), Target::Namespace),
    (kind("", "Node"), Target::Node),
    (kind("", "Pod"), Target::Pod),
    (
        kind("scheduling.k8s.io", "PriorityClass"),
        Target::PriorityClass,
    ),
    (
        kind("", "PersistentVolumeClaim"),
        Target::Volumes(volumes::Kind::Claim),
    ),
    (
        kind("", "PersistentVolume"),
        Target::Volumes(volumes::Kind::Volume),
    ),
    (
        kind("storage.k8s.io", "StorageClass"),
        Target::Volumes(volumes::Kind::Class),
    ),
    (
        kind("storage.k8s.io", "CSINode"),
        Target::Volumes(volumes::Kind::Node),
    ),
    (
        kind("storage.k8s.io", "CSIDriver"),
        Target::Volumes(volumes::Kind::Driver),
    ),
    (
        kind("storage.k8s.io", "CSIStorageCapacity"),
        Target::Volumes(volumes::Kind::Capacity),
    ),
    (
        kind("apps", "Deployment"),
        Target::Workload(Workload::Deployment),
    ),
    (
        kind("apps", "ReplicaSet"),
        Target::Workload(Workload::ReplicaSet),
    ),
    (
        kind("apps", "StatefulSet"),
        Target::Workload(Workload::StatefulSet),
    ),
    (
        kind("apps", "DaemonSet"),
        Target::Workload(Workload::DaemonSet),
    ),
    (kind("batch", "Job"), Target::Workload(Workload::Job)),
];

/// All kinds that somebody reads.
pub(crate) fn all(dialects: &[Box<dyn Dialect>]) -> impl Iterator<Item = (Kind, Target)> {
    let groups = dialects.iter().enumerate().flat_map(|(number, dialect)| {
        dialect
            .kinds()
            .iter()
            .map(move |kind| (*kind, Target::Group(number)))
    });
    KINDS.into_iter().chain(groups)
}

/// What of its volumes' kinds an object is that is gone, if it is one.
pub(crate) fn of_volumes(group: &str, name: &str) -> Option<volumes::Kind> {
    let mut kinds = KINDS.iter();
    kinds.find_map(|(kind, target)| match target {
        Target::Volumes(volumes) if kind.group == group && kind.kind == name => Some(*volumes),
        _ => None,
    })
}

/// Whether an object that is gone is a priority class.
pub(crate) fn is_priority_class(group: &str, name: &str) -> bool {
    let mut kinds = KINDS.iter();
    kinds.any(|(kind, target)| {
        *target == Target::PriorityClass && kind.group == group && kind.kind == name
    })
}

/// Who reads this document, or the `apiVersion`s that somebody would read.
///
/// The same kind in another group is another kind and is nobody's, with one exception: five systems
/// call their groups `PodGroup`, and to pass over one in silence would place its pods one by one.
pub(crate) fn target(
    document: &Document<'_>,
    dialects: &[Box<dyn Dialect>],
) -> Result<Target, String> {
    let same_kind: Vec<_> = all(dialects)
        .filter(|(kind, _)| kind.kind == document.kind)
        .collect();
    let found = same_kind
        .iter()
        .find(|(kind, _)| kind.group == document.group());
    match found {
        Some((kind, target)) if kind.versions.contains(&document.version()) => Ok(*target),
        Some((kind, _)) => Err(api_versions([kind])),
        // The core group has none of these: the group was left out.
        None if document.kind == "PodGroup"
            || document.group().is_empty() && !same_kind.is_empty() =>
        {
            Err(api_versions(same_kind.iter().map(|(kind, _)| kind)))
        }
        None => Ok(Target::Nobody),
    }
}

fn api_versions<'a>(kinds: impl IntoIterator<Item = &'a Kind>) -> String {
    let names = kinds.into_iter().flat_map(|kind| {
        kind.versions.iter().map(move |version| match kind.group {
            "" => (*version).to_owned(),
            group => format!("{group}/{version}"),
        })
    });
    names.collect::<Vec<_>>().join(", ")
}
