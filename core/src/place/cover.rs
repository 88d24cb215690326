//! Whether cards can together give what is wanted, when each gives one of a few patterns.
//!
//! Data enters as numbers wanted by item and as groups of alike cards with their patterns; out comes a
//! pattern for each card, or that there is none. Nothing here knows devices or members.
//!
//! Two ways, both exact in what they say. Give each item a weight: if all cards together cannot hold
//! the weight of what is wanted, whatever patterns they take, it does not fit. Any weights will do for a
//! proof; the best are those of a linear program. What the weights do not refute is tried card by card,
//! with the same weights to see early that a branch leads nowhere.

use alloc::vec::Vec;
use core::cmp::Reverse;

mod weights;

use self::weights::{Table, UNIT};
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
    /// The weights that came closest to a proof.
    weights: Weights,
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

/// So many numbers that a pivot changes cost as much as a step.
const LOOKS_IN_STEP: u64 = 512;
/// Steps of a try that may be given up.
const SHORT_TRY: u64 = 400;
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
    fn heaviest(&self, weights: &Weights) -> u128 {
        let patterns = self.patterns.list.iter();
        patterns
            .map(|pattern| weigh(pattern, weights))
            .max()
            .unwrap_or(0)
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

    /// Counts more cards into a group.
    pub(super) fn add_more(&mut self, group: u32, cards: u32) {
        if let Some(group) = self.groups.get_mut(group as usize) {
            group.cards = group.cards.saturating_add(cards);
        }
    }

    /// By item: the most that one card gives.
    fn most(&self) -> Counts {
        let patterns = self.groups.iter().flat_map(|group| &group.patterns.list);
        patterns.fold([0; MOST_ITEMS], |most, pattern| {
            core::array::from_fn(|item| most[item].max(pattern[item]))
        })
    }

    /// Whether weights prove that it cannot be. Leaves the weights that came closest.
    pub(super) fn is_refuted(&mut self) -> bool {
        let most = self.most();
        let cards = self.groups.iter().map(|group| u64::from(group.cards));
        let cards: u64 = cards.sum();
        let is_lacking = |item: usize| {
            u64::from(self.wanted[item]) > u64::from(most[item]).saturating_mul(cards)
        };
        if (0..MOST_ITEMS).any(is_lacking) {
            return true;
        }
        self.weights = match Table::new(&self.wanted, &self.groups, &most) {
            Some(mut table) => {
                table.solve();
                self.steps += table.looks / LOOKS_IN_STEP + 1;
                table.weights(&most)
            }
            None => core::array::from_fn(|item| UNIT / u64::from(most[item].max(1))),
        };
        let held = self.groups.iter().map(|group| {
            let heaviest = group.heaviest(&self.weights);
            heaviest.saturating_mul(u128::from(group.cards))
        });
        weigh(&self.wanted, &self.weights) > held.fold(0, u128::saturating_add)
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
        let mut held = alloc::vec![0_u128; order.len() + 1];
        for (at, &group) in order.iter().enumerate().rev() {
            let heaviest = self.groups[group as usize].heaviest(&self.weights);
            held[at] = held[at + 1].saturating_add(heaviest);
        }
        let mut walk = Walk {
            groups: &self.groups,
            weights: self.weights,
            held,
            order,
            taste: [0; MOST_ITEMS],
            options: Vec::new(),
            chosen: Vec::new(),
            dead: hashbrown::HashSet::default(),
            steps: 0,
        };
        // A bad first choice can cost all steps: short tries first, each with another item in favour.
        let mut left = most_steps;
        for favoured in 0..=MOST_ITEMS {
            let is_last = favoured == MOST_ITEMS;
            if !is_last && favoured > 0 && self.wanted[favoured - 1] == 0 {
                continue;
            }
            walk.steps = if is_last { left } else { left.min(SHORT_TRY) };
            left -= walk.steps;
            walk.taste = self.taste(favoured.checked_sub(1));
            walk.options.clear();
            walk.chosen.clear();
            let answer = walk.from(0, self.wanted);
            left += walk.steps;
            if let Some(is_covered) = answer {
                self.steps += most_steps - left;
                return if is_covered {
                    Answer::Covered(walk.chosen)
                } else {
                    Answer::Impossible
                };
            }
        }
        self.steps += most_steps - left;
        Answer::Unknown
    }

    /// What makes a pattern worth trying first: the weights, which say nothing of items that are plenty,
    /// and how much of a card each item is. One item can be in favour.
    fn taste(&self, favoured: Option<usize>) -> Weights {
        let heaviest = self
            .groups
            .iter()
            .map(|group| group.heaviest(&self.weights));
        let heaviest = heaviest.max().unwrap_or(0).clamp(1 << 16, 1 << 48) as u64;
        let most = self.most();
        core::array::from_fn(|item| {
            let part = heaviest / 4 / u64::from(most[item].max(1));
            self.weights[item]
                + if favoured == Some(item) {
                    2 * part
                } else {
                    part
                }
        })
    }
}

fn within(pattern: &Counts, most: &Counts) -> Counts {
    core::array::from_fn(|item| pattern[item].min(most[item]))
}

struct Walk<'a> {
    groups: &'a [Group],
    weights: Weights,
    /// By card: how much weight it and those behind it hold.
    held: Vec<u128>,
    /// Patterns with more of this are tried first.
    taste: Weights,
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
        let is_too_heavy = weigh(&left, &self.weights) > self.held[at];
        if is_too_heavy || self.dead.contains(&(card, left)) {
            return Some(false);
        }
        let mut useful = Maximal::default();
        for pattern in &self.groups[group as usize].patterns.list {
            useful.add(within(pattern, &left));
        }
        let mut list = useful.list;
        self.steps = self.steps.checked_sub(1 + list.len() as u64 / 4)?;
        let weights = self.taste;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether so many cards can give it, by trying every pattern on every card.
    fn can_give(groups: &[Group], at: usize, cards: u32, left: Counts) -> bool {
        let Some(group) = groups.get(at) else {
            return left == [0; MOST_ITEMS];
        };
        if cards == group.cards {
            return can_give(groups, at + 1, 0, left);
        }
        let mut patterns = group.patterns.list.iter();
        patterns.any(|pattern| {
            let after = core::array::from_fn(|item| left[item].saturating_sub(pattern[item]));
            can_give(groups, at, cards + 1, after)
        })
    }

    #[test]
    fn says_what_trying_every_pattern_says() {
        let mut word = 1_u64;
        let mut below = |bound: u64| {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (word >> 33) % bound
        };
        let (mut refuted, mut tried, mut covered) = (0, 0, 0);
        for _ in 0..4000 {
            let mut cover = Cover::default();
            for wanted in &mut cover.wanted[..3] {
                *wanted = below(9) as u32;
            }
            for _ in 0..=below(2) {
                let mut patterns = Maximal::default();
                for _ in 0..=below(4) {
                    let mut pattern = [0; MOST_ITEMS];
                    pattern[..3].fill_with(|| below(4) as u32);
                    patterns.add(pattern);
                }
                cover.add(&patterns, 1 + below(3) as u32);
            }
            let fits = can_give(&cover.groups, 0, 0, cover.wanted);
            if cover.is_refuted() {
                assert!(!fits, "{cover:?}");
                refuted += 1;
                continue;
            }
            match cover.solve(10_000) {
                Answer::Covered(chosen) => {
                    let sum = chosen.iter().fold([0; MOST_ITEMS], |sum, (_, counts)| {
                        core::array::from_fn(|item| sum[item] + counts[item])
                    });
                    assert_eq!(sum, cover.wanted, "{cover:?}");
                    for (at, group) in (0_u32..).zip(&cover.groups) {
                        let used = chosen.iter().filter(|(group, _)| *group == at);
                        assert!(used.clone().count() <= group.cards as usize, "{cover:?}");
                        for (_, counts) in used {
                            let mut patterns = group.patterns.list.iter();
                            let is_within = |pattern: &Counts| within(counts, pattern) == *counts;
                            assert!(patterns.any(is_within), "{cover:?}");
                        }
                    }
                    covered += 1;
                }
                Answer::Impossible => {
                    assert!(!fits, "{cover:?}");
                    tried += 1;
                }
                Answer::Unknown => panic!("so few steps are enough: {cover:?}"),
            }
        }
        assert!(
            refuted > 500 && tried > 0 && covered > 500,
            "{refuted} {tried} {covered}"
        );
    }
}
