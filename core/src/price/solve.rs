//! Off the decision path: what each type of work is worth, from what is left and who will ask.
//!
//! How much work is still to come is unknown, so several [`BELIEFS`] about it are solved, each by
//! itself. For one of them, a type of work is worth its size times the chance that one more of it
//! will be asked for than the fleet, packed as well as can be, would hold. That is the condition of
//! optimality of a concave problem (maximise the expected demand met), and Frank and Wolfe's method
//! solves it: pack every state at the current prices, move the average supply a little towards that,
//! set the prices anew. Nothing here is random, and `exp` and `ln` come from `libm`, so that the
//! prices are the same on every platform; they leave as integers.

use alloc::{vec, vec::Vec};

use super::{
    Nano,
    kind::{Catalogue, NodeState},
    mix::Mix,
    table::{self, Layout, Left, Step},
};

/// One card, and the whole of a ratio, in [`Nano`].
const ONE: f64 = 1e9;

/// How much work may still come, as multiples of what is left: less than that, just as much, more.
pub(super) const BELIEFS: [f64; 3] = [0.7, 1.0, 1.6];
/// How sure a belief is, as a share of the work it expects; the chance of few arrivals comes on top.
const BELIEF_SPREAD: f64 = 0.25;
/// Work without cards is worth so many nanos a thousandth of a core: enough to be planned for,
/// never enough to keep a card idle.
const PER_MILLI_CPU: f64 = 3000.0;
/// Share of a round in the average supply once many rounds were made.
const LEAST_STEP: f64 = 0.002;
/// How far below the supply the price is taken, in pieces of work.
const HALF_A_PIECE: f64 = 0.5;
/// No type is worth less than this part of its size.
const LEAST_CHANCE: f64 = 1e-4;

/// How long to solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Rounds of packing the whole fleet.
    pub rounds: u32,
}

impl Effort {
    /// For a first solution.
    pub const FIRST: Self = Self { rounds: 400 };
    /// To follow a change: often and a little is better than seldom and much. The measurements of
    /// `docs/pricing.md` do so each time work of about a hundredth of the fleet was placed.
    pub const FOLLOW: Self = Self { rounds: 12 };
}

/// What was found for one belief, by type of the mix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Solution {
    pub(super) prices: Vec<Nano>,
    /// Supply over demand, in billionths; where the next solution starts from.
    pub(super) ratios: Vec<Nano>,
}

impl Solution {
    /// The same for the types of another mix; `None` if fewer than half of them were known.
    pub(super) fn carried_over(&self, from: &Mix, to: &Mix) -> Option<Self> {
        let mut known = 0;
        let ratios = to.types().iter().map(|(work, _)| {
            let at = from.types().binary_search_by(|(other, _)| other.cmp(work));
            let ratio = at.ok().and_then(|at| self.ratios.get(at).copied());
            known += usize::from(ratio.is_some());
            // A new type is taken to be as well supplied as the average.
            ratio.unwrap_or(ONE as Nano)
        });
        let carried = Self {
            ratios: ratios.collect(),
            prices: Vec::new(),
        };
        (known * 2 >= carried.ratios.len()).then_some(carried)
    }
}

/// The parts of the problem that are the same for all beliefs.
pub(super) struct Problem<'a> {
    catalogue: &'a Catalogue,
    layout: &'a Layout,
    /// Processor time by type.
    milli_cpu: Vec<i64>,
    /// The price of each type if it is sure to be asked for.
    full: Vec<f64>,
    /// How often each type is asked for until as much as is left was asked for.
    demand: Vec<f64>,
    /// How many of each type fit into the fleet when nothing else comes.
    most: Vec<f64>,
    fleet: Vec<(Left, f64)>,
}

impl<'a> Problem<'a> {
    pub(super) fn new(
        catalogue: &'a Catalogue,
        layout: &'a Layout,
        mix: &Mix,
        fleet: &[(NodeState, u64)],
    ) -> Self {
        let types = mix.types();
        // Sums of floats depend on their order; the caller's must not matter.
        let mut fleet: Vec<&(NodeState, u64)> = fleet.iter().collect();
        fleet.sort_unstable();
        let cards = |milli: i64| milli as f64 / 1000.0;
        let all: f64 = types.iter().map(|&(_, weight)| weight as f64).sum();
        let idle = fleet
            .iter()
            .map(|(state, count)| cards(state.idle_milli(catalogue)) * *count as f64);
        let asked = types
            .iter()
            .map(|(work, weight)| cards(work.size_milli(catalogue)) * *weight as f64 / all);
        let (idle, asked): (f64, f64) = (idle.sum(), asked.sum());
        let arrivals = if asked > 0.0 { idle / asked } else { 0.0 };
        let full = types.iter().map(|(work, _)| {
            let size = cards(work.size_milli(catalogue));
            if size > 0.0 {
                ONE * size
            } else {
                PER_MILLI_CPU * work.milli_cpu.max(0) as f64
            }
        });
        let demand = types
            .iter()
            .map(|&(_, weight)| (arrivals * weight as f64 / all).max(1e-9));
        let most = types.iter().map(|(work, _)| {
            let all = fleet.iter().map(|&(state, count)| {
                let one = state.most(work, catalogue);
                one.saturating_mul(*count)
            });
            all.fold(0, u64::saturating_add) as f64
        });
        Self {
            catalogue,
            layout,
            milli_cpu: types
                .iter()
                .map(|(work, _)| work.milli_cpu.max(0))
                .collect(),
            full: full.collect(),
            demand: demand.collect(),
            most: most.collect(),
            fleet: fleet
                .iter()
                .filter_map(|(state, count)| Some((layout.left(state)?, *count as f64)))
                .collect(),
        }
    }

    /// Solves for a belief, from the start or from an earlier solution. Time: rounds x (states x
    /// log(steps of the ladder) + size of the tables).
    pub(super) fn solve(
        &self,
        belief: f64,
        earlier: Option<&Solution>,
        effort: Effort,
    ) -> Solution {
        let count = self.full.len();
        let mut supply: Vec<f64> = match earlier {
            Some(earlier) => {
                // An average forgets slowly: what is gone since must not count as supply any more.
                let known = earlier.ratios.iter().zip(&self.demand).zip(&self.most);
                known
                    .map(|((&ratio, demand), &most)| (ratio as f64 / ONE * demand).min(most))
                    .collect()
            }
            None => vec![0.0; count],
        };
        let mut prices = self.prices(belief, &supply);
        let rounds = effort.rounds.max(1);
        let mut sums = vec![0.0; count];
        for round in 0..rounds {
            let tables = self.layout.tables(self.catalogue, &as_integers(&prices));
            let packed = self.pack(&tables, &as_integers(&prices));
            let step = match earlier {
                Some(_) => LEAST_STEP,
                None => (2.0 / (f64::from(round) + 2.0)).max(LEAST_STEP),
            };
            for (supply, packed) in supply.iter_mut().zip(&packed) {
                *supply += step * (packed - *supply);
            }
            prices = self.prices(belief, &supply);
            if round >= rounds / 2 {
                for (sum, price) in sums.iter_mut().zip(&prices) {
                    *sum += price;
                }
            }
        }
        let averaged = f64::from(rounds - rounds / 2);
        let ratios = supply.iter().zip(&self.demand);
        Solution {
            prices: sums.iter().map(|sum| (sum / averaged) as Nano).collect(),
            ratios: ratios
                .map(|(supply, demand)| (supply / demand * ONE) as Nano)
                .collect(),
        }
    }

    /// Size times the chance that more is asked for than is supplied: exp(-z^k), where z is supply
    /// over the demand that is believed in, and k grows with how sure that demand is. Of a type that
    /// is asked for twice, often none comes and often four; so some room for it has its price long
    /// before it is short. Work comes in whole pieces: what is lost with the last piece of room is the
    /// chance that one is asked for, not that of a second one, so the chance is taken in the middle of
    /// the piece.
    fn prices(&self, belief: f64, supply: &[f64]) -> Vec<f64> {
        let types = self.full.iter().zip(&self.demand).zip(supply);
        types
            .map(|((full, demand), supply)| {
                let expected = belief * demand;
                let spread = libm::sqrt(BELIEF_SPREAD * BELIEF_SPREAD + 1.0 / expected);
                let before = (supply - HALF_A_PIECE).max(0.0);
                let chance = libm::exp(-libm::pow(before / expected, 1.0 / spread));
                full * chance.max(LEAST_CHANCE)
            })
            .collect()
    }

    /// How many of each type the fleet holds when every state is packed for the most worth.
    fn pack(&self, tables: &[Vec<Step>], prices: &[Nano]) -> Vec<f64> {
        let mut packed = vec![0.0; self.full.len()];
        let mut add = |types: &[u16], count: f64| {
            for &ix in types {
                if let Some(packed) = packed.get_mut(usize::from(ix)) {
                    *packed += count;
                }
            }
        };
        let (mut here, mut beside) = (Vec::new(), Vec::new());
        for (left, count) in &self.fleet {
            let Some(steps) = tables.get(left.group) else {
                continue;
            };
            let at = table::cheapest(steps, left);
            let Some(mut cpu_left) = self.pack_at(steps, at, left, &mut here) else {
                continue;
            };
            // The best packing at one price of processor time uses more than there is, or less; the
            // best one overall is between it and that of the next price.
            let next = if cpu_left < 0 {
                at + 1
            } else {
                at.wrapping_sub(1)
            };
            let mut share = 1.0;
            if cpu_left != 0
                && let Some(other) = self.pack_at(steps, next, left, &mut beside)
                && (other < 0) != (cpu_left < 0)
            {
                share = other as f64 / (other as f64 - cpu_left as f64);
                add(&beside, count * (1.0 - share));
                cpu_left = 0;
            }
            add(&here, count * share);
            if at == 0
                && cpu_left > 0
                && let Some((ix, milli_cpu)) = self.layout.best_without_cards(left.group, prices)
            {
                add(&[ix], count * cpu_left as f64 / milli_cpu as f64);
            }
        }
        packed
    }

    /// The best packing of a state at a step, and the processor time that it leaves.
    fn pack_at(&self, steps: &[Step], at: usize, left: &Left, types: &mut Vec<u16>) -> Option<i64> {
        types.clear();
        steps.get(at)?.pack(left, &mut |ix| types.push(ix));
        let milli_cpu = |&ix: &u16| self.milli_cpu.get(usize::from(ix)).copied().unwrap_or(0);
        let used = types.iter().map(milli_cpu).fold(0, i64::saturating_add);
        Some(left.milli_cpu.saturating_sub(used))
    }
}

fn as_integers(prices: &[f64]) -> Vec<Nano> {
    prices.iter().map(|&price| price as Nano).collect()
}
