//! Where the time of a whole system's core goes: a cost of the machine file that is made larger is found
//! in the part that it belongs to, as often as it is paid, and nowhere else.

use std::path::Path;

use nicforge_lab::machine::parse_machine;
use nicforge_record::{CpuTime, Metrics};

use super::{machine, run_on, settings};

const GHZ: f64 = 10.0;

/// Runs `workload` on the shipped machine with `from` in its file replaced by `to`. The core is fast
/// enough for the wire, so that what it spends more is taken from its idle time.
fn metrics_with(workload: &str, from: &str, to: &str) -> Metrics {
    let text = std::fs::read_to_string(&machine().file).unwrap();
    assert_eq!(text.matches(from).count(), 1, "`{from}` stands once");
    let machine = parse_machine(&text.replace(from, to), Path::new("mine.toml")).unwrap();
    let settings =
        settings(workload, "conventional", "OCC").with("cpu_ghz", GHZ).with("warmup_ms", 2.0).with("window_ms", 5.0);
    run_on(&machine, &settings).metrics
}

/// A part of the time, by its name.
type Part = (&'static str, fn(&CpuTime) -> f64);

const PARTS: [Part; 5] = [
    ("interrupt", |time| time.interrupt),
    ("driver", |time| time.driver),
    ("stack", |time| time.stack),
    ("copy", |time| time.copy),
    ("user", |time| time.user),
];

/// `cost` of the file, in cycles, is `more` times as much: `part` takes so much more of the time, `paid`
/// (per second) times the difference.
#[track_caller]
fn is_charged(workload: &str, cost: &str, more: u64, part: &str, paid: fn(&Metrics) -> f64) {
    let (key, cycles) = cost.split_once(" = ").unwrap();
    let cycles: u64 = cycles.parse().unwrap();
    let line = |cycles: u64| format!("{key} = {{ value = {cycles},");
    let before = metrics_with(workload, &line(cycles), &line(cycles));
    let after = metrics_with(workload, &line(cycles), &line(cycles * more));
    let expected = paid(&after) * (cycles * (more - 1)) as f64 / (GHZ * 1e9);
    assert!(expected > 0.05, "{cost} can be seen: {expected}");
    let (before, after) = (before.cpu_time.unwrap(), after.cpu_time.unwrap());
    assert!(after.idle > 0.05, "the core is fast enough: {after:?}");
    for (name, share) in PARTS {
        let change = share(&after) - share(&before);
        let expected = if name == part { expected } else { 0.0 };
        // How often the NIC interrupts depends on how long a poll lasts.
        assert!((change - expected).abs() < 0.03, "{cost}: {name} changed by {change}, not {expected}");
    }
}

fn packets(metrics: &Metrics) -> f64 {
    metrics.offered_mpps * 1e6
}

#[test]
fn interrupts_are_charged_as_such() {
    let paid = |metrics: &Metrics| metrics.interrupts_khz.unwrap() * 1e3;
    is_charged("tcp_receive", "interrupt_cycles = 1500", 8, "interrupt", paid);
}

#[test]
fn the_drivers_work_is_the_drivers() {
    is_charged("tcp_receive", "rx_packet_cycles = 600", 3, "driver", packets);
}

#[test]
fn ip_and_tcp_are_the_stacks_and_so_is_what_a_gateway_does() {
    is_charged("tcp_receive", "rx_data_cycles = 2500", 2, "stack", packets);
    is_charged("nat_gateway", "forward_cycles = 1500", 2, "stack", packets);
    is_charged("nat_gateway", "work_cycles = 1450", 2, "stack", packets);
}

#[test]
fn a_process_pays_for_its_own_work() {
    // Answers of 8 KiB and a header of 48 bytes.
    let reads = |metrics: &Metrics| metrics.bandwidth_gbps.unwrap() * 1e9 / 8.0 / 8240.0;
    is_charged("iscsi_initiator", "work_cycles = 6000", 2, "user", reads);
}

#[test]
fn copying_is_charged_by_the_byte() {
    // Eight bytes a cycle; at one, seven eighths of a cycle more for each.
    let (eight, one) = ("copy_bytes_per_cycle = { value = 8,", "copy_bytes_per_cycle = { value = 1,");
    let (before, after) = (metrics_with("tcp_receive", eight, eight), metrics_with("tcp_receive", eight, one));
    let bytes = after.bandwidth_gbps.unwrap() * 1e9 / 8.0;
    let expected = bytes * (1.0 - 1.0 / 8.0) / (GHZ * 1e9);
    let (before, after) = (before.cpu_time.unwrap(), after.cpu_time.unwrap());
    assert!(after.idle > 0.05, "{after:?}");
    for (name, share) in PARTS {
        let change = share(&after) - share(&before);
        let expected = if name == "copy" { expected } else { 0.0 };
        assert!((change - expected).abs() < 0.02, "{name}: {change}, not {expected}");
    }
}
