//! One cycle: clocks, then every gang that is ready and whose answer may have changed, in order.
//!
//! All gangs of a cycle are judged one after the other against the state that those before left. A
//! gang that does not fit holds nothing and does not stop those behind it. Its answer is kept until
//! something happens that could change it, so a quiet cluster costs nothing.

use alloc::vec::Vec;
use core::hash::Hasher;

use super::{
    Decision, Placement, Scheduler, Verdict,
    store::{Charge, GangIx, PodIx, Purpose, Tried},
    view::MemberState,
};
use crate::{
    cluster::{Cluster, domain::NO_DOMAIN, template::TemplateIx},
    gang::life::{self, Command, Phase},
    hash::{Map, WordHasher},
    place::{Batch, Outcome, Request, tree::Tree},
    units::Nanos,
};

/// Memory that is kept between cycles.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) members: Members,
    pub(crate) spare: Members,
    /// Gangs of one that did not fit, by template: equal ones need no search of their own.
    refused: Map<TemplateIx, Tried>,
}

/// A gang's members, sorted into what a search wants.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    pub(crate) batches: Vec<Batch>,
    /// (batch, place in member order, member), sorted.
    pub(crate) waiting: Vec<(u32, u32, PodIx)>,
    /// By batch: how many of its members the plan at hand has used.
    used: Vec<u32>,
    pub(crate) have: Vec<u32>,
    pub(crate) pinned: Vec<u32>,
    /// Longest time that any waiting member runs, if all of them said.
    pub(crate) longest: Option<Nanos>,
    pub(crate) related: bool,
    /// Up to when a failed bind holds a member back.
    pub(crate) not_before: Nanos,
}

impl Scheduler {
    /// Decides for every gang that is ready and whose reason to wait may have changed. `now` is on
    /// the clock of the objects' `created` fields and never goes back: an earlier value counts as
    /// the latest one seen. Returns what changed, in the order decided. Placed members hold their
    /// room until a pod event confirms them, a failed bind is reported, or the pod is gone.
    pub fn decide(&mut self, now: Nanos) -> &[Decision] {
        self.now = self.now.max(now);
        self.decisions.clear();
        self.placements.clear();
        self.run_clocks();
        self.tell_releases();
        self.sweep_queue();
        self.drop_stale_reservation();
        let mut position = 0;
        while let Some(&gang) = self.queue.get(position) {
            position += 1;
            self.see_nominated(Some(gang));
            self.try_gang(gang);
        }
        self.see_nominated(None);
        self.sweep_queue();
        &self.decisions
    }

    fn run_clocks(&mut self) {
        let mut clocks = core::mem::take(&mut self.clocks);
        // What a clock does must not depend on the order in which clocks were started.
        clocks.sort_unstable_by_key(|ix| self.gangs.get(ix.0).map(|gang| gang.uid));
        let now = self.now;
        clocks.retain(|&ix| {
            let Some(gang) = self.gangs.get_mut(ix.0) else {
                return false;
            };
            // A clock that started since the last cycle starts now.
            let fed = gang.clock_fed.replace(now);
            let failed = Phase::Ended(life::End::Failed);
            let before = gang.life.phase();
            if let Some(elapsed) = fed.map(|fed| now.saturating_sub(fed)).filter(|e| e.0 > 0) {
                self.drive(ix, life::Event::Elapsed(elapsed));
            }
            let Some(gang) = self.gangs.get_mut(ix.0) else {
                return false;
            };
            let (after, runs) = (gang.life.phase(), gang.life.expires_in().is_some());
            if !runs {
                gang.clocked = false;
                gang.clock_fed = None;
            }
            if after == failed && before != failed {
                gang.verdict = Verdict::Failed;
                self.tell(ix, Verdict::Failed, self.placements.len());
            }
            runs
        });
        // Clocks that were started meanwhile are on the engine's new list.
        clocks.append(&mut self.clocks);
        self.clocks = clocks;
    }

    fn tell_releases(&mut self) {
        let releases = core::mem::take(&mut self.releases);
        for &gang in &releases {
            let start = self.placements.len();
            let members = self.gangs.get(gang.0).map_or(0, |gang| gang.members.len());
            for index in 0..members {
                let member = self.gangs.get(gang.0).map(|gang| gang.members[index]);
                let Some(pod) = member.and_then(|member| self.pods.get(member.0)) else {
                    continue;
                };
                if let Some(charge) = pod.charge.filter(|_| pod.released) {
                    self.placements.push(Placement {
                        pod: pod.spec.uid,
                        node: charge.node,
                        devices: charge.devices,
                        rank: index as u32,
                    });
                }
            }
            self.tell(gang, Verdict::Release, start);
        }
        self.releases = releases;
        self.releases.clear();
    }

    /// Drops gangs that left, and sorts when somebody came.
    fn sweep_queue(&mut self) {
        let gangs = &mut self.gangs;
        self.queue.retain(|gang| {
            let Some(entry) = gangs.get_mut(gang.0) else {
                return false;
            };
            entry.listed = entry.in_queue;
            entry.in_queue
        });
        if core::mem::take(&mut self.queue_stale) {
            let gangs = &self.gangs;
            self.queue
                .sort_unstable_by_key(|gang| gangs.get(gang.0).map(super::Gang::turn));
        }
    }

    fn try_gang(&mut self, ix: GangIx) {
        let complete = self.complete_since(ix);
        let Some(gang) = self.gangs.get_mut(ix.0).filter(|gang| gang.in_queue) else {
            return;
        };
        gang.ready_since.get_or_insert(complete);
        let answer = Tried {
            loosened: self.loosened,
            changed: self.changed,
            revision: gang.revision,
        };
        let verdict = gang.verdict;
        if let Some(tried) = gang.tried {
            let same = tried.revision == answer.revision && tried.loosened == answer.loosened;
            // A gang with rules about other pods may come to fit when others start.
            let settled = verdict == Verdict::Infeasible || verdict == Verdict::Undecided;
            if same && settled && (tried.changed == answer.changed || !self.is_related(ix)) {
                self.consider_reservation(ix);
                return;
            }
        }
        let mut members = core::mem::take(&mut self.cycle.members);
        self.sort_members(ix, &mut members);
        let outcome = self.search_for(ix, &members, answer);
        self.conclude(ix, &mut members, answer, outcome);
        self.cycle.members = members;
    }

    /// Since when a gang that is ready has been so, as far as its objects tell: a gang that is first
    /// seen in a dump may have waited for long. Never later than now.
    fn complete_since(&self, ix: GangIx) -> Nanos {
        let Some(gang) = self
            .gangs
            .get(ix.0)
            .filter(|gang| gang.ready_since.is_none())
        else {
            return self.now;
        };
        let members = gang
            .members
            .iter()
            .filter_map(|member| self.pods.get(member.0));
        let waiting = members.filter(|pod| pod.state() == MemberState::Waiting);
        let latest = waiting
            .map(|pod| pod.spec.created)
            .max()
            .unwrap_or_default();
        let known = gang.created.max(latest);
        if known == Nanos::ZERO || gang.requeued > 0 {
            return self.now;
        }
        known.min(self.now)
    }

    fn is_related(&self, ix: GangIx) -> bool {
        let Some(gang) = self.gangs.get(ix.0) else {
            return false;
        };
        gang.members
            .iter()
            .filter_map(|member| self.pods.get(member.0))
            .any(|pod| {
                let compiled = self.cluster.template(pod.template);
                compiled.has_relations()
            })
    }

    /// Sorts a gang's members into batches and counts those that have a place.
    pub(crate) fn sort_members(&self, ix: GangIx, into: &mut Members) {
        into.batches.clear();
        into.waiting.clear();
        into.have.clear();
        into.pinned.clear();
        into.longest = Some(Nanos::ZERO);
        into.related = false;
        into.not_before = Nanos::ZERO;
        let Some(gang) = self.gangs.get(ix.0) else {
            return;
        };
        into.have
            .extend(gang.tally.iter().map(super::store::Tally::settled));
        into.pinned.resize(gang.tree.nodes.len(), NO_DOMAIN);
        for (ordinal, &member) in gang.members.iter().enumerate() {
            let Some(pod) = self.pods.get(member.0) else {
                continue;
            };
            let Some(leaf) = pod.leaf else { continue };
            match pod.state() {
                MemberState::Bound | MemberState::Planned => {
                    if let Some(charge) = pod.charge {
                        pin(
                            &self.cluster,
                            &gang.tree,
                            leaf,
                            charge.node,
                            &mut into.pinned,
                        );
                    }
                }
                MemberState::Waiting => {
                    let template = pod.template;
                    let same = |batch: &Batch| batch.leaf == leaf && batch.template == template;
                    // Most gangs have few batches, and members come sorted by leaf.
                    let batch = into.batches.iter().rposition(same).unwrap_or_else(|| {
                        into.batches.push(Batch {
                            leaf,
                            template,
                            count: 0,
                        });
                        into.batches.len() - 1
                    });
                    into.batches[batch].count += 1;
                    into.waiting.push((batch as u32, ordinal as u32, member));
                    let compiled = self.cluster.template(template);
                    into.related |= compiled.has_relations();
                    into.longest = match (into.longest, compiled.source.max_runtime) {
                        (Some(longest), Some(runtime)) => Some(longest.max(runtime)),
                        _ => None,
                    };
                    if let Some(failures) = &pod.failures {
                        into.not_before = into.not_before.max(failures.not_before);
                    }
                }
                _ => {}
            }
        }
        into.waiting.sort_unstable();
    }

    fn search_for(&mut self, ix: GangIx, members: &Members, answer: Tried) -> Answer {
        if members.not_before > self.now {
            return Answer::Held(Verdict::Waiting);
        }
        let Some(gang) = self.gangs.get(ix.0) else {
            return Answer::Held(Verdict::Waiting);
        };
        if members.batches.is_empty() {
            return Answer::Held(gang.verdict);
        }
        let held_back = self.respects_reservation(ix, members);
        // What is held back may fit all the same: that is no refusal to share.
        // Neither is the answer the same for all while nominated pods count for some of them only.
        let is_plain = gang.single() && !members.related && self.nominated.is_empty();
        let alike = (is_plain && !held_back).then(|| members.batches[0].template);
        if let Some(key) = alike
            && let Some(tried) = self.cycle.refused.get(&key)
            && tried.loosened == answer.loosened
        {
            return Answer::Searched(Outcome::Infeasible);
        }
        let tree = gang.tree.clone();
        let (rule, started) = self.manner(ix);
        let forbidden: &[bool] = match &self.reservation {
            Some(reservation) if held_back => &reservation.nodes,
            _ => &[],
        };
        let request = Request {
            forbidden,
            ..members.request(&tree, rule, started, self.config.search_steps)
        };
        let outcome = self.search.run(&mut self.cluster, &request);
        if outcome != Outcome::Found {
            self.cluster.commit();
            if let Some(key) = alike.filter(|_| outcome == Outcome::Infeasible) {
                if self.cycle.refused.len() >= 4096 {
                    self.cycle.refused.clear();
                }
                self.cycle.refused.insert(key, answer);
            }
            if held_back && outcome == Outcome::Infeasible && self.would_fit(ix, members) {
                return Answer::Held(Verdict::Waiting);
            }
        }
        Answer::Searched(outcome)
    }

    /// The gang's scoring rule, and whether its minima bind no more.
    pub(crate) fn manner(&self, ix: GangIx) -> (crate::gang::ScoringRule, bool) {
        let gang = self.gangs.get(ix.0);
        let rule = gang
            .and_then(|gang| gang.spec.as_ref())
            .and_then(|spec| spec.scoring);
        let started = gang
            .is_some_and(|gang| gang.life.phase() == Phase::Running && !gang.census().is_satisfied);
        (rule.unwrap_or(self.config.scoring), started)
    }

    fn conclude(&mut self, ix: GangIx, members: &mut Members, answer: Tried, outcome: Answer) {
        let verdict = match outcome {
            Answer::Searched(Outcome::Found) => {
                self.hold_plan(ix, members);
                return;
            }
            Answer::Searched(Outcome::Infeasible) => Verdict::Infeasible,
            Answer::Searched(Outcome::Undecided) => Verdict::Undecided,
            Answer::Held(verdict) => verdict,
        };
        let Some(gang) = self.gangs.get_mut(ix.0) else {
            return;
        };
        let news = !gang.told || gang.verdict != verdict;
        gang.told = true;
        gang.tried = Some(answer);
        // A gang that runs and has no room for more is not infeasible.
        let runs = gang.life.phase() == Phase::Running;
        if !runs {
            gang.verdict = verdict;
        }
        if news && !runs {
            self.tell(ix, verdict, self.placements.len());
        }
        if verdict == Verdict::Infeasible && !runs {
            self.consider_reservation(ix);
        }
    }

    /// Turns the search's charges into holds and tells the plan.
    fn hold_plan(&mut self, ix: GangIx, members: &mut Members) {
        self.cluster.commit();
        self.prefer_images(ix, members);
        let start = self.placements.len();
        self.search.sort_placed(&self.cluster);
        let placed = core::mem::take(&mut self.search.placed);
        // The machine sees the plan before its members are held.
        let commands = self.drive(ix, life::Event::PlanFound);
        if !commands.contains(Command::Hold) {
            for place in &placed {
                let template = members.batches[place.batch as usize].template;
                self.cluster.release(place.node, template, &place.devices);
            }
            self.search.placed = placed;
            return;
        }
        members.start_plan();
        for place in &placed {
            let Some((rank, member)) = members.next_of(place.batch) else {
                continue;
            };
            self.count(member, false);
            let charge = Charge {
                node: place.node,
                devices: place.devices,
                told: Some(place.devices),
                purpose: Purpose::Held,
            };
            self.note_charge(member, charge);
            self.count(member, true);
            if let Some(pod) = self.pods.get(member.0) {
                self.placed_since_prices = self.placed_since_prices.saturating_add(1);
                self.placements.push(Placement {
                    pod: pod.spec.uid,
                    node: place.node,
                    devices: place.devices,
                    rank,
                });
            }
        }
        for place in &placed {
            self.settle_around(place.node);
        }
        self.search.placed = placed;
        if let Some(gang) = self.gangs.get_mut(ix.0) {
            gang.verdict = Verdict::Placed;
            gang.told = true;
            gang.tried = None;
            gang.revision += 1;
        }
        if self
            .reservation
            .as_ref()
            .is_some_and(|reservation| reservation.holder == ix)
        {
            self.reservation = None;
            self.loosened += 1;
        }
        self.drive(ix, life::Event::BindStarted);
        self.drive(ix, life::Event::Changed);
        self.tell(ix, Verdict::Placed, start);
    }

    /// Notes a decision and folds it into the hash.
    fn tell(&mut self, gang: GangIx, verdict: Verdict, start: usize) {
        let len = (self.placements.len() - start.min(self.placements.len())) as u32;
        let mut hasher = WordHasher::default();
        hasher.write_u64(self.decision_hash);
        hasher.write_u128(self.gangs.get(gang.0).map_or(0, |gang| gang.uid.0));
        hasher.write_u8(verdict as u8);
        for placement in &self.placements[start.min(self.placements.len())..] {
            hasher.write_u128(placement.pod.0);
            hasher.write(self.cluster.node_name(placement.node).as_bytes());
            hasher.write_u64(placement.devices.cards.0);
            for slice in placement.devices.slices() {
                hasher.write(&[slice.card, slice.profile, slice.start]);
            }
        }
        self.decision_hash = hasher.finish();
        self.decisions.push(Decision {
            gang,
            verdict,
            start: start as u32,
            len,
        });
    }
}

impl Members {
    /// What a search is asked for these members: anywhere, unless the caller forbids some nodes.
    pub(crate) fn request<'a>(
        &'a self,
        tree: &'a Tree,
        rule: crate::gang::ScoringRule,
        started: bool,
        budget: u64,
    ) -> Request<'a> {
        Request {
            tree,
            batches: &self.batches,
            have: &self.have,
            pinned: &self.pinned,
            rule,
            started,
            forbidden: &[],
            budget,
        }
    }

    /// The next member of a batch, in member order, that the plan at hand has not used, and its rank:
    /// its position among all members of the gang.
    pub(crate) fn next_of(&mut self, batch: u32) -> Option<(u32, PodIx)> {
        let first = self.waiting.partition_point(|&(other, ..)| other < batch);
        let used = self.used.get_mut(batch as usize)?;
        *used += 1;
        let &(_, rank, member) = self.waiting.get(first + *used as usize - 1)?;
        Some((rank, member))
    }

    /// The first member of a batch, in member order.
    pub(crate) fn first_of(&self, batch: u32) -> Option<PodIx> {
        let first = self.waiting.partition_point(|&(other, ..)| other < batch);
        let (of, _, member) = *self.waiting.get(first)?;
        (of == batch).then_some(member)
    }

    /// Starts a plan: no member is used.
    pub(crate) fn start_plan(&mut self) {
        self.used.clear();
        self.used.resize(self.batches.len(), 0);
    }
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Searched(Outcome),
    /// Not searched, or not heeded: a pause, a reservation.
    Held(Verdict),
}

/// Fixes the domains of a leaf's ancestors that need one to those of a node.
pub(crate) fn pin(
    cluster: &Cluster,
    tree: &Tree,
    leaf: u32,
    node: super::NodeIx,
    pinned: &mut [u32],
) {
    for ix in tree.upward(leaf) {
        if let Some(key) = tree.nodes[ix as usize].required {
            let domain = cluster.domain_of(key, node);
            if pinned[ix as usize] == NO_DOMAIN {
                pinned[ix as usize] = domain;
            }
        }
    }
}
