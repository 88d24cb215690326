//! Plans whose volumes are awaited, from decision to the bind.

use serde_json::{Value, json};

use super::*;
use crate::load::{Document, Source};

const CLASSES: [(&str, &str); 2] = [
    ("made", "csi.example.com"),
    ("disks", "kubernetes.io/no-provisioner"),
];

impl Harness {
    fn with_classes() -> Self {
        let mut harness = Self::started();
        for node in ["n1", "n2"] {
            let node = json!({
                "metadata": {"name": node, "labels": {"kubernetes.io/hostname": node}},
                "status": {"allocatable": {"cpu": "8", "pods": "9", "nvidia.com/gpu": "2"}},
            });
            let node = Box::new(serde_json::from_value(node).unwrap());
            harness.driver.take(Change::Node(node));
        }
        for (name, provisioner) in CLASSES {
            harness.object(json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
                "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer",
            }));
        }
        harness
    }

    fn object(&mut self, object: Value) {
        let document = Document::from_value(Source::file("test"), object).unwrap();
        self.driver.take(Change::Object(document));
    }

    /// A claim in this version: with the node that is selected, and the volume that it is bound to.
    fn claim(&mut self, name: &str, class: &str, version: u32, node: &str, volume: &str) {
        let mut annotations = json!({});
        if !node.is_empty() {
            annotations["volume.kubernetes.io/selected-node"] = json!(node);
        }
        if !volume.is_empty() {
            annotations["pv.kubernetes.io/bind-completed"] = json!("yes");
        }
        self.object(json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default", "uid": format!("u-{name}"),
                         "resourceVersion": version.to_string(), "annotations": annotations},
            "spec": {"storageClassName": class, "volumeName": volume,
                     "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }));
    }

    /// A volume on a node, taken by a claim or not.
    fn volume(&mut self, name: &str, class: &str, node: &str, claim: &str) {
        let claim = match claim {
            "" => Value::Null,
            name => json!({"namespace": "default", "name": name, "uid": format!("u-{name}")}),
        };
        self.object(json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": name, "resourceVersion": "1"},
            "spec": {"storageClassName": class, "accessModes": ["ReadWriteOnce"], "claimRef": claim,
                     "capacity": {"storage": "1Gi"},
                     "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                         {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]}}},
            "status": {"phase": if claim.is_null() { "Available" } else { "Bound" }},
        }));
    }

    fn pod_with(&mut self, name: &str, claim: &str) {
        let volumes =
            format!("volumes: [{{name: v, persistentVolumeClaim: {{claimName: {claim}}}}}],");
        self.pod(name, &volumes);
    }

    /// What is to be written, as path and patch.
    fn writes(&mut self) -> Vec<(String, Value)> {
        let mut writes = Vec::new();
        while let Ok(order) = self.orders.try_recv() {
            let (path, name, patch) = order.write.request();
            writes.push((format!("{path}/{name}"), patch));
        }
        writes
    }
}

/// The one write, which tells for which node a volume is to be made.
fn selected(writes: &[(String, Value)]) -> String {
    let [(path, patch)] = writes else {
        panic!("{writes:?}");
    };
    assert_eq!(
        path,
        "/api/v1/namespaces/default/persistentvolumeclaims/data"
    );
    assert_eq!(patch["metadata"]["uid"], "u-data");
    let node = &patch["metadata"]["annotations"]["volume.kubernetes.io/selected-node"];
    node.as_str().unwrap().to_owned()
}

#[test]
fn a_pod_is_bound_when_its_volume_is_made_and_nobody_else_waits_for_that() {
    let mut harness = Harness::with_classes();
    harness.claim("data", "made", 7, "", "");
    harness.pod_with("a", "data");
    assert!(harness.turn().is_empty(), "the volume is made first");
    let writes = harness.writes();
    let node = selected(&writes);
    assert_eq!(writes[0].1["metadata"]["resourceVersion"], "7");
    harness.pod("b", "");
    assert_eq!(harness.turn().len(), 1, "another goes on");
    assert_eq!(harness.writes(), [], "it is told once");
    // Somebody changed the claim before: it is told again, of the newer claim.
    harness.claim("data", "made", 8, "", "");
    assert!(harness.turn().is_empty());
    assert_eq!(harness.writes()[0].1["metadata"]["resourceVersion"], "8");
    harness.claim("data", "made", 9, &node, "");
    assert!(harness.turn().is_empty());
    // The claim may be seen before the volume is.
    harness.claim("data", "made", 10, &node, "made-1");
    assert!(harness.turn().is_empty());
    harness.volume("made-1", "made", &node, "data");
    assert_eq!(harness.turn(), [[place("a", &node)]]);
    assert_eq!(harness.writes(), []);
    // Bound, nothing is kept for it any more, and nothing is decided anew.
    let volumes = "volumes: [{name: v, persistentVolumeClaim: {claimName: data}}],";
    harness.pod("a", &format!("nodeName: {node}, {volumes}"));
    assert!(harness.turn().is_empty());
    assert!(harness.turn().is_empty());
    assert_eq!(harness.driver.preparing.until(), None);
}

/// A pod whose claim waits for the provisioner, and the node that was chosen for it.
fn provisioning() -> (Harness, String) {
    let mut harness = Harness::with_classes();
    harness.claim("data", "made", 1, "", "");
    harness.pod_with("a", "data");
    assert!(harness.turn().is_empty());
    let node = selected(&harness.writes());
    harness.claim("data", "made", 2, &node, "");
    assert!(harness.turn().is_empty());
    (harness, node)
}

#[test]
fn when_the_provisioner_gives_up_the_pod_is_decided_anew_with_that_as_the_reason() {
    let (mut harness, node) = provisioning();
    harness.claim("data", "made", 3, "", "");
    assert!(harness.turn().is_empty());
    let told = harness.told();
    let message = format!("claim default/data got no volume for {node}: its provisioner gave up");
    assert!(
        told.iter()
            .any(|(pod, said)| pod == "a" && said.contains(&message)),
        "{told:?}"
    );
}

#[test]
fn a_slow_volume_is_awaited_for_a_while_and_then_holds_no_room() {
    let (mut harness, node) = provisioning();
    let until = harness.driver.preparing.until().expect("it is awaited");
    let later = until.saturating_add(Nanos::from_secs(1));
    let driver = &mut harness.driver;
    let looked = driver.preparing.look(&driver.mirror, later, |_| true);
    assert!(looked.ready.is_empty());
    let [
        GivenUp {
            failed: Some((pod, message)),
            ..
        },
    ] = &*looked.given_up
    else {
        panic!("{looked:?}");
    };
    assert_eq!(*pod, uid("a"));
    let waits = "claim default/data waits for csi.example.com to make its volume for";
    assert_eq!(*message, format!("{waits} {node}, after 50 s"));
    driver.go_on(looked);
    assert_eq!(
        driver.scheduler.state_of(uid("a")),
        Some(MemberState::Waiting)
    );
}

/// Case C151, live: disks are given to claims, each to one, and the gang is bound when all have theirs.
#[test]
fn a_gang_is_bound_whole_when_each_member_has_its_disk() {
    let mut harness = Harness::with_classes();
    harness.object(json!({
        "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default", "uid": "g"}, "spec": {"minMember": 2},
    }));
    harness.volume("v1", "disks", "n1", "");
    harness.volume("v3", "disks", "n2", "");
    for member in ["g-0", "g-1"] {
        harness.claim(&format!("d-{member}"), "disks", 1, "", "");
        let pod = json!({
            "metadata": {"name": member, "namespace": "default", "uid": uid(member),
                         "labels": {"scheduling.x-k8s.io/pod-group": "g"}},
            "spec": {"schedulerName": "gangline", "containers": [{}], "volumes": [
                {"name": "v", "persistentVolumeClaim": {"claimName": format!("d-{member}")}}]},
        });
        let pod = Box::new(serde_json::from_value(pod).unwrap());
        harness.driver.take(Change::Pod(pod, "1".into()));
    }
    assert!(harness.turn().is_empty());
    let writes = harness.writes();
    let given = writes.iter().map(|(path, patch)| {
        let volume = path
            .strip_prefix("/api/v1/persistentvolumes/")
            .unwrap()
            .to_owned();
        (
            volume,
            patch["spec"]["claimRef"]["name"]
                .as_str()
                .unwrap()
                .to_owned(),
        )
    });
    let given: BTreeMap<String, String> = given.collect();
    assert_eq!(given.keys().collect::<Vec<_>>(), ["v1", "v3"]);
    let nodes = BTreeMap::from([("v1", "n1"), ("v3", "n2")]);
    let mut expected = Vec::new();
    for (volume, claim) in &given {
        assert!(harness.turn().is_empty(), "all of them first");
        let node = nodes[&**volume];
        harness.volume(volume, "disks", node, claim);
        assert!(harness.turn().is_empty());
        harness.claim(claim, "disks", 2, "", volume);
        expected.push(place(claim.strip_prefix("d-").unwrap(), node));
    }
    let mut plans = harness.turn();
    assert_eq!(plans.len(), 1, "{plans:?}");
    let mut plan = plans.remove(0);
    plan.sort();
    expected.sort();
    assert_eq!(plan, expected);
}
