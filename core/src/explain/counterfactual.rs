//! Single changes that would admit a gang, each verified by a search on the changed state.
//!
//! Tried, smallest effect on others first: broken cards healthy again, cards that are there offered, a MIG
//! layout settled, more cards, cards given in another way, a node put back into service, a condition on
//! cards dropped, a weaker level, fewer members, running gangs gone. Of each kind the smallest that works is
//! kept. What makes room makes it for all: the gang is tried at its turn, after those ahead of it (see
//! [`turn`]), and what would do without them is told apart. The number of searches is bounded, so on a
//! large cluster a change may exist that is not found; one that is named works, up to the number of gangs
//! ahead that are tried, and at the prices of now: a changed cluster is priced anew, and those ahead may take
//! other places then.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::{String, ToString},
    sync::Arc,
    vec::Vec,
};
use core::cmp::Reverse;

use super::{Cause, Counterfactual, Explainer};
use crate::{
    cluster::{
        NodeIx, NodeSpec,
        domain::{KeyIx, NODE_KEY},
    },
    engine::{Event, Explanation, GangId, cycle::Members, store::Purpose},
    gang::Minimum,
    place::tree::{Tree, TreeKind},
};

/// Searches that one kind of change may cost.
const TRIES: usize = 64;

mod cards;
mod conditions;
mod health;
mod turn;

use turn::SEARCHES;

impl Explainer {
    /// What would admit a gang, at its turn or if it were first.
    pub(super) fn find_counterfactuals(&mut self, id: GangId, into: &mut Explanation) {
        self.ahead = self.ahead_of(id);
        into.ahead = self.ahead.len() as u32;
        self.make_room(into, |it, _| it.healthy_cards(id));
        self.make_room(into, |it, _| it.allocatable_cards(id));
        self.make_room(into, |it, _| it.settled_layout(id));
        self.make_room(into, |it, story| it.more_cards(id, story));
        self.make_room(into, |it, story| it.other_mode(id, story));
        self.make_room(into, |it, _| it.uncordon(id));
        self.make_room(into, |it, _| it.untaint(id));
        // These give nobody else room: those ahead wait as before.
        into.counterfactuals.extend(self.drop_conditions(id));
        into.counterfactuals.extend(self.relax_level(id));
        into.counterfactuals.extend(self.fewer_members(id));
        self.make_room(into, |it, _| it.departure(id));
        self.ahead.clear();
    }

    /// Looks for a change that makes room: for the gang at its turn, and, if another would do without those
    /// ahead of it, that one too.
    fn make_room(
        &mut self,
        into: &mut Explanation,
        find: impl Fn(&mut Self, &Explanation) -> Option<Counterfactual>,
    ) {
        let Some(first) = find(self, into) else {
            return;
        };
        if self.ahead.is_empty() {
            into.counterfactuals.push(first);
            return;
        }
        self.in_turn = true;
        self.searches_ahead = SEARCHES;
        let found = find(self, into);
        self.in_turn = false;
        // The same gangs may have to go with more of their pods.
        if found.as_ref().map(ToString::to_string) != Some(first.to_string()) {
            into.if_first.push(first);
        }
        into.counterfactuals.extend(found);
    }

    /// Whether the gang would be admitted.
    fn admits(&mut self, id: GangId) -> bool {
        let mut members = Members::default();
        self.engine.sort_members(id, &mut members);
        let fits = self.fits(id, &members);
        self.engine.cluster.commit();
        fits
    }

    /// Whether the gang would be admitted if a node were another; it is as before afterwards.
    fn admits_with_node(&mut self, id: GangId, node: &NodeSpec, other: NodeSpec) -> bool {
        let admits = self.engine.apply(Event::Node(other)).is_ok() && self.admits(id);
        // Cannot be refused: it was there before.
        let _ = self.engine.apply(Event::Node(node.clone()));
        admits
    }

    // ---- uncordon ----------------------------------------------------------------------------

    fn uncordon(&mut self, id: GangId) -> Option<Counterfactual> {
        let cluster = &self.engine.cluster;
        let cordoned: Vec<Arc<NodeSpec>> = cluster
            .ordered()
            .iter()
            .filter_map(|&node| cluster.node(node).spec.clone())
            .filter(|spec| spec.unschedulable)
            .take(TRIES)
            .collect();
        for spec in cordoned {
            let open = NodeSpec {
                unschedulable: false,
                ..NodeSpec::clone(&spec)
            };
            if self.admits_with_node(id, &spec, open) {
                return Some(Counterfactual::Uncordon {
                    node: spec.name.clone(),
                });
            }
        }
        None
    }

    /// The first node with one taint that keeps a member off, and that would do without it.
    fn untaint(&mut self, id: GangId) -> Option<Counterfactual> {
        let mut members = Members::default();
        self.engine.sort_members(id, &mut members);
        let mut found: Vec<(Arc<NodeSpec>, String)> = Vec::new();
        for &node in self.engine.cluster.ordered() {
            let causes = members.batches.iter().map(|batch| batch.template);
            let taint = causes
                .filter_map(|template| self.static_cause(template, node))
                .find(|(cause, _)| *cause == Cause::Taint);
            if let (Some((_, taint)), Some(spec)) = (taint, &self.engine.cluster.node(node).spec) {
                found.push((spec.clone(), taint));
            }
            if found.len() == TRIES {
                break;
            }
        }
        for (spec, taint) in found {
            let mut open = NodeSpec::clone(&spec);
            open.taints.retain(|other| other.key != taint);
            if self.admits_with_node(id, &spec, open) {
                let node = spec.name.clone();
                return Some(Counterfactual::Untaint { node, taint });
            }
        }
        None
    }

    // ---- weaker group ------------------------------------------------------------------------

    fn admits_as(&mut self, id: GangId, tree: Tree) -> bool {
        let Some(gang) = self.engine.gangs.get_mut(id.0) else {
            return false;
        };
        let before = core::mem::replace(&mut gang.tree, Arc::new(tree));
        let admits = self.admits(id);
        if let Some(gang) = self.engine.gangs.get_mut(id.0) {
            gang.tree = before;
        }
        admits
    }

    fn relax_level(&mut self, id: GangId) -> Option<Counterfactual> {
        let tree = self.engine.gangs.get(id.0)?.tree.clone();
        for (ix, node) in tree.nodes.iter().enumerate() {
            let Some(from) = node.required else { continue };
            let levels = &self.engine.cluster.levels;
            // From just above the level to the coarsest, then none at all.
            let above = levels.iter().position(|&level| level == from);
            let above = above.unwrap_or(if from == NODE_KEY { levels.len() } else { 0 });
            let mut weaker: Vec<Option<KeyIx>> = levels[..above]
                .iter()
                .rev()
                .map(|&level| Some(level))
                .collect();
            weaker.push(None);
            for to in weaker {
                let mut relaxed = Tree::clone(&tree);
                relaxed.nodes[ix].required = to;
                if self.admits_as(id, relaxed) {
                    let name = |key: KeyIx| self.engine.cluster.key_name(key).to_string();
                    return Some(Counterfactual::RelaxLevel {
                        group: node.name.to_string(),
                        from: name(from),
                        to: to.map(name),
                    });
                }
            }
        }
        None
    }

    fn fewer_members(&mut self, id: GangId) -> Option<Counterfactual> {
        let tree = self.engine.gangs.get(id.0)?.tree.clone();
        let min = match tree.nodes[0].kind {
            TreeKind::Leaf { min, .. } | TreeKind::Inner(Minimum::Members(min)) => min,
            TreeKind::Inner(Minimum::Children(_)) => return None,
        };
        let with = |min: u32| {
            let mut smaller = Tree::clone(&tree);
            match &mut smaller.nodes[0].kind {
                TreeKind::Leaf { min: least, .. } | TreeKind::Inner(Minimum::Members(least)) => {
                    *least = min;
                }
                TreeKind::Inner(Minimum::Children(_)) => {}
            }
            smaller
        };
        // More room for fewer is usual but not certain: the largest minimum first, then by halves.
        let most = min.checked_sub(1)?;
        let works = |explainer: &mut Self, min: u32| explainer.admits_as(id, with(min));
        let near = most.saturating_sub(TRIES as u32);
        let mut found = (near + 1..=most).rev().find(|&min| works(self, min));
        if found.is_none() {
            let (mut low, mut high) = (0, near);
            while low < high {
                let middle = low + (high - low).div_ceil(2);
                if works(self, middle) {
                    low = middle;
                } else {
                    high = middle - 1;
                }
            }
            found = Some(low).filter(|&low| low > 0 && works(self, low));
        }
        let least = found?;
        Some(Counterfactual::FewerMembers {
            fewer: min - least,
            min: least,
        })
    }

    // ---- departures --------------------------------------------------------------------------

    /// The fewest pods found whose going suffices: of one gang if one will do, else of one node,
    /// one domain, or the whole cluster.
    fn departure(&mut self, id: GangId) -> Option<Counterfactual> {
        let mut members = Members::default();
        self.engine.sort_members(id, &mut members);
        // Charged pods by gang; those with the lowest priority, the fewest pods, the youngest first.
        let mut by_gang: BTreeMap<GangId, Vec<u32>> = BTreeMap::new();
        for (ix, pod) in self.engine.pods.iter() {
            let bound = pod
                .charge
                .is_some_and(|charge| charge.purpose == Purpose::Bound);
            if (bound || pod.charge.is_some()) && pod.gang != id {
                by_gang.entry(pod.gang).or_default().push(ix);
            }
        }
        let mut gangs: Vec<(i32, usize, Reverse<u64>, GangId)> = Vec::new();
        for (&gang, pods) in &by_gang {
            let entry = self.engine.gangs.get(gang.0)?;
            let age = Reverse(entry.created.0);
            gangs.push((entry.priority, pods.len(), age, gang));
        }
        gangs.sort_by_key(|&(priority, pods, age, gang)| {
            (
                priority,
                pods,
                age,
                self.engine.gangs.get(gang.0).map(|gang| gang.uid),
            )
        });
        for &(.., gang) in gangs.iter().take(TRIES) {
            let pods = by_gang.get(&gang)?;
            if self.fits_without(id, &members, pods) {
                let pruned = self.prune(id, &members, pods.clone());
                let mut sets = [&pruned, pods].into_iter();
                if let Some(gone) = sets.find(|gone| self.holds(id, &members, gone)) {
                    return Some(self.named_departure(gone));
                }
            }
        }
        let pods = self.crowded(id, &members, gangs.len())?;
        let pruned = self.prune(id, &members, pods.clone());
        // That most of a cluster ends, so that those ahead have their places too, is no use to say.
        let is_useful = |gone: &&Vec<u32>| !self.in_turn || gone.len() <= TRIES;
        let sets: Vec<&Vec<u32>> = [&pruned, &pods].into_iter().filter(is_useful).collect();
        let mut sets = sets.into_iter();
        let gone = sets.find(|gone| self.holds(id, &members, gone))?;
        Some(self.named_departure(gone))
    }

    /// Whether the going of these pods certainly suffices. Where others stay whose devices are assumed, the
    /// assumptions change when somebody goes: that is tried as it would happen.
    fn holds(&mut self, id: GangId, members: &Members, gone: &[u32]) -> bool {
        if self.frees_for_others(gone) || self.leaves_assumed(gone) {
            let mut after = self.without(gone);
            let fits = after.fits(id, members);
            self.searches_ahead = after.searches_ahead;
            self.searches_in_all = after.searches_in_all;
            return fits;
        }
        self.engine.cluster.settle_order();
        let mark = self.engine.cluster.begin();
        self.engine.release_pods(gone);
        let fits = self.fits(id, members);
        self.engine.cluster.undo_to(mark);
        self.engine.cluster.commit();
        fits
    }

    /// The nodes on which these pods are, each once.
    fn nodes_of(&self, pods: &[u32]) -> Vec<NodeIx> {
        let pods = pods.iter().filter_map(|&pod| self.engine.pods.get(pod));
        let charges = pods.filter_map(|pod| pod.charge);
        let mut nodes: Vec<NodeIx> = charges.map(|charge| charge.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Whether beside these pods some run of which nobody told what devices they have.
    fn leaves_assumed(&self, gone: &[u32]) -> bool {
        let engine = &self.engine;
        self.nodes_of(gone).iter().any(|&node| {
            let stay = engine
                .pods_on(node)
                .iter()
                .filter(|pod| !gone.contains(&pod.0));
            stay.filter_map(|pod| engine.pods.get(pod.0)).any(|pod| {
                let devices = pod.charge.map(|charge| charge.devices);
                pod.spec.devices.is_none() && devices.is_some_and(|devices| !devices.is_empty())
            })
        })
    }

    /// Whether a gang has a place when these pods are gone, whoever waits ahead of it.
    fn fits_without(&mut self, id: GangId, members: &Members, gone: &[u32]) -> bool {
        if self.frees_for_others(gone) {
            let mut after = self.without(gone);
            after.in_turn = false;
            return after.admits(id);
        }
        self.engine.fits_without(id, members, gone).is_some()
    }

    /// Whether these pods are on a node where more is used than there is: what they leave is taken by
    /// pods that run there already.
    fn frees_for_others(&self, gone: &[u32]) -> bool {
        let engine = &self.engine;
        self.nodes_of(gone).iter().any(|&node| {
            if engine.cluster.node(node).cards.is_in_doubt() {
                return true;
            }
            let pods = engine.pods_on(node).iter();
            pods.filter_map(|pod| engine.pods.get(pod.0)).any(|pod| {
                let ask = engine.cluster.template(pod.template).cards.as_ref();
                let has_cards =
                    ask.is_some_and(|ask| engine.cluster.node(node).cards.pool(ask.kind).is_some());
                has_cards && pod.charge.is_some_and(|charge| charge.devices.is_empty())
            })
        })
    }

    /// A copy without these pods, by the events that would happen.
    fn without(&self, gone: &[u32]) -> Self {
        let mut after = self.clone();
        for pod in gone.iter().filter_map(|&pod| self.engine.pods.get(pod)) {
            let uid = pod.spec.uid;
            // Cannot be refused: it is there.
            let _ = after.engine.apply(Event::PodGone { uid });
        }
        after.engine.cluster_mut().settle_order();
        after
    }

    /// Pods that share a place, whose going together suffices: those of a node, least used first,
    /// then those of a domain of the level that binds, then all.
    fn crowded(&mut self, id: GangId, members: &Members, gangs: usize) -> Option<Vec<u32>> {
        if gangs == 0 {
            return None;
        }
        let others = |explainer: &Self, nodes: &[NodeIx]| -> Vec<u32> {
            let engine = &explainer.engine;
            let pods = nodes
                .iter()
                .flat_map(|&node| engine.pods_on(node))
                .map(|pod| pod.0);
            pods.filter(|&pod| engine.pods.get(pod).is_some_and(|pod| pod.gang != id))
                .collect()
        };
        let cluster = &self.engine.cluster;
        let mut nodes: Vec<NodeIx> = cluster.ordered().to_vec();
        nodes.sort_by_key(|&node| self.engine.pods_on(node).len());
        let level = self
            .engine
            .gangs
            .get(id.0)?
            .tree
            .nodes
            .iter()
            .find_map(|node| node.required);
        let mut sets: Vec<Vec<u32>> = Vec::new();
        for &node in nodes.iter().take(TRIES) {
            sets.push(others(self, &[node]));
        }
        if let Some(key) = level.filter(|&key| key != NODE_KEY) {
            let cluster = &self.engine.cluster;
            let domains = &cluster.partition(key).domains;
            let mut domains: Vec<Vec<NodeIx>> = domains.iter().map(|d| d.nodes.clone()).collect();
            domains.retain(|nodes| !nodes.is_empty());
            domains.sort_by_key(|nodes| {
                let pods = nodes.iter().map(|&node| self.engine.pods_on(node).len());
                (pods.sum::<usize>(), cluster.node(nodes[0]).rank)
            });
            sets.extend(domains.iter().take(TRIES).map(|nodes| others(self, nodes)));
        }
        sets.push(others(self, &nodes));
        let works = |explainer: &mut Self, set: &Vec<u32>| {
            !set.is_empty() && explainer.fits_without(id, members, set)
        };
        sets.into_iter().find(|set| works(self, set))
    }

    /// Leaves out every pod that need not go, one after the other, largest chunks first.
    fn prune(&mut self, id: GangId, members: &Members, pods: Vec<u32>) -> Vec<u32> {
        let mut pods = pods;
        let mut chunk = pods.len() / 2;
        let mut tries = 4 * TRIES;
        while chunk > 0 {
            let mut at = 0;
            while at < pods.len() && tries > 0 {
                tries -= 1;
                let end = (at + chunk).min(pods.len());
                let mut fewer = pods.clone();
                fewer.drain(at..end);
                if !fewer.is_empty() && self.fits_without(id, members, &fewer) {
                    pods = fewer;
                } else {
                    at = end;
                }
            }
            chunk /= 2;
        }
        pods
    }

    fn named_departure(&self, pods: &[u32]) -> Counterfactual {
        let engine = &self.engine;
        let mut gangs: Vec<String> = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for pod in pods.iter().filter_map(|&pod| engine.pods.get(pod)) {
            names.push(format!("{}/{}", pod.spec.namespace, pod.spec.name));
            if let Some(gang) = engine.gang(pod.gang) {
                gangs.push(format!("{}/{}", gang.namespace, gang.name));
            }
        }
        for list in [&mut gangs, &mut names] {
            list.sort_by(|a, b| crate::cluster::natural(a, b));
            list.dedup();
        }
        // Who goes whole needs no list of pods.
        let leaving: BTreeSet<GangId> = pods
            .iter()
            .filter_map(|&pod| Some(engine.pods.get(pod)?.gang))
            .collect();
        let charged = engine.pods.iter().filter(|(_, pod)| pod.charge.is_some());
        let all = charged
            .filter(|(_, pod)| leaving.contains(&pod.gang))
            .count();
        if all == names.len() {
            names.clear();
        }
        Counterfactual::Departure { gangs, pods: names }
    }
}
