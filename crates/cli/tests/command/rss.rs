//! `nicforge rss` says hash and queue of frames.

use tempfile::TempDir;

use crate::common::{folder, nicforge, stderr, stdout};
use crate::judge;

/// UDP from 66.9.149.187:2794 to 161.142.100.80:1766, of Microsoft's verification suite (hash 0x51ccc178).
const FRAME: &str = "0200000000010200000000020800450000200000000040110000420995bba18e64500aea06e6000c0000000000000000";

#[test]
fn a_frame_of_digits_has_the_hash_of_the_verification_suite() {
    let said = nicforge(&folder(), &["rss", FRAME, "--queues", "4"]);
    assert_eq!(said.status.code(), Some(0), "{}", stderr(&said));
    let text = stdout(&said);
    let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row, ["1", "addresses,", "ports", "0x51ccc178", "120", "0"], "{text}");
}

#[test]
fn every_frame_of_a_capture_has_a_row_and_what_is_neither_is_refused() {
    let folder = folder();
    let said = nicforge(&folder, &["rss", "scenarios/captures/sample.pcap", "--key", "symmetric"]);
    assert_eq!(said.status.code(), Some(0), "{}", stderr(&said));
    assert!(stdout(&said).lines().count() > 2, "{}", stdout(&said));
    for (arguments, part) in [
        (&["rss", "no-such-file"][..], "name a capture"),
        (&["rss", FRAME, "--key", "6d5a"], "80 hexadecimal digits"),
        (&["rss", FRAME, "--queues", "0"], "--queues"),
    ] {
        let refused = nicforge(&folder, arguments);
        assert_eq!(refused.status.code(), Some(2), "{}", stdout(&refused));
        assert!(stderr(&refused).contains(part), "{}", stderr(&refused));
    }
}

/// How many frames each of four cores got, as the report at `out` has it.
fn received(folder: &TempDir, out: &str) -> Vec<u64> {
    let text = std::fs::read_to_string(folder.path().join(out).join("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let cores = report["points"][0]["cores"].as_array().unwrap();
    cores.iter().map(|core| core["received"].as_u64().unwrap()).collect()
}

#[test]
fn both_grounds_spread_frames_as_it_says() {
    let folder = folder();
    let said = nicforge(&folder, &["rss", "scenarios/captures/sample.pcap", "--queues", "4", "--key", "symmetric"]);
    let mut of_queue = vec![0; 4];
    for row in stdout(&said).lines().skip(1) {
        let queue: usize = row.split_whitespace().last().unwrap().parse().unwrap();
        of_queue[queue] += 1;
    }
    let file = "[live]\nname = \"rss\"\n[settings]\napp = \"l2fwd\"\ncores = 4\nrss_key = \"symmetric\"\n\
                [[port]]\nread = \"scenarios/captures/sample.pcap\"\n[[port]]\nwrite = \"to.pcap\"\n";
    std::fs::write(folder.path().join("rss.toml"), file).unwrap();
    judge::live(&folder, "rss.toml");
    assert_eq!(received(&folder, "out-live"), of_queue, "live");
    judge::simulate(&folder, "l2fwd", "scenarios/captures/sample.pcap", &["cores=4", "rss_key=symmetric"]);
    assert_eq!(received(&folder, "out-sim"), of_queue, "simulated");
}
