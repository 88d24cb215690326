//! `gangline check --live`: whether the running scheduler knows what there is.
//!
//! The cluster is listed and rebuilt by the functions that read a dump, and what the running scheduler
//! knows is compared with it. A cluster changes meanwhile, so where something differs all is looked at
//! again after a pause, up to four times: reported is only what was so before the last pause and after it,
//! the same object with the same two answers.

use std::{fmt::Write as _, thread, time::Duration};

use gangline::{Config, Scheduler, engine::Snapshot};
use serde::Serialize;
use serde_json::Value;

use super::{
    CliError, Ending, Format,
    live::{Reach, pour},
    print_result,
};
use crate::{
    live::{Difference, Differences, differences},
    load::Sink,
    world::{self, Options},
};

/// So often differences are looked at; the pause before each further look is twice the one before.
const LOOKS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// More differences than this are counted instead of printed.
const SHOWN: usize = 50;
/// A value is cut after so many characters, for people.
const LONGEST_VALUE: usize = 200;

/// Tell whether the running scheduler knows what there is
///
/// Compares what it knows with a fresh list of the cluster. What changes meanwhile is looked at again, and
/// only what stays different is told.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes: 0 it knows what there is, 1 it does not, or an error")]
pub(super) struct Args {
    /// Ask the running scheduler, and list the cluster
    #[arg(long, required = true)]
    live: bool,
    #[command(flatten)]
    reach: Reach,
    /// How the result is written
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Outcome {
    same: bool,
    looks: u32,
    nodes: usize,
    groups: usize,
    pods: usize,
    differences: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    object: String,
    field: String,
    #[serde(flatten)]
    difference: Difference,
}

pub(super) fn run(args: &Args) -> Result<Ending, CliError> {
    let options = Options {
        scheduler_names: args.reach.scheduler_names()?,
        is_complete: true,
        ..Options::default()
    };
    let mut looks = 1;
    let mut pause = FIRST_PAUSE;
    let (mut known, mut listed) = look(args, &options)?;
    let mut found = differences(&known, &listed);
    let mut left = Differences::new();
    while !found.is_empty() && looks < LOOKS {
        thread::sleep(pause);
        pause *= 2;
        looks += 1;
        (known, listed) = look(args, &options)?;
        let now = differences(&known, &listed);
        left = staying(found, &now);
        found = now;
    }
    let lines = left.into_iter().map(|((object, field), difference)| Line {
        object,
        field,
        difference,
    });
    let outcome = Outcome {
        same: lines.len() == 0,
        looks,
        nodes: listed.nodes.len(),
        groups: listed
            .gangs
            .iter()
            .filter(|gang| gang.spec.is_some())
            .count(),
        pods: listed.pods.len(),
        differences: lines.collect(),
    };
    print_result(&outcome, args.output, Outcome::to_text)?;
    Ok(if outcome.same {
        Ending::Good
    } else {
        Ending::Error
    })
}

/// What the scheduler knows, and what the cluster lists. The list comes first: the scheduler had all the
/// time since to hear of it.
fn look(args: &Args, options: &Options) -> Result<(Snapshot, Snapshot), CliError> {
    let documents = args.reach.dump()?;
    let dump = |sink: &mut dyn Sink| {
        pour(documents, sink);
        Ok(())
    };
    let world = world::read_from(dump, &[], options, &mut |_, _| {})?;
    let mut rebuilt = Scheduler::new(Config {
        levels: world.levels,
        ..Config::default()
    });
    for event in world.events {
        // What the engine refuses here the running one refused too.
        let _ = rebuilt.apply(event);
    }
    Ok((args.reach.snapshot()?, rebuilt.snapshot()))
}

/// The differences that are still what they were: what is on its way comes, or becomes something else.
fn staying(before: Differences, now: &Differences) -> Differences {
    let mut staying = before;
    staying.retain(|place, difference| now.get(place) == Some(difference));
    staying
}

impl Outcome {
    fn to_text(&self) -> String {
        let Self {
            nodes,
            groups,
            pods,
            ..
        } = self;
        let counts = format!("{nodes} nodes, {groups} groups, {pods} pods");
        if self.same {
            return format!("the scheduler knows what there is: {counts}\n");
        }
        let count = self.differences.len();
        let mut text = format!("{count} differences that stay ({counts}):\n");
        for line in self.differences.iter().take(SHOWN) {
            let Line {
                object,
                field,
                difference,
            } = line;
            let dot = if field.is_empty() { "" } else { ": " };
            let (known, listed) = (
                shown(difference.known.as_ref()),
                shown(difference.listed.as_ref()),
            );
            let _ = writeln!(text, "  {object}{dot}{field}");
            let _ = writeln!(text, "    the scheduler knows  {known}");
            let _ = writeln!(text, "    the cluster says     {listed}");
        }
        if count > SHOWN {
            let more = count - SHOWN;
            let _ = writeln!(text, "  and {more} more; --output json has them all");
        }
        text
    }
}

fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else {
        return "nothing".to_owned();
    };
    let text = value.to_string();
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(object: &str, known: i32) -> Differences {
        let difference = Difference {
            known: Some(json!(known)),
            listed: None,
        };
        Differences::from([((object.to_owned(), "priority".to_owned()), difference)])
    }

    #[test]
    fn only_what_stays_the_same_stays() {
        assert_eq!(staying(found("a", 1), &found("a", 1)), found("a", 1));
        assert!(staying(found("a", 1), &found("a", 2)).is_empty());
        assert!(staying(found("a", 1), &found("b", 1)).is_empty());
    }

    #[test]
    fn a_difference_is_told_by_name() {
        let lines = found("Pod ml/a", 1).into_iter();
        let lines = lines.map(|((object, field), difference)| Line {
            object,
            field,
            difference,
        });
        let outcome = Outcome {
            same: false,
            looks: 5,
            nodes: 1,
            groups: 0,
            pods: 1,
            differences: lines.collect(),
        };
        assert_eq!(
            outcome.to_text(),
            "1 differences that stay (1 nodes, 0 groups, 1 pods):\n  Pod ml/a: priority\n    \
             the scheduler knows  1\n    the cluster says     nothing\n"
        );
    }
}
