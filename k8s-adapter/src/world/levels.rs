//! Which node labels make up the topology, coarse to fine.
//!
//! Labels come from three places: the table of well-known ones below, the levels that group objects
//! imply (`HyperNode` tiers), and the labels that groups name in a rule. A label that no node carries
//! is no level; a rule that names it then fails as "unknown level", which is what it is.

use std::collections::{BTreeMap, BTreeSet};

use gangline::{
    cluster::NodeSpec,
    gang::{GangSpec, Group, GroupKind},
    request::NODE_LEVEL,
};

use crate::{
    annotations::nearest,
    intake::Member,
    load::{Complaint, Severity, Source},
};

/// Labels that clouds and topology tools put on nodes, coarse to fine. To add one, add a line where
/// it belongs; only the order within one system matters.
const WELL_KNOWN: [&str; 20] = [
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
    // NVIDIA topograph
    "network.topology.nvidia.com/datacenter",
    "network.topology.nvidia.com/spine",
    "network.topology.nvidia.com/block",
    // Amazon
    "topology.k8s.aws/network-node-layer-1",
    "topology.k8s.aws/network-node-layer-2",
    "topology.k8s.aws/network-node-layer-3",
    // Google
    "cloud.google.com/gce-topology-block",
    "cloud.google.com/gce-topology-subblock",
    "cloud.google.com/gce-topology-host",
    // Used in Kueue's documentation
    "cloud.provider.com/topology-block",
    "cloud.provider.com/topology-rack",
    "topology.gangline.io/block",
    "topology.gangline.io/rack",
    "topology.kubernetes.io/rack",
    // NVLink domains
    "network.topology.nvidia.com/accelerator",
    "nvidia.com/gpu.clique",
];

/// Chooses the levels. `implied` are those of group objects, coarse to fine.
///
/// Labels that are not in the table stand before the first level that has more domains than they
/// have: what has fewer domains is coarser.
pub(crate) fn choose(
    nodes: &BTreeMap<String, NodeSpec>,
    implied: &[String],
    gangs: &[GangSpec],
) -> Vec<String> {
    let domains = |label: &str| {
        let values = nodes.values().filter_map(|node| node.labels.get(label));
        values.collect::<BTreeSet<_>>().len()
    };
    let mut levels: Vec<(String, usize)> = WELL_KNOWN
        .iter()
        .map(|&label| (label.to_owned(), domains(label)))
        .filter(|(_, domains)| *domains > 0)
        .collect();
    let mut named = BTreeSet::new();
    for gang in gangs {
        collect(&gang.root, &mut named);
    }
    named.remove(NODE_LEVEL);
    // Finest first, each before the one that follows it, so that their own order stays.
    let mut at = levels.len();
    for label in implied.iter().rev() {
        let domains = domains(label);
        let before = levels.iter().position(|(_, others)| *others > domains);
        at = before.unwrap_or(levels.len()).min(at);
        levels.insert(at, (label.clone(), domains));
    }
    for label in named {
        let domains = domains(&label);
        if domains > 0 && !levels.iter().any(|(known, _)| *known == label) {
            let at = levels.iter().position(|(_, others)| *others > domains);
            levels.insert(at.unwrap_or(levels.len()), (label, domains));
        }
    }
    levels.into_iter().map(|(label, _)| label).collect()
}

/// The node labels that a group names as levels.
#[cfg(feature = "live")]
pub(crate) fn named(gang: &GangSpec) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    collect(&gang.root, &mut named);
    named.remove(NODE_LEVEL);
    named
}

/// Whether a node label is a level by itself, though no group names it.
#[cfg(feature = "live")]
pub(crate) fn is_well_known(label: &str) -> bool {
    WELL_KNOWN.contains(&label) || crate::intake::implies(label)
}

/// Complains about levels that somebody named and that no node has.
pub(crate) fn complain_of_absent(
    levels: &[String],
    nodes: &BTreeMap<String, NodeSpec>,
    complaints: &mut Vec<Complaint>,
) {
    let labels = labels_of(nodes);
    let absent = levels
        .iter()
        .filter(|level| !labels.contains(level.as_str()));
    for level in absent {
        // Most are named without what stands before the slash.
        let last = |label: &&&str| label.rsplit('/').next() == Some(level);
        let labels: Vec<&str> = labels.iter().copied().collect();
        let near = labels.iter().find(last).copied();
        let near = near.or_else(|| nearest(level, &labels));
        let near = near.map(|near| format!("; did you mean {near}?"));
        complaints.push(Complaint {
            source: Source::file("--levels"),
            object: String::new(),
            field: String::new(),
            value: format!(
                "no node has the label {level:?}{}",
                near.unwrap_or_default()
            ),
            accepted: "labels of nodes, coarse to fine".to_owned(),
            severity: Severity::Warning,
        });
    }
}

/// Complains about labels that the `nodeSelector` of a waiting pod wants and that no node has, each once:
/// autoscalers may bring such nodes, but more often the key has a typo.
pub(crate) fn complain_of_absent_selectors(
    nodes: &BTreeMap<String, NodeSpec>,
    members: &[Member],
    complaints: &mut Vec<Complaint>,
) {
    if nodes.is_empty() {
        return;
    }
    let labels = labels_of(nodes);
    let mut named = BTreeSet::new();
    for Member { spec, source, .. } in members {
        if spec.node.is_some() {
            continue;
        }
        for label in spec.template.nodes.selector.keys() {
            if labels.contains(label.as_str()) || !named.insert(label) {
                continue;
            }
            let labels: Vec<&str> = labels.iter().copied().collect();
            let near = nearest(label, &labels).map(|near| format!("; did you mean {near}?"));
            complaints.push(Complaint {
                source: source.clone(),
                object: format!("Pod {}/{}", spec.namespace, spec.name),
                field: format!("spec.nodeSelector[{label}]"),
                value: format!("no node has this label{}", near.unwrap_or_default()),
                accepted: "a label that nodes have".to_owned(),
                severity: Severity::Warning,
            });
        }
    }
}

fn labels_of(nodes: &BTreeMap<String, NodeSpec>) -> BTreeSet<&str> {
    let labels = nodes.values().flat_map(|node| node.labels.keys());
    labels.map(String::as_str).collect()
}

fn collect(group: &Group, labels: &mut BTreeSet<String>) {
    let rule = &group.topology;
    labels.extend(rule.required.iter().chain(&rule.preferred).cloned());
    if let GroupKind::Group { children, .. } = &group.kind {
        for child in children {
            collect(child, labels);
        }
    }
}
