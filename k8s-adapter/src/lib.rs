//! Kubernetes objects in, gangs out.

pub mod api;
pub mod intake;
pub mod load;
pub mod quantity;
