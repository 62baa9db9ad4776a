//! Captures taken on a host that leaves checksums to its NIC: what they lose is said, before and after.

use crate::common::{folder, nicforge, stderr, stdout};
use etherparse::PacketBuilder;
use nicforge_units::Time;
use nicforge_wire::capture::{CaptureFormat, CaptureWriter};

/// `count` frames, every second one without an IPv4 header checksum.
fn capture(count: u16) -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new(), CaptureFormat::Pcap).unwrap();
    for number in 0..count {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4([10, 0, 0, 1], [192, 0, 2, 1], 64)
            .udp(1_000 + number, 53)
            .write(&mut frame, &[7; 30])
            .unwrap();
        if number % 2 == 0 {
            frame[24..26].fill(0);
        }
        writer.write(Time::ZERO, &frame).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn checksums_that_a_capture_lacks_are_told_before_and_after() {
    let folder = folder();
    std::fs::write(folder.path().join("sender.pcap"), capture(20)).unwrap();
    let command = |command: &[&str]| {
        let scenario = ["scenarios/nat-capture.toml", "--pcap", "sender.pcap"];
        let settings = ["--set", "table_entries=1000", "--set", "nics=1"];
        let output = nicforge(&folder, &[command, &scenario, &settings].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        (stdout(&output), stderr(&output))
    };
    let says = |text: &str, parts: &[&str]| {
        for part in parts {
            assert!(text.contains(part), "`{part}` is not in: {text}");
        }
    };
    let remedy = "tcprewrite --fixcsum";
    says(&command(&["check"]).1, &["note: sender.pcap: 10 of 20 frames", "nat", "ip_checksum", remedy]);
    let (table, _) = command(&["run", "--out", "out"]);
    says(&table, &["10 replayed frames", "ip_checksum", remedy]);
    let report = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(report.contains("10 replayed frames were dropped"));
    // Whoever looks at no IP header sends them on.
    let (_, notes) = command(&["check", "--set", "app=counter"]);
    assert!(!notes.contains("checksum"), "{notes}");
}
