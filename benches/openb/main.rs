//! Replays a production trace of tasks for shared, whole and several cards: how much of a cluster
//! the fragmentation gradient and bid prices fill, side by side. `docs/pricing.md` explains it.
//!
//! `cargo bench -p gangline-benches --bench openb -- [--seeds N] [--first-seed N] [--lists A,B]
//! [--policies fgd,bid,learned] [--threads N] [--output json] [--plots]`
#![allow(missing_docs, unreachable_pub, dead_code, reason = "not a library")]

mod bars;
mod data;
#[path = "../plot.rs"]
mod plot;
mod run;

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use data::{Fleet, List, Wrong};
use gangline_benches::replay::{Arguments, Cell, Report, print};
use run::{Policy, Shared, run};

/// The lists of the published experiment.
const LISTS: &str = "default,cpu050,cpu100,cpu200,cpu250,gpushare40,gpushare60,gpushare80,\
                     gpushare100,gpuspec10,gpuspec20,gpuspec25,gpuspec33,multigpu20,multigpu30,\
                     multigpu40,multigpu50";

const POLICIES: [(&str, Policy, &str); 3] = [
    ("fgd", Policy::FragmentationGradient, "FGD"),
    ("bid", Policy::BidPrice, "bid"),
    ("learned", Policy::Learned, "learned"),
];

/// Arrived loads that the table shows, in percent.
const LOADS: [usize; 3] = [95, 100, 130];

/// The curves of the seeds of one list under one policy, and the seconds they took together.
#[derive(Clone, Default)]
struct Runs {
    curves: Vec<Vec<f64>>,
    seconds: f64,
}

impl Runs {
    fn at(&self, load: usize) -> impl Iterator<Item = f64> + '_ {
        self.curves
            .iter()
            .filter_map(move |curve| curve.get(load).copied())
    }

    fn mean(&self, load: usize) -> f64 {
        mean(self.at(load))
    }

    fn least(&self, load: usize) -> f64 {
        self.at(load).fold(f64::INFINITY, f64::min)
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count.max(1))
}

type Results = BTreeMap<(usize, Policy), Runs>;

/// All runs, a few at a time; the results do not depend on how many.
fn replay(
    fleet: &Fleet,
    lists: &[List],
    policies: &[Policy],
    seeds: &[u64],
    threads: usize,
) -> Results {
    let shared: Vec<Shared> = lists.iter().map(|_| Shared::default()).collect();
    let mut jobs = Vec::new();
    for (list, _) in lists.iter().enumerate() {
        for &policy in policies {
            jobs.extend(seeds.iter().map(|&seed| (list, policy, seed)));
        }
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some(&job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (list, policy, seed) = job;
                    let started = Instant::now();
                    let curve = run(&lists[list], fleet, &shared[list], policy, seed);
                    let seconds = started.elapsed().as_secs_f64();
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    done.insert(job, (curve, seconds));
                }
            });
        }
    });
    let mut results = Results::new();
    for ((list, policy, _), (curve, seconds)) in
        done.into_inner().unwrap_or_else(PoisonError::into_inner)
    {
        let runs = results.entry((list, policy)).or_default();
        runs.curves.push(curve);
        runs.seconds += seconds;
    }
    results
}

fn main() -> Result<(), Wrong> {
    let options = [
        "--seeds",
        "--first-seed",
        "--lists",
        "--policies",
        "--threads",
    ];
    let arguments = Arguments::read(&options);
    let fleet = Fleet::read()?;
    let usual = if fleet.whole {
        LISTS
    } else {
        "default,gpuspec33"
    };
    let names: String = arguments.value("--lists", usual.to_owned());
    let first: u64 = arguments.value("--first-seed", 0);
    let seeds: Vec<u64> = (first..first + arguments.value("--seeds", 10)).collect();
    let wanted: String = arguments.value("--policies", "fgd,bid".to_owned());
    let known = |name: &str| {
        let policy = POLICIES.iter().find(|(known, ..)| *known == name);
        let wrong = || format!("--policies: {name} is not one of fgd, bid, learned");
        policy.map(|&(_, policy, _)| policy).ok_or_else(wrong)
    };
    let policies: Vec<Policy> = wanted.split(',').map(known).collect::<Result<_, _>>()?;
    let lists: Vec<List> = names
        .split(',')
        .map(|name| List::read(name, &fleet))
        .collect::<Result<_, _>>()?;
    let threads = arguments.value("--threads", 2);
    let started = Instant::now();
    let results = replay(&fleet, &lists, &policies, &seeds, threads);
    let wall = started.elapsed().as_secs_f64();
    let published = data::published(&fleet);
    let what = if fleet.whole {
        "openb"
    } else {
        "a sample of openb"
    };
    let title = format!(
        "{what}: mean allocation, % of {} cards, {} seeds from {first}; {wall:.0} s on {threads} threads",
        fleet.capacity / 1000,
        seeds.len(),
    );
    let report = table(&title, &lists, &policies, &results, &published);
    print(&arguments, &[report]);
    if let Some(folder) = &arguments.plots {
        draw(folder, &lists, &policies, &results, &published)?;
    }
    Ok(())
}

type Published = BTreeMap<(String, usize), f64>;

/// A row a list: published and own means by load, gains over the published means, the worst seed.
fn table(
    title: &str,
    lists: &[List],
    policies: &[Policy],
    results: &Results,
    published: &Published,
) -> Report {
    let shown = || {
        POLICIES
            .iter()
            .filter(|(_, policy, _)| policies.contains(policy))
    };
    let mut columns = vec!["list".to_owned()];
    for load in LOADS {
        columns.push(format!("published {load}"));
        columns.extend(shown().map(|(.., name)| format!("{name} {load}")));
        columns.extend(shown().map(|(.., name)| format!("{name} gain {load}")));
    }
    columns.extend(shown().map(|(.., name)| format!("{name} worst seed 100")));
    columns.extend(shown().map(|(.., name)| format!("{name} s/run")));
    let mut report = Report::new(title, columns);
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for (ix, list) in lists.iter().enumerate() {
        let mut row = vec![Cell::from(list.name.as_str())];
        let runs = || shown().filter_map(|(_, policy, _)| results.get(&(ix, *policy)));
        for load in LOADS {
            let theirs = published.get(&(list.name.clone(), load)).copied();
            row.push(theirs.map_or(Cell::Empty, |theirs| Cell::Number(theirs, 2)));
            row.extend(runs().map(|runs| Cell::Number(runs.mean(load), 2)));
            let gain = |runs: &Runs| Some(runs.mean(load) - theirs?);
            let gains = runs().map(gain);
            row.extend(gains.map(|gain| gain.map_or(Cell::Empty, |gain| Cell::Number(gain, 2))));
        }
        row.extend(runs().map(|runs| Cell::Number(runs.least(100), 2)));
        row.extend(
            runs().map(|runs| Cell::Number(runs.seconds / runs.curves.len().max(1) as f64, 2)),
        );
        rows.push(row);
    }
    let columns = rows.first().map_or(0, Vec::len);
    let means = (1..columns).map(|column| {
        let numbers = rows.iter().filter_map(|row| match row.get(column) {
            Some(Cell::Number(number, _)) => Some(*number),
            _ => None,
        });
        let numbers: Vec<f64> = numbers.collect();
        if numbers.len() == rows.len() {
            Cell::Number(mean(numbers.into_iter()), 2)
        } else {
            Cell::Empty
        }
    });
    let means: Vec<Cell> = [Cell::from("mean")].into_iter().chain(means).collect();
    for row in rows {
        report.push(row);
    }
    report.push(means);
    report
}

/// The last part of the curves of each list, and the gains of all lists.
fn draw(
    folder: &std::path::Path,
    lists: &[List],
    policies: &[Policy],
    results: &Results,
    published: &Published,
) -> Result<(), Wrong> {
    let shown = || {
        POLICIES
            .iter()
            .filter(|(_, policy, _)| policies.contains(policy))
    };
    for (ix, list) in lists.iter().enumerate() {
        if !["default", "cpu250", "gpuspec33", "gpushare100"].contains(&list.name.as_str()) {
            continue;
        }
        let curve = |name: &str, policy: Policy| {
            let runs = results.get(&(ix, policy)).cloned().unwrap_or_default();
            plot::Line {
                name: name.to_owned(),
                points: (70..=run::MOST_LOAD)
                    .map(|load| (load as f64, runs.mean(load)))
                    .collect(),
            }
        };
        let mut lines: Vec<plot::Line> = shown()
            .map(|&(_, policy, name)| curve(name, policy))
            .collect();
        let theirs = published
            .iter()
            .filter(|((name, load), _)| *name == list.name && *load >= 70);
        let theirs: Vec<(f64, f64)> = theirs
            .map(|((_, load), value)| (*load as f64, *value))
            .collect();
        if !theirs.is_empty() {
            lines.push(plot::Line {
                name: "FGD, published".to_owned(),
                points: theirs,
            });
        }
        plot::lines(
            folder,
            &format!("openb-{}", list.name),
            &format!("openb, {}: cards allocated", list.name),
            ["arrived load, % of the cluster", "allocated, %"],
            &[],
            &lines,
        )?;
    }
    let names: Vec<&str> = lists.iter().map(|list| list.name.as_str()).collect();
    let gain = |ix: usize, policy: Policy, load: usize| {
        let runs = results.get(&(ix, policy))?;
        let theirs = published.get(&(lists.get(ix)?.name.clone(), load))?;
        Some(runs.mean(load) - theirs)
    };
    let series = shown().filter(|(_, policy, _)| *policy != Policy::FragmentationGradient);
    let series: Vec<(String, Vec<f64>)> = series
        .flat_map(|&(_, policy, name)| LOADS.map(|load| (load, policy, name)))
        .map(|(load, policy, name)| {
            let gains = (0..lists.len()).map_while(|ix| gain(ix, policy, load));
            (format!("{name} at {load} %"), gains.collect())
        })
        .collect();
    if series.iter().any(|(_, gains)| !gains.is_empty()) {
        let title = "openb: gain over the published mean of FGD (bars end at 5)";
        bars::bars(folder, "openb-gains", title, &names, &series, 5.0)?;
    }
    Ok(())
}
