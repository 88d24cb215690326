//! Short forms in, the engine's objects out.
//!
//! Data enters as [shapes](super::shape) and leaves as `NodeSpec`, `GangSpec` and `PodSpec`. Errors
//! say what is wrong with a value; the caller adds where it stands.

use std::{collections::BTreeMap, sync::Arc};

use gangline::{
    cluster::spec::NodeSpec,
    engine::UsualWork,
    gang::{GangKey, GangSpec, Group, GroupKind, Minimum, PodPhase, PodSpec, Role, TopologyRule},
    request::{
        CPU, HostPort, LabelSelector, MEMORY, NODE_LEVEL, PODS, PodTerm, Protocol, SpreadRule,
        Taint, TaintEffect, Template, Toleration, TolerationOperator,
    },
    units::{Nanos, Uid},
};

use super::{
    devices,
    shape::{
        GroupShape, LevelShape, NearShape, NodeShape, PodShape, PortShape, UsualShape, WorkShape,
    },
};
use crate::quantity::Quantity;

/// Namespace of everything that does not say.
pub(super) const NAMESPACE: &str = "default";

/// What is wrong with a value.
pub(super) type Wrong = String;

/// A gang's objects, or those of pods without one.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) group: Option<GangSpec>,
    pub(super) pods: Vec<Member>,
}

/// A pod, and how long it will run.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) spec: PodSpec,
    pub(super) runtime: Option<Nanos>,
}

/// A leaf of a gang: how many pods it makes, and of which shape.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    pub(super) role: String,
    pub(super) pods: u32,
    pub(super) shape: PodShape,
}

/// A level as people write it: `node` is the host name.
pub(super) fn level_label(level: &str) -> String {
    match level {
        "node" | "host" => NODE_LEVEL.to_owned(),
        label => label.to_owned(),
    }
}

fn amount(resource: &str, quantity: &Quantity) -> Result<i64, Wrong> {
    let wrong = |error| format!("{resource}: {error}");
    if resource == CPU {
        let milli = quantity.milli().map_err(wrong)?;
        return i64::try_from(milli).map_err(|_| format!("{resource}: {quantity} is too much"));
    }
    quantity.units().map_err(wrong)
}

fn amounts<'a>(
    cpu: Option<&'a Quantity>,
    memory: Option<&'a Quantity>,
    others: &'a BTreeMap<String, Quantity>,
) -> Result<BTreeMap<String, i64>, Wrong> {
    let named = [(CPU, cpu), (MEMORY, memory)];
    let named = named
        .into_iter()
        .filter_map(|(name, quantity)| Some((name, quantity?)));
    let others = others
        .iter()
        .map(|(name, quantity)| (name.as_str(), quantity));
    let entry =
        |(name, quantity): (&str, &Quantity)| Ok((name.to_owned(), amount(name, quantity)?));
    named.chain(others).map(entry).collect()
}

/// Lays a node's given fields over what is known of it.
pub(super) fn node(
    name: &str,
    shape: &NodeShape,
    known: Option<&NodeSpec>,
) -> Result<NodeSpec, Wrong> {
    let mut node = known.cloned().unwrap_or_default();
    name.clone_into(&mut node.name);
    node.cards = devices::node_cards(shape, &node.cards)?;
    let resources = amounts(shape.cpu.as_ref(), shape.memory.as_ref(), &shape.resources)?;
    node.resources.extend(resources);
    if let Some(pods) = shape.pods {
        node.resources.insert(PODS.to_owned(), i64::from(pods));
    }
    if let Some(labels) = &shape.labels {
        node.labels.clone_from(labels);
    }
    let host = || name.to_owned();
    node.labels
        .entry(NODE_LEVEL.to_owned())
        .or_insert_with(host);
    if let Some(taints) = &shape.taints {
        node.taints = taints
            .iter()
            .map(|text| taint(text))
            .collect::<Result<_, _>>()?;
    }
    node.unschedulable = shape.cordoned.unwrap_or(node.unschedulable);
    Ok(node)
}

fn effect(text: &str) -> Result<TaintEffect, Wrong> {
    match text {
        "NoSchedule" => Ok(TaintEffect::NoSchedule),
        "PreferNoSchedule" => Ok(TaintEffect::PreferNoSchedule),
        "NoExecute" => Ok(TaintEffect::NoExecute),
        other => Err(format!(
            "{other:?} is no taint effect; accepted: NoSchedule, PreferNoSchedule, NoExecute"
        )),
    }
}

fn taint(text: &str) -> Result<Taint, Wrong> {
    let Some((mark, effect_text)) = text.rsplit_once(':') else {
        return Err(format!(
            "{text:?} is no taint; accepted: key=value:Effect or key:Effect"
        ));
    };
    let (key, value) = mark.split_once('=').unwrap_or((mark, ""));
    Ok(Taint {
        key: key.to_owned(),
        value: value.to_owned(),
        effect: effect(effect_text)?,
    })
}

fn toleration(text: &str) -> Result<Toleration, Wrong> {
    let (mark, effect) = match text.rsplit_once(':') {
        Some((mark, text)) => (mark, Some(effect(text)?)),
        None => (text, None),
    };
    let (key, operator, value) = match mark.split_once('=') {
        Some((key, value)) => (key, TolerationOperator::Equal, value),
        None if mark == "*" => ("", TolerationOperator::Exists, ""),
        None => (mark, TolerationOperator::Exists, ""),
    };
    Ok(Toleration {
        key: key.to_owned(),
        operator,
        value: value.to_owned(),
        effect,
    })
}

fn host_port(shape: &PortShape) -> Result<HostPort, Wrong> {
    let (port, protocol) = match shape {
        PortShape::Number(port) => (*port, Protocol::Tcp),
        PortShape::Text(text) => {
            let wrong = || format!("{text:?} is no port; accepted: such as 8081 or 9000/UDP");
            let (port, protocol) = text.split_once('/').unwrap_or((text, "TCP"));
            let protocol = match protocol {
                "TCP" => Protocol::Tcp,
                "UDP" => Protocol::Udp,
                "SCTP" => Protocol::Sctp,
                _ => return Err(wrong()),
            };
            (port.parse().map_err(|_| wrong())?, protocol)
        }
    };
    Ok(HostPort {
        port,
        protocol,
        address: String::new(),
    })
}

/// A kind of work of the usual mix.
pub(super) fn usual(shape: &UsualShape) -> Result<UsualWork, Wrong> {
    let weight = shape.weight.unwrap_or(1);
    if weight == 0 {
        return Err("weight: 0; accepted: 1 and more".to_owned());
    }
    let template = Arc::new(template(&shape.pod, NAMESPACE, &[])?);
    Ok(UsualWork { template, weight })
}

/// What a pod asks for, with `own` labels added.
fn template(shape: &PodShape, namespace: &str, own: &[(&str, &str)]) -> Result<Template, Wrong> {
    let mut template = shape.template.clone();
    namespace.clone_into(&mut template.namespace);
    template.labels.extend(shape.labels.clone());
    for (key, value) in own {
        template
            .labels
            .insert((*key).to_owned(), (*value).to_owned());
    }
    let resources = amounts(shape.cpu.as_ref(), shape.memory.as_ref(), &shape.resources)?;
    template.resources.extend(resources);
    template.cards = devices::request(shape, template.cards.take())?;
    if let Some(nodes) = &shape.nodes {
        template.nodes = nodes.clone();
    }
    template.nodes.selector.extend(shape.selector.clone());
    for text in &shape.tolerations {
        template.nodes.tolerations.push(toleration(text)?);
    }
    for port in &shape.host_ports {
        template.host_ports.push(host_port(port)?);
    }
    let selector = |labels: &BTreeMap<String, String>| {
        let given = labels
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()));
        // Without labels: the pod's own gang, or the pod itself when it has none.
        if labels.is_empty() {
            LabelSelector::from_labels(own.iter().copied().take(1))
        } else {
            LabelSelector::from_labels(given)
        }
    };
    let near = |near: &NearShape| PodTerm {
        topology_key: level_label(&near.level),
        selector: selector(&near.labels),
        ..PodTerm::default()
    };
    template
        .relations
        .affinity
        .extend(shape.affinity.iter().map(near));
    template
        .relations
        .anti_affinity
        .extend(shape.anti_affinity.iter().map(near));
    let spread = shape.spread.iter().map(|rule| SpreadRule {
        topology_key: level_label(&rule.level),
        max_skew: rule.max_skew,
        selector: selector(&rule.labels),
        min_domains: rule.min_domains,
        required: rule.required,
        honor_node_affinity: true,
        honor_taints: false,
    });
    template.relations.spread.extend(spread);
    if let Some(span) = shape.max_runtime {
        template.max_runtime = Some(span.0);
    }
    Ok(template)
}

fn topology(level: &LevelShape) -> TopologyRule {
    TopologyRule {
        required: level.required.as_deref().map(level_label),
        preferred: level.preferred.as_deref().map(level_label),
    }
}

/// The group tree, and its leaves with the pods that they make.
pub(super) fn tree(shape: &WorkShape) -> (Group, Vec<Leaf>) {
    let mut leaves = Vec::new();
    let root = GroupShape {
        name: String::new(),
        min: shape.min,
        size: shape.size,
        members: shape.members,
        pod: Some(shape.pod.clone()),
        roles: shape.roles.clone(),
        min_children: shape.min_children,
        level: shape.level.clone(),
    };
    let root = group(&root, &shape.pod, &mut leaves);
    (root, leaves)
}

fn group(shape: &GroupShape, inherited: &PodShape, leaves: &mut Vec<Leaf>) -> Group {
    let pod = shape.pod.as_ref().unwrap_or(inherited);
    let kind = if shape.roles.is_empty() {
        let size = shape.size.or(shape.min).unwrap_or(1);
        leaves.push(Leaf {
            role: shape.name.clone(),
            pods: shape.members.unwrap_or(size),
            shape: pod.clone(),
        });
        GroupKind::Role(Role {
            count: size,
            min: shape.min.unwrap_or(size),
            template: None,
        })
    } else {
        let children: Vec<Group> = shape
            .roles
            .iter()
            .map(|role| group(role, pod, leaves))
            .collect();
        let min = match (shape.min_children, shape.min) {
            (Some(children), _) => Minimum::Children(children),
            (None, Some(members)) => Minimum::Members(members),
            (None, None) => Minimum::Children(children.len() as u32),
        };
        GroupKind::Group { min, children }
    };
    Group {
        name: shape.name.clone(),
        topology: topology(&shape.level),
        kind,
    }
}

/// The key of a gang.
pub(super) fn key(namespace: &str, name: &str) -> GangKey {
    GangKey {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        source: String::new(),
    }
}

/// The identity of an object: its own word, or its name.
pub(super) fn uid(kind: &str, namespace: &str, name: &str, given: Option<&str>) -> Uid {
    match given {
        Some(text) => Uid::from_text(text),
        None => Uid::from_text(&format!("{kind} {namespace}/{name}")),
    }
}

/// A pod that waits.
pub(super) fn pod(
    (namespace, name): (&str, &str),
    gang: Option<(&GangKey, &str)>,
    shape: &PodShape,
    now: Nanos,
    given_uid: Option<&str>,
) -> Result<Member, Wrong> {
    let own = match &gang {
        Some((key, role)) => vec![("gang", key.name.as_str()), ("role", role)],
        None => vec![("pod", name)],
    };
    Ok(Member {
        spec: PodSpec {
            uid: uid("pod", namespace, name, given_uid),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            gang: gang.map(|(key, _)| key.clone()),
            role: gang.map_or(String::new(), |(_, role)| role.to_owned()),
            template: Arc::new(template(shape, namespace, &own)?),
            node: None,
            devices: None,
            phase: PodPhase::Pending,
            created: now,
            started: None,
            priority: 0,
            gated: shape.gated,
            terminating: false,
            foreign: shape.foreign,
            nominated: shape.nominated.clone(),
            images: [].into(),
            problem: None,
        },
        runtime: shape.runtime.map(|span| span.0),
    })
}

/// Whether so many pods at once are few enough to be made.
pub(super) fn check_pods(pods: u64) -> Result<(), Wrong> {
    const MOST: u64 = 1_000_000;
    if pods <= MOST {
        Ok(())
    } else {
        Err(format!("{pods} pods at once; accepted: at most {MOST}"))
    }
}

/// The name of a gang's pod.
pub(super) fn pod_name(gang: &str, role: &str, ordinal: u32) -> String {
    if role.is_empty() {
        format!("{gang}-{ordinal}")
    } else {
        format!("{gang}-{role}-{ordinal}")
    }
}

/// A gang with its pods, or pods without one.
pub(super) fn work(shape: &WorkShape, now: Nanos) -> Result<Work, Wrong> {
    let namespace = shape.namespace.as_deref().unwrap_or(NAMESPACE);
    let created = shape.created.map_or(now, |span| span.0);
    let many = shape.single.as_ref().is_some_and(|names| names.0.len() > 1);
    if many && shape.uid.is_some() {
        return Err("uid: several pods cannot have one identity".to_owned());
    }
    let mut pods = Vec::new();
    let group = match (&shape.gang, &shape.single) {
        (Some(name), None) => {
            let key = key(namespace, name);
            let (root, leaves) = tree(shape);
            check_pods(leaves.iter().map(|leaf| u64::from(leaf.pods)).sum())?;
            for leaf in &leaves {
                for ordinal in 0..leaf.pods {
                    let name = pod_name(name, &leaf.role, ordinal);
                    let gang = Some((&key, leaf.role.as_str()));
                    pods.push(pod((namespace, &name), gang, &leaf.shape, created, None)?);
                }
            }
            Some(GangSpec {
                uid: uid("gang", namespace, name, shape.uid.as_deref()),
                key,
                created,
                priority: shape.priority.unwrap_or(0),
                queue: shape.queue.clone(),
                root,
                schedule_timeout: shape.schedule_timeout.map(|span| span.0),
                on_timeout: shape.on_timeout,
                on_loss: shape.on_loss,
                started: false,
                disruption: shape.disruption,
                scoring: shape.scoring,
                problem: None,
            })
        }
        (None, Some(names)) => {
            for name in &names.0 {
                let uid = shape.uid.as_deref();
                pods.push(pod((namespace, name), None, &shape.pod, created, uid)?);
            }
            None
        }
        _ => return Err("needs either `gang` or `single`".to_owned()),
    };
    for pod in &mut pods {
        pod.spec.priority = shape.priority.unwrap_or(0);
    }
    if let Some(nodes) = &shape.node {
        let started = shape.started.map_or(now, |span| span.0);
        let share = pods.len().div_ceil(nodes.0.len().max(1)).max(1);
        for (pods, node) in pods.chunks_mut(share).zip(&nodes.0) {
            for pod in pods {
                pod.spec.node = Some(node.clone());
                pod.spec.phase = PodPhase::Running;
                pod.spec.started = Some(started);
            }
        }
    }
    let group = group.filter(|_| shape.group != Some(false));
    Ok(Work { group, pods })
}
