use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    vec,
    vec::Vec,
};

use super::*;
use crate::device::model::{CardModel, find, models};

type Placement = (ProfileIx, u8);
/// How many of each profile.
type Multiset = Vec<u8>;

fn geometry(product: &str) -> &'static Geometry {
    find(product)
        .and_then(|model| model.mig)
        .expect("is in the table")
}

/// All states that can be reached with some profiles, found by the definition alone: disjoint units
/// and enough engines.
struct World {
    geometry: &'static Geometry,
    placements: Vec<Placement>,
    /// Layouts, each sorted.
    layouts: BTreeSet<Vec<Placement>>,
}

impl World {
    fn new(geometry: &'static Geometry, accept: impl Fn(&Profile) -> bool) -> Self {
        let mut world = Self {
            geometry,
            placements: Vec::new(),
            layouts: BTreeSet::new(),
        };
        for (ix, profile) in (0..).zip(geometry.profiles) {
            if accept(profile) {
                let starts = profile.starts.iter();
                let placements = starts.map(|start| (ProfileIx(ix), *start));
                world.placements.extend(placements);
            }
        }
        world.fill(&mut Vec::new(), 0);
        world
    }

    fn fill(&mut self, layout: &mut Vec<Placement>, from: usize) {
        let mut sorted = layout.clone();
        sorted.sort_by_key(|(ix, start)| (*start, *ix));
        self.layouts.insert(sorted);
        for at in from..self.placements.len() {
            layout.push(self.placements[at]);
            if is_legal(self.geometry, layout) {
                self.fill(layout, at + 1);
            }
            layout.pop();
        }
    }

    fn can_be_extended(&self, layout: &[Placement]) -> bool {
        self.placements.iter().any(|placement| {
            let mut more = layout.to_vec();
            more.push(*placement);
            is_legal(self.geometry, &more)
        })
    }

    fn multiset(&self, layout: &[Placement]) -> Multiset {
        let mut counts = vec![0; self.geometry.profiles.len()];
        for (ix, _) in layout {
            counts[usize::from(ix.0)] += 1;
        }
        counts
    }

    /// Non-empty states, maximal states, distinct multisets, multisets that cannot be extended
    /// wherever their instances are.
    fn counts(&self) -> (usize, usize, usize, usize) {
        let mut multisets = BTreeMap::new();
        let mut full = 0;
        for layout in self.layouts.iter().filter(|layout| !layout.is_empty()) {
            let extensible = self.can_be_extended(layout);
            full += usize::from(!extensible);
            *multisets.entry(self.multiset(layout)).or_insert(false) |= extensible;
        }
        let stuck = multisets.values().filter(|extensible| !**extensible);
        (self.layouts.len() - 1, full, multisets.len(), stuck.count())
    }
}

/// The rule in words: units disjoint, engines enough, no profile more often than its maximum.
fn is_legal(geometry: &Geometry, layout: &[Placement]) -> bool {
    let mut mask = 0_u16;
    let mut used = Engines::default();
    let mut counts = vec![0; geometry.profiles.len()];
    for (ix, start) in layout {
        let profile = geometry.get(*ix).expect("exists");
        for unit in *start..*start + profile.units {
            if mask & (1 << unit) != 0 {
                return false;
            }
            mask |= 1 << unit;
        }
        used.decoder += profile.engines.decoder;
        used.encoder += profile.engines.encoder;
        used.jpeg += profile.engines.jpeg;
        used.ofa += profile.engines.ofa;
        counts[usize::from(ix.0)] += 1;
        if counts[usize::from(ix.0)] > profile.most {
            return false;
        }
    }
    // The A30's driver gives each 1g a decoder, three of them and a 2g more than the card has; only
    // the optical flow accelerator is budgeted on data-centre cards.
    let media_counts = geometry.units == 12;
    used.ofa <= geometry.engines.ofa
        && (!media_counts
            || used.decoder <= geometry.engines.decoder
                && used.encoder <= geometry.engines.encoder
                && used.jpeg <= geometry.engines.jpeg)
}

fn state(geometry: &Geometry, layout: &[Placement]) -> MigState {
    let put = |state, (ix, start): &Placement| geometry.put(state, *ix, *start).expect("is legal");
    layout.iter().fold(MigState::EMPTY, put)
}

fn not_media(profile: &Profile) -> bool {
    profile.attribute == Attribute::Plain
}

const ALL: fn(&Profile) -> bool = |_| true;

#[test]
fn as_many_layouts_as_enumerated_in_the_hardware_notes() {
    for model in eighths() {
        let mig = model.mig.expect("has one");
        assert_eq!(
            World::new(mig, Profile::is_base).counts(),
            (297, 19, 37, 12)
        );
        assert_eq!(World::new(mig, not_media).counts(), (722, 78, 77, 28));
        assert_eq!(World::new(mig, ALL).counts(), (2318, 239, 127, 44));
    }
    let a30 = geometry("A30");
    assert_eq!(World::new(a30, Profile::is_base).counts(), (25, 5, 9, 4));
    assert_eq!(World::new(a30, ALL).counts(), (75, 17, 19, 8));
}

fn eighths() -> impl Iterator<Item = &'static CardModel> {
    models().filter(|model| model.mig.is_some_and(|mig| mig.units == 8))
}

/// A layout in words, such as `4g@0 3g@4`, without memory.
fn words(geometry: &Geometry, layout: &[Placement]) -> String {
    let word = |(ix, start): &Placement| {
        let slices = geometry
            .get(*ix)
            .map_or(0, |profile| profile.compute_slices);
        format!("{slices}g@{start}")
    };
    let words: Vec<_> = layout.iter().map(word).collect();
    words.join(" ")
}

#[test]
fn the_full_layouts_are_the_published_ones() {
    let mut published: Vec<String> = "
        7g@0
        4g@0 3g@4|4g@0 2g@4 1g@6|4g@0 1g@4 1g@5 1g@6
        3g@0 3g@4|3g@0 2g@4 1g@6|3g@0 1g@4 1g@5 1g@6
        2g@0 2g@2 3g@4|2g@0 2g@2 2g@4 1g@6|2g@0 2g@2 1g@4 1g@5 1g@6
        2g@0 1g@2 1g@3 3g@4|2g@0 1g@2 1g@3 2g@4 1g@6|2g@0 1g@2 1g@3 1g@4 1g@5 1g@6
        1g@0 1g@1 2g@2 3g@4|1g@0 1g@1 2g@2 2g@4 1g@6|1g@0 1g@1 2g@2 1g@4 1g@5 1g@6
        1g@0 1g@1 1g@2 1g@3 3g@4|1g@0 1g@1 1g@2 1g@3 2g@4 1g@6
        1g@0 1g@1 1g@2 1g@3 1g@4 1g@5 1g@6"
        .split(['\n', '|'])
        .map(|line| line.trim().into())
        .filter(|line: &String| !line.is_empty())
        .collect();
    published.sort();
    assert_eq!(published.len(), 19);
    for model in eighths() {
        let mig = model.mig.expect("has one");
        let layouts = mig.full_layouts(|ix| mig.get(ix).is_some_and(Profile::is_base));
        let mut generated: Vec<_> = layouts.iter().map(|layout| words(mig, layout)).collect();
        generated.sort();
        assert_eq!(generated, published, "{}", model.name);
    }
}

#[test]
fn full_layouts_are_what_the_definition_gives() {
    for mig in distinct() {
        let world = World::new(mig, ALL);
        let full = world.layouts.iter();
        let full: BTreeSet<_> = full
            .filter(|layout| !world.can_be_extended(layout))
            .collect();
        let generated = mig.full_layouts(|_| true);
        assert_eq!(generated.iter().collect::<BTreeSet<_>>(), full);
        assert_eq!(generated.len(), full.len());
    }
}

/// One geometry for each grid.
fn distinct() -> Vec<&'static Geometry> {
    let mut found: Vec<&'static Geometry> = Vec::new();
    for mig in models().filter_map(|model| model.mig) {
        if !found.iter().any(|other| other.units == mig.units) {
            found.push(mig);
        }
    }
    found
}
