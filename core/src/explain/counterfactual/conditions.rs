//! Conditions on cards that a gang could do without.
//!
//! The waiting members' requests enter; each condition that any of them has is dropped for all of them,
//! and those leave without which the gang has a place.

use alloc::{
    format,
    string::{String, ToString},
    sync::Arc,
    vec::Vec,
};

use crate::{
    device::links::Nearness,
    engine::{Event, GangId},
    explain::{CardCondition, Counterfactual, Explainer},
    gang::PodSpec,
    request::{Apart, CardRequest, CardWant, Template},
};

/// In the order in which a node's cards are tested for them.
const CONDITIONS: [CardCondition; 7] = [
    CardCondition::Models,
    CardCondition::Memory,
    CardCondition::Ids,
    CardCondition::Near,
    CardCondition::Apart,
    CardCondition::ShareGroup,
    CardCondition::Exclusive,
];

/// Drops a condition; returns what was asked for, in words, if anything was.
fn take(condition: CardCondition, cards: &mut CardRequest) -> Option<String> {
    match condition {
        CardCondition::Models => {
            let models = core::mem::take(&mut cards.models);
            (!models.is_empty()).then(|| models.join(", "))
        }
        CardCondition::Memory => {
            let mib = core::mem::take(&mut cards.min_card_memory_mib);
            (mib > 0).then(|| format!("{mib} MiB"))
        }
        CardCondition::Ids => cards.only.take().map(|only| only.to_string()),
        CardCondition::Near => {
            let near = core::mem::replace(&mut cards.near, Nearness::Any);
            (near != Nearness::Any).then(|| near.word().to_string())
        }
        CardCondition::Apart => match &mut cards.want {
            CardWant::Whole(_) => None,
            CardWant::Slices { cards, .. }
            | CardWant::Shares { cards, .. }
            | CardWant::Replicas { cards, .. } => match core::mem::replace(cards, Apart::Any) {
                Apart::Distinct => Some("distinct cards".into()),
                Apart::Same => Some("one card".into()),
                Apart::Any => None,
            },
        },
        CardCondition::ShareGroup => {
            let group = core::mem::take(&mut cards.share_group);
            (!group.is_empty()).then_some(group)
        }
        CardCondition::Exclusive => {
            let exclusive = core::mem::take(&mut cards.exclusive);
            (!exclusive.is_empty()).then_some(exclusive)
        }
    }
}

impl Explainer {
    /// The conditions on cards of which dropping one admits the gang.
    pub(super) fn drop_conditions(&mut self, id: GangId) -> Vec<Counterfactual> {
        let Some(gang) = self.engine.gangs.get(id.0) else {
            return Vec::new();
        };
        let pods = gang.members.iter();
        let pods = pods.filter_map(|member| self.engine.pods.get(member.0));
        let waiting = pods.filter(|pod| pod.charge.is_none() && pod.spec.template.cards.is_some());
        let waiting: Vec<PodSpec> = waiting.map(|pod| pod.spec.clone()).collect();
        let mut found = Vec::new();
        for condition in CONDITIONS {
            if let Some(value) = self.admits_without(id, &waiting, condition) {
                found.push(Counterfactual::DropCondition { condition, value });
            }
        }
        found
    }

    /// What was asked for, if the gang has a place without it.
    fn admits_without(
        &mut self,
        id: GangId,
        waiting: &[PodSpec],
        condition: CardCondition,
    ) -> Option<String> {
        let mut dropped = None;
        let mut changed: Vec<&PodSpec> = Vec::new();
        for pod in waiting {
            let mut template = Template::clone(&pod.template);
            let Some(value) = template
                .cards
                .as_mut()
                .and_then(|cards| take(condition, cards))
            else {
                continue;
            };
            dropped.get_or_insert(value);
            changed.push(pod);
            let without = PodSpec {
                template: Arc::new(template),
                ..pod.clone()
            };
            if self.engine.apply(Event::Pod(without)).is_err() {
                dropped = None;
                break;
            }
        }
        let admits = dropped.is_some() && self.admits(id);
        for pod in changed {
            // Cannot be refused: it was there before.
            let _ = self.engine.apply(Event::Pod(pod.clone()));
        }
        dropped.filter(|_| admits)
    }
}
