//! Which ports of its node a pod needs for itself.

use gangline::request::{HostPort, Protocol};

use super::SPEC;
use crate::{
    api,
    pod::is_sidecar,
    problem::{FieldPath, Problems},
};

/// Host ports of everything that runs to the end: containers and sidecars. Other init containers let
/// go of theirs, so Kubernetes does not count them. On the host's network every container port is a
/// host port.
pub(super) fn host_ports(spec: &api::PodSpec, problems: &mut Problems) -> Vec<HostPort> {
    let on_host_network = spec.host_network == Some(true);
    let lists = [
        ("initContainers", &spec.init_containers, false),
        ("containers", &spec.containers, true),
    ];
    let mut host_ports = Vec::new();
    for (list, containers, all_stay) in lists {
        let path = SPEC.name(list);
        for (index, container) in containers.iter().enumerate() {
            if !all_stay && !is_sidecar(container) {
                continue;
            }
            let path = path.index(index);
            let path = path.name("ports");
            for (index, port) in container.ports.iter().enumerate() {
                let path = path.index(index);
                host_ports.extend(host_port(port, on_host_network, &path, problems));
            }
        }
    }
    host_ports.sort();
    host_ports.dedup();
    host_ports
}

fn host_port(
    port: &api::ContainerPort,
    on_host_network: bool,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Option<HostPort> {
    let (field, number) = match (
        port.host_port.filter(|number| *number != 0),
        on_host_network,
    ) {
        (Some(number), _) => ("hostPort", number),
        (None, true) => ("containerPort", port.container_port?),
        (None, false) => return None,
    };
    let Some(number) = u16::try_from(number).ok().filter(|number| *number > 0) else {
        problems.note(
            "InvalidPort",
            &path.name(field),
            format_args!("{number}; accepted: 1 to 65535"),
        );
        return None;
    };
    let protocol = match &*port.protocol {
        "" | "TCP" => Protocol::Tcp,
        "UDP" => Protocol::Udp,
        "SCTP" => Protocol::Sctp,
        other => {
            problems.note(
                "InvalidPort",
                &path.name("protocol"),
                format_args!("{other:?}; accepted: TCP, UDP, SCTP"),
            );
            return None;
        }
    };
    Some(HostPort {
        port: number,
        protocol,
        address: (&*port.host_ip).into(),
    })
}
