//! How long to wait between attempts: longer each time up to a limit, and never all at the same moment.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};

/// The pauses of one attempt after another.
#[derive(Debug)]
pub(super) struct Pauses {
    pauses: ExponentialBackoff,
    longest: Duration,
}

impl Pauses {
    /// Begins with `first`.
    pub(super) fn new(first: Duration, longest: Duration) -> Self {
        let pauses = ExponentialBuilder::default()
            .with_min_delay(first)
            .with_max_delay(longest)
            .with_jitter()
            .without_max_times()
            .build();
        Self { pauses, longest }
    }

    /// The pause before the next attempt. There is always one.
    pub(super) fn next(&mut self) -> Duration {
        self.pauses.next().unwrap_or(self.longest)
    }
}
