//! Pods that do not exist yet: what a manifest's controller would make of it.
//!
//! Data enters as a decoded workload and the pods that are already there ([`ExistingPods`]); the pods
//! that its controller would add leave, with the names, labels and owner references that it would
//! give them. Where a controller makes up names, a number takes their place, so that the same file
//! gives the same pods every time. Defaults are the API server's. What a cluster's admission adds
//! (sidecars, runtime overhead, limits of the namespace) cannot be known here and is not added.

use gangline::{gang::Problem, units::Nanos};

use crate::{
    api,
    api::{LabelSelector, ObjectMeta, OwnerReference, Pod, PodTemplateSpec, Timestamp},
    member,
    problem::{FieldPath, Problems, problem},
    rules::label_selector,
};

mod existing;
mod job;

pub use existing::ExistingPods;
pub use job::job;

/// More pods than this from one object are taken for a slip of the pen.
pub const MAX_PODS: u32 = 100_000;

/// The pods that a stateful set's controller would add.
pub fn stateful_set(
    set: &api::StatefulSet,
    existing: &ExistingPods,
    created: Timestamp,
) -> Result<Vec<Pod>, Problem> {
    let maker = PodMaker::new("apps/v1", "StatefulSet", &set.metadata, created)?;
    check_selector(&set.spec.selector, &set.spec.template)?;
    let replicas = count("spec.replicas", set.spec.replicas)?;
    let ordinals = set.spec.ordinals.as_ref();
    let start = count(
        "spec.ordinals.start",
        ordinals.and_then(|ordinals| ordinals.start).or(Some(0)),
    )?;
    let names = (start..start + replicas).map(|ordinal| (ordinal, maker.numbered(ordinal)));
    let missing = names.filter(|(_, name)| !existing.contains(&maker.namespace, name));
    let pods = missing.enumerate().map(|(position, (ordinal, name))| {
        let mut pod = maker.pod(&set.spec.template, &name, position);
        let labels = &mut pod.metadata.labels;
        labels.insert("statefulset.kubernetes.io/pod-name", name.into());
        labels.insert("apps.kubernetes.io/pod-index", ordinal.to_string().into());
        let templates = &set.spec.volume_claim_templates;
        let is_own = |name: &str| templates.iter().any(|own| *own.metadata.name == *name);
        pod.spec.volumes.retain(|volume| !is_own(&volume.name));
        let claims = templates.iter();
        let claims = claims.map(|template| own_claim(template, &pod.metadata.name));
        pod.spec.volumes.extend(claims);
        pod
    });
    Ok(pods.collect())
}

/// A pod's claim of its own, with what it is made from, which no pod of the API has beside a name.
fn own_claim(template: &api::PersistentVolumeClaim, pod: &str) -> api::Volume {
    let name = &template.metadata.name;
    api::Volume {
        name: name.clone(),
        persistent_volume_claim: Some(api::ClaimSource {
            claim_name: format!("{name}-{pod}").into(),
        }),
        ephemeral: Some(api::EphemeralSource {
            volume_claim_template: Some(template.clone()),
        }),
    }
}

/// The pods that a replica set's controller would add.
pub fn replica_set(
    set: &api::ReplicaSet,
    existing: &ExistingPods,
    created: Timestamp,
) -> Result<Vec<Pod>, Problem> {
    let maker = PodMaker::new("apps/v1", "ReplicaSet", &set.metadata, created)?;
    check_selector(&set.spec.selector, &set.spec.template)?;
    let replicas = count("spec.replicas", set.spec.replicas)?;
    let there = existing.controlled("ReplicaSet", &maker.namespace, &set.metadata.name);
    let missing = replicas.saturating_sub(existing::active(there));
    let names = maker.free_names(existing).take(missing as usize);
    let pods = names.enumerate();
    Ok(pods
        .map(|(position, name)| maker.pod(&set.spec.template, &name, position))
        .collect())
}

/// The pods that a deployment's replica set would add. A change of the template of a running
/// deployment is not rolled out: the pods that are there count, whatever they look like.
pub fn deployment(
    deployment: &api::Deployment,
    existing: &ExistingPods,
    created: Timestamp,
) -> Result<Vec<Pod>, Problem> {
    let mut maker = PodMaker::new("apps/v1", "ReplicaSet", &deployment.metadata, created)?;
    check_selector(&deployment.spec.selector, &deployment.spec.template)?;
    let replicas = count("spec.replicas", deployment.spec.replicas)?;
    let name = &deployment.metadata.name;
    let there = existing.of_deployment(&maker.namespace, name);
    let missing = replicas.saturating_sub(existing::active(there));
    // The replica set is named after a hash of the template; any word that stays the same will do.
    let uid = member::uid(
        &deployment.metadata.uid,
        "Deployment",
        &maker.namespace,
        name,
    );
    let hash = format!("{:010x}", uid.0 & 0xff_ffff_ffff);
    let replica_set = format!("{name}-{hash}");
    maker.owner.uid = member::uid("", "ReplicaSet", &maker.namespace, &replica_set)
        .to_string()
        .into();
    maker.owner.name = replica_set.into();
    let names = maker.free_names(existing).take(missing as usize);
    let pods = names.enumerate().map(|(position, name)| {
        let mut pod = maker.pod(&deployment.spec.template, &name, position);
        pod.metadata
            .labels
            .insert(existing::TEMPLATE_HASH, hash.as_str().into());
        pod
    });
    Ok(pods.collect())
}

/// A bare pod as the API server would store it; `None` when there is one of its name already.
pub fn pod(pod: &Pod, existing: &ExistingPods, created: Timestamp) -> Result<Option<Pod>, Problem> {
    let mut pod = pod.clone();
    let meta = &mut pod.metadata;
    meta.namespace = meta.namespace_or_default().into();
    if meta.name.is_empty() && !meta.generate_name.is_empty() {
        let mut names = (0_u32..).map(|number| format!("{}{number}", meta.generate_name));
        let free = names.find(|name| !existing.contains(&meta.namespace, name));
        meta.name = free.unwrap_or_default().into();
    }
    check_name(meta)?;
    if existing.contains(&meta.namespace, &meta.name) {
        return Ok(None);
    }
    meta.creation_timestamp.get_or_insert(created);
    Ok(Some(pod))
}

/// What all pods of one workload share.
struct PodMaker<'a> {
    meta: &'a ObjectMeta,
    namespace: Box<str>,
    owner: OwnerReference,
    created: Timestamp,
}

impl<'a> PodMaker<'a> {
    fn new(
        api_version: &str,
        kind: &str,
        meta: &'a ObjectMeta,
        created: Timestamp,
    ) -> Result<Self, Problem> {
        check_name(meta)?;
        let namespace: Box<str> = meta.namespace_or_default().into();
        let uid = member::uid(&meta.uid, kind, &namespace, &meta.name);
        let owner = OwnerReference {
            api_version: api_version.into(),
            kind: kind.into(),
            name: meta.name.clone(),
            uid: uid.to_string().into(),
            controller: Some(true),
        };
        Ok(PodMaker {
            meta,
            namespace,
            owner,
            created: meta.creation_timestamp.unwrap_or(created),
        })
    }

    fn numbered(&self, number: u32) -> String {
        format!("{}-{number}", self.meta.name)
    }

    /// Numbered names that no pod has.
    fn free_names<'b>(&'b self, existing: &'b ExistingPods) -> impl Iterator<Item = String> + 'b {
        let names = (0_u32..).map(|number| self.numbered(number));
        names.filter(|name| !existing.contains(&self.namespace, name))
    }

    /// A pod of the workload. Pods are made one nanosecond after the other, to keep their order.
    fn pod(&self, template: &PodTemplateSpec, name: &str, position: usize) -> Pod {
        let after = Nanos(position as u64);
        Pod {
            metadata: ObjectMeta {
                name: name.into(),
                namespace: self.namespace.clone(),
                labels: template.metadata.labels.clone(),
                annotations: template.metadata.annotations.clone(),
                creation_timestamp: Some(Timestamp(self.created.0.saturating_add(after))),
                owner_references: vec![self.owner.clone()],
                ..ObjectMeta::default()
            },
            spec: template.spec.clone(),
            ..Pod::default()
        }
    }
}

fn check_name(meta: &ObjectMeta) -> Result<(), Problem> {
    if meta.name.is_empty() {
        return Err(problem(
            "NameMissing",
            "metadata.name",
            "empty; accepted: a name",
        ));
    }
    Ok(())
}

/// A number of pods; absent means one.
fn count(field: &str, given: Option<i64>) -> Result<u32, Problem> {
    let given = given.unwrap_or(1);
    let count = u32::try_from(given).ok().filter(|count| *count <= MAX_PODS);
    count.ok_or_else(|| {
        let message = format_args!("{given}; accepted: 0 to {MAX_PODS}");
        problem("InvalidCount", field, message)
    })
}

/// The API server refuses a workload whose pods would not be its own.
fn check_selector(selector: &LabelSelector, template: &PodTemplateSpec) -> Result<(), Problem> {
    let spec = FieldPath::root("spec");
    let path = spec.name("selector");
    let mut problems = Problems::default();
    let selector = label_selector(selector, &path, &mut problems);
    if let Some(first) = problems.first() {
        return Err(first.clone());
    }
    let labels = &template.metadata.labels;
    let accepts = |requirement: &gangline::request::Requirement| {
        requirement.accepts(labels.get(&requirement.key).map(|value| &**value))
    };
    match selector
        .requirements
        .iter()
        .find(|requirement| !accepts(requirement))
    {
        Some(requirement) => Err(problem(
            "SelectorMismatch",
            path,
            format_args!(
                "the template's labels do not match it at {:?}; accepted: labels that match",
                requirement.key
            ),
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
