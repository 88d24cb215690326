//! From a decoded pod to the core's.
//!
//! Data enters as a pod of the API and leaves as a [`PodSpec`] without a gang: which group it belongs
//! to, and in which role, is for the reader of that group's dialect to fill in. Times are
//! nanoseconds since 1970. A pod that cannot be honoured carries its first problem and waits with it;
//! once it is bound its rules no longer decide anything, so it carries none, but counts.

use std::collections::BTreeSet;

use gangline::{
    gang::{PodPhase, PodSpec, Problem},
    units::Uid,
};

use crate::{
    api,
    cards::given,
    load::{Complaint, Severity, Source},
    priority::PriorityClasses,
    problem::{FieldPath, Problems},
    rules::Templates,
};

/// The scheduler name of pods that do not say.
pub const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// What is needed to read pods, and what pods share.
#[derive(Clone, Debug, Default)]
pub struct PodReader {
    /// The templates of all pods read. Let it [`learn`](Templates::learn) from every pod before the
    /// first one is read.
    pub templates: Templates,
    /// The cluster's priority classes.
    pub priorities: PriorityClasses,
    /// Scheduler names that are answered for; pods with another one are foreign. `None`: all.
    pub scheduler_names: Option<BTreeSet<String>>,
}

impl PodReader {
    /// Reads a pod. `gang`, `role` and `cards` are left open.
    pub fn read(&mut self, pod: &api::Pod, problems: &mut Problems) -> PodSpec {
        let meta = &pod.metadata;
        let namespace = meta.namespace_or_default();
        let bound = !pod.spec.node_name.is_empty();
        let template = self.templates.template(pod, problems);
        let priority = self.priority(&pod.spec, problems);
        let phase = phase(pod, problems);
        // Of a waiting pod it says what somebody wrote on it, not what was chosen.
        let devices = bound.then(|| given::read(&meta.annotations, problems));
        let foreign = self.is_foreign(&pod.spec.scheduler_name);
        // On a pod of ours it is what another scheduler left there: nobody makes room for it any more.
        let nominated = &pod.status.nominated_node_name;
        let is_nominated = foreign && !bound && !nominated.is_empty();
        let mut images: Vec<u64> = Vec::new();
        if !bound && !foreign {
            let containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
            images.extend(containers.map(|it| it.image.0).filter(|&image| image > 0));
            images.sort_unstable();
            images.dedup();
        }
        PodSpec {
            uid: uid(&meta.uid, "Pod", namespace, &meta.name),
            namespace: namespace.into(),
            name: (&*meta.name).into(),
            gang: None,
            role: String::new(),
            template,
            node: bound.then(|| (&*pod.spec.node_name).into()),
            devices: devices.flatten(),
            phase,
            created: meta.creation_timestamp.unwrap_or_default().0,
            started: pod.status.start_time.map(|time| time.0),
            priority,
            gated: !pod.spec.scheduling_gates.is_empty(),
            terminating: meta.deletion_timestamp.is_some(),
            foreign,
            images: images.into(),
            nominated: is_nominated.then(|| (&**nominated).into()),
            problem: problems.first().filter(|_| !bound).cloned(),
        }
    }

    /// The number, else the class by name, else the cluster's default.
    fn priority(&self, spec: &api::PodSpec, problems: &mut Problems) -> i32 {
        let path = FieldPath::root("spec");
        if let Some(priority) = spec.priority {
            return i32::try_from(priority).unwrap_or_else(|_| {
                problems.note(
                    "InvalidPriority",
                    &path.name("priority"),
                    format_args!("{priority}; accepted: {} to {}", i32::MIN, i32::MAX),
                );
                0
            });
        }
        let class = &spec.priority_class_name;
        self.priorities.value(class).unwrap_or_else(|| {
            problems.note(
                "UnknownPriorityClass",
                &path.name("priorityClassName"),
                format_args!("{class:?}; accepted: the name of an existing PriorityClass"),
            );
            0
        })
    }

    fn is_foreign(&self, scheduler_name: &str) -> bool {
        let name = match scheduler_name {
            "" => DEFAULT_SCHEDULER,
            name => name,
        };
        self.scheduler_names
            .as_ref()
            .is_some_and(|answered| !answered.contains(name))
    }
}

fn phase(pod: &api::Pod, problems: &mut Problems) -> PodPhase {
    match &*pod.status.phase {
        "" | "Pending" => PodPhase::Pending,
        // Unknown: its node does not answer. As far as anybody knows it still runs there.
        "Running" | "Unknown" => PodPhase::Running,
        "Succeeded" => PodPhase::Succeeded,
        "Failed" => PodPhase::Failed,
        other => {
            problems.note(
                "InvalidPhase",
                &FieldPath::root("status").name("phase"),
                format_args!("{other:?}; accepted: Pending, Running, Succeeded, Failed, Unknown"),
            );
            PodPhase::Pending
        }
    }
}

/// The identity of an object: its uid, or for one from a manifest its kind, namespace and name.
pub fn uid(uid: &str, kind: &str, namespace: &str, name: &str) -> Uid {
    if uid.is_empty() {
        Uid::from_text(&format!("{kind}/{namespace}/{name}"))
    } else {
        Uid::from_text(uid)
    }
}

/// What is wrong with a pod: it is not used, unless it runs or has ended all the same.
pub(crate) fn pod_complaint(source: &Source, spec: &PodSpec, problem: &Problem) -> Complaint {
    let object = format!("Pod {}/{}", spec.namespace, spec.name);
    let complaint = Complaint::from_problem(source, &object, problem);
    let is_open = spec.node.is_none() && spec.phase == PodPhase::Pending;
    let severity = if is_open {
        complaint.severity
    } else {
        Severity::Warning
    };
    Complaint {
        severity,
        ..complaint
    }
}

#[cfg(test)]
mod tests {
    use gangline::{request::CardRequest, units::Nanos};

    use super::*;

    fn read(reader: &mut PodReader, yaml: &str) -> (PodSpec, Vec<String>) {
        let mut problems = Problems::default();
        let pod = serde_saphyr::from_str(yaml).unwrap();
        let spec = reader.read(&pod, &mut problems);
        (spec, problems.iter().map(ToString::to_string).collect())
    }

    fn good(yaml: &str) -> PodSpec {
        let (spec, problems) = read(&mut PodReader::default(), yaml);
        assert_eq!(problems, [""; 0]);
        spec
    }

    #[test]
    fn a_running_pod_is_read_whole() {
        let pod = good(
            "
metadata: {name: p, namespace: prod, uid: 6ba7b810-9dad-11d1-80b4-00c04fd430c8,
           creationTimestamp: 1970-01-01T00:01:00Z, deletionTimestamp: 2026-01-01T00:00:00Z}
spec: {nodeName: n1, priority: 7, schedulingGates: [{name: g}]}
status: {phase: Running, startTime: 1970-01-01T00:02:00Z}
",
        );
        assert_eq!(pod.uid, Uid(0x6ba7_b810_9dad_11d1_80b4_00c0_4fd4_30c8));
        assert_eq!((&*pod.namespace, &*pod.name), ("prod", "p"));
        assert_eq!(pod.node.as_deref(), Some("n1"));
        assert_eq!((pod.phase, pod.priority), (PodPhase::Running, 7));
        assert_eq!(pod.created, Nanos::from_secs(60));
        assert_eq!(pod.started, Some(Nanos::from_secs(120)));
        assert!(pod.gated && pod.terminating && !pod.foreign);
        assert_eq!((pod.gang, &*pod.role), (None, ""));
    }

    #[test]
    fn a_pod_from_a_manifest_gets_what_it_leaves_open() {
        let pod = good("metadata: {name: p}");
        assert_eq!((&*pod.namespace, pod.phase), ("default", PodPhase::Pending));
        assert_eq!(pod.uid, Uid::from_text("Pod/default/p"));
        assert_eq!(
            (pod.node, pod.created, pod.priority),
            (None, Nanos::ZERO, 0)
        );
    }

    #[test]
    fn phases_are_read_and_an_unknown_one_is_named() {
        let phase = |word: &str| good(&format!("status: {{phase: {word}}}")).phase;
        assert_eq!(phase("Succeeded"), PodPhase::Succeeded);
        assert_eq!(phase("Failed"), PodPhase::Failed);
        assert_eq!(phase("Unknown"), PodPhase::Running);
        let (_, problems) = read(&mut PodReader::default(), "status: {phase: Napping}");
        assert_eq!(
            problems,
            [
                "InvalidPhase: status.phase: \"Napping\"; accepted: Pending, Running, Succeeded, \
              Failed, Unknown"
            ]
        );
    }

    #[test]
    fn priority_is_the_number_else_the_class() {
        let mut reader = PodReader::default();
        let class = serde_saphyr::from_str("{metadata: {name: high}, value: 1000}").unwrap();
        reader.priorities.insert(&class).unwrap();
        let mut priority = |spec: &str| read(&mut reader, &format!("spec: {{{spec}}}"));
        assert_eq!(priority("priorityClassName: high").0.priority, 1000);
        assert_eq!(
            priority("priorityClassName: high, priority: 3").0.priority,
            3
        );
        let (pod, problems) = priority("priorityClassName: higher");
        assert_eq!(
            problems,
            [
                "UnknownPriorityClass: spec.priorityClassName: \"higher\"; accepted: the name of an \
              existing PriorityClass"
            ]
        );
        assert_eq!(pod.problem.unwrap().code, "UnknownPriorityClass");
        assert_eq!(priority("priority: 3000000000").1.len(), 1);
    }

    #[test]
    fn pods_of_other_schedulers_are_foreign_only_when_names_are_told() {
        let mut reader = PodReader::default();
        assert!(
            !read(&mut reader, "spec: {schedulerName: volcano}")
                .0
                .foreign
        );
        reader.scheduler_names = Some(["gangline".into()].into());
        assert!(
            read(&mut reader, "spec: {schedulerName: volcano}")
                .0
                .foreign
        );
        assert!(
            read(&mut reader, "{}").0.foreign,
            "no name means default-scheduler"
        );
        assert!(
            !read(&mut reader, "spec: {schedulerName: gangline}")
                .0
                .foreign
        );
    }

    #[test]
    fn a_bound_pod_counts_whatever_is_wrong_with_its_rules() {
        let yaml = "spec: {NODE containers: [{resources: {limits: {nvidia.com/gpu: 1}}}],
                           tolerations: [{key: a, operator: Like}]}";
        let (waiting, _) = read(&mut PodReader::default(), &yaml.replace("NODE", ""));
        assert_eq!(waiting.problem.unwrap().code, "InvalidToleration");
        let (bound, problems) = read(
            &mut PodReader::default(),
            &yaml.replace("NODE", "nodeName: n1,"),
        );
        assert_eq!((bound.problem, problems.len()), (None, 1));
        assert_eq!(
            bound.template.cards.as_ref().map(CardRequest::whole_cards),
            Some(1)
        );
    }
}
