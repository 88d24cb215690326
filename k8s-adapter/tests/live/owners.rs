//! Pods that Kubernetes' own controllers make, and volumes that they give.

use std::fmt::Write as _;

use crate::support::{Cluster, group};

/// A Job whose pods name a group.
const JOB: &str = "
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: train}
spec: {minMember: 3}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 3
  completions: 3
  completionMode: Indexed
  template:
    metadata: {annotations: {scheduling.k8s.io/group-name: train}}
    spec:
      schedulerName: gangline
      restartPolicy: Never
      containers:
      - name: main
        image: none
        resources: {limits: {nvidia.com/gpu: 1}}
";

#[test]
fn a_job_starts_whole_and_ends() {
    let mut cluster = Cluster::share("job");
    cluster.create_node("n1", 2);
    cluster.run(&[]);
    cluster.apply(JOB);
    cluster.wait_until("its pods wait", || {
        let pods = cluster.places("train-");
        pods.len() == 3 && pods.keys().all(|pod| cluster.why(pod).0 == "Unschedulable")
    });
    assert_eq!(cluster.placed("train-"), (3, 0));
    cluster.create_node("n2", 1);
    let path = cluster.path("/apis/batch/v1", "jobs/train");
    cluster.wait_until("it has ended well", || {
        cluster.read(&path)["status"]["succeeded"] == 3
    });
    // What it had is free again.
    cluster.apply(&group("next", 3, 3, 1));
    cluster.wait_until("the next gang is whole", || {
        cluster.placed("next-") == (3, 3)
    });
}

/// Cases C150 and C151: disks of nodes, which the controller binds to claims, for a gang whose members each
/// need one; beside it a pod whose volume never comes.
#[test]
fn members_get_a_disk_each_and_nobody_waits_for_a_volume_of_others() {
    let mut cluster = Cluster::share("disks");
    for name in ["n1", "n2"] {
        cluster.create_node(name, 4);
    }
    let mut yaml = String::from(
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: disks}\n\
         provisioner: kubernetes.io/no-provisioner\nvolumeBindingMode: WaitForFirstConsumer\n---\n\
         apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: disks-slow}\n\
         provisioner: example.com/never\nvolumeBindingMode: WaitForFirstConsumer\n---\n",
    );
    for (name, node, size) in [("v1", "n1", 100), ("v2", "n1", 50), ("v3", "n2", 100)] {
        let node = cluster.node_name(node);
        let _ = write!(
            yaml,
            "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: disks-{name}}}\nspec:\n  \
             storageClassName: disks\n  accessModes: [ReadWriteOnce]\n  capacity: {{storage: {size}Gi}}\n  \
             local: {{path: /disk}}\n  nodeAffinity:\n    required:\n      nodeSelectorTerms:\n      - \
             matchExpressions: [{{key: kubernetes.io/hostname, operator: In, values: [{node}]}}]\n---\n"
        );
    }
    for (name, class) in [("g-0", "disks"), ("g-1", "disks"), ("slow-0", "disks-slow")] {
        let _ = write!(
            yaml,
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}}}\nspec:\n  \
             storageClassName: {class}\n  accessModes: [ReadWriteOnce]\n  resources: {{requests: \
             {{storage: 100Gi}}}}\n---\n"
        );
    }
    cluster.apply(&yaml);
    cluster.run(&[]);
    let with_claims = |name: &str, pods: u32| {
        (0..pods).fold(group(name, pods, pods, 1), |yaml, pod| {
            let metadata = format!("name: {name}-{pod}\n");
            let (before, after) = yaml.split_once(&metadata).unwrap();
            let spec = "spec:\n  schedulerName";
            let volumes = format!(
                "spec:\n  volumes: [{{name: data, persistentVolumeClaim: {{claimName: \
                 {name}-{pod}}}}}]\n  schedulerName"
            );
            format!("{before}{metadata}{}", after.replacen(spec, &volumes, 1))
        })
    };
    cluster.apply(&with_claims("slow", 1));
    cluster.apply(&with_claims("g", 2));
    cluster.apply(&group("plain", 2, 2, 1));
    cluster.wait_until("who needs no volume is placed", || {
        cluster.placed("plain-") == (2, 2)
    });
    cluster.wait_until("each member has its disk", || {
        cluster.placed("g-") == (2, 2)
    });
    let volume = |claim: &str| {
        let claim =
            cluster.read(&cluster.path("/api/v1", &format!("persistentvolumeclaims/{claim}")));
        assert_eq!(claim["status"]["phase"], "Bound", "{claim}");
        claim["spec"]["volumeName"].as_str().unwrap().to_owned()
    };
    let mut volumes = [volume("g-0"), volume("g-1")];
    volumes.sort();
    assert_eq!(volumes, ["disks-v1", "disks-v3"]);
    assert_eq!(cluster.placed("slow-"), (1, 0));
}
