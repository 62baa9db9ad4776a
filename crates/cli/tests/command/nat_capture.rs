//! The main job on real packets: a capture goes through the simulated server and comes out
//! translated, as decoders say that are not the project's own.

mod answers;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{folder, nicforge, stderr};
use crate::decoder;
use crate::decoder::{Content, End, decode, flows, frames};
use crate::skip;
use tempfile::TempDir;

/// What a receive buffer holds; the server drops longer frames, which hosts capture that cut
/// them later.
const BUFFER_BYTES: usize = 2048;

/// A run of `nat-capture` and what came out of it.
struct Run {
    folder: TempDir,
    report: serde_json::Value,
    nics: usize,
    sent: Vec<Vec<u8>>,
    arrived: Vec<Vec<u8>>,
}

impl Run {
    /// Translates `capture` with these `--set`s.
    fn of(capture: &Path, nics: usize, settings: &[&str]) -> Run {
        let folder = folder();
        let mut arguments = vec!["run", "scenarios/nat-capture.toml", "--quiet"];
        arguments.extend(["--out", "out", "--pcap-out", "nat.pcap"]);
        arguments.extend(["--pcap", capture.to_str().unwrap()]);
        let nics_set = format!("nics={nics}");
        for set in settings.iter().chain([&nics_set.as_str()]) {
            arguments.extend(["--set", set]);
        }
        let output = nicforge(&folder, &arguments);
        let place = capture.display();
        assert_eq!(output.status.code(), Some(0), "{place}: {}", stderr(&output));
        let json = std::fs::read_to_string(folder.path().join("out/report.json")).unwrap();
        Run {
            report: serde_json::from_str(&json).unwrap(),
            sent: frames(&folder.path().join("nat.pcap")),
            arrived: frames(capture),
            folder,
            nics,
        }
    }

    fn metrics(&self) -> &serde_json::Value {
        &self.report["points"][0]["metrics"]
    }

    /// Arrived frames that fit into a buffer.
    fn taken(&self) -> impl Iterator<Item = &Vec<u8>> {
        let fits = |frame: &&Vec<u8>| frame.len() <= BUFFER_BYTES;
        self.arrived.iter().filter(fits)
    }

    /// Drops under `cause`.
    fn drops(&self, cause: &str) -> u64 {
        self.metrics()["drops"][cause].as_u64().unwrap_or(0)
    }

    fn all_drops(&self) -> u64 {
        let drops = self.metrics()["drops"].as_object().unwrap();
        drops.values().map(|count| count.as_u64().unwrap()).sum()
    }

    /// Each port got the whole capture: what came in is out, or dropped under a cause.
    fn assert_counts(&self) {
        let arrived = (self.arrived.len() * self.nics) as u64;
        let drops = self.all_drops();
        let causes = &self.metrics()["drops"];
        assert_eq!(self.sent.len() as u64, arrived - drops, "{causes}");
        let share = self.metrics()["drop_fraction"].as_f64().unwrap();
        assert!((share - drops as f64 / arrived as f64).abs() < 1e-9);
    }

    /// Every flow has one external end of its own; its packets are in order and unchanged but
    /// for that end and one hop less, with checksums that are right where they were. Packets that had
    /// no hop to lose, or a wrong IP checksum, are dropped.
    fn assert_translated(&self) {
        let mut arrived = flows(self.taken().filter(|frame| may_be_forwarded(frame)));
        for packets in arrived.values_mut() {
            packets.retain(|&(_, hops, l3_right, _)| hops > 1 && l3_right);
            packets.iter_mut().for_each(|(_, hops, ..)| *hops -= 1);
        }
        arrived.retain(|_, packets| !packets.is_empty());
        let mut external: BTreeSet<(u8, End)> = BTreeSet::new();
        let mut translated = 0;
        for port in 0..self.nics {
            // The last byte of the sender's Ethernet address is the number of the port.
            let sent = self.sent.iter().filter(|frame| frame[11] == port as u8);
            let sent = flows(sent);
            for &(protocol, source, _) in sent.keys() {
                assert_eq!(source.0.octets()[..2], [198, 19]);
                assert!(source.1 >= 1024, "{source:?}");
                assert!(external.insert((protocol, source)), "{source:?} twice");
            }
            translated += sent.len();
            // Who was translated into whom is not asked: a flow is known by where it goes and
            // by what it says.
            assert_eq!(sent.len(), arrived.len(), "flows, each under one name");
            assert!(by_content(sent) == by_content(arrived.clone()));
        }
        println!("{} packets in {translated} flows", self.sent.len());
    }
}

/// Whether a router may forward the frame: to one host, between addresses that cross routers.
fn may_be_forwarded(frame: &[u8]) -> bool {
    let crosses = |address: std::net::Ipv4Addr| {
        let network = address.octets()[0];
        network != 0 && network < 224 && !address.is_loopback() && !address.is_link_local()
    };
    let is_for_one_host = frame.first().is_some_and(|byte| byte & 1 == 0);
    is_for_one_host
        && match etherparse::SlicedPacket::from_ethernet(frame).ok().and_then(|sliced| sliced.net) {
            Some(etherparse::NetSlice::Ipv4(ip)) => {
                crosses(ip.header().source_addr()) && crosses(ip.header().destination_addr())
            }
            _ => true,
        }
}

/// Flows without their sources, in an order that does not depend on them.
fn by_content(flows: std::collections::BTreeMap<decoder::Flow, Vec<Content>>) -> Vec<(u8, End, Vec<Content>)> {
    let mut all: Vec<_> = flows.into_iter().map(|((protocol, _, to), packets)| (protocol, to, packets)).collect();
    all.sort();
    all
}

/// A rate at which nothing is dropped for want of room.
const UNHURRIED: [&str; 2] = ["offered_gbps=10", "table_entries=100000"];

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/captures/sample.pcap")
}

/// A capture that is not the project's own, if it is there; otherwise says what is skipped.
fn foreign(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/pcap");
    let path = root.join(name);
    if !path.is_file() {
        skip::skipped(&format!("no ../shared/data/pcap/{name} beside the repository"));
        return None;
    }
    Some(path.canonicalize().unwrap())
}

#[test]
fn the_sample_is_translated_as_shipped() {
    let run = Run::of(&sample(), 2, &[]);
    run.assert_counts();
    run.assert_translated();
    assert_eq!((run.sent.len(), run.all_drops()), (480, 0));
    for frame in &run.sent {
        let packet = decode(frame).unwrap();
        assert!(packet.l3_right && packet.l4_right == Some(true));
    }
}

#[test]
fn real_traffic_is_translated() {
    let captures = [
        "mixed/snabb-sanitized4k.pcap",
        "mixed/pcapplusplus-example.pcap",
        "mixed/ndpi-gnutella.pcap",
        "mixed/ndpi-alexa-app.pcapng",
        "mixed/ndpi-netflix.pcap",
        "mixed/mercury-emix.pcap",
        "rates/nfstream-synscan.pcap",
        "encap/zeek-vlan-collisions.pcap",
        "encap/zeek-geneve.pcap",
        "encap/zeek-vxlan.pcap",
        "encap/zeek-Teredo.pcap",
    ];
    for capture in captures.into_iter().filter_map(foreign) {
        print!("{}: ", capture.file_name().unwrap().display());
        let run = Run::of(&capture, 1, &UNHURRIED);
        run.assert_counts();
        run.assert_translated();
    }
}

#[test]
fn untranslated_packets_are_counted_by_cause() {
    let cases = [
        ("mixed/ndpi-reddit.pcap", "not_ipv4"),
        ("encap/zeek-gre-within-gre.pcap", "protocol"),
        ("encap/zeek-6in4.pcap", "protocol"),
        ("encap/tcpdump-802.1ad_QinQ.pcap", "not_ipv4"),
    ];
    for (name, cause) in cases {
        let Some(capture) = foreign(name) else {
            continue;
        };
        let run = Run::of(&capture, 1, &UNHURRIED);
        run.assert_counts();
        assert_eq!(run.drops(cause), run.taken().count() as u64, "{name}");
        let oversized = (run.arrived.len() - run.taken().count()) as u64;
        assert_eq!(run.drops("oversized_frame"), oversized, "{name}");
        // Nothing was sent: the rates are still those of the time that arrivals took.
        let offered = run.metrics()["offered_gbps"].as_f64().unwrap();
        assert!(offered < 100.0, "{name}: {offered} Gbit/s");
    }
}

#[test]
fn a_flood_is_dropped_by_cause_and_the_rest_is_right() {
    let Some(capture) = foreign("rates/nfstream-synscan.pcap") else {
        return;
    };
    let settings = ["offered_gbps=200", "cores=2", "rx_entries=8"];
    let run = Run::of(&capture, 2, &settings);
    run.assert_counts();
    assert!(run.drops("no_descriptor") > 0);
    for frame in &run.sent {
        let packet = decode(frame).unwrap();
        assert!(packet.l3_right && packet.l4_right == Some(true));
    }
}

#[test]
fn co_runners_end_with_the_capture() {
    let run = Run::of(&sample(), 2, &["cores=14", "stream_cores=1", "graph_cores=1"]);
    run.assert_counts();
    run.assert_translated();
}

/// Checksum states of tshark: frames whose outermost IPv4, TCP or UDP checksum is bad, and good.
fn tshark(capture: &Path) -> (u64, u64) {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(capture).args(["-T", "fields"]);
    for protocol in ["ip", "tcp", "udp"] {
        command.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
        command.args(["-e", &format!("{protocol}.checksum.status")]);
    }
    let output = command.args(["-E", "occurrence=f"]).output().unwrap();
    assert!(output.status.success(), "tshark reads {capture:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    // 0: bad, 1: good, 2: not verified, 3: not there.
    let count = |state: &str| text.split_whitespace().filter(|s| *s == state).count() as u64;
    (count("0"), count("1"))
}

#[test]
fn tshark_finds_every_checksum_right() {
    if Command::new("tshark").arg("--version").output().is_err() {
        skip::skipped("tshark is not installed");
        return;
    }
    let run = Run::of(&sample(), 2, &[]);
    let output = run.folder.path().join("nat.pcap");
    assert_eq!(tshark(&output), (0, 2 * 480), "IPv4 and UDP of each frame");
    for name in [
        "mixed/snabb-sanitized4k.pcap",
        "mixed/pcapplusplus-example.pcap",
        "mixed/ndpi-netflix.pcap",
        "mixed/ndpi-gnutella.pcap",
    ] {
        let Some(capture) = foreign(name) else {
            continue;
        };
        let run = Run::of(&capture, 1, &UNHURRIED);
        let before = tshark(&capture);
        let after = tshark(&run.folder.path().join("nat.pcap"));
        println!("{name}: (bad, good) {before:?} before, {after:?} after");
        assert!(after.0 <= before.0, "{name}");
        assert!(after.1 > 0);
    }
}
