//! Machines with PCIe alone. Consumer cards cannot do peer-to-peer however near they are.

use super::{Groups, HALVES, Link, Links, Machine, Nics};

pub(super) const MACHINES: &[Machine] = &[
    TREE_8,
    PAIRS_8,
    RTX_4090_8,
    RTX_4090_8_SWITCHED,
    L40S_8,
    TWO_SOCKETS_8,
    TWO_SOCKETS_4,
    RTX_5090_2,
];

const fn halves(names: &'static [&'static str], inside: &'static [(usize, Link)]) -> Machine {
    Machine {
        names,
        cards: 8,
        links: Links::Groups(Groups {
            inside,
            across: Link::System,
        }),
        beneath: None,
        numa: HALVES,
        nics: Nics::None,
    }
}

/// A tree of switches on each socket. `[M]`: quda#669.
const TREE_8: Machine = halves(
    &["pcie-tree-8"],
    &[(2, Link::SingleSwitch), (4, Link::MultiSwitch)],
);

/// A switch for two cards, none above. `[M]`: kubernetes#53497, with its network card; NUMA nodes
/// by the CPU affinity.
const PAIRS_8: Machine = Machine {
    nics: Nics::Rows(&[("mlx4_0", &[PHB, PHB, PHB, PHB, SYS, SYS, SYS, SYS])]),
    ..halves(
        &["pcie-pairs-8"],
        &[(2, Link::SingleSwitch), (4, Link::HostBridge)],
    )
};
const PHB: Link = Link::HostBridge;
const SYS: Link = Link::System;

/// The class says `SYS` of every pair; only the NUMA column tells the halves apart. `[M]`:
/// go-gpuallocator#17; that the network card is `SYS` to all but card 6 is `[I]`.
const RTX_4090_8: Machine = Machine {
    nics: Nics::Rows(&[("mlx5_0", &[SYS, SYS, SYS, SYS, SYS, SYS, PHB, SYS])]),
    ..halves(&["rtx4090-8"], &[])
};

/// `[M]`: nccl-tests#307; the NUMA nodes are `[I]`.
const RTX_4090_8_SWITCHED: Machine = halves(&["rtx4090-8-switched"], &[(4, Link::SingleSwitch)]);

/// `[M]`: vllm-backport#14; the NUMA nodes are `[I]`.
const L40S_8: Machine = halves(&["l40s-8"], &[(2, Link::MultiSwitch), (4, Link::Node)]);

/// Two sockets and nothing else. `[K]`.
const TWO_SOCKETS_8: Machine = halves(&["two-sockets-8"], &[(4, Link::Node)]);

/// The same of four cards. `[M]` for L40S, whose NUMA nodes are `[I]`.
const TWO_SOCKETS_4: Machine = Machine {
    cards: 4,
    links: Links::Groups(Groups {
        inside: &[(2, Link::Node)],
        across: Link::System,
    }),
    numa: &[0, 0, 1, 1],
    ..halves(&["two-sockets-4", "l40s-4"], &[])
};

/// `[M]`; its NUMA node is not told.
const RTX_5090_2: Machine = Machine {
    cards: 2,
    links: Links::Groups(Groups::all(Link::HostBridge)),
    numa: &[],
    ..halves(&["rtx5090-2"], &[])
};
