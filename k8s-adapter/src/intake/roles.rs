//! Trees from roles: what most systems make of a group.
//!
//! Roles by name with their minima, and the members, enter; parts of a tree leave, and each member is
//! given its role. Leaves are found by the names that pods give, so inner nodes get names that no label
//! can hold, such as `jobset/train`.

use std::collections::BTreeMap;

use gangline::gang::{Group, GroupKind, Minimum, TopologyRule};

use super::{MOST, Member, store};

/// The leaf of pods without a task.
const NO_TASK: &str = "(no task)";

/// Roles and the fewest members of each.
pub(super) type Minima = BTreeMap<String, u32>;

/// A leaf for each role, and one without a minimum for each other that members have.
pub(super) fn leaves(minima: &Minima, members: &mut [&mut Member]) -> Vec<Group> {
    let mut roles = minima.clone();
    for member in members {
        let task = member
            .link
            .as_ref()
            .map(|link| &*link.task)
            .filter(|task| !task.is_empty());
        task.unwrap_or(NO_TASK).clone_into(&mut member.spec.role);
        roles.entry(member.spec.role.clone()).or_insert(0);
    }
    roles
        .iter()
        .map(|(task, &min)| store::role(task, min))
        .collect()
}

/// How many members the roles need together.
pub(super) fn sum(minima: &Minima) -> u64 {
    minima.values().map(|&min| u64::from(min)).sum()
}

/// A node that needs the minimum of each of its children, and `min` members over all of them. Children
/// without a minimum may stay empty.
pub(super) fn all_of(name: String, children: Vec<Group>, min: u64) -> Group {
    let min = u32::try_from(min).unwrap_or(u32::MAX);
    inner(name, Minimum::Members(min.max(1)), children)
}

/// A node of which so many children are enough to start; the others start later, each whole.
pub(super) fn enough_of(name: String, children: Vec<Group>, enough: u32) -> Group {
    inner(name, Minimum::Children(enough), children)
}

fn inner(name: String, min: Minimum, children: Vec<Group>) -> Group {
    Group {
        name,
        topology: TopologyRule::default(),
        kind: GroupKind::Group { min, children },
    }
}

/// So many for each of so many.
pub(super) fn times(one: u32, other: u32) -> u32 {
    one.saturating_mul(other).min(MOST)
}

/// Each of these pods stands alone: nothing that was said makes a gang of them.
pub(super) fn leave_alone(members: &mut [&mut Member]) {
    for member in members {
        member.spec.gang = None;
    }
}
