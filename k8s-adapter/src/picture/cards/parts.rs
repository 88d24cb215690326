//! The parts of a card as segments.
//!
//! Data enters as what somebody holds of a card, and how the card may be used; it leaves as SVG.

use std::fmt::Write as _;

use gangline::{
    cluster::spec::CardMode,
    engine::{CardsView, Part, PartView},
};

use super::{
    super::{Escaped, Picture, look::Look},
    Shape, push_label,
};
use crate::output::devices::PartText;

/// A segment of a card: where it starts and how long it is, in parts of the card's width.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Segment {
    start: f32,
    length: f32,
}

/// The segments of the parts of one card that are held, in order.
fn segments(cards: &CardsView<'_>, parts: &[&PartView]) -> Vec<Segment> {
    let mut next = 0.0;
    let segment = |part: &&PartView| {
        let (start, length) = match part.part {
            Part::Slice {
                start, units, of, ..
            } => {
                let of = f32::from(of.max(1));
                return Segment {
                    start: f32::from(start) / of,
                    length: f32::from(units) / of,
                };
            }
            Part::Share {
                memory_mib,
                compute_milli,
            } => {
                let memory = memory_mib as f32 / cards.memory_mib.max(1) as f32;
                let memory = if cards.memory_mib > 0 { memory } else { 0.0 };
                (next, memory.max(compute_milli as f32 / 1000.0))
            }
            Part::Replica { of } => (next, 1.0 / of.max(1) as f32),
        };
        // More may be taken than there is, when somebody else placed a pod.
        let length = length.min(1.0 - start);
        next = start + length;
        Segment { start, length }
    };
    parts.iter().map(segment).collect()
}

impl Picture<'_> {
    /// The parts of a card that somebody holds.
    pub(super) fn push_parts(
        &self,
        svg: &mut String,
        cards: &CardsView<'_>,
        card: u32,
        shape: &Shape,
        (x, y): (f32, f32),
    ) {
        let parts: Vec<&PartView> = cards
            .parts
            .iter()
            .filter(|part| part.card == card)
            .collect();
        let (width, height) = shape.card;
        for (part, segment) in parts.iter().zip(segments(cards, &parts)) {
            let (look, style, name) = self.holder(part.gang);
            let text = PartText(&part.part).to_string();
            let (left, length) = (x + segment.start * width, segment.length * width);
            // Neighbours are told apart by a thin gap, where there is room for one.
            let inset = if length > 6.0 { 0.6 } else { 0.0 };
            let _ = write!(
                svg,
                "<rect {style} x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
                 rx=\"{inset:.1}\"><title>{}</title></rect>",
                left + inset,
                y + inset,
                (length - 2.0 * inset).max(0.1),
                height - 2.0 * inset,
                Escaped(&format!("{name}: {text} of {} {card}", cards.kind))
            );
            if shape.gutter > 0.0 {
                push_label(
                    svg,
                    &label(&part.part, &look, length),
                    &look,
                    (left, y),
                    (length, height),
                );
            }
        }
    }
}

/// What is written on a part: whose it is and what it is, as far as there is room.
fn label(part: &Part, look: &Look, width: f32) -> String {
    let (long, short) = match part {
        Part::Slice { profile, .. } => {
            let short = profile.split('.').next().unwrap_or(profile);
            ((*profile).to_owned(), short.to_owned())
        }
        Part::Share {
            memory_mib: 0,
            compute_milli,
        } => (format!("{}%", compute_milli / 10), String::new()),
        Part::Share { memory_mib, .. } => {
            let (gib, tenths) = (memory_mib / 1024, memory_mib % 1024 * 10 / 1024);
            let short = format!("{}Gi", memory_mib.div_ceil(1024));
            (format!("{gib}.{tenths}Gi"), short)
        }
        Part::Replica { .. } => (String::new(), String::new()),
    };
    let room = (width / 5.6) as usize;
    let with_letter = |word: &str| match (look.letter.as_str(), word) {
        ("", word) => word.to_owned(),
        (letter, "") => letter.to_owned(),
        (letter, word) => format!("{letter} {word}"),
    };
    [
        with_letter(&long),
        with_letter(&short),
        look.letter.clone(),
        short,
    ]
    .into_iter()
    .find(|text| !text.is_empty() && text.chars().count() <= room)
    .unwrap_or_default()
}

/// Instances and replicas that exist, whether held or not.
pub(super) fn push_outlines(
    svg: &mut String,
    mode: &CardMode,
    cards: &CardsView<'_>,
    shape: &Shape,
    (x, y): (f32, f32),
) {
    let (width, height) = shape.card;
    let mut push = |start: f32, length: f32, title: &str| {
        let _ = write!(
            svg,
            "<rect class=\"outline\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\">\
             <title>{}</title></rect>",
            x + start * width + 0.8,
            y + 0.8,
            (length * width - 1.6).max(0.1),
            height - 1.6,
            Escaped(title)
        );
    };
    match mode {
        // A mark a replica; hundreds of them would be a grey blur.
        CardMode::Replicas(replicas) if (2..=32).contains(replicas) => {
            let length = 1.0 / *replicas as f32;
            for index in 0..*replicas {
                push(index as f32 * length, length, "replica");
            }
        }
        CardMode::MigStatic(instances) => {
            let Some(geometry) = cards.known.and_then(|model| model.mig) else {
                return;
            };
            for instance in instances {
                let found = geometry.profile(&instance.profile);
                let Some(profile) = found.and_then(|ix| geometry.get(ix)) else {
                    continue;
                };
                let of = f32::from(geometry.units.max(1));
                push(
                    f32::from(instance.start) / of,
                    f32::from(profile.units) / of,
                    &format!("{}@{}", instance.profile, instance.start),
                );
            }
        }
        _ => {}
    }
}
