//! Reasons and counterfactuals as one line for people.
//!
//! Data enters as the facts of [`super::reason`] and leaves as text through [`Display`]. Amounts are
//! in people's units (cores, GiB, GPUs), levels go by the last part of their label. A
//! [`Counterfactual`] reads as a clause after "admitted if". Nothing here decides or looks anything
//! up, and machines should read the facts, not these lines.

use alloc::{
    borrow::Cow,
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt::{self, Display, Formatter};

use super::{CardCondition, Cause, Counterfactual, DomainAttempt, NodeCount, Reason, Shortfall};
use crate::{
    cluster::spec::{CardMode, MigInstance},
    request::{CPU, MEMORY, NODE_LEVEL, PODS},
};

/// More causes than this are counted together.
const CAUSES: usize = 4;

const GIB: i64 = 1 << 30;
const MIB: i64 = 1 << 20;

/// The resource word for "members" in a [`Shortfall`].
const MEMBERS: &str = "members";
/// The resource word for memory of cards in a [`Shortfall`]; amounts are bytes.
pub(crate) const CARD_MEMORY: &str = "card memory";
/// The resource word for processor time of cards in a [`Shortfall`]; amounts are thousandths of a card.
pub(crate) const CARD_COMPUTE: &str = "card compute";

/// An amount of a resource in people's units: `4 GPUs`, `2.5 cores`, `64 GiB of memory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount<'a> {
    /// The resource's name.
    pub resource: &'a str,
    /// How much, in the units of [`request`](crate::request).
    pub amount: i64,
}

impl Amount<'_> {
    /// The number alone, with its unit only where the number would mean nothing without: `4`, `2.5`,
    /// `64 GiB`.
    fn number(self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self.resource {
            CPU => decimal(formatter, self.amount, 1000),
            CARD_COMPUTE if self.amount != 0 => write!(formatter, "{}m", self.amount),
            resource if is_bytes(resource) && self.amount != 0 => {
                let (unit, word) = if self.amount.unsigned_abs() >= GIB.unsigned_abs() {
                    (GIB, "GiB")
                } else {
                    (MIB, "MiB")
                };
                decimal(formatter, self.amount, unit)?;
                write!(formatter, " {word}")
            }
            _ => write!(formatter, "{}", self.amount),
        }
    }
}

impl Display for Amount<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.number(formatter)?;
        match self.resource {
            CPU => formatter.write_str(if self.amount == 1000 {
                " core"
            } else {
                " cores"
            }),
            resource if is_bytes(resource) || resource == CARD_COMPUTE => {
                write!(formatter, " of {resource}")
            }
            resource => write!(formatter, " {}", noun(resource, self.amount == 1)),
        }
    }
}

fn is_bytes(resource: &str) -> bool {
    matches!(resource, MEMORY | CARD_MEMORY | "ephemeral-storage")
        || resource.starts_with("hugepages-")
}

/// Writes `amount / unit` with up to two digits after the point, rounded towards zero.
fn decimal(formatter: &mut Formatter<'_>, amount: i64, unit: i64) -> fmt::Result {
    let (unit, size) = (unit.unsigned_abs(), amount.unsigned_abs());
    let sign = if amount < 0 { "-" } else { "" };
    let hundredths = size % unit * 100 / unit;
    write!(formatter, "{sign}{}", size / unit)?;
    match (hundredths / 10, hundredths % 10) {
        (0, 0) => Ok(()),
        (tenths, 0) => write!(formatter, ".{tenths}"),
        (tenths, rest) => write!(formatter, ".{tenths}{rest}"),
    }
}

/// What people call a piece of this resource.
fn noun(resource: &str, one: bool) -> Cow<'_, str> {
    Cow::Borrowed(match (resource, one) {
        (PODS, true) => "pod slot",
        (PODS, false) => "pod slots",
        (MEMBERS, true) => "member",
        ("nodes", true) => "node",
        ("replicas", true) => "replica",
        ("nvidia.com/gpu", true) => "GPU",
        ("nvidia.com/gpu", false) => "GPUs",
        (slices, true) if slices.starts_with("MIG slices") || slices.ends_with(" slices") => {
            return slices.replacen("slices", "slice", 1).into();
        }
        (resource, _) => resource,
    })
}

/// What people call a topology level: the last part of its label, `node` for the host name.
pub fn level_word(label: &str) -> &str {
    if label == NODE_LEVEL {
        return "node";
    }
    label.rsplit('/').next().unwrap_or(label)
}

/// Joins words with commas and a last `or` or `and`.
pub fn join_words<T: ToString>(words: &[T], last: &str) -> String {
    let mut joined = String::new();
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            if index + 1 == words.len() {
                joined.push(' ');
                joined.push_str(last);
                joined.push(' ');
            } else {
                joined.push_str(", ");
            }
        }
        joined.push_str(&word.to_string());
    }
    joined
}

impl Shortfall {
    fn amount(&self, amount: i64) -> Amount<'_> {
        Amount {
            resource: &self.resource,
            amount,
        }
    }

    fn needed(&self) -> Amount<'_> {
        self.amount(self.needed)
    }
}

impl Display for Shortfall {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if self.resource == MEMBERS {
            return write!(formatter, "{} of {} fit", self.free, self.needed());
        }
        write!(formatter, "needs {}, ", self.needed())?;
        self.amount(self.free).number(formatter)?;
        if self.scattered > self.free {
            formatter.write_str(" usable (")?;
            let unusable = self.scattered.saturating_sub(self.free);
            self.amount(unusable).number(formatter)?;
            let more = if self.free > 0 { " more" } else { "" };
            // What can be divided is there in pieces; cards and the like are whole, only too few.
            let pieces = matches!(&*self.resource, CPU | CARD_COMPUTE) || is_bytes(&self.resource);
            let why = if pieces {
                " in pieces too small"
            } else {
                ", not enough together"
            };
            return write!(formatter, "{more} free{why})");
        }
        formatter.write_str(" free")
    }
}

/// `rack r1, fits 2 of 4 members and has 16 cards free`.
impl Display for DomainAttempt {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            level,
            domain,
            fits,
            needed,
            free_cards,
        } = self;
        let level = level_word(level);
        write!(formatter, "{level} {domain}, fits {fits} of {needed}")?;
        write!(
            formatter,
            " {} and has {free_cards} {} free",
            noun(MEMBERS, *needed == 1),
            if *free_cards == 1 { "card" } else { "cards" }
        )
    }
}

/// `3 with too few free GPUs`, `2 with taint maintenance not tolerated`.
impl Display for NodeCount {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            cause,
            resource,
            nodes,
        } = self;
        write!(formatter, "{nodes} ")?;
        match cause {
            Cause::Taint if !resource.is_empty() => {
                write!(formatter, "with taint {resource} not tolerated")
            }
            Cause::NoLevelLabel if !resource.is_empty() => {
                write!(formatter, "outside every {}", level_word(resource))
            }
            Cause::Cards if !resource.is_empty() => {
                write!(formatter, "with too few free {}", noun(resource, false))
            }
            Cause::Resource => write!(formatter, "with too little free {resource}"),
            cause if !resource.is_empty() && cause.is_about_cards() => {
                write!(formatter, "{cause} ({resource})")
            }
            cause => write!(formatter, "{cause}"),
        }
    }
}

impl Display for Reason {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Invalid { problem } if problem.field.is_empty() => {
                formatter.write_str(&problem.message)
            }
            Reason::Invalid { problem } => {
                write!(formatter, "{}: {}", problem.field, problem.message)
            }
            Reason::GroupNotFound { group, elsewhere } => {
                write!(formatter, "its group {group} does not exist")?;
                elsewhere.iter().try_for_each(|namespace| {
                    write!(
                        formatter,
                        " (namespace {namespace} has a group of that name)"
                    )
                })
            }
            Reason::WaitingForMembers {
                present,
                needed,
                gated,
                group,
            } => {
                write!(formatter, "{present} of {needed} needed members ")?;
                if !group.is_empty() {
                    write!(formatter, "of {group} ")?;
                }
                formatter.write_str("are here")?;
                if *gated > 0 {
                    write!(formatter, ", {gated} held by scheduling gates")?;
                }
                Ok(())
            }
            Reason::MinExceedsMembers { min, members } => write!(
                formatter,
                "needs {min} members, but its owner makes only {members}"
            ),
            Reason::DoesNotFit {
                members,
                nodes,
                shortfall,
                causes,
                level,
                best_domain,
            } => does_not_fit(
                formatter,
                (*members, *nodes),
                shortfall.as_ref(),
                causes,
                level.as_deref(),
                best_domain.as_ref(),
            ),
            Reason::WaitsForSibling {
                fits,
                sibling,
                because,
            } => write!(
                formatter,
                "fits on {fits}, waits for sibling {sibling}: {because}"
            ),
            Reason::UnknownLevel { level } => {
                write!(formatter, "no node has the label {level} of its level")
            }
            Reason::WouldDelayReservation { holder, .. } => write!(
                formatter,
                "the room is held back for {holder}, which has waited longer"
            ),
            Reason::WouldTakeNominatedRoom { pods } => {
                let pods = pods.iter().map(|it| format!("{} on {}", it.pod, it.node));
                let pods = join_words(&pods.collect::<Vec<_>>(), "and");
                write!(
                    formatter,
                    "the room is kept for {pods}, which another scheduler nominated"
                )
            }
            Reason::Undecided { steps } => write!(
                formatter,
                "the search stopped after {steps} steps with neither a plan nor a proof"
            ),
            Reason::BindFailed { message, attempts } => {
                let times = if *attempts == 1 { "time" } else { "times" };
                write!(
                    formatter,
                    "binding failed {attempts} {times}, last: {message}"
                )
            }
            Reason::BindRetrying { node, message } => {
                write!(formatter, "binding to {node} is tried again: {message}")
            }
            Reason::TimedOut { after } => {
                write!(formatter, "waited for its schedule timeout of {after}")
            }
            Reason::Surplus { because } => write!(
                formatter,
                "its gang runs without it, and there is no room for more: {because}"
            ),
            Reason::NotTried => formatter.write_str("not tried yet"),
        }
    }
}

fn does_not_fit(
    formatter: &mut Formatter<'_>,
    (members, nodes): (u32, u32),
    shortfall: Option<&Shortfall>,
    causes: &[NodeCount],
    level: Option<&str>,
    best_domain: Option<&DomainAttempt>,
) -> fmt::Result {
    let place = level.map(level_word);
    // That members do not fit in one domain is what the sentence about the level says.
    let named = shortfall.filter(|shortfall| place.is_none() || shortfall.resource != MEMBERS);
    // What cards are like keeps the member out, not how many are free.
    let unlike = causes
        .iter()
        .any(|count| count.cause.is_about_kinds_of_cards());
    match (named, place) {
        (Some(shortfall), None) if unlike => write!(formatter, "needs {}", shortfall.needed())?,
        // What is free in all does not matter when it has to be in one domain.
        (Some(shortfall), Some(_)) => write!(formatter, "needs {}", shortfall.needed())?,
        (Some(shortfall), None) => write!(formatter, "{shortfall}")?,
        (None, _) if nodes == 0 => formatter.write_str("there are no nodes")?,
        (None, _) => {
            let noun = noun(MEMBERS, members == 1);
            write!(formatter, "no place for {members} {noun}")?;
            if members > 1 {
                formatter.write_str(" together")?;
            }
        }
    }
    if let Some(place) = place {
        write!(formatter, " in one {place}")?;
    }
    if let Some(best) = best_domain {
        write!(formatter, "; the best, {best}")?;
    }
    // A resource that is short says it all; without one the causes are the next best thing.
    let says_all = !unlike && shortfall.is_some_and(|shortfall| shortfall.resource != MEMBERS);
    if !says_all && best_domain.is_none() && !causes.is_empty() {
        let rest = causes.get(CAUSES..).unwrap_or_default();
        let rest: u32 = rest.iter().map(|count| count.nodes).sum();
        let mut causes: Vec<String> = causes.iter().map(ToString::to_string).collect();
        causes.truncate(CAUSES);
        if rest > 0 {
            causes.push(format!("{rest} for other reasons"));
        }
        write!(
            formatter,
            "; of {nodes} {}: {}",
            noun("nodes", nodes == 1),
            causes.join(", ")
        )?;
    }
    Ok(())
}

/// `2 3g.40gb, 1 1g.10gb`: how many of each, in the order in which they are listed.
fn instance_words(instances: &[MigInstance]) -> String {
    let mut words: Vec<(&str, usize)> = Vec::new();
    for instance in instances {
        match words
            .iter_mut()
            .find(|(profile, _)| *profile == instance.profile)
        {
            Some((_, count)) => *count += 1,
            None => words.push((&instance.profile, 1)),
        }
    }
    let words: Vec<String> = words
        .into_iter()
        .map(|(profile, count)| format!("{count} {profile}"))
        .collect();
    words.join(", ")
}

/// A clause that follows "admitted if": `3 more GPUs appear`, `default/a ends`.
impl Display for Counterfactual {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Counterfactual::MoreCards {
                kind,
                model,
                count,
                domain,
                nodes,
                mode,
                near,
            } => {
                let one = *count == 1;
                let card = if model.is_empty() { kind } else { model };
                write!(formatter, "{count} more {} ", noun(card, one))?;
                if let CardMode::MigStatic(instances) = mode {
                    write!(
                        formatter,
                        "in MIG instances ({}) ",
                        instance_words(instances)
                    )?;
                }
                if !near.is_empty() {
                    write!(formatter, "near each other ({near}) ")?;
                }
                formatter.write_str(if one { "appears" } else { "appear" })?;
                let (place, value) = match domain.as_deref().map(|domain| domain.split_once('=')) {
                    Some(Some((NODE_LEVEL, node))) => return write!(formatter, " on node {node}"),
                    Some(Some((level, value))) => (level_word(level), value),
                    Some(None) | None => ("", ""),
                };
                match nodes {
                    1 => formatter.write_str(" on a new node")?,
                    _ => write!(formatter, " on {nodes} new nodes")?,
                }
                if place.is_empty() {
                    return Ok(());
                }
                write!(formatter, " in {place} {value}")
            }
            Counterfactual::AllocatableCards { node, kind, count } => {
                let one = *count == 1;
                let (card, verb) = (noun(kind, one), if one { "becomes" } else { "become" });
                write!(
                    formatter,
                    "{count} more {card} of node {node} {verb} allocatable"
                )
            }
            Counterfactual::LayoutSettled { node } => {
                write!(
                    formatter,
                    "the MIG layout of node {node} is no longer being changed"
                )
            }
            Counterfactual::HealthyCards { node, cards } => {
                let (word, are) = match cards.as_slice() {
                    [_] => ("card", "is"),
                    _ => ("cards", "are"),
                };
                let cards = join_words(cards, "and");
                write!(
                    formatter,
                    "{word} {cards} of node {node} {are} healthy again"
                )
            }
            Counterfactual::CardMode { node, mode } => {
                write!(formatter, "the cards of node {node} are given ")?;
                formatter.write_str(match mode {
                    CardMode::Whole => "whole",
                    CardMode::Shared => "in shares (shared)",
                    CardMode::Replicas(_) => "in replicas",
                    CardMode::MigStatic(_) => "in MIG instances that exist (mig-static)",
                    CardMode::MigDynamic => "in MIG instances (mig-dynamic)",
                })
            }
            Counterfactual::DropCondition { condition, value } => match condition {
                CardCondition::Near => write!(formatter, "its cards need no {value}"),
                CardCondition::Models | CardCondition::Ids => {
                    write!(formatter, "it takes cards other than {value}")
                }
                CardCondition::Memory => write!(formatter, "its cards need not have {value}"),
                CardCondition::Apart => {
                    write!(
                        formatter,
                        "its parts may lie on any cards, not only on {value}"
                    )
                }
                CardCondition::ShareGroup => {
                    let group = value.rsplit('/').next().unwrap_or(value);
                    write!(formatter, "it leaves its share group {group}")
                }
                CardCondition::Exclusive => formatter.write_str("it shares its cards with others"),
            },
            Counterfactual::Untaint { node, taint } if taint.ends_with("/not-ready") => {
                write!(formatter, "node {node} is ready")
            }
            Counterfactual::Untaint { node, taint } => {
                write!(formatter, "the taint {taint} of node {node} is tolerated")
            }
            Counterfactual::RelaxLevel { group, from, to } => {
                if group.is_empty() {
                    formatter.write_str("its")?;
                } else {
                    write!(formatter, "the")?;
                }
                write!(formatter, " required level")?;
                if !group.is_empty() {
                    write!(formatter, " of {group}")?;
                }
                match to {
                    Some(to) => write!(
                        formatter,
                        " drops from {} to {}",
                        level_word(from),
                        level_word(to)
                    ),
                    None => write!(formatter, " ({}) is dropped", level_word(from)),
                }
            }
            Counterfactual::FewerMembers { fewer, min } => write!(
                formatter,
                "its minimum drops from {} to {min}",
                min.saturating_add(*fewer)
            ),
            Counterfactual::Uncordon { node } => write!(formatter, "node {node} is uncordoned"),
            // The single pods are facts for those who ask for more than a line.
            Counterfactual::Departure { gangs, pods: _ } => {
                let end = if gangs.len() == 1 { "ends" } else { "end" };
                write!(formatter, "{} {end}", join_words(gangs, "and"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::{boxed::Box, vec};

    use super::*;
    use crate::{explain::NominatedPod, gang::Problem, units::Nanos};

    fn shown(resource: &str, amount: i64) -> String {
        Amount { resource, amount }.to_string()
    }

    fn shortfall(resource: &str, needed: i64, free: i64) -> Shortfall {
        let resource = resource.into();
        Shortfall {
            resource,
            needed,
            free,
            scattered: free,
        }
    }

    fn does_not_fit(shortfall: Option<Shortfall>, level: Option<&str>) -> Reason {
        Reason::DoesNotFit {
            members: 4,
            nodes: 5,
            shortfall,
            causes: vec![
                NodeCount {
                    cause: Cause::Cards,
                    resource: "nvidia.com/gpu".into(),
                    nodes: 3,
                },
                NodeCount {
                    cause: Cause::Taint,
                    resource: "maintenance".into(),
                    nodes: 2,
                },
            ],
            level: level.map(Into::into),
            best_domain: level.map(|level| DomainAttempt {
                level: level.into(),
                domain: "n3".into(),
                fits: 1,
                needed: 4,
                free_cards: 1,
            }),
        }
    }

    #[test]
    fn amounts_are_in_units_that_people_use() {
        assert_eq!(shown("nvidia.com/gpu", 1), "1 GPU");
        assert_eq!(shown("amd.com/gpu", 4), "4 amd.com/gpu");
        assert_eq!(shown("rdma/hca", 2), "2 rdma/hca");
        assert_eq!(shown("cpu", 1000), "1 core");
        assert_eq!(shown("cpu", 2500), "2.5 cores");
        assert_eq!(shown("cpu", 50), "0.05 cores");
        assert_eq!(shown("cpu", -1500), "-1.5 cores");
        assert_eq!(shown("memory", 64 << 30), "64 GiB of memory");
        assert_eq!(shown("memory", 512 << 20), "512 MiB of memory");
        assert_eq!(shown("pods", 1), "1 pod slot");
        assert_eq!(shown("replicas", 1), "1 replica");
        assert_eq!(shown("1g.10gb slices", 1), "1 1g.10gb slice");
        assert_eq!(shown("1g.10gb slices", 2), "2 1g.10gb slices");
        assert_eq!(shown("MIG slices of 20 GiB", 1), "1 MIG slice of 20 GiB");
        assert_eq!(shown("MIG slices of 20 GiB", 3), "3 MIG slices of 20 GiB");
        assert_eq!(shown(CARD_COMPUTE, 400), "400m of card compute");
        assert_eq!(shown(CARD_COMPUTE, 0), "0 of card compute");
        assert_eq!(shown(CARD_MEMORY, 3 << 29), "1.5 GiB of card memory");
        assert_eq!(
            shown("memory", i64::MIN),
            "-8589934592 GiB of memory",
            "no overflow at the edge"
        );
    }

    #[test]
    fn a_shortfall_is_told_in_five_words() {
        let reason = does_not_fit(Some(shortfall("nvidia.com/gpu", 4, 1)), None);
        assert_eq!(reason.to_string(), "needs 4 GPUs, 1 free");
        let none = shortfall("memory", 512 << 30, 0);
        assert_eq!(none.to_string(), "needs 512 GiB of memory, 0 free");
        let memory = shortfall("memory", 512 << 30, 100 << 30);
        assert_eq!(memory.to_string(), "needs 512 GiB of memory, 100 GiB free");
        assert_eq!(shortfall("members", 4, 3).to_string(), "3 of 4 members fit");
        let scattered = Shortfall {
            scattered: 8,
            ..shortfall("nvidia.com/gpu", 8, 0)
        };
        assert_eq!(
            scattered.to_string(),
            "needs 8 GPUs, 0 usable (8 free, not enough together)"
        );
        let scattered = Shortfall {
            scattered: 5 << 30,
            ..shortfall(CARD_MEMORY, 8 << 30, 4 << 30)
        };
        assert_eq!(
            scattered.to_string(),
            "needs 8 GiB of card memory, 4 GiB usable (1 GiB more free in pieces too small)"
        );
    }

    #[test]
    fn a_level_that_binds_is_named_with_its_best_domain() {
        let reason = does_not_fit(
            Some(shortfall("nvidia.com/gpu", 4, 1)),
            Some("kubernetes.io/hostname"),
        );
        assert_eq!(
            reason.to_string(),
            "needs 4 GPUs in one node; the best, node n3, fits 1 of 4 members and has 1 card free"
        );
    }

    #[test]
    fn without_a_shortfall_the_causes_are_counted() {
        assert_eq!(
            does_not_fit(None, None).to_string(),
            "no place for 4 members together; of 5 nodes: 3 with too few free GPUs, \
             2 with taint maintenance not tolerated"
        );
    }

    #[test]
    fn a_long_list_of_causes_ends_with_a_count() {
        let causes = ["A30", "H100", "H200", "B200", "L4", "T4"].map(|model| NodeCount {
            cause: Cause::CardModel,
            resource: model.into(),
            nodes: 2,
        });
        let reason = Reason::DoesNotFit {
            members: 1,
            nodes: 12,
            shortfall: None,
            causes: causes.into(),
            level: None,
            best_domain: None,
        };
        let line = reason.to_string();
        assert!(
            line.ends_with("(H200), 2 with cards of another model (B200), 4 for other reasons")
        );
    }

    #[test]
    fn other_reasons_read_as_sentences() {
        let cases: [(Reason, &str); 11] = [
            (
                Reason::Invalid {
                    problem: Problem {
                        code: "InvalidMinimum".into(),
                        field: "spec.minMember".into(),
                        message: "-1 is below 0".into(),
                    },
                },
                "spec.minMember: -1 is below 0",
            ),
            (
                Reason::GroupNotFound {
                    group: "default/g".into(),
                    elsewhere: Some("prod".into()),
                },
                "its group default/g does not exist (namespace prod has a group of that name)",
            ),
            (
                Reason::WaitingForMembers {
                    present: 3,
                    needed: 4,
                    gated: 1,
                    group: String::new(),
                },
                "3 of 4 needed members are here, 1 held by scheduling gates",
            ),
            (
                Reason::MinExceedsMembers { min: 6, members: 4 },
                "needs 6 members, but its owner makes only 4",
            ),
            (
                Reason::WaitsForSibling {
                    fits: "n1".into(),
                    sibling: "t1".into(),
                    because: Box::new(does_not_fit(Some(shortfall("cpu", 16_000, 4_000)), None)),
                },
                "fits on n1, waits for sibling t1: needs 16 cores, 4 free",
            ),
            (
                Reason::WouldDelayReservation {
                    holder: "default/large".into(),
                    starts: Some(Nanos::from_secs(600)),
                },
                "the room is held back for default/large, which has waited longer",
            ),
            (
                Reason::WouldTakeNominatedRoom {
                    pods: ["web/a", "web/b"]
                        .map(|pod| NominatedPod {
                            pod: pod.into(),
                            node: "n1".into(),
                        })
                        .into(),
                },
                "the room is kept for web/a on n1 and web/b on n1, which another scheduler \
                 nominated",
            ),
            (
                Reason::BindFailed {
                    message: "denied by policy".into(),
                    attempts: 2,
                },
                "binding failed 2 times, last: denied by policy",
            ),
            (
                Reason::BindRetrying {
                    node: "n1".into(),
                    message: "etcd has no leader".into(),
                },
                "binding to n1 is tried again: etcd has no leader",
            ),
            (
                Reason::TimedOut {
                    after: Nanos::from_secs(90),
                },
                "waited for its schedule timeout of 1m30s",
            ),
            (Reason::NotTried, "not tried yet"),
        ];
        for (reason, line) in cases {
            assert_eq!(reason.to_string(), line);
        }
    }

    #[test]
    fn counterfactuals_follow_admitted_if() {
        let more = |count, domain: Option<&str>, nodes| Counterfactual::MoreCards {
            kind: "nvidia.com/gpu".into(),
            model: String::new(),
            count,
            domain: domain.map(Into::into),
            nodes,
            mode: CardMode::Whole,
            near: String::new(),
        };
        let departure = |gangs: &[&str], pods: &[&str]| Counterfactual::Departure {
            gangs: gangs.iter().map(|&gang| gang.into()).collect(),
            pods: pods.iter().map(|&pod| pod.into()).collect(),
        };
        let instance = |profile: &str, start| MigInstance {
            profile: profile.into(),
            start,
        };
        let relax = |group: &str, to: Option<&str>| Counterfactual::RelaxLevel {
            group: group.into(),
            from: "example.com/rack".into(),
            to: to.map(Into::into),
        };
        let cases = [
            (more(3, None, 1), "3 more GPUs appear on a new node"),
            (more(9, None, 2), "9 more GPUs appear on 2 new nodes"),
            (
                more(3, Some("kubernetes.io/hostname=n1"), 0),
                "3 more GPUs appear on node n1",
            ),
            (
                more(1, Some("example.com/rack=r1"), 1),
                "1 more GPU appears on a new node in rack r1",
            ),
            (
                Counterfactual::MoreCards {
                    kind: "nvidia.com/gpu".into(),
                    model: String::new(),
                    count: 8,
                    domain: None,
                    nodes: 1,
                    mode: CardMode::Whole,
                    near: "nvlink-island".into(),
                },
                "8 more GPUs near each other (nvlink-island) appear on a new node",
            ),
            (
                Counterfactual::AllocatableCards {
                    node: "n1".into(),
                    kind: "nvidia.com/gpu".into(),
                    count: 3,
                },
                "3 more GPUs of node n1 become allocatable",
            ),
            (
                Counterfactual::LayoutSettled { node: "n1".into() },
                "the MIG layout of node n1 is no longer being changed",
            ),
            (
                relax("", Some("example.com/block")),
                "its required level drops from rack to block",
            ),
            (
                relax("workers", None),
                "the required level of workers (rack) is dropped",
            ),
            (
                Counterfactual::FewerMembers { fewer: 2, min: 4 },
                "its minimum drops from 6 to 4",
            ),
            (
                Counterfactual::Uncordon { node: "n7".into() },
                "node n7 is uncordoned",
            ),
            (
                Counterfactual::MoreCards {
                    kind: "nvidia.com/gpu".into(),
                    model: "A100-80GB".into(),
                    count: 1,
                    domain: Some("kubernetes.io/hostname=n1".into()),
                    nodes: 0,
                    mode: CardMode::MigStatic(vec![
                        instance("3g.40gb", 0),
                        instance("3g.40gb", 4),
                        instance("1g.10gb", 3),
                    ]),
                    near: String::new(),
                },
                "1 more A100-80GB in MIG instances (2 3g.40gb, 1 1g.10gb) appears on node n1",
            ),
            (
                Counterfactual::HealthyCards {
                    node: "n1".into(),
                    cards: vec![0],
                },
                "card 0 of node n1 is healthy again",
            ),
            (
                Counterfactual::HealthyCards {
                    node: "n1".into(),
                    cards: vec![0, 3, 4],
                },
                "cards 0, 3 and 4 of node n1 are healthy again",
            ),
            (
                Counterfactual::CardMode {
                    node: "n1".into(),
                    mode: CardMode::Shared,
                },
                "the cards of node n1 are given in shares (shared)",
            ),
            (
                Counterfactual::DropCondition {
                    condition: CardCondition::Near,
                    value: "nvlink-island".into(),
                },
                "its cards need no nvlink-island",
            ),
            (
                Counterfactual::DropCondition {
                    condition: CardCondition::Apart,
                    value: "distinct cards".into(),
                },
                "its parts may lie on any cards, not only on distinct cards",
            ),
            (
                Counterfactual::Untaint {
                    node: "n1".into(),
                    taint: "gpu".into(),
                },
                "the taint gpu of node n1 is tolerated",
            ),
            (
                Counterfactual::Untaint {
                    node: "n1".into(),
                    taint: "node.kubernetes.io/not-ready".into(),
                },
                "node n1 is ready",
            ),
            (departure(&["default/a"], &[]), "default/a ends"),
            (departure(&["default/a"], &["a-0", "a-1"]), "default/a ends"),
            (
                departure(&["default/a", "default/b"], &[]),
                "default/a and default/b end",
            ),
        ];
        for (change, clause) in cases {
            assert_eq!(change.to_string(), clause);
        }
    }

    #[test]
    fn words_are_joined_as_in_a_sentence() {
        assert_eq!(join_words::<&str>(&[], "or"), "");
        assert_eq!(join_words(&["a"], "or"), "a");
        assert_eq!(join_words(&["a", "b"], "or"), "a or b");
        assert_eq!(
            format!("{}", join_words(&["a", "b", "c"], "and")),
            "a, b and c"
        );
    }
}
