//! What cards a node has: allocatable amounts, labels and annotations to one [`NodeCards`] a kind.
//!
//! The device plugin's amounts are the truth about how many there are; labels and annotations say
//! what they are and how they are used. Each of these is tried on its own: one that does not go with
//! the rest is noted and left out, and the node stays with plain cards.

use std::collections::BTreeMap;

use gangline::{
    bits::CardSet,
    cluster::{NodeCards, spec::CardMode},
    device::{
        check_cards,
        links::{self, LinkError, LinkMatrix},
        model::most_memory_mib,
        names::{
            CardKind, ResourceMeaning, card_kind,
            label::{self, MigConfigState, Product, Sharing},
            meaning,
        },
    },
};

use super::{
    ANNOTATIONS, LABELS, NVIDIA,
    declared::{Declared, declared},
    hami, is_vgpu, kai,
};
use crate::{
    annotations::{CARDS, LINKS, nearest},
    api,
    problem::{FieldPath, Problems},
    quantity::excerpt,
};

mod described;

/// More instances of a profile than any machine has are no instances.
const MOST_INSTANCES: u32 = CardSet::CAPACITY * 8;

/// Allocatable amounts of a node that are about cards.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offered {
    /// Cards of other kinds than NVIDIA's.
    others: Vec<(&'static CardKind, u32)>,
    /// NVIDIA's cards.
    cards: u32,
    replicas: u32,
    slices: BTreeMap<String, u32>,
    /// Some number of MIG devices is listed, if only 0.
    lists_slices: bool,
}

impl Offered {
    /// Takes note of an amount if it is about cards; `false`: it is another resource.
    pub(crate) fn take(
        &mut self,
        name: &str,
        amount: i64,
        field: &FieldPath<'_>,
        problems: &mut Problems,
    ) -> bool {
        let count = u32::try_from(amount);
        match (meaning(name), count) {
            // What there is of them is in HAMi's own annotation, card by card.
            (Some(ResourceMeaning::Part(part)), _) => return is_vgpu(part),
            (Some(ResourceMeaning::Cards(kind)), Ok(count)) if kind.resource == NVIDIA => {
                self.cards = count;
            }
            (Some(ResourceMeaning::Cards(kind)), Ok(count)) => self.others.push((kind, count)),
            (Some(ResourceMeaning::SharedCards(_)), Ok(count)) => self.replicas = count,
            (Some(ResourceMeaning::Slice(slice)), Ok(count)) => {
                self.lists_slices = true;
                if count > MOST_INSTANCES {
                    problems.note(
                        "QuantityTooLarge",
                        field,
                        format_args!("{count}; accepted: at most {MOST_INSTANCES}"),
                    );
                } else if count > 0 {
                    self.slices.insert(slice.to_string(), count);
                }
            }
            _ => return false,
        }
        true
    }
}

/// The cards that a node has, by kind.
pub(crate) fn node_cards(
    node: &api::Node,
    offered: &Offered,
    problems: &mut Problems,
) -> Vec<NodeCards> {
    let mut reader = Reader { node, problems };
    let mut found = Vec::new();
    let others = offered.others.iter().filter(|(_, count)| *count > 0);
    for &(kind, count) in others {
        found.push(NodeCards {
            kind: kind.resource.into(),
            count,
            model: reader.label(kind.model_label).into(),
            ..NodeCards::default()
        });
    }
    // The annotations are about one kind of cards: a node that has several has NVIDIA's, or the first.
    let only_others = offered.cards == 0 && offered.replicas == 0 && !offered.lists_slices;
    match found.first_mut().filter(|_| only_others) {
        Some(cards) => {
            let physical = reader.capacity(&cards.kind).max(cards.count);
            let said = reader.said();
            reader.describe(cards, said, offered, physical);
        }
        None => found.extend(reader.nvidia(offered)),
    }
    let silent = offered.others.iter().filter(|(_, count)| *count == 0);
    found.extend(silent.filter_map(|(kind, _)| reader.all_withheld(kind)));
    found
}

/// Changes the cards if what comes out can be; otherwise notes why not.
fn attempt(
    cards: &mut NodeCards,
    change: impl FnOnce(&mut NodeCards),
    field: &FieldPath<'_>,
    problems: &mut Problems,
) -> bool {
    let mut changed = cards.clone();
    change(&mut changed);
    match check_cards(&changed) {
        Ok(()) => {
            *cards = changed;
            true
        }
        Err(error) => {
            problems.note("InvalidCards", field, error);
            false
        }
    }
}

/// The links between so many of these cards, whichever they are: known when all pairs are joined alike,
/// as behind NVSwitch. On which NUMA nodes they are is not known then.
fn any_of(matrix: &LinkMatrix, count: u32) -> Option<LinkMatrix> {
    let all = matrix.cards();
    if count == all {
        return Some(matrix.clone());
    }
    let link = matrix.link(0, 1)?;
    let pairs = (0..all).flat_map(|a| (0..a).map(move |b| (a, b)));
    let mut links = pairs.map(|(a, b)| matrix.link(a, b));
    if count < 2 || count > all || links.any(|other| other != Some(link)) {
        return None;
    }
    let row = |card| (0..count).map(move |other| (other != card).then_some(link));
    let rows: Vec<Vec<_>> = (0..count).map(|card| row(card).collect()).collect();
    LinkMatrix::new(&rows, &vec![None; count as usize], Vec::new()).ok()
}

struct Reader<'a, 'p> {
    node: &'a api::Node,
    problems: &'p mut Problems,
}

impl<'a> Reader<'a, '_> {
    /// NVIDIA's cards, if there are any.
    fn nvidia(&mut self, offered: &Offered) -> Option<NodeCards> {
        let kind = card_kind(NVIDIA)?;
        let mut said = self.said();
        let mut cards = NodeCards {
            kind: NVIDIA.into(),
            count: offered.cards,
            model: self.product(kind.model_label),
            memory_mib: self.memory(),
            slices: offered.slices.clone(),
            mps: Sharing::new(self.label(label::SHARING_STRATEGY)) == Some(Sharing::Mps),
            ..NodeCards::default()
        };
        if offered.cards > 0 && offered.replicas == 0 {
            self.name_replicas(&mut cards);
        }
        // Cards that there are, whether they can be used or not.
        let mut physical = self.capacity(NVIDIA).max(offered.cards);
        if offered.replicas > 0 {
            physical = self.add_replicas(&mut cards, &mut said, offered.replicas);
        }
        if offered.cards > 0 {
            match self.add_registered(&mut cards) {
                Some(registered) => physical = registered,
                None => self.doubt_count(&cards),
            }
        }
        self.describe(&mut cards, said, offered, physical);
        self.name_withheld_parts(offered);
        let is_there = cards.count > 0 || !cards.slices.is_empty();
        let is_plain = offered.replicas == 0 && Product::new(&cards.model).mig.is_none();
        let is_silent = is_plain && !self.node.metadata.annotations.contains_key(hami::REGISTER);
        let mut cards = if !is_there && is_silent {
            self.all_withheld(kind).unwrap_or(cards)
        } else {
            cards
        };
        self.withhold_while_changing(&mut cards);
        (cards.count > 0 || !cards.slices.is_empty()).then_some(cards)
    }

    /// Says which instances and replicas the device plugin knows and does not offer; whole cards are
    /// counted, see [`NodeCards::withheld`].
    fn name_withheld_parts(&mut self, offered: &Offered) {
        let path = FieldPath::root("status");
        let path = path.name("allocatable");
        for (name, _) in self.node.status.capacity.iter() {
            let there = self.capacity(name);
            let given = match meaning(name) {
                Some(ResourceMeaning::Slice(slice)) => offered.slices.get(&*slice.to_string()),
                Some(ResourceMeaning::SharedCards(_)) => Some(&offered.replicas),
                _ => continue,
            };
            let given = given.copied().unwrap_or(0);
            if given < there {
                self.problems.note(
                    "NotAllocatable",
                    &path.key(name),
                    format_args!(
                        "{given} of the {there} in status.capacity: the others are out of order or held \
                         back, and are not given"
                    ),
                );
            }
        }
    }

    /// Cards of a kind that the node has and of which it offers none: all are out of order, or their layout
    /// is being changed. Pods that run may hold some.
    fn all_withheld(&self, kind: &CardKind) -> Option<NodeCards> {
        let count = self.capacity(kind.resource);
        let closed = CardSet::first(count).filter(|_| count > 0)?;
        Some(NodeCards {
            kind: kind.resource.into(),
            count,
            model: self.label(kind.model_label).into(),
            closed,
            withheld: count,
            ..NodeCards::default()
        })
    }

    /// What annotations, and labels that put a node into a pool, say of cards.
    fn describe(
        &mut self,
        cards: &mut NodeCards,
        said: Declared,
        offered: &Offered,
        physical: u32,
    ) {
        let is_said = !said.modes.is_empty();
        self.add_declared(cards, said, offered, physical);
        let model = cards.model.clone();
        let product = Product::new(&model);
        let are_cards = !product.shared && product.mig.is_none();
        let plain = are_cards && !is_said && cards.modes.is_empty();
        if plain && cards.kind == NVIDIA && kai::is_in_pool(&self.node.metadata.labels) {
            let change = |cards: &mut NodeCards| cards.modes = [CardMode::Shared].into();
            attempt(cards, change, &LABELS, self.problems);
        }
        // Links are between cards.
        if are_cards {
            self.add_links(cards, physical);
            cards.withheld = physical.saturating_sub(cards.count);
        }
    }

    /// What somebody wrote about the cards.
    fn said(&mut self) -> Declared {
        let text = self.node.metadata.annotations.get(CARDS);
        text.map(|text| declared(text, self.problems))
            .unwrap_or_default()
    }

    fn label(&self, key: &str) -> &'a str {
        self.node.metadata.labels.get(key).map_or("", |value| value)
    }

    /// The product, by NVIDIA's label, or else by those of Google's cloud, with the ends that NVIDIA's
    /// has where parts of cards are counted as cards.
    fn product(&self, label: &str) -> String {
        let product = self.label(label);
        if !product.is_empty() {
            return product.into();
        }
        let mut product = String::from(self.label(label::GKE_ACCELERATOR));
        if product.is_empty() {
            return product;
        }
        let partition = self.label(label::GKE_PARTITION);
        if !partition.is_empty() {
            product.push_str("-MIG-");
            product.push_str(partition);
        }
        if !self.label(label::GKE_SHARING).is_empty() {
            product.push_str(label::SHARED_PRODUCT);
        }
        product
    }

    /// A number in a label; nothing when it is not there.
    fn number(&mut self, key: &str) -> Option<u32> {
        let text = self.node.metadata.labels.get(key)?;
        let number = text.parse().ok();
        if number.is_none() {
            let message = format_args!("{text:?}; accepted: a whole number");
            self.problems
                .note("InvalidLabel", &LABELS.key(key), message);
        }
        number
    }

    /// The memory of one card in MiB that the node's label tells; 0 without one that can be true.
    fn memory(&mut self) -> u32 {
        let told = self.number(label::MEMORY).unwrap_or(0);
        let product = card_kind(NVIDIA).map_or("", |kind| self.label(kind.model_label));
        match most_memory_mib(product).filter(|&most| told > most) {
            None => told,
            Some(most) => {
                let message = format_args!("{told} MiB on a {product}; accepted: at most {most}");
                self.problems
                    .note("InvalidLabel", &LABELS.key(label::MEMORY), message);
                0
            }
        }
    }

    /// How many cards the device plugin knows, healthy or not.
    fn capacity(&self, kind: &str) -> u32 {
        let capacity = self.node.status.capacity.get(kind);
        let cards = capacity.and_then(|capacity| capacity.units().ok());
        cards
            .and_then(|cards| u32::try_from(cards).ok())
            .unwrap_or(0)
    }

    /// Makes the product's name say that what the node counts as cards are replicas of cards, where
    /// the number of replicas does.
    fn name_replicas(&mut self, cards: &mut NodeCards) {
        let each = self.number(label::REPLICAS).unwrap_or(0);
        if each > 1 && !Product::new(&cards.model).shared {
            cards.model.push_str(label::SHARED_PRODUCT);
        }
        if cards.mps && Product::new(&cards.model).shared {
            self.problems.note(
                "ReplicasLikeCards",
                &LABELS.key(label::SHARING_STRATEGY),
                format_args!(
                    "\"mps\", and the replicas are called {NVIDIA}: a pod that asks for more than one is \
                     placed, and refused by the device plugin; accepted: replicas that are renamed \
                     (renameByDefault: true), of which no pod gets two"
                ),
            );
        }
    }

    /// Says so when there are more cards than a label counts: shares that nobody describes would pass for
    /// cards.
    fn doubt_count(&mut self, cards: &NodeCards) {
        let is_shared = Product::new(&cards.model).shared;
        let cards = cards.count;
        let Some(count) = self.number(label::COUNT).filter(|_| !is_shared) else {
            return;
        };
        if cards > count {
            self.problems.note(
                "UncountedCards",
                &LABELS.key(label::COUNT),
                format_args!(
                    "{count}, but there are {cards} {NVIDIA}, which count as so many cards; accepted: at \
                     least {cards}, or what says that they are shares (the annotation {})",
                    hami::REGISTER
                ),
            );
        }
    }

    fn refuse(&mut self, annotation: &str, message: impl std::fmt::Display) {
        let field = ANNOTATIONS.key(annotation);
        self.problems.note("InvalidCards", &field, message);
    }

    /// Adds cards that are shared by renamed replicas, behind the whole ones; returns how many cards
    /// there are in all.
    fn add_replicas(&mut self, cards: &mut NodeCards, said: &mut Declared, replicas: u32) -> u32 {
        let whole = cards.count;
        if let [CardMode::Replicas(of_each)] = said.modes.as_slice()
            && !replicas.is_multiple_of(*of_each)
        {
            let message = format!(
                "replicas: {of_each}; accepted: a number of which {NVIDIA}.shared: {replicas} is a multiple"
            );
            self.refuse(CARDS, message);
            said.modes.clear();
        }
        let (physical, of_each) = match said.modes.as_slice() {
            [CardMode::Replicas(of_each)] => {
                let all = replicas / (*of_each).max(1);
                (whole.saturating_add(all), *of_each)
            }
            _ => (
                self.number(label::COUNT).unwrap_or(0),
                self.number(label::REPLICAS).unwrap_or(0),
            ),
        };
        let agree = of_each >= 2
            && replicas.is_multiple_of(of_each)
            && replicas / of_each <= physical.saturating_sub(whole);
        let (shared, of_each) = if agree {
            (replicas / of_each, of_each)
        } else {
            self.problems.note(
                "UnknownReplicas",
                &LABELS.key(label::REPLICAS),
                format_args!(
                    "{NVIDIA}.shared: {replicas}, which is not {of_each} ({}) for each of at most \
                     {physical} cards ({}), so they count as one card; accepted: labels that agree, or \
                     the annotation {CARDS} such as {{replicas: 4}}",
                    label::REPLICAS,
                    label::COUNT
                ),
            );
            (1, replicas)
        };
        let added = attempt(
            cards,
            |cards| {
                cards.count = whole.saturating_add(shared);
                if whole == 0 {
                    cards.modes = [CardMode::Replicas(of_each)].into();
                } else if cards.count <= CardSet::CAPACITY {
                    let wholes = (0..whole).map(|_| CardMode::Whole);
                    let shares = (0..shared).map(|_| CardMode::Replicas(of_each));
                    cards.modes = wholes.chain(shares).collect();
                } else {
                    // Too many to be told apart, which is what the check says.
                    cards.modes = [CardMode::Replicas(of_each)].into();
                }
            },
            &LABELS.key(label::REPLICAS),
            self.problems,
        );
        if added && agree {
            physical
        } else {
            cards.count
        }
    }

    /// Cards as HAMi's agent lists them; returns how many there are. Where there is such a list, the device
    /// plugin counts shares, so none of its numbers stands for cards.
    fn add_registered(&mut self, cards: &mut NodeCards) -> Option<u32> {
        let text = self.node.metadata.annotations.get(hami::REGISTER)?;
        let field = ANNOTATIONS.key(hami::REGISTER);
        cards.slices.clear();
        let Some(listed) = hami::cards(text.trim()) else {
            let message = format_args!(
                "{:?}, so its cards are not used; accepted: {}",
                excerpt(text),
                hami::ACCEPTED
            );
            self.problems.note("InvalidAnnotation", &field, message);
            cards.count = 0;
            return Some(0);
        };
        let count = listed.len() as u32;
        let Some(all) = CardSet::first(count) else {
            let message = format_args!(
                "{count} cards, so they are not used; accepted: at most {}",
                CardSet::CAPACITY
            );
            self.problems.note("InvalidCards", &field, message);
            cards.count = 0;
            return Some(0);
        };
        if kai::is_in_pool(&self.node.metadata.labels) {
            let message = "a node of KAI's too, and neither knows of the other's shares, so its cards are \
                           not used; accepted: one of them on a node";
            self.problems.note("TwoSharers", &field, message);
            (cards.count, cards.closed) = (count, all);
            return Some(count);
        }
        // A node's cards have one model; where they differ, those count of which there are most.
        let alike = |card: &hami::Card| (card.model(), card.memory_mib);
        let most = listed.iter().enumerate().max_by_key(|(at, card)| {
            let same = listed.iter().filter(|other| alike(other) == alike(card));
            (same.count(), std::cmp::Reverse(*at))
        });
        let most = most.map(|(_, card)| alike(card)).unwrap_or_default();
        let numbers = |is_meant: &dyn Fn(&hami::Card) -> bool| {
            let meant = (0..).zip(&listed).filter(|(_, card)| is_meant(card));
            meant.fold(CardSet::EMPTY, |set, (number, _)| {
                set.union(CardSet(1_u64.checked_shl(number).unwrap_or(0)))
            })
        };
        let sick = numbers(&|card| !card.health);
        let closed = numbers(&|card| alike(card) != most);
        if listed.iter().any(|card| alike(card) != most) {
            let message = format_args!(
                "cards that differ, so only those are used that are {} of {} MiB; accepted: cards that \
                 are alike",
                most.0, most.1
            );
            self.problems.note("CardsDiffer", &field, message);
        }
        let (product, mut memory) = most.clone();
        if cards.model.is_empty() {
            cards.model = product;
        }
        if let Some(real) = most_memory_mib(&cards.model).filter(|&real| memory > real) {
            let message = format_args!(
                "{memory} MiB on a {}, which has at most {real}; that counts, since what is promised \
                 beyond it is not there",
                cards.model
            );
            self.problems.note("InvalidCards", &field, message);
            memory = real;
        }
        let mut modes: Vec<CardMode> = listed.iter().map(hami::Card::mode).collect();
        if modes.windows(2).all(|pair| pair[0] == pair[1]) {
            modes.truncate(1);
        }
        (cards.count, cards.memory_mib) = (count, memory);
        (cards.unhealthy, cards.closed) = (sick, closed);
        // Where those that are used differ in it, fewer are right on all.
        let used = listed.iter().filter(|card| alike(card) == most);
        let most_shares = used.map(|card| card.most_shares).filter(|&most| most > 0);
        cards.most_shares = most_shares.min().unwrap_or(0);
        let change = |cards: &mut NodeCards| cards.modes = modes;
        if !attempt(cards, change, &field, self.problems) {
            cards.closed = all;
        }
        Some(count)
    }

    /// How the cards reach each other: what the node says, else what its product fixes.
    fn add_links(&mut self, cards: &mut NodeCards, physical: u32) {
        let label = self.number(label::COUNT);
        let Some(text) = self.node.metadata.annotations.get(LINKS) else {
            if cards.slices.is_empty() {
                let all = label.unwrap_or(0).max(physical).max(cards.count);
                let board = links::for_product(&cards.model, all);
                cards.links = board.and_then(|board| any_of(&board, cards.count));
            }
            return;
        };
        match LinkMatrix::from_text(text) {
            // Some cards are away or in MIG mode, and nobody says which.
            Ok(matrix)
                if cards.count < matrix.cards()
                    && (matrix.cards() == physical || Some(matrix.cards()) == label) =>
            {
                let change = |cards: &mut NodeCards| cards.links = any_of(&matrix, cards.count);
                attempt(cards, change, &ANNOTATIONS.key(LINKS), self.problems);
            }
            Ok(matrix) => {
                let change = |cards: &mut NodeCards| cards.links = Some(matrix);
                attempt(cards, change, &ANNOTATIONS.key(LINKS), self.problems);
            }
            Err(error) => {
                let field = ANNOTATIONS.key(LINKS);
                let machines: Vec<&str> = links::names().collect();
                let near = match &error {
                    LinkError::Unknown { name } => nearest(name, &machines),
                    _ => None,
                };
                let near = near.map(|near| format!("; did you mean {near}?"));
                let message = format_args!("{error}{}", near.unwrap_or_default());
                self.problems.note("InvalidLinks", &field, message);
            }
        }
    }

    /// Gives nothing out while the node's MIG layout is being changed: pods would be refused there.
    fn withhold_while_changing(&mut self, cards: &mut NodeCards) {
        let text = self.label(label::MIG_CONFIG_STATE);
        if !MigConfigState::new(text).is_some_and(MigConfigState::is_changing) {
            return;
        }
        self.problems.note(
            "MigReconfiguring",
            &LABELS.key(label::MIG_CONFIG_STATE),
            format_args!("{text:?}, so its cards are not used; accepted: success, failed"),
        );
        cards.is_changing = true;
    }
}
