//! Keys of node labels about cards, and what their values say.
//!
//! GPU feature discovery describes one product per node; a node with several kinds of cards carries
//! the labels of one of them.

/// The product, such as `NVIDIA-A100-SXM4-40GB`; see [`Product`].
pub const PRODUCT: &str = "nvidia.com/gpu.product";
/// Memory of a card in MiB.
pub const MEMORY: &str = "nvidia.com/gpu.memory";
/// How many physical cards the node has.
pub const COUNT: &str = "nvidia.com/gpu.count";
/// The family in lower case, such as `ada-lovelace`.
pub const FAMILY: &str = "nvidia.com/gpu.family";
/// Replicas of a card; 0 when MIG or sharing makes the number void.
pub const REPLICAS: &str = "nvidia.com/gpu.replicas";
/// `none`, `time-slicing` or `mps`; see [`Sharing`].
pub const SHARING_STRATEGY: &str = "nvidia.com/gpu.sharing-strategy";
/// The first number of the compute capability.
pub const COMPUTE_MAJOR: &str = "nvidia.com/gpu.compute.major";
/// The second number of the compute capability.
pub const COMPUTE_MINOR: &str = "nvidia.com/gpu.compute.minor";
/// NVLink domain and clique as `<cluster uuid>.<clique id>`; see [`Clique`].
pub const CLIQUE: &str = "nvidia.com/gpu.clique";
/// The machine's own name for itself.
pub const MACHINE: &str = "nvidia.com/gpu.machine";
/// Whether the cards can do MIG: `true` or `false`.
pub const MIG_CAPABLE: &str = "nvidia.com/mig.capable";
/// `single` or `mixed`; see [`MigStrategy`].
pub const MIG_STRATEGY: &str = "nvidia.com/mig.strategy";
/// The MIG layout that is wanted, a name in mig-manager's configuration.
pub const MIG_CONFIG: &str = "nvidia.com/mig.config";
/// How far mig-manager is; see [`MigConfigState`].
pub const MIG_CONFIG_STATE: &str = "nvidia.com/mig.config.state";
/// Whether cards with MPS are possible: `true` or `false`.
pub const MPS_CAPABLE: &str = "nvidia.com/mps.capable";
/// `true` on nodes with NVIDIA cards; set by the operator.
pub const PRESENT: &str = "nvidia.com/gpu.present";

/// Google's cloud: the product, such as `nvidia-h100-80gb`.
pub const GKE_ACCELERATOR: &str = "cloud.google.com/gke-accelerator";
/// Google's cloud: the MIG profile into which all cards are cut; its instances are counted as cards.
pub const GKE_PARTITION: &str = "cloud.google.com/gke-gpu-partition-size";
/// Google's cloud: `time-sharing` or `mps`; the replicas are counted as cards.
pub const GKE_SHARING: &str = "cloud.google.com/gke-gpu-sharing-strategy";

/// The end of a product label where the cards are shared under their own resource name.
pub const SHARED_PRODUCT: &str = "-SHARED";

/// What a product label says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product<'a> {
    /// The card's product, without the ends below.
    pub name: &'a str,
    /// Whether the cards are shared under their own resource name (`-SHARED`).
    pub shared: bool,
    /// With MIG strategy `single` the profile of all MIG devices (`-MIG-1g.5gb`); `INVALID` when
    /// they are not alike.
    pub mig: Option<&'a str>,
}

impl<'a> Product<'a> {
    /// Reads the value of a product label.
    pub fn new(value: &'a str) -> Self {
        let (rest, shared) = match value.strip_suffix(SHARED_PRODUCT) {
            Some(rest) => (rest, true),
            None => (value, false),
        };
        let (name, mig) = match rest.rsplit_once("-MIG-") {
            Some((name, profile)) => (name, Some(profile)),
            None => (rest, None),
        };
        Self { name, shared, mig }
    }
}

/// How a node offers MIG devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MigStrategy {
    /// Only whole cards.
    None,
    /// All MIG devices are alike and are counted as `nvidia.com/gpu`.
    Single,
    /// MIG devices are counted as `nvidia.com/mig-<profile>`.
    Mixed,
}

impl MigStrategy {
    /// Reads the label's value; `None` if it is none of the known ones.
    pub fn new(value: &str) -> Option<Self> {
        match value {
            "none" => Some(Self::None),
            "single" => Some(Self::Single),
            "mixed" => Some(Self::Mixed),
            _ => None,
        }
    }
}

/// How cards are shared between pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sharing {
    /// Not at all.
    None,
    /// In turns, without any bound on memory.
    TimeSlicing,
    /// Through MPS, with a bound on each client's memory.
    Mps,
}

impl Sharing {
    /// Reads the label's value; `None` if it is none of the known ones.
    pub fn new(value: &str) -> Option<Self> {
        match value {
            "none" => Some(Self::None),
            "time-slicing" => Some(Self::TimeSlicing),
            "mps" => Some(Self::Mps),
            _ => None,
        }
    }
}

/// How far mig-manager is with the wanted layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MigConfigState {
    /// Not done; the device plugin is away.
    Pending,
    /// The node restarts.
    Rebooting,
    /// The layout is the wanted one.
    Success,
    /// It did not work; what the node offers is what there is.
    Failed,
}

impl MigConfigState {
    /// Reads the label's value; `None` if it is none of the known ones.
    pub fn new(value: &str) -> Option<Self> {
        match value {
            "pending" => Some(Self::Pending),
            "rebooting" => Some(Self::Rebooting),
            "success" => Some(Self::Success),
            "failed" => Some(Self::Failed),
            _ => None,
        }
    }

    /// Whether the layout may change any moment, so that pods with cards must stay away.
    pub const fn is_changing(self) -> bool {
        matches!(self, Self::Pending | Self::Rebooting)
    }
}

/// An NVLink domain and the part of it that may talk over NVLink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Clique<'a> {
    /// The domain: one rack.
    pub cluster: &'a str,
    /// The clique within it.
    pub clique: &'a str,
}

impl<'a> Clique<'a> {
    /// Reads `<cluster uuid>.<clique id>`.
    pub fn new(value: &'a str) -> Option<Self> {
        let (cluster, clique) = value.rsplit_once('.')?;
        let whole = !cluster.is_empty() && !clique.is_empty();
        whole.then_some(Self { cluster, clique })
    }
}

/// What a label about one MIG profile of a node says, strategy `mixed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceLabel<'a> {
    /// The profile.
    pub slice: super::SliceName<'a>,
    /// What about it: one of [`SLICE_FACTS`].
    pub fact: &'static str,
}

/// What labels tell about a MIG profile.
pub const SLICE_FACTS: [&str; 13] = [
    "product",
    "count",
    "replicas",
    "sharing-strategy",
    "memory",
    "multiprocessors",
    "slices.gi",
    "slices.ci",
    "engines.copy",
    "engines.decoder",
    "engines.encoder",
    "engines.jpeg",
    "engines.ofa",
];

/// Reads a key such as `nvidia.com/mig-1g.5gb.count`.
pub fn slice_label(key: &str) -> Option<SliceLabel<'_>> {
    let rest = key.strip_prefix(super::SLICE)?;
    SLICE_FACTS.into_iter().find_map(|fact| {
        let suffix = rest.strip_suffix(fact)?.strip_suffix('.')?;
        let slice = super::SliceName::new(suffix)?;
        Some(SliceLabel { slice, fact })
    })
}
