//! Pods that are alike share one template.
//!
//! Which labels a template keeps depends on which labels anybody's rules name, so there are two
//! passes: [`Templates::learn`] over all pods, then [`Templates::template`] for each.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};

use gangline::request::{CardRequest, NodeSelectorTerm, Template};

use super::template;
use crate::{api, problem::Problems};

/// All templates seen so far, and the label keys that rules name.
#[derive(Clone, Debug, Default)]
pub struct Templates {
    selected_keys: BTreeSet<Box<str>>,
    // Only ever asked for membership: its order never shows.
    known: HashSet<Arc<Template>>,
}

impl Templates {
    /// Takes note of the labels that the pod's rules name. True when some are new: templates made
    /// before lack them, so those pods must be read again.
    pub fn learn(&mut self, spec: &api::PodSpec) -> bool {
        let before = self.selected_keys.len();
        let affinity = spec.affinity.iter();
        let affinity = affinity.flat_map(|rules| [&rules.pod_affinity, &rules.pod_anti_affinity]);
        for rules in affinity.flatten() {
            let required = rules
                .required_during_scheduling_ignored_during_execution
                .iter();
            let preferred = rules
                .preferred_during_scheduling_ignored_during_execution
                .iter();
            for term in required.chain(preferred.map(|liked| &liked.pod_affinity_term)) {
                self.learn_selector(term.label_selector.as_ref());
                self.learn_keys(&term.match_label_keys);
                self.learn_keys(&term.mismatch_label_keys);
            }
        }
        for rule in &spec.topology_spread_constraints {
            self.learn_selector(rule.label_selector.as_ref());
            self.learn_keys(&rule.match_label_keys);
        }
        self.selected_keys.len() > before
    }

    /// The template of a pod, shared with all pods that are like it.
    pub fn template(&mut self, pod: &api::Pod, problems: &mut Problems) -> Arc<Template> {
        let template = template(pod, |key| self.selected_keys.contains(key), problems);
        self.share(template)
    }

    /// The template with the labels that rules name by now, for a pod that was read before all rules
    /// were known. `labels` are all of the pod's.
    pub fn relabel(&mut self, template: &Arc<Template>, labels: &api::Labels) -> Arc<Template> {
        let selected = || {
            let labels = labels.iter();
            labels.filter(|(key, _)| self.selected_keys.contains(*key))
        };
        // Keys are only ever added: as many labels are the same labels.
        if template.labels.len() == selected().count() {
            return Arc::clone(template);
        }
        let labels = selected().map(|(key, value)| (key.into(), (&**value).into()));
        let labels = labels.collect();
        self.share(Template {
            labels,
            ..Template::clone(template)
        })
    }

    /// The template with another request for cards.
    pub(crate) fn with_cards(&mut self, template: &Template, cards: CardRequest) -> Arc<Template> {
        self.share(Template {
            cards: Some(cards),
            ..template.clone()
        })
    }

    /// The template with what volumes add: nodes that will do in place of its own required ones, and
    /// amounts.
    pub(crate) fn with_volumes(
        &mut self,
        template: &Template,
        required: Option<Vec<NodeSelectorTerm>>,
        amounts: &BTreeMap<String, i64>,
    ) -> Arc<Template> {
        let mut template = template.clone();
        if required.is_some() {
            template.nodes.required = required;
        }
        for (name, amount) in amounts {
            *template.resources.entry(name.clone()).or_default() += amount;
        }
        self.share(template)
    }

    fn share(&mut self, template: Template) -> Arc<Template> {
        if let Some(known) = self.known.get(&template) {
            return Arc::clone(known);
        }
        let template = Arc::new(template);
        self.known.insert(Arc::clone(&template));
        template
    }

    /// How many distinct templates there are.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    fn learn_selector(&mut self, selector: Option<&api::LabelSelector>) {
        let Some(selector) = selector else {
            return;
        };
        for (key, _) in selector.match_labels.iter() {
            self.learn_key(key);
        }
        for expression in &selector.match_expressions {
            self.learn_key(&expression.key);
        }
    }

    fn learn_keys(&mut self, keys: &[Box<str>]) {
        for key in keys {
            self.learn_key(key);
        }
    }

    fn learn_key(&mut self, key: &str) {
        if !self.selected_keys.contains(key) {
            self.selected_keys.insert(key.into());
        }
    }
}
