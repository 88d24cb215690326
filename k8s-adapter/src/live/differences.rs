//! What a scheduler knows against what there is: two states of an engine, object by object.
//!
//! The state of a running scheduler and one that was rebuilt from a list of the cluster enter as
//! [`Snapshot`]s; what differs leaves, by object and field. Compared is what the objects say: nodes,
//! namespaces, groups, pods, topology levels, and whether the books are right. What only the running one
//! can know (lives, holds, decisions, prices) is not looked at. Nothing here asks anybody, or knows
//! whether a difference is only news on its way.
//!
//! Three things may differ and are right: a template keeps labels that some rule named when it was made;
//! namespaces and levels that are gone decide nothing and stay; and what the claims of a pod mean that has
//! a place and is not bound yet stays what it was when its place was decided.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use gangline::{
    Scheduler,
    engine::Snapshot,
    gang::{GangSpec, PodSpec},
};
use serde::Serialize;
use serde_json::Value;

/// Something that differs: its place, and what each of the two says there.
pub type Differences = BTreeMap<Place, Difference>;

/// Object and field; the field is empty where the whole object is meant.
pub(super) type Place = (String, String);

/// What each of the two says; `None`: nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The running scheduler.
    pub known: Option<Value>,
    /// The cluster.
    pub listed: Option<Value>,
}

/// What differs between the state of a running scheduler and one that was rebuilt.
pub fn differences(known: &Snapshot, listed: &Snapshot) -> Differences {
    let mut found = Differences::new();
    let nodes = |snapshot: &Snapshot| named(&snapshot.nodes, |node| format!("Node {}", node.name));
    compare(&nodes(known), &nodes(listed), &mut found);
    let images = |snapshot: &Snapshot| {
        let images = snapshot.images.iter();
        images
            .map(|(name, images)| (format!("images of Node {name}"), images.clone()))
            .collect()
    };
    compare(&images(known), &images(listed), &mut found);
    compare(&groups(known), &groups(listed), &mut found);
    let (mut known_pods, listed_pods) = (pods(known), pods(listed));
    settle_templates(known, &mut known_pods, &listed_pods);
    compare(&known_pods, &listed_pods, &mut found);
    let namespaces = |snapshot: &Snapshot| {
        let there = listed.namespaces.keys();
        let labels = there.filter_map(|name| {
            let labels = snapshot.namespaces.get(name)?;
            Some((format!("Namespace {name}"), labels.clone()))
        });
        labels.collect()
    };
    compare(&namespaces(known), &namespaces(listed), &mut found);

    let levels = &listed.config.levels;
    let there: BTreeSet<&String> = levels.iter().collect();
    let kept = known.config.levels.iter();
    let kept: Vec<&String> = kept.filter(|level| there.contains(level)).collect();
    if !kept.iter().copied().eq(levels) {
        note("topology", "levels", Some(&kept), Some(levels), &mut found);
    }
    let (kept, right) = (books(known), books(listed));
    if kept != right {
        note("books", "", kept.as_ref(), right.as_ref(), &mut found);
    }
    found
}

/// Objects by kind and name.
type Objects<T> = BTreeMap<String, T>;

fn named<T: Clone>(objects: &[T], name: impl Fn(&T) -> String) -> Objects<T> {
    let objects = objects.iter();
    objects
        .map(|object| (name(object), object.clone()))
        .collect()
}

fn groups(snapshot: &Snapshot) -> Objects<GangSpec> {
    let specs = snapshot.gangs.iter().filter_map(|gang| gang.spec.clone());
    let named = specs.map(|spec| {
        let key = &spec.key;
        let name = format!("group {}/{} ({})", key.namespace, key.name, key.source);
        (name, spec)
    });
    named.collect()
}

fn pods(snapshot: &Snapshot) -> Objects<PodSpec> {
    let specs = snapshot.pods.iter().map(|pod| pod.spec.clone());
    specs.map(|spec| (pod_name(&spec), spec)).collect()
}

fn pod_name(spec: &PodSpec) -> String {
    format!("Pod {}/{}", spec.namespace, spec.name)
}

/// Leaves out of what is known what may differ in templates.
fn settle_templates(
    known: &Snapshot,
    known_pods: &mut Objects<PodSpec>,
    listed_pods: &Objects<PodSpec>,
) {
    let held = known.pods.iter().filter(|pod| pod.held.is_some());
    let held: BTreeSet<String> = held.map(|pod| pod_name(&pod.spec)).collect();
    for (name, pod) in known_pods {
        let Some(listed) = listed_pods.get(name) else {
            continue;
        };
        if pod.template == listed.template {
            continue;
        }
        if held.contains(name) && listed.node.is_none() {
            pod.template = Arc::clone(&listed.template);
            continue;
        }
        let named = &listed.template.labels;
        let template = Arc::make_mut(&mut pod.template);
        template.labels.retain(|label, _| named.contains_key(label));
    }
}

/// What is wrong with the books of an engine in this state.
fn books(snapshot: &Snapshot) -> Option<String> {
    match Scheduler::restore(snapshot.clone()) {
        Ok(scheduler) => scheduler.check().err().map(|error| error.to_string()),
        Err(rejection) => Some(rejection.to_string()),
    }
}

fn compare<T: PartialEq + Serialize>(
    known: &Objects<T>,
    listed: &Objects<T>,
    found: &mut Differences,
) {
    let names: BTreeSet<&String> = known.keys().chain(listed.keys()).collect();
    for name in names {
        let (known, listed) = (known.get(name), listed.get(name));
        if known != listed {
            note(name, "", known, listed, found);
        }
    }
}

fn note<A: Serialize, B: Serialize>(
    object: &str,
    field: &str,
    known: Option<A>,
    listed: Option<B>,
    found: &mut Differences,
) {
    let known = known.and_then(|known| serde_json::to_value(known).ok());
    let listed = listed.and_then(|listed| serde_json::to_value(listed).ok());
    walk(object, field, known.as_ref(), listed.as_ref(), found);
}

/// Goes down to the fields that differ.
fn walk(
    object: &str,
    field: &str,
    known: Option<&Value>,
    listed: Option<&Value>,
    found: &mut Differences,
) {
    if known == listed {
        return;
    }
    if let (Some(Value::Object(known)), Some(Value::Object(listed))) = (known, listed) {
        let fields: BTreeSet<&String> = known.keys().chain(listed.keys()).collect();
        for name in fields {
            let dot = if field.is_empty() { "" } else { "." };
            let field = format!("{field}{dot}{name}");
            walk(object, &field, known.get(name), listed.get(name), found);
        }
        return;
    }
    let place = (object.to_owned(), field.to_owned());
    let difference = Difference {
        known: known.cloned(),
        listed: listed.cloned(),
    };
    found.insert(place, difference);
}

#[cfg(test)]
mod tests {
    use gangline::{device::Devices, gang::PodPhase, units::Uid};

    use super::*;
    use crate::intake::testing::world;

    const CLUSTER: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: ml, labels: {team: a}}
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1, topology.gangline.io/rack: r1}}
status:
  allocatable: {cpu: 8, pods: 20, nvidia.com/gpu: 4}
  conditions: [{type: Ready, status: 'True'}]
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: g, namespace: ml, uid: g}
spec: {minMember: 2}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: ml, uid: p, annotations: {scheduling.k8s.io/group-name: g}}
spec: {schedulerName: gangline, priority: 0, containers: [{name: c}]}
---
apiVersion: v1
kind: Pod
metadata: {name: q, namespace: ml, uid: q}
spec: {schedulerName: gangline, priority: 0, nodeName: n1, containers: [{name: c}]}
status: {phase: Running}
";

    fn snapshot() -> Snapshot {
        world(CLUSTER).engine().snapshot()
    }

    /// What differs after a change to what the scheduler knows: one thing at most.
    fn after(change: impl FnOnce(&mut Snapshot)) -> Option<(String, String, Difference)> {
        let listed = snapshot();
        let mut known = listed.clone();
        change(&mut known);
        let mut found = differences(&known, &listed).into_iter();
        let first = found.next();
        assert_eq!(found.next(), None);
        first.map(|((object, field), difference)| (object, field, difference))
    }

    /// The same, as text.
    fn told(change: impl FnOnce(&mut Snapshot)) -> String {
        let Some((object, field, difference)) = after(change) else {
            return String::new();
        };
        let side = |value: Option<Value>| value.map_or("-".to_owned(), |value| value.to_string());
        let (known, listed) = (side(difference.known), side(difference.listed));
        format!("{object} {field} {known} {listed}")
    }

    fn pod<'a>(snapshot: &'a mut Snapshot, name: &str) -> &'a mut PodSpec {
        let mut pods = snapshot.pods.iter_mut().map(|pod| &mut pod.spec);
        pods.find(|pod| pod.name == name).unwrap()
    }

    #[test]
    fn equal_states_differ_in_nothing_and_one_altered_object_is_named() {
        assert_eq!(told(|_| ()), "");
        assert_eq!(
            told(|known| known.nodes[0].unschedulable = true),
            "Node n1 unschedulable true false"
        );
        assert_eq!(
            told(|known| pod(known, "q").phase = PodPhase::Pending),
            r#"Pod ml/q phase "Pending" "Running""#
        );
        assert_eq!(
            told(|known| {
                let group = known.gangs.iter_mut().find_map(|gang| gang.spec.as_mut());
                group.unwrap().priority = 7;
            }),
            "group ml/g (volcano) priority 7 0"
        );
        assert_eq!(
            told(|known| {
                known.namespaces.insert("ml".into(), BTreeMap::new());
            }),
            r#"Namespace ml team - "a""#
        );
        assert_eq!(
            told(|known| known.config.levels.clear()),
            r#"topology levels [] ["topology.gangline.io/rack"]"#
        );
    }

    #[test]
    fn an_object_that_only_one_of_them_has_is_named() {
        let (object, field, difference) =
            after(|known| known.pods.retain(|pod| pod.spec.name != "p")).unwrap();
        assert_eq!((&*object, &*field), ("Pod ml/p", ""));
        assert_eq!(difference.known, None);
        assert_eq!(difference.listed.unwrap()["name"], "p");
        let (object, _, difference) = after(|known| {
            let mut other = known.pods[0].clone();
            other.spec.name = "other".into();
            other.spec.uid = Uid::from_text("other");
            known.pods.push(other);
        })
        .unwrap();
        assert_eq!(object, "Pod ml/other");
        assert_eq!(difference.listed, None);
    }

    #[test]
    fn what_is_right_all_the_same_is_no_difference() {
        let gone = |known: &mut Snapshot| {
            known.namespaces.insert("gone".into(), BTreeMap::new());
            known.config.levels.insert(0, "gone".into());
            let template = Arc::make_mut(&mut pod(known, "q").template);
            template.labels.insert("app".into(), "a".into());
        };
        assert_eq!(after(gone), None);
        // What a pod asks for that has a place.
        let ask = |known: &mut Snapshot| {
            let template = Arc::make_mut(&mut pod(known, "p").template);
            template.resources.insert("cpu".into(), 1);
        };
        assert_eq!(after(ask).unwrap().1, "template.resources.cpu");
        let held = |known: &mut Snapshot| {
            ask(known);
            let state = known.pods.iter_mut().find(|pod| pod.spec.name == "p");
            state.unwrap().held = Some(("n1".into(), Devices::default()));
        };
        assert_eq!(after(held), None);
    }
}
