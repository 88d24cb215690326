//! Nodes, gangs and pods in the short form of a scenario.
//!
//! Data enters through serde; the sibling `build` makes the engine's objects of it. Unknown fields are
//! refused, so that a typo cannot turn a test into one that tests nothing.

use std::collections::BTreeMap;

use gangline::{
    device::links::{LinkMatrix, Nearness},
    gang::{LossMode, ScoringRule, TimeoutPolicy, spec::Disruption},
    request::{Apart, NodeRules, Template},
};
use serde::Deserialize;

use super::{
    devices::{Modes, OverheadShape, ShareShape, SliceShape},
    value::{CardCounts, Names, Span},
};
use crate::quantity::Quantity;

/// One node or several alike. Of a node that exists only the given fields change.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NodeShape {
    /// Its name, or a range of names.
    pub name: Names,
    /// Its cards.
    pub cards: Option<CardCounts>,
    /// The product of its cards.
    pub model: Option<String>,
    /// Numbers of its first kind's cards that must not be used.
    pub unhealthy: Option<Vec<u32>>,
    /// Memory of one card of its first kind.
    pub card_memory: Option<Quantity>,
    /// How its first kind's cards may be used.
    pub modes: Option<Modes>,
    /// Whether those who share its first kind's cards are clients of MPS.
    pub mps: Option<bool>,
    /// How many shares one of its first kind's cards may have at most.
    pub most_shares: Option<u32>,
    /// Whether the MIG layout of its first kind's cards is being changed.
    pub changing: Option<bool>,
    /// Cards of its first kind that it has beside these and does not offer.
    pub withheld: Option<u32>,
    /// How its first kind's cards reach each other: a known machine, or a matrix as text.
    pub links: Option<LinkMatrix>,
    /// MIG instances of its first kind's cards of which only the number is known, by profile.
    pub slices: Option<BTreeMap<String, u32>>,
    /// Cores.
    pub cpu: Option<Quantity>,
    /// Memory.
    pub memory: Option<Quantity>,
    /// Pod slots.
    pub pods: Option<u32>,
    /// Further resources.
    pub resources: BTreeMap<String, Quantity>,
    /// Labels; `kubernetes.io/hostname` is added.
    pub labels: Option<BTreeMap<String, String>>,
    /// Taints as `key=value:Effect` or `key:Effect`.
    pub taints: Option<Vec<String>>,
    /// Whether it takes no new members.
    pub cordoned: Option<bool>,
}

/// A kind of work of the usual mix, for prices.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UsualShape {
    /// What one member asks for.
    pub pod: PodShape,
    /// How often it is asked for, relative to the others; 1 when absent.
    pub weight: Option<u32>,
}

/// A gang with its pods, or pods without a gang.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkShape {
    /// The gang's name; its pods are called `NAME-0`, or `NAME-ROLE-0` when it has roles.
    pub gang: Option<String>,
    /// Names of pods without a gang.
    pub single: Option<Names>,
    /// Namespace.
    pub namespace: Option<String>,
    /// Distinguishes a re-created object of the same name from the old one.
    pub uid: Option<String>,
    /// Fewest members that are of use; all of them when absent.
    pub min: Option<u32>,
    /// Members wanted; as many as `min` when absent.
    pub size: Option<u32>,
    /// How many of its pods exist; all when absent.
    pub members: Option<u32>,
    /// Whether the group object exists; `false` makes only its pods.
    pub group: Option<bool>,
    /// What each pod asks for.
    pub pod: PodShape,
    /// Its roles and sub-groups, when its members are not all alike.
    pub roles: Vec<GroupShape>,
    /// With roles: fewest roles or sub-groups that are of use; instead of `min`.
    pub min_children: Option<u32>,
    /// How close its members must be.
    pub level: LevelShape,
    /// Higher goes first.
    pub priority: Option<i32>,
    /// When it was created; now when absent.
    pub created: Option<Span>,
    /// Name of its queue.
    pub queue: String,
    /// How long it may wait once complete.
    pub schedule_timeout: Option<Span>,
    /// What happens then.
    pub on_timeout: TimeoutPolicy,
    /// What a loss of running members means.
    pub on_loss: LossMode,
    /// Whether members may be evicted one by one.
    pub disruption: Disruption,
    /// Where its members go.
    pub scoring: Option<ScoringRule>,
    /// Runs already: its pods in order are dealt evenly to these nodes.
    pub node: Option<Names>,
    /// When it started, if it runs already; now when absent.
    pub started: Option<Span>,
}

/// A role or a sub-group.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GroupShape {
    /// Its name, unique within the gang.
    pub name: String,
    /// Fewest members that are of use; all of them when absent.
    pub min: Option<u32>,
    /// A role: members wanted; as many as `min` when absent.
    pub size: Option<u32>,
    /// A role: how many of its pods exist; all when absent.
    pub members: Option<u32>,
    /// A role: what each pod asks for; the gang's `pod` when absent.
    pub pod: Option<PodShape>,
    /// A sub-group: its roles and sub-groups.
    pub roles: Vec<GroupShape>,
    /// A sub-group: fewest children that are of use; instead of `min`.
    pub min_children: Option<u32>,
    /// How close its members must be.
    pub level: LevelShape,
}

/// How close members must be, by levels: node labels, or `node`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LevelShape {
    /// All in one domain of this level.
    pub required: Option<String>,
    /// As few domains of this level as possible.
    pub preferred: Option<String>,
}

/// What a pod asks for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PodShape {
    /// Whole cards.
    pub cards: Option<CardCounts>,
    /// The kind of card that parts are of.
    pub card_kind: Option<String>,
    /// MIG instances by profile.
    pub slices: BTreeMap<String, u32>,
    /// MIG instances by what they must offer.
    pub slice: Option<SliceShape>,
    /// Shares of cards.
    pub share: Option<ShareShape>,
    /// Replicas of cards.
    pub replicas: Option<u32>,
    /// On which cards several parts lie, relative to each other.
    pub on: Option<Apart>,
    /// How near whole cards must be to each other.
    pub near: Option<Nearness>,
    /// Products that will do.
    pub models: Vec<String>,
    /// Memory that each card must have in all.
    pub card_memory: Option<Quantity>,
    /// These cards and no others.
    pub only: Option<Vec<u32>>,
    /// Members with this word share one card.
    pub share_group: Option<String>,
    /// The cards serve members with this word only.
    pub exclusive: Option<String>,
    /// What its processes take besides what they say.
    pub overhead: Option<OverheadShape>,
    /// Cores.
    pub cpu: Option<Quantity>,
    /// Memory.
    pub memory: Option<Quantity>,
    /// Further resources.
    pub resources: BTreeMap<String, Quantity>,
    /// Labels; `gang` and `role` are added.
    pub labels: BTreeMap<String, String>,
    /// Labels that its node must have.
    pub selector: BTreeMap<String, String>,
    /// Node rules in the engine's own form, for what `selector` cannot say.
    pub nodes: Option<NodeRules>,
    /// Taints that it puts up with: `key`, `key=value`, either with `:Effect`, or `*` for all.
    pub tolerations: Vec<String>,
    /// Ports of the node: `8081`, `9000/UDP`.
    pub host_ports: Vec<PortShape>,
    /// Other pods that must be in the same domain.
    pub affinity: Vec<NearShape>,
    /// Other pods that must not be in the same domain.
    pub anti_affinity: Vec<NearShape>,
    /// How evenly pods must lie.
    pub spread: Vec<SpreadShape>,
    /// The longest time that it runs, as told to the engine.
    pub max_runtime: Option<Span>,
    /// How long it really runs: it succeeds that long after its start.
    pub runtime: Option<Span>,
    /// Held by scheduling gates.
    pub gated: bool,
    /// Belongs to another scheduler.
    pub foreign: bool,
    /// The node where that one makes room for it.
    pub nominated: Option<String>,
    /// The engine's own form; the other fields are laid over it.
    pub template: Template,
}

/// A host port, `8081` or `9000/UDP`.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "accepted: a port from 0 to 65535, or one with its protocol as 9000/UDP"
)]
pub enum PortShape {
    /// A TCP port.
    Number(u16),
    /// A port with its protocol.
    Text(String),
}

/// Pods in the same domain.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NearShape {
    /// The level whose domains count.
    pub level: String,
    /// Labels of those pods; the pod's own gang or name when absent.
    pub labels: BTreeMap<String, String>,
}

/// A spread rule.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpreadShape {
    /// The level whose domains count.
    pub level: String,
    /// Allowed surplus over the emptiest domain.
    #[serde(default = "one")]
    pub max_skew: u32,
    /// Labels of the pods that are counted; the pod's own gang or name when absent.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// With fewer domains than this the emptiest counts as holding 0.
    #[serde(default)]
    pub min_domains: u32,
    /// Whether it must hold; otherwise it only breaks ties.
    #[serde(default = "yes")]
    pub required: bool,
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}
