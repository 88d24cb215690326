//! Texts of drivers, annotations and documents.

use gangline::device::links::{Link, LinkError, LinkMatrix, Nic, known, names};
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
