//! Numbers about the cluster, taken when somebody asks for them.

use std::collections::BTreeMap;

use gangline::{Scheduler, engine::CardTotals};

use crate::{node::is_away, output::phase_word};

/// How many groups and pods wait, by the code of their reason.
#[derive(Clone, Debug, Default)]
pub(in crate::live) struct Pending {
    pub(in crate::live) groups: BTreeMap<String, u64>,
    pub(in crate::live) pods: BTreeMap<String, u64>,
}

/// Numbers about the cluster.
#[derive(Debug, Default)]
pub(in crate::live) struct Figures {
    pub(super) groups: Vec<(&'static str, u32)>,
    pub(super) half_bound: u32,
    pub(super) reservations: u32,
    pub(super) cards: Vec<(String, CardTotals)>,
    pub(super) fragmentation: f64,
    pub(super) pending: Pending,
}

impl Figures {
    /// Takes them. Cost: gangs, nodes, and kinds of work times kinds of nodes.
    pub(in crate::live) fn of(scheduler: &mut Scheduler, pending: Pending) -> Self {
        let (fragment, idle) = scheduler.market().fragmentation();
        let totals = scheduler.totals(|node| is_away(&node.taints));
        let groups = totals.groups.iter();
        Self {
            groups: groups
                .map(|(phase, count)| (phase_word(*phase), *count))
                .collect(),
            half_bound: totals.half_bound,
            reservations: totals.reservations,
            cards: totals
                .cards
                .into_iter()
                .map(|(kind, totals)| (kind.to_owned(), totals))
                .collect(),
            fragmentation: fragment as f64 / idle.max(1) as f64,
            pending,
        }
    }
}
