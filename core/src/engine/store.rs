//! What the engine remembers: pods and gangs, in tables with stable indexes.
//!
//! A pod's [`Charge`] is its line in the ledger. Counts of members by state are kept per leaf of
//! the group tree, so that the facts about a gang cost its tree, not its members.

use alloc::{boxed::Box, string::String, sync::Arc, vec::Vec};

use smallvec::SmallVec;

use super::{NodeIx, Verdict, view::MemberState};
use crate::{
    cluster::template::TemplateIx,
    device::Devices,
    gang::{
        GangKey, GangSpec, PodPhase, PodSpec,
        life::{Census, Life, Phase},
    },
    place::tree::{Tree, TreeKind},
    queue::Turn,
    units::{Nanos, Uid},
};

/// Index of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PodIx(pub(crate) u32);

/// Index of a gang; see [`super::GangId`].
pub(crate) type GangIx = super::GangId;

/// Why a charge exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Purpose {
    /// The pod is bound to the node.
    Bound,
    /// We decided that it goes there; the bind is not confirmed.
    Held,
    /// Another scheduler makes room there for the pod.
    Nominated,
}

/// What a pod takes from a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Charge {
    pub(crate) node: NodeIx,
    pub(crate) devices: Devices,
    /// The devices that were planned for it, or that the bound pod says it has: what it holds, unless
    /// they are gone or somebody else's.
    pub(crate) told: Option<Devices>,
    pub(crate) purpose: Purpose,
}

#[derive(Clone, Debug)]
pub(crate) struct Pod {
    pub(crate) spec: PodSpec,
    pub(crate) gang: GangIx,
    /// Its leaf in the gang's tree; `None` when its role is not in the tree.
    pub(crate) leaf: Option<u32>,
    pub(crate) template: TemplateIx,
    pub(crate) charge: Option<Charge>,
    /// We asked for its release and it is not gone yet.
    pub(crate) released: bool,
    /// Failed binds so far, what was said last, and when it may be tried again.
    pub(crate) failures: Option<Box<BindFailures>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct BindFailures {
    pub(crate) attempts: u32,
    /// The latest failure was for now: the bind is tried again where the room is held.
    #[cfg_attr(feature = "serde", serde(default))]
    pub(crate) is_retried: bool,
    pub(crate) message: String,
    pub(crate) not_before: Nanos,
}

impl Pod {
    /// The node where another scheduler makes room for the pod, as long as that counts.
    pub(crate) fn nominated(&self) -> Option<&str> {
        let spec = &self.spec;
        let waits = spec.node.is_none() && spec.phase == PodPhase::Pending && !spec.terminating;
        spec.nominated.as_deref().filter(|_| spec.foreign && waits)
    }

    /// What the pod is doing, as far as its gang is concerned.
    pub(crate) fn state(&self) -> MemberState {
        let spec = &self.spec;
        match spec.phase {
            PodPhase::Succeeded => MemberState::Succeeded,
            PodPhase::Failed => MemberState::Failed,
            PodPhase::Pending | PodPhase::Running => {
                if spec.terminating || self.released {
                    MemberState::Terminating
                } else if spec.node.is_some() {
                    MemberState::Bound
                } else if self
                    .charge
                    .is_some_and(|charge| charge.purpose == Purpose::Held)
                {
                    MemberState::Planned
                } else if spec.gated || spec.problem.is_some() || spec.foreign {
                    MemberState::Gated
                } else {
                    MemberState::Waiting
                }
            }
        }
    }
}

/// Members of a leaf by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) waiting: u32,
    pub(crate) gated: u32,
    pub(crate) held: u32,
    pub(crate) bound: u32,
    /// Those of `bound` that another scheduler answers for.
    pub(crate) foreign: u32,
    pub(crate) succeeded: u32,
}

impl Tally {
    pub(crate) fn count(&mut self, pod: &Pod, add: bool) {
        let change = |count: &mut u32| {
            *count = if add {
                *count + 1
            } else {
                count.saturating_sub(1)
            };
        };
        match pod.state() {
            MemberState::Waiting => change(&mut self.waiting),
            MemberState::Gated => change(&mut self.gated),
            MemberState::Planned => change(&mut self.held),
            MemberState::Bound => {
                change(&mut self.bound);
                if pod.spec.foreign {
                    change(&mut self.foreign);
                }
            }
            MemberState::Succeeded => change(&mut self.succeeded),
            MemberState::Terminating | MemberState::Failed => {}
        }
    }

    /// Members that have a place or need none any more.
    pub(crate) fn settled(&self) -> u32 {
        self.held + self.bound + self.succeeded
    }
}

/// What was last found out about a gang that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tried {
    /// The engine's counters at that moment; while they stand still, so does the answer.
    pub(crate) loosened: u64,
    pub(crate) changed: u64,
    pub(crate) revision: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Gang {
    pub(crate) key: Option<Box<GangKey>>,
    /// The group object; `None` for a gang of one and for a group that nobody has described.
    pub(crate) spec: Option<Box<GangSpec>>,
    pub(crate) tree: Arc<Tree>,
    /// By tree node.
    pub(crate) tally: SmallVec<[Tally; 1]>,
    /// In order of leaf, then name.
    pub(crate) members: SmallVec<[PodIx; 1]>,
    pub(crate) life: Life,
    pub(crate) uid: Uid,
    pub(crate) priority: i32,
    pub(crate) created: Nanos,
    /// Grows with each requeue of any gang; 0: never requeued.
    pub(crate) requeued: u64,
    pub(crate) verdict: Verdict,
    pub(crate) tried: Option<Tried>,
    /// Changes with its members and its spec.
    pub(crate) revision: u64,
    /// When it was first seen ready by `decide`.
    pub(crate) ready_since: Option<Nanos>,
    /// Up to when its clock has been fed.
    pub(crate) clock_fed: Option<Nanos>,
    pub(crate) in_queue: bool,
    /// Its clock runs and it is on the engine's list of clocks.
    pub(crate) clocked: bool,
    /// A decision about it was told.
    pub(crate) told: bool,
    /// `loosened` when it was found that no reservation would help it.
    pub(crate) unreservable: Option<u64>,
    /// Is on the engine's queue list, which is swept once a cycle.
    pub(crate) listed: bool,
}

impl Gang {
    pub(crate) fn single(&self) -> bool {
        self.key.is_none()
    }

    /// Its place in the queue.
    pub(crate) fn turn(&self) -> Turn {
        let degraded = self.life.phase() == Phase::Degraded;
        Turn::new(
            degraded,
            self.priority,
            self.requeued,
            self.created,
            self.uid,
        )
    }

    fn sum(&self, of: impl Fn(&Tally) -> u32) -> u32 {
        self.tally.iter().map(of).fold(0, u32::saturating_add)
    }

    /// Whether some member has not ended, those that are gated included.
    pub(crate) fn has_unfinished(&self) -> bool {
        let unfinished = |tally: &Tally| tally.waiting + tally.gated + tally.held + tally.bound;
        self.sum(unfinished) > 0
    }

    /// The facts that the life-cycle machine wants.
    pub(crate) fn census(&self) -> Census {
        if self.key.is_some() && self.spec.is_none() {
            // Nobody has said yet what is enough: what its pods do means nothing so far.
            return Census::default();
        }
        let meets = |of: &dyn Fn(&Tally) -> u32| {
            let standing = self
                .tree
                .standing(0, &|leaf| of(&self.tally[leaf as usize]));
            standing.met && standing.members > 0
        };
        let waiting = self.sum(|tally| tally.waiting);
        let held = self.sum(|tally| tally.held);
        let bound = self.sum(|tally| tally.bound);
        let sound = self.spec.as_ref().is_none_or(|spec| spec.problem.is_none());
        let to_come = self.sum(|tally| tally.gated) > 0
            || self
                .tree
                .leaves()
                .any(|leaf| match self.tree.nodes[leaf as usize].kind {
                    TreeKind::Leaf { count, .. } => self.tally[leaf as usize].succeeded < count,
                    TreeKind::Inner(_) => false,
                });
        // A group whose object says that it ran whole before we saw it is not one that never did.
        // Once we have a plan for it, what is bound tells by itself: else each plan for what a
        // degraded group lost would give it a new deadline.
        let ran_before = bound > 0
            && self.spec.as_ref().is_some_and(|spec| spec.started)
            && matches!(self.life.phase(), Phase::Gathering | Phase::Queued);
        Census {
            is_ready: sound && meets(&|tally| tally.waiting + tally.settled()),
            is_ready_anew: sound && meets(&|tally| tally.waiting + tally.held),
            is_covered: ran_before || meets(&Tally::settled),
            is_satisfied: ran_before || meets(&|tally| tally.bound + tally.succeeded),
            is_finished: waiting + held + bound == 0 && !to_come && meets(&|tally| tally.succeeded),
            has_waiting: waiting > 0 && sound,
            has_held: held > 0,
            has_bound: bound > self.sum(|tally| tally.foreign),
        }
    }
}

/// A table with stable indexes and re-used slots.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Option<T>>,
    vacant: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            vacant: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(ix) = self.vacant.pop() {
            self.slots[ix as usize] = Some(value);
            return ix;
        }
        self.slots.push(Some(value));
        (self.slots.len() - 1) as u32
    }

    pub(crate) fn remove(&mut self, ix: u32) -> Option<T> {
        let value = self.slots.get_mut(ix as usize)?.take();
        if value.is_some() {
            self.vacant.push(ix);
        }
        value
    }

    pub(crate) fn get(&self, ix: u32) -> Option<&T> {
        self.slots.get(ix as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, ix: u32) -> Option<&mut T> {
        self.slots.get_mut(ix as usize)?.as_mut()
    }

    /// Indexes and values, by index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(ix, slot)| Some((ix as u32, slot.as_ref()?)))
    }

    /// Indexes in use, by index; the table may change in between.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = u32> + use<T> {
        0..self.slots.len() as u32
    }
}
