//! The driver of the engine: what the watches tell goes in, and what it decides is handed out.
//!
//! One task owns the mirror and the engine. It sleeps until something changes, a bind ends or the
//! engine's next deadline comes; then it takes in all that waits, decides once, and hands plans to the
//! binder and releases to the evictor. It never waits for the API server. Nothing is decided before
//! every watch has listed what there is: half a list of pods would look like free room.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use gangline::{
    Config, Event, GangId, Scheduler, Verdict,
    engine::{MemberState, Placement},
    gang::{GangKey, PodSpec},
    units::{Nanos, Uid},
};
use tokio::{
    sync::mpsc::{self, Receiver, Sender, UnboundedReceiver, UnboundedSender},
    time,
};
use tracing::{debug, info, info_span, warn};

use super::{
    bind::{Bind, Outcome, Plan, Report, Ticket},
    clocks::Clocks,
    complaints::Complaints,
    events::{Event as Telling, Events, Reason},
    evict::Eviction,
    groups::{Groups, Told},
    health::Health,
    metrics::{Figures, Metrics},
    pricing::Pricing,
    questions::Question,
    report::News,
    starts::Starts,
    storyteller::Storyteller,
    volumes::{GivenUp, Looked, Order, Preparing},
    watch::Change,
};
use crate::{
    annotations::{DEVICES, RANK},
    cards::given,
    mirror::Mirror,
    world::levels,
};

#[cfg(test)]
mod tests;

/// So many changes are taken in before the next decision.
const AT_A_TIME: usize = 8192;
/// Who waits to be told why he waits is told although something changes all the time, after this.
const UNTOLD: Duration = Duration::from_millis(500);
/// More rounds of decisions than this are not made in one go: each one places or refuses something.
const ROUNDS: u32 = 1000;

/// What the driver hands its work to, and hears from.
pub(super) struct Lines {
    /// What the watches tell.
    pub(super) changes: Receiver<Change>,
    /// How binds went.
    pub(super) reports: UnboundedReceiver<Report>,
    /// What to bind.
    pub(super) plans: UnboundedSender<Plan>,
    /// What to evict.
    pub(super) evictions: UnboundedSender<Eviction>,
    /// What to say.
    pub(super) news: UnboundedSender<News>,
    /// What to write about volumes.
    pub(super) volumes: UnboundedSender<Order>,
    /// What to write on group objects.
    pub(super) statuses: UnboundedSender<Told>,
    /// What to tell as events.
    pub(super) events: UnboundedSender<Telling>,
}

/// The other ends of [`Lines`].
pub(super) struct Ends {
    pub(super) changes: Sender<Change>,
    pub(super) reports: UnboundedSender<Report>,
    pub(super) plans: UnboundedReceiver<Plan>,
    pub(super) evictions: UnboundedReceiver<Eviction>,
    pub(super) news: UnboundedReceiver<News>,
    pub(super) volumes: UnboundedReceiver<Order>,
    pub(super) statuses: UnboundedReceiver<Told>,
    pub(super) events: UnboundedReceiver<Telling>,
}

impl Lines {
    /// Lines on which at most so many changes wait.
    pub(super) fn open(waiting_changes: usize) -> (Self, Ends) {
        let (change_sender, changes) = mpsc::channel(waiting_changes);
        let (report_sender, reports) = mpsc::unbounded_channel();
        let (plans, plan_receiver) = mpsc::unbounded_channel();
        let (evictions, eviction_receiver) = mpsc::unbounded_channel();
        let (news, news_receiver) = mpsc::unbounded_channel();
        let (volumes, volume_receiver) = mpsc::unbounded_channel();
        let (statuses, status_receiver) = mpsc::unbounded_channel();
        let (events, event_receiver) = mpsc::unbounded_channel();
        let lines = Self {
            changes,
            reports,
            plans,
            evictions,
            news,
            volumes,
            statuses,
            events,
        };
        let ends = Ends {
            changes: change_sender,
            reports: report_sender,
            plans: plan_receiver,
            evictions: eviction_receiver,
            news: news_receiver,
            volumes: volume_receiver,
            statuses: status_receiver,
            events: event_receiver,
        };
        (lines, ends)
    }
}

/// See the module's head.
pub(super) struct Driver {
    mirror: Mirror,
    scheduler: Scheduler,
    pricing: Pricing,
    clocks: Clocks,
    plans: UnboundedSender<Plan>,
    preparing: Preparing,
    evictions: UnboundedSender<Eviction>,
    storyteller: Storyteller,
    groups: Groups,
    events: Events,
    levels: Levels,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    starts: Starts,
    complaints: Complaints,
    /// Watches that have to list before the first decision, once that is known, and those that have.
    awaited: Option<usize>,
    listed: usize,
    has_started: bool,
    plans_so_far: u64,
    /// Plans that the binder has not started.
    waiting: Vec<Waiting>,
    /// Members that are being bound: in which plan, and whether their room is held still.
    binding: BTreeMap<Uid, (u64, Arc<AtomicBool>)>,
}

/// A plan that may still be withdrawn, and what it stands on.
struct Waiting {
    ticket: Arc<Ticket>,
    gang: Option<GangKey>,
    pods: BTreeSet<Uid>,
    nodes: BTreeSet<String>,
}

impl Driver {
    pub(super) fn new(
        scheduler_names: BTreeSet<String>,
        config: Config,
        clocks: Clocks,
        lines: &Lines,
        health: Arc<Health>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            mirror: Mirror::new(scheduler_names.iter().cloned()),
            scheduler: Scheduler::new(config),
            pricing: Pricing::new(),
            clocks,
            plans: lines.plans.clone(),
            preparing: Preparing::new(lines.volumes.clone()),
            evictions: lines.evictions.clone(),
            groups: Groups::new(scheduler_names.clone(), lines.statuses.clone()),
            storyteller: Storyteller::new(
                scheduler_names,
                lines.news.clone(),
                Events::new(lines.events.clone()),
            ),
            events: Events::new(lines.events.clone()),
            levels: Levels::default(),
            health,
            starts: Starts::new(Arc::clone(&metrics)),
            metrics,
            complaints: Complaints::default(),
            awaited: None,
            listed: 0,
            has_started: false,
            plans_so_far: 0,
            waiting: Vec::new(),
            binding: BTreeMap::new(),
        }
    }

    /// Drives until there is nothing to hear any more.
    pub(super) async fn drive(mut self, mut lines: Lines, mut questions: Receiver<Question>) {
        let mut changes = Vec::with_capacity(AT_A_TIME);
        let mut reports = Vec::new();
        let mut deadline: Option<Nanos> = None;
        // When there was nothing better to do than to tell.
        let mut idle = Instant::now();
        loop {
            let sleep = async {
                match deadline {
                    Some(time) => time::sleep_until(self.clocks.clock().instant(time).into()).await,
                    None => std::future::pending().await,
                }
            };
            // What there is to do for others comes before what there is to say.
            tokio::select! {
                biased;
                count = lines.changes.recv_many(&mut changes, AT_A_TIME) => {
                    if count == 0 {
                        return;
                    }
                }
                count = lines.reports.recv_many(&mut reports, AT_A_TIME) => {
                    if count == 0 {
                        return;
                    }
                }
                list = self.pricing.solved() => self.pricing.take(list, &mut self.scheduler),
                () = sleep => {}
                Some(question) = questions.recv() => {
                    self.answer(question);
                    continue;
                }
                () = std::future::ready(()), if self.storyteller.has_more() => {
                    idle = Instant::now();
                    self.tell_next();
                    tokio::task::yield_now().await;
                    continue;
                }
            }
            let since = Instant::now();
            // What else waits is taken in before anything is decided.
            while changes.len() < AT_A_TIME
                && let Ok(change) = lines.changes.try_recv()
            {
                changes.push(change);
            }
            while let Ok(report) = lines.reports.try_recv() {
                reports.push(report);
            }
            for change in changes.drain(..) {
                self.take(change);
            }
            deadline = self.turn(reports.drain(..));
            let lasted = since.elapsed();
            self.metrics.decision_seconds.observe(lasted.as_secs_f64());
            // However much changes, who asks is answered, and a part of the time goes to who waits.
            while let Ok(question) = questions.try_recv() {
                self.answer(question);
            }
            if !self.storyteller.has_more() {
                idle = Instant::now();
            } else if idle.elapsed() > UNTOLD {
                let until = Instant::now() + lasted / 2;
                self.tell_next();
                while self.storyteller.has_more() && Instant::now() < until {
                    self.tell_next();
                }
            }
        }
    }

    fn tell_next(&mut self) {
        self.storyteller
            .tell_next(&mut self.scheduler, &mut self.groups);
    }

    fn answer(&mut self, question: Question) {
        match question {
            Question::Figures(answer) => {
                let pending = self.storyteller.pending();
                // Who asked may have stopped waiting.
                let _ = answer.send(Figures::of(&mut self.scheduler, pending));
            }
            Question::Snapshot(answer) => {
                let _ = answer.send(Box::new(self.scheduler.snapshot()));
            }
        }
    }

    fn take(&mut self, change: Change) {
        match change {
            Change::Awaited(watches) => self.awaited = Some(watches),
            Change::Listed => self.listed += 1,
            Change::Pod(pod, version) => {
                self.groups.see_pod(&pod);
                self.storyteller.see(&pod, version);
                self.mirror.pod(&pod);
            }
            Change::PodGone {
                namespace,
                name,
                uid,
            } => {
                self.groups.forget_pod(uid);
                self.complaints.forget("Pod", &namespace, &name);
                self.storyteller.forget(uid);
                self.mirror.pod_gone(&namespace, &name, uid);
            }
            Change::Node(node) => self.mirror.node(&node),
            Change::NodeGone { name } => {
                self.complaints.forget("Node", "", &name);
                self.mirror.node_gone(&name);
            }
            Change::Object(document) => {
                self.groups.see(&document);
                self.mirror.object(document);
            }
            Change::ObjectGone {
                group,
                kind,
                namespace,
                name,
            } => {
                self.groups.forget(&group, &kind, &namespace, &name);
                self.complaints.forget(&kind, &namespace, &name);
                self.mirror.object_gone(&group, &kind, &namespace, &name);
            }
            Change::Unreadable { object, fault } => {
                self.complaints.refuse(&object, &fault);
            }
        }
    }

    /// Brings the engine up to date, decides, and hands out. Returns when to come back at the latest.
    fn turn(&mut self, reports: impl Iterator<Item = Report>) -> Option<Nanos> {
        if !self.has_started {
            if self.awaited.is_none_or(|awaited| self.listed < awaited) {
                return None;
            }
            info!("the cluster is known; deciding");
        }
        let is_first = !std::mem::replace(&mut self.has_started, true);
        let events = self.mirror.settle();
        for complaint in self.mirror.complaints() {
            self.complaints.say(&complaint);
        }
        self.set_levels(&events);
        for report in reports {
            self.note(report);
        }
        self.waiting.retain(|plan| plan.ticket.waits());
        for event in events {
            self.withdraw_if_stale(&event);
            self.storyteller.note(&event, &self.scheduler);
            if let Err(rejection) = self.scheduler.apply(event) {
                let fault = rejection.to_string();
                self.complaints.refuse(rejection.object(), &fault);
            }
        }
        if is_first {
            for left in self.clocks.take() {
                // The engine refuses no such event.
                let _ = self.scheduler.apply(Event::ClockLeft(left));
            }
        }
        let now = self.clocks.clock().now();
        let scheduler = &self.scheduler;
        let is_held = |pod| scheduler.state_of(pod) == Some(MemberState::Planned);
        let looked = self.preparing.look(&self.mirror, now, is_held);
        self.go_on(looked);
        for _ in 0..ROUNDS {
            self.pricing.start_if_due(&mut self.scheduler);
            let decisions = self.scheduler.decide(now).to_vec();
            if decisions.is_empty() {
                break;
            }
            for decision in decisions {
                self.metrics.decided(decision.verdict);
                self.storyteller.ask_about(decision.gang);
                let placements = self.scheduler.placements(&decision).to_vec();
                self.hand_out(decision.gang, decision.verdict, &placements);
            }
        }
        self.storyteller.settle(&self.scheduler);
        let changed = self.storyteller.changed();
        self.starts.look_at(changed, &self.scheduler, now);
        self.stop_unheld();
        let binding = &self.binding;
        let is_binding = |pod| binding.contains_key(&pod);
        let frees = self.preparing.let_go(&mut self.mirror, is_binding);
        self.clocks.note(&self.scheduler);
        self.health.decides();
        // Others may have waited for what was kept for volumes.
        let at_once = frees.then_some(now);
        let deadlines = [
            self.scheduler.next_deadline(),
            self.preparing.until(),
            at_once,
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Gives the engine the topology levels that nodes and groups speak of, when there are other ones.
    fn set_levels(&mut self, events: &[Event]) {
        if !self
            .levels
            .may_differ(events, &self.scheduler.config().levels)
        {
            return;
        }
        let levels = self.mirror.levels();
        self.levels.named = self.mirror.named_levels();
        if levels == self.scheduler.config().levels {
            return;
        }
        info!("topology levels, coarse to fine: {}", levels.join(", "));
        let mut snapshot = self.scheduler.snapshot();
        snapshot.config.levels = levels;
        match Scheduler::restore(snapshot) {
            Ok(scheduler) => {
                self.scheduler = scheduler;
                self.storyteller.ask_about_all(self.scheduler.gangs());
                self.starts.forget_all();
            }
            // Only what was accepted before is in a snapshot.
            Err(rejection) => warn!("the topology levels stay what they were: {rejection}"),
        }
    }

    /// Takes note of how a bind went. What was bound is told by the watch.
    fn note(&mut self, report: Report) {
        let Report { plan, pod, outcome } = report;
        let ours = self.binding.get(&pod).is_some_and(|(of, _)| *of == plan);
        if !ours {
            return;
        }
        let event = match outcome {
            Outcome::Retrying { message } => Some(Event::BindFailed {
                pod,
                permanent: false,
                message,
            }),
            Outcome::Refused { message } => Some(Event::BindFailed {
                pod,
                permanent: true,
                message,
            }),
            Outcome::Bound
            | Outcome::BoundElsewhere { .. }
            | Outcome::Gone
            | Outcome::Abandoned => None,
        };
        if !matches!(
            event,
            Some(Event::BindFailed {
                permanent: false,
                ..
            })
        ) {
            self.binding.remove(&pod);
        }
        if let Some(event) = event {
            self.storyteller.note(&event, &self.scheduler);
            // The engine refuses no such event.
            let _ = self.scheduler.apply(event);
        }
    }

    /// Withdraws plans that nobody has started and that stand on what changes now: they are decided
    /// anew with what is known by then.
    fn withdraw_if_stale(&mut self, event: &Event) {
        if self.waiting.is_empty() {
            return;
        }
        let binding = &self.binding;
        let (stale, fresh) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition::<Vec<_>, _>(|plan| plan.stands_on(event, |pod| binding.contains_key(&pod)));
        self.waiting = fresh;
        for plan in stale.into_iter().filter(|plan| plan.ticket.withdraw()) {
            for pod in plan.pods {
                self.binding.remove(&pod);
                let _ = self.scheduler.apply(Event::BindWithdrawn { pod });
            }
        }
    }

    /// Hands out what was decided about a gang.
    fn hand_out(&mut self, gang: GangId, verdict: Verdict, placements: &[Placement]) {
        let Some(view) = self.scheduler.gang(gang) else {
            return;
        };
        let (namespace, name) = (view.namespace, view.name);
        let span = info_span!("gang", namespace, gang = name);
        let _entered = span.enter();
        debug!(?verdict, members = placements.len(), "decided");
        match verdict {
            Verdict::Placed if !placements.is_empty() => {}
            Verdict::Release => {
                if let Some(group) = self.groups.regarding(&view) {
                    let count = placements.len();
                    let note = format!("its minimum cannot be kept: {count} members are evicted");
                    self.events.tell(group, Reason::Evicted, note);
                }
                for placement in placements {
                    let member = view.members.get(placement.rank as usize);
                    let Some(member) = member.filter(|member| member.uid == placement.pod) else {
                        continue;
                    };
                    // Without an evictor the process is about to end.
                    let _ = self.evictions.send(Eviction {
                        uid: placement.pod,
                        namespace: namespace.into(),
                        name: member.name.into(),
                        span: span.clone(),
                    });
                }
                return;
            }
            Verdict::Placed
            | Verdict::Infeasible
            | Verdict::Undecided
            | Verdict::Waiting
            | Verdict::Failed => return,
        }
        self.plans_so_far += 1;
        let ticket = Arc::new(Ticket::default());
        let mut binds = Vec::with_capacity(placements.len());
        let mut nodes = BTreeSet::new();
        for placement in placements {
            let member = view.members.get(placement.rank as usize);
            let Some(member) = member.filter(|member| member.uid == placement.pod) else {
                continue;
            };
            let node = self.scheduler.node_name(placement.node).to_owned();
            nodes.insert(node.clone());
            let mut annotations = BTreeMap::new();
            if let Some(devices) = given::written(&placement.devices) {
                annotations.insert(DEVICES, devices);
            }
            if !view.single {
                annotations.insert(RANK, placement.rank.to_string());
            }
            let held = Arc::new(AtomicBool::new(true));
            let entry = (self.plans_so_far, Arc::clone(&held));
            if let Some((_, elsewhere)) = self.binding.insert(placement.pod, entry) {
                // Its room there was given back just now: nobody shall try again to bind it there.
                elsewhere.store(false, Ordering::Release);
            }
            binds.push(Bind {
                plan: self.plans_so_far,
                uid: placement.pod,
                namespace: namespace.into(),
                name: member.name.into(),
                node,
                annotations,
                held,
                span: span.clone(),
            });
        }
        if let Some(group) = self.groups.regarding(&view) {
            let note = format!("{} members on {} nodes", binds.len(), nodes.len());
            self.events.tell(group, Reason::Scheduled, note);
        }
        self.waiting.push(Waiting {
            ticket: Arc::clone(&ticket),
            gang: (!view.single).then(|| GangKey {
                namespace: namespace.into(),
                name: name.into(),
                source: view.source.into(),
            }),
            pods: binds.iter().map(|bind| bind.uid).collect(),
            nodes,
        });
        info!(members = binds.len(), "placed");
        let now = self.clocks.clock().now();
        let plan = Plan { ticket, binds };
        let looked = self.preparing.start(plan, &mut self.mirror, now);
        self.go_on(looked);
    }

    /// Binds plans whose volumes are there, and gives up those that have none.
    fn go_on(&mut self, looked: Looked) {
        for plan in looked.ready {
            // Without a binder the process is about to end.
            let _ = self.plans.send(plan);
        }
        for GivenUp { plan, failed } in looked.given_up {
            if !plan.ticket.withdraw() {
                continue;
            }
            for bind in plan.binds {
                let pod = bind.uid;
                bind.held.store(false, Ordering::Release);
                self.binding.remove(&pod);
                let event = match &failed {
                    Some((of, message)) if *of == pod => Event::BindFailed {
                        pod,
                        permanent: true,
                        message: message.clone(),
                    },
                    _ => Event::BindWithdrawn { pod },
                };
                self.storyteller.note(&event, &self.scheduler);
                // The engine refuses no such event.
                let _ = self.scheduler.apply(event);
            }
        }
    }

    /// Stops attempts to bind members whose room the engine has given back.
    fn stop_unheld(&mut self) {
        let scheduler = &self.scheduler;
        self.binding.retain(|pod, (_, held)| {
            let is_held = scheduler.state_of(*pod) == Some(MemberState::Planned);
            held.store(is_held, Ordering::Release);
            is_held
        });
    }
}

/// The levels that groups name, so that nobody looks at all nodes when nothing new is said of levels.
#[derive(Debug, Default)]
struct Levels {
    named: BTreeSet<String>,
}

impl Levels {
    /// Whether these events may make other levels than the known ones.
    fn may_differ(&self, events: &[Event], known: &[String]) -> bool {
        let is_new = |label: &String| !known.contains(label);
        events.iter().any(|event| match event {
            Event::Node(node) => node.labels.keys().any(|label| {
                let is_level = levels::is_well_known(label) || self.named.contains(label);
                is_level && is_new(label)
            }),
            Event::Gang(gang) => levels::named(gang)
                .iter()
                .any(|label| is_new(label) && !self.named.contains(label)),
            _ => false,
        })
    }
}

impl Waiting {
    /// Whether the plan was made on something else than what is told now. `is_ours`: pods that we bind.
    fn stands_on(&self, event: &Event, is_ours: impl Fn(Uid) -> bool) -> bool {
        match event {
            Event::Node(node) => self.nodes.contains(&node.name),
            Event::NodeGone { name } => self.nodes.contains(name),
            Event::Gang(gang) => self.gang.as_ref() == Some(&gang.key),
            Event::GangGone { key, .. } => self.gang.as_ref() == Some(key),
            Event::Pod(PodSpec {
                uid,
                node,
                nominated,
                ..
            }) => {
                let node = node.as_ref().or(nominated.as_ref());
                let takes_room = node.is_some_and(|node| self.nodes.contains(node));
                self.pods.contains(uid) || takes_room && !is_ours(*uid)
            }
            Event::PodGone { uid } => self.pods.contains(uid),
            Event::NodeImages { .. }
            | Event::Namespace { .. }
            | Event::Prices(_)
            | Event::BindFailed { .. }
            | Event::BindWithdrawn { .. }
            | Event::ClockLeft(_) => false,
        }
    }
}
