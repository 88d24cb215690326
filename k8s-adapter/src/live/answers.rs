//! What is answered on the address of `--answer`, for `gangline why --live` and `plan --live`.
//!
//! The answer is the engine's state as a snapshot, made by the driver between two decisions: who asks works
//! on it by himself, so that explaining costs the scheduler nothing. It names everything that everybody
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
use tokio::net::TcpListener;

use super::health::Known;

/// Where the snapshot is.
const PATH: &str = "/snapshot";

/// Answers on this address until `stop` ends.
pub(super) async fn serve(
    address: SocketAddr,
    known: Known,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let router = Router::new().route(PATH, get(snapshot)).with_state(known);
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
    let text = tokio::task::spawn_blocking(move || serde_json::to_vec(&snapshot)).await;
    match text {
        Ok(Ok(text)) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Ok(Err(error)) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Asks the scheduler that answers on this address.
pub async fn ask(address: SocketAddr) -> Result<Snapshot, kube::Error> {
    let uri = http::Uri::builder()
        .scheme("http")
        .authority(address.to_string())
        .path_and_query("/");
    let uri = uri.build().map_err(kube::Error::HttpError)?;
    let client = Client::try_from(Config::new(uri))?;
    let request = Request::get(PATH).body(Vec::new());
    let request = request.map_err(kube::Error::HttpError)?;
    client.request(request).await
}
