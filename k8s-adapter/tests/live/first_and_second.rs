//! The example of five free GPUs, with the manifests as people write them.

use gangline_controlplane::ControlPlane;

use crate::support::{Cluster, VOLCANO};

const CLUSTER: &str = include_str!("../../../docs/examples/five-free-gpus/cluster.yaml");
const SERVICES: &str = include_str!("../../../docs/examples/five-free-gpus/services.yaml");

#[test]
fn of_two_services_one_runs_whole_and_the_other_when_it_is_gone() {
    let builder = ControlPlane::builder().controller_manager().kwok();
    let mut cluster = Cluster::start(&builder).unwrap();
    cluster.control_plane.apply(VOLCANO).unwrap();
    cluster.control_plane.apply(CLUSTER).unwrap();
    cluster.run(&["--scheduler-name", "volcano"]);
    cluster.control_plane.apply(SERVICES).unwrap();

    let services = ["service-a", "service-b"];
    let has = |cluster: &Cluster, service: &str, bound| cluster.placed(service) == (4, bound);
    cluster.wait_until("one service is bound", || {
        services.iter().any(|service| has(&cluster, service, 4))
    });
    cluster.wait_until("the other has all its pods", || {
        services
            .iter()
            .all(|service| cluster.placed(service).0 == 4)
    });
    let first = services.iter().find(|service| has(&cluster, service, 4));
    let first = *first.expect("it stays");
    let second = services
        .into_iter()
        .find(|service| *service != first)
        .unwrap();
    assert!(has(&cluster, second, 0), "{:?}", cluster.places(second));
    cluster.wait_until("its pods say why they wait", || {
        (0..4).all(|ordinal| {
            let (reason, message) = cluster.why(&format!("{second}-{ordinal}"));
            reason == "Unschedulable" && message.ends_with("needs 4 GPUs, 1 free")
        })
    });

    let gone = format!("/apis/apps/v1/namespaces/default/statefulsets/{first}");
    cluster.control_plane.delete(&gone).unwrap();
    cluster.wait_until("the second service is bound", || has(&cluster, second, 4));
    let pod = cluster.read(&format!("/api/v1/namespaces/default/pods/{second}-3"));
    assert_eq!(pod["metadata"]["annotations"]["gangline.io/rank"], "3");
    assert!(pod["metadata"]["annotations"]["gangline.io/devices"].is_string());
    cluster.wait_until("it runs", || {
        let pod = cluster.read(&format!("/api/v1/namespaces/default/pods/{second}-0"));
        pod["status"]["phase"] == "Running"
    });
}
