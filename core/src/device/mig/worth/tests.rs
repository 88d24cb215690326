use alloc::{vec, vec::Vec};

use super::super::{Geometry, Market, MigFleet, MigState, MigWorth, ProfileIx};
use crate::device::model::{find, models};

fn h100() -> &'static Geometry {
    find("NVIDIA-H100-80GB-HBM3")
        .and_then(|model| model.mig)
        .expect("is in the table")
}

fn weights(geometry: &Geometry, of: &[(&str, u32)]) -> Vec<u32> {
    let mut weights = vec![0; geometry.profiles.len()];
    for (name, weight) in of {
        let ix = geometry.profile(name).expect("is in the table");
        weights[usize::from(ix.0)] = *weight;
    }
    weights
}

/// Numbers that look random; the same each time.
fn numbers() -> impl FnMut(usize) -> usize {
    let mut word = 1_u64;
    move |below| {
        word = word
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (word >> 33) as usize % below
    }
}

#[test]
fn without_a_mix_a_state_is_worth_what_fits() {
    let geometry = h100();
    let plain = MigWorth::plain(geometry);
    // 7 x 1g, 4 x 1g.20gb, 3 x 2g, 2 x 3g, 4g, 7g.
    assert_eq!(
        plain.worth(MigState::EMPTY) / MigWorth::SLICE,
        7 + 4 + 6 + 6 + 4 + 7
    );
    assert_eq!(plain.worth(MigState::occupied(0xFF)), 0);
    assert_eq!(MigWorth::solve(geometry, &[], Market::default()), plain);
    assert_eq!(
        MigWorth::solve(geometry, &[0; 99], Market::default()),
        plain
    );
}

#[test]
fn three_slices_keep_out_of_the_half_with_four() {
    let geometry = h100();
    let mix = weights(geometry, &[("1g.10gb", 6), ("3g.40gb", 2), ("4g.40gb", 2)]);
    let worth = MigWorth::solve(geometry, &mix, Market::default());
    let three = geometry.profile("3g.40gb").expect("is in the table");
    assert_eq!(
        worth
            .best_start(MigState::EMPTY, three)
            .map(|(_, start)| start),
        Some(4)
    );
}

#[test]
fn two_instances_end_later_than_one() {
    let geometry = h100();
    let mix = weights(geometry, &[("1g.10gb", 1), ("2g.20gb", 1), ("7g.80gb", 1)]);
    let worth = MigWorth::solve(geometry, &mix, Market::default());
    let place = |state, name, start| {
        let ix = geometry.profile(name).expect("is in the table");
        geometry.put(state, ix, start).expect("has room")
    };
    let one = place(MigState::EMPTY, "2g.20gb", 0);
    let two = place(place(MigState::EMPTY, "1g.10gb", 0), "1g.10gb", 1);
    assert_eq!(one.mask, two.mask);
    assert!(
        worth.worth(one) > worth.worth(two),
        "it will be empty sooner"
    );
    // Nobody told what is there: something in between.
    let unknown = worth.worth(MigState::occupied(one.mask));
    assert!((worth.worth(two)..=worth.worth(one)).contains(&unknown));
}

#[test]
fn a_table_serves_again_for_the_same_mix_only() {
    let geometry = h100();
    let mix = |ones| weights(geometry, &[("1g.10gb", ones), ("3g.40gb", 2)]);
    let market = Market {
        rounds: 20,
        ..Market::default()
    };
    let table = MigWorth::solve(geometry, &mix(4), market);
    // If the table is used again, a worth that nobody solved comes along.
    let mut marked = table.clone();
    marked.states[0].1 = 1;
    let doubled: Vec<u32> = mix(4).iter().map(|weight| weight * 2).collect();
    assert_eq!(marked.solve_again(&mix(4), market), marked);
    assert_eq!(marked.solve_again(&doubled, market), marked);
    let solved = |mix: &[u32], market| MigWorth::solve(geometry, mix, market);
    assert_eq!(marked.solve_again(&mix(5), market), solved(&mix(5), market));
    let longer = Market {
        rounds: 21,
        ..market
    };
    assert_eq!(marked.solve_again(&mix(4), longer), solved(&mix(4), longer));
    assert_eq!(solved(&doubled, market), table);
    assert_eq!(marked.solve_again(&[], market), MigWorth::plain(geometry));
}

#[test]
fn every_model_has_a_table() {
    for geometry in models().filter_map(|model| model.mig) {
        let mix = vec![1; geometry.profiles.len()];
        let market = Market {
            rounds: 20,
            ..Market::default()
        };
        let worth = MigWorth::solve(geometry, &mix, market);
        assert_eq!(worth.worth(MigState::EMPTY), 0, "{}", geometry.name);
        let full = MigState::occupied((1 << geometry.units) - 1);
        assert!(worth.worth(full) < 0, "{}", geometry.name);
    }
}

/// The fleet's choice is the cheapest place of all, by the definition; and it forgets nothing.
#[test]
fn a_fleet_chooses_as_a_look_at_every_card_does() {
    let geometry = h100();
    let mix = weights(
        geometry,
        &[
            ("1g.10gb", 5),
            ("2g.20gb", 2),
            ("3g.40gb", 2),
            ("7g.80gb", 1),
        ],
    );
    for worth in [
        MigWorth::plain(geometry),
        MigWorth::solve(geometry, &mix, Market::default()),
    ] {
        let mut fleet = MigFleet::new(worth.clone(), 70);
        let mut cards = vec![MigState::EMPTY; 70];
        let mut held: Vec<(u32, ProfileIx, u8)> = Vec::new();
        let mut below = numbers();
        for _ in 0..3_000 {
            let ix = ProfileIx(below(geometry.profiles.len()) as u8);
            let places = (0_u32..).zip(&cards).filter_map(|(card, &state)| {
                let (cost, start) = worth.best_start(state, ix)?;
                let instances = state.begins().count_ones();
                let rank = (
                    state.is_empty(),
                    cost,
                    9 - instances,
                    8 - state.mask.count_ones(),
                );
                Some((rank, state, card, start))
            });
            // Different states may have the same rank: only that is compared.
            let best = places.min_by_key(|(rank, ..)| *rank);
            let taken = fleet.take(ix);
            assert_eq!(taken.is_some(), best.is_some());
            if let (Some((card, start)), Some((rank, ..))) = (taken, best) {
                let state = cards[card as usize];
                let (cost, at) = worth.best_start(state, ix).expect("has room");
                let instances = state.begins().count_ones();
                let units = state.mask.count_ones();
                assert_eq!((state.is_empty(), cost, 9 - instances, 8 - units), rank);
                assert_eq!(start, at);
                let lowest = cards.iter().position(|other| *other == state);
                assert_eq!(lowest, Some(card as usize));
                cards[card as usize] = geometry.put(state, ix, start).expect("has room");
                held.push((card, ix, start));
            }
            if below(3) > 0 && !held.is_empty() {
                let (card, ix, start) = held.swap_remove(below(held.len()));
                assert!(fleet.give_back(card, ix, start));
                let state = &mut cards[card as usize];
                *state = geometry.take_out(*state, ix, start).expect("was there");
            }
            for (card, state) in (0_u32..).zip(&cards) {
                assert_eq!(fleet.state(card), Some(*state));
            }
        }
        assert!(!fleet.give_back(70, ProfileIx(0), 0));
        assert!(!fleet.give_back(0, ProfileIx(99), 0));
        assert_eq!(fleet.take(ProfileIx(99)), None);
    }
}
