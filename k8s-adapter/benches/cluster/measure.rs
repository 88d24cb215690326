//! What a run is judged by: when pods were seen and bound, and the processor time of processes.

use std::{collections::BTreeMap, fs, time::Instant};

use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Client,
    api::{Request, WatchEvent, WatchParams},
};
use tokio::sync::mpsc::UnboundedSender;

use crate::load::NAMESPACE;

/// A pod, as its watch tells of it.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) at: Instant,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) node: Option<String>,
}

/// Tells of every change of a pod, until nobody listens.
pub(crate) async fn watch_pods(
    client: Client,
    line: UnboundedSender<Seen>,
) -> Result<(), kube::Error> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    // From the beginning: nothing was made before.
    let mut version = "0".to_owned();
    loop {
        let request = Request::new(path.clone()).watch(&WatchParams::default(), &version);
        let request = request.map_err(kube::Error::BuildRequest)?;
        let lines = client.request_stream(request).await?;
        let mut lines = lines.lines();
        while let Ok(Some(text)) = lines.try_next().await {
            let at = Instant::now();
            let event = serde_json::from_str::<WatchEvent<Pod>>(&text);
            let (WatchEvent::Added(pod) | WatchEvent::Modified(pod)) =
                event.map_err(kube::Error::SerdeError)?
            else {
                continue;
            };
            version = pod.metadata.resource_version.unwrap_or_default();
            let seen = Seen {
                at,
                name: pod.metadata.name.unwrap_or_default(),
                uid: pod.metadata.uid.unwrap_or_default(),
                node: pod.spec.and_then(|spec| spec.node_name),
            };
            if line.send(seen).is_err() {
                return Ok(());
            }
        }
    }
}

/// Seconds of processor time that a process has used; 0 for one that is gone.
pub(crate) fn cpu_seconds(process: u32) -> f64 {
    // Linux counts in hundredths.
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in parentheses, may have blanks.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let field = |at: usize| fields.split_whitespace().nth(at)?.parse::<f64>().ok();
    (field(11).unwrap_or(0.0) + field(12).unwrap_or(0.0)) / TICKS
}

/// When the pods of each group were first seen, last seen as new, and last bound.
#[derive(Debug, Default)]
pub(crate) struct Times {
    seen: BTreeMap<String, Instant>,
    bound: BTreeMap<String, Instant>,
}

impl Times {
    /// Takes note of a pod; true when it is new.
    pub(crate) fn take(&mut self, seen: &Seen) -> bool {
        if seen.node.is_some() {
            self.bound.entry(seen.name.clone()).or_insert(seen.at);
        }
        let before = self.seen.len();
        self.seen.entry(seen.name.clone()).or_insert(seen.at);
        self.seen.len() > before
    }

    pub(crate) fn bound(&self) -> u32 {
        self.bound.len() as u32
    }

    pub(crate) fn last_bound(&self) -> Option<Instant> {
        self.bound.values().max().copied()
    }

    pub(crate) fn last_seen(&self) -> Option<Instant> {
        self.seen.values().max().copied()
    }

    /// Of each group: seconds from its first pod until its last one was bound, in order, and how many
    /// groups are bound in part.
    pub(crate) fn groups(&self, size: u32) -> (Vec<f64>, u32) {
        let group = |name: &str| name[1..].parse::<u32>().map_or(0, |number| number / size);
        let mut groups: BTreeMap<u32, (Instant, Option<Instant>, u32)> = BTreeMap::new();
        for (name, &seen) in &self.seen {
            let entry = groups.entry(group(name)).or_insert((seen, None, 0));
            entry.0 = entry.0.min(seen);
            if let Some(&bound) = self.bound.get(name) {
                entry.1 = Some(entry.1.map_or(bound, |last| last.max(bound)));
                entry.2 += 1;
            }
        }
        let half = groups
            .values()
            .filter(|(.., bound)| (1..size).contains(bound));
        let half = half.count() as u32;
        let whole = groups.values().filter(|(.., bound)| *bound == size);
        let waits = whole.filter_map(|(seen, bound, _)| Some((*bound)?.duration_since(*seen)));
        let mut waits: Vec<f64> = waits.map(|wait| wait.as_secs_f64()).collect();
        waits.sort_by(f64::total_cmp);
        (waits, half)
    }
}
