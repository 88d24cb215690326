//! The best node for one member: the what-if that embedders ask most often.
//!
//! A template enters, a node comes out; nothing is held and no decision changes.

use alloc::sync::Arc;

use super::{NodeIx, Scheduler};
use crate::{
    cluster::domain::NO_DOMAIN,
    place::{Batch, Outcome, Request},
    request::Template,
};

impl Scheduler {
    /// The node that a pod of this template without a group would get now, by the engine's scoring
    /// rule; `None` when it fits nowhere. Reservations are left out of account. Changes no decision:
    /// `&mut` is for what is remembered to answer quickly.
    ///
    /// Asked again with the same `Arc`, the cost follows what changed since, not the number of nodes,
    /// unless the template has rules about single nodes (their names, ports) or about other pods.
    pub fn best_node(&mut self, template: &Arc<Template>) -> Option<NodeIx> {
        let ix = self.compile(template);
        self.cluster.settle_order();
        let rule = self.config.scoring;
        if self.cluster.template(ix).is_judged_by_class() {
            return self.search.cheapest(&mut self.cluster, ix, rule);
        }
        let tree = self.single_tree.clone();
        let request = Request {
            tree: &tree,
            batches: &[Batch {
                leaf: 0,
                template: ix,
                count: 1,
            }],
            have: &[0],
            pinned: &[NO_DOMAIN],
            rule,
            started: false,
            forbidden: &[],
            budget: self.config.search_steps,
        };
        let mark = self.cluster.begin();
        let outcome = self.search.run(&mut self.cluster, &request);
        self.cluster.undo_to(mark);
        self.cluster.commit();
        let placed = self.search.placed.first().map(|placed| placed.node);
        placed.filter(|_| outcome == Outcome::Found)
    }
}
