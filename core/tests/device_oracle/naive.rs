//! The naive judge: tries every card for every part of every member, by rules written from their
//! description alone. It shares nothing with the device layer but the published tables of profiles
//! and overheads; cards are plain lists of what is on them.

use std::collections::{HashMap, HashSet};

use gangline::{
    cluster::{NodeCards, NodeSpec, spec::CardMode},
    device::{
        Devices, Slice,
        links::{Link, Nearness},
        mig::{Geometry, Profile},
        model::{self, CardModel},
        overhead::{Inside, OverheadTable},
    },
    gang::{GangSpec, GroupKind, PodSpec},
    request::{Apart, CardRequest, CardWant, ShareMemory, SliceChoice, Template},
};

use super::world::World;

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
    fn is_empty(&self) -> bool {
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

fn memory_for(cards: &NodeCards, ask: &CardRequest) -> u64 {
    memory_with(cards, ask.overhead.processes > 0)
}

/// Memory of a card that all shares together may take.
fn memory_with(cards: &NodeCards, reserving: bool) -> u64 {
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
                        profile.memory_mib >= mib && profile.compute_slices >= *compute_slices
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

fn passes(cards: &NodeCards, ask: &CardRequest) -> bool {
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

fn exists(mode: &CardMode, geometry: &Geometry, profile: usize, start: u8) -> bool {
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
            if strict && cards.unhealthy.contains(card) {
                return Err(format!("card {card} is unhealthy"));
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
    let mut parts = parts(cards, ask).ok_or("parts that these cards do not have")?;
    if slices.len() != parts.len() {
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
            let at = usize::from(slice.profile);
            let Some((name, all)) = loose.get(at) else {
                return Err("a loose slice that does not exist".into());
            };
            room.loose[at] += 1;
            if room.loose[at] > **all {
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
                if card.replicas > *all {
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
                    if card.memory_mib > all {
                        return Err(format!("card {index}: {} of {all} MiB", card.memory_mib));
                    }
                    if card.compute_milli > 1000 {
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

/// A kind of part of one template.
struct Kind {
    template: usize,
    /// By node.
    needs: Vec<Option<Part>>,
}

/// Where the parts of a member may go: node, then (card, kind); cards from [`LOOSE`] on are loose
/// slices.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Way {
    node: usize,
    parts: Vec<(u8, u8)>,
}

const LOOSE: u8 = 100;

/// One gang's question.
pub struct Question<'w> {
    world: &'w World,
    rooms: &'w [Room],
    templates: Vec<&'w Template>,
    kinds: Vec<Kind>,
    /// By template.
    ways: Vec<Vec<Way>>,
    /// By member that is needed, alike ones next to each other.
    members: Vec<usize>,
    /// Kinds of parts by node and card.
    state: Vec<Vec<Vec<u8>>>,
    cpu: Vec<i64>,
    dead: HashSet<Vec<u8>>,
    fits: HashMap<(usize, u8, Vec<u8>), bool>,
    pub steps: u64,
}

/// Members of a role that a gang needs at least.
fn least(gang: &GangSpec, role: &str) -> usize {
    fn find(group: &gangline::gang::Group, role: &str) -> Option<usize> {
        match &group.kind {
            GroupKind::Role(found) => (group.name == role).then_some(found.min as usize),
            GroupKind::Group { children, .. } => {
                children.iter().find_map(|child| find(child, role))
            }
        }
    }
    find(&gang.root, role).unwrap_or(0)
}

impl<'w> Question<'w> {
    /// About a gang's (or single pod's) fewest members in this state of the nodes.
    pub fn new(world: &'w World, rooms: &'w [Room], name: &str) -> Self {
        let gang = world.gangs.iter().find(|gang| gang.key.name == name);
        let mut question = Self {
            world,
            rooms,
            templates: vec![],
            kinds: vec![],
            ways: vec![],
            members: vec![],
            state: rooms
                .iter()
                .map(|room| vec![vec![]; room.cards.len() + room.loose.len()])
                .collect(),
            cpu: rooms.iter().map(|room| room.cpu).collect(),
            dead: HashSet::new(),
            fits: HashMap::new(),
            steps: 0,
        };
        let pods: Vec<&PodSpec> = world.with_gang(name).collect();
        let mut by_role: Vec<(&str, usize)> = Vec::new();
        for pod in &pods {
            let taken = match by_role.iter_mut().find(|(role, _)| *role == pod.role) {
                Some((_, taken)) => taken,
                None => {
                    by_role.push((&pod.role, 0));
                    &mut by_role.last_mut().expect("just pushed").1
                }
            };
            if gang.is_some_and(|gang| *taken >= least(gang, &pod.role)) {
                continue;
            }
            *taken += 1;
            let found = question
                .templates
                .iter()
                .position(|known| **known == *pod.template);
            let template = found.unwrap_or_else(|| {
                question.templates.push(&pod.template);
                question.templates.len() - 1
            });
            question.members.push(template);
        }
        question.members.sort_unstable();
        for template in 0..question.templates.len() {
            question.list_ways(template);
        }
        question
    }

    fn list_ways(&mut self, template: usize) {
        let ask = self.templates[template]
            .cards
            .as_ref()
            .expect("all members want cards");
        let nodes = self.world.nodes.len();
        let first = self.kinds.len();
        let of_nodes: Vec<Option<Vec<Part>>> = self
            .world
            .nodes
            .iter()
            .map(|node| parts(&node.cards[0], ask).filter(|_| passes(&node.cards[0], ask)))
            .collect();
        let count = of_nodes.iter().flatten().map(Vec::len).max().unwrap_or(0);
        // Alike parts are one kind.
        let mut kind_of = Vec::new();
        for part in 0..count {
            let needs: Vec<Option<Part>> = of_nodes
                .iter()
                .map(|parts| parts.as_ref().and_then(|parts| parts.get(part).cloned()))
                .collect();
            let known = self.kinds[first..]
                .iter()
                .position(|kind| kind.needs == needs);
            kind_of.push(known.map_or(self.kinds.len(), |at| first + at) as u8);
            if known.is_none() {
                self.kinds.push(Kind { template, needs });
            }
        }
        let mut ways = Vec::new();
        for node in 0..nodes {
            if of_nodes[node].is_some() {
                let mut chosen = Vec::new();
                self.list_on(node, ask, &kind_of, 0, &mut chosen, &mut ways);
            }
        }
        self.ways.push(ways);
    }

    fn list_on(
        &self,
        node: usize,
        ask: &CardRequest,
        kinds: &[u8],
        at: usize,
        chosen: &mut Vec<(u8, u8)>,
        ways: &mut Vec<Way>,
    ) {
        let cards = &self.world.nodes[node].cards[0];
        if at == kinds.len() {
            let set: Vec<u32> = chosen.iter().map(|&(card, _)| card.into()).collect();
            let whole = ask.whole_cards() > 0;
            let loose = chosen.iter().filter(|&&(card, _)| card >= LOOSE).count();
            let way = Way {
                node,
                parts: chosen.clone(),
            };
            if (!whole || near(cards, &set, ask.near)) && (loose == 0 || loose == chosen.len()) {
                ways.push(way);
            }
            return;
        }
        let all_cards = 0..cards.count as u8;
        let all_loose = LOOSE..LOOSE + cards.slices.len() as u8;
        for card in all_cards.chain(all_loose) {
            // Alike parts in one order.
            if at > 0 && kinds[at - 1] == kinds[at] && chosen[at - 1].0 > card {
                continue;
            }
            let again = chosen.iter().any(|&(other, _)| other == card);
            let fine = match apart(ask) {
                Apart::Distinct => !again || card >= LOOSE,
                Apart::Same => (chosen.is_empty() || again) && (card < LOOSE || kinds.len() == 1),
                Apart::Any => true,
            };
            let named = card >= LOOSE || ask.only.is_none_or(|only| only.contains(card.into()));
            let bare = ask.only.is_none() && ask.share_group.is_empty() && ask.exclusive.is_empty();
            if !fine || !named || (card >= LOOSE && !bare) {
                continue;
            }
            chosen.push((card, kinds[at]));
            self.list_on(node, ask, kinds, at + 1, chosen, ways);
            chosen.pop();
        }
    }

    /// Whether all the needed members fit.
    pub fn is_feasible(&mut self) -> bool {
        self.try_from(0, 0)
    }

    fn try_from(&mut self, at: usize, from: usize) -> bool {
        let Some(&template) = self.members.get(at) else {
            return true;
        };
        self.steps += 1;
        let from = if at > 0 && self.members[at - 1] == template {
            from
        } else {
            0
        };
        let mut key = vec![at as u8, from as u8, (from >> 8) as u8];
        for (node, cards) in self.state.iter().enumerate() {
            key.extend(self.cpu[node].to_le_bytes());
            for card in cards {
                key.extend(card);
                key.push(u8::MAX);
            }
        }
        if self.dead.contains(&key) {
            return false;
        }
        let cpu = self.templates[template]
            .resources
            .get("cpu")
            .copied()
            .unwrap_or(0);
        for index in from..self.ways[template].len() {
            let way = self.ways[template][index].clone();
            if cpu > 0 && self.cpu[way.node] < cpu {
                continue;
            }
            if !self.group_allows(template, &way) {
                continue;
            }
            let before = self.state[way.node].clone();
            let mut fits = true;
            for &(card, kind) in &way.parts {
                let slot = self.slot(way.node, card);
                self.state[way.node][slot].push(kind);
                self.state[way.node][slot].sort_unstable();
            }
            for &(card, _) in &way.parts {
                fits = fits && self.fits(way.node, card);
            }
            if fits {
                self.cpu[way.node] -= cpu;
                if self.try_from(at + 1, index) {
                    return true;
                }
                self.cpu[way.node] += cpu;
            }
            self.state[way.node] = before;
        }
        self.dead.insert(key);
        false
    }

    fn slot(&self, node: usize, card: u8) -> usize {
        if card >= LOOSE {
            self.rooms[node].cards.len() + usize::from(card - LOOSE)
        } else {
            card.into()
        }
    }

    /// Members of a share group are on one node, and there on one card.
    fn group_allows(&self, template: usize, way: &Way) -> bool {
        let group = |template: usize| {
            &self.templates[template]
                .cards
                .as_ref()
                .expect("cards")
                .share_group
        };
        let mine = group(template);
        if mine.is_empty() {
            return true;
        }
        let planned = |node: usize, card: usize| {
            let on = &self.state[node][card];
            on.iter()
                .any(|&kind| group(self.kinds[usize::from(kind)].template) == mine)
        };
        let mut nodes = Vec::new();
        let mut cards = Vec::new();
        for (node, room) in self.rooms.iter().enumerate() {
            for card in 0..room.cards.len() {
                if room.cards[card].groups.contains(mine) || planned(node, card) {
                    nodes.push(node);
                    if node == way.node {
                        cards.push(card);
                    }
                }
            }
            if room.groups.contains(mine) {
                nodes.push(node);
            }
        }
        let on_card = |&card: &usize| {
            way.parts
                .iter()
                .all(|&(other, _)| usize::from(other) == card)
        };
        (nodes.is_empty() || nodes.contains(&way.node)) && cards.iter().all(on_card)
    }

    fn fits(&mut self, node: usize, card: u8) -> bool {
        let slot = self.slot(node, card);
        let kinds = self.state[node][slot].clone();
        if let Some(&known) = self.fits.get(&(node, card, kinds.clone())) {
            return known;
        }
        let fits = if card >= LOOSE {
            self.loose_fits(node, usize::from(card - LOOSE), &kinds)
        } else {
            self.card_fits(node, card.into(), &kinds)
        };
        self.fits.insert((node, card, kinds), fits);
        fits
    }

    fn loose_fits(&self, node: usize, at: usize, kinds: &[u8]) -> bool {
        let cards = &self.world.nodes[node].cards[0];
        let (name, all) = cards.slices.iter().nth(at).expect("a loose slice");
        let will_do = |&kind: &u8| match &self.kinds[usize::from(kind)].needs[node] {
            Some(Part::Slice(profiles)) => geometry(cards).is_some_and(|geometry| {
                profiles.iter().any(|&profile| {
                    geometry.profiles[profile]
                        .names()
                        .any(|known| known == name)
                })
            }),
            _ => false,
        };
        kinds.iter().all(will_do)
            && self.rooms[node].loose[at] as usize + kinds.len() <= *all as usize
    }

    fn card_fits(&self, node: usize, index: usize, kinds: &[u8]) -> bool {
        let cards = &self.world.nodes[node].cards[0];
        let now = &self.rooms[node].cards[index];
        if cards.unhealthy.contains(index as u32) || now.whole {
            return false;
        }
        let ask = |kind: u8| {
            let template = self.kinds[usize::from(kind)].template;
            self.templates[template].cards.as_ref().expect("cards")
        };
        let owner = if now.parts > 0 {
            &now.exclusive
        } else {
            &ask(kinds[0]).exclusive
        };
        let needs: Vec<(&CardRequest, &Part)> = kinds
            .iter()
            .filter_map(|&kind| {
                Some((
                    ask(kind),
                    self.kinds[usize::from(kind)].needs[node].as_ref()?,
                ))
            })
            .collect();
        if needs.iter().any(|(_, part)| **part == Part::Whole) {
            let whole = matches!(
                mode(cards, index),
                CardMode::Whole | CardMode::Shared | CardMode::MigDynamic
            );
            return whole && needs.len() == 1 && now.is_empty();
        }
        if kinds.iter().any(|&kind| ask(kind).exclusive != *owner) {
            return false;
        }
        match mode(cards, index) {
            CardMode::Whole => false,
            CardMode::Replicas(all) => {
                needs.iter().all(|(_, part)| **part == Part::Replica)
                    && now.replicas + needs.len() as u32 <= *all
            }
            CardMode::Shared => shares_fit(cards, now, &needs),
            CardMode::MigDynamic | CardMode::MigStatic(_) => {
                let Some(geometry) = geometry(cards) else {
                    return false;
                };
                let mut lists = Vec::new();
                for (_, part) in &needs {
                    let Part::Slice(profiles) = part else {
                        return false;
                    };
                    lists.push(profiles.as_slice());
                }
                let mut instances = now.instances.clone();
                slices_fit(geometry, mode(cards, index), &lists, &mut instances)
            }
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
    memory <= memory_with(cards, reserving) && compute <= 1000
}

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
