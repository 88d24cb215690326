//! Broken cards whose repair would admit a gang.
//!
//! Nodes with unhealthy cards enter; each is tried with them healthy, and the fewest found leave.
//! Of one node only: that several must be repaired for a gang is not found.

use alloc::{sync::Arc, vec::Vec};

use super::TRIES;
use crate::{
    bits::CardSet,
    cluster::NodeSpec,
    engine::GangId,
    explain::{Counterfactual, Explainer},
};

impl Explainer {
    pub(super) fn healthy_cards(&mut self, id: GangId) -> Option<Counterfactual> {
        let cluster = &self.engine.cluster;
        let nodes = cluster.ordered().iter();
        let nodes = nodes.filter_map(|&node| cluster.node(node).spec.clone());
        let broken: Vec<(Arc<NodeSpec>, usize)> = nodes
            .flat_map(|spec| (0..spec.cards.len()).map(move |kind| (spec.clone(), kind)))
            .filter(|(spec, kind)| !spec.cards[*kind].unhealthy.is_empty())
            .take(TRIES)
            .collect();
        let mut best: Option<(CardSet, Arc<NodeSpec>)> = None;
        for (spec, kind) in broken {
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
}
