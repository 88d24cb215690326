//! `PodGroup`s of the scheduler-plugins project (`scheduling.x-k8s.io`, "coscheduling").
//!
//! Pods name their group by a label. A group has one minimum over pods of any shape and a timeout of
//! 60 seconds unless it says otherwise. `minResources` is checked but decides nothing: there it is a
//! rough test on sums that saves the real one, here the real one is made.

use gangline::{
    gang::{GangKey, GangSpec},
    units::Nanos,
};
use serde::Deserialize;

use super::{
    Dialect, Field, GroupKey, Kind, Link, Member, Roster, Surroundings, count, koordinator,
    store::{self, Name, Store, Stored},
};
use crate::{
    api::{Pod, ResourceList, whole_number},
    load::{Complaint, Document},
};

pub(crate) const SOURCE: &str = "scheduler-plugins";
pub(super) const LABEL: &str = "scheduling.x-k8s.io/pod-group";
/// The scheduler's own setting (`permitWaitingTimeSeconds`) is not in a dump; its default is.
const DEFAULT_TIMEOUT: Nanos = Nanos::from_secs(60);

/// All fields of a `PodGroup`'s spec.
const FIELDS: &[Field] = &[
    Field::any("minMember"),
    Field::any("minResources"),
    Field::any("scheduleTimeoutSeconds"),
];

/// The dialect.
#[derive(Debug, Default)]
pub(super) struct SchedulerPlugins {
    groups: Store<PodGroupSpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodGroupSpec {
    #[serde(deserialize_with = "whole_number")]
    min_member: Option<i64>,
    min_resources: ResourceList,
    #[serde(deserialize_with = "whole_number")]
    schedule_timeout_seconds: Option<i64>,
}

impl Dialect for SchedulerPlugins {
    fn kinds(&self) -> &'static [Kind] {
        &[Kind {
            group: "scheduling.x-k8s.io",
            versions: &["v1alpha1"],
            kind: "PodGroup",
            spec: FIELDS,
        }]
    }

    fn take(&mut self, document: &Document<'_>, arrival: Nanos) -> Result<(), Box<Complaint>> {
        self.groups.take(document, true, arrival)
    }

    fn group_keys(&self) -> &'static [GroupKey] {
        &[GroupKey::Label(LABEL)]
    }

    fn forget(&mut self, group: &str, kind: &str, namespace: &str, name: &str) {
        if (group, kind) == ("scheduling.x-k8s.io", "PodGroup") {
            self.groups.forget(namespace, name);
        }
    }

    fn link(&self, pod: &Pod) -> Option<Link> {
        let name = pod
            .metadata
            .labels
            .get(LABEL)
            .filter(|name| !name.is_empty())?;
        let field = "metadata.labels[scheduling.x-k8s.io/pod-group]";
        Some(Link::named(pod, SOURCE, name, field))
    }

    fn group_of(&self, kind: &str, namespace: &str, name: &str) -> Option<GangKey> {
        store::of_pod_group(kind, namespace, name, SOURCE)
    }

    fn gangs(&self, roster: &mut Roster<'_>, around: &mut Surroundings<'_>) -> Vec<GangSpec> {
        let asked = self.groups.asked(SOURCE, around.only).into_iter();
        let gangs = asked.map(|(name, stored)| {
            let members = roster
                .get(&store::key(name, SOURCE))
                .map_or(&[][..], Vec::as_slice);
            let spec = match &stored.spec {
                Ok(spec) => spec,
                Err(problem) => return stored.invalid(name, SOURCE, problem.clone()),
            };
            gang(name, stored, spec, members, around)
        });
        gangs.collect()
    }
}

fn gang(
    name: &Name,
    stored: &Stored<PodGroupSpec>,
    spec: &PodGroupSpec,
    members: &[&mut Member],
    around: &mut Surroundings<'_>,
) -> GangSpec {
    around.check_amounts(&spec.min_resources, "spec.minResources", stored);
    // Absent reads as 0 there and sets no barrier; each pod alone is enough, which is what 1 means.
    let min = match count(spec.min_member, 1, 1, "spec.minMember") {
        Ok(min) => min,
        Err(problem) => {
            around.refuse(stored, &problem);
            return stored.invalid(name, SOURCE, problem);
        }
    };
    let timeout = match spec.schedule_timeout_seconds {
        None => DEFAULT_TIMEOUT,
        Some(seconds) if seconds > 0 => Nanos::from_secs(seconds.unsigned_abs()),
        Some(seconds) => {
            let accepted = "1 or more; 60 is used";
            around.warn(
                stored,
                "spec.scheduleTimeoutSeconds",
                &seconds.to_string(),
                accepted,
            );
            DEFAULT_TIMEOUT
        }
    };
    let gang = GangSpec {
        // Its scheduler orders groups by the priority of their pods.
        priority: around.priority(None, "", members, stored),
        schedule_timeout: Some(timeout),
        ..stored.gang(name, SOURCE, store::role(&name.1, min))
    };
    koordinator::on_pod_group(gang, stored, around).unwrap_or_else(|problem| {
        around.refuse(stored, &problem);
        stored.invalid(name, SOURCE, problem)
    })
}

#[cfg(test)]
mod tests {
    use gangline::{gang::LossMode, units::Nanos};

    use crate::intake::testing::world;

    fn group(spec: &str) -> String {
        format!(
            "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\n\
             metadata: {{name: g, namespace: ml}}\nspec: {{{spec}}}\n---\n"
        )
    }

    const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: ml, labels: \
                       {scheduling.x-k8s.io/pod-group: g}}\nspec: {priority: 8}\n";

    #[test]
    fn a_group_is_one_leaf_with_a_timeout() {
        let world = world(&[&group("minMember: 3"), POD].concat());
        assert_eq!(world.trees(), ["scheduler-plugins/g: g>=3"]);
        assert_eq!(world.links(), ["p: scheduler-plugins/g "]);
        assert_eq!(world.gang("g").schedule_timeout, Some(Nanos::from_secs(60)));
        assert_eq!(world.gang("g").priority, 8);
    }

    #[test]
    fn what_koordinators_annotations_on_it_say_goes_first() {
        let annotated = |words: &[(&str, &str)]| {
            let words = words
                .iter()
                .map(|(key, value)| format!("gang.scheduling.koordinator.sh/{key}: '{value}', "));
            let words: String = words.collect();
            let annotations = format!("namespace: ml, annotations: {{{words}}}");
            world(&group("minMember: 3").replace("namespace: ml", &annotations))
        };
        let said = annotated(&[
            ("min-available", "5"),
            ("waiting-time", "90s"),
            ("match-policy", "waiting-and-running"),
            ("mode", "NonStrict"),
            ("total-number", "7"),
            ("groups", "[\"ml/g\"]"),
        ]);
        assert_eq!(said.trees(), ["scheduler-plugins/g: g>=5"]);
        let gang = said.gang("g");
        assert_eq!(gang.schedule_timeout, Some(Nanos::from_secs(90)));
        assert_eq!(gang.on_loss, LossMode::Strict);
        assert!(said.complaints.is_empty(), "{:?}", said.complaint_lines());
        let nothing = annotated(&[("min-available", ""), ("groups", "")]);
        assert_eq!(nothing.trees(), ["scheduler-plugins/g: g>=3"]);
        let wrong = annotated(&[
            ("waiting-time", "soon"),
            ("match-policy", "always"),
            ("mode", "Lax"),
            ("total-number", "0"),
            ("network-topology-spec", "{}"),
        ]);
        assert_eq!(wrong.trees(), ["scheduler-plugins/g: g>=3"]);
        assert_eq!(wrong.gang("g").schedule_timeout, Some(Nanos::from_secs(60)));
        assert_eq!(wrong.complaint_lines().len(), 5);
        let bundle = annotated(&[("groups", "[\"ml/g\", \"ml/h\"]")]);
        assert_eq!(
            bundle.trees(),
            ["scheduler-plugins/g: g>=1 !InvalidGangGroup"]
        );
        assert_eq!(
            bundle.complaint_lines(),
            ["dump, document 1: PodGroup ml/g: \
              metadata.annotations[gang.scheduling.koordinator.sh/groups]: h; accepted: the group \
              itself; gangs that pods name by annotations start together"]
        );
        let senseless = annotated(&[("min-available", "many")]);
        assert_eq!(
            senseless.trees(),
            ["scheduler-plugins/g: g>=1 !InvalidMinimum"]
        );
    }

    #[test]
    fn a_status_that_says_it_ran_is_believed_and_a_broken_one_costs_nothing() {
        let started = |status: &str| {
            let status = format!("status: {status}\n---\n");
            world(&group("minMember: 3").replace("---\n", &status))
                .gang("g")
                .started
        };
        assert!(started("{phase: Running}"));
        assert!(started(
            "{conditions: [{type: PodGroupInitiallyScheduled, status: 'True'}]}"
        ));
        assert!(!started("{phase: Pending}"));
        assert!(!started(
            "{conditions: [{type: PodGroupInitiallyScheduled, status: 'False'}]}"
        ));
        assert!(!started("[1, 2]"));
    }

    #[test]
    fn the_groups_own_timeout_goes_first_and_a_senseless_one_is_named() {
        let timeout = |spec: &str| world(&group(spec)).gang("g").schedule_timeout;
        assert_eq!(
            timeout("scheduleTimeoutSeconds: 5"),
            Some(Nanos::from_secs(5))
        );
        assert_eq!(
            timeout("scheduleTimeoutSeconds: 0"),
            Some(Nanos::from_secs(60))
        );
        let world = world(&group("minMember: 1, scheduleTimeoutSeconds: -5"));
        assert_eq!(
            world.complaint_lines(),
            [
                "dump, document 1: PodGroup ml/g: spec.scheduleTimeoutSeconds: -5; accepted: 1 or \
             more; 60 is used"
            ]
        );
    }

    #[test]
    fn zero_is_refused_and_absent_is_one() {
        assert_eq!(world(&group("")).trees(), ["scheduler-plugins/g: g>=1"]);
        let zero = world(&group("minMember: 0"));
        assert_eq!(zero.trees(), ["scheduler-plugins/g: g>=1 !InvalidMinimum"]);
        assert_eq!(zero.complaint_lines().len(), 1);
    }

    #[test]
    fn amounts_that_cannot_be_counted_are_named_and_decide_nothing() {
        let text = "minMember: 1, minResources: {cpu: -1, memory: lots, nvidia.com/gpu: 8}";
        let world = world(&group(text));
        assert!(world.gang("g").problem.is_none());
        let lines = world.complaint_lines();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("spec.minResources.cpu"), "{lines:?}");
    }
}
