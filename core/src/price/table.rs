//! Look-up tables: for each price of processor time, the best work for what is left of a card.
//!
//! Data enters as the mix and a price for each of its types; what leaves are tables for each group
//! of kinds of nodes. Integers only: the same prices give the same tables everywhere. Nothing here
//! knows where the prices come from.

use alloc::{vec, vec::Vec};

use smallvec::SmallVec;

use super::{
    Nano,
    kind::{CARD_MILLI, CardState, Catalogue, Geometry, NodeState},
    mix::{Demand, Mix},
};

/// Steps of the ladder of processor prices, so that one is a sixth dearer than the one before.
const STEPS: usize = 49;
/// The ladder spans this factor.
const SPAN: Nano = 1000;
/// A card is divided into at most this many parts; sizes that do not divide are rounded up.
const MOST_PARTS: u16 = 250;
/// Tables of whole cards end here; further free cards of a node are worth what single ones are.
const MOST_CARDS: usize = 64;
/// No type: what follows is as good with one part or card less.
const SKIP: (u16, u16) = (u16::MAX, 1);

/// Kinds on which the same types may run and whose cards are cut alike share their tables.
#[derive(Clone, Debug)]
struct Group {
    geometry: Option<u16>,
    /// Most cards of a node of each sort.
    most: Free,
    /// Types without cards: (type, CPU).
    without: Vec<(u16, i64)>,
    /// Types that need one card or part of it, ascending by parts: (type, parts, CPU).
    single: Vec<(u16, usize, i64)>,
    /// Those that need one card as a whole: (type, CPU).
    one: Vec<(u16, i64)>,
    /// Types that need several cards: (type, cards, CPU).
    several: Vec<(u16, usize, i64)>,
    /// Types that need a slice, an entry for each place: (type, units, CPU).
    slices: Vec<(u16, u16, i64)>,
    /// Distinct CPU of `several`, ascending. A node with less than one of them cannot hold that
    /// type, whatever the price of processor time: without this the scarcest nodes, the only ones
    /// with enough for it, would count as plentiful.
    levels: Vec<i64>,
}

/// How the tables are laid out for a mix on a catalogue.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    groups: Vec<Group>,
    /// By kind.
    group_of: Vec<u16>,
    /// Parts of a card.
    parts: usize,
    /// Thousandths of a card in a part.
    part_milli: u16,
}

/// Tables of one group at one price of processor time. Beside each worth stands the type to take
/// first for it, and its size.
#[derive(Clone, Debug)]
pub(super) struct Step {
    cpu_price: Nano,
    /// By parts left of a card.
    share: Vec<Nano>,
    share_choice: Vec<(u16, u16)>,
    /// By level of CPU left, then by free cards that are given as a whole only, then by other free cards.
    whole: Vec<Nano>,
    whole_choice: Vec<(u16, u16)>,
    /// The best for one card that is given as a whole only.
    one: (Nano, u16),
    /// By units taken; empty where cards are not cut.
    sliced: Vec<Nano>,
    sliced_choice: Vec<(u16, u16)>,
}

/// What is left on a node, as the tables see it.
#[derive(Clone, Debug)]
pub(super) struct Left {
    pub(super) group: usize,
    pub(super) milli_cpu: i64,
    /// Where the part for this level of CPU starts in [`Step::whole`].
    level: usize,
    /// Most free cards that the tables know: those given as a whole only, and the others.
    most: Free,
    free: Free,
    /// Parts left of shared cards with any.
    shared: SmallVec<[u16; 8]>,
    /// Units taken of cut cards.
    cut: SmallVec<[u16; 8]>,
}

/// Free cards of a node.
#[derive(Clone, Copy, Debug, Default)]
struct Free {
    /// Given as a whole only.
    whole_only: usize,
    /// Others.
    any: usize,
}

impl Free {
    /// How many entries a table for up to so many has.
    const fn entries(self) -> usize {
        (self.whole_only + 1) * (self.any + 1)
    }

    /// The entry for so many in a table for up to `most`.
    const fn entry(self, most: Self) -> usize {
        self.whole_only * (most.any + 1) + self.any
    }

    /// What is left when so many are taken, those first that can be nothing else; `None`: there are fewer.
    fn without(self, count: usize) -> Option<Self> {
        let whole_only = self.whole_only.min(count);
        Some(Self {
            whole_only: self.whole_only - whole_only,
            any: self.any.checked_sub(count - whole_only)?,
        })
    }
}

fn gcd(a: u16, b: u16) -> u16 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Layout {
    pub(super) fn new(catalogue: &Catalogue, mix: &Mix) -> Self {
        let shares = mix
            .types()
            .iter()
            .filter_map(|(work, _)| match work.demand {
                Demand::Share { milli } => Some(milli.min(CARD_MILLI)),
                _ => None,
            });
        let part_milli = shares.fold(CARD_MILLI, gcd).max(CARD_MILLI / MOST_PARTS);
        let mut layout = Self {
            groups: Vec::new(),
            group_of: Vec::new(),
            parts: usize::from(CARD_MILLI / part_milli),
            part_milli,
        };
        let mut alike: Vec<(Option<u16>, Vec<bool>)> = Vec::new();
        for (kind_ix, kind) in (0_u16..).zip(&catalogue.kinds) {
            let may_use = mix.types().iter().map(|(work, _)| work.may_use(kind_ix));
            let this = (kind.geometry, may_use.collect());
            let known = alike.iter().position(|known| *known == this);
            let group_ix = known.unwrap_or_else(|| {
                layout
                    .groups
                    .push(layout.group(catalogue, mix, &this.1, kind.geometry));
                alike.push(this);
                alike.len() - 1
            });
            if let Some(group) = layout.groups.get_mut(group_ix) {
                let any = kind.cards.saturating_sub(kind.whole_only);
                let at_most =
                    |known: usize, cards: u16| known.max(usize::from(cards).min(MOST_CARDS));
                group.most.any = at_most(group.most.any, any);
                group.most.whole_only = at_most(group.most.whole_only, kind.whole_only);
            }
            layout.group_of.push(group_ix as u16);
        }
        layout
    }

    fn group(
        &self,
        catalogue: &Catalogue,
        mix: &Mix,
        may_use: &[bool],
        geometry: Option<u16>,
    ) -> Group {
        let cut = geometry.and_then(|ix| catalogue.geometries.get(usize::from(ix)));
        let mut group = Group {
            geometry,
            most: Free::default(),
            without: Vec::new(),
            single: Vec::new(),
            one: Vec::new(),
            several: Vec::new(),
            slices: Vec::new(),
            levels: Vec::new(),
        };
        for ((ix, (work, _)), _) in (0_u16..SKIP.0)
            .zip(mix.types())
            .zip(may_use)
            .filter(|(_, may_use)| **may_use)
        {
            let cpu = work.milli_cpu.max(0);
            match work.demand {
                Demand::None | Demand::Share { milli: 0 } | Demand::Whole { count: 0 } => {
                    group.without.push((ix, cpu));
                }
                Demand::Share { milli } if milli <= CARD_MILLI => {
                    // Where a card holds ten, it still does after rounding.
                    let most = (self.parts / usize::from(CARD_MILLI / milli)).max(1);
                    let parts = usize::from(milli.div_ceil(self.part_milli)).min(most);
                    group.single.push((ix, parts, cpu));
                }
                // More than a card in one piece fits nowhere.
                Demand::Share { .. } => {}
                Demand::Whole { count: 1 } => {
                    group.single.push((ix, self.parts, cpu));
                    group.one.push((ix, cpu));
                }
                Demand::Whole { count } => group.several.push((ix, usize::from(count), cpu)),
                Demand::Slice { profile } => {
                    let legal = cut.into_iter().flat_map(Geometry::legal);
                    let places = legal.filter(|&(of, _)| of == profile);
                    group
                        .slices
                        .extend(places.map(|(_, units)| (ix, units, cpu)));
                }
            }
        }
        group
            .single
            .sort_unstable_by_key(|&(ix, parts, cpu)| (parts, cpu, ix));
        group.levels = group.several.iter().map(|&(.., cpu)| cpu).collect();
        group.levels.sort_unstable();
        group.levels.dedup();
        group
    }

    /// Tables at these prices, by group and step of its ladder.
    pub(super) fn tables(&self, catalogue: &Catalogue, prices: &[Nano]) -> Vec<Vec<Step>> {
        let steps = |group: &Group| {
            let geometry = group.geometry;
            let cut = geometry.and_then(|ix| catalogue.geometries.get(usize::from(ix)));
            let full = cut.map(Geometry::full);
            let ladder = group.ladder(prices);
            let step = |&cpu_price| group.step(cpu_price, prices, self.parts, full);
            ladder.iter().map(step).collect()
        };
        self.groups.iter().map(steps).collect()
    }

    /// `None` for a kind that the catalogue does not have.
    pub(super) fn left(&self, state: &NodeState) -> Option<Left> {
        let group_ix = usize::from(*self.group_of.get(usize::from(state.kind))?);
        let group = self.groups.get(group_ix)?;
        let most = group.most;
        let level = group.levels.partition_point(|&cpu| cpu <= state.milli_cpu);
        let mut left = Left {
            group: group_ix,
            milli_cpu: state.milli_cpu.max(0),
            level: level * most.entries(),
            most,
            free: Free::default(),
            shared: SmallVec::new(),
            cut: SmallVec::new(),
        };
        for &card in state.cards() {
            if card == CardState::FREE {
                left.free.any += 1;
            } else if card == CardState::WHOLE {
                left.free.whole_only += 1;
            } else if let Some(taken) = card.taken() {
                left.cut.push(taken);
            } else {
                let parts = card.milli().unwrap_or(0) / self.part_milli;
                if parts > 0 {
                    left.shared.push(parts);
                }
            }
        }
        Some(left)
    }

    /// The type without cards that is worth most for its processor time, and that time.
    pub(super) fn best_without_cards(&self, group: usize, prices: &[Nano]) -> Option<(u16, i64)> {
        let group = self.groups.get(group)?;
        let some = group.without.iter().copied().filter(|&(_, cpu)| cpu > 0);
        some.rev().max_by_key(|&(ix, cpu)| price(prices, ix) / cpu)
    }
}

fn price(prices: &[Nano], ix: u16) -> Nano {
    prices.get(usize::from(ix)).copied().unwrap_or(0)
}

impl Group {
    /// Prices of processor time, ascending: the first is what work without cards would pay, at the
    /// last nothing pays any more.
    fn ladder(&self, prices: &[Nano]) -> Vec<Nano> {
        let pays = |&(ix, cpu): &(u16, i64)| price(prices, ix).checked_div(cpu).unwrap_or(0);
        let lowest = self.without.iter().map(pays).max().unwrap_or(0);
        let single = self.single.iter().map(|&(ix, _, cpu)| (ix, cpu));
        let several = self.several.iter().map(|&(ix, _, cpu)| (ix, cpu));
        let slices = self.slices.iter().map(|&(ix, _, cpu)| (ix, cpu));
        let with_cards = single.chain(several).chain(slices);
        let highest = with_cards
            .map(|asked| pays(&asked).saturating_add(1))
            .fold(lowest, Nano::max);
        let highest = highest.saturating_add(highest / 100).max(1);
        let from = libm::log(lowest.max(highest / SPAN).max(1) as f64);
        let width = (libm::log(highest as f64) - from) / (STEPS - 2) as f64;
        let mut ladder = vec![lowest];
        ladder.extend((0..STEPS - 1).map(|step| libm::exp(from + width * step as f64) as Nano));
        ladder.sort_unstable();
        ladder.dedup();
        ladder
    }

    fn step(&self, cpu_price: Nano, prices: &[Nano], parts: usize, full: Option<u16>) -> Step {
        let net =
            |ix: u16, cpu: i64| price(prices, ix).saturating_sub(cpu.saturating_mul(cpu_price));
        let (share, share_choice) = self.share(parts, net);
        let (sliced, sliced_choice) = full.map_or_else(Default::default, |full| {
            self.sliced(usize::from(full) + 1, net)
        });
        // A free card may be shared, or cut.
        let free = worth_at(&share, parts).max(worth_at(&sliced, 0));
        let ones = self.one.iter().map(|&(ix, cpu)| (net(ix, cpu), ix));
        let one = ones.fold(
            (0, SKIP.0),
            |best, one| {
                if one.0 > best.0 { one } else { best }
            },
        );
        let (whole, whole_choice) = self.whole(free, one.0, net);
        Step {
            cpu_price,
            share,
            share_choice,
            whole,
            whole_choice,
            one,
            sliced,
            sliced_choice,
        }
    }

    /// The knapsack of one card, by parts left.
    fn share(&self, parts: usize, net: impl Fn(u16, i64) -> Nano) -> (Vec<Nano>, Vec<(u16, u16)>) {
        // The best type of each size.
        let mut best: Vec<(usize, Nano, u16)> = Vec::new();
        for &(ix, size, cpu) in &self.single {
            let worth = net(ix, cpu);
            if let Some(last) = best.last_mut().filter(|last| last.0 == size) {
                if worth > last.1 {
                    *last = (size, worth, ix);
                }
            } else if worth > 0 {
                best.push((size, worth, ix));
            }
        }
        let mut worths = vec![0; parts + 1];
        let mut choices = vec![SKIP; parts + 1];
        for left in 1..=parts {
            let mut top: Nano = worths[left - 1];
            for &(size, worth, ix) in &best {
                if size > left {
                    break;
                }
                let with = worth.saturating_add(worths[left - size]);
                if with > top {
                    top = with;
                    choices[left] = (ix, size as u16);
                }
            }
            worths[left] = top;
        }
        (worths, choices)
    }

    /// The same for a card that is cut, by units taken.
    fn sliced(&self, masks: usize, net: impl Fn(u16, i64) -> Nano) -> (Vec<Nano>, Vec<(u16, u16)>) {
        let worth = |&(ix, units, cpu): &(u16, u16, i64)| (ix, units, net(ix, cpu));
        let some = self
            .slices
            .iter()
            .map(worth)
            .filter(|&(.., worth)| worth > 0);
        let some: Vec<(u16, u16, Nano)> = some.collect();
        let mut worths = vec![0; masks];
        let mut choices = vec![SKIP; masks];
        for taken in (0..masks).rev() {
            for &(ix, units, worth) in &some {
                let unit_bits = usize::from(units);
                if unit_bits & taken == 0 {
                    let with = worth.saturating_add(worths[taken | unit_bits]);
                    if with > worths[taken] {
                        worths[taken] = with;
                        choices[taken] = (ix, units);
                    }
                }
            }
        }
        (worths, choices)
    }

    /// The same for free cards: a part for each level of CPU left, with the types that need no more than
    /// that. A card by itself is worth `one` if it is given as a whole only, else `free`, which is never
    /// less.
    fn whole(
        &self,
        free: Nano,
        one: Nano,
        net: impl Fn(u16, i64) -> Nano,
    ) -> (Vec<Nano>, Vec<(u16, u16)>) {
        let most = self.most;
        let mut worths: Vec<Nano> = vec![0; most.entries() * (self.levels.len() + 1)];
        let mut choices = vec![SKIP; worths.len()];
        for (level, (worths, choices)) in worths
            .chunks_exact_mut(most.entries())
            .zip(choices.chunks_exact_mut(most.entries()))
            .enumerate()
        {
            let most_cpu = level.checked_sub(1).map_or(-1, |below| self.levels[below]);
            let rows = (0..=most.whole_only)
                .flat_map(|whole_only| (0..=most.any).map(move |any| Free { whole_only, any }));
            for left in rows.skip(1) {
                let alone = if left.whole_only > 0 { one } else { free };
                let rest = left.without(1).unwrap_or_default();
                let mut top = worths[rest.entry(most)].saturating_add(alone);
                for &(ix, count, cpu) in &self.several {
                    if let Some(rest) = left.without(count)
                        && cpu <= most_cpu
                    {
                        let with = worths[rest.entry(most)].saturating_add(net(ix, cpu));
                        if with > top {
                            top = with;
                            choices[left.entry(most)] = (ix, count as u16);
                        }
                    }
                }
                worths[left.entry(most)] = top;
            }
        }
        (worths, choices)
    }
}

fn worth_at(worths: &[Nano], at: usize) -> Nano {
    worths.get(at).copied().unwrap_or(0)
}

fn choice_at(choices: &[(u16, u16)], at: usize) -> (u16, u16) {
    choices.get(at).copied().unwrap_or(SKIP)
}

/// The step at which the worth is least, the first of several: the worth is convex in the price of
/// processor time. O(log steps) evaluations.
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

impl Left {
    /// The free cards that the tables know, and those beyond.
    fn in_table(&self) -> (Free, Free) {
        let known = Free {
            whole_only: self.free.whole_only.min(self.most.whole_only),
            any: self.free.any.min(self.most.any),
        };
        let beyond = Free {
            whole_only: self.free.whole_only - known.whole_only,
            any: self.free.any - known.any,
        };
        (known, beyond)
    }
}

impl Step {
    /// The most that work for these cards is worth, with processor time at this step's price: never
    /// less than the best that fits.
    pub(super) fn worth(&self, left: &Left) -> Nano {
        let (in_table, beyond) = left.in_table();
        let mut worth = left
            .milli_cpu
            .saturating_mul(self.cpu_price)
            .saturating_add(worth_at(
                &self.whole,
                left.level + in_table.entry(left.most),
            ))
            .saturating_add((beyond.any as i64).saturating_mul(self.worth_of_free()))
            .saturating_add((beyond.whole_only as i64).saturating_mul(self.one.0));
        for &parts in &left.shared {
            worth = worth.saturating_add(worth_at(&self.share, usize::from(parts)));
        }
        for &taken in &left.cut {
            worth = worth.saturating_add(worth_at(&self.sliced, usize::from(taken)));
        }
        worth
    }

    fn worth_of_free(&self) -> Nano {
        let shared = self.share.last().copied().unwrap_or(0);
        shared.max(worth_at(&self.sliced, 0))
    }

    /// The work behind [`worth`](Self::worth): calls `visit` with each type that is placed.
    pub(super) fn pack(&self, left: &Left, visit: &mut impl FnMut(u16)) {
        for &parts in &left.shared {
            self.pack_shared(usize::from(parts), visit);
        }
        for &taken in &left.cut {
            self.pack_cut(taken, visit);
        }
        let (mut cards, beyond) = left.in_table();
        while cards.whole_only + cards.any > 0 {
            let at = left.level + cards.entry(left.most);
            let (ix, count) = choice_at(&self.whole_choice, at);
            if ix != SKIP.0 {
                visit(ix);
            } else if cards.whole_only > 0 {
                self.pack_whole_only(visit);
            } else {
                self.pack_free(visit);
            }
            cards = cards.without(count.max(1).into()).unwrap_or_default();
        }
        for _ in 0..beyond.any {
            self.pack_free(visit);
        }
        for _ in 0..beyond.whole_only {
            self.pack_whole_only(visit);
        }
    }

    fn pack_whole_only(&self, visit: &mut impl FnMut(u16)) {
        if self.one.1 != SKIP.0 {
            visit(self.one.1);
        }
    }

    fn pack_free(&self, visit: &mut impl FnMut(u16)) {
        if worth_at(&self.sliced, 0) > self.share.last().copied().unwrap_or(0) {
            self.pack_cut(0, visit);
        } else {
            self.pack_shared(self.share.len().saturating_sub(1), visit);
        }
    }

    fn pack_shared(&self, parts: usize, visit: &mut impl FnMut(u16)) {
        let mut left = parts;
        while left > 0 {
            let (ix, size) = choice_at(&self.share_choice, left);
            if ix != SKIP.0 {
                visit(ix);
            }
            left = left.saturating_sub(usize::from(size.max(1)));
        }
    }

    fn pack_cut(&self, taken: u16, visit: &mut impl FnMut(u16)) {
        let mut taken = taken;
        loop {
            let (ix, units) = choice_at(&self.sliced_choice, usize::from(taken));
            if ix == SKIP.0 {
                return;
            }
            visit(ix);
            taken |= units;
        }
    }
}
