//! A control plane with the scheduler beside it, and short ways to ask about pods.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::{self, File},
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    ops::Deref,
    path::PathBuf,
    process::{Child, Command},
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use gangline_controlplane::{Builder, ControlPlane, Error, Node, Project};
use serde_json::{Value, json};

use crate::proxy::{Fate, Proxy, Write};

/// When to stop waiting for what will not come.
const PATIENCE: Duration = Duration::from_mins(3);

/// The label of a test's own nodes.
const SITE: &str = "site";

/// The definition of Volcano's group, as far as the API server needs it.
pub(crate) const VOLCANO: &str = include_str!("volcano.yaml");

/// A Volcano group, and this many pods of it with so many GPUs each.
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

/// Whose control plane it is.
pub(crate) enum Plane {
    Own(Box<ControlPlane>),
    Shared(&'static ControlPlane),
}

impl Deref for Plane {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        match self {
            Self::Own(plane) => plane,
            Self::Shared(plane) => plane,
        }
    }
}

/// The control plane of all tests that need no other, with all its programs. It ends with the process.
fn shared() -> &'static ControlPlane {
    static SHARED: OnceLock<ControlPlane> = OnceLock::new();
    SHARED.get_or_init(|| {
        let builder = ControlPlane::builder().controller_manager().kwok();
        let control_plane = builder.kube_scheduler().start().unwrap();
        control_plane.define(Project::Volcano).unwrap();
        control_plane
    })
}

/// A control plane, or a part of the shared one, and schedulers.
pub(crate) struct Cluster {
    pub(crate) control_plane: Plane,
    namespace: String,
    /// A part of the shared control plane has its own nodes, namespace and `schedulerName`.
    site: Option<String>,
    /// Each with its arguments.
    schedulers: Vec<(Child, Vec<String>)>,
    log: PathBuf,
}

impl Cluster {
    /// Starts a control plane; the scheduler is started when the test wants it.
    pub(crate) fn start(builder: &Builder) -> Result<Self, Error> {
        let control_plane = builder.start()?;
        let log = control_plane.directory().join("gangline.log");
        Ok(Self {
            control_plane: Plane::Own(Box::new(control_plane)),
            namespace: "default".to_owned(),
            site: None,
            schedulers: Vec::new(),
            log,
        })
    }

    /// A part of the shared control plane of this name: with a namespace, nodes and pods of its own,
    /// whose `schedulerName` is the name.
    pub(crate) fn share(name: &str) -> Self {
        let control_plane = shared();
        control_plane.create_namespace(name).unwrap();
        Self {
            control_plane: Plane::Shared(control_plane),
            namespace: name.to_owned(),
            site: Some(name.to_owned()),
            schedulers: Vec::new(),
            log: control_plane.directory().join(format!("{name}.log")),
        }
    }

    /// The control plane of this test alone.
    pub(crate) fn own(&mut self) -> &mut ControlPlane {
        match &mut self.control_plane {
            Plane::Own(plane) => plane,
            Plane::Shared(_) => panic!("others use it too"),
        }
    }

    /// A proxy in front of the API server.
    pub(crate) fn proxy(
        &self,
        script: impl FnMut(&[Write]) -> Option<Fate> + Send + 'static,
    ) -> Proxy {
        static PROXIES: AtomicUsize = AtomicUsize::new(0);
        let number = PROXIES.fetch_add(1, Ordering::Relaxed);
        Proxy::start(&self.control_plane, &format!("proxy-{number}"), script)
    }

    /// Starts the scheduler, as the only one, with these further arguments.
    pub(crate) fn run(&mut self, arguments: &[&str]) {
        self.run_elected(&[&["--no-leader-election"], arguments].concat());
    }

    /// Starts one of several schedulers with these further arguments.
    pub(crate) fn run_elected(&mut self, arguments: &[&str]) {
        let log = File::options().create(true).append(true).open(&self.log);
        let mut command = Command::new(env!("CARGO_BIN_EXE_gangline"));
        command.args(["run", "--log", "debug,hyper_util=info,tower=info,kube=info"]);
        if let Some(site) = &self.site {
            command.args(["--scheduler-name", site, "--lease", &self.lease()]);
        }
        command
            .args(arguments)
            .stderr(log.expect("the directory can be written"));
        self.control_plane.attach(&mut command);
        let scheduler = command.spawn().expect("the scheduler starts");
        let arguments = arguments.iter().map(|&argument| argument.to_owned());
        self.schedulers.push((scheduler, arguments.collect()));
    }

    /// Whether the scheduler that was started first has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        let (scheduler, _) = &mut self.schedulers[0];
        scheduler.try_wait().expect("it can be looked at").is_some()
    }

    /// Starts the scheduler again that was started last, if it has ended by itself, as a kubelet does.
    pub(crate) fn keep_the_last(&mut self) {
        let Some((mut scheduler, arguments)) = self.schedulers.pop() else {
            return;
        };
        if scheduler.try_wait().expect("it can be looked at").is_some() {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            self.run_elected(&arguments);
        } else {
            self.schedulers.push((scheduler, arguments));
        }
    }

    /// Ends the scheduler that was started first at once, as a crash does.
    pub(crate) fn kill_scheduler(&mut self) {
        let (mut scheduler, _) = self.schedulers.remove(0);
        scheduler.kill().expect("it can be ended");
        scheduler.wait().expect("it ends");
    }

    /// Tells the scheduler that was started first to stop, and waits until it has; its exit code.
    pub(crate) fn stop_scheduler(&mut self) -> Option<i32> {
        let (mut scheduler, _) = self.schedulers.remove(0);
        let mut kill = Command::new("kill");
        kill.arg("-TERM").arg(scheduler.id().to_string());
        assert!(kill.status().expect("kill is there").success());
        scheduler.wait().expect("it ends").code()
    }

    /// Waits until the scheduler that was started first ends by itself; its exit code.
    pub(crate) fn wait_for_scheduler(&mut self) -> Option<i32> {
        let (mut scheduler, _) = self.schedulers.remove(0);
        scheduler.wait().expect("it ends").code()
    }

    /// What the scheduler has logged so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Creates or changes the objects of a YAML text, in this test's namespace where they name none. In a
    /// shared control plane, pods and nodes become the test's own.
    pub(crate) fn apply(&self, yaml: &str) {
        let applied = if self.site.is_some() {
            let mut objects: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
            for object in &mut objects {
                self.adopt(object);
            }
            let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
            self.control_plane
                .apply_in(&self.namespace, &texts.join("\n---\n"))
        } else {
            self.control_plane.apply_in(&self.namespace, yaml)
        };
        applied.unwrap();
    }

    /// Makes an object one of this test: pods go to its nodes only, and those that ask for `gangline` ask
    /// for its scheduler.
    fn adopt(&self, object: &mut Value) {
        let items = object.get_mut("items").and_then(Value::as_array_mut);
        for item in items.into_iter().flatten() {
            self.adopt(item);
        }
        if let Some(namespace) = object.pointer_mut("/metadata/namespace") {
            *namespace = self.namespace.as_str().into();
        }
        if object["kind"] == "Node" {
            let name = object["metadata"]["name"].as_str().unwrap();
            let name = self.node_name(name);
            object["metadata"]["labels"][SITE] = self.site.as_deref().into();
            object["metadata"]["name"] = name.into();
        }
        self.adopt_pods(object);
    }

    /// The same for the specs of pods, wherever an object has them.
    fn adopt_pods(&self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.adopt_pods(item)),
            Value::Object(fields) => {
                let name = fields.get_mut("schedulerName");
                if let Some(name) = name.filter(|name| *name == "gangline") {
                    *name = self.scheduler_name().into();
                }
                if fields.contains_key("containers") && !fields.contains_key("nodeName") {
                    let selector = fields.entry("nodeSelector").or_insert_with(|| json!({}));
                    selector[SITE] = self.site.as_deref().into();
                }
                fields.values_mut().for_each(|field| self.adopt_pods(field));
            }
            _ => {}
        }
    }

    /// What pods of this test name as their scheduler.
    pub(crate) fn scheduler_name(&self) -> &str {
        self.site.as_deref().unwrap_or("gangline")
    }

    /// The lease of this test's schedulers.
    fn lease(&self) -> String {
        format!("{}/gangline", self.namespace)
    }

    /// Who holds the lease.
    pub(crate) fn lease_holder(&self) -> String {
        let namespace = &self.namespace;
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/gangline");
        let answer = self.control_plane.get(&path).unwrap();
        let lease: Value = serde_json::from_str(&answer.body).unwrap();
        let holder = lease["spec"]["holderIdentity"].as_str();
        holder.unwrap_or_default().to_owned()
    }

    /// The name of one of this test's nodes in the control plane.
    pub(crate) fn node_name(&self, name: &str) -> String {
        let site = self.site.as_ref();
        site.map_or_else(|| name.to_owned(), |site| format!("{site}-{name}"))
    }

    /// Creates a node with this many GPUs.
    pub(crate) fn create_node(&self, name: &str, gpus: u32) {
        self.create(node(&self.node_name(name), gpus));
    }

    /// Creates a node; its name is one of [`node_name`](Self::node_name).
    pub(crate) fn create(&self, node: Node) {
        let node = match &self.site {
            Some(site) => node.label(SITE, site.as_str()),
            None => node,
        };
        self.control_plane.create_node(&node).unwrap();
    }

    /// The path of an object of this test's namespace: `("/api/v1", "pods/a-0")`.
    pub(crate) fn path(&self, api: &str, object: &str) -> String {
        format!("{api}/namespaces/{}/{object}", self.namespace)
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

    /// A pod.
    pub(crate) fn pod(&self, name: &str) -> Value {
        self.read(&self.pod_path(name))
    }

    /// Changes fields of an object.
    pub(crate) fn patch(&self, path: &str, fields: &Value) {
        let patch = "application/merge-patch+json";
        let answer = self
            .control_plane
            .request("PATCH", path, patch, &fields.to_string());
        answer.unwrap().expect_success(path).unwrap();
    }

    /// Deletes an object at once.
    pub(crate) fn delete(&self, path: &str) {
        let answer = self
            .control_plane
            .delete(&format!("{path}?gracePeriodSeconds=0"));
        answer.unwrap().expect_success(path).unwrap();
    }

    /// The path of a node.
    pub(crate) fn node_path(&self, name: &str) -> String {
        format!("/api/v1/nodes/{}", self.node_name(name))
    }

    /// The path of a pod.
    pub(crate) fn pod_path(&self, name: &str) -> String {
        self.path("/api/v1", &format!("pods/{name}"))
    }

    /// The node of each pod whose name begins like this; empty for one that waits.
    pub(crate) fn places(&self, prefix: &str) -> BTreeMap<String, String> {
        let pods = self.read(&self.path("/api/v1", "pods"));
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

    /// What a pod says about why it waits: a word, and a line for people.
    pub(crate) fn why(&self, pod: &str) -> (String, String) {
        let pod = self.pod(pod);
        let conditions = pod["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let scheduled = |condition: &&Value| {
            condition["type"] == "PodScheduled" && condition["status"] == "False"
        };
        let condition = conditions.find(scheduled).unwrap_or(&Value::Null);
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        (text("reason"), text("message"))
    }

    /// Binds a pod as some other scheduler would; the name of the node is as in the control plane.
    pub(crate) fn bind(&self, pod: &str, node: &str) {
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": { "name": pod },
            "target": { "kind": "Node", "name": node },
        });
        let path = self.path("/api/v1", &format!("pods/{pod}/binding"));
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
        if let Plane::Own(plane) = &mut self.control_plane
            && !thread::panicking()
        {
            plane.has_passed();
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
