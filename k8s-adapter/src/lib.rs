//! Kubernetes objects in, gangs out.

pub mod api;
pub mod cards;
pub mod cli;
pub mod intake;
pub mod load;
pub mod names;
pub mod output;
pub mod picture;
pub mod pod;
pub mod problem;
pub mod quantity;
pub mod rules;
pub mod scenario;
pub mod world;
