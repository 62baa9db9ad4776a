//! Dynamic shRing over whole runs: what a switch of rings costs a server that keeps up.

mod common {
    pub mod machine;
}

use std::collections::BTreeMap;

use common::machine::{machine, small};
use nicforge_lab::run::{RunIo, run_point};
use nicforge_lab::settings::Settings;
use nicforge_lab::timeline::switches;
use nicforge_wire::capture::CaptureReader;

/// Where addresses and ports of a UDP frame over IPv4 begin and end, and the sequence number that
/// sources write behind them.
const FLOW: std::ops::Range<usize> = 26..38;
const SEQUENCE: std::ops::Range<usize> = 42..50;

/// Looks every 10 us, each of which speaks for a switch while packets come.
fn switching() -> Settings {
    Settings {
        interface: "sh_ring_dynamic".to_owned(),
        app: "l2fwd".to_owned(),
        dynamic_step_ms: 0.01,
        dynamic_window: 1,
        dynamic_gbps: 0.0,
        dynamic_memory_gib_per_s: 0.0,
        dynamic_off_share: 0.0,
        // All frames that come are looked at, from the first on.
        warmup_ms: 0.0,
        window_ms: 1.0,
        timeline_ms: Some(0.01),
        ..small()
    }
}

/// Sequence numbers of each flow, in the order in which its frames left.
fn sequences(path: &std::path::Path) -> BTreeMap<Vec<u8>, Vec<u64>> {
    let mut reader = CaptureReader::open(path).unwrap();
    let mut flows: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
    while let Some(frame) = reader.next_record().unwrap() {
        let number = u64::from_be_bytes(frame.bytes[SEQUENCE].try_into().unwrap());
        let flow = frame.bytes[FLOW].to_vec();
        flows.entry(flow).or_default().push(number);
    }
    flows
}

/// A core drains the old rings before it polls the new ones (shRing, section 5.1.5). Below
/// saturation the new ones hold meanwhile what comes: nothing is lost, and no flow overtakes itself.
#[test]
fn below_saturation_a_switch_neither_loses_nor_reorders() {
    for (arrival, offered_gbps, packet_bytes) in [
        ("constant", 100.0, 1500),
        ("poisson", 60.0, 1500),
        ("bursts", 40.0, 1500),
        ("constant", 4.0, 64),
    ] {
        let settings = Settings {
            arrival: arrival.to_owned(),
            offered_gbps,
            packet_bytes,
            // Few flows: each has frames on both sides of every switch.
            flows: 16,
            ..switching()
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.pcap");
        let io = RunIo {
            pcap_out: Some(path.clone()),
        };
        let point = run_point(machine(), &settings, 1, &io, &mut |_, _| {}).unwrap();
        let count = switches(&point.timeline).len();
        assert!(count > 40, "{arrival}: {count} switches");
        assert!(
            point.metrics.drops.is_empty(),
            "{arrival}: {:?}",
            point.metrics.drops
        );
        let flows = sequences(&path);
        assert!(flows.len() > 10, "{arrival}: {} flows", flows.len());
        for (flow, numbers) in flows {
            assert!(
                numbers.is_sorted_by(|a, b| a < b),
                "{arrival}: flow {flow:?}"
            );
        }
    }
}

/// Where cores are behind the traffic, the old rings are full. While a core drains them, the new
/// ones fill and drop: that is the published protocol. What was in a ring leaves all the same, in
/// order; whatever is dropped never was in one.
#[test]
fn an_overloaded_switch_drops_arrivals_only() {
    let settings = Settings {
        flows: 16,
        offered_gbps: 200.0,
        packet_bytes: 60,
        rx_entries: 64,
        ..switching()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.pcap");
    let io = RunIo {
        pcap_out: Some(path.clone()),
    };
    let point = run_point(machine(), &settings, 1, &io, &mut |_, _| {}).unwrap();
    assert!(switches(&point.timeline).len() > 40);
    let causes: Vec<&str> = point.metrics.drops.keys().map(String::as_str).collect();
    let at_arrival = ["fifo_full", "no_descriptor"];
    assert!(
        !causes.is_empty() && causes.iter().all(|cause| at_arrival.contains(cause)),
        "{causes:?}"
    );
    for (flow, numbers) in sequences(&path) {
        assert!(numbers.is_sorted_by(|a, b| a < b), "flow {flow:?}");
    }
}
