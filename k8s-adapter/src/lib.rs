//! Kubernetes objects in, gangs out.
#![forbid(unsafe_code)]

mod annotations;
pub mod api;
pub mod card_models;
mod cards;
pub mod cli;
pub mod expand;
pub mod intake;
pub mod load;
pub mod member;
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
pub mod world;
