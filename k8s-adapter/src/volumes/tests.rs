//! Each rule of volumes, from objects to what the engine is told and decides.

use std::fmt::Write as _;

use gangline::{engine::MemberState, request::NodeSelectorTerm};

use crate::{
    intake::testing::{world, world_with},
    world::{Options, World},
};

/// Two nodes in each of two zones.
fn nodes() -> String {
    let mut text = String::new();
    for (name, zone) in [("n1", "a"), ("n2", "a"), ("n3", "b"), ("n4", "b")] {
        let _ = write!(
            text,
            "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{kubernetes.io/hostname: \
             {name}, topology.kubernetes.io/zone: {zone}}}}}\nstatus: {{allocatable: {{cpu: 8, pods: \
             20}}}}\n---\n"
        );
    }
    text
}

fn pod(name: &str, claims: &[&str]) -> String {
    pod_with(name, claims, "")
}

fn pod_with(name: &str, claims: &[&str], spec: &str) -> String {
    let volumes: Vec<String> = claims
        .iter()
        .map(|claim| format!("{{name: v-{claim}, persistentVolumeClaim: {{claimName: {claim}}}}}"))
        .collect();
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, uid: uid-{name}}}\nspec: {{priority: 0, \
         {spec} volumes: [{}], containers: [{{resources: {{requests: {{cpu: 1}}}}}}]}}\n---\n",
        volumes.join(", ")
    )
}

fn claim(name: &str, meta: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}, namespace: default, \
         {meta}}}\nspec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: \
         10Gi}}}}, {spec}}}\n---\n"
    )
}

fn bound(name: &str, volume: &str) -> String {
    claim(
        name,
        "annotations: {pv.kubernetes.io/bind-completed: 'yes'}",
        &format!("storageClassName: fast, volumeName: {volume}"),
    )
}

fn volume(name: &str, class: &str, meta: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: {name}, {meta}}}\nspec: \
         {{storageClassName: {class}, accessModes: [ReadWriteOnce], {spec}}}\nstatus: {{phase: \
         Available}}\n---\n"
    )
}

/// A disk of a node.
fn disk(name: &str, node: &str, size: &str) -> String {
    let spec = format!(
        "capacity: {{storage: {size}}}, nodeAffinity: {{required: {{nodeSelectorTerms: \
         [{{matchExpressions: [{{key: kubernetes.io/hostname, operator: In, values: [{node}]}}]}}]}}}}"
    );
    volume(name, "local", "", &spec)
}

/// Reachable from one zone.
fn zonal(zone: &str) -> String {
    format!(
        "capacity: {{storage: 10Gi}}, nodeAffinity: {{required: {{nodeSelectorTerms: \
         [{{matchExpressions: [{{key: topology.kubernetes.io/zone, operator: In, values: \
         [{zone}]}}]}}]}}}}"
    )
}

fn class(name: &str, fields: &str) -> String {
    format!(
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: {name}}}\n{fields}\n---\n"
    )
}

fn fast() -> String {
    class(
        "fast",
        "provisioner: csi.example.com\nvolumeBindingMode: WaitForFirstConsumer",
    )
}

fn local() -> String {
    class(
        "local",
        "provisioner: kubernetes.io/no-provisioner\nvolumeBindingMode: WaitForFirstConsumer",
    )
}

/// A volume, so that the input has all kinds.
fn other() -> String {
    volume("other", "other", "", "capacity: {storage: 1Gi}") + &class("other", "provisioner: x")
}

/// What a pod waits with.
fn problem(world: &World, pod: &str) -> String {
    let problem = world.pod(pod).problem.as_ref();
    problem.map_or_else(String::new, ToString::to_string)
}

/// The nodes that a pod's rules leave.
fn allowed(world: &World, pod: &str) -> String {
    assert_eq!(problem(world, pod), "");
    let required = &world.pod(pod).template.nodes.required;
    let holds = |terms: &Vec<NodeSelectorTerm>, name: &str, labels: &_| {
        terms.iter().any(|term| term.matches(name, labels))
    };
    let nodes = world.nodes().filter(|node| {
        required
            .as_ref()
            .is_none_or(|terms| holds(terms, &node.name, &node.labels))
    });
    nodes.map(|node| &*node.name).collect::<Vec<_>>().join(" ")
}

/// Where each pod is planned to go, `-` for one that waits.
fn placed(world: &World) -> String {
    let mut scheduler = world.engine();
    let mut places = std::collections::BTreeMap::new();
    for decision in scheduler.decide(world.now).to_vec() {
        for placement in scheduler.placements(&decision) {
            places.insert(
                placement.pod,
                scheduler.node_name(placement.node).to_owned(),
            );
        }
    }
    let pods = world.pods().map(|pod| {
        let is_planned = scheduler.state_of(pod.uid) == Some(MemberState::Planned);
        let node = places.get(&pod.uid).filter(|_| is_planned);
        format!("{}:{}", pod.name, node.map_or("-", String::as_str))
    });
    pods.collect::<Vec<_>>().join(" ")
}

fn one(claim: &str, others: &[String]) -> World {
    let parts = [
        &*nodes(),
        &pod("p", &["data"]),
        claim,
        &other(),
        &others.concat(),
    ];
    world(&parts.concat())
}

#[test]
fn a_claim_that_cannot_be_used_makes_its_pod_wait_and_says_why() {
    let table = [
        (
            String::new(),
            "ClaimNotFound: spec.volumes[v-data]: claim default/data does not exist; \
                         accepted: an existing claim",
        ),
        (
            claim("data", "deletionTimestamp: 2026-01-01T00:00:00Z", ""),
            "ClaimDeleting: spec.volumes[v-data]: claim default/data is being deleted",
        ),
        (
            claim("data", "", "volumeName: v}\nstatus: {phase: Lost"),
            "ClaimLost: spec.volumes[v-data]: claim default/data has lost its volume v",
        ),
        (
            bound("data", "gone"),
            "VolumeNotFound: spec.volumes[v-data]: claim default/data is bound to volume gone, which \
             does not exist",
        ),
        (
            claim("data", "", "storageClassName: other"),
            "ClaimUnbound: spec.volumes[v-data]: claim default/data is not bound yet; its class other \
             binds before pods are placed",
        ),
        (
            claim("data", "", "storageClassName: ''"),
            "ClaimUnbound: spec.volumes[v-data]: claim default/data is not bound yet and has no class",
        ),
        (
            claim("data", "", "storageClassName: fast, volumeName: mine"),
            "ClaimUnbound: spec.volumes[v-data]: claim default/data is not bound to its volume mine yet",
        ),
        (
            claim("data", "", "storageClassName: none"),
            "StorageClassNotFound: spec.volumes[v-data]: claim default/data has the StorageClass none, \
             which does not exist",
        ),
        (
            claim("data", "", "storageClassName: local"),
            "NoVolume: spec.volumes[v-data]: claim default/data wants 10Gi of class local, of which no \
             free volume is left that would do",
        ),
    ];
    for (claim, expected) in table {
        let world = one(&(claim + &self::claim("x", "", "")), &[fast(), local()]);
        assert_eq!(problem(&world, "p"), expected);
        assert_eq!(placed(&world), "p:-");
    }
    let odd = claim("data", "", "storageClassName: fast").replace("10Gi", "much");
    let world = one(&odd, &[fast()]);
    assert!(
        problem(&world, "p").starts_with("InvalidClaim: "),
        "{}",
        problem(&world, "p")
    );
    assert_eq!(world.complaint_lines().len(), 1);
}

#[test]
fn a_bound_claim_limits_its_pod_to_where_its_volume_is() {
    let at = |meta: &str, spec: &str| {
        let world = one(&bound("data", "vol"), &[volume("vol", "fast", meta, spec)]);
        allowed(&world, "p")
    };
    assert_eq!(at("", &zonal("b")), "n3 n4");
    assert_eq!(at("", "capacity: {storage: 10Gi}"), "n1 n2 n3 n4");
    let labels = |key: &str, value: &str| at(&format!("labels: {{{key}: {value}}}"), "");
    assert_eq!(labels("topology.kubernetes.io/zone", "b"), "n3 n4");
    assert_eq!(labels("topology.kubernetes.io/zone", "a__b"), "n1 n2 n3 n4");
    assert_eq!(
        labels("failure-domain.beta.kubernetes.io/zone", "a"),
        "n1 n2"
    );
    // A node with a zone and no region is in no region.
    assert_eq!(labels("topology.kubernetes.io/region", "r"), "");
    let unmarked = nodes().replace(", topology.kubernetes.io/zone: a", "");
    let text = [
        &*unmarked,
        &pod("p", &["data"]),
        &bound("data", "vol"),
        &volume(
            "vol",
            "fast",
            "labels: {topology.kubernetes.io/region: r}",
            "",
        ),
    ];
    assert_eq!(
        allowed(&world(&text.concat()), "p"),
        "n1 n2",
        "nodes that say nothing are anywhere"
    );
}

#[test]
fn all_volumes_and_the_pods_own_rules_hold() {
    let own = "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
               {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, \
               values: [n2, n3]}]}]}}},";
    let text = [
        &*nodes(),
        &pod_with("p", &["a", "b"], own),
        &bound("a", "va"),
        &bound("b", "vb"),
        &volume("va", "fast", "", &zonal("b")),
        &volume("vb", "fast", "", "capacity: {storage: 10Gi}"),
    ];
    let world = world(&text.concat());
    assert_eq!(allowed(&world, "p"), "n3");
    assert_eq!(placed(&world), "p:n3");
}

#[test]
fn a_claim_that_waits_for_its_pod_limits_it_to_where_a_volume_can_be() {
    let wants = claim("data", "", "storageClassName: fast");
    let zone = "provisioner: csi.example.com\nvolumeBindingMode: WaitForFirstConsumer\n\
                allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, \
                values: [b]}]}]";
    assert_eq!(allowed(&one(&wants, &[fast()]), "p"), "n1 n2 n3 n4");
    assert_eq!(allowed(&one(&wants, &[class("fast", zone)]), "p"), "n3 n4");
    // A volume that is there will do as well, where it is; not one that somebody else has.
    let there = volume("there", "fast", "", &zonal("a"));
    let world = one(&wants, &[class("fast", zone), there.clone()]);
    assert_eq!(allowed(&world, "p"), "n1 n2 n3 n4");
    let taken = there.replace(
        "spec: {",
        "spec: {claimRef: {namespace: x, name: y, uid: z}, ",
    );
    assert_eq!(
        allowed(&one(&wants, &[class("fast", zone), taken]), "p"),
        "n3 n4"
    );
    // One that is kept for this claim is the only one.
    let kept = there.replace(
        "spec: {",
        "spec: {claimRef: {namespace: default, name: data}, ",
    );
    assert_eq!(allowed(&one(&wants, &[fast(), kept]), "p"), "n1 n2");
    // Its provisioner works for a node already.
    let selected = "annotations: {volume.kubernetes.io/selected-node: n2}";
    let selected = claim("data", selected, "storageClassName: fast");
    assert_eq!(allowed(&one(&selected, &[fast()]), "p"), "n2");
}

#[test]
fn storage_that_is_left_limits_where_volumes_are_made() {
    let left = |name: &str, zone: &str, fields: &str| {
        format!(
            "apiVersion: storage.k8s.io/v1\nkind: CSIStorageCapacity\nmetadata: {{name: {name}, \
             namespace: csi}}\nstorageClassName: fast\nnodeTopology: {{matchLabels: \
             {{topology.kubernetes.io/zone: {zone}}}}}\n{fields}\n---\n"
        )
    };
    let driver = "apiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: \
                  csi.example.com}\nspec: {storageCapacity: true}\n---\n"
        .to_owned();
    let wants = claim("data", "", "storageClassName: fast");
    let lefts = [
        left("a", "a", "capacity: 9Gi"),
        left("b", "b", "capacity: 100Gi\nmaximumVolumeSize: 10Gi"),
    ];
    let with = |driver: &str| {
        allowed(
            &one(&wants, &[fast(), driver.to_owned(), lefts.concat()]),
            "p",
        )
    };
    assert_eq!(with(&driver), "n3 n4");
    assert_eq!(with(&driver.replace("true", "false")), "n1 n2 n3 n4");
    let world = one(&wants, &[fast(), driver, left("a", "a", "capacity: 9Gi")]);
    assert!(problem(&world, "p").starts_with("NoVolume: "));
}

#[test]
fn a_claim_for_one_pod_goes_to_one_pod() {
    let alone = bound("data", "vol").replace("ReadWriteOnce]", "ReadWriteOncePod]");
    let with = |first: &str| {
        let text = [
            &*nodes(),
            &pod_with("first", &["data"], first),
            &pod("second", &["data"]),
            &alone,
            &volume("vol", "fast", "", "capacity: {storage: 10Gi}"),
        ];
        world(&text.concat())
    };
    let used = "ClaimInUse: spec.volumes[v-data]: claim default/data is for one pod at a time \
                (ReadWriteOncePod) and first uses it";
    let both_wait = with("");
    assert_eq!(
        (
            &*problem(&both_wait, "first"),
            &*problem(&both_wait, "second")
        ),
        ("", used)
    );
    assert_eq!(problem(&with("nodeName: n1,"), "second"), used);
    let ended = with("nodeName: n1,").events;
    assert_eq!(ended.len(), 6);
    let done = [
        &*nodes(),
        &pod_with("first", &["data"], "nodeName: n1,")
            .replace("]}\n---", "]}\nstatus: {phase: Succeeded}\n---"),
        &pod("second", &["data"]),
        &alone,
        &volume("vol", "fast", "", "capacity: {storage: 10Gi}"),
    ];
    assert_eq!(problem(&world(&done.concat()), "second"), "");
}

#[test]
fn nodes_attach_as_many_volumes_of_a_driver_as_they_say() {
    let csi = |name: &str| {
        let spec = format!(
            "capacity: {{storage: 10Gi}}, csi: {{driver: csi.example.com, volumeHandle: h-{name}}}"
        );
        volume(name, "fast", "", &spec)
    };
    let limit = |node: &str, count: &str| {
        format!(
            "apiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {{name: {node}}}\nspec: {{drivers: \
             [{{name: csi.example.com, nodeID: x, allocatable: {{{count}}}}}]}}\n---\n"
        )
    };
    let mut text = nodes().lines().take(5).collect::<Vec<_>>().join("\n") + "\n";
    text += &limit("n1", "count: 2");
    text += &fast();
    text += &pod_with("runs", &["a"], "nodeName: n1,");
    for name in ["a", "b", "d"] {
        text += &(bound(name, &format!("v{name}")) + &csi(&format!("v{name}")));
    }
    text += &claim("c", "", "storageClassName: fast");
    let with = |pods: &str| placed(&world(&[&*text, pods].concat()));
    assert_eq!(with(&pod("p", &["b"])), "p:n1 runs:-");
    assert_eq!(
        with(&pod("p", &["c"])),
        "p:n1 runs:-",
        "one that will be made counts"
    );
    assert_eq!(with(&pod("p", &["b", "c"])), "p:- runs:-");
    assert_eq!(with(&pod("p", &["b", "b"])), "p:n1 runs:-");
    // A node without a limit attaches any number.
    let free = nodes()
        .lines()
        .skip(10)
        .take(5)
        .collect::<Vec<_>>()
        .join("\n")
        + "\n";
    assert_eq!(with(&(free + &pod("p", &["b", "c", "d"]))), "p:n3 runs:-");
}

/// Case C151: each member needs a disk of its own.
#[test]
fn two_members_never_get_one_disk() {
    let gang = "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: g}\nspec: \
                {minMember: 2}\n---\n";
    let member = |name: &str, claim: &str| {
        pod(name, &[claim]).replace(
            &format!("uid: uid-{name}"),
            &format!("uid: uid-{name}, labels: {{scheduling.x-k8s.io/pod-group: g}}"),
        )
    };
    let wants = |name: &str| claim(name, "", "storageClassName: local").replace("10Gi", "100Gi");
    let text = [
        &*nodes(),
        gang,
        &member("g-0", "d-0"),
        &member("g-1", "d-1"),
        &wants("d-0"),
        &wants("d-1"),
        &local(),
        &disk("v1", "n1", "100Gi"),
        &disk("v2", "n1", "50Gi"),
    ]
    .concat();
    let both = world(&(text.clone() + &disk("v3", "n2", "100Gi")));
    let mut places: Vec<_> = placed(&both).split(' ').map(str::to_owned).collect();
    places.sort();
    assert_eq!(
        places.iter().filter(|place| place.ends_with(":n1")).count(),
        1,
        "{places:?}"
    );
    assert_eq!(
        places.iter().filter(|place| place.ends_with(":n2")).count(),
        1,
        "{places:?}"
    );
    assert_eq!(placed(&world(&text)), "g-0:- g-1:-");
}

/// Case C152: a member's volume decides for its group.
#[test]
fn a_groups_domain_follows_the_volume_of_a_member() {
    let gang = "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: g}\nspec: \
                {schedulingPolicy: {gang: {minCount: 2}}, schedulingConstraints: {topology: [{key: \
                topology.kubernetes.io/zone}]}}\n---\n";
    let member = "schedulingGroup: {podGroupName: g},";
    let text = [
        &*nodes(),
        gang,
        &pod_with("g-0", &["data"], member),
        &pod_with("g-1", &[], member),
        &bound("data", "vol"),
        &volume("vol", "fast", "", &zonal("b")),
    ];
    let placed = placed(&world(&text.concat()));
    assert!(
        placed
            .split(' ')
            .all(|place| place.ends_with("n3") || place.ends_with("n4")),
        "{placed}"
    );
}

#[test]
fn claims_that_would_be_made_with_their_pods_count_as_made() {
    let set = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s}\nspec:\n  replicas: 2\n  \
               selector: {matchLabels: {app: s}}\n  volumeClaimTemplates: [{metadata: {name: data}, \
               spec: {storageClassName: CLASS, accessModes: [ReadWriteOnce], resources: {requests: \
               {storage: 10Gi}}}}]\n  template: {metadata: {labels: {app: s}}, spec: {containers: \
               [{name: c}]}}\n---\n";
    let plan = |dump: &str, class: &str| {
        world_with(dump, &set.replace("CLASS", class), &Options::default())
    };
    let dump = nodes() + &fast() + &other() + &claim("data-s-0", "", "storageClassName: other");
    let world = plan(&dump, "fast");
    assert!(
        problem(&world, "s-0").starts_with("ClaimUnbound: "),
        "the claim that is there counts"
    );
    assert_eq!(problem(&world, "s-1"), "");
    assert!(problem(&plan(&dump, "none"), "s-1").starts_with("StorageClassNotFound: "));
    let ephemeral = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {priority: 0, volumes: \
                     [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: fast, \
                     accessModes: [ReadWriteOnce]}}}}]}\n---\n";
    let world = world_with(&dump, ephemeral, &Options::default());
    assert_eq!(problem(&world, "p"), "");
    let in_dump = self::world(&(dump.clone() + ephemeral));
    assert!(problem(&in_dump, "p").starts_with(
        "ClaimNotFound: spec.volumes[scratch]: claim \
                                                default/p-scratch does not exist yet"
    ));
    let foreign = claim("p-scratch", "", "storageClassName: fast");
    let not_owned = self::world(&(dump + ephemeral + &foreign));
    assert!(problem(&not_owned, "p").starts_with("ClaimNotOwned: "));
}

#[test]
fn a_dump_without_volumes_is_planned_as_if_they_were_everywhere_with_one_warning() {
    let world = world(&(nodes() + &pod("p", &["data"]) + &pod("q", &["data"])));
    assert_eq!(problem(&world, "p"), "");
    assert_eq!(
        world.complaint_lines(),
        [
            "the input: no PersistentVolumeClaim, though pods use claims; accepted: those of the cluster; \
          without them pods are placed as if their volumes could be reached from every node"
        ]
    );
}
