//! Whether cards can together give what is wanted, when each gives one of a few patterns.
//!
//! Data enters as numbers wanted by item and as groups of alike cards with their patterns; out comes a
//! pattern for each card, or that there is none. Nothing here knows devices or members.
//!
//! Two ways, both exact in what they say. Give each item a weight: if all cards together cannot hold
//! the weight of what is wanted, whatever patterns they take, it does not fit. Any weights will do for a
//! proof; good ones are found by raising those of items that are short when every card takes its
//! heaviest pattern. What the weights do not refute is tried card by card, the heaviest pattern first,
//! with the same weights to see early that a branch leads nowhere.

use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::device::patterns::{Counts, MOST_ITEMS, Maximal};

type Weights = [u64; MOST_ITEMS];

/// Alike cards.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) patterns: Maximal<MOST_ITEMS>,
    pub(super) cards: u32,
}

/// What is wanted, and of whom.
#[derive(Clone, Debug, Default)]
pub(super) struct Cover {
    pub(super) wanted: Counts,
    pub(super) groups: Vec<Group>,
    /// Weights that came closest to a proof, the closest last.
    closest: Vec<Weights>,
    /// Work done, in steps of a search.
    pub(super) steps: u64,
}

/// What trying found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// A pattern for each card that is needed, with its group.
    Covered(Vec<(u32, Counts)>),
    Impossible,
    Unknown,
}

/// The weight that stands for a whole card at first.
const UNIT: u64 = 1 << 20;
const MOST_WEIGHT: u64 = 1 << 40;
const MOST_ROUNDS: usize = 96;
/// Patterns times rounds, at most about so many.
const MOST_LOOKS: usize = 100_000;
/// Beyond so many cards nothing is tried card by card.
pub(super) const MOST_CARDS: u32 = 128;
/// So many failed states are remembered.
const MOST_DEAD: usize = 1 << 15;

fn weigh(counts: &Counts, weights: &Weights) -> u128 {
    let pairs = counts.iter().zip(weights);
    pairs
        .map(|(&count, &weight)| u128::from(count) * u128::from(weight))
        .sum()
}

impl Group {
    fn heaviest(&self, weights: &Weights) -> Option<(u128, &Counts)> {
        let patterns = self.patterns.list.iter();
        patterns
            .map(|pattern| (weigh(pattern, weights), pattern))
            .max_by_key(|&(weight, _)| weight)
    }
}

impl Cover {
    /// Counts alike cards in, with their patterns as far as they serve what is wanted. Returns their
    /// group; nothing: they serve none of it.
    pub(super) fn add(&mut self, patterns: &Maximal<MOST_ITEMS>, cards: u32) -> Option<u32> {
        let mut useful = Maximal::default();
        for pattern in &patterns.list {
            let counts = within(pattern, &self.wanted);
            if counts.iter().any(|&count| count > 0) {
                useful.add(counts);
            }
        }
        if useful.list.is_empty() {
            return None;
        }
        useful.list.sort_unstable();
        let mut groups = self.groups.iter();
        let at = groups.position(|group| group.patterns.list == useful.list);
        if let Some(at) = at {
            let group = &mut self.groups[at];
            group.cards = group.cards.saturating_add(cards);
        } else {
            self.groups.push(Group {
                patterns: useful,
                cards,
            });
        }
        Some(at.unwrap_or(self.groups.len() - 1) as u32)
    }

    /// Whether weights prove that it cannot be. Leaves the weights that came closest.
    pub(super) fn is_refuted(&mut self) -> bool {
        self.closest.clear();
        let mut weights: Weights = [0; MOST_ITEMS];
        for (item, weight) in weights
            .iter_mut()
            .enumerate()
            .filter(|(item, _)| self.wanted[*item] > 0)
        {
            let patterns = self.groups.iter().flat_map(|group| &group.patterns.list);
            let most = patterns.map(|pattern| pattern[item]).max().unwrap_or(0);
            if most == 0 {
                return true;
            }
            *weight = UNIT / u64::from(most);
        }
        let patterns: usize = self
            .groups
            .iter()
            .map(|group| group.patterns.list.len())
            .sum();
        let rounds = (MOST_LOOKS / patterns.max(1)).clamp(8, MOST_ROUNDS);
        let mut best: Option<(u128, u128)> = None;
        for round in 0..rounds {
            self.steps += patterns as u64 / 64 + 1;
            let mut given: [u64; MOST_ITEMS] = [0; MOST_ITEMS];
            let mut held = 0_u128;
            for group in &self.groups {
                let Some((weight, pattern)) = group.heaviest(&weights) else {
                    continue;
                };
                held = held.saturating_add(weight * u128::from(group.cards));
                for (given, &count) in given.iter_mut().zip(pattern) {
                    *given = given.saturating_add(u64::from(count) * u64::from(group.cards));
                }
            }
            let wanted = weigh(&self.wanted, &weights);
            if wanted > held {
                return true;
            }
            // Shares of 2^32, so that products stay small.
            let closer = |(one, of): (u128, u128)| (one << 32) / of.max(1);
            if best.is_none_or(|best| closer((wanted, held)) > closer(best)) {
                best = Some((wanted, held));
                if self.closest.len() == 4 {
                    self.closest.remove(0);
                }
                self.closest.push(weights);
            }
            for ((weight, &given), &wanted) in weights.iter_mut().zip(&given).zip(&self.wanted) {
                let (given, wanted) = (i128::from(given), i128::from(wanted));
                let most = given.max(wanted).max(1);
                let slower = 2 + round as i128 / 4;
                let step = i128::from(*weight) * (wanted - given) / most / slower;
                let moved = i128::from(*weight) + step;
                if wanted > 0 {
                    *weight = moved.clamp(1, i128::from(MOST_WEIGHT)) as u64;
                }
            }
        }
        false
    }

    /// Tries card by card, within so many steps. To be asked after [`Self::is_refuted`].
    pub(super) fn solve(&mut self, most_steps: u64) -> Answer {
        let cards = self.groups.iter().map(|group| group.cards);
        if cards.fold(0, u32::saturating_add) > MOST_CARDS {
            return Answer::Unknown;
        }
        // Cards with little choice first.
        let mut order: Vec<u32> = (0..self.groups.len() as u32).collect();
        order.sort_by_key(|&group| (self.groups[group as usize].patterns.list.len(), group));
        let order: Vec<u32> = order
            .into_iter()
            .flat_map(|group| {
                let cards = self.groups[group as usize].cards;
                (0..cards).map(move |_| group)
            })
            .collect();
        let limits = self.closest.iter().rev().map(|weights| {
            let mut sums = alloc::vec![0_u128; order.len() + 1];
            for (at, &group) in order.iter().enumerate().rev() {
                let heaviest = self.groups[group as usize].heaviest(weights);
                sums[at] = sums[at + 1].saturating_add(heaviest.map_or(0, |(weight, _)| weight));
            }
            (*weights, sums)
        });
        let mut walk = Walk {
            groups: &self.groups,
            limits: limits.collect(),
            order,
            options: Vec::new(),
            chosen: Vec::new(),
            dead: hashbrown::HashSet::default(),
            steps: most_steps,
        };
        let answer = walk.from(0, self.wanted);
        self.steps += most_steps - walk.steps;
        match answer {
            Some(true) => Answer::Covered(walk.chosen),
            Some(false) => Answer::Impossible,
            None => Answer::Unknown,
        }
    }
}

fn within(pattern: &Counts, most: &Counts) -> Counts {
    core::array::from_fn(|item| pattern[item].min(most[item]))
}

struct Walk<'a> {
    groups: &'a [Group],
    /// Weights, and by card how much it and those behind it hold.
    limits: Vec<(Weights, Vec<u128>)>,
    /// By card: its group. Cards of a group lie next to each other.
    order: Vec<u32>,
    /// Stack of what cards may give.
    options: Vec<Counts>,
    chosen: Vec<(u32, Counts)>,
    /// Cards passed and what was left then, where nothing was found.
    dead: hashbrown::HashSet<(u32, Counts), crate::hash::BuildWordHasher>,
    steps: u64,
}

impl Walk<'_> {
    /// Whether the cards from here on can give what is left; nothing: the steps ran out. Goes as deep
    /// as there are cards.
    fn from(&mut self, card: u32, left: Counts) -> Option<bool> {
        if left.iter().all(|&count| count == 0) {
            return Some(true);
        }
        let at = card as usize;
        let Some(&group) = self.order.get(at) else {
            return Some(false);
        };
        let too_heavy = |(weights, held): &(Weights, Vec<u128>)| weigh(&left, weights) > held[at];
        if self.limits.iter().any(too_heavy) || self.dead.contains(&(card, left)) {
            return Some(false);
        }
        let mut useful = Maximal::default();
        for pattern in &self.groups[group as usize].patterns.list {
            useful.add(within(pattern, &left));
        }
        let mut list = useful.list;
        self.steps = self.steps.checked_sub(1 + list.len() as u64 / 4)?;
        let weights = self
            .limits
            .first()
            .map_or([1; MOST_ITEMS], |(weights, _)| *weights);
        list.sort_unstable_by_key(|counts| Reverse((weigh(counts, &weights), *counts)));
        let first = self.options.len();
        self.options.extend(list.iter().copied());
        drop(list);
        let end = self.options.len();
        for option in first..end {
            let counts = self.options[option];
            let nothing = counts.iter().all(|&count| count == 0);
            let next = if nothing {
                let others = self.order[at..].iter().take_while(|&&other| other == group);
                card + others.count() as u32
            } else {
                self.chosen.push((group, counts));
                card + 1
            };
            if self.from(next, core::array::from_fn(|item| left[item] - counts[item]))? {
                return Some(true);
            }
            if !nothing {
                self.chosen.pop();
            }
        }
        self.options.truncate(first);
        if self.dead.len() < MOST_DEAD {
            self.dead.insert((card, left));
        }
        Some(false)
    }
}
