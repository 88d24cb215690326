//! Images that nodes have already: they break a tie between nodes that are equal in everything else.
//!
//! A finished plan enters. What it gives to one node may move, whole, to another one that was in the very
//! same state and is in the same domains of every level and label that some rule names, if more of the
//! wanted images are there. So no search, price or device ever depends on images, and without any the
//! plan is not looked at.

use alloc::{boxed::Box, vec::Vec};

use smallvec::SmallVec;

use super::{NodeIx, Scheduler, cycle::Members, store::GangIx};
use crate::{hash::Map, place::Placed};

/// At so many nodes that have some of the images it is looked, for each node of a plan.
const MOST_LOOKS: usize = 4096;

/// Which node has which images.
#[derive(Clone, Debug, Default)]
pub(crate) struct Images {
    /// By node: images and their size in MiB, sorted.
    of: Vec<Box<[(u64, u32)]>>,
    /// Nodes that have an image, sorted.
    at: Map<u64, Vec<NodeIx>>,
    /// Nodes of the plan at hand, sorted; kept between plans.
    used: Vec<NodeIx>,
}

impl Images {
    /// What a node has; sorted.
    pub(crate) fn of(&self, node: NodeIx) -> &[(u64, u32)] {
        self.of.get(node.0 as usize).map_or(&[], |images| images)
    }

    /// Takes note of what a node has now.
    pub(super) fn set(&mut self, node: NodeIx, mut images: Vec<(u64, u32)>) {
        images.sort_unstable();
        images.dedup_by_key(|&mut (image, _)| image);
        let index = node.0 as usize;
        if self.of.len() <= index && !images.is_empty() {
            self.of.resize_with(index + 1, Box::default);
        }
        let Some(slot) = self.of.get_mut(index) else {
            return;
        };
        let before = core::mem::replace(slot, images.into());
        let has = |images: &[(u64, u32)], image: u64| {
            images.binary_search_by_key(&image, |&(it, _)| it).is_ok()
        };
        for &(image, _) in before.iter().filter(|&&(image, _)| !has(slot, image)) {
            if let Some(nodes) = self.at.get_mut(&image) {
                nodes.retain(|&other| other != node);
                if nodes.is_empty() {
                    self.at.remove(&image);
                }
            }
        }
        for &(image, _) in slot.iter().filter(|&&(image, _)| !has(&before, image)) {
            let nodes = self.at.entry(image).or_default();
            if let Err(position) = nodes.binary_search(&node) {
                nodes.insert(position, node);
            }
        }
    }

    /// How many MiB of these images a node has.
    fn mib_on(&self, node: NodeIx, wanted: &[u64]) -> u64 {
        let known = self.of(node);
        let sizes = wanted.iter().filter_map(|image| {
            let at = known.binary_search_by_key(image, |&(it, _)| it).ok()?;
            Some(u64::from(known[at].1))
        });
        sizes.sum()
    }
}

impl Scheduler {
    /// Moves what a plan gives to a node to an equal one that has more of its images.
    pub(super) fn prefer_images(&mut self, gang: GangIx, members: &Members) {
        if self.images.at.is_empty() || self.search.placed.is_empty() {
            return;
        }
        let bars = self.respects_reservation(gang, members);
        let mut placed = core::mem::take(&mut self.search.placed);
        placed.sort_unstable_by_key(|place| {
            (
                self.cluster.node(place.node).rank,
                place.batch,
                place.devices,
            )
        });
        let mut used = core::mem::take(&mut self.images.used);
        used.clear();
        used.extend(placed.iter().map(|place| place.node));
        used.sort_unstable();
        for places in placed.chunk_by_mut(|one, other| one.node == other.node) {
            if let Some(better) = self.better_node(places, members, &used, bars) {
                if let Err(position) = used.binary_search(&better) {
                    used.insert(position, better);
                }
                for place in places {
                    place.node = better;
                }
            }
        }
        self.images.used = used;
        self.search.placed = placed;
    }

    /// Moves the charges of some places, all of one node, and returns where to.
    fn better_node(
        &mut self,
        places: &[Placed],
        members: &Members,
        used: &[NodeIx],
        bars: bool,
    ) -> Option<NodeIx> {
        let node = places.first()?.node;
        let template = |place: &Placed| members.batches[place.batch as usize].template;
        let mut wanted: SmallVec<[u64; 8]> = SmallVec::new();
        for (index, place) in places.iter().enumerate() {
            if index > 0 && places[index - 1].batch == place.batch {
                continue;
            }
            if !self.cluster.template(template(place)).is_judged_by_class() {
                return None;
            }
            // Members that ask for the same run the same, or nearly always.
            let member = members.first_of(place.batch);
            let pod = member.and_then(|member| self.pods.get(member.0));
            wanted.extend(
                pod.into_iter()
                    .flat_map(|pod| pod.spec.images.iter().copied()),
            );
        }
        wanted.sort_unstable();
        wanted.dedup();
        let there = self.images.mib_on(node, &wanted);
        let with_images = wanted.iter().filter_map(|image| self.images.at.get(image));
        if !with_images
            .clone()
            .any(|nodes| nodes.binary_search(&node).is_err())
        {
            // It has all that any node has.
            return None;
        }
        for place in places {
            self.cluster.release(node, template(place), &place.devices);
        }
        let class = self.cluster.node(node).class;
        let reserved = self.reservation.as_ref().filter(|_| bars);
        let is_open = |other: NodeIx| {
            let reserved = reserved.and_then(|it| it.nodes.get(other.0 as usize));
            reserved != Some(&true) && used.binary_search(&other).is_err()
        };
        let is_equal = |other: NodeIx| {
            let cluster = &self.cluster;
            let mut partitions = cluster.partitions.iter().skip(1);
            cluster.node(other).class == class
                && partitions.all(|it| it.domain_of(other) == it.domain_of(node))
        };
        let candidates = with_images.flatten().copied().take(MOST_LOOKS);
        let candidates = candidates.filter(|&other| is_equal(other) && is_open(other));
        let best = candidates.max_by_key(|&other| {
            let rank = core::cmp::Reverse(self.cluster.node(other).rank);
            (self.images.mib_on(other, &wanted), rank)
        });
        let better = best.filter(|&best| self.images.mib_on(best, &wanted) > there);
        for place in places {
            let node = better.unwrap_or(node);
            self.cluster.charge(node, template(place), &place.devices);
        }
        better
    }
}
