use super::*;

const START: Timestamp = Timestamp(Nanos::from_secs(100));

fn read<T: serde::de::DeserializeOwned>(yaml: &str) -> T {
    serde_saphyr::from_str(yaml).unwrap()
}

fn names(pods: &[Pod]) -> Vec<&str> {
    pods.iter().map(|pod| &*pod.metadata.name).collect()
}

fn label<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    pod.metadata.labels.get(key).map(|value| &**value)
}

fn existing(pods: &[&str]) -> ExistingPods {
    let mut existing = ExistingPods::default();
    for yaml in pods {
        existing.add(&read(yaml));
    }
    existing
}

const WEB: &str = "
metadata: {name: web, namespace: prod, uid: 6ba7b810-9dad-11d1-80b4-00c04fd430c8}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {scheduling.k8s.io/group-name: g}}
    spec: {schedulerName: volcano, containers: [{resources: {limits: {nvidia.com/gpu: 1}}}]}
";

#[test]
fn a_stateful_sets_pods_have_its_numbers_labels_and_owner() {
    let pods = stateful_set(&read(WEB), &ExistingPods::default(), START).unwrap();
    assert_eq!(names(&pods), ["web-0", "web-1", "web-2"]);
    let pod = &pods[1];
    assert_eq!(&*pod.metadata.namespace, "prod");
    assert_eq!(label(pod, "app"), Some("web"));
    assert_eq!(
        label(pod, "statefulset.kubernetes.io/pod-name"),
        Some("web-1")
    );
    assert_eq!(label(pod, "apps.kubernetes.io/pod-index"), Some("1"));
    assert!(
        pod.metadata
            .annotations
            .contains_key("scheduling.k8s.io/group-name")
    );
    let owner = pod.metadata.controller().unwrap();
    assert_eq!(
        (&*owner.api_version, &*owner.kind, &*owner.name),
        ("apps/v1", "StatefulSet", "web")
    );
    assert_eq!(&*owner.uid, "6ba7b810-9dad-11d1-80b4-00c04fd430c8");
    assert_eq!(&*pod.spec.scheduler_name, "volcano");
    let created: Vec<u64> = pods
        .iter()
        .map(|pod| pod.metadata.creation_timestamp.unwrap().0.0)
        .collect();
    assert_eq!(created, [100_000_000_000, 100_000_000_001, 100_000_000_002]);
}

#[test]
fn pods_of_a_stateful_set_that_are_there_are_not_made_again() {
    let there = existing(&[
        "metadata: {name: web-1, namespace: prod}",
        "metadata: {name: web-0}",
    ]);
    let pods = stateful_set(&read(WEB), &there, START).unwrap();
    assert_eq!(
        names(&pods),
        ["web-0", "web-2"],
        "web-0 is there in another namespace only"
    );
}

#[test]
fn a_stateful_set_may_start_at_another_number() {
    let set = read(&WEB.replace("replicas: 3", "ordinals: {start: 5}"));
    assert_eq!(
        names(&stateful_set(&set, &ExistingPods::default(), START).unwrap()),
        ["web-5"]
    );
}

#[test]
fn a_deployments_pods_belong_to_a_replica_set() {
    let pods = deployment(&read(WEB), &ExistingPods::default(), START).unwrap();
    assert_eq!(names(&pods), ["web-0", "web-1", "web-2"]);
    let hash = label(&pods[0], "pod-template-hash").unwrap();
    let owner = pods[0].metadata.controller().unwrap();
    assert_eq!(
        (&*owner.kind, &*owner.name),
        ("ReplicaSet", &*format!("web-{hash}"))
    );
}

#[test]
fn pods_of_a_deployment_that_are_there_are_counted() {
    let pod = |name: &str, hash: &str, more: &str| {
        format!(
            "{{metadata: {{name: {name}, namespace: prod, labels: {{pod-template-hash: {hash}}},
               ownerReferences: [{{kind: ReplicaSet, name: web-{hash}, controller: true}}]}},
               {more}}}"
        )
    };
    let there = existing(&[
        &pod("web-abc-1", "abc", ""),
        &pod("web-abc-2", "abc", "status: {phase: Failed}"),
        &pod("web-0", "def", ""),
        // Of the deployment `web-x`, not of `web`: its hash is `abc`, not `x-abc`.
        &pod("web-x-abc-1", "abc", "").replace("name: web-abc", "name: web-x-abc"),
    ]);
    let pods = deployment(&read(WEB), &there, START).unwrap();
    assert_eq!(
        names(&pods),
        ["web-1"],
        "two of three are active, and web-0 is a taken name"
    );
}

#[test]
fn a_replica_sets_pods_are_counted_by_owner() {
    let there = existing(&[
        "{metadata: {name: web-xyz, namespace: prod, ownerReferences: [
        {kind: ReplicaSet, name: web, controller: true}]}}",
    ]);
    let pods = replica_set(&read(WEB), &there, START).unwrap();
    assert_eq!(names(&pods), ["web-0", "web-1"]);
}

fn train(spec: &str) -> api::Job {
    read(&format!("{{metadata: {{name: train}}, spec: {{{spec}}}}}"))
}

fn job_names(spec: &str, there: &ExistingPods) -> Vec<String> {
    let pods = job(&train(spec), there, START).unwrap();
    names(&pods).into_iter().map(Into::into).collect()
}

#[test]
fn a_job_runs_as_many_pods_as_it_allows_at_a_time() {
    let nobody = ExistingPods::default();
    assert_eq!(job_names("", &nobody), ["train-0"]);
    assert_eq!(job_names("parallelism: 2", &nobody), ["train-0", "train-1"]);
    assert_eq!(job_names("completions: 5", &nobody), ["train-0"]);
    assert_eq!(
        job_names("parallelism: 3, completions: 2", &nobody),
        ["train-0", "train-1"]
    );
    assert_eq!(job_names("parallelism: 0", &nobody), [""; 0]);
    assert_eq!(job_names("parallelism: 2, suspend: true", &nobody), [""; 0]);
}

#[test]
fn an_indexed_jobs_pods_carry_their_index() {
    let indexed = "parallelism: 2, completions: 3, completionMode: Indexed";
    let pods = job(&train(indexed), &ExistingPods::default(), START).unwrap();
    assert_eq!(names(&pods), ["train-0", "train-1"]);
    assert_eq!(
        label(&pods[1], "batch.kubernetes.io/job-completion-index"),
        Some("1")
    );
    assert_eq!(
        label(&pods[1], "batch.kubernetes.io/job-name"),
        Some("train")
    );
    assert_eq!(label(&pods[1], "job-name"), Some("train"));
    assert_eq!(
        label(&pods[1], "controller-uid"),
        Some(&*pods[1].metadata.controller().unwrap().uid)
    );

    let there = existing(&[
        "{metadata: {name: train-0-abcde, annotations: {batch.kubernetes.io/job-completion-index: '0'},
          ownerReferences: [{kind: Job, name: train, controller: true}]}, status: {phase: Succeeded}}",
        "{metadata: {name: train-1-abcde, annotations: {batch.kubernetes.io/job-completion-index: '1'},
          ownerReferences: [{kind: Job, name: train, controller: true}]}, status: {phase: Running}}",
    ]);
    assert_eq!(job_names(indexed, &there), ["train-2"]);
    assert_eq!(
        job_names("parallelism: 2", &there),
        [""; 0],
        "one has ended well"
    );
}

#[test]
fn a_bare_pod_gets_a_name_a_namespace_and_a_time() {
    let there = existing(&["metadata: {name: p-0}"]);
    let made = pod(&read("metadata: {generateName: p-}"), &there, START)
        .unwrap()
        .unwrap();
    assert_eq!(
        (&*made.metadata.name, &*made.metadata.namespace),
        ("p-1", "default")
    );
    assert_eq!(made.metadata.creation_timestamp, Some(START));
    assert_eq!(
        pod(&read("metadata: {name: p-0}"), &there, START).unwrap(),
        None
    );
    assert_eq!(
        pod(&read("{}"), &there, START).unwrap_err().code,
        "NameMissing"
    );
}

#[test]
fn absurd_numbers_are_refused_with_what_is_accepted() {
    let refused = |replicas: &str| {
        let set = read(&WEB.replace("replicas: 3", &format!("replicas: {replicas}")));
        deployment(&set, &ExistingPods::default(), START)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refused("-1"),
        "InvalidCount: spec.replicas: -1; accepted: 0 to 100000"
    );
    assert_eq!(
        refused("100001"),
        "InvalidCount: spec.replicas: 100001; accepted: 0 to 100000"
    );
    // Beyond what a number can be, the document itself is refused.
    let json = r#"{"spec": {"replicas": 1e30}}"#;
    let error = serde_json::from_str::<api::Deployment>(json)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`1e+30`, expected a whole number"),
        "{error}"
    );

    let refused = |spec: &str| {
        job(&train(spec), &ExistingPods::default(), START)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refused("parallelism: 1000000"),
        "InvalidCount: spec.parallelism: 1000000; accepted: 0 to 100000"
    );
    assert_eq!(
        refused("completions: -3"),
        "InvalidCount: spec.completions: -3; accepted: 0 to 2147483647, 100000 at a time"
    );
    assert_eq!(
        refused("completionMode: Indexed, parallelism: 2"),
        "InvalidJob: spec.completions: absent; accepted: a number, with completionMode Indexed"
    );
    assert_eq!(
        refused("completionMode: Ordered"),
        "InvalidJob: spec.completionMode: \"Ordered\"; accepted: NonIndexed, Indexed"
    );
    let millions = job_names(
        "completions: 2000000000, completionMode: Indexed",
        &ExistingPods::default(),
    );
    assert_eq!(millions, ["train-0"]);
}

#[test]
fn a_template_that_its_own_selector_misses_is_refused() {
    let set = read(&WEB.replace("matchLabels: {app: web}", "matchLabels: {app: api}"));
    assert_eq!(
        stateful_set(&set, &ExistingPods::default(), START)
            .unwrap_err()
            .to_string(),
        "SelectorMismatch: spec.selector: the template's labels do not match it at \"app\"; \
         accepted: labels that match"
    );
}
