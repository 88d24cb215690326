//! One object as the API server sent it, not decoded.
//!
//! A [`Line`] keeps the text and reads only the names and the version, so that an object which nobody
//! can read costs itself, with its name, and not the watch that brought it.

use gangline::units::Uid;
use kube::api::ApiResource;
use serde::{
    Deserialize,
    de::{DeserializeOwned, Deserializer, Error},
};
use serde_json::{Map, Value, value::RawValue};

use crate::{
    api,
    load::{Document, Source},
    member,
};

/// Where objects come from, for complaints.
const SOURCE: &str = "the cluster";

/// One object.
#[derive(Clone, Debug)]
pub(super) struct Line {
    text: Box<RawValue>,
    names: Names,
}

#[derive(Deserialize)]
struct Envelope {
    metadata: Names,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Names {
    #[serde(deserialize_with = "api::or_default")]
    name: Box<str>,
    #[serde(deserialize_with = "api::or_default")]
    namespace: Box<str>,
    #[serde(deserialize_with = "api::or_default")]
    uid: Box<str>,
    #[serde(deserialize_with = "api::or_default")]
    resource_version: String,
}

impl Line {
    /// Namespace and name; the namespace is empty for objects without one.
    pub(super) fn name(&self) -> (Box<str>, Box<str>) {
        (self.names.namespace.clone(), self.names.name.clone())
    }

    /// The version of the cluster's state that it is of.
    pub(super) fn version(&self) -> &str {
        &self.names.resource_version
    }

    /// Its identity, of an object of this kind.
    pub(super) fn uid(&self, kind: &str) -> Uid {
        member::uid(
            &self.names.uid,
            kind,
            &self.names.namespace,
            &self.names.name,
        )
    }

    /// The object as the type that it is.
    pub(super) fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.text.get())
    }

    /// The object for readers that know its kind only when they see it. Lists leave kind and version of
    /// their items out, and metadata alone has one of its own.
    pub(super) fn document(
        &self,
        resource: &ApiResource,
    ) -> Result<Document<'static>, serde_json::Error> {
        let mut fields: Map<String, Value> = self.decode()?;
        fields.insert("apiVersion".into(), resource.api_version.clone().into());
        fields.insert("kind".into(), resource.kind.clone().into());
        let document = Document::from_value(Source::file(SOURCE), fields.into());
        document.ok_or_else(|| serde_json::Error::custom("no kind"))
    }
}

impl<'de> Deserialize<'de> for Line {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let envelope: Envelope = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        let names = envelope.metadata;
        Ok(Self { text, names })
    }
}

#[cfg(test)]
mod tests {
    use kube::core::WatchEvent;

    use super::*;

    #[test]
    fn an_object_that_cannot_be_decoded_still_has_its_name() {
        let event = r#"{"type":"ADDED","object":{"metadata":{"name":"a-0","namespace":"n",
            "uid":"6ba7b810-9dad-11d1-80b4-00c04fd430c8","resourceVersion":"7"},
            "spec":{"nodeName":"n1"},"status":{"startTime":"1900-01-01T00:00:00Z"}}}"#;
        let event: WatchEvent<Line> = serde_json::from_str(event).unwrap();
        let WatchEvent::Added(line) = event else {
            panic!("{event:?}");
        };
        assert_eq!(line.name(), ("n".into(), "a-0".into()));
        assert_eq!(line.version(), "7");
        let uid = Uid(0x6ba7_b810_9dad_11d1_80b4_00c0_4fd4_30c8);
        assert_eq!(line.uid("Pod"), uid);
        assert!(line.decode::<api::Pod>().is_err());

        let pod = ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&());
        let document = line.document(&pod).unwrap();
        assert_eq!(
            (&*document.object(), &*document.api_version),
            ("Pod n/a-0", "v1")
        );
    }
}
