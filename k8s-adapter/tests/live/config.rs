//! Settings from a file, and a log that programs read.

use std::fs;

use gangline_controlplane::ControlPlane;
use serde_json::Value;

use crate::support::{Cluster, VOLCANO, group, node};

#[test]
fn a_file_sets_what_no_flag_says() {
    let mut cluster = Cluster::start(&ControlPlane::builder().kwok()).unwrap();
    cluster.control_plane.apply(VOLCANO).unwrap();
    cluster.control_plane.create_node(&node("n1", 8)).unwrap();
    let file = cluster.control_plane.directory().join("gangline.yaml");
    let settings = "apiVersion: gangline.io/v1alpha1\nkind: Configuration\n\
                    schedulerNames: [nobody]\nlog: {format: json}\n";
    fs::write(&file, settings).unwrap();
    let file = file.display().to_string();
    cluster.run(&["--config", &file, "--scheduler-name", "gangline"]);
    cluster.control_plane.apply(&group("a", 2, 2, 1)).unwrap();
    cluster.wait_until("it is placed", || cluster.placed("a") == (2, 2));
    let log = cluster.log();
    let mut lines = log.lines().map(|line| {
        serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("is no JSON: {line}"))
    });
    let placed = lines.find(|line| line["fields"]["message"] == "placed");
    let placed = placed.expect("it is logged");
    assert_eq!(placed["span"]["namespace"], "default", "{placed}");
    assert_eq!(placed["span"]["gang"], "a");
    let bind = lines.find(|line| line["fields"]["message"] == "bind");
    assert_eq!(bind.expect("so are binds")["span"]["gang"], "a");
}
