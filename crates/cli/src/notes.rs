//! What is to be said about a scenario that is no error: what a replay leaves out of a capture or
//! mends in it, and ring sizes that a paper advises against.

use std::path::Path;

use nicforge_interfaces::rx_bisect::{Sizing, burst_warning, sizing_warnings};
use nicforge_lab::machine::Machine;
use nicforge_lab::settings::Settings;
use nicforge_units::Bytes;
use nicforge_wire::traffic::{FRAME_BYTES_MAX, ReplayCounts};

/// What speaks against the sizes of a point's rings.
pub fn about_sizes(settings: &Settings, machine: &Machine) -> Vec<String> {
    let emulated = settings.interface == "emulated";
    let interface = match emulated {
        true => &settings.emulates,
        false => &settings.interface,
    };
    let (llc, nic) = (&machine.hardware.llc, &machine.hardware.nic);
    match interface.as_str() {
        "rx_bisect" => {}
        name if name.starts_with("sh_ring") => {
            let of_all = burst_warning("Shared rings", settings.rx_entries, nic.burst_entries);
            return of_all.into_iter().collect();
        }
        _ => return Vec::new(),
    }
    let queues = settings.cores / settings.nics;
    let rings = match settings.ax_rings {
        0 => queues,
        rings => rings,
    };
    sizing_warnings(&Sizing {
        nics: settings.nics,
        ax_rings: rings,
        sets: settings.association_sets,
        ax_entries: settings.ax_entries,
        bx_entries: settings.bx_entries,
        burst_entries: nic.burst_entries,
        entries_min: nic.ring_entries_min,
        emulated,
        frame: Bytes(settings.frame_bytes().into()),
        io_capacity: Bytes(llc.size.0 / llc.ways as u64 * settings.io_ways as u64),
    })
}

/// One line about `capture`; `None` when all of it is replayed as it is.
pub fn about(capture: &Path, counts: &ReplayCounts) -> Option<String> {
    let reader = &counts.reader;
    let too_long = format!("longer than {FRAME_BYTES_MAX} bytes");
    let left_out = [
        (counts.over_long, too_long.as_str()),
        (reader.zero_length, "without bytes"),
        (reader.longer_than_original, "longer than their packet"),
        (reader.no_ethernet_form, "that have no Ethernet form"),
        (reader.unknown_blocks, "in blocks of unknown kinds"),
    ];
    let mended = [
        (counts.padded, "captured short, filled up with zeros"),
        (reader.time_went_back, "from before the one before them"),
        (reader.time_out_of_range, "later than a run can last"),
        (reader.fraction_out_of_range, "with a broken time stamp"),
    ];
    let parts = [("left out", &left_out[..]), ("mended", &mended[..])];
    let parts: Vec<String> = parts
        .into_iter()
        .filter_map(|(what, causes)| list(what, causes))
        .collect();
    (!parts.is_empty()).then(|| format!("{}: records {}", capture.display(), parts.join("; ")))
}

fn list(what: &str, causes: &[(u64, &str)]) -> Option<String> {
    let causes = causes.iter().filter(|(count, _)| *count > 0);
    let causes: Vec<String> = causes
        .map(|(count, cause)| format!("{count} {cause}"))
        .collect();
    (!causes.is_empty()).then(|| format!("{what}: {}", causes.join(", ")))
}
