//! What a pair and a set of cards are worth: the only place where classes become numbers.

use super::{Link, LinkMatrix};

/// The PCIe path of a pair. Each step saves less than the one before: leaving the NUMA node costs
/// most, so that two pairs inside NUMA nodes are better than one under a switch and one across.
const fn pcie(link: Link) -> i32 {
    match link {
        Link::System | Link::Xgmi { .. } | Link::Nvlink(_) => 10,
        Link::Node => 22,
        Link::HostBridge => 30,
        Link::MultiSwitch => 36,
        Link::SingleSwitch => 40,
    }
}

/// A link of its own, in the same measure: one NVLink, 25 GB/s, is 100; an XGMI hop halves it.
const fn direct(link: Link) -> i32 {
    match link {
        Link::Nvlink(links) => 100 * links as i32,
        Link::Xgmi { hops } if hops > 0 => 240 / hops as i32,
        _ => 0,
    }
}

/// Scores of all pairs.
pub(super) fn pairs(matrix: &LinkMatrix) -> [[i32; 16]; 16] {
    let mut scores = [[0; 16]; 16];
    for (a, row) in scores.iter_mut().enumerate() {
        for (b, score) in row.iter_mut().enumerate() {
            *score = pair(matrix, a as u32, b as u32);
        }
    }
    scores
}

fn pair(matrix: &LinkMatrix, a: u32, b: u32) -> i32 {
    let (Some(link), Some(mut path)) = (matrix.link(a, b), matrix.pcie(a, b)) else {
        return 0;
    };
    // Where the class says only `SYS`, the NUMA column may still tell the halves apart.
    if matrix.is_one_numa_node(a, b) {
        path = path.max(Link::Node);
    }
    direct(link) + pcie(path)
}

/// The nearest network card of a card.
pub(super) fn nic(matrix: &LinkMatrix, card: u32) -> i32 {
    matrix.nearest_nic(card).map_or(0, |(_, link)| pcie(link))
}

/// Sixteenths of a pair's score for each card: three parts the slowest hop of the best ring, one
/// part the mean of all pairs; and a little for near network cards.
pub(super) const fn worth(cards: i32, ring: i32, pairs: i32, nics: i32) -> i32 {
    match cards {
        ..2 => nics,
        _ => 12 * cards * ring + 8 * pairs / (cards - 1) + nics,
    }
}
