//! Label selectors as Kubernetes has them: requirements joined by "and", terms joined by "or".
//!
//! Used on node labels, pod labels and namespace labels. Matching is a plain function of the
//! requirement and a look-up, so the engine can feed it from its own tables.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

/// How a requirement compares a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Operator {
    /// The label is there and its value is listed.
    In,
    /// The label is absent or its value is not listed.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is absent.
    DoesNotExist,
    /// The label's value is an integer above the one listed value.
    Gt,
    /// The label's value is an integer below the one listed value.
    Lt,
}

/// One test on one label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// How to compare.
    pub operator: Operator,
    /// The listed values; exactly one integer for [`Operator::Gt`] and [`Operator::Lt`].
    #[cfg_attr(feature = "serde", serde(default))]
    pub values: Vec<String>,
}

impl Requirement {
    /// Whether a label with this value (`None`: absent) satisfies the requirement.
    pub fn accepts(&self, value: Option<&str>) -> bool {
        let listed = |value: &str| self.values.iter().any(|listed| listed == value);
        let ordered = |holds: fn(i64, i64) -> bool| {
            let bound = self
                .values
                .first()
                .and_then(|bound| bound.parse::<i64>().ok());
            let value = value.and_then(|value| value.parse::<i64>().ok());
            matches!((value, bound), (Some(value), Some(bound)) if holds(value, bound))
        };
        match self.operator {
            Operator::In => value.is_some_and(listed),
            Operator::NotIn => !value.is_some_and(listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Gt => ordered(|value, bound| value > bound),
            Operator::Lt => ordered(|value, bound| value < bound),
        }
    }
}

/// Requirements on labels that must all hold. The default has none and matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct LabelSelector {
    /// All must hold.
    pub requirements: Vec<Requirement>,
}

impl LabelSelector {
    /// A selector for exactly these labels.
    pub fn from_labels<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let equals = |(key, value): (&str, &str)| Requirement {
            key: key.into(),
            operator: Operator::In,
            values: [value.into()].into(),
        };
        Self {
            requirements: labels.into_iter().map(equals).collect(),
        }
    }

    /// Whether these labels satisfy every requirement. Cost: requirements times look-up.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements.iter().all(|requirement| {
            requirement.accepts(labels.get(&requirement.key).map(String::as_str))
        })
    }
}

/// A test on a node: on one of its labels or on its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum NodeTest {
    /// On a label (`matchExpressions`).
    Label(Requirement),
    /// On the node's name (`matchFields` with `metadata.name`); the key is ignored.
    Name(Requirement),
}

/// Tests on a node that must all hold. As in Kubernetes, a term without tests matches no node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct NodeSelectorTerm {
    /// All must hold.
    pub tests: Vec<NodeTest>,
}

impl NodeSelectorTerm {
    /// Whether a node with this name and these labels satisfies the term.
    pub fn matches(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        !self.tests.is_empty()
            && self.tests.iter().all(|test| match test {
                NodeTest::Label(requirement) => {
                    requirement.accepts(labels.get(&requirement.key).map(String::as_str))
                }
                NodeTest::Name(requirement) => requirement.accepts(Some(name)),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirement(operator: Operator, values: &[&str]) -> Requirement {
        let values = values.iter().map(|&value| value.into()).collect();
        Requirement {
            key: "k".into(),
            operator,
            values,
        }
    }

    #[test]
    fn operators_treat_an_absent_label_as_kubernetes_does() {
        assert!(!requirement(Operator::In, &["a"]).accepts(None));
        assert!(requirement(Operator::NotIn, &["a"]).accepts(None));
        assert!(!requirement(Operator::Exists, &[]).accepts(None));
        assert!(requirement(Operator::DoesNotExist, &[]).accepts(None));
        assert!(!requirement(Operator::Gt, &["1"]).accepts(None));
        assert!(!requirement(Operator::Lt, &["1"]).accepts(None));
    }

    #[test]
    fn ordering_compares_integers_and_refuses_words() {
        assert!(requirement(Operator::Gt, &["9"]).accepts(Some("10")));
        assert!(!requirement(Operator::Gt, &["10"]).accepts(Some("10")));
        assert!(requirement(Operator::Lt, &["10"]).accepts(Some("-3")));
        assert!(!requirement(Operator::Lt, &["10"]).accepts(Some("two")));
        assert!(!requirement(Operator::Lt, &["ten"]).accepts(Some("2")));
    }

    #[test]
    fn a_term_without_tests_matches_no_node_and_a_selector_without_requirements_every_pod() {
        assert!(!NodeSelectorTerm::default().matches("n", &BTreeMap::new()));
        assert!(LabelSelector::default().matches(&BTreeMap::new()));
    }
}
