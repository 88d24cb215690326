//! What the scheduler says on group objects of each kind, under its own rights alone.

use std::fmt::Write as _;

use gangline_controlplane::{ControlPlane, Program, Project};
use serde_json::Value;

use crate::support::{Cluster, group, node};

/// The condition of this type, as status and reason.
fn condition(status: &Value, kind: &str) -> Option<(String, String)> {
    let conditions = status["conditions"].as_array()?;
    let condition = conditions.iter().find(|known| known["type"] == kind)?;
    let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    Some((text("status"), text("reason")))
}

fn is(condition: Option<&(String, String)>, status: &str, reason: &str) -> bool {
    condition.is_some_and(|(known, why)| known == status && why == reason)
}

#[test]
fn volcano_groups_are_let_in_run_and_complete() {
    let mut cluster = Cluster::start(&ControlPlane::builder().kwok()).unwrap();
    cluster.control_plane.define(Project::Volcano).unwrap();
    cluster.control_plane.create_node(&node("n1", 4)).unwrap();
    cluster.run(&[
        "--scheduler-name",
        "gangline",
        "--scheduler-name",
        "volcano",
    ]);
    let status = |cluster: &Cluster, name: &str| {
        let path = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups";
        cluster.read(&format!("{path}/{name}"))["status"].take()
    };
    // A Job of Volcano's gets its pods only when its group is let in.
    cluster
        .control_plane
        .apply(&group("empty", 2, 0, 1))
        .unwrap();
    cluster.wait_until("a group without pods is let in", || {
        status(&cluster, "empty")["phase"] == "Inqueue"
    });
    cluster.control_plane.apply(&group("a", 2, 2, 1)).unwrap();
    cluster.wait_until("one runs", || {
        let status = status(&cluster, "a");
        status["phase"] == "Running"
            && status["running"] == 2
            && condition(&status, "Scheduled").is_some_and(|(status, _)| status == "True")
    });
    cluster.control_plane.apply(&group("b", 2, 2, 3)).unwrap();
    cluster.wait_until("the other waits", || {
        let status = status(&cluster, "b");
        let unschedulable = condition(&status, "Unschedulable");
        status["phase"] == "Inqueue" && is(unschedulable.as_ref(), "True", "NotEnoughResources")
    });
    cluster.control_plane.create_node(&node("n2", 4)).unwrap();
    cluster.control_plane.create_node(&node("n3", 4)).unwrap();
    cluster.wait_until("it waits no more", || {
        let status = status(&cluster, "b");
        let unschedulable = condition(&status, "Unschedulable");
        status["phase"] == "Running" && unschedulable.is_some_and(|(status, _)| status == "False")
    });
}

#[test]
fn groups_of_scheduler_plugins_are_counted_as_their_controller_does() {
    let mut cluster = Cluster::start(&ControlPlane::builder().kwok()).unwrap();
    let define = cluster.control_plane.define(Project::SchedulerPlugins);
    define.unwrap();
    cluster.control_plane.create_node(&node("n1", 2)).unwrap();
    cluster.run(&[]);
    let manifest = |name: &str, gpus: u32| {
        let group = group(name, 2, 2, gpus);
        let group = group.replace(
            "scheduling.volcano.sh/v1beta1",
            "scheduling.x-k8s.io/v1alpha1",
        );
        group.replace(
            "annotations: {scheduling.k8s.io/group-name:",
            "labels: {scheduling.x-k8s.io/pod-group:",
        )
    };
    let status = |cluster: &Cluster, name: &str| {
        let path = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups";
        cluster.read(&format!("{path}/{name}"))["status"].take()
    };
    cluster.control_plane.apply(&manifest("a", 1)).unwrap();
    cluster.wait_until("it runs", || {
        let status = status(&cluster, "a");
        status["phase"] == "Running" && status["running"] == 2
    });
    cluster.control_plane.apply(&manifest("b", 1)).unwrap();
    cluster.wait_until("it waits", || {
        let status = status(&cluster, "b");
        status["phase"] == "Scheduling" && status["scheduleStartTime"].is_string()
    });
}

/// The definition of KAI's group, as far as the API server needs it.
const KAI: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: podgroups.scheduling.run.ai}
spec:
  group: scheduling.run.ai
  scope: Namespaced
  names: {kind: PodGroup, listKind: PodGroupList, plural: podgroups, singular: podgroup}
  versions:
  - name: v2alpha2
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

#[test]
fn groups_of_kai_say_that_they_cannot_be_scheduled_while_that_is_so() {
    let mut cluster = Cluster::start(&ControlPlane::builder().kwok()).unwrap();
    cluster.control_plane.apply(KAI).unwrap();
    cluster.control_plane.create_node(&node("n1", 4)).unwrap();
    cluster.run(&[]);
    let apply = |cluster: &Cluster, name: &str, min: u32, gpus: u32| {
        let group = group(name, min, 2, gpus);
        let group = group.replace(
            "scheduling.volcano.sh/v1beta1",
            "scheduling.run.ai/v2alpha2",
        );
        let group = group.replace("scheduling.k8s.io/group-name", "pod-group-name");
        cluster.control_plane.apply(&group).unwrap();
    };
    let conditions = |cluster: &Cluster, name: &str| {
        let path = "/apis/scheduling.run.ai/v2alpha2/namespaces/default/podgroups";
        let mut group = cluster.read(&format!("{path}/{name}"));
        group["status"]["schedulingConditions"].take()
    };
    apply(&cluster, "short", 3, 1);
    apply(&cluster, "a", 2, 1);
    cluster.wait_until("one runs", || cluster.placed("a-") == (2, 2));
    apply(&cluster, "b", 2, 3);
    cluster.wait_until("the other says that it cannot be scheduled", || {
        let condition = &conditions(&cluster, "b")[0];
        condition["type"] == "UnschedulableOnNodePool"
            && condition["nodePool"] == "default"
            && condition["status"] == "True"
            && condition["reason"] == "Unschedulable"
            && condition["transitionID"] == "1"
    });
    for name in ["n2", "n3"] {
        cluster.control_plane.create_node(&node(name, 4)).unwrap();
    }
    cluster.wait_until("it says so no more", || {
        let said = conditions(&cluster, "b");
        cluster.placed("b-") == (2, 2) && said.as_array().is_some_and(Vec::is_empty)
    });
    // Nothing is said of what runs, nor of what is not complete.
    assert_eq!(conditions(&cluster, "a"), Value::Null);
    assert_eq!(cluster.why("short-0").0, "WaitingForMembers");
    assert_eq!(conditions(&cluster, "short"), Value::Null);
}

#[test]
fn native_groups_say_whether_they_were_scheduled() {
    let builder = ControlPlane::builder()
        .kwok()
        .feature_gate("GenericWorkload", true);
    let builder = builder
        .runtime_config("scheduling.k8s.io/v1beta1", true)
        .flag(Program::ApiServer, "--v=1");
    let mut cluster = Cluster::start(&builder).unwrap();
    cluster.control_plane.create_node(&node("n1", 2)).unwrap();
    cluster.run(&[]);
    let manifest = |name: &str| {
        let mut yaml = format!(
            "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {{name: {name}}}\n\
             spec: {{schedulingPolicy: {{gang: {{minCount: 2}}}}}}\n"
        );
        for pod in 0..2 {
            let _ = write!(
                yaml,
                "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}-{pod}}}\nspec:\n  \
                 schedulerName: gangline\n  schedulingGroup: {{podGroupName: {name}}}\n  \
                 containers:\n  - name: main\n    image: none\n    resources: {{limits: \
                 {{nvidia.com/gpu: 1}}}}\n"
            );
        }
        yaml
    };
    let scheduled = |cluster: &Cluster, name: &str| {
        let path = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups";
        let group = cluster.read(&format!("{path}/{name}"));
        condition(&group["status"], "PodGroupInitiallyScheduled")
    };
    cluster.control_plane.apply(&manifest("a")).unwrap();
    cluster.wait_until("it is scheduled", || {
        is(scheduled(&cluster, "a").as_ref(), "True", "Scheduled")
    });
    cluster.control_plane.apply(&manifest("b")).unwrap();
    cluster.wait_until("it is not", || {
        is(scheduled(&cluster, "b").as_ref(), "False", "Unschedulable")
    });
}
