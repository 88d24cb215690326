//! Stage 4: depth-first search with exact undo. Its "infeasible" is a proof.
//!
//! The tree is walked in pre-order as a list of [`Step`]s: fix the domain of a sub-group that needs
//! one, place the members of a batch one by one, check a finished sub-group. Members of a batch are
//! alike and nodes with equal signatures are interchangeable, so when a member fails on one node
//! of a signature, no later member of the batch needs to try any of these nodes in that branch: any
//! plan that uses one of them could be permuted into the branch that failed. The same holds for
//! devices of one node: when it can give several, later members need not try those that failed. Where
//! members want parts of cards, states from which nothing was found are remembered, since different
//! orders lead to the same state. The walk keeps its own stack, so depth costs heap, not call stack.

use alloc::vec::Vec;
use core::hash::Hasher;

use smallvec::SmallVec;

use super::{Outcome, Request, Search, bound, greedy::size, relate};
use crate::{
    cluster::{
        Cluster, NodeIx,
        domain::{KeyIx, NO_DOMAIN, NODE_KEY},
    },
    device::{self, Devices, Wanted},
    gang::Minimum,
    hash::WordHasher,
    place::tree::TreeKind,
};

/// One thing to do on the way through the tree.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Fix the domain of this tree node.
    Open(u32),
    /// Place members of this batch, as many as wanted.
    Members(u32),
    /// Check this finished tree node.
    Close(u32),
}

/// One way to go on.
#[derive(Clone, Copy, Debug)]
enum Choice {
    Domain(u32),
    Node(NodeIx, Devices),
    /// No more members of this batch.
    Stop,
    /// Nothing in this sub-tree.
    Skip,
}

/// A point of the walk with choices left.
#[derive(Clone, Copy, Debug)]
struct Frame {
    step: u32,
    /// Range of this frame's choices on the choice stack.
    first: u32,
    end: u32,
    next: u32,
    /// Where to go back to.
    mark: usize,
    placed: u32,
    excluded: u32,
    barred: u32,
    /// The state at this point, if it is worth remembering that it failed.
    key: Option<u128>,
}

/// Memory that is kept between searches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    steps: Vec<Step>,
    frames: Vec<Frame>,
    choices: Vec<Choice>,
    devices: Vec<Devices>,
    /// By node: the batch that must not use it in the current branch.
    excluded: Vec<u32>,
    /// Devices of a node that members of a batch must not use in the current branch.
    barred: Vec<(u32, NodeIx, Devices)>,
    /// What `excluded` held before, to go back.
    exclusions: Vec<(NodeIx, u32)>,
    seen: Vec<(u64, i64, u32, NodeIx)>,
    /// Partitions and terms that tell nodes of one class apart.
    keys: Vec<KeyIx>,
    terms: Vec<(KeyIx, crate::cluster::relation::TermIx)>,
    has_ports: bool,
    names_nodes: bool,
    /// Some member says which cards by their numbers, so that no two cards are alike.
    names_cards: bool,
    /// States from which every way failed, by what they look like to the rest of the search.
    dead: hashbrown::HashSet<u128, crate::hash::BuildWordHasher>,
    /// Members ask for parts or particular cards, and nothing but what is free decides: states meet
    /// again and again, and are worth remembering.
    remembers: bool,
    /// Some node had more ways to give a member its devices than were tried.
    is_cut: bool,
}

/// So many failed states are remembered, and none of more members than this.
const MOST_DEAD: usize = 1 << 17;
const MOST_REMEMBERED: usize = 32;

/// On one node so many ways to give a member its devices are tried.
const MOST_WAYS: usize = 1 << 12;

/// So many places that are looked at for a member's devices cost as much as a step.
const LOOKS_IN_STEP: u64 = 4;

/// What it costs more to give a member parts of cards: the node's capacity for every role is counted
/// anew.
const STEPS_OF_PARTS: u64 = 2;

const NOBODY: u32 = u32::MAX;

impl Search {
    /// Looks for a plan that meets the minima. A found plan stays charged.
    pub(super) fn exhaust(&mut self, cluster: &mut Cluster, request: &Request<'_>) -> Outcome {
        self.prepare(cluster, request);
        let mark = cluster.begin();
        let mut step = 0_u32;
        loop {
            // Forward, until there is a choice to make or nothing left to do.
            let dead_end = match self.exhaust.steps.get(step as usize).copied() {
                None => {
                    if self.is_valid(cluster, request) {
                        return Outcome::Found;
                    }
                    true
                }
                Some(Step::Close(ix)) => {
                    if self.may_close(request, ix) {
                        step += 1;
                        continue;
                    }
                    true
                }
                Some(Step::Open(ix)) => {
                    self.open(cluster, request, step, ix);
                    false
                }
                Some(Step::Members(batch)) => {
                    self.members(cluster, request, step, batch);
                    false
                }
            };
            if dead_end && self.exhaust.frames.is_empty() {
                break;
            }
            // The next choice of the innermost frame that has one.
            match self.choose(cluster, request) {
                Some(next) => step = next,
                None => break,
            }
            if self.steps > request.budget {
                self.retract(cluster, mark, 0);
                return Outcome::Undecided;
            }
        }
        self.retract(cluster, mark, 0);
        if self.exhaust.is_cut {
            return Outcome::Undecided;
        }
        Outcome::Infeasible
    }

    fn prepare(&mut self, cluster: &Cluster, request: &Request<'_>) {
        let scratch = &mut self.exhaust;
        scratch.steps.clear();
        scratch.frames.clear();
        scratch.choices.clear();
        scratch.exclusions.clear();
        scratch.barred.clear();
        scratch.excluded.clear();
        scratch.excluded.resize(cluster.node_count(), NOBODY);
        list_steps(&mut scratch.steps, cluster, request, 0);
        scratch.keys.clear();
        let required = request.tree.nodes.iter().filter_map(|node| node.required);
        scratch.keys.extend(required);
        scratch.terms.clear();
        let templates = || request.batches.iter().map(|batch| batch.template);
        scratch
            .terms
            .extend(relate::node_terms(cluster, templates()));
        scratch.terms.sort_unstable();
        scratch.terms.dedup();
        scratch
            .keys
            .extend(scratch.terms.iter().map(|&(key, _)| key));
        scratch.keys.sort_unstable();
        scratch.keys.dedup();
        let any = |test: fn(&crate::cluster::template::Compiled) -> bool| {
            templates().any(|template| test(cluster.template(template)))
        };
        scratch.has_ports = any(|compiled| !compiled.source.host_ports.is_empty());
        scratch.is_cut = false;
        scratch.dead.clear();
        // Who is where matters to rules about other pods, and a remembered state does not say.
        let alone = scratch.terms.is_empty() && !scratch.has_ports;
        scratch.remembers = alone
            && templates().any(|template| {
                let compiled = cluster.template(template);
                compiled.cards.as_ref().is_some_and(|ask| !ask.plain)
            });
        scratch.names_cards = any(|compiled| compiled.names_cards().is_some());
        // Nodes of one class need not have the same cards free.
        scratch.names_nodes = any(|compiled| compiled.names_nodes)
            || scratch.names_cards
            || request
                .tree
                .nodes
                .iter()
                .any(|node| node.required == Some(NODE_KEY));
        // Ports and rules about other pods are more than what is free.
        let related = any(|compiled| compiled.has_relations() || !compiled.counted_by.is_empty());
        scratch.remembers &= !scratch.has_ports && !related;
    }

    /// Whether a finished sub-tree keeps its promise: its minimum met, or nothing in it was placed.
    fn may_close(&self, request: &Request<'_>, ix: u32) -> bool {
        let standing = request
            .tree
            .standing(ix, &|leaf| self.counted(request, leaf));
        let untouched = request
            .batches
            .iter()
            .zip(&self.placed_of)
            .all(|(batch, &placed)| placed == 0 || !request.tree.subtree(ix).contains(&batch.leaf));
        standing.met || (ix != 0 && untouched)
    }

    /// Lists the domains that a tree node could have.
    fn open(&mut self, cluster: &mut Cluster, request: &Request<'_>, step: u32, ix: u32) {
        let first = self.exhaust.choices.len() as u32;
        let Some(key) = request.tree.nodes[ix as usize].required else {
            return;
        };
        let mut count = 0;
        for domain in cluster.domains_of(key) {
            if !cluster.has_nodes(key, domain) {
                continue;
            }
            count += 1;
            self.domain[ix as usize] = domain;
            // A proof that this domain cannot do saves the whole branch.
            if bound::could_hold(self, cluster, request, ix) {
                self.exhaust.choices.push(Choice::Domain(domain));
            }
        }
        self.domain[ix as usize] = NO_DOMAIN;
        self.steps += count / 8 + 1;
        // Domains are numbered as they came; which is tried first must not depend on that.
        let first_rank = |choice: &Choice| match choice {
            Choice::Domain(domain) => cluster.first_rank_in(key, *domain),
            _ => u32::MAX,
        };
        self.exhaust.choices[first as usize..].sort_by_key(first_rank);
        if ix != 0 {
            self.exhaust.choices.push(Choice::Skip);
        }
        self.push_frame(cluster, step, first, None);
    }

    fn push_frame(&mut self, cluster: &mut Cluster, step: u32, first: u32, key: Option<u128>) {
        let frame = Frame {
            step,
            first,
            end: self.exhaust.choices.len() as u32,
            next: first,
            mark: cluster.begin(),
            placed: self.placed.len() as u32,
            excluded: self.exhaust.exclusions.len() as u32,
            barred: self.exhaust.barred.len() as u32,
            key,
        };
        self.exhaust.frames.push(frame);
    }

    /// Lists what the next member of a batch could do: one node of each signature, cheapest first,
    /// and staying away.
    fn members(&mut self, cluster: &mut Cluster, request: &Request<'_>, step: u32, batch: u32) {
        let wanted = request.batches[batch as usize];
        let first = self.exhaust.choices.len() as u32;
        let key = self.state_key(cluster, step);
        if key.is_some_and(|key| self.exhaust.dead.contains(&key)) {
            return self.push_frame(cluster, step, first, None);
        }
        let mut seen = core::mem::take(&mut self.exhaust.seen);
        seen.clear();
        if self.placed_of[batch as usize] < wanted.count {
            for index in 0..self.scope(cluster, request, wanted.leaf).len() {
                let node = self.scope(cluster, request, wanted.leaf).get(index);
                if self.exhaust.excluded[node.0 as usize] == batch
                    || !self.in_scope(cluster, request, wanted.leaf, node)
                {
                    continue;
                }
                let rate = self.rate_node(cluster, request, batch, node, false);
                if rate.capacity > 0 {
                    let signature = self.signature(cluster, node);
                    seen.push((signature, rate.price, cluster.node(node).rank, node));
                }
            }
            self.steps += seen.len() as u64 / 16;
            // The first of each signature by node order, then by price.
            seen.sort_unstable_by_key(|&(signature, _, rank, _)| (signature, rank));
            seen.dedup_by_key(|&mut (signature, ..)| signature);
            seen.sort_unstable_by_key(|&(_, price, rank, _)| (price, rank));
        }
        // Minimum first: stay away as soon as no minimum above asks for this member.
        let wanting = self.is_wanted(request, wanted.leaf);
        if !wanting {
            self.exhaust.choices.push(Choice::Stop);
        }
        let template = wanted.template;
        for &(.., node) in &seen {
            // All that a node can give in different ways, next to each other.
            let mut choices = core::mem::take(&mut self.exhaust.devices);
            choices.clear();
            match &cluster.template(template).cards {
                None => choices.push(Devices::NONE),
                Some(ask) => {
                    let wanted = Wanted {
                        by_name: self.exhaust.names_cards,
                        all_starts: false,
                        most: MOST_WAYS,
                    };
                    let cards = &cluster.node(node).cards;
                    let listed = device::choices(cards, ask, wanted, &mut choices);
                    self.exhaust.is_cut |= !listed.is_complete;
                    self.steps += listed.looks / LOOKS_IN_STEP;
                }
            }
            // Alike members can change places: what failed for one before fails for this one.
            let barred = &self.exhaust.barred;
            let ways = choices
                .iter()
                .filter(|&&devices| !barred.contains(&(batch, node, devices)));
            let ways = ways.map(|&devices| Choice::Node(node, devices));
            self.exhaust.choices.extend(ways);
            self.exhaust.devices = choices;
        }
        if wanting {
            self.exhaust.choices.push(Choice::Stop);
        }
        self.exhaust.seen = seen;
        self.push_frame(cluster, step, first, key);
    }

    /// What this point of the search looks like from here on: the step, how many members are placed,
    /// fixed domains, and what is in use on each node that was used. 128 bits: two states with the
    /// same key are not to be expected.
    fn state_key(&self, cluster: &Cluster, step: u32) -> Option<u128> {
        if !self.exhaust.remembers || self.placed.len() > MOST_REMEMBERED {
            return None;
        }
        let half = |salt: u64| {
            let mut hasher = WordHasher::default();
            hasher.write_u64(salt);
            hasher.write_u32(step);
            for &placed in &self.placed_of {
                hasher.write_u32(placed);
            }
            for &domain in &self.domain {
                hasher.write_u32(domain);
            }
            let mut nodes: SmallVec<[NodeIx; MOST_REMEMBERED]> =
                self.placed.iter().map(|place| place.node).collect();
            nodes.sort_unstable();
            nodes.dedup();
            for node in nodes {
                hasher.write_u32(node.0);
                for &free in cluster.free_of(node) {
                    hasher.write_u64(free as u64);
                }
                let by_name = self.exhaust.names_cards;
                cluster.node(node).cards.hash_use(by_name, &mut hasher);
            }
            hasher.finish()
        };
        Some(u128::from(half(0)) << 64 | u128::from(half(0x517c_c1b7_2722_0a95)))
    }

    /// Whether a minimum of the leaf or of a sub-group around it is still unmet.
    fn is_wanted(&self, request: &Request<'_>, leaf: u32) -> bool {
        request.tree.upward(leaf).any(|ix| {
            let standing = |ix: u32| {
                request
                    .tree
                    .standing(ix, &|leaf| self.counted(request, leaf))
            };
            match request.tree.nodes[ix as usize].kind {
                TreeKind::Leaf { min, .. } => standing(ix).members < min,
                TreeKind::Inner(Minimum::Members(least)) => standing(ix).members < least,
                TreeKind::Inner(Minimum::Children(_)) => !standing(ix).met,
            }
        })
    }

    /// What makes nodes interchangeable for the rest of this search.
    fn signature(&self, cluster: &Cluster, node: NodeIx) -> u64 {
        let scratch = &self.exhaust;
        let state = cluster.node(node);
        let mut hasher = WordHasher::default();
        hasher.write_u32(state.class.map_or(NOBODY, |class| class.0));
        if scratch.names_nodes {
            hasher.write_u32(node.0);
        }
        for &key in scratch.keys.iter().filter(|&&key| key != NODE_KEY) {
            hasher.write_u32(cluster.domain_of(key, node));
        }
        for &(_, term) in scratch.terms.iter().filter(|&&(key, _)| key == NODE_KEY) {
            let term = cluster.term(term);
            hasher.write_u32(term.matching_in(node.0));
            hasher.write_u32(term.carriers_in(node.0));
        }
        if scratch.has_ports {
            // Order does not matter: ports come and go in any order.
            let sum = state.ports.iter().fold(0_u64, |sum, port| {
                let mut one = WordHasher::default();
                core::hash::Hash::hash(port, &mut one);
                sum.wrapping_add(one.finish())
            });
            hasher.write_u64(sum);
        }
        hasher.finish()
    }

    /// Takes the next choice there is, going back as far as needed. Returns the step to go on with.
    fn choose(&mut self, cluster: &mut Cluster, request: &Request<'_>) -> Option<u32> {
        loop {
            let frame = *self.exhaust.frames.last()?;
            self.retract(cluster, frame.mark, frame.placed as usize);
            let step = self.exhaust.steps[frame.step as usize];
            if frame.next > frame.first {
                // The choice before failed.
                let failed = self.exhaust.choices[frame.next as usize - 1];
                let further = self.exhaust.choices[..frame.end as usize].get(frame.next as usize);
                if let (Step::Members(batch), Choice::Node(node, devices)) = (step, failed) {
                    if matches!(further, Some(&Choice::Node(next, _)) if next == node) {
                        self.exhaust.barred.push((batch, node, devices));
                    } else {
                        self.exclude_alike(cluster, request, batch, node);
                    }
                }
            }
            if frame.next == frame.end {
                self.close_frame(request, frame, step);
                continue;
            }
            let choice = self.exhaust.choices[frame.next as usize];
            if let Some(top) = self.exhaust.frames.last_mut() {
                top.next += 1;
            }
            self.steps += 1;
            match (step, choice) {
                (Step::Open(ix), Choice::Domain(domain)) => {
                    self.domain[ix as usize] = domain;
                    return Some(frame.step + 1);
                }
                (Step::Members(batch), Choice::Node(node, devices)) => {
                    if devices.slices().next().is_some() {
                        self.steps += STEPS_OF_PARTS;
                    }
                    self.put_with(cluster, request, batch, node, devices);
                    if self.spread_can_hold(cluster, request, batch, node) {
                        return Some(frame.step);
                    }
                }
                (Step::Members(_), Choice::Stop) => return Some(frame.step + 1),
                (Step::Open(ix), Choice::Skip) => {
                    let rest = &self.exhaust.steps[frame.step as usize..];
                    let closes = |step: &Step| matches!(step, Step::Close(other) if *other == ix);
                    let distance = rest.iter().position(closes).unwrap_or(0);
                    return Some(frame.step + distance as u32);
                }
                _ => {}
            }
            if self.steps > request.budget {
                return Some(frame.step);
            }
        }
    }

    fn spread_can_hold(
        &mut self,
        cluster: &Cluster,
        request: &Request<'_>,
        batch: u32,
        node: NodeIx,
    ) -> bool {
        let template = request.batches[batch as usize].template;
        if cluster.template(template).spread.is_empty() {
            return true;
        }
        let total: u32 = request.batches.iter().map(|batch| batch.count).sum();
        let more = total.saturating_sub(self.placed.len() as u32);
        relate::spread_may_hold(&mut self.relate, cluster, template, node, more)
    }

    fn close_frame(&mut self, request: &Request<'_>, frame: Frame, step: Step) {
        let scratch = &mut self.exhaust;
        while scratch.exclusions.len() > frame.excluded as usize {
            if let Some((node, before)) = scratch.exclusions.pop() {
                scratch.excluded[node.0 as usize] = before;
            }
        }
        if let Some(key) = frame.key.filter(|_| scratch.dead.len() < MOST_DEAD) {
            scratch.dead.insert(key);
        }
        scratch.barred.truncate(frame.barred as usize);
        scratch.choices.truncate(frame.first as usize);
        scratch.frames.pop();
        if let Step::Open(ix) = step {
            self.domain[ix as usize] = request.pinned[ix as usize];
        }
    }

    /// Bars every node that is interchangeable with one that failed, for the rest of the branch.
    fn exclude_alike(
        &mut self,
        cluster: &mut Cluster,
        request: &Request<'_>,
        batch: u32,
        failed: NodeIx,
    ) {
        let leaf = request.batches[batch as usize].leaf;
        let signature = self.signature(cluster, failed);
        let len = self.scope(cluster, request, leaf).len();
        self.steps += len as u64 / 32;
        for index in 0..len {
            let node = self.scope(cluster, request, leaf).get(index);
            if self.signature(cluster, node) == signature {
                let before = core::mem::replace(&mut self.exhaust.excluded[node.0 as usize], batch);
                self.exhaust.exclusions.push((node, before));
            }
        }
    }
}

/// Lists the steps of a sub-tree: hardest batches first within a leaf, leaves in tree order.
fn list_steps(steps: &mut Vec<Step>, cluster: &Cluster, request: &Request<'_>, ix: u32) {
    let node = &request.tree.nodes[ix as usize];
    if node.required.is_some() && request.pinned[ix as usize] == NO_DOMAIN {
        steps.push(Step::Open(ix));
    }
    match node.kind {
        TreeKind::Leaf { .. } => {
            let start = steps.len();
            for (batch, wanted) in request.batches.iter().enumerate() {
                if wanted.leaf == ix {
                    steps.push(Step::Members(batch as u32));
                }
            }
            steps[start..].sort_unstable_by_key(|step| match step {
                Step::Members(batch) => {
                    let size = size(cluster, request.batches[*batch as usize].template);
                    (core::cmp::Reverse(size), *batch)
                }
                _ => (core::cmp::Reverse((0, 0, 0)), 0),
            });
        }
        TreeKind::Inner(_) => {
            for child in request.tree.children(ix) {
                list_steps(steps, cluster, request, child);
            }
        }
    }
    steps.push(Step::Close(ix));
}
