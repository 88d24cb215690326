//! Single changes that would admit a gang, each verified by a search on the changed state.
//!
//! Tried, smallest effect on others first: more cards, a node put back into service, a weaker
//! level, fewer members, running gangs gone. Of each kind the smallest that works is kept. The
//! number of searches is bounded, so on a large cluster a change may exist that is not found; one
//! that is named always works.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::{String, ToString},
    sync::Arc,
    vec::Vec,
};
use core::cmp::Reverse;

use super::{Cause, Counterfactual, Explainer, Reason};
use crate::{
    bits::CardSet,
    cluster::{
        NodeCards, NodeIx, NodeSpec,
        domain::{KeyIx, NODE_KEY},
        template::TemplateIx,
    },
    engine::{Event, Explanation, GangId, cycle::Members, store::Purpose},
    gang::Minimum,
    place::tree::{Tree, TreeKind},
};

/// Searches that one kind of change may cost.
const TRIES: usize = 64;
/// Name of the node that stands for room that is not there.
const IMAGINED: &str = "gangline-imagined-";

impl Explainer {
    pub(super) fn counterfactuals(
        &mut self,
        id: GangId,
        explanation: &Explanation,
    ) -> Vec<Counterfactual> {
        let mut found = Vec::new();
        found.extend(self.more_cards(id, explanation));
        found.extend(self.uncordon(id));
        found.extend(self.relax_level(id));
        found.extend(self.fewer_members(id));
        found.extend(self.departure(id));
        found
    }

    fn admits(&mut self, id: GangId) -> bool {
        let mut members = Members::default();
        self.engine.sort_members(id, &mut members);
        self.engine.would_fit(id, &members)
    }

    // ---- more cards --------------------------------------------------------------------------

    /// The fewest cards found: on one node that is there, or, where a node's worth does not suffice,
    /// on new nodes like those that are there. Only where cards are what is short.
    fn more_cards(&mut self, id: GangId, explanation: &Explanation) -> Option<Counterfactual> {
        let Some(Reason::DoesNotFit {
            causes, shortfall, ..
        }) = &explanation.reason
        else {
            return None;
        };
        let mut members = Members::default();
        self.engine.sort_members(id, &mut members);
        let cluster = &self.engine.cluster;
        let asks: Vec<_> = members
            .batches
            .iter()
            .filter_map(|batch| {
                let ask = cluster.template(batch.template).cards.as_ref();
                // More cards as those that are there: only of use to who takes whole ones.
                let ask = ask.filter(|ask| ask.whole() > 0)?;
                Some((ask.kind, ask.whole(), batch.count, batch.template))
            })
            .collect();
        let &(first, largest, _, template) = asks.iter().max_by_key(|&&(_, whole, ..)| whole)?;
        let kind = cluster.kind_name(first).to_string();
        // When something else is short, cards on their own change nothing.
        let for_cards = causes.is_empty()
            || causes.iter().any(|count| count.cause == Cause::Cards)
            || !explanation.domains.is_empty();
        let offered = match shortfall {
            Some(shortfall) if shortfall.resource == kind => true,
            Some(shortfall) if shortfall.resource != "members" => false,
            _ => for_cards,
        };
        if !offered {
            return None;
        }
        let most: u32 = asks
            .iter()
            .filter(|&&(kind, ..)| kind == first)
            .map(|&(_, whole, count, _)| whole.saturating_mul(count))
            .fold(0, u32::saturating_add);
        // As large as real nodes are, but large enough for one member.
        let pools = cluster
            .ordered()
            .iter()
            .flat_map(|&node| cluster.node(node).cards.pools());
        let real = pools
            .filter(|pool| pool.kind == first)
            .map(|pool| pool.all.len())
            .max();
        let size = real.unwrap_or(8).max(largest).min(CardSet::CAPACITY);
        let on_a_node = self.cards_on_a_node(id, &kind, first, most.min(size));
        on_a_node.or_else(|| self.cards_on_new_nodes(id, explanation, &kind, most, size, template))
    }

    /// The fewest further cards on one node that is there, by node: those with the most free first.
    fn cards_on_a_node(
        &mut self,
        id: GangId,
        kind: &str,
        kind_ix: crate::device::KindIx,
        most: u32,
    ) -> Option<Counterfactual> {
        let cluster = &self.engine.cluster;
        let mut nodes: Vec<NodeIx> = cluster.ordered().to_vec();
        nodes.sort_by_key(|&node| Reverse(cluster.node(node).cards.free(kind_ix)));
        let mut best: Option<(u32, String)> = None;
        for node in nodes.into_iter().take(TRIES) {
            let Some(spec) = self.engine.cluster.node(node).spec.clone() else {
                continue;
            };
            let limit = best.as_ref().map_or(most, |(count, _)| count - 1);
            let works =
                |explainer: &mut Self, count| explainer.admits_with_node(id, &spec, kind, count);
            if let Some(count) = self.fewest(limit, works) {
                best = Some((count, spec.name.clone()));
            }
        }
        let (count, node) = best?;
        let domain = Some(format!("{}={node}", crate::request::NODE_LEVEL));
        Some(Counterfactual::MoreCards {
            kind: kind.into(),
            count,
            domain,
        })
    }

    fn admits_with_node(&mut self, id: GangId, spec: &NodeSpec, kind: &str, more: u32) -> bool {
        let mut node = spec.clone();
        match node.cards.iter_mut().find(|cards| cards.kind == kind) {
            Some(cards) if cards.count + more <= CardSet::CAPACITY => cards.count += more,
            Some(_) => return false,
            None => node.cards.push(NodeCards {
                kind: kind.into(),
                count: more,
                ..NodeCards::default()
            }),
        }
        let admits = self.engine.apply(Event::Node(node)).is_ok() && self.admits(id);
        // Cannot be refused: it was there before.
        let _ = self.engine.apply(Event::Node(spec.clone()));
        admits
    }

    fn cards_on_new_nodes(
        &mut self,
        id: GangId,
        explanation: &Explanation,
        kind: &str,
        most: u32,
        size: u32,
        template: TemplateIx,
    ) -> Option<Counterfactual> {
        let tree = self.engine.gangs.get(id.0)?.tree.clone();
        let places: Vec<Option<(KeyIx, String)>> = match tree.nodes[0].required {
            Some(NODE_KEY) if most > size => return None,
            Some(key) if key != NODE_KEY => {
                let best = explanation.domains.iter().take(4);
                best.map(|attempt| Some((key, attempt.domain.clone())))
                    .collect()
            }
            _ => [None].into(),
        };
        let model = self.model_node(template)?;
        let mut best: Option<(u32, Option<String>)> = None;
        for place in places {
            let limit = best
                .as_ref()
                .map_or(most.min(1024 * size), |(count, _)| count - 1);
            let works = |explainer: &mut Self, count| {
                explainer.admits_with(id, &model, kind, count, size, place.as_ref())
            };
            if let Some(count) = self.fewest(limit, works) {
                let domain = place
                    .map(|(key, domain)| format!("{}={domain}", self.engine.cluster.key_name(key)));
                best = Some((count, domain));
            }
        }
        let (count, domain) = best?;
        Some(Counterfactual::MoreCards {
            kind: kind.into(),
            count,
            domain,
        })
    }

    /// The fewest that work, up to a limit that does. What is returned has been tried.
    fn fewest(&mut self, limit: u32, works: impl Fn(&mut Self, u32) -> bool) -> Option<u32> {
        if limit == 0 || !works(self, limit) {
            return None;
        }
        let (mut low, mut high) = (1, limit);
        while low < high {
            let middle = low.midpoint(high);
            if works(self, middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        // Room is not always monotone.
        (high == limit || works(self, high)).then_some(high)
    }

    /// A node that suits a template but for room: the first that its static rules accept.
    fn model_node(&mut self, template: TemplateIx) -> Option<NodeSpec> {
        use crate::cluster::shape::{StaticFit, static_fit};
        let cluster = &self.engine.cluster;
        let compiled = cluster.template(template);
        let suits = |node: &&NodeIx| {
            cluster.node(**node).spec.as_deref().is_some_and(|spec| {
                let name = cluster.node_name(**node);
                let fit = static_fit(
                    compiled,
                    spec.unschedulable,
                    &spec.taints,
                    name,
                    &spec.labels,
                );
                matches!(fit, StaticFit::Fits { .. })
            })
        };
        let node = cluster.ordered().iter().find(suits)?;
        cluster.node(*node).spec.as_deref().cloned()
    }

    fn admits_with(
        &mut self,
        id: GangId,
        model: &NodeSpec,
        kind: &str,
        count: u32,
        size: u32,
        place: Option<&(KeyIx, String)>,
    ) -> bool {
        let mut left = count;
        let mut names = Vec::new();
        while left > 0 && names.len() < 1024 {
            let mut node = model.clone();
            node.name = format!("{IMAGINED}{}", names.len());
            node.cards = [NodeCards {
                kind: kind.into(),
                count: left.min(size),
                ..NodeCards::default()
            }]
            .into();
            if let Some((key, domain)) = place {
                let label = self.engine.cluster.key_name(*key).to_string();
                node.labels.insert(label, domain.clone());
            }
            left -= left.min(size);
            names.push(node.name.clone());
            if self.engine.apply(Event::Node(node)).is_err() {
                break;
            }
        }
        let admits = left == 0 && self.admits(id);
        for name in names {
            // Cannot be refused.
            let _ = self.engine.apply(Event::NodeGone { name });
        }
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
            let admits = self.engine.apply(Event::Node(open)).is_ok() && self.admits(id);
            let _ = self.engine.apply(Event::Node(NodeSpec::clone(&spec)));
            if admits {
                return Some(Counterfactual::Uncordon {
                    node: spec.name.clone(),
                });
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
        let (mut low, mut high) = (0, min.checked_sub(1)?);
        // The largest minimum that works; 0 stands for none.
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.admits_as(id, with(middle)) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        (low > 0 && self.admits_as(id, with(low))).then_some(Counterfactual::FewerMembers {
            fewer: min - low,
            min: low,
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
            if self.engine.fits_without(id, &members, pods).is_some() {
                let pods = self.prune(id, &members, pods.clone());
                return Some(self.named_departure(&pods));
            }
        }
        let pods = self.crowded(id, &members, gangs.len())?;
        let pods = self.prune(id, &members, pods);
        Some(self.named_departure(&pods))
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
            !set.is_empty() && explainer.engine.fits_without(id, members, set).is_some()
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
                if !fewer.is_empty() && self.engine.fits_without(id, members, &fewer).is_some() {
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
