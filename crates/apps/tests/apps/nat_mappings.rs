//! `nat` with endpoint-independent mappings: what RFC 4787, 5382 and 5508 want. Judged by etherparse.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use nicforge_apps::nat::policy::{Filtering, Forward, Mapping};
use nicforge_apps::{AppConfig, PortMap, Verdict};
use nicforge_nic::PortId;
use nicforge_options::Values;
use nicforge_units::Time;
use proptest::prelude::*;

use crate::support::{Bench, address, answer, decode, echo, ip_packet, one_hop_on, tcp, udp};

pub const CLIENT: (&str, u16) = ("10.0.0.1", 1234);
pub const OTHER: (&str, u16) = ("10.0.0.2", 4321);
pub const SERVER: (&str, u16) = ("192.0.2.1", 53);
pub const EXTERNAL: &str = "198.19.0.1";

/// Makes a frame between two ends.
type Make = for<'a, 'b> fn((&'a str, u16), (&'b str, u16), &[u8]) -> Vec<u8>;

pub fn config(values: Values) -> AppConfig {
    let mut config = AppConfig::new("nat", PortMap::paired(2))
        .with("table_entries", 1000)
        .with("external_address", EXTERNAL)
        .with("external_addresses", 1)
        .with("nat_mapping", Mapping::EndpointIndependent);
    config.values.extend(&values);
    config
}

fn bench() -> Bench {
    Bench::new(&config(Values::default()))
}

fn seconds(s: u64) -> Time {
    Time::from_ms(1000 * s)
}

/// The external endpoint of a frame that went out.
pub fn external(bench: &mut Bench, frame: &[u8]) -> (Ipv4Addr, u16) {
    let out = bench.forward(0, frame);
    let seen = decode(&out).unwrap();
    assert_eq!((seen.l3_right, seen.l4_right), (true, Some(true)));
    seen.source
}

pub fn text(end: (Ipv4Addr, u16)) -> (String, u16) {
    (end.0.to_string(), end.1)
}

#[test]
fn an_inside_endpoint_has_one_external_endpoint_for_all_remote_ones() {
    let mut bench = bench();
    for (number, make) in [udp as Make, |from, to, payload| tcp(from, to, "S", payload)].iter().enumerate() {
        let first = external(&mut bench, &make(CLIENT, SERVER, b"x"));
        assert_eq!(first.0, address(EXTERNAL));
        for to in [("192.0.2.1", 54), ("203.0.113.9", 53)] {
            assert_eq!(external(&mut bench, &make(CLIENT, to, b"x")), first);
        }
        assert_ne!(external(&mut bench, &make(OTHER, SERVER, b"x")), first);
        assert_ne!(external(&mut bench, &make((CLIENT.0, 1235), SERVER, b"x")), first);
        assert_eq!(bench.counter("flows"), 5 * (number as u64 + 1));
    }
}

#[test]
fn a_mapping_lives_as_long_as_its_last_flow() {
    let mut bench = bench();
    let (a, b) = (udp(CLIENT, SERVER, b"x"), udp(CLIENT, ("192.0.2.2", 53), b"x"));
    let first = external(&mut bench, &a);
    assert_eq!(bench.counter("external_ports_udp"), 1);
    bench.set_now(seconds(200));
    assert_eq!(external(&mut bench, &b), first);
    bench.set_now(seconds(400));
    assert_eq!(external(&mut bench, &b), first);
    bench.set_now(seconds(800));
    // Both flows are gone, and what looks them up finds that.
    for frame in [&a, &b] {
        bench.forward(0, frame);
    }
    assert_eq!(bench.counter("external_ports_udp"), 1);
    assert_eq!(bench.counter("flows"), 2);
}

#[test]
fn filtering_says_who_may_send_in() {
    let strangers = [("192.0.2.1", 53), ("192.0.2.1", 99), ("192.0.2.7", 53)];
    for (filtering, admitted) in [
        (Filtering::EndpointIndependent, [true, true, true]),
        (Filtering::AddressDependent, [true, true, false]),
        (Filtering::AddressAndPortDependent, [true, false, false]),
    ] {
        let mut bench = Bench::new(&config(Values::default().with("nat_filtering", filtering.word())));
        let end = text(external(&mut bench, &udp(CLIENT, SERVER, b"x")));
        for (from, admitted) in strangers.into_iter().zip(admitted) {
            let frame = udp(from, (&end.0, end.1), b"y");
            if admitted {
                let back = bench.forward(1, &frame);
                assert_eq!(ip_packet(&back), ip_packet(&one_hop_on(&udp(from, CLIENT, b"y"))), "{filtering:?}");
                // The answer leaves by the same endpoint.
                let out = decode(&bench.forward(0, &udp(CLIENT, from, b"z"))).unwrap();
                assert_eq!((out.source.0.to_string(), out.source.1), end);
            } else {
                assert_eq!(bench.drop(1, &frame), "no_flow", "{filtering:?}");
            }
        }
        let unused = udp(SERVER, (&end.0, end.1 ^ 1), b"y");
        assert_eq!(bench.drop(1, &unused), "no_flow");
    }
}

#[test]
fn inside_hosts_reach_each_other_by_external_endpoints() {
    for make in [udp as Make, |from, to, payload| tcp(from, to, "A", payload)] {
        let policy = Values::default().with("nat_filtering", Filtering::EndpointIndependent.word());
        let mut bench = Bench::new(&config(policy));
        let other = text(external(&mut bench, &make(OTHER, SERVER, b"x")));
        let own = text(external(&mut bench, &make(CLIENT, SERVER, b"x")));
        let turned = bench.forward(0, &make(CLIENT, (&other.0, other.1), b"hello"));
        assert_eq!(ip_packet(&turned), ip_packet(&one_hop_on(&make((&own.0, own.1), OTHER, b"hello"))));
        assert_eq!(turned[..12], [2, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0]);
        let back = bench.forward(0, &make(OTHER, (&own.0, own.1), b"hi"));
        assert_eq!(ip_packet(&back), ip_packet(&one_hop_on(&make((&other.0, other.1), CLIENT, b"hi"))));
    }
    // Filters hold for inside hosts too.
    let mut bench = bench();
    let other = text(external(&mut bench, &udp(OTHER, SERVER, b"x")));
    assert_eq!(bench.drop(0, &udp(CLIENT, (&other.0, other.1), b"hello")), "no_flow");
}

#[test]
fn each_protocol_has_all_ports_and_udp_keeps_their_parity() {
    let mut config = config(Values::default());
    config.values.set("table_entries", 70_000);
    let mut bench = Bench::new(&config);
    let host = |n: u32| format!("10.0.{}.1", n >> 14);
    let mut seen = BTreeSet::new();
    for n in 0..1000 {
        let port = 2 * n as u16 + 5;
        let end = external(&mut bench, &udp((&host(n), port), SERVER, b"x"));
        assert_eq!(end.1 % 2, port % 2);
        assert!(end.1 >= 1024 && seen.insert(end));
    }
    for n in 0..64_512 {
        bench.forward(0, &tcp((&host(n), n as u16 & 0x3fff), SERVER, "A", b""));
    }
    assert_eq!(bench.counter("external_ports_tcp"), 64_512);
    bench.forward(0, &udp(OTHER, SERVER, b"x"));
    bench.forward(0, &echo(OTHER.0, SERVER.0, 7, false));
}

#[test]
fn a_port_forward_leads_to_its_server() {
    let mut bench = Bench::new(&config(Values::default().with("nat_forwards", "tcp 80 10.0.0.80:8080")));
    for round in 0..2 {
        let client = ("203.0.113.5", 40_000);
        let back = bench.forward(1, &tcp(client, (EXTERNAL, 80), "S", b""));
        assert_eq!(ip_packet(&back), ip_packet(&one_hop_on(&tcp(client, ("10.0.0.80", 8080), "S", b""))));
        let out = bench.forward(0, &tcp(("10.0.0.80", 8080), client, "SA", b""));
        assert_eq!(ip_packet(&out), ip_packet(&one_hop_on(&tcp((EXTERNAL, 80), client, "SA", b""))));
        // It outlives its flows.
        bench.set_now(seconds(100_000 * (round + 1)));
    }
    assert_eq!(bench.drop(1, &udp(("203.0.113.5", 1), (EXTERNAL, 80), b"x")), "no_flow", "TCP only");
}

#[test]
fn forwards_that_make_no_sense_are_refused() {
    let forward = Forward { protocol: 17, external_port: 53, inside: "10.0.0.53:5353".parse().unwrap() };
    assert_eq!(Forward::parse_all("tcp 1 10.0.0.1:2, udp 53 10.0.0.53:5353").unwrap()[1], forward);
    for bad in
        ["", "tcp", "icmp 1 10.0.0.1:2", "tcp 0 10.0.0.1:2", "tcp 1 10.0.0.1", "tcp 1 10.0.0.1:0", "tcp 1 10.0.0.1:2,"]
    {
        assert_eq!(Forward::parse_all(bad), None, "{bad}");
    }
}

#[test]
fn half_open_flows_from_outside_are_transitory() {
    let mut bench = Bench::new(&config(Values::default().with("nat_forwards", "tcp 80 10.0.0.80:8080")));
    bench.forward(1, &tcp(("203.0.113.5", 40_000), (EXTERNAL, 80), "S", b""));
    bench.set_now(seconds(241));
    bench.forward(1, &tcp(("203.0.113.5", 40_000), (EXTERNAL, 80), "S", b""));
    assert_eq!((bench.counter("flows_expired"), bench.counter("flows")), (1, 1));
}

#[test]
fn the_external_address_answers_a_ping_from_inside() {
    for mapping in [Mapping::PerFlow, Mapping::EndpointIndependent] {
        let mut config = config(Values::default());
        config.values.set("nat_mapping", mapping.word());
        let mut bench = Bench::new(&config);
        let (verdict, reply) = bench.send(0, &echo(CLIENT.0, EXTERNAL, 77, false));
        assert_eq!(verdict, Verdict::Transmit(PortId(0)));
        assert_eq!(ip_packet(&reply), ip_packet(&echo(EXTERNAL, CLIENT.0, 77, true)));
        assert_eq!(reply[..12], [2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0]);
    }
}

#[test]
fn queries_other_than_echo_are_translated_by_identifier() {
    let mut bench = bench();
    for (query, answer) in [(13, 14), (15, 16), (17, 18)] {
        let as_type = |mut frame: Vec<u8>, message: u8| {
            frame[34] = message;
            let sum = etherparse::checksum::Sum16BitWords::new();
            frame[36..38].fill(0);
            let sum = sum.add_slice(&frame[34..]).ones_complement().to_be();
            frame[36..38].copy_from_slice(&sum.to_be_bytes());
            frame
        };
        let out = bench.forward(0, &as_type(echo(CLIENT.0, SERVER.0, 77, false), query));
        assert!(crate::support::icmp_sum_is_right(&out));
        let identifier = u16::from_be_bytes([out[38], out[39]]);
        let back = bench.forward(1, &as_type(echo(SERVER.0, EXTERNAL, identifier, true), answer));
        assert_eq!(ip_packet(&back), ip_packet(&one_hop_on(&as_type(echo(SERVER.0, CLIENT.0, 77, true), answer))));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Whatever happens: two inside endpoints never share an external one, answers find their way, and in the end
    /// all ports are free.
    #[test]
    fn mappings_stay_apart_and_end(steps in prop::collection::vec((0u8..4, 0u16..12, 0u8..6, 0u64..13), 1..120)) {
        let mut config = config(Values::default().with("nat_host_share_percent", 60));
        config.values.set("table_entries", 20);
        let mut bench = Bench::new(&config);
        let mut now = 0;
        let mut mapped: BTreeMap<(u8, Ipv4Addr, u16), (String, u16, u64)> = BTreeMap::new();
        for (host, port, remote, pause) in steps {
            // No silence is exactly a time-out, at which simulated cores, some nanoseconds later, decide otherwise.
            now += 7 * pause;
            bench.set_now(seconds(now));
            let from = (format!("10.0.0.{}", host + 1), 2000 + port);
            let to = format!("192.0.2.{}", remote + 1);
            let frame = udp((&from.0, from.1), (&to, 53), b"x");
            let (verdict, out) = bench.send(0, &frame);
            match verdict {
                Verdict::Drop(cause) => prop_assert!(["host_share", "table_full"].contains(&cause), "{}", cause),
                _ => {
                    let seen = decode(&out).unwrap();
                    let owner = mapped.insert((17, seen.source.0, seen.source.1), (from.0.clone(), from.1, now));
                    if let Some((host, port, last)) = owner {
                        prop_assert!((host, port) == from || now - last > 300);
                    }
                    let back = bench.forward(1, &answer(&out, b"y"));
                    prop_assert_eq!(decode(&back).unwrap().destination.1, from.1);
                }
            }
        }
        bench.set_now(seconds(now + 10_000));
        // Sweeps of new flows find all that is left.
        for n in 0..60 {
            let to = format!("198.51.100.{}", n + 1);
            let _ = bench.send(0, &udp(("10.9.0.1", 9), (&to, 53), b"x"));
            bench.set_now(seconds(now + 10_000 + 400 * (n + 1)));
        }
        prop_assert!(bench.counter("flows") <= 12);
        prop_assert!(bench.counter("external_ports_udp") <= 1);
    }
}

/// RFC 4787, REQ-2 ("paired"): all endpoints of a host have the same external address, while that has ports.
#[test]
fn all_endpoints_of_a_host_have_one_external_address() {
    let mut bench = Bench::new(&config(Values::default().with("external_addresses", 8)));
    let mut used = BTreeSet::new();
    for host in 1..=20 {
        let host = format!("10.0.0.{host}");
        let mut of_host = |make: Make, port| external(&mut bench, &make((&host, port), SERVER, b"x")).0;
        let first = of_host(udp, 1);
        for port in 2..8 {
            assert_eq!(of_host(udp, port), first);
            assert_eq!(of_host(|from, to, payload| tcp(from, to, "S", payload), port), first);
        }
        used.insert(first);
    }
    assert!(used.len() > 4, "{used:?}");
}

/// RFC 4787, REQ-7: which side a host is on, its port says, whatever its address.
#[test]
fn networks_on_both_sides_may_have_the_same_addresses() {
    let mut bench = bench();
    let outside = ("10.0.0.1", 53);
    let end = text(external(&mut bench, &udp(CLIENT, outside, b"x")));
    let back = bench.forward(1, &udp(outside, (&end.0, end.1), b"y"));
    assert_eq!(ip_packet(&back), ip_packet(&one_hop_on(&udp(outside, CLIENT, b"y"))));
}

/// RFC 6056; RFC 7857, section 9: hosts outside cannot foresee the next port.
#[test]
fn external_ports_are_given_out_at_random() {
    let of_seed = |seed| {
        let mut bench = Bench::new(&AppConfig { seed, ..config(Values::default()) });
        let ports = (1..=200).map(|port| external(&mut bench, &udp((CLIENT.0, 2 * port), SERVER, b"x")).1);
        ports.collect::<Vec<u16>>()
    };
    let ports = of_seed(1);
    assert_ne!(ports, of_seed(2));
    let steps: BTreeSet<i32> = ports.windows(2).map(|pair| i32::from(pair[1]) - i32::from(pair[0])).collect();
    assert!(steps.len() > 150, "{} different steps between 200 ports", steps.len());
    let quarters: BTreeSet<u16> = ports.iter().map(|port| port >> 14).collect();
    assert_eq!(quarters.len(), 4, "from all of the range");
}

/// RFC 5382, REQ-2: both ends may send a SYN before they have seen the other's.
#[test]
fn both_ends_may_open_a_connection_at_once() {
    let mut bench = bench();
    let end = text(external(&mut bench, &tcp(CLIENT, SERVER, "S", b"")));
    let own = (end.0.as_str(), end.1);
    for flags in ["S", "SA", "A"] {
        let came = bench.forward(1, &tcp(SERVER, own, flags, b""));
        assert_eq!(ip_packet(&came), ip_packet(&one_hop_on(&tcp(SERVER, CLIENT, flags, b""))), "{flags}");
        assert_eq!(text(external(&mut bench, &tcp(CLIENT, SERVER, "SA", b""))), end, "{flags}");
    }
    // Established: silent for an hour, it is still there.
    bench.set_now(seconds(3600));
    bench.forward(1, &tcp(SERVER, own, "A", b"late"));
}
