//! The look-up tables: one set for each of the three grids of units, made at compile time from the
//! grid's slots. Models with the same placements share them.
//!
//! A row is a state: occupied cells, decoders in use, optical flow accelerators in use, from the
//! low bits up. A cell is a unit, or three of them on the 12-unit grid, where all placements start
//! and end at multiples of three. Adding an instance sets bits and raises counts, so it only ever
//! leads to a higher row, and the tables are filled from the last row to the first.

use super::geometry::{Attribute, MigState, ProfileIx};

/// What a profile is on a grid: all that decides where its instances fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) id: u8,
    pub(crate) compute_slices: u8,
    pub(crate) units: u8,
    pub(crate) starts: &'static [u8],
    pub(crate) most: u8,
    pub(crate) attribute: Attribute,
    /// Decoders that an instance takes, if decoders can run out on this grid.
    media: u8,
    /// Optical flow accelerators that an instance takes.
    ofa: u8,
    /// Whether [`Geometry::flexibility`](super::Geometry::flexibility) counts it.
    base: bool,
}

/// The slots of a grid and their look-up tables.
#[derive(Debug)]
pub struct Grid {
    pub(crate) slots: &'static [Slot],
    form: Form,
    /// By profile and row: the legal starts, as a mask of units.
    starts: &'static [u16],
    /// By profile and row: the best start, or [`NO_START`].
    best: &'static [u8],
    /// By profile and row: how many fit at once.
    most: &'static [u8],
    /// By row: multisets of base profiles that can be added.
    flexibility: &'static [u16],
    /// By row: multisets of all profiles that can be added.
    flexibility_of_all: &'static [u16],
    /// By row: which multisets these are, by numbers that mean the same in every row.
    reach: &'static [u128],
    /// By number: the multiset, four bits for each profile's count.
    #[cfg(feature = "alloc")]
    multisets: &'static [u64],
}

const NO_START: u8 = u8::MAX;

impl Grid {
    #[inline]
    fn cell(&self, state: MigState, ix: ProfileIx) -> usize {
        (usize::from(ix.0) << self.form.row_bits()) | self.form.row(state)
    }

    #[inline]
    pub(super) fn starts(&self, state: MigState, ix: ProfileIx) -> u16 {
        let found = self.starts.get(self.cell(state, ix));
        found.copied().unwrap_or(0)
    }

    #[inline]
    pub(super) fn best_start(&self, state: MigState, ix: ProfileIx) -> Option<u8> {
        let found = self.best.get(self.cell(state, ix)).copied();
        found.filter(|start| *start != NO_START)
    }

    #[inline]
    pub(super) fn most(&self, state: MigState, ix: ProfileIx) -> u8 {
        let found = self.most.get(self.cell(state, ix));
        found.copied().unwrap_or(0)
    }

    #[inline]
    pub(super) fn flexibility(&self, state: MigState) -> u16 {
        let found = self.flexibility.get(self.form.row(state));
        found.copied().unwrap_or(0)
    }

    #[inline]
    pub(super) fn flexibility_of_all(&self, state: MigState) -> u16 {
        let found = self.flexibility_of_all.get(self.form.row(state));
        found.copied().unwrap_or(0)
    }

    /// The units of an instance that starts at 0.
    #[inline]
    pub(super) fn units(&self, ix: ProfileIx) -> u16 {
        let slot = self.slots.get(usize::from(ix.0));
        slot.map_or(0, |slot| ((1_u32 << slot.units) - 1) as u16)
    }

    /// Which multisets of profiles can still be added.
    pub(super) fn reach(&self, state: MigState) -> u128 {
        let found = self.reach.get(self.form.row(state));
        found.copied().unwrap_or(0)
    }

    /// The multiset with a number, four bits for each profile's count.
    #[cfg(feature = "alloc")]
    pub(super) fn multiset(&self, number: u32) -> u64 {
        let found = self.multisets.get(number as usize);
        found.copied().unwrap_or(0)
    }

    /// What an instance adds to [`MigState`]'s engines.
    #[inline]
    pub(super) fn engine_use(&self, ix: ProfileIx) -> u16 {
        match self.slots.get(usize::from(ix.0)) {
            Some(slot) => u16::from(slot.ofa) | (u16::from(slot.media) << 4),
            None => 0,
        }
    }
}

/// How a state becomes a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// 8 cells of one unit.
    Eighths,
    /// 4 cells of one unit.
    Fourths,
    /// 4 cells of three units; decoders count.
    Twelfths,
}

impl Form {
    const fn cells(self) -> u32 {
        match self {
            Self::Eighths => 8,
            Self::Fourths | Self::Twelfths => 4,
        }
    }

    const fn units_in_cell(self) -> u8 {
        match self {
            Self::Eighths | Self::Fourths => 1,
            Self::Twelfths => 3,
        }
    }

    const fn media_bits(self) -> u32 {
        match self {
            Self::Eighths | Self::Fourths => 0,
            Self::Twelfths => 3,
        }
    }

    const fn row_bits(self) -> u32 {
        self.cells() + self.media_bits() + 1
    }

    /// The row of a state, always below `1 << row_bits`.
    #[inline]
    const fn row(self, state: MigState) -> usize {
        let cells = match self {
            Self::Eighths => state.mask & 0xFF,
            Self::Fourths => state.mask & 0xF,
            Self::Twelfths => {
                let any = state.mask | (state.mask >> 1) | (state.mask >> 2);
                any & 1 | (any >> 2) & 2 | (any >> 4) & 4 | (any >> 6) & 8
            }
        };
        let media = state.media() & ((1 << self.media_bits()) - 1);
        let ofa = state.ofa() & 1;
        (cells | (media << self.cells()) | (ofa << (self.cells() + self.media_bits()))) as usize
    }

    /// The cells that an instance covers.
    const fn covered(self, slot: &Slot, start: u8) -> usize {
        let width = slot.units / self.units_in_cell();
        ((1 << width) - 1) << (start / self.units_in_cell())
    }

    /// The row with one more instance, if it fits.
    const fn after(self, row: usize, slot: &Slot, start: u8) -> Option<usize> {
        let covered = self.covered(slot, start);
        let media_at = self.cells();
        let ofa_at = media_at + self.media_bits();
        let media = (row >> media_at) & ((1 << self.media_bits()) - 1);
        let ofa = row >> ofa_at;
        if row & covered != 0
            || (slot.media != 0 && media + slot.media as usize > MEDIA_BUDGET)
            || ofa + slot.ofa as usize > OFA_BUDGET
        {
            return None;
        }
        let engines = ((slot.media as usize) << media_at) + ((slot.ofa as usize) << ofa_at);
        Some((row | covered) + engines)
    }
}

/// Decoders (and as many encoders and JPEG engines) of an RTX PRO 6000.
const MEDIA_BUDGET: usize = 4;
/// Optical flow accelerators of every card with MIG.
const OFA_BUDGET: usize = 1;
/// No grid has more different multisets of profiles; one bit for each.
const MULTISETS: usize = 128;
const MOST_SLOTS: usize = 11;

struct Tables<const CELLS: usize, const ROWS: usize> {
    starts: [u16; CELLS],
    best: [u8; CELLS],
    most: [u8; CELLS],
    flexibility: [u16; ROWS],
    flexibility_of_all: [u16; ROWS],
    reach: [u128; ROWS],
    multisets: [u64; MULTISETS],
}

/// Multisets of slots, numbered as they are met. The empty one is number 0.
struct Multisets {
    /// Four bits for each slot's count.
    codes: [u64; MULTISETS],
    known: usize,
    /// By slot and number: the number with one more of the slot; 0 while unknown.
    next: [[u8; MULTISETS]; MOST_SLOTS],
    /// The numbers of those that hold nothing but base slots.
    base: u128,
}

impl Multisets {
    const fn new() -> Self {
        Self {
            codes: [0; MULTISETS],
            known: 1,
            next: [[0; MULTISETS]; MOST_SLOTS],
            base: 1,
        }
    }

    /// The number of multiset `from` with one more of a slot.
    const fn with(&mut self, from: usize, slot: usize, is_base: bool) -> usize {
        if self.next[slot][from] != 0 {
            return self.next[slot][from] as usize;
        }
        let code = self.codes[from] + (1 << (4 * slot));
        let mut number = 0;
        while number < self.known && self.codes[number] != code {
            number += 1;
        }
        if number == self.known {
            self.codes[number] = code;
            self.known += 1;
            if is_base && self.base & (1 << from) != 0 {
                self.base |= 1 << number;
            }
        }
        self.next[slot][from] = number as u8;
        number
    }
}

/// Fills the tables. `reach` of a row is the set of multisets that can be added to a row: the empty
/// one, and for each placement that fits, what can be added to the row behind it with this
/// placement's profile added.
const fn build<const CELLS: usize, const ROWS: usize>(
    slots: &[Slot],
    form: Form,
) -> Tables<CELLS, ROWS> {
    let mut tables = Tables {
        starts: [0; CELLS],
        best: [NO_START; CELLS],
        most: [0; CELLS],
        flexibility: [0; ROWS],
        flexibility_of_all: [0; ROWS],
        reach: [0; ROWS],
        multisets: [0; MULTISETS],
    };
    let mut multisets = Multisets::new();
    let mut row = ROWS;
    while row > 0 {
        row -= 1;
        let mut set = 1_u128;
        let mut ix = 0;
        while ix < slots.len() {
            let slot = &slots[ix];
            let cell = (ix << form.row_bits()) | row;
            let mut best = (0, 0);
            let mut filled = Some(row);
            let mut at = 0;
            while at < slot.starts.len() {
                let start = slot.starts[at];
                at += 1;
                let Some(after) = form.after(row, slot, start) else {
                    continue;
                };
                tables.starts[cell] |= 1 << start;
                let worth = (tables.flexibility[after], tables.flexibility_of_all[after]);
                if worth.0 > best.0 || worth.0 == best.0 && worth.1 > best.1 {
                    best = worth;
                    tables.best[cell] = start;
                }
                // All placements of one profile are disjoint, so as many fit as engines allow.
                if let Some(so_far) = filled {
                    filled = form.after(so_far, slot, start);
                    if filled.is_some() {
                        tables.most[cell] += 1;
                    }
                }
                let mut rest = tables.reach[after];
                while rest != 0 {
                    let from = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    set |= 1 << multisets.with(from, ix, slot.base);
                }
            }
            ix += 1;
        }
        tables.reach[row] = set;
        tables.flexibility[row] = (set & multisets.base).count_ones() as u16;
        tables.flexibility_of_all[row] = set.count_ones() as u16;
    }
    tables.multisets = multisets.codes;
    tables
}

const fn slot(id: u8, compute_slices: u8, units: u8, starts: &'static [u8]) -> Slot {
    Slot {
        id,
        compute_slices,
        units,
        starts,
        most: starts.len() as u8,
        attribute: Attribute::Plain,
        media: 0,
        ofa: 0,
        base: true,
    }
}

impl Slot {
    /// Takes the card's only optical flow accelerator.
    const fn with_ofa(self) -> Self {
        Self {
            ofa: 1,
            most: 1,
            ..self
        }
    }

    const fn with_media(self, media: u8) -> Self {
        Self { media, ..self }
    }

    const fn variant(self, attribute: Attribute) -> Self {
        Self {
            attribute,
            base: false,
            ..self
        }
    }

    const fn double_memory(self) -> Self {
        Self {
            base: false,
            ..self
        }
    }
}

const FIRST_SEVEN: &[u8] = &[0, 1, 2, 3, 4, 5, 6];

/// A100, H100, H200, GH200, B200, B300, GB200, GB300 (hardware notes 1.2 and 1.3). Memory slice 7
/// has no compute slice of its own.
const EIGHTHS_SLOTS: [Slot; 7] = [
    slot(19, 1, 1, FIRST_SEVEN),
    slot(20, 1, 1, FIRST_SEVEN)
        .variant(Attribute::Media)
        .with_ofa(),
    slot(15, 1, 2, &[0, 2, 4, 6]).double_memory(),
    slot(14, 2, 2, &[0, 2, 4]),
    slot(9, 3, 4, &[0, 4]),
    slot(5, 4, 4, &[0]),
    slot(0, 7, 8, &[0]).with_ofa(),
];

static EIGHTHS_TABLES: Tables<{ 7 << 9 }, 512> = build(&EIGHTHS_SLOTS, Form::Eighths);

/// The grid of all data-centre cards with 8 memory slices and 7 compute slices.
pub(crate) static EIGHTHS: Grid = Grid {
    slots: &EIGHTHS_SLOTS,
    form: Form::Eighths,
    starts: &EIGHTHS_TABLES.starts,
    best: &EIGHTHS_TABLES.best,
    most: &EIGHTHS_TABLES.most,
    flexibility: &EIGHTHS_TABLES.flexibility,
    flexibility_of_all: &EIGHTHS_TABLES.flexibility_of_all,
    reach: &EIGHTHS_TABLES.reach,
    #[cfg(feature = "alloc")]
    multisets: &EIGHTHS_TABLES.multisets,
};

/// A30.
const FOURTHS_SLOTS: [Slot; 5] = [
    slot(14, 1, 1, &[0, 1, 2, 3]),
    slot(21, 1, 1, &[0, 1, 2, 3])
        .variant(Attribute::Media)
        .with_ofa(),
    slot(5, 2, 2, &[0, 2]),
    slot(6, 2, 2, &[0, 2]).variant(Attribute::Media).with_ofa(),
    slot(0, 4, 4, &[0]).with_ofa(),
];

static FOURTHS_TABLES: Tables<{ 5 << 5 }, 32> = build(&FOURTHS_SLOTS, Form::Fourths);

/// The grid of the A30.
pub(crate) static FOURTHS: Grid = Grid {
    slots: &FOURTHS_SLOTS,
    form: Form::Fourths,
    starts: &FOURTHS_TABLES.starts,
    best: &FOURTHS_TABLES.best,
    most: &FOURTHS_TABLES.most,
    flexibility: &FOURTHS_TABLES.flexibility,
    flexibility_of_all: &FOURTHS_TABLES.flexibility_of_all,
    reach: &FOURTHS_TABLES.reach,
    #[cfg(feature = "alloc")]
    multisets: &FOURTHS_TABLES.multisets,
};

/// RTX PRO 6000 Blackwell.
const TWELFTHS_SLOTS: [Slot; 11] = [
    slot(14, 1, 3, &[0, 3, 6, 9]).with_media(1),
    slot(67, 1, 3, &[0, 3, 6, 9]).variant(Attribute::NoMedia),
    slot(47, 1, 3, &[0, 3, 6, 9])
        .variant(Attribute::Graphics)
        .with_media(1),
    slot(21, 1, 3, &[0, 3, 6, 9])
        .variant(Attribute::Media)
        .with_media(1)
        .with_ofa(),
    slot(65, 1, 3, &[0, 3, 6, 9])
        .variant(Attribute::AllMedia)
        .with_media(4)
        .with_ofa(),
    slot(5, 2, 6, &[0, 6]).with_media(2),
    slot(66, 2, 6, &[0, 6]).variant(Attribute::NoMedia),
    slot(35, 2, 6, &[0, 6])
        .variant(Attribute::Graphics)
        .with_media(2),
    slot(64, 2, 6, &[0, 6])
        .variant(Attribute::AllMedia)
        .with_media(4)
        .with_ofa(),
    slot(0, 4, 12, &[0]).with_media(4).with_ofa(),
    slot(32, 4, 12, &[0])
        .variant(Attribute::Graphics)
        .with_media(4)
        .with_ofa(),
];

static TWELFTHS_TABLES: Tables<{ 11 << 8 }, 256> = build(&TWELFTHS_SLOTS, Form::Twelfths);

/// The grid of the RTX PRO 6000 Blackwell.
pub(crate) static TWELFTHS: Grid = Grid {
    slots: &TWELFTHS_SLOTS,
    form: Form::Twelfths,
    starts: &TWELFTHS_TABLES.starts,
    best: &TWELFTHS_TABLES.best,
    most: &TWELFTHS_TABLES.most,
    flexibility: &TWELFTHS_TABLES.flexibility,
    flexibility_of_all: &TWELFTHS_TABLES.flexibility_of_all,
    reach: &TWELFTHS_TABLES.reach,
    #[cfg(feature = "alloc")]
    multisets: &TWELFTHS_TABLES.multisets,
};
