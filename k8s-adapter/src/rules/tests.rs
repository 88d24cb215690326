use std::sync::Arc;

use gangline::request::{
    HostPort, LabelSelector, NodeTest, Operator, Protocol, Requirement, TaintEffect,
    TolerationOperator,
};

use super::*;

fn pod(yaml: &str) -> api::Pod {
    serde_saphyr::from_str(yaml).unwrap()
}

/// The template of a pod in which nothing is wrong.
fn good(yaml: &str) -> Template {
    let mut problems = Problems::default();
    let template = template(&pod(yaml), |_| true, &mut problems);
    assert!(problems.is_empty(), "{problems:?}");
    template
}

/// The problems of a pod, one line each.
fn bad(yaml: &str) -> Vec<String> {
    let mut problems = Problems::default();
    template(&pod(yaml), |_| true, &mut problems);
    problems.iter().map(ToString::to_string).collect()
}

fn requirement(key: &str, operator: Operator, values: &[&str]) -> Requirement {
    Requirement {
        key: key.into(),
        operator,
        values: values.iter().map(|&value| value.into()).collect(),
    }
}

#[test]
fn node_affinity_with_every_operator_is_read() {
    let rules = good(
        "
spec:
  nodeSelector: {disk: ssd}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions:
          - {key: a, operator: In, values: [x, y]}
          - {key: b, operator: NotIn, values: [z]}
          - {key: c, operator: Exists}
          - {key: d, operator: DoesNotExist}
          - {key: e, operator: Gt, values: ['3']}
          - {key: f, operator: Lt, values: ['-3']}
        - matchFields: [{key: metadata.name, operator: In, values: [node-1]}]
        - {}
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 100, preference: {matchExpressions: [{key: c, operator: Exists}]}}
      - {weight: 1, preference: {}}
",
    )
    .nodes;
    assert_eq!(rules.selector.get("disk").map(String::as_str), Some("ssd"));
    let terms = rules.required.unwrap();
    let operators: Vec<_> = (terms[0].tests.iter())
        .map(|test| match test {
            NodeTest::Label(requirement) => requirement.operator,
            NodeTest::Name(_) => panic!("a label was named"),
        })
        .collect();
    assert_eq!(
        operators,
        [
            Operator::In,
            Operator::NotIn,
            Operator::Exists,
            Operator::DoesNotExist,
            Operator::Gt,
            Operator::Lt
        ]
    );
    let name = requirement("metadata.name", Operator::In, &["node-1"]);
    assert_eq!(terms[1].tests, [NodeTest::Name(name)]);
    // An empty required term stays and matches no node; an empty liked one likes all alike.
    assert!(terms[2].tests.is_empty());
    assert_eq!(rules.preferred.len(), 1);
    assert_eq!(rules.preferred[0].0, 100);
}

#[test]
fn node_affinity_that_makes_no_sense_is_named_by_field() {
    let problems = bad("
spec:
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions:
          - {key: a, operator: Near, values: [x]}
          - {key: b, operator: In}
          - {key: c, operator: Exists, values: [x]}
          - {key: d, operator: Gt, values: [many]}
          - {key: e, operator: Lt, values: ['1', '2']}
          - {operator: Exists}
        - matchFields:
          - {key: metadata.uid, operator: In, values: [x]}
          - {key: metadata.name, operator: Exists}
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 101, preference: {matchExpressions: [{key: c, operator: Exists}]}}
      - {preference: {matchExpressions: [{key: c, operator: Exists}]}}
");
    let required = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution\
                    .nodeSelectorTerms";
    let preferred = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution";
    assert_eq!(
        problems,
        [
            format!(
                "UnknownOperator: {required}[0].matchExpressions[0].operator: \"Near\"; accepted: \
                 In, NotIn, Exists, DoesNotExist, Gt, Lt"
            ),
            format!(
                "InvalidSelector: {required}[0].matchExpressions[1].values: [] with In; accepted: \
                 at least one value"
            ),
            format!(
                "InvalidSelector: {required}[0].matchExpressions[2].values: [\"x\"] with Exists; \
                 accepted: no values"
            ),
            format!(
                "InvalidSelector: {required}[0].matchExpressions[3].values: [\"many\"] with Gt; \
                 accepted: exactly one whole number"
            ),
            format!(
                "InvalidSelector: {required}[0].matchExpressions[4].values: [\"1\", \"2\"] with \
                 Lt; accepted: exactly one whole number"
            ),
            format!(
                "InvalidSelector: {required}[0].matchExpressions[5].key: empty; accepted: the \
                 name of a label"
            ),
            format!(
                "UnknownField: {required}[1].matchFields[0].key: \"metadata.uid\"; accepted: \
                 metadata.name"
            ),
            format!(
                "UnknownOperator: {required}[1].matchFields[1].operator: \"Exists\"; accepted: \
                 In, NotIn"
            ),
            format!("InvalidWeight: {preferred}[0].weight: 101; accepted: 1 to 100"),
            format!("InvalidWeight: {preferred}[1].weight: absent; accepted: 1 to 100"),
        ]
    );
    let empty = "spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution:
                 {nodeSelectorTerms: []}}}}";
    assert_eq!(
        bad(empty),
        [format!(
            "InvalidSelector: {required}: empty; accepted: at least one term"
        )]
    );
}

#[test]
fn tolerations_are_read_with_their_defaults() {
    let tolerations = good(
        "spec: {tolerations: [{key: gpu, value: 'yes', effect: NoSchedule}, {operator: Exists},
                              {key: k, operator: Exists, tolerationSeconds: 300}]}",
    )
    .nodes
    .tolerations;
    assert_eq!(tolerations[0].operator, TolerationOperator::Equal);
    assert_eq!(tolerations[0].effect, Some(TaintEffect::NoSchedule));
    assert_eq!((&*tolerations[1].key, tolerations[1].effect), ("", None));
    assert_eq!(tolerations[2].operator, TolerationOperator::Exists);
}

#[test]
fn tolerations_that_make_no_sense_are_named() {
    assert_eq!(
        bad(
            "spec: {tolerations: [{key: a, operator: Like}, {value: x}, {key: a, effect: Never},
                                  {key: a, operator: Exists, value: x}]}"
        ),
        [
            "InvalidToleration: spec.tolerations[0].operator: \"Like\"; accepted: Equal, Exists",
            "InvalidToleration: spec.tolerations[1].operator: \"\"; accepted: Exists when there is \
             no key",
            "InvalidToleration: spec.tolerations[2].effect: \"Never\"; accepted: NoSchedule, \
             PreferNoSchedule, NoExecute",
            "InvalidToleration: spec.tolerations[3].value: \"x\"; accepted: empty with operator \
             Exists",
        ]
    );
}

fn ports(yaml: &str) -> Vec<(u16, Protocol, String)> {
    let ports = good(yaml).host_ports.into_iter();
    ports
        .map(
            |HostPort {
                 port,
                 protocol,
                 address,
             }| (port, protocol, address),
        )
        .collect()
}

#[test]
fn host_ports_of_all_that_keeps_running_are_counted() {
    assert_eq!(
        ports(
            "
spec:
  containers:
  - ports: [{containerPort: 80, hostPort: 8080}, {containerPort: 81}]
  - ports: [{containerPort: 53, hostPort: 53, protocol: UDP, hostIP: 10.0.0.1}]
  initContainers:
  - ports: [{containerPort: 1, hostPort: 1}]
  - {restartPolicy: Always, ports: [{containerPort: 2, hostPort: 2, protocol: SCTP}]}
"
        ),
        [
            (2, Protocol::Sctp, String::new()),
            (53, Protocol::Udp, "10.0.0.1".into()),
            (8080, Protocol::Tcp, String::new()),
        ]
    );
}

#[test]
fn on_the_hosts_network_container_ports_are_host_ports() {
    let yaml = "spec: {hostNetwork: true, containers: [{ports: [{containerPort: 80},
                       {containerPort: 81, hostPort: 81}, {containerPort: 80}]}]}";
    let numbers: Vec<u16> = ports(yaml).into_iter().map(|(port, ..)| port).collect();
    assert_eq!(numbers, [80, 81]);
}

#[test]
fn ports_that_do_not_exist_are_named() {
    assert_eq!(
        bad(
            "spec: {containers: [{ports: [{hostPort: 70000}, {hostPort: -1},
                                          {hostPort: 1, protocol: ICMP}]}]}"
        ),
        [
            "InvalidPort: spec.containers[0].ports[0].hostPort: 70000; accepted: 1 to 65535",
            "InvalidPort: spec.containers[0].ports[1].hostPort: -1; accepted: 1 to 65535",
            "InvalidPort: spec.containers[0].ports[2].protocol: \"ICMP\"; accepted: TCP, UDP, SCTP",
        ]
    );
}

#[test]
fn relations_to_other_pods_are_read_with_namespaces_and_own_labels() {
    let relations = good(
        "
metadata: {namespace: prod, labels: {app: web, version: v2}}
spec:
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: rack
        labelSelector: {matchLabels: {app: cache}, matchExpressions: [{key: old, operator: DoesNotExist}]}
        namespaces: [b, a, b]
        matchLabelKeys: [version, absent]
        mismatchLabelKeys: [app]
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 5, podAffinityTerm: {topologyKey: zone, labelSelector: {}, namespaceSelector: {}}}
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: kubernetes.io/hostname}
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 7, podAffinityTerm: {topologyKey: zone, labelSelector: {matchLabels: {app: web}}}}
",
    )
    .relations;
    let affinity = &relations.affinity[0];
    assert_eq!(affinity.topology_key, "rack");
    assert_eq!(affinity.namespaces.names, ["a", "b"]);
    assert_eq!(
        affinity.selector.requirements,
        [
            requirement("app", Operator::In, &["cache"]),
            requirement("old", Operator::DoesNotExist, &[]),
            requirement("version", Operator::In, &["v2"]),
            requirement("app", Operator::NotIn, &["web"]),
        ]
    );
    // No selector selects nothing, an empty one everything.
    let nothing = &relations.anti_affinity[0];
    assert!(
        !nothing
            .selector
            .matches(&[("app".into(), "web".into())].into())
    );
    assert_eq!(nothing.namespaces.selector, None);
    let (weight, liked) = &relations.preferred[0];
    assert_eq!((*weight, &liked.selector), (5, &LabelSelector::default()));
    assert_eq!(liked.namespaces.selector, Some(LabelSelector::default()));
    assert_eq!(relations.preferred[1].0, -7);
}

#[test]
fn spread_is_read_with_its_defaults() {
    let spread = good(
        "
metadata: {labels: {app: web, hash: abc}}
spec:
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule,
     labelSelector: {matchLabels: {app: web}}, matchLabelKeys: [hash]}
  - {maxSkew: 2, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway, labelSelector: {},
     nodeAffinityPolicy: Ignore, nodeTaintsPolicy: Honor}
  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, minDomains: 3}
",
    )
    .relations
    .spread;
    assert!(spread[0].required && spread[0].honor_node_affinity && !spread[0].honor_taints);
    assert_eq!(spread[0].selector.requirements.len(), 2);
    assert!(!spread[1].required && !spread[1].honor_node_affinity && spread[1].honor_taints);
    assert_eq!(spread[1].max_skew, 2);
    let labels = [("app".into(), "web".into())].into();
    assert!(
        !spread[1].selector.matches(&labels),
        "an empty selector counts nothing here"
    );
    assert!(!spread[2].selector.matches(&labels));
    assert_eq!(spread[2].min_domains, 3);
}

#[test]
fn relations_that_make_no_sense_are_named() {
    let term = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]";
    assert_eq!(
        bad(
            "spec: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
                {topologyKey: rack, labelSelector: {matchExpressions: [
                    {key: a, operator: Gt, values: ['1']}]}}, {labelSelector: {}}]}}}"
        ),
        [
            format!(
                "UnknownOperator: {term}.labelSelector.matchExpressions[0].operator: \"Gt\"; \
                 accepted: In, NotIn, Exists, DoesNotExist"
            ),
            format!(
                "MissingTopologyKey: {}.topologyKey: empty; accepted: the name of a node label",
                term.replace("[0]", "[1]")
            ),
        ]
    );
    assert_eq!(
        bad("spec: {topologySpreadConstraints: [
                {maxSkew: 0, topologyKey: a, whenUnsatisfiable: DoNotSchedule},
                {maxSkew: 1, topologyKey: a},
                {maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway, minDomains: 2},
                {maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, minDomains: -2},
                {maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule,
                 nodeTaintsPolicy: Maybe}]}"),
        [
            "InvalidSpread: spec.topologySpreadConstraints[0].maxSkew: 0; accepted: a whole number \
             from 1 to 4294967295",
            "InvalidSpread: spec.topologySpreadConstraints[1].whenUnsatisfiable: \"\"; accepted: \
             ScheduleAnyway, DoNotSchedule",
            "InvalidSpread: spec.topologySpreadConstraints[2].minDomains: 2; accepted: only with \
             whenUnsatisfiable DoNotSchedule",
            "InvalidSpread: spec.topologySpreadConstraints[3].minDomains: -2; accepted: a whole \
             number from 1 to 4294967295",
            "InvalidSpread: spec.topologySpreadConstraints[4].nodeTaintsPolicy: \"Maybe\"; \
             accepted: Ignore, Honor",
        ]
    );
}

#[test]
fn the_longest_run_is_the_shorter_of_deadline_and_annotation() {
    let runtime = |deadline: &str, annotation: &str| {
        let annotations = match annotation {
            "" => String::new(),
            text => format!("{{gangline.io/max-runtime: {text}}}"),
        };
        good(&format!(
            "{{metadata: {{annotations: {annotations}}}, spec: {{activeDeadlineSeconds: {deadline}}}}}"
        ))
        .max_runtime
        .map(Nanos::as_secs)
    };
    assert_eq!(runtime("null", ""), None);
    assert_eq!(runtime("60", ""), Some(60));
    assert_eq!(runtime("null", "90s"), Some(90));
    assert_eq!(runtime("null", "1h30m"), Some(5400));
    assert_eq!(runtime("60", "10m"), Some(60));
    assert_eq!(runtime("3600", "10m"), Some(600));
    for text in ["soon", "10", "-10s", "0s", "''", "9999999999999999999h"] {
        let problems = bad(&format!(
            "metadata: {{annotations: {{gangline.io/max-runtime: {text}}}}}"
        ));
        assert_eq!(problems.len(), 1, "{text}");
        assert!(
            problems[0].starts_with("InvalidDuration: metadata.annotations["),
            "{problems:?}"
        );
    }
    assert_eq!(
        bad("spec: {activeDeadlineSeconds: 0}"),
        ["InvalidDeadline: spec.activeDeadlineSeconds: 0; accepted: a whole number above 0"]
    );
}

#[test]
fn device_claims_are_refused_rather_than_forgotten() {
    assert_eq!(
        bad("spec: {resourceClaims: [{name: gpu, resourceClaimTemplateName: x}]}"),
        [
            "UnsupportedResourceClaims: spec.resourceClaims: 1 given; accepted: none, device \
             claims are not planned yet"
        ]
    );
}

#[test]
fn pods_that_differ_only_in_labels_that_nobody_selects_share_a_template() {
    let member = |index: u32| {
        pod(&format!(
            "{{metadata: {{labels: {{app: web, apps.kubernetes.io/pod-index: '{index}'}}}},
               spec: {{topologySpreadConstraints: [{{maxSkew: 1, topologyKey: zone,
               whenUnsatisfiable: DoNotSchedule, labelSelector: {{matchLabels: {{app: web}}}}}}]}}}}"
        ))
    };
    let mut templates = Templates::default();
    assert!(templates.learn(&member(0).spec));
    assert!(
        !templates.learn(&member(1).spec),
        "nothing new the second time"
    );
    let mut problems = Problems::default();
    let first = templates.template(&member(0), &mut problems);
    assert!(Arc::ptr_eq(
        &first,
        &templates.template(&member(1), &mut problems)
    ));
    assert_eq!(first.labels.keys().collect::<Vec<_>>(), ["app"]);

    // Somebody asks for the index: from now on it tells pods apart.
    let curious = pod(
        "spec: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
            {topologyKey: zone, labelSelector: {matchExpressions: [
                {key: apps.kubernetes.io/pod-index, operator: Exists}]}}]}}}",
    );
    assert!(templates.learn(&curious.spec));
    let first = templates.template(&member(0), &mut problems);
    let second = templates.template(&member(1), &mut problems);
    assert!(!Arc::ptr_eq(&first, &second));
    assert_eq!(templates.len(), 3);
}
