//! AMD Instinct: no MIG; partitions (SPX to CPX, NPS1 to NPS4) are made by the driver and come as
//! resources of their own.
//!
//! Source: hardware notes 3.5, general knowledge.

use super::{CardModel, Family};

pub(super) static MODELS: &[CardModel] = &[
    CardModel {
        products: &["AMD_Instinct_MI210"],
        notes: "XGMI in hives of four",
        ..CardModel::new("MI210", Family::Cdna2, 65_536, 104)
    },
    CardModel {
        products: &["AMD_Instinct_MI250", "AMD_Instinct_MI250X"],
        notes: "numbers of one of its two dies, each of which is a device; linked by XGMI",
        ..CardModel::new("MI250", Family::Cdna2, 65_536, 104)
    },
    CardModel {
        products: &["AMD_Instinct_MI300X_OAM", "AMD_Instinct_MI300X"],
        notes: "linked by XGMI",
        ..CardModel::new("MI300X", Family::Cdna3, 196_608, 304)
    },
    CardModel {
        products: &["AMD_Instinct_MI325X_OAM", "AMD_Instinct_MI325X"],
        notes: "linked by XGMI",
        ..CardModel::new("MI325X", Family::Cdna3, 262_144, 304)
    },
];
