use std::process::Stdio;
use std::time::Duration;

use super::*;
use crate::support::traffic::tcp_both_ways;

/// Both kinds of ports see their interface go and come back, and say so.
fn a_link_goes_and_comes(name: &str, kind: &str) {
    let Some(hosts) = Hosts::up(name) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut live = hosts.on("gateway", env!("CARGO_BIN_EXE_nicforge"));
    live.arg("live").arg(nat(&folder, kind, kind));
    live.arg("--out").arg(folder.path().join("out"));
    let live = Program::start(live.stdout(Stdio::piped()));
    wait_for_answers(&hosts);
    // Its own end, and the carrier by the other end.
    for (host, interface) in [("gateway", "nf-outside"), ("server", "eth0")] {
        ip(&hosts, host, &format!("link set {interface} down"));
        // Long enough for a line of the table, which comes once a second.
        std::thread::sleep(Duration::from_millis(2_500));
        assert!(!hosts.answers("10.99.2.2"), "nobody is there");
        ip(&hosts, host, &format!("link set {interface} up"));
        wait_for_answers(&hosts);
        // The port looks every 50 ms: what is over sooner is not seen.
        std::thread::sleep(Duration::from_millis(500));
    }
    ip(&hosts, "gateway", "link set nf-inside mtu 1400");
    ip(&hosts, "client", "link set eth0 mtu 1400");
    tcp_both_ways(&hosts, "10.99.2.2:7000", "10.99.2.2:7000", 1);
    let wanted = ["port 1 DOWN", "up, MTU 1500, 2 times down", "up, MTU 1400, MTU changed 1 times"];
    stops_saying(live, &wanted);
}

#[test]
fn a_packet_socket_outlives_its_link() {
    a_link_goes_and_comes("updown", "interface");
}

#[test]
fn af_xdp_outlives_its_link() {
    a_link_goes_and_comes("xdpupdown", "xdp");
}

/// Ports hear all frames of their links, as a bridge must; a router forwards those for its own address only.
#[test]
fn ports_are_promiscuous_as_long_as_they_are_open() {
    let Some(hosts) = Hosts::up("promisc") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let promiscuity = || ip(&hosts, "gateway", "-d link show nf-inside").contains("promiscuity 1");
    for kind in ["interface", "xdp"] {
        let gateway = hosts.start(&nat(&folder, kind, kind), &[]);
        wait_for_answers(&hosts);
        assert!(promiscuity(), "{kind}");
        ip(&hosts, "client", "neigh replace 10.99.1.1 lladdr 02:00:00:77:77:77 dev eth0");
        assert!(!hosts.pings("10.99.2.2", 3), "{kind}: a router leaves frames for other hosts alone");
        ip(&hosts, "client", "neigh del 10.99.1.1 dev eth0");
        gateway.stop();
        assert!(!promiscuity(), "{kind}");
    }
}
