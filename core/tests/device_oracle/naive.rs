//! The naive judge: tries every card for every part of every member, with cards as plain lists of
//! what is on them.

use std::collections::{HashMap, HashSet};

use gangline::{
    gang::{GangSpec, GroupKind, PodSpec},
    request::{Apart, CardRequest, Template},
};

use super::world::World;
pub use crate::support::cards::{
    Card, Part, Room, apart, fits_on, geometry, is_legal, loose_code, memory, mode, most_shares,
    near, out_of_use, parts, passes, take,
};

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
        !cards.is_changing
            && kinds.iter().all(will_do)
            && self.rooms[node].loose[at] as usize + kinds.len() <= *all as usize
    }

    fn card_fits(&self, node: usize, index: usize, kinds: &[u8]) -> bool {
        let cards = &self.world.nodes[node].cards[0];
        let now = &self.rooms[node].cards[index];
        if out_of_use(cards).contains(index as u32) || now.whole {
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
        if kinds.iter().any(|&kind| ask(kind).exclusive != *owner) {
            return false;
        }
        fits_on(cards, index, now, &needs)
    }
}
