//! The exhaustive judge: tries every node for every member, by rules written from their
//! description alone. Slow, simple, and shares nothing with the engine but the objects.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use gangline::{
    cluster::NodeSpec,
    gang::{GangSpec, Group, GroupKind, Minimum, PodPhase, PodSpec},
    request::{
        HostPort, LabelSelector, NODE_LEVEL, NamespaceScope, NodeRules, NodeSelectorTerm, NodeTest,
        Operator, PodTerm, Requirement, Taint, TaintEffect, Template, TolerationOperator,
    },
    units::Uid,
};

use super::world::{World, path_to};

/// Where pods that had no node were put since the world was made.
pub type Placements = BTreeMap<Uid, String>;

/// One gang's question in one state of a world.
pub struct Question<'w> {
    world: &'w World,
    gang: Option<&'w GangSpec>,
    /// Members that could be placed.
    pub waiting: Vec<&'w PodSpec>,
    /// Members that ended well.
    succeeded: Vec<&'w PodSpec>,
    /// Pods that use room now, with their node's index.
    present: Vec<(&'w PodSpec, usize)>,
    /// By waiting member and node: whether the node's own marks let the member in.
    welcome: Vec<Vec<bool>>,
    /// By waiting member: each term's level and, by body (see [`Self::body`]), who matches.
    repels: Vec<Vec<(&'w str, Vec<bool>)>>,
    /// By present pod: as `repels`.
    repelled: Vec<Vec<(&'w str, Vec<bool>)>>,
    /// By waiting member: levels of its affinity terms, and who matches all of them.
    attracts: Vec<(Vec<&'w str>, Vec<bool>)>,
    spreads: Vec<Vec<Spread<'w>>>,
    /// By node: free cards by kind, free amounts.
    free: Vec<Room>,
    /// By waiting member: required levels around it, as (group's name, level).
    levels: Vec<Vec<(&'w str, &'w str)>>,
    /// By group's name: the domain that running members fix.
    fixed: BTreeMap<&'w str, String>,
}

struct Spread<'w> {
    level: &'w str,
    surplus: u32,
    at_least: u32,
    matches: Vec<bool>,
    eligible: BTreeSet<&'w str>,
}

#[derive(Clone, Debug, Default)]
struct Room {
    cards: BTreeMap<String, i64>,
    amounts: BTreeMap<String, i64>,
    ports: Vec<HostPort>,
}

/// What an exhaustive look says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// By waiting member: its node's index.
    Feasible(Vec<Option<usize>>),
    Infeasible,
    /// The minimum is met already, so nothing must be placed.
    Satisfied,
}

impl<'w> Question<'w> {
    /// `gang` is the group's, or the single pod's, name.
    pub fn new(world: &'w World, name: &str, placed: &'w Placements) -> Self {
        let gang = world.gangs.iter().find(|gang| gang.key.name == name);
        let is_member = |pod: &&PodSpec| match (&pod.gang, gang) {
            (Some(key), Some(gang)) => *key == gang.key,
            (None, None) => pod.name == name,
            _ => false,
        };
        let on = |pod: &'w PodSpec| pod.node.as_ref().or_else(|| placed.get(&pod.uid));
        let ended = |pod: &PodSpec| matches!(pod.phase, PodPhase::Succeeded | PodPhase::Failed);
        let index = |name: &String| world.nodes.iter().position(|node| node.name == *name);
        let present: Vec<(&PodSpec, usize)> = world
            .pods
            .iter()
            .filter(|pod| !ended(pod))
            .filter_map(|pod| Some((pod, on(pod).and_then(index)?)))
            .collect();
        let members = || world.pods.iter().filter(is_member);
        let waiting: Vec<&PodSpec> = members()
            .filter(|pod| !ended(pod) && on(pod).is_none())
            .collect();
        let succeeded = members()
            .filter(|pod| pod.phase == PodPhase::Succeeded)
            .collect();
        let bodies: Vec<&PodSpec> = present
            .iter()
            .map(|&(pod, _)| pod)
            .chain(waiting.iter().copied())
            .collect();
        let repels = |pod: &'w PodSpec| -> Vec<(&'w str, Vec<bool>)> {
            let terms = pod.template.relations.anti_affinity.iter();
            terms
                .map(|term| {
                    let matches = |body: &&PodSpec| wants(world, &pod.template, term, body);
                    (
                        term.topology_key.as_str(),
                        bodies.iter().map(matches).collect(),
                    )
                })
                .collect()
        };
        let attracts = |pod: &&'w PodSpec| {
            let terms = &pod.template.relations.affinity;
            let matches = |body: &&PodSpec| {
                terms
                    .iter()
                    .all(|term| wants(world, &pod.template, term, body))
            };
            (
                terms
                    .iter()
                    .map(|term| term.topology_key.as_str())
                    .collect(),
                bodies.iter().map(matches).collect(),
            )
        };
        let mut question = Self {
            world,
            gang,
            welcome: waiting
                .iter()
                .map(|pod| {
                    world
                        .nodes
                        .iter()
                        .map(|node| welcomes(node, &pod.template))
                        .collect()
                })
                .collect(),
            repels: waiting.iter().map(|pod| repels(pod)).collect(),
            repelled: present.iter().map(|&(pod, _)| repels(pod)).collect(),
            attracts: waiting.iter().map(attracts).collect(),
            spreads: waiting
                .iter()
                .map(|pod| spreads(world, pod, &bodies))
                .collect(),
            free: world.nodes.iter().map(room).collect(),
            levels: Vec::new(),
            fixed: BTreeMap::new(),
            waiting,
            succeeded,
            present,
        };
        for &(pod, node) in &question.present {
            take(&mut question.free[node], &pod.template);
        }
        for node in &mut question.free {
            // Cards that are out of order are used up first by those who should not be there.
            for free in node.cards.values_mut() {
                *free = (*free).max(0);
            }
        }
        if let Some(gang) = gang {
            let around = |pod: &PodSpec| -> Vec<(&'w str, &'w str)> {
                let path = path_to(&gang.root, &pod.role);
                let required = path.into_iter().filter_map(|group| {
                    Some((group.name.as_str(), group.topology.required.as_deref()?))
                });
                required.collect()
            };
            question.levels = question.waiting.iter().map(|pod| around(pod)).collect();
            for &(pod, node) in &question.present {
                if pod.gang.as_ref() == Some(&gang.key) {
                    for (group, level) in around(pod) {
                        if let Some(domain) = world.nodes[node].labels.get(level) {
                            question.fixed.insert(group, domain.clone());
                        }
                    }
                }
            }
        }
        question
    }

    fn domain(&self, node: usize, level: &str) -> Option<&'w str> {
        let node = &self.world.nodes[node];
        if level == NODE_LEVEL {
            return Some(&node.name);
        }
        node.labels.get(level).map(String::as_str)
    }

    /// Index of a waiting member among all bodies: present pods come first.
    fn body(&self, member: usize) -> usize {
        self.present.len() + member
    }

    /// Everything that stands somewhere: body and node.
    fn standing<'a>(
        &'a self,
        plan: &'a [Option<usize>],
    ) -> impl Iterator<Item = (usize, usize)> + 'a {
        let present = self.present.iter().enumerate();
        let planned = plan.iter().enumerate();
        present
            .map(|(body, &(_, node))| (body, node))
            .chain(planned.filter_map(|(member, node)| Some((self.body(member), (*node)?))))
    }

    /// Whether a member may join a plan that holds so far; only rules that more members can break
    /// but never mend.
    fn admits(&self, plan: &[Option<usize>], member: usize, node: usize) -> Result<(), String> {
        let pod = self.waiting[member];
        let place = || format!("{} on {}", pod.name, self.world.nodes[node].name);
        if !self.welcome[member][node] {
            return Err(format!("{}: the node's labels, taints or cordon", place()));
        }
        let mut room = self.free[node].clone();
        for (other, &on) in plan.iter().enumerate() {
            if on == Some(node) {
                take(&mut room, &self.waiting[other].template);
            }
        }
        fits(&room, &pod.template).map_err(|short| format!("{}: {short}", place()))?;
        for &(group, level) in self.levels.get(member).into_iter().flatten() {
            let Some(domain) = self.domain(node, level) else {
                return Err(format!("{}: outside every {level}", place()));
            };
            let fixed = self.fixed.get(group).map(String::as_str);
            let others = plan.iter().enumerate().filter_map(|(other, on)| {
                let inside = self.levels[other].iter().any(|&(name, _)| name == group);
                self.domain((*on).filter(|_| inside)?, level)
            });
            if fixed.into_iter().chain(others).any(|other| other != domain) {
                return Err(format!("{}: {group} is in another {level}", place()));
            }
        }
        let together = |level: &str, other: usize| {
            let domain = self.domain(node, level);
            domain.is_some() && domain == self.domain(other, level)
        };
        let me = self.body(member);
        for (body, on) in self.standing(plan) {
            let mine = &self.repels[member];
            let theirs = match body.checked_sub(self.present.len()) {
                Some(other) => &self.repels[other],
                None => &self.repelled[body],
            };
            if mine
                .iter()
                .any(|(level, matches)| matches[body] && together(level, on))
                || theirs
                    .iter()
                    .any(|(level, matches)| matches[me] && together(level, on))
            {
                return Err(format!("{}: anti-affinity", place()));
            }
        }
        let mut needed = self.attracts[member].0.iter().copied();
        let mut spread = self.spreads[member].iter().map(|rule| rule.level);
        if needed.any(|level| self.domain(node, level).is_none())
            || spread.any(|level| self.domain(node, level).is_none())
        {
            return Err(format!("{}: lacks a level's label", place()));
        }
        Ok(())
    }

    /// Rules that only hold for a finished plan.
    fn finished(&self, plan: &[Option<usize>]) -> Result<(), String> {
        self.minima(plan)?;
        for (member, node) in plan.iter().enumerate() {
            let Some(node) = *node else { continue };
            for rule in &self.spreads[member] {
                let mut count: BTreeMap<&str, u32> = BTreeMap::new();
                for (body, on) in self.standing(plan) {
                    if let Some(domain) = self.domain(on, rule.level).filter(|_| rule.matches[body])
                    {
                        *count.entry(domain).or_default() += 1;
                    }
                }
                let of = |domain: &str| count.get(domain).copied().unwrap_or(0);
                let emptiest = if rule.eligible.len() < rule.at_least as usize {
                    0
                } else {
                    rule.eligible
                        .iter()
                        .map(|domain| of(domain))
                        .min()
                        .unwrap_or(0)
                };
                let here = self.domain(node, rule.level).map_or(0, of);
                if here > emptiest + rule.surplus {
                    let name = &self.waiting[member].name;
                    return Err(format!(
                        "{name}: {here} pods in its {}, {emptiest} in the emptiest",
                        rule.level
                    ));
                }
            }
        }
        if self.some_order_attracts(plan) {
            Ok(())
        } else {
            Err("no order of placing keeps every affinity rule".into())
        }
    }

    /// Whether some order of placing the members one by one satisfies each one's affinity at its
    /// turn: every set of placed members that can be reached is visited.
    fn some_order_attracts(&self, plan: &[Option<usize>]) -> bool {
        let placed: Vec<(usize, usize)> = plan
            .iter()
            .enumerate()
            .filter_map(|(member, node)| Some((member, (*node)?)))
            .collect();
        if placed
            .iter()
            .all(|&(member, _)| self.attracts[member].0.is_empty())
        {
            return true;
        }
        let all = (1_u32 << placed.len()) - 1;
        let mut seen = vec![false; 1 << placed.len()];
        let mut open = vec![0_u32];
        while let Some(set) = open.pop() {
            if set == all {
                return true;
            }
            for (index, &(member, node)) in placed.iter().enumerate() {
                let next = set | 1 << index;
                if next == set || seen[next as usize] {
                    continue;
                }
                let mut partial = vec![None; plan.len()];
                for (other, &(member, node)) in placed.iter().enumerate() {
                    if set & 1 << other != 0 {
                        partial[member] = Some(node);
                    }
                }
                if self.attracted(&partial, member, node) {
                    seen[next as usize] = true;
                    open.push(next);
                }
            }
        }
        false
    }

    /// Kubernetes' rule, with the pods that stand now.
    fn attracted(&self, plan: &[Option<usize>], member: usize, node: usize) -> bool {
        let (levels, matches) = &self.attracts[member];
        let near = |level: &&str| {
            let domain = self.domain(node, level);
            self.standing(plan)
                .any(|(body, on)| matches[body] && self.domain(on, level) == domain)
        };
        levels.iter().all(near)
            || (matches[self.body(member)] && !self.standing(plan).any(|(body, _)| matches[body]))
    }

    /// Whether each part of the group that is there at all is there in sufficient number.
    fn minima(&self, plan: &[Option<usize>]) -> Result<(), String> {
        if self.count_all(plan) == 0 {
            return Err("nobody runs".into());
        }
        let Some(gang) = self.gang else {
            return Ok(());
        };
        if !self.enough(&gang.root, plan) {
            return Err(format!("{}: below its minimum", gang.root.name));
        }
        self.no_part_below(&gang.root, plan)
    }

    fn no_part_below(&self, group: &Group, plan: &[Option<usize>]) -> Result<(), String> {
        if let GroupKind::Group { children, .. } = &group.kind {
            for child in children {
                if self.count(child, plan) > 0 && !self.enough(child, plan) {
                    return Err(format!("{}: there in part", child.name));
                }
                self.no_part_below(child, plan)?;
            }
        }
        Ok(())
    }

    fn enough(&self, group: &Group, plan: &[Option<usize>]) -> bool {
        match &group.kind {
            GroupKind::Role(role) => self.count(group, plan) >= role.min as usize,
            GroupKind::Group { min, children } => match min {
                // A role that says how many of it are needed is needed.
                Minimum::Members(least) => {
                    self.count(group, plan) >= *least as usize
                        && children.iter().all(|child| self.enough(child, plan))
                }
                Minimum::Children(least) => {
                    let there =
                        |child: &&Group| self.count(child, plan) > 0 && self.enough(child, plan);
                    children.iter().filter(there).count() >= *least as usize
                }
            },
        }
    }

    /// Members of a sub-group that run, ended well, or are planned.
    fn count(&self, group: &Group, plan: &[Option<usize>]) -> usize {
        let belongs = |pod: &PodSpec| !path_to(group, &pod.role).is_empty();
        self.counted(plan).filter(|pod| belongs(pod)).count()
    }

    fn count_all(&self, plan: &[Option<usize>]) -> usize {
        self.counted(plan).count()
    }

    fn counted<'a>(&'a self, plan: &'a [Option<usize>]) -> impl Iterator<Item = &'w PodSpec> + 'a {
        let key = self.gang.map(|gang| &gang.key);
        let running = self.present.iter().map(|&(pod, _)| pod);
        let running = running.filter(move |pod| key.is_some() && pod.gang.as_ref() == key);
        let planned = plan.iter().zip(&self.waiting);
        let planned = planned
            .filter(|(node, _)| node.is_some())
            .map(|(_, &pod)| pod);
        running.chain(self.succeeded.iter().copied()).chain(planned)
    }

    /// Tries everything.
    pub fn answer(&self) -> Answer {
        let mut plan = vec![None; self.waiting.len()];
        if self.counted(&plan).next().is_some() && self.minima(&plan).is_ok() {
            return Answer::Satisfied;
        }
        if self.try_from(&mut plan, 0) {
            Answer::Feasible(plan)
        } else {
            Answer::Infeasible
        }
    }

    fn try_from(&self, plan: &mut Vec<Option<usize>>, member: usize) -> bool {
        if member == plan.len() {
            return self.finished(plan).is_ok();
        }
        // Members that are alike go to nodes in ascending order: only names would differ.
        let first = match member
            .checked_sub(1)
            .filter(|&before| self.alike(before, member))
        {
            Some(before) => plan[before].unwrap_or(usize::MAX),
            None => 0,
        };
        for node in first..self.world.nodes.len() {
            if self.admits(plan, member, node).is_ok() {
                plan[member] = Some(node);
                if self.try_from(plan, member + 1) {
                    return true;
                }
                plan[member] = None;
            }
        }
        // Alike members that stay away come last.
        self.try_from(plan, member + 1)
    }

    fn alike(&self, one: usize, other: usize) -> bool {
        let (one, other) = (self.waiting[one], self.waiting[other]);
        one.role == other.role && Arc::ptr_eq(&one.template, &other.template)
    }

    /// Whether a plan keeps every rule.
    pub fn check(&self, plan: &[Option<usize>]) -> Result<(), String> {
        let mut so_far = vec![None; plan.len()];
        for (member, &node) in plan.iter().enumerate() {
            if let Some(node) = node {
                self.admits(&so_far, member, node)?;
                so_far[member] = Some(node);
            }
        }
        self.finished(plan)
    }
}

fn room(node: &NodeSpec) -> Room {
    let mut room = Room::default();
    for cards in &node.cards {
        let healthy = (0..cards.count).filter(|&card| !cards.unhealthy.contains(card));
        room.cards
            .insert(cards.kind.clone(), healthy.count() as i64);
    }
    room.amounts.insert("pods".into(), 110);
    for (name, &amount) in &node.resources {
        room.amounts.insert(name.clone(), amount);
    }
    room
}

fn take(room: &mut Room, template: &Template) {
    if let Some(cards) = &template.cards {
        *room.cards.entry(cards.kind.clone()).or_default() -= i64::from(cards.whole_cards());
    }
    for (name, amount) in &template.resources {
        *room.amounts.entry(name.clone()).or_default() -= amount;
    }
    *room.amounts.entry("pods".into()).or_default() -= 1;
    room.ports.extend(template.host_ports.iter().cloned());
}

fn fits(room: &Room, template: &Template) -> Result<(), String> {
    if let Some(cards) = &template.cards {
        let free = room.cards.get(&cards.kind).copied().unwrap_or(0);
        if free < i64::from(cards.whole_cards()) {
            return Err(format!(
                "{} of {} {}",
                free,
                cards.whole_cards(),
                cards.kind
            ));
        }
    }
    let mut amounts = template.resources.clone();
    amounts.insert("pods".into(), 1);
    for (name, amount) in amounts {
        let free = room.amounts.get(&name).copied().unwrap_or(0);
        if amount > 0 && free < amount {
            return Err(format!("{free} of {amount} {name}"));
        }
    }
    for port in &template.host_ports {
        let any = |address: &str| ["", "0.0.0.0", "::"].contains(&address);
        let clash = |held: &&HostPort| {
            (held.port, held.protocol) == (port.port, port.protocol)
                && (any(&held.address) || any(&port.address) || held.address == port.address)
        };
        if room.ports.iter().any(|held| clash(&held)) {
            return Err(format!("port {} is taken", port.port));
        }
    }
    Ok(())
}

fn welcomes(node: &NodeSpec, template: &Template) -> bool {
    tolerates(node, &template.nodes) && selects(node, &template.nodes)
}

/// A cordon is a taint to which a member can be tolerant, as in Kubernetes.
fn tolerates(node: &NodeSpec, rules: &NodeRules) -> bool {
    let cordon = node.unschedulable.then(|| Taint {
        key: "node.kubernetes.io/unschedulable".into(),
        value: String::new(),
        effect: TaintEffect::NoSchedule,
    });
    let hard = |taint: &&Taint| taint.effect != TaintEffect::PreferNoSchedule;
    node.taints.iter().chain(&cordon).filter(hard).all(|taint| {
        rules.tolerations.iter().any(|toleration| {
            let effect = toleration
                .effect
                .is_none_or(|effect| effect == taint.effect);
            let same_key = toleration.key == taint.key;
            effect
                && match toleration.operator {
                    TolerationOperator::Exists => same_key || toleration.key.is_empty(),
                    TolerationOperator::Equal => same_key && toleration.value == taint.value,
                }
        })
    })
}

fn selects(node: &NodeSpec, rules: &NodeRules) -> bool {
    let selector = rules.selector.iter();
    let mut selector = selector.map(|(key, value)| node.labels.get(key) == Some(value));
    let required = rules.required.as_ref();
    selector.all(|equal| equal)
        && required.is_none_or(|terms| terms.iter().any(|term| term_holds(node, term)))
}

fn term_holds(node: &NodeSpec, term: &NodeSelectorTerm) -> bool {
    let test = |test: &NodeTest| match test {
        NodeTest::Label(requirement) => holds(
            requirement,
            node.labels.get(&requirement.key).map(String::as_str),
        ),
        NodeTest::Name(requirement) => holds(requirement, Some(&node.name)),
    };
    !term.tests.is_empty() && term.tests.iter().all(test)
}

fn holds(requirement: &Requirement, value: Option<&str>) -> bool {
    let listed = requirement
        .values
        .iter()
        .any(|listed| Some(listed.as_str()) == value);
    let numbers = || {
        let bound: i64 = requirement.values.first()?.parse().ok()?;
        Some((value?.parse::<i64>().ok()?, bound))
    };
    match requirement.operator {
        Operator::In => listed,
        Operator::NotIn => !listed,
        Operator::Exists => value.is_some(),
        Operator::DoesNotExist => value.is_none(),
        Operator::Gt => numbers().is_some_and(|(value, bound)| value > bound),
        Operator::Lt => numbers().is_some_and(|(value, bound)| value < bound),
    }
}

fn labels_match(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let test = |test: &Requirement| holds(test, labels.get(&test.key).map(String::as_str));
    selector.requirements.iter().all(test)
}

/// Whether a term of an owner's template looks at a body and likes its labels.
fn wants(world: &World, owner: &Template, term: &PodTerm, body: &PodSpec) -> bool {
    let NamespaceScope { names, selector } = &term.namespaces;
    let own = names.is_empty() && selector.is_none() && owner.namespace == body.namespace;
    let no_labels = BTreeMap::new();
    let labels = world.namespaces.get(&body.namespace).unwrap_or(&no_labels);
    let scope = own
        || names.contains(&body.namespace)
        || selector
            .as_ref()
            .is_some_and(|selector| labels_match(selector, labels));
    scope && labels_match(&term.selector, &body.template.labels)
}

fn spreads<'w>(world: &'w World, pod: &'w PodSpec, bodies: &[&PodSpec]) -> Vec<Spread<'w>> {
    let rules = &pod.template.nodes;
    let required = || {
        pod.template
            .relations
            .spread
            .iter()
            .filter(|rule| rule.required)
    };
    let labelled = |node: &&NodeSpec| {
        required().all(|rule| {
            rule.topology_key == NODE_LEVEL || node.labels.contains_key(&rule.topology_key)
        })
    };
    required()
        .map(|rule| {
            let nodes = world.nodes.iter().filter(labelled);
            let eligible = nodes
                .filter(|node| !rule.honor_node_affinity || selects(node, rules))
                .filter(|node| !rule.honor_taints || tolerates(node, rules));
            let domain = |node: &'w NodeSpec| {
                let label = node.labels.get(&rule.topology_key).map(String::as_str);
                if rule.topology_key == NODE_LEVEL {
                    Some(node.name.as_str())
                } else {
                    label
                }
            };
            let matches = |body: &&PodSpec| {
                body.namespace == pod.template.namespace
                    && labels_match(&rule.selector, &body.template.labels)
            };
            Spread {
                level: &rule.topology_key,
                surplus: rule.max_skew,
                at_least: rule.min_domains,
                matches: bodies.iter().map(matches).collect(),
                eligible: eligible.filter_map(domain).collect(),
            }
        })
        .collect()
}
