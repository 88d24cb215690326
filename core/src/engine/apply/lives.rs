//! Feeding lives their events, and carrying out what they say.

use super::super::{
    Scheduler,
    event::{Clock, ClockLeft},
    store::{Charge, Gang, GangIx, Pod, PodIx, Purpose},
    view::MemberState,
};
use crate::{
    device::Devices,
    gang::life::{self, Command, Commands},
    units::Nanos,
};

impl Scheduler {
    /// Tells a gang's life that facts changed.
    pub(in crate::engine) fn touch(&mut self, gang: GangIx) {
        if let Some(entry) = self.gangs.get_mut(gang.0) {
            entry.revision += 1;
            self.drive(gang, life::Event::Changed);
        }
    }

    /// Feeds a gang's life one event and carries out what it says.
    pub(in crate::engine) fn drive(&mut self, gang: GangIx, event: life::Event) -> Commands {
        let Some(entry) = self.gangs.get(gang.0) else {
            return Commands::NONE;
        };
        // Nobody has said what the group needs: it has no life yet, whatever its pods do.
        if entry.key.is_some() && entry.spec.is_none() && event != life::Event::Deleted {
            return Commands::NONE;
        }
        let (rules, census) = (self.rules(entry), entry.census());
        // A group that takes any number of members looks complete while only its finished ones are
        // known; those that come later show that it is not over.
        let over = entry.life.phase() == life::Phase::Ended(life::End::Completed);
        let before = if over && entry.has_unfinished() {
            life::Life::default()
        } else {
            entry.life
        };
        let (life, commands) = life::step(before, &rules, census, event);
        if let Some(entry) = self.gangs.get_mut(gang.0) {
            let turn = entry.turn();
            entry.life = life;
            self.queue_stale |= entry.turn() != turn;
            if life.expires_in().is_none() {
                // The next clock starts when it starts, not when this one was last looked at.
                entry.clock_fed = None;
            } else if !core::mem::replace(&mut entry.clocked, true) {
                self.clocks.push(gang);
            }
        }
        for command in commands.iter() {
            match command {
                Command::ReleaseHolds => {
                    self.release_holds(gang, matches!(event, life::Event::Elapsed(_)));
                }
                Command::Unwind => self.unwind(gang),
                Command::Dequeue => self.leave_queue(gang),
                Command::Enqueue => self.enter_queue(gang),
                Command::Requeue => self.requeue(gang),
                // Carried out by `decide`, which has the plan at hand.
                Command::Hold => {}
            }
        }
        // A group that counts as one that ran is then judged by what is left of it.
        let running = |life: life::Life| life.phase() == life::Phase::Running;
        let started = running(life) && !running(before);
        let facts_changed = started
            || commands.contains(Command::ReleaseHolds)
            || commands.contains(Command::Unwind);
        if facts_changed {
            self.drive(gang, life::Event::Changed);
        }
        commands
    }

    /// Shortens the clock that runs for a group to what was left of it.
    pub(super) fn apply_clock_left(&mut self, known: &ClockLeft) {
        let Some(&gang) = self.gang_by_key.get(&known.key) else {
            return;
        };
        let Some(entry) = self.gangs.get(gang.0) else {
            return;
        };
        let same = entry.uid == known.uid && Clock::of(entry.life) == known.clock;
        let Some(left) = entry.life.expires_in().filter(|_| same) else {
            return;
        };
        // What runs out does so in the next decision, not here.
        let too_much = left.saturating_sub(known.left.max(Nanos(1)));
        if too_much > Nanos::ZERO {
            self.drive(gang, life::Event::Elapsed(too_much));
        }
    }

    pub(super) fn rules(&self, gang: &Gang) -> life::Rules {
        let spec = gang.spec.as_deref();
        life::Rules {
            schedule_timeout: spec.and_then(|spec| spec.schedule_timeout),
            on_timeout: spec.map(|spec| spec.on_timeout).unwrap_or_default(),
            on_loss: spec.map(|spec| spec.on_loss).unwrap_or_default(),
            degraded_deadline: self.config.degraded_deadline,
        }
    }

    pub(super) fn each_member(
        &mut self,
        gang: GangIx,
        mut visit: impl FnMut(&mut Self, PodIx, MemberState),
    ) {
        let count = self.gangs.get(gang.0).map_or(0, |gang| gang.members.len());
        for index in 0..count {
            let member = self
                .gangs
                .get(gang.0)
                .and_then(|gang| gang.members.get(index))
                .copied();
            let Some(member) = member else { return };
            if let Some(state) = self.pods.get(member.0).map(Pod::state) {
                visit(self, member, state);
            }
        }
    }

    /// Gives back the room of all members that are held. Those whose time ran out pause like those
    /// whose bind failed, so that a bind that never comes does not take the room again at once.
    pub(super) fn release_holds(&mut self, gang: GangIx, is_late: bool) {
        self.each_member(gang, |engine, member, state| {
            if state == MemberState::Planned {
                engine.count(member, false);
                engine.drop_charge(member);
                if is_late {
                    engine.note_failure(member, None);
                }
                engine.count(member, true);
            }
        });
    }

    /// Releases the bound members. Who is bound by another scheduler is its affair.
    pub(super) fn unwind(&mut self, gang: GangIx) {
        self.each_member(gang, |engine, member, state| {
            let pod = engine.pods.get(member.0);
            let is_ours = pod.is_some_and(|pod| !pod.spec.foreign);
            if state == MemberState::Bound && is_ours {
                engine.count(member, false);
                if let Some(pod) = engine.pods.get_mut(member.0) {
                    pod.released = true;
                }
            }
        });
        self.releases.push(gang);
    }

    pub(super) fn enter_queue(&mut self, gang: GangIx) {
        if let Some(entry) = self.gangs.get_mut(gang.0) {
            entry.in_queue = true;
            if !core::mem::replace(&mut entry.listed, true) {
                self.queue.push(gang);
                self.queue_stale = true;
            }
        }
    }

    /// The list itself is swept by the next cycle, in one pass.
    pub(in crate::engine) fn leave_queue(&mut self, gang: GangIx) {
        if let Some(entry) = self.gangs.get_mut(gang.0) {
            entry.in_queue = false;
            entry.ready_since = None;
        }
    }

    /// Puts a gang into or out of the queue as a snapshot says.
    pub(in crate::engine) fn restore_queue(&mut self, gang: GangIx, queued: bool) {
        if queued {
            self.enter_queue(gang);
        } else {
            self.leave_queue(gang);
        }
        if let Some(entry) = self.gangs.get_mut(gang.0)
            && entry.life.expires_in().is_some()
            && !core::mem::replace(&mut entry.clocked, true)
        {
            self.clocks.push(gang);
        }
    }

    /// Holds a member's room as a snapshot says, if its devices are still free.
    pub(in crate::engine) fn restore_hold(&mut self, ix: PodIx, node: &str, devices: Devices) {
        let node = self.cluster.node_slot(node);
        let Some(pod) = self.pods.get(ix.0).filter(|pod| pod.charge.is_none()) else {
            return;
        };
        let template = pod.template;
        self.count(ix, false);
        self.cluster.charge(node, template, &Devices::NONE);
        let charge = Charge {
            node,
            devices: Devices::NONE,
            told: Some(devices),
            purpose: Purpose::Held,
        };
        self.note_charge(ix, charge);
        self.settle_devices(node, None);
        self.count(ix, true);
    }

    pub(super) fn requeue(&mut self, gang: GangIx) {
        self.requeues += 1;
        if let Some(entry) = self.gangs.get_mut(gang.0) {
            entry.requeued = self.requeues;
            entry.ready_since = None;
            self.queue_stale = true;
        }
    }
}
