//! What is usually asked for and what is there: the input of bid prices, and the way back.
//!
//! [`Scheduler::market`] reads the state, [`Market::solve`] makes prices of it (on any thread, at any
//! time), and [`Event::Prices`](super::Event::Prices) tells them to the scheduler. So the clock of
//! re-solving is the caller's, and the same events still give the same decisions.

use alloc::{format, string::String, sync::Arc, vec::Vec};

mod work;

use super::Scheduler;
use crate::{
    cluster::{CPU_IX, template::TemplateIx},
    device::mig::{self, MigWorth},
    gang::ScoringRule,
    hash::Map,
    place::worth::{self, PriceList},
    price::{ARRIVAL, Catalogue, Demand, Effort, Mix, NodeKind, NodeState, Prices, fragmentation},
    request::{CPU, Template},
};

/// A profile's part of the mix is told in so many parts of the one that is asked for most.
const MIX_PARTS: u128 = 256;

/// Each time prices come, so much of what was seen before is forgotten: 1/64, so that the mix is of
/// the last few thousand members.
const FORGET: u32 = 6;

/// Supply and usual demand, as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Market {
    models: Vec<String>,
    profiles: Vec<String>,
    catalogue: Catalogue,
    mix: Mix,
    fleet: Vec<(NodeState, u64)>,
    /// How cards can be cut, each once.
    slices: Vec<&'static mig::Geometry>,
}

impl Market {
    /// The work that is usually asked for.
    pub fn mix(&self) -> &Mix {
        &self.mix
    }

    /// The states that nodes are in, each with how many are.
    pub fn fleet(&self) -> &[(NodeState, u64)] {
        &self.fleet
    }

    /// How much of what is idle the usual work cannot use where it lies, and how much is idle at all, both
    /// in millionths of a card: the fragment of [`fragmentation`].
    pub fn fragmentation(&self) -> (u64, u64) {
        let target = fragmentation::Target::new(&self.mix);
        let sum = |of: &dyn Fn(&NodeState) -> i64| {
            let nodes = self.fleet.iter();
            let parts =
                nodes.map(|(state, count)| of(state).max(0).cast_unsigned().saturating_mul(*count));
            parts.fold(0, u64::saturating_add)
        };
        let fragment = sum(&|state| target.fragment(state, &self.catalogue));
        let idle = sum(&|state| state.idle_milli(&self.catalogue) * 1000);
        (fragment, idle)
    }

    /// Prices for it, starting from earlier ones if there are some. For the cost see
    /// [`Prices::solve`].
    pub fn solve(&self, previous: Option<&PriceList>, effort: Effort) -> PriceList {
        let same = |list: &&PriceList| {
            list.models == self.models
                && list.prices.catalogue() == &self.catalogue
                && list.profiles == self.profiles
        };
        let tables = previous.map_or(&[][..], |list| &list.slices);
        let previous = previous.filter(same).map(|list| &list.prices);
        PriceList {
            models: self.models.clone(),
            profiles: self.profiles.clone(),
            prices: Prices::solve(&self.catalogue, &self.mix, &self.fleet, previous, effort),
            slices: self
                .slices
                .iter()
                .map(|&geometry| self.worth_of(geometry, tables))
                .collect(),
        }
    }

    /// The worth of cards with a geometry for the slices of the mix; an earlier table if there is one
    /// for the same.
    fn worth_of(&self, geometry: &'static mig::Geometry, earlier: &[MigWorth]) -> MigWorth {
        let asked = |name: &str| -> u64 {
            let types = self.mix.types().iter();
            let weights = types.filter_map(|(work, weight)| match work.demand {
                Demand::Slice { profile } => {
                    let known = self.profiles.get(usize::from(profile))?;
                    (known == name).then_some(*weight)
                }
                _ => None,
            });
            weights.fold(0, u64::saturating_add)
        };
        let weights: Vec<u64> = geometry
            .profiles
            .iter()
            .map(|one| asked(one.name))
            .collect();
        // Only ratios matter, and these roughly: a mix that hardly changes keeps its table.
        let most = weights.iter().copied().max().unwrap_or(0).max(1);
        let part = |weight: u64| (u128::from(weight) * MIX_PARTS).div_ceil(most.into()) as u32;
        let weights: Vec<u32> = weights.into_iter().map(part).collect();
        let market = mig::Market::default();
        let same = |table: &&MigWorth| table.geometry().name == geometry.name;
        match earlier.iter().find(same) {
            Some(table) => table.solve_again(&weights, market),
            None => MigWorth::solve(geometry, &weights, market),
        }
    }
}

/// What prices are to be made of.
#[derive(Clone, Debug)]
pub struct DuePrices {
    market: Market,
    previous: Option<Arc<PriceList>>,
}

impl DuePrices {
    /// Whether there are none yet, so that whatever needs them decides as
    /// [`ScoringRule::Binpack`] does until they come.
    pub fn are_first(&self) -> bool {
        self.previous.is_none()
    }

    /// Makes them. For the cost see [`Prices::solve`]; the first ones take 30 times as long as others.
    pub fn solve(self) -> PriceList {
        let effort = match self.previous {
            None => Effort::FIRST,
            Some(_) => Effort::FOLLOW,
        };
        self.market.solve(self.previous.as_deref(), effort)
    }
}

/// A kind of work of a usual mix that a person states.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct UsualWork {
    /// What one member needs.
    pub template: Arc<Template>,
    /// How often it is asked for, relative to the others.
    pub weight: u32,
}

/// Work that was asked for so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// Each kind of work with its weight, in order of first arrival.
    works: Vec<(Arc<Template>, u64)>,
    by_work: Map<Arc<Template>, u32>,
    by_template: Vec<Option<u32>>,
}

impl Asked {
    /// From the list that [`list`](Self::list) gives.
    pub(super) fn from_list(list: Vec<(Arc<Template>, u64)>) -> Self {
        let mut asked = Self::default();
        for (work, weight) in list {
            let index = asked.index_of(work);
            asked.works[index as usize].1 = weight;
        }
        asked
    }

    /// Each kind of work with its weight, in an order that does not depend on when it came.
    pub(super) fn list(&self) -> Vec<(Arc<Template>, u64)> {
        let mut list = self.works.clone();
        list.retain(|&(_, weight)| weight > 0);
        list.sort_by_cached_key(|(work, _)| format!("{work:?}"));
        list
    }

    fn index_of(&mut self, work: Arc<Template>) -> u32 {
        let next = self.works.len() as u32;
        let works = &mut self.works;
        *self.by_work.entry(work).or_insert_with_key(|work| {
            works.push((work.clone(), 0));
            next
        })
    }
}

/// What a kind of work is to prices: neither whose it is nor whom it wants near.
fn without_place(template: &Template) -> Arc<Template> {
    let mut cards = template.cards.clone();
    if let Some(cards) = &mut cards {
        cards.share_group.clear();
        cards.exclusive.clear();
    }
    let resources = template.resources.iter().filter(|(name, _)| *name == CPU);
    Arc::new(Template {
        resources: resources
            .map(|(name, &amount)| (name.clone(), amount))
            .collect(),
        cards,
        nodes: template.nodes.clone(),
        ..Template::default()
    })
}

/// Prices are due again when members were placed for one in so many cards: often and a little follows
/// better than seldom and much, see `docs/pricing.md`.
const CARDS_A_PRICE: u32 = 62;

/// But not more often than this.
const PRICES_LAST: u32 = 10;

impl Scheduler {
    /// Whether a rule that somebody uses needs prices, and there are none or old ones. Cost: the
    /// gangs.
    pub fn prices_due(&self) -> bool {
        let old = self.prices().is_none() || self.placed_since_prices >= self.prices_last;
        old && (self.config.scoring.needs_prices()
            || self.gangs.iter().any(|(_, gang)| {
                let spec = gang.spec.as_ref();
                spec.and_then(|spec| spec.scoring)
                    .is_some_and(ScoringRule::needs_prices)
            }))
    }

    /// What prices are to be made of, if they are due: to be solved on any thread and told with
    /// [`Event::Prices`](super::Event::Prices). Cost: that of [`market`](Self::market).
    pub fn due_prices(&mut self) -> Option<DuePrices> {
        self.prices_due().then(|| DuePrices {
            market: self.market(),
            previous: self.search.worth.list().cloned(),
        })
    }

    /// Makes prices now, if they are due, and takes them: for drivers that have the time, such as
    /// simulations. A live scheduler solves [`due_prices`](Self::due_prices) beside its decisions.
    pub fn price_if_due(&mut self) {
        if let Some(due) = self.due_prices() {
            self.take_prices(due.solve());
        }
    }

    /// The prices that decide now.
    pub fn prices(&self) -> Option<&PriceList> {
        self.search.worth.list().map(core::ops::Deref::deref)
    }

    /// What is usually asked for, and the fleet as it is. The mix is that of the configuration, or
    /// else that of all pods seen so far, old ones forgotten. Cost: kinds of work x kinds of nodes.
    pub fn market(&mut self) -> Market {
        self.cluster.settle_order();
        let mut market = Market {
            models: Vec::new(),
            profiles: Vec::new(),
            catalogue: Catalogue::default(),
            mix: Mix::new(),
            fleet: Vec::new(),
            slices: Vec::new(),
        };
        // Classes in order of their first nodes, so that numbers do not depend on history.
        let mut classes: Vec<_> = self.cluster.classes.active().to_vec();
        classes.sort_by_key(|&class| self.cluster.classes.get(class).lowest_rank());
        let mut kinds = Vec::new();
        for &class in &classes {
            let kind = self.kind_of(class, &mut market);
            let state = self.cluster.classes.get(class);
            let milli_cpu = state.free.get(usize::from(CPU_IX)).copied().unwrap_or(0);
            let node = worth::state_of(kind, &state.cards, milli_cpu);
            market.fleet.push((node, state.count.into()));
            kinds.push((class, kind));
        }
        let usual = core::mem::take(&mut self.config.usual);
        if usual.is_empty() {
            for index in 0..self.asked.works.len() {
                let (work, weight) = self.asked.works[index].clone();
                let template = self.compile(&work);
                self.add_work(&mut market, &kinds, template, weight);
            }
        }
        for work in &usual {
            let template = self.compile(&work.template);
            let weight = u64::from(work.weight).saturating_mul(ARRIVAL);
            self.add_work(&mut market, &kinds, template, weight);
        }
        self.config.usual = usual;
        market
    }

    /// Notes that a pod with a template was asked for.
    pub(super) fn note_arrival(&mut self, template: TemplateIx) {
        let index = template.0 as usize;
        if self.asked.by_template.len() <= index {
            self.asked.by_template.resize(index + 1, None);
        }
        let work = self.asked.by_template[index].unwrap_or_else(|| {
            let work = without_place(&self.cluster.template(template).source);
            let work = self.asked.index_of(work);
            self.asked.by_template[index] = Some(work);
            work
        });
        let weight = &mut self.asked.works[work as usize].1;
        *weight = weight.saturating_add(ARRIVAL);
    }

    /// Takes prices, and forgets some of the work that they were made of.
    pub(super) fn take_prices(&mut self, list: PriceList) {
        for (_, weight) in &mut self.asked.works {
            *weight -= *weight >> FORGET;
        }
        self.search.set_prices(Some(Arc::new(list)));
        self.placed_since_prices = 0;
        let classes = self.cluster.classes.active().iter();
        let cards = classes.map(|&class| {
            let class = self.cluster.classes.get(class);
            let all = class.cards.pools().iter().map(|pool| pool.all.len());
            class.count.saturating_mul(all.sum())
        });
        let cards = cards.fold(0, u32::saturating_add);
        self.prices_last = (cards / CARDS_A_PRICE).max(PRICES_LAST);
        self.loosened += 1;
        self.changed += 1;
    }

    fn kind_of(&self, class: crate::cluster::class::ClassIx, market: &mut Market) -> u16 {
        let state = self.cluster.classes.get(class);
        let pool = worth::main_pool(&state.cards);
        let (name, cards) = worth::model_of(pool);
        let cut = pool.filter(|pool| pool.hardware.has_slices());
        if let Some(geometry) = cut.and_then(|pool| pool.hardware.geometry())
            && !market.slices.contains(&geometry)
        {
            market.slices.push(geometry);
        }
        let model = position(&mut market.models, name);
        let geometry = pool
            .and_then(|pool| worth::geometry_of(pool, &mut market.profiles))
            .map(|geometry| {
                let geometries = &mut market.catalogue.geometries;
                let at = geometries.iter().position(|known| *known == geometry);
                at.unwrap_or_else(|| {
                    geometries.push(geometry);
                    geometries.len() - 1
                }) as u16
            });
        let allocatable = self.cluster.allocatable_of(class);
        let kind = NodeKind {
            model,
            cards,
            whole_only: pool.map_or(0, |pool| pool.hardware.whole_only_among(pool.all) as u16),
            milli_cpu: allocatable.get(usize::from(CPU_IX)).copied().unwrap_or(0),
            geometry,
        };
        let kinds = &mut market.catalogue.kinds;
        let at = kinds.iter().position(|known| *known == kind);
        at.unwrap_or_else(|| {
            kinds.push(kind);
            kinds.len() - 1
        }) as u16
    }
}

fn position(names: &mut Vec<String>, name: &str) -> u16 {
    let at = names.iter().position(|known| known == name);
    at.unwrap_or_else(|| {
        names.push(name.into());
        names.len() - 1
    }) as u16
}
