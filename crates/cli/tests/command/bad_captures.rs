//! Broken captures: a clear error with code 2 that says how far it was read, or a run whose
//! drops are counted by cause. Never a panic, and nothing written in vain.

use std::path::{Path, PathBuf};

use crate::common::{files, folder, nicforge, stderr};
use crate::skip;

/// A pcap file header: little-endian, microseconds, 64 KiB, Ethernet.
const PCAP_HEADER: [u8; 24] = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0];

/// A record that says it holds `captured` of `original` bytes.
fn record(captured: u32, original: u32, bytes: &[u8]) -> Vec<u8> {
    let lengths = [captured.to_le_bytes(), original.to_le_bytes()].concat();
    [&[0; 8][..], &lengths, bytes].concat()
}

/// What a run of a broken capture ends with.
enum End {
    /// Code 2 and this error.
    Refused(String),
    /// A report whose arrivals and drops add up; these drops.
    Ran(serde_json::Map<String, serde_json::Value>),
}

/// Runs `nat-capture` on `capture`, and asserts what holds for every one.
fn run(capture: &Path) -> End {
    let folder = folder();
    let before = files(folder.path());
    let capture = capture.to_str().unwrap();
    let arguments = [
        "run",
        "scenarios/nat-capture.toml",
        "--quiet",
        "--out",
        "out",
        "--pcap-out",
        "nat.pcap",
        "--pcap",
        capture,
        "--set",
        "table_entries=10000",
    ];
    let output = nicforge(&folder, &arguments);
    let error = stderr(&output);
    match output.status.code() {
        Some(0) => {
            let json = std::fs::read_to_string(folder.path().join("out/report.json")).unwrap();
            let report: serde_json::Value = serde_json::from_str(&json).unwrap();
            let drops = &report["points"][0]["metrics"]["drops"];
            End::Ran(drops.as_object().unwrap().clone())
        }
        code => {
            assert_eq!(code, Some(2), "{capture}: {error}");
            assert!(error.starts_with("error: "), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
            assert_eq!(files(folder.path()), before, "nothing is written");
            End::Refused(error)
        }
    }
}

fn refused(capture: &Path) -> String {
    match run(capture) {
        End::Refused(error) => error,
        End::Ran(drops) => panic!("{} ran: {drops:?}", capture.display()),
    }
}

/// Writes `bytes` to a capture, and gives the error that a run ends with.
fn refused_bytes(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("broken.pcap");
    std::fs::write(&file, bytes).unwrap();
    let error = refused(&file);
    assert!(error.contains("broken.pcap"), "names the file: {error}");
    error
}

#[test]
fn a_capture_that_is_cut_in_its_first_record_says_how_far_it_was_read() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/captures/sample.pcap");
    let bytes = std::fs::read(sample).unwrap();
    let error = refused_bytes(&bytes[..24 + 16 + 7]);
    assert!(error.contains("the file ends within a record"), "{error}");
    assert!(error.contains("read 0 records, stopped at byte 24"), "{error}");
}

#[test]
fn an_over_long_record_says_how_far_it_was_read() {
    let good = record(60, 60, &[0; 60]);
    let long = record(0x7fff_ffff, 0x7fff_ffff, &[0; 100]);
    let error = refused_bytes(&[&PCAP_HEADER[..], &good, &long].concat());
    assert!(error.contains("a record or block claims more than"), "{error}");
    assert!(error.contains("read 1 records, stopped at byte 100"), "{error}");
}

/// A capture of two frames, `seconds` apart.
fn capture_of(seconds: u32) -> Vec<u8> {
    let frame = record(60, 60, &[0; 60]);
    let mut later = frame.clone();
    later[..4].copy_from_slice(&seconds.to_le_bytes());
    [&PCAP_HEADER[..], &frame, &later].concat()
}

#[test]
fn a_capture_that_lasts_longer_than_a_run_can_is_refused() {
    let folder = folder();
    let said = |command: &str, seconds: u32, set: &[&str]| {
        std::fs::write(folder.path().join("long.pcap"), capture_of(seconds)).unwrap();
        let scenario = "scenarios/nat-capture.toml";
        let mut arguments = vec![command, scenario, "--pcap", "long.pcap"];
        for set in set.iter().chain(&["cores=2", "nics=1", "table_entries=10000"]) {
            arguments.extend(["--set", set]);
        }
        let output = nicforge(&folder, &arguments);
        (output.status.code(), stderr(&output))
    };
    let recorded = "replay_timing=recorded";
    let wrong = "long.pcap: to replay it as it is asked for takes";
    for command in ["check", "run"] {
        let (code, error) = said(command, 17_901, &[recorded]);
        assert_eq!(code, Some(2), "{error}");
        let right = "set replay_timing to \"scaled\", or cut it";
        let expected = format!("{wrong} 17901 s, and a run lasts 17900 s at most: {right}");
        assert!(error.contains(&expected), "{error}");
    }
    // The second loop begins 200 s after the first.
    let (code, error) = said("check", 100, &[recorded, "replay_loops=91"]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("set replay_loops to at most 90"), "{error}");
    assert_eq!(said("check", 100, &[recorded, "replay_loops=90"]).0, Some(0));
    // 120 bytes at 1 Mbit/s.
    let (code, error) = said("check", 1, &["offered_gbps=0.001", "replay_loops=1000000"]);
    assert_eq!(code, Some(0), "{error}");
    let slow = ["offered_gbps=0.001", "replay_loops=1000000", "measure=no_drop_rate"];
    let (code, error) = said("check", 1, &slow);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("set replay_loops to at most"), "{error}");
    // The longest that there may be, and what comes after it.
    let (code, error) = said("run", 17_900, &[recorded, "timeline_ms=60000"]);
    assert_eq!(code, Some(0), "{error}");
}

#[test]
fn records_that_are_left_out_or_mended_are_counted() {
    let good = record(60, 60, &[0; 60]);
    let jumbo = record(9_300, 9_300, &[0; 9_300]);
    let zero = record(0, 0, &[]);
    let short = record(60, 100, &[0; 60]);
    let folder = folder();
    let bytes = [&PCAP_HEADER[..], &good, &jumbo, &zero, &short].concat();
    std::fs::write(folder.path().join("odd.pcap"), bytes).unwrap();
    let scenario = "scenarios/nat-capture.toml";
    let arguments = ["check", scenario, "--pcap", "odd.pcap"];
    let expected = "note: odd.pcap: records left out: 1 longer than 9216 bytes, 1 without bytes; \
                    mended: 1 captured short, filled up with zeros\n";
    assert_eq!(stderr(&nicforge(&folder, &arguments)), expected);
    let capture = ["capture", "--out", "copy.pcap"];
    let replay = ["--set", "arrival=replay", "--set", "pcap=odd.pcap"];
    let said = stderr(&nicforge(&folder, &[&capture[..], &replay].concat()));
    assert_eq!(said, expected);
}

#[test]
fn a_capture_of_which_nothing_is_left_says_why() {
    let jumbo = record(9_300, 9_300, &[0; 9_300]);
    let zero = record(0, 0, &[]);
    let error = refused_bytes(&[&PCAP_HEADER[..], &jumbo, &zero, &zero].concat());
    let says = "no frame that could be replayed: it was read to its end, and left out are all 3 records: 1 longer than \
                9216 bytes, 2 without bytes";
    assert!(error.contains(says), "{error}");
    let error = refused_bytes(&PCAP_HEADER);
    assert!(error.contains("read to its end and has no record"), "{error}");
}

#[test]
fn what_is_no_capture_is_refused() {
    let error = refused_bytes(b"");
    assert!(error.contains("not a pcap or pcapng file"), "{error}");
    let error = refused_bytes(&[0; 24]);
    assert!(error.contains("not a pcap or pcapng file"), "{error}");
    let mut wifi = PCAP_HEADER;
    wifi[20] = 105;
    let error = refused_bytes(&[&wifi[..], &record(60, 60, &[0; 60])].concat());
    assert!(error.contains("link type 105 is not supported"), "{error}");
}

#[test]
fn a_capture_without_packets_is_refused() {
    let error = refused_bytes(&PCAP_HEADER);
    assert!(error.contains("no frame"), "{error}");
    let zero = record(0, 0, &[]);
    let error = refused_bytes(&[&PCAP_HEADER[..], &zero].concat());
    assert!(error.contains("no frame"), "{error}");
}

/// Captures of `folder` that are not the project's own, if they are there.
fn foreign(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/pcap");
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else {
        skip::skipped(&format!("no ../shared/data/pcap/{folder} beside the repository"));
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path().canonicalize().unwrap());
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.sort();
    paths
}

#[test]
fn every_malformed_capture_ends_well() {
    for folder in ["bad", "chksum"] {
        for capture in foreign(folder) {
            let name = capture.file_name().unwrap().display().to_string();
            match run(&capture) {
                End::Refused(error) => println!("{name}: {}", error.trim()),
                End::Ran(drops) => println!("{name}: ran, drops {drops:?}"),
            }
        }
    }
}

#[test]
fn what_is_malformed_is_refused_or_dropped_under_its_cause() {
    let cases = [
        ("ndpi-fuzz-2021-10-13.pcap", Err("stopped at byte")),
        ("libpcap-pcap-invalid-version-1.pcap", Err("version")),
        ("libpcap-pcapng-invalid-vers-1.pcapng", Err("version")),
        ("tcpdump-empty.pcap", Err("no frame")),
        ("zeek-ip6-trunc.pcap", Ok("ipv6_extension_truncated")),
        ("zeek-ipv4-truncated-broken-header.pcap", Ok("ip_truncated")),
        ("tcpdump-ipv6-bad-version.pcap", Ok("ip_bad_version")),
        ("ndpi-fuzz-2006-06-26-2594.pcap", Ok("udp_bad_length")),
        ("nfstream-ip_fragmented_garbage.pcap", Ok("fragment_unknown")),
    ];
    let captures = foreign("bad");
    for (name, expected) in cases {
        let Some(capture) = captures.iter().find(|path| path.ends_with(name)) else {
            continue;
        };
        match (run(capture), expected) {
            (End::Refused(error), Err(part)) => assert!(error.contains(part), "{name}: {error}"),
            (End::Ran(drops), Ok(cause)) => assert!(drops.contains_key(cause), "{name}: {drops:?}"),
            (End::Refused(error), Ok(_)) => panic!("{name}: {error}"),
            (End::Ran(drops), Err(_)) => panic!("{name} ran: {drops:?}"),
        }
    }
}
