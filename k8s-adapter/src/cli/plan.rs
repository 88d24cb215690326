//! `gangline plan`: what would start now, and what waits for what.

use std::path::PathBuf;

use super::{
    CliError, Ending, Format,
    cluster::{Cluster, ClusterArgs},
    picture_path, print_result, write_picture,
};
use crate::output::text;

/// Show what would start now, and what waits for what
///
/// Reads a cluster and, on top of it, manifests that nobody has applied yet, and decides for every
/// waiting gang as the scheduler would now.
#[derive(Debug, clap::Args)]
#[command(after_help = super::PLAN_CODES)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
    /// What would be applied: pods, groups of pods, and workloads that make pods
    #[arg(value_name = "MANIFEST")]
    pub(super) manifests: Vec<PathBuf>,
    /// How the result is written
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    /// Draw the cluster after the plan into this file
    #[arg(long, value_name = "FILE.svg", value_parser = picture_path)]
    picture: Option<PathBuf>,
    /// List also the many gangs that run already
    #[arg(long)]
    all: bool,
    /// List also each member with its place, devices and links
    #[arg(long)]
    members: bool,
}

pub(super) fn run(args: &Args) -> Result<Ending, CliError> {
    let mut cluster = Cluster::decided(&args.cluster, &args.manifests)?;
    let gangs = cluster.scheduler.gangs();
    let report = cluster.report(&gangs, args.output, args.cluster.strict)?;
    if let Some(path) = &args.picture {
        write_picture(path, &cluster.scheduler, &report.gangs)?;
    }
    print_result(&report, args.output, |report| {
        text::plan(report, args.all, args.members)
    })?;
    Ok(if report.all_placed() {
        Ending::Good
    } else {
        Ending::Waits
    })
}
