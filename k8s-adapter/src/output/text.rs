//! The reports as text for a terminal: tables, and plain words under them.
//!
//! Data enters as a [`Report`] or a [`GangReport`] and leaves as text with colour codes; whoever
//! prints it strips them where they are not wanted. Nothing here decides anything or knows a
//! terminal.

use std::fmt::{self, Display, Formatter, Write as _};

use anstyle::{AnsiColor, Style};
use comfy_table::{Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Table, presets};
use gangline::{
    Verdict,
    engine::MemberState,
    explain::{Amount, Counterfactual, join_words, level_word},
};

use super::{CardTotals, CounterfactualReport, Domain, GangReport, Report};
use crate::names::natural_parts;

mod places;
mod story;

use places::links_text;
pub use places::{nodes_text, places_text};
pub use story::why;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// More rows than this, and gangs that ran before are counted instead of listed.
const ROWS: usize = 60;
/// More waiting gangs than this have no lines of their own under the table.
const WAITING: usize = 100;
/// More notes than this are counted.
const NOTES: usize = 20;
/// More gangs than this of one note are counted.
const NOTED: usize = 4;

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
    push_assumed(&mut text, report.gangs.iter().filter(shown));
    if members {
        let shown = report.gangs.iter().filter(shown);
        push_places(
            &mut text,
            shown.filter(|gang| !gang.single && gang.placed > 0),
        );
    }
    push_waiting(&mut text, report);
    push_notes(&mut text, report);
    let _ = writeln!(text, "\n{}", summary(report));
    text
}

/// What the question mark behind cards means, if there is one.
fn push_assumed<'a>(text: &mut String, mut gangs: impl Iterator<Item = &'a GangReport>) {
    if gangs.any(|gang| gang.members.iter().any(|member| member.assumed)) {
        let note =
            "?: assumed: nobody told which cards these pods run on, or what was told cannot be";
        let _ = writeln!(text, "{}", Styled(DIM, note));
    }
}

/// Each member of these gangs that has a place, with its devices and their links.
fn push_places<'a>(text: &mut String, gangs: impl Iterator<Item = &'a GangReport> + Clone) {
    if gangs.clone().next().is_none() {
        return;
    }
    let _ = writeln!(text, "\n{}", Styled(BOLD, "Members"));
    let mut rows = table(&["POD", "RANK", "STATE", "PLACE", "LINKS"]);
    for gang in gangs {
        for member in gang.members.iter().filter(|member| member.node.is_some()) {
            rows.add_row([
                format!("{}/{}", gang.namespace, member.pod),
                member.rank.to_string(),
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

/// What is odd about places.
fn push_notes(text: &mut String, report: &Report) {
    // What holds for several is said once.
    let mut notes: Vec<(&str, Vec<String>)> = Vec::new();
    for gang in &report.gangs {
        for note in &gang.notes {
            match notes.iter_mut().find(|(known, _)| known == note) {
                Some((_, gangs)) => gangs.push(gang.full_name()),
                None => notes.push((note, vec![gang.full_name()])),
            }
        }
    }
    let count = notes.len();
    if count > 0 {
        let _ = writeln!(text, "\n{}", Styled(BOLD, "Notes"));
    }
    for (note, gangs) in notes.into_iter().take(NOTES) {
        let more = gangs.len().saturating_sub(NOTED);
        let mut names = gangs[..gangs.len() - more].join(", ");
        if more > 0 {
            let _ = write!(names, " and {more} more");
        }
        let _ = writeln!(text, "  {names}: {note}");
    }
    if count > NOTES {
        let note = format!("and {} more (--output json has them all)", count - NOTES);
        let _ = writeln!(text, "  {}", Styled(DIM, note));
    }
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
    for help in admitted_if(gang) {
        let _ = writeln!(text, "{indent}  {help}");
    }
}

/// "admitted if A or B", and what holds only without those ahead of it, as far as changes are known.
pub fn admitted_if(gang: &GangReport) -> Vec<String> {
    let at_its_turn = one_of(&gang.counterfactuals);
    let if_first = one_of(&gang.if_first);
    let at_its_turn = at_its_turn.map(|changes| format!("admitted if {changes}"));
    let if_first = if_first
        .map(|changes| format!("{}, admitted if {changes}", without_those_ahead(gang.ahead)));
    at_its_turn.into_iter().chain(if_first).collect()
}

/// "without the 2 that wait ahead of it".
fn without_those_ahead(ahead: u32) -> String {
    match ahead {
        1 => "without the one that waits ahead of it".to_owned(),
        _ => format!("without the {ahead} that wait ahead of it"),
    }
}

/// "A or B".
fn one_of(changes: &[CounterfactualReport]) -> Option<String> {
    let mut changes: Vec<_> = changes.iter().collect();
    // What the cluster can do comes before what the gang's owner would have to give up.
    changes.sort_by_key(|change| match change.facts {
        Counterfactual::HealthyCards { .. }
        | Counterfactual::AllocatableCards { .. }
        | Counterfactual::LayoutSettled { .. }
        | Counterfactual::MoreCards { .. } => 0,
        Counterfactual::CardMode { .. }
        | Counterfactual::Uncordon { .. }
        | Counterfactual::Untaint { .. }
        | Counterfactual::Departure { .. } => 1,
        Counterfactual::DropCondition { .. }
        | Counterfactual::RelaxLevel { .. }
        | Counterfactual::FewerMembers { .. } => 2,
    });
    let changes: Vec<&str> = changes
        .iter()
        .map(|change| change.message.as_str())
        .collect();
    (!changes.is_empty()).then(|| join_words(&changes, "or"))
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
    // Of cards that are all in MIG mode only the instances are known, and they are not counted here.
    for (kind, totals) in report.cards.iter().filter(|(_, totals)| totals.total > 0) {
        let CardTotals {
            total,
            held,
            in_parts,
            free,
            unusable,
        } = *totals;
        let amount = i64::try_from(total).unwrap_or(i64::MAX);
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
