//! Why a member or a gang is not running: facts, not sentences.
//!
//! A [`Reason`] is made from what the search left behind; `Display` turns it into one line for
//! people, [`Reason::code`] into a stable word for machines. A [`Counterfactual`] is one change that
//! would admit the gang, verified by running the search on the changed state.

use alloc::{boxed::Box, format, string::String, vec::Vec};
use core::fmt;

use crate::{cluster::spec::CardMode, gang::Problem, units::Nanos};

/// Why a node cannot take a member. In the order in which they are tested: the first that fails is
/// the one that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Cause {
    /// The node is cordoned.
    Unschedulable,
    /// A taint that the member does not tolerate.
    Taint,
    /// Node selector or required node affinity.
    NodeSelector,
    /// Outside every domain of a required level: the node lacks the level's label.
    NoLevelLabel,
    /// The member is bound to a domain, by its running siblings or by the search, and this node is
    /// in another.
    OtherDomain,
    /// Too few free cards.
    Cards,
    /// The pods that run there need more of the cards than there are, or told of cards that are not as
    /// they say, so that nobody knows what is free.
    CardsInDoubt,
    /// Cards whose MIG layout is being changed.
    CardsChanging,
    /// Cards that must not be used, without which too few are left.
    UnhealthyCards,
    /// Cards that are not used although they may be sound.
    CardsClosed,
    /// Cards of a model that the member does not accept.
    CardModel,
    /// Cards of a model that nobody knows, where the member needs to know more than their number.
    UnknownCardModel,
    /// MIG instances of which only the number is known, where the member needs to know their cards.
    UnknownCard,
    /// Cards with less memory than the member needs.
    CardMemory,
    /// The cards that the member names are taken, or not there.
    CardIds,
    /// Free cards, but not so many that are joined as the member needs.
    CardLinks,
    /// Room on cards, but not on as many or as few of them as one member needs.
    CardsApart,
    /// The cards with room serve somebody who has them for himself, or others use them already.
    CardExclusive,
    /// The card of the member's share group has too little left.
    ShareGroup,
    /// Cards that are given in another way than the member asks: only whole, or only in parts.
    CardsNotShared,
    /// Cards whose model has no such MIG profile, or none with so much memory.
    SliceProfile,
    /// Cards that MPS shares, of which a pod gets one replica only.
    MpsReplicas,
    /// No legal place for a MIG instance on any card.
    Slices,
    /// No card with a large enough share left.
    Shares,
    /// No replica left.
    Replicas,
    /// Too little free of another resource (see [`NodeCount::resource`]).
    Resource,
    /// No free pod slot.
    PodSlots,
    /// A host port is taken.
    HostPort,
    /// Required pod affinity is not met.
    PodAffinity,
    /// Required pod anti-affinity, the member's own or that of a pod already there.
    PodAntiAffinity,
    /// A required spread rule.
    Spread,
    /// Held back for a large group that has waited long enough.
    Reserved,
}

/// How many nodes failed for one cause.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NodeCount {
    /// The cause.
    pub cause: Cause,
    /// The resource or card kind for [`Cause::Cards`] and [`Cause::Resource`], what was asked for or
    /// found for the other causes about cards, the taint's key for
    /// [`Cause::Taint`], the level for [`Cause::NoLevelLabel`]; otherwise empty.
    pub resource: String,
    /// How many nodes.
    pub nodes: u32,
}

/// What is missing, in numbers, in the place that came closest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Shortfall {
    /// Resource name or card kind, or `members` when no single resource is to blame.
    pub resource: String,
    /// How much the members that must start need.
    pub needed: i64,
    /// How much of it they can use where they may go: pieces that are too small for a member do
    /// not count.
    pub free: i64,
    /// How much of it is free there in all.
    pub scattered: i64,
}

/// How one domain fared.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DomainAttempt {
    /// The level, by its node label.
    pub level: String,
    /// The domain's name: the label's value.
    pub domain: String,
    /// How many of the members that must start fit there at best.
    pub fits: u32,
    /// How many must.
    pub needed: u32,
    /// Free cards of the wanted kind there.
    pub free_cards: u32,
}

/// A pod for which another scheduler makes room.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NominatedPod {
    /// Its namespace and name.
    pub pod: String,
    /// The node.
    pub node: String,
}

/// Why a member or a gang is not running.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "code"))]
pub enum Reason {
    /// The object cannot be honoured.
    Invalid {
        /// What is wrong with it.
        problem: Problem,
    },
    /// The pod names a group that does not exist.
    GroupNotFound {
        /// The group's namespace and name.
        group: String,
        /// A namespace where a group of that name does exist, as a hint.
        elsewhere: Option<String>,
    },
    /// Members are missing: they do not exist yet, or scheduling gates hold them.
    WaitingForMembers {
        /// Members that could be placed now, those that run or ended well included.
        present: u32,
        /// Members that must be there.
        needed: u32,
        /// Members held by scheduling gates, in the whole gang.
        gated: u32,
        /// The sub-group or role that is short; empty for the gang as a whole.
        group: String,
    },
    /// The minimum is above the number of members that its owner makes.
    MinExceedsMembers {
        /// The minimum.
        min: u32,
        /// The number of members wanted.
        members: u32,
    },
    /// No placement exists in this state. True, not a guess.
    DoesNotFit {
        /// Members that must start together.
        members: u32,
        /// Nodes looked at.
        nodes: u32,
        /// What is missing where it came closest, if one resource is to blame.
        shortfall: Option<Shortfall>,
        /// Nodes that failed alone, by cause, for the member that has the fewest nodes.
        causes: Vec<NodeCount>,
        /// The required level that binds, by its node label, when a level binds.
        level: Option<String>,
        /// The best domain of that level.
        best_domain: Option<DomainAttempt>,
    },
    /// This member fits by itself, but a sibling does not.
    WaitsForSibling {
        /// A node that this member would fit on.
        fits: String,
        /// The sibling that binds.
        sibling: String,
        /// The sibling's own reason.
        because: Box<Reason>,
    },
    /// A required topology level that no node has.
    UnknownLevel {
        /// The level, by its node label.
        level: String,
    },
    /// It would fit, but the room is held back for a large group that has waited longer.
    WouldDelayReservation {
        /// The group that holds the reservation.
        holder: String,
        /// When the holder is expected to start, if durations are known.
        starts: Option<Nanos>,
    },
    /// It would fit, but for the room of pods of at least its priority for which other schedulers make
    /// room.
    WouldTakeNominatedRoom {
        /// The pods without whose room it would fit, by uid.
        pods: Vec<NominatedPod>,
    },
    /// The search's budget of steps ran out: neither a plan nor a proof.
    Undecided {
        /// The budget.
        steps: u64,
    },
    /// A bind failed; the member is tried again after a pause.
    BindFailed {
        /// What the other side said.
        message: String,
        /// Tries so far.
        attempts: u32,
    },
    /// It has a place, and its bind fails for now: it is tried again there as long as its room is held.
    BindRetrying {
        /// The node.
        node: String,
        /// What the other side said.
        message: String,
    },
    /// The group waited for its schedule timeout and its policy ended it.
    TimedOut {
        /// The timeout.
        after: Nanos,
    },
    /// Surplus member above the minimum: the group runs without it, and there is no room for it.
    Surplus {
        /// Why there is no room.
        because: Box<Reason>,
    },
    /// Not tried yet.
    NotTried,
}

/// One change that would admit the gang, verified on the changed state.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "change", rename_all = "kebab-case"))]
pub enum Counterfactual {
    /// This many more free cards: on a node that is there, or on new nodes like those that are.
    MoreCards {
        /// The card kind, or the resource name of MIG instances of which only the number is known.
        kind: String,
        /// The model, where not every card of the kind would do; otherwise empty.
        model: String,
        /// How many.
        count: u32,
        /// Where they must be, as `level=value`: a node that is there, by its host name, or the
        /// domain of the new nodes; `None` when new nodes anywhere will do.
        domain: Option<String>,
        /// On how many new nodes, each but the last full; 0 when they are on a node that is there.
        nodes: u32,
        /// How they must be given.
        mode: CardMode,
        /// How near each other those of one member must be, in the word of the request; empty when that
        /// does not matter.
        near: String,
    },
    /// Cards that a node has and does not offer, allocatable.
    AllocatableCards {
        /// The node.
        node: String,
        /// The card kind.
        kind: String,
        /// How many of them.
        count: u32,
    },
    /// The change of a node's MIG layout over, and its cards given as the node says.
    LayoutSettled {
        /// The node.
        node: String,
    },
    /// Unhealthy cards of a node that work again.
    HealthyCards {
        /// The node.
        node: String,
        /// Their numbers.
        cards: Vec<u32>,
    },
    /// The cards of a node given in another way.
    CardMode {
        /// The node.
        node: String,
        /// How all its cards would be given.
        mode: CardMode,
    },
    /// A condition on cards that the members do without.
    DropCondition {
        /// Which one.
        condition: CardCondition,
        /// What was asked for.
        value: String,
    },
    /// A required level weakened.
    RelaxLevel {
        /// The sub-group that requires it.
        group: String,
        /// The level now required.
        from: String,
        /// The level that would do; `None` means no required level at all.
        to: Option<String>,
    },
    /// Fewer members needed.
    FewerMembers {
        /// How many fewer.
        fewer: u32,
        /// The minimum that would do.
        min: u32,
    },
    /// A node put back into service.
    Uncordon {
        /// The node.
        node: String,
    },
    /// A taint that goes, or is tolerated.
    Untaint {
        /// The node.
        node: String,
        /// The taint's key.
        taint: String,
    },
    /// Running gangs or pods gone.
    Departure {
        /// Their `namespace/name`s, gangs of one under their pod's name.
        gangs: Vec<String>,
        /// The single pods of those gangs whose going suffices; empty when all must go.
        pods: Vec<String>,
    },
}

/// A condition on cards beside their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum CardCondition {
    /// Cards near each other.
    Near,
    /// Cards of some models.
    Models,
    /// The least memory of a card.
    Memory,
    /// Certain cards, by number.
    Ids,
    /// On how many cards the parts of a member lie.
    Apart,
    /// The same card as the other members of a group.
    ShareGroup,
    /// Cards that serve nobody else.
    Exclusive,
}

impl Reason {
    /// The reason for people, with its word for programs before it.
    pub fn with_code(&self) -> String {
        format!("{}: {self}", self.code())
    }

    /// A stable word for machines.
    pub fn code(&self) -> &str {
        match self {
            Reason::Invalid { problem } => &problem.code,
            Reason::GroupNotFound { .. } => "GroupNotFound",
            Reason::WaitingForMembers { .. } => "WaitingForMembers",
            Reason::MinExceedsMembers { .. } => "MinExceedsMembers",
            Reason::DoesNotFit { .. } => "DoesNotFit",
            Reason::WaitsForSibling { .. } => "WaitsForSibling",
            Reason::UnknownLevel { .. } => "UnknownLevel",
            Reason::WouldDelayReservation { .. } => "WouldDelayReservation",
            Reason::WouldTakeNominatedRoom { .. } => "WouldTakeNominatedRoom",
            Reason::Undecided { .. } => "Undecided",
            Reason::BindFailed { .. } => "BindFailed",
            Reason::BindRetrying { .. } => "BindRetrying",
            Reason::TimedOut { .. } => "TimedOut",
            Reason::Surplus { .. } => "Surplus",
            Reason::NotTried => "NotTried",
        }
    }
}

impl Cause {
    /// Whether it says that the cards that are there are not what the member needs, however many
    /// are free.
    pub const fn is_about_kinds_of_cards(self) -> bool {
        matches!(
            self,
            Self::CardsInDoubt
                | Self::CardsChanging
                | Self::UnhealthyCards
                | Self::CardsClosed
                | Self::UnknownCardModel
                | Self::UnknownCard
                | Self::CardModel
                | Self::CardMemory
                | Self::CardIds
                | Self::CardLinks
                | Self::CardsApart
                | Self::CardExclusive
                | Self::ShareGroup
                | Self::CardsNotShared
                | Self::SliceProfile
                | Self::MpsReplicas
        )
    }

    /// Whether it is about what cards are like or what is left of them, apart from their number.
    pub const fn is_about_cards(self) -> bool {
        self.is_about_kinds_of_cards()
            || matches!(self, Self::Slices | Self::Shares | Self::Replicas)
    }
}

/// Reads after a number of nodes: `2 with cards of another model`.
impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Cause::Unschedulable => "cordoned",
            Cause::Taint => "with a taint that is not tolerated",
            Cause::NodeSelector => "ruled out by node selector or affinity",
            Cause::NoLevelLabel => "without the label of the level",
            Cause::OtherDomain => "in another domain",
            Cause::Cards => "with too few free cards",
            Cause::CardsInDoubt => "where nobody knows which cards the running pods use",
            Cause::CardsChanging => "whose MIG layout is being changed",
            Cause::UnhealthyCards => "with too few healthy cards",
            Cause::CardsClosed => "with cards that are not used as they are described",
            Cause::CardModel => "with cards of another model",
            Cause::UnknownCardModel => "with cards of an unknown model",
            Cause::UnknownCard => "with MIG instances of which the card is not known",
            Cause::CardMemory => "with too little memory on a card",
            Cause::CardIds => "without the named cards free",
            Cause::CardLinks => "with too few free cards joined closely enough",
            Cause::CardsApart => "with free parts of cards not spread as needed",
            Cause::CardExclusive => "with cards in use by others",
            Cause::ShareGroup => "where the card of its share group is full",
            Cause::CardsNotShared => "with cards that are not given in that way",
            Cause::SliceProfile => "with cards that have no such MIG profile",
            Cause::MpsReplicas => "with cards that MPS shares, one replica for a pod",
            Cause::Slices => "without a place for the MIG instances",
            Cause::Shares => "without a card that has enough left",
            Cause::Replicas => "without a free replica",
            Cause::Resource => "with too little free",
            Cause::PodSlots => "without a free pod slot",
            Cause::HostPort => "with the host port taken",
            Cause::PodAffinity => "ruled out by pod affinity",
            Cause::PodAntiAffinity => "ruled out by pod anti-affinity",
            Cause::Spread => "ruled out by a spread rule",
            Cause::Reserved => "held back for others",
        })
    }
}
