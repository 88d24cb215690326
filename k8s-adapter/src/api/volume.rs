//! Volumes: what pods mount, claims, what claims are bound to, and what says where volumes can be.

use serde::Deserialize;

use super::{
    LabelSelector, Labels, NodeSelector, ObjectMeta, ResourceList, or_default, whole_number,
};
use crate::quantity::Quantity;

/// A volume of a pod. Of its sources only those that mean a claim are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Volume {
    /// Its name within the pod.
    #[serde(deserialize_with = "or_default")]
    pub name: Box<str>,
    /// A claim of the pod's namespace.
    pub persistent_volume_claim: Option<ClaimSource>,
    /// A claim that lives as long as the pod.
    pub ephemeral: Option<EphemeralSource>,
}

/// A claim by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimSource {
    /// The claim.
    #[serde(deserialize_with = "or_default")]
    pub claim_name: Box<str>,
}

/// A claim that is made for the pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EphemeralSource {
    /// What it looks like.
    pub volume_claim_template: Option<PersistentVolumeClaim>,
}

/// A claim on a volume, or what one will look like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PersistentVolumeClaim {
    /// Name, owner, annotations.
    #[serde(deserialize_with = "or_default")]
    pub metadata: ObjectMeta,
    /// What it wants.
    #[serde(deserialize_with = "or_default")]
    pub spec: PersistentVolumeClaimSpec,
    /// What became of it.
    #[serde(deserialize_with = "or_default")]
    pub status: Phase,
}

/// What a claim wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PersistentVolumeClaimSpec {
    /// How it may be mounted.
    #[serde(deserialize_with = "or_default")]
    pub access_modes: Vec<Box<str>>,
    /// Labels that its volume must carry.
    pub selector: Option<LabelSelector>,
    /// How large its volume must be.
    #[serde(deserialize_with = "or_default")]
    pub resources: ClaimResources,
    /// The volume that it is bound to, or shall be.
    #[serde(deserialize_with = "or_default")]
    pub volume_name: Box<str>,
    /// Its class. Absent: not chosen yet; empty: none.
    pub storage_class_name: Option<Box<str>>,
    /// `Filesystem` (default) or `Block`.
    #[serde(deserialize_with = "or_default")]
    pub volume_mode: Box<str>,
}

/// Amounts of a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ClaimResources {
    /// At least; only `storage` is read.
    pub requests: ResourceList,
}

/// The phase of a claim or volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Phase {
    /// `Pending`, `Bound`, `Lost`; `Available`, `Released`, `Failed`.
    #[serde(deserialize_with = "or_default")]
    pub phase: Box<str>,
}

/// A volume of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PersistentVolume {
    /// Name and labels.
    pub metadata: ObjectMeta,
    /// What it is.
    #[serde(deserialize_with = "or_default")]
    pub spec: PersistentVolumeSpec,
    /// What became of it.
    #[serde(deserialize_with = "or_default")]
    pub status: Phase,
}

/// What a volume of the cluster is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PersistentVolumeSpec {
    /// How it may be mounted.
    #[serde(deserialize_with = "or_default")]
    pub access_modes: Vec<Box<str>>,
    /// How large it is; only `storage` is read.
    pub capacity: ResourceList,
    /// The claim that it is bound to, or kept for.
    pub claim_ref: Option<ClaimReference>,
    /// From where it can be reached; absent: from everywhere.
    pub node_affinity: Option<VolumeNodeAffinity>,
    /// Its class.
    #[serde(deserialize_with = "or_default")]
    pub storage_class_name: Box<str>,
    /// `Filesystem` (default) or `Block`.
    #[serde(deserialize_with = "or_default")]
    pub volume_mode: Box<str>,
    /// The driver that attaches it.
    pub csi: Option<CsiSource>,
}

/// A claim from a volume's point of view.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ClaimReference {
    /// Namespace.
    #[serde(deserialize_with = "or_default")]
    pub namespace: Box<str>,
    /// Name.
    #[serde(deserialize_with = "or_default")]
    pub name: Box<str>,
    /// Identity; empty as long as the volume is only kept for a claim of that name.
    #[serde(deserialize_with = "or_default")]
    pub uid: Box<str>,
}

/// From where a volume can be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct VolumeNodeAffinity {
    /// Must hold.
    pub required: Option<NodeSelector>,
}

/// A volume of a CSI driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CsiSource {
    /// The driver.
    #[serde(deserialize_with = "or_default")]
    pub driver: Box<str>,
    /// What the driver calls the volume.
    #[serde(deserialize_with = "or_default")]
    pub volume_handle: Box<str>,
}

/// A kind of volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StorageClass {
    /// Name and annotations.
    pub metadata: ObjectMeta,
    /// Who makes volumes.
    #[serde(deserialize_with = "or_default")]
    pub provisioner: Box<str>,
    /// `Immediate` (default) or `WaitForFirstConsumer`.
    #[serde(deserialize_with = "or_default")]
    pub volume_binding_mode: Box<str>,
    /// Where volumes may be made; none: everywhere.
    #[serde(deserialize_with = "or_default")]
    pub allowed_topologies: Vec<TopologySelectorTerm>,
}

/// Requirements on a node that must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopologySelectorTerm {
    /// On its labels.
    #[serde(deserialize_with = "or_default")]
    pub match_label_expressions: Vec<TopologySelectorRequirement>,
}

/// A label with one of these values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct TopologySelectorRequirement {
    /// The label.
    #[serde(deserialize_with = "or_default")]
    pub key: Box<str>,
    /// The values.
    #[serde(deserialize_with = "or_default")]
    pub values: Vec<Box<str>>,
}

/// What the CSI drivers of a node say; it has the node's name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CsiNode {
    /// The node's name.
    pub metadata: ObjectMeta,
    /// Its drivers.
    #[serde(deserialize_with = "or_default")]
    pub spec: CsiNodeSpec,
}

/// The drivers of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CsiNodeSpec {
    /// The drivers.
    #[serde(deserialize_with = "or_default")]
    pub drivers: Vec<CsiNodeDriver>,
}

/// A driver on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CsiNodeDriver {
    /// The driver.
    #[serde(deserialize_with = "or_default")]
    pub name: Box<str>,
    /// How much of it there is.
    #[serde(deserialize_with = "or_default")]
    pub allocatable: VolumeLimit,
}

/// How many volumes a node can attach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct VolumeLimit {
    /// So many; absent: as many as one likes.
    #[serde(deserialize_with = "whole_number")]
    pub count: Option<i64>,
}

/// A CSI driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CsiDriver {
    /// Its name.
    pub metadata: ObjectMeta,
    /// What it can do.
    #[serde(deserialize_with = "or_default")]
    pub spec: CsiDriverSpec,
}

/// What a CSI driver can do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CsiDriverSpec {
    /// Whether it tells how much storage is left.
    pub storage_capacity: Option<bool>,
}

/// How much storage is left for a class, and from where it can be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CsiStorageCapacity {
    /// Namespace and name.
    pub metadata: ObjectMeta,
    /// The class.
    #[serde(deserialize_with = "or_default")]
    pub storage_class_name: Box<str>,
    /// Nodes that reach it; absent: none, empty: all.
    pub node_topology: Option<LabelSelector>,
    /// What is left.
    pub capacity: Option<Quantity>,
    /// The largest volume that can be made; where it is absent, what is left counts.
    pub maximum_volume_size: Option<Quantity>,
}

/// The annotation or the field that says the class of a claim or volume.
pub fn class_of(annotations: &Labels, field: Option<&str>) -> Option<Box<str>> {
    let annotated = annotations.get("volume.beta.kubernetes.io/storage-class");
    annotated.map(|name| &**name).or(field).map(Box::from)
}
