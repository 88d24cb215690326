//! Nodes, and the cluster-wide objects that pods refer to by name.

use serde::Deserialize;

use super::{Condition, ImageName, ObjectMeta, ResourceList, or_default, whole_number};

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Name and labels.
    pub metadata: ObjectMeta,
    /// How it is marked.
    #[serde(deserialize_with = "or_default")]
    pub spec: NodeSpec,
    /// What it offers.
    #[serde(deserialize_with = "or_default")]
    pub status: NodeStatus,
}

/// How a node is marked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodeSpec {
    /// Keep pods away that do not tolerate them.
    #[serde(deserialize_with = "or_default")]
    pub taints: Vec<Taint>,
    /// Cordoned.
    pub unschedulable: Option<bool>,
}

/// A mark that keeps pods away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Taint {
    /// Its key.
    #[serde(deserialize_with = "or_default")]
    pub key: Box<str>,
    /// Its value.
    #[serde(deserialize_with = "or_default")]
    pub value: Box<str>,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    #[serde(deserialize_with = "or_default")]
    pub effect: Box<str>,
}

/// What a node offers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    /// What pods may use; absent means all of `capacity`.
    pub allocatable: Option<ResourceList>,
    /// What there is.
    pub capacity: ResourceList,
    /// Conditions.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
    /// Images that it has.
    #[serde(deserialize_with = "or_default")]
    pub images: Vec<NodeImage>,
}

/// An image that a node has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeImage {
    /// What it is called, by tag and by digest.
    #[serde(deserialize_with = "or_default")]
    pub names: Vec<ImageName>,
    /// Its size.
    #[serde(deserialize_with = "whole_number")]
    pub size_bytes: Option<i64>,
}

/// A namespace; only its labels matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Namespace {
    /// Name and labels.
    pub metadata: ObjectMeta,
}

/// A name for a priority.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PriorityClass {
    /// Its name.
    pub metadata: ObjectMeta,
    /// Higher goes first.
    #[serde(deserialize_with = "whole_number")]
    pub value: Option<i64>,
    /// Whether pods that name no class get it.
    pub global_default: Option<bool>,
}
