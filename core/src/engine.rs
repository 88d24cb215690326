//! The face: tell it what happens, ask it what to do.
//!
//! `apply` costs in proportion to the change; `decide` allocates nothing once warm; `plan` and `why`
//! change nothing.

use alloc::{string::String, vec::Vec};

use crate::{
    bits::CardSet,
    gang::ScoringRule,
    units::{Nanos, Uid},
};

pub mod event;
pub mod view;

pub use crate::cluster::NodeIx;
pub use event::{Event, Rejection};
pub use view::{CardsView, Explanation, GangView, MemberState, MemberView, NodeView, Plan};

/// Index of a gang in its scheduler. Valid until the gang is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GangId(pub u32);

/// How a scheduler decides.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct Config {
    /// Node labels that make up the topology, coarse to fine, without the node itself.
    pub levels: Vec<String>,
    /// Where members go when their gang does not say.
    pub scoring: ScoringRule,
    /// A gang that has waited this long gets a reservation.
    pub reserve_after: Nanos,
    /// Steps that one search may take before it answers "undecided".
    pub search_steps: u64,
    /// Pause after the first failed bind; doubles with each further one.
    pub bind_backoff: Nanos,
    /// How long a degraded gang may stay so before its policy applies.
    pub degraded_deadline: Nanos,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            levels: Vec::new(),
            scoring: ScoringRule::Binpack,
            reserve_after: Nanos::from_secs(300),
            search_steps: 200_000,
            bind_backoff: Nanos::from_secs(1),
            degraded_deadline: Nanos::from_secs(60),
        }
    }
}

/// What was decided about a gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Verdict {
    /// Every member that must start has a place (or runs already).
    Placed,
    /// No placement exists in this state.
    Infeasible,
    /// The search's budget ran out.
    Undecided,
    /// Not tried: members missing, a problem with the object, held back by a reservation or a pause.
    Waiting,
    /// Its running members must be released: their minimum cannot be kept.
    Release,
    /// Its policy gave up on it.
    Failed,
}

/// One decision; its placements are read with [`Scheduler::placements`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The gang.
    pub gang: GangId,
    /// What was decided.
    pub verdict: Verdict,
    /// Where its placements start in the decision buffer.
    pub(crate) start: u32,
    /// How many there are.
    pub(crate) len: u32,
}

/// A member's place: bind this pod to this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The pod.
    pub pod: Uid,
    /// The node.
    pub node: NodeIx,
    /// Its cards there.
    pub cards: CardSet,
}

/// The engine. See the module's head.
#[derive(Clone, Debug)]
pub struct Scheduler {
    config: Config,
}

impl Scheduler {
    /// An engine that knows no node and no pod.
    pub fn new(config: Config) -> Self {
        Self { config }
    }

    /// How it decides.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Takes note of something that happened. Cost proportional to the change.
    pub fn apply(&mut self, event: Event) -> Result<(), Rejection> {
        drop(event);
        Ok(())
    }

    /// Decides for every gang that is ready and whose reason to wait may have changed. `now` is on
    /// the clock of the objects' `created` fields and never goes back: an earlier value counts as
    /// the latest one seen. Returns what changed, in the order decided. Placed members hold their
    /// room until a pod event confirms them, a failed bind is reported, or the pod is gone.
    pub fn decide(&mut self, now: Nanos) -> &[Decision] {
        let _ = now;
        &[]
    }

    /// The places given by a decision of the latest [`decide`](Self::decide).
    pub fn placements(&self, decision: &Decision) -> &[Placement] {
        let _ = decision;
        &[]
    }

    /// Name of a node.
    #[expect(
        clippy::unnecessary_literal_bound,
        reason = "stands in until the engine lands"
    )]
    pub fn node_name(&self, node: NodeIx) -> &str {
        let _ = node;
        ""
    }

    /// All gangs that are not over, in queue order: running first, then who is next; gangs of one
    /// included.
    pub fn gangs(&self) -> Vec<GangId> {
        Vec::new()
    }

    /// The gang (or the gang of one of the pod) with this namespace and name.
    pub fn find(&self, namespace: &str, name: &str) -> Option<GangId> {
        let _ = (namespace, name);
        None
    }

    /// A gang as people want to see it; `None` when it is gone.
    pub fn gang(&self, gang: GangId) -> Option<GangView<'_>> {
        let _ = gang;
        None
    }

    /// All nodes, ordered by topology path, then name.
    pub fn nodes(&self) -> Vec<NodeView<'_>> {
        Vec::new()
    }

    /// Why a gang and each of its members waits, and what would let it in. Changes nothing.
    pub fn why(&self, gang: GangId) -> Option<Explanation> {
        let _ = gang;
        None
    }

    /// Hash of every decision made so far: equal events give equal hashes everywhere.
    pub fn decision_hash(&self) -> u64 {
        0
    }
}
