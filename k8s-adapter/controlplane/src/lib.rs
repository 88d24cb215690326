//! A Kubernetes control plane of real programs, for tests and benchmarks.
//!
//! A [`Builder`] goes in, a running [`ControlPlane`] comes out: etcd and kube-apiserver, and on
//! request kube-controller-manager, kube-scheduler and kwok, on free loopback ports, with state and
//! logs in a directory of its own. Any number may run side by side. The programs come from
//! `.ci/controlplane`, which builds them at first use.
//!
//! ```no_run
//! use gangline_controlplane::{ControlPlane, Program};
//!
//! # fn main() -> Result<(), gangline_controlplane::Error> {
//! let mut control_plane = ControlPlane::builder().controller_manager().kwok().start()?;
//! println!("export KUBECONFIG={}", control_plane.kubeconfig().display());
//! control_plane.kill(Program::ApiServer)?;
//! control_plane.restart(Program::ApiServer)?;
//! # Ok(())
//! # }
//! ```
//!
//! This crate is no client: tests bring their own, and get a kubeconfig with all rights, a URL and a
//! token. It never touches a cluster that it did not start.
//!
//! No program outlives its test, also when that is killed: on Linux the kernel ends the programs with
//! the process that started them, for which `setpriv` (of util-linux) asks. Where there is no
//! `setpriv`, a test that is killed leaves its programs behind; one that panics does not. The
//! directory of state stays where a test is killed.
#![forbid(unsafe_code)]

mod builder;
mod control_plane;
mod error;
mod http;
mod key;
mod layout;
mod process;
mod program;

pub use builder::Builder;
pub use control_plane::ControlPlane;
pub use error::Error;
pub use http::Answer;
pub use program::{Program, directory_of_programs};
