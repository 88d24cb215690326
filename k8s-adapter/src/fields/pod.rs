//! The fields of a pod's spec, as far as they matter to scheduling.
//!
//! A manifest enters; a warning for each field that Kubernetes does not know leaves. An API server says
//! the same when the manifest is applied; here nobody else would. Source: `k8s.io/api` 1.37.2, `core/v1`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Field, complain_of_unknown};
use crate::{
    load::{Complaint, Document},
    problem::FieldPath,
};

const SPEC: &[Field] = &[
    Field::of("containers", CONTAINER),
    Field::of("initContainers", CONTAINER),
    Field::of("resources", RESOURCES),
    Field::of("affinity", AFFINITY),
    Field::of("tolerations", TOLERATION),
    Field::of("topologySpreadConstraints", SPREAD),
    Field::of("schedulingGates", &[Field::any("name")]),
    Field::of("schedulingGroup", &[Field::any("podGroupName")]),
    Field::any("volumes"),
    Field::any("ephemeralContainers"),
    Field::any("restartPolicy"),
    Field::any("terminationGracePeriodSeconds"),
    Field::any("activeDeadlineSeconds"),
    Field::any("dnsPolicy"),
    Field::any("nodeSelector"),
    Field::any("serviceAccountName"),
    Field::any("serviceAccount"),
    Field::any("automountServiceAccountToken"),
    Field::any("nodeName"),
    Field::any("hostNetwork"),
    Field::any("hostPID"),
    Field::any("hostIPC"),
    Field::any("shareProcessNamespace"),
    Field::any("securityContext"),
    Field::any("imagePullSecrets"),
    Field::any("hostname"),
    Field::any("subdomain"),
    Field::any("schedulerName"),
    Field::any("hostAliases"),
    Field::any("priorityClassName"),
    Field::any("priority"),
    Field::any("dnsConfig"),
    Field::any("readinessGates"),
    Field::any("runtimeClassName"),
    Field::any("enableServiceLinks"),
    Field::any("preemptionPolicy"),
    Field::any("overhead"),
    Field::any("setHostnameAsFQDN"),
    Field::any("os"),
    Field::any("hostUsers"),
    Field::any("resourceClaims"),
    Field::any("hostnameOverride"),
    Field::any("workloadRef"),
    Field::any("evictionResponders"),
];

const CONTAINER: &[Field] = &[
    Field::of("resources", RESOURCES),
    Field::any("name"),
    Field::any("image"),
    Field::any("command"),
    Field::any("args"),
    Field::any("workingDir"),
    Field::any("ports"),
    Field::any("envFrom"),
    Field::any("env"),
    Field::any("resizePolicy"),
    Field::any("restartPolicy"),
    Field::any("restartPolicyRules"),
    Field::any("volumeMounts"),
    Field::any("volumeDevices"),
    Field::any("livenessProbe"),
    Field::any("readinessProbe"),
    Field::any("startupProbe"),
    Field::any("lifecycle"),
    Field::any("terminationMessagePath"),
    Field::any("terminationMessagePolicy"),
    Field::any("imagePullPolicy"),
    Field::any("securityContext"),
    Field::any("stdin"),
    Field::any("stdinOnce"),
    Field::any("tty"),
];

const RESOURCES: &[Field] = &[
    Field::any("limits"),
    Field::any("requests"),
    Field::any("claims"),
];

const AFFINITY: &[Field] = &[
    Field::of("nodeAffinity", WHEN),
    Field::of("podAffinity", WHEN),
    Field::of("podAntiAffinity", WHEN),
];

const WHEN: &[Field] = &[
    Field::any("requiredDuringSchedulingIgnoredDuringExecution"),
    Field::any("preferredDuringSchedulingIgnoredDuringExecution"),
];

const TOLERATION: &[Field] = &[
    Field::any("key"),
    Field::any("operator"),
    Field::any("value"),
    Field::any("effect"),
    Field::any("tolerationSeconds"),
];

const SPREAD: &[Field] = &[
    Field::any("maxSkew"),
    Field::any("topologyKey"),
    Field::any("whenUnsatisfiable"),
    Field::any("labelSelector"),
    Field::any("minDomains"),
    Field::any("nodeAffinityPolicy"),
    Field::any("nodeTaintsPolicy"),
    Field::any("matchLabelKeys"),
];

const METADATA: &[Field] = &[
    Field::any("name"),
    Field::any("generateName"),
    Field::any("namespace"),
    Field::any("labels"),
    Field::any("annotations"),
    Field::any("ownerReferences"),
    Field::any("finalizers"),
    Field::any("uid"),
    Field::any("resourceVersion"),
    Field::any("generation"),
    Field::any("creationTimestamp"),
    Field::any("deletionTimestamp"),
    Field::any("deletionGracePeriodSeconds"),
    Field::any("managedFields"),
    Field::any("selfLink"),
];

/// A pod, or a template of pods.
const POD: &[Field] = &[
    Field::of("metadata", METADATA),
    Field::of("spec", SPEC),
    Field::any("apiVersion"),
    Field::any("kind"),
    Field::any("status"),
];

/// Complains about fields of a manifest's pod, or of a workload's template of pods, that no pod has.
pub(crate) fn complain_of_unknown_fields(document: &Document<'_>, complaints: &mut Vec<Complaint>) {
    // What cannot be decoded is complained about where it is taken in.
    let Ok(object) = document.decode::<BTreeMap<String, Value>>() else {
        return;
    };
    let spec = FieldPath::root("spec");
    if document.kind == "Pod" {
        for (name, value) in object {
            let path = FieldPath::root(&name);
            match POD.iter().find(|field| field.name == name) {
                Some(field) if field.below.is_empty() => {}
                Some(field) => {
                    complain_of_unknown(&value, field.below, &path, document, complaints);
                }
                None => complaints.push(super::unknown(&name, POD, &path, document)),
            }
        }
    } else if let Some(template) = object.get("spec").and_then(|spec| spec.get("template")) {
        complain_of_unknown(template, POD, &spec.name("template"), document, complaints);
    }
}

#[cfg(test)]
mod tests {
    use crate::{intake::testing::world_with, world::Options};

    fn words(manifest: &str) -> Vec<String> {
        let world = world_with("", manifest, &Options::default());
        let lines = world.complaint_lines();
        let mut unknown = lines.into_iter();
        let unknown = unknown
            .by_ref()
            .filter(|line| line.contains("no such field"));
        unknown.collect()
    }

    fn pod(spec: &str) -> String {
        format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {spec}\n")
    }

    #[test]
    fn a_misspelt_field_of_a_pod_or_of_a_template_is_named_with_the_nearest_one() {
        for (spec, field, near) in [
            (
                "{containers: [{name: a, resource: {limits: {nvidia.com/gpu: 1}}}]}",
                "spec.containers[0].resource",
                "resources",
            ),
            (
                "{containers: [{name: a, resources: {limit: {nvidia.com/gpu: 1}}}]}",
                "spec.containers[0].resources.limit",
                "limits",
            ),
            (
                "{nodeselector: {a: b}, containers: []}",
                "spec.nodeselector",
                "nodeSelector",
            ),
            (
                "{schedulingGroup: {podGroup: g}, containers: []}",
                "spec.schedulingGroup.podGroup",
                "podGroupName",
            ),
        ] {
            let lines = words(&pod(spec));
            assert_eq!(lines.len(), 1, "{lines:?}");
            assert!(
                lines[0].contains(&format!(": {field}: no such field")),
                "{lines:?}"
            );
            assert!(
                lines[0].ends_with(&format!("did you mean {near}?")),
                "{lines:?}"
            );
            let job = format!(
                "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: j}}\nspec: {{parallelism: 2, \
                 template: {{spec: {spec}}}}}\n"
            );
            let lines = words(&job);
            assert_eq!(lines.len(), 1, "{lines:?}");
            assert!(
                lines[0].contains(&format!(": spec.template.{field}: no")),
                "{lines:?}"
            );
        }
    }

    #[test]
    fn a_misspelt_field_of_metadata_is_named_too() {
        let manifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotation: {gangline.io/slice: \
                        5Gi}}\nspecs: {}\nspec: {containers: []}\n";
        let lines = words(manifest);
        let ends = lines.iter().map(|line| line.rsplit("; ").next().unwrap());
        assert_eq!(
            ends.collect::<Vec<_>>(),
            ["did you mean annotations?", "did you mean spec?"]
        );
    }

    #[test]
    fn no_field_that_a_pod_has_is_warned_of() {
        let spec = "{containers: [{name: a, image: b, resources: {requests: {cpu: 1}, claims: [{name: x}]},
            restartPolicyRules: [], tty: true}], initContainers: [{name: i, restartPolicy: Always}],
            affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}},
            tolerations: [{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 3}],
            topologySpreadConstraints: [{maxSkew: 1, topologyKey: k, whenUnsatisfiable: DoNotSchedule,
            minDomains: 1, nodeTaintsPolicy: Honor, matchLabelKeys: [a]}], schedulingGates: [{name: g}],
            schedulingGroup: {podGroupName: g}, evictionResponders: [], hostnameOverride: h}";
        assert_eq!(words(&pod(spec)), [""; 0]);
    }

    #[test]
    fn what_a_dump_has_is_the_api_servers_matter() {
        let dump = pod("{nodeselector: {a: b}, containers: []}");
        let world = world_with(&dump, "", &Options::default());
        assert_eq!(world.complaint_lines(), [""; 0]);
    }
}
