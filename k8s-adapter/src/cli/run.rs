//! `gangline run`: the scheduler beside a cluster.

use std::{io, net::SocketAddr, path::PathBuf, time::Duration};

use gangline::{Config, units::Nanos};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::{EnvFilter, fmt};

use super::{CliError, Ending};
use crate::{
    DEFAULT_SCORING,
    live::{self, Election, Options},
};

/// Schedule the pods of a cluster
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes: 0 stopped by SIGTERM or SIGINT, 1 an error")]
pub(super) struct Args {
    /// How to reach the cluster; looked for where kubectl does when absent, then as a pod's service
    /// account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Which context of the kubeconfig; its current one when absent
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Schedule pods whose schedulerName is this; may be given more than once
    #[arg(
        long = "scheduler-name",
        value_name = "NAME",
        default_value = "gangline"
    )]
    scheduler_names: Vec<String>,
    /// Schedule without asking whether another instance does
    #[arg(long)]
    no_leader_election: bool,
    /// The lease that one of several instances holds; without a namespace that of the service account, or
    /// of the context
    #[arg(long, value_name = "[NAMESPACE/]NAME", default_value = "gangline")]
    lease: String,
    /// How long the lease lasts without renewal: after a crash another instance takes over
    #[arg(long, value_name = "TIME", value_parser = lease_span, default_value = "15s")]
    lease_duration: Duration,
    /// How long members may run below their gang's minimum, or a bind go unconfirmed, before they are
    /// released, such as 90s or 5m
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "60s")]
    degraded_deadline: Nanos,
    /// Answer /healthz, /readyz and /metrics on this address, such as 0.0.0.0:8080
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Answer `gangline why --live` and `plan --live` on this address of the machine itself, such as
    /// 127.0.0.1:10290. It tells what everybody runs, so no other addresses are accepted
    #[arg(long, value_name = "ADDRESS", value_parser = own_address)]
    answer: Option<SocketAddr>,
    /// How the log is written, on standard error
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,
    /// What is logged: error, warn, info, debug or trace, also by part, such as info,kube=debug
    #[arg(long, value_name = "LEVELS", default_value = "info")]
    log: String,
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
    let filter = EnvFilter::try_new(&args.log).map_err(|error| CliError::Log {
        value: args.log.clone(),
        message: error.to_string(),
    })?;
    let log = fmt().with_env_filter(filter).with_writer(io::stderr);
    match args.log_format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(CliError::Runtime)?;
    let options = Options {
        kubeconfig: args.kubeconfig,
        context: args.context,
        scheduler_names: args.scheduler_names,
        listen: args.listen,
        answer: args.answer,
        election: (!args.no_leader_election).then(|| {
            let (namespace, name) = match args.lease.split_once('/') {
                Some((namespace, name)) => (Some(namespace.to_owned()), name),
                None => (None, args.lease.as_str()),
            };
            Election {
                namespace,
                name: name.to_owned(),
                lasts: args.lease_duration,
            }
        }),
        engine: Config {
            scoring: DEFAULT_SCORING,
            degraded_deadline: args.degraded_deadline,
            ..Config::default()
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
