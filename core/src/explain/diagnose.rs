//! Reasons, from the state as it is: what fails where, and which member binds.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{Explainer, NominatedPod, Reason};
use crate::{
    engine::{Explanation, GangId, MemberState, Verdict, cycle::Members, store::PodIx},
    gang::life::{End, Phase},
};

/// Of so many nominated pods it is tried whether they may stay.
const TRIES: usize = 16;

impl Explainer {
    /// Everything but counterfactuals.
    pub(super) fn diagnose(&mut self, id: GangId) -> Option<Explanation> {
        self.engine.see_nominated(Some(id));
        let explanation = self.diagnose_seen(id);
        self.engine.see_nominated(None);
        explanation
    }

    fn diagnose_seen(&mut self, id: GangId) -> Option<Explanation> {
        let mut explanation = self.diagnose_waiting(id)?;
        let gang = self.engine.gangs.get(id.0)?;
        for &member in &gang.members {
            let Some(reason) = self.retried(member) else {
                continue;
            };
            if gang.life.phase() != Phase::Running {
                explanation.reason.get_or_insert_with(|| reason.clone());
            }
            explanation.members.push((self.pod_name(member), reason));
        }
        Some(explanation)
    }

    /// Why a member that has a place is not bound there yet, if its bind fails for now.
    fn retried(&self, member: PodIx) -> Option<Reason> {
        let pod = self.engine.pods.get(member.0)?;
        let failures = pod
            .failures
            .as_ref()
            .filter(|failures| failures.is_retried)?;
        let node = pod.charge?.node;
        Some(Reason::BindRetrying {
            node: self.engine.cluster.node_name(node).to_string(),
            message: failures.message.clone(),
        })
    }

    fn diagnose_waiting(&mut self, id: GangId) -> Option<Explanation> {
        let gang = self.engine.gangs.get(id.0)?;
        let waiting: Vec<PodIx> = gang
            .members
            .iter()
            .copied()
            .filter(|m| self.waits(*m))
            .collect();
        let mut explanation = Explanation::default();
        if let Some(reason) = self.simple_reason(id) {
            for member in waiting {
                let own = self.own_problem(member).unwrap_or_else(|| reason.clone());
                explanation.members.push((self.pod_name(member), own));
            }
            explanation.reason = Some(reason);
            return Some(explanation);
        }
        if waiting.is_empty() {
            return Some(explanation);
        }
        let mut members = Members::default();
        self.engine.sort_members(id, &mut members);
        if members.batches.is_empty() {
            // Nobody who waits could be placed: each has a reason of its own.
            for member in waiting {
                let own = self.own_problem(member).unwrap_or(Reason::NotTried);
                explanation.members.push((self.pod_name(member), own));
            }
            return Some(explanation);
        }
        let surplus = self.engine.gangs.get(id.0)?.life.phase() == Phase::Running;
        let held_back = if surplus {
            None
        } else if self.engine.would_fit(id, &members) {
            // It has not been tried since this became true, or something holds it back.
            Some(self.held_back(id).unwrap_or(Reason::NotTried))
        } else {
            self.kept_for_nominated(id, &members)
        };
        if let Some(reason) = held_back {
            for member in waiting {
                let own = self.own_problem(member).unwrap_or_else(|| reason.clone());
                explanation.members.push((self.pod_name(member), own));
            }
            explanation.reason = Some(reason);
            return Some(explanation);
        }
        let reason = self.no_room(id, &members, &mut explanation.domains);
        self.member_reasons(id, &mut members, &reason, surplus, &mut explanation.members);
        for member in waiting {
            if let Some(own) = self.own_problem(member) {
                explanation.members.push((self.pod_name(member), own));
            }
        }
        let undecided = self.engine.gangs.get(id.0)?.verdict == Verdict::Undecided;
        explanation.reason = if surplus {
            None
        } else if undecided {
            Some(Reason::Undecided {
                steps: self.engine.config.search_steps,
            })
        } else {
            Some(reason)
        };
        Some(explanation)
    }

    fn waits(&self, member: PodIx) -> bool {
        let state = self
            .engine
            .pods
            .get(member.0)
            .map(crate::engine::store::Pod::state);
        matches!(state, Some(MemberState::Waiting | MemberState::Gated))
    }

    pub(super) fn pod_name(&self, member: PodIx) -> String {
        self.engine
            .pods
            .get(member.0)
            .map_or_else(String::new, |pod| pod.spec.name.clone())
    }

    /// What keeps a member from being placed whatever room there is.
    fn own_problem(&self, member: PodIx) -> Option<Reason> {
        let pod = self.engine.pods.get(member.0)?;
        if let Some(problem) = &pod.spec.problem {
            return Some(Reason::Invalid {
                problem: problem.clone(),
            });
        }
        if pod.leaf.is_none() {
            return Some(Reason::Invalid {
                problem: crate::gang::Problem {
                    code: "UnknownRole".into(),
                    field: "role".into(),
                    message: format!("{:?} is no role of its group", pod.spec.role),
                },
            });
        }
        if pod.spec.foreign {
            return Some(Reason::Invalid {
                problem: crate::gang::Problem {
                    code: "OtherScheduler".into(),
                    field: "spec.schedulerName".into(),
                    message: "another scheduler is to place it".into(),
                },
            });
        }
        if pod.spec.gated {
            return Some(Reason::WaitingForMembers {
                present: 0,
                needed: 1,
                gated: 1,
                group: String::new(),
            });
        }
        None
    }

    /// Which members are missing, or what is wrong with those that are there and cannot be placed.
    fn missing_members(&self, id: GangId) -> Option<Reason> {
        let gang = self.engine.gangs.get(id.0)?;
        for &member in &gang.members {
            if let Some(Reason::Invalid { mut problem }) = self.own_problem(member) {
                if !gang.single() {
                    problem.message = format!("{}: {}", self.pod_name(member), problem.message);
                }
                return Some(Reason::Invalid { problem });
            }
        }
        let here = |leaf: u32| {
            let tally = &gang.tally[leaf as usize];
            tally.waiting + tally.settled()
        };
        // Enough in all: down to the first sub-group that is short by itself.
        let mut at = 0;
        let enough = gang.tree.standing(0, &here).members >= gang.tree.fewest(0);
        while let Some(child) = gang.tree.children(at).filter(|_| enough).find(|&child| {
            let standing = gang.tree.standing(child, &here);
            let optional = standing.members == 0 && gang.tree.fewest(child) == 0;
            !(standing.met || optional)
        }) {
            at = child;
        }
        let needed = gang.tree.fewest(at).max(1);
        Some(Reason::WaitingForMembers {
            present: gang.tree.standing(at, &here).members,
            needed,
            gated: gang.tally.iter().map(|tally| tally.gated).sum(),
            group: if at == 0 {
                String::new()
            } else {
                gang.tree.nodes[at as usize].name.to_string()
            },
        })
    }

    /// A reason that needs no look at nodes.
    fn simple_reason(&self, id: GangId) -> Option<Reason> {
        let gang = self.engine.gangs.get(id.0)?;
        match (&gang.key, &gang.spec) {
            (Some(key), None) => {
                let elsewhere = self.engine.gangs.iter().filter_map(|(_, other)| {
                    let other_key = other.key.as_deref().filter(|_| other.spec.is_some())?;
                    let same = other_key.name == key.name && other_key.namespace != key.namespace;
                    same.then_some(&other_key.namespace)
                });
                return Some(Reason::GroupNotFound {
                    group: format!("{}/{}", key.namespace, key.name),
                    elsewhere: elsewhere.min().cloned(),
                });
            }
            (_, Some(spec)) => {
                if let Some(problem) = &spec.problem {
                    return Some(Reason::Invalid {
                        problem: problem.clone(),
                    });
                }
            }
            (None, None) => {}
        }
        if gang.life.phase() == Phase::Ended(End::Failed) {
            let after = gang.spec.as_ref().and_then(|spec| spec.schedule_timeout);
            return Some(Reason::TimedOut {
                after: after.unwrap_or_default(),
            });
        }
        let census = gang.census();
        let running = gang.life.phase() == Phase::Running;
        if gang.life.phase() == Phase::Gathering || !(census.is_ready || running) {
            return self.missing_members(id);
        }
        let now = self.engine.now;
        gang.members
            .iter()
            .filter_map(|member| self.engine.pods.get(member.0))
            .filter(|pod| pod.charge.is_none())
            .find_map(|pod| {
                let failures = pod
                    .failures
                    .as_ref()
                    .filter(|failures| failures.not_before > now)?;
                Some(Reason::BindFailed {
                    message: failures.message.clone(),
                    attempts: failures.attempts,
                })
            })
    }

    /// The nominated pods without whose room a gang would fit, if that is so: none of them can stay.
    fn kept_for_nominated(&mut self, id: GangId, members: &Members) -> Option<Reason> {
        let nominated = self.engine.nominated_before(id);
        for &pod in &nominated {
            self.engine.set_nominated(pod, false);
        }
        let mut in_the_way = Vec::new();
        if !nominated.is_empty() && self.engine.would_fit(id, members) {
            for (tried, &pod) in nominated.iter().enumerate() {
                self.engine.set_nominated(pod, true);
                if tried < TRIES && self.engine.would_fit(id, members) {
                    continue;
                }
                self.engine.set_nominated(pod, false);
                in_the_way.push(pod);
            }
        }
        for &pod in &nominated {
            self.engine.set_nominated(pod, true);
        }
        let pods = in_the_way.iter().filter_map(|pod| {
            let spec = &self.engine.pods.get(pod.0)?.spec;
            Some(NominatedPod {
                pod: format!("{}/{}", spec.namespace, spec.name),
                node: spec.nominated.clone()?,
            })
        });
        let pods: Vec<NominatedPod> = pods.collect();
        (!pods.is_empty()).then_some(Reason::WouldTakeNominatedRoom { pods })
    }

    /// Why a gang that fits was not placed.
    fn held_back(&self, id: GangId) -> Option<Reason> {
        let reservation = self
            .engine
            .reservation
            .as_ref()
            .filter(|it| it.holder != id)?;
        let holder = self.engine.gang(reservation.holder)?;
        Some(Reason::WouldDelayReservation {
            holder: format!("{}/{}", holder.namespace, holder.name),
            starts: reservation.starts,
        })
    }
}
