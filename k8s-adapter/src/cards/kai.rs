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
    Annotations, PART_OF_A_CARD,
    ask::{Cut, Each},
    milli,
};
use crate::api::{self, Labels};

const FRACTION: &str = "gpu-fraction";
const MEMORY: &str = "gpu-memory";
const CARDS: &str = "gpu-fraction-num-devices";
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
        (None, None) => return None,
    };
    let count = annotations.read(CARDS, "a whole number above 0", |text| {
        text.parse().ok().filter(|count| *count > 0)
    });
    Some(Cut {
        said_by: if fraction.is_some() { FRACTION } else { MEMORY },
        each,
        count: Some(count.unwrap_or(1)),
        apart: Apart::Distinct,
        overhead: Overhead::PROCESS,
    })
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
