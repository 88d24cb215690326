//! The small values of a scenario: spans of time, names, numbers that must hold, cards by kind.
//!
//! Each is read from the form that people write and says in its error what would be accepted.

use std::{collections::BTreeMap, fmt, marker::PhantomData, str::FromStr};

use gangline::units::Nanos;
use serde::de::{
    Deserialize, Deserializer, Error, MapAccess, Visitor, value::MapAccessDeserializer,
};

use super::devices::{HeldPart, Instance, ShareAmount};
use crate::names;

/// A span of time: `10s`, `1h 30m`, `250ms`, or whole seconds as a bare number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Nanos);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("{text:?} is no span; accepted: such as 10s, 1h 30m or 250ms");
        if let Ok(seconds) = text.parse() {
            return Ok(Self(Nanos::from_secs(seconds)));
        }
        let span: jiff::SignedDuration = text.parse().map_err(|_| refused())?;
        let nanos = u64::try_from(span.as_nanos()).map_err(|_| refused())?;
        Ok(Self(Nanos(nanos)))
    }
}

/// A moment (`10s`), or every decided moment of a range, both ends included (`10s..1m`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct When {
    /// The first moment.
    pub from: Nanos,
    /// The last moment.
    pub to: Nanos,
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        let (from, to) = (from.trim().parse::<Span>()?.0, to.trim().parse::<Span>()?.0);
        if from > to {
            return Err(format!("{text:?} ends before it starts"));
        }
        Ok(Self { from, to })
    }
}

/// Names: `n1`, `n1..n4`, `a, b3..b5`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(pub Vec<String>);

impl FromStr for Names {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        names::expand(text)
            .map(Self)
            .map_err(|error| error.to_string())
    }
}

impl fmt::Display for Names {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [first, _, .., last] => {
                write!(formatter, "{first} .. {last} ({})", self.0.len())
            }
            names => formatter.write_str(&names.join(", ")),
        }
    }
}

/// A number that must hold: `4`, `>=2`, `<5`, `2..4`, or one of several, `0|16`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    text: String,
    ranges: Vec<(i64, i64)>,
}

impl Count {
    /// Whether this number is accepted.
    pub fn accepts(&self, number: i64) -> bool {
        let mut ranges = self.ranges.iter();
        ranges.any(|&(low, high)| (low..=high).contains(&number))
    }
}

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |digits: &str| {
            digits.trim().parse::<i64>().map_err(|_| {
                format!("{text:?} is no count; accepted: such as 4, >=2, <5, 2..4 or 0|16")
            })
        };
        let range = |part: &str| {
            let part = part.trim();
            Ok::<_, String>(if let Some(digits) = part.strip_prefix(">=") {
                (number(digits)?, i64::MAX)
            } else if let Some(digits) = part.strip_prefix("<=") {
                (i64::MIN, number(digits)?)
            } else if let Some(digits) = part.strip_prefix('>') {
                (number(digits)?.saturating_add(1), i64::MAX)
            } else if let Some(digits) = part.strip_prefix('<') {
                (i64::MIN, number(digits)?.saturating_sub(1))
            } else if let Some((low, high)) = part.split_once("..") {
                (number(low)?, number(high)?)
            } else {
                (number(part)?, number(part)?)
            })
        };
        let ranges = text.split('|').map(range).collect::<Result<_, _>>()?;
        let text = text.to_owned();
        Ok(Self { text, ranges })
    }
}

impl fmt::Display for Count {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Reads text or a number through [`FromStr`].
struct Scalar<T>(&'static str, PhantomData<T>);

impl<T: FromStr<Err = String>> Visitor<'_> for Scalar<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}

macro_rules! read_from_scalar {
    ($($name:ident: $expecting:literal),*) => {
        $(impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Scalar($expecting, PhantomData))
            }
        })*
    };
}

read_from_scalar! {
    Span: "a span such as 10s",
    When: "a moment such as 10s or a range such as 10s..1m",
    Names: "a name such as n1 or a range such as n1..n4",
    Count: "a count such as 4 or >=2",
    Instance: "an instance such as 1g.5gb@0",
    HeldPart: "a part of a card such as 0:1g.5gb@6",
    ShareAmount: "an amount such as 12Gi, or a part of a card such as 50%"
}

/// Cards by kind; a bare number means GPUs of the usual kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CardCounts(pub BTreeMap<String, u32>);

/// The kind of a card when nobody says.
pub const USUAL_KIND: &str = "nvidia.com/gpu";

impl<'de> Deserialize<'de> for CardCounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Cards;

        impl<'de> Visitor<'de> for Cards {
            type Value = CardCounts;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a number of cards, or numbers by kind")
            }

            fn visit_u64<E: Error>(self, count: u64) -> Result<CardCounts, E> {
                let count = u32::try_from(count).map_err(E::custom)?;
                Ok(CardCounts([(USUAL_KIND.to_owned(), count)].into()))
            }

            fn visit_i64<E: Error>(self, count: i64) -> Result<CardCounts, E> {
                self.visit_u64(u64::try_from(count).map_err(E::custom)?)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CardCounts, A::Error> {
                BTreeMap::deserialize(MapAccessDeserializer::new(map)).map(CardCounts)
            }
        }

        deserializer.deserialize_any(Cards)
    }
}

/// Either one word, or all fields.
pub(super) fn word_or_fields<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + From<String>,
{
    struct WordOrFields<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de> + From<String>> Visitor<'de> for WordOrFields<T> {
        type Value = Option<T>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a word, or fields")
        }

        fn visit_str<E: Error>(self, word: &str) -> Result<Option<T>, E> {
            Ok(Some(T::from(word.to_owned())))
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Option<T>, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map)).map(Some)
        }
    }

    deserializer.deserialize_any(WordOrFields(PhantomData))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_people_write_them() {
        let nanos = |text: &str| text.parse::<Span>().map(|span| span.0);
        assert_eq!(nanos("10s"), Ok(Nanos::from_secs(10)));
        assert_eq!(nanos("1h30m"), Ok(Nanos::from_secs(5400)));
        assert_eq!(nanos("250ms"), Ok(Nanos::from_millis(250)));
        assert_eq!(nanos("0"), Ok(Nanos::ZERO));
        assert!(nanos("-1s").is_err());
        assert!(nanos("soon").is_err_and(|error| error.contains("accepted: such as 10s")));
    }

    #[test]
    fn a_range_of_moments_has_an_order() {
        let when: When = "10s..1m".parse().unwrap();
        assert_eq!(
            (when.from, when.to),
            (Nanos::from_secs(10), Nanos::from_secs(60))
        );
        assert!("1m..10s".parse::<When>().is_err());
    }

    #[test]
    fn counts_accept_what_they_say() {
        let accepts = |text: &str, number| text.parse::<Count>().unwrap().accepts(number);
        assert!(accepts("4", 4) && !accepts("4", 5));
        assert!(accepts(">=2", 2) && !accepts(">=2", 1));
        assert!(accepts("<5", 4) && !accepts("<5", 5));
        assert!(accepts("2..4", 3) && !accepts("2..4", 5));
        assert!(accepts("0|16", 16) && !accepts("0|16", 8));
        assert!("many".parse::<Count>().is_err());
    }
}
