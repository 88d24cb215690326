//! What the room on a card is worth for the work to come, and so where an instance does least harm.
//!
//! A [`MigWorth`] is made from a [`Geometry`] and from how often each profile is asked for, away from
//! the decision path, and then only read: a placement costs the worth of the state before it less the
//! worth of the state after it, and the cheapest placement is taken, on an empty card only if no other
//! card has room. Without a known mix ([`MigWorth::plain`]) a state is worth the compute slices of
//! each profile times how many of it still fit. With a mix ([`MigWorth::solve`]) it is the value of
//! the state in the market that [`market`] describes. Worths are integers; the same input gives the
//! same table on every machine.

mod chain;
mod market;
#[cfg(test)]
mod tests;

use alloc::{vec, vec::Vec};

use chain::Chain;
pub use market::Market;

use super::{Geometry, MigState, ProfileIx};

/// The worth of each state of a card model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "Form", try_from = "Form"))]
pub struct MigWorth {
    geometry: &'static Geometry,
    /// By mask: where its entries start in `states`. One more than there are masks.
    first: Vec<u16>,
    /// Starts of instances and worth, by mask. The first entry of a mask is what a state with other
    /// starts is worth.
    states: Vec<(u16, i64)>,
    /// `None` for a table without a mix.
    solved_for: Option<Question>,
}

/// What a table was solved for: with the geometry, all that it depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Question {
    /// By profile, without a common divisor.
    weights: Vec<u32>,
    market: Market,
}

impl Question {
    /// `None` if nothing is asked for.
    fn new(geometry: &Geometry, weights: &[u32], market: Market) -> Option<Self> {
        let weight = |at| weights.get(at).copied().unwrap_or(0);
        let mut weights: Vec<u32> = (0..geometry.profiles.len()).map(weight).collect();
        let divisor = weights.iter().copied().fold(0, gcd);
        for weight in &mut weights {
            *weight = weight.checked_div(divisor)?;
        }
        Some(Self { weights, market })
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl MigWorth {
    /// The worth of one compute slice in tables with a mix.
    pub const SLICE: i64 = 1 << 20;

    /// The table for a fleet whose work nobody knows: the sum over the profiles without suffix of
    /// compute slices times how many still fit. O(states x profiles).
    pub fn plain(geometry: &'static Geometry) -> Self {
        Self::from_masks(geometry, |mask| plain_worth(geometry, mask) * Self::SLICE)
    }

    /// The table for a mix of requests: `weights[i]` requests for profile `i` among all; missing ones
    /// are 0, and only ratios matter. Without any weight this is [`plain`](Self::plain).
    ///
    /// Profiles of the same size and starts count as one. O(rounds x states x profiles): some 50 ms
    /// on an 8-unit card.
    pub fn solve(geometry: &'static Geometry, weights: &[u32], market: Market) -> Self {
        let question = Question::new(geometry, weights, market);
        let chain = question
            .as_ref()
            .and_then(|question| Chain::new(geometry, &question.weights));
        let Some(chain) = chain else {
            return Self::plain(geometry);
        };
        let solved = market.solve(&chain);
        // A mask that no instances of the geometry make up, or whose instances nobody told.
        let plain = |mask| plain_worth(geometry, mask) as f64;
        let (empty, scale) = (plain(0), Chain::depth(&solved) / plain(0).max(1.0));
        let fixed = |worth: f64| (worth * Self::SLICE as f64) as i64;
        let table = Self::from_masks(geometry, |mask| {
            let known = solved.iter().zip(&chain.states);
            let (mut sum, mut weight) = (0.0, 0.0);
            for (state, _) in known.filter(|(_, known)| known.mask == mask) {
                sum += state.worth * state.share;
                weight += state.share;
            }
            fixed(if weight > 0.0 {
                sum / weight
            } else {
                (plain(mask) - empty) * scale
            })
        });
        let mut states = Vec::with_capacity(table.states.len() + solved.len());
        let mut first = vec![0];
        for (mask, entry) in (0_u16..).zip(&table.states) {
            states.push(*entry);
            let known = solved.iter().zip(&chain.states);
            let known = known.filter(|(_, known)| known.mask == mask);
            states.extend(known.map(|(state, known)| (known.begins(), fixed(state.worth))));
            first.push(states.len() as u16);
        }
        Self {
            geometry,
            first,
            states,
            solved_for: question,
        }
    }

    /// The table of [`solve`](Self::solve) for the same geometry, which is this one if it was solved
    /// for the same ratios and market: for a mix that is told again and again.
    #[must_use]
    pub fn solve_again(&self, weights: &[u32], market: Market) -> Self {
        if self.solved_for == Question::new(self.geometry, weights, market) {
            return self.clone();
        }
        Self::solve(self.geometry, weights, market)
    }

    fn from_masks(geometry: &'static Geometry, worth: impl Fn(u16) -> i64) -> Self {
        let masks = 1_u16 << geometry.units.min(12);
        Self {
            geometry,
            first: (0..=masks).collect(),
            states: (0..masks).map(|mask| (0, worth(mask))).collect(),
            solved_for: None,
        }
    }

    /// The card model it is for.
    pub fn geometry(&self) -> &'static Geometry {
        self.geometry
    }

    /// The worth of a state; media engines do not count. O(1): a look-up among the few states with
    /// the same mask.
    pub fn worth(&self, state: MigState) -> i64 {
        let mask = usize::from(state.mask);
        let at = |mask: usize| self.first.get(mask).map(|&first| usize::from(first));
        let (Some(first), Some(end)) = (at(mask), at(mask + 1)) else {
            return 0;
        };
        let entries = self.states.get(first..end).unwrap_or_default();
        let known = entries.iter().find(|(starts, _)| *starts == state.begins());
        known.or(entries.first()).map_or(0, |(_, worth)| *worth)
    }

    /// The start at which an instance costs least, the lowest among equals, with its cost. `None` if
    /// none fits. O(starts).
    pub fn best_start(&self, state: MigState, ix: ProfileIx) -> Option<(i64, u8)> {
        let before = self.worth(state);
        let mut starts = self.geometry.starts(state, ix);
        let mut best: Option<(i64, u8)> = None;
        while starts != 0 {
            let start = starts.trailing_zeros() as u8;
            starts &= starts - 1;
            if let Some(after) = self.geometry.put(state, ix, start) {
                let place = (before.saturating_sub(self.worth(after)), start);
                best = Some(best.map_or(place, |best| best.min(place)));
            }
        }
        best
    }
}

/// How a table is written: the card model's geometry by its name.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
struct Form {
    geometry: alloc::string::String,
    first: Vec<u16>,
    states: Vec<(u16, i64)>,
    solved_for: Option<Question>,
}

#[cfg(feature = "serde")]
impl From<MigWorth> for Form {
    fn from(worth: MigWorth) -> Self {
        Self {
            geometry: worth.geometry.name.into(),
            first: worth.first,
            states: worth.states,
            solved_for: worth.solved_for,
        }
    }
}

/// A table for a geometry that is not built in.
#[cfg(feature = "serde")]
#[derive(Debug, thiserror::Error)]
#[error("geometry: {0:?}; accepted: the name of a geometry of a card model that is built in")]
struct UnknownGeometry(alloc::string::String);

#[cfg(feature = "serde")]
impl TryFrom<Form> for MigWorth {
    type Error = UnknownGeometry;

    fn try_from(form: Form) -> Result<Self, UnknownGeometry> {
        let mut geometries = crate::device::model::models().filter_map(|model| model.mig);
        match geometries.find(|geometry| geometry.name == form.geometry) {
            Some(geometry) => Ok(Self {
                geometry,
                first: form.first,
                states: form.states,
                solved_for: form.solved_for,
            }),
            None => Err(UnknownGeometry(form.geometry)),
        }
    }
}

/// Compute slices of the profiles without suffix times how many of each fit beside a mask.
fn plain_worth(geometry: &Geometry, mask: u16) -> i64 {
    let state = MigState::occupied(mask);
    let profiles = geometry.indices().zip(geometry.profiles);
    let plain = profiles.filter(|(_, profile)| profile.is_base() || profile.is_double());
    plain
        .map(|(ix, profile)| {
            i64::from(profile.compute_slices) * i64::from(geometry.most(state, ix))
        })
        .sum()
}
