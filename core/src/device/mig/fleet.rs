//! Many alike cards with MIG, kept by state, so that a choice does not depend on how many there are.
//!
//! Goes by a [`MigWorth`]: an instance goes where it costs least, to an empty card only if no other
//! has room; among cards in the same state to the one that came into it last. [`MigFleet::take`] and
//! [`MigFleet::give_back`] are look-ups and a few list steps. Nothing here knows nodes or why a card
//! may not be used.

use alloc::{vec, vec::Vec};

use super::{MigState, MigWorth, ProfileIx};
use crate::hash::Map;

/// No state, no card.
const NONE: u32 = u32::MAX;

/// What happens to a state when an instance of a profile is added.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// Place of the state among those that could take the profile, cheapest first.
    rank: u32,
    after: u32,
    start: u8,
}

/// Ranks that have cards: a bit each, and a bit for each word that is not zero.
#[derive(Clone, Debug, Default)]
struct Ranks {
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
    open: Vec<Ranks>,
    /// By state: its first card.
    first: Vec<u32>,
    /// By card: its state, and its neighbours among the cards in that state.
    cards: Vec<Links>,
}

#[derive(Clone, Copy, Debug)]
struct Links {
    state: u32,
    before: u32,
    next: u32,
}

impl MigFleet {
    /// A fleet of empty cards. O(states x profiles) to prepare, some 6 KB a profile.
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
            first: vec![NONE; states.len()],
            states,
            cards: Vec::new(),
        };
        for ix in geometry.indices() {
            fleet.rank(ix);
        }
        // The last one linked is the first one taken.
        let unlinked = Links {
            state: NONE,
            before: NONE,
            next: NONE,
        };
        fleet.cards = vec![unlinked; cards as usize];
        for card in (0..cards).rev() {
            fleet.link(card, 0);
        }
        fleet
    }

    /// Orders the states that can take a profile by cost; the empty card comes last.
    fn rank(&mut self, ix: ProfileIx) {
        let mut costs: Vec<(bool, i64, u32, Step)> = Vec::new();
        for (number, &state) in (0..).zip(&self.states) {
            let Some((cost, start)) = self.worth.best_start(state, ix) else {
                continue;
            };
            let after = self.worth.geometry().put(state, ix, start);
            let Some(&after) = after.and_then(|after| self.numbers.get(&after)) else {
                continue;
            };
            let step = Step {
                rank: NONE,
                after,
                start,
            };
            costs.push((state.is_empty(), cost, number, step));
        }
        costs.sort_unstable_by_key(|&(empty, cost, number, _)| (empty, cost, number));
        let closed = Step {
            rank: NONE,
            after: NONE,
            start: 0,
        };
        let mut steps = vec![closed; self.states.len()];
        for (rank, &(_, _, number, step)) in (0..).zip(&costs) {
            steps[number as usize] = Step { rank, ..step };
        }
        self.steps.push(steps);
        self.order.push(costs.iter().map(|&(_, _, number, _)| number).collect());
        self.open.push(Ranks::new(costs.len()));
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
        let state = self.cards.get(card as usize)?.state;
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
        let card = *self.first.get(state)?;
        let step = *self.steps.get(profile)?.get(state)?;
        (card != NONE).then_some((card, step))
    }

    /// Takes room for an instance: card and start. `None` if no card has room. O(profiles).
    pub fn take(&mut self, ix: ProfileIx) -> Option<(u32, u8)> {
        let (card, step) = self.look_up(ix)?;
        self.unlink(card);
        self.link(card, step.after);
        Some((card, step.start))
    }

    /// Gives the room of an instance back; `false` if that card cannot hold it. O(profiles).
    pub fn give_back(&mut self, card: u32, ix: ProfileIx, start: u8) -> bool {
        let state = self.state(card);
        let after = state.and_then(|state| self.worth.geometry().take_out(state, ix, start));
        let Some(&after) = after.and_then(|after| self.numbers.get(&after)) else {
            return false;
        };
        self.unlink(card);
        self.link(card, after);
        true
    }

    fn link(&mut self, card: u32, state: u32) {
        let next = core::mem::replace(&mut self.first[state as usize], card);
        self.cards[card as usize] = Links {
            state,
            before: NONE,
            next,
        };
        if next == NONE {
            self.mark(state, true);
        } else {
            self.cards[next as usize].before = card;
        }
    }

    fn unlink(&mut self, card: u32) {
        let Links {
            state,
            before,
            next,
        } = self.cards[card as usize];
        if before == NONE {
            self.first[state as usize] = next;
            if next == NONE {
                self.mark(state, false);
            }
        } else {
            self.cards[before as usize].next = next;
        }
        if next != NONE {
            self.cards[next as usize].before = before;
        }
    }

    fn mark(&mut self, state: u32, open: bool) {
        for (steps, ranks) in self.steps.iter().zip(&mut self.open) {
            let rank = steps[state as usize].rank;
            if rank != NONE {
                ranks.set(rank as usize, open);
            }
        }
    }
}

impl Ranks {
    fn new(count: usize) -> Self {
        let words = count.div_ceil(64);
        Self {
            words: vec![0; words],
            summary: vec![0; words.div_ceil(64)],
        }
    }

    fn set(&mut self, rank: usize, open: bool) {
        let word = &mut self.words[rank / 64];
        *word = *word & !(1 << (rank % 64)) | u64::from(open) << (rank % 64);
        let (at, any) = (rank / 64, *word != 0);
        let word = &mut self.summary[at / 64];
        *word = *word & !(1 << (at % 64)) | u64::from(any) << (at % 64);
    }

    fn first(&self) -> Option<usize> {
        let at = self.summary.iter().position(|word| *word != 0)?;
        let word = at * 64 + self.summary[at].trailing_zeros() as usize;
        Some(word * 64 + self.words[word].trailing_zeros() as usize)
    }
}
