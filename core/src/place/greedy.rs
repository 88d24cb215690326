//! Stage 1: fill classes in price order, smallest sufficient domain first.
//!
//! Never wrong when it succeeds (each placement is checked against the state that the ones before
//! left), and exact for one batch without relations. When it fails nothing is proven.

use alloc::{collections::BinaryHeap, vec::Vec};
use core::cmp::Reverse;

use super::{Request, Scope, Search};
use crate::{
    cluster::{
        Cluster, NodeIx,
        domain::{KeyIx, NO_DOMAIN, NODE_KEY},
    },
    gang::Minimum,
    place::tree::TreeKind,
};

/// Price, rank, node.
type Candidate = Reverse<(i64, u32, NodeIx)>;

/// Memory that is kept between searches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    candidates: Vec<Candidate>,
    /// Nodes that a spread rule refuses for now.
    later: Vec<NodeIx>,
    /// Stack of domain lists: (capacity, free, domain).
    domains: Vec<(u32, u32, u32)>,
    /// By domain: members that it can take.
    capacities: Vec<u32>,
    /// Stack of child lists.
    children: Vec<u32>,
}

/// How much of a sub-tree must be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    /// Every member.
    All,
    /// What its minimum asks for.
    Minimum,
    /// What its minimum asks for, and at least one member.
    Start,
}

impl Search {
    /// Tries to place every member of the gang.
    pub(super) fn greedy_all(&mut self, cluster: &mut Cluster, request: &Request<'_>) -> bool {
        self.relate.forget();
        self.enter(cluster, request, 0, Aim::All)
    }

    /// Tries to meet the gang's minimum.
    pub(super) fn greedy_minimum(&mut self, cluster: &mut Cluster, request: &Request<'_>) -> bool {
        self.enter(cluster, request, 0, Aim::Start)
    }

    /// Places a sub-tree: fixes its domain if it needs one, then its members.
    fn enter(&mut self, cluster: &mut Cluster, request: &Request<'_>, ix: u32, aim: Aim) -> bool {
        let node = &request.tree.nodes[ix as usize];
        if let Some(key) = node
            .required
            .filter(|_| self.domain[ix as usize] == NO_DOMAIN)
        {
            let placed = self.try_domains(cluster, request, ix, key, aim, |search, domain| {
                search.domain[ix as usize] = domain;
            });
            if !placed {
                self.domain[ix as usize] = NO_DOMAIN;
            }
            return placed;
        }
        self.near(cluster, request, ix, aim)
    }

    /// Places a sub-tree whose required domain is fixed: by its preferred level if it has one and
    /// nothing narrows it yet.
    fn near(&mut self, cluster: &mut Cluster, request: &Request<'_>, ix: u32, aim: Aim) -> bool {
        match request.tree.nodes[ix as usize].preferred {
            Some(key) if self.narrowed[ix as usize].is_none() => {
                self.gather(cluster, request, ix, key, aim)
            }
            _ => self.inside(cluster, request, ix, aim),
        }
    }

    /// Tries the domains of a key, smallest sufficient first, `fix`ing each for the attempt.
    fn try_domains(
        &mut self,
        cluster: &mut Cluster,
        request: &Request<'_>,
        ix: u32,
        key: KeyIx,
        aim: Aim,
        fix: impl Fn(&mut Self, u32),
    ) -> bool {
        let start = self.rank_domains(cluster, request, ix, key, aim);
        let end = self.greedy.domains.len();
        for option in start..end {
            let (_, _, domain) = self.greedy.domains[option];
            fix(self, domain);
            let (mark, keep) = (cluster.begin(), self.placed.len());
            if self.near(cluster, request, ix, aim) {
                self.greedy.domains.truncate(start);
                return true;
            }
            self.retract(cluster, mark, keep);
            self.unfix(request, ix + 1..request.tree.subtree(ix).end);
        }
        self.greedy.domains.truncate(start);
        false
    }

    /// Appends the domains of a key that could hold a sub-tree, smallest first: by how many of the
    /// sub-tree's members they hold, then free cards, then node order. Returns where they start.
    fn rank_domains(
        &mut self,
        cluster: &mut Cluster,
        request: &Request<'_>,
        ix: u32,
        key: KeyIx,
        aim: Aim,
    ) -> usize {
        let start = self.greedy.domains.len();
        if key == NODE_KEY {
            self.rank_nodes(cluster, request, ix, aim);
            return start;
        }
        for domain in 0..cluster.partition(key).domains.len() as u32 {
            if let Some((capacity, free)) = self.holds(cluster, request, ix, key, domain, aim) {
                self.greedy.domains.push((capacity, free, domain));
            }
        }
        let first_rank = |domain: u32| {
            let nodes = &cluster.partition(key).domains[domain as usize].nodes;
            nodes
                .first()
                .map_or(u32::MAX, |&node| cluster.node(node).rank)
        };
        self.greedy.domains[start..]
            .sort_unstable_by_key(|&(capacity, free, domain)| (capacity, free, first_rank(domain)));
        start
    }

    fn rank_nodes(&mut self, cluster: &mut Cluster, request: &Request<'_>, ix: u32, aim: Aim) {
        let start = self.greedy.domains.len();
        for rank in 0..cluster.ordered().len() {
            let node = cluster.ordered()[rank];
            let key = NODE_KEY;
            if let Some((capacity, free)) = self.holds(cluster, request, ix, key, node.0, aim) {
                self.greedy.domains.push((capacity, free, node.0));
            }
        }
        self.greedy.domains[start..].sort_unstable_by_key(|&(capacity, free, node)| {
            (capacity, free, cluster.node(NodeIx(node)).rank)
        });
    }

    /// Capacity and free cards of a domain for a sub-tree, or `None` if some batch that must go
    /// there cannot.
    fn holds(
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
            if let Some(ask) = cluster.template(wanted.template).cards {
                if key == NODE_KEY {
                    free = cluster.node(NodeIx(domain)).cards.free(ask.kind);
                } else {
                    let domain = &cluster.partition(key).domains[domain as usize];
                    // Kept incrementally: most domains drop out here, without a look at a node.
                    if aim == Aim::All && domain.card_capacity(ask.kind, ask.count) < missing {
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

    /// Places a sub-tree in as few domains of a preferred level as it can: one domain of that
    /// level if one suffices, else inside one domain of the next coarser level, and so on.
    fn gather(
        &mut self,
        cluster: &mut Cluster,
        request: &Request<'_>,
        ix: u32,
        key: KeyIx,
        aim: Aim,
    ) -> bool {
        let position = cluster.levels.iter().position(|&level| level == key);
        let coarser = position.unwrap_or(0);
        let narrow = |search: &mut Self, level: KeyIx, domain: u32| {
            search.narrowed[ix as usize] = Some((level, domain));
        };
        let fix = |search: &mut Self, domain: u32| narrow(search, key, domain);
        if self.try_domains(cluster, request, ix, key, aim, fix) {
            self.narrowed[ix as usize] = None;
            return true;
        }
        for level in (0..coarser).rev() {
            let level = cluster.levels[level];
            let start = self.rank_domains(cluster, request, ix, level, aim);
            let end = self.greedy.domains.len();
            for option in start..end {
                let (_, _, domain) = self.greedy.domains[option];
                narrow(self, level, domain);
                let (mark, keep) = (cluster.begin(), self.placed.len());
                if self.few_domains(cluster, request, ix, key, aim) {
                    self.narrowed[ix as usize] = None;
                    self.greedy.domains.truncate(start);
                    return true;
                }
                self.retract(cluster, mark, keep);
                self.unfix(request, ix + 1..request.tree.subtree(ix).end);
            }
            self.greedy.domains.truncate(start);
        }
        self.narrowed[ix as usize] = None;
        let (mark, keep) = (cluster.begin(), self.placed.len());
        if self.few_domains(cluster, request, ix, key, aim) {
            return true;
        }
        self.retract(cluster, mark, keep);
        self.unfix(request, ix + 1..request.tree.subtree(ix).end);
        self.inside(cluster, request, ix, aim)
    }

    /// Places the batches of a sub-tree domain by domain: the largest first, and the smallest that
    /// suffices for what is left. Nodes outside every domain come last.
    fn few_domains(
        &mut self,
        cluster: &mut Cluster,
        request: &Request<'_>,
        ix: u32,
        key: KeyIx,
        aim: Aim,
    ) -> bool {
        if aim != Aim::All || key == NODE_KEY {
            return self.inside(cluster, request, ix, aim);
        }
        for batch in 0..request.batches.len() as u32 {
            let wanted = request.batches[batch as usize];
            // A sub-group with a level of its own gets its domain first, further down.
            let mut inner = request
                .tree
                .upward(wanted.leaf)
                .take_while(|&inner| inner != ix);
            let unfixed = |inner: u32| {
                let required = request.tree.nodes[inner as usize].required;
                required.is_some() && self.domain[inner as usize] == NO_DOMAIN
            };
            if !request.tree.subtree(ix).contains(&wanted.leaf) || inner.any(unfixed) {
                continue;
            }
            // With rules about other pods, a member in one domain can close another.
            let alone = !cluster.template(wanted.template).needs_node_check();
            let domains = 0..cluster.partition(key).domains.len() as u32;
            let mut capacities = core::mem::take(&mut self.greedy.capacities);
            capacities.clear();
            for domain in domains.clone() {
                capacities.push(self.domain_capacity(cluster, request, batch, key, domain));
            }
            loop {
                let missing = wanted.count - self.placed_of[batch as usize];
                if missing == 0 {
                    break;
                }
                let Some(domain) = pick_domain(&capacities, missing) else {
                    break;
                };
                let before = self.placed.len();
                let nodes = cluster.partition(key).domains[domain as usize].nodes.len();
                self.fill(cluster, request, batch, missing, |cluster, index| {
                    (index < nodes)
                        .then(|| cluster.partition(key).domains[domain as usize].nodes[index])
                });
                if self.placed.len() == before {
                    break;
                }
                for changed in if alone {
                    domain..domain + 1
                } else {
                    domains.clone()
                } {
                    capacities[changed as usize] =
                        self.domain_capacity(cluster, request, batch, key, changed);
                }
            }
            self.greedy.capacities = capacities;
        }
        // What no domain took, and roles that need not be near.
        self.inside(cluster, request, ix, aim)
    }

    /// At most this many members of a batch fit in a domain now.
    fn domain_capacity(
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
        if let Some(ask) = cluster.template(wanted.template).cards
            && place.card_capacity(ask.kind, ask.count) == 0
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

    /// Places the members of a sub-tree whose domain is fixed.
    fn inside(&mut self, cluster: &mut Cluster, request: &Request<'_>, ix: u32, aim: Aim) -> bool {
        match request.tree.nodes[ix as usize].kind {
            TreeKind::Leaf { min, .. } => {
                let wanted = match aim {
                    Aim::All => u32::MAX,
                    Aim::Minimum => min.saturating_sub(self.counted(request, ix)),
                    Aim::Start => min.max(1).saturating_sub(self.counted(request, ix)),
                };
                self.fill_leaf(cluster, request, ix, wanted, aim != Aim::All)
            }
            TreeKind::Inner(minimum) => {
                let start = self.list_children(cluster, request, ix);
                let end = self.greedy.children.len();
                let mut placed = true;
                let mut met = 0;
                let least_one = u32::from(aim == Aim::Start);
                let child_aim = match (aim, minimum) {
                    (Aim::All, _) => Aim::All,
                    (_, Minimum::Members(_)) => Aim::Minimum,
                    // An empty child does not count.
                    (_, Minimum::Children(_)) => Aim::Start,
                };
                for index in start..end {
                    let child = self.greedy.children[index];
                    let (mark, keep) = (cluster.begin(), self.placed.len());
                    let entered = self.enter(cluster, request, child, child_aim);
                    if !entered {
                        self.retract(cluster, mark, keep);
                        self.unfix(request, request.tree.subtree(child));
                    }
                    met += u32::from(entered);
                    placed &= entered;
                }
                self.greedy.children.truncate(start);
                match (aim, minimum) {
                    (Aim::All, _) => placed,
                    (_, Minimum::Children(least)) => met >= least.max(least_one),
                    (_, Minimum::Members(least)) => {
                        placed && self.top_up(cluster, request, ix, least.max(least_one))
                    }
                }
            }
        }
    }

    /// Adds members of any leaf below until the sub-tree counts `least`.
    fn top_up(
        &mut self,
        cluster: &mut Cluster,
        request: &Request<'_>,
        ix: u32,
        least: u32,
    ) -> bool {
        let counted = |search: &Self| {
            let standing = request
                .tree
                .standing(ix, &|leaf| search.counted(request, leaf));
            standing.members
        };
        let mut inner = ix;
        while inner < request.tree.subtree(ix).end {
            let node = &request.tree.nodes[inner as usize];
            // A sub-group with a level of its own gets its domain with its first members.
            if inner != ix
                && node.required.is_some()
                && self.domain[inner as usize] == NO_DOMAIN
                && counted(self) < least
            {
                let (mark, keep) = (cluster.begin(), self.placed.len());
                if !self.enter(cluster, request, inner, Aim::Start) {
                    self.retract(cluster, mark, keep);
                    self.unfix(request, request.tree.subtree(inner));
                    inner = request.tree.subtree(inner).end;
                    continue;
                }
            }
            let missing = least.saturating_sub(counted(self));
            if missing > 0 && matches!(node.kind, TreeKind::Leaf { .. }) {
                self.fill_leaf(cluster, request, inner, missing, true);
            }
            inner += 1;
        }
        counted(self) >= least
    }

    /// Appends a node's children, those with the largest members first. Returns where they start.
    fn list_children(&mut self, cluster: &Cluster, request: &Request<'_>, ix: u32) -> usize {
        let start = self.greedy.children.len();
        self.greedy.children.extend(request.tree.children(ix));
        let weight = |child: u32| {
            let below = request.tree.subtree(child);
            let batches = request
                .batches
                .iter()
                .filter(|batch| below.contains(&batch.leaf));
            batches.map(|batch| size(cluster, batch.template)).max()
        };
        // Ties in tree order.
        self.greedy.children[start..].sort_unstable_by_key(|&child| {
            let required = request.tree.nodes[child as usize].required.is_some();
            (Reverse((required, weight(child))), child)
        });
        start
    }

    /// Places up to `wanted` members of a leaf, its batches with the largest members first. True if
    /// that many (or, without `exact`, all of them) were placed.
    fn fill_leaf(
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
    fn fill_scope(
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
    fn fill_classes(
        &mut self,
        cluster: &mut Cluster,
        request: &Request<'_>,
        batch: u32,
        count: u32,
    ) -> u32 {
        for done in 0..count {
            self.steps += 1;
            match self.rates.of_batch(batch).cheapest(cluster) {
                Some(node) if self.put(cluster, request, batch, node) => {}
                _ => return done,
            }
        }
        count
    }

    /// Places up to `count` members on the listed nodes, cheapest first, a node again and again
    /// while it stays cheapest. Returns how many.
    fn fill(
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

    /// After the minima are met: more members of what runs, then further sub-groups, while there
    /// is room. Leaves a valid plan.
    pub(super) fn extend(&mut self, cluster: &mut Cluster, request: &Request<'_>) {
        self.extend_group(cluster, request, 0);
    }

    fn extend_group(&mut self, cluster: &mut Cluster, request: &Request<'_>, ix: u32) {
        let counted = |search: &Self, ix: u32| {
            request
                .tree
                .standing(ix, &|leaf| search.counted(request, leaf))
        };
        let standing = counted(self, ix);
        let running = request.started && standing.members > 0;
        if ix != 0 && !running && !(standing.met && standing.members > 0) {
            let (mark, keep) = (cluster.begin(), self.placed.len());
            let entered = self.enter(cluster, request, ix, Aim::Start);
            if !(entered && self.placed.len() > keep && self.is_valid(cluster, request)) {
                self.retract(cluster, mark, keep);
                self.unfix(request, request.tree.subtree(ix));
                return;
            }
        }
        let required = request.tree.nodes[ix as usize].required;
        let Some(key) = required.filter(|_| self.domain[ix as usize] == NO_DOMAIN) else {
            self.extend_inside(cluster, request, ix);
            return;
        };
        // It counts members that ended, and those say nothing about where the others must be: the
        // largest domain that takes one.
        let start = self.rank_domains(cluster, request, ix, key, Aim::Minimum);
        let keep = self.placed.len();
        for option in (start..self.greedy.domains.len()).rev() {
            self.domain[ix as usize] = self.greedy.domains[option].2;
            self.extend_inside(cluster, request, ix);
            if self.placed.len() > keep {
                break;
            }
            self.domain[ix as usize] = NO_DOMAIN;
        }
        self.greedy.domains.truncate(start);
    }

    /// More members of a sub-tree that is there and whose domain is fixed.
    fn extend_inside(&mut self, cluster: &mut Cluster, request: &Request<'_>, ix: u32) {
        if let TreeKind::Inner(_) = request.tree.nodes[ix as usize].kind {
            let start = self.greedy.children.len();
            self.greedy.children.extend(request.tree.children(ix));
            let end = self.greedy.children.len();
            for index in start..end {
                let child = self.greedy.children[index];
                self.extend_group(cluster, request, child);
            }
            self.greedy.children.truncate(start);
            return;
        }
        for batch in 0..request.batches.len() as u32 {
            let wanted = request.batches[batch as usize];
            if wanted.leaf != ix {
                continue;
            }
            let related = cluster.template(wanted.template).has_relations()
                || !cluster.template(wanted.template).counted_by.is_empty();
            loop {
                let missing = wanted.count - self.placed_of[batch as usize];
                let (mark, keep) = (cluster.begin(), self.placed.len());
                // One at a time where a further member could break a rule of those before it.
                let step = if related { missing.min(1) } else { missing };
                if step == 0 || self.fill_scope(cluster, request, batch, step) == 0 {
                    break;
                }
                if related && !self.is_valid(cluster, request) {
                    self.retract(cluster, mark, keep);
                    break;
                }
                if !related {
                    break;
                }
            }
        }
    }
}

/// The smallest domain that holds `missing` members, or else the largest; the first among equals.
fn pick_domain(capacities: &[u32], missing: u32) -> Option<u32> {
    let mut best: Option<(u32, u32)> = None;
    for (domain, &capacity) in capacities.iter().enumerate() {
        let better = match best {
            None => capacity > 0,
            Some((held, _)) if held >= missing => capacity >= missing && capacity < held,
            Some((held, _)) => capacity > held,
        };
        if better {
            best = Some((capacity, domain as u32));
        }
    }
    best.map(|(_, domain)| domain)
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

/// What makes a member hard to place: cards first, then processor time, then memory.
pub(super) fn size(
    cluster: &Cluster,
    template: crate::cluster::template::TemplateIx,
) -> (u32, i64, i64) {
    let compiled = cluster.template(template);
    let asked = |resource: u16| {
        compiled
            .amounts
            .iter()
            .find(|&&(asked, _)| asked == resource)
            .map_or(0, |&(_, amount)| amount)
    };
    (
        compiled.cards.map_or(0, |ask| ask.count),
        asked(crate::cluster::CPU_IX),
        asked(crate::cluster::MEMORY_IX),
    )
}
