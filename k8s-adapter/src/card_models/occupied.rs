//! The words of `--occupied`: instances such as `1g.10gb@6`, or a mask of units such as `0x4f`.

use gangline::device::{
    mig::{Geometry, MigState, ProfileIx},
    names::SliceName,
};

/// What is on a card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occupied {
    /// Instances in order of their start.
    pub placements: Vec<(ProfileIx, u8)>,
    /// Their units and engines, and the units that a mask names.
    pub state: MigState,
}

/// What is wrong with a word.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OccupiedError {
    /// It is neither an instance nor a number.
    #[error(
        "not understood; accepted: PROFILE@START such as {example}, or a mask of units such as 0x3 or \
         0b11"
    )]
    Syntax {
        /// A placement of this card.
        example: String,
    },
    /// The card has no such profile.
    #[error("{geometry} has no profile {profile}; accepted: {}", .profiles.join(", "))]
    Profile {
        /// The card's table.
        geometry: &'static str,
        /// What was named.
        profile: String,
        /// What there is.
        profiles: Vec<&'static str>,
    },
    /// Instances of the profile do not start there.
    #[error("{profile} does not start at {start}; accepted: {starts}")]
    Start {
        /// The profile.
        profile: &'static str,
        /// What was named.
        start: String,
        /// Where it may start.
        starts: String,
    },
    /// Another word has the same units.
    #[error("{units} taken by what stands before it; accepted: instances side by side")]
    Overlap {
        /// Those units, as the beginning of a sentence.
        units: String,
    },
    /// There is room, but no engine is left.
    #[error(
        "its units are free, but what stands before it has the card's media engines; accepted: at \
         most what one card has"
    )]
    Engines,
    /// A mask of more units than there are.
    #[error("more units than the card has; accepted: at most {most:#x}")]
    Mask {
        /// All units.
        most: u16,
    },
}

impl Occupied {
    /// Puts one word after the other on an empty card. The error comes with the word.
    pub(super) fn read(
        geometry: &'static Geometry,
        words: &[String],
    ) -> Result<Self, (String, OccupiedError)> {
        let mut occupied = Self::default();
        for word in words {
            let put = match word.split_once('@') {
                Some((profile, start)) => occupied.put_instance(geometry, profile, start),
                None => occupied.put_mask(geometry, word),
            };
            put.map_err(|error| (word.clone(), error))?;
        }
        occupied.placements.sort_by_key(|(_, start)| *start);
        Ok(occupied)
    }

    fn put_instance(
        &mut self,
        geometry: &'static Geometry,
        name: &str,
        start_word: &str,
    ) -> Result<(), OccupiedError> {
        let of_resource = || SliceName::new(name)?.profile(geometry);
        let ix = geometry.profile(name).or_else(of_resource);
        let Some((ix, profile)) = ix.and_then(|ix| Some((ix, geometry.get(ix)?))) else {
            return Err(OccupiedError::Profile {
                geometry: geometry.name,
                profile: name.to_owned(),
                profiles: geometry
                    .profiles
                    .iter()
                    .map(|profile| profile.name)
                    .collect(),
            });
        };
        let start = start_word.parse().ok();
        let Some(start) = start.filter(|start| profile.starts.contains(start)) else {
            return Err(OccupiedError::Start {
                profile: profile.name,
                start: start_word.to_owned(),
                starts: numbers(profile.starts.iter().copied()),
            });
        };
        let taken = self.state.mask & geometry.units_of(ix, start);
        if taken != 0 {
            return Err(overlap(taken));
        }
        self.state = geometry
            .put(self.state, ix, start)
            .ok_or(OccupiedError::Engines)?;
        self.placements.push((ix, start));
        Ok(())
    }

    fn put_mask(&mut self, geometry: &'static Geometry, word: &str) -> Result<(), OccupiedError> {
        let number = match (word.strip_prefix("0x"), word.strip_prefix("0b")) {
            (Some(digits), _) => u64::from_str_radix(digits, 16),
            (_, Some(digits)) => u64::from_str_radix(digits, 2),
            // `67` may be meant as a decimal number or as a mask without its 0x.
            _ => return Err(syntax(geometry)),
        };
        let Ok(mask) = number else {
            return Err(syntax(geometry));
        };
        let most = ((1_u32 << geometry.units) - 1) as u16;
        let mask = u16::try_from(mask).ok().filter(|mask| mask & !most == 0);
        let mask = mask.ok_or(OccupiedError::Mask { most })?;
        if self.state.mask & mask != 0 {
            return Err(overlap(self.state.mask & mask));
        }
        self.state.mask |= mask;
        Ok(())
    }
}

/// Says what a word may be, with a placement of this card.
fn syntax(geometry: &'static Geometry) -> OccupiedError {
    let example = geometry.placements().last();
    let profile = example.and_then(|(ix, start)| Some((geometry.get(ix)?.name, start)));
    let (name, start) = profile.unwrap_or_default();
    let example = format!("{name}@{start}");
    OccupiedError::Syntax { example }
}

fn overlap(units: u16) -> OccupiedError {
    let taken = numbers((0..16).filter(|unit| units & (1 << unit) != 0));
    let units = if units.is_power_of_two() {
        format!("unit {taken} is")
    } else {
        format!("units {taken} are")
    };
    OccupiedError::Overlap { units }
}

pub(super) fn numbers(numbers: impl Iterator<Item = u8>) -> String {
    let words: Vec<_> = numbers.map(|number| number.to_string()).collect();
    words.join(", ")
}
