//! The programs of a control plane and the definitions of custom resources, and where they lie.

use std::{
    env, fmt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::Error;

/// A program of a control plane, in the order in which they start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Program {
    /// etcd.
    Etcd,
    /// kube-apiserver.
    ApiServer,
    /// kube-controller-manager: Jobs, garbage collection, node life cycle, eviction, and the like.
    ControllerManager,
    /// kwok, which plays the kubelet of every node.
    Kwok,
    /// kube-scheduler.
    Scheduler,
}

impl Program {
    /// The name of its file; its log is called the same, with `.log`.
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Kwok => "kwok",
            Self::Scheduler => "kube-scheduler",
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.file_name())
    }
}

/// A project whose custom resources a control plane can be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Project {
    /// Volcano: `PodGroup`, `Queue` and `HyperNode`.
    Volcano,
    /// scheduler-plugins: `PodGroup` and `ElasticQuota`.
    SchedulerPlugins,
    /// `JobSet`.
    JobSet,
    /// `LeaderWorkerSet`.
    LeaderWorkerSet,
    /// Kueue: `ClusterQueue`, `LocalQueue`, `Workload`, `Topology` and the like.
    Kueue,
}

impl Project {
    pub(crate) const fn directory(self) -> &'static str {
        match self {
            Self::Volcano => "volcano",
            Self::SchedulerPlugins => "scheduler-plugins",
            Self::JobSet => "jobset",
            Self::LeaderWorkerSet => "lws",
            Self::Kueue => "kueue",
        }
    }
}

/// The directory that holds the programs: the one that the environment variable
/// `GANGLINE_CONTROLPLANE` names, or else the one that `.ci/controlplane` prints, which builds the
/// programs when they are not there yet (minutes).
pub fn directory_of_programs() -> Result<PathBuf, Error> {
    if let Some(directory) = env::var_os("GANGLINE_CONTROLPLANE") {
        return Ok(directory.into());
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(".ci")
        .join("controlplane");
    let output = Command::new(&script)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(Error::io(format!("run {}", script.display())))?;
    if !output.status.success() {
        return Err(Error::Build {
            script,
            status: output.status,
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().into())
}
