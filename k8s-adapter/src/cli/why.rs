//! `gangline why`: the full story of one gang or pod.

use std::path::PathBuf;

use gangline::{GangId, Scheduler};

use super::{
    CliError, Ending, Format,
    cluster::{Cluster, ClusterArgs},
    print_result,
};
use crate::{annotations::nearest, output::text};

/// Tell why a gang or pod waits, and what would let it in
#[derive(Debug, clap::Args)]
#[command(after_help = super::PLAN_CODES)]
pub(super) struct Args {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// The gang or pod; without a namespace it is looked for in default
    #[arg(value_name = "NAMESPACE/NAME")]
    name: String,
    /// What would be applied on top of the cluster; may be given more than once
    #[arg(long = "manifest", value_name = "MANIFEST")]
    manifests: Vec<PathBuf>,
    /// How the result is written
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

pub(super) fn run(args: &Args) -> Result<Ending, CliError> {
    let mut cluster = Cluster::decided(&args.cluster, &args.manifests)?;
    let (namespace, name) = args.name.split_once('/').unwrap_or(("default", &args.name));
    let found = find(&cluster.scheduler, namespace, name);
    let Some(gang) = found else {
        return Err(CliError::NotFound {
            name: format!("{namespace}/{name}"),
            hint: hint(&cluster.scheduler, namespace, name),
        });
    };
    let report = cluster.report(&[gang], args.output, args.cluster.strict)?;
    print_result(&report, args.output, |report| {
        report.gangs.first().map(text::why).unwrap_or_default()
    })?;
    Ok(if report.all_placed() {
        Ending::Good
    } else {
        Ending::Waits
    })
}

/// The gang, the gang of one, or the gang that a pod of this name is a member of.
fn find(scheduler: &Scheduler, namespace: &str, name: &str) -> Option<GangId> {
    let has_member = |id: &GangId| {
        let gang = scheduler
            .gang(*id)
            .filter(|gang| gang.namespace == namespace);
        gang.is_some_and(|gang| gang.members.iter().any(|member| member.name == name))
    };
    let named = scheduler.find(namespace, name);
    named.or_else(|| scheduler.gangs().into_iter().find(has_member))
}

/// Where a gang of this name exists, or which name is like it.
fn hint(scheduler: &Scheduler, namespace: &str, name: &str) -> String {
    let gangs = scheduler.gangs();
    let named = gangs
        .iter()
        .filter_map(|id| scheduler.gang(*id))
        .find(|gang| gang.name == name);
    if let Some(gang) = named {
        return format!("; did you mean {}/{}?", gang.namespace, gang.name);
    }
    let known = gangs.iter().filter_map(|id| scheduler.gang(*id));
    let known: Vec<String> = known
        .map(|gang| format!("{}/{}", gang.namespace, gang.name))
        .collect();
    let words: Vec<&str> = known.iter().map(String::as_str).collect();
    match nearest(&format!("{namespace}/{name}"), &words) {
        Some(near) => format!("; did you mean {near}?"),
        None => format!("; {} others are known", gangs.len()),
    }
}
