//! Nodes for a control plane without machines; kwok plays their kubelets.

use serde_json::{Map, Value, json};

/// A node that a test puts into a control plane: a name, what it has, and its labels.
#[derive(Clone, Debug)]
pub struct Node {
    name: String,
    labels: Map<String, Value>,
    resources: Map<String, Value>,
}

impl Node {
    /// A node with 64 CPU, 512 GiB of memory and room for 110 pods, and with the labels that a kubelet
    /// sets.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let node = Self {
            name: name.clone(),
            labels: Map::new(),
            resources: Map::new(),
        };
        node.label("kubernetes.io/hostname", name)
            .label("kubernetes.io/os", "linux")
            .label("kubernetes.io/arch", "amd64")
            .resource("cpu", "64")
            .resource("memory", "512Gi")
            .resource("pods", "110")
    }

    /// Sets a label.
    #[must_use]
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into().into());
        self
    }

    /// Sets a quantity that the node has and gives to pods: `.resource("nvidia.com/gpu", "8")`.
    #[must_use]
    pub fn resource(mut self, name: impl Into<String>, quantity: impl Into<String>) -> Self {
        self.resources.insert(name.into(), quantity.into().into());
        self
    }

    /// As the API server takes it.
    pub(crate) fn json(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": { "name": self.name, "labels": self.labels },
            "status": { "allocatable": self.resources, "capacity": self.resources },
        })
    }
}
