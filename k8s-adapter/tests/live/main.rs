//! `gangline run` beside a real control plane.
//!
//! Each test starts its own (etcd, kube-apiserver and what else it needs); `.ci/controlplane` builds the
//! programs at first use. Nothing here has a time limit but the patience after which what does not come
//! is given up.
#![cfg(feature = "live")]

mod answers;
mod changes;
mod check;
mod config;
mod controllers;
mod events;
mod faults;
mod first_and_second;
mod kill;
mod lease;
mod metrics;
mod native;
mod owners;
mod planted;
mod poison;
mod proxy;
mod restart;
mod statuses;
mod storm;
mod support;
mod why;
