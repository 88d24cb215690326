//! What a run puts into the cluster: nodes, groups and pods, many at a time.

use std::sync::atomic::{AtomicU32, Ordering};

use futures::future::try_join_all;
use kube::Client;
use serde_json::{Value, json};

/// Requests at a time, as many as the load generator that the published figures come from.
const WORKERS: u32 = 32;
/// Nodes of a rack.
const RACK: u32 = 16;
pub(crate) const NAMESPACE: &str = "load";

/// Sends `POST`s for these numbers, some at a time.
async fn post(
    client: &Client,
    path: &str,
    count: u32,
    object: impl Fn(u32) -> Value,
) -> Result<(), kube::Error> {
    let next = AtomicU32::new(0);
    let worker = || async {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok::<_, kube::Error>(());
            }
            create(client, path, &object(number)).await?;
        }
    };
    try_join_all((0..WORKERS).map(|_| worker())).await?;
    Ok(())
}

/// Creates one object.
pub(crate) async fn create(client: &Client, path: &str, object: &Value) -> Result<(), kube::Error> {
    let request = http::Request::post(path).header("Content-Type", "application/json");
    let request = request
        .body(object.to_string().into_bytes())
        .map_err(kube::core::request::Error::BuildRequest)
        .map_err(kube::Error::BuildRequest)?;
    client.request_text(request).await.map(drop)
}

pub(crate) async fn nodes(client: &Client, count: u32) -> Result<(), kube::Error> {
    let node = |number| {
        let name = format!("n{number:05}");
        let amounts = json!({"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "8"});
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {
                "kubernetes.io/hostname": name,
                "topology.gangline.io/rack": format!("r{:03}", number / RACK),
                "nvidia.com/gpu.count": "8", "nvidia.com/gpu.memory": "81920",
            }},
            "status": {"capacity": amounts, "allocatable": amounts,
                       "conditions": [{"type": "Ready", "status": "True"}]},
        })
    };
    post(client, "/api/v1/nodes", count, node).await
}

pub(crate) async fn groups(client: &Client, count: u32, size: u32) -> Result<(), kube::Error> {
    let path = format!("/apis/scheduling.k8s.io/v1beta1/namespaces/{NAMESPACE}/podgroups");
    let group = |number| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
            "metadata": {"name": format!("g{number:05}")},
            "spec": {"schedulingPolicy": {"gang": {"minCount": size}}},
        })
    };
    post(client, &path, count, group).await
}

/// Pods of one GPU each, group by group.
pub(crate) async fn pods(
    client: &Client,
    groups: u32,
    size: u32,
    scheduler: &str,
) -> Result<(), kube::Error> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    let pod = |number| {
        let amounts = json!({"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"});
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("p{number:06}")},
            "spec": {
                "schedulerName": scheduler,
                "schedulingGroup": {"podGroupName": format!("g{:05}", number / size)},
                "containers": [{"name": "c", "image": "i",
                                "resources": {"requests": amounts, "limits": {"nvidia.com/gpu": "1"}}}],
            },
        })
    };
    post(client, &path, groups * size, pod).await
}
