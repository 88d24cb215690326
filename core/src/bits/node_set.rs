//! A set of nodes in 64-bit words that grows with the largest index.

use alloc::vec::Vec;
use core::fmt;

const WORD_BITS: u32 = u64::BITS;

/// Nodes of a cluster: node `i` is bit `i % 64` of word `i / 64`.
///
/// Memory is one bit for each index up to the largest one ever inserted. Nothing here allocates as
/// long as indexes stay below the [capacity](Self::with_capacity). Indexes beyond it are simply not
/// in the set. Two sets are equal when they hold the same nodes, however they grew.
#[derive(Default)]
pub struct NodeSet {
    words: Vec<u64>,
}

impl NodeSet {
    /// No node; allocates nothing.
    pub const fn new() -> Self {
        Self { words: Vec::new() }
    }

    /// No node, with room for the nodes `0..count`.
    pub fn with_capacity(count: u32) -> Self {
        Self {
            words: Vec::with_capacity(count.div_ceil(WORD_BITS) as usize),
        }
    }

    /// Puts a node in; whether it was not there before.
    pub fn insert(&mut self, index: u32) -> bool {
        let (word, bit) = position(index);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let before = self.words[word];
        self.words[word] = before | bit;
        before & bit == 0
    }

    /// Takes a node out; whether it was there before.
    pub fn remove(&mut self, index: u32) -> bool {
        let (word, bit) = position(index);
        let Some(word) = self.words.get_mut(word) else {
            return false;
        };
        let was_there = *word & bit != 0;
        *word &= !bit;
        was_there
    }

    /// Whether a node is in the set.
    pub fn contains(&self, index: u32) -> bool {
        let (word, bit) = position(index);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Takes all nodes out; keeps the room.
    pub fn clear(&mut self) {
        self.words.clear();
    }

    /// How many nodes are in the set. Counts them: a step for each word.
    pub fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether no node is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Puts in all nodes of `other`.
    pub fn union_with(&mut self, other: &Self) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (word, theirs) in self.words.iter_mut().zip(&other.words) {
            *word |= theirs;
        }
    }

    /// Takes out all nodes that are not in `other`.
    pub fn intersect_with(&mut self, other: &Self) {
        self.words.truncate(other.words.len());
        for (word, theirs) in self.words.iter_mut().zip(&other.words) {
            *word &= theirs;
        }
    }

    /// Takes out all nodes of `other`.
    pub fn difference_with(&mut self, other: &Self) {
        for (word, theirs) in self.words.iter_mut().zip(&other.words) {
            *word &= !theirs;
        }
    }

    /// The lowest node.
    pub fn first(&self) -> Option<u32> {
        self.next_at_or_after(0)
    }

    /// The lowest node that is not below `index`.
    pub fn next_at_or_after(&self, index: u32) -> Option<u32> {
        let (start, bit) = position(index);
        // `bit - 1` masks the bits below `index`.
        let head = self.words.get(start)? & !(bit - 1);
        if head != 0 {
            return Some(start as u32 * WORD_BITS + head.trailing_zeros());
        }
        let (position, word) =
            (self.words.iter().enumerate().skip(start + 1)).find(|(_, word)| **word != 0)?;
        Some(position as u32 * WORD_BITS + word.trailing_zeros())
    }

    /// The nodes in ascending order.
    pub fn iter(&self) -> NodeIter<'_> {
        NodeIter {
            words: &self.words,
            position: 0,
            word: self.words.first().copied().unwrap_or(0),
        }
    }

    /// The words, lowest nodes first; trailing words may be zero or missing.
    pub fn words(&self) -> &[u64] {
        &self.words
    }
}

const fn position(index: u32) -> (usize, u64) {
    ((index / WORD_BITS) as usize, 1 << (index % WORD_BITS))
}

impl Clone for NodeSet {
    fn clone(&self) -> Self {
        Self {
            words: self.words.clone(),
        }
    }

    /// Keeps the room it has.
    fn clone_from(&mut self, source: &Self) {
        self.words.clone_from(&source.words);
    }
}

impl PartialEq for NodeSet {
    fn eq(&self, other: &Self) -> bool {
        let common = self.words.len().min(other.words.len());
        let (mine, my_rest) = self.words.split_at(common);
        let (theirs, their_rest) = other.words.split_at(common);
        mine == theirs && my_rest.iter().chain(their_rest).all(|word| *word == 0)
    }
}

impl Eq for NodeSet {}

impl fmt::Debug for NodeSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self).finish()
    }
}

impl<'a> IntoIterator for &'a NodeSet {
    type Item = u32;
    type IntoIter = NodeIter<'a>;

    fn into_iter(self) -> NodeIter<'a> {
        self.iter()
    }
}

/// Ascending node indexes of a [`NodeSet`].
#[derive(Clone, Debug)]
pub struct NodeIter<'a> {
    words: &'a [u64],
    /// Which word is at hand.
    position: usize,
    /// What is left of it.
    word: u64,
}

impl Iterator for NodeIter<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        while self.word == 0 {
            self.word = *self.words.get(self.position + 1)?;
            self.position += 1;
        }
        let bit = self.word.trailing_zeros();
        self.word &= self.word - 1;
        Some(self.position as u32 * WORD_BITS + bit)
    }
}
