//! Replays the openb trace: the fragmentation gradient and bid prices side by side.
#![allow(missing_docs, unreachable_pub, dead_code)]

mod data;
mod replay;

use std::{
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use data::{Fleet, List};
use replay::{Policy, Shared, replay};

pub const LISTS: [&str; 17] = [
    "default",
    "cpu050",
    "cpu100",
    "cpu200",
    "cpu250",
    "gpushare40",
    "gpushare60",
    "gpushare80",
    "gpushare100",
    "gpuspec10",
    "gpuspec20",
    "gpuspec25",
    "gpuspec33",
    "multigpu20",
    "multigpu30",
    "multigpu40",
    "multigpu50",
];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let seeds: u64 = value("--seeds").and_then(|x| x.parse().ok()).unwrap_or(10);
    let first: u64 = value("--first-seed")
        .and_then(|x| x.parse().ok())
        .unwrap_or(0);
    let threads: usize = value("--threads").and_then(|x| x.parse().ok()).unwrap_or(2);
    let lists = value("--lists");
    let policies = value("--policies").unwrap_or("fgd,bid".into());
    let folder = PathBuf::from("/work/shared/data/openb");
    let fleet = Fleet::read(&folder).unwrap();
    let published = data::published(&folder).unwrap();
    let names: Vec<&str> = LISTS
        .into_iter()
        .filter(|n| lists.as_ref().is_none_or(|l| l.split(',').any(|x| x == *n)))
        .collect();
    let started = Instant::now();
    let lists: Vec<List> = names
        .iter()
        .map(|n| List::read(&folder, n, &fleet).unwrap())
        .collect();
    let shared: Vec<std::sync::OnceLock<Shared>> =
        lists.iter().map(|_| Default::default()).collect();
    let mut jobs = vec![];
    for l in 0..lists.len() {
        for s in first..first + seeds {
            if policies.contains("fgd") {
                jobs.push((l, s, Policy::FragmentationGradient));
            }
            if policies.contains("bid") {
                jobs.push((l, s, Policy::BidPrice));
            }
        }
    }
    let next = AtomicUsize::new(0);
    let results = Mutex::new(vec![]);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some(&(l, s, p)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        break;
                    };
                    let sh = shared[l].get_or_init(|| Shared::new(&lists[l], &fleet));
                    let t = Instant::now();
                    let curve = replay(&lists[l], &fleet, sh, p, s);
                    results
                        .lock()
                        .unwrap()
                        .push((l, s, p, curve.0, t.elapsed().as_secs_f64()));
                }
            });
        }
    });
    let results = results.into_inner().unwrap();
    println!(
        "{:12} {:>6} | {:>23} | {:>23} | {:>7} {:>7} {:>7} | {:>7} {:>7} sec",
        "list",
        "",
        "published 95/100/130",
        "ours",
        "gain95",
        "gain100",
        "gain130",
        "min100",
        "min130"
    );
    for p in [Policy::FragmentationGradient, Policy::BidPrice] {
        let mut tot = [0.0; 3];
        let mut secs = 0.0;
        let mut n = 0;
        for (l, list) in lists.iter().enumerate() {
            let mut runs: Vec<_> = results.iter().filter(|r| r.0 == l && r.2 == p).collect();
            if runs.is_empty() {
                continue;
            }
            runs.sort_by_key(|r| r.1);
            let at = |load: usize| runs.iter().map(|r| r.3[load]).sum::<f64>() / runs.len() as f64;
            let min = |load: usize| runs.iter().map(|r| r.3[load]).fold(f64::MAX, f64::min);
            let publ = |load: u32| {
                published
                    .get(&(list.name.clone(), load))
                    .copied()
                    .unwrap_or(0.0)
            };
            let sec = runs.iter().map(|r| r.4).sum::<f64>() / runs.len() as f64;
            let g: Vec<f64> = [95, 100, 130]
                .iter()
                .map(|&x| at(x) - publ(x as u32))
                .collect();
            for i in 0..3 {
                tot[i] += g[i];
            }
            secs += sec;
            n += 1;
            println!(
                "{:12} {:>6} | {:7.2} {:7.2} {:7.2} | {:7.2} {:7.2} {:7.2} | {:+7.2} {:+7.2} {:+7.2} | {:7.2} {:7.2} {:.2}",
                list.name,
                if p == Policy::BidPrice { "bid" } else { "fgd" },
                publ(95),
                publ(100),
                publ(130),
                at(95),
                at(100),
                at(130),
                g[0],
                g[1],
                g[2],
                min(100),
                min(130),
                sec
            );
        }
        if n > 0 {
            println!(
                "mean {:+.3} {:+.3} {:+.3}  sec/run {:.2}",
                tot[0] / n as f64,
                tot[1] / n as f64,
                tot[2] / n as f64,
                secs / n as f64
            );
        }
    }
    println!("wall {:.0}", started.elapsed().as_secs_f64());
}
