//! What a class of nodes can do for a member, and at what price: asked once, kept, and ranked.
//!
//! A [`Table`] belongs to a template and a scoring rule and outlives the search that made it. Its
//! answers never go stale, because a class's generation never stands for two states. The table can
//! also say which node is cheapest of all: a heap of classes, brought up to date with what changed
//! since it was last asked, so that the cost follows the changes and not the number of nodes.

use alloc::vec::Vec;

use super::{
    Batch, score,
    worth::{Room, Worth},
};
use crate::{
    cluster::{
        Cluster, NodeIx, capacity_of,
        class::ClassIx,
        shape::StaticFit,
        template::{Compiled, TemplateIx},
    },
    gang::ScoringRule,
    hash::Map,
    heap,
};

/// So many tables are kept, and more only while one search needs them all.
const KEPT: usize = 64;

/// How many members of a template a node of a class can take, and the price of one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    pub(super) capacity: u32,
    pub(super) price: i64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Memo {
    generation: u64,
    rate: Rate,
}

/// A class in the ranking. Ordered by price, then node order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    price: i64,
    /// Not above the rank of the class's first node.
    rank: u32,
    class: ClassIx,
    generation: u64,
}

impl Ranked {
    fn is_live(&self, cluster: &Cluster) -> bool {
        let class = cluster.classes.get(self.class);
        class.generation == self.generation && class.count > 0
    }
}

/// The answers for one template under one scoring rule.
#[derive(Clone, Debug)]
pub(super) struct Table {
    owner: (TemplateIx, ScoringRule),
    /// Number of the search that used it last.
    used: u64,
    /// By class.
    memo: Vec<Memo>,
    /// Min-heap that holds, for each class with nodes and room, at least one entry that is not
    /// too high, as of `seen`.
    ranking: Vec<Ranked>,
    /// Up to where the ranking has taken in the news of the classes.
    seen: Option<u64>,
}

impl Table {
    fn new(owner: (TemplateIx, ScoringRule)) -> Self {
        Self {
            owner,
            used: 0,
            memo: Vec::new(),
            ranking: Vec::new(),
            seen: None,
        }
    }

    /// Takes another owner and keeps the memory.
    fn hand_over(&mut self, owner: (TemplateIx, ScoringRule)) {
        self.owner = owner;
        self.memo.clear();
        self.ranking.clear();
        self.seen = None;
    }

    /// Capacity and price of a class, by what is free and static rules.
    pub(super) fn rate(
        &mut self,
        cluster: &mut Cluster,
        worth: &mut Worth,
        class: ClassIx,
    ) -> Rate {
        let index = class.0 as usize;
        if self.memo.len() <= index {
            self.memo.resize(cluster.classes.limit(), Memo::default());
        }
        let generation = cluster.classes.get(class).generation;
        let memo = self.memo[index];
        if memo.generation == generation {
            return memo.rate;
        }
        let rate = rate_anew(cluster, worth, self.owner, class);
        self.memo[index] = Memo { generation, rate };
        rate
    }

    /// Capacity and price of one node, whose class says too little: for members that name cards.
    pub(super) fn rate_node(
        &self,
        cluster: &mut Cluster,
        worth: &mut Worth,
        (node, class): (NodeIx, ClassIx),
    ) -> Rate {
        let (template, rule) = self.owner;
        let Some(preference) = preference(cluster, template, class) else {
            return Rate::default();
        };
        let room = Room {
            cards: &cluster.node(node).cards,
            free: cluster.free_of(node),
            allocatable: cluster.allocatable_of(class),
        };
        rate_room(cluster.template(template), worth, rule, room, preference)
    }

    /// The cheapest node for one member, first in node order among equals, by classes alone. Node
    /// order must be settled.
    pub(super) fn cheapest(&mut self, cluster: &mut Cluster, worth: &mut Worth) -> Option<NodeIx> {
        self.catch_up(cluster, worth);
        while let Some(top) = self.ranking.first_mut() {
            if !top.is_live(cluster) {
                heap::pop(&mut self.ranking);
                continue;
            }
            let node = cluster.first_of(top.class)?;
            let rank = cluster.node(node).rank;
            if rank == top.rank {
                return Some(node);
            }
            top.rank = rank;
            heap::sink_first(&mut self.ranking);
        }
        None
    }

    fn catch_up(&mut self, cluster: &mut Cluster, worth: &mut Worth) {
        let news = cluster.classes.news();
        if let Some(seen) = self.seen.filter(|&seen| seen >= news.start) {
            for position in seen..news.end {
                let class = cluster.classes.news_at(position);
                self.take_in(cluster, worth, class);
            }
        } else {
            self.ranking.clear();
            for index in 0..cluster.classes.active().len() {
                let class = cluster.classes.active()[index];
                self.take_in(cluster, worth, class);
            }
        }
        self.seen = Some(news.end);
        if self.ranking.len() > 2 * cluster.classes.active().len() + 64 {
            self.ranking.retain(|entry| entry.is_live(cluster));
            self.ranking
                .sort_unstable_by_key(|entry| (entry.class, entry.rank));
            self.ranking.dedup_by_key(|entry| entry.class);
            // A sorted list is a heap.
            self.ranking.sort_unstable();
        }
    }

    fn take_in(&mut self, cluster: &mut Cluster, worth: &mut Worth, class: ClassIx) {
        let Some(rank) = cluster.classes.get(class).lowest_rank() else {
            return;
        };
        let rate = self.rate(cluster, worth, class);
        if rate.capacity > 0 {
            let generation = cluster.classes.get(class).generation;
            let price = rate.price;
            heap::push(
                &mut self.ranking,
                Ranked {
                    price,
                    rank,
                    class,
                    generation,
                },
            );
        }
    }
}

fn rate_anew(
    cluster: &mut Cluster,
    worth: &mut Worth,
    (template, rule): (TemplateIx, ScoringRule),
    class: ClassIx,
) -> Rate {
    let Some(preference) = preference(cluster, template, class) else {
        return Rate::default();
    };
    let room = Room::of_class(cluster.classes.get(class), cluster.allocatable_of(class));
    rate_room(cluster.template(template), worth, rule, room, preference)
}

/// How much a template likes a class by static rules; `None`: it cannot go there.
fn preference(cluster: &mut Cluster, template: TemplateIx, class: ClassIx) -> Option<i32> {
    // Templates that name nodes get their static answer node by node.
    if cluster.template(template).names_nodes {
        return Some(0);
    }
    match cluster.static_fit(template, class) {
        StaticFit::Fits { preference } => Some(preference),
        StaticFit::Fails(_) => None,
    }
}

fn rate_room(
    template: &Compiled,
    worth: &mut Worth,
    rule: ScoringRule,
    room: Room<'_>,
    preference: i32,
) -> Rate {
    let capacity = capacity_of(template, room.cards, room.free);
    if capacity == 0 {
        return Rate::default();
    }
    let price = if worth.rules(rule) {
        match worth.cheapest(rule, template, room) {
            Some((_, price)) => price,
            None => return Rate::default(),
        }
    } else {
        score::price(rule, template, room)
    };
    Rate {
        capacity,
        price: price.saturating_sub(score::liked(preference.into())),
    }
}

/// The tables of the latest searches.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_field_names, reason = "the tables and their indexes")]
pub(super) struct Tables {
    kept: Vec<Table>,
    by_owner: Map<(TemplateIx, ScoringRule), u32>,
    /// By batch of the search at hand.
    of_batch: Vec<u32>,
    searches: u64,
}

impl Tables {
    /// Starts a search: finds or makes the table of each batch.
    pub(super) fn assign(&mut self, batches: &[Batch], rule: ScoringRule) {
        self.searches += 1;
        self.of_batch.clear();
        for batch in batches {
            let table = self.index_of((batch.template, rule));
            self.of_batch.push(table);
        }
    }

    /// Forgets every answer, keeping memory.
    pub(super) fn forget(&mut self) {
        for table in &mut self.kept {
            table.hand_over(table.owner);
        }
    }

    /// The table of a batch of the search at hand.
    pub(super) fn of_batch(&mut self, batch: u32) -> &mut Table {
        &mut self.kept[self.of_batch[batch as usize] as usize]
    }

    /// The table of a template, outside a search.
    pub(super) fn of(&mut self, template: TemplateIx, rule: ScoringRule) -> &mut Table {
        let index = self.index_of((template, rule));
        &mut self.kept[index as usize]
    }

    fn index_of(&mut self, owner: (TemplateIx, ScoringRule)) -> u32 {
        let searches = self.searches;
        if let Some(&index) = self.by_owner.get(&owner) {
            self.kept[index as usize].used = searches;
            return index;
        }
        let oldest = (0..self.kept.len()).min_by_key(|&index| self.kept[index].used);
        let index = match oldest {
            Some(oldest) if self.kept.len() >= KEPT && self.kept[oldest].used < searches => {
                let table = &mut self.kept[oldest];
                self.by_owner.remove(&table.owner);
                table.hand_over(owner);
                oldest
            }
            _ => {
                self.kept.push(Table::new(owner));
                self.kept.len() - 1
            }
        };
        self.kept[index].used = searches;
        self.by_owner.insert(owner, index as u32);
        index as u32
    }
}
