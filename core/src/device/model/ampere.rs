//! Ampere: A100, A800, A30 with MIG; A10, A40 without.
//!
//! Tables: hardware notes 1.4, from `nvidia-smi mig -lgip` listings and mig-parted#97. Placements
//! were seen on A100 40 GB and 80 GB. Models: hardware notes 3.5; PCI ids: 1.5.

use super::{
    CardModel, Confidence, Family,
    table::{engines, geometry, profiles, row},
};
use crate::device::mig::{EIGHTHS, FOURTHS, Geometry, Profile};

/// 98 of the die's 108 multiprocessors are usable in MIG.
static A100_40_PROFILES: [Profile; 7] = profiles(
    &EIGHTHS,
    [
        row("1g.5gb", 4_864, 14, engines(1, 0, 0, 0)),
        row("1g.5gb+me", 4_864, 14, engines(1, 1, 1, 1)),
        row("1g.10gb", 9_856, 14, engines(1, 1, 0, 0)),
        row("2g.10gb", 9_856, 28, engines(2, 1, 0, 0)),
        row("3g.20gb", 19_968, 42, engines(3, 2, 0, 0)),
        row("4g.20gb", 19_968, 56, engines(4, 2, 0, 0)),
        row("7g.40gb", 40_192, 98, engines(7, 5, 1, 1)),
    ],
);

static A100_40: Geometry = geometry(
    "A100 40 GB",
    &EIGHTHS,
    &A100_40_PROFILES,
    &A100_40_PROFILES[6],
    Confidence::Measured,
);

/// GiB values of `nvidia-smi`, multiprocessors and engines as the 40 GB card's.
static A100_80_PROFILES: [Profile; 7] = profiles(
    &EIGHTHS,
    [
        row("1g.10gb", 9_728, 14, engines(1, 0, 0, 0)),
        row("1g.10gb+me", 9_728, 14, engines(1, 1, 1, 1)),
        row("1g.20gb", 19_968, 14, engines(1, 1, 0, 0)),
        row("2g.20gb", 19_968, 28, engines(2, 1, 0, 0)),
        row("3g.40gb", 40_192, 42, engines(3, 2, 0, 0)),
        row("4g.40gb", 40_192, 56, engines(4, 2, 0, 0)),
        row("7g.80gb", 80_640, 98, engines(7, 5, 1, 1)).also(&["7g.79gb"]),
    ],
);

static A100_80: Geometry = geometry(
    "A100 80 GB",
    &EIGHTHS,
    &A100_80_PROFILES,
    &A100_80_PROFILES[6],
    Confidence::Measured,
);

/// The driver prints one decoder for 1g, the guide none; the driver is believed.
static A30_PROFILES: [Profile; 5] = profiles(
    &FOURTHS,
    [
        row("1g.6gb", 5_952, 14, engines(1, 1, 0, 0)),
        row("1g.6gb+me", 5_952, 14, engines(1, 1, 1, 1)),
        row("2g.12gb", 11_968, 28, engines(2, 2, 0, 0)),
        row("2g.12gb+me", 11_968, 28, engines(2, 2, 1, 1)),
        row("4g.24gb", 24_000, 56, engines(4, 4, 1, 1)),
    ],
);

static A30: Geometry = geometry(
    "A30",
    &FOURTHS,
    &A30_PROFILES,
    &A30_PROFILES[4],
    Confidence::Measured,
);

const fn ampere(name: &'static str, memory_mib: u32, multiprocessors: u16) -> CardModel {
    CardModel {
        compute_capability: Some((8, 0)),
        multiprocessors: Some(multiprocessors),
        ..CardModel::new(name, Family::Ampere, memory_mib)
    }
}

pub(super) static MODELS: &[CardModel] = &[
    CardModel {
        products: &[
            "NVIDIA-A100-SXM4-40GB",
            "A100-SXM4-40GB",
            "NVIDIA-A800-SXM4-40GB",
        ],
        nvlinks: 12,
        pci_device_ids: &[0x20B0],
        mig: Some(&A100_40),
        ..ampere("A100-40GB", 40_960, 108)
    },
    CardModel {
        products: &["NVIDIA-A100-SXM4-80GB", "A100-SXM4-80GB"],
        nvlinks: 12,
        pci_device_ids: &[0x20B2],
        mig: Some(&A100_80),
        ..ampere("A100-80GB", 81_920, 108)
    },
    CardModel {
        products: &["NVIDIA-A30", "A30"],
        pci_device_ids: &[0x20B7],
        mig: Some(&A30),
        ..ampere("A30", 24_576, 56)
    },
];
