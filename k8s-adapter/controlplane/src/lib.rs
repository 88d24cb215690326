//! A Kubernetes control plane of real programs, for tests and benchmarks.
//!
//! A [`Builder`] goes in, a running [`ControlPlane`] comes out: etcd and kube-apiserver, and on
//! request kube-controller-manager, kube-scheduler and kwok, on free loopback ports, with state and
//! logs in a directory of its own. Any number may run side by side. The programs come from
//! `.ci/controlplane`, which builds them at first use.
//!
//! ```no_run
//! use gangline_controlplane::{ControlPlane, Node, Program};
//!
//! # fn main() -> Result<(), gangline_controlplane::Error> {
//! let mut control_plane = ControlPlane::builder().controller_manager().kwok().start()?;
//! control_plane.create_node(&Node::new("one").resource("nvidia.com/gpu", "8"))?;
//! println!("export KUBECONFIG={}", control_plane.kubeconfig().display());
//! control_plane.kill(Program::ApiServer)?;
//! control_plane.restart(Program::ApiServer)?;
//! control_plane.passed();
//! # Ok(())
//! # }
//! ```
//!
//! This crate is hardly a client: tests bring their own, and get a kubeconfig with all rights, a URL and
//! a token; what is here prepares and watches a test. It never touches a cluster that it did not start.
//!
//! A control plane leaves neither processes nor files behind, also when its test panics or is killed:
//! see `guard.rs`. What stays on purpose are the logs of a test that failed, which is one that did not
//! end with [`ControlPlane::passed`]: they are copied to `target/controlplane-logs`.
#![forbid(unsafe_code)]

mod apply;
mod builder;
mod control_plane;
mod error;
mod guard;
mod http;
mod key;
mod layout;
mod node;
mod ports;
mod process;
mod program;

pub use builder::Builder;
pub use control_plane::ControlPlane;
pub use error::Error;
pub use http::{Answer, Lines};
pub use node::Node;
pub use program::{Program, Project, directory_of_programs};
