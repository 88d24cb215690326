//! A control plane with the scheduler beside it, and short ways to ask about pods.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::PathBuf,
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

use gangline_controlplane::{Builder, ControlPlane, Error};
use serde_json::Value;

/// When to stop waiting for what will not come.
const PATIENCE: Duration = Duration::from_mins(3);

/// The definition of Volcano's group, as far as the API server needs it.
pub(crate) const VOLCANO: &str = include_str!("volcano.yaml");

/// A control plane and a scheduler.
pub(crate) struct Cluster {
    pub(crate) control_plane: ControlPlane,
    scheduler: Option<Child>,
    log: PathBuf,
}

impl Cluster {
    /// Starts a control plane; the scheduler is started when the test wants it.
    pub(crate) fn start(builder: &Builder) -> Result<Self, Error> {
        let control_plane = builder.start()?;
        let log = control_plane.directory().join("gangline.log");
        Ok(Self {
            control_plane,
            scheduler: None,
            log,
        })
    }

    /// Starts the scheduler with these further arguments.
    pub(crate) fn run(&mut self, arguments: &[&str]) {
        let log = File::options().create(true).append(true).open(&self.log);
        let mut command = Command::new(env!("CARGO_BIN_EXE_gangline"));
        command
            .args(["run", "--log", "debug,hyper_util=info,tower=info,kube=info"])
            .args(arguments)
            .stderr(log.expect("the directory can be written"));
        self.control_plane.attach(&mut command);
        self.scheduler = Some(command.spawn().expect("the scheduler starts"));
    }

    /// Ends the scheduler at once, as a crash does.
    pub(crate) fn kill_scheduler(&mut self) {
        if let Some(mut scheduler) = self.scheduler.take() {
            scheduler.kill().expect("it can be ended");
            scheduler.wait().expect("it ends");
        }
    }

    /// What the scheduler has logged so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// An object.
    pub(crate) fn read(&self, path: &str) -> Value {
        let answer = self
            .control_plane
            .get(path)
            .expect("the API server answers");
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        serde_json::from_str(&answer.body).expect("it is JSON")
    }

    /// The node of each pod of the namespace `default` whose name begins like this; empty for one that
    /// waits.
    pub(crate) fn places(&self, prefix: &str) -> BTreeMap<String, String> {
        let pods = self.read("/api/v1/namespaces/default/pods");
        let pods = pods["items"].as_array().expect("a list").iter();
        let named = pods.map(|pod| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            (
                text(&pod["metadata"]["name"]),
                text(&pod["spec"]["nodeName"]),
            )
        });
        named.filter(|(name, _)| name.starts_with(prefix)).collect()
    }

    /// How many of these pods there are, and how many of them have a node.
    pub(crate) fn placed(&self, prefix: &str) -> (usize, usize) {
        let places = self.places(prefix);
        let bound = places.values().filter(|node| !node.is_empty()).count();
        (places.len(), bound)
    }

    /// Asks again until the answer is yes.
    pub(crate) fn wait_until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let since = Instant::now();
        while !holds() {
            if since.elapsed() > PATIENCE {
                let log = self.log();
                let end = log.len().saturating_sub(20_000);
                let end = log.get(end..).unwrap_or(&log);
                panic!("still not so: {what}\n--- the end of the scheduler's log:\n{end}");
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.kill_scheduler();
    }
}
