//! Makes the tables of a [`LinkTable`](super::LinkTable) by dynamic programming over sets of cards.
//!
//! Sets are words of at most 16 bits. Only sets that take the lowest members of each class of
//! interchangeable cards ("canonical" sets) are worked out: 25 instead of 256 on a machine with two
//! NUMA nodes of four cards, all 65,536 on 16 cards that are all different. Steps: 3^cards at most.

use alloc::{vec, vec::Vec};

use super::{
    Link, LinkMatrix, Nearness,
    score::{self, Scores},
};

/// How much the worth of disjoint sets of a size counts in what free cards can still offer: sizes
/// that most gangs ask for more than others, so that they decide where the two disagree.
const fn weight_of_size(cards: usize) -> i32 {
    match cards {
        0 | 1 => 0,
        2 | 4 | 8 | 16 => 4,
        _ => 1,
    }
}

/// How much a set itself counts, and as much the sets of its size that stay possible.
const OWN_WEIGHT: i32 = 8;

/// Classes of interchangeable cards, as sets.
pub(super) fn twins(matrix: &LinkMatrix) -> Vec<u16> {
    let mut classes: Vec<u16> = Vec::new();
    for card in 0..matrix.cards() {
        let class = classes.iter_mut().find(|class| {
            let first = class.trailing_zeros();
            are_twins(matrix, first, card)
        });
        match class {
            Some(class) => *class |= 1 << card,
            None => classes.push(1 << card),
        }
    }
    classes
}

/// Whether swapping the two cards leaves links, NUMA nodes and, but for their names, network cards
/// the same.
fn are_twins(matrix: &LinkMatrix, a: u32, b: u32) -> bool {
    let others = || (0..matrix.cards()).filter(move |other| *other != a && *other != b);
    if matrix.numa_node(a) != matrix.numa_node(b)
        || others().any(|other| matrix.pair(a, other) != matrix.pair(b, other))
    {
        return false;
    }
    let nics = |swapped: bool| {
        let mut columns: Vec<Vec<Link>> =
            matrix.nics().iter().map(|nic| nic.links.clone()).collect();
        for column in &mut columns {
            if swapped {
                column.swap(a as usize, b as usize);
            }
        }
        columns.sort_unstable();
        columns
    };
    nics(false) == nics(true)
}

/// Everything by set of cards; entries of sets that are not canonical are empty.
pub(super) struct Sets {
    pub(super) cards: usize,
    /// The canonical set of each set.
    pub(super) canonical: Vec<u16>,
    pub(super) worth: Vec<i32>,
    pub(super) standing: Vec<i32>,
    /// `[set][nearness]`: whether the set is near.
    near: Vec<[bool; 3]>,
    /// `[nearness][set][count - 1]`: disjoint near sets.
    pub(super) capacity: [Vec<u8>; 3],
    /// `[nearness][set][count - 1]`: the set to take, 0 for none.
    pub(super) best: [Vec<u16>; 3],
}

pub(super) fn members(set: usize) -> impl Iterator<Item = usize> {
    let mut rest = set;
    core::iter::from_fn(move || {
        let card = rest.trailing_zeros() as usize;
        (rest != 0).then(|| {
            rest &= rest - 1;
            card
        })
    })
}

/// All subsets of a set but the empty one.
fn subsets(set: usize) -> impl Iterator<Item = usize> {
    let mut next = set;
    core::iter::from_fn(move || {
        let subset = next;
        (subset != 0).then(|| {
            next = (subset - 1) & set;
            subset
        })
    })
}

pub(super) fn lowest(set: usize) -> usize {
    set & set.wrapping_neg()
}

impl Sets {
    pub(super) fn new(matrix: &LinkMatrix, classes: &[u16]) -> Self {
        let cards = matrix.cards() as usize;
        let count = 1 << cards;
        let scores = Scores::new(matrix);
        let canonical: Vec<u16> = (0..count)
            .map(|set| canonical(set as u16, classes))
            .collect();
        let worth = worths(&scores, &canonical);
        let near = nearness(matrix);
        let mut sets = Self {
            cards,
            canonical,
            worth,
            near,
            standing: vec![0; count],
            capacity: [const { Vec::new() }; 3].map(|_: Vec<u8>| vec![0; count * cards]),
            best: [const { Vec::new() }; 3].map(|_: Vec<u16>| vec![0; count * cards]),
        };
        let offers = sets.partitions();
        sets.judge(&offers);
        sets
    }

    /// Fills in capacities and standing. Returns by `[set][count - 1]` what a set that was taken
    /// leaves for the total: the most worth of disjoint sets of its size and the standing.
    fn partitions(&mut self) -> Vec<i32> {
        let cards = self.cards;
        let mut partitions = vec![0; self.canonical.len() * cards];
        for set in canonical_sets(&self.canonical).filter(|set| *set != 0) {
            let first = lowest(set);
            let without = self.canonical[set ^ first] as usize * cards;
            let row = set * cards;
            partitions.copy_within(without..without + cards, row);
            for capacity in &mut self.capacity {
                capacity.copy_within(without..without + cards, row);
            }
            for others in subsets(set ^ first).chain([0]) {
                let chosen = others | first;
                if self.canonical[chosen] as usize != chosen {
                    continue;
                }
                let size = chosen.count_ones() as usize - 1;
                let rest = self.canonical[set ^ chosen] as usize * cards + size;
                let value = self.worth[chosen] + partitions[rest];
                let most = &mut partitions[row + size];
                *most = value.max(*most);
                for (capacity, near) in self.capacity.iter_mut().zip(self.near[chosen]) {
                    if near {
                        capacity[row + size] = capacity[row + size].max(capacity[rest] + 1);
                    }
                }
            }
            let offers = partitions[row..row + cards].iter().zip(1..);
            self.standing[set] = offers
                .map(|(worth, size)| weight_of_size(size) * worth)
                .sum();
        }
        for (set, offers) in partitions.chunks_exact_mut(cards).enumerate() {
            for (same, size) in offers.iter_mut().zip(1..) {
                // The standing has part of what stays possible of this size.
                let more = OWN_WEIGHT - weight_of_size(size);
                *same = more * *same + self.standing[set];
            }
        }
        partitions
    }

    /// Fills in the best sets.
    fn judge(&mut self, offers: &[i32]) {
        let cards = self.cards;
        for set in canonical_sets(&self.canonical) {
            let mut best = [[Candidate::default(); 16]; 3];
            for chosen in subsets(set) {
                if self.canonical[chosen] as usize != chosen {
                    continue;
                }
                let size = chosen.count_ones() as usize - 1;
                let rest = self.canonical[set ^ chosen] as usize * cards + size;
                let own = self.worth[chosen];
                let total = OWN_WEIGHT * own + offers[rest];
                for (kind, near) in self.near[chosen].into_iter().enumerate() {
                    if near {
                        // Any set leaves room for as many sets that may be anything.
                        let room = if kind == 0 {
                            0
                        } else {
                            self.capacity[kind][rest]
                        };
                        let candidate = Candidate::new(room, total, own, chosen as u16);
                        let best = &mut best[kind][size];
                        if candidate > *best {
                            *best = candidate;
                        }
                    }
                }
            }
            for (kind, best) in best.iter().enumerate() {
                for (size, candidate) in best.iter().take(cards).enumerate() {
                    self.best[kind][set * cards + size] = candidate.set();
                }
            }
        }
    }
}

/// A set and how good it is to take it: what stays possible and the total in one word, its own
/// worth and low cards in the other, since there are millions to compare.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    room_and_total: i64,
    own_and_low_cards: i64,
}

impl Candidate {
    fn new(room: u8, total: i32, own: i32, set: u16) -> Self {
        Self {
            room_and_total: i64::from(room) << 32 | i64::from(total),
            own_and_low_cards: i64::from(own) << 16 | i64::from(set.reverse_bits()),
        }
    }

    fn set(self) -> u16 {
        (self.own_and_low_cards as u16).reverse_bits()
    }
}

fn canonical_sets(canonical: &[u16]) -> impl Iterator<Item = usize> + use<> {
    let alone: Vec<u16> = canonical
        .iter()
        .enumerate()
        .filter(|(set, canonical)| *set == **canonical as usize)
        .map(|(_, canonical)| *canonical)
        .collect();
    alone.into_iter().map(usize::from)
}

/// The set with the lowest members of each class, as many as the set has.
pub(super) fn canonical(set: u16, classes: &[u16]) -> u16 {
    classes.iter().fold(0, |canonical, class| {
        canonical | lowest_of(*class, (set & class).count_ones())
    })
}

/// The `count` lowest members, or all when there are fewer.
pub(super) fn lowest_of(set: u16, count: u32) -> u16 {
    let mut rest = set;
    for _ in 0..count {
        rest &= rest.wrapping_sub(1);
    }
    set & !rest
}

/// What each canonical set is worth to one who gets it.
fn worths(scores: &Scores, canonical: &[u16]) -> Vec<i32> {
    let mut sets = vec![Sums::default(); canonical.len()];
    let mut fabrics = vec![Fabric::default(); canonical.len()];
    for set in 1..sets.len() {
        sets[set] = Sums::of(set, scores, &sets);
        fabrics[set] = Fabric::of(set, scores, &fabrics);
    }
    let worth = |set: usize| {
        let narrowest = fabric_cut(set, &fabrics) + sets[set].path;
        let Sums { pairs, nics, .. } = sets[set];
        score::worth(set.count_ones() as i32, narrowest, pairs, nics)
    };
    let mut worths = vec![0; sets.len()];
    for set in 1..sets.len() {
        let canonical = canonical[set] as usize;
        // Canonical sets come before those that they stand for.
        worths[set] = if canonical == set {
            worth(set)
        } else {
            worths[canonical]
        };
    }
    worths
}

/// Of one set.
#[derive(Clone, Copy, Default)]
struct Sums {
    /// Scores of all pairs.
    pairs: i32,
    /// PCIe score of the worst edge of the best tree, which is the best PCIe path across the
    /// narrowest cut: paths of PCIe share switches, so they do not add up.
    path: i32,
    nics: i32,
}

impl Sums {
    fn of(set: usize, scores: &Scores, smaller: &[Self]) -> Self {
        let first = set.trailing_zeros() as usize;
        let others = set ^ lowest(set);
        let mut sums = smaller[others];
        let pairs = members(others).map(|other| scores.pair(first, other));
        sums.pairs += pairs.sum::<i32>();
        sums.nics += scores.nic[first];
        // The best tree has a leaf.
        let with_leaf = |leaf: usize| {
            let others = set ^ 1 << leaf;
            let edge = members(others).map(|other| scores.path[leaf][other]).max();
            let tree = if others.is_power_of_two() {
                i32::MAX
            } else {
                smaller[others].path
            };
            tree.min(edge.unwrap_or(0))
        };
        sums.path = members(set).map(with_leaf).max().unwrap_or(0);
        sums
    }
}

/// Fabric of one set.
#[derive(Clone, Copy, Default)]
struct Fabric {
    /// Scores of all pairs.
    pairs: i32,
    /// What the cards can send.
    cards: i32,
}

impl Fabric {
    fn of(set: usize, scores: &Scores, smaller: &[Self]) -> Self {
        let first = set.trailing_zeros() as usize;
        let others = set ^ lowest(set);
        let Self { pairs, cards } = smaller[others];
        let more = members(others).map(|other| scores.fabric[first][other]);
        Self {
            pairs: pairs + more.sum::<i32>(),
            cards: cards + scores.fabric_of_card[first],
        }
    }
}

/// What crosses the fabric's narrowest cut of a set into two parts. Collective operations over the
/// set are never faster, and with enough trees or rings as fast.
fn fabric_cut(set: usize, fabrics: &[Fabric]) -> i32 {
    let all = fabrics[set].pairs;
    if all == 0 {
        return 0;
    }
    let cuts = subsets(set ^ lowest(set)).map(|part| {
        let (one, other) = (fabrics[part], fabrics[set ^ part]);
        (all - one.pairs - other.pairs)
            .min(one.cards)
            .min(other.cards)
    });
    cuts.min().unwrap_or(0)
}

fn nearness(matrix: &LinkMatrix) -> Vec<[bool; 3]> {
    let joined = |a: usize, b: usize| {
        let link = matrix.link(a as u32, b as u32);
        link.is_some_and(Link::is_fabric)
    };
    let same = |a: usize, b: usize| matrix.is_one_numa_node(a as u32, b as u32);
    let mut near = vec![[true; 3]; 1 << matrix.cards()];
    for set in 1..near.len() {
        let first = set.trailing_zeros() as usize;
        let others = set ^ lowest(set);
        let [any, island, numa] = near[others];
        near[set] = [
            any,
            island && members(others).all(|other| joined(first, other)),
            numa && members(others).all(|other| same(first, other)),
        ];
    }
    debug_assert_eq!(Nearness::ALL.map(|near| near as usize), [0, 1, 2]);
    near
}
