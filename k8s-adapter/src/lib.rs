//! Kubernetes objects in, gangs out.

pub mod load;
