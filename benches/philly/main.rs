//! Replays the jobs of the Philly cluster on nodes of 8 cards: how long they wait.
//!
//! Up to 8 cards lie on one node; larger jobs take whole nodes and one node for what is left. Queues:
//! first come first served; the same without waiting for the head ("skip", which looks at the first
//! 200); and EASY backfill: later jobs may start if the head can still start when it could at the
//! latest, given how long the running jobs take, which is known exactly. Places of "ours" come from
//! the engine: `best_node`, and an event for each start and end.
//!
//! `cargo bench -p gangline-benches --bench philly -- [--nodes N] [--queue easy|skip|fifo] [--output json]
//! [--plots]`; data: `philly/philly.csv` of `GANGLINE_DATA` or of `../shared/data`.

mod place;
#[path = "../plot.rs"]
mod plot;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    fs,
};

use gangline_benches::{
    CARDS_A_NODE,
    replay::{Arguments, Cell, Report, data, print},
};
use place::{Free, POLICIES, Parts, Placer, Policy};

#[derive(Clone, Copy, Debug)]
struct Job {
    /// Milliseconds since 1970.
    arrives: i64,
    runs: i64,
    cards: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    Fifo,
    Skip,
    Easy,
}

impl Queue {
    fn name(self) -> &'static str {
        match self {
            Self::Fifo => "FIFO",
            Self::Skip => "skip",
            Self::Easy => "EASY",
        }
    }
}

/// How many waiting jobs the queue without waiting looks at.
const WINDOW: usize = 200;

/// Days since 1970 of a date (Howard Hinnant's algorithm).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn read(text: &str) -> Result<Vec<Job>, String> {
    let mut jobs = Vec::new();
    for (number, line) in text
        .lines()
        .enumerate()
        .skip(1)
        .filter(|(_, line)| !line.is_empty())
    {
        let wrong = || {
            format!(
                "line {}: {line}: not timestamp,duration,num_gpus,...",
                number + 1
            )
        };
        let fields: Vec<&str> = line.split(',').collect();
        let [time, runs, cards, ..] = fields.as_slice() else {
            return Err(wrong());
        };
        let numbers: Vec<i64> = time
            .split([' ', '-', ':'])
            .filter_map(|word| word.parse().ok())
            .collect();
        let [year, month, day, hour, minute, second] = numbers.as_slice() else {
            return Err(wrong());
        };
        let seconds = days(*year, *month, *day) * 86_400 + hour * 3_600 + minute * 60 + second;
        let runs: f64 = runs.parse().map_err(|_| wrong())?;
        jobs.push(Job {
            arrives: seconds * 1000,
            runs: (runs * 1000.0) as i64,
            cards: cards.parse().map_err(|_| wrong())?,
        });
    }
    jobs.sort_by_key(|job| job.arrives);
    Ok(jobs)
}

#[derive(Clone, Debug, Default)]
struct Outcome {
    /// By job, in milliseconds.
    waits: Vec<i64>,
    /// Time in which the first job waited although enough cards were free, and all time.
    blocked: i64,
    /// Free cards times time of the same.
    idle: i128,
    span: i64,
}

struct Replay<'a> {
    jobs: &'a [Job],
    free: Free,
    placer: Placer,
    /// End, job.
    running: BinaryHeap<Reverse<(i64, usize)>>,
    parts: Vec<Parts>,
    waiting: VecDeque<usize>,
    outcome: Outcome,
}

impl Replay<'_> {
    fn start(&mut self, job: usize, now: i64) {
        let Job {
            arrives,
            runs,
            cards,
        } = self.jobs[job];
        let parts = self.placer.place(job, cards, &self.free);
        self.free.change(&parts, true);
        self.parts[job] = parts;
        self.running.push(Reverse((now + runs, job)));
        self.outcome.waits[job] = now - arrives;
    }

    fn end(&mut self, job: usize) {
        let parts = std::mem::take(&mut self.parts[job]);
        self.free.change(&parts, false);
        self.placer.end(job, &parts);
    }

    /// When the first job can start at the latest, and what is free then.
    fn latest(&self, head: u32) -> (i64, Free) {
        let mut free = self.free.clone();
        let mut ends: Vec<(i64, usize)> = self.running.iter().map(|Reverse(end)| *end).collect();
        ends.sort_unstable();
        for (end, job) in ends {
            free.change(&self.parts[job], false);
            if free.fits(head) {
                return (end, free);
            }
        }
        (i64::MAX, free)
    }

    fn schedule(&mut self, queue: Queue, now: i64) {
        while let Some(&head) = self.waiting.front() {
            if !self.free.fits(self.jobs[head].cards) {
                break;
            }
            self.waiting.pop_front();
            self.start(head, now);
        }
        let Some(&head) = self.waiting.front().filter(|_| queue != Queue::Fifo) else {
            return;
        };
        let head = self.jobs[head].cards;
        let mut latest: Option<(i64, Free)> = None;
        let window = if queue == Queue::Skip {
            WINDOW
        } else {
            usize::MAX
        };
        // Room only shrinks from here on: what did not fit does not fit later.
        let (mut too_large, mut at) = (u32::MAX, 1);
        while let Some(&job) = self
            .waiting
            .get(at)
            .filter(|_| at < window && self.free.cards > 0)
        {
            let Job { runs, cards, .. } = self.jobs[job];
            if cards >= too_large || !self.free.fits(cards) {
                too_large = too_large.min(cards);
                at += 1;
                continue;
            }
            if queue == Queue::Easy {
                let (time, then) = latest.get_or_insert_with(|| self.latest(head));
                if now + runs > *time {
                    // It still runs then: is there room for both?
                    let parts = self.placer.place(job, cards, &self.free);
                    then.change(&parts, true);
                    let fits = then.fits(head);
                    if !fits {
                        then.change(&parts, false);
                        self.placer.end(job, &parts);
                        at += 1;
                        continue;
                    }
                    self.placer.end(job, &parts);
                }
            }
            self.waiting.remove(at);
            self.start(job, now);
        }
    }
}

/// By number of cards: how many members the jobs have.
fn members(jobs: &[Job]) -> [u32; CARDS_A_NODE as usize + 1] {
    let mut members = [0; CARDS_A_NODE as usize + 1];
    for job in jobs {
        members[CARDS_A_NODE as usize] += job.cards / CARDS_A_NODE;
        members[(job.cards % CARDS_A_NODE) as usize] += 1;
    }
    members
}

fn replay(jobs: &[Job], nodes: u32, policy: Policy, queue: Queue) -> Outcome {
    let mut replay = Replay {
        jobs,
        free: Free::new(nodes, policy == Policy::Pool),
        placer: Placer::new(policy, nodes, &members(jobs)),
        running: BinaryHeap::new(),
        parts: vec![Vec::new(); jobs.len()],
        waiting: VecDeque::new(),
        outcome: Outcome {
            waits: vec![0; jobs.len()],
            ..Outcome::default()
        },
    };
    let mut arrivals = (0..jobs.len()).peekable();
    let begin = jobs.first().map_or(0, |job| job.arrives);
    let mut now = begin;
    loop {
        let end = replay.running.peek().map(|Reverse((end, _))| *end);
        let arrival = arrivals.peek().map(|&job| jobs[job].arrives);
        let Some(next) = end.into_iter().chain(arrival).min() else {
            break;
        };
        if let Some(&head) = replay.waiting.front()
            && replay.free.cards >= jobs[head].cards
        {
            replay.outcome.blocked += next - now;
            replay.outcome.idle += i128::from(next - now) * i128::from(replay.free.cards);
        }
        now = next;
        while let Some(&Reverse((end, job))) = replay.running.peek()
            && end <= now
        {
            replay.running.pop();
            replay.end(job);
        }
        while let Some(job) = arrivals.next_if(|&job| jobs[job].arrives <= now) {
            replay.waiting.push_back(job);
        }
        replay.schedule(queue, now);
    }
    replay.outcome.span = now - begin;
    replay.outcome
}

fn main() {
    let arguments = Arguments::read(&["--nodes", "--queue"]);
    let (path, whole) = data("philly/philly.csv");
    let text = fs::read_to_string(&path).expect("the file can be read");
    let jobs = read(&text).expect("the file is a job table");
    let usual = if whole { vec![92, 80] } else { vec![24] };
    let nodes: u32 = arguments.value("--nodes", 0);
    let fleets = if nodes > 0 { vec![nodes] } else { usual };
    let wanted: String = arguments.value("--queue", String::new());
    let queues = [Queue::Easy, Queue::Fifo, Queue::Skip];
    let queues = queues
        .into_iter()
        .filter(|queue| wanted.is_empty() || queue.name().eq_ignore_ascii_case(&wanted));
    let queues: Vec<Queue> = queues.collect();
    let title = format!(
        "waiting in minutes, {} jobs ({})",
        jobs.len(),
        if whole {
            "whole trace"
        } else {
            "committed sample"
        }
    );
    let mut report = Report::new(
        &title,
        [
            "policy",
            "queue",
            "nodes",
            "mean",
            "p50",
            "p99",
            "mean of >8 cards",
        ]
        .into_iter()
        .chain([
            "% of time first job blocked with enough free",
            "idle cards % of fleet then",
        ]),
    );
    let mut drawn = Vec::new();
    for &nodes in &fleets {
        for &queue in &queues {
            for policy in POLICIES {
                let outcome = replay(&jobs, nodes, policy, queue);
                let minutes = |millis: f64| millis / 60_000.0;
                let mean = |waits: &mut dyn Iterator<Item = i64>| {
                    let (sum, count) =
                        waits.fold((0, 0), |(sum, n), wait| (sum + i128::from(wait), n + 1));
                    minutes(sum as f64 / f64::from(count.max(1)))
                };
                let mut sorted = outcome.waits.clone();
                sorted.sort_unstable();
                let at = |percent: usize| {
                    let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
                    minutes(sorted.get(place).copied().unwrap_or(0) as f64)
                };
                let large = outcome
                    .waits
                    .iter()
                    .zip(&jobs)
                    .filter(|(_, job)| job.cards > 8);
                let span = outcome.span.max(1) as f64;
                report.push(vec![
                    policy.name().into(),
                    queue.name().into(),
                    Cell::Number(f64::from(nodes), 0),
                    Cell::Number(mean(&mut outcome.waits.iter().copied()), 1),
                    Cell::Number(at(50), 1),
                    Cell::Number(at(99), 1),
                    Cell::Number(mean(&mut large.map(|(wait, _)| *wait)), 1),
                    Cell::Number(outcome.blocked as f64 / span * 100.0, 1),
                    Cell::Number(outcome.idle as f64 / span / f64::from(nodes * 8) * 100.0, 2),
                ]);
                if queue == Queue::Easy && nodes == fleets[0] {
                    let points = (1..100).map(|percent| {
                        (f64::from(percent), at(percent as usize).max(0.01).log10())
                    });
                    drawn.push(plot::Line {
                        name: policy.name().to_owned(),
                        points: points.collect(),
                    });
                }
            }
        }
    }
    print(&arguments, &[report]);
    if let Some(folder) = &arguments.plots {
        let title = format!("Philly on {} nodes, EASY backfill: waiting", fleets[0]);
        let axes = ["percentile of jobs", "log10 of minutes"];
        plot::lines(folder, "philly", &title, axes, &[], &drawn)
            .expect("the folder can be written");
    }
}
