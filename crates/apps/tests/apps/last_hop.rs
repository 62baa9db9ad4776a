//! What routers do with a packet that has no hop left, or to which no route leads, on built frames. Judged by etherparse.

use std::net::Ipv6Addr;

use etherparse::{IpHeaders, Ipv4Extensions, Ipv4Header, NetSlice, SlicedPacket, TransportSlice, icmpv4, icmpv6};
use nicforge_apps::{AppConfig, PortMap, Verdict, parse_routes};
use nicforge_nic::PortId;
use nicforge_units::Time;

use crate::support::{Bench, address, answer, app, decode, fragments, ip_packet, one_hop_on, udp, unreachable};

const CLIENT: (&str, u16) = ("10.0.0.1", 1234);
const SERVER: (&str, u16) = ("203.0.113.1", 33434);
const INSIDE: &str = "10.0.0.254";
const OUTSIDE: &str = "198.19.0.0";

/// Every router, its ports with addresses or without.
fn benches(addresses: bool) -> Vec<(&'static str, Bench)> {
    let bench = |name| {
        let mut config = AppConfig {
            routes: parse_routes("routes", "0.0.0.0/0 1\n2001:db8::/32 1\n", 2).unwrap().into(),
            ..app(name, PortMap::paired(2)).with("table_entries", 100).with("service", SERVER.0)
        };
        if addresses {
            config.ports.0[0].address = Some(address(INSIDE));
            config.ports.0[1].address = Some(address(OUTSIDE));
        }
        (name, Bench::new(&config))
    };
    ["nat", "lb", "l3fwd"].map(bench).into()
}

fn with_hops(frame: &[u8], hops: u8) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[22] = hops + 1;
    one_hop_on(&frame)
}

fn question() -> Vec<u8> {
    udp(CLIENT, SERVER, &[7; 100])
}

#[test]
fn the_sender_hears_that_its_packet_got_no_further() {
    for (name, mut bench) in benches(true) {
        for hops in [0, 1] {
            let asked = with_hops(&question(), hops);
            let (verdict, told) = bench.send(0, &asked);
            assert_eq!(verdict, Verdict::Transmit(PortId(0)), "{name}");
            let seen = decode(&told).unwrap();
            assert_eq!((seen.source.0, seen.destination.0), (address(INSIDE), address(CLIENT.0)));
            assert_eq!((seen.l3_right, seen.l4_right), (true, Some(true)), "{name}");
            assert_eq!(told[..12], [2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0]);
            let sliced = SlicedPacket::from_ethernet(&told).unwrap();
            let Some(TransportSlice::Icmpv4(icmp)) = sliced.transport else { panic!("{name}: {told:02x?}") };
            let expired = icmpv4::TimeExceededCode::TtlExceededInTransit;
            assert_eq!(icmp.icmp_type(), etherparse::Icmpv4Type::TimeExceeded(expired));
            assert_eq!(icmp.payload(), ip_packet(&asked), "{name}");
        }
        // With one hop more it goes on, and is the last one's.
        let out = bench.forward(0, &with_hops(&question(), 2));
        assert_eq!(decode(&out).unwrap().ttl, 1, "{name}");
    }
}

#[test]
fn the_sender_hears_that_no_route_leads_on() {
    let (_, mut bench) = benches(true).pop().unwrap();
    let question_to = |to: [u8; 16]| {
        let mut asked = Vec::new();
        let link = etherparse::PacketBuilder::ethernet2([2; 6], [4; 6]);
        link.ipv6([0x20; 16], to, 9).udp(5, 6).write(&mut asked, &[7; 100]).unwrap();
        asked
    };
    // The routes are those of `benches`: 2001:db8::/32 only.
    let (verdict, told) = bench.send(0, &question_to([0x30; 16]));
    assert_eq!(verdict, Verdict::Transmit(PortId(0)));
    let sliced = SlicedPacket::from_ethernet(&told).unwrap();
    let Some(TransportSlice::Icmpv6(icmp)) = &sliced.transport else { panic!("{told:02x?}") };
    let no_route = etherparse::Icmpv6Type::DestinationUnreachable(icmpv6::DestUnreachableCode::NoRoute);
    assert_eq!(icmp.icmp_type(), no_route);
    let (_, mut silent) = benches(false).pop().unwrap();
    assert_eq!(silent.drop(0, &question_to([0x30; 16])), "no_route");

    let routes = parse_routes("routes", "192.0.2.0/24 1\n", 2).unwrap().into();
    let mut config = AppConfig { routes, ..app("l3fwd", PortMap::paired(2)) };
    config.ports.0[0].address = Some(address(INSIDE));
    let (verdict, told) = Bench::new(&config).send(0, &question());
    assert_eq!(verdict, Verdict::Transmit(PortId(0)));
    let seen = decode(&told).unwrap();
    assert_eq!((seen.source.0, seen.destination.0, seen.l4_right), (address(INSIDE), address(CLIENT.0), Some(true)));
    let sliced = SlicedPacket::from_ethernet(&told).unwrap();
    let Some(TransportSlice::Icmpv4(icmp)) = sliced.transport else { panic!("{told:02x?}") };
    let unreachable = icmpv4::DestUnreachableHeader::Network;
    assert_eq!(icmp.icmp_type(), etherparse::Icmpv4Type::DestinationUnreachable(unreachable));
}

#[test]
fn an_expired_packet_opens_no_flow() {
    for (name, mut bench) in benches(false) {
        assert_eq!(bench.drop(0, &with_hops(&question(), 1)), "ttl_expired");
        if name != "l3fwd" {
            assert_eq!(bench.counter("flows_opened"), 0, "{name}");
        }
    }
}

/// Answers, errors and fragments lose a hop too, and end when they have none.
#[test]
fn the_way_back_errors_and_fragments_cost_a_hop() {
    for (name, mut bench) in benches(false).into_iter().take(2) {
        let out = bench.forward(0, &question());
        let reply = answer(&out, &[8; 100]);
        let error = unreachable(
            &decode(&reply).unwrap().source.0.to_string(),
            &decode(&reply).unwrap().destination.0.to_string(),
            ip_packet(&out),
            200,
        );
        let [first, later] = fragments(&reply, 48, 6);
        for frame in [reply, error, first, later] {
            let back = decode(&bench.forward(1, &with_hops(&frame, 7))).unwrap();
            assert_eq!((back.ttl, back.l3_right), (6, true), "{name}");
            assert_eq!(bench.drop(1, &with_hops(&frame, 1)), "ttl_expired", "{name}");
        }
        let [first, later] = fragments(&question(), 48, 7);
        for frame in [first, later] {
            let on = decode(&bench.forward(0, &frame)).unwrap();
            assert_eq!((on.ttl, on.l3_right), (63, true), "{name}");
        }
    }
}

#[test]
fn errors_and_later_fragments_trigger_no_icmp_error() {
    for (name, mut bench) in benches(true) {
        let error = unreachable(CLIENT.0, SERVER.0, ip_packet(&question()), 200);
        let [_, later] = fragments(&question(), 48, 7);
        for frame in [error, later] {
            let expired = with_hops(&frame, 1);
            assert_eq!(bench.drop(0, &expired), "ttl_expired", "{name}");
        }
    }
}

/// Many expired packets make few answers: fifty at once, and one for each millisecond.
#[test]
fn a_loop_is_not_answered_by_a_flood() {
    for (name, mut bench) in benches(true) {
        let asked = with_hops(&question(), 1);
        let answers = |bench: &mut Bench| {
            let sent = |_: &i32| matches!(bench.send(0, &asked).0, Verdict::Transmit(_));
            (0..60).filter(sent).count()
        };
        bench.set_now(Time::from_ms(1000));
        assert_eq!(answers(&mut bench), 50, "{name}");
        // And a half: simulated answers take some time, too.
        bench.set_now(Time::from_us(1_010_500));
        assert_eq!(answers(&mut bench), 10, "{name}");
    }
}

/// The header alone in the first buffer, as split rings have it: what is quoted is what lies there.
#[test]
fn a_split_frame_is_quoted_as_far_as_its_first_part() {
    for (name, mut bench) in benches(true) {
        let asked = with_hops(&question(), 1);
        let (verdict, told) = bench.send_split(0, &asked, 64);
        assert_eq!(verdict, Verdict::Transmit(PortId(0)), "{name}");
        assert_eq!((told.len(), &told[42..]), (92, &asked[14..64]), "{name}");
    }
}

#[test]
fn ipv6_senders_are_told_from_the_ports_own_address() {
    // EUI-64 of 02:00:00:00:00:00, where no other is given.
    assert_eq!(told_about_ipv6(None), "fe80::ff:fe00:0".parse::<Ipv6Addr>().unwrap());
    let own: Ipv6Addr = "2001:db8:1::1".parse().unwrap();
    assert_eq!(told_about_ipv6(Some(own)), own);
}

/// Who tells the sender of an expired IPv6 packet, where the router's port has address `own`.
fn told_about_ipv6(own: Option<Ipv6Addr>) -> Ipv6Addr {
    let mut config = AppConfig {
        routes: parse_routes("routes", "2001:db8::/32 1\n", 2).unwrap().into(),
        ..app("l3fwd", PortMap::paired(2))
    };
    config.ports.0[0].address6 = own;
    config.ports.0[0].address = own.is_none().then_some(address(INSIDE));
    let mut bench = Bench::new(&config);
    let mut asked = Vec::new();
    let to: Ipv6Addr = "2001:db8::1".parse().unwrap();
    etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv6([0x20; 16], to.octets(), 1)
        .udp(5, 6)
        .write(&mut asked, &[7; 100])
        .unwrap();
    let (verdict, told) = bench.send(0, &asked);
    assert_eq!(verdict, Verdict::Transmit(PortId(0)));
    let sliced = SlicedPacket::from_ethernet(&told).unwrap();
    let (Some(etherparse::NetSlice::Ipv6(ip)), Some(TransportSlice::Icmpv6(icmp))) = (&sliced.net, &sliced.transport)
    else {
        panic!("{told:02x?}")
    };
    let from = ip.header().source_addr();
    assert!(icmp.is_checksum_valid(from.octets(), [0x20; 16]));
    let expired = icmpv6::TimeExceededCode::HopLimitExceeded;
    assert_eq!(icmp.icmp_type(), etherparse::Icmpv6Type::TimeExceeded(expired));
    from
}

/// A NIC that puts headers before the payload's buffer leaves room for what has to be quoted.
#[test]
fn the_sender_hears_it_where_headers_are_apart() {
    for (name, mut bench) in benches(true) {
        bench.inlines = true;
        let asked = with_hops(&question(), 1);
        let (verdict, told) = bench.send_split(0, &asked, 42);
        assert_eq!(verdict, Verdict::Transmit(PortId(0)), "{name}");
        let sliced = SlicedPacket::from_ethernet(&told).unwrap();
        let Some(TransportSlice::Icmpv4(icmp)) = sliced.transport else { panic!("{name}: {told:02x?}") };
        assert_eq!(icmp.payload(), &ip_packet(&asked)[..28], "{name}");
    }
}

/// RFC 791, section 3.1: each router enters the address by which the packet leaves, as long as there is room.
#[test]
fn routers_enter_their_address_in_a_recorded_route() {
    const FULL: [u8; 8] = [7, 7, 8, 192, 0, 2, 1, 0];
    for (name, mut bench) in benches(true) {
        for (before, after) in [
            ([1, 7, 7, 4, 0, 0, 0, 0], [1, 7, 7, 8, 198, 19, 0, 0]),
            // No room is left.
            (FULL, FULL),
        ] {
            let mut header = Ipv4Header::default();
            (header.source, header.destination) = (address(CLIENT.0).octets(), address(SERVER.0).octets());
            (header.time_to_live, header.options) = (64, before.into());
            let link = etherparse::PacketBuilder::ethernet2([2; 6], [4; 6]);
            let mut asked = Vec::new();
            let network = link.ip(IpHeaders::Ipv4(header, Ipv4Extensions::default()));
            network.udp(CLIENT.1, SERVER.1).write(&mut asked, &[7; 100]).unwrap();
            let out = bench.forward(0, &asked);
            let seen = decode(&out).unwrap();
            assert_eq!((seen.ttl, seen.l3_right, seen.l4_right), (63, true, Some(true)), "{name}");
            let Some(NetSlice::Ipv4(net)) = SlicedPacket::from_ethernet(&out).unwrap().net else { panic!("{name}") };
            assert_eq!(net.header().options(), after, "{name}");
        }
    }
}
