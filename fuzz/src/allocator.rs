//! The cards of one node under any sequence of allocating, freeing and failing: what is given is
//! there, asked for and nobody else's, by a judge that shares nothing with the allocator; the
//! capacity is what can be given; and giving back is exact.

use arbitrary::{Arbitrary, Unstructured};
use gangline::{
    bits::CardSet,
    cluster::{CardMode, MigInstance, NodeCards, NodeSpec},
    device::{
        Devices, NodeAllocator,
        links::{LinkMatrix, Nearness},
        model_of,
        overhead::Overhead,
    },
    request::{Apart, CardRequest, CardWant, ShareMemory, SliceChoice, SliceRequest, Template},
};

use super::engine::events::cards::{Room, take};

const KIND: &str = "nvidia.com/gpu";
const PRODUCTS: [&str; 6] = [
    "NVIDIA-A30",
    "NVIDIA-A100-SXM4-80GB",
    "NVIDIA-H100-80GB-HBM3",
    "NVIDIA-B200",
    "Tesla-T4",
    "unheard of",
];
const WORDS: [&str; 4] = ["", "", "a", "b"];
const MOST_CARDS: u8 = 9;
const MOST_ACTS: usize = 24;
/// Different requests of a run: few, so that requests compete and are given back.
const REQUESTS: usize = 6;

/// How one card may be used.
#[derive(Clone, Copy, Debug, Arbitrary)]
enum Mode {
    Whole,
    Shared,
    Replicas(u8),
    Dynamic,
    /// Instances that exist: profile and start, as far as they are legal.
    Static([(u8, u8); 4]),
}

#[derive(Clone, Copy, Debug, Arbitrary)]
struct Node {
    product: u8,
    count: u8,
    modes: [Mode; 3],
    pairs: bool,
    loose: Option<(u8, u8)>,
}

#[derive(Clone, Copy, Debug, Arbitrary)]
enum Want {
    Whole(u8),
    Slices([(u8, u8); 2]),
    AtLeast(u8, u8),
    Share(u8, u8),
    Part(u8, u8),
    Replicas(u8),
}

#[derive(Clone, Copy, Debug, Arbitrary)]
struct Request {
    want: Want,
    apart: u8,
    near: u8,
    only: Option<u8>,
    group: u8,
    owner: u8,
    processes: u8,
}

#[derive(Clone, Copy, Debug, Arbitrary)]
enum Act {
    Allocate(u8),
    AllocateAgain(u8),
    Release(u8),
    Fail(u8),
}

impl Node {
    fn cards(self) -> NodeCards {
        let count = 1 + u32::from(self.count % MOST_CARDS);
        let mut cards = NodeCards {
            kind: KIND.into(),
            count,
            model: (*pick(&PRODUCTS, self.product)).into(),
            memory_mib: if self.product & 0x80 == 0 { 0 } else { 12_000 },
            most_shares: u32::from(self.product >> 5 & 3),
            ..NodeCards::default()
        };
        if self.pairs {
            // A T4 has no NVLink.
            let joined = if cards.model == "Tesla-T4" {
                "PIX"
            } else {
                "NV4"
            };
            let side = |card: u32| (0..count).map(move |other| link(card, other, joined));
            let rows = (0..count).map(|card| side(card).collect::<Vec<_>>().join(" "));
            let text = rows.collect::<Vec<_>>().join("\n");
            cards.links = LinkMatrix::from_text(&text).ok();
        }
        let geometry = model_of(&cards).and_then(|model| model.mig);
        let modes = self.modes.into_iter().cycle().take(count as usize);
        cards.modes = modes
            .map(|mode| match (mode, geometry) {
                (Mode::Shared, _) => CardMode::Shared,
                (Mode::Replicas(replicas), _) => CardMode::Replicas(2 + u32::from(replicas % 6)),
                (Mode::Dynamic, Some(_)) => CardMode::MigDynamic,
                (Mode::Static(instances), Some(geometry)) => {
                    let mut state = gangline::device::mig::MigState::default();
                    let mut there = Vec::new();
                    for (profile, start) in instances {
                        let profile = pick(geometry.profiles, profile).name;
                        let start = start % geometry.units;
                        let ix = geometry.profile(profile);
                        if let Some(after) = ix.and_then(|ix| geometry.put(state, ix, start)) {
                            state = after;
                            let profile = profile.into();
                            there.push(MigInstance { profile, start });
                        }
                    }
                    CardMode::MigStatic(there)
                }
                _ => CardMode::Whole,
            })
            .collect();
        if let (Some((profile, loose)), Some(geometry)) = (self.loose, geometry) {
            let profile = pick(geometry.profiles, profile).name.into();
            cards.slices.insert(profile, u32::from(loose % 5));
        }
        cards
    }
}

/// Pairs of cards joined by a link of their own, all else through the processors.
fn link(card: u32, other: u32, joined: &str) -> String {
    let name = match (card == other, card / 2 == other / 2) {
        (true, _) => "X",
        (_, true) => joined,
        _ => "SYS",
    };
    name.into()
}

impl Request {
    fn request(self, cards: &NodeCards) -> CardRequest {
        let geometry = model_of(cards).and_then(|model| model.mig);
        let slice = |(profile, count): (u8, u8)| SliceRequest {
            count: u32::from(count % 4),
            slice: SliceChoice::Profile(match geometry {
                Some(geometry) => pick(geometry.profiles, profile).name.into(),
                None => "1g.10gb".into(),
            }),
        };
        let apart = *pick(&[Apart::Any, Apart::Distinct, Apart::Same], self.apart);
        let want = match self.want {
            Want::Whole(count) => CardWant::Whole(u32::from(count % 10)),
            Want::Slices(slices) => CardWant::Slices {
                // One of none would be refused: leave it out.
                slices: slices
                    .map(slice)
                    .into_iter()
                    .filter(|s| s.count > 0)
                    .collect(),
                cards: apart,
            },
            Want::AtLeast(memory, compute) => CardWant::Slices {
                slices: vec![SliceRequest {
                    count: 1 + u32::from(memory & 1),
                    slice: SliceChoice::AtLeast {
                        memory_mib: u32::from(memory) * 400,
                        compute_slices: compute % 8,
                    },
                }],
                cards: apart,
            },
            Want::Share(memory, compute) => CardWant::Shares {
                count: 1 + u32::from(compute % 3),
                memory: ShareMemory::Mib(u32::from(memory) * 400),
                compute_milli: u32::from(compute) * 4,
                cards: apart,
            },
            Want::Part(memory, compute) => CardWant::Shares {
                count: 1 + u32::from(compute % 3),
                memory: ShareMemory::Milli(u32::from(memory) * 4),
                compute_milli: u32::from(compute) * 4,
                cards: apart,
            },
            Want::Replicas(count) => CardWant::Replicas {
                count: u32::from(count % 9),
                cards: apart,
            },
        };
        let whole = matches!(want, CardWant::Whole(_));
        CardRequest {
            kind: KIND.into(),
            near: if whole {
                *pick(&Nearness::ALL, self.near)
            } else {
                Nearness::Any
            },
            only: self.only.map(|only| CardSet(only.into())),
            share_group: (*pick(&WORDS, self.group)).into(),
            exclusive: (*pick(&WORDS, self.owner)).into(),
            overhead: Overhead {
                processes: u16::from(self.processes & 1),
                framework: self.processes & 2 != 0,
                ..Overhead::NONE
            },
            want,
            ..CardRequest::default()
        }
    }
}

fn pick<T>(from: &[T], at: u8) -> &T {
    &from[usize::from(at) % from.len()]
}

/// Judges one more that is given; `newest`: by every condition of its request.
fn judge(node: &NodeSpec, room: &mut Room, given: &(Template, Devices), newest: bool) {
    if let Err(error) = take(node, room, &given.0, &given.1, newest) {
        panic!("{error}: {given:?} on {node:?}");
    }
}

/// See the module.
pub fn allocator(data: &[u8]) {
    let mut source = Unstructured::new(data);
    let Ok((node, requests)) = <(Node, [Request; REQUESTS])>::arbitrary(&mut source) else {
        return;
    };
    let cards = node.cards();
    let mut allocator = NodeAllocator::new(&cards).expect("the cards are legal");
    let requests = requests.map(|request| request.request(&cards));
    let empty = requests
        .each_ref()
        .map(|request| allocator.capacity(request));
    let spec = NodeSpec {
        cards: vec![cards],
        ..NodeSpec::default()
    };
    let template = |request: &CardRequest| Template {
        cards: Some(request.clone()),
        ..Template::default()
    };
    let mut given: Vec<(Template, Devices)> = Vec::new();
    let mut spec = spec;
    let mut room = Room::new(&spec);
    for _ in 0..MOST_ACTS {
        let Ok(act) = Act::arbitrary(&mut source) else {
            break;
        };
        match act {
            Act::Allocate(which) | Act::AllocateAgain(which) => {
                let request = pick(&requests, which);
                let Ok(capacity) = allocator.capacity(request) else {
                    assert!(allocator.allocate(request).is_err());
                    continue;
                };
                let found = allocator.allocate(request).expect("it was fine just now");
                assert_eq!(found.is_some(), capacity > 0, "{request:?}: {capacity} fit");
                let Some(devices) = found else { continue };
                given.push((template(request), devices));
                judge(&spec, &mut room, &given[given.len() - 1], true);
                let left = allocator.capacity(request).expect("it was fine just now");
                assert!(left < capacity, "{request:?}: {capacity} fit, then {left}");
            }
            Act::Release(which) if !given.is_empty() => {
                let (template, devices) = given.remove(usize::from(which) % given.len());
                let request = template.cards.expect("each has a request");
                assert!(allocator.release(&request, &devices));
                room = Room::new(&spec);
                for given in &given {
                    judge(&spec, &mut room, given, false);
                }
            }
            Act::Release(which) => {
                assert!(!allocator.release(pick(&requests, which), &Devices::NONE));
            }
            Act::Fail(failed) => {
                let all = CardSet::first(spec.cards[0].count).unwrap_or_default();
                spec.cards[0].unhealthy = CardSet(failed.into()).intersection(all);
                allocator.set_unhealthy(spec.cards[0].unhealthy);
            }
        }
    }
    assert_eq!(allocator.given().len(), given.len());
    for (template, devices) in &given {
        let request = template.cards.as_ref().expect("each has a request");
        assert!(allocator.release(request, devices));
    }
    allocator.set_unhealthy(CardSet::EMPTY);
    let after = requests
        .each_ref()
        .map(|request| allocator.capacity(request));
    assert_eq!(after, empty, "what was given back");
}
