//! Integers that carry their unit. No heap, no floats, no silent overflow.
//!
//! Arithmetic is by `checked_*` and `saturating_*` only, so that an absurd input cannot wrap a
//! ledger. Conversions between units are by name.

use core::fmt;

macro_rules! unit {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(transparent))]
        pub struct $name(pub $inner);

        impl $name {
            /// Nothing of it.
            pub const ZERO: Self = Self(0);
            /// The largest value.
            pub const MAX: Self = Self(<$inner>::MAX);

            /// Sum, or `None` when it does not fit.
            pub const fn checked_add(self, other: Self) -> Option<Self> {
                match self.0.checked_add(other.0) {
                    Some(sum) => Some(Self(sum)),
                    None => None,
                }
            }

            /// Difference, or `None` when it does not fit.
            pub const fn checked_sub(self, other: Self) -> Option<Self> {
                match self.0.checked_sub(other.0) {
                    Some(difference) => Some(Self(difference)),
                    None => None,
                }
            }

            /// Multiple, or `None` when it does not fit.
            pub const fn checked_mul(self, times: $inner) -> Option<Self> {
                match self.0.checked_mul(times) {
                    Some(product) => Some(Self(product)),
                    None => None,
                }
            }

            /// Sum, or the largest value.
            #[must_use]
            pub const fn saturating_add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }

            /// Difference, or the smallest value.
            #[must_use]
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }
    };
}

unit! {
    /// Processor time in thousandths of a core.
    MilliCpu(i64)
}
unit! {
    /// Memory in bytes.
    Bytes(i64)
}
unit! {
    /// Memory in units of 2^20 bytes.
    Mib(i64)
}
unit! {
    /// A span or a point of time in nanoseconds. Points are on a clock that the caller chose (for
    /// Kubernetes objects: since 1970); the core only ever compares and subtracts them.
    Nanos(u64)
}

impl Mib {
    /// The same in bytes, or `None` above 2^63 - 1.
    pub const fn to_bytes(self) -> Option<Bytes> {
        match self.0.checked_mul(1 << 20) {
            Some(bytes) => Some(Bytes(bytes)),
            None => None,
        }
    }
}

impl Nanos {
    /// Whole seconds as nanoseconds; saturates after 584 years.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// Milliseconds as nanoseconds; saturates after 584 years.
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self(milliseconds.saturating_mul(1_000_000))
    }

    /// Whole seconds, rounded down.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1_000_000_000
    }
}

/// Shows a span the way people write it: `1h5m`, `90s` as `1m30s`, `250ms`. Rounded down: to
/// seconds from one second on, to milliseconds below.
impl fmt::Display for Nanos {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.as_secs();
        if seconds == 0 {
            return write!(formatter, "{}ms", self.0 / 1_000_000);
        }
        for (value, suffix) in [
            (seconds / 86_400, "d"),
            (seconds / 3_600 % 24, "h"),
            (seconds / 60 % 60, "m"),
        ] {
            if value > 0 {
                write!(formatter, "{value}{suffix}")?;
            }
        }
        if !seconds.is_multiple_of(60) {
            write!(formatter, "{}s", seconds % 60)?;
        }
        Ok(())
    }
}

/// Identity of an object: the 128 bits of its Kubernetes uid, or any number the caller chooses.
///
/// Text formats hold it as a UUID; any other text stands for what [`Uid::from_text`] makes of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(pub u128);

impl Uid {
    /// The identity that a text stands for: the bits of a UUID when it is one, otherwise a fixed
    /// hash of the text (FNV-1a, 128 bit), so that hand-written objects need no UUIDs.
    pub const fn from_text(text: &str) -> Self {
        let bytes = text.as_bytes();
        if let Some(bits) = parse_uuid(bytes) {
            return Self(bits);
        }
        let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        let mut index = 0;
        while index < bytes.len() {
            hash ^= bytes[index] as u128;
            hash = hash.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
            index += 1;
        }
        Self(hash)
    }
}

const fn parse_uuid(bytes: &[u8]) -> Option<u128> {
    if bytes.len() != 36 {
        return None;
    }
    let mut bits: u128 = 0;
    let mut index = 0;
    while index < 36 {
        let byte = bytes[index];
        if matches!(index, 8 | 13 | 18 | 23) {
            if byte != b'-' {
                return None;
            }
        } else {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                b'A'..=b'F' => byte - b'A' + 10,
                _ => return None,
            };
            bits = bits << 4 | digit as u128;
        }
        index += 1;
    }
    Some(bits)
}

#[cfg(feature = "serde")]
impl serde::Serialize for Uid {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_u128(self.0)
        }
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Uid {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct UidVisitor;

        impl serde::de::Visitor<'_> for UidVisitor {
            type Value = Uid;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a UUID, another name, or a number")
            }

            fn visit_str<E>(self, text: &str) -> Result<Uid, E> {
                Ok(Uid::from_text(text))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Uid, E> {
                Ok(Uid(number.into()))
            }

            fn visit_u128<E>(self, number: u128) -> Result<Uid, E> {
                Ok(Uid(number))
            }
        }

        if deserializer.is_human_readable() {
            deserializer.deserialize_any(UidVisitor)
        } else {
            deserializer.deserialize_u128(UidVisitor)
        }
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0;
        write!(
            formatter,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            bits >> 96,
            bits >> 80 & 0xffff,
            bits >> 64 & 0xffff,
            bits >> 48 & 0xffff,
            bits & 0xffff_ffff_ffff
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_survives_the_round_trip_and_words_get_distinct_ids() {
        extern crate std;
        let text = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
        assert_eq!(std::format!("{}", Uid::from_text(text)), text);
        assert_ne!(Uid::from_text("p-0"), Uid::from_text("p-1"));
        // One character off is a word, not a UUID.
        assert_ne!(
            Uid::from_text("6ba7b810-9dad-11d1-80b4-00c04fd430cg").0 >> 96,
            0x6ba7_b810
        );
    }

    #[test]
    fn only_the_usual_form_of_a_uuid_is_one() {
        let uid = Uid::from_text("6ba7b810-9dad-11d1-80b4-00c04fd430c8");
        assert_eq!(uid, Uid::from_text("6BA7B810-9DAD-11D1-80B4-00C04FD430C8"));
        for other in [
            "6ba7b8109dad11d180b400c04fd430c8",
            "6ba7b810-9dad-11d1-80b4-00c04fd430c",
            "6ba7b8109-dad-11d1-80b4-00c04fd430c8",
            "6ba7b810-9dad-11d1-80b4+00c04fd430c8",
        ] {
            assert_ne!(Uid::from_text(other), uid, "{other}");
        }
    }

    /// Identities end up in snapshots and decision hashes: they must never change. The values are
    /// the published ones of 128-bit FNV-1a.
    #[test]
    fn words_keep_their_identity() {
        assert_eq!(
            Uid::from_text("").0,
            0x6c62_272e_07bb_0142_62b8_2175_6295_c58d
        );
        assert_eq!(
            Uid::from_text("a").0,
            0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964
        );
    }

    #[test]
    fn sums_that_do_not_fit_are_none_or_saturate() {
        assert_eq!(MilliCpu(i64::MAX).checked_add(MilliCpu(1)), None);
        assert_eq!(
            MilliCpu(i64::MAX).saturating_add(MilliCpu(1)),
            MilliCpu::MAX
        );
        assert_eq!(Nanos(1).saturating_sub(Nanos(2)), Nanos::ZERO);
        assert_eq!(Mib(3).to_bytes(), Some(Bytes(3 << 20)));
        assert_eq!(Mib(i64::MAX).to_bytes(), None);
        assert_eq!(Nanos::from_secs(u64::MAX), Nanos::MAX);
        assert_eq!(Nanos::from_millis(u64::MAX), Nanos::MAX);
        assert_eq!(Bytes(i64::MIN).checked_sub(Bytes(1)), None);
        assert_eq!(Bytes(i64::MIN).saturating_sub(Bytes(1)), Bytes(i64::MIN));
        assert_eq!(MilliCpu(i64::MAX).checked_mul(2), None);
        assert_eq!(Nanos::ZERO.checked_sub(Nanos(1)), None);
    }

    #[test]
    fn sums_that_fit_are_exact() {
        assert_eq!(MilliCpu(-3).checked_add(MilliCpu(5)), Some(MilliCpu(2)));
        assert_eq!(MilliCpu(3).checked_sub(MilliCpu(5)), Some(MilliCpu(-2)));
        assert_eq!(MilliCpu(-3).checked_mul(5), Some(MilliCpu(-15)));
        assert_eq!(Bytes(3).saturating_add(Bytes(5)), Bytes(8));
        assert_eq!(Nanos(5).saturating_sub(Nanos(3)), Nanos(2));
        assert_eq!(Nanos::from_millis(1_999).as_secs(), 1);
        assert_eq!(Mib(-1).to_bytes(), Some(Bytes(-1 << 20)));
    }

    #[test]
    fn spans_read_as_people_write_them() {
        extern crate std;
        let shown = |nanos| std::format!("{nanos}");
        assert_eq!(shown(Nanos::from_secs(90)), "1m30s");
        assert_eq!(shown(Nanos::from_secs(3600)), "1h");
        assert_eq!(shown(Nanos::from_secs(86_400 + 61)), "1d1m1s");
        assert_eq!(shown(Nanos::from_millis(250)), "250ms");
        assert_eq!(shown(Nanos::ZERO), "0ms");
        assert_eq!(shown(Nanos::from_millis(1_999)), "1s");
        assert_eq!(shown(Nanos(999_999_999)), "999ms");
        assert_eq!(shown(Nanos::MAX), "213503d23h34m33s");
    }
}
