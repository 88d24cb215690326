//! Worlds that the benchmarks share.
