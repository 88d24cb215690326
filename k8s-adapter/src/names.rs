//! Object names with numbers in them: `n2` before `n10`, and `n1..n4` for four names.
//!
//! Data enters and leaves as text; nothing here knows what the names stand for.

/// A name as its stem and its number at the end: `n12` is `("n", 12)`.
pub fn natural_parts(name: &str) -> (&str, Option<u64>) {
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    (stem, name[stem.len()..].parse().ok())
}

/// Why a list of names cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NamesError {
    /// The two ends of a range do not belong together.
    #[error("`{0}`: a range is STEM1..STEM2 with one stem and the smaller number first, as n1..n4")]
    Range(String),
    /// Too many names.
    #[error("`{text}` names {count} objects; at most {} are accepted", LIMIT)]
    TooMany {
        /// The range.
        text: String,
        /// How many it names.
        count: u64,
    },
    /// An empty name.
    #[error("`{0}` holds an empty name")]
    Empty(String),
}

/// A range may name this many objects.
const LIMIT: u64 = 1_000_000;

/// A number in a range has at most this many digits, leading zeros included: a name in Kubernetes has
/// at most 253 characters, and Rust cannot pad to more than 65,535.
const DIGITS: usize = 253;

/// The names that a text lists: `n1`, `n1..n4`, `n1, n3..n5`. A number keeps its leading zeros.
pub fn expand(text: &str) -> Result<Vec<String>, NamesError> {
    let mut names = Vec::new();
    for part in text.split(',').map(str::trim) {
        let Some((first, last)) = part.split_once("..") else {
            if part.is_empty() {
                return Err(NamesError::Empty(text.to_owned()));
            }
            names.push(part.to_owned());
            continue;
        };
        let ((stem, low), (other_stem, high)) = (natural_parts(first), natural_parts(last));
        let (Some(low), Some(high)) = (low, high) else {
            return Err(NamesError::Range(part.to_owned()));
        };
        if stem != other_stem || low > high {
            return Err(NamesError::Range(part.to_owned()));
        }
        let count = (high - low).saturating_add(1);
        if count > LIMIT || names.len() as u64 + count > LIMIT {
            let text = part.to_owned();
            return Err(NamesError::TooMany { text, count });
        }
        let digits = first.len() - stem.len();
        if digits > DIGITS {
            return Err(NamesError::Range(part.to_owned()));
        }
        names.extend((low..=high).map(|number| format!("{stem}{number:0digits$}")));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_lists_name_objects_in_order() {
        let names = |text| expand(text).map(|names| names.join(" "));
        assert_eq!(names("n1").as_deref(), Ok("n1"));
        assert_eq!(names("n8..n11").as_deref(), Ok("n8 n9 n10 n11"));
        assert_eq!(names("n08..n10").as_deref(), Ok("n08 n09 n10"));
        assert_eq!(names("a, g1..g2").as_deref(), Ok("a g1 g2"));
        assert_eq!(names("r1-n1..r1-n2").as_deref(), Ok("r1-n1 r1-n2"));
    }

    #[test]
    fn a_range_that_makes_no_sense_is_refused() {
        assert_eq!(expand("n4..n1"), Err(NamesError::Range("n4..n1".into())));
        assert_eq!(expand("a1..b2"), Err(NamesError::Range("a1..b2".into())));
        assert_eq!(expand("a..b"), Err(NamesError::Range("a..b".into())));
        let padded = format!("n{}1", "0".repeat(70_000));
        assert!(matches!(
            expand(&format!("{padded}..n2")),
            Err(NamesError::Range(_))
        ));
        assert_eq!(expand("a,,b"), Err(NamesError::Empty("a,,b".into())));
        assert!(matches!(
            expand("n0..n18446744073709551615"),
            Err(NamesError::TooMany { .. })
        ));
    }

    #[test]
    fn numbers_at_the_end_order_names_as_people_do() {
        assert!(natural_parts("n2") < natural_parts("n10"));
        assert_eq!(natural_parts("gpu"), ("gpu", None));
        assert_eq!(natural_parts("r1-n7"), ("r1-n", Some(7)));
    }
}
