//! Gangline's own annotations: the one list of their keys, and a word for those that are not in it.
//!
//! An object's annotations enter; a problem for each key of ours that nobody reads leaves, so that a
//! misspelt wish is not a wish that is silently left out. Nothing here reads a value.

use crate::{
    api::{Labels, ObjectMeta},
    problem::{FieldPath, Problems},
};

/// What all our keys begin with.
const PREFIX: &str = "gangline.io/";

pub(crate) const SLICE: &str = "gangline.io/slice";
pub(crate) const SHARE_MEMORY: &str = "gangline.io/share-memory";
pub(crate) const SHARE_COMPUTE: &str = "gangline.io/share-compute";
/// On a pod how its parts lie on cards; on a node how its cards are used.
pub(crate) const CARDS: &str = "gangline.io/cards";
pub(crate) const SHARE_GROUP: &str = "gangline.io/share-group";
pub(crate) const EXCLUSIVE: &str = "gangline.io/exclusive-cards";
pub(crate) const NEAR: &str = "gangline.io/card-near";
pub(crate) const NO_PEER_TO_PEER: &str = "gangline.io/no-peer-to-peer";
pub(crate) const MODELS: &str = "gangline.io/card-models";
pub(crate) const CARD_MEMORY: &str = "gangline.io/card-memory";
pub(crate) const IDS: &str = "gangline.io/card-ids";
pub(crate) const OVERHEAD: &str = "gangline.io/card-overhead";
pub(crate) const MAX_RUNTIME: &str = "gangline.io/max-runtime";
/// On pods, or on what controls them: so many of that owner's pods start together.
pub(crate) const MIN_MEMBER: &str = "gangline.io/min-member";
/// What `gangline run` writes on the pods that it binds: which devices, and which place in its gang.
pub(crate) const DEVICES: &str = "gangline.io/devices";
pub(crate) const RANK: &str = "gangline.io/rank";
pub(crate) const LINKS: &str = "gangline.io/links";

/// Those that a pod may have, as `docs/input.md` lists them.
const OF_A_POD: [&str; 16] = [
    SLICE,
    SHARE_MEMORY,
    SHARE_COMPUTE,
    CARDS,
    SHARE_GROUP,
    EXCLUSIVE,
    NEAR,
    NO_PEER_TO_PEER,
    MODELS,
    CARD_MEMORY,
    IDS,
    OVERHEAD,
    MAX_RUNTIME,
    MIN_MEMBER,
    DEVICES,
    RANK,
];

/// Those that say something of the cards of a pod and ask for none.
const OF_CARDS: [&str; 9] = [
    CARDS,
    SHARE_GROUP,
    EXCLUSIVE,
    NEAR,
    NO_PEER_TO_PEER,
    MODELS,
    CARD_MEMORY,
    IDS,
    OVERHEAD,
];

/// Those that an object which makes pods may have itself.
pub(crate) const OF_A_WORKLOAD: [&str; 1] = [MIN_MEMBER];

/// Those that a node may have, as `docs/input.md` lists them.
const OF_A_NODE: [&str; 2] = [LINKS, CARDS];

/// Notes each annotation of a pod that looks like ours and is none, and each label that would be one.
pub(crate) fn check_pod(metadata: &ObjectMeta, problems: &mut Problems) {
    check(metadata, &OF_A_POD, "pod", problems);
}

/// The same for a node.
pub(crate) fn check_node(metadata: &ObjectMeta, problems: &mut Problems) {
    check(metadata, &OF_A_NODE, "node", problems);
}

/// What annotations of a pod say of its cards.
pub(crate) fn about_cards(annotations: &Labels) -> impl Iterator<Item = &'static str> + '_ {
    let said = |key: &&str| annotations.contains_key(key);
    OF_CARDS.into_iter().filter(said)
}

/// Annotations of ours on an object that makes or groups pods, but these, where nobody reads them.
pub(crate) fn misplaced<'a>(
    annotations: &'a Labels,
    known: &[&str],
) -> impl Iterator<Item = &'a str> {
    let keys = annotations.iter().map(|(key, _)| key);
    keys.filter(|key| is_ours(key) && !known.contains(key))
}

/// Whether a key is meant to be one of ours.
fn is_ours(key: &str) -> bool {
    let start = key.get(..PREFIX.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
}

fn check(object_meta: &ObjectMeta, known: &[&str], object: &str, problems: &mut Problems) {
    let metadata = FieldPath::root("metadata");
    let labels = metadata.name("labels");
    for key in object_meta.labels.iter().map(|(key, _)| key) {
        if known.contains(&key) {
            problems.note(
                "UnknownLabel",
                &labels.key(key),
                format_args!("nobody reads it as a label; accepted: as an annotation"),
            );
        }
    }
    let path = metadata.name("annotations");
    for (key, _) in object_meta.annotations.iter() {
        if !is_ours(key) || known.contains(&key) {
            continue;
        }
        let field = path.key(key);
        match nearest(key, known) {
            Some(near) => problems.note(
                "UnknownAnnotation",
                &field,
                format_args!("a {object} has no such annotation; did you mean {near}?"),
            ),
            None => problems.note(
                "UnknownAnnotation",
                &field,
                format_args!(
                    "a {object} has no such annotation; accepted: {}",
                    known.join(", ")
                ),
            ),
        }
    }
}

/// The accepted word that is most like this one, if one begins like it or is like it: of two letters at
/// most one differs, behind what both begin with up to a separator, such as the vendor.
pub(crate) fn nearest<'a>(word: &str, accepted: &[&'a str]) -> Option<&'a str> {
    let plain = |word: &str| word.to_lowercase().trim_start_matches(PREFIX).to_owned();
    let word = plain(word);
    let likeness = |known: &str| {
        let known = plain(known);
        // Who leaves the end out means what begins like this.
        let begins = known.starts_with(&word);
        let same = known.bytes().zip(word.bytes()).take_while(|(a, b)| a == b);
        let same = known.get(..same.count()).unwrap_or_default();
        let own = same.find(['-', '/', '_']).map_or(0, |at| at + 1);
        let (known, word) = (known.get(own..)?, word.get(own..)?);
        let distance = strsim::damerau_levenshtein(known, word);
        let is_like = distance * 2 <= word.len() || (begins && word.len() >= LEAST_START);
        is_like.then_some((!begins, distance))
    };
    let known = accepted.iter().copied();
    let known = known.filter_map(|known| Some((likeness(known)?, known)));
    known
        .min_by_key(|(likeness, _)| *likeness)
        .map(|(_, known)| known)
}

/// Fewer letters than this begin too many words.
const LEAST_START: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(annotations: &str, check: fn(&ObjectMeta, &mut Problems)) -> Vec<String> {
        let metadata = ObjectMeta {
            annotations: serde_saphyr::from_str(annotations).unwrap(),
            ..ObjectMeta::default()
        };
        let mut problems = Problems::default();
        check(&metadata, &mut problems);
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_misspelt_annotation_is_named_with_the_nearest_one() {
        let near = |key: &str| {
            let problems = problems(&format!("{{gangline.io/{key}: x}}"), check_pod);
            assert_eq!(problems.len(), 1, "{key}: {problems:?}");
            let (_, near) = problems[0].split_once("did you mean gangline.io/").unwrap();
            near.trim_end_matches('?').to_owned()
        };
        assert_eq!(near("share-memroy"), "share-memory");
        assert_eq!(near("Card-Near"), "card-near");
        assert_eq!(near("exclusive-card"), "exclusive-cards");
        assert_eq!(near("max_runtime"), "max-runtime");
        assert_eq!(
            problems("{gangline.io/Cards: shared}", check_node),
            [
                "UnknownAnnotation: metadata.annotations[gangline.io/Cards]: a node has no such \
                 annotation; did you mean gangline.io/cards?"
            ]
        );
    }

    #[test]
    fn a_label_that_should_be_an_annotation_and_a_prefix_in_capitals_are_named() {
        let metadata = serde_saphyr::from_str(
            "{labels: {gangline.io/slice: 5Gi, app: a}, annotations: {Gangline.io/slice: 5Gi}}",
        );
        let mut problems = Problems::default();
        check_pod(&metadata.unwrap(), &mut problems);
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [
                "UnknownLabel: metadata.labels[gangline.io/slice]: nobody reads it as a label; \
                 accepted: as an annotation",
                "UnknownAnnotation: metadata.annotations[Gangline.io/slice]: a pod has no such \
                 annotation; did you mean gangline.io/slice?"
            ]
        );
    }

    #[test]
    fn a_word_whose_end_is_left_out_is_the_one_that_begins_so() {
        let machines = ["dgx-a100", "hgx-a100-8", "hgx-h100-8"];
        assert_eq!(nearest("hgx-h100", &machines), Some("hgx-h100-8"));
        let products = ["NVIDIA-GB200", "NVIDIA-H100-80GB-HBM3", "NVIDIA-H200"];
        assert_eq!(nearest("NVIDIA-H100", &products), Some(products[1]));
        assert_eq!(nearest("NVIDIA-H20O", &products), Some(products[2]));
        assert_eq!(
            nearest("NVIDIA-H20O", &products[..2]),
            None,
            "what both begin with says nothing"
        );
    }

    #[test]
    fn a_word_like_none_of_them_gets_the_list() {
        assert_eq!(
            problems("{gangline.io/zzz: x}", check_node),
            [
                "UnknownAnnotation: metadata.annotations[gangline.io/zzz]: a node has no such \
                 annotation; accepted: gangline.io/links, gangline.io/cards"
            ]
        );
    }

    #[test]
    fn annotations_that_are_known_or_others_are_passed_over() {
        for (known, check) in [
            (&OF_A_POD[..], check_pod as fn(&ObjectMeta, &mut Problems)),
            (&OF_A_NODE[..], check_node),
        ] {
            let all = known.iter().map(|key| format!("{key}: x, "));
            let all = format!("{{{} example.com/card: x}}", all.collect::<String>());
            assert_eq!(problems(&all, check), [""; 0]);
        }
    }

    #[test]
    fn all_are_documented() {
        let docs = include_str!("../../docs/input.md");
        for key in OF_A_POD {
            let name = key.strip_prefix(PREFIX).unwrap();
            let is_listed = docs.contains(&format!("| `{name}` |"));
            assert!(is_listed || docs.contains(&format!("`{key}:")), "{key}");
        }
        for key in OF_A_NODE {
            assert!(docs.contains(&format!("| `{key}` |")), "{key}");
        }
    }
}
