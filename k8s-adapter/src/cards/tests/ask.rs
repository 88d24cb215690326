//! What pods ask for.

use gangline::{
    bits::CardSet,
    device::{
        check_request,
        links::Nearness,
        overhead::{Communicator, Overhead},
    },
    request::{Apart, CardRequest, CardWant, ShareMemory, SliceChoice, SliceRequest},
};

use crate::{api, pod::Request, problem::Problems};

/// The request of a pod with these limits and annotations, and its problems.
fn read(limits: &str, annotations: &str) -> (Request, Vec<String>) {
    read_pod(&format!(
        "{{metadata: {{namespace: prod, annotations: {{{annotations}}}}},
           spec: {{containers: [{{name: main, resources: {{limits: {{{limits}}}}}}}]}}}}"
    ))
}

fn read_pod(yaml: &str) -> (Request, Vec<String>) {
    let pod: api::Pod = serde_saphyr::from_str(yaml).unwrap();
    let mut problems = Problems::default();
    let request = crate::pod::request(&pod, &mut problems);
    if let Some(cards) = &request.cards {
        assert_eq!(check_request(cards), Ok(()), "{yaml}");
    }
    (request, problems.iter().map(ToString::to_string).collect())
}

fn good(limits: &str, annotations: &str) -> CardRequest {
    let (request, problems) = read(limits, annotations);
    assert_eq!(problems, [""; 0], "{limits} {annotations}");
    assert!(request.resources.is_empty(), "{:?}", request.resources);
    request.cards.unwrap()
}

/// The only problem, and the request all the same.
fn bad(limits: &str, annotations: &str) -> (String, CardRequest) {
    let (request, mut problems) = read(limits, annotations);
    assert_eq!(problems.len(), 1, "{problems:?}");
    (problems.remove(0), request.cards.unwrap())
}

fn profiles(cards: Apart, slices: &[(u32, &str)]) -> CardWant {
    let slices = slices.iter().map(|&(count, profile)| SliceRequest {
        count,
        slice: SliceChoice::Profile(profile.into()),
    });
    CardWant::Slices {
        slices: slices.collect(),
        cards,
    }
}

fn shares(count: u32, memory: ShareMemory, compute_milli: u32) -> CardWant {
    CardWant::Shares {
        count,
        memory,
        compute_milli,
        cards: Apart::Distinct,
    }
}

#[test]
fn resource_names_say_what_is_asked_for() {
    let table = [
        ("nvidia.com/gpu: 2", "nvidia.com/gpu", CardWant::Whole(2)),
        ("amd.com/gpu: 1", "amd.com/gpu", CardWant::Whole(1)),
        (
            "nvidia.com/mig-1g.10gb: 2",
            "nvidia.com/gpu",
            profiles(Apart::Distinct, &[(2, "1g.10gb")]),
        ),
        (
            "nvidia.com/mig-1g.10gb.me: 1, nvidia.com/mig-3g.40gb: 1",
            "nvidia.com/gpu",
            profiles(Apart::Distinct, &[(1, "1g.10gb+me"), (1, "3g.40gb")]),
        ),
        (
            "nvidia.com/gpu.shared: 2",
            "nvidia.com/gpu",
            CardWant::Replicas {
                count: 2,
                cards: Apart::Any,
            },
        ),
    ];
    for (limits, kind, want) in table {
        let request = good(limits, "");
        assert_eq!((&*request.kind, request.want), (kind, want), "{limits}");
        assert_eq!(request.overhead, Overhead::NONE, "{limits}");
    }
}

#[test]
fn other_names_are_plain_resources() {
    let (request, problems) = read(
        "amd.com/cpx_nps4: 2, nvidia.com/mig-1g.10gb.shared: 1, aws.amazon.com/neuroncore: 1",
        "",
    );
    assert_eq!((problems.len(), request.cards), (0, None));
    assert_eq!(request.resources.len(), 3);
}

#[test]
fn hami_amounts_are_shares_of_so_many_cards() {
    let table = [
        (
            "nvidia.com/gpumem: 8000",
            shares(1, ShareMemory::Mib(8000), 0),
        ),
        (
            "nvidia.com/gpu: 2, nvidia.com/gpumem: 8000, nvidia.com/gpucores: 30",
            shares(2, ShareMemory::Mib(8000), 300),
        ),
        (
            "nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 25",
            shares(1, ShareMemory::Milli(250), 0),
        ),
        // Nothing said of memory means all of it.
        (
            "nvidia.com/gpu: 1, nvidia.com/gpucores: 30",
            shares(1, ShareMemory::Milli(1000), 300),
        ),
        (
            "nvidia.com/gpu: 1, nvidia.com/gpumem: 0",
            CardWant::Whole(1),
        ),
    ];
    for (limits, want) in table {
        let request = good(limits, "");
        assert_eq!(request.want, want, "{limits}");
        assert_eq!(request.overhead, Overhead::NONE, "the library counts it");
    }
}

#[test]
fn who_has_all_of_a_cards_time_in_hamis_words_has_the_card() {
    let request = good(
        "nvidia.com/gpu: 1, nvidia.com/gpumem: 8000, nvidia.com/gpucores: 100",
        "",
    );
    assert_eq!(request.want, shares(1, ShareMemory::Milli(1000), 1000));
    assert_eq!(request.min_card_memory_mib, 8000);
}

#[test]
fn hami_amounts_of_several_containers_are_not_added_up() {
    let (request, problems) = read_pod(
        "{spec: {containers: [
           {name: a, resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 3000}}},
           {name: b, resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 2000}}}]}}",
    );
    assert_eq!(problems, [""; 0]);
    let want = CardWant::Shares {
        count: 2,
        memory: ShareMemory::Mib(3000),
        compute_milli: 0,
        cards: Apart::Any,
    };
    assert_eq!(request.cards.map(|cards| cards.want), Some(want));
}

#[test]
fn a_container_of_hamis_that_says_nothing_of_memory_gets_all_of_it() {
    let memory = |one: &str, other: &str| {
        let container = |name: &str, limits: &str| {
            format!("{{name: {name}, resources: {{limits: {{nvidia.com/gpu: 1{limits}}}}}}}")
        };
        let containers = [container("a", one), container("b", other)].join(", ");
        let (request, problems) = read_pod(&format!("{{spec: {{containers: [{containers}]}}}}"));
        assert_eq!(problems, [""; 0]);
        match request.cards.unwrap().want {
            CardWant::Shares { memory, .. } => Some(memory),
            _ => None,
        }
    };
    let mib = ", nvidia.com/gpumem: 1000";
    let percent = ", nvidia.com/gpumem-percentage: 90";
    let cores = ", nvidia.com/gpucores: 50";
    // All of a card and no bound on its time is the card.
    assert_eq!(memory(mib, ""), None);
    assert_eq!(memory(cores, ""), Some(ShareMemory::Milli(1000)));
    assert_eq!(memory(percent, percent), Some(ShareMemory::Milli(900)));
    // Which is more nobody knows without a card.
    assert_eq!(memory(mib, percent), None);
    assert_eq!(
        memory(mib, &format!("{percent}{cores}")),
        Some(ShareMemory::Milli(1000))
    );
}

#[test]
fn kai_annotations_are_shares_without_a_resource() {
    let table = [
        (
            "gpu-fraction: '0.5'",
            shares(1, ShareMemory::Milli(500), 500),
        ),
        (
            "gpu-fraction: '0.25', gpu-fraction-num-devices: '2'",
            shares(2, ShareMemory::Milli(250), 250),
        ),
        ("gpu-memory: '2000'", shares(1, ShareMemory::Mib(2000), 0)),
    ];
    for (annotations, want) in table {
        let request = good("", annotations);
        assert_eq!((&*request.kind, request.want), ("nvidia.com/gpu", want));
        assert_eq!(request.overhead, Overhead::PROCESS);
    }
}

#[test]
fn words_that_are_nearly_kais_are_named() {
    for (annotations, near) in [
        ("gpu-fractions: '0.5'", "gpu-fraction"),
        ("gpu_fraction: '0.5'", "gpu-fraction"),
        ("GPU-Memory: '2000'", "gpu-memory"),
        (
            "gpu-fraction: '0.5', gpu-fraction-num-device: '2'",
            "gpu-fraction-num-devices",
        ),
    ] {
        let (_, problems) = read("", annotations);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0].ends_with(&format!("did you mean {near}?")),
            "{problems:?}"
        );
    }
    assert_eq!(read("", "gpu-type: a, gpu: b").1, [""; 0]);
    let alone = read("", "gpu-fraction-num-devices: '3'").1;
    assert_eq!(
        alone,
        [
            "InvalidAnnotation: metadata.annotations[gpu-fraction-num-devices]: \"3\"; accepted: with \
             gpu-fraction or gpu-memory"
        ]
    );
    let label = "{metadata: {labels: {gpu-fraction: '0.5'}}, spec: {containers: [{name: a}]}}";
    assert_eq!(
        read_pod(label).1,
        [
            "UnknownLabel: metadata.labels[gpu-fraction]: nobody reads it as a label; accepted: as an \
             annotation"
        ]
    );
}

#[test]
fn a_card_that_kai_keeps_for_its_shares_is_not_counted_twice() {
    let pod = |namespace: &str| {
        read_pod(&format!(
            "{{metadata: {{namespace: {namespace}, labels: {{runai-gpu-group: g}}}},
               spec: {{nodeName: n, containers: [{{resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]}}}}"
        ))
    };
    assert_eq!(pod("kai-resource-reservation").0.cards, None);
    assert_eq!(pod("runai-reservation").0.cards, None);
    assert!(pod("prod").0.cards.is_some());
}

#[test]
fn own_annotations_cut_the_cards_that_are_asked_for() {
    let slices = |count, memory_mib, compute_slices| CardWant::Slices {
        slices: [SliceRequest {
            count,
            slice: SliceChoice::AtLeast {
                memory_mib,
                compute_slices,
            },
        }]
        .into(),
        cards: Apart::Distinct,
    };
    let table = [
        ("", "gangline.io/slice: 20Gi", slices(1, 20_480, 0), 1),
        (
            "nvidia.com/gpu: 2",
            "gangline.io/slice: '20Gi,2c'",
            slices(2, 20_480, 2),
            1,
        ),
        (
            "nvidia.com/gpu: 3",
            "gangline.io/slice: 10G",
            slices(3, 9_537, 0),
            1,
        ),
        (
            "nvidia.com/gpu: 1",
            "gangline.io/share-memory: 20Gi",
            shares(1, ShareMemory::Mib(20_480), 0),
            1,
        ),
        (
            "",
            "gangline.io/share-memory: '25%', gangline.io/share-compute: 250m",
            shares(1, ShareMemory::Milli(250), 250),
            1,
        ),
        (
            "",
            "gangline.io/share-compute: '12.5%'",
            shares(1, ShareMemory::Mib(0), 125),
            0,
        ),
    ];
    for (limits, annotations, want, processes) in table {
        let request = good(limits, annotations);
        assert_eq!(request.want, want, "{limits} {annotations}");
        assert_eq!(request.overhead.processes, processes, "{annotations}");
    }
}

#[test]
fn conditions_are_read() {
    let request = good(
        "nvidia.com/gpu: 2",
        "gangline.io/card-near: nvlink-island, gangline.io/card-models: 'H100, NVIDIA-H200',
         gangline.io/card-memory: 79Gi, gangline.io/card-ids: '0,4-6',
         gangline.io/exclusive-cards: 'true', gangline.io/card-overhead: 'framework,nccl'",
    );
    assert_eq!(request.near, Nearness::NvlinkIsland);
    assert_eq!(request.models, ["H100", "NVIDIA-H200"]);
    assert_eq!(request.min_card_memory_mib, 79 * 1024);
    assert_eq!(request.only, Some(CardSet(0b111_0001)));
    assert_eq!(request.exclusive, "gang", "which one is not known yet");
    assert_eq!(
        request.overhead,
        Overhead {
            framework: true,
            communicator: Communicator::Many,
            ..Overhead::PROCESS
        }
    );
}

#[test]
fn slices_lie_as_the_pod_says() {
    let apart = |text: &str| {
        let annotations = format!("gangline.io/cards: {text}");
        good("nvidia.com/mig-1g.10gb: 2", &annotations).want
    };
    assert_eq!(apart("same"), profiles(Apart::Same, &[(2, "1g.10gb")]));
    assert_eq!(apart("any"), profiles(Apart::Any, &[(2, "1g.10gb")]));
}

#[test]
fn a_share_group_is_of_its_namespace_and_the_overhead_can_be_switched_off() {
    let request = good(
        "",
        "gangline.io/share-memory: 1Gi, gangline.io/share-group: team, gangline.io/card-overhead: off",
    );
    assert_eq!(request.share_group, "prod/team");
    assert_eq!(request.overhead, Overhead::NONE);
}

#[test]
fn overheads_are_lists_of_words() {
    let overhead = |text: &str| {
        let annotations = format!("gangline.io/card-overhead: '{text}'");
        good("nvidia.com/gpu: 1", &annotations).overhead
    };
    assert_eq!(overhead("process"), Overhead::PROCESS);
    assert_eq!(
        overhead("processes=2, nccl=nodes, communicators=3, engine"),
        Overhead {
            processes: 2,
            framework: false,
            communicator: Communicator::MultiNode,
            communicators: 3,
            engine: true,
        }
    );
}

#[test]
fn links_between_slices_are_refused_unless_they_are_not_needed() {
    let near = "gangline.io/card-near: nvlink-island";
    let (problem, request) = bad("nvidia.com/mig-1g.10gb: 2", near);
    assert!(
        problem.starts_with(
            "NoPeerToPeer: metadata.annotations[gangline.io/card-near]: nvlink-island of MIG \
             slices"
        ),
        "{problem}"
    );
    assert_eq!(request.near, Nearness::Any, "it counts if it runs");
    let needs_none = format!("{near}, gangline.io/no-peer-to-peer: 'true'");
    assert_eq!(
        good("nvidia.com/mig-1g.10gb: 2", &needs_none).near,
        Nearness::Any
    );
    assert_eq!(
        good("nvidia.com/gpu: 2", &needs_none).near,
        Nearness::NvlinkIsland
    );
}

#[test]
fn contradictions_are_named_and_the_resources_count() {
    let table = [
        (
            "nvidia.com/gpu: 1, nvidia.com/mig-1g.10gb: 1",
            "",
            "MixedCards: spec: asks for nvidia.com/gpu and nvidia.com/mig-1g.10gb; accepted: one \
             kind of cards in a pod",
            CardWant::Whole(1),
        ),
        (
            "nvidia.com/gpu: 1",
            "gpu-fraction: '0.5'",
            "MixedCards: spec: asks for nvidia.com/gpu and by gpu-fraction for parts of cards; \
             accepted: one of them",
            CardWant::Whole(1),
        ),
        (
            "nvidia.com/mig-1g.10gb: 3",
            "gangline.io/slice: 40Gi",
            "MixedCards: spec: asks for MIG devices and by gangline.io/slice for parts of cards; \
             accepted: one of them",
            CardWant::Slices {
                slices: [SliceRequest {
                    count: 3,
                    slice: SliceChoice::Profile("1g.10gb".into()),
                }]
                .into(),
                cards: Apart::Distinct,
            },
        ),
        (
            "nvidia.com/gpu.shared: 1",
            "gangline.io/slice: 5Gi",
            "MixedCards: spec: asks for nvidia.com/gpu.shared and by gangline.io/slice for parts of \
             cards; accepted: one of them",
            CardWant::Replicas {
                count: 1,
                cards: Apart::Any,
            },
        ),
        (
            "",
            "gangline.io/share-memory: 1Gi, gpu-memory: '2000'",
            "MixedCards: spec: asks for parts of cards by gangline.io/share-memory and by \
             gpu-memory; accepted: one of them",
            shares(1, ShareMemory::Mib(1024), 0),
        ),
    ];
    for (limits, annotations, expected, want) in table {
        let (problem, request) = bad(limits, annotations);
        assert_eq!(problem, expected);
        assert_eq!(request.want, want);
    }
}

#[test]
fn amounts_that_no_member_can_have_are_named_and_cut() {
    let (problem, request) = bad("nvidia.com/mig-1g.10gb: 9", "");
    assert_eq!(
        problem,
        "InvalidCards: spec: 9 slices in a pod; accepted: 1 to 8 in all"
    );
    assert_eq!(request.want, profiles(Apart::Distinct, &[(8, "1g.10gb")]));
    let (problem, _) = bad("nvidia.com/gpu.shared: 100", "");
    assert!(
        problem.contains("spec: 100 replicas in a pod; accepted: 1 to 8"),
        "{problem}"
    );
    let (problem, _) = bad(
        "nvidia.com/mig-1g.5gb: 1, nvidia.com/mig-1g.6gb: 1, nvidia.com/mig-1g.7gb: 1,
         nvidia.com/mig-1g.8gb: 1, nvidia.com/mig-1g.9gb: 1",
        "",
    );
    assert!(
        problem.contains("5 different MIG profiles in a pod; accepted: at most 4"),
        "{problem}"
    );
    let (problem, request) = bad("nvidia.com/gpu: 1, nvidia.com/gpucores: 300", "");
    assert_eq!(
        problem,
        "QuantityTooLarge: spec: nvidia.com/gpucores: 300; accepted: at most 100"
    );
    assert_eq!(request.want, shares(1, ShareMemory::Milli(1000), 1000));
}

#[test]
fn bad_annotations_are_named_and_the_rest_holds() {
    let table = [
        (
            "gangline.io/card-near: rack",
            "\"rack\"; accepted: nvlink-island, numa-node, any",
        ),
        (
            "gangline.io/card-memory: '-1Gi'",
            "\"-1Gi\"; accepted: an amount with its unit such as 79Gi",
        ),
        (
            "gangline.io/card-memory: 9E",
            "\"9E\"; accepted: an amount with its unit such as 79Gi",
        ),
        (
            "gangline.io/card-models: 'A,,B'",
            "\"A,,B\"; accepted: names of products with commas between them",
        ),
        (
            "gangline.io/card-ids: '64'",
            "\"64\"; accepted: numbers of cards from 0 to 63",
        ),
        (
            "gangline.io/card-ids: 3-1",
            "\"3-1\"; accepted: numbers of cards from 0 to 63",
        ),
        (
            "gangline.io/cards: apart",
            "\"apart\"; accepted: distinct, same, any",
        ),
        (
            "gangline.io/cards: same",
            "\"same\"; accepted: distinct, for whole cards",
        ),
        (
            "gangline.io/exclusive-cards: 'yes'",
            "\"yes\"; accepted: true, false",
        ),
        (
            "gangline.io/no-peer-to-peer: ''",
            "\"\"; accepted: true, false",
        ),
        ("gangline.io/share-group: ''", "\"\"; accepted: one word"),
        (
            "gangline.io/share-group: 'a b'",
            "\"a b\"; accepted: one word",
        ),
        (
            "gangline.io/card-memory: '80'",
            "\"80\"; accepted: an amount with its unit such as",
        ),
        (
            "gangline.io/card-overhead: 'off,nccl'",
            "\"off,nccl\"; accepted: off, or a list of",
        ),
        (
            "gangline.io/card-overhead: processes=0",
            "\"processes=0\"; accepted: off, or a list",
        ),
        (
            "gangline.io/slice: '0'",
            "\"0\"; accepted: memory with its unit, and compute slices if they matter",
        ),
        (
            "gangline.io/slice: '5Gi,c'",
            "\"5Gi,c\"; accepted: memory with its unit, and compute slices",
        ),
        (
            "gangline.io/share-memory: 101%",
            "\"101%\"; accepted: an amount with its unit such as",
        ),
        (
            "gangline.io/share-compute: '0'",
            "\"0\"; accepted: a part of one card such as 0.5",
        ),
        (
            "gangline.io/share-compute: '2'",
            "\"2\"; accepted: a part of one card such as 0.5",
        ),
    ];
    let whole = (
        "gangline.io/share-group: nb",
        "\"nb\"; accepted: on a pod that asks for a part of a card",
    );
    for (annotation, expected) in table.into_iter().chain([whole]) {
        let (problem, request) = bad("nvidia.com/gpu: 2", annotation);
        let key = annotation.split(':').next().unwrap();
        let front = format!("InvalidAnnotation: metadata.annotations[{key}]: {expected}");
        assert!(problem.starts_with(&front), "{problem}");
        assert_eq!(
            request,
            CardRequest::whole("nvidia.com/gpu", 2),
            "{annotation}"
        );
    }
    for annotation in [
        "gpu-fraction: '0'",
        "gpu-fraction: '1.5'",
        "gpu-memory: 1Gi",
    ] {
        let (request, problems) = read("", annotation);
        assert_eq!((problems.len(), request.cards), (1, None), "{annotation}");
    }
    let (problem, request) = bad("", "gpu-fraction: '0.5', gpu-fraction-num-devices: '0'");
    assert!(problem.contains("a whole number above 0"), "{problem}");
    assert_eq!(request.want, shares(1, ShareMemory::Milli(500), 500));
}

#[test]
fn fewer_cards_named_than_asked_for_is_a_mistake() {
    let (problem, _) = bad("nvidia.com/gpu: 3", "gangline.io/card-ids: '0,1'");
    assert_eq!(
        problem,
        "InvalidAnnotation: metadata.annotations[gangline.io/card-ids]: \"0,1\"; accepted: at least \
         3 cards, as many as it asks for"
    );
    let slices = "nvidia.com/mig-1g.10gb: 2";
    let (problem, _) = bad(slices, "gangline.io/card-ids: '0'");
    assert!(problem.contains("at least 2 cards"), "{problem}");
    good(slices, "gangline.io/card-ids: '0', gangline.io/cards: any");
}

#[test]
fn models_are_read_as_people_write_them() {
    let annotation = "gangline.io/card-models: 'nvidia-h100-80gb-hbm3, a100-40gb, Foo, \
                      NVIDIA-A100-SXM4-40GB, NVIDIA A100-SXM4-80GB'";
    assert_eq!(
        good("nvidia.com/gpu: 1", annotation).models,
        [
            "NVIDIA-H100-80GB-HBM3",
            "A100-40GB",
            "Foo",
            "NVIDIA-A100-SXM4-40GB",
            "A100-80GB"
        ]
    );
}

#[test]
fn annotations_of_a_pod_without_cards_mean_nothing() {
    let (request, problems) = read("cpu: 1", "gangline.io/card-near: nonsense");
    assert_eq!((request.cards, problems.len()), (None, 0));
}

#[test]
fn a_profile_with_a_slip_of_the_pen_is_guessed() {
    let (_, problems) = read("nvidia.com/mig-1g10gb: 1", "");
    assert_eq!(
        problems,
        [
            "UnknownProfile: spec: nvidia.com/mig-1g10gb; accepted: nvidia.com/mig-PROFILE such as \
             nvidia.com/mig-1g.5gb; did you mean nvidia.com/mig-1g.10gb?"
        ]
    );
}
