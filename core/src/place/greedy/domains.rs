//! Which domains could hold a sub-tree, smallest sufficient first.

use super::{
    super::{Request, Scope, Search},
    Aim,
};
use crate::{
    cluster::{
        Cluster, NodeIx,
        domain::{KeyIx, NODE_KEY},
    },
    place::tree::TreeKind,
};

impl Search {
    /// Appends the domains of a key that could hold a sub-tree, smallest first: by how many of the
    /// sub-tree's members they hold, then free cards, then node order. Returns where they start.
    pub(super) fn rank_domains(
        &mut self,
        cluster: &mut Cluster,
        request: &Request<'_>,
        ix: u32,
        key: KeyIx,
        aim: Aim,
    ) -> usize {
        let start = self.greedy.domains.len();
        for domain in cluster.domains_of(key) {
            if cluster.has_nodes(key, domain)
                && let Some((capacity, free)) = self.holds(cluster, request, ix, key, domain, aim)
            {
                self.greedy.domains.push((capacity, free, domain));
            }
        }
        self.greedy.domains[start..].sort_unstable_by_key(|&(capacity, free, domain)| {
            (capacity, free, cluster.first_rank_in(key, domain))
        });
        start
    }

    /// Capacity and free cards of a domain for a sub-tree, or `None` if some batch that must go
    /// there cannot.
    pub(super) fn holds(
        &mut self,
        cluster: &mut Cluster,
        request: &Request<'_>,
        ix: u32,
        key: KeyIx,
        domain: u32,
        aim: Aim,
    ) -> Option<(u32, u32)> {
        let mut total = 0_u32;
        let mut free = 0;
        for batch in 0..request.batches.len() as u32 {
            let wanted = &request.batches[batch as usize];
            if !request.tree.subtree(ix).contains(&wanted.leaf) {
                continue;
            }
            let missing = wanted.count - self.placed_of[batch as usize];
            let mandatory = match request.tree.nodes[wanted.leaf as usize].kind {
                TreeKind::Leaf { min, .. } => self.counted(request, wanted.leaf) < min,
                TreeKind::Inner(_) => false,
            };
            if let Some(ask) = &cluster.template(wanted.template).cards {
                if key == NODE_KEY {
                    free = cluster.node(NodeIx(domain)).cards.free(ask.kind);
                } else {
                    let domain = &cluster.partition(key).domains[domain as usize];
                    // Kept incrementally: most domains drop out here, without a look at a node.
                    let whole = ask.whole();
                    let fits = |whole| domain.card_capacity(ask.kind, whole);
                    if aim == Aim::All && whole > 0 && fits(whole) < missing {
                        return None;
                    }
                    free = domain.free_cards(ask.kind);
                }
            }
            let mut capacity = 0_u32;
            let nodes = Scope::of(cluster, key, domain).len();
            for index in 0..nodes {
                let node = Scope::of(cluster, key, domain).get(index);
                if self.in_scope(cluster, request, wanted.leaf, node) {
                    let rate = self.rate_node(cluster, request, batch, node, false);
                    capacity = capacity.saturating_add(rate.capacity);
                }
            }
            if (capacity == 0 && mandatory) || (aim == Aim::All && capacity < missing) {
                return None;
            }
            total = total.saturating_add(capacity);
        }
        Some((total, free))
    }

    /// At most this many members of a batch fit in a domain now.
    pub(super) fn domain_capacity(
        &mut self,
        cluster: &mut Cluster,
        request: &Request<'_>,
        batch: u32,
        key: KeyIx,
        domain: u32,
    ) -> u32 {
        let wanted = &request.batches[batch as usize];
        let place = &cluster.partition(key).domains[domain as usize];
        let nodes = place.nodes.len();
        if let Some(ask) = &cluster.template(wanted.template).cards
            && ask.whole() > 0
            && place.card_capacity(ask.kind, ask.whole()) == 0
        {
            return 0;
        }
        let mut capacity = 0_u32;
        for index in 0..nodes {
            let node = cluster.partition(key).domains[domain as usize].nodes[index];
            if self.in_scope(cluster, request, wanted.leaf, node) {
                let rate = self.rate_node(cluster, request, batch, node, true);
                capacity = capacity.saturating_add(rate.capacity);
            }
        }
        capacity
    }
}
