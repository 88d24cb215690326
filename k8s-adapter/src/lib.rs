//! Kubernetes objects in, gangs out.

pub mod api;
pub mod cards;
pub mod pod;
pub mod problem;
pub mod quantity;
