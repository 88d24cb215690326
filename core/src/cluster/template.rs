//! Templates, compiled once: names become indexes, relations become shared terms.

use alloc::{sync::Arc, vec::Vec};

use smallvec::SmallVec;

use super::relation::TermIx;
use crate::{
    device::CardAsk,
    request::{NODE_LEVEL, NodeSelectorTerm, NodeTest, Requirement, Template},
};

/// Index of a distinct template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TemplateIx(pub(crate) u32);

/// A spread rule whose counting is shared with equal rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompiledSpread {
    pub(crate) term: TermIx,
    pub(crate) max_skew: u32,
    pub(crate) min_domains: u32,
    pub(crate) honor_node_affinity: bool,
    pub(crate) honor_taints: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Compiled {
    pub(crate) source: Arc<Template>,
    /// (resource index, amount above 0), a pod slot included.
    pub(crate) amounts: SmallVec<[(u16, i64); 4]>,
    pub(crate) cards: Option<CardAsk>,
    /// Its rules name single nodes, so nodes of one shape may answer differently.
    pub(crate) names_nodes: bool,
    pub(crate) affinity: Vec<TermIx>,
    pub(crate) anti_affinity: Vec<TermIx>,
    pub(crate) spread: Vec<CompiledSpread>,
    /// Wishes about neighbours: weight and term; a soft spread rule is a dislike.
    pub(crate) wishes: Vec<(i32, TermIx)>,
    /// Terms that count pods of this template, ascending.
    pub(crate) counted_by: Vec<TermIx>,
}

impl Compiled {
    /// Whether a node's answer depends on more than its class: its name, ports, other pods.
    pub(crate) fn needs_node_check(&self) -> bool {
        self.names_nodes
            || self.names_cards().is_some()
            || !self.source.host_ports.is_empty()
            || self.has_relations()
            || !self.counted_by.is_empty()
    }

    /// How much of a resource a member takes.
    pub(crate) fn asks_for(&self, resource: u16) -> i64 {
        let amount = self.amounts.iter().find(|&&(asked, _)| asked == resource);
        amount.map_or(0, |&(_, amount)| amount)
    }

    /// The ask, if it says which cards by their numbers.
    pub(crate) fn names_cards(&self) -> Option<&CardAsk> {
        self.cards.as_ref().filter(|ask| ask.source.only.is_some())
    }

    /// Whether nodes of one class are all the same to it, wishes included.
    pub(crate) fn is_judged_by_class(&self) -> bool {
        !self.needs_node_check() && self.wishes.is_empty()
    }

    /// Whether it has required rules about other pods.
    pub(crate) fn has_relations(&self) -> bool {
        !(self.affinity.is_empty() && self.anti_affinity.is_empty() && self.spread.is_empty())
    }
}

/// Every node label that the rules ask about.
pub(crate) fn label_keys(template: &Template) -> impl Iterator<Item = &str> {
    let rules = &template.nodes;
    let selector = rules.selector.keys().map(alloc::string::String::as_str);
    selector.chain(tests(template).filter_map(|test| match test {
        NodeTest::Label(Requirement { key, .. }) => Some(key.as_str()),
        NodeTest::Name(_) => None,
    }))
}

/// Whether the rules can tell two nodes of one shape apart by their names.
pub(crate) fn names_nodes(template: &Template) -> bool {
    template.nodes.selector.contains_key(NODE_LEVEL)
        || tests(template).any(|test| match test {
            NodeTest::Label(Requirement { key, .. }) => key == NODE_LEVEL,
            NodeTest::Name(_) => true,
        })
}

fn tests(template: &Template) -> impl Iterator<Item = &NodeTest> {
    let rules = &template.nodes;
    let required = rules.required.iter().flatten();
    let preferred = rules.preferred.iter().map(|(_, term)| term);
    required
        .chain(preferred)
        .flat_map(|term: &NodeSelectorTerm| &term.tests)
}
