//! Whose flows of a `nat` with endpoint-independent mappings end, and whose packets are dropped, when there is no more room.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use nicforge_apps::Verdict;
use nicforge_nic::PortId;
use nicforge_options::Values;
use proptest::prelude::*;

use crate::nat_mappings::{CLIENT, EXTERNAL, OTHER, SERVER, config, external, text};
use crate::support::{Bench, address, decode, tcp, udp};

/// Closing flows that a load generator leaves do not keep other hosts out.
#[test]
fn closing_flows_give_way_to_new_ones() {
    let mut bench = Bench::new(&config(Values::default()));
    for port in 1..=1000 {
        let out = bench.forward(0, &tcp((CLIENT.0, port), SERVER, "S", b""));
        let seen = decode(&out).unwrap();
        let end = text(seen.source);
        bench.forward(1, &tcp(SERVER, (&end.0, end.1), "SA", b""));
        bench.forward(0, &tcp((CLIENT.0, port), SERVER, "FA", b""));
    }
    for port in 1..=500 {
        bench.forward(0, &tcp((OTHER.0, port), SERVER, "S", b""));
    }
    assert_eq!((bench.counter("flows"), bench.counter("flows_reclaimed")), (1000, 500));
    // The last ones to close are still there.
    let reply = bench.forward(0, &tcp((CLIENT.0, 1000), SERVER, "A", b""));
    assert!(decode(&reply).is_some());
    assert_eq!(bench.counter("flows_opened"), 1500);
}

#[test]
fn a_flood_of_unanswered_flows_keeps_nobody_out() {
    let mut bench = Bench::new(&config(Values::default().with("nat_host_share_percent", 50)));
    let established = tcp(OTHER, SERVER, "S", b"");
    let end = text(external(&mut bench, &established));
    bench.forward(1, &tcp(SERVER, (&end.0, end.1), "SA", b""));
    for n in 0..5000u32 {
        let to = format!("192.0.{}.{}", n >> 7 & 0xff, (n & 0x7f) + 1);
        bench.forward(0, &tcp((CLIENT.0, 1024 + (n & 0x3ff) as u16), (&to, 80), "S", b""));
    }
    assert_eq!(bench.counter("flows"), 501, "half of the table for one host");
    assert_eq!(text(external(&mut bench, &tcp(OTHER, SERVER, "A", b""))), end);
    // Without anything that gives way, the share is all that a host gets.
    let mut bench = Bench::new(&config(Values::default().with("nat_host_share_percent", 50)));
    for port in 1..=500 {
        bench.forward(0, &udp((CLIENT.0, port), SERVER, b"x"));
    }
    assert_eq!(bench.drop(0, &udp((CLIENT.0, 501), SERVER, b"x")), "host_share");
    bench.forward(0, &udp(OTHER, SERVER, b"x"));
}

/// Opens a connection that nobody answers yet, and returns its external end.
fn handshake(bench: &mut Bench, from: (&str, u16)) -> (String, u16) {
    text(external(bench, &tcp(from, SERVER, "S", b"")))
}

/// A host at its bound pays itself: not one handshake or closing flow of another host ends for it.
#[test]
fn a_host_at_its_bound_ends_no_flow_of_others() {
    let mut bench = Bench::new(&config(Values::default().with("nat_host_share_percent", 50)));
    let begun = handshake(&mut bench, (OTHER.0, 1));
    handshake(&mut bench, (OTHER.0, 2));
    bench.forward(0, &tcp((OTHER.0, 2), SERVER, "FA", b""));
    for port in 1..=500 {
        bench.forward(0, &udp((CLIENT.0, port), SERVER, b"x"));
    }
    for port in 501..=600 {
        assert_eq!(bench.drop(0, &udp((CLIENT.0, port), SERVER, b"x")), "host_share");
        assert_eq!(bench.drop(0, &tcp((CLIENT.0, port), SERVER, "S", b"")), "host_share");
    }
    assert_eq!((bench.counter("flows"), bench.counter("flows_reclaimed")), (502, 0));
    let answer = bench.forward(1, &tcp(SERVER, (&begun.0, begun.1), "SA", b""));
    assert_eq!(decode(&answer).unwrap().destination, (address(OTHER.0), 1));
}

/// Its own flows give way, closing ones first and the oldest of them first; answered ones stay.
#[test]
fn a_host_at_its_bound_ends_its_own_oldest_flow() {
    let mut bench = Bench::new(&config(Values::default().with("nat_host_share_percent", 1)));
    let others = [handshake(&mut bench, (OTHER.0, 1)), handshake(&mut bench, (OTHER.0, 2))];
    // Ten flows: 1 and 2 closing, in the other order; 3 and 4 unanswered; the others established.
    let ends: Vec<_> = (1..=10).map(|port| handshake(&mut bench, (CLIENT.0, port))).collect();
    let answered = |bench: &mut Bench, port: usize| {
        let end = (ends[port - 1].0.as_str(), ends[port - 1].1);
        bench.send(1, &tcp(SERVER, end, "SA", b"")).0 == Verdict::Transmit(PortId(0))
    };
    for port in (1..=2).chain(5..=10) {
        assert!(answered(&mut bench, port));
    }
    // A client may use the ports of a closing flow again: that one closes no more.
    for (port, flags) in [(2, "FA"), (1, "R"), (5, "FA"), (5, "S")] {
        bench.forward(0, &tcp((CLIENT.0, port), SERVER, flags, b""));
    }
    for (number, gone) in [2, 1, 3, 4].into_iter().enumerate() {
        bench.forward(0, &udp((CLIENT.0, 100 + number as u16), SERVER, b"x"));
        assert_eq!(bench.counter("flows_reclaimed"), 1 + number as u64);
        assert!(!answered(&mut bench, gone), "{gone}");
    }
    assert_eq!(bench.drop(0, &udp((CLIENT.0, 200), SERVER, b"x")), "host_share");
    for port in 5..=10 {
        assert!(answered(&mut bench, port), "{port}");
    }
    for end in others {
        bench.forward(1, &tcp(SERVER, (&end.0, end.1), "SA", b""));
    }
}

const FORWARD: &str = "tcp 80 10.0.0.80:8080";
const INSIDE: (&str, u16) = ("10.0.0.80", 8080);

/// A connection of client `port` outside to the server that port 80 is forwarded to.
fn connection(port: u16, flags: &str) -> Vec<u8> {
    tcp(("203.0.113.5", port), (EXTERNAL, 80), flags, b"")
}

/// The same for connections from outside: a full table does not keep them from a forwarded port while some flow closes.
#[test]
fn flows_give_way_to_connections_from_outside() {
    let mut bench = Bench::new(&config(Values::default().with("nat_forwards", FORWARD)));
    for port in 1..=1000 {
        let end = handshake(&mut bench, (CLIENT.0, port));
        bench.forward(1, &tcp(SERVER, (&end.0, end.1), "SA", b""));
    }
    assert_eq!(bench.drop(1, &connection(1, "S")), "table_full");
    bench.forward(0, &tcp((CLIENT.0, 7), SERVER, "FA", b""));
    bench.forward(1, &connection(1, "S"));
    assert_eq!((bench.counter("flows"), bench.counter("flows_reclaimed")), (1000, 1));
    bench.forward(0, &tcp(INSIDE, ("203.0.113.5", 1), "SA", b""));
    assert_eq!(bench.drop(1, &connection(2, "S")), "table_full");
    let stranger = tcp(("203.0.113.5", 1), (EXTERNAL, 81), "S", b"");
    assert_eq!(bench.drop(1, &stranger), "no_flow");
}

/// A server at its bound takes new connections at the cost of its own closing and unanswered ones.
#[test]
fn a_server_at_its_bound_ends_its_own_oldest_flow() {
    let values = Values::default().with("nat_forwards", FORWARD).with("nat_host_share_percent", 1);
    let mut bench = Bench::new(&config(values));
    let begun = handshake(&mut bench, OTHER);
    for port in 1..=10 {
        bench.forward(1, &connection(port, "S"));
        bench.forward(0, &tcp(INSIDE, ("203.0.113.5", port), "SA", b""));
    }
    assert_eq!(bench.drop(1, &connection(11, "S")), "host_share");
    bench.forward(1, &connection(3, "FA"));
    bench.forward(1, &connection(11, "S"));
    // The next one finds this one unanswered.
    bench.forward(1, &connection(12, "S"));
    bench.forward(0, &tcp(INSIDE, ("203.0.113.5", 12), "SA", b""));
    assert_eq!(bench.drop(1, &connection(13, "S")), "host_share");
    assert_eq!((bench.counter("flows"), bench.counter("flows_reclaimed")), (11, 2));
    bench.forward(1, &tcp(SERVER, (&begun.0, begun.1), "SA", b""));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever gives way in a table that is far too small: never a connection that both ends hold open.
    #[test]
    fn established_connections_never_give_way(steps in prop::collection::vec((0u8..4, 1u16..8, 0u8..6), 1..150)) {
        let mut config = config(Values::default().with("nat_host_share_percent", 40));
        config.values.set("table_entries", 20);
        let mut bench = Bench::new(&config);
        let (mut ends, mut closing) = (BTreeMap::new(), BTreeSet::new());
        let mut established: BTreeMap<(Ipv4Addr, u16), (String, u16)> = BTreeMap::new();
        for (host, port, what) in steps {
            let from = (format!("10.0.0.{}", host + 1), port);
            let inside = (address(&from.0), port);
            let out = |flags| tcp((&from.0, port), SERVER, flags, b"");
            let end: Option<(String, u16)> = ends.get(&inside).cloned();
            match (what, end) {
                (0, _) => {
                    let (verdict, frame) = bench.send(0, &out("S"));
                    if !matches!(verdict, Verdict::Drop(_)) {
                        ends.insert(inside, text(decode(&frame).unwrap().source));
                        closing.remove(&inside);
                    }
                }
                (1 | 2, Some(end)) => {
                    let (verdict, frame) = bench.send(1, &tcp(SERVER, (&end.0, end.1), "SA", b""));
                    if !matches!(verdict, Verdict::Drop(_)) {
                        let to = decode(&frame).unwrap().destination;
                        if !closing.contains(&to) {
                            established.insert(to, end);
                        }
                    }
                }
                (3, Some(_)) => {
                    let _ = bench.send(0, &out("FA"));
                    closing.insert(inside);
                    established.remove(&inside);
                }
                (4, Some(end)) => {
                    let (verdict, frame) = bench.send(1, &tcp(SERVER, (&end.0, end.1), "R", b""));
                    if !matches!(verdict, Verdict::Drop(_)) {
                        established.remove(&decode(&frame).unwrap().destination);
                    }
                }
                _ => drop(bench.send(0, &udp((&from.0, port), SERVER, b"x"))),
            }
            for (to, end) in &established {
                let frame = bench.forward(1, &tcp(SERVER, (&end.0, end.1), "A", b""));
                prop_assert_eq!(decode(&frame).unwrap().destination, *to);
            }
        }
    }
}
