//! Which devices pods hold that run already, and which cards nobody knows anything of for that reason.
//!
//! Pods that run are there whether they fit or not. What one told of its devices, or what was planned
//! for it, counts where that can be; the rest of what it asked for is dealt as if it had told nothing:
//! a number of cards that dropped does not say which one is gone, nor whether the others are still
//! called the same. What is dealt is an assumption: where it cannot be true, or where what was told
//! cannot be, the cards are in doubt, and nothing more is given of them. Nothing here knows pods, only
//! their requests in a fixed order.

use alloc::vec::Vec;
use core::ops::ControlFlow;

use smallvec::SmallVec;

use super::{Picker, choose, note, use_part};
use crate::{
    bits::CardSet,
    device::{
        Devices, Slice,
        ask::{CardAsk, Part},
        hardware::{Hardware, Mode, Need},
        inventory::{Inventory, KindIx, Pool},
        mig::ProfileIx,
        parts,
    },
    request::{Apart, CardWant},
};

/// A pod that runs on a node, or that was promised room there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Running<'a> {
    pub(crate) ask: &'a CardAsk,
    /// The devices that it says it has, or that were planned for it.
    pub(crate) told: Option<Devices>,
}

impl<'a> Running<'a> {
    /// What cannot be an answer to the request, because it is of another kind or more than it, counts
    /// as nothing told: a word on a pod must not block cards that the pod never asked for. `pool`: the
    /// cards that it is about. Costs a look at each part; the other passes over pods do not.
    pub(crate) fn new(ask: &'a CardAsk, told: Option<Devices>, pool: Option<&Pool>) -> Self {
        let told = told.filter(|told| is_answer(ask, told, pool));
        Self { ask, told }
    }

    /// Whether the devices that it holds are an assumption, at least some of them.
    fn is_assumed(&self, held: &Devices) -> bool {
        self.told.as_ref() != Some(held)
    }

    /// Whether it holds other devices than it told.
    fn is_contradicted(&self, held: &Devices) -> bool {
        self.told.is_some() && self.is_assumed(held)
    }

    /// The cards of what it holds without having told of it.
    fn assumed_on(&self, held: &Devices) -> CardSet {
        let Some(told) = &self.told else {
            return held.cards;
        };
        if self.ask.whole() > 0 {
            return held.cards.difference(told.cards);
        }
        without(held, told).cards
    }

    /// Whether it holds less than it needs. Shares that must lie apart are less on one card: where
    /// they really are, something else is not. Who tells where they are leaves no such question, and
    /// parts that a device plugin gives may lie anywhere.
    fn is_short(&self, held: &Devices) -> bool {
        let ask = self.ask;
        if ask.whole() > 0 {
            return held.cards.len() < ask.whole();
        }
        let is_apart = self.told.is_none() && ask.asks_shares() && ask.apart() == Apart::Distinct;
        (held.slices().count() as u32) < ask.count() || is_apart && held.cards.len() < ask.count()
    }

    /// Cards of which it told something that it does not hold.
    fn misplaced(&self, held: &Devices) -> CardSet {
        let Some(told) = &self.told else {
            return CardSet::EMPTY;
        };
        if self.ask.whole() > 0 {
            return told.cards.difference(held.cards);
        }
        without(told, held).cards
    }
}

/// The parts of some devices that are not among the others.
fn without(devices: &Devices, others: &Devices) -> Devices {
    let mut others: SmallVec<[Slice; 8]> = others.slices().collect();
    collected(devices.slices().filter(|slice| {
        let at = others.iter().position(|other| other == slice);
        at.map(|at| others.remove(at)).is_none()
    }))
}

fn is_answer(ask: &CardAsk, told: &Devices, pool: Option<&Pool>) -> bool {
    let mut slices = told.slices();
    if ask.whole() > 0 {
        return slices.next().is_none() && (1..=ask.whole()).contains(&told.cards.len());
    }
    let suits = |slice: Slice| match slice.profile {
        _ if slice.card == Slice::NO_CARD => ask.asks_slices(),
        Slice::SHARE => ask.asks_shares(),
        Slice::REPLICA => !ask.asks_shares() && !ask.asks_slices(),
        _ => ask.asks_slices(),
    };
    let count = slices.clone().count() as u32;
    // Either the node tells its cards apart or it does not.
    let without_card = slices.clone().filter(|slice| slice.card == Slice::NO_CARD);
    let without_card = without_card.count() as u32;
    (1..=ask.count()).contains(&count)
        && (without_card == 0 || without_card == count)
        && slices.clone().all(suits)
        && told.cards == cards_of(told)
        && pool.is_none_or(|pool| !ask.asks_slices() || are_needed(ask, slices, &pool.hardware))
}

/// Whether told instances are what is asked for, and can exist where they are said to be. Where the
/// model of the cards is not known, nothing speaks against it.
fn are_needed(ask: &CardAsk, told: impl Iterator<Item = Slice>, hardware: &Hardware) -> bool {
    let Some(geometry) = hardware.geometry() else {
        return true;
    };
    let needs = ask.parts().flat_map(|(count, part)| {
        let need = hardware.need(ask, part);
        (0..count).map(move |_| need.clone())
    });
    let mut needs: SmallVec<[Option<Need>; 8]> = needs.collect();
    told.filter(|slice| slice.card != Slice::NO_CARD)
        .all(|slice| {
            let (_, profile) = hardware.instance(slice.profile).unzip();
            let is_place = |ix| {
                let mut places = geometry.placements();
                places.any(|place| place == (ix, slice.start))
            };
            let at = needs.iter().position(|need| {
                let need = need.as_ref();
                need.is_some_and(|need| serves(need, profile))
            });
            profile.is_some_and(is_place) && at.map(|at| needs.remove(at)).is_some()
        })
}

/// The cards that parts are on.
fn cards_of(devices: &Devices) -> CardSet {
    collected(devices.slices()).cards
}

/// Decides what all pods of a node hold, in the order given: first what was told, then what those who
/// told nothing would have if they were alone, and where somebody has that, what is left. So it depends on
/// the set of pods alone, not on what came first. What is told later moves assumptions at most. `cards`
/// are empty, and taken afterwards; `held` is in the order of `running`: the largest first fit best.
pub(crate) fn settle<'a>(
    cards: &mut Inventory,
    running: impl Iterator<Item = Running<'a>> + Clone,
    held: &mut Vec<Devices>,
) {
    held.clear();
    held.extend(running.clone().map(|_| Devices::NONE));
    let mut is_told = false;
    for (pod, held) in running.clone().zip(&mut *held) {
        is_told |= pod.told.is_some();
        if pod.told.is_none() {
            complete(cards, pod.ask, held);
        }
    }
    if !is_told {
        return;
    }
    cards.empty();
    for (pod, held) in running.clone().zip(&mut *held) {
        if let Some(told) = &pod.told {
            *held = keep(cards, pod.ask, told);
        }
    }
    for (pod, held) in running.clone().zip(&mut *held) {
        if pod.told.is_none() && !deal_exactly(cards, pod.ask, held) {
            *held = Devices::NONE;
        }
    }
    for (pod, held) in running.zip(held) {
        let is_open = match pod.told {
            Some(_) => pod.is_short(held),
            None => held.is_empty(),
        };
        if is_open && cards.pool(pod.ask.kind).is_some() {
            complete(cards, pod.ask, held);
        }
    }
}

/// Looks at the cards as if just these of a kind were unhealthy.
fn with_unhealthy<T>(
    cards: &mut Inventory,
    kind: KindIx,
    unhealthy: CardSet,
    look: impl FnOnce(&Inventory) -> T,
) -> T {
    let before = cards.set_unhealthy(kind, unhealthy);
    let found = look(cards);
    cards.set_unhealthy(kind, before);
    found
}

/// Takes what a pod told as far as that can be: cards that are there and that nobody has, instances
/// where they can exist, and shares and replicas even where their card has too little left. Which of
/// the request's conditions they meet does not matter: they are there.
fn keep(cards: &mut Inventory, ask: &CardAsk, told: &Devices) -> Devices {
    if deal_exactly(cards, ask, told) {
        return *told;
    }
    let kept = with_unhealthy(cards, ask.kind, CardSet::EMPTY, |cards| {
        cards
            .pool(ask.kind)
            .map(|pool| possible(cards, pool, ask, told))
    });
    let kept = kept.unwrap_or_default();
    cards.take(ask, &kept);
    kept
}

/// What can be of what was told.
fn possible(cards: &Inventory, pool: &Pool, ask: &CardAsk, told: &Devices) -> Devices {
    if ask.whole() > 0 {
        return Devices::of_cards(told.cards.intersection(untouched(pool)));
    }
    if is_loose(told) {
        return loose_parts(pool, ask, told.slices());
    }
    if !ask.asks_slices() {
        let there = told.slices();
        return collected(there.filter(|slice| can_share(cards, pool, ask, *slice)));
    }
    let Some(mut matching) = Matching::new(cards, pool, ask) else {
        return Devices::NONE;
    };
    matching.picker.cards = open_cards(cards, pool, ask);
    collected(told.slices().filter(|slice| matching.place(*slice)))
}

/// Cards that nobody has anything of, healthy or not.
fn untouched(pool: &Pool) -> CardSet {
    pool.all.difference(pool.used).difference(pool.parted)
}

pub(super) fn collected(slices: impl Iterator<Item = Slice>) -> Devices {
    let mut devices = Devices::NONE;
    for slice in slices {
        devices.push(slice);
    }
    devices
}

/// Cards that nobody has as a whole or for himself, whatever else the request wants of them.
fn open_cards(cards: &Inventory, pool: &Pool, ask: &CardAsk) -> SmallVec<[u32; 16]> {
    let states = cards.states(pool);
    let free = pool.all.difference(pool.used).iter();
    let open = free.filter(|&card| {
        let state = states.get(card as usize);
        state.is_some_and(|state| parts::is_open(state, ask))
    });
    open.collect()
}

fn is_loose(devices: &Devices) -> bool {
    devices.slices().any(|slice| slice.card == Slice::NO_CARD)
}

/// Those of some slices without a card that are what a request asks for, however many there are: who
/// has them has them.
fn loose_parts(pool: &Pool, ask: &CardAsk, slices: impl Iterator<Item = Slice>) -> Devices {
    let parts = ask
        .parts()
        .flat_map(|(count, part)| (0..count).map(move |_| part));
    let mut parts: SmallVec<[Part<'_>; 8]> = parts.collect();
    let mut found = Devices::NONE;
    for slice in slices.filter(|slice| slice.card == Slice::NO_CARD) {
        let Some(entry) = pool.hardware.loose_at(slice.profile) else {
            continue;
        };
        let suits = |part: &Part<'_>| pool.hardware.loose_suits(ask, *part, entry);
        if let Some(at) = parts.iter().position(suits) {
            parts.remove(at);
            found.push(slice);
        }
    }
    found
}

/// Whether a share or replica can be on its card, however full that is.
fn can_share(cards: &Inventory, pool: &Pool, ask: &CardAsk, slice: Slice) -> bool {
    let card = u32::from(slice.card);
    let is_there = pool.all.difference(pool.used).contains(card);
    let state = cards.states(pool).get(card as usize);
    let is_open = state.is_some_and(|state| parts::is_open(state, ask));
    is_there
        && is_open
        && match pool.hardware.mode(card) {
            Mode::Shared => slice.profile == Slice::SHARE,
            Mode::Replicas(_) => slice.profile == Slice::REPLICA,
            _ => false,
        }
}

/// Takes exactly these devices, healthy or not, if they can be had.
fn deal_exactly(cards: &mut Inventory, ask: &CardAsk, devices: &Devices) -> bool {
    let accepts = |cards: &Inventory| accepts(cards, ask, devices);
    let is_had = with_unhealthy(cards, ask.kind, CardSet::EMPTY, accepts);
    if is_had {
        cards.take(ask, devices);
    }
    is_had
}

/// Takes what a pod still lacks beside what it has taken: the usual choice, healthy cards before others,
/// as the request wants it before any other way, and where there is not enough, as much as there is.
fn complete(cards: &mut Inventory, ask: &CardAsk, held: &mut Devices) {
    let mut found = card_of_its_own(cards, ask, held).or_else(|| more(cards, ask, held));
    if found.is_none() && ask.whole() == 0 {
        found = with_unhealthy(cards, ask.kind, CardSet::EMPTY, |cards| {
            more(cards, ask, held)
                .or_else(|| more(cards, &unconditional(ask), held))
                .or_else(|| Some(beyond(cards, ask, held)))
        });
    }
    let found = found.unwrap_or_else(|| some_cards(cards, ask, held));
    cards.take(ask, &found);
    held.cards = held.cards.union(found.cards);
    for slice in found.slices() {
        held.push(slice);
    }
}

/// For the first of a share group that runs, a card on which nobody else is, if there is one: who makes
/// groups means by them that each has another card.
fn card_of_its_own(cards: &mut Inventory, ask: &CardAsk, held: &Devices) -> Option<Devices> {
    let group = ask.group.filter(|_| held.is_empty())?;
    if cards.card_of_group(ask.kind, group).is_some() {
        return None;
    }
    let pool = cards.pool(ask.kind)?;
    let taken = pool.unhealthy.union(pool.parted);
    with_unhealthy(cards, ask.kind, taken, |cards| choose(cards, ask))
}

/// The request without what only new members can rely on: a device plugin may give a pod that runs any
/// cards, and instances and replicas also of one. Shares are given by those who heed their own words.
fn unconditional(ask: &CardAsk) -> CardAsk {
    let mut source = ask.source.clone();
    source.only = None;
    source.models.clear();
    source.min_card_memory_mib = 0;
    if let CardWant::Slices { cards, .. } | CardWant::Replicas { cards, .. } = &mut source.want {
        *cards = Apart::Any;
    }
    CardAsk {
        source,
        ..ask.clone()
    }
}

/// All that a pod lacks, by the usual choice; `None`: it is not to be had.
fn more(cards: &Inventory, ask: &CardAsk, held: &Devices) -> Option<Devices> {
    if held.is_empty() {
        return choose(cards, ask);
    }
    let pool = cards.pool(ask.kind).filter(|_| !is_loose(held))?;
    if ask.whole() > 0 {
        let missing = ask.whole().saturating_sub(held.cards.len());
        return pool.free().lowest(missing).map(Devices::of_cards);
    }
    let mut matching = Matching::new(cards, pool, ask)?;
    held.slices().for_each(|slice| matching.forget(slice));
    let mut picker = matching.picker;
    (picker.needs, picker.devices) = (matching.open, *held);
    let mut found = None;
    let _ = picker.walk(0, &mut |all| {
        found = Some(collected(all.slices().skip(held.slices().count())));
        ControlFlow::Break(())
    });
    found
}

/// Whole cards, as many as nobody has: those that the request names first, and of these healthy ones.
fn some_cards(cards: &Inventory, ask: &CardAsk, held: &Devices) -> Devices {
    let Some(pool) = cards.pool(ask.kind) else {
        return Devices::NONE;
    };
    let free = untouched(pool);
    let missing = ask.whole().saturating_sub(held.cards.len());
    let mut found = CardSet::EMPTY;
    let named = ask.source.only.map_or(free, |only| free.intersection(only));
    let well = |cards: CardSet| cards.difference(pool.unhealthy);
    for source in [well(named), named, well(free), free] {
        let source = source.difference(found);
        let more = source.lowest(missing.saturating_sub(found.len()).min(source.len()));
        found = found.union(more.unwrap_or_default());
    }
    Devices::of_cards(found)
}

/// Parts for a pod that runs although they do not fit, so that they are counted and nobody else gets the
/// room: shares and replicas on the card with the most left, instances of unknown cards beyond their
/// number. Instances of known cards that cannot exist are not counted.
fn beyond(cards: &Inventory, ask: &CardAsk, held: &Devices) -> Devices {
    let mut devices = Devices::NONE;
    let Some(pool) = cards.pool(ask.kind) else {
        return devices;
    };
    if ask.asks_slices() {
        if !held.cards.is_empty() {
            return devices;
        }
        let there = (0..pool.hardware.loose.len()).filter_map(|at| pool.hardware.loose_code(at));
        let as_many = there.flat_map(|profile| {
            let slice = Slice {
                card: Slice::NO_CARD,
                profile,
                start: 0,
            };
            core::iter::repeat_n(slice, Devices::MOST_SLICES)
        });
        let all = loose_parts(pool, ask, held.slices().chain(as_many));
        return without(&all, held);
    }
    let profile = if ask.asks_shares() {
        Slice::SHARE
    } else {
        Slice::REPLICA
    };
    let usable = parts::usable_cards(cards, pool, ask);
    let room = |card: u32| {
        let part = Slice {
            card: card as u8,
            profile,
            start: 0,
        };
        let state = cards.states(pool).get(card as usize)?;
        let left = parts::left_milli(&pool.hardware, card, state);
        let is_possible = can_share(cards, pool, ask, part);
        is_possible.then_some((left, core::cmp::Reverse(card), part))
    };
    let best = usable.iter().filter_map(|&card| room(card)).max();
    let missing = ask.count() as usize - held.slices().count().min(ask.count() as usize);
    for (_, _, part) in best.iter().cycle().take(missing) {
        devices.push(*part);
    }
    devices
}

/// Matches parts that somebody has with what a request needs.
struct Matching<'a> {
    picker: Picker<'a>,
    /// Needs that nothing was found for yet.
    open: SmallVec<[Need; 8]>,
}

impl<'a> Matching<'a> {
    fn new(cards: &Inventory, pool: &'a Pool, ask: &'a CardAsk) -> Option<Self> {
        let mut picker = Picker::new(cards, pool, ask)?;
        let open = core::mem::take(&mut picker.needs);
        Some(Self { picker, open })
    }

    /// Puts a part where it says it is, if something needs it and it fits there.
    fn place(&mut self, slice: Slice) -> bool {
        let picker = &mut self.picker;
        let mut found = None;
        for (at, need) in self.open.iter().enumerate() {
            picker.places_on(slice.card.into(), need, &mut |place| {
                let mut written = Devices::NONE;
                note(&mut written, picker.hardware, need, place);
                if found.is_none() && written.slices().next() == Some(slice) {
                    found = Some((at, place));
                }
            });
        }
        let usable = picker.cards.contains(&slice.card.into());
        let Some((at, place)) = found.filter(|_| usable) else {
            return false;
        };
        let need = self.open.remove(at);
        let state = &mut picker.states[place.card as usize];
        use_part(picker.hardware, state, &need, Some(place));
        true
    }

    /// Forgets the need that a part serves which is counted already.
    fn forget(&mut self, slice: Slice) {
        let (_, profile) = self.picker.hardware.instance(slice.profile).unzip();
        let at = self.open.iter().position(|need| serves(need, profile));
        if let Some(at) = at {
            self.open.remove(at);
        }
    }
}

/// Whether a part is of the kind that is needed; `profile` is that of an instance.
fn serves(need: &Need, profile: Option<ProfileIx>) -> bool {
    match need {
        Need::Slice(profiles) => profile.is_some_and(|profile| profiles.contains(&profile)),
        Need::Share(_) | Need::Replica => true,
    }
}

/// Whether exactly these devices can be had for an ask now.
fn accepts(cards: &Inventory, ask: &CardAsk, devices: &Devices) -> bool {
    let Some(pool) = cards.pool(ask.kind) else {
        return devices.is_empty();
    };
    if ask.whole() > 0 {
        return untouched(pool).contains_all(devices.cards)
            && devices.slices().next().is_none()
            && devices.cards.len() == ask.whole();
    }
    let slices = devices.slices();
    if slices.clone().any(|slice| slice.card == Slice::NO_CARD) {
        let mut free: SmallVec<[u32; 8]> = cards
            .loose(pool.kind)
            .map(|loose| loose.all.saturating_sub(loose.used))
            .collect();
        return slices.clone().count() as u32 == ask.count()
            && devices.cards.is_empty()
            && slices.clone().all(|slice| {
                let entry = pool.hardware.loose_at(slice.profile);
                let left = entry.and_then(|at| free.get_mut(at));
                slice.card == Slice::NO_CARD
                    && left.is_some_and(|left| core::mem::replace(left, left.saturating_sub(1)) > 0)
            })
            && loose_parts(pool, ask, slices) == *devices;
    }
    devices.cards == cards_of(devices)
        && Matching::new(cards, pool, ask).is_some_and(|mut matching| {
            slices.clone().all(|slice| matching.place(slice)) && matching.open.is_empty()
        })
}

/// Cards that nobody knows anything of, by kind: `cards` as they are with what all pods hold.
///
/// Where a pod told of cards that the node cannot give it as told, those: somebody else has them, or
/// they are used in another way, and it is there all the same. Where the pods need more than there is,
/// also those on which one can be whose devices are assumed, and that has fewer than it needs or
/// others' with them. A pod whose request no such card could serve is on one of them all the same, so it
/// can be any; only instances are on no card that cannot have some.
pub(crate) fn in_doubt<'a>(
    cards: &Inventory,
    running: impl Iterator<Item = Running<'a>> + Clone,
    held: &[Devices],
) -> SmallVec<[(KindIx, CardSet); 1]> {
    let mut found: SmallVec<[(KindIx, CardSet); 1]> = SmallVec::new();
    // Nearly always nothing is wrong, and this is on the way of each pod.
    let is_wrong = |(pod, held): (Running<'_>, &Devices)| {
        cards.pool(pod.ask.kind).is_some() && (pod.is_short(held) || pod.is_contradicted(held))
    };
    if !cards.is_overfull() && !running.clone().zip(held).any(is_wrong) {
        return found;
    }
    let mut empty = cards.clone();
    empty.empty();
    for (kind, _) in cards.overfull() {
        empty.set_unhealthy(kind, CardSet::EMPTY);
    }
    let mut possible = empty.clone();
    let mut assumed: SmallVec<[(Running<'_>, &Devices); 8]> = SmallVec::new();
    for (pod, held) in running.zip(held) {
        let is_possible = pod.told.is_some() || could_hold(&empty, pod.ask);
        if is_possible {
            possible.take(pod.ask, held);
        }
        assumed.extend(pod.is_assumed(held).then_some((pod, held)));
    }
    for (kind, overfull) in possible.overfull() {
        let all = empty.pool(kind).map_or(CardSet::EMPTY, |pool| pool.all);
        let mut cards = CardSet::EMPTY;
        for (pod, held) in assumed.iter().filter(|(pod, _)| pod.ask.kind == kind) {
            let told = pod.misplaced(held).intersection(all);
            cards = cards.union(told);
            let is_crowded = !pod.assumed_on(held).intersection(overfull).is_empty();
            if is_crowded || pod.is_short(held) {
                cards = cards.union(if could_hold(&empty, pod.ask) {
                    cards_for(&empty, pod.ask)
                } else if told.is_empty() {
                    cards_at_all(&empty, pod.ask)
                } else {
                    CardSet::EMPTY
                });
            }
        }
        found.extend((!cards.is_empty()).then_some((kind, cards)));
    }
    found
}

/// Whether each part of an ask has a place on some card when nobody is there, all of them together
/// where they must be on one.
fn could_hold(empty: &Inventory, ask: &CardAsk) -> bool {
    let Some(pool) = empty.pool(ask.kind) else {
        return false;
    };
    if ask.whole() > 0 {
        return !pool.hardware.whole.is_empty();
    }
    let Some(mut picker) = Picker::new(empty, pool, ask) else {
        return false;
    };
    if ask.apart() == Apart::Same {
        return picker.walk(0, &mut |_| ControlFlow::Break(())).is_break();
    }
    let has_place = |need| {
        let mut cards = picker.cards.iter();
        cards.any(|&card| picker.has_place(card, need))
    };
    picker.needs.iter().all(has_place)
}

/// Cards on which a pod is that runs there although none of them could serve its request.
fn cards_at_all(empty: &Inventory, ask: &CardAsk) -> CardSet {
    let Some(pool) = empty.pool(ask.kind) else {
        return CardSet::EMPTY;
    };
    let may_be = |card: &u32| {
        let mode = pool.hardware.mode(*card);
        !ask.asks_slices() || matches!(mode, Mode::MigDynamic | Mode::MigStatic(_))
    };
    let cards = pool.all.iter().filter(may_be);
    cards.fold(CardSet::EMPTY, |set, card| set.union(CardSet(1 << card)))
}

/// Cards on which some part of an ask can be when nobody else is there.
fn cards_for(empty: &Inventory, ask: &CardAsk) -> CardSet {
    let Some(pool) = empty.pool(ask.kind) else {
        return CardSet::EMPTY;
    };
    if ask.whole() > 0 {
        return pool.hardware.whole;
    }
    let Some(picker) = Picker::new(empty, pool, ask) else {
        return CardSet::EMPTY;
    };
    let cards = picker.cards.iter().copied();
    let cards = cards.filter(|&card| {
        let mut needs = picker.needs.iter();
        needs.any(|need| picker.has_place(card, need))
    });
    cards.fold(CardSet::EMPTY, |set, card| set.union(CardSet(1 << card)))
}
