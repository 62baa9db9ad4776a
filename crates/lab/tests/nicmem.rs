//! Whole runs with payload in memory of the NIC: any amount of it, what comes out, and why one
//! transmit ring is then enough. That frames and buffers add up is checked inside of each run.

mod common {
    pub mod machine;
}

use std::path::Path;

use common::machine::{machine, small};
use nicforge_lab::metrics::Metrics;
use nicforge_lab::run::{RunIo, run_point};
use nicforge_lab::settings::Settings;

fn run(settings: &Settings, io: &RunIo) -> Metrics {
    let point = run_point(machine(), settings, 1, io, &mut |_, _| {});
    point
        .unwrap_or_else(|error| panic!("{error}\n{settings:#?}"))
        .metrics
}

#[test]
fn any_amount_of_nicmem_will_do_and_what_is_short_is_shown() {
    for interface in ["nm_nfv", "nm_nfv_minus", "split"] {
        for rx_inline in [false, true] {
            let spilled = [0, 2, 64, 1024, 22_528].map(|nicmem_kib| {
                let settings = Settings {
                    interface: interface.into(),
                    rx_inline,
                    nicmem_kib,
                    offered_gbps: 200.0,
                    ..small()
                };
                run(&settings, &RunIo::default()).spill_fraction
            });
            if interface == "split" {
                assert_eq!(spilled, [None; 5]);
                continue;
            }
            let [without, hardly, some, .., plenty] = spilled;
            assert_eq!((without, plenty), (None, Some(0.0)));
            // A queue that got no nicmem at all does not spill, so the two cannot be compared.
            assert!(
                some > Some(0.0) && hardly > Some(0.0),
                "{hardly:?}, {some:?}"
            );
        }
    }
}

#[test]
fn a_capture_comes_out_byte_for_byte_as_from_host_memory() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let capture = root.join("scenarios/captures/sample.pcap");
    let folder = std::env::temp_dir().join(format!("nicforge-nicmem-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for captures");
    let out = |interface: &str, rx_inline| {
        let path = folder.join(format!("{interface}-{rx_inline}.pcap"));
        let settings = Settings {
            interface: interface.into(),
            rx_inline,
            app: "nat".into(),
            arrival: "replay".into(),
            pcap: Some(capture.display().to_string()),
            preload_flows: false,
            offered_gbps: 1.0,
            cores: 1,
            nics: 1,
            ..small()
        };
        let io = RunIo {
            pcap_out: Some(path.clone()),
        };
        run(&settings, &io);
        frames(&std::fs::read(path).expect("what came out"))
    };
    let expected = out("priv_ring", false);
    assert!(!expected.is_empty());
    for interface in ["nm_nfv", "nm_nfv_minus", "split"] {
        for rx_inline in [false, true] {
            assert!(out(interface, rx_inline) == expected, "{interface}");
        }
    }
    // A folder that stays behind in the system's own place for them does no harm.
    let _ = std::fs::remove_dir_all(&folder);
}

/// The frames of a capture in pcap format, without their times.
fn frames(file: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = &file[24..];
    let mut frames = Vec::new();
    while rest.len() >= 16 {
        let len = u32::from_le_bytes([rest[8], rest[9], rest[10], rest[11]]) as usize;
        frames.push(rest[16..16 + len].to_vec());
        rest = &rest[16 + len..];
    }
    frames
}

/// Calibration point c7: nicmem paper, section 2.1.3.
#[test]
fn a_single_transmit_ring_fills_with_host_memory_and_not_with_nicmem() {
    let with = |interface: &str| Settings {
        interface: interface.into(),
        app: "l3fwd".into(),
        cores: 1,
        nics: 1,
        offered_gbps: 100.0,
        rx_entries: 1024,
        tx_entries: 1024,
        packet_bytes: 1500,
        warmup_ms: 0.5,
        window_ms: 0.5,
        ..small()
    };
    let host = run(&with("priv_ring"), &RunIo::default());
    let near = run(&with("nm_nfv_minus"), &RunIo::default());
    let full = |metrics: &Metrics| metrics.tx_occupancy.expect("a transmit ring");
    assert!(full(&host) > 0.5, "{}", full(&host));
    assert!(full(&near) < 0.3, "{}", full(&near));
    assert!(near.throughput_gbps > host.throughput_gbps);
    let busy = |metrics: &Metrics| metrics.pcie_in_utilisation.expect("a link");
    assert!(
        busy(&near) < busy(&host) / 4.0,
        "payload does not cross the bus"
    );
}
