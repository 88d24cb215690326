//! Makes a world that fails as small as it can be: takes something away as long as it still fails.

use std::sync::Arc;

use gangline::{
    bits::CardSet,
    gang::{GangSpec, Group, GroupKind, PodPhase, TopologyRule},
    request::{LabelSelector, NamespaceScope, Template},
};

use super::world::World;
use crate::support::shrink;

/// The smallest world found by taking away one thing at a time.
pub fn smallest(world: &World, fails: impl Fn(&World) -> bool) -> World {
    shrink::smallest(world, smaller, fails)
}

/// Every world with one thing less, large things first.
fn smaller(world: &World) -> Vec<World> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut World)| {
        let mut changed = world.clone();
        change(&mut changed);
        let sound = changed.gangs.iter().all(|gang| gang.check().is_ok());
        if sound && format!("{changed:?}") != format!("{world:?}") {
            all.push(changed);
        }
    };
    for (index, gang) in world.gangs.iter().enumerate() {
        with(&|world| {
            world
                .pods
                .retain(|pod| pod.gang.as_ref() != Some(&gang.key));
            world.gangs.remove(index);
        });
    }
    for (index, node) in world.nodes.iter().enumerate() {
        with(&|world| {
            world.nodes.remove(index);
            world
                .pods
                .retain(|pod| pod.node.as_ref() != Some(&node.name));
        });
    }
    for index in 0..world.pods.len() {
        with(&|world| drop(world.pods.remove(index)));
        with(&|world| {
            if world.pods[index].gang.is_some() {
                world.pods[index].node = None;
                world.pods[index].phase = PodPhase::Pending;
            }
        });
        // Only where it leaves one template less, or two templates would be swapped for ever.
        let template = &world.pods[index].template;
        let users = world.pods.iter().filter(|pod| pod.template == *template);
        if users.count() == 1 {
            for other in &world.pods {
                with(&|world| world.pods[index].template = other.template.clone());
            }
        }
    }
    for index in 0..world.nodes.len() {
        with(&|world| world.nodes[index].taints.clear());
        with(&|world| world.nodes[index].unschedulable = false);
        for card in 0..world.nodes[index].cards.len() {
            with(&|world| world.nodes[index].cards[card].unhealthy = CardSet::EMPTY);
            with(&|world| drop(world.nodes[index].cards.remove(card)));
        }
        for key in world.nodes[index]
            .labels
            .keys()
            .chain(world.nodes[index].resources.keys())
        {
            with(&|world| drop(world.nodes[index].labels.remove(key)));
            with(&|world| world.nodes[index].resources.retain(|name, _| name != key));
        }
    }
    let mut templates: Vec<Arc<Template>> = Vec::new();
    for pod in &world.pods {
        if !templates.contains(&pod.template) {
            templates.push(pod.template.clone());
        }
    }
    for template in &templates {
        for simpler in simpler(template) {
            let simpler = Arc::new(simpler);
            with(&|world| {
                for pod in world
                    .pods
                    .iter_mut()
                    .filter(|pod| pod.template == *template)
                {
                    pod.template = simpler.clone();
                    pod.namespace.clone_from(&simpler.namespace);
                }
            });
        }
    }
    for index in 0..world.gangs.len() {
        with(&|world| world.gangs[index].scoring = None);
        for name in group_names(&world.gangs[index]) {
            for change in [
                no_required as fn(&mut Group),
                no_preferred,
                only_child,
                lower_min,
            ] {
                with(&|world| alter(&mut world.gangs[index].root, &name, change));
            }
        }
    }
    with(&|world| world.namespaces.clear());
    all
}

fn simpler(template: &Template) -> Vec<Template> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Template)| {
        let mut changed = template.clone();
        change(&mut changed);
        if changed != *template {
            all.push(changed);
        }
    };
    with(&|template| template.relations = gangline::request::Relations::default());
    with(&|template| template.nodes = gangline::request::NodeRules::default());
    with(&|template| template.cards = None);
    with(&|template| template.resources.clear());
    with(&|template| template.host_ports.clear());
    with(&|template| template.labels.clear());
    with(&|template| template.namespace = "default".into());
    with(&|template| template.nodes.selector.clear());
    with(&|template| template.nodes.required = None);
    with(&|template| template.nodes.preferred.clear());
    with(&|template| template.nodes.tolerations.clear());
    let relations = &template.relations;
    for index in 0..relations.affinity.len() {
        with(&|template| drop(template.relations.affinity.remove(index)));
        with(&|template| template.relations.affinity[index].selector = LabelSelector::default());
        with(&|template| template.relations.affinity[index].namespaces = NamespaceScope::default());
    }
    for index in 0..relations.anti_affinity.len() {
        with(&|template| drop(template.relations.anti_affinity.remove(index)));
        with(&|template| {
            template.relations.anti_affinity[index].selector = LabelSelector::default();
        });
        with(&|template| {
            template.relations.anti_affinity[index].namespaces = NamespaceScope::default();
        });
    }
    for index in 0..relations.spread.len() {
        with(&|template| drop(template.relations.spread.remove(index)));
        with(&|template| template.relations.spread[index].min_domains = 0);
        with(&|template| template.relations.spread[index].selector = LabelSelector::default());
    }
    with(&|template| template.relations.preferred.clear());
    for key in template.labels.keys().chain(template.resources.keys()) {
        with(&|template| drop(template.labels.remove(key)));
        with(&|template| template.resources.retain(|name, _| name != key));
    }
    all
}

fn group_names(gang: &GangSpec) -> Vec<String> {
    fn add(group: &Group, names: &mut Vec<String>) {
        names.push(group.name.clone());
        if let GroupKind::Group { children, .. } = &group.kind {
            for child in children {
                add(child, names);
            }
        }
    }
    let mut names = Vec::new();
    add(&gang.root, &mut names);
    names
}

fn alter(group: &mut Group, name: &str, change: fn(&mut Group)) {
    if group.name == name {
        change(group);
        return;
    }
    if let GroupKind::Group { children, .. } = &mut group.kind {
        for child in children {
            alter(child, name, change);
        }
    }
}

fn no_required(group: &mut Group) {
    group.topology = TopologyRule {
        required: None,
        ..group.topology.clone()
    };
}

fn no_preferred(group: &mut Group) {
    group.topology.preferred = None;
}

fn only_child(group: &mut Group) {
    if let GroupKind::Group { children, .. } = &mut group.kind
        && children.len() == 1
    {
        *group = children.remove(0);
    }
}

fn lower_min(group: &mut Group) {
    match &mut group.kind {
        GroupKind::Role(role) => {
            role.min = role.min.saturating_sub(1);
            role.count = 0;
        }
        GroupKind::Group { min, .. } => match min {
            gangline::gang::Minimum::Members(least) | gangline::gang::Minimum::Children(least) => {
                *least = least.saturating_sub(1).max(1);
            }
        },
    }
}
