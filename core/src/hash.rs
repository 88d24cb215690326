//! One hash for all tables and for the decision hash: fast, and the same on every platform.
//!
//! Keys are our own small integers and names out of the cluster's objects. A hostile name can at
//! worst slow a look-up down; it cannot change a decision, since no decision depends on the order
//! of a hash table.

use core::hash::{BuildHasherDefault, Hasher};

/// Builds [`WordHasher`]s.
pub(crate) type BuildWordHasher = BuildHasherDefault<WordHasher>;
/// A map whose order decides nothing.
pub(crate) type Map<K, V> = hashbrown::HashMap<K, V, BuildWordHasher>;

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Multiply-and-fold over 64-bit words, read in little-endian order everywhere.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WordHasher {
    state: u64,
}

impl WordHasher {
    fn add(&mut self, word: u64) {
        let product = u128::from(self.state ^ word ^ MULTIPLIER) * 0xd6e8_feb8_6659_fd93_u128;
        self.state = (product as u64 ^ (product >> 64) as u64).wrapping_add(word.rotate_left(32));
    }
}

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for &word in words {
            self.add(u64::from_le_bytes(word));
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.add(u64::from_le_bytes(last) ^ (rest.len() as u64) << 56);
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.add(u64::from(value));
    }

    fn write_u16(&mut self, value: u16) {
        self.add(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.add(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.add(value);
    }

    fn write_u128(&mut self, value: u128) {
        self.add(value as u64);
        self.add((value >> 64) as u64);
    }

    fn write_usize(&mut self, value: usize) {
        self.add(value as u64);
    }

    fn finish(&self) -> u64 {
        let mixed = (self.state ^ self.state >> 32).wrapping_mul(MULTIPLIER);
        mixed ^ mixed >> 29
    }
}
