//! The fragmentation gradient (FGD; Weng et al., "Beware of Fragmentation", USENIX ATC 2023), as
//! published, to compare with.
//!
//! Data enters as a [`Mix`]; what leaves is the fragment of a state and the score of a placement,
//! integers both. Nothing here decides.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::{
    kind::{CardState, Catalogue, Geometry, NodeState},
    mix::{Demand, Mix, WorkType},
};

/// The usual mix as FGD takes it: the most frequent types, until they cover this much in percent.
const COVERED: u128 = 95;

/// Decreases of the fragment, in millionths of a card, from which on the score is 51, 52 to 99:
/// ln(score / (100 - score)) rounded up. Below zero it is the same, mirrored.
const SCORE_STEPS: [i64; 49] = [
    40_006, 80_043, 120_145, 160_343, 200_671, 241_163, 281_852, 322_774, 363_966, 405_466,
    447_313, 489_549, 532_217, 575_365, 619_040, 663_295, 708_186, 753_772, 800_120, 847_298,
    895_385, 944_462, 994_623, 1_045_969, 1_098_613, 1_152_680, 1_208_312, 1_265_667, 1_324_926,
    1_386_295, 1_450_011, 1_516_348, 1_585_628, 1_658_229, 1_734_602, 1_815_290, 1_900_959,
    1_992_431, 2_090_742, 2_197_225, 2_313_635, 2_442_348, 2_586_690, 2_751_536, 2_944_439,
    3_178_054, 3_476_099, 3_891_821, 4_595_120,
];

/// The work that fragments are measured by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Most frequent first.
    types: Vec<(WorkType, u64)>,
    all: u64,
}

impl Target {
    /// The most frequent types until 95 % of all arrivals are covered; of equally frequent ones the
    /// first of the mix.
    pub fn new(mix: &Mix) -> Self {
        let mut types = mix.types().to_vec();
        types.sort_by_key(|&(_, weight)| Reverse(weight));
        let sum = |types: &[(WorkType, u64)]| {
            let weights = types.iter().map(|&(_, weight)| weight);
            weights.fold(0, u64::saturating_add)
        };
        let enough = u128::from(sum(&types)) * COVERED;
        let mut covered = 0;
        types.retain(|&(_, weight)| {
            let wanted = covered * 100 < enough;
            covered += u128::from(weight);
            wanted
        });
        let all = sum(&types);
        Self { types, all }
    }

    /// How much that is idle in a state is of no use to work drawn from the target, on average, in
    /// millionths of a card. Work without cards can use no card. O(types x cards).
    pub fn fragment(&self, state: &NodeState, catalogue: &Catalogue) -> i64 {
        let geometry = catalogue.geometry(state.kind);
        let fragments = self.types.iter().map(|(work, weight)| {
            let usable = state.fits(work, catalogue);
            let useless = |card: &&CardState| !usable || !holds(**card, work.demand, geometry);
            let idle = state.cards().iter().filter(useless);
            let milli: i64 = idle.map(|card| card.idle_milli(geometry)).sum();
            i128::from(milli) * i128::from(*weight)
        });
        (fragments.sum::<i128>() * 1000 / i128::from(self.all.max(1))) as i64
    }

    /// The published score of a placement, 0 to 100: the logistic function of the decrease of the
    /// fragment, cut to a whole percent. Highest is best; of equal scores the first node in the
    /// caller's order is best. The coarseness matters: exact scores fill less.
    pub fn score(fragment_before: i64, fragment_after: i64) -> i64 {
        let decrease = fragment_before.saturating_sub(fragment_after);
        let steps = SCORE_STEPS.partition_point(|&step| step <= decrease.saturating_abs()) as i64;
        if decrease < 0 { 49 - steps } else { 50 + steps }
    }
}

/// Whether one unit of the demand can use what is idle of a card.
fn holds(card: CardState, demand: Demand, geometry: Option<&Geometry>) -> bool {
    match demand {
        Demand::None => false,
        Demand::Share { milli } => card.milli().is_some_and(|left| left >= milli),
        Demand::Whole { .. } => card.is_free(),
        Demand::Slice { profile } => {
            geometry.is_some_and(|geometry| card.cuts(geometry, profile).next().is_some())
        }
    }
}
