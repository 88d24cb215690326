//! Kubernetes objects in, gangs out.
