//! A dump of a cluster: all objects that somebody reads, listed once.

use kube::{
    Api,
    api::{DynamicObject, ListParams},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{Catalog, LiveError, connect_to};
use crate::load::{Document, Source};

/// How many objects a page has.
const PAGE: u32 = 500;

/// All objects of a cluster that somebody reads. A kind that may not be listed is an error.
pub async fn dump(
    kubeconfig: Option<&std::path::Path>,
    context: Option<&str>,
) -> Result<Vec<Document<'static>>, LiveError> {
    let client = connect_to(kubeconfig, context, None).await?;
    let (changes, _) = mpsc::channel(1);
    let catalog = Catalog::new(client.clone(), changes, std::sync::Arc::default());
    let mut documents = Vec::new();
    for (resource, _) in catalog.find().await?.into_values() {
        let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
        let mut page = ListParams::default().limit(PAGE);
        loop {
            let list = api.list(&page).await?;
            for object in list.items {
                let mut object = serde_json::to_value(object).unwrap_or(Value::Null);
                // Lists leave that out of their items.
                object["apiVersion"] = json!(resource.api_version);
                object["kind"] = json!(resource.kind);
                let source = Source::file("the cluster");
                documents.extend(Document::from_value(source, object));
            }
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => break,
            }
        }
    }
    Ok(documents)
}
