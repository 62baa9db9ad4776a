//! `l2fwd`, `l3fwd`, `synthetic` and `counter` on built frames. Judged by etherparse.

use std::net::IpAddr;

use nicforge_apps::counter::CounterKey;
use nicforge_apps::options::Payload;
use nicforge_apps::{AppConfig, AppError, Apps, Egress, Place, PortMap, Route, Verdict, generate_routes, parse_routes};
use nicforge_nic::{PortId, RxFlags};
use nicforge_platform::{AddressSpace, Flat};
use nicforge_units::{Cycles, Time};

use crate::support::{Bench, app, decode, ip_packet, tcp, udp};

const ROUTES: &str = "10.0.0.0/8 1\n10.1.0.0/16 0\n10.1.2.128/25 1\n2001:db8::/32 1\n\
                      2001:db8:0:1::/64 0\n";

fn routed(name: &str) -> AppConfig {
    AppConfig {
        routes: parse_routes("routes", ROUTES, 2).unwrap().into(),
        ..app(name, PortMap::paired(2)).with("array_mib", 1)
    }
}

fn v6(to: &str, hops: u8) -> Vec<u8> {
    let mut frame = Vec::new();
    let to: std::net::Ipv6Addr = to.parse().unwrap();
    etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv6([1; 16], to.octets(), hops)
        .udp(5, 6)
        .write(&mut frame, b"x")
        .unwrap();
    frame
}

#[test]
fn l2fwd_reflects_on_a_port_without_a_peer() {
    let mut bench = Bench::new(&AppConfig::new("l2fwd", PortMap::one_armed(1)));
    let frame = udp(("10.0.0.1", 1), ("10.0.0.2", 2), b"payload");
    let (verdict, out) = bench.send(0, &frame);
    assert_eq!(verdict, Verdict::Transmit(PortId(0)));
    assert_eq!(out[..12], [2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4]);
    assert_eq!(out[12..], frame[12..]);
    assert_eq!(bench.drop(0, &frame[..13]), "ethernet_truncated");
    assert_eq!(bench.drop(1, &frame), "no_such_port");
    // A group address becomes no source.
    let mut broadcast = frame.clone();
    broadcast[..6].fill(0xff);
    assert_eq!(bench.forward(0, &broadcast)[..12], [2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0]);
}

#[test]
fn l2fwd_bridges_a_port_and_its_peer() {
    let mut ports = PortMap::paired(3);
    ports.0.iter_mut().for_each(|port| port.hears_all = true);
    let mut bench = Bench::new(&AppConfig::new("l2fwd", ports));
    let between = |to: u8, from: u8| {
        let mut frame = udp(("10.0.0.1", 1), ("10.0.0.2", 2), b"payload");
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 9, to]);
        frame[6..12].copy_from_slice(&[2, 0, 0, 0, 9, from]);
        frame
    };
    let mut broadcast = between(1, 3);
    broadcast[..6].fill(0xff);
    for (port, frame) in [(0, between(2, 1)), (1, between(1, 2)), (0, broadcast), (0, between(2, 1))] {
        assert_eq!(bench.send(port, &frame), (Verdict::Transmit(PortId(port ^ 1)), frame));
    }
    // 1 and 3 are on one side; 300 s later nobody knows that.
    assert_eq!(bench.drop(0, &between(3, 1)), "same_side");
    bench.set_now(Time::from_ms(300_001));
    bench.forward(0, &between(3, 1));
    // A host that moves is found where it is.
    bench.forward(1, &between(1, 3));
    bench.forward(0, &between(3, 1));
    assert_eq!(bench.drop(1, &between(3, 7)), "same_side");
    let mut pause = between(1, 2);
    pause[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 1]);
    let mut from_group = between(1, 2);
    from_group[6..12].fill(0xff);
    for (port, frame, cause) in
        [(0, &pause, "link_protocol"), (2, &pause, "link_protocol"), (0, &from_group, "group_source")]
    {
        assert_eq!(bench.drop(port, frame), cause);
    }
    // The third port has no peer.
    assert_eq!(bench.forward(2, &between(2, 1))[..6], between(1, 2)[..6]);
}

#[test]
fn l3fwd_follows_the_longest_prefix() {
    let mut bench = Bench::new(&routed("l3fwd"));
    for (to, port) in [("10.9.9.9", 1), ("10.1.9.9", 0), ("10.1.2.127", 0), ("10.1.2.200", 1)] {
        let frame = tcp(("192.0.2.1", 1), (to, 2), "A", b"payload");
        let (verdict, out) = bench.send(0, &frame);
        assert_eq!(verdict, Verdict::Transmit(PortId(port)), "{to}");
        let seen = decode(&out).unwrap();
        assert_eq!(seen.ttl, 63);
        assert_eq!((seen.l3_right, seen.l4_right), (true, Some(true)));
        assert_eq!(out[..12], [2, 0, 0, 0, 1, port, 2, 0, 0, 0, 0, port]);
        assert_eq!(out[34..], frame[34..]);
    }
    let nowhere = udp(("10.0.0.1", 1), ("192.0.2.1", 2), b"x");
    assert_eq!(bench.drop(0, &nowhere), "no_route");
}

#[test]
fn l3fwd_routes_ipv6() {
    let mut bench = Bench::new(&routed("l3fwd"));
    for (to, port) in [("2001:db8:5::1", 1), ("2001:db8:0:1::9", 0)] {
        let frame = v6(to, 2);
        let (verdict, out) = bench.send(0, &frame);
        assert_eq!(verdict, Verdict::Transmit(PortId(port)), "{to}");
        assert_eq!(out[21], 1);
        assert_eq!((&out[14..21], &out[22..]), (&frame[14..21], &frame[22..]));
    }
    assert_eq!(bench.drop(0, &v6("2001:db8::1", 1)), "ttl_expired");
    assert_eq!(bench.drop(0, &v6("2001:db9::1", 9)), "no_route");
}

#[test]
fn l3fwd_drops_by_name_and_keeps_wrong_checksums_wrong() {
    let mut bench = Bench::new(&routed("l3fwd"));
    let mut frame = udp(("192.0.2.1", 1), ("10.9.9.9", 2), b"x");
    frame[24] ^= 1;
    assert!(!decode(&bench.forward(0, &frame)).unwrap().l3_right);
    for hops in [0, 1] {
        frame[22] = hops;
        assert_eq!(bench.drop(0, &frame), "ttl_expired");
    }
    let mut arp = [0u8; 60];
    arp[12..14].copy_from_slice(&[8, 6]);
    assert_eq!(bench.drop(0, &arp), "not_ip");
    let mut config = routed("l3fwd");
    config.egress = Egress::Peer;
    let (verdict, _) = Bench::new(&config).send(1, &udp(("1.1.1.1", 1), ("10.9.9.9", 2), b""));
    assert_eq!(verdict, Verdict::Transmit(PortId(0)));
}

#[test]
fn routers_drop_packets_whose_ip_checksum_the_nic_found_wrong() {
    let mut frame = udp(("10.0.0.1", 1), ("10.9.9.9", 2), b"x");
    frame[24] ^= 1;
    for name in Apps::shipped().entries().iter().filter(|app| app.router).map(|app| app.name()) {
        let mut bench = Bench::new(&routed(name));
        bench.flags = RxFlags::L3_BAD;
        assert_eq!(bench.drop(0, &frame), "ip_checksum", "{name}");
        if ["nat", "lb"].contains(&name) {
            assert_eq!(bench.counter("flows"), 0, "{name}");
        }
        // What is wrong in the layer above is its own business.
        bench.flags = RxFlags::L3_GOOD.with(RxFlags::L4_BAD);
        bench.forward(0, &frame);
    }
    for name in ["l2fwd", "counter"] {
        assert!(!Apps::shipped().find(name).unwrap().router);
        let mut bench = Bench::new(&routed(name));
        bench.flags = RxFlags::L3_BAD;
        bench.forward(0, &frame);
    }
}

#[test]
fn headers_that_a_split_cuts_have_a_cause_of_their_own() {
    let frame = udp(("10.0.0.1", 1), ("10.9.9.9", 2), &[1; 100]);
    // `ids` lets pass what it cannot read, and `vswitch` reads headers within a tunnel.
    for name in Apps::shipped().names().into_iter().filter(|name| !["ids", "vswitch"].contains(name)) {
        let mut bench = Bench::new(&routed(name));
        let needed = if name == "l2fwd" { 14 } else { 42 };
        for split in 1..needed {
            let (verdict, out) = bench.send_split(0, &frame, split);
            assert_eq!(verdict, Verdict::Drop("headers_split"), "{name} {split}");
            assert_eq!(out, frame);
        }
        let (verdict, _) = bench.send_split(0, &frame, needed);
        assert_ne!(verdict, Verdict::Drop("headers_split"), "{name}");
        // What is short as a whole is malformed, wherever it is split.
        let (verdict, _) = bench.send(0, &frame[..13]);
        assert_eq!(verdict, Verdict::Drop("ethernet_truncated"), "{name}");
    }
}

#[test]
fn a_default_route_alone_of_ipv6_takes_no_memory() {
    let memory = |routes: &str| {
        let config = AppConfig { routes: parse_routes("routes", routes, 2).unwrap().into(), ..routed("l3fwd") };
        let mut space = AddressSpace::default();
        Apps::shipped().share(&config, &mut space).unwrap();
        let (verdict, _) = Bench::new(&config).send(0, &v6("2001:db9::1", 9));
        (space.end(), verdict)
    };
    let (without, dropped) = memory("0.0.0.0/0 0\n");
    assert_eq!(dropped, Verdict::Drop("no_route"));
    let (with, sent) = memory("0.0.0.0/0 0\n::/0 1\n");
    assert_eq!(sent, Verdict::Transmit(PortId(1)));
    assert_eq!(with, without);
    let (more, sent) = memory("0.0.0.0/0 0\n::/0 1\n2001:db9::/32 0\n");
    assert_eq!(sent, Verdict::Transmit(PortId(0)));
    assert!(more > without);
}

#[test]
fn sixteen_thousand_routes_of_a_file_agree_with_a_linear_search() {
    let routes = generate_routes(3, 16_000, 500, 2);
    let line = |route: &Route| format!("{}/{} {}\n", route.address, route.length, route.port);
    let text: String = routes.iter().map(line).collect();
    let mut config = routed("l3fwd");
    config.routes = parse_routes("routes", &text, 2).unwrap().into();
    assert_eq!(config.routes[..], routes[..]);
    let mut bench = Bench::new(&config);
    for n in 0..200u32 {
        let to = n.wrapping_mul(0x9e37_79b9) & 0x7fff_ffff | 0x0100_0000;
        let mut best = None;
        for route in &routes {
            let IpAddr::V4(address) = route.address else {
                continue;
            };
            let same = address.to_bits() ^ to;
            let matches = same.leading_zeros() >= u32::from(route.length);
            if matches && best.is_none_or(|(length, _)| route.length >= length) {
                best = Some((route.length, route.port));
            }
        }
        if to >> 24 == 127 {
            continue;
        }
        let to = std::net::Ipv4Addr::from_bits(to).to_string();
        let (verdict, _) = bench.send(0, &udp(("192.0.2.1", 1), (&to, 2), b"x"));
        let port = best.unwrap().1;
        assert_eq!(verdict, Verdict::Transmit(PortId(port)), "{to}");
    }
}

#[test]
fn synthetic_treats_the_payload_as_configured() {
    let frame = udp(("192.0.2.1", 1), ("10.9.9.9", 2), &[1; 500]);
    for payload in [Payload::Untouched, Payload::Read, Payload::Overwrite] {
        let mut config = routed("synthetic");
        config.values.set("payload", payload);
        config.values.set("reads", 3);
        let mut bench = Bench::new(&config);
        let (verdict, out) = bench.send(0, &frame);
        assert_eq!(verdict, Verdict::Transmit(PortId(1)));
        assert_eq!(out[12..42], frame[12..42]);
        let overwritten = payload == Payload::Overwrite;
        assert_eq!(out[42..] != frame[42..], overwritten);
        // In two parts, it is the same packet.
        let (_, split) = Bench::new(&config).send_split(0, &frame, 128);
        assert_eq!(split, out);
    }
}

#[test]
fn synthetic_without_a_look_up_needs_no_route() {
    let nowhere = udp(("192.0.2.1", 1), ("203.0.113.1", 2), b"x");
    assert_eq!(Bench::new(&routed("synthetic")).drop(0, &nowhere), "no_route");
    let (verdict, out) = Bench::new(&routed("synthetic").with("look_up", false)).send(0, &nowhere);
    assert_eq!(verdict, Verdict::Transmit(PortId(1)));
    assert_eq!(out[12..], nowhere[12..]);
}

#[test]
fn counter_counts_each_flow_and_forwards_everything() {
    let mut config = AppConfig::new("counter", PortMap::one_armed(1));
    config.values.set("table_entries", 3);
    let mut bench = Bench::new(&config);
    let flow = |port| udp(("10.0.0.1", port), ("10.0.0.2", 2), b"x");
    for port in [1, 2, 1, 3, 4] {
        let frame = flow(port);
        assert_eq!(bench.forward(0, &frame), frame);
    }
    bench.forward(0, &v6("2001:db8::1", 1));
    bench.forward(0, &[0; 60]);
    let counts = ["flows", "untracked", "not_ip"].map(|name| bench.counter(name));
    assert_eq!(counts, [3, 2, 1]);
    let ends = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse::<IpAddr>().unwrap());
    let mut counted = |port| {
        let key = CounterKey::new((ends[0], port), (ends[1], 2), 17);
        bench.flow_counts(&key)
    };
    assert_eq!(counted(1), Some((2, 2 * 43)));
    assert_eq!((counted(3), counted(4)), (Some((1, 43)), None));
    assert_eq!(bench.drop(0, &flow(1)[..30]), "ip_truncated");
}

#[test]
fn wrong_settings_are_refused_with_a_remedy() {
    let build = |config: &AppConfig| {
        let mut space = AddressSpace::default();
        let shared = Apps::shipped().share(config, &mut space)?;
        Apps::shipped().build::<Flat>(config, Place { core: 0, cores: 2 }, &mut space, &shared).map(|_| ())
    };
    for name in Apps::shipped().names() {
        build(&AppConfig::new(name, PortMap::one_armed(1))).unwrap();
    }
    let error = build(&AppConfig::new("natt", PortMap::one_armed(1))).unwrap_err();
    assert!(error.to_string().contains("`natt`: use one of l2fwd, l3fwd"));
    let mut config = AppConfig::new("nat", PortMap::one_armed(1));
    config.values.set("table_entries", 0);
    let error = build(&config).unwrap_err();
    assert!(error.to_string().starts_with("`table_entries` is 0: it must be at least 1"));
    let config = AppConfig::new("nat", PortMap::one_armed(1)).with("external_address", "255.255.255.255");
    assert!(matches!(build(&config), Err(AppError::OutOfRange { setting: "external_addresses", .. })));
}

#[test]
fn every_packet_is_charged_its_work_once() {
    for name in Apps::shipped().names() {
        let mut config = routed(name);
        config.work = Cycles(100);
        config.values.set("table_entries", 10);
        let mut bench = Bench::new(&config);
        bench.send(0, &udp(("192.0.2.1", 1), ("10.9.9.9", 2), b"x"));
        bench.send(0, &[0; 20]);
        assert_eq!(bench.flat.ground.total_work(), Cycles(200), "{name}");
    }
}

#[test]
fn vlan_tags_stay() {
    // All that forward any packet: stores answer, and `vswitch` forwards tunnels, see there.
    let forwards = |name: &&str| !name.ends_with("kvs") && *name != "vswitch";
    for name in Apps::shipped().names().into_iter().filter(forwards) {
        let plain = udp(("192.0.2.1", 1), ("10.9.9.9", 2), b"payload");
        let mut tagged = plain[..12].to_vec();
        tagged.extend_from_slice(&[0x81, 0, 0, 5]);
        tagged.extend_from_slice(&plain[12..]);
        let mut config = routed(name);
        config.values.set("table_entries", 10);
        let expected = Bench::new(&config).forward(0, &plain);
        let out = Bench::new(&config).forward(0, &tagged);
        assert_eq!(out[12..16], [0x81, 0, 0, 5], "{name}");
        assert_eq!(ip_packet(&out[4..]), ip_packet(&expected), "{name}");
    }
}
