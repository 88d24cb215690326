//! What happens outside, told to the engine one [`Event`] at a time.
//!
//! Events carry whole objects keyed by identity, so that any legal order of arrival ends in the same
//! state. A refused event ([`Rejection`]) changes nothing.

use alloc::{boxed::Box, collections::BTreeMap, string::String, vec::Vec};

use crate::{
    cluster::NodeSpec,
    device::{CardRequestError, NodeCardsError},
    gang::{
        GangKey, GangSpec, PodSpec,
        life::{Life, Phase},
    },
    place::worth::PriceList,
    units::{Nanos, Uid},
};

/// Something that happened outside.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[allow(
    clippy::large_enum_variant,
    reason = "events are handed over once, never stored in bulk"
)]
pub enum Event {
    /// A node appeared or changed.
    Node(NodeSpec),
    /// A node is gone. Pods bound to it stay counted under its name until they go.
    NodeGone {
        /// Its name.
        name: String,
    },
    /// What a node has of images now. It only breaks ties between nodes that are equal in everything else,
    /// so nothing is tried anew for it; they are forgotten when the node is gone.
    NodeImages {
        /// The node's name.
        name: String,
        /// A hash of each name, and the size in MiB.
        images: Vec<(u64, u32)>,
    },
    /// A namespace appeared or changed; only needed for namespace selectors.
    Namespace {
        /// Its name.
        name: String,
        /// Its labels.
        labels: BTreeMap<String, String>,
    },
    /// A group appeared or changed.
    Gang(GangSpec),
    /// A group is gone.
    GangGone {
        /// Its key.
        key: GangKey,
        /// Its identity; a later generation under the same key is left alone.
        uid: Uid,
    },
    /// A pod appeared or changed; `node` set means it is bound.
    Pod(PodSpec),
    /// A pod is gone.
    PodGone {
        /// Its identity.
        uid: Uid,
    },
    /// Prices for the rules that need some.
    Prices(PriceList),
    /// A bind that we asked for did not happen.
    BindFailed {
        /// The pod.
        pod: Uid,
        /// Whether trying the same node again is pointless.
        permanent: bool,
        /// What the other side said.
        message: String,
    },
    /// A bind that we asked for was not tried, because what it was decided on has changed since: the
    /// room is given back and the pod waits again, without the pause of a failure. For pods that are
    /// not held it means nothing.
    BindWithdrawn {
        /// The pod.
        pod: Uid,
    },
    /// A scheduler that stopped left a clock like this: what is left of it now is no more. It says nothing
    /// about a group that is not there, is another one of its name, or runs another clock by now.
    ClockLeft(ClockLeft),
}

/// What is left of the clock that runs for a group: data that outlives a scheduler, so that a group does
/// not get its time anew with each start of one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ClockLeft {
    /// The group.
    pub key: GangKey,
    /// Its identity.
    pub uid: Uid,
    /// Which clock.
    pub clock: Clock,
    /// How much is left of it.
    pub left: Nanos,
}

/// A clock of [`gang::life`](crate::gang::life).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Clock {
    /// How long a complete group may wait.
    Schedule,
    /// How long holds may stay open and members may run below the minimum.
    Deadline,
}

impl Clock {
    /// Which one runs in a life, if one does.
    pub(crate) const fn of(life: Life) -> Self {
        match life.phase() {
            Phase::Queued => Self::Schedule,
            _ => Self::Deadline,
        }
    }
}

/// Why an event was refused. The engine is as it was before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// A field holds a value that cannot be counted with.
    #[error("{object}: {field} is {value}; accepted: {accepted}")]
    Invalid {
        /// Kind and name.
        object: String,
        /// The field at fault.
        field: String,
        /// What it holds.
        value: String,
        /// What would be accepted.
        accepted: String,
    },
    /// A pod asks for cards in a way that makes no sense.
    #[error("{object}: template.{error}")]
    Cards {
        /// Kind and name.
        object: String,
        /// What is wrong.
        error: CardRequestError,
    },
    /// A node is said to have cards that cannot be.
    #[error("{object}: {kind}: {error}")]
    NodeCards {
        /// Kind and name.
        object: String,
        /// The kind of cards.
        kind: String,
        /// What is wrong.
        error: Box<NodeCardsError>,
    },
    /// A table is full.
    #[error("{what}: {given} given, at most {limit} are held")]
    Capacity {
        /// What there is too much of.
        what: &'static str,
        /// How many were given.
        given: u64,
        /// How many are held.
        limit: u64,
    },
}

impl Rejection {
    /// Kind and name of the object at fault, or what there is too much of.
    pub fn object(&self) -> &str {
        match self {
            Self::Invalid { object, .. }
            | Self::Cards { object, .. }
            | Self::NodeCards { object, .. } => object,
            Self::Capacity { what, .. } => what,
        }
    }
}
