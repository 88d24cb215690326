//! How long groups take from being complete to being bound, for [`Metrics`].
//!
//! Gangs enter that something happened to; what is known of those that wait or are being bound is when that
//! was first seen. When one runs, its times are counted. Nothing here decides anything.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gangline::{GangId, Scheduler, gang::life::Phase, units::Nanos};

use super::metrics::Metrics;

/// Groups that are on their way.
#[derive(Debug)]
pub(super) struct Starts {
    metrics: Arc<Metrics>,
    groups: BTreeMap<GangId, Start>,
}

#[derive(Debug)]
struct Start {
    /// Enough members are there.
    ready: Nanos,
    /// It has a plan.
    planned: Option<Nanos>,
}

impl Starts {
    pub(super) const fn new(metrics: Arc<Metrics>) -> Self {
        let groups = BTreeMap::new();
        Self { metrics, groups }
    }

    /// Looks where these gangs are in their lives now. Cost: these gangs.
    pub(super) fn look_at(
        &mut self,
        changed: impl Iterator<Item = GangId>,
        scheduler: &Scheduler,
        now: Nanos,
    ) {
        for gang in changed {
            let Some(phase) = scheduler.group_phase(gang) else {
                self.groups.remove(&gang);
                continue;
            };
            let ready = Start {
                ready: now,
                planned: None,
            };
            match phase {
                Phase::Gathering | Phase::Ended(_) => {
                    self.groups.remove(&gang);
                }
                Phase::Queued => {
                    self.groups.entry(gang).or_insert(ready).planned = None;
                }
                Phase::Planned | Phase::Binding => {
                    let start = self.groups.entry(gang).or_insert(ready);
                    start.planned.get_or_insert(now);
                }
                // What it lost does not make it one that starts.
                Phase::Degraded => {}
                Phase::Running => {
                    let Some(start) = self.groups.remove(&gang) else {
                        continue;
                    };
                    let since = |then| Duration::from_nanos(now.saturating_sub(then).0);
                    let metrics = &self.metrics;
                    let waited = since(start.ready).as_secs_f64();
                    metrics.ready_to_bound_seconds.observe(waited);
                    if let Some(planned) = start.planned {
                        let bound = since(planned).as_secs_f64();
                        metrics.group_bind_seconds.observe(bound);
                    }
                }
            }
        }
    }

    /// The gangs have other numbers now.
    pub(super) fn forget_all(&mut self) {
        self.groups.clear();
    }
}
