//! What the machines that are hard to place on can and cannot give.

use gangline::{
    bits::CardSet,
    device::links::{Link, LinkMatrix, LinkTable, Nearness, for_product, known, names},
};
use proptest::prelude::*;

use crate::reference::{all, is_near, machine, ring, score, sets};

fn table(name: &str) -> LinkTable {
    LinkTable::new(&known(name).unwrap())
}

fn set<const N: usize>(cards: [u32; N]) -> CardSet {
    CardSet(cards.iter().fold(0, |set, card| set | 1 << card))
}

fn best(table: &LinkTable, free: CardSet, count: u32, near: Nearness) -> Option<CardSet> {
    Some(table.best(free, count, near)?.cards)
}

const EIGHT: CardSet = CardSet(0xff);

#[test]
fn a_card_without_its_nvlinks_is_left_out_of_islands() {
    let table = table("hgx-b200-8-degraded");
    assert_eq!(best(&table, EIGHT, 8, Nearness::NvlinkIsland), None);
    assert_eq!(table.capacity(EIGHT, 8, Nearness::NvlinkIsland), 0);
    assert_eq!(best(&table, EIGHT, 8, Nearness::Any), Some(EIGHT));
    let seven = set([0, 1, 3, 4, 5, 6, 7]);
    assert_eq!(best(&table, EIGHT, 7, Nearness::NvlinkIsland), Some(seven));
    assert_eq!(table.capacity(EIGHT, 4, Nearness::NvlinkIsland), 1);
    // One card is near itself, and the lonely one is taken first.
    assert_eq!(
        best(&table, EIGHT, 1, Nearness::NvlinkIsland),
        Some(set([2]))
    );
    assert_eq!(table.capacity(EIGHT, 1, Nearness::NvlinkIsland), 8);
}

#[test]
fn a_card_that_loses_its_links_makes_the_degraded_machine() {
    let whole = known("hgx-b200-8").unwrap();
    let degraded = known("hgx-b200-8-degraded").unwrap();
    let lost = whole.without_fabric(2);
    for (a, b) in (0..8).flat_map(|a| (0..8).map(move |b| (a, b))) {
        assert_eq!(lost.link(a, b), degraded.link(a, b), "{a} {b}");
    }
    assert_eq!(lost.without_fabric(2), lost);
    assert_eq!(whole.without_fabric(8), whole);
}

#[test]
fn four_cards_of_a_numa_node_fit_only_on_the_side_of_five() {
    let table = table("h100-pcie-bridged-8");
    let five = set([3, 4, 5, 6, 7]);
    assert_eq!(table.capacity(EIGHT, 4, Nearness::NumaNode), 1);
    assert_eq!(
        table.capacity(EIGHT.difference(set([3])), 4, Nearness::NumaNode),
        1
    );
    assert_eq!(
        table.capacity(EIGHT.difference(set([3, 4])), 4, Nearness::NumaNode),
        0
    );
    assert_eq!(
        best(&table, EIGHT, 4, Nearness::NumaNode),
        Some(set([3, 4, 6, 7]))
    );
    assert_eq!(best(&table, EIGHT, 5, Nearness::NumaNode), Some(five));
    assert_eq!(best(&table, EIGHT, 6, Nearness::NumaNode), None);
    // Three take the other side, so that four still fit.
    assert_eq!(
        best(&table, EIGHT, 3, Nearness::NumaNode),
        Some(set([0, 1, 2]))
    );
    assert_eq!(table.describe(set([3, 4, 6, 7])).numa_node, Some(1));
}

#[test]
fn bridges_are_found_wherever_they_are() {
    let table = table("h100-pcie-bridged-8");
    let mut free = EIGHT;
    let mut pairs = Vec::new();
    while let Some(pair) = best(&table, free, 2, Nearness::NvlinkIsland) {
        pairs.push(pair);
        free = free.difference(pair);
    }
    pairs.sort();
    assert_eq!(pairs, [set([1, 2]), set([3, 4]), set([0, 5]), set([6, 7])]);
    assert_eq!(best(&table, EIGHT, 3, Nearness::NvlinkIsland), None);
    // Two on one NUMA node leave the bridge that crosses sockets alone.
    let on_one_node = best(&table, EIGHT, 2, Nearness::NumaNode).unwrap();
    assert!([set([1, 2]), set([3, 4]), set([6, 7])].contains(&on_one_node));
}

#[test]
fn a_machine_without_nvlink_has_islands_of_one_card() {
    for name in ["rtx4090-8", "pcie-tree-8", "two-sockets-8", "l40s-8"] {
        let table = table(name);
        assert_eq!(
            table.capacity(EIGHT, 1, Nearness::NvlinkIsland),
            8,
            "{name}"
        );
        assert_eq!(
            table.capacity(EIGHT, 2, Nearness::NvlinkIsland),
            0,
            "{name}"
        );
        assert_eq!(table.capacity(EIGHT, 4, Nearness::NumaNode), 2, "{name}");
        assert_eq!(
            best(&table, EIGHT, 4, Nearness::Any),
            Some(set([0, 1, 2, 3])),
            "{name}"
        );
        // What is taken already decides the half.
        let rest = EIGHT.difference(set([0, 1]));
        assert_eq!(
            best(&table, rest, 4, Nearness::Any),
            Some(set([4, 5, 6, 7])),
            "{name}"
        );
        assert_eq!(
            best(&table, rest, 2, Nearness::Any),
            Some(set([2, 3])),
            "{name}"
        );
        assert_eq!(
            best(&table, EIGHT.difference(set([5])), 1, Nearness::Any),
            Some(set([4])),
            "{name}"
        );
    }
}

#[test]
fn only_the_numa_column_tells_the_halves_of_a_machine_that_is_all_sys() {
    let table = table("rtx4090-8");
    assert!(table.worth(set([0, 3])) > table.worth(set([3, 4])));
    assert_eq!(table.canonical(set([2, 3, 5, 7])), set([0, 1, 4, 5]));
    // The card with the near network card is not given away to one who asks for a single one.
    assert_eq!(
        best(&table, set([5, 6, 7]), 1, Nearness::Any),
        Some(set([5]))
    );
}

#[test]
fn cards_of_unknown_numa_nodes_are_near_no_other() {
    let table = table("hgx-a100-4");
    let four = CardSet(0xf);
    assert_eq!(table.capacity(four, 1, Nearness::NumaNode), 4);
    assert_eq!(table.capacity(four, 2, Nearness::NumaNode), 0);
    assert_eq!(table.capacity(four, 2, Nearness::NvlinkIsland), 2);
    assert!(table.is_uniform());
}

#[test]
fn sixteen_cards_are_answered_by_twins() {
    let table = table("dgx2");
    let all = CardSet(0xffff);
    assert_eq!(
        best(&table, all, 8, Nearness::NumaNode),
        Some(CardSet(0xff))
    );
    assert_eq!(best(&table, all, 9, Nearness::NumaNode), None);
    assert_eq!(best(&table, all, 16, Nearness::NvlinkIsland), Some(all));
    assert_eq!(best(&table, all, 17, Nearness::Any), None);
    let free = CardSet(0b1011_0000_1100_0001);
    assert_eq!(
        best(&table, free, 3, Nearness::NumaNode),
        Some(set([0, 6, 7]))
    );
    assert_eq!(table.capacity(free, 3, Nearness::NumaNode), 2);
    assert_eq!(table.canonical(free), CardSet(0b111_0000_0111));
    assert_eq!(table.capacity(CardSet(u64::MAX), 5, Nearness::Any), 3);
    // A set is worth what any set of its twins is.
    assert!(table.worth(set([0, 1])) > 0);
    assert_eq!(table.worth(set([0, 1])), table.worth(set([6, 7])));
    assert!(table.worth(set([0, 1])) > table.worth(set([0, 15])));
}

#[test]
fn amds_hives_are_islands() {
    assert_eq!(
        table("mi300x-8").capacity(EIGHT, 8, Nearness::NvlinkIsland),
        1
    );
    assert_eq!(
        table("mi210-8").capacity(EIGHT, 4, Nearness::NvlinkIsland),
        2
    );
    assert_eq!(
        table("mi210-8").capacity(EIGHT, 5, Nearness::NvlinkIsland),
        0
    );
    let mi250 = table("mi250-8");
    let pair = best(&mi250, EIGHT, 2, Nearness::NvlinkIsland).unwrap();
    assert_eq!(
        mi250.describe(pair).bottleneck,
        Some(Link::Xgmi { hops: 1 })
    );
}

#[test]
fn descriptions_say_the_slowest_hop() {
    let dgx1 = table("dgx1-v100");
    for (cards, text) in [
        (set([0, 3]), "NV2 50 GB/s"),
        (set([0, 1]), "NV1 25 GB/s"),
        (set([0, 5]), "SYS"),
        (set([4]), "alone"),
        (EIGHT, "NV2 50 GB/s"),
        (set([0, 1, 2, 3]), "NV1 25 GB/s"),
    ] {
        assert_eq!(dgx1.describe(cards).to_string(), text, "{cards}");
    }
    let all = dgx1.describe(EIGHT);
    assert_eq!(
        (all.slowest_pair, all.numa_node),
        (Some(Link::System), None)
    );
    assert_eq!(dgx1.describe(set([0, 3])).numa_node, Some(0));
    assert_eq!(dgx1.order(EIGHT), [0, 3, 2, 1, 5, 6, 7, 4]);
    assert_eq!(
        table("hgx-h100-8").describe(EIGHT).to_string(),
        "NV18 450 GB/s"
    );
}

#[test]
fn only_products_that_fix_the_shape_have_one() {
    for (product, count) in [
        ("NVIDIA-H100-80GB-HBM3", 8),
        ("NVIDIA H100 80GB HBM3", 8),
        ("NVIDIA-H200-SHARED", 8),
        ("NVIDIA-A100-SXM4-40GB", 4),
        ("NVIDIA-GB200", 4),
    ] {
        let matrix = for_product(product, count).expect(product);
        assert_eq!(matrix.cards(), count);
        let table = LinkTable::new(&matrix);
        assert!(table.is_uniform(), "{product}");
        assert_eq!(
            table.capacity(all(&matrix), count, Nearness::NvlinkIsland),
            1,
            "{product}"
        );
        assert_eq!(matrix.numa_node(0), None, "the server's, not the board's");
    }
    for (product, count) in [
        ("NVIDIA-H100-80GB-HBM3", 7),
        ("NVIDIA-H100-PCIe", 8),
        ("NVIDIA-H200-NVL", 8),
        ("NVIDIA-A100-80GB-PCIe", 4),
        ("Tesla-V100-SXM2-32GB", 8),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", 8),
        ("", 8),
    ] {
        assert_eq!(for_product(product, count), None, "{product} {count}");
    }
}

#[test]
fn names_are_all_different_and_known() {
    let names: Vec<&str> = names().collect();
    for (index, name) in names.iter().enumerate() {
        assert!(known(name).is_some(), "{name}");
        assert!(!names[..index].contains(name), "{name}");
    }
    assert_eq!(known("dgx-9000"), None);
}

fn check_order(matrix: &LinkMatrix) {
    let table = LinkTable::new(matrix);
    for set in sets(matrix).filter(|set| set.len() >= 2) {
        let order = table.order(set);
        let mut cards = order.clone();
        cards.sort_unstable();
        assert!(cards.into_iter().eq(set.iter()), "{set}: {order:?}");
        let next = order.iter().cycle().skip(1);
        let hops = order.iter().zip(next).map(|(a, b)| (*a, *b));
        let slowest = hops.clone().map(|(a, b)| score(matrix, a, b)).min();
        assert_eq!(slowest, Some(ring(matrix, set)), "{set}: {order:?}");
        let described = table.describe(set).bottleneck;
        let links = hops.map(|(a, b)| matrix.link(a, b).unwrap());
        assert!(described <= links.min(), "{set}: {order:?}");
    }
    assert!(table.order(CardSet::EMPTY).is_empty());
}

#[test]
fn orders_are_best_rings() {
    for name in [
        "dgx1-v100",
        "h100-pcie-bridged-8",
        "mi250-8",
        "hgx-b200-8-degraded",
    ] {
        check_order(&known(name).unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn orders_on_random_machines_are_best_rings(matrix in machine(6)) {
        check_order(&matrix);
    }

    /// Machines that are too large for brute force: taking the best set again and again yields the
    /// capacity, and every set is near.
    #[test]
    fn on_large_machines_the_best_sets_yield_the_capacity(
        matrix in machine(11),
        free in any::<u64>(),
        count in 1_u32..6,
    ) {
        let table = LinkTable::new(&matrix);
        for near in Nearness::ALL {
            let mut rest = CardSet(free).intersection(all(&matrix));
            let capacity = table.capacity(rest, count, near);
            for left in (0..capacity).rev() {
                let set = table.best(rest, count, near).unwrap().cards;
                prop_assert!(rest.contains_all(set) && set.len() == count);
                prop_assert!(is_near(&matrix, set, near));
                rest = rest.difference(set);
                prop_assert_eq!(table.capacity(rest, count, near), left);
            }
            prop_assert_eq!(table.best(rest, count, near), None);
        }
    }
}
