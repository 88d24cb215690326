//! A request for cards, checked and compiled once a template.

use alloc::{string::String, vec::Vec};

use super::{Devices, inventory::KindIx, links::Nearness};
use crate::{
    bits::CardSet,
    request::{Apart, CardRequest, CardWant, ShareMemory, SliceChoice},
    symbols::Symbol,
};

/// What one member asks of the device layer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CardAsk {
    /// The kind of card.
    pub(crate) kind: KindIx,
    pub(crate) source: CardRequest,
    /// Members with the same word share a card.
    pub(crate) group: Option<Symbol>,
    /// Cards that serve members with this word only.
    pub(crate) exclusive: Option<Symbol>,
    /// Whole cards without any condition: the hot path.
    pub(crate) plain: bool,
}

/// What is wrong with a request for cards.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CardRequestError {
    /// A number of cards, slices, shares or replicas.
    #[error("cards.{field}: {count}; accepted: {accepted}")]
    Count {
        /// Which number.
        field: &'static str,
        /// Its value.
        count: u32,
        /// What would do.
        accepted: &'static str,
    },
    /// A share of nothing.
    #[error("cards.shares: neither memory nor compute; accepted: at least one of them above 0")]
    EmptyShare,
    /// More than a whole card.
    #[error("cards.shares.{field}: {milli}; accepted: at most 1000 (thousandths of one card)")]
    AboveOneCard {
        /// Memory or compute.
        field: &'static str,
        /// Its value.
        milli: u32,
    },
    /// A share group of members that need several cards.
    #[error(
        "cards.share_group: {group:?} with {count} parts a member; accepted: one share, slice or \
         replica a member, since the group stays on one card"
    )]
    GroupOfMany {
        /// The group.
        group: String,
        /// Parts of one member.
        count: u32,
    },
    /// Links that do not exist.
    #[error(
        "cards.near: {near} of MIG slices, shares or replicas; accepted: whole cards only, because \
         no part of a card has peer-to-peer links (NCCL does not run across MIG instances); leave it \
         out if the processes need no links"
    )]
    NoLinks {
        /// What was asked, as people write it.
        near: &'static str,
    },
    /// Nothing to choose from.
    #[error("cards.only: no card; accepted: at least as many as asked for")]
    NoCard,
    /// Too many kinds of slices for an exact answer.
    #[error("cards.slices: {count} different ones a member; accepted: at most {most}")]
    ManyProfiles {
        /// How many.
        count: usize,
        /// The limit.
        most: usize,
    },
}

/// A member asks for at most so many different profiles.
pub(crate) const MOST_PROFILES: usize = 4;

/// Checks a request by itself, without a node.
pub fn check_request(request: &CardRequest) -> Result<(), CardRequestError> {
    use CardRequestError as Error;
    let count = |field, count: u32, most: u32, accepted| {
        let fine = (1..=most).contains(&count);
        fine.then_some(()).ok_or(Error::Count {
            field,
            count,
            accepted,
        })
    };
    let most_parts = Devices::MOST_SLICES as u32;
    let parts = match &request.want {
        CardWant::Whole(whole) => {
            count("whole", *whole, u32::MAX, "at least 1")?;
            None
        }
        CardWant::Slices { slices, .. } => {
            if slices.len() > MOST_PROFILES {
                return Err(Error::ManyProfiles {
                    count: slices.len(),
                    most: MOST_PROFILES,
                });
            }
            let mut sum = 0_u32;
            for slice in slices {
                count("slices.count", slice.count, most_parts, "1 to 8 in all")?;
                sum = sum.saturating_add(slice.count);
            }
            count("slices.count", sum, most_parts, "1 to 8 in all")?;
            Some(sum)
        }
        CardWant::Shares {
            count: shares,
            memory,
            compute_milli,
            ..
        } => {
            count("shares.count", *shares, most_parts, "1 to 8")?;
            if let ShareMemory::Milli(milli @ 1001..) = *memory {
                return Err(Error::AboveOneCard {
                    field: "memory",
                    milli,
                });
            }
            if *compute_milli > 1000 {
                return Err(Error::AboveOneCard {
                    field: "compute_milli",
                    milli: *compute_milli,
                });
            }
            if matches!(memory, ShareMemory::Mib(0) | ShareMemory::Milli(0)) && *compute_milli == 0
            {
                return Err(Error::EmptyShare);
            }
            Some(*shares)
        }
        CardWant::Replicas {
            count: replicas, ..
        } => {
            count("replicas.count", *replicas, most_parts, "1 to 8")?;
            Some(*replicas)
        }
    };
    if let Some(count) = parts {
        if request.near != Nearness::Any {
            let near = request.near.word();
            return Err(Error::NoLinks { near });
        }
        if count > 1 && !request.share_group.is_empty() {
            return Err(Error::GroupOfMany {
                group: request.share_group.clone(),
                count,
            });
        }
    }
    if request.only.is_some_and(CardSet::is_empty) {
        return Err(Error::NoCard);
    }
    Ok(())
}

/// One part that a member asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    Slice(&'a SliceChoice),
    Share {
        memory: ShareMemory,
        compute_milli: u32,
    },
    Replica,
}

impl CardAsk {
    pub(crate) fn new(
        kind: KindIx,
        source: CardRequest,
        group: Option<Symbol>,
        exclusive: Option<Symbol>,
    ) -> Self {
        let bare = CardRequest::whole(source.kind.clone(), 1);
        let plain = matches!(source.want, CardWant::Whole(_))
            && CardRequest {
                want: bare.want.clone(),
                overhead: bare.overhead,
                ..source.clone()
            } == bare;
        Self {
            kind,
            source,
            group,
            exclusive,
            plain,
        }
    }

    /// Whole cards asked for; 0 when it asks for parts.
    pub(crate) fn whole(&self) -> u32 {
        match self.source.want {
            CardWant::Whole(count) => count,
            _ => 0,
        }
    }

    /// How hard it is to find room for it, for ordering only: thousandths of a card, roughly.
    pub(crate) fn size(&self) -> u32 {
        let parts = self.parts().map(|(count, part)| {
            let milli = match part {
                Part::Replica => 100,
                Part::Share {
                    memory: ShareMemory::Milli(milli),
                    compute_milli,
                } => milli.max(compute_milli),
                // Against a card of 80 GB, since no card is at hand.
                Part::Share {
                    memory: ShareMemory::Mib(mib),
                    compute_milli,
                } => (mib / 80).clamp(1, 999).max(compute_milli),
                Part::Slice(SliceChoice::AtLeast { memory_mib, .. }) => {
                    (memory_mib / 80).clamp(1, 999)
                }
                // The first digits of a profile's name are its compute slices.
                Part::Slice(SliceChoice::Profile(name)) => {
                    let digits = name.bytes().take_while(u8::is_ascii_digit);
                    let slices = digits.fold(0, |sum: u32, digit| {
                        sum.saturating_mul(10)
                            .saturating_add(u32::from(digit - b'0'))
                    });
                    slices.clamp(1, 7) * 140
                }
            };
            count.saturating_mul(milli)
        });
        let parts = parts.fold(0_u32, u32::saturating_add);
        self.whole().saturating_mul(1000).saturating_add(parts)
    }

    /// Whether it says something of whole cards that only holds of cards, not of parts that are counted
    /// like them.
    pub(crate) fn needs_cards(&self) -> bool {
        let source = &self.source;
        let is_bound = source.near != Nearness::Any || source.only.is_some();
        self.whole() > 0 && (is_bound || self.exclusive.is_some())
    }

    /// Whether it asks for MIG instances.
    pub(crate) fn asks_slices(&self) -> bool {
        matches!(self.source.want, CardWant::Slices { .. })
    }

    /// Whether it asks for shares of memory or time.
    pub(crate) fn asks_shares(&self) -> bool {
        matches!(self.source.want, CardWant::Shares { .. })
    }

    /// Cards, slices, shares or replicas asked for.
    pub(crate) fn count(&self) -> u32 {
        match &self.source.want {
            CardWant::Slices { slices, .. } => slices.iter().map(|slice| slice.count).sum(),
            CardWant::Whole(count)
            | CardWant::Shares { count, .. }
            | CardWant::Replicas { count, .. } => *count,
        }
    }

    pub(crate) fn apart(&self) -> Apart {
        match self.source.want {
            CardWant::Whole(_) => Apart::Distinct,
            CardWant::Slices { cards, .. }
            | CardWant::Shares { cards, .. }
            | CardWant::Replicas { cards, .. } => cards,
        }
    }

    /// The different parts with their numbers; nothing for whole cards.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u32, Part<'_>)> {
        let slices = match &self.source.want {
            CardWant::Slices { slices, .. } => slices.as_slice(),
            _ => &[],
        };
        let other = match self.source.want {
            CardWant::Shares {
                count,
                memory,
                compute_milli,
                ..
            } => Some((
                count,
                Part::Share {
                    memory,
                    compute_milli,
                },
            )),
            CardWant::Replicas { count, .. } => Some((count, Part::Replica)),
            _ => None,
        };
        let slices = slices
            .iter()
            .map(|slice| (slice.count, Part::Slice(&slice.slice)));
        slices.chain(other)
    }

    /// Whether a card of this product passes.
    pub(crate) fn accepts_model(&self, names: &[&str]) -> bool {
        let models: &Vec<String> = &self.source.models;
        let is_named = |model: &String| names.iter().any(|name| name.eq_ignore_ascii_case(model));
        models.is_empty() || models.iter().any(is_named)
    }
}
