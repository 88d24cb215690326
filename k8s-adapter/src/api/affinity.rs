//! Where a pod may go: affinity, tolerations, spread.

use serde::Deserialize;

use super::{StringMap, or_default, whole_number};

/// A pod's affinity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Affinity {
    /// To nodes.
    pub node_affinity: Option<NodeAffinity>,
    /// To other pods.
    pub pod_affinity: Option<PodAffinity>,
    /// Away from other pods.
    pub pod_anti_affinity: Option<PodAffinity>,
}

/// Affinity to nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeAffinity {
    /// Must hold.
    pub required_during_scheduling_ignored_during_execution: Option<NodeSelector>,
    /// Liked.
    #[serde(deserialize_with = "or_default")]
    pub preferred_during_scheduling_ignored_during_execution: Vec<PreferredSchedulingTerm>,
}

/// Terms of which one must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeSelector {
    /// The terms.
    #[serde(deserialize_with = "or_default")]
    pub node_selector_terms: Vec<NodeSelectorTerm>,
}

/// A liked term.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PreferredSchedulingTerm {
    /// 1..=100.
    #[serde(deserialize_with = "whole_number")]
    pub weight: Option<i64>,
    /// The term.
    pub preference: NodeSelectorTerm,
}

/// Requirements on a node that must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeSelectorTerm {
    /// On its labels.
    #[serde(deserialize_with = "or_default")]
    pub match_expressions: Vec<NodeSelectorRequirement>,
    /// On its fields; only `metadata.name` exists.
    #[serde(deserialize_with = "or_default")]
    pub match_fields: Vec<NodeSelectorRequirement>,
}

/// One requirement on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeSelectorRequirement {
    /// Label or field.
    #[serde(deserialize_with = "or_default")]
    pub key: Box<str>,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.
    #[serde(deserialize_with = "or_default")]
    pub operator: Box<str>,
    /// Listed values.
    #[serde(deserialize_with = "or_default")]
    pub values: Vec<Box<str>>,
}

/// Affinity to, or away from, other pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodAffinity {
    /// Must hold, all of them.
    #[serde(deserialize_with = "or_default")]
    pub required_during_scheduling_ignored_during_execution: Vec<PodAffinityTerm>,
    /// Liked.
    #[serde(deserialize_with = "or_default")]
    pub preferred_during_scheduling_ignored_during_execution: Vec<WeightedPodAffinityTerm>,
}

/// A liked term.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WeightedPodAffinityTerm {
    /// 1..=100.
    #[serde(deserialize_with = "whole_number")]
    pub weight: Option<i64>,
    /// The term.
    pub pod_affinity_term: PodAffinityTerm,
}

/// "Pods like these, in the domain that a node label names".
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodAffinityTerm {
    /// Which pods; absent means none.
    pub label_selector: Option<LabelSelector>,
    /// In which namespaces, by name.
    #[serde(deserialize_with = "or_default")]
    pub namespaces: Vec<Box<str>>,
    /// In which namespaces, by label; empty means all of them.
    pub namespace_selector: Option<LabelSelector>,
    /// The node label.
    #[serde(deserialize_with = "or_default")]
    pub topology_key: Box<str>,
    /// Labels whose values must equal the pod's own.
    #[serde(deserialize_with = "or_default")]
    pub match_label_keys: Vec<Box<str>>,
    /// Labels whose values must differ from the pod's own.
    #[serde(deserialize_with = "or_default")]
    pub mismatch_label_keys: Vec<Box<str>>,
}

/// A selector over labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LabelSelector {
    /// These labels with these values.
    pub match_labels: StringMap<Box<str>>,
    /// These tests.
    #[serde(deserialize_with = "or_default")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// One test on a label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LabelSelectorRequirement {
    /// The label.
    #[serde(deserialize_with = "or_default")]
    pub key: Box<str>,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    #[serde(deserialize_with = "or_default")]
    pub operator: Box<str>,
    /// Listed values.
    #[serde(deserialize_with = "or_default")]
    pub values: Vec<Box<str>>,
}

/// A word that the pod puts up with some taints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Toleration {
    /// The taint's key; empty with `Exists` means every taint.
    #[serde(deserialize_with = "or_default")]
    pub key: Box<str>,
    /// `Equal` (default), `Exists`, `Gt` or `Lt`.
    #[serde(deserialize_with = "or_default")]
    pub operator: Box<str>,
    /// The taint's value.
    #[serde(deserialize_with = "or_default")]
    pub value: Box<str>,
    /// The taint's effect; empty means every effect.
    #[serde(deserialize_with = "or_default")]
    pub effect: Box<str>,
}

/// How evenly pods must lie over the domains of a node label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopologySpreadConstraint {
    /// Allowed surplus over the emptiest domain.
    #[serde(deserialize_with = "whole_number")]
    pub max_skew: Option<i64>,
    /// The node label.
    #[serde(deserialize_with = "or_default")]
    pub topology_key: Box<str>,
    /// `DoNotSchedule` or `ScheduleAnyway`.
    #[serde(deserialize_with = "or_default")]
    pub when_unsatisfiable: Box<str>,
    /// Which pods are counted; absent means none.
    pub label_selector: Option<LabelSelector>,
    /// With fewer domains than this the emptiest counts as 0.
    #[serde(deserialize_with = "whole_number")]
    pub min_domains: Option<i64>,
    /// `Honor` (default) or `Ignore`.
    #[serde(deserialize_with = "or_default")]
    pub node_affinity_policy: Box<str>,
    /// `Honor` or `Ignore` (default).
    #[serde(deserialize_with = "or_default")]
    pub node_taints_policy: Box<str>,
    /// Labels whose values must equal the pod's own.
    #[serde(deserialize_with = "or_default")]
    pub match_label_keys: Vec<Box<str>>,
}
