//! Kubernetes objects in, gangs out.

pub mod api;
pub mod cards;
pub mod expand;
pub mod intake;
pub mod load;
pub mod member;
pub mod node;
pub mod pod;
pub mod priority;
pub mod problem;
pub mod quantity;
pub mod rules;
pub mod world;
