//! Events into state: one function per kind, each in proportion to the change.
//!
//! Everything is checked before anything changes. What is free is never set by hand: a pod's charge
//! is made when it is bound or held and taken back when it is gone, ended or moved.

use alloc::{
    boxed::Box,
    format,
    string::{String, ToString},
    sync::Arc,
    vec::Vec,
};
use core::hash::Hasher;

use smallvec::SmallVec;

use super::{
    Event, GangId, NodeIx, Rejection, Scheduler, Verdict,
    store::{BindFailures, Charge, Gang, GangIx, Pod, PodIx, Purpose, Tally},
    view::MemberState,
};
use crate::{
    bits::CardSet,
    cluster::NodeSpec,
    gang::{
        GangKey, GangSpec, PodPhase, PodSpec,
        life::{self, Command, Commands},
    },
    hash::WordHasher,
    place::tree::Tree,
    request::Template,
    units::{Nanos, Uid},
};

/// Largest amount of a resource that one object may state: sums over a node's pods still fit.
const MOST: i64 = 1 << 60;

impl Scheduler {
    /// Takes note of something that happened. Cost proportional to the change.
    pub fn apply(&mut self, event: Event) -> Result<(), Rejection> {
        match event {
            Event::Node(spec) => self.apply_node(spec)?,
            Event::NodeGone { name } => self.apply_node_gone(&name),
            Event::Namespace { name, labels } => {
                if self.cluster.set_namespace(&name, labels) {
                    self.recount();
                }
                self.loosened += 1;
            }
            Event::Gang(spec) => self.apply_gang(spec),
            Event::GangGone { key, uid } => self.apply_gang_gone(&key, uid),
            Event::Pod(spec) => self.apply_pod(spec)?,
            Event::PodGone { uid } => {
                if let Some(&pod) = self.pod_by_uid.get(&uid) {
                    self.remove_pod(pod);
                }
            }
            Event::BindFailed {
                pod,
                permanent,
                message,
            } => {
                self.apply_bind_failed(pod, permanent, message);
            }
        }
        Ok(())
    }

    // ---- nodes -------------------------------------------------------------------------------

    fn apply_node(&mut self, spec: NodeSpec) -> Result<(), Rejection> {
        check_node(&spec)?;
        let node = self.cluster.node_slot(&spec.name);
        if self.cluster.node(node).spec.as_deref() == Some(&spec) {
            return Ok(());
        }
        let spec = Arc::new(spec);
        if self.cluster.mark(node, &spec) {
            self.loosened += 1;
            self.changed += 1;
            return Ok(());
        }
        self.without_charges(node, |cluster| cluster.describe(node, spec));
        Ok(())
    }

    fn apply_node_gone(&mut self, name: &str) {
        let Some(node) = self.cluster.find_node(name) else {
            return;
        };
        self.without_charges(node, |cluster| cluster.retire(node));
        // Nothing that is only planned can go there any more.
        let held: SmallVec<[PodIx; 8]> = self
            .pods_on(node)
            .iter()
            .copied()
            .filter(|&pod| self.is_held(pod))
            .collect();
        for &pod in &held {
            self.count(pod, false);
            self.drop_charge(pod);
            self.count(pod, true);
        }
        for &pod in &held {
            if let Some(gang) = self.pods.get(pod.0).map(|pod| pod.gang) {
                self.touch(gang);
            }
        }
    }

    /// Takes every charge off a node, changes it, and charges it again.
    fn without_charges(&mut self, node: NodeIx, change: impl FnOnce(&mut crate::cluster::Cluster)) {
        self.loosened += 1;
        self.changed += 1;
        let pods: SmallVec<[PodIx; 16]> = self.pods_on(node).into();
        for &pod in &pods {
            if let Some((template, charge)) = self.charge_of(pod) {
                self.cluster.release(charge.node, template, charge.cards);
            }
        }
        change(&mut self.cluster);
        for &pod in &pods {
            if let Some((template, charge)) = self.charge_of(pod) {
                // Which cards it has is settled below; none are taken in between.
                self.cluster.charge(node, template, CardSet::EMPTY);
                if let Some(entry) = self.pods.get_mut(pod.0) {
                    entry.charge = Some(Charge {
                        cards: CardSet::EMPTY,
                        ..charge
                    });
                }
                let keep = charge.cards;
                self.remembered_cards.push((pod, keep));
            }
        }
        self.settle_cards(node, None);
        self.remembered_cards.clear();
    }

    fn charge_of(&self, pod: PodIx) -> Option<(crate::cluster::template::TemplateIx, Charge)> {
        let pod = self.pods.get(pod.0)?;
        Some((pod.template, pod.charge?))
    }

    fn is_held(&self, pod: PodIx) -> bool {
        let charge = self.pods.get(pod.0).and_then(|pod| pod.charge);
        charge.is_some_and(|charge| charge.purpose == Purpose::Held)
    }

    pub(crate) fn pods_on(&self, node: NodeIx) -> &[PodIx] {
        self.node_pods.get(node.0 as usize).map_or(&[], |pods| pods)
    }

    /// Decides which cards the pods of a node hold: those they say or were given, then, in order of
    /// uid, the lowest healthy free ones, then unhealthy ones. It depends on the set of pods alone,
    /// not on the order in which they were seen. `fresh` is on the ledger but not charged yet.
    fn settle_cards(&mut self, node: NodeIx, fresh: Option<PodIx>) {
        let mut wanting: SmallVec<[(bool, Uid, PodIx); 16]> = SmallVec::new();
        for &ix in self.pods_on(node) {
            let Some(pod) = self.pods.get(ix.0) else {
                continue;
            };
            if self.cluster.template(pod.template).cards.is_some() {
                let held = pod
                    .charge
                    .is_some_and(|charge| charge.purpose == Purpose::Held);
                wanting.push((pod.spec.cards.is_none() && !held, pod.spec.uid, ix));
            }
        }
        if wanting.is_empty() {
            return;
        }
        wanting.sort_unstable();
        let mut given: SmallVec<[(PodIx, CardSet); 16]> = SmallVec::new();
        let mut taken: SmallVec<[(u16, CardSet); 2]> = SmallVec::new();
        for &(_, _, ix) in &wanting {
            let Some(pod) = self.pods.get(ix.0) else {
                continue;
            };
            let Some(ask) = self.cluster.template(pod.template).cards else {
                continue;
            };
            let pools = self.cluster.node(node).cards.pools();
            let Some(pool) = pools.iter().find(|pool| pool.kind == ask.kind) else {
                given.push((ix, CardSet::EMPTY));
                continue;
            };
            let used = taken
                .iter()
                .find(|(kind, _)| *kind == ask.kind)
                .map_or(CardSet::EMPTY, |t| t.1);
            let free = pool.all.difference(used);
            let remembered = self.remembered_cards.iter().find(|(pod, _)| *pod == ix);
            let said = match pod.charge {
                Some(Charge {
                    purpose: Purpose::Held,
                    cards,
                    ..
                }) => Some(remembered.map_or(cards, |(_, cards)| *cards)),
                _ => pod.spec.cards,
            };
            let mut cards = said.unwrap_or_default().intersection(free);
            for source in [free.difference(pool.unhealthy), free] {
                let missing = ask.count.saturating_sub(cards.len());
                let rest = source.difference(cards);
                let more = rest.lowest(missing.min(rest.len())).unwrap_or_default();
                cards = cards.union(more);
            }
            match taken.iter_mut().find(|(kind, _)| *kind == ask.kind) {
                Some((_, all)) => *all = all.union(cards),
                None => taken.push((ask.kind, cards)),
            }
            given.push((ix, cards));
        }
        // Take all back first, so that no card is given twice on the way.
        given.retain(|&mut (ix, cards)| {
            let changes = self
                .charge_of(ix)
                .is_some_and(|(_, charge)| charge.cards != cards);
            changes || fresh == Some(ix)
        });
        for &(ix, _) in &given {
            if let Some((template, charge)) = self.charge_of(ix).filter(|_| fresh != Some(ix)) {
                self.cluster.release(node, template, charge.cards);
            }
        }
        for &(ix, cards) in &given {
            if let Some((template, charge)) = self.charge_of(ix) {
                self.cluster.charge(node, template, cards);
                if let Some(pod) = self.pods.get_mut(ix.0) {
                    pod.charge = Some(Charge { cards, ..charge });
                }
            }
        }
    }

    // ---- gangs -------------------------------------------------------------------------------

    fn apply_gang(&mut self, mut spec: GangSpec) {
        if spec.problem.is_none() {
            spec.problem = spec.check().err();
        }
        let gang = self.gang_slot(&spec.key);
        let Some(entry) = self.gangs.get(gang.0) else {
            return;
        };
        if entry.spec.as_deref() == Some(&spec) {
            return;
        }
        let reborn = entry.spec.as_ref().is_some_and(|old| old.uid != spec.uid);
        let same_tree = !reborn
            && spec.problem.is_none()
            && entry
                .spec
                .as_ref()
                .is_some_and(|old| old.root == spec.root && old.problem.is_none());
        if reborn {
            self.forget_life(gang);
        }
        let tree = if same_tree {
            None
        } else if spec.problem.is_some() {
            Some(self.single_tree.clone())
        } else {
            Some(Arc::new(Tree::new(&spec.root, &mut self.cluster)))
        };
        let Some(entry) = self.gangs.get_mut(gang.0) else {
            return;
        };
        entry.uid = spec.uid;
        entry.priority = spec.priority;
        entry.created = spec.created;
        entry.spec = Some(Box::new(spec));
        if let Some(tree) = tree {
            entry.tree = tree;
            self.seat_members(gang);
        }
        self.queue_stale = true;
        self.touch(gang);
    }

    /// Finds every member's leaf anew and counts them.
    fn seat_members(&mut self, gang: GangIx) {
        let Some(entry) = self.gangs.get_mut(gang.0) else {
            return;
        };
        let tree = entry.tree.clone();
        entry.tally.clear();
        entry.tally.resize(tree.nodes.len(), Tally::default());
        let mut members = core::mem::take(&mut entry.members);
        for &ix in &members {
            let Some(pod) = self.pods.get_mut(ix.0) else {
                continue;
            };
            pod.leaf = tree.leaf(&pod.spec.role);
            if let (Some(leaf), Some(entry)) = (pod.leaf, self.gangs.get_mut(gang.0)) {
                entry.tally[leaf as usize].count(pod.state(), true);
            }
        }
        // What has no place in the new tree is nobody's plan any more.
        for &ix in &members {
            let unseated = self.pods.get(ix.0).is_some_and(|pod| pod.leaf.is_none());
            if unseated && self.is_held(ix) {
                self.drop_charge(ix);
            }
        }
        members.sort_by(|&a, &b| self.compare_members(a, b));
        if let Some(entry) = self.gangs.get_mut(gang.0) {
            entry.members = members;
        }
    }

    pub(super) fn compare_members(&self, a: PodIx, b: PodIx) -> core::cmp::Ordering {
        let (Some(a), Some(b)) = (self.pods.get(a.0), self.pods.get(b.0)) else {
            return a.cmp(&b);
        };
        let leaf = |pod: &Pod| pod.leaf.unwrap_or(u32::MAX);
        leaf(a)
            .cmp(&leaf(b))
            .then_with(|| crate::cluster::natural(&a.spec.name, &b.spec.name))
            .then_with(|| a.spec.uid.cmp(&b.spec.uid))
    }

    fn apply_gang_gone(&mut self, key: &GangKey, uid: Uid) {
        let Some(&gang) = self.gang_by_key.get(key) else {
            return;
        };
        let Some(entry) = self.gangs.get(gang.0) else {
            return;
        };
        if entry.spec.as_ref().is_none_or(|spec| spec.uid != uid) {
            return;
        }
        self.forget_life(gang);
        // From here on as a group that nobody has described yet.
        if let Some(entry) = self.gangs.get_mut(gang.0) {
            entry.spec = None;
            (entry.uid, entry.priority, entry.created) = (Uid::default(), 0, Nanos::ZERO);
            entry.tree = self.single_tree.clone();
        }
        self.seat_members(gang);
        self.touch(gang);
        self.drop_gang_if_empty(gang);
    }

    /// Ends a generation of a group: what it holds is given back, what runs stays.
    fn forget_life(&mut self, gang: GangIx) {
        self.drive(gang, life::Event::Deleted);
        if let Some(entry) = self.gangs.get_mut(gang.0) {
            entry.life = life::Life::default();
            entry.verdict = Verdict::Waiting;
            entry.tried = None;
            entry.ready_since = None;
            entry.clock_fed = None;
            entry.told = false;
            entry.unreservable = None;
        }
    }

    /// The gang of a key, made without a description if new.
    fn gang_slot(&mut self, key: &GangKey) -> GangIx {
        if let Some(&gang) = self.gang_by_key.get(key) {
            return gang;
        }
        let gang = GangId(self.gangs.insert(self.blank_gang(Some(key.clone()))));
        self.gang_by_key.insert(key.clone(), gang);
        gang
    }

    fn blank_gang(&self, key: Option<GangKey>) -> Gang {
        Gang {
            key: key.map(Box::new),
            spec: None,
            tree: self.single_tree.clone(),
            tally: SmallVec::from_elem(Tally::default(), 1),
            members: SmallVec::new(),
            life: life::Life::default(),
            uid: Uid::default(),
            priority: 0,
            created: Nanos::ZERO,
            requeued: 0,
            verdict: Verdict::Waiting,
            tried: None,
            revision: 0,
            ready_since: None,
            clock_fed: None,
            in_queue: false,
            clocked: false,
            told: false,
            unreservable: None,
            listed: false,
        }
    }

    fn drop_gang_if_empty(&mut self, gang: GangIx) {
        let Some(entry) = self.gangs.get(gang.0) else {
            return;
        };
        if entry.spec.is_some() || !entry.members.is_empty() {
            return;
        }
        if let Some(key) = &entry.key {
            self.gang_by_key.remove(&**key);
        }
        let (listed, clocked) = (entry.listed, entry.clocked);
        self.leave_queue(gang);
        if self
            .reservation
            .as_ref()
            .is_some_and(|reservation| reservation.holder == gang)
        {
            self.reservation = None;
            self.loosened += 1;
        }
        // The slot may be another gang's soon; most gangs that end are on no list.
        if listed {
            self.queue.retain(|&other| other != gang);
        }
        if clocked {
            self.clocks.retain(|&other| other != gang);
        }
        self.releases.retain(|&other| other != gang);
        self.gangs.remove(gang.0);
    }

    // ---- pods --------------------------------------------------------------------------------

    fn apply_pod(&mut self, spec: PodSpec) -> Result<(), Rejection> {
        if !self.cluster.knows(&spec.template) {
            check_template(&spec)?;
        }
        if let Some(&ix) = self.pod_by_uid.get(&spec.uid) {
            let unmoved = self.pods.get(ix.0).is_some_and(|pod| {
                pod.spec.namespace == spec.namespace
                    && pod.spec.name == spec.name
                    && pod.spec.gang == spec.gang
                    && pod.spec.role == spec.role
            });
            if unmoved {
                self.update_pod(ix, spec);
                return Ok(());
            }
            self.remove_pod(ix);
        }
        // A name can stand for one pod only: whoever had it before is gone.
        if let Some(old) = self.pod_named(&spec.namespace, &spec.name) {
            self.remove_pod(old);
        }
        self.add_pod(spec);
        Ok(())
    }

    fn add_pod(&mut self, spec: PodSpec) {
        let template = self.compile(&spec.template);
        let gang = if let Some(key) = &spec.gang {
            self.gang_slot(key)
        } else {
            let mut gang = self.blank_gang(None);
            gang.uid = spec.uid;
            gang.priority = spec.priority;
            gang.created = spec.created;
            GangId(self.gangs.insert(gang))
        };
        let uid = spec.uid;
        let hash = hash_name(&spec.namespace, &spec.name);
        let leaf = self
            .gangs
            .get(gang.0)
            .and_then(|gang| gang.tree.leaf(&spec.role));
        let pod = Pod {
            spec,
            gang,
            leaf,
            template,
            charge: None,
            released: false,
            failures: None,
        };
        let ix = PodIx(self.pods.insert(pod));
        self.pod_by_uid.insert(uid, ix);
        let pods = &self.pods;
        self.pod_by_name.insert_unique(hash, ix, |ix| {
            pods.get(ix.0)
                .map_or(0, |pod| hash_name(&pod.spec.namespace, &pod.spec.name))
        });
        self.join(gang, ix);
        self.charge_if_bound(ix);
        self.count(ix, true);
        self.touch(gang);
    }

    fn join(&mut self, gang: GangIx, pod: PodIx) {
        let Some(entry) = self.gangs.get(gang.0) else {
            return;
        };
        let at = entry.members.partition_point(|&other| {
            self.compare_members(other, pod) == core::cmp::Ordering::Less
        });
        if let Some(entry) = self.gangs.get_mut(gang.0) {
            entry.members.insert(at, pod);
        }
    }

    fn part(&mut self, gang: GangIx, pod: PodIx) {
        let Some(entry) = self.gangs.get(gang.0) else {
            return;
        };
        let at = entry.members.partition_point(|&other| {
            self.compare_members(other, pod) == core::cmp::Ordering::Less
        });
        if let Some(entry) = self.gangs.get_mut(gang.0)
            && entry.members.get(at) == Some(&pod)
        {
            entry.members.remove(at);
        }
    }

    fn update_pod(&mut self, ix: PodIx, spec: PodSpec) {
        let Some(pod) = self.pods.get(ix.0) else {
            return;
        };
        if pod.spec == spec {
            return;
        }
        let gang = pod.gang;
        self.count(ix, false);
        let template = self.compile(&spec.template);
        let Some(pod) = self.pods.get(ix.0) else {
            return;
        };
        let node = spec
            .node
            .as_deref()
            .map(|name| self.cluster.node_slot(name));
        // Confirmed where we planned it: the cards stay those of the plan unless it says otherwise.
        let confirmed = pod
            .charge
            .filter(|charge| charge.purpose == Purpose::Held && node == Some(charge.node));
        let mut spec = spec;
        if let Some(charge) = confirmed.filter(|charge| !charge.cards.is_empty()) {
            spec.cards = spec.cards.or(Some(charge.cards));
        } else if spec.cards.is_none() && spec.node == pod.spec.node && pod.spec.node.is_some() {
            spec.cards = pod.spec.cards;
        }
        let ended = matches!(spec.phase, PodPhase::Succeeded | PodPhase::Failed);
        let held = |charge: &Charge| charge.purpose == Purpose::Held;
        let gone = spec.terminating && pod.charge.as_ref().is_some_and(held) && node.is_none();
        let keeps = !ended
            && !gone
            && template == pod.template
            && match (node, &pod.charge) {
                (Some(node), Some(charge)) => {
                    charge.node == node
                        && (spec.cards == pod.spec.cards
                            || confirmed.is_some_and(|c| spec.cards == Some(c.cards)))
                }
                (None, Some(charge)) => charge.purpose == Purpose::Held,
                (None, None) => true,
                (Some(_), None) => false,
            };
        if !keeps {
            self.drop_charge(ix);
        }
        if let Some(pod) = self.pods.get_mut(ix.0) {
            pod.template = template;
            pod.spec = spec;
            if let Some(charge) = pod.charge.as_mut().filter(|_| pod.spec.node.is_some()) {
                charge.purpose = Purpose::Bound;
            }
            if pod.spec.node.is_some() {
                pod.failures = None;
            }
            let (priority, created) = (pod.spec.priority, pod.spec.created);
            if let Some(entry) = self.gangs.get_mut(gang.0).filter(|entry| entry.single()) {
                self.queue_stale |= (entry.priority, entry.created) != (priority, created);
                (entry.priority, entry.created) = (priority, created);
            }
        }
        self.charge_if_bound(ix);
        self.count(ix, true);
        self.touch(gang);
    }

    /// Charges a bound pod that has not ended and is not charged yet.
    fn charge_if_bound(&mut self, ix: PodIx) {
        let Some(pod) = self.pods.get(ix.0) else {
            return;
        };
        let ended = matches!(pod.spec.phase, PodPhase::Succeeded | PodPhase::Failed);
        let (Some(name), None, false) = (&pod.spec.node, pod.charge, ended) else {
            return;
        };
        let template = pod.template;
        let node = self.cluster.node_slot(name);
        self.note_charge(ix, node, CardSet::EMPTY, Purpose::Bound);
        if self.cluster.template(template).cards.is_some() {
            self.settle_cards(node, Some(ix));
        } else {
            self.cluster.charge(node, template, CardSet::EMPTY);
        }
    }

    /// Writes a charge that the cluster has already into the ledger.
    pub(super) fn note_charge(
        &mut self,
        ix: PodIx,
        node: NodeIx,
        cards: CardSet,
        purpose: Purpose,
    ) {
        self.changed += 1;
        let index = node.0 as usize;
        if self.node_pods.len() <= index {
            self.node_pods.resize_with(index + 1, Vec::new);
        }
        self.node_pods[index].push(ix);
        if let Some(pod) = self.pods.get_mut(ix.0) {
            pod.charge = Some(Charge {
                node,
                cards,
                purpose,
            });
        }
    }

    /// Takes a pod's charge back, if it has one.
    pub(super) fn drop_charge(&mut self, ix: PodIx) {
        let Some((template, charge)) = self.charge_of(ix) else {
            return;
        };
        self.loosened += 1;
        self.changed += 1;
        self.cluster.release(charge.node, template, charge.cards);
        if let Some(pod) = self.pods.get_mut(ix.0) {
            pod.charge = None;
        }
        if let Some(pods) = self.node_pods.get_mut(charge.node.0 as usize)
            && let Some(at) = pods.iter().position(|&other| other == ix)
        {
            pods.swap_remove(at);
        }
        if self.cluster.template(template).cards.is_some() {
            self.settle_cards(charge.node, None);
        }
    }

    fn remove_pod(&mut self, ix: PodIx) {
        let Some(pod) = self.pods.get(ix.0) else {
            return;
        };
        let (gang, uid) = (pod.gang, pod.spec.uid);
        let hash = hash_name(&pod.spec.namespace, &pod.spec.name);
        self.count(ix, false);
        self.drop_charge(ix);
        self.pod_by_uid.remove(&uid);
        if let Ok(entry) = self.pod_by_name.find_entry(hash, |&other| other == ix) {
            entry.remove();
        }
        self.part(gang, ix);
        self.pods.remove(ix.0);
        self.touch(gang);
        self.drop_gang_if_empty(gang);
    }

    fn apply_bind_failed(&mut self, uid: Uid, permanent: bool, message: String) {
        let Some(&ix) = self.pod_by_uid.get(&uid) else {
            return;
        };
        if !self.is_held(ix) {
            return;
        }
        let (now, first) = (self.now, self.config.bind_backoff);
        let Some(pod) = self.pods.get_mut(ix.0) else {
            return;
        };
        let gang = pod.gang;
        let failures = pod
            .failures
            .get_or_insert_with(Box::<BindFailures>::default);
        failures.attempts = failures.attempts.saturating_add(1);
        failures.message = message;
        // Doubles with each failure, up to 64 times the first pause.
        let pause = first.0.saturating_mul(1 << (failures.attempts - 1).min(6));
        failures.not_before = now.saturating_add(Nanos(pause));
        if permanent {
            self.count(ix, false);
            self.drop_charge(ix);
            self.count(ix, true);
            self.touch(gang);
        }
    }

    // ---- bookkeeping -------------------------------------------------------------------------

    /// Counts a pod into or out of its leaf's tally, by its present state.
    pub(super) fn count(&mut self, ix: PodIx, add: bool) {
        let Some(pod) = self.pods.get(ix.0) else {
            return;
        };
        let (Some(leaf), state) = (pod.leaf, pod.state()) else {
            return;
        };
        if let Some(gang) = self.gangs.get_mut(pod.gang.0) {
            gang.tally[leaf as usize].count(state, add);
        }
    }

    pub(super) fn compile(
        &mut self,
        template: &Arc<Template>,
    ) -> crate::cluster::template::TemplateIx {
        let (ix, grew) = self.cluster.compile(template);
        if grew {
            self.recount();
        }
        ix
    }

    /// Compiles every pod again and counts the charged ones into the terms anew.
    fn recount(&mut self) {
        self.cluster.forget_counts();
        for ix in self.pods.indexes() {
            let Some(source) = self.pods.get(ix).map(|pod| pod.spec.template.clone()) else {
                continue;
            };
            let (template, _) = self.cluster.compile(&source);
            let Some(pod) = self.pods.get_mut(ix) else {
                continue;
            };
            pod.template = template;
            if let Some(charge) = pod.charge {
                self.cluster.count_in(charge.node, template, true);
            }
        }
    }

    pub(super) fn pod_named(&self, namespace: &str, name: &str) -> Option<PodIx> {
        let same = |ix: &PodIx| {
            let pod = self.pods.get(ix.0);
            pod.is_some_and(|pod| pod.spec.namespace == namespace && pod.spec.name == name)
        };
        self.pod_by_name
            .find(hash_name(namespace, name), same)
            .copied()
    }

    /// Tells a gang's life that facts changed.
    pub(super) fn touch(&mut self, gang: GangIx) {
        if let Some(entry) = self.gangs.get_mut(gang.0) {
            entry.revision += 1;
            self.drive(gang, life::Event::Changed);
        }
    }

    /// Feeds a gang's life one event and carries out what it says.
    pub(super) fn drive(&mut self, gang: GangIx, event: life::Event) -> Commands {
        let Some(entry) = self.gangs.get(gang.0) else {
            return Commands::NONE;
        };
        // Nobody has said what the group needs: it has no life yet, whatever its pods do.
        if entry.key.is_some() && entry.spec.is_none() && event != life::Event::Deleted {
            return Commands::NONE;
        }
        let (rules, census) = (self.rules(entry), entry.census());
        // A group that takes any number of members looks complete while only its finished ones are
        // known; those that come later show that it is not over.
        let over = entry.life.phase() == life::Phase::Ended(life::End::Completed);
        let before = if over && entry.has_unfinished() {
            life::Life::default()
        } else {
            entry.life
        };
        let (life, commands) = life::step(before, &rules, census, event);
        if let Some(entry) = self.gangs.get_mut(gang.0) {
            entry.life = life;
            if life.expires_in().is_none() {
                // The next clock starts when it starts, not when this one was last looked at.
                entry.clock_fed = None;
            } else if !core::mem::replace(&mut entry.clocked, true) {
                self.clocks.push(gang);
            }
        }
        for command in commands.iter() {
            match command {
                Command::ReleaseHolds => self.release_holds(gang),
                Command::Unwind => self.unwind(gang),
                Command::Dequeue => self.leave_queue(gang),
                Command::Enqueue => self.enter_queue(gang),
                Command::Requeue => self.requeue(gang),
                // Carried out by `decide`, which has the plan at hand.
                Command::Hold => {}
            }
        }
        // A group that counts as one that ran is then judged by what is left of it.
        let running = |life: life::Life| life.phase() == life::Phase::Running;
        let started = running(life) && !running(before);
        let facts_changed = started
            || commands.contains(Command::ReleaseHolds)
            || commands.contains(Command::Unwind);
        if facts_changed {
            self.drive(gang, life::Event::Changed);
        }
        commands
    }

    fn rules(&self, gang: &Gang) -> life::Rules {
        let spec = gang.spec.as_deref();
        life::Rules {
            schedule_timeout: spec.and_then(|spec| spec.schedule_timeout),
            on_timeout: spec.map(|spec| spec.on_timeout).unwrap_or_default(),
            on_loss: spec.map(|spec| spec.on_loss).unwrap_or_default(),
            degraded_deadline: self.config.degraded_deadline,
        }
    }

    fn each_member(&mut self, gang: GangIx, mut visit: impl FnMut(&mut Self, PodIx, MemberState)) {
        let count = self.gangs.get(gang.0).map_or(0, |gang| gang.members.len());
        for index in 0..count {
            let member = self
                .gangs
                .get(gang.0)
                .and_then(|gang| gang.members.get(index))
                .copied();
            let Some(member) = member else { return };
            if let Some(state) = self.pods.get(member.0).map(Pod::state) {
                visit(self, member, state);
            }
        }
    }

    fn release_holds(&mut self, gang: GangIx) {
        self.each_member(gang, |engine, member, state| {
            if state == MemberState::Planned {
                engine.count(member, false);
                engine.drop_charge(member);
                engine.count(member, true);
            }
        });
    }

    fn unwind(&mut self, gang: GangIx) {
        self.each_member(gang, |engine, member, state| {
            if state == MemberState::Bound {
                engine.count(member, false);
                if let Some(pod) = engine.pods.get_mut(member.0) {
                    pod.released = true;
                }
            }
        });
        self.releases.push(gang);
    }

    fn enter_queue(&mut self, gang: GangIx) {
        if let Some(entry) = self.gangs.get_mut(gang.0) {
            entry.in_queue = true;
            if !core::mem::replace(&mut entry.listed, true) {
                self.queue.push(gang);
                self.queue_stale = true;
            }
        }
    }

    /// The list itself is swept by the next cycle, in one pass.
    pub(super) fn leave_queue(&mut self, gang: GangIx) {
        if let Some(entry) = self.gangs.get_mut(gang.0) {
            entry.in_queue = false;
            entry.ready_since = None;
        }
    }

    /// Puts a gang into or out of the queue as a snapshot says.
    pub(super) fn restore_queue(&mut self, gang: GangIx, queued: bool) {
        if queued {
            self.enter_queue(gang);
        } else {
            self.leave_queue(gang);
        }
        if let Some(entry) = self.gangs.get_mut(gang.0)
            && entry.life.expires_in().is_some()
            && !core::mem::replace(&mut entry.clocked, true)
        {
            self.clocks.push(gang);
        }
    }

    /// Holds a member's room as a snapshot says, if its cards are still free.
    pub(super) fn restore_hold(&mut self, ix: PodIx, node: &str, cards: CardSet) {
        let node = self.cluster.node_slot(node);
        let Some(pod) = self.pods.get(ix.0).filter(|pod| pod.charge.is_none()) else {
            return;
        };
        let template = pod.template;
        self.count(ix, false);
        self.cluster.charge(node, template, CardSet::EMPTY);
        self.note_charge(ix, node, CardSet::EMPTY, Purpose::Held);
        self.remembered_cards.push((ix, cards));
        self.settle_cards(node, None);
        self.remembered_cards.clear();
        self.count(ix, true);
    }

    fn requeue(&mut self, gang: GangIx) {
        self.requeues += 1;
        if let Some(entry) = self.gangs.get_mut(gang.0) {
            entry.requeued = self.requeues;
            entry.ready_since = None;
            self.queue_stale = true;
        }
    }
}

fn hash_name(namespace: &str, name: &str) -> u64 {
    let mut hasher = WordHasher::default();
    hasher.write(namespace.as_bytes());
    hasher.write(name.as_bytes());
    hasher.finish()
}

fn invalid(object: String, field: &str, value: &dyn ToString, accepted: &str) -> Rejection {
    Rejection::Invalid {
        object,
        field: field.into(),
        value: value.to_string(),
        accepted: accepted.into(),
    }
}

fn check_node(spec: &NodeSpec) -> Result<(), Rejection> {
    let object = || format!("node {}", spec.name);
    if spec.name.is_empty() {
        return Err(invalid(object(), "name", &"empty", "a name"));
    }
    for (name, &amount) in &spec.resources {
        if !(0..=MOST).contains(&amount) {
            let field = format!("resources.{name}");
            return Err(invalid(object(), &field, &amount, "0 to 2^60"));
        }
    }
    for (index, cards) in spec.cards.iter().enumerate() {
        if spec.cards[..index]
            .iter()
            .any(|other| other.kind == cards.kind)
        {
            return Err(invalid(
                object(),
                "cards.kind",
                &cards.kind,
                "each kind once",
            ));
        }
    }
    Ok(())
}

fn check_template(spec: &PodSpec) -> Result<(), Rejection> {
    let object = || format!("pod {}/{}", spec.namespace, spec.name);
    for (name, &amount) in &spec.template.resources {
        if !(0..=MOST).contains(&amount) {
            let field = format!("template.resources.{name}");
            return Err(invalid(object(), &field, &amount, "0 to 2^60"));
        }
    }
    if spec
        .template
        .cards
        .as_ref()
        .is_some_and(|cards| cards.count == 0)
    {
        return Err(invalid(object(), "template.cards.count", &0, "at least 1"));
    }
    Ok(())
}
