//! What is counted as resources of nodes: attachments, and volumes of one node each.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use gangline::{cluster::NodeSpec, request::NODE_LEVEL};

use super::{
    ATTACHABLE, UNLIMITED, Volumes,
    objects::{Key, Shape},
};

/// Claims of a class differ in so many ways at most to be counted.
const MOST_SHAPES: usize = 16;

/// Claims of one shape that are met by volumes of one node each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    shape: Shape,
    /// Volumes that would do, by host.
    pub(super) volumes: BTreeMap<String, BTreeSet<String>>,
}

impl Volumes {
    /// The shapes of claims that wait for volumes of one node each, by the name of their resource.
    pub(super) fn count(&self, class: &str) -> BTreeMap<String, Counted> {
        let mut counted = BTreeMap::new();
        if !self.is_static(class) {
            return counted;
        }
        let waiting = self.waiting.get(class).into_iter().flatten();
        let waiting = waiting
            .filter(|key| self.users.contains_key(*key) && !self.kept_for.contains_key(*key));
        // What is promised is counted, and so is the pod that it is promised to.
        for key in waiting.chain(self.promised.values()) {
            let Some(claim) = self
                .claims
                .get(key)
                .filter(|claim| claim.shape.class == class)
            else {
                continue;
            };
            let name = claim.shape.resource();
            if claim.problem.is_some() || counted.contains_key(&name) {
                continue;
            }
            let mut volumes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            let mut is_local = true;
            for name in self.of_class.get(class).into_iter().flatten() {
                let Some(volume) = self.by_name.get(name) else {
                    continue;
                };
                let counts = match self.promised.get(name) {
                    Some(to) => self.is_shaped(to, &claim.shape),
                    None => volume.claim.is_none() && volume.suits(&claim.shape),
                };
                if !counts {
                    continue;
                }
                let Some(host) = &volume.host else {
                    is_local = false;
                    break;
                };
                let there = volumes.entry(host.clone()).or_default();
                there.insert(name.clone());
            }
            if is_local {
                let shape = claim.shape.clone();
                counted.insert(name, Counted { shape, volumes });
            }
            if counted.len() > MOST_SHAPES {
                counted.pop_last();
            }
        }
        counted
    }

    fn is_shaped(&self, claim: &Key, shape: &Shape) -> bool {
        let claim = self.claims.get(claim);
        claim.is_some_and(|claim| claim.shape == *shape)
    }

    /// Adds to a node what it has of the resources that are counted here.
    pub(crate) fn offer(&self, node: &mut NodeSpec) {
        let limits = self.limits.get(&node.name);
        for driver in self.limited.keys() {
            let limit = limits.and_then(|limits| limits.get(driver)).copied();
            let name = format!("{ATTACHABLE}{driver}");
            node.resources.insert(name, limit.unwrap_or(UNLIMITED));
        }
        let host = node.labels.get(NODE_LEVEL);
        let Some(host) = host else {
            return;
        };
        for (name, counted) in self.counted.values().flatten() {
            let there = counted.volumes.get(host).into_iter().flatten();
            let reached = there.filter(|volume| {
                let volume = self.by_name.get(*volume);
                volume.is_some_and(|volume| volume.reaches(&node.name, &node.labels))
            });
            let count = reached.count();
            if count > 0 {
                let count = i64::try_from(count).unwrap_or(UNLIMITED);
                node.resources.insert(name.clone(), count);
            }
        }
    }
}

impl Shape {
    /// The resource that counts volumes for claims like this.
    pub(super) fn resource(&self) -> String {
        let mut name = format!("local-volumes/{}/{}", self.class, bytes(self.size));
        if self.block {
            name.push_str("/Block");
        }
        if !matches!(&*self.modes, [mode] if &**mode == "ReadWriteOnce") {
            name.push('/');
            name.push_str(&self.modes.join(","));
        }
        for test in &self.selector.requirements {
            // Writing to text cannot fail.
            let _ = write!(
                name,
                "/{} {:?} {}",
                test.key,
                test.operator,
                test.values.join(",")
            );
        }
        name
    }
}

/// An amount as people write it, in the largest unit of which it is whole.
pub(super) fn bytes(amount: i64) -> String {
    let units = ["Ti", "Gi", "Mi", "Ki"];
    let sizes = [40, 30, 20, 10];
    for (unit, shift) in units.into_iter().zip(sizes) {
        if amount > 0 && amount % (1 << shift) == 0 {
            return format!("{}{unit}", amount >> shift);
        }
    }
    amount.to_string()
}
