//! Card and node sets agree with `bitvec`, the model, on every operation.

#![cfg(feature = "alloc")]

use bitvec::prelude::{BitVec, Lsb0};
use gangline::{
    bits::{CardSet, NodeSet},
    device::{
        mig::{MigState, ProfileIx},
        model,
    },
};
use proptest::prelude::*;

type Model = BitVec<u64, Lsb0>;

/// Cards of each grid of units.
const MIG_PRODUCTS: [&str; 4] = [
    "NVIDIA-A30",
    "NVIDIA-A100-SXM4-40GB",
    "NVIDIA-H100-80GB-HBM3",
    "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
];

/// Indexes below this: several words, the last one in part.
const NODES: u32 = 200;

fn model_of(indexes: &[u32], len: u32) -> Model {
    let mut model = Model::repeat(false, len as usize);
    for index in indexes {
        model.set(*index as usize, true);
    }
    model
}

fn ones(model: &Model) -> Vec<u32> {
    model.iter_ones().map(|index| index as u32).collect()
}

fn nodes_of(indexes: &[u32]) -> NodeSet {
    let mut set = NodeSet::new();
    for index in indexes {
        set.insert(*index);
    }
    set
}

fn node_indexes() -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(0..NODES, 0..40)
}

#[derive(Clone, Debug)]
enum Change {
    Insert(u32),
    Remove(u32),
    Clear,
    Union(Vec<u32>),
    Intersect(Vec<u32>),
    Difference(Vec<u32>),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        8 => (0..NODES).prop_map(Change::Insert),
        4 => (0..NODES).prop_map(Change::Remove),
        1 => Just(Change::Clear),
        2 => node_indexes().prop_map(Change::Union),
        2 => node_indexes().prop_map(Change::Intersect),
        2 => node_indexes().prop_map(Change::Difference),
    ]
}

proptest! {
    #[test]
    fn a_node_set_follows_the_model_through_any_changes(
        changes in proptest::collection::vec(change(), 0..60),
    ) {
        let mut set = NodeSet::new();
        let mut model = Model::repeat(false, NODES as usize);
        for change in &changes {
            match change {
                Change::Insert(index) => {
                    prop_assert_eq!(set.insert(*index), !model.replace(*index as usize, true));
                }
                Change::Remove(index) => {
                    prop_assert_eq!(set.remove(*index), model.replace(*index as usize, false));
                }
                Change::Clear => {
                    set.clear();
                    model.fill(false);
                }
                Change::Union(other) => {
                    set.union_with(&nodes_of(other));
                    model |= model_of(other, NODES);
                }
                Change::Intersect(other) => {
                    set.intersect_with(&nodes_of(other));
                    model &= model_of(other, NODES);
                }
                Change::Difference(other) => {
                    set.difference_with(&nodes_of(other));
                    model &= !model_of(other, NODES);
                }
            }
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), ones(&model));
            prop_assert_eq!(set.len() as usize, model.count_ones());
            prop_assert_eq!(set.is_empty(), model.not_any());
            prop_assert_eq!(set.first(), model.first_one().map(|index| index as u32));
        }
        for index in 0..NODES + 70 {
            let expected = model.get(index as usize).is_some_and(|bit| *bit);
            prop_assert_eq!(set.contains(index), expected);
            let next = (index as usize..model.len()).find(|index| model[*index]);
            prop_assert_eq!(set.next_at_or_after(index), next.map(|index| index as u32));
        }
    }

    #[test]
    fn node_sets_are_equal_when_they_hold_the_same(
        left in node_indexes(),
        right in node_indexes(),
        far in NODES..NODES + 500,
    ) {
        let same = ones(&model_of(&left, NODES)) == ones(&model_of(&right, NODES));
        prop_assert_eq!(nodes_of(&left) == nodes_of(&right), same);
        let mut grown = nodes_of(&left);
        grown.insert(far);
        prop_assert_ne!(&grown, &nodes_of(&left));
        prop_assert_ne!(&nodes_of(&left), &grown);
        grown.remove(far);
        prop_assert_eq!(&grown, &nodes_of(&left));
    }

    #[test]
    fn a_card_set_agrees_with_the_model(
        left in any::<u64>(),
        right in any::<u64>(),
        count in 0_u32..70,
    ) {
        let (cards, other) = (CardSet(left), CardSet(right));
        let (model, other_model) = (Model::from_element(left), Model::from_element(right));
        let cards_of = |model: Model| CardSet(model.into_vec()[0]);

        prop_assert_eq!(cards.iter().collect::<Vec<_>>(), ones(&model));
        prop_assert_eq!(cards.iter().len(), model.count_ones());
        prop_assert_eq!(cards.len() as usize, model.count_ones());
        prop_assert_eq!(cards.is_empty(), model.not_any());
        for index in 0..CardSet::CAPACITY + 6 {
            let expected = model.get(index as usize).is_some_and(|bit| *bit);
            prop_assert_eq!(cards.contains(index), expected);
        }
        prop_assert_eq!(cards.union(other), cards_of(model.clone() | other_model.clone()));
        prop_assert_eq!(cards.intersection(other), cards_of(model.clone() & other_model.clone()));
        prop_assert_eq!(cards.difference(other), cards_of(model.clone() & !other_model.clone()));
        prop_assert_eq!(
            cards.contains_all(other),
            (other_model & !model.clone()).not_any()
        );
        prop_assert!(cards.contains_all(cards.intersection(other)));

        let lowest: Vec<u32> = ones(&model).into_iter().take(count as usize).collect();
        let expected = (lowest.len() == count as usize).then(|| {
            cards_of(model_of(&lowest, CardSet::CAPACITY))
        });
        prop_assert_eq!(cards.lowest(count), expected);
        let first: Vec<u32> = (0..count).collect();
        let expected = (count <= CardSet::CAPACITY)
            .then(|| cards_of(model_of(&first, CardSet::CAPACITY)));
        prop_assert_eq!(CardSet::first(count), expected);
    }

    /// A card's MIG state follows a model of plain bits, one a unit, through any instances that come and
    /// go: an instance fits where its units are free and its engines suffice, and nowhere else.
    #[test]
    fn a_mig_state_follows_the_model_through_any_changes(
        model in 0..MIG_PRODUCTS.len(),
        changes in proptest::collection::vec((any::<bool>(), 0_usize..1000, 0_u8..12), 0..40),
    ) {
        let geometry = model::find(MIG_PRODUCTS[model]).and_then(|model| model.mig).unwrap();
        let mut state = MigState::EMPTY;
        let mut units = Model::repeat(false, geometry.units.into());
        let mut there: Vec<(ProfileIx, u8)> = Vec::new();
        for (comes, which, start) in changes {
            if comes {
                let ix = ProfileIx((which % geometry.profiles.len()) as u8);
                let profile = geometry.get(ix).unwrap();
                let covered = usize::from(start)..usize::from(start + profile.units);
                let engines = |of: fn(&gangline::device::mig::Engines) -> u8| {
                    let used = there.iter().map(|(ix, _)| of(&geometry.get(*ix).unwrap().engines));
                    used.chain([of(&profile.engines)]).map(u32::from).sum::<u32>()
                };
                // Decoders run out on the 12-unit grid alone.
                let enough = engines(|engines| engines.ofa) <= geometry.engines.ofa.into()
                    && (geometry.units != 12
                        || engines(|engines| engines.decoder) <= geometry.engines.decoder.into());
                let fits = profile.starts.contains(&start) && enough && units[covered.clone()].not_any();
                let after = geometry.put(state, ix, start);
                prop_assert_eq!(after.is_some(), fits, "{} at {}", profile.name, start);
                prop_assert_eq!(geometry.starts(state, ix) >> start & 1 == 1, fits);
                if let Some(after) = after {
                    state = after;
                    units[covered].fill(true);
                    there.push((ix, start));
                }
            } else if !there.is_empty() {
                let (ix, start) = there.swap_remove(which % there.len());
                let profile = geometry.get(ix).unwrap();
                state = geometry.take_out(state, ix, start).unwrap();
                units[usize::from(start)..usize::from(start + profile.units)].fill(false);
            }
            prop_assert_eq!(CardSet(state.mask.into()).iter().collect::<Vec<_>>(), ones(&units));
            prop_assert_eq!(state.is_empty(), there.is_empty());
        }
        // In whatever order: the same instances make the same state.
        let again = there.iter().rev().try_fold(MigState::EMPTY, |state, &(ix, start)| {
            geometry.put(state, ix, start)
        });
        prop_assert_eq!(again, Some(state));
    }

    /// What a person reads is what is in the set: parsing the runs gives it back.
    #[test]
    fn shown_runs_say_which_cards(bits in any::<u64>(), sparse in any::<u64>()) {
        for cards in [CardSet(bits), CardSet(bits & sparse & sparse.rotate_left(7))] {
            let shown = cards.to_string();
            let mut read = 0_u64;
            let mut last_end = None;
            for run in shown.split(',').filter(|run| !run.is_empty()) {
                let (start, end) = run.split_once('-').unwrap_or((run, run));
                let (start, end): (u32, u32) = (start.parse().unwrap(), end.parse().unwrap());
                prop_assert!(start < end || !run.contains('-'), "{shown}");
                // Runs are as long as can be: never two that touch.
                prop_assert!(last_end.is_none_or(|last| start > last + 1), "{shown}");
                last_end = Some(end);
                for card in start..=end {
                    read |= 1 << card;
                }
            }
            prop_assert_eq!(CardSet(read), cards);
        }
    }
}

#[test]
fn runs_of_cards_read_as_people_write_them() {
    let shown = |bits| CardSet(bits).to_string();
    assert_eq!(shown(0), "");
    assert_eq!(shown(0b100_1111), "0-3,6");
    assert_eq!(shown(1 << 63), "63");
    assert_eq!(shown(0b11 << 62 | 1), "0,62-63");
    assert_eq!(shown(u64::MAX), "0-63");
}

/// The largest index still works: it is only memory.
#[test]
fn a_gap_in_a_node_set_costs_nothing_but_words() {
    let mut set = NodeSet::new();
    assert!(set.insert(100_000));
    assert_eq!(set.first(), Some(100_000));
    assert_eq!(set.words().len(), 100_000 / 64 + 1);
    assert_eq!(set.next_at_or_after(u32::MAX), None);
    assert!(!set.contains(u32::MAX));
    assert!(!set.remove(u32::MAX));
    assert_eq!(format!("{set:?}"), "{100000}");
}

/// Moved memory would show as another address.
#[test]
fn a_node_set_stays_where_it_is_within_its_capacity() {
    let mut set = NodeSet::with_capacity(NODES);
    let home = set.words().as_ptr();
    set.insert(NODES - 1);
    set.union_with(&nodes_of(&[3, 64, NODES - 1]));
    set.difference_with(&nodes_of(&[3]));
    set.clone_from(&nodes_of(&[1, 130]));
    set.intersect_with(&nodes_of(&[1]));
    set.clear();
    set.insert(NODES - 1);
    assert_eq!(set.words().as_ptr(), home);
    assert_eq!(set.iter().collect::<Vec<_>>(), [NODES - 1]);
}

#[cfg(all(feature = "bitvec", target_pointer_width = "64"))]
#[test]
fn the_borrowed_view_shows_the_same_bits() {
    let cards = CardSet(1 << 63 | 0b101);
    assert_eq!(cards.as_bits().iter_ones().collect::<Vec<_>>(), [0, 2, 63]);
    assert_eq!(cards.as_bits().len(), 64);
    let nodes = nodes_of(&[0, 64, 199]);
    assert_eq!(
        nodes.as_bits().iter_ones().collect::<Vec<_>>(),
        [0, 64, 199]
    );
    assert!(NodeSet::new().as_bits().is_empty());
}
