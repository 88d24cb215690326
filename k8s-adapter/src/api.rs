//! The Kubernetes objects that Gangline reads, cut down to the fields that decide something.
//!
//! Data enters through serde, from JSON or YAML alike; it leaves as plain structs that the other
//! rooms read. Fields that are not listed are skipped unseen (a dump is full of them), `null` means
//! "absent" as it does for the API server, and a key that is given twice is an error. Words such as
//! a pod's phase stay text here: who reads them says what is accepted. Nothing here judges, adds up
//! or fills in defaults.
//!
//! Why not `k8s-openapi`: it decodes every field of every object, which costs a big dump its ten
//! seconds, and it does not know the newest fields of older versions' objects.

mod affinity;
mod image;
mod map;
mod meta;
mod node;
mod pod;
mod scalar;
mod volume;
mod workloads;

pub use affinity::{
    Affinity, LabelSelector, LabelSelectorRequirement, NodeAffinity, NodeSelector,
    NodeSelectorRequirement, NodeSelectorTerm, PodAffinity, PodAffinityTerm,
    PreferredSchedulingTerm, Toleration, TopologySpreadConstraint, WeightedPodAffinityTerm,
};
pub use image::ImageName;
pub use map::StringMap;
pub use meta::{ObjectMeta, OwnerReference, Timestamp};
pub use node::{Namespace, Node, NodeImage, NodeSpec, NodeStatus, PriorityClass, Taint};
pub use pod::{
    Condition, Container, ContainerPort, ContainerStatus, Named, Pod, PodSpec, PodStatus,
    ResourceRequirements, SchedulingGroup,
};
pub use scalar::{or_default, whole_number};
pub use volume::{
    ClaimReference, ClaimResources, ClaimSource, CsiDriver, CsiDriverSpec, CsiNode, CsiNodeDriver,
    CsiNodeSpec, CsiSource, CsiStorageCapacity, EphemeralSource, PersistentVolume,
    PersistentVolumeClaim, PersistentVolumeClaimSpec, PersistentVolumeSpec, Phase, StorageClass,
    TopologySelectorRequirement, TopologySelectorTerm, Volume, VolumeLimit, VolumeNodeAffinity,
    class_of,
};
pub use workloads::{
    Deployment, DeploymentSpec, Job, JobSpec, PodTemplateSpec, ReplicaSet, ReplicaSetSpec,
    StatefulSet, StatefulSetOrdinals, StatefulSetSpec,
};

use crate::quantity::Quantity;

/// Labels or annotations.
pub type Labels = StringMap<Box<str>>;
/// Amounts by resource name.
pub type ResourceList = StringMap<Quantity>;
