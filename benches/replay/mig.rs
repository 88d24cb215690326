//! Fleets of cards with MIG, each with a rule for where an instance goes.

use std::collections::{BTreeMap, BTreeSet};

use gangline::device::{
    mig::{Geometry, Market, MigFleet, MigState, MigWorth, ProfileIx},
    model,
};

use super::Random;

/// The profiles of the mixes.
pub const PROFILES: [&str; 6] = [
    "1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb",
];

/// A mix of requests: its name, and how many of 60 ask for each of [`PROFILES`].
pub type Mix = (&'static str, [u32; 6]);

/// The mixes of both replays.
pub const MIXES: [Mix; 6] = [
    ("uniform5", [12, 0, 12, 12, 12, 12]),
    ("uniform6", [10, 10, 10, 10, 10, 10]),
    ("skew-small", [30, 0, 15, 9, 3, 3]),
    ("skew-big", [3, 0, 6, 12, 15, 24]),
    ("bimodal", [24, 0, 6, 0, 6, 24]),
    ("inference", [27, 6, 15, 9, 3, 0]),
];

/// The card of both replays, and its profiles in the order of [`PROFILES`].
///
/// # Panics
/// If the table of card models has lost it.
pub fn card() -> (&'static Geometry, [ProfileIx; 6]) {
    let model = model::find("NVIDIA-H100-80GB-HBM3").and_then(|model| model.mig);
    let geometry = model.expect("the table of card models has it");
    let profile = |name| geometry.profile(name).expect("the card has it");
    (geometry, PROFILES.map(profile))
}

/// How a place is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Any card and start that fits, each card as likely as the other.
    Random,
    /// The card with the most free units; the driver's start, as in the next three.
    WorstFit,
    /// The first card.
    FirstFit,
    /// The card with the fewest free units.
    BestFit,
    /// Card and start for which fragmentation grows least.
    LeastFragmentation,
    /// Ours without a known mix.
    Plain,
    /// Ours, with the mix.
    Solved,
}

/// All of them.
pub const POLICIES: [Policy; 7] = [
    Policy::Random,
    Policy::WorstFit,
    Policy::FirstFit,
    Policy::BestFit,
    Policy::LeastFragmentation,
    Policy::Plain,
    Policy::Solved,
];

impl Policy {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::WorstFit => "worst-fit",
            Self::FirstFit => "first-fit",
            Self::BestFit => "best-fit",
            Self::LeastFragmentation => "MFI-like",
            Self::Plain => "ours, no mix",
            Self::Solved => "ours",
        }
    }

    /// An empty fleet that goes by this rule.
    pub fn fleet(self, mix: &Mix, cards: u32, seed: u64) -> Box<dyn Fleet> {
        let (geometry, profiles) = card();
        match self {
            Self::Random => Box::new(AnyFit {
                geometry,
                states: vec![MigState::EMPTY; cards as usize],
                random: Random::new(seed ^ 0x5eed),
            }),
            Self::Plain => Box::new(MigFleet::new(MigWorth::plain(geometry), cards)),
            Self::Solved => Box::new(MigFleet::new(solve(geometry, profiles, mix), cards)),
            policy => Box::new(ByState {
                geometry,
                policy,
                states: vec![MigState::EMPTY; cards as usize],
                cards: BTreeMap::from([(MigState::EMPTY, (0..cards).collect())]),
            }),
        }
    }
}

fn solve(geometry: &'static Geometry, profiles: [ProfileIx; 6], mix: &Mix) -> MigWorth {
    let mut weights = vec![0; geometry.profiles.len()];
    for (ix, share) in profiles.iter().zip(mix.1) {
        weights[usize::from(ix.0)] = share;
    }
    MigWorth::solve(geometry, &weights, Market::default())
}

/// Cards that instances come to and leave.
pub trait Fleet {
    /// Card and start of a new instance; `None` if nothing has room.
    fn take(&mut self, ix: ProfileIx) -> Option<(u32, u8)>;
    /// An instance is gone.
    fn give_back(&mut self, card: u32, ix: ProfileIx, start: u8);
    /// Cards that hold something.
    fn used(&self) -> usize;
}

impl Fleet for MigFleet {
    fn take(&mut self, ix: ProfileIx) -> Option<(u32, u8)> {
        MigFleet::take(self, ix)
    }

    fn give_back(&mut self, card: u32, ix: ProfileIx, start: u8) {
        assert!(MigFleet::give_back(self, card, ix, start), "it was there");
    }

    fn used(&self) -> usize {
        let cards = 0..self.len() as u32;
        cards
            .filter(|&card| self.state(card).is_some_and(|state| !state.is_empty()))
            .count()
    }
}

struct AnyFit {
    geometry: &'static Geometry,
    states: Vec<MigState>,
    random: Random,
}

impl Fleet for AnyFit {
    fn take(&mut self, ix: ProfileIx) -> Option<(u32, u8)> {
        let fits = |state: &MigState| self.geometry.starts(*state, ix);
        // Most often one of a few cards fits.
        let mut tried = (0..32).map(|_| self.random.below(self.states.len()));
        let card = tried
            .find(|&card| fits(&self.states[card]) != 0)
            .or_else(|| {
                let fitting =
                    || (0..self.states.len()).filter(|&card| fits(&self.states[card]) != 0);
                let count = fitting().count();
                (count > 0).then(|| fitting().nth(self.random.below(count)))?
            })?;
        let starts = fits(&self.states[card]);
        let place = self.random.below(starts.count_ones() as usize) as u32;
        let start = (0..16_u8)
            .filter(|start| starts >> start & 1 == 1)
            .nth(place as usize)?;
        self.states[card] = self.geometry.put(self.states[card], ix, start)?;
        Some((card as u32, start))
    }

    fn give_back(&mut self, card: u32, ix: ProfileIx, start: u8) {
        let state = &mut self.states[card as usize];
        *state = self
            .geometry
            .take_out(*state, ix, start)
            .expect("it was there");
    }

    fn used(&self) -> usize {
        self.states.iter().filter(|state| !state.is_empty()).count()
    }
}

/// A rule that scores states; the lowest card among equals.
struct ByState {
    geometry: &'static Geometry,
    policy: Policy,
    states: Vec<MigState>,
    cards: BTreeMap<MigState, BTreeSet<u32>>,
}

impl ByState {
    /// What an instance costs on a card in this state, and its start. Less is better.
    fn score(&self, state: MigState, ix: ProfileIx) -> Option<(i64, u8)> {
        let usual = self.geometry.best_start(state, ix)?;
        let used = i64::from(state.mask.count_ones());
        Some(match self.policy {
            Policy::WorstFit => (used, usual),
            Policy::BestFit => (-used, usual),
            Policy::LeastFragmentation => {
                let open = self.geometry.starts(state, ix);
                let starts = (0..16_u8).filter(|start| open >> start & 1 == 1);
                let before = self.fragmentation(state);
                let places = starts.filter_map(|start| {
                    let after = self.geometry.put(state, ix, start)?;
                    Some((self.fragmentation(after) - before, start))
                });
                places.min()?
            }
            _ => (0, usual),
        })
    }

    /// Over the profiles that the free units could hold by their number: the units of each placement
    /// that is not open. Our reading of "minimum fragmentation increment", arXiv 2511.18906.
    fn fragmentation(&self, state: MigState) -> i64 {
        let free = u32::from(self.geometry.units) - state.mask.count_ones();
        let (geometry, profiles) = card();
        let closed = profiles.iter().map(|&ix| {
            let Some(profile) = geometry.get(ix).filter(|it| u32::from(it.units) <= free) else {
                return 0;
            };
            let open = geometry.starts(state, ix).count_ones();
            i64::from(profile.units) * (profile.starts.len() as i64 - i64::from(open))
        });
        closed.sum()
    }

    fn move_to(&mut self, card: u32, after: MigState) {
        let before = std::mem::replace(&mut self.states[card as usize], after);
        if let Some(cards) = self.cards.get_mut(&before) {
            cards.remove(&card);
            if cards.is_empty() {
                self.cards.remove(&before);
            }
        }
        self.cards.entry(after).or_default().insert(card);
    }
}

impl Fleet for ByState {
    fn take(&mut self, ix: ProfileIx) -> Option<(u32, u8)> {
        let places = self.cards.iter().filter_map(|(&state, cards)| {
            let (cost, start) = self.score(state, ix)?;
            Some((cost, *cards.first()?, start))
        });
        let (_, card, start) = places.min()?;
        let after = self.geometry.put(self.states[card as usize], ix, start)?;
        self.move_to(card, after);
        Some((card, start))
    }

    fn give_back(&mut self, card: u32, ix: ProfileIx, start: u8) {
        let state = self.states[card as usize];
        let after = self
            .geometry
            .take_out(state, ix, start)
            .expect("it was there");
        self.move_to(card, after);
    }

    fn used(&self) -> usize {
        self.states.iter().filter(|state| !state.is_empty()).count()
    }
}

/// Whether so many instances of each profile fit on empty cards, placed as well as possible.
///
/// A card is four pairs of units; the last one has compute for one slice only. 7g takes a card, 4g the
/// first two pairs, 3g two pairs (the last two if it can), 2g one of the first three, 1g.20gb any pair,
/// 1g half of one of the first three or the last one. What is left over is used best if 1g.20gb goes
/// to last pairs first. The static replay holds this against an integer program.
pub fn fits(counts: [u32; 6], cards: u32) -> bool {
    let [one, double, two, three, four, seven] = counts.map(i64::from);
    let cards = i64::from(cards) - seven;
    if cards < 0 || four > cards {
        return false;
    }
    let upper = three.min(cards);
    let lower = three - upper;
    if lower > cards - four {
        return false;
    }
    let last = cards - upper;
    let pairs = 2 * (cards - four - lower) + last - two;
    let double_last = double.min(last);
    let pairs = pairs - (double - double_last);
    pairs >= 0 && one <= 2 * pairs + last - double_last
}
