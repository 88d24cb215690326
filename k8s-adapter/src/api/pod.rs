//! The pod.

use serde::Deserialize;

use super::{
    Affinity, ImageName, ObjectMeta, ResourceList, StringMap, Timestamp, Toleration,
    TopologySpreadConstraint, Volume, or_default, whole_number,
};

/// A pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Name, labels, owners.
    pub metadata: ObjectMeta,
    /// What it wants.
    pub spec: PodSpec,
    /// What became of it.
    #[serde(deserialize_with = "or_default")]
    pub status: PodStatus,
}

/// What a pod wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// The node it is bound to.
    #[serde(deserialize_with = "or_default")]
    pub node_name: Box<str>,
    /// Who shall place it; empty means `default-scheduler`.
    #[serde(deserialize_with = "or_default")]
    pub scheduler_name: Box<str>,
    /// Higher goes first; set by the API server from the priority class.
    #[serde(deserialize_with = "whole_number")]
    pub priority: Option<i64>,
    /// Name of the priority class.
    #[serde(deserialize_with = "or_default")]
    pub priority_class_name: Box<str>,
    /// Hold it back as long as there are any.
    #[serde(deserialize_with = "or_default")]
    pub scheduling_gates: Vec<Named>,
    /// Its native group.
    pub scheduling_group: Option<SchedulingGroup>,
    /// Its native group as Kubernetes 1.35 wrote it, which later versions dropped.
    pub workload_ref: Option<WorkloadReference>,
    /// Containers that run side by side.
    #[serde(deserialize_with = "or_default")]
    pub containers: Vec<Container>,
    /// Containers that run before, and sidecars that start with them.
    #[serde(deserialize_with = "or_default")]
    pub init_containers: Vec<Container>,
    /// What the runtime itself needs.
    pub overhead: ResourceList,
    /// Amounts for the pod as a whole.
    pub resources: Option<ResourceRequirements>,
    /// Labels that its node must carry.
    pub node_selector: StringMap<Box<str>>,
    /// Affinity to nodes and pods.
    pub affinity: Option<Affinity>,
    /// Taints that it puts up with.
    #[serde(deserialize_with = "or_default")]
    pub tolerations: Vec<Toleration>,
    /// How evenly it and its like must lie.
    #[serde(deserialize_with = "or_default")]
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,
    /// Whether its ports are the node's.
    pub host_network: Option<bool>,
    /// The longest time it may run.
    #[serde(deserialize_with = "whole_number")]
    pub active_deadline_seconds: Option<i64>,
    /// Claims on devices that are allocated by the scheduler.
    #[serde(deserialize_with = "or_default")]
    pub resource_claims: Vec<Named>,
    /// What it mounts.
    #[serde(deserialize_with = "or_default")]
    pub volumes: Vec<Volume>,
}

/// Something of which only the name matters: a gate, a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Named {
    /// The name.
    #[serde(deserialize_with = "or_default")]
    pub name: Box<str>,
}

/// The link to a `Workload` of Kubernetes 1.35.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct WorkloadReference {
    /// The workload's name.
    #[serde(deserialize_with = "or_default")]
    pub name: Box<str>,
}

/// The native group of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SchedulingGroup {
    /// Name of a `PodGroup` in the pod's namespace.
    #[serde(deserialize_with = "or_default")]
    pub pod_group_name: Box<str>,
}

/// A container of any kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    /// Its name.
    #[serde(deserialize_with = "or_default")]
    pub name: Box<str>,
    /// What it runs.
    #[serde(deserialize_with = "or_default")]
    pub image: ImageName,
    /// What it needs.
    #[serde(deserialize_with = "or_default")]
    pub resources: ResourceRequirements,
    /// Its ports.
    #[serde(deserialize_with = "or_default")]
    pub ports: Vec<ContainerPort>,
    /// `Always` makes an init container a sidecar.
    #[serde(deserialize_with = "or_default")]
    pub restart_policy: Box<str>,
}

/// What a container or a pod needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ResourceRequirements {
    /// Guaranteed.
    pub requests: ResourceList,
    /// At most.
    pub limits: ResourceList,
}

/// A port of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerPort {
    /// The port inside.
    #[serde(deserialize_with = "whole_number")]
    pub container_port: Option<i64>,
    /// The port of the node; absent or 0 means none.
    #[serde(deserialize_with = "whole_number")]
    pub host_port: Option<i64>,
    /// `TCP` (default), `UDP` or `SCTP`.
    #[serde(deserialize_with = "or_default")]
    pub protocol: Box<str>,
    /// The address of the node; empty means all.
    #[serde(deserialize_with = "or_default", rename = "hostIP")]
    pub host_ip: Box<str>,
}

/// What became of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    #[serde(deserialize_with = "or_default")]
    pub phase: Box<str>,
    /// The node where a scheduler makes room for it.
    #[serde(deserialize_with = "or_default")]
    pub nominated_node_name: Box<str>,
    /// When the kubelet took it on.
    pub start_time: Option<Timestamp>,
    /// Conditions.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
    /// What the containers were given.
    #[serde(deserialize_with = "or_default")]
    pub container_statuses: Vec<ContainerStatus>,
    /// What the init containers and sidecars were given.
    #[serde(deserialize_with = "or_default")]
    pub init_container_statuses: Vec<ContainerStatus>,
    /// What the pod as a whole was given, from the kubelet's books.
    pub allocated_resources: Option<ResourceList>,
    /// What the pod as a whole was given, as it runs.
    pub resources: Option<ResourceRequirements>,
}

/// What a container was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStatus {
    /// The container's name.
    #[serde(deserialize_with = "or_default")]
    pub name: Box<str>,
    /// From the kubelet's books.
    pub allocated_resources: Option<ResourceList>,
    /// As it runs.
    pub resources: Option<ResourceRequirements>,
}

/// A condition of a pod or a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Condition {
    /// Which.
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub kind: Box<str>,
    /// `True`, `False` or `Unknown`.
    #[serde(deserialize_with = "or_default")]
    pub status: Box<str>,
    /// Why, in one word.
    #[serde(deserialize_with = "or_default")]
    pub reason: Box<str>,
}
