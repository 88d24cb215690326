//! Stage 2: proofs that no plan exists, by counting.
//!
//! Each bound relaxes the problem (one batch at a time, or one resource at a time), so what it
//! refutes is truly impossible. For a single batch of members that share no rule with each other,
//! or only "one a node", the count is exact. Members that must be near each other count in the best
//! domain alone.

use alloc::vec::Vec;

use super::{Request, Search, lots};
use crate::{
    cluster::{
        Cluster, NodeIx,
        domain::{KeyIx, NO_DOMAIN, NODE_KEY},
        relation::TermIx,
    },
    device::CardAsk,
};

/// Steps to try what cards can give together.
const MOST_STEPS: u64 = 10_000;

/// Memory that is kept between searches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    /// By domain: has a member that bars others.
    seen: Vec<bool>,
    /// By domain: members that fit there.
    together: Vec<u32>,
    /// Nodes that some member could use.
    usable: Vec<NodeIx>,
}

/// A required affinity that only running pods and its own carriers can meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Near {
    /// Pods that match run: only their domains will do.
    Matches(TermIx),
    /// None runs: whoever is first decides the domain of all.
    OneDomain(KeyIx),
    /// None runs, and none of its carriers matches.
    Nowhere,
}

/// The first affinity of a batch that no member can meet but those that carry it themselves.
fn near(cluster: &Cluster, request: &Request<'_>, batch: u32) -> Option<Near> {
    let compiled = cluster.template(request.batches[batch as usize].template);
    let term = *compiled.affinity.iter().find(|term| {
        let mut others = request
            .batches
            .iter()
            .map(|batch| cluster.template(batch.template));
        others.all(|other| other.affinity.contains(term) || !other.counted_by.contains(term))
    })?;
    Some(if cluster.term(term).total > 0 {
        Near::Matches(term)
    } else if request
        .batches
        .iter()
        .any(|batch| cluster.template(batch.template).counted_by.contains(&term))
    {
        Near::OneDomain(cluster.term(term).identity.key)
    } else {
        Near::Nowhere
    })
}

/// Whether counting alone proves that the minima cannot be met.
pub(super) fn refutes(search: &mut Search, cluster: &mut Cluster, request: &Request<'_>) -> bool {
    if more_than_exist(request) {
        return true;
    }
    let root = &request.tree.nodes[0];
    match root.required.filter(|_| search.domain[0] == NO_DOMAIN) {
        None => !could_hold(search, cluster, request, 0),
        Some(key) => {
            let refuted = cluster.domains_of(key).all(|domain| {
                search.domain[0] = domain;
                !could_hold(search, cluster, request, 0)
            });
            search.domain[0] = NO_DOMAIN;
            refuted
        }
    }
}

/// Whether the minima ask for more members than there are.
fn more_than_exist(request: &Request<'_>) -> bool {
    !request
        .tree
        .standing(0, &|leaf| available(request, leaf))
        .met
}

/// Members of a leaf that run or could be placed.
fn available(request: &Request<'_>, leaf: u32) -> u32 {
    let waiting = request.batches.iter().filter(|batch| batch.leaf == leaf);
    request.have[leaf as usize].saturating_add(waiting.map(|batch| batch.count).sum())
}

/// Whether a sub-tree's minimum could be met with its domains as they are fixed now: false is a
/// proof that it cannot.
pub(super) fn could_hold(
    search: &mut Search,
    cluster: &mut Cluster,
    request: &Request<'_>,
    ix: u32,
) -> bool {
    // Each batch alone: an upper limit on members of each leaf.
    let mut most: smallvec::SmallVec<[u32; 16]> = request.have.into();
    let mut all = true;
    for batch in 0..request.batches.len() as u32 {
        let wanted = request.batches[batch as usize];
        if request.tree.subtree(ix).contains(&wanted.leaf) {
            let capacity = capacity(search, cluster, request, batch).min(wanted.count);
            all &= capacity == wanted.count;
            let leaf = &mut most[wanted.leaf as usize];
            *leaf = leaf.saturating_add(capacity);
        }
    }
    if !request.tree.standing(ix, &|leaf| most[leaf as usize]).met {
        return false;
    }
    // When every member is needed, all of them must fit together, resource by resource.
    let needs_all = ix == 0 && all && needs_every_member(request);
    (!needs_all || fits_by_sums(search, cluster, request))
        && (ix != 0 || parts_may_fit(search, cluster, request))
}

/// Whether the parts of cards that the gang cannot do without may fit, all together.
fn parts_may_fit(search: &mut Search, cluster: &mut Cluster, request: &Request<'_>) -> bool {
    let asks_parts = |batch: &super::Batch| {
        let ask = cluster.template(batch.template).cards.as_ref();
        ask.is_some_and(|ask| ask.whole() == 0)
    };
    if !request.batches.iter().any(asks_parts) {
        return true;
    }
    let batches = 0..request.batches.len();
    let members: Vec<u32> = batches.map(|batch| needed(request, batch)).collect();
    let Some(open) = lots::open_nodes(search, cluster, request, &members) else {
        return true;
    };
    let wants = lots::Wants::new(cluster, request, &members);
    let mut lots = lots::Lots::new(cluster, &wants, &open, false);
    let fits = lots.may_fit(&wants, MOST_STEPS);
    search.steps += lots.cover.steps;
    fits
}

/// The fewest members of a batch that every plan has, since all the others cannot make up for them.
fn needed(request: &Request<'_>, batch: usize) -> u32 {
    let wanted = request.batches[batch];
    let (mut low, mut high) = (0, wanted.count);
    while low < high {
        let middle = low + (high - low) / 2;
        let left_out = wanted.count - middle;
        let with = |leaf| available(request, leaf) - if leaf == wanted.leaf { left_out } else { 0 };
        if request.tree.standing(0, &with).met {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    high
}

/// Whether leaving out any member breaks the minimum.
pub(super) fn needs_every_member(request: &Request<'_>) -> bool {
    request.batches.iter().all(|batch| {
        let without = |leaf| available(request, leaf) - u32::from(leaf == batch.leaf);
        batch.count == 0 || !request.tree.standing(0, &without).met
    })
}

/// At most this many members of a batch fit, counted alone and apart from rules between roles.
pub(crate) fn capacity(
    search: &mut Search,
    cluster: &mut Cluster,
    request: &Request<'_>,
    batch: u32,
) -> u32 {
    let wanted = request.batches[batch as usize];
    let compiled = cluster.template(wanted.template);
    let counts_itself = |term: &_| compiled.counted_by.contains(term);
    let apart: Option<KeyIx> = compiled
        .anti_affinity
        .iter()
        .filter(|term| counts_itself(term))
        .map(|&term| cluster.term(term).identity.key)
        .max();
    let one_a_node = !compiled.source.host_ports.is_empty()
        || compiled
            .anti_affinity
            .iter()
            .any(|term| counts_itself(term) && cluster.term(*term).identity.key == NODE_KEY);
    let near = near(cluster, request, batch);
    if near == Some(Near::Nowhere) {
        return 0;
    }
    let mut total = 0_u32;
    let mut seen = core::mem::take(&mut search.bound.seen);
    let mut together = core::mem::take(&mut search.bound.together);
    seen.clear();
    together.clear();
    for index in 0..search.scope(cluster, request, wanted.leaf).len() {
        let node = search.scope(cluster, request, wanted.leaf).get(index);
        if !search.in_scope(cluster, request, wanted.leaf, node) {
            continue;
        }
        let mut fits = search
            .rate_node(cluster, request, batch, node, false)
            .capacity;
        if one_a_node {
            fits = fits.min(1);
        }
        // Before the next rule, which picks one node of a domain: it might pick one that is not near.
        match near {
            Some(Near::Matches(term)) => {
                let term = cluster.term(term);
                let domain = cluster.domain_of(term.identity.key, node);
                if domain == NO_DOMAIN || term.matching_in(domain) == 0 {
                    continue;
                }
            }
            Some(Near::OneDomain(key)) if fits > 0 => {
                let domain = cluster.domain_of(key, node) as usize;
                if domain == NO_DOMAIN as usize {
                    continue;
                }
                if together.len() <= domain {
                    together.resize(domain + 1, 0);
                }
                together[domain] = together[domain].saturating_add(fits);
            }
            _ => {}
        }
        if let Some(key) = apart.filter(|&key| key != NODE_KEY && fits > 0) {
            let domain = cluster.domain_of(key, node);
            if domain != NO_DOMAIN {
                if seen.len() <= domain as usize {
                    seen.resize(domain as usize + 1, false);
                }
                fits = u32::from(!core::mem::replace(&mut seen[domain as usize], true));
            }
        }
        total = total.saturating_add(fits);
    }
    if let Some(Near::OneDomain(_)) = near {
        total = total.min(together.iter().copied().max().unwrap_or(0));
    }
    search.bound.seen = seen;
    search.bound.together = together;
    total
}

/// For each resource and each size that some member has: members of at least that size, and the
/// places of that size. Also the plain sums. Only sound when every member must be placed.
fn fits_by_sums(search: &mut Search, cluster: &mut Cluster, request: &Request<'_>) -> bool {
    let mut usable = core::mem::take(&mut search.bound.usable);
    usable.clear();
    for index in 0..cluster.ordered().len() {
        let node = cluster.ordered()[index];
        let any = (0..request.batches.len() as u32).any(|batch| {
            let leaf = request.batches[batch as usize].leaf;
            search.in_scope(cluster, request, leaf, node)
                && search
                    .rate_node(cluster, request, batch, node, false)
                    .capacity
                    > 0
        });
        if any {
            usable.push(node);
        }
    }
    let fits = sums_fit(cluster, request, &usable);
    search.bound.usable = usable;
    fits
}

fn sums_fit(cluster: &Cluster, request: &Request<'_>, usable: &[NodeIx]) -> bool {
    let asked = |batch: usize, resource: u16| {
        let amounts = &cluster.template(request.batches[batch].template).amounts;
        amounts
            .iter()
            .find(|&&(asked, _)| asked == resource)
            .map_or(0, |&(_, amount)| amount)
    };
    for batch in request.batches {
        for &(resource, size) in &cluster.template(batch.template).amounts {
            let free = |node: &NodeIx| {
                cluster
                    .free_of(*node)
                    .get(usize::from(resource))
                    .copied()
                    .unwrap_or(0)
                    .max(0)
            };
            let members = |ix: usize| i128::from(request.batches[ix].count);
            let of_size = (0..request.batches.len()).filter(|&ix| asked(ix, resource) >= size);
            let places: i128 = usable
                .iter()
                .map(|node| i128::from(free(node) / size))
                .sum();
            if of_size.map(members).sum::<i128>() > places {
                return false;
            }
            let sum: i128 = usable.iter().map(|node| i128::from(free(node))).sum();
            let needed: i128 = (0..request.batches.len())
                .map(|ix| members(ix) * i128::from(asked(ix, resource)))
                .sum();
            if needed > sum {
                return false;
            }
        }
        // Whole cards, whatever else an ask says of them; parts of cards count for nothing here.
        let ask = cluster.template(batch.template).cards.as_ref();
        let Some(ask) = ask.filter(|ask| ask.whole() > 0) else {
            continue;
        };
        let cards = |ix: &usize| {
            let ask_of = &cluster.template(request.batches[*ix].template).cards;
            let same = ask_of.as_ref().filter(|other| other.kind == ask.kind);
            same.map_or(0, CardAsk::whole)
        };
        let places: u64 = usable
            .iter()
            .map(|&node| u64::from(cluster.node(node).cards.free(ask.kind) / ask.whole()))
            .sum();
        let of_size = (0..request.batches.len()).filter(|ix| cards(ix) >= ask.whole());
        if of_size
            .map(|ix| u64::from(request.batches[ix].count))
            .sum::<u64>()
            > places
        {
            return false;
        }
        let free: u64 = usable
            .iter()
            .map(|&node| u64::from(cluster.node(node).cards.free(ask.kind)))
            .sum();
        let needed: u64 = (0..request.batches.len())
            .map(|ix| u64::from(request.batches[ix].count) * u64::from(cards(&ix)))
            .sum();
        if needed > free {
            return false;
        }
    }
    true
}
