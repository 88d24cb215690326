//! Nodes and what runs on them: states, classes of equal state, domains, the ledger with undo.

pub mod spec;

pub use spec::{NodeCards, NodeSpec};
