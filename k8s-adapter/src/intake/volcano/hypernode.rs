//! `HyperNode`s, Volcano's tree of switches, as node labels.
//!
//! A node below a `HyperNode` of tier N gets the label `gangline.io/hypernode-tier-N`, with `/` and
//! the tier's name behind it where the tier has one; its value is the `HyperNode`'s name. Each tier
//! is then a topology level like any other. Tiers grow upward there (1 is next to the nodes), levels
//! are listed coarse to fine here. Where a node has nothing on a tier, the `HyperNode` below stands
//! in: "within tier N" means within one `HyperNode` of tier N *or less*.
//! `HyperNode`s that go round in a circle are not used.

use std::collections::{BTreeMap, BTreeSet};

use gangline::{
    cluster::NodeSpec,
    gang::{Problem, TopologyRule},
};
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

use super::{
    super::{
        Field, label_selector,
        store::{Store, Stored},
    },
    NetworkTopology, mode_problem,
};
use crate::{
    api::{LabelSelector, or_default, whole_number},
    load::{Complaint, Severity},
    problem::{FieldPath, problem},
};

const LABEL_PREFIX: &str = "gangline.io/hypernode-tier-";

/// Whether a node label is that of a tier.
#[cfg(feature = "live")]
pub(in crate::intake) fn implies(label: &str) -> bool {
    label.starts_with(LABEL_PREFIX)
}

/// All fields of a `HyperNode`'s spec.
pub(super) const FIELDS: &[Field] = &[
    Field::any("tier"),
    Field::any("tierName"),
    Field::of(
        "members",
        &[
            Field::any("type"),
            Field::of(
                "selector",
                &[
                    Field::of("exactMatch", &[Field::any("name")]),
                    Field::of("regexMatch", &[Field::any("pattern")]),
                    Field::any("labelMatch"),
                ],
            ),
        ],
    ),
];

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct HyperNodeSpec {
    #[serde(deserialize_with = "whole_number")]
    tier: Option<i64>,
    #[serde(deserialize_with = "or_default")]
    tier_name: Box<str>,
    #[serde(deserialize_with = "or_default")]
    members: Vec<MemberSpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MemberSpec {
    #[serde(rename = "type", deserialize_with = "or_default")]
    kind: Box<str>,
    #[serde(deserialize_with = "or_default")]
    selector: Selector,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Selector {
    #[serde(rename = "exactMatch")]
    exact: Option<ExactMatch>,
    #[serde(rename = "regexMatch")]
    regex: Option<RegexMatch>,
    #[serde(rename = "labelMatch")]
    labels: Option<LabelSelector>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ExactMatch {
    #[serde(deserialize_with = "or_default")]
    name: Box<str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RegexMatch {
    #[serde(deserialize_with = "or_default")]
    pattern: Box<str>,
}

/// The tiers that there are, and their names.
#[derive(Debug, Default)]
pub(super) struct Tiers {
    tiers: BTreeMap<u32, Option<Box<str>>>,
}

impl Tiers {
    /// The node label that stands for a tier. What follows a slash is shown to people.
    fn level(&self, tier: u32) -> String {
        match self.tiers.get(&tier) {
            Some(Some(name)) => format!("{LABEL_PREFIX}{tier}/{name}"),
            _ => format!("{LABEL_PREFIX}{tier}"),
        }
    }

    /// The node labels of all tiers, coarse to fine.
    pub(super) fn levels(&self) -> Vec<String> {
        self.tiers
            .keys()
            .rev()
            .map(|&tier| self.level(tier))
            .collect()
    }

    /// What a `networkTopology` asks for. `field` is where it stands.
    pub(super) fn rule(
        &self,
        topology: Option<&NetworkTopology>,
        field: &str,
    ) -> Result<TopologyRule, Problem> {
        let Some(topology) = topology else {
            return Ok(TopologyRule::default());
        };
        let hard = match &*topology.mode {
            "" | "hard" => true,
            "soft" => false,
            mode => return Err(mode_problem(mode, field)),
        };
        let wanted = match (topology.highest_tier_allowed, &*topology.highest_tier_name) {
            (Some(_), name) if !name.is_empty() => {
                let message = "highestTierAllowed and highestTierName; accepted: one of them";
                return Err(problem("InvalidTopology", field, message));
            }
            (Some(tier), _) => self.by_number(tier, &format!("{field}.highestTierAllowed"))?,
            // As there: no tier, no limit.
            (None, "") => None,
            (None, name) => Some(self.by_name(name, &format!("{field}.highestTierName"))?),
        };
        let wanted = wanted.map(|tier| self.level(tier));
        Ok(if hard {
            TopologyRule {
                required: wanted,
                preferred: None,
            }
        } else {
            let finest = self.tiers.keys().next().map(|&tier| self.level(tier));
            TopologyRule {
                required: None,
                preferred: wanted.or(finest),
            }
        })
    }

    /// The highest tier up to this number. Above all tiers there is no limit.
    fn by_number(&self, tier: i64, field: &str) -> Result<Option<u32>, Problem> {
        let last = self.tiers.keys().next_back();
        if last.is_some_and(|&last| i64::from(last) < tier) {
            return Ok(None);
        }
        let found = u32::try_from(tier)
            .ok()
            .and_then(|tier| self.tiers.range(..=tier).next_back());
        match found {
            Some((&tier, _)) => Ok(Some(tier)),
            None => Err(self.unknown(&tier.to_string(), field)),
        }
    }

    fn by_name(&self, name: &str, field: &str) -> Result<u32, Problem> {
        let found = self
            .tiers
            .iter()
            .find(|(_, known)| known.as_deref() == Some(name));
        found
            .map(|(&tier, _)| tier)
            .ok_or_else(|| self.unknown(name, field))
    }

    fn unknown(&self, given: &str, field: &str) -> Problem {
        let known: Vec<_> = self
            .tiers
            .iter()
            .map(|(tier, name)| match name {
                Some(name) => format!("{tier} ({name})"),
                None => tier.to_string(),
            })
            .collect();
        let known = if known.is_empty() {
            "none, there is no HyperNode".into()
        } else {
            known.join(", ")
        };
        problem(
            "UnknownTier",
            field,
            format!("{given}; known tiers: {known}"),
        )
    }
}

/// A `HyperNode` with its direct members found.
struct Found<'a> {
    stored: &'a Stored<HyperNodeSpec>,
    tier: u32,
    tier_name: &'a str,
    /// Nodes, by index.
    nodes: BTreeSet<usize>,
    /// Other `HyperNode`s, by name.
    below: BTreeSet<&'a str>,
}

/// Labels the nodes and says which tiers there are. Cost: members times nodes.
pub(super) fn label(
    store: &Store<HyperNodeSpec>,
    nodes: &mut BTreeMap<String, NodeSpec>,
    complaints: &mut Vec<Complaint>,
) -> Tiers {
    let mut found = BTreeMap::new();
    for ((_, name), stored) in store.iter() {
        let Ok(spec) = &stored.spec else {
            continue;
        };
        match members(spec, stored, store, nodes) {
            Ok(members) => {
                found.insert(name.as_str(), members);
            }
            Err(problem) => {
                complaints.push(Complaint::from_problem(
                    &stored.source,
                    &stored.object,
                    &problem,
                ));
            }
        }
    }
    unfold(&mut found, complaints);
    let mut tiers = Tiers::default();
    // By tier and node the name of the `HyperNode`.
    let mut above: BTreeMap<u32, BTreeMap<usize, &str>> = BTreeMap::new();
    for (name, hypernode) in &found {
        let tier_name = tiers.tiers.entry(hypernode.tier).or_default();
        if tier_name.is_none() && !hypernode.tier_name.is_empty() {
            *tier_name = Some(hypernode.tier_name.into());
        }
        let holders = above.entry(hypernode.tier).or_default();
        let shared = hypernode.nodes.iter().find_map(|node| holders.get(node));
        if let Some(holder) = shared {
            let value = format!("shares a node with {holder}");
            complaints.push(Complaint {
                source: hypernode.stored.source.clone(),
                object: hypernode.stored.object.clone(),
                field: "spec.members".into(),
                value,
                accepted: "one HyperNode of each tier above a node; the first by name counts"
                    .into(),
                severity: Severity::Warning,
            });
        }
        for &node in &hypernode.nodes {
            holders.entry(node).or_insert(name);
        }
    }
    for (index, node) in nodes.values_mut().enumerate() {
        let mut nearest = None;
        for (&tier, holders) in &above {
            nearest = holders.get(&index).copied().or(nearest);
            if let Some(hypernode) = nearest {
                node.labels.insert(tiers.level(tier), hypernode.to_owned());
            }
        }
    }
    tiers
}

/// The direct members.
fn members<'a>(
    spec: &'a HyperNodeSpec,
    stored: &'a Stored<HyperNodeSpec>,
    store: &'a Store<HyperNodeSpec>,
    nodes: &BTreeMap<String, NodeSpec>,
) -> Result<Found<'a>, Problem> {
    let tier = spec.tier.unwrap_or(0);
    let tier = u32::try_from(tier).map_err(|_| {
        problem(
            "InvalidHyperNode",
            "spec.tier",
            format!("{tier}; accepted: 0 to {}", u32::MAX),
        )
    })?;
    let mut found = Found {
        stored,
        tier,
        tier_name: &spec.tier_name,
        nodes: BTreeSet::new(),
        below: BTreeSet::new(),
    };
    for (index, member) in spec.members.iter().enumerate() {
        let field = format!("spec.members[{index}].selector");
        let matches = matcher(&member.selector, &field)?;
        match &*member.kind {
            "Node" => found.nodes.extend(
                nodes
                    .iter()
                    .enumerate()
                    .filter(|(_, (name, node))| matches(name, Some(&node.labels)))
                    .map(|(index, _)| index),
            ),
            "HyperNode" => found.below.extend(
                store
                    .iter()
                    .map(|((_, name), _)| name.as_str())
                    .filter(|name| matches(name, None)),
            ),
            kind => {
                let field = format!("spec.members[{index}].type");
                let message = format!("{kind}; accepted: Node, HyperNode");
                return Err(problem("InvalidHyperNode", field, message));
            }
        }
    }
    Ok(found)
}

type Matcher<'a> = Box<dyn Fn(&str, Option<&BTreeMap<String, String>>) -> bool + 'a>;

/// The test of a selector on a name and, for nodes, labels.
fn matcher<'a>(selector: &'a Selector, field: &str) -> Result<Matcher<'a>, Problem> {
    let refuse = |field: String, message: String| Err(problem("InvalidHyperNode", field, message));
    match (&selector.exact, &selector.regex, &selector.labels) {
        (Some(exact), None, None) => Ok(Box::new(|name, _| name == &*exact.name)),
        (None, Some(regex), None) => match compile(&regex.pattern) {
            Ok(regex) => Ok(Box::new(move |name, _| regex.is_match(name.as_bytes()))),
            Err(error) => {
                let error = error.to_string();
                let reason = error.lines().last().unwrap_or_default();
                let message = format!(
                    "{}; accepted: a regular expression ({reason})",
                    regex.pattern
                );
                refuse(format!("{field}.regexMatch.pattern"), message)
            }
        },
        (None, None, Some(labels)) => {
            let path = FieldPath::root(field);
            let selector = label_selector(labels, &path.name("labelMatch"))?;
            Ok(Box::new(move |_, labels| {
                labels.is_some_and(|labels| selector.matches(labels))
            }))
        }
        _ => {
            let accepted = "accepted: exactly one of exactMatch, regexMatch, labelMatch";
            refuse(field.into(), accepted.into())
        }
    }
}

/// As in Go, `\d` and its like mean ASCII.
fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .unicode(false)
        .size_limit(1 << 20)
        .build()
}

/// Adds to each `HyperNode` the nodes of those below it. Those in a circle, or above one, have no end
/// and are taken out.
fn unfold(found: &mut BTreeMap<&str, Found<'_>>, complaints: &mut Vec<Complaint>) {
    let mut open: Vec<&str> = found.keys().copied().collect();
    loop {
        let is_open = |name: &str| open.binary_search(&name).is_ok();
        let is_ready = |name: &&str| !found[name].below.iter().any(|&below| is_open(below));
        let (ready, rest): (Vec<&str>, Vec<&str>) = open.iter().partition(|name| is_ready(name));
        if ready.is_empty() {
            break;
        }
        for name in ready {
            let below = found[name].below.clone();
            let nodes: BTreeSet<usize> = below
                .iter()
                .filter_map(|below| found.get(below))
                .flat_map(|below| below.nodes.iter().copied())
                .collect();
            if let Some(hypernode) = found.get_mut(name) {
                hypernode.nodes.extend(nodes);
            }
        }
        open = rest;
    }
    for name in open {
        if let Some(hypernode) = found.remove(name) {
            let stored = hypernode.stored;
            let message = "its members go round in a circle; accepted: a tree";
            let problem = problem("CyclicHyperNodes", "spec.members", message);
            complaints.push(Complaint::from_problem(
                &stored.source,
                &stored.object,
                &problem,
            ));
        }
    }
}
