//! Rules about other pods: affinity, anti-affinity, spread.

use gangline::request::{
    LabelSelector, NamespaceScope, Operator, PodTerm, Relations, Requirement, SpreadRule,
};

use super::{
    SPEC,
    nodes::weight,
    selector::{label_selector, no_pods},
};
use crate::{
    api,
    api::Labels,
    problem::{FieldPath, Problems},
};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn relations(pod: &api::Pod, problems: &mut Problems) -> Relations {
    let labels = &pod.metadata.labels;
    let mut relations = Relations::default();
    let affinity = SPEC.name("affinity");
    if let Some(rules) = &pod.spec.affinity {
        if let Some(rules) = &rules.pod_affinity {
            let path = affinity.name("podAffinity");
            relations.affinity = required(rules, labels, &path, problems);
            relations
                .preferred
                .extend(preferred(rules, labels, &path, problems));
        }
        if let Some(rules) = &rules.pod_anti_affinity {
            let path = affinity.name("podAntiAffinity");
            relations.anti_affinity = required(rules, labels, &path, problems);
            let disliked = preferred(rules, labels, &path, problems);
            relations
                .preferred
                .extend(disliked.into_iter().map(|(weight, term)| (-weight, term)));
        }
    }
    let list = SPEC.name("topologySpreadConstraints");
    let constraints = pod.spec.topology_spread_constraints.iter().enumerate();
    relations.spread = constraints
        .filter_map(|(index, rule)| spread(rule, labels, &list.index(index), problems))
        .collect();
    relations
}

fn required(
    rules: &api::PodAffinity,
    labels: &Labels,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Vec<PodTerm> {
    let path = path.name(REQUIRED);
    let terms = rules
        .required_during_scheduling_ignored_during_execution
        .iter()
        .enumerate();
    terms
        .filter_map(|(index, term)| pod_term(term, labels, &path.index(index), problems))
        .collect()
}

fn preferred(
    rules: &api::PodAffinity,
    labels: &Labels,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Vec<(i32, PodTerm)> {
    let path = path.name(PREFERRED);
    let terms = rules
        .preferred_during_scheduling_ignored_during_execution
        .iter()
        .enumerate();
    terms
        .filter_map(|(index, term)| {
            let path = path.index(index);
            let weight = weight(term.weight, &path, problems)?;
            let path = path.name("podAffinityTerm");
            Some((
                weight,
                pod_term(&term.pod_affinity_term, labels, &path, problems)?,
            ))
        })
        .collect()
}

fn pod_term(
    term: &api::PodAffinityTerm,
    labels: &Labels,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Option<PodTerm> {
    let topology_key = topology_key(&term.topology_key, path, problems)?;
    let mut selector = selector(term.label_selector.as_ref(), path, problems);
    add_own_values(&mut selector, &term.match_label_keys, Operator::In, labels);
    add_own_values(
        &mut selector,
        &term.mismatch_label_keys,
        Operator::NotIn,
        labels,
    );
    let mut names: Vec<String> = term
        .namespaces
        .iter()
        .map(|name| (&**name).into())
        .collect();
    names.sort();
    names.dedup();
    let namespaces = NamespaceScope {
        names,
        selector: (term.namespace_selector.as_ref())
            .map(|selector| label_selector(selector, &path.name("namespaceSelector"), problems)),
    };
    Some(PodTerm {
        topology_key,
        selector,
        namespaces,
    })
}

fn spread(
    rule: &api::TopologySpreadConstraint,
    labels: &Labels,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Option<SpreadRule> {
    let topology_key = topology_key(&rule.topology_key, path, problems)?;
    let max_skew = positive(rule.max_skew, "maxSkew", path, problems)?;
    let word = |value: &str, field: &str, no: &str, yes: &str, problems: &mut Problems| {
        if value == no || value == yes {
            return Some(value == yes);
        }
        problems.note(
            "InvalidSpread",
            &path.name(field),
            format_args!("{value:?}; accepted: {no}, {yes}"),
        );
        None
    };
    let policy = |value: &str, field: &str, otherwise: bool, problems: &mut Problems| {
        if value.is_empty() {
            return Some(otherwise);
        }
        word(value, field, "Ignore", "Honor", problems)
    };
    let required = word(
        &rule.when_unsatisfiable,
        "whenUnsatisfiable",
        "ScheduleAnyway",
        "DoNotSchedule",
        problems,
    )?;
    let mut min_domains = 0;
    if rule.min_domains.is_some() {
        min_domains = positive(rule.min_domains, "minDomains", path, problems)?;
        if !required {
            problems.note(
                "InvalidSpread",
                &path.name("minDomains"),
                format_args!("{min_domains}; accepted: only with whenUnsatisfiable DoNotSchedule"),
            );
        }
    }
    // Kubernetes counts no pods for an empty selector, unlike anywhere else.
    let is_empty = |selector: &LabelSelector| selector.requirements.is_empty();
    let mut selector = selector(rule.label_selector.as_ref(), path, problems);
    add_own_values(&mut selector, &rule.match_label_keys, Operator::In, labels);
    if is_empty(&selector) {
        selector = no_pods();
    }
    Some(SpreadRule {
        topology_key,
        max_skew,
        selector,
        min_domains: if min_domains > 1 { min_domains } else { 0 },
        required,
        honor_node_affinity: policy(
            &rule.node_affinity_policy,
            "nodeAffinityPolicy",
            true,
            problems,
        )?,
        honor_taints: policy(
            &rule.node_taints_policy,
            "nodeTaintsPolicy",
            false,
            problems,
        )?,
    })
}

fn topology_key(key: &str, path: &FieldPath<'_>, problems: &mut Problems) -> Option<String> {
    if key.is_empty() {
        problems.note(
            "MissingTopologyKey",
            &path.name("topologyKey"),
            "empty; accepted: the name of a node label",
        );
        return None;
    }
    Some(key.into())
}

fn positive(
    number: Option<i64>,
    field: &str,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Option<u32> {
    let valid = number
        .and_then(|number| u32::try_from(number).ok())
        .filter(|number| *number > 0);
    if valid.is_none() {
        let number = number.map_or_else(|| "absent".into(), |number| number.to_string());
        problems.note(
            "InvalidSpread",
            &path.name(field),
            format_args!("{number}; accepted: a whole number from 1 to {}", u32::MAX),
        );
    }
    valid
}

/// An absent selector selects nothing.
fn selector(
    selector: Option<&api::LabelSelector>,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> LabelSelector {
    selector.map_or_else(no_pods, |selector| {
        label_selector(selector, &path.name("labelSelector"), problems)
    })
}

/// `matchLabelKeys` and `mismatchLabelKeys`: the pod's own values of these labels. Labels that the
/// pod lacks are passed over. The API server adds the same requirements to stored pods.
fn add_own_values(
    selector: &mut LabelSelector,
    keys: &[Box<str>],
    operator: Operator,
    labels: &Labels,
) {
    for key in keys {
        let Some(value) = labels.get(key) else {
            continue;
        };
        let requirement = Requirement {
            key: (&**key).into(),
            operator,
            values: vec![(&**value).into()],
        };
        if !selector.requirements.contains(&requirement) {
            selector.requirements.push(requirement);
        }
    }
}
