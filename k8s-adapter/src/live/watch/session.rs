//! One connection of a watch, from its request to its end.
//!
//! Without a version it begins with a list of what is there at this moment, as a stream where the API
//! server can do that, otherwise in pages; then it goes on with what changes. The watch keeps the version
//! up to which everything is known, so that the next connection goes on where this one ended.

use std::{pin::pin, time::Duration};

use futures::StreamExt as _;
use kube::{
    Client, Resource as _,
    api::{DynamicObject, ListParams, WatchParams},
    core::{Request, Status, WatchEvent},
};
use serde::Deserialize;
use tokio::time;

use super::{Line, Wanted, Watch};
use crate::api;

/// The API server ends a watch after this; the next one goes on.
const LASTS: Duration = Duration::from_mins(5);
/// Without a word for this long a connection counts as dead.
const PATIENCE: Duration = Duration::from_mins(5).saturating_add(Duration::from_secs(10));
/// How many objects a page has.
const PAGE: u32 = 500;
/// The annotation of the bookmark at the end of a list that is streamed.
const END_OF_LIST: &str = "k8s.io/initial-events-end";

/// How a connection ended, other than by the API server's leave.
#[derive(Debug)]
pub(super) enum Fault {
    /// The API server has no such kind (any more).
    Absent,
    /// The API server cannot stream a list.
    CannotStream,
    /// What changed since our version is not known any more.
    Expired,
    /// Nobody listens any more.
    Unheard,
    /// Anything else; it may work next time.
    Failed(String),
}

impl From<kube::Error> for Fault {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => (*status).into(),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<Status> for Fault {
    fn from(status: Status) -> Self {
        match status.code {
            404 => Self::Absent,
            410 => Self::Expired,
            code => Self::Failed(format!("{code} {}: {}", status.reason, status.message)),
        }
    }
}

/// A page of a list.
#[derive(Deserialize)]
struct Page {
    metadata: PageMetadata,
    #[serde(default, deserialize_with = "api::or_default")]
    items: Vec<Line>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    resource_version: String,
    #[serde(default)]
    r#continue: String,
}

impl Watch {
    /// Listens until the connection ends. `Ok`: as it should.
    pub(super) async fn session(&mut self, client: &Client) -> Result<(), Fault> {
        if self.version.is_none() && !self.streams {
            self.list_in_pages(client).await?;
        }
        let mut is_listing = self.version.is_none();
        let settings = WatchParams {
            timeout: u32::try_from(LASTS.as_secs()).ok(),
            send_initial_events: is_listing,
            ..WatchParams::default()
        };
        // Without a version the list is what is there now, not what the API server happens to know.
        let version = self.version.as_deref().unwrap_or_default();
        let request = match self.wanted {
            Wanted::Metadata => self.request().watch_metadata(&settings, version),
            _ => self.request().watch(&settings, version),
        };
        let request = request.map_err(kube::Error::BuildRequest)?;
        if is_listing {
            self.begin_list();
        }
        let events = match client.request_events::<Line>(request).await {
            // How an API server says that it does not know how to send a list that way.
            Err(kube::Error::Api(status)) if is_listing && matches!(status.code, 400 | 422) => {
                return Err(Fault::CannotStream);
            }
            events => events?,
        };
        let mut events = pin!(events);
        while let Ok(Some(event)) = time::timeout(PATIENCE, events.next()).await {
            let event = event?;
            self.hear();
            let version = match event {
                WatchEvent::Added(line) | WatchEvent::Modified(line) => {
                    self.take(&line).await?;
                    line.version().to_owned()
                }
                WatchEvent::Deleted(line) => {
                    self.lose(&line).await?;
                    line.version().to_owned()
                }
                WatchEvent::Bookmark(bookmark) => {
                    if is_listing && bookmark.metadata.annotations.contains_key(END_OF_LIST) {
                        is_listing = false;
                        self.end_list().await?;
                    }
                    bookmark.metadata.resource_version
                }
                WatchEvent::Error(status) => return Err((*status).into()),
            };
            if !is_listing {
                self.version = Some(version);
            }
        }
        Ok(())
    }

    async fn list_in_pages(&mut self, client: &Client) -> Result<(), Fault> {
        self.begin_list();
        let mut settings = ListParams {
            limit: Some(PAGE),
            ..ListParams::default()
        };
        loop {
            let request = match self.wanted {
                Wanted::Metadata => self.request().list_metadata(&settings),
                _ => self.request().list(&settings),
            };
            let request = request.map_err(kube::Error::BuildRequest)?;
            let page = time::timeout(PATIENCE, client.request::<Page>(request)).await;
            let page = page.map_err(|elapsed| Fault::Failed(elapsed.to_string()))??;
            self.hear();
            for line in &page.items {
                self.take(line).await?;
            }
            if page.metadata.r#continue.is_empty() {
                self.end_list().await?;
                self.version = Some(page.metadata.resource_version);
                return Ok(());
            }
            settings.continue_token = Some(page.metadata.r#continue);
        }
    }

    fn request(&self) -> Request {
        Request::new(DynamicObject::url_path(&self.resource, None))
    }
}
