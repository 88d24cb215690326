//! A hundred groups that fit in few ways or in one: whoever places members greedily leaves some waiting
//! for ever. (Seen with 20 of them: kube-scheduler 1.37.2 places 4, Volcano 12, KAI 10.)

use std::fmt::Write as _;

use gangline_controlplane::{ControlPlane, Node};

use crate::support::{Cluster, VOLCANO};

const GROUPS: u32 = 100;

/// Numbers without a pattern, the same in each run.
struct Numbers(u64);

impl Numbers {
    /// One below `limit`.
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }
}

/// Cores and GPUs of each member: 38 cores and 4 GPUs of each of two nodes, cut into two or three members.
fn members(numbers: &mut Numbers) -> Vec<(usize, usize)> {
    let mut members = Vec::new();
    for _ in 0..2 {
        let count = 2 + numbers.below(2);
        let mut cut = vec![(2, 0); count];
        let mut left = 38 - 2 * count;
        while left > 0 {
            let step = (1 + numbers.below(8)).min(left);
            cut[numbers.below(count)].0 += step;
            left -= step;
        }
        for _ in 0..4 {
            cut[numbers.below(count)].1 += 1;
        }
        members.extend(cut);
    }
    for last in (1..members.len()).rev() {
        members.swap(last, numbers.below(last + 1));
    }
    members
}

#[test]
fn every_group_that_can_be_placed_is_placed() {
    let mut cluster = Cluster::start(&ControlPlane::builder()).unwrap();
    cluster.control_plane.apply(VOLCANO).unwrap();
    let mut numbers = Numbers(20_261_130);
    let mut pods = 0;
    for group in 0..GROUPS {
        for side in ["a", "b"] {
            let node = Node::new(format!("n{group}{side}")).label("pair", format!("p{group}"));
            cluster.create(node.resource("cpu", "40").resource("nvidia.com/gpu", "4"));
        }
        let members = members(&mut numbers);
        let mut yaml = format!(
            "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {{name: g{group}}}\n\
             spec: {{minMember: {}}}\n",
            members.len()
        );
        for (number, (cores, gpus)) in members.iter().enumerate() {
            let _ = write!(
                yaml,
                "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: g{group}-{number}\n  annotations: \
                 {{scheduling.k8s.io/group-name: g{group}}}\nspec:\n  schedulerName: gangline\n  \
                 nodeSelector: {{pair: p{group}}}\n  containers:\n  - name: main\n    image: none\n    \
                 resources: {{limits: {{cpu: {cores}, nvidia.com/gpu: {gpus}}}}}\n"
            );
        }
        pods += members.len();
        cluster.apply(&yaml);
    }
    cluster.run(&[]);
    cluster.wait_until("all are placed", || cluster.placed("g") == (pods, pods));
}
