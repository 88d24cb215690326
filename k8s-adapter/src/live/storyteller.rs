//! Which pods wait, and why, as far as it has changed since it was said.
//!
//! Events and decisions say which gangs to ask about; the engine is asked when the driver has nothing
//! better to do, one gang at a time; what is new leaves as [`News`]. Only our own pods are spoken of, and
//! none that its owner holds back with gates: the API server has said so already.

use std::collections::{BTreeMap, BTreeSet};

use gangline::{
    Event, GangId, Scheduler, engine::MemberState, explain::Reason, gang::GangKey, units::Uid,
};
use tokio::sync::mpsc::UnboundedSender;
use tracing::info;

use super::{
    events::{Events, Reason as Happened, Regarding},
    groups::Groups,
    metrics::Pending,
    report::{News, UNSCHEDULABLE, Waits},
};
use crate::{api, member::DEFAULT_SCHEDULER};

/// See the module's head.
pub(super) struct Storyteller {
    scheduler_names: BTreeSet<String>,
    news: UnboundedSender<News>,
    events: Events,
    /// Pods that wait for us.
    waiting: BTreeMap<Uid, Waiting>,
    /// Pods and groups that changed since the last decision.
    pods: BTreeSet<Uid>,
    groups: BTreeSet<GangKey>,
    /// Gangs to ask about.
    gangs: BTreeSet<GangId>,
    /// Groups of which a member waits, each with its reason, and how many have which.
    groups_waiting: BTreeMap<GangId, String>,
    pending_groups: Counts,
    pending_pods: Counts,
}

/// How many have which reason, by its code.
#[derive(Debug, Default)]
struct Counts(BTreeMap<String, u64>);

impl Counts {
    fn add(&mut self, code: &str) {
        *self.0.entry(code.to_owned()).or_default() += 1;
    }

    fn remove(&mut self, code: &str) {
        if let Some(count) = self.0.get_mut(code) {
            *count = count.saturating_sub(1);
        }
    }

    /// Replaces one of them, or takes it in or out.
    fn change(&mut self, before: Option<&str>, after: Option<&str>) {
        if before != after {
            if let Some(code) = before {
                self.remove(code);
            }
            if let Some(code) = after {
                self.add(code);
            }
        }
    }
}

/// A pod that waits.
struct Waiting {
    /// Its version, to write about it.
    version: Box<str>,
    /// What was said: the reason in a word and for people.
    said: Option<(String, String)>,
    /// The code of its reason, as long as it waits.
    code: Option<String>,
}

impl Storyteller {
    pub(super) fn new(
        scheduler_names: BTreeSet<String>,
        news: UnboundedSender<News>,
        events: Events,
    ) -> Self {
        Self {
            scheduler_names,
            news,
            events,
            waiting: BTreeMap::new(),
            pods: BTreeSet::new(),
            groups: BTreeSet::new(),
            gangs: BTreeSet::new(),
            groups_waiting: BTreeMap::new(),
            pending_groups: Counts::default(),
            pending_pods: Counts::default(),
        }
    }

    /// How many groups and pods wait, by the code of their reason.
    pub(super) fn pending(&self) -> Pending {
        Pending {
            groups: self.pending_groups.0.clone(),
            pods: self.pending_pods.0.clone(),
        }
    }

    /// A pod appeared or changed.
    pub(super) fn see(&mut self, pod: &api::Pod, version: Box<str>) {
        let uid = Uid::from_text(&pod.metadata.uid);
        let spec = &pod.spec;
        let name = match &*spec.scheduler_name {
            "" => DEFAULT_SCHEDULER,
            name => name,
        };
        let waits = spec.node_name.is_empty()
            && spec.scheduling_gates.is_empty()
            && pod.metadata.deletion_timestamp.is_none()
            && self.scheduler_names.contains(name);
        if !waits {
            self.forget(uid);
        } else if let Some(known) = self.waiting.get_mut(&uid) {
            known.version = version;
        } else {
            let waiting = Waiting {
                version,
                said: None,
                code: None,
            };
            self.waiting.insert(uid, waiting);
        }
    }

    /// A pod does not wait any more.
    pub(super) fn forget(&mut self, uid: Uid) {
        let Some(pod) = self.waiting.remove(&uid) else {
            return;
        };
        self.pending_pods.change(pod.code.as_deref(), None);
        if pod.said.is_some() {
            self.send(News::Over(uid));
        }
    }

    /// Something is about to be told to the engine.
    pub(super) fn note(&mut self, event: &Event, scheduler: &Scheduler) {
        match event {
            Event::Pod(pod) if pod.node.is_none() => {
                self.pods.insert(pod.uid);
            }
            // Its siblings may wait for it.
            Event::Pod(pod) => self.groups.extend(pod.gang.clone()),
            Event::BindFailed { pod, .. } | Event::BindWithdrawn { pod } => {
                self.pods.insert(*pod);
            }
            Event::PodGone { uid } => self.gangs.extend(scheduler.gang_of(*uid)),
            Event::Gang(gang) => {
                self.groups.insert(gang.key.clone());
            }
            Event::GangGone { key, .. } => {
                self.gangs.extend(scheduler.gang_named(key));
                self.groups.insert(key.clone());
            }
            Event::Node(_)
            | Event::NodeGone { .. }
            | Event::NodeImages { .. }
            | Event::Namespace { .. }
            | Event::Prices(_)
            | Event::ClockLeft(_) => {}
        }
    }

    /// Something was decided about a gang.
    pub(super) fn ask_about(&mut self, gang: GangId) {
        self.gangs.insert(gang);
    }

    /// The gangs have other numbers now.
    pub(super) fn ask_about_all(&mut self, gangs: Vec<GangId>) {
        self.gangs = gangs.into_iter().collect();
        self.groups_waiting.clear();
        self.pending_groups = Counts::default();
    }

    /// Everything was told and decided: finds the gangs of what changed.
    pub(super) fn settle(&mut self, scheduler: &Scheduler) {
        let pods = std::mem::take(&mut self.pods);
        let gangs = pods.iter().filter_map(|pod| scheduler.gang_of(*pod));
        self.gangs.extend(gangs);
        let groups = std::mem::take(&mut self.groups);
        let gangs = groups.iter().filter_map(|key| scheduler.gang_named(key));
        self.gangs.extend(gangs);
    }

    /// Gangs that changed and that nobody has asked about yet.
    pub(super) fn changed(&self) -> impl Iterator<Item = GangId> {
        self.gangs.iter().copied()
    }

    /// Whether there are gangs to ask about.
    pub(super) fn has_more(&self) -> bool {
        !self.gangs.is_empty()
    }

    /// Asks about one gang, and says what is new, also on its group object.
    pub(super) fn tell_next(&mut self, scheduler: &mut Scheduler, groups: &mut Groups) {
        let Some(id) = self.gangs.pop_first() else {
            return;
        };
        let mut waits = false;
        let seen = scheduler.gang(id);
        for member in seen.iter().flat_map(|gang| &gang.members) {
            let Some(pod) = self.waiting.get_mut(&member.uid) else {
                continue;
            };
            // One that makes no sense counts as one that is held back.
            let is_held_back = matches!(member.state, MemberState::Waiting | MemberState::Gated);
            if is_held_back || member.retried {
                waits = true;
            } else {
                self.pending_pods.change(pod.code.take().as_deref(), None);
            }
        }
        // Of large gangs a view costs something, and most gangs that change do not wait.
        let (story, gang) = if waits {
            drop(seen);
            (scheduler.reasons(id), scheduler.gang(id))
        } else {
            (None, seen)
        };
        let code = story.as_ref().and_then(|story| story.reason.as_ref());
        let code = code.filter(|_| gang.as_ref().is_some_and(|gang| !gang.single));
        let code = code.map(|reason| reason.code().to_owned());
        let before = match &code {
            Some(code) => self.groups_waiting.insert(id, code.clone()),
            None => self.groups_waiting.remove(&id),
        };
        self.pending_groups
            .change(before.as_deref(), code.as_deref());
        if let Some(gang) = &gang {
            let reason = story.as_ref().and_then(|story| story.reason.as_ref());
            groups.tell(gang, reason);
        }
        let (Some(story), Some(gang)) = (story, gang) else {
            return;
        };
        let (namespace, name) = (gang.namespace, gang.name);
        let uids: BTreeMap<&str, Uid> = gang
            .members
            .iter()
            .map(|member| (member.name, member.uid))
            .collect();
        let mut is_new = false;
        for (pod, reason) in &story.members {
            let Some(uid) = uids.get(pod.as_str()) else {
                continue;
            };
            let Some(waiting) = self.waiting.get_mut(uid) else {
                continue;
            };
            let code = reason.code();
            self.pending_pods
                .change(waiting.code.as_deref(), Some(code));
            waiting.code = Some(code.to_owned());
            let said = (word(reason).to_owned(), reason.with_code());
            if waiting.said.as_ref() == Some(&said) {
                continue;
            }
            let (reason, message) = said.clone();
            waiting.said = Some(said);
            let regarding = Regarding::pod(namespace, pod, *uid);
            self.events
                .tell(regarding, Happened::FailedScheduling, message.clone());
            is_new = true;
            // Without a reporter the process is about to end.
            let _ = self.news.send(News::Waits(Waits {
                uid: *uid,
                namespace: namespace.into(),
                name: pod.clone(),
                version: waiting.version.clone(),
                reason,
                message,
            }));
        }
        if is_new && let Some(reason) = &story.reason {
            let message = reason.with_code();
            info!(namespace, gang = name, "waits: {message}");
            if let Some(group) = groups.regarding(&gang) {
                self.events.tell(group, Happened::FailedScheduling, message);
            }
        }
    }

    fn send(&self, news: News) {
        // Without a reporter the process is about to end.
        let _ = self.news.send(news);
    }
}

/// The reason in a word. Where more room would help it is the one that cluster autoscalers look for: they
/// must not add machines for a gang whose members are not there.
fn word(reason: &Reason) -> &str {
    match reason {
        Reason::DoesNotFit { .. }
        | Reason::WaitsForSibling { .. }
        | Reason::WouldDelayReservation { .. }
        | Reason::WouldTakeNominatedRoom { .. }
        | Reason::Surplus { .. }
        | Reason::Undecided { .. } => UNSCHEDULABLE,
        Reason::Invalid { .. }
        | Reason::GroupNotFound { .. }
        | Reason::WaitingForMembers { .. }
        | Reason::MinExceedsMembers { .. }
        | Reason::UnknownLevel { .. }
        | Reason::BindFailed { .. }
        | Reason::BindRetrying { .. }
        | Reason::TimedOut { .. }
        | Reason::NotTried => reason.code(),
    }
}
