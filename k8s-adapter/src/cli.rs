//! The commands: what they are called, what they accept, how they end.
//!
//! Arguments enter through clap; what the commands say leaves through `terminal`. The shell
//! completion and the man pages come from the same definitions. Nothing here decides anything.

use std::{
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{CommandFactory as _, Parser, Subcommand, ValueEnum};
use gangline::Scheduler;
use serde::Serialize;

use crate::{output::GangReport, picture};

mod cards;
#[cfg(feature = "live")]
mod check;
mod cluster;
#[cfg(feature = "live")]
mod live;
mod plan;
#[cfg(feature = "live")]
mod run;
mod simulate;
mod terminal;
mod why;

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// All placed, or all expectations hold.
    Good = 0,
    /// An error, an expectation that does not hold, or a difference.
    Error = 1,
    /// Something waits.
    Waits = 2,
}

/// Why a command could not do its work. One line each.
#[derive(Debug, thiserror::Error)]
enum CliError {
    #[error(transparent)]
    Load(#[from] crate::load::LoadError),
    #[error("{path}: {error}")]
    File { path: String, error: io::Error },
    #[error("{path}: {error}")]
    Scenario {
        path: String,
        error: Box<crate::scenario::ScenarioError>,
    },
    #[error("problems in the input: {0}; --strict makes them errors")]
    Strict(usize),
    #[error(
        "{paths}: no node, group or pod in it; accepted: what kubectl get -o yaml or json prints"
    )]
    Nothing { paths: String },
    #[error(
        "{paths}: no object in it can be used; accepted: manifests as kubectl apply takes them"
    )]
    Useless { paths: String },
    #[error("there is no gang or pod {name}{hint}")]
    NotFound { name: String, hint: String },
    #[error(transparent)]
    Cards(#[from] crate::card_models::CardsError),
    #[error("the result cannot be written as {format}: {message}")]
    Format {
        format: &'static str,
        message: String,
    },
    #[error("standard output: {0}")]
    Output(io::Error),
    #[cfg(feature = "live")]
    #[error(transparent)]
    Live(#[from] crate::live::LiveError),
    #[cfg(feature = "live")]
    #[error("no scheduler answers at {address}: {message}")]
    Unanswered {
        address: std::net::SocketAddr,
        message: String,
    },
    #[cfg(feature = "live")]
    #[error("{path}: {message}")]
    Config { path: String, message: String },
    #[cfg(feature = "live")]
    #[error(
        "--log {value}: {message}; accepted: error, warn, info, debug, trace, or PART=LEVEL,..."
    )]
    Log { value: String, message: String },
    #[cfg(feature = "live")]
    #[error("the process cannot start its threads or hear its signals: {0}")]
    Runtime(io::Error),
}

/// How `plan` and `why` end, for their help.
const PLAN_CODES: &str = "Exit codes: 0 all placed, 1 an error, 2 something waits";

/// Decides where groups of GPU pods run: all members of a group together, on exact devices, or none.
///
/// `gangline run` is a scheduler for Kubernetes. The other commands read what `kubectl get -A -o yaml`
/// prints, and need no cluster.
#[derive(Debug, Parser)]
#[command(name = "gangline", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Plan(plan::Args),
    Why(why::Args),
    Simulate(simulate::Args),
    #[cfg(feature = "live")]
    Run(run::Args),
    #[cfg(feature = "live")]
    Check(check::Args),
    Cards(cards::Args),
    /// Print the completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the man page, or write those of all commands into a directory
    Man {
        /// Write the pages of all commands into this directory
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

/// How the result is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    #[default]
    Text,
    /// For programs; docs/output.md describes the fields
    Json,
    /// The same fields as YAML
    Yaml,
}

/// Runs the command that the arguments of the process ask for.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Clap's own code for wrong usage is 2, which means "something waits" here.
            let ending = if error.use_stderr() {
                Ending::Error
            } else {
                Ending::Good
            };
            let _ = error.print();
            return ExitCode::from(ending as u8);
        }
    };
    let ending = match cli.command {
        Command::Plan(args) => plan::run(&args),
        Command::Why(args) => why::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        #[cfg(feature = "live")]
        Command::Run(args) => run::run(args),
        #[cfg(feature = "live")]
        Command::Check(args) => check::run(&args),
        Command::Cards(args) => cards::run(&args),
        Command::Completions { shell } => completions(shell),
        Command::Man { dir } => man(dir),
    };
    let ending = ending.unwrap_or_else(|error| {
        terminal::complain("error", &error.to_string());
        Ending::Error
    });
    ExitCode::from(ending as u8)
}

fn completions(shell: clap_complete::Shell) -> Result<Ending, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "gangline", &mut script);
    terminal::print_bytes(&script)?;
    Ok(Ending::Good)
}

fn man(dir: Option<PathBuf>) -> Result<Ending, CliError> {
    if let Some(dir) = dir {
        let write = |dir: &PathBuf| {
            std::fs::create_dir_all(dir)?;
            clap_mangen::generate_to(Cli::command(), dir)
        };
        let path = dir.display().to_string();
        write(&dir).map_err(|error| CliError::File { path, error })?;
    } else {
        let mut page = Vec::new();
        let man = clap_mangen::Man::new(Cli::command());
        man.render(&mut page).map_err(CliError::Output)?;
        terminal::print_bytes(&page)?;
    }
    Ok(Ending::Good)
}

/// Prints a result in the format that was asked for; `text` makes the one for people.
fn print_result<T: Serialize>(
    result: &T,
    format: Format,
    text: impl FnOnce(&T) -> String,
) -> Result<(), CliError> {
    let failed = |format, message: String| CliError::Format { format, message };
    let written = match format {
        Format::Text => text(result),
        Format::Json => {
            let json = serde_json::to_string_pretty(result);
            json.map_err(|error| failed("JSON", error.to_string()))? + "\n"
        }
        Format::Yaml => {
            let yaml = serde_saphyr::to_string(result);
            yaml.map_err(|error| failed("YAML", error.to_string()))?
        }
    };
    terminal::print(&written)
}

/// Where a picture goes. A name that says another format would hold what it does not say.
fn picture_path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let svg = |end: &std::ffi::OsStr| end.eq_ignore_ascii_case("svg");
    match path.extension() {
        Some(end) if !svg(end) => {
            Err("pictures are SVG; accepted: a name that ends in .svg".into())
        }
        _ => Ok(path),
    }
}

/// Draws the cluster into a file.
fn write_picture(path: &Path, scheduler: &Scheduler, gangs: &[GangReport]) -> Result<(), CliError> {
    let svg = picture::draw(&scheduler.config().levels, &scheduler.nodes(), gangs);
    std::fs::write(path, svg).map_err(|error| CliError::File {
        path: path.display().to_string(),
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_make_sense() {
        Cli::command().debug_assert();
    }

    #[test]
    fn plan_takes_a_dump_and_manifests() {
        let line = "gangline plan --cluster c.yaml --levels block,rack a.yaml b.yaml --strict";
        let cli = Cli::try_parse_from(line.split(' ')).expect("is valid");
        let Command::Plan(args) = cli.command else {
            panic!("is another command");
        };
        assert_eq!(args.manifests.len(), 2);
        assert_eq!(
            args.cluster.levels.as_deref(),
            Some(&["block".to_owned(), "rack".into()][..])
        );
        assert!(args.cluster.strict);
    }
}
