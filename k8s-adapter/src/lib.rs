//! Kubernetes objects in, gangs out.

pub mod api;
pub mod load;
pub mod names;
pub mod output;
pub mod picture;
pub mod quantity;
pub mod scenario;
