//! Gangs: groups of members that run together or not at all.
//!
//! [`spec`] is the group tree as an adapter states it (roles, minima, constraints, policies);
//! [`policy`] holds what an owner may choose about time and loss; [`life`] is the life-cycle
//! machine, a pure function without a heap. None of them knows devices.

pub mod life;
pub mod policy;
#[cfg(feature = "alloc")]
pub mod spec;

pub use policy::{Disruption, LossMode, TimeoutPolicy};
#[cfg(feature = "alloc")]
pub use spec::{
    GangKey, GangSpec, Group, GroupKind, Minimum, PodPhase, PodSpec, Problem, Role, ScoringRule,
    TopologyRule,
};
