//! Look-up tables: for each price of processor time, the best work for what is left of a card.
//!
//! Enters: the mix, a price for each of its types. Leaves: tables by group of kinds. Integers only:
//! the same prices give the same tables everywhere.

use alloc::{vec, vec::Vec};

use super::{
    Nano,
    kind::{CARD_MILLI, CardState, Catalogue, NodeState},
    mix::{Demand, Mix},
};

/// Steps of the ladder of processor prices.
pub(super) const STEPS: usize = 25;
/// A card is divided into at most this many parts; sizes that do not divide are rounded up.
const MOST_PARTS: u16 = 250;
/// Tables of several whole cards end here; more free cards are worth what single ones are.
const MOST_CARDS: usize = 64;
/// No type: one part less is worth the same.
const SKIP: u16 = u16::MAX;

/// Kinds on which the same types may run and whose cards are cut alike share their tables.
#[derive(Clone, Debug)]
pub(super) struct Group {
    geometry: Option<u16>,
    cards: usize,
    /// Allowed types with no card: (type, CPU).
    cpu_only: Vec<(u16, i64)>,
    /// Types that need (part of) one card: (type, parts, CPU).
    single: Vec<(u16, usize, i64)>,
    /// Types that need several: (type, cards, CPU).
    several: Vec<(u16, usize, i64)>,
    /// Slices: (type, units, CPU).
    slices: Vec<(u16, u16, i64)>,
    /// Distinct CPU of `several`, ascending.
    levels: Vec<i64>,
}

/// What all tables share.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) groups: Vec<Group>,
    /// By kind.
    pub(super) group_of: Vec<u16>,
    /// Parts of a card and thousandths of one part.
    parts: usize,
    part_milli: u16,
}

/// Tables of one group at one price of processor time.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) cpu_price: Nano,
    /// By parts left of a card.
    share: Vec<Nano>,
    share_choice: Vec<(u16, u16)>,
    /// By level of CPU left, then by free cards.
    whole: Vec<Nano>,
    whole_choice: Vec<(u16, u16)>,
    /// By units taken.
    sliced: Vec<Nano>,
    sliced_choice: Vec<(u16, u16)>,
}

fn gcd(a: u16, b: u16) -> u16 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Layout {
    pub(super) fn new(catalogue: &Catalogue, mix: &Mix) -> Self {
        let shares = mix.types().iter().filter_map(|(work, _)| match work.demand {
            Demand::Share { milli } => Some(milli.min(CARD_MILLI)),
            _ => None,
        });
        let part_milli = shares
            .fold(CARD_MILLI, gcd)
            .max(CARD_MILLI / MOST_PARTS);
        let mut layout = Self {
            groups: Vec::new(),
            group_of: Vec::new(),
            parts: usize::from(CARD_MILLI / part_milli),
            part_milli,
        };
        let mut signatures: Vec<(Option<u16>, Vec<bool>)> = Vec::new();
        for (kind_ix, kind) in (0_u16..).zip(&catalogue.kinds) {
            let may = |work: &super::WorkType| {
                work.may_use(kind_ix)
            };
            let signature: Vec<bool> = mix.types().iter().map(|(work, _)| may(work)).collect();
            let signature = (kind.geometry, signature);
            let group = match signatures.iter().position(|known| *known == signature) {
                Some(known) => known,
                None => {
                    layout
                        .groups
                        .push(layout.group(catalogue, mix, kind.geometry, &signature.1));
                    signatures.push(signature);
                    signatures.len() - 1
                }
            };
            if let Some(group) = layout.groups.get_mut(group) {
                group.cards = group.cards.max(usize::from(kind.cards).min(MOST_CARDS));
            }
            layout.group_of.push(group as u16);
        }
        layout
    }

    fn group(
        &self,
        catalogue: &Catalogue,
        mix: &Mix,
        geometry: Option<u16>,
        may: &[bool],
    ) -> Group {
        let mut group = Group {
            geometry,
            cards: 0,
            cpu_only: Vec::new(),
            single: Vec::new(),
            several: Vec::new(),
            slices: Vec::new(),
            levels: Vec::new(),
        };
        let cut = geometry.and_then(|ix| catalogue.geometries.get(usize::from(ix)));
        for (ix, (work, _)) in (0_u16..SKIP).zip(mix.types()) {
            if !may.get(usize::from(ix)).copied().unwrap_or(false) {
                continue;
            }
            let cpu = work.milli_cpu.max(0);
            match work.demand {
                Demand::None | Demand::Share { milli: 0 } | Demand::Whole { count: 0 } => {
                    group.cpu_only.push((ix, cpu));
                }
                Demand::Share { milli } if milli <= CARD_MILLI => {
                    let parts = usize::from(milli.div_ceil(self.part_milli)).min(self.parts);
                    group.single.push((ix, parts, cpu));
                }
                Demand::Share { .. } => {}
                Demand::Whole { count: 1 } => group.single.push((ix, self.parts, cpu)),
                Demand::Whole { count } => group.several.push((ix, usize::from(count), cpu)),
                Demand::Slice { profile } => {
                    let legal = cut.into_iter().flat_map(super::Geometry::legal);
                    let places = legal.filter(|&(of, _)| of == profile);
                    group.slices.extend(places.map(|(_, mask)| (ix, mask, cpu)));
                }
            }
        }
        group.single.sort_unstable_by_key(|&(ix, size, cpu)| (size, cpu, ix));
        group.levels = group.several.iter().map(|&(.., cpu)| cpu).collect();
        group.levels.sort_unstable();
        group.levels.dedup();
        group
    }

    /// Tables of all groups at these prices, one ladder a group.
    pub(super) fn tables(&self, catalogue: &Catalogue, prices: &[Nano]) -> Vec<Vec<Step>> {
        self.groups
            .iter()
            .map(|group| {
                let units = group
                    .geometry
                    .and_then(|ix| catalogue.geometries.get(usize::from(ix)))
                    .map(super::Geometry::full);
                let ladder = group.ladder(prices);
                let step = |cpu_price| group.step(cpu_price, prices, self.parts, units);
                ladder.into_iter().map(step).collect()
            })
            .collect()
    }

    fn parts_left(&self, card: CardState) -> usize {
        usize::from(card.milli().unwrap_or(0) / self.part_milli)
    }
}

fn price(prices: &[Nano], ix: u16) -> Nano {
    prices.get(usize::from(ix)).copied().unwrap_or(0)
}

fn net(prices: &[Nano], (ix, cpu): (u16, i64), cpu_price: Nano) -> Nano {
    price(prices, ix).saturating_sub(cpu.saturating_mul(cpu_price))
}

impl Group {
    fn ladder(&self, prices: &[Nano]) -> Vec<Nano> {
        let dearest = |ix: u16, cpu: i64| price(prices, ix).checked_div(cpu).unwrap_or(0);
        let lowest = self.cpu_only.iter().map(|&(ix, cpu)| dearest(ix, cpu)).max().unwrap_or(0);
        let single = self.single.iter().map(|&(ix, _, cpu)| (ix, cpu));
        let several = self.several.iter().map(|&(ix, _, cpu)| (ix, cpu));
        let slices = self.slices.iter().map(|&(ix, _, cpu)| (ix, cpu));
        let highest = single
            .chain(several)
            .chain(slices)
            .map(|(ix, cpu)| dearest(ix, cpu).saturating_add(1))
            .fold(lowest, Nano::max);
        let highest = highest.saturating_add(highest / 100);
        let from = libm::log(lowest.max(highest / 1000).max(1) as f64);
        let to = libm::log(highest.max(1) as f64);
        let width = (to - from) / (STEPS - 2) as f64;
        let mut ladder = vec![lowest];
        ladder.extend((0..STEPS - 1).map(|step| libm::exp(from + width * step as f64) as Nano));
        ladder.sort_unstable();
        ladder.dedup();
        ladder
    }

    fn step(&self, cpu_price: Nano, prices: &[Nano], parts: usize, units: Option<u16>) -> Step {
        // The best type of each size.
        let mut best: Vec<(usize, Nano, u16)> = Vec::new();
        for &(ix, size, cpu) in &self.single {
            let worth = net(prices, (ix, cpu), cpu_price);
            match best.last_mut() {
                Some(last) if last.0 == size => {
                    if worth > last.1 {
                        *last = (size, worth, ix);
                    }
                }
                _ if worth > 0 => best.push((size, worth, ix)),
                _ => {}
            }
        }
        let mut share: Vec<Nano> = vec![0; parts + 1];
        let mut share_choice = vec![(SKIP, 1); parts + 1];
        for left in 1..=parts {
            let mut top = share[left - 1];
            let mut choice = (SKIP, 1);
            for &(size, worth, ix) in &best {
                if size > left {
                    break;
                }
                let with = share[left - size] + worth;
                if with > top {
                    top = with;
                    choice = (ix, size as u16);
                }
            }
            share[left] = top;
            share_choice[left] = choice;
        }
        let mut sliced = Vec::new();
        let mut sliced_choice = Vec::new();
        if let Some(full) = units {
            let count = usize::from(full) + 1;
            sliced = vec![0; count];
            sliced_choice = vec![(SKIP, 0); count];
            let worth: Vec<(u16, u16, Nano)> = self
                .slices
                .iter()
                .map(|&(ix, mask, cpu)| (ix, mask, net(prices, (ix, cpu), cpu_price)))
                .filter(|&(.., worth)| worth > 0)
                .collect();
            for taken in (0..count).rev() {
                for &(ix, mask, worth) in &worth {
                    let mask_ix = usize::from(mask);
                    if mask_ix & taken == 0 && sliced[taken | mask_ix] + worth > sliced[taken] {
                        sliced[taken] = sliced[taken | mask_ix] + worth;
                        sliced_choice[taken] = (ix, mask);
                    }
                }
            }
        }
        let free = share[parts].max(sliced.first().copied().unwrap_or(0));
        let width = self.cards + 1;
        let mut whole: Vec<Nano> = vec![0; width * (self.levels.len() + 1)];
        let mut whole_choice = vec![(SKIP, 1); whole.len()];
        let several: Vec<(u16, usize, i64, Nano)> = self
            .several
            .iter()
            .map(|&(ix, count, cpu)| (ix, count, cpu, net(prices, (ix, cpu), cpu_price)))
            .filter(|entry| entry.3 > 0)
            .collect();
        for level in 0..=self.levels.len() {
            let most_cpu = level.checked_sub(1).map_or(-1, |below| self.levels[below]);
            let row = level * width;
            for left in 1..width {
                let mut top = whole[row + left - 1].saturating_add(free);
                let mut choice = (SKIP, 1);
                for &(ix, count, cpu, worth) in &several {
                    if cpu <= most_cpu && count <= left {
                        let with = whole[row + left - count].saturating_add(worth);
                        if with > top {
                            top = with;
                            choice = (ix, count as u16);
                        }
                    }
                }
                whole[row + left] = top;
                whole_choice[row + left] = choice;
            }
        }
        Step {
            cpu_price,
            share,
            share_choice,
            whole,
            whole_choice,
            sliced,
            sliced_choice,
        }
    }

    /// The row of the tables of several cards for this much CPU left.
    fn level(&self, milli_cpu: i64) -> usize {
        self.levels.partition_point(|&cpu| cpu <= milli_cpu)
    }
}

/// The step at which the worth is least, the lowest of several: the worth is convex in the price
/// of processor time.
pub(super) fn cheapest(steps: &[Step], left: &Left) -> usize {
    let (mut low, mut high) = (0, steps.len().saturating_sub(1));
    while low < high {
        let middle = usize::midpoint(low, high);
        let rises = match (steps.get(middle), steps.get(middle + 1)) {
            (Some(here), Some(next)) => next.worth(left) >= here.worth(left),
            _ => true,
        };
        if rises {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// What is left on a node, as the tables see it.
pub(super) struct Left {
    milli_cpu: i64,
    level: usize,
    width: usize,
    free: usize,
    /// Parts left of shared cards, only those with any.
    shared: smallvec::SmallVec<[u16; 8]>,
    sliced: smallvec::SmallVec<[u16; 8]>,
}

impl Left {
    pub(super) fn milli_cpu(&self) -> i64 {
        self.milli_cpu
    }
}

impl Layout {
    pub(super) fn left(&self, state: &NodeState) -> Option<(&Group, usize, Left)> {
        let group_ix = usize::from(*self.group_of.get(usize::from(state.kind))?);
        let group = self.groups.get(group_ix)?;
        let mut left = Left {
            milli_cpu: state.milli_cpu.max(0),
            level: group.level(state.milli_cpu),
            width: group.cards + 1,
            free: 0,
            shared: smallvec::SmallVec::new(),
            sliced: smallvec::SmallVec::new(),
        };
        for &card in state.cards() {
            if card == CardState::FREE {
                left.free += 1;
            } else if let Some(taken) = card.taken() {
                left.sliced.push(taken);
            } else {
                let parts = self.parts_left(card);
                if parts > 0 {
                    left.shared.push(parts as u16);
                }
            }
        }
        Some((group, group_ix, left))
    }
}

impl Step {
    /// The most that work for these cards is worth, with processor time at this step's price.
    pub(super) fn worth(&self, left: &Left) -> Nano {
        let at = |table: &[Nano], ix: usize| table.get(ix).copied().unwrap_or(0);
        let in_table = left.free.min(left.width - 1);
        let beyond = (left.free - in_table) as i64;
        let row = left.level * left.width;
        let mut worth = left
            .milli_cpu
            .saturating_mul(self.cpu_price)
            .saturating_add(at(&self.whole, row + in_table))
            .saturating_add(beyond.saturating_mul(at(&self.whole, 1)));
        for &parts in &left.shared {
            worth = worth.saturating_add(at(&self.share, usize::from(parts)));
        }
        for &taken in &left.sliced {
            worth = worth.saturating_add(at(&self.sliced, usize::from(taken)));
        }
        worth
    }

    /// The work behind [`worth`](Self::worth): calls `visit` with each type placed.
    pub(super) fn pack(&self, parts: usize, left: &Left, visit: &mut impl FnMut(u16)) {
        for &parts in &left.shared {
            self.pack_share(usize::from(parts), visit);
        }
        for &taken in &left.sliced {
            self.pack_sliced(taken, visit);
        }
        let in_table = left.free.min(left.width - 1);
        let row = left.level * left.width;
        let as_slices = self.sliced.first().copied().unwrap_or(0) > self.share.get(parts).copied().unwrap_or(0);
        let one = |visit: &mut _| {
            if as_slices {
                self.pack_sliced(0, visit);
            } else {
                self.pack_share(parts, visit);
            }
        };
        let mut cards = in_table;
        while cards > 0 {
            let (ix, count) = self.whole_choice.get(row + cards).copied().unwrap_or((SKIP, 1));
            if ix == SKIP {
                one(visit);
            } else {
                visit(ix);
            }
            cards = cards.saturating_sub(usize::from(count));
        }
        for _ in in_table..left.free {
            one(visit);
        }
    }

    fn pack_share(&self, parts: usize, visit: &mut impl FnMut(u16)) {
        let mut left = parts;
        while left > 0 {
            let (ix, size) = self.share_choice.get(left).copied().unwrap_or((SKIP, 1));
            if ix != SKIP {
                visit(ix);
            }
            left = left.saturating_sub(usize::from(size));
        }
    }

    fn pack_sliced(&self, taken: u16, visit: &mut impl FnMut(u16)) {
        let mut taken = taken;
        while let Some(&(ix, mask)) = self.sliced_choice.get(usize::from(taken)) {
            if ix == SKIP || mask == 0 {
                break;
            }
            visit(ix);
            taken |= mask;
        }
    }
}

impl Layout {
    pub(super) fn pack(&self, step: &Step, left: &Left, visit: &mut impl FnMut(u16)) {
        step.pack(self.parts, left, visit);
    }

    pub(super) fn best_cpu_only(&self, group: &Group, prices: &[Nano]) -> Option<(u16, i64)> {
        let value = |&(ix, cpu): &(u16, i64)| price(prices, ix).checked_div(cpu).unwrap_or(0);
        group.cpu_only.iter().copied().filter(|&(_, cpu)| cpu > 0).max_by_key(|entry| (value(entry), core::cmp::Reverse(entry.0)))
    }
}
