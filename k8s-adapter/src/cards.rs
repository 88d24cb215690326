//! Cards and parts of cards: what pods ask for and what nodes have, in all the ways people say it.
//!
//! Amounts by resource name, labels and annotations of pods and nodes enter; the core's
//! [`CardRequest`](gangline::request::CardRequest) and
//! [`NodeCards`](gangline::cluster::NodeCards) leave. All cards of NVIDIA's device plugin have one
//! kind, `nvidia.com/gpu`: MIG devices, replicas and shares are parts of them, whatever name they go
//! by. What cannot be read is noted as a problem and left out; nothing here decides where anything
//! goes. The annotations are described in `docs/input.md`.

use std::fmt;

use gangline::{bits::CardSet, device::names::CardPart};

use crate::{
    api::{self, Labels},
    problem::{FieldPath, Problems},
    quantity::{Quantity, excerpt},
};

mod ask;
mod declared;
pub(crate) mod given;
mod hami;
mod ids;
mod kai;
mod node;
mod overhead;
mod settle;
#[cfg(test)]
mod tests;

pub(crate) use ask::{Asked, request};
pub(crate) use hami::Given;
pub(crate) use ids::CardIds;
pub(crate) use node::{Offered, node_cards};
pub(crate) use settle::{complain_of_absent, exclude_others, share_where_shared};

/// The kind of all cards of NVIDIA's device plugin.
const NVIDIA: &str = "nvidia.com/gpu";

static METADATA: FieldPath<'static> = FieldPath::root("metadata");
static ANNOTATIONS: FieldPath<'static> = METADATA.name("annotations");
static LABELS: FieldPath<'static> = METADATA.name("labels");

/// Annotations of one object, read one by one; what cannot be read is noted.
struct Annotations<'a, 'p> {
    all: &'a Labels,
    problems: &'p mut Problems,
}

impl<'a> Annotations<'a, '_> {
    /// The value of an annotation, if it is there and can be read.
    fn read<T>(
        &mut self,
        key: &str,
        accepted: impl fmt::Display,
        parse: impl FnOnce(&'a str) -> Option<T>,
    ) -> Option<T> {
        let text = self.all.get(key)?;
        let value = parse(text.trim());
        if value.is_none() {
            self.refuse(key, accepted);
        }
        value
    }

    /// `true` or `false`; absent means false.
    fn flag(&mut self, key: &str) -> bool {
        let flag = self.read(key, "true, false", |text| text.parse().ok());
        flag.unwrap_or(false)
    }

    /// Notes that an annotation's value is not accepted.
    fn refuse(&mut self, key: &str, accepted: impl fmt::Display) {
        let text = self.all.get(key).map_or("", |text| text);
        self.problems.note(
            "InvalidAnnotation",
            &ANNOTATIONS.key(key),
            format_args!("{:?}; accepted: {accepted}", excerpt(text)),
        );
    }
}

/// Bytes such as `20Gi` as whole MiB, rounded up; nothing for what is no amount, and for less than one
/// MiB: who writes `20` has forgotten the unit.
fn mib(text: &str) -> Option<u32> {
    let bytes = u64::try_from(Quantity::new(text).units().ok()?).ok()?;
    let mib = u32::try_from(bytes.div_ceil(1 << 20)).ok()?;
    (bytes >= 1 << 20).then_some(mib)
}

/// A part of one card such as `0.5`, `500m` or `50%`, in thousandths, rounded up.
fn milli(text: &str) -> Option<u32> {
    let milli = match text.strip_suffix('%') {
        Some(percent) => {
            let thousandths = Quantity::new(percent).milli().ok()?;
            thousandths / 100 + i128::from(thousandths % 100 > 0)
        }
        None => Quantity::new(text).milli().ok()?,
    };
    let milli = u32::try_from(milli).ok()?;
    (1..=1000).contains(&milli).then_some(milli)
}

/// What [`milli`] accepts.
const PART_OF_A_CARD: &str = "a part of one card such as 0.5, 500m or 50%, above 0 and at most 1";

/// Numbers of cards such as `0,1` or `0,4-7`.
fn card_numbers(text: &str) -> Option<CardSet> {
    let number = |text: &str| {
        let number = text.trim().parse::<u32>().ok()?;
        (number < CardSet::CAPACITY).then_some(number)
    };
    let mut cards = CardSet::EMPTY;
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high) = (number(low)?, number(high)?);
        if low > high {
            return None;
        }
        for card in low..=high {
            cards = cards.union(CardSet(1 << card));
        }
    }
    Some(cards)
}

/// What somebody else gave to a pod that is placed.
pub(crate) fn given_to(pod: &api::Pod) -> Vec<Given> {
    if pod.spec.node_name.is_empty() {
        return Vec::new();
    }
    hami::allocated(pod)
}

/// Whether it counts parts of cards of NVIDIA's.
fn is_vgpu(part: CardPart) -> bool {
    match part {
        CardPart::MemoryMib | CardPart::MemoryPercent | CardPart::ComputePercent => true,
        CardPart::NeuronCores => false,
    }
}
