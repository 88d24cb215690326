//! From a dump and manifests to an engine that has decided.
//!
//! Data enters as paths and leaves as a [`Cluster`]: the engine after its decisions, and what was
//! wrong with the input.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use gangline::{Config, GangId, Scheduler, engine::UsualWork, gang::ScoringRule, units::Nanos};

use super::{
    CliError, Format,
    terminal::{self, Progress},
};
use crate::{
    load::{Complaint, Severity, Source},
    output::Report,
    scenario,
    world::{self, Options, World},
};

/// More complaints than this are counted instead of printed.
const COMPLAINTS: usize = 20;

/// More rounds of decisions than this are not made: each one places or refuses something.
const ROUNDS: u32 = 1000;

/// Which cluster, and how it is read.
#[derive(Debug, clap::Args)]
pub(super) struct ClusterArgs {
    /// What the cluster holds: a file, a directory or - for standard input, YAML or JSON, plain or
    /// gzip; made by `kubectl get nodes,pods,podgroups,... -A -o yaml`
    #[arg(long = "cluster", value_name = "DUMP")]
    #[cfg_attr(feature = "live", arg(required_unless_present = "live"))]
    #[cfg_attr(not(feature = "live"), arg(required = true))]
    dumps: Vec<PathBuf>,
    #[cfg(feature = "live")]
    #[command(flatten)]
    live: super::live::LiveArgs,
    /// Node labels that make up the topology, coarse to fine, such as block,rack; found in the
    /// nodes' labels when absent
    #[arg(long, value_name = "LABELS", value_delimiter = ',')]
    pub(super) levels: Option<Vec<String>>,
    /// Plan only for waiting pods of this scheduler; may be given more than once
    #[arg(long = "scheduler-name", value_name = "NAME")]
    scheduler_names: Vec<String>,
    /// The time of the decision, such as 2026-11-30T12:00:00Z; the latest time in the dump when
    /// absent
    #[arg(long, value_name = "TIME")]
    now: Option<jiff::Timestamp>,
    /// Which of several places a pod gets that does not say
    #[arg(long, value_enum, value_name = "RULE")]
    scoring: Option<Scoring>,
    /// The work that is usually asked for, as `config.usual` of a scenario; learnt from the pods when
    /// absent
    #[arg(long, value_name = "FILE")]
    usual: Option<PathBuf>,
    /// Make every problem with the input an error
    #[arg(long)]
    pub(super) strict: bool,
}

/// Rules by name.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum Scoring {
    /// Fill nodes that are in use, keep whole cards together
    Binpack,
    /// Use the emptiest nodes
    Spread,
    /// Leave the least free on the node
    BestFit,
    /// Keep as many combinations of MIG profiles possible as can be
    MigFlexibility,
    /// Destroy the least of what the usual work could use (FGD)
    FragmentationGradient,
    /// Destroy the least worth, at prices for the usual work
    BidPrice,
}

impl Scoring {
    pub(super) fn rule(self) -> ScoringRule {
        match self {
            Self::Binpack => ScoringRule::Binpack,
            Self::Spread => ScoringRule::Spread,
            Self::BestFit => ScoringRule::BestFit,
            Self::MigFlexibility => ScoringRule::MigFlexibility,
            Self::FragmentationGradient => ScoringRule::FragmentationGradient,
            Self::BidPrice => ScoringRule::BidPrice,
        }
    }
}

fn read_usual(path: &Path) -> Result<Vec<UsualWork>, CliError> {
    let shown = || path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| CliError::File {
        path: shown(),
        error,
    })?;
    scenario::usual_mix(&text).map_err(|error| CliError::Scenario {
        path: shown(),
        error: Box::new(error),
    })
}

#[cfg(feature = "live")]
impl ClusterArgs {
    /// Whether the running scheduler can tell: it decides as it was told, about what is there.
    fn asks_for_what_is(&self, manifests: &[PathBuf]) -> bool {
        manifests.is_empty()
            && self.levels.is_none()
            && self.scheduler_names.is_empty()
            && self.now.is_none()
            && self.scoring.is_none()
            && self.usual.is_none()
    }
}

/// An engine that has decided.
pub(super) struct Cluster {
    pub(super) scheduler: Scheduler,
    complaints: Vec<Complaint>,
}

impl Cluster {
    /// Reads a cluster and lets the engine decide about it.
    pub(super) fn decided(args: &ClusterArgs, manifests: &[PathBuf]) -> Result<Self, CliError> {
        let mut progress = Progress::new();
        let mut options = Options {
            levels: args.levels.clone(),
            scheduler_names: args.scheduler_names.clone(),
            ..Options::default()
        };
        #[cfg(feature = "live")]
        if args.live.live {
            if args.asks_for_what_is(manifests)
                && let Some(scheduler) = args.live.reach.scheduler()
            {
                return Ok(Self {
                    scheduler,
                    complaints: Vec::new(),
                });
            }
            options.is_complete = true;
            let documents = args.live.reach.dump()?;
            let dump = |sink: &mut dyn crate::load::Sink| {
                super::live::pour(documents, sink);
                Ok(())
            };
            let world = world::read_from(dump, manifests, &options, &mut |_, _| {})?;
            return Self::of(args, world, progress);
        }
        let mut reading = |done, total| progress.set("reading", done, total);
        let world = world::read(&args.dumps, manifests, &options, &mut reading)?;
        Self::of(args, world, progress)
    }

    /// Lets the engine decide about a cluster.
    fn of(args: &ClusterArgs, world: World, mut progress: Progress) -> Result<Self, CliError> {
        let mut complaints = world.complaints;
        let counts = &world.counts;
        // Without nodes everything is infeasible: no proof, where they could not be read.
        let is_unread = |complaint: &Complaint| {
            let file = Path::new(&*complaint.source.file);
            complaint.severity == Severity::Refused && args.dumps.iter().any(|dump| dump == file)
        };
        let is_unread = counts.nodes == 0 && complaints.iter().any(is_unread);
        if is_unread || counts.nodes == 0 && counts.groups == 0 && counts.pods == 0 {
            for complaint in &complaints {
                terminal::complain("not used", &complaint.to_string());
            }
            let paths: Vec<String> = args
                .dumps
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            return Err(CliError::Nothing {
                paths: paths.join(", "),
            });
        }
        if !world.useless.is_empty() {
            // "Nothing waits" would be said of pods that nobody could read.
            for complaint in &complaints {
                terminal::complain("not used", &complaint.to_string());
            }
            let paths: Vec<&str> = world.useless.iter().map(|path| &**path).collect();
            return Err(CliError::Useless {
                paths: paths.join(", "),
            });
        }
        let usual = args
            .usual
            .as_ref()
            .map(|path| read_usual(path))
            .transpose()?;
        let mut scheduler = Scheduler::new(Config {
            usual: usual.unwrap_or_default(),
            levels: world.levels,
            scoring: args.scoring.map_or(crate::DEFAULT_SCORING, Scoring::rule),
            ..Config::default()
        });
        let total = world.events.len() as u64;
        for (done, event) in (0..).zip(world.events) {
            progress.set("counting", done, total);
            if let Err(rejection) = scheduler.apply(event) {
                complaints.push(Complaint {
                    source: Source::file("the cluster as a whole"),
                    object: String::new(),
                    field: String::new(),
                    value: rejection.to_string(),
                    accepted: String::new(),
                    severity: Severity::Refused,
                });
            }
        }
        let given = args
            .now
            .map(|now| u64::try_from(now.as_nanosecond()).unwrap_or(0));
        let now = given.map_or(world.now, Nanos);
        for round in 0..ROUNDS {
            progress.set("deciding", u64::from(round), u64::from(round) + 1);
            scheduler.price_if_due();
            if scheduler.decide(now).is_empty() {
                break;
            }
        }
        Ok(Self {
            scheduler,
            complaints,
        })
    }

    /// What there is to say about these gangs. Complaints go to standard error, unless the result is
    /// for programs and holds them anyway.
    pub(super) fn report(
        &mut self,
        gangs: &[GangId],
        format: Format,
        strict: bool,
    ) -> Result<Report, CliError> {
        let complaints = std::mem::take(&mut self.complaints);
        let mut progress = Progress::new();
        let mut done = 0;
        let report = Report::new(&self.scheduler, gangs.iter().copied(), complaints, || {
            done += 1;
            progress.set("explaining", done, gangs.len() as u64);
        });
        drop(progress);
        complain(&report, format, strict)?;
        Ok(report)
    }
}

/// Whether two objects of one document have the same thing wrong with them.
fn is_same_fault(one: &Complaint, other: &Complaint) -> bool {
    let place = |complaint: &Complaint| (complaint.source.document, complaint.source.item);
    one.source.file == other.source.file
        && place(one) == place(other)
        && one.severity == other.severity
        && (&one.field, &one.value, &one.accepted) == (&other.field, &other.value, &other.accepted)
}

/// Says what is wrong with the input; an error if it must not be.
fn complain(report: &Report, format: Format, strict: bool) -> Result<(), CliError> {
    let complaints = &report.complaints;
    let shown = match (format, strict) {
        (Format::Text, false) => COMPLAINTS,
        (Format::Json | Format::Yaml, false) => 0,
        (_, true) => complaints.len(),
    };
    // Pods of one template have the same faults: one line for all of them.
    let alike: Vec<_> = complaints
        .chunk_by(|one, other| is_same_fault(&one.facts, &other.facts))
        .collect();
    for complaints in alike.iter().take(shown) {
        let [complaint, others @ ..] = complaints else {
            continue;
        };
        let kind = match complaint.facts.severity {
            Severity::Warning => "warning",
            Severity::Refused => "not used",
        };
        let mut line = complaint.message.clone();
        if !others.is_empty() {
            let _ = write!(line, " (and {} more like it)", others.len());
        }
        terminal::complain(kind, &line);
    }
    let hidden = alike.iter().skip(shown).map(|complaints| complaints.len());
    let more: usize = hidden.sum();
    if shown > 0 && more > 0 {
        terminal::complain(
            "warning",
            &format!("and {more} more; --output json has them all"),
        );
    }
    if strict && !complaints.is_empty() {
        return Err(CliError::Strict(complaints.len()));
    }
    Ok(())
}
