//! What a driver asks between decisions: when to come back although nothing happens, and what became
//! of a pod that it was told to bind. Changes nothing.
//!
//! A driver that calls [`decide`](Scheduler::decide) after each change and at each
//! [`next_deadline`](Scheduler::next_deadline) misses nothing and may sleep in between.

use super::{Clock, GangId, Scheduler, Verdict, view::MemberState};
use crate::{
    gang::{GangKey, life::Phase},
    units::{Nanos, Uid},
};

impl Scheduler {
    /// When [`decide`](Self::decide) must be called again even if nothing happens until then: a clock
    /// runs out, the pause after a failed bind ends, or a gang has waited long enough for a
    /// reservation. `None`: not before something happens. A time that is not later than
    /// [`now`](Self::now) means at once: some clock waits for its start. It may be earlier than
    /// needed, never later. Cost: the gangs that wait, and of those that pause the members.
    pub fn next_deadline(&self) -> Option<Nanos> {
        let clocks = self.clocks.iter().filter_map(|gang| {
            let gang = self.gangs.get(gang.0)?;
            let left = gang.life.expires_in()?;
            Some(
                gang.clock_fed
                    .map_or(self.now, |fed| fed.saturating_add(left)),
            )
        });
        let queued = self.queue.iter().filter_map(|gang| {
            let gang = self.gangs.get(gang.0).filter(|gang| gang.in_queue)?;
            let pauses = (gang.verdict == Verdict::Waiting)
                .then(|| {
                    let members = gang.members.iter();
                    let pods = members.filter_map(|member| self.pods.get(member.0));
                    pods.filter_map(|pod| pod.failures.as_deref())
                        .map(|failures| failures.not_before)
                        .max()
                })
                .flatten();
            let is_free = self.reservation.is_none() && gang.life.phase() != Phase::Running;
            let reserves = gang
                .ready_since
                .filter(|_| is_free)
                .map(|since| since.saturating_add(self.config.reserve_after));
            // What is past was looked at by the latest decision.
            let later = |time: &Nanos| *time > self.now;
            pauses
                .filter(later)
                .into_iter()
                .chain(reserves.filter(later))
                .min()
        });
        let overdue = self
            .reservation
            .as_ref()
            .and_then(|reservation| reservation.starts)
            .map(|starts| starts.saturating_add(Nanos(1)))
            .filter(|time| *time > self.now);
        clocks.chain(queued).chain(overdue).min()
    }

    /// The groups whose clocks run, each with its clock and what was left of it at [`now`](Self::now), in
    /// no order. Cost: these groups.
    pub fn clocks(&self) -> impl Iterator<Item = (GangId, Clock, Nanos)> {
        self.clocks.iter().filter_map(|&id| {
            let gang = self.gangs.get(id.0).filter(|gang| gang.key.is_some())?;
            let since = gang.clock_fed.map(|fed| self.now.saturating_sub(fed));
            let left = gang.life.expires_in()?;
            let left = left.saturating_sub(since.unwrap_or_default());
            Some((id, Clock::of(gang.life), left))
        })
    }

    /// Key and identity of a group.
    pub fn key_of(&self, gang: GangId) -> Option<(&GangKey, Uid)> {
        let gang = self.gangs.get(gang.0)?;
        Some((gang.key.as_deref()?, gang.uid))
    }

    /// The gang that a pod is of, or the gang of one that it is.
    pub fn gang_of(&self, pod: Uid) -> Option<GangId> {
        let pod = self.pod_by_uid.get(&pod)?;
        self.pods.get(pod.0).map(|pod| pod.gang)
    }

    /// The gang that pods name like this.
    pub fn gang_named(&self, key: &GangKey) -> Option<GangId> {
        self.gang_by_key.get(key).copied()
    }

    /// What a pod is doing, as far as its gang is concerned; `None` when it is not known. A pod that is
    /// to be bound is [`MemberState::Planned`] as long as its room is held.
    pub fn state_of(&self, pod: Uid) -> Option<MemberState> {
        let pod = self.pod_by_uid.get(&pod)?;
        self.pods.get(pod.0).map(super::Pod::state)
    }
}
