//! What is answered on the address of `--listen`: `/healthz` and `/readyz` for probes, `/metrics`.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use tokio::net::TcpListener;

use super::{
    metrics::{CONTENT_TYPE, Metrics},
    questions::Questions,
};

/// How the process is.
#[derive(Debug, Default)]
pub(super) struct Health(AtomicU8);

const STARTING: u8 = 0;
const STANDING_BY: u8 = 1;
const DECIDING: u8 = 2;

impl Health {
    /// Another instance schedules; this one is ready to take over.
    pub(super) fn stands_by(&self) {
        self.0.store(STANDING_BY, Ordering::Release);
    }

    /// This instance schedules and does not know the cluster yet.
    pub(super) fn starts(&self) {
        self.0.store(STARTING, Ordering::Release);
    }

    /// The driver knows the cluster and has decided about it.
    pub(super) fn decides(&self) {
        self.0.store(DECIDING, Ordering::Release);
    }

    /// Whether this instance schedules and has decided about the cluster.
    pub(super) fn is_deciding(&self) -> bool {
        self.get() == DECIDING
    }

    fn get(&self) -> u8 {
        self.0.load(Ordering::Acquire)
    }
}

/// What there is to tell.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) health: Arc<Health>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) questions: Questions,
}

/// Answers on this address until `stop` ends.
pub(super) async fn serve(
    address: SocketAddr,
    known: Known,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(known);
    let listener = TcpListener::bind(address).await?;
    axum::serve(listener, router)
        .with_graceful_shutdown(stop)
        .await
}

async fn ready(State(known): State<Known>) -> (StatusCode, &'static str) {
    match known.health.get() {
        DECIDING => (StatusCode::OK, "ok"),
        STANDING_BY => (StatusCode::OK, "another instance schedules"),
        _ => {
            let what = "the cluster is not known yet";
            (StatusCode::SERVICE_UNAVAILABLE, what)
        }
    }
}

async fn metrics(State(known): State<Known>) -> impl IntoResponse {
    let leads = known.health.get() != STANDING_BY;
    let figures = if leads {
        known.questions.figures().await
    } else {
        None
    };
    let text = known.metrics.write(leads, figures.as_ref());
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], text)
}
