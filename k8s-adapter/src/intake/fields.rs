//! The fields that the specs of group objects have.
//!
//! A document of a dialect enters; a warning for each field that its kind does not have leaves.

use serde::Deserialize;
use serde_json::Value;

use super::{Dialect, Kind};
use crate::{
    fields::complain_of_unknown,
    load::{Complaint, Document},
    problem::FieldPath,
};

#[derive(Deserialize)]
struct Outline {
    #[serde(default)]
    spec: Value,
}

/// Complains about fields of an object that its kind does not have.
pub(crate) fn complain_of_unknown_fields(
    dialect: &dyn Dialect,
    document: &Document<'_>,
    complaints: &mut Vec<Complaint>,
) {
    let is_its = |kind: &&Kind| kind.group == document.group() && kind.kind == document.kind;
    let kind = dialect.kinds().iter().find(is_its);
    // What cannot be decoded is complained about where it is taken in.
    if let (Some(kind), Ok(outline)) = (kind, document.decode::<Outline>()) {
        let path = FieldPath::root("spec");
        complain_of_unknown(&outline.spec, kind.spec, &path, document, complaints);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::world;

    fn object(api_version: &str, kind: &str, spec: &str) -> String {
        format!(
            "apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: g}}\nspec: {spec}\n---\n"
        )
    }

    #[test]
    fn a_misspelt_field_is_named_with_the_nearest_one_and_the_group_counts() {
        let volcano = "scheduling.volcano.sh/v1beta1";
        let native = "scheduling.k8s.io/v1beta1";
        for (api_version, spec, field, near) in [
            (volcano, "{minMemer: 4}", "spec.minMemer", "minMember"),
            (
                volcano,
                "{networkTopology: {mode: soft, highestTierAlowed: 1}}",
                "spec.networkTopology.highestTierAlowed",
                "highestTierAllowed",
            ),
            (
                volcano,
                "{subGroupPolicy: [{name: a, subgroupsize: 2}]}",
                "spec.subGroupPolicy[0].subgroupsize",
                "subGroupSize",
            ),
            (
                native,
                "{schedulingPolicy: {gang: {minCount: 2}}, prioritty: 3}",
                "spec.prioritty",
                "priority",
            ),
            (
                "scheduling.x-k8s.io/v1alpha1",
                "{minmembers: 2}",
                "spec.minmembers",
                "minMember",
            ),
        ] {
            let world = world(&object(api_version, "PodGroup", spec));
            let lines = world.complaint_lines();
            let named = lines.iter().filter(|line| {
                line.contains(&format!(": {field}: no such field"))
                    && line.ends_with(&format!("did you mean {near}?"))
            });
            assert_eq!(named.count(), 1, "{spec}: {lines:?}");
            assert_eq!(world.gangs().count(), 1, "{spec}");
        }
    }

    #[test]
    fn no_field_that_a_kind_has_is_warned_of() {
        let all = [
            object(
                "scheduling.volcano.sh/v1beta1",
                "PodGroup",
                "{minMember: 2, minTaskMember: {w: 1}, minResources: {cpu: 1}, queue: default,
                  priorityClassName: x, networkTopology: {mode: soft, highestTierAllowed: 1,
                  highestTierName: t}, subGroupPolicy: [{name: a, labelSelector: {matchLabels: {a: b}},
                  matchLabelKeys: [k], subGroupSize: 1, minSubGroups: 0, networkTopology: {mode: soft}}]}",
            ),
            object(
                "topology.volcano.sh/v1alpha1",
                "HyperNode",
                "{tier: 1, tierName: t, members: [{type: Node, selector: {exactMatch: {name: n}}},
                  {type: Node, selector: {regexMatch: {pattern: n}}},
                  {type: Node, selector: {labelMatch: {matchLabels: {a: b}}}}]}",
            ),
            object(
                "scheduling.x-k8s.io/v1alpha1",
                "PodGroup",
                "{minMember: 2, minResources: {cpu: 1}, scheduleTimeoutSeconds: 5}",
            ),
            object(
                "scheduling.k8s.io/v1alpha3",
                "PodGroup",
                "{parentCompositePodGroupName: g, workloadRef: {workloadName: g, templateName: t},
                  schedulingPolicy: {gang: {minCount: 1}}, schedulingConstraints: {topology: [{key: k}]},
                  resourceClaims: [{name: a, resourceClaimName: b}], disruptionMode: {all: {}},
                  priorityClassName: x, priority: 1, preemptionPolicy: Never}",
            ),
            object(
                "scheduling.k8s.io/v1alpha3",
                "CompositePodGroup",
                "{parentCompositePodGroupName: h, workloadRef: {workloadName: g, templateName: t},
                  schedulingPolicy: {gang: {minGroupCount: 1}}, disruptionMode: {single: {}},
                  schedulingConstraints: {topology: [{key: k}]}, priorityClassName: x, priority: 1,
                  preemptionPolicy: Never}",
            ),
            object(
                "scheduling.k8s.io/v1beta1",
                "Workload",
                "{controllerRef: {apiGroup: batch, kind: Job, name: j}, podGroupTemplates: [],
                  compositePodGroupTemplates: []}",
            ),
        ];
        let lines = world(&all.concat()).complaint_lines();
        let unknown = lines.iter().filter(|line| line.contains("no such field"));
        assert_eq!(unknown.count(), 0, "{lines:?}");
    }
}
