//! What can be said of cards only when nodes, pods and groups are all known.
//!
//! Which gang a pod is of (for cards that serve one gang only), and which nodes share their cards:
//! one on which a share runs does, whatever it says. Members and nodes enter and are completed.

use std::collections::BTreeMap;

use gangline::{
    bits::CardSet,
    cluster::{NodeCards, NodeSpec, spec::CardMode},
    device::{Devices, Slice, names::label::Product},
    gang::PodPhase,
    request::{CardRequest, CardWant},
};

use super::kai;
use crate::{intake::Member, rules::Templates};

/// Stands for the gang until it is known. No gang is called like this: their words have a `/`.
pub(super) const WITH_ITS_GANG: &str = "gang";

/// Names the gangs whose cards serve nobody else.
pub(crate) fn exclude_others(members: &mut [Member], templates: &mut Templates) {
    for member in members {
        let spec = &mut member.spec;
        let Some(cards) = &spec.template.cards else {
            continue;
        };
        if cards.exclusive != WITH_ITS_GANG {
            continue;
        }
        let exclusive = match &spec.gang {
            Some(gang) => format!("{} {}/{}", gang.source, gang.namespace, gang.name),
            None => format!("pod {}/{}", spec.namespace, spec.name),
        };
        let cards = CardRequest {
            exclusive,
            ..cards.clone()
        };
        spec.template = templates.with_cards(&spec.template, cards);
    }
}

/// Nodes on which a share runs share their cards, and shares of one of KAI's groups are on one card.
pub(crate) fn share_where_shared(nodes: &mut BTreeMap<String, NodeSpec>, members: &mut [Member]) {
    // By node and group the number of a card, in the order of the groups' names: which card it really
    // is nobody tells.
    let mut groups: BTreeMap<(String, String), u32> = BTreeMap::new();
    for member in members.iter() {
        let Some((node, request)) = running_share(member) else {
            continue;
        };
        let Some(cards) = cards_of(nodes, node, request) else {
            continue;
        };
        if cards.modes.is_empty() && cards.count <= CardSet::CAPACITY {
            let product = Product::new(&cards.model);
            if !product.shared && product.mig.is_none() {
                cards.modes = [CardMode::Shared].into();
            }
        }
        for group in kai::groups(&member.labels) {
            groups.insert((node.into(), group.into()), 0);
        }
    }
    let mut before: Option<(String, u32)> = None;
    for ((node, _), card) in &mut groups {
        *card = match &before {
            Some((same, card)) if same == node => card.saturating_add(1),
            _ => 0,
        };
        before = Some((node.clone(), *card));
    }
    for member in members {
        let Some((node, request)) = running_share(member) else {
            continue;
        };
        let mut devices = Devices::NONE;
        let mut shares = 0;
        for group in kai::groups(&member.labels) {
            let card = groups.get(&(node.into(), group.into()));
            let card = card.and_then(|card| u8::try_from(*card).ok());
            devices.push(Slice {
                card: card.unwrap_or(Slice::NO_CARD),
                profile: Slice::SHARE,
                start: 0,
            });
            shares += 1;
        }
        let there = cards_of(nodes, node, request).map_or(0, |cards| cards.count);
        let cards = CardSet::first(there).unwrap_or_default();
        let known = devices
            .slices()
            .all(|slice| cards.contains(slice.card.into()));
        if let CardWant::Shares { count, .. } = request.want
            && known
            && count == shares
        {
            member.spec.devices = Some(devices);
        }
    }
}

/// The node of a share that takes room, and what it asks for.
fn running_share(member: &Member) -> Option<(&str, &CardRequest)> {
    let spec = &member.spec;
    if matches!(spec.phase, PodPhase::Succeeded | PodPhase::Failed) {
        return None;
    }
    let cards = spec.template.cards.as_ref()?;
    let shares = matches!(cards.want, CardWant::Shares { .. });
    shares.then_some((spec.node.as_deref()?, cards))
}

fn cards_of<'a>(
    nodes: &'a mut BTreeMap<String, NodeSpec>,
    node: &str,
    request: &CardRequest,
) -> Option<&'a mut NodeCards> {
    let mut cards = nodes.get_mut(node)?.cards.iter_mut();
    cards.find(|cards| cards.kind == request.kind)
}
