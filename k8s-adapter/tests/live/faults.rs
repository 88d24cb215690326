//! Binds that the API server refuses.

use gangline_controlplane::ControlPlane;

use crate::support::{Cluster, VOLCANO, group, node};

/// No pod of this group may be bound.
const POLICY: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: not-yet}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods/binding]}
  validations:
  - expression: '!object.metadata.name.startsWith(\"refused-1\")'
    message: not before noon
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: not-yet}
spec: {policyName: not-yet, validationActions: [Deny]}
";

#[test]
fn a_bind_that_is_refused_says_so_and_ends_with_the_whole_gang_or_nothing() {
    let mut cluster = Cluster::start(&ControlPlane::builder().kwok()).unwrap();
    cluster.control_plane.apply(VOLCANO).unwrap();
    cluster.control_plane.create_node(&node("n1", 8)).unwrap();
    cluster.control_plane.apply(POLICY).unwrap();
    cluster.run(&["--degraded-deadline", "20s"]);
    cluster.wait_until("the API server has read the policy", || {
        let binding = r#"{"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "refused-1-x"},
            "target": {"kind": "Node", "name": "n1"}}"#;
        let path = "/api/v1/namespaces/default/pods/refused-1-x/binding";
        let answer = cluster.control_plane.post(path, binding).unwrap();
        answer.body.contains("not before noon")
    });
    cluster
        .control_plane
        .apply(&group("refused", 2, 2, 1))
        .unwrap();
    cluster.wait_until("the member that is refused says so", || {
        let (reason, message) = cluster.why("refused-1");
        reason == "BindFailed" && message.contains("not before noon")
    });
    // Others are not held up.
    cluster
        .control_plane
        .apply(&group("other", 2, 2, 1))
        .unwrap();
    cluster.wait_until("another gang is whole", || {
        cluster.placed("other") == (2, 2)
    });

    let policy = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/not-yet";
    cluster.control_plane.delete(policy).unwrap();
    cluster.wait_until("the gang is whole or gone", || {
        let (pods, bound) = cluster.placed("refused");
        (pods, bound) == (2, 2) || bound == 0
    });
}
