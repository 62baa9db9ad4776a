//! How much a point is, before it runs.

use nicforge_lab::machine::Machine;
use nicforge_lab::settings::Settings;
use nicforge_units::Bytes;

/// Simulated time of a point, in milliseconds; a no-drop-rate search repeats it.
pub fn simulated_ms(settings: &Settings) -> f64 {
    settings.warmup_ms + settings.window_ms
}

/// About how many frames arrive in a point; `None` where the traffic alone decides.
pub fn frames(settings: &Settings, machine: &Machine) -> Option<f64> {
    let sizes_vary = settings.packet_sizes != "fixed" && settings.app != "kvs";
    if sizes_vary || settings.arrival == "ping_pong" {
        return None;
    }
    if settings.arrival == "replay" {
        return None;
    }
    let nic = &machine.hardware.nic;
    let frame = Bytes(u64::from(settings.frame_bytes()));
    let line_time = nic.port.time_for(frame + nic.wire_overhead).as_seconds();
    let line_rate = settings.nics as f64 / line_time;
    let offered = settings.offered_gbps * 1e9 / (frame.0 as f64 * 8.0);
    Some(offered.min(line_rate) * simulated_ms(settings) / 1e3)
}

/// A count of frames as a person says it.
pub fn human(frames: f64) -> String {
    match frames {
        f if f >= 1e6 => format!("{:.1} million", f / 1e6),
        f if f >= 1e4 => format!("{:.0} thousand", f / 1e3),
        f => format!("{f:.0}"),
    }
}
