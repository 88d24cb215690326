//! What all objects have: name, labels, owners, times.

use std::fmt;

use gangline::units::Nanos;
use serde::{
    Deserialize,
    de::{Deserializer, Error, Unexpected, Visitor},
};

use super::{Labels, or_default};

/// The `metadata` of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectMeta {
    /// Unique in its namespace; empty when only `generate_name` is given.
    #[serde(deserialize_with = "or_default")]
    pub name: Box<str>,
    /// Empty for objects without a namespace, and in manifests that leave it open.
    #[serde(deserialize_with = "or_default")]
    pub namespace: Box<str>,
    /// Empty in manifests.
    #[serde(deserialize_with = "or_default")]
    pub uid: Box<str>,
    /// The API server's word for this state of the object; empty in manifests.
    #[serde(deserialize_with = "or_default")]
    pub resource_version: Box<str>,
    /// Start of the name that the API server completes.
    #[serde(deserialize_with = "or_default")]
    pub generate_name: Box<str>,
    /// Labels.
    pub labels: Labels,
    /// Annotations, without `kubectl`'s copy of the whole object.
    #[serde(deserialize_with = "annotations")]
    pub annotations: Labels,
    /// When it was made.
    pub creation_timestamp: Option<Timestamp>,
    /// Set once it is being deleted.
    pub deletion_timestamp: Option<Timestamp>,
    /// Who made it.
    #[serde(deserialize_with = "or_default")]
    pub owner_references: Vec<OwnerReference>,
}

impl ObjectMeta {
    /// The namespace, or `default` where a manifest leaves it open.
    pub fn namespace_or_default(&self) -> &str {
        if self.namespace.is_empty() {
            "default"
        } else {
            &self.namespace
        }
    }

    /// The owner that controls the object, if any.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references
            .iter()
            .find(|owner| owner.controller == Some(true))
    }
}

/// An owner of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OwnerReference {
    /// Group and version of the owner.
    #[serde(deserialize_with = "or_default")]
    pub api_version: Box<str>,
    /// Kind of the owner.
    #[serde(deserialize_with = "or_default")]
    pub kind: Box<str>,
    /// Name of the owner, in the same namespace or without one.
    #[serde(deserialize_with = "or_default")]
    pub name: Box<str>,
    /// Identity of the owner.
    #[serde(deserialize_with = "or_default")]
    pub uid: Box<str>,
    /// Whether it is the one that controls the object.
    pub controller: Option<bool>,
}

/// A point of time: RFC 3339 text in objects, nanoseconds since 1970 here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub Nanos);

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TimestampVisitor;

        impl Visitor<'_> for TimestampVisitor {
            type Value = Timestamp;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a time from 1970 to 2554 such as 2026-01-31T12:00:00Z")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Timestamp, E> {
                let time = text.parse::<jiff::Timestamp>().ok();
                let nanos = time.and_then(|time| u64::try_from(time.as_nanosecond()).ok());
                match nanos {
                    Some(nanos) => Ok(Timestamp(Nanos(nanos))),
                    None => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }

        deserializer.deserialize_str(TimestampVisitor)
    }
}

/// Annotations without `kubectl`'s copy of the whole object, which nobody reads and which can be
/// half of a dump.
fn annotations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Labels, D::Error> {
    const COPY: &str = "kubectl.kubernetes.io/last-applied-configuration";
    Labels::deserialize_without(deserializer, COPY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_of_a_real_object_is_read() {
        let meta: ObjectMeta = serde_json::from_str(
            r#"{"name": "web-0", "namespace": "prod", "uid": "u", "generateName": "web-",
                "creationTimestamp": "2026-01-31T12:00:00Z", "deletionTimestamp": null,
                "labels": {"app": "web"}, "managedFields": [{"manager": "kubectl"}],
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web",
                    "uid": "o", "controller": true, "blockOwnerDeletion": true}]}"#,
        )
        .unwrap();
        assert_eq!(
            meta.creation_timestamp,
            Some(Timestamp(Nanos::from_secs(1_769_860_800)))
        );
        assert_eq!(meta.deletion_timestamp, None);
        assert_eq!(
            meta.annotations
                .iter()
                .map(|(key, _)| key)
                .collect::<Vec<_>>(),
            ["a"]
        );
        assert_eq!(
            meta.controller().map(|owner| &*owner.kind),
            Some("StatefulSet")
        );
    }

    #[test]
    fn times_with_fractions_and_offsets_are_the_same_instant() {
        let parse = |text: &str| serde_json::from_str::<Timestamp>(&format!("\"{text}\""));
        let noon = parse("2026-01-31T12:00:00Z").unwrap();
        assert_eq!(parse("2026-01-31T13:00:00+01:00").unwrap(), noon);
        assert_eq!(
            parse("2026-01-31T12:00:00.000001Z").unwrap().0.0,
            noon.0.0 + 1_000
        );
        for bad in [
            "",
            "yesterday",
            "1969-12-31T23:59:59Z",
            "9999-01-01T00:00:00Z",
        ] {
            let message = parse(bad).unwrap_err().to_string();
            assert!(message.contains("expected a time from 1970"), "{message}");
        }
    }
}
