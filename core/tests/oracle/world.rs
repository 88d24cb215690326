//! Random small worlds: a few nodes, what runs there, one or two gangs that want in.
//!
//! Each world switches each family of constraints on or off, so that most worlds combine a few of
//! them; amounts are small, so that "just fits" and "just does not" are common.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use gangline::{
    bits::CardSet,
    cluster::{NodeCards, NodeSpec},
    engine::{Config, Event, Scheduler},
    gang::{
        GangSpec, Group, GroupKind, Minimum, PodPhase, PodSpec, Role, ScoringRule, TopologyRule,
    },
    request::{
        CardRequest, HostPort, LabelSelector, NODE_LEVEL, NamespaceScope, NodeRules,
        NodeSelectorTerm, NodeTest, Operator, PodTerm, Protocol, Requirement, SpreadRule, Taint,
        TaintEffect, Template, Toleration, TolerationOperator,
    },
    units::Nanos,
};

use crate::support::{GPU, gang_of, key, pod, random::Random, role};

/// Objects as the engine gets them; the exhaustive judge reads the same objects.
#[derive(Clone, Debug, Default)]
pub struct World {
    pub namespaces: BTreeMap<String, BTreeMap<String, String>>,
    pub nodes: Vec<NodeSpec>,
    pub gangs: Vec<GangSpec>,
    /// Running pods of others, running and finished members, members that wait.
    pub pods: Vec<PodSpec>,
}

impl World {
    pub fn events(&self) -> Vec<Event> {
        let namespaces = self
            .namespaces
            .iter()
            .map(|(name, labels)| Event::Namespace {
                name: name.clone(),
                labels: labels.clone(),
            });
        namespaces
            .chain(self.nodes.iter().cloned().map(Event::Node))
            .chain(self.gangs.iter().cloned().map(Event::Gang))
            .chain(self.pods.iter().cloned().map(Event::Pod))
            .collect()
    }

    pub fn scheduler(&self) -> Scheduler {
        let mut scheduler = Scheduler::new(Config {
            levels: vec!["block".into(), "rack".into()],
            ..Config::default()
        });
        for event in self.events() {
            scheduler.apply(event).expect("worlds hold legal objects");
        }
        scheduler
    }
}

/// The families of constraints that a world uses.
#[derive(Debug)]
struct Families {
    selectors: bool,
    taints: bool,
    levels: bool,
    ports: bool,
    slots: bool,
    spread: bool,
    anti_affinity: bool,
    affinity: bool,
    wishes: bool,
    namespaces: bool,
    unhealthy: bool,
    others: bool,
    running: bool,
}

/// The world of a seed.
pub fn world(seed: u64) -> World {
    let mut random = Random::new(seed);
    let random = &mut random;
    let families = Families {
        selectors: random.chance(25),
        taints: random.chance(25),
        levels: random.chance(45),
        ports: random.chance(15),
        slots: random.chance(30),
        spread: random.chance(25),
        anti_affinity: random.chance(30),
        affinity: random.chance(30),
        wishes: random.chance(15),
        namespaces: random.chance(15),
        unhealthy: random.chance(15),
        others: random.chance(50),
        running: random.chance(25),
    };
    let mut world = World::default();
    if families.namespaces {
        for (name, team) in [("default", "x"), ("other", "y")] {
            let labels = BTreeMap::from([("team".into(), team.into())]);
            world.namespaces.insert(name.into(), labels);
        }
    }
    for ordinal in 0..random.between(1, 5) {
        let node = node(random, &families, ordinal);
        world.nodes.push(node);
    }
    if families.others {
        for ordinal in 0..random.between(1, 4) {
            let mut template = template(random, &families);
            if families.namespaces && random.chance(50) {
                template.namespace = "other".into();
            }
            let template = Arc::new(template);
            let node = random.pick(&world.nodes).name.clone();
            world.pods.push(PodSpec {
                node: Some(node),
                namespace: template.namespace.clone(),
                phase: PodPhase::Running,
                ..pod(&format!("other-{ordinal}"), &template)
            });
        }
    }
    let gangs = if random.chance(15) { 2 } else { 1 };
    for ordinal in 0..gangs {
        let most = if gangs == 2 { 3 } else { 6 };
        let wanted = random.between(1, most);
        add_gang(random, &families, &mut world, ordinal, wanted);
    }
    world
}

fn node(random: &mut Random, families: &Families, ordinal: u64) -> NodeSpec {
    let name = format!("n{ordinal}");
    let mut labels = BTreeMap::from([(NODE_LEVEL.to_owned(), name.clone())]);
    for (key, values) in [("rack", 3), ("block", 2)] {
        if random.chance(88) {
            let value = format!("{}{}", &key[..1], random.below(values));
            labels.insert(key.into(), value);
        }
    }
    let mut taints = Vec::new();
    if families.selectors {
        if random.chance(70) {
            labels.insert("disk".into(), (*random.pick(&["ssd", "hdd"])).into());
        }
        if random.chance(80) {
            labels.insert("generation".into(), random.between(1, 4).to_string());
        }
    }
    if families.taints {
        for key in ["spot", "gpu"] {
            if random.chance(25) {
                taints.push(Taint {
                    key: key.into(),
                    value: (*random.pick(&["", "yes"])).into(),
                    effect: *random.pick(&[
                        TaintEffect::NoSchedule,
                        TaintEffect::NoExecute,
                        TaintEffect::PreferNoSchedule,
                    ]),
                });
            }
        }
    }
    let mut resources = BTreeMap::from([("cpu".to_owned(), random.below(8) as i64)]);
    if random.chance(30) {
        resources.insert("memory".into(), random.below(8) as i64);
    }
    if families.slots && random.chance(70) {
        resources.insert("pods".into(), random.between(0, 4) as i64);
    }
    let mut cards = Vec::new();
    if random.chance(85) {
        let count = random.between(0, 5) as u32;
        let unhealthy = if families.unhealthy {
            CardSet(random.below(8))
        } else {
            CardSet::EMPTY
        };
        cards.push(NodeCards {
            kind: GPU.into(),
            count,
            unhealthy,
            ..NodeCards::default()
        });
    }
    if random.chance(10) {
        cards.push(NodeCards {
            kind: "amd.com/gpu".into(),
            count: random.between(1, 2) as u32,
            ..NodeCards::default()
        });
    }
    NodeSpec {
        name,
        labels,
        taints,
        unschedulable: families.taints && random.chance(15),
        resources,
        cards,
    }
}

/// A template; its label `app` is what relations look at.
fn template(random: &mut Random, families: &Families) -> Template {
    let mut template = Template {
        namespace: "default".into(),
        ..Template::default()
    };
    template
        .labels
        .insert("app".into(), (*random.pick(&["a", "b", "c"])).into());
    if random.chance(30) {
        template.labels.insert("tier".into(), "front".into());
    }
    if random.chance(75) {
        let amount = random.between(0, 4) as i64;
        template.resources.insert("cpu".into(), amount);
    }
    if random.chance(10) {
        let amount = random.between(1, 3) as i64;
        template.resources.insert("memory".into(), amount);
    }
    if random.chance(65) {
        let kind = if random.chance(5) { "amd.com/gpu" } else { GPU };
        template.cards = Some(CardRequest::whole(kind, random.between(1, 3) as u32));
    }
    if families.selectors && random.chance(60) {
        template.nodes = node_rules(random);
    }
    if families.taints {
        for _ in 0..random.below(3) {
            template.nodes.tolerations.push(toleration(random));
        }
    }
    if families.ports && random.chance(60) {
        template.host_ports.push(HostPort {
            port: random.between(80, 81) as u16,
            protocol: *random.pick(&[Protocol::Tcp, Protocol::Tcp, Protocol::Udp]),
            address: (*random.pick(&["", "0.0.0.0", "10.0.0.1", "10.0.0.2"])).into(),
        });
    }
    let relations = &mut template.relations;
    if families.anti_affinity && random.chance(50) {
        for _ in 0..random.between(1, 2) {
            let term = pod_term(random, families);
            relations.anti_affinity.push(term);
        }
    }
    if families.affinity && random.chance(50) {
        let namespaces = scope(random, families);
        for _ in 0..random.between(1, 2) {
            let term = pod_term(random, families);
            relations.affinity.push(PodTerm {
                namespaces: namespaces.clone(),
                ..term
            });
        }
    }
    if families.wishes {
        for _ in 0..random.between(1, 2) {
            let term = pod_term(random, families);
            let weight = random.between(0, 200) as i32 - 100;
            relations.preferred.push((weight, term));
        }
    }
    if families.spread && random.chance(60) {
        for _ in 0..random.between(1, 2) {
            relations.spread.push(SpreadRule {
                topology_key: level(random),
                max_skew: random.between(1, 2) as u32,
                selector: selector(random),
                min_domains: if random.chance(25) {
                    random.between(1, 4) as u32
                } else {
                    0
                },
                required: random.chance(85),
                honor_node_affinity: random.chance(70),
                honor_taints: random.chance(50),
            });
        }
    }
    template
}

fn node_rules(random: &mut Random) -> NodeRules {
    let mut rules = NodeRules::default();
    if random.chance(30) {
        rules.selector.insert("disk".into(), "ssd".into());
    }
    if random.chance(5) {
        rules.selector.insert(NODE_LEVEL.into(), "n1".into());
    }
    if random.chance(60) {
        let mut terms = Vec::new();
        // An empty list of terms is allowed and matches no node.
        let fewest = u64::from(random.chance(95));
        for _ in 0..random.between(fewest, 2) {
            let tests = (0..random.between(1, 2))
                .map(|_| node_test(random))
                .collect();
            terms.push(NodeSelectorTerm { tests });
        }
        if random.chance(5) {
            terms.push(NodeSelectorTerm::default());
        }
        rules.required = Some(terms);
    }
    if random.chance(30) {
        let tests = vec![node_test(random)];
        rules.preferred.push((50, NodeSelectorTerm { tests }));
    }
    rules
}

fn node_test(random: &mut Random) -> NodeTest {
    let requirement = |key: &str, operator, values: &[&str]| Requirement {
        key: key.into(),
        operator,
        values: values.iter().map(|&value| value.into()).collect(),
    };
    let label = NodeTest::Label;
    match random.below(9) {
        0 => label(requirement("disk", Operator::In, &["ssd", "nvme"])),
        1 => label(requirement("disk", Operator::NotIn, &["hdd"])),
        2 => label(requirement("disk", Operator::Exists, &[])),
        3 => label(requirement("disk", Operator::DoesNotExist, &[])),
        4 => label(requirement("generation", Operator::Gt, &["2"])),
        5 => label(requirement("generation", Operator::Lt, &["4"])),
        6 => label(requirement("rack", Operator::In, &["r0", "r1"])),
        7 => NodeTest::Name(requirement("metadata.name", Operator::In, &["n0", "n2"])),
        _ => label(requirement(NODE_LEVEL, Operator::NotIn, &["n0"])),
    }
}

fn toleration(random: &mut Random) -> Toleration {
    let operator = *random.pick(&[TolerationOperator::Equal, TolerationOperator::Exists]);
    let keys: &[&str] = match operator {
        TolerationOperator::Exists => &["spot", "gpu", "node.kubernetes.io/unschedulable", ""],
        TolerationOperator::Equal => &["spot", "gpu"],
    };
    Toleration {
        key: (*random.pick(keys)).into(),
        operator,
        value: match operator {
            TolerationOperator::Exists => String::new(),
            TolerationOperator::Equal => (*random.pick(&["", "yes"])).into(),
        },
        effect: *random.pick(&[
            None,
            None,
            Some(TaintEffect::NoSchedule),
            Some(TaintEffect::NoExecute),
        ]),
    }
}

fn level(random: &mut Random) -> String {
    (*random.pick(&[NODE_LEVEL, "rack", "rack", "block"])).into()
}

fn selector(random: &mut Random) -> LabelSelector {
    let requirement = |key: &str, operator, values: &[&str]| LabelSelector {
        requirements: vec![Requirement {
            key: key.into(),
            operator,
            values: values.iter().map(|&value| value.into()).collect(),
        }],
    };
    match random.below(7) {
        0 | 1 => requirement("app", Operator::In, &["a"]),
        2 => requirement("app", Operator::In, &["b"]),
        3 => requirement("app", Operator::In, &["a", "b"]),
        4 => requirement("app", Operator::NotIn, &["a"]),
        5 => requirement("tier", Operator::Exists, &[]),
        _ => LabelSelector::default(),
    }
}

fn scope(random: &mut Random, families: &Families) -> NamespaceScope {
    let mut scope = NamespaceScope::default();
    if families.namespaces && random.chance(60) {
        match random.below(4) {
            0 => scope.names.push("other".into()),
            1 => scope.names.extend(["default".into(), "other".into()]),
            2 => scope.selector = Some(LabelSelector::default()),
            _ => scope.selector = Some(LabelSelector::from_labels([("team", "y")])),
        }
    }
    scope
}

fn pod_term(random: &mut Random, families: &Families) -> PodTerm {
    PodTerm {
        topology_key: level(random),
        selector: selector(random),
        namespaces: scope(random, families),
    }
}

fn add_gang(
    random: &mut Random,
    families: &Families,
    world: &mut World,
    ordinal: u64,
    wanted: u64,
) {
    let name = format!("g{ordinal}");
    if wanted == 1 && random.chance(50) {
        let template = Arc::new(template(random, families));
        world.pods.push(pod(&name, &template));
        return;
    }
    let leaves = random.between(1, wanted.min(3)) as usize;
    let mut sizes = vec![1; leaves];
    for _ in leaves as u64..wanted {
        let leaf = random.below(leaves as u64) as usize;
        sizes[leaf] += 1;
    }
    let root = tree(random, families, &sizes);
    let mut spec = gang_of(&name, root);
    spec.created = Nanos(ordinal);
    spec.scoring = *random.pick(&[None, None, Some(ScoringRule::Spread)]);
    if spec.check().is_err() {
        // Nested minima may exceed what is wanted; such gangs are another test's business.
        spec.root = role("l0", 0, 1);
        sizes = vec![wanted];
    }
    let templates: Vec<Arc<Template>> = (0..random.between(1, 3))
        .map(|_| Arc::new(template(random, families)))
        .collect();
    let mut number = 0;
    for (leaf, &size) in sizes.iter().enumerate() {
        let usual = random.pick(&templates).clone();
        for _ in 0..size {
            let template = if random.chance(65) {
                &usual
            } else {
                random.pick(&templates)
            };
            let mut member = PodSpec {
                gang: Some(key(&name)),
                role: format!("l{leaf}"),
                ..pod(&format!("{name}-{number}"), template)
            };
            number += 1;
            if families.running && random.chance(20) {
                member.phase = PodPhase::Running;
                if random.chance(20) {
                    member.phase = PodPhase::Succeeded;
                }
                member.node = Some(random.pick(&world.nodes).name.clone());
            }
            world.pods.push(member);
        }
    }
    world.gangs.push(spec);
    wait_where_levels_break(world, &name);
}

/// Members that run outside their required domain are broken from outside, and what to do about
/// them is not the search's question: they are made to wait.
pub fn wait_where_levels_break(world: &mut World, gang: &str) {
    let Some(spec) = world
        .gangs
        .iter()
        .find(|spec| spec.key.name == gang)
        .cloned()
    else {
        return;
    };
    let mut domains: BTreeMap<String, String> = BTreeMap::new();
    for pod in &mut world.pods {
        let (true, Some(node)) = (pod.gang.as_ref() == Some(&spec.key), &pod.node) else {
            continue;
        };
        if pod.phase == PodPhase::Succeeded {
            continue;
        }
        let labels = world.nodes.iter().find(|spec| spec.name == *node);
        let mut kept = labels.is_some();
        for group in path_to(&spec.root, &pod.role) {
            let Some(level) = &group.topology.required else {
                continue;
            };
            let domain = labels.and_then(|node| node.labels.get(level)).cloned();
            let Some(domain) = domain else {
                kept = false;
                break;
            };
            kept &= *domains.entry(group.name.clone()).or_insert(domain.clone()) == domain;
        }
        if !kept {
            pod.node = None;
            pod.phase = PodPhase::Pending;
        }
    }
}

/// The groups from the root to the leaf of a role.
pub fn path_to<'a>(group: &'a Group, role: &str) -> Vec<&'a Group> {
    match &group.kind {
        GroupKind::Role(_) if group.name == role => vec![group],
        GroupKind::Role(_) => vec![],
        GroupKind::Group { children, .. } => {
            let below = children.iter().map(|child| path_to(child, role));
            match below.into_iter().find(|path| !path.is_empty()) {
                Some(path) => [vec![group], path].concat(),
                None => vec![],
            }
        }
    }
}

fn tree(random: &mut Random, families: &Families, sizes: &[u64]) -> Group {
    let mut names = BTreeSet::new();
    let leaves: Vec<Group> = sizes
        .iter()
        .enumerate()
        .map(|(leaf, &size)| {
            let count = if random.chance(50) { 0 } else { size as u32 };
            let min = if random.chance(55) {
                size
            } else {
                random.between(0, size)
            };
            let group = role(&format!("l{leaf}"), count, min as u32);
            rule(random, families, group)
        })
        .collect();
    if leaves.len() == 1 && random.chance(80) {
        let mut only = leaves.into_iter().next().expect("one leaf");
        // A minimum of none still means that somebody must run.
        if let GroupKind::Role(Role { min, .. }) = &mut only.kind
            && random.chance(90)
        {
            *min = (*min).max(1);
        }
        return only;
    }
    let total = |groups: usize| sizes[..groups].iter().sum::<u64>();
    let all = leaves.len();
    let mut leaves = leaves.into_iter();
    if all == 3 && random.chance(50) {
        let pair = leaves.by_ref().take(2).collect();
        let inner = inner(random, families, &mut names, pair, total(2));
        let children = [inner].into_iter().chain(leaves).collect();
        return self::inner(random, families, &mut names, children, total(3));
    }
    inner(random, families, &mut names, leaves.collect(), total(all))
}

fn inner(
    random: &mut Random,
    families: &Families,
    names: &mut BTreeSet<String>,
    children: Vec<Group>,
    members: u64,
) -> Group {
    let least = u64::from(random.chance(90));
    let min = if random.chance(50) {
        Minimum::Children(random.between(least, children.len() as u64) as u32)
    } else {
        Minimum::Members(random.between(least, members) as u32)
    };
    let name = format!("inner{}", names.len());
    names.insert(name.clone());
    let group = Group {
        name,
        kind: GroupKind::Group { min, children },
        ..Group::default()
    };
    rule(random, families, group)
}

/// Perhaps gives a group a required and a preferred level.
fn rule(random: &mut Random, families: &Families, mut group: Group) -> Group {
    if families.levels {
        let required = random.chance(40).then(|| level(random));
        let preferred = random.chance(30).then(|| level(random));
        group.topology = TopologyRule {
            required,
            preferred,
        };
    }
    group
}
