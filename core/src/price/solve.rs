//! Off the decision path: what each type of work is worth, from what is left and who will ask.

use alloc::{vec, vec::Vec};

use super::{
    Nano,
    kind::{Catalogue, NodeState},
    mix::{Demand, Mix},
    table::Layout,
};

/// One card in [`Nano`].
pub(super) const CARD: f64 = 1e9;

/// How long to solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Rounds of packing the whole fleet; 400 for a first solution, 60 to follow a change.
    pub rounds: u32,
}

/// A premium for several cards: size x (1 + this x ln n).
const SEVERAL_PREMIUM: f64 = 0.1;
/// Survival: exp(-(z / width)^2).
const SURVIVAL_WIDTH: f64 = 2.0;
const LEAST_STEP: f64 = 0.02;
const LEAST_SURVIVAL: f64 = 1e-4;

pub(super) fn solve(
    catalogue: &Catalogue,
    layout: &Layout,
    mix: &Mix,
    fleet: &[(NodeState, u64)],
    warm: Option<&[Nano]>,
    effort: Effort,
) -> Vec<Nano> {
    let types = mix.types();
    let all: f64 = types.iter().map(|&(_, weight)| weight as f64).sum();
    let sizes: Vec<f64> = types
        .iter()
        .map(|(work, _)| work.size_milli(catalogue) as f64 / 1000.0)
        .collect();
    let full: Vec<f64> = types
        .iter()
        .zip(&sizes)
        .map(|((work, _), size)| {
            let premium = match work.demand {
                Demand::Whole { count } if count > 1 => {
                    SEVERAL_PREMIUM * libm::log(f64::from(count))
                }
                _ => 0.0,
            };
            CARD * size * (1.0 + premium) + work.milli_cpu.max(0) as f64
        })
        .collect();
    let idle: f64 = fleet
        .iter()
        .map(|(state, count)| state.idle_milli(catalogue) as f64 / 1000.0 * *count as f64)
        .sum();
    let per_draw: f64 = types
        .iter()
        .zip(&sizes)
        .map(|(&(_, weight), size)| weight as f64 / all * size)
        .sum();
    let draws = if per_draw > 0.0 { idle / per_draw } else { 0.0 };
    let demand: Vec<f64> = types
        .iter()
        .map(|&(_, weight)| (draws * weight as f64 / all).max(1e-9))
        .collect();
    let lefts: Vec<_> = fleet
        .iter()
        .filter_map(|(state, count)| Some((layout.left(state)?, *count as f64)))
        .collect();
    let mut prices: Vec<Nano> = match warm {
        Some(warm) if warm.len() == types.len() => warm.to_vec(),
        _ => full.iter().map(|&price| price as Nano).collect(),
    };
    let mut sum = vec![0.0; types.len()];
    let mut supply = vec![0.0; types.len()];
    let rounds = effort.rounds.max(1);
    for round in 0..rounds {
        let tables = layout.tables(catalogue, &prices);
        let mut packed = vec![0.0; types.len()];
        for ((group, group_ix, left), count) in &lefts {
            let Some(steps) = tables.get(*group_ix) else {
                continue;
            };
            let best = steps
                .iter()
                .enumerate()
                .min_by_key(|(ix, step)| (step.worth(left), *ix));
            let Some((step_ix, step)) = best else {
                continue;
            };
            let mut cpu = left.milli_cpu();
            layout.pack(step, group, left, &mut |ix| {
                let ix = usize::from(ix);
                packed[ix] += count;
                cpu -= types[ix].0.milli_cpu;
            });
            if step_ix == 0 && cpu > 0 {
                if let Some((ix, each)) = layout.best_cpu_only(group, &prices) {
                    packed[usize::from(ix)] += count * cpu as f64 / each as f64;
                }
            }
        }
        let step = if round == 0 {
            1.0
        } else {
            (2.0 / (f64::from(round) + 2.0)).max(LEAST_STEP)
        };
        for (ix, price) in prices.iter_mut().enumerate() {
            supply[ix] += step * (packed[ix] - supply[ix]);
            let z = supply[ix] / demand[ix] / SURVIVAL_WIDTH;
            let survival = libm::exp(-(z * z)).max(LEAST_SURVIVAL);
            *price = (full[ix] * survival) as Nano;
            if round >= rounds / 2 {
                sum[ix] += full[ix] * survival;
            }
        }
    }
    let averaged = f64::from(rounds - rounds / 2);
    sum.iter().map(|sum| (sum / averaged) as Nano).collect()
}
