//! `/healthz` and `/readyz`, for probes.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{Router, extract::State, http::StatusCode, routing::get};
use tokio::net::TcpListener;

/// How the process is.
#[derive(Debug, Default)]
pub(super) struct Health {
    is_ready: AtomicBool,
}

impl Health {
    /// The driver knows the cluster and has decided about it.
    pub(super) fn turned(&self) {
        self.is_ready.store(true, Ordering::Release);
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
    if health.is_ready.load(Ordering::Acquire) {
        (StatusCode::OK, "ok")
    } else {
        let what = "the cluster is not known yet";
        (StatusCode::SERVICE_UNAVAILABLE, what)
    }
}
