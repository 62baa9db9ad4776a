//! Every shared capture: how many records it has, and how the broken ones are refused.

mod common;

use std::io::Write;

use common::shared_data;
use nicforge_units::Time;
use nicforge_wire::capture::{CaptureFormat, CaptureReader, CaptureWriter};
use nicforge_wire::rss::{IndirectionTable, Toeplitz};
use nicforge_wire::{checksum, parse_frame};

/// Reads all; gives the number of frames yielded, the reader, and the error that ended it.
fn read_all(path: &str) -> Option<Result<(u64, CaptureReader<'static>), String>> {
    let path = shared_data(path)?;
    let mut reader = match CaptureReader::open(&path) {
        Ok(reader) => reader,
        Err(error) => return Some(Err(error.to_string())),
    };
    let mut frames = 0;
    let mut last = Time::ZERO;
    loop {
        match reader.next_record() {
            Ok(None) => return Some(Ok((frames, reader))),
            Ok(Some(record)) => {
                assert!(record.time >= last && record.original_len as usize >= record.bytes.len());
                last = record.time;
                frames += 1;
                if let Ok(summary) = parse_frame(record.bytes) {
                    checksum::verify(record.bytes, &summary);
                }
            }
            Err(error) => return Some(Err(format!("{frames} frames, then {error}"))),
        }
    }
}

#[test]
fn good_captures_have_the_listed_number_of_packets() {
    let listed = [
        ("mixed/snabb-sanitized4k.pcap", 4096),
        ("mixed/pcapplusplus-example.pcap", 4631),
        ("mixed/mercury-emix.pcap", 7133),
        ("mixed/ndpi-gnutella.pcap", 3905),
        ("mixed/ndpi-alexa-app.pcapng", 3103),
        ("mixed/ndpi-netflix.pcap", 1793),
        ("mixed/ndpi-reddit.pcap", 1942),
        ("rates/zeek-echo-connections.pcap", 82582),
        ("rates/nfstream-synscan.pcap", 2011),
        ("rates/wiki-c05-http-reply-first8500.pcap", 8500),
        ("bulk/wiki-iscsi-cdrom.pcap", 2364),
        ("bulk/zeek-http-206_example_b.pcap", 1556),
        ("bulk/zeek-redis-large.pcap", 58),
        ("bulk/ndpi-memcached.cap", 10),
        ("bulk/tcpdump-bigtcp-ipv6.pcap", 1),
        ("bulk/zeek-quic-firefox.pcap", 608),
        ("tls/mercury-test_decrypt.pcap", 800),
        ("tls/pcapfs-all_ciphers.pcap", 529),
        ("tls/illustrated-tls13.pcap", 22),
        ("encap/zeek-vlan-collisions.pcap", 42),
        ("encap/zeek-gre-within-gre.pcap", 628),
        ("encap/zeek-geneve.pcap", 6),
        ("encap/zeek-vxlan.pcap", 10),
        ("encap/zeek-Teredo.pcap", 78),
        ("encap/zeek-6in4.pcap", 1),
        ("encap/tcpdump-802.1ad_QinQ.pcap", 2),
    ];
    for (path, packets) in listed {
        if let Some(result) = read_all(&format!("pcap/{path}")) {
            let (frames, reader) = result.expect(path);
            assert_eq!(frames, packets, "{path}");
            assert_eq!(reader.counts().skipped(), 0, "{path}");
        }
    }
}

#[test]
fn times_that_go_back_are_counted() {
    for (path, times) in
        [("pcap/rates/zeek-echo-connections.pcap", 2), ("pcap/rates/wiki-c05-http-reply-first8500.pcap", 2)]
    {
        if let Some(result) = read_all(path) {
            assert_eq!(result.unwrap().1.counts().time_went_back, times, "{path}");
        }
    }
}

#[test]
fn malformed_captures_are_read_as_far_as_they_go() {
    let readable = [
        ("nfstream-ip_fragmented_garbage.pcap", 9077),
        ("ndpi-fuzz-2006-06-26-2594.pcap", 691),
        ("zeek-ip4-trunc.pcap", 1),
        ("zeek-ip6-trunc.pcap", 1),
        ("zeek-trunc-hdr.pcap", 1),
        ("zeek-ipv4-truncated-broken-header.pcap", 1),
        ("zeek-icmp-header-trunc.pcap", 2),
        ("tcpdump-ipv6-bad-version.pcap", 4),
        ("tcpdump-ipv6_jumbogram_1.pcap", 1),
        ("tcpdump-empty.pcap", 0),
        ("tcpdump-empty.pcapng", 0),
        ("tcpdump-timestamp_invalid_nano.pcap", 3),
        ("tcpdump-bad-ipv4-version-pgm-heapoverflow.pcap", 1),
    ];
    for (path, packets) in readable {
        if let Some(result) = read_all(&format!("pcap/bad/{path}")) {
            assert_eq!(result.expect(path).0, packets, "{path}");
        }
    }
    let refused = [
        ("ndpi-fuzz-2021-10-13.pcap", "stopped at byte 24"),
        ("libpcap-pcap-invalid-version-1.pcap", "version"),
        ("libpcap-pcapng-invalid-vers-1.pcapng", "version"),
        ("libpcap-linktype-reserved-field-not-zero.pcap", "link type"),
    ];
    for (path, says) in refused {
        if let Some(result) = read_all(&format!("pcap/bad/{path}")) {
            let error = result.err().unwrap_or_else(|| panic!("{path} was read"));
            assert!(error.contains(says), "{path}: {error}");
        }
    }
}

#[test]
fn checksum_captures_verify_as_named() {
    for ip in ["ip4", "ip6"] {
        for protocol in ["tcp", "udp", "icmp"] {
            for (name, right) in [("good", true), ("bad", false)] {
                let protocol = match (ip, protocol) {
                    ("ip6", "icmp") => "icmp6",
                    _ => protocol,
                };
                let path = format!("pcap/chksum/zeek-{ip}-{protocol}-{name}-chksum.pcap");
                let Some(path) = shared_data(&path) else {
                    continue;
                };
                let mut reader = CaptureReader::open(&path).unwrap();
                let mut frame = reader.next_record().unwrap().unwrap().bytes.to_vec();
                let summary = parse_frame(&frame).unwrap();
                assert_eq!(checksum::verify(&frame, &summary).l4, Some(right), "{path:?}");
                checksum::fill(&mut frame, &summary, true, true);
                let verdict = checksum::verify(&frame, &summary);
                assert_eq!(verdict.l4, Some(true));
                assert_eq!(verdict.l3, (ip == "ip4").then_some(true));
            }
        }
    }
    if let Some(path) = shared_data("pcap/chksum/zeek-ip4-bad-chksum.pcap") {
        let mut reader = CaptureReader::open(&path).unwrap();
        let frame = reader.next_record().unwrap().unwrap();
        let summary = parse_frame(frame.bytes).unwrap();
        assert_eq!(checksum::verify(frame.bytes, &summary).l3, Some(false));
    }
}

#[test]
fn rss_spreads_a_real_capture_as_computed_elsewhere() {
    let expected = [222, 200, 181, 283, 201, 98, 124, 197, 405, 414, 614, 140, 187, 119, 273, 438];
    let Some(path) = shared_data("pcap/mixed/snabb-sanitized4k.pcap") else {
        return;
    };
    let mut reader = CaptureReader::open(&path).unwrap();
    let (toeplitz, table) = (Toeplitz::default(), IndirectionTable::spread_over(16));
    let mut counts = [0; 16];
    while let Some(record) = reader.next_record().unwrap() {
        let hash = parse_frame(record.bytes).map_or(0, |summary| toeplitz.hash(&summary));
        counts[usize::from(table.queue(hash))] += 1;
    }
    assert_eq!(counts, expected);
}

#[test]
fn what_is_written_reads_back() {
    for format in [CaptureFormat::Pcap, CaptureFormat::PcapNg] {
        let mut writer = CaptureWriter::new(Vec::new(), format).unwrap();
        writer.write(Time::from_ns(5), &[1; 61]).unwrap();
        writer.write(Time::from_ns(1_000_000_007), &[2; 1500]).unwrap();
        let file = writer.finish().unwrap();
        let mut reader = CaptureReader::new(&file[..]).unwrap();
        assert_eq!(reader.next_record().unwrap().unwrap().bytes, [1; 61]);
        let record = reader.next_record().unwrap().unwrap();
        assert_eq!(record.time, Time::from_ns(1_000_000_002));
        assert_eq!(record.bytes, [2; 1500]);
        assert!(reader.next_record().unwrap().is_none());
    }
}

fn frames_of(reader: &mut CaptureReader<'_>) -> usize {
    std::iter::from_fn(|| reader.next_record().unwrap().map(|_| ())).count()
}

#[test]
fn what_is_whole_of_a_cut_file_is_read_and_the_rest_counted() {
    let mut writer = CaptureWriter::new(Vec::new(), CaptureFormat::Pcap).unwrap();
    writer.write(Time::ZERO, &[1; 60]).unwrap();
    writer.write(Time::ZERO, &[2; 60]).unwrap();
    let file = writer.finish().unwrap();
    for cut in [1, 59, 60, 61, 75] {
        let mut reader = CaptureReader::new(&file[..file.len() - cut]).unwrap();
        assert_eq!((frames_of(&mut reader), reader.counts().cut_off, reader.counts().skipped()), (1, 1, 1));
        assert!(reader.next_record().unwrap().is_none());
        assert_eq!(reader.counts().cut_off, 1);
    }
    // Between two records nothing is missing that anybody could know of; before the first all is.
    let mut reader = CaptureReader::new(&file[..file.len() - 76]).unwrap();
    assert_eq!((frames_of(&mut reader), reader.counts().cut_off), (1, 0));
    let mut reader = CaptureReader::new(&file[..30]).unwrap();
    let error = reader.next_record().unwrap_err();
    assert_eq!(error.to_string(), "the file ends within a record; read 0 records, stopped at byte 24");
    assert!(reader.next_record().unwrap().is_none());
}

#[test]
fn a_packed_file_reads_as_the_same_unpacked() {
    let mut writer = CaptureWriter::new(Vec::new(), CaptureFormat::PcapNg).unwrap();
    (0..100u8).for_each(|number| writer.write(Time::from_ns(number.into()), &[number; 99]).unwrap());
    let file = writer.finish().unwrap();
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(&file).unwrap();
    let packed = packer.finish().unwrap();
    let all = |bytes: &[u8]| {
        let mut reader = CaptureReader::new(bytes).unwrap();
        let mut frames = Vec::new();
        while let Some(record) = reader.next_record().unwrap() {
            frames.push((record.time, record.bytes.to_vec()));
        }
        (frames, reader.counts().cut_off)
    };
    assert!(all(&file) == all(&packed));
    assert_eq!(all(&packed).1, 0);
    // Without its end, even if only the check sum is missing.
    let (frames, cut_off) = all(&packed[..packed.len() - 1]);
    assert_eq!((frames.len(), cut_off), (100, 1));
    let (frames, cut_off) = all(&packed[..packed.len() / 2]);
    assert!((1..100).contains(&frames.len()) && cut_off == 1);
}

/// Inputs that users met, where they lie beside the project.
fn case(name: &str) -> Option<std::path::PathBuf> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases").join(name);
    let found = path.exists();
    if !found {
        eprintln!("skipped: {} is not there", path.display());
    }
    found.then_some(path)
}

#[test]
fn cases_that_users_met_are_read_as_far_as_they_go() {
    // Name, frames, cut off, of another link type.
    for (name, frames, cut_off, other) in [("cut-data.pcap", 3, 1, 0), ("ng-eth-80211.pcapng", 2, 0, 1)] {
        let Some(path) = case(name) else {
            return;
        };
        let mut reader = CaptureReader::open(&path).unwrap();
        let read = frames_of(&mut reader);
        let counts = reader.counts();
        assert_eq!((read, counts.cut_off, counts.other_link_type), (frames, cut_off, other), "{name}");
    }
}
