//! The sets as borrowed `bitvec` slices, bit `i` for card or node `i`, nothing copied.
//!
//! Only on targets with 64-bit pointers: elsewhere `bitvec` cannot store bits in `u64`.

use bitvec::{order::Lsb0, slice::BitSlice, view::BitView};

use super::CardSet;

impl CardSet {
    /// All [`CAPACITY`](Self::CAPACITY) bits.
    pub fn as_bits(&self) -> &BitSlice<u64, Lsb0> {
        self.0.view_bits()
    }
}

#[cfg(feature = "alloc")]
impl super::NodeSet {
    /// One bit for each index of [`words`](Self::words); higher nodes are not in the set.
    pub fn as_bits(&self) -> &BitSlice<u64, Lsb0> {
        self.words().view_bits()
    }
}
