//! The two requests of a bind: write it, and look what became of it.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Client, Resource as _,
    api::{GetParams, PostParams},
    core::Request,
};
use serde_json::json;
use tokio::time;

use super::{
    Answer, Bind,
    answer::{of_bind, of_find},
};

/// An answer that takes longer counts as lost.
const PATIENCE: Duration = Duration::from_secs(15);

/// Writes the bind. The API server refuses it for another pod of the same name, by the uid.
pub(super) async fn bind(client: &Client, bind: &Bind) -> Answer {
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": bind.name,
            "namespace": bind.namespace,
            "uid": bind.uid,
            "annotations": bind.annotations,
        },
        "target": { "kind": "Node", "name": bind.node },
    });
    let text = binding.to_string().into_bytes();
    let request = Request::new(pods(bind));
    let request = request.create_subresource("binding", &bind.name, &PostParams::default(), text);
    of_bind(send(client, request).await)
}

/// Looks what became of the pod.
pub(super) async fn find(client: &Client, bind: &Bind) -> Answer {
    let request = Request::new(pods(bind)).get(&bind.name, &GetParams::default());
    of_find(send(client, request).await, bind)
}

fn pods(bind: &Bind) -> String {
    Pod::url_path(&(), Some(&bind.namespace))
}

async fn send(
    client: &Client,
    request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
) -> Result<String, kube::Error> {
    let request = request.map_err(kube::Error::BuildRequest)?;
    match time::timeout(PATIENCE, client.request_text(request)).await {
        Ok(answer) => answer,
        Err(elapsed) => Err(kube::Error::Service(elapsed.into())),
    }
}
