//! Runs every seed, and so every crash ever found, through its target without a fuzzer.

use std::{collections::BTreeSet, fs, path::Path};

use gangline_fuzz::TARGETS;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn names_in(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn every_seed_keeps_its_targets_promises() {
    for (name, target) in TARGETS {
        let folder = root().join("seeds").join(name);
        let seeds = names_in(&folder);
        assert!(!seeds.is_empty(), "{name} has no seed");
        for seed in seeds {
            println!("{name}/{seed}"); // shown when the target panics
            target(&fs::read(folder.join(seed)).unwrap());
        }
    }
}

#[test]
fn functions_programs_and_seeds_have_the_same_names() {
    let functions: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).into()).collect();
    let programs: BTreeSet<String> = names_in(&root().join("fuzz_targets"))
        .iter()
        .map(|file| file.trim_end_matches(".rs").into())
        .collect();
    assert_eq!(functions, programs, "TARGETS and fuzz_targets/");
    assert_eq!(
        functions,
        names_in(&root().join("seeds")),
        "TARGETS and seeds/"
    );
}
