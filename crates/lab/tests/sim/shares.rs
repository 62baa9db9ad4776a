//! Shares of packets for queues, from settings on: what arrives at each port, and whole runs.

use nicforge_lab::run::{RunIo, check_point, line_of, run_point, traffic_source};
use nicforge_lab::settings::Settings;
use nicforge_record::Metrics;
use nicforge_wire::parse_frame;
use nicforge_wire::rss::{IndirectionTable, Toeplitz};

use crate::common::machine::{machine, small};

const FRAMES: u32 = 10_000;

/// Frames of the first `FRAMES` that a NIC with `queues` queues steers to each.
fn steered(settings: &Settings, port: usize, queues: u16) -> Vec<u32> {
    let line = line_of(&machine().hardware);
    let mut source = traffic_source(settings, line, 1, port, queues, true).unwrap();
    let (rss, table) = (Toeplitz::default(), IndirectionTable::spread_over(queues));
    let mut counts = vec![0; usize::from(queues)];
    for _ in 0..FRAMES {
        let frame = source.next().unwrap().bytes;
        let queue = table.queue(rss.hash(&parse_frame(frame).unwrap()));
        counts[usize::from(queue)] += 1;
    }
    counts
}

fn run(settings: &Settings) -> Metrics {
    let point = run_point(machine(), settings, 1, &RunIo::default(), &mut |_, _| {});
    point.unwrap().metrics
}

#[test]
fn the_first_queue_of_each_port_is_the_busiest() {
    for flow_choice in ["uniform", "zipf", "round_robin"] {
        let settings = small().with("cores", 6).with("busiest_to_idlest", 4.0).with("flow_choice", flow_choice);
        for port in 0..2 {
            // 4, 2.5 and 1 of 7.5.
            let expected = [5_333, 3_333, 1_333];
            let counts = steered(&settings, port, 3);
            for (count, expected) in counts.iter().zip(expected) {
                assert!(count.abs_diff(expected) < 200, "{port}: {counts:?}");
            }
        }
    }
}

#[test]
fn shares_of_a_busy_queue_overload_its_core() {
    let with = |busiest_to_idlest| {
        small()
            .with("busiest_to_idlest", busiest_to_idlest)
            .with("offered_gbps", 60.0)
            .with("rx_entries", 32)
            .with("warmup_ms", 0.2)
            .with("window_ms", 0.4)
    };
    // 30 Gbit/s for each NIC's two cores, which can do some 12 each: 15 and 15, or 27 and 3.
    let (alike, ramp) = (run(&with(1.0)), run(&with(9.0)));
    assert!(ramp.throughput_gbps < 0.8 * alike.throughput_gbps, "{} {}", ramp.throughput_gbps, alike.throughput_gbps);
    assert_eq!(run(&with(9.0)), ramp);
}

#[test]
fn a_lone_queue_has_all_packets_anyway() {
    let without = small().with("cores", 2);
    let with = without.clone().with("busiest_to_idlest", 3.25);
    assert_eq!(run(&with), run(&without));
}

#[test]
fn a_queue_without_flows_is_found_before_the_run() {
    let with = |flows| small().with("cores", 16).with("flows", flows).with("busiest_to_idlest", 3.25);
    assert!(check_point(machine(), &with(500), 1).is_ok());
    let settings = with(9);
    let checked = check_point(machine(), &settings, 1).unwrap_err();
    let line = line_of(&machine().hardware);
    let made = traffic_source(&settings, line, 1, 0, 8, true).unwrap_err();
    assert_eq!(checked.to_string(), made.to_string());
    assert!(made.to_string().contains("is steered to queue"), "{made}");
}
