//! What one card can give at once: of several kinds of parts, which numbers go together.
//!
//! A pattern is a number for each kind of part; only those that no other covers are listed. Data
//! enters as an inventory, a card and the [`Item`]s that members want; out come patterns, or for one
//! pattern the slices that make it. Nothing here changes an inventory or knows who wants what.

use smallvec::SmallVec;

use super::{
    Slice,
    ask::{CardAsk, Part},
    hardware::{Mode, Need},
    inventory::{Inventory, Pool},
    mig::{Geometry, MigState, ProfileIx},
    parts,
};

/// One thing that members want of some card.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item<'a> {
    pub(crate) ask: &'a CardAsk,
    /// Nothing: a whole card.
    pub(crate) part: Option<Part<'a>>,
}

impl Item<'_> {
    /// Whether two items are the same for every card.
    pub(crate) fn is_like(&self, other: &Item<'_>) -> bool {
        let (one, two) = (&self.ask.source, &other.ask.source);
        self.part == other.part
            && self.ask.kind == other.ask.kind
            && self.ask.group == other.ask.group
            && self.ask.exclusive == other.ask.exclusive
            && one.models == two.models
            && one.min_card_memory_mib == two.min_card_memory_mib
            && one.only == two.only
            && one.overhead == two.overhead
    }

    pub(crate) fn is_share(&self) -> bool {
        matches!(self.part, Some(Part::Share { .. }))
    }
}

/// Patterns are listed for at most so many items.
pub(crate) const MOST_ITEMS: usize = 12;

/// Numbers by item.
pub(crate) type Counts = [u32; MOST_ITEMS];

/// Patterns of which none covers another.
#[derive(Clone, Debug)]
pub(crate) struct Maximal<const ITEMS: usize> {
    pub(crate) list: SmallVec<[[u32; ITEMS]; 12]>,
}

impl<const ITEMS: usize> Default for Maximal<ITEMS> {
    fn default() -> Self {
        Self {
            list: SmallVec::new(),
        }
    }
}

impl<const ITEMS: usize> Maximal<ITEMS> {
    pub(crate) fn add(&mut self, pattern: [u32; ITEMS]) {
        let covers = |one: &[u32; ITEMS], other: &[u32; ITEMS]| {
            one.iter().zip(other).all(|(one, other)| one >= other)
        };
        if self.list.iter().any(|known| covers(known, &pattern)) {
            return;
        }
        self.list.retain(|known| !covers(&pattern, known));
        self.list.push(pattern);
    }
}

/// The patterns of instances that a card can hold now, by the entries of a list of needs; entries that
/// are none, or no instances, get none.
///
/// Every multiset of profiles is a look-up; where several entries accept one profile, each division of
/// its instances among them is a pattern.
pub(super) fn of_instances<const ITEMS: usize>(
    geometry: &Geometry,
    mode: &Mode,
    mig: MigState,
    needs: &[Option<Need>],
    found: &mut Maximal<ITEMS>,
) {
    let takers = |profile: usize| {
        let accepts = move |need: &Option<Need>| {
            matches!(need, Some(Need::Slice(profiles))
                if profiles.contains(&ProfileIx(profile as u8)))
        };
        let entries = needs.iter().take(ITEMS).enumerate();
        entries
            .filter(move |(_, need)| accepts(need))
            .map(|(entry, _)| entry)
    };
    let takers: SmallVec<[SmallVec<[usize; 4]>; 16]> = (0..geometry.profiles.len())
        .map(|profile| takers(profile).collect())
        .collect();
    match mode {
        Mode::MigDynamic => {
            for multiset in geometry.multisets(mig) {
                divide(&multiset, &takers, [0; ITEMS], found);
            }
        }
        // Those that exist are disjoint, so all that are free can be had.
        Mode::MigStatic(_) => {
            let free: SmallVec<[u8; 16]> = geometry
                .indices()
                .map(|ix| parts::starts(geometry, mode, mig, ix).count_ones() as u8)
                .collect();
            divide(&free, &takers, [0; ITEMS], found);
        }
        // Nothing is a pattern too.
        Mode::Whole | Mode::Shared | Mode::Replicas(_) => found.add([0; ITEMS]),
    }
}

/// Adds every way to divide instances of each profile among the entries that take them.
fn divide<const ITEMS: usize>(
    instances: &[u8],
    takers: &[SmallVec<[usize; 4]>],
    pattern: [u32; ITEMS],
    found: &mut Maximal<ITEMS>,
) {
    let (Some((&count, instances)), Some((entries, takers))) =
        (instances.split_first(), takers.split_first())
    else {
        found.add(pattern);
        return;
    };
    hand_out(count.into(), entries, pattern, &mut |pattern| {
        divide(instances, takers, pattern, found);
    });
}

fn hand_out<const ITEMS: usize>(
    count: u32,
    entries: &[usize],
    pattern: [u32; ITEMS],
    then: &mut dyn FnMut([u32; ITEMS]),
) {
    let Some((&entry, others)) = entries.split_first().filter(|_| count > 0) else {
        return then(pattern);
    };
    // The last one takes what is left.
    let least = if others.is_empty() { count } else { 0 };
    for taken in least..=count {
        let mut more = pattern;
        more[entry] += taken;
        hand_out(count - taken, others, more, then);
    }
}

/// What each item needs of a card, if the card may serve it at all now. `open`: a bit for each item that
/// is asked about.
pub(crate) fn needs(
    inventory: &Inventory,
    pool: &Pool,
    card: u32,
    items: &[Item<'_>],
    open: u32,
) -> SmallVec<[Option<Need>; MOST_ITEMS]> {
    let need = |(entry, item): (usize, &Item<'_>)| {
        let part = item.part?;
        let is_usable = open >> entry & 1 == 1
            && pool.kind == item.ask.kind
            && pool.hardware.passes(item.ask)
            && parts::usable_cards(inventory, pool, item.ask).contains(&card);
        pool.hardware.need(item.ask, part).filter(|_| is_usable)
    };
    items.iter().enumerate().map(need).collect()
}

/// The patterns of a card: instances, replicas, or the card as a whole. Shares are not among them, as
/// their numbers have no end.
pub(crate) fn patterns(
    inventory: &Inventory,
    pool: &Pool,
    card: u32,
    items: &[Item<'_>],
    open: u32,
) -> Maximal<MOST_ITEMS> {
    let hardware = &*pool.hardware;
    let mut found = Maximal::default();
    for (entry, item) in items.iter().enumerate().take(MOST_ITEMS) {
        let ask = item.ask;
        let is_free = item.part.is_none()
            && open >> entry & 1 == 1
            && pool.kind == ask.kind
            && pool.free().contains(card)
            && ask.source.only.is_none_or(|only| only.contains(card))
            && hardware.passes(ask);
        if is_free {
            let mut whole = [0; MOST_ITEMS];
            whole[entry] = 1;
            found.add(whole);
        }
    }
    let needs = needs(inventory, pool, card, items, open);
    let state = inventory.states(pool).get(card as usize);
    let (Some(state), true) = (state, needs.iter().any(Option::is_some)) else {
        return found;
    };
    match (hardware.mode(card), hardware.geometry()) {
        (mode @ (Mode::MigDynamic | Mode::MigStatic(_)), Some(geometry)) => {
            of_instances(geometry, mode, state.mig, &needs, &mut found);
        }
        (Mode::Replicas(_), _) => {
            // Which of several gets them hardly ever matters: a limit from above will do.
            let count = parts::times(hardware, card, state, &Need::Replica);
            let takes = |entry: usize| needs.get(entry) == Some(&Some(Need::Replica));
            found.add(core::array::from_fn(
                |entry| {
                    if takes(entry) { count } else { 0 }
                },
            ));
        }
        _ => {}
    }
    found
}

/// Whether slices whose card nobody told, or cards without identity, could serve an item.
pub(crate) fn is_served_elsewhere(inventory: &Inventory, item: &Item<'_>) -> bool {
    let kind = item.ask.kind;
    let counted = || {
        inventory
            .counted()
            .iter()
            .any(|counted| counted.kind == kind)
    };
    match (inventory.pool(kind), item.part) {
        (Some(pool), Some(part)) => {
            let mut loose = 0..pool.hardware.loose.len();
            loose.any(|at| pool.hardware.loose_suits(item.ask, part, at))
        }
        (None, None) => counted(),
        _ => false,
    }
}

/// What a card has for shares: memory in MiB, and thousandths of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShareRoom {
    /// What is left.
    pub(crate) left: [u64; 2],
    /// By item: the least that a share of it takes.
    pub(crate) least: [Option<[u64; 2]>; MOST_ITEMS],
}

/// What a card has for shares of these items; nothing: it serves none of them now.
pub(crate) fn room_for_shares(
    inventory: &Inventory,
    pool: &Pool,
    card: u32,
    items: &[Item<'_>],
    open: u32,
) -> Option<ShareRoom> {
    let hardware = &*pool.hardware;
    let state = inventory.states(pool).get(card as usize)?;
    if *hardware.mode(card) != Mode::Shared {
        return None;
    }
    // As long as a share that counts overheads is there, the reserve is nobody's.
    let mut reserving = true;
    let mut least = [None; MOST_ITEMS];
    for (slot, need) in least
        .iter_mut()
        .zip(needs(inventory, pool, card, items, open))
    {
        if let Some(Need::Share(share)) = need {
            reserving &= share.reserving > 0;
            *slot = Some([share.memory_mib.into(), share.compute_milli.into()]);
        }
    }
    if least.iter().all(Option::is_none) {
        return None;
    }
    let memory = hardware.memory_for_shares(reserving || state.reserving > 0);
    let left = [
        memory.saturating_sub(state.memory_mib),
        1000_u64.saturating_sub(state.compute_milli.into()),
    ];
    Some(ShareRoom { left, least })
}

/// Slices of a card that make a pattern, as (item, slice); `None`: it cannot be made.
pub(crate) fn cut(
    inventory: &Inventory,
    pool: &Pool,
    card: u32,
    items: &[Item<'_>],
    pattern: &Counts,
) -> Option<SmallVec<[(usize, Slice); 8]>> {
    let hardware = &*pool.hardware;
    let needs = needs(inventory, pool, card, items, u32::MAX);
    let mut wanted: SmallVec<[(usize, &Need); 8]> = SmallVec::new();
    let mut slices = SmallVec::new();
    for (entry, &count) in pattern.iter().enumerate().filter(|&(_, &count)| count > 0) {
        let need = needs.get(entry)?.as_ref()?;
        for _ in 0..count {
            match need {
                Need::Slice(_) => wanted.push((entry, need)),
                Need::Replica => slices.push((entry, slice(card, Slice::REPLICA, 0))),
                Need::Share(_) => return None,
            }
        }
    }
    let state = inventory.states(pool).get(card as usize)?;
    if slices.len() as u32 > parts::times(hardware, card, state, &Need::Replica) {
        return None;
    }
    if wanted.is_empty() {
        return Some(slices);
    }
    // Those with the fewest places first.
    let geometry = hardware.geometry()?;
    let places = |need: &Need| match need {
        Need::Slice(profiles) => {
            let starts = profiles.iter();
            let starts = starts.map(|&ix| geometry.starts(MigState::EMPTY, ix).count_ones());
            starts.sum()
        }
        Need::Share(_) | Need::Replica => 0,
    };
    wanted.sort_by_key(|(entry, need)| (places(need), *entry));
    let mode = hardware.mode(card);
    place(geometry, mode, card, state.mig, &wanted, &mut slices).then_some(slices)
}

fn slice(card: u32, profile: u8, start: u8) -> Slice {
    Slice {
        card: card as u8,
        profile,
        start,
    }
}

/// Finds starts for instances, one after the other.
fn place(
    geometry: &Geometry,
    mode: &Mode,
    card: u32,
    state: MigState,
    wanted: &[(usize, &Need)],
    slices: &mut SmallVec<[(usize, Slice); 8]>,
) -> bool {
    let Some((&(entry, need), rest)) = wanted.split_first() else {
        return true;
    };
    let Need::Slice(profiles) = need else {
        return false;
    };
    for &ix in profiles {
        let Some(profile) = geometry.get(ix) else {
            continue;
        };
        let mut starts = parts::starts(geometry, mode, state, ix);
        while starts != 0 {
            let start = starts.trailing_zeros() as u8;
            starts &= starts - 1;
            let Some(after) = geometry.put(state, ix, start) else {
                continue;
            };
            slices.push((entry, slice(card, profile.id, start)));
            if place(geometry, mode, card, after, rest, slices) {
                return true;
            }
            slices.pop();
        }
    }
    false
}
