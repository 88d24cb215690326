//! How a family's file writes a MIG table: the slots come from the grid, a row adds what differs
//! from model to model.

use super::Confidence;
use crate::device::mig::{Engines, Geometry, Grid, Profile};

/// One row: name, MiB, multiprocessors, engines.
pub(super) struct Row {
    name: &'static str,
    aliases: &'static [&'static str],
    memory_mib: u32,
    multiprocessors: u16,
    engines: Engines,
    confidence: Confidence,
}

pub(super) const fn row(
    name: &'static str,
    memory_mib: u32,
    multiprocessors: u16,
    engines: Engines,
) -> Row {
    Row {
        name,
        aliases: &[],
        memory_mib,
        multiprocessors,
        engines,
        confidence: Confidence::Measured,
    }
}

/// A row of which only the name (with its GiB) and the slices are known. Its memory is a little less
/// than any listing shows in relation to the name's GiB, so that what is planned does fit: 86 % for
/// one memory slice, 90 % for two, 97 % for four and 98 % for the card, in steps of 64 MiB.
pub(super) const fn inferred(
    name: &'static str,
    gib: u32,
    memory_slices: u8,
    multiprocessors: u16,
    engines: Engines,
) -> Row {
    let percent = match memory_slices {
        1 => 86,
        2 => 90,
        4 => 97,
        _ => 98,
    };
    let memory_mib = gib * 1_024 * percent / 100 / 64 * 64;
    row(name, memory_mib, multiprocessors, engines).known(Confidence::Inferred)
}

impl Row {
    pub(super) const fn also(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    pub(super) const fn known(self, confidence: Confidence) -> Self {
        Self { confidence, ..self }
    }
}

/// Engines of a data-centre card: no encoders.
pub(super) const fn engines(copy: u8, decoder: u8, jpeg: u8, ofa: u8) -> Engines {
    Engines {
        copy,
        decoder,
        encoder: 0,
        jpeg,
        ofa,
    }
}

/// The profiles of a grid with a model's rows, which must be in the grid's order.
pub(super) const fn profiles<const N: usize>(grid: &Grid, rows: &[Row; N]) -> [Profile; N] {
    assert!(grid.slots.len() == N, "a row for each slot");
    let mut profiles = [const { NOTHING }; N];
    let mut ix = 0;
    while ix < N {
        let (slot, row) = (&grid.slots[ix], &rows[ix]);
        profiles[ix] = Profile {
            name: row.name,
            aliases: row.aliases,
            id: slot.id,
            compute_slices: slot.compute_slices,
            units: slot.units,
            starts: slot.starts,
            most: slot.most,
            attribute: slot.attribute,
            memory_mib: row.memory_mib,
            multiprocessors: row.multiprocessors,
            engines: row.engines,
            confidence: row.confidence,
        };
        ix += 1;
    }
    profiles
}

/// A geometry whose whole-card profile (the last base one) has all engines of the card.
pub(super) const fn geometry(
    name: &'static str,
    grid: &'static Grid,
    profiles: &'static [Profile],
    whole: &Profile,
    confidence: Confidence,
) -> Geometry {
    Geometry {
        name,
        units: whole.units,
        compute_slices: whole.compute_slices,
        profiles,
        engines: whole.engines,
        confidence,
        grid,
    }
}

const NOTHING: Profile = Profile {
    name: "",
    aliases: &[],
    id: 0,
    compute_slices: 0,
    units: 0,
    starts: &[],
    most: 0,
    attribute: crate::device::mig::Attribute::Plain,
    memory_mib: 0,
    multiprocessors: 0,
    engines: engines(0, 0, 0, 0),
    confidence: Confidence::Inferred,
};
