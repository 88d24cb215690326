//! Which of several instances schedules: the one that holds the lease.
//!
//! The lease is an object of the cluster that its holder renews. Others take it when they have not seen
//! it change for as long as its holder said it lasts, by their own clocks: no clocks of two machines are
//! compared. The holder counts from before it asked for the renewal, and sends nothing that could still
//! be under way when the lease ends ([`Fence`]): so it has stopped writing before anybody else starts. Who
//! cannot renew in time ends; who starts knows nothing yet, so its first list is newer than its lease.
//!
//! Why not a crate: the kept ones compare the times that other machines wrote with their own clock.

use std::{env, process, sync::Arc, time::Duration};

use k8s_openapi::{
    api::coordination::v1::{Lease as Object, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{Api, Client, api::PostParams};
use tokio::{
    sync::{OwnedRwLockReadGuard, RwLock, watch},
    time::{self, Instant},
};
use tracing::{debug, info, warn};

use super::clocks::Clocks;

#[cfg(test)]
mod tests;

/// How often an instance that does not hold the lease looks at it.
const LOOK: Duration = Duration::from_secs(2);
/// An answer that takes longer counts as lost, however long the lease lasts.
const PATIENCE: Duration = Duration::from_secs(15);

/// Which lease, and how long it lasts without renewal.
#[derive(Clone, Debug)]
pub struct Election {
    /// Its namespace; `None` is that of the service account, or the context's.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// How long it lasts.
    pub lasts: Duration,
}

/// A lease that we want, or have.
pub(super) struct Lease {
    api: Api<Object>,
    name: String,
    identity: String,
    lasts: Duration,
    /// The object as we wrote it last.
    ours: Option<Object>,
    until: watch::Sender<Instant>,
    writes: Arc<RwLock<()>>,
    clocks: Clocks,
}

/// Whether we may write.
#[derive(Clone, Debug)]
pub(super) struct Fence {
    /// Until when the lease is ours for certain; without one there is nobody else.
    until: Option<watch::Receiver<Instant>>,
    /// How long an answer may take: longer counts as lost.
    patience: Duration,
    /// Read by each write as long as it lasts.
    writes: Arc<RwLock<()>>,
}

/// One request that changes something may be under way.
#[derive(Debug)]
pub(super) struct Pass {
    /// When it must be over, answered or not: before the lease can be anybody else's.
    pub(super) ends: Instant,
    /// As long as it is there, the lease is not given back.
    _write: OwnedRwLockReadGuard<()>,
}

impl Fence {
    /// For an instance that is the only one.
    pub(super) fn open() -> Self {
        Self {
            until: None,
            patience: PATIENCE,
            writes: Arc::default(),
        }
    }

    /// How long an answer may take.
    pub(super) const fn patience(&self) -> Duration {
        self.patience
    }

    /// Waits until something that is sent now is answered, or given up, while the lease is ours.
    pub(super) async fn pass(&self) -> Pass {
        loop {
            if let Some(until) = &self.until {
                let mut until = until.clone();
                if until.wait_for(|until| self.fits(*until)).await.is_err() {
                    // Nobody will renew it any more: the process is about to end.
                    std::future::pending::<()>().await;
                }
            }
            let write = Arc::clone(&self.writes).read_owned().await;
            let ends = Instant::now() + self.patience;
            // It may have been given back meanwhile.
            if self
                .until
                .as_ref()
                .is_none_or(|until| ends < *until.borrow())
            {
                return Pass {
                    ends,
                    _write: write,
                };
            }
        }
    }

    fn fits(&self, until: Instant) -> bool {
        Instant::now() + self.patience < until
    }
}

impl Lease {
    pub(super) fn new(client: Client, election: &Election, clocks: Clocks) -> Self {
        let namespace = election.namespace.as_deref();
        let namespace = namespace.unwrap_or(client.default_namespace()).to_owned();
        let host = env::var("POD_NAME").or_else(|_| env::var("HOSTNAME"));
        let host = host.unwrap_or_else(|_| "gangline".into());
        let started = jiff::Timestamp::now().as_nanosecond();
        Self {
            api: Api::namespaced(client, &namespace),
            name: election.name.clone(),
            identity: format!("{host}_{}_{started:x}", process::id()),
            lasts: election.lasts,
            ours: None,
            until: watch::Sender::new(Instant::now()),
            writes: Arc::default(),
            clocks,
        }
    }

    /// How long an answer may take: three attempts to renew it fit into the lease.
    fn patience(&self) -> Duration {
        PATIENCE.min(self.lasts / 3)
    }

    /// What keeps those who write within it.
    pub(super) fn fence(&self) -> Fence {
        Fence {
            until: Some(self.until.subscribe()),
            patience: self.patience(),
            writes: Arc::clone(&self.writes),
        }
    }

    /// Waits until the lease is ours.
    pub(super) async fn acquire(&mut self) {
        info!(
            lease = self.name,
            identity = self.identity,
            "waiting for the lease"
        );
        // The version of the lease that was seen last, and since when it has not changed.
        let mut seen: Option<(Option<String>, Instant)> = None;
        let mut said = String::new();
        loop {
            match self.try_acquire(&mut seen).await {
                Ok(true) => {
                    info!(lease = self.name, "the lease is ours");
                    return;
                }
                Ok(false) => said.clear(),
                Err(error) => {
                    let message = error.to_string();
                    if message != said {
                        warn!(lease = self.name, "the lease cannot be had: {message}");
                        said = message;
                    }
                }
            }
            time::sleep(LOOK.min(self.lasts / 3)).await;
        }
    }

    async fn try_acquire(
        &mut self,
        seen: &mut Option<(Option<String>, Instant)>,
    ) -> Result<bool, kube::Error> {
        let found = self.within(self.api.get_opt(&self.name)).await?;
        let Some(found) = found else {
            return self.write(None).await;
        };
        self.clocks.read(found.metadata.annotations.as_ref());
        let spec = found.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.unwrap_or_default();
        if !holder.is_empty() && holder != self.identity {
            let version = &found.metadata.resource_version;
            let since = match seen {
                Some((known, since)) if known == version => *since,
                _ => {
                    debug!(holder, "somebody else holds the lease");
                    let now = Instant::now();
                    *seen = Some((version.clone(), now));
                    now
                }
            };
            let seconds = u64::try_from(spec.lease_duration_seconds.unwrap_or(0)).unwrap_or(0);
            if since.elapsed() <= Duration::from_secs(seconds) {
                return Ok(false);
            }
            info!(holder, "the lease has not been renewed: taking it");
        }
        self.write(Some(found)).await
    }

    /// Renews the lease until that fails. The lease is not ours any more then.
    pub(super) async fn keep(&mut self) {
        loop {
            time::sleep(self.lasts / 6).await;
            loop {
                match self.write(self.ours.clone()).await {
                    Ok(true) => break,
                    // Somebody else wrote it, or we did and never heard of it.
                    Ok(false) => match self.within(self.api.get_opt(&self.name)).await {
                        Ok(Some(found)) if self.holds(&found) => self.ours = Some(found),
                        Ok(_) => return,
                        Err(error) => warn!("the lease cannot be read: {error}"),
                    },
                    Err(error) => warn!("the lease cannot be renewed: {error}"),
                }
                if Instant::now() >= *self.until.borrow() {
                    return;
                }
                time::sleep(self.lasts / 30).await;
            }
        }
    }

    /// Gives the lease back, so that the next one need not wait. What is being written is over by then, and
    /// nothing is written any more.
    pub(super) async fn release(mut self) {
        let Some(mut ours) = self.ours.take() else {
            return;
        };
        self.until.send_replace(Instant::now());
        let _none = self.writes.write().await;
        self.clocks.annotate(&mut ours.metadata.annotations);
        let spec = ours.spec.get_or_insert_default();
        spec.holder_identity = Some(String::new());
        let settings = PostParams::default();
        let replaced = self.api.replace(&self.name, &settings, &ours);
        match self.within(replaced).await {
            Ok(_) => info!(lease = self.name, "the lease is given back"),
            Err(error) => warn!("the lease cannot be given back and will run out: {error}"),
        }
    }

    fn holds(&self, object: &Object) -> bool {
        let holder = object
            .spec
            .as_ref()
            .and_then(|spec| spec.holder_identity.as_ref());
        holder == Some(&self.identity)
    }

    /// Writes the lease as ours, over what was found; false: it is not that any more.
    async fn write(&mut self, found: Option<Object>) -> Result<bool, kube::Error> {
        let before = Instant::now();
        let now = MicroTime(jiff::Timestamp::now());
        let mut spec = found
            .as_ref()
            .and_then(|found| found.spec.clone())
            .unwrap_or_default();
        if !found.as_ref().is_some_and(|found| self.holds(found)) {
            spec.acquire_time = Some(now.clone());
            spec.lease_transitions = Some(spec.lease_transitions.unwrap_or(0).saturating_add(1));
        }
        let spec = LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(self.lasts.as_secs()).ok(),
            renew_time: Some(now),
            ..spec
        };
        let settings = PostParams::default();
        let written = if let Some(found) = found {
            let mut object = Object {
                spec: Some(spec),
                ..found
            };
            self.clocks.annotate(&mut object.metadata.annotations);
            let replaced = self.api.replace(&self.name, &settings, &object);
            self.within(replaced).await
        } else {
            let object = Object {
                metadata: ObjectMeta {
                    name: Some(self.name.clone()),
                    ..ObjectMeta::default()
                },
                spec: Some(spec),
            };
            let created = self.api.create(&settings, &object);
            self.within(created).await
        };
        match written {
            Ok(object) => {
                self.ours = Some(object);
                self.until.send_replace(before + self.lasts);
                Ok(true)
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn within<T>(
        &self,
        answer: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, kube::Error> {
        match time::timeout(self.patience(), answer).await {
            Ok(answer) => answer,
            Err(elapsed) => Err(kube::Error::Service(elapsed.into())),
        }
    }
}
