//! What must hold in a scenario, and how it is checked.
//!
//! Data enters through serde as [`Expect`] and is compared with what the engine's face shows; each
//! difference leaves as one line that says what was expected and what is.

use std::collections::{BTreeMap, BTreeSet};

use gangline::{
    Scheduler, Verdict,
    device::links::Link,
    engine::{Explanation, GangView, MemberState, MemberView, NodeView},
    request::NODE_LEVEL,
};
use serde::Deserialize;

use super::{
    build::level_label,
    known::Known,
    outside::full_name,
    value::{Count, Names, When, word_or_fields},
};
use crate::{
    output::{card_totals, explain, phase_word, text::member_word, verdict, verdict_word},
    quantity::Quantity,
};

mod devices;
mod reason;

pub use reason::{ReasonTest, ShortfallTest};

/// What must hold at a moment, or at each decided moment of a range.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// When.
    pub at: When,
    /// These gangs, or pods without a gang.
    pub gang: Option<Names>,
    /// These pods, members of gangs or not.
    pub pod: Option<Names>,
    /// These nodes. Without gang, pod and node: the cluster as a whole.
    pub node: Option<Names>,

    /// A gang: what was decided.
    pub verdict: Option<Verdict>,
    /// A gang's phase, or what a pod is doing, as one word.
    pub state: Option<String>,
    /// Gone: not known to the engine any more.
    pub gone: Option<bool>,
    /// Members that have a place, bound or planned.
    pub placed: Option<Count>,
    /// Members that wait, gated ones included.
    pub waiting: Option<Count>,
    /// Members that have a place, by role.
    pub roles: BTreeMap<String, Count>,
    /// The nodes used: all of them, and no others.
    pub nodes: Option<Names>,
    /// Members on nodes: these numbers on these nodes, whatever the others hold.
    pub on: BTreeMap<String, Count>,
    /// The cards of a pod, by number.
    pub cards: Option<Vec<u32>>,
    /// The parts of cards held, all of them: `0:1g.5gb@6`, `1:12288MiB`, `1:1/4`.
    pub parts: Option<Vec<String>>,
    /// The slowest hop of the best ring over the cards of each member.
    pub link: Option<Link>,
    /// All cards of each member are on this NUMA node.
    pub numa_node: Option<u8>,
    /// A pod's position among the members of its gang.
    pub rank: Option<Count>,
    /// In these domains only: level and name.
    pub within: BTreeMap<String, Names>,
    /// How many domains of a level are used.
    pub domains: BTreeMap<String, Count>,
    /// No two members in one domain of this level.
    pub distinct: Option<String>,
    /// Holds no card and no place.
    pub holds_nothing: bool,
    /// Why it waits: a code, or several facts.
    #[serde(deserialize_with = "word_or_fields")]
    pub reason: Option<ReasonTest>,
    /// Each text is part of a change that would admit the gang.
    pub admitted_if: Vec<String>,
    /// The same for a change that would if those ahead of it were not there.
    pub admitted_if_first: Vec<String>,

    /// Free cards of each node, or of the cluster.
    pub free_cards: Option<Count>,
    /// Free amounts of each node.
    pub free: BTreeMap<String, Quantity>,
    /// Cards of each node that nobody has anything of: these, and no others.
    pub untouched: Option<Vec<u32>>,
    /// How many parts are held of cards of each node, by card.
    pub parts_on: BTreeMap<u32, Count>,
    /// Gangs that wait, in the cluster.
    pub pending_gangs: Option<Count>,
}

/// One difference between what was expected and what is.
type Difference = String;

/// Collects differences.
#[derive(Debug, Default)]
struct Differences(Vec<Difference>);

impl Differences {
    fn count(&mut self, what: &str, expected: Option<&Count>, is: i64) {
        if let Some(expected) = expected.filter(|expected| !expected.accepts(is)) {
            self.0.push(format!("{what}: expected {expected}, is {is}"));
        }
    }

    fn equal(&mut self, what: &str, expected: Option<&str>, is: &str) {
        if let Some(expected) = expected.filter(|expected| *expected != is) {
            self.0.push(format!("{what}: expected {expected}, is {is}"));
        }
    }
}

/// What the engine shows at one moment.
pub(super) struct Seen<'a> {
    scheduler: &'a Scheduler,
    nodes: Vec<NodeView<'a>>,
}

impl<'a> Seen<'a> {
    pub(super) fn new(scheduler: &'a Scheduler) -> Self {
        let nodes = scheduler.nodes();
        Self { scheduler, nodes }
    }

    fn node(&self, name: &str) -> Option<&NodeView<'a>> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// The domain of a member's node at a level; empty where the node lacks the label.
    fn domain(&self, member: &MemberView<'_>, level: &str) -> Option<&str> {
        let node = self
            .nodes
            .iter()
            .find(|node| Some(node.ix) == member.node)?;
        if level == NODE_LEVEL {
            return Some(node.name);
        }
        let levels = &self.scheduler.config().levels;
        let index = levels.iter().position(|known| known == level)?;
        Some(node.path.get(index).copied().flatten().unwrap_or(""))
    }
}

fn is_placed(member: &MemberView<'_>) -> bool {
    member.node.is_some() && matches!(member.state, MemberState::Bound | MemberState::Planned)
}

impl Expect {
    /// Refuses what no node and no gang of the scenario has: it would hold by accident.
    pub(super) fn check_names(&self, known: &Known) -> Result<(), String> {
        let level = |field: &str, level: &String| {
            let label = level_label(level);
            if label == NODE_LEVEL || known.levels.contains(&label) {
                return Ok(());
            }
            let accepted: Vec<&str> = known.levels.iter().map(String::as_str).collect();
            let accepted = ["node"].into_iter().chain(accepted).collect::<Vec<_>>();
            Err(format!(
                "{field}: there is no level {level:?}; accepted: {}",
                accepted.join(", ")
            ))
        };
        self.within
            .keys()
            .try_for_each(|key| level("within", key))?;
        self.domains
            .keys()
            .try_for_each(|key| level("domains", key))?;
        self.distinct
            .iter()
            .try_for_each(|key| level("distinct", key))?;
        let node = |field: &str, name: &String| {
            let there = known.nodes.contains(name);
            there
                .then_some(())
                .ok_or_else(|| format!("{field}: no node is ever called {name:?}"))
        };
        self.on.keys().try_for_each(|name| node("on", name))?;
        let mut named = self.node.iter().flat_map(|names| &names.0);
        named.try_for_each(|name| node("node", name))?;
        let role = |name: &String| {
            let there = known.roles.contains(name);
            there
                .then_some(())
                .ok_or_else(|| format!("roles: no role is ever called {name:?}"))
        };
        self.roles.keys().try_for_each(role)
    }

    /// Every difference, each with its subject before it.
    pub(super) fn check(&self, seen: &Seen<'_>) -> Vec<Difference> {
        let mut lines = Vec::new();
        let mut note = |subject: String, differences: Differences| {
            let lined = differences
                .0
                .into_iter()
                .map(|line| format!("{subject}: {line}"));
            lines.extend(lined);
        };
        for name in self.gang.iter().flat_map(|names| &names.0) {
            note(format!("gang {name}"), self.check_gang(seen, name));
        }
        for name in self.pod.iter().flat_map(|names| &names.0) {
            note(format!("pod {name}"), self.check_pod(seen, name));
        }
        for name in self.node.iter().flat_map(|names| &names.0) {
            note(format!("node {name}"), self.check_node(seen, name));
        }
        if self.gang.is_none() && self.pod.is_none() && self.node.is_none() {
            note("cluster".to_owned(), self.check_cluster(seen));
        }
        lines
    }

    fn check_gang(&self, seen: &Seen<'_>, name: &str) -> Differences {
        let mut differences = Differences::default();
        let (namespace, short) = full_name(name);
        let id = seen.scheduler.find(namespace, short);
        let Some(gang) = id.and_then(|id| seen.scheduler.gang(id)) else {
            if self.gone != Some(true) {
                differences.0.push("is not known".to_owned());
            }
            return differences;
        };
        if self.gone == Some(true) {
            differences
                .0
                .push(format!("expected gone, is {}", phase_word(gang.phase)));
        }
        let expected = self.verdict.map(verdict_word);
        differences.equal("verdict", expected, verdict_word(verdict(&gang)));
        differences.equal("state", self.state.as_deref(), phase_word(gang.phase));
        for (role, count) in &self.roles {
            let of_role = |member: &&MemberView<'_>| member.role == role && is_placed(member);
            let placed = gang.members.iter().filter(of_role).count();
            differences.count(
                &format!("placed of role {role}"),
                Some(count),
                placed as i64,
            );
        }
        let members: Vec<&MemberView<'_>> = gang.members.iter().collect();
        self.check_members(seen, &members, &mut differences);
        if self.holds_nothing {
            let holds = |node: &NodeView<'_>| {
                let mut held = node.cards.iter().flat_map(|cards| &cards.held);
                held.any(|(cards, holder)| *holder == gang.id && !cards.is_empty())
            };
            let nodes: Vec<&str> = seen
                .nodes
                .iter()
                .filter(|node| holds(node))
                .map(|node| node.name)
                .collect();
            if !nodes.is_empty() {
                differences.0.push(format!(
                    "expected to hold nothing, holds cards on {}",
                    nodes.join(", ")
                ));
            }
        }
        let admitted = !self.admitted_if.is_empty() || !self.admitted_if_first.is_empty();
        if self.reason.is_some() || admitted {
            self.check_reason(seen, &gang, &mut differences);
        }
        differences
    }

    /// Whatever is said about members, of one gang or alone.
    fn check_members(
        &self,
        seen: &Seen<'_>,
        members: &[&MemberView<'_>],
        differences: &mut Differences,
    ) {
        let placed: Vec<&MemberView<'_>> = members
            .iter()
            .copied()
            .filter(|member| is_placed(member))
            .collect();
        let waits = |member: &&&MemberView<'_>| {
            matches!(member.state, MemberState::Waiting | MemberState::Gated)
        };
        differences.count("placed", self.placed.as_ref(), placed.len() as i64);
        let waiting = members.iter().filter(waits).count();
        differences.count("waiting", self.waiting.as_ref(), waiting as i64);
        if self.holds_nothing && !placed.is_empty() {
            differences.0.push(format!(
                "expected to hold nothing, {} have a place",
                placed.len()
            ));
        }
        let on = |level: &str| -> Vec<&str> {
            placed
                .iter()
                .filter_map(|member| seen.domain(member, level))
                .collect()
        };
        let used = on(NODE_LEVEL);
        if let Some(nodes) = &self.nodes {
            let expected: BTreeSet<&str> = nodes.0.iter().map(String::as_str).collect();
            let is: BTreeSet<&str> = used.iter().copied().collect();
            if is != expected {
                let list = |set: BTreeSet<&str>| match set.len() {
                    0 => "none".to_owned(),
                    _ => set.into_iter().collect::<Vec<_>>().join(", "),
                };
                differences.0.push(format!(
                    "nodes: expected {}, is {}",
                    list(expected),
                    list(is)
                ));
            }
        }
        for (node, count) in &self.on {
            let there = used.iter().filter(|used| *used == node).count();
            differences.count(&format!("on {node}"), Some(count), there as i64);
        }
        for (level, names) in &self.within {
            let outside = |domain: &&str| !names.0.iter().any(|name| name == domain);
            let outside: BTreeSet<&str> = on(&level_label(level))
                .into_iter()
                .filter(outside)
                .collect();
            if !outside.is_empty() {
                let list: Vec<&str> = outside.into_iter().collect();
                differences.0.push(format!(
                    "{level}: expected within {names}, is also in {}",
                    list.join(", ")
                ));
            }
        }
        for (level, count) in &self.domains {
            let used: BTreeSet<&str> = on(&level_label(level)).into_iter().collect();
            differences.count(
                &format!("domains of {level}"),
                Some(count),
                used.len() as i64,
            );
        }
        if let Some(level) = &self.distinct {
            let all = on(&level_label(level));
            let different: BTreeSet<&str> = all.iter().copied().collect();
            if different.len() != all.len() {
                differences.0.push(format!(
                    "expected each member in another {level}, but {} share {}",
                    all.len(),
                    different.len()
                ));
            }
        }
        self.check_devices(seen, &placed, differences);
    }

    fn check_reason(&self, seen: &Seen<'_>, gang: &GangView<'_>, differences: &mut Differences) {
        let explanation = explain(&mut seen.scheduler.explainer(), gang);
        let reason = explanation.as_ref().and_then(|why| why.reason.as_ref());
        if let Some(test) = &self.reason {
            test.check(reason, differences);
        }
        let why = explanation.unwrap_or_default();
        for (when, expected, changes) in [
            ("admitted if", &self.admitted_if, &why.counterfactuals),
            ("admitted if first", &self.admitted_if_first, &why.if_first),
        ] {
            let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
            let missing = |text: &&String| !changes.iter().any(|change| change.contains(*text));
            for text in expected.iter().filter(missing) {
                let is = changes.join("; ");
                differences
                    .0
                    .push(format!("{when}: expected {text:?}, is {is:?}"));
            }
        }
    }

    fn check_pod(&self, seen: &Seen<'_>, name: &str) -> Differences {
        let mut differences = Differences::default();
        let (namespace, short) = full_name(name);
        let found = seen.scheduler.gangs().into_iter().find_map(|id| {
            let gang = seen.scheduler.gang(id)?;
            let here = gang.namespace == namespace;
            let has = |member: &MemberView<'_>| member.name == short;
            let index = gang.members.iter().position(has).filter(|_| here)?;
            Some((gang, index))
        });
        let Some((gang, index)) = found else {
            if self.gone != Some(true) {
                differences.0.push("is not known".to_owned());
            }
            return differences;
        };
        let member = &gang.members[index];
        if self.gone == Some(true) {
            differences
                .0
                .push(format!("expected gone, is {}", member_word(member.state)));
        }
        differences.equal("state", self.state.as_deref(), member_word(member.state));
        differences.count("rank", self.rank.as_ref(), i64::from(member.rank));
        self.check_members(seen, &[member], &mut differences);
        if let Some(test) = &self.reason {
            let why: Option<Explanation> = explain(&mut seen.scheduler.explainer(), &gang);
            let own = why
                .iter()
                .flat_map(|why| &why.members)
                .find(|(pod, _)| pod == short);
            test.check(own.map(|(_, reason)| reason), &mut differences);
        }
        differences
    }

    fn check_node(&self, seen: &Seen<'_>, name: &str) -> Differences {
        let mut differences = Differences::default();
        let Some(node) = seen.node(name) else {
            if self.gone != Some(true) {
                differences.0.push("is not known".to_owned());
            }
            return differences;
        };
        let totals = card_totals(std::slice::from_ref(node));
        let free: u64 = totals.values().map(|totals| totals.free).sum();
        let free = i64::try_from(free).unwrap_or(i64::MAX);
        differences.count("free cards", self.free_cards.as_ref(), free);
        for (resource, quantity) in &self.free {
            let is = node.resources.iter().find(|(name, _, _)| name == resource);
            let is = is.map_or(0, |(_, free, _)| *free);
            let milli = i128::from(is) * if resource == "cpu" { 1 } else { 1000 };
            match quantity.milli() {
                Ok(expected) if expected == milli => {}
                Ok(_) => {
                    differences
                        .0
                        .push(format!("free {resource}: expected {quantity}, is {is}"));
                }
                Err(error) => differences.0.push(format!("free {resource}: {error}")),
            }
        }
        self.check_cards(node, &mut differences);
        differences
    }

    fn check_cluster(&self, seen: &Seen<'_>) -> Differences {
        let mut differences = Differences::default();
        let totals = card_totals(&seen.nodes);
        let free: u64 = totals.values().map(|totals| totals.free).sum();
        let free = i64::try_from(free).unwrap_or(i64::MAX);
        differences.count("free cards", self.free_cards.as_ref(), free);
        if let Some(count) = &self.pending_gangs {
            let gangs = seen.scheduler.gangs().into_iter();
            let waits = gangs.filter_map(|id| seen.scheduler.gang(id));
            let waits = waits
                .filter(|gang| verdict(gang) != Verdict::Placed)
                .count();
            differences.count("pending gangs", Some(count), waits as i64);
        }
        differences
    }
}
