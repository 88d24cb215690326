use super::*;

fn pod(yaml: &str) -> api::Pod {
    serde_saphyr::from_str(yaml).unwrap()
}

/// The request of a pod in which nothing is wrong, as `name: amount` pairs, cards among them.
fn amounts(spec: &str) -> Vec<(String, i64)> {
    let mut problems = Problems::default();
    let request = request(&pod(spec), &mut problems);
    assert!(problems.is_empty(), "{problems:?}");
    let mut amounts: Vec<_> = request.resources.into_iter().collect();
    amounts.extend(
        request
            .cards
            .map(|cards| (cards.kind.clone(), i64::from(cards.whole_cards()))),
    );
    amounts
}

fn expect(spec: &str, expected: &[(&str, i64)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|&(name, value)| (name.into(), value))
        .collect();
    assert_eq!(amounts(spec), expected, "{spec}");
}

/// The only problem of a pod, as code, field and message.
fn problem_of(spec: &str) -> (String, String, String) {
    let mut problems = Problems::default();
    request(&pod(spec), &mut problems);
    assert_eq!(problems.iter().len(), 1, "{problems:?}");
    let problem = problems.first().unwrap().clone();
    (problem.code, problem.field, problem.message)
}

fn refused(spec: &str, code: &str, field: &str, message: &str) {
    let (found_code, found_field, found_message) = problem_of(spec);
    assert_eq!(
        (&*found_code, &*found_field),
        (code, field),
        "{found_message}"
    );
    assert_eq!(found_message, message);
}

// Case C149 of the collection, a) to h).

#[test]
fn c149_a_containers_sidecars_and_overhead_add_up() {
    expect(
        "spec: {containers: [{resources: {requests: {cpu: 1}}}],
                initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 1}}}],
                overhead: {cpu: 1}}",
        &[("cpu", 3000)],
    );
}

#[test]
fn c149_b_an_init_container_hands_its_cards_on() {
    expect(
        "spec: {containers: [{resources: {limits: {nvidia.com/gpu: 8}}}],
                initContainers: [{resources: {limits: {nvidia.com/gpu: 8}}}]}",
        &[("nvidia.com/gpu", 8)],
    );
}

#[test]
fn c149_c_a_sidecar_keeps_its_cards() {
    expect(
        "spec: {containers: [{resources: {limits: {nvidia.com/gpu: 8}}}],
                initContainers: [{restartPolicy: Always, resources: {limits: {nvidia.com/gpu: 8}}}]}",
        &[("nvidia.com/gpu", 16)],
    );
}

#[test]
fn c149_d_a_large_init_container_sets_the_floor() {
    expect(
        "spec: {containers: [{resources: {requests: {cpu: 1}}}],
                initContainers: [{resources: {requests: {cpu: 4}}}]}",
        &[("cpu", 4000)],
    );
}

#[test]
fn c149_e_a_sidecar_runs_beside_the_init_containers_after_it() {
    expect(
        "spec: {containers: [{resources: {requests: {cpu: 2}}}],
                initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 1}}},
                                 {resources: {requests: {cpu: 4}}}]}",
        &[("cpu", 5000)],
    );
}

#[test]
fn c149_f_but_not_beside_those_before_it() {
    expect(
        "spec: {containers: [{resources: {requests: {cpu: 2}}}],
                initContainers: [{resources: {requests: {cpu: 4}}},
                                 {restartPolicy: Always, resources: {requests: {cpu: 1}}}]}",
        &[("cpu", 4000)],
    );
}

#[test]
fn c149_g_only_an_init_container_asks() {
    // The pod slot is the core's: every member takes one, whether it says so or not.
    expect(
        "spec: {containers: [{}], initContainers: [{resources: {requests: {cpu: 2}}}]}",
        &[("cpu", 2000)],
    );
}

#[test]
fn c149_h_amounts_for_the_pod_replace_the_sum() {
    expect(
        "spec: {containers: [{resources: {requests: {cpu: 1, ephemeral-storage: 1Gi}}},
                             {resources: {requests: {cpu: 2}}}],
                resources: {requests: {cpu: 6}}}",
        &[("cpu", 6000), ("ephemeral-storage", 1 << 30)],
    );
}

#[test]
fn overhead_comes_on_top_of_init_containers_and_of_the_pod_level() {
    expect(
        "spec: {containers: [{resources: {requests: {cpu: 1}}}],
                initContainers: [{resources: {requests: {cpu: 4}}}],
                overhead: {cpu: 250m, memory: 120Mi}}",
        &[("cpu", 4250), ("memory", 120 << 20)],
    );
    expect(
        "spec: {containers: [{}], resources: {requests: {cpu: 2}}, overhead: {cpu: 250m}}",
        &[("cpu", 2250)],
    );
}

#[test]
fn a_limit_without_a_request_is_the_request() {
    expect(
        "spec: {containers: [{resources: {requests: {cpu: 1}, limits: {cpu: 2, memory: 1Gi}}}]}",
        &[("cpu", 1000), ("memory", 1 << 30)],
    );
}

#[test]
fn a_limit_for_the_pod_is_its_request_only_where_no_container_asks() {
    expect(
        "spec: {containers: [{resources: {requests: {cpu: 1}}}],
                resources: {limits: {cpu: 8, memory: 2Gi}}}",
        &[("cpu", 1000), ("memory", 2 << 30)],
    );
}

#[test]
fn fractions_are_added_before_they_are_rounded() {
    expect(
        "spec: {containers: [{resources: {requests: {memory: 100m}}},
                             {resources: {requests: {memory: 100m}}}]}",
        &[("memory", 1)],
    );
    expect(
        "spec: {containers: [{resources: {requests: {cpu: 0.1}}},
                             {resources: {requests: {cpu: 100m}}}]}",
        &[("cpu", 200)],
    );
}

#[test]
fn nothing_asked_for_is_nothing() {
    expect(
        "spec: {containers: [{resources: {limits: {nvidia.com/gpu: 0}}}]}",
        &[],
    );
    expect(
        "spec: {containers: [{resources: null}], overhead: null}",
        &[],
    );
    expect("{}", &[]);
}

const RESIZED: &str = "
spec:
  containers:
  - {name: main, resources: {requests: {cpu: 1, memory: 4Gi}}}
  - {name: other, resources: {requests: {cpu: 1}}}
status:
  containerStatuses:
  - name: main
    allocatedResources: {cpu: 2, memory: 4Gi}
    resources: {requests: {cpu: 3, memory: 2Gi}}
";

#[test]
fn while_a_resize_is_under_way_the_largest_counts() {
    // Wanted 1 + 1, promised 2 + 1, used 3 + 1.
    expect(RESIZED, &[("cpu", 4000), ("memory", 4 << 30)]);
}

#[test]
fn a_resize_that_is_not_possible_does_not_count() {
    let wants_more = "
spec:
  containers: [{name: main, resources: {requests: {cpu: 64}}}]
status:
  conditions: [{type: PodResizePending, status: 'True', reason: REASON}]
  containerStatuses:
  - {name: main, allocatedResources: {cpu: 2}, resources: {requests: {cpu: 2}}}
";
    expect(
        &wants_more.replace("REASON", "Infeasible"),
        &[("cpu", 2000)],
    );
    expect(
        &wants_more.replace("REASON", "Deferred"),
        &[("cpu", 64_000)],
    );
}

#[test]
fn a_sidecar_is_resized_like_a_container() {
    expect(
        "
spec:
  containers: [{name: main, resources: {requests: {cpu: 1}}}]
  initContainers: [{name: side, restartPolicy: Always, resources: {requests: {cpu: 1}}}]
status:
  initContainerStatuses: [{name: side, allocatedResources: {cpu: 3}}]
",
        &[("cpu", 4000)],
    );
}

#[test]
fn a_resize_of_the_pod_as_a_whole_counts_the_largest() {
    expect(
        "
spec:
  containers: [{name: main, resources: {requests: {cpu: 1}}}]
  resources: {requests: {cpu: 2}}
status:
  allocatedResources: {cpu: 3}
  resources: {requests: {cpu: 4}}
",
        &[("cpu", 4000)],
    );
}

#[test]
fn a_request_for_cards_that_differs_from_its_limit_names_the_container() {
    refused(
        "spec: {containers: [{name: side}, {name: train,
                resources: {requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}}}]}",
        "RequestNotLimit",
        "spec.containers[1].resources.requests[nvidia.com/gpu]",
        "container train requests nvidia.com/gpu: 1 with a limit of 2; accepted: request and \
         limit equal",
    );
    refused(
        "spec: {initContainers: [{name: warm, resources: {requests: {nvidia.com/gpu: 1}}}]}",
        "LimitMissing",
        "spec.initContainers[0].resources.limits[nvidia.com/gpu]",
        "container warm requests nvidia.com/gpu: 1 without a limit; accepted: a limit of 1",
    );
}

#[test]
fn half_a_card_is_refused() {
    refused(
        "spec: {containers: [{name: train, resources: {limits: {nvidia.com/gpu: 0.5}}}]}",
        "FractionOfDevice",
        "spec.containers[0].resources.limits[nvidia.com/gpu]",
        "container train asks for nvidia.com/gpu: 0.5; accepted: a whole number",
    );
}

#[test]
fn two_kinds_of_cards_in_a_pod_are_refused_but_counted() {
    let spec = "spec: {containers: [{resources: {limits: {amd.com/gpu: 1, nvidia.com/gpu: 2}}}]}";
    refused(
        spec,
        "MixedCards",
        "spec",
        "asks for amd.com/gpu and nvidia.com/gpu; accepted: one kind of cards in a pod",
    );
    let request = request(&pod(spec), &mut Problems::default());
    assert_eq!(request.cards.map(|cards| cards.whole_cards()), Some(1));
    assert_eq!(request.resources.get("nvidia.com/gpu"), Some(&2));
}

#[test]
fn amounts_that_are_no_numbers_are_named_and_the_rest_is_counted() {
    let spec = "spec: {containers: [{resources: {requests: {cpu: 1_0x, memory: 1Gi}}}]}";
    let (code, field, message) = problem_of(spec);
    assert_eq!(code, "InvalidQuantity");
    assert_eq!(field, "spec.containers[0].resources.requests[cpu]");
    assert!(
        message.starts_with("\"1_0x\" has the unknown suffix \"_0x\""),
        "{message}"
    );
    let request = request(&pod(spec), &mut Problems::default());
    assert_eq!(request.resources.get("memory"), Some(&(1 << 30)));

    for (amount, word) in [("-1", "negative"), ("1e30", "too large"), ("''", "empty")] {
        let spec =
            format!("spec: {{containers: [{{resources: {{requests: {{cpu: {amount}}}}}}}]}}");
        let (code, _, message) = problem_of(&spec);
        assert_eq!(code, "InvalidQuantity");
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn sums_beyond_the_countable_are_refused() {
    let one = "{resources: {requests: {memory: 9E}}}";
    let (code, _, message) = problem_of(&format!("spec: {{containers: [{one}, {one}]}}"));
    assert_eq!(code, "QuantityTooLarge");
    assert!(
        message.contains("memory: 18000000000000000000 in all"),
        "{message}"
    );
    let (code, _, _) =
        problem_of("spec: {containers: [{resources: {limits: {nvidia.com/gpu: 5G}}}]}");
    assert_eq!(code, "QuantityTooLarge");
}

#[test]
fn requests_above_their_limit_and_below_their_containers_are_refused() {
    refused(
        "spec: {containers: [{name: main, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}]}",
        "RequestAboveLimit",
        "spec.containers[0].resources.requests[cpu]",
        "container main requests cpu: 2 with a limit of 1; accepted: at most the limit",
    );
    refused(
        "spec: {containers: [{resources: {requests: {cpu: 1500m}}}],
                resources: {requests: {cpu: 1}}}",
        "RequestBelowContainers",
        "spec.resources.requests[cpu]",
        "1 is less than its containers ask for together (1500m); accepted: at least that",
    );
    refused(
        "spec: {containers: [{}], resources: {requests: {nvidia.com/gpu: 1}}}",
        "UnsupportedResource",
        "spec.resources.requests[nvidia.com/gpu]",
        "nvidia.com/gpu cannot be requested for a pod as a whole; accepted: cpu, memory, \
         hugepages-*",
    );
}
