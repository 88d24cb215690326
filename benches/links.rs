//! The best k cards of a node and taking them, each answer from the free cards that the one before
//! left; and making the tables.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use gangline::{
    bits::CardSet,
    device::links::{Link, LinkMatrix, LinkTable, Nearness, known},
};

/// A node of 16 cards in groups of `alike`, all groups joined differently.
fn sixteen(alike: usize) -> LinkMatrix {
    let link = |a: usize, b: usize| match (a / alike, b / alike) {
        (a, b) if a == b => Link::SingleSwitch,
        (a, b) if (a ^ b).is_power_of_two() => Link::Nvlink(1 + (a.min(b) % 4) as u8),
        (a, b) if a / 4 == b / 4 => Link::Node,
        _ => Link::System,
    };
    let row = |a| {
        (0..16)
            .map(|b| (a != b).then(|| link(a, b)))
            .collect::<Vec<_>>()
    };
    let rows: Vec<_> = (0..16).map(row).collect();
    LinkMatrix::new(&rows, &[None; 16], Vec::new()).expect("a possible machine")
}

fn machine(name: &str) -> LinkMatrix {
    known(name).expect("a known machine")
}

fn machines() -> [(&'static str, LinkMatrix); 5] {
    [
        ("8_dgx1", machine("dgx1-v100")),
        ("8_hgx", machine("hgx-h100-8")),
        ("16_dgx2", machine("dgx2")),
        ("16_in_twins", sixteen(2)),
        ("16_all_different", sixteen(1)),
    ]
}

fn links(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("links");
    for (name, matrix) in machines() {
        let table = LinkTable::new(&matrix);
        let all = CardSet::first(matrix.cards()).unwrap_or_default();
        let mut free = all;
        let mut count = 1;
        group.bench_function(BenchmarkId::new("best_and_take", name), |bencher| {
            bencher.iter(|| {
                match table.best(black_box(free), count, Nearness::Any) {
                    Some(best) => free = free.difference(best.cards),
                    None => free = all,
                }
                count = 1 + (count + free.len()) % 4;
            });
        });
    }
    group.sample_size(10);
    for (name, matrix) in machines() {
        group.bench_function(BenchmarkId::new("table", name), |bencher| {
            bencher.iter(|| LinkTable::new(black_box(&matrix)));
        });
    }
    group.finish();
}

criterion_group!(benches, links);
criterion_main!(benches);
