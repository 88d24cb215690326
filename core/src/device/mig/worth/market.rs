//! The market in which a card's room has a price.
//!
//! A fleet of alike cards is asked for instances, more often than it has room for; instances end
//! after a time, each at the same rate. To one card a request is an offer: it is worth what the
//! cheapest of the other cards would lose by it, or its compute slices if no other has room. A card
//! takes offers above its own loss and gains the difference. The worth of its states is the relative
//! value of this Markov decision process; the offers follow from the same worths and from how many
//! cards are in which state, and those from the offers. The equilibrium is found by damped rounds:
//! numbers of cards in a state are taken as independent Poisson numbers, and losses are spread over
//! half a slice, without which the rounds do not settle.
//!
//! This is a separable approximation of the fleet's value, as Krishnan and Ott's separable routing is
//! one of a telephone network's. The default is a small, well used fleet: its tables served fleets of
//! 100 cards at 85 to 115 % of load best (docs/replays.md).

use alloc::{vec, vec::Vec};

use super::chain::{Chain, Solved};

/// For which market a table is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Market {
    /// Cards of the fleet.
    pub cards: u32,
    /// Compute slices asked for, in thousandths of those of the fleet.
    pub load_milli: u32,
    /// Rounds of the solution.
    pub rounds: u32,
}

impl Default for Market {
    fn default() -> Self {
        Self {
            cards: 30,
            load_milli: 900,
            rounds: 800,
        }
    }
}

/// Prices are looked at from here, in compute slices, ...
const LOWEST: f64 = -8.0;
/// ... in steps of this size ...
const STEP: f64 = 0.05;
/// ... and so many of them.
const CELLS: usize = 560;
/// A loss is spread over so many steps to either side, with falling weight.
const SPREAD: usize = 10;
/// How far a round moves worths and shares towards what it found.
const DAMPING: f64 = 0.05;
/// Keeps divisions by shares of states that no card is in harmless.
const TINY: f64 = 1e-12;

/// What a round finds out about each state.
#[derive(Clone, Debug, Default)]
struct Flow {
    /// Gain per time.
    gain: Vec<f64>,
    /// How fast the gain falls when the worth grows.
    slope: Vec<f64>,
    /// Rate at which a card leaves.
    out: Vec<f64>,
    /// Rate at which cards come, in parts of all cards.
    into: Vec<f64>,
}

impl Market {
    /// The worth of each state of a chain.
    pub(super) fn solve(self, chain: &Chain) -> Vec<Solved> {
        let count = chain.states.len();
        let slices: f64 = chain
            .shapes
            .iter()
            .map(|shape| shape.share * shape.slices)
            .sum();
        let card = chain
            .shapes
            .iter()
            .map(|shape| shape.slices)
            .fold(0.0, f64::max);
        let load = f64::from(self.load_milli.max(1)) / 1000.0;
        let others = f64::from(self.cards.max(2)) - 1.0;
        let requests = load * card * f64::from(self.cards.max(2)) / slices.max(TINY);
        let rounds = self.rounds.max(2);

        let empty = chain.room.first().copied().unwrap_or(1.0);
        let mut worth: Vec<f64> = chain
            .room
            .iter()
            .map(|room| (room - empty) / empty.max(TINY) * card)
            .collect();
        let mut share = vec![1.0 / count as f64; count];
        let mut mean = vec![0.0; count];
        let mut flow = Flow::default();
        let mut offers = Offers::default();
        for round in 0..rounds {
            flow.clear(count);
            for (at, shape) in chain.shapes.iter().enumerate() {
                if shape.share > 0.0 {
                    offers.find(chain, at, &worth, &share, others);
                    offers.add(&mut flow, requests * shape.share, shape.slices, &share);
                }
            }
            flow.add_ends(chain, &worth, &share);
            let income: f64 = flow
                .gain
                .iter()
                .zip(&share)
                .map(|(gain, share)| gain * share)
                .sum();
            for ((worth, gain), slope) in worth.iter_mut().zip(&flow.gain).zip(&flow.slope) {
                *worth += DAMPING * (gain - income) / (slope + 1.0);
            }
            let base = worth.first().copied().unwrap_or(0.0);
            for worth in &mut worth {
                *worth -= base;
            }
            for ((share, into), out) in share.iter_mut().zip(&flow.into).zip(&flow.out) {
                *share += DAMPING * ((into + TINY) / (out + TINY) - *share);
            }
            let all: f64 = share.iter().sum();
            for share in &mut share {
                *share /= all;
            }
            if round >= rounds / 2 {
                mean.iter_mut()
                    .zip(&worth)
                    .for_each(|(mean, worth)| *mean += worth);
            }
        }
        let averaged = f64::from(rounds - rounds / 2);
        let states = mean.iter().zip(share);
        states
            .map(|(worth, share)| Solved {
                worth: worth / averaged,
                share,
            })
            .collect()
    }
}

impl Flow {
    fn clear(&mut self, count: usize) {
        for list in [
            &mut self.gain,
            &mut self.slope,
            &mut self.out,
            &mut self.into,
        ] {
            list.clear();
            list.resize(count, 0.0);
        }
    }

    /// Instances end, each at rate 1.
    fn add_ends(&mut self, chain: &Chain, worth: &[f64], share: &[f64]) {
        for (state, less) in chain.less.iter().enumerate() {
            for &after in less {
                let after = usize::from(after);
                self.gain[state] += worth[after] - worth[state];
                self.slope[state] += 1.0;
                self.out[state] += 1.0;
                self.into[after] += share[state];
            }
        }
    }
}

/// A card that could take a request of one shape.
#[derive(Clone, Copy, Debug)]
struct Taker {
    state: usize,
    after: usize,
    loss: f64,
    cell: usize,
}

/// The prices that one shape is offered at.
#[derive(Clone, Debug, Default)]
struct Offers {
    takers: Vec<Taker>,
    /// Cards that would take it, by loss.
    cards: Vec<f64>,
    /// The chance that no card would take it for less than a step, by step; the last one that none
    /// would take it at all.
    nobody: Vec<f64>,
    /// The sum of those chances from a step up, without the last one.
    above: Vec<f64>,
}

impl Offers {
    fn find(&mut self, chain: &Chain, shape: usize, worth: &[f64], share: &[f64], others: f64) {
        self.takers.clear();
        self.cards.clear();
        self.cards.resize(CELLS, 0.0);
        for (state, steps) in chain.more.iter().enumerate() {
            let after = steps
                .get(shape)
                .into_iter()
                .flatten()
                .copied()
                .map(usize::from);
            let Some(after) = after.reduce(|a, b| if worth[b] > worth[a] { b } else { a }) else {
                continue;
            };
            let loss = worth[state] - worth[after];
            let cell = ((loss - LOWEST) / STEP).max(0.0) as usize;
            let cell = cell.clamp(SPREAD, CELLS - 1 - SPREAD);
            for (cards, weight) in self.cards[cell - SPREAD..].iter_mut().zip(weights()) {
                *cards += others * share[state] * weight;
            }
            self.takers.push(Taker {
                state,
                after,
                loss,
                cell,
            });
        }
        self.nobody.clear();
        self.nobody.push(1.0);
        let mut nobody = 1.0;
        for cards in &self.cards {
            nobody *= libm::exp(-cards);
            self.nobody.push(nobody);
        }
        self.above.clear();
        self.above.resize(CELLS + 1, 0.0);
        for cell in (0..CELLS).rev() {
            self.above[cell] = self.above[cell + 1] + (self.nobody[cell + 1] - nobody) * STEP;
        }
    }

    /// Adds what takers gain from requests that come at a rate.
    fn add(&self, flow: &mut Flow, rate: f64, slices: f64, share: &[f64]) {
        let blocked = self.nobody[CELLS];
        for taker in &self.takers {
            let (mut above, mut outbid, mut taken) = (0.0, 0.0, 0.0);
            for (cell, weight) in (taker.cell - SPREAD..).zip(weights()) {
                let (before, after) = (self.nobody[cell], self.nobody[cell + 1]);
                above += weight * self.above[cell + 1];
                outbid += weight * after;
                let cards = self.cards[cell];
                taken += weight
                    * if cards > 1e-9 {
                        (before - after) / cards
                    } else {
                        before
                    };
            }
            flow.gain[taker.state] += rate * (above + blocked * (slices - taker.loss));
            flow.slope[taker.state] += rate * outbid;
            flow.out[taker.state] += rate * taken;
            flow.into[taker.after] += rate * taken * share[taker.state];
        }
    }
}

/// How a loss is spread: a triangle with the sum 1.
fn weights() -> impl Iterator<Item = f64> {
    let all = ((SPREAD + 1) * (SPREAD + 1)) as f64;
    (0..=2 * SPREAD).map(move |at| (SPREAD + 1 - at.abs_diff(SPREAD)) as f64 / all)
}
