//! Requests about pods: reads at any time, writes only while the lease is ours.

use http::header::RETRY_AFTER;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Client, Resource as _,
    client::Body,
    core::{Request, Status, response::StatusDetails},
};
use tokio::time::{self, Instant};

use super::lease::Fence;

/// How requests are sent.
#[derive(Clone)]
pub(super) struct Requests {
    client: Client,
    fence: Fence,
}

/// A request, or why it cannot be made.
type Made = Result<http::Request<Vec<u8>>, kube::core::request::Error>;

/// The requests about the pods of a namespace.
pub(super) fn pods(namespace: &str) -> Request {
    Request::new(Pod::url_path(&(), Some(namespace)))
}

impl Requests {
    pub(super) const fn new(client: Client, fence: Fence) -> Self {
        Self { client, fence }
    }

    /// Waits until something may be written. Who looks whether there is something to write does so after
    /// this.
    pub(super) async fn may_write(&self) {
        drop(self.fence.pass().await);
    }

    /// Sends a request that changes something; the text of the answer.
    pub(super) async fn write(&self, request: Made) -> Result<String, kube::Error> {
        let pass = self.fence.pass().await;
        self.send(request, pass.ends).await
    }

    /// Sends a request that changes nothing; the text of the answer.
    pub(super) async fn read(&self, request: Made) -> Result<String, kube::Error> {
        self.send(request, Instant::now() + self.fence.patience())
            .await
    }

    async fn send(&self, request: Made, ends: Instant) -> Result<String, kube::Error> {
        let request = request.map_err(kube::Error::BuildRequest)?;
        tokio::select! {
            // Its end comes first: a process that stood still must not send what is late by then.
            biased;
            () = time::sleep_until(ends) => Err(kube::Error::Service("no answer in time".into())),
            answer = self.exchange(request) => answer,
        }
    }

    /// Like the client's own way, which does not tell of the header that flow control writes.
    async fn exchange(&self, request: http::Request<Vec<u8>>) -> Result<String, kube::Error> {
        let answer = self.client.send(request.map(Body::from)).await?;
        let code = answer.status();
        let seconds = answer.headers().get(RETRY_AFTER);
        let seconds = seconds.and_then(|seconds| seconds.to_str().ok()?.parse().ok());
        let text = answer.into_body().collect_bytes().await?;
        let text = String::from_utf8(text.to_vec()).map_err(kube::Error::FromUtf8)?;
        if code.is_success() {
            return Ok(text);
        }
        let status = serde_json::from_str::<Status>(&text);
        let mut status = status.unwrap_or_else(|_| Status::failure(text.trim(), "no status"));
        status.code = code.as_u16();
        if let Some(seconds) = seconds {
            let details = status.details.get_or_insert_with(|| StatusDetails {
                name: String::new(),
                group: String::new(),
                kind: String::new(),
                uid: String::new(),
                causes: Vec::new(),
                retry_after_seconds: 0,
            });
            details.retry_after_seconds = seconds;
        }
        Err(kube::Error::Api(status.boxed()))
    }
}
