//! `/healthz` and `/readyz`, for probes.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use axum::{Router, extract::State, http::StatusCode, routing::get};
use tokio::net::TcpListener;

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
}

/// Answers on this address until `stop` ends.
pub(super) async fn serve(
    address: SocketAddr,
    health: Arc<Health>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .with_state(health);
    let listener = TcpListener::bind(address).await?;
    axum::serve(listener, router)
        .with_graceful_shutdown(stop)
        .await
}

async fn ready(State(health): State<Arc<Health>>) -> (StatusCode, &'static str) {
    match health.0.load(Ordering::Acquire) {
        DECIDING => (StatusCode::OK, "ok"),
        STANDING_BY => (StatusCode::OK, "another instance schedules"),
        _ => {
            let what = "the cluster is not known yet";
            (StatusCode::SERVICE_UNAVAILABLE, what)
        }
    }
}
