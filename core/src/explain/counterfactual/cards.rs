//! More cards, or cards that are given in another way.
//!
//! What a gang asks for and the nodes that are there enter; a change leaves that was tried on nodes
//! with more cards, on new nodes like those that are there, or on a node with other modes.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::cmp::Reverse;

use super::TRIES;
use crate::{
    bits::CardSet,
    cluster::{
        NodeCards, NodeIx, NodeSpec,
        domain::{KeyIx, NODE_KEY},
        spec::CardMode,
        template::TemplateIx,
    },
    device::{CardAsk, KindIx, model_of, names::SliceSuffix},
    engine::{Event, Explanation, GangId, cycle::Members},
    explain::{Cause, Counterfactual, Explainer, NodeCount, Reason},
    request::{Apart, CardWant, NODE_LEVEL, SliceChoice},
};

/// Name of the node that stands for room that is not there.
const IMAGINED: &str = "gangline-imagined-";
/// New nodes that are imagined at most.
const NEW_NODES: u32 = 1024;

/// What a gang would need more of.
struct Wish {
    /// Of the member that is hardest to place.
    template: TemplateIx,
    ask: CardAsk,
    kind: String,
    /// More than so many are of no use to the whole gang.
    most: u32,
    /// As large as real nodes are, but large enough for one member.
    size: u32,
}

impl Wish {
    fn is_for_parts(&self) -> bool {
        self.ask.whole() == 0
    }

    /// Whether a card with this mode may be given in the way that is asked for.
    fn suits(&self, mode: &CardMode) -> bool {
        match (&self.ask.source.want, mode) {
            (CardWant::Whole(_), CardMode::Whole | CardMode::Shared | CardMode::MigDynamic)
            | (CardWant::Slices { .. }, CardMode::MigDynamic | CardMode::MigStatic(_))
            | (CardWant::Shares { .. }, CardMode::Shared)
            | (CardWant::Replicas { .. }, CardMode::Replicas(_)) => true,
            (
                CardWant::Whole(_)
                | CardWant::Slices { .. }
                | CardWant::Shares { .. }
                | CardWant::Replicas { .. },
                _,
            ) => false,
        }
    }

    /// The first mode of some cards that suits.
    fn mode(&self, cards: &NodeCards) -> Option<CardMode> {
        let mut modes = cards.modes.iter();
        let whole = cards.modes.is_empty().then_some(&CardMode::Whole);
        let found = whole.or_else(|| modes.find(|mode| self.suits(mode)));
        found.filter(|mode| self.suits(mode)).cloned()
    }

    /// The profile that is asked for, if a node counts its instances.
    fn counted_profile(&self, cards: &NodeCards) -> Option<String> {
        let CardWant::Slices { slices, .. } = &self.ask.source.want else {
            return None;
        };
        slices.iter().find_map(|slice| match &slice.slice {
            SliceChoice::Profile(name) => cards.slices.contains_key(name).then(|| name.clone()),
            SliceChoice::AtLeast { .. } => None,
        })
    }

    /// The same node with more of what is asked for; `None` when it cannot have more.
    fn grown(&self, spec: &NodeSpec, more: u32) -> Option<NodeSpec> {
        let mut node = spec.clone();
        let cards = node
            .cards
            .iter_mut()
            .find(|cards| cards.kind == self.kind)?;
        if let Some(profile) = self.counted_profile(cards) {
            let count = cards.slices.get_mut(&profile)?;
            *count = count.saturating_add(more);
            return Some(node);
        }
        let mode = self.mode(cards)?;
        cards.count = cards.count.checked_add(more)?;
        if cards.count > CardSet::CAPACITY {
            return None;
        }
        if cards.modes.len() > 1 {
            cards.modes.extend((0..more).map(|_| mode.clone()));
        }
        if self.is_for_parts() {
            // Parts have none, and those of more cards nobody knows.
            cards.links = None;
        }
        Some(node)
    }

    /// What would be added to a node, as kind and model.
    fn named(&self, cards: &NodeCards) -> (String, String) {
        if let Some(profile) = self.counted_profile(cards) {
            let resource = format!("nvidia.com/mig-{}", SliceSuffix(&profile));
            return (resource, String::new());
        }
        let any_will_do = !self.is_for_parts() && self.ask.source.models.is_empty();
        let model = match model_of(cards) {
            _ if any_will_do => "",
            Some(model) => model.name,
            None => &cards.model,
        };
        (self.kind.clone(), model.to_string())
    }
}

impl Explainer {
    /// The fewest cards found: on one node that is there, or, where a node's worth does not suffice,
    /// on new nodes like those that are there. Only where cards are what is short.
    pub(super) fn more_cards(
        &mut self,
        id: GangId,
        explanation: &Explanation,
    ) -> Option<Counterfactual> {
        let Some(Reason::DoesNotFit {
            causes, shortfall, ..
        }) = &explanation.reason
        else {
            return None;
        };
        let wish = self.wish(id)?;
        // When something else is short, cards on their own change nothing.
        let about_cards =
            |count: &NodeCount| count.cause == Cause::Cards || count.cause.is_about_cards();
        let for_cards =
            causes.is_empty() || causes.iter().any(about_cards) || !explanation.domains.is_empty();
        let offered = match shortfall {
            Some(shortfall) if shortfall.resource == wish.kind => true,
            Some(shortfall) if shortfall.resource != "members" && !wish.is_for_parts() => false,
            _ => for_cards,
        };
        if !offered {
            return None;
        }
        let on_a_node = self.cards_on_a_node(id, &wish);
        on_a_node.or_else(|| self.cards_on_new_nodes(id, explanation, &wish))
    }

    /// What the members ask for that are hardest to place: whole cards before parts.
    fn wish(&self, id: GangId) -> Option<Wish> {
        let mut members = Members::default();
        self.engine.sort_members(id, &mut members);
        let cluster = &self.engine.cluster;
        let asks: Vec<_> = members
            .batches
            .iter()
            .filter_map(|batch| {
                let ask = cluster.template(batch.template).cards.as_ref()?;
                Some((ask, batch.count, batch.template))
            })
            .collect();
        let &(ask, _, template) = asks
            .iter()
            .max_by_key(|(ask, ..)| (ask.whole(), ask.size()))?;
        let most = asks
            .iter()
            .filter(|(other, ..)| other.kind == ask.kind)
            .map(|(ask, count, _)| ask.count().saturating_mul(*count))
            .fold(0, u32::saturating_add);
        let distinct = match ask.apart() {
            Apart::Distinct => ask.count(),
            Apart::Same | Apart::Any => 1,
        };
        let pools = cluster
            .ordered()
            .iter()
            .flat_map(|&node| cluster.node(node).cards.pools());
        let real = pools
            .filter(|pool| pool.kind == ask.kind)
            .map(|pool| pool.all.len())
            .max();
        let real = real.filter(|real| *real > 0).unwrap_or(8);
        Some(Wish {
            template,
            ask: ask.clone(),
            kind: cluster.kind_name(ask.kind).to_string(),
            most,
            size: real.max(distinct).min(CardSet::CAPACITY),
        })
    }

    /// The fewest further cards on one node that is there, by node: those with the most free first.
    fn cards_on_a_node(&mut self, id: GangId, wish: &Wish) -> Option<Counterfactual> {
        let mut nodes = self.nodes_with(wish.template, wish.ask.kind);
        let cluster = &self.engine.cluster;
        nodes.sort_by_key(|&node| Reverse(cluster.node(node).cards.free(wish.ask.kind)));
        let mut best: Option<(u32, NodeSpec)> = None;
        for node in nodes.into_iter().take(TRIES) {
            let Some(spec) = self.engine.cluster.node(node).spec.clone() else {
                continue;
            };
            let most = wish.most.min(wish.size);
            let limit = best.as_ref().map_or(most, |(count, _)| count - 1);
            let works = |explainer: &mut Self, count| {
                let Some(node) = wish.grown(&spec, count) else {
                    return false;
                };
                explainer.admits_with_node(id, &spec, node)
            };
            if let Some(count) = self.fewest(limit, works) {
                best = Some((count, NodeSpec::clone(&spec)));
            }
        }
        let (count, node) = best?;
        let cards = node.cards.iter().find(|cards| cards.kind == wish.kind)?;
        let (kind, model) = wish.named(cards);
        Some(Counterfactual::MoreCards {
            kind,
            model,
            count,
            domain: Some(format!("{NODE_LEVEL}={}", node.name)),
        })
    }

    /// Nodes with cards of a kind that suit a template but for room, in node order.
    fn nodes_with(&self, template: TemplateIx, kind: KindIx) -> Vec<NodeIx> {
        let cluster = &self.engine.cluster;
        let name = cluster.kind_name(kind);
        let has = |&node: &NodeIx| {
            let spec = cluster.node(node).spec.as_deref();
            let mut kinds = spec.into_iter().flat_map(|spec| &spec.cards);
            kinds.any(|cards| cards.kind == name)
        };
        let mut nodes = self.usable_nodes(template);
        nodes.retain(has);
        nodes
    }

    fn cards_on_new_nodes(
        &mut self,
        id: GangId,
        explanation: &Explanation,
        wish: &Wish,
    ) -> Option<Counterfactual> {
        let tree = self.engine.gangs.get(id.0)?.tree.clone();
        let places: Vec<Option<(KeyIx, String)>> = match tree.nodes[0].required {
            Some(NODE_KEY) if wish.most > wish.size => return None,
            Some(key) if key != NODE_KEY => {
                let best = explanation.domains.iter().take(4);
                best.map(|attempt| Some((key, attempt.domain.clone())))
                    .collect()
            }
            _ => [None].into(),
        };
        let model = self.model_node(wish)?;
        let mut best: Option<(u32, Option<String>)> = None;
        for place in places {
            let most = wish.most.min(NEW_NODES * wish.size);
            let limit = best.as_ref().map_or(most, |(count, _)| count - 1);
            let works = |explainer: &mut Self, count| {
                explainer.admits_with(id, &model, wish.size, count, place.as_ref())
            };
            if let Some(count) = self.fewest(limit, works) {
                let domain = place
                    .map(|(key, domain)| format!("{}={domain}", self.engine.cluster.key_name(key)));
                best = Some((count, domain));
            }
        }
        let (count, domain) = best?;
        let (kind, model) = wish.named(&model.1);
        Some(Counterfactual::MoreCards {
            kind,
            model,
            count,
            domain,
        })
    }

    /// The fewest that work, up to a limit that does. What is returned has been tried.
    fn fewest(&mut self, limit: u32, works: impl Fn(&mut Self, u32) -> bool) -> Option<u32> {
        if limit == 0 || !works(self, limit) {
            return None;
        }
        let (mut low, mut high) = (1, limit);
        while low < high {
            let middle = low.midpoint(high);
            if works(self, middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        // Room is not always monotone.
        (high == limit || works(self, high)).then_some(high)
    }

    /// A node that suits but for room, and cards of the kind as new nodes would have them: those of
    /// the first node that has fitting ones, else any.
    fn model_node(&self, wish: &Wish) -> Option<(NodeSpec, NodeCards)> {
        let cluster = &self.engine.cluster;
        let of = |node: NodeIx| {
            let spec = cluster.node(node).spec.as_deref()?;
            let cards = spec.cards.iter().find(|cards| cards.kind == wish.kind)?;
            let pool = cluster.node(node).cards.pool(wish.ask.kind)?;
            let mode = wish
                .mode(cards)
                .filter(|_| pool.hardware.passes(&wish.ask))?;
            let alike = NodeCards {
                kind: wish.kind.clone(),
                model: cards.model.clone(),
                memory_mib: cards.memory_mib,
                modes: Vec::from_iter((mode != CardMode::Whole).then_some(mode)),
                links: cards.links.clone().filter(|_| !wish.is_for_parts()),
                mps: cards.mps,
                most_shares: cards.most_shares,
                ..NodeCards::default()
            };
            Some((spec.clone(), alike))
        };
        let nodes = self.usable_nodes(wish.template);
        let fitting = nodes.iter().find_map(|&node| of(node));
        fitting.or_else(|| {
            let first = nodes.first().filter(|_| wish.ask.plain)?;
            let spec = cluster.node(*first).spec.as_deref()?;
            let cards = NodeCards {
                kind: wish.kind.clone(),
                ..NodeCards::default()
            };
            Some((spec.clone(), cards))
        })
    }

    fn admits_with(
        &mut self,
        id: GangId,
        (model, cards): &(NodeSpec, NodeCards),
        size: u32,
        count: u32,
        place: Option<&(KeyIx, String)>,
    ) -> bool {
        let mut left = count;
        let mut names = Vec::new();
        while left > 0 && names.len() < NEW_NODES as usize {
            let mut node = model.clone();
            node.name = format!("{IMAGINED}{}", names.len());
            let mut cards = cards.clone();
            cards.count = left.min(size);
            // Known for a full board only.
            cards.links = cards.links.filter(|links| links.cards() == cards.count);
            node.cards = [cards].into();
            if let Some((key, domain)) = place {
                let label = self.engine.cluster.key_name(*key).to_string();
                node.labels.insert(label, domain.clone());
            }
            left -= left.min(size);
            names.push(node.name.clone());
            if self.engine.apply(Event::Node(node)).is_err() {
                break;
            }
        }
        let admits = left == 0 && self.admits(id);
        for name in names {
            // Cannot be refused.
            let _ = self.engine.apply(Event::NodeGone { name });
        }
        admits
    }

    /// The first node whose whole cards would do if they were given in parts.
    pub(super) fn other_mode(
        &mut self,
        id: GangId,
        explanation: &Explanation,
    ) -> Option<Counterfactual> {
        let Some(Reason::DoesNotFit { causes, .. }) = &explanation.reason else {
            return None;
        };
        if !causes
            .iter()
            .any(|count| count.cause == Cause::CardsNotShared)
        {
            return None;
        }
        let wish = self.wish(id)?;
        let mode = match wish.ask.source.want {
            CardWant::Slices { .. } => CardMode::MigDynamic,
            CardWant::Shares { .. } => CardMode::Shared,
            // Replicas are the device plugin's, and their number is not ours to guess.
            CardWant::Whole(_) | CardWant::Replicas { .. } => return None,
        };
        let nodes = self.nodes_with(wish.template, wish.ask.kind);
        for node in nodes.into_iter().take(TRIES) {
            let Some(spec) = self.engine.cluster.node(node).spec.clone() else {
                continue;
            };
            let pool = self.engine.cluster.node(node).cards.pool(wish.ask.kind);
            if pool.is_some_and(|pool| !pool.hardware.counts_cards()) {
                continue;
            }
            let mut other = NodeSpec::clone(&spec);
            let cards = other.cards.iter_mut().find(|cards| cards.kind == wish.kind);
            let Some(cards) = cards.filter(|cards| {
                cards.count > 0 && cards.modes.iter().all(|mode| *mode == CardMode::Whole)
            }) else {
                continue;
            };
            cards.modes = [mode.clone()].into();
            if self.admits_with_node(id, &spec, other) {
                let node = spec.name.clone();
                return Some(Counterfactual::CardMode { node, mode });
            }
        }
        None
    }
}
