//! Which nodes a pod may use: node selector, node affinity, tolerations.

use gangline::request::{
    NodeRules, NodeSelectorTerm, Taint, TaintEffect, Toleration, TolerationOperator,
};

use super::{SPEC, selector::node_selector_term};
use crate::{
    api,
    problem::{FieldPath, Problems},
};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn node_rules(spec: &api::PodSpec, problems: &mut Problems) -> NodeRules {
    let affinity = spec
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref());
    let path = SPEC.name("affinity");
    let path = path.name("nodeAffinity");
    let list = SPEC.name("tolerations");
    let tolerations = spec.tolerations.iter().enumerate();
    NodeRules {
        selector: (spec.node_selector.iter())
            .map(|(key, value)| (key.into(), (&**value).into()))
            .collect(),
        required: affinity.and_then(|affinity| required(affinity, &path, problems)),
        preferred: affinity.map_or_else(Vec::new, |affinity| preferred(affinity, &path, problems)),
        tolerations: tolerations
            .filter_map(|(index, word)| toleration(word, &list.index(index), problems))
            .collect(),
    }
}

fn required(
    affinity: &api::NodeAffinity,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Option<Vec<NodeSelectorTerm>> {
    let selector = affinity
        .required_during_scheduling_ignored_during_execution
        .as_ref()?;
    let path = path.name(REQUIRED);
    let path = path.name("nodeSelectorTerms");
    let terms = &selector.node_selector_terms;
    if terms.is_empty() {
        problems.note(
            "InvalidSelector",
            &path,
            "empty; accepted: at least one term",
        );
    }
    let terms = terms.iter().enumerate();
    Some(
        terms
            .map(|(index, term)| node_selector_term(term, &path.index(index), problems))
            .collect(),
    )
}

fn preferred(
    affinity: &api::NodeAffinity,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Vec<(i32, NodeSelectorTerm)> {
    let path = path.name(PREFERRED);
    let mut terms = Vec::new();
    for (index, term) in affinity
        .preferred_during_scheduling_ignored_during_execution
        .iter()
        .enumerate()
    {
        let path = path.index(index);
        let Some(weight) = weight(term.weight, &path, problems) else {
            continue;
        };
        let term = node_selector_term(&term.preference, &path.name("preference"), problems);
        // Unlike a required one, an empty preferred term likes all nodes alike: it decides nothing.
        if !term.tests.is_empty() {
            terms.push((weight, term));
        }
    }
    terms
}

/// A weight of 1..=100.
pub(super) fn weight(
    weight: Option<i64>,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Option<i32> {
    let valid = weight.filter(|weight| (1..=100).contains(weight));
    if valid.is_none() {
        let weight = weight.map_or_else(|| "absent".into(), |weight| weight.to_string());
        problems.note(
            "InvalidWeight",
            &path.name("weight"),
            format_args!("{weight}; accepted: 1 to 100"),
        );
    }
    valid.and_then(|weight| i32::try_from(weight).ok())
}

/// A toleration, if Kubernetes would accept it.
pub fn toleration(
    toleration: &api::Toleration,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Option<Toleration> {
    let refuse = |problems: &mut Problems, field: &str, value: &str, accepted: &str| {
        problems.note(
            "InvalidToleration",
            &path.name(field),
            format_args!("{value:?}; accepted: {accepted}"),
        );
        None
    };
    let operator = match &*toleration.operator {
        "" | "Equal" => TolerationOperator::Equal,
        "Exists" => TolerationOperator::Exists,
        other => return refuse(problems, "operator", other, "Equal, Exists"),
    };
    if operator == TolerationOperator::Exists && !toleration.value.is_empty() {
        return refuse(
            problems,
            "value",
            &toleration.value,
            "empty with operator Exists",
        );
    }
    if operator == TolerationOperator::Equal && toleration.key.is_empty() {
        return refuse(
            problems,
            "operator",
            &toleration.operator,
            "Exists when there is no key",
        );
    }
    let effect = if toleration.effect.is_empty() {
        None
    } else {
        Some(taint_effect(
            &toleration.effect,
            "InvalidToleration",
            path,
            problems,
        )?)
    };
    Some(Toleration {
        key: (&*toleration.key).into(),
        operator,
        value: (&*toleration.value).into(),
        effect,
    })
}

/// A node's taint, if its effect is known.
pub fn taint(taint: &api::Taint, path: &FieldPath<'_>, problems: &mut Problems) -> Option<Taint> {
    Some(Taint {
        key: (&*taint.key).into(),
        value: (&*taint.value).into(),
        effect: taint_effect(&taint.effect, "InvalidTaint", path, problems)?,
    })
}

fn taint_effect(
    effect: &str,
    code: &str,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Option<TaintEffect> {
    match effect {
        "NoSchedule" => Some(TaintEffect::NoSchedule),
        "PreferNoSchedule" => Some(TaintEffect::PreferNoSchedule),
        "NoExecute" => Some(TaintEffect::NoExecute),
        other => {
            problems.note(
                code,
                &path.name("effect"),
                format_args!("{other:?}; accepted: NoSchedule, PreferNoSchedule, NoExecute"),
            );
            None
        }
    }
}
