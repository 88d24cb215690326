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
    &[
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
    &[
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
    &[
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

const BRIDGED: &str = "NVLink only by a bridge between two cards";

const fn a100(name: &'static str, memory_mib: u32, mig: &'static Geometry) -> CardModel {
    CardModel {
        compute_capability: Some((8, 0)),
        mig: Some(mig),
        ..CardModel::new(name, Family::Ampere, memory_mib, 108)
    }
}

const fn without_mig(name: &'static str, memory_mib: u32, multiprocessors: u16) -> CardModel {
    CardModel {
        compute_capability: Some((8, 6)),
        ..CardModel::new(name, Family::Ampere, memory_mib, multiprocessors)
    }
}

pub(super) static MODELS: &[CardModel] = &[
    CardModel {
        products: &["NVIDIA-A100-SXM4-40GB"],
        nvlinks: 12,
        pci_device_ids: &[0x20B0],
        ..a100("A100-40GB", 40_960, &A100_40)
    },
    CardModel {
        products: &["NVIDIA-A100-PCIE-40GB"],
        pci_device_ids: &[0x20B1, 0x20F1],
        bridged: true,
        notes: BRIDGED,
        ..a100("A100-PCIE-40GB", 40_960, &A100_40)
    },
    CardModel {
        products: &["NVIDIA-A800-40GB-Active", "NVIDIA-A800-PCIE-40GB"],
        pci_device_ids: &[0x20F6],
        bridged: true,
        notes: BRIDGED,
        ..a100("A800-40GB", 40_960, &A100_40)
    },
    CardModel {
        products: &["NVIDIA-A100-SXM4-80GB"],
        nvlinks: 12,
        pci_device_ids: &[0x20B2],
        ..a100("A100-80GB", 81_920, &A100_80)
    },
    CardModel {
        products: &["NVIDIA-A100-80GB-PCIe", "NVIDIA-A100-PCIE-80GB"],
        pci_device_ids: &[0x20B5],
        bridged: true,
        notes: BRIDGED,
        ..a100("A100-PCIE-80GB", 81_920, &A100_80)
    },
    CardModel {
        products: &["NVIDIA-A800-SXM4-80GB"],
        nvlinks: 8,
        pci_device_ids: &[0x20F3],
        ..a100("A800-80GB", 81_920, &A100_80)
    },
    CardModel {
        products: &["NVIDIA-A800-80GB-PCIe"],
        pci_device_ids: &[0x20F5],
        bridged: true,
        notes: BRIDGED,
        ..a100("A800-PCIE-80GB", 81_920, &A100_80)
    },
    CardModel {
        products: &["NVIDIA-A30"],
        compute_capability: Some((8, 0)),
        pci_device_ids: &[0x20B7],
        mig: Some(&A30),
        bridged: true,
        notes: BRIDGED,
        ..CardModel::new("A30", Family::Ampere, 24_576, 56)
    },
    CardModel {
        products: &["NVIDIA-A10", "NVIDIA-A10G"],
        ..without_mig("A10", 23_028, 72)
    },
    CardModel {
        products: &["NVIDIA-A40"],
        bridged: true,
        notes: BRIDGED,
        ..without_mig("A40", 46_068, 84)
    },
];
