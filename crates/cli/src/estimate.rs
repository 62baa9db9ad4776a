//! How much the points of a scenario are, before they run.

use nicforge_lab::machine::Machine;
use nicforge_lab::run::options::{
    Arrival, Arrivals, Measure, Measurement, PacketSizes, Rate, Sizes, Warmup, WindowOptions,
};
use nicforge_lab::run::trials_max;
use nicforge_lab::scenario::Point;
use nicforge_lab::settings::Settings;
use nicforge_units::Bytes;

/// What all `points` simulate, in words: milliseconds, about how many frames, trials of searches, captures.
pub fn amount(points: &[Point], machine: &Machine) -> String {
    let kind = |searches: bool, replays: bool| -> Vec<&Settings> {
        let all = points.iter().map(|point| &point.settings);
        let is_it = |settings: &&Settings| {
            let made = settings.is_of_frames();
            searches == (made && settings.read::<Measurement>().measure == Measure::NoDropRate)
                && replays == (made && settings.replays())
        };
        all.filter(is_it).collect()
    };
    let ms = |windows: usize, of: &[&Settings]| {
        let each =
            of.iter().map(|s| s.read::<Warmup>().warmup_ms + s.read::<WindowOptions>().window_ms * windows as f64);
        (each.sum::<f64>() * 1e3).round() / 1e3
    };
    let trials = trials_max();
    let mut parts = Vec::new();
    let windows = kind(false, false);
    if !windows.is_empty() {
        let known: Option<f64> = windows.iter().map(|s| frames(s, machine)).sum();
        let size = known.map_or(String::new(), |frames| format!(", about {} frames", human(frames)));
        parts.push(format!("{} ms of simulated time{size}", ms(1, &windows)));
    }
    let searches = kind(true, false);
    if !searches.is_empty() {
        let most = ms(trials, &searches);
        parts.push(format!(
            "up to {most} ms of simulated time in searches of up to {trials} trials each, and until rings are empty after each"
        ));
    }
    if !kind(false, true).is_empty() {
        parts.push("as long as its capture for each replay".to_owned());
    }
    if !kind(true, true).is_empty() {
        parts.push(format!("searches that replay their capture up to {trials} times"));
    }
    parts.join("; ")
}

/// About how many frames arrive in a point; `None` where the traffic alone decides.
fn frames(settings: &Settings, machine: &Machine) -> Option<f64> {
    let sizes_vary =
        settings.read::<Sizes>().packet_sizes != PacketSizes::Fixed && settings.app_shape().requests.is_none();
    // Several hosts send what their windows let them.
    if sizes_vary || settings.read::<Arrivals>().arrival == Arrival::PingPong || !settings.is_of_frames() {
        return None;
    }
    let nic = &machine.hardware.nic;
    let frame = Bytes(u64::from(settings.frame_bytes()));
    let line_time = nic.port.time_for(frame + nic.wire_overhead).as_seconds();
    let line_rate = settings.nics() as f64 / line_time;
    let offered = settings.read::<Rate>().offered_gbps * 1e9 / (frame.0 as f64 * 8.0);
    Some(
        offered.min(line_rate) * (settings.read::<Warmup>().warmup_ms + settings.read::<WindowOptions>().window_ms)
            / 1e3,
    )
}

/// A count of frames as a person says it.
fn human(frames: f64) -> String {
    match frames {
        f if f >= 1e6 => format!("{:.1} million", f / 1e6),
        f if f >= 1e4 => format!("{:.0} thousand", f / 1e3),
        f => format!("{f:.0}"),
    }
}
