//! What people and tools see of the engine's state: borrowed names, plain numbers.

use alloc::{string::String, vec::Vec};

use super::{GangId, NodeIx, Verdict};
use crate::{
    bits::CardSet,
    cluster::spec::CardMode,
    device::{Devices, links::LinkTable, model::CardModel, overhead::Need},
    explain::{Counterfactual, DomainAttempt, Reason},
    gang::life::Phase,
    request::{CardRequest, Taint},
    units::{Nanos, Uid},
};

/// A gang, as people want to see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GangView<'a> {
    /// Its index.
    pub id: GangId,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name; a gang of one has its pod's.
    pub name: &'a str,
    /// Which kind of object defines it; empty for a gang of one.
    pub source: &'a str,
    /// Whether it is a pod without a group.
    pub single: bool,
    /// Where it is in its life.
    pub phase: Phase,
    /// What was last decided.
    pub verdict: Verdict,
    /// Higher goes first.
    pub priority: i32,
    /// Name of its queue.
    pub queue: &'a str,
    /// Members that must run together.
    pub min: u32,
    /// The required level of the whole gang, if any, by its node label.
    pub required_level: Option<&'a str>,
    /// What is left of its schedule timeout, while that runs.
    pub timeout_left: Option<Nanos>,
    /// Its members, by role, then name.
    pub members: Vec<MemberView<'a>>,
}

/// A member of a gang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberView<'a> {
    /// Its identity.
    pub uid: Uid,
    /// The pod's name.
    pub name: &'a str,
    /// Its role; empty when the gang has only one.
    pub role: &'a str,
    /// Its position among the gang's members.
    pub rank: u32,
    /// What it is doing.
    pub state: MemberState,
    /// Whether its bind failed for now and is tried again at its place.
    pub retried: bool,
    /// Whether its containers have started and have not ended.
    pub runs: bool,
    /// Its node, bound or planned.
    pub node: Option<NodeIx>,
    /// Its devices there.
    pub devices: Devices,
    /// Whether nobody told which of several cards it runs on, so that its devices are assumed.
    pub assumed: bool,
    /// The devices that were told of it, whether they can be or not.
    pub told: Option<Devices>,
    /// The cards or parts of cards that it asks for.
    pub wants_cards: Option<&'a CardRequest>,
    /// What one of its shares, or of its slices that it asks for by memory, needs of its node's
    /// cards, term by term; without a node, of those where it needs least. `None` when it asks for no amount
    /// of memory.
    pub memory: Option<Need>,
}

/// What a member is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum MemberState {
    /// Waits for a place.
    Waiting,
    /// Held by scheduling gates.
    Gated,
    /// Has a place; the bind is not confirmed yet.
    Planned,
    /// Bound or running.
    Bound,
    /// Being deleted.
    Terminating,
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed,
}

/// A node, as people want to see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView<'a> {
    /// Its index.
    pub ix: NodeIx,
    /// Its name.
    pub name: &'a str,
    /// Its domain at each configured level, coarse to fine; `None` where it lacks the label.
    pub path: Vec<Option<&'a str>>,
    /// Cordoned.
    pub unschedulable: bool,
    /// Its taints.
    pub taints: &'a [Taint],
    /// Its cards.
    pub cards: Vec<CardsView<'a>>,
    /// Other resources: name, free, allocatable. Free is negative on an over-committed node.
    pub resources: Vec<(&'a str, i64, i64)>,
}

/// Cards of one kind on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardsView<'a> {
    /// The resource name that counts them.
    pub kind: &'a str,
    /// The product; empty when nobody said.
    pub model: &'a str,
    /// All of them.
    pub all: CardSet,
    /// Those that must not be given out.
    pub unhealthy: CardSet,
    /// Those of which nobody knows what is used: pods that are there need more than there is, or told of
    /// cards that are not as they say. Nothing more of them is given.
    pub in_doubt: CardSet,
    /// Memory of one card in MiB; 0 when nobody told.
    pub memory_mib: u32,
    /// Who holds which, whole or in part.
    pub held: Vec<(CardSet, GangId)>,
    /// Parts that are held, by card, then start.
    pub parts: Vec<PartView>,
    /// MIG instances of which only the number is known.
    pub loose: Vec<LooseView<'a>>,
    /// What is known about the product.
    pub known: Option<&'static CardModel>,
    /// How each card may be used, as the node says it; see [`CardsView::mode`].
    pub modes: &'a [CardMode],
    /// How the cards reach each other, when that is known.
    pub links: Option<&'a LinkTable>,
}

impl CardsView<'_> {
    /// Those of which nothing is given, whoever has them.
    pub fn closed(&self) -> CardSet {
        self.unhealthy.union(self.in_doubt).intersection(self.all)
    }

    /// How a card may be used.
    pub fn mode(&self, card: u32) -> &CardMode {
        let mode = match self.modes {
            [one] => Some(one),
            modes => modes.get(card as usize),
        };
        mode.unwrap_or(&CardMode::Whole)
    }
}

/// MIG instances of one profile whose cards nobody told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LooseView<'a> {
    /// Their profile.
    pub profile: &'a str,
    /// How a [`Slice`](crate::device::Slice) without a card names it.
    pub code: Option<u8>,
    /// All of them.
    pub all: u32,
    /// Those that somebody holds; more than all when the node lost some in use.
    pub used: u32,
}

/// A part of a card that somebody holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartView {
    /// The card.
    pub card: u32,
    /// Which part.
    pub part: Part,
    /// Whose it is.
    pub gang: GangId,
    /// The pod.
    pub pod: Uid,
}

/// What a part of a card is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Part {
    /// A MIG instance.
    Slice {
        /// Where it starts.
        start: u8,
        /// How many units of the card's geometry it covers.
        units: u8,
        /// How many units the card has.
        of: u8,
        /// Its profile.
        profile: &'static str,
    },
    /// A share of memory and processor time.
    Share {
        /// Memory, overhead included.
        memory_mib: u32,
        /// Processor time, in thousandths of the card.
        compute_milli: u32,
    },
    /// A replica.
    Replica {
        /// How many replicas the card has.
        of: u32,
    },
}

/// Why a gang waits, in full.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Explanation {
    /// The gang's own reason; `None` when it is placed.
    pub reason: Option<Reason>,
    /// Each waiting member: pod name and reason, by role, then name.
    pub members: Vec<(String, Reason)>,
    /// The best attempt in each domain of the level that binds, best first.
    pub domains: Vec<DomainAttempt>,
    /// Single changes that would admit it at its turn, smallest first: those ahead of it have taken what
    /// they can.
    pub counterfactuals: Vec<Counterfactual>,
    /// How many gangs wait ahead of it in the queue. Counted where changes were looked for.
    pub ahead: u32,
    /// Further changes that would admit it if those ahead of it were not there.
    pub if_first: Vec<Counterfactual>,
}

/// A placement that a what-if found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Plan {
    /// Member (pod name, or role and ordinal for members without pods), node name, devices.
    pub places: Vec<(String, String, Devices)>,
}
