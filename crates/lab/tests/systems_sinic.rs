//! Whole systems whose NIC is a SINIC: TCP over FIFOs that the CPU empties and fills by registers.

use std::path::Path;

use nicforge_lab::machine::{Machine, load_machine};
use nicforge_lab::metrics::Metrics;
use nicforge_lab::run::{RunIo, run_point};
use nicforge_lab::settings::Settings;

const INTERFACES: [&str; 3] = ["sinic", "v_sinic", "v_sinic_zero_copy"];

fn machine() -> Machine {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
    load_machine(&folder.join("m5-10gbe.toml")).unwrap()
}

fn settings(workload: &str, interface: &str) -> Settings {
    Settings {
        workload: workload.into(),
        interface: interface.into(),
        placement: "OCC".into(),
        warmup_ms: 1.0,
        window_ms: 2.0,
        ..Settings::for_machine(&machine())
    }
}

/// Runs a point. That every byte which a process reads is the one that its peer wrote there is
/// checked inside, and so is that every packet buffer is found in one place.
fn measure(settings: &Settings) -> Metrics {
    let io = RunIo::default();
    settings.check(&machine()).unwrap();
    let point = run_point(&machine(), settings, 1, &io, &mut |_, _| {}).unwrap();
    point.metrics
}

#[test]
fn streams_go_both_ways_and_the_drivers_do_nothing_wrong() {
    for interface in INTERFACES {
        for workload in ["tcp_receive", "tcp_transmit"] {
            for (streams, cpu_ghz) in [(1, 2.0), (8, 10.0)] {
                let metrics = measure(&Settings {
                    streams,
                    cpu_ghz: Some(cpu_ghz),
                    ..settings(workload, interface)
                });
                let what = format!("{interface} {workload} {streams}: {metrics:?}");
                assert!(metrics.bandwidth_gbps.unwrap() > 1.0, "{what}");
                // Register accesses that mean nothing are counted as drops are.
                assert_eq!(metrics.drops.values().sum::<u64>(), 0, "{what}");
            }
        }
    }
}

#[test]
fn streams_arrive_as_they_were_sent_whatever_the_link_does() {
    for interface in INTERFACES {
        let metrics = measure(&Settings {
            link_loss: 0.002,
            link_duplicates: 0.02,
            link_reordered: 0.02,
            streams: 3,
            window_ms: 5.0,
            ..settings("tcp_receive", interface)
        });
        assert!(
            metrics.bandwidth_gbps.unwrap() > 0.01,
            "{interface}: {metrics:?}"
        );
    }
}

#[test]
fn servers_and_gateways_run_over_it() {
    for interface in INTERFACES {
        for (workload, streams) in [
            ("web_server", 4),
            ("iscsi_initiator", 1),
            ("nat_gateway", 2),
        ] {
            let metrics = measure(&Settings {
                streams,
                ..settings(workload, interface)
            });
            let what = format!("{interface} {workload}: {metrics:?}");
            assert!(metrics.bandwidth_gbps.unwrap() > 0.01, "{what}");
            assert_eq!(metrics.drops.values().sum::<u64>(), 0, "{what}");
        }
    }
}

#[test]
fn the_same_point_measures_the_same() {
    for interface in INTERFACES {
        let settings = settings("tcp_receive", interface);
        assert_eq!(measure(&settings), measure(&settings), "{interface}");
    }
}
