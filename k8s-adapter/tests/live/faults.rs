//! Binds that admission refuses, by a policy or because a webhook does not answer.

use crate::support::{Cluster, group};

/// No pod of this namespace whose name begins like this may be bound.
const POLICY: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: not-yet}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods/binding]}
  matchConditions:
  - {name: here, expression: request.namespace == 'policy'}
  validations:
  - expression: '!object.metadata.name.startsWith(\"refused-1\")'
    message: not before noon
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: not-yet}
spec: {policyName: not-yet, validationActions: [Deny]}
";

/// Nobody answers at this address.
const WEBHOOK: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: absent}
webhooks:
- name: absent.example.com
  clientConfig: {url: 'https://127.0.0.1:1/'}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
  rules:
  - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods/binding]}
  matchConditions:
  - name: here
    expression: request.namespace == 'webhook' && object.metadata.name.startsWith('asked-')
";

const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1";

/// What the API server says when somebody binds this pod, which does not exist.
fn trial(cluster: &Cluster, pod: &str) -> String {
    let binding = format!(
        r#"{{"apiVersion": "v1", "kind": "Binding", "metadata": {{"name": "{pod}"}},
            "target": {{"kind": "Node", "name": "n1"}}}}"#
    );
    let path = cluster.pod_path(pod) + "/binding";
    let answer = cluster.control_plane.post(&path, &binding).unwrap();
    answer.body
}

/// Case C008: others are not held up, and what is refused holds nothing.
#[test]
fn a_bind_that_is_refused_says_so_and_ends_with_the_whole_gang_or_nothing() {
    let mut cluster = Cluster::share("policy");
    cluster.create_node("n1", 8);
    cluster.apply(POLICY);
    cluster.run(&["--degraded-deadline", "20s"]);
    cluster.wait_until("the API server has read the policy", || {
        trial(&cluster, "refused-1-x").contains("not before noon")
    });
    cluster.apply(&group("refused", 2, 2, 1));
    cluster.wait_until("the member that is refused says so", || {
        let (reason, message) = cluster.why("refused-1");
        reason == "BindFailed" && message.contains("not before noon")
    });
    cluster.apply(&group("other", 2, 2, 1));
    cluster.wait_until("another gang is whole", || {
        cluster.placed("other") == (2, 2)
    });
    // Also one that needs the room of the member that is refused.
    cluster.apply(&group("large", 1, 1, 5));
    cluster.wait_until("a pod has the rest", || cluster.placed("large") == (1, 1));

    cluster.delete(&format!(
        "{REGISTRATION}/validatingadmissionpolicybindings/not-yet"
    ));
    cluster.delete(&cluster.pod_path("large-0"));
    cluster.wait_until("the gang is whole or gone", || {
        let (pods, bound) = cluster.placed("refused");
        (pods, bound) == (2, 2) || bound == 0
    });
}

/// Case C160, as far as a scheduler has to do with it.
#[test]
fn an_outage_of_a_webhook_stops_only_those_that_it_is_asked_about() {
    let mut cluster = Cluster::share("webhook");
    cluster.create_node("n1", 4);
    cluster.apply(WEBHOOK);
    cluster.run(&["--degraded-deadline", "3s"]);
    cluster.wait_until("the API server has read who is asked", || {
        trial(&cluster, "asked-x").contains("failed calling webhook")
    });
    cluster.apply(&group("asked", 2, 2, 1));
    cluster.apply(&group("other", 2, 2, 1));
    cluster.wait_until("another gang is whole", || {
        cluster.placed("other") == (2, 2)
    });
    cluster.wait_until("its pods say why they wait", || {
        cluster.why("asked-1").1.contains("failed calling webhook")
    });
    assert_eq!(cluster.placed("asked"), (2, 0));
    let path = format!("{REGISTRATION}/validatingwebhookconfigurations/absent");
    cluster.delete(&path);
    cluster.wait_until("the gang is whole", || cluster.placed("asked") == (2, 2));
}
