//! The life of a gang, told in short: what the documents promise about clocks, policies and losses.

use gangline::{
    gang::{
        LossMode, TimeoutPolicy,
        life::{Census, Command, Commands, End, Event, Life, Phase, Rules, step},
    },
    units::Nanos,
};

const MINUTE: Nanos = Nanos::from_secs(60);
const TIMEOUT: Nanos = Nanos::from_secs(600);

const RULES: Rules = Rules {
    schedule_timeout: Some(TIMEOUT),
    on_timeout: TimeoutPolicy::Requeue,
    on_loss: LossMode::Once,
    degraded_deadline: MINUTE,
};

/// A gang of members that are alike, with its minimum.
struct Gang {
    life: Life,
    rules: Rules,
    min: u32,
    waiting: u32,
    held: u32,
    bound: u32,
    succeeded: u32,
    released: u32,
}

impl Gang {
    /// `waiting` members have come; all of `min` must run.
    fn new(min: u32, waiting: u32, rules: Rules) -> Self {
        let mut gang = Self {
            life: Life::default(),
            rules,
            min,
            waiting,
            held: 0,
            bound: 0,
            succeeded: 0,
            released: 0,
        };
        gang.tell(Event::Changed);
        gang
    }

    /// The same, with a plan that is being bound.
    fn binding(min: u32, rules: Rules) -> Self {
        let mut gang = Self::new(min, min, rules);
        gang.tell(Event::PlanFound);
        gang.tell(Event::BindStarted);
        assert_eq!(gang.phase(), Phase::Binding);
        gang
    }

    fn phase(&self) -> Phase {
        self.life.phase()
    }

    fn tell(&mut self, event: Event) -> Commands {
        let ready_anew = self.waiting + self.held;
        let satisfied = self.bound + self.succeeded;
        let census = Census {
            is_ready: ready_anew + satisfied >= self.min,
            is_ready_anew: ready_anew >= self.min,
            is_covered: self.held + satisfied >= self.min,
            is_satisfied: satisfied >= self.min,
            is_finished: self.succeeded >= self.min && ready_anew + self.bound == 0,
            has_waiting: self.waiting > 0,
            has_held: self.held > 0,
            has_bound: self.bound > 0,
        };
        let (life, commands) = step(self.life, &self.rules, census, event);
        self.life = life;
        for command in commands.iter() {
            match command {
                Command::Hold => self.held += std::mem::take(&mut self.waiting),
                Command::ReleaseHolds => self.waiting += std::mem::take(&mut self.held),
                Command::Unwind => self.released += std::mem::take(&mut self.bound),
                Command::Enqueue | Command::Dequeue | Command::Requeue => {}
            }
        }
        commands
    }

    fn pass(&mut self, span: Nanos) -> Commands {
        self.tell(Event::Elapsed(span))
    }

    fn confirm(&mut self, members: u32) {
        self.held -= members;
        self.bound += members;
        self.tell(Event::Changed);
    }

    /// A bind failed for good: the engine gave the room back.
    fn fail_bind(&mut self) {
        self.held -= 1;
        self.waiting += 1;
        self.tell(Event::Changed);
    }

    fn lose(&mut self, members: u32) {
        self.bound -= members;
        self.tell(Event::Changed);
    }
}

#[test]
fn a_group_runs_only_after_the_last_confirmation() {
    let mut gang = Gang::binding(4, RULES);
    gang.confirm(3);
    assert_eq!(gang.phase(), Phase::Binding);
    gang.confirm(1);
    assert_eq!(gang.phase(), Phase::Running);
    assert_eq!(gang.life.expires_in(), None);
}

#[test]
fn a_member_whose_node_went_away_is_planned_again_while_its_siblings_stay() {
    let mut gang = Gang::binding(4, RULES);
    gang.confirm(3);
    gang.fail_bind();
    assert_eq!(gang.phase(), Phase::Degraded);
    assert!(gang.life.in_queue());
    assert!(gang.tell(Event::PlanFound).contains(Command::Hold));
    gang.tell(Event::BindStarted);
    gang.confirm(1);
    assert_eq!(gang.phase(), Phase::Running);
}

#[test]
fn without_room_for_it_the_siblings_are_released_once_at_the_deadline() {
    let mut gang = Gang::binding(4, RULES);
    gang.confirm(3);
    gang.fail_bind();
    assert_eq!(gang.pass(Nanos::from_secs(59)), Commands::NONE);
    assert!(gang.pass(Nanos::from_secs(1)).contains(Command::Unwind));
    assert_eq!((gang.bound, gang.released), (0, 3));
    gang.tell(Event::Changed);
    assert_eq!(gang.phase(), Phase::Gathering);
    assert_eq!(gang.pass(TIMEOUT), Commands::NONE);
}

#[test]
fn binds_that_fail_over_and_over_do_not_put_the_deadline_off() {
    let mut gang = Gang::binding(2, RULES);
    gang.confirm(1);
    for _ in 0..5 {
        gang.pass(Nanos::from_secs(11));
        gang.fail_bind();
        gang.tell(Event::PlanFound);
        gang.tell(Event::BindStarted);
    }
    assert_eq!(gang.life.deadline_left(), Some(Nanos::from_secs(5)));
    assert!(gang.pass(Nanos::from_secs(5)).contains(Command::Unwind));
}

#[test]
fn a_bind_that_is_never_answered_gives_its_room_back() {
    let mut gang = Gang::binding(2, RULES);
    assert!(gang.pass(MINUTE).contains(Command::ReleaseHolds));
    assert_eq!(gang.phase(), Phase::Queued);
    assert_eq!((gang.waiting, gang.held), (2, 0));
}

#[test]
fn a_running_group_gets_the_full_deadline_for_each_new_plan() {
    let mut gang = Gang::binding(2, RULES);
    gang.confirm(2);
    gang.waiting = 1;
    gang.tell(Event::Changed);
    gang.tell(Event::PlanFound);
    assert_eq!(gang.life.deadline_left(), Some(MINUTE));
    gang.pass(Nanos::from_secs(50));
    gang.waiting = 1;
    gang.tell(Event::Changed);
    gang.tell(Event::PlanFound);
    assert_eq!(gang.life.deadline_left(), Some(MINUTE));
    // A bind that is not answered costs its room, never the members that run.
    let commands = gang.pass(MINUTE);
    assert!(commands.contains(Command::ReleaseHolds) && !commands.contains(Command::Unwind));
    assert_eq!((gang.phase(), gang.bound), (Phase::Running, 2));
}

#[test]
fn the_schedule_clock_starts_when_the_group_is_complete_and_stands_still_in_a_plan() {
    let mut gang = Gang::new(2, 1, RULES);
    assert_eq!(gang.phase(), Phase::Gathering);
    gang.pass(TIMEOUT);
    assert_eq!(gang.life.schedule_left(), None);

    gang.waiting = 2;
    gang.tell(Event::Changed);
    gang.pass(MINUTE);
    let left = Some(TIMEOUT.saturating_sub(MINUTE));
    assert_eq!(
        (gang.phase(), gang.life.schedule_left()),
        (Phase::Queued, left)
    );

    gang.tell(Event::PlanFound);
    gang.pass(Nanos::from_secs(30));
    gang.tell(Event::PlanLost);
    assert_eq!(
        (gang.phase(), gang.life.schedule_left()),
        (Phase::Queued, left)
    );

    // Members vanish: the next time the group is complete, the clock starts in full.
    gang.waiting = 1;
    gang.tell(Event::Changed);
    gang.waiting = 2;
    gang.tell(Event::Changed);
    assert_eq!(gang.life.schedule_left(), Some(TIMEOUT));
}

#[test]
fn a_deleted_member_takes_the_whole_plan_with_it_before_anything_is_bound() {
    let mut gang = Gang::new(2, 2, RULES);
    gang.tell(Event::PlanFound);
    gang.held = 1;
    assert!(gang.tell(Event::Changed).contains(Command::ReleaseHolds));
    assert_eq!(gang.phase(), Phase::Gathering);
}

#[test]
fn each_timeout_policy_does_what_it_says() {
    let mut requeued = Gang::new(2, 2, RULES);
    assert!(requeued.pass(TIMEOUT).contains(Command::Requeue));
    assert_eq!(requeued.phase(), Phase::Queued);
    assert_eq!(requeued.life.schedule_left(), Some(TIMEOUT));

    let fail = Rules {
        on_timeout: TimeoutPolicy::Fail,
        ..RULES
    };
    let mut failed = Gang::new(2, 2, fail);
    failed.pass(TIMEOUT);
    assert_eq!(failed.phase(), Phase::Ended(End::Failed));
    // New pods of a group that failed for good are not tried.
    failed.waiting = 4;
    assert_eq!(failed.tell(Event::Changed), Commands::NONE);
    assert!(!failed.life.in_queue());

    // The group's own timeout takes the place of the engine's deadline.
    let release = Rules {
        on_timeout: TimeoutPolicy::ReleasePartial,
        ..RULES
    };
    let mut partial = Gang::binding(2, release);
    partial.confirm(1);
    partial.fail_bind();
    assert_eq!(partial.pass(MINUTE), Commands::NONE);
    assert!(partial.pass(TIMEOUT).contains(Command::Unwind));

    let patient = Rules {
        schedule_timeout: None,
        ..RULES
    };
    assert_eq!(Gang::new(2, 2, patient).pass(Nanos::MAX), Commands::NONE);
}

#[test]
fn each_loss_mode_does_what_it_says() {
    let running = |on_loss| {
        let mut gang = Gang::binding(3, Rules { on_loss, ..RULES });
        gang.confirm(3);
        gang.lose(1);
        gang
    };

    // Once: one by one, whenever there is room.
    let mut once = running(LossMode::Once);
    assert_eq!(
        (once.phase(), once.life.expires_in()),
        (Phase::Running, None)
    );
    once.waiting = 1;
    assert!(once.tell(Event::Changed).contains(Command::Enqueue));

    // Strict: replaced before the deadline, or released whole.
    let mut strict = running(LossMode::Strict);
    assert_eq!(strict.phase(), Phase::Degraded);
    assert!(strict.pass(MINUTE).contains(Command::Unwind));

    // The deadline counts from the loss, not from a plan that was open already.
    let mut strict = Gang::binding(
        2,
        Rules {
            on_loss: LossMode::Strict,
            ..RULES
        },
    );
    strict.confirm(2);
    strict.waiting = 1;
    strict.tell(Event::Changed);
    strict.tell(Event::PlanFound);
    strict.pass(Nanos::from_secs(50));
    strict.held = 0;
    strict.lose(1);
    assert_eq!(strict.phase(), Phase::Degraded);
    assert_eq!(strict.life.deadline_left(), Some(MINUTE));

    // Waiting only: what runs stays, what comes must be a whole start.
    let mut waiting = running(LossMode::WaitingOnly);
    assert_eq!(waiting.phase(), Phase::Running);
    waiting.waiting = 2;
    assert!(waiting.tell(Event::Changed).is_empty());
    waiting.waiting = 3;
    assert!(waiting.tell(Event::Changed).contains(Command::Enqueue));

    // Nothing is left: the group starts over, as a group, in every mode.
    for on_loss in [LossMode::Once, LossMode::Strict, LossMode::WaitingOnly] {
        let mut gang = running(on_loss);
        gang.lose(2);
        assert_eq!(gang.phase(), Phase::Gathering);
    }
}

#[test]
fn members_that_ended_well_count_towards_the_minimum() {
    let strict = Rules {
        on_loss: LossMode::Strict,
        ..RULES
    };
    let mut gang = Gang::binding(3, strict);
    gang.confirm(3);
    gang.succeeded = 2;
    gang.lose(2);
    assert_eq!(gang.phase(), Phase::Running);
    gang.succeeded = 3;
    gang.lose(1);
    assert_eq!(gang.phase(), Phase::Ended(End::Completed));
}

#[test]
fn a_replacement_starts_beside_members_that_ended_well() {
    let mut gang = Gang::binding(3, RULES);
    gang.confirm(3);
    gang.succeeded = 1;
    gang.lose(2);
    gang.waiting = 1;
    gang.tell(Event::Changed);
    assert_eq!(gang.phase(), Phase::Running);
    assert!(gang.tell(Event::PlanFound).contains(Command::Hold));
}

#[test]
fn rules_that_change_shorten_a_clock_and_never_lengthen_it() {
    let mut gang = Gang::new(2, 2, RULES);
    gang.rules.schedule_timeout = Some(MINUTE);
    gang.tell(Event::Changed);
    assert_eq!(gang.life.schedule_left(), Some(MINUTE));
    gang.rules.schedule_timeout = Some(TIMEOUT);
    gang.tell(Event::Changed);
    assert_eq!(gang.life.schedule_left(), Some(MINUTE));
    gang.rules.schedule_timeout = None;
    gang.tell(Event::Changed);
    assert_eq!(gang.life.schedule_left(), None);
    gang.rules.schedule_timeout = Some(MINUTE);
    gang.pass(Nanos::from_secs(10));
    assert_eq!(gang.life.schedule_left(), Some(Nanos::from_secs(50)));

    let mut gang = Gang::binding(2, RULES);
    gang.rules.degraded_deadline = Nanos::from_secs(5);
    gang.tell(Event::Changed);
    assert_eq!(gang.life.deadline_left(), Some(Nanos::from_secs(5)));
    gang.rules.degraded_deadline = MINUTE;
    gang.tell(Event::Changed);
    assert_eq!(gang.life.deadline_left(), Some(Nanos::from_secs(5)));
}

#[test]
fn a_deleted_group_gives_back_holds_and_leaves_running_members_alone() {
    let mut gang = Gang::binding(4, RULES);
    gang.confirm(2);
    let commands = gang.tell(Event::Deleted);
    assert!(commands.contains(Command::ReleaseHolds));
    assert!(!commands.contains(Command::Unwind));
    assert_eq!(gang.phase(), Phase::Ended(End::Deleted));
    assert_eq!(gang.bound, 2);
}

#[test]
fn commands_come_in_the_order_of_carrying_out() {
    let mut gang = Gang::new(2, 2, RULES);
    gang.tell(Event::PlanFound);
    let order: Vec<Command> = gang.tell(Event::PlanLost).iter().collect();
    assert_eq!(order, [Command::ReleaseHolds, Command::Enqueue]);
    assert!(Command::ALL.is_sorted());
}
