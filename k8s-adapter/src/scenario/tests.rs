//! What the format accepts and what it says about mistakes. Whole scenarios are in `tests/scenarios`.

use super::*;

fn error(text: &str) -> String {
    let outcome = Scenario::parse(text).and_then(|scenario| run(&scenario, None, |_, _| ()));
    outcome.expect_err("must be refused").to_string()
}

#[test]
fn a_typo_is_refused_with_its_line() {
    let said = error("scenario: x\nnodes:\n- {name: n1, card: 8}\n");
    assert!(said.contains("card") && said.contains("line 3"), "{said}");
    let said = error("expect:\n- {at: 0s, gang: g, plaecd: 4}\n");
    assert!(said.contains("plaecd"), "{said}");
}

#[test]
fn a_wrong_value_says_what_would_be_accepted() {
    let said = error("nodes:\n- {name: n4..n1}\n");
    assert!(said.contains("smaller number first"), "{said}");
    let said = error("nodes:\n- {name: n1, taints: [maintenance]}\n");
    assert!(
        said.contains("nodes[0]") && said.contains("key=value:Effect"),
        "{said}"
    );
    let said = error("events:\n- {at: soon}\n");
    assert!(said.contains("such as 10s"), "{said}");
    let said = error("events:\n- {at: 1s, cordon: n1}\n");
    assert!(said.contains("events[0]: there is no node n1"), "{said}");
    let said = error("work:\n- {min: 4}\n");
    assert!(
        said.contains("work[0]: needs either `gang` or `single`"),
        "{said}"
    );
    let said = error("work:\n- {gang: g, min: 4000000000}\n");
    assert!(said.contains("at most 1000000"), "{said}");
    let said = error("events:\n- {at: 1s, finish: a, fail: b}\n");
    assert!(said.contains("at most one action"), "{said}");
}

#[test]
fn a_tick_that_never_ends_is_refused() {
    assert!(error("tick: 0s\nevents: [{at: 1s}]\n").contains("tick"));
    assert!(error("tick: 1ms\nevents: [{at: 8760h}]\n").contains("tick"));
}

#[test]
fn a_failed_expectation_says_what_was_expected_and_what_is() {
    let text = "nodes: [{name: n1, cards: 4}]\nexpect:\n- {at: 0s, free_cards: 99}\n";
    let scenario = Scenario::parse(text).expect("is well-formed");
    let outcome = run(&scenario, None, |_, _| ()).expect("runs");
    assert!(!outcome.passed);
    assert!(outcome.failures[0].starts_with("0s: cluster: free cards: expected 99, is "));
    assert!(outcome.to_text().contains("FAILED cluster: free cards"));
}
