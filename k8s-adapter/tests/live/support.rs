//! A control plane with the scheduler beside it, and short ways to ask about pods.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::{self, File},
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

use gangline_controlplane::{Builder, ControlPlane, Error, Node};
use serde_json::{Value, json};

/// When to stop waiting for what will not come.
const PATIENCE: Duration = Duration::from_mins(3);

/// The definition of Volcano's group, as far as the API server needs it.
pub(crate) const VOLCANO: &str = include_str!("volcano.yaml");

/// A Volcano group of the namespace `default`, and this many pods of it with so many GPUs each.
pub(crate) fn group(name: &str, min: u32, pods: u32, gpus: u32) -> String {
    let mut yaml = format!(
        "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {{name: {name}}}\n\
         spec: {{minMember: {min}}}\n"
    );
    for pod in 0..pods {
        let _ = write!(
            yaml,
            "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}-{pod}\n  annotations: \
             {{scheduling.k8s.io/group-name: {name}}}\nspec:\n  schedulerName: gangline\n  \
             containers:\n  - name: main\n    image: none\n    resources: {{limits: \
             {{nvidia.com/gpu: {gpus}}}}}\n"
        );
    }
    yaml
}

/// A node with this many GPUs.
pub(crate) fn node(name: &str, gpus: u32) -> Node {
    Node::new(name).resource("nvidia.com/gpu", gpus.to_string())
}

/// A control plane and a scheduler.
pub(crate) struct Cluster {
    pub(crate) control_plane: ControlPlane,
    schedulers: Vec<Child>,
    log: PathBuf,
}

impl Cluster {
    /// Starts a control plane; the scheduler is started when the test wants it.
    pub(crate) fn start(builder: &Builder) -> Result<Self, Error> {
        let control_plane = builder.start()?;
        let log = control_plane.directory().join("gangline.log");
        Ok(Self {
            control_plane,
            schedulers: Vec::new(),
            log,
        })
    }

    /// Starts the scheduler, as the only one, with these further arguments.
    pub(crate) fn run(&mut self, arguments: &[&str]) {
        self.run_elected(&[&["--no-leader-election"], arguments].concat());
    }

    /// Starts one of several schedulers with these further arguments.
    pub(crate) fn run_elected(&mut self, arguments: &[&str]) {
        let log = File::options().create(true).append(true).open(&self.log);
        let mut command = Command::new(env!("CARGO_BIN_EXE_gangline"));
        command
            .args(["run", "--log", "debug,hyper_util=info,tower=info,kube=info"])
            .args(arguments)
            .stderr(log.expect("the directory can be written"));
        self.control_plane.attach(&mut command);
        self.schedulers
            .push(command.spawn().expect("the scheduler starts"));
    }

    /// Ends the scheduler that was started first at once, as a crash does.
    pub(crate) fn kill_scheduler(&mut self) {
        let mut scheduler = self.schedulers.remove(0);
        scheduler.kill().expect("it can be ended");
        scheduler.wait().expect("it ends");
    }

    /// Tells the scheduler that was started first to stop, and waits until it has; its exit code.
    pub(crate) fn stop_scheduler(&mut self) -> Option<i32> {
        let mut scheduler = self.schedulers.remove(0);
        let mut kill = Command::new("kill");
        kill.arg("-TERM").arg(scheduler.id().to_string());
        assert!(kill.status().expect("kill is there").success());
        scheduler.wait().expect("it ends").code()
    }

    /// Waits until the scheduler that was started first ends by itself; its exit code.
    pub(crate) fn wait_for_scheduler(&mut self) -> Option<i32> {
        let mut scheduler = self.schedulers.remove(0);
        scheduler.wait().expect("it ends").code()
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

    /// What a pod of `default` says about why it waits: a word, and a line for people.
    pub(crate) fn why(&self, pod: &str) -> (String, String) {
        let pod = self.read(&format!("/api/v1/namespaces/default/pods/{pod}"));
        let conditions = pod["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let scheduled = |condition: &&Value| {
            condition["type"] == "PodScheduled" && condition["status"] == "False"
        };
        let condition = conditions.find(scheduled).unwrap_or(&Value::Null);
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        (text("reason"), text("message"))
    }

    /// Binds a pod of `default` as some other scheduler would.
    pub(crate) fn bind(&self, pod: &str, node: &str) {
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": { "name": pod },
            "target": { "kind": "Node", "name": node },
        });
        let path = format!("/api/v1/namespaces/default/pods/{pod}/binding");
        let answer = self
            .control_plane
            .post(&path, &binding.to_string())
            .unwrap();
        assert_eq!(answer.status, 201, "{}", answer.body);
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
        while !self.schedulers.is_empty() {
            self.kill_scheduler();
        }
    }
}

/// Where a scheduler answers.
pub(crate) struct Listener {
    pub(crate) address: String,
}

impl Listener {
    /// An address of this machine that nobody uses.
    pub(crate) fn free() -> Self {
        let found = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = found.expect("there is a free port").to_string();
        Self { address }
    }

    /// What is answered to `GET path`; `None` while nobody does.
    pub(crate) fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        Some(body.to_owned())
    }

    /// A number that `/metrics` tells.
    pub(crate) fn metric(&self, series: &str) -> Option<f64> {
        let text = self.get("/metrics")?;
        let values = text.lines().filter_map(|line| line.rsplit_once(' '));
        let mut values = values.filter(|(name, _)| *name == series);
        values.next()?.1.parse().ok()
    }
}
