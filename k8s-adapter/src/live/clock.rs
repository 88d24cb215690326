//! The time that decisions are made at: that of the machine at the start, then what has passed since.
//!
//! The wall clock is read once. When somebody sets it later, no timeout comes early or late, and ages
//! of objects are wrong by no more than what the clock was wrong by at the start.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gangline::units::Nanos;

/// A clock that never goes back and never jumps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    started: Instant,
    since_1970: Nanos,
}

impl Clock {
    /// Starts at the time of the machine.
    pub(super) fn start() -> Self {
        Self::start_at(SystemTime::now())
    }

    /// Starts at a time.
    pub(super) fn start_at(wall: SystemTime) -> Self {
        let since_1970 = wall.duration_since(UNIX_EPOCH);
        Self {
            started: Instant::now(),
            since_1970: nanos(since_1970.unwrap_or_default()),
        }
    }

    /// Lets time go by.
    #[cfg(test)]
    pub(super) fn pass(&mut self, span: Duration) {
        self.started = self.started.checked_sub(span).unwrap();
    }

    /// Nanoseconds since 1970.
    pub(super) fn now(&self) -> Nanos {
        self.since_1970
            .saturating_add(nanos(self.started.elapsed()))
    }

    /// The moment at which this time is reached, for a timer.
    pub(super) fn instant(&self, time: Nanos) -> Instant {
        let after_start = time.saturating_sub(self.since_1970);
        let moment = self
            .started
            .checked_add(Duration::from_nanos(after_start.0));
        // A timeout of centuries: looking once a day is as good.
        moment.unwrap_or_else(|| Instant::now() + Duration::from_hours(24))
    }
}

fn nanos(duration: Duration) -> Nanos {
    Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_and_its_moment_are_the_same() {
        let clock = Clock::start();
        let later = clock.now().saturating_add(Nanos::from_secs(5));
        let wait = clock
            .instant(later)
            .saturating_duration_since(Instant::now());
        assert!(wait <= Duration::from_secs(5), "{wait:?}");
        assert!(clock.instant(Nanos::ZERO) <= Instant::now());
        assert!(clock.instant(Nanos(u64::MAX)) > Instant::now());
    }
}
