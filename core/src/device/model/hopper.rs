//! Hopper.

use super::{
    CardModel, Confidence, Family,
    table::{engines, geometry, profiles, row},
};
use crate::device::mig::{EIGHTHS, Geometry, Profile};

static H100_80_PROFILES: [Profile; 7] = profiles(
    &EIGHTHS,
    [
        row("1g.10gb", 9_984, 16, engines(1, 1, 1, 0)),
        row("1g.10gb+me", 9_984, 16, engines(1, 1, 1, 1)),
        row("1g.20gb", 20_096, 26, engines(1, 1, 1, 0)),
        row("2g.20gb", 20_096, 32, engines(2, 2, 2, 0)),
        row("3g.40gb", 40_448, 60, engines(3, 3, 3, 0)),
        row("4g.40gb", 40_448, 64, engines(4, 4, 4, 0)),
        row("7g.80gb", 81_152, 132, engines(8, 7, 7, 1)),
    ],
);

static H100_80: Geometry = geometry(
    "H100 80 GB",
    &EIGHTHS,
    &H100_80_PROFILES,
    &H100_80_PROFILES[6],
    Confidence::Measured,
);

pub(super) static MODELS: &[CardModel] = &[CardModel {
    products: &["NVIDIA-H100-80GB-HBM3"],
    compute_capability: Some((9, 0)),
    multiprocessors: Some(132),
    nvlinks: 18,
    pci_device_ids: &[0x2330],
    mig: Some(&H100_80),
    ..CardModel::new("H100-80GB", Family::Hopper, 81_559)
}];
