//! The checked matrix of one node's links.

use alloc::{boxed::Box, string::String, vec::Vec};

use super::{Link, MAX_CARDS, text};

/// Why a link matrix is refused. Cards are named as `nvidia-smi` does, `GPU0` first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// None, or more than fit.
    #[error("the link matrix has {found} cards; 1 to {MAX_CARDS} are accepted")]
    CardCount {
        /// Cards found.
        found: usize,
    },
    /// A row is too short or too long.
    #[error("row {row} of the link matrix has {found} cells; {expected} are accepted")]
    RowLength {
        /// The row's name.
        row: String,
        /// Cells found.
        found: usize,
        /// Cells of each row.
        expected: usize,
    },
    /// A card has a link to itself.
    #[error("cell GPU{card}/GPU{card} of the link matrix is `{found}`; only X is accepted there")]
    Diagonal {
        /// The card.
        card: usize,
        /// What is there.
        found: Link,
    },
    /// A pair has no link.
    #[error(
        "cell GPU{row}/GPU{column} of the link matrix is X; {} are accepted there",
        Link::ACCEPTED
    )]
    NoLink {
        /// The row's card.
        row: usize,
        /// The column's card.
        column: usize,
    },
    /// A pair is said twice and differently.
    #[error(
        "cells {row}/{column} and {column}/{row} of the link matrix are `{found}` and `{mirrored}`; \
         only the same is accepted"
    )]
    Asymmetric {
        /// The row's name.
        row: String,
        /// The column's name.
        column: String,
        /// What the cell says.
        found: String,
        /// What the mirrored cell says.
        mirrored: String,
    },
    /// Text or a number that is no link.
    #[error("`{value}` is no link; {} are accepted", Link::ACCEPTED)]
    Link {
        /// What is there.
        value: String,
    },
    /// A cell of the matrix is no link.
    #[error("cell {row}/{column} of the link matrix is `{value}`; {accepted} are accepted")]
    Cell {
        /// The row's name.
        row: String,
        /// The column's name.
        column: String,
        /// What is there.
        value: String,
        /// What would do.
        accepted: &'static str,
    },
    /// A NUMA node is no number.
    #[error("the NUMA node of {row} is `{value}`; N/A and numbers from 0 to 255 are accepted")]
    NumaNode {
        /// The row's name.
        row: String,
        /// What is there.
        value: String,
    },
    /// Not one NUMA node, or the lack of it, for each card.
    #[error("the link matrix has NUMA nodes of {found} cards; {expected} are accepted")]
    NumaCount {
        /// NUMA nodes found.
        found: usize,
        /// Cards of the matrix.
        expected: usize,
    },
    /// More network cards than fit.
    #[error(
        "the link matrix has {found} network cards; at most {} are accepted",
        LinkMatrix::MAX_NICS
    )]
    NicCount {
        /// Network cards found.
        found: usize,
    },
    /// A network card's name cannot stand in a table, or stands there twice.
    #[error(
        "a network card of the link matrix is called `{name}`; different names of letters, digits, \
         `_`, `-` and `.` that do not begin with GPU are accepted"
    )]
    NicName {
        /// The name.
        name: String,
    },
    /// A name that is no known machine's.
    #[error(
        "`{name}` is no known machine; {} or a link matrix are accepted",
        super::names_text()
    )]
    Unknown {
        /// The name.
        name: String,
    },
    /// The text has no line or section of this kind.
    #[error("the text has no {missing}; {accepted} is accepted")]
    Missing {
        /// What is missing.
        missing: &'static str,
        /// What would do.
        accepted: &'static str,
    },
    /// A row or column is missing, said twice or not in order.
    #[error("the link matrix {} where `{expected}` must be", found_word(.found))]
    Order {
        /// What is there; empty at the end of the matrix.
        found: String,
        /// What must be there.
        expected: String,
    },
}

fn found_word(found: &str) -> String {
    if found.is_empty() {
        "ends".into()
    } else {
        alloc::format!("has `{found}`")
    }
}

/// A network card and its link to each card.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Nic {
    /// Its name, such as `mlx5_0`.
    pub name: Box<str>,
    /// Its PCIe link to each card, in the cards' order.
    pub links: Vec<Link>,
}

impl Nic {
    pub(super) fn unlinked(name: &str) -> Self {
        let links = Vec::new();
        Self {
            name: name.into(),
            links,
        }
    }
}

/// A checked, symmetric matrix of the links of at most [`MAX_CARDS`] cards, with the NUMA node of
/// each card and the links of the network cards.
///
/// As text it is what `nvidia-smi topo -m` prints, see [`LinkMatrix::from_topo_text`]; as a field
/// of a document it is one line, see [`LinkMatrix::from_text`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "String", into = "String"))]
pub struct LinkMatrix {
    /// Row by row, below the diagonal: (1,0), (2,0), (2,1), ...
    pairs: Vec<Pair>,
    numa: Vec<Option<u8>>,
    nics: Vec<Nic>,
}

/// The links of one pair of cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pair {
    /// The best one.
    pub(super) link: Link,
    /// The PCIe path beneath it, where that is known.
    pub(super) pcie: Option<Link>,
}

impl LinkMatrix {
    /// Network cards, at most.
    pub const MAX_NICS: usize = 64;

    /// A matrix from full rows, `None` on the diagonal; one NUMA node (or `None`: not known) for
    /// each card; and network cards.
    pub fn new<R: AsRef<[Option<Link>]>>(
        rows: &[R],
        numa: &[Option<u8>],
        nics: Vec<Nic>,
    ) -> Result<Self, LinkError> {
        let rows: Vec<Vec<Option<Pair>>> = rows
            .iter()
            .map(|row| {
                let pair = |link: &Option<Link>| link.map(Pair::from);
                row.as_ref().iter().map(pair).collect()
            })
            .collect();
        Self::from_pairs(&rows, numa, nics)
    }

    pub(super) fn from_pairs(
        rows: &[Vec<Option<Pair>>],
        numa: &[Option<u8>],
        nics: Vec<Nic>,
    ) -> Result<Self, LinkError> {
        let cards = rows.len();
        if cards == 0 || cards > MAX_CARDS as usize {
            return Err(LinkError::CardCount { found: cards });
        }
        if numa.len() != cards {
            return Err(LinkError::NumaCount {
                found: numa.len(),
                expected: cards,
            });
        }
        if let Some((row, cells)) = rows.iter().enumerate().find(|(_, row)| row.len() != cards) {
            return Err(LinkError::RowLength {
                row: text::card(row),
                found: cells.len(),
                expected: cards,
            });
        }
        let cell = |row: usize, column: usize| rows.get(row)?.get(column).copied().flatten();
        let mut pairs = Vec::with_capacity(cards * (cards - 1) / 2);
        for row in 0..cards {
            if let Some(found) = cell(row, row) {
                return Err(LinkError::Diagonal {
                    card: row,
                    found: found.link,
                });
            }
            for column in 0..row {
                let found = cell(row, column).ok_or(LinkError::NoLink { row, column })?;
                let mirrored = cell(column, row).ok_or(LinkError::NoLink {
                    row: column,
                    column: row,
                })?;
                if found != mirrored {
                    return Err(LinkError::Asymmetric {
                        row: text::card(row),
                        column: text::card(column),
                        found: text::pair(found),
                        mirrored: text::pair(mirrored),
                    });
                }
                if !found.is_possible() {
                    return Err(LinkError::Cell {
                        row: text::card(row),
                        column: text::card(column),
                        value: text::pair(found),
                        accepted: Link::ACCEPTED,
                    });
                }
                pairs.push(found);
            }
        }
        check_nics(&nics, cards)?;
        let numa = numa.to_vec();
        Ok(Self { pairs, numa, nics })
    }

    /// How many cards, `1..=`[`MAX_CARDS`].
    pub fn cards(&self) -> u32 {
        self.numa.len() as u32
    }

    /// The best link of two different cards of the matrix.
    pub fn link(&self, a: u32, b: u32) -> Option<Link> {
        Some(self.pair(a, b)?.link)
    }

    /// The PCIe path of two different cards of the matrix, which may lie beneath a better link:
    /// as said, or the link itself, or by NUMA nodes. Only `topo -mp` tells it for cards with
    /// NVLink.
    pub fn pcie(&self, a: u32, b: u32) -> Option<Link> {
        let pair = self.pair(a, b)?;
        Some(match pair.pcie {
            Some(pcie) => pcie,
            None if pair.link.is_pcie() => pair.link,
            None if self.is_one_numa_node(a, b) => Link::Node,
            None => Link::System,
        })
    }

    pub(super) fn pair(&self, a: u32, b: u32) -> Option<Pair> {
        let (row, column) = if a > b { (a, b) } else { (b, a) };
        if row == column || row >= self.cards() {
            return None;
        }
        let index = row * (row - 1) / 2 + column;
        self.pairs.get(index as usize).copied()
    }

    /// The NUMA node of a card; `None` when it is not known.
    pub fn numa_node(&self, card: u32) -> Option<u8> {
        self.numa.get(card as usize).copied().flatten()
    }

    /// Whether both cards are known to be on the same NUMA node.
    pub fn is_one_numa_node(&self, a: u32, b: u32) -> bool {
        matches!((self.numa_node(a), self.numa_node(b)), (Some(a), Some(b)) if a == b)
    }

    /// The network cards.
    pub fn nics(&self) -> &[Nic] {
        &self.nics
    }

    /// The nearest network card of a card and its link, the first one of equals.
    pub fn nearest_nic(&self, card: u32) -> Option<(&str, Link)> {
        let link = |nic: &Nic| nic.links.get(card as usize).copied();
        let mut nearest: Option<(&str, Link)> = None;
        for nic in &self.nics {
            if let Some(link) = link(nic)
                && nearest.is_none_or(|(_, best)| link > best)
            {
                nearest = Some((&nic.name, link));
            }
        }
        nearest
    }

    /// The same machine with a card whose NVLinks or XGMI links are all down: it reaches the
    /// others over PCIe.
    #[must_use]
    pub fn without_fabric(&self, card: u32) -> Self {
        let mut degraded = self.clone();
        for other in 0..self.cards() {
            if let Some(pcie) = self.pcie(card, other) {
                let (row, column) = (card.max(other), card.min(other));
                let index = row * (row - 1) / 2 + column;
                if let Some(pair) = degraded.pairs.get_mut(index as usize) {
                    *pair = Pair::from(pcie);
                }
            }
        }
        degraded
    }
}

impl Pair {
    fn is_possible(self) -> bool {
        let beneath = match self.pcie {
            Some(pcie) => pcie.is_pcie() && !self.link.is_pcie(),
            None => true,
        };
        beneath && self.link.checked().is_some()
    }
}

impl From<Link> for Pair {
    fn from(link: Link) -> Self {
        Self { link, pcie: None }
    }
}

fn check_nics(nics: &[Nic], cards: usize) -> Result<(), LinkError> {
    if nics.len() > LinkMatrix::MAX_NICS {
        return Err(LinkError::NicCount { found: nics.len() });
    }
    for (index, nic) in nics.iter().enumerate() {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        let is_new = nics.iter().take(index).all(|other| other.name != nic.name);
        let is_name = !nic.name.is_empty() && nic.name.bytes().all(is_plain);
        if !is_name || !is_new || nic.name.starts_with("GPU") {
            return Err(LinkError::NicName {
                name: text::shortened(&nic.name),
            });
        }
        if nic.links.len() != cards {
            return Err(LinkError::RowLength {
                row: text::shortened(&nic.name),
                found: nic.links.len(),
                expected: cards,
            });
        }
        let mut links = nic.links.iter().enumerate();
        if let Some((card, link)) = links.find(|(_, link)| !link.is_pcie()) {
            return Err(LinkError::Cell {
                row: text::shortened(&nic.name),
                column: text::card(card),
                value: alloc::format!("{link}"),
                accepted: Link::ACCEPTED_PCIE,
            });
        }
    }
    Ok(())
}
