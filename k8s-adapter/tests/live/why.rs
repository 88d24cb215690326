//! `gangline why --live` and `plan --live`: asked of the running scheduler, and without one.

use std::{fs, process::Command};

use gangline_controlplane::{ControlPlane, Project};
use serde_json::Value;

use crate::support::{Cluster, Listener, group, node};

/// What a command says, its warnings, and its exit code.
fn run(cluster: &Cluster, arguments: &[&str]) -> (Value, String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gangline"));
    command.args(arguments).args(["--output", "json"]);
    cluster.control_plane.attach(&mut command);
    let output = command.output().expect("it starts");
    let warnings = String::from_utf8(output.stderr).expect("is text");
    let said = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{warnings}"));
    (said, warnings, output.status.code())
}

fn gang<'a>(said: &'a Value, name: &str) -> &'a Value {
    let gangs = said["gangs"].as_array().expect("a list");
    let found = gangs.iter().find(|gang| gang["name"] == name);
    found.unwrap_or_else(|| panic!("{said}"))
}

#[test]
fn the_running_scheduler_tells_why_and_a_dump_does_without_it() {
    let mut cluster = Cluster::start(&ControlPlane::builder().kwok()).unwrap();
    cluster.control_plane.define(Project::Volcano).unwrap();
    cluster.control_plane.create_node(&node("n1", 4)).unwrap();
    let answers = Listener::free();
    cluster.run(&["--answer", &answers.address]);
    cluster.control_plane.apply(&group("a", 2, 2, 1)).unwrap();
    cluster.control_plane.apply(&group("b", 2, 2, 3)).unwrap();
    cluster.wait_until("one runs and one waits", || {
        cluster.placed("a") == (2, 2) && !cluster.why("b-1").0.is_empty()
    });
    let why = ["why", "--live", "--at", &answers.address, "default/b"];
    let (asked, warnings, code) = run(&cluster, &why);
    assert_eq!((warnings.as_str(), code), ("", Some(2)));
    let reason = &gang(&asked, "b")["reason"];
    assert_eq!(reason["code"], "DoesNotFit");

    let manifest = cluster.control_plane.directory().join("c.yaml");
    fs::write(&manifest, group("c", 2, 2, 1)).unwrap();
    let manifest = manifest.display().to_string();
    let plan = ["plan", "--live", "--at", &answers.address, &manifest];
    let (planned, _, _) = run(&cluster, &plan);
    assert_eq!(gang(&planned, "c")["verdict"], "placed", "{planned}");

    cluster.kill_scheduler();
    let (dumped, warnings, code) = run(&cluster, &why);
    assert_eq!(code, Some(2));
    assert!(warnings.contains("no scheduler answers"), "{warnings}");
    assert_eq!(&gang(&dumped, "b")["reason"], reason);
}
