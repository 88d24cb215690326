//! What somebody wrote about a node's cards, as far as it goes with what the device plugin lists.
//!
//! A [`Declared`] enters and changes the node's cards. What contradicts the device plugin is noted and
//! left out: nobody gets a card that it cannot give.

use std::collections::BTreeMap;

use gangline::{
    bits::CardSet,
    cluster::{NodeCards, spec::CardMode},
    device::{
        check_cards,
        model::most_memory_mib,
        model_of,
        names::label::{self, Product},
    },
};

use super::{super::declared::Declared, ANNOTATIONS, Offered, Reader, attempt};
use crate::annotations::CARDS;

impl Reader<'_, '_> {
    /// What somebody wrote about the cards.
    pub(super) fn add_declared(
        &mut self,
        cards: &mut NodeCards,
        said: Declared,
        offered: &Offered,
        physical: u32,
    ) {
        if let Some(memory) = said.memory_mib {
            self.set_memory(cards, memory, CARDS);
        }
        let is_mig =
            |mode: &CardMode| matches!(mode, CardMode::MigStatic(_) | CardMode::MigDynamic);
        if said.modes.iter().any(is_mig) || !said.unreadable.is_empty() {
            self.add_declared_mig(cards, &said, offered, physical);
            return;
        }
        // With the sick ones known by number, the others are known too.
        let sick = said.unhealthy.unwrap_or_default();
        // A card that is known to be bad stays out, whatever else is wrong with the list.
        let mut sick = self.those_there(sick, physical);
        if !sick.is_empty() && cards.count > 0 {
            let left = physical - sick.len();
            if left > cards.count {
                let message = format_args!(
                    "unhealthy: {} of {physical} cards, but only {} can be used; accepted: the \
                     numbers of all that cannot",
                    sick.len(),
                    cards.count
                );
                self.refuse(CARDS, message);
            }
            // Which others cannot be used nobody told: so many are left out, and who runs on one of
            // these is somewhere.
            let mut count = cards.count;
            let there = |count| {
                cards.count
                    + CardSet::first(count)
                        .unwrap_or_default()
                        .intersection(sick)
                        .len()
            };
            while there(count) > count {
                count = there(count);
            }
            sick = sick.intersection(CardSet::first(count).unwrap_or_default());
            let count = count.min(physical);
            let change = |cards: &mut NodeCards| {
                (cards.count, cards.unhealthy) = (count, sick);
            };
            attempt(cards, change, &ANNOTATIONS.key(CARDS), self.problems);
        }
        if let Some(count) = said.count.filter(|count| *count != physical) {
            let message = format_args!("count: {count}; accepted: {physical}, which there are");
            self.refuse(CARDS, message);
        }
        if let Some(listed) = said.listed
            && ![cards.count, physical].contains(&listed)
        {
            self.refuse_list(listed, physical);
        } else if !said.modes.is_empty() && cards.count > 0 {
            let change = |cards: &mut NodeCards| cards.modes = said.modes;
            attempt(cards, change, &ANNOTATIONS.key(CARDS), self.problems);
        }
    }

    /// Those of the cards that are said to be unhealthy that there are; names the others.
    fn those_there(&mut self, unhealthy: CardSet, count: u32) -> CardSet {
        let there = CardSet::first(count).unwrap_or_default();
        if !there.contains_all(unhealthy) {
            let message = format_args!(
                "unhealthy: {}; accepted: numbers below {count}, which is how many cards there are",
                unhealthy.difference(there)
            );
            self.refuse(CARDS, message);
        }
        unhealthy.intersection(there)
    }

    /// Cards of which some are in MIG mode. They are all described here: MIG devices that the device
    /// plugin lists are the instances of these cards.
    fn add_declared_mig(
        &mut self,
        cards: &mut NodeCards,
        said: &Declared,
        offered: &Offered,
        physical: u32,
    ) {
        let label = self.number(label::COUNT);
        // A list of one is easily taken for a mode of all.
        let all = label.unwrap_or(0).max(physical);
        if said.listed == Some(1) && said.count.is_none() && all > 1 {
            self.refuse_list(1, all);
            return;
        }
        let count = said.count.or(said.listed).or(label).unwrap_or(physical);
        if let Some(listed) = said.listed.filter(|listed| *listed != count) {
            self.refuse_list(listed, count);
            return;
        }
        let (modes, broken) = self.possible(cards, said, count);
        let mut instances: BTreeMap<String, u32> = BTreeMap::new();
        // Cards that the device plugin lists as such: those that have no instances.
        let mut full = CardSet::EMPTY;
        let mut may_grow = CardSet::EMPTY;
        for card in 0..count.min(CardSet::CAPACITY) {
            let one = modes.first().filter(|_| modes.len() == 1);
            match one.or(modes.get(card as usize)) {
                _ if broken.contains(card) => may_grow = may_grow.union(CardSet(1 << card)),
                Some(CardMode::MigStatic(there)) => {
                    for instance in there {
                        *instances.entry(instance.profile.clone()).or_default() += 1;
                    }
                }
                Some(CardMode::MigDynamic) => may_grow = may_grow.union(CardSet(1 << card)),
                _ => full = full.union(CardSet(1 << card)),
            }
        }
        // As soon as instances are listed a card may have some, or be ready for some.
        let at_most = full.union(may_grow);
        if !offered.lists_slices {
            full = at_most;
        }
        if offered.lists_slices && may_grow.is_empty() && instances != offered.slices {
            let shown = |slices: &BTreeMap<String, u32>| {
                let slices = slices.iter();
                let shown: Vec<_> = slices
                    .map(|(name, count)| format!("{count} x {name}"))
                    .collect();
                if shown.is_empty() {
                    "none".into()
                } else {
                    shown.join(", ")
                }
            };
            let message = format_args!(
                "MIG instances: {}, but the device plugin lists {}; accepted: what it lists",
                shown(&instances),
                shown(&offered.slices)
            );
            self.refuse(CARDS, message);
            return;
        }
        let unhealthy = self.those_there(said.unhealthy.unwrap_or_default(), count);
        let before = cards.clone();
        let changed = attempt(
            cards,
            |cards| {
                (cards.count, cards.modes) = (count, modes);
                (cards.unhealthy, cards.closed) = (unhealthy, broken);
                // The instances that are counted are those of the described cards.
                cards.slices.clear();
            },
            &ANNOTATIONS.key(CARDS),
            self.problems,
        );
        // A node without a device plugin has the cards that are described.
        let product = Product::new(&before.model);
        let counts_cards = physical > 0 && !product.shared && product.mig.is_none();
        if changed && counts_cards {
            let usable = before.count;
            let there = if at_most.len() < usable {
                let message = format_args!(
                    "cards that are whole or may be: {}; accepted: {usable}, which the device plugin \
                     lists",
                    at_most.len()
                );
                self.refuse(CARDS, message);
                false
            } else {
                self.are_there(cards, full, usable, physical)
            };
            if !there {
                *cards = before;
                if !broken.is_empty() {
                    // Those that are counted may be on a card of which nobody knows what it is.
                    cards.slices.clear();
                }
            }
        }
    }

    /// The modes as far as these cards can have them, and the cards that are said to have instances
    /// which they cannot have: nobody knows what they are, so nothing of them is given out.
    fn possible(
        &mut self,
        cards: &NodeCards,
        said: &Declared,
        count: u32,
    ) -> (Vec<CardMode>, CardSet) {
        let there = CardSet::first(count).unwrap_or_default();
        let mut tried = NodeCards {
            count,
            modes: said.modes.clone(),
            links: None,
            ..cards.clone()
        };
        let mut broken = said.unreadable;
        let has_no_mig = model_of(&tried).is_some_and(|model| model.mig.is_none());
        // Without MIG they have no instances, whatever is written: they are what the device plugin lists.
        while !has_no_mig && let Err(error) = check_cards(&tried) {
            let all = tried.modes.len() == 1;
            let card = error.card().filter(|card| !all || *card == 0);
            let mode = card.and_then(|card| Some((card, tried.modes.get_mut(card as usize)?)));
            // What is wrong with all of them is said when they are taken.
            let Some((card, mode)) =
                mode.filter(|(_, mode)| matches!(mode, CardMode::MigStatic(_)))
            else {
                break;
            };
            *mode = CardMode::Whole;
            broken = broken.union(if all { there } else { CardSet(1 << card) });
            let what = if all {
                "these cards are"
            } else {
                "the card is"
            };
            self.refuse(CARDS, format_args!("{what} not used: {error}"));
        }
        (tried.modes, broken.intersection(there))
    }

    /// Whether the device plugin lists the cards of a description, `full` those of them that it lists
    /// as whole cards. Cards that are out of order are taken away where that can be done.
    fn are_there(
        &mut self,
        cards: &mut NodeCards,
        full: CardSet,
        usable: u32,
        physical: u32,
    ) -> bool {
        if full.len() > physical {
            let message = format_args!(
                "cards that are whole or may be: {}; accepted: {physical}, which the device plugin \
                 lists",
                full.len()
            );
            self.refuse(CARDS, message);
            return false;
        }
        let away = physical.saturating_sub(usable);
        let out = cards.unhealthy.union(cards.closed);
        let left_out = full.intersection(out).len();
        if away <= left_out {
            return true;
        }
        if cards.modes.len() == 1 && left_out == 0 {
            // All are alike, so it does not matter which.
            cards.count = cards.count.saturating_sub(away);
            return true;
        }
        let message = format_args!(
            "unhealthy: {left_out} of {physical} cards, but only {usable} can be used; accepted: the \
             numbers of all that cannot"
        );
        self.refuse(CARDS, message);
        false
    }

    /// Takes what is said of the memory of one card, unless no card of the product has so much.
    pub(super) fn set_memory(&mut self, cards: &mut NodeCards, memory_mib: u32, annotation: &str) {
        match most_memory_mib(&cards.model) {
            Some(most) if memory_mib > most => {
                let message = format_args!(
                    "memory: {memory_mib} MiB on a {}; accepted: at most {most}",
                    cards.model
                );
                self.refuse(annotation, message);
            }
            _ => cards.memory_mib = memory_mib,
        }
    }

    /// Notes that a list of modes is not one for each card.
    fn refuse_list(&mut self, listed: u32, cards: u32) {
        let entries = if listed == 1 { "entry" } else { "entries" };
        let message = format_args!(
            "modes: {listed} {entries} for {cards} cards; accepted: a mode without a list for \
             all, or {cards} entries"
        );
        self.refuse(CARDS, message);
    }
}
