//! Where volumes can be reached, as node selector terms: "one of these must hold".
//!
//! Terms enter as what volumes and classes say and leave as what a pod's node affinity could say too, so
//! that the engine needs to know nothing of volumes. Nothing here looks at nodes.

use std::collections::BTreeMap;

use gangline::request::{NODE_LEVEL, NodeSelectorTerm, NodeTest, Operator, Requirement};

use crate::api;

/// More terms than this are not made of one pod's volumes.
pub(super) const MOST: usize = 1024;

const ZONES: [(&str, &str); 4] = [
    (
        "failure-domain.beta.kubernetes.io/zone",
        "topology.kubernetes.io/zone",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/region",
    ),
    ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    (
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/region",
    ),
];

fn label(key: &str, operator: Operator, values: &[&str]) -> NodeTest {
    NodeTest::Label(Requirement {
        key: key.into(),
        operator,
        values: values.iter().map(|&value| value.into()).collect(),
    })
}

/// Terms of which one must hold, such that one of each list holds. `None`: too many to write down.
pub(super) fn both(
    one: &[NodeSelectorTerm],
    other: &[NodeSelectorTerm],
) -> Option<Vec<NodeSelectorTerm>> {
    // A term without tests holds nowhere.
    let some = |term: &&NodeSelectorTerm| !term.tests.is_empty();
    let count = one.iter().filter(some).count() * other.iter().filter(some).count();
    if count > MOST {
        return None;
    }
    let mut terms = Vec::with_capacity(count);
    for left in one.iter().filter(some) {
        for right in other.iter().filter(some) {
            let mut tests = left.tests.clone();
            let more = right.tests.iter().filter(|test| !left.tests.contains(test));
            tests.extend(more.cloned());
            terms.push(NodeSelectorTerm { tests });
        }
    }
    Some(either(terms))
}

/// The same in fewer terms: of those that only want one of some values of a label, one a label is made.
pub(super) fn either(terms: impl IntoIterator<Item = NodeSelectorTerm>) -> Vec<NodeSelectorTerm> {
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut others: Vec<NodeSelectorTerm> = Vec::new();
    for term in terms {
        match &*term.tests {
            [NodeTest::Label(test)] if test.operator == Operator::In => {
                let known = values.entry(test.key.clone()).or_default();
                known.extend(test.values.iter().cloned());
            }
            _ if others.contains(&term) => {}
            _ => others.push(term),
        }
    }
    let labels = values.into_iter().map(|(key, mut values)| {
        values.sort();
        values.dedup();
        let operator = Operator::In;
        let test = NodeTest::Label(Requirement {
            key,
            operator,
            values,
        });
        NodeSelectorTerm { tests: vec![test] }
    });
    labels.chain(others).collect()
}

/// This node and no other.
pub(super) fn on_node(name: &str) -> NodeSelectorTerm {
    NodeSelectorTerm {
        tests: vec![NodeTest::Name(Requirement {
            key: "metadata.name".into(),
            operator: Operator::In,
            values: vec![name.into()],
        })],
    }
}

/// Where a class may make volumes; `None`: everywhere.
pub(super) fn topology(allowed: &[api::TopologySelectorTerm]) -> Option<Vec<NodeSelectorTerm>> {
    let terms = allowed.iter().map(|term| NodeSelectorTerm {
        tests: (term.match_label_expressions.iter())
            .map(|one| {
                let values: Vec<&str> = one.values.iter().map(|value| &**value).collect();
                label(&one.key, Operator::In, &values)
            })
            .collect(),
    });
    (!allowed.is_empty()).then(|| either(terms))
}

/// Where a volume with these labels is, by the labels that said so before volumes had a node affinity. A
/// node that has none of them is anywhere. `None`: they say nothing.
pub(super) fn zones(labels: &BTreeMap<String, String>) -> Option<Vec<NodeSelectorTerm>> {
    let mut wanted: Option<Vec<NodeSelectorTerm>> = None;
    for (key, newer) in ZONES {
        let Some(value) = labels.get(key) else {
            continue;
        };
        let values: Vec<&str> = value.split("__").map(str::trim).collect();
        let mut alternatives = vec![NodeSelectorTerm {
            tests: vec![label(key, Operator::In, &values)],
        }];
        if key != newer {
            alternatives.push(NodeSelectorTerm {
                tests: vec![
                    label(key, Operator::DoesNotExist, &[]),
                    label(newer, Operator::In, &values),
                ],
            });
        }
        wanted = match wanted {
            // At most two alternatives for each of four labels.
            Some(before) => both(&before, &alternatives),
            None => Some(alternatives),
        };
    }
    let unmarked = NodeSelectorTerm {
        tests: (ZONES.iter())
            .map(|(key, _)| label(key, Operator::DoesNotExist, &[]))
            .collect(),
    };
    wanted.map(|terms| either(terms.into_iter().chain([unmarked])))
}

/// The one host that these terms leave, by its label.
pub(super) fn host(terms: &[NodeSelectorTerm]) -> Option<&str> {
    let [term] = terms else {
        return None;
    };
    term.tests.iter().find_map(|test| match test {
        NodeTest::Label(test) if test.key == NODE_LEVEL && test.operator == Operator::In => {
            match &*test.values {
                [host] => Some(host.as_str()),
                _ => None,
            }
        }
        _ => None,
    })
}
