//! What prices know of nodes: kinds, card states, node states. Plain data, no decisions.

use alloc::vec::Vec;
use core::iter::successors;

use smallvec::SmallVec;

use super::mix::{Demand, WorkType};

/// Index of a [`NodeKind`] in its [`Catalogue`].
pub type NodeKindIx = u16;

/// Thousandths of one card.
pub const CARD_MILLI: u16 = 1000;

/// Nodes that are alike when empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NodeKind {
    /// The card model, as the caller numbers them.
    pub model: u16,
    /// Cards of a node.
    pub cards: u16,
    /// So many of them are given as a whole or not at all: no shares, no slices.
    pub whole_only: u16,
    /// Allocatable processor time of a node.
    pub milli_cpu: i64,
    /// How its cards can be cut, as an index into [`Catalogue::geometries`].
    pub geometry: Option<u16>,
}

/// Where slices may sit on a card: every legal (profile, place) pair.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Geometry {
    /// Units of a card, 1 to [`MOST_UNITS`].
    pub units: u8,
    /// (profile, units it would take), one entry for each legal start.
    pub placements: Vec<(u16, u16)>,
}

/// Most units that a card may be cut into.
pub const MOST_UNITS: u8 = 12;

impl Geometry {
    /// The units as a mask.
    pub fn full(&self) -> u16 {
        (1 << self.units.min(MOST_UNITS)) - 1
    }

    /// Legal placements that lie on the card, `(profile, mask)`.
    pub(super) fn legal(&self) -> impl Iterator<Item = (u16, u16)> + '_ {
        let full = self.full();
        let on_card = move |&(_, mask): &(u16, u16)| mask != 0 && mask & !full == 0;
        self.placements.iter().copied().filter(on_card)
    }
}

/// All kinds of nodes that a set of prices speaks about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Catalogue {
    /// The kinds; a [`NodeKindIx`] points here.
    pub kinds: Vec<NodeKind>,
    /// The ways to cut cards; [`NodeKind::geometry`] points here.
    pub geometries: Vec<Geometry>,
}

impl Catalogue {
    /// The geometry of a kind, when it has one.
    pub fn geometry(&self, kind: NodeKindIx) -> Option<&Geometry> {
        let kind = self.kinds.get(usize::from(kind))?;
        self.geometries.get(usize::from(kind.geometry?))
    }
}

/// A set of [`NodeKindIx`].
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct KindSet {
    words: SmallVec<[u64; 1]>,
}

impl KindSet {
    /// Puts a kind in.
    pub fn insert(&mut self, kind: NodeKindIx) {
        let word = usize::from(kind) / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        if let Some(bits) = self.words.get_mut(word) {
            *bits |= 1 << (kind % 64);
        }
    }

    /// Whether a kind is in the set.
    pub fn contains(&self, kind: NodeKindIx) -> bool {
        let word = self.words.get(usize::from(kind) / 64);
        word.is_some_and(|bits| bits >> (kind % 64) & 1 == 1)
    }
}

impl FromIterator<NodeKindIx> for KindSet {
    fn from_iter<I: IntoIterator<Item = NodeKindIx>>(kinds: I) -> Self {
        let mut set = Self::default();
        for kind in kinds {
            set.insert(kind);
        }
        set
    }
}

/// What is left of one card: thousandths of it, or, when it is cut, which units are taken.
///
/// A wholly free card of a kind with a geometry may still be cut; a card that is cut and empty is
/// `sliced(0)` and holds slices only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct CardState(u16);

impl CardState {
    /// A card that nothing uses.
    pub const FREE: Self = Self(CARD_MILLI);
    /// The same for a card that is given as a whole or not at all.
    pub const WHOLE: Self = Self(CARD_MILLI + 1);
    const SLICED: u16 = 1 << 15;

    /// A card that can be shared, with this much left; at most [`CARD_MILLI`].
    pub const fn left(milli: u16) -> Self {
        if milli > CARD_MILLI {
            return Self::FREE;
        }
        Self(milli)
    }

    /// A card that is cut, with these units taken.
    pub const fn sliced(taken: u16) -> Self {
        Self(taken & !Self::SLICED | Self::SLICED)
    }

    /// Thousandths left for shares; `None` for a card that cannot be shared, or is cut.
    pub const fn milli(self) -> Option<u16> {
        if self.0 <= CARD_MILLI {
            Some(self.0)
        } else {
            None
        }
    }

    /// Whether nothing uses it, so that it can be given as a whole.
    pub const fn is_free(self) -> bool {
        matches!(self, Self::FREE | Self::WHOLE)
    }

    /// Units taken, when the card is cut.
    pub const fn taken(self) -> Option<u16> {
        if self.0 & Self::SLICED == 0 {
            None
        } else {
            Some(self.0 & !Self::SLICED)
        }
    }
}

impl CardState {
    /// Thousandths that nothing uses; of a cut card, the share of its units.
    pub(super) fn idle_milli(self, geometry: Option<&Geometry>) -> i64 {
        let of_units = |taken: u16| {
            let full = geometry.map_or(0, Geometry::full);
            let units = i64::from(full.count_ones()).max(1);
            i64::from(CARD_MILLI) * i64::from((full & !taken).count_ones()) / units
        };
        match self.taken() {
            Some(taken) => of_units(taken),
            None if self.is_free() => CARD_MILLI.into(),
            None => self.milli().unwrap_or(0).into(),
        }
    }

    /// The card after each way to cut one more slice of a profile off it, in the order of the
    /// geometry.
    pub(super) fn cuts(self, geometry: &Geometry, profile: u16) -> impl Iterator<Item = Self> + '_ {
        let taken = match (self.taken(), self) {
            (Some(taken), _) => Some(taken),
            (None, Self::FREE) => Some(0),
            (None, _) => None,
        };
        let fits = move |&(of, units): &(u16, u16)| {
            of == profile && taken.is_some_and(|taken| taken & units == 0)
        };
        let cut = move |(_, units)| Self::sliced(taken.unwrap_or(0) | units);
        geometry.legal().filter(fits).map(cut)
    }
}

/// What is left on a node. Two nodes with equal states are worth the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NodeState {
    /// Its kind.
    pub kind: NodeKindIx,
    /// Processor time left; below zero counts as none.
    pub milli_cpu: i64,
    /// Its cards, ascending; see [`NodeState::new`].
    cards: SmallVec<[CardState; 8]>,
}

impl NodeState {
    /// A state; puts the cards in their order.
    pub fn new(
        kind: NodeKindIx,
        milli_cpu: i64,
        cards: impl IntoIterator<Item = CardState>,
    ) -> Self {
        let mut cards: SmallVec<[CardState; 8]> = cards.into_iter().collect();
        cards.sort_unstable();
        Self {
            kind,
            milli_cpu,
            cards,
        }
    }

    /// The cards, ascending.
    pub fn cards(&self) -> &[CardState] {
        &self.cards
    }

    /// Thousandths of cards that nothing uses.
    pub fn idle_milli(&self, catalogue: &Catalogue) -> i64 {
        let geometry = catalogue.geometry(self.kind);
        self.cards
            .iter()
            .map(|card| card.idle_milli(geometry))
            .sum()
    }

    /// Wholly free cards.
    pub fn free_cards(&self) -> usize {
        self.cards.iter().filter(|card| card.is_free()).count()
    }

    /// Whether work of the type can be put here.
    pub fn fits(&self, work: &WorkType, catalogue: &Catalogue) -> bool {
        if self.milli_cpu < work.milli_cpu || !work.may_use(self.kind) {
            return false;
        }
        match work.demand {
            Demand::None => true,
            Demand::Whole { count } => self.free_cards() >= usize::from(count),
            Demand::Share { milli } => self
                .cards
                .iter()
                .any(|card| card.milli().is_some_and(|left| left >= milli)),
            Demand::Slice { .. } => {
                let mut fits = false;
                self.for_each_after(work, catalogue, |_| fits = true);
                fits
            }
        }
    }

    /// How many of the type fit when nothing else comes; slices of a card that can be cut are counted
    /// as the geometry lists their starts. `u64::MAX` for work that needs nothing. O(cards).
    pub(super) fn most(&self, work: &WorkType, catalogue: &Catalogue) -> u64 {
        if !work.may_use(self.kind) {
            return 0;
        }
        let milli_cpu = self.milli_cpu.max(0);
        let by_cpu = milli_cpu.checked_div(work.milli_cpu.max(0));
        let cards = self.cards.iter();
        let by_cards = match work.demand {
            Demand::None => None,
            Demand::Whole { count } => self.free_cards().checked_div(count.into()),
            Demand::Share { milli } => {
                let shares = cards.map(|card| card.milli().unwrap_or(0).checked_div(milli));
                shares.map(|shares| shares.map(usize::from)).sum()
            }
            Demand::Slice { profile } => {
                let geometry = catalogue.geometry(self.kind);
                let one_more = |card: &CardState| card.cuts(geometry?, profile).next();
                let slices = |&card: &CardState| successors(one_more(&card), one_more).count();
                Some(cards.map(slices).sum())
            }
        };
        let by_cpu = by_cpu.map_or(u64::MAX, i64::unsigned_abs);
        by_cpu.min(by_cards.map_or(u64::MAX, |count| count as u64))
    }

    /// Calls `visit` with each distinct state that this one can become when work of the type is
    /// put here; never, when it does not fit. Whole cards are taken from those that can be nothing
    /// else first. At most one call a card and place.
    pub fn for_each_after(
        &self,
        work: &WorkType,
        catalogue: &Catalogue,
        mut visit: impl FnMut(NodeState),
    ) {
        if self.milli_cpu < work.milli_cpu || !work.may_use(self.kind) {
            return;
        }
        let milli_cpu = self.milli_cpu.saturating_sub(work.milli_cpu);
        let mut with = |index: usize, card: CardState| {
            let mut cards = self.cards.clone();
            if let Some(place) = cards.get_mut(index) {
                *place = card;
            }
            visit(Self::new(self.kind, milli_cpu, cards));
        };
        match work.demand {
            Demand::None => visit(Self {
                milli_cpu,
                ..self.clone()
            }),
            Demand::Whole { count } => {
                let count = usize::from(count);
                if self.free_cards() >= count {
                    let mut to_take = count;
                    let take = |&card: &CardState| {
                        if card.is_free() && to_take > 0 {
                            to_take -= 1;
                            CardState::left(0)
                        } else {
                            card
                        }
                    };
                    // Those that are given as a whole only come last in the order of states.
                    let cards = self.cards.iter().rev().map(take);
                    visit(Self::new(self.kind, milli_cpu, cards));
                }
            }
            Demand::Share { milli } => {
                let mut last = None;
                for (index, &card) in self.cards.iter().enumerate() {
                    let Some(left) = card.milli().and_then(|left| left.checked_sub(milli)) else {
                        continue;
                    };
                    if last != Some(card) {
                        last = Some(card);
                        with(index, CardState::left(left));
                    }
                }
            }
            Demand::Slice { profile } => {
                let Some(geometry) = catalogue.geometry(self.kind) else {
                    return;
                };
                let mut last = None;
                for (index, &card) in self.cards.iter().enumerate() {
                    if last != Some(card) {
                        last = Some(card);
                        card.cuts(geometry, profile)
                            .for_each(|after| with(index, after));
                    }
                }
            }
        }
    }
}
