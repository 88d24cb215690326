//! What the commands say, as data: the versioned schema of `docs/output.md`.
//!
//! Data enters as the engine's views and explanations and leaves as a [`Report`], which is written
//! as JSON or YAML, shown by [`text`] and drawn by [`picture`](crate::picture). Everything that those
//! three say about a gang is worked out here, once. Nothing here decides anything.

use std::collections::{BTreeMap, BTreeSet};

use gangline::{
    GangId, NodeIx, Scheduler, Verdict,
    bits::CardSet,
    device::{Slice, names::card_kind, overhead::Need},
    engine::{CardsView, Explanation, GangView, MemberState, MemberView, NodeView},
    explain::{Counterfactual, DomainAttempt, Explainer, Reason},
    gang::life::{End, Phase},
    request::NODE_LEVEL,
};
use serde::{Serialize, Serializer};

use self::devices::{Held, LinksReport, PartReport};
use crate::{load::Complaint, node::is_away};

pub mod devices;
pub mod text;

/// Version of the schema. It changes when a field changes its meaning or goes away; new fields may
/// appear without a change.
pub const SCHEMA_VERSION: u32 = 1;

/// So many waiting gangs, the first in the queue, get their full story; the others only a reason.
/// Each counterfactual costs searches, and nobody reads thousands of them.
const FULL_STORIES: usize = 200;

/// Everything that `gangline plan` has to say.
#[derive(Debug, Serialize)]
pub struct Report {
    /// See [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Hash of every decision, 16 hexadecimal digits.
    pub decision_hash: String,
    /// All gangs in queue order, gangs of one included.
    pub gangs: Vec<GangReport>,
    /// Cards of all nodes, by kind.
    pub cards: BTreeMap<String, CardTotals>,
    /// What was wrong with the input.
    pub complaints: Vec<ComplaintReport>,
}

/// Something that was wrong with the input: a line for people, and the facts.
#[derive(Debug, Serialize)]
pub struct ComplaintReport {
    /// One line for people.
    pub message: String,
    /// The facts.
    #[serde(flatten)]
    pub facts: Complaint,
}

impl From<Complaint> for ComplaintReport {
    fn from(facts: Complaint) -> Self {
        Self {
            message: facts.to_string(),
            facts,
        }
    }
}

/// Cards of one kind over all nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CardTotals {
    /// All of them.
    pub total: u64,
    /// Held by somebody, whole or in part.
    pub held: u64,
    /// Of those held: the ones that are held in parts.
    pub in_parts: u64,
    /// Free and healthy, on nodes that take members.
    pub free: u64,
    /// Neither: unhealthy, or free on a node that is cordoned or not ready, or where nobody knows what
    /// is used.
    pub unusable: u64,
}

/// One gang.
#[derive(Debug, Serialize)]
pub struct GangReport {
    /// Its index in the engine.
    #[serde(skip)]
    pub id: GangId,
    /// Its namespace.
    pub namespace: String,
    /// Its name; a gang of one has its pod's.
    pub name: String,
    /// Which kind of object defines it; empty for a gang of one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Whether it is a pod without a group.
    pub single: bool,
    /// Where it is in its life.
    #[serde(serialize_with = "phase")]
    pub state: Phase,
    /// What was decided.
    pub verdict: Verdict,
    /// Higher goes first.
    pub priority: i32,
    /// Name of its queue.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub queue: String,
    /// Members that must run together.
    pub min: u32,
    /// Members that exist and are not over.
    pub wanted: u32,
    /// Members that have a place.
    pub placed: u32,
    /// The finest domain that holds all its places.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<Domain>,
    /// Its members, by role, then name.
    pub members: Vec<MemberReport>,
    /// Why it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<ReasonReport>,
    /// The best attempt in each domain of the level that binds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<DomainAttempt>,
    /// Single changes that would admit it at its turn, smallest first.
    pub counterfactuals: Vec<CounterfactualReport>,
    /// How many wait ahead of it.
    #[serde(skip_serializing_if = "is_none_ahead")]
    pub ahead: u32,
    /// Further changes that would admit it if those ahead of it were not there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub if_first: Vec<CounterfactualReport>,
    /// What is worth knowing about its places, one line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A domain of the topology.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Domain {
    /// Its level, by node label.
    pub level: String,
    /// The label's value.
    pub name: String,
}

/// One member.
#[derive(Debug, Serialize)]
pub struct MemberReport {
    /// The pod's name.
    pub pod: String,
    /// Its role; empty when the gang has only one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// Its position among the gang's members.
    pub rank: u32,
    /// What it is doing.
    pub state: MemberState,
    /// Its node, bound or planned.
    pub node: Option<String>,
    /// Its cards there, whole or in part.
    #[serde(serialize_with = "card_list")]
    pub cards: CardSet,
    /// Whether nobody told which cards those are, so that they are assumed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
    /// The parts of cards that it holds; empty when it has whole ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartReport>,
    /// How its cards reach each other, when it has several whole ones and that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<LinksReport>,
    /// The memory that each of its parts needs, term by term in MiB, when it asks for an amount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Need>,
    /// Why it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<ReasonReport>,
}

/// A reason: a word for machines, a line for people, and the facts.
#[derive(Debug, Serialize)]
pub struct ReasonReport {
    /// A stable word.
    pub code: String,
    /// One line for people; its wording may change.
    pub message: String,
    /// The facts behind it.
    pub facts: Reason,
}

impl From<Reason> for ReasonReport {
    fn from(facts: Reason) -> Self {
        Self {
            code: facts.code().to_owned(),
            message: facts.to_string(),
            facts,
        }
    }
}

/// A change that would admit the gang: a clause for people, and the facts.
#[derive(Debug, Serialize)]
pub struct CounterfactualReport {
    /// Reads after "admitted if".
    pub message: String,
    /// The facts.
    #[serde(flatten)]
    pub facts: Counterfactual,
}

impl From<Counterfactual> for CounterfactualReport {
    fn from(facts: Counterfactual) -> Self {
        Self {
            message: facts.to_string(),
            facts,
        }
    }
}

/// A word for a phase: how a gang ended stands for itself.
pub fn phase_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Gathering => "gathering",
        Phase::Queued => "queued",
        Phase::Planned => "planned",
        Phase::Binding => "binding",
        Phase::Running => "running",
        Phase::Degraded => "degraded",
        Phase::Ended(End::Completed) => "completed",
        Phase::Ended(End::Failed) => "failed",
        Phase::Ended(End::Deleted) => "deleted",
    }
}

/// A word for a verdict.
pub fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Placed => "placed",
        Verdict::Infeasible => "infeasible",
        Verdict::Undecided => "undecided",
        Verdict::Waiting => "waiting",
        Verdict::Release => "release",
        Verdict::Failed => "failed",
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn phase<S: Serializer>(phase: &Phase, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(phase_word(*phase))
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn card_list<S: Serializer>(cards: &CardSet, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(cards.iter())
}

/// The nodes of a cluster, found by index.
#[derive(Debug)]
pub struct Nodes<'a> {
    levels: &'a [String],
    by_index: BTreeMap<NodeIx, &'a NodeView<'a>>,
}

impl<'a> Nodes<'a> {
    /// Nodes as the engine lists them; `levels` are the labels that their paths follow.
    pub fn new(levels: &'a [String], nodes: &'a [NodeView<'a>]) -> Self {
        let by_index = nodes.iter().map(|node| (node.ix, node)).collect();
        Self { levels, by_index }
    }

    /// The node with this index.
    pub fn get(&self, node: NodeIx) -> Option<&'a NodeView<'a>> {
        self.by_index.get(&node).copied()
    }

    /// The finest domain that holds all of these nodes; a lone node is its own domain.
    fn common_domain(&self, nodes: impl IntoIterator<Item = NodeIx>) -> Option<Domain> {
        let mut nodes = nodes.into_iter().filter_map(|node| self.get(node));
        let first = nodes.next()?;
        let (mut shared, mut alone) = (first.path.len(), true);
        for node in nodes {
            alone &= node.ix == first.ix;
            let pairs = first.path.iter().zip(&node.path).take(shared);
            shared = pairs.take_while(|(a, b)| a.is_some() && a == b).count();
        }
        if alone {
            return Some(Domain {
                level: NODE_LEVEL.to_owned(),
                name: first.name.to_owned(),
            });
        }
        // A level that the nodes lack is no domain; the next coarser one may be.
        let named = |level: usize| {
            let (label, name) = (self.levels.get(level)?, (*first.path.get(level)?)?);
            Some(Domain {
                level: label.clone(),
                name: name.to_owned(),
            })
        };
        (0..shared).rev().find_map(named)
    }
}

/// What was decided. A gang whose minimum runs is placed, whatever was last decided about members
/// that it has beyond that; so are pods that all run though nobody described their group.
pub fn verdict(gang: &GangView<'_>) -> Verdict {
    let runs = |member: &MemberView<'_>| {
        matches!(member.state, MemberState::Bound | MemberState::Succeeded)
    };
    let all_run = gang.members.len() >= gang.min as usize && gang.members.iter().all(runs);
    match gang.phase {
        Phase::Planned | Phase::Binding | Phase::Running => Verdict::Placed,
        Phase::Gathering if all_run && !gang.members.is_empty() => Verdict::Placed,
        _ => gang.verdict,
    }
}

/// Notes on members that have cards of which only the number is known.
fn unknown_cards(gang: &GangView<'_>, nodes: &Nodes<'_>) -> Vec<String> {
    let mut unknown: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for member in gang.members.iter().filter(|member| has_place(member)) {
        let node = member.node.and_then(|node| nodes.get(node));
        let wants = member.wants_cards.map(|wants| wants.kind.as_str());
        let (Some(node), Some(kind)) = (node, wants) else {
            continue;
        };
        let cards = node.cards.iter().filter(|cards| cards.kind == kind);
        for cards in cards.filter(|cards| cards.known.is_none() && !cards.model.is_empty()) {
            let on = unknown.entry(cards.model).or_default();
            if !on.contains(&node.name) {
                on.push(node.name);
            }
        }
    }
    let note = |(model, on): (&str, Vec<&str>)| {
        let nodes = if on.len() == 1 { "node" } else { "nodes" };
        let first = &on[..on.len().min(4)];
        let more = if on.len() > 4 { ", ..." } else { "" };
        let on = first.join(", ");
        format!(
            "cards of {nodes} {on}{more} are of a model that is not known ({model}): they are counted, \
             and nothing else is known of them"
        )
    };
    unknown.into_iter().map(note).collect()
}

/// Notes on members that run with fewer cards than they need: more is used than there is.
fn uncounted(gang: &GangView<'_>, nodes: &Nodes<'_>) -> Vec<String> {
    let note = |member: &MemberView<'_>| {
        let wants = member.wants_cards?;
        let node = member.node.and_then(|node| nodes.get(node))?;
        // Cards that are too many to be told apart are counted, and not here.
        node.cards.iter().find(|cards| cards.kind == wants.kind)?;
        let (has, needs) = match wants.whole_cards() {
            0 => (member.devices.slices().count(), wants.parts() as usize),
            whole => (member.devices.cards.len() as usize, whole as usize),
        };
        let (pod, node) = (member.name, node.name);
        (has < needs).then(|| {
            format!(
                "pod {pod} runs on node {node}, which has {has} of the {needs} {} it needs: more is \
                 used there than there is, or in another way than the node says",
                if wants.whole_cards() > 0 {
                    "cards"
                } else {
                    "parts of cards"
                }
            )
        })
    };
    let placed = gang.members.iter().filter(|member| has_place(member));
    placed.filter_map(note).collect()
}

/// Notes on members of which devices were told that they cannot have.
fn unbelieved(gang: &GangView<'_>) -> Vec<String> {
    let note = |member: &MemberView<'_>| {
        let (told, has) = (member.told?, &member.devices);
        let is_part = |part: Slice| has.slices().any(|other| other == part);
        let is_believed = has.cards.contains_all(told.cards) && told.slices().all(is_part);
        let runs = member.assumed && member.state == MemberState::Bound;
        (runs && !is_believed).then(|| {
            let what = match (told.slices().next(), told.cards) {
                (None, cards) => format!("cards {cards}"),
                (Some(_), CardSet::EMPTY) => "parts of unknown cards".into(),
                (Some(_), cards) => format!("parts of cards {cards}"),
            };
            format!(
                "what is told of pod {}, {what}, cannot be what it has there: it counts as if nothing was \
                 told",
                member.name
            )
        })
    };
    gang.members.iter().filter_map(note).collect()
}

/// Notes on nodes where its members run and of whose cards nobody knows what is used.
fn in_doubt(gang: &GangView<'_>, nodes: &Nodes<'_>) -> BTreeSet<String> {
    let bound = gang.members.iter().filter(|member| has_place(member));
    let on = bound.filter(|member| member.wants_cards.is_some());
    let on = on.filter_map(|member| nodes.get(member.node?));
    let doubts = on.flat_map(|node| node.cards.iter().map(move |cards| (node.name, cards)));
    let doubts = doubts.filter(|(_, cards)| !cards.in_doubt.is_empty());
    doubts
        .map(|(node, cards)| {
            format!(
                "nobody knows what is used of {} {} of node {node}: pods that run there need more than \
                 there is, or told what cannot be; nothing more is placed there",
                if cards.in_doubt.len() == 1 { "card" } else { "cards" },
                cards.in_doubt
            )
        })
        .collect()
}

/// Whether the member has a place now, bound or planned.
fn has_place(member: &MemberView<'_>) -> bool {
    member.node.is_some() && matches!(member.state, MemberState::Planned | MemberState::Bound)
}

impl GangReport {
    /// What there is to say about a gang; `why` explains one that waits.
    pub fn new(gang: &GangView<'_>, nodes: &Nodes<'_>, why: Option<Explanation>) -> Self {
        let over = |state| matches!(state, MemberState::Succeeded | MemberState::Failed);
        let placed = gang.members.iter().filter(|member| has_place(member));
        let places = placed.clone().filter_map(|member| member.node);
        let wanted = gang.members.iter().filter(|member| !over(member.state));
        let why = why.unwrap_or_default();
        let mut reasons: BTreeMap<String, Reason> = why.members.into_iter().collect();
        let member = |member: &MemberView<'_>| {
            let node = member.node.and_then(|node| nodes.get(node));
            let held = node.map(|node| Held::new(member, node)).unwrap_or_default();
            MemberReport {
                pod: member.name.to_owned(),
                role: member.role.to_owned(),
                rank: member.rank,
                state: member.state,
                node: node.map(|node| node.name.to_owned()),
                cards: member.devices.cards,
                assumed: member.assumed,
                parts: held.parts,
                links: held.links,
                memory: member.memory,
                reason: reasons.remove(member.name).map(Into::into),
            }
        };
        Self {
            id: gang.id,
            namespace: gang.namespace.to_owned(),
            name: gang.name.to_owned(),
            source: gang.source.to_owned(),
            single: gang.single,
            state: gang.phase,
            verdict: verdict(gang),
            priority: gang.priority,
            queue: gang.queue.to_owned(),
            min: gang.min,
            wanted: wanted.count() as u32,
            placed: placed.clone().count() as u32,
            domain: nodes.common_domain(places),
            members: gang.members.iter().map(member).collect(),
            reason: why.reason.map(Into::into),
            domains: why.domains,
            counterfactuals: why.counterfactuals.into_iter().map(Into::into).collect(),
            ahead: why.ahead,
            if_first: why.if_first.into_iter().map(Into::into).collect(),
            notes: unknown_cards(gang, nodes)
                .into_iter()
                .chain(uncounted(gang, nodes))
                .chain(unbelieved(gang))
                .chain(in_doubt(gang, nodes))
                .collect(),
        }
    }

    /// Whether it has what it must have: nothing of its minimum waits for a place.
    pub fn is_placed(&self) -> bool {
        self.verdict == Verdict::Placed
    }

    /// Whether it or some member of it waits.
    pub fn waits(&self) -> bool {
        !self.is_placed() || self.reason.is_some()
    }

    /// `namespace/name`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The one word for where it stands: `placed` while some of its places are only planned, its
    /// phase once it is bound, otherwise the verdict.
    pub fn word(&self) -> &'static str {
        let planned = |member: &MemberReport| member.state == MemberState::Planned;
        match self.verdict {
            Verdict::Placed if self.members.iter().any(planned) => "placed",
            Verdict::Placed if self.state == Phase::Gathering => phase_word(Phase::Running),
            Verdict::Placed => phase_word(self.state),
            verdict => verdict_word(verdict),
        }
    }
}

impl Report {
    /// Asks the engine about these gangs and explains those that wait. `progress` is told about each
    /// gang that is done.
    pub fn new(
        scheduler: &Scheduler,
        gangs: impl IntoIterator<Item = GangId>,
        complaints: Vec<Complaint>,
        mut progress: impl FnMut(),
    ) -> Self {
        let views = scheduler.nodes();
        let nodes = Nodes::new(&scheduler.config().levels, &views);
        let mut explainer = scheduler.explainer();
        let mut explained = 0;
        let gang = |id| {
            let view = scheduler.gang(id)?;
            let why = if explained < FULL_STORIES {
                explain(&mut explainer, &view)
            } else {
                explain_briefly(&mut explainer, &view)
            };
            explained += usize::from(why.is_some());
            let report = GangReport::new(&view, &nodes, why);
            progress();
            Some(report)
        };
        Self {
            schema_version: SCHEMA_VERSION,
            decision_hash: hash_text(scheduler.decision_hash()),
            gangs: gangs.into_iter().filter_map(gang).collect(),
            cards: card_totals(&views),
            complaints: complaints.into_iter().map(Into::into).collect(),
        }
    }

    /// Whether every gang is placed, those of its members that it could do without included.
    pub fn all_placed(&self) -> bool {
        !self.gangs.iter().any(GangReport::waits)
    }
}

/// Why a gang waits, or why some of its members do; nothing when all have a place.
pub fn explain(explainer: &mut Explainer, gang: &GangView<'_>) -> Option<Explanation> {
    waits(gang).then(|| explainer.why(gang.id)).flatten()
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_none_ahead(ahead: &u32) -> bool {
    *ahead == 0
}

/// The same without the costly part: no member's own reason, no domains, no counterfactuals.
fn explain_briefly(explainer: &mut Explainer, gang: &GangView<'_>) -> Option<Explanation> {
    let reason = waits(gang).then(|| explainer.reason(gang.id))?;
    Some(Explanation {
        reason,
        ..Explanation::default()
    })
}

/// Whether it, or any of its members, waits for a place.
fn waits(gang: &GangView<'_>) -> bool {
    let waits =
        |member: &MemberView<'_>| matches!(member.state, MemberState::Waiting | MemberState::Gated);
    verdict(gang) != Verdict::Placed || gang.members.iter().any(waits)
}

/// A decision hash as it is written everywhere.
pub fn hash_text(hash: u64) -> String {
    format!("{hash:016x}")
}

/// Cards of these nodes, by kind.
pub fn card_totals(nodes: &[NodeView<'_>]) -> BTreeMap<String, CardTotals> {
    let mut totals: BTreeMap<String, CardTotals> = BTreeMap::new();
    for node in nodes {
        let is_out = node.unschedulable || is_away(node.taints);
        for cards in &node.cards {
            let kind = totals.entry(cards.kind.to_owned()).or_default();
            let held = held_cards(cards);
            let rest = cards.all.difference(held);
            let free = if is_out {
                CardSet::EMPTY
            } else {
                rest.difference(cards.closed())
            };
            kind.total += u64::from(cards.all.len());
            kind.held += u64::from(held.len());
            kind.in_parts += u64::from(parted_cards(cards).len());
            kind.free += u64::from(free.len());
            kind.unusable += u64::from(rest.difference(free).len());
        }
        for &(kind, free, all) in counted_cards(node) {
            let kind = totals.entry(kind.to_owned()).or_default();
            // At most 2^32 of a node, so that no number of nodes is too much.
            let count =
                |amount: i64| u64::from(u32::try_from(amount.clamp(0, all)).unwrap_or(u32::MAX));
            kind.total += count(all);
            kind.held += count(all - free);
            if is_out {
                kind.unusable += count(free);
            } else {
                kind.free += count(free);
            }
        }
    }
    totals
}

/// Cards that are too many to be told apart: kind, free ones, all. They are among a node's amounts.
pub fn counted_cards<'a>(
    node: &'a NodeView<'a>,
) -> impl Iterator<Item = &'a (&'a str, i64, i64)> + 'a {
    let amounts = node.resources.iter();
    amounts.filter(|(name, _, _)| card_kind(name).is_some())
}

/// The cards of which somebody holds a part.
pub fn parted_cards(cards: &CardsView<'_>) -> CardSet {
    let bit = |card: u32| CardSet(1_u64.checked_shl(card).unwrap_or(0));
    let parts = cards.parts.iter();
    parts.fold(CardSet::EMPTY, |all, part| all.union(bit(part.card)))
}

/// The cards that somebody holds, whole or in part.
pub fn held_cards(cards: &CardsView<'_>) -> CardSet {
    let union = |all: CardSet, (some, _): &(CardSet, GangId)| all.union(*some);
    cards.held.iter().fold(CardSet::EMPTY, union)
}

#[cfg(test)]
pub(crate) mod tests;
