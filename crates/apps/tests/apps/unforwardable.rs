//! What no router forwards, on built frames and on captures. Judged by etherparse.

use std::net::Ipv6Addr;

use nicforge_apps::{AppConfig, PortMap, Verdict, parse_routes};
use nicforge_nic::PortId;
use nicforge_wire::headers::MacAddress;

use crate::support::{Bench, address, app, udp};

const CLIENT: &str = "10.99.1.77";
const SERVER: &str = "203.0.113.5";
const OWN: &str = "10.99.1.1";
const OWN6: &str = "2001:db8:2::1";
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 0];

/// Every router, whose port 0 has an address in 10.99.1.0/24 and hears frames of others.
fn routers() -> Vec<(&'static str, Bench)> {
    let bench = |name| {
        let mut config = AppConfig {
            routes: parse_routes("routes", "0.0.0.0/0 1\n::/0 1\n", 2).unwrap().into(),
            ..app(name, PortMap::paired(2))
                .with("table_entries", 100)
                .with("external_address", "198.19.0.1")
                .with("external_addresses", 1)
        };
        let port = &mut config.ports.0[0];
        port.mac = MacAddress(MAC);
        port.hears_all = true;
        port.address = Some(address(OWN));
        port.address6 = Some(OWN6.parse().unwrap());
        port.broadcast = Some(address("10.99.1.255"));
        (name, Bench::new(&config))
    };
    ["nat", "lb", "l3fwd"].map(bench).into()
}

fn frame(to: [u8; 6], source: &str, destination: &str) -> Vec<u8> {
    let mut frame = udp((source, 5000), (destination, 6000), b"x");
    frame[..6].copy_from_slice(&to);
    frame
}

#[test]
fn frames_for_other_hardware_addresses_go_no_further() {
    for (name, mut bench) in routers() {
        let sent = bench.send(0, &frame(MAC, CLIENT, SERVER)).0;
        assert_eq!(sent, Verdict::Transmit(PortId(1)), "{name}");
        assert_eq!(bench.drop(0, &frame([2, 0, 0, 0, 0, 7], CLIENT, SERVER)), "other_host", "{name}");
        for group in [[0xff; 6], [1, 0, 0x5e, 0, 0, 0xfb]] {
            assert_eq!(bench.drop(0, &frame(group, CLIENT, SERVER)), "group_frame", "{name}");
        }
        // Its other port takes all frames of single hosts.
        let other = bench.send(1, &frame([2, 0, 0, 0, 0, 7], SERVER, CLIENT)).0;
        assert_ne!(other, Verdict::Drop("other_host"), "{name}");
    }
}

#[test]
fn addresses_that_cross_no_router_are_dropped() {
    let nobody = ["0.0.0.0", "0.1.2.3", "127.0.0.1", "169.254.1.1", "224.0.0.9", "239.255.255.250", "240.0.0.1"];
    for (name, mut bench) in routers() {
        for odd in nobody.into_iter().chain(["255.255.255.255"]) {
            assert_eq!(bench.drop(0, &frame(MAC, odd, SERVER)), "bad_source", "{name}: {odd}");
            assert_eq!(bench.drop(0, &frame(MAC, CLIENT, odd)), "bad_destination", "{name}: {odd}");
        }
        assert_eq!(bench.drop(0, &frame(MAC, CLIENT, "10.99.1.255")), "bad_destination", "{name}");
        assert_eq!(bench.drop(0, &frame(MAC, OWN, SERVER)), "bad_source", "{name}");
        // Neighbours of the forbidden ranges are hosts like others.
        for host in ["1.0.0.1", "126.255.255.255", "128.0.0.1", "169.253.1.1", "169.255.1.1", "223.255.255.1"] {
            let sent = bench.send(0, &frame(MAC, CLIENT, host)).0;
            assert_eq!(sent, Verdict::Transmit(PortId(1)), "{name}: {host}");
        }
    }
}

#[test]
fn a_nat_keeps_packets_for_its_own_addresses_and_those_that_claim_to_be_from_there() {
    let (_, mut nat) = routers().swap_remove(0);
    assert_eq!(nat.drop(0, &frame(MAC, CLIENT, OWN)), "own_address");
    for port in [0, 1] {
        assert_eq!(nat.drop(port, &frame(MAC, "198.19.0.1", SERVER)), "bad_source");
    }
}

#[test]
fn a_router_keeps_packets_for_itself_and_drops_those_that_claim_to_be_from_it() {
    let (_, mut router) = routers().swap_remove(2);
    assert_eq!(router.drop(0, &frame(MAC, CLIENT, OWN)), "own_address");
    // By either port.
    assert_eq!(router.drop(1, &frame([2; 6], OWN, CLIENT)), "bad_source");
}

#[test]
fn ipv6_addresses_that_cross_no_router_are_dropped() {
    let (_, mut bench) = routers().swap_remove(2);
    let between = |source: &str, destination: &str| {
        let [source, destination] = [source, destination].map(|text| text.parse::<Ipv6Addr>().unwrap().octets());
        let mut frame = Vec::new();
        let link = etherparse::PacketBuilder::ethernet2([4; 6], MAC);
        link.ipv6(source, destination, 9).udp(5, 6).write(&mut frame, b"x").unwrap();
        frame
    };
    let (client, server) = ("2001:db8::1", "2001:db8:1::1");
    assert_eq!(bench.send(0, &between(client, server)).0, Verdict::Transmit(PortId(1)));
    assert_eq!(bench.drop(0, &between(client, OWN6)), "own_address");
    assert_eq!(bench.drop(0, &between(OWN6, server)), "bad_source");
    for odd in ["::", "::1", "fe80::1", "ff02::fb", "ff0e::1"] {
        assert_eq!(bench.drop(0, &between(odd, server)), "bad_source", "{odd}");
        assert_eq!(bench.drop(0, &between(client, odd)), "bad_destination", "{odd}");
    }
}
