//! Notes on rings: sizes, and when they are shared.

use nicforge_interfaces::rx_bisect::{Sizing, burst_warning, sizing_warnings};
use nicforge_lab::machine::Machine;
use nicforge_lab::run::{line_of, topology};
use nicforge_lab::settings::Settings;
use nicforge_units::Bytes;
use nicforge_wire::traffic::Line;

use super::range;

/// What speaks against the sizes of a point's rings.
pub fn about_sizes(settings: &Settings, machine: &Machine) -> Vec<String> {
    let (llc, nic) = (&machine.hardware.llc, &machine.hardware.nic);
    match settings.seen_by_drivers() {
        "rx_bisect" => {}
        name if name.starts_with("sh_ring") => {
            let of_all = burst_warning("Shared rings", settings.rx_entries, nic.burst_entries);
            return of_all.into_iter().collect();
        }
        _ => return Vec::new(),
    }
    let topology = topology(settings);
    let written = settings.associations.is_some() || settings.ax_links.is_some();
    sizing_warnings(&Sizing {
        nics: settings.nics,
        queues: topology.bx.len(),
        ax_rings: topology.ax.len(),
        sets: settings.association_sets,
        written: written.then_some(&topology),
        ax_entries: settings.ax_entries,
        bx_entries: settings.bx_entries,
        burst_entries: nic.burst_entries,
        entries_min: nic.ring_entries_min,
        emulated: settings.interface == "emulated",
        // Of a store the mean: what fills the cache is requests of all kinds.
        frame: Bytes(settings.frame_bytes().into()),
        io_capacity: Bytes(llc.size.0 / llc.ways as u64 * settings.io_ways as u64),
    })
}

/// Dynamic shRing that cannot share its rings, or not for longer than a look.
pub fn about_switching(settings: &Settings, machine: &Machine) -> Option<String> {
    if settings.seen_by_drivers() != "sh_ring_dynamic" {
        return None;
    }
    let (looks, part) = (settings.dynamic_window, settings.dynamic_on_share);
    if settings.dynamic_off_share == 0.0 {
        return Some(
            "dynamic_off_share = 0: rings are private again at the next look whatever it sees; the paper has 0.875 \
             (shRing, section 5.1.5)"
                .to_string(),
        );
    }
    // More than this part of all looks.
    let needed = (part * looks as f64).floor() + 1.0;
    if needed > looks as f64 {
        return Some(format!(
            "dynamic_on_share = {part}: rings stay private, as never more than all looks speak for sharing; the \
             paper has 0.5 (shRing, section 5.1.5)"
        ));
    }
    if let Some(little) = about_little_traffic(settings, machine) {
        return Some(little);
    }
    let first = needed * settings.dynamic_step_ms;
    let ends = settings.warmup_ms + settings.window_ms;
    let most = (ends / needed * 100.0).floor() / 100.0;
    let remedy = match range("dynamic_step_ms") {
        Some((least, _)) if most < least => String::new(),
        _ => format!(", or set dynamic_step_ms to at most {most}"),
    };
    (first > ends).then(|| {
        format!(
            "rings stay private: the control core can share them after {needed} looks at the earliest, {first} ms, \
             when the run has ended ({ends} ms); let the run last longer{remedy}"
        )
    })
}

/// Dynamic shRing that never sees as much traffic as it takes to share.
fn about_little_traffic(settings: &Settings, machine: &Machine) -> Option<String> {
    let Line { rate, overhead } = line_of(&machine.hardware);
    let nics = settings.nics as f64;
    let frame = settings.frame_bytes() as f64;
    let alike = settings.packet_sizes == "fixed" && settings.app != "kvs";
    let made_alike =
        alike && settings.arrival != "replay" && settings.target_packet_bytes.is_none();
    // What Ethernet adds to each frame is known where all are alike; elsewhere it counts for nothing.
    let frames = match made_alike {
        true => frame / (frame + overhead.0 as f64),
        false => 1.0,
    };
    let wires = nics * rate.as_bits_per_second() as f64 / 1e9 * frames;
    // Other traffic is offered by its mean only, or as answers come.
    let even = ["constant", "poisson"].contains(&settings.arrival.as_str());
    let offered = settings.offered_gbps;
    let (most, whose, remedy) = match even && offered <= wires {
        true => (offered, "are offered", "offer more"),
        false => (wires, "fit the wires of the NICs in use", "use more NICs"),
    };
    let needed = settings.dynamic_gbps;
    (most <= needed).then(|| {
        format!(
            "rings stay private: at most {most:.1} Gbit/s {whose}, and sharing needs more than dynamic_gbps = {needed}; \
             {remedy}, or set dynamic_gbps to less"
        )
    })
}
