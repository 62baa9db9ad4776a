//! TCP's byte streams arrive as they were sent, whatever the link does: for each workload and NIC over
//! a second, in which retransmissions by timer happen as well.
//!
//! That every byte is that of its connection, its direction and its place is checked inside.

use nicforge_interfaces::describe::Software;
use nicforge_lab::settings::Catalogue;

use super::{measure, settings};

/// Runs `workload` over every kind of NIC, for a second.
fn arrives_as_sent(workload: &str, streams: usize) {
    for interface in Catalogue::shipped().interfaces_of(Software::Kernel) {
        let metrics = measure(
            &settings(workload, interface, "OCC")
                .with("link_loss", 0.02)
                .with("link_duplicates", 0.02)
                .with("link_reordered", 0.02)
                .with("streams", streams)
                .with("window_ms", 1000.0),
        );
        let bandwidth = metrics.bandwidth_gbps.unwrap();
        // A wire's worth would be 9.6.
        assert!((1e-4..5.0).contains(&bandwidth), "{workload} {interface}: {bandwidth}");
        let idle = metrics.cpu_time.unwrap().idle;
        assert!(idle > 0.3, "{workload} {interface}: idle {idle}");
    }
}

#[test]
fn received_streams() {
    arrives_as_sent("tcp_receive", 3);
}

#[test]
fn transmitted_streams() {
    arrives_as_sent("tcp_transmit", 3);
}

#[test]
fn requests_and_files() {
    arrives_as_sent("web_server", 4);
}

#[test]
fn reads_of_a_target() {
    arrives_as_sent("iscsi_initiator", 1);
}

#[test]
fn streams_through_a_gateway() {
    arrives_as_sent("nat_gateway", 3);
}
