//! Reasons, from the state as it is: what fails where, and which member binds.

use alloc::{
    boxed::Box,
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};

use super::{Cause, DomainAttempt, Explainer, NodeCount, Reason, Shortfall};
use crate::{
    cluster::{
        NodeIx, Shortage,
        domain::{KeyIx, NO_DOMAIN, NODE_KEY},
        shape::{StaticFit, static_fit},
        template::TemplateIx,
    },
    engine::{Explanation, GangId, MemberState, Verdict, cycle::Members, store::PodIx},
    gang::{
        Minimum,
        life::{End, Phase},
    },
    place::{Outcome, Request, bound, check_node, tree::TreeKind},
};

impl Explainer {
    /// Everything but counterfactuals.
    pub(super) fn diagnose(&mut self, id: GangId) -> Option<Explanation> {
        let gang = self.engine.gangs.get(id.0)?;
        let waiting: Vec<PodIx> = gang
            .members
            .iter()
            .copied()
            .filter(|m| self.waits(*m))
            .collect();
        let mut explanation = Explanation {
            reason: None,
            members: Vec::new(),
            domains: Vec::new(),
            counterfactuals: Vec::new(),
        };
        if let Some(reason) = self.simple_reason(id) {
            for member in waiting {
                let own = self.own_problem(member).unwrap_or_else(|| reason.clone());
                explanation.members.push((self.pod_name(member), own));
            }
            explanation.reason = Some(reason);
            return Some(explanation);
        }
        if waiting.is_empty() {
            return Some(explanation);
        }
        let mut members = Members::default();
        self.engine.sort_members(id, &mut members);
        if members.batches.is_empty() {
            // Nobody who waits could be placed: each has a reason of its own.
            for member in waiting {
                let own = self.own_problem(member).unwrap_or(Reason::NotTried);
                explanation.members.push((self.pod_name(member), own));
            }
            return Some(explanation);
        }
        let surplus = self.engine.gangs.get(id.0)?.life.phase() == Phase::Running;
        if !surplus && self.engine.would_fit(id, &members) {
            // It has not been tried since this became true, or something holds it back.
            let reason = self.held_back(id).unwrap_or(Reason::NotTried);
            for member in waiting {
                let own = self.own_problem(member).unwrap_or_else(|| reason.clone());
                explanation.members.push((self.pod_name(member), own));
            }
            explanation.reason = Some(reason);
            return Some(explanation);
        }
        let reason = self.no_room(id, &members, &mut explanation.domains);
        self.member_reasons(id, &mut members, &reason, surplus, &mut explanation.members);
        for member in waiting {
            if let Some(own) = self.own_problem(member) {
                explanation.members.push((self.pod_name(member), own));
            }
        }
        let undecided = self.engine.gangs.get(id.0)?.verdict == Verdict::Undecided;
        explanation.reason = if surplus {
            None
        } else if undecided {
            Some(Reason::Undecided {
                steps: self.engine.config.search_steps,
            })
        } else {
            Some(reason)
        };
        Some(explanation)
    }

    fn waits(&self, member: PodIx) -> bool {
        let state = self
            .engine
            .pods
            .get(member.0)
            .map(crate::engine::store::Pod::state);
        matches!(state, Some(MemberState::Waiting | MemberState::Gated))
    }

    fn pod_name(&self, member: PodIx) -> String {
        self.engine
            .pods
            .get(member.0)
            .map_or_else(String::new, |pod| pod.spec.name.clone())
    }

    /// What keeps a member from being placed whatever room there is.
    fn own_problem(&self, member: PodIx) -> Option<Reason> {
        let pod = self.engine.pods.get(member.0)?;
        if let Some(problem) = &pod.spec.problem {
            return Some(Reason::Invalid {
                problem: problem.clone(),
            });
        }
        if pod.leaf.is_none() {
            return Some(Reason::Invalid {
                problem: crate::gang::Problem {
                    code: "UnknownRole".into(),
                    field: "role".into(),
                    message: format!("{:?} is no role of its group", pod.spec.role),
                },
            });
        }
        if pod.spec.gated {
            return Some(Reason::WaitingForMembers {
                present: 0,
                needed: 1,
                gated: 1,
            });
        }
        None
    }

    /// A reason that needs no look at nodes.
    fn simple_reason(&self, id: GangId) -> Option<Reason> {
        let gang = self.engine.gangs.get(id.0)?;
        match (&gang.key, &gang.spec) {
            (Some(key), None) => {
                let elsewhere = self.engine.gangs.iter().filter_map(|(_, other)| {
                    let other_key = other.key.as_deref().filter(|_| other.spec.is_some())?;
                    let same = other_key.name == key.name && other_key.namespace != key.namespace;
                    same.then_some(&other_key.namespace)
                });
                return Some(Reason::GroupNotFound {
                    group: format!("{}/{}", key.namespace, key.name),
                    elsewhere: elsewhere.min().cloned(),
                });
            }
            (_, Some(spec)) => {
                if let Some(problem) = &spec.problem {
                    return Some(Reason::Invalid {
                        problem: problem.clone(),
                    });
                }
            }
            (None, None) => {}
        }
        if gang.life.phase() == Phase::Ended(End::Failed) {
            let after = gang.spec.as_ref().and_then(|spec| spec.schedule_timeout);
            return Some(Reason::TimedOut {
                after: after.unwrap_or_default(),
            });
        }
        let (mut present, mut gated) = (0, 0);
        for tally in &gang.tally {
            present += tally.waiting + tally.settled();
            gated += tally.gated;
        }
        let census = gang.census();
        if gang.life.phase() == Phase::Gathering || !(census.is_ready || census.has_bound) {
            let own = gang
                .members
                .iter()
                .find_map(|&member| self.own_problem(member));
            if let (true, Some(problem)) = (gang.single(), own) {
                return Some(problem);
            }
            let needed = gang.tree.fewest(0).max(1);
            return Some(Reason::WaitingForMembers {
                present,
                needed,
                gated,
            });
        }
        let now = self.engine.now;
        gang.members
            .iter()
            .filter_map(|member| self.engine.pods.get(member.0))
            .find_map(|pod| {
                let failures = pod
                    .failures
                    .as_ref()
                    .filter(|failures| failures.not_before > now)?;
                Some(Reason::BindFailed {
                    message: failures.message.clone(),
                    attempts: failures.attempts,
                })
            })
    }

    /// Why a gang that fits was not placed.
    fn held_back(&self, id: GangId) -> Option<Reason> {
        let reservation = self
            .engine
            .reservation
            .as_ref()
            .filter(|it| it.holder != id)?;
        let holder = self.engine.gang(reservation.holder)?;
        Some(Reason::WouldDelayReservation {
            holder: format!("{}/{}", holder.namespace, holder.name),
            starts: reservation.starts,
        })
    }

    /// The gang's reason when no placement exists.
    fn no_room(
        &mut self,
        id: GangId,
        members: &Members,
        domains: &mut Vec<DomainAttempt>,
    ) -> Reason {
        let Some(tree) = self.engine.gangs.get(id.0).map(|gang| gang.tree.clone()) else {
            return Reason::NotTried;
        };
        let unknown = tree
            .nodes
            .iter()
            .filter_map(|node| node.required)
            .find(|&key| {
                let partition = self.engine.cluster.partition(key);
                key != NODE_KEY
                    && partition
                        .domains
                        .iter()
                        .all(|domain| domain.nodes.is_empty())
            });
        if let Some(key) = unknown {
            return Reason::UnknownLevel {
                level: self.engine.cluster.key_name(key).to_string(),
            };
        }
        let have: u32 = members.have.iter().sum();
        let waiting: u32 = members.batches.iter().map(|batch| batch.count).sum();
        let fewest = tree.fewest(0).saturating_sub(have).clamp(1, waiting.max(1));
        // The level that binds: the outermost required one.
        let level = tree.nodes.iter().find_map(|node| node.required);
        if let Some(key) = level {
            *domains = self.attempts(id, members, key, fewest);
        }
        let binding = self.binding_batch(id, members);
        let causes = self.causes(id, members, binding);
        let wanted = self.needed_of(id, members, binding, fewest);
        let shortfall = self.shortfall(id, members, binding, wanted, fewest);
        Reason::DoesNotFit {
            members: fewest,
            nodes: self.engine.cluster.ordered().len() as u32,
            shortfall,
            causes,
            level: level.map(|key| self.engine.cluster.key_name(key).to_string()),
            best_domain: domains.first().cloned(),
        }
    }

    fn with_request<T>(
        &mut self,
        id: GangId,
        members: &Members,
        started: bool,
        ask: impl FnOnce(&mut Self, &Request<'_>) -> T,
    ) -> Option<T> {
        let tree = self.engine.gangs.get(id.0)?.tree.clone();
        let (rule, _) = self.engine.manner(id);
        let request = Request {
            tree: &tree,
            batches: &members.batches,
            have: &members.have,
            pinned: &members.pinned,
            rule,
            started,
            forbidden: &[],
            budget: self.engine.config.search_steps,
        };
        Some(ask(self, &request))
    }

    /// How many members of each batch fit, each batch counted alone.
    fn capacities(&mut self, id: GangId, members: &Members) -> Vec<u32> {
        self.with_request(id, members, false, |explainer, request| {
            let engine = &mut explainer.engine;
            (0..request.batches.len() as u32)
                .map(|batch| {
                    engine.search.prepare_for_bounds(request);
                    bound::capacity(&mut engine.search, &mut engine.cluster, request, batch)
                })
                .collect()
        })
        .unwrap_or_default()
    }

    /// The batch with the smallest share of its members that fit alone; the first among equals.
    fn binding_batch(&mut self, id: GangId, members: &Members) -> usize {
        let capacities = self.capacities(id, members);
        let share = |ix: usize| {
            let count = u64::from(members.batches[ix].count.max(1));
            u64::from(capacities[ix].min(members.batches[ix].count)) * 1_000_000 / count
        };
        (0..capacities.len())
            .min_by_key(|&ix| share(ix))
            .unwrap_or(0)
    }

    /// How many members of a batch must start.
    fn needed_of(&self, id: GangId, members: &Members, batch: usize, fewest: u32) -> u32 {
        let count = members.batches[batch].count;
        if members.batches.len() == 1 {
            return fewest.min(count);
        }
        let leaf = members.batches[batch].leaf;
        let alone = members
            .batches
            .iter()
            .filter(|batch| batch.leaf == leaf)
            .count()
            == 1;
        let min = self.engine.gangs.get(id.0).map_or(0, |gang| {
            match gang.tree.nodes[leaf as usize].kind {
                TreeKind::Leaf { min, .. } => min,
                TreeKind::Inner(_) => 0,
            }
        });
        let missing = min.saturating_sub(members.have[leaf as usize]);
        if alone && missing > 0 {
            missing.min(count)
        } else {
            count.min(fewest)
        }
    }

    /// The resource of a batch that runs out first, if one does; otherwise how many members fit.
    fn shortfall(
        &mut self,
        id: GangId,
        members: &Members,
        batch: usize,
        wanted: u32,
        fewest: u32,
    ) -> Option<Shortfall> {
        let template = members.batches[batch].template;
        let usable: Vec<NodeIx> = self
            .engine
            .cluster
            .ordered()
            .iter()
            .copied()
            .filter(|&node| self.static_cause(template, node).is_none())
            .collect();
        if usable.is_empty() {
            // It is not room that is missing: the causes say why no node may be used.
            return None;
        }
        let cluster = &self.engine.cluster;
        let compiled = cluster.template(template);
        let mut tightest: Option<(u64, Shortfall)> = None;
        let mut note = |fits: u64, shortfall: Shortfall| {
            if fits < u64::from(wanted) && tightest.as_ref().is_none_or(|(best, _)| fits < *best) {
                tightest = Some((fits, shortfall));
            }
        };
        if let Some(ask) = compiled.cards {
            let fits: u64 = usable
                .iter()
                .map(|&n| u64::from(cluster.node(n).cards.capacity(ask)))
                .sum();
            let scattered: u64 = usable
                .iter()
                .map(|&n| u64::from(cluster.node(n).cards.free(ask.kind)))
                .sum();
            note(
                fits,
                Shortfall {
                    resource: cluster.kind_name(ask.kind).to_string(),
                    needed: i64::from(wanted) * i64::from(ask.count),
                    free: (fits * u64::from(ask.count)) as i64,
                    scattered: scattered as i64,
                },
            );
        }
        for &(resource, amount) in &compiled.amounts {
            let free = |node: NodeIx| {
                cluster
                    .free_of(node)
                    .get(usize::from(resource))
                    .copied()
                    .unwrap_or(0)
                    .max(0)
            };
            let fits: u64 = usable.iter().fold(0_u64, |sum, &node| {
                sum.saturating_add((free(node) / amount) as u64)
            });
            let scattered = usable
                .iter()
                .fold(0_i64, |sum, &node| sum.saturating_add(free(node)));
            note(
                fits,
                Shortfall {
                    resource: cluster.resource_name(resource).to_string(),
                    needed: i64::from(wanted).saturating_mul(amount),
                    free: i64::try_from(fits)
                        .unwrap_or(i64::MAX)
                        .saturating_mul(amount),
                    scattered,
                },
            );
        }
        if let Some((_, shortfall)) = tightest {
            return Some(shortfall);
        }
        let placed = self.partial(id, members).len() as i64;
        (placed < i64::from(fewest)).then(|| Shortfall {
            resource: "members".into(),
            needed: i64::from(fewest),
            free: placed,
            scattered: placed,
        })
    }

    /// As many members as fit when the minima do not bind: (batch, node) in order of placing.
    fn partial(&mut self, id: GangId, members: &Members) -> Vec<(u32, NodeIx)> {
        let placed = self.with_request(id, members, true, |explainer, request| {
            let engine = &mut explainer.engine;
            let mark = engine.cluster.begin();
            let outcome = engine.search.run(&mut engine.cluster, request);
            engine.cluster.undo_to(mark);
            engine.cluster.commit();
            let found = outcome == Outcome::Found;
            let placed = if found {
                engine.search.placed.as_slice()
            } else {
                &[]
            };
            placed
                .iter()
                .map(|placed| (placed.batch, placed.node))
                .collect()
        });
        placed.unwrap_or_default()
    }

    /// The first static cause that keeps a template off a node.
    fn static_cause(&self, template: TemplateIx, node: NodeIx) -> Option<(Cause, String)> {
        let cluster = &self.engine.cluster;
        let compiled = cluster.template(template);
        let spec = cluster.node(node).spec.as_deref()?;
        let name = cluster.node_name(node);
        match static_fit(
            compiled,
            spec.unschedulable,
            &spec.taints,
            name,
            &spec.labels,
        ) {
            StaticFit::Fits { .. } => None,
            StaticFit::Fails(Cause::Taint) => {
                let tolerations = &compiled.source.nodes.tolerations;
                let taint = spec.taints.iter().find(|taint| {
                    taint.effect != crate::request::TaintEffect::PreferNoSchedule
                        && !tolerations
                            .iter()
                            .any(|toleration| toleration.covers(taint))
                });
                Some((
                    Cause::Taint,
                    taint.map_or_else(String::new, |taint| taint.key.clone()),
                ))
            }
            StaticFit::Fails(cause) => Some((cause, String::new())),
        }
    }

    /// Why one member of a batch cannot go to a node by itself, or `None` if it can.
    fn cause(
        &mut self,
        id: GangId,
        members: &Members,
        batch: usize,
        node: NodeIx,
    ) -> Option<(Cause, String)> {
        let wanted = members.batches[batch];
        if let Some(cause) = self.static_cause(wanted.template, node) {
            return Some(cause);
        }
        let gang = self.engine.gangs.get(id.0)?;
        let cluster = &self.engine.cluster;
        for ix in gang.tree.upward(wanted.leaf) {
            let Some(key) = gang.tree.nodes[ix as usize].required else {
                continue;
            };
            let domain = cluster.domain_of(key, node);
            if domain == NO_DOMAIN {
                return Some((Cause::NoLevelLabel, cluster.key_name(key).to_string()));
            }
            let pinned = members.pinned[ix as usize];
            if pinned != NO_DOMAIN && pinned != domain {
                return Some((Cause::OtherDomain, String::new()));
            }
        }
        match cluster.shortage(node, wanted.template) {
            Some(Shortage::Cards(kind)) => {
                return Some((Cause::Cards, cluster.kind_name(kind).to_string()));
            }
            Some(Shortage::Resource(crate::cluster::PODS_IX)) => {
                return Some((Cause::PodSlots, String::new()));
            }
            Some(Shortage::Resource(resource)) => {
                return Some((Cause::Resource, cluster.resource_name(resource).to_string()));
            }
            None => {}
        }
        if let Err(cause) = check_node(cluster, wanted.template, node, true) {
            return Some((cause, String::new()));
        }
        let allowed = self
            .engine
            .search
            .spread_allows(cluster, wanted.template, node);
        (!allowed).then_some((Cause::Spread, String::new()))
    }

    fn causes(&mut self, id: GangId, members: &Members, batch: usize) -> Vec<NodeCount> {
        let mut counts: Vec<NodeCount> = Vec::new();
        for index in 0..self.engine.cluster.ordered().len() {
            let node = self.engine.cluster.ordered()[index];
            let Some((cause, resource)) = self.cause(id, members, batch, node) else {
                continue;
            };
            let same = |count: &&mut NodeCount| count.cause == cause && count.resource == resource;
            match counts.iter_mut().find(same) {
                Some(count) => count.nodes += 1,
                None => counts.push(NodeCount {
                    cause,
                    resource,
                    nodes: 1,
                }),
            }
        }
        counts
            .sort_by(|a, b| (b.nodes, a.cause, &a.resource).cmp(&(a.nodes, b.cause, &b.resource)));
        counts
    }

    /// How each domain of a level fares, best first.
    fn attempts(
        &mut self,
        id: GangId,
        members: &Members,
        key: KeyIx,
        fewest: u32,
    ) -> Vec<DomainAttempt> {
        let cluster = &self.engine.cluster;
        let domains = if key == NODE_KEY {
            cluster.node_count()
        } else {
            cluster.partition(key).domains.len()
        };
        let kind = members
            .batches
            .iter()
            .find_map(|b| cluster.template(b.template).cards);
        let kind = kind.map(|ask| ask.kind);
        let holder = self.engine.gangs.get(id.0).and_then(|gang| {
            gang.tree
                .nodes
                .iter()
                .position(|node| node.required == Some(key))
        });
        let Some(holder) = holder else {
            return Vec::new();
        };
        let attempts = self.with_request(id, members, false, |explainer, request| {
            let engine = &mut explainer.engine;
            let mut attempts = Vec::new();
            for domain in 0..domains as u32 {
                engine.search.prepare_for_bounds(request);
                engine.search.fix_domain(holder as u32, domain);
                let mut fits = 0_u32;
                for (batch, wanted) in request.batches.iter().enumerate() {
                    if request.tree.subtree(holder as u32).contains(&wanted.leaf) {
                        let capacity = bound::capacity(
                            &mut engine.search,
                            &mut engine.cluster,
                            request,
                            batch as u32,
                        );
                        fits = fits.saturating_add(capacity.min(wanted.count));
                    }
                }
                let free_cards = kind.map_or(0, |kind| match key {
                    NODE_KEY => engine.cluster.node(NodeIx(domain)).cards.free(kind),
                    _ => engine.cluster.partition(key).domains[domain as usize].free_cards(kind),
                });
                let present = key != NODE_KEY || engine.cluster.node(NodeIx(domain)).spec.is_some();
                if present {
                    attempts.push(DomainAttempt {
                        level: engine.cluster.key_name(key).to_string(),
                        domain: engine.cluster.domain_name(key, domain).to_string(),
                        fits,
                        needed: fewest,
                        free_cards,
                    });
                }
            }
            attempts
        });
        let mut attempts = attempts.unwrap_or_default();
        attempts.sort_by(|a, b| {
            (b.fits, b.free_cards)
                .cmp(&(a.fits, a.free_cards))
                .then_with(|| crate::cluster::natural(&a.domain, &b.domain))
        });
        attempts
    }

    /// A reason for each waiting member: its own if it has no node by itself, else the sibling's.
    fn member_reasons(
        &mut self,
        id: GangId,
        members: &mut Members,
        gang_reason: &Reason,
        surplus: bool,
        into: &mut Vec<(String, Reason)>,
    ) {
        let mut placed_on: Vec<Vec<NodeIx>> = vec![Vec::new(); members.batches.len()];
        for (batch, node) in self.partial(id, members) {
            placed_on[batch as usize].push(node);
        }
        // By batch: a node that takes one member by itself, or why none does.
        let mut own: Vec<Result<NodeIx, Box<Reason>>> = Vec::new();
        for batch in 0..members.batches.len() {
            own.push(self.alone(id, members, batch));
        }
        members.start_plan();
        let mut rows: Vec<(u32, String, Option<NodeIx>)> = Vec::new();
        for (batch, nodes) in placed_on.iter().enumerate() {
            for ordinal in 0..members.batches[batch].count as usize {
                let Some(member) = members.next_of(batch as u32) else {
                    break;
                };
                rows.push((
                    batch as u32,
                    self.pod_name(member),
                    nodes.get(ordinal).copied(),
                ));
            }
        }
        let left_out = rows.iter().find(|(_, _, node)| node.is_none());
        for (batch, name, node) in &rows {
            let binds = self.binding_sibling(id, members, *batch, &own);
            let binds = rows.iter().find(|(other, ..)| Some(*other) == binds);
            let reason = match (&own[*batch as usize], binds.or(left_out)) {
                (Err(reason), _) => (**reason).clone(),
                (Ok(alone), Some((other, sibling, _)))
                    if sibling != name && (node.is_some() || binds.is_some()) =>
                {
                    let because = own[*other as usize].as_ref().err().cloned();
                    Reason::WaitsForSibling {
                        fits: self
                            .engine
                            .cluster
                            .node_name(node.unwrap_or(*alone))
                            .to_string(),
                        sibling: sibling.clone(),
                        because: because.unwrap_or_else(|| Box::new(gang_reason.clone())),
                    }
                }
                _ => gang_reason.clone(),
            };
            let reason = if surplus {
                Reason::Surplus {
                    because: Box::new(reason),
                }
            } else {
                reason
            };
            into.push((name.clone(), reason));
        }
    }

    /// The batch that keeps another from starting: it has no node for even one member, and is in the
    /// smallest sub-group that must start together with the other one.
    fn binding_sibling(
        &self,
        id: GangId,
        members: &Members,
        batch: u32,
        own: &[Result<NodeIx, Box<Reason>>],
    ) -> Option<u32> {
        let tree = &self.engine.gangs.get(id.0)?.tree;
        for ix in tree.upward(members.batches[batch as usize].leaf) {
            let inside = |other: &usize| tree.subtree(ix).contains(&members.batches[*other].leaf);
            let binds = (0..own.len()).find(|other| own[*other].is_err() && inside(other));
            if let Some(other) = binds {
                return Some(other as u32);
            }
            // Above here nobody needs this sub-group, or enough runs without it.
            let parent = tree.nodes[ix as usize].parent?;
            let optional = match tree.nodes[parent as usize].kind {
                TreeKind::Inner(Minimum::Children(least)) => {
                    (least as usize) < tree.children(parent).count()
                }
                _ => false,
            };
            let have = |leaf: u32| members.have[leaf as usize];
            if optional || tree.standing(parent, &have).met {
                return None;
            }
        }
        None
    }

    /// A node that takes one member of a batch by itself, or why none does.
    fn alone(
        &mut self,
        id: GangId,
        members: &Members,
        batch: usize,
    ) -> Result<NodeIx, Box<Reason>> {
        let nodes = self.engine.cluster.ordered().len();
        for index in 0..nodes {
            let node = self.engine.cluster.ordered()[index];
            if self.cause(id, members, batch, node).is_none() {
                return Ok(node);
            }
        }
        let causes = self.causes(id, members, batch);
        let shortfall = self.largest(members.batches[batch].template);
        Err(Box::new(Reason::DoesNotFit {
            members: 1,
            nodes: nodes as u32,
            shortfall,
            causes,
            level: None,
            best_domain: None,
        }))
    }

    /// For a member that fits nowhere: what it needs and the most that one node has free.
    fn largest(&self, template: TemplateIx) -> Option<Shortfall> {
        let cluster = &self.engine.cluster;
        let compiled = cluster.template(template);
        let usable: Vec<NodeIx> = cluster
            .ordered()
            .iter()
            .copied()
            .filter(|&node| self.static_cause(template, node).is_none())
            .collect();
        if usable.is_empty() {
            return None;
        }
        if let Some(ask) = compiled.cards {
            let free = |&node: &NodeIx| i64::from(cluster.node(node).cards.free(ask.kind));
            let most = usable.iter().map(free).max().unwrap_or(0);
            if most < i64::from(ask.count) {
                return Some(Shortfall {
                    resource: cluster.kind_name(ask.kind).to_string(),
                    needed: ask.count.into(),
                    free: most,
                    scattered: usable.iter().map(free).sum(),
                });
            }
        }
        compiled.amounts.iter().find_map(|&(resource, amount)| {
            let free = |&node: &NodeIx| {
                cluster
                    .free_of(node)
                    .get(usize::from(resource))
                    .copied()
                    .unwrap_or(0)
                    .max(0)
            };
            let most = usable.iter().map(free).max().unwrap_or(0);
            (most < amount).then(|| Shortfall {
                resource: cluster.resource_name(resource).to_string(),
                needed: amount,
                free: most,
                scattered: usable.iter().map(free).fold(0, i64::saturating_add),
            })
        })
    }
}
