//! Garbage from both hosts into the gateway, as fast as it takes it, beside traffic that is checked
//! byte by byte, on every interface. Needs root; skipped with a line where that is not allowed.
//! `NICFORGE_GARBAGE_SECONDS=60` makes it a minute for each.
#[path = "../../../lab/tests/common/garbage.rs"]
mod made;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::interfaces::interfaces;
use crate::support::netns::Hosts;
use crate::support::traffic::{StopAtEnd, questions, tcp_both_ways};
use made::{Garbage, seconds};
use nicforge_platform::live::ports::{PacketPort, Port};
use nicforge_units::Time;
use nicforge_wire::parse_frame;

/// Frames between two questions whether the gateway keeps up: they fit into its socket.
const IN_FLIGHT: usize = 512;
/// The shortest frame that the system sends, and the longest that a veth takes.
const LENGTHS: (usize, usize) = (14, 1_514);
const PATIENCE: Duration = Duration::from_millis(200);
/// Lost by the system before anybody sees it: it takes tags out of frames itself.
const TAKEN_BY_THE_SYSTEM: &str = "vlan_truncated";

/// Causes other than the parser's: what NAT does not translate, and frames for which there was no
/// time.
const NAT: [&str; 20] = [
    "group_frame",
    "other_host",
    "bad_source",
    "bad_destination",
    "own_address",
    "icmp_error_checksum",
    "arp",
    "not_ipv4",
    "no_flow",
    "no_external_port",
    "icmp_error_malformed",
    "icmp_error_no_flow",
    "icmp_message",
    "fragment_unknown",
    "protocol",
    "ttl_expired",
    "ip_checksum",
    "bad_checksum",
    "table_full",
    "oversized_frame",
];
const WANT_OF_TIME: [&str; 4] = ["no_descriptor", "bx_full", "tx_ring_full", "socket_full"];

#[derive(Default)]
struct Poured {
    frames: u64,
    by_cause: BTreeMap<&'static str, u64>,
    refused: u64,
}

/// Who has `router`? (RFC 826)
fn arp_request(mac: [u8; 6], own: [u8; 4], router: [u8; 4]) -> Vec<u8> {
    let head = [0, 1, 8, 0, 6, 4, 0, 1];
    [&[0xff; 6][..], &mac, &[8, 6], &head, &mac, &own, &[0; 6], &router].concat()
}

/// Garbage out of `port` until `stop`: as much at once as may wait in the gateway's socket, then a
/// question that it answers when it is through with that.
fn pour(mut port: PacketPort, network: u8, seed: u64, stop: &AtomicBool) -> Poured {
    let mut garbage = Garbage::new(seed, LENGTHS.0, LENGTHS.1);
    let mut poured = Poured::default();
    let router = [10, 99, network, 1];
    // Of an address of its own, so that no host's table changes.
    let question = arp_request([2, 0, 0, 0, 9, network], [10, 99, network, 9], router);
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..IN_FLIGHT {
            let frame = garbage.frame();
            if let Err(error) = parse_frame(&frame) {
                *poured.by_cause.entry(error.name()).or_default() += 1;
            }
            port.send(&frame, Time::ZERO).unwrap();
            poured.frames += 1;
        }
        port.send(&question, Time::ZERO).unwrap();
        port.flush().unwrap();
        let until = Instant::now() + PATIENCE;
        let mut answered = false;
        while !answered && Instant::now() < until {
            let mut look = |frame: &[u8]| {
                let is_answer = frame.len() >= 42 && frame[12..14] == [8, 6] && frame[21] == 2;
                answered |= is_answer && frame[28..32] == router;
            };
            if port.receive(64, &mut look).unwrap() == 0 {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    }
    poured.refused = port.counters().refused;
    poured
}

/// What stands in the report against what was sent.
fn check(interface: &str, drops: &BTreeMap<String, u64>, poured: &[Poured]) {
    let mut sent: BTreeMap<&str, u64> = BTreeMap::new();
    for (cause, count) in poured.iter().flat_map(|poured| &poured.by_cause) {
        *sent.entry(cause).or_default() += count;
    }
    let missed = drops.get("socket_full").copied().unwrap_or_default();
    let refused: u64 = poured.iter().map(|poured| poured.refused).sum();
    for (cause, sent) in sent {
        let counted = drops.get(cause).copied().unwrap_or_default();
        assert!(counted <= sent, "{interface}: {cause} {counted} of {sent}");
        let all = counted + missed + refused >= sent || cause == TAKEN_BY_THE_SYSTEM;
        assert!(all, "{interface}: {cause} {counted} of {sent}, {missed} never seen");
    }
    for cause in drops.keys() {
        let known = poured.iter().any(|of| of.by_cause.contains_key(&**cause));
        let named = NAT.contains(&&**cause) || WANT_OF_TIME.contains(&&**cause);
        assert!(known || named, "{interface}: {cause}");
    }
}

#[test]
fn garbage_disturbs_no_traffic_beside_it() {
    let Some(hosts) = Hosts::up("garbage") else {
        return;
    };
    let stop = AtomicBool::new(false);
    for (seed, interface) in (1..).zip(interfaces()) {
        let set = format!("interface={interface}");
        let gateway = hosts.gateway("nat-netns.toml", &[&set, "cores=2"], "10.99.2.2");
        stop.store(false, Ordering::Relaxed);
        let (mut rounds, mut lost) = (0, 0);
        let poured: Vec<Poured> = std::thread::scope(|scope| {
            let _stops = StopAtEnd(&stop);
            let pouring = [("client", 1), ("server", 2)].map(|(host, network)| {
                let port = hosts.run(host, || PacketPort::open("eth0").unwrap());
                let stop = &stop;
                scope.spawn(move || pour(port, network, seed * 2 + u64::from(network), stop))
            });
            let until = Instant::now() + Duration::from_secs_f64(seconds(1.0));
            while rounds == 0 || Instant::now() < until {
                tcp_both_ways(&hosts, "10.99.2.2:7000", "10.99.2.2:7000", 2);
                lost += questions(&hosts, "10.99.2.2:53", "10.99.2.2:53", 200);
                rounds += 1;
            }
            stop.store(true, Ordering::Relaxed);
            pouring.map(|thread| thread.join().unwrap()).into()
        });
        let report = gateway.stop();
        let drops = report["points"][0]["metrics"]["drops"].clone();
        let drops: BTreeMap<String, u64> = serde_json::from_value(drops).unwrap();
        let frames: u64 = poured.iter().map(|poured| poured.frames).sum();
        let late: u64 = WANT_OF_TIME.iter().filter_map(|cause| drops.get(*cause)).sum();
        println!(
            "{interface}: {frames} garbage beside {rounds} round(s) of TCP and UDP; {lost} questions \
             lost, {late} frames dropped for want of time"
        );
        check(interface, &drops, &poured);
        assert!(lost <= late, "{interface}: {lost} questions lost: {drops:?}");
    }
}
