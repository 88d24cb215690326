//! Shares as HAMi writes them.
//!
//! A pod asks for `nvidia.com/gpu` (how many cards) with `gpumem` or `gpumem-percentage` and
//! `gpucores` (how much of each). What a node's device plugin lists as `nvidia.com/gpu` is how many
//! shares there may be; its cards are in an annotation, and those of a pod that was placed in one of the
//! pod. HAMi's library counts a process's context within `gpumem`, so nothing is added to it. Source:
//! HAMi, `pkg/device`.

use std::collections::BTreeMap;

use gangline::{
    bits::CardSet,
    cluster::spec::CardMode,
    device::{names::CardPart, overhead::Overhead},
    request::{Apart, ShareMemory},
};
use serde::Deserialize;

use super::ask::{Cut, Each};
use crate::{
    api::{self, Labels},
    problem::{FieldPath, Problems},
};

/// The annotation in which a node's agent lists its cards.
pub(super) const REGISTER: &str = "hami.io/node-nvidia-register";
/// The annotation in which HAMi's scheduler lists the cards that it chose for a pod.
const ALLOCATED: &str = "hami.io/vgpu-devices-allocated";

const SPEC: FieldPath<'static> = FieldPath::root("spec");

/// The share of each card that a pod asks for. `None` when it asks for whole ones.
pub(super) fn share(pod: &api::Pod, problems: &mut Problems) -> Option<Cut> {
    let mut asking = 0;
    // Each container has its own amounts; a member's shares are all alike, so the largest counts.
    let containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
    let mut most = [0; 3];
    for container in containers {
        let parts = [
            CardPart::MemoryMib,
            CardPart::MemoryPercent,
            CardPart::ComputePercent,
        ];
        let amounts = parts.map(|part| {
            let resources = &container.resources;
            let name = part.resource();
            let quantity = resources.requests.get(name).or(resources.limits.get(name));
            quantity
                .and_then(|quantity| quantity.units().ok())
                .unwrap_or(0)
        });
        asking += u32::from(amounts.iter().any(|amount| *amount > 0));
        for (most, amount) in most.iter_mut().zip(amounts) {
            *most = amount.max(*most);
        }
    }
    let [memory, memory_percent, compute_percent] = most;
    let mut bounded = |part: CardPart, amount: i64, limit: u32| {
        u32::try_from(amount)
            .ok()
            .filter(|amount| *amount <= limit)
            .unwrap_or_else(|| {
                problems.note(
                    "QuantityTooLarge",
                    &SPEC,
                    format_args!("{}: {amount}; accepted: at most {limit}", part.resource()),
                );
                limit
            })
    };
    let memory = bounded(CardPart::MemoryMib, memory, u32::MAX);
    let memory_percent = bounded(CardPart::MemoryPercent, memory_percent, 100);
    let compute_percent = bounded(CardPart::ComputePercent, compute_percent, 100);
    let memory = match (memory, memory_percent, compute_percent) {
        (0, 0, 0) => return None,
        // Who does not speak of memory gets all of it.
        (0, 0, _) => ShareMemory::Milli(1000),
        (0, percent, _) => ShareMemory::Milli(percent * 10),
        (mib, ..) => ShareMemory::Mib(mib),
    };
    Some(Cut {
        said_by: "gpumem or gpucores",
        each: Each::Share {
            memory,
            compute_milli: compute_percent * 10,
        },
        count: None,
        // Cards of one container are different ones; two containers may share one.
        apart: if asking > 1 {
            Apart::Any
        } else {
            Apart::Distinct
        },
        overhead: Overhead::NONE,
    })
}

/// A card as a node's agent describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Card {
    id: String,
    index: u32,
    /// Memory in MiB that may be given out.
    #[serde(rename = "devmem")]
    pub(super) memory_mib: u32,
    /// The product.
    #[serde(rename = "type")]
    pub(super) product: String,
    mode: String,
    /// HAMi leaves out what is false.
    pub(super) health: bool,
}

impl Card {
    pub(super) fn mode(&self) -> CardMode {
        match &*self.mode {
            "mig" => CardMode::MigDynamic,
            _ => CardMode::Shared,
        }
    }
}

/// What [`cards`] accepts.
pub(super) const ACCEPTED: &str = "what HAMi's device plugin writes";

/// The cards that a node's agent lists, in the order of their numbers, or where these do not number
/// them in the order of the list. As JSON, or in the form of HAMi up to 2.4: `:` behind each card,
/// `,` between id, count, memory, cores, product, NUMA node, health, number and mode.
pub(super) fn cards(text: &str) -> Option<Vec<Card>> {
    let mut cards: Vec<Card> = if text.starts_with('[') {
        serde_json::from_str(text).ok()?
    } else {
        let listed = text.split(':').filter(|card| !card.is_empty());
        listed.map(listed_card).collect::<Option<_>>()?
    };
    let mut numbers: Vec<u32> = cards.iter().map(|card| card.index).collect();
    numbers.sort_unstable();
    if numbers.iter().copied().eq(0..numbers.len() as u32) {
        cards.sort_by_key(|card| card.index);
    }
    (!cards.is_empty()).then_some(cards)
}

fn listed_card(text: &str) -> Option<Card> {
    let fields: Vec<&str> = text.split(',').collect();
    let (&[id, _, memory, _, product, _, health], rest) = fields.split_first_chunk::<7>()?;
    let (index, mode) = match rest {
        [] => ("0", ""),
        [index, mode] => (*index, *mode),
        _ => return None,
    };
    Some(Card {
        id: id.into(),
        index: index.parse().ok()?,
        memory_mib: memory.parse().ok()?,
        product: product.into(),
        mode: mode.into(),
        health: health.parse().ok()?,
    })
}

/// The numbers of a node's cards by their ids; none unless each has an id of its own.
pub(super) fn ids(node: &Labels) -> BTreeMap<String, u8> {
    let listed = node.get(REGISTER).and_then(|text| cards(text.trim()));
    let listed = listed.unwrap_or_default();
    let count = listed.len();
    let numbered = listed.into_iter().zip(0..CardSet::CAPACITY as u8);
    let ids: BTreeMap<String, u8> = numbered.map(|(card, number)| (card.id, number)).collect();
    if ids.len() == count && !ids.contains_key("") {
        ids
    } else {
        BTreeMap::new()
    }
}

/// The ids of the cards that HAMi chose for a pod, one for each share: `;` behind each container, `:`
/// behind each card, `,` behind its id. A share of a MIG device names no card that could be shared.
pub(super) fn allocated(pod: &Labels) -> Vec<Box<str>> {
    let text = pod.get(ALLOCATED).map_or("", |text| text);
    let shares = text.split([';', ':']).map(str::trim);
    let ids = shares.filter_map(|share| Some(share.split_once(',')?.0));
    ids.map(Box::from).collect()
}
