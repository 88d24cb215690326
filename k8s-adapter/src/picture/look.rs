//! How a gang looks: colour, pattern and letter, the same ones for the same list of gangs.
//!
//! Data enters as gangs in queue order and leaves as [`Look`]s, a style sheet and fill patterns. The
//! colours are those of Okabe and Ito, which people with any kind of colour vision tell apart.

use std::{collections::BTreeMap, fmt::Write as _};

use gangline::GangId;

use crate::output::GangReport;

/// How a gang looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// What to fill its cards with: a colour, or a pattern by its id.
    pub(super) fill: String,
    /// The colour of letters on it.
    pub(super) ink: &'static str,
    /// The colour under pattern and letter.
    pub(super) base: &'static str,
    /// Its letter, a small one for a pod without a group; empty for pods without cards.
    pub(super) letter: String,
    /// Colour and pattern by number, where a pattern is used.
    pattern: Option<(usize, usize)>,
}

/// Fill and ink, in an order in which neighbours differ most.
const COLOURS: [(&str, &str); 7] = [
    ("#0072b2", "#fff"),
    ("#e69f00", "#222"),
    ("#009e73", "#fff"),
    ("#cc79a7", "#222"),
    ("#56b4e9", "#222"),
    ("#d55e00", "#fff"),
    ("#f0e442", "#222"),
];

/// White marks on a colour, in a tile of 4 by 4.
const PATTERNS: [&str; 4] = [
    "<path d=\"M-1 1l2-2M0 4l4-4M3 5l2-2\"/>",
    "<path d=\"M-1 3l2 2M0 0l4 4M3-1l2 2\"/>",
    "<path d=\"M0 2h4\"/>",
    "<path d=\"M2 0v4\"/>",
];

/// Fill and ink of pods without a group, neighbours different.
const SINGLES: [(&str, &str); 3] = [
    ("#8a93a0", "#fff"),
    ("#5f6975", "#fff"),
    ("#b3bac4", "#222"),
];

pub(super) const STYLE: &str = "<style>\
.page{fill:#fff}\
text{fill:#22272e}\
.headline{font-size:17px;font-weight:600}\
.domain{fill:#10204008;stroke:#b4bcc8}\
.domain.none{stroke-dasharray:4 3}\
.domain-name{font-weight:600;fill:#57606a}\
.node{fill:#fff;stroke:#d0d7de}\
.node.cordoned{fill:#f3eee6;stroke:#a38a5c;stroke-dasharray:3 2}\
.node-name{fill:#57606a}\
.free{fill:#fff;stroke:#a5afbb}\
.bad{fill:#eceff2;stroke:#a5afbb}\
.cross{stroke:#b42318;fill:none}\
.new{stroke:#22272e}\
.outline{fill:none;stroke:#8a93a0;stroke-dasharray:2 2;stroke-width:0.8}\
.arc{fill:none;stroke-linecap:round}\
.number{fill:#8a93a0;text-anchor:end}\
.bar{fill:#eceff2}\
.bar-used{fill:#aab4c0}\
.letter{font-weight:600;text-anchor:middle;paint-order:stroke;stroke-width:3;\
stroke-linejoin:round}\
.small{font-size:11px;fill:#57606a}\
.line{font-size:12px}\
.head{font-size:13px;font-weight:600}\
</style>\n";

/// Gives each gang that may hold cards its look, by its place in the list.
pub(super) fn assign(gangs: &[GangReport]) -> BTreeMap<GangId, Look> {
    let mut looks = BTreeMap::new();
    let (mut next, mut next_pod) = (0, 0);
    for gang in gangs {
        let look = if gang.single && gang.members.iter().any(|pod| !pod.cards.is_empty()) {
            next_pod += 1;
            pod(next_pod - 1)
        } else if gang.single {
            single()
        } else if gang.placed > 0 {
            next += 1;
            numbered(next - 1)
        } else {
            continue;
        };
        looks.insert(gang.id, look);
    }
    looks
}

/// The look of whoever has no letter.
pub(super) fn single() -> Look {
    Look {
        letter: String::new(),
        ..pod(0)
    }
}

/// The look of a pod without a group that has cards.
fn pod(number: usize) -> Look {
    let (base, ink) = SINGLES[number % SINGLES.len()];
    Look {
        fill: base.to_owned(),
        ink,
        base,
        letter: letter(number).to_lowercase(),
        pattern: None,
    }
}

fn numbered(number: usize) -> Look {
    let colour = number % COLOURS.len();
    let (fill, ink) = COLOURS[colour];
    // Solid colours first, then each pattern with each colour, then over again.
    let pattern = number / COLOURS.len() % (PATTERNS.len() + 1);
    let pattern = pattern.checked_sub(1).map(|pattern| (colour, pattern));
    Look {
        fill: match pattern {
            Some((colour, pattern)) => format!("url(#p{colour}{pattern})"),
            None => fill.to_owned(),
        },
        ink,
        base: fill,
        letter: letter(number),
        pattern,
    }
}

/// A, B, ... Z, AA, AB, ...
fn letter(mut number: usize) -> String {
    let mut letters = Vec::new();
    loop {
        letters.push(char::from(b'A' + (number % 26) as u8));
        match (number / 26).checked_sub(1) {
            Some(rest) => number = rest,
            None => break,
        }
    }
    letters.iter().rev().collect()
}

/// Writes the patterns that these looks use.
pub(super) fn push_patterns(svg: &mut String, looks: &BTreeMap<GangId, Look>) {
    let mut used: Vec<(usize, usize)> = looks.values().filter_map(|look| look.pattern).collect();
    used.sort_unstable();
    used.dedup();
    if used.is_empty() {
        return;
    }
    svg.push_str("<defs>");
    for (colour, pattern) in used {
        let _ = write!(
            svg,
            "<pattern id=\"p{colour}{pattern}\" width=\"4\" height=\"4\" \
             patternUnits=\"userSpaceOnUse\"><rect width=\"4\" height=\"4\" fill=\"{}\"/>\
             <g stroke=\"#fff\" stroke-opacity=\"0.75\">{}</g></pattern>",
            COLOURS[colour].0, PATTERNS[pattern]
        );
    }
    svg.push_str("</defs>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_go_on_after_z() {
        assert_eq!(letter(0), "A");
        assert_eq!(letter(25), "Z");
        assert_eq!(letter(26), "AA");
        assert_eq!(letter(701), "ZZ");
        assert_eq!(letter(702), "AAA");
    }

    #[test]
    fn pods_without_a_group_are_told_apart_by_small_letters() {
        let letters: std::collections::BTreeSet<_> = (0..100).map(|n| pod(n).letter).collect();
        assert_eq!(letters.len(), 100);
        assert!(letters.contains("a") && letters.contains("ab"));
        assert_ne!(pod(0).fill, pod(1).fill);
        assert!(single().letter.is_empty());
    }

    #[test]
    fn thirty_five_gangs_look_different() {
        let fills: std::collections::BTreeSet<_> =
            (0..35).map(|number| numbered(number).fill).collect();
        assert_eq!(fills.len(), 35);
    }
}
