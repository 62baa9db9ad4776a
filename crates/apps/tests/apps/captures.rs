//! Every application on real captures: each packet gets a verdict, nothing panics, and what
//! was right stays right. Judged by etherparse.

use nicforge_apps::{AppConfig, Apps, PortMap, Verdict, generate_routes};
use nicforge_wire::capture::CaptureReader;

use crate::support::{Bench, app, captures, decode};

fn config(name: &str) -> AppConfig {
    AppConfig {
        routes: generate_routes(1, 1000, 100, 1).into(),
        ..app(name, PortMap::one_armed(1)).with("table_entries", 20_000).with("array_mib", 1)
    }
}

/// Frames of a folder of captures; what cannot be read is the capture reader's own test.
fn frames(folder: &str, mut each: impl FnMut(&[u8])) {
    for path in captures(folder) {
        let Ok(mut reader) = CaptureReader::open(&path) else {
            continue;
        };
        while let Ok(Some(record)) = reader.next_record() {
            each(record.bytes);
        }
    }
}

#[test]
fn right_checksums_stay_right_and_wrong_ones_wrong() {
    for name in Apps::shipped().names() {
        let mut bench = Bench::new(&config(name));
        let (mut sent, mut dropped, mut judged) = (0u64, 0u64, 0u64);
        for folder in ["mixed", "encap", "chksum", "bad"] {
            frames(folder, |frame| {
                let before = decode(frame);
                let (verdict, out) = bench.send(0, frame);
                if let Verdict::Drop(cause) = verdict {
                    assert_eq!(out, frame, "{name} changed what it dropped as {cause}");
                    dropped += 1;
                    return;
                }
                sent += 1;
                assert_eq!(out.len(), frame.len());
                let (Some(before), Some(after)) = (before, decode(&out)) else {
                    return;
                };
                judged += 1;
                assert_eq!(after.l3_right, before.l3_right, "{name} {frame:02x?}");
                assert_eq!(after.l4_right, before.l4_right, "{name} {frame:02x?}");
                check(name, &before, &after);
            });
        }
        println!("{name}: {sent} sent, {dropped} dropped, {judged} judged by etherparse");
    }
}

/// What each application may change and what not.
fn check(name: &str, before: &crate::support::Decoded, after: &crate::support::Decoded) {
    let unchanged = |a: crate::support::Decoded, b: crate::support::Decoded| assert_eq!(a, b, "{name}");
    match name {
        "l3fwd" => unchanged(*after, crate::support::Decoded { ttl: before.ttl - 1, ..*before }),
        "nat" => {
            assert_eq!(after.source.0.octets()[..2], [198, 19], "{name}");
            let source = after.source;
            let ttl = before.ttl - 1;
            unchanged(*after, crate::support::Decoded { source, ttl, ..*before });
        }
        "lb" => {
            assert_eq!(after.destination.0.octets()[..3], [10, 200, 0], "{name}");
            let destination = (after.destination.0, before.destination.1);
            unchanged(*after, crate::support::Decoded { destination, ttl: before.ttl - 1, ..*before });
        }
        _ => unchanged(*after, *before),
    }
}

#[test]
fn cut_frames_get_a_verdict_too() {
    for name in Apps::shipped().names() {
        let mut bench = Bench::new(&config(name));
        frames("encap", |frame| {
            for len in (0..frame.len().min(120)).step_by(3) {
                bench.send(0, &frame[..len]);
                bench.send_split(0, frame, len);
            }
        });
    }
}
