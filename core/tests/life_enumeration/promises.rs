//! What must hold in every state and for every step of the model. Each check says in its message
//! which promise is broken.

use gangline::{
    gang::{
        LossMode, TimeoutPolicy,
        life::{Census, Command, Commands, End, Event, Life, Phase},
    },
    units::Nanos,
};

use crate::model::{Model, World, carry_out};

impl Model<'_> {
    fn full_schedule(&self) -> Option<Nanos> {
        self.rules.schedule_timeout
    }

    fn full_deadline(&self) -> Nanos {
        match (self.rules.on_timeout, self.rules.schedule_timeout) {
            (TimeoutPolicy::ReleasePartial, Some(timeout)) => timeout,
            _ => self.rules.degraded_deadline,
        }
    }

    fn may_start(&self, census: Census) -> bool {
        match self.rules.on_loss {
            LossMode::WaitingOnly => census.is_ready_anew,
            _ => census.is_ready,
        }
    }

    /// What must hold whenever everything known is told and everything asked is done.
    pub(crate) fn check_quiet(&self, world: &World) -> Result<(), &'static str> {
        let census = self.census(&world.roles);
        let life = world.life;
        let phase = life.phase();
        let require = |holds: bool, what| if holds { Ok(()) } else { Err(what) };
        if let Phase::Ended(end) = phase {
            require(!census.has_held, "an ended group holds room")?;
            require(!life.in_queue(), "an ended group is in the queue")?;
            require(life.expires_in().is_none(), "an ended group has a clock")?;
            return require(
                end != End::Failed || self.rules.on_timeout == TimeoutPolicy::Fail,
                "failed without being asked to",
            );
        }
        require(!census.is_finished, "a finished group goes on")?;
        let in_part = census.has_bound && !census.is_satisfied;
        let is_free = self.rules.on_loss != LossMode::Strict && phase == Phase::Running;
        require(
            !in_part || life.deadline_left().is_some() || is_free && world.met,
            "members run below the minimum without a deadline",
        )?;
        require(
            !census.has_held || life.deadline_left().is_some(),
            "a hold without a deadline",
        )?;
        require(
            census.is_satisfied <= (phase == Phase::Running),
            "the minimum is met and the group is not running",
        )?;
        let idle = !census.has_held && !matches!(phase, Phase::Running);
        require(
            !(idle && census.is_ready && in_part) || life.in_queue(),
            "a degraded group that is complete is not tried",
        )?;
        match phase {
            Phase::Gathering => require(
                !census.has_held && !census.has_bound && !self.may_start(census),
                "gathering holds nothing and lacks members",
            ),
            Phase::Queued => require(
                !census.has_held
                    && !census.has_bound
                    && self.may_start(census)
                    && life.in_queue()
                    && life.schedule_left().is_some() == self.full_schedule().is_some(),
                "queued holds nothing, is complete, has its clock",
            ),
            Phase::Planned | Phase::Binding => require(
                census.has_held && census.is_covered && !life.in_queue(),
                "a plan covers the minimum",
            ),
            Phase::Running => require(
                (census.is_satisfied || in_part && is_free && world.met)
                    && life.in_queue()
                        == (census.has_waiting
                            && (self.rules.on_loss != LossMode::WaitingOnly
                                || census.is_ready_anew)),
                "running means the minimum is or was met, and members that wait are tried",
            ),
            Phase::Degraded => require(
                (in_part || census.has_held)
                    && life.in_queue()
                        == (census.is_ready && census.has_waiting && !census.has_held),
                "degraded means that something is left, and one plan at a time is made for the rest",
            ),
            Phase::Ended(_) => Ok(()),
        }
    }

    /// What must hold for every single step.
    pub(crate) fn check_step(
        &self,
        before: &World,
        after: &World,
        event: Event,
        commands: Commands,
    ) -> Result<(), &'static str> {
        let census = self.census(&before.roles);
        let (old, new) = (before.life, after.life);
        let require = |holds: bool, what| if holds { Ok(()) } else { Err(what) };
        if matches!(old.phase(), Phase::Ended(_)) {
            return require(old == new && commands.is_empty(), "an end is not final");
        }
        if commands.contains(Command::Unwind) {
            require(
                !census.is_satisfied,
                "a group that meets its minimum is released",
            )?;
            require(
                !self.census(&after.roles).has_bound,
                "our own release leaves members running",
            )?;
        }
        match (old.in_queue(), new.in_queue()) {
            (false, true) => require(
                commands.contains(Command::Enqueue),
                "in the queue without being put there",
            )?,
            (true, false) => require(
                commands.contains(Command::Dequeue),
                "out of the queue without being taken",
            )?,
            _ => require(
                !commands.contains(Command::Enqueue) && !commands.contains(Command::Dequeue),
                "put into the queue or taken out twice",
            )?,
        }
        match event {
            Event::Elapsed(span) => self.check_elapsed(before, after, span, commands),
            Event::Deleted => require(
                new.phase() == Phase::Ended(End::Deleted) && !commands.contains(Command::Unwind),
                "a deleted group ends, and its members are its owner's",
            ),
            _ => {
                require(
                    !commands.contains(Command::Unwind) && !commands.contains(Command::Requeue),
                    "a policy fired without its clock",
                )?;
                let was_planned = old.phase() == Phase::Planned;
                require(
                    !was_planned
                        || matches!(new.phase(), Phase::Planned | Phase::Binding)
                        || !self.census(&after.roles).has_held,
                    "a plan that was not handed out is held on to",
                )?;
                require(
                    match event {
                        Event::PlanFound => commands.contains(Command::Hold),
                        Event::PlanLost => !was_planned || !self.census(&after.roles).has_held,
                        Event::BindStarted => !was_planned || new.phase() == Phase::Binding,
                        _ => true,
                    },
                    "a plan is not taken, handed out or given back",
                )?;
                self.check_clocks_without_time(old, new, event)
            }
        }
    }

    /// Without time, clocks stand still, stop, or start in full where the documents say so.
    fn check_clocks_without_time(
        &self,
        old: Life,
        new: Life,
        event: Event,
    ) -> Result<(), &'static str> {
        let schedule_is_fine = match (old.schedule_left(), new.schedule_left()) {
            (_, None) => true,
            (None, left) => left == self.full_schedule() && new.phase() == Phase::Queued,
            (old, new) => old == new,
        };
        if !schedule_is_fine {
            return Err("the schedule clock jumps");
        }
        let restarts = old.phase() == Phase::Running
            && (new.phase() != Phase::Running || event == Event::PlanFound);
        let deadline_is_fine = match (old.deadline_left(), new.deadline_left()) {
            (_, None) => true,
            (None, Some(left)) => left == self.full_deadline(),
            (Some(old), Some(new)) => old == new || restarts && new == self.full_deadline(),
        };
        if !deadline_is_fine {
            return Err("the deadline jumps");
        }
        Ok(())
    }

    /// With time, the one running clock goes down by as much, or its policy fires, once.
    fn check_elapsed(
        &self,
        before: &World,
        after: &World,
        span: Nanos,
        commands: Commands,
    ) -> Result<(), &'static str> {
        let census = self.census(&before.roles);
        let (old, new) = (before.life, after.life);
        let is_queued = old.phase() == Phase::Queued;
        let require = |holds: bool, what| if holds { Ok(()) } else { Err(what) };
        let rest = match old.expires_in() {
            Some(left) if left <= span => span.saturating_sub(left),
            running => {
                let left = running.map(|left| left.saturating_sub(span));
                let (schedule, deadline) = if is_queued {
                    (left, old.deadline_left())
                } else {
                    (old.schedule_left(), left)
                };
                return require(
                    commands.is_empty()
                        && new.phase() == old.phase()
                        && new.schedule_left() == schedule
                        && new.deadline_left() == deadline,
                    "time does more than to pass",
                );
            }
        };
        if is_queued {
            return self.check_timeout(after, rest, commands);
        }
        let in_part = census.has_bound && !census.is_satisfied;
        let unwinds = in_part && old.phase() != Phase::Running;
        require(
            commands.contains(Command::Unwind) == unwinds
                && commands.contains(Command::ReleaseHolds) == census.has_held
                && new.deadline_left().is_none(),
            "a deadline releases what is open, once",
        )?;
        if unwinds {
            require(
                new.phase() == Phase::Gathering && new.schedule_left().is_none(),
                "a released group starts over",
            )
        } else if old.phase() == Phase::Running {
            require(
                new.phase() == Phase::Running,
                "a running group lost its status with its holds",
            )
        } else if !self.may_start(self.census(&after.roles)) {
            require(new.phase() == Phase::Gathering, "tried without its members")
        } else {
            // Back in the queue, and its clock goes on with what is left of the span.
            match old.schedule_left().or(self.full_schedule()) {
                Some(left) if left <= rest => {
                    self.check_timeout(after, rest.saturating_sub(left), commands)
                }
                left => require(
                    new.phase() == Phase::Queued
                        && new.schedule_left() == left.map(|left| left.saturating_sub(rest)),
                    "the schedule clock lost time",
                ),
            }
        }
    }

    fn check_timeout(
        &self,
        after: &World,
        rest: Nanos,
        commands: Commands,
    ) -> Result<(), &'static str> {
        let fired = match self.rules.on_timeout {
            TimeoutPolicy::Fail => after.life.phase() == Phase::Ended(End::Failed),
            TimeoutPolicy::Requeue | TimeoutPolicy::ReleasePartial => {
                after.life.phase() == Phase::Queued
                    && commands.contains(Command::Requeue)
                    && after.life.schedule_left()
                        == self
                            .full_schedule()
                            .map(|full| Nanos(full.0 - rest.0 % full.0))
            }
        };
        if fired {
            Ok(())
        } else {
            Err("the schedule timeout does not do what its policy says")
        }
    }

    /// A span in one piece and in two ends in the same state.
    pub(crate) fn check_split(&self, world: &World) -> Result<(), String> {
        let pass = |mut world: World, span: u64| {
            let census = self.census(&world.roles);
            let event = Event::Elapsed(Nanos(span));
            let (life, commands) = (self.step)(world.life, &self.rules, census, event);
            world.life = life;
            carry_out(&mut world.roles, commands, [0; 2]);
            world
        };
        if world.life.expires_in().is_none() {
            return Ok(());
        }
        for (first, second) in [(1, 1), (1, 2), (2, 10)] {
            let whole = pass(*world, first + second);
            let parts = pass(pass(*world, first), second);
            if (whole.roles, whole.life) != (parts.roles, parts.life) {
                return Err(format!(
                    "{first}+{second} differs: {:?} {world:?}\n{whole:?}\n{parts:?}",
                    self.rules
                ));
            }
        }
        Ok(())
    }
}
