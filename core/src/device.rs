//! The device layer: cards, their parts, their links, and what is left of them.
//!
//! Facts about hardware are data here: card models and MIG geometry, link matrices, resource names,
//! memory overheads. From them and a node's description comes an [`Inventory`], of which the search
//! asks three things and nothing else: how many members with this ask fit, which devices one of them
//! would get, and how two inventories compare. Nothing here knows pods, groups or time.

mod ask;
mod choose;
mod devices;
mod hardware;
mod inventory;
mod lack;
pub mod links;
pub mod mig;
pub mod model;
pub mod names;
pub mod overhead;
mod parts;

pub(crate) use ask::{CardAsk, Part};
pub use ask::{CardRequestError, check_request};
pub(crate) use choose::{Wanted, choices, choose, deal};
pub use devices::{Devices, Slice};
pub(crate) use hardware::Catalog;
pub use hardware::{NodeCardsError, check_cards, model_of};
pub(crate) use inventory::{CardUse, Inventory, KindIx, Pool};
pub(crate) use lack::Measure;
pub(crate) use parts::part_of;
