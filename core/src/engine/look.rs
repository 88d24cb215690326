//! The engine's state for people: lists, names, who holds what. Changes nothing.

use alloc::{collections::BTreeMap, vec::Vec};

use super::{
    GangId, NodeIx, Purpose, Scheduler, Verdict,
    store::Charge,
    view::{CardsView, GangView, LooseView, MemberState, MemberView, NodeView, PartView},
};
use crate::{
    bits::CardSet,
    cluster::domain::NO_DOMAIN,
    device::{CardAsk, Pool, overhead::Need, part_of},
    gang::{
        PodPhase, PodSpec,
        life::{End, Phase},
    },
};

impl Scheduler {
    /// Name of a node.
    pub fn node_name(&self, node: NodeIx) -> &str {
        self.cluster.node_name(node)
    }

    /// All gangs that are not over, in queue order: running first, then who is next; gangs of one
    /// included.
    pub fn gangs(&self) -> Vec<GangId> {
        let mut all: Vec<_> = self
            .gangs
            .iter()
            .filter(|(_, gang)| {
                let done = matches!(
                    gang.life.phase(),
                    Phase::Ended(End::Completed | End::Deleted)
                );
                let ended = |state| {
                    matches!(
                        state,
                        MemberState::Succeeded | MemberState::Failed | MemberState::Terminating
                    )
                };
                let mut states = gang
                    .members
                    .iter()
                    .filter_map(|m| self.pods.get(m.0))
                    .map(super::Pod::state);
                let over = done || (gang.single() && states.all(ended));
                !over
            })
            .map(|(ix, gang)| {
                let waits = !matches!(gang.life.phase(), Phase::Running);
                // Groups that nobody has described yet share one identity.
                (waits, gang.turn(), gang.key.as_deref(), GangId(ix))
            })
            .collect();
        all.sort_unstable();
        all.into_iter().map(|(.., gang)| gang).collect()
    }

    /// The gang (or the gang of one of the pod) with this namespace and name; a member's name finds
    /// its gang.
    pub fn find(&self, namespace: &str, name: &str) -> Option<GangId> {
        let named = self.gangs.iter().filter_map(|(ix, gang)| {
            let key = gang.key.as_deref()?;
            (key.namespace == namespace && key.name == name).then_some((&key.source, GangId(ix)))
        });
        // Two systems may have a group of that name: the first by source.
        let gang = named.min().map(|(_, gang)| gang);
        gang.or_else(|| {
            let pod = self.pod_named(namespace, name)?;
            Some(self.pods.get(pod.0)?.gang)
        })
    }

    /// A gang as people want to see it; `None` when it is gone.
    pub fn gang(&self, id: GangId) -> Option<GangView<'_>> {
        let gang = self.gangs.get(id.0)?;
        let first = gang
            .members
            .first()
            .and_then(|member| self.pods.get(member.0));
        let (namespace, name, source) = match (&gang.key, first) {
            (Some(key), _) => (
                key.namespace.as_str(),
                key.name.as_str(),
                key.source.as_str(),
            ),
            (None, Some(pod)) => (pod.spec.namespace.as_str(), pod.spec.name.as_str(), ""),
            (None, None) => return None,
        };
        let members = (0_u32..).zip(&gang.members).filter_map(|(rank, member)| {
            let pod = self.pods.get(member.0)?;
            let ask = &self.cluster.template(pod.template).cards;
            Some(MemberView {
                uid: pod.spec.uid,
                name: &pod.spec.name,
                role: &pod.spec.role,
                rank,
                state: pod.state(),
                retried: pod
                    .failures
                    .as_ref()
                    .is_some_and(|failures| failures.is_retried),
                runs: pod.spec.phase == PodPhase::Running,
                node: pod.charge.map(|charge| charge.node),
                devices: pod.charge.map(|charge| charge.devices).unwrap_or_default(),
                assumed: pod.charge.is_some_and(|charge| {
                    let ask = ask.as_ref();
                    ask.is_some_and(|ask| self.is_assumed(&pod.spec, charge, ask))
                }),
                told: pod.spec.devices,
                wants_cards: ask.as_ref().map(|ask| &ask.source),
                memory: ask
                    .as_ref()
                    .and_then(|ask| self.memory_of_part(ask, pod.charge.map(|charge| charge.node))),
            })
        });
        Some(GangView {
            id,
            namespace,
            name,
            source,
            single: gang.single(),
            phase: gang.life.phase(),
            verdict: match gang.life.phase() {
                Phase::Planned | Phase::Binding | Phase::Running | Phase::Ended(End::Completed) => {
                    Verdict::Placed
                }
                _ => gang.verdict,
            },
            priority: gang.priority,
            queue: gang.spec.as_ref().map_or("", |spec| &spec.queue),
            min: gang.tree.fewest(0),
            required_level: gang.tree.nodes[0]
                .required
                .map(|key| self.cluster.key_name(key)),
            timeout_left: gang.life.schedule_left(),
            members: members.collect(),
        })
    }

    /// Whether a pod runs on devices that nobody told, though it could have others of its node.
    fn is_assumed(&self, pod: &PodSpec, charge: Charge, ask: &CardAsk) -> bool {
        let pool = self.cluster.node(charge.node).cards.pool(ask.kind);
        let has_all = |pool: &Pool| ask.whole() > 0 && charge.devices.cards == pool.all;
        charge.purpose == Purpose::Bound
            && pod.devices != Some(charge.devices)
            && !charge.devices.is_empty()
            && pool.is_some_and(|pool| !has_all(pool))
    }

    /// What one part of an ask needs on its node; of one that has none, where it needs least.
    fn memory_of_part(&self, ask: &CardAsk, node: Option<NodeIx>) -> Option<Need> {
        if ask.whole() > 0 {
            return None;
        }
        let of = |node: NodeIx| {
            let pool = self.cluster.node(node).cards.pool(ask.kind)?;
            pool.hardware.memory_of_part(ask)
        };
        let all = (0..self.cluster.node_count() as u32).map(NodeIx);
        match node {
            Some(node) => of(node),
            None => all.filter_map(of).min_by_key(|need| need.total),
        }
    }

    /// All nodes, ordered by topology path, then name.
    pub fn nodes(&self) -> Vec<NodeView<'_>> {
        self.cluster
            .sorted()
            .into_iter()
            .map(|node| self.node_view(node))
            .collect()
    }

    fn node_view(&self, ix: NodeIx) -> NodeView<'_> {
        let cluster = &self.cluster;
        let node = cluster.node(ix);
        let spec = node.spec.as_deref();
        let path = cluster.levels.iter().map(|&level| {
            let domain = cluster.domain_of(level, ix);
            (domain != NO_DOMAIN).then(|| cluster.domain_name(level, domain))
        });
        let cards = node.cards.pools().iter().map(|pool| {
            let kind = cluster.kind_name(pool.kind);
            let mut held: BTreeMap<GangId, CardSet> = BTreeMap::new();
            let mut parts = Vec::new();
            for pod in self
                .pods_on(ix)
                .iter()
                .filter_map(|pod| self.pods.get(pod.0))
            {
                let ask = cluster.template(pod.template).cards.as_ref();
                let ask = ask.filter(|ask| ask.kind == pool.kind);
                if let (Some(ask), Some(charge)) = (ask, pod.charge) {
                    let all = held.entry(pod.gang).or_default();
                    *all = all.union(charge.devices.cards);
                    parts.extend(charge.devices.slices().filter_map(|slice| {
                        Some(PartView {
                            card: slice.card.into(),
                            part: part_of(&pool.hardware, ask, slice)?,
                            gang: pod.gang,
                            pod: pod.spec.uid,
                        })
                    }));
                }
            }
            parts.sort_unstable();
            let model = spec.and_then(|spec| spec.cards.iter().find(|cards| cards.kind == kind));
            CardsView {
                kind,
                model: model.map_or("", |cards| &cards.model),
                modes: model.map_or(&[], |cards| &cards.modes),
                known: pool.hardware.model,
                links: pool.hardware.links.as_ref(),
                loose: node
                    .cards
                    .loose(pool.kind)
                    .zip(pool.hardware.loose.iter().enumerate())
                    .map(|(loose, (at, (profile, _)))| LooseView {
                        profile,
                        code: pool.hardware.loose_code(at),
                        all: loose.all,
                        used: loose.used,
                    })
                    .collect(),
                all: pool.all,
                unhealthy: pool.unhealthy,
                in_doubt: pool.in_doubt,
                memory_mib: pool.hardware.memory_mib,
                parts,
                held: held
                    .into_iter()
                    .map(|(gang, cards)| (cards, gang))
                    .collect(),
            }
        });
        let resources = cluster
            .free_of(ix)
            .iter()
            .enumerate()
            .filter_map(|(resource, &free)| {
                let allocatable = cluster.allocatable(ix, resource as u16);
                let name = cluster.resource_name(resource as u16);
                (free != 0 || allocatable != 0).then_some((name, free, allocatable))
            });
        // Cards without identity are shown among the amounts.
        let counted = node.cards.counted().iter().map(|counted| {
            let used = i64::try_from(counted.used).unwrap_or(i64::MAX);
            let free = i64::from(counted.all).saturating_sub(used);
            (
                cluster.kind_name(counted.kind),
                free,
                i64::from(counted.all),
            )
        });
        NodeView {
            ix,
            name: cluster.node_name(ix),
            path: path.collect(),
            unschedulable: spec.is_some_and(|spec| spec.unschedulable),
            taints: spec.map_or(&[], |spec| &spec.taints),
            cards: cards.collect(),
            resources: resources.chain(counted).collect(),
        }
    }
}
