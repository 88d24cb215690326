//! From a decoded node to the core's.
//!
//! Data enters as a node of the API and leaves as a [`NodeSpec`], with the problems met on the way:
//! an amount or a taint that cannot be read is left out and noted, the node stays. What Kubernetes'
//! own controllers would write a moment later (the taints of a node that is not ready) is added, so
//! that a dump taken in between plans the same. Nothing here knows what runs on the node.

use gangline::{
    cluster::NodeSpec,
    request::{Taint, TaintEffect},
};

use crate::{
    annotations, api,
    cards::{Offered, node_cards},
    pod::{MOST_AMOUNT, in_core_units},
    problem::{FieldPath, Problems},
    rules::taint,
};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Smaller images are there before anybody notices.
const LEAST_IMAGE_MIB: u32 = 100;
/// Of so many names of images it is known which node has them; a kubelet tells of 50 images.
const MOST_IMAGES: usize = 256;

/// Whether the kubelet of a node with these taints does not answer.
pub(crate) fn is_away(taints: &[Taint]) -> bool {
    let mut taints = taints.iter();
    taints.any(|taint| matches!(&*taint.key, NOT_READY | UNREACHABLE))
}

/// What a node is, for the core.
pub fn node_spec(node: &api::Node, problems: &mut Problems) -> NodeSpec {
    let mut spec = NodeSpec {
        name: (&*node.metadata.name).into(),
        unschedulable: node.spec.unschedulable == Some(true),
        ..NodeSpec::default()
    };
    let labels = node.metadata.labels.iter();
    spec.labels = labels
        .map(|(key, value)| (key.into(), (&**value).into()))
        .collect();
    annotations::check_node(&node.metadata, problems);
    add_taints(node, &mut spec, problems);
    add_amounts(node, &mut spec, problems);
    spec
}

/// What a node has of images that take long to pull: names as hashes, with the size in MiB.
pub(crate) fn node_images(node: &api::Node) -> Vec<(u64, u32)> {
    let images = node.status.images.iter().filter_map(|image| {
        let mib = u32::try_from(image.size_bytes? >> 20).ok()?;
        (mib >= LEAST_IMAGE_MIB).then_some((image, mib))
    });
    let named = images.flat_map(|(image, mib)| {
        let names = image.names.iter().filter(|name| name.0 > 0);
        names.map(move |name| (name.0, mib))
    });
    let mut images: Vec<(u64, u32)> = named.take(MOST_IMAGES).collect();
    images.sort_unstable();
    images.dedup_by_key(|&mut (name, _)| name);
    images
}

fn add_taints(node: &api::Node, spec: &mut NodeSpec, problems: &mut Problems) {
    let path = FieldPath::root("spec");
    let path = path.name("taints");
    for (index, given) in node.spec.taints.iter().enumerate() {
        if &*given.key == UNSCHEDULABLE {
            // Kubernetes' echo of a cordon. As a taint of its own it would outlive an uncordon.
            spec.unschedulable = true;
            continue;
        }
        spec.taints
            .extend(taint(given, &path.index(index), problems));
    }
    let ready = node
        .status
        .conditions
        .iter()
        .find(|condition| &*condition.kind == "Ready");
    let key = match ready.map(|condition| &*condition.status) {
        Some("False") => NOT_READY,
        Some("Unknown") => UNREACHABLE,
        _ => return,
    };
    if !spec
        .taints
        .iter()
        .any(|taint| matches!(&*taint.key, NOT_READY | UNREACHABLE))
    {
        spec.taints.push(Taint {
            key: key.into(),
            value: String::new(),
            effect: TaintEffect::NoSchedule,
        });
    }
}

fn add_amounts(node: &api::Node, spec: &mut NodeSpec, problems: &mut Problems) {
    let status = FieldPath::root("status");
    let (list, path) = match &node.status.allocatable {
        Some(list) => (list, status.name("allocatable")),
        None => (&node.status.capacity, status.name("capacity")),
    };
    let mut offered = Offered::default();
    for (name, quantity) in list.iter() {
        let amount = match quantity.milli() {
            Ok(milli) => in_core_units(name, milli),
            Err(error) => {
                problems.note("InvalidQuantity", &path.key(name), error);
                continue;
            }
        };
        let Ok(amount) = i64::try_from(amount) else {
            problems.note(
                "QuantityTooLarge",
                &path.key(name),
                format_args!("{quantity}; accepted: at most {}m", i64::MAX),
            );
            continue;
        };
        let amount = amount.min(MOST_AMOUNT);
        if offered.take(name, amount, &path.key(name), problems) {
            continue;
        }
        spec.resources.insert(name.into(), amount);
    }
    spec.cards = node_cards(node, &offered, problems);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(yaml: &str) -> (NodeSpec, Vec<String>) {
        let mut problems = Problems::default();
        let spec = node_spec(&serde_saphyr::from_str(yaml).unwrap(), &mut problems);
        (spec, problems.iter().map(ToString::to_string).collect())
    }

    fn taint_keys(yaml: &str) -> Vec<String> {
        node(yaml)
            .0
            .taints
            .into_iter()
            .map(|taint| taint.key)
            .collect()
    }

    #[test]
    fn a_gpu_node_has_cards_of_a_model_and_amounts_in_the_cores_units() {
        let (spec, problems) = node(
            "
metadata: {name: n1, labels: {nvidia.com/gpu.product: NVIDIA-H200, rack: r1}}
spec: {taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}], unschedulable: true}
status:
  capacity: {cpu: 96}
  allocatable: {cpu: 95500m, memory: 1000Ki, pods: '250', nvidia.com/gpu: '8', hugepages-2Mi: 4Mi,
                amd.com/gpu: '0'}
",
        );
        assert_eq!(problems, [""; 0]);
        assert_eq!((&*spec.name, spec.unschedulable), ("n1", true));
        assert_eq!(spec.labels.get("rack").map(String::as_str), Some("r1"));
        let resources: Vec<_> = spec
            .resources
            .iter()
            .map(|(name, amount)| (&**name, *amount))
            .collect();
        assert_eq!(
            resources,
            [
                ("cpu", 95_500),
                ("hugepages-2Mi", 4 << 20),
                ("memory", 1000 << 10),
                ("pods", 250)
            ]
        );
        assert_eq!(spec.cards.len(), 1);
        assert_eq!(
            (&*spec.cards[0].model, spec.cards[0].count),
            ("NVIDIA-H200", 8)
        );
        assert_eq!(spec.taints[0].value, "present");
    }

    #[test]
    fn a_node_that_says_nothing_of_allocatable_offers_its_capacity() {
        let (spec, _) = node("status: {capacity: {cpu: 4}}");
        assert_eq!(spec.resources.get("cpu"), Some(&4000));
    }

    #[test]
    fn a_node_that_is_not_ready_is_tainted_once() {
        let node = |taints: &str, ready: &str| {
            format!(
                "{{spec: {{taints: [{taints}]}},
                   status: {{conditions: [{{type: Ready, status: '{ready}'}}]}}}}"
            )
        };
        assert_eq!(taint_keys(&node("", "False")), [NOT_READY]);
        assert_eq!(taint_keys(&node("", "Unknown")), [UNREACHABLE]);
        assert_eq!(taint_keys(&node("", "True")), [""; 0]);
        let marked = format!("{{key: {NOT_READY}, effect: NoExecute}}");
        assert_eq!(taint_keys(&node(&marked, "False")), [NOT_READY]);
        assert_eq!(taint_keys("status: {conditions: null}"), [""; 0]);
    }

    #[test]
    fn the_taint_of_a_cordon_is_the_cordon() {
        let yaml = format!("spec: {{taints: [{{key: {UNSCHEDULABLE}, effect: NoSchedule}}]}}");
        let (spec, _) = node(&yaml);
        assert!(spec.unschedulable && spec.taints.is_empty());
    }

    #[test]
    fn more_cards_than_a_machine_holds_are_shares_and_only_counted() {
        let (spec, problems) = node("status: {allocatable: {nvidia.com/gpu: 80}}");
        assert_eq!(problems, [""; 0]);
        assert_eq!(spec.cards[0].count, 80);
        assert!(spec.resources.is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_named_and_the_rest_of_the_node_stays() {
        let (spec, problems) = node(
            "
spec: {taints: [{key: a, effect: Sometimes}, {key: b, effect: NoExecute}]}
status: {allocatable: {cpu: lots, memory: '-1', nvidia.com/gpu: 1e30, pods: 10}}
",
        );
        assert_eq!(
            problems,
            [
                "InvalidTaint: spec.taints[0].effect: \"Sometimes\"; accepted: NoSchedule, \
                 PreferNoSchedule, NoExecute",
                "InvalidQuantity: status.allocatable[cpu]: \"lots\" is not a quantity; accepted: a \
                 number such as 500m, 2 or 1.5Gi",
                "InvalidQuantity: status.allocatable[memory]: \"-1\" is negative; accepted: zero \
                 or more",
                "InvalidQuantity: status.allocatable[nvidia.com/gpu]: \
                 \"1000000000000000000000000000000\" is too large; accepted: at most \
                 9223372036854775807",
            ]
        );
        assert_eq!((spec.taints.len(), spec.resources.len()), (1, 1));
    }
}
