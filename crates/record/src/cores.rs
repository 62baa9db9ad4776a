//! Figures of each core of a point (`cores`): with unequal load, means over all cores hide the one that is the limit.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One core that runs the application, in the window.
///
/// What a ground cannot know is absent, not zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreFigures {
    /// Its number, over all NICs.
    pub core: usize,
    /// The NIC that it serves, and its queue there; absent live, where a worker serves a queue of each port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nic: Option<usize>,
    /// Counted within that NIC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<usize>,
    /// Frames that it took out of its receive rings.
    pub received: u64,
    /// Frames for its queue that the NIC put into other cores' buffers; only where cores lend each other
    /// buffers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub borrowed: Option<u64>,
    /// Frames for other queues that the NIC put into its buffers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lent: Option<u64>,
    /// Frames dropped that were for its queue, or that its software dropped, by named cause. Those that had no
    /// queue yet (`fifo_full`, what is no frame) are no core's.
    pub drops: BTreeMap<String, u64>,
    /// Gbit/s of frame bytes that it sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput_gbps: Option<f64>,
    /// Share of its time that it did not spend on empty polls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_fraction: Option<f64>,
    /// Its cycles per frame that it sent, idle polling excluded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles_per_packet: Option<f64>,
    /// Frames by one receive call, of those that brought any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_burst: Option<f64>,
    /// Mean share of its receive entries waiting for software; of a shared ring the same for all its cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx_occupancy: Option<f64>,
}

impl CoreFigures {
    /// Frames dropped, whatever the cause.
    pub fn dropped(&self) -> u64 {
        self.drops.values().sum()
    }
}
