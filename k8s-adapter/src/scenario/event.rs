//! What happens in a scenario: entries of its timeline.
//!
//! Data enters through serde as an [`Entry`]: a moment and at most one action. An entry without an
//! action makes the engine decide at that moment.

use gangline::Event;
use serde::Deserialize;

use super::{
    ScenarioError,
    devices::HeldPart,
    shape::{NodeShape, PodShape, WorkShape},
    value::{Names, Span},
};

/// An entry of the timeline.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Entry {
    /// When.
    pub at: Span,
    /// Says it again and again; names get the number of the turn.
    pub repeat: Option<Repeat>,
    /// The engine must refuse it, with this text in its answer.
    pub refused: Option<String>,
    /// A gang or pods appear.
    pub submit: Option<Box<WorkShape>>,
    /// Further pods of a gang appear.
    pub join: Option<Box<Join>>,
    /// A group object changes.
    pub change: Option<Box<Change>>,
    /// Nodes appear or change.
    pub node: Option<Box<NodeShape>>,
    /// Nodes are gone.
    pub remove_node: Option<Names>,
    /// Nodes take no new members.
    pub cordon: Option<Names>,
    /// Nodes take new members again.
    pub uncordon: Option<Names>,
    /// Pods, or all pods of gangs, end well.
    pub finish: Option<Names>,
    /// Pods, or all pods of gangs, end badly.
    pub fail: Option<Names>,
    /// Pods, or gangs with all their pods, are gone.
    pub delete: Option<Names>,
    /// Group objects are gone; their pods stay.
    pub delete_group: Option<Names>,
    /// Pods, or all pods of gangs, are being deleted and still hold what they use.
    pub terminate: Option<Names>,
    /// Pods, or all pods of gangs, get a scheduling gate.
    pub gate: Option<Names>,
    /// Pods, or all pods of gangs, lose their scheduling gates.
    pub ungate: Option<Names>,
    /// Somebody else binds a pod.
    pub bind: Option<Bind>,
    /// Placed pods, or those of gangs, are bound (with `confirm: false`).
    pub confirm: Option<Names>,
    /// From now on binds of a pod, or of the pods of a gang, fail.
    pub bind_fails: Option<BindFails>,
    /// An event in the engine's own form.
    pub apply: Option<Box<Event>>,
}

/// How often an entry is said again.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// The time between two turns.
    pub every: Span,
    /// How many turns there are, the first one included.
    pub times: u32,
}

/// Further pods of a gang.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Join {
    /// The gang.
    pub gang: String,
    /// Its namespace.
    pub namespace: Option<String>,
    /// The role that they belong to.
    pub role: String,
    /// Their names; `NAME-N` with the next free numbers when absent.
    pub names: Option<Names>,
    /// How many, when there are no names.
    pub count: Option<u32>,
    /// What each asks for; what the gang was submitted with when absent.
    pub pod: Option<PodShape>,
    /// Distinguishes a new pod from an old one of the same name.
    pub uid: Option<String>,
}

/// What changes of a group object; what is absent stays.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Change {
    /// The gang.
    pub gang: String,
    /// Its new minimum (of the root).
    pub min: Option<u32>,
    /// Its new size (of the root).
    pub size: Option<u32>,
    /// Its new priority.
    pub priority: Option<i32>,
    /// Its new required level; `""` for none.
    pub required: Option<String>,
}

/// A bind that somebody else made.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bind {
    /// The pods.
    pub pod: Names,
    /// Their node.
    pub node: String,
    /// Their cards, when known.
    pub cards: Option<Vec<u32>>,
    /// Their parts of cards, when known.
    pub parts: Vec<HeldPart>,
}

/// Binds that fail.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BindFails {
    /// Pods, or gangs for all their pods.
    pub of: Names,
    /// How many binds of each pod fail; all when absent.
    #[serde(default)]
    pub times: Option<u32>,
    /// Whether trying the same node again is pointless.
    #[serde(default)]
    pub permanent: bool,
    /// What the other side says.
    #[serde(default)]
    pub message: String,
}

/// The action of an entry.
#[derive(Clone, Debug)]
pub(super) enum Action {
    Submit(Box<WorkShape>),
    Join(Box<Join>),
    Change(Box<Change>),
    Node(Box<NodeShape>),
    RemoveNode(Names),
    Cordon(Names, bool),
    End(Names, Ending),
    DeleteGroup(Names),
    Gate(Names, bool),
    Bind(Bind),
    Confirm(Names),
    BindFails(BindFails),
    Apply(Box<Event>),
    Nothing,
}

/// How pods end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Finish,
    Fail,
    Terminate,
    Delete,
}

impl Entry {
    /// The entry's one action.
    pub(super) fn action(&self, place: &str) -> Result<Action, ScenarioError> {
        let entry = self.clone();
        let given = [
            entry.submit.map(Action::Submit),
            entry.join.map(Action::Join),
            entry.change.map(Action::Change),
            entry.node.map(Action::Node),
            entry.remove_node.map(Action::RemoveNode),
            entry.cordon.map(|names| Action::Cordon(names, true)),
            entry.uncordon.map(|names| Action::Cordon(names, false)),
            entry.finish.map(|names| Action::End(names, Ending::Finish)),
            entry.fail.map(|names| Action::End(names, Ending::Fail)),
            entry
                .terminate
                .map(|names| Action::End(names, Ending::Terminate)),
            entry.delete.map(|names| Action::End(names, Ending::Delete)),
            entry.delete_group.map(Action::DeleteGroup),
            entry.gate.map(|names| Action::Gate(names, true)),
            entry.ungate.map(|names| Action::Gate(names, false)),
            entry.bind.map(Action::Bind),
            entry.confirm.map(Action::Confirm),
            entry.bind_fails.map(Action::BindFails),
            entry.apply.map(Action::Apply),
        ];
        let mut actions = given.into_iter().flatten();
        let action = actions.next().unwrap_or(Action::Nothing);
        match actions.next() {
            None => Ok(action),
            Some(_) => Err(ScenarioError::invalid(
                place,
                "an entry has at most one action",
            )),
        }
    }
}

impl Action {
    /// The action in its `turn`th repetition: new work has the number in its name.
    pub(super) fn in_turn(&self, turn: u32) -> Self {
        let mut action = self.clone();
        if let Action::Submit(work) = &mut action {
            let numbered = |name: &mut String| *name = format!("{name}-{turn}");
            work.gang.iter_mut().for_each(numbered);
            work.single
                .iter_mut()
                .flat_map(|names| &mut names.0)
                .for_each(numbered);
        }
        action
    }

    /// One line for the timeline; empty when there is nothing to say.
    pub(super) fn describe(&self) -> String {
        match self {
            Action::Submit(work) => match (&work.gang, &work.single) {
                (Some(gang), _) => format!("submit gang {gang}"),
                (None, Some(names)) => format!("submit {names}"),
                (None, None) => "submit nothing".to_owned(),
            },
            Action::Join(join) => match &join.names {
                Some(names) => format!("{names} joins gang {}", join.gang),
                None => format!("{} more of gang {}", join.count.unwrap_or(1), join.gang),
            },
            Action::Change(change) => format!("gang {} changes", change.gang),
            Action::Node(node) => format!("node {} appears or changes", node.name),
            Action::RemoveNode(names) => format!("node {names} is gone"),
            Action::Cordon(names, true) => format!("node {names} is cordoned"),
            Action::Cordon(names, false) => format!("node {names} is uncordoned"),
            Action::End(names, Ending::Finish) => format!("{names} succeeds"),
            Action::End(names, Ending::Fail) => format!("{names} fails"),
            Action::End(names, Ending::Terminate) => format!("{names} is being deleted"),
            Action::End(names, Ending::Delete) => format!("{names} is deleted"),
            Action::DeleteGroup(names) => format!("group object {names} is deleted"),
            Action::Gate(names, true) => format!("{names} is gated"),
            Action::Gate(names, false) => format!("{names} is not gated any more"),
            Action::Bind(bind) => format!("somebody binds {} to {}", bind.pod, bind.node),
            Action::Confirm(names) => format!("{names} is bound"),
            Action::BindFails(fails) => format!("binds of {} fail from now on", fails.of),
            Action::Apply(_) => "an event in the engine's own form".to_owned(),
            Action::Nothing => String::new(),
        }
    }
}
