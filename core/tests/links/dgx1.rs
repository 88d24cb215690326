//! The rules of NVIDIA/go-gpuallocator on DGX-1 with V100: its scores, what its tests expect, and
//! where our choice is another one.

use gangline::{
    bits::CardSet,
    device::links::{Link, LinkMatrix, LinkTable, Nearness, known},
};

use crate::reference::{all, cut, sets, subsets};

fn dgx1() -> LinkMatrix {
    known("dgx1-v100").unwrap()
}

fn set<const N: usize>(cards: [u32; N]) -> CardSet {
    CardSet(cards.iter().fold(0, |set, card| set | 1 << card))
}

/// go-gpuallocator's score of a pair: the PCIe path and 100 for each NVLink.
fn pair_score(matrix: &LinkMatrix, a: u32, b: u32) -> u32 {
    let pcie = match matrix.pcie(a, b).unwrap() {
        Link::System => 10,
        Link::Node => 20,
        Link::HostBridge => 30,
        Link::MultiSwitch => 40,
        Link::SingleSwitch => 50,
        other => panic!("{other} is not PCIe"),
    };
    match matrix.link(a, b).unwrap() {
        Link::Nvlink(links) => pcie + 100 * u32::from(links),
        _ => pcie,
    }
}

fn set_score(matrix: &LinkMatrix, set: CardSet) -> u32 {
    let others = |a: u32| set.iter().filter(move |b| *b < a);
    let pairs = set.iter().flat_map(|a| others(a).map(move |b| (a, b)));
    pairs.map(|(a, b)| pair_score(matrix, a, b)).sum()
}

/// The highest score of disjoint sets of `count` that use up the free cards but for a remainder.
fn partition_score(matrix: &LinkMatrix, free: CardSet, count: u32) -> u32 {
    let with = |set: CardSet| {
        set_score(matrix, set) + partition_score(matrix, free.difference(set), count)
    };
    // The set of the lowest card, or any when that may be left over.
    let first = free.lowest(1).unwrap_or_default();
    let is_full = free.len().is_multiple_of(count);
    let sets = subsets(free, count).filter(|set| !is_full || set.contains_all(first));
    sets.map(with).max().unwrap_or(0)
}

#[test]
fn scores_are_go_gpuallocators() {
    let matrix = dgx1();
    for (score, pairs) in [
        (250, vec![(2, 3), (6, 7)]),
        (230, vec![(0, 3), (1, 2), (4, 7), (5, 6)]),
        (210, vec![(0, 4), (1, 5)]),
        (150, vec![(0, 1), (4, 5)]),
        (130, vec![(0, 2), (1, 3), (4, 6), (5, 7)]),
        (110, vec![(2, 6), (3, 7)]),
        (10, vec![(0, 5), (0, 7), (1, 4), (2, 7), (3, 4)]),
    ] {
        for (a, b) in pairs {
            assert_eq!(pair_score(&matrix, a, b), score, "{a} {b}");
        }
    }
    let quads = || subsets(all(&matrix), 4).map(|set| (set_score(&matrix, set), set));
    let best = quads().map(|(score, _)| score).max().unwrap();
    let best: Vec<_> = quads().filter(|(score, _)| *score == best).collect();
    assert_eq!(best, [(1120, set([0, 1, 2, 3])), (1120, set([4, 5, 6, 7]))]);
    let worst = quads().map(|(score, _)| score).min();
    assert_eq!(
        (worst, set_score(&matrix, set([0, 2, 5, 7]))),
        (Some(300), 300)
    );
    assert_eq!(set_score(&matrix, all(&matrix)), 3000);
    assert_eq!(partition_score(&matrix, all(&matrix), 2), 920);
}

fn best<const N: usize>(free: [u32; N], count: u32) -> CardSet {
    let table = LinkTable::new(&dgx1());
    table.best(set(free), count, Nearness::Any).unwrap().cards
}

#[test]
fn upstreams_expectations_hold() {
    assert_eq!(best([0, 2, 4, 5], 2), set([4, 5]));
    assert_eq!(best([0, 4, 5, 6], 2), set([5, 6]));
    assert_eq!(best([0, 1, 3], 2), set([0, 3]));
    assert_eq!(best([0, 1, 4], 2), set([0, 4]));
}

/// Upstream can be told cards that must be among the chosen; here that is a choice by worth and
/// standing.
#[test]
fn upstreams_expectations_with_a_required_card_hold() {
    let matrix = dgx1();
    let table = LinkTable::new(&matrix);
    let with_4 = |count| {
        let mut best = (i32::MIN, CardSet::EMPTY);
        table.choices(all(&matrix), count, Nearness::Any, &mut |set| {
            let rest = all(&matrix).difference(set);
            let value = table.worth(set) + table.standing(rest);
            if set.contains(4) && value > best.0 {
                best = (value, set);
            }
        });
        best.1
    };
    assert_eq!(with_4(2), set([4, 7]));
    assert_eq!(with_4(4), set([4, 5, 6, 7]));
}

/// The best pair is {2,3}, but taking it leaves {0,1} or {0,4}{1,5}.
#[test]
fn a_pair_is_taken_that_leaves_good_pairs() {
    assert_eq!(best([0, 1, 2, 3, 4, 5, 6, 7], 2), set([0, 3]));
    assert_eq!(best([1, 2, 4, 5, 6, 7], 2), set([1, 2]));
    assert_eq!(best([0, 1, 2, 3], 2), set([0, 3]));
    // Static policies hard-code these pairs.
    let table = LinkTable::new(&dgx1());
    let mut free = all(&dgx1());
    let mut pairs = Vec::new();
    while let Some(best) = table.best(free, 2, Nearness::Any) {
        pairs.push(best.cards);
        free = free.difference(best.cards);
    }
    pairs.sort();
    assert_eq!(pairs, [set([1, 2]), set([0, 3]), set([5, 6]), set([4, 7])]);
}

/// Of all questions the answers that upstream's score would not give, and why they are ours: more
/// crosses the narrowest cuts of the sets, where upstream counts the links of a quad and a fifth
/// card that hangs on it by one link; or more stays for those who ask for other sizes.
#[test]
fn where_the_choice_is_not_upstreams_it_is_for_bandwidth_or_for_other_sizes() {
    let matrix = dgx1();
    let table = LinkTable::new(&matrix);
    let cuts = |set: CardSet, rest: CardSet| {
        let own = set.len() as i32 * cut(&matrix, set);
        own + most_cut(&matrix, rest, set.len())
    };
    let (mut questions, mut wider, mut left) = (0, 0, 0);
    for free in sets(&matrix) {
        for count in 2..free.len() {
            questions += 1;
            let most = partition_score(&matrix, free, count);
            let ours = table.best(free, count, Nearness::Any).unwrap().cards;
            let rest = free.difference(ours);
            if set_score(&matrix, ours) + partition_score(&matrix, rest, count) == most {
                continue;
            }
            let theirs = subsets(free, count)
                .filter(|set| {
                    let rest = partition_score(&matrix, free.difference(*set), count);
                    set_score(&matrix, *set) + rest == most
                })
                .max_by_key(|set| set_score(&matrix, *set))
                .unwrap();
            let their_rest = free.difference(theirs);
            if cuts(ours, rest) > cuts(theirs, their_rest) {
                wider += 1;
            } else {
                assert!(
                    table.standing(rest) > table.standing(their_rest),
                    "{count} of {free}: {ours}, not {theirs}"
                );
                left += 1;
            }
        }
    }
    assert_eq!((questions, wider, left), (522, 36, 6));
}

fn most_cut(matrix: &LinkMatrix, free: CardSet, count: u32) -> i32 {
    let with = |set: CardSet| {
        let rest = most_cut(matrix, free.difference(set), count);
        count as i32 * cut(matrix, set) + rest
    };
    subsets(free, count).map(with).max().unwrap_or(0)
}
