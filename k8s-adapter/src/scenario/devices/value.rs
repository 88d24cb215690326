//! Values about cards, as people write them: modes, instances, shares, overheads.
//!
//! Each is read through serde or from its text, and says in its error what would be accepted.

use std::{fmt, str::FromStr};

use gangline::{
    bits::CardSet,
    cluster::spec::{CardMode, MigInstance},
    device::overhead::{Communicator, Overhead},
    request::ShareMemory,
};
use serde::{
    Deserialize, Deserializer,
    de::{
        Error, IntoDeserializer, MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};

use super::mib;
use crate::quantity::Quantity;

/// How cards may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Modes {
    /// All alike.
    All(ModeShape),
    /// One for each card.
    Each(Vec<ModeShape>),
}

/// How a card may be used: `whole`, `shared`, `mig-dynamic`, `{replicas: 4}` or
/// `{mig-static: [1g.5gb@0]}`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModeShape {
    /// As a whole only.
    Whole,
    /// Also in shares.
    Shared,
    /// In so many replicas.
    Replicas(u32),
    /// In the MIG instances that exist.
    MigStatic(Vec<Instance>),
    /// Also in MIG instances that are made when somebody needs them.
    MigDynamic,
}

/// An instance as `1g.5gb@0`: the profile, and where it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance(pub MigInstance);

impl FromStr for Instance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no instance; accepted: PROFILE@START, as 1g.5gb@0");
        let (profile, start) = text.split_once('@').ok_or_else(wrong)?;
        Ok(Self(MigInstance {
            profile: profile.to_owned(),
            start: start.parse().map_err(|_| wrong())?,
        }))
    }
}

/// A part of a card that a pod holds, as `0:1g.5gb@6`, `0:share` or `0:replica`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldPart {
    pub(super) card: u8,
    pub(super) part: Held,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Held {
    Instance(Instance),
    Share,
    Replica,
}

impl FromStr for HeldPart {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is no part of a card; accepted: 0:1g.5gb@6, 0:share or 0:replica");
        let (card, part) = text.split_once(':').ok_or_else(wrong)?;
        let card: u8 = card.parse().map_err(|_| wrong())?;
        if u32::from(card) >= CardSet::CAPACITY {
            return Err(wrong());
        }
        let part = match part {
            "share" => Held::Share,
            "replica" => Held::Replica,
            instance => Held::Instance(instance.parse()?),
        };
        Ok(Self { card, part })
    }
}

/// Memory of a share: `12Gi`, or a part of the card as `50%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareAmount(pub ShareMemory);

impl FromStr for ShareAmount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(percent) = text.strip_suffix('%') else {
            let mib = mib("memory", &Quantity::new(text))?;
            return Ok(Self(ShareMemory::Mib(mib)));
        };
        let milli = Quantity::new(percent.trim()).milli().ok();
        let milli = milli.and_then(|milli| u32::try_from(milli / 100).ok());
        let milli = milli.ok_or_else(|| {
            format!("memory: {text:?}; accepted: an amount as 12Gi, or a part of a card as 50%")
        })?;
        Ok(Self(ShareMemory::Milli(milli)))
    }
}

/// A share of a card.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShareShape {
    /// Its memory.
    pub memory: Option<ShareAmount>,
    /// Its processor time in cards: `500m` or `0.5`.
    pub compute: Option<Quantity>,
    /// How many; one when absent.
    pub count: Option<u32>,
}

/// A MIG instance by what it must offer.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SliceShape {
    /// Memory that must fit in it.
    pub memory: Option<Quantity>,
    /// Compute slices; any when absent.
    pub compute: u8,
    /// How many; one when absent.
    pub count: Option<u32>,
}

/// What a pod's processes take of a card besides what they say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OverheadShape {
    /// Processes with a context.
    pub processes: u16,
    /// Each loads a framework such as PyTorch.
    pub framework: bool,
    /// What a communicator of each spans.
    pub communicator: CommunicatorShape,
    /// How many communicators each has.
    pub communicators: u16,
    /// Each is an LLM engine.
    pub engine: bool,
}

/// What a communicator spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommunicatorShape {
    /// There is none.
    #[default]
    None,
    /// No other rank on the node.
    Alone,
    /// Two ranks on the node.
    Two,
    /// More ranks on the node.
    Many,
    /// Ranks on several nodes.
    MultiNode,
}

impl From<OverheadShape> for Overhead {
    fn from(shape: OverheadShape) -> Self {
        Self {
            processes: shape.processes,
            framework: shape.framework,
            communicator: match shape.communicator {
                CommunicatorShape::None => Communicator::None,
                CommunicatorShape::Alone => Communicator::Alone,
                CommunicatorShape::Two => Communicator::Two,
                CommunicatorShape::Many => Communicator::Many,
                CommunicatorShape::MultiNode => Communicator::MultiNode,
            },
            communicators: shape.communicators,
            engine: shape.engine,
        }
    }
}

impl From<&ModeShape> for CardMode {
    fn from(shape: &ModeShape) -> Self {
        match shape {
            ModeShape::Whole => Self::Whole,
            ModeShape::Shared => Self::Shared,
            ModeShape::Replicas(replicas) => Self::Replicas(*replicas),
            ModeShape::MigStatic(instances) => {
                Self::MigStatic(instances.iter().map(|one| one.0.clone()).collect())
            }
            ModeShape::MigDynamic => Self::MigDynamic,
        }
    }
}

impl<'de> Deserialize<'de> for Modes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;

        impl<'de> Visitor<'de> for OneOrMany {
            type Value = Modes;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(
                    "whole, shared, mig-dynamic, {replicas: 4} or {mig-static: [1g.5gb@0]}, \
                     or a list of them",
                )
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<Modes, E> {
                ModeShape::deserialize(word.into_deserializer()).map(Modes::All)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Modes, A::Error> {
                let mode = ModeShape::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Modes::All(mode))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Modes, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Modes::Each)
            }
        }

        deserializer.deserialize_any(OneOrMany)
    }
}
