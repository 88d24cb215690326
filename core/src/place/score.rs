//! Which of several feasible nodes is taken: one trait on states.
//!
//! A rule gives a node state a worth; a placement costs the worth that it destroys, and the
//! cheapest is taken. Worths are integers made from free shares in thousandths, so they are the
//! same on every machine. A new rule is a new [`Score`] and a line in [`price`].

use crate::{
    cluster::{CPU_IX, MEMORY_IX, class::Class, template::Compiled},
    gang::ScoringRule,
};

/// More free cards on one node than this are all the same: worths must not overflow.
const MOST_PIECES: i64 = 4096;

/// What is free on a node, in thousandths of what it has; 0 where it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FreeShares {
    pub(crate) cards: i64,
    /// Free cards by number, not as a share: 125 for each, so that eight make a full thousand.
    pub(crate) pieces: i64,
    pub(crate) cpu: i64,
    pub(crate) memory: i64,
}

/// The worth of a node state under a rule.
pub(crate) trait Score {
    fn worth(&self, free: FreeShares) -> i64;
}

/// Squares make the rule prefer full nodes: taking from a large free share costs more than taking
/// the same from a small one. Cards count by number: of a node with two free cards and two nodes with
/// one each, the latter are used up first, so that large pieces stay whole. The product keeps processor time beside free cards dear, so that work
/// without cards stays off nodes that have some.
struct Binpack;

impl Score for Binpack {
    fn worth(&self, free: FreeShares) -> i64 {
        8 * free.pieces * free.pieces
            + free.cpu * free.cpu
            + free.memory * free.memory
            + 4 * free.pieces * (free.cpu + free.memory)
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
            (i128::from(free.max(0)) * 1000 / i128::from(all)) as i64
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
    let (cards_all, cards_free) = class.cards.totals();
    let asked_cards = template.cards.map_or(0, |ask| ask.count);
    let cards_left = i64::from(cards_free) - i64::from(asked_cards);
    let pieces = |free: i64| free.clamp(0, MOST_PIECES) * 125;
    let before = FreeShares {
        cards: share(i64::from(cards_free), i64::from(cards_all)),
        pieces: pieces(cards_free.into()),
        cpu: scalar(CPU_IX, 0),
        memory: scalar(MEMORY_IX, 0),
    };
    let after = FreeShares {
        cards: share(cards_left, cards_all.into()),
        pieces: pieces(cards_left),
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
