//! `--live`: the cluster as the running scheduler knows it, or else as the API server lists it.
//!
//! Arguments enter; a snapshot or objects leave. What is done with them is the same as with a dump.

use std::{net::SocketAddr, path::PathBuf};

use gangline::{Scheduler, engine::Snapshot};

use super::{CliError, run::own_address, terminal};
use crate::{
    live,
    load::{Document, Sink},
};

/// Where the running scheduler answers, where nothing else is said.
const ADDRESS: &str = "127.0.0.1:10290";

/// How the live cluster is reached.
#[derive(Debug, clap::Args)]
pub(super) struct LiveArgs {
    /// Ask the running scheduler; take a dump of the cluster where none answers, and where it cannot know: with
    /// manifests, or for other levels, names, rules or times than its own
    #[arg(long, conflicts_with = "dumps")]
    pub(super) live: bool,
    #[command(flatten)]
    pub(super) reach: Reach,
}

/// How the scheduler and the cluster are reached.
#[derive(Debug, clap::Args)]
pub(super) struct Reach {
    /// Where the scheduler answers: its --answer, as kubectl port-forward brings it to this machine
    #[arg(long, value_name = "ADDRESS", default_value = ADDRESS, value_parser = own_address, requires = "live")]
    at: SocketAddr,
    /// How the cluster is reached for a dump; looked for where kubectl does when absent
    #[arg(long, value_name = "FILE", requires = "live")]
    kubeconfig: Option<PathBuf>,
    /// Which context of the kubeconfig; its current one when absent
    #[arg(long, value_name = "NAME", requires = "live")]
    context: Option<String>,
}

impl Reach {
    /// The running scheduler's own state.
    pub(super) fn snapshot(&self) -> Result<Snapshot, CliError> {
        let answer = runtime()?.block_on(live::ask(self.at));
        answer.map_err(|error| self.unanswered(&error))
    }

    /// The `schedulerName`s that the running scheduler answers for.
    pub(super) fn scheduler_names(&self) -> Result<Vec<String>, CliError> {
        let answer = runtime()?.block_on(live::ask_for_names(self.at));
        answer.map_err(|error| self.unanswered(&error))
    }

    fn unanswered(&self, error: &dyn std::error::Error) -> CliError {
        CliError::Unanswered {
            address: self.at,
            message: error.to_string(),
        }
    }

    /// The running scheduler's own state, to go on from; `None` where none answers.
    pub(super) fn scheduler(&self) -> Option<Scheduler> {
        let restored = self.snapshot().and_then(|snapshot| {
            Scheduler::restore(snapshot).map_err(|rejection| self.unanswered(&rejection))
        });
        match restored {
            Ok(scheduler) => Some(scheduler),
            Err(error) => {
                terminal::complain("warning", &error.to_string());
                terminal::complain("warning", "decided here, on what the cluster lists");
                None
            }
        }
    }

    /// All objects of the cluster.
    pub(super) fn dump(&self) -> Result<Vec<Document<'static>>, CliError> {
        let dump = live::dump(self.kubeconfig.as_deref(), self.context.as_deref());
        Ok(runtime()?.block_on(dump)?)
    }
}

/// Hands over what was listed.
pub(super) fn pour(documents: Vec<Document<'static>>, sink: &mut dyn Sink) {
    for document in documents {
        sink.document(document);
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(CliError::Runtime)
}
