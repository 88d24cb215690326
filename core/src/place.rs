//! The search: where every member of a gang goes, all judged against one state.
//!
//! Data enters as a [`Request`] and the cluster; a found plan is left *charged* to the cluster,
//! noted in its journal, so that the caller keeps or undoes it in one step. Four stages, each only
//! entered when the one before has no answer:
//!
//! 1. [`greedy`]: fill classes in price order, smallest sufficient domain first. Finds nearly every
//!    plan that exists, in time proportional to members and distinct states.
//! 2. [`bound`]: proofs that no plan exists, by counting; parts of cards by [`lots`], which knows what
//!    each card can give at once ([`cover`]).
//! 3. The first stage again, with members that want one part of a card placed by what [`cover`] proposes
//!    for all of them together.
//! 4. [`exhaust`]: depth-first over (sub-group, domain, member) with exact undo and symmetry
//!    breaking, under a budget of steps. Its "infeasible" is a proof, its "undecided" says so.
//!
//! Nothing here knows pods, queues or time. "Can this node give this, and what is left" is asked of
//! the device layer, never counted here.

use alloc::vec::Vec;

use crate::{
    cluster::{
        Cluster, NodeIx,
        domain::{KeyIx, NO_DOMAIN},
        shape::{StaticFit, static_fit},
        template::TemplateIx,
    },
    device::Devices,
    explain::Cause,
    gang::ScoringRule,
};

pub(crate) mod bound;
mod cover;
mod exhaust;
mod greedy;
mod lots;
mod rates;
pub(crate) mod relate;
pub(crate) mod score;
pub(crate) mod tree;
pub(crate) mod worth;

use rates::{Rate, Tables};
use tree::Tree;

/// Members that are alike in every respect: same leaf, same template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) leaf: u32,
    pub(crate) template: TemplateIx,
    pub(crate) count: u32,
}

/// What to place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) batches: &'a [Batch],
    /// By tree node: members of a leaf that already run, are held, or ended well.
    pub(crate) have: &'a [u32],
    /// By tree node: the domain of its required level that members already there fix.
    pub(crate) pinned: &'a [u32],
    pub(crate) rule: ScoringRule,
    /// Its minima were met once and bind no more: members are placed one by one.
    pub(crate) started: bool,
    /// Nodes that may not be used, by index; empty: none.
    pub(crate) forbidden: &'a [bool],
    /// Steps before "undecided".
    pub(crate) budget: u64,
}

/// The search's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The plan is charged to the cluster and listed in [`Search::placed`].
    Found,
    /// There is none.
    Infeasible,
    /// The budget ran out.
    Undecided,
}

/// One placed member of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) batch: u32,
    pub(crate) node: NodeIx,
    pub(crate) devices: Devices,
}

/// The search with its scratch memory, which is kept between searches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    /// Members placed so far, in order.
    pub(crate) placed: Vec<Placed>,
    /// By batch: members placed.
    placed_of: Vec<u32>,
    /// By tree node: the domain of its required level, once one is fixed.
    domain: Vec<u32>,
    /// By tree node: a domain that a preferred level narrows to for now.
    narrowed: Vec<Option<(KeyIx, u32)>>,
    rates: Tables,
    pub(crate) worth: worth::Worth,
    greedy: greedy::Scratch,
    bound: bound::Scratch,
    exhaust: exhaust::Scratch,
    relate: relate::Scratch,
    /// Steps taken by the latest search.
    pub(crate) steps: u64,
}

impl Search {
    /// Places all members if it can, otherwise as many as the minima demand and then more while
    /// there is room. A found plan stays charged under the mark that the caller made with
    /// [`Cluster::begin`]; otherwise the cluster is as before.
    pub(crate) fn run(&mut self, cluster: &mut Cluster, request: &Request<'_>) -> Outcome {
        self.reset(request);
        cluster.settle_order();
        let mark = cluster.begin();
        if self.greedy_all(cluster, request) && self.is_valid(cluster, request) {
            return Outcome::Found;
        }
        self.retract(cluster, mark, 0);
        self.unfix(request, request.tree.subtree(0));
        // Members that run already may meet every minimum: the rest is surplus.
        let whole = || {
            request
                .tree
                .is_whole(0, &|leaf| request.have[leaf as usize])
        };
        let outcome = if request.started || whole() {
            Outcome::Found
        } else if bound::refutes(self, cluster, request) {
            // Counting costs one look at each node, an attempt that fails many placements.
            Outcome::Infeasible
        } else if self.try_packed(cluster, request, mark)
            || self.try_minimum(cluster, request, mark)
        {
            Outcome::Found
        } else {
            self.exhaust(cluster, request)
        };
        if outcome == Outcome::Found {
            self.extend(cluster, request);
            if self.placed.is_empty() {
                return Outcome::Infeasible;
            }
        }
        outcome
    }

    /// Brings a found plan into the order in which members take their places: by batch, then along
    /// the topology, then along the links of a node's cards, from the lowest card on.
    pub(crate) fn sort_placed(&mut self, cluster: &Cluster) {
        self.placed.sort_unstable_by_key(|place| {
            (place.batch, cluster.node(place.node).rank, place.devices)
        });
        let together = |a: &Placed, b: &Placed| (a.batch, a.node) == (b.batch, b.node);
        for places in self.placed.chunk_by_mut(together) {
            let cards = &cluster.node(places[0].node).cards;
            for at in 1..places.len() {
                let last = places[at - 1].devices;
                // Only later ones that are joined better go first: ties stay by card.
                let rest = at..places.len();
                let best = rest.max_by_key(|&other| {
                    let joined = cards.pair_worth(&last, &places[other].devices);
                    (joined, core::cmp::Reverse(other))
                });
                places[at..=best.unwrap_or(at)].rotate_right(1);
            }
        }
    }

    /// Takes new prices: every answer that rests on the old ones is forgotten.
    pub(crate) fn set_prices(&mut self, list: Option<alloc::sync::Arc<worth::PriceList>>) {
        self.worth.set(list);
        self.rates.forget();
    }

    /// Readies the scratch for counting with [`bound`] outside a search.
    pub(crate) fn prepare_for_bounds(&mut self, request: &Request<'_>) {
        self.reset(request);
        self.relate.forget();
    }

    /// The node that one member by itself gets, if its rules say nothing about single nodes or other
    /// pods: by classes alone. Node order must be settled.
    pub(crate) fn cheapest(
        &mut self,
        cluster: &mut Cluster,
        template: TemplateIx,
        rule: ScoringRule,
    ) -> Option<NodeIx> {
        self.rates
            .of(template, rule)
            .cheapest(cluster, &mut self.worth)
    }

    /// Counts as if a tree node's domain were this one.
    pub(crate) fn fix_domain(&mut self, ix: u32, domain: u32) {
        self.domain[ix as usize] = domain;
    }

    /// Whether every spread rule of a member would hold right after placing it on the node.
    pub(crate) fn spread_allows(
        &mut self,
        cluster: &Cluster,
        template: TemplateIx,
        node: NodeIx,
    ) -> bool {
        relate::spread_allows(&mut self.relate, cluster, template, node)
    }

    fn try_packed(&mut self, cluster: &mut Cluster, request: &Request<'_>, mark: usize) -> bool {
        if self.greedy_packed(cluster, request) && self.is_valid(cluster, request) {
            return true;
        }
        self.retract(cluster, mark, 0);
        self.unfix(request, request.tree.subtree(0));
        false
    }

    fn try_minimum(&mut self, cluster: &mut Cluster, request: &Request<'_>, mark: usize) -> bool {
        if self.greedy_minimum(cluster, request) && self.is_valid(cluster, request) {
            return true;
        }
        self.retract(cluster, mark, 0);
        self.unfix(request, request.tree.subtree(0));
        false
    }

    fn reset(&mut self, request: &Request<'_>) {
        self.placed.clear();
        self.placed_of.clear();
        self.placed_of.resize(request.batches.len(), 0);
        self.domain.clear();
        self.domain.extend_from_slice(request.pinned);
        self.narrowed.clear();
        self.narrowed.resize(request.tree.nodes.len(), None);
        self.rates.assign(request.batches, request.rule);
        self.steps = 0;
    }

    /// Members of a leaf that count now: there before, and placed by this search.
    fn counted(&self, request: &Request<'_>, leaf: u32) -> u32 {
        let placed = request.batches.iter().zip(&self.placed_of);
        let placed = placed
            .filter(|(batch, _)| batch.leaf == leaf)
            .map(|(_, &placed)| placed);
        request.have[leaf as usize].saturating_add(placed.sum())
    }

    /// Takes back placements beyond the first `keep` and every charge since the mark.
    fn retract(&mut self, cluster: &mut Cluster, mark: usize, keep: usize) {
        cluster.undo_to(mark);
        for placed in self.placed.drain(keep..) {
            self.placed_of[placed.batch as usize] -= 1;
        }
    }

    /// Forgets the domains that an attempt fixed for these tree nodes.
    fn unfix(&mut self, request: &Request<'_>, nodes: core::ops::Range<u32>) {
        for ix in nodes {
            self.domain[ix as usize] = request.pinned[ix as usize];
            self.narrowed[ix as usize] = None;
        }
    }

    /// Charges one member of a batch to a node that can take it; false if it cannot after all.
    fn put(
        &mut self,
        cluster: &mut Cluster,
        request: &Request<'_>,
        batch: u32,
        node: NodeIx,
    ) -> bool {
        let template = request.batches[batch as usize].template;
        let compiled = cluster.template(template);
        let devices = match &compiled.cards {
            None => Devices::NONE,
            Some(ask) => {
                let rule = request.rule;
                match worth::choose(&mut self.worth, rule, cluster, compiled, ask, node) {
                    Some(devices) => devices,
                    None => return false,
                }
            }
        };
        self.put_with(cluster, request, batch, node, devices);
        true
    }

    /// Charges one member of a batch with these devices, which are free, to a node.
    fn put_with(
        &mut self,
        cluster: &mut Cluster,
        request: &Request<'_>,
        batch: u32,
        node: NodeIx,
        devices: Devices,
    ) {
        let template = request.batches[batch as usize].template;
        cluster.charge(node, template, &devices);
        self.placed.push(Placed {
            batch,
            node,
            devices,
        });
        self.placed_of[batch as usize] += 1;
    }

    /// Capacity and price of one node for a batch; capacity 0 when it cannot take a member now.
    /// `strict`: required affinity must hold now (it may come to hold later).
    fn rate_node(
        &mut self,
        cluster: &mut Cluster,
        request: &Request<'_>,
        batch: u32,
        node: NodeIx,
        strict: bool,
    ) -> Rate {
        let Some(class) = cluster.node(node).class else {
            return Rate::default();
        };
        let template = request.batches[batch as usize].template;
        let table = self.rates.of_batch(batch);
        // Which of its cards are free is more than a class knows.
        let mut rate = if cluster.template(template).names_cards().is_some() {
            table.rate_node(cluster, &mut self.worth, (node, class))
        } else {
            table.rate(cluster, &mut self.worth, class)
        };
        if rate.capacity == 0 {
            return rate;
        }
        if cluster.template(template).needs_node_check() {
            match check_node(cluster, template, node, strict) {
                Ok(preference) => {
                    rate.price = rate.price.saturating_sub(score::liked(preference.into()));
                }
                Err(_) => return Rate::default(),
            }
            if strict && !relate::spread_allows(&mut self.relate, cluster, template, node) {
                return Rate::default();
            }
        }
        let wishes = relate::wishes(cluster, template, node);
        rate.price = rate.price.saturating_sub(score::liked(wishes));
        rate
    }

    /// Whether a node lies in every domain that is fixed for a leaf, and may be used at all.
    fn in_scope(&self, cluster: &Cluster, request: &Request<'_>, leaf: u32, node: NodeIx) -> bool {
        if request
            .forbidden
            .get(node.0 as usize)
            .copied()
            .unwrap_or(false)
        {
            return false;
        }
        request.tree.upward(leaf).all(|ix| {
            let required = request.tree.nodes[ix as usize].required;
            let held = required.is_none_or(|key| {
                let domain = cluster.domain_of(key, node);
                let fixed = self.domain[ix as usize];
                domain != NO_DOMAIN && (fixed == NO_DOMAIN || fixed == domain)
            });
            let narrowed = self.narrowed[ix as usize];
            held && narrowed.is_none_or(|(key, domain)| cluster.domain_of(key, node) == domain)
        })
    }

    /// The shortest list of nodes that holds every node in a leaf's scope.
    fn scope<'c>(&self, cluster: &'c Cluster, request: &Request<'_>, leaf: u32) -> Scope<'c> {
        let mut best = Scope::Nodes(cluster.ordered());
        for ix in request.tree.upward(leaf) {
            let fixed = (
                request.tree.nodes[ix as usize].required,
                self.domain[ix as usize],
            );
            let fixed = match fixed {
                (Some(key), domain) if domain != NO_DOMAIN => Some((key, domain)),
                _ => None,
            };
            for (key, domain) in [fixed, self.narrowed[ix as usize]].into_iter().flatten() {
                let scope = Scope::of(cluster, key, domain);
                if scope.len() < best.len() {
                    best = scope;
                }
            }
        }
        best
    }

    /// Judges a finished plan by the rules that only hold for the whole: required affinity (some
    /// order of placing satisfies it), spread, and the minima.
    fn is_valid(&mut self, cluster: &mut Cluster, request: &Request<'_>) -> bool {
        (request.started
            || request
                .tree
                .is_whole(0, &|leaf| self.counted(request, leaf)))
            && relate::plan_holds(&mut self.relate, cluster, request.batches, &self.placed)
    }
}

/// Nodes to look at.
#[derive(Clone, Copy, Debug)]
enum Scope<'c> {
    Nodes(&'c [NodeIx]),
    One(NodeIx),
}

impl<'c> Scope<'c> {
    /// The nodes of one domain.
    fn of(cluster: &'c Cluster, key: KeyIx, domain: u32) -> Self {
        if key == crate::cluster::domain::NODE_KEY {
            return Scope::One(NodeIx(domain));
        }
        let domains = &cluster.partition(key).domains;
        Scope::Nodes(
            domains
                .get(domain as usize)
                .map_or(&[], |domain| &domain.nodes),
        )
    }

    fn len(&self) -> usize {
        match self {
            Scope::Nodes(nodes) => nodes.len(),
            Scope::One(_) => 1,
        }
    }

    fn get(&self, index: usize) -> NodeIx {
        match self {
            Scope::Nodes(nodes) => nodes[index],
            Scope::One(node) => *node,
        }
    }
}

/// What a class cannot know about a node: its name, ports and neighbours. Returns what the member
/// likes about the node's name, or why it cannot go there.
pub(crate) fn check_node(
    cluster: &Cluster,
    template: TemplateIx,
    node: NodeIx,
    strict: bool,
) -> Result<i32, Cause> {
    let compiled = cluster.template(template);
    let state = cluster.node(node);
    let mut liked = 0;
    if compiled.names_nodes {
        let Some(spec) = &state.spec else {
            return Err(Cause::NodeSelector);
        };
        let fit = static_fit(
            compiled,
            spec.unschedulable,
            &spec.taints,
            cluster.node_name(node),
            &spec.labels,
        );
        match fit {
            StaticFit::Fits { preference } => liked = preference,
            StaticFit::Fails(cause) => return Err(cause),
        }
    }
    let wanted = &compiled.source.host_ports;
    if wanted
        .iter()
        .any(|port| state.ports.iter().any(|held| held.conflicts_with(port)))
    {
        return Err(Cause::HostPort);
    }
    relate::check(cluster, template, node, strict)?;
    Ok(liked)
}
