//! What may be asked of the driver while it works; it answers when nothing else is to be done for others.

use std::time::Duration;

use gangline::engine::Snapshot;
use tokio::{
    sync::{
        mpsc::{self, Receiver, Sender},
        oneshot,
    },
    time,
};

use super::metrics::Figures;

/// So many questions wait at most.
const WAITING: usize = 16;
/// Who asks waits no longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A question, with where the answer goes.
#[derive(Debug)]
pub(super) enum Question {
    /// Numbers for gauges.
    Figures(oneshot::Sender<Figures>),
    /// All that the engine knows.
    Snapshot(oneshot::Sender<Box<Snapshot>>),
}

/// Where questions are asked.
#[derive(Clone, Debug)]
pub(super) struct Questions(Sender<Question>);

impl Questions {
    /// A line to the driver.
    pub(super) fn open() -> (Self, Receiver<Question>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Self(sender), receiver)
    }

    /// Numbers for gauges; `None` when the driver is too busy, or not there.
    pub(super) async fn figures(&self) -> Option<Figures> {
        self.ask(Question::Figures).await
    }

    /// All that the engine knows; `None` when the driver is too busy, or not there.
    pub(super) async fn snapshot(&self) -> Option<Box<Snapshot>> {
        self.ask(Question::Snapshot).await
    }

    async fn ask<A>(&self, question: impl FnOnce(oneshot::Sender<A>) -> Question) -> Option<A> {
        let (sender, answer) = oneshot::channel();
        self.0.try_send(question(sender)).ok()?;
        time::timeout(PATIENCE, answer).await.ok()?.ok()
    }
}
