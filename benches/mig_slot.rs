//! A slot for a MIG instance in a fleet of alike cards, and its return: the cost does not depend on
//! the number of cards.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use gangline::device::{
    mig::{Market, MigFleet, MigWorth, ProfileIx},
    model,
};
use gangline_benches::replay::Random;

fn mig_slot(criterion: &mut Criterion) {
    let model = model::find("NVIDIA-H100-80GB-HBM3").and_then(|model| model.mig);
    let geometry = model.expect("the table of card models has it");
    let weights: Vec<u32> = geometry
        .profiles
        .iter()
        .map(|it| it.is_base().into())
        .collect();
    let asked: Vec<ProfileIx> = geometry
        .indices()
        .filter(|ix| weights[usize::from(ix.0)] > 0)
        .collect();
    let mut group = criterion.benchmark_group("mig_slot");
    for cards in [100, 1_000, 10_000, 100_000] {
        let worth = MigWorth::solve(geometry, &weights, Market::default());
        let mut fleet = MigFleet::new(worth, cards);
        let mut random = Random::new(1);
        // About half full, at random.
        let mut held = Vec::new();
        for _ in 0..cards * 2 {
            let ix = asked[random.below(asked.len())];
            if let Some((card, start)) = fleet.take(ix) {
                held.push((card, ix, start));
            }
            if random.below(3) == 0 {
                let (card, ix, start) = held.swap_remove(random.below(held.len()));
                assert!(fleet.give_back(card, ix, start));
            }
        }
        let mut turn = 0;
        let mut next = || {
            turn = (turn + 1) % asked.len();
            asked[turn]
        };
        group.bench_function(BenchmarkId::new("find", cards), |bencher| {
            bencher.iter(|| fleet.find(black_box(next())));
        });
        group.bench_function(BenchmarkId::new("take_and_give_back", cards), |bencher| {
            bencher.iter(|| {
                let ix = black_box(next());
                if let Some((card, start)) = fleet.take(ix) {
                    fleet.give_back(card, ix, start);
                }
            });
        });
    }
    group.finish();
    criterion.bench_function("mig_worth_solve", |bencher| {
        bencher.iter(|| MigWorth::solve(geometry, black_box(&weights), Market::default()));
    });
}

criterion_group!(benches, mig_slot);
criterion_main!(benches);
