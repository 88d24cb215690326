//! Filling: members of one batch onto the cheapest nodes of a list, one after the other.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use super::{
    super::{Request, Scope, Search},
    size,
};
use crate::cluster::{
    Cluster, NodeIx,
    domain::{KeyIx, NO_DOMAIN, NODE_KEY},
};

impl Search {
    /// Places up to `wanted` members of a leaf, its batches with the largest members first. True if
    /// that many (or, without `exact`, all of them) were placed.
    pub(super) fn fill_leaf(
        &mut self,
        cluster: &mut Cluster,
        request: &Request<'_>,
        leaf: u32,
        wanted: u32,
        exact: bool,
    ) -> bool {
        let mut wanted = wanted;
        let mut complete = true;
        let start = self.greedy.children.len();
        for (ix, batch) in request.batches.iter().enumerate() {
            if batch.leaf == leaf {
                self.greedy.children.push(ix as u32);
            }
        }
        self.greedy.children[start..].sort_unstable_by_key(|&batch| {
            let size = size(cluster, request.batches[batch as usize].template);
            (Reverse(size), batch)
        });
        let end = self.greedy.children.len();
        for index in start..end {
            let batch = self.greedy.children[index];
            let missing = request.batches[batch as usize].count - self.placed_of[batch as usize];
            let count = missing.min(wanted);
            let placed = self.fill_scope(cluster, request, batch, count);
            wanted -= placed;
            complete &= placed == count;
        }
        self.greedy.children.truncate(start);
        if exact { wanted == 0 } else { complete }
    }

    /// Places up to `count` members of a batch where its leaf may be. Returns how many.
    pub(super) fn fill_scope(
        &mut self,
        cluster: &mut Cluster,
        request: &Request<'_>,
        batch: u32,
        count: u32,
    ) -> u32 {
        let wanted = &request.batches[batch as usize];
        let free_choice = request.tree.upward(wanted.leaf).all(|ix| {
            request.tree.nodes[ix as usize].required.is_none()
                && self.narrowed[ix as usize].is_none()
        });
        let by_class = free_choice
            && request.forbidden.is_empty()
            && cluster.template(wanted.template).is_judged_by_class();
        if by_class {
            return self.fill_classes(cluster, request, batch, count);
        }
        let scope = self.scope(cluster, request, wanted.leaf);
        let (len, one) = match scope {
            Scope::One(node) => (1, Some(node)),
            Scope::Nodes(nodes) => (nodes.len(), None),
        };
        // The list is read again by index, since charges need the cluster to themselves.
        let source = self.scope_source(cluster, request, wanted.leaf);
        self.fill(cluster, request, batch, count, |cluster, index| {
            if index >= len {
                return None;
            }
            one.or_else(|| Some(source.list(cluster)[index]))
        })
    }

    fn scope_source(&self, cluster: &Cluster, request: &Request<'_>, leaf: u32) -> Source {
        let mut best = (cluster.ordered().len(), Source::All);
        for ix in request.tree.upward(leaf) {
            let required = request.tree.nodes[ix as usize].required;
            let fixed = required.map(|key| (key, self.domain[ix as usize]));
            for (key, domain) in [fixed, self.narrowed[ix as usize]].into_iter().flatten() {
                if domain != NO_DOMAIN && key != NODE_KEY {
                    let len = Scope::of(cluster, key, domain).len();
                    if len < best.0 {
                        best = (len, Source::Domain(key, domain));
                    }
                }
            }
        }
        best.1
    }

    /// Places up to `count` members one by one on the cheapest class's first node.
    pub(super) fn fill_classes(
        &mut self,
        cluster: &mut Cluster,
        request: &Request<'_>,
        batch: u32,
        count: u32,
    ) -> u32 {
        for done in 0..count {
            self.steps += 1;
            match self
                .rates
                .of_batch(batch)
                .cheapest(cluster, &mut self.worth)
            {
                Some(node) if self.put(cluster, request, batch, node) => {}
                _ => return done,
            }
        }
        count
    }

    /// Places up to `count` members on the listed nodes, cheapest first, a node again and again
    /// while it stays cheapest. Returns how many.
    pub(super) fn fill(
        &mut self,
        cluster: &mut Cluster,
        request: &Request<'_>,
        batch: u32,
        count: u32,
        list: impl Fn(&Cluster, usize) -> Option<NodeIx>,
    ) -> u32 {
        let leaf = request.batches[batch as usize].leaf;
        let spreads = !cluster
            .template(request.batches[batch as usize].template)
            .spread
            .is_empty();
        let mut candidates = core::mem::take(&mut self.greedy.candidates);
        let mut later = core::mem::take(&mut self.greedy.later);
        candidates.clear();
        later.clear();
        let mut index = 0;
        while let Some(node) = list(cluster, index) {
            index += 1;
            if self.in_scope(cluster, request, leaf, node) {
                later.push(node);
            }
        }
        let mut done = 0;
        // With spread rules a node that is refused now may do after others were used.
        loop {
            let before = done;
            for node in later.drain(..) {
                let rate = self.rate_node(cluster, request, batch, node, false);
                if rate.capacity > 0 {
                    candidates.push(Reverse((rate.price, cluster.node(node).rank, node)));
                }
            }
            let mut heap = BinaryHeap::from(core::mem::take(&mut candidates));
            while done < count {
                let Some(Reverse((_, _, node))) = heap.pop() else {
                    break;
                };
                self.steps += 1;
                let strict = self.rate_node(cluster, request, batch, node, true);
                if strict.capacity == 0 || !self.put(cluster, request, batch, node) {
                    if spreads {
                        later.push(node);
                    }
                    continue;
                }
                done += 1;
                let rate = self.rate_node(cluster, request, batch, node, false);
                if rate.capacity > 0 {
                    heap.push(Reverse((rate.price, cluster.node(node).rank, node)));
                }
            }
            candidates = heap.into_vec();
            candidates.clear();
            if done == count || done == before || later.is_empty() {
                break;
            }
        }
        self.greedy.candidates = candidates;
        self.greedy.later = later;
        done
    }
}

/// Where a list of nodes is read from.
#[derive(Clone, Copy, Debug)]
enum Source {
    All,
    Domain(KeyIx, u32),
}

impl Source {
    fn list(self, cluster: &Cluster) -> &[NodeIx] {
        match self {
            Source::All => cluster.ordered(),
            Source::Domain(key, domain) => &cluster.partition(key).domains[domain as usize].nodes,
        }
    }
}
