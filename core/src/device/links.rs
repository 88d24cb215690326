//! How the cards of one node reach each other, and which of them to take for it.
//!
//! In: a [`LinkMatrix`], read from an `nvidia-smi topo -m` or `rocm-smi --showtopo` text, from a
//! node's annotation, or by the name of a known machine. Out: a [`LinkTable`], made once per kind
//! of machine and outside the hot path, that answers in a load or two which `k` of the free cards
//! are best ([`LinkTable::best`]), how many such sets there are ([`LinkTable::capacity`]) and which
//! free sets are alike ([`LinkTable::canonical`]).
//!
//! It never looks at a machine by itself, never guesses the order of a machine's cards from a
//! product that does not fix it, and never calls cards near when nothing says so.

mod build;
mod known;
mod link;
mod matrix;
mod ring;
mod rocm;
mod score;
mod table;
mod text;
mod topo;

use known::names_text;
pub use known::{for_product, known, names};
pub use link::{Link, NVLINK_GIGABYTES_PER_SECOND, nvlink_gigabytes_per_second};
pub use matrix::{LinkError, LinkMatrix, Nic};
pub use table::{Best, Description, LinkTable};

/// Cards of a node with a link matrix, at most.
pub const MAX_CARDS: u32 = 16;

/// What "near" may demand of a set of cards of one node. One card is near itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Nearness {
    /// Nothing; the best set is preferred.
    #[default]
    Any,
    /// Every pair is joined directly by NVLink or by one XGMI hop, so that peer-to-peer works for
    /// all.
    NvlinkIsland,
    /// All on one NUMA node. Cards whose NUMA node is not known are near no other card.
    NumaNode,
}

impl Nearness {
    /// Each of them, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Any, Self::NvlinkIsland, Self::NumaNode];

    /// How people write it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::NvlinkIsland => "nvlink-island",
            Self::NumaNode => "numa-node",
        }
    }
}
