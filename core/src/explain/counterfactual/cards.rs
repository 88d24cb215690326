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

use super::{TRIES, turn::AHEAD};
use crate::{
    bits::CardSet,
    cluster::{
        NodeCards, NodeIx, NodeSpec,
        domain::{KeyIx, NODE_KEY},
        spec::CardMode,
        template::TemplateIx,
    },
    device::{CardAsk, KindIx, links::Nearness, model_of, names::SliceSuffix},
    engine::{Event, Explanation, GangId, cycle::Members},
    explain::{Cause, Counterfactual, Explainer, NodeCount, Reason},
    request::{Apart, CardWant, NODE_LEVEL, SliceChoice},
};

/// Name of the node that stands for room that is not there.
const IMAGINED: &str = "gangline-imagined-";
/// New nodes that are imagined at most.
const NEW_NODES: u32 = 1024;
/// Ways in which more cards are given that are tried at most.
const MODES: usize = 4;

/// What a gang would need more of.
struct Wish {
    /// Of the member that is hardest to place.
    template: TemplateIx,
    ask: CardAsk,
    kind: String,
    /// More than so many are of no use to the whole gang.
    most: u32,
    /// Members that want cards of the kind.
    members: u32,
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

    /// The modes of some cards that suit, each once.
    fn modes(&self, cards: &NodeCards) -> Vec<CardMode> {
        let whole = cards.modes.is_empty().then_some(&CardMode::Whole);
        let mut modes: Vec<CardMode> = Vec::new();
        for mode in whole.into_iter().chain(&cards.modes) {
            if self.suits(mode) && !modes.contains(mode) {
                modes.push(mode.clone());
            }
        }
        modes.truncate(MODES);
        modes
    }

    fn near(&self) -> String {
        match self.ask.source.near {
            Nearness::Any => String::new(),
            near => near.word().to_string(),
        }
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

    /// The same node with more of what is asked for, given in this way; `None` when it cannot have more.
    fn grown(&self, spec: &NodeSpec, more: u32, mode: &CardMode) -> Option<NodeSpec> {
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
        let source = &self.ask.source;
        let any_will_do = !self.is_for_parts()
            && source.models.is_empty()
            && source.min_card_memory_mib == 0
            && source.near == Nearness::Any;
        let model = match model_of(cards) {
            _ if any_will_do => "",
            Some(model) => model.name,
            None => &cards.model,
        };
        (self.kind.clone(), model.to_string())
    }
}

/// How many cards a node needs so that it has those with these numbers.
fn reach(cards: CardSet) -> u32 {
    cards.iter().last().map_or(0, |last| last + 1)
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
        let on_a_node = wish.most.min(wish.size);
        // What the gang itself can use, with the rest of nodes too small for a member, one node for each
        // member, and the same after those ahead of it took theirs.
        let per_node = (wish.size / (wish.most / wish.members.max(1)).max(1)).max(1);
        let rounded = wish.members.div_ceil(per_node).saturating_mul(wish.size);
        let one_each = wish.members.saturating_mul(wish.size);
        let mut found = self.cards_on_a_node(id, &wish, on_a_node);
        let mut tried = 0;
        for most in [wish.most, rounded, one_each] {
            if found.is_none() && most > tried {
                found = self.cards_on_new_nodes(id, explanation, &wish, most);
                tried = most;
            }
        }
        if found.is_some() || !self.in_turn {
            return found;
        }
        let ahead = self.wanted_ahead(wish.ask.kind);
        let on_a_node = on_a_node.saturating_add(ahead).min(CardSet::CAPACITY);
        self.cards_on_a_node(id, &wish, on_a_node).or_else(|| {
            let most = one_each.saturating_add(ahead.saturating_mul(wish.size));
            self.cards_on_new_nodes(id, explanation, &wish, most)
        })
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
        let alike = || asks.iter().filter(|(other, ..)| other.kind == ask.kind);
        let needs = |ask: &CardAsk| ask.source.only.map_or(ask.count(), reach);
        let most = alike()
            .map(|(ask, count, _)| needs(ask).saturating_mul(*count))
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
        // Cards with certain numbers are each once on a node, and no node is larger than real ones.
        let size = match ask.source.only {
            Some(only) if reach(only) > real => return None,
            Some(only) => reach(only),
            None => real.max(distinct),
        };
        Some(Wish {
            template,
            ask: ask.clone(),
            kind: cluster.kind_name(ask.kind).to_string(),
            most,
            members: alike()
                .map(|(_, count, _)| *count)
                .fold(0, u32::saturating_add),
            size: size.min(CardSet::CAPACITY),
        })
    }

    /// The most cards of a kind, or parts of them, that those ahead of a gang could take.
    fn wanted_ahead(&self, kind: KindIx) -> u32 {
        let mut members = Members::default();
        let mut wanted = 0_u32;
        for &gang in self.ahead.iter().take(AHEAD) {
            self.engine.sort_members(gang, &mut members);
            for batch in &members.batches {
                let ask = self.engine.cluster.template(batch.template).cards.as_ref();
                let ask = ask.filter(|ask| ask.kind == kind);
                let count = ask.map_or(0, |ask| ask.count().saturating_mul(batch.count));
                wanted = wanted.saturating_add(count);
            }
        }
        wanted
    }

    /// The fewest further cards on one node that is there, by node: those with the most free first.
    fn cards_on_a_node(&mut self, id: GangId, wish: &Wish, most: u32) -> Option<Counterfactual> {
        let mut nodes = self.nodes_with(wish.template, wish.ask.kind);
        let cluster = &self.engine.cluster;
        nodes.sort_by_key(|&node| Reverse(cluster.node(node).cards.free(wish.ask.kind)));
        let mut best: Option<(u32, NodeSpec, CardMode)> = None;
        for node in nodes.into_iter().take(TRIES) {
            let Some(spec) = self.engine.cluster.node(node).spec.clone() else {
                continue;
            };
            let Some(cards) = spec.cards.iter().find(|cards| cards.kind == wish.kind) else {
                continue;
            };
            // Nothing is given of those that it has: nor would it be of further ones.
            if cards.closed.len() == cards.count {
                continue;
            }
            let modes = match wish.counted_profile(cards) {
                Some(_) => [CardMode::Whole].into(),
                None => wish.modes(cards),
            };
            for mode in modes {
                let limit = best.as_ref().map_or(most, |(count, ..)| count - 1);
                let works = |explainer: &mut Self, count| {
                    let grown = wish.grown(&spec, count, &mode);
                    grown.is_some_and(|node| explainer.admits_with_node(id, &spec, node))
                };
                if let Some(count) = self.fewest(limit, works) {
                    best = Some((count, NodeSpec::clone(&spec), mode));
                }
            }
        }
        let (count, node, mode) = best?;
        let cards = node.cards.iter().find(|cards| cards.kind == wish.kind)?;
        let (kind, model) = wish.named(cards);
        Some(Counterfactual::MoreCards {
            kind,
            model,
            count,
            domain: Some(format!("{NODE_LEVEL}={}", node.name)),
            nodes: 0,
            mode,
            near: wish.near(),
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
        most: u32,
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
        let models = self.model_nodes(wish);
        let mut best: Option<(u32, Option<String>, usize)> = None;
        let tries = places
            .iter()
            .flat_map(|place| (0..models.len()).map(move |at| (place, at)));
        for (place, at) in tries {
            let most = most.min(NEW_NODES * wish.size);
            let limit = best.as_ref().map_or(most, |(count, ..)| count - 1);
            let works = |explainer: &mut Self, count| {
                explainer.admits_with(id, &models[at], wish.size, count, place.as_ref())
            };
            if let Some(count) = self.fewest(limit, works) {
                let domain = place.as_ref().map(|(key, domain)| {
                    format!("{}={domain}", self.engine.cluster.key_name(*key))
                });
                best = Some((count, domain, at));
            }
        }
        let (count, domain, at) = best?;
        let (_, cards) = &models[at];
        let (kind, model) = wish.named(cards);
        Some(Counterfactual::MoreCards {
            kind,
            model,
            count,
            domain,
            nodes: count.div_ceil(wish.size),
            mode: cards.modes.first().cloned().unwrap_or_default(),
            near: wish.near(),
        })
    }

    /// The fewest that work, up to a limit that does. What is returned has been tried.
    pub(super) fn fewest(
        &mut self,
        limit: u32,
        works: impl Fn(&mut Self, u32) -> bool,
    ) -> Option<u32> {
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

    /// Nodes that suit but for room, and cards of the kind as new nodes would have them: those of the
    /// first node that has fitting ones, in each way that it gives them; if none has, any.
    fn model_nodes(&self, wish: &Wish) -> Vec<(NodeSpec, NodeCards)> {
        let cluster = &self.engine.cluster;
        let of = |node: NodeIx| {
            let spec = cluster.node(node).spec.as_deref()?;
            let cards = spec.cards.iter().find(|cards| cards.kind == wish.kind)?;
            let pool = cluster.node(node).cards.pool(wish.ask.kind)?;
            let is_near = || wish.ask.source.near == Nearness::Any || cards.links.is_some();
            let is_fitting = pool.hardware.passes(&wish.ask) && is_near();
            let modes = is_fitting.then(|| wish.modes(cards))?;
            let alike = modes.into_iter().map(|mode| {
                let cards = NodeCards {
                    kind: wish.kind.clone(),
                    model: cards.model.clone(),
                    memory_mib: cards.memory_mib,
                    modes: Vec::from_iter((mode != CardMode::Whole).then_some(mode)),
                    links: cards.links.clone().filter(|_| !wish.is_for_parts()),
                    mps: cards.mps,
                    most_shares: cards.most_shares,
                    ..NodeCards::default()
                };
                (spec.clone(), cards)
            });
            let alike: Vec<_> = alike.collect();
            (!alike.is_empty()).then_some(alike)
        };
        let nodes = self.usable_nodes(wish.template);
        if let Some(fitting) = nodes.iter().find_map(|&node| of(node)) {
            return fitting;
        }
        let first = nodes.first().filter(|_| wish.ask.plain);
        let spec = first.and_then(|&first| cluster.node(first).spec.as_deref());
        let cards = NodeCards {
            kind: wish.kind.clone(),
            ..NodeCards::default()
        };
        spec.map(|spec| (spec.clone(), cards)).into_iter().collect()
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
            // Who wants a certain node by its name is not helped by another.
            if let Some(name) = node.labels.get_mut(NODE_LEVEL) {
                name.clone_from(&node.name);
            }
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
