//! One run: tasks arrive one by one and stay; what fits nowhere is dropped.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

use gangline::price::{Effort, NodeState, Prices, fragmentation::Target};

use crate::data::{Fleet, List, Random};

/// Arrived load is looked at up to this, in percent.
pub const MOST_LOAD: usize = 130;

/// How a place is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    FragmentationGradient,
    BidPrice,
}

/// Mean allocation by arrived load, in percent of the cluster.
pub struct Curve(pub Vec<f64>);

const UNKNOWN: i64 = i64::MAX;
const NO_FIT: i64 = i64::MAX - 1;

struct Class {
    state: NodeState,
    mib: i64,
    nodes: BinaryHeap<Reverse<u32>>,
    worth: i64,
    /// By type of work.
    costs: Vec<i64>,
    epoch: u32,
    live_at: usize,
}

enum Scorer<'a> {
    Fragmentation(&'a Target),
    Prices(Prices),
}

impl Scorer<'_> {
    fn worth(&self, state: &NodeState, fleet: &Fleet) -> i64 {
        match self {
            Self::Fragmentation(target) => target.fragment(state, &fleet.catalogue),
            Self::Prices(prices) => prices.worth(state),
        }
    }

    fn cost(&self, worth: i64, before: &NodeState, after: &NodeState, fleet: &Fleet) -> i64 {
        match self {
            Self::Fragmentation(target) => {
                -Target::score(worth, target.fragment(after, &fleet.catalogue))
            }
            Self::Prices(prices) => prices.cost_of(worth, prices.worth(after), before, after),
        }
    }
}

/// What one list's runs share.
pub struct Shared {
    pub target: Target,
    pub first: Prices,
}

impl Shared {
    pub fn new(list: &List, fleet: &Fleet) -> Self {
        let mut states: Vec<NodeState> = fleet.nodes.iter().map(|(s, _)| s.clone()).collect();
        states.sort();
        let counted = count(&states);
        Self {
            target: Target::new(&list.mix),
            first: Prices::solve(&fleet.catalogue, &list.mix, &counted, None, Effort { rounds: 400 }),
        }
    }
}

fn count(sorted: &[NodeState]) -> Vec<(NodeState, u64)> {
    sorted
        .chunk_by(|a, b| a == b)
        .map(|same| (same[0].clone(), same.len() as u64))
        .collect()
}

/// Replays a list with a seed.
pub fn replay(list: &List, fleet: &Fleet, shared: &Shared, policy: Policy, seed: u64) -> Curve {
    let arrivals = list.arrivals(seed, fleet.capacity);
    let mut order: Vec<usize> = (0..fleet.nodes.len()).collect();
    Random::new(seed ^ 0x6e6f_6465).shuffle(&mut order);
    let mut scorer = match policy {
        Policy::FragmentationGradient => Scorer::Fragmentation(&shared.target),
        Policy::BidPrice => Scorer::Prices(shared.first.clone()),
    };
    let every: usize = std::env::var("EVERY").ok().and_then(|x| x.parse().ok()).unwrap_or(100);
    let rounds: u32 = std::env::var("ROUNDS").ok().and_then(|x| x.parse().ok()).unwrap_or(12);
    let mut classes: Vec<Class> = Vec::new();
    let mut by_state: HashMap<(NodeState, i64), usize> = HashMap::new();
    let mut live: Vec<usize> = Vec::new();
    let mut epoch = 0;
    let mut put = |classes: &mut Vec<Class>, live: &mut Vec<usize>, state: NodeState, mib: i64, node: u32| {
        let ix = *by_state.entry((state, mib)).or_insert_with_key(|(state, mib)| {
            classes.push(Class {
                state: state.clone(),
                mib: *mib,
                nodes: BinaryHeap::new(),
                worth: 0,
                costs: vec![UNKNOWN; list.types.len()],
                epoch: u32::MAX,
                live_at: usize::MAX,
            });
            classes.len() - 1
        });
        let class = &mut classes[ix];
        class.nodes.push(Reverse(node));
        if class.live_at == usize::MAX {
            class.live_at = live.len();
            live.push(ix);
        }
    };
    for (rank, &node) in order.iter().enumerate() {
        let (state, mib) = &fleet.nodes[node];
        put(&mut classes, &mut live, state.clone(), *mib, rank as u32);
    }
    let mut sums = vec![(0.0, 0_u32); MOST_LOAD + 1];
    let mut used: std::collections::BTreeMap<(u16, bool, i64), i64> = Default::default();
    let mut drops: std::collections::BTreeMap<(usize, i64), (u32, i64)> = Default::default();
    let (mut arrived, mut allocated) = (0_i64, 0_i64);
    for (number, task) in arrivals.iter().enumerate() {
        if number > 0 && number % every == 0 {
            if let Scorer::Prices(prices) = &mut scorer {
                let mut states: Vec<NodeState> = Vec::new();
                for &ix in &live {
                    for _ in 0..classes[ix].nodes.len() {
                        states.push(classes[ix].state.clone());
                    }
                }
                states.sort();
                *prices = Prices::solve(
                    &fleet.catalogue,
                    &list.mix,
                    &count(&states),
                    Some(prices),
                    Effort { rounds },
                );
                epoch += 1;
            }
        }
        let work = &list.types[task.work];
        let size = list.sizes[task.work];
        arrived += size;
        let mut best: Option<(i64, u32, usize)> = None;
        for &ix in &live {
            let class = &mut classes[ix];
            if class.mib < task.mib {
                continue;
            }
            if class.epoch != epoch {
                class.epoch = epoch;
                class.costs.fill(UNKNOWN);
                class.worth = scorer.worth(&class.state, fleet);
            }
            let mut cost = class.costs[task.work];
            if cost == UNKNOWN {
                cost = NO_FIT;
                class.state.for_each_after(work, &fleet.catalogue, |after| {
                    cost = cost.min(scorer.cost(class.worth, &class.state, &after, fleet));
                });
                class.costs[task.work] = cost;
            }
            if cost == NO_FIT || best.is_some_and(|(least, ..)| cost > least) {
                continue;
            }
            let Some(&Reverse(node)) = class.nodes.peek() else {
                continue;
            };
            if best.is_none_or(|(least, first, _)| (cost, node) < (least, first)) {
                best = Some((cost, node, ix));
            }
        }
        if let Some((cost, node, ix)) = best {
            let mut chosen = None;
            let class = &mut classes[ix];
            class.state.for_each_after(work, &fleet.catalogue, |after| {
                if chosen.is_none() && scorer.cost(class.worth, &class.state, &after, fleet) == cost {
                    chosen = Some(after);
                }
            });
            class.nodes.pop();
            let mib = class.mib - task.mib;
            if class.nodes.is_empty() {
                let at = class.live_at;
                class.live_at = usize::MAX;
                live.swap_remove(at);
                if let Some(&moved) = live.get(at) {
                    classes[moved].live_at = at;
                }
            }
            if let Some(after) = chosen {
                if std::env::var("VERB").is_ok() { *used.entry((after.kind, work.allowed.is_some(), arrived * 20 / fleet.capacity)).or_insert(0) += size; }
            put(&mut classes, &mut live, after, mib, node);
                allocated += size;
            }
        }
        if best.is_none() && std::env::var("VERB").is_ok() {
            drops.entry((task.work, (arrived * 20 / fleet.capacity))).or_insert((0, 0)).0 += 1;
            drops.get_mut(&(task.work, (arrived * 20 / fleet.capacity))).unwrap().1 += size;
        }
        let load = (arrived as f64 / fleet.capacity as f64 * 100.0).round() as usize;
        if let Some((sum, count)) = sums.get_mut(load) {
            *sum += allocated as f64 / fleet.capacity as f64 * 100.0;
            *count += 1;
        }
    }
    if std::env::var("VERB").is_ok() {
        let mut v: Vec<_> = drops.iter().filter(|x| x.0.1 <= 19).collect();
        v.sort_by_key(|x| -x.1.1);
        for ((t, l), (n, m)) in v.iter().take(14) {
            let w = &list.types[*t];
            eprintln!("{} seed {seed} load {}: {:?} cpu {} n {} gpus {:.1} {:?}", list.name, l * 5, w.demand, w.milli_cpu, n, *m as f64 / 1000.0, w.allowed.as_ref().map(|a| (0..fleet.catalogue.kinds.len() as u16).filter(|k| a.contains(*k)).collect::<Vec<_>>()));
        }
        for l in 0..26 { let (mut n, mut c, mut g) = (0, 0, 0); for ((t, at), (k, m)) in &drops { if *at == l { g += m; if list.sizes[*t] == 0 { n += k; c += list.types[*t].milli_cpu / 1000 * i64::from(*k); } } } if n > 0 || g > 0 { eprintln!("dropped at load {}: cpu-only {n} ({c} cpus) gpus {}", l * 5, g / 1000); } }
        let mut sets: std::collections::BTreeMap<String, (i64, i64)> = Default::default();
        for ((t, at), (_, m)) in &drops { if *at <= 18 { let w = &list.types[*t]; let e = sets.entry(format!("{:?} {}", w.allowed.as_ref().map(|a| (0..fleet.catalogue.kinds.len() as u16).filter(|k| a.contains(*k)).collect::<Vec<_>>()), if let gangline::price::Demand::Whole { count } = w.demand { count } else { 0 })).or_default(); e.0 += m; } }
        for (k, e) in sets { eprintln!("dropped below 95: {k} {}", e.0 / 1000); }
        let mut sets: std::collections::BTreeMap<String, (i64, i64)> = Default::default();
        for ((t, at), (_, m)) in &drops { if *at == 19 { let w = &list.types[*t]; let e = sets.entry(format!("{:?} {}", w.allowed.as_ref().map(|a| (0..fleet.catalogue.kinds.len() as u16).filter(|k| a.contains(*k)).collect::<Vec<_>>()), if let gangline::price::Demand::Whole { count } = w.demand { count } else { 0 })).or_default(); e.0 += m; } }
        for (k, e) in sets { eprintln!("dropped 95-100: {k} {}", e.0 / 1000); }
        for k in 0..fleet.catalogue.kinds.len() as u16 { for c in [false, true] { let v: Vec<i64> = (0..26).map(|l| used.get(&(k, c, l)).copied().unwrap_or(0) / 1000).collect(); eprintln!("used kind {k} constrained {c}: {v:?}"); } }
        let mut by: std::collections::BTreeMap<u16, (i64, i64, i64)> = Default::default();
        for &ix in &live {
            let c = &classes[ix];
            let e = by.entry(c.state.kind).or_default();
            let n = c.nodes.len() as i64;
            e.0 += n; e.1 += n * c.state.milli_cpu / 1000; e.2 += n * c.state.idle_milli(&fleet.catalogue) / 1000;
        }
        for (k, e) in by { let kind = &fleet.catalogue.kinds[k as usize]; eprintln!("kind {k} {:?} x {} cpu left {} idle {}", (kind.model, kind.cards, kind.milli_cpu), e.0, e.1, e.2); }
    }
    Curve(sums.into_iter().map(|(sum, count)| sum / f64::from(count)).collect())
}
