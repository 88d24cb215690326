//! Which resource names count whole cards. The one table; everything else is a plain resource.
//!
//! Not in it, because they count something else than whole cards: `nvidia.com/mig-*` (slices),
//! `*.shared` (time slices), `nvidia.com/gpumem` (memory), `aws.amazon.com/neuroncore` (cores).

/// A kind of cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardKind {
    /// The resource name that counts them.
    pub resource: &'static str,
    /// The node label that names the product; empty when there is none.
    pub model_label: &'static str,
}

/// All kinds of cards. To add one, add a line.
pub const CARD_KINDS: [CardKind; 10] = [
    card("nvidia.com/gpu", "nvidia.com/gpu.product"),
    card("amd.com/gpu", "amd.com/gpu.product-name"),
    card("gpu.intel.com/i915", "gpu.intel.com/product"),
    card("gpu.intel.com/xe", "gpu.intel.com/product"),
    card("habana.ai/gaudi", ""),
    card("google.com/tpu", "cloud.google.com/gke-tpu-accelerator"),
    card("aws.amazon.com/neuron", ""),
    card("huawei.com/Ascend910", ""),
    card("cambricon.com/mlu", ""),
    card("mthreads.com/gpu", ""),
];

const fn card(resource: &'static str, model_label: &'static str) -> CardKind {
    CardKind {
        resource,
        model_label,
    }
}

/// The kind of cards that a resource name counts, if it counts cards.
pub fn card_kind(resource: &str) -> Option<&'static CardKind> {
    CARD_KINDS.iter().find(|kind| kind.resource == resource)
}
