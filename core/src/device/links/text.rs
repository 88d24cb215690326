//! A link matrix as text: what `nvidia-smi topo -m` and `rocm-smi --showtopo` print, and one line
//! for an annotation.

use alloc::{format, string::String, vec::Vec};
use core::fmt;

use super::{Link, LinkError, LinkMatrix, MAX_CARDS, Nic, known::known, matrix::Pair, rocm, topo};

pub(super) fn card(index: usize) -> String {
    format!("GPU{index}")
}

pub(super) fn pair(pair: Pair) -> String {
    match pair.pcie {
        Some(pcie) => format!("{}/{pcie}", pair.link),
        None => format!("{}", pair.link),
    }
}

/// A cell: `X`, a link, or a link and the PCIe path beneath it as in `NV2/PHB`.
pub(super) fn cell(text: &str, row: &str, column: &str) -> Result<Option<Pair>, LinkError> {
    let refused = |_| LinkError::Cell {
        row: shortened(row),
        column: shortened(column),
        value: shortened(text),
        accepted: Link::ACCEPTED,
    };
    if text == "X" {
        return Ok(None);
    }
    let Some((link, pcie)) = text.split_once('/') else {
        return text
            .parse::<Link>()
            .map(Pair::from)
            .map(Some)
            .map_err(refused);
    };
    let link = link.parse().map_err(refused)?;
    let pcie = Some(pcie.parse().map_err(refused)?);
    Ok(Some(Pair { link, pcie }))
}

impl LinkMatrix {
    /// Reads what `nvidia-smi topo -m` prints, or `rocm-smi --showtopo`.
    ///
    /// Of the first: columns are separated by tabs or spaces; ANSI underlines, text before the
    /// header and after the legend, and CPU affinities are passed over; the last columns and the
    /// rows of network cards may be missing; `NIC0` is called by its name in the NIC legend. A
    /// list as NUMA affinity names the card's node only where a number as `GPU NUMA ID` says that
    /// the others are memory of cards (Grace), else the node is not known. A cell may name the PCIe
    /// path of `topo -mp` beneath the link, as in `NV2/PHB`; that is an addition of ours.
    ///
    /// Of the second: weight, hops and type of the links, and NUMA nodes. XGMI counts a hop for
    /// each 15 of the weight; PCIe is `NODE` on one NUMA node and `SYS` otherwise.
    pub fn from_topo_text(text: &str) -> Result<Self, LinkError> {
        let text = without_ansi(text);
        if rocm::is_rocm(&text) {
            return rocm::parse(&text);
        }
        topo::parse(&text)
    }

    /// Reads a node's annotation: the name of a known machine ([`names`](super::names)), the one
    /// line that [`Display`](fmt::Display) writes, or all that
    /// [`from_topo_text`](Self::from_topo_text) reads.
    pub fn from_text(text: &str) -> Result<Self, LinkError> {
        let text = text.trim();
        let mut words = text.split_whitespace();
        match (words.next(), words.next()) {
            (Some(first), _) if first == "X" || first == "X;" => parse_line(text),
            (Some(name), None) => known(name).ok_or_else(|| LinkError::Unknown {
                name: shortened(name),
            }),
            _ => Self::from_topo_text(text),
        }
    }

    /// The matrix as `nvidia-smi topo -m` prints it, without CPU affinities and the rows of network
    /// cards. [`from_topo_text`](Self::from_topo_text) reads it back.
    pub fn to_text(&self) -> String {
        format!("{}", Table(self))
    }

    fn row(&self, row: u32) -> impl Iterator<Item = String> + '_ {
        (0..self.cards()).map(move |column| match self.pair(row, column) {
            Some(cell) => pair(cell),
            None => String::from("X"),
        })
    }
}

/// As `nvidia-smi topo -m` prints it.
struct Table<'a>(&'a LinkMatrix);

impl fmt::Display for Table<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let matrix = self.0;
        for column in 0..matrix.cards() {
            write!(formatter, "\tGPU{column}")?;
        }
        for nic in matrix.nics() {
            write!(formatter, "\t{}", nic.name)?;
        }
        writeln!(formatter, "\tNUMA Affinity")?;
        for row in 0..matrix.cards() {
            write!(formatter, "GPU{row}")?;
            for cell in matrix.row(row) {
                write!(formatter, "\t{cell}")?;
            }
            let links = matrix.nics().iter();
            for link in links.filter_map(|nic| nic.links.get(row as usize)) {
                write!(formatter, "\t{link}")?;
            }
            match matrix.numa_node(row) {
                Some(node) => writeln!(formatter, "\t{node}")?,
                None => writeln!(formatter, "\tN/A")?,
            }
        }
        Ok(())
    }
}

/// One line: the rows with `@` and the NUMA node, then the network cards, as in
/// `X NV12 @0; NV12 X @1; mlx5_0: PIX SYS`.
impl fmt::Display for LinkMatrix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in 0..self.cards() {
            if row > 0 {
                formatter.write_str("; ")?;
            }
            for (column, cell) in self.row(row).enumerate() {
                let space = if column > 0 { " " } else { "" };
                write!(formatter, "{space}{cell}")?;
            }
            if let Some(node) = self.numa_node(row) {
                write!(formatter, " @{node}")?;
            }
        }
        for nic in self.nics() {
            write!(formatter, "; {}:", nic.name)?;
            for link in &nic.links {
                write!(formatter, " {link}")?;
            }
        }
        Ok(())
    }
}

impl From<LinkMatrix> for String {
    fn from(matrix: LinkMatrix) -> Self {
        format!("{matrix}")
    }
}

impl TryFrom<String> for LinkMatrix {
    type Error = LinkError;

    fn try_from(text: String) -> Result<Self, LinkError> {
        Self::from_text(&text)
    }
}

fn parse_line(text: &str) -> Result<LinkMatrix, LinkError> {
    let mut rows = Vec::new();
    let mut numa = Vec::new();
    let mut nics = Vec::new();
    for part in text
        .split([';', '\n'])
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        if let Some((name, links)) = part.split_once(':') {
            let name = name.trim();
            nics.push(Nic {
                name: name.into(),
                links: nic_links(name, links.split_whitespace())?,
            });
            continue;
        }
        let row = card(rows.len());
        let (cells, node) = match part.split_once('@') {
            Some((cells, node)) => (cells, Some(numa_number(node.trim(), &row)?)),
            None => (part, None),
        };
        let cells = cells.split_whitespace().enumerate();
        rows.push(
            cells
                .map(|(column, text)| cell(text, &row, &card(column)))
                .collect::<Result<Vec<_>, _>>()?,
        );
        numa.push(node);
        within_limit(rows.len())?;
    }
    LinkMatrix::from_pairs(&rows, &numa, nics)
}

fn nic_links<'a>(name: &str, cells: impl Iterator<Item = &'a str>) -> Result<Vec<Link>, LinkError> {
    cells
        .enumerate()
        .map(|(column, text)| pcie_link(text, name, &card(column)))
        .collect()
}

/// A cell that must be PCIe alone, as between a card and a network card.
pub(super) fn pcie_link(text: &str, row: &str, column: &str) -> Result<Link, LinkError> {
    match text.parse::<Link>() {
        Ok(link) if link.is_pcie() => Ok(link),
        _ => Err(LinkError::Cell {
            row: shortened(row),
            column: shortened(column),
            value: shortened(text),
            accepted: Link::ACCEPTED_PCIE,
        }),
    }
}

/// The number of a NUMA node.
pub(super) fn numa_number(text: &str, row: &str) -> Result<u8, LinkError> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if is_number { text.parse().ok() } else { None };
    number.ok_or_else(|| LinkError::NumaNode {
        row: row.into(),
        value: shortened(text),
    })
}

/// Stops early at more cards than fit.
pub(super) fn within_limit(cards: usize) -> Result<(), LinkError> {
    if cards > MAX_CARDS as usize {
        return Err(LinkError::CardCount { found: cards });
    }
    Ok(())
}

/// What an error quotes of a text from outside.
pub(super) fn shortened(text: &str) -> String {
    const CHARS: usize = 40;
    let mut short: String = text
        .chars()
        .take(CHARS)
        .filter(|c| !c.is_control())
        .collect();
    if text.chars().count() > CHARS {
        short.push('…');
    }
    short
}

/// Takes out `ESC [ ... letter`, as terminals are told to underline.
fn without_ansi(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        let end = after.find(|c: char| c.is_ascii_alphabetic() || c.is_control());
        rest = end.map_or("", |end| {
            let skipped = after.get(end..).unwrap_or_default();
            skipped
                .strip_prefix(|c: char| c.is_ascii_alphabetic())
                .unwrap_or(skipped)
        });
    }
    plain.push_str(rest);
    plain
}
