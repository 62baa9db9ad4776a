//! The external ports of `nat` with endpoint-independent mappings: shared by cores, and by flows. Judged by etherparse.

use std::collections::{BTreeMap, BTreeSet};

use nicforge_options::Values;
use nicforge_units::Time;

use crate::nat_mappings::{EXTERNAL, SERVER, config, external};
use crate::support::{Bench, address, decode, ip_packet, one_hop_on, tcp, udp};

fn seconds(s: u64) -> Time {
    Time::from_ms(1000 * s)
}

/// Without free ports, flows to other destinations share them where that is allowed.
#[test]
fn flows_to_different_destinations_share_ports_when_none_is_free() {
    let values = || Values::default().with("table_entries", 200_000);
    let shared = values().with("nat_ports_shared", true);
    let bench = |values| Bench::new(&config(values));
    let (mut alone, mut bench) = (bench(values()), bench(shared));
    const PORTS: u64 = 64_512;
    let flow = |host: u64, to: &'static str| udp_of(&format!("10.0.{}.{}", host >> 8, host & 0xff), to);
    for host in 0..PORTS {
        alone.forward(0, &flow(host, SERVER.0));
        bench.forward(0, &flow(host, SERVER.0));
    }
    assert_eq!(alone.drop(0, &flow(PORTS, "192.0.2.9")), "no_external_port");
    let mut ends = BTreeSet::new();
    for host in PORTS..PORTS + 500 {
        let frame = flow(host, "192.0.2.9");
        let end = external(&mut bench, &frame);
        assert!(ends.insert(end), "answers of one destination are told apart");
        assert_eq!(external(&mut bench, &frame), end);
        let back = bench.forward(1, &udp(("192.0.2.9", 53), (&end.0.to_string(), end.1), b"y"));
        let inside = format!("10.0.{}.{}", host >> 8, host & 0xff);
        assert_eq!(decode(&back).unwrap().destination.0, address(&inside));
        // Nobody else may send there: it is no mapping of this host.
        let stranger = udp(("192.0.2.77", 53), (&end.0.to_string(), end.1), b"y");
        assert_eq!(bench.drop(1, &stranger), "no_flow");
    }
    // A flow that shares its port has none to give back: the count stays right when all end and others come.
    bench.set_now(seconds(400));
    for host in 0..5000 {
        bench.forward(0, &flow(host, SERVER.0));
    }
    assert!(bench.counter("external_ports_udp") <= bench.counter("flows"));
}

/// Cores of a NAT share its external ports: one that needs more than its even part has what the other does not keep, and the
/// other finds what it keeps.
#[test]
fn a_core_that_runs_short_of_ports_takes_those_that_others_do_not_use() {
    let config = config(Values::default().with("table_entries", 400_000).with("nat_ports_kept_percent", 25));
    let mut bench = Bench::of_two(&config);
    let (all, kept) = (64_512, 64_512 / 2 / 4);
    let host = |n: u32| format!("10.{}.{}.{}", n >> 16, n >> 8 & 0xff, n & 0xff);
    let mut ends = BTreeMap::new();
    let mut open = |bench: &mut Bench, from: u32, count: u32| {
        for n in from..from + count {
            let end = external(bench, &udp_of(&host(n), SERVER.0));
            assert!(ends.insert(end, n).is_none(), "{end:?} is given out twice");
        }
    };
    open(&mut bench, 0, all - kept);
    assert_eq!(bench.drop(0, &udp_of(&host(all), SERVER.0)), "no_external_port");
    bench.change();
    open(&mut bench, all, kept);
    assert_eq!(bench.drop(0, &udp_of(&host(all + kept), SERVER.0)), "no_external_port");
    assert_eq!(bench.counter("external_ports_udp"), u64::from(kept));
    // Answers are the core's that has the flow.
    let (end, last) = ends.iter().find(|(_, n)| **n == all + kept - 1).unwrap();
    let back = udp(SERVER, (&end.0.to_string(), end.1), b"y");
    assert_eq!(decode(&bench.forward(1, &back)).unwrap().destination.0, address(&host(*last)));
    bench.change();
    assert_eq!(bench.drop(1, &back), "no_flow");
}

/// A server that a port is forwarded to may be any core's: each knows it.
#[test]
fn a_port_forward_holds_on_every_core() {
    let mut bench = Bench::of_two(&config(Values::default().with("nat_forwards", "tcp 8080 10.0.0.80:80")));
    let client = ("203.0.113.5", 40_000);
    for _ in 0..2 {
        let back = bench.forward(1, &tcp(client, (EXTERNAL, 8080), "S", b""));
        assert_eq!(ip_packet(&back), ip_packet(&one_hop_on(&tcp(client, ("10.0.0.80", 80), "S", b""))));
        bench.change();
    }
}

fn udp_of(host: &str, to: &str) -> Vec<u8> {
    udp((host, 1234), (to, 53), b"x")
}
