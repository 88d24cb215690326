//! One run: tasks arrive one by one and stay; what fits nowhere is dropped and not tried again.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashMap},
    sync::OnceLock,
};

use gangline::price::{Effort, Mix, NodeState, Prices, WorkType, fragmentation::Target};
use gangline_benches::replay::Random;

use crate::data::{Fleet, List, Task, shuffle};

/// Arrived load is looked at up to this, in percent of the cluster.
pub const MOST_LOAD: usize = 130;
/// Prices are solved anew after a task for so many cards of the cluster: each hundred tasks here.
const CARDS_A_TASK: i64 = 62;
/// And the first time, when the mix is learned, after so many: a hundred tasks placed without prices
/// would spoil half a percent of the cluster for good.
const FIRST_PRICES: usize = 10;
/// A mix that is learned forgets 1/64 of what it saw each time.
const FORGET: u32 = 6;

/// How a place is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// The fragmentation gradient, with the mix of the list.
    FragmentationGradient,
    /// Bid prices, with the mix of the list.
    BidPrice,
    /// Bid prices, with the mix of the tasks that arrived so far, old ones forgotten.
    Learned,
}

/// What the runs of one list share.
#[derive(Default)]
pub struct Shared {
    target: OnceLock<Target>,
    first: OnceLock<Prices>,
}

enum Scorer<'a> {
    Target(&'a Target),
    Prices(Box<Prices>),
}

impl Scorer<'_> {
    /// What [`cost`](Self::cost) compares.
    fn worth(&self, state: &NodeState, fleet: &Fleet) -> i64 {
        match self {
            Self::Target(target) => target.fragment(state, &fleet.catalogue),
            Self::Prices(prices) => prices.worth(state),
        }
    }

    fn cost(&self, worth: i64, after: &NodeState, fleet: &Fleet) -> i64 {
        let worth_after = self.worth(after, fleet);
        match self {
            Self::Target(_) => -Target::score(worth, worth_after),
            Self::Prices(prices) => prices.cost_of(worth, worth_after, after),
        }
    }

    /// The least cost of work in a state, and the state afterwards; of equal ones the first.
    fn best(
        &self,
        worth: i64,
        before: &NodeState,
        work: &WorkType,
        fleet: &Fleet,
    ) -> Option<(i64, NodeState)> {
        let mut best: Option<(i64, NodeState)> = None;
        before.for_each_after(work, &fleet.catalogue, |after| {
            let cost = self.cost(worth, &after, fleet);
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, after));
            }
        });
        best
    }
}

/// Nodes in the same state, and what is known of it under the present prices.
struct Class {
    state: NodeState,
    mib: i64,
    /// By rank in the order of nodes, first on top.
    nodes: BinaryHeap<Reverse<u32>>,
    worth: i64,
    costs: Vec<Cost>,
    epoch: u32,
    /// Its place in [`Classes::live`].
    live_at: Option<usize>,
}

#[derive(Clone, Copy)]
enum Cost {
    Unknown,
    DoesNotFit,
    Is(i64),
}

struct Classes {
    all: Vec<Class>,
    by_state: HashMap<(NodeState, i64), usize>,
    /// Those with nodes, in any order.
    live: Vec<usize>,
    types: usize,
}

impl Classes {
    fn put(&mut self, state: NodeState, mib: i64, node: u32) {
        let types = self.types;
        let ix = *self
            .by_state
            .entry((state, mib))
            .or_insert_with_key(|(state, mib)| {
                self.all.push(Class {
                    state: state.clone(),
                    mib: *mib,
                    nodes: BinaryHeap::new(),
                    worth: 0,
                    costs: vec![Cost::Unknown; types],
                    epoch: u32::MAX,
                    live_at: None,
                });
                self.all.len() - 1
            });
        let class = &mut self.all[ix];
        class.nodes.push(Reverse(node));
        if class.live_at.is_none() {
            class.live_at = Some(self.live.len());
            self.live.push(ix);
        }
    }

    /// Takes the first node of a class.
    fn take(&mut self, ix: usize) {
        let class = &mut self.all[ix];
        class.nodes.pop();
        if let Some(at) = class.live_at.filter(|_| class.nodes.is_empty()) {
            class.live_at = None;
            self.live.swap_remove(at);
            if let Some(&moved) = self.live.get(at) {
                self.all[moved].live_at = Some(at);
            }
        }
    }

    /// The cheapest place for a task: the class, and the state afterwards. Of equal costs the first
    /// node in the order decides.
    fn cheapest(
        &mut self,
        task: Task,
        work: &WorkType,
        scorer: &Scorer<'_>,
        epoch: u32,
        fleet: &Fleet,
    ) -> Option<(usize, NodeState)> {
        let mut best: Option<(i64, Reverse<u32>, usize)> = None;
        for &ix in &self.live {
            let class = &mut self.all[ix];
            if class.mib < task.mib {
                continue;
            }
            if class.epoch != epoch {
                class.epoch = epoch;
                class.costs.fill(Cost::Unknown);
                class.worth = scorer.worth(&class.state, fleet);
            }
            if let Cost::Unknown = class.costs[task.work] {
                let found = scorer.best(class.worth, &class.state, work, fleet);
                class.costs[task.work] = found.map_or(Cost::DoesNotFit, |(cost, _)| Cost::Is(cost));
            }
            let (Cost::Is(cost), Some(&first)) = (class.costs[task.work], class.nodes.peek())
            else {
                continue;
            };
            if best.is_none_or(|(least, node, _)| (cost, first.0) < (least, node.0)) {
                best = Some((cost, first, ix));
            }
        }
        let (.., ix) = best?;
        let class = &self.all[ix];
        let (_, after) = scorer.best(class.worth, &class.state, work, fleet)?;
        Some((ix, after))
    }

    fn fleet(&self) -> Vec<(NodeState, u64)> {
        // In order of state: no table's order may matter.
        let mut states: BTreeMap<&NodeState, u64> = BTreeMap::new();
        for &ix in &self.live {
            let class = &self.all[ix];
            *states.entry(&class.state).or_default() += class.nodes.len() as u64;
        }
        states
            .into_iter()
            .map(|(state, count)| (state.clone(), count))
            .collect()
    }
}

/// Replays a list with a seed. Returns the mean allocation by arrived load, both in percent of the
/// cluster.
pub fn run(list: &List, fleet: &Fleet, shared: &Shared, policy: Policy, seed: u64) -> Vec<f64> {
    let arrivals = list.arrivals(seed, fleet.capacity);
    let mut order: Vec<usize> = (0..fleet.nodes.len()).collect();
    shuffle(&mut order, &mut Random::new(!seed));
    let mut classes = Classes {
        all: Vec::new(),
        by_state: HashMap::new(),
        live: Vec::new(),
        types: list.types.len(),
    };
    for (rank, &node) in order.iter().enumerate() {
        let (state, mib) = &fleet.nodes[node];
        classes.put(state.clone(), *mib, rank as u32);
    }
    let solve = |mix: &Mix, classes: &Classes, previous: Option<&Prices>| {
        let effort = previous.map_or(Effort::FIRST, |_| Effort::FOLLOW);
        Prices::solve(&fleet.catalogue, mix, &classes.fleet(), previous, effort)
    };
    let mut learned = Mix::new();
    let mut scorer = match policy {
        Policy::FragmentationGradient => {
            Scorer::Target(shared.target.get_or_init(|| Target::new(&list.mix)))
        }
        Policy::BidPrice => {
            let first = shared
                .first
                .get_or_init(|| solve(&list.mix, &classes, None));
            Scorer::Prices(Box::new(first.clone()))
        }
        Policy::Learned => Scorer::Prices(Box::new(solve(&learned, &classes, None))),
    };
    let cards = fleet.capacity / 1000;
    let prices_last = (cards / CARDS_A_TASK).max(FIRST_PRICES as i64) as usize;
    let mut epoch = 0;
    let mut sums = vec![(0.0, 0_u32); MOST_LOAD + 1];
    let (mut arrived, mut allocated) = (0_i64, 0_i64);
    let percent = |milli: i64| milli as f64 / fleet.capacity as f64 * 100.0;
    for (number, &task) in arrivals.iter().enumerate() {
        let due = number > 0 && number.is_multiple_of(prices_last)
            || policy == Policy::Learned && number == FIRST_PRICES;
        if let Scorer::Prices(prices) = &mut scorer
            && due
        {
            let mix = match policy {
                Policy::Learned => &learned,
                _ => &list.mix,
            };
            // Prices of an empty mix are no start.
            let previous = Some(&**prices).filter(|prices| !prices.mix().types().is_empty());
            **prices = solve(mix, &classes, previous);
            learned.forget(FORGET);
            epoch += 1;
        }
        let work = &list.types[task.work];
        let size = list.sizes[task.work];
        arrived += size;
        if policy == Policy::Learned {
            learned.add(work, 1);
        }
        if let Some((ix, after)) = classes.cheapest(task, work, &scorer, epoch, fleet) {
            let class = &classes.all[ix];
            let (mib, Some(&Reverse(node))) = (class.mib - task.mib, class.nodes.peek()) else {
                continue;
            };
            classes.take(ix);
            classes.put(after, mib, node);
            allocated += size;
        }
        if let Some((sum, count)) = sums.get_mut(percent(arrived).round() as usize) {
            *sum += percent(allocated);
            *count += 1;
        }
    }
    sums.into_iter()
        .map(|(sum, count)| sum / f64::from(count.max(1)))
        .collect()
}
