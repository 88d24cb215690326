//! Which claim of a plan gets which volume.
//!
//! Members of one plan and their nodes enter; of each member leaves what has to be done before it is
//! bound, or whose claim cannot be met. Volumes that are there are matched to claims such that as many as
//! possible get one (augmenting paths), the smallest that will do first.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    PodVolume, Volumes,
    count::bytes,
    objects::{Claim, Key},
    prepare::{How, Preparation},
};

/// A member that is about to be bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'a> {
    /// Its namespace.
    pub(crate) namespace: &'a str,
    /// The claims that it uses.
    pub(crate) volumes: &'a [PodVolume],
    /// Its node.
    pub(crate) node: &'a str,
    /// The node's labels.
    pub(crate) labels: &'a BTreeMap<String, String>,
}

/// A claim that cannot be met: the member's place in the plan, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unmet {
    pub(crate) member: usize,
    pub(crate) message: String,
}

/// A claim that must get a volume that is there.
struct Needy<'a> {
    member: usize,
    key: Key,
    claim: &'a Claim,
    /// What would do, the smallest first.
    options: Vec<&'a str>,
}

impl Volumes {
    /// What has to be done before these members are bound, in their order.
    pub(crate) fn assign(&self, members: &[Member<'_>]) -> Result<Vec<Preparation>, Unmet> {
        let mut preparations: Vec<Preparation> = Vec::with_capacity(members.len());
        let mut seen = BTreeSet::new();
        let mut needy = Vec::new();
        let mut made = Vec::new();
        for (number, member) in members.iter().enumerate() {
            let mut preparation = Preparation::default();
            for volume in member.volumes {
                let key = (member.namespace.to_owned(), String::from(&*volume.claim));
                // One that is gone meanwhile is found out when it is awaited.
                let Some(claim) = self.claims.get(&key).filter(|claim| !claim.is_bound) else {
                    continue;
                };
                let class = self.classes.get(&claim.shape.class);
                if !seen.insert(key.clone())
                    || !claim.volume.is_empty()
                    || self.kept_volume(&key, claim).is_some()
                {
                    // Somebody else sees to it.
                    preparation.add(key, claim, How::Await);
                } else if class.is_some_and(|class| class.provisioner.is_empty()) {
                    needy.push(self.needy(number, member, key, claim));
                } else {
                    made.push((number, key, claim));
                }
            }
            preparations.push(preparation);
        }
        needy.sort_by(|one: &Needy<'_>, other| {
            (one.claim.shape.size, &one.key).cmp(&(other.claim.shape.size, &other.key))
        });
        let mut given = BTreeMap::new();
        for claim in 0..needy.len() {
            if !find(&needy, claim, &mut given, &mut BTreeSet::new()) {
                return Err(unmet(&needy, claim, members));
            }
        }
        for (volume, claim) in &given {
            if let Some(needy) = needy.get(*claim)
                && let Some(preparation) = preparations.get_mut(needy.member)
            {
                let how = How::Volume((*volume).to_owned());
                preparation.add(needy.key.clone(), needy.claim, how);
            }
        }
        for (number, key, claim) in made {
            let Some(member) = members.get(number) else {
                continue;
            };
            let needy = self.needy(number, member, key.clone(), claim);
            let free = needy
                .options
                .into_iter()
                .find(|name| !given.contains_key(name));
            let how = match free {
                Some(name) if claim.selected_node.is_none() => {
                    given.insert(name, usize::MAX);
                    How::Volume(name.to_owned())
                }
                _ if self.can_be_made(claim, member) => How::Provision,
                _ => {
                    let node = member.node;
                    let message = format!("claim {}/{} cannot be met on {node}", key.0, key.1);
                    return Err(Unmet {
                        member: number,
                        message,
                    });
                }
            };
            if let Some(preparation) = preparations.get_mut(number) {
                preparation.add(key, claim, how);
            }
        }
        Ok(preparations)
    }

    fn needy<'a>(
        &'a self,
        number: usize,
        member: &Member<'_>,
        key: Key,
        claim: &'a Claim,
    ) -> Needy<'a> {
        let names = self.of_class.get(&claim.shape.class).into_iter().flatten();
        let volumes = names.filter_map(|name| Some((name.as_str(), self.by_name.get(name)?)));
        let free = volumes.filter(|(name, volume)| {
            volume.claim.is_none()
                && !self.promised.contains_key(*name)
                && volume.suits(&claim.shape)
                && volume.reaches(member.node, member.labels)
        });
        let mut options: Vec<_> = free.collect();
        options.sort_by_key(|(name, volume)| (volume.size, *name));
        Needy {
            member: number,
            key,
            claim,
            options: options.into_iter().map(|(name, _)| name).collect(),
        }
    }

    /// Whether a volume can be made for a claim on a member's node.
    fn can_be_made(&self, claim: &Claim, member: &Member<'_>) -> bool {
        if let Some(node) = &claim.selected_node {
            return **node == *member.node;
        }
        let Some(class) = self.classes.get(&claim.shape.class) else {
            return false;
        };
        match self.made(claim, class) {
            Ok(places) => places.is_none_or(|terms| {
                let mut terms = terms.iter();
                terms.any(|term| term.matches(member.node, member.labels))
            }),
            Err(_) => false,
        }
    }
}

/// So many volumes are tried to make room for one claim: a bound on depth as well.
const MOST_TRIED: usize = 256;

/// Looks for a volume for a claim, where need be by giving others another one.
fn find<'a>(
    needy: &[Needy<'a>],
    claim: usize,
    given: &mut BTreeMap<&'a str, usize>,
    tried: &mut BTreeSet<&'a str>,
) -> bool {
    let Some(wanted) = needy.get(claim) else {
        return false;
    };
    // A free one first: then nobody has to move, and the chain stays short.
    if let Some(free) = wanted
        .options
        .iter()
        .find(|name| !given.contains_key(*name))
    {
        given.insert(free, claim);
        return true;
    }
    for name in &wanted.options {
        if tried.len() >= MOST_TRIED || !tried.insert(name) {
            continue;
        }
        if let Some(&holder) = given.get(name)
            && find(needy, holder, given, tried)
        {
            given.insert(name, claim);
            return true;
        }
    }
    false
}

fn unmet(needy: &[Needy<'_>], claim: usize, members: &[Member<'_>]) -> Unmet {
    let Some(wanted) = needy.get(claim) else {
        return Unmet {
            member: 0,
            message: String::new(),
        };
    };
    let (namespace, name) = &wanted.key;
    let node = members.get(wanted.member).map_or("", |member| member.node);
    let (size, class) = (bytes(wanted.claim.shape.size), &wanted.claim.shape.class);
    let message = format!(
        "volumes for {claim} of {} claims: none is left on {node} for claim {namespace}/{name} \
         ({size} of class {class})",
        needy.len()
    );
    Unmet {
        member: wanted.member,
        message,
    }
}
