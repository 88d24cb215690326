//! Why single nodes cannot take a member: the first cause that applies, and how many nodes it keeps
//! out.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use super::{Cause, Explainer, NodeCount};
use crate::{
    cluster::{
        NodeIx, Shortage,
        domain::NO_DOMAIN,
        shape::{StaticFit, static_fit},
        template::TemplateIx,
    },
    engine::{GangId, cycle::Members},
    place::check_node,
};

impl Explainer {
    /// Nodes that a template's static rules accept, whatever is free there.
    pub(super) fn usable_nodes(&self, template: TemplateIx) -> Vec<NodeIx> {
        let nodes = self.engine.cluster.ordered().iter().copied();
        nodes
            .filter(|&node| self.static_cause(template, node).is_none())
            .collect()
    }

    /// The first static cause that keeps a template off a node.
    pub(super) fn static_cause(
        &self,
        template: TemplateIx,
        node: NodeIx,
    ) -> Option<(Cause, String)> {
        let cluster = &self.engine.cluster;
        let compiled = cluster.template(template);
        let spec = cluster.node(node).spec.as_deref()?;
        let name = cluster.node_name(node);
        match static_fit(
            compiled,
            spec.unschedulable,
            &spec.taints,
            name,
            &spec.labels,
        ) {
            StaticFit::Fits { .. } => None,
            StaticFit::Fails(Cause::Taint) => {
                let tolerations = &compiled.source.nodes.tolerations;
                let taint = spec.taints.iter().find(|taint| {
                    taint.effect != crate::request::TaintEffect::PreferNoSchedule
                        && !tolerations
                            .iter()
                            .any(|toleration| toleration.covers(taint))
                });
                Some((
                    Cause::Taint,
                    taint.map_or_else(String::new, |taint| taint.key.clone()),
                ))
            }
            StaticFit::Fails(cause) => Some((cause, String::new())),
        }
    }

    /// Why one member of a batch cannot go to a node by itself, or `None` if it can.
    pub(super) fn cause(
        &mut self,
        id: GangId,
        members: &Members,
        batch: usize,
        node: NodeIx,
    ) -> Option<(Cause, String)> {
        let wanted = members.batches[batch];
        if let Some(cause) = self.static_cause(wanted.template, node) {
            return Some(cause);
        }
        let gang = self.engine.gangs.get(id.0)?;
        let cluster = &self.engine.cluster;
        for ix in gang.tree.upward(wanted.leaf) {
            let Some(key) = gang.tree.nodes[ix as usize].required else {
                continue;
            };
            let domain = cluster.domain_of(key, node);
            if domain == NO_DOMAIN {
                return Some((Cause::NoLevelLabel, cluster.key_name(key).to_string()));
            }
            let pinned = members.pinned[ix as usize];
            if pinned != NO_DOMAIN && pinned != domain {
                return Some((Cause::OtherDomain, String::new()));
            }
        }
        match cluster.shortage(node, wanted.template) {
            Some(Shortage::Cards(kind)) => {
                let ask = cluster.template(wanted.template).cards.as_ref();
                let lack = ask.map(|ask| cluster.node(node).cards.lack(ask));
                return Some(match lack {
                    Some((cause, detail)) if cause != Cause::Cards => (cause, detail),
                    _ => (Cause::Cards, cluster.kind_name(kind).to_string()),
                });
            }
            Some(Shortage::Resource(crate::cluster::PODS_IX)) => {
                return Some((Cause::PodSlots, String::new()));
            }
            Some(Shortage::Resource(resource)) => {
                return Some((Cause::Resource, cluster.resource_name(resource).to_string()));
            }
            None => {}
        }
        if let Err(cause) = check_node(cluster, wanted.template, node, true) {
            return Some((cause, String::new()));
        }
        let allowed = self
            .engine
            .search
            .spread_allows(cluster, wanted.template, node);
        (!allowed).then_some((Cause::Spread, String::new()))
    }

    pub(super) fn causes(&mut self, id: GangId, members: &Members, batch: usize) -> Vec<NodeCount> {
        let mut counts: Vec<NodeCount> = Vec::new();
        for index in 0..self.engine.cluster.ordered().len() {
            let node = self.engine.cluster.ordered()[index];
            let Some((cause, resource)) = self.cause(id, members, batch, node) else {
                continue;
            };
            let same = |count: &&mut NodeCount| count.cause == cause && count.resource == resource;
            match counts.iter_mut().find(same) {
                Some(count) => count.nodes += 1,
                None => counts.push(NodeCount {
                    cause,
                    resource,
                    nodes: 1,
                }),
            }
        }
        counts
            .sort_by(|a, b| (b.nodes, a.cause, &a.resource).cmp(&(a.nodes, b.cause, &b.resource)));
        counts
    }
}
