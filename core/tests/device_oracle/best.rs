//! The documented choice rule for a member by itself, worked out the slow way: which node, and there
//! which devices.

use std::collections::{BTreeSet, HashMap, HashSet};

use gangline::{
    bits::CardSet,
    cluster::{NodeSpec, spec::CardMode},
    device::{Devices, Slice, links::LinkTable, mig::Geometry},
    request::{CardRequest, Template},
};

use super::naive::{
    Card, Part, Room, geometry, is_legal, loose_code, memory, mode, most_shares, near, out_of_use,
    parts, take,
};

/// The geometry's name, and profiles with their starts.
type Filled = (&'static str, Vec<(usize, u8)>);

/// Multisets of profiles that can still be added: base ones, and all. Worked out once a state.
#[derive(Default)]
pub struct Flexibility {
    known: HashMap<Filled, (u32, u32)>,
}

impl Flexibility {
    fn of(&mut self, geometry: &'static Geometry, instances: &[(usize, u8)]) -> (u32, u32) {
        let mut sorted = instances.to_vec();
        sorted.sort_unstable();
        if let Some(&known) = self.known.get(&(geometry.name, sorted.clone())) {
            return known;
        }
        let mut found: BTreeSet<Vec<usize>> = BTreeSet::new();
        let mut seen: HashSet<Vec<(usize, u8)>> = HashSet::new();
        let mut open = vec![sorted.clone()];
        let placements: Vec<(usize, u8)> = geometry
            .placements()
            .map(|(ix, start)| (usize::from(ix.0), start))
            .collect();
        while let Some(state) = open.pop() {
            let mut added: Vec<usize> = state[sorted.len()..]
                .iter()
                .map(|&(profile, _)| profile)
                .collect();
            added.sort_unstable();
            found.insert(added);
            for &placement in &placements {
                let mut next = state.clone();
                next.push(placement);
                next[sorted.len()..].sort_unstable();
                if is_legal(geometry, &next) && seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        let is_base = |added: &Vec<usize>| added.iter().all(|&at| geometry.profiles[at].is_base());
        let all = found.len() as u32;
        found.retain(is_base);
        let counts = (found.len() as u32, all);
        self.known.insert((geometry.name, sorted), counts);
        counts
    }
}

fn partable(node: &NodeSpec, room: &Room, card: usize) -> bool {
    !out_of_use(&node.cards[0]).contains(card as u32) && !room.cards[card].whole
}

/// Cards that could be taken as a whole.
fn free(node: &NodeSpec, room: &Room) -> Vec<usize> {
    let whole = |card: &usize| {
        matches!(
            mode(&node.cards[0], *card),
            CardMode::Whole | CardMode::Shared | CardMode::MigDynamic
        )
    };
    (0..room.cards.len())
        .filter(whole)
        .filter(|&card| partable(node, room, card) && room.cards[card].parts == 0)
        .collect()
}

/// Thousandths of a card that are left for parts.
fn left(node: &NodeSpec, card: &Card, index: usize) -> u64 {
    let cards = &node.cards[0];
    match mode(cards, index) {
        CardMode::Whole => 0,
        CardMode::Shared if card.parts >= most_shares(cards) => 0,
        CardMode::Shared => {
            let compute = 1000_u64.saturating_sub(card.compute_milli.into());
            let all = u64::from(memory(cards));
            let left = all.saturating_sub(card.memory_mib) * 1000;
            let memory = left.checked_div(all).unwrap_or(1000);
            compute.min(memory)
        }
        CardMode::Replicas(all) => {
            u64::from(all.saturating_sub(card.replicas)) * 1000 / u64::from(*all)
        }
        CardMode::MigDynamic | CardMode::MigStatic(_) => {
            let geometry = geometry(cards).expect("MIG");
            let used: u32 = units(geometry, card);
            u64::from(u32::from(geometry.units) - used) * 1000 / u64::from(geometry.units)
        }
    }
}

fn units(geometry: &Geometry, card: &Card) -> u32 {
    let taken = card
        .instances
        .iter()
        .map(|&(profile, _)| u32::from(geometry.profiles[profile].units));
    taken.sum()
}

/// What destroying least means for nodes.
fn worth(node: &NodeSpec, room: &Room) -> i64 {
    let cards = 125 * free(node, room).len() as i64;
    let parts: u64 = (0..room.cards.len())
        .filter(|&card| partable(node, room, card) && room.cards[card].parts > 0)
        .map(|card| left(node, &room.cards[card], card))
        .sum();
    let parts = 125 * parts as i64 / 1000;
    let all = node.resources["cpu"];
    let cpu = if all > 0 {
        room.cpu.max(0) * 1000 / all
    } else {
        0
    };
    8 * cards * cards + cpu * cpu + 4 * cards * cpu + parts * parts
}

/// The devices that the rule gives a member on a node; `None` if it does not fit, or if it asks for
/// several parts, for which the rule says less.
pub fn devices(
    flexibility: &mut Flexibility,
    node: &NodeSpec,
    room: &Room,
    ask: &CardRequest,
) -> Option<Devices> {
    let cards = &node.cards[0];
    if ask.whole_cards() > 0 {
        return whole(node, room, ask);
    }
    let parts = parts(cards, ask)?;
    let [part] = parts.as_slice() else {
        return None;
    };
    // Slices of unknown cards come first: nothing else can use them.
    if let Part::Slice(profiles) = part
        && ask.only.is_none()
        && ask.share_group.is_empty()
        && ask.exclusive.is_empty()
    {
        for (at, (name, all)) in cards.slices.iter().enumerate() {
            let geometry = geometry(cards)?;
            let named = |&profile: &usize| {
                geometry.profiles[profile]
                    .names()
                    .any(|known| known == name)
            };
            if room.loose[at] < *all && profiles.iter().any(named) {
                let mut devices = Devices::NONE;
                devices.push(Slice {
                    card: Slice::NO_CARD,
                    profile: loose_code(cards, at),
                    start: 0,
                });
                return Some(devices);
            }
        }
    }
    let mut best = None;
    for index in 0..room.cards.len() {
        let card = &room.cards[index];
        let opens = card.parts == 0;
        let mut offer = |rank: usize, loss: (bool, u32, u32), slice: Slice| {
            let key = (rank, opens, loss, index, slice.start);
            if best.as_ref().is_none_or(|(known, _)| key < *known) {
                best = Some((key, slice));
            }
        };
        let slice = |profile: u8, start: u8| Slice {
            card: index as u8,
            profile,
            start,
        };
        let on = |room: &Room, slice: Slice| -> Option<Card> {
            let mut after = room.clone();
            after.cpu = i64::MAX / 2;
            let mut devices = Devices::NONE;
            devices.push(slice);
            let template = Template {
                cards: Some(ask.clone()),
                ..Template::default()
            };
            take(node, &mut after, &template, &devices, true).ok()?;
            Some(after.cards.swap_remove(index))
        };
        match part {
            Part::Share { .. } | Part::Replica => {
                let id = if *part == Part::Replica {
                    Slice::REPLICA
                } else {
                    Slice::SHARE
                };
                if let Some(after) = on(room, slice(id, 0)) {
                    offer(
                        0,
                        (false, left(node, &after, index) as u32, 0),
                        slice(id, 0),
                    );
                }
            }
            Part::Slice(profiles) => {
                let geometry = geometry(cards)?;
                for (rank, &profile) in profiles.iter().enumerate() {
                    for &start in geometry.profiles[profile].starts {
                        let slice = slice(geometry.profiles[profile].id, start);
                        let Some(after) = on(room, slice) else {
                            continue;
                        };
                        let loss = match mode(cards, index) {
                            CardMode::MigDynamic => {
                                let before = flexibility.of(geometry, &card.instances);
                                let after = flexibility.of(geometry, &after.instances);
                                // An instance that exists costs less than one that must be made.
                                (true, before.0 - after.0, before.1 - after.1)
                            }
                            _ => (
                                false,
                                u32::from(geometry.units) - units(geometry, &after),
                                0,
                            ),
                        };
                        offer(rank, loss, slice);
                    }
                }
            }
            Part::Whole => {}
        }
    }
    let (_, slice) = best?;
    let mut devices = Devices::NONE;
    devices.push(slice);
    Some(devices)
}

/// Whole cards: those that can be nothing else first, and of these the best joined.
fn whole(node: &NodeSpec, room: &Room, ask: &CardRequest) -> Option<Devices> {
    let cards = &node.cards[0];
    let rank = |card: usize| match mode(cards, card) {
        CardMode::Whole => 0,
        CardMode::Shared => 1,
        _ => 2,
    };
    let mut open = free(node, room);
    open.retain(|&card| ask.only.is_none_or(|only| only.contains(card as u32)));
    let count = ask.whole_cards() as usize;
    let set = |cards: &[usize]| {
        cards
            .iter()
            .fold(CardSet::EMPTY, |set, &card| set.union(CardSet(1 << card)))
    };
    let Some(links) = &cards.links else {
        open.sort_by_key(|&card| (rank(card), card));
        let fits = open.len() >= count && near(cards, &vec![0; count], ask.near);
        return fits.then(|| Devices::of_cards(set(&open[..count])));
    };
    // Which of several sets is joined best is the link tables' business, which have tests of their own.
    let table = LinkTable::new(links);
    (0..3).find_map(|most| {
        let open: Vec<usize> = open
            .iter()
            .copied()
            .filter(|&card| rank(card) <= most)
            .collect();
        table
            .best(set(&open), count as u32, ask.near)
            .map(|best| Devices::of_cards(best.cards))
    })
}

/// What the member destroys on a node with these devices; less what direct links are worth.
pub fn price(node: &NodeSpec, room: &Room, template: &Template, devices: &Devices) -> Option<i64> {
    let mut after = room.clone();
    take(node, &mut after, template, devices, true).ok()?;
    let ask = template.cards.as_ref()?;
    let mut price = worth(node, room) - worth(node, &after);
    let count = i64::from(ask.whole_cards());
    if let Some(links) = node.cards[0].links.as_ref().filter(|_| count > 1) {
        let table = LinkTable::new(links);
        let direct = table
            .describe(devices.cards)
            .bottleneck
            .is_some_and(gangline::device::links::Link::is_fabric);
        price -= i64::from(table.worth(devices.cards)) / (count * (count - 1) / 2) / 1024;
        price -= i64::from(direct) << 31;
    }
    Some(price)
}

/// Whether the rule says everything about this request.
pub fn is_ruled(ask: &CardRequest) -> bool {
    let parts = match &ask.want {
        gangline::request::CardWant::Slices { slices, .. } => {
            slices.iter().map(|slice| slice.count).sum()
        }
        gangline::request::CardWant::Shares { count, .. }
        | gangline::request::CardWant::Replicas { count, .. } => *count,
        gangline::request::CardWant::Whole(_) => 1,
    };
    parts == 1
}
