//! Best sets, capacities, choices and classes of free sets equal brute force.

use std::collections::{BTreeMap, BTreeSet};

use gangline::{
    bits::CardSet,
    device::links::{LinkMatrix, LinkTable, Nearness},
};
use proptest::prelude::*;

use crate::reference::{Oracle, is_near, machine, machines, sets, subsets};

/// Lower cards first.
fn low_cards(set: CardSet) -> u64 {
    set.0.reverse_bits()
}

/// The rule, by definition: what stays possible, then the total, then the set's own worth.
fn key(oracle: &Oracle, free: CardSet, set: CardSet, near: Nearness) -> (i32, i32, i32) {
    let rest = free.difference(set);
    let count = set.len();
    let (own, same) = (oracle.worth(set), oracle.most_worth(rest, count));
    let others: i32 = (2..=16)
        .filter(|size| *size != count)
        .map(|size| weight(size) * oracle.most_worth(rest, size))
        .sum();
    (
        oracle.capacity(rest, count, near),
        8 * (own + same) + others,
        own,
    )
}

fn weight(size: u32) -> i32 {
    if size.is_power_of_two() { 4 } else { 1 }
}

fn check(name: &str, matrix: &LinkMatrix) {
    let table = LinkTable::new(matrix);
    let oracle = Oracle::new(matrix);
    for free in sets(matrix) {
        assert_eq!(table.worth(free), oracle.worth(free), "{name} {free}");
        let offers = (2..=16).map(|size| weight(size) * oracle.most_worth(free, size));
        let standing: i32 = offers.sum();
        assert_eq!(table.standing(free), standing, "{name} {free}");
        for near in Nearness::ALL {
            for count in 1..=matrix.cards() + 1 {
                check_answer(name, &table, &oracle, free, count, near);
            }
        }
    }
}

fn check_answer(
    name: &str,
    table: &LinkTable,
    oracle: &Oracle,
    free: CardSet,
    count: u32,
    near: Nearness,
) {
    let question = format!("{name}: {count} of {free}, {near:?}");
    let capacity = oracle.capacity(free, count, near);
    assert_eq!(
        table.capacity(free, count, near) as i32,
        capacity,
        "{question}"
    );
    let keys = subsets(free, count)
        .filter(|set| is_near(oracle.matrix, *set, near))
        .map(|set| (key(oracle, free, set, near), low_cards(set), set));
    let expected = keys.max();
    let Some(best) = table.best(free, count, near) else {
        assert!(expected.is_none(), "{question}");
        return;
    };
    let (expected_key, _, expected) = expected.expect(&question);
    assert!(
        free.contains_all(best.cards) && best.cards.len() == count,
        "{question}"
    );
    assert!(is_near(oracle.matrix, best.cards, near), "{question}");
    assert_eq!(
        key(oracle, free, best.cards, near),
        expected_key,
        "{question}"
    );
    if table.canonical(free) == free {
        assert_eq!(best.cards, expected, "{question}");
    }
    let rest = free.difference(best.cards);
    assert_eq!(
        (best.worth, best.rest),
        (table.worth(best.cards), table.standing(rest))
    );
    assert_eq!(
        oracle.capacity(rest, count, near),
        capacity - 1,
        "{question}"
    );
}

#[test]
fn answers_about_known_machines_equal_brute_force() {
    for (name, matrix) in machines().filter(|(_, matrix)| matrix.cards() <= 8) {
        check(name, &matrix);
    }
}

/// What one question says without the names of the cards: the capacity, worth and rest of the best
/// set, how many choices of which worth.
type Answer = (u32, Option<(i32, i32)>, BTreeMap<i32, u32>);

/// What every question about a free set says.
fn answers(table: &LinkTable, free: CardSet) -> Vec<Answer> {
    let mut answers = Vec::new();
    for near in Nearness::ALL {
        for count in 1..=free.len() {
            let best = table.best(free, count, near);
            let mut choices = BTreeMap::new();
            table.choices(free, count, near, &mut |set| {
                *choices.entry(table.worth(set)).or_default() += 1;
            });
            answers.push((
                table.capacity(free, count, near),
                best.map(|best| (best.worth, best.rest)),
                choices,
            ));
        }
    }
    answers
}

fn check_canonical(name: &str, matrix: &LinkMatrix) {
    let table = LinkTable::new(matrix);
    for free in sets(matrix) {
        let canonical = table.canonical(free);
        assert_eq!(canonical.len(), free.len(), "{name} {free}");
        assert_eq!(table.canonical(canonical), canonical, "{name} {free}");
        assert_eq!(
            answers(&table, free),
            answers(&table, canonical),
            "{name} {free}"
        );
        for near in Nearness::ALL {
            for count in 1..=free.len() {
                // What stays of alike sets is alike.
                let rest = |free: CardSet| {
                    let best = table.best(free, count, near)?;
                    Some(table.canonical(free.difference(best.cards)))
                };
                assert_eq!(rest(free), rest(canonical), "{name} {free} {count}");
            }
        }
    }
}

#[test]
fn alike_free_sets_have_the_same_answers() {
    for (name, matrix) in machines().filter(|(_, matrix)| matrix.cards() <= 8) {
        check_canonical(name, &matrix);
    }
}

fn check_choices(matrix: &LinkMatrix) {
    let table = LinkTable::new(matrix);
    for free in sets(matrix) {
        for near in Nearness::ALL {
            for count in 0..=matrix.cards() {
                let mut choices = Vec::new();
                table.choices(free, count, near, &mut |set| choices.push(set));
                let lows: Vec<_> = choices.iter().map(|set| low_cards(*set)).collect();
                assert!(
                    lows.is_sorted_by(|a, b| a > b),
                    "{free} {count} {choices:?}"
                );
                // Each near subset has exactly one of its kind among the choices: same twins taken,
                // same twins left.
                let kind =
                    |set: CardSet| (table.canonical(set), table.canonical(free.difference(set)));
                let kinds: BTreeSet<_> = choices.iter().map(|set| kind(*set)).collect();
                assert_eq!(kinds.len(), choices.len(), "{free} {count} {choices:?}");
                let expected: BTreeSet<_> = subsets(free, count)
                    .filter(|set| is_near(matrix, *set, near) && count > 0)
                    .map(kind)
                    .collect();
                assert_eq!(kinds, expected, "{free} {count} {near:?}");
            }
        }
    }
}

#[test]
fn choices_are_all_near_subsets_up_to_twins() {
    for (_, matrix) in machines().filter(|(_, matrix)| matrix.cards() <= 8) {
        check_choices(&matrix);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn answers_about_random_machines_equal_brute_force(matrix in machine(6)) {
        check("random", &matrix);
        check_canonical("random", &matrix);
        check_choices(&matrix);
    }
}
