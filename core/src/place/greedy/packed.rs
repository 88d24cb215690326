//! Packing: members that want one part of a card each, placed by what cards can give together.
//!
//! One by one, such members get what is cheapest now, and those that come last may find every card cut
//! in the wrong way. Here a pattern for each card is found first, so that all of them together give what
//! all members want, and the members follow the patterns. Everything else is placed as usual, before
//! them if it wants cards.

use alloc::vec::Vec;

use super::{
    super::{
        Request, Search,
        cover::{Answer, MOST_CARDS},
        lots::{self, Lots, Open, Spot, Wants},
    },
    Aim, size,
};
use crate::{
    cluster::{Cluster, NodeIx, domain::NO_DOMAIN},
    device::{Devices, Slice, patterns},
    gang::Minimum,
    place::tree::TreeKind,
};

/// Steps to find patterns.
const MOST_STEPS: u64 = 20_000;

/// A slice of a card, and the batches that could have it, as bits.
type Cut = (NodeIx, Slice, u64);

/// Whether a batch's members want one part each and nothing else of cards, so that it can be packed.
fn is_packed(cluster: &Cluster, request: &Request<'_>, batch: usize) -> bool {
    let ask = &cluster.template(request.batches[batch].template).cards;
    ask.as_ref().is_some_and(|ask| {
        ask.count() == 1
            && ask.whole() == 0
            && ask.group.is_none()
            && ask.exclusive.is_none()
            && !ask.asks_shares()
    })
}

impl Search {
    /// Whether there is something to pack: otherwise a second try would go as the first.
    pub(super) fn can_pack(cluster: &Cluster, request: &Request<'_>) -> bool {
        let batches = 0..request.batches.len();
        let packed = batches.filter(|&batch| is_packed(cluster, request, batch));
        packed.count() >= 2
    }

    /// Places the members of a sub-tree whose domain is fixed, parts of cards by patterns. False: nothing
    /// is said; the caller takes back what was placed.
    pub(super) fn packed(
        &mut self,
        cluster: &mut Cluster,
        request: &Request<'_>,
        ix: u32,
        aim: Aim,
    ) -> bool {
        let Some(members) = self.wanted_members(request, ix, aim) else {
            return false;
        };
        let packed = (0..members.len())
            .filter(|&batch| members[batch] > 0 && is_packed(cluster, request, batch));
        if packed.count() < 2 {
            // One after the other is as good.
            return false;
        }
        let mut others: Vec<usize> = (0..members.len())
            .filter(|&batch| !is_packed(cluster, request, batch))
            .collect();
        others.sort_by_key(|&batch| {
            core::cmp::Reverse(size(cluster, request.batches[batch].template))
        });
        let has_cards = |cluster: &Cluster, batch: usize| {
            cluster
                .template(request.batches[batch].template)
                .cards
                .is_some()
        };
        let (first, last): (Vec<usize>, Vec<usize>) = others
            .into_iter()
            .partition(|&batch| has_cards(cluster, batch));
        let fill = |search: &mut Self, cluster: &mut Cluster, batches: &[usize]| {
            batches.iter().all(|&batch| {
                let count = members[batch];
                search.fill_scope(cluster, request, batch as u32, count) == count
            })
        };
        fill(self, cluster, &first)
            && self.pack(cluster, request, &members)
            && fill(self, cluster, &last)
    }

    /// By batch: how many members a sub-tree needs; nothing: that is not sure before some are placed.
    fn wanted_members(&self, request: &Request<'_>, ix: u32, aim: Aim) -> Option<Vec<u32>> {
        let below = request.tree.subtree(ix);
        for inner in below.clone() {
            let node = &request.tree.nodes[inner as usize];
            let is_open = node.required.is_some() && self.domain[inner as usize] == NO_DOMAIN;
            let by_children = matches!(node.kind, TreeKind::Inner(Minimum::Children(_)));
            if is_open || (by_children && aim != Aim::All) {
                return None;
            }
        }
        // By leaf: what is still to be had.
        let mut missing: Vec<u32> = (0..request.tree.nodes.len() as u32)
            .map(|leaf| match request.tree.nodes[leaf as usize].kind {
                _ if !below.contains(&leaf) => 0,
                TreeKind::Leaf { .. } if aim == Aim::All => u32::MAX,
                TreeKind::Leaf { min, .. } => min.saturating_sub(self.counted(request, leaf)),
                TreeKind::Inner(_) => 0,
            })
            .collect();
        let batches = request.batches.iter().zip(&self.placed_of);
        let members = batches.map(|(batch, placed)| {
            let missing = &mut missing[batch.leaf as usize];
            let count = (batch.count - placed).min(*missing);
            *missing -= count;
            count
        });
        Some(members.collect())
    }

    fn pack(&mut self, cluster: &mut Cluster, request: &Request<'_>, members: &[u32]) -> bool {
        let batches = members.iter().enumerate();
        let members: Vec<u32> = batches
            .map(|(batch, &count)| {
                if is_packed(cluster, request, batch) {
                    count
                } else {
                    0
                }
            })
            .collect();
        let Some(open) = lots::open_nodes(self, cluster, request, &members) else {
            return false;
        };
        let Some(cuts) = self.cuts(cluster, request, &members, &open) else {
            return false;
        };
        let mut missing = members;
        for (node, slice, takers) in cuts {
            let mut devices = Devices::NONE;
            devices.push(slice);
            let batch = (0..missing.len()).find(|&batch| {
                let is_open = missing[batch] > 0 && takers >> batch & 1 == 1;
                is_open && {
                    let rate = self.rate_node(cluster, request, batch as u32, node, true);
                    rate.capacity > 0
                }
            });
            let Some(batch) = batch else { return false };
            self.put_with(cluster, request, batch as u32, node, devices);
            missing[batch] -= 1;
        }
        missing.iter().all(|&count| count == 0)
    }

    /// What each card is to give.
    fn cuts(
        &mut self,
        cluster: &Cluster,
        request: &Request<'_>,
        members: &[u32],
        open: &[Open],
    ) -> Option<Vec<Cut>> {
        if open.len() > MOST_CARDS as usize {
            return None;
        }
        let wants = Wants::new(cluster, request, members);
        let mut lots = Lots::new(cluster, &wants, open, true);
        let is_hopeless = lots.is_partial || lots.cover.is_refuted();
        let answer = (!is_hopeless).then(|| lots.cover.solve(MOST_STEPS));
        self.steps += lots.cover.steps;
        let Some(Answer::Covered(chosen)) = answer else {
            return None;
        };
        let mut used: Vec<bool> = alloc::vec![false; lots.spots.len()];
        let mut cuts = Vec::new();
        for (group, counts) in chosen {
            let at = (0..used.len()).find(|&at| !used[at] && lots.spots[at].1 == group)?;
            used[at] = true;
            let Spot { node, kind, card } = lots.spots[at].0;
            let cards = &cluster.node(node).cards;
            let slices = patterns::cut(cards, cards.pool(kind)?, card, &wants.items, &counts)?;
            let (_, batches) = open.iter().find(|(other, _)| *other == node)?;
            for (item, slice) in slices {
                cuts.push((node, slice, batches & wants.batches_of(item)));
            }
        }
        Some(cuts)
    }
}
