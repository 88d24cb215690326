//! What cards nodes have.

use std::fmt::Write as _;

use gangline::{
    bits::CardSet,
    cluster::{
        NodeCards,
        spec::{CardMode, MigInstance},
    },
    device::{check_cards, links, model_of},
};

use crate::{api, node::node_spec, problem::Problems};

/// The cards of a node with these labels, annotations and amounts, and its problems.
fn read(labels: &str, annotations: &str, allocatable: &str) -> (Option<NodeCards>, Vec<String>) {
    read_status(
        labels,
        annotations,
        &format!("{{allocatable: {{{allocatable}}}}}"),
    )
}

fn read_status(labels: &str, annotations: &str, status: &str) -> (Option<NodeCards>, Vec<String>) {
    let mut yaml = String::from("metadata:\n");
    writeln!(
        yaml,
        "  labels: {{{labels}}}\n  annotations: {{{annotations}}}"
    )
    .unwrap();
    writeln!(yaml, "status: {status}").unwrap();
    let node: api::Node = serde_saphyr::from_str(&yaml).unwrap_or_else(|_| panic!("{yaml}"));
    let mut problems = Problems::default();
    let mut spec = node_spec(&node, &mut problems);
    for cards in &spec.cards {
        assert_eq!(check_cards(cards), Ok(()), "{yaml}");
    }
    assert!(spec.cards.len() < 2);
    let problems = problems.iter().map(ToString::to_string).collect();
    (spec.cards.pop(), problems)
}

fn good(labels: &str, annotations: &str, allocatable: &str) -> NodeCards {
    let (cards, problems) = read(labels, annotations, allocatable);
    assert_eq!(problems, [""; 0], "{labels} {annotations} {allocatable}");
    cards.unwrap()
}

/// The only problem, and the cards all the same.
fn bad(labels: &str, annotations: &str, allocatable: &str) -> (String, NodeCards) {
    let (cards, mut problems) = read(labels, annotations, allocatable);
    assert_eq!(problems.len(), 1, "{problems:?}");
    (problems.remove(0), cards.unwrap())
}

const A100: &str = "nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB";
const H100: &str = "nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3, nvidia.com/gpu.memory: '81559'";

#[test]
fn labels_tell_product_and_memory_and_the_product_its_links() {
    let cards = good(H100, "", "nvidia.com/gpu: 8");
    assert_eq!((cards.count, cards.memory_mib), (8, 81_559));
    assert_eq!(cards.model, "NVIDIA-H100-80GB-HBM3");
    assert_eq!(cards.links, links::for_product("NVIDIA-H100-80GB-HBM3", 8));
    // Whichever cards are away: behind NVSwitch the others are joined as before.
    let label = format!("{H100}, nvidia.com/gpu.count: '8'");
    let links = good(&label, "", "nvidia.com/gpu: 4").links.unwrap();
    let board = links::for_product("NVIDIA-H100-80GB-HBM3", 8).unwrap();
    assert_eq!((links.cards(), links.link(0, 3)), (4, board.link(0, 7)));
    assert_eq!(good(&label, "", "nvidia.com/gpu: 1").links, None);
}

#[test]
fn mig_devices_are_slices_of_unknown_cards() {
    let cards = good(
        A100,
        "",
        "nvidia.com/gpu: 0, nvidia.com/mig-1g.5gb: 7, nvidia.com/mig-2g.10gb: 0,
         nvidia.com/mig-1g.5gb.me: 1",
    );
    assert_eq!(cards.count, 0);
    let slices: Vec<_> = cards.slices.iter().map(|(name, n)| (&**name, *n)).collect();
    assert_eq!(slices, [("1g.5gb", 7), ("1g.5gb+me", 1)]);
    // Case C121: what the label says of MIG does not matter.
    let odd = "nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB-MIG-INVALID";
    let cards = good(odd, "", "nvidia.com/gpu: 1, nvidia.com/mig-1g.5gb: 3");
    assert_eq!((cards.count, cards.slices.get("1g.5gb")), (1, Some(&3)));
}

#[test]
fn mig_devices_under_the_cards_name_are_counted_as_cards() {
    let labels = "nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB-MIG-1g.5gb,
                  nvidia.com/gpu.memory: '4864', nvidia.com/mig.strategy: single,
                  nvidia.com/gpu.count: '56', kai.scheduler/node-pool: a";
    let cards = good(labels, "", "nvidia.com/gpu: 56");
    assert_eq!((cards.count, cards.memory_mib), (56, 4_864));
    assert!(cards.modes.is_empty() && cards.links.is_none());
}

#[test]
fn renamed_replicas_are_spread_over_the_cards_that_labels_tell() {
    let labels = |count, replicas| {
        format!("nvidia.com/gpu.count: '{count}', nvidia.com/gpu.replicas: '{replicas}'")
    };
    let cards = good(
        &labels(2, 4),
        "",
        "nvidia.com/gpu.shared: 8, nvidia.com/gpu: 0",
    );
    assert_eq!(
        (cards.count, &*cards.modes),
        (2, &[CardMode::Replicas(4)][..])
    );
    // One card is away.
    let cards = good(&labels(2, 4), "", "nvidia.com/gpu.shared: 4");
    assert_eq!(
        (cards.count, &*cards.modes),
        (1, &[CardMode::Replicas(4)][..])
    );
    // Whole ones beside them.
    let cards = good(
        &labels(2, 4),
        "",
        "nvidia.com/gpu.shared: 4, nvidia.com/gpu: 1",
    );
    assert_eq!(cards.modes, [CardMode::Whole, CardMode::Replicas(4)]);
    // Without labels the annotation tells.
    let annotation = "gangline.io/cards: '{replicas: 4}'";
    let cards = good("", annotation, "nvidia.com/gpu.shared: 8");
    assert_eq!(
        (cards.count, &*cards.modes),
        (2, &[CardMode::Replicas(4)][..])
    );
    // Labels that do not go with the amount, or say nothing.
    for labels in [labels(1, 4), labels(2, 3), labels(2, 0), String::new()] {
        let (problem, cards) = bad(&labels, "", "nvidia.com/gpu.shared: 8");
        assert!(
            problem.starts_with("UnknownReplicas: metadata.labels["),
            "{problem}"
        );
        assert_eq!(
            (cards.count, &*cards.modes),
            (1, &[CardMode::Replicas(8)][..])
        );
    }
}

#[test]
fn replicas_under_the_cards_name_are_counted_and_called_replicas() {
    let numbers = "nvidia.com/gpu.count: '2', nvidia.com/gpu.replicas: '4'";
    let product = "nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3";
    // Feature discovery says it in the product's name; the number of replicas says it as well.
    for labels in [
        format!("{product}-SHARED, {numbers}"),
        format!("{product}, {numbers}"),
    ] {
        let cards = good(&labels, "", "nvidia.com/gpu: 8");
        assert_eq!(cards.count, 8);
        assert_eq!(cards.model, "NVIDIA-H100-80GB-HBM3-SHARED");
        assert!(cards.modes.is_empty() && cards.links.is_none());
    }
    let renamed = good(
        &format!("{product}, {numbers}"),
        "",
        "nvidia.com/gpu.shared: 8",
    );
    assert_eq!(renamed.model, "NVIDIA-H100-80GB-HBM3");
    let one = format!("{product}, nvidia.com/gpu.count: '8', nvidia.com/gpu.replicas: '1'");
    let one = good(&one, "", "nvidia.com/gpu: 8");
    assert_eq!(one.model, "NVIDIA-H100-80GB-HBM3");
}

#[test]
fn replicas_of_mps_under_the_cards_name_get_a_word() {
    let labels = "nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3-SHARED, nvidia.com/gpu.count: '2',
                  nvidia.com/gpu.replicas: '4', nvidia.com/gpu.sharing-strategy: mps";
    let (problem, cards) = bad(labels, "", "nvidia.com/gpu: 8");
    assert!(
        problem.starts_with("ReplicasLikeCards: metadata.labels[nvidia.com/gpu.sharing-strategy]"),
        "{problem}"
    );
    assert_eq!(cards.count, 8);
}

#[test]
fn hami_lists_its_cards_in_an_annotation() {
    let old = "hami.io/node-nvidia-register: 'GPU-a,10,32768,100,NVIDIA-Tesla \
               V100-PCIE-32GB,0,true,0,hami-core:GPU-b,10,32768,100,NVIDIA-Tesla \
               V100-PCIE-32GB,0,false,1,hami-core:'";
    let new = r#"hami.io/node-nvidia-register: '[
        {"id": "GPU-b", "index": 1, "count": 10, "devmem": 32768, "devcore": 100, "type": "V100"},
        {"id": "GPU-a", "count": 10, "devmem": 32768, "type": "V100", "health": true}]'"#;
    for annotation in [old, new] {
        let cards = good(
            "",
            annotation,
            "nvidia.com/gpu: 10, nvidia.com/gpumem: 32768",
        );
        assert_eq!((cards.count, cards.memory_mib), (2, 32_768));
        assert_eq!(cards.most_shares, 10);
        assert_eq!(cards.modes, [CardMode::Shared]);
        assert_eq!(cards.unhealthy, CardSet(0b10));
        assert!(cards.model.ends_with("V100") || cards.model.ends_with("V100-PCIE-32GB"));
    }
    // Without its device plugin a node has no cards.
    assert_eq!(read("", new, "nvidia.com/gpu: 0"), (None, vec![]));
    // What cannot be read says nothing of how many cards there are: what is counted are shares.
    let (cards, problems) = read("", "hami.io/node-nvidia-register: x", "nvidia.com/gpu: 10");
    assert_eq!(
        problems,
        [
            "InvalidAnnotation: metadata.annotations[hami.io/node-nvidia-register]: \"x\", so its cards \
             are not used; accepted: what HAMi's device plugin writes"
        ]
    );
    assert_eq!(cards, None);
}

/// Cards of a node of HAMi: MiB and product of each.
fn hami(cards: &[(u32, &str)]) -> String {
    let card = |(number, (memory, product))| {
        format!("GPU-{number},10,{memory},100,{product},0,true,{number},hami-core:")
    };
    let listed = (0..).zip(cards.iter().copied()).map(card);
    format!(
        "hami.io/node-nvidia-register: '{}'",
        listed.collect::<String>()
    )
}

#[test]
fn hami_calls_a_product_by_its_makers_name_twice() {
    let name = "NVIDIA-NVIDIA A100-SXM4-80GB";
    let cards = good("", &hami(&[(81_920, name)]), "nvidia.com/gpu: 10");
    assert_eq!(cards.model, "NVIDIA-A100-SXM4-80GB");
    assert!(model_of(&cards).is_some());
}

#[test]
fn hamis_shares_never_pass_for_cards() {
    let a100 = "NVIDIA-NVIDIA A100-SXM4-80GB";
    // More memory than there is (deviceMemoryScaling) is not promised.
    let (problem, cards) = bad(
        "",
        &hami(&[(163_840, a100), (163_840, a100)]),
        "nvidia.com/gpu: 20",
    );
    assert!(
        problem.contains("163840 MiB on a NVIDIA-A100-SXM4-80GB"),
        "{problem}"
    );
    assert_eq!((cards.count, cards.unhealthy), (2, CardSet::EMPTY));
    assert_eq!(cards.modes, [CardMode::Shared]);
    assert!(cards.memory_mib < 90_000);
    // Cards that differ: those of which there are most.
    let listed = hami(&[(15_360, "NVIDIA-Tesla T4"), (81_920, a100), (81_920, a100)]);
    let (problem, cards) = bad("", &listed, "nvidia.com/gpu: 30");
    assert!(problem.starts_with("CardsDiffer"), "{problem}");
    assert_eq!((cards.count, cards.closed), (3, CardSet(0b001)));
    assert!(cards.unhealthy.is_empty(), "no repair would help");
    assert_eq!(
        (&*cards.model, cards.memory_mib),
        ("NVIDIA-A100-SXM4-80GB", 81_920)
    );
    // MIG of a product that nobody knows: there are so many cards, and none is given.
    let mig = hami(&[(1000, "NVIDIA-Foo")]).replace("hami-core", "mig");
    let (_, cards) = bad("", &mig, "nvidia.com/gpu: 10");
    assert_eq!((cards.count, cards.closed), (1, CardSet(0b1)));
    // Too many to be told apart.
    let many = vec![(1000, "NVIDIA-Foo"); 65];
    let (cards, problems) = read("", &hami(&many), "nvidia.com/gpu: 650");
    assert_eq!((cards, problems.len()), (None, 1));
    // Two who share the same cards without knowing of each other.
    let pool = "kai.scheduler/node-pool: a";
    let (problem, cards) = bad(pool, &hami(&[(81_920, a100)]), "nvidia.com/gpu: 10");
    assert!(problem.starts_with("TwoSharers"), "{problem}");
    assert_eq!((cards.count, cards.closed), (1, CardSet(0b1)));
}

#[test]
fn googles_labels_name_the_product_where_nvidias_do_not() {
    let gke = "cloud.google.com/gke-accelerator: nvidia-h100-80gb";
    let cards = good(gke, "", "nvidia.com/gpu: 8");
    assert_eq!(cards.model, "nvidia-h100-80gb");
    assert!(model_of(&cards).is_some());
    let partition = format!("{gke}, cloud.google.com/gke-gpu-partition-size: 1g.10gb");
    let cards = good(&partition, "", "nvidia.com/gpu: 7");
    assert_eq!(cards.model, "nvidia-h100-80gb-MIG-1g.10gb");
    let shared = format!("{gke}, cloud.google.com/gke-gpu-sharing-strategy: time-sharing");
    let cards = good(&shared, "", "nvidia.com/gpu: 16");
    assert_eq!(cards.model, "nvidia-h100-80gb-SHARED");
    assert_eq!(
        good(&format!("{H100}, {gke}"), "", "nvidia.com/gpu: 8").model,
        "NVIDIA-H100-80GB-HBM3"
    );
}

#[test]
fn cards_in_a_pool_of_kai_are_shared() {
    let cards = good("kai.scheduler/node-pool: a", "", "nvidia.com/gpu: 8");
    assert_eq!(cards.modes, [CardMode::Shared]);
    let whole = "gangline.io/cards: whole";
    let cards = good("kai.scheduler/node-pool: a", whole, "nvidia.com/gpu: 8");
    assert_eq!(cards.modes, [CardMode::Whole]);
}

#[test]
fn an_annotation_says_how_cards_may_be_used() {
    let instance = |profile: &str, start| MigInstance {
        profile: profile.into(),
        start,
    };
    let fixed = CardMode::MigStatic(vec![instance("3g.20gb", 0), instance("1g.5gb", 6)]);
    let table = [
        ("shared", "nvidia.com/gpu: 2", 2, vec![CardMode::Shared]),
        (
            "{mode: shared}",
            "nvidia.com/gpu: 2",
            2,
            vec![CardMode::Shared],
        ),
        (
            "{replicas: 4}",
            "nvidia.com/gpu: 2",
            2,
            vec![CardMode::Replicas(4)],
        ),
        (
            "[whole, shared]",
            "nvidia.com/gpu: 2",
            2,
            vec![CardMode::Whole, CardMode::Shared],
        ),
        (
            "{count: 8, mode: mig-dynamic}",
            "cpu: 1",
            8,
            vec![CardMode::MigDynamic],
        ),
        (
            "[whole, {mig-static: [3g.20gb@0, 1g.5gb@6]}]",
            "nvidia.com/gpu: 1, nvidia.com/mig-3g.20gb: 1, nvidia.com/mig-1g.5gb: 1",
            2,
            vec![CardMode::Whole, fixed.clone()],
        ),
        // Nobody lists the instances.
        (
            "{count: 1, mig-static: [3g.20gb@0, 1g.5gb@6]}",
            "nvidia.com/gpu: 0",
            1,
            vec![fixed],
        ),
    ];
    for (text, allocatable, count, modes) in table {
        let cards = good(A100, &format!("gangline.io/cards: '{text}'"), allocatable);
        assert_eq!((cards.count, cards.modes), (count, modes), "{text}");
        assert!(cards.slices.is_empty(), "{text}");
    }
    let cards = good(
        "",
        "gangline.io/cards: '{memory: 48Gi}'",
        "nvidia.com/gpu: 1",
    );
    assert_eq!(cards.memory_mib, 48 * 1024);
}

#[test]
fn more_memory_than_a_product_has_is_refused() {
    let said = "gangline.io/cards: '{mode: shared, memory: 500Gi}'";
    let (problem, cards) = bad(A100, said, "nvidia.com/gpu: 1");
    assert!(
        problem.contains("memory: 512000 MiB on a NVIDIA-A100"),
        "{problem}"
    );
    assert!(problem.contains("accepted: at most "), "{problem}");
    assert!(cards.memory_mib < 100_000);
    let label = format!("{A100}, nvidia.com/gpu.memory: \"999999\"");
    let (problem, cards) = bad(&label, "", "nvidia.com/gpu: 1");
    assert!(problem.contains("nvidia.com/gpu.memory"), "{problem}");
    assert_eq!(cards.memory_mib, 0);
}

#[test]
fn cards_that_are_not_allocatable_are_known_by_number_of_them_only() {
    let withheld = |annotation: &str, allocatable: u32| {
        let status = format!(
            "{{capacity: {{nvidia.com/gpu: 8}}, allocatable: {{nvidia.com/gpu: {allocatable}}}}}"
        );
        let (cards, problems) = read_status("", annotation, &status);
        assert_eq!(problems, [""; 0]);
        cards.map(|cards| (cards.count, cards.withheld))
    };
    assert_eq!(withheld("", 8), Some((8, 0)));
    assert_eq!(withheld("", 6), Some((6, 2)));
    let numbers = "gangline.io/cards: '{unhealthy: [3, 5]}'";
    assert_eq!(withheld(numbers, 6), Some((8, 0)), "these are known");
    // Nothing is offered: all are out, and who holds some still does.
    for annotation in ["", numbers] {
        assert_eq!(withheld(annotation, 0), Some((8, 8)), "{annotation}");
    }
}

#[test]
fn sick_cards_are_known_by_number_only_when_all_are_named() {
    let read = |unhealthy: &str, allocatable: u32| {
        let annotation = format!("gangline.io/cards: '{{unhealthy: {unhealthy}}}'");
        let status = format!(
            "{{capacity: {{nvidia.com/gpu: 8}}, allocatable: {{nvidia.com/gpu: {allocatable}}}}}"
        );
        let (cards, problems) = read_status("", &annotation, &status);
        let cards = cards.map(|cards| (cards.count, cards.unhealthy.0));
        (cards, problems.len())
    };
    assert_eq!(read("[3]", 7), (Some((8, 0b1000)), 0));
    assert_eq!(read("[3]", 8), (Some((8, 0b1000)), 0), "the plugin is late");
    assert_eq!(
        read("[3]", 6),
        (Some((7, 0b1000)), 1),
        "another one, nobody says which: six can be used, and this one stays out"
    );
    assert_eq!(read("[3, 9]", 7), (Some((8, 0b1000)), 1));
    assert_eq!(read("[8]", 7), (Some((7, 0)), 1), "there is no such card");
    assert_eq!(read("[64]", 7), (Some((7, 0)), 1));
    assert_eq!(read("[7]", 6), (Some((6, 0)), 1), "it is one of the two");
}

#[test]
fn described_mig_cards_are_never_more_than_the_device_plugin_can_use() {
    let read = |text: &str, amounts: &str, usable: u32| {
        let annotation = format!("gangline.io/cards: '{text}'");
        let status = format!(
            "{{capacity: {{nvidia.com/gpu: 4}}, allocatable: {{nvidia.com/gpu: {usable}{amounts}}}}}"
        );
        let (cards, problems) = read_status(A100, &annotation, &status);
        let cards = cards.map(|cards| (cards.count, cards.modes.len(), cards.unhealthy.0));
        (cards, problems.len())
    };
    let all = "{mode: mig-dynamic, count: 4}";
    assert_eq!(read(all, "", 4), (Some((4, 1, 0)), 0));
    assert_eq!(read(all, "", 2), (Some((2, 1, 0)), 0), "two are away");
    let named = "{mode: mig-dynamic, count: 4, unhealthy: [1, 2]}";
    assert_eq!(read(named, "", 2), (Some((4, 1, 0b110)), 0));
    assert_eq!(read(named, "", 1), (Some((1, 0, 0)), 1), "another one");
    let mixed = "[whole, whole, whole, mig-dynamic]";
    assert_eq!(read(mixed, "", 3), (Some((3, 0, 0)), 1), "which one?");
    // The fifth card is in MIG mode, so the device plugin does not list it as a card.
    let beside = "[whole, whole, whole, whole, mig-dynamic]";
    let slices = ", nvidia.com/mig-1g.5gb: 7";
    assert_eq!(read(beside, slices, 4), (Some((5, 5, 0)), 0));
    assert_eq!(read(beside, "", 4), (Some((4, 0, 0)), 1));
    // Four whole cards are listed, and no instance.
    let fixed = "{count: 4, mig-static: [3g.20gb@4]}";
    assert_eq!(read(fixed, "", 4), (Some((4, 0, 0)), 1));
}

#[test]
fn links_are_read_and_must_be_of_these_cards() {
    let pair = good(
        "",
        "gangline.io/links: 'X NV4 @0; NV4 X @0'",
        "nvidia.com/gpu: 2",
    );
    assert_eq!(pair.links.map(|links| links.cards()), Some(2));
    let machine = links::names().next().unwrap();
    let count = links::known(machine).unwrap().cards();
    let annotation = format!("gangline.io/links: {machine}");
    let cards = good("", &annotation, &format!("nvidia.com/gpu: {count}"));
    assert_eq!(cards.links, links::known(machine));
    let (problem, cards) = bad("", &annotation, "nvidia.com/gpu: 3");
    assert!(
        problem.starts_with("InvalidCards: metadata.annotations[gangline.io/links]: cards.links"),
        "{problem}"
    );
    assert_eq!((cards.count, cards.links), (3, None));
    // A card is away.
    let status = format!(
        "{{capacity: {{nvidia.com/gpu: {count}}}, allocatable: {{nvidia.com/gpu: {}}}}}",
        count - 1
    );
    let (cards, problems) = read_status("", &annotation, &status);
    assert_eq!((cards.unwrap().links, problems.len()), (None, 0));
    // One of a board whose cards are all joined alike.
    let status = "{capacity: {nvidia.com/gpu: 8}, allocatable: {nvidia.com/gpu: 7}}";
    let (cards, problems) = read_status("", "gangline.io/links: hgx-h100-8", status);
    let links = cards.unwrap().links.map(|links| links.cards());
    assert_eq!((links, problems.len()), (Some(7), 0));
    let (problem, _) = bad("", "gangline.io/links: dgx-9000", "nvidia.com/gpu: 2");
    assert!(problem.starts_with("InvalidLinks: "), "{problem}");
    let (problem, _) = bad("", "gangline.io/links: hgx-h100-9", "nvidia.com/gpu: 2");
    assert!(problem.ends_with("; did you mean hgx-h100-8?"), "{problem}");
    let docs = include_str!("../../../../docs/input.md");
    for machine in links::names() {
        assert!(
            docs.contains(&format!("`{machine}`")),
            "{machine} is not documented"
        );
    }
}

#[test]
fn a_matrix_of_a_driver_is_read_and_17_cards_are_refused() {
    let matrix = |cards: usize| {
        let names: Vec<String> = (0..cards).map(|card| format!("GPU{card}")).collect();
        let rows = names.iter().enumerate().map(|(row, name)| {
            let cells = (0..cards).map(|column| if row == column { "X" } else { "NV18" });
            format!("{name}\t{}", cells.collect::<Vec<_>>().join("\t"))
        });
        let rows: Vec<_> = rows.collect();
        let text = format!("\t{}\n{}\n", names.join("\t"), rows.join("\n"));
        format!(
            "gangline.io/links: {}",
            serde_json::to_string(&text).unwrap()
        )
    };
    let cards = good("", &matrix(8), "nvidia.com/gpu: 8");
    assert_eq!(cards.links.map(|links| links.cards()), Some(8));
    let (problem, cards) = bad("", &matrix(17), "nvidia.com/gpu: 17");
    assert!(
        problem.contains("17 cards; 1 to 16 are accepted"),
        "{problem}"
    );
    assert_eq!((cards.count, cards.links), (17, None));
}

#[test]
fn the_annotations_are_for_cards_of_any_maker() {
    let (cards, problems) = read(
        "amd.com/gpu.product-name: AMD_Instinct_MI300X_OAM",
        "gangline.io/links: 'X XGMI1; XGMI1 X', gangline.io/cards: '{memory: 192Gi, unhealthy: [1]}'",
        "amd.com/gpu: 2, nvidia.com/gpu: 0, amd.com/cpx_nps4: 0",
    );
    assert_eq!(problems, [""; 0]);
    let cards = cards.unwrap();
    assert_eq!(
        (&*cards.kind, cards.count, cards.unhealthy.0),
        ("amd.com/gpu", 2, 0b10)
    );
    assert_eq!(
        (cards.memory_mib, cards.links.map(|links| links.cards())),
        (192 << 10, Some(2))
    );
}

#[test]
fn cards_are_not_given_out_while_their_layout_changes() {
    for (state, is_changing) in [
        ("pending", true),
        ("rebooting", true),
        ("failed", false),
        ("success", false),
    ] {
        let label = format!("{A100}, nvidia.com/mig.config.state: {state}");
        let allocatable = "nvidia.com/gpu: 2, nvidia.com/mig-1g.5gb: 7";
        let (cards, problems) = read(&label, "", allocatable);
        let cards = cards.unwrap();
        assert_eq!(
            (cards.count, cards.is_changing),
            (2, is_changing),
            "{state}"
        );
        assert_eq!(problems.len(), usize::from(is_changing));
        assert!(
            problems
                .iter()
                .all(|problem| problem.starts_with("MigReconfiguring: "))
        );
    }
    // Case C118: nothing is listed.
    let label = "nvidia.com/mig.config.state: pending";
    let (cards, problems) = read(label, "", "nvidia.com/gpu: 0");
    assert_eq!(cards, None);
    assert_eq!(
        problems,
        [
            "MigReconfiguring: metadata.labels[nvidia.com/mig.config.state]: \"pending\", so its \
          cards are not used; accepted: success, failed"
        ]
    );
}

#[test]
fn bad_descriptions_are_named_and_plain_cards_stay() {
    let table = [
        (
            "sharing",
            "\"sharing\"; accepted: whole, shared, mig-dynamic",
        ),
        ("{mode: {replicas: 1}}", "{\"replicas\":1}; accepted: whole"),
        ("{replicas: -2}", "{\"replicas\":-2}; accepted: whole"),
        ("[shared, 7]", "7; accepted: whole"),
        (
            "[whole, shared, whole]",
            "modes: 3 entries for 2 cards; accepted: a mode without a list for all, or 2 entries",
        ),
        (
            "[whole]",
            "modes: 1 entry for 2 cards; accepted: a mode without a list for all, or 2 entries",
        ),
        (
            "[mig-dynamic]",
            "modes: 1 entry for 2 cards; accepted: a mode without a list for all, or 2 entries",
        ),
        (
            "[shared, shared, shared]",
            "modes: 3 entries for 2 cards; accepted: a mode without a list for all, or 2 entries",
        ),
        (
            "{count: 2, modes: [mig-dynamic, mig-dynamic, mig-dynamic]}",
            "modes: 3 entries for 2 cards; accepted: a mode without a list for all, or 2 entries",
        ),
        (
            "{mode: mig-dynamic, count: 2, modes: [whole]}",
            "mode and modes; accepted: one of them",
        ),
        (
            "{mode: mig-dynamic, count: 17}",
            "cards that are whole or may be: 17; accepted: 2, which the device plugin lists",
        ),
        ("{count: 3}", "count: 3; accepted: 2, which there are"),
        ("{count: 65}", "65; accepted: 1 to 64"),
        (
            "{memory: lots}",
            "\"lots\"; accepted: an amount with its unit such as 80Gi",
        ),
        (
            "{memory: -1}",
            "-1; accepted: an amount with its unit such as 80Gi",
        ),
        (
            "{unhealthy: 3}",
            "3; accepted: a list of numbers of cards from 0 to 63",
        ),
        (
            "{unhealthy: [2]}",
            "unhealthy: 2; accepted: numbers below 2, which is how many cards there are",
        ),
        (
            "{colour: red}",
            "no such field; accepted: mode, modes, replicas, mig-static, count, memory, unhealthy",
        ),
        ("[", "; accepted: YAML or JSON such as {mode: shared}"),
        (
            "{replicas: 1001}",
            "cards.modes[0]: 1001 replicas; accepted: 2 to 1000",
        ),
    ];
    for (text, expected) in table {
        let annotation = format!("gangline.io/cards: '{text}'");
        let (problem, cards) = bad(A100, &annotation, "nvidia.com/gpu: 2");
        assert!(
            problem.contains("metadata.annotations[gangline.io/cards]"),
            "{problem}"
        );
        assert!(problem.contains(expected), "{text}: {problem}");
        assert_eq!(
            (cards.count, cards.modes.len(), cards.unhealthy.0),
            (2, 0, 0),
            "{text}"
        );
    }
    let (problem, cards) = bad(
        A100,
        "gangline.io/cards: '{count: 1, mig-static: [1g.5gb@0]}'",
        "nvidia.com/mig-1g.5gb: 2",
    );
    assert!(
        problem.contains("MIG instances: 1 x 1g.5gb, but the device plugin lists 2 x 1g.5gb"),
        "{problem}"
    );
    assert_eq!((cards.count, cards.slices.get("1g.5gb")), (0, Some(&2)));
    let (problem, _) = bad("", "gangline.io/cards: mig-dynamic", "nvidia.com/gpu: 2");
    assert!(
        problem.contains("MIG of \"\"; accepted: a product with MIG"),
        "{problem}"
    );
}

/// Nobody knows what such a card is, so it is nobody's; the others are what they are.
#[test]
fn cards_whose_instances_cannot_be_are_not_given_out() {
    let table = [
        (
            "{mig-static: [1g.5gb]}",
            "[\"1g.5gb\"]}; accepted: {mig-static: [PROFILE@START, ...]} such as {mig-static: [1g.10gb@6]}; \
             until it can be read the card is not used",
            0b11,
        ),
        (
            "{count: 2, mig-static: [1g.11gb@0]}",
            "cards.modes[0]: MIG profile \"1g.11gb\" of \"NVIDIA-A100-SXM4-40GB\"; accepted: 1g.5gb, ",
            0b11,
        ),
        (
            "{count: 2, mig-static: [3g.20gb@0, 1g.5gb@2]}",
            "these cards are not used: cards.modes[0]: 1g.5gb@2 is not legal or overlaps an instance \
             before it; accepted: a free start of the profile: 4, 5, 6",
            0b11,
        ),
        (
            "[shared, {mig-static: [3g.20gb@0, 1g.5gb@2]}]",
            "the card is not used: cards.modes[1]: 1g.5gb@2 is not legal or overlaps an instance before \
             it; accepted: a free start of the profile: 4, 5, 6",
            0b10,
        ),
        (
            "[{mig-static: 3g}, shared]",
            "[gangline.io/cards][0]: {\"mig-static\":\"3g\"}; accepted: {mig-static: ",
            0b01,
        ),
    ];
    for (text, expected, broken) in table {
        let annotation = format!("gangline.io/cards: '{text}'");
        let (problem, cards) = bad(A100, &annotation, "nvidia.com/gpu: 2");
        assert!(problem.contains(expected), "{text}: {problem}");
        assert_eq!((cards.count, cards.closed.0), (2, broken), "{text}");
        let shared = cards.modes.contains(&CardMode::Shared);
        assert_eq!(shared, text.contains("shared"), "{text}: {:?}", cards.modes);
    }
    // Those that the device plugin counts lie on these cards, so they are nobody's either.
    let annotation = "gangline.io/cards: '{count: 1, mig-static: [3g.20gb@1]}'";
    let (_, cards) = bad(A100, annotation, "nvidia.com/mig-3g.20gb: 2");
    assert!(cards.slices.is_empty());
    assert_eq!((cards.count, cards.closed.0), (1, 1));
    // Also where the rest of the description does not go with what there is.
    let annotation = "gangline.io/cards: '[{mig-static: [3g.20gb@0, 1g.5gb@1]}, whole]'";
    let status = "{allocatable: {nvidia.com/gpu: 1, nvidia.com/mig-1g.5gb: 1}, capacity: \
                  {nvidia.com/gpu: 2, nvidia.com/mig-1g.5gb: 1}}";
    let (cards, problems) = read_status(A100, annotation, status);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(cards.unwrap().slices.is_empty());
}

#[test]
fn mps_is_told_by_a_label_and_has_a_limit_of_its_own() {
    let mps = "nvidia.com/gpu.sharing-strategy: mps, nvidia.com/gpu.replicas: '4',
               nvidia.com/gpu.count: '2'";
    let cards = good(mps, "", "nvidia.com/gpu.shared: 8");
    assert_eq!(
        (cards.mps, &*cards.modes),
        (true, &[CardMode::Replicas(4)][..])
    );
    let turns = mps.replace("strategy: mps", "strategy: time-slicing");
    assert!(!good(&turns, "", "nvidia.com/gpu.shared: 8").mps);
    for (product, most) in [
        (A100, 48),
        ("nvidia.com/gpu.product: Tesla-V100-SXM2-32GB", 16),
    ] {
        let labels = format!("{product}, nvidia.com/gpu.sharing-strategy: mps");
        let annotation = format!("gangline.io/cards: '{{replicas: {}}}'", most + 1);
        let (problem, _) = bad(&labels, &annotation, "nvidia.com/gpu: 1");
        let expected = format!(
            "{} replicas; accepted: 2 to {most}, as cards are shared by MPS",
            most + 1
        );
        assert!(problem.contains(&expected), "{problem}");
    }
}

#[test]
fn eight_mi300x_reach_each_other_over_xgmi() {
    let label = "amd.com/gpu.product-name: AMD_Instinct_MI300X_OAM";
    let links = good(label, "", "amd.com/gpu: 8").links.unwrap();
    assert_eq!(
        links.link(0, 7).map(|link| link.to_string()),
        Some("XGMI1".into())
    );
    assert_eq!(good(label, "", "amd.com/gpu: 5").links, None);
}

#[test]
fn numbers_beyond_any_machine_are_named() {
    let (cards, problems) = read("", "", "nvidia.com/mig-1g.5gb: 4000000");
    assert_eq!(cards, None);
    assert_eq!(
        problems,
        [
            "QuantityTooLarge: status.allocatable[nvidia.com/mig-1g.5gb]: 4000000; accepted: at most \
          512"
        ]
    );
    let (problem, cards) = bad("", "gangline.io/cards: shared", "nvidia.com/gpu: 80");
    assert!(problem.contains("80 cards that are used in parts; accepted: at most 64"));
    assert_eq!((cards.count, cards.modes.len()), (80, 0));
    let (problem, _) = bad("nvidia.com/gpu.memory: much", "", "nvidia.com/gpu: 1");
    assert_eq!(
        problem,
        "InvalidLabel: metadata.labels[nvidia.com/gpu.memory]: \"much\"; accepted: a whole number"
    );
}

#[test]
fn a_mode_with_a_slip_of_the_pen_is_guessed() {
    let (problem, _) = bad("", "gangline.io/cards: share", "nvidia.com/gpu: 1");
    assert!(problem.ends_with("; did you mean shared?"), "{problem}");
}

#[test]
fn instances_and_replicas_that_are_not_offered_are_named() {
    let status = "{allocatable: {nvidia.com/mig-3g.20gb: 3, nvidia.com/mig-1g.5gb: 4}, capacity: \
                  {cpu: 8, nvidia.com/mig-3g.20gb: 4, nvidia.com/mig-1g.5gb: 4, nvidia.com/mig-2g.10gb: 1}}";
    let (cards, problems) = read_status(A100, "", status);
    let named = |name: &str, given: u32, there: u32| {
        format!(
            "NotAllocatable: status.allocatable[{name}]: {given} of the {there} in status.capacity: the \
             others are out of order or held back, and are not given"
        )
    };
    assert_eq!(
        problems,
        [
            named("nvidia.com/mig-2g.10gb", 0, 1),
            named("nvidia.com/mig-3g.20gb", 3, 4)
        ]
    );
    let slices = cards.map(|cards| cards.slices).unwrap_or_default();
    assert_eq!(slices.get("3g.20gb"), Some(&3));
    let labels = format!("{A100}, nvidia.com/gpu.count: '4', nvidia.com/gpu.replicas: '4'");
    let status =
        "{allocatable: {nvidia.com/gpu.shared: 12}, capacity: {nvidia.com/gpu.shared: 16}}";
    let (_, problems) = read_status(&labels, "", status);
    assert_eq!(problems, [named("nvidia.com/gpu.shared", 12, 16)]);
}

/// No doubt about what they are: cards of a model without MIG have no instances.
#[test]
fn instances_of_cards_that_have_no_mig_change_nothing() {
    let annotation = "gangline.io/cards: '[{mig-static: [1g.5gb@0]}, mig-dynamic]'";
    let label = "nvidia.com/gpu.product: NVIDIA-L4";
    let (problem, cards) = bad(label, annotation, "nvidia.com/gpu: 2");
    assert!(
        problem.contains("cards.modes[0]: MIG of \"NVIDIA-L4\"; accepted: a product with MIG"),
        "{problem}"
    );
    assert_eq!((cards.count, cards.modes.len(), cards.closed.0), (2, 0, 0));
}
