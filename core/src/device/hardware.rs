//! What never changes about the cards of one kind on a node: model, modes, links.
//!
//! Made from [`NodeCards`] when a node is described, checked before; nodes with equal cards share
//! one. Nothing here knows what is in use.

use alloc::{
    format,
    string::{String, ToString},
    sync::Arc,
    vec::Vec,
};

use smallvec::SmallVec;

use super::{
    ask::{CardAsk, Part},
    links::{Link, LinkMatrix, LinkTable},
    mig::{Geometry, MigState, ProfileIx},
    model::{self, CardModel, Family},
    names::label::Product,
    overhead::{self, Inside, OverheadTable},
};
use crate::{
    bits::CardSet,
    cluster::spec::{CardMode, NodeCards},
    device::Slice,
    request::{CardWant, ShareMemory, SliceChoice},
};

/// Cards of one kind that many nodes have alike.
#[derive(Debug)]
pub(crate) struct Hardware {
    /// Equal for equal hardware of one cluster.
    pub(crate) id: u32,
    /// The product, as the node names it.
    pub(crate) product: String,
    /// What prices call them: equal for cards that the same work fits on in the same way.
    pub(crate) priced_as: String,
    pub(crate) model: Option<&'static CardModel>,
    /// Memory of one card; 0: nobody told.
    pub(crate) memory_mib: u32,
    pub(crate) links: Option<LinkTable>,
    /// Cards that may be given as a whole.
    pub(crate) whole: CardSet,
    /// By card; empty when all are whole.
    pub(crate) modes: Vec<Mode>,
    /// Cards with equal modes, by their first card; empty when all are whole.
    pub(crate) alike: SmallVec<[CardSet; 2]>,
    /// Profiles of instances whose card nobody told, with their names.
    pub(crate) loose: Vec<(String, Option<ProfileIx>)>,
    /// Whether those who share a card are clients of MPS.
    pub(crate) mps: bool,
    /// What the node counts as its cards.
    pub(crate) counts: Counts,
    /// Shares of one card at most.
    pub(crate) most_shares: u32,
    /// Nothing of them is given while their MIG layout is being changed.
    pub(crate) is_changing: bool,
    /// Cards that the node does not offer: beside these, or all of these.
    pub(crate) withheld: u32,
}

/// What a node counts under the name of its cards. The labels of NVIDIA's GPU feature discovery tell, by
/// the end of the product's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    Cards,
    /// MIG instances, all of one profile (strategy `single`).
    Instances,
    /// Replicas that keep the name of the card.
    Replicas,
}

impl Counts {
    fn of(product: Product<'_>) -> Self {
        match product {
            Product { mig: Some(_), .. } => Self::Instances,
            Product { shared: true, .. } => Self::Replicas,
            Product { .. } => Self::Cards,
        }
    }

    /// What they are, to somebody who needs cards.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Cards => "cards",
            Self::Instances => "MIG strategy single",
            Self::Replicas => "replicas counted as cards",
        }
    }
}

/// How one card may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Whole,
    Shared,
    Replicas(u32),
    MigDynamic,
    /// By profile: a bit for each start where an instance exists.
    MigStatic(SmallVec<[u16; 16]>),
}

/// What one part takes of a card of some hardware.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// One of these profiles, cheapest first.
    Slice(SmallVec<[ProfileIx; 16]>),
    Share(Share),
    Replica,
}

/// What one share takes of its card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) memory_mib: u32,
    pub(crate) compute_milli: u32,
    /// 1 if it counts overheads, so that the card's reserve is kept free.
    pub(crate) reserving: u32,
}

/// What is wrong with the cards that a node is said to have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeCardsError {
    /// One mode for each card, or one for all.
    #[error("cards.modes: {modes} entries for {count} cards; accepted: none, 1 or {count}")]
    Modes {
        /// How many there are.
        modes: usize,
        /// How many cards.
        count: u32,
    },
    /// Parts of cards that cannot be told apart.
    #[error("cards.count: {count} cards that are used in parts; accepted: at most {most}")]
    ManyCards {
        /// How many cards.
        count: u32,
        /// The limit.
        most: u32,
    },
    /// A matrix for other cards.
    #[error("cards.links: a matrix of {matrix} cards for {count} cards; accepted: one of {count}")]
    Links {
        /// Cards of the matrix.
        matrix: u32,
        /// Cards of the node.
        count: u32,
    },
    /// A link that these cards do not have.
    #[error("cards.links: {link} between cards {a} and {b} of {product:?}; accepted: {accepted}")]
    ForeignLink {
        /// The one card.
        a: u32,
        /// The other one.
        b: u32,
        /// What would join them.
        link: Link,
        /// Their product.
        product: String,
        /// What can join two of them.
        accepted: String,
    },
    /// Nobody knows how this card can be cut.
    #[error(
        "cards.modes[{card}]: MIG of {product:?}; accepted: a product with MIG, see `gangline cards`"
    )]
    NoGeometry {
        /// The card.
        card: u32,
        /// Its product.
        product: String,
    },
    /// A profile that this card does not have.
    #[error("cards.modes[{card}]: MIG profile {profile:?} of {product:?}; accepted: {accepted}")]
    Profile {
        /// The card.
        card: u32,
        /// The profile.
        profile: String,
        /// The card's product.
        product: String,
        /// Profiles that it has.
        accepted: String,
    },
    /// A start that is not legal, or taken.
    #[error(
        "cards.modes[{card}]: {profile}@{start} is not legal or overlaps an instance before it; \
         accepted: a free start of the profile: {accepted}"
    )]
    Placement {
        /// The card.
        card: u32,
        /// The profile.
        profile: String,
        /// Where it should start.
        start: u8,
        /// Where it could, beside the instances before it.
        accepted: String,
    },
    /// More memory than any card of the product has.
    #[error("cards.memory_mib: {memory_mib} on a {product}; accepted: at most {most}")]
    Memory {
        /// What is said.
        memory_mib: u32,
        /// The product.
        product: String,
        /// The most that one has.
        most: u32,
    },
    /// One replica is no replica, and more than so many are a mistake.
    #[error("cards.modes[{card}]: {replicas} replicas; accepted: 2 to {most}{whose}")]
    Replicas {
        /// The card.
        card: u32,
        /// How many.
        replicas: u32,
        /// The limit.
        most: u32,
        /// Whose limit it is; empty when it holds for all.
        whose: &'static str,
    },
}

impl NodeCardsError {
    /// The card that is wrong, when the others may be right.
    pub const fn card(&self) -> Option<u32> {
        match *self {
            Self::NoGeometry { card, .. }
            | Self::Profile { card, .. }
            | Self::Placement { card, .. }
            | Self::Replicas { card, .. } => Some(card),
            Self::Modes { .. }
            | Self::ManyCards { .. }
            | Self::Links { .. }
            | Self::ForeignLink { .. }
            | Self::Memory { .. } => None,
        }
    }
}

/// The most replicas of one card. MPS has a limit of its own, the one that NVIDIA's device plugin keeps
/// to: 48 clients, 16 below compute capability 7.5 (hardware notes, section 2.2). Time slicing has none;
/// each replica is a pod's, and no node runs a thousand pods.
pub fn most_replicas(cards: &NodeCards) -> u32 {
    let capability = model_of(cards).and_then(|model| model.compute_capability);
    match (cards.mps, capability) {
        (false, _) => 1_000,
        (true, Some((..7, _) | (7, ..5))) => 16,
        (true, _) => 48,
    }
}

/// Checks the cards of a node by themselves, as the engine does before it takes them.
pub fn check_cards(cards: &NodeCards) -> Result<(), NodeCardsError> {
    use NodeCardsError as Error;
    let count = cards.count;
    if !matches!(cards.modes.len(), 0 | 1) && cards.modes.len() != count as usize {
        return Err(Error::Modes {
            modes: cards.modes.len(),
            count,
        });
    }
    let parted = cards.modes.iter().any(|mode| *mode != CardMode::Whole);
    if parted && count > CardSet::CAPACITY {
        return Err(Error::ManyCards {
            count,
            most: CardSet::CAPACITY,
        });
    }
    if let Some(matrix) = cards.links.as_ref().filter(|links| links.cards() != count) {
        return Err(Error::Links {
            matrix: matrix.cards(),
            count,
        });
    }
    let model = model_of(cards);
    if let (Some(model), Some(matrix)) = (model, &cards.links) {
        check_links(matrix, model, &cards.model)?;
    }
    let geometry = model.and_then(|model| model.mig);
    let most = model::most_memory_mib(&cards.model);
    if let Some(most) = most.filter(|&most| cards.memory_mib > most) {
        return Err(Error::Memory {
            memory_mib: cards.memory_mib,
            product: cards.model.clone(),
            most,
        });
    }
    for (card, mode) in (0_u32..).zip(&cards.modes) {
        match mode {
            &CardMode::Replicas(replicas) if !(2..=most_replicas(cards)).contains(&replicas) => {
                return Err(Error::Replicas {
                    card,
                    replicas,
                    most: most_replicas(cards),
                    whose: if cards.mps {
                        ", as cards are shared by MPS"
                    } else {
                        ""
                    },
                });
            }
            CardMode::Whole | CardMode::Shared | CardMode::Replicas(_) => {}
            CardMode::MigDynamic | CardMode::MigStatic(_) => {
                let Some(geometry) = geometry else {
                    let product = cards.model.clone();
                    return Err(Error::NoGeometry { card, product });
                };
                if let CardMode::MigStatic(instances) = mode {
                    let mut state = MigState::default();
                    for instance in instances {
                        let (profile, start) = (instance.profile.clone(), instance.start);
                        let Some(ix) = geometry.profile(&profile) else {
                            return Err(Error::Profile {
                                card,
                                profile,
                                product: cards.model.clone(),
                                accepted: names(geometry),
                            });
                        };
                        let before = state;
                        state = geometry
                            .put(state, ix, start)
                            .ok_or_else(|| Error::Placement {
                                card,
                                profile,
                                start,
                                accepted: starts(geometry.starts(before, ix)),
                            })?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// Refuses links of another vendor, and more NVLinks than a card has. How many bridges bring is not known.
fn check_links(
    matrix: &LinkMatrix,
    model: &CardModel,
    product: &str,
) -> Result<(), NodeCardsError> {
    let is_nvidia = !matches!(model.family, Family::Cdna2 | Family::Cdna3);
    let is_unknown = model.bridged || model.compute_capability.is_none();
    let most = match model.nvlinks {
        0 if is_unknown => Link::MAX_NVLINKS,
        most => most,
    };
    let pairs = (0..matrix.cards()).flat_map(|b| (0..b).map(move |a| (a, b)));
    for (a, b) in pairs {
        let Some(link) = matrix.link(a, b) else {
            continue;
        };
        let is_had = match link {
            Link::Nvlink(count) => is_nvidia && count <= most,
            Link::Xgmi { .. } => !is_nvidia,
            _ => true,
        };
        if !is_had {
            let fabric = match most {
                _ if !is_nvidia => format!(", XGMI1 to XGMI{}", Link::MAX_HOPS),
                0 => String::new(),
                most => format!(", NV1 to NV{most}"),
            };
            return Err(NodeCardsError::ForeignLink {
                a,
                b,
                link,
                product: product.to_string(),
                accepted: format!("{}{fabric}", Link::ACCEPTED_PCIE),
            });
        }
    }
    Ok(())
}

fn alike(modes: &[Mode]) -> SmallVec<[CardSet; 2]> {
    let mut sets: SmallVec<[(&Mode, CardSet); 2]> = SmallVec::new();
    for (card, mode) in modes.iter().enumerate() {
        let card = CardSet(1 << card);
        match sets.iter_mut().find(|(other, _)| *other == mode) {
            Some((_, cards)) => *cards = cards.union(card),
            None => sets.push((mode, card)),
        }
    }
    sets.into_iter().map(|(_, cards)| cards).collect()
}

/// Product, memory and what cards are given as, with how many of them.
fn priced_as(cards: &NodeCards, modes: &[Mode]) -> String {
    let parted = alike(modes).into_iter().filter_map(|alike| {
        let mode = match modes.get(alike.iter().next()? as usize)? {
            Mode::Shared => "shared".to_string(),
            Mode::Replicas(replicas) => format!("in {replicas} replicas"),
            Mode::MigDynamic | Mode::MigStatic(_) => "in instances".to_string(),
            Mode::Whole => return None,
        };
        Some(format!("{} {mode}", alike.len()))
    });
    let memory = format!(
        "{} MiB, at most {} shares",
        cards.memory_mib, cards.most_shares
    );
    let all: Vec<String> = [cards.model.clone(), memory]
        .into_iter()
        .chain(parted)
        .collect();
    all.join(", ")
}

fn starts(starts: u16) -> String {
    let starts = (0..16).filter(|start| starts & (1 << start) != 0);
    let words: Vec<String> = starts.map(|start: u8| start.to_string()).collect();
    if words.is_empty() {
        "none is left".into()
    } else {
        words.join(", ")
    }
}

fn names(geometry: &Geometry) -> String {
    let mut names = String::new();
    for profile in geometry.profiles {
        if !names.is_empty() {
            names.push_str(", ");
        }
        names.push_str(profile.name);
    }
    names
}

/// The model of a node's cards, by product and memory; `None` when nobody knows it.
pub fn model_of(cards: &NodeCards) -> Option<&'static CardModel> {
    if cards.memory_mib > 0 {
        model::find_with_memory(&cards.model, cards.memory_mib)
    } else {
        model::find(&cards.model)
    }
}

impl Hardware {
    /// Compiles checked cards; what does not pass [`check_cards`] is treated as whole cards.
    pub(crate) fn new(id: u32, cards: &NodeCards) -> Self {
        let model = model_of(cards);
        let geometry = model.and_then(|model| model.mig);
        let parted = cards.modes.iter().any(|mode| *mode != CardMode::Whole);
        let mode_of = |card: u32| {
            let one = (cards.modes.len() == 1).then(|| cards.modes.first());
            one.unwrap_or_else(|| cards.modes.get(card as usize))
        };
        let modes: Vec<Mode> = (0..if parted {
            cards.count.min(CardSet::CAPACITY)
        } else {
            0
        })
            .map(|card| match (mode_of(card), geometry) {
                (Some(CardMode::Shared), _) => Mode::Shared,
                (Some(&CardMode::Replicas(replicas)), _) => Mode::Replicas(replicas),
                (Some(CardMode::MigDynamic), Some(_)) => Mode::MigDynamic,
                (Some(CardMode::MigStatic(instances)), Some(geometry)) => {
                    let mut starts: SmallVec<[u16; 16]> =
                        geometry.profiles.iter().map(|_| 0).collect();
                    for instance in instances {
                        let profile = geometry.profile(&instance.profile);
                        let slot = profile.and_then(|ix| starts.get_mut(usize::from(ix.0)));
                        if let Some(slot) = slot {
                            *slot |= 1_u16.checked_shl(instance.start.into()).unwrap_or(0);
                        }
                    }
                    Mode::MigStatic(starts)
                }
                _ => Mode::Whole,
            })
            .collect();
        let product = Product::new(&cards.model);
        let all = CardSet::first(cards.count).unwrap_or(CardSet::EMPTY);
        let mut whole = all;
        for (card, mode) in (0_u32..).zip(&modes) {
            if matches!(mode, Mode::Replicas(_) | Mode::MigStatic(_)) {
                whole = whole.difference(CardSet(1 << card));
            }
        }
        let loose = cards.slices.keys();
        Self {
            id,
            product: cards.model.clone(),
            priced_as: priced_as(cards, &modes),
            model,
            memory_mib: if cards.memory_mib > 0 {
                cards.memory_mib
            } else if let Some(profile) = product.mig {
                let profile =
                    geometry.and_then(|geometry| geometry.get(geometry.profile(profile)?));
                profile.map_or(0, |profile| profile.memory_mib)
            } else {
                model.map_or(0, |model| model.memory_mib)
            },
            links: cards
                .links
                .as_ref()
                .filter(|links| links.cards() == cards.count)
                .map(LinkTable::new),
            whole,
            alike: alike(&modes),
            modes,
            loose: loose
                .map(|name| (name.clone(), geometry.and_then(|g| g.profile(name))))
                .collect(),
            mps: cards.mps,
            counts: Counts::of(product),
            most_shares: match cards.most_shares {
                0 => u32::MAX,
                most => most,
            },
            is_changing: cards.is_changing,
            withheld: cards.withheld,
        }
    }

    pub(crate) fn geometry(&self) -> Option<&'static Geometry> {
        self.model.and_then(|model| model.mig)
    }

    /// Whether some card may be cut into MIG instances.
    pub(crate) fn has_slices(&self) -> bool {
        let mut modes = self.modes.iter();
        modes.any(|mode| matches!(mode, Mode::MigDynamic | Mode::MigStatic(_)))
    }

    /// All units of a card that can be cut, as a mask.
    pub(crate) fn all_units(&self) -> u16 {
        let units = self.geometry().map_or(0, |geometry| geometry.units);
        1_u16
            .checked_shl(units.into())
            .map_or(u16::MAX, |bit| bit - 1)
    }

    pub(crate) fn mode(&self, card: u32) -> &Mode {
        self.modes.get(card as usize).unwrap_or(&Mode::Whole)
    }

    /// How many of these cards are given as a whole or not at all.
    pub(crate) fn whole_only_among(&self, cards: CardSet) -> u32 {
        let whole = cards.iter().filter(|&card| *self.mode(card) == Mode::Whole);
        whole.count() as u32
    }

    /// A number for a card's mode: equal for equal modes.
    pub(crate) fn alike_of(&self, card: u32) -> u32 {
        let at = self.alike.iter().position(|cards| cards.contains(card));
        at.unwrap_or(0) as u32
    }

    /// Whether the kind of card passes an ask's conditions.
    pub(crate) fn passes(&self, ask: &CardAsk) -> bool {
        let known = self.model.filter(|_| self.counts != Counts::Instances);
        let known = known.map_or("", |model| model.name);
        ask.accepts_model(&[&self.product, known])
            && self.memory_mib >= ask.source.min_card_memory_mib
            && !self.refuses_several(ask)
            && !self.lacks_cards(ask)
    }

    /// Whether what the node counts as cards are cards.
    pub(crate) fn counts_cards(&self) -> bool {
        self.counts == Counts::Cards
    }

    /// Whether an ask needs cards where the node counts parts of cards: nobody knows which of them lie on
    /// one card, whose others are on it, or how they are joined.
    pub(crate) fn lacks_cards(&self, ask: &CardAsk) -> bool {
        !self.counts_cards() && ask.needs_cards()
    }

    /// Whether it is about several replicas where a pod gets one only: NVIDIA's device plugin fails a
    /// request for more of what MPS shares, unless it is told otherwise.
    pub(crate) fn refuses_several(&self, ask: &CardAsk) -> bool {
        let several = match ask.source.want {
            CardWant::Replicas { count, .. } => count > 1,
            CardWant::Whole(count) => self.counts == Counts::Replicas && count > 1,
            _ => false,
        };
        self.mps && several
    }

    /// What the processes of shares run in.
    fn inside_share(&self) -> Inside {
        if self.mps {
            Inside::MpsClient
        } else {
            Inside::Card
        }
    }

    /// What a part of an ask takes of one of these cards; `None`: they do not have such parts.
    pub(crate) fn need(&self, ask: &CardAsk, part: Part<'_>) -> Option<Need> {
        match part {
            Part::Replica => Some(Need::Replica),
            Part::Share {
                memory,
                compute_milli,
            } => {
                let reserving = ask.source.overhead.processes > 0;
                let mut compute_milli = compute_milli;
                let memory_mib = match memory {
                    ShareMemory::Mib(0) | ShareMemory::Milli(0) => 0,
                    ShareMemory::Mib(mib) => {
                        self.memory_needed(ask, mib, self.inside_share()).total
                    }
                    // Where nobody told how much memory there is, a part of it is a part of the card.
                    ShareMemory::Milli(milli) if self.memory_mib == 0 => {
                        compute_milli = compute_milli.max(milli);
                        0
                    }
                    // A part of the card is all that the processes have, overhead and all. Never 0,
                    // which would be no limit.
                    ShareMemory::Milli(milli) => {
                        let of_card = self.memory_for_shares(reserving) * u64::from(milli) / 1000;
                        u32::try_from(of_card).unwrap_or(u32::MAX).max(1)
                    }
                };
                Some(Need::Share(Share {
                    memory_mib,
                    compute_milli,
                    reserving: u32::from(reserving && memory_mib > 0),
                }))
            }
            Part::Slice(SliceChoice::Profile(name)) => {
                let ix = self.geometry()?.profile(name)?;
                Some(Need::Slice(SmallVec::from_slice(&[ix])))
            }
            Part::Slice(&SliceChoice::AtLeast {
                memory_mib,
                compute_slices,
            }) => {
                let memory = self
                    .memory_needed(ask, memory_mib, Inside::MigInstance)
                    .total;
                // Who counts overheads counts what an idle instance holds too.
                let kept = match ask.source.overhead.processes {
                    0 => 0,
                    _ => OverheadTable::DEFAULT.reserved_mig_mib,
                };
                let memory = memory.saturating_add(kept);
                let profiles: SmallVec<[ProfileIx; 16]> =
                    self.geometry()?.cheapest(memory, compute_slices).collect();
                (!profiles.is_empty()).then_some(Need::Slice(profiles))
            }
        }
    }

    /// Units of a card that an instance takes at least; 0 for other parts.
    pub(crate) fn units_of(&self, need: &Need) -> u8 {
        let Need::Slice(profiles) = need else {
            return 0;
        };
        let profile = profiles.first().zip(self.geometry());
        profile
            .and_then(|(&ix, geometry)| geometry.get(ix))
            .map_or(0, |profile| profile.units)
    }

    /// What processes need in all that say they need so much.
    pub(crate) fn memory_needed(
        &self,
        ask: &CardAsk,
        declared: u32,
        inside: Inside,
    ) -> overhead::Need {
        let capability = self.model.and_then(|model| model.compute_capability);
        OverheadTable::DEFAULT.need_mib(declared, ask.source.overhead, inside, capability)
    }

    /// What the first part of an ask needs that says an amount of memory.
    pub(crate) fn memory_of_part(&self, ask: &CardAsk) -> Option<overhead::Need> {
        ask.parts().find_map(|(_, part)| match part {
            Part::Share {
                memory: ShareMemory::Mib(mib @ 1..),
                ..
            } => Some(self.memory_needed(ask, mib, self.inside_share())),
            Part::Slice(&SliceChoice::AtLeast { memory_mib, .. }) => {
                Some(self.memory_needed(ask, memory_mib, Inside::MigInstance))
            }
            _ => None,
        })
    }

    /// What the shares of an ask take each; `None`: it asks for none.
    pub(crate) fn share(&self, ask: &CardAsk) -> Option<Share> {
        ask.parts().find_map(|(_, part)| match part {
            Part::Share { .. } => match self.need(ask, part)? {
                Need::Share(share) => Some(share),
                Need::Slice(_) | Need::Replica => None,
            },
            Part::Slice(_) | Part::Replica => None,
        })
    }

    /// Memory of a card that its shares may take in all, with or without the card's reserve.
    pub(crate) fn memory_for_shares(&self, reserving: bool) -> u64 {
        if !reserving {
            return self.memory_mib.into();
        }
        let usable = OverheadTable::DEFAULT.usable_mib(self.memory_mib, self.inside_share());
        usable.into()
    }

    /// How a slice without a card names an entry of the list of loose profiles: by the vendor's id, which
    /// stays the same when the list changes; by its position behind [`Slice::UNNUMBERED`] where nobody
    /// numbered it. `None`: too far behind.
    pub(crate) fn loose_code(&self, at: usize) -> Option<u8> {
        let id = |(_, ix): &(String, Option<ProfileIx>)| {
            let profile = self.geometry()?.get((*ix)?)?;
            Some(profile.id).filter(|id| *id < Slice::UNNUMBERED)
        };
        let own = id(self.loose.get(at)?);
        let is_first = own.is_some() && !self.loose[..at].iter().any(|entry| id(entry) == own);
        let position = || u8::try_from(at).ok()?.checked_add(Slice::UNNUMBERED);
        let code = if is_first { own } else { position() };
        code.filter(|code| *code < Slice::SHARE)
    }

    /// The entry that a slice without a card names.
    pub(crate) fn loose_at(&self, code: u8) -> Option<usize> {
        (0..self.loose.len()).find(|&at| self.loose_code(at) == Some(code))
    }

    /// Whether a loose profile satisfies a part of an ask.
    pub(crate) fn loose_suits(&self, ask: &CardAsk, part: Part<'_>, loose: usize) -> bool {
        // A device names its loose slice by one byte.
        let is_named = self.loose_code(loose).is_some();
        let Some((name, ix)) = self.loose.get(loose).filter(|_| is_named) else {
            return false;
        };
        match part {
            Part::Slice(SliceChoice::Profile(wanted)) => {
                wanted == name
                    || ix.is_some()
                        && self
                            .geometry()
                            .and_then(|geometry| geometry.profile(wanted))
                            == *ix
            }
            Part::Slice(SliceChoice::AtLeast { .. }) => match (self.need(ask, part), ix) {
                (Some(Need::Slice(profiles)), Some(ix)) => profiles.contains(ix),
                _ => false,
            },
            Part::Share { .. } | Part::Replica => false,
        }
    }

    /// The profile with the vendor's id.
    pub(crate) fn instance(&self, id: u8) -> Option<(&'static Geometry, ProfileIx)> {
        let geometry = self.geometry()?;
        Some((geometry, geometry.profile_by_id(id)?))
    }
}

/// All hardware of a cluster, each once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    by_cards: crate::hash::Map<NodeCards, Arc<Hardware>>,
}

impl Catalog {
    /// The hardware of a node's cards, made if new.
    pub(crate) fn of(&mut self, cards: &NodeCards) -> Arc<Hardware> {
        // Health changes often and is no fact about the hardware.
        let mut key = cards.clone();
        (key.unhealthy, key.closed) = (CardSet::EMPTY, CardSet::EMPTY);
        let id = self.by_cards.len() as u32;
        self.by_cards
            .entry(key)
            .or_insert_with_key(|cards| Arc::new(Hardware::new(id, cards)))
            .clone()
    }
}
