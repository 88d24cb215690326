//! Which of several feasible nodes is taken: one trait on states.
//!
//! A rule gives a node state a worth; a placement costs the worth that it destroys, and the
//! cheapest is taken. Worths are integers made from free shares in thousandths, so they are the
//! same on every machine. A new rule is a new [`Score`] and a line in [`price`].

use super::worth::Room;
use crate::{
    cluster::{CPU_IX, MEMORY_IX, template::Compiled},
    device,
    gang::ScoringRule,
};

/// What is free on a node: processor time and memory in thousandths of what it has, cards in
/// eighths of a thousand each. Cards are not taken relative to the node, because a node with two
/// free cards is worth more than two with one, whatever their sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FreeShares {
    pub(crate) cards: i64,
    /// What is left of cards that are in use in parts, all together, in the same unit.
    pub(crate) parts: i64,
    pub(crate) cpu: i64,
    pub(crate) memory: i64,
}

/// A free card; a node with eight free counts as wholly free does for other resources.
const CARD: i64 = 125;

/// More free cards than this on one node count as this many, so that no worth overflows.
const MOST_CARDS: i64 = 4096;

/// The worth of a node state under a rule.
pub(crate) trait Score {
    fn worth(&self, free: FreeShares) -> i64;
}

/// Squares make the rule prefer full nodes: taking from a large free share costs more than taking
/// the same from a small one. The product keeps processor time beside free cards dear, so that work
/// without cards stays off nodes that have some.
struct Binpack;

impl Score for Binpack {
    fn worth(&self, free: FreeShares) -> i64 {
        8 * free.cards * free.cards
            + free.cpu * free.cpu
            + free.memory * free.memory
            + 4 * free.cards * (free.cpu + free.memory)
            // Less than a whole card, so that no card is broken into while a part of one will do.
            + free.parts * free.parts
    }
}

/// The opposite: the emptiest node first.
struct Spread;

impl Score for Spread {
    fn worth(&self, free: FreeShares) -> i64 {
        -8 * free.cards * free.cards
            - free.parts * free.parts
            - free.cpu * free.cpu
            - free.memory * free.memory
    }
}

struct Weighted {
    cards: i64,
    cpu: i64,
    memory: i64,
}

impl Score for Weighted {
    fn worth(&self, free: FreeShares) -> i64 {
        self.cards * (free.cards * free.cards + free.parts * free.parts / 8)
            + self.cpu * free.cpu * free.cpu
            + self.memory * free.memory * free.memory
    }
}

/// Prices stay below this, so that what is liked always comes first.
pub(crate) const DEAREST: i64 = 1 << 43;

/// What so many points of preference take off a price: each more than any price.
pub(crate) fn liked(points: i64) -> i64 {
    const MOST_POINTS: i64 = 1 << 17;
    points.clamp(-MOST_POINTS, MOST_POINTS) * 2 * DEAREST
}

/// The worth that one more member of the template destroys in a room.
pub(crate) fn price(rule: ScoringRule, template: &Compiled, room: Room<'_>) -> i64 {
    let share = |free: i64, all: i64| {
        if all <= 0 {
            0
        } else {
            let free = free.max(0);
            // Division of wide integers is slow, and amounts that need it are rare.
            free.checked_mul(1000).map_or_else(
                || (i128::from(free) * 1000 / i128::from(all)) as i64,
                |thousands| thousands / all,
            )
        }
    };
    let of = |amounts: &[i64], resource: u16| amounts.get(usize::from(resource)).copied();
    let all = |resource: u16| of(room.allocatable, resource).unwrap_or(0);
    let free = |resource: u16| of(room.free, resource).unwrap_or(0);
    let scalar =
        |resource: u16, taken: i64| share(free(resource).saturating_sub(taken), all(resource));
    let milli = |milli: u32| CARD * i64::from(milli).min(MOST_CARDS * 1000) / 1000;
    let cards = |free: u32| CARD * i64::from(free).min(MOST_CARDS);
    let left = room.cards.left();
    let before = FreeShares {
        cards: cards(left.free),
        parts: milli(left.milli),
        cpu: scalar(CPU_IX, 0),
        memory: scalar(MEMORY_IX, 0),
    };
    let mut after = FreeShares {
        cpu: scalar(CPU_IX, template.asks_for(CPU_IX)),
        memory: scalar(MEMORY_IX, template.asks_for(MEMORY_IX)),
        ..before
    };
    let mut joined = 0;
    if let Some(ask) = &template.cards
        && let Some(devices) = device::choose(room.cards, ask)
    {
        let left = room.cards.left_after(ask, &devices);
        after.cards = cards(left.free);
        after.parts = milli(left.milli);
        joined = room.cards.joined(ask, &devices);
    }
    let lost = |score: &dyn Score| score.worth(before) - score.worth(after);
    let price = match rule {
        // The last four without prices to go by.
        ScoringRule::Binpack
        | ScoringRule::BestFit
        | ScoringRule::MigFlexibility
        | ScoringRule::FragmentationGradient
        | ScoringRule::BidPrice => lost(&Binpack),
        ScoringRule::Spread => lost(&Spread),
        ScoringRule::Weighted { cards, cpu, memory } => lost(&Weighted {
            cards: cards.into(),
            cpu: cpu.into(),
            memory: memory.into(),
        }),
    };
    price.saturating_sub(joined)
}
