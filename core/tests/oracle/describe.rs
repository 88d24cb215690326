//! A world in a few lines, as people would tell it; what is as usual is left out.

use std::fmt::{self, Display, Formatter};

use gangline::{
    gang::{Group, GroupKind, Minimum, PodPhase},
    request::{LabelSelector, NodeTest, PodTerm, Requirement, Template},
};

use super::world::World;

impl Display for World {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        for (name, labels) in &self.namespaces {
            writeln!(out, "namespace {name}: {labels:?}")?;
        }
        for node in &self.nodes {
            write!(
                out,
                "node {}: {:?} {:?}",
                node.name, node.labels, node.resources
            )?;
            for cards in &node.cards {
                write!(
                    out,
                    " {} {} unhealthy {}",
                    cards.count, cards.kind, cards.unhealthy
                )?;
            }
            for taint in &node.taints {
                write!(
                    out,
                    " taint {}={}:{:?}",
                    taint.key, taint.value, taint.effect
                )?;
            }
            writeln!(out, "{}", if node.unschedulable { " cordoned" } else { "" })?;
        }
        for gang in &self.gangs {
            writeln!(out, "gang {}: {:?}", gang.key.name, gang.scoring)?;
            group(out, &gang.root, 1)?;
        }
        for pod in &self.pods {
            let gang = pod.gang.as_ref().map_or("alone", |gang| &gang.name);
            write!(out, "pod {} ({gang}/{})", pod.name, pod.role)?;
            if let Some(node) = &pod.node {
                write!(out, " on {node}")?;
            }
            if pod.phase == PodPhase::Succeeded {
                write!(out, " succeeded")?;
            }
            template(out, &pod.template)?;
            writeln!(out)?;
        }
        Ok(())
    }
}

fn group(out: &mut Formatter<'_>, group: &Group, depth: usize) -> fmt::Result {
    write!(out, "{:1$}{name}:", "", depth * 2, name = group.name)?;
    match &group.kind {
        GroupKind::Role(role) => write!(out, " count {} min {}", role.count, role.min)?,
        GroupKind::Group { min, .. } => match min {
            Minimum::Members(least) => write!(out, " at least {least} members")?,
            Minimum::Children(least) => write!(out, " at least {least} children")?,
        },
    }
    for (word, level) in [
        ("required", &group.topology.required),
        ("preferred", &group.topology.preferred),
    ] {
        if let Some(level) = level {
            write!(out, " {word} {level}")?;
        }
    }
    writeln!(out)?;
    if let GroupKind::Group { children, .. } = &group.kind {
        for child in children {
            self::group(out, child, depth + 1)?;
        }
    }
    Ok(())
}

fn template(out: &mut Formatter<'_>, template: &Template) -> fmt::Result {
    if template.namespace != "default" {
        write!(out, " in {}", template.namespace)?;
    }
    if !template.labels.is_empty() {
        write!(out, " {:?}", template.labels)?;
    }
    if !template.resources.is_empty() {
        write!(out, " asks {:?}", template.resources)?;
    }
    if let Some(cards) = &template.cards {
        write!(out, " asks {} {}", cards.whole_cards(), cards.kind)?;
    }
    let rules = &template.nodes;
    if !rules.selector.is_empty() {
        write!(out, " selects {:?}", rules.selector)?;
    }
    for term in rules.required.iter().flatten() {
        let tests = term.tests.iter().map(|test| match test {
            NodeTest::Label(test) => requirement(test),
            NodeTest::Name(test) => format!("name: {}", requirement(test)),
        });
        write!(
            out,
            " selects ({})",
            tests.collect::<Vec<_>>().join(" and ")
        )?;
    }
    if rules.required.as_ref().is_some_and(Vec::is_empty) {
        write!(out, " selects nothing")?;
    }
    if !rules.preferred.is_empty() {
        write!(out, " likes some nodes")?;
    }
    for toleration in &rules.tolerations {
        let effect = toleration
            .effect
            .map_or_else(String::new, |effect| format!(":{effect:?}"));
        let value = &toleration.value;
        write!(
            out,
            " tolerates {}={value}{effect} {:?}",
            toleration.key, toleration.operator
        )?;
    }
    for port in &template.host_ports {
        write!(
            out,
            " port {}:{}/{:?}",
            port.address, port.port, port.protocol
        )?;
    }
    for term in &template.relations.affinity {
        write!(out, " near {}", near(term))?;
    }
    for term in &template.relations.anti_affinity {
        write!(out, " apart from {}", near(term))?;
    }
    if !template.relations.preferred.is_empty() {
        write!(out, " likes some pods")?;
    }
    for rule in &template.relations.spread {
        write!(
            out,
            " spreads ({}) over {} by {}, min domains {}, required {}, honors affinity {} taints {}",
            selector(&rule.selector),
            rule.topology_key,
            rule.max_skew,
            rule.min_domains,
            rule.required,
            rule.honor_node_affinity,
            rule.honor_taints
        )?;
    }
    Ok(())
}

fn near(term: &PodTerm) -> String {
    let scope = &term.namespaces;
    let namespaces = scope.selector.as_ref().map_or_else(String::new, selector);
    let looks = if scope.names.is_empty() && scope.selector.is_none() {
        String::new()
    } else {
        format!(" of {:?} or ({namespaces})", scope.names)
    };
    format!(
        "({}){looks} by {}",
        selector(&term.selector),
        term.topology_key
    )
}

fn selector(selector: &LabelSelector) -> String {
    let tests: Vec<String> = selector.requirements.iter().map(requirement).collect();
    if tests.is_empty() {
        "all".into()
    } else {
        tests.join(" and ")
    }
}

fn requirement(test: &Requirement) -> String {
    format!("{} {:?} {:?}", test.key, test.operator, test.values)
}
