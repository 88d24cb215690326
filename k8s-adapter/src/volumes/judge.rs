//! What a pod's claims mean for where it can go, and whether it has to wait.

use std::collections::{BTreeMap, BTreeSet};

use gangline::{
    gang::{PodSpec, Problem},
    request::NodeSelectorTerm,
};

use super::{
    ATTACHABLE, Kind, PodVolume, Volumes,
    count::bytes,
    objects::{Claim, Class, Key},
    terms,
};
use crate::{problem::problem, rules::Templates};

/// What a pod's claims mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Judged {
    /// Nodes that will do: one of these must hold. `None`: all of them.
    required: Option<Vec<NodeSelectorTerm>>,
    /// Amounts of the resources that are counted here.
    amounts: BTreeMap<String, i64>,
    /// Why it has to wait.
    problem: Option<Problem>,
}

impl Judged {
    fn limit(&mut self, terms: &[NodeSelectorTerm]) {
        match and(self.required.as_deref(), terms) {
            Ok(terms) => self.required = Some(terms),
            Err(problem) => self.wait(problem),
        }
    }

    /// The first reason counts.
    fn wait(&mut self, problem: Problem) {
        self.problem.get_or_insert(problem);
    }

    /// Puts it into the pod.
    pub(crate) fn apply(&self, spec: &mut PodSpec, templates: &mut Templates) {
        let mut problem = self.problem.clone();
        let own = spec.template.nodes.required.as_deref();
        let required = match &self.required {
            Some(terms) if spec.node.is_none() => match and(own, terms) {
                Ok(terms) => Some(terms),
                Err(too_many) => {
                    problem.get_or_insert(too_many);
                    None
                }
            },
            _ => None,
        };
        if required.is_some() || !self.amounts.is_empty() {
            spec.template = templates.with_volumes(&spec.template, required, &self.amounts);
        }
        if spec.node.is_none() && spec.problem.is_none() {
            spec.problem = problem;
        }
    }
}

fn and(
    one: Option<&[NodeSelectorTerm]>,
    other: &[NodeSelectorTerm],
) -> Result<Vec<NodeSelectorTerm>, Problem> {
    let Some(one) = one else {
        return Ok(other.to_vec());
    };
    terms::both(one, other).ok_or_else(|| {
        let message = format_args!(
            "the nodes that the pod and its volumes allow take {} terms and more; accepted: fewer",
            terms::MOST
        );
        problem("VolumeRulesTooLong", "spec.volumes", message)
    })
}

/// One claim of a pod while it is looked at.
struct Looked<'a> {
    volume: &'a PodVolume,
    key: &'a Key,
    claim: &'a Claim,
}

impl Looked<'_> {
    fn problem(&self, code: &str, message: impl std::fmt::Display) -> Problem {
        claim_problem(self.volume, self.key, code, message)
    }
}

fn claim_problem(
    volume: &PodVolume,
    (namespace, claim): &Key,
    code: &str,
    message: impl std::fmt::Display,
) -> Problem {
    let field = format_args!("spec.volumes[{}]", volume.name);
    problem(
        code,
        field,
        format_args!("claim {namespace}/{claim} {message}"),
    )
}

impl Volumes {
    /// What the claims of a pod mean as things are.
    pub(crate) fn judge(&self, spec: &PodSpec, volumes: &[PodVolume]) -> Judged {
        let mut judged = Judged::default();
        let mut attached = BTreeSet::new();
        for volume in volumes {
            let key = (spec.namespace.clone(), String::from(&*volume.claim));
            let Some(claim) = self.claims.get(&key) else {
                if self.knows(Kind::Claim) {
                    let accepted = if volume.is_ephemeral {
                        "does not exist yet; accepted: one, which Kubernetes makes for the pod"
                    } else {
                        "does not exist; accepted: an existing claim"
                    };
                    judged.wait(claim_problem(volume, &key, "ClaimNotFound", accepted));
                }
                continue;
            };
            let looked = Looked {
                volume,
                key: &key,
                claim,
            };
            attached.extend(self.attached(&looked));
            if spec.node.is_none() {
                self.look(&looked, spec, &mut judged);
            }
        }
        for (driver, _) in attached {
            if self.limited.contains_key(&*driver) {
                *judged
                    .amounts
                    .entry(format!("{ATTACHABLE}{driver}"))
                    .or_default() += 1;
            }
        }
        judged
    }

    /// The driver that attaches a claim's volume, and its word for the volume.
    fn attached(&self, looked: &Looked<'_>) -> Option<(Box<str>, Box<str>)> {
        let (key, claim) = (looked.key, looked.claim);
        if claim.is_bound {
            return self.by_name.get(&claim.volume)?.csi.clone();
        }
        let class = self.classes.get(&claim.shape.class)?;
        let is_made = !class.provisioner.is_empty();
        is_made.then(|| {
            (
                class.provisioner.clone(),
                format!("{}/{}", key.0, key.1).into(),
            )
        })
    }

    fn look(&self, looked: &Looked<'_>, spec: &PodSpec, judged: &mut Judged) {
        let claim = looked.claim;
        if let Some(problem) = &claim.problem {
            let message = format_args!("cannot be read: {problem}");
            judged.wait(looked.problem("InvalidClaim", message));
        } else if looked.volume.is_ephemeral && claim.owner != Some(spec.uid) {
            let message = "was not made for this pod; accepted: one that the pod owns";
            judged.wait(looked.problem("ClaimNotOwned", message));
        } else if claim.is_deleting {
            judged.wait(looked.problem("ClaimDeleting", "is being deleted"));
        } else if claim.is_lost {
            let message = format_args!("has lost its volume {}", claim.volume);
            judged.wait(looked.problem("ClaimLost", message));
        } else if let Some(other) = self.other_user(looked, &spec.name) {
            let message =
                format_args!("is for one pod at a time (ReadWriteOncePod) and {other} uses it");
            judged.wait(looked.problem("ClaimInUse", message));
        } else if claim.is_bound {
            self.look_at_volume(looked, judged);
        } else {
            self.look_at_class(looked, judged);
        }
    }

    /// The pod that has a claim for one pod: one that is bound, else the oldest of ours.
    fn other_user(&self, looked: &Looked<'_>, pod: &str) -> Option<&str> {
        if !looked.claim.is_for_one_pod() {
            return None;
        }
        let users = self.users.get(looked.key)?;
        let others = users.iter().filter(|(name, user)| {
            user.is_bound || *name == pod || !(user.is_foreign || user.is_terminating)
        });
        let first = others.min_by_key(|(name, user)| (!user.is_bound, user.created, *name));
        first
            .map(|(name, _)| name.as_str())
            .filter(|name| *name != pod)
    }

    fn look_at_volume(&self, looked: &Looked<'_>, judged: &mut Judged) {
        let name = &looked.claim.volume;
        let Some(volume) = self.by_name.get(name) else {
            if self.knows(Kind::Volume) {
                let message = format_args!("is bound to volume {name}, which does not exist");
                judged.wait(looked.problem("VolumeNotFound", message));
            }
            return;
        };
        if let Some(problem) = &volume.problem {
            let message =
                format_args!("is bound to volume {name}, which cannot be read: {problem}");
            judged.wait(looked.problem("InvalidVolume", message));
        }
        if let Some(reach) = &volume.reach {
            judged.limit(reach);
        }
        if let Some(zones) = terms::zones(&volume.labels) {
            judged.limit(&zones);
        }
    }

    fn look_at_class(&self, looked: &Looked<'_>, judged: &mut Judged) {
        let claim = looked.claim;
        let name = &claim.shape.class;
        let unbound = |message: std::fmt::Arguments<'_>| looked.problem("ClaimUnbound", message);
        if !claim.volume.is_empty() {
            let volume = &claim.volume;
            judged.wait(unbound(format_args!(
                "is not bound to its volume {volume} yet"
            )));
            return;
        }
        if name.is_empty() {
            judged.wait(unbound(format_args!("is not bound yet and has no class")));
            return;
        }
        let Some(class) = self.classes.get(name) else {
            if self.knows(Kind::Class) {
                let message = format_args!("has the StorageClass {name}, which does not exist");
                judged.wait(looked.problem("StorageClassNotFound", message));
            }
            return;
        };
        if !class.waits {
            let message =
                format_args!("is not bound yet; its class {name} binds before pods are placed");
            judged.wait(unbound(message));
            return;
        }
        if let Some(node) = &claim.selected_node {
            judged.limit(&[terms::on_node(node)]);
            return;
        }
        self.look_for_volumes(looked, class, judged);
    }

    /// Volumes that are there and would do, and where new ones can be made.
    fn look_for_volumes(&self, looked: &Looked<'_>, class: &Class, judged: &mut Judged) {
        let (claim, shape) = (looked.claim, &looked.claim.shape);
        if let Some(kept) = self.kept_volume(looked.key, claim) {
            if let Some(reach) = self.by_name.get(kept).and_then(|one| one.reach.as_ref()) {
                judged.limit(reach);
            }
            return;
        }
        let is_made = !class.provisioner.is_empty();
        let counted = self.counted.get(&shape.class);
        let resource = shape.resource();
        if let Some(counted) = counted.and_then(|counted| counted.get(&resource)) {
            if counted.volumes.is_empty() {
                judged.wait(no_volume(looked));
            }
            *judged.amounts.entry(resource).or_default() += 1;
            return;
        }
        if is_made && class.allowed.is_none() && !self.tells_left.contains(&*class.provisioner) {
            return;
        }
        let mut places = Vec::new();
        let mut is_everywhere = false;
        for name in self.of_class.get(&shape.class).into_iter().flatten() {
            let free = self.by_name.get(name).filter(|volume| {
                volume.claim.is_none() && !self.promised.contains_key(name) && volume.suits(shape)
            });
            match free.map(|volume| &volume.reach) {
                Some(Some(reach)) => places.extend(reach.iter().cloned()),
                Some(None) => is_everywhere = true,
                None => {}
            }
        }
        if is_everywhere {
            return;
        }
        if is_made {
            match self.made(claim, class) {
                Ok(Some(made)) => places.extend(made),
                Ok(None) => return,
                Err(too_many) => {
                    judged.wait(too_many);
                    return;
                }
            }
        }
        let places = terms::either(places);
        if places.is_empty() {
            judged.wait(no_volume(looked));
            return;
        }
        judged.limit(&places);
    }

    /// The volume that somebody keeps for this claim.
    pub(super) fn kept_volume(&self, key: &Key, claim: &Claim) -> Option<&str> {
        let kept = self.kept_for.get(key)?.iter();
        let mut kept = kept.filter(|name| {
            let volume = self.by_name.get(*name);
            volume.is_some_and(|volume| !volume.is_deleting && volume.is_for(key, claim))
        });
        kept.next().map(String::as_str)
    }

    /// Where a volume can be made for a claim; `None`: everywhere.
    pub(super) fn made(
        &self,
        claim: &Claim,
        class: &Class,
    ) -> Result<Option<Vec<NodeSelectorTerm>>, Problem> {
        let allowed = class.allowed.as_deref();
        if !self.tells_left.contains(&*class.provisioner) {
            return Ok(allowed.map(<[_]>::to_vec));
        }
        let mut nodes = Vec::new();
        for left in self.left.values() {
            let is_enough = left.class == claim.shape.class
                && left
                    .largest
                    .is_some_and(|largest| largest >= claim.shape.size);
            match &left.nodes {
                Some(term) if is_enough && term.tests.is_empty() => {
                    return Ok(allowed.map(<[_]>::to_vec));
                }
                Some(term) if is_enough => nodes.push(term.clone()),
                _ => {}
            }
        }
        and(allowed, &terms::either(nodes)).map(Some)
    }
}

fn no_volume(looked: &Looked<'_>) -> Problem {
    let shape = &looked.claim.shape;
    let (size, class) = (bytes(shape.size), &shape.class);
    let message = format_args!(
        "wants {size} of class {class}, of which no free volume is left that would do"
    );
    looked.problem("NoVolume", message)
}
