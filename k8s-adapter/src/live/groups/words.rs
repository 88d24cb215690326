//! How a gang stands, in the words of each kind of group object.
//!
//! A [`GangView`] enters and [`Words`] leave: fields and conditions of the status. Nothing here talks to
//! anybody. What is said follows what the systems themselves say:
//!
//! - Kubernetes: the condition `PodGroupInitiallyScheduled`, `CompositePodGroupInitiallyScheduled` of a tree.
//!   Once it is true it is never touched again.
//! - Volcano: `Inqueue` for each group that may have pods, `Running`, `Unknown` for one that ran and is short
//!   of members, `Completed`; its counters; the conditions `Unschedulable` and `Scheduled`.
//! - scheduler-plugins: the phases as its own controller counts them, so that the two agree.
//! - KAI: that the group cannot be scheduled, once it is complete and nothing of it has a place; see
//!   [`pool`](super::pool).
//!
//! Koordinator's groups have no objects, or those of scheduler-plugins; Grove counts by itself.

use gangline::{
    engine::{GangView, MemberState, MemberView},
    explain::Reason,
    gang::life::{End, Phase},
};
use serde_json::{Map, Value, json};

use super::{super::report::timestamp, Kind, pool};

/// Since when a group of scheduler-plugins is tried.
const START_TIME: &str = "scheduleStartTime";

/// What a status shall say. What it says besides stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    fields: Vec<(&'static str, Value)>,
    conditions: Vec<Condition>,
    on_node_pool: Option<pool::Word>,
}

/// One of its conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    kind: &'static str,
    is_true: bool,
    reason: String,
    message: String,
}

/// What the object of a gang shall say; `role`: the part of the gang that it is, if it is not all of it.
/// `None`: nothing.
pub(super) fn words(
    kind: Kind,
    gang: &GangView<'_>,
    role: Option<&str>,
    reason: Option<&Reason>,
    status: &Map<String, Value>,
) -> Option<Words> {
    if gang.phase == Phase::Ended(End::Deleted) {
        return None;
    }
    match kind {
        Kind::Native => native("PodGroupInitiallyScheduled", gang, role, reason, status),
        Kind::Composite => {
            let condition = "CompositePodGroupInitiallyScheduled";
            native(condition, gang, role, reason, status)
        }
        Kind::Volcano => Some(volcano(gang, reason, status)),
        Kind::SchedulerPlugins => Some(scheduler_plugins(gang, status)),
        Kind::Kai => pool::word(gang, reason).map(|word| Words {
            on_node_pool: Some(word),
            ..Words::default()
        }),
    }
}

fn native(
    condition: &'static str,
    gang: &GangView<'_>,
    role: Option<&str>,
    reason: Option<&Reason>,
    status: &Map<String, Value>,
) -> Option<Words> {
    let is_final = conditions(status).any(|known| says(known, condition) == Some("True"));
    if is_final {
        return None;
    }
    let members = || {
        let members = gang.members.iter();
        members.filter(|member| role.is_none_or(|role| member.role == role))
    };
    let has_place = |member: &MemberView<'_>| {
        matches!(member.state, MemberState::Bound | MemberState::Succeeded)
    };
    // A leaf of a tree that runs may be one that the tree does without.
    let is_scheduled = match gang.phase {
        Phase::Running => members().any(has_place),
        Phase::Ended(End::Completed) => true,
        _ => false,
    };
    let (reason, message) = if is_scheduled {
        let bound = members().filter(|member| has_place(member)).count();
        let message = format!("{bound} pods have a place");
        ("Scheduled", message)
    } else {
        let why = reason?;
        let word = match why {
            // More room would not help.
            Reason::Invalid { .. } | Reason::BindFailed { .. } | Reason::BindRetrying { .. } => {
                "SchedulerError"
            }
            _ => "Unschedulable",
        };
        (word, why.with_code())
    };
    Some(Words {
        conditions: vec![Condition {
            kind: condition,
            is_true: is_scheduled,
            reason: reason.into(),
            message,
        }],
        ..Words::default()
    })
}

fn volcano(gang: &GangView<'_>, reason: Option<&Reason>, status: &Map<String, Value>) -> Words {
    const UNSCHEDULABLE: &str = "Unschedulable";
    const SCHEDULED: &str = "Scheduled";
    let counts = Counts::of(gang);
    let ran = status.get("phase").and_then(Value::as_str);
    let ran = matches!(ran, Some("Running" | "Unknown"));
    let phase = match gang.phase {
        Phase::Running => "Running",
        Phase::Ended(End::Completed) => "Completed",
        Phase::Degraded if ran && counts.bound > 0 => "Unknown",
        // Its Job gets its pods only once the group is let in, and nothing is gained by keeping it out: no
        // room is held before all are there.
        _ => "Inqueue",
    };
    let mut conditions = Vec::new();
    match gang.phase {
        Phase::Running | Phase::Ended(End::Completed) => {
            conditions.push(Condition {
                kind: SCHEDULED,
                is_true: true,
                reason: "tasks in gang are ready to be scheduled".into(),
                message: String::new(),
            });
            let stands = |known| says(known, UNSCHEDULABLE) == Some("True");
            if self::conditions(status).any(stands) {
                conditions.push(Condition {
                    kind: UNSCHEDULABLE,
                    is_true: false,
                    reason: SCHEDULED.into(),
                    message: String::new(),
                });
            }
        }
        _ => conditions.extend(reason.map(|reason| {
            Condition {
                kind: UNSCHEDULABLE,
                is_true: true,
                reason: match reason {
                    Reason::WaitingForMembers { group, .. } if !group.is_empty() => {
                        "NotEnoughPodsOfTask"
                    }
                    Reason::WaitingForMembers { .. } | Reason::MinExceedsMembers { .. } => {
                        "NotEnoughTasks"
                    }
                    _ => "NotEnoughResources",
                }
                .into(),
                message: reason.with_code(),
            }
        })),
    }
    let mut fields = counts.fields().to_vec();
    fields.push(("phase", phase.into()));
    Words {
        fields,
        conditions,
        ..Words::default()
    }
}

fn scheduler_plugins(gang: &GangView<'_>, status: &Map<String, Value>) -> Words {
    let counts = Counts::of(gang);
    let Counts {
        running,
        succeeded,
        failed,
        ..
    } = counts;
    let min = gang.min;
    let phase = if succeeded >= min && min > 0 {
        "Finished"
    } else if failed != 0 && failed + running + succeeded >= min {
        "Failed"
    } else if (gang.members.len() as u32) < min {
        "Pending"
    } else if succeeded + running >= min {
        "Running"
    } else {
        "Scheduling"
    };
    let mut fields = counts.fields().to_vec();
    fields.push(("phase", phase.into()));
    if phase == "Scheduling" && status.get(START_TIME).is_none_or(Value::is_null) {
        fields.push((START_TIME, timestamp().into()));
    }
    Words {
        fields,
        ..Words::default()
    }
}

/// Members by what has become of them.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    bound: u32,
    running: u32,
    succeeded: u32,
    failed: u32,
}

impl Counts {
    fn of(gang: &GangView<'_>) -> Self {
        let mut counts = Self::default();
        for member in &gang.members {
            match member.state {
                MemberState::Succeeded => counts.succeeded += 1,
                MemberState::Failed => counts.failed += 1,
                MemberState::Bound => counts.bound += 1,
                MemberState::Waiting
                | MemberState::Gated
                | MemberState::Planned
                | MemberState::Terminating => {}
            }
            counts.running += u32::from(member.runs);
        }
        counts
    }

    fn fields(self) -> [(&'static str, Value); 3] {
        [
            ("running", self.running.into()),
            ("succeeded", self.succeeded.into()),
            ("failed", self.failed.into()),
        ]
    }
}

fn conditions(status: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let conditions = status.get("conditions").and_then(Value::as_array);
    conditions.into_iter().flatten()
}

/// The status of a condition, if it is of this kind.
fn says<'a>(condition: &'a Value, kind: &str) -> Option<&'a str> {
    let is_it = condition.get("type").and_then(Value::as_str) == Some(kind);
    is_it
        .then(|| condition.get("status").and_then(Value::as_str))
        .flatten()
}

impl Words {
    /// The change that makes a status say this, as a merge patch; `None` when it does. `node_pool`: that of
    /// a group of KAI's.
    pub(super) fn change(&self, status: &Map<String, Value>, node_pool: &str) -> Option<Value> {
        let mut change = Map::new();
        for (field, value) in &self.fields {
            let known = status.get(*field);
            // A counter that is not there is 0, and a moment is told once.
            let is_known = match known {
                Some(known) => known == value || *field == START_TIME,
                None => *value == json!(0),
            };
            if !is_known {
                change.insert((*field).into(), value.clone());
            }
        }
        let mut all: Vec<Value> = conditions(status).cloned().collect();
        let mut is_new = false;
        for condition in &self.conditions {
            is_new |= condition.put(&mut all);
        }
        if is_new {
            change.insert("conditions".into(), all.into());
        }
        if let Some(word) = &self.on_node_pool
            && let Some(all) = word.put(status, node_pool)
        {
            change.insert(pool::CONDITIONS.into(), all.into());
        }
        (!change.is_empty()).then(|| change.into())
    }
}

impl Condition {
    /// Puts it into the list, in place of the one of its kind; whether that said something else.
    fn put(&self, all: &mut Vec<Value>) -> bool {
        let status = if self.is_true { "True" } else { "False" };
        let mut condition = json!({
            "type": self.kind,
            "status": status,
            "reason": self.reason,
            "message": self.message,
            "lastTransitionTime": timestamp(),
        });
        let Some(known) = all
            .iter_mut()
            .find(|known| says(known, self.kind).is_some())
        else {
            all.push(condition);
            return true;
        };
        let text = |field: &str| known.get(field).and_then(Value::as_str).unwrap_or_default();
        if text("status") == status {
            if text("reason") == self.reason && text("message") == self.message {
                return false;
            }
            condition["lastTransitionTime"] = text("lastTransitionTime").into();
        }
        *known = condition;
        true
    }
}
