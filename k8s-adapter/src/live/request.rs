//! One request about a pod and its answer, with a limit to how long it may take.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::{Client, Resource as _, core::Request};
use tokio::time;

/// An answer that takes longer counts as lost.
const PATIENCE: Duration = Duration::from_secs(15);

/// The requests about the pods of a namespace.
pub(super) fn pods(namespace: &str) -> Request {
    Request::new(Pod::url_path(&(), Some(namespace)))
}

/// Sends a request; the text of the answer.
pub(super) async fn send(
    client: &Client,
    request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
) -> Result<String, kube::Error> {
    let request = request.map_err(kube::Error::BuildRequest)?;
    match time::timeout(PATIENCE, client.request_text(request)).await {
        Ok(answer) => answer,
        Err(elapsed) => Err(kube::Error::Service(elapsed.into())),
    }
}
