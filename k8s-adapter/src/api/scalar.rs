//! How single values are read where the API server is more lenient, or clearer, than plain serde.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

/// Reads a value for which `null` means "absent". For use in `#[serde(deserialize_with)]`.
pub fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Reads an optional whole number and says so in plain words when it is something else, such as
/// `1e30` or `2.5`. For use in `#[serde(deserialize_with)]`.
pub fn whole_number<'de, D>(deserializer: D) -> Result<Option<i64>, D::Error>
where
    D: Deserializer<'de>,
{
    Option::<WholeNumber>::deserialize(deserializer).map(|number| number.map(|number| number.0))
}

struct WholeNumber(i64);

impl<'de> Deserialize<'de> for WholeNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WholeNumberVisitor;

        impl Visitor<'_> for WholeNumberVisitor {
            type Value = WholeNumber;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a whole number of at most 18 digits")
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<WholeNumber, E> {
                Ok(WholeNumber(value))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<WholeNumber, E> {
                let unexpected = || E::invalid_value(Unexpected::Unsigned(value), &self);
                i64::try_from(value)
                    .map(WholeNumber)
                    .map_err(|_| unexpected())
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<WholeNumber, E> {
                // `3.0` is a whole number for the API server. Beyond 2^53 a float no longer says
                // which whole number was meant.
                const EXACT: f64 = 9_007_199_254_740_992.0;
                if value.fract() == 0.0 && value.abs() <= EXACT {
                    return Ok(WholeNumber(value as i64));
                }
                Err(E::invalid_value(Unexpected::Float(value), &self))
            }
        }

        deserializer.deserialize_any(WholeNumberVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, serde::Deserialize)]
    #[serde(default)]
    struct Sample {
        #[serde(deserialize_with = "whole_number")]
        replicas: Option<i64>,
        #[serde(deserialize_with = "or_default")]
        names: Vec<String>,
    }

    fn replicas(text: &str) -> Result<Option<i64>, String> {
        let json = format!("{{\"replicas\": {text}, \"names\": null}}");
        serde_json::from_str::<Sample>(&json)
            .map(|sample| {
                assert!(sample.names.is_empty());
                sample.replicas
            })
            .map_err(|error| error.to_string())
    }

    #[test]
    fn whole_numbers_are_read_as_the_api_server_reads_them() {
        assert_eq!(replicas("3"), Ok(Some(3)));
        assert_eq!(replicas("-3"), Ok(Some(-3)));
        assert_eq!(replicas("3.0"), Ok(Some(3)));
        assert_eq!(replicas("null"), Ok(None));
    }

    #[test]
    fn anything_else_is_refused_in_plain_words() {
        for (text, shown) in [
            ("1e30", "floating point `1e+30`"),
            ("2.5", "floating point `2.5`"),
            ("18446744073709551615", "integer `18446744073709551615`"),
            ("\"three\"", "string \"three\""),
        ] {
            let message = replicas(text).unwrap_err();
            assert!(message.contains(shown), "{message}");
            assert!(message.contains("expected a whole number"), "{message}");
        }
    }
}
