//! Slices, shares and replicas: how many fit on each card, and how many members that makes.
//!
//! Counting is exact. A member's parts lie on distinct cards, on one card, or anywhere; for each the
//! number of members follows from the numbers of each card: for distinct cards, `m` members fit if
//! and only if the parts can be chosen so that no card holds more than `m` of them (edges of a
//! bipartite graph between cards and parts of a member, coloured by member: König's theorem).

use smallvec::SmallVec;

use super::{
    Slice,
    ask::{CardAsk, MOST_PROFILES, Part},
    hardware::{Hardware, Mode, Need},
    inventory::{CardState, Inventory, Pool},
    mig::{Geometry, MigState, ProfileIx},
    patterns::{self, Maximal},
};
use crate::{engine::view::Part as PartShape, request::Apart};

/// Numbers of parts by entry of the request.
type Counts = [u32; MOST_PROFILES];

/// Numbers of parts that a card can give together.
type Combinations = Maximal<MOST_PROFILES>;

/// How many members with an ask for parts fit on a pool.
pub(super) fn capacity(inventory: &Inventory, pool: &Pool, ask: &CardAsk) -> u32 {
    loose_capacity(inventory, pool, ask).saturating_add(placed_capacity(inventory, pool, ask))
}

/// Whether an ask can be served by slices of unknown cards: whether they are on distinct cards nobody
/// can tell, so what must be on one card, or on cards with some name, cannot be promised.
pub(super) fn takes_loose(pool: &Pool, ask: &CardAsk) -> bool {
    !pool.hardware.loose.is_empty()
        && (ask.apart() != Apart::Same || ask.count() <= 1)
        && ask.source.only.is_none()
        && ask.group.is_none()
        && ask.exclusive.is_none()
}

/// Members that slices of unknown cards can serve. By Hall's theorem so many that no choice among
/// the entries of the request needs more than there is of the profiles that would do for it.
fn loose_capacity(inventory: &Inventory, pool: &Pool, ask: &CardAsk) -> u32 {
    if !takes_loose(pool, ask) {
        return 0;
    }
    let entries: SmallVec<[(u32, Part<'_>); MOST_PROFILES]> = ask.parts().collect();
    let suits = |entries: u32, list: &SmallVec<[(u32, Part<'_>); MOST_PROFILES]>, at: usize| {
        let mut chosen = list
            .iter()
            .enumerate()
            .filter(|(entry, _)| entries >> entry & 1 == 1);
        chosen.any(|(_, (_, part))| pool.hardware.loose_suits(ask, *part, at))
    };
    (1..1_u32 << entries.len())
        .map(|chosen| {
            let free = inventory.loose(pool.kind).enumerate();
            let free = free.filter(|(at, _)| suits(chosen, &entries, *at));
            let free: u64 = free
                .map(|(_, loose)| u64::from(loose.all.saturating_sub(loose.used)))
                .sum();
            let needed = entries
                .iter()
                .enumerate()
                .filter(|(entry, _)| chosen >> entry & 1 == 1);
            let needed: u64 = needed.map(|(_, (count, _))| u64::from(*count)).sum();
            u32::try_from(free / needed.max(1)).unwrap_or(u32::MAX)
        })
        .min()
        .unwrap_or(0)
}

/// How many members fit on cards that are known.
pub(super) fn placed_capacity(inventory: &Inventory, pool: &Pool, ask: &CardAsk) -> u32 {
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
        .map(|(card, state)| times(hardware, card, state, need))
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
pub(super) fn times(hardware: &Hardware, card: u32, state: &CardState, need: &Need) -> u32 {
    match (hardware.mode(card), need) {
        (Mode::Replicas(replicas), Need::Replica) => replicas.saturating_sub(state.replicas),
        (Mode::Shared, &Need::Share(share)) => {
            let reserving = share.reserving > 0 || state.reserving > 0;
            let all = hardware.memory_for_shares(reserving);
            // A card that others over-committed takes nothing more of any kind.
            if state.memory_mib > all || state.compute_milli > 1000 {
                return 0;
            }
            let more = hardware.most_shares.saturating_sub(state.parts);
            let memory = match share.memory_mib {
                0 => u64::from(u32::MAX),
                mib => (all - state.memory_mib) / u64::from(mib),
            };
            let compute = match share.compute_milli {
                0 => u32::MAX,
                milli => 1000_u32.saturating_sub(state.compute_milli) / milli,
            };
            let memory = u32::try_from(memory).unwrap_or(u32::MAX);
            memory.min(compute).min(more)
        }
        (mode @ (Mode::MigDynamic | Mode::MigStatic(_)), Need::Slice(profiles)) => {
            let Some(geometry) = hardware.geometry() else {
                return 0;
            };
            match (mode, profiles.as_slice()) {
                (Mode::MigDynamic, [profile]) => geometry.most(state.mig, *profile).into(),
                (Mode::MigDynamic, profiles) => most_of(geometry, state.mig, profiles),
                // Those that exist are disjoint, so all that are free can be had.
                _ => {
                    let free = profiles.iter();
                    let free = free.map(|&profile| starts(geometry, mode, state.mig, profile));
                    free.map(u16::count_ones).sum()
                }
            }
        }
        _ => 0,
    }
}

/// Whether more of a card is taken than it has, as far as that is known.
pub(super) fn is_overfull(hardware: &Hardware, card: u32, state: &CardState) -> bool {
    match hardware.mode(card) {
        Mode::Replicas(replicas) => state.replicas > *replicas,
        Mode::Shared => {
            let all = hardware.memory_for_shares(state.reserving > 0);
            let memory = hardware.memory_mib > 0 && state.memory_mib > all;
            memory || state.compute_milli > 1000 || state.parts > hardware.most_shares
        }
        _ => false,
    }
}

fn lowest_start(starts: u16) -> Option<u8> {
    (starts != 0).then(|| starts.trailing_zeros() as u8)
}

/// How many instances of any of these profiles fit at once. One after the other, those that end first,
/// and of these those that need the fewest engines: the rule for intervals, which engines do not upset
/// because some profile of each size needs none but what its units bring (tested for every state).
fn most_of(geometry: &Geometry, mig: MigState, profiles: &[ProfileIx]) -> u32 {
    let mut state = mig;
    let mut count = 0;
    loop {
        let mut first: Option<(u32, u32, MigState)> = None;
        for &profile in profiles {
            let Some(start) = lowest_start(geometry.starts(state, profile)) else {
                continue;
            };
            let Some(after) = geometry.put(state, profile, start) else {
                continue;
            };
            let end = u32::from(start) + geometry.units_of(profile, start).count_ones();
            let engines = after.engines_in_use();
            if first.is_none_or(|(least, fewest, _)| (end, engines) < (least, fewest)) {
                first = Some((end, engines, after));
            }
        }
        let Some((_, _, after)) = first else {
            return count;
        };
        state = after;
        count += 1;
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
    let needs: SmallVec<[Option<Need>; MOST_PROFILES]> =
        entries.iter().map(|(_, need)| Some(need.clone())).collect();
    let mut of_cards: SmallVec<[Combinations; 8]> = SmallVec::new();
    let mut known: SmallVec<[(&Mode, MigState); 8]> = SmallVec::new();
    for &card in cards {
        let Some(state) = states.get(card as usize) else {
            continue;
        };
        let alike = (hardware.mode(card), state.mig);
        let mut found = Combinations::default();
        match known.iter().position(|other| *other == alike) {
            Some(at) => found.clone_from(&of_cards[at]),
            None => patterns::of_instances(geometry, alike.0, alike.1, &needs, &mut found),
        }
        known.push(alike);
        of_cards.push(found);
    }
    // Of each entry at most so many members, whatever the others take.
    let most = |entry: usize| {
        let sum: u32 = of_cards
            .iter()
            .map(|counts| {
                counts
                    .list
                    .iter()
                    .map(|counts| counts[entry])
                    .max()
                    .unwrap_or(0)
            })
            .sum();
        sum / entries[entry].0.max(1)
    };
    let high = (0..entries.len()).map(most).min().unwrap_or(0);
    if apart == Apart::Same {
        let on_card = |counts: &Combinations| {
            let members = |counts: &Counts| {
                let entries = entries.iter().zip(counts);
                entries.map(|((count, _), &fits)| fits / count).min()
            };
            counts.list.iter().filter_map(members).max().unwrap_or(0)
        };
        return of_cards.iter().map(on_card).sum();
    }
    // Where so many fit, fewer do.
    let (mut low, mut high) = (0, high);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if mixed_fits(&of_cards, entries, middle, apart) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// So many sums are kept while cards are added up. Beyond that the answer is "may fit": a limit from
/// above, which a search may trust as little as it may trust any other limit. Nodes with 8 cards and
/// three profiles stay well below.
const MOST_SUMS: usize = 256;

/// Whether so many members fit: some choice of a combination on each card adds up to what they need,
/// with no more than `members` parts on a card when a member's parts must be on distinct cards.
fn mixed_fits(
    of_cards: &[Combinations],
    entries: &[(u32, Need)],
    members: u32,
    apart: Apart,
) -> bool {
    let mut wanted = Counts::default();
    for (slot, (count, _)) in wanted.iter_mut().zip(entries) {
        *slot = count.saturating_mul(members);
    }
    let limit = if apart == Apart::Distinct {
        members
    } else {
        u32::MAX
    };
    let mut reached = Combinations::default();
    reached.add(Counts::default());
    // What a card can add; cards next to each other are often alike.
    let mut added = Combinations::default();
    let mut added_by: Option<&Combinations> = None;
    for combinations in of_cards {
        let mut next = Combinations::default();
        if reached.list.len() > MOST_SUMS {
            return true;
        }
        if added_by.is_none_or(|before| before.list != combinations.list) {
            added.list.clear();
            for counts in &combinations.list {
                let useful = core::array::from_fn(|entry| counts[entry].min(wanted[entry]));
                visit_within(useful, limit, 0, &mut |counts| added.add(counts));
            }
            added_by = Some(combinations);
        }
        for sum in &reached.list {
            for more in &added.list {
                next.add(core::array::from_fn(|entry| {
                    sum[entry].saturating_add(more[entry]).min(wanted[entry])
                }));
            }
        }
        reached = next;
        if reached.list.contains(&wanted) {
            return true;
        }
    }
    reached.list.contains(&wanted)
}

/// The largest parts of a combination with at most `limit` parts in all, each once: entries before
/// `from` stay as they are.
fn visit_within(counts: Counts, limit: u32, from: usize, visit: &mut dyn FnMut(Counts)) {
    let sum: u32 = counts.iter().sum();
    if sum <= limit {
        visit(counts);
        return;
    }
    for entry in from..MOST_PROFILES {
        if counts[entry] > 0 {
            let mut fewer = counts;
            fewer[entry] -= 1;
            visit_within(fewer, limit, entry, visit);
        }
    }
}

/// What is left of a card for parts, in thousandths.
pub(super) fn left_milli(hardware: &Hardware, card: u32, state: &CardState) -> u32 {
    match hardware.mode(card) {
        Mode::Whole => 0,
        Mode::Shared if state.parts >= hardware.most_shares => 0,
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
            let share = hardware.share(ask)?;
            PartShape::Share {
                memory_mib: share.memory_mib,
                compute_milli: share.compute_milli,
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

#[cfg(test)]
mod tests {
    use alloc::{collections::BTreeSet, vec, vec::Vec};

    use super::*;
    use crate::device::model;

    /// Of any of several profiles, as many fit as the best of all ways to fill the card holds: on
    /// every grid, in every state, for every list that a request for "at least" can mean.
    #[test]
    fn one_after_the_other_is_the_most_of_several_profiles() {
        for product in [
            "NVIDIA-A30",
            "NVIDIA-A100-SXM4-40GB",
            "NVIDIA-H100-80GB-HBM3",
            "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
        ] {
            let geometry = model::find(product).and_then(|model| model.mig).unwrap();
            let mut lists: BTreeSet<Vec<ProfileIx>> = BTreeSet::new();
            for profile in geometry.profiles {
                for compute in 0..=geometry.compute_slices {
                    lists.insert(geometry.cheapest(profile.memory_mib, compute).collect());
                }
            }
            let mut states = BTreeSet::from([MigState::EMPTY]);
            let mut open = vec![MigState::EMPTY];
            while let Some(state) = open.pop() {
                for (profile, start) in geometry.placements() {
                    if let Some(after) = geometry.put(state, profile, start)
                        && states.insert(after)
                    {
                        open.push(after);
                    }
                }
            }
            for &state in &states {
                for list in &lists {
                    let need = [Some(Need::Slice(list.as_slice().into()))];
                    let mut found = Maximal::<1>::default();
                    let mode = &Mode::MigDynamic;
                    patterns::of_instances(geometry, mode, state, &need, &mut found);
                    let best = found.list.iter().map(|counts| counts[0]).max();
                    let most = most_of(geometry, state, list);
                    assert_eq!(Some(most), best, "{product} {state:?} {list:?}");
                }
            }
        }
    }
}
