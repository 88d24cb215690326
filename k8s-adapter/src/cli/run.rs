//! `gangline run`: the scheduler beside a cluster.

use std::{io, net::SocketAddr, path::PathBuf, time::Duration};

use gangline::{Config, units::Nanos};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::{EnvFilter, fmt};

mod config;

use config::File;

use super::{CliError, Ending};
use crate::{
    DEFAULT_SCORING,
    live::{self, Election, Options},
};

/// How long the lease lasts where nobody says.
const LEASE_LASTS: Duration = Duration::from_secs(15);

/// Schedule the pods of a cluster
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes: 0 stopped by SIGTERM or SIGINT, 1 an error")]
pub(super) struct Args {
    /// Settings from a file, described in docs/running.md; flags go before it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How to reach the cluster; looked for where kubectl does when absent, then as a pod's service
    /// account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Which context of the kubeconfig; its current one when absent
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Schedule pods whose schedulerName is this; may be given more than once [default: gangline]
    #[arg(long = "scheduler-name", value_name = "NAME")]
    scheduler_names: Vec<String>,
    /// Schedule without asking whether another instance does
    #[arg(long)]
    no_leader_election: bool,
    /// The lease that one of several instances holds; without a namespace that of the service account, or
    /// of the context [default: gangline]
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    lease: Option<String>,
    /// How long the lease lasts without renewal: after a crash another instance takes over [default: 15s]
    #[arg(long, value_name = "TIME", value_parser = lease_span)]
    lease_duration: Option<Duration>,
    /// How long members may run below their gang's minimum, or a bind go unconfirmed, before they are
    /// released, such as 90s or 5m [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = span)]
    degraded_deadline: Option<Nanos>,
    /// Answer /healthz, /readyz and /metrics on this address, such as 0.0.0.0:8080
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Answer `gangline why --live`, `plan --live` and `check --live` on this address of the machine
    /// itself, such as 127.0.0.1:10290. It tells what everybody runs, so no other addresses are accepted
    #[arg(long, value_name = "ADDRESS", value_parser = own_address)]
    answer: Option<SocketAddr>,
    /// How the log is written, on standard error [default: text]
    #[arg(long, value_enum)]
    log_format: Option<LogFormat>,
    /// What is logged: error, warn, info, debug or trace, also by part, such as info,kube=debug
    /// [default: info]
    #[arg(long, value_name = "LEVELS")]
    log: Option<String>,
}

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum LogFormat {
    /// For people
    #[default]
    Text,
    /// A JSON object a line
    Json,
}

/// A span of time such as `90s`, `5m` or `1h30m`.
fn span(text: &str) -> Result<Nanos, String> {
    let span = text.parse::<jiff::SignedDuration>().ok();
    let nanos = span.and_then(|span| u64::try_from(span.as_nanos()).ok());
    nanos.map(Nanos).ok_or_else(|| {
        "no span of time that can be counted with; accepted: 90s, 5m, 1h30m".to_owned()
    })
}

/// An address that only the machine itself can reach.
pub(super) fn own_address(text: &str) -> Result<SocketAddr, String> {
    let address = text.parse::<SocketAddr>().ok();
    let own = address.filter(|address| address.ip().is_loopback());
    own.ok_or_else(|| "accepted: a loopback address and a port, such as 127.0.0.1:10290".to_owned())
}

/// A lease is counted in whole seconds, and renewed six times in one.
fn lease_span(text: &str) -> Result<Duration, String> {
    let span = span(text).map(|span| Duration::from_nanos(span.0));
    span.ok()
        .filter(|span| span.subsec_nanos() == 0 && (3..=3600).contains(&span.as_secs()))
        .ok_or_else(|| "accepted: whole seconds from 3s to 1h".to_owned())
}

pub(super) fn run(args: Args) -> Result<Ending, CliError> {
    let file = File::read(args.config.as_deref())?;
    let levels = args.log.or(file.log.levels);
    let levels = levels.unwrap_or_else(|| "info".into());
    let filter = EnvFilter::try_new(&levels).map_err(|error| CliError::Log {
        value: levels.clone(),
        message: error.to_string(),
    })?;
    let log = fmt().with_env_filter(filter).with_writer(io::stderr);
    match args.log_format.or(file.log.format).unwrap_or_default() {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(CliError::Runtime)?;
    let usual = Config::default();
    let names = Some(args.scheduler_names).filter(|names| !names.is_empty());
    let names = names.or(file.scheduler_names);
    let elects = !args.no_leader_election && file.leader_election.enabled.unwrap_or(true);
    let lease = args.lease.or(file.leader_election.lease);
    let lease = lease.unwrap_or_else(|| "gangline".into());
    let lasts = args.lease_duration.or(file.leader_election.duration);
    let scheduling = file.scheduling;
    let options = Options {
        kubeconfig: args.kubeconfig.or(file.kubeconfig),
        context: args.context.or(file.context),
        scheduler_names: names.unwrap_or_else(|| vec!["gangline".into()]),
        listen: args.listen.or(file.listen),
        answer: args.answer.or(file.answer),
        election: elects.then(|| {
            let (namespace, name) = match lease.split_once('/') {
                Some((namespace, name)) => (Some(namespace.to_owned()), name),
                None => (None, lease.as_str()),
            };
            Election {
                namespace,
                name: name.to_owned(),
                lasts: lasts.unwrap_or(LEASE_LASTS),
            }
        }),
        engine: Config {
            scoring: scheduling.scoring.unwrap_or(DEFAULT_SCORING),
            degraded_deadline: args
                .degraded_deadline
                .or(scheduling.degraded_deadline)
                .unwrap_or(usual.degraded_deadline),
            reserve_after: scheduling.reserve_after.unwrap_or(usual.reserve_after),
            search_steps: scheduling.search_steps.unwrap_or(usual.search_steps),
            ..usual
        },
    };
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).map_err(CliError::Runtime)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(CliError::Runtime)?;
        let stop = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        live::run(options, stop).await?;
        Ok(Ending::Good)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_units() {
        assert_eq!(span("90s"), Ok(Nanos::from_secs(90)));
        assert_eq!(span("1h30m"), Ok(Nanos::from_secs(5400)));
        for bad in ["", "90", "-1s", "1 fortnight", "99999999999h"] {
            assert!(span(bad).is_err(), "{bad}");
        }
    }
}
