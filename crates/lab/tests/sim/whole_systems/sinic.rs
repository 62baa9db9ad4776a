//! Whole systems whose NIC is a SINIC: TCP over FIFOs that the CPU empties and fills by registers.

use nicforge_interfaces::describe::Software;
use nicforge_lab::settings::Catalogue;
use nicforge_lab::settings::Settings;
use nicforge_record::Metrics;

use super::measure;

/// All NICs of whole systems that are driven by registers.
fn interfaces() -> impl Iterator<Item = &'static str> {
    let names = Catalogue::shipped().interfaces_of(Software::Kernel).into_iter();
    names.filter(|&name| name != "conventional")
}

fn settings(workload: &str, interface: &str) -> Settings {
    super::settings(workload, interface, "OCC")
}

#[test]
fn streams_go_both_ways_and_the_drivers_do_nothing_wrong() {
    for interface in interfaces() {
        for workload in ["tcp_receive", "tcp_transmit"] {
            for (streams, cpu_ghz) in [(1, 2.0), (8, 10.0)] {
                let metrics = measure(&settings(workload, interface).with("streams", streams).with("cpu_ghz", cpu_ghz));
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
    for interface in interfaces() {
        let metrics = measure(
            &settings("tcp_receive", interface)
                .with("link_loss", 0.002)
                .with("link_duplicates", 0.02)
                .with("link_reordered", 0.02)
                .with("streams", 3)
                .with("window_ms", 5.0),
        );
        assert!(metrics.bandwidth_gbps.unwrap() > 0.01, "{interface}: {metrics:?}");
    }
}

#[test]
fn servers_and_gateways_run_over_it() {
    for interface in interfaces() {
        for (workload, streams) in [("web_server", 4), ("iscsi_initiator", 1), ("nat_gateway", 2)] {
            let metrics = measure(&settings(workload, interface).with("streams", streams));
            let what = format!("{interface} {workload}: {metrics:?}");
            assert!(metrics.bandwidth_gbps.unwrap() > 0.01, "{what}");
            assert_eq!(metrics.drops.values().sum::<u64>(), 0, "{what}");
        }
    }
}

#[test]
fn the_same_point_measures_the_same() {
    for interface in interfaces() {
        let settings = settings("tcp_receive", interface);
        assert_eq!(measure(&settings), measure(&settings), "{interface}");
    }
}

#[test]
fn a_driver_does_what_its_device_asks() {
    let bandwidth = |settings: &Settings| {
        let metrics = measure(settings);
        assert_eq!(metrics.drops.values().sum::<u64>(), 0, "{metrics:?}");
        assert!(metrics.bandwidth_gbps.unwrap() > 1.0, "{metrics:?}");
        metrics
    };
    for (workload, interface) in [("tcp_receive", "v_sinic_zero_copy"), ("tcp_transmit", "sinic")] {
        let plain = settings(workload, interface);
        let as_ever = bandwidth(&plain);
        let polls = bandwidth(&plain.clone().with("driver_polls", true));
        assert_eq!(polls.interrupts_khz, Some(0.0));
        assert!(as_ever.interrupts_khz > Some(0.0));
        // Who polls is never idle.
        assert_eq!(polls.cpu_time.unwrap().idle, 0.0);
        for (receive_thread, transmit_thread) in [(true, false), (false, true)] {
            let with_thread = bandwidth(
                &plain.clone().with("receive_thread", receive_thread).with("transmit_thread", transmit_thread),
            );
            // Waking it takes time of the core.
            let stack = |metrics: &Metrics| metrics.cpu_time.as_ref().unwrap().stack;
            assert_ne!(stack(&with_thread), stack(&as_ever), "{workload}");
        }
    }
}

#[test]
fn a_copy_that_is_delayed_is_the_cores_still_and_one_that_is_saved_is_not() {
    let copy = |interface| {
        let settings = settings("tcp_receive", interface).with("cpu_ghz", 10.0);
        let metrics = measure(&settings);
        metrics.cpu_time.unwrap().copy / metrics.bandwidth_gbps.unwrap()
    };
    let (plain, delayed, saved) = (copy("v_sinic"), copy("v_sinic_delayed_copy"), copy("v_sinic_zero_copy"));
    // Delayed, the core waits for the engine besides.
    assert!(delayed > plain && saved < delayed, "{plain} {delayed} {saved}");
}
