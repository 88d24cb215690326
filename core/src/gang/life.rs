//! The life cycle of a gang as a pure function: [`step`] takes a state, the rules, the facts and an
//! event, and gives the next state and what to do.
//!
//! Facts enter as a [`Census`] that the caller takes from the group tree; time enters only as
//! elapsed spans ([`Event::Elapsed`]), so that steps of a wall clock change nothing; what to do
//! leaves as [`Commands`]. The machine never counts members, never knows a node, needs no heap, and
//! is defined for every pair of state and event.
//!
//! ```text
//!             ready            plan found           bind started
//!  Gathering ------> Queued --------------> Planned ------------> Binding
//!      ^               ^     <--------------   ^                     |  minimum met
//!      |               |       plan lost       | plan found          v
//!      |               +---- nothing left -- Degraded <---------- Running
//!      +------ deadline passed: release -------+     loss (strict)
//! ```
//!
//! # How the engine drives it
//! - Facts changed (a pod came, was confirmed, failed, went; a bind failed for good, so that its
//!   hold is gone; commands were carried out): take a census, send [`Event::Changed`].
//! - A bind that is tried again at the same place is no event: the hold stays.
//! - The search found no plan: no event, the group stays where it is.
//! - A phase that changed is all there is to report: [`Phase::Running`], [`Phase::Degraded`],
//!   [`Phase::Ended`].
//!
//! # The two clocks
//! At most one runs at a time; both are remainders, so a snapshot keeps them as they are.
//! - **Schedule**: runs in `Queued`, starting in full when the group becomes complete enough to be
//!   tried. It stands still in `Planned`, `Binding` and `Degraded` and goes on when the group falls
//!   back to `Queued`: a bind that always fails cannot put the timeout off for ever. It is forgotten
//!   in `Gathering` (members vanished, or the group starts over) and in `Running`. When it runs out,
//!   [`Rules::on_timeout`] applies; a requeued group starts it again in full.
//! - **Deadline**: runs in `Planned`, `Binding` and `Degraded`, and in `Running` while holds are
//!   open. It starts in full when the first hold is taken or members are found to run below the
//!   minimum, goes on through any number of plans and failed binds, and starts in full again only
//!   when a running group falls below its minimum or gets a new plan. When it runs out, open holds
//!   are released, and if members run below the minimum, those too: once, then the group starts over.
//!
//! A change of the rules shortens a running clock at once and never lengthens it.

use super::policy::{LossMode, TimeoutPolicy};
use crate::units::Nanos;

mod step;

pub use step::step;

/// Where a gang is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Phase {
    /// Members are missing. Holds nothing.
    #[default]
    Gathering,
    /// Complete enough to be tried. Holds nothing; the schedule clock runs.
    Queued,
    /// A plan exists and its room is held.
    Planned,
    /// Members are being bound, pod by pod.
    Binding,
    /// The minimum is met, or was met once and its loss mode asks no more.
    Running,
    /// The minimum was met and is not any more, or binding fell short of it; a deadline runs.
    Degraded,
    /// Over: see [`End`].
    Ended(End),
}

/// How a gang ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum End {
    /// Its members ended well.
    Completed,
    /// Its policy gave up on it.
    Failed,
    /// Its object or its last member was deleted.
    Deleted,
}

/// A gang's state: phase, clocks, place in the queue. Changed by [`step`] alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Life {
    phase: Phase,
    /// What is left of the schedule timeout.
    schedule_left: Option<Nanos>,
    /// What is left of the deadline.
    deadline_left: Option<Nanos>,
    in_queue: bool,
}

impl Life {
    /// Where the gang is.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether the search should look for places: always in `Queued`, in `Running` and `Degraded`
    /// while members wait that may go.
    pub const fn in_queue(&self) -> bool {
        self.in_queue
    }

    /// What is left of the schedule timeout, running or standing still.
    pub const fn schedule_left(&self) -> Option<Nanos> {
        self.schedule_left
    }

    /// What is left of the deadline of open holds and of members below the minimum.
    pub const fn deadline_left(&self) -> Option<Nanos> {
        self.deadline_left
    }

    /// When the running clock runs out, from now. A driver that feeds [`Event::Elapsed`] in larger
    /// steps than this acts late, but never differently.
    pub const fn expires_in(&self) -> Option<Nanos> {
        match self.phase {
            Phase::Queued => self.schedule_left,
            _ => self.deadline_left,
        }
    }
}

/// What the owner and the engine chose. A span of zero counts as one nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How long a complete group may wait; `None` waits for ever.
    pub schedule_timeout: Option<Nanos>,
    /// What happens then.
    pub on_timeout: TimeoutPolicy,
    /// What a loss of running members means.
    pub on_loss: LossMode,
    /// How long holds may stay open and members may run below the minimum. With
    /// [`TimeoutPolicy::ReleasePartial`] the schedule timeout, if any, takes its place.
    pub degraded_deadline: Nanos,
}

/// The facts about a gang's members. The caller takes them from the group tree; "the minimum" is
/// that of the whole tree, and no minimum is below one member.
///
/// Members being deleted, and members released by [`Command::Unwind`], are no members: they keep
/// their room and count for nothing here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Census {
    /// Members that wait, are held, are bound or ended well meet the minimum together.
    pub is_ready: bool,
    /// Members that wait or are held meet the minimum alone: what [`LossMode::WaitingOnly`] asks of
    /// a new start.
    pub is_ready_anew: bool,
    /// Members that are held, bound or ended well meet the minimum together.
    pub is_covered: bool,
    /// Members that are bound or ended well meet the minimum together.
    pub is_satisfied: bool,
    /// The minimum is met by members that ended well, none waits, is held or is bound, and none is
    /// to come.
    pub is_finished: bool,
    /// Some member could be placed and has no place.
    pub has_waiting: bool,
    /// Some member has a place that is not confirmed.
    pub has_held: bool,
    /// Some member is confirmed on a node and has not ended; of those that may be released, not of those
    /// that another scheduler answers for.
    pub has_bound: bool,
}

/// Something that concerns the gang as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The facts changed: see the census.
    Changed,
    /// The search found places for members that wait. The census is that before they are held.
    PlanFound,
    /// The plan cannot be carried out any more, and nothing of it was handed out.
    PlanLost,
    /// The plan is being handed out: from here on members are confirmed one by one.
    BindStarted,
    /// Time went by. Changes clocks and what follows from them; facts are left to
    /// [`Event::Changed`].
    Elapsed(Nanos),
    /// The group object (or the pod, for a gang of one) was deleted. Bound members stay: whether
    /// they go is the owner's business.
    Deleted,
}

/// Something to do. The order is that of carrying out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Command {
    /// Give back the room of all members that are held and not confirmed; they wait again.
    ReleaseHolds,
    /// Release all bound members, because the minimum cannot be kept. From now on they are no
    /// members; they keep their room until they are gone.
    Unwind,
    /// Take the gang out of the queue.
    Dequeue,
    /// Put the gang into the queue at its place.
    Enqueue,
    /// Put the gang, which is in the queue, behind the others of its priority.
    Requeue,
    /// Hold the room of the plan that was found and hand it out, then send [`Event::BindStarted`].
    Hold,
}

impl Command {
    /// All commands, in the order of carrying out.
    pub const ALL: [Self; 6] = [
        Self::ReleaseHolds,
        Self::Unwind,
        Self::Dequeue,
        Self::Enqueue,
        Self::Requeue,
        Self::Hold,
    ];
}

/// A set of commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Commands(u8);

impl Commands {
    /// Nothing to do.
    pub const NONE: Self = Self(0);

    /// Whether there is nothing to do.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether this is to be done.
    pub const fn contains(self, command: Command) -> bool {
        self.0 & 1 << command as u8 != 0
    }

    /// What is to be done, in the order of carrying out.
    pub fn iter(self) -> impl Iterator<Item = Command> {
        Command::ALL
            .into_iter()
            .filter(move |command| self.contains(*command))
    }

    fn add(&mut self, command: Command) {
        self.0 |= 1 << command as u8;
    }
}
