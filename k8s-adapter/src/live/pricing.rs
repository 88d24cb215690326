//! Prices that are made beside the decisions, on a thread of their own.
//!
//! When prices are due the engine hands out what they are made of; the thread solves it, and the driver
//! tells the engine what came of it as an event. Until then the old ones decide. The first ones are made
//! at once: nothing is to be placed without. One solution is under way at a time.

use std::thread;

use gangline::{Event, Scheduler, engine::PriceList};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tracing::warn;

pub(super) struct Pricing {
    sender: UnboundedSender<PriceList>,
    solved: UnboundedReceiver<PriceList>,
    is_under_way: bool,
}

impl Pricing {
    pub(super) fn new() -> Self {
        let (sender, solved) = mpsc::unbounded_channel();
        Self {
            sender,
            solved,
            is_under_way: false,
        }
    }

    /// Has prices made, if they are due and none are under way.
    pub(super) fn start_if_due(&mut self, scheduler: &mut Scheduler) {
        if self.is_under_way {
            return;
        }
        let Some(due) = scheduler.due_prices() else {
            return;
        };
        if due.are_first() {
            tell(scheduler, due.solve());
            return;
        }
        let sender = self.sender.clone();
        let work = move || {
            // Who asked may be gone.
            let _ = sender.send(due.solve());
        };
        match thread::Builder::new().name("prices".into()).spawn(work) {
            Ok(_) => self.is_under_way = true,
            // They stay due, so it is tried again; the old ones decide meanwhile.
            Err(error) => warn!("no thread for prices: {error}"),
        }
    }

    /// Waits until prices are made; never ends while none are under way.
    pub(super) async fn solved(&mut self) -> PriceList {
        match self.solved.recv().await {
            Some(list) => list,
            // Not while the sender is here.
            None => std::future::pending().await,
        }
    }

    /// Tells the engine prices that were made.
    pub(super) fn take(&mut self, list: PriceList, scheduler: &mut Scheduler) {
        self.is_under_way = false;
        tell(scheduler, list);
    }
}

fn tell(scheduler: &mut Scheduler, list: PriceList) {
    // The engine refuses no prices.
    let _ = scheduler.apply(Event::Prices(list));
}
