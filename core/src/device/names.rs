//! What resource names and node labels say about cards, both ways.
//!
//! A resource name such as `nvidia.com/mig-1g.10gb.me` goes in, a [`ResourceMeaning`] comes out, and
//! printing the meaning gives the name back. [`label`] holds the keys of node labels and reads
//! their values. Nothing is allocated, nothing is decided: a name without a meaning here is a plain
//! resource. Sources: hardware notes 1.6, 1.13, 2.1, 2.3 and 8.3 (device plugin, GPU feature
//! discovery, mig-manager and HAMi sources).

use core::fmt;

pub mod label;
#[cfg(all(test, feature = "alloc"))]
mod tests;

use super::mig::{Geometry, Profile, ProfileIx};

/// Who makes a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Vendor {
    /// NVIDIA.
    Nvidia,
    /// AMD.
    Amd,
    /// Intel, Gaudi included.
    Intel,
    /// Google TPU.
    Google,
    /// AWS Neuron.
    Aws,
    /// Huawei Ascend.
    Huawei,
    /// Cambricon.
    Cambricon,
    /// Moore Threads.
    MooreThreads,
}

/// A kind of whole cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardKind {
    /// The resource name that counts them.
    pub resource: &'static str,
    /// The node label that names the product; empty when there is none.
    pub model_label: &'static str,
    /// Who makes them.
    pub vendor: Vendor,
}

/// All kinds of cards. To add one, add a line.
pub const CARD_KINDS: [CardKind; 10] = [
    card("nvidia.com/gpu", label::PRODUCT, Vendor::Nvidia),
    card("amd.com/gpu", "amd.com/gpu.product-name", Vendor::Amd),
    card("gpu.intel.com/i915", "gpu.intel.com/product", Vendor::Intel),
    card("gpu.intel.com/xe", "gpu.intel.com/product", Vendor::Intel),
    card("habana.ai/gaudi", "", Vendor::Intel),
    card(
        "google.com/tpu",
        "cloud.google.com/gke-tpu-accelerator",
        Vendor::Google,
    ),
    card("aws.amazon.com/neuron", "", Vendor::Aws),
    card("huawei.com/Ascend910", "", Vendor::Huawei),
    card("cambricon.com/mlu", "", Vendor::Cambricon),
    card("mthreads.com/gpu", "", Vendor::MooreThreads),
];

const fn card(resource: &'static str, model_label: &'static str, vendor: Vendor) -> CardKind {
    CardKind {
        resource,
        model_label,
        vendor,
    }
}

/// The kind of cards that a resource name counts, if it counts whole cards.
pub fn card_kind(resource: &str) -> Option<&'static CardKind> {
    CARD_KINDS.iter().find(|kind| kind.resource == resource)
}

/// What a resource name counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceMeaning<'a> {
    /// Whole cards: `nvidia.com/gpu`. A node with MIG strategy `single` counts its MIG devices
    /// under this name too, and one that shares cards without renaming its replicas; the node's
    /// labels tell.
    Cards(&'static CardKind),
    /// Replicas of cards, by time slicing or MPS: `nvidia.com/gpu.shared`.
    SharedCards(&'static CardKind),
    /// MIG devices: `nvidia.com/mig-1g.10gb`.
    Slice(SliceName<'a>),
    /// Replicas of MIG devices: `nvidia.com/mig-1g.10gb.shared`.
    SharedSlice(SliceName<'a>),
    /// Partitions of AMD cards: `amd.com/cpx_nps4`.
    Partition(Partition<'a>),
    /// An amount of a card, not a device: `nvidia.com/gpumem`.
    Part(CardPart),
}

/// A MIG profile as a resource name spells it: `1g.10gb.me` for the profile `1g.10gb+me`. Prints as
/// the profile's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SliceName<'a> {
    suffix: &'a str,
}

/// A compute and memory mode of an AMD card, such as `cpx_nps4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Partition<'a> {
    /// `spx`, `dpx`, `tpx`, `qpx` or `cpx`: into how many devices the compute units are divided.
    pub compute: &'a str,
    /// `nps1`, `nps2`, `nps4` or `nps8`: into how many parts the memory is divided.
    pub memory: &'a str,
}

/// A resource that counts a part of a card, in its own unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CardPart {
    /// `nvidia.com/gpumem` (HAMi): MiB of a card's memory.
    MemoryMib,
    /// `nvidia.com/gpumem-percentage` (HAMi): percent of a card's memory.
    MemoryPercent,
    /// `nvidia.com/gpucores` (HAMi): percent of a card's compute.
    ComputePercent,
    /// `aws.amazon.com/neuroncore`: cores of a Neuron device.
    NeuronCores,
}

impl CardPart {
    const ALL: [Self; 4] = [
        Self::MemoryMib,
        Self::MemoryPercent,
        Self::ComputePercent,
        Self::NeuronCores,
    ];

    /// The resource name.
    pub const fn resource(self) -> &'static str {
        match self {
            Self::MemoryMib => "nvidia.com/gpumem",
            Self::MemoryPercent => "nvidia.com/gpumem-percentage",
            Self::ComputePercent => "nvidia.com/gpucores",
            Self::NeuronCores => "aws.amazon.com/neuroncore",
        }
    }
}

/// HAMi's word for which of the processes on a card goes first. It counts nothing: no node lists it, and
/// HAMi's own scheduler passes over it. Source: HAMi, `resourcePriority` of its chart.
pub const TASK_PRIORITY: &str = "nvidia.com/priority";

/// The front of MIG resource names.
const SLICE: &str = "nvidia.com/mig-";
/// The end of the names of replicas that are renamed.
const SHARED: &str = ".shared";
/// The front of the names of AMD's partitions.
const PARTITION: &str = "amd.com/";

/// What a resource name counts, if it is about cards. O(length).
pub fn meaning(resource: &str) -> Option<ResourceMeaning<'_>> {
    let (bare, shared) = match resource.strip_suffix(SHARED) {
        Some(bare) => (bare, true),
        None => (resource, false),
    };
    if let Some(suffix) = bare.strip_prefix(SLICE) {
        let slice = SliceName::new(suffix)?;
        return Some(if shared {
            ResourceMeaning::SharedSlice(slice)
        } else {
            ResourceMeaning::Slice(slice)
        });
    }
    if let Some(kind) = card_kind(bare) {
        return match (shared, kind.vendor) {
            (false, _) => Some(ResourceMeaning::Cards(kind)),
            // Only NVIDIA's device plugin renames replicas.
            (true, Vendor::Nvidia) => Some(ResourceMeaning::SharedCards(kind)),
            (true, _) => None,
        };
    }
    if let Some(modes) = resource.strip_prefix(PARTITION) {
        return Partition::new(modes).map(ResourceMeaning::Partition);
    }
    let part = CardPart::ALL
        .into_iter()
        .find(|part| part.resource() == resource);
    part.map(ResourceMeaning::Part)
}

impl fmt::Display for ResourceMeaning<'_> {
    /// Writes the resource name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cards(kind) => f.write_str(kind.resource),
            Self::SharedCards(kind) => write!(f, "{}{SHARED}", kind.resource),
            Self::Slice(slice) => write!(f, "{SLICE}{}", slice.suffix),
            Self::SharedSlice(slice) => write!(f, "{SLICE}{}{SHARED}", slice.suffix),
            Self::Partition(modes) => write!(f, "{PARTITION}{}_{}", modes.compute, modes.memory),
            Self::Part(part) => f.write_str(part.resource()),
        }
    }
}

impl<'a> SliceName<'a> {
    /// Reads the end of a resource name; `None` if it is not `<n>g.<n>gb` with attributes behind it.
    pub fn new(suffix: &'a str) -> Option<Self> {
        let (slices, rest) = suffix.split_once("g.")?;
        let (memory, attributes) = rest.split_once("gb")?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let is_attribute = |letter: u8| letter.is_ascii_lowercase() || b".-".contains(&letter);
        let good = is_number(slices)
            && is_number(memory)
            && (attributes.is_empty() || attributes.starts_with(['.', '-']))
            && attributes.bytes().all(is_attribute);
        good.then_some(Self { suffix })
    }

    /// As it stands in the resource name.
    pub fn suffix(&self) -> &'a str {
        self.suffix
    }

    /// The profile of a geometry that it names. O(profiles).
    pub fn profile(&self, geometry: &Geometry) -> Option<ProfileIx> {
        let is_named = |profile: &Profile| profile.names().any(|name| self.is(name));
        geometry
            .indices()
            .find(|ix| geometry.get(*ix).is_some_and(is_named))
    }

    /// Whether it is the resource form of a profile name: each `+` is a dot there.
    pub fn is(&self, profile: &str) -> bool {
        let spelled = profile.bytes().map(|b| if b == b'+' { b'.' } else { b });
        spelled.eq(self.suffix.bytes())
    }
}

impl fmt::Display for SliceName<'_> {
    /// Writes the profile's name: dots behind the memory become `+`, except inside `me.all`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.suffix.find("gb").map_or(0, |at| at + "gb".len());
        let (front, attributes) = self.suffix.split_at(end);
        f.write_str(front)?;
        let mut before = "";
        for (at, word) in attributes.split('.').enumerate() {
            if at > 0 {
                let joint = if before == "me" && word == "all" {
                    "."
                } else {
                    "+"
                };
                f.write_str(joint)?;
            }
            f.write_str(word)?;
            before = word;
        }
        Ok(())
    }
}

/// A profile's name as the end of a resource name: prints `1g.10gb.me` for `1g.10gb+me`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceSuffix<'a>(pub &'a str);

impl fmt::Display for SliceSuffix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.0.split('+').enumerate() {
            if at > 0 {
                f.write_str(".")?;
            }
            f.write_str(part)?;
        }
        Ok(())
    }
}

impl<'a> Partition<'a> {
    fn new(modes: &'a str) -> Option<Self> {
        let (compute, memory) = modes.split_once('_')?;
        let known = ["spx", "dpx", "tpx", "qpx", "cpx"].contains(&compute)
            && ["nps1", "nps2", "nps4", "nps8"].contains(&memory);
        known.then_some(Self { compute, memory })
    }
}
