//! Shares as KAI (Run:ai) writes them.
//!
//! A pod says `gpu-fraction` or `gpu-memory` in an annotation and asks for no GPU. KAI keeps a card
//! of which parts are taken away from everybody else by a reservation pod that asks for the whole
//! card; shares are counted here, so reservation pods are not. A placed pod carries the group of its
//! card in a label; there is one group a card. Source: KAI-Scheduler, `pkg/common/constants`.

use gangline::{
    device::overhead::Overhead,
    request::{Apart, ShareMemory},
};

use super::{
    ANNOTATIONS, Annotations, LABELS, PART_OF_A_CARD,
    ask::{Cut, Each},
    milli,
};
use crate::{
    api::{self, Labels},
    problem::Problems,
};

const FRACTION: &str = "gpu-fraction";
const MEMORY: &str = "gpu-memory";
const CARDS: &str = "gpu-fraction-num-devices";
/// A word that differs in more letters is another one.
const MOST_SLIPS: usize = 2;
const GROUP: &str = "runai-gpu-group";
const GROUPS: &str = "runai-gpu-group/";
/// Namespaces of reservation pods, now and before KAI had its name.
const RESERVATIONS: [&str; 2] = ["kai-resource-reservation", "runai-reservation"];
/// Node labels that put a node into one of KAI's pools, now and before KAI had its name.
const POOLS: [&str; 2] = ["kai.scheduler/node-pool", "runai/node-pool"];

/// The share that a pod asks for.
pub(super) fn share(annotations: &mut Annotations<'_, '_>) -> Option<Cut> {
    let fraction = annotations.read(FRACTION, PART_OF_A_CARD, milli);
    let memory = annotations.read(MEMORY, "MiB, a whole number above 0", |text| {
        text.parse().ok().filter(|mib| *mib > 0)
    });
    if fraction.is_some() && memory.is_some() {
        annotations.refuse(MEMORY, "none besides gpu-fraction");
    }
    let each = match (fraction, memory) {
        // Half a card is half of all it has.
        (Some(milli), _) => Each::Share {
            memory: ShareMemory::Milli(milli),
            compute_milli: milli,
        },
        (None, Some(mib)) => Each::Share {
            memory: ShareMemory::Mib(mib),
            compute_milli: 0,
        },
        (None, None) => {
            if annotations.all.contains_key(CARDS) {
                annotations.refuse(CARDS, "with gpu-fraction or gpu-memory");
            }
            return None;
        }
    };
    let count = annotations.read(CARDS, "a whole number above 0", |text| {
        text.parse().ok().filter(|count| *count > 0)
    });
    Some(Cut {
        said_by: if fraction.is_some() { FRACTION } else { MEMORY },
        each,
        count: Some(count.unwrap_or(1)),
        apart: Apart::Distinct,
        card_memory_mib: 0,
        overhead: Overhead::PROCESS,
    })
}

/// Notes words that are nearly one of KAI's, and such that are in the wrong place: the pod would run
/// without a card.
pub(super) fn complain_of_misspelt(pod: &api::Pod, problems: &mut Problems) {
    let known = [FRACTION, MEMORY, CARDS];
    let metadata = &pod.metadata;
    for (key, _) in metadata.labels.iter() {
        if known.contains(&key) {
            let message = "nobody reads it as a label; accepted: as an annotation";
            problems.note("UnknownLabel", &LABELS.key(key), message);
        }
    }
    for (key, _) in metadata.annotations.iter() {
        let is_misspelt = |known: &&&str| {
            let known: &str = known;
            let distance = strsim::damerau_levenshtein(&key.to_lowercase(), known);
            key != known && distance <= MOST_SLIPS
        };
        if let Some(near) = known
            .iter()
            .find(is_misspelt)
            .filter(|_| !known.contains(&key))
        {
            let message = format_args!("KAI has no such annotation; did you mean {near}?");
            problems.note("UnknownAnnotation", &ANNOTATIONS.key(key), message);
        }
    }
}

/// Whether a pod only keeps a card for those that share it.
pub(super) fn is_reservation(pod: &api::Pod) -> bool {
    RESERVATIONS.contains(&pod.metadata.namespace_or_default())
        && pod.metadata.labels.contains_key(GROUP)
}

/// Whether a node is one of those whose cards KAI shares.
pub(super) fn is_in_pool(labels: &Labels) -> bool {
    POOLS.iter().any(|pool| labels.contains_key(pool))
}

/// The group of the card that a placed pod has a share of; nothing when it has shares of several.
pub(super) fn only_group(labels: &Labels) -> Option<&str> {
    let is_one_of_several = |key: &str| key.starts_with(GROUPS);
    let group = labels.get(GROUP)?;
    (!labels.iter().any(|(key, _)| is_one_of_several(key))).then_some(group)
}
