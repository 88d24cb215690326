//! The fields that the specs of group objects have, so that a misspelt one gets a word.
//!
//! A document and the [`Field`]s of its kind enter; a warning for each other field leaves. Kubernetes
//! passes such a field over, and the group means something else than was written: a minimum that is
//! misspelt is none. The object is used all the same. No value is read here.

use serde::Deserialize;
use serde_json::Value;

use super::{Dialect, Kind};
use crate::{
    annotations::nearest,
    load::{Complaint, Document, Severity},
    problem::FieldPath,
};

/// A field of a spec, or of a map or of a list of maps below it.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    name: &'static str,
    /// What it may hold; empty where that is free or of no matter here.
    below: &'static [Field],
}

impl Field {
    /// A field of which what it holds is not looked at.
    pub(super) const fn any(name: &'static str) -> Self {
        Self::of(name, &[])
    }

    /// A field with fields of its own.
    pub(super) const fn of(name: &'static str, below: &'static [Field]) -> Self {
        Self { name, below }
    }
}

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
        check(&outline.spec, kind.spec, &path, document, complaints);
    }
}

fn check(
    value: &Value,
    known: &[Field],
    path: &FieldPath<'_>,
    document: &Document<'_>,
    complaints: &mut Vec<Complaint>,
) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check(item, known, &path.index(index), document, complaints);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = path.name(name);
                match known.iter().find(|field| field.name == name) {
                    Some(field) if field.below.is_empty() => {}
                    Some(field) => check(value, field.below, &path, document, complaints),
                    None => complaints.push(unknown(name, known, &path, document)),
                }
            }
        }
        _ => {}
    }
}

fn unknown(
    name: &str,
    known: &[Field],
    path: &FieldPath<'_>,
    document: &Document<'_>,
) -> Complaint {
    let names: Vec<&str> = known.iter().map(|field| field.name).collect();
    let near = nearest(name, &names).map(|near| format!("; did you mean {near}?"));
    let accepted = format!("{}{}", names.join(", "), near.unwrap_or_default());
    document.complaint(
        Severity::Warning,
        path.to_string(),
        "no such field, so it decides nothing",
        accepted,
    )
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
