//! What a pod asks for: resource amounts and annotations to one [`CardRequest`].
//!
//! The amounts say how many cards, slices or replicas; an annotation or HAMi's amounts may say that
//! each is a part of a card; further annotations are conditions. A contradiction is noted, and what
//! the resources say holds. Whatever stands there, the request passes [`check_request`], so that a
//! pod that runs counts for what can be counted.

use std::collections::{BTreeMap, BTreeSet};

use gangline::{
    device::{
        CardRequestError, Devices, check_request,
        links::Nearness,
        model,
        names::{CardKind, ResourceMeaning, TASK_PRIORITY, meaning},
        overhead::Overhead,
    },
    request::{Apart, CardRequest, CardWant, ShareMemory, SliceChoice, SliceRequest},
};

use super::{
    ANNOTATIONS, Annotations, NVIDIA, PART_OF_A_CARD, card_numbers, hami, is_vgpu, kai, mib, milli,
    overhead, settle::WITH_ITS_GANG,
};
use crate::{
    annotations::{
        CARD_MEMORY, CARDS as APART, EXCLUSIVE, IDS, MODELS, NEAR, NO_PEER_TO_PEER, OVERHEAD,
        SHARE_COMPUTE, SHARE_GROUP, SHARE_MEMORY, SLICE, nearest,
    },
    api,
    problem::{FieldPath, Problems},
};

const SPEC: FieldPath<'static> = FieldPath::root("spec");
/// The front of the names of MIG devices.
const MIG: &str = "nvidia.com/mig-";

/// Amounts of a pod that are about cards.
#[derive(Debug, Default)]
pub(crate) struct Asked<'a> {
    whole: Vec<(&'static CardKind, u32)>,
    replicas: Vec<(&'static CardKind, &'a str, u32)>,
    slices: Vec<(&'a str, SliceRequest)>,
    vgpu: bool,
}

impl<'a> Asked<'a> {
    /// Takes note of an amount above 0 if it is about cards; `false`: it is a plain resource.
    pub(crate) fn take(&mut self, name: &'a str, amount: i64, problems: &mut Problems) -> bool {
        let found = match meaning(name) {
            None if name == TASK_PRIORITY => return true,
            Some(ResourceMeaning::Part(part)) if is_vgpu(part) => {
                self.vgpu = true;
                return true;
            }
            Some(
                found @ (ResourceMeaning::Cards(_)
                | ResourceMeaning::SharedCards(_)
                | ResourceMeaning::Slice(_)),
            ) => found,
            None if name.starts_with(MIG) => {
                // As a plain resource it would wait for ever, without a word.
                let near = near_profile(&name[MIG.len()..]);
                let near = near.map(|near| format!("; did you mean {MIG}{near}?"));
                problems.note(
                    "UnknownProfile",
                    &SPEC,
                    format_args!(
                        "{name}; accepted: {MIG}PROFILE such as {MIG}1g.5gb{}",
                        near.unwrap_or_default()
                    ),
                );
                return false;
            }
            _ => return false,
        };
        let Ok(count) = u32::try_from(amount) else {
            problems.note(
                "QuantityTooLarge",
                &SPEC,
                format_args!(
                    "{name}: {amount} cards in all; accepted: at most {}",
                    u32::MAX
                ),
            );
            return true;
        };
        match found {
            ResourceMeaning::Cards(kind) => self.whole.push((kind, count)),
            ResourceMeaning::SharedCards(kind) => self.replicas.push((kind, name, count)),
            ResourceMeaning::Slice(slice) => {
                let slice = SliceChoice::Profile(slice.to_string());
                self.slices.push((name, SliceRequest { count, slice }));
            }
            _ => {}
        }
        true
    }

    /// The one way in which a pod may ask for cards. The others are noted, and counted as plain
    /// resources, so that a pod that runs like this takes nobody's room by surprise.
    fn only(
        self,
        resources: &mut BTreeMap<String, i64>,
        problems: &mut Problems,
    ) -> Option<(String, CardWant)> {
        let mut ways: Vec<(&str, &str, CardWant, u32)> = Vec::new();
        for (kind, count) in self.whole {
            let name = kind.resource;
            ways.push((name, name, CardWant::Whole(count), count));
        }
        let mut slices = Vec::new();
        for (name, slice) in self.slices {
            let count = slice.count;
            slices.push(slice);
            let want = CardWant::Slices {
                slices: slices.clone(),
                cards: Apart::Distinct,
            };
            match ways.last_mut() {
                // All slices of a pod are one wish.
                Some(way) if matches!(way.2, CardWant::Slices { .. }) => way.2 = want,
                _ => ways.push((name, NVIDIA, want, count)),
            }
        }
        for (kind, name, count) in self.replicas {
            let cards = Apart::Any;
            let want = CardWant::Replicas { count, cards };
            ways.push((name, kind.resource, want, count));
        }
        let mut ways = ways.into_iter();
        let (first, kind, want, _) = ways.next()?;
        for (name, _, _, count) in ways {
            problems.note(
                "MixedCards",
                &SPEC,
                format_args!("asks for {first} and {name}; accepted: one kind of cards in a pod"),
            );
            resources.insert(name.into(), count.into());
        }
        Some((kind.into(), want))
    }
}

/// The profile of some model that is written almost like this.
fn near_profile(word: &str) -> Option<&'static str> {
    let geometries = model::models().filter_map(|model| model.mig);
    let profiles = geometries.flat_map(|geometry| geometry.profiles);
    // Resources call those with attributes otherwise.
    let plain = profiles.filter(|profile| !profile.name.contains(['+', '-']));
    let names: BTreeSet<&str> = plain.map(|profile| profile.name).collect();
    nearest(word, &names.into_iter().collect::<Vec<_>>())
}

/// How each card that a pod asks for is cut.
pub(super) struct Cut {
    /// The annotation or resource that says so.
    pub(super) said_by: &'static str,
    pub(super) each: Each,
    /// How many; `None`: as many as it asks for cards, or one.
    pub(super) count: Option<u32>,
    pub(super) apart: Apart,
    /// Memory in MiB that each card has to have, whatever it is cut into.
    pub(super) card_memory_mib: u32,
    /// What counts when the pod does not say.
    pub(super) overhead: Overhead,
}

/// A part of a card.
pub(super) enum Each {
    Slice {
        memory_mib: u32,
        compute_slices: u8,
    },
    Share {
        memory: ShareMemory,
        compute_milli: u32,
    },
}

/// The request for cards of a pod with these amounts; amounts that do not fit in are added to
/// `resources`.
pub(crate) fn request(
    pod: &api::Pod,
    asked: Asked<'_>,
    resources: &mut BTreeMap<String, i64>,
    problems: &mut Problems,
) -> Option<CardRequest> {
    if kai::is_reservation(pod) {
        return None;
    }
    kai::complain_of_misspelt(pod, problems);
    let vgpu = asked.vgpu;
    let base = asked.only(resources, problems);
    let mut annotations = Annotations {
        all: &pod.metadata.annotations,
        problems,
    };
    let mut cuts = vec![own_slice(&mut annotations), own_share(&mut annotations)];
    if vgpu {
        cuts.push(hami::share(pod, annotations.problems));
    }
    cuts.push(kai::share(&mut annotations));
    let mut cuts = cuts.into_iter().flatten();
    let cut = cuts.next();
    if let (Some(cut), Some(other)) = (&cut, cuts.next()) {
        annotations.problems.note(
            "MixedCards",
            &SPEC,
            format_args!(
                "asks for parts of cards by {} and by {}; accepted: one of them",
                cut.said_by, other.said_by
            ),
        );
    }
    let mut overhead = Overhead::NONE;
    let mut min_card_memory_mib = 0;
    let (kind, want) = match (base, cut) {
        (None, None) => return None,
        (Some(base), None) => base,
        (base, Some(cut)) => match (cut_up(base.as_ref(), &cut), base) {
            (Some(want), base) => {
                overhead = cut.overhead;
                min_card_memory_mib = cut.card_memory_mib;
                (base.map_or_else(|| NVIDIA.into(), |(kind, _)| kind), want)
            }
            (None, None) => return None,
            (None, Some(base)) => {
                annotations.problems.note(
                    "MixedCards",
                    &SPEC,
                    format_args!(
                        "asks for {} and by {} for parts of cards; accepted: one of them",
                        name_of(&base),
                        cut.said_by
                    ),
                );
                base
            }
        },
    };
    let mut request = CardRequest {
        kind,
        want,
        overhead,
        min_card_memory_mib,
        ..CardRequest::default()
    };
    let namespace = pod.metadata.namespace_or_default();
    add_conditions(&mut request, namespace, &mut annotations);
    if !pod.spec.node_name.is_empty()
        && let Some(group) = kai::only_group(&pod.metadata.labels)
        && matches!(request.want, CardWant::Shares { count: 1, .. })
        && request.share_group.is_empty()
    {
        request.share_group = format!("kai {group}");
    }
    if let Err(error) = check_request(&request) {
        note(&error, problems);
        make_countable(&mut request, &error);
    }
    Some(request)
}

/// What is asked for when each of the cards is cut; `None` when they cannot be.
fn cut_up(base: Option<&(String, CardWant)>, cut: &Cut) -> Option<CardWant> {
    let asked = match base {
        None => None,
        // KAI's annotations are for pods that ask for no GPU.
        Some((_, CardWant::Whole(count))) if cut.count.is_none() => Some(*count),
        // An instance by name is what the container gets, whatever an annotation says of its size.
        Some(_) => return None,
    };
    let count = cut.count.or(asked).unwrap_or(1);
    let cards = cut.apart;
    Some(match cut.each {
        Each::Slice {
            memory_mib,
            compute_slices,
        } => {
            let slice = SliceChoice::AtLeast {
                memory_mib,
                compute_slices,
            };
            CardWant::Slices {
                slices: [SliceRequest { count, slice }].into(),
                cards,
            }
        }
        Each::Share {
            memory,
            compute_milli,
        } => CardWant::Shares {
            count,
            memory,
            compute_milli,
            cards,
        },
    })
}

fn name_of((kind, want): &(String, CardWant)) -> String {
    match want {
        CardWant::Whole(_) => kind.clone(),
        CardWant::Slices { .. } => "MIG devices".into(),
        CardWant::Shares { .. } => "shares".into(),
        CardWant::Replicas { .. } => format!("{kind}.shared"),
    }
}

fn own_slice(annotations: &mut Annotations<'_, '_>) -> Option<Cut> {
    let accepted = "memory with its unit, and compute slices if they matter, such as 20Gi or 20Gi,2c \
                    (a profile by name is a resource, such as nvidia.com/mig-1g.10gb)";
    let (memory_mib, compute_slices) = annotations.read(SLICE, accepted, |text| {
        let (memory, compute) = match text.split_once(',') {
            Some((memory, compute)) => (memory, compute.trim().strip_suffix('c')?.parse().ok()?),
            None => (text, 0),
        };
        Some((mib(memory.trim())?, compute))
    })?;
    Some(Cut {
        said_by: SLICE,
        each: Each::Slice {
            memory_mib,
            compute_slices,
        },
        count: None,
        apart: Apart::Distinct,
        card_memory_mib: 0,
        overhead: Overhead::PROCESS,
    })
}

fn own_share(annotations: &mut Annotations<'_, '_>) -> Option<Cut> {
    let accepted = "an amount with its unit such as 20Gi, or a part of the card such as 25%";
    let memory = annotations.read(SHARE_MEMORY, accepted, |text| {
        if text.ends_with('%') {
            milli(text).map(ShareMemory::Milli)
        } else {
            mib(text).map(ShareMemory::Mib)
        }
    });
    let compute = annotations.read(SHARE_COMPUTE, PART_OF_A_CARD, milli);
    if memory.is_none() && compute.is_none() {
        return None;
    }
    Some(Cut {
        said_by: if memory.is_some() {
            SHARE_MEMORY
        } else {
            SHARE_COMPUTE
        },
        each: Each::Share {
            memory: memory.unwrap_or(ShareMemory::Mib(0)),
            compute_milli: compute.unwrap_or(0),
        },
        count: None,
        apart: Apart::Distinct,
        card_memory_mib: 0,
        overhead: if memory.is_some() {
            Overhead::PROCESS
        } else {
            Overhead::NONE
        },
    })
}

fn add_conditions(
    request: &mut CardRequest,
    namespace: &str,
    annotations: &mut Annotations<'_, '_>,
) {
    let near = annotations.read(NEAR, "nvlink-island, numa-node, any", |text| match text {
        "any" => Some(Nearness::Any),
        "nvlink-island" => Some(Nearness::NvlinkIsland),
        "numa-node" => Some(Nearness::NumaNode),
        _ => None,
    });
    // Parts of cards have no links; who says that it needs none has nothing to ask of them.
    let needs_none = annotations.flag(NO_PEER_TO_PEER);
    if request.whole_cards() > 0 || !needs_none {
        request.near = near.unwrap_or_default();
    }
    let models = annotations.read(
        MODELS,
        "names of products with commas between them",
        |text| {
            let models = text.split(',').map(|model| model_name(model.trim()));
            let models: Vec<String> = models.collect();
            models
                .iter()
                .all(|model| !model.is_empty())
                .then_some(models)
        },
    );
    request.models = models.unwrap_or_default();
    let memory = annotations.read(CARD_MEMORY, "an amount with its unit such as 79Gi", mib);
    if let Some(memory) = memory {
        request.min_card_memory_mib = memory.max(request.min_card_memory_mib);
    }
    let ids = "numbers of cards from 0 to 63 such as 0,1 or 0,4-7";
    request.only = annotations.read(IDS, ids, card_numbers);
    let group = annotations.read(SHARE_GROUP, "one word", |text| {
        let is_word = !text.is_empty() && !text.contains(char::is_whitespace);
        is_word.then(|| format!("{namespace}/{text}"))
    });
    match request.want {
        CardWant::Whole(_) if group.is_some() => {
            annotations.refuse(SHARE_GROUP, "on a pod that asks for a part of a card");
        }
        _ => request.share_group = group.unwrap_or_default(),
    }
    if annotations.flag(EXCLUSIVE) {
        request.exclusive = WITH_ITS_GANG.into();
    }
    if let Some(given) = annotations.read(OVERHEAD, overhead::ACCEPTED, overhead::parse) {
        request.overhead = given;
    }
    let apart = annotations.read(APART, "distinct, same, any", |text| match text {
        "distinct" => Some(Apart::Distinct),
        "same" => Some(Apart::Same),
        "any" => Some(Apart::Any),
        _ => None,
    });
    match (&mut request.want, apart) {
        (
            CardWant::Slices { cards, .. }
            | CardWant::Shares { cards, .. }
            | CardWant::Replicas { cards, .. },
            Some(apart),
        ) => *cards = apart,
        (CardWant::Whole(count), Some(Apart::Same)) if *count > 1 => {
            annotations.refuse(APART, "distinct, for whole cards");
        }
        (CardWant::Whole(_), Some(_)) | (_, None) => {}
    }
    let least = distinct_cards(&request.want);
    if request.only.is_some_and(|only| only.len() < least) {
        let accepted = format_args!("at least {least} cards, as many as it asks for");
        annotations.refuse(IDS, accepted);
    }
}

/// On how many cards at least the devices lie.
fn distinct_cards(want: &CardWant) -> u32 {
    match want {
        CardWant::Slices {
            slices,
            cards: Apart::Distinct,
        } => {
            let counts = slices.iter().map(|slice| slice.count);
            counts.fold(0, u32::saturating_add)
        }
        CardWant::Whole(count)
        | CardWant::Shares {
            count,
            cards: Apart::Distinct,
            ..
        }
        | CardWant::Replicas {
            count,
            cards: Apart::Distinct,
        } => *count,
        _ => 1,
    }
}

/// The name of a product or model as it is written where nodes are read: case does not matter, and
/// what `gangline cards` takes for a model is that model. Other names stay what they are.
fn model_name(text: &str) -> String {
    let same = model::models()
        .flat_map(|model| model.products.iter().chain([&model.name]))
        .find(|name| name.eq_ignore_ascii_case(text));
    let known = same
        .copied()
        .or_else(|| model::find(text).map(|model| model.name));
    known.unwrap_or(text).to_owned()
}

/// Notes why a request is refused, at the field that causes it.
fn note(error: &CardRequestError, problems: &mut Problems) {
    let (code, field) = match error {
        CardRequestError::NoLinks { .. } => ("NoPeerToPeer", ANNOTATIONS.key(NEAR)),
        CardRequestError::GroupOfMany { .. } => ("InvalidCards", ANNOTATIONS.key(SHARE_GROUP)),
        CardRequestError::NoCard => ("InvalidCards", ANNOTATIONS.key(IDS)),
        _ => ("InvalidCards", SPEC),
    };
    problems.note(code, &field, words(error));
}

/// What is wrong, without the core's name for the field.
fn words(error: &CardRequestError) -> String {
    match error {
        CardRequestError::Count {
            field,
            count,
            accepted,
        } => {
            let parts = field.strip_suffix(".count").unwrap_or(field);
            format!("{count} {parts} in a pod; accepted: {accepted}")
        }
        CardRequestError::ManyProfiles { count, most } => {
            format!("{count} different MIG profiles in a pod; accepted: at most {most}")
        }
        CardRequestError::EmptyShare
        | CardRequestError::AboveOneCard { .. }
        | CardRequestError::GroupOfMany { .. }
        | CardRequestError::NoLinks { .. }
        | CardRequestError::NoCard => {
            let text = error.to_string();
            let message = text.split_once(": ").map(|(_, message)| message.to_owned());
            message.unwrap_or(text)
        }
    }
}

/// Takes from a refused request what is wrong with it: a pod that waits waits with its problem, one
/// that runs counts for what can be counted.
fn make_countable(request: &mut CardRequest, error: &CardRequestError) {
    let most = Devices::MOST_SLICES as u32;
    match &mut request.want {
        CardWant::Whole(_) => return,
        CardWant::Slices { slices, .. } => {
            if let CardRequestError::ManyProfiles { most, .. } = error {
                slices.truncate(*most);
            }
            let mut left = most;
            for slice in slices.iter_mut() {
                slice.count = slice.count.min(left);
                left -= slice.count;
            }
            slices.retain(|slice| slice.count > 0);
        }
        CardWant::Shares { count, .. } | CardWant::Replicas { count, .. } => {
            *count = (*count).min(most);
        }
    }
    request.near = Nearness::Any;
    request.share_group.clear();
}
