//! Slices, shares and replicas: how many fit on each card, and how many members that makes.
//!
//! Counting is exact. A member's parts lie on distinct cards, on one card, or anywhere; for each the
//! number of members follows from the numbers of each card: for distinct cards, `m` members fit if
//! and only if the parts can be chosen so that no card holds more than `m` of them (edges of a
//! bipartite graph between cards and parts of a member, coloured by member: König's theorem).

use alloc::vec::Vec;

use smallvec::SmallVec;

use super::{
    Slice,
    ask::{CardAsk, MOST_PROFILES},
    hardware::{Hardware, Mode, Need},
    inventory::{CardState, Inventory, Pool},
    mig::{Geometry, MigState, ProfileIx},
};
use crate::{engine::view::Part as PartShape, request::Apart};

/// Numbers of parts by entry of the request.
type Counts = [u16; MOST_PROFILES];

/// How many members with an ask for parts fit on a pool.
pub(super) fn capacity(inventory: &Inventory, pool: &Pool, ask: &CardAsk) -> u32 {
    loose_capacity(inventory, pool, ask).saturating_add(placed_capacity(inventory, pool, ask))
}

/// Members that slices of unknown cards can serve. Whether they are on distinct cards nobody can
/// tell, so several on the same card cannot be promised.
fn loose_capacity(inventory: &Inventory, pool: &Pool, ask: &CardAsk) -> u32 {
    if pool.hardware.loose.is_empty() || (ask.apart() == Apart::Same && ask.count() > 1) {
        return 0;
    }
    // Entries of a request name different profiles, so each has instances of its own; where one
    // profile would do for two entries, sharing it out in order is a choice, not a count.
    let mut free: SmallVec<[u32; 8]> = inventory
        .loose(pool.kind)
        .map(|loose| loose.all.saturating_sub(loose.used))
        .collect();
    let mut members = 0;
    'member: loop {
        for (count, part) in ask.parts() {
            for _ in 0..count {
                let place = (0..free.len())
                    .find(|&at| free[at] > 0 && pool.hardware.loose_suits(ask, part, at));
                match place {
                    Some(at) => free[at] -= 1,
                    None => break 'member,
                }
            }
        }
        members += 1;
    }
    members
}

fn placed_capacity(inventory: &Inventory, pool: &Pool, ask: &CardAsk) -> u32 {
    let hardware = &*pool.hardware;
    let mut entries: SmallVec<[(u32, Need); MOST_PROFILES]> = SmallVec::new();
    for (count, part) in ask.parts() {
        let Some(need) = hardware.need(ask, part) else {
            return 0;
        };
        entries.push((count, need));
    }
    let states = inventory.states(pool);
    let cards = usable_cards(inventory, pool, ask);
    let [(count, need)] = entries.as_slice() else {
        return mixed_capacity(hardware, states, &cards, &entries, ask.apart());
    };
    let mut fits: SmallVec<[u32; 16]> = cards
        .iter()
        .filter_map(|&card| Some((card, states.get(card as usize)?)))
        .map(|(card, state)| times(hardware, ask, card, state, need))
        .collect();
    if ask.group.is_some() {
        // All members of the group go to one card.
        return fits.into_iter().max().unwrap_or(0);
    }
    members(&mut fits, *count, ask.apart())
}

/// Cards that may take parts of an ask now.
pub(super) fn usable_cards(
    inventory: &Inventory,
    pool: &Pool,
    ask: &CardAsk,
) -> SmallVec<[u32; 16]> {
    let mut cards = pool.partable();
    if let Some(only) = ask.source.only {
        cards = cards.intersection(only);
    }
    let states = inventory.states(pool);
    let at = ask
        .group
        .and_then(|group| inventory.card_of_group(pool.kind, group));
    cards
        .iter()
        .filter(|&card| at.is_none_or(|at| at == card))
        .filter(|&card| {
            let state = states.get(card as usize);
            state.is_some_and(|state| is_open(state, ask))
        })
        .collect()
}

/// Whether a card's other users and an ask put up with each other.
pub(super) fn is_open(state: &CardState, ask: &CardAsk) -> bool {
    state.parts == 0 || state.exclusive == ask.exclusive
}

/// How many members with `count` alike parts each fit when card `i` has room for `fits[i]` parts.
fn members(fits: &mut [u32], count: u32, apart: Apart) -> u32 {
    let sum = |limit: u32| -> u64 { fits.iter().map(|&fits| u64::from(fits.min(limit))).sum() };
    match apart {
        Apart::Any => u32::try_from(sum(u32::MAX) / u64::from(count)).unwrap_or(u32::MAX),
        Apart::Same => fits
            .iter()
            .fold(0, |sum, &fits| sum.saturating_add(fits / count)),
        Apart::Distinct => {
            let mut low = 0;
            let mut high = u32::try_from(sum(u32::MAX) / u64::from(count)).unwrap_or(u32::MAX);
            while low < high {
                let middle = low + (high - low).div_ceil(2);
                if sum(middle) >= u64::from(middle) * u64::from(count) {
                    low = middle;
                } else {
                    high = middle - 1;
                }
            }
            low
        }
    }
}

/// How many parts of one kind still fit on a card.
pub(super) fn times(
    hardware: &Hardware,
    ask: &CardAsk,
    card: u32,
    state: &CardState,
    need: &Need,
) -> u32 {
    match (hardware.mode(card), need) {
        (Mode::Replicas(replicas), Need::Replica) => replicas.saturating_sub(state.replicas),
        (
            Mode::Shared,
            &Need::Share {
                memory_mib,
                compute_milli,
            },
        ) => {
            let memory = match memory_mib {
                0 => u64::from(u32::MAX),
                mib => {
                    let all = hardware.memory_for_shares(ask);
                    all.saturating_sub(state.memory_mib) / u64::from(mib)
                }
            };
            let compute = match compute_milli {
                0 => u32::MAX,
                milli => 1000_u32.saturating_sub(state.compute_milli) / milli,
            };
            u32::try_from(memory).unwrap_or(u32::MAX).min(compute)
        }
        (mode @ (Mode::MigDynamic | Mode::MigStatic(_)), Need::Slice(profiles)) => {
            let Some(geometry) = hardware.geometry() else {
                return 0;
            };
            match profiles.as_slice() {
                [profile] if *mode == Mode::MigDynamic => geometry.most(state.mig, *profile).into(),
                profiles => {
                    let entry = [(1, Need::Slice(profiles.into()))];
                    let best = combinations(geometry, mode, state.mig, &entry);
                    best.iter()
                        .map(|counts| u32::from(counts[0]))
                        .max()
                        .unwrap_or(0)
                }
            }
        }
        _ => 0,
    }
}

/// Starts at which an instance of a profile can be had on a card now.
pub(super) fn starts(geometry: &Geometry, mode: &Mode, mig: MigState, profile: ProfileIx) -> u16 {
    let free = geometry.starts(mig, profile);
    match mode {
        Mode::MigDynamic => free,
        Mode::MigStatic(exist) => free & exist.get(usize::from(profile.0)).copied().unwrap_or(0),
        Mode::Whole | Mode::Shared | Mode::Replicas(_) => 0,
    }
}

/// How many members with parts of several profiles fit.
fn mixed_capacity(
    hardware: &Hardware,
    states: &[CardState],
    cards: &[u32],
    entries: &[(u32, Need)],
    apart: Apart,
) -> u32 {
    let Some(geometry) = hardware.geometry() else {
        return 0;
    };
    let of_cards: Vec<Vec<Counts>> = cards
        .iter()
        .filter_map(|&card| Some((card, states.get(card as usize)?)))
        .map(|(card, state)| combinations(geometry, hardware.mode(card), state.mig, entries))
        .collect();
    // Of each entry at most so many members, whatever the others take.
    let most = |entry: usize| {
        let sum: u32 = of_cards
            .iter()
            .map(|counts| u32::from(counts.iter().map(|counts| counts[entry]).max().unwrap_or(0)))
            .sum();
        sum / entries[entry].0.max(1)
    };
    let high = (0..entries.len()).map(most).min().unwrap_or(0);
    if apart == Apart::Same {
        let on_card = |counts: &Vec<Counts>| {
            let members = |counts: &Counts| {
                let entries = entries.iter().zip(counts);
                entries
                    .map(|((count, _), &fits)| u32::from(fits) / count)
                    .min()
            };
            counts.iter().filter_map(members).max().unwrap_or(0)
        };
        return of_cards.iter().map(on_card).sum();
    }
    (1..=high)
        .rev()
        .find(|&members| mixed_fits(&of_cards, entries, members, apart))
        .unwrap_or(0)
}

/// Whether so many members fit: some choice of a combination on each card adds up to what they need,
/// with no more than `members` parts on a card when a member's parts must be on distinct cards.
fn mixed_fits(
    of_cards: &[Vec<Counts>],
    entries: &[(u32, Need)],
    members: u32,
    apart: Apart,
) -> bool {
    let mut wanted = Counts::default();
    for (slot, (count, _)) in wanted.iter_mut().zip(entries) {
        *slot = u16::try_from(count.saturating_mul(members)).unwrap_or(u16::MAX);
    }
    let limit = if apart == Apart::Distinct {
        members
    } else {
        u32::MAX
    };
    let mut reached: Vec<Counts> = [Counts::default()].into();
    for combinations in of_cards {
        let mut next: Vec<Counts> = Vec::new();
        for sum in &reached {
            for counts in combinations {
                visit_within(*counts, limit, &mut |counts| {
                    let mut total = *sum;
                    for ((slot, more), wanted) in total.iter_mut().zip(counts).zip(wanted) {
                        *slot = slot.saturating_add(more).min(wanted);
                    }
                    next.push(total);
                });
            }
        }
        reached = not_dominated(next);
        if reached.contains(&wanted) {
            return true;
        }
    }
    reached.contains(&wanted)
}

/// The largest parts of a combination with at most `limit` parts in all.
fn visit_within(counts: Counts, limit: u32, visit: &mut dyn FnMut(Counts)) {
    let sum: u32 = counts.iter().map(|&count| u32::from(count)).sum();
    if sum <= limit {
        visit(counts);
        return;
    }
    for entry in 0..MOST_PROFILES {
        if counts[entry] > 0 {
            let mut fewer = counts;
            fewer[entry] -= 1;
            visit_within(fewer, limit, visit);
        }
    }
}

/// All ways to fill a card with parts of the entries, without those that are part of another.
fn combinations(
    geometry: &Geometry,
    mode: &Mode,
    mig: MigState,
    entries: &[(u32, Need)],
) -> Vec<Counts> {
    let mut found = Vec::new();
    let mut placements: SmallVec<[(ProfileIx, u8); 32]> = SmallVec::new();
    for (profile, start) in geometry.placements() {
        if starts(geometry, mode, mig, profile) >> start & 1 == 1 {
            placements.push((profile, start));
        }
    }
    fill(
        geometry,
        &placements,
        mig,
        entries,
        Counts::default(),
        &mut found,
    );
    not_dominated(found)
}

fn fill(
    geometry: &Geometry,
    placements: &[(ProfileIx, u8)],
    mig: MigState,
    entries: &[(u32, Need)],
    counts: Counts,
    found: &mut Vec<Counts>,
) {
    let mut is_full = true;
    for (at, &(profile, start)) in placements.iter().enumerate() {
        let Some(after) = geometry.put(mig, profile, start) else {
            continue;
        };
        for (entry, (_, need)) in entries.iter().enumerate() {
            let Need::Slice(profiles) = need else {
                continue;
            };
            if profiles.contains(&profile) {
                is_full = false;
                let mut more = counts;
                more[entry] += 1;
                fill(geometry, &placements[at + 1..], after, entries, more, found);
            }
        }
    }
    if is_full {
        found.push(counts);
    }
}

fn not_dominated(mut counts: Vec<Counts>) -> Vec<Counts> {
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts.dedup();
    let mut kept: Vec<Counts> = Vec::new();
    for one in counts {
        let covers = |other: &Counts| other.iter().zip(one).all(|(&other, one)| other >= one);
        if !kept.iter().any(covers) {
            kept.push(one);
        }
    }
    kept
}

/// What is left of a card for parts, in thousandths.
pub(super) fn left_milli(hardware: &Hardware, card: u32, state: &CardState) -> u32 {
    match hardware.mode(card) {
        Mode::Whole => 0,
        Mode::Shared => {
            let compute = 1000_u32.saturating_sub(state.compute_milli);
            let all = u64::from(hardware.memory_mib);
            let left = all.saturating_sub(state.memory_mib);
            let memory = (left * 1000).checked_div(all).unwrap_or(1000);
            compute.min(memory as u32)
        }
        Mode::Replicas(replicas) => {
            let left = replicas.saturating_sub(state.replicas);
            (u64::from(left) * 1000 / u64::from((*replicas).max(1))) as u32
        }
        Mode::MigDynamic | Mode::MigStatic(_) => {
            let units = hardware.geometry().map_or(0, |geometry| geometry.units);
            let left = u32::from(units).saturating_sub(state.mig.mask.count_ones());
            (left * 1000).checked_div(units.into()).unwrap_or(0)
        }
    }
}

/// What a slice that a member holds looks like; `None` when nobody knows its card.
pub(crate) fn part_of(hardware: &Hardware, ask: &CardAsk, slice: Slice) -> Option<PartShape> {
    Some(match (slice.card, slice.profile) {
        (Slice::NO_CARD, _) => return None,
        (card, Slice::REPLICA) => match hardware.mode(card.into()) {
            Mode::Replicas(of) => PartShape::Replica { of: *of },
            _ => return None,
        },
        (_, Slice::SHARE) => {
            let need = ask.parts().find_map(|(_, part)| hardware.need(ask, part));
            let Some(Need::Share {
                memory_mib,
                compute_milli,
            }) = need
            else {
                return None;
            };
            PartShape::Share {
                memory_mib,
                compute_milli,
            }
        }
        (_, id) => {
            let (geometry, ix) = hardware.instance(id)?;
            let profile = geometry.get(ix)?;
            PartShape::Slice {
                start: slice.start,
                units: profile.units,
                of: geometry.units,
                profile: profile.name,
            }
        }
    })
}
