//! The world outside the engine, as a scenario plays it: which objects exist and what became of them.
//!
//! Data enters as [`Action`]s and as the engine's placements; it leaves as the [`Event`]s that a live
//! cluster would send. It keeps only what it needs to send whole objects, and decides nothing.

use std::collections::{BTreeMap, BTreeSet};

use gangline::{
    Event, Placement,
    cluster::spec::NodeSpec,
    device::Devices,
    engine::Snapshot,
    gang::{GangKey, GangSpec, GroupKind, Minimum, PodPhase, PodSpec},
    units::{Nanos, Uid},
};

use super::{
    build::{self, Leaf, Member, NAMESPACE, Wrong},
    devices,
    event::{Action, Bind, BindFails, Change, Ending, Join},
    shape::{PodShape, WorkShape},
    value::Names,
};

/// What exists outside.
#[derive(Debug, Default)]
pub(super) struct Outside {
    nodes: BTreeMap<String, NodeSpec>,
    groups: BTreeMap<GangKey, GangSpec>,
    pods: BTreeMap<Uid, Member>,
    /// Shapes of the leaves of gangs, for pods that join later.
    leaves: BTreeMap<GangKey, Vec<Leaf>>,
    /// Identity by full name: the newest.
    names: BTreeMap<String, Uid>,
    /// Binds that will fail, by pod.
    failing: BTreeMap<Uid, BindFails>,
    /// Placements that nobody has confirmed.
    in_flight: BTreeMap<Uid, (String, Devices)>,
    /// When running pods will succeed.
    ends: BTreeSet<(Nanos, Uid)>,
}

/// A name with its namespace: `default` when it has none.
pub(super) fn full_name(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap_or((NAMESPACE, name))
}

fn key_of(name: &str) -> GangKey {
    let (namespace, name) = full_name(name);
    build::key(namespace, name)
}

impl Outside {
    /// The objects of a snapshot.
    pub(super) fn from_snapshot(snapshot: &Snapshot) -> Self {
        let mut outside = Self::default();
        let nodes = snapshot
            .nodes
            .iter()
            .map(|node| (node.name.clone(), node.clone()));
        outside.nodes = nodes.collect();
        let groups = snapshot.gangs.iter().filter_map(|gang| gang.spec.clone());
        outside.groups = groups.map(|group| (group.key.clone(), group)).collect();
        for pod in &snapshot.pods {
            let spec = pod.spec.clone();
            if let Some(held) = &pod.held {
                outside.in_flight.insert(spec.uid, held.clone());
            }
            outside.add(Member {
                spec,
                runtime: None,
            });
        }
        outside
    }

    /// When the next running pod will succeed.
    pub(super) fn next_end(&self) -> Option<Nanos> {
        self.ends.first().map(|(at, _)| *at)
    }

    /// Pods that succeed by themselves at this moment or before.
    pub(super) fn due(&mut self, now: Nanos) -> (Vec<String>, Vec<Event>) {
        let (mut names, mut events) = (Vec::new(), Vec::new());
        while let Some(&(at, uid)) = self.ends.first().filter(|(at, _)| *at <= now) {
            self.ends.remove(&(at, uid));
            if let Some(pod) = self.pods.get(&uid) {
                names.push(pod.spec.name.clone());
            }
            events.extend(self.update(uid, |pod| pod.phase = PodPhase::Succeeded));
        }
        (names, events)
    }

    /// The events that an action means.
    pub(super) fn act(&mut self, action: Action, now: Nanos) -> Result<Vec<Event>, Wrong> {
        match action {
            Action::Submit(work) => self.submit(&work, now),
            Action::Join(join) => self.join(&join, now),
            Action::Change(change) => self.change(&change),
            Action::Node(shape) => {
                let each = |name: &String| {
                    let node = build::node(name, &shape, self.nodes.get(name))?;
                    self.nodes.insert(name.clone(), node.clone());
                    Ok(Event::Node(node))
                };
                shape.name.0.iter().map(each).collect()
            }
            Action::RemoveNode(names) => {
                names.0.into_iter().map(|name| self.remove(name)).collect()
            }
            Action::Cordon(names, cordoned) => {
                let each = |name: &String| {
                    let node = self.nodes.get_mut(name).ok_or_else(|| no_node(name))?;
                    node.unschedulable = cordoned;
                    Ok(Event::Node(node.clone()))
                };
                names.0.iter().map(each).collect()
            }
            Action::End(names, ending) => self.end(&names, ending),
            Action::DeleteGroup(names) => {
                let each = |name: &String| {
                    let key = key_of(name);
                    let group = self.groups.remove(&key).ok_or_else(|| no_gang(name))?;
                    let uid = group.uid;
                    Ok(Event::GangGone { key, uid })
                };
                names.0.iter().map(each).collect()
            }
            Action::Gate(names, gated) => {
                let pods = self.select(&names)?;
                let update = |uid| self.update(uid, |pod| pod.gated = gated);
                Ok(pods.into_iter().filter_map(update).collect())
            }
            Action::Bind(bind) => self.bind(&bind, now),
            Action::Confirm(names) => {
                let pods = self.select(&names)?;
                let confirm = |uid| self.confirm(uid, now);
                Ok(pods.into_iter().filter_map(confirm).collect())
            }
            Action::BindFails(fails) => {
                for uid in self.select(&fails.of)? {
                    self.failing.insert(uid, fails.clone());
                }
                Ok(Vec::new())
            }
            Action::Apply(event) => Ok(vec![*event]),
            Action::Nothing => Ok(Vec::new()),
        }
    }

    /// Takes note of a placement. It is in flight until it is confirmed or fails.
    pub(super) fn placed(&mut self, placement: &Placement, node: &str) {
        let place = (node.to_owned(), placement.devices);
        self.in_flight.insert(placement.pod, place);
    }

    /// What the bind of a placed pod comes to.
    pub(super) fn confirm(&mut self, uid: Uid, now: Nanos) -> Option<Event> {
        let (node, devices) = self.in_flight.remove(&uid)?;
        if let Some(fails) = self
            .failing
            .get_mut(&uid)
            .filter(|fails| fails.times != Some(0))
        {
            fails.times = fails.times.map(|times| times - 1);
            let message = fails.message.clone();
            let permanent = fails.permanent;
            return Some(Event::BindFailed {
                pod: uid,
                permanent,
                message,
            });
        }
        if !self.nodes.contains_key(&node) {
            return Some(Event::BindFailed {
                pod: uid,
                permanent: true,
                message: format!("node {node} not found"),
            });
        }
        let event = self.update(uid, |pod| {
            pod.node = Some(node);
            pod.devices = Some(devices).filter(|devices| !devices.is_empty());
            pod.phase = PodPhase::Running;
            pod.started = Some(now);
        });
        self.will_end(uid);
        event
    }

    fn submit(&mut self, shape: &WorkShape, now: Nanos) -> Result<Vec<Event>, Wrong> {
        let work = build::work(shape, now)?;
        let mut events = Vec::new();
        if let Some(name) = &shape.gang {
            let key = build::key(shape.namespace.as_deref().unwrap_or(NAMESPACE), name);
            self.leaves.insert(key, build::tree(shape).1);
        }
        if let Some(group) = work.group {
            self.groups.insert(group.key.clone(), group.clone());
            events.push(Event::Gang(group));
        }
        events.extend(work.pods.into_iter().map(|pod| self.add(pod)));
        Ok(events)
    }

    fn add(&mut self, pod: Member) -> Event {
        let uid = pod.spec.uid;
        let event = Event::Pod(pod.spec.clone());
        let name = format!("{}/{}", pod.spec.namespace, pod.spec.name);
        self.names.insert(name, uid);
        self.pods.insert(uid, pod);
        self.will_end(uid);
        event
    }

    /// Notes when a running pod will succeed.
    fn will_end(&mut self, uid: Uid) {
        let Some(pod) = self.pods.get(&uid) else {
            return;
        };
        if let (Some(started), Some(runtime)) = (pod.spec.started, pod.runtime) {
            self.ends.insert((started.saturating_add(runtime), uid));
        }
    }

    fn join(&mut self, join: &Join, now: Nanos) -> Result<Vec<Event>, Wrong> {
        let (default_namespace, gang) = full_name(&join.gang);
        let namespace = join.namespace.as_deref().unwrap_or(default_namespace);
        let key = build::key(namespace, gang);
        let leaves = self.leaves.get(&key);
        let leaf = leaves.and_then(|leaves| leaves.iter().find(|leaf| leaf.role == join.role));
        let shape = match (&join.pod, leaf) {
            (Some(pod), _) => pod.clone(),
            (None, Some(leaf)) => leaf.shape.clone(),
            (None, None) if leaves.is_none() => PodShape::default(),
            (None, None) => return Err(format!("{gang} has no role {:?}", join.role)),
        };
        build::check_pods(u64::from(join.count.unwrap_or(1)))?;
        let priority = self.groups.get(&key).map_or(0, |group| group.priority);
        let names = match &join.names {
            Some(names) => names.0.clone(),
            None => self.next_names(&key, &join.role, join.count.unwrap_or(1)),
        };
        let mut events = Vec::new();
        for name in names {
            let gang = Some((&key, join.role.as_str()));
            let uid = join.uid.as_deref();
            let mut pod = build::pod((namespace, &name), gang, &shape, now, uid)?;
            pod.spec.priority = priority;
            events.push(self.add(pod));
        }
        Ok(events)
    }

    fn next_names(&self, key: &GangKey, role: &str, count: u32) -> Vec<String> {
        let name = |ordinal| build::pod_name(&key.name, role, ordinal);
        let free = |name: &String| {
            !self
                .names
                .contains_key(&format!("{}/{name}", key.namespace))
        };
        (0..).map(name).filter(free).take(count as usize).collect()
    }

    fn change(&mut self, change: &Change) -> Result<Vec<Event>, Wrong> {
        let group = self.groups.get_mut(&key_of(&change.gang));
        let group = group.ok_or_else(|| no_gang(&change.gang))?;
        match &mut group.root.kind {
            GroupKind::Role(role) => {
                role.min = change.min.unwrap_or(role.min);
                role.count = change.size.unwrap_or(role.count);
            }
            GroupKind::Group { min, .. } => {
                *min = change.min.map_or(*min, Minimum::Members);
            }
        }
        group.priority = change.priority.unwrap_or(group.priority);
        if let Some(level) = &change.required {
            let level = Some(build::level_label(level));
            group.root.topology.required = level.filter(|level| !level.is_empty());
        }
        Ok(vec![Event::Gang(group.clone())])
    }

    fn remove(&mut self, name: String) -> Result<Event, Wrong> {
        match self.nodes.remove(&name) {
            Some(_) => Ok(Event::NodeGone { name }),
            None => Err(no_node(&name)),
        }
    }

    fn end(&mut self, names: &Names, ending: Ending) -> Result<Vec<Event>, Wrong> {
        let mut events = Vec::new();
        for uid in self.select(names)? {
            events.extend(match ending {
                Ending::Finish => self.update(uid, |pod| pod.phase = PodPhase::Succeeded),
                Ending::Fail => self.update(uid, |pod| pod.phase = PodPhase::Failed),
                Ending::Terminate => self.update(uid, |pod| pod.terminating = true),
                Ending::Delete => self.gone(uid),
            });
        }
        for name in names.0.iter().filter(|_| ending == Ending::Delete) {
            let key = key_of(name);
            if let Some(group) = self.groups.remove(&key) {
                let uid = group.uid;
                events.push(Event::GangGone { key, uid });
            }
        }
        Ok(events)
    }

    pub(super) fn gone(&mut self, uid: Uid) -> Option<Event> {
        let pod = self.pods.remove(&uid)?;
        let name = format!("{}/{}", pod.spec.namespace, pod.spec.name);
        if self.names.get(&name) == Some(&uid) {
            self.names.remove(&name);
        }
        self.in_flight.remove(&uid);
        Some(Event::PodGone { uid })
    }

    fn bind(&mut self, bind: &Bind, now: Nanos) -> Result<Vec<Event>, Wrong> {
        let node = self.nodes.get(&bind.node);
        let devices = devices::held(bind.cards.as_deref(), &bind.parts, node)?;
        let mut events = Vec::new();
        for uid in self.select(&bind.pod)? {
            self.in_flight.remove(&uid);
            events.extend(self.update(uid, |pod| {
                pod.node = Some(bind.node.clone());
                pod.devices = devices;
                pod.phase = PodPhase::Running;
                pod.started = Some(now);
            }));
            self.will_end(uid);
        }
        Ok(events)
    }

    fn update(&mut self, uid: Uid, change: impl FnOnce(&mut PodSpec)) -> Option<Event> {
        let pod = self.pods.get_mut(&uid)?;
        change(&mut pod.spec);
        Some(Event::Pod(pod.spec.clone()))
    }

    /// Pods by name (`a-0`, or `a-0#UID` for an older one of that name), or all those of gangs.
    fn select(&self, names: &Names) -> Result<Vec<Uid>, Wrong> {
        let mut selected = Vec::new();
        for name in &names.0 {
            if let Some((_, uid)) = name.split_once('#') {
                selected.push(Uid::from_text(uid));
                continue;
            }
            let (namespace, short) = full_name(name);
            if let Some(uid) = self.names.get(&format!("{namespace}/{short}")) {
                selected.push(*uid);
                continue;
            }
            let key = build::key(namespace, short);
            let of_gang = |pod: &&Member| pod.spec.gang.as_ref() == Some(&key);
            let before = selected.len();
            selected.extend(self.pods.values().filter(of_gang).map(|pod| pod.spec.uid));
            if selected.len() == before && !self.groups.contains_key(&key) {
                return Err(format!("there is no pod or gang {name}"));
            }
        }
        // In order of names, as a person would expect, not of identities.
        selected.sort_by_key(|uid| self.pods.get(uid).map(|pod| pod.spec.name.clone()));
        Ok(selected)
    }
}

fn no_node(name: &str) -> Wrong {
    format!("there is no node {name}")
}

fn no_gang(name: &str) -> Wrong {
    format!("there is no group object {name}")
}
