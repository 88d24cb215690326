//! Hopper: H100, H800, H200, H20, GH200.
//!
//! Tables: hardware notes 1.4. H100 80 GB and NVL from `nvidia-smi mig -lgip` listings, H200
//! measured on driver 580 (placements too), 96 GB names from mig-parted's configuration, GH200 144
//! GB from mig-parted#139. Models: hardware notes 3.5; PCI ids: 1.5.

use super::{
    CardModel,
    Confidence::{self, Code, Inferred, Measured},
    Family,
    table::{engines, geometry, inferred, profiles, row},
};
use crate::device::mig::{EIGHTHS, Engines, Geometry, Profile};

/// Engines by profile, the same on all Hopper cards.
const ENGINES: [Engines; 7] = [
    engines(1, 1, 1, 0),
    engines(1, 1, 1, 1),
    engines(1, 1, 1, 0),
    engines(2, 2, 2, 0),
    engines(3, 3, 3, 0),
    engines(4, 4, 4, 0),
    engines(8, 7, 7, 1),
];

static H100_80_PROFILES: [Profile; 7] = profiles(
    &EIGHTHS,
    &[
        row("1g.10gb", 9_984, 16, ENGINES[0]),
        row("1g.10gb+me", 9_984, 16, ENGINES[1]),
        row("1g.20gb", 20_096, 26, ENGINES[2]),
        row("2g.20gb", 20_096, 32, ENGINES[3]),
        row("3g.40gb", 40_448, 60, ENGINES[4]),
        row("4g.40gb", 40_448, 64, ENGINES[5]),
        row("7g.80gb", 81_152, 132, ENGINES[6]),
    ],
);

/// 114 multiprocessors instead of 132; how many of them an instance gets is known for two profiles.
static H100_PCIE_PROFILES: [Profile; 7] = profiles(
    &EIGHTHS,
    &[
        row("1g.10gb", 9_984, 14, ENGINES[0]),
        row("1g.10gb+me", 9_984, 14, ENGINES[1]).known(Inferred),
        row("1g.20gb", 20_096, 0, ENGINES[2]).known(Inferred),
        row("2g.20gb", 20_096, 0, ENGINES[3]).known(Inferred),
        row("3g.40gb", 40_448, 0, ENGINES[4]).known(Inferred),
        row("4g.40gb", 40_448, 0, ENGINES[5]).known(Inferred),
        row("7g.80gb", 81_152, 114, ENGINES[6]),
    ],
);

static H100_94_PROFILES: [Profile; 7] = profiles(
    &EIGHTHS,
    &[
        row("1g.12gb", 11_008, 16, ENGINES[0]),
        row("1g.12gb+me", 11_008, 16, ENGINES[1]),
        row("1g.24gb", 22_144, 26, ENGINES[2]),
        row("2g.24gb", 22_144, 32, ENGINES[3]),
        row("3g.47gb", 47_488, 60, ENGINES[4]),
        row("4g.47gb", 47_488, 64, ENGINES[5]),
        row("7g.94gb", 95_360, 132, ENGINES[6]),
    ],
);

/// The rows of the 96 GB cards, of which names and engines are known.
const fn rows_96(multiprocessors: [u16; 7]) -> [Profile; 7] {
    let [one, media, double, two, three, four, seven] = multiprocessors;
    profiles(
        &EIGHTHS,
        &[
            inferred("1g.12gb", 12, 1, one, ENGINES[0]),
            inferred("1g.12gb+me", 12, 1, media, ENGINES[1]),
            inferred("1g.24gb", 24, 2, double, ENGINES[2]),
            inferred("2g.24gb", 24, 2, two, ENGINES[3]),
            inferred("3g.48gb", 48, 4, three, ENGINES[4]),
            inferred("4g.48gb", 48, 4, four, ENGINES[5]),
            inferred("7g.96gb", 96, 8, seven, ENGINES[6]),
        ],
    )
}

static H100_96_PROFILES: [Profile; 7] = rows_96([16, 16, 26, 32, 60, 64, 132]);
static H20_PROFILES: [Profile; 7] = rows_96([0, 0, 0, 0, 0, 0, 78]);
/// An Ampere die; nothing is published about its instances.
static PG506_96_PROFILES: [Profile; 7] = rows_96([0; 7]);

static GH200_144_PROFILES: [Profile; 7] = profiles(
    &EIGHTHS,
    &[
        row("1g.18gb", 17_920, 16, ENGINES[0]),
        row("1g.18gb+me", 17_920, 16, ENGINES[1]),
        row("1g.36gb", 36_096, 26, ENGINES[2]),
        row("2g.36gb", 36_096, 32, ENGINES[3]),
        inferred("3g.72gb", 72, 4, 60, ENGINES[4]),
        inferred("4g.72gb", 72, 4, 64, ENGINES[5]),
        inferred("7g.144gb", 144, 8, 132, ENGINES[6]),
    ],
);

static H200_PROFILES: [Profile; 7] = profiles(
    &EIGHTHS,
    &[
        row("1g.18gb", 16_384, 16, ENGINES[0]),
        row("1g.18gb+me", 16_384, 16, ENGINES[1]),
        row("1g.35gb", 33_280, 26, ENGINES[2]),
        row("2g.35gb", 33_280, 32, ENGINES[3]),
        row("3g.71gb", 71_424, 60, ENGINES[4]),
        row("4g.71gb", 71_424, 64, ENGINES[5]),
        row("7g.141gb", 143_360, 132, ENGINES[6]),
    ],
);

const fn eighths(
    name: &'static str,
    profiles: &'static [Profile; 7],
    confidence: Confidence,
) -> Geometry {
    geometry(name, &EIGHTHS, profiles, &profiles[6], confidence)
}

static H100_80: Geometry = eighths("H100 80 GB", &H100_80_PROFILES, Measured);
static H100_PCIE: Geometry = eighths("H100 PCIe 80 GB", &H100_PCIE_PROFILES, Measured);
static H100_94: Geometry = eighths("H100 NVL 94 GB", &H100_94_PROFILES, Measured);
static H100_96: Geometry = eighths("H100 96 GB", &H100_96_PROFILES, Code);
static H20: Geometry = eighths("H20 96 GB", &H20_PROFILES, Code);
static PG506_96: Geometry = eighths("PG506 96 GB", &PG506_96_PROFILES, Code);
static GH200_144: Geometry = eighths("GH200 144 GB", &GH200_144_PROFILES, Measured);
static H200: Geometry = eighths("H200 141 GB", &H200_PROFILES, Measured);

const BRIDGED: &str = "NVLink only by bridges between two cards";

const fn hopper(
    name: &'static str,
    memory_mib: u32,
    multiprocessors: u16,
    mig: &'static Geometry,
) -> CardModel {
    CardModel {
        compute_capability: Some((9, 0)),
        mig: Some(mig),
        ..CardModel::new(name, Family::Hopper, memory_mib, multiprocessors)
    }
}

pub(super) static MODELS: &[CardModel] = &[
    CardModel {
        products: &["NVIDIA-H100-80GB-HBM3"],
        nvlinks: 18,
        pci_device_ids: &[0x2330],
        ..hopper("H100-80GB", 81_559, 132, &H100_80)
    },
    CardModel {
        products: &["NVIDIA-H800"],
        nvlinks: 8,
        pci_device_ids: &[0x2324],
        ..hopper("H800-80GB", 81_559, 132, &H100_80)
    },
    CardModel {
        products: &["NVIDIA-H100-PCIe"],
        pci_device_ids: &[0x2331],
        bridged: true,
        notes: BRIDGED,
        ..hopper("H100-PCIE", 81_559, 114, &H100_PCIE)
    },
    CardModel {
        products: &["NVIDIA-H800-PCIe"],
        pci_device_ids: &[0x2322],
        bridged: true,
        notes: BRIDGED,
        ..hopper("H800-PCIE", 81_559, 114, &H100_PCIE)
    },
    CardModel {
        products: &["NVIDIA-H100-NVL"],
        pci_device_ids: &[0x2321],
        bridged: true,
        notes: BRIDGED,
        ..hopper("H100-NVL", 95_830, 132, &H100_94)
    },
    CardModel {
        products: &["NVIDIA-H800-NVL"],
        pci_device_ids: &[0x233A],
        bridged: true,
        notes: BRIDGED,
        ..hopper("H800-NVL", 95_830, 132, &H100_94)
    },
    CardModel {
        products: &["NVIDIA-H100-SXM5-96GB"],
        nvlinks: 18,
        pci_device_ids: &[0x233D],
        ..hopper("H100-96GB", 97_871, 132, &H100_96)
    },
    CardModel {
        products: &["NVIDIA-H20"],
        nvlinks: 18,
        pci_device_ids: &[0x2329],
        notes: "multiprocessors of its MIG profiles are not published",
        ..hopper("H20", 97_871, 78, &H20)
    },
    CardModel {
        compute_capability: None,
        multiprocessors: None,
        pci_device_ids: &[0x20B6],
        mig: Some(&PG506_96),
        notes: "known to mig-parted by its PCI id only; an Ampere die",
        ..CardModel::new("PG506-96GB", Family::Ampere, 97_871, 0)
    },
    CardModel {
        products: &["NVIDIA-GH200-480GB"],
        nvlinks: 18,
        pci_device_ids: &[0x2342],
        notes: "480 GB is the memory of the processor beside it",
        ..hopper("GH200-96GB", 97_871, 132, &H100_96)
    },
    CardModel {
        products: &["NVIDIA-GH200-480GB", "NVIDIA-GH200-144G-HBM3e"],
        nvlinks: 18,
        pci_device_ids: &[0x2348],
        confidence: Confidence::Inferred,
        ..hopper("GH200-144GB", 146_831, 132, &GH200_144)
    },
    CardModel {
        products: &["NVIDIA-H200"],
        nvlinks: 18,
        pci_device_ids: &[0x2335],
        confidence: Measured,
        ..hopper("H200", 143_771, 132, &H200)
    },
    CardModel {
        products: &["NVIDIA-H200-NVL"],
        pci_device_ids: &[0x233B],
        bridged: true,
        notes: BRIDGED,
        ..hopper("H200-NVL", 143_771, 132, &H200)
    },
];
