//! Many alike cards with MIG, kept by state, so that a choice does not depend on how many there are.
//!
//! Goes by a [`MigWorth`]: an instance goes where it costs least, to an empty card only if no other
//! has room. States that cost the same: the one with the most instances, which will be empty last in
//! any case, then the fullest; among cards in the same state the lowest. [`MigFleet::take`] and
//! [`MigFleet::give_back`] are look-ups and a few bits. Nothing here knows nodes or why a card may not
//! be used.

use alloc::{vec, vec::Vec};
use core::cmp::Reverse;

use super::{MigState, MigWorth, ProfileIx};
use crate::hash::Map;

/// No state, no rank.
const NONE: u32 = u32::MAX;

/// What happens to a state when an instance of a profile is added.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// Place of the state among those that could take the profile, cheapest first.
    rank: u32,
    after: u32,
    start: u8,
}

/// A set of small numbers: a bit each, and a bit for each word that is not zero.
#[derive(Clone, Debug, Default)]
struct Set {
    words: Vec<u64>,
    summary: Vec<u64>,
}

/// The cards of a fleet by state.
#[derive(Clone, Debug)]
pub struct MigFleet {
    worth: MigWorth,
    numbers: Map<MigState, u32>,
    states: Vec<MigState>,
    /// By profile, then by state; a rank of [`NONE`] does not fit.
    steps: Vec<Vec<Step>>,
    /// By profile, then by rank: the state.
    order: Vec<Vec<u32>>,
    /// By profile: ranks whose state has cards.
    open: Vec<Set>,
    /// By state: its cards. A state that never had one has no words yet.
    members: Vec<Set>,
    /// By card: its state.
    cards: Vec<u32>,
}

impl MigFleet {
    /// A fleet of empty cards. O(states x profiles) to prepare; a state that was seen takes a bit for
    /// each card.
    pub fn new(worth: MigWorth, cards: u32) -> Self {
        let geometry = worth.geometry();
        let mut states = vec![MigState::EMPTY];
        let mut numbers = Map::default();
        numbers.insert(MigState::EMPTY, 0);
        let placements: Vec<(ProfileIx, u8)> = geometry.placements().collect();
        let mut at = 0;
        while let Some(&state) = states.get(at) {
            for &(ix, start) in &placements {
                if let Some(after) = geometry.put(state, ix, start) {
                    numbers.entry(after).or_insert_with(|| {
                        states.push(after);
                        (states.len() - 1) as u32
                    });
                }
            }
            at += 1;
        }
        let mut fleet = Self {
            worth,
            numbers,
            steps: Vec::new(),
            order: Vec::new(),
            open: Vec::new(),
            members: vec![Set::default(); states.len()],
            states,
            cards: vec![0; cards as usize],
        };
        for ix in geometry.indices() {
            fleet.rank(ix);
        }
        for card in 0..cards {
            fleet.enter(card, 0);
        }
        fleet
    }

    /// Orders the states that can take a profile by cost; the empty card comes last.
    fn rank(&mut self, ix: ProfileIx) {
        let closed = Step {
            rank: NONE,
            after: NONE,
            start: 0,
        };
        let mut steps = vec![closed; self.states.len()];
        let mut order = Vec::new();
        for (number, &state) in (0..).zip(&self.states) {
            let Some((cost, start)) = self.worth.best_start(state, ix) else {
                continue;
            };
            let after = self.worth.geometry().put(state, ix, start);
            if let Some(&after) = after.and_then(|after| self.numbers.get(&after)) {
                steps[number as usize] = Step {
                    after,
                    start,
                    ..closed
                };
                let (instances, units) = (state.begins().count_ones(), state.mask.count_ones());
                order.push((
                    (state.is_empty(), cost, Reverse(instances), Reverse(units)),
                    number,
                ));
            }
        }
        order.sort_unstable();
        for (rank, &(_, number)) in (0..).zip(&order) {
            steps[number as usize].rank = rank;
        }
        self.open.push(Set::new(order.len()));
        self.order
            .push(order.into_iter().map(|(_, number)| number).collect());
        self.steps.push(steps);
    }

    /// How many cards there are.
    pub fn len(&self) -> usize {
        self.cards.len()
    }

    /// Whether there is no card.
    pub fn is_empty(&self) -> bool {
        self.cards.is_empty()
    }

    /// What a card holds; `None` if there is no such card.
    pub fn state(&self, card: u32) -> Option<MigState> {
        let state = *self.cards.get(card as usize)?;
        self.states.get(state as usize).copied()
    }

    /// Where an instance would go: card and start. `None` if no card has room. O(1).
    pub fn find(&self, ix: ProfileIx) -> Option<(u32, u8)> {
        let (card, step) = self.look_up(ix)?;
        Some((card, step.start))
    }

    fn look_up(&self, ix: ProfileIx) -> Option<(u32, Step)> {
        let profile = usize::from(ix.0);
        let rank = self.open.get(profile)?.first()?;
        let state = *self.order.get(profile)?.get(rank)? as usize;
        let card = self.members.get(state)?.first()? as u32;
        Some((card, *self.steps.get(profile)?.get(state)?))
    }

    /// Takes room for an instance: card and start. `None` if no card has room. O(profiles).
    pub fn take(&mut self, ix: ProfileIx) -> Option<(u32, u8)> {
        let (card, step) = self.look_up(ix)?;
        self.leave(card);
        self.enter(card, step.after);
        Some((card, step.start))
    }

    /// Gives the room of an instance back; `false` if that card cannot hold it. O(profiles).
    pub fn give_back(&mut self, card: u32, ix: ProfileIx, start: u8) -> bool {
        let state = self.state(card);
        let after = state.and_then(|state| self.worth.geometry().take_out(state, ix, start));
        let Some(&after) = after.and_then(|after| self.numbers.get(&after)) else {
            return false;
        };
        self.leave(card);
        self.enter(card, after);
        true
    }

    fn enter(&mut self, card: u32, state: u32) {
        self.cards[card as usize] = state;
        let members = &mut self.members[state as usize];
        if members.words.is_empty() {
            *members = Set::new(self.cards.len());
        }
        let was_empty = members.is_empty();
        members.set(card as usize, true);
        if was_empty {
            self.mark(state, true);
        }
    }

    fn leave(&mut self, card: u32) {
        let state = self.cards[card as usize];
        let members = &mut self.members[state as usize];
        members.set(card as usize, false);
        if members.is_empty() {
            self.mark(state, false);
        }
    }

    fn mark(&mut self, state: u32, open: bool) {
        for (steps, open_ranks) in self.steps.iter().zip(&mut self.open) {
            let rank = steps[state as usize].rank;
            if rank != NONE {
                open_ranks.set(rank as usize, open);
            }
        }
    }
}

impl Set {
    fn new(count: usize) -> Self {
        let words = count.div_ceil(64);
        Self {
            words: vec![0; words],
            summary: vec![0; words.div_ceil(64)],
        }
    }

    fn is_empty(&self) -> bool {
        self.summary.iter().all(|word| *word == 0)
    }

    fn set(&mut self, number: usize, present: bool) {
        let (at, bit) = (number / 64, number % 64);
        let word = &mut self.words[at];
        *word = *word & !(1 << bit) | u64::from(present) << bit;
        let any = *word != 0;
        let word = &mut self.summary[at / 64];
        *word = *word & !(1 << (at % 64)) | u64::from(any) << (at % 64);
    }

    fn first(&self) -> Option<usize> {
        let at = self.summary.iter().position(|word| *word != 0)?;
        let word = at * 64 + self.summary[at].trailing_zeros() as usize;
        Some(word * 64 + self.words[word].trailing_zeros() as usize)
    }
}
