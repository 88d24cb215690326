//! Why something waits, and what would let it in.

pub mod reason;

pub use reason::{Cause, Counterfactual, DomainAttempt, NodeCount, Reason, Shortfall};
