//! Gangline decides where groups of GPU pods run: all members of a group together, on exact
//! devices, or none.
//!
//! Tell a [`Scheduler`] what happens ([`Event`]s), ask it to [`decide`](Scheduler::decide), carry
//! out what it says. It never reads a clock, a file, a socket or a random device: the same events
//! give the same decisions, bit for bit, on every platform. The rooms, from the bottom up:
//!
//! | module | holds |
//! |---|---|
//! | [`units`], [`bits`] | integers with units; card and node sets in words |
//! | [`request`] | what one member asks for |
//! | [`device`] | card models, MIG, links; the cards of a node: what fits, what is left |
//! | [`gang`] | the group tree and the life-cycle machine |
//! | [`cluster`] | node states, classes of equal state, domains, the ledger with undo |
//! | [`price`] | what a node state is worth for the work to come |
//! | `queue` | who is next, and what is held back for whom |
//! | `place` | the search: feasibility, scoring |
//! | [`explain`] | reasons and counterfactuals |
//! | [`engine`] | the face: events in, decisions out |
//!
//! Without the `alloc` feature only `units`, `bits`, `gang::life` and the tables of `device` (`mig`,
//! `model`, `names`, `overhead`) exist, and nothing needs a heap.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod bits;
#[cfg(feature = "alloc")]
pub mod cluster;
pub mod device;
#[cfg(feature = "alloc")]
pub mod engine;
#[cfg(feature = "alloc")]
pub mod explain;
pub mod gang;
#[cfg(feature = "alloc")]
mod hash;
#[cfg(feature = "alloc")]
mod heap;
#[cfg(feature = "alloc")]
pub(crate) mod place;
#[cfg(feature = "alloc")]
pub mod price;
#[cfg(feature = "alloc")]
pub(crate) mod queue;
#[cfg(feature = "alloc")]
pub mod request;
#[cfg(feature = "alloc")]
mod symbols;
pub mod units;

#[cfg(feature = "alloc")]
pub use engine::{
    Config, Decision, Event, GangId, NodeIx, Placement, Rejection, Scheduler, Verdict,
};
