//! The cluster as a picture: nodes in the boxes of their domains, one square per card, or a bar of
//! segments for a card that is used in parts.
//!
//! Data enters as the engine's nodes and the gangs of a [`Report`](crate::output::Report), and leaves
//! as the text of an SVG without scripts. Colour is never the only cue: each gang has a letter, and a
//! pattern once the colours are used up; everything has a tooltip. Nothing here decides anything,
//! reads a file or knows the engine.

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter, Write as _},
};

use gangline::{GangId, engine::NodeView};

use crate::output::GangReport;

mod cards;
mod layout;
mod look;
mod node;
mod side;

use layout::{Area, Content};
use look::Look;
use node::Scale;

/// Free space around everything, in pixels.
const MARGIN: f32 = 20.0;

/// Draws nodes (ordered by topology path, as the engine lists them) and gangs. `levels` are the
/// labels that the nodes' paths follow.
pub fn draw(levels: &[String], nodes: &[NodeView<'_>], gangs: &[GangReport]) -> String {
    let scale = Scale::for_nodes(nodes.len());
    let looks = look::assign(gangs);
    let picture = Picture {
        levels,
        scale,
        gangs: gangs.iter().map(|gang| (gang.id, gang)).collect(),
        looks: &looks,
    };
    let cluster = layout::arrange(levels, nodes, &scale);
    let side = side::draw(&looks, gangs, nodes);
    let (top, left) = (MARGIN + 30.0, MARGIN);
    let side_left = left + cluster.width + 28.0;
    let width = side_left + side::WIDTH + MARGIN;
    let height = top + cluster.height.max(side.height) + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         font-family=\"system-ui, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif\">\n"
    );
    let title = headline(nodes.len(), gangs);
    let _ = writeln!(svg, "<title>{}</title>", Escaped(&title));
    svg.push_str(look::STYLE);
    look::push_patterns(&mut svg, &looks);
    let _ = writeln!(
        svg,
        "<rect class=\"page\" width=\"{width:.0}\" height=\"{height:.0}\"/>\n\
         <text class=\"headline\" x=\"{left}\" y=\"{:.0}\">{}</text>",
        MARGIN + 14.0,
        Escaped(&title)
    );
    picture.push_area(&mut svg, &cluster, left, top);
    let _ = writeln!(svg, "<g transform=\"translate({side_left:.1} {top:.1})\">");
    svg.push_str(&side.svg);
    svg.push_str("</g>\n</svg>\n");
    svg
}

fn headline(nodes: usize, gangs: &[GangReport]) -> String {
    let placed = gangs.iter().filter(|gang| gang.is_placed()).count();
    let noun = if nodes == 1 { "node" } else { "nodes" };
    let waits = gangs.len() - placed;
    let wait = if waits == 1 { "waits" } else { "wait" };
    let places = if placed == 1 {
        "gang or pod has its place"
    } else {
        "gangs and pods have their places"
    };
    format!("{nodes} {noun}: {placed} {places}, {waits} {wait}")
}

/// What the drawing functions share.
struct Picture<'a> {
    levels: &'a [String],
    scale: Scale,
    gangs: BTreeMap<GangId, &'a GangReport>,
    looks: &'a BTreeMap<GangId, Look>,
}

impl Picture<'_> {
    /// Draws an area and all that is in it, with its upper left corner at (`x`, `y`).
    fn push_area(&self, svg: &mut String, area: &Area<'_>, x: f32, y: f32) {
        match &area.content {
            Content::Node(node) => self.push_node(svg, node, (x, y), (area.width, area.height)),
            Content::Areas { domain, areas } => {
                if let Some((level, name)) = domain {
                    self.push_frame(svg, area, (*level, *name), x, y);
                }
                for (inner, left, top) in areas {
                    self.push_area(svg, inner, x + left, y + top);
                }
            }
        }
    }

    /// The box of a domain with its name.
    fn push_frame(
        &self,
        svg: &mut String,
        area: &Area<'_>,
        (level, name): (usize, Option<&str>),
        x: f32,
        y: f32,
    ) {
        let Area { width, height, .. } = area;
        let word = self
            .levels
            .get(level)
            .map_or("", |label| gangline::explain::level_word(label));
        let title = match name {
            Some(name) => format!("{word} {name}"),
            None => format!("no {word}"),
        };
        let class = if name.is_some() {
            "domain"
        } else {
            "domain none"
        };
        let _ = writeln!(
            svg,
            "<g><title>{title}</title><rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" \
             width=\"{width:.1}\" height=\"{height:.1}\" rx=\"5\"/>\
             <text class=\"domain-name\" x=\"{:.1}\" y=\"{:.1}\" font-size=\"{}\">{}</text></g>",
            x + self.scale.pad,
            y + self.scale.title - 4.0,
            self.scale.title_font,
            Escaped(&shortened(
                &title,
                width - self.scale.pad,
                self.scale.title_font,
                Keep::Start
            )),
            title = Escaped(&title),
        );
    }
}

/// Which end of a text matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    /// The start, as in a title.
    Start,
    /// The end, as in the name of a node: those of one pool all start alike.
    End,
}

/// A text cut to fit a width, judged by an average letter.
fn shortened(text: &str, width: f32, font: f32, keep: Keep) -> String {
    let room = (width / (font * 0.58)).max(1.0) as usize;
    let letters = text.chars().count();
    let kept = room.saturating_sub(1);
    if letters <= room {
        text.to_owned()
    } else if keep == Keep::Start {
        format!("{}…", text.chars().take(kept).collect::<String>())
    } else {
        format!("…{}", text.chars().skip(letters - kept).collect::<String>())
    }
}

/// A text as XML has it: special characters escaped, forbidden ones replaced.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => formatter.write_str("&amp;")?,
                '<' => formatter.write_str("&lt;")?,
                '>' => formatter.write_str("&gt;")?,
                '"' => formatter.write_str("&quot;")?,
                '\u{0}'..='\u{1f}' | '\u{7f}' | '\u{fffe}' | '\u{ffff}' => {
                    formatter.write_char('\u{fffd}')?;
                }
                letter => formatter.write_char(letter)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
