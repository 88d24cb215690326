//! Cards that somebody else chose for a pod, told by the vendor's ids of them.
//!
//! HAMi writes on each pod that it places the ids of its cards, and on each node the ids of all cards
//! there. Nodes enter [`CardIds`], members that run are told their devices. What nobody wrote, or names a
//! card that its node does not list, tells nothing: where such a pod lies is worked out by the engine.

use std::collections::BTreeMap;

use gangline::{
    bits::CardSet,
    device::{Devices, Slice},
    request::CardWant,
};

use super::hami;
use crate::{api, intake::Member};

/// The numbers of the cards of each node, by id.
#[derive(Clone, Debug, Default)]
pub(crate) struct CardIds {
    nodes: BTreeMap<String, BTreeMap<String, u8>>,
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

    /// Tells members that run on which cards they do, unless Gangline chose these itself.
    pub(crate) fn tell(&self, members: &mut [Member]) {
        for member in members {
            let spec = &mut member.spec;
            if spec.devices.is_some() {
                continue;
            }
            let cards = spec.template.cards.as_ref();
            spec.devices = cards.and_then(|cards| {
                let there = self.nodes.get(spec.node.as_ref()?)?;
                let numbers = member.card_ids.iter().map(|id| there.get(&**id).copied());
                devices(&numbers.collect::<Option<Vec<u8>>>()?, &cards.want)
            });
        }
    }
}

/// These cards, or a share of each.
fn devices(numbers: &[u8], want: &CardWant) -> Option<Devices> {
    if numbers.is_empty() {
        return None;
    }
    match want {
        CardWant::Whole(_) => {
            let cards = numbers.iter().map(|card| CardSet(1 << card));
            let cards = cards.fold(CardSet::EMPTY, CardSet::union);
            Some(Devices::of_cards(cards))
        }
        CardWant::Shares { .. } => {
            let mut devices = Devices::NONE;
            let profile = Slice::SHARE;
            let mut shares = numbers.iter().map(|&card| Slice {
                card,
                profile,
                start: 0,
            });
            shares.all(|share| devices.push(share)).then_some(devices)
        }
        _ => None,
    }
}
