//! The one place where a pod's request is added up.
//!
//! Data enters as a decoded pod and leaves as whole amounts in the core's units, cards apart. The
//! numbers are those of kube-scheduler 1.37 (`PodRequests` in `k8s.io/component-helpers`, with
//! resources from the status): containers run side by side, init containers one after the other
//! before them, sidecars (restartable init containers) from their place on to the end; amounts for
//! the pod as a whole replace the sum; overhead is added; while a resize in place is under way the
//! largest of what is wanted, promised and used counts. Also applied is what the API server fills in
//! when a pod is created, so that a manifest counts as the pod that it would become.
//!
//! Sums are made in exact thousandths and rounded up once, at the end. Nothing here looks at nodes.

use std::collections::BTreeMap;

use gangline::request::{CPU, CardRequest, PODS};

use crate::{
    api,
    api::{Container, ContainerStatus, ResourceList, ResourceRequirements},
    cards::{self, Asked},
    problem::{FieldPath, Problems},
    quantity::milli_to_units,
};

mod amounts;
mod check;

use amounts::Amounts;
use check::{check_containers, is_huge_pages};

const SPEC: FieldPath<'static> = FieldPath::root("spec");
const STATUS: FieldPath<'static> = FieldPath::root("status");

/// What a pod asks for, added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Amounts by resource name, cards excluded, in the core's units.
    pub resources: BTreeMap<String, i64>,
    /// Cards or parts of cards, if any.
    pub cards: Option<CardRequest>,
}

/// Adds up what a pod asks for. An amount that cannot be counted is noted and left out.
pub fn request(pod: &api::Pod, problems: &mut Problems) -> Request {
    check_containers(pod, problems);
    let spec = &pod.spec;
    let wanted = sum(pod, problems, |container, _| {
        Source::Requirements(&container.resources)
    });
    let pod_level = pod_level_requests(spec, &wanted, problems);
    let mut total = wanted;
    if has_status_amounts(pod) {
        total = with_status(pod, total, problems);
    }
    apply_pod_level(pod, pod_level, &mut total, problems);
    total.add_list(&spec.overhead, &SPEC.name("overhead"), problems);
    split(pod, &total, problems)
}

/// Where a container's amounts are read from.
enum Source<'a> {
    /// The wanted requests, or limits where there is no request.
    Requirements(&'a ResourceRequirements),
    /// A list from the status.
    List(&'a ResourceList),
    /// Nothing is known of it.
    Nothing,
}

/// The sum over containers, init containers and sidecars, with each container's amounts taken from
/// where `source` says.
fn sum<'a>(
    pod: &'a api::Pod,
    problems: &mut Problems,
    source: impl Fn(&'a Container, Option<&'a ContainerStatus>) -> Source<'a>,
) -> Amounts<'a> {
    let read = |container: &'a Container, path: &FieldPath<'_>, problems: &mut Problems| {
        let mut amounts = Amounts::default();
        match source(container, status_of(pod, &container.name)) {
            Source::Requirements(requirements) => {
                amounts.add_requirements(requirements, &path.name("resources"), problems);
            }
            Source::List(list) => {
                let path = STATUS.name("containerStatuses");
                amounts.add_list(list, &path.key(&container.name), problems);
            }
            Source::Nothing => {}
        }
        amounts
    };

    let mut total = Amounts::default();
    let path = SPEC.name("containers");
    for (index, container) in pod.spec.containers.iter().enumerate() {
        total.add(&read(container, &path.index(index), problems));
    }
    let mut sidecars = Amounts::default();
    let mut start = Amounts::default();
    let path = SPEC.name("initContainers");
    for (index, container) in pod.spec.init_containers.iter().enumerate() {
        let mut amounts = read(container, &path.index(index), problems);
        if is_sidecar(container) {
            total.add(&amounts);
            sidecars.add(&amounts);
            start.raise_to(&sidecars);
        } else {
            amounts.add(&sidecars);
            start.raise_to(&amounts);
        }
    }
    total.raise_to(&start);
    total
}

/// Whether an init container keeps running beside the containers.
pub(crate) fn is_sidecar(container: &Container) -> bool {
    &*container.restart_policy == "Always"
}

/// What is wanted, raised to what is promised and used while a resize is under way. A resize that
/// the node can never grant does not count.
fn with_status<'a>(pod: &'a api::Pod, wanted: Amounts<'a>, problems: &mut Problems) -> Amounts<'a> {
    let refused = is_resize_infeasible(pod);
    let otherwise = |container: &'a Container| {
        if refused {
            Source::Nothing
        } else {
            Source::Requirements(&container.resources)
        }
    };
    let promised_of = |status: Option<&'a ContainerStatus>| {
        status.and_then(|status| status.allocated_resources.as_ref())
    };
    // An empty list of requests reads like an absent one: it would only ever raise to nothing.
    let used_of = |status: Option<&'a ContainerStatus>| {
        let requirements = status.and_then(|status| status.resources.as_ref())?;
        (!requirements.requests.is_empty()).then_some(&requirements.requests)
    };

    let (promised, used) = match (&pod.status.allocated_resources, &pod.status.resources) {
        (Some(allocated), Some(running)) if !running.requests.is_empty() => {
            let mut promised = Amounts::default();
            promised.add_list(allocated, &STATUS.name("allocatedResources"), problems);
            let mut used = Amounts::default();
            used.add_list(&running.requests, &STATUS.name("resources"), problems);
            (promised, used)
        }
        _ => (
            sum(pod, problems, |container, status| {
                promised_of(status).map_or_else(|| otherwise(container), Source::List)
            }),
            sum(pod, problems, |container, status| {
                used_of(status)
                    .or(promised_of(status))
                    .map_or_else(|| otherwise(container), Source::List)
            }),
        ),
    };
    let mut total = if refused { Amounts::default() } else { wanted };
    total.raise_to(&promised);
    total.raise_to(&used);
    total
}

fn has_status_amounts(pod: &api::Pod) -> bool {
    let status = &pod.status;
    let in_container = |status: &ContainerStatus| {
        status.allocated_resources.is_some() || status.resources.is_some()
    };
    status.allocated_resources.is_some()
        || status.container_statuses.iter().any(in_container)
        || status.init_container_statuses.iter().any(in_container)
        || is_resize_infeasible(pod)
}

fn is_resize_infeasible(pod: &api::Pod) -> bool {
    let pending = pod
        .status
        .conditions
        .iter()
        .find(|condition| &*condition.kind == "PodResizePending");
    pending.is_some_and(|condition| &*condition.reason == "Infeasible")
}

fn status_of<'a>(pod: &'a api::Pod, container: &str) -> Option<&'a ContainerStatus> {
    let all = pod
        .status
        .container_statuses
        .iter()
        .chain(&pod.status.init_container_statuses);
    all.into_iter().find(|status| &*status.name == container)
}

/// The amounts stated for the pod as a whole, with the API server's default: where only a limit is
/// stated and no container asks, the limit. `None` when nothing is stated.
fn pod_level_requests<'a>(
    spec: &'a api::PodSpec,
    wanted: &Amounts<'a>,
    problems: &mut Problems,
) -> Option<Amounts<'a>> {
    let stated = spec.resources.as_ref()?;
    let resources = SPEC.name("resources");
    let mut requests = Amounts::default();
    let path = resources.name("requests");
    for (name, quantity) in stated.requests.iter() {
        let field = path.key(name);
        if !is_pod_level_resource(name) {
            problems.note(
                "UnsupportedResource",
                &field,
                format_args!(
                    "{name} cannot be requested for a pod as a whole; accepted: cpu, memory, \
                     hugepages-*"
                ),
            );
            continue;
        }
        let amount = requests.add_quantity(name, quantity, &field, problems);
        if let Some(amount) = amount.filter(|amount| *amount < wanted.get(name)) {
            problems.note(
                "RequestBelowContainers",
                &field,
                format_args!(
                    "{} is less than its containers ask for together ({}); accepted: at least that",
                    shown(name, amount),
                    shown(name, wanted.get(name)),
                ),
            );
        }
    }
    let path = resources.name("limits");
    for (name, quantity) in stated.limits.iter() {
        let asked = stated.requests.contains_key(name) || wanted.get(name) > 0;
        if is_pod_level_resource(name) && !asked {
            requests.add_quantity(name, quantity, &path.key(name), problems);
        }
    }
    (!requests.is_empty()).then_some(requests)
}

/// Replaces the containers' sum with the amounts stated for the pod as a whole.
fn apply_pod_level<'a>(
    pod: &'a api::Pod,
    pod_level: Option<Amounts<'a>>,
    total: &mut Amounts<'a>,
    problems: &mut Problems,
) {
    let Some(mut requests) = pod_level else {
        return;
    };
    if let Some(running) = &pod.status.resources {
        if is_resize_infeasible(pod) {
            requests = Amounts::default();
        }
        let mut status = Amounts::default();
        status.add_list(&running.requests, &STATUS.name("resources"), problems);
        requests.raise_to(&status);
        if let Some(allocated) = &pod.status.allocated_resources {
            let mut status = Amounts::default();
            status.add_list(allocated, &STATUS.name("allocatedResources"), problems);
            requests.raise_to(&status);
        }
    }
    for (name, amount) in requests
        .iter()
        .filter(|(name, _)| is_pod_level_resource(name))
    {
        total.set(name, amount);
    }
}

fn is_pod_level_resource(name: &str) -> bool {
    name == CPU || name == gangline::request::MEMORY || is_huge_pages(name)
}

/// The largest amount that the engine counts with: its sums over a node still fit.
pub const MOST_AMOUNT: i64 = 1 << 60;

/// Whole amounts in the core's units, cards apart.
fn split(pod: &api::Pod, total: &Amounts<'_>, problems: &mut Problems) -> Request {
    let mut request = Request::default();
    let mut asked = Asked::default();
    for (name, milli) in total.iter() {
        if name == PODS || milli == 0 {
            continue;
        }
        let exact = i64::try_from(in_core_units(name, milli));
        if exact.is_err() {
            problems.note(
                "QuantityTooLarge",
                &SPEC,
                format_args!(
                    "{name}: {} in all; accepted: at most {}",
                    in_core_units(name, milli),
                    i64::MAX
                ),
            );
        }
        // A pod that runs counts whatever it says: an amount that nobody has is as good as more.
        let amount = exact.unwrap_or(i64::MAX).min(MOST_AMOUNT);
        if !asked.take(name, amount, problems) {
            request.resources.insert(name.into(), amount);
        }
    }
    request.cards = cards::request(pod, asked, &mut request.resources, problems);
    request
}

/// Thousandths as the core counts the resource: processor time in thousandths, the rest in units.
pub(crate) fn in_core_units(name: &str, milli: i128) -> i128 {
    if name == CPU {
        milli
    } else {
        milli_to_units(milli)
    }
}

/// An amount as people write it.
fn shown(name: &str, milli: i128) -> String {
    if milli % 1000 == 0 {
        return (milli / 1000).to_string();
    }
    if name == CPU {
        return format!("{milli}m");
    }
    milli_to_units(milli).to_string()
}

#[cfg(test)]
mod tests;
