//! The transition function. The phase after a change of facts follows from the facts; history
//! matters in two places only: a group that ran may be free of its minimum, and a plan that was not
//! handed out is taken back as a whole.

use super::{Census, Command, Commands, End, Event, Life, LossMode, Phase, Rules, TimeoutPolicy};
use crate::units::Nanos;

/// The next state of a gang and what to do. `census` holds the facts at this moment, before the
/// returned commands are carried out.
pub fn step(life: Life, rules: &Rules, census: Census, event: Event) -> (Life, Commands) {
    if matches!(life.phase, Phase::Ended(_)) {
        return (life, Commands::NONE);
    }
    let mut machine = Machine {
        life,
        rules,
        census,
        commands: Commands::NONE,
    };
    machine.shorten_clocks();
    match event {
        Event::Elapsed(span) => machine.elapse(span),
        Event::Deleted => machine.end(End::Deleted),
        Event::Changed => machine.settle(),
        Event::PlanFound => {
            let wanted = machine.life.in_queue;
            machine.settle();
            if wanted && machine.life.in_queue {
                machine.hold();
            }
        }
        Event::PlanLost => {
            machine.settle();
            if machine.life.phase == Phase::Planned {
                machine.release_holds();
                machine.enter(machine.phase_below_minimum());
            }
        }
        Event::BindStarted => {
            // First of all: from here on the holds are in flight, whatever the facts say.
            if machine.life.phase == Phase::Planned {
                machine.life.phase = Phase::Binding;
            }
            machine.settle();
        }
    }
    // Only the outcome counts: a step may pass through the queue.
    match (life.in_queue, machine.life.in_queue) {
        (false, true) => machine.commands.add(Command::Enqueue),
        (true, false) => machine.commands.add(Command::Dequeue),
        _ => {}
    }
    (machine.life, machine.commands)
}

struct Machine<'a> {
    life: Life,
    rules: &'a Rules,
    census: Census,
    commands: Commands,
}

impl Machine<'_> {
    fn full_schedule(&self) -> Option<Nanos> {
        self.rules.schedule_timeout.map(at_least_one)
    }

    fn full_deadline(&self) -> Nanos {
        match (self.rules.on_timeout, self.full_schedule()) {
            (TimeoutPolicy::ReleasePartial, Some(timeout)) => timeout,
            _ => at_least_one(self.rules.degraded_deadline),
        }
    }

    /// Rules that changed while a clock runs shorten it, never lengthen it.
    fn shorten_clocks(&mut self) {
        let Life {
            schedule_left,
            deadline_left,
            ..
        } = self.life;
        self.life.schedule_left = self.full_schedule().and_then(|full| {
            let queued_without = self.life.phase == Phase::Queued && schedule_left.is_none();
            let left = if queued_without {
                Some(full)
            } else {
                schedule_left
            };
            left.map(|left| left.min(full))
        });
        self.life.deadline_left = deadline_left.map(|left| left.min(self.full_deadline()));
    }

    /// Goes to the phase that the facts ask for.
    fn settle(&mut self) {
        let is_planned = self.life.phase == Phase::Planned;
        let keeps_plan = is_planned && self.census.is_covered && !self.census.is_satisfied;
        if is_planned && !keeps_plan {
            // Nothing of it was handed out, and the group stands or falls without it.
            self.release_holds();
        }
        if self.census.is_finished {
            self.end(End::Completed);
        } else if self.census.is_satisfied || self.is_free_of_minimum() {
            self.enter(Phase::Running);
        } else if keeps_plan {
            self.enter(Phase::Planned);
        } else {
            self.enter(self.phase_below_minimum());
        }
    }

    /// Whether the gang met its minimum once and its owner asks no more, while something of it is
    /// left. When nothing is left it starts over, as a group.
    fn is_free_of_minimum(&self) -> bool {
        self.life.phase == Phase::Running
            && self.rules.on_loss != LossMode::Strict
            && self.census.has_bound
    }

    /// The phase of a gang whose minimum is not met and that has no plan to hand out.
    fn phase_below_minimum(&self) -> Phase {
        let census = &self.census;
        if census.has_held && census.is_covered {
            Phase::Binding
        } else if census.has_held || census.has_bound {
            // Binds in flight cannot be called back, so their room is kept until they end.
            Phase::Degraded
        } else if self.may_start() {
            Phase::Queued
        } else {
            Phase::Gathering
        }
    }

    /// Whether enough members are there for a start of the whole group.
    fn may_start(&self) -> bool {
        match self.rules.on_loss {
            LossMode::WaitingOnly => self.census.is_ready_anew,
            LossMode::Once | LossMode::Strict => self.census.is_ready,
        }
    }

    fn hold(&mut self) {
        self.commands.add(Command::Hold);
        self.census.has_held = true;
        if self.life.phase == Phase::Running {
            self.life.deadline_left = None;
            self.enter(Phase::Running);
        } else {
            self.enter(Phase::Planned);
        }
    }

    fn release_holds(&mut self) {
        if self.census.has_held {
            self.commands.add(Command::ReleaseHolds);
            self.census.has_held = false;
        }
    }

    fn end(&mut self, end: End) {
        self.release_holds();
        self.enter(Phase::Ended(end));
    }

    /// Lets time go by. Each turn of the loop ends in a phase whose clock is another one, or is
    /// the last, so a long span costs no more than a short one.
    fn elapse(&mut self, mut span: Nanos) {
        while let Some(left) = self.life.expires_in() {
            let running = match self.life.phase {
                Phase::Queued => &mut self.life.schedule_left,
                _ => &mut self.life.deadline_left,
            };
            if span < left {
                *running = Some(left.saturating_sub(span));
                return;
            }
            span = span.saturating_sub(left);
            if self.life.phase != Phase::Queued {
                self.miss_deadline();
            } else if self.rules.on_timeout == TimeoutPolicy::Fail {
                self.end(End::Failed);
            } else {
                // However often it would have fired since: the gang is behind the others.
                self.commands.add(Command::Requeue);
                self.life.schedule_left = self
                    .full_schedule()
                    .map(|full| Nanos(full.0 - span.0 % full.0));
                return;
            }
        }
    }

    fn miss_deadline(&mut self) {
        self.release_holds();
        if self.life.phase == Phase::Running || self.census.is_satisfied {
            self.enter(Phase::Running);
        } else if self.census.has_bound {
            self.commands.add(Command::Unwind);
            self.enter(Phase::Gathering);
        } else {
            self.enter(self.phase_below_minimum());
        }
    }

    /// Enters a phase (perhaps the same) and sets what follows from it: clocks and the queue.
    fn enter(&mut self, phase: Phase) {
        let left_running = self.life.phase == Phase::Running && phase != Phase::Running;
        self.life.phase = phase;
        let deadline = match phase {
            _ if left_running => Some(self.full_deadline()),
            _ => self.life.deadline_left.or(Some(self.full_deadline())),
        };
        self.life.deadline_left = match phase {
            Phase::Planned | Phase::Binding | Phase::Degraded => deadline,
            Phase::Running if self.census.has_held => deadline,
            _ => None,
        };
        self.life.schedule_left = match phase {
            Phase::Queued => self.life.schedule_left.or(self.full_schedule()),
            Phase::Planned | Phase::Binding | Phase::Degraded => self.life.schedule_left,
            _ => None,
        };
        self.life.in_queue = match phase {
            Phase::Queued => true,
            // One plan at a time: the next search waits for the binds in flight.
            Phase::Degraded => {
                self.census.is_ready && self.census.has_waiting && !self.census.has_held
            }
            Phase::Running => {
                self.census.has_waiting
                    && (self.rules.on_loss != LossMode::WaitingOnly || self.census.is_ready_anew)
            }
            _ => false,
        };
    }
}

fn at_least_one(span: Nanos) -> Nanos {
    span.max(Nanos(1))
}
