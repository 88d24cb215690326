//! Templates into indexes, and terms about other pods counted as pods come and go.

use alloc::{collections::BTreeMap, string::String, sync::Arc, vec::Vec};

use smallvec::SmallVec;

use super::{
    Cluster, NodeIx, PODS_IX,
    class::ClassIx,
    domain::{KeyIx, NO_DOMAIN, Partition},
    relation::{Term, TermIdentity, TermIx, bump},
    shape::StaticFit,
    template::{self, Compiled, CompiledSpread, TemplateIx},
};
use crate::{
    device::CardAsk,
    request::{
        CardRequest, LabelSelector, NODE_LEVEL, NamespaceScope, Operator, PODS, PodTerm,
        Requirement, Template,
    },
    symbols::Symbol,
};

impl Cluster {
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

    pub(super) fn compile_projected(&mut self, source: &Arc<Template>) -> TemplateIx {
        if let Some(grouped) = with_share_group(source) {
            return self.compile_projected(&Arc::new(grouped));
        }
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

    pub(super) fn compile_exact(&mut self, source: &Arc<Template>) -> TemplateIx {
        match self.template_by_source.get(source) {
            Some(&ix) => ix,
            None => self.compile_new(source),
        }
    }

    fn card_ask(&mut self, cards: &CardRequest) -> CardAsk {
        let mut word = |text: &str| (!text.is_empty()).then(|| self.symbols.intern(text));
        let (group, exclusive) = (word(&cards.share_group), word(&cards.exclusive));
        CardAsk::new(self.kind(&cards.kind), cards.clone(), group, exclusive)
    }

    pub(super) fn compile_new(&mut self, source: &Arc<Template>) -> TemplateIx {
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
        let cards = source.cards.as_ref().map(|cards| self.card_ask(cards));
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

    pub(super) fn pod_term(&mut self, source: &Template, term: &PodTerm) -> TermIx {
        let mut namespaces = term.namespaces.clone();
        if namespaces.names.is_empty() && namespaces.selector.is_none() {
            namespaces.names.push(source.namespace.clone());
        }
        namespaces.names.sort_unstable();
        self.intern_term(&term.topology_key, &term.selector, namespaces)
    }

    pub(super) fn intern_term(
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
    pub(super) fn counts(&self, term: TermIx, source: &Template) -> bool {
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

    /// Labels of all described namespaces.
    pub(crate) fn namespaces(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        let described = |(name, labels): (&Symbol, &Arc<BTreeMap<String, String>>)| {
            (self.symbols.text(*name).into(), BTreeMap::clone(labels))
        };
        #[allow(clippy::disallowed_methods, reason = "collected into an ordered map")]
        self.namespaces.iter().map(described).collect()
    }
}

/// The label that members of a share group get, so that others find their node.
const SHARE_GROUP: &str = "gangline.io/share-group";

/// A template whose members share one card with their group: they must be on one node, for which
/// there is a rule already. Which card of it is the device layer's business. `None`: no group, or
/// the rule is there.
fn with_share_group(source: &Template) -> Option<Template> {
    let group = &source.cards.as_ref()?.share_group;
    if group.is_empty() || source.labels.get(SHARE_GROUP) == Some(group) {
        return None;
    }
    let mut grouped = source.clone();
    grouped.labels.insert(SHARE_GROUP.into(), group.clone());
    grouped.relations.affinity.push(PodTerm {
        topology_key: NODE_LEVEL.into(),
        selector: LabelSelector {
            requirements: [Requirement {
                key: SHARE_GROUP.into(),
                operator: Operator::In,
                values: [group.clone()].into(),
            }]
            .into(),
        },
        ..PodTerm::default()
    });
    Some(grouped)
}
