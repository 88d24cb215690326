//! Views made by hand, as the engine would give them, and what becomes of them.

use gangline::{cluster::CardMode, device::Devices, explain::Shortfall, units::Nanos};

use super::*;

/// A node with one kind of cards.
pub(crate) fn node<'a>(
    ix: u32,
    name: &'a str,
    path: &[Option<&'a str>],
    cards: u32,
    held: &[(u64, u32)],
) -> NodeView<'a> {
    let held = held.iter().map(|&(set, gang)| (CardSet(set), GangId(gang)));
    let kind = CardsView {
        kind: "nvidia.com/gpu",
        model: "",
        all: CardSet::first(cards).expect("at most 64 cards"),
        in_doubt: CardSet::EMPTY,
        unhealthy: CardSet::EMPTY,
        memory_mib: 0,
        held: held.collect(),
        parts: Vec::new(),
        loose: Vec::new(),
        known: None,
        modes: &[],
        links: None,
    };
    NodeView {
        ix: NodeIx(ix),
        name,
        path: path.to_vec(),
        unschedulable: false,
        taints: &[],
        cards: if cards > 0 { vec![kind] } else { Vec::new() },
        resources: vec![("cpu", 48_000, 64_000)],
    }
}

/// A member with one card on each node that is given, waiting ones without.
pub(crate) fn member(name: &str, place: Option<(u32, u64)>) -> MemberView<'_> {
    MemberView {
        uid: gangline::units::Uid::from_text(name),
        name,
        role: "",
        rank: 0,
        runs: false,
        retried: false,
        state: match place {
            Some(_) => MemberState::Planned,
            None => MemberState::Waiting,
        },
        node: place.map(|(node, _)| NodeIx(node)),
        devices: Devices::of_cards(CardSet(place.map_or(0, |(_, cards)| cards))),
        assumed: false,
        told: None,
        wants_cards: None,
        memory: None,
    }
}

/// A gang of these members.
pub(crate) fn gang<'a>(id: u32, name: &'a str, members: Vec<MemberView<'a>>) -> GangView<'a> {
    let placed = members.iter().any(|member| member.node.is_some());
    GangView {
        id: GangId(id),
        namespace: "default",
        name,
        source: "volcano",
        single: false,
        phase: if placed {
            Phase::Planned
        } else {
            Phase::Queued
        },
        verdict: if placed {
            Verdict::Placed
        } else {
            Verdict::Infeasible
        },
        priority: 0,
        queue: "",
        min: members.len() as u32,
        required_level: None,
        timeout_left: None,
        members,
    }
}

/// "needs 4 GPUs, 1 free", and two ways out.
pub(crate) fn three_cards_short() -> Explanation {
    let reason = Reason::DoesNotFit {
        members: 4,
        nodes: 2,
        shortfall: Some(Shortfall {
            resource: "nvidia.com/gpu".into(),
            needed: 4,
            free: 1,
            scattered: 1,
        }),
        causes: Vec::new(),
        level: None,
        best_domain: None,
    };
    Explanation {
        reason: Some(reason.clone()),
        members: vec![("b-0".into(), reason)],
        domains: vec![DomainAttempt {
            level: NODE_LEVEL.into(),
            domain: "n2".into(),
            fits: 1,
            needed: 4,
            free_cards: 1,
        }],
        counterfactuals: vec![
            Counterfactual::MoreCards {
                kind: "nvidia.com/gpu".into(),
                model: String::new(),
                count: 3,
                domain: None,
                nodes: 1,
                mode: CardMode::Whole,
                near: String::new(),
            },
            Counterfactual::Departure {
                gangs: vec!["default/service-a".into()],
                pods: Vec::new(),
            },
        ],
        ahead: 1,
        if_first: vec![Counterfactual::Uncordon { node: "n3".into() }],
    }
}

/// Two services of four on five cards: one runs, one waits.
pub(crate) fn five_cards() -> Report {
    let views = [
        node(0, "n1", &[Some("r1")], 4, &[(0b1111, 0)]),
        node(1, "n2", &[Some("r2")], 1, &[]),
    ];
    let levels = ["example.com/rack".to_owned()];
    let nodes = Nodes::new(&levels, &views);
    let places = (0..4).map(|card| Some((0, 1 << card)));
    let a = ["a-0", "a-1", "a-2", "a-3"].into_iter().zip(places);
    let a = a.map(|(name, place)| member(name, place)).collect();
    let b = ["b-0", "b-1", "b-2", "b-3"]
        .map(|name| member(name, None))
        .to_vec();
    Report {
        schema_version: SCHEMA_VERSION,
        decision_hash: hash_text(0xfeed),
        gangs: vec![
            GangReport::new(&gang(0, "service-a", a), &nodes, None),
            GangReport::new(&gang(1, "service-b", b), &nodes, Some(three_cards_short())),
        ],
        cards: card_totals(&views),
        complaints: Vec::new(),
    }
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn the_plan_shows_a_table_then_who_waits_and_what_would_help() {
    assert_eq!(
        plain(&text::plan(&five_cards(), false, false)),
        "\
GANG               STATE       MEMBERS  DOMAIN   NODES
default/service-a  placed      4/4      node n1  n1[0-3]
default/service-b  infeasible  0/4      -

Waiting
  default/service-b  infeasible: needs 4 GPUs, 1 free
    admitted if 3 more GPUs appear on a new node or default/service-a ends
    without the one that waits ahead of it, admitted if node n3 is uncordoned

0 run, 1 placed, 1 waits. 5 GPUs: 4 held, 1 free.
"
    );
}

#[test]
fn why_tells_the_full_story() {
    let report = five_cards();
    assert_eq!(
        plain(&text::why(&report.gangs[1])),
        "\
volcano gang default/service-b: infeasible
  0 of 4 placed, minimum 4

Reason
  needs 4 GPUs, 1 free (DoesNotFit)
  2 of 2 nodes can take a member by itself

Best attempt in each node
  DOMAIN  FITS  FREE CARDS
  n2      1/4   1

Members
  POD  STATE    PLACE OR REASON
  b-0  waiting  the reason above
  b-1  waiting
  b-2  waiting
  b-3  waiting

Admitted if any one of these happens
  - 3 more GPUs appear on a new node
  - default/service-a ends

Without the one that waits ahead of it, admitted if any one of these happens
  - node n3 is uncordoned
"
    );
}

#[test]
fn the_json_keeps_to_its_schema() {
    let json = serde_json::to_value(five_cards()).expect("a report is plain data");
    assert_eq!(json["schema_version"], 1);
    assert_eq!(json["decision_hash"], "000000000000feed");
    let a = &json["gangs"][0];
    assert_eq!(
        (&a["namespace"], &a["name"]),
        (&"default".into(), &"service-a".into())
    );
    assert_eq!(
        (&a["state"], &a["verdict"]),
        (&"planned".into(), &"placed".into())
    );
    assert_eq!(a["members"][2]["pod"], "a-2");
    assert_eq!(a["members"][2]["node"], "n1");
    assert_eq!(a["members"][2]["cards"], serde_json::json!([2]));
    let b = &json["gangs"][1];
    assert_eq!(b["verdict"], "infeasible");
    assert_eq!(b["reason"]["code"], "DoesNotFit");
    assert_eq!(b["reason"]["message"], "needs 4 GPUs, 1 free");
    assert_eq!(b["reason"]["facts"]["shortfall"]["free"], 1);
    assert_eq!(b["counterfactuals"][0]["change"], "more-cards");
    assert_eq!(b["counterfactuals"][1]["message"], "default/service-a ends");
    assert_eq!(b["members"][0]["node"], serde_json::Value::Null);
}

#[test]
fn the_domain_of_a_gang_is_the_finest_that_holds_it_all() {
    let views = [
        node(0, "n1", &[Some("b1"), Some("r1")], 8, &[]),
        node(1, "n2", &[Some("b1"), Some("r1")], 8, &[]),
        node(2, "n3", &[Some("b1"), Some("r2")], 8, &[]),
        node(3, "n4", &[Some("b2"), None], 8, &[]),
        node(4, "n5", &[Some("b2"), None], 8, &[]),
    ];
    let levels = ["block".to_owned(), "rack".to_owned()];
    let nodes = Nodes::new(&levels, &views);
    let domain = |indexes: &[u32]| {
        let domain = nodes.common_domain(indexes.iter().map(|&ix| NodeIx(ix)))?;
        Some(format!("{}={}", domain.level, domain.name))
    };
    assert_eq!(domain(&[0]).as_deref(), Some("kubernetes.io/hostname=n1"));
    assert_eq!(domain(&[0, 1]).as_deref(), Some("rack=r1"));
    assert_eq!(domain(&[0, 1, 2]).as_deref(), Some("block=b1"));
    assert_eq!(domain(&[3, 4]).as_deref(), Some("block=b2"));
    assert_eq!(domain(&[0, 3]), None);
    assert_eq!(domain(&[]), None);
}

#[test]
fn like_neighbours_are_folded_and_long_lists_counted() {
    let placed = |node: String, cards: u64| MemberReport {
        pod: String::new(),
        role: String::new(),
        rank: 0,
        state: MemberState::Bound,
        node: Some(node),
        cards: CardSet(cards),
        assumed: false,
        parts: Vec::new(),
        links: None,
        memory: None,
        reason: None,
    };
    let members: Vec<_> = (9..=12).map(|n| placed(format!("n{n}"), 0xff)).collect();
    assert_eq!(text::nodes_text(&members), "n9..n12[0-7]");
    let assumed = MemberReport {
        assumed: true,
        ..placed("n1".into(), 3)
    };
    let members = [assumed, placed("n2".into(), 3)];
    assert_eq!(text::nodes_text(&members), "n1[0-1?] n2[0-1]");
    let members = [
        placed("n1".into(), 1),
        placed("n2".into(), 2),
        placed("n1".into(), 4),
    ];
    assert_eq!(text::nodes_text(&members), "n1[0,2] n2[1]");
    let members = [
        placed("c1".into(), 0),
        placed("c1".into(), 0),
        placed("c3".into(), 0),
    ];
    assert_eq!(text::nodes_text(&members), "c1(2) c3");
    let members: Vec<_> = (0..20).map(|n| placed(format!("n{}", n * 2), 1)).collect();
    assert!(text::nodes_text(&members).ends_with(" and 8 more"));
}

#[test]
fn cards_are_counted_once_each() {
    let mut views = [
        node(0, "n1", &[], 4, &[(0b0011, 0), (0b0100, 1)]),
        node(1, "n2", &[], 4, &[]),
        node(2, "n3", &[], 4, &[]),
    ];
    views[1].unschedulable = true;
    views[2].cards[0].unhealthy = CardSet(0b1001);
    let totals = card_totals(&views)["nvidia.com/gpu"];
    let expected = CardTotals {
        total: 12,
        held: 3,
        in_parts: 0,
        free: 3,
        unusable: 6,
    };
    assert_eq!(totals, expected);
}

#[test]
fn pods_that_all_run_without_their_group_object_do_not_wait() {
    let pod = |name: &str| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: \
             {{scheduling.x-k8s.io/pod-group: g}}}}\nspec: {{nodeName: n1}}\nstatus: {{phase: Running}}\n"
        )
    };
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n".to_owned();
    let world = crate::intake::testing::world(&[node, pod("a"), pod("b")].concat());
    let mut scheduler = world.engine();
    scheduler.decide(Nanos::ZERO);
    let report = Report::new(&scheduler, scheduler.gangs(), vec![], || {});
    let words: Vec<_> = report.gangs.iter().map(GangReport::word).collect();
    assert_eq!(words, ["running"]);
    assert!(report.gangs.iter().all(|gang| gang.reason.is_none()));
}

#[test]
fn cards_that_are_too_many_to_be_told_apart_are_in_the_totals() {
    let mut counted = node(0, "n1", &[], 0, &[]);
    counted.resources.push(("nvidia.com/gpu", 30, 80));
    let mut over_used = node(1, "n2", &[], 0, &[]);
    over_used.resources.push(("nvidia.com/gpu", -5, 80));
    let mut cordoned = counted.clone();
    cordoned.unschedulable = true;
    let totals = card_totals(&[counted, over_used, cordoned]);
    let totals = totals["nvidia.com/gpu"];
    assert_eq!((totals.total, totals.held), (240, 50 + 80 + 50));
    assert_eq!((totals.free, totals.unusable), (30, 30));
}
