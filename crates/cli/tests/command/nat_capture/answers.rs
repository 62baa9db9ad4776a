//! NAT on several cores, both directions: answers to a translated address reach the core that
//! translated the request, although RSS would send most of them elsewhere.

use std::path::Path;

use etherparse::PacketBuilder;
use pcap_file::pcap::{PcapPacket, PcapWriter};

use crate::common::{folder, nicforge, stderr};
use crate::decoder::{End, decode, frames};

const REQUESTS: u16 = 200;
const SERVER: End = (std::net::Ipv4Addr::new(203, 0, 113, 7), 53);

fn datagram(from: End, to: End, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4(from.0.octets(), to.0.octets(), 64)
        .udp(from.1, to.1)
        .write(&mut frame, payload)
        .unwrap();
    frame
}

fn write(path: &Path, frames: &[Vec<u8>]) {
    let mut writer = PcapWriter::new(std::fs::File::create(path).unwrap()).unwrap();
    for (number, frame) in (0..).zip(frames) {
        let at = std::time::Duration::from_micros(number);
        let packet = PcapPacket::new(at, frame.len() as u32, frame);
        writer.write_packet(&packet).unwrap();
    }
}

/// Sends `arrived` through a NAT on `cores` cores; what came out, which must be everything.
fn translate(arrived: &[Vec<u8>], cores: u32) -> Vec<Vec<u8>> {
    let folder = folder();
    write(&folder.path().join("in.pcap"), arrived);
    let cores = format!("cores={cores}");
    let mut arguments = vec!["run", "scenarios/nat-capture.toml", "--quiet", "--out", "o"];
    arguments.extend(["--pcap", "in.pcap", "--pcap-out", "out.pcap"]);
    for set in [&cores, "nics=1", "offered_gbps=1", "table_entries=10000"] {
        arguments.extend(["--set", set]);
    }
    let output = nicforge(&folder, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let json = std::fs::read_to_string(folder.path().join("o/report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    let drops = &report["points"][0]["metrics"]["drops"];
    assert_eq!(*drops, serde_json::json!({}), "{cores}");
    frames(&folder.path().join("out.pcap"))
}

#[test]
fn answers_find_the_core_that_translated_the_request() {
    let client = |number: u16| (std::net::Ipv4Addr::new(10, 0, 0, 1), 5000 + number);
    let requests = (0..REQUESTS).map(|n| datagram(client(n), SERVER, &n.to_be_bytes()));
    let requests: Vec<Vec<u8>> = requests.collect();
    for cores in [1, 8, 16] {
        let translated = translate(&requests, cores);
        assert_eq!(translated.len(), requests.len());
        let answers = translated.iter().map(|frame| {
            let seen = decode(frame).unwrap();
            assert_eq!(seen.destination, SERVER);
            // The request's own payload comes back.
            datagram(SERVER, seen.source, &frame[frame.len() - 2..])
        });
        let both: Vec<Vec<u8>> = requests.iter().cloned().chain(answers).collect();
        let out = translate(&both, cores);
        let mut answered: Vec<u16> = Vec::new();
        for frame in out.iter().filter(|frame| decode(frame).unwrap().source == SERVER) {
            let seen = decode(frame).unwrap();
            assert_eq!((seen.l3_right, seen.l4_right), (true, Some(true)));
            let number = u16::from_be_bytes([frame[frame.len() - 2], frame[frame.len() - 1]]);
            assert_eq!(seen.destination, client(number));
            answered.push(number);
        }
        answered.sort_unstable();
        assert!(answered.into_iter().eq(0..REQUESTS), "{cores} cores");
    }
}
