//! Objects of one dialect and their pods, as YAML or JSON in a dump beside a healthy gang.
//!
//! Whatever the dump says: the healthy gang is read as if the dump were not there, and is placed.
//! Its pods ask for a resource that nobody else has, and everything of it has [`MARK`] in its name,
//! so that a dump which does not hold the word cannot be about it.

use std::sync::Arc;

use gangline::{Event, Scheduler, engine::MemberState};
use gangline_k8s::{
    load,
    world::{Builder, Options, World},
};

use crate::plan::plan;

const MARK: &str = "healthy";

const NODE: &str = "
apiVersion: v1
kind: Node
metadata: {name: healthy-node}
status: {allocatable: {pods: 1000000, healthy.example/token: 2}}
";

/// A healthy pod, with this in its metadata and this in its spec.
fn pod(name: &str, metadata: &str, spec: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: healthy, uid: {name}, {metadata}}}
spec:
  priority: 0
  {spec}
  containers:
  - name: main
    resources: {{requests: {{healthy.example/token: 1}}, limits: {{healthy.example/token: 1}}}}
"
    )
}

fn healthy(group: &str, metadata: &str, spec: &str) -> String {
    [
        NODE,
        group,
        &pod("healthy-0", metadata, spec),
        &pod("healthy-1", metadata, spec),
    ]
    .concat()
}

/// `PodGroup`s and `CompositePodGroup`s of Kubernetes itself.
pub fn native(data: &[u8]) {
    let group = "---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: healthy, namespace: healthy}
spec: {schedulingPolicy: {gang: {minCount: 2}}, priority: 0}
";
    let link = "schedulingGroup: {podGroupName: healthy}";
    beside(data, &healthy(group, "", link));
}

/// `PodGroup`s and `HyperNode`s of Volcano.
pub fn volcano(data: &[u8]) {
    let group = "---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: healthy, namespace: healthy}
spec: {minMember: 2}
";
    let link = "annotations: {scheduling.k8s.io/group-name: healthy}";
    beside(data, &healthy(group, link, ""));
}

/// `PodGroup`s of scheduler-plugins.
pub fn scheduler_plugins(data: &[u8]) {
    let group = "---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: healthy, namespace: healthy}
spec: {minMember: 2}
";
    let link = "labels: {scheduling.x-k8s.io/pod-group: healthy}";
    beside(data, &healthy(group, link, ""));
}

/// Groups that no object of their own describes, or one of KAI's or Grove's: of owners, labels and
/// annotations. The healthy gang is a `JobSet`.
pub fn other_groups(data: &[u8]) {
    let group = "---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: healthy, namespace: healthy}
spec: {replicatedJobs: [{name: healthy, replicas: 2}]}
";
    let link = "labels: {jobset.sigs.k8s.io/jobset-name: healthy, \
                jobset.sigs.k8s.io/replicatedjob-name: healthy}";
    beside(data, &healthy(group, link, ""));
}

fn beside(data: &[u8], healthy: &str) {
    let alone = read(&[healthy.as_bytes()]);
    let both = read(&[data, healthy.as_bytes()]);
    let about_it = data.windows(MARK.len()).any(|word| word == MARK.as_bytes());
    if about_it {
        plan(both, |_| false);
        return;
    }
    let expected: Vec<Event> = marked(&alone).collect();
    assert_eq!(expected.len(), 4, "a node, a gang, two pods");
    assert_eq!(marked(&both).collect::<Vec<_>>(), expected);
    let keeps_away = both.events.iter().any(keeps_others_away);
    let scheduler = plan(both, is_marked);
    assert!(
        keeps_away || placed(&scheduler) == 2,
        "the healthy gang waits"
    );
}

fn read(files: &[&[u8]]) -> World {
    let options = Options::default();
    let mut progress = |_, _| ();
    let mut builder = Builder::new(&options, &mut progress);
    builder.read(|builder| {
        for file in files {
            load::load_bytes("dump", file, builder);
        }
    });
    builder.finish()
}

fn is_marked(event: &Event) -> bool {
    match event {
        Event::Node(node) => node.name.contains(MARK),
        Event::Gang(gang) => gang.key.namespace == MARK,
        Event::Pod(pod) => pod.namespace == MARK,
        _ => false,
    }
}

/// The healthy objects, without the labels that depend on what others ask for: node labels come
/// from `HyperNode`s too, and pods keep only labels that some rule names.
fn marked(world: &World) -> impl Iterator<Item = Event> {
    let events = world.events.iter().filter(|event| is_marked(event));
    events.cloned().map(|mut event| {
        match &mut event {
            Event::Node(node) => node.labels.clear(),
            Event::Pod(pod) => Arc::make_mut(&mut pod.template).labels.clear(),
            _ => {}
        }
        event
    })
}

/// A pod may rightly refuse any company.
fn keeps_others_away(event: &Event) -> bool {
    matches!(event, Event::Pod(pod) if !pod.template.relations.anti_affinity.is_empty())
}

/// How many of the healthy pods have a place.
fn placed(scheduler: &Scheduler) -> usize {
    let gangs = scheduler.gangs();
    let views = gangs.iter().filter_map(|id| scheduler.gang(*id));
    views
        .filter(|view| view.namespace == MARK)
        .flat_map(|view| view.members)
        .filter(|member| member.state == MemberState::Planned)
        .count()
}
