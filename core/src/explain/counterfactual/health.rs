//! Cards that are there and cannot be used, whose repair would admit a gang.
//!
//! Nodes with unhealthy cards, with cards that they do not offer, or with a MIG layout that is being changed
//! enter; each is tried with them as they should be, and the fewest found leave. Of one node only: that
//! several must be repaired for a gang is not found.

use alloc::{sync::Arc, vec::Vec};

use super::TRIES;
use crate::{
    bits::CardSet,
    cluster::{NodeCards, NodeSpec},
    device::links::{self, LinkMatrix},
    engine::GangId,
    explain::{Counterfactual, Explainer},
};

impl Explainer {
    pub(super) fn healthy_cards(&mut self, id: GangId) -> Option<Counterfactual> {
        let mut best: Option<(CardSet, Arc<NodeSpec>)> = None;
        for (spec, kind) in self.kinds_with(|cards| !cards.unhealthy.is_empty()) {
            let unhealthy = spec.cards[kind].unhealthy;
            let works = |explainer: &mut Self, cards: CardSet| {
                let mut node = NodeSpec::clone(&spec);
                node.cards[kind].unhealthy = unhealthy.difference(cards);
                explainer.admits_with_node(id, &spec, node)
            };
            if !works(self, unhealthy) {
                continue;
            }
            // Leaves out every card that need not be healthy, those with high numbers first.
            let mut needed = unhealthy;
            for card in unhealthy.iter().collect::<Vec<_>>().into_iter().rev() {
                let fewer = needed.difference(CardSet(1 << card));
                if !fewer.is_empty() && works(self, fewer) {
                    needed = fewer;
                }
            }
            if best
                .as_ref()
                .is_none_or(|(cards, _)| needed.len() < cards.len())
            {
                best = Some((needed, spec));
            }
        }
        let (cards, node) = best?;
        Some(Counterfactual::HealthyCards {
            node: node.name.clone(),
            cards: cards.iter().collect(),
        })
    }

    /// The fewest cards that one node has and does not offer, which would do if it offered them.
    pub(super) fn allocatable_cards(&mut self, id: GangId) -> Option<Counterfactual> {
        let mut best: Option<(u32, Arc<NodeSpec>, usize)> = None;
        for (spec, kind) in self.kinds_with(|cards| cards.withheld > 0) {
            let most = spec.cards[kind].withheld;
            let limit = best
                .as_ref()
                .map_or(most, |(count, ..)| most.min(count - 1));
            let works = |explainer: &mut Self, count: u32| {
                let mut node = NodeSpec::clone(&spec);
                let cards = &mut node.cards[kind];
                let are_all = cards.closed.len() == cards.count;
                cards.withheld = cards.withheld.saturating_sub(count);
                if are_all {
                    // These are the ones that it does not offer: now it has fewer, and they are open.
                    (cards.count, cards.closed) = (count, CardSet::EMPTY);
                } else {
                    cards.count = cards.count.saturating_add(count);
                }
                let is_full = |links: &LinkMatrix| links.cards() == cards.count;
                if !cards.links.as_ref().is_none_or(is_full) {
                    // They were known for those that are offered.
                    cards.links = links::for_product(&cards.model, cards.count);
                }
                explainer.admits_with_node(id, &spec, node)
            };
            if let Some(count) = self.fewest(limit, works) {
                best = Some((count, spec.clone(), kind));
            }
        }
        let (count, node, kind) = best?;
        Some(Counterfactual::AllocatableCards {
            node: node.name.clone(),
            kind: node.cards[kind].kind.clone(),
            count,
        })
    }

    /// The first node that would do if its MIG layout were no longer being changed.
    pub(super) fn settled_layout(&mut self, id: GangId) -> Option<Counterfactual> {
        for (spec, _) in self.kinds_with(|cards| cards.is_changing) {
            let mut node = NodeSpec::clone(&spec);
            node.cards
                .iter_mut()
                .for_each(|cards| cards.is_changing = false);
            if self.admits_with_node(id, &spec, node) {
                let node = spec.name.clone();
                return Some(Counterfactual::LayoutSettled { node });
            }
        }
        None
    }

    /// The first nodes, in node order, with cards that are as asked, and which of a node's kinds that is.
    fn kinds_with(&self, is_such: impl Fn(&NodeCards) -> bool) -> Vec<(Arc<NodeSpec>, usize)> {
        let cluster = &self.engine.cluster;
        let nodes = cluster.ordered().iter();
        let nodes = nodes.filter_map(|&node| cluster.node(node).spec.clone());
        nodes
            .flat_map(|spec| (0..spec.cards.len()).map(move |kind| (spec.clone(), kind)))
            .filter(|(spec, kind)| is_such(&spec.cards[*kind]))
            .take(TRIES)
            .collect()
    }
}
