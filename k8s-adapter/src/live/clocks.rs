//! What is left of groups' clocks, so that a scheduler which starts does not give each group its time anew.
//!
//! The driver notes which clocks run ([`Clocks::note`]); whoever renews the lease writes what is left of
//! them into its annotation, which costs no write of its own ([`Clocks::annotate`]). Who takes the lease
//! reads them there ([`Clocks::read`]), and its driver takes them once ([`Clocks::take`]). What is kept is
//! a remainder: neither the time between two schedulers nor a step of anybody's wall clock is in it.

use std::{
    collections::BTreeMap,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gangline::{
    Scheduler,
    engine::{Clock as Kind, ClockLeft},
    units::Nanos,
};
use tracing::warn;

use super::clock::Clock;

/// The annotation of the lease.
const ANNOTATION: &str = "gangline.io/clocks";
/// So many are kept: those of groups that hold room first, then those that run out first. Others start
/// in full after a restart.
const MOST: usize = 100;

/// See the module's head.
#[derive(Clone, Debug)]
pub(super) struct Clocks {
    clock: Clock,
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    /// What another scheduler left.
    found: Vec<ClockLeft>,
    /// What runs, and when it runs out; `None`: nothing was decided yet, so what was found stands.
    running: Option<Vec<(ClockLeft, Nanos)>>,
}

impl Clocks {
    pub(super) fn new(clock: Clock) -> Self {
        let known = Arc::default();
        Self { clock, known }
    }

    /// Lets time go by.
    #[cfg(test)]
    pub(super) fn pass(&mut self, span: std::time::Duration) {
        self.clock.pass(span);
    }

    /// The time that decisions are made at.
    pub(super) const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Notes which clocks run now. Cost: these clocks.
    pub(super) fn note(&self, scheduler: &Scheduler) {
        let now = scheduler.now();
        let mut clocks: Vec<_> = scheduler.clocks().collect();
        let first = |&(_, kind, left): &(_, Kind, Nanos)| (kind == Kind::Schedule, left);
        if clocks.len() > MOST {
            clocks.select_nth_unstable_by_key(MOST, first);
            clocks.truncate(MOST);
        }
        let running = clocks.into_iter().filter_map(|(gang, kind, left)| {
            let (key, uid) = scheduler.key_of(gang)?;
            let key = key.clone();
            let runs_out = now.saturating_add(left);
            let left = ClockLeft {
                key,
                uid,
                clock: kind,
                left,
            };
            Some((left, runs_out))
        });
        let mut running: Vec<_> = running.collect();
        running.sort_by(|(one, _), (other, _)| one.key.cmp(&other.key));
        self.known().running = Some(running);
    }

    /// Writes what is left into the annotations of the lease.
    pub(super) fn annotate(&self, annotations: &mut Option<BTreeMap<String, String>>) {
        let now = self.clock.now();
        let known = self.known();
        let Some(running) = &known.running else {
            return;
        };
        if running.is_empty() {
            if let Some(annotations) = annotations {
                annotations.remove(ANNOTATION);
            }
            return;
        }
        let left = running.iter().map(|(clock, runs_out)| ClockLeft {
            left: runs_out.saturating_sub(now),
            ..clock.clone()
        });
        let left: Vec<ClockLeft> = left.collect();
        match serde_json::to_string(&left) {
            Ok(text) => {
                let annotations = annotations.get_or_insert_default();
                annotations.insert(ANNOTATION.into(), text);
            }
            Err(error) => warn!("what is left of clocks cannot be written: {error}"),
        }
    }

    /// Reads what another scheduler left in the annotations of the lease.
    pub(super) fn read(&self, annotations: Option<&BTreeMap<String, String>>) {
        let text = annotations.and_then(|annotations| annotations.get(ANNOTATION));
        let found = text.map_or(Ok(Vec::new()), |text| serde_json::from_str(text));
        // What was read earlier is out of date, whatever stands there now.
        self.known().found = found.unwrap_or_else(|error| {
            warn!("{ANNOTATION} of the lease cannot be read, all clocks start in full: {error}");
            Vec::new()
        });
    }

    /// Takes what was found.
    pub(super) fn take(&self) -> Vec<ClockLeft> {
        mem::take(&mut self.known().found)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // What it guards is whole at any time.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
