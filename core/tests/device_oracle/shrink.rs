//! Makes a world that fails as small as it can be: takes something away as long as it still fails.

use std::sync::Arc;

use gangline::{
    bits::CardSet,
    gang::{Group, GroupKind},
    request::{CardRequest, CardWant, Template},
};

use super::world::World;
use crate::support::shrink;

/// The smallest world found by taking away one thing at a time.
pub fn smallest(world: &World, fails: impl Fn(&World) -> bool) -> World {
    shrink::smallest(world, smaller, fails)
}

fn smaller(world: &World) -> Vec<World> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut World)| {
        let mut changed = world.clone();
        change(&mut changed);
        if format!("{changed:?}") != format!("{world:?}") {
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
        with(&|world| lower(&mut world.gangs[index].root));
    }
    for (index, node) in world.nodes.iter().enumerate() {
        if world.nodes.len() > 1 {
            with(&|world| {
                world.nodes.remove(index);
                world
                    .pods
                    .retain(|pod| pod.node.as_ref() != Some(&node.name));
            });
        }
        with(&|world| world.nodes[index].cards[0].unhealthy = CardSet::EMPTY);
        with(&|world| world.nodes[index].cards[0].closed = CardSet::EMPTY);
        with(&|world| world.nodes[index].cards[0].is_changing = false);
        with(&|world| world.nodes[index].cards[0].links = None);
        with(&|world| world.nodes[index].cards[0].slices.clear());
        with(&|world| world.nodes[index].cards[0].modes.truncate(1));
        with(&|world| {
            world.nodes[index].resources.insert("cpu".into(), 100);
        });
        with(&|world| {
            let cards = &mut world.nodes[index].cards[0];
            if cards.count > 1 && cards.links.is_none() {
                cards.count -= 1;
                let there = CardSet((1 << cards.count) - 1);
                cards.unhealthy = cards.unhealthy.intersection(there);
                cards.closed = cards.closed.intersection(there);
                if cards.modes.len() > 1 {
                    cards.modes.truncate(cards.count as usize);
                }
            }
        });
    }
    for index in 0..world.pods.len() {
        with(&|world| drop(world.pods.remove(index)));
        with(&|world| world.pods[index].devices = None);
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
                }
            });
        }
    }
    all
}

fn lower(group: &mut Group) {
    match &mut group.kind {
        GroupKind::Role(role) => role.min = role.min.saturating_sub(1).max(1),
        GroupKind::Group { children, .. } => children.iter_mut().for_each(lower),
    }
}

fn simpler(template: &Template) -> Vec<Template> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Template, &mut CardRequest)| {
        let mut changed = template.clone();
        let Some(mut ask) = changed.cards.take() else {
            return;
        };
        change(&mut changed, &mut ask);
        changed.cards = Some(ask);
        all.push(changed);
    };
    with(&|template, _| template.resources.clear());
    with(&|_, ask| ask.only = None);
    with(&|_, ask| ask.models.clear());
    with(&|_, ask| ask.min_card_memory_mib = 0);
    with(&|_, ask| ask.exclusive.clear());
    with(&|_, ask| ask.share_group.clear());
    with(&|_, ask| ask.overhead.processes = 0);
    with(&|_, ask| ask.near = gangline::device::links::Nearness::Any);
    with(&|_, ask| match &mut ask.want {
        CardWant::Whole(count)
        | CardWant::Shares { count, .. }
        | CardWant::Replicas { count, .. } => {
            *count = count.saturating_sub(1).max(1);
        }
        CardWant::Slices { slices, .. } => {
            if slices.len() > 1 {
                slices.pop();
            } else {
                slices[0].count = slices[0].count.saturating_sub(1).max(1);
            }
        }
    });
    with(&|_, ask| {
        if let CardWant::Slices { slices, .. } = &mut ask.want
            && slices.len() > 1
        {
            slices.remove(0);
        }
    });
    all
}
