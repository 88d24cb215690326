//! What the API server refuses to store, said before it is added up.

use gangline::request::PODS;

use super::SPEC;
use crate::{
    api,
    api::Container,
    problem::{FieldPath, Problems},
    quantity::Quantity,
};

/// What the API server refuses to store: shares of extended resources, requests that differ from a
/// limit that cannot be exceeded, requests above their limit.
pub(super) fn check_containers(pod: &api::Pod, problems: &mut Problems) {
    let lists = [
        ("containers", &pod.spec.containers),
        ("initContainers", &pod.spec.init_containers),
    ];
    for (list, containers) in lists {
        let path = SPEC.name(list);
        for (index, container) in containers.iter().enumerate() {
            let path = path.index(index);
            let path = path.name("resources");
            for (name, quantity) in container.resources.requests.iter() {
                check_request(container, name, quantity, &path, problems);
            }
            for (name, limit) in container.resources.limits.iter() {
                check_whole(
                    container,
                    name,
                    limit,
                    &path.name("limits").key(name),
                    problems,
                );
            }
        }
    }
}

fn check_request(
    container: &Container,
    name: &str,
    request: &Quantity,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) {
    let who = &container.name;
    let requests = path.name("requests");
    let field = requests.key(name);
    if name == PODS {
        problems.note(
            "UnsupportedResource",
            &field,
            format_args!("container {who} asks for pods; every pod takes one slot by itself"),
        );
    }
    let cannot_exceed = is_extended(name) || is_huge_pages(name);
    let Some(limit) = container.resources.limits.get(name) else {
        // With a limit, it is the limit that is checked.
        check_whole(container, name, request, &field, problems);
        if cannot_exceed {
            problems.note(
                "LimitMissing",
                &path.name("limits").key(name),
                format_args!(
                    "container {who} requests {name}: {request} without a limit; accepted: a limit \
                     of {request}"
                ),
            );
        }
        return;
    };
    // What is no number is noted where it is added up.
    let (Ok(request_milli), Ok(limit_milli)) = (request.milli(), limit.milli()) else {
        return;
    };
    if cannot_exceed && request_milli != limit_milli {
        problems.note(
            "RequestNotLimit",
            &field,
            format_args!(
                "container {who} requests {name}: {request} with a limit of {limit}; accepted: \
                 request and limit equal"
            ),
        );
    } else if request_milli > limit_milli {
        problems.note(
            "RequestAboveLimit",
            &field,
            format_args!(
                "container {who} requests {name}: {request} with a limit of {limit}; accepted: at \
                 most the limit"
            ),
        );
    }
}

fn check_whole(
    container: &Container,
    name: &str,
    quantity: &Quantity,
    field: &FieldPath<'_>,
    problems: &mut Problems,
) {
    if is_extended(name) && quantity.milli().is_ok_and(|milli| milli % 1000 != 0) {
        problems.note(
            "FractionOfDevice",
            field,
            format_args!(
                "container {} asks for {name}: {quantity}; accepted: a whole number",
                container.name
            ),
        );
    }
}

/// Extended resources have a vendor's domain before the slash; they come in whole pieces.
fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/")
}

pub(super) fn is_huge_pages(name: &str) -> bool {
    name.starts_with("hugepages-")
}
