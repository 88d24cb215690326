//! Label selectors and node selector terms, checked and brought into the core's form.

use gangline::request::{LabelSelector, NodeSelectorTerm, NodeTest, Operator, Requirement};

use crate::{
    api,
    problem::{FieldPath, Problems},
};

/// A selector over pod or namespace labels. An empty one matches everything.
pub fn label_selector(
    selector: &api::LabelSelector,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> LabelSelector {
    let labels = selector
        .match_labels
        .iter()
        .map(|(key, value)| (key, &**value));
    let mut converted = LabelSelector::from_labels(labels);
    let list = path.name("matchExpressions");
    for (index, expression) in selector.match_expressions.iter().enumerate() {
        let path = list.index(index);
        let operator = match &*expression.operator {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            other => {
                problems.note(
                    "UnknownOperator",
                    &path.name("operator"),
                    format_args!("{other:?}; accepted: In, NotIn, Exists, DoesNotExist"),
                );
                continue;
            }
        };
        converted.requirements.extend(requirement(
            &expression.key,
            operator,
            &expression.values,
            &path,
            problems,
        ));
    }
    converted
}

/// A selector that matches no pod: what Kubernetes makes of an absent one.
pub(super) fn no_pods() -> LabelSelector {
    LabelSelector {
        requirements: vec![Requirement {
            key: String::new(),
            operator: Operator::In,
            values: Vec::new(),
        }],
    }
}

/// The tests of a node selector term.
pub(crate) fn node_selector_term(
    term: &api::NodeSelectorTerm,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> NodeSelectorTerm {
    let mut tests = Vec::new();
    let list = path.name("matchExpressions");
    for (index, expression) in term.match_expressions.iter().enumerate() {
        tests.extend(
            node_requirement(expression, &list.index(index), problems).map(NodeTest::Label),
        );
    }
    let list = path.name("matchFields");
    for (index, expression) in term.match_fields.iter().enumerate() {
        tests
            .extend(name_requirement(expression, &list.index(index), problems).map(NodeTest::Name));
    }
    NodeSelectorTerm { tests }
}

fn node_requirement(
    expression: &api::NodeSelectorRequirement,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Option<Requirement> {
    let operator = match &*expression.operator {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::Gt,
        "Lt" => Operator::Lt,
        other => {
            problems.note(
                "UnknownOperator",
                &path.name("operator"),
                format_args!("{other:?}; accepted: In, NotIn, Exists, DoesNotExist, Gt, Lt"),
            );
            return None;
        }
    };
    requirement(
        &expression.key,
        operator,
        &expression.values,
        path,
        problems,
    )
}

fn name_requirement(
    expression: &api::NodeSelectorRequirement,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Option<Requirement> {
    if &*expression.key != "metadata.name" {
        problems.note(
            "UnknownField",
            &path.name("key"),
            format_args!("{:?}; accepted: metadata.name", expression.key),
        );
        return None;
    }
    let operator = match &*expression.operator {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        other => {
            problems.note(
                "UnknownOperator",
                &path.name("operator"),
                format_args!("{other:?}; accepted: In, NotIn"),
            );
            return None;
        }
    };
    requirement(
        &expression.key,
        operator,
        &expression.values,
        path,
        problems,
    )
}

/// One requirement, if its number of values suits its operator.
fn requirement(
    key: &str,
    operator: Operator,
    values: &[Box<str>],
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Option<Requirement> {
    if key.is_empty() {
        problems.note(
            "InvalidSelector",
            &path.name("key"),
            "empty; accepted: the name of a label",
        );
        return None;
    }
    let accepted = match operator {
        Operator::In | Operator::NotIn if values.is_empty() => "at least one value",
        Operator::Exists | Operator::DoesNotExist if !values.is_empty() => "no values",
        Operator::Gt | Operator::Lt
            if values.len() != 1 || values.iter().any(|value| value.parse::<i64>().is_err()) =>
        {
            "exactly one whole number"
        }
        _ => "",
    };
    if !accepted.is_empty() {
        problems.note(
            "InvalidSelector",
            &path.name("values"),
            format_args!("{values:?} with {operator:?}; accepted: {accepted}"),
        );
        return None;
    }
    Some(Requirement {
        key: key.into(),
        operator,
        values: values.iter().map(|value| (&**value).into()).collect(),
    })
}
