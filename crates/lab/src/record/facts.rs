//! What bounds a point before it runs: wires, memory, rings. It follows from settings and machine.

use nicforge_interfaces::emulated::BURST;
use nicforge_record::{Facts, Wire};
use nicforge_units::Bytes;
use nicforge_wire::traffic::FRAME_BYTES_MIN;

use crate::machine::Machine;
use crate::run::line_of;
use crate::run::options::{Measurement, PacketSizes, Sizes, TargetTime, Warmup};
use crate::settings::Settings;

/// Those of a point with `settings` on `machine`.
pub(super) fn of(settings: &Settings, machine: &Machine) -> Facts {
    if !settings.is_of_frames() {
        return Facts::default();
    }
    let hardware = &machine.hardware;
    let line = line_of(hardware);
    let shape = settings.shape();
    let synthetic = !settings.replays();
    let Measurement { polling_starts_ms, .. } = settings.read();
    let TargetTime { target_begins_ms } = settings.read();
    Facts {
        wire: Some(Wire {
            ports: settings.nics(),
            port_gbps: line.rate.as_gbps(),
            overhead_bytes: line.overhead.0,
            frame_bytes_min: FRAME_BYTES_MIN,
        }),
        dram_gb_per_s: Some(hardware.dram.peak.as_bytes_per_second() / 1e9),
        receive_buffer_bytes: receive_buffers(settings).map(|bytes| bytes.0),
        cores_per_ring: shape.as_ref().and_then(|shape| shape.sharing),
        emulator_burst_max: shape.is_some_and(|shape| shape.played).then_some(BURST),
        polling_starts_ms: (polling_starts_ms > 0.0).then_some(polling_starts_ms),
        target_begins_ms: (synthetic && settings.has_target()).then_some(target_begins_ms),
        window_begins_ms: synthetic.then(|| settings.read::<Warmup>().warmup_ms),
    }
}

/// For frames of one size, or two with a target's, and rings that hold a frame in each buffer; what other buffers hold
/// depends on the run.
fn receive_buffers(settings: &Settings) -> Option<Bytes> {
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

    fn facts(change: impl FnOnce(Settings) -> Settings) -> Facts {
        let text = include_str!("../../../../machines/xeon-4216-cx5.toml");
        let machine = parse_machine(text, Path::new("machines/xeon-4216-cx5.toml")).unwrap();
        let settings = Settings::for_machine(&Catalogue::shipped(), &machine);
        of(&change(settings), &machine)
    }

    #[test]
    fn buffers_of_all_rings_are_counted_in_whole_lines() {
        let mib = |facts: Facts| facts.receive_buffer_bytes.map(|bytes| bytes >> 20);
        // 16 rings x 1024 buffers x 24 lines, and two such rings.
        assert_eq!(mib(facts(|s| s)), Some(24));
        assert_eq!(mib(facts(|s| s.with("interface", "sh_ring"))), Some(3));
        assert_eq!(mib(facts(|s| s.with("interface", "rx_bisect"))), Some(3));
        assert_eq!(mib(facts(|s| s.with("interface", "nm_nfv"))), None);
        assert_eq!(mib(facts(|s| s.with("packet_sizes", "imix"))), None);
        // Half of the frames take 24 lines, half of them one.
        let target = facts(|s| s.with("target_share", 0.5).with("target_packet_bytes", 64));
        assert_eq!(target.receive_buffer_bytes, Some((12 << 20) + (1 << 19)));
    }

    #[test]
    fn whole_systems_have_none() {
        assert!(facts(|s| s.with("workload", "web_server")).is_empty());
    }

    #[test]
    fn only_interfaces_that_share_rings_have_cores_per_ring() {
        assert_eq!(facts(|s| s).cores_per_ring, None);
        let dynamic = facts(|s| s.with("interface", "sh_ring_dynamic"));
        assert_eq!(dynamic.cores_per_ring, Some(8));
    }

    #[test]
    fn a_target_and_a_late_start_are_phases() {
        let facts = facts(|s| {
            let s = s.with("polling_starts_ms", 5.0).with("target_share", 0.31);
            s.with("target_begins_ms", 40.0).with("warmup_ms", 60.0)
        });
        let named: Vec<_> = facts.phases().collect();
        assert_eq!(named, [(5.0, "polling"), (40.0, "target"), (60.0, "window")]);
    }
}
