//! Flows that NICs handle without software, in whole runs.

use nicforge_lab::run::{RunIo, run_point};
use nicforge_lab::settings::Settings;
use nicforge_record::Metrics;

use crate::common::machine::{machine, small};

fn run(settings: &Settings) -> Metrics {
    settings.check(machine()).unwrap();
    let point = run_point(machine(), settings, 1, &RunIo::default(), &mut |_, _| {});
    point.unwrap().metrics
}

fn offloaded() -> Settings {
    small().with("app", "counter").with("offload", "accel_nfv").with("offered_gbps", 100.0)
}

#[test]
fn known_flows_pass_without_a_core() {
    let metrics = run(&offloaded());
    assert_eq!(metrics.drop_fraction, 0.0);
    assert!((metrics.throughput_gbps / metrics.offered_gbps - 1.0).abs() < 0.05);
    // Nothing was announced to any core.
    assert_eq!(metrics.cycles_per_packet.unwrap().total, 0.0);
    // In the window only few of 500 flows are seen for the first time.
    assert!(metrics.flow_state_miss_rate.unwrap() < 0.3);
}

#[test]
fn state_that_does_not_fit_is_fetched_again_and_again() {
    let settings = offloaded().with("flow_memory_kib", 1);
    let metrics = run(&settings);
    assert!(metrics.flow_state_miss_rate.unwrap() > 0.8);
    let all = run(&offloaded());
    assert!(metrics.pcie_in_utilisation > all.pcie_in_utilisation);
    assert!(metrics.latency_us.unwrap().mean > all.latency_us.unwrap().mean);
}

#[test]
fn without_offload_software_counts() {
    let settings = offloaded().with("offload", "none");
    let metrics = run(&settings);
    assert_eq!(metrics.flow_state_miss_rate, None);
    assert!(metrics.cycles_per_packet.unwrap().app > 0.0);
}
