//! Cards in the short form of a scenario: what nodes have, and what pods want of them.
//!
//! Data enters through serde as fields of [`NodeShape`] and [`PodShape`], and leaves as the engine's
//! `NodeCards`, `CardRequest` and `Devices`. Errors say what is wrong with a value and what would be
//! accepted. Whether a node has such cards is the engine's to say.

use gangline::{
    bits::CardSet,
    cluster::spec::{CardMode, NodeCards, NodeSpec},
    device::{Devices, Slice, model_of},
    request::{CardRequest, CardWant, ShareMemory, SliceChoice, SliceRequest},
};

use super::{
    build::Wrong,
    shape::{NodeShape, PodShape},
    value::USUAL_KIND,
};
use crate::quantity::Quantity;

mod value;

use value::Held;
pub use value::{
    CommunicatorShape, HeldPart, Instance, ModeShape, Modes, OverheadShape, ShareAmount,
    ShareShape, SliceShape,
};

/// An amount of memory in MiB, rounded up.
fn mib(field: &str, quantity: &Quantity) -> Result<u32, Wrong> {
    let bytes = quantity
        .units()
        .map_err(|error| format!("{field}: {error}"))?;
    let mib = u64::try_from(bytes).map(|bytes| bytes.div_ceil(1 << 20));
    let mib = mib.ok().and_then(|mib| u32::try_from(mib).ok());
    mib.ok_or_else(|| {
        format!(
            "{field}: {quantity}; accepted: 0 to {} MiB, as 40Gi or 512Mi",
            u32::MAX
        )
    })
}

/// Card numbers as a set.
pub(super) fn card_set(cards: &[u32]) -> Result<CardSet, Wrong> {
    cards.iter().try_fold(CardSet::EMPTY, |set, &card| {
        if card < CardSet::CAPACITY {
            Ok(set.union(CardSet(1 << card)))
        } else {
            Err(format!(
                "card {card} does not exist; accepted: 0 to {}",
                CardSet::CAPACITY - 1
            ))
        }
    })
}

/// Lays the given fields over what is known of a node's cards. `model` holds for all kinds, the
/// others for the first one.
pub(super) fn node_cards(shape: &NodeShape, known: &[NodeCards]) -> Result<Vec<NodeCards>, Wrong> {
    let mut all = known.to_vec();
    if let Some(counts) = &shape.cards {
        let cards = counts.0.iter().map(|(kind, &count)| {
            let known = known.iter().find(|cards| cards.kind == *kind);
            NodeCards {
                kind: kind.clone(),
                count,
                // The device plugin that tells a new number tells health anew.
                unhealthy: CardSet::EMPTY,
                ..known.cloned().unwrap_or_default()
            }
        });
        all = cards.collect();
    }
    for cards in &mut all {
        if let Some(model) = &shape.model {
            cards.model.clone_from(model);
        }
    }
    if all.is_empty() && shape.slices.is_some() {
        all.push(NodeCards {
            kind: USUAL_KIND.to_owned(),
            model: shape.model.clone().unwrap_or_default(),
            ..NodeCards::default()
        });
    }
    let Some(first) = all.first_mut() else {
        let given = [
            ("unhealthy", shape.unhealthy.is_some()),
            ("card_memory", shape.card_memory.is_some()),
            ("modes", shape.modes.is_some()),
            ("mps", shape.mps.is_some()),
            ("most_shares", shape.most_shares.is_some()),
            ("changing", shape.changing.is_some()),
            ("withheld", shape.withheld.is_some()),
            ("links", shape.links.is_some()),
        ];
        return match given.iter().find(|(_, given)| *given) {
            Some((field, _)) => Err(format!("{field}: the node has no cards")),
            None => Ok(all),
        };
    };
    if let Some(unhealthy) = &shape.unhealthy {
        let there = first.count;
        if let Some(card) = unhealthy.iter().find(|card| **card >= there) {
            return Err(format!(
                "unhealthy: card {card} of {there} cards; accepted: numbers below that"
            ));
        }
        first.unhealthy = card_set(unhealthy)?;
    }
    if let Some(memory) = &shape.card_memory {
        first.memory_mib = mib("card_memory", memory)?;
    }
    if let Some(modes) = &shape.modes {
        first.modes = match modes {
            Modes::All(mode) => vec![mode.into()],
            // One in a list would pass for the mode of all; other lists the engine checks.
            Modes::Each(modes) if modes.len() == 1 && first.count != 1 => {
                return Err(format!(
                    "modes: 1 in a list for {} cards; accepted: a mode without a list for all, or one for \
                     each",
                    first.count
                ));
            }
            Modes::Each(modes) => modes.iter().map(CardMode::from).collect(),
        };
    }
    first.mps = shape.mps.unwrap_or(first.mps);
    first.most_shares = shape.most_shares.unwrap_or(first.most_shares);
    first.is_changing = shape.changing.unwrap_or(first.is_changing);
    first.withheld = shape.withheld.unwrap_or(first.withheld);
    if let Some(links) = &shape.links {
        first.links = Some(links.clone());
    }
    if let Some(slices) = &shape.slices {
        first.slices.clone_from(slices);
    }
    Ok(all)
}

/// What a pod asks of the cards of its node, its given fields laid over `base`.
pub(super) fn request(
    shape: &PodShape,
    base: Option<CardRequest>,
) -> Result<Option<CardRequest>, Wrong> {
    let kind = shape.card_kind.as_deref().unwrap_or(USUAL_KIND);
    let mut wants: Vec<(String, CardWant)> = Vec::new();
    let mut bare = false;
    if let Some(cards) = &shape.cards {
        let counts = cards.0.iter().filter(|(_, count)| **count > 0);
        wants.extend(counts.map(|(kind, &count)| (kind.clone(), CardWant::Whole(count))));
        bare = wants.is_empty();
    }
    let cards = shape.on.unwrap_or_default();
    let slices = slices(shape)?;
    if !slices.is_empty() {
        wants.push((kind.to_owned(), CardWant::Slices { slices, cards }));
    }
    if let Some(share) = &shape.share {
        let compute = share.compute.as_ref().map_or(Ok(0), compute_milli)?;
        let want = CardWant::Shares {
            count: share.count.unwrap_or(1),
            memory: share.memory.map_or(ShareMemory::Mib(0), |amount| amount.0),
            compute_milli: compute,
            cards,
        };
        wants.push((kind.to_owned(), want));
    }
    if let Some(count) = shape.replicas {
        wants.push((kind.to_owned(), CardWant::Replicas { count, cards }));
    }
    let mut wants = wants.into_iter();
    let mut request = match (wants.next(), wants.next()) {
        (_, Some((kind, _))) => {
            return Err(format!(
                "cards: {kind}: a pod asks for cards of one kind, and whole or in one way of parts"
            ));
        }
        (Some((kind, want)), None) => CardRequest {
            kind,
            want,
            ..base.unwrap_or_default()
        },
        (None, None) if bare => return Ok(None),
        (None, None) => match base {
            Some(base) => base,
            None => return no_cards(shape).map(|()| None),
        },
    };
    if shape.on.is_some() && request.whole_cards() > 0 {
        return Err("on: of whole cards; accepted: of slices, shares or replicas".to_owned());
    }
    if !shape.models.is_empty() {
        request.models.clone_from(&shape.models);
    }
    if let Some(memory) = &shape.card_memory {
        request.min_card_memory_mib = mib("card_memory", memory)?;
    }
    request.near = shape.near.unwrap_or(request.near);
    if let Some(only) = &shape.only {
        request.only = Some(card_set(only)?);
    }
    if let Some(group) = &shape.share_group {
        request.share_group.clone_from(group);
    }
    if let Some(owner) = &shape.exclusive {
        request.exclusive.clone_from(owner);
    }
    if let Some(overhead) = shape.overhead {
        request.overhead = overhead.into();
    }
    Ok(Some(request))
}

fn slices(shape: &PodShape) -> Result<Vec<SliceRequest>, Wrong> {
    let by_profile = shape.slices.iter().map(|(profile, &count)| SliceRequest {
        count,
        slice: SliceChoice::Profile(profile.clone()),
    });
    let mut slices: Vec<SliceRequest> = by_profile.collect();
    if let Some(slice) = &shape.slice {
        let memory = slice.memory.as_ref();
        slices.push(SliceRequest {
            count: slice.count.unwrap_or(1),
            slice: SliceChoice::AtLeast {
                memory_mib: memory.map_or(Ok(0), |memory| mib("slice.memory", memory))?,
                compute_slices: slice.compute,
            },
        });
    }
    Ok(slices)
}

fn compute_milli(quantity: &Quantity) -> Result<u32, Wrong> {
    let milli = quantity.milli().ok();
    let milli = milli.and_then(|milli| u32::try_from(milli).ok());
    milli.ok_or_else(|| {
        format!("share.compute: {quantity}; accepted: a part of a card, as 500m or 0.5")
    })
}

/// Refuses conditions on cards that nobody asks for: they would be silently without effect.
fn no_cards(shape: &PodShape) -> Result<(), Wrong> {
    let given = [
        ("card_kind", shape.card_kind.is_some()),
        ("on", shape.on.is_some()),
        ("near", shape.near.is_some()),
        ("models", !shape.models.is_empty()),
        ("card_memory", shape.card_memory.is_some()),
        ("only", shape.only.is_some()),
        ("share_group", shape.share_group.is_some()),
        ("exclusive", shape.exclusive.is_some()),
        ("overhead", shape.overhead.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((field, _)) => Err(format!(
            "{field}: the pod asks for no cards; accepted: beside cards, slices, slice, share or \
             replicas"
        )),
        None => Ok(()),
    }
}

/// The devices that somebody else gave a pod on a node.
pub(super) fn held(
    cards: Option<&[u32]>,
    parts: &[HeldPart],
    node: Option<&NodeSpec>,
) -> Result<Option<Devices>, Wrong> {
    if cards.is_none() && parts.is_empty() {
        return Ok(None);
    }
    let mut devices = Devices::of_cards(card_set(cards.unwrap_or_default())?);
    for held in parts {
        let (profile, start) = match &held.part {
            Held::Share => (Slice::SHARE, 0),
            Held::Replica => (Slice::REPLICA, 0),
            Held::Instance(Instance(instance)) => {
                (profile_id(node, &instance.profile)?, instance.start)
            }
        };
        let slice = Slice {
            card: held.card,
            profile,
            start,
        };
        if !devices.push(slice) {
            return Err(format!(
                "parts: {} of them; accepted: at most {}",
                parts.len(),
                Devices::MOST_SLICES
            ));
        }
    }
    Ok(Some(devices))
}

/// The vendor's number of a profile on the cards of a node.
fn profile_id(node: Option<&NodeSpec>, profile: &str) -> Result<u8, Wrong> {
    let cards = node.and_then(|node| node.cards.first());
    let product = cards.map_or("", |cards| cards.model.as_str());
    let geometry = cards.and_then(|cards| model_of(cards)?.mig);
    let found = geometry.and_then(|geometry| geometry.get(geometry.profile(profile)?));
    found
        .map(|profile| profile.id)
        .ok_or_else(|| format!("parts: {product:?} has no MIG profile {profile:?}"))
}
