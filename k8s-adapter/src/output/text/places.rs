//! Where members are, in as few words as will do.
//!
//! Data enters as [`MemberReport`]s and leaves as text without colours, such as `n1..n4[0-7]`,
//! or `n1[0-2?]` where nobody told which cards a pod runs on.

use std::{collections::BTreeMap, fmt::Write as _};

use super::super::{MemberReport, devices::devices_text};
use crate::names::natural_parts;

/// More node groups than this in one cell are counted instead of listed.
const NODE_GROUPS: usize = 12;

/// Nodes with their devices, like neighbours folded: `n1..n4[0-7] n5[0:1g.5gb@4-6] c1(3)`.
pub fn nodes_text(members: &[MemberReport]) -> String {
    struct Used<'a> {
        node: &'a str,
        devices: String,
        members: usize,
    }
    let mut by_node: BTreeMap<&str, Vec<&MemberReport>> = BTreeMap::new();
    for member in members {
        if let Some(node) = member.node.as_deref() {
            by_node.entry(node).or_default().push(member);
        }
    }
    let used = by_node.into_iter().map(|(node, members)| Used {
        node,
        members: members.len(),
        devices: marked(devices_text(members.iter().copied()), &members),
    });
    let mut used: Vec<Used<'_>> = used.collect();
    used.sort_by(|a, b| natural_parts(a.node).cmp(&natural_parts(b.node)));
    let follows = |a: &Used<'_>, b: &Used<'_>| {
        let ((a_stem, a_number), (b_stem, b_number)) =
            (natural_parts(a.node), natural_parts(b.node));
        let next = a_number.and_then(|number| number.checked_add(1));
        a_stem == b_stem
            && next.is_some()
            && next == b_number
            && (&a.devices, a.members) == (&b.devices, b.members)
    };
    let groups: Vec<_> = used.chunk_by(follows).collect();
    let mut texts: Vec<String> = Vec::new();
    for group in groups.iter().take(NODE_GROUPS) {
        let (first, name) = match group {
            [first, .., last] => {
                let dots = if group.len() == 2 { "," } else { ".." };
                (first, format!("{}{dots}{}", first.node, last.node))
            }
            [first] => (first, first.node.to_owned()),
            [] => continue,
        };
        texts.push(match (first.devices.as_str(), first.members) {
            ("", 1) => name,
            ("", members) => format!("{name}({members})"),
            (devices, _) => format!("{name}[{devices}]"),
        });
    }
    let mut text = texts.join(" ");
    if groups.len() > NODE_GROUPS {
        let more: usize = groups
            .iter()
            .skip(NODE_GROUPS)
            .map(|group| group.len())
            .sum();
        let _ = write!(text, " and {more} more");
    }
    text
}

/// Devices that are assumed have a question mark.
fn marked(devices: String, members: &[&MemberReport]) -> String {
    if devices.is_empty() || !members.iter().any(|member| member.assumed) {
        devices
    } else {
        devices + "?"
    }
}

/// The same with the links of their cards, where they are known: `n1[0,3] (NV2)`.
pub fn places_text(members: &[MemberReport]) -> String {
    let nodes = nodes_text(members);
    match links_text(members) {
        Some(links) => format!("{nodes} ({links})"),
        None => nodes,
    }
}

/// How the cards of each of these members reach each other: the worst of them, and whether the
/// cards of each are on one NUMA node. `None` when nobody has several cards or nothing is known.
pub(super) fn links_text(members: &[MemberReport]) -> Option<String> {
    let all = members.iter().filter_map(|member| member.links);
    let worst = all.clone().min_by_key(|links| links.bottleneck)?;
    if all.clone().count() == 1 {
        return Some(worst.to_string());
    }
    let one_numa_node = all.clone().all(|links| links.numa_node.is_some());
    let numa_node = if one_numa_node {
        ", one NUMA node each"
    } else {
        ""
    };
    let bottleneck = worst.bottleneck?;
    Some(format!("{bottleneck}{numa_node}"))
}
