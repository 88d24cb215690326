//! What somebody else gave to a pod that runs, told by the vendor's ids of cards.
//!
//! HAMi writes on each pod that it places which cards it gave, and how much of each, and on each node the
//! ids of all cards there. Nodes enter [`CardIds`]; members that run are told their devices, and what they
//! have takes the place of what they asked for: HAMi fills in what a pod leaves out. What nobody wrote, or
//! names a card that its node does not list, tells nothing: where such a pod lies is worked out by the
//! engine.

use std::collections::BTreeMap;

use gangline::{
    bits::CardSet,
    device::{Devices, Slice},
    request::{Apart, CardRequest, CardWant, ShareMemory},
};

use super::hami::{self, Given};
use crate::{api, intake::Member, rules::Templates};

/// The cards of each node, by id: number, and memory in MiB.
#[derive(Clone, Debug, Default)]
pub(crate) struct CardIds {
    nodes: BTreeMap<String, BTreeMap<String, (u8, u32)>>,
}

impl CardIds {
    /// Takes note of what a node says now; whether that is something else than before.
    pub(crate) fn take(&mut self, node: &api::Node) -> bool {
        let ids = hami::ids(&node.metadata.annotations);
        if ids.is_empty() {
            return self.forget(&node.metadata.name);
        }
        let name = String::from(&*node.metadata.name);
        let before = self.nodes.insert(name.clone(), ids);
        before.as_ref() != self.nodes.get(&name)
    }

    /// A node is gone; whether it had said something.
    pub(crate) fn forget(&mut self, node: &str) -> bool {
        self.nodes.remove(node).is_some()
    }

    /// Tells members that run which cards they have, unless Gangline chose these itself.
    pub(crate) fn tell(&self, members: &mut [Member], templates: &mut Templates) {
        for Member { spec, given, .. } in members {
            if spec.devices.is_some() || given.is_empty() {
                continue;
            }
            let Some(there) = spec.node.as_ref().and_then(|node| self.nodes.get(node)) else {
                continue;
            };
            let cards = given.iter().map(|given| there.get(&*given.id).copied());
            let Some(cards) = cards.collect::<Option<Vec<_>>>() else {
                continue;
            };
            let Some(request) = &spec.template.cards else {
                continue;
            };
            let (devices, request) = had(request, given, &cards);
            spec.devices = devices;
            if let Some(request) = request {
                spec.template = templates.with_cards(&spec.template, request);
            }
        }
    }
}

/// The devices that a pod has with these shares of these cards, and what it would have to ask for to get
/// them, if that is something else.
fn had(
    request: &CardRequest,
    given: &[Given],
    cards: &[(u8, u32)],
) -> (Option<Devices>, Option<CardRequest>) {
    let memory_mib = given
        .iter()
        .map(|given| given.memory_mib)
        .max()
        .unwrap_or(0);
    let has_all = given
        .iter()
        .zip(cards)
        .all(|(given, (_, all))| given.memory_mib >= *all);
    if matches!(request.want, CardWant::Whole(_)) && has_all {
        let cards = cards.iter().map(|(card, _)| CardSet(1 << card));
        let cards = cards.fold(CardSet::EMPTY, CardSet::union);
        return (Some(Devices::of_cards(cards)), None);
    }
    let compute_percent = given.iter().map(|given| given.compute_percent).max();
    let compute_percent = compute_percent.unwrap_or(0).min(100);
    let request = CardRequest {
        want: CardWant::Shares {
            count: given.len() as u32,
            // All shares of a member are alike: the largest counts. Who has all of the time is alone on
            // the card.
            memory: if compute_percent == 100 {
                ShareMemory::Milli(1000)
            } else {
                ShareMemory::Mib(memory_mib.max(1))
            },
            compute_milli: compute_percent * 10,
            cards: Apart::Any,
        },
        ..request.clone()
    };
    let mut devices = Devices::NONE;
    let mut shares = cards.iter().map(|&(card, _)| Slice {
        card,
        profile: Slice::SHARE,
        start: 0,
    });
    if given.len() <= Devices::MOST_SLICES && shares.all(|share| devices.push(share)) {
        (Some(devices), Some(request))
    } else {
        (None, None)
    }
}
