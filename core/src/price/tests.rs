//! Worths against brute force, and prices on small fleets.

use alloc::{collections::BTreeMap, vec, vec::Vec};

use proptest::prelude::*;

use super::*;

fn share(milli: u16, milli_cpu: i64) -> WorkType {
    WorkType {
        demand: Demand::Share { milli },
        milli_cpu,
        allowed: None,
    }
}

fn whole(count: u16, milli_cpu: i64) -> WorkType {
    WorkType {
        demand: Demand::Whole { count },
        milli_cpu,
        allowed: None,
    }
}

fn slice(profile: u16, milli_cpu: i64) -> WorkType {
    WorkType {
        demand: Demand::Slice { profile },
        milli_cpu,
        allowed: None,
    }
}

fn mix(types: &[(WorkType, u64)]) -> Mix {
    let mut mix = Mix::new();
    for (work, count) in types {
        mix.add(work, *count);
    }
    mix
}

fn kind(cards: u16, milli_cpu: i64) -> NodeKind {
    NodeKind {
        model: 0,
        cards,
        whole_only: 0,
        milli_cpu,
        geometry: None,
    }
}

fn catalogue(kinds: &[NodeKind]) -> Catalogue {
    Catalogue {
        kinds: kinds.to_vec(),
        geometries: Vec::new(),
    }
}

/// Four units: halves at 0 and 2, quarters anywhere, three quarters only at 0.
fn geometry() -> Geometry {
    Geometry {
        units: 4,
        placements: vec![
            (0, 0b0001),
            (0, 0b0010),
            (0, 0b0100),
            (0, 0b1000),
            (1, 0b0011),
            (1, 0b1100),
            (2, 0b0111),
        ],
    }
}

fn state(kind: NodeKindIx, milli_cpu: i64, left: &[u16]) -> NodeState {
    NodeState::new(
        kind,
        milli_cpu,
        left.iter().map(|&milli| CardState::left(milli)),
    )
}

/// Prices as given, in the order of the mix, for one belief.
fn priced(catalogue: &Catalogue, mix: &Mix, prices: Vec<Nano>) -> Prices {
    let published = Published {
        version: 1,
        catalogue: catalogue.clone(),
        mix: mix.clone(),
        solutions: vec![Solution {
            prices,
            ratios: Vec::new(),
        }],
    };
    published.into()
}

/// The most valuable work that fits in a state, by trying everything.
fn brute_force(prices: &Prices, state: &NodeState) -> Nano {
    best_of(prices, state, &mut BTreeMap::new())
}

fn best_of(prices: &Prices, state: &NodeState, known: &mut BTreeMap<NodeState, Nano>) -> Nano {
    if let Some(&most) = known.get(state) {
        return most;
    }
    let mut most = 0;
    for (work, price) in prices.prices() {
        state.for_each_after(work, prices.catalogue(), |after| {
            // Work that takes nothing could be placed for ever.
            if after != *state {
                most = most.max(price + best_of(prices, &after, known));
            }
        });
    }
    known.insert(state.clone(), most);
    most
}

fn small_types(milli_cpu: bool) -> impl Strategy<Value = Vec<(WorkType, Nano)>> {
    let size = prop_oneof![
        prop_oneof![
            Just(250_u16),
            Just(310),
            Just(400),
            Just(500),
            Just(810),
            Just(1000)
        ]
        .prop_map(|milli| Demand::Share { milli }),
        (1_u16..4).prop_map(|count| Demand::Whole { count }),
        (0_u16..3).prop_map(|profile| Demand::Slice { profile }),
    ];
    let cpu = if milli_cpu { 0_i64..5 } else { 0..1 };
    let work = (size, cpu).prop_map(|(demand, cpu)| WorkType {
        demand,
        milli_cpu: cpu * 1000,
        allowed: None,
    });
    prop::collection::btree_map(work, 1_i64..1_000_000_000, 1..4)
        .prop_map(|types| types.into_iter().collect())
}

fn small_state() -> impl Strategy<Value = NodeState> {
    let card = prop_oneof![
        Just(CardState::FREE),
        Just(CardState::WHOLE),
        (0_u16..10).prop_map(|tenths| CardState::left(tenths * 100)),
        (0_u16..16).prop_map(CardState::sliced),
    ];
    (0_i64..9, prop::collection::vec(card, 0..4))
        .prop_map(|(cpu, cards)| NodeState::new(0, cpu * 1000, cards))
}

fn small_prices(types: &[(WorkType, Nano)]) -> Prices {
    let mut cut = kind(7, 8000);
    (cut.whole_only, cut.geometry) = (3, Some(0));
    let catalogue = Catalogue {
        kinds: vec![cut],
        geometries: vec![geometry()],
    };
    let mix = mix(&types
        .iter()
        .map(|(work, _)| (work.clone(), 1))
        .collect::<Vec<_>>());
    let prices = types.iter().map(|&(_, price)| price).collect();
    priced(&catalogue, &mix, prices)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn without_processor_time_the_worth_is_the_best_packing(
        types in small_types(false),
        state in small_state(),
    ) {
        let prices = small_prices(&types);
        prop_assert_eq!(prices.worth(&state), brute_force(&prices, &state));
    }

    #[test]
    fn with_processor_time_the_worth_bounds_the_best_packing(
        types in small_types(true),
        state in small_state(),
    ) {
        let prices = small_prices(&types);
        prop_assert!(prices.worth(&state) >= brute_force(&prices, &state));
    }

    #[test]
    fn more_left_is_never_worth_less(types in small_types(true), state in small_state()) {
        let prices = small_prices(&types);
        let worth = prices.worth(&state);
        for (work, _) in prices.prices() {
            state.for_each_after(work, prices.catalogue(), |after| {
                assert!(prices.worth(&after) <= worth, "{after:?} is worth more than {state:?}");
            });
        }
        let more_cpu = NodeState::new(0, state.milli_cpu + 1000, state.cards().iter().copied());
        prop_assert!(prices.worth(&more_cpu) >= worth);
    }

    #[test]
    fn any_mix_can_be_solved(
        demands in prop::collection::vec((0_u16..4, any::<u16>(), any::<i64>(), any::<u64>()), 0..8),
        cpu in any::<i64>(),
        cards in prop::collection::vec(any::<u16>(), 0..20),
        count in any::<u64>(),
        units in any::<u8>(),
        masks in prop::collection::vec(any::<(u16, u16)>(), 0..6),
    ) {
        let mut mix = Mix::new();
        for (which, size, milli_cpu, count) in demands {
            let demand = match which {
                0 => Demand::None,
                1 => Demand::Share { milli: size },
                2 => Demand::Whole { count: size },
                _ => Demand::Slice { profile: size },
            };
            mix.add(&WorkType { demand, milli_cpu, allowed: None }, count);
        }
        let odd = NodeKind { cards: u16::MAX, geometry: Some(0), model: 9, ..kind(0, cpu) };
        let mut lost = odd.clone();
        lost.geometry = Some(7);
        let catalogue = Catalogue {
            kinds: vec![odd, lost],
            geometries: vec![Geometry { units: units % 11, placements: masks }],
        };
        let cards = cards.into_iter().map(|bits| match bits % 4 {
            0 => CardState::FREE,
            1 => CardState::WHOLE,
            2 => CardState::left(bits),
            _ => CardState::sliced(bits),
        });
        let cards: Vec<CardState> = cards.collect();
        let fleet: Vec<(NodeState, u64)> = (0..3)
            .map(|kind| (NodeState::new(kind, cpu, cards.iter().copied()), count))
            .collect();
        let effort = Effort { rounds: 2 };
        let first = Prices::solve(&catalogue, &mix, &fleet, None, effort);
        let next = Prices::solve(&catalogue, &mix, &fleet, Some(&first), effort);
        for (before, _) in &fleet {
            for (work, price) in next.prices() {
                prop_assert!(price >= 0);
                before.for_each_after(work, &catalogue, |after| {
                    let _ = next.cost(before, &after);
                    let target = fragmentation::Target::new(&mix);
                    let _ = target.fragment(&after, &catalogue);
                });
            }
        }
    }
}

/// A fleet of two kinds; only the second is allowed for the first type, which is rare.
fn scarce() -> (Catalogue, Mix, Vec<(NodeState, u64)>) {
    let catalogue = catalogue(&[kind(2, 64_000), kind(2, 64_001)]);
    let picky = WorkType {
        allowed: Some(KindSet::from_iter([1])),
        ..whole(1, 1000)
    };
    let mix = mix(&[(picky, 20), (whole(1, 1000), 80)]);
    let fleet = vec![
        (state(0, 64_000, &[1000; 2]), 40),
        (state(1, 64_001, &[1000; 2]), 10),
    ];
    (catalogue, mix, fleet)
}

#[test]
fn work_that_can_go_anywhere_stays_off_the_nodes_that_others_need() {
    let (catalogue, mix, fleet) = scarce();
    let prices = Prices::solve(&catalogue, &mix, &fleet, None, Effort::FIRST);
    let cost = |kind, cpu| {
        prices.cost(
            &state(kind, cpu, &[1000; 2]),
            &state(kind, cpu - 1000, &[0, 1000]),
        )
    };
    assert!(cost(0, 64_000) < cost(1, 64_001));
}

#[test]
fn nodes_that_alone_have_the_processor_time_for_a_type_are_kept_for_it() {
    // Both kinds have eight cards; only the second has what the big type needs.
    let catalogue = catalogue(&[kind(8, 96_000), kind(8, 128_000)]);
    let mix = mix(&[(whole(8, 120_000), 10), (whole(1, 11_000), 700)]);
    let (small, big) = (state(0, 96_000, &[1000; 8]), state(1, 128_000, &[1000; 8]));
    let fleet = vec![(small.clone(), 90), (big.clone(), 10)];
    let prices = Prices::solve(&catalogue, &mix, &fleet, None, Effort::FIRST);
    let taken = [0, 1000, 1000, 1000, 1000, 1000, 1000, 1000];
    let on_small = prices.cost(&small, &state(0, 85_000, &taken));
    let on_big = prices.cost(&big, &state(1, 117_000, &taken));
    assert!(on_small * 3 < on_big * 2, "{on_small} and {on_big}");
}

#[test]
fn what_is_gone_since_the_last_prices_is_no_supply() {
    let catalogue = catalogue(&[kind(8, 96_000), kind(8, 128_000)]);
    let big = whole(8, 120_000);
    let mix = mix(&[(big.clone(), 1), (whole(1, 11_000), 790)]);
    let fleet = |big_free, big_taken| {
        vec![
            (state(0, 96_000, &[1000; 8]), 90),
            (state(1, 128_000, &[1000; 8]), big_free),
            (state(1, 117_000, &[0, 1000]), big_taken),
        ]
    };
    let price = |prices: &Prices| {
        let of_big = prices.prices().find(|(work, _)| **work == big);
        of_big.map_or(0, |(_, price)| price)
    };
    let before = Prices::solve(&catalogue, &mix, &fleet(10, 0), None, Effort::FIRST);
    let follow = |fleet: &[(NodeState, u64)]| {
        let prices = Prices::solve(&catalogue, &mix, fleet, Some(&before), Effort::FOLLOW);
        price(&prices)
    };
    let (kept, gone) = (follow(&fleet(10, 0)), follow(&fleet(0, 10)));
    assert!(kept < 6_500_000_000, "there are ten places for one: {kept}");
    assert!(gone > 7_900_000_000, "there is none: {gone}");
}

#[test]
fn the_most_of_one_type_is_what_processor_time_and_cards_hold() {
    let catalogue = Catalogue {
        kinds: vec![NodeKind {
            geometry: Some(0),
            ..kind(4, 10_000)
        }],
        geometries: vec![geometry()],
    };
    let cards = [400, 1000, 1000].map(CardState::left);
    let cards = cards.into_iter().chain([CardState::sliced(0b0001)]);
    let node = NodeState::new(0, 10_000, cards);
    let most = |work: WorkType| node.most(&work, &catalogue);
    assert_eq!(most(whole(1, 0)), 2);
    assert_eq!(most(whole(2, 6000)), 1);
    assert_eq!(most(whole(3, 0)), 0);
    assert_eq!(most(share(300, 0)), 1 + 3 + 3);
    assert_eq!(most(share(300, 2500)), 4);
    assert_eq!(most(slice(0, 0)), 4 + 4 + 3);
    assert_eq!(most(slice(1, 0)), 2 + 2 + 1);
    assert_eq!(most(slice(2, 0)), 2);
    assert_eq!(most(share(0, 3000)), 3);
    assert_eq!(most(share(0, 0)), u64::MAX);
    let elsewhere = WorkType {
        allowed: Some(KindSet::from_iter([1])),
        ..whole(1, 0)
    };
    assert_eq!(most(elsewhere), 0);
}

#[test]
fn the_same_input_gives_the_same_prices_in_any_order() {
    let (catalogue, mix, mut fleet) = scarce();
    let solve = |fleet: &[(NodeState, u64)]| {
        let first = Prices::solve(&catalogue, &mix, fleet, None, Effort { rounds: 30 });
        Prices::solve(&catalogue, &mix, fleet, Some(&first), Effort::FOLLOW)
    };
    let prices = solve(&fleet);
    assert_eq!(prices.version(), 2);
    fleet.reverse();
    assert_eq!(solve(&fleet), prices);
    assert_eq!(prices.worth(&fleet[0].0), solve(&fleet).worth(&fleet[0].0));
}

/// Prices are decisions: if one of these changes, so do placements on every platform.
#[test]
fn prices_are_what_they_were() {
    let (catalogue, mix, fleet) = scarce();
    let prices = Prices::solve(&catalogue, &mix, &fleet, None, Effort { rounds: 50 });
    let found: Vec<Nano> = prices.prices().map(|(_, price)| price).collect();
    assert_eq!(found, PINNED);
}

const PINNED: [Nano; 2] = [415_348_483, 445_175_398];

#[test]
fn without_a_mix_the_fullest_place_costs_least() {
    let catalogue = catalogue(&[kind(2, 8000)]);
    let prices = Prices::solve(&catalogue, &Mix::new(), &[], None, Effort::FIRST);
    let cost = |before: &[u16], after: &[u16]| {
        prices.cost(&state(0, 8000, before), &state(0, 7000, after))
    };
    assert!(cost(&[500, 1000], &[0, 1000]) < cost(&[1000, 1000], &[500, 1000]));
    // Kinds that the prices do not know are worth nothing, which is no error.
    assert_eq!(prices.worth(&state(5, 8000, &[1000])), 0);
}

#[test]
fn cut_cards_are_worth_what_still_fits_at_its_places() {
    let mut cut = kind(1, 8000);
    cut.geometry = Some(0);
    let catalogue = Catalogue {
        kinds: vec![cut],
        geometries: vec![geometry()],
    };
    let mix = mix(&[(slice(0, 0), 1), (slice(1, 0), 1), (slice(2, 0), 1)]);
    let prices = priced(&catalogue, &mix, vec![10, 25, 45]);
    let worth = |taken| prices.worth(&NodeState::new(0, 0, [CardState::sliced(taken)]));
    // Three quarters and a quarter; a half and a quarter; two quarters apart; nothing.
    assert_eq!([0, 0b0001, 0b0110, 0b1111].map(worth), [55, 35, 20, 0]);
    // A card that is not cut yet can be.
    assert_eq!(prices.worth(&NodeState::new(0, 0, [CardState::FREE])), 55);
}

#[test]
fn a_mix_forgets() {
    let mut seen = mix(&[(whole(1, 1000), 64), (whole(2, 1000), 1)]);
    for _ in 0..500 {
        seen.forget(4);
        seen.add(&share(500, 1000), 1);
    }
    // What came last and steadily is all that is left, at sixteen arrivals.
    let [(work, weight)] = seen.types() else {
        panic!("{seen:?}");
    };
    assert_eq!(*work, share(500, 1000));
    assert!(weight.abs_diff(16 * ARRIVAL) < ARRIVAL / 100, "{weight}");
}

#[test]
fn types_that_come_and_go_keep_what_is_known_of_the_others() {
    let (catalogue, mut mix, fleet) = scarce();
    let first = Prices::solve(&catalogue, &mix, &fleet, None, Effort::FIRST);
    mix.add(&whole(2, 2000), 1);
    let next = Prices::solve(&catalogue, &mix, &fleet, Some(&first), Effort::FOLLOW);
    for (work, before) in first.prices() {
        let (_, after) = next.prices().find(|(other, _)| *other == work).unwrap();
        assert!(
            before.abs_diff(after) < 50_000_000,
            "{work:?}: {before} to {after}"
        );
    }
}

#[cfg(feature = "serde")]
#[test]
fn prices_survive_being_written_and_read() {
    let (catalogue, mix, fleet) = scarce();
    let prices = Prices::solve(&catalogue, &mix, &fleet, None, Effort::FOLLOW);
    let text = serde_json::to_string(&prices).unwrap();
    let read: Prices = serde_json::from_str(&text).unwrap();
    assert_eq!(read, prices);
    let after = state(0, 63_000, &[0, 1000]);
    assert_eq!(
        read.cost(&fleet[0].0, &after),
        prices.cost(&fleet[0].0, &after)
    );
}

mod fragments {
    use super::{fragmentation::Target, *};

    /// Halves ask for three quarters of the work, pairs of whole cards for the rest.
    fn target() -> (Catalogue, Target) {
        let mix = mix(&[(share(500, 4000), 3), (whole(2, 8000), 1)]);
        (catalogue(&[kind(2, 16_000)]), Target::new(&mix))
    }

    #[test]
    fn they_are_what_one_computes_by_hand() {
        let (catalogue, target) = target();
        let fragment = |cpu, left: &[u16]| target.fragment(&state(0, cpu, left), &catalogue);
        // All fits everywhere.
        assert_eq!(fragment(16_000, &[1000, 1000]), 0);
        // Halves fit; a pair of whole cards does not, so all 1.5 cards are lost to a quarter.
        assert_eq!(fragment(16_000, &[500, 1000]), 375_000);
        // Halves fit on the whole card only: 0.4 are lost to them, 1.4 to the pair.
        assert_eq!(fragment(16_000, &[400, 1000]), 300_000 + 350_000);
        // Too little processor time for anything.
        assert_eq!(fragment(3_999, &[1000, 1000]), 2_000_000);
        assert_eq!(fragment(0, &[0, 0]), 0);
    }

    #[test]
    fn rare_types_are_no_target_and_work_without_cards_can_use_none() {
        let none = WorkType {
            demand: Demand::None,
            milli_cpu: 1000,
            allowed: None,
        };
        let target = Target::new(&mix(&[(share(500, 0), 48), (none, 47), (whole(8, 0), 5)]));
        let catalogue = catalogue(&[kind(1, 16_000)]);
        let fragment = target.fragment(&state(0, 16_000, &[1000]), &catalogue);
        assert_eq!(fragment, 1_000_000 * 47 / 95);
    }

    #[test]
    fn the_score_is_the_logistic_function_in_whole_percent() {
        for decrease in (-8_000_000..8_000_000_i64).step_by(1013) {
            let exact = 100.0 / (1.0 + libm::exp(-(decrease as f64) / 1e6));
            assert_eq!(Target::score(decrease, 0), exact as i64, "{decrease}");
        }
        assert_eq!(Target::score(i64::MAX, i64::MIN), 99);
        assert_eq!(Target::score(i64::MIN, i64::MAX), 0);
    }
}
