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
    device::{Catalog, Devices, Inventory, KindIx},
    hash::Map,
    request::{CPU, HostPort, MEMORY, NODE_LEVEL, PODS, Template},
    symbols::{Symbol, Symbols},
};

mod charges;
pub(crate) mod class;
pub(crate) mod domain;
mod order;
pub(crate) mod relation;
pub(crate) mod shape;
pub mod spec;
pub(crate) mod template;
mod terms;

use class::{ClassIx, Classes};
use domain::{KeyIx, NO_DOMAIN, NODE_KEY, Partition};
pub(crate) use order::natural;
use relation::{Term, TermIdentity, TermIx};
use shape::{ShapeIx, Shapes, StaticFit};
pub use spec::{CardMode, MigInstance, NodeCards, NodeSpec};
use template::{Compiled, TemplateIx};

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
    devices: Devices,
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
    catalog: Catalog,
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
            catalog: Catalog::default(),
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
        let mut kinds = Vec::new();
        for cards in &spec.cards {
            let loose: Vec<u32> = cards.slices.values().copied().collect();
            let (kind, hardware) = (self.kind(&cards.kind), self.catalog.of(cards));
            let out = (cards.unhealthy, cards.closed);
            kinds.push((kind, hardware, cards.count, out, loose));
        }
        self.retire(node);
        let ix = node.0 as usize;
        self.nodes[ix].cards =
            Inventory::new(kinds.iter().map(|(kind, hardware, count, out, loose)| {
                (*kind, hardware.clone(), *count, *out, loose.as_slice())
            }));
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

    /// Whether a domain has a node. One that lost its last node keeps its number, and no decision may
    /// show that it was there.
    pub(crate) fn has_nodes(&self, key: KeyIx, domain: u32) -> bool {
        if key == NODE_KEY {
            return self.node(NodeIx(domain)).spec.is_some();
        }
        !self.partition(key).domains[domain as usize]
            .nodes
            .is_empty()
    }

    /// The numbers of a key's domains, as they came; some may have no nodes any more.
    pub(crate) fn domains_of(&self, key: KeyIx) -> core::ops::Range<u32> {
        let count = if key == NODE_KEY {
            self.node_count()
        } else {
            self.partition(key).domains.len()
        };
        0..count as u32
    }

    /// The place in node order of a domain's first node; the largest number without nodes. Domains
    /// are numbered as they came, so order among them goes by this. Valid after
    /// [`Cluster::settle_order`].
    pub(crate) fn first_rank_in(&self, key: KeyIx, domain: u32) -> u32 {
        if key == NODE_KEY {
            return self.node(NodeIx(domain)).rank;
        }
        let nodes = &self.partition(key).domains[domain as usize].nodes;
        nodes.first().map_or(u32::MAX, |&node| self.node(node).rank)
    }

    // ---- templates and terms -----------------------------------------------------------------

    // ---- charges -----------------------------------------------------------------------------
}

/// What a node has too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    Cards(KindIx),
    Resource(u16),
}

/// How many members of a template fit at once, by what is free alone.
pub(crate) fn capacity_of(template: &Compiled, cards: &Inventory, free: &[i64]) -> u32 {
    let mut capacity = template
        .cards
        .as_ref()
        .map_or(u32::MAX, |ask| cards.capacity(ask));
    for &(resource, amount) in &template.amounts {
        let free = free.get(usize::from(resource)).copied().unwrap_or(0);
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
