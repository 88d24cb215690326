//! The numbers that every program tells about its process, under the names that all of them use.

use std::{
    fmt, fs,
    time::{SystemTime, UNIX_EPOCH},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};
use rustix::{
    param::page_size,
    time::{ClockId, clock_gettime},
};

/// The process that asks.
#[derive(Debug)]
pub(super) struct Process {
    /// Seconds since 1970.
    started: f64,
}

impl Process {
    /// It has started a moment ago.
    pub(super) fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            started: now.unwrap_or_default().as_secs_f64(),
        }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let used = clock_gettime(ClockId::ProcessCPUTime);
        let used = ConstCounter::new(used.tv_sec as f64 + used.tv_nsec as f64 / 1e9);
        let help = "Processor time of user and system";
        let metric =
            encoder.encode_descriptor("process_cpu_seconds", help, None, MetricType::Counter)?;
        used.encode(metric)?;
        if let Some(bytes) = resident_bytes() {
            let name = "process_resident_memory_bytes";
            let help = "Memory in use";
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(bytes).encode(metric)?;
        }
        let name = "process_start_time_seconds";
        let help = "When the process started, since 1970";
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(self.started).encode(metric)
    }
}

/// Linux tells it, others do not.
fn resident_bytes() -> Option<u64> {
    let pages = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = pages.split_whitespace().nth(1)?.parse().ok()?;
    pages.checked_mul(u64::try_from(page_size()).ok()?)
}
