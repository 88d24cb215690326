//! Which devices a member gets: the usual choice, and all choices for the exhaustive search.
//!
//! The usual choice destroys as little as is known without a mix of work: whole cards come from those
//! that cannot be parted first and best joined, parts go to cards that are already in parts, and
//! there to the tightest fit; a MIG instance starts where most combinations of profiles remain
//! possible. Ties go to the lowest card. Nothing here changes an inventory.

use alloc::vec::Vec;
use core::{cmp::Reverse, ops::ControlFlow};

use smallvec::SmallVec;

use super::{
    Devices, Slice,
    ask::{CardAsk, MOST_PROFILES, Part},
    hardware::{Hardware, Mode, Need},
    inventory::{CardState, Inventory, Pool},
    mig::{Geometry, MigState, ProfileIx},
    parts,
};
use crate::{bits::CardSet, request::Apart};

mod running;

pub(crate) use running::{Running, in_doubt, settle};

/// The devices that the next member with this ask gets; `None`: it does not fit. Cards without
/// identity are given without saying which.
pub(crate) fn choose(inventory: &Inventory, ask: &CardAsk) -> Option<Devices> {
    let Some(pool) = inventory.pool(ask.kind) else {
        return (inventory.capacity(ask) > 0).then_some(Devices::NONE);
    };
    if ask.plain && pool.hardware.links.is_none() && pool.hardware.modes.is_empty() {
        // The lowest ones: the order in which a device plugin's kubelet tends to hand them out.
        return pool.free().lowest(ask.whole()).map(Devices::of_cards);
    }
    if inventory.capacity(ask) == 0 {
        return None;
    }
    if ask.whole() > 0 {
        return choose_whole(pool, ask).map(Devices::of_cards);
    }
    let mut found = None;
    let mut first = |devices: &Devices| {
        found = Some(*devices);
        ControlFlow::Break(())
    };
    if loose_choices(inventory, pool, ask, &mut first).is_break() {
        return found;
    }
    let mut picker = Picker::new(inventory, pool, ask)?;
    if let Some(devices) = picker.single() {
        return Some(devices);
    }
    picker.take_largest_first();
    if picker.walk(0, &mut first).is_break() && picker.steps == 0 {
        // Many ways, and the first ones leave no room for the last part: now no part goes where the
        // others would not fit any more.
        picker.looks_ahead = true;
        picker.steps = MOST_STEPS;
        let _ = picker.walk(0, &mut first);
    }
    found
}

/// Takes the devices that are kept for a member for which another scheduler makes room: what it would get
/// now. While there is too little, which is what room is made for, the whole cards that are free, up to
/// those that it needs; of parts nothing, since where its part will be is not known.
pub(crate) fn keep_room(inventory: &mut Inventory, ask: &CardAsk) -> Devices {
    let some = |inventory: &Inventory| {
        let pool = inventory.pool(ask.kind)?;
        let free = whole_cards(pool, ask);
        let cards = free.lowest(ask.whole().min(free.len()))?;
        Some(Devices::of_cards(cards))
    };
    let devices = choose(inventory, ask)
        .or_else(|| some(inventory))
        .unwrap_or_default();
    inventory.take(ask, &devices);
    devices
}

/// Which choices of devices are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Cards that look alike are different all the same, since somebody names cards.
    pub(crate) by_name: bool,
    /// Also starts of MIG instances after which nothing fits that would not fit after another one.
    pub(crate) all_starts: bool,
    /// At most so many.
    pub(crate) most: usize,
}

/// How a listing of choices went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    /// There are no others.
    pub(crate) is_complete: bool,
    /// Places that were looked at.
    pub(crate) looks: u64,
}

/// Every choice of devices for the next member with this ask that could matter for others, the usual
/// one first.
pub(crate) fn choices(
    inventory: &Inventory,
    ask: &CardAsk,
    wanted: Wanted,
    found: &mut Vec<Devices>,
) -> Listed {
    let all = |is_complete| Listed {
        is_complete,
        looks: 0,
    };
    let Some(usual) = choose(inventory, ask) else {
        // Room for a member, but no way found in the steps that a choice may take.
        return all(inventory.capacity(ask) == 0);
    };
    found.push(usual);
    let Some(pool) = inventory.pool(ask.kind) else {
        return all(true);
    };
    let mut looks = 0;
    let mut room = wanted.most.saturating_sub(1);
    let mut add = |devices: &Devices| {
        if *devices == usual {
            return ControlFlow::Continue(());
        }
        if room == 0 {
            return ControlFlow::Break(());
        }
        room -= 1;
        found.push(*devices);
        ControlFlow::Continue(())
    };
    let flow = if ask.whole() > 0 {
        whole_choices(pool, ask, wanted.by_name, &mut |cards| {
            add(&Devices::of_cards(cards))
        })
    } else {
        let mut flow = loose_choices(inventory, pool, ask, &mut add);
        if let Some(mut picker) = Picker::new(inventory, pool, ask)
            && flow.is_continue()
        {
            picker.take_largest_first();
            picker.all = true;
            picker.by_name = wanted.by_name;
            picker.all_starts = wanted.all_starts;
            picker.steps = wanted.most.saturating_mul(8);
            flow = picker.walk(0, &mut add);
            looks = picker.looks;
        }
        flow
    };
    Listed {
        is_complete: flow.is_continue(),
        looks: looks + found.len() as u64,
    }
}

/// Free cards that an ask may have as a whole.
fn whole_cards(pool: &Pool, ask: &CardAsk) -> CardSet {
    let free = pool.free();
    ask.source.only.map_or(free, |only| free.intersection(only))
}

/// Whole cards: those that can be nothing else first, dynamic MIG last. Where links tell the cards
/// apart, the best joined of the first cards that are enough.
fn choose_whole(pool: &Pool, ask: &CardAsk) -> Option<CardSet> {
    let (free, count) = (whole_cards(pool, ask), ask.whole());
    let of_rank = |wanted: u32| -> CardSet {
        let fits = free
            .iter()
            .filter(|&card| rank(pool.hardware.mode(card)) == wanted);
        fits.fold(CardSet::EMPTY, |set, card| set.union(CardSet(1 << card)))
    };
    let mut cards = CardSet::EMPTY;
    if pool.hardware.modes.is_empty() {
        return match &pool.hardware.links {
            Some(links) => links
                .best(free, count, ask.source.near)
                .map(|best| best.cards),
            None => free.lowest(count),
        };
    }
    (0..=MOST_RANK).find_map(|rank| {
        let more = of_rank(rank);
        let before = cards;
        cards = cards.union(more);
        if let Some(links) = &pool.hardware.links {
            let best = links.best(cards, count, ask.source.near);
            return best.map(|best| best.cards);
        }
        let missing = count.saturating_sub(before.len());
        more.lowest(missing).map(|more| before.union(more))
    })
}

const MOST_RANK: u32 = 2;

/// What else a free card could be used for.
fn rank(mode: &Mode) -> u32 {
    match mode {
        Mode::Whole => 0,
        Mode::Shared => 1,
        Mode::MigDynamic | Mode::MigStatic(_) | Mode::Replicas(_) => MOST_RANK,
    }
}

fn whole_choices(
    pool: &Pool,
    ask: &CardAsk,
    by_name: bool,
    add: &mut dyn FnMut(CardSet) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let (free, count) = (whole_cards(pool, ask), ask.whole());
    let modes = &pool.hardware.modes;
    let alike = !by_name && modes.windows(2).all(|pair| pair[0] == pair[1]);
    match &pool.hardware.links {
        // Only which cards are joined tells them apart.
        Some(links) if alike => {
            let mut flow = ControlFlow::Continue(());
            links.choices(free, count, ask.source.near, &mut |cards| {
                if flow.is_continue() {
                    flow = add(cards);
                }
            });
            flow
        }
        None if alike => ControlFlow::Continue(()),
        links => subsets(free, count, CardSet::EMPTY, &mut |cards| {
            let near = ask.source.near;
            let is_near = |links: &super::links::LinkTable| links.capacity(cards, count, near) > 0;
            if links.as_ref().is_none_or(is_near) {
                add(cards)
            } else {
                ControlFlow::Continue(())
            }
        }),
    }
}

/// All subsets with `count` members of `free`, on top of `taken`.
fn subsets(
    free: CardSet,
    count: u32,
    taken: CardSet,
    add: &mut dyn FnMut(CardSet) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if count == 0 {
        return add(taken);
    }
    let mut rest = free;
    while let Some(lowest) = rest.lowest(1).filter(|_| rest.len() >= count) {
        rest = rest.difference(lowest);
        subsets(rest, count - 1, taken.union(lowest), add)?;
    }
    ControlFlow::Continue(())
}

/// Visits ways to give a member slices of unknown cards, those listed first before others.
fn loose_choices(
    inventory: &Inventory,
    pool: &Pool,
    ask: &CardAsk,
    visit: &mut dyn FnMut(&Devices) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if !parts::takes_loose(pool, ask) {
        return ControlFlow::Continue(());
    }
    let mut free: SmallVec<[u32; 16]> = inventory
        .loose(pool.kind)
        .map(|loose| loose.all.saturating_sub(loose.used))
        .collect();
    let wanted = ask.parts().enumerate();
    let wanted: SmallVec<[(usize, Part<'_>); 8]> = wanted
        .flat_map(|(entry, (count, part))| (0..count).map(move |_| (entry, part)))
        .collect();
    pick_loose(pool, ask, &wanted, &mut free, (0, Devices::NONE), visit)
}

fn pick_loose(
    pool: &Pool,
    ask: &CardAsk,
    wanted: &[(usize, Part<'_>)],
    free: &mut [u32],
    (least, chosen): (usize, Devices),
    visit: &mut dyn FnMut(&Devices) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let Some((&(entry, part), rest)) = wanted.split_first() else {
        return visit(&chosen);
    };
    for at in least..free.len() {
        if free[at] == 0 || !pool.hardware.loose_suits(ask, part, at) {
            continue;
        }
        let Some(profile) = pool.hardware.loose_code(at) else {
            continue;
        };
        let mut more = chosen;
        more.push(Slice {
            card: Slice::NO_CARD,
            profile,
            start: 0,
        });
        free[at] -= 1;
        // Slices of one entry are alike: one order will do.
        let alike = rest.first().is_some_and(|(next, _)| *next == entry);
        let least = if alike { at } else { 0 };
        let flow = pick_loose(pool, ask, rest, free, (least, more), visit);
        free[at] += 1;
        flow?;
    }
    ControlFlow::Continue(())
}

/// One place for one part. Ordered as the usual choice prefers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// Position among the profiles that would do.
    profile_rank: u16,
    /// Breaks into a card that nobody has anything of.
    opens: bool,
    /// What the card loses, or what is left of it.
    loss: u32,
    card: u32,
    start: u8,
    profile: Option<ProfileIx>,
}

/// Places a member's parts one after the other.
struct Picker<'a> {
    hardware: &'a Hardware,
    ask: &'a CardAsk,
    /// What each part takes; alike parts next to each other.
    needs: SmallVec<[Need; 8]>,
    /// Where the request has each part, if not in this order.
    asked: SmallVec<[usize; 8]>,
    cards: SmallVec<[u32; 16]>,
    states: SmallVec<[CardState; 16]>,
    devices: Devices,
    last: SmallVec<[Place; 8]>,
    /// Every choice is wanted, alike ones once.
    all: bool,
    /// No cards are alike.
    by_name: bool,
    /// Starts that are no better than others count as well.
    all_starts: bool,
    /// A part goes only where all that are still to come fit too.
    looks_ahead: bool,
    /// Cards that have members of a share group, and so are like no other.
    grouped: CardSet,
    /// Places that may still be tried.
    steps: usize,
    /// Places that were listed.
    looks: u64,
}

/// The usual choice tries at most so many places; it rarely tries more than one a part.
const MOST_STEPS: usize = 1 << 14;

impl<'a> Picker<'a> {
    fn new(inventory: &Inventory, pool: &'a Pool, ask: &'a CardAsk) -> Option<Self> {
        let hardware = &*pool.hardware;
        let mut needs: SmallVec<[Need; 8]> = SmallVec::new();
        for (count, part) in ask.parts() {
            let need = hardware.need(ask, part)?;
            for _ in 0..count {
                needs.push(need.clone());
            }
        }
        Some(Self {
            hardware,
            ask,
            needs,
            asked: SmallVec::new(),
            cards: parts::usable_cards(inventory, pool, ask),
            states: inventory.states(pool).into(),
            devices: Devices::NONE,
            last: SmallVec::new(),
            all: false,
            by_name: false,
            all_starts: true,
            looks_ahead: false,
            grouped: inventory.grouped(pool.kind),
            steps: MOST_STEPS,
            looks: 0,
        })
    }

    /// Places large instances before small ones, which would take the places of the large ones.
    fn take_largest_first(&mut self) {
        let mut asked: SmallVec<[usize; 8]> = (0..self.needs.len()).collect();
        asked.sort_by_key(|&at| Reverse(self.hardware.units_of(&self.needs[at])));
        if !asked.is_sorted() {
            self.needs = asked.iter().map(|&at| self.needs[at].clone()).collect();
            self.asked = asked;
        }
    }

    /// All parts that were placed, in the order of the request.
    fn as_asked(&self) -> Devices {
        if self.asked.is_empty() {
            return self.devices;
        }
        let mut parts: SmallVec<[(usize, Slice); 8]> = self
            .asked
            .iter()
            .copied()
            .zip(self.devices.slices())
            .collect();
        parts.sort_unstable();
        running::collected(parts.into_iter().map(|(_, slice)| slice))
    }

    /// The usual choice for a member with one part, without a list of places.
    fn single(&self) -> Option<Devices> {
        let [need] = self.needs.as_slice() else {
            return None;
        };
        let mut best: Option<Place> = None;
        for &card in &self.cards {
            self.places_on(card, need, &mut |place| {
                best = Some(best.map_or(place, |best| best.min(place)));
            });
        }
        let mut devices = Devices::NONE;
        note(&mut devices, self.hardware, need, best?);
        Some(devices)
    }

    fn has_place(&self, card: u32, need: &Need) -> bool {
        let mut has_place = false;
        self.places_on(card, need, &mut |_| has_place = true);
        has_place
    }

    fn places_on(&self, card: u32, need: &Need, add: &mut dyn FnMut(Place)) {
        let Some(state) = self.states.get(card as usize) else {
            return;
        };
        let place = |loss| Place {
            profile_rank: 0,
            opens: state.parts == 0,
            loss,
            card,
            start: 0,
            profile: None,
        };
        match (self.hardware.mode(card), need) {
            (mode @ (Mode::MigDynamic | Mode::MigStatic(_)), Need::Slice(profiles)) => {
                let Some(geometry) = self.hardware.geometry() else {
                    return;
                };
                for (rank, &profile) in (0_u16..).zip(profiles) {
                    let mut starts = parts::starts(geometry, mode, state.mig, profile);
                    while starts != 0 {
                        let start = starts.trailing_zeros() as u8;
                        starts &= starts - 1;
                        if let Some(after) = geometry.put(state.mig, profile, start) {
                            add(Place {
                                profile_rank: rank,
                                loss: loss(geometry, mode, state.mig, after),
                                start,
                                profile: Some(profile),
                                ..place(0)
                            });
                        }
                    }
                }
            }
            (_, need) if parts::times(self.hardware, card, state, need) > 0 => {
                let mut after = *state;
                use_part(self.hardware, &mut after, need, None);
                add(place(parts::left_milli(self.hardware, card, &after)));
            }
            _ => {}
        }
    }

    /// Visits complete choices, the usual one first.
    fn walk(
        &mut self,
        index: usize,
        visit: &mut dyn FnMut(&Devices) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(need) = self.needs.get(index).cloned() else {
            return visit(&self.as_asked());
        };
        let mut places: SmallVec<[Place; 128]> = SmallVec::new();
        let mut tried: SmallVec<[u32; 16]> = SmallVec::new();
        let alike = index > 0 && self.needs[index - 1] == need;
        for &card in &self.cards {
            let set = CardSet(1 << card);
            let touched = self.devices.cards.contains_all(set);
            let after_last = !alike || self.last.last().is_none_or(|last| last.card <= card);
            if !self.may_take(card) || (self.all && !after_last) {
                continue;
            }
            if !touched && self.is_twin_of_any(card, &tried) {
                continue;
            }
            tried.push(card);
            let first = places.len();
            self.places_on(card, &need, &mut |place| places.push(place));
            if !self.all_starts {
                self.drop_worse(&mut places, first);
            }
        }
        // Alike parts in one order only, if every start is listed: where some were left out, the first
        // part may have one behind that of the second.
        if let Some(last) = self
            .last
            .last()
            .filter(|_| self.all && self.all_starts && alike)
        {
            places.retain(|place| (place.card, place.start) >= (last.card, last.start));
        }
        places.sort_unstable();
        if !self.all && self.ask.apart() == Apart::Distinct {
            // Nothing else of the member goes to the card, so one place on it is enough, and of alike
            // parts one order.
            let mut cards = CardSet::EMPTY;
            let last = self.last.last().copied().filter(|_| alike);
            places.retain(|place| {
                let card = CardSet(1 << place.card);
                let is_first = !cards.contains_all(card);
                cards = cards.union(card);
                is_first && last.is_none_or(|last| last < *place)
            });
        }
        self.looks += self.cards.len() as u64 + places.len() as u64;
        for place in places {
            if self.steps == 0 {
                return ControlFlow::Break(());
            }
            self.steps -= 1;
            let at = place.card as usize;
            let (state, devices) = (self.states[at], self.devices);
            use_part(self.hardware, &mut self.states[at], &need, Some(place));
            note(&mut self.devices, self.hardware, &need, place);
            self.last.push(place);
            let flow = if self.looks_ahead && !self.others_fit(index + 1) {
                ControlFlow::Continue(())
            } else {
                self.walk(index + 1, visit)
            };
            self.last.pop();
            self.states[at] = state;
            self.devices = devices;
            flow?;
        }
        ControlFlow::Continue(())
    }

    /// Whether the parts from this one on fit beside those that have their places.
    fn others_fit(&self, index: usize) -> bool {
        let mut entries: SmallVec<[(u32, Need); MOST_PROFILES]> = SmallVec::new();
        for need in self.needs.get(index..).unwrap_or_default() {
            match entries.last_mut() {
                Some((count, last)) if last == need => *count += 1,
                _ => entries.push((1, need.clone())),
            }
        }
        let cards = self.cards.iter().copied();
        let cards: SmallVec<[u32; 16]> = cards.filter(|&card| self.may_take(card)).collect();
        let apart = self.ask.apart();
        entries.is_empty()
            || parts::members_on(self.hardware, &self.states, &cards, &entries, apart) > 0
    }

    /// Whether a card may have one more part of the member, if there is room.
    fn may_take(&self, card: u32) -> bool {
        let touched = self.devices.cards.contains(card);
        match self.ask.apart() {
            Apart::Distinct => !touched,
            Apart::Same => touched || self.devices.cards.is_empty(),
            Apart::Any => true,
        }
    }

    /// Of the places on one card, listed from `first` on, leaves those that no other covers: where an
    /// instance starts matters only for what still fits beside it.
    fn drop_worse(&self, places: &mut SmallVec<[Place; 128]>, first: usize) {
        let Some(geometry) = self.hardware.geometry() else {
            return;
        };
        places[first..].sort_unstable();
        let mut kept: SmallVec<[(Place, MigState); 16]> = SmallVec::new();
        for place in places.drain(first..) {
            let Some(profile) = place.profile else {
                kept.push((place, MigState::EMPTY));
                continue;
            };
            let (card, state) = (place.card, self.states[place.card as usize].mig);
            let after = geometry.put(state, profile, place.start).unwrap_or(state);
            let covers = |(other, others): &(Place, MigState)| match self.hardware.mode(card) {
                // Which instances exist is no matter of what would fit.
                Mode::MigStatic(_) => other.profile == place.profile,
                _ => geometry.covers(*others, after),
            };
            if !kept.iter().any(covers) {
                kept.retain(|(_, others)| {
                    matches!(self.hardware.mode(card), Mode::MigStatic(_))
                        || !geometry.covers(after, *others)
                });
                kept.push((place, after));
            }
        }
        places.extend(kept.into_iter().map(|(place, _)| place));
    }

    /// Whether a card is like one that was tried at this step and is as untouched as that.
    fn is_twin_of_any(&self, card: u32, tried: &[u32]) -> bool {
        let links = self.hardware.links.as_ref();
        let linked = links.is_some_and(|links| !links.is_uniform());
        !linked
            && !self.by_name
            && !self.grouped.contains(card)
            && tried.iter().any(|&other| {
                let untouched = !self.devices.cards.contains(other);
                untouched
                    && !self.grouped.contains(other)
                    && self.states[other as usize] == self.states[card as usize]
                    && self.hardware.mode(other) == self.hardware.mode(card)
            })
    }
}

/// What an instance costs a card beyond its own room: where instances exist, what is left of the card,
/// so that the fullest goes first; always less than where one must be made, which costs ways to cut
/// the rest.
fn loss(geometry: &Geometry, mode: &Mode, before: MigState, after: MigState) -> u32 {
    if let Mode::MigStatic(_) = mode {
        return u32::from(geometry.units).saturating_sub(after.mask.count_ones());
    }
    let flexibility = |state| {
        let base = u32::from(geometry.flexibility(state));
        base << 16 | u32::from(geometry.flexibility_of_all(state))
    };
    flexibility(before).saturating_sub(flexibility(after)) | 1 << 31
}

/// Takes one part of a card's state, for trying.
fn use_part(hardware: &Hardware, state: &mut CardState, need: &Need, place: Option<Place>) {
    state.parts += 1;
    match need {
        Need::Replica => state.replicas += 1,
        Need::Share(share) => {
            state.memory_mib += u64::from(share.memory_mib);
            state.compute_milli += share.compute_milli;
            state.reserving += share.reserving;
        }
        Need::Slice(_) => {
            let placed = place.and_then(|place| Some((place.profile?, place.start)));
            if let (Some(geometry), Some((profile, start))) = (hardware.geometry(), placed) {
                state.mig = geometry.put(state.mig, profile, start).unwrap_or(state.mig);
            }
        }
    }
}

/// Writes a part into the devices.
fn note(devices: &mut Devices, hardware: &Hardware, need: &Need, place: Place) {
    let slice = |profile| Slice {
        card: place.card as u8,
        profile,
        start: place.start,
    };
    let profile = place
        .profile
        .and_then(|ix| hardware.geometry().and_then(|geometry| geometry.get(ix)));
    match (need, profile) {
        (Need::Share(_), _) => devices.push(slice(Slice::SHARE)),
        (Need::Replica, _) => devices.push(slice(Slice::REPLICA)),
        (Need::Slice(_), Some(profile)) => devices.push(slice(profile.id)),
        (Need::Slice(_), None) => false,
    };
}
