//! What plans, stories and pictures say about devices, for clusters that a scenario sets up.

use gangline::Scheduler;

use crate::{
    output::{Report, text},
    picture,
    scenario::{Scenario, play},
};

/// One member of each kind on nodes of each kind.
const ZOO: &str = r"
nodes:
- name: n1
  cards: 4
  model: NVIDIA-A100-SXM4-40GB
  modes: [{mig-static: [3g.20gb@4, 1g.5gb@0]}, shared, {replicas: 4}, mig-dynamic]
- {name: n2, cards: 8, links: dgx1-v100}
- {name: n3, model: NVIDIA-A100-SXM4-40GB, slices: {1g.10gb: 3}}
work:
- {gang: small, min: 3, pod: {slices: {2g.10gb: 1}, only: [3]}}
- {gang: half, min: 2, pod: {share: {memory: 8Gi, compute: 250m}, overhead: {processes: 1, framework: true}}}
- {gang: copy, min: 2, pod: {replicas: 1}}
- {gang: pairs, min: 2, pod: {cards: 2, selector: {kubernetes.io/hostname: n2}}}
- {gang: loose, min: 2, pod: {slices: {1g.10gb: 1}, selector: {kubernetes.io/hostname: n3}}}
events: [{at: 0s}]
";

fn zoo() -> (Scheduler, Report) {
    let scenario = Scenario::parse(ZOO).expect("is well-formed");
    let (_, scheduler) = play(&scenario, None, |_, _| ()).expect("runs");
    let report = Report::new(&scheduler, scheduler.gangs(), Vec::new(), || ());
    (scheduler, report)
}

fn gang<'a>(report: &'a Report, name: &str) -> &'a crate::output::GangReport {
    let mut gangs = report.gangs.iter();
    gangs.find(|gang| gang.name == name).expect("is there")
}

#[test]
fn places_name_cards_and_parts() {
    let (_, report) = zoo();
    let places = |name| text::places_text(&gang(&report, name).members);
    assert_eq!(places("small"), "n1[3:2g.10gb@0,2,4]");
    assert_eq!(places("half"), "n1[1:2x8832MiB/250m]");
    assert_eq!(places("copy"), "n1[2:2/4]");
    assert_eq!(places("loose"), "n3[2x1g.10gb]");
    let pairs = places("pairs");
    assert!(
        pairs.starts_with("n2[") && pairs.contains("] (NV2"),
        "{pairs}"
    );
}

#[test]
fn data_has_parts_links_and_sums_of_memory() {
    let (_, report) = zoo();
    let member = |name| serde_json::to_value(&gang(&report, name).members[0]).expect("is data");
    let part = &member("half")["parts"][0];
    assert_eq!(
        *part,
        serde_json::json!({"card": 1, "share": {"memory_mib": 8832, "compute_milli": 250}})
    );
    assert_eq!(
        member("half")["memory"],
        serde_json::json!({
            "declared": 8192, "context": 420, "framework": 220, "communicator": 0, "engine": 0,
            "total": 8832,
        })
    );
    assert_eq!(
        member("small")["parts"][0]["slice"]["profile"],
        serde_json::json!("2g.10gb")
    );
    assert_eq!(
        member("loose")["parts"][0],
        serde_json::json!({"card": null, "slice": {"profile": "1g.10gb"}})
    );
    assert_eq!(member("copy")["parts"][0]["replica"]["of"], 4);
    assert_eq!(member("pairs")["links"]["bottleneck"], "NV2");
    assert_eq!(
        member("pairs").get("parts"),
        None,
        "whole cards have no parts"
    );
    let cards = serde_json::to_value(report.cards).expect("is data");
    let totals = &cards["nvidia.com/gpu"];
    assert_eq!(
        (&totals["held"], &totals["in_parts"]),
        (&7.into(), &3.into())
    );
}

#[test]
fn the_plan_lists_members_and_links_on_request() {
    let (_, report) = zoo();
    let plain = |members| {
        let text = text::plan(&report, true, members);
        anstream::adapter::strip_str(&text).to_string()
    };
    assert!(
        plain(false)
            .lines()
            .next()
            .is_some_and(|head| head.ends_with("LINKS"))
    );
    assert!(!plain(false).contains("small-1"));
    let all = plain(true);
    let line = |start: &str| {
        let mut lines = all.lines().map(str::trim_start);
        lines
            .find(|line| line.starts_with(start))
            .expect("is listed")
            .to_owned()
    };
    assert!(line("default/small-1").contains("n1[3:2g.10gb@"));
    assert!(line("default/pairs-0").contains("NV2"));
    assert!(all.contains("7 held (3 in parts)"), "{all}");
}

#[test]
fn the_story_adds_up_the_memory() {
    let (_, report) = zoo();
    let story = text::why(gang(&report, "half"));
    let sum = "8192 declared + 420 context + 220 framework = 8832  (half-0 and half-1)";
    assert!(story.contains(sum), "{story}");
    let story = text::why(gang(&report, "small"));
    assert!(!story.contains("declared"), "nothing is added: {story}");
}

#[test]
fn the_picture_has_segments_outlines_and_arcs() {
    let (scheduler, report) = zoo();
    let svg = picture::draw(&[], &scheduler.nodes(), &report.gangs);
    for expected in [
        "default/small: 2g.10gb@2 of nvidia.com/gpu 3",
        "default/half: 8832MiB/250m of nvidia.com/gpu 1",
        "default/copy: 1/4 of nvidia.com/gpu 2",
        "<title>3g.20gb@4</title>",
        "<title>replica</title>",
        "<title>cards 0 and 3: NV2</title>",
        "2 of 3 1g.10gb held",
        "segment of a card",
        "instance or replica that exists",
        "best links between cards",
        "NVIDIA-A100-SXM4-40GB",
    ] {
        assert!(svg.contains(expected), "{expected} is missing in {svg}");
    }
    let strong = svg.matches("stroke-width=\"2.6\"").count();
    assert_eq!(strong, 2, "one for each pair");
}
