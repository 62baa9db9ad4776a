use super::*;
use crate::support::interfaces::interfaces;
use crate::support::netns::example_file;
use crate::support::traffic::{tcp_both_ways, udp_questions};

/// Mean bytes of what went out, segments counted as one.
fn mean_bytes(report: &serde_json::Value) -> f64 {
    let metrics = &report["points"][0]["metrics"];
    let of = |name: &str| metrics[name].as_f64().unwrap();
    of("throughput_gbps") * 1e9 / 8.0 / (of("throughput_mpps") * 1e6)
}

fn assert_clean(report: &serde_json::Value, interface: &str) {
    for cause in ["oversized_frame", "above_mtu", "bad_checksum", "port_refused"] {
        assert_eq!(drops(report, cause), 0, "{interface}: {cause} {report}");
    }
}

/// Of one interface to the other nobody computes a checksum or cuts: the kernel has both done when
/// a host takes the frames, or finds that they never saw a wire.
#[test]
fn segments_go_through_whole_on_every_interface() {
    let Some(hosts) = Hosts::up("whole") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = nat_with(&folder, "interface", "interface", "segments = \"whole\"");
    for interface in interfaces() {
        let set = format!("interface={interface}");
        let entries = ["rx_entries=64", "tx_entries=64", "cores=2"];
        let gateway = hosts.start(&file, &[&[set.as_str()][..], &entries].concat());
        wait_for_answers(&hosts);
        tcp_both_ways(&hosts, "10.99.2.2:7000", "10.99.2.2:7000", 3);
        udp_questions(&hosts, "10.99.2.2:53", "10.99.2.2:53", 1472);
        let report = gateway.stop();
        assert_clean(&report, interface);
        let mean = mean_bytes(&report);
        assert!(mean > 2_000.0, "{interface}: {mean} bytes, so they were cut");
    }
}

/// Where they leave by a port that has nobody behind it who could do it, the port does it: veths do
/// not cut what comes out of XDP.
#[test]
fn segments_are_cut_for_a_port_that_needs_it() {
    let Some(hosts) = Hosts::up("wholexdp") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = nat_with(&folder, "interface", "xdp", "segments = \"whole\"");
    let gateway = hosts.start(&file, &["rx_entries=64", "tx_entries=64"]);
    wait_for_answers(&hosts);
    tcp_both_ways(&hosts, "10.99.2.2:7000", "10.99.2.2:7000", 3);
    udp_questions(&hosts, "10.99.2.2:53", "10.99.2.2:53", 1472);
    assert_clean(&gateway.stop(), "priv_ring");
}

/// What does not fit a buffer is cut, and a smaller MTU on the way out than a segment's frames is an
/// error as ever.
#[test]
fn segments_longer_than_a_buffer_are_cut() {
    let Some(hosts) = Hosts::up("wholecut") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = nat_with(&folder, "interface", "interface", "segments = \"whole\"");
    let gateway = hosts.start(&file, &["buffer_bytes=2048"]);
    wait_for_answers(&hosts);
    tcp_both_ways(&hosts, "10.99.2.2:7000", "10.99.2.2:7000", 2);
    ip(&hosts, "gateway", "link set nf-outside mtu 1000");
    // The port looks every 50 ms.
    std::thread::sleep(std::time::Duration::from_millis(500));
    hosts.run("client", || {
        let socket = std::net::UdpSocket::bind("10.99.1.2:0").unwrap();
        socket.send_to(&[1; 1400], "10.99.2.2:53").unwrap();
    });
    assert!(hosts.answers("10.99.2.2"), "short ones go on");
    let report = gateway.stop();
    assert_eq!(drops(&report, "above_mtu"), 1, "{report}");
    assert!(mean_bytes(&report) < 1515.0);
}

#[test]
fn the_example_carries_tcp() {
    let Some(hosts) = Hosts::up("wholeex") else {
        return;
    };
    let gateway = hosts.start(&example_file("nat-segments.toml"), &[]);
    wait_for_answers(&hosts);
    tcp_both_ways(&hosts, "10.99.2.2:7000", "10.99.2.2:7000", 4);
    assert_clean(&gateway.stop(), "the example's");
}
