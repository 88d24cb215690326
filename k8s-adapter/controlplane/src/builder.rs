//! The choices before a start.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use crate::{ControlPlane, Error, Program, directory_of_programs};

/// The native group API of Kubernetes 1.37: beta and off by default (`GenericWorkload`), or alpha.
const FEATURE_GATES: [&str; 4] = [
    "GenericWorkload",
    "TopologyAwareWorkloadScheduling",
    "CompositePodGroup",
    "DRAWorkloadResourceClaims",
];
const RUNTIME_CONFIG: [&str; 2] = ["scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3"];

/// Somebody else may take a port after we chose it; so often we choose again.
const ATTEMPTS: u32 = 5;

/// What a control plane shall consist of. Without any choice: etcd and kube-apiserver, with the native
/// group API switched on.
#[derive(Clone, Debug)]
#[must_use = "nothing runs before `start`"]
pub struct Builder {
    pub(crate) programs: BTreeSet<Program>,
    pub(crate) flags: BTreeMap<Program, Vec<String>>,
    pub(crate) feature_gates: BTreeMap<String, bool>,
    pub(crate) runtime_config: BTreeMap<String, bool>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        let on = |name: &str| (name.to_owned(), true);
        Self {
            programs: BTreeSet::from([Program::Etcd, Program::ApiServer]),
            flags: BTreeMap::new(),
            feature_gates: FEATURE_GATES.map(on).into(),
            runtime_config: RUNTIME_CONFIG.map(on).into(),
        }
    }

    /// Also runs kube-controller-manager. Then pods need their service account and new nodes their
    /// kubelet (or kwok), as in life; without it the two admission plugins that need it are off.
    pub fn controller_manager(self) -> Self {
        self.program(Program::ControllerManager)
    }

    /// Also runs kwok as the kubelet of all nodes: nodes are Ready, pods on them run, pods of Jobs
    /// complete, deletions end.
    pub fn kwok(self) -> Self {
        self.program(Program::Kwok)
    }

    /// Also runs kube-scheduler, for the pods that ask for `default-scheduler`.
    pub fn kube_scheduler(self) -> Self {
        self.program(Program::Scheduler)
    }

    fn program(mut self, program: Program) -> Self {
        self.programs.insert(program);
        self
    }

    /// One more command line argument for a program, after ours: the later of two settings counts.
    pub fn flag(mut self, program: Program, argument: impl Into<String>) -> Self {
        self.flags.entry(program).or_default().push(argument.into());
        self
    }

    /// Switches a feature gate of Kubernetes in all its programs.
    pub fn feature_gate(mut self, name: impl Into<String>, on: bool) -> Self {
        self.feature_gates.insert(name.into(), on);
        self
    }

    /// Switches an API version (`scheduling.k8s.io/v1beta1`) on or off.
    pub fn runtime_config(mut self, version: impl Into<String>, on: bool) -> Self {
        self.runtime_config.insert(version.into(), on);
        self
    }

    /// Starts all and returns when all are ready.
    pub fn start(&self) -> Result<ControlPlane, Error> {
        let programs: PathBuf = directory_of_programs()?;
        let mut attempt = 1;
        loop {
            match ControlPlane::start(self, &programs) {
                Err(error) if error.is_lost_port() && attempt < ATTEMPTS => attempt += 1,
                result => return result,
            }
        }
    }
}
