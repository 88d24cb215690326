//! The engine's state as data: what the objects say, and what cannot be derived from them.
//!
//! A snapshot is in canonical order (names and uids), so equal states give equal bytes. Restoring
//! feeds the objects through `apply` and then sets the rest: lives with their remaining times,
//! holds, pauses, the reservation.

use alloc::{collections::BTreeMap, format, string::String, sync::Arc, vec::Vec};

use super::{
    Config, Event, Rejection, Reservation, Scheduler, Verdict,
    market::Asked,
    store::{BindFailures, Purpose},
};
use crate::{
    cluster::NodeSpec,
    device::Devices,
    gang::{GangKey, GangSpec, PodSpec, life::Life},
    place::worth::PriceList,
    request::Template,
    units::{Nanos, Uid},
};

/// Everything that decides. See the module's head; made by [`Scheduler::snapshot`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Snapshot {
    /// Version of this form: [`Snapshot::VERSION`].
    pub version: u32,
    /// How it decides.
    pub config: Config,
    /// The latest time it was told.
    pub now: Nanos,
    /// Hash of all decisions so far.
    pub decision_hash: u64,
    /// Nodes, by name.
    pub nodes: Vec<NodeSpec>,
    /// What nodes have of images, by name; see [`Event::NodeImages`].
    #[cfg_attr(feature = "serde", serde(default))]
    pub images: BTreeMap<String, Vec<(u64, u32)>>,
    /// Labels of namespaces, by name.
    pub namespaces: BTreeMap<String, BTreeMap<String, String>>,
    /// Groups, by key.
    pub gangs: Vec<GangState>,
    /// Pods, by uid.
    pub pods: Vec<PodState>,
    /// The reservation, if there is one.
    pub reservation: Option<ReservationState>,
    /// How many requeues there have been.
    pub requeues: u64,
    /// The prices that decide.
    pub prices: Option<PriceList>,
    /// Work that was asked for so far, each with its weight, for the usual mix.
    pub asked: Vec<(Arc<Template>, u64)>,
}

/// A group and where it is in its life. Kept apart from its members.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct GangState {
    /// Its key; `None` for a gang of one, which is found by its pod's uid.
    pub key: Option<GangKey>,
    /// The pod of a gang of one.
    pub pod: Option<Uid>,
    /// The group object, if there is one.
    pub spec: Option<GangSpec>,
    /// Phase and remaining times.
    pub life: Life,
    /// What was last decided.
    pub verdict: Verdict,
    /// Whether that was told.
    pub told: bool,
    /// Its place among the requeued; 0: never requeued.
    pub requeued: u64,
    /// Since when it has been ready.
    pub ready_since: Option<Nanos>,
    /// Up to when its clock has been fed.
    pub clock_fed: Option<Nanos>,
}

/// A pod and what it holds without its object saying so.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PodState {
    /// The pod.
    pub spec: PodSpec,
    /// Node and devices that are held for it.
    pub held: Option<(String, Devices)>,
    /// Its release was asked for.
    pub released: bool,
    /// Failed binds.
    pub(crate) failures: Option<BindFailures>,
}

/// The reservation, by names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReservationState {
    /// The group it is for, or the pod of a gang of one.
    pub holder: (Option<GangKey>, Uid),
    /// The nodes.
    pub nodes: Vec<String>,
    /// When the holder is expected to start.
    pub starts: Option<Nanos>,
}

impl Snapshot {
    /// The version that this library writes and the only one that it reads.
    pub const VERSION: u32 = 2;
}

impl Scheduler {
    /// The state as data. Cost: all objects.
    pub fn snapshot(&self) -> Snapshot {
        let mut nodes: Vec<NodeSpec> = (0..self.cluster.node_count() as u32)
            .filter_map(|ix| {
                self.cluster
                    .node(super::NodeIx(ix))
                    .spec
                    .as_deref()
                    .cloned()
            })
            .collect();
        nodes.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let mut gangs: Vec<GangState> = self
            .gangs
            .iter()
            .map(|(_, gang)| {
                let first = gang
                    .members
                    .first()
                    .and_then(|member| self.pods.get(member.0));
                GangState {
                    key: gang.key.as_deref().cloned(),
                    pod: first.filter(|_| gang.single()).map(|pod| pod.spec.uid),
                    spec: gang.spec.as_deref().cloned(),
                    life: gang.life,
                    verdict: gang.verdict,
                    told: gang.told,
                    requeued: gang.requeued,
                    ready_since: gang.ready_since,
                    clock_fed: gang.clock_fed,
                }
            })
            .collect();
        gangs.sort_unstable_by(|a, b| (&a.key, a.pod).cmp(&(&b.key, b.pod)));
        let mut pods: Vec<PodState> = self
            .pods
            .iter()
            .map(|(_, pod)| PodState {
                spec: pod.spec.clone(),
                held: pod
                    .charge
                    .filter(|charge| charge.purpose == Purpose::Held)
                    .map(|charge| {
                        let devices = charge.told.unwrap_or(charge.devices);
                        (self.cluster.node_name(charge.node).into(), devices)
                    }),
                released: pod.released,
                failures: pod.failures.as_deref().cloned(),
            })
            .collect();
        pods.sort_unstable_by_key(|pod| pod.spec.uid);
        let reservation = self.reservation.as_ref().and_then(|reservation| {
            let holder = self.gangs.get(reservation.holder.0)?;
            let reserved = reservation
                .nodes
                .iter()
                .enumerate()
                .filter(|(_, reserved)| **reserved);
            let mut nodes: Vec<String> = reserved
                .map(|(ix, _)| self.cluster.node_name(super::NodeIx(ix as u32)).into())
                .collect();
            nodes.sort_unstable();
            let holder = (holder.key.as_deref().cloned(), holder.uid);
            Some(ReservationState {
                holder,
                nodes,
                starts: reservation.starts,
            })
        });
        let with_images = (0..self.cluster.node_count() as u32)
            .map(super::NodeIx)
            .filter(|&node| !self.images.of(node).is_empty());
        let images = with_images.map(|node| {
            let name = self.cluster.node_name(node).into();
            (name, self.images.of(node).to_vec())
        });
        Snapshot {
            version: Snapshot::VERSION,
            config: self.config.clone(),
            now: self.now,
            decision_hash: self.decision_hash,
            nodes,
            images: images.collect(),
            namespaces: self.cluster.namespaces(),
            gangs,
            pods,
            reservation,
            requeues: self.requeues,
            prices: self.prices().cloned(),
            asked: self.asked.list(),
        }
    }

    /// An engine in the state of a snapshot. Refuses other versions and objects that `apply` would
    /// refuse.
    pub fn restore(snapshot: Snapshot) -> Result<Self, Rejection> {
        if snapshot.version != Snapshot::VERSION {
            return Err(Rejection::Invalid {
                object: "snapshot".into(),
                field: "version".into(),
                value: format!("{}", snapshot.version),
                accepted: format!("{}", Snapshot::VERSION),
            });
        }
        let mut engine = Self::new(snapshot.config);
        engine.now = snapshot.now;
        for spec in snapshot.nodes {
            engine.apply(Event::Node(spec))?;
        }
        for (name, images) in snapshot.images {
            engine.apply(Event::NodeImages { name, images })?;
        }
        for (name, labels) in snapshot.namespaces {
            engine.apply(Event::Namespace { name, labels })?;
        }
        for spec in snapshot.gangs.iter().filter_map(|gang| gang.spec.clone()) {
            engine.apply(Event::Gang(spec))?;
        }
        let mut holds = Vec::new();
        for pod in snapshot.pods {
            let uid = pod.spec.uid;
            engine.apply(Event::Pod(pod.spec))?;
            let Some(&ix) = engine.pod_by_uid.get(&uid) else {
                continue;
            };
            let released = pod.released;
            if released || pod.failures.is_some() {
                engine.count(ix, false);
                if let Some(entry) = engine.pods.get_mut(ix.0) {
                    entry.released = released;
                    entry.failures = pod.failures.map(alloc::boxed::Box::new);
                }
                engine.count(ix, true);
            }
            if let Some((node, devices)) = pod.held {
                holds.push((ix, node, devices));
            }
        }
        // What the pods alone would say of the usual mix is overwritten by what was.
        engine.asked = Asked::from_list(snapshot.asked);
        engine.search.set_prices(snapshot.prices.map(Arc::new));
        for (ix, node, devices) in holds {
            engine.restore_hold(ix, &node, devices);
        }
        // Lives last: what the objects alone led to is overwritten by what was.
        engine.releases.clear();
        for state in snapshot.gangs {
            let gang = match (&state.key, state.pod) {
                (Some(key), _) => engine.gang_by_key.get(key).copied(),
                (None, Some(uid)) => {
                    let pod = engine
                        .pod_by_uid
                        .get(&uid)
                        .and_then(|ix| engine.pods.get(ix.0));
                    pod.map(|pod| pod.gang)
                }
                (None, None) => None,
            };
            let Some(gang) = gang else { continue };
            let queued = state.life.in_queue();
            if let Some(entry) = engine.gangs.get_mut(gang.0) {
                entry.life = state.life;
                entry.verdict = state.verdict;
                entry.told = state.told;
                entry.requeued = state.requeued;
                entry.clock_fed = state.clock_fed;
            }
            engine.restore_queue(gang, queued);
            if let Some(entry) = engine.gangs.get_mut(gang.0) {
                entry.ready_since = state.ready_since;
            }
        }
        engine.requeues = snapshot.requeues;
        if let Some(state) = snapshot.reservation {
            let holder = match &state.holder {
                (Some(key), _) => engine.gang_by_key.get(key).copied(),
                (None, uid) => {
                    let pod = engine
                        .pod_by_uid
                        .get(uid)
                        .and_then(|ix| engine.pods.get(ix.0));
                    pod.map(|pod| pod.gang)
                }
            };
            let mut nodes = alloc::vec![false; engine.cluster.node_count()];
            for name in &state.nodes {
                if let Some(node) = engine.cluster.find_node(name) {
                    nodes[node.0 as usize] = true;
                }
            }
            engine.reservation = holder.map(|holder| Reservation {
                holder,
                nodes,
                starts: state.starts,
            });
        }
        engine.decision_hash = snapshot.decision_hash;
        Ok(engine)
    }
}
