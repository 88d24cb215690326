//! Volta and Turing: no MIG.
//!
//! Source: hardware notes 3.5, general knowledge; memory as NVML reports it.

use super::{CardModel, Family};

pub(super) static MODELS: &[CardModel] = &[
    CardModel {
        products: &["Tesla-V100-SXM2-16GB"],
        compute_capability: Some((7, 0)),
        nvlinks: 6,
        ..CardModel::new("V100-16GB", Family::Volta, 16_160, 80)
    },
    CardModel {
        products: &["Tesla-V100-SXM2-32GB", "Tesla-V100-SXM3-32GB"],
        compute_capability: Some((7, 0)),
        nvlinks: 6,
        ..CardModel::new("V100-32GB", Family::Volta, 32_510, 80)
    },
    CardModel {
        products: &["Tesla-T4"],
        compute_capability: Some((7, 5)),
        ..CardModel::new("T4", Family::Turing, 15_360, 40)
    },
];
