//! The pods of a job: as many at a time as it allows, until enough have ended well.

use std::collections::BTreeSet;

use gangline::gang::Problem;

use super::{
    ExistingPods, MAX_PODS, PodMaker, count,
    existing::{self, COMPLETION_INDEX},
};
use crate::{
    api,
    api::{Pod, Timestamp},
    problem::problem,
};

/// The pods that a job's controller would add now. Those that follow once others have ended are not
/// among them.
pub fn job(
    job: &api::Job,
    existing: &ExistingPods,
    created: Timestamp,
) -> Result<Vec<Pod>, Problem> {
    let spec = &job.spec;
    let maker = PodMaker::new("batch/v1", "Job", &job.metadata, created)?;
    let parallelism = count("spec.parallelism", spec.parallelism)?;
    // Without either number one pod is to end well; with parallelism alone the pods agree among
    // themselves when they are done.
    let completions = match (spec.completions, spec.parallelism) {
        (None, Some(_)) => None,
        (completions, _) => Some(completions_of(completions.unwrap_or(1))?),
    };
    let indexed = match &*spec.completion_mode {
        "" | "NonIndexed" => false,
        "Indexed" => true,
        other => {
            let message = format_args!("{other:?}; accepted: NonIndexed, Indexed");
            return Err(problem("InvalidJob", "spec.completionMode", message));
        }
    };
    if indexed && completions.is_none() {
        let message = "absent; accepted: a number, with completionMode Indexed";
        return Err(problem("InvalidJob", "spec.completions", message));
    }
    if spec.suspend == Some(true) {
        return Ok(Vec::new());
    }

    let there: Vec<_> = existing
        .controlled("Job", &maker.namespace, &job.metadata.name)
        .collect();
    let active = existing::active(there.iter().copied());
    let succeeded = there.iter().filter(|pod| pod.succeeded).count() as u32;
    let wanted = match completions {
        Some(completions) => parallelism.min(completions.saturating_sub(succeeded)),
        // Once one has ended well, the work is done or nearly so.
        None if succeeded > 0 => 0,
        None => parallelism,
    };
    let missing = wanted.saturating_sub(active) as usize;
    let pod = |name: &str, position: usize| {
        let mut pod = maker.pod(&spec.template, name, position);
        let labels = &mut pod.metadata.labels;
        for key in ["batch.kubernetes.io/controller-uid", "controller-uid"] {
            labels.insert(key, maker.owner.uid.clone());
        }
        for key in ["batch.kubernetes.io/job-name", "job-name"] {
            labels.insert(key, job.metadata.name.clone());
        }
        pod
    };
    if !indexed {
        let names = maker.free_names(existing).take(missing).enumerate();
        return Ok(names.map(|(position, name)| pod(&name, position)).collect());
    }
    let taken: BTreeSet<u32> = (there.iter())
        .filter(|pod| pod.active || pod.succeeded)
        .filter_map(|pod| pod.completion_index)
        .collect();
    let indexes = (0..completions.unwrap_or(0)).filter(|index| !taken.contains(index));
    let pods = indexes.take(missing).enumerate().map(|(position, index)| {
        let mut pod = pod(&maker.numbered(index), position);
        let number: Box<str> = index.to_string().into();
        pod.metadata.labels.insert(COMPLETION_INDEX, number.clone());
        pod.metadata.annotations.insert(COMPLETION_INDEX, number);
        pod
    });
    Ok(pods.collect())
}

/// Unlike the number of pods at a time, the number of pods over a job's life may be large.
fn completions_of(given: i64) -> Result<u32, Problem> {
    let limit = i32::MAX;
    let valid = u32::try_from(given)
        .ok()
        .filter(|count| i32::try_from(*count).is_ok());
    valid.ok_or_else(|| {
        let message = format_args!("{given}; accepted: 0 to {limit}, {MAX_PODS} at a time");
        problem("InvalidCount", "spec.completions", message)
    })
}
