//! The types of a geometry and the questions it answers.

use super::grid::Grid;
use crate::device::model::Confidence;

/// Media and copy engines: what a card has, or what an instance gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Engines {
    /// Copy engines.
    pub copy: u8,
    /// Video decoders.
    pub decoder: u8,
    /// Video encoders; data-centre cards have none.
    pub encoder: u8,
    /// JPEG decoders.
    pub jpeg: u8,
    /// Optical flow accelerators.
    pub ofa: u8,
}

/// What a profile has besides compute and memory; the `+…` or `-…` at the end of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Attribute {
    /// No suffix.
    Plain,
    /// `-me`: no media engines at all.
    NoMedia,
    /// `+gfx`: graphics as well as compute.
    Graphics,
    /// `+me`: one of each media engine, the optical flow accelerator included.
    Media,
    /// `+me.all`: every media engine of the card.
    AllMedia,
}

impl Attribute {
    /// The end of a profile's name, such as `+me`; empty for a plain one.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::NoMedia => "-me",
            Self::Graphics => "+gfx",
            Self::Media => "+me",
            Self::AllMedia => "+me.all",
        }
    }
}

/// A kind of GPU instance that a card model can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The usual name, such as `1g.10gb+me`.
    pub name: &'static str,
    /// Names that other drivers print for it.
    pub aliases: &'static [&'static str],
    /// The id that `nvidia-smi mig -cgi` takes; with the card model, the identity of the profile.
    pub id: u8,
    /// Compute slices, the number before `g`.
    pub compute_slices: u8,
    /// Units (memory slices; thirds of a slice on the 12-unit grid) that an instance covers.
    pub units: u8,
    /// The units at which an instance may start, ascending.
    pub starts: &'static [u8],
    /// The most instances that an empty card holds.
    pub most: u8,
    /// What the name ends with.
    pub attribute: Attribute,
    /// Memory of an instance in MiB; drivers differ by up to 2 GiB.
    pub memory_mib: u32,
    /// Streaming multiprocessors of an instance; 0 where nobody has published the number.
    pub multiprocessors: u16,
    /// Engines of an instance.
    pub engines: Engines,
    /// How well memory, multiprocessors and engines are known. Units, starts and id are known as
    /// well as the geometry is.
    pub confidence: Confidence,
}

impl Profile {
    /// Its name and its aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        [self.name].into_iter().chain(self.aliases.iter().copied())
    }

    /// Whether this is one of the profiles of NVIDIA's list of combinations: no media or graphics
    /// variant, and not the one with the memory of two slices for one compute slice.
    pub const fn is_base(&self) -> bool {
        matches!(self.attribute, Attribute::Plain) && !self.is_double()
    }

    /// Whether this has one compute slice and the memory of two.
    pub const fn is_double(&self) -> bool {
        self.compute_slices == 1 && self.units == 2
    }
}

/// Index of a profile in [`Geometry::profiles`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProfileIx(pub u8);

/// What one card holds: the occupied units, where instances start, and the media engines in use
/// that can run out. The default is an empty card. 6 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MigState {
    /// Bit `i` is set when unit `i` is occupied.
    pub mask: u16,
    /// Bit `i` is set when an instance starts at unit `i`. What fits does not depend on it, but what
    /// will be free when an instance ends does.
    starts: u16,
    /// Bits 0..4: optical flow accelerators in use. Bits 4..8: decoders in use, where they count.
    engines: u16,
}

impl MigState {
    /// A card with nothing on it.
    pub const EMPTY: Self = Self {
        mask: 0,
        starts: 0,
        engines: 0,
    };

    /// A state in which these units are occupied, nobody knows by what: no media engine is in use.
    pub const fn occupied(mask: u16) -> Self {
        Self {
            mask,
            starts: 0,
            engines: 0,
        }
    }

    /// Whether nothing is on the card.
    pub const fn is_empty(self) -> bool {
        self.mask == 0 && self.engines == 0
    }

    /// Media engines in use, all together.
    #[cfg(feature = "alloc")]
    pub(crate) const fn engines_in_use(self) -> u32 {
        (self.ofa() + self.media()) as u32
    }

    /// Where instances start, as a mask of units; those that nobody told are missing.
    #[cfg(feature = "alloc")]
    pub(super) const fn begins(self) -> u16 {
        self.starts
    }

    /// Optical flow accelerators in use.
    pub(super) const fn ofa(self) -> u16 {
        self.engines & 0xF
    }

    /// Decoders in use, on cards where they can run out.
    pub(super) const fn media(self) -> u16 {
        self.engines >> 4
    }
}

/// The MIG table of a card model.
#[derive(Debug)]
pub struct Geometry {
    /// The card model it was read on, such as `H100 80 GB`.
    pub name: &'static str,
    /// How many units a card has: 4, 8 or 12.
    pub units: u8,
    /// How many compute slices a card has.
    pub compute_slices: u8,
    /// The profiles, cheapest first: by units, compute slices, then attribute.
    pub profiles: &'static [Profile],
    /// Engines of the whole card.
    pub engines: Engines,
    /// How well placements and ids are known.
    pub confidence: Confidence,
    /// The look-up tables, shared by all models with the same placements.
    pub(crate) grid: &'static Grid,
}

impl PartialEq for Geometry {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.profiles == other.profiles
    }
}

impl Eq for Geometry {}

impl Geometry {
    /// The profile with this name or alias, written exactly as a driver prints it.
    ///
    /// O(profiles). For a resource name's suffix see [`names`](crate::device::names).
    pub fn profile(&self, name: &str) -> Option<ProfileIx> {
        let is_named = |profile: &Profile| profile.names().any(|known| known == name);
        let found = self.profiles.iter().position(is_named)?;
        Some(ProfileIx(found as u8))
    }

    /// The profile with this id.
    pub fn profile_by_id(&self, id: u8) -> Option<ProfileIx> {
        let found = self.profiles.iter().position(|profile| profile.id == id)?;
        Some(ProfileIx(found as u8))
    }

    /// The profile at an index.
    #[inline]
    pub fn get(&self, ix: ProfileIx) -> Option<&'static Profile> {
        self.profiles.get(usize::from(ix.0))
    }

    /// Indices of all profiles, cheapest first.
    pub fn indices(&self) -> impl Iterator<Item = ProfileIx> + use<> {
        (0..self.profiles.len() as u8).map(ProfileIx)
    }

    /// The units that a placement covers, as a mask; 0 if there is no such placement.
    #[inline]
    pub fn units_of(&self, ix: ProfileIx, start: u8) -> u16 {
        if !has(self.starts(MigState::EMPTY, ix), start) {
            return 0;
        }
        self.grid.units(ix) << start
    }

    /// Where an instance of a profile may start now: bit `s` is set when it may start at unit `s`.
    ///
    /// O(1): one look-up.
    #[inline]
    pub fn starts(&self, state: MigState, ix: ProfileIx) -> u16 {
        self.grid.starts(state, ix)
    }

    /// The state with one more instance; `None` if the placement is not legal or something of it is
    /// taken. O(1).
    #[inline]
    pub fn put(&self, state: MigState, ix: ProfileIx, start: u8) -> Option<MigState> {
        if !has(self.starts(state, ix), start) {
            return None;
        }
        Some(MigState {
            mask: state.mask | (self.grid.units(ix) << start),
            starts: state.starts | 1 << start,
            engines: state.engines + self.grid.engine_use(ix),
        })
    }

    /// The state with one instance less, the inverse of [`put`](Self::put); `None` if that instance
    /// cannot be in the state. O(1).
    #[inline]
    pub fn take_out(&self, state: MigState, ix: ProfileIx, start: u8) -> Option<MigState> {
        let units = self.units_of(ix, start);
        if units == 0 || state.mask & units != units {
            return None;
        }
        let used = self.grid.engine_use(ix);
        if state.ofa() < used & 0xF || state.media() < used >> 4 {
            return None;
        }
        Some(MigState {
            mask: state.mask & !units,
            starts: state.starts & !(1 << start),
            engines: state.engines - used,
        })
    }

    /// How many instances of a profile fit at once now; exact. O(1): one look-up.
    #[inline]
    pub fn most(&self, state: MigState, ix: ProfileIx) -> u8 {
        self.grid.most(state, ix)
    }

    /// How many different multisets of [base](Profile::is_base) profiles can still be added, the
    /// empty one included: 38 for an empty 8-unit card, 1 for a full one. O(1): one look-up.
    #[inline]
    pub fn flexibility(&self, state: MigState) -> u16 {
        self.grid.flexibility(state)
    }

    /// The same over all profiles, the variants and the double-memory one included.
    #[inline]
    pub fn flexibility_of_all(&self, state: MigState) -> u16 {
        self.grid.flexibility_of_all(state)
    }

    /// Whether everything that can be added to `other` can be added to `state` too. O(1).
    pub fn covers(&self, state: MigState, other: MigState) -> bool {
        let (mine, others) = (self.reach(state), self.reach(other));
        mine & others == others
    }

    /// Which multisets of profiles can still be added, as a word that equals another's if they can be
    /// added there too. O(1): one look-up.
    pub(crate) fn reach(&self, state: MigState) -> u128 {
        self.grid.reach(state)
    }

    /// Every multiset of profiles that can still be added, the empty one included, as the number of
    /// instances of each profile. At most 128; each is a few look-ups.
    #[cfg(feature = "alloc")]
    pub(crate) fn multisets(&self, state: MigState) -> impl Iterator<Item = [u8; 16]> + use<> {
        let (reach, grid) = (self.reach(state), self.grid);
        let numbers = (0..u128::BITS).filter(move |number| reach >> number & 1 == 1);
        numbers.map(move |number| {
            let code = grid.multiset(number);
            core::array::from_fn(|profile| (code >> (4 * profile) & 0xF) as u8)
        })
    }

    /// The start that leaves the most open: highest [`flexibility`](Self::flexibility), then
    /// highest [`flexibility_of_all`](Self::flexibility_of_all), then the lowest unit. `None` if no
    /// instance fits. O(1): one look-up.
    ///
    /// On an empty 8-unit card this gives 3g at 4, 2g at 4, 1g and the double-memory 1g at 6, which
    /// is also what the driver chooses when it is asked for one instance at a time. A fleet that
    /// runs many double-memory instances would keep 6 free of 1g; price starts by the demand then.
    #[inline]
    pub fn best_start(&self, state: MigState, ix: ProfileIx) -> Option<u8> {
        self.grid.best_start(state, ix)
    }

    /// Profiles with at least this much memory and this many compute slices, cheapest first: fewest
    /// units, then fewest compute slices, then plain before `-me`, `+gfx`, `+me` and `+me.all`.
    pub fn cheapest(
        &self,
        memory_mib: u32,
        compute_slices: u8,
    ) -> impl Iterator<Item = ProfileIx> + use<> {
        let enough = move |profile: &Profile| {
            profile.memory_mib >= memory_mib && profile.compute_slices >= compute_slices
        };
        let profiles = self.profiles;
        self.indices()
            .filter(move |ix| profiles.get(usize::from(ix.0)).is_some_and(enough))
    }

    /// Every legal placement, by profile, then by start.
    pub fn placements(&self) -> impl Iterator<Item = (ProfileIx, u8)> + use<> {
        let profiles = self.profiles.iter().enumerate();
        profiles.flat_map(|(ix, profile)| {
            let starts = profile.starts.iter();
            starts.map(move |&start| (ProfileIx(ix as u8), start))
        })
    }
}

/// Whether a mask of starts holds one.
fn has(starts: u16, start: u8) -> bool {
    starts.checked_shr(u32::from(start)).unwrap_or(0) & 1 != 0
}
