//! What the owner of a group may choose about time and loss.
//!
//! Plain words without a heap: they enter with a group's specification and are read by the
//! life-cycle machine ([`life`](crate::gang::life)) and by whoever chooses victims. Nothing here
//! acts.

/// What happens when a complete group has waited for its schedule timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum TimeoutPolicy {
    /// Go behind the others of the same priority and start the clock again.
    #[default]
    Requeue,
    /// End as failed; its pods are the owner's to clean up.
    Fail,
    /// Let go of members that run below the minimum, then start over: the group's schedule timeout
    /// takes the place of the engine's deadline for degraded groups. Where nothing runs it is
    /// [`Requeue`](Self::Requeue).
    ReleasePartial,
}

/// What it means when a running group loses members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum LossMode {
    /// The minimum must be met once; later losses are refilled one by one.
    #[default]
    Once,
    /// Below the minimum the group is degraded: replaced within its deadline, or released whole.
    Strict,
    /// Only waiting members count towards the minimum of a new start.
    WaitingOnly,
}

/// Whether eviction may take single members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Disruption {
    /// Members above the minimum may go one by one.
    #[default]
    Single,
    /// All go or none.
    All,
}
