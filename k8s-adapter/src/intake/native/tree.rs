//! Trees of `CompositePodGroup`s with `PodGroup`s as leaves: one gang for each root.
//!
//! A tree that is not one (its parents go round in a circle, or one is missing) cannot be honoured;
//! then each of its `PodGroup`s waits by itself with that reason. All walks are bounded by the depth
//! that the API allows or by a set of what was seen.

use std::collections::{BTreeMap, BTreeSet};

use gangline::gang::{GangSpec, Group, GroupKind, Minimum, Problem};

use super::{
    super::{
        Roster, Surroundings,
        store::{self, Name, Stored},
    },
    GroupSpec, Level, Native, SOURCE, leaf,
};
use crate::problem::problem;

pub(crate) const COMPOSITE_SOURCE: &str = "native-composite";
/// Levels of a tree, the `PodGroup`s included; the API's own limit.
const MAX_DEPTH: usize = 4;
const PARENT_FIELD: &str = "spec.parentCompositePodGroupName";

/// The composites and the `PodGroup`s that hang under a composite.
#[derive(Default)]
struct Children<'a> {
    composites: Vec<&'a Name>,
    groups: Vec<&'a Name>,
}

impl Native {
    /// The gangs of all trees; also moves their members from the `PodGroup` that they name to it.
    pub(super) fn trees(
        &self,
        roster: &mut Roster<'_>,
        around: &mut Surroundings<'_>,
    ) -> Vec<GangSpec> {
        let mut gangs = Vec::new();
        let mut children: BTreeMap<Name, Children<'_>> = BTreeMap::new();
        let mut roots = Vec::new();
        for (name, stored) in self.composites.iter() {
            match self.root(Level::Groups, name, stored) {
                Ok(root) if root == *name => roots.push((name, stored)),
                Ok(_) => {
                    if let Some(parent) = parent(name, stored) {
                        children.entry(parent).or_default().composites.push(name);
                    }
                }
                Err(problem) => around.refuse(stored, &problem),
            }
        }
        for (name, stored) in self.groups.iter() {
            let Some(parent) = parent(name, stored) else {
                continue;
            };
            match self.root(Level::Pods, name, stored) {
                Ok(root) => {
                    children.entry(parent).or_default().groups.push(name);
                    adopt(roster, name, &root);
                }
                Err(problem) => {
                    around.refuse(stored, &problem);
                    gangs.push(stored.invalid(name, SOURCE, problem));
                }
            }
        }
        for (name, stored) in roots {
            gangs.push(self.gang(name, stored, &children, roster, around));
        }
        gangs
    }

    /// The end of the chain of parents of a group of this level.
    fn root(&self, level: Level, name: &Name, stored: &Stored<GroupSpec>) -> Result<Name, Problem> {
        let mut at = name.clone();
        let mut next = parent(name, stored);
        let mut seen = BTreeSet::new();
        if level == Level::Groups {
            seen.insert(name.clone());
        }
        while let Some(parent_name) = next {
            let shown = &parent_name.1;
            if !seen.insert(parent_name.clone()) {
                let message = format!("{shown} is its own ancestor; accepted: a tree");
                return Err(problem("CyclicParents", PARENT_FIELD, message));
            }
            let Some(above) = self.composites.get(&parent_name) else {
                let message = format!("{shown}; accepted: a CompositePodGroup that is there");
                return Err(problem("ParentNotFound", PARENT_FIELD, message));
            };
            next = parent(&parent_name, above);
            at = parent_name;
        }
        Ok(at)
    }

    fn gang(
        &self,
        name: &Name,
        stored: &Stored<GroupSpec>,
        children: &BTreeMap<Name, Children<'_>>,
        roster: &Roster<'_>,
        around: &mut Surroundings<'_>,
    ) -> GangSpec {
        let built = stored.spec.as_ref().map_err(Clone::clone).and_then(|spec| {
            let root = self.subtree(name, children, 1)?;
            Ok((spec, root, spec.disruption()?))
        });
        match built {
            Ok((spec, root, disruption)) => {
                let members = roster.get(&store::key(name, COMPOSITE_SOURCE));
                let members = members.map_or(&[][..], Vec::as_slice);
                GangSpec {
                    priority: around.priority(
                        spec.priority,
                        &spec.priority_class_name,
                        members,
                        stored,
                    ),
                    disruption,
                    ..stored.gang(name, COMPOSITE_SOURCE, root)
                }
            }
            Err(problem) => {
                around.refuse(stored, &problem);
                stored.invalid(name, COMPOSITE_SOURCE, problem)
            }
        }
    }

    fn subtree(
        &self,
        name: &Name,
        children: &BTreeMap<Name, Children<'_>>,
        depth: usize,
    ) -> Result<Group, Problem> {
        if depth >= MAX_DEPTH {
            let message = format!(
                "{} is on level {depth}, its groups would be on the next; accepted: {MAX_DEPTH} levels",
                name.1
            );
            return Err(problem("TooDeep", PARENT_FIELD, message));
        }
        let below = children.get(name);
        let spec = match self.composites.get(name).map(|stored| &stored.spec) {
            Some(Ok(spec)) => spec,
            Some(Err(problem)) => return Err(problem.clone()),
            None => return Err(problem("ParentNotFound", PARENT_FIELD, name.1.clone())),
        };
        let mut min = spec.minimum(Level::Groups)?.unwrap_or(0);
        let mut groups = Vec::new();
        for child in below.iter().flat_map(|below| &below.composites) {
            groups.push(self.subtree(child, children, depth + 1)?);
        }
        for child in below.iter().flat_map(|below| &below.groups) {
            match self.groups.get(child).map(|stored| &stored.spec) {
                Some(Ok(spec)) => groups.push(leaf(child, spec)?),
                Some(Err(problem)) => return Err(problem.clone()),
                None => {}
            }
        }
        if groups.len() < min as usize {
            // Groups that are not there yet: one leaf stands for all of them.
            groups.push(store::role(&format!("{}/(missing)", name.1), 1));
            min = groups.len() as u32;
        }
        Ok(Group {
            // Leaves are found by their `PodGroup`'s name; an inner node may not take that name.
            name: format!("composite/{}", name.1),
            topology: spec.topology()?,
            kind: GroupKind::Group {
                min: Minimum::Children(min),
                children: groups,
            },
        })
    }
}

fn parent(name: &Name, stored: &Stored<GroupSpec>) -> Option<Name> {
    stored
        .spec
        .as_ref()
        .ok()
        .and_then(|spec| spec.parent(&name.0))
}

/// Moves the members of a `PodGroup` to the root of its tree, where the `PodGroup` is their role.
fn adopt(roster: &mut Roster<'_>, group: &Name, root: &Name) {
    let Some(members) = roster.remove(&store::key(group, SOURCE)) else {
        return;
    };
    let key = store::key(root, COMPOSITE_SOURCE);
    let adopted = roster.entry(key.clone()).or_default();
    for member in members {
        member.spec.gang = Some(key.clone());
        member.spec.role.clone_from(&group.1);
        adopted.push(member);
    }
}
