//! What each fuzz target does with its bytes, as plain functions.
//!
//! A target panics when a promise is broken and returns otherwise. `fuzz_targets/NAME.rs` hands the
//! bytes of libFuzzer to the function here; `tests/replay.rs` hands it every file of `seeds/NAME`,
//! so that an ordinary `cargo test` runs the seeds and each crash ever found.
//!
//! A new target: a function here and its line in [`TARGETS`], a file in `fuzz_targets`, a `[[bin]]`
//! in `Cargo.toml`, and at least one seed. A crash: give the file from `artifacts/NAME` a speaking
//! name, put it into `seeds/NAME`, then mend the code.

mod allocator;
mod dialects;
mod documents;
mod engine;
mod links;
mod parts;
mod plan;
mod quantity;
mod scenario;
mod selectors;
mod snapshot;

pub use allocator::allocator;
pub use dialects::{native, other_groups, scheduler_plugins, volcano};
pub use documents::documents;
pub use engine::engine;
pub use links::links;
pub use parts::parts;
pub use quantity::quantity;
pub use scenario::scenario;
pub use selectors::selectors;
pub use snapshot::snapshot;

/// A function that takes bytes from outside and panics when a promise is broken.
pub type Target = fn(&[u8]);

/// Every target by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("allocator", allocator),
    ("documents", documents),
    ("engine", engine),
    ("links", links),
    ("native", native),
    ("other_groups", other_groups),
    ("parts", parts),
    ("quantity", quantity),
    ("scenario", scenario),
    ("scheduler_plugins", scheduler_plugins),
    ("selectors", selectors),
    ("snapshot", snapshot),
    ("volcano", volcano),
];
