//! What `nvidia-smi topo -m` prints.

use alloc::{string::String, vec::Vec};

use super::{
    LinkError, LinkMatrix, Nic,
    text::{card, cell, numa_number, pcie_link, shortened, within_limit},
};

/// Columns behind the matrix.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Affinity {
    Cpu,
    Numa,
    GpuNumaId,
}

struct Header<'a> {
    cards: usize,
    nics: Vec<&'a str>,
    affinities: Vec<Affinity>,
}

impl<'a> Header<'a> {
    /// `None` when the line is no header.
    fn parse(line: &'a str) -> Option<Result<Self, LinkError>> {
        let mut words = line.split_whitespace().peekable();
        if words.peek() != Some(&"GPU0") || line.split_whitespace().any(|word| word == "X") {
            return None;
        }
        let mut header = Self {
            cards: 0,
            nics: Vec::new(),
            affinities: Vec::new(),
        };
        while let Some(word) = words.next() {
            match (word, words.peek().copied()) {
                ("CPU", Some("Affinity")) => header.affinities.push(Affinity::Cpu),
                ("NUMA", Some("Affinity")) => header.affinities.push(Affinity::Numa),
                ("GPU", Some("NUMA")) => {
                    header.affinities.push(Affinity::GpuNumaId);
                    words.next();
                }
                _ => {
                    if let Err(error) = header.add(word) {
                        return Some(Err(error));
                    }
                    continue;
                }
            }
            words.next(); // the column's second word
        }
        Some(Ok(header))
    }

    fn add(&mut self, word: &'a str) -> Result<(), LinkError> {
        if !word.starts_with("GPU") {
            self.nics.push(word);
            let found = self.nics.len();
            let fits = found <= LinkMatrix::MAX_NICS;
            return fits.then_some(()).ok_or(LinkError::NicCount { found });
        }
        let expected = card(self.cards);
        if word != expected || !self.nics.is_empty() {
            let found = shortened(word);
            return Err(LinkError::Order { found, expected });
        }
        self.cards += 1;
        within_limit(self.cards)
    }
}

pub(super) fn parse(text: &str) -> Result<LinkMatrix, LinkError> {
    let mut lines = text.lines();
    let header = lines
        .find_map(Header::parse)
        .unwrap_or(Err(LinkError::Missing {
            missing: "header",
            accepted: "a line of GPU0, GPU1, ... as `nvidia-smi topo -m` prints it",
        }))?;
    let mut rows = Vec::with_capacity(header.cards);
    let mut numa = Vec::with_capacity(header.cards);
    let mut nics: Vec<Nic> = header.nics.iter().map(|name| Nic::unlinked(name)).collect();
    let mut mirrored = Vec::new();
    for line in lines.clone() {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        if name == "Legend:" {
            break;
        }
        let is_nic = header.nics.contains(&name);
        if !is_nic && !name.starts_with("GPU") {
            continue;
        }
        let expected = card(rows.len());
        if !is_nic && (name != expected || rows.len() == header.cards) {
            let found = shortened(name);
            return Err(LinkError::Order { found, expected });
        }
        let words: Vec<&str> = words.collect();
        let (cells, links, affinities) = header.split(name, &words)?;
        if is_nic {
            mirrored.push((name, cells.to_vec()));
            continue;
        }
        let cells = cells.iter().enumerate();
        rows.push(
            cells
                .map(|(column, text)| cell(text, name, &card(column)))
                .collect::<Result<Vec<_>, _>>()?,
        );
        for (nic, text) in nics.iter_mut().zip(links) {
            nic.links.push(pcie_link(text, name, &nic.name)?);
        }
        numa.push(header.numa_node(name, affinities)?);
    }
    if rows.len() < header.cards {
        return Err(LinkError::Order {
            found: String::new(),
            expected: card(rows.len()),
        });
    }
    for (name, cells) in mirrored {
        check_mirrored(&nics, name, &cells)?;
    }
    for nic in &mut nics {
        if let Some(name) = legend(text, &nic.name) {
            nic.name = name.into();
        }
    }
    LinkMatrix::from_pairs(&rows, &numa, nics)
}

type Cells<'s, 'a> = &'s [&'a str];

impl Header<'_> {
    /// The cells of a row: cards, network cards, affinities.
    fn split<'s, 'a>(
        &self,
        row: &str,
        words: Cells<'s, 'a>,
    ) -> Result<(Cells<'s, 'a>, Cells<'s, 'a>, Cells<'s, 'a>), LinkError> {
        let wrong = || LinkError::RowLength {
            row: shortened(row),
            found: words.len(),
            expected: self.cards + self.nics.len() + self.affinities.len(),
        };
        let (cells, rest) = words.split_at_checked(self.cards).ok_or_else(wrong)?;
        let (links, rest) = rest.split_at_checked(self.nics.len()).ok_or_else(wrong)?;
        if rest.len() > self.affinities.len() {
            return Err(wrong());
        }
        Ok((cells, links, rest))
    }

    /// A row with fewer cells than the header has columns does not tell which ones it lacks, so its
    /// NUMA node is not known.
    fn numa_node(&self, row: &str, cells: &[&str]) -> Result<Option<u8>, LinkError> {
        if cells.len() != self.affinities.len() {
            return Ok(None);
        }
        let column = |wanted: Affinity| {
            let index = self
                .affinities
                .iter()
                .position(|column| *column == wanted)?;
            cells.get(index).copied()
        };
        let Some(affinity) = column(Affinity::Numa).filter(|text| *text != "N/A") else {
            return Ok(None);
        };
        let is_list = affinity.contains([',', '-']);
        let first = affinity.split([',', '-']).next().unwrap_or_default();
        let node = numa_number(first, row)?;
        let is_grace = column(Affinity::GpuNumaId).is_some_and(|text| text != "N/A");
        Ok((!is_list || is_grace).then_some(node))
    }
}

fn check_mirrored(nics: &[Nic], row: &str, cells: &[&str]) -> Result<(), LinkError> {
    let Some(nic) = nics.iter().find(|nic| *nic.name == *row) else {
        return Ok(());
    };
    for (column, (text, link)) in cells.iter().zip(&nic.links).enumerate() {
        let found = pcie_link(text, row, &card(column))?;
        if found != *link {
            return Err(LinkError::Asymmetric {
                row: shortened(row),
                column: card(column),
                found: String::from(found),
                mirrored: String::from(*link),
            });
        }
    }
    Ok(())
}

/// The name of `NIC0` in the legend, `NIC0: mlx5_0`.
fn legend<'a>(text: &'a str, nic: &str) -> Option<&'a str> {
    let names = text.lines().filter_map(|line| line.split_once(':'));
    let mut named = names.filter(|(key, _)| key.trim() == nic);
    named
        .next()
        .map(|(_, name)| name.trim())
        .filter(|name| !name.is_empty())
}
