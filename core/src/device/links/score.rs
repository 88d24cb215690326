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

/// Scores of all pairs of a machine, 0 on the diagonal and beyond its cards.
pub(super) struct Scores {
    /// NVLink and XGMI.
    pub(super) fabric: [[i32; 16]; 16],
    /// PCIe.
    pub(super) path: [[i32; 16]; 16],
    /// What a card can send over its fabric at once. Cards with more links than fit on one share
    /// them through switches; else it is the sum.
    pub(super) fabric_of_card: [i32; 16],
    /// The nearest network card.
    pub(super) nic: [i32; 16],
}

impl Scores {
    pub(super) fn new(matrix: &LinkMatrix) -> Self {
        let mut scores = Self {
            fabric: [[0; 16]; 16],
            path: [[0; 16]; 16],
            fabric_of_card: [0; 16],
            nic: [0; 16],
        };
        for a in 0..16_u32 {
            let at = a as usize;
            for b in 0..16_u32 {
                if let (Some(link), Some(mut beneath)) = (matrix.link(a, b), matrix.pcie(a, b)) {
                    // Where the class is only `SYS`, the NUMA column may still tell the halves.
                    if matrix.is_one_numa_node(a, b) {
                        beneath = beneath.max(Link::Node);
                    }
                    scores.fabric[at][b as usize] = direct(link);
                    scores.path[at][b as usize] = pcie(beneath);
                }
            }
            let row = scores.fabric[at].iter().copied();
            let sum = row.clone().sum();
            let shares = sum > direct(Link::Nvlink(Link::MAX_NVLINKS));
            scores.fabric_of_card[at] = if shares { row.max().unwrap_or(0) } else { sum };
            let nearest = matrix.nearest_nic(a);
            scores.nic[at] = nearest.map_or(0, |(_, link)| pcie(link));
        }
        scores
    }

    /// Both ways of a pair together. Of one vendor's links a better one never has the lower score,
    /// and only `SYS` and `NODE` on one NUMA node have the same.
    pub(super) fn pair(&self, a: usize, b: usize) -> i32 {
        self.fabric[a][b] + self.path[a][b]
    }
}

/// Sixteenths of a pair's score for each card: three parts the narrowest cut through the set, one
/// part the mean of its pairs; and a little for near network cards.
pub(super) const fn worth(cards: i32, cut: i32, pairs: i32, nics: i32) -> i32 {
    match cards {
        ..2 => nics,
        _ => 12 * cards * cut + 8 * pairs / (cards - 1) + nics,
    }
}
