//! What one member asks for: amounts, cards, node rules and relations to other pods.
//!
//! Data enters as a [`Template`], built by an adapter or by hand; members that are alike share one
//! `Arc<Template>`, and the engine compiles each distinct template once. Nothing here decides
//! anything, and nothing here knows a cluster.
//!
//! Amounts are integers in the unit that Kubernetes counts a resource in: `cpu` in thousandths of a
//! core, `memory` and `ephemeral-storage` in bytes, `hugepages-*` in bytes, everything else in pieces.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use crate::{
    bits::CardSet,
    device::{links::Nearness, overhead::Overhead},
    units::Nanos,
};

pub mod selector;

pub use selector::{LabelSelector, NodeSelectorTerm, NodeTest, Operator, Requirement};

/// Resource name of processor time; amounts are thousandths of a core.
pub const CPU: &str = "cpu";
/// Resource name of main memory; amounts are bytes.
pub const MEMORY: &str = "memory";
/// Resource name of pod slots. Every member takes one, whether it says so or not.
pub const PODS: &str = "pods";
/// The label that names a node's host. As a topology level it means "one node".
pub const NODE_LEVEL: &str = "kubernetes.io/hostname";

/// Everything that decides where a member may run. Members of a role share one template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct Template {
    /// Namespace of the pods; relations without namespaces of their own look only here.
    pub namespace: String,
    /// Labels of the pods; other pods' relations and the group's own spread rules match them.
    pub labels: BTreeMap<String, String>,
    /// Amounts by resource name, cards excluded; see the module's head for units. Never negative.
    pub resources: BTreeMap<String, i64>,
    /// Cards or parts of cards, if any.
    pub cards: Option<CardRequest>,
    /// Which nodes may be used.
    pub nodes: NodeRules,
    /// Ports of the node that a member needs for itself.
    pub host_ports: Vec<HostPort>,
    /// Where other pods must, must not, or should be.
    pub relations: Relations,
    /// The longest time a member runs once started, when somebody told us.
    pub max_runtime: Option<Nanos>,
}

/// What a member asks of the cards of its node: whole ones, or parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct CardRequest {
    /// The resource name that counts these cards, such as `nvidia.com/gpu`.
    pub kind: String,
    /// How much of them.
    pub want: CardWant,
    /// Products that will do, as nodes name them or as [`device::model`](crate::device::model) does;
    /// empty: any.
    pub models: Vec<String>,
    /// Memory that each card must have in all, in MiB; 0: any. Cards whose memory nobody told do not
    /// pass a limit above 0.
    pub min_card_memory_mib: u32,
    /// How near to each other whole cards must be. Slices have no links at all: asking for an island
    /// of them is refused.
    pub near: Nearness,
    /// These cards and no others.
    pub only: Option<CardSet>,
    /// Members with the same word here share one card; only for one share or slice a member. Empty:
    /// no such group.
    pub share_group: String,
    /// The cards serve members with this word only, as long as one of them is there. Empty: shared
    /// with anybody.
    pub exclusive: String,
    /// Memory that the member's processes take on top of what they say.
    pub overhead: Overhead,
}

/// How much of a node's cards.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum CardWant {
    /// So many whole cards, at least 1.
    Whole(u32),
    /// MIG instances.
    Slices {
        /// What instances; at most [`Devices::MOST_SLICES`](crate::device::Devices::MOST_SLICES) in
        /// all.
        slices: Vec<SliceRequest>,
        /// On which cards, relative to each other.
        cards: Apart,
    },
    /// Shares of cards, all alike.
    Shares {
        /// How many, at least 1; each is on one card.
        count: u32,
        /// Memory of each.
        memory: ShareMemory,
        /// Processor time of each in thousandths of a card, up to 1000; 0: not asked for.
        compute_milli: u32,
        /// On which cards, relative to each other.
        cards: Apart,
    },
    /// Replicas of cards that a device plugin cuts by time slicing or MPS.
    Replicas {
        /// How many, at least 1.
        count: u32,
        /// On which cards, relative to each other.
        cards: Apart,
    },
}

impl Default for CardWant {
    fn default() -> Self {
        Self::Whole(1)
    }
}

impl CardRequest {
    /// How many whole cards; 0 when parts are asked for.
    pub fn whole_cards(&self) -> u32 {
        match self.want {
            CardWant::Whole(count) => count,
            _ => 0,
        }
    }

    /// How many parts of cards; 0 when whole ones are asked for.
    pub fn parts(&self) -> u32 {
        match &self.want {
            CardWant::Whole(_) => 0,
            CardWant::Slices { slices, .. } => {
                let counts = slices.iter().map(|slice| slice.count);
                counts.fold(0, u32::saturating_add)
            }
            CardWant::Shares { count, .. } | CardWant::Replicas { count, .. } => *count,
        }
    }

    /// A request for whole cards without further conditions.
    pub fn whole(kind: impl Into<String>, count: u32) -> Self {
        Self {
            kind: kind.into(),
            want: CardWant::Whole(count),
            ..Self::default()
        }
    }
}

/// MIG instances of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SliceRequest {
    /// How many, at least 1.
    pub count: u32,
    /// Which.
    pub slice: SliceChoice,
}

/// Which MIG instances will do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum SliceChoice {
    /// Those of this profile, such as `1g.10gb`.
    Profile(String),
    /// The cheapest that offer at least this.
    AtLeast {
        /// Memory in MiB that fits in it.
        memory_mib: u32,
        /// Compute slices; 0: any.
        compute_slices: u8,
    },
}

/// On which cards several parts of one member lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Apart {
    /// Each on a card of its own.
    #[default]
    Distinct,
    /// All on one card.
    Same,
    /// As it comes.
    Any,
}

/// Memory of a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum ShareMemory {
    /// So many MiB; 0: not asked for.
    Mib(u32),
    /// So many thousandths of the card's, rounded down to whole MiB so that two halves fit, but at
    /// least one. On a card whose memory nobody told, as many thousandths of its processor time.
    Milli(u32),
}

/// Which nodes a member may use, and which it likes better.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct NodeRules {
    /// Labels that a node must carry, all of them.
    pub selector: BTreeMap<String, String>,
    /// At least one term must hold; `None` means no restriction, an empty list matches no node.
    pub required: Option<Vec<NodeSelectorTerm>>,
    /// Liked terms with weights 1..=100; only ever break ties between feasible nodes.
    pub preferred: Vec<(i32, NodeSelectorTerm)>,
    /// Taints that the member puts up with.
    pub tolerations: Vec<Toleration>,
}

/// A mark on a node that keeps members away that do not tolerate it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Taint {
    /// The taint's key.
    pub key: String,
    /// The taint's value; may be empty.
    #[cfg_attr(feature = "serde", serde(default))]
    pub value: String,
    /// What the taint does to a member that does not tolerate it.
    pub effect: TaintEffect,
}

/// What a taint does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum TaintEffect {
    /// New members stay away.
    NoSchedule,
    /// New members rather stay away; costs a tie-break only.
    PreferNoSchedule,
    /// New members stay away and running ones are removed (by Kubernetes, not by us).
    NoExecute,
}

/// A member's word that it puts up with some taints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct Toleration {
    /// The taint's key; empty matches every key (only with [`TolerationOperator::Exists`]).
    pub key: String,
    /// How the value is compared.
    pub operator: TolerationOperator,
    /// The taint's value, for [`TolerationOperator::Equal`].
    pub value: String,
    /// The tolerated effect; `None` means every effect.
    pub effect: Option<TaintEffect>,
}

/// How a toleration compares values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum TolerationOperator {
    /// Key and value are equal.
    #[default]
    Equal,
    /// The key is there, whatever its value.
    Exists,
}

impl Toleration {
    /// Whether this toleration covers `taint`. Constant time but for the string comparison.
    pub fn covers(&self, taint: &Taint) -> bool {
        if self.effect.is_some_and(|effect| effect != taint.effect) {
            return false;
        }
        match self.operator {
            TolerationOperator::Exists => self.key.is_empty() || self.key == taint.key,
            TolerationOperator::Equal => self.key == taint.key && self.value == taint.value,
        }
    }
}

/// A port of the node, held by at most one pod at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HostPort {
    /// The port, 1..=65535.
    pub port: u16,
    /// The protocol.
    #[cfg_attr(feature = "serde", serde(default))]
    pub protocol: Protocol,
    /// The address it listens on; empty, `0.0.0.0` and `::` mean every address.
    #[cfg_attr(feature = "serde", serde(default))]
    pub address: String,
}

/// Transport protocol of a host port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Protocol {
    /// TCP
    #[default]
    Tcp,
    /// UDP
    Udp,
    /// SCTP
    Sctp,
}

impl HostPort {
    /// Whether both cannot be held on one node: same port and protocol, and addresses that overlap.
    pub fn conflicts_with(&self, other: &HostPort) -> bool {
        fn everywhere(address: &str) -> bool {
            matches!(address, "" | "0.0.0.0" | "::")
        }
        self.port == other.port
            && self.protocol == other.protocol
            && (everywhere(&self.address)
                || everywhere(&other.address)
                || self.address == other.address)
    }
}

/// Rules about other pods, those of the same group included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct Relations {
    /// In the domain of the member's node some *other* pod must match each term. As in Kubernetes,
    /// a member that matches its own term may be the first when no pod anywhere matches.
    pub affinity: Vec<PodTerm>,
    /// In the domain of the member's node no other pod may match any term. Holds both ways.
    pub anti_affinity: Vec<PodTerm>,
    /// Liked (positive weight) or disliked (negative weight) neighbours; ties only.
    pub preferred: Vec<(i32, PodTerm)>,
    /// How evenly matching pods must lie over the domains of a level.
    pub spread: Vec<SpreadRule>,
}

/// "Pods like these, in the domain that a node label names".
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct PodTerm {
    /// Node label whose values are the domains; [`NODE_LEVEL`] means one node.
    pub topology_key: String,
    /// Which pods.
    pub selector: LabelSelector,
    /// Namespaces in which to look.
    pub namespaces: NamespaceScope,
}

/// In which namespaces a [`PodTerm`] looks for pods: the union of all three.
/// All empty means the member's own namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct NamespaceScope {
    /// These namespaces by name.
    pub names: Vec<String>,
    /// Namespaces whose labels match; an empty selector matches every namespace.
    pub selector: Option<LabelSelector>,
}

/// A topology spread constraint. It is judged on the finished plan: each domain that receives a
/// member may hold at most `max_skew` more matching pods than the emptiest eligible domain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SpreadRule {
    /// Node label whose values are the domains.
    pub topology_key: String,
    /// Allowed surplus over the emptiest eligible domain; at least 1.
    pub max_skew: u32,
    /// Which pods of the member's namespace are counted.
    pub selector: LabelSelector,
    /// With fewer eligible domains than this, the emptiest counts as holding 0.
    #[cfg_attr(feature = "serde", serde(default))]
    pub min_domains: u32,
    /// `false` (`ScheduleAnyway`) only ever breaks ties.
    pub required: bool,
    /// Only nodes that pass the member's node selector and affinity make a domain eligible.
    pub honor_node_affinity: bool,
    /// Only nodes whose taints the member tolerates make a domain eligible.
    pub honor_taints: bool,
}
