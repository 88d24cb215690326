//! Volumes before binds: plans wait here until the claims of their pods are bound.
//!
//! ```text
//! driver -> Preparing -> binder      when nothing is to be awaited, or any more
//!               |
//!               +-> writer -> API server
//! ```
//! [`Preparing`] belongs to the driver. A plan whose pods have unbound claims stays in it: outside the
//! binder and its slots, so that a slow volume holds nobody up but its own group. What is to be written is
//! told to the writer ([`work`]); what becomes of it is seen by the watches, and looked at in each turn of
//! the driver. A plan that cannot be prepared, or not in time, is given up as a whole: its room is given
//! back, and it is decided anew with what is known by then. What is asked of a provisioner stays asked:
//! the claim's annotation keeps its pod to that node until the provisioner takes it away.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gangline::units::{Nanos, Uid};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::{
    Resource as _,
    api::{Patch, PatchParams},
    core::Request,
};
use serde_json::{Value, json};
use tokio::{
    sync::{
        Semaphore,
        mpsc::{UnboundedReceiver, UnboundedSender},
    },
    task::JoinSet,
    time,
};
use tracing::{debug, info};

use super::{
    bind::{Answer, Bind, Outcome, Plan, Report, of_error},
    pauses::Pauses,
    request::Requests,
};
use crate::{
    mirror::{Mirror, prepare::Place},
    volumes::{
        SELECTED_NODE,
        prepare::{Claimed, Preparation, Progress, Write},
    },
};

/// Volumes that take longer are waited for without holding room: a little less than the engine waits for
/// binds, so that the reason is the volume's.
const PATIENCE: Nanos = Nanos::from_secs(50);
/// So many writes are under way at a time.
const AT_A_TIME: usize = 16;
/// The pauses between attempts.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// What the volume controller looks for on a volume that is not bound by hand.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// A write for a member.
#[derive(Debug)]
pub(super) struct Order {
    plan: u64,
    pod: Uid,
    held: Arc<AtomicBool>,
    pub(super) write: Write,
}

/// A plan that is given up: the member that it failed for, and why. Without a message that was told
/// already.
#[derive(Debug)]
pub(super) struct GivenUp {
    pub(super) plan: Plan,
    pub(super) failed: Option<(Uid, String)>,
}

/// What became of plans.
#[derive(Debug, Default)]
pub(super) struct Looked {
    /// Their volumes are there.
    pub(super) ready: Vec<Plan>,
    /// They will not be carried out.
    pub(super) given_up: Vec<GivenUp>,
}

/// Plans whose volumes are prepared.
#[derive(Debug)]
pub(super) struct Preparing {
    plans: Vec<Waiting>,
    /// Pods of these and of plans that are being bound, by identity: what is kept for them.
    kept: BTreeMap<Uid, Kept>,
    orders: UnboundedSender<Order>,
}

#[derive(Debug)]
struct Waiting {
    plan: Plan,
    until: Nanos,
}

#[derive(Debug)]
struct Kept {
    namespace: String,
    name: String,
    preparation: Preparation,
}

impl Preparing {
    pub(super) fn new(orders: UnboundedSender<Order>) -> Self {
        Self {
            plans: Vec::new(),
            kept: BTreeMap::new(),
            orders,
        }
    }

    /// Takes a plan. [`look`](Self::look) says what became of it.
    pub(super) fn start(&mut self, plan: Plan, mirror: &mut Mirror, now: Nanos) -> Looked {
        let mut looked = Looked::default();
        let places = plan.binds.iter().map(|bind| Place {
            namespace: &bind.namespace,
            name: &bind.name,
            node: &bind.node,
        });
        let places: Vec<Place<'_>> = places.collect();
        let preparations = match mirror.prepare(&places) {
            Ok(preparations) => preparations,
            Err(unmet) => {
                let failed = plan.binds.get(unmet.member);
                let failed = failed.map(|bind| (bind.uid, unmet.message));
                looked.given_up.push(GivenUp { plan, failed });
                return looked;
            }
        };
        if preparations.iter().all(Preparation::is_empty) {
            looked.ready.push(plan);
            return looked;
        }
        for (bind, preparation) in plan.binds.iter().zip(preparations) {
            if !preparation.is_empty() {
                let kept = Kept {
                    namespace: bind.namespace.clone(),
                    name: bind.name.clone(),
                    preparation,
                };
                self.kept.insert(bind.uid, kept);
            }
        }
        info!(members = plan.binds.len(), "waiting for volumes");
        let until = now.saturating_add(PATIENCE);
        let waiting = Waiting { plan, until };
        if let Some(ended) = self.look_at(waiting, mirror, now, &mut looked) {
            self.plans.push(ended);
        }
        looked
    }

    /// Looks at all plans. `is_held`: the room of a pod is held still.
    pub(super) fn look(
        &mut self,
        mirror: &Mirror,
        now: Nanos,
        is_held: impl Fn(Uid) -> bool,
    ) -> Looked {
        let mut looked = Looked::default();
        for waiting in std::mem::take(&mut self.plans) {
            let plan = &waiting.plan;
            if !plan.ticket.waits() {
                // Withdrawn: its pods are told of already.
                continue;
            }
            if !plan.binds.iter().all(|bind| is_held(bind.uid)) {
                let (plan, failed) = (waiting.plan, None);
                looked.given_up.push(GivenUp { plan, failed });
                continue;
            }
            if let Some(waiting) = self.look_at(waiting, mirror, now, &mut looked) {
                self.plans.push(waiting);
            }
        }
        looked
    }

    fn look_at(
        &mut self,
        waiting: Waiting,
        mirror: &Mirror,
        now: Nanos,
        looked: &mut Looked,
    ) -> Option<Waiting> {
        let mut is_ready = true;
        for bind in &waiting.plan.binds {
            let Some(kept) = self.kept.get_mut(&bind.uid) else {
                continue;
            };
            let mut writes = Vec::new();
            let progress = mirror.look_at(&mut kept.preparation, &bind.node, &mut writes);
            let failed = match progress {
                Progress::Ready => continue,
                Progress::Failed { message } => message,
                Progress::Waits { message } if waiting.until <= now => {
                    let seconds = PATIENCE.0 / Nanos::from_secs(1).0;
                    format!("{message}, after {seconds} s")
                }
                Progress::Waits { .. } => {
                    is_ready = false;
                    self.order(bind, writes);
                    continue;
                }
            };
            let failed = Some((bind.uid, failed));
            let plan = waiting.plan;
            looked.given_up.push(GivenUp { plan, failed });
            return None;
        }
        if is_ready {
            looked.ready.push(waiting.plan);
            return None;
        }
        Some(waiting)
    }

    fn order(&self, bind: &Bind, writes: Vec<Write>) {
        for write in writes {
            // Without a writer the process is about to end.
            let _ = self.orders.send(Order {
                plan: bind.plan,
                pod: bind.uid,
                held: Arc::clone(&bind.held),
                write,
            });
        }
    }

    /// Pods that are not being bound any more need nothing kept. Says whether there were any: others may
    /// have waited for it.
    pub(super) fn let_go(&mut self, mirror: &mut Mirror, is_binding: impl Fn(Uid) -> bool) -> bool {
        let before = self.kept.len();
        self.kept.retain(|pod, kept| {
            let stays = is_binding(*pod);
            if !stays {
                mirror.prepared(&kept.namespace, &kept.name, &kept.preparation);
            }
            stays
        });
        self.kept.len() < before
    }

    /// When to look again although nothing happened.
    pub(super) fn until(&self) -> Option<Nanos> {
        self.plans.iter().map(|waiting| waiting.until).min()
    }
}

/// Writes what is ordered until there will be no more orders.
pub(super) async fn work(
    requests: Requests,
    mut orders: UnboundedReceiver<Order>,
    reports: UnboundedSender<Report>,
) {
    let slots = Arc::new(Semaphore::new(AT_A_TIME));
    let mut tasks = JoinSet::new();
    while let Some(order) = orders.recv().await {
        let (requests, slots, reports) = (requests.clone(), Arc::clone(&slots), reports.clone());
        tasks.spawn(async move { order.carry_out(&requests, &slots, &reports).await });
        while tasks.try_join_next().is_some() {}
    }
    while tasks.join_next().await.is_some() {}
}

impl Order {
    async fn carry_out(
        &self,
        requests: &Requests,
        slots: &Semaphore,
        reports: &UnboundedSender<Report>,
    ) {
        let mut pauses = Pauses::new(FIRST_PAUSE, LONGEST_PAUSE);
        let report = |outcome| {
            // Without a reader the process is about to end.
            let _ = reports.send(Report {
                plan: self.plan,
                pod: self.pod,
                outcome,
            });
        };
        let mut told = String::new();
        loop {
            let slot = slots.acquire().await;
            requests.may_write().await;
            if !self.held.load(Ordering::Acquire) {
                return;
            }
            let (path, name, patch) = self.write.request();
            let parameters = PatchParams::default();
            let request = Request::new(path).patch(name, &parameters, &Patch::Merge(patch));
            let answer = requests.write(request).await;
            drop(slot);
            debug!(write = ?self.write, ok = answer.is_ok(), "volume");
            let Err(error) = answer else {
                return;
            };
            let (message, least) = match of_error(error) {
                // The object has changed, or the write came through before. The watch brings it, and with
                // it the next look. The others are no answers to a write.
                Answer::Conflict { .. }
                | Answer::Bound
                | Answer::BoundElsewhere { .. }
                | Answer::Unbound => return,
                Answer::Gone => {
                    let message = format!("{} is gone", self.write.object());
                    report(Outcome::Refused { message });
                    return;
                }
                Answer::Refused { message } => {
                    let message = format!("{}: {message}", self.write.object());
                    report(Outcome::Refused { message });
                    return;
                }
                Answer::Throttled { message, after } => (message, after),
                Answer::Unclear { message } => (message, Duration::ZERO),
            };
            if told != message {
                told.clone_from(&message);
                let message = format!("{}: {message}", self.write.object());
                report(Outcome::Retrying { message });
            }
            time::sleep(pauses.next().max(least)).await;
        }
    }
}

impl Write {
    /// Kind and name of what is written.
    fn object(&self) -> String {
        match self {
            Self::SelectNode { claim, .. } => {
                format!("PersistentVolumeClaim {}/{}", claim.namespace, claim.name)
            }
            Self::KeepVolume { volume, .. } => format!("PersistentVolume {volume}"),
        }
    }

    /// Path, name and merge patch. Identity and version are in the patch, so that the API server refuses
    /// it when the object is another one by now.
    pub(super) fn request(&self) -> (String, &str, Value) {
        match self {
            Self::SelectNode {
                claim,
                version,
                node,
            } => {
                let path = PersistentVolumeClaim::url_path(&(), Some(&claim.namespace));
                let mut metadata =
                    json!({ "uid": claim.uid, "annotations": { SELECTED_NODE: node } });
                add_version(&mut metadata, version);
                (path, &claim.name, json!({ "metadata": metadata }))
            }
            Self::KeepVolume {
                volume,
                version,
                claim,
                claim_version,
            } => {
                let path = PersistentVolume::url_path(&(), None);
                let mut metadata = json!({ "annotations": { BOUND_BY_CONTROLLER: "yes" } });
                add_version(&mut metadata, version);
                let Claimed {
                    namespace,
                    name,
                    uid,
                } = claim;
                let claim = json!({
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": namespace,
                    "name": name,
                    "uid": uid,
                    "resourceVersion": claim_version,
                });
                let patch = json!({ "metadata": metadata, "spec": { "claimRef": claim } });
                (path, volume, patch)
            }
        }
    }
}

fn add_version(metadata: &mut Value, version: &str) {
    if !version.is_empty() {
        metadata["resourceVersion"] = version.into();
    }
}
