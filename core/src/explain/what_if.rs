//! A gang that does not exist yet: where would it go?

use alloc::{format, sync::Arc, vec::Vec};

use super::{Explainer, Reason};
use crate::{
    engine::{Event, Plan, Scheduler, cycle::Members},
    gang::{GangSpec, Group, GroupKind, PodPhase, PodSpec, Problem},
    place::Outcome,
    request::Template,
    units::Uid,
};

impl Scheduler {
    /// Where a gang would go now, without waiting its turn. Its roles must say their templates and
    /// counts; a count of 0 stands for the role's minimum. Changes nothing.
    #[allow(
        clippy::result_large_err,
        reason = "a what-if is rare and its reason is wanted whole"
    )]
    pub fn plan(&self, gang: &GangSpec) -> Result<Plan, Reason> {
        Explainer::new(self).plan(gang)
    }
}

impl Explainer {
    #[allow(clippy::result_large_err, reason = "as above")]
    fn plan(&mut self, gang: &GangSpec) -> Result<Plan, Reason> {
        let invalid = |problem: Problem| Reason::Invalid { problem };
        gang.check().map_err(invalid)?;
        let mut roles = Vec::new();
        list_roles(&gang.root, &mut roles);
        let mut spec = gang.clone();
        // A key of its own, so that members of a gang of that name are not taken along.
        spec.key.source.push_str("/what-if");
        let mut events = Vec::new();
        for (name, count, template) in roles {
            let Some(template) = template else {
                return Err(invalid(Problem {
                    code: "MissingTemplate".into(),
                    field: name.into(),
                    message: "a role must say what its members need to be planned".into(),
                }));
            };
            for ordinal in 0..count {
                let pod_name = format!("{name}-{ordinal}");
                events.push(Event::Pod(PodSpec {
                    uid: Uid::from_text(&format!("what-if/{}/{pod_name}", gang.key.name)),
                    namespace: template.namespace.clone(),
                    name: format!("what-if/{pod_name}"),
                    gang: Some(spec.key.clone()),
                    role: name.into(),
                    template: template.clone(),
                    node: None,
                    devices: None,
                    phase: PodPhase::Pending,
                    created: gang.created,
                    started: None,
                    priority: gang.priority,
                    gated: false,
                    terminating: false,
                    foreign: false,
                    nominated: None,
                    images: [].into(),
                    problem: None,
                }));
            }
        }
        let key = spec.key.clone();
        let refused = |rejection: crate::engine::Rejection| {
            invalid(Problem {
                code: "Invalid".into(),
                field: gang.key.name.clone(),
                message: format!("{rejection}"),
            })
        };
        self.engine.apply(Event::Gang(spec)).map_err(refused)?;
        for event in events {
            self.engine.apply(event).map_err(refused)?;
        }
        let Some(&id) = self.engine.gang_by_key.get(&key) else {
            return Err(Reason::NotTried);
        };
        self.engine.see_nominated(Some(id));
        let mut members = Members::default();
        self.engine.sort_members(id, &mut members);
        let Some(tree) = self.engine.gangs.get(id.0).map(|gang| gang.tree.clone()) else {
            return Err(Reason::NotTried);
        };
        let request = members.request(
            &tree,
            gang.scoring.unwrap_or(self.engine.config.scoring),
            false,
            self.engine.config.search_steps,
        );
        match self.engine.search.run(&mut self.engine.cluster, &request) {
            Outcome::Found => {}
            Outcome::Undecided => {
                return Err(Reason::Undecided {
                    steps: self.engine.config.search_steps,
                });
            }
            Outcome::Infeasible => {
                let reason = self.reason(id);
                return Err(reason.unwrap_or(Reason::NotTried));
            }
        }
        self.engine.search.sort_placed(&self.engine.cluster);
        let placed = self.engine.search.placed.clone();
        members.start_plan();
        let mut places = Vec::new();
        for place in placed {
            let member = members.next_of(place.batch);
            let Some(pod) = member.and_then(|(_, member)| self.engine.pods.get(member.0)) else {
                continue;
            };
            let name = pod.spec.name.trim_start_matches("what-if/");
            places.push((
                name.into(),
                self.engine.node_name(place.node).into(),
                place.devices,
            ));
        }
        Ok(Plan { places })
    }
}

/// Name, number of members and template of each role.
fn list_roles<'a>(group: &'a Group, into: &mut Vec<(&'a str, u32, Option<Arc<Template>>)>) {
    match &group.kind {
        GroupKind::Role(role) => {
            let count = if role.count > 0 { role.count } else { role.min };
            into.push((&group.name, count, role.template.clone()));
        }
        GroupKind::Group { children, .. } => {
            for child in children {
                list_roles(child, into);
            }
        }
    }
}
