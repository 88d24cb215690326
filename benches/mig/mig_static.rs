//! How many cards with MIG a stream of requests needs that come one by one and stay, against the
//! fewest that could hold them.
//!
//! `cargo bench -p gangline-benches --bench mig_static -- [--seeds N] [--output json] [--plots]`

#[path = "../plot.rs"]
mod plot;

use std::collections::BTreeSet;

use gangline_benches::replay::{
    Arguments, Cell, Random, Report,
    mig::{MIXES, Mix, POLICIES, card, fits},
    print,
};
use good_lp::{
    Expression, ProblemVariables, Solution as _, SolverModel as _, constraint, microlp, variable,
};

/// Requests of a run.
const SIZES: [usize; 2] = [400, 40_000];

/// What each profile can be held by: the largest multisets of instances.
fn multisets() -> Vec<[u32; 6]> {
    let (geometry, profiles) = card();
    let counts = |layout: &Vec<_>| {
        profiles.map(|ix| layout.iter().filter(|(of, _)| *of == ix).count() as u32)
    };
    let layouts = geometry.full_layouts(|ix| profiles.contains(&ix));
    let all: BTreeSet<[u32; 6]> = layouts.iter().map(counts).collect();
    let covers = |a: &[u32; 6], b: &[u32; 6]| a != b && a.iter().zip(b).all(|(a, b)| a >= b);
    all.iter()
        .filter(|one| !all.iter().any(|other| covers(other, one)))
        .copied()
        .collect()
}

/// The fewest cards that hold so many instances of each profile, by an integer program.
///
/// The program is told what its relaxation says, rounded up: with this bound the first whole solution
/// that meets it ends the search, without it the search goes through all that are as good.
fn optimum(demand: [u32; 6]) -> u32 {
    let relaxed = program(demand, false, 0.0);
    let found = program(demand, true, (relaxed - 1e-6).ceil()).round() as u32;
    let by_count = (0..=demand.iter().sum()).find(|&cards| fits(demand, cards));
    assert_eq!(
        Some(found),
        by_count,
        "the count of pairs is exact: {demand:?}"
    );
    found
}

fn program(demand: [u32; 6], whole: bool, least: f64) -> f64 {
    let multisets = multisets();
    let mut variables = ProblemVariables::new();
    let number = || {
        if whole {
            variable().integer().min(0)
        } else {
            variable().min(0)
        }
    };
    let cards: Vec<_> = multisets.iter().map(|_| variables.add(number())).collect();
    let all: Expression = cards.iter().sum();
    let mut model = variables.minimise(&all).using(microlp);
    model = model.with(constraint!(all.clone() >= least));
    for (profile, &wanted) in demand.iter().enumerate() {
        let held: Expression = multisets
            .iter()
            .zip(&cards)
            .map(|(multiset, cards)| f64::from(multiset[profile]) * *cards)
            .sum();
        model = model.with(constraint!(held >= f64::from(wanted)));
    }
    let solution = model.solve().expect("every profile fits on some card");
    solution.eval(&all)
}

fn requests(mix: &Mix, count: usize, seed: u64) -> Vec<usize> {
    let mut random = Random::new(seed);
    (0..count).map(|_| random.weighted(&mix.1)).collect()
}

fn main() {
    let arguments = Arguments::read(&["--seeds"]);
    let seeds: u64 = arguments.value("--seeds", 5);
    let (_, profiles) = card();
    let mut reports = Vec::new();
    let mut drawn: Vec<plot::Line> = POLICIES
        .iter()
        .map(|policy| plot::Line {
            name: policy.name().to_owned(),
            points: Vec::new(),
        })
        .collect();
    for size in SIZES {
        let title = format!("cards used / fewest possible, {size} requests, {seeds} seeds");
        let names = POLICIES.iter().map(|policy| policy.name());
        let columns = ["mix", "fewest"].into_iter().chain(names);
        let mut report = Report::new(&title, columns);
        for (place, mix) in MIXES.iter().enumerate() {
            let mut sums = vec![0.0; POLICIES.len()];
            let mut fewest = 0.0;
            for seed in 0..seeds {
                let requests = requests(mix, size, seed);
                let mut demand = [0; 6];
                for &profile in &requests {
                    demand[profile] += 1;
                }
                let least = f64::from(optimum(demand));
                fewest += least;
                for (sum, policy) in sums.iter_mut().zip(POLICIES) {
                    let mut fleet = policy.fleet(mix, size as u32, seed);
                    for &profile in &requests {
                        let place = fleet.take(profiles[profile]);
                        assert!(place.is_some(), "there are as many cards as requests");
                    }
                    *sum += fleet.used() as f64 / least;
                }
            }
            let runs = seeds as f64;
            let mut row = vec![mix.0.into(), Cell::Number(fewest / runs, 1)];
            row.extend(sums.iter().map(|sum| Cell::Number(sum / runs, 4)));
            report.push(row);
            if size == SIZES[0] {
                for (line, sum) in drawn.iter_mut().zip(&sums) {
                    line.points.push((place as f64, sum / runs));
                }
            }
        }
        reports.push(report);
    }
    print(&arguments, &reports);
    if let Some(folder) = &arguments.plots {
        // Spreading needs 1.3 to 4 times as many cards: the others could not be told apart.
        drawn.retain(|line| line.points.iter().all(|point| point.1 < 1.2));
        let title = "MIG, 400 requests that stay: cards used / fewest possible";
        let steps = MIXES.map(|mix| mix.0);
        plot::lines(
            folder,
            "mig_static",
            title,
            ["mix", "ratio"],
            &steps,
            &drawn,
        )
        .expect("the folder can be written");
    }
}
