//! What the cards of many nodes can give a gang together, part by part.
//!
//! Members that want parts of cards, or whole cards beside them, are taken apart into [`Item`]s, and
//! nodes into cards. That forgets which parts belong to one member, what else a member needs, and that a
//! node is one place; so what does not fit here does not fit at all, and what fits is a proposal that
//! [`greedy`](super::greedy) tries to carry out.

use alloc::vec::Vec;

use smallvec::SmallVec;

use super::{
    Request, Search,
    cover::{Answer, Cover},
};
use crate::{
    cluster::{Cluster, NodeIx},
    device::{
        CardState, Inventory, KindIx, Pool,
        patterns::{self, Counts, Item, MOST_ITEMS, Maximal, ShareRoom},
    },
    hash::Map,
};

/// One card of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) node: NodeIx,
    pub(super) kind: KindIx,
    pub(super) card: u32,
}

/// Alike cards that are given in shares.
#[derive(Clone, Copy, Debug)]
struct Shared {
    /// MiB and thousandths that are left.
    left: [u64; 2],
    /// It could be given as a whole instead.
    is_whole: bool,
    cards: u64,
}

/// The different things that members want.
#[derive(Clone, Debug, Default)]
pub(super) struct Wants<'c> {
    pub(super) items: SmallVec<[Item<'c>; MOST_ITEMS]>,
    /// By batch: its items, each with how many a member wants.
    pub(super) of_batch: Vec<SmallVec<[(usize, u32); 2]>>,
    /// By item, of all members.
    pub(super) wanted: Counts,
    /// Some want is left out of account.
    pub(super) is_partial: bool,
}

/// Who could give what is wanted.
#[derive(Clone, Debug, Default)]
pub(super) struct Lots {
    pub(super) cover: Cover,
    /// Cards with the group of the cover that they are in, if they were asked for.
    pub(super) spots: Vec<(Spot, u32)>,
    shared: Vec<Shared>,
    /// By item: the least memory and time that a share of it takes of any card.
    least: [Option<[u64; 2]>; MOST_ITEMS],
    /// Cards that could be given as a whole and not in shares.
    plain: u64,
    /// Some want is left out of account.
    pub(super) is_partial: bool,
}

/// Batches are told apart by the bits of a word.
const MOST_BATCHES: usize = 64;

impl<'c> Wants<'c> {
    /// Takes apart so many members of each batch.
    pub(super) fn new(cluster: &'c Cluster, request: &Request<'_>, members: &[u32]) -> Self {
        let mut wants = Self::default();
        for (batch, &members) in request.batches.iter().zip(members) {
            let mut of_batch = SmallVec::new();
            let cards = cluster.template(batch.template).cards.as_ref();
            if let Some(ask) = cards.filter(|_| members > 0) {
                let whole = (ask.whole() > 0).then_some((ask.whole(), None));
                let parts = ask.parts().map(|(count, part)| (count, Some(part)));
                for (count, part) in whole.into_iter().chain(parts) {
                    let item = Item { ask, part };
                    if let Some(at) = wants.number(item) {
                        let wanted = &mut wants.wanted[at];
                        *wanted = wanted.saturating_add(count.saturating_mul(members));
                        of_batch.push((at, count));
                    }
                }
            }
            wants.of_batch.push(of_batch);
        }
        wants
    }

    fn number(&mut self, item: Item<'c>) -> Option<usize> {
        let known = self.items.iter().position(|known| known.is_like(&item));
        if known.is_none() && self.items.len() == MOST_ITEMS {
            self.is_partial = true;
            return None;
        }
        Some(known.unwrap_or_else(|| {
            self.items.push(item);
            self.items.len() - 1
        }))
    }

    /// The batches that want an item, as bits.
    pub(super) fn batches_of(&self, item: usize) -> u64 {
        let batches = self.of_batch.iter().take(MOST_BATCHES).enumerate();
        let wants = |items: &[(usize, u32)]| items.iter().any(|(wanted, _)| *wanted == item);
        batches.fold(0, |mask, (batch, items)| {
            mask | u64::from(wants(items)) << batch
        })
    }

    /// The items of some batches, as bits.
    fn of_batches(&self, batches: u64) -> u32 {
        let chosen = self.of_batch.iter().enumerate();
        let chosen = chosen.filter(|(batch, _)| batches >> batch & 1 == 1);
        let items = chosen.flat_map(|(_, items)| items);
        items.fold(0, |mask, (item, _)| mask | 1 << item)
    }
}

/// A node and the batches with members to place of which it can take one now, as bits.
pub(super) type Open = (NodeIx, u64);

/// The nodes that can take a member of some batch, in node order; nothing: too many batches.
pub(super) fn open_nodes(
    search: &mut Search,
    cluster: &mut Cluster,
    request: &Request<'_>,
    members: &[u32],
) -> Option<Vec<Open>> {
    if request.batches.len() > MOST_BATCHES {
        return None;
    }
    let mut found: Vec<Open> = Vec::new();
    for (batch, wanted) in request.batches.iter().enumerate() {
        if members[batch] == 0 || cluster.template(wanted.template).cards.is_none() {
            continue;
        }
        for index in 0..search.scope(cluster, request, wanted.leaf).len() {
            let node = search.scope(cluster, request, wanted.leaf).get(index);
            if search.in_scope(cluster, request, wanted.leaf, node) {
                let rate = search.rate_node(cluster, request, batch as u32, node, false);
                if rate.capacity > 0 {
                    found.push((node, 1 << batch));
                }
            }
        }
    }
    found.sort_unstable_by_key(|&(node, _)| cluster.node(node).rank);
    found.dedup_by(|next, kept| {
        let is_same = next.0 == kept.0;
        if is_same {
            kept.1 |= next.1;
        }
        is_same
    });
    Some(found)
}

/// What tells cards apart: kind, hardware, mode, state, whether it is free or may be used in parts, and
/// which items are asked about.
type CardKey = (KindIx, u32, u32, CardState, bool, bool, u32);

fn card_key(cards: &Inventory, pool: &Pool, card: u32, mask: u32) -> CardKey {
    let state = cards.states(pool).get(card as usize).copied();
    (
        pool.kind,
        pool.hardware.id,
        pool.hardware.alike_of(card),
        state.unwrap_or_default(),
        pool.free().contains(card),
        pool.partable().contains(card),
        mask,
    )
}

/// Nodes of one class have the same cards, in some order: one of each, the items that it may serve, and
/// how many they are.
fn alike_nodes(
    cluster: &Cluster,
    wants: &Wants<'_>,
    open: &[Open],
    is_each: bool,
) -> Vec<(NodeIx, u32, u32)> {
    let mut alike: Vec<(NodeIx, u32, u32)> = Vec::new();
    let mut known: Map<(u32, u64), usize> = Map::default();
    for &(node, batches) in open {
        let Some(class) = cluster.node(node).class else {
            continue;
        };
        let next = alike.len();
        let at = if is_each {
            next
        } else {
            *known.entry((class.0, batches)).or_insert(next)
        };
        match alike.get_mut(at) {
            Some((.., nodes)) => *nodes += 1,
            None => alike.push((node, wants.of_batches(batches), 1)),
        }
    }
    alike
}

/// Whether some pattern is a whole card.
fn gives_whole(patterns: &Maximal<MOST_ITEMS>, wants: &Wants<'_>) -> bool {
    let is_whole = |(count, item): (&u32, &Item<'_>)| *count > 0 && item.part.is_none();
    let mut patterns = patterns.list.iter();
    patterns.any(|pattern| pattern.iter().zip(&wants.items).any(is_whole))
}

impl Lots {
    /// Takes apart the cards of nodes. `spots`: lists them too.
    pub(super) fn new(cluster: &Cluster, wants: &Wants<'_>, open: &[Open], spots: bool) -> Self {
        let mut lots = Self {
            is_partial: wants.is_partial,
            ..Self::default()
        };
        // Which cards share groups and named cards are on, no class or state says.
        let by_card = wants.items.iter().any(|item| {
            let ask = item.ask;
            ask.group.is_some() || ask.source.only.is_some()
        });
        let alike = alike_nodes(cluster, wants, open, spots || by_card);
        lots.cover.wanted = wants.wanted;
        for (at, item) in wants.items.iter().enumerate() {
            let elsewhere = alike.iter().any(|&(node, mask, _)| {
                let cards = &cluster.node(node).cards;
                mask >> at & 1 == 1 && patterns::is_served_elsewhere(cards, item)
            });
            // Shares are counted apart.
            if item.is_share() || elsewhere {
                lots.cover.wanted[at] = 0;
                lots.is_partial |= elsewhere;
            }
        }
        // By what tells cards apart: their group, and whether they may be given as a whole.
        let mut known: Map<CardKey, (Option<u32>, bool)> = Map::default();
        for &(node, mask, nodes) in &alike {
            let cards = &cluster.node(node).cards;
            for pool in cards.pools() {
                for card in pool.all {
                    let key = card_key(cards, pool, card, mask);
                    let (group, is_whole) = if let Some(&(group, is_whole)) =
                        known.get(&key).filter(|_| !by_card)
                    {
                        if let Some(group) = group {
                            lots.cover.add_more(group, nodes);
                        }
                        (group, is_whole)
                    } else {
                        let patterns = patterns::patterns(cards, pool, card, &wants.items, mask);
                        let is_whole = gives_whole(&patterns, wants);
                        let group = lots.cover.add(&patterns, nodes);
                        known.insert(key, (group, is_whole));
                        (group, is_whole)
                    };
                    lots.add_shared(wants, (cards, pool, card), mask, nodes, is_whole);
                    if let Some(group) = group.filter(|_| spots) {
                        let kind = pool.kind;
                        lots.spots.push((Spot { node, kind, card }, group));
                    }
                }
            }
        }
        lots
    }

    /// Counts cards in that can be given in shares, or as a whole beside those.
    fn add_shared(
        &mut self,
        wants: &Wants<'_>,
        (cards, pool, card): (&Inventory, &Pool, u32),
        mask: u32,
        nodes: u32,
        is_whole: bool,
    ) {
        if !wants.items.iter().any(Item::is_share) {
            return;
        }
        let room = patterns::room_for_shares(cards, pool, card, &wants.items, mask);
        if let Some(ShareRoom { left, least }) = room {
            for (known, least) in self.least.iter_mut().zip(least) {
                let Some(least) = least else { continue };
                let known = known.get_or_insert(least);
                *known = [known[0].min(least[0]), known[1].min(least[1])];
            }
            let cards = nodes.into();
            self.shared.push(Shared {
                left,
                is_whole,
                cards,
            });
        } else if is_whole {
            self.plain += u64::from(nodes);
        }
    }

    /// Whether all that is wanted may fit; false is a proof that it does not. Shares by sums, the rest
    /// by patterns, which are tried for so many steps.
    pub(super) fn may_fit(&mut self, wants: &Wants<'_>, most_steps: u64) -> bool {
        (0..2).all(|measure| self.shares_may_fit(wants, measure))
            && !self.cover.is_refuted()
            && self.cover.solve(most_steps) != Answer::Impossible
    }

    /// By one measure: all shares together, and of each size that some share has, those at least that
    /// large. Cards that are wanted as a whole count as much as the least that one has left.
    fn shares_may_fit(&self, wants: &Wants<'_>, measure: usize) -> bool {
        let wholes = self.shared.iter().filter(|shared| shared.is_whole);
        let whole = wholes.map(|shared| shared.left[measure]).min().unwrap_or(0);
        let size = |at: usize| match (wants.items.get(at).map(|item| item.part), self.least[at]) {
            (Some(None), _) => whole,
            (Some(Some(_)), Some(least)) => least[measure],
            _ => 0,
        };
        // Of other things only as many as these cards must give.
        let count = |at: usize| match wants.items.get(at) {
            Some(item) if item.is_share() => wants.wanted[at],
            _ => self.cover.wanted[at],
        };
        let fits = |worth: &dyn Fn(u64) -> u64| {
            let sum = (0..MOST_ITEMS).map(|at| u128::from(worth(size(at))) * u128::from(count(at)));
            let cards = self.shared.iter().map(|shared| {
                let as_whole = if shared.is_whole { worth(whole) } else { 0 };
                let in_parts = worth(shared.left[measure]);
                u128::from(in_parts.max(as_whole)) * u128::from(shared.cards)
            });
            let plain = u128::from(worth(whole)) * u128::from(self.plain);
            sum.sum::<u128>() <= cards.sum::<u128>() + plain
        };
        let is_large_enough = |at: usize| {
            let least = size(at);
            least == 0 || fits(&|size| size / least)
        };
        fits(&|size| size) && (0..wants.items.len()).all(is_large_enough)
    }
}
