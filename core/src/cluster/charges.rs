//! Charges: what members take from nodes, made, taken back, and undone to a mark.

use smallvec::SmallVec;

use super::{Cluster, JournalEntry, NodeIx, Shortage, template::TemplateIx};
use crate::{
    bits::CardSet,
    device::{Devices, KindIx},
};

impl Cluster {
    /// Charges a member of a template with these cards to a node, whether it fits or not.
    pub(crate) fn charge(&mut self, node: NodeIx, template: TemplateIx, devices: &Devices) {
        self.change(node, template, devices, true);
    }

    /// Takes back a charge that was made with the same arguments.
    pub(crate) fn release(&mut self, node: NodeIx, template: TemplateIx, devices: &Devices) {
        self.change(node, template, devices, false);
    }

    pub(super) fn change(
        &mut self,
        node: NodeIx,
        template: TemplateIx,
        devices: &Devices,
        made: bool,
    ) {
        if self.journaling {
            self.journal.push(JournalEntry {
                node,
                template,
                devices: *devices,
                made,
            });
        }
        let ix = node.0 as usize;
        let stride = self.resources.len();
        let compiled = &self.templates[template.0 as usize];
        let free = &mut self.free[ix * stride..(ix + 1) * stride];
        for &(resource, amount) in &compiled.amounts {
            let slot = &mut free[usize::from(resource)];
            // Amounts are checked when they enter, so the sum of all pods of a node fits.
            *slot = if made {
                slot.wrapping_sub(amount)
            } else {
                slot.wrapping_add(amount)
            };
        }
        let slot = &mut self.nodes[ix];
        for port in &compiled.source.host_ports {
            if made {
                slot.ports.push(port.clone());
            } else if let Some(at) = slot.ports.iter().position(|held| held == port) {
                slot.ports.swap_remove(at);
            }
        }
        if let Some(ask) = &compiled.cards {
            let before = slot.cards.free(ask.kind);
            if made {
                slot.cards.take(ask, devices);
            } else {
                slot.cards.give_back(ask, devices);
            }
            let after = slot.cards.free(ask.kind);
            if before != after {
                for partition in &mut self.partitions[1..] {
                    partition.recount(node, ask.kind, before, after);
                }
            }
        }
        if !(compiled.counted_by.is_empty() && compiled.anti_affinity.is_empty()) {
            self.count_in(node, template, made);
        }
        self.reclass(node);
    }

    /// Says of which cards of a node nobody knows what its members use. Not noted for undoing: it
    /// follows from who is there.
    pub(crate) fn set_in_doubt(&mut self, node: NodeIx, cards: &[(KindIx, CardSet)]) {
        let slot = &mut self.nodes[node.0 as usize];
        let before: SmallVec<[(KindIx, u32); 2]> = slot.cards.free_by_kind().collect();
        if !slot.cards.set_in_doubt(cards) {
            return;
        }
        for (kind, before) in before {
            let after = slot.cards.free(kind);
            for partition in &mut self.partitions[1..] {
                partition.recount(node, kind, before, after);
            }
        }
        self.reclass(node);
    }

    /// Starts to note changes; [`Cluster::undo_to`] with the returned mark takes them back.
    pub(crate) fn begin(&mut self) -> usize {
        self.journaling = true;
        self.journal.len()
    }

    /// Takes back every change since the mark, latest first.
    pub(crate) fn undo_to(&mut self, mark: usize) {
        self.journaling = false;
        while self.journal.len() > mark {
            let Some(entry) = self.journal.pop() else {
                break;
            };
            self.change(entry.node, entry.template, &entry.devices, !entry.made);
        }
        self.journaling = true;
    }

    /// Stops noting changes and keeps them.
    pub(crate) fn commit(&mut self) {
        self.journaling = false;
        self.journal.clear();
    }

    /// Whether the node can take one more member of the template, judged by what is free alone:
    /// `None` if so, otherwise what is short.
    pub(crate) fn shortage(&self, node: NodeIx, template: TemplateIx) -> Option<Shortage> {
        let compiled = self.template(template);
        if let Some(ask) = compiled
            .cards
            .as_ref()
            .filter(|ask| self.node(node).cards.capacity(ask) == 0)
        {
            return Some(Shortage::Cards(ask.kind));
        }
        let free = self.free_of(node);
        let short = compiled.amounts.iter().find(|&&(resource, amount)| {
            free.get(usize::from(resource))
                .is_none_or(|&free| free < amount)
        });
        short.map(|&(resource, _)| Shortage::Resource(resource))
    }
}
