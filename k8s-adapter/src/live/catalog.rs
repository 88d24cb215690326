//! Which kinds of objects there are to watch.
//!
//! The kinds that somebody reads are known ([`kinds`]); which of them the API server has is
//! asked once at the start, and again when a `CustomResourceDefinition` of one of their groups
//! changes. Each kind that is there gets a [`Watch`]. One that goes away ends its watch and is looked for again.
//! Built-in kinds come and go only with another API server, so those that are missing are looked for
//! from time to time. Nothing here knows what is done with the objects.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Client,
    api::{ApiResource, GroupVersionKind},
};
use tokio::{
    sync::mpsc::{self, Sender},
    task::JoinSet,
    time,
};
use tracing::{error, info, warn};

use super::{
    metrics::Metrics,
    watch::{Change, Wanted, Watch},
};
use crate::{
    intake::{self, Kind},
    world::kinds::{self, Target},
};

/// How long to wait before the API server is asked again after it did not answer.
const PAUSE: Duration = Duration::from_secs(1);
/// So often a kind that is about to come is looked for at once.
const ATTEMPTS: u32 = 10;
/// How often built-in kinds that are missing are looked for: an API server that gets them is a new one.
const LOOK_AGAIN: Duration = Duration::from_mins(5);

/// The kinds that are read, and those of them that are watched.
pub(super) struct Catalog {
    client: Client,
    changes: Sender<Change>,
    metrics: Arc<Metrics>,
    wanted: Vec<(Kind, Wanted)>,
    watched: BTreeSet<Key>,
    watches: JoinSet<Key>,
}

/// Group and kind.
pub(super) type Key = (&'static str, &'static str);

const fn key(kind: &Kind) -> Key {
    (kind.group, kind.kind)
}

impl Catalog {
    pub(super) fn new(client: Client, changes: Sender<Change>, metrics: Arc<Metrics>) -> Self {
        let dialects = intake::dialects();
        let wanted = kinds::all(&dialects).filter_map(|(kind, target)| {
            let wanted = match target {
                Target::Pod => Wanted::Pods,
                Target::Node => Wanted::Nodes,
                Target::Namespace | Target::Workload(_) => Wanted::Metadata,
                Target::PriorityClass | Target::Volumes(_) | Target::Group(_) => Wanted::Objects,
                Target::Nobody => return None,
            };
            Some((kind, wanted))
        });
        Self {
            client,
            changes,
            metrics,
            wanted: wanted.collect(),
            watched: BTreeSet::new(),
            watches: JoinSet::new(),
        }
    }

    /// Watches all kinds that are there, now and later. Ends when nobody listens any more.
    pub(super) async fn keep(mut self) {
        let mut found = loop {
            match self.find().await {
                Ok(found) => break found,
                Err(error) => {
                    warn!("the API server does not tell which kinds it has: {error}");
                    time::sleep(PAUSE).await;
                }
            }
        };
        let awaited = Change::Awaited(found.len());
        if self.changes.send(awaited).await.is_err() {
            return;
        }
        let (sender, mut definitions) = mpsc::channel(1);
        let resource = ApiResource::erase::<CustomResourceDefinition>(&());
        let watch = Watch::new(resource, Wanted::Metadata, sender, None);
        tokio::spawn(watch.follow(self.client.clone()));
        // A definition is there before its kind is.
        let mut attempts = 0;
        loop {
            self.watch(found);
            let absent = self.wanted.len() > self.watched.len();
            let pause = if attempts > 0 { PAUSE } else { LOOK_AGAIN };
            let looks = tokio::select! {
                () = self.changes.closed() => return,
                Some(ended) = self.watches.join_next() => match ended {
                    Ok(key) => {
                        self.watched.remove(&key);
                        attempts = ATTEMPTS;
                        false
                    }
                    // Which kind it was cannot be told, and to go on without it would be to decide on
                    // what is not so any more.
                    Err(error) => {
                        error!("a watch failed: {error}");
                        return;
                    }
                },
                Some(change) = definitions.recv() => {
                    let concerns = self.concerns(&change);
                    if concerns {
                        attempts = ATTEMPTS;
                    }
                    concerns && absent
                }
                () = time::sleep(pause), if absent => {
                    attempts = attempts.saturating_sub(1);
                    true
                }
            };
            found = if looks {
                self.find().await.unwrap_or_else(|error| {
                    warn!("the API server does not tell which kinds it has: {error}");
                    BTreeMap::new()
                })
            } else {
                BTreeMap::new()
            };
        }
    }

    /// Whether a definition that changed may be that of a kind that is read.
    fn concerns(&self, change: &Change) -> bool {
        let name = match change {
            Change::Object(definition) => definition.name.as_str(),
            Change::ObjectGone { name, .. } => name,
            _ => return false,
        };
        // A definition is called after the plural and the group of its kind.
        let group = name.split_once('.').map_or("", |(_, group)| group);
        self.wanted.iter().any(|(kind, _)| kind.group == group)
    }

    /// The kinds that are there and not watched yet.
    pub(super) async fn find(&self) -> Result<BTreeMap<Key, (ApiResource, Wanted)>, kube::Error> {
        let mut found = BTreeMap::new();
        let mut lists: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for (kind, wanted) in &self.wanted {
            if self.watched.contains(&key(kind)) {
                continue;
            }
            for version in kind.versions {
                let name = GroupVersionKind::gvk(kind.group, version, kind.kind);
                let api_version = name.api_version();
                if !lists.contains_key(&api_version) {
                    lists.insert(api_version.clone(), self.list(&api_version).await?);
                }
                let resources = lists.get(&api_version).into_iter().flatten();
                let plural = resources
                    .filter(|(of, _)| of == kind.kind)
                    .map(|(_, plural): &(String, String)| plural)
                    .find(|plural| !plural.contains('/'));
                if let Some(plural) = plural {
                    let resource = ApiResource::from_gvk_with_plural(&name, plural);
                    found.insert(key(kind), (resource, *wanted));
                    break;
                }
            }
        }
        Ok(found)
    }

    /// Kinds and plurals of an API version; none when the API server does not have it.
    async fn list(&self, api_version: &str) -> Result<Vec<(String, String)>, kube::Error> {
        let listed = if api_version.contains('/') {
            self.client.list_api_group_resources(api_version).await
        } else {
            self.client.list_core_api_resources(api_version).await
        };
        match listed {
            Ok(list) => {
                let resources = list.resources.into_iter();
                Ok(resources
                    .map(|resource| (resource.kind, resource.name))
                    .collect())
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn watch(&mut self, found: BTreeMap<Key, (ApiResource, Wanted)>) {
        for (key, (resource, wanted)) in found {
            info!(
                kind = resource.kind,
                api_version = resource.api_version,
                "watching"
            );
            let heard = self.metrics.watch(&resource.group, &resource.kind);
            let watch = Watch::new(resource, wanted, self.changes.clone(), Some(heard));
            let client = self.client.clone();
            self.watched.insert(key);
            self.watches.spawn(async move {
                watch.follow(client).await;
                key
            });
        }
    }
}
