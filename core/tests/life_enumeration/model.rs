//! A small honest engine around the life-cycle machine: it counts members, carries out commands to
//! the letter, and lets everything happen that can happen outside, in any order.

use std::collections::HashSet;

use gangline::{
    gang::{
        LossMode, TimeoutPolicy,
        life::{Census, Command, Commands, End, Event, Life, Phase, Rules},
    },
    units::Nanos,
};

/// What a member may be. Members that are being deleted are no members, hence `ABSENT`.
pub(crate) type Kind = usize;
pub(crate) const ABSENT: Kind = 0;
pub(crate) const PENDING: Kind = 1;
pub(crate) const HELD: Kind = 2;
pub(crate) const BOUND: Kind = 3;
pub(crate) const SUCCEEDED: Kind = 4;
pub(crate) const FAILED: Kind = 5;

/// What may happen to one member, apart from what the engine does: from, to.
const OUTSIDE: [(Kind, Kind); 12] = [
    (ABSENT, PENDING),
    (PENDING, ABSENT),
    // Somebody else bound it, or a bind that we gave up on did happen.
    (PENDING, BOUND),
    (PENDING, FAILED),
    (HELD, ABSENT),
    (BOUND, ABSENT),
    (BOUND, SUCCEEDED),
    (BOUND, FAILED),
    (SUCCEEDED, ABSENT),
    (FAILED, ABSENT),
    // Answers to our binds: confirmed, failed for good.
    (HELD, BOUND),
    (HELD, PENDING),
];

/// Spans that may go by: a single step, and one that jumps over every clock.
pub(crate) const SPANS: [u64; 2] = [1, 10];

pub(crate) type Step = fn(Life, &Rules, Census, Event) -> (Life, Commands);

/// How many members each role has of each kind. Members of a role are alike, so counts suffice.
pub(crate) type Roles = [[u8; 6]; 2];

/// A group's shape: count and minimum of each role, and the minimum of the whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) counts: [u8; 2],
    pub(crate) minima: [u8; 2],
    pub(crate) total: u8,
}

/// All shapes of up to two roles with up to three members each. A total below the sum of the
/// roles' minima says nothing new, nor does an exchange of the roles.
pub(crate) fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for first in 1..=3_u8 {
        for second in 0..=first {
            for first_min in 0..=first {
                for second_min in 0..=second {
                    if first == second && second_min > first_min {
                        continue;
                    }
                    for total in first_min + second_min..=first + second {
                        shapes.push(Shape {
                            counts: [first, second],
                            minima: [first_min, second_min],
                            total,
                        });
                    }
                }
            }
        }
    }
    shapes
}

/// All loss modes with all timeout policies, and with no timeout at all. The spans are as short as
/// they can be with a remainder between full and nothing (the deadline has one where the policy
/// lends it the timeout's span): longer ones only multiply the states.
pub(crate) fn all_rules() -> Vec<Rules> {
    let timeout = Some(Nanos(2));
    let mut rules = Vec::new();
    for on_loss in [LossMode::Once, LossMode::Strict, LossMode::WaitingOnly] {
        for (schedule_timeout, on_timeout) in [
            (None, TimeoutPolicy::Requeue),
            (timeout, TimeoutPolicy::Requeue),
            (timeout, TimeoutPolicy::Fail),
            (timeout, TimeoutPolicy::ReleasePartial),
        ] {
            rules.push(Rules {
                schedule_timeout,
                on_timeout,
                on_loss,
                degraded_deadline: Nanos(1),
            });
        }
    }
    rules
}

/// A group in the model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    pub(crate) roles: Roles,
    pub(crate) life: Life,
    /// Whether the minimum was met since members were last bound from nothing. The machine does
    /// not see this; it is what "free after the minimum was met once" is judged by.
    pub(crate) met: bool,
}

impl World {
    /// All of it as a small number, to remember where we were.
    fn index(&self, ranks: &Ranks) -> usize {
        let phase = match self.life.phase() {
            Phase::Gathering => 0,
            Phase::Queued => 1,
            Phase::Planned => 2,
            Phase::Binding => 3,
            Phase::Running => 4,
            Phase::Degraded => 5,
            Phase::Ended(End::Completed) => 6,
            Phase::Ended(End::Failed) => 7,
            Phase::Ended(End::Deleted) => 8,
        };
        // No clock is longer than 2; an overlong one must not look like another state.
        let left = |left: Option<Nanos>| left.map_or(0, |left| left.0.min(3) as usize);
        let mut index = ranks.of(&self.roles);
        index = index * 9 + phase;
        index = index * 4 + left(self.life.schedule_left());
        index = index * 4 + left(self.life.deadline_left());
        index = index * 2 + usize::from(self.life.in_queue());
        index * 2 + usize::from(self.met)
    }
}

/// Numbers the counts that a role can have, so that what is known about all of them is a table.
#[derive(Debug)]
pub(crate) struct Ranks {
    by_bits: Vec<u16>,
    roles: Vec<[u8; 6]>,
}

impl Ranks {
    pub(crate) fn new() -> Self {
        let mut ranks = Self {
            by_bits: vec![0; 1 << 12],
            roles: Vec::new(),
        };
        for bits in 0..1 << 12 {
            let role: [u8; 6] = std::array::from_fn(|kind| (bits >> (10 - 2 * kind) & 3) as u8);
            if role.iter().sum::<u8>() <= 3 {
                ranks.by_bits[bits] = ranks.roles.len() as u16;
                ranks.roles.push(role);
            }
        }
        ranks
    }

    fn of(&self, roles: &Roles) -> usize {
        let [first, second] = roles.map(|role| {
            let bits = role
                .iter()
                .fold(0, |bits, count| bits << 2 | usize::from(*count));
            usize::from(self.by_bits[bits])
        });
        first * self.roles.len() + second
    }

    fn all(&self) -> impl Iterator<Item = Roles> {
        (self.roles.iter()).flat_map(|first| self.roles.iter().map(|second| [*first, *second]))
    }
}

/// What an enumeration saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) worlds: usize,
    pub(crate) transitions: usize,
    pub(crate) phases: HashSet<Phase>,
    pub(crate) lives: HashSet<Life>,
}

/// A shape, and the census of every way its members can be.
pub(crate) struct Counted<'a> {
    shape: Shape,
    ranks: &'a Ranks,
    census: Vec<Census>,
}

impl<'a> Counted<'a> {
    pub(crate) fn new(shape: Shape, ranks: &'a Ranks) -> Self {
        let census = ranks.all().map(|roles| shape.count(&roles)).collect();
        Self {
            shape,
            ranks,
            census,
        }
    }
}

impl Shape {
    /// Whether members of these kinds together meet the minimum.
    fn meets(self, roles: &Roles, kinds: &[Kind]) -> bool {
        let members = |role: &[u8; 6]| kinds.iter().map(|kind| role[*kind]).sum::<u8>();
        let each = (roles.iter().zip(self.minima)).all(|(role, min)| members(role) >= min);
        each && roles.iter().map(members).sum::<u8>() >= self.total.max(1)
    }

    fn count(self, roles: &Roles) -> Census {
        let has = |kind: Kind| roles.iter().any(|role| role[kind] > 0);
        Census {
            is_ready: self.meets(roles, &[PENDING, HELD, BOUND, SUCCEEDED]),
            is_ready_anew: self.meets(roles, &[PENDING, HELD]),
            is_covered: self.meets(roles, &[HELD, BOUND, SUCCEEDED]),
            is_satisfied: self.meets(roles, &[BOUND, SUCCEEDED]),
            is_finished: self.meets(roles, &[SUCCEEDED])
                && ![ABSENT, PENDING, HELD, BOUND].into_iter().any(has),
            has_waiting: has(PENDING),
            has_held: has(HELD),
            has_bound: has(BOUND),
        }
    }
}

/// One group with one set of rules, driven by one transition function.
pub(crate) struct Model<'a> {
    pub(crate) counted: &'a Counted<'a>,
    pub(crate) rules: Rules,
    pub(crate) step: Step,
}

impl Model<'_> {
    /// Visits every state that can be reached. The error says which promise was broken, and where.
    pub(crate) fn enumerate(&self, seen: &mut Seen) -> Result<(), String> {
        let mut roles = [[0; 6]; 2];
        for (role, count) in roles.iter_mut().zip(self.counted.shape.counts) {
            role[ABSENT] = count;
        }
        let start = World {
            roles,
            life: Life::default(),
            met: false,
        };
        let mut known = vec![false; self.counted.census.len() * 9 * 4 * 4 * 2 * 2];
        let mut open = Vec::new();
        let Shape { counts, minima, .. } = self.counted.shape;
        let roles_are_alike = counts[0] == counts[1] && minima[0] == minima[1];
        let mut reach = |mut next: World, open: &mut Vec<World>| {
            if roles_are_alike {
                next.roles.sort_unstable();
            }
            let is_known = &mut known[next.index(self.counted.ranks)];
            if !*is_known {
                *is_known = true;
                open.push(next);
            }
        };
        reach(start, &mut open);
        while let Some(world) = open.pop() {
            seen.worlds += 1;
            seen.phases.insert(world.life.phase());
            seen.lives.insert(world.life);
            self.check_split(&world)?;
            // An end is final: what becomes of the members then is another story.
            let is_over = matches!(world.life.phase(), Phase::Ended(_));
            self.visit_successors(&world, &mut |next| {
                seen.transitions += 1;
                if !is_over {
                    reach(next, &mut open);
                }
            })?;
        }
        Ok(())
    }

    fn visit_successors(&self, world: &World, reach: &mut impl FnMut(World)) -> Result<(), String> {
        for role in 0..2 {
            for (from, to) in OUTSIDE {
                // What was not handed out cannot be answered.
                let is_answer = from == HELD && to != ABSENT;
                if is_answer && world.life.phase() == Phase::Planned {
                    continue;
                }
                if world.roles[role][from] > 0 {
                    let mut next = *world;
                    next.roles[role][from] -= 1;
                    next.roles[role][to] += 1;
                    reach(self.drive(next, Event::Changed, [0; 2])?);
                }
            }
        }
        for event in [Event::PlanLost, Event::BindStarted, Event::Deleted] {
            reach(self.drive(*world, event, [0; 2])?);
        }
        for span in SPANS {
            reach(self.drive(*world, Event::Elapsed(Nanos(span)), [0; 2])?);
        }
        for first in 0..=world.roles[0][PENDING] {
            for second in 0..=world.roles[1][PENDING] {
                let plan = [first, second];
                if self.is_plan(world, plan) {
                    reach(self.drive(*world, Event::PlanFound, plan)?);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn census(&self, roles: &Roles) -> Census {
        self.counted.census[self.counted.ranks.of(roles)]
    }

    /// Whether the search may answer with so many of the waiting members of each role.
    fn is_plan(&self, world: &World, plan: [u8; 2]) -> bool {
        if !world.life.in_queue() || plan == [0; 2] {
            return false;
        }
        let mut roles = world.roles;
        take(&mut roles, plan);
        let mut alone = [[0; 6]; 2];
        for (role, taken) in alone.iter_mut().zip(plan) {
            role[HELD] = taken;
        }
        let anew = self.rules.on_loss == LossMode::WaitingOnly;
        match world.life.phase() {
            Phase::Queued | Phase::Running if anew => self.counted.shape.meets(&alone, &[HELD]),
            Phase::Running => true,
            _ => self.census(&roles).is_covered,
        }
    }

    /// Tells the machine, does what it says, tells it what that changed, until it is quiet.
    fn drive(&self, mut world: World, event: Event, plan: [u8; 2]) -> Result<World, String> {
        let start = world;
        let fail = |what: &str| Err(format!("{what}: {:?} {event:?} {:?}", self.rules, start));
        let mut next = Some(event);
        let mut rounds = 0;
        while let Some(event) = next.take() {
            let before = world;
            self.note_minimum(&mut world);
            let census = self.census(&world.roles);
            let (life, commands) = (self.step)(world.life, &self.rules, census, event);
            world.life = life;
            carry_out(&mut world.roles, commands, plan);
            if let Err(what) = self.check_step(&before, &world, event, commands) {
                return fail(what);
            }
            if world.roles != before.roles {
                next = Some(Event::Changed);
            }
            rounds += 1;
            if rounds > 3 {
                return fail("does not come to rest");
            }
        }
        self.note_minimum(&mut world);
        match self.check_quiet(&world) {
            Ok(()) => Ok(world),
            Err(what) => fail(what),
        }
    }

    fn note_minimum(&self, world: &mut World) {
        let census = self.census(&world.roles);
        world.met = census.is_satisfied || world.met && census.has_bound;
    }
}

fn take(roles: &mut Roles, plan: [u8; 2]) {
    for (role, taken) in roles.iter_mut().zip(plan) {
        role[PENDING] -= taken;
        role[HELD] += taken;
    }
}

pub(crate) fn carry_out(roles: &mut Roles, commands: Commands, plan: [u8; 2]) {
    let move_all = |roles: &mut Roles, from: Kind, to: Kind| {
        for role in roles {
            role[to] += role[from];
            role[from] = 0;
        }
    };
    for command in commands.iter() {
        match command {
            Command::ReleaseHolds => move_all(roles, HELD, PENDING),
            Command::Unwind => move_all(roles, BOUND, ABSENT),
            Command::Hold => take(roles, plan),
            Command::Dequeue | Command::Enqueue | Command::Requeue => {}
        }
    }
}
