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
    let said = error("nodes:\n- {name: n1, cards: 2, unhealthy: [7]}\n");
    assert!(
        said.contains("unhealthy: card 7 of 2 cards; accepted: numbers below that"),
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
    let said = error("nodes:\n- {name: n1, cards: 99999999999, cpu: 4}\n");
    assert!(said.starts_with("`cards: 99999999999`: "), "{said}");
    let said = error("work:\n- single: a\n  pod:\n    cards: -1\n");
    assert!(
        said.starts_with("`cards: -1`: ") && said.contains("line 4"),
        "{said}"
    );
    let said = error("nodes:\n- {name: n1, cards: 2, unhealthy: [1, 99999999999999999999]}\n");
    assert!(
        said.starts_with("`unhealthy: [1, 99999999999999999999]`: "),
        "{said}"
    );
    let said = error("nodes: [{name: n1, cards: 1, mps: 3}]\n");
    assert!(
        said.starts_with("`mps: 3`: ") && !said.contains("whole number"),
        "{said}"
    );
    let said = error("work:\n- {single: a, pod: {cpu: 1, host_ports: [70000]}}\n");
    assert!(
        said.contains("host_ports: [70000]") && said.contains("from 0 to 65535"),
        "{said}"
    );
    let said = error("events:\n- {at: 1s, finish: a, fail: b}\n");
    assert!(said.contains("at most one action"), "{said}");
}

#[test]
fn an_expectation_about_a_name_that_nothing_has_is_refused() {
    let head = "levels: [rack]\nnodes: [{name: n1, cards: 1, labels: {rack: r1}}]\n\
                work: [{gang: g, min: 1}]\nexpect:\n";
    for (expected, says) in [
        (
            "within: {rak: r1}",
            "within: there is no level \"rak\"; accepted: node, rack",
        ),
        ("domains: {rak: 1}", "domains: there is no level"),
        ("distinct: rak", "distinct: there is no level"),
        ("on: {n7: 0}", "no node is ever called \"n7\""),
        ("roles: {leader: 0}", "no role is ever called \"leader\""),
    ] {
        let said = error(&format!("{head}- {{at: 0s, gang: g, {expected}}}\n"));
        assert!(said.contains("expect[0]") && said.contains(says), "{said}");
    }
    let said = error(&format!("{head}- {{at: 0s, node: n7, gone: true}}\n"));
    assert!(said.contains("node: no node is ever called"), "{said}");
}

#[test]
fn an_expectation_about_a_card_that_is_not_there_does_not_hold() {
    let text = "nodes: [{name: n1, cards: 2}]\nexpect:\n\
                - {at: 0s, node: n1, parts_on: {7: 0}}\n- {at: 0s, node: n1, untouched: [0, 1, 7]}\n";
    let scenario = Scenario::parse(text).expect("is well-formed");
    let outcome = run(&scenario, None, |_, _| ()).expect("runs");
    let failures = outcome.failures.join("; ");
    assert_eq!(outcome.failures.len(), 2, "{failures}");
    assert!(failures.contains("there is no card 7"), "{failures}");
    assert!(
        failures.contains("untouched: expected [0, 1, 7], is [0-1]"),
        "{failures}"
    );
}

#[test]
fn what_is_wrong_with_cards_says_what_would_be_accepted() {
    for (text, says) in [
        (
            "nodes: [{name: n1, cards: 1, modes: halves}]",
            "mig-dynamic",
        ),
        (
            "nodes: [{name: n1, cards: 1, modes: {mig-static: [1g.5gb]}}]",
            "PROFILE@START",
        ),
        (
            "nodes: [{name: n1, cards: 1, links: dgx-9}]",
            "no known machine",
        ),
        (
            "nodes: [{name: n1, cards: 2, modes: [shared]}]",
            "modes: 1 in a list for 2 cards; accepted: a mode without a list for all, or one for each",
        ),
        (
            "nodes: [{name: n1, modes: shared}]",
            "modes: the node has no cards",
        ),
        (
            "work: [{single: p, pod: {near: numa-node}}]",
            "near: the pod asks for no cards",
        ),
        (
            "work: [{single: p, pod: {cards: 1, replicas: 1}}]",
            "cards of one kind",
        ),
        (
            "work: [{single: p, pod: {cards: 2, on: same}}]",
            "on: of whole cards",
        ),
        (
            "work: [{single: p, pod: {share: {memory: much}}}]",
            "memory",
        ),
        (
            "work: [{single: p, pod: {share: {memory: -1Gi}}}]",
            "zero or more",
        ),
        (
            "work: [{single: p, pod: {share: {memory: 1Gi, cpu: 1}}}]",
            "cpu",
        ),
        (
            "work: [{single: p, pod: {cards: 1, overhead: {process: 1}}}]",
            "process",
        ),
    ] {
        let said = error(&format!("{text}\n"));
        assert!(said.contains(says), "{text}: {said}");
    }
    let bind = "nodes: [{name: n1, cards: 1, model: NVIDIA-H200, modes: mig-dynamic}]\n\
                work: [{single: p, pod: {slices: {1g.18gb: 1}}}]\n\
                events: [{at: 0s, bind: {pod: p, node: n1, parts: [PART]}}]\n";
    for (part, says) in [
        ("0:1g.5gb@0", "no MIG profile"),
        ("1g.18gb@0", "no part of a card"),
    ] {
        let said = error(&bind.replace("PART", &format!("{part:?}")));
        assert!(said.contains(says), "{part}: {said}");
    }
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
