//! Nodes and what runs on them: states, classes of equal state, domains, and a journal to undo.
//!
//! Data enters as [`NodeSpec`]s, compiled templates and charges (a member of this template takes
//! these cards on this node). What is free is never patched by hand: it is allocatable minus the
//! charges, and `Cluster::undo_to` takes charges back exactly. Which pod a charge belongs to is
//! the engine's ledger; this module never decides where anything goes.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    string::String,
    sync::Arc,
    vec::Vec,
};
use core::cmp::Ordering;

use smallvec::SmallVec;

use crate::{
    bits::CardSet,
    device::{CardAsk, Inventory, KindIx},
    hash::Map,
    request::{
        CPU, HostPort, LabelSelector, MEMORY, NODE_LEVEL, NamespaceScope, PODS, PodTerm, Template,
    },
    symbols::{Symbol, Symbols},
};

pub(crate) mod class;
pub(crate) mod domain;
mod order;
pub(crate) mod relation;
pub(crate) mod shape;
pub mod spec;
pub(crate) mod template;

use class::{ClassIx, Classes};
use domain::{KeyIx, NO_DOMAIN, NODE_KEY, Partition};
pub(crate) use order::natural;
use relation::{Term, TermIdentity, TermIx, bump};
use shape::{ShapeIx, Shapes, StaticFit};
pub use spec::{NodeCards, NodeSpec};
use template::{Compiled, CompiledSpread, TemplateIx};

/// Index of a node in its scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeIx(pub u32);

/// Resources 0 to 2 are always these.
pub(crate) const FIXED_RESOURCES: [&str; 3] = [PODS, CPU, MEMORY];
pub(crate) const PODS_IX: u16 = 0;
pub(crate) const CPU_IX: u16 = 1;
pub(crate) const MEMORY_IX: u16 = 2;

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) name: Symbol,
    /// `None`: pods say they run there, but nobody has described it (yet, or any more).
    pub(crate) spec: Option<Arc<NodeSpec>>,
    pub(crate) shape: ShapeIx,
    pub(crate) class: Option<ClassIx>,
    pub(crate) cards: Inventory,
    /// Ports held, one entry a holder.
    pub(crate) ports: SmallVec<[HostPort; 1]>,
    /// Place in node order; valid after `settle_order`.
    pub(crate) rank: u32,
}

/// A charge and whether it was made or taken back: enough to invert it.
#[derive(Clone, Copy, Debug)]
struct JournalEntry {
    node: NodeIx,
    template: TemplateIx,
    cards: CardSet,
    made: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    pub(crate) symbols: Symbols,
    resources: Vec<Symbol>,
    kinds: Vec<Symbol>,
    nodes: Vec<Node>,
    by_name: Map<Symbol, NodeIx>,
    /// Free amounts, `resources.len()` a node.
    free: Vec<i64>,
    shapes: Shapes,
    pub(crate) classes: Classes,
    /// Static answers by template, then shape; `None` until asked.
    static_fits: Vec<Vec<Option<StaticFit>>>,
    pub(crate) partitions: Vec<Partition>,
    key_by_symbol: Map<Symbol, KeyIx>,
    /// Configured levels, coarse to fine.
    pub(crate) levels: Vec<KeyIx>,
    terms: Vec<Term>,
    term_by_identity: Map<TermIdentity, TermIx>,
    templates: Vec<Compiled>,
    template_by_source: Map<Arc<Template>, TemplateIx>,
    /// Templates by address of their `Arc`, to skip hashing; the `Arc` here keeps it valid.
    template_by_address: Map<usize, (Arc<Template>, TemplateIx)>,
    /// Pod labels that some term asks about; the others are left out of templates.
    pod_labels: BTreeSet<String>,
    namespaces: Map<Symbol, Arc<BTreeMap<String, String>>>,
    no_labels: Arc<BTreeMap<String, String>>,
    journal: Vec<JournalEntry>,
    journaling: bool,
    order_stale: bool,
    /// Present nodes in node order.
    order: Vec<NodeIx>,
}

impl Cluster {
    pub(crate) fn new<'a>(levels: impl IntoIterator<Item = &'a str>) -> Self {
        let mut symbols = Symbols::default();
        let resources = FIXED_RESOURCES.map(|name| symbols.intern(name)).into();
        let node_key = symbols.intern(NODE_LEVEL);
        let mut cluster = Self {
            symbols,
            resources,
            kinds: Vec::new(),
            nodes: Vec::new(),
            by_name: Map::default(),
            free: Vec::new(),
            shapes: Shapes::default(),
            classes: Classes::default(),
            static_fits: Vec::new(),
            partitions: [Partition::new(node_key)].into(),
            key_by_symbol: [(node_key, NODE_KEY)].into_iter().collect(),
            levels: Vec::new(),
            terms: Vec::new(),
            term_by_identity: Map::default(),
            templates: Vec::new(),
            template_by_source: Map::default(),
            template_by_address: Map::default(),
            pod_labels: BTreeSet::new(),
            namespaces: Map::default(),
            no_labels: Arc::default(),
            journal: Vec::new(),
            journaling: false,
            order_stale: false,
            order: Vec::new(),
        };
        for level in levels {
            let key = cluster.key(level);
            if key != NODE_KEY && !cluster.levels.contains(&key) {
                cluster.levels.push(key);
            }
        }
        cluster
    }

    // ---- names -------------------------------------------------------------------------------

    pub(crate) fn node_name(&self, node: NodeIx) -> &str {
        self.nodes
            .get(node.0 as usize)
            .map_or("", |node| self.symbols.text(node.name))
    }

    pub(crate) fn kind_name(&self, kind: KindIx) -> &str {
        self.kinds
            .get(usize::from(kind))
            .map_or("", |&kind| self.symbols.text(kind))
    }

    pub(crate) fn resource_name(&self, resource: u16) -> &str {
        self.resources
            .get(usize::from(resource))
            .map_or("", |&name| self.symbols.text(name))
    }

    pub(crate) fn key_name(&self, key: KeyIx) -> &str {
        self.symbols.text(self.partitions[usize::from(key.0)].key)
    }

    pub(crate) fn domain_name(&self, key: KeyIx, domain: u32) -> &str {
        if key == NODE_KEY {
            return self.node_name(NodeIx(domain));
        }
        let domains = &self.partitions[usize::from(key.0)].domains;
        domains
            .get(domain as usize)
            .map_or("", |domain| &domain.name)
    }

    // ---- nodes -------------------------------------------------------------------------------

    pub(crate) fn node(&self, node: NodeIx) -> &Node {
        &self.nodes[node.0 as usize]
    }

    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn find_node(&self, name: &str) -> Option<NodeIx> {
        self.symbols
            .get(name)
            .and_then(|name| self.by_name.get(&name))
            .copied()
    }

    /// The slot of a node by name, made empty if nobody has described it.
    pub(crate) fn node_slot(&mut self, name: &str) -> NodeIx {
        let name = self.symbols.intern(name);
        if let Some(&node) = self.by_name.get(&name) {
            return node;
        }
        let node = NodeIx(self.nodes.len() as u32);
        self.nodes.push(Node {
            name,
            spec: None,
            shape: ShapeIx(0),
            class: None,
            cards: Inventory::default(),
            ports: SmallVec::new(),
            rank: u32::MAX,
        });
        self.free.resize(self.free.len() + self.resources.len(), 0);
        self.by_name.insert(name, node);
        node
    }

    /// Describes a node anew if what it offers and where it stands is as before: its marks and other
    /// labels may differ, and its charges stay. False: it has to be described in full.
    pub(crate) fn mark(&mut self, node: NodeIx, spec: &Arc<NodeSpec>) -> bool {
        let slot = &mut self.nodes[node.0 as usize];
        let partitions = &self.partitions[1..];
        let stays = slot.spec.as_ref().is_some_and(|old| {
            old.resources == spec.resources
                && old.cards == spec.cards
                && (old.labels == spec.labels
                    || partitions.iter().all(|partition| {
                        let key = self.symbols.text(partition.key);
                        old.labels.get(key) == spec.labels.get(key)
                    }))
        });
        if stays {
            slot.spec = Some(spec.clone());
            slot.shape = self.shapes.remark(slot.shape, spec);
            self.reclass(node);
        }
        stays
    }

    /// Describes a node anew. Nothing may be charged to it at that moment.
    pub(crate) fn describe(&mut self, node: NodeIx, spec: Arc<NodeSpec>) {
        for name in spec.resources.keys() {
            self.resource(name);
        }
        let kinds: SmallVec<[(KindIx, u32, CardSet); 2]> = spec
            .cards
            .iter()
            .map(|cards| (self.kind(&cards.kind), cards.count, cards.unhealthy))
            .collect();
        self.retire(node);
        let ix = node.0 as usize;
        self.nodes[ix].cards = Inventory::new(kinds);
        for key in 1..self.partitions.len() {
            let name = self.symbols.text(self.partitions[key].key);
            let domain = match spec.labels.get(name) {
                Some(value) => self.partitions[key].domain(value),
                None => NO_DOMAIN,
            };
            self.partitions[key].set(node, domain);
        }
        self.partitions[0].set(node, node.0);
        self.nodes[ix].spec = Some(spec);
        let stride = self.resources.len();
        for resource in 0..stride {
            self.free[ix * stride + resource] = self.allocatable(node, resource as u16);
        }
        self.order_stale = true;
        self.reshape(node);
        for partition in &mut self.partitions[1..] {
            partition.count(node, &self.nodes[ix].cards, true);
        }
    }

    /// Forgets a node's description. Nothing may be charged to it at that moment.
    pub(crate) fn retire(&mut self, node: NodeIx) {
        let ix = node.0 as usize;
        if self.nodes[ix].spec.take().is_none() {
            return;
        }
        if let Some(class) = self.nodes[ix].class.take() {
            self.classes.leave(class);
        }
        for partition in &mut self.partitions {
            partition.count(node, &self.nodes[ix].cards, false);
            partition.set(node, NO_DOMAIN);
        }
        self.nodes[ix].cards = Inventory::default();
        let stride = self.resources.len();
        self.free[ix * stride..(ix + 1) * stride].fill(0);
        self.order_stale = true;
    }

    pub(crate) fn allocatable(&self, node: NodeIx, resource: u16) -> i64 {
        let Some(spec) = &self.node(node).spec else {
            return 0;
        };
        let given = spec.resources.get(self.resource_name(resource)).copied();
        given.unwrap_or(if resource == PODS_IX {
            NodeSpec::DEFAULT_PODS
        } else {
            0
        })
    }

    pub(crate) fn allocatable_of(&self, class: ClassIx) -> &[i64] {
        &self.shapes.get(self.classes.get(class).shape).allocatable
    }

    pub(crate) fn free_of(&self, node: NodeIx) -> &[i64] {
        let stride = self.resources.len();
        &self.free[node.0 as usize * stride..(node.0 as usize + 1) * stride]
    }

    fn reshape(&mut self, node: NodeIx) {
        let Some(spec) = self.nodes[node.0 as usize].spec.clone() else {
            return;
        };
        let allocatable: SmallVec<[i64; 16]> = (0..self.resources.len())
            .map(|resource| self.allocatable(node, resource as u16))
            .collect();
        let shape = self.shapes.of(&spec, &allocatable);
        self.nodes[node.0 as usize].shape = shape;
        self.reclass(node);
    }

    fn reclass(&mut self, node: NodeIx) {
        let ix = node.0 as usize;
        if self.nodes[ix].spec.is_none() {
            return;
        }
        if let Some(class) = self.nodes[ix].class.take() {
            self.classes.leave(class);
        }
        let stride = self.resources.len();
        let free = &self.free[ix * stride..(ix + 1) * stride];
        let node = &mut self.nodes[ix];
        node.class = Some(self.classes.enter(node.shape, free, &node.cards, node.rank));
    }

    fn reshape_all(&mut self) {
        for ix in 0..self.nodes.len() as u32 {
            self.reshape(NodeIx(ix));
        }
    }

    // ---- tables that grow --------------------------------------------------------------------

    fn resource(&mut self, name: &str) -> u16 {
        let symbol = self.symbols.intern(name);
        if let Some(found) = self.resources.iter().position(|&known| known == symbol) {
            return found as u16;
        }
        // A new resource widens every node's row; nodes that offer it are described after this.
        let (old, new) = (self.resources.len(), self.resources.len() + 1);
        let mut free = Vec::with_capacity(self.nodes.len() * new);
        for row in self.free.chunks_exact(old) {
            free.extend_from_slice(row);
            free.push(0);
        }
        self.free = free;
        self.resources.push(symbol);
        self.reshape_all();
        old as u16
    }

    fn kind(&mut self, name: &str) -> KindIx {
        let symbol = self.symbols.intern(name);
        if let Some(found) = self.kinds.iter().position(|&known| known == symbol) {
            return found as KindIx;
        }
        self.kinds.push(symbol);
        (self.kinds.len() - 1) as KindIx
    }

    /// The partition of a node label, made if new.
    pub(crate) fn key(&mut self, label: &str) -> KeyIx {
        let symbol = self.symbols.intern(label);
        if let Some(&key) = self.key_by_symbol.get(&symbol) {
            return key;
        }
        let key = KeyIx(self.partitions.len() as u16);
        let mut partition = Partition::new(symbol);
        for (ix, node) in self.nodes.iter().enumerate() {
            let value = node.spec.as_ref().and_then(|spec| spec.labels.get(label));
            if let Some(value) = value {
                let domain = partition.domain(value);
                partition.set(NodeIx(ix as u32), domain);
                partition.count(NodeIx(ix as u32), &node.cards, true);
            }
        }
        self.partitions.push(partition);
        self.key_by_symbol.insert(symbol, key);
        self.order_stale = true;
        key
    }

    pub(crate) fn partition(&self, key: KeyIx) -> &Partition {
        &self.partitions[usize::from(key.0)]
    }

    pub(crate) fn domain_of(&self, key: KeyIx, node: NodeIx) -> u32 {
        self.partitions[usize::from(key.0)].domain_of(node)
    }

    // ---- templates and terms -----------------------------------------------------------------

    pub(crate) fn template(&self, template: TemplateIx) -> &Compiled {
        &self.templates[template.0 as usize]
    }

    pub(crate) fn term(&self, term: TermIx) -> &Term {
        &self.terms[term.0 as usize]
    }

    /// Compiles a template, or finds it compiled. True: terms or the pod labels they ask about
    /// grew, so that every pod must be compiled again and counted in anew
    /// ([`Cluster::forget_counts`], [`Cluster::count_in`]) by whoever knows the pods.
    ///
    /// Labels that no term asks about are left out first: controllers give each pod labels of its
    /// own, and members that differ in nothing else must be alike.
    pub(crate) fn compile(&mut self, source: &Arc<Template>) -> (TemplateIx, bool) {
        let address = Arc::as_ptr(source) as usize;
        if let Some(&(_, ix)) = self.template_by_address.get(&address) {
            return (ix, false);
        }
        let before = (self.terms.len(), self.pod_labels.len());
        let mut ix = self.compile_projected(source);
        let grew = before != (self.terms.len(), self.pod_labels.len());
        if grew {
            self.template_by_address.clear();
            ix = self.compile_projected(source);
        }
        // Bounded, so that a stream of one-off `Arc`s does not keep every template alive.
        if self.template_by_address.len() >= 4096 {
            self.template_by_address.clear();
        }
        self.template_by_address
            .insert(address, (source.clone(), ix));
        (ix, grew)
    }

    /// Whether exactly this `Arc` was compiled before.
    pub(crate) fn knows(&self, source: &Arc<Template>) -> bool {
        self.template_by_address
            .contains_key(&(Arc::as_ptr(source) as usize))
    }

    fn compile_projected(&mut self, source: &Arc<Template>) -> TemplateIx {
        if source
            .labels
            .keys()
            .all(|key| self.pod_labels.contains(key))
        {
            return self.compile_exact(source);
        }
        let mut projected = Template::clone(source);
        projected
            .labels
            .retain(|key, _| self.pod_labels.contains(key));
        self.compile_exact(&Arc::new(projected))
    }

    fn compile_exact(&mut self, source: &Arc<Template>) -> TemplateIx {
        match self.template_by_source.get(source) {
            Some(&ix) => ix,
            None => self.compile_new(source),
        }
    }

    fn compile_new(&mut self, source: &Arc<Template>) -> TemplateIx {
        let ix = TemplateIx(self.templates.len() as u32);
        let mut amounts: SmallVec<[(u16, i64); 4]> = SmallVec::new();
        amounts.push((PODS_IX, 1));
        for (name, &amount) in &source.resources {
            if amount > 0 && name != PODS {
                let resource = self.resource(name);
                amounts.push((resource, amount));
            }
        }
        amounts.sort_unstable();
        let cards = source
            .cards
            .as_ref()
            .filter(|cards| cards.count > 0)
            .map(|cards| CardAsk {
                kind: self.kind(&cards.kind),
                count: cards.count,
            });
        let relations = &source.relations;
        let anti_affinity: Vec<TermIx> = relations
            .anti_affinity
            .iter()
            .map(|term| self.pod_term(source, term))
            .collect();
        // Kubernetes asks for one pod that matches all affinity terms at once.
        let terms = relations.affinity.iter();
        let all_terms: Vec<_> = terms
            .flat_map(|term| term.selector.requirements.iter().cloned())
            .collect();
        let mut affinity = Vec::new();
        for term in &relations.affinity {
            let selector = LabelSelector {
                requirements: all_terms.clone(),
            };
            affinity.push(self.pod_term(
                source,
                &PodTerm {
                    selector,
                    ..term.clone()
                },
            ));
        }
        let mut wishes = Vec::new();
        for (weight, term) in &relations.preferred {
            wishes.push((*weight, self.pod_term(source, term)));
        }
        let mut spread = Vec::new();
        for rule in &relations.spread {
            let own = NamespaceScope {
                names: [source.namespace.clone()].into(),
                selector: None,
            };
            let term = self.intern_term(&rule.topology_key, &rule.selector, own);
            if rule.required {
                spread.push(CompiledSpread {
                    term,
                    max_skew: rule.max_skew.max(1),
                    min_domains: rule.min_domains,
                    honor_node_affinity: rule.honor_node_affinity,
                    honor_taints: rule.honor_taints,
                });
            } else {
                wishes.push((-100, term));
            }
        }
        if self.shapes.take_interest(template::label_keys(source)) {
            self.reshape_all();
        }
        let counted_by = (0..self.terms.len() as u32)
            .map(TermIx)
            .filter(|&term| self.counts(term, source))
            .collect();
        self.templates.push(Compiled {
            source: source.clone(),
            amounts,
            cards,
            names_nodes: template::names_nodes(source),
            affinity,
            anti_affinity,
            spread,
            wishes,
            counted_by,
        });
        self.static_fits.push(Vec::new());
        self.template_by_source.insert(source.clone(), ix);
        ix
    }

    fn pod_term(&mut self, source: &Template, term: &PodTerm) -> TermIx {
        let mut namespaces = term.namespaces.clone();
        if namespaces.names.is_empty() && namespaces.selector.is_none() {
            namespaces.names.push(source.namespace.clone());
        }
        namespaces.names.sort_unstable();
        self.intern_term(&term.topology_key, &term.selector, namespaces)
    }

    fn intern_term(
        &mut self,
        key: &str,
        selector: &LabelSelector,
        namespaces: NamespaceScope,
    ) -> TermIx {
        let key = self.key(key);
        let identity = TermIdentity {
            key,
            selector: selector.clone(),
            namespaces,
        };
        if let Some(&term) = self.term_by_identity.get(&identity) {
            return term;
        }
        let term = TermIx(self.terms.len() as u32);
        for requirement in &selector.requirements {
            if !self.pod_labels.contains(&requirement.key) {
                self.pod_labels.insert(requirement.key.clone());
            }
        }
        self.terms.push(Term::new(identity.clone()));
        self.term_by_identity.insert(identity, term);
        for index in 0..self.templates.len() {
            if self.counts(term, &self.templates[index].source) {
                self.templates[index].counted_by.push(term);
            }
        }
        term
    }

    /// Whether pods of a template match a term.
    fn counts(&self, term: TermIx, source: &Template) -> bool {
        let identity = &self.term(term).identity;
        let scope = &identity.namespaces;
        let labels = self
            .symbols
            .get(&source.namespace)
            .and_then(|n| self.namespaces.get(&n));
        let labels = labels.unwrap_or(&self.no_labels);
        let by_labels = |selector: &LabelSelector| selector.matches(labels);
        (scope.names.contains(&source.namespace) || scope.selector.as_ref().is_some_and(by_labels))
            && identity.selector.matches(&source.labels)
    }

    /// Sets a namespace's labels. True: other pods may match now, so that they must be counted in
    /// anew, as after [`Cluster::compile`].
    pub(crate) fn set_namespace(&mut self, name: &str, labels: BTreeMap<String, String>) -> bool {
        let name = self.symbols.intern(name);
        self.namespaces.insert(name, Arc::new(labels));
        if self
            .terms
            .iter()
            .all(|term| term.identity.namespaces.selector.is_none())
        {
            return false;
        }
        for index in 0..self.templates.len() {
            let source = self.templates[index].source.clone();
            let all = (0..self.terms.len() as u32).map(TermIx);
            let counted_by = all.filter(|&term| self.counts(term, &source)).collect();
            self.templates[index].counted_by = counted_by;
        }
        true
    }

    /// Empties every term's counters.
    pub(crate) fn forget_counts(&mut self) {
        for term in &mut self.terms {
            term.matching.clear();
            term.carriers.clear();
            term.total = 0;
        }
    }

    /// Counts a charged pod in or out of the terms that count it.
    pub(crate) fn count_in(&mut self, node: NodeIx, template: TemplateIx, add: bool) {
        let template = &self.templates[template.0 as usize];
        let of =
            |partitions: &[Partition], key: KeyIx| partitions[usize::from(key.0)].domain_of(node);
        for &term in &template.counted_by {
            let term = &mut self.terms[term.0 as usize];
            let domain = of(&self.partitions, term.identity.key);
            if domain != NO_DOMAIN {
                bump(&mut term.matching, domain, add);
            }
            term.total = if add {
                term.total + 1
            } else {
                term.total.saturating_sub(1)
            };
        }
        for &term in &template.anti_affinity {
            let term = &mut self.terms[term.0 as usize];
            let domain = of(&self.partitions, term.identity.key);
            if domain != NO_DOMAIN {
                bump(&mut term.carriers, domain, add);
            }
        }
    }

    /// The static answer of a class to a template that names no node; asked once a shape.
    pub(crate) fn static_fit(&mut self, template: TemplateIx, class: ClassIx) -> StaticFit {
        let shape = self.classes.get(class).shape;
        let answers = &mut self.static_fits[template.0 as usize];
        let index = shape.0 as usize;
        if answers.len() <= index {
            answers.resize(index + 1, None);
        }
        if let Some(answer) = answers[index] {
            return answer;
        }
        let answer = self
            .shapes
            .get(shape)
            .judge(&self.templates[template.0 as usize]);
        self.static_fits[template.0 as usize][index] = Some(answer);
        answer
    }

    // ---- charges -----------------------------------------------------------------------------

    /// Charges a member of a template with these cards to a node, whether it fits or not.
    pub(crate) fn charge(&mut self, node: NodeIx, template: TemplateIx, cards: CardSet) {
        self.change(node, template, cards, true);
    }

    /// Takes back a charge that was made with the same arguments.
    pub(crate) fn release(&mut self, node: NodeIx, template: TemplateIx, cards: CardSet) {
        self.change(node, template, cards, false);
    }

    fn change(&mut self, node: NodeIx, template: TemplateIx, cards: CardSet, made: bool) {
        if self.journaling {
            self.journal.push(JournalEntry {
                node,
                template,
                cards,
                made,
            });
        }
        let ix = node.0 as usize;
        let stride = self.resources.len();
        let compiled = &self.templates[template.0 as usize];
        let free = &mut self.free[ix * stride..(ix + 1) * stride];
        for &(resource, amount) in &compiled.amounts {
            let slot = &mut free[usize::from(resource)];
            // Amounts are checked when they enter, so the sum of all pods of a node fits.
            *slot = if made {
                slot.wrapping_sub(amount)
            } else {
                slot.wrapping_add(amount)
            };
        }
        let slot = &mut self.nodes[ix];
        for port in &compiled.source.host_ports {
            if made {
                slot.ports.push(port.clone());
            } else if let Some(at) = slot.ports.iter().position(|held| held == port) {
                slot.ports.swap_remove(at);
            }
        }
        if let Some(ask) = compiled.cards {
            let before = slot.cards.free(ask.kind);
            if made {
                slot.cards.take(ask, cards);
            } else {
                slot.cards.give_back(ask, cards);
            }
            let after = slot.cards.free(ask.kind);
            if before != after {
                for partition in &mut self.partitions[1..] {
                    partition.recount(node, ask.kind, before, after);
                }
            }
        }
        if !(compiled.counted_by.is_empty() && compiled.anti_affinity.is_empty()) {
            self.count_in(node, template, made);
        }
        self.reclass(node);
    }

    /// Starts to note changes; [`Cluster::undo_to`] with the returned mark takes them back.
    pub(crate) fn begin(&mut self) -> usize {
        self.journaling = true;
        self.journal.len()
    }

    /// Takes back every change since the mark, latest first.
    pub(crate) fn undo_to(&mut self, mark: usize) {
        self.journaling = false;
        while self.journal.len() > mark {
            let Some(entry) = self.journal.pop() else {
                break;
            };
            self.change(entry.node, entry.template, entry.cards, !entry.made);
        }
        self.journaling = true;
    }

    /// Stops noting changes and keeps them.
    pub(crate) fn commit(&mut self) {
        self.journaling = false;
        self.journal.clear();
    }

    /// Whether the node can take one more member of the template, judged by what is free alone:
    /// `None` if so, otherwise what is short.
    pub(crate) fn shortage(&self, node: NodeIx, template: TemplateIx) -> Option<Shortage> {
        let compiled = self.template(template);
        if let Some(ask) = compiled
            .cards
            .filter(|&ask| self.node(node).cards.capacity(ask) == 0)
        {
            return Some(Shortage::Cards(ask.kind));
        }
        let free = self.free_of(node);
        let short = compiled.amounts.iter().find(|&&(resource, amount)| {
            free.get(usize::from(resource))
                .is_none_or(|&free| free < amount)
        });
        short.map(|&(resource, _)| Shortage::Resource(resource))
    }
}

/// What a node has too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    Cards(KindIx),
    Resource(u16),
}

/// How many members of a template fit on a node of a class at once, by what is free alone.
pub(crate) fn class_capacity(template: &Compiled, class: &class::Class) -> u32 {
    let mut capacity = template
        .cards
        .map_or(u32::MAX, |ask| class.cards.capacity(ask));
    for &(resource, amount) in &template.amounts {
        let free = class.free.get(usize::from(resource)).copied().unwrap_or(0);
        let fits = if free < amount { 0 } else { free / amount };
        capacity = capacity.min(u32::try_from(fits).unwrap_or(u32::MAX));
    }
    capacity
}

impl Cluster {
    /// Brings node order up to date: by domain at each configured level (nodes without the label
    /// last), then by name, numbers in names compared as numbers. Cost n log n after a node came,
    /// went or moved; nothing otherwise.
    pub(crate) fn settle_order(&mut self) {
        if !self.order_stale {
            return;
        }
        self.order_stale = false;
        let mut order = core::mem::take(&mut self.order);
        order.clear();
        let present = |ix: &u32| self.nodes[*ix as usize].spec.is_some();
        order.extend((0..self.nodes.len() as u32).filter(present).map(NodeIx));
        order.sort_unstable_by(|&a, &b| self.compare_nodes(a, b));
        for partition in &mut self.partitions {
            for domain in &mut partition.domains {
                domain.nodes.clear();
            }
        }
        self.classes.clear();
        for node in &mut self.nodes {
            node.class = None;
            node.rank = u32::MAX;
        }
        for (rank, &node) in order.iter().enumerate() {
            self.nodes[node.0 as usize].rank = rank as u32;
            self.reclass(node);
            for partition in &mut self.partitions[1..] {
                let domain = partition.domain_of(node);
                if let Some(domain) = partition.domains.get_mut(domain as usize) {
                    domain.nodes.push(node);
                }
            }
        }
        self.order = order;
    }

    fn compare_nodes(&self, a: NodeIx, b: NodeIx) -> Ordering {
        for &level in &self.levels {
            let (of_a, of_b) = (self.domain_of(level, a), self.domain_of(level, b));
            if of_a != of_b {
                return match (of_a, of_b) {
                    (NO_DOMAIN, _) => Ordering::Greater,
                    (_, NO_DOMAIN) => Ordering::Less,
                    _ => {
                        order::natural(self.domain_name(level, of_a), self.domain_name(level, of_b))
                    }
                };
            }
        }
        order::natural(self.node_name(a), self.node_name(b))
    }

    /// Present nodes in node order, sorted now: for readers that cannot settle the order.
    pub(crate) fn sorted(&self) -> Vec<NodeIx> {
        let present = |ix: &u32| self.nodes[*ix as usize].spec.is_some();
        let mut order: Vec<NodeIx> = (0..self.nodes.len() as u32)
            .filter(present)
            .map(NodeIx)
            .collect();
        order.sort_unstable_by(|&a, &b| self.compare_nodes(a, b));
        order
    }

    /// Labels of all described namespaces.
    pub(crate) fn namespaces(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        let described = |(name, labels): (&Symbol, &Arc<BTreeMap<String, String>>)| {
            (self.symbols.text(*name).into(), BTreeMap::clone(labels))
        };
        #[allow(clippy::disallowed_methods, reason = "collected into an ordered map")]
        self.namespaces.iter().map(described).collect()
    }

    /// Present nodes in node order; valid after [`Cluster::settle_order`].
    pub(crate) fn ordered(&self) -> &[NodeIx] {
        &self.order
    }

    /// The first node of a class in node order.
    pub(crate) fn first_of(&mut self, class: ClassIx) -> Option<NodeIx> {
        let (nodes, order) = (&self.nodes, &self.order);
        let belongs = |rank: u32| {
            let node = order.get(rank as usize).map(|node| &nodes[node.0 as usize]);
            node.is_some_and(|node| node.class == Some(class))
        };
        let rank = self.classes.first_rank(class, belongs)?;
        self.order.get(rank as usize).copied()
    }
}
