//! What the tables must say, straight from the definitions and by trying everything.

use gangline::{
    bits::CardSet,
    device::links::{Link, LinkMatrix, Nearness, names},
};
use proptest::prelude::*;

/// Every known machine.
pub(crate) fn machines() -> impl Iterator<Item = (&'static str, LinkMatrix)> {
    names().map(|name| (name, gangline::device::links::known(name).unwrap()))
}

pub(crate) fn all(matrix: &LinkMatrix) -> CardSet {
    CardSet::first(matrix.cards()).unwrap()
}

/// Every set of the machine's cards.
pub(crate) fn sets(matrix: &LinkMatrix) -> impl Iterator<Item = CardSet> + use<> {
    (0..1 << matrix.cards()).map(CardSet)
}

pub(crate) fn subsets(free: CardSet, count: u32) -> impl Iterator<Item = CardSet> {
    let subsets = (1..=free.0).map(CardSet);
    subsets.filter(move |set| free.contains_all(*set) && set.len() == count)
}

fn pairs(set: CardSet) -> impl Iterator<Item = (u32, u32)> {
    set.iter()
        .flat_map(move |a| set.iter().filter(move |b| *b < a).map(move |b| (a, b)))
}

pub(crate) fn is_near(matrix: &LinkMatrix, set: CardSet, near: Nearness) -> bool {
    pairs(set).all(|(a, b)| match near {
        Nearness::Any => true,
        Nearness::NvlinkIsland => {
            matches!(matrix.link(a, b), Some(Link::Nvlink(_) | Link::Xgmi { .. }))
        }
        Nearness::NumaNode => {
            matrix.numa_node(a).is_some() && matrix.numa_node(a) == matrix.numa_node(b)
        }
    })
}

fn pcie(link: Link) -> i32 {
    match link {
        Link::System => 10,
        Link::Node => 22,
        Link::HostBridge => 30,
        Link::MultiSwitch => 36,
        Link::SingleSwitch => 40,
        other => panic!("{other} is not PCIe"),
    }
}

fn fabric(matrix: &LinkMatrix, a: u32, b: u32) -> i32 {
    match matrix.link(a, b) {
        Some(Link::Nvlink(links)) => 100 * i32::from(links),
        Some(Link::Xgmi { hops }) => 240 / i32::from(hops),
        _ => 0,
    }
}

fn path(matrix: &LinkMatrix, a: u32, b: u32) -> i32 {
    let path = pcie(matrix.pcie(a, b).unwrap());
    let same_node = matrix.numa_node(a).is_some() && matrix.numa_node(a) == matrix.numa_node(b);
    if same_node { path.max(22) } else { path }
}

pub(crate) fn score(matrix: &LinkMatrix, a: u32, b: u32) -> i32 {
    fabric(matrix, a, b) + path(matrix, a, b)
}

/// What crosses the narrowest cut of a set in two parts.
pub(crate) fn cut(matrix: &LinkMatrix, set: CardSet) -> i32 {
    let of_card = |card: u32| {
        let links = (0..matrix.cards()).map(|other| fabric(matrix, card, other));
        let sum: i32 = links.clone().sum();
        if sum > 1800 {
            links.max().unwrap()
        } else {
            sum
        }
    };
    let parts = || {
        (1..set.0)
            .map(CardSet)
            .filter(|part| set.contains_all(*part))
    };
    let across = |part: CardSet| {
        let others = set.difference(part);
        part.iter()
            .flat_map(move |a| others.iter().map(move |b| (a, b)))
    };
    let links = parts().map(|part| {
        let sum: i32 = across(part).map(|(a, b)| fabric(matrix, a, b)).sum();
        let of_part = |part: CardSet| part.iter().map(of_card).sum();
        sum.min(of_part(part)).min(of_part(set.difference(part)))
    });
    let paths = parts().map(|part| across(part).map(|(a, b)| path(matrix, a, b)).max().unwrap());
    links.min().unwrap() + paths.min().unwrap()
}

/// The slowest hop of the best ring, by trying every ring.
pub(crate) fn ring(matrix: &LinkMatrix, set: CardSet) -> i32 {
    let first = set.iter().next().unwrap();
    let rest = CardSet(set.0 & !(1 << first));
    best_path(matrix, first, first, rest, i32::MAX)
}

fn best_path(matrix: &LinkMatrix, first: u32, last: u32, rest: CardSet, slowest: i32) -> i32 {
    if rest.is_empty() {
        return slowest.min(score(matrix, last, first));
    }
    let step = |next: u32| {
        let rest = CardSet(rest.0 & !(1 << next));
        let slowest = slowest.min(score(matrix, last, next));
        best_path(matrix, first, next, rest, slowest)
    };
    rest.iter().map(step).max().unwrap()
}

fn worth(matrix: &LinkMatrix, set: CardSet) -> i32 {
    let nic = |card| matrix.nearest_nic(card).map_or(0, |(_, link)| pcie(link));
    let nics: i32 = set.iter().map(nic).sum();
    let cards = set.len() as i32;
    if cards < 2 {
        return nics;
    }
    let sum: i32 = pairs(set).map(|(a, b)| score(matrix, a, b)).sum();
    12 * cards * cut(matrix, set) + 8 * sum / (cards - 1) + nics
}

/// What one machine's sets are worth, and what can be made of free cards.
pub(crate) struct Oracle<'a> {
    pub(crate) matrix: &'a LinkMatrix,
    worth: Vec<i32>,
    /// `[count][free]`.
    most_worth: Vec<Vec<i32>>,
    /// `[nearness][count][free]`.
    capacity: [Vec<Vec<i32>>; 3],
}

impl<'a> Oracle<'a> {
    pub(crate) fn new(matrix: &'a LinkMatrix) -> Self {
        let worth: Vec<i32> = sets(matrix).map(|set| worth(matrix, set)).collect();
        let counts = 0..=matrix.cards();
        Self {
            matrix,
            most_worth: counts
                .clone()
                .map(|count| partitions(matrix, count, |set| Some(worth[set.0 as usize])))
                .collect(),
            capacity: Nearness::ALL.map(|near| {
                let one = |set| is_near(matrix, set, near).then_some(1);
                let count = |count| partitions(matrix, count, one);
                counts.clone().map(count).collect()
            }),
            worth,
        }
    }

    pub(crate) fn worth(&self, set: CardSet) -> i32 {
        self.worth[set.0 as usize]
    }

    /// Disjoint near sets of `count`, at most.
    pub(crate) fn capacity(&self, free: CardSet, count: u32, near: Nearness) -> i32 {
        let by_free = self.capacity[near as usize].get(count as usize);
        by_free.map_or(0, |by_free| by_free[free.0 as usize])
    }

    /// The most worth of disjoint sets of `count`.
    pub(crate) fn most_worth(&self, free: CardSet, count: u32) -> i32 {
        let by_free = self.most_worth.get(count as usize);
        by_free.map_or(0, |by_free| by_free[free.0 as usize])
    }
}

/// For each free set the largest sum of `value` over disjoint sets of `count`, by trying each set
/// as one of them.
fn partitions(matrix: &LinkMatrix, count: u32, value: impl Fn(CardSet) -> Option<i32>) -> Vec<i32> {
    let mut largest = vec![0; 1 << matrix.cards()];
    for free in sets(matrix).filter(|_| count > 0) {
        let with = |set: CardSet| Some(value(set)? + largest[free.difference(set).0 as usize]);
        largest[free.0 as usize] = subsets(free, count).filter_map(with).max().unwrap_or(0);
    }
    largest
}

/// A random link of one vendor; few kinds, so that there are twins and ties.
fn link(fabric: [Link; 2]) -> impl Strategy<Value = Link> {
    prop_oneof![
        3 => Just(Link::System),
        2 => Just(Link::Node),
        1 => Just(Link::SingleSwitch),
        4 => prop::sample::select(fabric.to_vec()),
    ]
}

/// A random machine of 1 to `most` cards.
pub(crate) fn machine(most: usize) -> impl Strategy<Value = LinkMatrix> {
    let numa = prop_oneof![Just(None), Just(Some(0)), Just(Some(1))];
    let nic = prop_oneof![
        4 => Just(Link::System),
        1 => Just(Link::HostBridge),
        1 => Just(Link::SingleSwitch)
    ];
    let nics = prop::collection::vec(prop::collection::vec(nic, most), 0..3);
    let fabric = prop::sample::select(vec![
        [Link::Nvlink(1), Link::Nvlink(2)],
        [Link::Nvlink(12), Link::Nvlink(12)],
        [Link::Xgmi { hops: 1 }, Link::Xgmi { hops: 2 }],
    ]);
    let links = fabric.prop_flat_map(move |fabric| {
        let different = prop::collection::vec(link(fabric), most * most);
        let alike = link(fabric).prop_map(move |link| vec![link; most * most]);
        prop_oneof![3 => different, 1 => alike]
    });
    let numa = prop::collection::vec(numa, most);
    (1..=most, links, numa, nics).prop_map(move |(cards, links, numa, nics)| {
        let cell = |a: usize, b: usize| (a != b).then(|| links[a.max(b) * most + a.min(b)]);
        let row = |a| (0..cards).map(|b| cell(a, b)).collect::<Vec<_>>();
        let rows: Vec<_> = (0..cards).map(row).collect();
        let nics = nics.into_iter().enumerate().map(|(index, mut links)| {
            links.truncate(cards);
            gangline::device::links::Nic {
                name: format!("nic-{index}").into(),
                links,
            }
        });
        LinkMatrix::new(&rows, &numa[..cards], nics.collect()).unwrap()
    })
}
