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
    let [small, large] = [64, 4096].map(with_rings_of);
    let hits = |run: &Metrics| (run.app_hit_rate.unwrap(), run.ddio_hit_rate.unwrap());
    let ((small_app, small_io), (large_app, large_io)) = (hits(&small), hits(&large));
    assert!(large_io < small_io / 2.0, "I/O lines: {small_io} and {large_io}");
    assert!(large_app < 0.9 * small_app, "the application's look-ups: {small_app} and {large_app}");
}
