//! Why an ask does not fit on a node's cards, and what is measured to say so in numbers.
//!
//! Reads inventories for explanations; never asked on the way to a decision.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::cmp::Reverse;

use super::{
    ask::{CardAsk, Part},
    hardware::{Counts, Hardware, Mode, Need},
    inventory::{Inventory, Pool},
    links::{LinkTable, Nearness},
    parts,
};
use crate::{
    bits::CardSet,
    explain::{CARD_COMPUTE, CARD_MEMORY, Cause, Shortfall, join_words},
    request::{Apart, CardRequest, CardWant, ShareMemory, SliceChoice},
};

impl Inventory {
    /// Why no member with this ask fits, with a word about it; asked only when none does.
    pub(crate) fn lack(&self, ask: &CardAsk) -> (Cause, String) {
        let Some(pool) = self.pool(ask.kind) else {
            let mut counted = self.counted().iter();
            let counted = counted.find(|counted| counted.kind == ask.kind);
            return match counted.map(|counted| &counted.hardware) {
                Some(hardware) if hardware.is_changing => (Cause::CardsChanging, String::new()),
                Some(hardware) if hardware.lacks_cards(ask) => {
                    (Cause::CardsNotShared, hardware.counts.word().to_string())
                }
                _ => (Cause::Cards, String::new()),
            };
        };
        if pool.hardware.is_changing {
            return (Cause::CardsChanging, String::new());
        }
        if !pool.in_doubt.is_empty() {
            let mut known = self.clone();
            known.set_in_doubt(&[]);
            return if known.capacity(ask) > 0 {
                (Cause::CardsInDoubt, String::new())
            } else {
                known.lack(ask)
            };
        }
        // What will not change when others end comes before what will.
        let mut empty = self.clone();
        empty.empty();
        if empty.capacity(ask) == 0 {
            empty.lack_now(ask)
        } else {
            self.lack_now(ask)
        }
    }

    /// The same, with what is in use now.
    fn lack_now(&self, ask: &CardAsk) -> (Cause, String) {
        let Some(pool) = self.pool(ask.kind) else {
            return (Cause::Cards, String::new());
        };
        let hardware = &pool.hardware;
        let fits = |source: CardRequest| {
            self.capacity(&CardAsk::new(ask.kind, source, ask.group, ask.exclusive)) > 0
        };
        let without = |change: &dyn Fn(&mut CardRequest)| {
            let mut source = ask.source.clone();
            change(&mut source);
            fits(source)
        };
        // Of several conditions that are not met, dropping one does not help: then the first is named.
        let alone = |keep: &dyn Fn(&mut CardRequest)| {
            let mut source = ask.source.clone();
            source.models.clear();
            source.min_card_memory_mib = 0;
            source.only = None;
            source.near = Nearness::Any;
            let bare = source.clone();
            keep(&mut source);
            source != bare && !fits(source) && fits(bare)
        };
        let matters = |drop: &dyn Fn(&mut CardRequest), keep: &dyn Fn(&mut CardRequest)| {
            without(drop) || alone(keep)
        };
        if pool.closed.contains_all(pool.all) && !pool.all.is_empty() {
            return hardware.closed_cause();
        }
        let first = ask.parts().next();
        // By name instances can be asked for without knowing more of them.
        let by_size = |(_, part)| matches!(part, Part::Slice(SliceChoice::AtLeast { .. }));
        let named = !hardware.loose.is_empty() && !ask.parts().any(by_size);
        let needs_slices = ask.asks_slices() && hardware.geometry().is_none() && !named;
        let needs_memory = ask.source.min_card_memory_mib > 0 || is_amount_of_memory(first);
        let needs_memory = needs_memory && hardware.memory_mib == 0;
        if hardware.model.is_none() && (needs_slices || needs_memory) {
            return (Cause::UnknownCardModel, hardware.product.clone());
        }
        let suits = |mode: &Mode| match first {
            None => matches!(mode, Mode::Whole | Mode::Shared | Mode::MigDynamic),
            Some((_, Part::Slice(_))) => matches!(mode, Mode::MigDynamic | Mode::MigStatic(_)),
            Some((_, Part::Share { .. })) => *mode == Mode::Shared,
            Some((_, Part::Replica)) => matches!(mode, Mode::Replicas(_)),
        };
        let loose = ask.asks_slices() && !hardware.loose.is_empty();
        if !loose && !pool.all.iter().any(|card| suits(hardware.mode(card))) {
            let word = match first {
                None => "as a whole",
                Some((_, Part::Slice(_))) if hardware.counts == Counts::Instances => {
                    hardware.counts.word()
                }
                Some((_, Part::Slice(_))) => "MIG instances",
                Some((_, Part::Share { .. })) => "shares",
                Some((_, Part::Replica)) => "replicas",
            };
            return (Cause::CardsNotShared, word.to_string());
        }
        if hardware.lacks_cards(ask) {
            return (Cause::CardsNotShared, hardware.counts.word().to_string());
        }
        if !pool.unhealthy.is_empty() {
            let mut healthy = self.clone();
            healthy.set_unhealthy(ask.kind, pool.closed);
            if healthy.capacity(ask) > 0 {
                return (Cause::UnhealthyCards, String::new());
            }
            healthy.set_unhealthy(ask.kind, CardSet::EMPTY);
            if healthy.capacity(ask) > 0 {
                return hardware.closed_cause();
            }
        }
        if loose && !parts::takes_loose(pool, ask) && self.fits_loose_only(pool, ask) {
            return (Cause::UnknownCard, String::new());
        }
        let models = &ask.source.models;
        if !models.is_empty()
            && matters(&|source| source.models.clear(), &|source| {
                source.models.clone_from(models);
            })
        {
            if hardware.product.is_empty() {
                return (Cause::UnknownCardModel, String::new());
            }
            return (Cause::CardModel, hardware.product.clone());
        }
        let mib = ask.source.min_card_memory_mib;
        if mib > 0
            && matters(&|source| source.min_card_memory_mib = 0, &|source| {
                source.min_card_memory_mib = mib;
            })
        {
            return (Cause::CardMemory, hardware.memory_word(""));
        }
        if hardware.refuses_several(ask) {
            return (Cause::MpsReplicas, String::new());
        }
        if let Some(only) = ask.source.only
            && matters(&|source| source.only = None, &|source| {
                source.only = Some(only);
            })
        {
            let there = pool.all.len();
            let word = if pool.all.contains_all(only) {
                String::new()
            } else {
                format!("there are 0 to {}", there.saturating_sub(1))
            };
            return (Cause::CardIds, word);
        }
        let near = ask.source.near;
        if near != Nearness::Any
            && matters(&|source| source.near = Nearness::Any, &|source| {
                source.near = near;
            })
        {
            let near = near.word();
            let links = hardware.links.as_ref().map(LinkTable::matrix);
            let unknown = match links {
                None => "; their links are not known",
                Some(links)
                    if ask.source.near == Nearness::NumaNode
                        && pool.all.iter().all(|card| links.numa_node(card).is_none()) =>
                {
                    "; their NUMA nodes are not known"
                }
                Some(_) => "",
            };
            return (Cause::CardLinks, format!("{near}{unknown}"));
        }
        // What no empty card of these has, whatever is on them.
        match first {
            Some((_, part @ Part::Slice(choice)))
                if !loose && hardware.need(ask, part).is_none() =>
            {
                return (Cause::SliceProfile, hardware.profile_word(choice));
            }
            Some((_, part @ Part::Share { .. })) => {
                let all = hardware.memory_for_shares(ask.source.overhead.processes > 0);
                if let Some(Need::Share(share)) = hardware.need(ask, part)
                    && u64::from(share.memory_mib) > all
                {
                    let purpose = if ask.source.overhead.processes > 0 {
                        " for shares"
                    } else {
                        ""
                    };
                    return (Cause::CardMemory, hardware.memory_word(purpose));
                }
            }
            _ => {}
        }
        if without(&anywhere) {
            let apart = match ask.apart() {
                Apart::Distinct => "distinct cards",
                Apart::Same => "one card",
                Apart::Any => "",
            };
            return (Cause::CardsApart, apart.to_string());
        }
        let alone = CardAsk {
            group: None,
            ..ask.clone()
        };
        if ask.group.is_some() && self.capacity(&alone) > 0 {
            return (Cause::ShareGroup, String::new());
        }
        if self.owned_by(ask.exclusive).capacity(ask) > 0 {
            return (Cause::CardExclusive, String::new());
        }
        match first {
            None => {
                let mut healthy = self.clone();
                healthy.set_unhealthy(ask.kind, pool.closed);
                let all = healthy.free(ask.kind).saturating_add(hardware.withheld);
                if hardware.withheld == 0 || all < ask.whole() {
                    return (Cause::Cards, String::new());
                }
                let broken = pool.unhealthy.difference(pool.closed).len();
                let offered = pool.all.difference(pool.closed).len();
                (
                    Cause::UnhealthyCards,
                    hardware.withheld_word(offered, broken),
                )
            }
            Some((_, Part::Slice(_))) => (Cause::Slices, slices_word(ask)),
            Some((_, Part::Share { .. })) => (Cause::Shares, String::new()),
            Some((_, Part::Replica)) => (Cause::Replicas, String::new()),
        }
    }

    /// Whether an ask would fit if it did not matter on which cards, and only on unknown ones.
    fn fits_loose_only(&self, pool: &Pool, ask: &CardAsk) -> bool {
        let mut source = ask.source.clone();
        anywhere(&mut source);
        source.only = None;
        let any = CardAsk::new(ask.kind, source, None, None);
        parts::placed_capacity(self, pool, &any) == 0 && self.capacity(&any) > 0
    }

    /// For an ask for parts: how much one member needs of what is measured, how much members that
    /// fit here would take, and how much is free here in all.
    pub(crate) fn measure(&self, ask: &CardAsk) -> Measure {
        let fits = u64::from(self.capacity(ask));
        let Some(pool) = self.pool(ask.kind) else {
            return Measure::default();
        };
        let hardware = &pool.hardware;
        let states = self.states(pool);
        let cards = self.of_its_group(pool, ask);
        let each = u64::from(ask.count());
        let first = ask.parts().next();
        let need = first.and_then(|(_, part)| hardware.need(ask, part));
        let left = |of: &dyn Fn(u32) -> u64| cards.iter().map(of).sum::<u64>();
        let state = |card: u32| states.get(card as usize).copied().unwrap_or_default();
        match (first, need) {
            (Some((_, Part::Share { .. })), Some(Need::Share(share))) => {
                let shared = |card: u32| *hardware.mode(card) == Mode::Shared;
                let memory = |card: u32| {
                    if shared(card) {
                        let state = state(card);
                        let reserving = share.reserving > 0 || state.reserving > 0;
                        let all = hardware.memory_for_shares(reserving);
                        all.saturating_sub(state.memory_mib)
                    } else {
                        0
                    }
                };
                let compute = |card: u32| {
                    if shared(card) {
                        1000_u64.saturating_sub(state(card).compute_milli.into())
                    } else {
                        0
                    }
                };
                // What runs out first.
                let pieces = |of: &dyn Fn(u32) -> u64, one: u32| match one {
                    0 => u64::MAX,
                    one => left(&|card| of(card) / u64::from(one)),
                };
                let by_memory = pieces(&memory, share.memory_mib);
                let more = |card: u32| {
                    let parts = state(card).parts;
                    let more = hardware.most_shares.saturating_sub(parts);
                    if shared(card) { more.into() } else { 0 }
                };
                let by_number = left(&more);
                if by_number < by_memory && by_number <= pieces(&compute, share.compute_milli) {
                    return Measure::new("shares", each, fits * each, by_number);
                }
                if pieces(&compute, share.compute_milli) < by_memory {
                    let one = each * u64::from(share.compute_milli);
                    return Measure::new(CARD_COMPUTE, one, fits * one, left(&compute));
                }
                let one = (each * u64::from(share.memory_mib)) << 20;
                Measure::new(CARD_MEMORY, one, fits * one, left(&memory) << 20)
            }
            (Some((_, Part::Slice(_))), _) => {
                let mut several = 0;
                for (count, part) in ask.parts() {
                    let Part::Slice(choice) = part else { continue };
                    let count = u64::from(count);
                    let free = self.free_slices(pool, ask, part);
                    if count == each || free < count {
                        // The only ones, or too few whatever the others take.
                        return Measure::new(&slice_word(choice), count, fits * count, free);
                    }
                    several += count;
                }
                // Enough of each by itself: of all together it depends on the choice.
                let free = if fits > 0 { fits * each } else { several };
                Measure::new(&slices_word(ask), each, fits * each, free)
            }
            (Some((_, Part::Replica)), _) => {
                let free = left(&|card| match hardware.mode(card) {
                    Mode::Replicas(_) => {
                        parts::times(hardware, card, &state(card), &Need::Replica).into()
                    }
                    _ => 0,
                });
                Measure::new("replicas", each, fits * each, free)
            }
            _ => Measure::default(),
        }
    }

    /// Cards of which parts can be taken for an ask. A share group stays on one card: the one that it is
    /// on, or else the one with the most left, the first among equals.
    fn of_its_group(&self, pool: &Pool, ask: &CardAsk) -> CardSet {
        let cards = pool.partable();
        let Some(group) = ask.group else {
            return cards;
        };
        let left = |card: u32| {
            let state = self.states(pool).get(card as usize);
            state.map_or(0, |state| parts::left_milli(&pool.hardware, card, state))
        };
        let most = || cards.iter().max_by_key(|&card| (left(card), Reverse(card)));
        let one = self.card_of_group(pool.kind, group).or_else(most);
        one.map_or(CardSet::EMPTY, |card| {
            cards.intersection(CardSet(1 << card))
        })
    }

    /// Instances that one part of an ask could have, if the others took none.
    fn free_slices(&self, pool: &Pool, ask: &CardAsk, part: Part<'_>) -> u64 {
        let hardware = &pool.hardware;
        let states = self.states(pool);
        let cards = self.of_its_group(pool, ask);
        let state = |card: u32| states.get(card as usize).copied().unwrap_or_default();
        let left = |of: &dyn Fn(u32) -> u64| cards.iter().map(of).sum::<u64>();
        let loose = self.loose(ask.kind).enumerate();
        let loose = loose.filter(|(at, _)| hardware.loose_suits(ask, part, *at));
        let loose = loose.map(|(_, loose)| u64::from(loose.all.saturating_sub(loose.used)));
        let loose: u64 = loose.sum();
        let Some(need) = hardware.need(ask, part) else {
            return loose;
        };
        let placed = left(&|card| parts::times(hardware, card, &state(card), &need).into());
        let free = placed + loose;
        let smallest = match (&need, hardware.geometry()) {
            (Need::Slice(profiles), Some(geometry)) => {
                let profiles = profiles.iter().filter_map(|&ix| geometry.get(ix));
                profiles.map(|profile| profile.units).min()
            }
            _ => None,
        };
        let Some(units) = smallest.filter(|_| free == 0) else {
            return free;
        };
        // Enough memory slices, but none together at a legal start. Instances that exist stay as
        // they are.
        let all = hardware.all_units();
        let open = |card: u32| match hardware.mode(card) {
            Mode::MigDynamic => (all & !state(card).mig.mask).count_ones().into(),
            _ => 0,
        };
        left(&open) / u64::from(units.max(1))
    }
}

impl Hardware {
    /// Why cards are closed.
    fn closed_cause(&self) -> (Cause, String) {
        match self.withheld {
            0 => (Cause::CardsClosed, String::new()),
            _ => (Cause::UnhealthyCards, self.withheld_word(0, 0)),
        }
    }

    /// How many cards the node does not offer, beside so many that it does, some of them broken.
    fn withheld_word(&self, offered: u32, broken: u32) -> String {
        let all = self.withheld.saturating_add(offered);
        if broken == 0 {
            return format!("{} of {all} are not allocatable", self.withheld);
        }
        let out = self.withheld.saturating_add(broken);
        format!("{out} of {all} are unhealthy or not allocatable")
    }

    /// The product and the memory of a card, all of it or what `purpose` says.
    fn memory_word(&self, purpose: &str) -> String {
        let mib = if purpose.is_empty() {
            self.memory_mib.into()
        } else {
            self.memory_for_shares(true)
        };
        match self.product.as_str() {
            "" => format!("{mib} MiB{purpose}"),
            product => format!("{product}, {mib} MiB{purpose}"),
        }
    }

    /// The model that lacks what is chosen, and the largest that it has instead.
    fn profile_word(&self, choice: &SliceChoice) -> String {
        let model = self.model.map_or(self.product.as_str(), |model| model.name);
        let profiles = self
            .geometry()
            .map_or(&[][..], |geometry| geometry.profiles);
        let largest = profiles.iter().max_by_key(|profile| profile.memory_mib);
        match (choice, largest) {
            (SliceChoice::AtLeast { .. }, Some(largest)) => {
                format!("{model}: at most {}", largest.name)
            }
            _ => model.to_string(),
        }
    }
}

/// Lets the parts of a member lie on any cards.
fn anywhere(source: &mut CardRequest) {
    match &mut source.want {
        CardWant::Whole(_) => {}
        CardWant::Slices { cards, .. }
        | CardWant::Shares { cards, .. }
        | CardWant::Replicas { cards, .. } => *cards = Apart::Any,
    }
}

/// Whether a part says how much memory it needs.
fn is_amount_of_memory(part: Option<(u32, Part<'_>)>) -> bool {
    let Some((_, Part::Share { memory, .. })) = part else {
        return false;
    };
    matches!(memory, ShareMemory::Mib(1..))
}

/// What people call the slices of a choice.
fn slice_word(choice: &SliceChoice) -> String {
    let (memory_mib, compute_slices) = match choice {
        SliceChoice::Profile(profile) => return format!("{profile} slices"),
        &SliceChoice::AtLeast {
            memory_mib,
            compute_slices,
        } => (memory_mib, compute_slices),
    };
    let memory = if memory_mib.is_multiple_of(1024) {
        format!("{} GiB", memory_mib / 1024)
    } else {
        format!("{memory_mib} MiB")
    };
    match compute_slices {
        0 => format!("MIG slices of {memory}"),
        1 => format!("MIG slices of {memory} and 1 compute slice"),
        many => format!("MIG slices of {memory} and {many} compute slices"),
    }
}

/// What people call all slices of an ask together.
fn slices_word(ask: &CardAsk) -> String {
    let choices: Vec<&SliceChoice> = ask
        .parts()
        .filter_map(|(_, part)| match part {
            Part::Slice(choice) => Some(choice),
            Part::Share { .. } | Part::Replica => None,
        })
        .collect();
    if let [choice] = choices.as_slice() {
        return slice_word(choice);
    }
    let names = choices.iter().map(|choice| match choice {
        SliceChoice::Profile(profile) => profile.clone(),
        SliceChoice::AtLeast { .. } => slice_word(choice),
    });
    let names: Vec<String> = names.collect();
    format!("MIG slices ({})", join_words(&names, "and"))
}

/// An amount of what an ask needs, on one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measure {
    pub(crate) resource: String,
    /// One member needs.
    pub(crate) one: u64,
    /// Members that fit would take.
    pub(crate) usable: u64,
    /// Free in all.
    pub(crate) free: u64,
}

impl Measure {
    /// What so many members are short of.
    pub(crate) fn shortfall(self, members: u32) -> Shortfall {
        let amount = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
        Shortfall {
            resource: self.resource,
            needed: amount(self.one).saturating_mul(members.into()),
            free: amount(self.usable),
            scattered: amount(self.free),
        }
    }

    fn new(resource: &str, one: u64, usable: u64, free: u64) -> Self {
        Self {
            resource: resource.to_string(),
            one,
            usable,
            free,
        }
    }
}
