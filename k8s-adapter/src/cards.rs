//! Which resource names count whole cards: the core's table, under the adapter's name.

pub use gangline::device::names::{CardKind, card_kind};
