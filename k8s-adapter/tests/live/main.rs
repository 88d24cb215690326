//! `gangline run` beside a real control plane.
//!
//! Each test starts its own (etcd, kube-apiserver and what else it needs); `.ci/controlplane` builds the
//! programs at first use. Nothing here has a time limit but the patience after which what does not come
//! is given up.
#![cfg(feature = "live")]

mod config;
mod events;
mod faults;
mod first_and_second;
mod lease;
mod metrics;
mod restart;
mod statuses;
mod support;
mod why;
