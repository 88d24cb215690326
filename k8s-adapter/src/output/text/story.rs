//! The full story of one gang or pod, as `gangline why` prints it.
//!
//! Data enters as a [`GangReport`] and leaves as text with colour codes.

use std::fmt::Write as _;

use gangline::{
    device::overhead::Need,
    explain::{Counterfactual, Reason, join_words, level_word},
};

use super::{
    super::{CounterfactualReport, GangReport, MemberReport, ReasonReport},
    BOLD, Styled, domain_text, member_word, nodes_text, push_assumed, push_table, table,
    verdict_style, without_those_ahead,
};

/// More members than this are counted instead of listed.
const MEMBERS: usize = 40;
/// More pods than this are counted instead of listed in one line.
const PODS: usize = 4;

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
    let refused = gang
        .reason
        .as_ref()
        .is_some_and(|reason| is_refusal(&reason.facts));
    let placed = format!("{} of {} placed", gang.placed, gang.wanted);
    let mut about = vec![if refused {
        // What a refused object says is not read to its end.
        placed
    } else {
        format!("{placed}, minimum {}", gang.min)
    }];
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
    for note in &gang.notes {
        let _ = writeln!(text, "\nNote: {note}");
    }
    if !gang.counterfactuals.is_empty() {
        let _ = writeln!(
            text,
            "\n{}",
            Styled(BOLD, "Admitted if any one of these happens")
        );
        push_changes(&mut text, &gang.counterfactuals);
    }
    if !gang.if_first.is_empty() {
        let without = without_those_ahead(gang.ahead).replacen('w', "W", 1);
        let title = format!("{without}, admitted if any one of these happens");
        let _ = writeln!(text, "\n{}", Styled(BOLD, title));
        push_changes(&mut text, &gang.if_first);
    }
    let changes = gang.counterfactuals.len() + gang.if_first.len();
    if changes == 0 && gang.reason.is_some() && !refused {
        let _ = writeln!(text, "\nNo single change was found that would admit it.");
    }
    text
}

/// One line for each change.
fn push_changes(text: &mut String, changes: &[CounterfactualReport]) {
    for change in changes {
        let _ = writeln!(text, "  - {}", change.message);
        push_departing(text, &change.facts);
    }
}

/// Whether its own objects keep it out: then the reason says what to change.
fn is_refusal(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::Invalid { .. } | Reason::GroupNotFound { .. }
    )
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
    push_assumed(text, std::iter::once(gang));
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
