//! The most that a fleet of one or two cards can have in use when nobody moves anything: the value
//! of the best rule that knows the mix and the whole state of the fleet, by relative value iteration.
//!
//! A mix and a load go in, the share of the compute that is in use comes out. Nothing is simulated,
//! so there is no seed; the error is below [`PRECISE`].

use std::collections::BTreeMap;

use gangline::device::mig::MigState;
use gangline_benches::replay::mig::{Mix, card};

/// How exact the share in use is.
const PRECISE: f64 = 2e-4;
/// And when to give up.
const MOST_ROUNDS: usize = 20_000;

/// States of one card; the empty one is number 0.
struct Cards {
    /// By state, then by profile of the mixes: the states after one more instance.
    more: Vec<[Vec<usize>; 6]>,
    /// By state: the states after the end of each instance.
    less: Vec<Vec<usize>>,
}

impl Cards {
    fn new() -> Self {
        let (geometry, profiles) = card();
        let mut states = vec![MigState::EMPTY];
        let mut numbers = BTreeMap::from([(MigState::EMPTY, 0)]);
        let mut cards = Self {
            more: Vec::new(),
            less: vec![Vec::new()],
        };
        while let Some(&state) = states.get(cards.more.len()) {
            let here = cards.more.len();
            let steps = profiles.map(|ix| {
                let starts = geometry.starts(state, ix);
                let starts = (0..16_u8).filter(|start| starts >> start & 1 == 1);
                let places = starts.filter_map(|start| geometry.put(state, ix, start));
                let mut number = |after| {
                    *numbers.entry(after).or_insert_with(|| {
                        states.push(after);
                        states.len() - 1
                    })
                };
                places.map(&mut number).collect::<Vec<usize>>()
            });
            cards.less.resize(states.len(), Vec::new());
            for &after in steps.iter().flatten() {
                // Two profiles may make the same state: the instance ends once.
                if !cards.less[after].contains(&here) {
                    cards.less[after].push(here);
                }
            }
            cards.more.push(steps);
        }
        cards
    }
}

/// The states of a fleet: which cards are alike does not matter, so a state is a sorted list.
pub(crate) struct Fleet {
    count: usize,
    /// By state and profile: the states after one more instance; `ends[i]..ends[i + 1]` of `next`.
    next: Vec<u32>,
    ends: Vec<usize>,
    /// By state, the states after the end of each instance.
    gone: Vec<u32>,
    gone_ends: Vec<usize>,
    /// Cards.
    cards: usize,
}

impl Fleet {
    pub(crate) fn new(cards: usize) -> Self {
        let one = Cards::new();
        let mut states: Vec<Vec<usize>> = vec![Vec::new()];
        for _ in 0..cards {
            let longer = |state: &Vec<usize>| {
                let least = state.last().copied().unwrap_or(0);
                let with = |card| [state.as_slice(), &[card]].concat();
                (least..one.more.len()).map(with).collect::<Vec<_>>()
            };
            states = states.iter().flat_map(longer).collect();
        }
        // They came out in order.
        let number = |state: &[usize], at: usize, card: usize| {
            let mut after = state.to_vec();
            after[at] = card;
            after.sort_unstable();
            states.binary_search(&after).map_or(0, |found| found as u32)
        };
        let mut fleet = Self {
            count: states.len(),
            next: Vec::new(),
            ends: vec![0],
            gone: Vec::new(),
            gone_ends: vec![0],
            cards,
        };
        for state in &states {
            for profile in 0..6 {
                let first = fleet.next.len();
                for (at, &card) in state.iter().enumerate() {
                    if at > 0 && state[at - 1] == card {
                        continue;
                    }
                    let places = one.more[card][profile].iter();
                    fleet.next.extend(places.map(|&to| number(state, at, to)));
                }
                fleet.next[first..].sort_unstable();
                fleet.ends.push(fleet.next.len());
            }
            for (at, &card) in state.iter().enumerate() {
                let ends = one.less[card].iter();
                fleet.gone.extend(ends.map(|&to| number(state, at, to)));
            }
            fleet.gone_ends.push(fleet.gone.len());
        }
        fleet
    }

    /// The most of the compute that can be in use on average, when what fits is accepted, and when it
    /// may be refused.
    pub(crate) fn most_in_use(&self, mix: &Mix, load: u32, may_refuse: bool) -> f64 {
        let (geometry, profiles) = card();
        let slices = profiles.map(|ix| geometry.get(ix).map_or(0, |it| it.compute_slices));
        let slices = slices.map(f64::from);
        let all = f64::from(mix.1.iter().sum::<u32>());
        let asked = mix.1.iter().zip(slices);
        let mean: f64 = asked
            .map(|(&share, slices)| f64::from(share) / all * slices)
            .sum();
        let compute = 7.0 * self.cards as f64;
        let rate = f64::from(load) / 100.0 * compute / mean;
        let rates = mix.1.map(|share| f64::from(share) / all * rate);
        // Each state is left at this rate, if only to itself.
        let clock = rate + compute;
        let mut values = vec![0.0_f64; self.count];
        let mut after = values.clone();
        let mut gain = 0.0;
        for _ in 0..MOST_ROUNDS {
            let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
            for (state, after) in after.iter_mut().enumerate() {
                let here = values[state];
                let mut sum = 0.0;
                for (profile, rate) in rates.iter().enumerate() {
                    let at = state * 6 + profile;
                    let next = &self.next[self.ends[at]..self.ends[at + 1]];
                    let best = next.iter().map(|&to| values[to as usize]);
                    let best = best.fold(f64::NEG_INFINITY, f64::max) + slices[profile];
                    if best.is_finite() && (!may_refuse || best > here) {
                        sum += rate * (best - here);
                    }
                }
                let gone = &self.gone[self.gone_ends[state]..self.gone_ends[state + 1]];
                for &to in gone {
                    sum += values[to as usize] - here;
                }
                least = least.min(sum);
                most = most.max(sum);
                *after = here + sum / clock;
            }
            std::mem::swap(&mut values, &mut after);
            gain = f64::midpoint(least, most) / compute;
            if (most - least) / compute < PRECISE {
                break;
            }
        }
        gain
    }
}
