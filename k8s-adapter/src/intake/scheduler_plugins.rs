//! `PodGroup`s of the scheduler-plugins project (`scheduling.x-k8s.io`, "coscheduling").
//!
//! Pods name their group by a label. A group has one minimum over pods of any shape and a timeout of
//! 60 seconds unless it says otherwise. `minResources` is checked but decides nothing: there it is a
//! rough test on sums that saves the real one, here the real one is made.

use gangline::gang::{GangKey, GangSpec};
use gangline::units::Nanos;
use serde::Deserialize;

use super::store::{self, Name, Store, Stored};
use super::{Dialect, Kind, Link, Member, Roster, Surroundings, count};
use crate::api::{Pod, ResourceList, whole_number};
use crate::load::{Complaint, Document};

const SOURCE: &str = "scheduler-plugins";
const LABEL: &str = "scheduling.x-k8s.io/pod-group";
/// The scheduler's own setting (`permitWaitingTimeSeconds`) is not in a dump; its default is.
const DEFAULT_TIMEOUT: Nanos = Nanos::from_secs(60);

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
        }]
    }

    fn take(&mut self, document: &Document<'_>, arrival: Nanos) -> Result<(), Box<Complaint>> {
        self.groups.take(document, true, arrival)
    }

    fn link(&self, pod: &Pod) -> Option<Link> {
        let name = pod
            .metadata
            .labels
            .get(LABEL)
            .filter(|name| !name.is_empty())?;
        Some(Link {
            key: GangKey {
                namespace: pod.metadata.namespace.to_string(),
                name: name.to_string(),
                source: SOURCE.into(),
            },
            field: "metadata.labels[scheduling.x-k8s.io/pod-group]",
            task: "".into(),
            implied: None,
        })
    }

    fn gangs(&self, roster: &mut Roster<'_>, around: &mut Surroundings<'_>) -> Vec<GangSpec> {
        let gangs = self.groups.iter().map(|(name, stored)| {
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
    GangSpec {
        // Its scheduler orders groups by the priority of their pods.
        priority: around.priority(None, "", members, stored),
        schedule_timeout: Some(timeout),
        ..stored.gang(name, SOURCE, store::role(&name.1, min))
    }
}
