//! Rules about other pods, judged on the cluster's counters.
//!
//! Anti-affinity holds at every moment of a search. Required affinity may come to hold when a
//! sibling is placed, so the search judges it on the finished plan: a plan is valid if *some* order
//! of placing its members one by one satisfies Kubernetes' rule, including "the first of a kind
//! may go anywhere". Spread is judged on the finished plan too; see [`crate::request::SpreadRule`].

use alloc::vec::Vec;

use super::{Batch, Placed};
use crate::{
    cluster::{
        Cluster, NodeIx,
        domain::{KeyIx, NO_DOMAIN},
        relation::TermIx,
        shape::{repelled_by, selects},
        template::{Compiled, CompiledSpread, TemplateIx},
    },
    explain::Cause,
};

/// Memory that is kept between searches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    /// By domain: eligible for the spread rule at hand.
    eligible: Vec<bool>,
    /// Which spread rule `eligible` is for.
    eligible_for: Option<(TemplateIx, CompiledSpread)>,
    /// By placed member: in which round the order under trial added it; 0: not yet.
    added: Vec<u32>,
}

impl Scratch {
    /// Must be called when nodes may have changed.
    pub(crate) fn forget(&mut self) {
        self.eligible_for = None;
    }
}

/// Whether a node's neighbours let a member in. `strict`: required affinity must hold now.
pub(crate) fn check(
    cluster: &Cluster,
    template: TemplateIx,
    node: NodeIx,
    strict: bool,
) -> Result<(), Cause> {
    let compiled = cluster.template(template);
    let domain = |term: TermIx| cluster.domain_of(cluster.term(term).identity.key, node);
    for &term in &compiled.anti_affinity {
        let domain = domain(term);
        if domain != NO_DOMAIN && cluster.term(term).matching_in(domain) > 0 {
            return Err(Cause::PodAntiAffinity);
        }
    }
    for &term in &compiled.counted_by {
        let domain = domain(term);
        if domain != NO_DOMAIN && cluster.term(term).carriers_in(domain) > 0 {
            return Err(Cause::PodAntiAffinity);
        }
    }
    for &term in &compiled.affinity {
        if domain(term) == NO_DOMAIN {
            return Err(Cause::PodAffinity);
        }
    }
    if strict && !affinity_holds(cluster, compiled, node) && !may_be_first(cluster, compiled) {
        return Err(Cause::PodAffinity);
    }
    for rule in &compiled.spread {
        if domain(rule.term) == NO_DOMAIN {
            return Err(Cause::Spread);
        }
    }
    Ok(())
}

fn affinity_holds(cluster: &Cluster, compiled: &Compiled, node: NodeIx) -> bool {
    compiled.affinity.iter().all(|&term| {
        let term = cluster.term(term);
        let domain = cluster.domain_of(term.identity.key, node);
        domain != NO_DOMAIN && term.matching_in(domain) > 0
    })
}

/// Kubernetes' exception: no pod anywhere matches, and the member matches its own terms.
fn may_be_first(cluster: &Cluster, compiled: &Compiled) -> bool {
    compiled
        .affinity
        .iter()
        .all(|term| cluster.term(*term).total == 0 && compiled.counted_by.contains(term))
}

/// How much a member likes a node's neighbours.
pub(crate) fn wishes(cluster: &Cluster, template: TemplateIx, node: NodeIx) -> i64 {
    let wish = |&(weight, term): &(i32, TermIx)| {
        let term = cluster.term(term);
        let domain = cluster.domain_of(term.identity.key, node);
        let matching = if domain == NO_DOMAIN {
            0
        } else {
            term.matching_in(domain)
        };
        i64::from(weight) * i64::from(matching.min(1000))
    };
    cluster.template(template).wishes.iter().map(wish).sum()
}

/// Marks the domains that a spread rule counts: those with a node that has every spread label of
/// the member and, as the rule says, passes its node rules.
fn mark_eligible(
    scratch: &mut Scratch,
    cluster: &Cluster,
    template: TemplateIx,
    rule: &CompiledSpread,
) {
    if scratch.eligible_for == Some((template, *rule)) {
        return;
    }
    scratch.eligible_for = Some((template, *rule));
    scratch.eligible.clear();
    let compiled = cluster.template(template);
    let key = cluster.term(rule.term).identity.key;
    for &node in cluster.ordered() {
        let domain = cluster.domain_of(key, node) as usize;
        let labelled = compiled.spread.iter().all(|other| {
            cluster.domain_of(cluster.term(other.term).identity.key, node) != NO_DOMAIN
        });
        if !labelled || scratch.eligible.get(domain).copied().unwrap_or(false) {
            continue;
        }
        if counts_for(cluster, compiled, rule, node) {
            if scratch.eligible.len() <= domain {
                scratch.eligible.resize(domain + 1, false);
            }
            scratch.eligible[domain] = true;
        }
    }
}

fn counts_for(cluster: &Cluster, compiled: &Compiled, rule: &CompiledSpread, node: NodeIx) -> bool {
    let Some(spec) = &cluster.node(node).spec else {
        return false;
    };
    let rules = &compiled.source.nodes;
    (!rule.honor_taints || repelled_by(rules, spec.unschedulable, &spec.taints).is_none())
        && (!rule.honor_node_affinity || selects(rules, cluster.node_name(node), &spec.labels))
}

/// Matching pods in the emptiest eligible domain; 0 when there are too few domains.
fn emptiest(scratch: &Scratch, cluster: &Cluster, rule: &CompiledSpread) -> u32 {
    let term = cluster.term(rule.term);
    let eligible = || {
        scratch
            .eligible
            .iter()
            .enumerate()
            .filter(|(_, eligible)| **eligible)
    };
    if (eligible().count() as u64) < u64::from(rule.min_domains) {
        return 0;
    }
    eligible()
        .map(|(domain, _)| term.matching_in(domain as u32))
        .min()
        .unwrap_or(0)
}

/// Whether every spread rule of a member would hold right after placing it on the node.
pub(crate) fn spread_allows(
    scratch: &mut Scratch,
    cluster: &Cluster,
    template: TemplateIx,
    node: NodeIx,
) -> bool {
    let compiled = cluster.template(template);
    compiled.spread.iter().all(|rule| {
        mark_eligible(scratch, cluster, template, rule);
        let term = cluster.term(rule.term);
        let domain = cluster.domain_of(term.identity.key, node);
        let itself = u32::from(compiled.counted_by.contains(&rule.term));
        let there = term.matching_in(domain) + itself;
        domain != NO_DOMAIN
            && there <= emptiest(scratch, cluster, rule).saturating_add(rule.max_skew)
    })
}

/// Whether a spread rule of a member just placed on the node can still come to hold, when at most
/// `more` members are to follow.
pub(crate) fn spread_may_hold(
    scratch: &mut Scratch,
    cluster: &Cluster,
    template: TemplateIx,
    node: NodeIx,
    more: u32,
) -> bool {
    cluster.template(template).spread.iter().all(|rule| {
        mark_eligible(scratch, cluster, template, rule);
        let term = cluster.term(rule.term);
        let there = term.matching_in(cluster.domain_of(term.identity.key, node));
        let least = emptiest(scratch, cluster, rule).saturating_add(more);
        there <= least.saturating_add(rule.max_skew)
    })
}

/// Whether the finished plan keeps every spread rule and some order keeps every affinity rule.
/// All of `placed` is charged.
pub(crate) fn plan_holds(
    scratch: &mut Scratch,
    cluster: &mut Cluster,
    batches: &[Batch],
    placed: &[Placed],
) -> bool {
    let template = |placed: &Placed| batches[placed.batch as usize].template;
    for member in placed {
        let compiled = cluster.template(template(member));
        for rule in &compiled.spread {
            mark_eligible(scratch, cluster, template(member), rule);
            let term = cluster.term(rule.term);
            let there = term.matching_in(cluster.domain_of(term.identity.key, member.node));
            if there > emptiest(scratch, cluster, rule).saturating_add(rule.max_skew) {
                return false;
            }
        }
    }
    let has_affinity = |placed: &Placed| !cluster.template(template(placed)).affinity.is_empty();
    if !placed.iter().any(has_affinity) {
        return true;
    }
    let mut added = core::mem::take(&mut scratch.added);
    added.clear();
    added.resize(placed.len(), 0);
    for member in placed {
        cluster.count_in(member.node, template(member), false);
    }
    let mut tries = FIRSTS_TRIED;
    let holds = add_in_some_order(cluster, batches, placed, &mut added, 1, &mut tries);
    for (member, &added) in placed.iter().zip(&added) {
        if added == 0 {
            cluster.count_in(member.node, template(member), true);
        }
    }
    scratch.added = added;
    holds
}

/// How many choices of "first of a kind" are tried: far above what real rules can need.
const FIRSTS_TRIED: u32 = 4096;

/// Firsts can be moved to the front of any valid order (fewer pods only help them), and whoever is
/// let in by affinity stays let in when more come. So: try firsts, then add all that can follow.
fn add_in_some_order(
    cluster: &mut Cluster,
    batches: &[Batch],
    placed: &[Placed],
    added: &mut [u32],
    round: u32,
    tries: &mut u32,
) -> bool {
    let template = |ix: usize| batches[placed[ix].batch as usize].template;
    loop {
        let mut grew = false;
        for ix in 0..placed.len() {
            let compiled = cluster.template(template(ix));
            if added[ix] == 0 && affinity_holds(cluster, compiled, placed[ix].node) {
                added[ix] = round;
                grew = true;
                cluster.count_in(placed[ix].node, template(ix), true);
            }
        }
        if !grew {
            break;
        }
    }
    if added.iter().all(|&added| added > 0) {
        return true;
    }
    // Back to where firsts may still be chosen.
    for ix in 0..placed.len() {
        if added[ix] == round {
            added[ix] = 0;
            cluster.count_in(placed[ix].node, template(ix), false);
        }
    }
    for ix in 0..placed.len() {
        let compiled = cluster.template(template(ix));
        if added[ix] > 0 || compiled.affinity.is_empty() || !may_be_first(cluster, compiled) {
            continue;
        }
        let repeats = (0..ix).any(|other| {
            added[other] == 0
                && template(other) == template(ix)
                && placed[other].node == placed[ix].node
        });
        if repeats || *tries == 0 {
            continue;
        }
        *tries -= 1;
        added[ix] = round;
        cluster.count_in(placed[ix].node, template(ix), true);
        if add_in_some_order(cluster, batches, placed, added, round + 1, tries) {
            return true;
        }
        added[ix] = 0;
        cluster.count_in(placed[ix].node, template(ix), false);
    }
    false
}

/// Node-level counters that can make two nodes of one class different for a set of templates.
pub(crate) fn node_terms<'a>(
    cluster: &'a Cluster,
    templates: impl Iterator<Item = TemplateIx> + 'a,
) -> impl Iterator<Item = (KeyIx, TermIx)> + 'a {
    templates.flat_map(move |template| {
        let compiled = cluster.template(template);
        let own = compiled
            .anti_affinity
            .iter()
            .chain(&compiled.affinity)
            .copied();
        let spread = compiled.spread.iter().map(|rule| rule.term);
        own.chain(spread)
            .chain(compiled.counted_by.iter().copied())
            .map(move |term| (cluster.term(term).identity.key, term))
    })
}
