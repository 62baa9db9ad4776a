//! `nicforge rss` says hash and queue of frames.

use crate::common::{folder, nicforge, stderr, stdout};

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
