//! Link matrices of machines that people know by name, as data.
//!
//! Each states its source and, as a mark, how well it is known: measured or printed by a driver
//! `[M]`, read in code or documents `[C]`, inferred `[I]`, general knowledge `[K]`. A real machine
//! may number its cards otherwise; what a node says of itself goes first.

use alloc::{string::String, vec::Vec};

use super::{Link, LinkMatrix, Nic, matrix::Pair};

mod amd;
mod nvlink;
mod pcie;

/// One machine.
struct Machine {
    /// Names for [`known`]; all but the first are of machines with the same matrix.
    names: &'static [&'static str],
    cards: usize,
    links: Links,
    /// PCIe paths beneath NVLink, where known.
    beneath: Option<Groups>,
    /// Of each card; empty when not known.
    numa: &'static [u8],
    nics: Nics,
}

/// A cell; `None` on the diagonal.
type Cell = Option<Link>;

enum Links {
    /// Full rows.
    Rows(&'static [&'static [Cell]]),
    /// By groups of consecutive cards.
    Groups(Groups),
}

struct Groups {
    /// Size of the groups and the link inside, small groups first.
    inside: &'static [(usize, Link)],
    /// The link of all other pairs.
    across: Link,
}

enum Nics {
    /// None, or not known.
    None,
    /// `mlx5_0` for card 0 and so on: `PIX` to its own, `NODE` on its NUMA node, else `SYS`.
    OneEach,
    /// By name, with the link to each card.
    Rows(&'static [(&'static str, &'static [Link])]),
}

/// NUMA nodes of two sockets of four cards.
const HALVES: &[u8] = &[0, 0, 0, 0, 1, 1, 1, 1];

impl Groups {
    const fn all(link: Link) -> Self {
        Self {
            inside: &[],
            across: link,
        }
    }

    fn link(&self, a: usize, b: usize) -> Link {
        let group = |(size, _): &&(usize, Link)| a / size == b / size;
        self.inside
            .iter()
            .find(group)
            .map_or(self.across, |(_, link)| *link)
    }
}

impl Machine {
    /// `None` when the data is wrong, which a test excludes.
    fn matrix(&self) -> Option<LinkMatrix> {
        let pair = |row: usize, column: usize| {
            let link = match &self.links {
                Links::Rows(rows) => (*rows.get(row)?.get(column)?)?,
                Links::Groups(_) if row == column => return None,
                Links::Groups(groups) => groups.link(row, column),
            };
            let beneath = self.beneath.as_ref().filter(|_| link.is_fabric());
            let pcie = beneath.map(|groups| groups.link(row, column));
            Some(Pair { link, pcie })
        };
        let cards = 0..self.cards;
        let row = |row| cards.clone().map(|column| pair(row, column)).collect();
        let rows: Vec<Vec<Option<Pair>>> = cards.clone().map(row).collect();
        let numa: Vec<Option<u8>> = cards.clone().map(|card| self.numa(card)).collect();
        LinkMatrix::from_pairs(&rows, &numa, self.nics()).ok()
    }

    fn numa(&self, card: usize) -> Option<u8> {
        self.numa.get(card).copied()
    }

    fn nics(&self) -> Vec<Nic> {
        let near = |nic: usize, card: usize| {
            if nic == card {
                Link::SingleSwitch
            } else if self.numa(nic) == self.numa(card) {
                Link::Node
            } else {
                Link::System
            }
        };
        match self.nics {
            Nics::None => Vec::new(),
            Nics::OneEach => (0..self.cards)
                .map(|nic| Nic {
                    name: alloc::format!("mlx5_{nic}").into(),
                    links: (0..self.cards).map(|card| near(nic, card)).collect(),
                })
                .collect(),
            Nics::Rows(rows) => rows
                .iter()
                .map(|(name, links)| Nic {
                    name: (*name).into(),
                    links: links.to_vec(),
                })
                .collect(),
        }
    }
}

fn machines() -> impl Iterator<Item = &'static Machine> {
    nvlink::MACHINES
        .iter()
        .chain(pcie::MACHINES)
        .chain(amd::MACHINES)
}

/// The matrix of a machine in [`names`].
pub fn known(name: &str) -> Option<LinkMatrix> {
    let machine = machines().find(|machine| machine.names.contains(&name))?;
    machine.matrix()
}

/// The names of the known machines; some are of the same matrix.
pub fn names() -> impl Iterator<Item = &'static str> {
    machines().flat_map(|machine| machine.names.iter().copied())
}

pub(super) fn names_text() -> String {
    let names: Vec<&str> = names().collect();
    names.join(", ")
}

/// Products whose cards all reach each other through NVSwitch or on one board, by the number of
/// cards: the product as GPU feature discovery or AMD's node labeller writes it, the link of each pair.
///
/// Four cards may be a board of four or half a board of eight in a virtual machine; the number is
/// the board of four's, the smaller one. Eight MI300X are taken for the eight modules of one board,
/// as servers have no fewer; where they are the dies of one partitioned module, the node has to say so.
/// Not listed: PCIe boards (bridges join any two), V100 (the order of cards differs from cloud to
/// cloud). Source: the matrices of `known`.
const ALL_TO_ALL: &[(&str, u32, Link)] = &[
    ("NVIDIA-A100-SXM4-40GB", 8, Link::Nvlink(12)),
    ("NVIDIA-A100-SXM4-80GB", 8, Link::Nvlink(12)),
    ("NVIDIA-A100-SXM4-40GB", 4, Link::Nvlink(4)),
    ("NVIDIA-A100-SXM4-80GB", 4, Link::Nvlink(4)),
    ("NVIDIA-H100-80GB-HBM3", 8, Link::Nvlink(18)),
    ("NVIDIA-H100-80GB-HBM3", 4, Link::Nvlink(6)),
    ("NVIDIA-H200", 8, Link::Nvlink(18)),
    ("NVIDIA-B200", 8, Link::Nvlink(18)),
    ("NVIDIA-GB200", 4, Link::Nvlink(18)),
    ("AMD_Instinct_MI300X_OAM", 8, amd::ONE_HOP),
    ("AMD_Instinct_MI300X", 8, amd::ONE_HOP),
    ("AMD_Instinct_MI325X_OAM", 8, amd::ONE_HOP),
    ("AMD_Instinct_MI325X", 8, amd::ONE_HOP),
];

/// The matrix of a node that tells only its product and the number of cards, where these fix the
/// shape: every pair joined by NVLink or XGMI. NUMA nodes and network cards are the server's, not the
/// board's, so they are not known.
///
/// `product` is the name as the driver or GPU feature discovery gives it, also with `-SHARED`.
pub fn for_product(product: &str, count: u32) -> Option<LinkMatrix> {
    let product = product.trim().replace(' ', "-");
    let product = product.strip_suffix("-SHARED").unwrap_or(&product);
    let (.., link) = ALL_TO_ALL
        .iter()
        .find(|(name, cards, _)| *name == product && *cards == count)?;
    let machine = Machine {
        names: &[],
        cards: count as usize,
        links: Links::Groups(Groups::all(*link)),
        beneath: None,
        numa: &[],
        nics: Nics::None,
    };
    machine.matrix()
}
