//! Small clusters as YAML in, gangs as one line each out.

use gangline::{
    Config, Event, Scheduler,
    cluster::NodeSpec,
    gang::{GangSpec, Group, GroupKind, Minimum, PodSpec},
};

use crate::world::{Builder, Options, World};

/// A pod of priority 5 that waits in the namespace `ml`, with this in its metadata.
pub(crate) fn pod(name: &str, metadata: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: ml, {metadata}}}\n\
         spec: {{priority: 5}}\n---\n"
    )
}

/// The world of a dump.
pub(crate) fn world(yaml: &str) -> World {
    world_with(yaml, "", &Options::default())
}

/// The world of a dump and of a manifest on top.
pub(crate) fn world_with(dump: &str, manifest: &str, options: &Options) -> World {
    let mut progress = |_, _| {};
    let mut builder = Builder::new(options, &mut progress);
    builder.read(|builder| crate::load::load_bytes("dump", dump.as_bytes(), builder));
    builder.apply(|builder| crate::load::load_bytes("manifest", manifest.as_bytes(), builder));
    builder.finish()
}

impl World {
    /// An engine that was told all of it.
    pub(crate) fn engine(&self) -> Scheduler {
        let mut scheduler = Scheduler::new(Config {
            levels: self.levels.clone(),
            ..Config::default()
        });
        for event in &self.events {
            let told = scheduler.apply(event.clone());
            told.expect("an event that the engine takes");
        }
        scheduler
    }

    pub(crate) fn gangs(&self) -> impl Iterator<Item = &GangSpec> {
        self.events.iter().filter_map(|event| match event {
            Event::Gang(gang) => Some(gang),
            _ => None,
        })
    }

    pub(crate) fn pods(&self) -> impl Iterator<Item = &PodSpec> {
        self.events.iter().filter_map(|event| match event {
            Event::Pod(pod) => Some(pod),
            _ => None,
        })
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &NodeSpec> {
        self.events.iter().filter_map(|event| match event {
            Event::Node(node) => Some(node),
            _ => None,
        })
    }

    pub(crate) fn gang(&self, name: &str) -> &GangSpec {
        self.gangs()
            .find(|gang| gang.key.name == name)
            .expect("the gang")
    }

    pub(crate) fn pod(&self, name: &str) -> &PodSpec {
        self.pods().find(|pod| pod.name == name).expect("the pod")
    }

    pub(crate) fn complaint_lines(&self) -> Vec<String> {
        self.complaints.iter().map(ToString::to_string).collect()
    }

    /// Each gang as `source/name: tree`.
    pub(crate) fn trees(&self) -> Vec<String> {
        let shown = |gang: &GangSpec| {
            let problem = gang
                .problem
                .as_ref()
                .map(|problem| format!(" !{}", problem.code));
            let GangSpec { key, root, .. } = gang;
            format!(
                "{}/{}: {}{}",
                key.source,
                key.name,
                tree(root),
                problem.unwrap_or_default()
            )
        };
        self.gangs().map(shown).collect()
    }

    /// Each pod as `name: source/group role`.
    pub(crate) fn links(&self) -> Vec<String> {
        let shown = |pod: &PodSpec| match &pod.gang {
            Some(key) => format!("{}: {}/{} {}", pod.name, key.source, key.name, pod.role),
            None => format!("{}: alone", pod.name),
        };
        self.pods().map(shown).collect()
    }
}

/// `name>=min` for a leaf; `name[2 of a>=1, b>=1]` or `name[>=4: ...]` for an inner node; then
/// `@required` and `~preferred` levels.
pub(crate) fn tree(group: &Group) -> String {
    let mut shown = match &group.kind {
        GroupKind::Role(role) => format!("{}>={}", group.name, role.min),
        GroupKind::Group { min, children } => {
            let children: Vec<_> = children.iter().map(tree).collect();
            let min = match min {
                Minimum::Children(min) => format!("{min} of "),
                Minimum::Members(min) => format!(">={min}: "),
            };
            format!("{}[{min}{}]", group.name, children.join(", "))
        }
    };
    let rule = &group.topology;
    let required = rule.required.iter().map(|level| format!("@{level}"));
    shown.extend(required.chain(rule.preferred.iter().map(|level| format!("~{level}"))));
    shown
}
