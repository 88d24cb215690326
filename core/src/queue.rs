//! Who is next, and what is held back for whom.
//!
//! The simple form: one order over all gangs, and one reservation. A gang that does not fit holds
//! nothing and does not stop those behind it; so that a large one does not starve, it may get a
//! [`Reservation`] once it has waited long enough. Quota will join the questions that are asked
//! here: it decides *whether* a gang may be tried, never where it goes. Nothing here knows nodes
//! beyond their index, or devices.

use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::{
    engine::GangId,
    units::{Nanos, Uid},
};

/// A gang's place in the queue; smaller goes first: those of which members run below the minimum (what
/// they have idles until they are whole), then higher priority, then those that were never requeued (the
/// others in the order of their requeues), then age, then uid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn {
    degraded: Reverse<bool>,
    priority: Reverse<i32>,
    requeued: u64,
    created: Nanos,
    uid: Uid,
}

impl Turn {
    pub(crate) fn new(
        degraded: bool,
        priority: i32,
        requeued: u64,
        created: Nanos,
        uid: Uid,
    ) -> Self {
        Self {
            degraded: Reverse(degraded),
            priority: Reverse(priority),
            requeued,
            created,
            uid,
        }
    }
}

/// Room held back for a gang that has waited long enough. At most one exists at a time.
#[derive(Clone, Debug)]
pub(crate) struct Reservation {
    /// Who it is for.
    pub(crate) holder: GangId,
    /// By node index: reserved.
    pub(crate) nodes: Vec<bool>,
    /// When the holder will fit, if every running member that is in the way told how long it runs.
    pub(crate) starts: Option<Nanos>,
}

impl Reservation {
    /// Whether a gang behind the holder must keep off the reserved nodes: unless all its members
    /// are known to end by the holder's start.
    pub(crate) fn bars(&self, ends: Option<Nanos>) -> bool {
        !matches!((ends, self.starts), (Some(ends), Some(starts)) if ends <= starts)
    }

    /// Whether the holder should have started by now: somebody ran longer than they said.
    pub(crate) fn is_overdue(&self, now: Nanos) -> bool {
        self.starts.is_some_and(|starts| starts < now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_degraded_comes_before_priority_and_this_before_requeues_and_age() {
        let turn = |priority, requeued, created, uid| {
            Turn::new(false, priority, requeued, Nanos(created), Uid(uid))
        };
        let degraded = Turn::new(true, -1, 9, Nanos(9), Uid(9));
        let mut turns = [
            turn(0, 0, 1, 9),
            degraded,
            turn(0, 2, 0, 1),
            turn(0, 0, 1, 3),
            turn(5, 7, 9, 9),
            turn(0, 1, 5, 1),
        ];
        turns.sort_unstable();
        let expected = [
            degraded,
            turn(5, 7, 9, 9),
            turn(0, 0, 1, 3),
            turn(0, 0, 1, 9),
            turn(0, 1, 5, 1),
            turn(0, 2, 0, 1),
        ];
        assert_eq!(turns, expected);
    }

    #[test]
    fn who_ends_in_time_may_use_reserved_room_and_unknown_never_does() {
        let reservation = |starts| Reservation {
            holder: GangId(0),
            nodes: Vec::new(),
            starts,
        };
        let known = reservation(Some(Nanos(10)));
        assert!(!known.bars(Some(Nanos(10))));
        assert!(known.bars(Some(Nanos(11))));
        assert!(known.bars(None));
        assert!(reservation(None).bars(Some(Nanos(1))));
        assert!(known.is_overdue(Nanos(11)) && !known.is_overdue(Nanos(10)));
    }
}
