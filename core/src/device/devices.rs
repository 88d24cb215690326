//! The exact devices of one node that a member holds: whole cards, or parts of cards.
//!
//! Small and copied freely: plans, holds, the ledger and the undo journal all carry it. How much a
//! share takes of its card is not in here; that follows from the request and the card.

use crate::bits::CardSet;

/// A part of a card: an instance of a MIG profile at a start, a share, or a replica of a time-sliced
/// card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Slice {
    /// The card's number; [`Slice::NO_CARD`] when the node does not tell which.
    pub card: u8,
    /// The vendor's id of the profile (`nvidia-smi mig -lgip`), [`Slice::SHARE`] or
    /// [`Slice::REPLICA`]. Without a card of a profile that has no id: its position in the node's list of
    /// such slices, behind [`Slice::UNNUMBERED`].
    pub profile: u8,
    /// The first memory slice that it takes, in units of the card's geometry; 0 for others.
    pub start: u8,
}

impl Slice {
    /// No card is known: a device plugin told only how many there are.
    pub const NO_CARD: u8 = u8::MAX;
    /// Greater than every vendor's id of a profile.
    pub const UNNUMBERED: u8 = 128;
    /// Not a MIG profile but one replica of a card.
    pub const REPLICA: u8 = u8::MAX;
    /// Not a MIG profile but a share of a card's memory and processor time.
    pub const SHARE: u8 = u8::MAX - 1;
}

/// Devices of one node that one member holds. Empty when it needs none, or when they have no
/// identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "Form", try_from = "Form"))]
pub struct Devices {
    /// The cards that it has, whole or in part.
    pub cards: CardSet,
    slices: [Option<Slice>; Devices::MOST_SLICES],
}

impl Devices {
    /// No member holds more slices, shares or replicas than this.
    pub const MOST_SLICES: usize = 8;
    /// Nothing.
    pub const NONE: Self = Self {
        cards: CardSet::EMPTY,
        slices: [None; Self::MOST_SLICES],
    };

    /// Whole cards.
    pub const fn of_cards(cards: CardSet) -> Self {
        Self {
            cards,
            ..Self::NONE
        }
    }

    /// The slices, shares and replicas, in the order of the request. At most [`Devices::MOST_SLICES`].
    pub fn slices(&self) -> impl Iterator<Item = Slice> + Clone + '_ {
        self.slices.iter().map_while(|&slice| slice)
    }

    /// Adds a slice and its card; `false`, and nothing is changed, when there is no place for it.
    pub fn push(&mut self, slice: Slice) -> bool {
        let Some(place) = self.slices.iter_mut().find(|place| place.is_none()) else {
            return false;
        };
        *place = Some(slice);
        if u32::from(slice.card) < CardSet::CAPACITY {
            self.cards = self.cards.union(CardSet(1 << slice.card));
        }
        true
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }
}

/// How it is written: slices only when there are some.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
struct Form {
    #[serde(default)]
    cards: CardSet,
    #[serde(default, skip_serializing_if = "alloc::vec::Vec::is_empty")]
    slices: alloc::vec::Vec<Slice>,
}

#[cfg(feature = "serde")]
impl From<Devices> for Form {
    fn from(devices: Devices) -> Self {
        Self {
            cards: devices.cards,
            slices: devices.slices().collect(),
        }
    }
}

/// More slices than a member may hold.
#[cfg(feature = "serde")]
#[derive(Debug, thiserror::Error)]
#[error("slices: {0} of them; accepted: at most {most}", most = Devices::MOST_SLICES)]
struct TooManySlices(usize);

#[cfg(feature = "serde")]
impl TryFrom<Form> for Devices {
    type Error = TooManySlices;

    fn try_from(form: Form) -> Result<Self, TooManySlices> {
        let mut devices = Self::of_cards(form.cards);
        for &slice in &form.slices {
            if !devices.push(slice) {
                return Err(TooManySlices(form.slices.len()));
            }
        }
        Ok(devices)
    }
}
