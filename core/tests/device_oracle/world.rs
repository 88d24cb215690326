//! Random small worlds of cards: two nodes with up to four cards in mixed modes, pods that hold some
//! of them, gangs that want whole cards, slices, shares or replicas.

use std::{collections::BTreeMap, sync::Arc};

use gangline::{
    bits::CardSet,
    cluster::{
        NodeCards, NodeSpec,
        spec::{CardMode, MigInstance},
    },
    device::{
        Devices, Slice,
        links::{Link, LinkMatrix, Nearness},
        mig::{Geometry, MigState},
        model,
        overhead::Overhead,
    },
    engine::{Config, Event, Scheduler},
    gang::{GangSpec, Group, GroupKind, Minimum, PodPhase, PodSpec},
    request::{Apart, CardRequest, CardWant, ShareMemory, SliceChoice, SliceRequest, Template},
    units::Nanos,
};

use crate::support::{GPU, cards::loose_code, gang_of, key, pod, random::Random, role};

/// Objects as the engine gets them; the judge reads the same objects.
#[derive(Clone, Debug, Default)]
pub struct World {
    pub nodes: Vec<NodeSpec>,
    pub gangs: Vec<GangSpec>,
    /// Pods that run, and members that wait.
    pub pods: Vec<PodSpec>,
}

impl World {
    pub fn scheduler(&self) -> Scheduler {
        let mut scheduler = Scheduler::new(Config::default());
        let nodes = self.nodes.iter().cloned().map(Event::Node);
        let gangs = self.gangs.iter().cloned().map(Event::Gang);
        let pods = self.pods.iter().cloned().map(Event::Pod);
        for event in nodes.chain(gangs).chain(pods) {
            scheduler.apply(event).expect("worlds hold legal objects");
        }
        scheduler
    }

    pub fn with_gang(&self, name: &str) -> impl Iterator<Item = &PodSpec> {
        self.pods.iter().filter(move |pod| {
            pod.node.is_none()
                && pod.gang.as_ref().map_or(pod.name.as_str(), |key| &key.name) == name
        })
    }
}

const MODELS: [&str; 4] = [
    "NVIDIA-A100-SXM4-40GB",
    "NVIDIA-A30",
    "NVIDIA-H100-80GB-HBM3",
    "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
];

/// What a world's cards are mostly used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flavor {
    Mig,
    Shares,
    Replicas,
    Whole,
    Mixed,
}

pub fn geometry(product: &str) -> Option<&'static Geometry> {
    model::find(product).and_then(|model| model.mig)
}

/// The world of a seed.
pub fn world(seed: u64) -> World {
    let mut random = Random::new(seed ^ 0x6465_7669_6365);
    let random = &mut random;
    let flavor = *random.pick(&[
        Flavor::Mig,
        Flavor::Mig,
        Flavor::Shares,
        Flavor::Replicas,
        Flavor::Whole,
        Flavor::Mixed,
    ]);
    let model = match flavor {
        Flavor::Mig | Flavor::Mixed => *random.pick(&MODELS),
        _ if random.chance(30) => *random.pick(&MODELS),
        _ => "some-card",
    };
    let mut world = World::default();
    let mut twin: Option<NodeSpec> = None;
    for ordinal in 0..random.between(1, 2) {
        let mut spec = match &twin {
            Some(twin) if random.chance(30) => twin.clone(),
            _ => node(random, flavor, model),
        };
        spec.name = format!("n{ordinal}");
        if random.chance(25)
            && let Some(cards) = spec.cards.first_mut()
        {
            cards.unhealthy = CardSet(random.below(1 << cards.count));
        }
        twin = Some(spec.clone());
        world.nodes.push(spec);
    }
    if random.chance(50) {
        for ordinal in 0..random.between(1, 3) {
            let template = Arc::new(template(random, flavor, model));
            let node = random.pick(&world.nodes);
            let devices = random.chance(50).then(|| said(random, node, &template));
            let pod = PodSpec {
                node: Some(node.name.clone()),
                devices,
                phase: PodPhase::Running,
                ..pod(&format!("other-{ordinal}"), &template)
            };
            world.pods.push(pod);
        }
    }
    let gangs = *random.pick(&[1, 1, 2, 3]);
    let mut left = *random.pick(&[2, 3, 4, 6]);
    for ordinal in 0..gangs {
        if left == 0 {
            break;
        }
        let most = if gangs == 1 { left } else { left.min(3) };
        let size = random.between(1, most);
        left -= size;
        add_gang(random, flavor, model, &mut world, ordinal, size);
    }
    for cards in world.nodes.iter_mut().flat_map(|node| &mut node.cards) {
        if random.chance(10) {
            cards.closed = CardSet(random.below(1 << cards.count));
        }
        cards.is_changing = random.chance(3);
    }
    world
}

fn node(random: &mut Random, flavor: Flavor, model: &str) -> NodeSpec {
    let count = random.between(1, 4) as u32;
    let modes = if flavor == Flavor::Whole && random.chance(70) {
        vec![]
    } else if random.chance(50) {
        vec![mode(random, flavor, model)]
    } else {
        (0..count).map(|_| mode(random, flavor, model)).collect()
    };
    let known = model::find(model).is_some();
    let memory_mib = if known {
        0
    } else {
        *random.pick(&[0, 10, 16, 999])
    };
    let links = random
        .chance(if flavor == Flavor::Whole { 75 } else { 15 })
        .then(|| links(random, count, model));
    let mut slices = BTreeMap::new();
    if let Some(geometry) = geometry(model)
        && random.chance(12)
    {
        for _ in 0..random.between(1, 3) {
            let profile = random.pick(geometry.profiles);
            slices.insert(profile.name.to_owned(), random.between(1, 2) as u32);
        }
    }
    let cpu = if random.chance(20) {
        random.below(6)
    } else {
        100
    };
    NodeSpec {
        resources: BTreeMap::from([("cpu".to_owned(), cpu as i64)]),
        cards: vec![NodeCards {
            kind: GPU.into(),
            count,
            model: model.into(),
            memory_mib,
            modes,
            links,
            slices,
            most_shares: *random.pick(&[0, 0, 0, 0, 2, 3]),
            ..NodeCards::default()
        }],
        ..NodeSpec::default()
    }
}

fn mode(random: &mut Random, flavor: Flavor, model: &str) -> CardMode {
    let mig = geometry(model).is_some();
    match (flavor, random.below(10)) {
        (Flavor::Mig, 0..6) | (Flavor::Mixed, 0..3) if mig => CardMode::MigDynamic,
        (Flavor::Mig, 6..9) | (Flavor::Mixed, 3..5) if mig => {
            CardMode::MigStatic(instances(random, model))
        }
        (Flavor::Shares, 0..8) | (Flavor::Mixed, 5..7) => CardMode::Shared,
        (Flavor::Replicas, 0..8) | (Flavor::Mixed, 7..8) => {
            CardMode::Replicas(random.between(2, 4) as u32)
        }
        (Flavor::Whole, 0..4) => CardMode::Shared,
        (Flavor::Whole, 4..6) if mig => CardMode::MigDynamic,
        _ => CardMode::Whole,
    }
}

/// Instances that can exist together on an empty card.
fn instances(random: &mut Random, model: &str) -> Vec<MigInstance> {
    let Some(geometry) = geometry(model) else {
        return vec![];
    };
    let mut state = MigState::EMPTY;
    let mut instances = Vec::new();
    for _ in 0..random.between(1, 9) {
        let placements: Vec<_> = geometry.placements().collect();
        let (ix, start) = *random.pick(&placements);
        if let (Some(after), Some(profile)) = (geometry.put(state, ix, start), geometry.get(ix)) {
            state = after;
            instances.push(MigInstance {
                profile: profile.name.into(),
                start,
            });
        }
    }
    instances
}

fn links(random: &mut Random, count: u32, model: &str) -> LinkMatrix {
    let known = model::find(model);
    let has_nvlinks = known.is_none_or(|model| model.bridged || model.nvlinks > 0);
    let nvlink = |count| {
        if has_nvlinks {
            Link::Nvlink(count)
        } else {
            Link::MultiSwitch
        }
    };
    let classes = [
        nvlink(1),
        nvlink(2),
        Link::SingleSwitch,
        Link::HostBridge,
        Link::Node,
        Link::System,
    ];
    let uniform = random.chance(25).then(|| *random.pick(&classes));
    let count = count as usize;
    let mut rows = vec![vec![None; count]; count];
    for a in 0..count {
        for b in 0..a {
            let link = uniform.unwrap_or_else(|| *random.pick(&classes));
            rows[a][b] = Some(link);
            rows[b][a] = Some(link);
        }
    }
    let numa: Vec<Option<u8>> = (0..count)
        .map(|card| match random.below(3) {
            0 => Some(0),
            1 => Some(card as u8 / 2),
            _ => uniform.map(|_| 0),
        })
        .collect();
    LinkMatrix::new(&rows, &numa, vec![]).expect("a symmetric matrix")
}

fn apart(random: &mut Random) -> Apart {
    *random.pick(&[Apart::Distinct, Apart::Same, Apart::Any])
}

fn choice(random: &mut Random, geometry: &Geometry) -> SliceChoice {
    let profile = random.pick(geometry.profiles);
    // Profiles come cheapest first, and small ones leave more to choose.
    let profile = if random.chance(50) {
        random.pick(&geometry.profiles[..3])
    } else {
        profile
    };
    if random.chance(60) {
        return SliceChoice::Profile(profile.name.into());
    }
    SliceChoice::AtLeast {
        memory_mib: profile
            .memory_mib
            .saturating_sub(random.below(2) as u32 * 200),
        compute_slices: if random.chance(40) {
            profile.compute_slices
        } else {
            0
        },
    }
}

/// What a member asks for.
fn template(random: &mut Random, flavor: Flavor, model: &str) -> Template {
    let what = match flavor {
        Flavor::Mig => *random.pick(&[0, 1, 1, 1, 1, 1]),
        Flavor::Shares => *random.pick(&[0, 2, 2, 2, 2]),
        Flavor::Replicas => *random.pick(&[0, 3, 3, 3]),
        Flavor::Whole => 0,
        Flavor::Mixed => random.below(4),
    };
    let few = |random: &mut Random| *random.pick(&[1, 1, 1, 1, 2, 3]);
    let memory = model::find(model).map_or(10, |model| model.memory_mib);
    let want = match (what, geometry(model)) {
        (1, Some(geometry)) => {
            let kinds = *random.pick(&[1, 1, 1, 1, 2, 3]);
            let slices: Vec<SliceRequest> = (0..kinds)
                .map(|_| SliceRequest {
                    count: if kinds == 1 { few(random) } else { 1 },
                    slice: choice(random, geometry),
                })
                .collect();
            CardWant::Slices {
                slices,
                cards: apart(random),
            }
        }
        (2, _) => CardWant::Shares {
            count: few(random),
            memory: match random.below(5) {
                0 => ShareMemory::Mib(0),
                1..3 => ShareMemory::Mib((random.between(1, 5) as u32 * memory) / 10),
                _ => ShareMemory::Milli(*random.pick(&[1, 250, 334, 500, 1000])),
            },
            compute_milli: *random.pick(&[0, 0, 200, 350, 500]),
            cards: apart(random),
        },
        (3, _) => CardWant::Replicas {
            count: few(random),
            cards: apart(random),
        },
        _ => CardWant::Whole(*random.pick(&[1, 1, 1, 1, 1, 2, 2, 3])),
    };
    let want = match want {
        CardWant::Shares {
            count,
            memory: ShareMemory::Mib(0),
            compute_milli: 0,
            cards,
        } => CardWant::Shares {
            count,
            memory: ShareMemory::Mib(1),
            compute_milli: 0,
            cards,
        },
        want => want,
    };
    let mut request = CardRequest {
        kind: GPU.into(),
        want,
        ..CardRequest::default()
    };
    let whole = request.whole_cards() > 0;
    if whole && random.chance(if flavor == Flavor::Whole { 30 } else { 5 }) {
        request.near = *random.pick(&[Nearness::NvlinkIsland, Nearness::NumaNode]);
    }
    if random.chance(6) {
        let names = [model, model, "other-card", "A30", "A100-40GB"];
        request.models = vec![(*random.pick(&names)).into()];
    }
    if random.chance(4) {
        request.min_card_memory_mib = *random.pick(&[1, 10, 30_000, 90_000]);
    }
    if random.chance(8) {
        request.only = Some(CardSet(random.between(1, 15)));
    }
    if random.chance(8) {
        request.exclusive = (*random.pick(&["x", "y"])).into();
    }
    let parts = match &request.want {
        CardWant::Whole(_) => 2,
        CardWant::Slices { slices, .. } => slices.iter().map(|slice| slice.count).sum(),
        CardWant::Shares { count, .. } | CardWant::Replicas { count, .. } => *count,
    };
    if parts == 1 && random.chance(15) {
        request.share_group = (*random.pick(&["g", "h"])).into();
    }
    if memory > 10 && random.chance(8) {
        request.overhead = Overhead::PROCESS;
    }
    let mut template = Template {
        namespace: "default".into(),
        cards: Some(request),
        ..Template::default()
    };
    if random.chance(50) {
        template
            .resources
            .insert("cpu".into(), random.between(1, 2) as i64);
    }
    template
}

/// Devices that a running pod might say it has; often it could not have them.
fn said(random: &mut Random, node: &NodeSpec, template: &Template) -> Devices {
    let (Some(cards), Some(ask)) = (node.cards.first(), &template.cards) else {
        return Devices::NONE;
    };
    // Of one card more: it is gone since.
    let count = u64::from(cards.count) + u64::from(random.chance(20));
    let card = |random: &mut Random| random.below(count) as u8;
    let mut devices = Devices::NONE;
    match &ask.want {
        CardWant::Whole(count) => {
            for _ in 0..*count {
                devices.cards = devices.cards.union(CardSet(1 << card(random)));
            }
        }
        CardWant::Slices { slices, .. } => {
            for slice in slices
                .iter()
                .flat_map(|slice| vec![slice; slice.count as usize])
            {
                let Some(geometry) = geometry(&cards.model) else {
                    break;
                };
                let profile = match &slice.slice {
                    SliceChoice::Profile(name) => {
                        geometry.profile(name).and_then(|ix| geometry.get(ix))
                    }
                    SliceChoice::AtLeast { .. } => geometry.profiles.first(),
                };
                let Some(profile) = profile else { break };
                let loose = cards.slices.keys().position(|name| name == profile.name);
                if let Some(at) = loose.filter(|_| random.chance(50)) {
                    devices.push(Slice {
                        card: Slice::NO_CARD,
                        profile: loose_code(cards, at),
                        start: 0,
                    });
                    continue;
                }
                devices.push(Slice {
                    card: card(random),
                    profile: profile.id,
                    start: *random.pick(profile.starts),
                });
            }
        }
        CardWant::Shares { count, .. } => {
            for _ in 0..*count {
                devices.push(Slice {
                    card: card(random),
                    profile: Slice::SHARE,
                    start: 0,
                });
            }
        }
        CardWant::Replicas { count, .. } => {
            for _ in 0..*count {
                devices.push(Slice {
                    card: card(random),
                    profile: Slice::REPLICA,
                    start: 0,
                });
            }
        }
    }
    if random.chance(5) {
        devices.cards = CardSet(random.below(16));
    }
    devices
}

fn add_gang(
    random: &mut Random,
    flavor: Flavor,
    model: &str,
    world: &mut World,
    ordinal: u64,
    size: u64,
) {
    let name = format!("g{ordinal}");
    if size == 1 && random.chance(70) {
        let template = Arc::new(template(random, flavor, model));
        let mut pod = pod(&name, &template);
        pod.created = Nanos(ordinal);
        world.pods.push(pod);
        return;
    }
    let roles = random.between(1, size.min(3));
    let mut sizes = vec![1_u64; roles as usize];
    for _ in roles..size {
        let at = random.below(roles) as usize;
        sizes[at] += 1;
    }
    let mut groups = Vec::new();
    let mut number = 0;
    for (leaf, &size) in sizes.iter().enumerate() {
        let min = if random.chance(80) {
            size
        } else {
            random.between(1, size)
        };
        groups.push(role(&format!("l{leaf}"), size as u32, min as u32));
        let template = Arc::new(template(random, flavor, model));
        for _ in 0..size {
            world.pods.push(PodSpec {
                gang: Some(key(&name)),
                role: format!("l{leaf}"),
                ..pod(&format!("{name}-{number}"), &template)
            });
            number += 1;
        }
    }
    let root = if groups.len() == 1 {
        groups.remove(0)
    } else {
        Group {
            name: "root".into(),
            kind: GroupKind::Group {
                min: Minimum::Children(groups.len() as u32),
                children: groups,
            },
            ..Group::default()
        }
    };
    let mut spec = gang_of(&name, root);
    spec.created = Nanos(ordinal);
    world.gangs.push(spec);
}
