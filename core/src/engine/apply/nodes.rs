//! Nodes that come, change and go, and which devices the pods of a node hold.

use alloc::{boxed::Box, format, sync::Arc, vec::Vec};
use core::cmp::Reverse;

use smallvec::SmallVec;

use super::{
    super::{
        Holder, NodeIx, Rejection, Scheduler,
        store::{Charge, PodIx, Purpose},
    },
    MOST, invalid,
};
use crate::{
    bits::CardSet,
    cluster::{
        NodeSpec,
        shape::{StaticFit, static_fit},
        template::TemplateIx,
    },
    device::{self, CardAsk, Devices, KindIx, Running},
};

impl Scheduler {
    pub(super) fn apply_node(&mut self, spec: NodeSpec) -> Result<(), Rejection> {
        let known = self.cluster.find_node(&spec.name);
        let known = known.and_then(|node| self.cluster.node(node).spec.as_deref());
        if known == Some(&spec) {
            return Ok(());
        }
        check_node(&spec, known)?;
        let node = self.cluster.node_slot(&spec.name);
        let spec = Arc::new(spec);
        if self.cluster.mark(node, &spec) {
            self.loosened += 1;
            self.changed += 1;
        } else {
            self.without_charges(node, |cluster| cluster.describe(node, spec));
        }
        self.drop_holds(node, |engine, pod| !engine.is_let_in(node, pod));
        Ok(())
    }

    /// Whether a node's marks and labels let a pod in.
    fn is_let_in(&self, node: NodeIx, pod: PodIx) -> bool {
        let spec = self.cluster.node(node).spec.as_deref();
        let (Some(spec), Some(pod)) = (spec, self.pods.get(pod.0)) else {
            return false;
        };
        let template = self.cluster.template(pod.template);
        let (marks, labels) = (&spec.taints, &spec.labels);
        let fit = static_fit(template, spec.unschedulable, marks, &spec.name, labels);
        matches!(fit, StaticFit::Fits { .. })
    }

    pub(super) fn apply_node_gone(&mut self, name: &str) {
        let Some(node) = self.cluster.find_node(name) else {
            return;
        };
        self.without_charges(node, |cluster| cluster.retire(node));
        self.images.set(node, Vec::new());
        // Nobody waits for a node that is not there; should it come back, it is another.
        let reserved = self
            .reservation
            .as_mut()
            .map(|reservation| &mut reservation.nodes);
        if let Some(reserved) = reserved.and_then(|nodes| nodes.get_mut(node.0 as usize)) {
            *reserved = false;
        }
        // Nothing that is only planned can go there any more.
        self.drop_holds(node, |_, _| true);
    }

    /// Gives back the room that is held on a node for these pods: they are placed anew.
    fn drop_holds(&mut self, node: NodeIx, drops: impl Fn(&Self, PodIx) -> bool) {
        let held: SmallVec<[PodIx; 8]> = self
            .pods_on(node)
            .iter()
            .copied()
            .filter(|&pod| self.is_held(pod) && drops(self, pod))
            .collect();
        for &pod in &held {
            self.count(pod, false);
            self.drop_charge(pod);
            self.count(pod, true);
        }
        for &pod in &held {
            if let Some(gang) = self.pods.get(pod.0).map(|pod| pod.gang) {
                self.touch(gang);
            }
        }
    }

    /// Takes every charge off a node, changes it, and charges it again.
    pub(super) fn without_charges(
        &mut self,
        node: NodeIx,
        change: impl FnOnce(&mut crate::cluster::Cluster),
    ) {
        self.loosened += 1;
        self.changed += 1;
        let pods: SmallVec<[PodIx; 16]> = self.pods_on(node).into();
        for &pod in &pods {
            if let Some((template, charge)) = self.charge_of(pod) {
                self.cluster.release(charge.node, template, &charge.devices);
            }
        }
        change(&mut self.cluster);
        for &pod in &pods {
            if let Some((template, charge)) = self.charge_of(pod) {
                // Which devices it has is settled below; none are taken in between.
                self.cluster.charge(node, template, &Devices::NONE);
                if let Some(entry) = self.pods.get_mut(pod.0) {
                    entry.charge = Some(Charge {
                        devices: Devices::NONE,
                        ..charge
                    });
                }
            }
        }
        self.settle_devices(node, None);
    }

    /// Deals devices anew after a hold, where running pods have others than they said, or said nothing: what is
    /// assumed of them must follow from what is there, not from what came first. On cards that are
    /// all alike and only given whole nothing would change.
    pub(in crate::engine) fn settle_around(&mut self, node: NodeIx) {
        if !self.cluster.node(node).cards.are_told_apart() {
            return;
        }
        let mut charged = self.pods_on(node).iter().filter_map(|&pod| {
            let (_, charge) = self.charge_of(pod)?;
            self.ask_of(pod).map(|_| charge)
        });
        let assumed = charged.any(|charge| charge.told != Some(charge.devices));
        if assumed {
            self.settle_devices(node, None);
        }
    }

    /// Decides which devices the pods of a node hold, the largest request first, then in order of uid:
    /// see [`device::settle`]; and which are kept for nominated pods: see [`device::keep_room`]. `fresh` is on the ledger but not charged yet.
    pub(super) fn settle_devices(&mut self, node: NodeIx, fresh: Option<PodIx>) {
        let mut holders = core::mem::take(&mut self.holders);
        holders.clear();
        holders.extend(self.pods_on(node).iter().filter_map(|&ix| {
            let size = self.ask_of(ix)?.size();
            let pod = self.pods.get(ix.0)?;
            let is_nominated = pod.charge?.purpose == Purpose::Nominated;
            Some((is_nominated, Reverse(size), pod.spec.uid, ix))
        }));
        if holders.is_empty() && !self.cluster.node(node).cards.is_in_doubt() {
            self.holders = holders;
            return;
        }
        holders.sort_unstable();
        let mut cards = core::mem::take(&mut self.dealt);
        let mut held = core::mem::take(&mut self.held);
        cards.clone_from(&self.cluster.node(node).cards);
        cards.empty();
        // What was told is judged once, and looked at in several passes.
        let mut told = core::mem::take(&mut self.told);
        told.clear();
        told.extend(holders.iter().map(|&(.., ix)| self.running(ix)?.told));
        // Room is kept of what those leave who run, or are about to.
        let runs = holders.partition_point(|&(is_nominated, ..)| !is_nominated);
        let in_doubt = {
            let running = holders[..runs]
                .iter()
                .zip(&told)
                .filter_map(|(&(.., ix), &told)| {
                    let ask = self.ask_of(ix)?;
                    Some(Running { ask, told })
                });
            device::settle(&mut cards, running.clone(), &mut held);
            device::in_doubt(&cards, running, &held)
        };
        for &(.., ix) in &holders[runs..] {
            let room = self
                .ask_of(ix)
                .map(|ask| device::keep_room(&mut cards, ask));
            held.push(room.unwrap_or_default());
        }
        self.recharge(node, fresh, &holders, &held);
        if !in_doubt.is_empty() || self.cluster.node(node).cards.is_in_doubt() {
            self.cluster.set_in_doubt(node, &in_doubt);
        }
        (self.dealt, self.held) = (cards, held);
        (self.holders, self.told) = (holders, told);
    }

    /// Charges holders with what they hold now, where that is not what they held.
    fn recharge(
        &mut self,
        node: NodeIx,
        fresh: Option<PodIx>,
        holders: &[Holder],
        held: &[Devices],
    ) {
        // Take all back first, so that no device is given twice on the way.
        let mut moved: SmallVec<[(PodIx, TemplateIx, Charge); 8]> = SmallVec::new();
        for (&(.., ix), &devices) in holders.iter().zip(held) {
            let Some((template, charge)) = self.charge_of(ix) else {
                continue;
            };
            if fresh != Some(ix) {
                if charge.devices == devices {
                    continue;
                }
                self.cluster.release(node, template, &charge.devices);
                // What moves may make room for somebody who was refused.
                self.loosened += 1;
                self.changed += 1;
            }
            moved.push((ix, template, Charge { devices, ..charge }));
        }
        for (ix, template, charge) in moved {
            self.cluster.charge(node, template, &charge.devices);
            if let Some(pod) = self.pods.get_mut(ix.0) {
                pod.charge = Some(charge);
            }
        }
    }

    /// Cards of a node of which nobody knows what its pods use.
    pub(in crate::engine) fn cards_in_doubt(
        &self,
        node: NodeIx,
    ) -> SmallVec<[(KindIx, CardSet); 1]> {
        let charged = self.pods_on(node).iter().filter_map(|&ix| {
            let (_, charge) = self.charge_of(ix)?;
            let runs = charge.purpose != Purpose::Nominated;
            runs.then_some((self.running(ix)?, charge.devices))
        });
        let (running, held): (Vec<Running<'_>>, Vec<Devices>) = charged.unzip();
        device::in_doubt(&self.cluster.node(node).cards, running.into_iter(), &held)
    }

    /// A charged pod that asks for cards.
    fn running(&self, ix: PodIx) -> Option<Running<'_>> {
        let (_, charge) = self.charge_of(ix)?;
        let ask = self.ask_of(ix)?;
        let pool = self.cluster.node(charge.node).cards.pool(ask.kind);
        Some(Running::new(ask, charge.told, pool))
    }

    /// What a pod asks of the device layer.
    fn ask_of(&self, ix: PodIx) -> Option<&CardAsk> {
        let pod = self.pods.get(ix.0)?;
        self.cluster.template(pod.template).cards.as_ref()
    }
}

/// Checks a node against what is known of it already: cards that were sound still are.
fn check_node(spec: &NodeSpec, known: Option<&NodeSpec>) -> Result<(), Rejection> {
    let object = || format!("node {}", spec.name);
    if spec.name.is_empty() {
        return Err(invalid(object(), "name", &"empty", "a name"));
    }
    for (name, &amount) in &spec.resources {
        if !(0..=MOST).contains(&amount) {
            let field = format!("resources.{name}");
            return Err(invalid(object(), &field, &amount, "0 to 2^60"));
        }
    }
    for (index, cards) in spec.cards.iter().enumerate() {
        if spec.cards[..index]
            .iter()
            .any(|other| other.kind == cards.kind)
        {
            return Err(invalid(
                object(),
                "cards.kind",
                &cards.kind,
                "each kind once",
            ));
        }
        if known.is_some_and(|known| known.cards.contains(cards)) {
            continue;
        }
        if let Err(error) = device::check_cards(cards) {
            return Err(Rejection::NodeCards {
                object: object(),
                kind: cards.kind.clone(),
                error: Box::new(error),
            });
        }
    }
    Ok(())
}
