//! The column beside the nodes: who has which look, what else is drawn, and who waits for what.
//!
//! Data enters as looks and gangs and leaves as SVG with its height.

use std::{collections::BTreeMap, fmt::Write as _};

use gangline::{GangId, cluster::spec::CardMode, engine::NodeView};

use super::{
    Escaped, Keep, cards,
    look::{self, Look},
    node::Scale,
    shortened,
};
use crate::{
    node::is_away,
    output::{GangReport, text::admitted_if},
};

/// Width of the column in pixels.
pub(super) const WIDTH: f32 = 380.0;

/// More gangs than this are counted instead of listed, placed and waiting each.
const ROWS: usize = 24;
/// More pods without a group than this are counted instead of listed.
const PODS: usize = 24;
/// Height of a line of text.
const LINE: f32 = 16.0;
/// Edge of the squares of the legend.
const SWATCH: f32 = 14.0;
/// Letters in a line of small text.
const LETTERS: usize = 58;

/// The column as SVG, and how high it is.
pub(super) struct Side {
    pub(super) svg: String,
    pub(super) height: f32,
}

/// Draws the column.
pub(super) fn draw(
    looks: &BTreeMap<GangId, Look>,
    gangs: &[GangReport],
    nodes: &[NodeView<'_>],
) -> Side {
    let mut side = Side {
        svg: String::new(),
        height: 0.0,
    };
    side.push_placed(looks, gangs);
    side.push_pods(looks, gangs);
    side.push_signs(gangs, nodes);
    side.push_waiting(gangs);
    side
}

impl Side {
    fn heading(&mut self, text: &str) {
        if self.height > 0.0 {
            self.height += 14.0;
        }
        let y = self.height + 12.0;
        let _ = writeln!(self.svg, "<text class=\"head\" y=\"{y:.0}\">{text}</text>");
        self.height += LINE + 6.0;
    }

    /// A line of text with a square before it.
    fn row(&mut self, swatch: &str, letter: Option<&Look>, text: &str, note: &str) {
        let y = self.height;
        let _ = write!(
            self.svg,
            "<g transform=\"translate(0 {y:.0})\"><rect x=\"0.5\" y=\"0.5\" width=\"{SWATCH}\" \
             height=\"{SWATCH}\" {swatch}/>"
        );
        if let Some(look) = letter {
            let _ = write!(
                self.svg,
                "<text class=\"letter\" x=\"7.5\" y=\"11\" font-size=\"9\" style=\"fill:{};stroke:{}\">{}\
                 </text>",
                look.ink, look.base, look.letter
            );
        }
        let room = WIDTH - 22.0 - note.chars().count() as f32 * 6.5;
        let _ = writeln!(
            self.svg,
            "<text class=\"line\" x=\"22\" y=\"12\">{} <tspan class=\"small\">{}</tspan></text></g>",
            Escaped(&shortened(text, room, 12.0, Keep::Start)),
            Escaped(note)
        );
        self.height += LINE + 4.0;
    }

    fn small(&mut self, indent: f32, text: &str) {
        let y = self.height + 11.0;
        let _ = writeln!(
            self.svg,
            "<text class=\"small\" x=\"{indent}\" y=\"{y:.0}\">{}</text>",
            Escaped(text)
        );
        self.height += LINE - 1.0;
    }

    fn push_placed(&mut self, looks: &BTreeMap<GangId, Look>, gangs: &[GangReport]) {
        let placed = gangs.iter().filter(|gang| !gang.single && gang.placed > 0);
        let placed: Vec<_> = placed
            .filter_map(|gang| Some((gang, looks.get(&gang.id)?)))
            .collect();
        if placed.is_empty() {
            return;
        }
        self.heading("Gangs");
        for (gang, look) in placed.iter().take(ROWS) {
            let note = format!(
                "{}/{} {}",
                gang.placed,
                gang.wanted.max(gang.min),
                gang.word()
            );
            let new = if gang.word() == "placed" {
                " class=\"new\""
            } else {
                ""
            };
            let fill = format!("fill=\"{}\"{new}", look.fill);
            self.row(&fill, Some(look), &gang.full_name(), &note);
        }
        if placed.len() > ROWS {
            self.small(22.0, &format!("and {} more", placed.len() - ROWS));
        }
    }

    /// Pods without a group that have cards.
    fn push_pods(&mut self, looks: &BTreeMap<GangId, Look>, gangs: &[GangReport]) {
        let pods = gangs.iter().filter(|gang| gang.single && gang.placed > 0);
        let pods = pods.filter_map(|pod| Some((pod, looks.get(&pod.id)?)));
        let pods: Vec<_> = pods.filter(|(_, look)| !look.letter.is_empty()).collect();
        if pods.is_empty() {
            return;
        }
        self.heading("Pods without a group");
        for (pod, look) in pods.iter().take(PODS) {
            let new = if pod.word() == "placed" {
                " class=\"new\""
            } else {
                ""
            };
            let fill = format!("fill=\"{}\"{new}", look.fill);
            self.row(&fill, Some(look), &pod.full_name(), pod.word());
        }
        if pods.len() > PODS {
            self.small(22.0, &format!("and {} more", pods.len() - PODS));
        }
    }

    /// Explains only the signs that the picture has.
    fn push_signs(&mut self, gangs: &[GangReport], nodes: &[NodeView<'_>]) {
        self.heading("Signs");
        if gangs.iter().any(|gang| gang.word() == "placed") {
            let text = "bold edge: placed by this plan, not yet running";
            self.row("class=\"free new\"", None, text, "");
        }
        let cards = nodes.iter().flat_map(|node| &node.cards);
        self.row("class=\"free\"", None, "free card", "");
        let sets = cards.map(|cards| (cards.unhealthy, cards.in_doubt));
        let (unhealthy, in_doubt) = sets.fold((false, false), |(bad, doubt), (one, other)| {
            (bad || !one.is_empty(), doubt || !other.is_empty())
        });
        if unhealthy || in_doubt {
            let label = if in_doubt {
                "unhealthy, or in doubt"
            } else {
                "unhealthy card"
            };
            self.row("class=\"bad\"", None, label, "");
            let y = self.height - LINE - 4.0;
            let _ = writeln!(
                self.svg,
                "<path class=\"cross\" stroke-width=\"1.6\" \
                 d=\"M0.5 {:.1}l{SWATCH} {SWATCH}m0-{SWATCH}l-{SWATCH} {SWATCH}\"/>",
                y + 0.5
            );
        }
        let all = || nodes.iter().flat_map(|node| &node.cards);
        if all().any(|cards| !cards.parts.is_empty()) {
            let text = "segment of a card: MIG instance, share or replica";
            self.row("class=\"free\"", None, text, "");
            let y = self.height - LINE - 4.0;
            let _ = writeln!(
                self.svg,
                "<rect x=\"0.5\" y=\"{:.1}\" width=\"{:.1}\" height=\"{SWATCH}\" fill=\"{}\"/>",
                y + 0.5,
                SWATCH * 0.5,
                look::single().fill
            );
        }
        let is_cut =
            |mode: &CardMode| matches!(mode, CardMode::Replicas(_) | CardMode::MigStatic(_));
        if all().any(|cards| cards.modes.iter().any(is_cut)) {
            let text = "instance or replica that exists";
            self.row("class=\"outline\"", None, text, "");
        }
        let scale = Scale::for_nodes(nodes.len());
        if all().any(|cards| cards::has_arcs(&scale, cards)) {
            self.row(
                "fill=\"none\"",
                None,
                "best links between cards",
                "strong: within one member",
            );
            let y = self.height - LINE - 1.0;
            let _ = writeln!(
                self.svg,
                "<path class=\"arc\" stroke=\"#a5afbb\" d=\"M1 {y:.1}C1 {:.1} {SWATCH} {:.1} {SWATCH} {y:.1}\"/>",
                y + 12.0,
                y + 12.0
            );
        }
        let unused = |node: &NodeView<'_>| node.unschedulable || is_away(node.taints);
        if nodes.iter().any(unused) {
            let all_cordoned = nodes
                .iter()
                .filter(|node| unused(node))
                .all(|node| node.unschedulable);
            let label = if all_cordoned {
                "cordoned node"
            } else {
                "cordoned or not ready"
            };
            self.row("class=\"node cordoned\"", None, label, "");
        }
        if nodes.iter().any(|node| node.cards.is_empty()) {
            self.row(
                "class=\"bar\"",
                None,
                "node without cards",
                "bar: processor time in use",
            );
        }
    }

    fn push_waiting(&mut self, gangs: &[GangReport]) {
        let waiting: Vec<_> = gangs.iter().filter(|gang| !gang.is_placed()).collect();
        if waiting.is_empty() {
            return;
        }
        self.heading("Waiting");
        for gang in waiting.iter().take(ROWS) {
            let y = self.height + 11.0;
            let _ = writeln!(
                self.svg,
                "<text class=\"line\" y=\"{y:.0}\" font-weight=\"600\">{} \
                 <tspan class=\"small\" font-weight=\"400\">{} {}</tspan></text>",
                Escaped(&shortened(
                    &gang.full_name(),
                    WIDTH - 140.0,
                    12.0,
                    Keep::Start
                )),
                gang.wanted.max(gang.min),
                if gang.wanted.max(gang.min) == 1 {
                    "member"
                } else {
                    "members"
                },
            );
            self.height += LINE + 1.0;
            let reason = gang.reason.as_ref().map(|reason| reason.message.clone());
            for text in reason.into_iter().chain(admitted_if(gang)) {
                for line in wrapped(&text, LETTERS) {
                    self.small(10.0, &line);
                }
            }
            self.height += 7.0;
        }
        if waiting.len() > ROWS {
            self.small(0.0, &format!("and {} more", waiting.len() - ROWS));
        }
    }
}

/// Breaks a text into lines of at most `letters` letters, at most 4 of them.
fn wrapped(text: &str, letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let full = lines.last().map_or(0, |line| line.chars().count());
        if full > 0 && full + 1 + word.chars().count() > letters {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    if lines.len() > 4 {
        lines.truncate(4);
        if let Some(line) = lines.last_mut() {
            line.push_str(" …");
        }
    }
    lines
}
