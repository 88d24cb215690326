//! Kubernetes objects in, gangs out.
#![forbid(unsafe_code)]

mod annotations;
pub mod api;
pub mod card_models;
mod cards;
pub mod cli;
pub mod expand;
mod fields;
pub mod intake;
#[cfg(feature = "live")]
pub mod live;
pub mod load;
pub mod member;
pub mod mirror;
pub mod names;
pub mod node;
pub mod output;
pub mod picture;
pub mod pod;
pub mod priority;
pub mod problem;
pub mod quantity;
pub mod rules;
pub mod scenario;
mod volumes;
pub mod world;

/// Where a pod goes that does not say, of several places that would do: the rule that lost least on
/// every list of the replays (`docs/replays.md`). It solves prices for the work that it sees; the
/// core's own default needs no such work.
pub const DEFAULT_SCORING: gangline::gang::ScoringRule = gangline::gang::ScoringRule::BidPrice;
