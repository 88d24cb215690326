//! The reports about cards as text for a terminal: tables, and drawings of the units.
//!
//! A drawing has a cell for each unit: brackets around the units of an instance, a dot for a unit
//! that stays free, `#` for one that something unnamed occupies.

use std::fmt::Write as _;

use comfy_table::Cell;
use gangline::device::mig::MigState;

use super::{CardReport, MigReport, ModelList, ModelReport, PlacementReport, ProfileReport};
use crate::output::text::{push_table, table};

/// What `gangline cards` prints.
pub fn models(list: &ModelList) -> String {
    let mut rows = table(&[
        "MODEL",
        "FAMILY",
        "MEMORY",
        "SM",
        "NVLINKS",
        "KNOWN",
        "MIG PROFILES",
    ]);
    for model in &list.models {
        let plain = model
            .mig_profiles
            .iter()
            .filter(|name| !name.contains(['+', '-']));
        let plain: Vec<_> = plain.copied().collect();
        rows.add_row([
            Cell::new(model.name),
            Cell::new(model.family),
            Cell::new(format!("{} MiB", model.memory_mib)),
            Cell::new(count(model.multiprocessors)),
            Cell::new(model.nvlinks),
            Cell::new(model.confidence),
            Cell::new(plain.join(" ")),
        ]);
    }
    let mut text = String::new();
    push_table(&mut text, "", &rows);
    text.push_str("\ngangline cards MODEL tells more about one of them.\n");
    text
}

fn count(count: Option<u16>) -> String {
    count.map_or_else(|| "?".to_owned(), |count| count.to_string())
}

/// What `gangline cards MODEL` prints: the whole table of an empty card, or what still fits.
pub fn card(report: &CardReport) -> String {
    let mut text = String::new();
    match &report.mig {
        Some(mig) if mig.mask.0 != 0 => push_open(&mut text, report.model.name, mig),
        Some(mig) => {
            push_model(&mut text, &report.model);
            push_profiles(&mut text, mig);
            push_layouts(&mut text, mig);
        }
        None => push_model(&mut text, &report.model),
    }
    text
}

fn push_model(text: &mut String, model: &ModelReport) {
    let mut facts = vec![model.family.to_owned(), format!("{} MiB", model.memory_mib)];
    if let Some(count) = model.multiprocessors {
        facts.push(format!("{count} multiprocessors"));
    }
    if model.nvlinks > 0 {
        facts.push(format!("{} NVLinks", model.nvlinks));
    }
    if let Some(capability) = &model.compute_capability {
        facts.push(format!("compute capability {capability}"));
    }
    let facts = facts.join(", ");
    let _ = writeln!(text, "{}: {facts} ({})", model.name, model.confidence);
    if !model.products.is_empty() {
        let _ = writeln!(text, "Products: {}", model.products.join(", "));
    }
    if !model.pci_device_ids.is_empty() {
        let ids: Vec<_> = model
            .pci_device_ids
            .iter()
            .map(|id| format!("10de:{id}"))
            .collect();
        let _ = writeln!(text, "PCI: {}", ids.join(", "));
    }
    if !model.notes.is_empty() {
        let _ = writeln!(text, "Note: {}", model.notes);
    }
    if model.mig_profiles.is_empty() {
        text.push_str("No MIG table.\n");
    }
}

fn push_profiles(text: &mut String, mig: &MigReport) {
    let _ = writeln!(
        text,
        "\nMIG: {} compute slices, {} units of memory; placements are {}",
        mig.compute_slices, mig.units, mig.confidence
    );
    let ruler = drawing(mig.units, 0, &[]).ruler();
    let header = [
        "PROFILE", "ID", "MEMORY", "SM", "MEDIA", "MOST", "KNOWN", &ruler,
    ];
    let mut rows = table(&header);
    for profile in &mig.profiles {
        let all: Vec<_> = profile.starts.iter().map(|start| (*start, "")).collect();
        rows.add_row([
            Cell::new(names(profile)),
            Cell::new(profile.id),
            Cell::new(format!("{} MiB", profile.memory_mib)),
            Cell::new(count(profile.multiprocessors)),
            Cell::new(media(profile)),
            Cell::new(profile.most),
            Cell::new(profile.confidence),
            Cell::new(drawing(mig.units, 0, &spans(profile, &all))),
        ]);
    }
    push_table(text, "  ", &rows);
}

/// The profile's name with its aliases.
fn names(profile: &ProfileReport) -> String {
    let mut names = profile.name.to_owned();
    for alias in profile.aliases {
        let _ = write!(names, " or {alias}");
    }
    names
}

/// Decoders, encoders, JPEG engines and optical flow accelerators, those that there are.
fn media(profile: &ProfileReport) -> String {
    let engines = &profile.engines;
    let named = [
        (engines.decoder, "dec"),
        (engines.encoder, "enc"),
        (engines.jpeg, "jpeg"),
        (engines.ofa, "ofa"),
    ];
    let named = named.iter().filter(|(count, _)| *count > 0);
    let words: Vec<_> = named
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    words.join(" ")
}

fn push_layouts(text: &mut String, mig: &MigReport) {
    let _ = writeln!(
        text,
        "\nFull layouts of profiles without suffix, {} in all; the number is the compute slices",
        mig.full_layouts.len()
    );
    for layout in &mig.full_layouts {
        let _ = writeln!(text, "  {}  {}", placed(mig, layout), words(layout));
    }
}

/// A card with instances.
fn placed(mig: &MigReport, layout: &[PlacementReport]) -> Drawing {
    let span = |placement: &PlacementReport| {
        let profile = mig.geometry.get(placement.ix);
        let (units, slices) = profile.map_or((0, 0), |p| (p.units, p.compute_slices));
        (placement.start, units, slices.to_string())
    };
    let spans: Vec<_> = layout.iter().map(span).collect();
    drawing(mig.units, mig.mask.0, &spans)
}

fn words(layout: &[PlacementReport]) -> String {
    let words = layout.iter();
    let words: Vec<_> = words
        .map(|placement| format!("{}@{}", placement.profile, placement.start))
        .collect();
    words.join(" ")
}

fn push_open(text: &mut String, model: &str, mig: &MigReport) {
    let named = match words(&mig.occupied) {
        words if words.is_empty() => format!("units {:#x}", mig.mask.0),
        words => words,
    };
    let _ = writeln!(text, "{model} with {named}");
    let card = placed(mig, &mig.occupied);
    let _ = writeln!(
        text,
        "  {}\n  {}\n",
        card.ruler(),
        card.to_string().trim_end()
    );
    let fitting: Vec<_> = mig
        .profiles
        .iter()
        .filter(|profile| profile.fits > 0)
        .collect();
    if fitting.is_empty() {
        text.push_str("Nothing more fits.\n");
        return;
    }
    let ruler = card.ruler();
    let mut rows = table(&["PROFILE", "FITS", "BEST START", "LEAVES", &ruler]);
    for profile in fitting {
        let best = profile.best_start;
        let starts = profile.open_starts.iter();
        let starts: Vec<_> = starts
            .map(|start| (*start, if best == Some(*start) { "*" } else { "" }))
            .collect();
        rows.add_row([
            Cell::new(names(profile)),
            Cell::new(profile.fits),
            Cell::new(best.map_or_else(String::new, |start| start.to_string())),
            Cell::new(profile.flexibility_after.unwrap_or_default()),
            Cell::new(drawing(mig.units, mig.mask.0, &spans(profile, &starts))),
        ]);
    }
    push_table(text, "  ", &rows);
    let empty = mig.geometry.flexibility(MigState::EMPTY);
    let _ = writeln!(
        text,
        "\n* the start that leaves the most open. LEAVES counts the sets of profiles without suffix \
         that still fit\nbehind it; now it is {} ({empty} on an empty card).",
        mig.flexibility
    );
}

/// Placements of a profile at some starts with a mark in each.
fn spans(profile: &ProfileReport, starts: &[(u8, &str)]) -> Vec<(u8, u8, String)> {
    let starts = starts.iter();
    starts
        .map(|(start, mark)| (*start, profile.units, (*mark).to_owned()))
        .collect()
}

/// Units side by side.
struct Drawing {
    units: u8,
    cells: Vec<char>,
    width: usize,
}

/// Draws instances as start, units and mark, and the other units of a mask.
fn drawing(units: u8, mask: u16, spans: &[(u8, u8, String)]) -> Drawing {
    // Narrow cells on the grid of 12, where the smallest instance has three.
    let width = if units > 8 { 1 } else { 3 };
    let mut cells = vec![' '; usize::from(units) * width];
    for unit in 0..units {
        let first = usize::from(unit) * width;
        let is_taken = mask & (1 << unit) != 0;
        let cell = cells.iter_mut().skip(first).take(width);
        for (at, letter) in cell.enumerate() {
            *letter = match (is_taken, at == width / 2) {
                (true, _) => '#',
                (false, true) => '·',
                (false, false) => ' ',
            };
        }
    }
    for (start, count, mark) in spans {
        let span = usize::from(*start) * width;
        let length = usize::from(*count) * width;
        let letters = cells.iter_mut().skip(span).take(length);
        for (at, letter) in letters.enumerate() {
            *letter = match at {
                0 => '[',
                at if at + 1 == length => ']',
                at => mark.chars().nth(at - 1).unwrap_or(' '),
            };
        }
    }
    Drawing {
        units,
        cells,
        width,
    }
}

impl Drawing {
    /// The units' numbers, above their cells; every third one on the grid of 12.
    fn ruler(&self) -> String {
        let mut ruler = String::new();
        let step = 3 / self.width;
        for unit in (0..usize::from(self.units)).step_by(step) {
            let _ = write!(ruler, " {unit:<2}");
        }
        ruler.trim_end().to_owned()
    }
}

impl std::fmt::Display for Drawing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text: String = self.cells.iter().collect();
        formatter.write_str(&text)
    }
}
