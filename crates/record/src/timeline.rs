//! The time line of a point (`timeline`, only with the setting `timeline_ms`), and its changes of steering (`switches`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What was measured since the entry before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimelineEntry {
    /// End of the interval, ms since traffic began.
    pub ms: f64,
    /// Gbit/s of frame bytes sent back out.
    pub throughput_gbps: f64,
    /// Gbit/s of frame bytes arriving.
    pub offered_gbps: f64,
    /// Frames that arrived, dropped ones included.
    pub arrivals: u64,
    /// Frames dropped, whatever the cause.
    pub drops: u64,
    /// Drops as a share of arrivals.
    pub drop_fraction: f64,
    /// Frames that cores took out of receive rings.
    pub taken: u64,
    /// Frames that have arrived and that no core has taken, at the end of the interval. It grows by
    /// arrivals less frames taken, less those of the drops that happen before a core has the frame.
    pub backlog: u64,
    /// Mean latency of the frames that left, us; absent when none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<f64>,
    /// DRAM reads and writes, 10^9 bytes/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_gb_per_s: Option<f64>,
    /// The set of queues that steering uses at the end of the interval, where the interface has
    /// several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_set: Option<String>,
    /// Receive entries that are no empty buffers at the end of the interval, over all NICs, by set of
    /// queues; empty where the interface has but one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub in_use: BTreeMap<String, u64>,
}

/// Steering changed to another set of queues.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Switch {
    /// When that was decided, ms since traffic began.
    pub ms: f64,
    /// The set of queues that steering uses from then on.
    pub set: String,
}
