//! How long the engine takes over one request in random fleets: a third of the nodes gives whole cards
//! only, a third cards and shares of cards, a third cards and MIG instances; about 70 % in use.
//!
//! `cargo bench -p gangline-benches --bench fleets -- [--steps N] [--output json] [--plots]`
//! "find" is the choice of the node, "take" the event that puts the pod there, which chooses its cards,
//! "release" the event that takes it away. Each is timed by itself; reading the clock is part of it.

mod plot;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use gangline::{
    Event, NodeIx, Scheduler,
    cluster::{CardMode, NodeCards, NodeSpec},
    engine::Config,
    gang::{PodPhase, PodSpec},
    request::{Apart, CardRequest, CardWant, ShareMemory, SliceChoice, SliceRequest, Template},
    units::Uid,
};
use gangline_benches::{
    CARDS, CARDS_A_NODE, apply, node, node_name, pod,
    replay::{Arguments, Cell, Random, Report, print},
    template,
};

const SIZES: [u32; 3] = [100, 1_000, 10_000];
const PROFILES: [&str; 5] = ["1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb"];

fn mixed_node(index: u32) -> NodeSpec {
    let modes = match index % 3 {
        0 => Vec::new(),
        1 => vec![CardMode::Shared],
        _ => vec![CardMode::MigDynamic],
    };
    let cards = NodeCards {
        kind: CARDS.into(),
        count: CARDS_A_NODE,
        model: "NVIDIA-H100-80GB-HBM3".into(),
        modes,
        ..NodeCards::default()
    };
    NodeSpec {
        cards: vec![cards],
        ..node(index)
    }
}

/// A kind of request: its name, what a pod asks for, and how many of 20 requests are like it.
type Kind = (&'static str, Vec<Arc<Template>>, u32);

fn kinds() -> Vec<Kind> {
    let part = |want: CardWant| {
        let cards = CardRequest {
            want,
            ..CardRequest::whole(CARDS, 1)
        };
        Arc::new(Template {
            cards: Some(cards),
            ..Template::clone(&template(1))
        })
    };
    let slice = |profile: &str| CardWant::Slices {
        slices: vec![SliceRequest {
            count: 1,
            slice: SliceChoice::Profile(profile.into()),
        }],
        cards: Apart::default(),
    };
    let share = |mib: u32| CardWant::Shares {
        count: 1,
        memory: ShareMemory::Mib(mib),
        compute_milli: mib / 80,
        cards: Apart::default(),
    };
    vec![
        ("1 card", vec![template(1)], 6),
        ("2 to 8 cards", [2, 4, 8].map(template).into(), 2),
        (
            "share",
            [8_000, 16_000, 30_000].map(|mib| part(share(mib))).into(),
            6,
        ),
        (
            "MIG slice",
            PROFILES.map(|name| part(slice(name))).into(),
            6,
        ),
    ]
}

struct Running {
    engine: Scheduler,
    pods: Vec<Uid>,
    next: u32,
}

impl Running {
    /// How long the choice took, and the event if there was a node.
    fn place(&mut self, template: &Arc<Template>) -> (Duration, Option<Duration>) {
        self.next += 1;
        let waiting = pod(&format!("pod-{}", self.next), template);
        let uid = waiting.uid;
        let begin = Instant::now();
        let found = self.engine.best_node(template);
        let find = begin.elapsed();
        let Some(NodeIx(index)) = found else {
            return (find, None);
        };
        let event = Event::Pod(PodSpec {
            node: Some(node_name(index)),
            phase: PodPhase::Running,
            ..waiting
        });
        let begin = Instant::now();
        apply(&mut self.engine, event);
        let take = begin.elapsed();
        self.pods.push(uid);
        (find, Some(take))
    }

    fn release(&mut self, random: &mut Random) -> Duration {
        if self.pods.is_empty() {
            return Duration::ZERO;
        }
        let uid = self.pods.swap_remove(random.below(self.pods.len()));
        let begin = Instant::now();
        apply(&mut self.engine, Event::PodGone { uid });
        begin.elapsed()
    }
}

fn percentile(times: &mut [Duration], percent: usize) -> f64 {
    times.sort_unstable();
    let place = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times
        .get(place)
        .map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

fn main() {
    let arguments = Arguments::read(&["--steps", "--nodes"]);
    let steps: u32 = arguments.value("--steps", 20_000);
    let only: u32 = arguments.value("--nodes", 0);
    let kinds = kinds();
    let shares: Vec<u32> = kinds.iter().map(|(_, _, share)| *share).collect();
    let columns = [
        "request", "nodes", "placed", "find p50", "find p99", "take p50", "take p99",
    ];
    let mut report = Report::new(
        "time of one decision in us",
        columns.into_iter().chain(["release p50", "release p99"]),
    );
    let mut lines: Vec<plot::Line> = Vec::new();
    for nodes in SIZES
        .into_iter()
        .filter(|&nodes| only == 0 || nodes == only)
    {
        let mut random = Random::new(nodes.into());
        let mut running = Running {
            engine: Scheduler::new(Config::default()),
            pods: Vec::new(),
            next: 0,
        };
        (0..nodes).for_each(|index| apply(&mut running.engine, Event::Node(mixed_node(index))));
        let pick = |random: &mut Random| {
            let kind = random.weighted(&shares);
            let templates = &kinds[kind].1;
            (kind, templates[random.below(templates.len())].clone())
        };
        // A pod takes two thirds of a card on average.
        for _ in 0..nodes * CARDS_A_NODE * 8 / 10 {
            let (_, template) = pick(&mut random);
            running.place(&template);
        }
        let mut times = vec![[Vec::new(), Vec::new(), Vec::new()]; kinds.len()];
        for _ in 0..steps {
            let (kind, template) = pick(&mut random);
            let (find, placed) = running.place(&template);
            times[kind][0].push(find);
            if let Some(placed) = placed {
                times[kind][1].push(placed);
                let release = running.release(&mut random);
                times[kind][2].push(release);
            }
        }
        for ((name, _, _), [find, take, release]) in kinds.iter().zip(&mut times) {
            let asked = find.len().max(1) as f64;
            let mut row = vec![
                (*name).into(),
                Cell::Number(nodes.into(), 0),
                Cell::Number(take.len() as f64 / asked, 2),
            ];
            for list in [find, take, release] {
                row.push(Cell::Number(percentile(list, 50), 2));
                row.push(Cell::Number(percentile(list, 99), 2));
            }
            if let Some(Cell::Number(time, _)) = row.get(3) {
                let point = (f64::from(nodes).log10(), *time);
                match lines.iter_mut().find(|line| line.name == *name) {
                    Some(line) => line.points.push(point),
                    None => lines.push(plot::Line {
                        name: (*name).into(),
                        points: vec![point],
                    }),
                }
            }
            report.push(row);
        }
    }
    print(&arguments, &[report]);
    if let Some(folder) = &arguments.plots {
        let title = "Choosing a node in a random fleet, median";
        let axes = ["log10 of nodes", "us"];
        plot::lines(folder, "fleets", title, axes, &[], &lines).expect("the folder can be written");
    }
}
