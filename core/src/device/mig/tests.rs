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

/// The rule in words: units disjoint, enough engines of every kind, no profile more often than its
/// maximum.
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
        used.copy += profile.engines.copy;
        used.decoder += profile.engines.decoder;
        used.encoder += profile.engines.encoder;
        used.jpeg += profile.engines.jpeg;
        used.ofa += profile.engines.ofa;
        counts[usize::from(ix.0)] += 1;
        if counts[usize::from(ix.0)] > profile.most {
            return false;
        }
    }
    used.copy <= geometry.engines.copy
        && used.decoder <= geometry.engines.decoder
        && used.encoder <= geometry.engines.encoder
        && used.jpeg <= geometry.engines.jpeg
        && used.ofa <= geometry.engines.ofa
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
    let rtx = geometry("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition");
    assert_eq!(World::new(rtx, Profile::is_base).counts(), (25, 5, 9, 4));
    let (_, full, multisets, _) = World::new(rtx, ALL).counts();
    assert_eq!((full, multisets), (302, 114));
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

/// Multisets in compute slices, largest first, such as `[4, 2, 1]`.
fn slices(geometry: &Geometry, layout: &[Placement]) -> Vec<u8> {
    let slices = |(ix, _): &Placement| geometry.get(*ix).map(|profile| profile.compute_slices);
    let mut slices: Vec<_> = layout.iter().filter_map(slices).collect();
    slices.sort_unstable_by(|a, b| b.cmp(a));
    slices
}

#[test]
fn the_multisets_that_are_always_full() {
    let h100 = geometry("NVIDIA-H100-80GB-HBM3");
    let world = World::new(h100, Profile::is_base);
    let mut extensible = BTreeMap::new();
    for layout in world.layouts.iter().filter(|layout| !layout.is_empty()) {
        let any = extensible.entry(slices(h100, layout)).or_insert(false);
        *any |= world.can_be_extended(layout);
    }
    let stuck: BTreeSet<Vec<u8>> = extensible
        .into_iter()
        .filter_map(|(multiset, any)| (!any).then_some(multiset))
        .collect();
    let expected: [&[u8]; 12] = [
        &[7],
        &[4, 3],
        &[4, 2, 1],
        &[4, 1, 1, 1],
        &[3, 3],
        &[3, 2, 2],
        &[3, 2, 1, 1],
        &[3, 1, 1, 1, 1],
        &[2, 2, 2, 1],
        &[2, 2, 1, 1, 1],
        &[2, 1, 1, 1, 1, 1],
        &[1, 1, 1, 1, 1, 1, 1],
    ];
    assert_eq!(stuck, expected.iter().map(|list| list.to_vec()).collect());
    // The textbook case: with the 3g at 0, 3g 2g 1g is full with a compute slice to spare.
    for (at, rest) in [(0, 0), (4, 1)] {
        let three = state(h100, &[(ix(h100, "3g.40gb"), at)]);
        let two = best(h100, three, "2g.20gb");
        let one = best(h100, two, "1g.10gb");
        assert_eq!(h100.most(one, ix(h100, "1g.10gb")), rest);
    }
}

fn ix(geometry: &Geometry, name: &str) -> ProfileIx {
    geometry.profile(name).expect("is a profile")
}

fn best(geometry: &Geometry, state: MigState, name: &str) -> MigState {
    let start = geometry
        .best_start(state, ix(geometry, name))
        .expect("fits");
    geometry
        .put(state, ix(geometry, name), start)
        .expect("fits")
}

#[test]
fn what_one_placement_leaves_open() {
    let h100 = geometry("NVIDIA-H100-80GB-HBM3");
    let base = World::new(h100, Profile::is_base);
    let double = World::new(h100, not_media);
    // First placement, rest with base profiles and with 1g-double, maximal layouts left with both.
    let table: [(&str, &[u8], [usize; 4]); 12] = [
        ("4g.40gb", &[0], [7, 12, 3, 7]),
        ("3g.40gb", &[0], [7, 12, 3, 7]),
        ("3g.40gb", &[4], [11, 16, 6, 11]),
        ("2g.20gb", &[0, 2], [16, 31, 6, 21]),
        ("2g.20gb", &[4], [16, 32, 6, 22]),
        ("1g.10gb", &[0, 1, 2, 3], [21, 43, 6, 21]),
        ("1g.10gb", &[4, 5], [21, 45, 6, 22]),
        ("1g.10gb", &[6], [24, 40, 12, 33]),
        ("1g.20gb", &[0, 2], [16, 31, 6, 21]),
        ("1g.20gb", &[4], [16, 32, 6, 22]),
        ("1g.20gb", &[6], [24, 40, 12, 33]),
        ("7g.80gb", &[0], [1, 1, 1, 1]),
    ];
    for (name, starts, [rest, rest_double, full, full_double]) in table {
        for start in starts {
            let first = (ix(h100, name), *start);
            let after = state(h100, &[first]);
            assert_eq!(usize::from(h100.flexibility(after)), rest, "{name}@{start}");
            let left = |world: &World| {
                let with = world
                    .layouts
                    .iter()
                    .filter(|layout| layout.contains(&first));
                let rests: BTreeSet<_> =
                    with.clone().map(|layout| world.multiset(layout)).collect();
                let full = with.filter(|layout| !world.can_be_extended(layout));
                (rests.len(), full.count())
            };
            assert_eq!(left(&double), (rest_double, full_double), "{name}@{start}");
            if base.placements.contains(&first) {
                assert_eq!(left(&base), (rest, full), "{name}@{start}");
            }
        }
    }
}

/// All layouts of a geometry by the state they lead to.
fn states(mig: &'static Geometry) -> (World, BTreeMap<MigState, Vec<Vec<Placement>>>) {
    let world = World::new(mig, ALL);
    let mut states: BTreeMap<MigState, Vec<Vec<Placement>>> = BTreeMap::new();
    for layout in &world.layouts {
        states
            .entry(state(mig, layout))
            .or_default()
            .push(layout.clone());
    }
    (world, states)
}

#[test]
fn the_tables_say_what_the_definition_says_for_every_reachable_state() {
    for mig in distinct() {
        let (world, states) = states(mig);
        for (state, layouts) in &states {
            for layout in layouts {
                check_state(&world, *state, layout);
            }
        }
    }
}

fn check_state(world: &World, state: MigState, layout: &[Placement]) {
    let mig = world.geometry;
    let with = |placement: Placement| {
        let mut more = layout.to_vec();
        more.push(placement);
        more
    };
    // Everything that can be added, and how it looks once added.
    let mut added = BTreeSet::new();
    extend(world, &mut layout.to_vec(), layout.len(), 0, &mut added);
    let is_base = |counts: &&Multiset| {
        let profiles = mig.profiles.iter().zip(counts.iter());
        profiles
            .into_iter()
            .all(|(profile, count)| *count == 0 || profile.is_base())
    };
    assert_eq!(usize::from(mig.flexibility_of_all(state)), added.len());
    assert_eq!(
        usize::from(mig.flexibility(state)),
        added.iter().filter(is_base).count()
    );
    for (number, profile) in (0..).zip(mig.profiles) {
        let ix = ProfileIx(number);
        let most = added.iter().filter_map(|counts| {
            let alone = counts.iter().map(|count| u32::from(*count)).sum::<u32>();
            let count = counts[usize::from(number)];
            (u32::from(count) == alone).then_some(count)
        });
        assert_eq!(
            mig.most(state, ix),
            most.max().unwrap_or(0),
            "{} {layout:?}",
            profile.name
        );
        for start in 0..20 {
            let is_placement = profile.starts.contains(&start);
            let fits = is_placement && is_legal(mig, &with((ix, start)));
            assert_eq!(
                start < 16 && mig.starts(state, ix) & (1 << start) != 0,
                fits
            );
            let after = mig.put(state, ix, start);
            assert_eq!(after.is_some(), fits);
            if let Some(after) = after {
                assert_eq!(mig.take_out(after, ix, start), Some(state));
            }
        }
        let best = mig.best_start(state, ix);
        let worth = |start| {
            let after = mig.put(state, ix, start).expect("fits");
            (mig.flexibility(after), mig.flexibility_of_all(after))
        };
        let open = profile
            .starts
            .iter()
            .copied()
            .filter(|start| mig.put(state, ix, *start).is_some());
        let expected = open.rev().max_by_key(|start| worth(*start));
        assert_eq!(best, expected);
    }
}

/// Collects the multisets that can be added to the first `from` placements of a layout.
fn extend(
    world: &World,
    layout: &mut Vec<Placement>,
    from: usize,
    first: usize,
    added: &mut BTreeSet<Multiset>,
) {
    added.insert(world.multiset(&layout[from..]));
    for at in first..world.placements.len() {
        layout.push(world.placements[at]);
        if is_legal(world.geometry, layout) {
            extend(world, layout, from, at + 1, added);
        }
        layout.pop();
    }
}

#[test]
fn what_is_not_there_cannot_be_taken_out() {
    for mig in distinct() {
        for (ix, start) in mig.placements() {
            assert_eq!(mig.take_out(MigState::EMPTY, ix, start), None);
            let after = mig
                .put(MigState::EMPTY, ix, start)
                .expect("fits an empty card");
            assert_eq!(mig.take_out(after, ix, 15), None);
            assert_eq!(mig.put(after, ix, start), None);
        }
    }
    let h100 = geometry("NVIDIA-H100-80GB-HBM3");
    let plain = state(h100, &[(ix(h100, "1g.10gb"), 6)]);
    assert_eq!(h100.take_out(plain, ix(h100, "1g.10gb+me"), 6), None);
}

#[test]
fn hostile_indices_and_states_are_refused() {
    for mig in distinct() {
        let full = MigState::occupied(u16::MAX);
        for ix in 0..=u8::MAX {
            let ix = ProfileIx(ix);
            assert_eq!((mig.starts(full, ix), mig.most(full, ix)), (0, 0));
            assert_eq!(mig.best_start(full, ix), None);
            for start in 0..=u8::MAX {
                assert_eq!(mig.put(full, ix, start), None);
                let put = mig.put(MigState::EMPTY, ix, start);
                assert_eq!(put.is_some(), mig.units_of(ix, start) != 0);
            }
        }
        assert_eq!(mig.flexibility(full), 1);
    }
}

/// Places profiles one by one at the best start.
fn one_by_one(mig: &Geometry, names: &[&str]) -> Vec<u8> {
    let mut state = MigState::EMPTY;
    let place = |name: &&str| {
        let start = mig.best_start(state, ix(mig, name)).expect("fits");
        state = mig.put(state, ix(mig, name), start).expect("fits");
        start
    };
    names.iter().map(place).collect()
}

#[test]
fn best_starts_are_those_of_the_hardware_notes() {
    let a100 = geometry("NVIDIA-A100-SXM4-40GB");
    let starts = |names: &[&str]| one_by_one(a100, names);
    let [one, double, two, three, four] = ["1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb"];
    for (name, start) in [(one, 6), (double, 6), (two, 4), (three, 4), (four, 0)] {
        assert_eq!(starts(&[name]), [start]);
    }
    // What the driver does when it is asked for one after another.
    assert_eq!(starts(&[one; 7]), [6, 4, 5, 0, 1, 2, 3]);
    assert_eq!(starts(&[two, two, two, one]), [4, 0, 2, 6]);
    assert_eq!(starts(&[three, three]), [4, 0]);
    // C115: a 4g, a 2g and a 1g end up the same in each order of arrival.
    let orders = [
        [four, two, one],
        [four, one, two],
        [two, four, one],
        [two, one, four],
        [one, four, two],
        [one, two, four],
    ];
    for order in orders {
        let mut layout: Vec<_> = order.into_iter().zip(starts(&order)).collect();
        layout.sort_by_key(|(_, start)| *start);
        assert_eq!(layout, [(four, 0), (two, 4), (one, 6)]);
    }
    // C116: small ones keep the start of the big one free.
    assert_eq!(starts(&[one, one, one, four]), [6, 4, 5, 0]);
    assert_eq!(starts(&[one, one, three, one]), [6, 4, 0, 5]);
}

#[test]
fn on_the_a30_the_lowest_start_wins_ties() {
    let a30 = geometry("A30");
    assert_eq!(one_by_one(a30, &["1g.6gb", "1g.6gb", "2g.12gb"]), [0, 1, 2]);
}

#[test]
fn cheapest_profiles_come_first() {
    let h100 = geometry("NVIDIA-H100-80GB-HBM3");
    let names = |mig: &'static Geometry, memory_mib, slices| -> Vec<_> {
        let found = mig.cheapest(memory_mib, slices);
        found
            .filter_map(|ix| mig.get(ix))
            .map(|profile| profile.name)
            .collect()
    };
    assert_eq!(
        names(h100, 20_000, 0),
        ["1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"]
    );
    assert_eq!(names(h100, 20_000, 2)[0], "2g.20gb");
    assert_eq!(names(h100, 0, 1)[..2], ["1g.10gb", "1g.10gb+me"]);
    assert!(names(h100, 90_000, 0).is_empty());
    for mig in models().filter_map(|model| model.mig) {
        let order = |profile: &Profile| (profile.units, profile.compute_slices, profile.attribute);
        assert!(mig.profiles.is_sorted_by_key(order), "{}", mig.name);
    }
}

#[test]
fn maxima_are_those_of_an_empty_card() {
    for mig in models().filter_map(|model| model.mig) {
        for ix in mig.indices() {
            let profile = mig.get(ix).expect("exists");
            assert_eq!(
                mig.most(MigState::EMPTY, ix),
                profile.most,
                "{} {}",
                mig.name,
                profile.name
            );
            assert_eq!(mig.profile(profile.name), Some(ix));
            assert_eq!(mig.profile_by_id(profile.id), Some(ix));
            for alias in profile.aliases {
                assert_eq!(mig.profile(alias), Some(ix));
            }
        }
        // Placements of one card, as NVML lists them.
        let expected = match mig.units {
            8 => 25,
            4 => 13,
            _ => 30,
        };
        assert_eq!(mig.placements().count(), expected);
    }
}

#[test]
fn a_state_is_small() {
    assert_eq!(size_of::<MigState>(), 6);
}
