//! The engine against itself: what is kept incrementally equals what the objects say.

use alloc::{
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::hash::Hasher;

use super::{NodeIx, Purpose, Scheduler, store::Tally};
use crate::{
    device::{Devices, Inventory},
    hash::WordHasher,
    units::Uid,
};

/// A figure that the engine keeps and that does not follow from the objects it knows. Never seen;
/// tests and `gangline check` look for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: kept {kept}, but the objects give {derived}")]
pub struct Inconsistency {
    /// What is wrong.
    pub what: String,
    /// The figure that was kept.
    pub kept: String,
    /// The figure that follows.
    pub derived: String,
}

/// One line of the ledger: who takes what from which node, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerLine<'a> {
    /// The pod.
    pub owner: Uid,
    /// The node's name.
    pub node: &'a str,
    /// The devices.
    pub devices: Devices,
    /// Why.
    pub purpose: Purpose,
    /// For a hold: how long it stands at most, from now, before it is given back.
    pub deadline_in: Option<crate::units::Nanos>,
}

fn compare<T: PartialEq + ToString>(
    what: &str,
    kept: &T,
    derived: &T,
) -> Result<(), Inconsistency> {
    if kept == derived {
        return Ok(());
    }
    Err(Inconsistency {
        what: what.into(),
        kept: kept.to_string(),
        derived: derived.to_string(),
    })
}

impl Scheduler {
    /// Every use of a node's room, ordered by owner.
    pub fn ledger(&self) -> Vec<LedgerLine<'_>> {
        let mut lines: Vec<_> = self
            .pods
            .iter()
            .filter_map(|(_, pod)| {
                let charge = pod.charge?;
                let life = self.gangs.get(pod.gang.0).map(|gang| gang.life);
                let held = charge.purpose == Purpose::Held;
                Some(LedgerLine {
                    owner: pod.spec.uid,
                    node: self.cluster.node_name(charge.node),
                    devices: charge.devices,
                    purpose: charge.purpose,
                    deadline_in: life.filter(|_| held).and_then(|life| life.deadline_left()),
                })
            })
            .collect();
        lines.sort_unstable_by_key(|line| line.owner);
        lines
    }

    /// Adds up everything from the objects and compares with what is kept. Cost: all pods and nodes.
    pub fn check(&self) -> Result<(), Inconsistency> {
        let nodes = self.cluster.node_count();
        let mut on_node = alloc::vec![0_usize; nodes];
        let mut used: BTreeMap<NodeIx, Inventory> = BTreeMap::new();
        let mut taken: BTreeMap<(NodeIx, u16), i64> = BTreeMap::new();
        for (_, pod) in self.pods.iter() {
            let Some(charge) = pod.charge else { continue };
            on_node[charge.node.0 as usize] += 1;
            let template = self.cluster.template(pod.template);
            for &(resource, amount) in &template.amounts {
                *taken.entry((charge.node, resource)).or_default() += amount;
            }
            if let Some(ask) = &template.cards {
                let used = used.entry(charge.node).or_insert_with(|| {
                    let mut cards = self.cluster.node(charge.node).cards.clone();
                    cards.empty();
                    cards
                });
                let what = || {
                    let node = self.cluster.node_name(charge.node);
                    format!("devices of {} on {node}", pod.spec.name)
                };
                let twice = used.conflict(&charge.devices, ask.kind);
                if twice {
                    compare(
                        &what(),
                        &format!("{:?}", charge.devices),
                        &"given twice".into(),
                    )?;
                }
                used.take(ask, &charge.devices);
            }
        }
        for (&node, cards) in &mut used {
            cards.set_in_doubt(&self.cards_in_doubt(node));
        }
        for ix in 0..nodes as u32 {
            let node = NodeIx(ix);
            let name = self.cluster.node_name(node);
            compare(
                &format!("pods on {name}"),
                &self.pods_on(node).len(),
                &on_node[ix as usize],
            )?;
            for (resource, &free) in self.cluster.free_of(node).iter().enumerate() {
                let taken = taken.get(&(node, resource as u16)).copied().unwrap_or(0);
                let derived = self.cluster.allocatable(node, resource as u16) - taken;
                let what = format!(
                    "free {} on {name}",
                    self.cluster.resource_name(resource as u16)
                );
                compare(&what, &free, &derived)?;
            }
            let kept = &self.cluster.node(node).cards;
            let derived = used.remove(&node).unwrap_or_else(|| {
                let mut cards = kept.clone();
                cards.empty();
                cards
            });
            if !kept.same_use(&derived) {
                let what = format!("cards in use on {name}");
                compare(&what, &format!("{kept:?}"), &format!("{derived:?}"))?;
            }
        }
        for (_, gang) in self.gangs.iter() {
            let mut derived = alloc::vec![Tally::default(); gang.tree.nodes.len()];
            for pod in gang
                .members
                .iter()
                .filter_map(|member| self.pods.get(member.0))
            {
                if let Some(leaf) = pod.leaf {
                    derived[leaf as usize].count(pod, true);
                }
            }
            let kept = format!("{:?}", gang.tally.as_slice());
            compare("members by state", &kept, &format!("{derived:?}"))?;
        }
        Ok(())
    }

    /// A hash of everything that decides, independent of the order in which it was learned: nodes,
    /// what is free on them, what pods hold, what gangs are. Equal states give equal hashes.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = WordHasher::default();
        let mut names: Vec<(&str, NodeIx)> = (0..self.cluster.node_count() as u32)
            .map(NodeIx)
            .filter(|&node| self.cluster.node(node).spec.is_some())
            .map(|node| (self.cluster.node_name(node), node))
            .collect();
        names.sort_unstable();
        for (name, node) in names {
            hasher.write(name.as_bytes());
            let mut free: Vec<(&str, i64)> = self
                .cluster
                .free_of(node)
                .iter()
                .enumerate()
                .map(|(ix, &free)| (self.cluster.resource_name(ix as u16), free))
                .filter(|&(_, free)| free != 0)
                .collect();
            free.sort_unstable();
            for (name, free) in free {
                hasher.write(name.as_bytes());
                hasher.write_u64(free as u64);
            }
            for &(image, mib) in self.images.of(node) {
                hasher.write_u64(image);
                hasher.write_u32(mib);
            }
            let mut cards: Vec<(&str, u64)> = Vec::new();
            for pool in self.cluster.node(node).cards.pools() {
                cards.push((self.cluster.kind_name(pool.kind), pool.free().0));
            }
            for pool in self.cluster.node(node).cards.counted() {
                cards.push((self.cluster.kind_name(pool.kind), pool.used));
            }
            cards.sort_unstable();
            for (name, free) in cards {
                hasher.write(name.as_bytes());
                hasher.write_u64(free);
            }
        }
        for line in self.ledger() {
            hasher.write_u128(line.owner.0);
            hasher.write(line.node.as_bytes());
            core::hash::Hash::hash(&line.devices, &mut hasher);
            hasher.write_u8(line.purpose as u8);
        }
        let mut gangs: Vec<(u128, u64)> = Vec::new();
        for (_, gang) in self.gangs.iter() {
            let mut one = WordHasher::default();
            core::hash::Hash::hash(&gang.life, &mut one);
            core::hash::Hash::hash(&gang.key, &mut one);
            one.write_u32(gang.members.len() as u32);
            one.write_u8(gang.verdict as u8);
            gangs.push((gang.uid.0, one.finish()));
        }
        gangs.sort_unstable();
        for (uid, state) in gangs {
            hasher.write_u128(uid);
            hasher.write_u64(state);
        }
        hasher.finish()
    }
}
