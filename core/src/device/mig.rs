//! MIG geometry: which instances a card can hold, where, and what is left beside them.
//!
//! A [`Geometry`] is the table of one card model; a [`MigState`] is what one card holds now, as a
//! mask of occupied units and the media engines in use. Both come from outside and go back as
//! values: nothing here knows a node or a pod, changes a card, or allocates. Every question about a
//! state ([`starts`](Geometry::starts), [`most`](Geometry::most),
//! [`flexibility`](Geometry::flexibility), [`best_start`](Geometry::best_start)) is one look-up in
//! tables made at compile time, so all of them are O(1).
//!
//! Units are memory slices: 8 on the data-centre cards, 4 on the A30, and 12 on the RTX PRO 6000,
//! whose driver counts its four slices in threes. A placement is a profile and the unit at which it
//! starts; which placements exist is `possible placements` of NVML. Two instances can exist
//! together when their units are disjoint and the card has enough media engines for both; of
//! those only the optical flow accelerator can run out on the data-centre cards, and on the RTX PRO
//! 6000 the decoders, encoders and JPEG engines, which always go together.
//!
//! Names are for display: drivers print the same profile as `1g.23gb` or `1g.24gb`. What identifies
//! a profile is the card's model and the profile's id.

#[cfg(feature = "alloc")]
mod fleet;
mod geometry;
mod grid;
#[cfg(feature = "alloc")]
mod layouts;
#[cfg(all(test, feature = "alloc"))]
mod tests;
#[cfg(feature = "alloc")]
mod worth;

pub(crate) use self::grid::{EIGHTHS, FOURTHS, TWELFTHS};
#[cfg(feature = "alloc")]
pub use self::{
    fleet::MigFleet,
    worth::{Market, MigWorth},
};
pub use self::{
    geometry::{Attribute, Engines, Geometry, MigState, Profile, ProfileIx},
    grid::Grid,
};
