//! Names of images, as numbers: nobody needs to know more of them than whether two are the same.

use std::fmt;

use gangline::units::Uid;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// The name of an image with its tag or digest, hashed; 0 is none. As kube-scheduler compares them: a name
/// without a tag means `latest`, and no registry is added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageName(pub u64);

impl ImageName {
    /// The image of this name.
    pub fn of(name: &str) -> Self {
        if name.is_empty() {
            return Self::default();
        }
        let last_part = name.rsplit_once('/').map_or(name, |(_, part)| part);
        let hash = if last_part.contains(':') {
            Uid::from_text(name)
        } else {
            Uid::from_text(&format!("{name}:latest"))
        };
        Self((hash.0 as u64).max(1))
    }
}

impl<'de> Deserialize<'de> for ImageName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;

        impl Visitor<'_> for NameVisitor {
            type Value = ImageName;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("the name of an image")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<ImageName, E> {
                Ok(ImageName::of(name))
            }
        }

        deserializer.deserialize_str(NameVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_a_tag_means_the_latest() {
        let same = |one: &str, other: &str| ImageName::of(one) == ImageName::of(other);
        assert!(same("busybox", "busybox:latest"));
        assert!(same("host:5000/a", "host:5000/a:latest"));
        assert!(!same("host:5000/a", "host:5000/a:1"));
        assert!(!same("a@sha256:12", "a:latest"));
        assert_eq!(ImageName::of(""), ImageName::default());
        assert!(ImageName::of("a").0 > 0);
    }
}
