//! Blackwell RTX: RTX PRO 6000 with MIG on a grid of 12 units, GeForce without.
//!
//! Table: hardware notes 1.4, from bigstack-oss/cubecos#312 and the MIG guide; placements from HAMi's
//! tests. Memory is that of the newer drivers; older ones give up to 1.6 GiB less. MIG needs driver
//! 575.51.03. RTX PRO 5000 and 4500 have MIG too, but the guide's editions contradict each other
//! about their profiles, so they are not here. Models: hardware notes 3.5; PCI ids: 1.5.

use super::{
    CardModel, Confidence, Family,
    table::{geometry, profiles, row},
};
use crate::device::mig::{Engines, Geometry, Profile, TWELFTHS};

/// Decoders, encoders and JPEG engines always come in the same number.
const fn media(copy: u8, each: u8, ofa: u8) -> Engines {
    Engines {
        copy,
        decoder: each,
        encoder: each,
        jpeg: each,
        ofa,
    }
}

static RTX_PRO_6000_PROFILES: [Profile; 11] = profiles(
    &TWELFTHS,
    &[
        row("1g.24gb", 24_192, 46, media(1, 1, 0)),
        row("1g.24gb-me", 24_192, 46, media(1, 0, 0)),
        row("1g.24gb+gfx", 24_192, 46, media(1, 1, 0)),
        row("1g.24gb+me", 24_192, 46, media(1, 1, 1)),
        row("1g.24gb+me.all", 24_192, 46, media(1, 4, 1)),
        row("2g.48gb", 48_512, 94, media(2, 2, 0)),
        row("2g.48gb-me", 48_512, 94, media(2, 0, 0)),
        row("2g.48gb+gfx", 48_512, 94, media(2, 2, 0)),
        row("2g.48gb+me.all", 48_512, 94, media(2, 4, 1)),
        row("4g.96gb", 97_280, 188, media(4, 4, 1)),
        row("4g.96gb+gfx", 97_280, 188, media(4, 4, 1)),
    ],
);

static RTX_PRO_6000: Geometry = geometry(
    "RTX PRO 6000 96 GB",
    &TWELFTHS,
    &RTX_PRO_6000_PROFILES,
    &RTX_PRO_6000_PROFILES[9],
    Confidence::Measured,
);

const fn rtx(name: &'static str, memory_mib: u32, multiprocessors: u16) -> CardModel {
    CardModel {
        compute_capability: Some((12, 0)),
        ..CardModel::new(name, Family::Blackwell, memory_mib, multiprocessors)
    }
}

pub(super) static MODELS: &[CardModel] = &[
    CardModel {
        products: &[
            "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
            "NVIDIA-RTX-PRO-6000-Blackwell-Workstation-Edition",
            "NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition",
        ],
        pci_device_ids: &[0x2BB5],
        mig: Some(&RTX_PRO_6000),
        confidence: Confidence::Measured,
        ..rtx("RTX-PRO-6000", 97_887, 188)
    },
    CardModel {
        products: &["NVIDIA-GeForce-RTX-5090"],
        notes: "no peer-to-peer between cards, however near they are",
        ..rtx("RTX-5090", 32_607, 170)
    },
];
