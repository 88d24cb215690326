//! What is answered on the address of `--answer`, for `gangline why`, `plan` and `check --live`.
//!
//! The answer is the engine's state as a snapshot, made by the driver between two decisions: who asks works
//! on it by himself, so that explaining costs the scheduler nothing. Beside it are the names of schedulers
//! that are answered for, which decide whose pods wait here. The state names everything that everybody
//! runs, so the address is one of the machine itself, which others reach by `kubectl port-forward` alone.

use std::{io, net::SocketAddr};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use gangline::engine::Snapshot;
use http::Request;
use kube::{Client, Config};
use serde::{Serialize, de::DeserializeOwned};
use tokio::net::TcpListener;

use super::health::Known;

/// Where the snapshot is.
const SNAPSHOT: &str = "/snapshot";
/// Where the names of schedulers are.
const NAMES: &str = "/scheduler-names";

/// Answers on this address until `stop` ends.
pub(super) async fn serve(
    address: SocketAddr,
    known: Known,
    scheduler_names: Vec<String>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let router = Router::new()
        .route(SNAPSHOT, get(snapshot))
        .route(NAMES, get(async move || json(&scheduler_names)))
        .with_state(known);
    let listener = TcpListener::bind(address).await?;
    axum::serve(listener, router)
        .with_graceful_shutdown(stop)
        .await
}

async fn snapshot(State(known): State<Known>) -> Response {
    let not_now = |why| (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    if !known.health.is_deciding() {
        return not_now("this instance does not schedule (yet); the holder of the lease does");
    }
    let Some(snapshot) = known.questions.snapshot().await else {
        return not_now("the scheduler is too busy");
    };
    let written = tokio::task::spawn_blocking(move || json(&snapshot)).await;
    written.unwrap_or_else(|error| {
        (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response()
    })
}

fn json<T: Serialize + ?Sized>(answer: &T) -> Response {
    match serde_json::to_vec(answer) {
        Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// The state of the scheduler that answers on this address.
pub async fn ask(address: SocketAddr) -> Result<Snapshot, kube::Error> {
    ask_for(address, SNAPSHOT).await
}

/// The names that it answers for.
pub async fn ask_for_names(address: SocketAddr) -> Result<Vec<String>, kube::Error> {
    ask_for(address, NAMES).await
}

async fn ask_for<T: DeserializeOwned>(
    address: SocketAddr,
    path: &'static str,
) -> Result<T, kube::Error> {
    let uri = http::Uri::builder()
        .scheme("http")
        .authority(address.to_string())
        .path_and_query("/");
    let uri = uri.build().map_err(kube::Error::HttpError)?;
    let client = Client::try_from(Config::new(uri))?;
    let request = Request::get(path).body(Vec::new());
    let request = request.map_err(kube::Error::HttpError)?;
    client.request(request).await
}
