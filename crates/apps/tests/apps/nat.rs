//! `nat` on built frames: both directions, limits, timeouts. Judged by etherparse.

use nicforge_apps::tables::PortPartition;
use nicforge_apps::{AppConfig, PortMap, Timeouts};
use nicforge_nic::Verdict;
use nicforge_units::Time;

use crate::support::{Bench, address, answer, decode, echo, ip_packet, one_hop_on, tcp, udp};

const CLIENT: (&str, u16) = ("10.0.0.1", 1234);
const SERVER: (&str, u16) = ("192.0.2.1", 53);

/// Port 0 is inside, port 1 outside.
fn config() -> AppConfig {
    AppConfig::new("nat", PortMap::paired(2)).with("table_entries", 100)
}

fn seconds(s: u64) -> Time {
    Time::from_ms(1000 * s)
}

fn tcp_data(from: (&str, u16), to: (&str, u16), payload: &[u8]) -> Vec<u8> {
    tcp(from, to, "A", payload)
}

#[test]
fn both_directions_are_translated_with_right_checksums() {
    let mut bench = Bench::new(&config());
    for make in [udp, tcp_data] {
        let frame = make(CLIENT, SERVER, b"question");
        let out = bench.forward(0, &frame);
        let seen = decode(&out).unwrap();
        assert_eq!(seen.source.0, address("198.19.0.0"));
        assert!(seen.source.1 >= 1024);
        assert_eq!(seen.destination, (address(SERVER.0), SERVER.1));
        assert_eq!((seen.l3_right, seen.l4_right), (true, Some(true)));
        assert_eq!(seen.ttl, 63);
        assert_eq!(out[..12], [2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 1]);

        let external = seen.source.0.to_string();
        let reply = make(SERVER, (&external, seen.source.1), b"answer");
        let back = bench.forward(1, &reply);
        // Ethernet addresses aside, it is as if the client had been addressed at once.
        assert_eq!(ip_packet(&back), ip_packet(&one_hop_on(&make(SERVER, CLIENT, b"answer"))));
    }
    assert_eq!(bench.counter("flows"), 2);
}

#[test]
fn a_flow_keeps_its_port_and_each_flow_has_its_own() {
    let mut bench = Bench::new(&config());
    let mut ports = std::collections::BTreeSet::new();
    for port in 1..=50 {
        let frame = udp((CLIENT.0, port), SERVER, b"x");
        let first = bench.forward(0, &frame);
        assert_eq!(bench.forward(0, &frame), first);
        ports.insert(decode(&first).unwrap().source);
    }
    assert_eq!(ports.len(), 50);
}

#[test]
fn unsolicited_packets_are_dropped() {
    let mut bench = Bench::new(&config());
    assert_eq!(bench.drop(1, &udp(SERVER, ("198.19.0.0", 2000), b"x")), "no_flow");
    assert_eq!(bench.drop(1, &udp(SERVER, CLIENT, b"x")), "no_flow");
    let out = bench.forward(0, &udp(CLIENT, SERVER, b"x"));
    let seen = decode(&out).unwrap();
    let external = seen.source.0.to_string();
    // The right port, but from somebody else.
    let other = udp(("192.0.2.9", 53), (&external, seen.source.1), b"x");
    assert_eq!(bench.drop(1, &other), "no_flow");
    assert_eq!(bench.drop(9, &udp(CLIENT, SERVER, b"x")), "no_such_port");
}

#[test]
fn a_full_table_drops_new_flows_and_keeps_old_ones() {
    let mut bench = Bench::new(&config());
    let frame = |port| udp((CLIENT.0, port), SERVER, b"x");
    for port in 1..=100 {
        bench.forward(0, &frame(port));
    }
    assert_eq!(bench.drop(0, &frame(101)), "table_full");
    bench.forward(0, &frame(1));
    assert_eq!(bench.counter("flows"), 100);
    // Time makes room again.
    bench.set_now(seconds(301));
    bench.forward(0, &frame(101));
}

#[test]
fn ports_run_out_by_name_and_come_back() {
    let mut config = config();
    config.values.set("table_entries", 70_000);
    config.values.set("external_addresses", 1);
    let mut bench = Bench::new(&config);
    let frame = |n: u32| udp((&format!("10.0.{}.1", n >> 14), n as u16 & 0x3fff), SERVER, b"x");
    for n in 0..64_512 {
        bench.forward(0, &frame(n));
    }
    assert_eq!(bench.counter("external_ports_free"), 0);
    assert_eq!(bench.drop(0, &frame(65_000)), "no_external_port");
    bench.forward(0, &frame(5));
    bench.set_now(seconds(301));
    bench.forward(0, &frame(65_000));
}

#[test]
fn silence_ends_a_udp_flow_and_traffic_of_either_side_keeps_it() {
    let mut bench = Bench::new(&config());
    let frame = udp(CLIENT, SERVER, b"x");
    let out = bench.forward(0, &frame);
    let reply = answer(&out, b"y");
    for step in 1..=5 {
        bench.set_now(seconds(200 * step));
        bench.forward(1, &reply);
    }
    // The inside was silent for 1000 s, but the flow was not.
    assert_eq!(bench.forward(0, &frame), out);
    bench.set_now(seconds(1301));
    assert_eq!(bench.drop(1, &reply), "no_flow");
    assert_eq!(bench.counter("flows_expired"), 1);
    assert_eq!(bench.counter("flows"), 0);
}

#[test]
fn silence_lasts_as_long_as_is_set() {
    for (key, frame) in [
        ("nat_udp_s", udp(CLIENT, SERVER, b"x")),
        ("nat_tcp_transitory_s", tcp(CLIENT, SERVER, "S", b"")),
        ("nat_icmp_s", echo(CLIENT.0, SERVER.0, 7, false)),
    ] {
        for (second, opened) in [(9, 1), (11, 2)] {
            let mut bench = Bench::new(&config().with(key, 10));
            bench.forward(0, &frame);
            bench.set_now(seconds(second));
            bench.forward(0, &frame);
            assert_eq!(bench.counter("flows_opened"), opened, "{key}, second {second}");
        }
    }
    // With packets both ways it is another time.
    for (second, opened) in [(9, 1), (11, 2)] {
        let mut bench = Bench::new(&config().with("nat_tcp_established_s", 10).with("nat_tcp_transitory_s", 1));
        let seen = decode(&bench.forward(0, &tcp(CLIENT, SERVER, "S", b""))).unwrap();
        bench.forward(1, &tcp(SERVER, (&seen.source.0.to_string(), seen.source.1), "SA", b""));
        bench.set_now(seconds(second));
        bench.forward(0, &tcp(CLIENT, SERVER, "A", b""));
        assert_eq!(bench.counter("flows_opened"), opened, "established, second {second}");
    }
    // And after a FIN a third one.
    for (second, gone) in [(9, false), (11, true)] {
        let mut bench = Bench::new(&config().with("nat_tcp_closing_s", 10).with("nat_tcp_transitory_s", 1));
        let seen = decode(&bench.forward(0, &tcp(CLIENT, SERVER, "S", b""))).unwrap();
        let reply = tcp(SERVER, (&seen.source.0.to_string(), seen.source.1), "FA", b"");
        bench.forward(1, &reply);
        bench.set_now(seconds(second));
        assert_eq!(matches!(bench.send(1, &reply).0, Verdict::Drop("no_flow")), gone, "closing, second {second}");
    }
}

#[test]
fn tcp_lives_long_when_established_and_short_after_fin_or_reset() {
    let limits = Timeouts::default();
    for (flags, established) in [("A", true), ("FA", false), ("R", false)] {
        let mut bench = Bench::new(&config());
        let out = bench.forward(0, &tcp(CLIENT, SERVER, "S", b""));
        let seen = decode(&out).unwrap();
        let external = seen.source.0.to_string();
        let reply = tcp(SERVER, (&external, seen.source.1), "SA", b"");
        bench.forward(1, &reply);
        bench.forward(0, &tcp(CLIENT, SERVER, flags, b""));
        let timeout = if established { limits.tcp_established } else { limits.tcp_closing };
        let late = tcp(SERVER, (&external, seen.source.1), "A", b"");
        bench.set_now(timeout - Time::from_ms(1));
        bench.forward(1, &late);
        // That packet prolonged it.
        bench.set_now(timeout + timeout);
        assert_eq!(bench.drop(1, &late), "no_flow", "{flags}");
    }
}

#[test]
fn half_open_tcp_is_transitory() {
    let mut bench = Bench::new(&config());
    let first = bench.forward(0, &tcp(CLIENT, SERVER, "S", b""));
    bench.set_now(seconds(241));
    let second = bench.forward(0, &tcp(CLIENT, SERVER, "S", b""));
    assert_ne!(decode(&first).unwrap().source, decode(&second).unwrap().source);
    assert_eq!(bench.counter("flows_expired"), 1);
}

#[test]
fn echo_is_translated_by_identifier() {
    let mut bench = Bench::new(&config());
    let out = bench.forward(0, &echo(CLIENT.0, SERVER.0, 77, false));
    let seen = decode(&out).unwrap();
    assert_eq!((seen.l3_right, seen.l4_right), (true, Some(true)));
    let identifier = u16::from_be_bytes([out[38], out[39]]);
    assert!(identifier >= 1024);
    let reply = echo(SERVER.0, &seen.source.0.to_string(), identifier, true);
    let back = bench.forward(1, &reply);
    assert_eq!(ip_packet(&back), ip_packet(&one_hop_on(&echo(SERVER.0, CLIENT.0, 77, true))));
    let request = echo(SERVER.0, "198.19.0.0", 5, false);
    assert_eq!(bench.drop(1, &request), "icmp_message");
}

#[test]
fn no_udp_checksum_stays_none_and_wrong_checksums_stay_wrong() {
    let mut bench = Bench::new(&config());
    let mut none = udp(CLIENT, SERVER, b"x");
    none[40..42].fill(0);
    let out = bench.forward(0, &none);
    assert_eq!(out[40..42], [0, 0]);
    assert!(decode(&out).unwrap().l3_right);
    for wrong_byte in [24, 40] {
        let mut frame = udp(CLIENT, SERVER, b"x");
        frame[wrong_byte] ^= 0x55;
        let out = decode(&bench.forward(0, &frame)).unwrap();
        let rights = (out.l3_right, out.l4_right);
        assert_eq!(rights, (wrong_byte != 24, Some(wrong_byte != 40)));
    }
}

#[test]
fn frames_without_ipv4_or_ports_are_dropped_by_cause() {
    let mut bench = Bench::new(&config());
    let mut arp = vec![0u8; 60];
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    assert_eq!(bench.drop(0, &arp), "not_ipv4");
    let mut v6 = Vec::new();
    etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv6([1; 16], [2; 16], 64)
        .udp(1, 2)
        .write(&mut v6, b"x")
        .unwrap();
    assert_eq!(bench.drop(0, &v6), "not_ipv4");
    let mut gre = udp(CLIENT, SERVER, b"xxxx");
    gre[23] = 47;
    assert_eq!(bench.drop(0, &gre), "protocol");
    assert_eq!(bench.drop(0, &[0; 5]), "ethernet_truncated");
    assert_eq!(bench.drop(0, &[]), "ethernet_truncated");
}

#[test]
fn headers_may_lie_apart_from_the_payload() {
    let mut bench = Bench::new(&config());
    let frame = udp(CLIENT, SERVER, &[7; 600]);
    let whole = bench.forward(0, &frame);
    let (_, split) = bench.send_split(0, &frame, 64);
    assert_eq!(split, whole);
}

#[test]
fn known_flows_can_be_learnt_before_the_run() {
    let mut bench = Bench::new(&config());
    let end = |end: (&str, u16)| std::net::SocketAddrV4::new(address(end.0), end.1);
    bench.learn(end(CLIENT), end(SERVER), 17);
    bench.learn(end(CLIENT), end(SERVER), 17);
    assert_eq!(bench.counter("flows_opened"), 1);
    bench.forward(0, &udp(CLIENT, SERVER, b"x"));
    assert_eq!(bench.counter("flows_opened"), 1);
}

#[test]
fn sixteen_cores_share_ten_million_flows_and_every_external_port() {
    let mut config = config();
    config.values.set("table_entries", 10_000_000);
    let partition = PortPartition::new(16);
    let mut outer = std::collections::BTreeSet::new();
    for core in [0, 7, 15] {
        let mut bench = Bench::on_core(&config, core, 16);
        assert!(bench.counter("external_ports_free") >= 625_000);
        for port in 1..=5000 {
            let seen = decode(&bench.forward(0, &udp((CLIENT.0, port), SERVER, b"x"))).unwrap();
            assert_eq!(partition.owner_core(seen.source.1), Some(core));
            assert!(outer.insert(seen.source));
        }
        // Another core does not know the flow: answers must be steered to the owner.
        let first = outer.first().copied().unwrap();
        let reply = udp(SERVER, (&first.0.to_string(), first.1), b"y");
        match core {
            0 => _ = bench.forward(1, &reply),
            _ => assert_eq!(bench.drop(1, &reply), "no_flow"),
        }
    }
}
