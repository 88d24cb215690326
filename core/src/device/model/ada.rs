//! Ada Lovelace: no MIG, no NVLink.
//!
//! Source: hardware notes 3.5, general knowledge; memory as NVML reports it.

use super::{CardModel, Family};

const fn ada(name: &'static str, memory_mib: u32, multiprocessors: u16) -> CardModel {
    CardModel {
        compute_capability: Some((8, 9)),
        ..CardModel::new(name, Family::AdaLovelace, memory_mib, multiprocessors)
    }
}

pub(super) static MODELS: &[CardModel] = &[
    CardModel {
        products: &["NVIDIA-L4"],
        ..ada("L4", 23_034, 58)
    },
    CardModel {
        products: &["NVIDIA-L40S"],
        ..ada("L40S", 46_068, 142)
    },
    CardModel {
        products: &["NVIDIA-GeForce-RTX-4090"],
        notes: "no peer-to-peer between cards, however near they are",
        ..ada("RTX-4090", 24_564, 128)
    },
];
