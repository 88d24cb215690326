//! The best ring over a set of cards, for people and for the order of ranks.

use alloc::{vec, vec::Vec};

use super::{
    build::{lowest, members},
    score::Scores,
};

/// A ring that visits each card of a set once.
pub(super) struct Ring {
    /// The cards from the lowest on, the lowest order of equals.
    pub(super) order: Vec<u32>,
    /// The score of the slowest hop; `None` for less than two cards.
    pub(super) slowest: Option<i32>,
}

/// The ring whose slowest hop is best. 2^cards steps for each different score of a pair.
pub(super) fn best(scores: &Scores, set: u16) -> Ring {
    let set = set as usize;
    let mut values = Vec::new();
    for a in members(set) {
        values.extend(members(set).filter(|b| *b < a).map(|b| scores.pair(a, b)));
    }
    values.sort_unstable_by(|a, b| b.cmp(a));
    values.dedup();
    let ring = values.into_iter().find_map(|value| {
        let order = order(scores, set, value)?;
        Some(Ring {
            order,
            slowest: Some(value),
        })
    });
    ring.unwrap_or_else(|| Ring {
        order: members(set).map(|card| card as u32).collect(),
        slowest: None,
    })
}

/// A ring without a hop below `value`, by paths from the lowest card: `ends` holds where a path
/// over exactly a subset may end.
fn order(scores: &Scores, set: usize, value: i32) -> Option<Vec<u32>> {
    let joined = |card: usize| {
        let near = members(set).filter(|other| scores.pair(card, *other) >= value);
        near.fold(0, |near, other| near | 1 << other)
    };
    let joined: [usize; 16] = core::array::from_fn(joined);
    let first = lowest(set);
    let mut ends = vec![0; set + 1];
    ends[first] = first;
    let mut subset = first;
    while subset != set {
        subset = (subset.wrapping_sub(set) & set) | first; // the next larger one with the first
        ends[subset] = members(subset ^ first)
            .filter(|last| ends[subset ^ 1 << last] & joined[*last] != 0)
            .fold(0, |ends, last| ends | 1 << last);
    }
    // From the first card backwards along the ring, which has no direction.
    let mut order = vec![first.trailing_zeros()];
    let (mut rest, mut before) = (set, joined[first.trailing_zeros() as usize]);
    while rest != first {
        let last = lowest(ends[rest] & before);
        if last == 0 {
            return None;
        }
        order.push(last.trailing_zeros());
        before = joined[last.trailing_zeros() as usize];
        rest ^= last;
    }
    Some(order)
}
