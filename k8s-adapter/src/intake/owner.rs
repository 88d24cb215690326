//! Gangs of the pods of one owner, where a word of ours says so: `gangline.io/min-member`.
//!
//! The annotation stands on a pod (from its template), or on the Job, `StatefulSet` or `ReplicaSet` that
//! controls it; a Deployment hands its own down. All pods of that owner are one gang, and so many of
//! them start together. Of a Job, KAI's `kai.scheduler/batch-min-member` says the same. Pods of a Job
//! that says nothing stay single: most Jobs are sets of independent tasks. A word on the owner is looked
//! for when a pod has no other group; see [`follow`].

use gangline::gang::{GangSpec, Group};

use super::{
    Dialect, Link, Member, Roster, Said, Surroundings, kueue,
    link::kind_and_name,
    roles, said_count,
    store::{self, Name},
};
use crate::{
    annotations::MIN_MEMBER,
    api::{ObjectMeta, Pod},
    world::owners::Owners,
};

const SOURCE: &str = "owner/";
const BATCH_MIN_MEMBER: &str = "kai.scheduler/batch-min-member";
const OF_POD: &str = "metadata.annotations[gangline.io/min-member]";
const OF_OWNER: &str = "metadata.ownerReferences";

/// Kind and name of what controls a pod.
pub(crate) type Controller = (Box<str>, Box<str>);

/// What controls a pod.
pub(super) fn controller(pod: &ObjectMeta) -> Option<Box<Controller>> {
    pod.controller().map(kind_and_name).map(Box::new)
}

/// Makes a pod that has no other group a member of its owner's, if the owner has a word for it, and of
/// none if it has not (any more). Returns whether that changes anything.
pub(crate) fn follow(member: &mut Member, owners: &Owners) -> bool {
    if member
        .link
        .as_ref()
        .is_some_and(|link| link.field != OF_OWNER)
    {
        return false;
    }
    let namespace = member.spec.namespace.as_str();
    let says = |(kind, name): &Controller| {
        let mut keys = keys(kind);
        keys.any(|key| owners.annotation(namespace, kind, name, key).is_some())
    };
    let owner = member.controller.as_deref().filter(|owner| says(owner));
    let key = owner.map(|(kind, name)| {
        let name = (namespace.to_owned(), name.to_string());
        store::key(&name, &format!("{SOURCE}{kind}"))
    });
    let link = key.map(|key| Link {
        key,
        field: OF_OWNER,
        task: "".into(),
        explicit: false,
        said: Some(Box::new(Said {
            owners: owner.cloned().into_iter().collect(),
            ..Said::default()
        })),
    });
    let changes = member.link != link;
    if changes {
        member.spec.gang = link.as_ref().map(|link| link.key.clone());
        member.link = link;
    }
    changes
}

/// The words that an owner of this kind may have.
fn keys(kind: &str) -> impl Iterator<Item = &'static str> {
    let of_job = (kind == "Job").then_some(BATCH_MIN_MEMBER);
    [MIN_MEMBER].into_iter().chain(of_job)
}

/// The dialect.
#[derive(Debug, Default)]
pub(super) struct OwnersPods;

impl Dialect for OwnersPods {
    fn link(&self, pod: &Pod) -> Option<Link> {
        let metadata = &pod.metadata;
        let owner = metadata.controller().map(kind_and_name);
        let kind = owner.as_ref().map_or("Pod", |(kind, _)| kind);
        let says = |key| metadata.annotations.contains_key(key);
        if !keys(kind).any(says) {
            return None;
        }
        // A pod of its own is the only member that its gang ever has: it waits and says so.
        let name = owner.as_ref().map_or(&metadata.name, |(_, name)| name);
        let mut said = Said::of(pod, keys(kind).chain(kueue::TOPOLOGY));
        let link = Link::inferred(pod, &format!("{SOURCE}{kind}"), name, OF_POD);
        said.owners.extend(owner);
        Some(Link {
            said: Some(Box::new(said)),
            ..link
        })
    }

    fn gangs(&self, roster: &mut Roster<'_>, around: &mut Surroundings<'_>) -> Vec<GangSpec> {
        let groups = roster.iter_mut();
        let groups = groups.filter(|(key, _)| key.source.starts_with(SOURCE));
        let gangs = groups.filter_map(|(key, members)| {
            let name = (key.namespace.clone(), key.name.clone());
            gang(&name, &key.source, members, around)
        });
        gangs.collect()
    }
}

fn gang(
    name: &Name,
    source: &str,
    members: &mut [&mut Member],
    around: &mut Surroundings<'_>,
) -> Option<GangSpec> {
    let kind = source.strip_prefix(SOURCE)?;
    let stored = store::unwritten(kind, name, members)?;
    let said = keys(kind).find_map(|key| {
        let of_pods = around.agreed(members, key, &stored);
        let of_owner = || (around.owner_annotation)(&name.0, kind, &name.1, key).map(Into::into);
        Some((key, of_pods.or_else(of_owner)?))
    });
    let (key, min) = said?;
    let topology = kueue::topology(members);
    let built = said_count(Some(&min), key).and_then(|min| {
        let topology = topology?;
        let leaf = Group {
            topology: topology.clone(),
            ..store::role(&name.1, min)
        };
        Ok((min, topology, kueue::sliced(leaf, min, members)?))
    });
    let (min, topology, root) = match built {
        Ok(built) => built,
        Err(problem) => {
            around.refuse(&stored, &problem);
            return Some(stored.invalid(name, source, problem));
        }
    };
    if min == 1 && topology.required.is_none() && topology.preferred.is_none() {
        roles::leave_alone(members);
        return None;
    }
    Some(GangSpec {
        priority: around.priority(None, "", members, &stored),
        ..stored.gang(name, source, root)
    })
}

#[cfg(test)]
mod tests {
    use crate::{
        intake::testing::{pod, world, world_with},
        world::Options,
    };

    fn member(name: &str, kind: &str, annotations: &str) -> String {
        pod(
            name,
            &format!(
                "ownerReferences: [{{apiVersion: v1, kind: {kind}, name: train, uid: o, \
                 controller: true}}], annotations: {{{annotations}}}"
            ),
        )
    }

    fn owner(kind: &str, annotations: &str) -> String {
        let api_version = if kind == "Job" { "batch/v1" } else { "apps/v1" };
        format!(
            "apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: train, namespace: ml, \
             annotations: {{{annotations}}}}}\n---\n"
        )
    }

    const FOUR: &str = "gangline.io/min-member: '4'";

    #[test]
    fn a_word_on_the_pods_makes_one_gang_of_each_owner() {
        let pods = [
            member("a", "Job", FOUR),
            member("b", "Job", FOUR),
            member("c", "StatefulSet", FOUR),
        ];
        let world = world(&pods.concat());
        assert_eq!(
            world.trees(),
            [
                "owner/Job/train: train>=4",
                "owner/StatefulSet/train: train>=4"
            ]
        );
        assert_eq!(world.links()[0], "a: owner/Job/train ");
        assert!(world.complaints.is_empty(), "{:?}", world.complaint_lines());
    }

    #[test]
    fn a_word_on_the_owner_counts_wherever_it_stands_in_the_dump() {
        let pods = [member("a", "Job", ""), member("b", "Job", "")].concat();
        for kai in ["gangline.io/min-member", "kai.scheduler/batch-min-member"] {
            let job = owner("Job", &format!("{kai}: '2'"));
            for dump in [[&*pods, &*job].concat(), [&*job, &*pods].concat()] {
                let world = world(&dump);
                assert_eq!(world.trees(), ["owner/Job/train: train>=2"], "{kai}");
                assert_eq!(world.links()[1], "b: owner/Job/train ", "{kai}");
            }
        }
        let silent = world(&[owner("Job", ""), pods].concat());
        assert_eq!(silent.links(), ["a: alone", "b: alone"]);
        let set = owner("StatefulSet", "kai.scheduler/batch-min-member: '2'");
        let set = world(&[set, member("a", "StatefulSet", "")].concat());
        assert_eq!(set.links(), ["a: alone"], "KAI reads it of Jobs only");
    }

    #[test]
    fn a_manifests_workload_may_have_it_on_itself() {
        let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train, namespace: ml, \
                   annotations: {gangline.io/min-member: '2'}}\nspec: {parallelism: 2, \
                   completions: 2, template: {spec: {priority: 0, containers: [{name: m}]}}}\n";
        let world = world_with("", job, &Options::default());
        assert_eq!(world.trees(), ["owner/Job/train: train>=2"]);
        assert_eq!(world.pods().count(), 2);
        assert!(world.complaints.is_empty(), "{:?}", world.complaint_lines());
    }

    #[test]
    fn one_is_no_gang_and_what_is_no_number_is_named() {
        let one = world(&member("a", "Job", "gangline.io/min-member: '1'"));
        assert_eq!(one.links(), ["a: alone"]);
        for senseless in ["'0'", "four", "'-1'", "''"] {
            let world = world(&member(
                "a",
                "Job",
                &format!("gangline.io/min-member: {senseless}"),
            ));
            let problem = world.gang("train").problem.clone().unwrap();
            let field = "metadata.annotations[gangline.io/min-member]";
            assert_eq!((&*problem.code, &*problem.field), ("InvalidMinimum", field));
            assert_eq!(world.complaint_lines().len(), 1, "{senseless}");
        }
    }

    #[test]
    fn a_group_that_is_named_or_follows_otherwise_goes_first() {
        let named = format!("{FOUR}, scheduling.k8s.io/group-name: g");
        assert_eq!(
            world(&[owner("Job", FOUR), member("a", "Job", &named)].concat()).links(),
            ["a: volcano/g "]
        );
        let set = "labels: {jobset.sigs.k8s.io/jobset-name: s}, annotations: {a: b}";
        let pod =
            member("a", "Job", FOUR).replace("annotations: {", &format!("{set}, annotations: {{"));
        let pod = pod.replace("annotations: {a: b}, ", "");
        assert_eq!(world(&pod).links(), ["a: jobset/s "]);
    }

    #[test]
    fn pods_that_disagree_follow_the_oldest_and_a_pod_of_its_own_waits() {
        let two = world(
            &[
                member("a", "Job", FOUR),
                member("b", "Job", "gangline.io/min-member: '5'"),
            ]
            .concat(),
        );
        assert_eq!(two.trees(), ["owner/Job/train: train>=4"]);
        assert_eq!(two.complaint_lines().len(), 1);
        let bare = world(&pod("a", &format!("annotations: {{{FOUR}}}")));
        assert_eq!(bare.trees(), ["owner/Pod/a: a>=4"]);
    }
}
