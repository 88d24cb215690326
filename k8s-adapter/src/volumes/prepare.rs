//! What must be done before a pod with unbound claims is bound, one look at a time.
//!
//! A [`Preparation`] is made when a pod's node is decided. Each [`look`](Volumes::look) at what is known by
//! then says what to write ([`Write`]), and whether all is done, is awaited or has failed. Writes name the
//! version of the object that they stand on: if it has changed, the API server refuses them, and the next
//! look, at the newer object, decides anew. So nothing has to be remembered over a restart: what was
//! written is seen on the objects.

use std::collections::BTreeMap;

use super::{
    Volumes,
    objects::{Claim, Key},
};

/// What a pod's claims need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Preparation {
    claims: Vec<Step>,
}

/// What one claim needs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    key: Key,
    uid: Box<str>,
    how: How,
    /// The version of the object that the latest write stands on.
    written: Option<Box<str>>,
    /// What was written was seen.
    is_seen: bool,
}

/// How a claim gets its volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// One is made for the node.
    Provision,
    /// It is this one.
    Volume(String),
    /// Somebody else sees to it.
    Await,
}

/// Something to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    /// A volume for this claim shall be made for this node.
    SelectNode {
        claim: Claimed,
        version: Box<str>,
        node: String,
    },
    /// This volume is for this claim.
    KeepVolume {
        volume: String,
        version: Box<str>,
        claim: Claimed,
        /// The version of the claim.
        claim_version: Box<str>,
    },
}

/// A claim with its identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claimed {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: Box<str>,
}

/// How far a preparation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All claims are bound.
    Ready,
    /// Something is awaited.
    Waits { message: String },
    /// It cannot be done on this node any more.
    Failed { message: String },
}

impl Preparation {
    pub(super) fn add(&mut self, key: Key, claim: &Claim, how: How) {
        self.claims.push(Step {
            key,
            uid: claim.uid.clone(),
            how,
            written: None,
            is_seen: false,
        });
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    /// The volumes that claims will get, and the claims.
    pub(super) fn promises(&self) -> impl Iterator<Item = (&str, &Key)> {
        self.claims.iter().filter_map(|step| match &step.how {
            How::Volume(volume) => Some((volume.as_str(), &step.key)),
            How::Provision | How::Await => None,
        })
    }
}

/// What one claim is up to.
enum Look {
    Done,
    Waits(String),
    Failed(String),
}

impl Volumes {
    /// Looks how far a preparation for a node is; what is to be written now is added to `writes`.
    pub(crate) fn look_at(
        &self,
        preparation: &mut Preparation,
        node: &str,
        labels: &BTreeMap<String, String>,
        writes: &mut Vec<Write>,
    ) -> Progress {
        let mut waits = None;
        for step in &mut preparation.claims {
            let (namespace, name) = step.key.clone();
            let message = |text: String| format!("claim {namespace}/{name} {text}");
            match self.look_at_step(step, node, labels, writes) {
                Look::Done => {}
                Look::Waits(text) => {
                    waits.get_or_insert_with(|| message(text));
                }
                Look::Failed(text) => {
                    let message = message(text);
                    return Progress::Failed { message };
                }
            }
        }
        waits.map_or(Progress::Ready, |message| Progress::Waits { message })
    }

    fn look_at_step(
        &self,
        step: &mut Step,
        node: &str,
        labels: &BTreeMap<String, String>,
        writes: &mut Vec<Write>,
    ) -> Look {
        let claim = self.claims.get(&step.key);
        let Some(claim) = claim.filter(|claim| claim.uid == step.uid && !claim.is_deleting) else {
            return Look::Failed("is gone".into());
        };
        if claim.is_lost {
            return Look::Failed("has lost its volume".into());
        }
        if claim.is_bound {
            let name = &claim.volume;
            return match self.by_name.get(name) {
                Some(volume) if volume.reaches(node, labels) => Look::Done,
                Some(_) => Look::Failed(format!(
                    "got volume {name}, which cannot be reached from {node}"
                )),
                // Told of a moment later.
                None => Look::Waits(format!("is bound to volume {name}, which is not known yet")),
            };
        }
        let claimed = || Claimed {
            namespace: step.key.0.clone(),
            name: step.key.1.clone(),
            uid: step.uid.clone(),
        };
        let claim_version = self
            .claim_versions
            .get(&step.key)
            .cloned()
            .unwrap_or_default();
        match &step.how {
            How::Await => Look::Waits("is not bound yet".into()),
            How::Provision => {
                let class = &claim.shape.class;
                match claim.selected_node.as_deref() {
                    Some(selected) if selected == node => {
                        step.is_seen = true;
                        let class = self.classes.get(class);
                        let who = class.map_or("", |class| &*class.provisioner);
                        Look::Waits(format!("waits for {who} to make its volume for {node}"))
                    }
                    Some(selected) => {
                        Look::Failed(format!("is to get a volume for {selected}, not for {node}"))
                    }
                    None if step.is_seen => {
                        Look::Failed(format!("got no volume for {node}: its provisioner gave up"))
                    }
                    None => {
                        if step.written.as_ref() != Some(&claim_version) {
                            writes.push(Write::SelectNode {
                                claim: claimed(),
                                version: claim_version.clone(),
                                node: node.to_owned(),
                            });
                            step.written = Some(claim_version);
                        }
                        Look::Waits(format!("is being told to get a volume for {node}"))
                    }
                }
            }
            How::Volume(name) => {
                let Some(volume) = self.by_name.get(name).filter(|one| !one.is_deleting) else {
                    return Look::Failed(format!("was to get volume {name}, which is gone"));
                };
                if volume.is_for(&step.key, claim) {
                    step.is_seen = true;
                    return Look::Waits(format!("is not bound to volume {name} yet"));
                }
                if volume.claim.is_some() {
                    return Look::Failed(format!("was to get volume {name}, which another has"));
                }
                if step.is_seen {
                    return Look::Failed(format!("was given volume {name}, which was let go"));
                }
                let version = self.volume_versions.get(name).cloned().unwrap_or_default();
                if step.written.as_ref() != Some(&version) {
                    writes.push(Write::KeepVolume {
                        volume: name.clone(),
                        version: version.clone(),
                        claim: claimed(),
                        claim_version,
                    });
                    step.written = Some(version);
                }
                Look::Waits(format!("is being given volume {name}"))
            }
        }
    }

    /// Keeps volumes for the claims that will get them.
    pub(crate) fn promise(&mut self, preparation: &Preparation) {
        for (volume, claim) in preparation.promises() {
            self.promised.insert(volume.to_owned(), claim.clone());
            self.change_class_of(volume);
        }
    }

    /// The pod is bound, or will not be: what was kept for its claims is free, unless they have it.
    pub(crate) fn take_back(&mut self, preparation: &Preparation) {
        for (volume, claim) in preparation.promises() {
            if self.promised.get(volume) == Some(claim) {
                self.promised.remove(volume);
                self.change_class_of(volume);
            }
        }
    }

    fn change_class_of(&mut self, volume: &str) {
        if let Some(volume) = self.by_name.get(volume) {
            self.changed_classes.insert(volume.class.clone());
        }
    }
}
