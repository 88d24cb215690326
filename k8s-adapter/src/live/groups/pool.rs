//! What KAI's scheduler says on its `PodGroup`s: that one cannot be scheduled on its node pool.
//!
//! The conditions are a list of their own, one for each node pool, the newest last and with a number that
//! grows. It says so of groups that are complete and of which nothing has a place; when the group runs,
//! the condition goes. Counters and resources are written by KAI's controllers.

use gangline::{
    engine::{GangView, MemberState},
    explain::Reason,
    gang::life::{End, Phase},
};
use serde_json::{Map, Value, json};

use super::super::report::timestamp;
use crate::api::Labels;

/// The field of the status.
pub(super) const CONDITIONS: &str = "schedulingConditions";

const KIND: &str = "UnschedulableOnNodePool";
const LABEL: &str = "kai.scheduler/node-pool";
/// The node pool of groups that name none.
const DEFAULT: &str = "default";

/// What there is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// It cannot be scheduled, and why.
    Unschedulable(String),
    /// It runs, or did.
    Scheduled,
}

/// The node pool of a group.
pub(super) fn of(labels: &Labels) -> String {
    let label = labels.get(LABEL).filter(|pool| !pool.is_empty());
    label.map_or(DEFAULT, |pool| pool).to_owned()
}

/// How a gang stands; `None`: as it stood.
pub(super) fn word(gang: &GangView<'_>, reason: Option<&Reason>) -> Option<Word> {
    if let Phase::Running | Phase::Ended(End::Completed) = gang.phase {
        return Some(Word::Scheduled);
    }
    let mut members = gang.members.iter();
    if members.any(|member| member.state == MemberState::Bound) {
        return None;
    }
    match reason? {
        Reason::WaitingForMembers { .. } | Reason::MinExceedsMembers { .. } => None,
        reason => Some(Word::Unschedulable(reason.with_code())),
    }
}

impl Word {
    /// The conditions when this is said too; `None` when it is.
    pub(super) fn put(&self, status: &Map<String, Value>, pool: &str) -> Option<Vec<Value>> {
        let known = status.get(CONDITIONS).and_then(Value::as_array);
        let known = known.map_or(&[][..], Vec::as_slice);
        let of_pool = |condition: &&Value| condition["nodePool"] == pool;
        let others = || {
            known
                .iter()
                .filter(|condition| !of_pool(condition))
                .cloned()
        };
        let Self::Unschedulable(message) = self else {
            let is_said = known.iter().any(|condition| of_pool(&condition));
            return is_said.then(|| others().collect());
        };
        let is_said = known.last().is_some_and(|last| {
            of_pool(&last)
                && last["type"] == KIND
                && last["status"] == "True"
                && last["message"] == **message
        });
        if is_said {
            return None;
        }
        let number = |condition: &Value| condition["transitionID"].as_str()?.parse::<u32>().ok();
        let last = known.iter().filter_map(number).max().unwrap_or(0);
        let condition = json!({
            "type": KIND,
            "nodePool": pool,
            "reason": "Unschedulable",
            "message": message,
            "transitionID": last.saturating_add(1).to_string(),
            "lastTransitionTime": timestamp(),
            "status": "True",
        });
        Some(others().chain([condition]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(conditions: Value) -> Map<String, Value> {
        Map::from_iter([(CONDITIONS.to_owned(), conditions)])
    }

    /// Node pool and number of each.
    fn pools(conditions: &[Value]) -> Vec<(&str, &str)> {
        let said = conditions.iter().map(|condition| {
            let text = |field: &str| condition[field].as_str().unwrap();
            (text("nodePool"), text("transitionID"))
        });
        said.collect()
    }

    #[test]
    fn each_node_pool_has_one_condition_and_the_newest_is_the_last() {
        let word = |message: &str| Word::Unschedulable(message.to_owned());
        let first = word("a").put(&Map::new(), "x").unwrap();
        assert_eq!(pools(&first), [("x", "1")]);
        let known = status(first.into());
        assert_eq!(word("a").put(&known, "x"), None);
        let other = word("a").put(&known, "y").unwrap();
        assert_eq!(pools(&other), [("x", "1"), ("y", "2")]);
        let known = status(other.into());
        let again = word("a").put(&known, "x").unwrap();
        assert_eq!(pools(&again), [("y", "2"), ("x", "3")]);
        let known = status(again.into());
        let scheduled = Word::Scheduled.put(&known, "y").unwrap();
        assert_eq!(pools(&scheduled), [("x", "3")]);
        assert_eq!(Word::Scheduled.put(&status(scheduled.into()), "y"), None);
    }

    #[test]
    fn what_cannot_be_read_is_written_over() {
        for senseless in [
            json!("text"),
            json!([1, null]),
            json!([{"transitionID": "-1"}]),
        ] {
            let put = Word::Unschedulable("a".into()).put(&status(senseless), "x");
            assert_eq!(put.unwrap().last().unwrap()["transitionID"], "1");
        }
    }
}
