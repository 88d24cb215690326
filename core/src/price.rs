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
pub use solve::{Effort, KNOBS};
use table::{Layout, Step};

/// Billionths of one card's worth.
pub type Nano = i64;

/// A thousandth of a card left idle costs this much beside the worth, so that of two places that
/// destroy as much worth the fuller one is taken.
const IDLE_MILLI: Nano = 100;
/// The same for a thousandth of a core.
const IDLE_MILLI_CPU: Nano = 1;

/// Prices of the types of a mix, and the tables that turn them into the worth of states.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(from = "Published", into = "Published"))]
pub struct Prices {
    published: Published,
    layout: Layout,
    tables: Vec<Vec<Vec<Step>>>,
    weights: Vec<Nano>,
}

/// What prices are made of; everything else is derived.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Published {
    version: u64,
    catalogue: Catalogue,
    mix: Mix,
    prices: Vec<Vec<Nano>>,
    ratios: Vec<Vec<Nano>>,
}

impl From<Published> for Prices {
    fn from(published: Published) -> Self {
        let layout = Layout::new(&published.catalogue, &published.mix);
        let tables = published
            .prices
            .iter()
            .map(|prices| layout.tables(&published.catalogue, prices))
            .collect();
        let weights = solve::horizons()
            .iter()
            .map(|h| (h.weight * 1000.0) as Nano)
            .collect();
        Self {
            weights,
            published,
            layout,
            tables,
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
    /// Prices for this mix on this fleet. `previous` gives the starting point and the version
    /// before. Time: rounds x (distinct states + types of work) x the ladder.
    pub fn solve(
        catalogue: &Catalogue,
        mix: &Mix,
        fleet: &[(NodeState, u64)],
        previous: Option<&Prices>,
        effort: Effort,
    ) -> Self {
        let layout = Layout::new(catalogue, mix);
        let known = |previous: &Prices| {
            let same = previous.published.mix.types().len() == mix.types().len();
            same.then(|| {
                (
                    previous.published.prices.clone(),
                    previous.published.ratios.clone(),
                )
            })
        };
        let warm = previous.and_then(known);
        let (prices, ratios) = solve::horizons()
            .iter()
            .enumerate()
            .map(|(h, horizon)| {
                let warm = warm
                    .as_ref()
                    .map(|warm| (warm.0[h].as_slice(), warm.1[h].as_slice()));
                solve::solve(catalogue, &layout, mix, fleet, warm, effort, horizon)
            })
            .unzip();
        Published {
            version: previous.map_or(1, |previous| previous.published.version.saturating_add(1)),
            catalogue: catalogue.clone(),
            mix: mix.clone(),
            prices,
            ratios,
        }
        .into()
    }

    /// The mix that the prices are for.
    pub fn mix(&self) -> &Mix {
        &self.published.mix
    }

    /// The kinds of nodes that the prices know.
    pub fn catalogue(&self) -> &Catalogue {
        &self.published.catalogue
    }

    /// [`cost`](Self::cost) for a caller that keeps the worth of both states.
    pub fn cost_of(
        &self,
        worth_before: Nano,
        worth_after: Nano,
        _before: &NodeState,
        after: &NodeState,
    ) -> Nano {
        let idle = after.idle_milli(&self.published.catalogue);
        worth_before
            .saturating_sub(worth_after)
            .saturating_add(idle.saturating_mul(IDLE_MILLI))
            .saturating_add(after.milli_cpu.saturating_mul(IDLE_MILLI_CPU))
    }

    /// Counts up with every solution.
    pub fn version(&self) -> u64 {
        self.published.version
    }

    /// The types of work, ascending, each with its price.
    pub fn prices(&self) -> impl Iterator<Item = (&WorkType, Nano)> + '_ {
        let types = self.published.mix.types().iter().map(|(work, _)| work);
        types.zip(self.published.prices[0].iter().copied())
    }

    /// The most valuable work that still fits in a state, an upper bound within a few percent.
    /// Zero for a kind that the prices do not know. O(steps x cards); keep it by state.
    pub fn worth(&self, state: &NodeState) -> Nano {
        let Some((_, group_ix, left)) = self.layout.left(state) else {
            return 0;
        };
        let mut sum = 0;
        for (tables, weight) in self.tables.iter().zip(&self.weights) {
            let Some(steps) = tables.get(group_ix) else {
                continue;
            };
            let step = steps.get(table::cheapest(steps, &left));
            sum += step.map_or(0, |step| step.worth(&left)) * weight / 1000;
        }
        sum
    }

    /// What it costs that a node goes from one state to another: the worth destroyed, plus a
    /// little for what then lies idle. Least is best; of equal costs the first node in the
    /// caller's order is best.
    pub fn cost(&self, before: &NodeState, after: &NodeState) -> Nano {
        self.cost_from(self.worth(before), before, after)
    }

    /// [`cost`](Self::cost) for a caller that keeps the worth of the state before.
    pub fn cost_from(&self, worth_before: Nano, before: &NodeState, after: &NodeState) -> Nano {
        let _ = before;
        let idle = after.idle_milli(&self.published.catalogue);
        worth_before
            .saturating_sub(self.worth(after))
            .saturating_add(idle.saturating_mul(solve::knob(47, 100.0) as Nano))
            .saturating_add(after.milli_cpu.saturating_mul(solve::knob(46, 1.0) as Nano))
    }
}
