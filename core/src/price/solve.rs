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

impl Effort {
    /// For a first solution.
    pub const FIRST: Self = Self { rounds: 400 };
    /// To follow a change.
    pub const FOLLOW: Self = Self { rounds: 60 };
}

/// A premium for several cards: size x (1 + this x ln n).
const SEVERAL_PREMIUM: f64 = 0.1;
const LEAST_STEP: f64 = 0.002;
const LEAST_SURVIVAL: f64 = 1e-4;

/// Research only.
pub static KNOBS: [core::sync::atomic::AtomicU64; 64] =
    [const { core::sync::atomic::AtomicU64::new(0) }; 64];
pub(super) fn knob(ix: usize, default: f64) -> f64 {
    let bits = KNOBS[ix].load(core::sync::atomic::Ordering::Relaxed);
    if bits == 0 {
        default
    } else {
        f64::from_bits(bits)
    }
}

/// One belief about how much work is still to come.
pub(super) struct Horizon {
    /// Demand as a multiple of what is left.
    theta: f64,
    shape: f64,
    pub(super) weight: f64,
    cpu_weight: f64,
}

pub(super) fn horizons() -> Vec<Horizon> {
    let count = knob(0, 3.0) as usize;
    (0..count)
        .map(|h| Horizon {
            theta: knob(1 + 3 * h, [0.7, 1.0, 1.6].get(h).copied().unwrap_or(2.0)),
            shape: knob(2 + 3 * h, 4.0),
            weight: knob(3 + 3 * h, 1.0),
            cpu_weight: knob(50 + h, knob(44, 3000.0)),
        })
        .collect()
}

pub(super) fn solve(
    catalogue: &Catalogue,
    layout: &Layout,
    mix: &Mix,
    fleet: &[(NodeState, u64)],
    warm: Option<(&[Nano], &[Nano])>,
    effort: Effort,
    horizon: &Horizon,
) -> (Vec<Nano>, Vec<Nano>) {
    let types = mix.types();
    let all: f64 = types.iter().map(|&(_, weight)| weight as f64).sum();
    let sizes: Vec<f64> = types
        .iter()
        .map(|(work, _)| work.size_milli(catalogue) as f64 / 1000.0)
        .collect();
    let premium_by = knob(40, SEVERAL_PREMIUM);
    let full: Vec<f64> = types
        .iter()
        .zip(&sizes)
        .map(|((work, _), size)| {
            let premium = match work.demand {
                Demand::Whole { count } if count > 1 => premium_by * libm::log(f64::from(count)),
                _ => 0.0,
            };
            CARD * size * (1.0 + premium)
                + work.milli_cpu.max(0) as f64 * if *size > 0.0 { 1.0 } else { horizon.cpu_weight }
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
        Some((warm, _)) if warm.len() == types.len() => warm.to_vec(),
        _ => full.iter().map(|&price| price as Nano).collect(),
    };
    let least_step = knob(41, LEAST_STEP);
    let mix_cpu = knob(42, 1.0) > 0.0;
    let mut sum = vec![0.0; types.len()];
    let mut supply = vec![0.0; types.len()];
    let offset = if warm.is_some() { knob(43, 998.0) } else { 0.0 };
    if let Some((_, z)) = warm {
        for (ix, z) in z.iter().enumerate() {
            supply[ix] = *z as f64 / 1e9 * demand[ix];
        }
    }
    let rounds = effort.rounds.max(1);
    let mut first: Vec<u16> = Vec::new();
    let mut second: Vec<u16> = Vec::new();
    for round in 0..rounds {
        let tables = layout.tables(catalogue, &prices);
        let mut packed = vec![0.0; types.len()];
        for ((group, group_ix, left), count) in &lefts {
            let Some(steps) = tables.get(*group_ix) else {
                continue;
            };
            let step_ix = super::table::cheapest(steps, left);
            let Some(step) = steps.get(step_ix) else {
                continue;
            };
            first.clear();
            let mut cpu = left.milli_cpu();
            layout.pack(step, left, &mut |ix| {
                first.push(ix);
                cpu -= types[usize::from(ix)].0.milli_cpu;
            });
            let mut part = 1.0;
            if mix_cpu && cpu != 0 && !(cpu > 0 && step_ix == 0) {
                let other_ix = if cpu < 0 {
                    step_ix + 1
                } else {
                    step_ix.wrapping_sub(1)
                };
                if let Some(other) = steps.get(other_ix) {
                    second.clear();
                    let mut other_cpu = left.milli_cpu();
                    layout.pack(other, left, &mut |ix| {
                        second.push(ix);
                        other_cpu -= types[usize::from(ix)].0.milli_cpu;
                    });
                    if (other_cpu < 0) != (cpu < 0) {
                        part = other_cpu as f64 / (other_cpu - cpu) as f64;
                        for &ix in &second {
                            packed[usize::from(ix)] += count * (1.0 - part);
                        }
                        cpu = 0;
                    } else if cpu < 0 {
                        part = 1.0;
                    }
                }
            }
            for &ix in &first {
                packed[usize::from(ix)] += count * part;
            }
            if step_ix == 0 && cpu > 0 {
                if let Some((ix, each)) = layout.best_cpu_only(group, &prices) {
                    packed[usize::from(ix)] += count * cpu as f64 / each as f64;
                }
            }
        }
        let step = (2.0 / (f64::from(round) + 2.0 + offset)).max(least_step);
        for (ix, price) in prices.iter_mut().enumerate() {
            supply[ix] += step * (packed[ix] - supply[ix]);
            let z = supply[ix] / demand[ix] / horizon.theta;
            let survival = if horizon.shape > 0.0 {
                libm::exp(-libm::pow(z, horizon.shape))
            } else {
                1.0 / (1.0 + libm::exp((z - 1.0) / -horizon.shape))
            }
            .max(LEAST_SURVIVAL);
            *price = (full[ix] * survival) as Nano;
            if round >= rounds / 2 {
                sum[ix] += full[ix] * survival;
            }
        }
    }
    let averaged = f64::from(rounds - rounds / 2);
    (
        sum.iter().map(|sum| (sum / averaged) as Nano).collect(),
        supply
            .iter()
            .zip(&demand)
            .map(|(supply, demand)| (supply / demand * 1e9) as Nano)
            .collect(),
    )
}
