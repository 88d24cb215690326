//! The tree of a Volcano `PodGroup`, from what it says and from the pods that it has.
//!
//! Without tasks and sub-groups it is one leaf. With `minTaskMember` each task is a leaf and all must
//! have their minimum; as in Volcano they only count when `minMember` covers their sum. With
//! `subGroupPolicy` each distinct set of label values is a leaf with its own topology rule, below one
//! node for each policy. Pods of no task or policy form a leaf without a minimum.

use std::collections::BTreeSet;

use gangline::{
    gang::{Group, GroupKind, Minimum, Problem, TopologyRule},
    request::{LabelSelector, Requirement},
};

use super::{
    super::{
        Member, Surroundings, count, label_selector,
        roles::{self, Minima},
        store::{self, Stored},
    },
    PodGroupSpec, SubGroupPolicy,
    hypernode::Tiers,
};
use crate::{api::Labels, problem::FieldPath};

const SPEC: FieldPath<'static> = FieldPath::root("spec");
/// The leaf of pods that no policy selects.
const NO_POLICY: &str = "(no sub-group)";

/// Builds the tree and gives each member its role.
pub(super) fn build(
    name: &str,
    spec: &PodGroupSpec,
    stored: &Stored<PodGroupSpec>,
    members: &mut [&mut Member],
    tiers: &Tiers,
    around: &mut Surroundings<'_>,
) -> Result<Group, Problem> {
    around.check_amounts(&spec.min_resources, "spec.minResources", stored);
    let min = count(spec.min_member, 0, 0, "spec.minMember")?;
    let topology = tiers.rule(spec.network_topology.as_ref(), "spec.networkTopology")?;
    let tasks = task_minima(spec)?;
    let mut least = roles::sum(&tasks);
    let mut unused = |accepted: &str| {
        around.warn(stored, "spec.minTaskMember", "not used", accepted);
    };
    let children = if !spec.sub_group_policy.is_empty() {
        if !tasks.is_empty() {
            unused("either minTaskMember or subGroupPolicy; the latter counts");
        }
        let (children, required) = sub_groups(&spec.sub_group_policy, members, tiers)?;
        least = required;
        children
    } else if tasks.is_empty() {
        return Ok(with_topology(store::role(name, min), topology));
    } else if least > u64::from(min) {
        unused("a sum of at most minMember; as in Volcano only minMember counts");
        return Ok(with_topology(store::role(name, min), topology));
    } else {
        roles::leaves(&tasks, members)
    };
    let root = roles::all_of(format!("podgroup/{name}"), children, least.max(min.into()));
    Ok(with_topology(root, topology))
}

fn with_topology(group: Group, topology: TopologyRule) -> Group {
    Group { topology, ..group }
}

fn task_minima(spec: &PodGroupSpec) -> Result<Minima, Problem> {
    let tasks = spec.min_task_member.iter().map(|(task, &min)| {
        let min = count(Some(min), 0, 0, &format!("spec.minTaskMember.{task}"))?;
        Ok((task.to_owned(), min))
    });
    tasks.collect()
}

/// One node for each policy, and how many members they need together.
fn sub_groups(
    policies: &[SubGroupPolicy],
    members: &mut [&mut Member],
    tiers: &Tiers,
) -> Result<(Vec<Group>, u64), Problem> {
    let mut children = Vec::new();
    let mut least = 0_u64;
    let mut names = BTreeSet::new();
    for member in members.iter_mut() {
        NO_POLICY.clone_into(&mut member.spec.role);
    }
    for (index, policy) in policies.iter().enumerate() {
        let field = format!("spec.subGroupPolicy[{index}]");
        let size = count(
            policy.sub_group_size,
            1,
            1,
            &format!("{field}.subGroupSize"),
        )?;
        let wanted = count(
            policy.min_sub_groups,
            0,
            0,
            &format!("{field}.minSubGroups"),
        )?;
        let rule = policy.network_topology.as_ref();
        let topology = tiers.rule(rule, &format!("{field}.networkTopology"))?;
        let name = match &*policy.name {
            name if !name.is_empty() && names.insert(name) => name.to_owned(),
            name => format!("{name}#{}", index + 1),
        };
        let mut roles: Vec<Group> = assign(&name, policy, index, members)?
            .iter()
            .map(|role| with_topology(store::role(role, size), topology.clone()))
            .collect();
        least = least.saturating_add(u64::from(wanted) * u64::from(size));
        let missing = wanted.saturating_sub(roles.len() as u32);
        let min = if missing > 0 {
            // Sub-groups whose pods are not there yet: one leaf stands for all of them.
            let pods = size.saturating_mul(missing);
            roles.push(store::role(&format!("{name}/(missing)"), pods));
            roles.len() as u32
        } else {
            wanted
        };
        if !roles.is_empty() {
            children.push(Group {
                name: format!("policy/{name}"),
                topology: TopologyRule::default(),
                kind: GroupKind::Group {
                    min: Minimum::Children(min),
                    children: roles,
                },
            });
        }
    }
    if children.is_empty() || members.iter().any(|member| member.spec.role == NO_POLICY) {
        children.push(store::role(NO_POLICY, 0));
    }
    Ok((children, least))
}

/// Puts members that no earlier policy took into this policy's sub-groups, one for each distinct set
/// of label values; returns the names of these.
fn assign(
    name: &str,
    policy: &SubGroupPolicy,
    index: usize,
    members: &mut [&mut Member],
) -> Result<BTreeSet<String>, Problem> {
    let selector = match &policy.label_selector {
        Some(selector) => Some({
            let policies = SPEC.name("subGroupPolicy");
            let policy = policies.index(index);
            label_selector(selector, &policy.name("labelSelector"))?
        }),
        None => None,
    };
    let mut roles = BTreeSet::new();
    for member in members
        .iter_mut()
        .filter(|member| member.spec.role == NO_POLICY)
    {
        let labels = &member.labels;
        if selector
            .as_ref()
            .is_some_and(|selector| !matches(selector, labels))
        {
            continue;
        }
        // As there: a member that lacks one of the labels, or has it empty, is not selected.
        let value = |key: &str| Some(&**labels.get(key)?).filter(|value| !value.is_empty());
        let values: Option<Vec<&str>> = policy
            .match_label_keys
            .iter()
            .map(|key| value(key))
            .collect();
        let Some(values) = values else {
            continue;
        };
        let role = format!("{name}/{}", values.join("-"));
        member.spec.role.clone_from(&role);
        roles.insert(role);
    }
    Ok(roles)
}

fn matches(selector: &LabelSelector, labels: &Labels) -> bool {
    let accepts = |requirement: &Requirement| {
        requirement.accepts(labels.get(&requirement.key).map(|value| &**value))
    };
    selector.requirements.iter().all(accepts)
}
