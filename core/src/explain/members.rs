//! A reason for each waiting member: its own if no node takes it, otherwise that of the sibling it
//! waits for.

use alloc::{
    boxed::Box,
    string::{String, ToString},
    vec,
    vec::Vec,
};

use super::{Explainer, Reason, Shortfall};
use crate::{
    cluster::{NodeIx, template::TemplateIx},
    engine::{GangId, cycle::Members},
    gang::Minimum,
    place::tree::TreeKind,
};

impl Explainer {
    /// A reason for each waiting member: its own if it has no node by itself, else the sibling's.
    pub(super) fn member_reasons(
        &mut self,
        id: GangId,
        members: &mut Members,
        gang_reason: &Reason,
        surplus: bool,
        into: &mut Vec<(String, Reason)>,
    ) {
        let mut placed_on: Vec<Vec<NodeIx>> = vec![Vec::new(); members.batches.len()];
        for (batch, node) in self.partial(id, members) {
            placed_on[batch as usize].push(node);
        }
        // By batch: a node that takes one member by itself, or why none does.
        let mut own: Vec<Result<NodeIx, Box<Reason>>> = Vec::new();
        for batch in 0..members.batches.len() {
            own.push(self.alone(id, members, batch));
        }
        members.start_plan();
        let mut rows: Vec<(u32, String, Option<NodeIx>)> = Vec::new();
        for (batch, nodes) in placed_on.iter().enumerate() {
            for ordinal in 0..members.batches[batch].count as usize {
                let Some((_, member)) = members.next_of(batch as u32) else {
                    break;
                };
                rows.push((
                    batch as u32,
                    self.pod_name(member),
                    nodes.get(ordinal).copied(),
                ));
            }
        }
        let left_out = rows.iter().find(|(_, _, node)| node.is_none());
        for (batch, name, node) in &rows {
            let binds = self.binding_sibling(id, members, *batch, &own);
            let binds = rows.iter().find(|(other, ..)| Some(*other) == binds);
            let reason = match (&own[*batch as usize], binds.or(left_out)) {
                (Err(reason), _) => Reason::clone(reason),
                (Ok(alone), Some((other, sibling, _)))
                    if sibling != name && (node.is_some() || binds.is_some()) =>
                {
                    let because = own[*other as usize].as_ref().err();
                    let because = because.map_or(gang_reason, |because| because).clone();
                    Reason::WaitsForSibling {
                        fits: self
                            .engine
                            .cluster
                            .node_name(node.unwrap_or(*alone))
                            .to_string(),
                        sibling: sibling.clone(),
                        because: Box::new(because),
                    }
                }
                _ => gang_reason.clone(),
            };
            let reason = if surplus {
                Reason::Surplus {
                    because: Box::new(reason),
                }
            } else {
                reason
            };
            into.push((name.clone(), reason));
        }
    }

    /// The batch that keeps another from starting: it has no node for even one member, and is in the
    /// smallest sub-group that must start together with the other one.
    pub(super) fn binding_sibling(
        &self,
        id: GangId,
        members: &Members,
        batch: u32,
        own: &[Result<NodeIx, Box<Reason>>],
    ) -> Option<u32> {
        let tree = &self.engine.gangs.get(id.0)?.tree;
        for ix in tree.upward(members.batches[batch as usize].leaf) {
            let inside = |other: &usize| tree.subtree(ix).contains(&members.batches[*other].leaf);
            let binds = (0..own.len()).find(|other| own[*other].is_err() && inside(other));
            if let Some(other) = binds {
                return Some(other as u32);
            }
            // Above here nobody needs this sub-group, or enough runs without it.
            let parent = tree.nodes[ix as usize].parent?;
            let optional = match tree.nodes[parent as usize].kind {
                TreeKind::Inner(Minimum::Children(least)) => {
                    (least as usize) < tree.children(parent).count()
                }
                _ => false,
            };
            let have = |leaf: u32| members.have[leaf as usize];
            if optional || tree.standing(parent, &have).met {
                return None;
            }
        }
        None
    }

    /// A node that takes one member of a batch by itself, or why none does.
    pub(super) fn alone(
        &mut self,
        id: GangId,
        members: &Members,
        batch: usize,
    ) -> Result<NodeIx, Box<Reason>> {
        let nodes = self.engine.cluster.ordered().len();
        for index in 0..nodes {
            let node = self.engine.cluster.ordered()[index];
            if self.cause(id, members, batch, node).is_none() {
                return Ok(node);
            }
        }
        let causes = self.causes(id, members, batch);
        let shortfall = self.largest(members.batches[batch].template);
        Err(Box::new(Reason::DoesNotFit {
            members: 1,
            nodes: nodes as u32,
            shortfall,
            causes,
            level: None,
            best_domain: None,
        }))
    }

    /// For a member that fits nowhere: what it needs and the most that one node has free.
    pub(super) fn largest(&self, template: TemplateIx) -> Option<Shortfall> {
        let cluster = &self.engine.cluster;
        let compiled = cluster.template(template);
        let usable = self.usable_nodes(template);
        if usable.is_empty() {
            return None;
        }
        if let Some(ask) = compiled.cards.as_ref().filter(|ask| ask.whole() == 0) {
            let here = |&node: &NodeIx| cluster.node(node).cards.measure(ask);
            let mut best = usable.iter().map(here).max_by_key(|measure| measure.free)?;
            if best.usable < best.one {
                best.free = usable.iter().map(|node| here(node).free).sum();
                return Some(best.shortfall(1));
            }
        }
        if let Some(ask) = compiled.cards.as_ref().filter(|ask| ask.whole() > 0) {
            let free = |&node: &NodeIx| i64::from(cluster.node(node).cards.free(ask.kind));
            let most = usable.iter().map(free).max().unwrap_or(0);
            if most < i64::from(ask.whole()) {
                return Some(Shortfall {
                    resource: cluster.kind_name(ask.kind).to_string(),
                    needed: ask.whole().into(),
                    free: most,
                    scattered: usable.iter().map(free).sum(),
                });
            }
        }
        compiled.amounts.iter().find_map(|&(resource, amount)| {
            let free = |&node: &NodeIx| {
                cluster
                    .free_of(node)
                    .get(usize::from(resource))
                    .copied()
                    .unwrap_or(0)
                    .max(0)
            };
            let most = usable.iter().map(free).max().unwrap_or(0);
            (most < amount).then(|| Shortfall {
                resource: cluster.resource_name(resource).to_string(),
                needed: amount,
                free: most,
                scattered: usable.iter().map(free).fold(0, i64::saturating_add),
            })
        })
    }
}
