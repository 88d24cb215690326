//! What `rocm-smi --showtopo` prints.

use alloc::vec::Vec;

use super::{
    Link, LinkError, LinkMatrix,
    matrix::Pair,
    text::{card, numa_number, shortened, within_limit},
};

const TYPES: &str = "Link Type between";
const HOPS: &str = "Hops between";
const WEIGHTS: &str = "Weight between";
/// Weight of one XGMI hop.
const HOP_WEIGHT: u32 = 15;

pub(super) fn is_rocm(text: &str) -> bool {
    [TYPES, HOPS, WEIGHTS]
        .iter()
        .any(|title| text.contains(title))
}

pub(super) fn parse(text: &str) -> Result<LinkMatrix, LinkError> {
    let types = section(text, TYPES)?.ok_or(LinkError::Missing {
        missing: "matrix of link types",
        accepted: "`Link Type between two GPUs` with rows GPU0, GPU1, ...",
    })?;
    let hops = section(text, HOPS)?;
    let weights = section(text, WEIGHTS)?;
    let mut numa: Vec<Option<u8>> = types.iter().map(|_| None).collect();
    for line in text.lines().filter(|line| line.contains("Numa Node:")) {
        let index = line
            .split(['[', ']'])
            .nth(1)
            .and_then(|text| text.parse::<usize>().ok());
        let number = line.rsplit(':').next().unwrap_or_default().trim();
        if let Some(index) = index
            && let Some(node) = numa.get_mut(index)
            && number != "-1"
        {
            *node = Some(numa_number(number, &card(index))?);
        }
    }
    let rows = types.iter().enumerate().map(|(row, cells)| {
        let pair = |(column, kind): (usize, &&str)| {
            let cell = |value: &str, accepted| LinkError::Cell {
                row: card(row),
                column: card(column),
                value: shortened(value),
                accepted,
            };
            if row == column {
                return Ok(None);
            }
            let number = |matrix: &Option<Vec<Vec<&str>>>| {
                let Some(matrix) = matrix else {
                    return Ok(None);
                };
                let text = matrix.get(row).and_then(|cells| cells.get(column));
                let text = text.copied().unwrap_or_default();
                let number = text.parse::<u32>().ok().filter(|number| *number > 0);
                number.map(Some).ok_or_else(|| cell(text, "numbers from 1"))
            };
            let (hops, weight) = (number(&hops)?, number(&weights)?);
            let same = |a: Option<&Option<u8>>, b| a == b && a.copied().flatten().is_some();
            let link = match *kind {
                "XGMI" => {
                    let by_weight = weight.map_or(1, |weight| weight.div_ceil(HOP_WEIGHT));
                    let hops = hops.unwrap_or(1).max(by_weight);
                    let hops = u8::try_from(hops).unwrap_or(u8::MAX);
                    let link = Link::Xgmi { hops }.checked();
                    link.ok_or_else(|| cell("XGMI", "XGMI of 1 to 9 hops"))?
                }
                "PCIE" if same(numa.get(row), numa.get(column)) => Link::Node,
                "PCIE" => Link::System,
                other => return Err(cell(other, "XGMI, PCIE")),
            };
            Ok(Some(Pair::from(link)))
        };
        cells.iter().enumerate().map(pair).collect()
    });
    let rows = rows.collect::<Result<Vec<Vec<_>>, _>>()?;
    LinkMatrix::from_pairs(&rows, &numa, Vec::new())
}

/// The rows of one matrix; `None` when the text does not have it.
fn section<'a>(text: &'a str, title: &str) -> Result<Option<Vec<Vec<&'a str>>>, LinkError> {
    let mut lines = text.lines().skip_while(|line| !line.contains(title));
    if lines.next().is_none() {
        return Ok(None);
    }
    let mut rows: Vec<Vec<&str>> = Vec::new();
    let mut columns = None;
    for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
        if !line.starts_with("GPU") || line.starts_with("GPU[") {
            break;
        }
        let mut words = line.split_whitespace();
        let Some(expected) = columns else {
            columns = Some(words.count());
            continue;
        };
        let name = words.next().unwrap_or_default();
        if name != card(rows.len()) {
            return Err(LinkError::Order {
                found: shortened(name),
                expected: card(rows.len()),
            });
        }
        let cells: Vec<&str> = words.collect();
        if cells.len() != expected {
            return Err(LinkError::RowLength {
                row: name.into(),
                found: cells.len(),
                expected,
            });
        }
        rows.push(cells);
        within_limit(rows.len())?;
    }
    if columns != Some(rows.len()) {
        return Err(LinkError::RowLength {
            row: "the header".into(),
            found: columns.unwrap_or_default(),
            expected: rows.len(),
        });
    }
    Ok(Some(rows))
}
