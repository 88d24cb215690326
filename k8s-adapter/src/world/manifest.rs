//! What would be applied: when its objects count as created, and in which order its pods are made.

use gangline::units::Nanos;

use crate::{
    api::Pod,
    load::{Document, Source},
};

/// The objects of manifests, while they are read.
#[derive(Debug)]
pub(super) struct Manifest {
    latest: Nanos,
    documents: usize,
    pods: Vec<Made>,
}

/// A pod that would be made.
#[derive(Debug)]
pub(super) struct Made {
    /// Which pod of its workload it is, and which document made it.
    order: (usize, usize),
    /// The pod.
    pub(super) pod: Pod,
    /// Where its document is.
    pub(super) source: Source,
    /// When it counts as created.
    pub(super) created: Nanos,
}

impl Manifest {
    /// Objects that count as created after `latest`.
    pub(super) fn after(latest: Nanos) -> Self {
        Self {
            latest,
            documents: 0,
            pods: Vec::new(),
        }
    }

    /// When the next object counts as created. Distinct times, though a nanosecond apart: the order
    /// is all that they say.
    pub(super) fn next(&mut self) -> Nanos {
        self.latest = self.latest.saturating_add(Nanos(1));
        self.latest
    }

    /// Takes the pods of one document.
    pub(super) fn add(&mut self, pods: impl IntoIterator<Item = Pod>, document: &Document<'_>) {
        let document_number = self.documents;
        self.documents += 1;
        self.pods
            .extend(pods.into_iter().enumerate().map(|(ordinal, pod)| Made {
                order: (ordinal, document_number),
                pod,
                source: document.source.clone(),
                created: Nanos::ZERO,
            }));
    }

    /// All pods in the order in which they would be made: all first ones, all second ones, ...
    pub(super) fn pods(mut self) -> Vec<Made> {
        let mut pods = std::mem::take(&mut self.pods);
        pods.sort_by_key(|made| made.order);
        for made in &mut pods {
            made.created = self.next();
        }
        pods
    }
}
