//! What can be said of cards only when nodes, pods and groups are all known.
//!
//! Which gang a pod is of (for cards that serve one gang only), and which nodes share their cards:
//! one on which a share runs does, whatever it says. Members and nodes enter and are completed; what a
//! pod asks for and cannot get from any of them is complained about.

use std::collections::{BTreeMap, BTreeSet};

use gangline::{
    bits::CardSet,
    cluster::{NodeCards, NodeSpec, spec::CardMode},
    device::{
        mig::Profile,
        model_of,
        names::{CardPart, label::Product, meaning},
    },
    gang::PodPhase,
    request::{CardRequest, CardWant, SliceChoice},
};

use super::{ANNOTATIONS, ask::MIG};
use crate::{
    annotations::{EXCLUSIVE, MODELS, nearest},
    intake::Member,
    load::{Complaint, Severity},
    member::pod_complaint,
    problem::{FieldPath, problem},
    rules::Templates,
};

/// Stands for the gang until it is known. No gang is called like this: their words have a `/`.
pub(super) const WITH_ITS_GANG: &str = "gang";

const SPEC: FieldPath<'static> = FieldPath::root("spec");

/// Names the gangs whose cards serve nobody else.
pub(crate) fn exclude_others(
    members: &mut [Member],
    templates: &mut Templates,
    complaints: &mut Vec<Complaint>,
) {
    for member in members {
        let spec = &mut member.spec;
        let Some(cards) = &spec.template.cards else {
            continue;
        };
        if cards.exclusive != WITH_ITS_GANG {
            continue;
        }
        let exclusive = match &spec.gang {
            Some(gang) => format!("{} {}/{}", gang.source, gang.namespace, gang.name),
            None => format!("pod {}/{}", spec.namespace, spec.name),
        };
        if spec.gang.is_none() && !cards.share_group.is_empty() {
            // Its card would serve this pod only, and the others of its share group need that card.
            let problem = problem(
                "InvalidCards",
                ANNOTATIONS.key(EXCLUSIVE),
                "true, with a share-group, on a pod without a gang; accepted: share-group without it, \
                 or pods of one gang",
            );
            complaints.push(pod_complaint(&member.source, spec, &problem));
            if spec.problem.is_none() && spec.node.is_none() {
                spec.problem = Some(problem);
            }
        }
        let cards = CardRequest {
            exclusive,
            ..cards.clone()
        };
        spec.template = templates.with_cards(&spec.template, cards);
    }
}

/// Complains about devices, models of cards and MIG profiles that a waiting pod asks for and that no node
/// has, each once. Without any node there is nothing to compare with.
pub(crate) fn complain_of_absent(
    nodes: &BTreeMap<String, NodeSpec>,
    members: &[Member],
    complaints: &mut Vec<Complaint>,
) {
    if nodes.is_empty() {
        return;
    }
    complain_of_absent_resources(nodes, members, complaints);
    let mut models = BTreeSet::new();
    // Profiles of instances that exist or can be made.
    let mut profiles = BTreeSet::new();
    for cards in nodes.values().flat_map(|node| &node.cards) {
        models.insert(cards.model.as_str());
        let mut there: BTreeSet<&str> = cards.slices.keys().map(String::as_str).collect();
        for mode in &cards.modes {
            if let CardMode::MigStatic(instances) = mode {
                there.extend(instances.iter().map(|instance| instance.profile.as_str()));
            }
        }
        let can_make = cards.modes.contains(&CardMode::MigDynamic);
        let Some(model) = model_of(cards) else {
            profiles.extend(there);
            continue;
        };
        models.insert(model.name);
        let known = model.mig.into_iter().flat_map(|geometry| {
            let known = geometry.indices();
            known.filter_map(|profile| geometry.get(profile))
        });
        let known =
            known.filter(|profile| can_make || profile.names().any(|name| there.contains(name)));
        for name in known.flat_map(Profile::names) {
            profiles.insert(name);
        }
        profiles.extend(there);
    }
    models.remove("");
    let mut named = BTreeSet::new();
    for member in members.iter().filter(|member| waits(member)) {
        let Some(cards) = &member.spec.template.cards else {
            continue;
        };
        let slices = match &cards.want {
            CardWant::Slices { slices, .. } => slices.as_slice(),
            _ => &[],
        };
        let asked_profiles = slices.iter().filter_map(|slice| match &slice.slice {
            SliceChoice::Profile(name) => Some((name, &profiles, SPEC, "MIG instances")),
            SliceChoice::AtLeast { .. } => None,
        });
        let asked_models = cards.models.iter();
        let asked = asked_models.map(|name| (name, &models, ANNOTATIONS.key(MODELS), "cards"));
        for (name, there, field, what) in asked.chain(asked_profiles) {
            let is_there = there.iter().any(|known| known.eq_ignore_ascii_case(name));
            if is_there || !named.insert((name.as_str(), what)) {
                continue;
            }
            // Profiles are all alike; which one is meant nobody can tell.
            let known: Vec<&str> = there.iter().copied().collect();
            let near = nearest(name, &known).filter(|_| what == "cards");
            let what = format!("{what} of {name:?}");
            complaints.push(absent(member, &field, &what, near, &known));
        }
    }
}

/// Whether a pod waits for a place and nothing worse is wrong with it.
fn waits(member: &Member) -> bool {
    member.spec.node.is_none() && member.spec.problem.is_none()
}

/// Complains about devices that a waiting pod asks for and that no node lists, each once: a name with a
/// typo is a resource of its own.
fn complain_of_absent_resources(
    nodes: &BTreeMap<String, NodeSpec>,
    members: &[Member],
    complaints: &mut Vec<Complaint>,
) {
    let is_device = |name: &&str| name.contains('/');
    let listed = nodes.values().flat_map(|node| node.resources.keys());
    let listed = listed.map(String::as_str).filter(is_device);
    let kinds = nodes.values().flat_map(|node| &node.cards);
    let there: BTreeSet<&str> = listed.chain(kinds.map(|cards| &*cards.kind)).collect();
    let known: Vec<&str> = there.iter().copied().collect();
    let mut named = BTreeSet::new();
    for member in members.iter().filter(|member| waits(member)) {
        let template = &member.spec.template;
        let asked = template.resources.iter().filter(|(_, amount)| **amount > 0);
        let asked = asked.map(|(name, _)| name.as_str()).filter(is_device);
        // What is wrong with a mixture of cards is said elsewhere.
        let is_named_elsewhere = |name: &&str| meaning(name).is_some() || name.starts_with(MIG);
        let asked = asked.filter(|name| !is_named_elsewhere(name));
        let cards = template.cards.as_ref();
        let whole = cards.filter(|cards| matches!(cards.want, CardWant::Whole(_)));
        for name in asked.chain(whole.map(|cards| &*cards.kind)) {
            if there.contains(name) || !named.insert(name) {
                continue;
            }
            // Another vendor's device is no slip of the pen.
            let vendor = |name: &str| name.split_once('/').map(|(vendor, _)| vendor.to_owned());
            let parts = CardPart::ALL.map(CardPart::resource);
            let mut alike: Vec<&str> = known.iter().copied().chain(parts).collect();
            alike.retain(|known| vendor(known) == vendor(name));
            // Nor is the name of a device that there is elsewhere.
            let near = nearest(name, &alike).filter(|_| meaning(name).is_none());
            complaints.push(absent(member, &SPEC, name, near, &known));
        }
    }
}

/// A word about what a pod asks for and no node has: which is near, and which there are.
fn absent(
    member: &Member,
    field: &FieldPath<'_>,
    what: &str,
    near: Option<&str>,
    known: &[&str],
) -> Complaint {
    let near = near.map(|near| format!("; did you mean {near}?"));
    Complaint {
        source: member.source.clone(),
        object: format!("Pod {}/{}", member.spec.namespace, member.spec.name),
        field: field.to_string(),
        value: format!("no node has {what}{}", near.unwrap_or_default()),
        accepted: known.join(", "),
        severity: Severity::Warning,
    }
}

/// Nodes on which a share runs share their cards.
pub(crate) fn share_where_shared(nodes: &mut BTreeMap<String, NodeSpec>, members: &[Member]) {
    for (node, request) in members.iter().filter_map(running_share) {
        let Some(cards) = cards_of(nodes, node, request) else {
            continue;
        };
        if cards.modes.is_empty() && cards.count <= CardSet::CAPACITY {
            let product = Product::new(&cards.model);
            if !product.shared && product.mig.is_none() {
                cards.modes = [CardMode::Shared].into();
            }
        }
    }
}

/// The node of a share that takes room, and what it asks for.
fn running_share(member: &Member) -> Option<(&str, &CardRequest)> {
    let spec = &member.spec;
    if matches!(spec.phase, PodPhase::Succeeded | PodPhase::Failed) {
        return None;
    }
    let cards = spec.template.cards.as_ref()?;
    let shares = matches!(cards.want, CardWant::Shares { .. });
    shares.then_some((spec.node.as_deref()?, cards))
}

fn cards_of<'a>(
    nodes: &'a mut BTreeMap<String, NodeSpec>,
    node: &str,
    request: &CardRequest,
) -> Option<&'a mut NodeCards> {
    let mut cards = nodes.get_mut(node)?.cards.iter_mut();
    cards.find(|cards| cards.kind == request.kind)
}
