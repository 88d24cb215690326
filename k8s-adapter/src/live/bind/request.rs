//! The two requests of a bind: write it, and look what became of it.

use kube::api::{GetParams, PostParams};
use serde_json::json;

use super::{
    super::request::{Requests, pods},
    Answer, Bind,
    answer::{of_bind, of_find},
};

/// Writes the bind. The API server refuses it for another pod of the same name, by the uid.
pub(super) async fn bind(requests: &Requests, bind: &Bind) -> Answer {
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
    let request = pods(&bind.namespace);
    let request = request.create_subresource("binding", &bind.name, &PostParams::default(), text);
    of_bind(requests.write(request).await)
}

/// Looks what became of the pod.
pub(super) async fn find(requests: &Requests, bind: &Bind) -> Answer {
    let request = pods(&bind.namespace).get(&bind.name, &GetParams::default());
    of_find(requests.read(request).await, bind)
}
