//! Blackwell for data centres: B200, B300, GB200, GB300.
//!
//! Tables: hardware notes 1.4, from mig-parted#166, #187 and #227, gpu-operator#1242, #1303 and
//! #1351 and a B200 listing. Placements are inferred from the same instance counts (7/4/3/2/1/1) as
//! Hopper's, and from NVIDIA's k8s-test-infra, which infers them too. The MIG guide prints other
//! engines than the driver; the driver is believed. Models: hardware notes 3.5; PCI ids: 1.5.

use super::{
    CardModel,
    Confidence::{Inferred, Measured},
    Family,
    table::{engines, geometry, inferred, profiles, row},
};
use crate::device::mig::{EIGHTHS, Engines, Geometry, Profile};

/// Engines by profile. Decoders and JPEG engines from 3g up are inferred.
const ENGINES: [Engines; 7] = [
    engines(2, 1, 1, 0),
    engines(2, 1, 1, 1),
    engines(2, 1, 1, 0),
    engines(4, 2, 2, 0),
    engines(6, 3, 3, 0),
    engines(8, 4, 4, 0),
    engines(16, 7, 7, 1),
];

/// Early drivers gave 1g 22.00 GiB.
static B200_PROFILES: [Profile; 7] = profiles(
    &EIGHTHS,
    &[
        row("1g.23gb", 20_992, 18, ENGINES[0]),
        row("1g.23gb+me", 20_992, 18, ENGINES[1]),
        row("1g.45gb", 45_312, 30, ENGINES[2]),
        row("2g.45gb", 45_312, 36, ENGINES[3]),
        row("3g.90gb", 91_136, 70, ENGINES[4]),
        row("4g.90gb", 91_136, 72, ENGINES[5]),
        row("7g.180gb", 182_784, 148, ENGINES[6]),
    ],
);

/// Two sets of names, by how much memory the driver keeps; 20.00 GiB is the lesser 1g seen.
static GB200_PROFILES: [Profile; 7] = profiles(
    &EIGHTHS,
    &[
        row("1g.23gb", 20_480, 18, ENGINES[0]).also(&["1g.24gb"]),
        row("1g.23gb+me", 20_480, 18, ENGINES[1]).also(&["1g.24gb+me"]),
        row("1g.47gb", 46_592, 32, ENGINES[2]),
        row("2g.47gb", 46_592, 38, ENGINES[3]),
        inferred("3g.93gb", 93, 4, 74, ENGINES[4]).also(&["3g.95gb"]),
        inferred("4g.93gb", 93, 4, 76, ENGINES[5]).also(&["4g.95gb"]),
        inferred("7g.186gb", 186, 8, 152, ENGINES[6]).also(&["7g.189gb"]),
    ],
);

/// Multiprocessors and copy engines are the B200's.
static B300_PROFILES: [Profile; 7] = profiles(
    &EIGHTHS,
    &[
        inferred("1g.34gb", 34, 1, 18, ENGINES[0]),
        inferred("1g.34gb+me", 34, 1, 18, ENGINES[1]),
        inferred("1g.67gb", 67, 2, 30, ENGINES[2]),
        inferred("2g.67gb", 67, 2, 36, ENGINES[3]),
        inferred("3g.135gb", 135, 4, 70, ENGINES[4]),
        inferred("4g.135gb", 135, 4, 72, ENGINES[5]),
        inferred("7g.269gb", 269, 8, 148, ENGINES[6]),
    ],
);

/// Multiprocessors and copy engines are the GB200's.
static GB300_PROFILES: [Profile; 7] = profiles(
    &EIGHTHS,
    &[
        inferred("1g.35gb", 35, 1, 18, ENGINES[0]),
        inferred("1g.35gb+me", 35, 1, 18, ENGINES[1]),
        inferred("1g.70gb", 70, 2, 32, ENGINES[2]),
        inferred("2g.70gb", 70, 2, 38, ENGINES[3]),
        inferred("3g.139gb", 139, 4, 74, ENGINES[4]),
        inferred("4g.139gb", 139, 4, 76, ENGINES[5]),
        inferred("7g.278gb", 278, 8, 152, ENGINES[6]),
    ],
);

const fn eighths(name: &'static str, profiles: &'static [Profile; 7]) -> Geometry {
    geometry(name, &EIGHTHS, profiles, &profiles[6], Inferred)
}

static B200: Geometry = eighths("B200 180 GB", &B200_PROFILES);
static GB200: Geometry = eighths("GB200", &GB200_PROFILES);
static B300: Geometry = eighths("B300", &B300_PROFILES);
static GB300: Geometry = eighths("GB300", &GB300_PROFILES);

const MULTI_NODE: &str = "NVLink reaches the other nodes of its rack";

const fn blackwell(name: &'static str, memory_mib: u32, multiprocessors: u16) -> CardModel {
    CardModel {
        compute_capability: Some((10, 0)),
        nvlinks: 18,
        confidence: Inferred,
        ..CardModel::new(name, Family::Blackwell, memory_mib, multiprocessors)
    }
}

pub(super) static MODELS: &[CardModel] = &[
    CardModel {
        products: &["NVIDIA-B200"],
        pci_device_ids: &[0x2901],
        mig: Some(&B200),
        confidence: Measured,
        ..blackwell("B200", 183_359, 148)
    },
    CardModel {
        products: &["NVIDIA-GB200"],
        pci_device_ids: &[0x2941],
        mig: Some(&GB200),
        notes: MULTI_NODE,
        ..blackwell("GB200", 189_471, 152)
    },
    CardModel {
        products: &["NVIDIA-B300-SXM6-AC"],
        compute_capability: Some((10, 3)),
        multiprocessors: None,
        pci_device_ids: &[0x3182],
        mig: Some(&B300),
        ..blackwell("B300", 275_000, 0)
    },
    CardModel {
        products: &["NVIDIA-GB300"],
        compute_capability: Some((10, 3)),
        multiprocessors: None,
        pci_device_ids: &[0x31C2],
        mig: Some(&GB300),
        notes: MULTI_NODE,
        ..blackwell("GB300", 284_000, 0)
    },
    // Its driver (61x) prints 1g.31gb, 3g.126gb and 7g.251gb under the usual ids, but NVIDIA's
    // playbook says that only three 1g fit and that 3g, 2g, 2g cannot be made. Neither agrees with
    // the 8-unit grid, so no table is better than a wrong one.
    CardModel {
        products: &["NVIDIA-GB300"],
        compute_capability: Some((10, 3)),
        multiprocessors: None,
        nvlinks: 0,
        pci_device_ids: &[0x31C2],
        notes: "MIG, but its placements are not published: read them with nvidia-smi mig -lgipp",
        ..blackwell("GB300-Station", 257_000, 0)
    },
];
