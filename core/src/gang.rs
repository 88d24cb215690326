//! Gangs: groups of members that run together or not at all.
//!
//! [`spec`] is the group tree as an adapter states it (roles, minima, constraints, policies);
//! [`life`] is the life-cycle machine, a pure function without a heap. Neither knows devices.

pub mod life;
#[cfg(feature = "alloc")]
pub mod spec;

#[cfg(feature = "alloc")]
pub use spec::{
    GangKey, GangSpec, Group, GroupKind, LossMode, Minimum, PodPhase, PodSpec, Problem, Role,
    ScoringRule, TimeoutPolicy, TopologyRule,
};
