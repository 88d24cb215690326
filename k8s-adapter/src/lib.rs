//! Kubernetes objects in, gangs out.

pub mod api;
pub mod quantity;
