//! What bounds a point before anything runs: wires, memory, rings. It comes from its settings and its
//! machine, and the texts hold what was measured against it.

use nicforge_units::{ByteRate, Bytes};
use nicforge_wire::traffic::Line;

use crate::machine::Machine;
use crate::metrics::Metrics;
use crate::run::line_of;
use crate::run::options::{PacketSizes, Sizes};
use crate::settings::Settings;

/// The bounds of one point; what does not apply, or is not known, is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bounds {
    /// The line of each port, and how many ports there are.
    pub wire: Option<(Line, usize)>,
    /// What memory delivers.
    pub dram: Option<ByteRate>,
    /// Whole lines of the buffers that all receive rings together hold out to the NICs.
    pub ring_buffers: Option<Bytes>,
    /// Cores that share a receive ring, where the interface shares rings.
    pub sharing: Option<usize>,
}

impl Bounds {
    /// Those of a point with `settings` on `machine`. Whole systems have none of them.
    pub fn of(settings: &Settings, machine: &Machine) -> Bounds {
        if settings.is_of_whole_systems() {
            return Bounds::default();
        }
        let hardware = &machine.hardware;
        Bounds {
            wire: Some((line_of(hardware), settings.nics())),
            dram: Some(hardware.dram.peak),
            ring_buffers: ring_buffers(settings),
            sharing: settings.shape().and_then(|shape| shape.sharing),
        }
    }

    /// The share of the wires that what was sent takes, with all that Ethernet adds to a frame.
    pub fn wire_used(&self, metrics: &Metrics) -> Option<f64> {
        let (line, ports) = self.wire?;
        let frames_per_second = metrics.throughput_mpps * 1e6;
        if frames_per_second <= 0.0 {
            return None;
        }
        let frame = metrics.throughput_gbps * 1e9 / 8.0 / frames_per_second;
        let time = line.time_for(frame.round() as u32).as_seconds();
        Some(frames_per_second * time / ports as f64)
    }

    /// The share of what memory delivers that is used.
    pub fn dram_used(&self, metrics: &Metrics) -> Option<f64> {
        Some(metrics.memory_gb_per_s? * 1e9 / self.dram?.as_bytes_per_second())
    }
}

/// For frames of one size, or two with a target's, and rings that hold a frame in each buffer; what other buffers hold
/// depends on the run.
fn ring_buffers(settings: &Settings) -> Option<Bytes> {
    if settings.read::<Sizes>().packet_sizes != PacketSizes::Fixed || settings.replays() {
        return None;
    }
    let buffers = settings.nics() * settings.shape()?.ready?;
    Some(Bytes(buffers as u64 * settings.frame_lines_bytes()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::machine::parse_machine;
    use crate::settings::Catalogue;

    fn bounds(change: impl FnOnce(Settings) -> Settings) -> Bounds {
        let text = include_str!("../../../../machines/xeon-4216-cx5.toml");
        let machine = parse_machine(text, Path::new("machines/xeon-4216-cx5.toml")).unwrap();
        let settings = Settings::for_machine(&Catalogue::shipped(), &machine);
        Bounds::of(&change(settings), &machine)
    }

    #[test]
    fn buffers_of_all_rings_are_counted_in_whole_lines() {
        let mib = |bounds: Bounds| bounds.ring_buffers.map(|bytes| bytes.0 >> 20);
        // 16 rings x 1024 buffers x 24 lines, and two such rings.
        assert_eq!(mib(bounds(|s| s)), Some(24));
        assert_eq!(mib(bounds(|s| s.with("interface", "sh_ring"))), Some(3));
        assert_eq!(mib(bounds(|s| s.with("interface", "rx_bisect"))), Some(3));
        assert_eq!(mib(bounds(|s| s.with("interface", "nm_nfv"))), None);
        assert_eq!(mib(bounds(|s| s.with("packet_sizes", "imix"))), None);
        // Half of the frames take 24 lines, half of them one.
        let target = bounds(|s| s.with("target_share", 0.5).with("target_packet_bytes", 64));
        assert_eq!(target.ring_buffers, Some(Bytes((12 << 20) + (1 << 19))));
        assert_eq!(bounds(|s| s.with("workload", "web_server")).wire, None);
    }

    #[test]
    fn only_interfaces_that_share_rings_have_a_number_of_sharers() {
        assert_eq!(bounds(|s| s).sharing, None);
        let dynamic = bounds(|s| s.with("interface", "sh_ring_dynamic"));
        assert_eq!(dynamic.sharing, Some(8));
    }

    #[test]
    fn preamble_gap_and_checksum_fill_the_wire_too() {
        // 1500 of 1524 bytes of each frame's time: 196.85 of 200 Gbit/s.
        let full = Metrics {
            throughput_gbps: 200.0 * 1500.0 / 1524.0,
            throughput_mpps: 200e3 / (1524.0 * 8.0),
            memory_gb_per_s: Some(27.25),
            ..Metrics::default()
        };
        let bounds = bounds(|s| s);
        let used = bounds.wire_used(&full).unwrap();
        assert!((used - 1.0).abs() < 1e-3, "{used}");
        let used = bounds.dram_used(&full).unwrap();
        assert!((used - 0.5).abs() < 1e-3, "{used}");
        assert_eq!(bounds.wire_used(&Metrics::default()), None);
    }
}
