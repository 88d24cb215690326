//! Kubernetes objects in, gangs out.

pub mod names;
pub mod output;
pub mod picture;
