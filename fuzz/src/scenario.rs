//! Scenarios, whatever they say: refused in one line, or played twice with the same outcome.

use gangline_k8s::scenario::{
    self, Outcome, Scenario,
    event::Entry,
    shape::{GroupShape, WorkShape},
};

/// A search of more steps than this is only slow.
const SEARCH_STEPS: u64 = 500;
/// A scenario of more objects or moments than this is only slow.
const MOST: u64 = 256;

/// What can be played has one outcome, which can be shown.
pub fn scenario(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if names_many(text) {
        return;
    }
    let mut scenario = match Scenario::parse(text) {
        Ok(scenario) => scenario,
        Err(error) => return assert_one_line(&error.to_string()),
    };
    if size(&scenario) > MOST {
        return;
    }
    let steps = scenario.config.search_steps;
    scenario.config.search_steps = Some(steps.unwrap_or(SEARCH_STEPS).min(SEARCH_STEPS));
    if let Some(snapshot) = &mut scenario.snapshot {
        snapshot.config.search_steps = snapshot.config.search_steps.min(SEARCH_STEPS);
    }
    let played = || {
        scenario::run(&scenario, None, |_, _| ())
            .map(|outcome: Outcome| {
                let written = serde_json::to_string(&outcome).expect("outcomes can be written");
                (outcome.to_text(), written)
            })
            .map_err(|error| error.to_string())
    };
    let first = played();
    if let Err(error) = &first {
        assert_one_line(error);
    }
    assert_eq!(first, played(), "played twice");
}

fn assert_one_line(text: &str) {
    assert!(!text.contains('\n'), "more than one line: {text:?}");
}

/// Whether a word of the text could be a range of many names: they are made while it is read.
fn names_many(text: &str) -> bool {
    let words = text.split(|letter: char| letter.is_whitespace() || "{}[]'\"".contains(letter));
    words.filter(|word| word.contains("..")).any(|word| {
        let digits = |part: &str| part.len() > 3;
        word.split(|letter: char| !letter.is_ascii_digit())
            .any(digits)
    })
}

/// Objects and moments, roughly.
fn size(scenario: &Scenario) -> u64 {
    let nodes: u64 = scenario.nodes.iter().map(|node| len(&node.name.0)).sum();
    let work: u64 = scenario.work.iter().map(pods).sum();
    let events = scenario.events.iter().map(|entry| {
        let times = entry.repeat.map_or(1, |repeat| u64::from(repeat.times));
        times.saturating_mul(1 + happens(entry))
    });
    let events = events.fold(0, u64::saturating_add);
    let moments = scenario.events.iter().map(|entry| {
        let repeat = entry
            .repeat
            .unwrap_or(gangline_k8s::scenario::event::Repeat {
                every: entry.at,
                times: 0,
            });
        let later = repeat.every.0.0.saturating_mul(u64::from(repeat.times));
        entry.at.0.0.saturating_add(later)
    });
    let expected = scenario.expect.iter().map(|expect| expect.at.to.0);
    let last = moments.chain(expected).max().unwrap_or(0);
    let ticks = scenario
        .tick
        .and_then(|tick| last.checked_div(tick.0.0))
        .unwrap_or(0);
    [nodes, work, events, ticks]
        .into_iter()
        .fold(0, u64::saturating_add)
}

fn len<T>(list: &[T]) -> u64 {
    list.len() as u64
}

fn happens(entry: &Entry) -> u64 {
    let submitted = entry.submit.as_deref().map_or(0, pods);
    let joined = entry.join.as_ref().map_or(0, |join| {
        let names = join.names.as_ref().map_or(0, |names| len(&names.0));
        names.max(join.count.map_or(0, u64::from))
    });
    let nodes = entry.node.as_ref().map_or(0, |node| len(&node.name.0));
    submitted.saturating_add(joined).saturating_add(nodes)
}

fn pods(work: &WorkShape) -> u64 {
    let single = work.single.as_ref().map_or(0, |names| len(&names.0));
    let own = most([work.min, work.size, work.members]);
    let roles = work.roles.iter().map(role_pods);
    roles.fold(single + own, u64::saturating_add)
}

fn role_pods(role: &GroupShape) -> u64 {
    let own = most([role.min, role.size, role.members]);
    role.roles
        .iter()
        .map(role_pods)
        .fold(own, u64::saturating_add)
}

fn most(counts: [Option<u32>; 3]) -> u64 {
    counts.into_iter().flatten().max().map_or(1, u64::from)
}
