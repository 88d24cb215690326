//! What `gangline cards` says: card models, their MIG tables, and what fits beside what is there.
//!
//! The name of a model and the words of `--occupied` enter, a report leaves; [`text`] shows it to
//! people, `serde` writes it for programs (docs/output.md). The facts and the rules are the core's:
//! nothing here knows a profile or decides a start.

use gangline::device::{
    mig::{Engines, Geometry, MigState, Profile, ProfileIx},
    model::{self, CardModel},
};
use serde::{Serialize, Serializer};

use crate::output::SCHEMA_VERSION;

mod occupied;
#[cfg(test)]
mod tests;
pub mod text;

pub use occupied::{Occupied, OccupiedError};

/// More similar names than this help nobody.
const NEAR_NAMES: usize = 5;

/// Why there is no report about a card.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CardsError {
    /// No model has the name.
    #[error("there is no card model {name:?}{}; gangline cards lists all", did_you_mean(.near))]
    Unknown {
        /// What was asked for.
        name: String,
        /// Models with similar names.
        near: Vec<&'static str>,
    },
    /// A product that several models have.
    #[error("{name} may be {}; name one of them", .models.join(" or "))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// The models.
        models: Vec<&'static str>,
    },
    /// There is no table to put instances in.
    #[error("--occupied: {model} has no MIG table; accepted: {}", .with_mig.join(", "))]
    NoMig {
        /// The model.
        model: &'static str,
        /// Models with one.
        with_mig: Vec<&'static str>,
    },
    /// The instances of `--occupied` cannot exist.
    #[error("--occupied {word}: {error}")]
    Occupied {
        /// The word that is wrong.
        word: String,
        /// What is wrong with it.
        error: OccupiedError,
    },
}

fn did_you_mean(near: &[&str]) -> String {
    match near {
        [] => String::new(),
        [one] => format!("; did you mean {one}?"),
        several => format!("; did you mean one of {}?", several.join(", ")),
    }
}

/// All card models: what `gangline cards` prints.
#[derive(Debug, Serialize)]
pub struct ModelList {
    /// See [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// By family, oldest first.
    pub models: Vec<ModelReport>,
}

/// One model and, if it has one, its MIG table: what `gangline cards MODEL` prints.
#[derive(Debug, Serialize)]
pub struct CardReport {
    /// See [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The model.
    pub model: ModelReport,
    /// Its MIG table.
    pub mig: Option<MigReport>,
}

/// What is known about a model.
#[derive(Debug, Serialize)]
pub struct ModelReport {
    /// Its name.
    pub name: &'static str,
    /// What nodes call it.
    pub products: &'static [&'static str],
    /// Its family.
    pub family: &'static str,
    /// Major and minor number, with a dot between.
    pub compute_capability: Option<String>,
    /// Memory of the card.
    pub memory_mib: u32,
    /// Multiprocessors, or compute units.
    pub multiprocessors: Option<u16>,
    /// Links that need no bridge.
    pub nvlinks: u8,
    /// Ids of vendor 10de, four hexadecimal digits each.
    pub pci_device_ids: Vec<String>,
    /// Names of its MIG profiles, cheapest first.
    pub mig_profiles: Vec<&'static str>,
    /// How well memory and multiprocessors are known.
    pub confidence: &'static str,
    /// What to know besides.
    pub notes: &'static str,
}

/// A MIG table and a card with some instances.
#[derive(Debug, Serialize)]
pub struct MigReport {
    /// The geometry that the text draws.
    #[serde(skip)]
    geometry: &'static Geometry,
    /// Units of the card.
    pub units: u8,
    /// Compute slices of the card.
    pub compute_slices: u8,
    /// How well placements and ids are known.
    pub confidence: &'static str,
    /// The profiles, cheapest first.
    pub profiles: Vec<ProfileReport>,
    /// Layouts of base profiles to which none can be added.
    pub full_layouts: Vec<Vec<PlacementReport>>,
    /// What is on the card: instances, in order of their start.
    pub occupied: Vec<PlacementReport>,
    /// What is on the card: its units.
    pub mask: Mask,
    /// How many different multisets of base profiles can still be added, the empty one included.
    pub flexibility: u16,
    /// The same of all profiles.
    pub flexibility_of_all: u16,
}

/// A profile, and where it fits on the card.
#[derive(Debug, Serialize)]
pub struct ProfileReport {
    /// Its name.
    pub name: &'static str,
    /// What other drivers call it.
    pub aliases: &'static [&'static str],
    /// What `nvidia-smi mig -cgi` takes.
    pub id: u8,
    /// Compute slices of an instance.
    pub compute_slices: u8,
    /// Units of an instance.
    pub units: u8,
    /// Memory of an instance.
    pub memory_mib: u32,
    /// Multiprocessors of an instance; `null` where they are not published.
    pub multiprocessors: Option<u16>,
    /// Engines of an instance.
    pub engines: EnginesReport,
    /// How well memory, multiprocessors and engines are known.
    pub confidence: &'static str,
    /// Units at which instances start.
    pub starts: &'static [u8],
    /// How many an empty card holds.
    pub most: u8,
    /// How many more the card holds now.
    pub fits: u8,
    /// Where the next one may start now.
    pub open_starts: Vec<u8>,
    /// Where it leaves the most open.
    pub best_start: Option<u8>,
    /// The card's flexibility with one at the best start.
    pub flexibility_after: Option<u16>,
}

/// An instance.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct PlacementReport {
    /// Its profile.
    pub profile: &'static str,
    /// Its first unit.
    pub start: u8,
    #[serde(skip)]
    ix: ProfileIx,
}

/// Occupied units, one bit each; written as a hexadecimal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mask(pub u16);

impl Serialize for Mask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#x}", self.0))
    }
}

/// Engines of an instance.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct EnginesReport {
    /// Copy engines.
    pub copy: u8,
    /// Video decoders.
    pub decoder: u8,
    /// Video encoders.
    pub encoder: u8,
    /// JPEG decoders.
    pub jpeg: u8,
    /// Optical flow accelerators.
    pub ofa: u8,
}

impl From<Engines> for EnginesReport {
    fn from(engines: Engines) -> Self {
        Self {
            copy: engines.copy,
            decoder: engines.decoder,
            encoder: engines.encoder,
            jpeg: engines.jpeg,
            ofa: engines.ofa,
        }
    }
}

impl ModelList {
    /// All models that the core knows.
    pub fn all() -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            models: model::models().map(ModelReport::new).collect(),
        }
    }
}

impl ModelReport {
    fn new(model: &'static CardModel) -> Self {
        let capability = model.compute_capability;
        let profiles = model.mig.map_or(&[][..], |mig| mig.profiles);
        Self {
            name: model.name,
            products: model.products,
            family: model.family.name(),
            compute_capability: capability.map(|(major, minor)| format!("{major}.{minor}")),
            memory_mib: model.memory_mib,
            multiprocessors: model.multiprocessors,
            nvlinks: model.nvlinks,
            pci_device_ids: model
                .pci_device_ids
                .iter()
                .map(|id| format!("{id:04x}"))
                .collect(),
            mig_profiles: profiles.iter().map(|profile| profile.name).collect(),
            confidence: model.confidence.name(),
            notes: model.notes,
        }
    }
}

impl CardReport {
    /// A model by its name or product, with the instances that the words of `--occupied` name.
    pub fn new(name: &str, occupied: &[String]) -> Result<Self, CardsError> {
        let model = find(name)?;
        let mig = match model.mig {
            Some(geometry) => {
                let occupied = Occupied::read(geometry, occupied)
                    .map_err(|(word, error)| CardsError::Occupied { word, error })?;
                Some(MigReport::new(geometry, &occupied))
            }
            None if occupied.is_empty() => None,
            None => {
                let with_mig = model::models().filter(|model| model.mig.is_some());
                return Err(CardsError::NoMig {
                    model: model.name,
                    with_mig: with_mig.map(|model| model.name).collect(),
                });
            }
        };
        Ok(Self {
            schema_version: SCHEMA_VERSION,
            model: ModelReport::new(model),
            mig,
        })
    }
}

impl MigReport {
    fn new(geometry: &'static Geometry, occupied: &Occupied) -> Self {
        let is_base = |ix| geometry.get(ix).is_some_and(Profile::is_base);
        let full = geometry.full_layouts(is_base);
        let placements = |layout: &[(ProfileIx, u8)]| -> Vec<_> {
            let placements = layout.iter();
            placements
                .filter_map(|(ix, start)| PlacementReport::new(geometry, *ix, *start))
                .collect()
        };
        Self {
            geometry,
            units: geometry.units,
            compute_slices: geometry.compute_slices,
            confidence: geometry.confidence.name(),
            profiles: geometry
                .indices()
                .filter_map(|ix| ProfileReport::new(geometry, ix, occupied.state))
                .collect(),
            full_layouts: full.iter().map(|layout| placements(layout)).collect(),
            occupied: placements(&occupied.placements),
            mask: Mask(occupied.state.mask),
            flexibility: geometry.flexibility(occupied.state),
            flexibility_of_all: geometry.flexibility_of_all(occupied.state),
        }
    }
}

impl ProfileReport {
    fn new(geometry: &'static Geometry, ix: ProfileIx, state: MigState) -> Option<Self> {
        let profile = geometry.get(ix)?;
        let open = geometry.starts(state, ix);
        let best_start = geometry.best_start(state, ix);
        let after = best_start.and_then(|start| geometry.put(state, ix, start));
        Some(Self {
            name: profile.name,
            aliases: profile.aliases,
            id: profile.id,
            compute_slices: profile.compute_slices,
            units: profile.units,
            memory_mib: profile.memory_mib,
            multiprocessors: Some(profile.multiprocessors).filter(|count| *count > 0),
            engines: profile.engines.into(),
            confidence: profile.confidence.name(),
            starts: profile.starts,
            most: profile.most,
            fits: geometry.most(state, ix),
            open_starts: (0..16).filter(|start| open & (1 << start) != 0).collect(),
            best_start,
            flexibility_after: after.map(|after| geometry.flexibility(after)),
        })
    }
}

impl PlacementReport {
    fn new(geometry: &Geometry, ix: ProfileIx, start: u8) -> Option<Self> {
        let profile = geometry.get(ix)?;
        Some(Self {
            profile: profile.name,
            start,
            ix,
        })
    }
}

/// The model that somebody means by a name.
fn find(name: &str) -> Result<&'static CardModel, CardsError> {
    if let Some(model) = model::find(name) {
        return Ok(model);
    }
    let models: Vec<_> = model::candidates(name).map(|model| model.name).collect();
    let name = name.to_owned();
    if models.is_empty() {
        let near = near(&name);
        return Err(CardsError::Unknown { name, near });
    }
    Err(CardsError::Ambiguous { name, models })
}

/// Models with the word in their name; if there are none, those with whose name it begins, and those
/// with the most similar names.
fn near(name: &str) -> Vec<&'static str> {
    let name = name.to_lowercase();
    let names = || model::models().map(|model| model.name);
    let holds = |known: &&str| !name.is_empty() && known.to_lowercase().contains(&name);
    let mut near: Vec<_> = names().filter(holds).collect();
    if near.is_empty() {
        // `GB200-NVL` is some GB200.
        let begins = |known: &&str| {
            let rest = name.strip_prefix(&known.to_lowercase());
            rest.is_some_and(|rest| rest.starts_with(['-', ' ', '_']))
        };
        near = names().filter(begins).collect();
        let distance = |known: &str| strsim::damerau_levenshtein(&known.to_lowercase(), &name);
        // At most one letter in three may be another.
        let mut like: Vec<_> = names()
            .filter(|known| distance(known) * 3 <= name.len() && !near.contains(known))
            .collect();
        like.sort_by_key(|known| distance(known));
        near.extend(like);
    }
    near.truncate(NEAR_NAMES);
    near
}
