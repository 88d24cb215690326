//! `gangline simulate`: play a scenario and check what it expects.

use std::{io::Read as _, path::PathBuf};

use super::{
    CliError, Ending, Format, picture_path, print_result,
    terminal::{self, Progress},
    write_picture,
};
use crate::{
    output::Report,
    scenario::{self, Outcome, Scenario, value::Span},
};

/// How it ends, for its help.
const SIMULATE_CODES: &str =
    "Exit codes: 0 every expectation holds, 1 an error or an expectation that does not hold";

/// Play a scenario: a cluster, events at times, and what must hold
///
/// docs/scenarios.md describes the format.
#[derive(Debug, clap::Args)]
#[command(after_help = SIMULATE_CODES)]
pub(super) struct Args {
    /// The scenario; - for standard input
    #[arg(value_name = "SCENARIO.yaml")]
    scenario: PathBuf,
    /// Stop after this time, such as 10s or 1h
    #[arg(long, value_name = "TIME")]
    until: Option<Span>,
    /// How the result is written
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    /// Draw the cluster as it is at the end into this file
    #[arg(long, value_name = "FILE.svg", value_parser = picture_path)]
    picture: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<Ending, CliError> {
    let path = args.scenario.display().to_string();
    let failed = |error| CliError::File {
        path: path.clone(),
        error,
    };
    let text = if path == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(failed)?;
        text
    } else {
        std::fs::read_to_string(&args.scenario).map_err(failed)?
    };
    let mut progress = Progress::new();
    let mut absent = Vec::new();
    let until = args.until.map(|span| span.0);
    let played = Scenario::parse(&text).and_then(|scenario| {
        absent = scenario.absent_models();
        scenario::play(&scenario, until, |done, total| {
            progress.set("playing", done, total);
        })
    });
    drop(progress);
    for absent in absent {
        terminal::complain("warning", &format!("{path}: {absent}"));
    }
    let (outcome, scheduler) = played.map_err(|error| CliError::Scenario {
        path,
        error: Box::new(error),
    })?;
    if let Some(path) = &args.picture {
        let gangs = scheduler.gangs();
        let report = Report::new(&scheduler, gangs, Vec::new(), || ());
        write_picture(path, &scheduler, &report.gangs)?;
    }
    print_result(&outcome, args.output, Outcome::to_text)?;
    Ok(if outcome.passed {
        Ending::Good
    } else {
        Ending::Error
    })
}
