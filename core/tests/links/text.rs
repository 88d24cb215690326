//! Texts of drivers, annotations and documents.

use gangline::device::links::{Link, LinkMatrix, Nic, known};
use proptest::prelude::*;

use crate::reference::{machine, machines};

fn topo(name: &str) -> String {
    let path = format!("{}/tests/links/topo/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn each_known_machine_is_what_its_driver_prints() {
    let mut seen: Vec<LinkMatrix> = Vec::new();
    for (name, matrix) in machines() {
        if !seen.contains(&matrix) {
            let parsed = LinkMatrix::from_topo_text(&topo(name));
            assert_eq!(parsed, Ok(matrix.clone()), "{name}");
            seen.push(matrix);
        }
    }
    let texts = std::fs::read_dir(format!("{}/tests/links/topo", env!("CARGO_MANIFEST_DIR")));
    assert_eq!(seen.len(), texts.unwrap().count());
}

fn check_round_trip(matrix: &LinkMatrix) {
    assert_eq!(
        LinkMatrix::from_topo_text(&matrix.to_text()).as_ref(),
        Ok(matrix)
    );
    assert_eq!(
        LinkMatrix::from_text(&matrix.to_text()).as_ref(),
        Ok(matrix)
    );
    let line = matrix.to_string();
    assert!(!line.contains('\n'));
    assert_eq!(LinkMatrix::from_text(&line).as_ref(), Ok(matrix));
}

#[test]
fn known_machines_are_read_back_as_they_are_written() {
    for (name, matrix) in machines() {
        check_round_trip(&matrix);
        assert_eq!(LinkMatrix::from_text(&format!(" {name}\n")), Ok(matrix));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_machines_are_read_back_as_they_are_written(matrix in machine(16)) {
        check_round_trip(&matrix);
    }
}

#[test]
fn one_line_is_for_an_annotation() {
    let pair = known("a100-pcie-bridged-4").unwrap();
    assert_eq!(
        pair.to_string(),
        "X NV12 SYS SYS @0; NV12 X SYS SYS @1; SYS SYS X NV12 @2; SYS SYS NV12 X @3"
    );
    let line = "X NV2/PHB@0;NV2/PHB X; ;mlx5_0 : PIX SYS;\n";
    let matrix = LinkMatrix::from_text(line).unwrap();
    assert_eq!(
        matrix.to_string(),
        "X NV2/PHB @0; NV2/PHB X; mlx5_0: PIX SYS"
    );
    assert_eq!((matrix.numa_node(0), matrix.numa_node(1)), (Some(0), None));
    assert_eq!(matrix.pcie(0, 1), Some(Link::HostBridge));
    assert_eq!(matrix.nearest_nic(0), Some(("mlx5_0", Link::SingleSwitch)));
    assert_eq!(LinkMatrix::from_text("X").unwrap().cards(), 1);
}

#[test]
fn tables_are_written_as_nvidia_smi_does() {
    let matrix = LinkMatrix::from_text("X NV4 @0; NV4 X; mlx5_0: PIX SYS").unwrap();
    assert_eq!(
        matrix.to_text(),
        "\tGPU0\tGPU1\tmlx5_0\tNUMA Affinity\n\
         GPU0\tX\tNV4\tPIX\t0\n\
         GPU1\tNV4\tX\tSYS\tN/A\n"
    );
}

/// Old drivers lack the last columns, virtual machines what is in them.
#[test]
fn columns_may_be_missing_or_empty() {
    let numa = |text: &str| {
        let matrix = LinkMatrix::from_topo_text(text).unwrap();
        assert_eq!(matrix.link(1, 0), Some(Link::HostBridge), "{text}");
        matrix.numa_node(1)
    };
    for (text, expected) in [
        ("\tGPU0\tGPU1\nGPU0\t X \tPHB\nGPU1\tPHB\t X ", None),
        (
            "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPHB\t0-7\nGPU1\tPHB\t X \t0-7",
            None,
        ),
        (
            "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPHB\t0-7\t0\nGPU1\tPHB\t X \t8-15\t3",
            Some(3),
        ),
        (
            "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n\
             GPU0\t X \tPHB\t0-7\t\t\tN/A\nGPU1\tPHB\t X \t0-7\t\t\tN/A\n",
            None,
        ),
        (
            "      GPU0 GPU1 CPU Affinity NUMA Affinity GPU NUMA ID\n\
             GPU0  X    PHB                             N/A\nGPU1  PHB  X                             N/A\n",
            None,
        ),
        // A virtual machine that does not know says all nodes.
        (
            "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n\
             GPU0\t X \tPHB\t0-95\t0-7\t\tN/A\nGPU1\tPHB\t X \t0-95\t0-7\t\tN/A\n",
            None,
        ),
        // Grace: the processor's node, then the nodes of the cards' memory.
        (
            "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n\
             GPU0\t X \tPHB\t0-71\t0,3-9,11-17\t\t2\nGPU1\tPHB\t X \t72-143\t1,19-25\t\t18\n",
            Some(1),
        ),
    ] {
        assert_eq!(numa(text), expected, "{text}");
    }
}

#[test]
fn old_names_of_classes_are_read() {
    let text = "\tGPU0\tGPU1\tGPU2\nGPU0\tX\tPSB\tSOC\nGPU1\tPSB\tX\tSOC\nGPU2\tSOC\tSOC\tX\n";
    let matrix = LinkMatrix::from_topo_text(text).unwrap();
    assert_eq!(matrix.to_string(), "X PIX SYS; PIX X SYS; SYS SYS X");
}

fn refusal(text: &str) -> String {
    LinkMatrix::from_text(text).expect_err(text).to_string()
}

#[test]
fn lost_separators_are_refused() {
    let spaces = topo("l40s-8");
    let joined = spaces.replacen("SYS     SYS", "SYSSYS", 1);
    assert_eq!(
        refusal(&joined),
        "cell GPU0/GPU4 of the link matrix is `SYSSYS`; SYS, NODE, PHB, PXB, PIX, NV1 to NV18, \
         XGMI1 to XGMI9 are accepted"
    );
    let header = spaces.replacen("GPU0    GPU1", "GPU0GPU1", 1);
    assert!(refusal(&header).starts_with("the text has no header; "));
    let header = spaces.replacen("GPU3    GPU4", "GPU3GPU4", 1);
    assert_eq!(
        refusal(&header),
        "the link matrix has `GPU3GPU4` where `GPU3` must be"
    );
}

#[test]
fn refusals_name_the_cell_and_what_is_accepted() {
    let cards: Vec<String> = (0..17).map(|card| format!("GPU{card}")).collect();
    let seventeen = cards.join("\t");
    let accepted = "SYS, NODE, PHB, PXB, PIX, NV1 to NV18, XGMI1 to XGMI9 are accepted";
    for (text, expected) in [
        (
            "X NV4; NV5 X",
            "cells GPU1/GPU0 and GPU0/GPU1 of the link matrix are `NV5` and `NV4`; only the same \
             is accepted"
                .to_owned(),
        ),
        ("X X; X X", format!("cell GPU1/GPU0 of the link matrix is X; {accepted} there")),
        (
            "X SYS; SYS SYS",
            "cell GPU1/GPU1 of the link matrix is `SYS`; only X is accepted there".to_owned(),
        ),
        ("X NV0; NV0 X", format!("cell GPU0/GPU1 of the link matrix is `NV0`; {accepted}")),
        ("X NV19; NV19 X", format!("cell GPU0/GPU1 of the link matrix is `NV19`; {accepted}")),
        ("X nv4; nv4 X", format!("cell GPU0/GPU1 of the link matrix is `nv4`; {accepted}")),
        ("X NV+4; NV4 X", format!("cell GPU0/GPU1 of the link matrix is `NV+4`; {accepted}")),
        ("X PHB/PIX; PHB/PIX X", format!("cell GPU1/GPU0 of the link matrix is `PHB/PIX`; {accepted}")),
        ("X NV4/NV1; NV4/NV1 X", format!("cell GPU1/GPU0 of the link matrix is `NV4/NV1`; {accepted}")),
        ("X SYS SYS; SYS X SYS", "row GPU0 of the link matrix has 3 cells; 2 are accepted".to_owned()),
        (
            "X SYS @300; SYS X",
            "the NUMA node of GPU0 is `300`; N/A and numbers from 0 to 255 are accepted".to_owned(),
        ),
        (
            "X SYS; SYS X; mlx5_0: PIX NV4",
            "cell mlx5_0/GPU1 of the link matrix is `NV4`; SYS, NODE, PHB, PXB, PIX are accepted"
                .to_owned(),
        ),
        (
            "X SYS; SYS X; mlx5_0: PIX",
            "row mlx5_0 of the link matrix has 1 cells; 2 are accepted".to_owned(),
        ),
        (
            "X SYS; SYS X; a: PIX PIX; a: PIX PIX",
            "a network card of the link matrix is called `a`; different names of letters, digits, \
             `_`, `-` and `.` that do not begin with GPU are accepted"
                .to_owned(),
        ),
        (&seventeen, "the link matrix has 17 cards; 1 to 16 are accepted".to_owned()),
        (
            "\tGPU0\tGPU1\nGPU0\tX\tSYS\n",
            "the link matrix ends where `GPU1` must be".to_owned(),
        ),
        (
            "\tGPU0\tGPU1\nGPU1\tX\tSYS\n",
            "the link matrix has `GPU1` where `GPU0` must be".to_owned(),
        ),
        (
            "\tGPU0\tGPU1\nGPU0\tX\n",
            "row GPU0 of the link matrix has 1 cells; 2 are accepted".to_owned(),
        ),
        (
            "\tGPU0\tGPU1\tCPU Affinity\nGPU0\tX\tSYS\t0-7\t0\n",
            "row GPU0 of the link matrix has 4 cells; 3 are accepted".to_owned(),
        ),
        (
            "\tGPU0\tmlx5_0\nGPU0\tX\tPIX\nmlx5_0\tSYS\tX\n",
            "cells mlx5_0/GPU0 and GPU0/mlx5_0 of the link matrix are `SYS` and `PIX`; only the \
             same is accepted"
                .to_owned(),
        ),
        ("", "the text has no header; a line of GPU0, GPU1, ... as `nvidia-smi topo -m` prints it is accepted".to_owned()),
    ] {
        assert_eq!(refusal(text), expected, "{text}");
    }
    assert!(refusal("dgx-9000").starts_with("`dgx-9000` is no known machine; dgx1-v100, "));
}

/// Errors quote what is wrong, but neither control characters nor megabytes of it.
#[test]
fn refusals_are_one_short_line() {
    let long = "x".repeat(100_000);
    for text in [
        format!("X SYS; SYS X; {long}: PIX"),
        format!("X SYS; SYS X; {long}: {long} {long}"),
        format!("X {long}; SYS X"),
        format!("X SYS @{long}; SYS X"),
        long.clone(),
        "X SYS; SYS X; a\rb: PIX PIX".into(),
        format!("\tGPU0{}\nGPU0 X", "\tnic".repeat(100_000)),
    ] {
        let error = refusal(&text);
        assert!(
            error.len() < 1_000 && !error.contains(['\n', '\r']),
            "{error}"
        );
    }
}

#[test]
fn a_matrix_from_rows_is_checked_too() {
    let nv4 = Some(Link::Nvlink(4));
    let rows = [[None, nv4], [nv4, None]];
    let new = |numa: &[Option<u8>], nics| {
        LinkMatrix::new(&rows, numa, nics).map_err(|error| error.to_string())
    };
    assert!(new(&[None, Some(1)], Vec::new()).is_ok());
    assert_eq!(
        new(&[None], Vec::new()),
        Err("the link matrix has NUMA nodes of 1 cards; 2 are accepted".into())
    );
    let nic = |index: usize| Nic {
        name: format!("nic{index}").into(),
        links: vec![Link::System; 2],
    };
    assert_eq!(
        new(&[None; 2], (0..65).map(nic).collect()),
        Err("the link matrix has 65 network cards; at most 64 are accepted".into())
    );
    let none: [[Option<Link>; 0]; 0] = [];
    let error = LinkMatrix::new(&none, &[], Vec::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the link matrix has 0 cards; 1 to 16 are accepted"
    );
    let impossible = Some(Link::Xgmi { hops: 0 });
    let error = LinkMatrix::new(
        &[[None, impossible], [impossible, None]],
        &[None; 2],
        Vec::new(),
    );
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("GPU1/GPU0 of the link matrix is `XGMI0`")
    );
}

#[test]
fn rocm_texts_are_checked() {
    let text = topo("mi210-8");
    for (from, to, expected) in [
        (
            "XGMI",
            "CXL",
            "cell GPU0/GPU1 of the link matrix is `CXL`; XGMI, PCIE are accepted",
        ),
        (
            "Numa Node: 0",
            "Numa Node: x",
            "the NUMA node of GPU0 is `x`; ",
        ),
        (
            "Link Type between",
            "Kind between",
            "the text has no matrix of link types; ",
        ),
    ] {
        let wrong = text.replacen(from, to, 1);
        let error = LinkMatrix::from_topo_text(&wrong).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    // Without weights and hops a link is one hop.
    let types = text.find("Link Type").map(|start| &text[start..]).unwrap();
    assert_eq!(
        LinkMatrix::from_topo_text(types),
        Ok(known("mi210-8").unwrap())
    );
}

#[cfg(feature = "serde")]
#[test]
fn in_documents_a_matrix_is_its_line() {
    use gangline::device::links::Nearness;

    let matrix = known("dgx1-v100").unwrap();
    let json = serde_json::to_string(&matrix).unwrap();
    assert_eq!(json, format!("\"{matrix}\""));
    assert_eq!(serde_json::from_str::<LinkMatrix>(&json).unwrap(), matrix);
    let by_name: LinkMatrix = serde_json::from_str("\"dgx1-v100\"").unwrap();
    assert_eq!(by_name, matrix);
    let error = serde_json::from_str::<LinkMatrix>("\"X NV4; NV5 X\"").unwrap_err();
    assert!(error.to_string().contains("only the same"), "{error}");
    let link: Link = serde_json::from_str("\"NV18\"").unwrap();
    assert_eq!(link, Link::Nvlink(18));
    assert_eq!(
        serde_json::to_string(&Nearness::NvlinkIsland).unwrap(),
        "\"nvlink-island\""
    );
}
