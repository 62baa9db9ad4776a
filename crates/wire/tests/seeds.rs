//! The fuzz targets' seeds, through the same functions as the fuzz targets.

mod common;

use std::path::PathBuf;

use common::exercise;
use nicforge_units::Time;
use nicforge_wire::capture::{CaptureFormat, CaptureWriter};
use nicforge_wire::headers::{ARP_LEN, ArpOperation, ArpView};
use nicforge_wire::{checksum, parse_frame};

fn seeds(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target)
}

fn run(target: &str, exercise: fn(&[u8])) {
    let mut files = 0;
    for entry in std::fs::read_dir(seeds(target)).unwrap() {
        exercise(&std::fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files >= 5, "seeds of {target} are missing");
}

#[test]
fn header_seeds() {
    run("headers", exercise::headers);
}

#[test]
fn capture_seeds() {
    run("captures", exercise::captures);
}

#[test]
#[ignore = "writes the seeds; run it when they shall change"]
fn rewrite_the_seeds() {
    let frames = frames();
    for (name, frame) in &frames {
        std::fs::write(seeds("headers").join(name), frame).unwrap();
    }
    for (name, format) in [("nanoseconds.pcap", CaptureFormat::Pcap), ("nanoseconds.pcapng", CaptureFormat::PcapNg)] {
        let mut writer = CaptureWriter::new(Vec::new(), format).unwrap();
        for (index, (_, frame)) in frames.iter().enumerate() {
            writer.write(Time::from_us(index as u64), frame).unwrap();
        }
        let file = writer.finish().unwrap();
        std::fs::write(seeds("captures").join(name), &file).unwrap();
        let cut = &file[..file.len() - 7];
        std::fs::write(seeds("captures").join(format!("cut-{name}")), cut).unwrap();
    }
    let raw = pcap(0xa1b2_c3d4, 101, &frames[0].1[14..]);
    std::fs::write(seeds("captures").join("big-endian-raw.pcap"), raw).unwrap();
    let odd = pcap(0xa1b2_3c4d, 147, &[1, 2, 3]);
    std::fs::write(seeds("captures").join("unknown-link.pcap"), odd).unwrap();
}

/// A big-endian capture of one packet, by hand.
fn pcap(magic: u32, link_type: u32, packet: &[u8]) -> Vec<u8> {
    let length = packet.len() as u32;
    let words = [magic, 0x0002_0004, 0, 0, 65_535, link_type, 1, 2, length, length];
    let mut file: Vec<u8> = words.into_iter().flat_map(u32::to_be_bytes).collect();
    file.extend_from_slice(packet);
    file
}

/// One frame of each kind, with right checksums.
fn frames() -> Vec<(&'static str, Vec<u8>)> {
    const V4: &str = "450000280001400040060000c0a80102c0a80103";
    const V6: &str = "600000000000064020010db8000000000000000000000001\
                      20010db8000000000000000000000002";
    let tcp = "040004d2000000010000000070020fff00000000\
               020405b40103030701010402";
    let udp = "040004d2000c000061626364";
    let echo = "0800000000010002";
    let vlans = "88a800648100e0c8";
    let mut frames = vec![
        ("udp4", ip4(V4, 17, "", udp)),
        ("tcp4", ip4(V4, 6, "", tcp)),
        ("icmp4-vlans", ip4(V4, 1, vlans, echo)),
        ("udp6", ip6(V6, 17, "", udp)),
        ("tcp6-extensions", ip6(V6, 0, "2b00010400000000060000000000000000", tcp)),
        ("fragment6", ip6(V6, 44, "1100000100000007", udp)),
        ("icmp6", ip6(V6, 58, "", "8000000000010002")),
    ];
    let mut fragment = frames[0].1.clone();
    fragment[20] = 0x20;
    frames.push(("fragment4", fragment));
    let mut arp = vec![0u8; 14 + ARP_LEN];
    arp[12..14].copy_from_slice(&[8, 6]);
    ArpView::init(&mut arp[14..], ArpOperation::Request).unwrap();
    frames.push(("arp", arp));
    for (_, frame) in &mut frames {
        let summary = parse_frame(frame).unwrap();
        checksum::fill(frame, &summary, true, true);
    }
    frames
}

fn ip4(header: &str, protocol: u8, tags: &str, l4: &str) -> Vec<u8> {
    let mut frame = common::hex(&format!("020000000002020000000001{tags}0800{header}{l4}"));
    let l3 = 14 + tags.len() / 2;
    let total = (frame.len() - l3) as u16;
    frame[l3 + 2..l3 + 4].copy_from_slice(&total.to_be_bytes());
    frame[l3 + 9] = protocol;
    frame
}

fn ip6(header: &str, next: u8, extensions: &str, l4: &str) -> Vec<u8> {
    // Extension headers come in whole units of 8 bytes.
    let extensions = &extensions[..extensions.len() / 16 * 16];
    let mut frame = common::hex(&format!("02000000000202000000000186dd{header}{extensions}{l4}"));
    let payload = (frame.len() - 54) as u16;
    frame[18..20].copy_from_slice(&payload.to_be_bytes());
    frame[20] = next;
    frame
}
