//! `gangline run`: the scheduler beside a cluster.
//!
//! ```text
//! catalog -> watches -> driver (mirror, engine) -> binder  -> API server
//!                          ^                    -> evictor ->
//!                          |                    -> reporter ->
//!                          |                    -> groups, events ->
//!                          +---- how binds went ----+
//! ```
//! Each arrow is a channel, each word a task. The driver alone decides, and never waits for the API
//! server; the others know nothing of the engine. A task that ends for no reason ends the process: it
//! starts again with what the API server says, which is all that there is to know.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use kube::{
    Client, Config,
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot, watch as signal},
    task, time,
};
use tracing::info;

mod answers;
mod bind;
mod catalog;
mod clock;
mod clocks;
mod complaints;
mod differences;
mod driver;
mod dump;
mod events;
mod evict;
mod groups;
mod health;
mod lease;
mod line;
mod metrics;
mod pauses;
mod pricing;
mod questions;
mod report;
mod request;
mod starts;
mod storyteller;
mod volumes;
mod watch;

pub use answers::{ask, ask_for_names};
use bind::Binder;
use catalog::Catalog;
use clock::Clock;
use clocks::Clocks;
pub use differences::{Difference, Differences, differences};
use driver::{Driver, Lines};
pub use dump::dump;
use events::Events;
use health::{Health, Known};
pub use lease::Election;
use lease::{Fence, Lease};
use metrics::{Counting, Metrics};
use questions::{Question, Questions};
use request::Requests;

/// So many changes wait for the driver at most; then the watches wait.
const WAITING_CHANGES: usize = 16_384;

/// How long what is being bound may take when the scheduler is told to stop: Kubernetes ends it for good
/// after thirty seconds.
const LAST_BINDS: Duration = Duration::from_secs(20);

/// What `gangline run` may be told.
#[derive(Clone, Debug)]
pub struct Options {
    /// How to reach the cluster; `None` looks where `kubectl` does, then for a service account.
    pub kubeconfig: Option<PathBuf>,
    /// Which context of the kubeconfig; `None` takes its current one.
    pub context: Option<String>,
    /// The `schedulerName`s that are answered for.
    pub scheduler_names: Vec<String>,
    /// Where `/healthz`, `/readyz` and `/metrics` are answered.
    pub listen: Option<SocketAddr>,
    /// Where all is told that the engine knows, for `gangline why --live`: an address of this machine.
    pub answer: Option<SocketAddr>,
    /// Which of several instances schedules; `None`: this one, whatever others do.
    pub election: Option<Election>,
    /// How the engine decides. The topology levels are found in the nodes' labels.
    pub engine: gangline::Config,
}

/// Why the scheduler cannot run.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The kubeconfig cannot be used.
    #[error("kubeconfig: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// There is no kubeconfig, and no service account either.
    #[error(
        "no cluster: {0}; accepted: --kubeconfig, KUBECONFIG, ~/.kube/config, or a pod's service account"
    )]
    NoCluster(#[from] kube::config::InferConfigError),
    /// The client cannot be made.
    #[error("client: {0}")]
    Client(#[from] kube::Error),
    /// Nobody can ask.
    #[error("{flag} {address}: {error}")]
    Listen {
        /// Which flag names the address.
        flag: &'static str,
        /// Where.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// Another instance schedules by now.
    #[error("the lease could not be renewed in time: another instance may schedule")]
    LeaseLost,
    /// A part of the scheduler ended without being told to.
    #[error("{0} ended; this is a bug in Gangline")]
    Ended(&'static str),
}

/// Runs the scheduler until `stop` ends: then nothing new is decided, and what is being bound is bound.
pub async fn run(options: Options, stop: impl Future<Output = ()>) -> Result<(), LiveError> {
    let metrics = Arc::new(Metrics::new());
    let client = connect_to(
        options.kubeconfig.as_deref(),
        options.context.as_deref(),
        Some(&metrics),
    )
    .await?;
    let health = Arc::new(Health::default());
    let (questions, asked) = Questions::open();
    let known = Known {
        health: Arc::clone(&health),
        metrics: Arc::clone(&metrics),
        questions,
    };
    let (stopping, is_stopping) = signal::channel(false);
    let stopped = || {
        let mut is_stopping = is_stopping.clone();
        async move {
            // Without a sender it is over as well.
            let _ = is_stopping.wait_for(|stops| *stops).await;
        }
    };
    let failed = |flag, address| {
        move |error| LiveError::Listen {
            flag,
            address,
            error,
        }
    };
    let server = async {
        match options.listen {
            None => std::future::pending().await,
            Some(address) => {
                let served = health::serve(address, known.clone(), stopped()).await;
                served.map_err(failed("--listen", address))
            }
        }
    };
    let answers = async {
        match options.answer {
            None => std::future::pending().await,
            Some(address) => {
                let names = options.scheduler_names.clone();
                let served = answers::serve(address, known.clone(), names, stopped()).await;
                served.map_err(failed("--answer", address))
            }
        }
    };
    let clocks = Clocks::new(Clock::start());
    let mut lease = options
        .election
        .as_ref()
        .map(|election| Lease::new(client.clone(), election, clocks.clone()));
    let work = async {
        let mut stop = pin!(stop);
        let fence = match &mut lease {
            Some(lease) => {
                health.stands_by();
                tokio::select! {
                    () = lease.acquire() => {}
                    () = &mut stop => return Ok(()),
                }
                health.starts();
                lease.fence()
            }
            None => Fence::open(),
        };
        let lost = async {
            match &mut lease {
                Some(lease) => lease.keep().await,
                None => std::future::pending().await,
            }
        };
        let parts = Parts {
            health,
            metrics,
            asked,
            clocks,
        };
        schedule(client, fence, &options, parts, stop, lost).await
    };
    let outcome = tokio::select! {
        outcome = work => outcome,
        served = server => served,
        served = answers => served,
    };
    let _ = stopping.send(true);
    if let Some(lease) = lease.filter(|_| outcome.is_ok()) {
        lease.release().await;
    }
    outcome
}

/// What the scheduler shares with whoever answers for it.
struct Parts {
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    asked: mpsc::Receiver<Question>,
    clocks: Clocks,
}

/// Schedules until `stop` ends, or `lost`: then nothing is finished, since others have begun.
async fn schedule(
    client: Client,
    fence: Fence,
    options: &Options,
    parts: Parts,
    stop: impl Future<Output = ()>,
    lost: impl Future<Output = ()>,
) -> Result<(), LiveError> {
    let Parts {
        health,
        metrics,
        asked,
        clocks,
    } = parts;
    let requests = Requests::new(client.clone(), fence);
    let (lines, ends) = Lines::open(WAITING_CHANGES);
    let events = Events::new(lines.events.clone());
    let names = options.scheduler_names.iter().cloned().collect();
    let driver = Driver::new(
        names,
        options.engine.clone(),
        clocks,
        &lines,
        health,
        Arc::clone(&metrics),
    );
    metrics.count_backlog_of(ends.changes.downgrade());
    let binder = Binder::new(
        requests.clone(),
        ends.reports.clone(),
        Arc::clone(&metrics),
        events.clone(),
    );

    let catalog = tokio::spawn(Catalog::new(client, ends.changes, Arc::clone(&metrics)).keep());
    // On a thread of its own: a long search must keep nobody from renewing the lease or hearing answers,
    // however few threads the others have.
    let (driver_ends, ended) = oneshot::channel::<()>();
    let driver = task::spawn_blocking(move || {
        Handle::current().block_on(async {
            tokio::select! {
                () = driver.drive(lines, asked) => {}
                // Told to, or whoever would tell is gone.
                _ = ended => {}
            }
        });
    });
    let mut binder = tokio::spawn(binder.work(ends.plans));
    let evictor = tokio::spawn(evict::work(
        requests.clone(),
        ends.evictions,
        Arc::clone(&metrics),
        events,
    ));
    let volumes = tokio::spawn(volumes::work(requests.clone(), ends.volumes, ends.reports));
    let statuses = tokio::spawn(groups::work(requests.clone(), ends.statuses));
    let events = tokio::spawn(events::work(requests.clone(), ends.events, metrics));
    let reporter = tokio::spawn(report::work(requests, ends.news));
    let mut lost = pin!(lost);

    tokio::select! {
        () = stop => {
            info!("stopping: what is being bound is bound, nothing new is decided");
            // The driver's end of the plans goes with it; then the binder ends with what it has.
            drop(driver_ends);
            tokio::select! {
                _ = time::timeout(LAST_BINDS, binder) => Ok(()),
                () = &mut lost => Err(LiveError::LeaseLost),
            }
        }
        () = &mut lost => Err(LiveError::LeaseLost),
        _ = catalog => Err(LiveError::Ended("the watching")),
        _ = driver => Err(LiveError::Ended("the driver")),
        _ = &mut binder => Err(LiveError::Ended("the binder")),
        _ = evictor => Err(LiveError::Ended("the evictor")),
        _ = volumes => Err(LiveError::Ended("the writer of volumes")),
        _ = statuses => Err(LiveError::Ended("the writer of statuses")),
        _ = events => Err(LiveError::Ended("the sender of events")),
        _ = reporter => Err(LiveError::Ended("the reporter")),
    }
}

async fn connect_to(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
    metrics: Option<&Arc<Metrics>>,
) -> Result<Client, LiveError> {
    let mut config = if kubeconfig.is_some() || context.is_some() {
        let choice = KubeConfigOptions {
            context: context.map(str::to_owned),
            ..KubeConfigOptions::default()
        };
        let kubeconfig = match kubeconfig {
            Some(path) => Kubeconfig::read_from(path)?,
            None => Kubeconfig::read()?,
        };
        Config::from_custom_kubeconfig(kubeconfig, &choice).await?
    } else {
        Config::infer().await?
    };
    // Each of us knows better when to try again, and what.
    config.default_retry = false;
    let client = ClientBuilder::try_from(config)?;
    Ok(match metrics {
        Some(metrics) => client.with_layer(&Counting(Arc::clone(metrics))).build(),
        None => client.build(),
    })
}
