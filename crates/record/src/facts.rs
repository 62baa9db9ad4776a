//! What bounds a point before it runs, when its phases begin, and whether its window was steady.

use serde::{Deserialize, Serialize};

use crate::Metrics;

/// Capacities and times that follow from a point's settings and its machine. Whole systems have none of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The lines of all ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<Wire>,
    /// Bandwidth of the memory, 10^9 bytes/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dram_gb_per_s: Option<f64>,
    /// Whole cache lines of all buffers that receive rings hold out to the NICs, bytes. Absent where that
    /// depends on the run: frames of several sizes, interfaces that put several frames into a buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer_bytes: Option<u64>,
    /// Cores that share a receive ring; only of interfaces that share rings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores_per_ring: Option<usize>,
    /// Frames that an emulating core moves in a turn, at most; only where cores emulate NICs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator_burst_max: Option<usize>,
    /// When cores begin to poll, ms since traffic began; absent when they poll from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polling_starts_ms: Option<f64>,
    /// When the target core's extra traffic or work begins, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_begins_ms: Option<f64>,
    /// When the measured window begins, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_begins_ms: Option<f64>,
}

/// The lines of a point's ports.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wire {
    /// Ports in use.
    pub ports: usize,
    /// Rate of each, Gbit/s.
    pub port_gbps: f64,
    /// Bytes that the line adds to each frame: preamble, gap, checksum.
    pub overhead_bytes: u64,
    /// Shorter frames are padded to this length, without the overhead, bytes.
    pub frame_bytes_min: u32,
}

impl Facts {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Facts::default()
    }

    /// Share of the wires' time that the sent frames take, overhead included; of frames of the mean length.
    pub fn wire_used(&self, metrics: &Metrics) -> Option<f64> {
        let wire = self.wire?;
        let frames_per_second = metrics.throughput_mpps * 1e6;
        if frames_per_second <= 0.0 {
            return None;
        }
        let frame_bytes = (metrics.throughput_gbps * 1e9 / 8.0 / frames_per_second).round();
        let on_line = frame_bytes.max(f64::from(wire.frame_bytes_min)) + wire.overhead_bytes as f64;
        Some(frames_per_second * on_line * 8.0 / (wire.port_gbps * 1e9 * wire.ports as f64))
    }

    /// Share of the memory's bandwidth in use.
    pub fn dram_used(&self, metrics: &Metrics) -> Option<f64> {
        Some(metrics.memory_gb_per_s? / self.dram_gb_per_s?)
    }

    /// Each phase that does not begin with the traffic: its time in ms and a word for it.
    pub fn phases(&self) -> impl Iterator<Item = (f64, &'static str)> {
        let all =
            [(self.polling_starts_ms, "polling"), (self.target_begins_ms, "target"), (self.window_begins_ms, "window")];
        let at = all.into_iter().filter_map(|(ms, name)| Some((ms?, name)));
        at.filter(|(ms, _)| *ms > 0.0)
    }
}

/// What to do about a capture whose IPv4 header checksums are wrong.
pub const CHECKSUM_REMEDY: &str = "a capture taken on the sending host may lack checksums that its NIC fills in \
                                   later: capture at the receiver, or recompute them with `tcprewrite --fixcsum`";

/// Reasons why a window does not show a steady state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Steadiness {
    /// No frame arrived in the window.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_frame_arrived: bool,
    /// Share of the window's arrivals that was neither sent nor dropped in it, where that is not small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog_growth: Option<f64>,
    /// The window's second half differs from its first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drift>,
    /// Correlation of neighbouring batches, where it makes intervals too narrow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_correlation: Option<f64>,
    /// When the data says that the warm-up ends, ms; only where that is in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_ends_ms: Option<f64>,
    /// When the window begins, ms since traffic began; only where the data put that behind the warm-up that was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_begins_ms: Option<f64>,
    /// The relative half width that `--precision` asked for and the longest window does not reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision_missed: Option<f64>,
    /// Where connections of whole systems moved no payload in the window: what each waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standstill: Option<String>,
}

/// A metric whose level changes in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Its key.
    pub metric: String,
    /// By how much the second half's mean exceeds the first's, as a share of the first's.
    pub share: f64,
}

/// Share of arrivals up to which a growing backlog is within the noise of a window.
const BACKLOG_NOISE: f64 = 0.02;

impl Steadiness {
    /// What the metrics of a window say about it.
    pub fn of(metrics: &Metrics) -> Steadiness {
        let arrived = metrics.offered_mpps;
        // Whole systems send to each other; clients that wait for answers bound what is underway.
        let closed_loop = metrics.bandwidth_gbps.is_some()
            || metrics.rpc_mps.is_some()
            || metrics.tuples_mps.is_some()
            || metrics.requests_timed_out.is_some();
        let stayed = 1.0 - metrics.drop_fraction - metrics.throughput_mpps / arrived;
        let grew = !closed_loop && arrived > 0.0 && stayed > BACKLOG_NOISE;
        Steadiness {
            no_frame_arrived: arrived <= 0.0 && metrics.bandwidth_gbps.is_none(),
            backlog_growth: grew.then_some(stayed),
            ..Steadiness::default()
        }
    }

    /// Whether nothing speaks against a steady state.
    pub fn is_steady(&self) -> bool {
        Steadiness { window_begins_ms: None, ..self.clone() }.is_empty()
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        *self == Steadiness::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preamble_gap_and_checksum_fill_the_wire_too() {
        // 1500 of 1524 bytes of each frame's time: 196.85 of 200 Gbit/s.
        let full = Metrics {
            throughput_gbps: 200.0 * 1500.0 / 1524.0,
            throughput_mpps: 200e3 / (1524.0 * 8.0),
            memory_gb_per_s: Some(25.0),
            ..Metrics::default()
        };
        let facts = Facts {
            wire: Some(Wire { ports: 2, port_gbps: 100.0, overhead_bytes: 24, frame_bytes_min: 60 }),
            dram_gb_per_s: Some(50.0),
            ..Facts::default()
        };
        let used = facts.wire_used(&full).unwrap();
        assert!((used - 1.0).abs() < 1e-9, "{used}");
        assert_eq!(facts.dram_used(&full), Some(0.5));
        assert_eq!(facts.wire_used(&Metrics::default()), None);
    }

    #[test]
    fn phases_are_named_where_something_was_before() {
        let mut facts = Facts {
            polling_starts_ms: Some(5.0),
            target_begins_ms: Some(40.0),
            window_begins_ms: Some(60.0),
            ..Facts::default()
        };
        let named = |facts: &Facts| facts.phases().collect::<Vec<_>>();
        assert_eq!(named(&facts), [(5.0, "polling"), (40.0, "target"), (60.0, "window")]);
        (facts.polling_starts_ms, facts.target_begins_ms) = (None, Some(0.0));
        assert_eq!(named(&facts), [(60.0, "window")]);
    }

    #[test]
    fn a_backlog_grows_where_arrivals_are_neither_sent_nor_dropped() {
        let mut metrics =
            Metrics { offered_mpps: 10.0, throughput_mpps: 8.85, drop_fraction: 0.1, ..Metrics::default() };
        assert!(Steadiness::of(&metrics).is_steady());
        metrics.throughput_mpps = 6.0;
        let grew = Steadiness::of(&metrics).backlog_growth.unwrap();
        assert!((grew - 0.3).abs() < 1e-9, "{grew}");
        // Clients that wait for answers have no more frames underway than requests.
        metrics.requests_timed_out = Some(0);
        assert!(Steadiness::of(&metrics).is_steady());
    }

    #[test]
    fn a_window_that_begins_later_than_asked_is_steady() {
        let later = Steadiness { window_begins_ms: Some(40.0), ..Steadiness::default() };
        assert!(later.is_steady() && !later.is_empty());
    }

    #[test]
    fn a_window_without_arrivals_is_marked_unless_systems_send_themselves() {
        let mut metrics = Metrics::default();
        assert!(Steadiness::of(&metrics).no_frame_arrived);
        metrics.bandwidth_gbps = Some(9.4);
        assert!(Steadiness::of(&metrics).is_steady());
    }
}
