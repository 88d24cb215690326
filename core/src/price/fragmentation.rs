//! The fragmentation gradient (FGD; Weng et al., USENIX ATC 2023), for comparison, and best fit.

use alloc::vec::Vec;

use super::{
    kind::{CARD_MILLI, CardState, Catalogue, NodeState},
    mix::{Demand, Mix, WorkType},
};

/// The usual mix as FGD takes it: types by falling count until 95 % of the work is covered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    types: Vec<(WorkType, u64)>,
    all: u64,
}

impl Target {
    /// The target of a mix: the most frequent types until 95 % of arrivals are covered. Of equally
    /// frequent types the first of the mix is taken first.
    pub fn new(mix: &Mix) -> Self {
        let mut types = mix.types().to_vec();
        types.sort_by_key(|&(_, weight)| core::cmp::Reverse(weight));
        let sum = |types: &[(WorkType, u64)]| {
            types
                .iter()
                .fold(0_u64, |sum, &(_, weight)| sum.saturating_add(weight))
        };
        let enough = u128::from(sum(&types)) * 95;
        let mut covered = 0_u128;
        types.retain(|&(_, weight)| {
            let wanted = covered * 100 < enough;
            covered += u128::from(weight);
            wanted
        });
        let all = sum(&types);
        Self { types, all }
    }

    /// Idle thousandths of cards that work drawn from the target cannot use, expected, in
    /// millionths of a card. O(types x cards).
    pub fn fragment(&self, state: &NodeState, catalogue: &Catalogue) -> i64 {
        let idle = state.idle_milli(catalogue);
        let mut sum = 0_i128;
        for (work, weight) in &self.types {
            sum += i128::from(unusable(state, work, catalogue, idle)) * i128::from(*weight);
        }
        (sum * 1000 / i128::from(self.all.max(1))) as i64
    }

    /// FGD's score of a placement, 0 to 100, highest is best; of equal scores the first node in
    /// the caller's order is best.
    pub fn score(fragment_before: i64, fragment_after: i64) -> i64 {
        let decrease = (fragment_before - fragment_after) as f64 / 1e6;
        (100.0 / (1.0 + libm::exp(-decrease))) as i64
    }
}

fn unusable(state: &NodeState, work: &WorkType, catalogue: &Catalogue, idle: i64) -> i64 {
    if matches!(work.demand, Demand::None) || !state.fits(work, catalogue) {
        return idle;
    }
    let needed = match work.demand {
        Demand::Share { milli } => milli,
        _ => CARD_MILLI,
    };
    let too_small = |card: &&CardState| card.milli().is_some_and(|milli| milli < needed);
    let milli = |card: &CardState| i64::from(card.milli().unwrap_or(0));
    state.cards().iter().filter(too_small).map(milli).sum()
}
