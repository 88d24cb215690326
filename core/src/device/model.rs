//! Card models: what is known about a card when its node tells only the product's name.
//!
//! A product string (the value of the node label `nvidia.com/gpu.product`) or a PCI device id goes
//! in, a [`CardModel`] comes out: memory, multiprocessors, links and the MIG table. All of it is
//! constant data, one file per family. Nothing here is read from a node; what a node says about
//! itself (its memory label, a probed table) always wins over these defaults. A card without a model
//! is still a card: it is counted and nothing more.
//!
//! Source of the numbers: the project's hardware notes, sections 1.2 to 1.5 and 3.5, which name the
//! listing, driver source or document of each; [`Confidence`] keeps their marks.

mod ada;
mod amd;
mod ampere;
mod blackwell;
mod hopper;
mod rtx_blackwell;
mod table;
#[cfg(all(test, feature = "alloc"))]
mod tests;
mod volta_turing;

use super::{mig::Geometry, names::label::Product};

/// How a number is known. The worse of two is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Confidence {
    /// Printed by a real driver.
    Measured,
    /// Read in the source code of a driver or of a tool that runs in production.
    Code,
    /// From the vendor's documentation.
    Documented,
    /// Inferred from the other rows; to be overridden by what a node reports.
    Inferred,
    /// General knowledge; good enough for a default.
    General,
}

impl Confidence {
    /// The mark that the hardware notes use: M, C, D, I or K.
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Measured => "M",
            Self::Code => "C",
            Self::Documented => "D",
            Self::Inferred => "I",
            Self::General => "K",
        }
    }

    /// One word for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Code => "code",
            Self::Documented => "documented",
            Self::Inferred => "inferred",
            Self::General => "general",
        }
    }
}

/// A family of cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// NVIDIA Volta.
    Volta,
    /// NVIDIA Turing.
    Turing,
    /// NVIDIA Ampere.
    Ampere,
    /// NVIDIA Ada Lovelace.
    AdaLovelace,
    /// NVIDIA Hopper.
    Hopper,
    /// NVIDIA Blackwell.
    Blackwell,
    /// AMD CDNA 2.
    Cdna2,
    /// AMD CDNA 3.
    Cdna3,
}

impl Family {
    /// The name in lower case; for NVIDIA the value of the label `nvidia.com/gpu.family`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Volta => "volta",
            Self::Turing => "turing",
            Self::Ampere => "ampere",
            Self::AdaLovelace => "ada-lovelace",
            Self::Hopper => "hopper",
            Self::Blackwell => "blackwell",
            Self::Cdna2 => "cdna2",
            Self::Cdna3 => "cdna3",
        }
    }
}

/// What is known about a kind of card.
#[derive(Debug, PartialEq, Eq)]
pub struct CardModel {
    /// A short name, unique among the models, such as `H100-80GB`.
    pub name: &'static str,
    /// What nodes call it: values of `nvidia.com/gpu.product` or `amd.com/gpu.product-name`.
    pub products: &'static [&'static str],
    /// Its family.
    pub family: Family,
    /// CUDA compute capability, major and minor; `None` for cards without CUDA.
    pub compute_capability: Option<(u8, u8)>,
    /// All memory of the card in MiB, as the driver reports it.
    pub memory_mib: u32,
    /// Streaming multiprocessors, or compute units at AMD.
    pub multiprocessors: Option<u16>,
    /// NVLinks of the card; 0 where there are none, or where they need a bridge.
    pub nvlinks: u8,
    /// Whether bridges can join two cards, so that a node may have NVLinks or not.
    pub bridged: bool,
    /// PCI device ids of vendor 10DE.
    pub pci_device_ids: &'static [u16],
    /// The MIG table, if the card has one and we know it.
    pub mig: Option<&'static Geometry>,
    /// How well memory and multiprocessors are known.
    pub confidence: Confidence,
    /// What a reader must know besides; may be empty.
    pub notes: &'static str,
}

impl CardModel {
    /// A model of which name, family, memory (MiB) and multiprocessors are known, all of them
    /// general knowledge.
    const fn new(name: &'static str, family: Family, memory_mib: u32, processors: u16) -> Self {
        Self {
            name,
            products: &[],
            family,
            compute_capability: None,
            memory_mib,
            multiprocessors: Some(processors),
            nvlinks: 0,
            bridged: false,
            pci_device_ids: &[],
            mig: None,
            confidence: Confidence::General,
            notes: "",
        }
    }
}

/// All models, family by family.
static FAMILIES: [&[CardModel]; 7] = [
    volta_turing::MODELS,
    ampere::MODELS,
    ada::MODELS,
    hopper::MODELS,
    blackwell::MODELS,
    rtx_blackwell::MODELS,
    amd::MODELS,
];

/// All models, oldest family first.
pub fn models() -> impl Iterator<Item = &'static CardModel> {
    FAMILIES.into_iter().flatten()
}

/// The model that a product string names.
///
/// First one of [`CardModel::products`] or [`CardModel::name`] must be the string, letter by letter.
/// Failing that the comparison forgives what tools change on the way: the ends `-SHARED` (time
/// slicing, MPS) and `-MIG-…` (strategy `single`) are dropped, then `NVIDIA` or `Tesla` at the
/// front, then everything but letters and digits, and case does not matter. A string that names
/// several models, as `NVIDIA-GH200-480GB` does, gives `None`; see [`find_with_memory`].
///
/// O(models).
pub fn find(product: &str) -> Option<&'static CardModel> {
    only(candidates(product))
}

/// [`find`], with the memory in MiB that the node reports, to choose between models of one product
/// string: those whose memory is within a twelfth of it (switching ECC off frees up to a fifteenth).
/// A single candidate whose memory is another gives `None` too: the card is not the one we know.
///
/// With a product string that ends in `-MIG-…` the memory is the instances', and is passed over.
pub fn find_with_memory(product: &str, memory_mib: u32) -> Option<&'static CardModel> {
    if Product::new(product).mig.is_some() {
        return find(product);
    }
    let is_near =
        |model: &&CardModel| model.memory_mib.abs_diff(memory_mib) <= model.memory_mib / 12;
    only(candidates(product).filter(is_near))
}

/// The most memory in MiB that a card of a product can have, a twelfth above the tables as in
/// [`find_with_memory`]; `None` for a product that nobody knows. O(models).
pub fn most_memory_mib(product: &str) -> Option<u32> {
    let most = candidates(product).map(|model| model.memory_mib + model.memory_mib / 12);
    most.max()
}

/// The model with a PCI device id of vendor 10DE; `None` if several models have it.
pub fn find_by_pci(device_id: u16) -> Option<&'static CardModel> {
    only(models().filter(move |model| model.pci_device_ids.contains(&device_id)))
}

/// The models that a product string may mean, by the rule of [`find`].
pub fn candidates(product: &str) -> impl Iterator<Item = &'static CardModel> {
    let names = |model: &'static CardModel| model.products.iter().chain([&model.name]);
    let is_exact = move |model: &&'static CardModel| names(model).any(|name| *name == product);
    let exact_exists = models().any(|model| is_exact(&model));
    models().filter(move |model| {
        if exact_exists {
            is_exact(model)
        } else {
            names(model).any(|name| bare(name).eq(bare(product)))
        }
    })
}

/// What is left of a product string when everything is dropped that tools change.
fn bare(product: &str) -> impl Iterator<Item = char> + '_ {
    let mut name = Product::new(product).name.trim();
    for maker in ["NVIDIA", "Tesla"] {
        if let Some((front, rest)) = name.split_at_checked(maker.len())
            && front.eq_ignore_ascii_case(maker)
        {
            name = rest.trim_start_matches([' ', '-', '_']);
        }
    }
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase())
}

fn only(mut found: impl Iterator<Item = &'static CardModel>) -> Option<&'static CardModel> {
    let first = found.next()?;
    found.next().is_none().then_some(first)
}
