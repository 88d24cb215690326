//! The device layer: cards, their parts, their links, and what is left of them.
//!
//! Facts about hardware are data here: card models and MIG geometry, link matrices, resource names,
//! memory overheads. From them and a node's description comes an inventory, of which the search
//! asks three things and nothing else: how many members with this ask fit, which devices one of them
//! would get, and how two inventories compare. Nothing here knows pods, groups or time.

#[cfg(feature = "alloc")]
mod allocator;
#[cfg(feature = "alloc")]
mod ask;
#[cfg(feature = "alloc")]
mod choose;
#[cfg(feature = "alloc")]
mod devices;
#[cfg(feature = "alloc")]
mod hardware;
#[cfg(feature = "alloc")]
mod inventory;
#[cfg(feature = "alloc")]
mod lack;
#[cfg(feature = "alloc")]
pub mod links;
pub mod mig;
pub mod model;
pub mod names;
pub mod overhead;
#[cfg(feature = "alloc")]
mod parts;
#[cfg(feature = "alloc")]
pub(crate) mod patterns;

#[cfg(feature = "alloc")]
pub use allocator::NodeAllocator;
#[cfg(feature = "alloc")]
pub(crate) use ask::{CardAsk, Part};
#[cfg(feature = "alloc")]
pub use ask::{CardRequestError, check_request};
#[cfg(feature = "alloc")]
pub(crate) use choose::{Running, Wanted, choices, choose, in_doubt, keep_room, settle};
#[cfg(feature = "alloc")]
pub use devices::{Devices, Slice};
#[cfg(feature = "alloc")]
pub(crate) use hardware::{Catalog, Hardware, Mode, Need};
#[cfg(feature = "alloc")]
pub use hardware::{NodeCardsError, check_cards, model_of, most_replicas};
#[cfg(feature = "alloc")]
pub(crate) use inventory::{CardState, CardUse, Inventory, KindIx, Pool};
#[cfg(feature = "alloc")]
pub(crate) use lack::Measure;
#[cfg(feature = "alloc")]
pub(crate) use parts::part_of;
