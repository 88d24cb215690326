//! The face: tell it what happens, ask it what to do.
//!
//! `apply` costs in proportion to the change; `decide` allocates nothing once warm; `plan` and `why`
//! change nothing.

use alloc::{string::String, sync::Arc, vec::Vec};

use hashbrown::HashTable;

use crate::{
    cluster::Cluster,
    device::{Devices, Inventory},
    gang::{GangKey, ScoringRule},
    hash::Map,
    place::{Search, tree::Tree},
    queue::Reservation,
    units::{Nanos, Uid},
};

mod apply;
mod best;
mod check;
pub(crate) mod cycle;
mod drive;
pub mod event;
mod images;
mod look;
mod market;
mod nominated;
mod reserve;
mod snapshot;
pub(crate) mod store;
mod totals;
pub mod view;

pub use check::{Inconsistency, LedgerLine};
pub use event::{Clock, ClockLeft, Event, Rejection};
pub use market::{Market, UsualWork};
pub use snapshot::Snapshot;
pub use store::Purpose;
use store::{Gang, GangIx, Pod, PodIx, Slab};
pub use totals::{CardTotals, Totals};
pub use view::{
    CardsView, Explanation, GangView, LooseView, MemberState, MemberView, NodeView, Part, PartView,
    Plan,
};

pub use crate::{cluster::NodeIx, place::worth::PriceList};

/// Index of a gang in its scheduler. Valid until the gang is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GangId(pub u32);

/// How a scheduler decides.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct Config {
    /// Node labels that make up the topology, coarse to fine, without the node itself.
    pub levels: Vec<String>,
    /// Where members go when their gang does not say.
    pub scoring: ScoringRule,
    /// A gang that has waited this long gets a reservation.
    pub reserve_after: Nanos,
    /// Steps that one search may take before it answers "undecided".
    pub search_steps: u64,
    /// Pause after the first failed bind; doubles with each further one.
    pub bind_backoff: Nanos,
    /// How long a degraded gang may stay so before its policy applies.
    pub degraded_deadline: Nanos,
    /// The work that is usually asked for, for prices; empty: learnt from the pods that come.
    pub usual: Vec<UsualWork>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            levels: Vec::new(),
            scoring: ScoringRule::Binpack,
            reserve_after: Nanos::from_secs(300),
            search_steps: 200_000,
            bind_backoff: Nanos::from_secs(1),
            degraded_deadline: Nanos::from_secs(60),
            usual: Vec::new(),
        }
    }
}

/// What was decided about a gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Verdict {
    /// Every member that must start has a place (or runs already).
    Placed,
    /// No placement exists in this state.
    Infeasible,
    /// The search's budget ran out.
    Undecided,
    /// Not tried: members missing, a problem with the object, held back by a reservation or a pause.
    Waiting,
    /// Its running members must be released: their minimum cannot be kept.
    Release,
    /// Its policy gave up on it.
    Failed,
}

/// One decision; its placements are read with [`Scheduler::placements`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The gang.
    pub gang: GangId,
    /// What was decided.
    pub verdict: Verdict,
    /// Where its placements start in the decision buffer.
    pub(crate) start: u32,
    /// How many there are.
    pub(crate) len: u32,
}

/// A member's place: bind this pod to this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The pod.
    pub pod: Uid,
    /// The node.
    pub node: NodeIx,
    /// Its devices there.
    pub devices: Devices,
    /// Its position among the gang's members, by role, then name. Members of a role that are placed
    /// together get places in order of topology: neighbours in rank are neighbours there.
    pub rank: u32,
}

/// The engine. See the module's head.
#[derive(Clone, Debug)]
pub struct Scheduler {
    pub(crate) config: Config,
    pub(crate) cluster: Cluster,
    pub(crate) pods: Slab<Pod>,
    pub(crate) gangs: Slab<Gang>,
    pod_by_uid: Map<Uid, PodIx>,
    pod_by_name: HashTable<PodIx>,
    pub(crate) gang_by_key: Map<GangKey, GangIx>,
    /// Pods for which other schedulers make room, in no order.
    nominated: Vec<PodIx>,
    images: images::Images,
    /// Charged pods by node.
    node_pods: Vec<Vec<PodIx>>,
    single_tree: Arc<Tree>,
    /// Gangs to be tried, in queue order unless stale.
    queue: Vec<GangIx>,
    queue_stale: bool,
    requeues: u64,
    /// Gangs whose clock runs.
    clocks: Vec<GangIx>,
    /// Gangs whose running members must be released; told by the next `decide`.
    releases: Vec<GangIx>,
    pub(crate) reservation: Option<Reservation>,
    /// The latest time told.
    pub(crate) now: Nanos,
    /// Grows whenever a plan may have become possible that was not before.
    loosened: u64,
    /// Grows with every change of what is charged.
    changed: u64,
    pub(crate) search: Search,
    decisions: Vec<Decision>,
    placements: Vec<Placement>,
    cycle: cycle::Scratch,
    decision_hash: u64,
    /// What a node's pods are dealt from, kept for its memory.
    dealt: Inventory,
    /// Who holds devices of a node, and which: kept for their memory too.
    holders: Vec<Holder>,
    told: Vec<Option<Devices>>,
    held: Vec<Devices>,
    /// For the usual mix.
    asked: market::Asked,
    placed_since_prices: u32,
    /// So many placements make prices old.
    prices_last: u32,
}

/// A pod that holds devices of a node, in the order in which they are dealt; nominated ones last.
type Holder = (bool, core::cmp::Reverse<u32>, Uid, PodIx);

impl Scheduler {
    /// An engine that knows no node and no pod.
    pub fn new(config: Config) -> Self {
        Self {
            cluster: Cluster::new(config.levels.iter().map(String::as_str)),
            config,
            pods: Slab::default(),
            gangs: Slab::default(),
            pod_by_uid: Map::default(),
            pod_by_name: HashTable::new(),
            gang_by_key: Map::default(),
            nominated: Vec::new(),
            images: images::Images::default(),
            node_pods: Vec::new(),
            single_tree: Arc::new(Tree::single()),
            queue: Vec::new(),
            queue_stale: false,
            requeues: 0,
            clocks: Vec::new(),
            releases: Vec::new(),
            reservation: None,
            now: Nanos::ZERO,
            loosened: 0,
            changed: 0,
            search: Search::default(),
            decisions: Vec::new(),
            placements: Vec::new(),
            cycle: cycle::Scratch::default(),
            decision_hash: 0,
            dealt: Inventory::default(),
            holders: Vec::new(),
            told: Vec::new(),
            held: Vec::new(),
            asked: market::Asked::default(),
            placed_since_prices: 0,
            prices_last: 0,
        }
    }

    pub(crate) fn cluster_mut(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    /// How it decides.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The latest time it was told.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// The places given by a decision of the latest [`decide`](Self::decide).
    pub fn placements(&self, decision: &Decision) -> &[Placement] {
        let start = decision.start as usize;
        self.placements
            .get(start..start + decision.len as usize)
            .unwrap_or(&[])
    }

    /// Hash of every decision made so far: equal events give equal hashes everywhere.
    pub fn decision_hash(&self) -> u64 {
        self.decision_hash
    }
}
