//! Our numbers are Kubernetes' numbers: requests of random pods and values of random quantities, as
//! its own code at the version in `kubernetes/go.mod` gives them. `kubernetes/main.go` writes the
//! files.

use std::{collections::BTreeMap, fmt::Debug};

use gangline_k8s::{
    api::Pod,
    pod::request,
    problem::Problems,
    quantity::{Quantity, QuantityError},
};
use serde::{Deserialize, de::DeserializeOwned};

fn lines<T: DeserializeOwned + Debug>(text: &str) -> impl Iterator<Item = T> {
    text.lines().map(|line| serde_json::from_str(line).unwrap())
}

#[derive(Debug, Deserialize)]
struct PodNumbers {
    pod: Pod,
    requests: BTreeMap<String, i64>,
}

#[test]
fn a_pod_asks_for_what_kube_scheduler_counts() {
    let mut seen = 0;
    for (index, case) in lines::<PodNumbers>(include_str!("kubernetes/pods.jsonl")).enumerate() {
        let mut problems = Problems::default();
        let request = request(&case.pod, &mut problems);
        let mut ours = request.resources;
        ours.extend(
            request
                .cards
                .map(|cards| (cards.kind.clone(), i64::from(cards.whole_cards()))),
        );
        assert!(problems.is_empty(), "line {}: {problems:?}", index + 1);
        assert_eq!(ours, case.requests, "line {}", index + 1);
        seen += 1;
    }
    assert_eq!(seen, 200);
}

#[derive(Debug, Deserialize)]
struct QuantityNumber {
    text: String,
    milli: Option<String>,
}

#[test]
fn a_quantity_is_worth_what_kubernetes_says() {
    let mut accepted = 0;
    for case in lines::<QuantityNumber>(include_str!("kubernetes/quantities.jsonl")) {
        let ours = Quantity::new(case.text.as_str()).milli();
        let Some(theirs) = case.milli else {
            assert!(
                ours.is_err(),
                "{case:?}: Kubernetes refuses it, we read {ours:?}"
            );
            continue;
        };
        let theirs: i128 = theirs.parse().unwrap();
        match ours {
            Ok(milli) => {
                assert_eq!(milli, theirs, "{}", case.text);
                accepted += 1;
            }
            Err(QuantityError::Negative { .. }) => {
                assert!(theirs < 0, "{}: {theirs}", case.text);
            }
            // They cap binary suffixes at 2^63 - 1, and let decimal ones grow.
            Err(QuantityError::TooLarge { limit, .. }) => {
                assert!(
                    theirs.abs() >= i128::from(limit) * 1000,
                    "{}: {theirs}",
                    case.text
                );
            }
            // They read a sign, a point or a suffix without digits as 0.
            Err(QuantityError::Malformed { .. }) => {
                assert_eq!(theirs, 0, "{}", case.text);
            }
            Err(error) => panic!("{}: they read {theirs}, we say {error}", case.text),
        }
    }
    assert!(accepted > 300, "{accepted}");
}
