//! Objects whose controllers make pods.

use serde::Deserialize;

use super::{LabelSelector, ObjectMeta, PersistentVolumeClaim, PodSpec, or_default, whole_number};

/// What the pods of a workload look like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PodTemplateSpec {
    /// Labels and annotations.
    #[serde(deserialize_with = "or_default")]
    pub metadata: ObjectMeta,
    /// What they want.
    pub spec: PodSpec,
}

/// Pods with stable names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct StatefulSet {
    /// Name and labels.
    pub metadata: ObjectMeta,
    /// What it wants.
    pub spec: StatefulSetSpec,
}

/// What a stateful set wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StatefulSetSpec {
    /// How many pods; absent means 1.
    #[serde(deserialize_with = "whole_number")]
    pub replicas: Option<i64>,
    /// How they are numbered.
    pub ordinals: Option<StatefulSetOrdinals>,
    /// Which pods are its own.
    pub selector: LabelSelector,
    /// What they look like.
    pub template: PodTemplateSpec,
    /// Claims that each of them gets.
    #[serde(deserialize_with = "or_default")]
    pub volume_claim_templates: Vec<PersistentVolumeClaim>,
}

/// How the pods of a stateful set are numbered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct StatefulSetOrdinals {
    /// The first number.
    #[serde(deserialize_with = "whole_number")]
    pub start: Option<i64>,
}

/// Pods that run to their end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Job {
    /// Name and labels.
    pub metadata: ObjectMeta,
    /// What it wants.
    pub spec: JobSpec,
}

/// What a job wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct JobSpec {
    /// How many pods run at a time; absent means 1.
    #[serde(deserialize_with = "whole_number")]
    pub parallelism: Option<i64>,
    /// How many pods must end well; absent means any one.
    #[serde(deserialize_with = "whole_number")]
    pub completions: Option<i64>,
    /// `NonIndexed` (default) or `Indexed`.
    #[serde(deserialize_with = "or_default")]
    pub completion_mode: Box<str>,
    /// No pods are made while it is set.
    pub suspend: Option<bool>,
    /// What they look like.
    pub template: PodTemplateSpec,
}

/// Interchangeable pods with a history of shapes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Deployment {
    /// Name and labels.
    pub metadata: ObjectMeta,
    /// What it wants.
    pub spec: DeploymentSpec,
}

/// What a deployment wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DeploymentSpec {
    /// How many pods; absent means 1.
    #[serde(deserialize_with = "whole_number")]
    pub replicas: Option<i64>,
    /// Which pods are its own.
    pub selector: LabelSelector,
    /// What they look like.
    pub template: PodTemplateSpec,
}

/// Interchangeable pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ReplicaSet {
    /// Name and labels.
    pub metadata: ObjectMeta,
    /// What it wants.
    pub spec: ReplicaSetSpec,
}

/// What a replica set wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ReplicaSetSpec {
    /// How many pods; absent means 1.
    #[serde(deserialize_with = "whole_number")]
    pub replicas: Option<i64>,
    /// Which pods are its own.
    pub selector: LabelSelector,
    /// What they look like.
    pub template: PodTemplateSpec,
}
