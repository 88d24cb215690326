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

use super::report::{News, UNSCHEDULABLE, Waits};
use crate::{api, member::DEFAULT_SCHEDULER};

/// See the module's head.
pub(super) struct Storyteller {
    scheduler_names: BTreeSet<String>,
    news: UnboundedSender<News>,
    /// Pods that wait for us.
    waiting: BTreeMap<Uid, Waiting>,
    /// Pods and groups that changed since the last decision.
    pods: BTreeSet<Uid>,
    groups: BTreeSet<GangKey>,
    /// Gangs to ask about.
    gangs: BTreeSet<GangId>,
}

/// A pod that waits.
struct Waiting {
    /// Its version, to write about it.
    version: Box<str>,
    /// What was said: the reason in a word and for people.
    said: Option<(String, String)>,
}

impl Storyteller {
    pub(super) fn new(scheduler_names: BTreeSet<String>, news: UnboundedSender<News>) -> Self {
        Self {
            scheduler_names,
            news,
            waiting: BTreeMap::new(),
            pods: BTreeSet::new(),
            groups: BTreeSet::new(),
            gangs: BTreeSet::new(),
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
            let said = None;
            self.waiting.insert(uid, Waiting { version, said });
        }
    }

    /// A pod does not wait any more.
    pub(super) fn forget(&mut self, uid: Uid) {
        if self
            .waiting
            .remove(&uid)
            .is_some_and(|pod| pod.said.is_some())
        {
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
                self.groups.insert(key.clone());
            }
            Event::Node(_)
            | Event::NodeGone { .. }
            | Event::Namespace { .. }
            | Event::Prices(_) => {}
        }
    }

    /// Something was decided about a gang.
    pub(super) fn ask_about(&mut self, gang: GangId) {
        self.gangs.insert(gang);
    }

    /// The gangs have other numbers now.
    pub(super) fn ask_about_all(&mut self, gangs: Vec<GangId>) {
        self.gangs = gangs.into_iter().collect();
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

    /// Whether there are gangs to ask about.
    pub(super) fn has_more(&self) -> bool {
        !self.gangs.is_empty()
    }

    /// Asks about one gang, and says what is new.
    pub(super) fn tell_next(&mut self, scheduler: &mut Scheduler) {
        let Some(id) = self.gangs.pop_first() else {
            return;
        };
        let waits = |gang: &gangline::engine::GangView<'_>| {
            let mut members = gang.members.iter();
            // One that makes no sense counts as one that is held back.
            let waits = |state| matches!(state, MemberState::Waiting | MemberState::Gated);
            members.any(|member| waits(member.state) && self.waiting.contains_key(&member.uid))
        };
        if !scheduler.gang(id).is_some_and(|gang| waits(&gang)) {
            return;
        }
        let Some(story) = scheduler.reasons(id) else {
            return;
        };
        let Some(gang) = scheduler.gang(id) else {
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
            let said = (word(reason).to_owned(), message(reason));
            if waiting.said.as_ref() == Some(&said) {
                continue;
            }
            let (reason, message) = said.clone();
            waiting.said = Some(said);
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
            info!(namespace, gang = name, "waits: {}", message(reason));
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
        | Reason::Surplus { .. }
        | Reason::Undecided { .. } => UNSCHEDULABLE,
        Reason::Invalid { .. }
        | Reason::GroupNotFound { .. }
        | Reason::WaitingForMembers { .. }
        | Reason::MinExceedsMembers { .. }
        | Reason::UnknownLevel { .. }
        | Reason::BindFailed { .. }
        | Reason::TimedOut { .. }
        | Reason::NotTried => reason.code(),
    }
}

/// The reason for people, with its word for programs.
fn message(reason: &Reason) -> String {
    format!("{}: {reason}", reason.code())
}
