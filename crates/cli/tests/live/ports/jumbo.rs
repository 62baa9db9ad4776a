use std::net::UdpSocket;

use super::*;
use crate::support::interfaces::interfaces;
use crate::support::traffic::{tcp_both_ways, udp_questions};

const MTU: usize = 9000;
/// IPv4 and UDP headers.
const HEADERS: usize = 28;

fn set_mtu(hosts: &Hosts, mtu: usize) {
    for (host, interface) in
        [("client", "eth0"), ("server", "eth0"), ("gateway", "nf-inside"), ("gateway", "nf-outside")]
    {
        ip(hosts, host, &format!("link set {interface} mtu {mtu}"));
    }
}

/// Buffers are made for the MTU that the ports have when the run begins.
fn carries_jumbo_frames(name: &str, kind: &str) {
    let Some(hosts) = Hosts::up(name) else { return };
    set_mtu(&hosts, MTU);
    let folder = tempfile::tempdir().unwrap();
    let file = nat(&folder, kind, kind);
    for interface in interfaces() {
        let set = format!("interface={interface}");
        let gateway = hosts.start(&file, &[&set, "cores=2"]);
        wait_for_answers(&hosts);
        tcp_both_ways(&hosts, "10.99.2.2:7000", "10.99.2.2:7000", 2);
        udp_questions(&hosts, "10.99.2.2:53", "10.99.2.2:53", MTU - HEADERS);
        let report = gateway.stop();
        for cause in ["oversized_frame", "above_mtu", "bad_checksum"] {
            assert_eq!(drops(&report, cause), 0, "{interface}: {cause}");
        }
    }
}

#[test]
fn packet_sockets_carry_jumbo_frames_on_every_interface() {
    carries_jumbo_frames("jumbo", "interface");
}

#[test]
fn af_xdp_carries_jumbo_frames_on_every_interface() {
    carries_jumbo_frames("xdpjumbo", "xdp");
}

/// Sends a datagram that makes a frame of `mtu` bytes behind its Ethernet header.
fn send(hosts: &Hosts, mtu: usize) {
    hosts.run("client", || {
        let socket = UdpSocket::bind("10.99.1.2:0").unwrap();
        socket.send_to(&vec![1; mtu - HEADERS], "10.99.2.2:53").unwrap();
    });
}

/// What does not fit the way out, and what does not fit a buffer, has a name each.
fn counts_what_is_too_long(name: &str, kind: &str) {
    let Some(hosts) = Hosts::up(name) else { return };
    set_mtu(&hosts, 4000);
    let folder = tempfile::tempdir().unwrap();
    // Else buffers hold whole segments.
    let gateway = hosts.start(&nat_with(&folder, kind, kind, "segments = \"cut\""), &[]);
    wait_for_answers(&hosts);
    ip(&hosts, "gateway", "link set nf-outside mtu 1500");
    // The port looks every 50 ms.
    std::thread::sleep(std::time::Duration::from_millis(500));
    for _ in 0..3 {
        send(&hosts, 3000);
    }
    assert!(hosts.answers("10.99.2.2"), "short ones go on");
    set_mtu(&hosts, 8000);
    // The client has been told to send less by now, and forgets it.
    ip(&hosts, "client", "route flush cache");
    for _ in 0..2 {
        send(&hosts, 7000);
    }
    assert!(hosts.answers("10.99.2.2"), "short ones go on");
    let report = gateway.stop();
    // Once it is told it sends no more of them.
    let too_long = drops(&report, "above_mtu");
    assert!((1..=3).contains(&too_long), "{report}");
    assert_eq!(drops(&report, "oversized_frame"), 2, "{report}");
}

#[test]
fn a_packet_socket_counts_what_is_too_long() {
    counts_what_is_too_long("long", "interface");
}

#[test]
fn af_xdp_counts_what_is_too_long() {
    counts_what_is_too_long("xdplong", "xdp");
}
