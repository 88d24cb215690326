//! The group tree: what belongs together, how much of it is enough, and how close it must be.
//!
//! Data enters as [`GangSpec`] (the group) and [`PodSpec`] (its members, linked by [`GangKey`] and
//! role name, in any order of arrival). [`GangSpec::check`] says whether a tree makes sense; the
//! engine refuses or parks what does not. Nothing here holds capacity or knows a node.

use alloc::{boxed::Box, format, string::String, sync::Arc, vec::Vec};

pub use crate::gang::policy::{Disruption, LossMode, TimeoutPolicy};
use crate::{
    device::Devices,
    request::Template,
    units::{Nanos, Uid},
};

/// How pods name their group. Two systems may use the same name, so the source is part of the key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct GangKey {
    /// Namespace of the group object.
    pub namespace: String,
    /// Name of the group object.
    pub name: String,
    /// Which kind of object defines it, in the adapter's words (`volcano`, `native`, ...).
    #[cfg_attr(feature = "serde", serde(default))]
    pub source: String,
}

/// A group of members, as its owner wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct GangSpec {
    /// Identity of this generation of the group: a re-created group has another.
    pub uid: Uid,
    /// How pods name it.
    pub key: GangKey,
    /// When it was created, on the caller's clock. Earlier goes first among equal priorities.
    #[cfg_attr(feature = "serde", serde(default))]
    pub created: Nanos,
    /// Higher goes first.
    #[cfg_attr(feature = "serde", serde(default))]
    pub priority: i32,
    /// Name of its queue; empty means the default queue.
    #[cfg_attr(feature = "serde", serde(default))]
    pub queue: String,
    /// The tree of sub-groups and roles.
    pub root: Group,
    /// How long a complete group may wait before `on_timeout` applies; `None` waits for ever.
    #[cfg_attr(feature = "serde", serde(default))]
    pub schedule_timeout: Option<Nanos>,
    /// What happens when `schedule_timeout` has passed.
    #[cfg_attr(feature = "serde", serde(default))]
    pub on_timeout: TimeoutPolicy,
    /// What a loss of running members means.
    #[cfg_attr(feature = "serde", serde(default))]
    pub on_loss: LossMode,
    /// Whether members may be evicted one by one or only all together.
    #[cfg_attr(feature = "serde", serde(default))]
    pub disruption: Disruption,
    /// Where members go when several nodes would do; `None` takes the engine's rule.
    #[cfg_attr(feature = "serde", serde(default))]
    pub scoring: Option<ScoringRule>,
    /// The object's own status says that its minimum was met before. Then members that run below
    /// the minimum are a loss, judged by `on_loss`, and not a start that failed half-way.
    #[cfg_attr(feature = "serde", serde(default))]
    pub started: bool,
    /// Set by the adapter when the object cannot be honoured: the group waits with this reason.
    #[cfg_attr(feature = "serde", serde(default))]
    pub problem: Option<Problem>,
}

impl GangSpec {
    /// Deepest tree that is accepted.
    pub const DEEPEST: usize = 16;
    /// Most sub-groups and roles that are accepted in one gang.
    pub const MOST_GROUPS: usize = 4096;

    /// Whether the tree makes sense: names are unique, minima can be met, depth is bounded.
    /// Cost: n log n in the size of the tree.
    pub fn check(&self) -> Result<(), Problem> {
        let mut names = Vec::new();
        check_group(&self.root, 1, &mut names)?;
        if names.len() > Self::MOST_GROUPS {
            return Err(problem(
                "InvalidGroup",
                "root",
                format!("{} groups; at most 4096", names.len()),
            ));
        }
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => {
                let message = format!("two groups are named {:?}; names must be unique", pair[0]);
                Err(problem("InvalidGroup", "name", message))
            }
            None => Ok(()),
        }
    }
}

fn problem(code: &str, field: &str, message: String) -> Problem {
    Problem {
        code: code.into(),
        field: field.into(),
        message,
    }
}

fn check_group<'a>(
    group: &'a Group,
    depth: usize,
    names: &mut Vec<&'a str>,
) -> Result<(), Problem> {
    if depth > GangSpec::DEEPEST {
        let message = format!("nested deeper than {} groups", GangSpec::DEEPEST);
        return Err(problem("InvalidGroup", &group.name, message));
    }
    names.push(&group.name);
    match &group.kind {
        GroupKind::Role(role) if role.count > 0 && role.min > role.count => {
            let message = format!(
                "minimum {} is above the {} members wanted",
                role.min, role.count
            );
            Err(problem("MinExceedsMembers", &group.name, message))
        }
        GroupKind::Role(_) => Ok(()),
        GroupKind::Group { min, children } => {
            for child in children {
                check_group(child, depth + 1, names)?;
            }
            let bounded = match min {
                Minimum::Children(least) => (*least as usize > children.len())
                    .then(|| format!("{least} children needed of {}", children.len())),
                Minimum::Members(least) => match wanted_members(group) {
                    Some(wanted) if u64::from(*least) > wanted => Some(format!(
                        "minimum {least} is above the {wanted} members wanted"
                    )),
                    _ => None,
                },
            };
            match bounded {
                Some(message) => Err(problem("MinExceedsMembers", &group.name, message)),
                None => Ok(()),
            }
        }
    }
}

/// Members that a sub-tree wants; `None` when a role takes any number.
fn wanted_members(group: &Group) -> Option<u64> {
    match &group.kind {
        GroupKind::Role(role) => (role.count > 0).then_some(u64::from(role.count)),
        GroupKind::Group { children, .. } => children.iter().map(wanted_members).sum(),
    }
}

/// A node of the group tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Group {
    /// Name, unique within the gang.
    pub name: String,
    /// How close its members must be to each other.
    #[cfg_attr(feature = "serde", serde(default))]
    pub topology: TopologyRule,
    /// Leaf or inner node.
    pub kind: GroupKind,
}

/// Leaf or inner node of the group tree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum GroupKind {
    /// A leaf: members with the same place in the group.
    Role(Role),
    /// An inner node.
    Group {
        /// How much of the children is enough.
        min: Minimum,
        /// Sub-groups and roles.
        children: Vec<Group>,
    },
}

impl Default for GroupKind {
    fn default() -> Self {
        GroupKind::Role(Role::default())
    }
}

/// How much of an inner node must run for it to count. A child counts when its own minimum is met;
/// a child whose minimum is not met has no running members at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Minimum {
    /// At least this many members, over all children.
    Members(u32),
    /// At least this many children.
    Children(u32),
}

/// A leaf of the group tree. Its members usually share one template, but need not: a native
/// `PodGroup` states one minimum over pods of any shape.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Role {
    /// How many members are wanted; 0 means "as many as there are pods".
    #[cfg_attr(feature = "serde", serde(default))]
    pub count: u32,
    /// Fewer members than this are useless. 0: the role may be empty.
    #[cfg_attr(feature = "serde", serde(default))]
    pub min: u32,
    /// The shape of members that have no pods yet; needed only by `plan` of a gang without pods.
    #[cfg_attr(feature = "serde", serde(default))]
    pub template: Option<Arc<Template>>,
}

/// How close the members of a sub-group must be. Levels are named by their node label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct TopologyRule {
    /// All members in one domain of this level, or not at all.
    pub required: Option<String>,
    /// As few domains of this level as possible, but any number if need be.
    pub preferred: Option<String>,
}

/// Which of several feasible places is taken. Every rule is a worth of node states; the cheapest
/// change of worth wins, ties go to the node that is first by topology path and name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum ScoringRule {
    /// Fill nodes that are already in use.
    #[default]
    Binpack,
    /// Use the emptiest nodes.
    Spread,
    /// The node on which the least stays free.
    BestFit,
    /// Destroy the least of what the usual mix of work could use (Weng et al., USENIX ATC 2023);
    /// for comparison. As `Binpack` until there are prices.
    FragmentationGradient,
    /// Keep as many combinations of MIG profiles possible as can be.
    MigFlexibility,
    /// Destroy the least worth at bid prices for the usual mix of work, see
    /// [`price`](crate::price). As `Binpack` until there are prices.
    BidPrice,
    /// A blend: `cards`, `cpu` and `memory` are integer weights; positive fills, negative spreads.
    Weighted {
        /// Weight of free cards.
        cards: i16,
        /// Weight of free processor time.
        cpu: i16,
        /// Weight of free memory.
        memory: i16,
    },
}

impl ScoringRule {
    /// Whether it decides by prices or by the usual mix that they are made for.
    pub const fn needs_prices(self) -> bool {
        matches!(self, Self::BidPrice | Self::FragmentationGradient)
    }
}

/// Something about an object that keeps it from being honoured; harms only that object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{code}: {field}: {message}")]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Problem {
    /// A stable word for machines, in CamelCase, such as `AmbiguousGroup`.
    pub code: String,
    /// The field at fault, such as `spec.minMember`; empty when it is the object as a whole.
    pub field: String,
    /// The value and what would be accepted, for people.
    pub message: String,
}

/// Where a pod is in its life, as the cluster reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum PodPhase {
    /// Not running: waiting for a node, or bound and starting.
    #[default]
    Pending,
    /// Running on its node.
    Running,
    /// Ended well; counts towards its group's minimum, uses nothing.
    Succeeded,
    /// Ended badly; counts for nothing, uses nothing.
    Failed,
}

/// A pod: a member of a gang, or a gang of one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PodSpec {
    /// Identity. An update of the same name with another uid is a removal and an addition.
    pub uid: Uid,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Its group; `None` makes it a gang of one.
    #[cfg_attr(feature = "serde", serde(default))]
    pub gang: Option<GangKey>,
    /// Its leaf in the group tree; empty when the tree has only one.
    #[cfg_attr(feature = "serde", serde(default))]
    pub role: String,
    /// What it needs.
    pub template: Arc<Template>,
    /// The node it is bound to.
    #[cfg_attr(feature = "serde", serde(default))]
    pub node: Option<String>,
    /// The exact devices it holds there, when known; otherwise the engine assumes those that it would
    /// have given.
    #[cfg_attr(feature = "serde", serde(default))]
    pub devices: Option<Devices>,
    /// Where it is in its life.
    #[cfg_attr(feature = "serde", serde(default))]
    pub phase: PodPhase,
    /// When it was created, on the caller's clock.
    #[cfg_attr(feature = "serde", serde(default))]
    pub created: Nanos,
    /// When it started running, on the caller's clock; with `max_runtime` this gives its end.
    #[cfg_attr(feature = "serde", serde(default))]
    pub started: Option<Nanos>,
    /// Higher goes first (for a gang of one; a gang has its own priority).
    #[cfg_attr(feature = "serde", serde(default))]
    pub priority: i32,
    /// Held back by scheduling gates: belongs to the group, cannot be placed yet.
    #[cfg_attr(feature = "serde", serde(default))]
    pub gated: bool,
    /// Being deleted: keeps what it uses, is never placed, does not count as a member.
    #[cfg_attr(feature = "serde", serde(default))]
    pub terminating: bool,
    /// Not ours to place (another scheduler's); counts where it runs.
    #[cfg_attr(feature = "serde", serde(default))]
    pub foreign: bool,
    /// The node where another scheduler makes room for it. For gangs whose priority is not above its own
    /// it counts as if it ran there, as long as it is foreign, waits, and is not being deleted.
    #[cfg_attr(feature = "serde", serde(default))]
    pub nominated: Option<String>,
    /// Hashes of the names of its images, as long as it waits: of nodes that are equal in everything
    /// else one that has them is taken.
    #[cfg_attr(feature = "serde", serde(default))]
    pub images: Box<[u64]>,
    /// Set by the adapter when the pod cannot be honoured: it waits with this reason.
    #[cfg_attr(feature = "serde", serde(default))]
    pub problem: Option<Problem>,
}
