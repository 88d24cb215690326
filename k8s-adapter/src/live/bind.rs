//! Binding: plans in, one write a member, how each ended out.
//!
//! Plans are carried out in the order in which they come, members of one plan side by side, with a
//! bound on how many requests are under way. A plan that has not been started can be withdrawn by whoever
//! sees that it is out of date ([`Ticket`]); from its first write on it is carried through. Each bind ends
//! as one [`Outcome`]. What fails for now is tried again, with growing pauses, as long as the member's
//! room is held; where the answer was lost, the pod is read before anything is written again. Nothing
//! here decides where anything goes.
//!
//! A bind is one write: what a bound pod cannot tell by itself goes along as annotations of the
//! `Binding`, which the API server puts on the pod.

use std::{
    collections::BTreeMap,
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    time::Duration,
};

use gangline::units::Uid;
use tokio::{
    sync::{
        OwnedSemaphorePermit, Semaphore,
        mpsc::{UnboundedReceiver, UnboundedSender},
    },
    task::JoinSet,
    time,
};
use tracing::{Instrument as _, Span, debug};

mod answer;
mod request;
#[cfg(test)]
mod tests;

pub(super) use answer::{Answer, of_error};

use super::{
    events::{Events, Reason, Regarding},
    metrics::Metrics,
    pauses::Pauses,
    request::Requests,
};

/// So many binds are under way at a time.
const AT_A_TIME: usize = 64;
/// The pauses between attempts.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// So often a conflict is met with another attempt, when the pod that was read shows none.
const CONFLICTS: u32 = 3;

/// Whether a plan has been started. It is decided once, by whoever comes first.
#[derive(Debug, Default)]
pub(super) struct Ticket(AtomicU8);

impl Ticket {
    const WAITING: u8 = 0;
    const STARTED: u8 = 1;
    const WITHDRAWN: u8 = 2;

    fn claim(&self, state: u8) -> bool {
        let waiting = Self::WAITING;
        let claimed = self
            .0
            .compare_exchange(waiting, state, Ordering::AcqRel, Ordering::Acquire);
        claimed.is_ok()
    }

    /// The first bind is about to be sent; false: the plan was withdrawn.
    pub(super) fn start(&self) -> bool {
        self.claim(Self::STARTED)
    }

    /// The plan shall not be carried out; false: it is too late.
    pub(super) fn withdraw(&self) -> bool {
        self.claim(Self::WITHDRAWN)
    }

    /// Whether it waits for its start.
    pub(super) fn waits(&self) -> bool {
        self.0.load(Ordering::Acquire) == Self::WAITING
    }
}

/// Members to bind together.
#[derive(Debug)]
pub(super) struct Plan {
    /// Whether it may be carried out.
    pub(super) ticket: Arc<Ticket>,
    /// Its members.
    pub(super) binds: Vec<Bind>,
}

/// One member to bind.
#[derive(Debug)]
pub(super) struct Bind {
    /// Which plan it is of, to tell the ends of several plans for one pod apart.
    pub(super) plan: u64,
    /// Its identity.
    pub(super) uid: Uid,
    /// Its namespace.
    pub(super) namespace: String,
    /// Its name.
    pub(super) name: String,
    /// Where it goes.
    pub(super) node: String,
    /// What it cannot tell by itself when it is bound.
    pub(super) annotations: BTreeMap<&'static str, String>,
    /// Whether its room is held still; without it there is no further attempt.
    pub(super) held: Arc<AtomicBool>,
    /// What is logged about it belongs to its gang.
    pub(super) span: Span,
}

/// What became of a bind.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// Which plan it is of.
    pub(super) plan: u64,
    /// The pod.
    pub(super) pod: Uid,
    /// How it went.
    pub(super) outcome: Outcome,
}

/// How a bind went.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The pod is bound where it should be.
    Bound,
    /// Somebody bound it to another node.
    BoundElsewhere {
        /// The node.
        node: String,
    },
    /// The pod is gone, is being deleted, or is another one of its name.
    Gone,
    /// It failed for now and is tried again. The only one that is not the end.
    Retrying {
        /// What was said.
        message: String,
    },
    /// To try the same again is pointless.
    Refused {
        /// What was said.
        message: String,
    },
    /// Its room was given back meanwhile, so that it was not tried again.
    Abandoned,
}

/// Carries out plans.
#[derive(Clone)]
pub(super) struct Binder {
    requests: Requests,
    reports: UnboundedSender<Report>,
    metrics: Arc<Metrics>,
    events: Events,
    slots: Arc<Semaphore>,
}

impl Binder {
    pub(super) fn new(
        requests: Requests,
        reports: UnboundedSender<Report>,
        metrics: Arc<Metrics>,
        events: Events,
    ) -> Self {
        Self {
            requests,
            reports,
            metrics,
            events,
            slots: Arc::new(Semaphore::new(AT_A_TIME)),
        }
    }

    /// Carries out plans until there will be no more, and ends when their last bind has ended.
    pub(super) async fn work(self, mut plans: UnboundedReceiver<Plan>) {
        let mut binds = JoinSet::new();
        while let Some(plan) = plans.recv().await {
            let mut started = false;
            for bind in plan.binds {
                let slot = self.slot().await;
                if !started && !plan.ticket.start() {
                    break;
                }
                started = true;
                let binder = self.clone();
                let span = bind.span.clone();
                let bound = async move {
                    let since = time::Instant::now();
                    binder.metrics.binds_in_flight.inc();
                    let outcome = binder.carry_out(&bind, slot).await;
                    binder.metrics.binds_in_flight.dec();
                    binder.metrics.bound(&outcome, since.elapsed());
                    if outcome == Outcome::Bound {
                        let pod = Regarding::pod(&bind.namespace, &bind.name, bind.uid);
                        let note = format!("bound to {}", bind.node);
                        binder.events.tell(pod, Reason::Scheduled, note);
                    }
                    binder.report(&bind, outcome);
                };
                binds.spawn(bound.instrument(span));
            }
            while binds.try_join_next().is_some() {}
        }
        while binds.join_next().await.is_some() {}
    }

    /// Waits until one more request may be under way.
    async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        // It is never closed.
        Arc::clone(&self.slots).acquire_owned().await.ok()
    }

    /// Does what the answers ask for until there is an end.
    async fn carry_out(&self, bind: &Bind, mut slot: Option<OwnedSemaphorePermit>) -> Outcome {
        let mut pauses = Pauses::new(FIRST_PAUSE, LONGEST_PAUSE);
        // What was said when it did not work; a write whose end is not known is first looked for.
        let (mut said, mut told) = (String::new(), String::new());
        let (mut is_unclear, mut conflicts, mut has_written) = (false, 0, false);
        loop {
            self.requests.may_write().await;
            if !bind.held.load(Ordering::Acquire) {
                return Outcome::Abandoned;
            }
            let answer = if is_unclear {
                request::find(&self.requests, bind).await
            } else {
                if mem::replace(&mut has_written, true) {
                    self.metrics.bind_retries.inc();
                }
                request::bind(&self.requests, bind).await
            };
            let least = match answer {
                Answer::Bound => return Outcome::Bound,
                Answer::BoundElsewhere { node } => return Outcome::BoundElsewhere { node },
                Answer::Gone => return Outcome::Gone,
                Answer::Refused { message } => return Outcome::Refused { message },
                Answer::Conflict { .. } if conflicts >= CONFLICTS => {
                    return Outcome::Refused { message: said };
                }
                Answer::Conflict { message } => {
                    conflicts += 1;
                    (is_unclear, said) = (true, message);
                    continue;
                }
                Answer::Unclear { message } => {
                    said = message;
                    if !mem::replace(&mut is_unclear, true) {
                        continue;
                    }
                    Duration::ZERO
                }
                Answer::Unbound => {
                    is_unclear = false;
                    Duration::ZERO
                }
                Answer::Throttled { message, after } => {
                    said = message;
                    after
                }
            };
            // Who pauses stands in nobody's way.
            drop(slot.take());
            if said != told {
                told.clone_from(&said);
                let message = said.clone();
                self.report(bind, Outcome::Retrying { message });
            }
            time::sleep(pauses.next().max(least)).await;
            slot = self.slot().await;
        }
    }

    fn report(&self, bind: &Bind, outcome: Outcome) {
        debug!(pod = bind.name, node = bind.node, ?outcome, "bind");
        // Without a reader the process is about to end.
        let _ = self.reports.send(Report {
            plan: bind.plan,
            pod: bind.uid,
            outcome,
        });
    }
}
