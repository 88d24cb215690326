//! Drives everything that gangline offers without a heap, from a program without an operating
//! system's library under it.
//!
//! `.ci/proof` builds this crate alone with the profile `proof`, links it with `start.c` to a static
//! program without libc, and runs that. If the no-alloc tier so much as linked an allocator or
//! `std`, the link would fail. In every other profile the crate is an empty library, so that
//! whole-workspace builds, which switch `std` on, keep working.
#![cfg_attr(panic = "abort", no_std)]

#[cfg(panic = "abort")]
mod freestanding;
