//! Random sequences of outside events, and the promises that must hold after each.
//!
//! An event is a [`Step`] of four bytes: what happens, and to whom. [`run`] plays steps against an
//! engine and against a plain model of the objects outside, and panics when a promise of the engine
//! is broken. `properties.rs` feeds it random steps, the fuzz target `engine` feeds it a fuzzer's.
#![allow(dead_code, unreachable_pub, reason = "each user has its own part")]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

#[path = "cards.rs"]
pub mod cards;

use gangline::{
    bits::CardSet,
    cluster::{
        NodeCards, NodeSpec,
        spec::{CardMode, MigInstance},
    },
    device::{
        Devices, Slice,
        links::{Link, LinkMatrix, Nearness},
    },
    engine::{Config, Event, MemberState, Purpose, Scheduler, Snapshot, Verdict},
    gang::{
        Disruption, GangKey, GangSpec, Group, GroupKind, LossMode, Minimum, PodPhase, PodSpec,
        Role, TimeoutPolicy, TopologyRule, life::Phase,
    },
    request::{
        Apart, CardRequest, CardWant, HostPort, LabelSelector, NODE_LEVEL, NamespaceScope, PodTerm,
        ShareMemory, SliceChoice, SliceRequest, SpreadRule, Taint, TaintEffect, Template,
    },
    units::{Nanos, Uid},
};

/// What happens, and three bytes that say to whom and how.
pub type Step = [u8; 4];

/// Steps from this number on are about cards in parts.
pub const PARTS: u8 = 240;

/// Longest sequence that is played; more only repeats.
pub const MOST_STEPS: usize = 200;

const GPU: &str = "nvidia.com/gpu";
const NODES: u8 = 5;
const GANGS: u8 = 4;
const PODS: u8 = 10;

/// The objects outside, as an API server would have them, and the engine beside them.
struct World {
    engine: Scheduler,
    /// An engine restored from a snapshot of the other, told the same since.
    twin: Option<Scheduler>,
    templates: Vec<Arc<Template>>,
    nodes: BTreeMap<String, NodeSpec>,
    namespaces: BTreeMap<String, BTreeMap<String, String>>,
    gangs: BTreeMap<String, GangSpec>,
    pods: BTreeMap<String, PodSpec>,
    /// Makes identities that were never used before.
    births: u64,
    now: Nanos,
    /// Says what happens.
    loud: bool,
}

/// Plays the steps; panics when a promise is broken.
pub fn run(steps: &[Step]) {
    play(steps, false);
}

/// Plays the steps and prints what happens: to understand a failure.
pub fn run_aloud(steps: &[Step]) {
    play(steps, true);
}

/// The snapshot that steps lead to.
pub fn snapshot_after(steps: &[Step]) -> Snapshot {
    let mut world = World::new();
    for &step in steps.iter().take(MOST_STEPS) {
        world.play(step);
    }
    world.engine.snapshot()
}

/// How many parts of cards pods hold after the steps.
pub fn parts_after(steps: &[Step]) -> usize {
    let mut world = World::new();
    for &step in steps.iter().take(MOST_STEPS) {
        world.play(step);
    }
    let lines = world.engine.ledger();
    lines.iter().map(|line| line.devices.slices().count()).sum()
}

fn play(steps: &[Step], loud: bool) {
    let mut world = World::new();
    world.loud = loud;
    for &step in steps.iter().take(MOST_STEPS) {
        world.play(step);
        world.keeps_its_promises();
    }
    world.settles_in_time();
}

/// Plays the steps and gives what they lead to: equal steps must give equal results.
pub fn outcome(steps: &[Step]) -> (u64, u64) {
    let mut world = World::new();
    for &step in steps.iter().take(MOST_STEPS) {
        world.play(step);
    }
    (world.engine.decision_hash(), world.engine.fingerprint())
}

fn config() -> Config {
    Config {
        levels: vec!["block".into(), "rack".into()],
        reserve_after: Nanos::from_secs(20),
        degraded_deadline: Nanos::from_secs(30),
        ..Config::default()
    }
}

fn term(key: &str, app: &str) -> PodTerm {
    PodTerm {
        topology_key: key.into(),
        selector: LabelSelector::from_labels([("app", app)]),
        namespaces: NamespaceScope::default(),
    }
}

fn templates() -> Vec<Arc<Template>> {
    let plain = |cards: u32, cpu: i64, app: &str| Template {
        namespace: "default".into(),
        labels: BTreeMap::from([("app".into(), app.into())]),
        resources: BTreeMap::from([("cpu".into(), cpu)]),
        cards: (cards > 0).then(|| CardRequest::whole(GPU, cards)),
        ..Template::default()
    };
    let mut apart = plain(1, 1, "apart");
    apart
        .relations
        .anti_affinity
        .push(term(NODE_LEVEL, "apart"));
    let mut near = plain(1, 0, "near");
    near.relations.affinity.push(term("rack", "near"));
    let mut even = plain(0, 1, "even");
    even.relations.spread.push(SpreadRule {
        topology_key: "rack".into(),
        max_skew: 1,
        selector: LabelSelector::from_labels([("app", "even")]),
        min_domains: 0,
        required: true,
        honor_node_affinity: true,
        honor_taints: false,
    });
    let mut port = plain(0, 2, "port");
    port.host_ports.push(HostPort {
        port: 80,
        protocol: gangline::request::Protocol::Tcp,
        address: String::new(),
    });
    let mut short = plain(2, 1, "short");
    short.max_runtime = Some(Nanos::from_secs(15));
    let mut wide = plain(0, 1, "wide");
    wide.relations.anti_affinity.push(PodTerm {
        namespaces: NamespaceScope {
            selector: Some(LabelSelector::from_labels([("team", "x")])),
            ..NamespaceScope::default()
        },
        ..term("rack", "port")
    });
    let all = [
        plain(1, 1, "one"),
        plain(3, 2, "big"),
        plain(0, 3, "none"),
        apart,
        near,
        even,
        port,
        short,
        wide,
    ];
    all.into_iter()
        .chain(part_templates())
        .map(Arc::new)
        .collect()
}

/// So many templates ask for whole cards or none.
const WHOLE_TEMPLATES: usize = 9;

fn part_templates() -> Vec<Template> {
    let slices = |list: &[(&str, u32)], cards: Apart| CardWant::Slices {
        slices: list
            .iter()
            .map(|&(profile, count)| SliceRequest {
                count,
                slice: SliceChoice::Profile(profile.into()),
            })
            .collect(),
        cards,
    };
    let share = |memory: ShareMemory, compute_milli: u32, count: u32| CardWant::Shares {
        count,
        memory,
        compute_milli,
        cards: Apart::Any,
    };
    let least = CardWant::Slices {
        slices: vec![SliceRequest {
            count: 1,
            slice: SliceChoice::AtLeast {
                memory_mib: 6_000,
                compute_slices: 1,
            },
        }],
        cards: Apart::Any,
    };
    let replicas = CardWant::Replicas {
        count: 2,
        cards: Apart::Any,
    };
    let mut all: Vec<Template> = [
        slices(&[("1g.6gb", 1)], Apart::Any),
        slices(&[("2g.12gb", 1)], Apart::Any),
        slices(&[("1g.6gb", 2)], Apart::Distinct),
        slices(&[("2g.12gb", 1), ("1g.6gb", 1)], Apart::Same),
        slices(&[("4g.24gb", 1)], Apart::Any),
        slices(&[("1g.6gb+me", 1)], Apart::Any),
        least,
        share(ShareMemory::Mib(9_000), 300, 1),
        share(ShareMemory::Milli(500), 0, 1),
        share(ShareMemory::Mib(0), 400, 2),
        replicas,
    ]
    .into_iter()
    .map(|want| Template {
        namespace: "default".into(),
        labels: BTreeMap::from([("app".into(), "parts".into())]),
        cards: Some(CardRequest {
            kind: GPU.into(),
            want,
            ..CardRequest::default()
        }),
        ..Template::default()
    })
    .collect();
    let with = |base: &Template, change: &dyn Fn(&mut CardRequest)| {
        let mut changed = base.clone();
        changed.cards.iter_mut().for_each(change);
        changed
    };
    let grouped = with(&all[7], &|ask| ask.share_group = "g".into());
    let own = with(&all[0], &|ask| ask.exclusive = "own".into());
    let shared_own = with(&all[8], &|ask| ask.exclusive = "own".into());
    let named = with(&all[1], &|ask| ask.only = Some(CardSet(0b110)));
    let mut linked = all[0].clone();
    linked.cards = Some(CardRequest {
        near: Nearness::NvlinkIsland,
        ..CardRequest::whole(GPU, 2)
    });
    all.extend([grouped, own, shared_own, named, linked]);
    all
}

/// Devices that a pod could say it has.
fn said(template: &Template, how: u8, more: u8) -> Devices {
    let card = |at: u8| (more >> (at & 3)) & 3;
    let mut devices = Devices::NONE;
    match template.cards.as_ref().map(|ask| &ask.want) {
        Some(CardWant::Slices { slices, .. }) => {
            for (at, slice) in (0..).zip(
                slices
                    .iter()
                    .flat_map(|slice| vec![slice; slice.count as usize]),
            ) {
                let profile = match &slice.slice {
                    SliceChoice::Profile(name) if name.starts_with("2g") => 5,
                    SliceChoice::Profile(name) if name.starts_with("4g") => 0,
                    _ => 14,
                };
                devices.push(Slice {
                    card: card(at),
                    profile,
                    start: how >> 6,
                });
            }
        }
        Some(CardWant::Shares { count, .. } | CardWant::Replicas { count, .. }) => {
            let share = matches!(
                template.cards.as_ref().map(|ask| &ask.want),
                Some(CardWant::Shares { .. })
            );
            for at in 0..*count {
                devices.push(Slice {
                    card: card(at as u8),
                    profile: if share { Slice::SHARE } else { Slice::REPLICA },
                    start: 0,
                });
            }
        }
        _ => devices.cards = CardSet(u64::from(more >> 4)),
    }
    if how & 0x20 != 0 {
        // Cards that are not those of the slices.
        devices.cards = CardSet(u64::from(more & 15));
    }
    devices
}

impl World {
    fn new() -> Self {
        Self {
            engine: Scheduler::new(config()),
            twin: None,
            templates: templates(),
            nodes: BTreeMap::new(),
            namespaces: BTreeMap::new(),
            gangs: BTreeMap::new(),
            pods: BTreeMap::new(),
            births: 0,
            now: Nanos::ZERO,
            loud: false,
        }
    }

    fn tell(&mut self, event: Event) {
        if self.loud {
            match &event {
                Event::Pod(pod) => println!(
                    "pod {} {:?}/{} app {:?} node {:?} {:?} cards {:?} gated {} terminating {}",
                    pod.name,
                    pod.gang.as_ref().map(|gang| &gang.name),
                    pod.role,
                    pod.template.labels["app"],
                    pod.node,
                    pod.phase,
                    pod.devices,
                    pod.gated,
                    pod.terminating
                ),
                other => println!("{other:?}"),
            }
        }
        if let Some(twin) = &mut self.twin {
            twin.apply(event.clone()).expect("a legal event");
        }
        self.engine.apply(event).expect("a legal event");
    }

    fn uid(&mut self, name: &str) -> Uid {
        self.births += 1;
        Uid::from_text(&format!("{name}/{}", self.births))
    }

    fn play(&mut self, [what, who, how, more]: Step) {
        let node = format!("n{}", who % NODES);
        let gang = format!("g{}", who % GANGS);
        let pod = format!("p{}", who % PODS);
        match what {
            240..=244 => {
                let template =
                    WHOLE_TEMPLATES + usize::from(more) % (self.templates.len() - WHOLE_TEMPLATES);
                // Half of them by themselves, or most would wait for a group.
                let how = if who & 0x80 != 0 { GANGS } else { how & 0x3F };
                return self.new_pod(pod, how, template);
            }
            245..=248 => return self.parted_node(node, how, more),
            249 | 250 => return self.change_cards(&node, how, more),
            // Somebody else binds it, and says what it has, which may be taken or not be there.
            251 | 252 => {
                let spec = self.pods.get(&pod);
                let open = |spec: &&PodSpec| spec.node.is_none() && spec.phase == PodPhase::Pending;
                if let Some(spec) = spec.filter(open) {
                    let devices = said(&spec.template, how, more);
                    return self.change(&pod, |spec| {
                        spec.node = Some(format!("n{}", how % NODES));
                        spec.devices = Some(devices);
                    });
                }
            }
            253 => return self.confirm(who, 1, more),
            254 | 255 => return self.decide(),
            _ => {}
        }
        match what % 24 {
            0 | 1 => self.node(node, how, more),
            2 => {
                if self.nodes.remove(&node).is_some() || more & 1 == 0 {
                    self.tell(Event::NodeGone { name: node });
                }
            }
            3 | 4 => self.gang(gang, how, more, false),
            5 => self.gang(gang, how, more, true),
            6 => {
                if let Some(spec) = self.gangs.remove(&gang) {
                    let (key, uid) = (spec.key, spec.uid);
                    self.tell(Event::GangGone { key, uid });
                }
            }
            7..=9 => self.new_pod(pod, how, usize::from(more) % WHOLE_TEMPLATES),
            10 => {
                if let Some(spec) = self.pods.remove(&pod) {
                    self.tell(Event::PodGone { uid: spec.uid });
                }
            }
            // Somebody else binds it, wherever.
            11 => self.change(&pod, |spec| {
                if spec.node.is_none() && spec.phase == PodPhase::Pending {
                    spec.node = Some(format!("n{}", how % NODES));
                    spec.devices =
                        (more & 4 != 0).then_some(Devices::of_cards(CardSet(u64::from(more >> 4))));
                }
            }),
            12 => self.change(&pod, |spec| {
                let phase = [PodPhase::Running, PodPhase::Succeeded, PodPhase::Failed];
                let phase = phase[usize::from(how % 3)];
                let ended = |phase| matches!(phase, PodPhase::Succeeded | PodPhase::Failed);
                if !ended(spec.phase) && (spec.node.is_some() || phase == PodPhase::Failed) {
                    spec.phase = phase;
                }
            }),
            13 => self.change(&pod, |spec| spec.terminating = true),
            14 => self.change(&pod, |spec| {
                spec.gated = spec.node.is_none() && how & 1 == 0;
            }),
            15 | 16 => self.confirm(who, how, more),
            17 => {
                if let Some((owner, _)) = self.holds().get(usize::from(who) % 4).cloned() {
                    self.tell(Event::BindFailed {
                        pod: owner,
                        permanent: how & 1 == 0,
                        message: "refused".into(),
                    });
                }
            }
            18 => {
                let span = [1, 5, 20, 40, 100, 10_000][usize::from(how % 6)];
                self.now = self.now.saturating_add(Nanos::from_secs(span));
            }
            19 => self.restart(),
            20 => self.stale_news(who),
            // Another scheduler makes room for it, or does not any more.
            21 if how & 2 != 0 => {
                // What others bind of our groups is theirs, and no promise of ours.
                let alone = self.pods.get(&pod).filter(|pod| pod.gang.is_none());
                let state = alone.and_then(|pod| self.engine.state_of(pod.uid));
                if state.is_some_and(|state| state != MemberState::Planned) {
                    self.change(&pod, |spec| {
                        spec.foreign = how & 4 != 0;
                        spec.nominated = (how & 8 != 0).then(|| format!("n{}", how % NODES));
                    });
                }
            }
            // It pulled images, or dropped some. Nobody else may notice.
            21 if how & 4 != 0 => {
                let images = (0..how >> 5).map(|image| (u64::from(image), u32::from(more) + 1));
                let images = images.collect();
                self.tell(Event::NodeImages { name: node, images });
            }
            21 => {
                let team = if how & 1 == 0 { "x" } else { "y" };
                let labels = BTreeMap::from([("team".to_owned(), team.to_owned())]);
                self.namespaces.insert("default".into(), labels.clone());
                self.tell(Event::Namespace {
                    name: "default".into(),
                    labels,
                });
            }
            _ => self.decide(),
        }
    }

    // ---- objects -----------------------------------------------------------------------------

    fn node(&mut self, name: String, how: u8, more: u8) {
        let mut labels = BTreeMap::from([(NODE_LEVEL.to_owned(), name.clone())]);
        if more & 1 == 0 {
            labels.insert("rack".into(), format!("r{}", more >> 1 & 1));
        }
        if more & 4 == 0 {
            labels.insert("block".into(), format!("b{}", more >> 3 & 1));
        }
        let mut taints = Vec::new();
        if more & 0x30 == 0x30 {
            taints.push(Taint {
                key: "broken".into(),
                value: String::new(),
                effect: TaintEffect::NoSchedule,
            });
        }
        let count = u32::from(how % 6);
        let cards = NodeCards {
            kind: GPU.into(),
            count,
            unhealthy: CardSet(u64::from(how >> 6)),
            ..NodeCards::default()
        };
        let mut resources = BTreeMap::from([("cpu".to_owned(), i64::from(how >> 3 & 7))]);
        if more & 0x40 != 0 {
            resources.insert("pods".into(), 2);
        }
        let spec = NodeSpec {
            name: name.clone(),
            labels,
            taints,
            unschedulable: more & 0x80 != 0 && how & 1 == 0,
            resources,
            cards: if count > 0 { vec![cards] } else { vec![] },
        };
        self.nodes.insert(name, spec.clone());
        self.tell(Event::Node(spec));
    }

    /// A node whose cards are used in parts: up to four A30, by modes of which nodes differ.
    fn parted_node(&mut self, name: String, how: u8, more: u8) {
        let mut labels = BTreeMap::from([(NODE_LEVEL.to_owned(), name.clone())]);
        labels.insert("rack".into(), format!("r{}", more & 1));
        labels.insert("block".into(), "b0".into());
        let count = 1 + u32::from(how & 3);
        let exist = |list: &[(&str, u8)]| {
            let instances = list.iter().map(|&(profile, start)| MigInstance {
                profile: profile.into(),
                start,
            });
            CardMode::MigStatic(instances.collect())
        };
        let kinds = [
            CardMode::MigDynamic,
            CardMode::Shared,
            exist(&[("1g.6gb", 0), ("1g.6gb+me", 1), ("2g.12gb", 2)]),
            CardMode::Replicas(3),
            CardMode::Whole,
            CardMode::MigDynamic,
            exist(&[("4g.24gb", 0)]),
            CardMode::Shared,
        ];
        let kind = |card: u32| {
            kinds[(usize::from(more >> 1) + (how >> 5) as usize * card as usize) & 7].clone()
        };
        let links = (how & 4 != 0).then(|| {
            let link = |a: u32, b: u32| {
                if a / 2 == b / 2 {
                    Link::Nvlink(2)
                } else {
                    Link::System
                }
            };
            let row = |a: u32| (0..count).map(|b| (a != b).then(|| link(a, b))).collect();
            let rows: Vec<Vec<Option<Link>>> = (0..count).map(row).collect();
            LinkMatrix::new(&rows, &vec![None; count as usize], vec![]).expect("symmetric")
        });
        // Profiles come, go and become fewer: what somebody has is told by name, not by place.
        let of = |profile: &str, all: u8| (all > 0).then(|| (profile.to_owned(), u32::from(all)));
        let lists = [
            of("1g.6gb", how >> 3 & 1),
            of("2g.12gb", 1),
            of("4g.24gb", how >> 4 & 1),
        ];
        let slices: BTreeMap<String, u32> = lists.into_iter().flatten().collect();
        let cards = NodeCards {
            kind: GPU.into(),
            count,
            model: "NVIDIA-A30".into(),
            modes: (0..count).map(kind).collect(),
            links,
            slices: if more & 0x80 != 0 {
                slices
            } else {
                BTreeMap::new()
            },
            ..NodeCards::default()
        };
        let spec = NodeSpec {
            name: name.clone(),
            labels,
            resources: BTreeMap::from([("cpu".to_owned(), 6)]),
            cards: vec![cards],
            ..NodeSpec::default()
        };
        self.nodes.insert(name, spec.clone());
        self.tell(Event::Node(spec));
    }

    /// Cards fail or come back, or are used in another way from now on.
    fn change_cards(&mut self, name: &str, how: u8, more: u8) {
        let Some(spec) = self.nodes.get_mut(name) else {
            return;
        };
        if let Some(cards) = spec.cards.first_mut() {
            cards.unhealthy = CardSet(u64::from(how & 15));
            if how & 0x30 == 0x30 && !cards.modes.is_empty() {
                let at = usize::from(more) % cards.modes.len();
                cards.modes[at] = [CardMode::Whole, CardMode::Shared, CardMode::MigDynamic]
                    [usize::from(more >> 4) % 3]
                    .clone();
            }
            if how & 0x40 != 0 && cards.count > 1 && cards.links.is_none() && cards.modes.len() != 1
            {
                cards.count -= 1;
                cards.modes.truncate(cards.count as usize);
            }
        }
        let spec = spec.clone();
        self.tell(Event::Node(spec));
    }

    fn gang(&mut self, name: String, how: u8, more: u8, reborn: bool) {
        let uid = match self.gangs.get(&name) {
            Some(old) if !reborn => old.uid,
            _ => self.uid(&name),
        };
        let role = |name: &str, min: u8, level: Option<&str>| Group {
            name: name.into(),
            topology: TopologyRule {
                required: level.map(Into::into),
                preferred: None,
            },
            kind: GroupKind::Role(Role {
                count: 0,
                min: u32::from(min),
                template: None,
            }),
        };
        let level = [None, None, Some("rack"), Some(NODE_LEVEL)][usize::from(how >> 3 & 3)];
        let root = if how & 0x20 == 0 {
            role("all", how % 5, level)
        } else {
            Group {
                name: "root".into(),
                topology: TopologyRule {
                    required: (how & 0x40 != 0).then(|| "block".into()),
                    preferred: None,
                },
                kind: GroupKind::Group {
                    min: match how % 4 {
                        0 => Minimum::Children(2),
                        1 => Minimum::Children(1),
                        least => Minimum::Members(u32::from(least)),
                    },
                    children: vec![role("a", 1 + how % 2, level), role("b", how % 3, None)],
                },
            }
        };
        let spec = GangSpec {
            uid,
            key: key(&name),
            created: self.now,
            priority: i32::from(more & 1),
            queue: String::new(),
            root,
            schedule_timeout: (more & 2 != 0).then(|| Nanos::from_secs(50)),
            on_timeout: [
                TimeoutPolicy::Requeue,
                TimeoutPolicy::Fail,
                TimeoutPolicy::ReleasePartial,
                TimeoutPolicy::Requeue,
            ][usize::from(more >> 2 & 3)],
            on_loss: [
                LossMode::Once,
                LossMode::Strict,
                LossMode::WaitingOnly,
                LossMode::Once,
            ][usize::from(more >> 4 & 3)],
            started: more & 64 != 0,
            disruption: Disruption::Single,
            scoring: None,
            problem: None,
        };
        self.gangs.insert(name, spec.clone());
        self.tell(Event::Gang(spec));
    }

    fn new_pod(&mut self, name: String, how: u8, template: usize) {
        let uid = self.uid(&name);
        let template = &self.templates[template];
        let gang = how % (GANGS + 1);
        let role = ["", "a", "b", "all"][usize::from(how >> 4 & 3)];
        let spec = PodSpec {
            uid,
            namespace: "default".into(),
            name: name.clone(),
            gang: (gang < GANGS).then(|| key(&format!("g{gang}"))),
            role: role.into(),
            template: template.clone(),
            node: None,
            devices: None,
            phase: PodPhase::Pending,
            created: self.now,
            started: None,
            priority: i32::from(how >> 7),
            gated: how & 0x40 != 0,
            terminating: false,
            foreign: false,
            nominated: None,
            images: [u64::from(how >> 4 & 7)].into(),
            problem: None,
        };
        // A pod of that name may still be known: the engine must see that it is another.
        self.pods.insert(name, spec.clone());
        self.tell(Event::Pod(spec));
    }

    fn change(&mut self, name: &str, change: impl FnOnce(&mut PodSpec)) {
        let Some(spec) = self.pods.get_mut(name) else {
            return;
        };
        change(spec);
        let spec = spec.clone();
        self.tell(Event::Pod(spec));
    }

    fn is_parted(&self, node: &str) -> bool {
        let spec = self.nodes.get(node);
        let mut cards = spec.iter().flat_map(|spec| &spec.cards);
        cards.any(|cards| !cards.modes.is_empty() || !cards.slices.is_empty())
    }

    /// Open binds: pod and node.
    fn holds(&self) -> Vec<(Uid, String)> {
        let lines = self.engine.ledger();
        let held = lines.iter().filter(|line| line.purpose == Purpose::Held);
        held.map(|line| (line.owner, line.node.to_owned()))
            .collect()
    }

    /// Some or all open binds are reported as done.
    fn confirm(&mut self, who: u8, how: u8, more: u8) {
        let all = how & 3 != 0;
        for (index, (owner, node)) in self.holds().into_iter().enumerate() {
            if !all && index != usize::from(who % 4) {
                continue;
            }
            let pod = self.pods.values().find(|pod| pod.uid == owner);
            let pod = pod.expect("holds belong to pods");
            // Without its devices nobody could tell after a restart which parts it has.
            let parted = self.is_parted(&node);
            let name = pod.name.clone();
            let started = self.now;
            let lines = self.engine.ledger();
            let line = lines.iter().find(|line| line.owner == owner);
            let devices = line.map(|line| line.devices).filter(|_| parted);
            self.change(&name, |spec| {
                spec.node = Some(node);
                spec.devices = devices.or(spec.devices);
                spec.phase = PodPhase::Running;
                spec.started = (more & 1 == 0).then_some(started);
            });
        }
    }

    /// News that came too late or is no news changes nothing.
    fn stale_news(&mut self, who: u8) {
        let before = self.engine.fingerprint();
        let unknown = Uid::from_text("nobody");
        self.tell(Event::PodGone { uid: unknown });
        self.tell(Event::GangGone {
            key: key(&format!("g{}", who % GANGS)),
            uid: unknown,
        });
        self.tell(Event::NodeGone {
            name: "nowhere".into(),
        });
        for event in self.objects() {
            self.tell(event);
        }
        let refused = NodeSpec {
            resources: BTreeMap::from([("cpu".to_owned(), -1)]),
            name: format!("n{}", who % NODES),
            ..NodeSpec::default()
        };
        assert!(self.engine.apply(Event::Node(refused)).is_err());
        assert_eq!(
            self.engine.fingerprint(),
            before,
            "old news changed something"
        );
    }

    /// All objects, in one of the orders in which a list could have them.
    fn objects(&self) -> Vec<Event> {
        let namespaces = self
            .namespaces
            .iter()
            .map(|(name, labels)| Event::Namespace {
                name: name.clone(),
                labels: labels.clone(),
            });
        namespaces
            .chain(self.nodes.values().cloned().map(Event::Node))
            .chain(self.gangs.values().cloned().map(Event::Gang))
            .chain(self.pods.values().cloned().map(Event::Pod))
            .collect()
    }

    // ---- promises ----------------------------------------------------------------------------

    fn decide(&mut self) {
        let places = decide(&mut self.engine, self.now);
        if self.loud {
            println!("decided at {:?}: {places:?}", self.now);
        }
        if let Some(twin) = &mut self.twin {
            assert_eq!(
                decide(twin, self.now),
                places,
                "a restored engine decides otherwise"
            );
        }
        self.places_are_sound(&places);
        self.every_waiting_member_has_a_reason();
        // An earlier clock changes nothing, and without news all comes to rest.
        let mut later = self.engine.clone();
        let earlier = self.now.saturating_sub(Nanos::from_secs(1000));
        for _ in 0..=self.pods.len() + self.gangs.len() {
            let mut turned_back = later.clone();
            let places = decide(&mut later, self.now);
            assert_eq!(
                decide(&mut turned_back, earlier),
                places,
                "the clock was turned back"
            );
            if places.is_empty() {
                return;
            }
        }
        panic!("without news it goes on deciding");
    }

    /// New places are on nodes that exist, have room and are open.
    fn places_are_sound(&self, places: &[(Uid, String)]) {
        for (uid, name) in places {
            let pod = self.pods.values().find(|pod| pod.uid == *uid);
            let pod = pod.expect("places are for pods that exist");
            let node = self
                .nodes
                .get(name)
                .expect("places are on nodes that exist");
            assert!(
                pod.node.is_none() && !pod.terminating && !pod.gated,
                "{}",
                pod.name
            );
            assert!(
                !node.unschedulable && node.taints.is_empty(),
                "{} on {name}",
                pod.name
            );
            let on_node: Vec<&PodSpec> = self
                .engine
                .ledger()
                .iter()
                .filter(|line| line.node == name)
                .filter_map(|line| self.pods.values().find(|pod| pod.uid == line.owner))
                .collect();
            let of =
                |pod: &PodSpec, name: &str| pod.template.resources.get(name).copied().unwrap_or(0);
            let used: i64 = on_node.iter().map(|pod| of(pod, "cpu")).sum();
            assert!(
                of(pod, "cpu") == 0 || used <= node.resources["cpu"],
                "cpu of {name}"
            );
            let slots = node.resources.get("pods").copied().unwrap_or(110);
            assert!(
                i64::try_from(on_node.len()).is_ok_and(|pods| pods <= slots),
                "pod slots of {name}"
            );
            let ports = |pod: &&&PodSpec| !pod.template.host_ports.is_empty();
            assert!(
                !ports(&&pod) || on_node.iter().filter(ports).count() == 1,
                "port of {name}"
            );
            // As if it came last: every condition of its request holds.
            let mut room = node.cards.first().map(|_| cards::Room::new(node));
            let lines = self.engine.ledger();
            let others = lines
                .iter()
                .filter(|line| line.node == name && line.owner != *uid);
            for line in others.chain(lines.iter().filter(|line| line.owner == *uid)) {
                let other = self.pods.values().find(|pod| pod.uid == line.owner);
                if let (Some(room), Some(other)) = (&mut room, other) {
                    room.cpu = i64::MAX / 2;
                    let strict = line.owner == *uid;
                    cards::take(node, room, &other.template, &line.devices, strict)
                        .unwrap_or_else(|error| panic!("{} on {name}: {error}", other.name));
                }
            }
            let app = |pod: &PodSpec| pod.template.labels["app"].clone();
            let apart = on_node.iter().filter(|pod| app(pod) == "apart").count();
            assert!(app(pod) != "apart" || apart == 1, "anti-affinity on {name}");
        }
    }

    fn every_waiting_member_has_a_reason(&self) {
        for gang in self.engine.gangs() {
            let view = self.engine.gang(gang).expect("listed gangs exist");
            let waits = |state| matches!(state, MemberState::Waiting | MemberState::Gated);
            let waiting: BTreeSet<&str> = view
                .members
                .iter()
                .filter(|member| waits(member.state))
                .map(|member| member.name)
                .collect();
            if waiting.is_empty() {
                continue;
            }
            let explanation = self
                .engine
                .why(gang)
                .expect("listed gangs can be explained");
            let explained = explanation.members.iter().map(|(name, _)| name.as_str());
            let silent: Vec<_> = waiting.difference(&explained.collect()).copied().collect();
            assert!(
                silent.is_empty(),
                "no reason for {silent:?} of {}",
                view.name
            );
        }
    }

    fn keeps_its_promises(&mut self) {
        self.engine.check().expect("the engine agrees with itself");
        self.ledger_follows_from_the_objects();
        self.nothing_runs_below_its_minimum();
        if let Some(twin) = &self.twin {
            twin.check()
                .expect("the restored engine agrees with itself");
            assert_eq!(
                twin.fingerprint(),
                self.engine.fingerprint(),
                "a restored engine differs"
            );
        }
    }

    /// Who is in the ledger: every pod that is bound and not over, and open holds.
    fn ledger_follows_from_the_objects(&self) {
        let ended = |pod: &PodSpec| matches!(pod.phase, PodPhase::Succeeded | PodPhase::Failed);
        let mut expected: BTreeMap<Uid, &str> = BTreeMap::new();
        for pod in self.pods.values().filter(|pod| !ended(pod)) {
            if let Some(node) = &pod.node {
                expected.insert(pod.uid, node);
            }
        }
        let ledger = self.engine.ledger();
        let mut bound: BTreeMap<Uid, &str> = BTreeMap::new();
        let mut nominated: BTreeMap<Uid, &str> = BTreeMap::new();
        let mut rooms: BTreeMap<&str, cards::Room> = BTreeMap::new();
        for line in &ledger {
            let spec = self
                .nodes
                .get(line.node)
                .filter(|spec| !spec.cards.is_empty());
            let pod = self.pods.values().find(|pod| pod.uid == line.owner);
            if let (Some(spec), Some(pod)) = (spec, pod) {
                let room = rooms
                    .entry(line.node)
                    .or_insert_with(|| cards::Room::new(spec));
                cards::take(spec, room, &pod.template, &line.devices, false)
                    .unwrap_or_else(|error| panic!("{} on {}: {error}", pod.name, line.node));
            } else {
                assert_eq!(
                    line.devices,
                    Devices::NONE,
                    "devices of a node without cards"
                );
            }
            match line.purpose {
                Purpose::Bound => bound.insert(line.owner, line.node),
                Purpose::Nominated => nominated.insert(line.owner, line.node),
                Purpose::Held => None,
            };
            if line.purpose != Purpose::Held {
                continue;
            }
            let pod = self.pods.values().find(|pod| pod.uid == line.owner);
            let pod = pod.expect("holds belong to pods that exist");
            assert!(
                pod.node.is_none() && !pod.terminating && !ended(pod),
                "{}",
                pod.name
            );
            assert!(
                self.nodes.contains_key(line.node),
                "a hold on a node that is gone"
            );
            assert!(
                line.deadline_in.is_some(),
                "{} may be held for ever",
                pod.name
            );
        }
        assert_eq!(bound, expected, "the ledger against the bound pods");
        let expected = self.pods.values().filter(|pod| {
            let waits = pod.node.is_none() && pod.phase == PodPhase::Pending && !pod.terminating;
            pod.foreign && waits
        });
        let expected = expected.filter_map(|pod| Some((pod.uid, pod.nominated.as_deref()?)));
        assert_eq!(
            nominated,
            expected.collect(),
            "the ledger against the nominated pods"
        );
    }

    /// Of each group none run, or enough, unless a deadline runs or its owner allows less.
    fn nothing_runs_below_its_minimum(&self) {
        for id in self.engine.gangs() {
            let gang = self.engine.gang(id).expect("listed gangs exist");
            let Some(spec) = self.gangs.get(gang.name).filter(|_| !gang.single) else {
                continue;
            };
            let roles: &[&str] = match &spec.root.kind {
                GroupKind::Role(_) => &["", "all"],
                GroupKind::Group { .. } => &["a", "b"],
            };
            // Pods that name no role of the group count nowhere.
            let members = || {
                gang.members
                    .iter()
                    .filter(|member| roles.contains(&member.role))
            };
            let states = || members().map(|member| member.state);
            let runs = states()
                .filter(|state| *state == MemberState::Bound)
                .count();
            let ended = states()
                .filter(|state| *state == MemberState::Succeeded)
                .count();
            let in_flight = states().any(|state| state == MemberState::Planned);
            if runs == 0 || in_flight || runs + ended >= gang.min as usize {
                continue;
            }
            // A group that was given up is not kept whole: somebody else may bind its pods.
            let given_up = matches!(gang.phase, Phase::Ended(_));
            let lenient =
                given_up || spec.on_loss != LossMode::Strict && gang.phase == Phase::Running;
            assert!(
                gang.phase == Phase::Degraded || lenient,
                "{} of {} members of {} run, phase {:?}",
                runs,
                gang.min,
                gang.name,
                gang.phase
            );
        }
    }

    /// The engine is stopped, and another goes on from its snapshot. And: what only the objects say
    /// is the same in whatever order they are told.
    fn restart(&mut self) {
        let snapshot = self.engine.snapshot();
        let restored = Scheduler::restore(snapshot.clone()).expect("our own snapshots are legal");
        restored
            .check()
            .expect("the restored engine agrees with itself");
        assert_eq!(
            restored.snapshot(),
            snapshot,
            "a snapshot of the restored differs"
        );
        assert_eq!(
            restored.fingerprint(),
            self.engine.fingerprint(),
            "restored"
        );
        self.twin = Some(restored);
        let mut orders = Vec::new();
        for order in 0..3 {
            let mut events = self.objects();
            match order {
                0 => {}
                1 => events.reverse(),
                _ => events.sort_by_key(|event| {
                    let text = format!("{event:?}");
                    Uid::from_text(&text)
                }),
            }
            let mut engine = Scheduler::new(config());
            for event in events {
                engine.apply(event).expect("a legal event");
            }
            engine
                .check()
                .expect("the rebuilt engine agrees with itself");
            orders.push(engine);
        }
        let mut results = Vec::new();
        for engine in &mut orders {
            let before = summary(engine);
            let places = decide(engine, self.now);
            results.push((before, places, summary(engine), engine.decision_hash()));
        }
        assert_eq!(results[0], results[1], "objects told backwards");
        assert_eq!(results[0], results[2], "objects told in another order");
        // Without holds, what is used live follows from the objects alone.
        if self.holds().is_empty() {
            let uses = |engine: &Scheduler| -> Vec<NodeUse> {
                let nodes = engine.nodes();
                let of = |node: &gangline::engine::NodeView<'_>| {
                    let free = node
                        .resources
                        .iter()
                        .filter(|(_, free, all)| *free != 0 || *all != 0);
                    // Which cards pods have that do not say so depends on what was there before them.
                    let silent = |pod: &PodSpec| {
                        pod.node.as_deref() == Some(node.name) && pod.devices.is_none()
                    };
                    let dealt = self.is_parted(node.name) && self.pods.values().any(silent);
                    let held = node.cards.iter().flat_map(|cards| &cards.held);
                    let held = held.filter(|_| !dealt);
                    (
                        node.name.to_owned(),
                        free.map(|(name, free, _)| ((*name).to_owned(), *free))
                            .collect(),
                        held.map(|(cards, _)| cards.len()).sum(),
                    )
                };
                nodes.iter().map(of).collect()
            };
            let mut rebuilt = Scheduler::new(config());
            for event in self.objects() {
                rebuilt.apply(event).expect("a legal event");
            }
            assert_eq!(uses(&self.engine), uses(&rebuilt), "live against rebuilt");
        }
    }

    /// When nobody answers any more, holds and half groups are gone after their deadlines.
    fn settles_in_time(mut self) {
        for _ in 0..4 {
            decide(&mut self.engine, self.now);
            self.now = self.now.saturating_add(Nanos::from_secs(100));
        }
        let at = self.now;
        decide(&mut self.engine, at);
        for id in self.engine.gangs() {
            let gang = self.engine.gang(id).expect("listed gangs exist");
            let bound = gang.members.iter().any(|m| m.state == MemberState::Bound);
            let held = gang.members.iter().any(|m| m.state == MemberState::Planned);
            assert!(
                !(gang.phase == Phase::Degraded && bound && !held),
                "{} stays degraded",
                gang.name
            );
        }
        self.keeps_its_promises_alone();
    }

    fn keeps_its_promises_alone(&mut self) {
        self.twin = None;
        self.keeps_its_promises();
    }
}

fn key(name: &str) -> GangKey {
    GangKey {
        namespace: "default".into(),
        name: name.into(),
        source: "test".into(),
    }
}

/// A node, what is free of its resources, how many of its cards are used.
type NodeUse = (String, Vec<(String, i64)>, u32);

/// What can be seen of an engine: phases, verdicts, the ledger. Clocks are left out: those that did
/// not run yet may or may not be set.
fn summary(engine: &Scheduler) -> (Vec<String>, Vec<String>) {
    let gangs = engine.gangs().into_iter().filter_map(|id| {
        let gang = engine.gang(id)?;
        let members = gang
            .members
            .iter()
            .map(|m| format!("{} {:?}", m.name, m.state));
        let members: Vec<String> = members.collect();
        Some(format!(
            "{} {:?} {:?} {members:?}",
            gang.name, gang.phase, gang.verdict
        ))
    });
    let ledger = engine.ledger();
    let lines = ledger.iter().map(|line| {
        format!(
            "{:?} {} {:?} {:?}",
            line.owner, line.node, line.devices, line.purpose
        )
    });
    (gangs.collect(), lines.collect())
}

/// Decides; gives who was placed where.
fn decide(engine: &mut Scheduler, now: Nanos) -> Vec<(Uid, String)> {
    let decisions = engine.decide(now).to_vec();
    let placed = decisions
        .iter()
        .filter(|decision| decision.verdict == Verdict::Placed);
    placed
        .flat_map(|decision| engine.placements(decision))
        .map(|place| (place.pod, engine.node_name(place.node).to_owned()))
        .collect()
}
