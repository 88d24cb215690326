//! Requests about pods: reads at any time, writes only while the lease is ours.

use k8s_openapi::api::core::v1::Pod;
use kube::{Client, Resource as _, core::Request};
use tokio::time;

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
        self.fence.passed().await;
    }

    /// Sends a request that changes something; the text of the answer.
    pub(super) async fn write(&self, request: Made) -> Result<String, kube::Error> {
        self.may_write().await;
        self.send(request).await
    }

    /// Sends a request that changes nothing; the text of the answer.
    pub(super) async fn read(&self, request: Made) -> Result<String, kube::Error> {
        self.send(request).await
    }

    async fn send(&self, request: Made) -> Result<String, kube::Error> {
        let request = request.map_err(kube::Error::BuildRequest)?;
        let answer = self.client.request_text(request);
        match time::timeout(self.fence.patience(), answer).await {
            Ok(answer) => answer,
            Err(elapsed) => Err(kube::Error::Service(elapsed.into())),
        }
    }
}
