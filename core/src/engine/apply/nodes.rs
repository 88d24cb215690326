//! Nodes that come, change and go, and which devices the pods of a node hold.

use alloc::{boxed::Box, format, sync::Arc};

use smallvec::SmallVec;

use super::{
    super::{
        NodeIx, Rejection, Scheduler,
        store::{Charge, PodIx, Purpose},
    },
    MOST, invalid,
};
use crate::{
    bits::CardSet,
    cluster::NodeSpec,
    device::{self, CardAsk, Devices, KindIx},
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
            return Ok(());
        }
        self.without_charges(node, |cluster| cluster.describe(node, spec));
        Ok(())
    }

    pub(super) fn apply_node_gone(&mut self, name: &str) {
        let Some(node) = self.cluster.find_node(name) else {
            return;
        };
        self.without_charges(node, |cluster| cluster.retire(node));
        // Nobody waits for a node that is not there; should it come back, it is another.
        let reserved = self
            .reservation
            .as_mut()
            .map(|reservation| &mut reservation.nodes);
        if let Some(reserved) = reserved.and_then(|nodes| nodes.get_mut(node.0 as usize)) {
            *reserved = false;
        }
        // Nothing that is only planned can go there any more.
        let held: SmallVec<[PodIx; 8]> = self
            .pods_on(node)
            .iter()
            .copied()
            .filter(|&pod| self.is_held(pod))
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
                self.remembered_devices.push((pod, charge.devices));
            }
        }
        self.settle_devices(node, None);
        self.remembered_devices.clear();
    }

    /// Deals devices anew after a hold, where running pods have others than they said, or said nothing: what is
    /// assumed of them must follow from what is there, not from what came first. On cards that are
    /// all alike and only given whole nothing would change.
    pub(in crate::engine) fn settle_around(&mut self, node: NodeIx) {
        if !self.cluster.node(node).cards.are_told_apart() {
            return;
        }
        let assumed = self.pods_on(node).iter().any(|pod| {
            let pod = self.pods.get(pod.0);
            pod.is_some_and(|pod| {
                let assumed = |charge: Charge| {
                    charge.purpose == Purpose::Bound && pod.spec.devices != Some(charge.devices)
                };
                pod.charge.is_some_and(assumed)
                    && self.cluster.template(pod.template).cards.is_some()
            })
        });
        if assumed {
            self.settle_devices(node, None);
        }
    }

    /// Decides which devices the pods of a node hold: those they say or were given; the others, in
    /// order of uid, those that we would have given if they were alone, from healthy cards first, and
    /// where somebody has these, what is left. So it depends on the set of pods alone, not on the order
    /// in which they were seen, and what is given later, of what is left, moves nobody. `fresh` is on
    /// the ledger but not charged yet.
    pub(super) fn settle_devices(&mut self, node: NodeIx, fresh: Option<PodIx>) {
        let mut wanting = core::mem::take(&mut self.wanting);
        wanting.clear();
        for &ix in self.pods_on(node) {
            let Some(pod) = self.pods.get(ix.0) else {
                continue;
            };
            if self.cluster.template(pod.template).cards.is_some() {
                let held = pod
                    .charge
                    .is_some_and(|charge| charge.purpose == Purpose::Held);
                wanting.push((pod.spec.devices.is_none() && !held, pod.spec.uid, ix));
            }
        }
        wanting.sort_unstable();
        let mut dealt = core::mem::take(&mut self.dealt);
        let mut given = core::mem::take(&mut self.given);
        given.clear();
        if !wanting.is_empty() {
            dealt.clone_from(&self.cluster.node(node).cards);
            dealt.empty();
        }
        let known = wanting.partition_point(|&(is_assumed, ..)| !is_assumed);
        for &(_, _, ix) in &wanting[known..] {
            if let Some(ask) = self.ask_of(ix) {
                let devices = device::deal(&mut dealt, ask, None);
                given.push((ix, devices));
            }
        }
        if known > 0 {
            dealt.empty();
        }
        let assumed = given.len();
        for &(_, _, ix) in &wanting[..known] {
            let (Some(pod), Some(ask)) = (self.pods.get(ix.0), self.ask_of(ix)) else {
                continue;
            };
            let remembered = self.remembered_devices.iter().find(|(pod, _)| *pod == ix);
            let said = match pod.charge {
                Some(Charge {
                    purpose: Purpose::Held,
                    devices,
                    ..
                }) => Some(remembered.map_or(devices, |(_, devices)| *devices)),
                _ => pod.spec.devices,
            };
            let devices = device::deal(&mut dealt, ask, said);
            given.push((ix, devices));
        }
        if known > 0 {
            let (assumed, _) = given.split_at_mut(assumed);
            let mut stays: SmallVec<[bool; 16]> = SmallVec::new();
            for &mut (ix, devices) in &mut *assumed {
                let ask = self.ask_of(ix);
                stays.push(ask.is_some_and(|ask| device::deal_exactly(&mut dealt, ask, &devices)));
            }
            let moved = assumed.iter_mut().zip(stays).filter(|(_, stays)| !stays);
            for ((ix, devices), _) in moved {
                if let Some(ask) = self.ask_of(*ix) {
                    *devices = device::deal(&mut dealt, ask, None);
                }
            }
        }
        // Nearly always nothing is wrong, and this is on the way of each pod.
        let is_short = |(ix, devices): &(PodIx, Devices)| {
            let ask = self.ask_of(*ix);
            ask.is_some_and(|ask| ask.lacks(devices) && dealt.pool(ask.kind).is_some())
        };
        let is_suspect = !given.is_empty() && (given.iter().any(is_short) || dealt.is_overfull());
        (self.dealt, self.wanting) = (dealt, wanting);
        // Take all back first, so that no device is given twice on the way.
        given.retain(|&(ix, devices)| {
            let changes = self
                .charge_of(ix)
                .is_some_and(|(_, charge)| charge.devices != devices);
            changes || fresh == Some(ix)
        });
        if given.iter().any(|&(ix, _)| fresh != Some(ix)) {
            // What moves may make room for somebody who was refused.
            self.loosened += 1;
            self.changed += 1;
        }
        for &(ix, _) in &given {
            if let Some((template, charge)) = self.charge_of(ix).filter(|_| fresh != Some(ix)) {
                self.cluster.release(node, template, &charge.devices);
            }
        }
        for &(ix, devices) in &given {
            if let Some((template, charge)) = self.charge_of(ix) {
                self.cluster.charge(node, template, &devices);
                if let Some(pod) = self.pods.get_mut(ix.0) {
                    pod.charge = Some(Charge { devices, ..charge });
                }
            }
        }
        self.given = given;
        if is_suspect || self.cluster.node(node).cards.is_over_used() {
            let over_used = self.over_used(node);
            self.cluster.set_over_used(node, &over_used);
        }
    }

    /// Cards of a node of which nobody knows what its pods use.
    pub(in crate::engine) fn over_used(&self, node: NodeIx) -> SmallVec<[(KindIx, CardSet); 1]> {
        let cards = &self.cluster.node(node).cards;
        let charged = self.pods_on(node).iter().filter_map(|&ix| {
            let (_, charge) = self.charge_of(ix)?;
            let said = self.pods.get(ix.0)?.spec.devices;
            let is_told = charge.purpose == Purpose::Held || said == Some(charge.devices);
            Some((self.ask_of(ix)?, charge.devices, is_told))
        });
        let given: SmallVec<[(&CardAsk, Devices, bool); 16]> = charged.collect();
        device::over_used(cards, &given)
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
