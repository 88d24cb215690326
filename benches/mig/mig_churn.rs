//! Instances of MIG that come and go on 100 cards: how much is accepted, and how much of the cards'
//! compute is in use, against a fleet that may repack everything at any time.
//!
//! `cargo bench -p gangline-benches --bench mig_churn -- [--seeds N] [--output json] [--plots]`
//!
//! With `--cards 2` the fleet is so small that the best rule that moves nothing can be
//! computed; then it stands beside the others.

mod exact;
#[path = "../plot.rs"]
mod plot;

use std::{cmp::Reverse, collections::BinaryHeap};

use gangline::device::mig::ProfileIx;
use gangline_benches::replay::{
    Arguments, Cell, Random, Report,
    mig::{Fleet, MIXES, Mix, POLICIES, Policy, card, fits},
    print,
};

/// Cards of the fleet.
const CARDS: u32 = 100;
/// Fleets up to this are solved.
const MOST_EXACT: u32 = 2;
const SLICES: u32 = 7;
const REQUESTS: usize = 9_000;
/// On a small fleet chance counts for more.
const REQUESTS_OF_FEW: usize = 300_000;
/// The fleet fills up until so many have come; then measuring begins.
const WARM_UP: usize = 1_000;
/// Offered compute in percent of the fleet's.
const LOADS: [u32; 3] = [85, 100, 115];

/// Accepts whatever some repacking has room for.
struct Repack {
    counts: [u32; 6],
    cards: u32,
}

impl Fleet for Repack {
    fn take(&mut self, ix: ProfileIx) -> Option<(u32, u8)> {
        let place = card().1.iter().position(|of| *of == ix)?;
        self.counts[place] += 1;
        let taken = fits(self.counts, self.cards);
        if !taken {
            self.counts[place] -= 1;
        }
        taken.then_some((0, 0))
    }

    fn give_back(&mut self, _: u32, ix: ProfileIx, _: u8) {
        if let Some(place) = card().1.iter().position(|of| *of == ix) {
            self.counts[place] -= 1;
        }
    }

    fn used(&self) -> usize {
        self.cards as usize
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    accepted: f64,
    utilisation: f64,
}

/// Poisson arrivals, exponential lifetimes of mean 1. Times are kept as the bits of positive numbers,
/// which sort as the numbers do.
fn run(fleet: &mut dyn Fleet, cards: u32, mix: &Mix, load: u32, seed: u64) -> Outcome {
    let requests = if cards > MOST_EXACT {
        REQUESTS
    } else {
        REQUESTS_OF_FEW
    };
    let (geometry, profiles) = card();
    let slices = profiles.map(|ix| geometry.get(ix).map_or(0, |it| it.compute_slices));
    let slices = slices.map(f64::from);
    let all: u32 = mix.1.iter().sum();
    let shares = mix.1.map(|share| f64::from(share) / f64::from(all));
    let mean: f64 = slices
        .iter()
        .zip(shares)
        .map(|(slices, share)| slices * share)
        .sum();
    let rate = f64::from(load) / 100.0 * f64::from(cards * SLICES) / mean;

    let mut random = Random::new(seed ^ 0xc0de);
    let mut ends: BinaryHeap<Reverse<(u64, usize, u32, u8)>> = BinaryHeap::new();
    let (mut now, mut begin) = (0.0, 0.0);
    let (mut in_use, mut area, mut accepted) = (0.0, 0.0, 0);
    for request in 0..requests {
        let arrives = now + random.exponential() / rate;
        let profile = random.weighted(&mix.1);
        let lifetime = random.exponential();
        let measured = request > WARM_UP;
        while let Some(&Reverse((end, of, card, start))) = ends.peek() {
            let end = f64::from_bits(end);
            if end > arrives {
                break;
            }
            ends.pop();
            area += if measured { in_use * (end - now) } else { 0.0 };
            now = end;
            in_use -= slices[of];
            fleet.give_back(card, profiles[of], start);
        }
        area += if measured {
            in_use * (arrives - now)
        } else {
            0.0
        };
        now = arrives;
        if request == WARM_UP {
            begin = now;
        }
        if let Some((card, start)) = fleet.take(profiles[profile]) {
            in_use += slices[profile];
            accepted += usize::from(request >= WARM_UP);
            ends.push(Reverse(((now + lifetime).to_bits(), profile, card, start)));
        }
    }
    Outcome {
        accepted: accepted as f64 / (requests - WARM_UP) as f64,
        utilisation: area / (now - begin) / f64::from(cards * SLICES),
    }
}

fn mean(seeds: u64, run: impl Fn(u64) -> Outcome) -> Outcome {
    let mut sum = Outcome::default();
    for outcome in (0..seeds).map(run) {
        sum.accepted += outcome.accepted / seeds as f64;
        sum.utilisation += outcome.utilisation / seeds as f64;
    }
    sum
}

fn main() {
    let arguments = Arguments::read(&["--seeds", "--cards"]);
    let cards: u32 = arguments.value("--cards", CARDS);
    let exact = (cards <= MOST_EXACT).then(|| exact::Fleet::new(cards as usize));
    let seeds: u64 = arguments.value("--seeds", 3);
    let mut reports = Vec::new();
    let mut way = Report::new(
        "way from the best heuristic to the repack oracle, in percent of utilisation",
        [
            "mix",
            "load",
            "best heuristic",
            "its utilisation",
            "ours",
            "oracle",
            "way",
        ]
        .into_iter()
        .chain([
            "way from best-fit",
            "way without mix",
            "best rule",
            "its way",
            "best that may refuse",
        ]),
    );
    let mut drawn: Vec<plot::Line> = Vec::new();
    for load in LOADS {
        let title = format!("accepted / utilisation at {load} % of load, {seeds} seeds");
        let names = POLICIES.iter().map(|policy| policy.name());
        let columns = ["mix"].into_iter().chain(names).chain(["repack oracle"]);
        let mut report = Report::new(&title, columns);
        for (place, mix) in MIXES.iter().enumerate() {
            let mut row = vec![mix.0.into()];
            let both = |outcome: Outcome| {
                Cell::Text(format!(
                    "{:.3} / {:.4}",
                    outcome.accepted, outcome.utilisation
                ))
            };
            let outcomes: Vec<(Policy, Outcome)> = POLICIES
                .iter()
                .map(|&policy| {
                    let runs =
                        |seed| run(&mut *policy.fleet(mix, cards, seed), cards, mix, load, seed);
                    (policy, mean(seeds, runs))
                })
                .collect();
            let oracle = mean(seeds, |seed| {
                let counts = [0; 6];
                run(&mut Repack { counts, cards }, cards, mix, load, seed)
            });
            row.extend(outcomes.iter().map(|(_, outcome)| both(*outcome)));
            row.push(both(oracle));
            report.push(row);

            let is_ours = |policy| matches!(policy, Policy::Plain | Policy::Solved);
            let heuristics = outcomes.iter().filter(|(policy, _)| !is_ours(*policy));
            let best = heuristics.max_by(|a, b| a.1.utilisation.total_cmp(&b.1.utilisation));
            let of = |policy| {
                let found = outcomes.iter().find(|(of, _)| *of == policy);
                found.map_or(0.0, |(_, outcome)| outcome.utilisation)
            };
            let (ours, top) = (of(Policy::Solved), oracle.utilisation);
            let percent =
                |ours: f64, from: f64| Cell::Number((ours - from) / (top - from) * 100.0, 0);
            let most = |may_refuse| {
                let exact = exact.as_ref()?;
                Some(exact.most_in_use(mix, load, may_refuse))
            };
            let (best_rule, may_refuse) = (most(false), most(true));
            if let Some((policy, outcome)) = best {
                way.push(vec![
                    mix.0.into(),
                    Cell::Number(f64::from(load), 0),
                    policy.name().into(),
                    Cell::Number(outcome.utilisation, 4),
                    Cell::Number(ours, 4),
                    Cell::Number(top, 4),
                    percent(ours, outcome.utilisation),
                    percent(ours, of(Policy::BestFit)),
                    percent(of(Policy::Plain), outcome.utilisation),
                    best_rule.map_or(Cell::Empty, |most| Cell::Number(most, 4)),
                    best_rule.map_or(Cell::Empty, |most| percent(most, outcome.utilisation)),
                    may_refuse.map_or(Cell::Empty, |most| Cell::Number(most, 4)),
                ]);
            }
            if load == 100 {
                let named = outcomes
                    .iter()
                    .map(|(policy, outcome)| (policy.name(), *outcome));
                for (index, (name, outcome)) in named.chain([("repack oracle", oracle)]).enumerate()
                {
                    if drawn.len() <= index {
                        drawn.push(plot::Line {
                            name: name.to_owned(),
                            points: Vec::new(),
                        });
                    }
                    drawn[index]
                        .points
                        .push((place as f64, outcome.utilisation));
                }
            }
        }
        reports.push(report);
    }
    reports.push(way);
    print(&arguments, &reports);
    if let (Some(folder), None) = (&arguments.plots, &exact) {
        drawn.retain(|line| line.points.iter().all(|point| point.1 > 0.8));
        let title = "MIG, 100 cards at 100 % of load: compute in use";
        let steps = MIXES.map(|mix| mix.0);
        plot::lines(
            folder,
            "mig_churn",
            title,
            ["mix", "utilisation"],
            &steps,
            &drawn,
        )
        .expect("the folder can be written");
    }
}
