//! Every scenario of `tests/scenarios` holds, and plays the same way twice.

use std::{
    fs,
    path::{Path, PathBuf},
};

use gangline_k8s::scenario::{Scenario, run};

fn scenarios(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() {
            scenarios(&path, found);
        } else if path.extension().is_some_and(|end| end == "yaml") {
            found.push(path);
        }
    }
}

#[test]
fn every_scenario_holds() {
    let mut files = Vec::new();
    scenarios(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios"),
        &mut files,
    );
    files.sort();
    assert!(!files.is_empty(), "there are scenarios");
    let mut failures = Vec::new();
    for file in &files {
        let name = file.display();
        let text = fs::read_to_string(file).expect("the scenario can be read");
        let played = Scenario::parse(&text).and_then(|scenario| {
            let first = run(&scenario, None, |_, _| ())?;
            let second = run(&scenario, None, |_, _| ())?;
            assert_eq!(
                first.decision_hash, second.decision_hash,
                "{name} plays differently"
            );
            Ok(first)
        });
        match played {
            Ok(outcome) if outcome.checked == 0 => failures.push(format!("{name} expects nothing")),
            Ok(outcome) if outcome.passed => {}
            Ok(outcome) => failures.push(format!("{name}\n{}", outcome.to_text())),
            Err(error) => failures.push(format!("{name}: {error}")),
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} failed\n{}",
        failures.len(),
        files.len(),
        failures.join("\n")
    );
}
