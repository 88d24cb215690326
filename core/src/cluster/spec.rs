//! What a node is, as an adapter states it.
//!
//! Data enters as [`NodeSpec`], the whole node at once: an update replaces what was said before and
//! keeps what runs there. The engine refuses what cannot be counted.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use crate::{bits::CardSet, device::links::LinkMatrix, request::Taint};

/// A node: what it offers, how it is marked, and where it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct NodeSpec {
    /// Its name: its identity for pods, and the last tie-break.
    pub name: String,
    /// Its labels; those that a level, selector or relation names decide, the others are ignored.
    pub labels: BTreeMap<String, String>,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// Cordoned: takes no new members.
    pub unschedulable: bool,
    /// Allocatable amounts by resource name, cards excluded, in the units of
    /// [`request`](crate::request). `pods` absent means [`NodeSpec::DEFAULT_PODS`].
    pub resources: BTreeMap<String, i64>,
    /// Its cards, at most one entry a kind.
    pub cards: Vec<NodeCards>,
}

/// Cards of one kind on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct NodeCards {
    /// The resource name that counts them, such as `nvidia.com/gpu`.
    pub kind: String,
    /// How many there are, numbered from 0. More than [`CardSet::CAPACITY`] (time slicing makes
    /// them) have no numbers: they are only counted.
    pub count: u32,
    /// The product, for people; empty when nobody said.
    pub model: String,
    /// Cards that must not be given to anyone.
    pub unhealthy: CardSet,
    /// Memory of one card in MiB; 0: what the model's table says.
    pub memory_mib: u32,
    /// How each card may be used: nothing means all whole, one entry holds for all, otherwise one
    /// entry a card.
    pub modes: Vec<CardMode>,
    /// How the cards reach each other; `None`: nobody told.
    pub links: Option<LinkMatrix>,
    /// MIG instances of which only the number is known, by profile: what a device plugin tells.
    pub slices: BTreeMap<String, u32>,
    /// Whether those who share a card are clients of MPS; otherwise they take turns.
    pub mps: bool,
    /// Of a card that is given in shares: how many there are at most; 0: as many as fit.
    pub most_shares: u32,
    /// Their MIG layout is being changed: nothing of them is given until that is over.
    pub is_changing: bool,
    /// Cards beside these that the node has and does not offer: which ones they are nobody told.
    pub withheld: u32,
}

/// How a card may be used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum CardMode {
    /// As a whole only.
    #[default]
    Whole,
    /// As a whole, or in shares of memory and processor time.
    Shared,
    /// In so many replicas, at least 2; the most are [`most_replicas`](crate::device::most_replicas).
    Replicas(u32),
    /// In the MIG instances that exist.
    MigStatic(Vec<MigInstance>),
    /// As a whole, or in MIG instances that are made when somebody needs them.
    MigDynamic,
}

/// A MIG instance that exists on a card.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct MigInstance {
    /// Its profile, such as `1g.10gb`.
    pub profile: String,
    /// The first memory slice that it takes.
    pub start: u8,
}

impl NodeSpec {
    /// Pod slots of a node that does not say: the kubelet's own default.
    pub const DEFAULT_PODS: i64 = 110;
}
