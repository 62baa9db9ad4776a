//! What the size of private rings does to caches, on the server of the papers under the load that their figures have.

use nicforge_lab::run::{RunIo, run_point};
use nicforge_lab::settings::{Catalogue, Settings};
use nicforge_record::Metrics;

use crate::common::machine::machine;

/// The load balancer of calibration point c3, on full rings.
fn with_rings_of(entries: usize) -> Metrics {
    let settings = Settings::for_machine(&Catalogue::shipped(), machine())
        .with("app", "lb")
        .with("cores", 16)
        .with("nics", 2)
        .with("packet_bytes", 1500)
        .with("offered_gbps", 195.6)
        .with("rx_entries", entries)
        .with("tx_entries", 1024)
        .with("flows", 1_000_000)
        .with("polling_starts_ms", 5.0)
        .with("warmup_ms", 25.0)
        .with("window_ms", 2.0);
    run_point(machine(), &settings, 1, &RunIo::default(), &mut |_, _| {}).unwrap().metrics
}

#[test]
fn growing_rings_lower_the_applications_own_hits() {
    let runs = [64, 1024, 4096].map(with_rings_of);
    let app = runs.each_ref().map(|run| run.app_hit_rate.unwrap());
    let io = runs.each_ref().map(|run| run.ddio_hit_rate.unwrap());
    assert!(app.is_sorted_by(|smaller, larger| smaller > larger), "the application's look-ups: {app:?}");
    assert!(app[2] < 0.9 * app[0], "the application's look-ups: {app:?}");
    assert!(io[2] < io[0] / 2.0, "I/O lines: {io:?}");
}
