//! What a picture must have, on clusters made by hand.

use gangline::{bits::CardSet, engine::MemberView};

use super::*;
use crate::output::{
    Nodes,
    tests::{gang, member, node, three_cards_short},
};

/// A cluster of `racks` racks of `size` nodes, its gangs laid over it one after another.
fn cluster(blocks: usize, racks: usize, size: usize, gangs: usize) -> String {
    let levels = [
        "example.com/block".to_owned(),
        "example.com/rack".to_owned(),
    ];
    let name = |letter: char, index: usize| format!("{letter}{}", index + 1);
    let racks_of: Vec<(String, String)> = (0..blocks * racks)
        .map(|rack| (name('b', rack / racks), name('r', rack)))
        .collect();
    let names: Vec<String> = (0..racks_of.len() * size)
        .map(|index| name('n', index))
        .collect();
    let per_gang = names.len() / (gangs + 1);
    let mut views = Vec::new();
    let mut members: Vec<Vec<MemberView<'_>>> = vec![Vec::new(); gangs];
    for (index, name) in names.iter().enumerate() {
        let (block, rack) = &racks_of[index / size];
        let path = [
            Some(block.as_str()),
            (index % 97 != 96).then_some(rack.as_str()),
        ];
        let owner = index / per_gang.max(1);
        let mut held = Vec::new();
        if owner < gangs {
            let cards = if index % 5 == 4 { 0x0f } else { 0xff };
            held.push((cards, owner as u32));
            members[owner].push(member("m", Some((index as u32, cards))));
        } else if index % 3 == 0 {
            held.push((0b0001_0010, 9_999));
        }
        let cards = if index % 31 == 30 { 0 } else { 8 };
        let mut view = node(index as u32, name, &path, cards, &held);
        view.unschedulable = index % 29 == 11;
        if let (23, Some(cards)) = (index % 24, view.cards.first_mut()) {
            cards.unhealthy = CardSet(0b1100_0000);
        }
        views.push(view);
    }
    views.sort_by(|a, b| {
        let key = |view: &NodeView<'_>| (view.path[0].map(String::from), view.path[1].is_none());
        key(a).cmp(&key(b))
    });
    let gang_names: Vec<String> = (0..gangs)
        .map(|index| format!("training-run-{index}"))
        .collect();
    let nodes = Nodes::new(&levels, &views);
    let placed = gang_names.iter().zip(members).enumerate();
    let mut reports: Vec<GangReport> = placed
        .map(|(id, (name, members))| {
            let mut view = gang(id as u32, name, members);
            if id % 2 == 0 {
                view.phase = gangline::gang::life::Phase::Running;
            }
            GangReport::new(&view, &nodes, None)
        })
        .collect();
    let waiting = ["b-0", "b-1", "b-2", "b-3"]
        .map(|name| member(name, None))
        .to_vec();
    let waiting = gang(500, "service-b", waiting);
    reports.push(GangReport::new(&waiting, &nodes, Some(three_cards_short())));
    draw(&levels, &views, &reports)
}

#[test]
fn a_small_picture_names_nodes_and_letters_cards() {
    let svg = cluster(1, 2, 4, 3);
    for expected in [
        "8 nodes: 3 gangs and pods have their places, 1 waits",
        "block b1",
        "rack r2",
        ">n8</text>",
        ">A</text>",
        "default/training-run-0: nvidia.com/gpu 0-7",
        "needs 4 GPUs, 1 free",
        "admitted if 3 more GPUs appear on a new node",
    ] {
        assert!(svg.contains(expected), "{expected} is missing");
    }
    assert!(!svg.contains("<script"));
}

#[test]
fn a_thousand_nodes_lose_their_names_but_keep_their_tooltips() {
    let svg = cluster(5, 10, 20, 40);
    assert!(!svg.contains("class=\"node-name\""));
    assert!(svg.contains("<title>node n777"));
    assert!(
        svg.contains("no rack"),
        "unlabelled nodes have a box of their own"
    );
    assert!(
        svg.contains("url(#p00)"),
        "patterns follow when the colours are used up"
    );
    assert!(svg.len() < 1 << 20, "a thousand nodes are under a megabyte");
}

#[test]
fn hostile_names_stay_text() {
    let nodes = [node(0, "</text><script>&\"\u{1}", &[], 1, &[])];
    let svg = draw(&[], &nodes, &[]);
    assert!(svg.contains("node &lt;/text&gt;&lt;script&gt;&amp;&quot;\u{fffd}"));
    assert!(!svg.contains("<script"));
}

#[test]
fn an_empty_cluster_is_a_picture_too() {
    assert!(draw(&[], &[], &[]).contains("0 nodes"));
}

#[test]
fn long_names_keep_the_end_that_tells_them_apart() {
    assert_eq!(
        shortened("gke-gpu-pool-7f3a", 40.0, 10.0, Keep::End),
        "…-7f3a"
    );
    assert_eq!(
        shortened("default/service", 40.0, 10.0, Keep::Start),
        "defau…"
    );
    assert_eq!(shortened("n1", 40.0, 10.0, Keep::End), "n1");
}
