//! Unwinding: members that must not run without their gang go through the eviction API, so that budgets
//! are respected and their controllers make new ones.
//!
//! Evictions enter, requests leave; that a pod is gone is told by the watch. One that is refused for now
//! (a budget, an API server that does not answer) is tried again until the pod is gone.

use std::{sync::Arc, time::Duration};

use gangline::units::Uid;
use kube::api::PostParams;
use serde_json::json;
use tokio::{
    sync::{Semaphore, mpsc::UnboundedReceiver},
    task::JoinSet,
    time,
};
use tracing::{Instrument as _, Span, info, warn};

use super::{
    events::{Events, Reason, Regarding},
    metrics::Metrics,
    pauses::Pauses,
    request::{Requests, pods},
};

/// So many evictions are asked for at a time.
const AT_A_TIME: usize = 16;
/// The pauses between attempts.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A pod that must go.
#[derive(Debug)]
pub(super) struct Eviction {
    /// Its identity.
    pub(super) uid: Uid,
    /// Its namespace.
    pub(super) namespace: String,
    /// Its name.
    pub(super) name: String,
    /// What is logged about it belongs to its gang.
    pub(super) span: Span,
}

/// Asks for evictions until there will be no more.
pub(super) async fn work(
    requests: Requests,
    mut evictions: UnboundedReceiver<Eviction>,
    metrics: Arc<Metrics>,
    events: Events,
) {
    let slots = Arc::new(Semaphore::new(AT_A_TIME));
    let mut tasks = JoinSet::new();
    while let Some(eviction) = evictions.recv().await {
        let (requests, slots) = (requests.clone(), Arc::clone(&slots));
        let (metrics, events) = (Arc::clone(&metrics), events.clone());
        let span = eviction.span.clone();
        let evicted = async move {
            if eviction.carry_out(&requests, &slots).await {
                metrics.evictions.inc();
                let pod = Regarding::pod(&eviction.namespace, &eviction.name, eviction.uid);
                let note = "its group cannot keep its minimum";
                events.tell(pod, Reason::Evicted, note);
            }
        };
        tasks.spawn(evicted.instrument(span));
        while tasks.try_join_next().is_some() {}
    }
}

impl Eviction {
    /// Asks until the pod is about to go; whether it was we who made it.
    async fn carry_out(&self, requests: &Requests, slots: &Semaphore) -> bool {
        let pod = &self.name;
        info!(pod, "evicting: its gang cannot keep its minimum");
        let mut pauses = Pauses::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut said = String::new();
        loop {
            let slot = slots.acquire().await;
            let answer = self.send(requests).await;
            drop(slot);
            let message = match answer {
                Ok(_) => return true,
                // Gone, or another pod has its name.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => return false,
                Err(error) => error.to_string(),
            };
            if message != said {
                warn!(pod, "not evicted yet: {message}");
                said = message;
            }
            time::sleep(pauses.next()).await;
        }
    }

    async fn send(&self, requests: &Requests) -> Result<String, kube::Error> {
        let eviction = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": { "name": self.name, "namespace": self.namespace },
            "deleteOptions": { "preconditions": { "uid": self.uid } },
        });
        let text = eviction.to_string().into_bytes();
        let request = pods(&self.namespace);
        let settings = PostParams::default();
        let request = request.create_subresource("eviction", &self.name, &settings, text);
        requests.write(request).await
    }
}
