//! What is missing when no placement exists: how much of what, and how each domain fares.
//!
//! Counts and searches on the explainer's own copy; every trial is taken back.

use alloc::{string::ToString, vec::Vec};
use core::cmp::Reverse;

use super::{DomainAttempt, Explainer, Reason, Shortfall};
use crate::{
    cluster::{
        NodeIx,
        domain::{KeyIx, NODE_KEY},
    },
    device::Measure,
    engine::{GangId, cycle::Members},
    place::{Outcome, Request, bound, tree::TreeKind},
};

/// In more domains than this unlike members are only counted.
const UNLIKE_DOMAINS: usize = 256;

impl Explainer {
    /// The gang's reason when no placement exists.
    pub(super) fn no_room(
        &mut self,
        id: GangId,
        members: &Members,
        domains: &mut Vec<DomainAttempt>,
    ) -> Reason {
        let Some(tree) = self.engine.gangs.get(id.0).map(|gang| gang.tree.clone()) else {
            return Reason::NotTried;
        };
        let unknown = tree
            .nodes
            .iter()
            .filter_map(|node| node.required)
            .find(|&key| {
                let partition = self.engine.cluster.partition(key);
                key != NODE_KEY
                    && partition
                        .domains
                        .iter()
                        .all(|domain| domain.nodes.is_empty())
            });
        if let Some(key) = unknown {
            return Reason::UnknownLevel {
                level: self.engine.cluster.key_name(key).to_string(),
            };
        }
        let have: u32 = members.have.iter().sum();
        let waiting: u32 = members.batches.iter().map(|batch| batch.count).sum();
        let fewest = tree.fewest(0).saturating_sub(have).clamp(1, waiting.max(1));
        // The level that binds: the outermost required one.
        let level = tree.nodes.iter().find_map(|node| node.required);
        if let Some(key) = level {
            *domains = self.attempts(id, members, key, fewest);
        }
        let binding = self.binding_batch(id, members);
        let causes = self.causes(id, members, binding);
        let wanted = self.needed_of(id, members, binding, fewest);
        let shortfall = self.shortfall(id, members, binding, wanted, fewest);
        Reason::DoesNotFit {
            members: fewest,
            nodes: self.engine.cluster.ordered().len() as u32,
            shortfall,
            causes,
            level: level.map(|key| self.engine.cluster.key_name(key).to_string()),
            best_domain: domains.first().cloned(),
        }
    }

    pub(super) fn with_request<T>(
        &mut self,
        id: GangId,
        members: &Members,
        started: bool,
        ask: impl FnOnce(&mut Self, &Request<'_>) -> T,
    ) -> Option<T> {
        let tree = self.engine.gangs.get(id.0)?.tree.clone();
        let (rule, _) = self.engine.manner(id);
        let request = members.request(&tree, rule, started, self.engine.config.search_steps);
        Some(ask(self, &request))
    }

    /// How many members of each batch fit, each batch counted alone.
    pub(super) fn capacities(&mut self, id: GangId, members: &Members) -> Vec<u32> {
        self.with_request(id, members, false, |explainer, request| {
            let engine = &mut explainer.engine;
            (0..request.batches.len() as u32)
                .map(|batch| {
                    engine.search.prepare_for_bounds(request);
                    bound::capacity(&mut engine.search, &mut engine.cluster, request, batch)
                })
                .collect()
        })
        .unwrap_or_default()
    }

    /// The batch with the smallest share of its members that fit alone; the first among equals.
    pub(super) fn binding_batch(&mut self, id: GangId, members: &Members) -> usize {
        let capacities = self.capacities(id, members);
        let share = |ix: usize| {
            let count = u64::from(members.batches[ix].count.max(1));
            u64::from(capacities[ix].min(members.batches[ix].count)) * 1_000_000 / count
        };
        (0..capacities.len())
            .min_by_key(|&ix| share(ix))
            .unwrap_or(0)
    }

    /// How many members of a batch must start.
    pub(super) fn needed_of(
        &self,
        id: GangId,
        members: &Members,
        batch: usize,
        fewest: u32,
    ) -> u32 {
        let count = members.batches[batch].count;
        if members.batches.len() == 1 {
            return fewest.min(count);
        }
        let leaf = members.batches[batch].leaf;
        let alone = members
            .batches
            .iter()
            .filter(|batch| batch.leaf == leaf)
            .count()
            == 1;
        let min = self.engine.gangs.get(id.0).map_or(0, |gang| {
            match gang.tree.nodes[leaf as usize].kind {
                TreeKind::Leaf { min, .. } => min,
                TreeKind::Inner(_) => 0,
            }
        });
        let missing = min.saturating_sub(members.have[leaf as usize]);
        if alone && missing > 0 {
            missing.min(count)
        } else {
            count.min(fewest)
        }
    }

    /// The resource of a batch that runs out first, if one does; otherwise how many members fit.
    pub(super) fn shortfall(
        &mut self,
        id: GangId,
        members: &Members,
        batch: usize,
        wanted: u32,
        fewest: u32,
    ) -> Option<Shortfall> {
        let template = members.batches[batch].template;
        let usable = self.usable_nodes(template);
        if usable.is_empty() {
            // It is not room that is missing: the causes say why no node may be used.
            return None;
        }
        let cluster = &self.engine.cluster;
        let compiled = cluster.template(template);
        // Of two that run out alike, what no node would have if it were empty: waiting does not help.
        let mut tightest: Option<((u64, bool), Shortfall)> = None;
        let mut note = |fits: u64, is_large: bool, shortfall: Shortfall| {
            let key = (fits, !is_large);
            if fits < u64::from(wanted) && tightest.as_ref().is_none_or(|(best, _)| key < *best) {
                tightest = Some((key, shortfall));
            }
        };
        if let Some(ask) = compiled.cards.as_ref().filter(|ask| ask.whole() == 0) {
            let mut fits = 0_u64;
            // By what runs out first: memory here, processor time there.
            let mut sums: Vec<(u32, Measure)> = Vec::new();
            // A share group stays on one card: only the node that comes closest counts.
            let closest = usable.iter().copied().max_by_key(|&node| {
                let cards = &cluster.node(node).cards;
                (cards.capacity(ask), cards.measure(ask).free, Reverse(node))
            });
            let measured = match ask.group {
                Some(_) => closest.into_iter().collect(),
                None => usable.clone(),
            };
            for &node in &measured {
                let cards = &cluster.node(node).cards;
                let here = cards.measure(ask);
                fits += u64::from(cards.capacity(ask));
                match sums
                    .iter_mut()
                    .find(|(_, sum)| sum.resource == here.resource)
                {
                    Some((nodes, sum)) => {
                        *nodes += 1;
                        sum.usable += here.usable;
                        sum.free += here.free;
                        sum.one = sum.one.max(here.one);
                    }
                    None => sums.push((1, here)),
                }
            }
            sums.retain(|(_, sum)| sum.one > 0);
            // What most nodes are short of; the first of several.
            if let Some((_, sum)) = sums.into_iter().rev().max_by_key(|(nodes, _)| *nodes) {
                note(fits, false, sum.shortfall(wanted));
            }
        }
        if let Some(ask) = compiled.cards.as_ref().filter(|ask| ask.whole() > 0) {
            let fits: u64 = usable
                .iter()
                .map(|&n| u64::from(cluster.node(n).cards.capacity(ask)))
                .sum();
            let scattered: u64 = usable
                .iter()
                .map(|&n| u64::from(cluster.node(n).cards.free(ask.kind)))
                .sum();
            note(
                fits,
                false,
                Shortfall {
                    resource: cluster.kind_name(ask.kind).to_string(),
                    needed: i64::from(wanted) * i64::from(ask.whole()),
                    free: (fits * u64::from(ask.whole())) as i64,
                    scattered: scattered as i64,
                },
            );
        }
        for &(resource, amount) in &compiled.amounts {
            let free = |node: NodeIx| {
                cluster
                    .free_of(node)
                    .get(usize::from(resource))
                    .copied()
                    .unwrap_or(0)
                    .max(0)
            };
            let fits: u64 = usable.iter().fold(0_u64, |sum, &node| {
                sum.saturating_add((free(node) / amount) as u64)
            });
            let scattered = usable
                .iter()
                .fold(0_i64, |sum, &node| sum.saturating_add(free(node)));
            let is_enough = |&node: &NodeIx| cluster.allocatable(node, resource) >= amount;
            note(
                fits,
                !usable.iter().any(is_enough),
                Shortfall {
                    resource: cluster.resource_name(resource).to_string(),
                    needed: i64::from(wanted).saturating_mul(amount),
                    free: i64::try_from(fits)
                        .unwrap_or(i64::MAX)
                        .saturating_mul(amount),
                    scattered,
                },
            );
        }
        if let Some((_, shortfall)) = tightest {
            return Some(shortfall);
        }
        let placed = self.partial(id, members).len() as i64;
        (placed < i64::from(fewest)).then(|| Shortfall {
            resource: "members".into(),
            needed: i64::from(fewest),
            free: placed,
            scattered: placed,
        })
    }

    /// As many members as fit when the minima do not bind: (batch, node) in order of placing.
    pub(super) fn partial(&mut self, id: GangId, members: &Members) -> Vec<(u32, NodeIx)> {
        let placed = self.with_request(id, members, true, |explainer, request| {
            let engine = &mut explainer.engine;
            let mark = engine.cluster.begin();
            let outcome = engine.search.run(&mut engine.cluster, request);
            engine.cluster.undo_to(mark);
            engine.cluster.commit();
            let found = outcome == Outcome::Found;
            let placed = if found {
                engine.search.placed.as_slice()
            } else {
                &[]
            };
            placed
                .iter()
                .map(|placed| (placed.batch, placed.node))
                .collect()
        });
        placed.unwrap_or_default()
    }

    /// How each domain of a level fares, best first.
    pub(super) fn attempts(
        &mut self,
        id: GangId,
        members: &Members,
        key: KeyIx,
        fewest: u32,
    ) -> Vec<DomainAttempt> {
        let cluster = &self.engine.cluster;
        let domains: Vec<u32> = cluster
            .domains_of(key)
            .filter(|&domain| cluster.has_nodes(key, domain))
            .collect();
        let kind = members
            .batches
            .iter()
            .find_map(|b| cluster.template(b.template).cards.as_ref());
        let kind = kind.map(|ask| ask.kind);
        let holder = self.engine.gangs.get(id.0).and_then(|gang| {
            gang.tree
                .nodes
                .iter()
                .position(|node| node.required == Some(key))
        });
        let Some(holder) = holder else {
            return Vec::new();
        };
        // Unlike members share a domain's room: those are placed for trial instead of counted.
        let unlike = members.batches.len() > 1 && domains.len() <= UNLIKE_DOMAINS;
        let mut trials: Vec<u32> = Vec::new();
        if unlike {
            let mut trial = members.clone();
            for &domain in &domains {
                trial.pinned[holder] = domain;
                trials.push(self.partial(id, &trial).len() as u32);
            }
        }
        let attempts = self.with_request(id, members, false, |explainer, request| {
            let engine = &mut explainer.engine;
            let mut attempts = Vec::new();
            for (index, &domain) in domains.iter().enumerate() {
                engine.search.prepare_for_bounds(request);
                engine.search.fix_domain(holder as u32, domain);
                let mut fits = 0_u32;
                for (batch, wanted) in request.batches.iter().enumerate() {
                    if request.tree.subtree(holder as u32).contains(&wanted.leaf) {
                        let capacity = bound::capacity(
                            &mut engine.search,
                            &mut engine.cluster,
                            request,
                            batch as u32,
                        );
                        fits = fits.saturating_add(capacity.min(wanted.count));
                    }
                }
                if let Some(&placed) = trials.get(index) {
                    fits = fits.min(placed);
                }
                let free_cards = kind.map_or(0, |kind| match key {
                    NODE_KEY => engine.cluster.node(NodeIx(domain)).cards.free(kind),
                    _ => engine.cluster.partition(key).domains[domain as usize].free_cards(kind),
                });
                attempts.push(DomainAttempt {
                    level: engine.cluster.key_name(key).to_string(),
                    domain: engine.cluster.domain_name(key, domain).to_string(),
                    fits,
                    needed: fewest,
                    free_cards,
                });
            }
            attempts
        });
        let mut attempts = attempts.unwrap_or_default();
        attempts.sort_by(|a, b| {
            (b.fits, b.free_cards)
                .cmp(&(a.fits, a.free_cards))
                .then_with(|| crate::cluster::natural(&a.domain, &b.domain))
        });
        attempts
    }
}
