//! Classes: nodes in the same state are one.
//!
//! A class is a shape plus what is free. Every question about capacity or price is asked once a
//! class, so its cost grows with distinct states, not with nodes. A class knows its first node (by
//! node order) through a heap of ranks whose stale entries are dropped when they surface.

use alloc::vec::Vec;
use core::{hash::Hasher, ops::Range};

use hashbrown::HashTable;

use super::shape::ShapeIx;
use crate::{device::Inventory, hash::WordHasher, heap};

/// Index of a class; re-used after the class has lost its last node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ClassIx(pub(crate) u32);

#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub(crate) shape: ShapeIx,
    pub(crate) free: Vec<i64>,
    pub(crate) cards: Inventory,
    /// Never the same for two states, so that tables by class can tell a re-used index.
    pub(crate) generation: u64,
    /// Nodes in this state now.
    pub(crate) count: u32,
    /// Min-heap of ranks of nodes that are or were in this class.
    ranks: Vec<u32>,
    /// Position in the list of classes that have nodes.
    active_at: u32,
}

#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_field_names, reason = "the table and its indexes")]
pub(crate) struct Classes {
    classes: Vec<Class>,
    by_state: HashTable<ClassIx>,
    active: Vec<ClassIx>,
    unused: Vec<ClassIx>,
    generations: u64,
    /// Classes that were made or whose first rank may have fallen, latest last.
    news: Vec<ClassIx>,
    /// News that were dropped.
    news_before: u64,
}

impl Class {
    /// A bound on the rank of its first node that is not too high; `None` without nodes.
    pub(crate) fn lowest_rank(&self) -> Option<u32> {
        self.ranks.first().copied().filter(|_| self.count > 0)
    }
}

impl Classes {
    pub(crate) fn get(&self, class: ClassIx) -> &Class {
        &self.classes[class.0 as usize]
    }

    /// Classes that have nodes, in no particular order.
    pub(crate) fn active(&self) -> &[ClassIx] {
        &self.active
    }

    /// One more than the largest index in use: the size of a table by class.
    pub(crate) fn limit(&self) -> usize {
        self.classes.len()
    }

    /// Counts a node with this state and rank in; returns its class.
    pub(crate) fn enter(
        &mut self,
        shape: ShapeIx,
        free: &[i64],
        cards: &Inventory,
        rank: u32,
    ) -> ClassIx {
        let hash = hash_state(shape, free, cards);
        let classes = &self.classes;
        let same = |&ix: &ClassIx| {
            let class = &classes[ix.0 as usize];
            class.shape == shape && class.free == free && class.cards.same_state(cards)
        };
        let ix = if let Some(&ix) = self.by_state.find(hash, same) {
            ix
        } else {
            let ix = self.make(shape, free, cards);
            let classes = &self.classes;
            self.by_state.insert_unique(hash, ix, |ix| {
                let class = &classes[ix.0 as usize];
                hash_state(class.shape, &class.free, &class.cards)
            });
            ix
        };
        let class = &mut self.classes[ix.0 as usize];
        class.count += 1;
        // A full heap is mostly copies of nodes that came and went. Without them it is in proportion
        // to the nodes, however often a search tries and undoes; sorted, it is still a heap.
        if class.ranks.len() == class.ranks.capacity() {
            class.ranks.sort_unstable();
            class.ranks.dedup();
            if class.ranks.len() > class.ranks.capacity() / 2 {
                class.ranks.reserve(class.ranks.len());
            }
        }
        let is_news = class.ranks.first().is_none_or(|&first| rank < first);
        heap::push(&mut class.ranks, rank);
        if is_news {
            self.tell(ix);
        }
        ix
    }

    /// Notes that a class is new or that its first node may be an earlier one than before. Who
    /// follows the news has a bound on each class's first rank that is never too high.
    fn tell(&mut self, ix: ClassIx) {
        // Bounded: whoever falls behind that far does better to look at every class anew. Room for
        // all of it is made at once, so that a busy search does not make more.
        let most = 2 * self.active.len() + 1024;
        if self.news.len() >= most {
            self.news_before += self.news.len() as u64;
            self.news.clear();
        }
        if self.news.len() == self.news.capacity() {
            self.news.reserve(most);
        }
        self.news.push(ix);
    }

    /// Positions of the news that are still there.
    pub(crate) fn news(&self) -> Range<u64> {
        self.news_before..self.news_before + self.news.len() as u64
    }

    /// The class that news at a position within [`Classes::news`] is about.
    pub(crate) fn news_at(&self, position: u64) -> ClassIx {
        self.news[(position - self.news_before) as usize]
    }

    fn make(&mut self, shape: ShapeIx, free: &[i64], cards: &Inventory) -> ClassIx {
        let active_at = self.active.len() as u32;
        self.generations += 1;
        let generation = self.generations;
        let ix = if let Some(ix) = self.unused.pop() {
            let class = &mut self.classes[ix.0 as usize];
            class.shape = shape;
            class.generation = generation;
            class.free.clear();
            class.free.extend_from_slice(free);
            class.cards.clone_from(cards);
            class.count = 0;
            class.ranks.clear();
            class.active_at = active_at;
            ix
        } else {
            self.classes.push(Class {
                shape,
                free: free.into(),
                cards: cards.clone(),
                generation,
                count: 0,
                ranks: Vec::new(),
                active_at,
            });
            ClassIx((self.classes.len() - 1) as u32)
        };
        self.active.push(ix);
        ix
    }

    /// Counts a node out. Its rank stays in the heap until it surfaces.
    pub(crate) fn leave(&mut self, ix: ClassIx) {
        let class = &mut self.classes[ix.0 as usize];
        class.count -= 1;
        if class.count > 0 {
            return;
        }
        let hash = hash_state(class.shape, &class.free, &class.cards);
        if let Ok(entry) = self.by_state.find_entry(hash, |&other| other == ix) {
            entry.remove();
        }
        let at = self.classes[ix.0 as usize].active_at as usize;
        self.active.swap_remove(at);
        if let Some(&moved) = self.active.get(at) {
            self.classes[moved.0 as usize].active_at = at as u32;
        }
        self.unused.push(ix);
    }

    /// The rank of the first node of a class. `belongs` says whether the node with a rank is in the
    /// class now. Amortised logarithmic.
    pub(crate) fn first_rank(&mut self, ix: ClassIx, belongs: impl Fn(u32) -> bool) -> Option<u32> {
        let class = &mut self.classes[ix.0 as usize];
        // Nodes that came and went often leave copies behind: start over from the distinct ones.
        if class.ranks.len() > 64 && class.ranks.len() as u64 > 4 * u64::from(class.count) {
            class.ranks.sort_unstable();
            class.ranks.dedup();
            class.ranks.retain(|&rank| belongs(rank));
        }
        while let Some(&rank) = class.ranks.first() {
            if belongs(rank) {
                return Some(rank);
            }
            heap::pop(&mut class.ranks);
        }
        None
    }

    /// Forgets everything, keeping memory.
    pub(crate) fn clear(&mut self) {
        for &ix in &self.active {
            self.classes[ix.0 as usize].count = 0;
        }
        self.by_state.clear();
        self.active.clear();
        self.unused.clear();
        self.unused
            .extend((0..self.classes.len() as u32).rev().map(ClassIx));
    }
}

fn hash_state(shape: ShapeIx, free: &[i64], cards: &Inventory) -> u64 {
    let mut hasher = WordHasher::default();
    hasher.write_u32(shape.0);
    for &amount in free {
        hasher.write_u64(amount as u64);
    }
    cards.hash_state(&mut hasher);
    hasher.finish()
}
