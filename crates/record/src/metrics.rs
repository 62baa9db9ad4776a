//! What one point of a run measured: the `metrics` object of `report.json`.
//!
//! What a ground cannot know is absent, not zero.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The metrics of one point, named and measured as DESIGN's table has them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Gbit/s of frame bytes sent back out, no preamble or gap.
    pub throughput_gbps: f64,
    /// Gbit/s of frame bytes arriving.
    pub offered_gbps: f64,
    /// Million frames/s sent back out.
    pub throughput_mpps: f64,
    /// Million frames/s arriving.
    pub offered_mpps: f64,
    /// Frames that were dropped in the window, as a share of those that arrived in it
    /// ([`drop_fraction`]).
    pub drop_fraction: f64,
    /// Frames dropped in the window, by named cause.
    pub drops: BTreeMap<String, u64>,
    /// What stages of NICs counted in the window, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stages: BTreeMap<String, u64>,
    /// What stages of NICs held when the window ended, by name: the highest value of all NICs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stage_gauges: BTreeMap<String, u64>,
    /// Requests of the window that clients gave up after their time-out; only of closed loops (ping-pong).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_timed_out: Option<u64>,
    /// How often a core wanted a packet buffer in the window and the pool had none; only where that happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rx_nombuf: Option<u64>,
    /// First bit in to last bit out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<Latency>,
    /// Mean share of receive entries waiting for software.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx_occupancy: Option<f64>,
    /// Mean share of transmit entries in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_occupancy: Option<f64>,
    /// Share of DMA-written lines still in the LLC when first read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ddio_hit_rate: Option<f64>,
    /// Share of DMA reads (lines) served by the LLC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_read_hit_rate: Option<f64>,
    /// Share of DMA writes (lines) that found their line in the LLC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_write_hit_rate: Option<f64>,
    /// Share of the application's own LLC look-ups that hit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_hit_rate: Option<f64>,
    /// The same of all look-ups of cores, the driver's among them, as Linux perf counts LLC loads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_hit_rate: Option<f64>,
    /// Share of GETs that were answered with their value; only of a key-value store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub get_hit_rate: Option<f64>,
    /// Requests that a key-value store refused, as no reply or not the log has room for the value; only
    /// where it refused any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_too_large: Option<u64>,
    /// Requests that arrived at another core than their key's, and were ignored; only where any were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_misdirected: Option<u64>,
    /// What a co-runner copied, 10^9 bytes/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy_gb_per_s: Option<f64>,
    /// How often a transmit ring filled the NIC's internal buffer and was not served for a while, per
    /// frame sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_deschedules_per_packet: Option<f64>,
    /// Share of delivered frames whose payload went to host memory because nicmem was short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spill_fraction: Option<f64>,
    /// Share of delivered frames that lie in another core's buffer; only where cores lend each other buffers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub borrowed_fraction: Option<f64>,
    /// Share of GETs answered from memory of the NIC without a copy; only of a key-value store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nicmem_get_share: Option<f64>,
    /// Share of look-ups of flow states in NIC memory that had to fetch from host memory; only
    /// where NICs handle flows without software.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_state_miss_rate: Option<f64>,
    /// Share of the target core's cycles, idle ones excluded, that goes into buffer allocation,
    /// stalls included; only where one core is the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_alloc_share: Option<f64>,
    /// Share of the other cores' cycles, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_alloc_share: Option<f64>,
    /// Look-ups of the cores in the LLC per delivered packet, in lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_llc_accesses_per_packet: Option<f64>,
    /// LLC misses of all agents per delivered packet, in lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub llc_misses_per_packet: Option<f64>,
    /// DRAM reads and writes, 10^9 bytes/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_gb_per_s: Option<f64>,
    /// Share of usable NIC-to-host bandwidth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_out_utilisation: Option<f64>,
    /// Share of usable host-to-NIC bandwidth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_in_utilisation: Option<f64>,
    /// Mean latency of the NIC's reads of host memory, us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_read_us: Option<f64>,
    /// Mean time from a frame's last bit in to its completion sent, us: FIFO, pipeline, waiting for
    /// descriptors and for the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nic_receive_us: Option<f64>,
    /// Core cycles per delivered packet, idle polling excluded: `total` and by part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles_per_packet: Option<CyclesPerPacket>,
    /// Share of core time spent on empty polls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_fraction: Option<f64>,
    /// Share of their time that cores that play NICs do not spend on empty polls; only of interface
    /// `emulated`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emulator_busy_fraction: Option<f64>,
    /// Frames that such a core moves in a turn in which it moves any, the mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emulator_burst_frames: Option<f64>,
    /// Distinct bytes touched by DMA in the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_working_set_bytes: Option<u64>,
    /// Payload that processes of the system looked at read and wrote, Gbit/s; only of whole systems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_gbps: Option<f64>,
    /// Look-ups of the core that no cache could serve, for each 1024 bytes of that payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub misses_per_kb: Option<f64>,
    /// Interrupts taken, thousands a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupts_khz: Option<f64>,
    /// Where the time of a kernel's core goes, as shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_time: Option<CpuTime>,
    /// Requests that clients had answered, millions a second; only of RPCs over TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpc_mps: Option<f64>,
    /// How evenly connections were served: Jain's index of their answers; only of RPCs over several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fairness: Option<f64>,
    /// Tuples that workers took, millions a second; only of FlexStorm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tuples_mps: Option<f64>,
    /// Those of them that counters took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_mps: Option<f64>,
    /// Where tuples spend their time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tuple_us: Option<TupleTimes>,
    /// Highest rate without loss (RFC 2544), Gbit/s of frame bytes; only in that mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_drop_gbps: Option<f64>,
}

/// Latency from first bit in to last bit out, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Largest.
    pub max: f64,
    /// The distribution: pairs of (percentile, microseconds), rising.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<(f64, f64)>,
}

/// Mean times of a tuple, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TupleTimes {
    /// From its arrival at the worker's machine to the worker.
    pub input: f64,
    /// In the worker's hands.
    pub work: f64,
    /// From the worker that gives it to the other machine's wire; of tuples for other machines.
    pub output: f64,
}

/// Shares of a core's time, waiting for memory and registers included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuTime {
    /// Taking interrupts and finding out what they are for.
    pub interrupt: f64,
    /// The driver.
    pub driver: f64,
    /// IP, TCP, sockets, system calls, packet buffers.
    pub stack: f64,
    /// Copying between the kernel and processes.
    pub copy: f64,
    /// Processes.
    pub user: f64,
    /// Nothing to do.
    pub idle: f64,
}

/// Core cycles per delivered packet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CyclesPerPacket {
    /// All but idle polling.
    pub total: f64,
    /// Receive and transmit code.
    pub driver: f64,
    /// The application.
    pub app: f64,
    /// Locks and atomics.
    pub sync: f64,
    /// Buffer allocation.
    pub alloc: f64,
    /// Waiting for memory.
    pub stall: f64,
}

/// `drops` as a share of `arrivals`. Frames may be dropped that had arrived before: where they are more than
/// all that arrived, the share is 1.
pub fn drop_fraction(drops: u64, arrivals: u64) -> f64 {
    match arrivals.max(drops) {
        0 => 0.0,
        whole => drops as f64 / whole as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::drop_fraction;

    #[test]
    fn no_more_than_all_is_dropped_and_what_is_dropped_is_not_nothing() {
        assert_eq!(drop_fraction(0, 0), 0.0);
        assert_eq!(drop_fraction(1, 4), 0.25);
        assert_eq!(drop_fraction(498, 100), 1.0);
        assert_eq!(drop_fraction(1281, 0), 1.0);
    }
}
