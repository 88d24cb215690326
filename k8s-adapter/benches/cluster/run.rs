//! One run: a control plane, somebody who binds, and the load.

use std::{
    fmt, fs,
    process::{Child, Command},
    time::{Duration, Instant},
};

use futures::future::join_all;
use gangline_controlplane::{ControlPlane, Program};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use tokio::{sync::mpsc, task::JoinHandle, time};

use crate::{
    load::{self, NAMESPACE},
    measure::{Seen, Times, cpu_seconds, watch_pods},
};

/// A run that makes no progress for so long is over.
const PATIENCE: Duration = Duration::from_secs(90);
/// Requests of the binder that decides nothing at a time.
const BINDERS: usize = 32;

/// Who gives pods their nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Who {
    /// A binder that decides nothing: the limit of the API server.
    Floor,
    KubeScheduler,
    Gangline,
}

impl fmt::Display for Who {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Who::Floor => "floor",
            Who::KubeScheduler => "kube-scheduler",
            Who::Gangline => "gangline",
        })
    }
}

impl Who {
    const fn scheduler_name(self) -> &'static str {
        match self {
            Who::Floor => "nobody",
            Who::KubeScheduler => "default-scheduler",
            Who::Gangline => "gangline",
        }
    }
}

/// Seconds of processor time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cpu {
    pub(crate) scheduler: f64,
    pub(crate) api_server: f64,
    pub(crate) etcd: f64,
}

/// How a run went; times in seconds.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) pods: u32,
    pub(crate) bound: u32,
    /// From the first request until the last pod was bound.
    pub(crate) all_bound: f64,
    /// From when the last pod was seen until the last one was bound.
    pub(crate) after_last_pod: f64,
    pub(crate) half_bound: u32,
    pub(crate) cpu: Cpu,
    waits: Vec<f64>,
}

impl Outcome {
    /// How long groups waited from their first pod until their last one was bound, at a quantile.
    pub(crate) fn group_wait(&self, quantile: f64) -> f64 {
        let last = self.waits.len().saturating_sub(1) as f64;
        let at = (quantile * last) as usize;
        self.waits.get(at).copied().unwrap_or(f64::NAN)
    }
}

type Failure = Box<dyn std::error::Error>;

/// Somebody who binds, as long as this is there.
enum Binder {
    Task(JoinHandle<()>),
    Process(Child),
    Within,
}

impl Drop for Binder {
    fn drop(&mut self) {
        match self {
            Binder::Task(task) => task.abort(),
            Binder::Process(child) => {
                let _ = child.kill();
                let _ = child.wait();
            }
            Binder::Within => {}
        }
    }
}

/// Runs it once.
pub(crate) fn run(who: Who, nodes: u32, groups: u32, size: u32) -> Result<Outcome, Failure> {
    let mut builder = ControlPlane::builder();
    if who == Who::KubeScheduler {
        // Its own limits would be what is measured.
        let unlimited = ["--kube-api-qps=100000", "--kube-api-burst=100000"];
        builder = unlimited
            .into_iter()
            .fold(builder.kube_scheduler(), |builder, flag| {
                builder.flag(Program::Scheduler, flag)
            });
    }
    let control_plane = builder.start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(measure(who, &control_plane, nodes, groups, size));
    if outcome.is_ok() {
        control_plane.passed();
    }
    outcome
}

async fn measure(
    who: Who,
    control_plane: &ControlPlane,
    nodes: u32,
    groups: u32,
    size: u32,
) -> Result<Outcome, Failure> {
    let kubeconfig = Kubeconfig::read_from(control_plane.kubeconfig())?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    load::create(&client, "/api/v1/namespaces", &namespace).await?;
    load::nodes(&client, nodes).await?;
    let (line, mut seen) = mpsc::unbounded_channel();
    let watch = tokio::spawn(watch_pods(client.clone(), line));
    let (to_bind, binds) = mpsc::unbounded_channel();
    let binder = bind(who, control_plane, &client, nodes, binds)?;
    // Until its watches are there; a round of listing 1,000 nodes takes less.
    time::sleep(Duration::from_secs(5)).await;
    let cpu = || Cpu {
        scheduler: match &binder {
            Binder::Process(child) => cpu_seconds(child.id()),
            Binder::Within => control_plane
                .process_id(Program::Scheduler)
                .map_or(0.0, cpu_seconds),
            Binder::Task(_) => 0.0,
        },
        api_server: control_plane
            .process_id(Program::ApiServer)
            .map_or(0.0, cpu_seconds),
        etcd: control_plane
            .process_id(Program::Etcd)
            .map_or(0.0, cpu_seconds),
    };
    let before = cpu();
    let since = Instant::now();
    let load = {
        let client = client.clone();
        tokio::spawn(async move {
            load::groups(&client, groups, size).await?;
            load::pods(&client, groups, size, who.scheduler_name()).await
        })
    };
    let pods = groups * size;
    let mut times = Times::default();
    while times.bound() < pods {
        let Ok(Some(seen)) = time::timeout(PATIENCE, seen.recv()).await else {
            break;
        };
        if times.take(&seen) {
            let _ = to_bind.send(seen);
        }
    }
    load.await??;
    let after = cpu();
    watch.abort();
    let (waits, half_bound) = times.groups(size);
    let last = times.last_bound().unwrap_or(since);
    Ok(Outcome {
        pods,
        bound: times.bound(),
        all_bound: last.duration_since(since).as_secs_f64(),
        after_last_pod: last
            .saturating_duration_since(times.last_seen().unwrap_or(last))
            .as_secs_f64(),
        half_bound,
        cpu: Cpu {
            scheduler: after.scheduler - before.scheduler,
            api_server: after.api_server - before.api_server,
            etcd: after.etcd - before.etcd,
        },
        waits,
    })
}

/// Starts who binds.
fn bind(
    who: Who,
    control_plane: &ControlPlane,
    client: &Client,
    nodes: u32,
    binds: mpsc::UnboundedReceiver<Seen>,
) -> Result<Binder, Failure> {
    Ok(match who {
        Who::Floor => Binder::Task(tokio::spawn(floor(client.clone(), nodes, binds))),
        Who::KubeScheduler => Binder::Within,
        Who::Gangline => {
            let log = fs::File::create(control_plane.directory().join("gangline.log"))?;
            let mut command = Command::new(env!("CARGO_BIN_EXE_gangline"));
            command
                .args(["run", "--no-leader-election", "--log", "warn"])
                .stderr(log);
            control_plane.attach(&mut command);
            Binder::Process(command.spawn()?)
        }
    })
}

/// Binds each pod to the next node.
async fn floor(client: Client, nodes: u32, binds: mpsc::UnboundedReceiver<Seen>) {
    let next = tokio::sync::Mutex::new((binds, 0_u32));
    let worker = || async {
        loop {
            let (seen, node) = {
                let mut next = next.lock().await;
                let Some(seen) = next.0.recv().await else {
                    return;
                };
                next.1 = (next.1 + 1) % nodes;
                (seen, next.1)
            };
            let binding = json!({
                "apiVersion": "v1", "kind": "Binding",
                "metadata": {"name": seen.name, "uid": seen.uid},
                "target": {"apiVersion": "v1", "kind": "Node", "name": format!("n{node:05}")},
            });
            let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{}/binding", seen.name);
            if let Err(error) = load::create(&client, &path, &binding).await {
                eprintln!("floor: {error}");
            }
        }
    };
    join_all((0..BINDERS).map(|_| worker())).await;
}
