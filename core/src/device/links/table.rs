//! The look-ups of one kind of machine.

use alloc::{vec, vec::Vec};
use core::fmt;

use super::{
    Link, LinkMatrix, NVLINK_GIGABYTES_PER_SECOND, Nearness,
    build::{Sets, canonical, lowest, lowest_of, members, twins},
    ring,
    score::Scores,
};
use crate::bits::CardSet;

/// The set of cards to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Best {
    /// The cards.
    pub cards: CardSet,
    /// What they are worth, see [`LinkTable::worth`].
    pub worth: i32,
    /// What the free cards that stay can still offer, see [`LinkTable::standing`].
    pub rest: i32,
}

/// How a set of cards hangs together, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// The slowest hop of the best ring over the cards, which is what a collective operation waits
    /// for; `None` for one card.
    pub bottleneck: Option<Link>,
    /// The slowest link of any pair.
    pub slowest_pair: Option<Link>,
    /// The NUMA node of all of them; `None` when they have several or it is not known.
    pub numa_node: Option<u8>,
}

/// What is looked up about the free cards of a node, made once from its [`LinkMatrix`].
///
/// Cards that are twins (swapping them leaves links, NUMA nodes and network cards the same) are
/// interchangeable: answers depend on how many of each class are free, and name the lowest of them.
///
/// Memory, once for all nodes with the same matrix: for each state of the free cards 9 bytes a card
/// and 8 more. 20 KiB for 8 cards (256 states; the part for one nearness and one count, which a
/// burst of decisions uses, is 512 bytes), 12 KiB for 16 cards in two classes of twins (81 states),
/// 1 MiB for 16 cards in twins of two (6,561 states), 10 MiB for 16 cards that are all different
/// (65,536 states).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkTable {
    matrix: LinkMatrix,
    all: u16,
    /// Classes of twins.
    classes: Vec<u16>,
    /// How far apart the states of one free card more of a class are; empty when a state is the
    /// free set itself.
    strides: Vec<u32>,
    states: usize,
    /// `[nearness][count - 1][state]`: the set to take, 0 for none. By the lowest members of each
    /// class when states are not sets.
    best: Vec<u16>,
    /// `[nearness][count - 1][state]`: disjoint sets.
    capacity: Vec<u8>,
    worth: Vec<i32>,
    standing: Vec<i32>,
    /// By set, 64 in a word: see [`LinkTable::is_fabric`].
    fabric: Vec<u64>,
}

/// Up to so many cards a state is the free set itself, so that no look-up counts twins.
const CARDS_BY_SET: usize = 8;

impl LinkTable {
    /// Makes the tables, outside the hot path: 3^cards steps at most, fewer with twins.
    pub fn new(matrix: &LinkMatrix) -> Self {
        let classes = twins(matrix);
        let sets = Sets::new(matrix, &classes);
        let cards = sets.cards;
        let mut table = Self {
            matrix: matrix.clone(),
            all: u16::MAX >> (16 - cards),
            strides: Vec::new(),
            states: 1 << cards,
            classes,
            best: Vec::new(),
            capacity: Vec::new(),
            worth: Vec::new(),
            standing: Vec::new(),
            fabric: fabric_rings(matrix),
        };
        if cards > CARDS_BY_SET && table.classes.len() < cards {
            let mut states = 1;
            for class in &table.classes {
                table.strides.push(states);
                states *= class.count_ones() + 1;
            }
            table.states = states as usize;
        }
        let rows = 3 * cards * table.states;
        (table.best, table.capacity) = (vec![0; rows], vec![0; rows]);
        (table.worth, table.standing) = (vec![0; table.states], vec![0; table.states]);
        for set in 0..1_usize << cards {
            let canonical = sets.canonical[set] as usize;
            if !table.strides.is_empty() && canonical != set {
                continue;
            }
            let state = table.state(set as u16);
            table.worth[state] = sets.worth[set];
            table.standing[state] = sets.standing[canonical];
            for row in 0..3 * cards {
                let (near, size) = (row / cards, row % cards);
                let from = canonical * cards + size;
                let to = row * table.states + state;
                table.best[to] = table.members(sets.best[near][from], set as u16);
                table.capacity[to] = sets.capacity[near][from];
            }
        }
        table
    }

    /// As many free members of each class as a choice has, the lowest.
    fn members(&self, choice: u16, free: u16) -> u16 {
        self.classes.iter().fold(0, |cards, class| {
            cards | lowest_of(free & class, (choice & class).count_ones())
        })
    }

    fn state(&self, set: u16) -> usize {
        if self.strides.is_empty() {
            return set as usize;
        }
        let classes = self.classes.iter().zip(&self.strides);
        classes
            .map(|(class, stride)| ((set & class).count_ones() * stride) as usize)
            .sum()
    }

    fn place(&self, free: u16, count: u32, near: Nearness) -> Option<usize> {
        let cards = self.matrix.cards();
        let size = count.checked_sub(1).filter(|size| *size < cards)?;
        let row = near as usize * cards as usize + size as usize;
        Some(row * self.states + self.state(free))
    }

    /// Cards that the machine does not have are passed over.
    fn clip(&self, set: CardSet) -> u16 {
        set.0 as u16 & self.all
    }

    /// The `count` free cards to take; `None` when there are not as many, none are asked for, or
    /// none are near enough. Two or three loads for up to 8 cards.
    ///
    /// Not the set with the highest worth, since that may break all others: on DGX-1 it would take
    /// {2,3} and leave the worse pairs. Of the sets that are near enough it is the one
    ///
    /// 1. that leaves room for most other sets like it, by [`capacity`](Self::capacity);
    /// 2. with the highest total: 8 times its [`worth`](Self::worth), 8 times the most worth of
    ///    disjoint sets of the same size that stay, and what stays for other sizes as in
    ///    [`standing`](Self::standing);
    /// 3. with the highest worth;
    /// 4. with the lowest cards.
    ///
    /// Worked out for [canonical](Self::canonical) free sets and carried over to those that they
    /// stand for. The answers for one size agree with NVIDIA/go-gpuallocator's in most cases; it
    /// counts the links of all pairs, so that it is content with a card that hangs on by one link,
    /// and does not see what it takes from other sizes.
    pub fn best(&self, free: CardSet, count: u32, near: Nearness) -> Option<Best> {
        let free = self.clip(free);
        let mut cards = *self.best.get(self.place(free, count, near)?)?;
        if !self.strides.is_empty() {
            cards = self.members(cards, free);
        }
        (cards != 0).then(|| Best {
            cards: CardSet(u64::from(cards)),
            worth: self.worth(CardSet(u64::from(cards))),
            rest: self.standing(CardSet(u64::from(free & !cards))),
        })
    }

    /// How many disjoint sets of `count` cards the free cards hold at most, exactly; 0 for a count
    /// of 0. Taking [`best`](Self::best) again and again yields as many.
    pub fn capacity(&self, free: CardSet, count: u32, near: Nearness) -> u32 {
        let place = self.place(self.clip(free), count, near);
        let capacity = place.and_then(|place| self.capacity.get(place));
        capacity.copied().map_or(0, u32::from)
    }

    /// Shows all sets of `count` free cards that are near enough, but of sets that differ in twins
    /// only the one with the lowest, in the order of their lowest cards: `{0,1}`, `{0,2}`, `{1,2}`.
    pub fn choices(
        &self,
        free: CardSet,
        count: u32,
        near: Nearness,
        visit: &mut dyn FnMut(CardSet),
    ) {
        if count > 0 {
            self.extend(0, self.clip(free), count, near, visit);
        }
    }

    /// Shows the choices that add `count` of the open cards to the chosen ones.
    fn extend(
        &self,
        chosen: u16,
        open: u16,
        count: u32,
        near: Nearness,
        visit: &mut dyn FnMut(CardSet),
    ) {
        let set = CardSet(u64::from(chosen));
        if chosen != 0 && self.capacity(set, set.len(), near) == 0 {
            return; // nor is any larger set near
        }
        if count == 0 {
            visit(set);
            return;
        }
        let mut open = open;
        while open.count_ones() >= count {
            let card = open & open.wrapping_neg();
            self.extend(chosen | card, open ^ card, count - 1, near, visit);
            // Without this card, then without its twins.
            let class = self.classes.iter().find(|class| **class & card != 0);
            open &= !class.copied().unwrap_or(card);
        }
    }

    /// The same for free sets that no question can tell apart: the lowest members of each class of
    /// twins, as many as are in the set.
    pub fn canonical(&self, free: CardSet) -> CardSet {
        CardSet(u64::from(canonical(self.clip(free), &self.classes)))
    }

    /// Whether all cards are twins.
    pub fn is_uniform(&self) -> bool {
        self.classes.len() == 1
    }

    /// What a set of cards is worth to one who gets it: sixteenths of a pair's score (an NVLink
    /// 100, `PIX` 40, `SYS` 10) for each card; three parts what crosses the narrowest cut of the set
    /// into two parts, which bounds collective operations, one part the mean of its pairs; and a
    /// little for near network cards. To be compared only between sets of the same machine.
    pub fn worth(&self, set: CardSet) -> i32 {
        self.worth
            .get(self.state(self.clip(set)))
            .copied()
            .unwrap_or_default()
    }

    /// What free cards can still offer: for each size from 2 the most worth of disjoint sets of
    /// that size, four times for 2, 4, 8 and 16, summed.
    pub fn standing(&self, free: CardSet) -> i32 {
        self.standing
            .get(self.state(self.clip(free)))
            .copied()
            .unwrap_or_default()
    }

    /// Whether some ring over the cards of a set runs over NVLink or XGMI alone. O(1).
    pub fn is_fabric(&self, set: CardSet) -> bool {
        let set = self.clip(set) as usize;
        self.fabric
            .get(set / 64)
            .is_some_and(|word| word >> (set % 64) & 1 == 1)
    }

    /// How the cards of a set hang together. For people: 2^cards steps.
    pub fn describe(&self, set: CardSet) -> Description {
        let set = self.clip(set);
        let cards = CardSet(u64::from(set));
        let scores = Scores::new(&self.matrix);
        let slowest_hop = ring::best(&scores, set).slowest;
        let (mut bottleneck, mut slowest_pair) = (None, None);
        let slower = |slowest: Option<Link>, link| Some(slowest.map_or(link, |l| l.min(link)));
        for a in cards {
            for b in cards.iter().take_while(|b| *b < a) {
                let Some(link) = self.matrix.link(a, b) else {
                    continue;
                };
                slowest_pair = slower(slowest_pair, link);
                if Some(scores.pair(a as usize, b as usize)) == slowest_hop {
                    bottleneck = slower(bottleneck, link);
                }
            }
        }
        let nodes = || cards.iter().map(|card| self.matrix.numa_node(card));
        let node = nodes().next().flatten();
        Description {
            bottleneck,
            slowest_pair,
            numa_node: node.filter(|_| nodes().all(|other| other == node)),
        }
    }

    /// The cards of a set in the order of their best ring, from the lowest card on, the lowest
    /// order of equals: neighbours in the order, and the last and the first, are never joined worse
    /// than [`Description::bottleneck`]. 2^cards steps.
    pub fn order(&self, set: CardSet) -> Vec<u32> {
        ring::best(&Scores::new(&self.matrix), self.clip(set)).order
    }

    /// The matrix that the table was made from.
    pub fn matrix(&self) -> &LinkMatrix {
        &self.matrix
    }
}

/// The sets of two cards and more with a ring of fabric links, as bits. By paths from the lowest card:
/// `ends` holds where a path over exactly the set may end.
fn fabric_rings(matrix: &LinkMatrix) -> Vec<u64> {
    let cards = matrix.cards() as usize;
    let mut joined = [0_usize; 16];
    for (a, joined) in joined.iter_mut().enumerate().take(cards) {
        let near = (0..cards).filter(|&b| {
            let link = matrix.link(a as u32, b as u32);
            link.is_some_and(Link::is_fabric)
        });
        *joined = near.fold(0, |near, b| near | 1 << b);
    }
    let mut ends = vec![0_u16; 1 << cards];
    let mut rings = vec![0_u64; (1_usize << cards).div_ceil(64)];
    for set in 1..1_usize << cards {
        let first = lowest(set);
        if set == first {
            ends[set] = first as u16;
            continue;
        }
        let may_end = |last: &usize| usize::from(ends[set ^ 1 << *last]) & joined[*last] != 0;
        let found = members(set ^ first).filter(may_end);
        ends[set] = found.fold(0, |ends, last| ends | 1 << last);
        if usize::from(ends[set]) & joined[first.trailing_zeros() as usize] != 0 {
            rings[set / 64] |= 1 << (set % 64);
        }
    }
    rings
}

/// `NV2 50 GB/s`, `SYS`, `alone`.
impl fmt::Display for Description {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(link) = self.bottleneck else {
            return formatter.write_str("alone");
        };
        write!(formatter, "{link}")?;
        match link.gigabytes_per_second(NVLINK_GIGABYTES_PER_SECOND) {
            Some(speed) => write!(formatter, " {speed} GB/s"),
            None => Ok(()),
        }
    }
}
