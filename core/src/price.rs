//! Prices: what a node state is worth for the work that will still come.
//!
//! Placing work on a node costs the worth that it destroys there; the cheapest place is taken. A
//! state is worth the most valuable work that still fits, at a price for each type of work of the
//! usual [`Mix`]. `docs/pricing.md` tells the idea and what it gains.
//!
//! Data enters as a mix and a fleet of [`NodeState`]s with counts ([`Prices::solve`], off the
//! decision path, floats inside); what leaves are integers: [`Prices::worth`] and [`Prices::cost`].
//! Nothing here decides, and nothing depends on the order of a hash table.

use alloc::vec::Vec;

pub mod fragmentation;
mod kind;
mod mix;
mod solve;
mod table;

pub use kind::{
    CARD_MILLI, CardState, Catalogue, Geometry, KindSet, MOST_UNITS, NodeKind, NodeKindIx,
    NodeState,
};
pub use mix::{ARRIVAL, Demand, Mix, WorkType};
pub use solve::Effort;
use solve::{BELIEFS, Problem, Solution};
use table::{Layout, Left, Step};

/// Billionths of what a whole card is worth that is sure to be asked for.
pub type Nano = i64;

/// A thousandth of a card left idle costs this much beside the worth, so that of two places that
/// destroy as much worth the fuller one is taken: most early decisions are such ties.
const IDLE_MILLI: Nano = 10;
/// The same for a thousandth of a core.
const IDLE_MILLI_CPU: Nano = 1;

/// Prices of the types of a mix, and the tables that turn them into the worth of states.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(from = "Published", into = "Published"))]
pub struct Prices {
    published: Published,
    layout: Layout,
    /// By belief, then by group of kinds, then by step.
    tables: Vec<Vec<Vec<Step>>>,
}

/// What prices are made of; everything else follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Published {
    version: u64,
    catalogue: Catalogue,
    mix: Mix,
    /// One for each belief about how much work is still to come.
    solutions: Vec<Solution>,
}

impl From<Published> for Prices {
    fn from(published: Published) -> Self {
        let layout = Layout::new(&published.catalogue, &published.mix);
        let tables = |solution: &Solution| layout.tables(&published.catalogue, &solution.prices);
        Self {
            tables: published.solutions.iter().map(tables).collect(),
            layout,
            published,
        }
    }
}

impl From<Prices> for Published {
    fn from(prices: Prices) -> Self {
        prices.published
    }
}

impl PartialEq for Prices {
    fn eq(&self, other: &Self) -> bool {
        self.published == other.published
    }
}

impl Eq for Prices {}

impl Prices {
    /// Prices for this mix on this fleet, given as distinct states with how many nodes are in each.
    ///
    /// `previous` prices, of the same catalogue, give the starting point and the version before.
    /// An empty mix or an empty fleet is no error: then every state is worth the same, and
    /// [`cost`](Self::cost) is best fit. Time: rounds x (distinct states x log of the ladder +
    /// groups of kinds x ladder x parts of a card x sizes); about a millisecond a round for
    /// a thousand states and a hundred types.
    pub fn solve(
        catalogue: &Catalogue,
        mix: &Mix,
        fleet: &[(NodeState, u64)],
        previous: Option<&Prices>,
        effort: Effort,
    ) -> Self {
        let layout = Layout::new(catalogue, mix);
        let problem = Problem::new(catalogue, &layout, mix, fleet);
        let earlier = |belief: usize| {
            let previous = &previous?.published;
            let solution = previous.solutions.get(belief)?;
            solution.carried_over(&previous.mix, mix)
        };
        let beliefs = BELIEFS.iter().enumerate();
        let solve = |(ix, &belief)| problem.solve(belief, earlier(ix).as_ref(), effort);
        Published {
            version: previous.map_or(1, |previous| previous.published.version.saturating_add(1)),
            catalogue: catalogue.clone(),
            mix: mix.clone(),
            solutions: beliefs.map(solve).collect(),
        }
        .into()
    }

    /// Counts up with every solution.
    pub fn version(&self) -> u64 {
        self.published.version
    }

    /// The mix that the prices are for.
    pub fn mix(&self) -> &Mix {
        &self.published.mix
    }

    /// The kinds of nodes that the prices know.
    pub fn catalogue(&self) -> &Catalogue {
        &self.published.catalogue
    }

    /// The types of work, ascending, each with its price: the mean over the beliefs.
    pub fn prices(&self) -> impl Iterator<Item = (&WorkType, Nano)> + '_ {
        let types = self.published.mix.types().iter().enumerate();
        types.map(|(ix, (work, _))| {
            let of = |solution: &Solution| solution.prices.get(ix).copied().unwrap_or(0);
            (work, mean(self.published.solutions.iter().map(of)))
        })
    }

    /// The most valuable work that still fits in a state, on average over the beliefs: an upper
    /// bound, exact but for processor time, which may be split. More left is never worth less.
    /// Zero for a kind that the prices do not know. O(beliefs x log steps x cards); keep it by
    /// state.
    pub fn worth(&self, state: &NodeState) -> Nano {
        let Some(left) = self.layout.left(state) else {
            return 0;
        };
        mean(self.tables.iter().map(|tables| worth(tables, &left)))
    }

    /// What it costs that a node goes from one state to another: the worth destroyed, plus a
    /// little for what then lies idle. Least is best; of equal costs the first node in the
    /// caller's order is best.
    pub fn cost(&self, before: &NodeState, after: &NodeState) -> Nano {
        self.cost_of(self.worth(before), self.worth(after), after)
    }

    /// [`cost`](Self::cost) for a caller that keeps the worth of both states.
    pub fn cost_of(&self, worth_before: Nano, worth_after: Nano, after: &NodeState) -> Nano {
        let idle = after.idle_milli(&self.published.catalogue);
        worth_before
            .saturating_sub(worth_after)
            .saturating_add(idle.saturating_mul(IDLE_MILLI))
            .saturating_add(after.milli_cpu.saturating_mul(IDLE_MILLI_CPU))
    }
}

fn worth(tables: &[Vec<Step>], left: &Left) -> Nano {
    let step = tables
        .get(left.group)
        .and_then(|steps| steps.get(table::cheapest(steps, left)));
    step.map_or(0, |step| step.worth(left))
}

fn mean(worths: impl Iterator<Item = Nano>) -> Nano {
    let (sum, count) = worths.fold((0_i128, 0), |(sum, count), worth| {
        (sum + i128::from(worth), count + 1)
    });
    (sum / count.max(1)) as Nano
}

#[cfg(test)]
mod tests;
