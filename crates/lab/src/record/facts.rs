//! What bounds a point before it runs: wires, memory, rings. It follows from settings and machine.

use nicforge_interfaces::emulated::BURST;
use nicforge_record::{Facts, Wire};
use nicforge_units::Bytes;
use nicforge_wire::traffic::FRAME_BYTES_MIN;

use crate::machine::Machine;
use crate::run::{line_of, ring_frames, topology};
use crate::settings::{Settings, key};

/// Interfaces that put a packet into each buffer of their rings.
const A_PACKET_EACH: [&str; 4] = ["priv_ring", "in_place", "sh_ring", "sh_ring_list"];

/// Those of a point with `settings` on `machine`.
pub(super) fn of(settings: &Settings, machine: &Machine) -> Facts {
    if settings.is_of_whole_systems() {
        return Facts::default();
    }
    let hardware = &machine.hardware;
    let line = line_of(hardware);
    let shares = key("sharing").is_some_and(|key| key.is_used(settings));
    let synthetic = settings.arrival != "replay";
    let polls_late = settings.polling_starts_ms > 0.0;
    Facts {
        wire: Some(Wire {
            ports: settings.nics,
            port_gbps: line.rate.as_gbps(),
            overhead_bytes: line.overhead.0,
            frame_bytes_min: FRAME_BYTES_MIN,
        }),
        dram_gb_per_s: Some(hardware.dram.peak.as_bytes_per_second() / 1e9),
        receive_buffer_bytes: receive_buffers(settings).map(|bytes| bytes.0),
        cores_per_ring: shares.then_some(settings.sharing),
        emulator_burst_max: (settings.interface == "emulated").then_some(BURST),
        polling_starts_ms: polls_late.then_some(settings.polling_starts_ms),
        target_begins_ms: (synthetic && settings.has_target()).then_some(settings.target_begins_ms),
        window_begins_ms: synthetic.then_some(settings.warmup_ms),
    }
}

/// For frames of one size, or two with a target's, and interfaces that are known; what the others' buffers hold depends
/// on the run.
fn receive_buffers(settings: &Settings) -> Option<Bytes> {
    if settings.packet_sizes != "fixed" || settings.arrival == "replay" {
        return None;
    }
    let interface = settings.interface.as_str();
    let entries = if A_PACKET_EACH.contains(&interface) {
        ring_frames(settings)
    } else if interface == "rx_bisect" {
        // Only allocation rings hold empty buffers (rxBisect paper, section 4.2).
        settings.nics * topology(settings).ax.len() * settings.ax_entries
    } else {
        return None;
    };
    Some(Bytes(entries as u64 * settings.frame_lines_bytes()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::machine::parse_machine;

    fn facts(change: impl FnOnce(&mut Settings)) -> Facts {
        let text = include_str!("../../../../machines/xeon-4216-cx5.toml");
        let machine = parse_machine(text, Path::new("machines/xeon-4216-cx5.toml")).unwrap();
        let mut settings = Settings::for_machine(&machine);
        change(&mut settings);
        of(&settings, &machine)
    }

    #[test]
    fn buffers_of_all_rings_are_counted_in_whole_lines() {
        let mib = |facts: Facts| facts.receive_buffer_bytes.map(|bytes| bytes >> 20);
        // 16 rings x 1024 buffers x 24 lines, and two such rings.
        assert_eq!(mib(facts(|_| {})), Some(24));
        assert_eq!(mib(facts(|s| s.interface = "sh_ring".into())), Some(3));
        assert_eq!(mib(facts(|s| s.interface = "rx_bisect".into())), Some(3));
        assert_eq!(mib(facts(|s| s.interface = "nm_nfv".into())), None);
        assert_eq!(mib(facts(|s| s.packet_sizes = "imix".into())), None);
        // Half of the frames take 24 lines, half of them one.
        let target = facts(|s| (s.target_share, s.target_packet_bytes) = (0.5, Some(64)));
        assert_eq!(target.receive_buffer_bytes, Some((12 << 20) + (1 << 19)));
    }

    #[test]
    fn whole_systems_have_none() {
        assert!(facts(|s| s.workload = "web_server".into()).is_empty());
    }

    #[test]
    fn only_interfaces_that_share_rings_have_cores_per_ring() {
        assert_eq!(facts(|_| {}).cores_per_ring, None);
        let dynamic = facts(|s| s.interface = "sh_ring_dynamic".into());
        assert_eq!(dynamic.cores_per_ring, Some(8));
    }

    #[test]
    fn a_target_and_a_late_start_are_phases() {
        let facts = facts(|s| {
            (s.polling_starts_ms, s.target_share, s.target_begins_ms, s.warmup_ms) = (5.0, 0.31, 40.0, 60.0);
        });
        let named: Vec<_> = facts.phases().collect();
        assert_eq!(named, [(5.0, "polling"), (40.0, "target"), (60.0, "window")]);
    }
}
