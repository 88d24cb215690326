//! Rules whose worth of a node comes from the usual mix of work: bid prices, the fragmentation
//! gradient, MIG flexibility and best fit.
//!
//! Translates between the cluster's classes and the states that [`price`](crate::price) knows, and
//! keeps each state's worth until the prices change. With several ways to give a member its devices
//! it tries all and takes the cheapest, the usual choice among equals. Without prices the rules that
//! need them decide as [`ScoringRule::Binpack`] does; the caller sees to that.

use alloc::{string::String, sync::Arc, vec::Vec};

use super::score;
use crate::{
    bits::CardSet,
    cluster::{CPU_IX, Cluster, class::Class, template::Compiled},
    device::{self, CardAsk, CardUse, Devices, Inventory, Pool, Wanted, mig::MigWorth},
    gang::ScoringRule,
    hash::Map,
    price::{CardState, Geometry, NodeKind, NodeKindIx, NodeState, Prices, fragmentation},
};

/// Prices and the names that their numbers stand for. Made by
/// [`Market::solve`](crate::engine::Market::solve), told to a scheduler with
/// [`Event::Prices`](crate::Event::Prices), kept in its snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PriceList {
    /// What cards are called, by [`NodeKind::model`]: product, memory, and how they are given.
    pub(crate) models: Vec<String>,
    /// Names of MIG profiles by the numbers of [`Geometry::placements`].
    pub(crate) profiles: Vec<String>,
    /// The prices.
    pub(crate) prices: Prices,
    /// The worth of cards that are cut, one table for each geometry.
    pub(crate) slices: Vec<MigWorth>,
}

impl PriceList {
    /// The prices themselves.
    pub fn prices(&self) -> &Prices {
        &self.prices
    }
}

/// Worths of states under the prices at hand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Worth {
    list: Option<Arc<PriceList>>,
    target: Option<fragmentation::Target>,
    /// By hardware and allocatable processor time: the kind, if the prices know it.
    kinds: Map<(u32, i64), Option<NodeKindIx>>,
    worths: Map<NodeState, i64>,
    fragments: Map<NodeState, i64>,
    ways: Vec<Devices>,
    /// For cards whose work nobody knows.
    plain: Vec<MigWorth>,
}

/// So many ways to give a member its devices are compared; the likeliest come first.
const MOST_WAYS: usize = 512;

/// One card's worth in prices.
const CARD: i64 = 1_000_000_000;

/// What it costs beside the worth to cut a card anew where another has an instance ready: less than any
/// compute slice, so that nobody gets a larger instance for it.
const CUT: i64 = CARD / 16;
/// Of the ways that differ by less, the one that breaks into fewer idle cards for shares is taken: prices
/// are no more exact than that, and a card that stays idle can become anything.
const NEARLY: i64 = CARD / 100;
/// What it costs to take as a whole a card that could be given in parts: less than any worth, so that the
/// other cards go first where prices know of nobody who shares.
const PARTABLE: i64 = CARD / 1_000;
/// What it costs to break into an idle card: more than any placement on cards that are in use.
const OPENED: i64 = 256 * CARD;

/// So many states are remembered before all are forgotten.
const MOST_STATES: usize = 1 << 16;

impl Worth {
    pub(crate) fn list(&self) -> Option<&Arc<PriceList>> {
        self.list.as_ref()
    }

    /// Takes new prices, or none.
    pub(crate) fn set(&mut self, list: Option<Arc<PriceList>>) {
        self.target = list
            .as_ref()
            .map(|list| fragmentation::Target::new(list.prices.mix()));
        self.list = list;
        self.kinds.clear();
        self.worths.clear();
        self.fragments.clear();
    }

    /// Whether the rule decides here rather than by free shares.
    pub(crate) fn rules(&self, rule: ScoringRule) -> bool {
        match rule {
            ScoringRule::Binpack | ScoringRule::Spread | ScoringRule::Weighted { .. } => false,
            ScoringRule::BestFit | ScoringRule::MigFlexibility => true,
            ScoringRule::BidPrice | ScoringRule::FragmentationGradient => self.list.is_some(),
        }
    }

    /// The cheapest way to place one more member on a node, and its price; `None`: its devices do
    /// not fit. What else it needs is not looked at.
    pub(crate) fn cheapest(
        &mut self,
        rule: ScoringRule,
        template: &Compiled,
        node: Room<'_>,
    ) -> Option<(Devices, i64)> {
        let before = self.state(&node, node.cards, node.free_milli_cpu());
        let left = node
            .free_milli_cpu()
            .saturating_sub(template.asks_for(CPU_IX));
        let Some(ask) = &template.cards else {
            let after = self.state(&node, node.cards, left);
            let price = self.price(
                rule,
                &node,
                before.as_ref(),
                after.as_ref(),
                node.cards,
                template,
            );
            return Some((Devices::NONE, price));
        };
        let mut ways = core::mem::take(&mut self.ways);
        ways.clear();
        if ask.plain && !node.cards.is_linked(ask.kind) {
            ways.extend(device::choose(node.cards, ask));
        } else {
            let wanted = Wanted {
                by_name: false,
                all_starts: true,
                most: MOST_WAYS,
            };
            device::choices(node.cards, ask, wanted, &mut ways);
        }
        let mut best: Option<(Devices, i64, i64)> = None;
        for devices in &ways {
            let mut cards = node.cards.clone();
            cards.take(ask, devices);
            let after = self.state(&node, &cards, left);
            let price = match rule {
                ScoringRule::MigFlexibility | ScoringRule::BidPrice if ask.asks_slices() => {
                    self.slice_cost(rule, ask, node.cards, &cards)
                }
                _ => self.price(
                    rule,
                    &node,
                    before.as_ref(),
                    after.as_ref(),
                    &cards,
                    template,
                ),
            };
            let opened = if ask.asks_shares() {
                i64::from(node.cards.idle_among(ask.kind, devices.cards))
            } else {
                0
            };
            let opening = match rule {
                ScoringRule::BidPrice if ask.whole() > 0 => {
                    PARTABLE * i64::from(node.cards.partable_among(ask.kind, devices.cards))
                }
                ScoringRule::BidPrice => NEARLY * opened,
                _ => 0,
            };
            let price = price
                .saturating_add(opening)
                .saturating_sub(node.cards.joined(ask, devices))
                .clamp(-score::DEAREST, score::DEAREST);
            if best.is_none_or(|(_, least, fewest)| (price, opened) < (least, fewest)) {
                best = Some((*devices, price, opened));
            }
        }
        self.ways = ways;
        best.map(|(devices, price, _)| (devices, price))
    }

    fn price(
        &mut self,
        rule: ScoringRule,
        node: &Room<'_>,
        before: Option<&NodeState>,
        after: Option<&NodeState>,
        cards_after: &Inventory,
        template: &Compiled,
    ) -> i64 {
        match rule {
            // MIG flexibility says nothing about other work than slices.
            ScoringRule::BestFit | ScoringRule::MigFlexibility => {
                node.left_over(cards_after, template)
            }
            _ => match (before, after, &self.list) {
                (Some(before), Some(after), Some(list)) => {
                    let list = list.clone();
                    if rule == ScoringRule::FragmentationGradient {
                        let (before, after) =
                            (self.fragment(&list, before), self.fragment(&list, after));
                        -fragmentation::Target::score(before, after)
                    } else {
                        let worth = self.worth(&list, before);
                        let worth_after = self.worth(&list, after);
                        list.prices.cost_of(worth, worth_after, after)
                    }
                }
                // Nodes that the prices do not know come last.
                _ => score::DEAREST,
            },
        }
    }

    /// What instances cost the cards that they are on, in billionths of a card. Of equal
    /// ones the instance that is ready comes first, and an idle card is opened only when no other will do, on any node.
    fn slice_cost(
        &mut self,
        rule: ScoringRule,
        ask: &CardAsk,
        before: &Inventory,
        after: &Inventory,
    ) -> i64 {
        let (Some(pool), Some(pool_after)) = (before.pool(ask.kind), after.pool(ask.kind)) else {
            return 0;
        };
        let Some(geometry) = pool.hardware.geometry() else {
            return 0;
        };
        if !self.plain.iter().any(|table| table.geometry() == geometry) {
            self.plain.push(MigWorth::plain(geometry));
        }
        let solved = self.list.as_ref().filter(|_| rule == ScoringRule::BidPrice);
        let solved = solved.iter().flat_map(|list| &list.slices);
        let mut tables = solved.chain(&self.plain);
        let Some(table) = tables.find(|table| table.geometry() == geometry) else {
            return 0;
        };
        let states = before.states(pool).iter().zip(after.states(pool_after));
        let states = (0_u32..).zip(states);
        let changed = states.filter(|(_, (before, after))| before.parts != after.parts);
        let cost = changed.map(|(card, (before, after))| {
            let is_ready = !pool.hardware.whole.contains(card);
            if is_ready {
                // What it leaves are the instances that are there, wherever they lie: it costs its size.
                let taken = after.mig.mask & !before.mig.mask;
                let units = i64::from(geometry.units.max(1));
                return CARD / units * i64::from(taken.count_ones());
            }
            let lost = table
                .worth(before.mig)
                .saturating_sub(table.worth(after.mig));
            let whole = MigWorth::SLICE * i64::from(geometry.compute_slices.max(1));
            let cost = i128::from(lost) * i128::from(CARD) / i128::from(whole);
            let beside = if before.parts == 0 { OPENED } else { CUT };
            i64::try_from(cost).unwrap_or(0).saturating_add(beside)
        });
        cost.fold(0, i64::saturating_add)
    }

    fn worth(&mut self, list: &PriceList, state: &NodeState) -> i64 {
        if let Some(&worth) = self.worths.get(state) {
            return worth;
        }
        if self.worths.len() >= MOST_STATES {
            self.worths.clear();
        }
        let worth = list.prices.worth(state);
        self.worths.insert(state.clone(), worth);
        worth
    }

    fn fragment(&mut self, list: &PriceList, state: &NodeState) -> i64 {
        if let Some(&fragment) = self.fragments.get(state) {
            return fragment;
        }
        if self.fragments.len() >= MOST_STATES {
            self.fragments.clear();
        }
        let target = self.target.as_ref();
        let fragment = target.map_or(0, |target| target.fragment(state, list.prices.catalogue()));
        self.fragments.insert(state.clone(), fragment);
        fragment
    }

    /// A node's state in the terms of the prices; `None`: they do not know such nodes.
    fn state(&mut self, node: &Room<'_>, cards: &Inventory, milli_cpu: i64) -> Option<NodeState> {
        let list = self.list.as_ref()?;
        let pool = main_pool(cards);
        let key = (
            pool.map_or(u32::MAX, |pool| pool.hardware.id),
            node.milli_cpu(),
        );
        let kind = *self.kinds.entry(key).or_insert_with(|| {
            let kind = kind_of(&list.models, pool)?;
            let same = |known: &NodeKind| known.model == kind.0 && known.cards == kind.1;
            let at = list
                .prices
                .catalogue()
                .kinds
                .iter()
                .position(|known| same(known) && known.milli_cpu == key.1)?;
            Some(at as NodeKindIx)
        });
        Some(state_of(kind?, cards, milli_cpu))
    }
}

/// Model and number of cards of a pool, as far as models are known.
fn kind_of(models: &[String], pool: Option<&Pool>) -> Option<(u16, u16)> {
    let (name, count) = model_of(pool);
    let model = models.iter().position(|known| known == name)?;
    Some((model as u16, count))
}

/// What prices call a node's cards, and how many there are.
pub(crate) fn model_of(pool: Option<&Pool>) -> (&str, u16) {
    pool.map_or(("", 0), |pool| {
        (pool.hardware.priced_as.as_str(), pool.all.len() as u16)
    })
}

/// The cards that prices look at: the kind with the most.
pub(crate) fn main_pool(cards: &Inventory) -> Option<&Pool> {
    let pools = cards.pools().iter().rev();
    pools.max_by_key(|pool| pool.all.len())
}

/// A state of a kind.
pub(crate) fn state_of(kind: NodeKindIx, cards: &Inventory, milli_cpu: i64) -> NodeState {
    let pool = main_pool(cards);
    let all = pool.map_or(CardSet::EMPTY, |pool| pool.all);
    let states = all
        .iter()
        .map(|card| match pool.map(|pool| cards.card_use(pool, card)) {
            Some(CardUse::Whole) => CardState::WHOLE,
            Some(CardUse::Free) => CardState::FREE,
            Some(CardUse::Left(milli)) => CardState::left(milli),
            Some(CardUse::Sliced(taken)) => CardState::sliced(taken),
            Some(CardUse::Gone) | None => CardState::left(0),
        });
    NodeState::new(kind, milli_cpu, states)
}

/// The geometry of a pool's cards in the terms of the prices, with profiles numbered by name.
pub(crate) fn geometry_of(pool: &Pool, profiles: &mut Vec<String>) -> Option<Geometry> {
    let geometry = pool
        .hardware
        .geometry()
        .filter(|_| pool.hardware.has_slices())?;
    let mut number = |name: &str| {
        let at = profiles.iter().position(|known| known == name);
        at.unwrap_or_else(|| {
            profiles.push(name.into());
            profiles.len() - 1
        }) as u16
    };
    let placements = geometry.placements().filter_map(|(ix, start)| {
        let profile = geometry.get(ix)?;
        Some((number(profile.name), geometry.units_of(ix, start)))
    });
    Some(Geometry {
        units: geometry.units,
        placements: placements.collect(),
    })
}

/// What is free on a node or a class of nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room<'a> {
    pub(crate) cards: &'a Inventory,
    pub(crate) free: &'a [i64],
    pub(crate) allocatable: &'a [i64],
}

impl<'a> Room<'a> {
    pub(crate) fn of_class(class: &'a Class, allocatable: &'a [i64]) -> Self {
        Self {
            cards: &class.cards,
            free: &class.free,
            allocatable,
        }
    }

    fn free_milli_cpu(&self) -> i64 {
        self.free.get(usize::from(CPU_IX)).copied().unwrap_or(0)
    }

    fn milli_cpu(&self) -> i64 {
        self.allocatable
            .get(usize::from(CPU_IX))
            .copied()
            .unwrap_or(0)
    }

    /// What best fit makes small: free cards and processor time afterwards, in thousandths of eight
    /// cards and of what the node has.
    fn left_over(&self, cards_after: &Inventory, template: &Compiled) -> i64 {
        let cpu = self
            .free_milli_cpu()
            .saturating_sub(template.asks_for(CPU_IX));
        let cpu = i128::from(cpu.max(0)) * 1000 / i128::from(self.milli_cpu().max(1));
        let left = cards_after.left();
        let cards = i64::from(left.free) * 1000 + i64::from(left.milli);
        cards / 8 + cpu as i64
    }
}

/// The devices that a member gets on a node under a rule.
pub(crate) fn choose(
    worth: &mut Worth,
    rule: ScoringRule,
    cluster: &Cluster,
    template: &Compiled,
    ask: &CardAsk,
    node: crate::cluster::NodeIx,
) -> Option<Devices> {
    let cards = &cluster.node(node).cards;
    if !worth.rules(rule) {
        return device::choose(cards, ask);
    }
    let allocatable = cluster
        .node(node)
        .class
        .map(|class| cluster.allocatable_of(class));
    let room = Room {
        cards,
        free: cluster.free_of(node),
        allocatable: allocatable.unwrap_or_default(),
    };
    worth
        .cheapest(rule, template, room)
        .map(|(devices, _)| devices)
}
