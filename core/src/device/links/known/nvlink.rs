//! Machines with NVLink: between boards, through NVSwitch, over bridges.

use super::{Cell, Groups, HALVES, Link, Links, Machine, Nics};

const X: Cell = None;
const SYS: Cell = Some(Link::System);
const NODE: Cell = Some(Link::Node);
const PIX: Cell = Some(Link::SingleSwitch);
const NV1: Cell = Some(Link::Nvlink(1));
const NV2: Cell = Some(Link::Nvlink(2));
const NV12: Cell = Some(Link::Nvlink(12));
const NV18: Cell = Some(Link::Nvlink(18));

pub(super) const MACHINES: &[Machine] = &[
    DGX1_V100,
    DGX1_P100,
    DGX2,
    DGX_A100,
    HGX_A100_4_NUMA,
    HGX_A100,
    HGX_A100_4,
    H100_SXM_4,
    HGX,
    HGX_B200_SNC,
    HGX_B200_DEGRADED,
    GB200,
    A100_PCIE_4,
    H100_PCIE_8,
    MIXED_A100,
];

/// Each quad's pairs share a switch, quads a socket.
const DGX1_PCIE: Groups = Groups {
    inside: &[(2, Link::SingleSwitch), (4, Link::HostBridge)],
    across: Link::System,
};

/// Hybrid cube mesh, six links a card. `[M, C]`: a listing of `OneFlow`'s benchmarks and the
/// fixture of NVIDIA/go-gpuallocator agree. Virtual machines of clouds number the cards otherwise
/// (vllm#17152).
const DGX1_V100: Machine = Machine {
    names: &["dgx1-v100"],
    cards: 8,
    links: Links::Rows(&[
        &[X, NV1, NV1, NV2, NV2, SYS, SYS, SYS],
        &[NV1, X, NV2, NV1, SYS, NV2, SYS, SYS],
        &[NV1, NV2, X, NV2, SYS, SYS, NV1, SYS],
        &[NV2, NV1, NV2, X, SYS, SYS, SYS, NV1],
        &[NV2, SYS, SYS, SYS, X, NV1, NV1, NV2],
        &[SYS, NV2, SYS, SYS, NV1, X, NV2, NV1],
        &[SYS, SYS, NV1, SYS, NV1, NV2, X, NV2],
        &[SYS, SYS, SYS, NV1, NV2, NV1, NV2, X],
    ]),
    beneath: Some(DGX1_PCIE),
    numa: HALVES,
    nics: Nics::None,
};

/// One link to each card of the quad and to the same place of the other. `[C]`:
/// NVIDIA/go-gpuallocator.
const DGX1_P100: Machine = Machine {
    names: &["dgx1-p100"],
    cards: 8,
    links: Links::Rows(&[
        &[X, NV1, NV1, NV1, NV1, SYS, SYS, SYS],
        &[NV1, X, NV1, NV1, SYS, NV1, SYS, SYS],
        &[NV1, NV1, X, NV1, SYS, SYS, NV1, SYS],
        &[NV1, NV1, NV1, X, SYS, SYS, SYS, NV1],
        &[NV1, SYS, SYS, SYS, X, NV1, NV1, NV1],
        &[SYS, NV1, SYS, SYS, NV1, X, NV1, NV1],
        &[SYS, SYS, NV1, SYS, NV1, NV1, X, NV1],
        &[SYS, SYS, SYS, NV1, NV1, NV1, NV1, X],
    ]),
    beneath: Some(DGX1_PCIE),
    numa: HALVES,
    nics: Nics::None,
};

/// 16 V100, NVSwitch. `[M]`: nccl-tests#78.
const DGX2: Machine = Machine {
    names: &["dgx2"],
    cards: 16,
    links: Links::Groups(Groups::all(Link::Nvlink(6))),
    beneath: None,
    numa: &[0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1],
    nics: Nics::None,
};

/// NVSwitch; AMD processors with four NUMA nodes a socket; two network cards for two cards. `[M]`:
/// nccl#1505; the order of the network cards is `[I]`.
const DGX_A100: Machine = Machine {
    names: &["dgx-a100"],
    cards: 8,
    links: Links::Groups(Groups::all(Link::Nvlink(12))),
    beneath: None,
    numa: &[3, 3, 1, 1, 7, 7, 5, 5],
    nics: Nics::Rows(&[
        ("mlx5_0", FIRST_PAIR),
        ("mlx5_1", FIRST_PAIR),
        ("mlx5_2", SECOND_PAIR),
        ("mlx5_3", SECOND_PAIR),
        ("mlx5_4", THIRD_PAIR),
        ("mlx5_5", THIRD_PAIR),
        ("mlx5_6", FOURTH_PAIR),
        ("mlx5_7", FOURTH_PAIR),
    ]),
};
const FIRST_PAIR: &[Link] = &[NEAR, NEAR, FAR, FAR, FAR, FAR, FAR, FAR];
const SECOND_PAIR: &[Link] = &[FAR, FAR, NEAR, NEAR, FAR, FAR, FAR, FAR];
const THIRD_PAIR: &[Link] = &[FAR, FAR, FAR, FAR, NEAR, NEAR, FAR, FAR];
const FOURTH_PAIR: &[Link] = &[FAR, FAR, FAR, FAR, FAR, FAR, NEAR, NEAR];
const NEAR: Link = Link::MultiSwitch;
const FAR: Link = Link::System;

/// NVSwitch, four NUMA nodes, as a cloud's. `[M]`.
const HGX_A100_4_NUMA: Machine = Machine {
    names: &["hgx-a100-8-4-numa"],
    cards: 8,
    links: Links::Groups(Groups::all(Link::Nvlink(12))),
    beneath: None,
    numa: &[0, 0, 1, 1, 2, 2, 3, 3],
    nics: Nics::None,
};

/// NVSwitch, two Intel sockets. `[M]`.
const HGX_A100: Machine = Machine {
    names: &["hgx-a100-8"],
    cards: 8,
    links: Links::Groups(Groups::all(Link::Nvlink(12))),
    beneath: None,
    numa: HALVES,
    nics: Nics::None,
};

/// A board of four, no switch. `[K]`; its NUMA nodes are the server's.
const HGX_A100_4: Machine = Machine {
    names: &["hgx-a100-4"],
    cards: 4,
    links: Links::Groups(Groups::all(Link::Nvlink(4))),
    beneath: None,
    numa: &[],
    nics: Nics::None,
};

/// A board of four. `[M]`: nccl#1617.
const H100_SXM_4: Machine = Machine {
    names: &["h100-sxm-4"],
    cards: 4,
    links: Links::Groups(Groups::all(Link::Nvlink(6))),
    beneath: None,
    numa: &[3, 1, 7, 5],
    nics: Nics::OneEach,
};

/// NVSwitch, two sockets, a network card each. `[M]`: nccl#1264.
const HGX: Machine = Machine {
    names: &["hgx-h100-8", "hgx-h200-8", "hgx-b200-8"],
    cards: 8,
    links: Links::Groups(Groups::all(Link::Nvlink(18))),
    beneath: None,
    numa: HALVES,
    nics: Nics::OneEach,
};

/// Sub-NUMA clusters split the sockets three to one. `[M]`: sglang#13973; the last two cards'
/// rows are `[I]`.
const HGX_B200_SNC: Machine = Machine {
    names: &["hgx-b200-8-snc"],
    cards: 8,
    links: Links::Groups(Groups::all(Link::Nvlink(18))),
    beneath: None,
    numa: &[0, 0, 0, 1, 2, 2, 2, 3],
    nics: Nics::Rows(&[
        ("mlx5_0", &[OWN, HERE, HERE, FAR, FAR, FAR, FAR, FAR]),
        ("mlx5_1", &[HERE, OWN, HERE, FAR, FAR, FAR, FAR, FAR]),
        ("mlx5_2", &[HERE, HERE, OWN, FAR, FAR, FAR, FAR, FAR]),
        ("mlx5_3", &[FAR, FAR, FAR, HERE, FAR, FAR, FAR, FAR]),
        ("mlx5_4", &[FAR, FAR, FAR, OWN, FAR, FAR, FAR, FAR]),
        ("mlx5_5", &[FAR, FAR, FAR, FAR, OWN, HERE, HERE, FAR]),
        ("mlx5_6", &[FAR, FAR, FAR, FAR, HERE, OWN, HERE, FAR]),
        ("mlx5_7", &[FAR, FAR, FAR, FAR, HERE, HERE, OWN, FAR]),
        ("mlx5_8", &[FAR, FAR, FAR, FAR, FAR, FAR, FAR, OWN]),
    ]),
};
const OWN: Link = Link::SingleSwitch;
const HERE: Link = Link::Node;

/// Card 2 has lost its links to the switches. `[M]`: vllm#16336.
const HGX_B200_DEGRADED: Machine = Machine {
    names: &["hgx-b200-8-degraded"],
    cards: 8,
    links: Links::Rows(&[
        &[X, NV18, NODE, NV18, NV18, NV18, NV18, NV18],
        &[NV18, X, NODE, NV18, NV18, NV18, NV18, NV18],
        &[NODE, NODE, X, NODE, SYS, SYS, SYS, SYS],
        &[NV18, NV18, NODE, X, NV18, NV18, NV18, NV18],
        &[NV18, NV18, SYS, NV18, X, NV18, NV18, NV18],
        &[NV18, NV18, SYS, NV18, NV18, X, NV18, NV18],
        &[NV18, NV18, SYS, NV18, NV18, NV18, X, NV18],
        &[NV18, NV18, SYS, NV18, NV18, NV18, NV18, X],
    ]),
    beneath: None,
    numa: HALVES,
    nics: Nics::None,
};

/// A tray of an NVL72 rack. `[M]`: sglang#11208, srt-slurm#164.
const GB200: Machine = Machine {
    names: &["gb200-4"],
    cards: 4,
    links: Links::Groups(Groups::all(Link::Nvlink(18))),
    beneath: None,
    numa: &[0, 0, 1, 1],
    nics: Nics::Rows(&[
        ("mlx5_0", &[FAR; 4]),
        ("mlx5_1", &[FAR; 4]),
        ("mlx5_2", &[FAR; 4]),
        ("mlx5_3", &[FAR; 4]),
    ]),
};

/// PCIe boards with three bridges a pair, as Azure's `NC96ads_A100_v4`. `[M]`.
const A100_PCIE_4: Machine = Machine {
    names: &["a100-pcie-bridged-4"],
    cards: 4,
    links: Links::Rows(&[
        &[X, NV12, SYS, SYS],
        &[NV12, X, SYS, SYS],
        &[SYS, SYS, X, NV12],
        &[SYS, SYS, NV12, X],
    ]),
    beneath: None,
    numa: &[0, 1, 2, 3],
    nics: Nics::None,
};

/// PCIe boards, three on one socket and five on the other, with bridges across. `[M]`: a real
/// server.
const H100_PCIE_8: Machine = Machine {
    names: &["h100-pcie-bridged-8"],
    cards: 8,
    links: Links::Rows(&[
        &[X, NODE, NODE, SYS, SYS, NV12, SYS, SYS],
        &[NODE, X, NV12, SYS, SYS, SYS, SYS, SYS],
        &[NODE, NV12, X, SYS, SYS, SYS, SYS, SYS],
        &[SYS, SYS, SYS, X, NV12, NODE, NODE, NODE],
        &[SYS, SYS, SYS, NV12, X, NODE, NODE, NODE],
        &[NV12, SYS, SYS, NODE, NODE, X, NODE, NODE],
        &[SYS, SYS, SYS, NODE, NODE, NODE, X, NV12],
        &[SYS, SYS, SYS, NODE, NODE, NODE, NV12, X],
    ]),
    beneath: None,
    numa: &[0, 0, 0, 1, 1, 1, 1, 1],
    nics: Nics::None,
};

/// Two SXM boards, a third one and a PCIe board. `[M]`; its NUMA nodes are not told.
const MIXED_A100: Machine = Machine {
    names: &["mixed-a100-4"],
    cards: 4,
    links: Links::Rows(&[
        &[X, NV12, SYS, SYS],
        &[NV12, X, SYS, SYS],
        &[SYS, SYS, X, PIX],
        &[SYS, SYS, PIX, X],
    ]),
    beneath: None,
    numa: &[],
    nics: Nics::None,
};
