//! Whole runs with payload in memory of the NIC: any amount of it, what comes out, and why one
//! transmit ring is then enough. That frames and buffers add up is checked inside of each run.

use std::path::{Path, PathBuf};

use nicforge_lab::run::{RunIo, run_point};
use nicforge_lab::settings::Settings;
use nicforge_record::Metrics;
use nicforge_wire::capture::CaptureReader;

use crate::common::machine::{machine, small};

fn run(settings: &Settings, io: &RunIo) -> Metrics {
    let point = run_point(machine(), settings, 1, io, &mut |_, _| {});
    point.unwrap_or_else(|error| panic!("{error}\n{settings:#?}")).metrics
}

#[test]
fn any_amount_of_nicmem_will_do_and_what_is_short_is_shown() {
    for interface in ["nm_nfv", "nm_nfv_minus", "split"] {
        for rx_inline in [false, true] {
            let spilled = [0, 2, 64, 1024, 22_528].map(|nicmem_kib| {
                let settings = small()
                    .with("interface", interface)
                    .with("rx_inline", rx_inline)
                    .with("nicmem_kib", nicmem_kib)
                    .with("offered_gbps", 200.0);
                run(&settings, &RunIo::default()).spill_fraction
            });
            if interface == "split" {
                assert_eq!(spilled, [None; 5]);
                continue;
            }
            let [without, hardly, some, .., plenty] = spilled;
            assert_eq!((without, plenty), (None, Some(0.0)));
            // A queue that got no nicmem at all does not spill, so the two cannot be compared.
            assert!(some > Some(0.0) && hardly > Some(0.0), "{hardly:?}, {some:?}");
        }
    }
}

/// What comes out of a run of `capture` through `app`, and what was dropped.
fn forwarded(capture: &Path, app: &str, interface: &str, rx_inline: bool) -> (Vec<Vec<u8>>, u64) {
    let folder = tempfile::tempdir().expect("a folder for captures");
    let path = folder.path().join("out.pcap");
    let settings = small()
        .with("interface", interface)
        .with("rx_inline", rx_inline)
        .with("app", app)
        .with("arrival", "replay")
        .with("pcap", capture.to_str().unwrap())
        .with("preload_flows", false)
        .with("offered_gbps", 1.0)
        .with("cores", 1)
        .with("nics", 1);
    let io = RunIo { pcap_out: Some(path.clone()), ..RunIo::default() };
    let metrics = run(&settings, &io);
    (frames(&path), metrics.drops.values().sum())
}

/// Every way in which frames are split and inlined.
const WAYS: [(&str, bool); 6] = [
    ("nm_nfv", false),
    ("nm_nfv", true),
    ("nm_nfv_minus", false),
    ("nm_nfv_minus", true),
    ("split", false),
    ("split", true),
];

#[test]
fn a_capture_comes_out_byte_for_byte_as_from_host_memory() {
    let expected = forwarded(&sample(), "nat", "priv_ring", false);
    assert!(!expected.0.is_empty());
    for (interface, rx_inline) in WAYS {
        let out = forwarded(&sample(), "nat", interface, rx_inline);
        assert!(out == expected, "{interface}, {rx_inline}");
    }
}

/// All that `l2fwd` changes are the two addresses in front.
#[test]
fn payload_of_forwarded_frames_is_what_came_in() {
    let mut captures = real_captures();
    captures.push(sample());
    for capture in captures {
        let came = frames(&capture);
        for (interface, rx_inline) in WAYS.into_iter().chain([("priv_ring", false)]) {
            let what = format!("{}, {interface}, {rx_inline}", capture.to_str().unwrap());
            let (out, dropped) = forwarded(&capture, "l2fwd", interface, rx_inline);
            assert!(!out.is_empty(), "{what}");
            // One queue keeps the order, so what came out is found in it, behind the one before.
            let mut rest = came.iter();
            for frame in &out {
                let same = |came: &Vec<u8>| came.get(12..) == frame.get(12..);
                assert!(rest.any(same), "{what}: a frame that did not come in");
            }
            assert!(out.len() as u64 + dropped >= came.len() as u64, "{what}");
        }
    }
}

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/captures/sample.pcap")
}

/// Captures that are not the project's own, those of them that are there; says what is skipped.
fn real_captures() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/pcap");
    let names = [
        "mixed/snabb-sanitized4k.pcap",
        "mixed/pcapplusplus-example.pcap",
        "mixed/ndpi-gnutella.pcap",
        "mixed/ndpi-alexa-app.pcapng",
        "mixed/mercury-emix.pcap",
        "encap/zeek-vlan-collisions.pcap",
        "encap/zeek-geneve.pcap",
        "encap/zeek-vxlan.pcap",
        "encap/zeek-Teredo.pcap",
    ];
    let mut found = Vec::new();
    for name in names {
        let path = root.join(name);
        if path.is_file() {
            found.push(path)
        } else {
            crate::skip::skipped(&format!("no ../shared/data/pcap/{name} beside the repository"))
        }
    }
    found
}

/// The frames of a capture, without their times; what was captured short has the zeros at its end
/// that a replay plays.
fn frames(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = CaptureReader::open(path).expect("a capture");
    let mut frames = Vec::new();
    while let Some(record) = reader.next_record().expect("a record") {
        let mut frame = record.bytes.to_vec();
        frame.resize(record.original_len as usize, 0);
        frames.push(frame);
    }
    frames
}

/// Calibration point c7: nicmem paper, section 2.1.3.
#[test]
fn a_single_transmit_ring_fills_with_host_memory_and_not_with_nicmem() {
    let with = |interface: &str| {
        small()
            .with("interface", interface)
            .with("app", "l3fwd")
            .with("cores", 1)
            .with("nics", 1)
            // Less than the wire carries, so that what waits at the start leaves.
            .with("offered_gbps", 95.0)
            .with("rx_entries", 1024)
            .with("tx_entries", 1024)
            .with("packet_bytes", 1500)
            .with("warmup_ms", 4.0)
            .with("window_ms", 0.5)
    };
    let host = run(&with("priv_ring"), &RunIo::default());
    let near = run(&with("nm_nfv_minus"), &RunIo::default());
    let full = |metrics: &Metrics| metrics.tx_occupancy.expect("a transmit ring");
    assert!(full(&host) > 0.5, "{}", full(&host));
    assert!(full(&near) < 0.3, "{}", full(&near));
    // The reason: payload fills the internal buffer, and the only ring is then not served. Headers
    // alone do not fill it within the time that a read takes.
    let pauses = |metrics: &Metrics| metrics.tx_deschedules_per_packet.expect("frames left");
    assert!(pauses(&host) > 0.01, "{}", pauses(&host));
    assert_eq!(pauses(&near), 0.0);
    assert!(host.drops.contains_key("tx_ring_full"), "{:?}", host.drops);
    assert!(!near.drops.contains_key("tx_ring_full"), "{:?}", near.drops);
    assert!(near.throughput_gbps > host.throughput_gbps);
    let busy = |metrics: &Metrics| metrics.pcie_in_utilisation.expect("a link");
    assert!(busy(&near) < busy(&host) / 4.0, "payload does not cross the bus");
}
