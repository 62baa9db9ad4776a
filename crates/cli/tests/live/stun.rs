//! A public client of STUN (Debian's `stun-client`, RFC 3489) says which kind of NAT it is behind. Needs root, `stun` and
//! `stund`; skipped with a line where one is missing.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use crate::skip;
use crate::support::netns::{Hosts, has};
use crate::support::program::Program;

/// The server's addresses: what makes a NAT answer differently by address needs two.
const PRIMARY: &str = "10.99.2.2";
const SECONDARY: &str = "10.99.2.3";

/// The server, with both its addresses.
fn server(hosts: &Hosts, stund: &str) -> Program {
    let mut ip = hosts.on("server", "ip");
    assert!(ip.args(["addr", "add", &format!("{SECONDARY}/24"), "dev", "eth0"]).status().unwrap().success());
    let mut stund = hosts.on("server", stund);
    stund.args(["-h", PRIMARY, "-a", SECONDARY]);
    let server = Program::start_silent(&mut stund);
    // It answers once it has all four sockets.
    let asker = hosts.run("server", || UdpSocket::bind((PRIMARY, 0)).unwrap());
    asker.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let question = [&[0, 1, 0, 0][..], &[7; 16]].concat();
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        asker.send_to(&question, (SECONDARY, 3479)).unwrap();
        if asker.recv(&mut [0; 256]).is_ok() {
            return server;
        }
        assert!(Instant::now() < until, "stund does not answer");
    }
}

/// What the client says of the network that it is in.
fn verdict(hosts: &Hosts) -> String {
    let said = hosts.on("client", "stun").arg(PRIMARY).output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let verdict = said.lines().find_map(|line| line.strip_prefix("Primary: "));
    verdict.unwrap_or_else(|| panic!("{said}")).trim().to_owned()
}

#[test]
fn a_client_of_stun_sees_the_kind_of_nat_that_is_set() {
    let stund = ["/usr/sbin/stund", "stund"].into_iter().find(|program| has(program));
    let Some(stund) = stund.filter(|_| has("stun")) else {
        skip::skipped("stun or stund is not installed (Debian: stun-client, stun-server)");
        return;
    };
    let Some(hosts) = Hosts::up("stun") else { return };
    let _server = server(&hosts, stund);
    let independent = "Independent Mapping";
    for (filtering, mapping, seen) in [
        ("endpoint_independent", "endpoint_independent", "Independent Filter"),
        ("address_dependent", "endpoint_independent", "Address Dependent Filter"),
        ("address_and_port_dependent", "endpoint_independent", "Port Dependent Filter"),
    ] {
        let (filtering_set, mapping_set) = (format!("nat_filtering={filtering}"), format!("nat_mapping={mapping}"));
        let set = [filtering_set.as_str(), mapping_set.as_str(), "cores=2"];
        let gateway = hosts.gateway("nat-netns.toml", &set, PRIMARY);
        let verdict = verdict(&hosts);
        println!("{mapping}, {filtering}: {verdict}");
        assert!(verdict.contains(independent) && verdict.contains(seen), "{filtering}: {verdict}");
        assert!(verdict.contains("will hairpin"), "{filtering}: {verdict}");
        gateway.stop();
    }
    let gateway = hosts.gateway("nat-netns.toml", &["nat_mapping=per_flow"], PRIMARY);
    let verdict = verdict(&hosts);
    println!("per_flow: {verdict}");
    assert!(!verdict.contains(independent), "{verdict}");
    gateway.stop();
}
