//! One object as the API server sent it, not decoded.
//!
//! kube-rs's watcher wants types that tell their name and version and that decode whatever comes. A
//! [`Line`] keeps the text and reads just that much, so that an object which nobody can read costs
//! itself, with its name, and not the watch that brought it.

use std::borrow::Cow;

use gangline::units::Uid;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Resource,
    api::{ApiResource, DynamicObject},
    core::DynamicResourceScope,
};
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
    /// What the watcher asks for: the name and the resource version.
    meta: ObjectMeta,
    pub(super) namespace: Box<str>,
    pub(super) name: Box<str>,
    uid: Box<str>,
}

#[derive(Deserialize)]
struct Envelope {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: Box<str>,
    #[serde(deserialize_with = "api::or_default")]
    namespace: Box<str>,
    #[serde(deserialize_with = "api::or_default")]
    uid: Box<str>,
    #[serde(deserialize_with = "api::or_default")]
    resource_version: Option<String>,
}

impl Line {
    fn new(text: Box<RawValue>) -> Result<Self, serde_json::Error> {
        let Envelope { metadata } = serde_json::from_str(text.get())?;
        Ok(Self {
            text,
            meta: ObjectMeta {
                name: Some(metadata.name.to_string()),
                resource_version: metadata.resource_version,
                ..ObjectMeta::default()
            },
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
        })
    }

    /// The object as the type that it is.
    pub(super) fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.text.get())
    }

    /// Its identity, of an object of this kind.
    pub(super) fn uid(&self, kind: &str) -> Uid {
        member::uid(&self.uid, kind, &self.namespace, &self.name)
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
        Self::new(text).map_err(D::Error::custom)
    }
}

/// How a watcher gets lines: of whole objects or of their metadata alone, from a stream of them or out
/// of a list, which is taken apart before it can be read.
#[derive(Clone, Debug)]
pub(super) struct Watched<const METADATA_ONLY: bool, const LISTED: bool>(pub(super) Line);

impl<'de, const METADATA_ONLY: bool, const LISTED: bool> Deserialize<'de>
    for Watched<METADATA_ONLY, LISTED>
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if LISTED {
            let object = Value::deserialize(deserializer)?;
            let text = serde_json::value::to_raw_value(&object).map_err(D::Error::custom)?;
            Line::new(text).map(Self).map_err(D::Error::custom)
        } else {
            Line::deserialize(deserializer).map(Self)
        }
    }
}

impl<const METADATA_ONLY: bool, const LISTED: bool> Resource for Watched<METADATA_ONLY, LISTED> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::kind(resource)
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::group(resource)
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::version(resource)
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::plural(resource)
    }

    fn metadata_api() -> bool {
        METADATA_ONLY
    }

    fn meta(&self) -> &ObjectMeta {
        &self.0.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.0.meta
    }
}

#[cfg(test)]
mod tests {
    use kube::core::{ObjectList, WatchEvent};

    use super::*;

    const POD: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a-0","namespace":"n",
        "uid":"6ba7b810-9dad-11d1-80b4-00c04fd430c8","resourceVersion":"7"},
        "spec":{"nodeName":"n1"},"status":{"startTime":"1900-01-01T00:00:00Z"}}"#;

    #[test]
    fn an_object_that_cannot_be_decoded_still_has_its_name() {
        let event = format!(r#"{{"type":"ADDED","object":{POD}}}"#);
        let event: WatchEvent<Watched<false, false>> = serde_json::from_str(&event).unwrap();
        let WatchEvent::Added(Watched(line)) = event else {
            panic!("{event:?}");
        };
        assert_eq!((&*line.namespace, &*line.name), ("n", "a-0"));
        assert_eq!(line.meta.resource_version.as_deref(), Some("7"));
        assert_eq!(line.uid("Pod"), Uid(0x6ba7_b810_9dad_11d1_80b4_00c0_4fd4_30c8));
        assert!(line.decode::<api::Pod>().is_err());
    }

    #[test]
    fn a_list_is_read_too_and_its_items_get_their_kind() {
        let pod = POD.replace(r#""kind":"Pod","apiVersion":"v1","#, "");
        let list = format!(
            r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"9"}},
                "items":[{pod}]}}"#
        );
        let list: ObjectList<Watched<false, true>> = serde_json::from_str(&list).unwrap();
        let resource = ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&());
        let document = list.items[0].0.document(&resource).unwrap();
        assert_eq!(document.object(), "Pod n/a-0");
        assert_eq!(document.api_version, "v1");
    }
}
