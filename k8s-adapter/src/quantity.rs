//! Kubernetes quantities: `500m`, `1.5Gi`, `2`, `1e3`.
//!
//! Data enters as the text (or the bare number) of an object's field and is kept as it was written,
//! so that errors can show it. It leaves as an exact whole number of units or of thousandths,
//! rounded up as Kubernetes rounds: whoever asks for a little gets a little. Floats are never
//! calculated with, and no text makes this panic or take longer than one pass over its characters.
//!
//! The grammar is Kubernetes' own: an optional sign, decimal digits with at most one point, then
//! nothing, or one of `n u m k M G T P E`, or one of `Ki Mi Gi Ti Pi Ei`, or `e`/`E` and an exponent.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use thiserror::Error as ThisError;

/// A quantity as it was written. Reading one never fails; asking for its value may.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity(Box<str>);

/// The largest number of thousandths that is counted: what fits `i64` in whole units. Sums of some
/// billion such amounts still fit an `i128`.
const MAX_MILLI: u128 = i64::MAX as u128 * 1000;

/// Why a quantity cannot be counted with.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum QuantityError {
    /// There is no text.
    #[error("empty; accepted: a number such as 500m, 2 or 1.5Gi")]
    Empty,
    /// The text is no number.
    #[error("{text:?} is not a quantity; accepted: a number such as 500m, 2 or 1.5Gi")]
    Malformed {
        /// The text, cut when long.
        text: Box<str>,
    },
    /// The number has a suffix that does not exist.
    #[error(
        "{text:?} has the unknown suffix {suffix:?}; accepted: none, n, u, m, k, M, G, T, P, E, \
         Ki, Mi, Gi, Ti, Pi, Ei, or an exponent such as e3"
    )]
    UnknownSuffix {
        /// The text, cut when long.
        text: Box<str>,
        /// What follows the digits, cut when long.
        suffix: Box<str>,
    },
    /// The number is too large to be counted.
    #[error("{text:?} is too large; accepted: at most {limit}")]
    TooLarge {
        /// The text, cut when long.
        text: Box<str>,
        /// The largest number that is counted.
        limit: i64,
    },
    /// The number is below zero.
    #[error("{text:?} is negative; accepted: zero or more")]
    Negative {
        /// The text, cut when long.
        text: Box<str>,
    },
}

impl Quantity {
    /// A quantity from its text.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Quantity(text.into())
    }

    /// The text as it was written.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The amount in thousandths, rounded up to whole thousandths as the API server does with every
    /// amount it stores. Zero or more; at most `i64::MAX` thousands, so that sums can be made before
    /// they are rounded to whole units.
    pub fn milli(&self) -> Result<i128, QuantityError> {
        let (negative, magnitude) = parse(&self.0)?;
        if negative && magnitude > 0 {
            return Err(QuantityError::Negative {
                text: excerpt(&self.0),
            });
        }
        // At most MAX_MILLI, far below the limits of i128.
        Ok(magnitude as i128)
    }

    /// The amount in whole units, rounded up. Zero or more.
    pub fn units(&self) -> Result<i64, QuantityError> {
        // At most MAX_MILLI / 1000, which is i64::MAX.
        self.milli().map(|milli| milli_to_units(milli) as i64)
    }
}

/// Thousandths as whole units, rounded up.
pub fn milli_to_units(milli: i128) -> i128 {
    milli.div_euclid(1000) + i128::from(milli.rem_euclid(1000) > 0)
}

/// The zero that the API server reads where a quantity is `null`.
impl Default for Quantity {
    fn default() -> Self {
        Quantity("0".into())
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Reads text, or a bare number as manifests often have it.
impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct QuantityVisitor;

        impl Visitor<'_> for QuantityVisitor {
            type Value = Quantity;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a quantity such as 500m, 2 or 1.5Gi")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Quantity, E> {
                Ok(Quantity::new(text))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<Quantity, E> {
                Ok(Quantity::new(text))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Quantity, E> {
                Ok(Quantity::new(number.to_string()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Quantity, E> {
                Ok(Quantity::new(number.to_string()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Quantity, E> {
                // The shortest decimal that means this float is what was written, for up to 15
                // digits; it is parsed as decimal from here on.
                if number.is_finite() {
                    Ok(Quantity::new(number.to_string()))
                } else {
                    Err(E::invalid_value(Unexpected::Float(number), &self))
                }
            }
        }

        deserializer.deserialize_any(QuantityVisitor)
    }
}

/// What stands behind the digits: a power of ten, or a power of two.
enum Scale {
    Decimal(i64),
    Binary(u32),
}

/// Sign and magnitude in thousandths, rounded up; at most [`MAX_MILLI`].
fn parse(text: &str) -> Result<(bool, u128), QuantityError> {
    if text.is_empty() {
        return Err(QuantityError::Empty);
    }
    let (negative, unsigned) = match text.as_bytes()[0] {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (whole, rest) = split_digits(unsigned);
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(QuantityError::Malformed {
            text: excerpt(text),
        });
    }
    let Some(scale) = parse_suffix(suffix) else {
        return Err(QuantityError::UnknownSuffix {
            text: excerpt(text),
            suffix: excerpt(suffix),
        });
    };
    let (point_shift, unit) = match scale {
        Scale::Decimal(exponent) => (exponent, 1000),
        Scale::Binary(bits) => (0, 1000_u128 << bits),
    };
    let magnitude = scaled(whole.as_bytes(), fraction.as_bytes(), point_shift, unit);
    match magnitude {
        Some(magnitude) if magnitude <= MAX_MILLI => Ok((negative, magnitude)),
        _ => Err(QuantityError::TooLarge {
            text: excerpt(text),
            limit: i64::MAX,
        }),
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at(digits)
}

fn parse_suffix(suffix: &str) -> Option<Scale> {
    Some(match suffix {
        "" => Scale::Decimal(0),
        "n" => Scale::Decimal(-9),
        "u" => Scale::Decimal(-6),
        "m" => Scale::Decimal(-3),
        "k" => Scale::Decimal(3),
        "M" => Scale::Decimal(6),
        "G" => Scale::Decimal(9),
        "T" => Scale::Decimal(12),
        "P" => Scale::Decimal(15),
        "E" => Scale::Decimal(18),
        "Ki" => Scale::Binary(10),
        "Mi" => Scale::Binary(20),
        "Gi" => Scale::Binary(30),
        "Ti" => Scale::Binary(40),
        "Pi" => Scale::Binary(50),
        "Ei" => Scale::Binary(60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            let (negative, digits) = match exponent.as_bytes().first()? {
                b'-' => (true, &exponent[1..]),
                b'+' => (false, &exponent[1..]),
                _ => (false, exponent),
            };
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            // An exponent beyond i64 is far beyond any number that is counted.
            let exponent = digits.parse::<i64>().unwrap_or(i64::MAX);
            Scale::Decimal(if negative { -exponent } else { exponent })
        }
    })
}

/// `whole.fraction` times ten to the `point_shift`, times `unit`, rounded up. `None` when that is
/// far above [`MAX_MILLI`]. The point is moved, not the number multiplied, so nothing is lost.
fn scaled(whole: &[u8], fraction: &[u8], point_shift: i64, unit: u128) -> Option<u128> {
    let length = (whole.len() + fraction.len()) as i64;
    let point = (whole.len() as i64).saturating_add(point_shift);
    let before = point.clamp(0, length) as usize;
    let digits = || {
        whole
            .iter()
            .chain(fraction)
            .map(|digit| u128::from(digit - b'0'))
    };

    // Digits before the point, then the zeros that the shift adds.
    let mut integer: u128 = 0;
    for digit in digits().take(before) {
        integer = checked_below_limit(integer.checked_mul(10)?.checked_add(digit)?)?;
    }
    let mut zeros = point.saturating_sub(length);
    while integer > 0 && zeros > 0 {
        integer = checked_below_limit(integer.checked_mul(10)?)?;
        zeros -= 1;
    }

    // Digits behind the point, least first, as in multiplying by hand: `carry` is the whole part of
    // what was seen so far, anything left of it only matters for rounding up. With at most
    // `unit` < 2^71 it stays far below 2^128.
    let mut carry: u128 = 0;
    let mut inexact = false;
    for digit in digits().rev().take(length as usize - before) {
        let sum = digit * unit + carry;
        inexact |= !sum.is_multiple_of(10);
        carry = sum / 10;
    }
    let mut zeros = point.saturating_neg();
    while carry > 0 && zeros > 0 {
        inexact |= !carry.is_multiple_of(10);
        carry /= 10;
        zeros -= 1;
    }
    integer
        .checked_mul(unit)?
        .checked_add(carry)?
        .checked_add(u128::from(inexact))
}

/// Keeps the loops short for absurd exponents: no unit is below one thousandth.
fn checked_below_limit(integer: u128) -> Option<u128> {
    (integer <= MAX_MILLI).then_some(integer)
}

/// The text for a message: at most 40 characters of it.
pub(crate) fn excerpt(text: &str) -> Box<str> {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests;
