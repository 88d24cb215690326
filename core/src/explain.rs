//! Why something waits, and what would let it in.

pub mod display;
pub mod reason;

pub use display::{Amount, join_words, level_word};
pub use reason::{Cause, Counterfactual, DomainAttempt, NodeCount, Reason, Shortfall};
