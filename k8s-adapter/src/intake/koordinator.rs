//! Koordinator's gangs that pods alone describe.
//!
//! Pods name their gang by an annotation `gang.scheduling.koordinator.sh/name` (or a label of its first
//! days) and say its minimum beside it; no object tells of it. Several gangs may name each other in
//! `.../groups`: they start together or not at all, so they are one gang here with each of them as a
//! role. That holds within one namespace; a bundle across namespaces waits with that reason. What the
//! oldest pod says counts. `.../mode` decides nothing: nothing is held for a gang that does not fit.
//! Pods with the label of a scheduler-plugins `PodGroup`, which Koordinator reads first, are of that; what
//! its annotations on such an object say counts there ([`on_pod_group`]).

use std::collections::{BTreeMap, BTreeSet};

use gangline::{
    gang::{GangKey, GangSpec, LossMode, Problem},
    units::Nanos,
};

use super::{
    Dialect, GroupKey, Link, Member, Roster, Said, Surroundings, roles, said_count,
    scheduler_plugins,
    store::{self, Name, Stored},
};
use crate::{api::Pod, problem::problem, rules};

const SOURCE: &str = "koordinator";
const NAME: &str = "gang.scheduling.koordinator.sh/name";
const MIN: &str = "gang.scheduling.koordinator.sh/min-available";
const WAIT: &str = "gang.scheduling.koordinator.sh/waiting-time";
const GROUPS: &str = "gang.scheduling.koordinator.sh/groups";
const MATCH: &str = "gang.scheduling.koordinator.sh/match-policy";
const NAME_LABEL: &str = "pod-group.scheduling.sigs.k8s.io/name";
/// What labels of its first days said, and the annotations that go before them.
const LABELS: [(&str, &str); 2] = [
    ("pod-group.scheduling.sigs.k8s.io/min-available", MIN),
    ("pod-group.scheduling.sigs.k8s.io/match-policy", MATCH),
];
const MODE: &str = "gang.scheduling.koordinator.sh/mode";
const TOTAL: &str = "gang.scheduling.koordinator.sh/total-number";
const NETWORK: &str = "gang.scheduling.koordinator.sh/network-topology-spec";
/// The annotations that count on a `PodGroup` of scheduler-plugins.
pub(super) const OF_GROUPS: [&str; 7] = [MIN, WAIT, GROUPS, MATCH, MODE, TOTAL, NETWORK];
const DEFAULT_WAIT: Nanos = Nanos::from_secs(600);

/// The dialect.
#[derive(Debug, Default)]
pub(super) struct Koordinator;

impl Dialect for Koordinator {
    fn group_keys(&self) -> &'static [GroupKey] {
        const KEYS: [GroupKey; 2] = [GroupKey::Label(NAME_LABEL), GroupKey::Annotation(NAME)];
        &KEYS
    }

    fn link(&self, pod: &Pod) -> Option<Link> {
        let metadata = &pod.metadata;
        if metadata.labels.contains_key(scheduler_plugins::LABEL) {
            return None;
        }
        let label = metadata.labels.get(NAME_LABEL);
        let label = label.map(|name| {
            (
                name,
                "metadata.labels[pod-group.scheduling.sigs.k8s.io/name]",
            )
        });
        let field = "metadata.annotations[gang.scheduling.koordinator.sh/name]";
        let annotation = metadata.annotations.get(NAME).map(|name| (name, field));
        let named = label.or(annotation);
        let (name, field) = named.filter(|(name, _)| !name.is_empty())?;
        let mut said = Said::of(pod, OF_GROUPS);
        for (label, key) in LABELS {
            if let Some(word) = metadata.labels.get(label)
                && said.word(key).is_none()
            {
                said.keep(key, word);
            }
        }
        Some(Link {
            said: Some(Box::new(said)),
            ..Link::named(pod, SOURCE, name, field)
        })
    }

    fn depends_on_others(&self, group: &GangKey) -> bool {
        // Gangs that name each other are one.
        group.source == SOURCE
    }

    fn gangs(&self, roster: &mut Roster<'_>, around: &mut Surroundings<'_>) -> Vec<GangSpec> {
        let mut gangs = BTreeMap::new();
        for (key, members) in roster.iter().filter(|(key, _)| key.source == SOURCE) {
            let name = (key.namespace.clone(), key.name.clone());
            if let Some(gang) = Gang::of(&name, members, around) {
                gangs.insert(name, gang);
            }
        }
        // Each bundle once, by its namespace and all its names: they may be many.
        let mut bundles: BTreeMap<(&str, BTreeSet<&str>), Vec<&Name>> = BTreeMap::new();
        let mut specs = Vec::new();
        let mut refuse = |name: &Name, gang: &Gang, problem: Problem| {
            around.refuse(&gang.stored, &problem);
            gang.stored.invalid(name, SOURCE, problem)
        };
        for (name, gang) in &gangs {
            match &gang.groups {
                Ok(groups) => {
                    let all = groups
                        .iter()
                        .map(|other| &**other)
                        .chain([&*name.1])
                        .collect();
                    bundles.entry((&name.0, all)).or_default().push(name);
                }
                Err(problem) => specs.push(refuse(name, gang, problem.clone())),
            }
        }
        for ((namespace, names), told) in &bundles {
            let bundle: Vec<Name> = names
                .iter()
                .map(|name| ((*namespace).to_owned(), (*name).to_owned()))
                .collect();
            let other = bundle
                .iter()
                .find(|name| gangs.contains_key(name) && told.binary_search(name).is_err());
            let built = match other {
                Some((_, other)) => {
                    let message = format!("{other} says otherwise; accepted: the same on all");
                    Err(groups_problem(message))
                }
                None => build(&bundle, &gangs, roster),
            };
            match built {
                Ok(spec) => specs.extend(spec),
                Err(problem) => {
                    let told = told
                        .iter()
                        .filter_map(|name| Some((*name, gangs.get(*name)?)));
                    specs.extend(told.map(|(name, gang)| refuse(name, gang, problem.clone())));
                }
            }
        }
        specs.sort_by(|one, other| one.key.cmp(&other.key));
        specs
    }
}

/// One gang, as its pods describe it.
struct Gang {
    stored: Stored<()>,
    min: Result<u32, Problem>,
    /// The names of those that it starts with, in its namespace; none without such.
    groups: Result<BTreeSet<String>, Problem>,
    wait: Nanos,
    on_loss: LossMode,
    priority: i32,
}

impl Gang {
    fn of(name: &Name, members: &[&mut Member], around: &mut Surroundings<'_>) -> Option<Self> {
        let stored = store::unwritten("Koordinator gang", name, members)?;
        let min = around.agreed(members, MIN, &stored);
        let groups = around.agreed(members, GROUPS, &stored);
        let wait = around.agreed(members, WAIT, &stored);
        let policy = around.agreed(members, MATCH, &stored);
        let network = around.agreed(members, NETWORK, &stored);
        let mut words = Words {
            stored: &stored,
            around,
        };
        let wait = wait.and_then(|wait| words.wait(&wait));
        let on_loss = policy.and_then(|policy| words.on_loss(&policy));
        words.network(network.as_deref());
        Some(Self {
            min: said_count(min.as_deref(), MIN),
            groups: groups.map_or(Ok(BTreeSet::new()), |groups| names(&name.0, &groups)),
            wait: wait.unwrap_or(DEFAULT_WAIT),
            on_loss: on_loss.unwrap_or(LossMode::Once),
            priority: around.priority(None, "", members, &stored),
            stored,
        })
    }
}

/// Reads single words; what cannot be read is named.
struct Words<'a, 'b, S> {
    stored: &'a Stored<S>,
    around: &'a mut Surroundings<'b>,
}

impl<S> Words<'_, '_, S> {
    fn warn(&mut self, key: &str, value: &str, accepted: &str) {
        let field = format!("metadata.annotations[{key}]");
        self.around.warn(self.stored, &field, value, accepted);
    }

    fn wait(&mut self, word: &str) -> Option<Nanos> {
        let wait = rules::parse_duration(word);
        if wait.is_none() {
            let accepted = "a duration above 0 such as 600s; the default is used";
            self.warn(WAIT, word, accepted);
        }
        wait
    }

    fn on_loss(&mut self, word: &str) -> Option<LossMode> {
        match word {
            "" => None,
            "once-satisfied" => Some(LossMode::Once),
            "waiting-and-running" => Some(LossMode::Strict),
            "only-waiting" => Some(LossMode::WaitingOnly),
            other => {
                let accepted = "once-satisfied, which is used, waiting-and-running, only-waiting";
                self.warn(MATCH, other, accepted);
                None
            }
        }
    }

    /// Its layers are names of Koordinator's own, which no node label tells.
    fn network(&mut self, word: Option<&str>) {
        if let Some(word) = word.filter(|word| !word.is_empty()) {
            let shown: String = word.chars().take(100).collect();
            let accepted =
                "none; how close pods must be is said by other groups, such as a native PodGroup";
            self.warn(NETWORK, &shown, accepted);
        }
    }
}

/// The gang of a `PodGroup` of scheduler-plugins as Koordinator's annotations on it change it: they go
/// before its fields. A bundle of several `PodGroup`s is not made: its gangs wait with that reason.
pub(super) fn on_pod_group<S>(
    gang: GangSpec,
    stored: &Stored<S>,
    around: &mut Surroundings<'_>,
) -> Result<GangSpec, Problem> {
    let word = |key: &str| stored.said.word(key).filter(|word| !word.is_empty());
    let mut gang = gang;
    let name = gang.key.name.clone();
    if let Some(min) = word(MIN) {
        gang.root = store::role(&name, said_count(Some(min), MIN)?);
    }
    if let Some(groups) = word(GROUPS) {
        let others = names(&gang.key.namespace, groups)?;
        if let Some(other) = others.iter().find(|other| **other != name) {
            let accepted =
                "accepted: the group itself; gangs that pods name by annotations start together";
            return Err(groups_problem(format!("{other}; {accepted}")));
        }
    }
    let mut words = Words { stored, around };
    if let Some(wait) = word(WAIT).and_then(|wait| words.wait(wait)) {
        gang.schedule_timeout = Some(wait);
    }
    if let Some(on_loss) = word(MATCH).and_then(|policy| words.on_loss(policy)) {
        gang.on_loss = on_loss;
    }
    // Neither decides anything here: nothing is held for a gang that does not fit.
    if let Some(mode) = word(MODE).filter(|mode| !["Strict", "NonStrict"].contains(mode)) {
        words.warn(MODE, mode, "Strict, NonStrict; both are the same here");
    }
    if let Some(total) = word(TOTAL).filter(|total| said_count(Some(total), TOTAL).is_err()) {
        words.warn(TOTAL, total, "a number from 1; it decides nothing here");
    }
    words.network(word(NETWORK));
    Ok(gang)
}

fn groups_problem(message: String) -> Problem {
    problem(
        "InvalidGangGroup",
        format!("metadata.annotations[{GROUPS}]"),
        message,
    )
}

/// The names in a list of `namespace/gang`.
fn names(namespace: &str, text: &str) -> Result<BTreeSet<String>, Problem> {
    let listed: Vec<String> = serde_json::from_str(text).map_err(|_| {
        let accepted = "accepted: a list in JSON such as [\"namespace/gang\"]";
        groups_problem(format!("not readable; {accepted}"))
    })?;
    let names = listed.iter().map(|gang| match gang.split_once('/') {
        Some((of, name)) if of == namespace && !name.is_empty() => Ok(name.to_owned()),
        _ => {
            let message = format!("{gang:?}; accepted: {namespace}/NAME, in one namespace");
            Err(groups_problem(message))
        }
    });
    names.collect()
}

/// The gangs of a bundle as one, or none where its only pods stand alone. Gives members their roles.
fn build(
    bundle: &[Name],
    gangs: &BTreeMap<Name, Gang>,
    roster: &mut Roster<'_>,
) -> Result<Option<GangSpec>, Problem> {
    let there = || bundle.iter().filter_map(|name| gangs.get(name));
    let oldest = there().min_by_key(|gang| (gang.stored.created, gang.stored.uid));
    let (Some(oldest), Some(first)) = (oldest, bundle.first()) else {
        return Ok(None);
    };
    let mut minima = roles::Minima::new();
    for name in bundle {
        // One whose pods are not there yet is waited for.
        let min = gangs.get(name).map_or(Ok(1), |gang| gang.min.clone())?;
        minima.insert(name.1.clone(), min);
    }
    let least = roles::sum(&minima);
    let key = store::key(first, SOURCE);
    for name in bundle {
        let members = roster.get_mut(&store::key(name, SOURCE)).into_iter();
        for member in members.flatten() {
            member.spec.gang = Some(key.clone()).filter(|_| least > 1);
            member.spec.role = if bundle.len() > 1 {
                name.1.clone()
            } else {
                String::new()
            };
        }
    }
    if least <= 1 {
        return Ok(None);
    }
    let root = if let [_] = bundle {
        store::role(
            &first.1,
            gangs.get(first).map_or(Ok(1), |gang| gang.min.clone())?,
        )
    } else {
        let leaves = minima.iter().map(|(name, &min)| store::role(name, min));
        roles::all_of(format!("ganggroup/{}", first.1), leaves.collect(), least)
    };
    Ok(Some(GangSpec {
        priority: there().map(|gang| gang.priority).max().unwrap_or(0),
        schedule_timeout: there().map(|gang| gang.wait).max(),
        on_loss: oldest.on_loss,
        ..oldest.stored.gang(first, SOURCE, root)
    }))
}

#[cfg(test)]
mod tests {
    use gangline::{gang::LossMode, units::Nanos};

    use crate::intake::testing::{pod, world};

    fn member(name: &str, gang: &str, more: &str) -> String {
        pod(
            name,
            &format!("annotations: {{gang.scheduling.koordinator.sh/name: {gang}{more}}}"),
        )
    }

    fn word(key: &str, value: &str) -> String {
        format!(", gang.scheduling.koordinator.sh/{key}: '{value}'")
    }

    fn two() -> String {
        word("min-available", "2")
    }

    #[test]
    fn pods_of_one_name_are_a_gang_that_waits_ten_minutes() {
        let gang = world(&[member("a", "g", &two()), member("b", "g", &two())].concat());
        assert_eq!(gang.trees(), ["koordinator/g: g>=2"]);
        assert_eq!(gang.links(), ["a: koordinator/g ", "b: koordinator/g "]);
        let spec = gang.gang("g");
        assert_eq!(spec.schedule_timeout, Some(Nanos::from_secs(600)));
        assert_eq!((spec.on_loss, spec.priority), (LossMode::Once, 5));
        assert!(gang.complaints.is_empty(), "{:?}", gang.complaint_lines());
    }

    #[test]
    fn labels_of_the_first_days_say_the_same() {
        let labels = "labels: {pod-group.scheduling.sigs.k8s.io/name: g, \
                      pod-group.scheduling.sigs.k8s.io/min-available: '3'}";
        assert_eq!(world(&pod("a", labels)).trees(), ["koordinator/g: g>=3"]);
        let own = labels.replace("{pod", "{scheduling.x-k8s.io/pod-group: s, pod");
        assert_eq!(world(&pod("a", &own)).links(), ["a: scheduler-plugins/s "]);
    }

    #[test]
    fn waiting_time_and_match_policy_are_taken_over_or_named() {
        let gang = |more: &str| world(&member("a", "g", &(two() + more)));
        let wait = |more: &str| gang(more).gang("g").schedule_timeout;
        assert_eq!(
            wait(&word("waiting-time", "1h30m")),
            Some(Nanos::from_secs(5400))
        );
        assert_eq!(
            wait(&word("waiting-time", "soon")),
            Some(Nanos::from_secs(600))
        );
        let policy = |policy: &str| gang(&word("match-policy", policy)).gang("g").on_loss;
        assert_eq!(policy("waiting-and-running"), LossMode::Strict);
        assert_eq!(policy("only-waiting"), LossMode::WaitingOnly);
        assert_eq!(policy("once-satisfied"), LossMode::Once);
        let wrong = gang(&(word("match-policy", "always") + &word("waiting-time", "0s")));
        assert_eq!(wrong.complaint_lines().len(), 2);
    }

    #[test]
    fn gangs_that_name_each_other_start_as_one() {
        let groups = word("groups", "[\"ml/ps\", \"ml/worker\"]");
        let (ps, worker) = (word("min-available", "1"), word("min-available", "4"));
        let both = [
            member("p", "ps", &(ps.clone() + &groups)),
            member("w", "worker", &(worker + &groups)),
        ];
        let both = world(&both.concat());
        assert_eq!(
            both.trees(),
            ["koordinator/ps: ganggroup/ps[>=5: ps>=1, worker>=4]"]
        );
        assert_eq!(
            both.links(),
            ["p: koordinator/ps ps", "w: koordinator/ps worker"]
        );
        let one = world(&member("p", "ps", &(ps + &groups)));
        assert_eq!(
            one.trees(),
            ["koordinator/ps: ganggroup/ps[>=2: ps>=1, worker>=1]"],
            "the other one is waited for"
        );
    }

    #[test]
    fn bundles_that_cannot_be_honoured_wait_with_the_reason() {
        for groups in ["[\"ml/a\", \"other/b\"]", "a, b", "[\"b\"]", "[1]"] {
            let world = world(&member("x", "a", &(two() + &word("groups", groups))));
            assert_eq!(
                world.trees(),
                ["koordinator/a: a>=1 !InvalidGangGroup"],
                "{groups}"
            );
            assert_eq!(world.complaint_lines().len(), 1, "{groups}");
        }
        let names = two() + &word("groups", "[\"ml/a\", \"ml/b\"]");
        let differ = world(&[member("x", "a", &names), member("y", "b", &two())].concat());
        assert_eq!(
            differ.trees(),
            [
                "koordinator/a: a>=1 !InvalidGangGroup",
                "koordinator/b: b>=2"
            ]
        );
    }

    #[test]
    fn one_stands_alone_and_an_absent_or_senseless_minimum_is_named() {
        let one = member("a", "g", &word("min-available", "1"));
        assert_eq!(world(&one).links(), ["a: alone"]);
        for minimum in [
            String::new(),
            word("min-available", "0"),
            word("min-available", "x"),
        ] {
            let world = world(&member("a", "g", &minimum));
            assert_eq!(
                world.trees(),
                ["koordinator/g: g>=1 !InvalidMinimum"],
                "{minimum}"
            );
            assert_eq!(world.links(), ["a: koordinator/g "], "{minimum}");
        }
    }
}
