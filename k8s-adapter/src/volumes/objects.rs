//! Claims, volumes, classes: decoded objects cut down to what decides something.
//!
//! What cannot be read becomes a problem of the object; pods that need it wait with it.

use std::collections::BTreeMap;

use gangline::{
    gang::Problem,
    request::{LabelSelector, NodeSelectorTerm},
    units::Uid,
};

use super::terms;
use crate::{
    api::{self, StringMap},
    member,
    problem::{FieldPath, Problems},
    quantity::Quantity,
    rules,
};

const SPEC: FieldPath<'static> = FieldPath::root("spec");
const STORAGE: &str = "storage";
/// Set by the volume controller once claim and volume know of each other.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// The node for which a volume shall be made.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// The class of claims that name none.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
/// Classes of it have only the volumes that are there.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
const ONE_POD: &str = "ReadWriteOncePod";

/// Namespace and name.
pub(super) type Key = (String, String);

/// What a volume must be like to do for a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) class: String,
    /// At least this, in bytes.
    pub(super) size: i64,
    /// A device without a file system.
    pub(super) block: bool,
    /// Sorted.
    pub(super) modes: Vec<Box<str>>,
    pub(super) selector: LabelSelector,
}

/// A claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) uid: Box<str>,
    /// The pod that it was made for.
    pub(super) owner: Option<Uid>,
    pub(super) is_deleting: bool,
    pub(super) is_lost: bool,
    /// Claim and volume know of each other.
    pub(super) is_bound: bool,
    pub(super) volume: String,
    pub(super) has_class: bool,
    pub(super) selected_node: Option<Box<str>>,
    pub(super) shape: Shape,
    pub(super) problem: Option<Problem>,
}

impl Claim {
    pub(super) fn read(claim: &api::PersistentVolumeClaim, problems: &mut Problems) -> Self {
        let (meta, spec) = (&claim.metadata, &claim.spec);
        let class = api::class_of(&meta.annotations, spec.storage_class_name.as_deref());
        let requests = SPEC.name("resources");
        let requests = requests.name("requests");
        let path = SPEC.name("selector");
        let selector = spec.selector.as_ref();
        let owner = meta.controller().filter(|owner| &*owner.kind == "Pod");
        let mut modes = spec.access_modes.clone();
        modes.sort();
        modes.dedup();
        Self {
            uid: meta.uid.clone(),
            owner: owner.map(|owner| {
                member::uid(&owner.uid, "Pod", meta.namespace_or_default(), &owner.name)
            }),
            is_deleting: meta.deletion_timestamp.is_some(),
            is_lost: &*claim.status.phase == "Lost",
            is_bound: !spec.volume_name.is_empty() && meta.annotations.contains_key(BIND_COMPLETED),
            volume: (&*spec.volume_name).into(),
            has_class: class.is_some(),
            selected_node: meta.annotations.get(SELECTED_NODE).cloned(),
            shape: Shape {
                class: class.unwrap_or_default().into(),
                size: size(&spec.resources.requests, &requests, problems),
                block: &*spec.volume_mode == "Block",
                modes,
                selector: selector.map_or_else(LabelSelector::default, |selector| {
                    rules::label_selector(selector, &path, problems)
                }),
            },
            problem: problems.first().cloned(),
        }
    }

    /// Whether only one pod may use it at a time.
    pub(super) fn is_for_one_pod(&self) -> bool {
        self.shape.modes.iter().any(|mode| &**mode == ONE_POD)
    }
}

fn size(amounts: &StringMap<Quantity>, path: &FieldPath<'_>, problems: &mut Problems) -> i64 {
    match amounts.get(STORAGE).map(Quantity::units) {
        Some(Ok(size)) => size,
        Some(Err(error)) => {
            problems.note("InvalidQuantity", &path.key(STORAGE), error);
            0
        }
        None => 0,
    }
}

/// A volume of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Volume {
    pub(super) class: String,
    pub(super) size: i64,
    pub(super) block: bool,
    pub(super) modes: Vec<Box<str>>,
    pub(super) labels: BTreeMap<String, String>,
    /// From where it can be reached; `None`: from everywhere.
    pub(super) reach: Option<Vec<NodeSelectorTerm>>,
    /// The one host from which it can be reached.
    pub(super) host: Option<String>,
    /// The claim that has it, or that it is kept for.
    pub(super) claim: Option<api::ClaimReference>,
    pub(super) is_available: bool,
    pub(super) is_deleting: bool,
    /// Driver and handle.
    pub(super) csi: Option<(Box<str>, Box<str>)>,
    pub(super) problem: Option<Problem>,
}

impl Volume {
    pub(super) fn read(volume: &api::PersistentVolume, problems: &mut Problems) -> Self {
        let (meta, spec) = (&volume.metadata, &volume.spec);
        let labels = meta.labels.iter();
        let path = SPEC.name("nodeAffinity");
        let path = path.name("required");
        let path = path.name("nodeSelectorTerms");
        let required = spec
            .node_affinity
            .as_ref()
            .and_then(|affinity| affinity.required.as_ref());
        let reach: Option<Vec<NodeSelectorTerm>> = required.map(|selector| {
            let terms = selector.node_selector_terms.iter().enumerate();
            terms
                .map(|(index, term)| rules::node_selector_term(term, &path.index(index), problems))
                .collect()
        });
        let csi = spec.csi.as_ref();
        Self {
            class: api::class_of(&meta.annotations, Some(&spec.storage_class_name))
                .unwrap_or_default()
                .into(),
            size: size(&spec.capacity, &SPEC.name("capacity"), problems),
            block: &*spec.volume_mode == "Block",
            modes: spec.access_modes.clone(),
            labels: labels
                .map(|(key, value)| (key.into(), (&**value).into()))
                .collect(),
            host: reach.as_deref().and_then(terms::host).map(str::to_owned),
            reach,
            claim: spec.claim_ref.clone(),
            is_available: &*volume.status.phase == "Available",
            is_deleting: meta.deletion_timestamp.is_some(),
            csi: csi.map(|csi| (csi.driver.clone(), csi.volume_handle.clone())),
            problem: problems.first().cloned(),
        }
    }

    /// Whether it is kept for this claim.
    pub(super) fn is_for(&self, key: &Key, claim: &Claim) -> bool {
        self.claim.as_ref().is_some_and(|of| {
            *of.namespace == *key.0
                && *of.name == *key.1
                && (of.uid.is_empty() || of.uid == claim.uid)
        })
    }

    /// Whether it would do for a claim, as far as it is not taken.
    pub(super) fn suits(&self, shape: &Shape) -> bool {
        self.problem.is_none()
            && self.is_available
            && !self.is_deleting
            && self.class == shape.class
            && self.size >= shape.size
            && self.block == shape.block
            && shape.modes.iter().all(|mode| self.modes.contains(mode))
            && shape.selector.matches(&self.labels)
    }

    /// Whether it can be reached from a node.
    pub(super) fn reaches(&self, node: &str, labels: &BTreeMap<String, String>) -> bool {
        let reach = self.reach.as_ref();
        reach.is_none_or(|terms| terms.iter().any(|term| term.matches(node, labels)))
    }
}

/// A class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Class {
    /// Who makes volumes; empty: nobody.
    pub(super) provisioner: Box<str>,
    /// Claims are bound when the node of their first pod is known.
    pub(super) waits: bool,
    /// Where volumes may be made; `None`: everywhere.
    pub(super) allowed: Option<Vec<NodeSelectorTerm>>,
    /// It is the class of claims that name none.
    pub(super) is_default: bool,
}

impl Class {
    pub(super) fn read(class: &api::StorageClass) -> Self {
        let provisioner = &*class.provisioner;
        let default = class.metadata.annotations.get(DEFAULT_CLASS);
        Self {
            provisioner: match provisioner {
                NO_PROVISIONER => Box::default(),
                _ => provisioner.into(),
            },
            waits: &*class.volume_binding_mode == "WaitForFirstConsumer",
            allowed: terms::topology(&class.allowed_topologies),
            is_default: default.is_some_and(|word| &**word == "true"),
        }
    }
}

/// Storage that is left for a class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) class: String,
    /// The largest volume that can be made, in bytes; `None`: nobody knows.
    pub(super) largest: Option<i64>,
    /// Nodes that reach it: one term without tests reaches every node, `None` no node.
    pub(super) nodes: Option<NodeSelectorTerm>,
}

impl Left {
    pub(super) fn read(capacity: &api::CsiStorageCapacity, problems: &mut Problems) -> Self {
        let path = FieldPath::root("nodeTopology");
        let given = [
            ("maximumVolumeSize", &capacity.maximum_volume_size),
            ("capacity", &capacity.capacity),
        ];
        let given = given
            .into_iter()
            .find_map(|(field, amount)| Some((field, amount.as_ref()?)));
        let largest = given.and_then(|(field, amount)| match amount.units() {
            Ok(units) => Some(units),
            Err(error) => {
                problems.note("InvalidQuantity", &FieldPath::root(field), error);
                None
            }
        });
        let nodes = capacity.node_topology.as_ref().map(|selector| {
            let selector = rules::label_selector(selector, &path, problems);
            let tests = selector.requirements.into_iter();
            NodeSelectorTerm {
                tests: tests.map(gangline::request::NodeTest::Label).collect(),
            }
        });
        Self {
            class: (&*capacity.storage_class_name).into(),
            largest,
            nodes,
        }
    }
}
