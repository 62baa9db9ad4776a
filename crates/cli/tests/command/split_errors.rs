//! ICMP errors through the NAT on interfaces that split frames: what is quoted lies behind the split, partly or
//! wholly, in host memory or on the NIC.

use crate::common::{folder, nicforge, stderr};
use etherparse::icmpv4::DestUnreachableHeader;
use etherparse::{Icmpv4Type, PacketBuilder};
use nicforge_units::Time;
use nicforge_wire::capture::{CaptureFormat, CaptureReader, CaptureWriter};

const ETHERNET: ([u8; 6], [u8; 6]) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
const CLIENT: [u8; 4] = [10, 0, 0, 1];

fn capture(frames: &[&[u8]]) -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new(), CaptureFormat::Pcap).unwrap();
    for (second, frame) in (0..).zip(frames) {
        writer.write(Time::from_ms(second), frame).unwrap();
    }
    writer.finish().unwrap()
}

/// What the NAT sends of `frames`, on these settings.
fn sent(frames: &[&[u8]], settings: &[&str]) -> Vec<Vec<u8>> {
    let folder = folder();
    std::fs::write(folder.path().join("in.pcap"), capture(frames)).unwrap();
    let run = ["run", "scenarios/nat-capture.toml", "--quiet"];
    let files = ["--out", "out", "--pcap", "in.pcap", "--pcap-out", "out.pcap"];
    let one = ["nics=1", "cores=1", "table_entries=1000", "replay_timing=recorded"];
    let sets = one.iter().chain(settings).flat_map(|set| ["--set", set]);
    let arguments: Vec<&str> = run.into_iter().chain(files).chain(sets).collect();
    let output = nicforge(&folder, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let mut reader = CaptureReader::open(&folder.path().join("out.pcap")).unwrap();
    let mut sent = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        sent.push(record.bytes.to_vec());
    }
    sent
}

#[test]
fn an_error_is_the_same_whether_or_not_its_quote_is_split_off() {
    let mut question = Vec::new();
    PacketBuilder::ethernet2(ETHERNET.0, ETHERNET.1)
        .ipv4(CLIENT, [192, 0, 2, 1], 9)
        .tcp(1234, 53, 1, 1000)
        .write(&mut question, &[7; 40])
        .unwrap();
    let translated = sent(&[&question], &[]).remove(0);
    let outer = translated[26..30].try_into().unwrap();
    let mut error = Vec::new();
    PacketBuilder::ethernet2(ETHERNET.0, ETHERNET.1)
        .ipv4([203, 0, 113, 7], outer, 64)
        .icmpv4(Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::Host))
        .write(&mut error, &translated[14..])
        .unwrap();
    let frames = [&question[..], &error];
    let whole = sent(&frames, &["interface=priv_ring"]);
    // To the client, with its own packet quoted: addresses of the IP headers without and within.
    assert_eq!((&whole[1][30..34], &whole[1][54..58]), (&CLIENT[..], &CLIENT[..]));
    for split in [
        &["interface=split"][..],
        &["interface=split", "split_at=64"],
        &["interface=split", "split_at=79"],
        &["interface=nm_nfv"],
        &["interface=nm_nfv", "split_at=71"],
    ] {
        assert_eq!(sent(&frames, split), whole, "{split:?}");
    }
}
