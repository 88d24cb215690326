//! What is on each card of a node, kept as plain lists and checked by rules written from their
//! description alone: nothing twice, nothing that is not there. Shares nothing with the device layer
//! but the published tables of profiles and overheads.
#![allow(dead_code, unreachable_pub, reason = "each user has its own part")]

use std::collections::HashSet;

use gangline::{
    bits::CardSet,
    cluster::{NodeCards, NodeSpec, spec::CardMode},
    device::{
        Devices, Slice,
        links::{Link, Nearness},
        mig::{Geometry, Profile},
        model::{self, CardModel},
        overhead::{Inside, OverheadTable},
    },
    request::{Apart, CardRequest, CardWant, ShareMemory, SliceChoice, Template},
};

/// What is on one card now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Card {
    pub whole: bool,
    /// Position in the model's list of profiles, start.
    pub instances: Vec<(usize, u8)>,
    pub memory_mib: u64,
    /// Shares that count overheads: as long as there are some, the card's reserve is nobody's.
    pub reserving: u32,
    pub compute_milli: u32,
    pub replicas: u32,
    pub parts: u32,
    pub exclusive: String,
    /// Share groups that have a member on it.
    pub groups: Vec<String>,
}

impl Card {
    pub fn is_empty(&self) -> bool {
        !self.whole && self.parts == 0
    }
}

/// One node now.
#[derive(Clone, Debug)]
pub struct Room {
    pub cards: Vec<Card>,
    /// Used of each kind of loose slice.
    pub loose: Vec<u32>,
    pub cpu: i64,
    /// Share groups of pods here, whether they got a card or not.
    pub groups: Vec<String>,
}

/// One part of a member, as a node of some kind sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Whole,
    /// Positions of profiles that would do, cheapest first.
    Slice(Vec<usize>),
    Share {
        memory_mib: u64,
        compute_milli: u32,
    },
    Replica,
}

pub fn model_of(cards: &NodeCards) -> Option<&'static CardModel> {
    if cards.memory_mib > 0 {
        model::find_with_memory(&cards.model, cards.memory_mib)
    } else {
        model::find(&cards.model)
    }
}

pub fn geometry(cards: &NodeCards) -> Option<&'static Geometry> {
    model_of(cards)?.mig
}

/// Cards of which nothing more is given.
pub fn out_of_use(cards: &NodeCards) -> CardSet {
    if cards.is_changing {
        return CardSet(u64::MAX);
    }
    cards.unhealthy.union(cards.closed)
}

/// How a slice without a card names an entry of the node's list: by the vendor's id of its profile, or by
/// its position from 128 on.
pub fn loose_code(cards: &NodeCards, at: usize) -> u8 {
    let name = cards.slices.keys().nth(at).expect("an entry of the list");
    let mut known = geometry(cards)
        .into_iter()
        .flat_map(|geometry| geometry.profiles);
    let profile = known.find(|profile| profile.names().any(|known| known == name));
    profile.map_or(128 + at as u8, |profile| profile.id)
}

/// The entry of the node's list that a slice without a card names.
fn loose_at(cards: &NodeCards, code: u8) -> usize {
    let mut entries = 0..cards.slices.len();
    let found = entries.find(|&at| loose_code(cards, at) == code);
    found.unwrap_or(usize::MAX)
}

pub fn memory(cards: &NodeCards) -> u32 {
    if cards.memory_mib > 0 {
        cards.memory_mib
    } else {
        model_of(cards).map_or(0, |model| model.memory_mib)
    }
}

pub fn mode(cards: &NodeCards, card: usize) -> &CardMode {
    match cards.modes.as_slice() {
        [] => &CardMode::Whole,
        [one] => one,
        modes => &modes[card],
    }
}

pub fn memory_for(cards: &NodeCards, ask: &CardRequest) -> u64 {
    memory_with(cards, ask.overhead.processes > 0)
}

/// Memory of a card that all shares together may take.
pub fn memory_with(cards: &NodeCards, reserving: bool) -> u64 {
    let all = memory(cards);
    if reserving {
        OverheadTable::DEFAULT.usable_mib(all, Inside::Card).into()
    } else {
        all.into()
    }
}

fn needed(cards: &NodeCards, ask: &CardRequest, mib: u32, inside: Inside) -> u32 {
    let capability = model_of(cards).and_then(|model| model.compute_capability);
    OverheadTable::DEFAULT
        .need_mib(mib, ask.overhead, inside, capability)
        .total
}

/// The kinds of part that a member needs on a node with these cards, one entry a part; `None`: the
/// cards cannot have them.
pub fn parts(cards: &NodeCards, ask: &CardRequest) -> Option<Vec<Part>> {
    Some(match &ask.want {
        CardWant::Whole(count) => vec![Part::Whole; *count as usize],
        CardWant::Replicas { count, .. } => vec![Part::Replica; *count as usize],
        CardWant::Shares {
            count,
            memory: wanted,
            compute_milli,
            ..
        } => {
            let mut compute_milli = *compute_milli;
            let memory_mib = match *wanted {
                ShareMemory::Mib(0) | ShareMemory::Milli(0) => 0,
                ShareMemory::Mib(mib) => needed(cards, ask, mib, Inside::Card).into(),
                // A part of something unknown is a part of the card.
                ShareMemory::Milli(milli) if memory(cards) == 0 => {
                    compute_milli = compute_milli.max(milli);
                    0
                }
                ShareMemory::Milli(milli) => {
                    (memory_for(cards, ask) * u64::from(milli) / 1000).max(1)
                }
            };
            let share = Part::Share {
                memory_mib,
                compute_milli,
            };
            vec![share; *count as usize]
        }
        CardWant::Slices { slices, .. } => {
            let profiles = geometry(cards)?.profiles;
            let mut parts = Vec::new();
            for slice in slices {
                let will_do = |profile: &Profile| match &slice.slice {
                    SliceChoice::Profile(name) => profile.names().any(|known| known == name),
                    SliceChoice::AtLeast {
                        memory_mib,
                        compute_slices,
                    } => {
                        let mib = needed(cards, ask, *memory_mib, Inside::MigInstance);
                        let usable = match ask.overhead.processes {
                            0 => profile.memory_mib,
                            _ => OverheadTable::DEFAULT
                                .usable_mib(profile.memory_mib, Inside::MigInstance),
                        };
                        usable >= mib && profile.compute_slices >= *compute_slices
                    }
                };
                let fitting: Vec<usize> = (0..profiles.len())
                    .filter(|&at| will_do(&profiles[at]))
                    .collect();
                if fitting.is_empty() {
                    return None;
                }
                for _ in 0..slice.count {
                    parts.push(Part::Slice(fitting.clone()));
                }
            }
            parts
        }
    })
}

pub fn apart(ask: &CardRequest) -> Apart {
    match &ask.want {
        CardWant::Whole(_) => Apart::Distinct,
        CardWant::Slices { cards, .. }
        | CardWant::Shares { cards, .. }
        | CardWant::Replicas { cards, .. } => *cards,
    }
}

pub fn passes(cards: &NodeCards, ask: &CardRequest) -> bool {
    let known = model_of(cards).map_or("", |model| model.name);
    let named = ask.models.is_empty()
        || ask
            .models
            .iter()
            .any(|model| *model == cards.model || model == known);
    named && memory(cards) >= ask.min_card_memory_mib
}

/// Whether a legal set of instances stays legal: no unit twice, engines suffice.
pub fn is_legal(geometry: &Geometry, instances: &[(usize, u8)]) -> bool {
    let mut units = 0_u32;
    let (mut ofa, mut decoders) = (0, 0);
    for &(profile, start) in instances {
        let profile = &geometry.profiles[profile];
        let covered = ((1_u32 << profile.units) - 1) << start;
        if !profile.starts.contains(&start) || units & covered != 0 {
            return false;
        }
        units |= covered;
        ofa += profile.engines.ofa;
        decoders += profile.engines.decoder;
    }
    // Decoders run out on the RTX PRO 6000 alone; elsewhere instances share what their slices bring.
    ofa <= geometry.engines.ofa && (geometry.units != 12 || decoders <= geometry.engines.decoder)
}

pub fn exists(mode: &CardMode, geometry: &Geometry, profile: usize, start: u8) -> bool {
    match mode {
        CardMode::MigDynamic => true,
        CardMode::MigStatic(instances) => instances.iter().any(|instance| {
            instance.start == start
                && geometry.profiles[profile]
                    .names()
                    .any(|name| name == instance.profile)
        }),
        _ => false,
    }
}

impl Room {
    pub fn new(node: &NodeSpec) -> Self {
        let cards = &node.cards[0];
        Self {
            cards: vec![Card::default(); cards.count as usize],
            loose: vec![0; cards.slices.len()],
            cpu: node.resources.get("cpu").copied().unwrap_or(0),
            groups: vec![],
        }
    }
}

/// A pod that runs on a node.
pub struct Runs<'a> {
    pub template: &'a Template,
    /// What it is counted with.
    pub devices: Devices,
    /// What it told.
    pub told: Option<Devices>,
}

impl Runs<'_> {
    /// What it told, if that can be an answer to its request at all: of its kind, and not more than it.
    fn answer(&self, spec: &NodeCards) -> Option<Devices> {
        let (told, ask) = (self.told?, self.template.cards.as_ref()?);
        let slices: Vec<Slice> = told.slices().collect();
        let is_slice = |slice: &Slice| ![Slice::SHARE, Slice::REPLICA].contains(&slice.profile);
        let of_kind = |slice: &Slice| match ask.want {
            CardWant::Whole(_) => false,
            CardWant::Slices { .. } => slice.card == Slice::NO_CARD || is_slice(slice),
            CardWant::Shares { .. } => slice.profile == Slice::SHARE,
            CardWant::Replicas { .. } => slice.profile == Slice::REPLICA,
        };
        let mut on: Vec<u32> = slices.iter().map(|slice| slice.card.into()).collect();
        on.retain(|&card| card < 64);
        on.sort_unstable();
        on.dedup();
        let is_answer = if let CardWant::Whole(count) = ask.want {
            slices.is_empty() && told.cards.len() <= count && !told.cards.is_empty()
        } else {
            let wanted = match &ask.want {
                CardWant::Slices { slices, .. } => slices.iter().map(|slice| slice.count).sum(),
                CardWant::Shares { count, .. } | CardWant::Replicas { count, .. } => *count,
                CardWant::Whole(_) => 0,
            };
            !slices.is_empty()
                && slices.len() as u32 <= wanted
                && slices.iter().all(of_kind)
                && (on.is_empty() || slices.iter().all(|slice| slice.card != Slice::NO_CARD))
                && told.cards.iter().collect::<Vec<_>>() == on
                && are_asked(spec, ask, &slices)
        };
        is_answer.then_some(told)
    }

    /// Parts that it is counted with and did not tell of.
    fn assumed(&self, spec: &NodeCards) -> Vec<u32> {
        let told = self.answer(spec);
        let mut told: Vec<Slice> = told.iter().flat_map(Devices::slices).collect();
        let slices = self.devices.slices().filter(|slice| {
            let at = told.iter().position(|other| other == slice);
            at.map(|at| told.remove(at)).is_none()
        });
        slices.map(|slice| slice.card.into()).collect()
    }

    /// Cards of which it told something that it is not counted with.
    fn missing(&self, spec: &NodeCards) -> Vec<u32> {
        let Some(told) = self.answer(spec) else {
            return vec![];
        };
        let here = |devices: &Devices, card: u32| -> Vec<Slice> {
            let on = devices
                .slices()
                .filter(|slice| u32::from(slice.card) == card);
            on.collect()
        };
        let cards = told.cards.iter().filter(|&card| {
            let mut counted = here(&self.devices, card);
            let all_there = here(&told, card).iter().all(|slice| {
                let at = counted.iter().position(|other| other == slice);
                at.map(|at| counted.remove(at)).is_some()
            });
            !(self.devices.cards.contains(card) && all_there)
        });
        cards.collect()
    }
}

/// Whether instances with a card are among those asked for, at starts that there are for them.
fn are_asked(spec: &NodeCards, ask: &CardRequest, slices: &[Slice]) -> bool {
    let (CardWant::Slices { .. }, Some(geometry)) = (&ask.want, geometry(spec)) else {
        return true;
    };
    let mut open = parts(spec, ask).unwrap_or_default();
    let mut known = slices.iter().filter(|slice| slice.card != Slice::NO_CARD);
    known.all(|slice| {
        let exists = |at: &usize| {
            let profile = &geometry.profiles[*at];
            profile.id == slice.profile && profile.starts.contains(&slice.start)
        };
        let serves = |part: &Part| match part {
            Part::Slice(profiles) => profiles.iter().any(exists),
            _ => false,
        };
        let at = open.iter().position(serves);
        at.map(|at| open.remove(at)).is_some()
    })
}

/// Whether pods have what they told, as far as nobody else can have it: cards that are there and that no
/// other pod told of or has, used as they may be. Errors name the pod's position.
pub fn are_believed(node: &NodeSpec, pods: &[Runs<'_>]) -> Result<(), usize> {
    let spec = &node.cards[0];
    for (at, pod) in pods.iter().enumerate() {
        let Some(told) = pod.answer(spec) else {
            continue;
        };
        let ask = pod.template.cards.as_ref().expect("it answers one");
        let missing = pod.missing(spec);
        for card in told.cards.iter().filter(|card| *card < spec.count) {
            let mut others = pods.iter().enumerate().filter(|(other, _)| *other != at);
            let is_claimed = others.any(|(_, other)| {
                let told = other.answer(spec);
                told.is_some_and(|told| told.cards.contains(card))
            });
            let slices = told.slices().filter(|slice| u32::from(slice.card) == card);
            let slices: Vec<Slice> = slices.collect();
            let mode = mode(spec, card as usize);
            let is_possible = match ask.want {
                CardWant::Whole(_) => true,
                CardWant::Shares { .. } => *mode == CardMode::Shared,
                CardWant::Replicas { .. } => matches!(mode, CardMode::Replicas(_)),
                CardWant::Slices { .. } => instances_can_be(spec, ask, mode, &told, &slices),
            };
            if is_possible && !is_claimed && missing.contains(&card) {
                return Err(at);
            }
        }
    }
    Ok(())
}

/// Whether told instances of one card can exist there together, and are what was asked for.
fn instances_can_be(
    spec: &NodeCards,
    ask: &CardRequest,
    mode: &CardMode,
    told: &Devices,
    here: &[Slice],
) -> bool {
    let (Some(geometry), Some(mut parts)) = (geometry(spec), parts(spec, ask)) else {
        return false;
    };
    let profile = |slice: &Slice| {
        let mut profiles = geometry.profiles.iter();
        profiles.position(|profile| profile.id == slice.profile)
    };
    // In doubt about which part is which, nothing is claimed.
    if has_choice(&parts) {
        return false;
    }
    let is_asked = told.slices().all(|slice| {
        let will_do = |part: &Part| match part {
            Part::Slice(profiles) => profile(&slice).is_some_and(|at| profiles.contains(&at)),
            _ => false,
        };
        let found = parts.iter().position(will_do);
        found.map(|at| parts.remove(at)).is_some()
    });
    let instances: Option<Vec<(usize, u8)>> = here
        .iter()
        .map(|slice| Some((profile(slice)?, slice.start)))
        .collect();
    let can_be = |instances: Vec<(usize, u8)>| {
        let exist = instances
            .iter()
            .all(|&(profile, start)| exists(mode, geometry, profile, start));
        exist && is_legal(geometry, &instances)
    };
    is_asked && instances.is_some_and(can_be)
}

/// Whether some part may be one of several profiles.
fn has_choice(parts: &[Part]) -> bool {
    parts
        .iter()
        .any(|part| matches!(part, Part::Slice(profiles) if profiles.len() > 1))
}

/// The cards of a node of which nobody knows what its pods use: of which a pod told something that it is
/// not counted with, and on which one can be whose devices are not those it told and that has too few,
/// or shares a card with others that together need more than it has. A pod that no such card could serve
/// may be on any; with instances on any that has some.
pub fn unknown_cards(node: &NodeSpec, pods: &[Runs<'_>]) -> Vec<u32> {
    let spec = &node.cards[0];
    let mut used = vec![Card::default(); spec.count as usize];
    let mut assumed = Vec::new();
    let mut unknown = Vec::new();
    for runs in pods {
        let Some(ask) = &runs.template.cards else {
            continue;
        };
        let mut missing = runs.missing(spec);
        missing.retain(|card| *card < spec.count);
        unknown.extend(&missing);
        let told = runs.answer(spec);
        let is_told = told == Some(runs.devices);
        let slices: Vec<Slice> = runs.devices.slices().collect();
        let given = match ask.want {
            CardWant::Whole(_) => runs.devices.cards.len() as usize,
            _ => slices.len(),
        };
        let parts = parts(spec, ask);
        let is_possible = parts.as_ref().is_some_and(|parts| match apart(ask) {
            Apart::Same if ask.whole_cards() == 0 => {
                (0..spec.count).any(|card| can_hold_all(spec, ask, parts, card))
            }
            _ => parts.iter().all(|part| {
                let mut cards = 0..spec.count;
                cards.any(|card| can_hold_all(spec, ask, std::slice::from_ref(part), card))
            }),
        });
        let needed = (ask.whole_cards() + ask.parts()) as usize;
        // A device plugin may give several parts of one card.
        let is_apart = matches!(ask.want, CardWant::Shares { .. }) && apart(ask) == Apart::Distinct;
        let is_crowded = told.is_none() && is_apart && runs.devices.cards.len() < ask.parts();
        if !is_told && !is_possible {
            // It is there all the same, on a card that cannot serve it: the one it told, or any.
            let may_have = |card: &u32| {
                let is_mig = matches!(
                    mode(spec, *card as usize),
                    CardMode::MigDynamic | CardMode::MigStatic(_)
                );
                is_mig || !matches!(ask.want, CardWant::Slices { .. })
            };
            if missing.is_empty() && (given < needed || is_crowded) {
                unknown.extend((0..spec.count).filter(may_have));
            }
            continue;
        }
        let Some(parts) = parts else {
            continue;
        };
        for (slice, part) in slices.iter().zip(&parts) {
            let Some(card) = used.get_mut(usize::from(slice.card)) else {
                continue;
            };
            match part {
                Part::Share {
                    memory_mib,
                    compute_milli,
                } => {
                    card.parts += 1;
                    card.memory_mib += memory_mib;
                    card.compute_milli += compute_milli;
                    card.reserving += u32::from(*memory_mib > 0 && ask.overhead.processes > 0);
                }
                Part::Replica => card.replicas += 1,
                _ => {}
            }
        }
        if !is_told && is_possible {
            let is_short = given < parts.len() || is_crowded;
            assumed.push((ask, parts.clone(), runs.assumed(spec), is_short));
        }
    }
    let is_overfull = |index: u32| {
        let card = &used[index as usize];
        match mode(spec, index as usize) {
            CardMode::Replicas(all) => card.replicas > *all,
            CardMode::Shared => {
                let all = memory_with(spec, card.reserving > 0);
                let is_crowded = card.parts > most_shares(spec);
                is_crowded
                    || (memory(spec) > 0 && card.memory_mib > all)
                    || card.compute_milli > 1000
            }
            _ => false,
        }
    };
    for (ask, parts, devices, is_short) in assumed {
        let mut on = devices.into_iter().filter(|card| *card < spec.count);
        if is_short || on.any(is_overfull) {
            unknown.extend((0..spec.count).filter(|&card| {
                let mut parts = parts.iter();
                parts.any(|part| can_hold_all(spec, ask, std::slice::from_ref(part), card))
            }));
        }
    }
    unknown.sort_unstable();
    unknown.dedup();
    unknown
}

/// Whether an empty card, healthy or not, can hold all these parts of a request together.
fn can_hold_all(cards: &NodeCards, ask: &CardRequest, parts: &[Part], card: u32) -> bool {
    let is_named = ask.only.is_none_or(|only| only.contains(card));
    let needs: Vec<(&CardRequest, &Part)> = parts.iter().map(|part| (ask, part)).collect();
    (is_named || parts.contains(&Part::Whole))
        && fits_on(cards, card as usize, &Card::default(), &needs)
}

/// Whether a card has room for all these parts beside what is on it, whoever has that.
pub fn fits_on(
    cards: &NodeCards,
    index: usize,
    now: &Card,
    needs: &[(&CardRequest, &Part)],
) -> bool {
    let mode = mode(cards, index);
    if needs.iter().any(|(_, part)| **part == Part::Whole) {
        let whole = matches!(
            mode,
            CardMode::Whole | CardMode::Shared | CardMode::MigDynamic
        );
        return whole && needs.len() == 1 && now.is_empty();
    }
    match mode {
        CardMode::Whole => false,
        CardMode::Replicas(all) => {
            needs.iter().all(|(_, part)| **part == Part::Replica)
                && now.replicas + needs.len() as u32 <= *all
        }
        CardMode::Shared => shares_fit(cards, now, needs),
        CardMode::MigDynamic | CardMode::MigStatic(_) => {
            let Some(geometry) = geometry(cards) else {
                return false;
            };
            let mut lists = Vec::new();
            for (_, part) in needs {
                let Part::Slice(profiles) = part else {
                    return false;
                };
                lists.push(profiles.as_slice());
            }
            slices_fit(geometry, mode, &lists, &mut now.instances.clone())
        }
    }
}

fn shares_fit(cards: &NodeCards, now: &Card, needs: &[(&CardRequest, &Part)]) -> bool {
    let (mut memory, mut compute) = (now.memory_mib, now.compute_milli);
    let mut reserving = now.reserving > 0;
    for (ask, part) in needs {
        let Part::Share {
            memory_mib,
            compute_milli,
        } = part
        else {
            return false;
        };
        memory += memory_mib;
        compute += compute_milli;
        reserving |= *memory_mib > 0 && ask.overhead.processes > 0;
    }
    let count = now.parts + needs.len() as u32;
    memory <= memory_with(cards, reserving) && compute <= 1000 && count <= most_shares(cards)
}

/// Shares of one card at most.
pub fn most_shares(cards: &NodeCards) -> u32 {
    match cards.most_shares {
        0 => u32::MAX,
        most => most,
    }
}

/// Whether instances of these profiles, one of each list, can exist beside those there are.
fn slices_fit(
    geometry: &Geometry,
    mode: &CardMode,
    lists: &[&[usize]],
    instances: &mut Vec<(usize, u8)>,
) -> bool {
    let Some((first, rest)) = lists.split_first() else {
        return true;
    };
    for &profile in *first {
        for &start in geometry.profiles[profile].starts {
            if !exists(mode, geometry, profile, start) {
                continue;
            }
            instances.push((profile, start));
            let fits = is_legal(geometry, instances) && slices_fit(geometry, mode, rest, instances);
            instances.pop();
            if fits {
                return true;
            }
        }
    }
    false
}

/// Adds what a pod holds to its node. Errors: something is given twice, or does not exist. `strict`:
/// it is a new member, and every condition of its request must hold.
pub fn take(
    node: &NodeSpec,
    room: &mut Room,
    template: &Template,
    devices: &Devices,
    strict: bool,
) -> Result<(), String> {
    let cards = &node.cards[0];
    let Some(ask) = &template.cards else {
        return Ok(());
    };
    room.cpu -= template.resources.get("cpu").copied().unwrap_or(0);
    if strict && room.cpu < 0 && template.resources.contains_key("cpu") {
        return Err("no processor time".into());
    }
    if !ask.share_group.is_empty() {
        room.groups.push(ask.share_group.clone());
    }
    if *devices == Devices::NONE && !strict {
        return Ok(());
    }
    if strict && !passes(cards, ask) {
        return Err("a card of another model or with too little memory".into());
    }
    let slices: Vec<Slice> = devices.slices().collect();
    let set: Vec<u32> = devices.cards.iter().collect();
    if strict || slices.is_empty() {
        for &card in &set {
            if card >= cards.count {
                return Err(format!("there is no card {card}"));
            }
            if strict && out_of_use(cards).contains(card) {
                return Err(format!("card {card} is not given"));
            }
            if strict && ask.only.is_some_and(|only| !only.contains(card)) {
                return Err(format!("card {card} is not one of those named"));
            }
        }
    }
    if let CardWant::Whole(count) = ask.want {
        if !slices.is_empty() {
            return Err("slices of a whole card".into());
        }
        if strict && set.len() != count as usize {
            return Err(format!("{} cards instead of {count}", set.len()));
        }
        if strict && !near(cards, &set, ask.near) {
            return Err(format!("cards {set:?} are not near each other"));
        }
        for &card in &set {
            let mode = mode(cards, card as usize);
            let whole = matches!(
                mode,
                CardMode::Whole | CardMode::Shared | CardMode::MigDynamic
            );
            if strict && !whole {
                return Err(format!("card {card} is not given as a whole"));
            }
            let card = &mut room.cards[card as usize];
            if !card.is_empty() {
                return Err("a card that somebody has".into());
            }
            card.whole = true;
        }
        return Ok(());
    }
    // Who runs may have some of what he asked for without a card that could have it all.
    let is_loose = !strict && slices.iter().all(|slice| slice.card == Slice::NO_CARD);
    let parts = parts(cards, ask).or(is_loose.then(Vec::new));
    let mut parts = parts.ok_or("parts that these cards do not have")?;
    if !is_loose && slices.len() > parts.len() || strict && slices.len() < parts.len() {
        return Err(format!("{} parts instead of {}", slices.len(), parts.len()));
    }
    let loose: Vec<(&String, &u32)> = cards.slices.iter().collect();
    let known: Vec<u32> = slices
        .iter()
        .filter(|slice| slice.card != Slice::NO_CARD)
        .map(|slice| slice.card.into())
        .collect();
    let mut union = known.clone();
    union.sort_unstable();
    union.dedup();
    if union != set {
        return Err(format!("cards {set:?} for slices on {union:?}"));
    }
    if strict {
        let different = known.iter().collect::<HashSet<_>>().len();
        let fine = match apart(ask) {
            Apart::Any => true,
            Apart::Distinct => different == known.len(),
            Apart::Same => different <= 1 && (known.len() == slices.len() || slices.len() == 1),
        };
        if !fine {
            return Err(format!("parts on cards {known:?}, wanted {:?}", apart(ask)));
        }
    }
    for slice in &slices {
        if slice.card == Slice::NO_CARD {
            let at = loose_at(cards, slice.profile);
            let Some((name, all)) = loose.get(at) else {
                return Err("a loose slice that does not exist".into());
            };
            room.loose[at] += 1;
            if strict && (cards.is_changing || room.loose[at] > **all) {
                return Err(format!("too many of the loose {name}"));
            }
            let will_do = |part: &Part| match part {
                Part::Slice(profiles) => profiles.iter().any(|&profile| {
                    geometry(cards).is_some_and(|geometry| {
                        geometry.profiles[profile]
                            .names()
                            .any(|known| known == *name)
                    })
                }),
                _ => false,
            };
            if strict && !parts.iter().any(will_do) {
                return Err(format!("a {name} that was not asked for"));
            }
            if strict
                && (ask.only.is_some() || !ask.share_group.is_empty() || !ask.exclusive.is_empty())
            {
                return Err("a slice of an unknown card, with conditions on the card".into());
            }
            continue;
        }
        let index = usize::from(slice.card);
        let Some(card) = room.cards.get_mut(index) else {
            return Err(format!("there is no card {index}"));
        };
        if card.whole {
            return Err(format!("card {index} is taken as a whole"));
        }
        if card.parts > 0 && card.exclusive != ask.exclusive {
            return Err(format!("card {index} is somebody's own"));
        }
        card.parts += 1;
        card.exclusive.clone_from(&ask.exclusive);
        if !ask.share_group.is_empty() && !card.groups.contains(&ask.share_group) {
            card.groups.push(ask.share_group.clone());
        }
        let mode = mode(cards, index);
        let found = match slice.profile {
            Slice::REPLICA => {
                card.replicas += 1;
                let CardMode::Replicas(all) = mode else {
                    return Err(format!("card {index} has no replicas"));
                };
                if strict && card.replicas > *all {
                    return Err(format!("card {index}: more than {all} replicas"));
                }
                parts.iter().position(|part| *part == Part::Replica)
            }
            Slice::SHARE => {
                let share = parts
                    .iter()
                    .position(|part| matches!(part, Part::Share { .. }));
                if let Some(Part::Share {
                    memory_mib,
                    compute_milli,
                }) = share.map(|at| &parts[at])
                {
                    card.memory_mib += memory_mib;
                    card.compute_milli += compute_milli;
                    card.reserving += u32::from(*memory_mib > 0 && ask.overhead.processes > 0);
                    let all = memory_with(cards, card.reserving > 0);
                    if strict && card.memory_mib > all {
                        return Err(format!("card {index}: {} of {all} MiB", card.memory_mib));
                    }
                    if strict && card.parts > most_shares(cards) {
                        return Err(format!("card {index}: {} shares", card.parts));
                    }
                    if strict && card.compute_milli > 1000 {
                        return Err(format!("card {index}: {} thousandths", card.compute_milli));
                    }
                }
                if *mode != CardMode::Shared {
                    return Err(format!("card {index} is not shared"));
                }
                share
            }
            id => {
                let geometry = geometry(cards).ok_or("a slice of a card without MIG")?;
                let profile = geometry
                    .profiles
                    .iter()
                    .position(|profile| profile.id == id);
                let profile = profile.ok_or("a profile that does not exist")?;
                if !exists(mode, geometry, profile, slice.start) {
                    return Err(format!("card {index} has no such instance"));
                }
                card.instances.push((profile, slice.start));
                if !is_legal(geometry, &card.instances) {
                    return Err(format!("card {index}: instances {:?}", card.instances));
                }
                parts.iter().position(
                    |part| matches!(part, Part::Slice(profiles) if profiles.contains(&profile)),
                )
            }
        };
        match found {
            Some(at) => drop(parts.remove(at)),
            None => return Err("a part that was not asked for".into()),
        }
    }
    if strict && !ask.share_group.is_empty() {
        let on: Vec<usize> = (0..room.cards.len())
            .filter(|&card| room.cards[card].groups.contains(&ask.share_group))
            .collect();
        if on.len() > 1 {
            return Err(format!("share group {} on cards {on:?}", ask.share_group));
        }
    }
    Ok(())
}

pub fn near(cards: &NodeCards, set: &[u32], near: Nearness) -> bool {
    let pairs = || {
        set.iter()
            .enumerate()
            .flat_map(move |(at, &a)| set[..at].iter().map(move |&b| (a, b)))
    };
    let Some(links) = &cards.links else {
        return near == Nearness::Any || set.len() < 2;
    };
    pairs().all(|(a, b)| match near {
        Nearness::Any => true,
        Nearness::NvlinkIsland => matches!(
            links.link(a, b),
            Some(Link::Nvlink(_) | Link::Xgmi { hops: 1 })
        ),
        Nearness::NumaNode => {
            links.numa_node(a).is_some() && links.numa_node(a) == links.numa_node(b)
        }
    })
}
