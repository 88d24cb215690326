//! Native groups as small clusters: which gangs, which roles, which reasons.

use gangline::gang::spec::Disruption;

use crate::intake::testing::world;

fn group(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\n\
         metadata: {{name: {name}, namespace: ml}}\nspec: {{{spec}}}\n---\n"
    )
}

fn composite(name: &str, spec: &str) -> String {
    let text = group(name, spec);
    text.replace("v1beta1", "v1alpha3")
        .replace("kind: PodGroup", "kind: CompositePodGroup")
}

fn pod(name: &str, group: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: ml}}\n\
         spec: {{priority: 5, schedulingGroup: {{podGroupName: {group}}}}}\n---\n"
    )
}

const GANG: &str = "schedulingPolicy: {gang: {minCount: 3}}";
const BASIC: &str = "schedulingPolicy: {basic: {}}";

#[test]
fn gang_has_a_minimum_and_basic_has_none() {
    let world = world(
        &[
            group("g", GANG),
            group("b", BASIC),
            pod("p", "g"),
            pod("q", "b"),
        ]
        .concat(),
    );
    assert_eq!(world.trees(), ["native/b: b>=0", "native/g: g>=3"]);
    assert_eq!(world.links(), ["p: native/g ", "q: native/b "]);
    assert!(world.complaints.is_empty(), "{:?}", world.complaint_lines());
    assert_eq!(world.gang("g").priority, 5);
}

#[test]
fn topology_disruption_and_priority_are_taken_over() {
    let spec = format!(
        "{GANG}, schedulingConstraints: {{topology: [{{key: example.com/rack}}]}}, \
         disruptionMode: {{all: {{}}}}, priority: 70, priorityClassName: low"
    );
    let world = world(&group("g", &spec));
    assert_eq!(world.trees(), ["native/g: g>=3@example.com/rack"]);
    assert_eq!(world.gang("g").disruption, Disruption::All);
    assert_eq!(world.gang("g").priority, 70);
}

#[test]
fn what_the_api_forbids_makes_the_group_wait_with_the_field() {
    for (spec, code, field) in [
        ("", "InvalidPolicy", "spec.schedulingPolicy"),
        (
            "schedulingPolicy: {}",
            "InvalidPolicy",
            "spec.schedulingPolicy",
        ),
        (
            "schedulingPolicy: {basic: {}, gang: {minCount: 1}}",
            "InvalidPolicy",
            "",
        ),
        (
            "schedulingPolicy: {gang: {}}",
            "InvalidMinimum",
            "spec.schedulingPolicy.gang.minCount",
        ),
        (
            "schedulingPolicy: {gang: {minCount: 0}}",
            "InvalidMinimum",
            "",
        ),
        (
            "schedulingPolicy: {gang: {minCount: -4}}",
            "InvalidMinimum",
            "",
        ),
        (
            "schedulingPolicy: {gang: {minCount: 3000000000}}",
            "InvalidMinimum",
            "",
        ),
        (
            "schedulingPolicy: {gang: {minCount: 1e30}}",
            "InvalidObject",
            "",
        ),
        (
            "schedulingPolicy: {gang: {minCount: many}}",
            "InvalidObject",
            "",
        ),
        (
            "schedulingPolicy: {basic: {}}, disruptionMode: {all: {}}",
            "InvalidDisruptionMode",
            "spec.disruptionMode",
        ),
        (
            "schedulingPolicy: {basic: {}}, schedulingConstraints: {topology: [{key: a}, {key: b}]}",
            "InvalidTopology",
            "spec.schedulingConstraints.topology",
        ),
    ] {
        let world = world(&[group("g", spec), pod("p", "g"), group("ok", GANG)].concat());
        let problem = world.gang("g").problem.as_ref().expect(spec);
        assert_eq!(problem.code, code, "{spec}");
        if !field.is_empty() {
            assert_eq!(problem.field, field, "{spec}");
        }
        assert!(world.gang("ok").problem.is_none());
        let [line] = &world.complaint_lines()[..] else {
            panic!("{spec}: {:?}", world.complaint_lines());
        };
        assert!(
            line.starts_with("dump, document 1: PodGroup ml/g: spec"),
            "{line}"
        );
    }
}

#[test]
fn a_tree_of_composites_is_one_gang_with_the_pod_groups_as_roles() {
    let under = |parent: &str, spec: &str| format!("parentCompositePodGroupName: {parent}, {spec}");
    let both = "schedulingPolicy: {gang: {minGroupCount: 2}}";
    let one = "schedulingPolicy: {gang: {minGroupCount: 1}}";
    let rack = "schedulingConstraints: {topology: [{key: rack}]}";
    let world = world(
        &[
            pod("w-0", "workers"),
            group("workers", &under("inner", &format!("{GANG}, {rack}"))),
            group(
                "leader",
                &under("inner", "schedulingPolicy: {gang: {minCount: 1}}"),
            ),
            group("watch", &under("job", BASIC)),
            composite("inner", &under("job", both)),
            composite(
                "job",
                &format!("{one}, priority: 9, disruptionMode: {{all: {{}}}}"),
            ),
            pod("l-0", "leader"),
        ]
        .concat(),
    );
    assert_eq!(
        world.trees(),
        [
            "native-composite/job: composite/job[1 of composite/inner[2 of leader>=1, \
         workers>=3@rack], watch>=0]"
        ]
    );
    assert_eq!(
        world.links(),
        [
            "l-0: native-composite/job leader",
            "w-0: native-composite/job workers"
        ]
    );
    assert_eq!(world.gang("job").priority, 9);
    assert_eq!(world.gang("job").disruption, Disruption::All);
    let basic = [composite("c", BASIC), group("g", &under("c", GANG))].concat();
    assert_eq!(
        super::super::testing::world(&basic).trees(),
        ["native-composite/c: composite/c[0 of g>=3]"]
    );
}

#[test]
fn groups_that_a_composite_still_lacks_are_waited_for() {
    let text = [
        composite("c", "schedulingPolicy: {gang: {minGroupCount: 3}}"),
        group("g", &format!("parentCompositePodGroupName: c, {GANG}")),
    ];
    assert_eq!(
        world(&text.concat()).trees(),
        ["native-composite/c: composite/c[2 of g>=3, c/(missing)>=1]"]
    );
}

#[test]
fn parents_in_a_circle_or_missing_harm_only_their_own_groups() {
    let under = |parent: &str| format!("parentCompositePodGroupName: {parent}, {GANG}");
    let both = "schedulingPolicy: {gang: {minGroupCount: 1}}";
    let world = world(
        &[
            composite("a", &format!("parentCompositePodGroupName: b, {both}")),
            composite("b", &format!("parentCompositePodGroupName: a, {both}")),
            composite(
                "self",
                &format!("parentCompositePodGroupName: self, {both}"),
            ),
            group("in-circle", &under("a")),
            group("orphan", &under("absent")),
            group("fine", GANG),
            pod("p", "in-circle"),
        ]
        .concat(),
    );
    assert_eq!(
        world.trees(),
        [
            "native/fine: fine>=3",
            "native/in-circle: in-circle>=1 !CyclicParents",
            "native/orphan: orphan>=1 !ParentNotFound",
        ]
    );
    assert_eq!(world.links(), ["p: native/in-circle "]);
    let lines = world.complaint_lines();
    assert_eq!(lines.len(), 5, "{lines:?}");
    assert!(
        lines
            .iter()
            .filter(|line| line.contains("is its own ancestor"))
            .count()
            == 4
    );
}

#[test]
fn a_tree_has_at_most_four_levels() {
    let both = "schedulingPolicy: {gang: {minGroupCount: 1}}";
    let chain = |depth: usize| {
        let mut text = composite("c1", both);
        for level in 2..=depth {
            let parent = format!("parentCompositePodGroupName: c{}, {both}", level - 1);
            text += &composite(&format!("c{level}"), &parent);
        }
        text + &group(
            "g",
            &format!("parentCompositePodGroupName: c{depth}, {GANG}"),
        )
    };
    assert!(world(&chain(3)).gang("c1").problem.is_none());
    assert_eq!(
        world(&chain(4)).gang("c1").problem.as_ref().unwrap().code,
        "TooDeep"
    );
    assert_eq!(
        world(&chain(300)).gang("c1").problem.as_ref().unwrap().code,
        "TooDeep"
    );
}

#[test]
fn a_missing_workload_is_a_warning() {
    let spec = format!("{GANG}, workloadRef: {{workloadName: w, templateName: t}}");
    let workload = "apiVersion: scheduling.k8s.io/v1beta1\nkind: Workload\n\
                    metadata: {name: w, namespace: ml}\n---\n";
    assert!(
        world(&[&group("g", &spec), workload].concat())
            .complaints
            .is_empty()
    );
    let world = world(&group("g", &spec));
    assert!(world.gang("g").problem.is_none());
    assert_eq!(world.complaint_lines().len(), 1);
}

#[test]
fn a_removed_version_is_named_with_what_is_accepted() {
    let world = world(&group("g", GANG).replace("v1beta1", "v1alpha2"));
    assert_eq!(world.gangs().count(), 0);
    assert_eq!(
        world.complaint_lines(),
        [
            "dump, document 1: PodGroup ml/g: apiVersion: scheduling.k8s.io/v1alpha2; accepted: \
         scheduling.k8s.io/v1beta1, scheduling.k8s.io/v1alpha3"
        ]
    );
}

#[test]
fn a_pod_with_the_link_of_an_older_version_is_not_placed_on_its_own() {
    let yaml = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: ml}\n\
                spec: {workloadRef: {name: w, podGroup: g}}\n";
    let world = world(yaml);
    let problem = world.pod("p").problem.as_ref().unwrap();
    assert_eq!(problem.code, "UnsupportedGroup");
    assert_eq!(problem.field, "spec.workloadRef");
}
