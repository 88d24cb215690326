//! The reports as text for a terminal: tables, and plain words under them.
//!
//! Data enters as a [`Report`] or a [`GangReport`] and leaves as text with colour codes; whoever
//! prints it strips them where they are not wanted. Nothing here decides anything or knows a
//! terminal.

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter, Write as _},
};

use anstyle::{AnsiColor, Style};
use comfy_table::{Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Table, presets};
use gangline::{
    Verdict,
    device::overhead::Need,
    engine::MemberState,
    explain::{Amount, Counterfactual, Reason, join_words, level_word},
};

use super::{
    CardTotals, Domain, GangReport, MemberReport, ReasonReport, Report, devices::devices_text,
};
use crate::names::natural_parts;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// More rows than this, and gangs that ran before are counted instead of listed.
const ROWS: usize = 60;
/// More waiting gangs than this have no lines of their own under the table.
const WAITING: usize = 100;
/// More node groups than this in one cell are counted instead of listed.
const NODE_GROUPS: usize = 12;
/// More members than this are counted instead of listed by `why`.
const MEMBERS: usize = 40;
/// More departing pods than this are counted instead of listed by `why`.
const PODS: usize = 4;

/// Text in a style.
struct Styled<T>(Style, T);

impl<T: Display> Display for Styled<T> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}{:#}", self.0, self.1, self.0)
    }
}

fn verdict_color(verdict: Verdict) -> (Color, AnsiColor) {
    match verdict {
        Verdict::Placed => (Color::Green, AnsiColor::Green),
        Verdict::Waiting => (Color::Yellow, AnsiColor::Yellow),
        Verdict::Undecided => (Color::Magenta, AnsiColor::Magenta),
        Verdict::Infeasible | Verdict::Release | Verdict::Failed => (Color::Red, AnsiColor::Red),
    }
}

fn verdict_style(verdict: Verdict) -> Style {
    verdict_color(verdict).1.on_default()
}

/// A table without lines, as wide as the terminal allows.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .enforce_styling()
        .set_header(
            header
                .iter()
                .map(|title| Cell::new(title).add_attribute(Attribute::Bold)),
        );
    table.style_text_only();
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

/// The table's lines without the blanks that pad its last column.
pub(crate) fn push_table(text: &mut String, indent: &str, table: &Table) {
    for line in table.lines() {
        let _ = writeln!(text, "{indent}{}", line.trim_end());
    }
}

/// What `gangline plan` prints. `all` lists also the many that run already, `members` each member
/// that has a place.
pub fn plan(report: &Report, all: bool, members: bool) -> String {
    let mut text = String::new();
    let runs_already = |gang: &GangReport| gang.is_placed() && gang.word() == "running";
    let hide = !all && report.gangs.len() > ROWS;
    let shown = |gang: &&GangReport| !(hide && runs_already(gang));
    if report.gangs.is_empty() {
        text.push_str("No pods: nothing to place.\n");
    } else {
        let linked = report
            .gangs
            .iter()
            .filter(shown)
            .any(|gang| links_text(&gang.members).is_some());
        let mut header = vec!["GANG", "STATE", "MEMBERS", "DOMAIN", "NODES"];
        header.extend(linked.then_some("LINKS"));
        let mut rows = table(&header);
        // Only the list of nodes may be broken over lines.
        for column in rows.column_iter_mut().take(4) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
        // Those that run already have no order of their own: by name. The others are in queue order.
        let mut gangs: Vec<&GangReport> = report.gangs.iter().filter(shown).collect();
        gangs.sort_by_key(|gang| {
            let runs = runs_already(gang);
            (
                !runs,
                runs.then(|| (&gang.namespace, natural_parts(&gang.name))),
            )
        });
        for gang in gangs {
            let mut row = vec![
                Cell::new(gang.full_name()),
                Cell::new(gang.word()).fg(verdict_color(gang.verdict).0),
                Cell::new(format!("{}/{}", gang.placed, gang.wanted.max(gang.min))),
                Cell::new(domain_text(gang.domain.as_ref())),
                Cell::new(nodes_text(&gang.members)),
            ];
            row.extend(linked.then(|| Cell::new(links_text(&gang.members).unwrap_or_default())));
            rows.add_row(row);
        }
        push_table(&mut text, "", &rows);
    }
    let hidden = report.gangs.iter().filter(|gang| !shown(gang)).count();
    if hidden > 0 {
        let note = format!("{hidden} that run already are not listed (--all lists them)");
        let _ = writeln!(text, "{}", Styled(DIM, note));
    }
    if members {
        let shown = report.gangs.iter().filter(shown);
        push_places(
            &mut text,
            shown.filter(|gang| !gang.single && gang.placed > 0),
        );
    }
    push_waiting(&mut text, report);
    let _ = writeln!(text, "\n{}", summary(report));
    text
}

/// Each member of these gangs that has a place, with its devices and their links.
fn push_places<'a>(text: &mut String, gangs: impl Iterator<Item = &'a GangReport> + Clone) {
    if gangs.clone().next().is_none() {
        return;
    }
    let _ = writeln!(text, "\n{}", Styled(BOLD, "Members"));
    let mut rows = table(&["POD", "STATE", "PLACE", "LINKS"]);
    for gang in gangs {
        for member in gang.members.iter().filter(|member| member.node.is_some()) {
            rows.add_row([
                format!("{}/{}", gang.namespace, member.pod),
                member_word(member.state).to_owned(),
                nodes_text(std::slice::from_ref(member)),
                member
                    .links
                    .map(|links| links.to_string())
                    .unwrap_or_default(),
            ]);
        }
    }
    push_table(text, "  ", &rows);
}

/// How the cards of each of these members reach each other: the worst of them, and whether the
/// cards of each are on one NUMA node. `None` when nobody has several cards or nothing is known.
fn links_text(members: &[MemberReport]) -> Option<String> {
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

/// Who waits for what, in queue order.
fn push_waiting(text: &mut String, report: &Report) {
    let waits = |gang: &&GangReport| gang.reason.is_some();
    let waiting = report.gangs.iter().filter(waits);
    let count = waiting.clone().count();
    if count > 0 {
        let _ = writeln!(text, "\n{}", Styled(BOLD, "Waiting"));
    }
    for gang in waiting.take(WAITING) {
        push_reason(text, "  ", gang);
    }
    if count > WAITING {
        let more = count - WAITING;
        let note = format!("and {more} more (--output json has them all)");
        let _ = writeln!(text, "  {}", Styled(DIM, note));
    }
}

/// `name  verdict: reason` and, below it, what would help.
fn push_reason(text: &mut String, indent: &str, gang: &GangReport) {
    let word = if gang.is_placed() {
        "surplus"
    } else {
        gang.word()
    };
    let style = verdict_style(gang.verdict);
    let _ = write!(
        text,
        "{indent}{}  {}",
        gang.full_name(),
        Styled(style, word)
    );
    match &gang.reason {
        Some(reason) => {
            let _ = writeln!(text, ": {}", reason.message);
        }
        None => text.push('\n'),
    }
    if let Some(help) = admitted_if(gang) {
        let _ = writeln!(text, "{indent}  {help}");
    }
}

/// "admitted if A or B", when a change is known.
pub fn admitted_if(gang: &GangReport) -> Option<String> {
    let mut changes: Vec<_> = gang.counterfactuals.iter().collect();
    // What the cluster can do comes before what the gang's owner would have to give up.
    changes.sort_by_key(|change| match change.facts {
        Counterfactual::MoreCards { .. } => 0,
        Counterfactual::Uncordon { .. } | Counterfactual::Departure { .. } => 1,
        Counterfactual::RelaxLevel { .. } | Counterfactual::FewerMembers { .. } => 2,
    });
    let changes: Vec<&str> = changes
        .iter()
        .map(|change| change.message.as_str())
        .collect();
    (!changes.is_empty()).then(|| format!("admitted if {}", join_words(&changes, "or")))
}

/// One sentence on gangs, one on each kind of card.
fn summary(report: &Report) -> String {
    let placed = report.gangs.iter().filter(|gang| gang.is_placed());
    let new = placed
        .clone()
        .filter(|gang| gang.word() == "placed")
        .count();
    let run = placed.count() - new;
    let waits = report.gangs.iter().filter(|gang| gang.waits()).count();
    let plural = |count, one, many| if count == 1 { one } else { many };
    let (runs, wait) = (plural(run, "runs", "run"), plural(waits, "waits", "wait"));
    let mut text = format!("{run} {runs}, {new} placed, {waits} {wait}.");
    for (kind, totals) in &report.cards {
        let CardTotals {
            total,
            held,
            in_parts,
            free,
            unusable,
        } = *totals;
        let amount = i64::from(total);
        let total = Amount {
            resource: kind,
            amount,
        };
        let _ = write!(text, " {total}: {held} held");
        if in_parts > 0 {
            let _ = write!(text, " ({in_parts} in parts)");
        }
        let _ = write!(text, ", {free} free");
        if unusable > 0 {
            let _ = write!(text, ", {unusable} unusable");
        }
        text.push('.');
    }
    text
}

/// `rack r1`, or a dash.
fn domain_text(domain: Option<&Domain>) -> String {
    domain.map_or("-".to_owned(), |domain| {
        format!("{} {}", level_word(&domain.level), domain.name)
    })
}

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
        devices: devices_text(members),
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

/// The same with the links of their cards, where they are known: `n1[0,3] (NV2)`.
pub fn places_text(members: &[MemberReport]) -> String {
    let nodes = nodes_text(members);
    match links_text(members) {
        Some(links) => format!("{nodes} ({links})"),
        None => nodes,
    }
}

/// What `gangline why` prints.
pub fn why(gang: &GangReport) -> String {
    let mut text = String::new();
    let kind = match (gang.single, gang.source.as_str()) {
        (true, _) => "pod".to_owned(),
        (false, "") => "gang".to_owned(),
        (false, source) => format!("{source} gang"),
    };
    let style = verdict_style(gang.verdict);
    let _ = writeln!(
        text,
        "{kind} {}: {}",
        Styled(BOLD, gang.full_name()),
        Styled(style, gang.word())
    );
    let mut about = vec![format!(
        "{} of {} placed, minimum {}",
        gang.placed, gang.wanted, gang.min
    )];
    if gang.priority != 0 {
        about.push(format!("priority {}", gang.priority));
    }
    if !gang.queue.is_empty() {
        about.push(format!("queue {}", gang.queue));
    }
    if gang.domain.is_some() {
        about.push(format!("in {}", domain_text(gang.domain.as_ref())));
    }
    let _ = writeln!(text, "  {}", about.join("; "));
    if let Some(reason) = &gang.reason {
        let _ = writeln!(text, "\n{}", Styled(BOLD, "Reason"));
        let _ = writeln!(text, "  {} ({})", reason.message, reason.code);
        push_causes(&mut text, "  ", &reason.facts);
    }
    push_domains(&mut text, gang);
    push_members(&mut text, gang);
    push_memory(&mut text, gang);
    if !gang.counterfactuals.is_empty() {
        let _ = writeln!(
            text,
            "\n{}",
            Styled(BOLD, "Admitted if any one of these happens")
        );
        for change in &gang.counterfactuals {
            let _ = writeln!(text, "  - {}", change.message);
            push_departing(&mut text, &change.facts);
        }
    } else if gang.reason.is_some() {
        let _ = writeln!(text, "\nNo single change was found that would admit it.");
    }
    text
}

/// Which pods of departing gangs suffice, when that is not all that was said.
fn push_departing(text: &mut String, change: &Counterfactual) {
    let Counterfactual::Departure { gangs, pods } = change else {
        return;
    };
    if pods.is_empty() || pods == gangs {
        return;
    }
    let mut shown: Vec<&str> = pods.iter().map(String::as_str).take(PODS).collect();
    let more = format!("{} more", pods.len() - shown.len());
    if pods.len() > PODS {
        shown.push(&more);
    }
    let verb = if pods.len() == 1 {
        "suffices"
    } else {
        "suffice"
    };
    let _ = writeln!(text, "    {} {verb}", join_words(&shown, "and"));
}

/// How many nodes failed for which cause, one line each.
fn push_causes(text: &mut String, indent: &str, reason: &Reason) {
    match reason {
        Reason::DoesNotFit { nodes, causes, .. } => {
            let failed: u32 = causes.iter().map(|count| count.nodes).sum();
            let fit = nodes.saturating_sub(failed);
            let noun = if *nodes == 1 { "node" } else { "nodes" };
            let alone = if fit > 0 { " by itself" } else { "" };
            let _ = write!(
                text,
                "{indent}{fit} of {nodes} {noun} can take a member{alone}"
            );
            let causes: Vec<String> = causes.iter().map(ToString::to_string).collect();
            let colon = if causes.is_empty() { "" } else { ": " };
            let _ = writeln!(text, "{colon}{}", causes.join(", "));
        }
        Reason::WaitsForSibling { because, .. } | Reason::Surplus { because } => {
            push_causes(text, indent, because);
        }
        _ => {}
    }
}

/// The best attempt in each domain, as a table.
fn push_domains(text: &mut String, gang: &GangReport) {
    let Some(first) = gang.domains.first() else {
        return;
    };
    let title = format!("Best attempt in each {}", level_word(&first.level));
    let _ = writeln!(text, "\n{}", Styled(BOLD, title));
    let mut rows = table(&["DOMAIN", "FITS", "FREE CARDS"]);
    for attempt in gang.domains.iter().take(MEMBERS) {
        rows.add_row([
            attempt.domain.clone(),
            format!("{}/{}", attempt.fits, attempt.needed),
            attempt.free_cards.to_string(),
        ]);
    }
    push_table(text, "  ", &rows);
    if gang.domains.len() > MEMBERS {
        let _ = writeln!(text, "  and {} more", gang.domains.len() - MEMBERS);
    }
}

/// Every member with its place or its own reason.
fn push_members(text: &mut String, gang: &GangReport) {
    if gang.single && gang.reason.is_some() {
        return; // The pod's reason is the gang's.
    }
    let _ = writeln!(text, "\n{}", Styled(BOLD, "Members"));
    let linked = gang.members.iter().any(|member| member.links.is_some());
    let mut header = vec!["POD", "STATE", "PLACE OR REASON"];
    header.extend(linked.then_some("LINKS"));
    let mut rows = table(&header);
    // Those that wait are what was asked for, so they come first.
    let waits = |member: &&MemberReport| member.reason.is_some();
    let waiting = gang.members.iter().filter(waits);
    let others = gang.members.iter().filter(|member| !waits(member));
    for member in waiting.chain(others).take(MEMBERS) {
        let place = match (&member.node, &member.reason) {
            (_, Some(reason)) => member_reason(reason, gang.reason.as_ref()),
            (Some(_), None) => nodes_text(std::slice::from_ref(member)),
            (None, None) => String::new(),
        };
        let mut row = vec![
            member.pod.clone(),
            member_word(member.state).to_owned(),
            place,
        ];
        let links = || {
            member
                .links
                .map(|links| links.to_string())
                .unwrap_or_default()
        };
        row.extend(linked.then(links));
        rows.add_row(row);
    }
    push_table(text, "  ", &rows);
    if gang.members.len() > MEMBERS {
        let _ = writeln!(text, "  and {} more", gang.members.len() - MEMBERS);
    }
}

/// The memory that parts of cards need, term by term, where processes need more than they say.
fn push_memory(text: &mut String, gang: &GangReport) {
    let mut sums: Vec<(Need, Vec<&str>)> = Vec::new();
    for member in &gang.members {
        let Some(need) = member.memory.filter(|need| need.total > need.declared) else {
            continue;
        };
        match sums.iter_mut().find(|(known, _)| *known == need) {
            Some((_, pods)) => pods.push(&member.pod),
            None => sums.push((need, vec![&member.pod])),
        }
    }
    if sums.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "\n{}",
        Styled(BOLD, "Card memory of each part, in MiB")
    );
    for (need, pods) in sums {
        let terms = [
            (need.context, "context"),
            (need.framework, "framework"),
            (need.communicator, "communicator"),
            (need.engine, "engine"),
        ];
        let _ = write!(text, "  {} declared", need.declared);
        for (mib, word) in terms.iter().filter(|(mib, _)| *mib > 0) {
            let _ = write!(text, " + {mib} {word}");
        }
        let _ = write!(text, " = {}", need.total);
        let mut shown: Vec<&str> = pods.iter().copied().take(PODS).collect();
        let more = format!("{} more", pods.len() - shown.len());
        if pods.len() > PODS {
            shown.push(&more);
        }
        let _ = writeln!(text, "  ({})", join_words(&shown, "and"));
    }
}

/// A member's reason, without what was said about the gang already.
fn member_reason(reason: &ReasonReport, of_gang: Option<&ReasonReport>) -> String {
    let said = |facts: &Reason| of_gang.is_some_and(|of_gang| of_gang.facts == *facts);
    match &reason.facts {
        facts if said(facts) => "the reason above".to_owned(),
        Reason::WaitsForSibling {
            fits,
            sibling,
            because,
        } if said(because) => format!("fits on {fits}, waits for sibling {sibling}"),
        _ => reason.message.clone(),
    }
}

/// A word for what a member is doing.
pub fn member_word(state: MemberState) -> &'static str {
    match state {
        MemberState::Waiting => "waiting",
        MemberState::Gated => "gated",
        MemberState::Planned => "planned",
        MemberState::Bound => "bound",
        MemberState::Terminating => "terminating",
        MemberState::Succeeded => "succeeded",
        MemberState::Failed => "failed",
    }
}
