//! Why something waits, and what would let it in.
//!
//! [`reason`] holds the facts as types. An [`Explainer`] finds them: it works on its own copy of an
//! engine, made once for any number of gangs, tries changes there (room freed, a node added, a level
//! dropped) and takes them back. The engine itself is only read.

mod counterfactual;
mod diagnose;
pub mod display;
mod members;
mod nodes;
pub mod reason;
mod room;
mod what_if;

use alloc::vec::Vec;
use core::mem;

pub use display::{Amount, join_words, level_word};
pub(crate) use display::{CARD_COMPUTE, CARD_MEMORY};
pub use reason::{
    CardCondition, Cause, Counterfactual, DomainAttempt, NodeCount, NominatedPod, Reason, Shortfall,
};

use crate::engine::{Config, Explanation, GangId, Scheduler};

/// Explains gangs of the engine that it was made from, as that was at the time.
#[derive(Clone, Debug)]
pub struct Explainer {
    engine: Scheduler,
    /// Of the gang that is explained at the time: the gangs that are tried before it.
    ahead: Vec<GangId>,
    /// Whether these take their places first when a change is tried.
    in_turn: bool,
    /// Searches for these that are left to the kind of change at hand.
    searches_ahead: usize,
    /// The same for all gangs that are explained.
    searches_in_all: usize,
}

/// Searches for gangs ahead of others that one explainer may cost in all.
const SEARCHES: usize = 1 << 15;

impl Explainer {
    pub(crate) fn new(engine: &Scheduler) -> Self {
        let mut engine = engine.clone();
        engine.cluster_mut().settle_order();
        Self::over(engine)
    }

    fn over(engine: Scheduler) -> Self {
        Self {
            engine,
            ahead: Vec::new(),
            in_turn: false,
            searches_ahead: 0,
            searches_in_all: SEARCHES,
        }
    }

    /// The reason of a gang alone: cheap enough for every gang of a large cluster.
    pub fn reason(&mut self, gang: GangId) -> Option<Reason> {
        self.diagnose(gang)?.reason
    }

    /// The full story: reasons of the gang and of each member, domains, counterfactuals. Each
    /// counterfactual has been verified by a search on the changed state. Asked for very many gangs, it stops
    /// trying who waits ahead of the later ones: then more is told under the condition that these are not
    /// there.
    pub fn why(&mut self, gang: GangId) -> Option<Explanation> {
        let mut explanation = self.diagnose(gang)?;
        if matches!(explanation.reason, Some(Reason::DoesNotFit { .. })) {
            self.engine.see_nominated(Some(gang));
            self.find_counterfactuals(gang, &mut explanation);
            self.engine.see_nominated(None);
        }
        Some(explanation)
    }
}

impl Scheduler {
    /// Why a gang and each of its members waits, without what would let it in: some searches, made in
    /// place. The engine decides afterwards as if nobody had asked; a driver can keep up with this where
    /// copies would be too dear. `None` when there is no such gang.
    pub fn reasons(&mut self, gang: GangId) -> Option<Explanation> {
        self.cluster_mut().settle_order();
        let nothing = Scheduler::new(Config::default());
        let mut explainer = Explainer::over(mem::replace(self, nothing));
        let explanation = explainer.diagnose(gang);
        *self = explainer.engine;
        explanation
    }

    /// Something that explains this engine's gangs. Copies the engine: make it once, ask it often.
    pub fn explainer(&self) -> Explainer {
        Explainer::new(self)
    }

    /// Why a gang and each of its members waits, and what would let it in. Changes nothing. For
    /// many gangs use one [`Scheduler::explainer`].
    pub fn why(&self, gang: GangId) -> Option<Explanation> {
        self.explainer().why(gang)
    }
}
