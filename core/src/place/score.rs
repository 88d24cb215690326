//! Which of several feasible nodes is taken: one trait on states.
//!
//! A rule gives a node state a worth; a placement costs the worth that it destroys, and the
//! cheapest is taken. Worths are integers made from free shares in thousandths, so they are the
//! same on every machine. A new rule is a new [`Score`] and a line in [`price`].

use crate::{
    cluster::{CPU_IX, MEMORY_IX, class::Class, template::Compiled},
    gang::ScoringRule,
};

/// What is free on a node: processor time and memory in thousandths of what it has, cards in
/// eighths of a thousand each. Cards are not taken relative to the node, because a node with two
/// free cards is worth more than two with one, whatever their sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FreeShares {
    pub(crate) cards: i64,
    pub(crate) cpu: i64,
    pub(crate) memory: i64,
}

/// A free card; a node with eight free counts as wholly free does for other resources.
const CARD: i64 = 125;

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
    }
}

/// The opposite: the emptiest node first.
struct Spread;

impl Score for Spread {
    fn worth(&self, free: FreeShares) -> i64 {
        -8 * free.cards * free.cards - free.cpu * free.cpu - free.memory * free.memory
    }
}

struct Weighted {
    cards: i64,
    cpu: i64,
    memory: i64,
}

impl Score for Weighted {
    fn worth(&self, free: FreeShares) -> i64 {
        self.cards * free.cards * free.cards
            + self.cpu * free.cpu * free.cpu
            + self.memory * free.memory * free.memory
    }
}

/// The worth that one more member of the template destroys on a node of the class.
pub(crate) fn price(
    rule: ScoringRule,
    template: &Compiled,
    class: &Class,
    allocatable: &[i64],
) -> i64 {
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
    let all = |resource: u16| allocatable.get(usize::from(resource)).copied().unwrap_or(0);
    let free = |resource: u16| class.free.get(usize::from(resource)).copied().unwrap_or(0);
    let asked = |resource: u16| {
        let amount = template
            .amounts
            .iter()
            .find(|&&(asked, _)| asked == resource);
        amount.map_or(0, |&(_, amount)| amount)
    };
    let scalar =
        |resource: u16, taken: i64| share(free(resource).saturating_sub(taken), all(resource));
    let cards_free = class.cards.free_in_all();
    let asked_cards = template.cards.map_or(0, |ask| ask.count);
    let before = FreeShares {
        cards: CARD * i64::from(cards_free),
        cpu: scalar(CPU_IX, 0),
        memory: scalar(MEMORY_IX, 0),
    };
    let after = FreeShares {
        cards: CARD * (i64::from(cards_free) - i64::from(asked_cards)).max(0),
        cpu: scalar(CPU_IX, asked(CPU_IX)),
        memory: scalar(MEMORY_IX, asked(MEMORY_IX)),
    };
    let lost = |score: &dyn Score| score.worth(before) - score.worth(after);
    match rule {
        ScoringRule::Binpack => lost(&Binpack),
        ScoringRule::Spread => lost(&Spread),
        ScoringRule::Weighted { cards, cpu, memory } => lost(&Weighted {
            cards: cards.into(),
            cpu: cpu.into(),
            memory: memory.into(),
        }),
    }
}
