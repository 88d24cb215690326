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

use super::{
    NVIDIA,
    ask::{Cut, Each},
};
use crate::{
    api::{self, Labels},
    problem::{FieldPath, Problems},
};

/// The annotation in which a node's agent lists its cards.
pub(super) const REGISTER: &str = "hami.io/node-nvidia-register";
/// The annotation in which HAMi's scheduler lists the cards that it chose for a pod.
const ALLOCATED: &str = "hami.io/vgpu-devices-allocated";

const SPEC: FieldPath<'static> = FieldPath::root("spec");

/// What one container asks for of each of its cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Amounts {
    memory: ShareMemory,
    compute_percent: u32,
}

/// All of a card's memory.
const WHOLE: ShareMemory = ShareMemory::Milli(1000);

/// The share of each card that a pod asks for. `None` when it asks for whole ones.
pub(super) fn share(pod: &api::Pod, problems: &mut Problems) -> Option<Cut> {
    let containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
    let asking: Vec<Amounts> = containers
        .filter_map(|container| amounts(&container.resources, problems))
        .collect();
    // Each container has its own amounts; a member's shares are all alike, so the largest counts, and of
    // amounts that cannot be compared without a card all of it.
    let memory = asking.iter().map(|amounts| amounts.memory);
    let memory = memory.reduce(|one, other| match (one, other) {
        (ShareMemory::Mib(one), ShareMemory::Mib(other)) => ShareMemory::Mib(one.max(other)),
        (ShareMemory::Milli(one), ShareMemory::Milli(other)) => ShareMemory::Milli(one.max(other)),
        _ => WHOLE,
    })?;
    let compute = asking.iter().map(|amounts| amounts.compute_percent).max();
    let compute_milli = compute.unwrap_or(0) * 10;
    // HAMi gives a card of which somebody has all of the time to nobody else.
    let (memory, card_memory_mib) = match memory {
        ShareMemory::Mib(mib) if compute_milli == 1000 => (WHOLE, mib),
        _ if compute_milli == 1000 => (WHOLE, 0),
        memory => (memory, 0),
    };
    if memory == WHOLE && compute_milli == 0 {
        return None;
    }
    Some(Cut {
        said_by: "gpumem or gpucores",
        each: Each::Share {
            memory,
            compute_milli,
        },
        count: None,
        // Cards of one container are different ones; two containers may share one.
        apart: if asking.len() > 1 {
            Apart::Any
        } else {
            Apart::Distinct
        },
        card_memory_mib,
        overhead: Overhead::NONE,
    })
}

/// What a container asks for of each card; `None`: it asks for no card.
fn amounts(resources: &api::ResourceRequirements, problems: &mut Problems) -> Option<Amounts> {
    let asked = |name: &str| {
        let quantity = resources.requests.get(name).or(resources.limits.get(name));
        let amount = quantity.and_then(|quantity| quantity.units().ok());
        amount.filter(|amount| *amount > 0)
    };
    let mut bounded = |part: CardPart, limit: u32| {
        let amount = asked(part.resource())?;
        let fits = u32::try_from(amount).ok().filter(|amount| *amount <= limit);
        Some(fits.unwrap_or_else(|| {
            problems.note(
                "QuantityTooLarge",
                &SPEC,
                format_args!("{}: {amount}; accepted: at most {limit}", part.resource()),
            );
            limit
        }))
    };
    let memory = bounded(CardPart::MemoryMib, u32::MAX);
    let percent = bounded(CardPart::MemoryPercent, 100);
    let compute_percent = bounded(CardPart::ComputePercent, 100);
    let memory = match (memory, percent) {
        (Some(mib), _) => ShareMemory::Mib(mib),
        (None, Some(percent)) => ShareMemory::Milli(percent * 10),
        // Who does not speak of memory gets all of it.
        (None, None) if compute_percent.is_some() || asked(NVIDIA).is_some() => WHOLE,
        (None, None) => return None,
    };
    Some(Amounts {
        memory,
        compute_percent: compute_percent.unwrap_or(0),
    })
}

/// A card as a node's agent describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Card {
    id: String,
    index: u32,
    /// How many shares of it there may be; 0: nobody told.
    #[serde(rename = "count")]
    pub(super) most_shares: u32,
    /// Memory in MiB that may be given out.
    #[serde(rename = "devmem")]
    pub(super) memory_mib: u32,
    /// The product.
    #[serde(rename = "type")]
    product: String,
    mode: String,
    /// HAMi leaves out what is false.
    pub(super) health: bool,
}

impl Card {
    /// The product as nodes name it. HAMi writes who makes it before NVML's name, which begins with that
    /// too, and has blanks.
    pub(super) fn model(&self) -> String {
        let product = self.product.trim();
        let product = product
            .strip_prefix("NVIDIA-")
            .filter(|rest| rest.starts_with("NVIDIA") || rest.starts_with("Tesla"));
        product.unwrap_or(&self.product).trim().replace(' ', "-")
    }

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
    let (&[id, most_shares, memory, _, product, _, health], rest) =
        fields.split_first_chunk::<7>()?;
    let (index, mode) = match rest {
        [] => ("0", ""),
        [index, mode] => (*index, *mode),
        _ => return None,
    };
    Some(Card {
        id: id.into(),
        index: index.parse().ok()?,
        most_shares: most_shares.parse().ok()?,
        memory_mib: memory.parse().ok()?,
        product: product.into(),
        mode: mode.into(),
        health: health.parse().ok()?,
    })
}

/// The cards of a node by their ids: number, and memory in MiB; none unless each has an id of its own.
pub(super) fn ids(node: &Labels) -> BTreeMap<String, (u8, u32)> {
    let listed = node.get(REGISTER).and_then(|text| cards(text.trim()));
    let listed = listed.unwrap_or_default();
    let count = listed.len();
    let numbered = listed.into_iter().zip(0..CardSet::CAPACITY as u8);
    let ids: BTreeMap<_, _> = numbered
        .map(|(card, number)| (card.id, (number, card.memory_mib)))
        .collect();
    if ids.len() == count && !ids.contains_key("") {
        ids
    } else {
        BTreeMap::new()
    }
}

/// A share that HAMi gave to a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    /// Of which card.
    pub(super) id: Box<str>,
    /// Its memory in MiB.
    pub(super) memory_mib: u32,
    /// Its part of the processor time, in percent.
    pub(super) compute_percent: u32,
}

/// What HAMi gave to a pod: `;` behind each container, those that start it first, `:` behind each card,
/// and of each `,` between id, vendor, MiB and percent. While the containers run, those that started the
/// pod have nothing.
pub(super) fn allocated(pod: &api::Pod) -> Vec<Given> {
    let text = pod
        .metadata
        .annotations
        .get(ALLOCATED)
        .map_or("", |text| text);
    let text = text.trim().strip_suffix(';').unwrap_or(text);
    let containers: Vec<&str> = text.split(';').collect();
    let given = |containers: &[&str]| -> Vec<Given> {
        let cards = containers.iter().flat_map(|cards| cards.split(':'));
        cards.filter_map(|card| share_given(card.trim())).collect()
    };
    let starting = containers.len().saturating_sub(pod.spec.containers.len());
    let running = given(containers.get(starting..).unwrap_or_default());
    if running.is_empty() {
        given(&containers)
    } else {
        running
    }
}

fn share_given(text: &str) -> Option<Given> {
    let mut fields = text.split(',');
    let id = fields.next().filter(|id| !id.is_empty())?;
    // An instance is named by its card, and in brackets which of them it is.
    let id = id.split_once('[').map_or(id, |(card, _)| card);
    let _vendor = fields.next()?;
    let mut amount = || fields.next()?.trim().parse().ok();
    Some(Given {
        id: id.into(),
        memory_mib: amount()?,
        compute_percent: amount()?,
    })
}
