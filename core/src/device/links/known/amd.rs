//! Machines with XGMI. The kernel weighs a link with 15 for each hop.

use super::{Cell, Groups, HALVES, Link, Links, Machine, Nics};

pub(super) const MACHINES: &[Machine] = &[MI300X, MI250, MI210];

pub(super) const ONE_HOP: Link = Link::Xgmi { hops: 1 };

/// All to all. `[M]`: `rocm-smi --showtopo`, weight 15 of all pairs.
const MI300X: Machine = Machine {
    names: &["mi300x-8", "mi325x-8"],
    cards: 8,
    links: Links::Groups(Groups::all(ONE_HOP)),
    beneath: None,
    numa: HALVES,
    nics: Nics::None,
};

const X: Cell = None;
const XG1: Cell = Some(ONE_HOP);
const XG2: Cell = Some(Link::Xgmi { hops: 2 });
const XG3: Cell = Some(Link::Xgmi { hops: 3 });

/// Four cards of two dies each: weights 15, 30 and 45. `[M]`; the NUMA nodes are not told.
const MI250: Machine = Machine {
    names: &["mi250-8"],
    cards: 8,
    links: Links::Rows(&[
        &[X, XG1, XG1, XG2, XG2, XG2, XG1, XG2],
        &[XG1, X, XG2, XG1, XG2, XG1, XG2, XG3],
        &[XG1, XG2, X, XG1, XG1, XG2, XG2, XG2],
        &[XG2, XG1, XG1, X, XG2, XG3, XG2, XG1],
        &[XG2, XG2, XG1, XG2, X, XG1, XG1, XG2],
        &[XG2, XG1, XG2, XG3, XG1, X, XG2, XG1],
        &[XG1, XG2, XG2, XG2, XG1, XG2, X, XG1],
        &[XG2, XG3, XG2, XG1, XG2, XG1, XG1, X],
    ]),
    beneath: None,
    numa: &[],
    nics: Nics::None,
};

/// Two hives of four, PCIe across (weight 72). `[C]`: the kernel's topology files in
/// ROCm/k8s-device-plugin.
const MI210: Machine = Machine {
    names: &["mi210-8"],
    cards: 8,
    links: Links::Groups(Groups {
        inside: &[(4, ONE_HOP)],
        across: Link::System,
    }),
    beneath: None,
    numa: HALVES,
    nics: Nics::None,
};
