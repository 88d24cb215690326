//! From a decoded pod to the core's template: everything that decides where the pod may run.
//!
//! Data enters as a pod of the API and leaves as a [`Template`], shared by all pods that are alike
//! ([`Templates`]). What the API server fills in (a limit as request, container ports as host ports
//! on the host's network, `Equal`, `Honor`) is filled in here too, so that a manifest means what the
//! pod would mean. A rule that cannot be honoured is noted as a problem and left out; the pod then
//! waits with that problem. Volumes and device claims are not read: pods with claims are refused.

use gangline::{request::Template, units::Nanos};

use crate::{
    annotations::{self, MAX_RUNTIME},
    api,
    pod::request,
    problem::{FieldPath, Problems},
};

mod nodes;
mod ports;
mod relations;
mod selector;
mod templates;

pub use nodes::{taint, toleration};
pub use selector::label_selector;
pub(crate) use selector::node_selector_term;
pub use templates::Templates;

const SPEC: FieldPath<'static> = FieldPath::root("spec");

/// The template of one pod, with those of its labels that `is_selected` says some pod's rules name.
/// Other labels decide nothing, and left in they would make every pod of a stateful set a kind of its
/// own.
pub fn template(
    pod: &api::Pod,
    is_selected: impl Fn(&str) -> bool,
    problems: &mut Problems,
) -> Template {
    annotations::check_pod(&pod.metadata, problems);
    let request = request(pod, problems);
    if !pod.spec.resource_claims.is_empty() {
        problems.note(
            "UnsupportedResourceClaims",
            &SPEC.name("resourceClaims"),
            format_args!(
                "{} given; accepted: none, device claims are not planned yet",
                pod.spec.resource_claims.len()
            ),
        );
    }
    let labels = pod
        .metadata
        .labels
        .iter()
        .filter(|(key, _)| is_selected(key));
    Template {
        namespace: pod.metadata.namespace_or_default().into(),
        labels: labels
            .map(|(key, value)| (key.into(), (&**value).into()))
            .collect(),
        resources: request.resources,
        cards: request.cards,
        nodes: nodes::node_rules(&pod.spec, problems),
        host_ports: ports::host_ports(&pod.spec, problems),
        relations: relations::relations(pod, problems),
        max_runtime: max_runtime(pod, problems),
    }
}

/// The shorter of what the pod's deadline and its annotation say.
fn max_runtime(pod: &api::Pod, problems: &mut Problems) -> Option<Nanos> {
    let deadline = pod.spec.active_deadline_seconds.and_then(|seconds| {
        let valid = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0);
        if valid.is_none() {
            problems.note(
                "InvalidDeadline",
                &SPEC.name("activeDeadlineSeconds"),
                format_args!("{seconds}; accepted: a whole number above 0"),
            );
        }
        valid.map(Nanos::from_secs)
    });
    let annotated = pod.metadata.annotations.get(MAX_RUNTIME).and_then(|text| {
        let duration = parse_duration(text);
        if duration.is_none() {
            let annotations = FieldPath::root("metadata");
            problems.note(
                "InvalidDuration",
                &annotations.name("annotations").key(MAX_RUNTIME),
                format_args!("{text:?}; accepted: a duration above 0 such as 90s, 10m or 2h"),
            );
        }
        duration
    });
    match (deadline, annotated) {
        (Some(deadline), Some(annotated)) => Some(deadline.min(annotated)),
        (deadline, annotated) => deadline.or(annotated),
    }
}

/// A duration such as `90s`, `10m`, `1h30m`; `None` when it is none, or not above zero.
pub fn parse_duration(text: &str) -> Option<Nanos> {
    let duration = text.parse::<jiff::SignedDuration>().ok()?;
    let nanos = u64::try_from(duration.as_nanos()).ok()?;
    (nanos > 0).then_some(Nanos(nanos))
}

#[cfg(test)]
mod tests;
