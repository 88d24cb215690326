//! Stage 1: fill classes in price order, smallest sufficient domain first.
//!
//! Never wrong when it succeeds (each placement is checked against the state that the ones before
//! left), and exact for one batch without relations. When it fails nothing is proven.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::{Request, Search};
use crate::{
    cluster::{
        Cluster, NodeIx,
        domain::{KeyIx, NO_DOMAIN, NODE_KEY},
    },
    device::CardAsk,
    gang::Minimum,
    place::tree::TreeKind,
};

mod domains;
mod fill;
mod packed;

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
    /// Parts of cards are packed by patterns where placing one by one fails.
    packs: bool,
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
        self.greedy.packs = false;
        self.enter(cluster, request, 0, Aim::All)
    }

    /// The same with parts of cards packed by patterns, from here on.
    pub(super) fn greedy_packed(&mut self, cluster: &mut Cluster, request: &Request<'_>) -> bool {
        self.greedy.packs = Self::can_pack(cluster, request);
        self.greedy.packs && self.enter(cluster, request, 0, Aim::All)
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
                let rank = |domain| cluster.first_rank_in(key, domain);
                let Some(domain) = pick_domain(&capacities, missing, rank) else {
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

    /// Places the members of a sub-tree whose domain is fixed: role by role, and where that fails and
    /// packing is on, by patterns.
    fn inside(&mut self, cluster: &mut Cluster, request: &Request<'_>, ix: u32, aim: Aim) -> bool {
        let (mark, keep) = (cluster.begin(), self.placed.len());
        if self.role_by_role(cluster, request, ix, aim) {
            return true;
        }
        if !self.greedy.packs {
            return false;
        }
        self.retract(cluster, mark, keep);
        self.unfix(request, ix + 1..request.tree.subtree(ix).end);
        if !self.packed(cluster, request, ix, aim) {
            return false;
        }
        match (aim, request.tree.nodes[ix as usize].kind) {
            (Aim::Minimum | Aim::Start, TreeKind::Inner(Minimum::Members(least))) => {
                let least_one = u32::from(aim == Aim::Start);
                self.top_up(cluster, request, ix, least.max(least_one))
            }
            _ => true,
        }
    }

    fn role_by_role(
        &mut self,
        cluster: &mut Cluster,
        request: &Request<'_>,
        ix: u32,
        aim: Aim,
    ) -> bool {
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
            if let Some(key) = node.required
                && inner != ix
                && self.domain[inner as usize] == NO_DOMAIN
                && counted(self) < least
            {
                let (mark, keep) = (cluster.begin(), self.placed.len());
                let entered = self.enter(cluster, request, inner, Aim::Start);
                if !entered || self.placed.len() == keep {
                    self.retract(cluster, mark, keep);
                    self.unfix(request, request.tree.subtree(inner));
                    // Members that ended count, and say nothing about where the others must be.
                    if !(entered && self.fix_largest(cluster, request, inner, key)) {
                        inner = request.tree.subtree(inner).end;
                        continue;
                    }
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

    /// Fixes the domain that can hold most of a sub-tree's members; false if none can hold any.
    fn fix_largest(
        &mut self,
        cluster: &mut Cluster,
        request: &Request<'_>,
        ix: u32,
        key: KeyIx,
    ) -> bool {
        let start = self.rank_domains(cluster, request, ix, key, Aim::Minimum);
        let largest = self.greedy.domains[start..].last().copied();
        self.greedy.domains.truncate(start);
        let Some((1.., _, domain)) = largest else {
            return false;
        };
        self.domain[ix as usize] = domain;
        true
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

/// The smallest domain that holds `missing` members, or else the largest; of equal ones the first by
/// rank.
fn pick_domain(capacities: &[u32], missing: u32, rank: impl Fn(u32) -> u32) -> Option<u32> {
    let domains = capacities.iter().zip(0_u32..);
    let with_room = domains.filter(|&(&capacity, _)| capacity > 0);
    let best = with_room.min_by_key(|&(&capacity, domain)| {
        // Those that suffice come first, smallest first; the others largest first.
        let lacks = missing.saturating_sub(capacity);
        (lacks, capacity, rank(domain))
    });
    best.map(|(_, domain)| domain)
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
        compiled.cards.as_ref().map_or(0, CardAsk::size),
        asked(crate::cluster::CPU_IX),
        asked(crate::cluster::MEMORY_IX),
    )
}
