//! Each malformed frame has its cause, and everything else its summary.

mod common;

use std::collections::BTreeMap;

use common::{hex, shared_data};
use nicforge_wire::capture::CaptureReader;
use nicforge_wire::{Fragment, FrameError, FrameSummary, IpAddresses, parse_frame, parse_headers};

const MACS: &str = "020000000002020000000001";
const UDP4: &str = "4500001c00004000401100000a0000010a00000204d2162e00080000";
const TCP4: &str = "4500002800004000400600000a0000010a00000204d2162e00000000000000005002ffff00000000";
const V6: &str = "20010db800000000000000000000000120010db8000000000000000000000002";

fn frame(rest: &str) -> Vec<u8> {
    hex(&format!("{MACS}{rest}"))
}

#[test]
fn a_summary_is_one_cache_line() {
    assert!(size_of::<FrameSummary>() <= 64);
}

/// What follows the addresses of a malformed frame, and its cause.
fn malformed_frames() -> Vec<(String, &'static str)> {
    let v6 = |payload_len: &str, next: &str, rest: &str| format!("86dd60000000{payload_len}{next}40{V6}{rest}");
    let options = |count: usize| format!("{}1100010400000000", "3c00010400000000".repeat(count - 1));
    vec![
        (String::new(), "ethernet_truncated"),
        ("8100000a".into(), "vlan_truncated"),
        ("08004500001c".into(), "ip_truncated"),
        (format!("0800{}", UDP4.replacen("45", "46", 1)), "l4_truncated"),
        (format!("0800{}", UDP4.replacen("45", "65", 1)), "ip_bad_version"),
        (format!("0800{}", UDP4.replacen("45", "44", 1)), "ip_bad_header_length"),
        (format!("0800{}", UDP4.replacen("001c", "0013", 1)), "ip_bad_total_length"),
        (format!("0800{}", UDP4.replacen("001c", "001d", 1)), "ip_length_beyond_frame"),
        (format!("0800{}", UDP4.replacen("001c", "001b", 1)), "l4_truncated"),
        (format!("0800{}", UDP4.replace("00080000", "00070000")), "udp_bad_length"),
        (format!("0800{}", UDP4.replace("00080000", "00090000")), "udp_bad_length"),
        (format!("0800{}", TCP4.replace("5002", "4002")), "tcp_bad_header_length"),
        (format!("0800{}", TCP4.replace("5002", "6002")), "tcp_bad_header_length"),
        (v6("0000", "11", "04d2162e00080000"), "ipv6_jumbogram"),
        (v6("0008", "3c", "1101010400000000"), "ipv6_extension_truncated"),
        (v6("0050", "3c", &(options(9) + "04d2162e00080000")), "ipv6_too_many_extensions"),
    ]
}

#[test]
fn each_malformed_frame_has_its_cause() {
    let cases = malformed_frames();
    for (rest, cause) in &cases {
        let error = parse_frame(&frame(rest)).expect_err(rest);
        assert_eq!(error.name(), *cause, "{rest}");
    }
    for (number, error) in FrameError::ALL.into_iter().enumerate() {
        assert_eq!(error as usize, number);
        assert!(cases.iter().any(|(_, cause)| *cause == error.name()), "{error:?}");
    }
}

#[test]
fn offsets_and_ports_are_found_behind_tags_and_before_padding() {
    let summary = parse_frame(&frame(&format!("88a8000181000002 0800{UDP4}0000").replace(' ', "")));
    let summary = summary.unwrap();
    assert_eq!((summary.vlan_tags, summary.l3_offset, summary.l4_offset), (2, 22, 42));
    assert_eq!((summary.source_port, summary.destination_port), (1234, 5678));
    assert_eq!((summary.l3_end, summary.frame_len, summary.l4_len), (50, 52, 8));
    assert!(summary.has_ports() && !summary.is_fragment());
}

#[test]
fn what_is_not_ip_is_no_error() {
    for rest in ["0806", "0026ffff", "810000018100000281000003"] {
        let summary = parse_frame(&frame(rest)).unwrap();
        assert_eq!(summary.addresses, IpAddresses::None);
    }
}

#[test]
fn fragments_have_ports_in_the_first_only() {
    let first = parse_frame(&frame(&format!("0800{}", UDP4.replacen("4000", "2000", 1)))).unwrap();
    assert_eq!(first.fragment, Fragment::First);
    assert!(first.has_ports());
    let later = parse_frame(&frame(&format!("0800{}", UDP4.replacen("4000", "0001", 1)))).unwrap();
    assert_eq!(later.fragment, Fragment::Later);
    assert!(!later.has_ports());
}

#[test]
fn headers_suffice_when_the_payload_lies_elsewhere() {
    let bytes = frame(&format!("0800{}", UDP4.replacen("001c", "05dc", 1)));
    assert_eq!(parse_frame(&bytes), Err(FrameError::IpLengthBeyondFrame));
    let summary = parse_headers(&bytes, 1514).unwrap();
    assert_eq!((summary.l3_end, summary.frame_len), (1514, 1514));
}

#[test]
fn malformed_captures_are_counted_by_cause() {
    let captures = [
        ("zeek-ip4-trunc.pcap", "ip_truncated", 1),
        ("zeek-ip6-trunc.pcap", "ip_truncated", 1),
        ("zeek-trunc-hdr.pcap", "ethernet_truncated", 1),
        ("tcpdump-ipv6_jumbogram_1.pcap", "ipv6_jumbogram", 1),
        ("tcpdump-ipv6-bad-version.pcap", "ip_bad_version", 2),
    ];
    for (file, cause, count) in captures {
        let Some(path) = shared_data(&format!("pcap/bad/{file}")) else {
            continue;
        };
        let mut reader = CaptureReader::open(&path).unwrap();
        let mut causes = BTreeMap::new();
        while let Some(record) = reader.next_record().unwrap() {
            if let Err(error) = parse_frame(record.bytes) {
                *causes.entry(error.name()).or_insert(0) += 1;
            }
        }
        assert_eq!(causes, BTreeMap::from([(cause, count)]), "{file}");
    }
}
